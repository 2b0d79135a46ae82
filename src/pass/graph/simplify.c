/* simplify.c: applies identities that are exact for every NaN, infinity and signed zero.
 *
 * In: a graph. Out: the same graph with fewer or cheaper nodes:
 *
 *   - neutral operands and repeated or inverse operations are removed
 *   - operations with a simpler equivalent are replaced
 *   - constants become second operands, without axes that broadcasting adds
 *   - chains of views and casts become one
 *   - broadcasts that an elementwise node does implicitly are removed
 *   - gathers of consecutive constant indices become slices
 *   - results without elements become constants
 *
 * Rules are listed by operator kind (table `rules`) and applied until none matches. A rule must
 * preserve the type. Rules that reorder sums, or that are exact only for finite numbers, do not
 * belong here.
 *
 * needs: nothing  keeps: types, up to sizes of loops that become known; results bit for bit breaks:
 * nothing (leaves dead nodes to dce)
 */
#include <string.h>
#include "pass/pass.h"

enum { ROUNDS = 64, MAX_RUN = 1 << 20 };

/* Looks at node id and returns true if it has replaced its (first) output. */
typedef bool Rule(GraphEdit *e, NodeId id);

static Type out_type(Graph *g, NodeId id) {
  return *graph_type(g, graph_node(g, id)->out[0]);
}

/* ---- neutral operands ---- */

typedef enum Neutral { NE_zero, NE_minus_zero, NE_one, NE_ones, NE_lowest, NE_highest } Neutral;

static Scalar neutral(Neutral which, DType dt) {
  bool flt = dtype_is_float(dt);
  Scalar lo, hi;
  dtype_limits(dt, &lo, &hi);
  switch (which) {
  case NE_zero: return flt ? (Scalar){.f = 0.0} : (Scalar){.i = 0};
  case NE_minus_zero: return flt ? (Scalar){.f = -0.0} : (Scalar){.i = 0};
  case NE_one: return flt ? (Scalar){.f = 1.0} : (Scalar){.i = 1};
  case NE_ones: return dt == DT_bool ? (Scalar){.i = 1} : (Scalar){.i = scalar_wrap(dt, -1)};
  case NE_lowest: return lo;
  default: return hi;
  }
}

/* Is every element of v this constant, bit for bit? */
static bool is_all(Graph *g, Val v, Scalar x) {
  const Tensor *t = graph_const(g, v);
  if (!t || !t->n) return false;
  for (u64 i = 0; i < t->n; i++) {
    Scalar y = tensor_get(t, i);
    if (memcmp(&x, &y, sizeof x)) return false;
  }
  return true;
}

/* x op c = x if all elements of c are this; either: also c op x. x + 0 is not x for x = -0. */
static const struct {
  Op op;
  bool either;
  Neutral c;
} neutrals[] = {
    {OP_add, true, NE_minus_zero}, {OP_sub, false, NE_zero}, {OP_mul, true, NE_one},
    {OP_div, false, NE_one},       {OP_pow, false, NE_one},  {OP_max, true, NE_lowest},
    {OP_min, true, NE_highest},    {OP_and, true, NE_ones},  {OP_or, true, NE_zero},
    {OP_xor, true, NE_zero},       {OP_shl, false, NE_zero}, {OP_shr, false, NE_zero},
};

static bool drop_neutral(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  if (n->nin != 2) return false;
  DType dt = graph_type(g, n->in[0])->dt;
  for (u32 i = 0; i < sizeof neutrals / sizeof *neutrals; i++) {
    if (neutrals[i].op != n->op) continue;
    Scalar c = neutral(neutrals[i].c, dt);
    if (is_all(g, n->in[1], c)) return edit_swap(e, id, n->in[0]);
    return neutrals[i].either && is_all(g, n->in[0], c) && edit_swap(e, id, n->in[1]);
  }
  return false;
}

/* ---- elementwise operators ---- */

