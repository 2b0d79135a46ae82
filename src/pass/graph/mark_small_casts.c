/* mark_small_casts.c: marks casts to int8 whose operand is provably small.
 *
 * In: a graph. Out: the same graph, with sat = 2 at casts from f32 to int8 or u8 whose operand is
 * within +-2^29 and never NaN, whatever the inputs are: sums, products and bounds of constants and
 * integers, as in quantized networks. Method: interval arithmetic (float_range.c).
 *
 * Redundant bounds are dropped: in int8(round(max(x, a)) + z), the maximum goes if values below a
 * saturate anyway. This also removes activations whose range is that of int8. The maximum
 * stays if x may be large, because only the bound makes it small.
 *
 * needs: nothing; after all passes that create constants  keeps: values  breaks: nothing
 */
#include "pass/pass.h"

#include <math.h>

enum { MAX_STEPS = 256 }; /* nodes visited for one cast */
#define SMALL 0x1p29

static bool is_to_bytes(Graph *g, const Node *n) {
  if (n->op != OP_cast || node_int(n, AT_sat, 0) != 1) return false;
  DType to = graph_type(g, n->out[0])->dt;
  return (to == DT_u8 || to == DT_i8) && graph_type(g, n->in[0])->dt == DT_f32;
}

static bool is_small(Graph *g, Val v) {
  u32 left = MAX_STEPS;
  FloatRange r = value_float_range_full(g, v, &left);
  return !r.nan && r.lo >= -SMALL && r.hi <= SMALL;
}

/* v without bounds outside of lo and hi; v itself if there are none. NaN stays NaN. */
static Val unbounded(Graph *g, Val v, double lo, double hi) {
  for (;;) {
    const Node *n = graph_val(g, v)->def ? graph_node(g, graph_val(g, v)->def) : NULL;
    if (!n || (n->op != OP_max && n->op != OP_min)) return v;
    const Tensor *t = graph_const(g, n->in[1]);
    if (!t || t->n != 1 || !type_equal(graph_type(g, n->in[0]), graph_type(g, v))) return v;
    double bound = tensor_get(t, 0).f;
    if (!(n->op == OP_max ? bound <= lo : bound >= hi)) return v;
    v = n->in[0];
  }
}

/* int8(round(max(min(x, b), a)) + z) -> int8(round(x) + z) */
static bool drop_bounds(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  Scalar lo, hi;
  if (!is_to_bytes(g, &n)) return true;
  const Node *moved = graph_def(g, n.in[0], OP_add);
  Val z = moved ? moved->in[1] : 0;
  const Tensor *t = z ? graph_const(g, z) : NULL;
  if (z && (!t || t->n != 1)) return true;
  const Node *round = graph_def(g, z ? moved->in[0] : n.in[0], OP_round);
  if (!round) return true;
  double zero = z ? tensor_get(t, 0).f : 0;
  if (zero != floor(zero)) return true; /* the cast truncates */
  dtype_limits(graph_type(g, n.out[0])->dt, &lo, &hi);
  Val x = unbounded(g, round->in[0], (double)lo.i - zero, (double)hi.i - zero);
  if (x == round->in[0] || !is_small(g, x)) return true;
  g->loc = n.loc;
  Val v = mk_round(g, x);
  if (z) v = mk_add(g, v, z);
  return !edit_swap(e, id, mk_node(g, OP_cast, &v, 1, n.attr, n.nattr));
}

void mark_small_casts(Graph *g) {
  if (edit_run(g, drop_bounds, NULL)) g->left = LEFT_dead;
  for (NodeId i = 1; i < g->node.n; i++) {
    Node *n = graph_node(g, i);
    if (!is_to_bytes(g, n) || !is_small(g, n->in[0])) continue;
    for (u32 k = 0; k < n->nattr; k++)
      if (n->attr[k].key == AT_sat) n->attr[k].u.i = CAST_SMALL;
  }
}
