/* compose_norm.c: softmax and normalization with population means and variances. See compose.h. */
#include "front/compose/compose.h"

Val compose_softmax(Graph *g, Val x, const i64 *axes, u32 n) {
  Val top = mk_reduce(g, OP_reduce_max, x, axes, n, true);
  Val e = mk_exp(g, mk_sub(g, x, top));
  return mk_div(g, e, mk_reduce(g, OP_reduce_sum, e, axes, n, true));
}

Val compose_log_softmax(Graph *g, Val x, const i64 *axes, u32 n) {
  Val d = mk_sub(g, x, mk_reduce(g, OP_reduce_max, x, axes, n, true));
  Val sum = mk_reduce(g, OP_reduce_sum, mk_exp(g, d), axes, n, true);
  return mk_sub(g, d, mk_log(g, sum));
}

u32 axes_from(Graph *g, Val x, u32 first, i64 *axes) {
  u32 rank = graph_type(g, x)->rank, n = 0;
  for (u32 i = first; i < rank; i++) axes[n++] = i;
  return n;
}

Val compose_rsqrt(Graph *g, Val x, double eps) {
  return mk_recip(g, mk_sqrt(g, mk_addk(g, x, eps)));
}

Val compose_normalize(Graph *g, Val x, const i64 *axes, u32 n, double eps, Val *mean, Val *inv) {
  Val m = mk_mean(g, x, axes, n, true), d = mk_sub(g, x, m);
  Val var = mk_mean(g, mk_mul(g, d, d), axes, n, true);
  Val r = compose_rsqrt(g, var, eps);
  if (mean) *mean = m;
  if (inv) *inv = r;
  return mk_mul(g, d, r);
}

Val compose_rms_norm(Graph *g, Val x, const i64 *axes, u32 n, double eps, Val *inv) {
  Val square = mk_mean(g, mk_mul(g, x, x), axes, n, true), r = compose_rsqrt(g, square, eps);
  if (inv) *inv = r;
  return mk_mul(g, x, r);
}

Val compose_affine(Graph *g, Val x, Val scale, Val bias) {
  Type t = *graph_type(g, x);
  if (graph_type(g, scale)->rank > t.rank || (bias && graph_type(g, bias)->rank > t.rank))
    fail(g->c, ERR_input, g->loc, "scale or bias has a higher rank than the operand");
  x = mk_mul(g, x, mk_cast(g, scale, t.dt));
  return bias ? mk_add(g, x, mk_cast(g, bias, t.dt)) : x;
}

Val compose_per_channel(Graph *g, Val v, Val x) {
  Type t = *graph_type(g, x), have = *graph_type(g, v);
  if (have.rank != 1)
    fail(g->c, ERR_input, g->loc, "a normalization parameter has rank %u, expected 1", have.rank);
  if (t.rank > 1 && dim_is_const(have.dim[0]) && dim_is_const(t.dim[1]) && have.dim[0] != t.dim[1])
    fail(g->c, ERR_input, g->loc,
         "a normalization parameter has %lld elements, expected %lld, one for each channel",
         (long long)have.dim[0], (long long)t.dim[1]);
  return mk_expand_tail(g, mk_cast(g, v, t.dt), t.rank > 2 ? t.rank - 2 : 0);
}

/* x * k + (bias - mean * k). Scale and offset are constants unless the model is being trained. */
Val compose_batch_norm(Graph *g, Val x, Val scale, Val bias, Val mean, Val var, double eps) {
  Val k = mk_mul(g, scale, compose_rsqrt(g, var, eps));
  Val shift = mk_sub(g, bias, mk_mul(g, mean, k));
  return mk_add(g, mk_mul(g, x, k), shift);
}

Val compose_group_norm(Graph *g, Val x, i64 groups, Val scale, Val bias, bool by_group,
                       double eps) {
  Type t = *graph_type(g, x);
  i64 axes[MAX_RANK];
  if (t.rank < 2 || t.rank == MAX_RANK)
    fail(g->c, ERR_input, g->loc, "a group normalization of rank %u is not supported", t.rank);
  if (groups < 1 || (dim_is_const(t.dim[1]) && t.dim[1] % groups))
    fail(g->c, ERR_input, g->loc, "%lld channels are not divisible by %lld groups",
         (long long)t.dim[1], (long long)groups);
  Dim dim[MAX_RANK] = {t.dim[0], groups, dim_div(g->dims, t.dim[1], groups)};
  for (u32 i = 2; i < t.rank; i++) dim[1 + i] = t.dim[i];
  Val y = mk_reshape(g, x, dim, t.rank + 1);
  u32 n = axes_from(g, y, 2, axes);
  y = compose_normalize(g, y, axes, n, eps, NULL, NULL);
  if (!by_group) y = mk_reshape(g, y, t.dim, t.rank);
  y = mk_mul(g, y, compose_per_channel(g, scale, y));
  y = mk_add(g, y, compose_per_channel(g, bias, y));
  return mk_reshape(g, y, t.dim, t.rank);
}
