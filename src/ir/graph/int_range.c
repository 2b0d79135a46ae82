/* int_range.c: bounds of the elements of an integer value.
 *
 * In: a value, or its elements at one position of one axis. Out: bounds that hold in every run, as
 * integers and, for the upper one, as a dimension. Method: interval arithmetic backwards over the
 * defining nodes. Positions (argmax, nonzero, topk, nms, iota, loop counters) are below the extent
 * they index. Used to omit index checks that cannot fail. Unknown operators have the bounds of
 * their type. */
#include "ir/graph/graph.h"

#include <string.h>

enum { SPAN_NODES = 200, SPAN_MANY = 3000 }; /* node budget per query; SPAN_MANY: for sizes */
/* Elements of a constant that are examined; more for index types. */
#define SPAN_ELEMENTS ((u64)1 << 20)
#define SPAN_INDICES  ((u64)1 << 24)

typedef struct IntRange {
  i64 lo, hi;
  bool bound; /* `below` is valid */
  Dim below;  /* upper bound of every element, exclusive */
} IntRange;

/* Elements at position k of an axis; axis MAX_RANK: all. */
typedef struct RangePart {
  u32 axis;
  i64 k;
} RangePart;

static const RangePart whole = {MAX_RANK, 0};

typedef struct RangeQuery {
  u32 *left;        /* budget of nodes to analyze */
  const i64 *below; /* by value, or NULL: see value_int_range_checked */
} RangeQuery;

static IntRange range_at(Graph *g, Val v, RangePart at, RangeQuery *q);

static IntRange range_type(DType dt) {
  IntRange s = {0};
  dtype_int_range(dt, &s.lo, &s.hi);
  return s;
}

static IntRange range_extent(Graph *g, Dim d) {
  i64 lo, hi;
  dim_bounds(g->dims, d, &lo, &hi);
  return (IntRange){.lo = 0, .hi = hi ? hi - 1 : 0, .bound = true, .below = d};
}

static IntRange range_join(IntRange a, IntRange b) {
  bool same = a.bound && b.bound && a.below == b.below;
  return (IntRange){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi, same, a.below};
}

static IntRange range_const(const Tensor *t, RangePart at) {
  IntRange s = {.lo = INT64_MAX, .hi = INT64_MIN};
  u64 inner = 1, extent = 1;
  u64 max_elements = dtype_info[t->dt].bits < 32 ? SPAN_ELEMENTS : SPAN_INDICES;
  if (t->n > max_elements || !(dtype_is_int(t->dt) || t->dt == DT_bool) || t->dt == DT_u64)
    return range_type(t->dt);
  for (u32 i = at.axis; i < t->rank; i++) {
    if (i == at.axis)
      extent = (u64)t->dim[i];
    else
      inner *= (u64)t->dim[i];
  }
  for (u64 i = 0; i < t->n; i++) {
    i64 x = tensor_get(t, i).i;
    if (at.axis < t->rank && (i64)(i / inner % extent) != at.k) continue;
    if (x < s.lo) s.lo = x;
    if (x > s.hi) s.hi = x;
  }
  return s;
}

static IntRange range_dims(Graph *g, const Node *n, RangePart at) {
  u32 count;
  const Dim *d = node_list(n, AT_shape, &count);
  IntRange s = {.lo = INT64_MAX, .hi = INT64_MIN};
  for (u32 i = 0; i < count; i++) {
    i64 lo, hi;
    if (at.axis == 0 && (i64)i != at.k) continue;
    dim_bounds(g->dims, d[i], &lo, &hi);
    IntRange one = {lo, hi, true, dim_addk(g->dims, d[i], 1)};
    s = s.lo > s.hi ? one : range_join(s, one);
  }
  return s;
}

/* A carried value is the initial value or the result of an iteration. */
static IntRange range_carried(Graph *g, const Node *loop, u32 i, RangeQuery *q) {
  const GraphRegion *body = &g->region.at[loop->region[0]];
  IntRange first = range_at(g, loop->in[2 + i], whole, q);
  return range_join(first, range_at(g, body->ret.at[1 + i], whole, q));
}

