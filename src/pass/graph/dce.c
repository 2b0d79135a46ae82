/* dce.c: dead code elimination.
 *
 * In: a graph. Out: the same graph without dead nodes. A node is live if one of its outputs is an
 * operand of a live node or a result of the graph. It is also live if it sets a symbol that the
 * type or an attribute of a live node mentions. A live `if` or `loop` keeps all results of its
 * regions alive. Parameters stay, and so do unused outputs and carried values of control nodes.
 *
 * needs: nothing  keeps: types, order of nodes  breaks: nothing
 */
#include "pass/pass.h"

typedef struct Dce {
  Graph *g;
  bool *live;       /* by node */
  bool *seen;       /* by symbol */
  NodeId *setter;   /* by symbol: the node that sets it */
  VEC(NodeId) todo; /* live nodes whose operands are not visited yet */
} Dce;

static void need_node(Dce *d, NodeId n) {
  if (!n || d->live[n]) return;
  d->live[n] = true;
  *vec_push(&d->g->c->scratch, &d->todo) = n;
}

static void need_dim(Dce *d, Dim x) {
  for (SymVisit w = dim_visit(d->g->dims, x); dim_next(&w);) {
    if (d->seen[w.sym]) w.a = w.b = 0;
    if (!d->seen[w.sym]) need_node(d, d->setter[w.sym]);
    d->seen[w.sym] = true;
  }
}

static void need_value(Dce *d, Val v) {
  const Type *t = graph_type(d->g, v);
  need_node(d, graph_val(d->g, v)->def);
  while (t->kind != TY_tensor) t = t->elem;
  for (u32 i = 0; i < t->rank; i++) need_dim(d, t->dim[i]);
}

static void need_block(Dce *d, RegionId b) {
  const GraphRegion *region = &d->g->region.at[b];
  for (u32 i = 0; i < region->param.n; i++) need_value(d, region->param.at[i]);
  for (u32 i = 0; i < region->ret.n; i++) need_value(d, region->ret.at[i]);
}

static void look_at(Dce *d, NodeId id) {
  const Node *n = graph_node(d->g, id);
  for (u32 i = 0; i < n->nin; i++) need_value(d, n->in[i]);
  for (u32 i = 0; i < n->nout; i++) need_value(d, n->out[i]);
  for (u32 i = 0; i < n->nregion; i++) need_block(d, n->region[i]);
  for (u32 i = 0; i < n->nattr; i++) {
    const Attr *a = &n->attr[i];
    if (a->kind != AK_list || !attr_is_dims(a->key)) continue;
    for (u32 k = 0; k < a->n; k++) need_dim(d, a->u.list[k]);
  }
}

static void find_setters(Dce *d, RegionId b) {
  const GraphRegion *region = &d->g->region.at[b];
  for (u32 i = 0; i < region->node.n; i++) {
    const Node *n = graph_node(d->g, region->node.at[i]);
    for (u32 k = 0; k < n->nsym; k++) d->setter[n->sym[k]] = region->node.at[i];
    for (u32 k = 0; k < n->nregion; k++) find_setters(d, n->region[k]);
  }
}

static bool visit(GraphEdit *e, NodeId id) {
  const Dce *d = e->user;
  return d->live[id];
}

void dce(Graph *g) {
  Arena *a = &g->c->scratch;
  u32 nsyms = dim_nsyms(g->dims) + 1;
  Dce d = {.g = g};
  d.live = NEWS(a, bool, g->node.n);
  d.seen = NEWS(a, bool, nsyms);
  d.setter = NEWS(a, NodeId, nsyms);
  find_setters(&d, 1);
  need_block(&d, 1);
  while (d.todo.n) look_at(&d, d.todo.at[--d.todo.n]);
  edit_run(g, visit, &d);
}
