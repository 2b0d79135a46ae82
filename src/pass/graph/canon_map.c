/* canon_map.c: canon rules for elementwise idioms: activations, norms, softmax.
 *
 * In: a node. Out: one canonical form. Products have one constant, outermost. The operand closer to
 * the inputs comes first. A quotient by one value per row becomes a product with its reciprocal.
 * Clips are min(max(x, low), high). No rule may turn a finite result into an infinite one or back,
 * so magnitudes of constants are checked.
 */
#include <float.h>
#include <math.h>
#include "pass/graph/canon.h"

enum { LOOK = 8, FROM_DEPTH = 16, FROM_NODES = 64 }; /* limits of searches */

static bool same_type(Graph *g, Val a, Val b) {
  return type_equal(graph_type(g, a), graph_type(g, b));
}

/* The operand of a binary node that is not v; 0: neither is v. */
static Val other_than(const Node *n, Val v) {
  return n->in[0] == v ? n->in[1] : n->in[1] == v ? n->in[0] : 0;
}

/* Is v op(a, b) or, if commutative, op(b, a)? */
static bool is_pair(Graph *g, Val v, Op op, Val a, Val b) {
  const Node *n = graph_def(g, v, op);
  return n && ((n->in[0] == a && n->in[1] == b) || (n->in[0] == b && n->in[1] == a));
}

/* Returns x if v is x + 1 or 1 + x; else 0. */
static Val plus_one(Graph *g, Val v) {
  const Node *n = graph_def(g, v, OP_add);
  Val x, k;
  double one;
  return n && canon_split(g, n, &x, &k) && canon_scalar(g, k, &one) && one == 1 ? x : 0;
}

/* ---- order of operands ---- */

/* Is v computed from x within a few steps? */
static bool comes_from(Graph *g, Val v, Val x, u32 depth, u32 *budget) {
  NodeId def = graph_val(g, v)->def;
  if (v == x) return true;
  if (!def || !depth || !*budget) return false;
  --*budget;
  const Node *n = graph_node(g, def);
  OpKind kind = op_info[n->op].kind;
  if (kind != OK_MAP && kind != OK_REDUCE && kind != OK_VIEW) return false;
  for (u32 i = 0; i < n->nin; i++)
    if (comes_from(g, n->in[i], x, depth - 1, budget)) return true;
  return false;
}

/* Puts the constant second, x before f(x), and parameters before computed values. Unrelated
 * operands stay, because their order is the order of computation. */
bool canon_order(GraphEdit *e, NodeId id) {
  const Canon *k = e->user;
  Graph *g = e->g;
  Node *n = graph_node(g, id);
  Val a = n->in[0], b = n->in[1];
  u32 budget = FROM_NODES;
  if (a == b || graph_const(g, b) || a >= k->n || b >= k->n) return false;
  bool swap = graph_const(g, a) != NULL;
  if (!swap && k->depth[b] < k->depth[a])
    swap = !k->depth[b] || comes_from(g, a, b, FROM_DEPTH, &budget);
  if (!swap) return false;
  n->in[0] = b;
  n->in[1] = a;
  e->changed = true;
  return false;
}

/* add(x, 0) -> x: only the sign of a zero differs */
bool canon_zero(GraphEdit *e, NodeId id) {
  Val x, k;
  if (!canon_split(e->g, graph_node(e->g, id), &x, &k) || !canon_wide_float(e->g, x)) return false;
  return canon_in_range(e->g, k, 0, 0) && edit_swap(e, id, x);
}

/* mul(mul(a, k), b) -> mul(mul(a, b), k): a product has one constant, last, where the next rule can
 * combine it. k must be near 1, so that a * b does not overflow. */
