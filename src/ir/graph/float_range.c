/* float_range.c: bounds of the elements of a float value, and whether they may be NaN.
 *
 * In: a value. Out: bounds that hold in every run, NaN excluded. Method: interval arithmetic
 * backwards over the defining nodes; unknown operators are unbounded. For example, coordinates
 * clamped to an image bound the sizes computed from them. Rounding is monotonic: it can take a
 * result past a bound only if the bound is not representable in the type. */
#include "ir/graph/graph.h"

#include <math.h>

enum { REACH_ELEMENTS = 1 << 16 }; /* elements of a constant that are examined */

/* Requested bounds: a clamp needs no analysis of its operand, except for NaN. */
typedef enum Ends { END_lo = 1, END_hi = 2, END_both = 3, END_nan = 4, END_all = 7 } Ends;

static const FloatRange nowhere = {-INFINITY, INFINITY, true};

/* Widens bounds to values of the type: slightly more than the bounds, which are rounded themselves,
 * then rounded to the type, possibly to infinity. */
FloatRange bounds_outward(DType dt, FloatRange r) {
  const double part = dt == DT_f64 ? 0x1p-52 : 0x1p-23;
  if (scalar_round(dt, r.lo) != r.lo) r.lo -= fabs(r.lo) * part;
  if (scalar_round(dt, r.hi) != r.hi) r.hi += fabs(r.hi) * part;
  if (dt == DT_f8e8m0) r = (FloatRange){0, fmax(fabs(r.lo), fabs(r.hi)), r.nan}; /* unsigned */
  double lo = dt == DT_f8e8m0 ? 0 : scalar_round(dt, r.lo), hi = scalar_round(dt, r.hi);
  if (isnan(lo) || isnan(hi)) return nowhere;
  return (FloatRange){fmin(lo, r.lo), fmax(hi, r.hi), r.nan};
}

/* The nearest double not below x, since conversion may round down; the maximum means unbounded. */
static double above(i64 x) {
  double d = (double)x;
  if (x == INT64_MAX) return INFINITY;
  return d < 0x1p63 && (i64)d < x ? nextafter(d, INFINITY) : d;
}

static double below(i64 x) {
  double d = (double)x;
  if (x == INT64_MIN) return -INFINITY;
  return d >= 0x1p63 || (i64)d > x ? nextafter(d, -INFINITY) : d;
}

static FloatRange join(FloatRange a, FloatRange b) {
  return (FloatRange){fmin(a.lo, b.lo), fmax(a.hi, b.hi), a.nan || b.nan};
}

static FloatRange corners(Op op, FloatRange a, FloatRange b) {
  double x[2] = {a.lo, a.hi}, y[2] = {b.lo, b.hi};
  FloatRange r = {INFINITY, -INFINITY, false};
  for (u32 i = 0; i < 4; i++) {
    double v = op == OP_mul ? x[i & 1] * y[i >> 1] : x[i & 1] / y[i >> 1];
    if (isnan(v)) return nowhere;
    r = join(r, (FloatRange){v, v, false});
  }
  return r;
}

static FloatRange of_const(const Tensor *t) {
  FloatRange r = {INFINITY, -INFINITY, false};
  if (!t->data || t->n > REACH_ELEMENTS) return nowhere;
  for (u64 i = 0; i < t->n; i++) {
    double x = tensor_get(t, i).f;
    r.nan = r.nan || isnan(x);
    if (!isnan(x)) r = join(r, (FloatRange){x, x, false});
  }
  return r.lo > r.hi ? nowhere : r; /* empty, or only NaN */
}

static FloatRange of_numbers(const Node *n, const FloatRange *x) {
  const FloatRange a = x[0], b = x[1];
  switch (n->op) { /* one formula per op */
  case OP_add: return (FloatRange){a.lo + b.lo, a.hi + b.hi, false};
  case OP_sub: return (FloatRange){a.lo - b.hi, a.hi - b.lo, false};
  case OP_mul: return corners(OP_mul, a, b);
  case OP_div: return b.lo > 0 || b.hi < 0 ? corners(OP_div, a, b) : nowhere;
  case OP_neg: return (FloatRange){-a.hi, -a.lo, false};
  case OP_max: return (FloatRange){fmax(a.lo, b.lo), fmax(a.hi, b.hi), false};
  case OP_min: return (FloatRange){fmin(a.lo, b.lo), fmin(a.hi, b.hi), false};
  case OP_floor: return (FloatRange){floor(a.lo), floor(a.hi), false};
  case OP_ceil: return (FloatRange){ceil(a.lo), ceil(a.hi), false};
  case OP_round: return (FloatRange){floor(a.lo), ceil(a.hi), false};
  case OP_select: return join(b, x[2]);
  case OP_cast: return a;
  default: return nowhere;
  }
}

