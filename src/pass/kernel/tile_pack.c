/* tile_pack.c: packs operands into the order in which a kernel reads them.
 *
 * In: the index map of an operand. Out: an array [batch axes, panels, reduction axes, lanes], with
 * zeros where the last panel or block has no element. Every reduction step reads the next vector.
 * For dot_i8x4 an element is four bytes, for dot_i16x2 two int16. Constants are packed at compile
 * time. Other operands are packed by the kernel, again for every point of the batch axes.
 *
 * Panels whose values fit f16 will be stored as f16 (shrink_consts.c). If several tiles read them,
 * the first one stores the f32 values it converts to, and the others read those.
 */
#include <string.h>
#include "pass/kernel/tile.h"

/* One dimension of the packed order: an axis, the panels, the lanes, or a part of a reduction axis
 * (channel block, channel in it, group of points of one step). */
typedef struct Place {
  enum { PL_axis, PL_panel, PL_block, PL_within, PL_quad, PL_lane } kind;
  u32 axis;
  i64 n;
} Place;

typedef struct Places {
  u32 n;
  Place at[FORM_AXES + 4];
} Places;

static Dim whole(const Axis *a) {
  return a->full_hi ? a->full_hi : a->hi;
}

static Places places_of(const Tile *t, u32 k) {
  Places q = {0};
  const Operand *o = &t->f.in[k];
  const Form *f = &t->f;
  i64 lanes = f->axis[t->axis.lane].hi;
  for (u32 i = 0; i < f->naxes && !t->packed_at_run[k]; i++)
    if (!f->axis[i].reduce && i != t->axis.lane && i != t->axis.row && operand_moves(o, i))
      q.at[q.n++] = (Place){PL_axis, i, f->axis[i].hi};
  q.at[q.n++] = (Place){PL_panel, t->axis.lane, (lanes + t->lanes - 1) / t->lanes};
  for (u32 i = 0; i < f->naxes; i++) {
    if (!f->axis[i].reduce || i == t->axis.lane || !operand_moves(o, i)) continue;
    if (i == t->axis.split)
      q.at[q.n++] = (Place){PL_block, i, (f->axis[i].hi + t->axis.block - 1) / t->axis.block};
    else if (i == t->axis.quad)
      q.at[q.n++] = (Place){PL_quad, i, (f->axis[i].hi + t->axis.each - 1) / t->axis.each};
    else
      q.at[q.n++] = (Place){PL_axis, i, whole(&f->axis[i])};
  }
  if (t->axis.split < FORM_AXES && operand_moves(o, t->axis.split))
    q.at[q.n++] =
        (Place){PL_within, t->axis.split,
                t->axis.split == t->axis.quad ? t->axis.block / t->axis.each : t->axis.block};
  q.at[q.n++] = (Place){PL_lane, t->axis.lane, t->lanes};
  return q;
}

/* Element of the operand at these axis values; false: out of bounds. */
static bool element(const Tile *t, u32 k, const i64 *value, u64 *at) {
  const Operand *o = &t->f.in[k];
  const Buf *b = prog_buf(t->p, o->buf);
  u64 sum = 0;
  for (u32 i = 0; i < t->f.naxes; i++)
    if (operand_moves(o, i) && value[i] >= whole(&t->f.axis[i])) return false;
  for (u32 d = 0; d < o->rank; d++) {
    const Index *ix = &o->idx[d];
    i64 x = ix->base + ix->shift;
    for (u32 i = 0; i < ix->n; i++) x += ix->coef[i] * value[ix->axis[i]];
    if (x < 0 || x >= b->dim[d]) return false; /* padding, which the loops skip */
    sum = sum * (u64)b->dim[d] + (u64)x;
  }
  *at = sum;
  return true;
}

/* Finds a packed copy. Parts of one form share panels. Another form may read the same constant
 * through other indices, such as W and its transpose. */