/* Range of a loop parameter: iteration counter or carried value. */
static IntRange range_param(Graph *g, Val v, RangeQuery *q) {
  IntRange s = range_type(graph_type(g, v)->dt);
  u32 pos = graph_val(g, v)->pos;
  for (RegionId b = 2; b < g->region.n; b++) {
    const GraphRegion *k = &g->region.at[b];
    if (!k->owner || pos >= k->param.n || k->param.at[pos] != v) continue;
    if (pos == 1) return s;
    if (pos > 1) return range_carried(g, graph_node(g, k->owner), pos - 2, q);
    Val trip = graph_node(g, k->owner)->in[0];
    IntRange count = range_at(g, trip, whole, q);
    s.lo = 0;
    if (count.hi < INT64_MAX) s.hi = count.hi > 0 ? count.hi - 1 : 0;
    u32 n;
    s.bound = graph_dim_list(g, trip, &s.below, 1, &n) && n == 1;
    return s;
  }
  return s;
}

/* ---- views ---- */

/* The position before a reshape that only inserts or removes extents of 1; any position
 * otherwise. */
static RangePart part_reshape(const Type *from, const Type *to, RangePart at) {
  u32 i = 0;
  for (u32 k = 0; k < to->rank; k++) {
    if (to->dim[k] == 1) {
      if (k == at.axis) return whole;
      continue;
    }
    while (i < from->rank && from->dim[i] == 1) i++;
    if (i == from->rank || from->dim[i] != to->dim[k]) return whole;
    if (k == at.axis) return (RangePart){i, at.k};
    i++;
  }
  return whole;
}

static RangePart part_view(Graph *g, const Node *n, RangePart at) {
  const Type *from = graph_type(g, n->in[0]), *to = graph_type(g, n->out[0]);
  u32 count;
  if (at.axis >= to->rank) return whole;
  if (n->op == OP_reshape) return part_reshape(from, to, at);
  if (n->op == OP_transpose) return (RangePart){(u32)node_list(n, AT_perm, &count)[at.axis], at.k};
  if (n->op == OP_slice) {
    Dim start = node_list(n, AT_start, &count)[at.axis];
    i64 step = node_list(n, AT_step, &count)[at.axis];
    return dim_is_const(start) ? (RangePart){at.axis, start + at.k * step} : whole;
  }
  u32 more = to->rank - from->rank; /* broadcast */
  if (at.axis < more) return whole;
  return (RangePart){at.axis - more, from->dim[at.axis - more] == 1 ? 0 : at.k};
}

static IntRange range_concat(Graph *g, const Node *n, RangePart at, RangeQuery *q) {
  u32 axis = (u32)node_int(n, AT_axis, 0);
  IntRange s = {0};
  bool any = false;
  i64 from = 0;
  for (u32 i = 0; i < n->nin; i++) {
    Dim d = graph_type(g, n->in[i])->dim[axis];
    RangePart p = at;
    if (at.axis == axis) {
      if (!dim_is_const(d)) return range_type(graph_type(g, n->out[0])->dt);
      p.k = at.k - from;
      from += d;
      if (p.k < 0 || p.k >= d) continue;
    }
    IntRange one = range_at(g, n->in[i], p, q);
    s = any ? range_join(s, one) : one;
    any = true;
  }
  return any ? s : range_type(graph_type(g, n->out[0])->dt);
}

/* ---- arithmetic ---- */

static bool mul_ok(i64 a, i64 b, i64 *to) {
  const i64 max = (i64)1 << 31;
  if (a > max || a < -max || b > max || b < -max) return false;
  *to = a * b;
  return true;
}

static bool add_ok(i64 a, i64 b, i64 *to) {
  if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) return false;
  *to = a + b;
  return true;
}

/* Half of the range stays unused, so that a difference cannot overflow. */
static bool is_small(IntRange s) {
  return s.lo > INT64_MIN / 2 && s.hi < INT64_MAX / 2;
}

static IntRange range_add(Graph *g, IntRange a, IntRange b, IntRange none) {
  IntRange s = {0};
  if (!add_ok(a.lo, b.lo, &s.lo) || !add_ok(a.hi, b.hi, &s.hi)) return none;
  const i64 far = DIM_MAX / 4;
  if (!a.bound) return a.lo == a.hi && b.bound ? range_add(g, b, a, none) : s;
  if (b.lo == b.hi && b.lo >= 0 && b.lo < far && !dim_is_const(a.below))
    s.bound = true, s.below = dim_addk(g->dims, a.below, b.lo);
  return s;
}