bool canon_const_outward(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  if (!canon_wide_float(g, n.out[0]) || graph_const(g, n.in[0]) || graph_const(g, n.in[1]))
    return false;
  for (u32 i = 0; i < 2; i++) {
    Val a, k, b = n.in[1 - i];
    const Node *m = canon_one_use_def(e, n.in[i], OP_mul);
    if (!m || !canon_split(g, m, &a, &k) || !same_type(g, a, n.out[0])) continue;
    bool row = graph_def(g, b, OP_recip) && !same_type(g, b, n.out[0]);
    double one;
    if (!row && !(canon_scalar(g, k, &one) && canon_in_range(g, k, 1.0 / 64, 64))) continue;
    return edit_swap(e, id, mk_mul(g, mk_mul(g, a, b), k));
  }
  return false;
}

/* max(min(x, hi), lo) -> min(max(x, lo), hi) for lo <= hi */
bool canon_clip(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Val y, lo, x, hi;
  if (!canon_split(g, graph_node(g, id), &y, &lo)) return false;
  const Node *m = canon_one_use_def(e, y, OP_min);
  if (!m || !canon_split(g, m, &x, &hi)) return false;
  double a, b;
  if (!canon_scalar(g, lo, &a) || !canon_scalar(g, hi, &b) || !(a <= b)) return false;
  return edit_swap(e, id, mk_min(g, mk_max(g, x, lo), hi));
}

/* ---- reciprocals and powers ---- */

static bool all_at_least(Graph *g, Val v, double least) {
  const Tensor *t = graph_const(g, v);
  for (u64 i = 0; t && i < t->n; i++) {
    double x = tensor_get(t, i).f;
    if (!(x >= least) || signbit(x)) return false;
  }
  return t != NULL && dtype_is_float(t->dt);
}

/* The maximum of an empty axis is -Inf. */
static bool takes_some(Graph *g, const Node *n) {
  const Type *x = graph_type(g, n->in[0]);
  u32 nlo = 0, nhi = 0;
  const Dim *lo = node_list(n, AT_pad_lo, &nlo), *hi = node_list(n, AT_pad_hi, &nhi);
  for (u32 i = 0; i < nlo; i++)
    if (lo[i]) return false;
  for (u32 i = 0; i < nhi; i++)
    if (hi[i]) return false;
  for (u32 i = 0; i < x->rank; i++) {
    i64 least, most;
    dim_bounds(g->dims, x->dim[i], &least, &most);
    if (least < 1) return false;
  }
  return true;
}

/* Is v >= 0? Integers wrap, so only extents count. zero: accept -0. */
static bool not_negative(Graph *g, Val v, bool zero, u32 look) {
  const Node *n = graph_producer(g, v);
  if (!n || !look) return false;
  if (n->op == OP_const) return all_at_least(g, v, 0);
  if (n->op == OP_dims) return true;
  if (!dtype_is_float(graph_type(g, v)->dt)) return false;
  if (op_is(n->op, OF_NOT_NEGATIVE)) return true;
  if (n->op == OP_max) /* max returns the first of two zeros */
    return all_at_least(g, n->in[1], zero ? 0 : DBL_TRUE_MIN) ||
           (zero && not_negative(g, n->in[1], zero, look - 1));
  if (n->op == OP_mul && n->in[0] == n->in[1]) return true;
  if ((n->op == OP_reduce_max || n->op == OP_pool_max) && !takes_some(g, n)) return false;
  bool keeps = op_is(n->op, OF_KEEPS_SIGN);
  for (u32 i = 0; keeps && i < n->nin; i++) keeps = not_negative(g, n->in[i], zero, look - 1);
  return keeps;
}

bool canon_not_below_0(Graph *g, Val v) {
  return not_negative(g, v, true, LOOK);
}

/* Is v a sum of exponentials of numbers <= 0, one of them 0? Then it is at least 1. Fully masked
 * rows (select) have 1 instead. */
static bool is_partition(Graph *g, Val v) {
  const Node *s = graph_def(g, v, OP_select);
  double one;
  if (s) return canon_scalar(g, s->in[1], &one) && one == 1 && is_partition(g, s->in[2]);
  const Node *sum = graph_def(g, v, OP_reduce_sum);
  const Node *ex = sum ? graph_def(g, sum->in[0], OP_exp) : NULL;
  const Node *d = ex ? graph_def(g, ex->in[0], OP_sub) : NULL;
  const Node *hide = d ? graph_def(g, d->in[1], OP_select) : NULL;
  const Node *top = d ? graph_def(g, hide ? hide->in[2] : d->in[1], OP_reduce_max) : NULL;
  return top && top->in[0] == d->in[0];
}

