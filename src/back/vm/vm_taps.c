/* vm_taps.c: the unrolled taps of a depthwise convolution become panel instructions.
 *
 * In: code whose registers are virtual and whose labels are instructions. Out: the same, in which
 * runs of VM_vld_f32 (load a vector) and VM_vfmam_f (add its products with memory) are a few
 * VM_panel. Method: the taps of each sum are listed in order, a tap being lanes of memory times a
 * vector that was loaded. Sums in neighbouring registers whose taps differ by a constant distance
 * in memory are the rows of a panel; taps at a constant distance from each other are its loops. No
 * sum changes its order. Runs where that saves little stay as they are.
 */
#include "back/vm/vm_build.h"

#include <stdlib.h>

/* Panels of TAP_LANES lanes, or of several times as many, are kept in registers of the CPU: tile.c.
 */
enum { MOST_TAPS = 1024, MOST_VECTORS = 16, TAPS_GAIN = 6, TAP_LANES = 8, MOST_NUMBER = 1 << 30 };

/* Where lanes lie: buffer, register with an offset, number. */
typedef struct TapAt {
  u32 buf, reg;
  i32 k;
} TapAt;

typedef struct VmTap {
  u32 reg, root, off, order; /* of the sum */
  TapAt x, y;
} VmTap;

/* A register that the run has loaded a vector into, by an instruction of five words. */
typedef struct TapVector {
  u32 root, off;
  const u32 *load;
} TapVector;

typedef struct Taps {
  VmBuild *b;
  Words32 code;     /* what is written */
  const u32 *begin; /* of the run; NULL: none */
  u32 lanes;
  VmTap tap[MOST_TAPS];
  u32 ntap;
  TapVector vector[MOST_VECTORS];
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

/* Distances of such numbers fit into an operand. */
static bool is_near(const u32 *place) {
  return (i32)place[2] < MOST_NUMBER && (i32)place[2] > -MOST_NUMBER;
}

/* Takes the instruction into the run at hand; false: it does not belong there. */
static bool add_tap(Taps *o, const u32 *w) {
  u32 op = *w & 0xffff, lanes = *w >> 16;
  if (op != VM_vld_f32 && op != VM_vfmam_f) return false;
  if (!lanes || lanes % TAP_LANES || (o->begin && lanes != o->lanes) || !is_near(w + 2))
    return false;
  u32 root = root_of(o->b, w[1]);
  if (op == VM_vld_f32) {
    TapVector *v = vector_in(o, w[1]);
    if ((!v && o->nvector == MOST_VECTORS) || is_sum(o, root)) return false;
    if (!v) v = &o->vector[o->nvector++];
    *v = (TapVector){root, offset_of(o->b, w[1]), w};
  } else {
    const TapVector *v = vector_in(o, w[5]);
    if (!v || o->ntap == MOST_TAPS || is_vector(o, root)) return false;
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

/* Taps of the sum at t. */
static u32 length(const Taps *o, u32 t) {
  u32 n = 1;
  while (t + n < o->ntap && o->tap[t + n].root == o->tap[t].root &&
         o->tap[t + n].off == o->tap[t].off)
    n++;
  return n;
}

/* Is the sum at u the next row behind the one at t, with n taps, dx elements on? */
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

/* Are the n taps at u those at t, moved by one distance in each operand? */
static bool repeats(const VmTap *t, const VmTap *u, u32 n, i32 *dx, i32 *dy) {
  *dx = u->x.k - t->x.k;
  *dy = u->y.k - t->y.k;
  for (u32 i = 0; i < n; i++, t++, u++)
    if (!same_base(&t->x, &u->x) || !same_base(&t->y, &u->y) || u->x.k - t->x.k != *dx ||
        u->y.k - t->y.k != *dy)
      return false;
  return true;
}

/* How often the n taps at t repeat, each time moved by the same distance; left: taps to look at. */
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

/* Panels for the taps of `rows` sums from t on, dx apart; how many. */
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

/* All taps as panels, and what was loaded last, which may be read behind the run. */
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