static IntRange range_mul(IntRange a, IntRange b, IntRange none) {
  i64 x[4];
  if (!mul_ok(a.lo, b.lo, &x[0]) || !mul_ok(a.lo, b.hi, &x[1]) || !mul_ok(a.hi, b.lo, &x[2]) ||
      !mul_ok(a.hi, b.hi, &x[3]))
    return none;
  IntRange s = {x[0], x[0], false, 0};
  for (u32 i = 1; i < 4; i++) {
    if (x[i] < s.lo) s.lo = x[i];
    if (x[i] > s.hi) s.hi = x[i];
  }
  return s;
}

static IntRange range_pick(Op op, IntRange a, IntRange b) {
  bool min = op == OP_min;
  IntRange s = {(a.lo < b.lo) == min ? a.lo : b.lo, (a.hi < b.hi) == min ? a.hi : b.hi, false, 0};
  if (min && (a.bound || b.bound)) s.bound = true, s.below = a.bound ? a.below : b.below;
  if (!min && a.bound && b.bound && a.below == b.below) s.bound = true, s.below = a.below;
  return s;
}

/* Cast from float: NaN becomes 0. */
static IntRange range_cast(Graph *g, Val v, IntRange none, RangeQuery *q) {
  const double far = 0x1p62;
  FloatRange r = value_float_range(g, v, q->left);
  if (!(r.lo > -far && r.hi < far)) return none;
  IntRange s = {(i64)r.lo, (i64)r.hi, false, 0}; /* both are truncated towards 0 */
  return range_join(s, (IntRange){0, 0, false, 0});
}

/* Range of a scalar op; a result that may wrap has the range of its type. */
static IntRange range_map(Graph *g, const Node *n, RangePart at, RangeQuery *q) {
  DType dt = graph_type(g, n->out[0])->dt;
  IntRange none = range_type(dt), x[3], s = none;
  u32 rank = graph_type(g, n->out[0])->rank;
  if (n->nin > 3 || dt == DT_u64 || (!dtype_is_int(dt) && dt != DT_bool)) return none;
  for (u32 i = 0; i < n->nin; i++) {
    const Type *t = graph_type(g, n->in[i]);
    RangePart p = at;
    if (at.axis < rank) {
      u32 more = rank - t->rank;
      p = at.axis < more ? whole : (RangePart){at.axis - more, at.k};
      if (p.axis < t->rank && t->dim[p.axis] == 1) p.k = 0;
    }
    x[i] = range_at(g, n->in[i], p, q);
    if (x[i].lo > x[i].hi) return none; /* empty operand */
  }
  switch (n->op) { /* one formula per op */
  case OP_cast:
    if (dtype_is_int(graph_type(g, n->in[0])->dt) || graph_type(g, n->in[0])->dt == DT_bool)
      s = x[0];
    else if (dtype_is_float(graph_type(g, n->in[0])->dt))
      s = range_cast(g, n->in[0], none, q);
    break;
  case OP_add: s = range_add(g, x[0], x[1], none); break;
  case OP_sub:
    if (is_small(x[0]) && is_small(x[1]))
      s = (IntRange){x[0].lo - x[1].hi, x[0].hi - x[1].lo, 0, 0};
    break;
  case OP_neg:
    if (is_small(x[0])) s = (IntRange){-x[0].hi, -x[0].lo, false, 0};
    break;
  case OP_mul: s = range_mul(x[0], x[1], none); break;
  case OP_div:
    if (x[1].lo > 0 && x[0].lo >= 0) s = (IntRange){0, x[0].hi / x[1].lo, x[0].bound, x[0].below};
    break;
  case OP_mod:
    if (x[1].lo > 0) {
      s = (IntRange){0, x[1].hi - 1, false, 0};
      u32 count;
      s.bound = graph_dim_list(g, n->in[1], &s.below, 1, &count) && count == 1;
    }
    break;
  case OP_min:
  case OP_max: s = range_pick(n->op, x[0], x[1]); break;
  case OP_select: s = range_join(x[1], x[2]); break;
  case OP_shl:
    if (x[1].lo == x[1].hi && x[1].lo >= 0 && x[1].lo < 31)
      s = range_mul(x[0], (IntRange){(i64)1 << x[1].lo, (i64)1 << x[1].lo, false, 0}, none);
    break;
  case OP_requant: {
    i64 far = x[0].hi > -x[0].lo ? x[0].hi : -x[0].lo, by = x[1].hi > -x[1].lo ? x[1].hi : -x[1].lo;
    i64 most = (i64)((double)far * (double)by * 0x1p-32) + 1, down = x[2].lo >= 0 && x[2].hi < 32;
    most = (most >> (down ? x[2].lo : 0)) + 1;
    s = (IntRange){-most, most, false, 0};
    break;
  }
  default: return none;
  }
  return s.lo < none.lo || s.hi > none.hi ? none : s;
}

