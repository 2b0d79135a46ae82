/* grad_reverse.c: reverse-mode automatic differentiation on the graph.
 *
 * In: a graph and values of it: y, xs, and zs, which are held fixed. Out: for each x the gradient
 * of sum(y). Visits the nodes between xs and y, last one first. Each passes the gradient of its
 * result to its operands by its row of grad.def. The result consists of core operators, so engines
 * do not know about gradients. Integers and bool end a path. Empty values and unknown dimensions
 * are supported.
 */
#include "pass/graph/grad_internal.h"

typedef enum GradKind { GK_rule, GK_flat, GK_none } GradKind;

static const struct {
  GradKind kind;
  BackFn *rule;
  const char *reason;
} rows[OP_COUNT] = {
#define RULE(op, function)   [OP_##op] = {GK_rule, function, NULL},
#define MAP1(op, da)         [OP_##op] = {GK_rule, grad_map, NULL},
#define MAP2(op, da, db)     [OP_##op] = {GK_rule, grad_map, NULL},
#define MAP3(op, da, db, dc) [OP_##op] = {GK_rule, grad_map, NULL},
#define FLAT(op, reason)     [OP_##op] = {GK_flat, NULL, reason},
#define NONE(op, reason)     [OP_##op] = {GK_none, NULL, reason},
#include "pass/graph/grad.def"
};

const char *grad_reason(Op op) {
  if (rows[op].kind == GK_rule) return rows[op].rule ? NULL : "it has no row in grad.def";
  return rows[op].reason;
}

_Noreturn void grad_refuse(Graph *g, const Node *n, const char *why) {
  fail(g->c, ERR_unsupported, n->loc, "the gradient of %s is not supported: %s",
       op_info[n->op].name, why);
}

/* ---- gradients of values ---- */

bool grad_needed(const Grad *d, Val x) {
  return x < d->nval && d->active[x];
}

static Val unbroadcast(Graph *g, Val v, const Type *t) {
  Type have = *graph_type(g, v);
  i64 axes[MAX_RANK];
  u32 n = 0, more = have.rank - t->rank;
  for (u32 i = 0; i < have.rank; i++)
    if (i < more || (t->dim[i - more] == 1 && have.dim[i] != 1)) axes[n++] = i;
  if (n) v = mk_reduce(g, OP_reduce_sum, v, axes, n, true);
  return mk_reshape(g, v, t->dim, t->rank);
}

void grad_accumulate(Grad *d, Val x, Val v) {
  if (!grad_needed(d, x)) return;
  Type t = *graph_type(d->g, x);
  v = unbroadcast(d->g, v, &t);
  d->adj[x] = d->adj[x] ? mk_add(d->g, d->adj[x], v) : v;
}

Val grad_zeros(Graph *g, Val like) {
  Type t = *graph_type(g, like);
  return mk_broadcast(g, mk_scalar(g, t.dt, 0), t.dim, t.rank);
}

Val grad_or_zeros(Grad *d, Val x) {
  Val v = x < d->nval ? d->adj[x] : 0;
  return v ? v : grad_zeros(d->g, x);
}

/* ---- values that depend on xs ---- */

static void mark(Grad *d, Val v, bool on) {
  if (!on || d->fixed[v] || d->active[v] || !dtype_is_float(graph_type(d->g, v)->dt)) return;
  d->active[v] = d->changed = true;
}

static void propagate(Grad *d, RegionId b);

static void propagate_if(Grad *d, const Node *n) {
  for (u32 k = 0; k < 2; k++) {
    propagate(d, n->region[k]);
    for (u32 i = 0; i < n->nout; i++)
      mark(d, n->out[i], d->active[d->g->region.at[n->region[k]].ret.at[i]]);
  }
}

