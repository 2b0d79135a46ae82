/* tile_int.c: sums of products of bytes, or of i16, with constant weights.
 *
 * In: a form over i32, one operand of which is bytes or i16 less a zero point (graph_narrow), the
 * other a constant. Out: the form over these themselves. The zero point is taken off once: the sums
 * begin at minus the zero point times the sum of the weights. That holds where every product takes
 * part, so the border around the bytes must hold the zero point; a form whose operand still leaves
 * its dimension is left alone. Three ways to sum, which all give the integers of the form, to the
 * bit, in any order; everything else is i32 arithmetic:
 *
 *   dot4: the weights fit 8 bits and one operand does not move along the lanes: four points of a
 *   folded axis along which the bytes are contiguous are one step.
 *
 *   dot2: the same of i16 and weights that fit 16 bits, two points at a time.
 *
 *   floats: all sums of products of bytes stay below 2^22, where f32 counts exactly: depthwise
 *   convolutions, short sums.
 */
#include "pass/kernel/tile.h"

#define EXACT       ((i64)1 << 22) /* f32 holds every integer up to here, also added to MIDDLE */
#define MIDDLE      0x1.8p23 /* floats around it are 1 apart: their bits count like integers */
#define MIDDLE_BITS 0x4b400000

bool bytes_begin(Tile *t) {
  Form *f = &t->f;
  Lower *l = t->l;
  if (!f->reduce || f->acc != DT_i32 || f->dt != DT_i32 || f->with != OP_add) return false;
  if (f->body != FB_op || f->op != OP_mul || f->nin != 2) return false;
  for (u32 i = 0; i < f->naxes; i++) /* a part sums up fewer weights, so less is taken off */
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

/* Does the axis step by one through memory in operand o, where groups stay inside? */
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

/* The folded axis of which so many points are one step; FORM_AXES: there is none. */
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

/* The largest of all weights, without sign; *lo and *hi: the least and the greatest. */
static i64 largest(const Tile *t, i64 *lo, i64 *hi) {
  const Tensor *w = prog_buf(t->p, prog_root(t->p, t->f.in[1 - t->bytes.operand].buf))->data;
  *lo = *hi = 0;
  for (u64 i = 0; w->data && i < w->n; i++) { /* Winograd's, made later, fit 16 bits */
    i64 x = tensor_get(w, i).i;
    *lo = x < *lo ? x : *lo;
    *hi = x > *hi ? x : *hi;
  }
  return -*lo > *hi ? -*lo : *hi;
}

/* Does every partial sum, begun with the zero points, stay in what f32 counts? */
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

/* The integer that a sum in f32 is: behind MIDDLE its bits, less those of MIDDLE. */
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

/* Bytes as the sum takes them. Signed ones become 0 to 255 by turning their highest bit, which adds
 * 128 (bias_128). */
ExprId bytes_load(const Tile *t, ExprId load) {
  Prog *p = t->p;
  if (t->axis.quad == FORM_AXES) return ex_cast(p, t->f.acc, load, false);
  Expr x = *prog_expr(p, load);
  ExprId e = ex_quad(p, ex_load_vec(p, x.ref, x.arg, x.narg, (u32)t->axis.each));
  if (!t->bytes.bias_128) return e;
  return ex_op2(p, OP_xor, e, ex_const(p, DT_i32, (Scalar){.i = (i32)0x80808080u}));
}
