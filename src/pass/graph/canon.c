/* canon.c: rewrites exporter idioms into one canonical form; may change the last bits of floats.
 *
 * In: a graph. Out: the same function over the reals with fewer operations at run time. Scales of
 * channels go into convolution weights, which covers batch normalization. Constants are combined
 * across additions and multiplications. Zero padding moves into the convolution or pool after it.
 * Pointwise convolutions, with the maps after them, run over one long axis.
 *
 * Only values with one use are changed, so nothing is computed twice. Float rules do not apply to
 * integers. Every node is visited once; g->again asks for another round after fold, simplify and
 * dce (see pipeline.c).
 *
 * needs: constants folded  keeps: types  breaks: last bits of floats (sums and products are
 * reassociated)
 */
#include <math.h>
#include <string.h>
#include "pass/graph/canon.h"

bool canon_one_use(const GraphEdit *e, Val v) {
  const Canon *k = e->user;
  return v < k->n && k->uses[v] == 1;
}

const Node *canon_one_use_def(GraphEdit *e, Val v, Op op) {
  return canon_one_use(e, v) ? graph_def(e->g, v, op) : NULL;
}

bool canon_split(Graph *g, const Node *n, Val *x, Val *k) {
  for (u32 i = 0; i < 2; i++)
    if (graph_const(g, n->in[i]) && !graph_const(g, n->in[1 - i])) {
      *k = n->in[i];
      *x = n->in[1 - i];
      return true;
    }
  return false;
}

bool canon_own_const(const GraphEdit *e, Val v) {
  return graph_const(e->g, v) && canon_one_use(e, v);
}

Val canon_eval_const(Graph *g, Val v) {
  NodeId def = graph_val(g, v)->def;
  Tensor *in[3] = {0}, *out = NULL;
  if (!def || graph_const(g, v)) return v;
  u32 nin = graph_node(g, def)->nin;
  if (!node_folds(graph_node(g, def)) || graph_node(g, def)->nout != 1) return v;
  for (u32 i = 0; i < nin && nin <= 3; i++) {
    Val x = canon_eval_const(g, graph_node(g, def)->in[i]);
    in[i] = (Tensor *)(uintptr_t)graph_const(g, x);
    if (!in[i]) return v;
  }
  if (nin > 3 || !type_is_static(graph_type(g, v))) return v;
  ref_node(g, def, in, &out, &g->c->work);
  return mk_const(g, out);
}

Val canon_scaled(Graph *g, Val w, Val by) {
  const Tensor *t = graph_const(g, w), *k = graph_const(g, canon_eval_const(g, by));
  if (!k || k->rank > t->rank) return 0;
  i64 step[MAX_RANK] = {0}, at[MAX_RANK] = {0}, all = 1;
  for (u32 i = k->rank; i--;) {
    step[t->rank - k->rank + i] = k->dim[i] == 1 ? 0 : all;
    all *= k->dim[i];
  }
  Tensor *out = tensor_new(&g->c->work, t->dt, t->dim, t->rank);
  for (u64 i = 0, pos = 0; i < t->n; i++) {
    if (t->dt == DT_f32) {
      float x, y;
      memcpy(&x, (const u8 *)t->data + 4 * i, 4);
      memcpy(&y, (const u8 *)k->data + 4 * pos, 4);
      x *= y;
      memcpy((u8 *)(uintptr_t)out->data + 4 * i, &x, 4);
    } else {
      double x = tensor_get(t, i).f * tensor_get(k, pos).f;
      tensor_set(out, i, (Scalar){.f = scalar_round(t->dt, x)});
    }
    for (u32 d = t->rank; d--;) {
      pos += (u64)step[d];
      if (++at[d] < t->dim[d]) break;
      pos -= (u64)(step[d] * t->dim[d]);
      at[d] = 0;
    }
  }
  return mk_const(g, out);
}

bool canon_wide_float(Graph *g, Val v) {
  return dtype_is_full_float(graph_type(g, v)->dt);
}