/* ---- sums ---- */

/* Products that one element of a contraction adds up: the extents of all letters that the result
 * lacks, each once. */
static double contract_terms(Graph *g, const Node *n) {
  const char *spec = str_text(g->c, node_attr(n, AT_spec)->u.s), *out = strstr(spec, "->");
  double terms = 1;
  u32 side = 0, axis = 0;
  for (const char *s = spec; s < out; s++) {
    if (*s == ',') {
      side = 1, axis = 0;
      continue;
    }
    Dim d = graph_type(g, n->in[side])->dim[axis++];
    if (strchr(out, *s) || memchr(spec, *s, (size_t)(s - spec))) continue;
    if (!dim_is_const(d)) return 0;
    terms *= (double)d;
  }
  return terms;
}

/* Elements or products that one element of the result adds up; 0: unknown. */
static i64 terms_of(Graph *g, const Node *n) {
  const Type *x = graph_type(g, n->in[0]), *w = graph_type(g, n->in[n->nin - 1]);
  u32 count = 0;
  const Dim *list = n->op == OP_conv || n->op == OP_contract
                        ? NULL
                        : node_list(n, n->op == OP_pool_sum ? AT_window : AT_axes, &count);
  double terms = n->op == OP_contract ? contract_terms(g, n) : 1;
  if (n->op == OP_conv) count = w->rank;
  for (u32 i = 0; i < count; i++) {
    Dim d = n->op == OP_conv       ? (i ? w->dim[i] : 1)
            : n->op == OP_pool_sum ? list[i]
                                   : x->dim[list[i]];
    if (!dim_is_const(d)) return 0;
    terms *= (double)d;
  }
  return terms < 0x1p31 ? (i64)terms : 0;
}

static IntRange range_sum(Graph *g, const Node *n, IntRange none, RangeQuery *q) {
  i64 terms = terms_of(g, n), top = (i64)1 << 31;
  IntRange x = range_at(g, n->in[0], whole, q);
  if (n->nin == 2) x = range_mul(x, range_at(g, n->in[1], whole, q), none);
  if (!terms || x.lo < -top || x.hi > top) return none;
  x = (IntRange){.lo = (x.lo < 0 ? x.lo : 0) * terms, .hi = (x.hi > 0 ? x.hi : 0) * terms};
  return x.lo < none.lo || x.hi > none.hi ? none : x;
}

/* ---- traversal ---- */

