/* tile_int.c: reductions over products of int8 or int16 with constant weights.
 *
 * In: a form over i32. One operand is int8 or int16 minus a zero point (graph_narrow), the other a
 * constant. Out: the form over the narrow operand itself. The zero point is subtracted once:
 * accumulators start with -zero * sum of the weights. This needs every product, so the border must
 * hold the zero point. A form whose operand has bounds checks is left alone.
 *
 * There are three ways to accumulate. All are exact, so the order does not matter. Other forms use
 * i32 arithmetic.
 *
 *   dot_i8x4   weights fit in 8 bits and one operand is broadcast: a step takes four points of a
 *              reduction axis along which the bytes are contiguous
 *   dot_i16x2  weights fit in 16 bits and the operand is int16: a step takes two points
 *   f32        all sums of int8 products stay below 2^22, where f32 is exact: depthwise
 *              convolutions, short reductions
 */
#include "pass/kernel/tile.h"

#define EXACT       ((i64)1 << 22) /* f32 holds every integer up to here, also when added to MIDDLE */
#define MIDDLE      0x1.8p23 /* floats near it are 1 apart, so their bits count like integers */
#define MIDDLE_BITS 0x4b400000

bool bytes_begin(Tile *t) {
  Form *f = &t->f;
  Lower *l = t->l;
  if (!f->reduce || f->acc != DT_i32 || f->dt != DT_i32 || f->with != OP_add) return false;
  if (f->body != FB_op || f->op != OP_mul || f->nin != 2) return false;
  for (u32 i = 0; i < f->naxes; i++) /* a part sums fewer weights, so its correction differs */
    if (f->axis[i].lo || f->axis[i].full_hi) return false;
  for (u32 k = 0; k < 2; k++) {
    const Storage *s = storage_of(l, f->in[k].buf);
    if (!tile_is_const(t, f->in[1 - k].buf)) continue;
    if (s->kind == SK_inlined) {
      Val q = graph_narrow(l->g, s->value, &t->bytes.zero);
      if (!q || is_inlined(l, l->buf[q])) continue;
      f->in[k].buf = l->buf[q];
    } else if (prog_buf(t->p, f->in[k].buf)->dt != DT_i16) {
      continue;
    }
    t->bytes.operand = k;
    return true;
  }
  t->bytes.zero = 0;
  return false;
}

/* Is operand o contiguous along the axis, in whole groups? */
static bool is_contiguous(const Tile *t, const Operand *o, u32 axis, i64 each) {
  const Buf *b = prog_buf(t->p, o->buf);
  const Layout *y = layout_of(t->l, o->buf);
  u32 found = o->rank;
  i64 coef = 0;
  for (u32 d = 0; d < o->rank; d++)
    for (u32 i = 0; i < o->idx[d].n; i++) {
      if (o->idx[d].axis[i] != axis) continue;
      if (found < o->rank) return false;
      found = d;
      coef = o->idx[d].coef[i];
    }
  if (found == o->rank || coef != 1) return false;
  for (u32 d = found + 1; d < o->rank; d++)
    if (b->dim[d] != 1 || (y && (y->lo[d] || y->hi[d]))) return false;
  const Index *ix = &o->idx[found];
  if (found + 1 != o->rank || ix->base || !dim_is_const(b->dim[found])) return false;
  i64 n = t->f.axis[axis].hi, last = ix->shift + (n + each - 1) / each * each - n;
  for (u32 i = 0; i < ix->n; i++) {
    if (!dim_is_const(t->f.axis[ix->axis[i]].hi) || ix->coef[i] < 0) return false;
    last += ix->coef[i] * (t->f.axis[ix->axis[i]].hi - 1);
  }
  return last < b->dim[found] + (y ? y->hi[found] : 0);
}