bool canon_scalar(Graph *g, Val v, double *x) {
  const Tensor *t = graph_const(g, v);
  if (!t || t->n != 1 || !dtype_is_float(t->dt)) return false;
  *x = tensor_get(t, 0).f;
  return true;
}

bool canon_in_range(Graph *g, Val v, double lo, double hi) {
  const Tensor *t = graph_const(g, v);
  for (u64 i = 0; t && i < t->n; i++) {
    double x = fabs(tensor_get(t, i).f);
    if (!(x >= lo && x <= hi)) return false;
  }
  return t != NULL;
}

/* Returns k as [channels, 1, ...] for weights, if it varies only along axis 1. */
static Val per_channel(Graph *g, Val k, u32 rank, Dim channels) {
  const Type *t = graph_type(g, k);
  Dim dim[MAX_RANK];
  for (u32 i = 0; i < t->rank; i++) {
    u32 axis = rank - t->rank + i;
    if (t->rank > rank || (axis != 1 && t->dim[i] != 1)) return 0;
  }
  for (u32 i = 0; i < rank; i++) dim[i] = 1;
  dim[0] = channels;
  bool wide = t->rank + 1 >= rank && t->dim[t->rank + 1 - rank] == channels;
  if (wide) return mk_reshape(g, k, dim, rank);
  return type_count(g->dims, t) == 1 ? mk_reshape(g, k, NULL, 0) : 0;
}

/* mul(conv(x, w), k) -> conv(x, w * k) */
static bool scale_into_conv(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Val x, k;
  if (!canon_split(g, graph_node(g, id), &x, &k) || !canon_wide_float(g, x)) return false;
  const Node *conv = canon_one_use_def(e, x, OP_conv);
  if (!conv || !canon_own_const(e, conv->in[1])) return false;
  Node c = *conv;
  const Type *w = graph_type(g, c.in[1]);
  Val scale = per_channel(g, k, w->rank, w->dim[0]);
  if (!scale || !canon_in_range(g, k, 0, 1e15)) return false;
  Val in[2] = {c.in[0], canon_scaled(g, c.in[1], scale)};
  if (!in[1]) return false;
  g->loc = c.loc;
  return edit_swap(e, id, mk_node(g, OP_conv, in, 2, c.attr, c.nattr));
}

/* conv(mul(x, k), w) -> conv(x, w * k); conv(add(x, b), w) -> add(conv(x, w), sums of w * b)
 * without padding */
static bool scale_of_input(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  NodeId def = graph_val(g, n.in[0])->def;
  Type w = *graph_type(g, n.in[1]);
  u32 ns;
  Val x, k;
  if (!def || !canon_one_use(e, n.in[0]) || !canon_own_const(e, n.in[1]) ||
      !canon_wide_float(g, n.in[1]))
    return false;
  const Node *m = graph_node(g, def);
  if ((m->op != OP_mul && m->op != OP_add) || node_int(&n, AT_group, 1) != 1) return false;
  if (!canon_split(g, m, &x, &k) || !canon_in_range(g, k, 0, 1e15)) return false;
  Op op = m->op;
  const Dim *lo = node_list(&n, AT_pad_lo, &ns), *hi = node_list(&n, AT_pad_hi, &ns);
  for (u32 i = 0; i < ns; i++)
    if (op == OP_add && (lo[i] || hi[i] || node_attr(&n, AT_input_dilation))) return false;
  if (!type_equal(graph_type(g, x), graph_type(g, n.in[0]))) return false;
  Val by = per_channel(g, k, w.rank, w.dim[1]); /* [channels, 1, ...] */
  if (!by) return false;
  if (graph_type(g, by)->rank) {
    Dim dim[MAX_RANK];
    for (u32 i = 1; i < w.rank; i++) dim[i - 1] = i == 1 ? w.dim[1] : 1;
    by = mk_reshape(g, by, dim, w.rank - 1);
  }
  Val scaled = canon_scaled(g, n.in[1], by), in[2] = {x, op == OP_mul ? scaled : n.in[1]};
  if (!scaled) return false;
  Val v = mk_node(g, OP_conv, in, 2, n.attr, n.nattr);
  if (op == OP_mul) return edit_swap(e, id, v);
  i64 axes[MAX_RANK];
  Dim dim[MAX_RANK];
  for (u32 i = 1; i < w.rank; i++) axes[i - 1] = i;
  for (u32 i = 0; i + 1 < w.rank; i++) dim[i] = i ? 1 : w.dim[0];
  Val sum = canon_eval_const(g, mk_reduce(g, OP_reduce_sum, scaled, axes, w.rank - 1, false));
  return edit_swap(e, id, mk_add(g, v, mk_reshape(g, sum, dim, w.rank - 1)));
}

