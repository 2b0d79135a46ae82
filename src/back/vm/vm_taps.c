/* vm_taps.c: unrolled taps of a depthwise convolution become panel instructions.
 *
 * In: code with virtual registers and label instructions. Out: the same, with runs of VM_vld_f32
 * (load a vector) and VM_vfmam_f (add its products with memory) replaced by a few VM_panel. Method:
 * the taps of each accumulator are listed in order; a tap is a memory vector times a loaded vector.
 * Accumulators in consecutive registers whose taps differ by a constant stride are the rows of a
 * panel. Taps at a constant stride are its loops. The order of additions does not change. Runs with
 * little gain stay. */
#include "back/vm/vm_build.h"

#include <stdlib.h>

/* tile.c keeps panels with a multiple of TAP_LANES lanes in CPU registers. */
enum { MAX_TAPS = 1024, MAX_VECTORS = 16, TAPS_GAIN = 6, TAP_LANES = 8, MAX_IMMEDIATE = 1 << 30 };

/* Address of a vector: buffer, offset register, immediate. */
typedef struct TapAt {
  u32 buf, reg;
  i32 k;
} TapAt;

typedef struct VmTap {
  u32 reg, root, off, order; /* of the accumulator */
  TapAt x, y;
} VmTap;

/* A register that the run loaded a vector into, by an instruction of five words. */
typedef struct TapVector {
  u32 root, off;
  const u32 *load;
} TapVector;

typedef struct Taps {
  VmBuild *b;
  Words32 code;     /* output */
  const u32 *begin; /* start of the run; NULL: none */
  u32 lanes;
  VmTap tap[MAX_TAPS];
  u32 ntap;
  TapVector vector[MAX_VECTORS];
  u32 nvector;
} Taps;

/* ---- a run of instructions ---- */

static u32 offset_of(const VmBuild *b, u32 reg) {
  return b->reg.at[reg].off;
}

static TapVector *vector_in(Taps *o, u32 reg) {
  u32 root = root_of(o->b, reg), off = offset_of(o->b, reg);
  for (u32 i = 0; i < o->nvector; i++)
    if (o->vector[i].root == root && o->vector[i].off == off) return &o->vector[i];
  return NULL;
}

static bool is_sum(const Taps *o, u32 root) {
  for (u32 i = 0; i < o->ntap; i++)
    if (o->tap[i].root == root) return true;
  return false;
}

static bool is_vector(const Taps *o, u32 root) {
  for (u32 i = 0; i < o->nvector; i++)
    if (o->vector[i].root == root) return true;
  return false;
}

static TapAt place_in(const u32 *w) {
  return (TapAt){w[0], w[1], (i32)w[2]};
}

/* Adds the instruction to the current run; false: it does not belong there. */
static bool add_tap(Taps *o, const u32 *w) {
  u32 op = *w & 0xffff, lanes = *w >> 16;
  if (op != VM_vld_f32 && op != VM_vfmam_f) return false;
  if (!lanes || lanes % TAP_LANES || (o->begin && lanes != o->lanes)) return false;
  if ((i32)w[4] >= MAX_IMMEDIATE || (i32)w[4] <= -MAX_IMMEDIATE) return false; /* of differences */
  u32 root = root_of(o->b, w[1]);
  if (op == VM_vld_f32) {
    TapVector *v = vector_in(o, w[1]);
    if ((!v && o->nvector == MAX_VECTORS) || is_sum(o, root)) return false;
    if (!v) v = &o->vector[o->nvector++];
    *v = (TapVector){root, offset_of(o->b, w[1]), w};
  } else {
    const TapVector *v = vector_in(o, w[5]);
    if (!v || o->ntap == MAX_TAPS || is_vector(o, root)) return false;
    o->tap[o->ntap] =
        (VmTap){w[1], root, offset_of(o->b, w[1]), o->ntap, place_in(w + 2), place_in(v->load + 2)};
    o->ntap++;
  }
  if (!o->begin) o->begin = w;
  o->lanes = lanes;
  return true;
}

/* ---- panels ---- */

static int by_sum(const void *a, const void *b) {
  const VmTap *x = a, *y = b;
  if (x->root != y->root) return x->root < y->root ? -1 : 1;
  if (x->off != y->off) return x->off < y->off ? -1 : 1;
  return x->order < y->order ? -1 : 1;
}

static bool same_base(const TapAt *x, const TapAt *y) {
  return x->buf == y->buf && x->reg == y->reg;
}

/* Number of taps of the accumulator at t. */
static u32 length(const Taps *o, u32 t) {
  u32 n = 1;
  while (t + n < o->ntap && o->tap[t + n].root == o->tap[t].root &&
         o->tap[t + n].off == o->tap[t].off)
    n++;
  return n;
}