/* div(x, y) -> mul(x, recip(y)), with one reciprocal per row, if it can neither overflow nor
 * underflow */
bool canon_reciprocal(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  Val y = n.in[1];
  if (!canon_wide_float(g, y) || graph_const(g, y) || same_type(g, y, n.out[0])) return false;
  if (!graph_def(g, y, OP_sqrt) && !is_partition(g, y)) return false;
  return edit_swap(e, id, mk_mul(g, n.in[0], mk_recip(g, y)));
}

/* mul(x, recip(y)) -> div(x, y) if y has all elements of the result */
bool canon_quotient(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  if (!canon_wide_float(g, n.out[0])) return false;
  for (u32 i = 0; i < 2; i++) {
    const Node *r = canon_one_use_def(e, n.in[i], OP_recip);
    if (r && same_type(g, n.in[i], n.out[0]) && !graph_const(g, n.in[1 - i]))
      return edit_swap(e, id, mk_div(g, n.in[1 - i], r->in[0]));
  }
  return false;
}

/* Powers that are products or roots. */
bool canon_power_of(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  Val x = n.in[0];
  double k;
  if (!canon_wide_float(g, x) || !canon_scalar(g, n.in[1], &k)) return false;
  if (k == 2) return edit_swap(e, id, mk_mul(g, x, x));
  if (k == 3) return edit_swap(e, id, mk_mul(g, x, mk_mul(g, x, x)));
  if (k == -1) return edit_swap(e, id, mk_recip(g, x));
  if (fabs(k) != 0.5 || !not_negative(g, x, false, LOOK)) return false;
  Val root = mk_sqrt(g, x);
  return edit_swap(e, id, k < 0 ? mk_recip(g, root) : root);
}

/* mul(sum of n elements, 1 / n) -> div(sum, n), unless exact: then it becomes a product anyway
 * (canon.c) */
bool canon_mean(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Val sum, k;
  double by;
  if (!canon_split(g, graph_node(g, id), &sum, &k) || !canon_wide_float(g, sum)) return false;
  const Node *r = graph_def(g, sum, OP_reduce_sum);
  if (!r || !canon_scalar(g, k, &by)) return false;
  u32 naxes;
  const Dim *axes = node_list(r, AT_axes, &naxes);
  double count = 1;
  for (u32 i = 0; i < naxes; i++) {
    Dim d = graph_type(g, r->in[0])->dim[axes[i]];
    if (!dim_is_const(d)) return false;
    count *= (double)d;
  }
  int exp;
  if (!(fabs(by * count - 1) < 2e-7) || frexp(count, &exp) == 0.5) return false;
  return edit_swap(e, id, mk_div(g, sum, mk_like(g, sum, count)));
}

/* ---- activations ---- */

/* add(mul(f, k), k) -> mul(add(f, 1), k) for powers of two, where it is exact */
bool canon_halves(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Val m, k, f, k2;
  double x, y;
  if (!canon_split(g, graph_node(g, id), &m, &k) || !canon_wide_float(g, m)) return false;
  const Node *n = canon_one_use_def(e, m, OP_mul);
  if (!n || !canon_split(g, n, &f, &k2) || !canon_pow2(g, k)) return false;
  if (!canon_scalar(g, k, &x) || !canon_scalar(g, k2, &y) || x != y || x > 1) return false;
  Val sum = mk_add(g, f, mk_like(g, f, 1));
  return edit_swap(e, id, mk_mul(g, sum, k2));
}

