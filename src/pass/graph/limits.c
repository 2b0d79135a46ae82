/* limits.c: casts to bytes of what cannot be large.
 *
 * In: a graph. Out: the same graph, with sat = 2 at casts from f32 to bytes whose operand is a
 * number between -2^29 and 2^29, and no NaN, whatever the inputs are: sums, products and bounds of
 * constants and of integers, as quantised networks have them. Method: intervals (reach.c).
 *
 * needs: nothing; behind all passes that make constants  keeps: values  breaks: nothing
 */
#include "pass/pass.h"

enum { MOST_STEPS = 256 }; /* operands looked at for one cast */
#define SMALL 0x1p29

void limits(Graph *g) {
  for (NodeId i = 1; i < g->node.n; i++) {
    Node *n = graph_node(g, i);
    u32 left = MOST_STEPS;
    if (n->op != OP_cast || node_int(n, AT_sat, 0) != 1) continue;
    DType to = graph_type(g, n->out[0])->dt;
    if ((to != DT_u8 && to != DT_i8) || graph_type(g, n->in[0])->dt != DT_f32) continue;
    Bounds r = value_limits(g, n->in[0], &left);
    if (r.nan || r.lo < -SMALL || r.hi > SMALL) continue;
    for (u32 k = 0; k < n->nattr; k++)
      if (n->attr[k].key == AT_sat) n->attr[k].u.i = CAST_SMALL;
  }
}
