/* arith.c: small Graph constructors shared by layers and front ends. See compose.h. */
#include "front/compose/compose.h"

Val mk_addk(Graph *g, Val x, double k) {
  return mk_add(g, x, mk_like(g, x, k));
}
Val mk_mulk(Graph *g, Val x, double k) {
  return mk_mul(g, x, mk_like(g, x, k));
}

Val mk_clamp(Graph *g, Val x, double lo, double hi) {
  x = mk_max(g, x, mk_like(g, x, lo));
  return mk_min(g, x, mk_like(g, x, hi));
}

Val mk_widen(Graph *g, Val x) {
  DType dt = graph_type(g, x)->dt;
  return dtype_is_float(dt) && dtype_acc(dt) != dt ? mk_cast(g, x, dtype_acc(dt)) : x;
}

Dim val_dim(Graph *g, Val v, u32 axis) {
  const Type *t = graph_type(g, v);
  if (axis >= t->rank)
    fail(g->c, ERR_input, g->loc, "an operand has rank %u, expected axis %u", t->rank, axis);
  return t->dim[axis];
}

Val mk_extent(Graph *g, Dim d, DType dt) {
  return mk_cast(g, mk_dims_as(g, DT_i64, 0, &d, 1), dt);
}

Val mk_expand_tail(Graph *g, Val v, u32 n) {
  const Type *t = graph_type(g, v);
  Dim dim[2 * MAX_RANK];
  if (t->rank + n > MAX_RANK)
    fail(g->c, ERR_input, g->loc, "the rank is %u, expected at most %d", t->rank + n, MAX_RANK);
  for (u32 i = 0; i < t->rank + n; i++) dim[i] = i < t->rank ? t->dim[i] : 1;
  return mk_reshape(g, v, dim, t->rank + n);
}

Val mk_move_axis(Graph *g, Val x, u32 from, u32 to) {
  i64 perm[MAX_RANK];
  for (u32 i = 0, k = 0; i < graph_type(g, x)->rank; i++) {
    if (k == from) k++;
    perm[i] = i == to ? from : k++;
  }
  return mk_transpose(g, x, perm);
}

Val mk_full(Graph *g, Val scalar, const Dim *shape, u32 rank) {
  return mk_broadcast(g, mk_reshape(g, scalar, NULL, 0), shape, rank);
}

/* [.., d, ..] -> [.., 1, d, ..] -> [.., k, d, ..] -> [.., k*d, ..] */
Val mk_repeat(Graph *g, Val x, u32 axis, Dim k) {
  if (k == 1) return x;
  const Type *t = graph_type(g, x);
  Dim wide[MAX_RANK + 1], one[MAX_RANK + 1], out[MAX_RANK];
  if (t->rank == MAX_RANK)
    fail(g->c, ERR_unsupported, g->loc, "repeating an axis of rank %u is not supported", t->rank);
  for (u32 i = 0, j = 0; i <= t->rank; i++) {
    one[i] = i == axis ? 1 : t->dim[j];
    wide[i] = i == axis ? k : t->dim[j++];
  }
  for (u32 i = 0; i < t->rank; i++) out[i] = i == axis ? dim_mul(g->dims, t->dim[i], k) : t->dim[i];
  u32 rank = t->rank;
  Val y = mk_broadcast(g, mk_reshape(g, x, one, rank + 1), wide, rank + 1);
  return mk_reshape(g, y, out, rank);
}

Val mk_count(Graph *g, Val x, const i64 *axes, u32 n) {
  Dim d[MAX_RANK];
  for (u32 i = 0; i < n; i++) d[i] = val_dim(g, x, (u32)axes[i]);
  return mk_extent(g, dim_product(g->dims, d, n), graph_type(g, x)->dt);
}

Val mk_mean(Graph *g, Val x, const i64 *axes, u32 n, bool keep) {
  if (!n) return x;
  Val count = mk_count(g, x, axes, n);
  return mk_div(g, mk_reduce(g, OP_reduce_sum, x, axes, n, keep), count);
}