static bool fix_unary(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Op op = graph_node(g, id)->op;
  NodeId def = graph_val(g, graph_node(g, id)->in[0])->def;
  if (!def || graph_node(g, id)->nin != 1) return false;
  const Node *x = graph_node(g, def);
  if (op == x->op && (op == OP_neg || op == OP_not)) return edit_swap(e, id, x->in[0]);
  bool idle =
      (op == x->op && op_is(op, OF_IDEM)) || (op_is(op, OF_ROUNDS) && op_is(x->op, OF_ROUNDS));
  if (idle) return edit_swap(e, id, x->out[0]);
  bool wraps = dtype_info[graph_type(g, x->out[0])->dt].cls == 'U'; /* |-x| is not |x| */
  if (op == OP_abs && x->op == OP_neg && !wraps) return edit_swap(e, id, mk_abs(g, x->in[0]));
  if (op == OP_not && (x->op == OP_eq || x->op == OP_ne)) {
    return edit_swap(e, id, mk_map2(g, x->op == OP_eq ? OP_ne : OP_eq, x->in[0], x->in[1]));
  }
  return false;
}

static bool fix_equal_operands(GraphEdit *e, NodeId id) {
  const Node *n = graph_node(e->g, id);
  Op op = n->op;
  if (n->nin != 2 || n->in[0] != n->in[1] || !op_is(op, OF_IDEM)) return false;
  return edit_swap(e, id, n->in[0]);
}

/* Removes a broadcast to a shape that the other operands imply. Changes the node in place. */
static bool drop_broadcast(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node *n = graph_node(g, id);
  const Type *t[3], *out = graph_type(g, n->out[0]);
  for (u32 i = 0; i < n->nin; i++) t[i] = graph_type(g, n->in[i]);
  for (u32 i = 0; i < n->nin; i++) {
    const Node *b = graph_def(g, n->in[i], OP_broadcast);
    if (!b) continue;
    const Type *x = graph_type(g, b->in[0]), *was = t[i];
    bool fits = true;
    for (u32 k = 0; k < x->rank; k++) {
      fits = fits && (x->dim[k] == 1 || x->dim[k] == was->dim[was->rank - x->rank + k]);
    }
    Dim dim[MAX_RANK];
    t[i] = x;
    u32 rank = fits ? infer_broadcast(g, t, n->nin, dim) : 0;
    if (fits && type_has_shape(out, dim, rank)) {
      n->in[i] = b->in[0];
      e->changed = true;
    } else {
      t[i] = was;
    }
  }
  return false;
}

/* Makes the constant the second operand. Leaves max and min alone, which return the first of two
 * zeros. */
static bool order_constant(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node *n = graph_node(g, id);
  bool either = op_is(n->op, OF_COMM) && n->op != OP_max && n->op != OP_min;
  if (!either || !graph_const(g, n->in[0]) || graph_const(g, n->in[1])) return false;
  Val k = n->in[0];
  n->in[0] = n->in[1];
  n->in[1] = k;
  e->changed = true;
  return false;
}

/* Simpler equivalents: 1 / x, x ^ 2, x + -y, x - -y, x * -1. */
static bool rename_op(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  if (n->nin != 2) return false;
  Val a = n->in[0], b = n->in[1];
  DType dt = graph_type(g, a)->dt;
  bool flt = dtype_is_float(dt);
  const Node *neg = graph_def(g, b, OP_neg);
  switch (n->op) {
  case OP_div: return flt && is_all(g, a, (Scalar){.f = 1}) && edit_swap(e, id, mk_recip(g, b));
  case OP_pow: /* f64 pow is less accurate than the product */
    if (dt == DT_f64 || !is_all(g, b, flt ? (Scalar){.f = 2} : (Scalar){.i = 2})) return false;
    return edit_swap(e, id, mk_mul(g, a, a));
  case OP_add: return neg && flt && edit_swap(e, id, mk_sub(g, a, neg->in[0]));
  case OP_sub: return neg && flt && edit_swap(e, id, mk_add(g, a, neg->in[0]));
  case OP_mul: return flt && is_all(g, b, (Scalar){.f = -1}) && edit_swap(e, id, mk_neg(g, a));
  default: return false;
  }
}

/* Removes axes of a constant that broadcasting adds anyway: all elements equal, or leading axes of
 * extent 1. Changes the node in place. */