/* Infinite operands can produce NaN; finite ones cannot, for ops with a formula. */
static FloatRange of_map(const Node *n, const FloatRange *x) {
  FloatRange r = of_numbers(n, x);
  for (u32 i = n->op == OP_select; i < n->nin; i++)
    r.nan = r.nan || x[i].nan || isinf(x[i].lo) || isinf(x[i].hi);
  return r;
}

static FloatRange range_of(Graph *g, Val v, Ends ends, u32 *left);

/* Computes the ranges of those operands of a scalar op that are needed. */
static void operands(Graph *g, const Node *n, Ends ends, u32 *left, FloatRange *x) {
  bool pick = n->op == OP_max || n->op == OP_min;
  u32 known = n->nin == 2 && graph_const(g, n->in[1]) ? 1 : 0; /* look at a constant limit first */
  for (u32 i = 0; i < n->nin; i++) {
    u32 k = pick ? i ^ known : i;
    Ends ask = op_is(n->op, OF_MONO) ? ends : END_both;
    if (n->op == OP_neg || (n->op == OP_sub && k == 1)) /* the ends swap */
      ask = (Ends)((ends & END_lo ? END_hi : 0) | (ends & END_hi ? END_lo : 0));
    if (n->op == OP_sub && k == 0) ask = ends;
    if (n->op == OP_select && k == 0) continue;
    if (pick && i == 1) { /* max already has a lower bound, min an upper bound */
      FloatRange first = x[known];
      if (n->op == OP_max && first.lo > -INFINITY) ask &= (Ends)~END_lo;
      if (n->op == OP_min && first.hi < INFINITY) ask &= (Ends)~END_hi;
    }
    if (ends & END_nan) ask = END_all;
    if (ask) x[k] = range_of(g, n->in[k], ask, left);
  }
}

static FloatRange range_of(Graph *g, Val v, Ends ends, u32 *left) {
  const Type *t = graph_type(g, v);
  NodeId def = graph_val(g, v)->def;
  if (t->kind != TY_tensor || !*left) return nowhere;
  --*left;
  if (dtype_is_int(t->dt) || t->dt == DT_bool) {
    i64 lo, hi;
    value_int_range_in(g, v, &lo, &hi, left);
    return lo > hi ? nowhere : (FloatRange){below(lo), above(hi), false};
  }
  if (!def || !dtype_is_float(t->dt) || graph_val(g, v)->weight) return nowhere;
  const Node *n = graph_node(g, def);
  FloatRange x[3] = {nowhere, nowhere, nowhere};
  switch (n->op) { /* ops that move elements; else loop over the operands */
  case OP_const: return of_const(node_attr(n, AT_value)->u.t);
  case OP_reshape:
  case OP_transpose:
  case OP_slice:
  case OP_broadcast:
  case OP_gather:
  case OP_gather_elems:
  case OP_gather_nd: return range_of(g, n->in[0], ends, left);
  case OP_reduce_max:
  case OP_reduce_min: /* empty axis: the limit of the type */
    return type_is_nonempty(graph_type(g, n->in[0])) ? range_of(g, n->in[0], ends, left) : nowhere;
  case OP_topk: return v == n->out[0] ? range_of(g, n->in[0], ends, left) : nowhere;
  case OP_concat:
    x[0] = range_of(g, n->in[0], ends, left);
    for (u32 i = 1; i < n->nin; i++) x[0] = join(x[0], range_of(g, n->in[i], ends, left));
    return x[0];
  default: break;
  }
  if (n->op >= OP_SCALARS || n->nin > 3) return nowhere;
  operands(g, n, ends, left, x);
  return bounds_outward(t->dt, of_map(n, x));
}

FloatRange value_float_range(Graph *g, Val v, u32 *left) {
  return range_of(g, v, END_both, left);
}

FloatRange value_float_range_full(Graph *g, Val v, u32 *left) {
  return range_of(g, v, END_all, left);
}
