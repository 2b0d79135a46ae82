/* compose.c: compositions of core ops that several builders share. See builder.h. */
#include "front/onnx/builder.h"

Val on_widen(Build *b, Val x) {
  DType dt = on_dtype(b, x);
  return dtype_is_float(dt) && dtype_acc(dt) != dt ? mk_cast(b->g, x, dtype_acc(dt)) : x;
}

Val on_narrow(Build *b, Val x, DType dt) {
  return mk_cast(b->g, x, dt);
}

Val on_const_like(Build *b, Val x, double k) {
  return mk_like(b->g, x, k);
}

Val on_add(Build *b, Val x, Val y) {
  return mk_map2(b->g, OP_add, x, y);
}
Val on_sub(Build *b, Val x, Val y) {
  return mk_map2(b->g, OP_sub, x, y);
}
Val on_mul(Build *b, Val x, Val y) {
  return mk_map2(b->g, OP_mul, x, y);
}
Val on_div(Build *b, Val x, Val y) {
  return mk_map2(b->g, OP_div, x, y);
}
Val on_addk(Build *b, Val x, double k) {
  return on_add(b, x, mk_like(b->g, x, k));
}
Val on_mulk(Build *b, Val x, double k) {
  return on_mul(b, x, mk_like(b->g, x, k));
}

Val on_clamp(Build *b, Val x, double lo, double hi) {
  x = mk_map2(b->g, OP_max, x, mk_like(b->g, x, lo));
  return mk_map2(b->g, OP_min, x, mk_like(b->g, x, hi));
}

Val on_sigmoid(Build *b, Val x) {
  Val e = mk_map1(b->g, OP_exp, mk_map1(b->g, OP_neg, x));
  return mk_map1(b->g, OP_recip, on_addk(b, e, 1));
}

Val on_softmax(Build *b, Val x, const i64 *axes, u32 n) {
  Val top = mk_reduce(b->g, OP_reduce_max, x, axes, n, true);
  Val e = mk_map1(b->g, OP_exp, on_sub(b, x, top));
  return on_div(b, e, mk_reduce(b->g, OP_reduce_sum, e, axes, n, true));
}

Val on_count(Build *b, Val x, const i64 *axes, u32 n) {
  Dim d[MAX_RANK];
  for (u32 i = 0; i < n; i++) d[i] = on_dim(b, x, (u32)axes[i]);
  return on_extent(b, dim_product(b->ds, d, n), on_dtype(b, x));
}

Val on_extent(Build *b, Dim d, DType dt) {
  return mk_cast(b->g, mk_dims_as(b->g, DT_i64, 0, &d, 1), dt);
}

Val on_mean(Build *b, Val x, const i64 *axes, u32 n, bool keep) {
  if (!n) return x;
  return on_div(b, mk_reduce(b->g, OP_reduce_sum, x, axes, n, keep), on_count(b, x, axes, n));
}

Val on_normalize(Build *b, Val x, const i64 *axes, u32 n, double eps, Val *mean, Val *inv) {
  Val m = on_mean(b, x, axes, n, true), d = on_sub(b, x, m);
  Val var = on_mean(b, on_mul(b, d, d), axes, n, true);
  Val r = mk_map1(b->g, OP_recip, mk_map1(b->g, OP_sqrt, on_addk(b, var, eps)));
  if (mean) *mean = m;
  if (inv) *inv = r;
  return on_mul(b, d, r);
}

Val on_expand_tail(Build *b, Val v, u32 tail) {
  const Type *t = on_type(b, v);
  Dim dim[2 * MAX_RANK];
  if (t->rank + tail > MAX_RANK) on_bad(b, "rank exceeds %d", MAX_RANK);
  for (u32 i = 0; i < t->rank + tail; i++) dim[i] = i < t->rank ? t->dim[i] : 1;
  return mk_reshape(b->g, v, dim, t->rank + tail);
}

Val on_full(Build *b, Val scalar, const Dim *shape, u32 rank) {
  return mk_broadcast(b->g, mk_reshape(b->g, scalar, NULL, 0), shape, rank);
}
