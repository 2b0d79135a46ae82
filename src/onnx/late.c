/* late.c: sizes that are numbers of a run.
 *
 * In: an integer that a node computes, and a bound. Out: a dimension. The graph knows one way to
 * make data a dimension, nonzero, so the places below the number are found with it: their count is
 * the symbol. They serve as indices too. Numbers out of range end the run, also where the range
 * was found by looking at what computes them: that is tested once for every size, not believed.
 */
#include "onnx/own.h"

enum { LATE_MOST = 1 << 24 }; /* of a bound: a row of indices is made of that size */

Val late_places(Build *b, Val k, Dim most, const char *wrong) {
  Graph *g = b->g;
  if (wrong) {
    Val over = mk_map2(g, OP_gt, k, on_extent(b, most, DT_i64));
    Val bad = mk_map2(g, OP_or, over, mk_map2(g, OP_lt, k, mk_scalar(g, DT_i64, 0)));
    k = on_add(b, k, mk_demand(g, mk_cast(g, bad, DT_i64), wrong));
  }
  Val below = mk_map2(g, OP_lt, mk_iota(g, DT_i64, &most, 1, 0), k);
  return mk_squeeze(g, mk_nonzero(g, below), 0);
}

/* One entry of a list of sizes, a scalar. */
static bool late_entry(Build *b, Val v, Dim *out) {
  i64 lo, hi;
  u32 one;
  v = on_scalar(b, v);
  if (graph_dim_list(b->g, v, out, 1, &one)) return true;
  value_span(b->g, v, &lo, &hi);
  if (hi > LATE_MOST || hi < 0) return false;
  *out = on_dim(b, late_places(b, mk_cast(b->g, v, DT_i64), hi, "a size is out of range"), 0);
  return true;
}

bool late_dims(Build *b, Val v, Dim *out, u32 max, u32 *n) {
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
      if (!late_dims(b, graph_node(g, def)->in[i], out, max, n)) return false;
    return true;
  }
  Dim extent = t->rank ? t->dim[0] : 1;
  if (!dim_is_const(extent) || extent > (i64)(max - *n)) return false;
  for (i64 i = 0; i < extent; i++) {
    Val one = t->rank ? mk_slice_axis(g, v, 0, i, 1) : v;
    if (!late_entry(b, one, out + *n)) return false;
    ++*n;
    t = on_type(b, v);
  }
  return true;
}