/* Reduction axis that is consumed in groups of `each` points; FORM_AXES: none. */
static u32 quad_axis(const Tile *t, i64 each) {
  const Operand *o = &t->f.in[t->bytes.operand];
  const Layout *y = layout_of(t->l, o->buf);
  if (y && y->block) return t->axis.block % each ? FORM_AXES : t->axis.split;
  for (u32 i = 0; i < t->f.naxes; i++) {
    const Axis *a = &t->f.axis[i];
    if (a->reduce && !a->lo && dim_is_const(a->hi) && is_contiguous(t, o, i, each)) return i;
  }
  return FORM_AXES;
}

/* Largest magnitude of all weights; *lo and *hi: minimum and maximum. */
static i64 largest(const Tile *t, i64 *lo, i64 *hi) {
  const Tensor *w = prog_buf(t->p, prog_root(t->p, t->f.in[1 - t->bytes.operand].buf))->data;
  *lo = *hi = 0;
  for (u64 i = 0; w->data && i < w->n; i++) { /* weights that Winograd makes later fit 16 bits */
    i64 x = tensor_get(w, i).i;
    *lo = x < *lo ? x : *lo;
    *hi = x > *hi ? x : *hi;
  }
  return -*lo > *hi ? -*lo : *hi;
}

/* Is every partial sum, including the zero point correction, exact in f32? */
static bool is_exact(const Tile *t, i64 weight) {
  i64 steps = 1;
  for (u32 i = 0; i < t->f.naxes; i++) {
    const Axis *a = &t->f.axis[i];
    if (!a->reduce) continue;
    if (!dim_is_const(a->hi) || a->hi > EXACT) return false;
    steps *= a->hi;
    if (steps > EXACT) return false;
  }
  return weight <= EXACT && 2 * 255 * steps < EXACT && 2 * 255 * steps * weight < EXACT;
}

bool bytes_choose(Tile *t) {
  u32 w = 1 - t->bytes.operand;
  DType dt = prog_buf(t->p, t->f.in[t->bytes.operand].buf)->dt;
  i64 lo, hi, most = largest(t, &lo, &hi), each = dt == DT_i16 ? 2 : 4,
              room = dt == DT_i16 ? 0x8000 : 0x80;
  if (t->use[w] != LU_packed) return false;
  if (t->use[t->bytes.operand] == LU_splat && lo >= -room && hi < room)
    t->axis.quad = quad_axis(t, each);
  if (t->axis.quad < FORM_AXES) {
    t->axis.each = each;
    t->bytes.bias_128 = dt == DT_i8;
    if (t->bytes.bias_128) t->bytes.zero += 128;
  } else if (dt != DT_i16 && is_exact(t, most)) {
    t->bytes.sum_in_f32 = true;
    t->f.acc = DT_f32;
  } else {
    return false;
  }
  return true;
}

/* Converts an f32 sum to the integer it holds: adds MIDDLE and subtracts its bits. */
ExprId bytes_sum(const Tile *t, ExprId acc) {
  Prog *p = t->p;
  ExprId from = ex_const(p, DT_f32, (Scalar){.f = MIDDLE}),
         bits = ex_const(p, DT_i32, (Scalar){.i = MIDDLE_BITS});
  if (t->lanes > 1) {
    from = ex_splat(p, from, t->lanes);
    bits = ex_splat(p, bits, t->lanes);
  }
  return ex_op2(p, OP_sub, ex_bitcast(p, DT_i32, ex_op2(p, OP_add, acc, from)), bits);
}

/* Operand as the multiply-add takes it. Flipping the sign bit maps int8 to 0..255, which adds 128
 * (bias_128). */
ExprId bytes_load(const Tile *t, ExprId load) {
  Prog *p = t->p;
  if (t->axis.quad == FORM_AXES) return ex_cast(p, t->f.acc, load, false);
  Expr x = *prog_expr(p, load);
  ExprId e = ex_quad(p, ex_load_vec(p, x.ref, x.arg, x.narg, (u32)t->axis.each));
  if (!t->bytes.bias_128) return e;
  return ex_op2(p, OP_xor, e, ex_const(p, DT_i32, (Scalar){.i = (i32)0x80808080u}));
}