static u32 *packed_before(Tile *t, u32 k, const Places *q) {
  i64 key[9 + 3 * (FORM_AXES + 4) + 7 * MAX_RANK];
  u32 n = 0;
  const Operand *o = &t->f.in[k];
  key[n++] = ON_packed;
  key[n++] = o->buf;
  key[n++] = t->lanes;
  key[n++] = t->axis.lane;
  key[n++] = t->axis.quad;
  key[n++] = t->axis.each;
  key[n++] = t->bytes.sum_in_f32;
  key[n++] = t->axis.split;
  key[n++] = t->axis.block;
  for (u32 d = 0; d < o->rank; d++) {
    key[n++] = o->idx[d].n;
    key[n++] = o->idx[d].base;
    key[n++] = o->idx[d].shift;
    for (u32 i = 0; i < o->idx[d].n; i++) {
      key[n++] = o->idx[d].axis[i];
      key[n++] = o->idx[d].coef[i];
    }
  }
  for (u32 i = 0; i < q->n; i++) {
    key[n++] = q->at[i].kind;
    key[n++] = q->at[i].axis;
    key[n++] = q->at[i].n;
  }
  return map_put_bytes(&t->l->once, key, n * sizeof *key);
}

static const Tensor *data_of(const Tile *t, u32 k) {
  return prog_buf(t->p, prog_root(t->p, t->f.in[k].buf))->data;
}

/* Step of the axis between two positions of this dimension. */
static i64 step_of(const Tile *t, const Place *x) {
  switch (x->kind) {
  case PL_panel: return t->lanes;
  case PL_block: return t->axis.block;
  case PL_quad: return t->axis.each;
  case PL_within: return t->axis.split == t->axis.quad ? t->axis.each : 1;
  default: return 1;
  }
}

/* Axis values at a position of the packed order. */
static void values_at(const Tile *t, const Places *q, const i64 *at, i64 *value) {
  memset(value, 0, FORM_AXES * sizeof *value);
  for (u32 i = 0; i < q->n; i++) value[q->at[i].axis] += at[i] * step_of(t, &q->at[i]);
}

/* Advances to the next position in row-major order; false: at the end. */
static bool next_place(const Places *q, i64 *at) {
  for (u32 i = q->n; i-- > 0;) {
    if (++at[i] < q->at[i].n) return true;
    at[i] = 0;
  }
  return false;
}

/* ---- constants ---- */

enum { PACK_RANK = FORM_AXES + 5, PACK_LIMITS = FORM_AXES + MAX_RANK };

/* An affine function of the position. An element exists only where it is in 0..most. */
typedef struct Bound {
  i64 most, step[PACK_RANK];
  i64 low[PACK_RANK + 1],
      high[PACK_RANK + 1]; /* minimum and maximum that the dimensions from this one on add */
} Bound;

/* A packed order and its source array; steps are in bytes. */
typedef struct Packing {
  u32 rank, size, nlimit;
  u8 *to;
  const u8 *from;
  i64 dim[PACK_RANK], sto[PACK_RANK], sfrom[PACK_RANK];
  i64 first[PACK_LIMITS]; /* by limit: its value at position 0 */
  Bound limit[PACK_LIMITS];
} Packing;

/* Adds a limit, unless all positions satisfy it. */
static void add_limit(Packing *s, i64 first, Bound x) {
  for (u32 i = s->rank; i-- > 0;) {
    i64 far = x.step[i] * (s->dim[i] - 1);
    x.low[i] = x.low[i + 1] + (far < 0 ? far : 0);
    x.high[i] = x.high[i + 1] + (far > 0 ? far : 0);
  }
  if (first + x.low[0] >= 0 && first + x.high[0] <= x.most) return;
  s->first[s->nlimit] = first;
  s->limit[s->nlimit++] = x;
}

/* Copies a box of positions, from dimension `level` on. If every limit always holds, copies the
 * whole box. If some limit never holds, leaves zeros. Otherwise splits the box. */
