/* onnx_dynamic_dims.c: run-time sizes.
 *
 * In: an integer that a node computes, and a bound. Out: a dimension. One core operator
 * turns data into a dimension: nonzero. It finds the positions below the integer. Their count is
 * the symbol, and they also serve as indices. Integers out of range end the run. A range that was
 * inferred is checked once per size too. A bound may follow from a check of the same indices
 * elsewhere: max(index) + 1 is at most N if index also selects from N rows. Exporters hide known
 * elements by a selection, such as Where(list == -1, 1, list) before every Expand of torch. These
 * elements are looked up one by one and stay static.
 */
#include "front/onnx/onnx_import.h"

enum { DYNAMIC_MAX = 1 << 24 }; /* largest bound: a row of indices of that size is built */

Val dynamic_iota(Build *b, Val k, Dim most, const char *wrong) {
  Graph *g = b->g;
  if (wrong) {
    Val over = mk_gt(g, k, mk_extent(g, most, DT_i64));
    Val bad = mk_or(g, over, mk_lt(g, k, mk_scalar(g, DT_i64, 0)));
    k = mk_add(g, k, mk_assert(g, mk_cast(g, bad, DT_i64), wrong));
  }
  Val below = mk_lt(g, mk_iota(g, DT_i64, &most, 1, 0), k);
  return mk_squeeze(g, mk_nonzero(g, below), 0);
}

/* ---- known elements ---- */

enum { ENTRY_DEPTH = 12 };

typedef struct ShapeEntry {
  i64 negative; /* a negative number, or 0: use the dimension */
  Dim dim;
} ShapeEntry;

static bool entry_at(Build *b, Val v, i64 at, ShapeEntry *out, u32 depth);

/* Result of a comparison at element `at`, if it is certain. */
static bool known_equal(Build *b, Val v, i64 at, bool *yes, u32 depth) {
  const Node *n = graph_def(b->g, v, OP_eq);
  ShapeEntry x, y;
  if (!n || !entry_at(b, n->in[0], at, &x, depth) || !entry_at(b, n->in[1], at, &y, depth))
    return false;
  i64 lo, hi;
  dim_bounds(b->ds, x.negative ? y.dim : x.dim, &lo, &hi);
  bool same = x.negative == y.negative && x.dim == y.dim;
  bool differ =
      (x.negative != 0) != (y.negative != 0) ? lo >= 0 : dim_is_const(x.dim) && dim_is_const(y.dim);
  *yes = same;
  return same || differ;
}

static bool entry_of_concat(Build *b, const Node *n, i64 at, ShapeEntry *out, u32 depth) {
  for (u32 i = 0; i < n->nin; i++) {
    Dim d = on_type(b, n->in[i])->dim[0];
    if (!dim_is_const(d)) return false;
    if (at < d) return entry_at(b, n->in[i], at, out, depth);
    at -= d;
  }
  return false;
}

static bool entry_at(Build *b, Val v, i64 at, ShapeEntry *out, u32 depth) {
  Graph *g = b->g;
  const Type *t = on_type(b, v);
  if (depth > ENTRY_DEPTH || t->rank > 1 || !(dtype_is_int(t->dt)) || t->dt == DT_u64) return false;
  if (!t->rank || t->dim[0] == 1) at = 0;
  const Tensor *known = graph_const(g, v);
  if (known && (u64)at >= known->n) return false;
  if (known) {
    i64 k = tensor_get(known, (u64)at).i;
    *out = (ShapeEntry){k < 0 ? k : 0, k < 0 ? 0 : k};
    return true;
  }
  NodeId def = graph_val(g, v)->def;
  const Node *n = def ? graph_node(g, def) : NULL;
  u32 count = 0;
  bool yes;
  switch (n ? n->op : OP_COUNT) {
  case OP_dims: {
    const Dim *list = node_list(n, AT_shape, &count);
    if (at >= (i64)count) return false;
    *out = (ShapeEntry){0, list[at]};
    return true;
  }
  case OP_concat: return entry_of_concat(b, n, at, out, depth + 1);
  case OP_reshape: return entry_at(b, n->in[0], at, out, depth + 1);
  case OP_select:
    return known_equal(b, n->in[0], at, &yes, depth + 1) &&
           entry_at(b, n->in[yes ? 1 : 2], at, out, depth + 1);
  default: return false;
  }
}

/* ---- run-time elements ---- */

/* The name that the model gives to a size, or to the list it is in. */
static Str name_of_size(Graph *g, Val v) {
  const Node *n;
  while (!graph_val(g, v)->name && (n = graph_producer(g, v)) &&
         (n->op == OP_cast || op_info[n->op].kind == OK_VIEW))
    v = n->in[0];
  return graph_val(g, v)->def ? graph_val(g, v)->name
                              : 0; /* the name of an input stands for its shape */
}

/* One element of a list of sizes, a scalar. A size that nothing bounds is bounded by checks of the
 * indices it is computed from, else by --max-shapes. Equal sizes share a symbol and a bound. */
static bool dynamic_entry(Build *b, Val v, Dim *out) {
  Import *im = b->im;
  i64 lo, hi, most;
  u32 one;
  v = on_scalar(b, v);
  if (graph_dim_list(b->g, v, out, 1, &one)) return true;
  value_int_range(b->g, v, &lo, &hi);
  bool late = hi > DYNAMIC_MAX;
  if (late) {
    const Val *same = graph_same(b->g);
    im->unbound = name_of_size(b->g, v);
    most = extents_bound_dim(&im->extents, im->unbound);
    for (u32 i = 0; i < im->late.n; i++)
      if (same[im->late.at[i].size] == same[v]) {
        *out = im->late.at[i].dim;
        return true;
      }
    value_int_range_checked(b->g, v, same, &lo, &hi);
    if (most >= 0 && most < hi) hi = most;
  }
  if (hi > DYNAMIC_MAX || hi < 0) return false;
  *out = on_dim(b, dynamic_iota(b, mk_cast(b->g, v, DT_i64), hi, "a size is out of range"), 0);
  if (late && b->g->cur == 1) *vec_push(&im->c->work, &im->late) = (LateSize){v, *out};
  return true;
}

bool dynamic_dims(Build *b, Val v, Dim *out, u32 max, u32 *n) {
  Graph *g = b->g;
  u32 k;
  const Type *t = on_type(b, v);
  if (t->rank > 1 || !dtype_is_int(t->dt) || t->dt == DT_u64) return false;
  if (graph_dim_list(g, v, out + *n, max - *n, &k)) {
    *n += k;
    return true;
  }
  NodeId def = graph_val(g, v)->def;
  const Node *x = def ? graph_node(g, def) : NULL;
  if (x && x->op == OP_concat) {
    u32 nin = x->nin;
    for (u32 i = 0; i < nin; i++)
      if (!dynamic_dims(b, graph_node(g, def)->in[i], out, max, n)) return false;
    return true;
  }
  Dim extent = t->rank ? t->dim[0] : 1;
  if (!dim_is_const(extent) || extent > (i64)(max - *n)) return false;
  for (i64 i = 0; i < extent; i++) {
    ShapeEntry e;
    if (entry_at(b, v, i, &e, 0) && !e.negative) {
      out[(*n)++] = e.dim;
      continue;
    }
    Val one = t->rank ? mk_slice_axis(g, v, 0, i, 1) : v;
    if (!dynamic_entry(b, one, out + *n)) return false;
    ++*n;
    t = on_type(b, v);
  }
  return true;
}