/* Is the accumulator at u the row after the one at t, with n taps at stride dx? */
static bool next_row(const Taps *o, u32 t, u32 u, u32 n, i32 *dx) {
  const VmTap *x = &o->tap[t], *y = &o->tap[u];
  if (u >= o->ntap || y->root != x->root || y->off != x->off + o->lanes / 2 || length(o, u) != n)
    return false;
  *dx = y->x.k - x->x.k;
  for (u32 i = 0; i < n; i++, x++, y++)
    if (!same_base(&x->x, &y->x) || !same_base(&x->y, &y->y) || x->y.k != y->y.k ||
        y->x.k - x->x.k != *dx)
      return false;
  return true;
}

/* Are the n taps at u those at t, moved by one stride per operand? */
static bool repeats(const VmTap *t, const VmTap *u, u32 n, i32 *dx, i32 *dy) {
  *dx = u->x.k - t->x.k;
  *dy = u->y.k - t->y.k;
  for (u32 i = 0; i < n; i++, t++, u++)
    if (!same_base(&t->x, &u->x) || !same_base(&t->y, &u->y) || u->x.k - t->x.k != *dx ||
        u->y.k - t->y.k != *dy)
      return false;
  return true;
}

/* Number of repetitions of the n taps at t with constant strides; left: taps to look at. */
static u32 repeat_count(const VmTap *t, u32 n, u32 left, i32 *dx, i32 *dy) {
  u32 count = 1;
  i32 x, y;
  *dx = *dy = 0;
  while (n * (count + 1) <= left && repeats(t + n * (count - 1), t + n * count, n, &x, &y) &&
         (count == 1 || (x == *dx && y == *dy))) {
    *dx = x;
    *dy = y;
    count++;
  }
  return count;
}

/* Writes panels for `rows` accumulators from t on, at stride dx. Returns their number. */
static u32 write_rows(Taps *o, u32 t, u32 n, u32 rows, i32 dx) {
  VmBuild *b = o->b;
  u32 panels = 0;
  for (u32 at = 0; at < n; panels++) {
    const VmTap *first = &o->tap[t + at];
    i32 x1, y1, x2, y2;
    u32 inner = repeat_count(first, 1, n - at, &x2, &y2);
    u32 outer = repeat_count(first, inner, n - at, &x1, &y1);
    const u32 w[] = {VM_panel | o->lanes << 16,
                     first->reg,
                     rows,
                     1,
                     VP_fma_m,
                     integer(b, 1).reg,
                     integer(b, outer).reg,
                     integer(b, inner).reg,
                     first->x.buf,
                     first->x.reg,
                     (u32)first->x.k,
                     0,
                     (u32)x1,
                     (u32)x2,
                     (u32)dx,
                     first->y.buf,
                     first->y.reg,
                     (u32)first->y.k,
                     0,
                     (u32)y1,
                     (u32)y2,
                     0};
    put_words(b, &o->code, w, sizeof w / sizeof *w);
    at += inner * outer;
  }
  return panels;
}

/* Writes all taps as panels, then the last loads, which code after the run may read. */
static bool write_panels(Taps *o) {
  u32 from = o->code.n, panels = 0;
  qsort(o->tap, o->ntap, sizeof *o->tap, by_sum);
  for (u32 i = 0; i < o->nvector; i++) put_words(o->b, &o->code, o->vector[i].load, 5);
  for (u32 t = 0, rows; t < o->ntap;) {
    u32 n = length(o, t);
    i32 dx = 0, next;
    for (rows = 1; rows < VM_TILE && next_row(o, t + n * (rows - 1), t + n * rows, n, &next) &&
                   (rows == 1 || next == dx);
         rows++)
      dx = next;
    panels += write_rows(o, t, n, rows, dx);
    t += n * rows;
  }
  if (o->ntap >= TAPS_GAIN * panels) return true;
  o->code.n = from;
  return false;
}

static void end_run(Taps *o, const u32 *end) {
  if (o->begin && (!o->ntap || !write_panels(o)))
    put_words(o->b, &o->code, o->begin, (u32)(end - o->begin));
  o->begin = NULL;
  o->ntap = o->nvector = 0;
}

void vm_taps(VmBuild *b, Words32 *code) {
  Taps *o = NEW(b->a, Taps);
  o->b = b;
  for (u32 i = 0, words; i < code->n; i += words) {
    const u32 *w = code->at + i;
    words = code_words(w);
    if (*w != VM_LABEL && add_tap(o, w)) continue;
    end_run(o, w);
    if (*w != VM_LABEL && add_tap(o, w)) continue;
    put_words(b, &o->code, w, words);
  }
  end_run(o, code->at + code->n);
  *code = o->code;
}