/* mul(add(x, a), k) -> add(mul(x, k), a * k): scales move towards the convolution. */
static bool scale_before_bias(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Val sum, k, x, a;
  if (!canon_split(g, graph_node(g, id), &sum, &k) || !canon_wide_float(g, sum)) return false;
  const Node *n = canon_one_use_def(e, sum, OP_add);
  if (!n || !canon_split(g, n, &x, &a)) return false;
  NodeId def = graph_val(g, x)->def;
  if (!def || graph_node(g, def)->op != OP_conv || !canon_one_use(e, x)) return false;
  if (!canon_own_const(e, graph_node(g, def)->in[1])) return false; /* nothing would be gained */
  Val bias = mk_mul(g, a, k);
  return edit_swap(e, id, mk_add(g, mk_mul(g, x, k), bias));
}

Val canon_fold(Graph *g, Op op, Val a, Val b) {
  Val v = mk_map2(g, op, a, b);
  NodeId def = graph_val(g, v)->def;
  Tensor *in[2] = {(Tensor *)graph_const(g, a), (Tensor *)graph_const(g, b)}, *out = NULL;
  ref_node(g, def, in, &out, &g->c->work);
  return mk_const(g, out);
}

/* May x + a + b become x + (a + b)? Not if a and b cancel, an idiom for rounding. */
static bool adds_up(Graph *g, Val a, Val b, Val sum) {
  const Tensor *s = graph_const(g, sum), *x = graph_const(g, a), *y = graph_const(g, b);
  double most = 0, least = INFINITY;
  if (!s || !x || !y) return false;
  for (u64 i = 0; i < x->n; i++) most = fmax(most, fabs(tensor_get(x, i).f));
  for (u64 i = 0; i < y->n; i++) most = fmax(most, fabs(tensor_get(y, i).f));
  for (u64 i = 0; i < s->n; i++) least = fmin(least, fabs(tensor_get(s, i).f));
  return most < 1e4 ||
         least >=
             most / 4; /* below 1e4 the sum loses no more precision than any sum of this size */
}

/* op(op(x, a), b) -> op(x, op(a, b)) for constants a and b */
static bool merge_constants(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  Op op = n->op;
  Val y, b, x, a;
  if (!canon_split(g, n, &y, &b) || !canon_wide_float(g, y)) return false;
  const Node *inner = canon_one_use_def(e, y, op);
  if (!inner || !canon_split(g, inner, &x, &a)) return false;
  if (op == OP_mul && (!canon_in_range(g, a, 1e-15, 1e15) || !canon_in_range(g, b, 1e-15, 1e15)))
    return false;
  Val both = canon_fold(g, op, a, b);
  if (!both || (op == OP_add && !adds_up(g, a, b, both))) return false;
  return edit_swap(e, id, mk_map2(g, op, x, both));
}

bool canon_pow2(Graph *g, Val v) {
  const Tensor *t = graph_const(g, v);
  for (u64 i = 0; t && i < t->n; i++) {
    int exp;
    double m = fabs(frexp(tensor_get(t, i).f, &exp));
    if (m != 0.5 || exp < -60 || exp > 60) return false;
  }
  return t != NULL;
}