/* add(x, mul(x * x * x, k)) -> mul(x, add(mul(x * x, k), 1)) */
bool canon_cubic(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  if (!canon_wide_float(g, n.out[0])) return false;
  for (u32 i = 0; i < 2; i++) {
    Val x = n.in[i], cube, k;
    double one;
    const Node *m = canon_one_use_def(e, n.in[1 - i], OP_mul);
    if (!m || !canon_split(g, m, &cube, &k) || !canon_scalar(g, k, &one) || fabs(one) > 1) continue;
    const Node *c = canon_one_use_def(e, cube, OP_mul);
    Val square = c ? other_than(c, x) : 0;
    if (!square || !is_pair(g, square, OP_mul, x, x)) continue;
    Val by = mk_like(g, x, 1);
    by = mk_add(g, mk_mul(g, square, k), by);
    return edit_swap(e, id, mk_mul(g, x, by));
  }
  return false;
}

typedef struct Clip {
  Val of; /* clipped value: min(max(of, lo), hi) */
  double lo, hi;
} Clip;

static bool read_clip(GraphEdit *e, Val v, Clip *c) {
  Graph *g = e->g;
  Val inner, k;
  const Node *n = canon_one_use_def(e, v, OP_min);
  if (!n || !canon_split(g, n, &inner, &k) || !canon_scalar(g, k, &c->hi)) return false;
  n = canon_one_use_def(e, inner, OP_max);
  return n && canon_split(g, n, &c->of, &k) && canon_scalar(g, k, &c->lo);
}

/* v = a * x + b */
static bool read_affine(GraphEdit *e, Val v, Val x, double *a, double *b) {
  Graph *g = e->g;
  Val m, k;
  const Node *n = canon_one_use_def(e, v, OP_add);
  *a = 1;
  if (!n || !canon_split(g, n, &m, &k) || !canon_scalar(g, k, b)) return false;
  if (m == x) return true;
  n = canon_one_use_def(e, m, OP_mul);
  if (!n) n = canon_one_use_def(e, m, OP_div);
  if (!n || n->in[0] != x || !canon_scalar(g, n->in[1], a)) return false;
  if (n->op == OP_div) *a = 1 / *a;
  return true;
}

/* Does y, which stands for x / k, give x when multiplied by k? */
static bool comes_back(DType dt, double x, double y, double k) {
  return scalar_round(dt, scalar_round(dt, y) * k) == x;
}

/* x * clip(a x + b) -> mul(mul(x, clip(x + b / a)), a), also with a division by 1 / a at any
 * position; the limits stay exact. */
static bool swish(GraphEdit *e, NodeId id, Val x, Val gate, double by) {
  Graph *g = e->g;
  Clip c;
  double a, b;
  if (!read_clip(e, gate, &c) || !read_affine(e, c.of, x, &a, &b) || !(a > 0)) return false;
  if (a == 1 && by == 1) return false;
  DType dt = graph_type(g, x)->dt;
  a = scalar_round(dt, a);
  if (!comes_back(dt, c.lo, c.lo / a, a) || !comes_back(dt, c.hi, c.hi / a, a)) return false;
  Val t = mk_add(g, x, mk_like(g, x, b / a));
  t = mk_max(g, t, mk_like(g, x, c.lo / a));
  t = mk_min(g, t, mk_like(g, x, c.hi / a));
  Val scale = mk_like(g, x, a * by);
  return edit_swap(e, id, mk_mul(g, mk_mul(g, x, t), scale));
}

bool canon_hard_swish(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  double by;
  if (!canon_wide_float(g, n.out[0])) return false;
  if (n.op == OP_div) { /* div(mul(x, clip), k) */
    if (!canon_scalar(g, n.in[1], &by) || !(fabs(by) >= 1.0 / 64 && fabs(by) <= 64)) return false;
    const Node *m = canon_one_use_def(e, n.in[0], OP_mul);
    return m &&
           (swish(e, id, m->in[0], m->in[1], 1 / by) || swish(e, id, m->in[1], m->in[0], 1 / by));
  }
  for (u32 i = 0; i < 2; i++) { /* mul(x, clip), mul(x, div(clip, k)) */
    Val x = n.in[i], gate = n.in[1 - i];
    const Node *d = canon_one_use_def(e, gate, OP_div);
    by = 1;
    if (d && canon_scalar(g, d->in[1], &by)) gate = d->in[0];
    if (fabs(by) >= 1.0 / 64 && fabs(by) <= 64 && swish(e, id, x, gate, 1 / by)) return true;
  }
  return false;
}