static bool shrink_constant(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node *n = graph_node(g, id);
  if (n->nin < 2) return false;
  u32 rank = graph_type(g, n->out[0])->rank;
  for (u32 i = 0; i < n->nin; i++) {
    const Tensor *t = graph_const(g, n->in[i]);
    if (!t || !t->rank || !t->n || t->dt == DT_str || dtype_info[t->dt].cls == 'C') continue;
    const Type *x[3], *out = graph_type(g, n->out[0]);
    Dim dim[MAX_RANK];
    u32 lead = 0;
    while (lead < t->rank && t->dim[lead] == 1) lead++;
    bool same = is_all(g, n->in[i], tensor_get(t, 0));
    if (!lead && !same) continue;
    u32 left = same ? 0 : t->rank - lead;
    Type small = {TY_tensor, t->dt, left, t->dim + (t->rank - left), NULL};
    for (u32 k = 0; k < n->nin; k++) x[k] = k == i ? &small : graph_type(g, n->in[k]);
    u32 got = infer_broadcast(g, x, n->nin, dim);
    if (got != rank || (rank && memcmp(dim, out->dim, rank * sizeof *dim))) continue;
    Val k = mk_const(g, tensor_wrap(&g->c->work, t->dt, t->dim + (t->rank - left), left, t->data));
    n = graph_node(g, id);
    n->in[i] = k;
    e->changed = true;
  }
  return false;
}

static bool fix_select(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  if (n->op != OP_select) return false;
  Type t = out_type(g, id);
  Val a = n->in[1], b = n->in[2];
  if (a == b || is_all(g, n->in[0], (Scalar){.i = 1})) {
    return edit_swap(e, id, mk_broadcast(g, a, t.dim, t.rank));
  }
  if (is_all(g, n->in[0], (Scalar){.i = 0}))
    return edit_swap(e, id, mk_broadcast(g, b, t.dim, t.rank));
  return false;
}

/* ---- conversions ---- */

static u32 float_digits(DType dt) {
  return dt == DT_f64 ? 53 : dt == DT_f32 ? 24 : 0;
}

/* Is every value of a also one of b? Floats narrower than f32 are only known to fit into f32 and
 * f64. */
static bool fits(DType a, DType b) {
  const DTypeInfo *x = &dtype_info[a], *y = &dtype_info[b];
  bool xint = dtype_is_int(a) || a == DT_bool;
  if (a == b) return true;
  if (xint && dtype_is_int(b)) {
    u32 xbits = x->bits - (x->cls == 'I'), ybits = y->bits - (y->cls == 'I');
    return xbits <= ybits && (x->cls != 'I' || y->cls == 'I');
  }
  if (xint && dtype_is_float(b)) return x->bits <= float_digits(b);
  return dtype_is_float(a) && dtype_is_float(b) && float_digits(b) && x->bits < y->bits;
}

/* a -> b -> c as a -> c. If b holds all of a, b -> c sees the values of a. If these do not fit c,
 * the class of b decides: integers wrap, floats truncate and saturate. */
static bool may_skip(DType a, DType b, DType c) {
  if (dtype_info[c].cls == 'S' || dtype_info[a].cls == 'S' || !fits(a, b)) return false;
  bool aint = dtype_is_int(a), bint = dtype_is_int(b);
  if (a == DT_bool || aint == bint) return b != DT_bool;
  return aint && dtype_is_float(b) && (dtype_is_float(c) || c == DT_bool || fits(a, c));
}

static bool fix_cast(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  Op op = n->op;
  if (op != OP_cast && op != OP_bitcast) return false;
  if (edit_swap(e, id, n->in[0])) return true;
  const Node *x = graph_def(g, n->in[0], op);
  if (!x) return false;
  Val from = x->in[0];
  DType a = graph_type(g, from)->dt, b = graph_type(g, n->in[0])->dt;
  if (op == OP_cast && !may_skip(a, b, out_type(g, id).dt)) return false;
  if (edit_swap(e, id, from)) return true;
  NodeId made = graph_add(g, op, &from, 1, n->attr, n->nattr);
  return edit_swap(e, id, graph_node(g, made)->out[0]);
}

/* ---- views ---- */

/* reshape(reshape(x)) -> reshape(x), broadcast(broadcast(x)) -> broadcast(x) */
static bool fix_shape(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  bool reshapes = n->op == OP_reshape;
  if (edit_swap(e, id, n->in[0])) return true;
  const Node *x = graph_def(g, n->in[0], n->op);
  if (!x) return false;
  Type t = out_type(g, id);
  return edit_swap(e, id, (reshapes ? mk_reshape : mk_broadcast)(g, x->in[0], t.dim, t.rank));
}