/* sub(x, a) -> add(x, -a); div(x, a) -> mul(x, 1 / a) if exact: floor(x / 3) must not change */
static bool to_commutative(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  Val x = n->in[0], a = n->in[1];
  if (!graph_const(g, a) || graph_const(g, x) || !canon_wide_float(g, x)) return false;
  if (n->op == OP_sub) return edit_swap(e, id, mk_add(g, x, mk_neg(g, a)));
  if (!canon_pow2(g, a)) return false;
  return edit_swap(e, id, mk_mul(g, x, mk_recip(g, a)));
}

/* div(x, k) -> mul(x, 1 / k) if the result tolerates an error of one ulp */
static bool tolerant_division(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  const Canon *k = e->user;
  double x;
  if (n.out[0] >= k->n || !k->ulp_tolerant[n.out[0]] || !canon_wide_float(g, n.out[0]))
    return false;
  if (!canon_scalar(g, n.in[1], &x) || !canon_in_range(g, n.in[1], 1e-6, 1e6)) return false;
  if (graph_def(g, n.in[0], OP_reduce_sum)) return false; /* a mean */
  return edit_swap(e, id, mk_mul(g, n.in[0], mk_like(g, n.in[0], 1 / x)));
}

/* max(max(x, a), b) -> max(x, max(a, b)); the same for min */
static bool merge_bounds(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  Val y, b, x, a;
  if (!canon_split(g, &n, &y, &b)) return false;
  const Node *inner = canon_one_use_def(e, y, n.op);
  if (!inner || !canon_split(g, inner, &x, &a)) return false;
  return edit_swap(e, id, mk_map2(g, n.op, x, canon_fold(g, n.op, a, b)));
}

/* ---- padding ---- */

bool canon_windows_see(const Node *pool, const Dim *lo, const Dim *hi) {
  u32 ns;
  const Dim *window = node_list(pool, AT_window, &ns), *dil = node_list(pool, AT_dilation, &ns);
  for (u32 i = 0; i < ns; i++)
    if (dil[i] != 1 || lo[i] >= window[i] || hi[i] >= window[i]) return false;
  return true;
}

/* Is the padding value the one that the window operator pads with itself? */
static bool pads_like(Graph *g, const Node *pad, Op op) {
  const Tensor *t = graph_const(g, pad->in[1]);
  if (!t) return false;
  Scalar x = tensor_get(t, 0), lo, hi;
  dtype_limits(t->dt, &lo, &hi);
  bool flt = dtype_is_float(t->dt);
  if (op == OP_pool_max) return flt ? x.f == lo.f : x.i == lo.i;
  return flt ? x.f == 0 : x.i == 0;
}

/* Zeros do not change the maximum of non-negative values. */
static bool zeros_are_harmless(Graph *g, const Node *pad, const Node *pool, const Dim *lo,
                               const Dim *hi) {
  double x;
  if (pool->op != OP_pool_max || !canon_scalar(g, pad->in[1], &x) || x != 0) return false;
  return canon_windows_see(pool, lo, hi) && canon_not_below_0(g, pad->in[0]);
}

/* Can the convolution n dilate its input x along axis i, its spatial axis k? */
static bool can_dilate_input(Graph *g, const Node *n, const Type *x, u32 i, u32 k) {
  u32 ns;
  return n->op == OP_conv && dim_is_const(x->dim[i]) && x->dim[i] > 0 &&
         node_list(n, AT_stride, &ns)[k] == 1 && node_list(n, AT_dilation, &ns)[k] == 1 &&
         graph_const(g, n->in[1]);
}

