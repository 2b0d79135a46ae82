/* infer_pass.c: computes the type of every value again, from the inputs on.
 *
 * In: a graph. Out: the same nodes; a size that used to be a symbol of the data and is known now
 * (an `if` whose branches agree, a loop whose trip count is a constant) is put in its place
 * everywhere.
 *
 * needs: nothing  keeps: nodes, operands, order  breaks: nothing
 */
#include "pass/pass.h"

void infer(Graph *g) {
  Rebind r = rebind_new(g);
  graph_refine(g, &r);
}