static IntRange range_node(Graph *g, const Node *n, Val v, RangePart at, RangeQuery *q) {
  const Type *x = graph_type(g, n->nin ? n->in[0] : v);
  u32 axis = (u32)node_int(n, AT_axis, 0), count;
  if (n->op < OP_SCALARS) return range_map(g, n, at, q);
  switch (n->op) { /* ops that produce positions, move them or add up */
  case OP_conv:
  case OP_contract:
  case OP_pool_sum:
  case OP_reduce_sum: return range_sum(g, n, range_type(graph_type(g, v)->dt), q);
  case OP_const: return range_const(node_attr(n, AT_value)->u.t, at);
  case OP_dims: return range_dims(g, n, at);
  case OP_iota:
    if (at.axis == axis) return (IntRange){.lo = at.k, .hi = at.k};
    return range_extent(g, node_list(n, AT_shape, &count)[axis]);
  case OP_argmax:
  case OP_argmin: return range_extent(g, x->dim[axis]);
  case OP_topk:
    if (v == n->out[1]) return range_extent(g, x->dim[axis]);
    return range_at(g, n->in[0], whole, q);
  case OP_nms: {
    IntRange s = range_extent(g, x->dim[2]);
    s.lo = -1;
    return s;
  }
  case OP_loop:
    if (graph_val(g, v)->pos + 2 < n->nin) return range_carried(g, n, graph_val(g, v)->pos, q);
    return range_type(graph_type(g, v)->dt);
  case OP_nonzero: {
    if (at.axis == 0 && at.k < x->rank) return range_extent(g, x->dim[at.k]);
    IntRange s = range_extent(g, x->rank ? x->dim[0] : 1);
    for (u32 i = 1; i < x->rank; i++) s = range_join(s, range_extent(g, x->dim[i]));
    return s;
  }
  case OP_reshape:
  case OP_transpose:
  case OP_slice:
  case OP_broadcast: return range_at(g, n->in[0], part_view(g, n, at), q);
  case OP_concat: return range_concat(g, n, at, q);
  case OP_pad: return range_join(range_at(g, n->in[0], whole, q), range_at(g, n->in[1], whole, q));
  case OP_gather:
  case OP_gather_elems:
  case OP_gather_nd: return range_at(g, n->in[0], whole, q);
  case OP_reduce_max:
  case OP_reduce_min: { /* empty axis: the limit of the type */
    IntRange s = range_at(g, n->in[0], whole, q), none = range_type(x->dt);
    if (type_is_nonempty(x)) return s;
    if (s.lo > s.hi) return none; /* no elements at all */
    bool max = n->op == OP_reduce_max;
    return (IntRange){max ? none.lo : s.lo, max ? s.hi : none.hi, false, 0};
  }
  case OP_check_index: {
    IntRange s = range_at(g, n->in[0], at, q);
    const Dim *size = node_list(n, AT_size, &count);
    i64 lo, hi, max = 0;
    for (u32 i = 0; i < count; i++) {
      dim_bounds(g->dims, size[i], &lo, &hi);
      if (hi > max) max = hi;
    }
    if (s.lo < -max) s.lo = -max;
    if (s.hi >= max && max) s.hi = max - 1;
    if (!s.bound && count == 1) s.bound = true, s.below = size[0];
    return s;
  }
  default: return range_type(graph_type(g, v)->dt);
  }
}

static IntRange range_at(Graph *g, Val v, RangePart at, RangeQuery *q) {
  if (graph_type(g, v)->kind != TY_tensor || !*q->left) return range_type(graph_type(g, v)->dt);
  --*q->left;
  NodeId def = graph_val(g, v)->def;
  IntRange s = def ? range_node(g, graph_node(g, def), v, at, q) : range_param(g, v, q);
  i64 below = q->below ? q->below[v] : 0;
  if (below && s.lo < -below) s.lo = -below;
  if (below && s.hi >= below) s.hi = below - 1;
  return s;
}

void value_int_range_in(Graph *g, Val v, i64 *lo, i64 *hi, u32 *left) {
  RangeQuery q = {.left = left};
  IntRange s = range_at(g, v, whole, &q);
  *lo = s.lo;
  *hi = s.hi;
}

void value_int_range(Graph *g, Val v, i64 *lo, i64 *hi) {
  u32 left = SPAN_MANY;
  value_int_range_in(g, v, lo, hi, &left);
}

static void limit(i64 *below, Val v, i64 k) {
  if (k && (!below[v] || k < below[v])) below[v] = k;
}

/* Does every element of the operand of n occur in the result with its value? */
static bool keeps_all(Graph *g, const Node *n) {
  IntRange from, to;
  switch (n->op) { /* ops that move values, and the cast that may change them */
  case OP_cast:
    if (!dtype_is_int(graph_type(g, n->in[0])->dt) || !dtype_is_int(graph_type(g, n->out[0])->dt))
      return false;
    from = range_type(graph_type(g, n->in[0])->dt);
    to = range_type(graph_type(g, n->out[0])->dt);
    return to.lo <= from.lo && to.hi >= from.hi;
  case OP_broadcast: return type_is_nonempty(graph_type(g, n->out[0]));
  case OP_reshape:
  case OP_transpose:
  case OP_concat: return true;
  default: return false;
  }
}

/* A check bounds the elements of its operand and of the values that the operand rearranges or
 * repeats. Only checks in the main region count, because every run passes them. */
