/* regroup.c: convolutions whose groups are too small for vectors become depthwise ones.
 *
 * In: a graph. Out: the same graph where a convolution that makes several results of each of its
 * channels reads every channel as many times: a gather repeats it, and lanes run along channels of
 * operand and result alike. A result is the sum of the same products in the same order. The copy
 * has a window's number of products for each of its elements, and costs little beside them.
 *
 * Only for machines with vectors, and not where memory is to be saved.
 *
 * needs: nothing; in front of pairs, which looks for bytes behind a gather  keeps: values
 * breaks: nothing (leaves equal gathers of one value to cse)
 */
#include "pass/pass.h"

#include <string.h>

/* Elements of a window: fewer do not pay for the copy. */
enum { LEAST_WINDOW = 3 };

/* How many results each channel has; 1: none of this, or one as a depthwise convolution has it. */
static i64 results_each(Graph *g, const Node *n) {
  const Type *x = graph_type(g, n->in[0]), *k = graph_type(g, n->in[1]);
  i64 group = node_int(n, AT_group, 1), window = 1;
  for (u32 i = 2; i < k->rank && window < LEAST_WINDOW; i++) window *= k->dim[i];
  if (window < LEAST_WINDOW) return 1;
  bool known = dim_is_const(x->dim[1]) && dim_is_const(k->dim[0]) && k->dim[1] == 1;
  return known && group > 1 && group == x->dim[1] ? k->dim[0] / group : 1;
}

/* Every channel of v so many times; of bytes less a zero point the bytes are moved. */
static Val repeat_channels(Graph *g, Val v, i64 times) {
  i64 zero, n = graph_type(g, v)->dim[1] * times, *from = NEWS(&g->c->scratch, i64, (size_t)n);
  Val bytes = graph_narrow(g, v, &zero);
  for (i64 i = 0; i < n; i++) from[i] = i / times;
  Val r = mk_gather(g, bytes ? bytes : v, mk_ints(g, from, (u32)n), 1);
  if (!bytes) return r;
  r = mk_cast(g, r, DT_i32);
  const Node *less = graph_def(g, v, OP_sub);
  return less ? mk_map2(g, OP_sub, r, less->in[1]) : r;
}

static bool visit(Edit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  if (n->op != OP_conv) return true;
  i64 times = results_each(g, n);
  if (times == 1) return true;
  u32 nat = n->nattr;
  Attr *at = NEWS(&g->c->keep, Attr, nat);
  memcpy(at, n->attr, nat * sizeof *at);
  Val in[2] = {n->in[0], n->in[1]};
  g->loc = n->loc;
  in[0] = repeat_channels(g, in[0], times);
  for (u32 i = 0; i < nat; i++)
    if (at[i].key == AT_group) at[i].u.i = graph_type(g, in[0])->dim[1];
  Val made = graph_node(g, graph_add(g, OP_conv, in, 2, at, nat))->out[0];
  return !edit_swap(e, id, made);
}

void regroup(Unit *u) {
  if (u->target->lanes < 4 || u->aim == AIM_ram) return;
  if (edit_run(u->g, visit, NULL)) u->g->left = LEFT_equal;
}
