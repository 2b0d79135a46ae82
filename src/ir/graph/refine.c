/* refine.c: infers the types of all values again and substitutes symbols.
 *
 * In: a graph whose operands or symbols have changed, and the meaning of each symbol that is no
 * longer set by a node. Out: the same nodes with attributes rewritten and inferred types. A symbol
 * is set before its first use, so one traversal in execution order suffices. If inference finds a
 * size that used to be a symbol of the node, the symbol is bound for the rest of the traversal. */
#include "ir/graph/graph.h"

SymbolRebind rebind_new(Graph *g) {
  return (SymbolRebind){.g = g, .of = map_new(&g->c->scratch)};
}

static void bind(SymbolRebind *r, Sym s, Dim d) {
  u32 *at = map_put(&r->of, s);
  if (*at) {
    r->to.at[*at - 1] = d;
    return;
  }
  *vec_push(&r->g->c->scratch, &r->to) = d;
  *at = r->to.n;
}

static Dim replace(SymbolRebind *r, Dim d);

static Dim replace_sym(SymbolRebind *r, Sym s) {
  Dims *ds = r->g->dims;
  const u32 *at = map_get(&r->of, s);
  if (at) return replace(r, r->to.at[*at - 1]);
  SymInfo info = *dim_syminfo(ds, s);
  if (info.kind != SY_derived) return dim_of_sym(ds, s);
  Dim a = replace(r, info.a), b = replace(r, info.b), d;
  if (a == info.a && b == info.b) return dim_of_sym(ds, s);
  switch (info.op) {
  case OP_mul: d = dim_mul(ds, a, b); break;
  case OP_div: d = dim_div(ds, a, b); break;
  case OP_mod: d = dim_mod(ds, a, b); break;
  case OP_min: d = dim_min(ds, a, b); break;
  default: d = dim_max(ds, a, b); break;
  }
  bind(r, s, d); /* cached: derived symbols form a DAG, not a tree */
  return d;
}

static Dim replace(SymbolRebind *r, Dim d) {
  Dims *ds = r->g->dims;
  DimTerms f = dim_terms(ds, d);
  u32 n = r->to.n ? f.n : 0;
  if (!n) return d;
  Sym *s = arena_copy(&r->g->c->scratch, f.sym, n * sizeof *s); /* dims may grow below */
  i64 *k = arena_copy(&r->g->c->scratch, f.coef, n * sizeof *k);
  Dim more = f.k0 > 0 ? f.k0 : 0, less = f.k0 < 0 ? -f.k0 : 0;
  bool same = true;
  for (u32 i = 0; i < n; i++) {
    Dim x = replace_sym(r, s[i]);
    same = same && x == dim_of_sym(ds, s[i]);
    Dim *side = k[i] < 0 ? &less : &more;
    *side = dim_add(ds, *side, dim_mul(ds, x, k[i] < 0 ? -k[i] : k[i]));
  }
  return same ? d : dim_sub(ds, more, less);
}

/* Is the dimension exactly one symbol, set by n? */
static bool sets(Dims *ds, const Node *n, Dim d, Sym *s) {
  for (u32 i = 0; i < n->nsym; i++) {
    *s = n->sym[i];
    if (dim_of_sym(ds, *s) == d) return true;
  }
  return false;
}

void rebind_result(SymbolRebind *r, const Node *n, u32 i, const Type *now) {
  const Type *was = graph_type(r->g, n->out[i]);
  Sym s;
  if (was->kind != TY_tensor || now->kind != TY_tensor) return;
  for (u32 k = 0; k < was->rank && k < now->rank; k++) {
    if (was->dim[k] != now->dim[k] && sets(r->g->dims, n, was->dim[k], &s)) bind(r, s, now->dim[k]);
  }
}

static void replace_attrs(SymbolRebind *r, Node *n) {
  for (u32 i = 0; i < n->nattr; i++) {
    Attr *a = &n->attr[i];
    if (a->kind != AK_list || !attr_is_dims(a->key)) continue;
    Dim *list = arena_copy(&r->g->c->work, a->u.list, a->n * sizeof *list);
    for (u32 k = 0; k < a->n; k++) list[k] = replace(r, list[k]);
    a->u.list = list;
  }
}

/* Keeps the node's symbols while they match its inferred types; else the node gets new ones. */
static void infer_types(Graph *g, Node *n, Type *t) {
  u32 nsym = n->nsym;
  for (u32 round = 0; round < 2; round++) {
    infer_node(g, n, t);
    bool same = n->nsym == nsym;
    for (u32 i = 0; i < n->nout; i++) same = same && type_equal(&t[i], graph_type(g, n->out[i]));
    if (same || !nsym || round) return;
    n->sym = NULL;
    n->nsym = 0;
  }
}

static void refine_region(SymbolRebind *r, RegionId b);

static void refine_node(SymbolRebind *r, NodeId id) {
  Graph *g = r->g;
  if (r->to.n) replace_attrs(r, graph_node(g, id));
  Node *n = graph_node(g, id);
  if (n->op == OP_loop) {
    const GraphRegion *body = &g->region.at[n->region[0]];
    for (u32 i = 2; i < n->nin; i++) *graph_type(g, body->param.at[i]) = *graph_type(g, n->in[i]);
  }
  for (u32 i = 0; i < n->nregion; i++) refine_region(r, n->region[i]);
  Node old = *n;
  Type *t = NEWS(&g->c->scratch, Type, n->nout + 1);
  infer_types(g, n, t);
  for (u32 i = 0; i < n->nout; i++) {
    rebind_result(r, &old, i, &t[i]);
    *graph_type(g, n->out[i]) = t[i];
  }
}

static void refine_region(SymbolRebind *r, RegionId b) {
  for (u32 i = 0; i < r->g->region.at[b].node.n; i++) refine_node(r, r->g->region.at[b].node.at[i]);
}

void graph_refine(Graph *g, SymbolRebind *r) {
  Loc loc = g->loc;
  refine_region(r, 1);
  g->loc = loc;
}