static void pack_box(const Packing *s, u32 level, const i64 *at, i64 to, i64 from) {
  bool all = true;
  for (u32 c = 0; c < s->nlimit; c++) {
    const Bound *x = &s->limit[c];
    i64 low = at[c] + x->low[level], high = at[c] + x->high[level];
    if (high < 0 || low > x->most) return;
    all = all && low >= 0 && high <= x->most;
  }
  if (all) {
    strided_copy(s->rank - level, s->dim + level, s->size, s->to + to, s->sto + level,
                 s->from + from, s->sfrom + level);
    return;
  }
  i64 next[PACK_LIMITS];
  memcpy(next, at, s->nlimit * sizeof *at);
  for (i64 i = 0; i < s->dim[level]; i++) {
    pack_box(s, level + 1, next, to + i * s->sto[level], from + i * s->sfrom[level]);
    for (u32 c = 0; c < s->nlimit; c++) next[c] += s->limit[c].step[level];
  }
}

/* Packs elements of x, or the low bits of several. */
static void pack_into(const Tile *t, u32 k, const Places *q, const Tensor *x, Tensor *to) {
  static const bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
  const Operand *o = &t->f.in[k];
  const Buf *b = prog_buf(t->p, o->buf);
  bool group = t->axis.quad < FORM_AXES;
  i64 wide = dtype_bytes(to->dt), stride = dtype_bytes(x->dt), size = wide / t->axis.each,
      from = group && big ? stride - size : 0;
  Packing *s = NEW(&t->p->c->scratch, Packing);
  *s = (Packing){.rank = q->n + group, .size = (u32)size, .from = x->data};
  s->to = (u8 *)(uintptr_t)to->data; /* writable, because tensor_new made it */
  Place quad = {PL_axis, t->axis.quad, t->axis.each};
  Bound axis[FORM_AXES] = {0};
  for (u32 i = s->rank; i-- > 0;) {
    bool part = i == q->n;
    const Place *y = part ? &quad : &q->at[i];
    s->dim[i] = y->n;
    s->sto[i] = part ? (big ? -size : size) : wide;
    if (!part) wide *= y->n;
    axis[y->axis].step[i] = step_of(t, y);
  }
  for (u32 i = 0; i < t->f.naxes; i++) {
    axis[i].most = whole(&t->f.axis[i]) - 1;
    if (operand_moves(o, i)) add_limit(s, 0, axis[i]);
  }
  for (u32 d = o->rank; d-- > 0; stride *= b->dim[d]) {
    const Index *ix = &o->idx[d];
    Bound x = {.most = b->dim[d] - 1}; /* outside is padding, which the loops skip */
    for (u32 a = 0; a < ix->n; a++)
      for (u32 i = 0; i < s->rank; i++) x.step[i] += ix->coef[a] * axis[ix->axis[a]].step[i];
    for (u32 i = 0; i < s->rank; i++) s->sfrom[i] += x.step[i] * stride;
    from += (ix->base + ix->shift) * stride;
    add_limit(s, ix->base + ix->shift, x);
  }
  pack_box(s, 0, s->first, group && big ? dtype_bytes(to->dt) - size : 0, from);
}

static const Tensor *as_floats(Arena *a, const Tensor *x) {
  Tensor *y = tensor_new(a, DT_f32, x->dim, x->rank);
  for (u64 i = 0; i < x->n; i++) tensor_set(y, i, (Scalar){.f = (double)tensor_get(x, i).i});
  return y;
}

void pack_const(Tile *t, u32 k) {
  Prog *p = t->p;
  Places q = places_of(t, k);
  const Tensor *x = data_of(t, k);
  i64 dim[FORM_AXES + 4];
  u32 *known = packed_before(t, k, &q);
  t->pack[k] = *known;
  if (*known) return;
  for (u32 i = 0; i < q.n; i++) dim[i] = q.at[i].n;
  Tensor *to = tensor_new(&p->c->keep, t->bytes.sum_in_f32 ? DT_f32 : x->dt, dim, q.n);
  Mark mark = arena_mark(&p->c->scratch);
  if (!x->data) x = winograd_weights(t->l, t->f.in[k].buf, &p->c->scratch);
  pack_into(t, k, &q, t->bytes.sum_in_f32 ? as_floats(&p->c->scratch, x) : x, to);
  arena_rewind(&p->c->scratch, mark);
  Str name = prog_buf(p, t->f.in[k].buf)->name;
  t->pack[k] = *known = prog_add_const(p, to, name);
}

