/* infer_pass.c: recomputes the type of every value from the inputs.
 *
 * In: a graph. Out: the same nodes. A data symbol that is now known (an `if` whose branches agree,
 * a loop with a constant trip count) is replaced everywhere.
 *
 * needs: nothing  keeps: nodes, operands, order  breaks: nothing
 */
#include "pass/pass.h"

void infer(Graph *g) {
  SymbolRebind r = rebind_new(g);
  graph_refine(g, &r);
}