static bool pad_into_window(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  const Node *pad = canon_one_use_def(e, n.in[0], OP_pad);
  if (!pad || node_attr(&n, AT_input_dilation)) return false;
  u32 rank, ns;
  const Dim *lo = node_list(pad, AT_lo, &rank), *hi = node_list(pad, AT_hi, &rank);
  const Dim *mid = node_list(pad, AT_interior, &rank);
  const Dim *plo = node_list(&n, AT_pad_lo, &ns), *phi = node_list(&n, AT_pad_hi, &ns);
  Dim nlo[MAX_RANK], nhi[MAX_RANK], dilate[MAX_RANK];
  i64 phases = 1;
  for (u32 i = 0; i < rank; i++) {
    bool spatial = i >= rank - ns;
    if (!spatial && (mid[i] || lo[i] || hi[i])) return false;
    if (!spatial) continue;
    u32 k = i - (rank - ns);
    if (mid[i] && (mid[i] >= MOST_INPUT_DILATION ||
                   !can_dilate_input(g, &n, graph_type(g, pad->in[0]), i, k)))
      return false;
    dilate[k] = mid[i] + 1;
    phases *= dilate[k];
    if (phases > MOST_INPUT_DILATION) return false;
    if (!dim_is_const(lo[i]) || !dim_is_const(hi[i]) || lo[i] > INT16_MAX || hi[i] > INT16_MAX)
      return false;
    nlo[k] = plo[k] + lo[i];
    nhi[k] = phi[k] + hi[i];
  }
  if (!pads_like(g, pad, n.op) && !zeros_are_harmless(g, pad, &n, nlo, nhi)) return false;
  Attr at[8];
  for (u32 i = 0; i < n.nattr; i++) {
    at[i] = n.attr[i];
    if (at[i].key == AT_pad_lo) at[i].u.list = nlo;
    if (at[i].key == AT_pad_hi) at[i].u.list = nhi;
  }
  if (phases > 1)
    at[n.nattr++] = (Attr){.key = AT_input_dilation, .kind = AK_list, .n = ns, .u.list = dilate};
  Val in[2] = {pad->in[0], n.nin > 1 ? n.in[1] : 0};
  return edit_swap(e, id, mk_node(g, n.op, in, n.nin, at, n.nattr));
}

/* ---- pointwise convolutions over one long axis ---- */

/* Reshapes v. For int8 minus a zero point it reshapes the bytes, so that users still match the
 * pattern. 0: v is neither row-major memory nor int8. */
static Val reshaped(Graph *g, Val v, const Dim *dim, u32 rank) {
  i64 zero;
  if (canon_wide_float(g, v)) return mk_reshape(g, v, dim, rank);
  Val q = graph_bytes(g, v, &zero);
  if (!q) return 0;
  Val x = mk_cast(g, mk_reshape(g, q, dim, rank), DT_i32);
  return zero ? mk_sub(g, x, mk_like(g, x, (double)zero)) : x;
}

/* conv(x[N,C,H,W], w[M,C,1,1]) -> reshape(conv(x[N,C,H*W], w[M,C,1])): rows as long as the image.
 */
static bool flatten_pointwise(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  Type x = *graph_type(g, n.in[0]), w = *graph_type(g, n.in[1]), out = *graph_type(g, n.out[0]);
  u32 ns = x.rank - 2, count;
  const Dim *stride = node_list(&n, AT_stride, &count), *lo = node_list(&n, AT_pad_lo, &count);
  const Dim *hi = node_list(&n, AT_pad_hi, &count);
  if (ns < 2 || ((const Canon *)e->user)->images || node_attr(&n, AT_input_dilation)) return false;
  for (u32 i = 0; i < ns; i++)
    if (w.dim[2 + i] != 1 || stride[i] != 1 || lo[i] || hi[i]) return false;
  Dim area = dim_product(g->dims, x.dim + 2, ns), one = 1, zero = 0;
  Dim xs[3] = {x.dim[0], x.dim[1], area}, ws[3] = {w.dim[0], w.dim[1], 1};
  Val flat = reshaped(g, n.in[0], xs, 3);
  if (!flat) return false;
  Val weight = mk_reshape(g, n.in[1], ws, 3);
  Val v = mk_conv(g, flat, weight, node_int(&n, AT_group, 1), &one, &one, &zero, &zero);
  return edit_swap(e, id, mk_reshape(g, v, out.dim, out.rank));
}