/* tanh(log(add(exp(x), 1))) -> with a softplus that does not overflow; tanh is 1 there */
bool canon_softplus(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *l = canon_one_use_def(e, graph_node(g, id)->in[0], OP_log);
  Val ex = l && canon_one_use(e, l->in[0]) ? plus_one(g, l->in[0]) : 0;
  const Node *n = ex ? canon_one_use_def(e, ex, OP_exp) : NULL;
  if (!n || !canon_wide_float(g, ex)) return false;
  Val x = n->in[0], one = mk_like(g, x, 1), zero = mk_like(g, x, 0);
  Val tail = mk_exp(g, mk_neg(g, mk_abs(g, x)));
  tail = mk_log(g, mk_add(g, tail, one));
  Val plus = mk_add(g, mk_max(g, x, zero), tail);
  return edit_swap(e, id, mk_tanh(g, plus));
}

/* ---- norms and softmax ---- */

/* Is m the mean of x along some axes? */
static bool is_mean_of(Graph *g, Val m, Val x) {
  const Node *n = graph_def(g, m, OP_div);
  if (!n) n = graph_def(g, m, OP_mul);
  const Node *sum = n ? graph_def(g, n->in[0], OP_reduce_sum) : NULL;
  return sum && sum->in[0] == x;
}

/* x * s + (b - mean * s) -> (x - mean) * s + b */
bool canon_affine(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  if (!canon_wide_float(g, n.out[0])) return false;
  for (u32 i = 0; i < 2; i++) {
    const Node *m = canon_one_use_def(e, n.in[i], OP_mul),
               *sub = canon_one_use_def(e, n.in[1 - i], OP_sub);
    const Node *off = sub ? canon_one_use_def(e, sub->in[1], OP_mul) : NULL;
    if (!m || !off) continue;
    for (u32 k = 0; k < 2; k++) {
      Val x = m->in[k], s = m->in[1 - k], mean = other_than(off, s), b = sub->in[0];
      if (!mean || !is_mean_of(g, mean, x)) continue;
      Val y = mk_mul(g, mk_sub(g, x, mean), s);
      return edit_swap(e, id, mk_add(g, y, b));
    }
  }
  return false;
}

/* mul(x, mul(r, w)) -> mul(mul(x, r), w) for a constant w and one r per row */
bool canon_rows(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  if (!canon_wide_float(g, n.out[0])) return false;
  for (u32 i = 0; i < 2; i++) {
    Val x = n.in[1 - i], r, w;
    const Node *m = canon_one_use_def(e, n.in[i], OP_mul);
    if (!m || !canon_split(g, m, &r, &w) || !graph_def(g, r, OP_recip)) continue;
    if (!same_type(g, x, n.out[0]) || same_type(g, r, n.out[0])) continue;
    return edit_swap(e, id, mk_mul(g, mk_mul(g, x, r), w));
  }
  return false;
}

/* sub(x, add(top, log(sum(exp(sub(x, top)))))) -> sub(sub(x, top), log(...)) */
bool canon_log_sum(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  const Node *both = canon_one_use_def(e, n.in[1], OP_add);
  for (u32 i = 0; both && i < 2; i++) {
    Val top = both->in[i], l = both->in[1 - i];
    const Node *lg = graph_def(g, l, OP_log);
    const Node *sum = lg ? graph_def(g, lg->in[0], OP_reduce_sum) : NULL;
    const Node *ex = sum ? graph_def(g, sum->in[0], OP_exp) : NULL;
    const Node *d = ex ? graph_def(g, ex->in[0], OP_sub) : NULL;
    if (!d || d->in[0] != n.in[0] || d->in[1] != top || !graph_def(g, top, OP_reduce_max)) continue;
    return edit_swap(e, id, mk_sub(g, ex->in[0], l));
  }
  return false;
}