static bool fix_transpose(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  Type t = out_type(g, id);
  u32 rank;
  const Dim *perm = node_list(n, AT_perm, &rank);
  const Node *x = graph_def(g, n->in[0], OP_transpose);
  if (x) {
    const Dim *inner = node_list(x, AT_perm, &rank);
    i64 both[MAX_RANK];
    for (u32 i = 0; i < rank; i++) both[i] = inner[perm[i]];
    return edit_swap(e, id, mk_transpose(g, x->in[0], both));
  }
  const Type *in = graph_type(g, n->in[0]);
  i64 last = -1;
  for (u32 i = 0; i < rank; i++) {
    if (in->dim[perm[i]] == 1) continue;
    if (perm[i] < last) return false;
    last = perm[i];
  }
  return edit_swap(e, id, mk_reshape(g, n->in[0], t.dim, t.rank)); /* only axes of extent 1 move */
}

/* Slices operand k of a concat directly, if the slice is within it; starts and sizes are
 * constants. */
static bool slice_of_concat(GraphEdit *e, NodeId id, const Node *x) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  u32 rank, axis = (u32)node_int(x, AT_axis, 0);
  const Dim *start = node_list(n, AT_start, &rank), *size = node_list(n, AT_size, &rank);
  const Dim *step = node_list(n, AT_step, &rank);
  if (!dim_is_const(start[axis]) || !dim_is_const(size[axis]) || step[axis] != 1) return false;
  i64 at = 0;
  for (u32 k = 0; k < x->nin; k++) {
    Dim d = graph_type(g, x->in[k])->dim[axis];
    if (!dim_is_const(d) || start[axis] < at) return false;
    if (size[axis] && start[axis] + size[axis] <= at + d) {
      Dim from[MAX_RANK];
      memcpy(from, start, rank * sizeof *from);
      from[axis] -= at;
      return edit_swap(e, id, mk_slice(g, x->in[k], from, size, step));
    }
    at += d;
  }
  return false;
}

static bool is_whole(const Type *t, const Dim *start, const Dim *size, const Dim *step) {
  for (u32 i = 0; i < t->rank; i++) {
    if (start[i] || (step[i] != 1 && size[i] != 1) || size[i] != t->dim[i]) return false;
  }
  return true;
}

static bool fix_slice(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  u32 rank;
  const Dim *start = node_list(n, AT_start, &rank), *size = node_list(n, AT_size, &rank);
  const Dim *step = node_list(n, AT_step, &rank);
  if (is_whole(graph_type(g, n->in[0]), start, size, step)) return edit_swap(e, id, n->in[0]);
  const Node *x = graph_def(g, n->in[0], OP_concat);
  if (x) return slice_of_concat(e, id, x);
  x = graph_def(g, n->in[0], OP_slice);
  if (!x) return false;
  const Dim *start1 = node_list(x, AT_start, &rank), *step1 = node_list(x, AT_step, &rank);
  Dim from[MAX_RANK];
  i64 by[MAX_RANK];
  for (u32 i = 0; i < rank; i++) {
    if (__builtin_mul_overflow(step[i], step1[i], &by[i])) return false;
    if (step1[i] == 1) {
      from[i] = dim_add(g->dims, start1[i], start[i]);
    } else if (dim_is_const(start1[i]) && dim_is_const(start[i])) {
      if (__builtin_mul_overflow(step1[i], start[i], &from[i]) ||
          __builtin_add_overflow(from[i], start1[i], &from[i]))
        return false;
      if (from[i] < 0 || from[i] > DIM_MAX) return false;
    } else {
      return false;
    }
  }
  return edit_swap(e, id, mk_slice(g, x->in[0], from, size, by));
}

/* ---- reductions ---- */

/* Reductions over axes of extent 1 do nothing. A float sum starts at +0, so it would turn -0 into
 * +0. */
static bool fix_reduce(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  if (!op_is(n->op, OF_REDUCES)) return false;
  Type t = out_type(g, id);
  u32 naxes;
  const Dim *axes = node_list(n, AT_axes, &naxes);
  if (n->op == OP_reduce_sum && dtype_is_float(t.dt)) return false;
  for (u32 i = 0; i < naxes; i++) {
    if (graph_type(g, n->in[0])->dim[axes[i]] != 1) return false;
  }
  return edit_swap(e, id, mk_reshape(g, n->in[0], t.dim, t.rank));
}