/* Dimensions of operand k that are not reduction axes. */
static Places unfolded(const Tile *t, u32 k) {
  Places q = places_of(t, k), r = {0};
  for (u32 i = 0; i < q.n; i++)
    if (!t->f.axis[q.at[i].axis].reduce) r.at[r.n++] = q.at[i];
  return r;
}

void pack_sums(Tile *t, u32 k) {
  Prog *p = t->p;
  Places q = places_of(t, k), r = unfolded(t, k);
  const Tensor *x = data_of(t, k);
  i64 dim[FORM_AXES + 4], at[FORM_AXES + 4] = {0}, value[FORM_AXES];
  for (u32 i = 0; i < r.n; i++) dim[i] = r.at[i].n;
  Tensor *to = tensor_new(&p->c->keep, t->f.acc, dim, r.n);
  do {
    u64 e = 0, pos;
    i64 sum = 0;
    for (u32 i = 0; i < q.n; i++)
      if (!t->f.axis[q.at[i].axis].reduce) e = e * (u64)q.at[i].n + (u64)at[i];
    values_at(t, &q, at, value);
    for (i64 j = 0; j < t->axis.each; j++) {
      if (element(t, k, value, &pos)) sum += tensor_get(x, pos).i;
      if (t->axis.quad < FORM_AXES) value[t->axis.quad]++;
    }
    Scalar s = tensor_get(to, e);
    if (t->bytes.sum_in_f32)
      s.f -= (double)(t->bytes.zero * sum);
    else
      s.i = scalar_wrap(DT_i32, s.i - t->bytes.zero * sum);
    tensor_set(to, e, s);
  } while (next_place(&q, at));
  t->bytes.sums = prog_add_const(p, to, str_of(p->c, "sums"));
}

/* ---- at run time ---- */

/* Copies the valid lanes of a panel and pads it with zeros. idx: by dimension, then the panel. */
static void pack_lanes(Tile *t, Cursor at, u32 k, const Places *q, ExprId *idx, i64 valid,
                       ExprId there) {
  Prog *p = t->p;
  for (u32 part = 0; part < 2; part++) {
    i64 lo = part ? valid : 0, hi = part ? (i64)t->lanes : valid;
    ExprId to[FORM_AXES + 4], value = ex_const(p, t->f.acc, (Scalar){.f = 0});
    if (lo == hi) continue;
    Cursor in = at;
    VarId lane = prog_for(p, &in, ex_int(p, lo), ex_int(p, hi), "l");
    if (!part) {
      Nest x = tile_nest(t, in);
      ExprId base = ex_op2(p, OP_mul, ex_copy(p, idx[q->n]), ex_int(p, t->lanes));
      t->at.val[t->axis.lane] = ex_op2(p, OP_add, base, ex_var(p, lane));
      value = nest_load(&x, k);
      if (there)
        value =
            ex_op3(p, OP_select, ex_copy(p, there), value, ex_const(p, t->f.acc, (Scalar){.f = 0}));
    }
    for (u32 i = 0; i + 1 < q->n; i++) to[i] = ex_copy(p, idx[i]);
    to[q->n - 1] = ex_var(p, lane);
    prog_store(p, &in, t->pack[k], to, q->n, value);
  }
}

/* Sets the reduction axis that is split to this point of the current block. Returns the condition
 * that the point exists, 0 if it always does; otherwise the index is clamped. */
