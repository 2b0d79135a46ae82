/* group.c: lists the groups of a fused graph: what becomes one kernel, with the name of what it
 * computes, where that has one, and the nodes of the model it comes from.
 *
 *   group mul 'y' (gelu): 'erf' + 'y'
 *
 * In: a graph marked by fuse. Out: a line for each group, in order.
 */
#include "pass/graph/match.h"
#include "pass/pass.h"

typedef struct NameList {
  Graph *g;
  Text *t;
  Str last; /* node named last */
  const char *name;
  u32 count;
} NameList;

/* Names of all nodes below, in the order they run; of what is computed, the outermost counts. */
static void walk(NameList *l, const Node *n) {
  Graph *g = l->g;
  if (!l->name && n->nout == 1) l->name = match_name(g, n->out[0]);
  for (u32 i = 0; i < n->nin; i++) {
    const Value *v = graph_val(g, n->in[i]);
    if (v->home != HOME_buffer && v->def) walk(l, graph_node(g, v->def));
  }
  Str name = n->loc.node ? n->loc.node : n->loc.op;
  if (!name) name = str_of(g->c, op_info[n->op].name);
  if (name == l->last) return;
  text_fmt(l->t, l->count++ ? " + '%s'" : "'%s'", show(g->c, name));
  l->last = name;
}

/* Leaves and reshapes take no kernel; a test of indices computes nothing. */
static bool is_root(Graph *g, const Node *n) {
  if (op_info[n->op].kind == OK_LEAF || op_is(n->op, OF_ALIAS) || !n->nout) return false;
  return graph_val(g, n->out[0])->home == HOME_buffer;
}

void group_list(Graph *g, Text *out, const char *before) {
  for (BlkId b = 1; b < g->blk.n; b++)
    for (u32 i = 0; i < g->blk.at[b].node.n; i++) {
      const Node *n = graph_node(g, g->blk.at[b].node.at[i]);
      if (!is_root(g, n)) continue;
      Text nodes = text_new(&g->c->scratch);
      NameList l = {.g = g, .t = &nodes};
      walk(&l, n);
      text_fmt(out, "%sgroup %s", before, op_info[n->op].name);
      Str label = graph_val(g, n->out[0])->name;
      if (label) text_fmt(out, " '%s'", show(g->c, label));
      if (l.name) text_fmt(out, " (%s)", l.name);
      text_fmt(out, ": %s\n", text_cstr(&nodes));
    }
}
