/* cse.c: common subexpression elimination.
 *
 * In: a graph. Out: the same graph, where a node with the same operator, operands and attributes as
 * an earlier one, in its region or an enclosing one, is replaced by that one. Operands of
 * commutative operators match in either order. Constants up to KEY_CONTENT bytes are compared by
 * content, larger ones by data address, so that big weights are never read. Control nodes are left
 * alone.
 *
 * needs: nothing  keeps: types  breaks: nothing (operands of dropped nodes are left to dce)
 */
#include <string.h>
#include "pass/pass.h"

typedef struct Cse {
  Graph *g;
  Map first;        /* key -> newest node with it */
  NodeId *next;     /* by node: an older one with the same key */
  RegionId *home;   /* by node: its region */
  RegionId *parent; /* by region: the enclosing one */
  SymbolRebind rebind;
} Cse;

static bool visible(const Cse *s, RegionId from, RegionId b) {
  while (from && from != b) from = s->parent[from];
  return from == b;
}

static bool same_const(Graph *g, const Node *x, const Node *y) {
  if (x->op != OP_const) return true;
  const Tensor *a = node_attr(x, AT_value)->u.t, *b = node_attr(y, AT_value)->u.t;
  return a->data == b->data || (tensor_bytes(a) <= KEY_CONTENT && tensor_equal(g->c, a, b));
}

static bool visit(GraphEdit *e, NodeId id) {
  Cse *s = e->user;
  Graph *g = e->g;
  Node *n = graph_node(g, id);
  for (u32 i = 0; i < n->nregion; i++) s->parent[n->region[i]] = g->cur;
  if (n->nregion) return true;
  Mark m = arena_mark(&g->c->scratch);
  StrBuf key = node_key(&g->c->scratch, n);
  u32 *slot = map_put_bytes(&s->first, key.at, key.n);
  arena_rewind(&g->c->scratch, m);
  for (NodeId old = *slot; old; old = s->next[old]) {
    const Node *o = graph_node(g, old);
    if (!visible(s, g->cur, s->home[old]) || !same_const(g, o, n)) continue;
    for (u32 i = 0; i < n->nout; i++) {
      rebind_result(&s->rebind, n, i, graph_type(g, o->out[i]));
      edit_replace(e, n->out[i], o->out[i]);
    }
    return false;
  }
  s->next[id] = *slot;
  s->home[id] = g->cur;
  *slot = id;
  return true;
}

/* Repeats, because merging two symbols makes more nodes equal. */
void cse(Graph *g) {
  Arena *a = &g->c->scratch;
  Cse s = {.g = g};
  do {
    s.rebind = rebind_new(g);
    s.first = map_new(&g->c->work); /* scratch is reused while keys are built */
    s.next = NEWS(a, NodeId, g->node.n);
    s.home = NEWS(a, RegionId, g->node.n);
    s.parent = NEWS(a, RegionId, g->region.n);
    bool news = edit_run(g, visit, &s);
    if (s.rebind.to.n || (news && g->region.n > 2)) graph_refine(g, &s.rebind);
  } while (s.rebind.to.n);
}