static ExprId unsplit(Tile *t, ExprId within) {
  Prog *p = t->p;
  i64 n = whole(&t->f.axis[t->axis.split]);
  ExprId first = ex_op2(p, OP_mul, ex_copy(p, t->at.val[t->axis.split]), ex_int(p, t->axis.block));
  ExprId at = ex_op2(p, OP_add, first, ex_copy(p, within));
  t->at.val[t->axis.split] = n % t->axis.block ? ex_op2(p, OP_min, at, ex_int(p, n - 1)) : at;
  return n % t->axis.block ? ex_op2(p, OP_lt, ex_copy(p, at), ex_int(p, n)) : 0;
}

static bool is_contiguous(const Tile *t, u32 k) {
  const Operand *o = &t->f.in[k];
  if (!o->rank || layout_of(t->l, o->buf)) return false;
  const Index *last = &o->idx[o->rank - 1];
  return last->n == 1 && last->axis[0] == t->axis.lane && last->coef[0] == 1;
}

/* Packs panels first .. first + count - 1, `each` of them together; valid: lanes that the operand
 * has. */
static void pack_panels(Tile *t, Cursor at, u32 k, const Places *q, i64 first, i64 count, i64 each,
                        i64 valid) {
  Prog *p = t->p;
  ExprId idx[FORM_AXES + 5], there = 0;
  if (!count) return;
  ExprId group = count_parallel(p, &at, count / each, "i");
  for (u32 i = 1; i + 1 < q->n; i++) {
    idx[i] = count_parallel(p, &at, q->at[i].n, "i");
    if (q->at[i].kind == PL_within)
      there = unsplit(t, idx[i]);
    else
      t->at.val[q->at[i].axis] = idx[i];
  }
  ExprId panel = group;
  if (each > 1) {
    ExprId one = ex_var(p, prog_for(p, &at, ex_int(p, 0), ex_int(p, each), "v"));
    panel = ex_op2(p, OP_add, ex_op2(p, OP_mul, group, ex_int(p, each)), one);
  }
  panel = ex_op2(p, OP_add, panel, ex_int(p, first));
  idx[0] = idx[q->n] = panel;
  pack_lanes(t, at, k, q, idx, valid, there);
}

/* The panels are the first dimension: the kernel packs inside the loops over batch axes. */
void pack_run(Tile *t, Cursor at, u32 k) {
  Prog *p = t->p;
  Places q = places_of(t, k);
  Dim dim[FORM_AXES + 4];
  for (u32 i = 0; i < q.n; i++) dim[i] = q.at[i].n;
  Str name = str_fmt(p->c, "%s_panels", str_text(p->c, prog_buf(p, t->f.in[k].buf)->name));
  t->pack[k] = prog_add_buf(p, BS_local, t->f.acc, dim, q.n, name);
  i64 n = t->f.axis[t->axis.lane].hi, whole = n / t->lanes, rest = n - whole * t->lanes;
  i64 each = is_contiguous(t, k) ? LIMIT_pack_panels : 1, main = whole / each * each;
  pack_panels(t, at, k, &q, 0, main, each, t->lanes);
  pack_panels(t, at, k, &q, main, whole - main, whole - main, t->lanes);
  pack_panels(t, at, k, &q, whole, rest > 0, 1, rest);
  for (u32 i = 0; i < q.n; i++) t->at.val[q.at[i].axis] = 0;
}

/* Can the kernel pack operand k? A reduction axis in channel blocks is read in place. */
bool pack_can_run(const Tile *t, u32 k) {
  Places q = places_of(t, k);
  if (t->axis.split < FORM_AXES || t->f.acc != prog_buf(t->p, t->f.in[k].buf)->dt) return false;
  for (u32 i = 0; i < q.n; i++)
    if (!dim_is_const(q.at[i].n) || (q.at[i].kind == PL_axis && t->f.axis[q.at[i].axis].lo))
      return false;
  for (u32 d = 0; d < t->f.in[k].rank; d++)
    if (t->f.in[k].idx[d].guard) return false;
  return q.n < MAX_RANK;
}

/* Index in b of the current position. Vectors narrower than a panel, at the end of the lanes, are
 * parts of the panel they start in. */