static void propagate_loop(Grad *d, const Node *n) {
  const GraphRegion *b = &d->g->region.at[n->region[0]];
  u32 carried = n->nin - 2;
  bool before = d->changed;
  for (d->changed = true; d->changed; before = before || d->changed) {
    d->changed = false;
    for (u32 i = 0; i < carried; i++)
      mark(d, b->param.at[2 + i], d->active[n->in[2 + i]] || d->active[b->ret.at[1 + i]]);
    propagate(d, n->region[0]);
  }
  d->changed = before;
  for (u32 i = 0; i < n->nout; i++)
    mark(d, n->out[i], d->active[b->ret.at[1 + i]] || (i < carried && d->active[n->in[2 + i]]));
}

static void propagate(Grad *d, RegionId b) {
  Graph *g = d->g;
  for (u32 i = 0; i < g->region.at[b].node.n; i++) {
    const Node *n = graph_node(g, g->region.at[b].node.at[i]);
    bool on = false;
    if (n->op == OP_if) propagate_if(d, n);
    if (n->op == OP_loop) propagate_loop(d, n);
    if (n->nregion || rows[n->op].kind == GK_flat) continue;
    for (u32 k = 0; k < n->nin; k++) on = on || (n->in[k] && d->active[n->in[k]]);
    for (u32 k = 0; k < n->nout; k++) mark(d, n->out[k], on);
  }
}

/* ---- backward pass ---- */

Val grad_result(const Grad *d, Val v) {
  return v < d->nval && !d->fixed[v] ? d->adj[v] : 0;
}

static bool is_reached(const Grad *d, const Node *n) {
  for (u32 i = 0; i < n->nout; i++)
    if (grad_result(d, n->out[i])) return true;
  return false;
}

void grad_backward(Grad *d, RegionId b) {
  Graph *g = d->g;
  Loc loc = g->loc;
  u32 count = g->region.at[b].node.n;
  NodeId *list = arena_copy(&g->c->work, g->region.at[b].node.at, count * sizeof *list);
  for (u32 i = count; i-- > 0;) {
    Node n = *graph_node(g, list[i]);
    if (!is_reached(d, &n) || rows[n.op].kind == GK_flat) continue;
    if (!rows[n.op].rule) grad_refuse(g, &n, grad_reason(n.op));
    g->loc = n.loc;
    rows[n.op].rule(d, &n, grad_result(d, n.out[0]));
  }
  g->loc = loc;
}

static RegionId parent_region(Graph *g, RegionId b) {
  NodeId owner = g->region.at[b].owner;
  for (RegionId k = 1; owner && k < g->region.n; k++)
    for (u32 i = 0; i < g->region.at[k].node.n; i++)
      if (g->region.at[k].node.at[i] == owner) return k;
  return 0;
}

void grad_with(Graph *g, const GradOptions *o, Val y, const Val *x, u32 nx, const Val *z, u32 nz,
               Val *out) {
  Arena *a = &g->c->work;
  Grad d = {.g = g, .o = *o, .nval = g->val.n};
  RegionId chain[GRAPH_DEPTH + 1];
  u32 deep = 0;
  d.active = NEWS(a, bool, d.nval);
  d.fixed = NEWS(a, bool, d.nval);
  d.adj = NEWS(a, Val, d.nval);
  for (u32 i = 0; i < nx; i++) d.active[x[i]] = true, d.fixed[x[i]] = !o->total;
  for (u32 i = 0; i < nz; i++) d.fixed[z[i]] = true, d.active[z[i]] = false;
  for (RegionId b = g->cur; b && deep <= GRAPH_DEPTH; b = parent_region(g, b)) chain[deep++] = b;
  for (u32 i = deep; i-- > 0;) propagate(&d, chain[i]);
  Type t = *graph_type(g, y);
  if (d.active[y]) d.adj[y] = mk_broadcast(g, mk_like(g, y, 1), t.dim, t.rank);
  for (u32 i = 0; i < deep && d.active[y]; i++) grad_backward(&d, chain[i]);
  for (u32 i = 0; i < nx; i++) out[i] = o->gaps ? d.adj[x[i]] : grad_or_zeros(&d, x[i]);
}

void grad(Graph *g, Val y, const Val *x, u32 nx, const Val *z, u32 nz, Val *out) {
  grad_with(g, &(GradOptions){0}, y, x, nx, z, nz, out);
}
