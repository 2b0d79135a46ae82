/* edit.c: the rewriting traversal of a graph.
 *
 * In: a graph and a function that visits one node. Out: the same graph with nodes dropped, added
 * and operands replaced. Each region's node list is detached and rebuilt node by node, so that
 * nodes built by the visitor (graph_add appends to g->cur) come before the visited node.
 * Replacements are recorded in one table. They are applied to the operands of every node before its
 * visit, and to the results of every region at its end. Definitions come before uses, so one
 * traversal suffices.
 *
 * Nodes built during a visit are not visited in the same traversal: run it again until nothing
 * changes. Dropped nodes keep their slot in g->node; ids never move. If a traversal changes
 * nothing, the nodes its visitor built are removed. */
#include "ir/graph/graph.h"

#include <string.h>

/* Edit with the capacity of its table. The visitor sees the Edit. */
typedef struct EditWalk {
  GraphEdit e; /* first: the Edit of a running traversal is an EditWalk */
  EditFn *visit;
  u32 cap;
} EditWalk;

static Val resolve(const EditWalk *w, Val v) {
  while (v < w->cap && w->e.with[v] != v) v = w->e.with[v];
  return v;
}

Val edit_current(const GraphEdit *e, Val v) {
  return resolve((const EditWalk *)e, v);
}

static void reserve(EditWalk *w, u32 n) {
  if (n <= w->cap) return;
  u32 cap = n + n / 2;
  Val *with = NEWS(&w->e.g->c->scratch, Val, cap);
  for (u32 v = 0; v < cap; v++) with[v] = v < w->cap ? w->e.with[v] : v;
  w->e.with = with;
  w->cap = cap;
}

void edit_replace(GraphEdit *e, Val old, Val by) {
  EditWalk *w = (EditWalk *)e;
  Val to = resolve(w, by);
  if (to == old) return;
  reserve(w, old + 1);
  e->with[old] = to;
  Value *v = graph_val(e->g, to);
  if (!v->name) v->name = graph_val(e->g, old)->name;
  e->changed = true;
}

bool edit_swap(GraphEdit *e, NodeId n, Val by) {
  Val out = graph_node(e->g, n)->out[0];
  if (!type_equal(graph_type(e->g, out), graph_type(e->g, by))) return false;
  edit_replace(e, out, by);
  return true;
}

static void visit_region(EditWalk *w, RegionId b);

/* Empties the regions of a dropped node, so that nothing in them counts as a use. */
static void clear(Graph *g, NodeId id) {
  const Node *n = graph_node(g, id);
  for (u32 k = 0; k < n->nregion; k++) {
    GraphRegion *b = &g->region.at[n->region[k]];
    for (u32 i = 0; i < b->node.n; i++) clear(g, b->node.at[i]);
    b->node.n = b->ret.n = 0;
  }
}

/* Visits nodes in order and appends the kept ones to g->cur. The list is no longer part of a
 * region. */
static void visit_nodes(EditWalk *w, const NodeId *list, u32 count) {
  Graph *g = w->e.g;
  RegionId here = g->cur;
  for (u32 i = 0; i < count; i++) {
    NodeId id = list[i];
    Node *n = graph_node(g, id);
    for (u32 k = 0; k < n->nin; k++) n->in[k] = resolve(w, n->in[k]);
    g->loc = n->loc;
    if (!w->visit(&w->e, id)) {
      w->e.changed = true;
      clear(g, id);
      continue;
    }
    u32 nregion = graph_node(g, id)->nregion;
    for (u32 k = 0; k < nregion; k++) visit_region(w, graph_node(g, id)->region[k]);
    g->cur = here;
    *vec_push(&g->c->work, &g->region.at[here].node) = id;
  }
}

static void visit_region(EditWalk *w, RegionId b) {
  Graph *g = w->e.g;
  GraphRegion *region = &g->region.at[b];
  u32 count = region->node.n;
  NodeId *list = NEWS(&g->c->scratch, NodeId, count);
  for (u32 i = 0; i < count; i++) list[i] = region->node.at[i];
  region->node.n = 0;
  g->cur = b;
  visit_nodes(w, list, count);
  region = &g->region.at[b];
  if (!w->e.changed) { /* drop nodes of failed attempts */
    region->node.n = count;
    if (count) memcpy(region->node.at, list, count * sizeof *list);
  }
  for (u32 i = 0; i < region->ret.n; i++) region->ret.at[i] = resolve(w, region->ret.at[i]);
}

void edit_inline(GraphEdit *e, RegionId b, Val *ret) {
  EditWalk *w = (EditWalk *)e;
  Graph *g = e->g;
  Loc loc = g->loc;
  GraphRegion *region = &g->region.at[b];
  u32 count = region->node.n, nret = region->ret.n;
  const NodeId *list = region->node.at;
  const Val *from = region->ret.at;
  region->node.n = region->ret.n = 0;
  visit_nodes(w, list, count);
  for (u32 i = 0; i < nret; i++) ret[i] = resolve(w, from[i]);
  g->loc = loc;
  e->changed = true;
}

bool edit_run(Graph *g, EditFn *visit, void *user) {
  EditWalk w = {{g, NULL, user, false}, visit, 0};
  Loc loc = g->loc;
  reserve(&w, g->val.n);
  visit_region(&w, 1);
  g->cur = 1;
  g->loc = loc;
  return w.e.changed;
}