/* ---- joins ---- */

/* Returns x if the operands are the consecutive pieces of x; else 0. */
static Val pieces_of(Graph *g, const Node *n, u32 axis) {
  Val x = 0;
  Dim at = 0;
  for (u32 k = 0; k < n->nin; k++) {
    const Node *s = graph_def(g, n->in[k], OP_slice);
    if (!s || (x && s->in[0] != x)) return 0;
    x = s->in[0];
    const Type *t = graph_type(g, x);
    u32 rank;
    const Dim *start = node_list(s, AT_start, &rank), *size = node_list(s, AT_size, &rank);
    const Dim *step = node_list(s, AT_step, &rank);
    for (u32 i = 0; i < rank; i++) {
      if (step[i] != 1 || start[i] != (i == axis ? at : 0)) return 0;
      if (i != axis && size[i] != t->dim[i]) return 0;
    }
    at = dim_add(g->dims, at, size[axis]);
  }
  return x && at == graph_type(g, x)->dim[axis] ? x : 0;
}

/* The same value repeated along an axis of extent 1 is a broadcast. */
static bool concat_of_same(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  if (n->nin < 2 || graph_type(g, n->in[0])->dim[node_int(n, AT_axis, 0)] != 1) return false;
  for (u32 i = 1; i < n->nin; i++)
    if (n->in[i] != n->in[0]) return false;
  Type t = out_type(g, id);
  return edit_swap(e, id, mk_broadcast(g, n->in[0], t.dim, t.rank));
}

static bool fix_concat(GraphEdit *e, NodeId id) {
  if (concat_of_same(e, id)) return true;
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  u32 axis = (u32)node_int(n, AT_axis, 0), kept = 0;
  if (n->nin == 1) return edit_swap(e, id, n->in[0]);
  Val x = pieces_of(g, n, axis);
  if (x) return edit_swap(e, id, x);
  Val *in = NEWS(&g->c->scratch, Val, n->nin);
  for (u32 k = 0; k < n->nin; k++) {
    if (graph_type(g, n->in[k])->dim[axis] != 0) in[kept++] = n->in[k];
  }
  if (!kept || kept == n->nin) return false;
  return edit_swap(e, id, mk_concat(g, in, kept, axis));
}

static bool fix_pad(GraphEdit *e, NodeId id) {
  const Node *n = graph_node(e->g, id);
  u32 rank;
  const Dim *lo = node_list(n, AT_lo, &rank), *hi = node_list(n, AT_hi, &rank);
  const Dim *mid = node_list(n, AT_interior, &rank);
  for (u32 i = 0; i < rank; i++) {
    if (lo[i] || hi[i] || mid[i]) return false;
  }
  return edit_swap(e, id, n->in[0]);
}

/* ---- gathers and scatters ---- */

/* Index i of an axis as gather interprets it, for every possible extent; false: it depends. */
static bool place(Graph *g, Dim extent, i64 i, i64 *out) {
  i64 lo, hi;
  dim_bounds(g->dims, extent, &lo, &hi);
  if (dim_is_const(extent) && extent > 0) {
    if (i < 0) i += extent;
    *out = i < 0 ? 0 : i >= extent ? extent - 1 : i;
    return true;
  }
  *out = i;
  return i >= 0 && i < lo;
}

/* Constant indices a, a + s, a + 2 s ... on one axis are a slice. */
static bool fix_gather(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  const Tensor *idx = graph_const(g, n->in[1]);
  if (n->op != OP_gather || !idx || idx->rank > 1 || !idx->n || idx->n > MAX_RUN) return false;
  Type x = *graph_type(g, n->in[0]), t = out_type(g, id);
  u32 axis = (u32)node_int(n, AT_axis, 0);
  i64 first, step = 1, at;
  if (!place(g, x.dim[axis], tensor_get(idx, 0).i, &first)) return false;
  for (u64 i = 1; i < idx->n; i++) {
    if (!place(g, x.dim[axis], tensor_get(idx, i).i, &at)) return false;
    if (i == 1) step = at - first;
    if (!step || at != first + step * (i64)i) return false;
  }
  Dim start[MAX_RANK] = {0}, size[MAX_RANK];
  i64 by[MAX_RANK];
  for (u32 i = 0; i < x.rank; i++) {
    size[i] = x.dim[i];
    by[i] = 1;
  }
  start[axis] = first;
  size[axis] = (i64)idx->n;
  by[axis] = step;
  Val s = mk_slice(g, n->in[0], start, size, by);
  return edit_swap(e, id, mk_reshape(g, s, t.dim, t.rank));
}

