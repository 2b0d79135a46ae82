/* infer_control.c: output types of if and loop, from their regions.
 *
 * If the branches of an if differ in an extent, or the trip count of a loop is unknown, the extent
 * becomes a symbol that the node sets. */
#include "ir/graph/infer.h"

#include <string.h>

static void infer_if(Graph *g, Node *n, Type *out) {
  const GraphRegion *then = &g->region.at[n->region[0]], *other = &g->region.at[n->region[1]];
  Type *c = graph_type(g, n->in[0]);
  if (c->dt != DT_bool || c->rank)
    fail(g->c, ERR_input, n->loc, "if: the condition has another type, expected a bool scalar");
  if (then->ret.n != other->ret.n)
    fail(g->c, ERR_input, n->loc, "if: the branches have %u and %u results, expected equal numbers",
         then->ret.n, other->ret.n);
  u32 k = 0;
  for (u32 i = 0; i < n->nout; i++) {
    const Type *a = graph_type(g, then->ret.at[i]), *b = graph_type(g, other->ret.at[i]);
    if (a->kind != TY_tensor || b->kind != TY_tensor || a->dt != b->dt || a->rank != b->rank)
      fail(g->c, ERR_unsupported, n->loc,
           "If: the branches give result %u different element types or ranks", i);
    Dim dim[MAX_RANK];
    for (u32 j = 0; j < a->rank; j++) {
      dim[j] = a->dim[j];
      if (a->dim[j] == b->dim[j]) continue;
      i64 alo, ahi, blo, bhi;
      dim_bounds(g->dims, a->dim[j], &alo, &ahi);
      dim_bounds(g->dims, b->dim[j], &blo, &bhi);
      dim[j] = data_symbol(g, n, k++, alo < blo ? alo : blo, ahi > bhi ? ahi : bhi);
    }
    out[i] = type_tensor(&g->c->work, a->dt, dim, a->rank);
  }
}

bool loop_is_counted(Graph *g, const Node *n) {
  const Tensor *t = graph_const(g, n->in[1]);
  const GraphRegion *b = &g->region.at[n->region[0]];
  Val last = b->ret.at[0];
  if (!t || !tensor_get(t, 0).i) return false;
  if (last == b->param.at[1]) return true;
  t = graph_const(g, last);
  return t && tensor_get(t, 0).i;
}

i64 loop_trip_count(Graph *g, const Node *n) {
  const Tensor *trip = graph_const(g, n->in[0]);
  return trip && loop_is_counted(g, n) ? tensor_get(trip, 0).i : -1;
}

static void want_scalar(Graph *g, const Node *n, Val v, DType dt, const char *what) {
  const Type *t = graph_type(g, v);
  if (t->kind != TY_tensor || t->dt != dt || t->rank)
    fail(g->c, ERR_input, n->loc, "%s: the %s has another type, expected a scalar of type %s",
         op_info[n->op].name, what, dtype_info[dt].name);
}

static bool sets(Graph *g, const GraphRegion *b, Sym s) {
  for (u32 i = 0; i < b->node.n; i++) {
    const Node *n = graph_node(g, b->node.at[i]);
    for (u32 k = 0; k < n->nsym; k++)
      if (n->sym[k] == s) return true;
    for (u32 k = 0; k < n->nregion; k++)
      if (sets(g, &g->region.at[n->region[k]], s)) return true;
  }
  return false;
}

/* Does the dimension depend on a symbol that a node of the region sets? */
static bool varies(Graph *g, const GraphRegion *b, Dim d) {
  for (SymVisit w = dim_visit(g->dims, d); dim_next(&w);)
    if (w.info->kind == SY_data && sets(g, b, w.sym)) return true;
  return false;
}

static void infer_loop(Graph *g, Node *n, Type *out) {
  const GraphRegion *b = &g->region.at[n->region[0]];
  i64 scans = node_int(n, AT_scans, 0);
  Loc loc = n->loc;
  if (scans < 0 || scans > b->ret.n)
    fail(g->c, ERR_input, loc,
         "loop: scans is %lld, expected 0 to the number of results of the body", (long long)scans);
  u32 ncarried = n->nin - 2, nscan = (u32)scans;
  if (b->param.n != n->nin || b->ret.n != 1 + ncarried + nscan)
    fail(g->c, ERR_input, loc,
         "loop: the body has %u parameters and %u results, expected %u and %u", b->param.n,
         b->ret.n, n->nin, 1 + ncarried + nscan);
  want_scalar(g, n, n->in[0], DT_i64, "trip count");
  want_scalar(g, n, n->in[1], DT_bool, "condition");
  want_scalar(g, n, b->param.at[0], DT_i64, "first parameter");
  want_scalar(g, n, b->param.at[1], DT_bool, "second parameter");
  want_scalar(g, n, b->ret.at[0], DT_bool, "first result of the body");
  for (u32 i = 0; i < ncarried; i++) {
    const Type *t = graph_type(g, n->in[2 + i]);
    if (!type_equal(t, graph_type(g, b->param.at[2 + i])))
      fail(g->c, ERR_input, loc, "loop: carried value %u and its parameter have different types",
           i);
    if (!type_equal(t, graph_type(g, b->ret.at[1 + i])))
      fail(g->c, ERR_unsupported, loc,
           "Loop: carried value %u changes its type or shape between iterations", i);
    out[i] = *t;
  }
  i64 hi = DIM_MAX;
  Dim trip = -1;
  u32 one;
  bool known = graph_dim_list(g, n->in[0], &trip, 1, &one);
  i64 lo, max;
  if (known) {
    dim_bounds(g->dims, trip, &lo, &hi);
  } else {
    value_int_range(g, n->in[0], &lo, &max);
    if (max < hi) hi = max < 0 ? 0 : max;
  }
  if (nscan && (!known || !loop_is_counted(g, n))) trip = data_symbol(g, n, 0, 0, hi);
  for (u32 i = 0; i < nscan; i++) {
    const Type *t = graph_type(g, b->ret.at[1 + ncarried + i]);
    Dim dim[MAX_RANK];
    if (t->kind != TY_tensor || t->rank + 1 > MAX_RANK)
      fail(g->c, ERR_unsupported, loc, "Loop: scan output %u is not a tensor", i);
    for (u32 k = 0; k < t->rank; k++)
      if (varies(g, b, t->dim[k]))
        fail(g->c, ERR_unsupported, loc,
             "Loop: the shape of scan output %u differs between iterations", i);
    dim[0] = trip;
    if (t->rank) memcpy(dim + 1, t->dim, t->rank * sizeof *dim);
    out[ncarried + i] = sized_type(g, n, t->dt, dim, t->rank + 1);
  }
}

void infer_control(Graph *g, Node *n, Type *out) {
  u32 nret = g->region.at[n->region[0]].ret.n, want = n->op == OP_loop ? nret - 1 : nret;
  if (n->nout != want)
    fail(g->c, ERR_input, n->loc, "%s: the body has %u results, expected %u, one for each output",
         op_info[n->op].name, nret, n->nout);
  if (n->op == OP_if)
    infer_if(g, n, out);
  else
    infer_loop(g, n, out);
}