static void place_index(const Tile *t, BufId b, const Places *q, ExprId *idx) {
  Prog *p = t->p;
  i64 full = prog_buf(p, b)->dim[q->n - 1];
  for (u32 i = 0; i < q->n; i++) {
    const Place *x = &q->at[i];
    switch (x->kind) {
    case PL_axis: {
      ExprId v = t->at.val[x->axis];
      idx[i] = v ? ex_copy(p, v) : ex_int(p, t->f.axis[x->axis].lo);
      break;
    }
    case PL_panel:
      idx[i] = ex_copy(p, t->at.panel);
      if (t->at.from) idx[i] = ex_op2(p, OP_add, idx[i], ex_int(p, t->at.from / full));
      break;
    case PL_block: idx[i] = ex_at(p, t->at.split_block); break;
    case PL_within: idx[i] = ex_at(p, t->at.split_lane); break;
    case PL_quad: idx[i] = t->at.quad ? ex_copy(p, t->at.quad) : ex_int(p, 0); break;
    case PL_lane: idx[i] = ex_int(p, t->at.from % full); break;
    }
  }
}

static ExprId load_places(const Tile *t, BufId b, const Places *q) {
  ExprId idx[FORM_AXES + 4];
  place_index(t, b, q, idx);
  return ex_load_vec(t->p, b, idx, q->n, t->lanes);
}

/* ---- f16 panels ---- */

/* Dimensions of the panels of one tile; the first is the panel within the tile. */
static Places panel_places(const Tile *t, u32 k) {
  Places q = places_of(t, k), r = {0};
  u32 i = 0;
  while (q.at[i].kind != PL_panel) i++;
  while (i < q.n) r.at[r.n++] = q.at[i++];
  return r;
}

/* Will the panels of operand k be f16? Their f32 copy must fit in L2. */
static bool is_halves(const Tile *t, u32 k, i64 panels) {
  const PassCtx *u = t->l->pass;
  if (t->use[k] != LU_packed || t->packed_at_run[k] || t->at.from || t->lanes < 4) return false;
  const Tensor *x = prog_buf(t->p, t->pack[k])->data;
  if (u->aim != AIM_time || x->dt != DT_f32 || x->dim[x->rank - 1] != t->lanes) return false;
  Places q = panel_places(t, k);
  double bytes = (double)panels * dtype_bytes(DT_f32);
  for (u32 i = 1; i < q.n; i++) bytes *= (double)q.at[i].n;
  return bytes <= figures.own_bytes && lanes_stored(u->target, x) != DT_f32;
}

bool pack_widen(Tile *t, i64 panels) {
  Prog *p = t->p;
  bool any = false;
  for (u32 k = 0; k < t->f.nin; k++) {
    Dim dim[FORM_AXES + 4] = {panels};
    if (!is_halves(t, k, panels)) continue;
    Places q = panel_places(t, k);
    for (u32 i = 1; i < q.n; i++) dim[i] = q.at[i].n;
    t->wide[k] = prog_add_buf(p, BS_local, DT_f32, dim, q.n, str_of(p->c, "wide"));
    any = true;
  }
  return any;
}

void pack_keep(const Tile *t, Cursor *at, u32 k, ExprId value) {
  Tile in = *t;
  Places q = panel_places(t, k);
  ExprId idx[FORM_AXES + 4];
  in.at.panel = t->at.panel_in_tile;
  place_index(&in, t->wide[k], &q, idx);
  prog_store(t->p, at, t->wide[k], idx, q.n, value);
}

ExprId pack_load(const Tile *t, u32 k) {
  Places q = places_of(t, k);
  if (!t->wide[k] || t->widens) return load_places(t, t->pack[k], &q);
  Tile in = *t;
  in.at.panel = t->at.panel_in_tile;
  q = panel_places(t, k);
  return load_places(&in, t->wide[k], &q);
}

ExprId sums_load(const Tile *t) {
  Places q = unfolded(t, 1 - t->bytes.operand);
  return load_places(t, t->bytes.sums, &q);
}