/* Operand v of a map before the reshape from `from` to `to`, which splits the last axis of `from`;
 * 0: does not fit. */
static Val before_reshape(Graph *g, Val v, const Type *from, const Type *to) {
  Type t = *graph_type(g, v);
  u32 kept = from->rank - 1,
      merged = to->rank - kept; /* axes kept .. of `to` are the last axis of `from` */
  Dim dim[MAX_RANK];
  if (t.rank > to->rank) return 0;
  if (t.rank < merged) { /* broadcast over all but some of the merged axes */
    if (type_count(g->dims, &t) != 1) return 0;
    return mk_reshape(g, v, NULL, 0);
  }
  u32 lead = t.rank - merged;
  bool all = true, none = true;
  for (u32 i = 0; i < merged; i++) {
    all = all && t.dim[lead + i] == to->dim[kept + i];
    none = none && t.dim[lead + i] == 1;
  }
  if (!all && !none) return 0;
  for (u32 i = 0; i < lead; i++) dim[i] = t.dim[i];
  dim[lead] = all ? from->dim[kept] : 1;
  return mk_reshape(g, v, dim, lead + 1);
}

/* map(reshape(a), b...) -> reshape(map(a, b'...)) if the reshape split the last axis: maps after a
 * flattened convolution stay flat. Not after int8 that is widened: a reshape needs its operand in
 * memory, which should be the int8 value. */
static bool reshape_after_map(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  Val in[3];
  const Node *r = NULL;
  if (node_is_decode(g, &n) || node_is_widening(g, &n)) return false;
  for (u32 i = 0; i < n.nin && !r; i++) r = graph_def(g, n.in[i], OP_reshape);
  if (!r) return false;
  Type from = *graph_type(g, r->in[0]), to = *graph_type(g, r->out[0]),
       out = *graph_type(g, n.out[0]);
  if (from.rank < 2 || to.rank <= from.rank || out.rank != to.rank) return false;
  if (memcmp(from.dim, to.dim, (from.rank - 1) * sizeof(Dim)) ||
      memcmp(out.dim, to.dim, to.rank * sizeof(Dim)))
    return false;
  NodeId def = graph_val(g, r->in[0])->def;
  if (!def || (graph_node(g, def)->op != OP_conv && graph_node(g, def)->op >= OP_SCALARS))
    return false;
  for (u32 i = 0; i < n.nin; i++) {
    const Node *ri = graph_def(g, n.in[i], OP_reshape);
    bool same =
        ri && type_equal(graph_type(g, ri->in[0]), &(Type){TY_tensor, graph_type(g, ri->in[0])->dt,
                                                           from.rank, from.dim, NULL});
    in[i] = same ? ri->in[0] : before_reshape(g, n.in[i], &from, &to);
    if (!in[i]) return false;
  }
  Val v = mk_node(g, n.op, in, n.nin, n.attr, n.nattr);
  return edit_swap(e, id, mk_reshape(g, v, out.dim, out.rank));
}

enum { MOST = 10 };

/* Rules by operator, in the order in which they are tried. */
static CanonRule *const rules[OP_COUNT][MOST] = {
    [OP_mul] = {scale_into_conv, scale_before_bias, canon_scale_in, merge_constants, canon_mean,
                canon_hard_swish, canon_const_outward, canon_rows, canon_quotient, canon_order},
    [OP_add] = {canon_zero, merge_constants, canon_halves, canon_cubic, canon_affine, canon_order},
    [OP_sub] = {to_commutative, canon_log_sum},
    [OP_div] = {canon_hard_swish, to_commutative, tolerant_division, canon_reciprocal},
    [OP_max] = {merge_bounds, canon_clip, canon_order},
    [OP_min] = {merge_bounds, canon_order},
    [OP_pow] = {canon_power_of},
    [OP_tanh] = {canon_softplus},
    [OP_conv] = {pad_into_window, scale_of_input, flatten_pointwise},
    [OP_pool_max] = {pad_into_window, canon_global_pool},
    [OP_pool_sum] = {pad_into_window, canon_global_pool},
    [OP_contract] = {canon_scale_out, canon_input, canon_absorb, canon_pointwise},
    [OP_slice] = {canon_slice_up},
    [OP_loop] = {canon_loop},
    [OP_transpose] = {canon_absorb_result, canon_transpose_up},
    [OP_reshape] = {canon_unflatten, canon_reshape_up, canon_keep},
    [OP_reduce_sum] = {canon_reduce_view},
    [OP_reduce_prod] = {canon_reduce_view},
    [OP_reduce_max] = {canon_reduce_view},
    [OP_reduce_min] = {canon_reduce_view},
};