void value_int_range_checked(Graph *g, Val v, const Val *same, i64 *lo, i64 *hi) {
  i64 *below = NEWS(&g->c->scratch, i64, g->val.n);
  u32 left = SPAN_MANY, count;
  for (u32 i = g->region.at[1].node.n; i-- > 0;) {
    const Node *n = graph_node(g, g->region.at[1].node.at[i]);
    const Dim *size = n->op == OP_check_index ? node_list(n, AT_size, &count) : NULL;
    i64 least, most = 0;
    if (size && count == 1) dim_bounds(g->dims, *size, &least, &most);
    bool all = (size && count == 1) || keeps_all(g, n);
    for (u32 k = 0; all && k < n->nin; k++) {
      limit(below, same[n->in[k]], most);
      limit(below, same[n->in[k]], below[same[n->out[0]]]);
    }
  }
  for (Val k = 1; k < g->val.n; k++) below[k] = below[same[k]];
  RangeQuery q = {&left, below};
  IntRange s = range_at(g, v, whole, &q);
  *lo = s.lo;
  *hi = s.hi;
}

/* Is a <= b in every run? */
static bool at_most(Graph *g, Dim a, Dim b) {
  i64 lo, hi;
  const i64 off = DIM_MAX / 2; /* the difference must not be negative */
  if (a == b) return true;
  if (dim_is_const(a) && dim_is_const(b)) return a <= b;
  if ((dim_is_const(a) && a >= off) || (dim_is_const(b) && b >= off)) return false;
  dim_bounds(g->dims, dim_sub(g->dims, dim_addk(g->dims, b, off), a), &lo, &hi);
  return lo >= off;
}

bool index_fits(Graph *g, Val idx, const Dim *size, u32 n) {
  const Type *t = graph_type(g, idx);
  for (u32 i = 0; i < n; i++) {
    i64 lo, hi;
    u32 left = SPAN_NODES;
    RangeQuery q = {.left = &left};
    IntRange s = range_at(g, idx, n == 1 ? whole : (RangePart){t->rank - 1, i}, &q);
    dim_bounds(g->dims, size[i], &lo, &hi);
    if (s.lo > s.hi) continue; /* empty */
    if (s.lo < -lo) return false;
    if (s.hi >= lo && !(s.bound && at_most(g, s.below, size[i]))) return false;
  }
  return true;
}

bool index_is_certain(Graph *g, Val idx, Dim extent) {
  i64 lo, hi, min, max;
  value_int_range(g, idx, &lo, &hi);
  dim_bounds(g->dims, extent, &min, &max);
  return lo >= 0 && hi < min;
}

const char *index_error(Graph *g, const Node *n) {
  Val v = n->in[0];
  const Attr *text = node_attr(n, AT_text);
  if (text) return str_text(g->c, text->u.s);
  while (!graph_val(g, v)->name && graph_val(g, v)->def) { /* conversions have no name */
    const Node *def = graph_node(g, graph_val(g, v)->def);
    if (def->op != OP_cast && def->op != OP_reshape) break;
    v = def->in[0];
  }
  Str name = graph_val(g, v)->name;
  if (!name) return "an index is out of range";
  return fmt_text(g->c, "an index of '%s' is out of range", show(g->c, name));
}

/* ---- limits for generated indices ---- */

/* Limits on the results of n also hold for operands that it only moves. */
static void hand_on(Graph *g, const Node *n, i64 *below) {
  u32 count;
  i64 lo, hi;
  if (n->op == OP_check_index) {
    const Dim *size = node_list(n, AT_size, &count);
    for (u32 i = 0; i < count; i++) {
      dim_bounds(g->dims, size[i], &lo, &hi);
      limit(below, n->in[0], lo > 0 ? lo : 1);
    }
  }
  if (n->op == OP_loop) {
    const GraphRegion *body = &g->region.at[n->region[0]];
    for (u32 i = 2; i < n->nin; i++) limit(below, n->in[i], below[body->param.at[i]]);
  }
  bool moves = n->op == OP_check_index || n->op == OP_cast || op_info[n->op].kind == OK_VIEW;
  if (moves || n->op == OP_gather) limit(below, n->in[0], below[n->out[0]]);
  for (u32 i = n->op == OP_concat ? 0 : 1; i < n->nin; i++)
    if (n->op == OP_concat || n->op == OP_select) limit(below, n->in[i], below[n->out[0]]);
}

void index_limits(Graph *g, i64 *below) {
  for (RegionId b = g->region.n; b-- > 1;) /* inner regions before outer ones */
    for (u32 i = g->region.at[b].node.n; i-- > 0;)
      hand_on(g, graph_node(g, g->region.at[b].node.at[i]), below);
}