static bool fix_scatter(GraphEdit *e, NodeId id) {
  const Node *n = graph_node(e->g, id);
  const Type *u = graph_type(e->g, n->in[2]);
  for (u32 i = 0; i < u->rank; i++) {
    if (u->dim[i] == 0) return edit_swap(e, id, n->in[0]);
  }
  return false;
}

static bool has_no_elements(const Type *t) {
  u64 count;
  return t->kind == TY_tensor && type_is_static(t) && shape_count(t->dim, t->rank, &count) &&
         !count;
}

/* Does v depend on a reshape of something that may have elements? Lowering checks that reshape at
 * run time, so it must stay. */
static bool may_lose_elements(Graph *g, Val v) {
  enum { CHAIN = 16 };
  for (u32 i = 0; i < CHAIN && has_no_elements(graph_type(g, v)); i++) {
    NodeId def = graph_val(g, v)->def;
    const Node *n = def ? graph_node(g, def) : NULL;
    if (!n || !n->nin) return false;
    v = n->in[0];
    if (n->op == OP_reshape && !type_is_static(graph_type(g, v))) return true;
  }
  return false;
}

/* A result without elements does not depend on anything. */
static bool fix_empty(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  if (n->op == OP_const || n->nout != 1) return false;
  Type t = out_type(g, id);
  if (!has_no_elements(&t) || may_lose_elements(g, n->out[0])) return false;
  return edit_swap(e, id, mk_const(g, tensor_new(&g->c->work, t.dt, t.dim, t.rank)));
}

/* f8e8m0 has no sign and no zero, so -(-x) is not x. */
static bool fix_map(GraphEdit *e, NodeId id) {
  const Node *n = graph_node(e->g, id);
  bool sign = graph_type(e->g, n->in[0])->dt != DT_f8e8m0;
  if (sign && (drop_neutral(e, id) || fix_unary(e, id) || rename_op(e, id))) return true;
  return fix_equal_operands(e, id) || fix_select(e, id) || fix_cast(e, id) ||
         drop_broadcast(e, id) || order_constant(e, id) || shrink_constant(e, id);
}

/* Removes a check that always holds. */
static bool fix_check_index(GraphEdit *e, NodeId id) {
  const Node *n = graph_node(e->g, id);
  u32 count;
  const Dim *size = node_list(n, AT_size, &count);
  return index_fits(e->g, n->in[0], size, count) && edit_swap(e, id, n->in[0]);
}

static Rule *const rules[OP_COUNT] = {
    [OP_reduce_sum] = fix_reduce,  [OP_reduce_prod] = fix_reduce,
    [OP_reduce_max] = fix_reduce,  [OP_reduce_min] = fix_reduce,
    [OP_reshape] = fix_shape,      [OP_transpose] = fix_transpose,
    [OP_slice] = fix_slice,        [OP_broadcast] = fix_shape,
    [OP_concat] = fix_concat,      [OP_pad] = fix_pad,
    [OP_gather] = fix_gather,      [OP_scatter_elems] = fix_scatter,
    [OP_scatter_nd] = fix_scatter, [OP_check_index] = fix_check_index,
};

static bool visit(GraphEdit *e, NodeId id) {
  Op op = graph_node(e->g, id)->op;
  if (op_info[op].kind == OK_CONTROL || op_info[op].kind == OK_DYNAMIC) return true;
  if (fix_empty(e, id)) return false;
  if (op < OP_SCALARS) return !fix_map(e, id);
  return !rules[op] || !rules[op](e, id);
}

/* A condition that becomes known may fix the trip count of a loop. */
void simplify(Graph *g) {
  for (u32 i = 0; i < ROUNDS && edit_run(g, visit, NULL); i++) {
    SymbolRebind r = rebind_new(g);
    if (g->region.n > 2) graph_refine(g, &r);
  }
}