/* Users of a dropped node become users of its replacement, if that is an older value. */
static void pass_users(const GraphEdit *e, NodeId id) {
  const Canon *k = e->user;
  const Node *n = graph_node(e->g, id);
  for (u32 i = 0; i < n->nout; i++) {
    Val by = edit_current(e, n->out[i]);
    if (by == n->out[i] || by >= k->n) continue;
    k->uses[by] += k->uses[n->out[i]];
    for (u32 j = 0; j < n->nin; j++) k->uses[by] -= n->in[j] == by;
  }
}

static bool visit(GraphEdit *e, NodeId id) {
  Op op = graph_node(e->g, id)->op;
  bool done = false;
  for (u32 i = 0; i < MOST && rules[op][i] && !done; i++) done = rules[op][i](e, id);
  done = done || (op < OP_SCALARS && reshape_after_map(e, id));
  if (done) pass_users(e, id);
  return !done;
}

/* ---- facts about values at the start of a round ---- */

static bool harden(Canon *k, Val v) {
  bool was = k->ulp_tolerant[v];
  k->ulp_tolerant[v] = false;
  return was;
}

/* Returns true if a value turned out not to be tolerant. */
static bool visit_region(Graph *g, Canon *k, RegionId b) {
  const GraphRegion *x = &g->region.at[b];
  bool news = false;
  for (u32 i = 0; i < x->node.n; i++) {
    const Node *n = graph_node(g, x->node.at[i]);
    u32 most = 0;
    for (u32 j = 0; j < n->nin; j++)
      if (k->depth[n->in[j]] > most) most = k->depth[n->in[j]];
    for (u32 j = 0; j < n->nout; j++) k->depth[n->out[j]] = most + (n->op != OP_const);
  }
  for (u32 i = 0; i < x->ret.n; i++) news |= harden(k, x->ret.at[i]);
  for (u32 i = x->node.n; i--;) {
    const Node *n = graph_node(g, x->node.at[i]);
    bool tolerant =
        op_is(n->op, OF_SMOOTH) || (op_is(n->op, OF_CONTINUOUS) && k->ulp_tolerant[n->out[0]]);
    for (u32 j = 0; j < n->nin; j++)
      if (!tolerant || (n->op == OP_select && !j)) news |= harden(k, n->in[j]);
  }
  return news;
}

static Canon survey(Graph *g) {
  Arena *a = &g->c->scratch;
  Canon k = {.n = g->val.n};
  k.uses = NEWS(a, u32, k.n);
  k.depth = NEWS(a, u32, k.n);
  k.ulp_tolerant = NEWS(a, bool, k.n);
  graph_use_counts(g, k.uses);
  for (u32 v = 0; v < k.n; v++) k.ulp_tolerant[v] = true;
  for (bool news = true; news;) { /* repeat, because a region may use values of an enclosing one */
    news = false;
    for (RegionId b = 1; b < g->region.n; b++) news |= visit_region(g, &k, b);
    news = news && g->region.n > 2;
  }
  canon_find_slices(g, &k);
  return k;
}

void canon(PassCtx *u) {
  Graph *g = u->g;
  Canon k = survey(g);
  k.images = u->target->lanes > 1 || u->ram;
  g->again = edit_run(g, visit, &k);
}
