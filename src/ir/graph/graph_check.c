/* graph_check.c: verifies a graph; reports through internal_error(), which names the pass that just
 * ran.
 *
 * In: a graph after a pass. One traversal in execution order checks that
 * - ids are in range,
 * - each value has one definition, before its uses, in an enclosing region,
 * - nodes have the operands and attributes of ops.def,
 * - symbols exist, and data symbols are set before use,
 * - regions belong to one node,
 * - every type equals the inferred type.
 * Nodes outside all regions are dead and not checked. */
#include <string.h>
#include "ir/graph/graph.h"

typedef struct GraphCheck {
  Graph *g;
  bool input;    /* the graph was just parsed, no pass has run */
  const Node *n; /* current node, or NULL */
  u8 *value;     /* by value: 0 undefined, 1 visible, 2 its region is closed */
  u8 *symbol; /* by symbol: 0 undefined, 1 visible (data symbols: set, derived ones: checked), 2 out
                 of scope */
  bool *node, *block; /* already visited */
  VEC(Val) vals;      /* visible values, in order */
  VEC(Sym) syms;      /* visible symbols, in order */
} GraphCheck;

/* Reports a finding: a text is invalid input, a pass has a bug. */
#define BUG(k, ...)                                                                                \
  ((k)->input ? fail((k)->g->c, ERR_input, where(k), __VA_ARGS__)                                  \
              : internal_error((k)->g->c, where(k), __VA_ARGS__))

static Loc where(const GraphCheck *k) {
  return k->n ? k->n->loc : LOC_NONE;
}

/* ---- ops.def on attributes ---- */

static AttrKind kind_of(const char *at, size_t n) {
  if (n == 2) return AK_list;
  switch (*at) {
  case 'i': return AK_int;
  case 'f': return AK_float;
  case 's': return AK_str;
  case 't': return AK_dtype;
  default: return AK_const;
  }
}

bool attr_spec(Op op, AttrKey key, AttrKind *kind, bool *optional) {
  const char *at = op_attr_spec(op);
  while (at && *at) {
    size_t n = strcspn(at, ":"), k = strcspn(at + n + 1, " ?");
    const char *next = at + n + 1 + k;
    *kind = kind_of(at + n + 1, k);
    *optional = *next == '?';
    if (strlen(attr_name[key]) == n && !memcmp(attr_name[key], at, n)) return true;
    at = next + strspn(next, " ?");
  }
  return false;
}

bool attr_is_dims(AttrKey key) {
  return key == AT_shape || key == AT_start || key == AT_size || key == AT_lo || key == AT_hi ||
         key == AT_k;
}

static void check_attrs(GraphCheck *k) {
  const Node *n = k->n;
  AttrKind kind;
  bool optional;
  for (u32 i = 0; i < n->nattr; i++) {
    const Attr *a = &n->attr[i];
    if (a->key <= AT_none || a->key >= AT_COUNT)
      BUG(k, "attribute key %d is out of range", (int)a->key);
    if (i && n->attr[i - 1].key >= a->key) BUG(k, "attributes are not sorted");
    if (!attr_spec(n->op, a->key, &kind, &optional))
      BUG(k, "%s has no attribute %s", op_info[n->op].name, attr_name[a->key]);
    if (a->kind != kind) BUG(k, "attribute %s has the wrong kind", attr_name[a->key]);
    if (a->kind == AK_dtype && (a->u.i <= DT_none || a->u.i >= DT_COUNT))
      BUG(k, "attribute %s does not name an element type", attr_name[a->key]);
  }
  for (AttrKey key = AT_none + 1; key < AT_COUNT; key++) {
    if (attr_spec(n->op, key, &kind, &optional) && !optional && !node_attr(n, key))
      BUG(k, "%s lacks attribute %s", op_info[n->op].name, attr_name[key]);
  }
}

/* ---- dimensions and types ---- */

static void reveal(GraphCheck *k, Sym s) {
  k->symbol[s] = 1;
  *vec_push(&k->g->c->scratch, &k->syms) = s;
}

static void check_dim(GraphCheck *k, Dim d) {
  if (dim_is_const(d)) {
    if (d > DIM_MAX) BUG(k, "dimension %lld exceeds 2^40", (long long)d);
    return;
  }
  Dims *ds = k->g->dims;
  DimTerms f = dim_terms(ds, d);
  for (u32 i = 0; i < f.n; i++) {
    if (f.sym[i] >= dim_nsyms(ds)) BUG(k, "symbol %u does not exist", f.sym[i]);
    const SymInfo *s = dim_syminfo(ds, f.sym[i]);
    if (s->kind == SY_input || k->symbol[f.sym[i]] == 1) continue;
    if (s->kind == SY_data)
      BUG(k, "symbol %s is used before a node sets it", show(k->g->c, s->name));
    check_dim(k, s->a);
    check_dim(k, s->b);
    reveal(k, f.sym[i]); /* visits each once: derived symbols form a DAG, not a tree */
  }
}

static void check_type(GraphCheck *k, const Type *t) {
  for (u32 depth = 0; t->kind != TY_tensor; t = t->elem, depth++) {
    if (!t->elem || depth > 8)
      BUG(k, "malformed type: seq or opt without an element type, or nested too deep");
  }
  if (t->dt <= DT_none || t->dt >= DT_COUNT || t->rank > MAX_RANK)
    BUG(k, "malformed type: invalid element type or rank");
  for (u32 i = 0; i < t->rank; i++) check_dim(k, t->dim[i]);
}

/* ---- values ---- */

static void define(GraphCheck *k, Val v, NodeId def, u32 pos) {
  Graph *g = k->g;
  if (!v || v >= g->val.n) BUG(k, "value %u is out of range", v);
  if (k->value[v]) BUG(k, "value %u is defined twice", v);
  const Value *x = graph_val(g, v);
  if (x->def != def || x->pos != pos)
    BUG(k, "value %u has another definition than the one that lists it", v);
  check_type(k, &x->type);
  k->value[v] = 1;
  *vec_push(&g->c->scratch, &k->vals) = v;
}

static void check_use(GraphCheck *k, Val v) {
  if (v >= k->g->val.n) BUG(k, "value %u is out of range", v);
  if (k->value[v] == 1) return;
  BUG(k,
      k->value[v] ? "value %u is used outside its region"
                  : "value %u is used before its definition",
      v);
}

/* ---- nodes ---- */

static void check_shape(GraphCheck *k) {
  const Node *n = k->n;
  const OpInfo *info = &op_info[n->op];
  if (n->nin < info->nin_min || n->nin > info->nin_max)
    BUG(k, "%s has %u operands, which ops.def does not allow", info->name, n->nin);
  if (info->kind != OK_CONTROL && n->nout != info->nout)
    BUG(k, "%s has %u results, which ops.def does not allow", info->name, n->nout);
  u32 nregion = n->op == OP_if ? 2 : n->op == OP_loop ? 1 : 0;
  if (n->nregion != nregion)
    BUG(k, "%s has %u regions, which its operator does not allow", info->name, n->nregion);
  for (u32 i = 0; i < n->nin; i++) {
    if (!n->in[i]) BUG(k, "%s: operand %u is missing", info->name, i);
    check_use(k, n->in[i]);
  }
  check_attrs(k);
  for (u32 i = 0; i < n->nattr; i++) {
    const Attr *a = &n->attr[i];
    if (a->kind != AK_list || !attr_is_dims(a->key)) continue;
    for (u32 j = 0; j < a->n; j++) check_dim(k, a->u.list[j]);
  }
}

static void check_types(GraphCheck *k) {
  Graph *g = k->g;
  Node copy = *k->n; /* inference must find the symbols of the node and keep them */
  Type *t = NEWS(&g->c->scratch, Type, copy.nout + 1);
  infer_node(g, &copy, t);
  if (copy.nsym != k->n->nsym) BUG(k, "the node has fewer symbols than its operator sets");
  for (u32 i = 0; i < copy.nout; i++) {
    const Type *have = graph_type(g, copy.out[i]);
    if (!type_equal(have, &t[i]))
      BUG(k, "%s: result %u has type %s, expected %s from inference", op_info[copy.op].name, i,
          type_text(g->dims, have), type_text(g->dims, &t[i]));
  }
}

static void check_region(GraphCheck *k, RegionId b, NodeId owner);

static void check_node(GraphCheck *k, NodeId id) {
  Graph *g = k->g;
  if (!id || id >= g->node.n) BUG(k, "node %u is out of range", id);
  if (k->node[id]) BUG(k, "node %u occurs twice in the graph", id);
  k->node[id] = true;
  const Node *n = k->n = graph_node(g, id);
  if (n->op >= OP_COUNT) BUG(k, "operator %d", (int)n->op);
  check_shape(k);
  for (u32 i = 0; i < n->nregion; i++) {
    check_region(k, n->region[i], id);
    k->n = n;
  }
  for (u32 i = 0; i < n->nsym; i++) {
    if (n->sym[i] >= dim_nsyms(g->dims)) BUG(k, "symbol %u does not exist", n->sym[i]);
    if (k->symbol[n->sym[i]] || dim_syminfo(g->dims, n->sym[i])->kind != SY_data)
      BUG(k, "symbol %u is set twice, or is not a data symbol", n->sym[i]);
    reveal(k, n->sym[i]);
  }
  for (u32 i = 0; i < n->nout; i++) define(k, n->out[i], id, i);
  check_types(k);
}

static void check_region(GraphCheck *k, RegionId b, NodeId owner) {
  Graph *g = k->g;
  if (!b || b >= g->region.n) BUG(k, "region %u is out of range", b);
  if (k->block[b]) BUG(k, "region %u occurs twice in the graph", b);
  k->block[b] = true;
  const GraphRegion *region = &g->region.at[b];
  if (region->owner != owner) BUG(k, "region %u belongs to another node", b);
  u32 nvals = k->vals.n, nsyms = k->syms.n;
  for (u32 i = 0; i < region->param.n; i++) define(k, region->param.at[i], 0, i);
  for (u32 i = 0; i < region->node.n; i++) check_node(k, region->node.at[i]);
  for (u32 i = 0; i < region->ret.n; i++) {
    if (!region->ret.at[i]) BUG(k, "result %u is missing", i);
    check_use(k, region->ret.at[i]);
  }
  if (b == 1) return;
  while (k->vals.n > nvals) k->value[k->vals.at[--k->vals.n]] = 2;
  while (k->syms.n > nsyms) k->symbol[k->syms.at[--k->syms.n]] = 2;
}

static void check_all(Ctx *c, void *arg) {
  GraphCheck *k = arg;
  Graph *g = k->g;
  Loc loc = g->loc;
  k->value = NEWS(&c->scratch, u8, g->val.n);
  k->symbol = NEWS(&c->scratch, u8, dim_nsyms(g->dims) + 1);
  k->node = NEWS(&c->scratch, bool, g->node.n);
  k->block = NEWS(&c->scratch, bool, g->region.n);
  check_region(k, 1, 0);
  g->loc = loc;
  if (g->out_name.n && g->out_name.n != g->region.at[1].ret.n)
    BUG(k, "the graph has %u results, but %u result names", g->region.at[1].ret.n, g->out_name.n);
  graph_check_state(g, ERR_input);
}

void graph_check_input(Graph *g) {
  GraphCheck k = {.g = g, .input = true};
  check_all(g->c, &k);
}

/* Inference reports violations as errors in the model; after a pass they are bugs of the pass. */
void graph_check(Graph *g) {
  GraphCheck k = {.g = g};
  const char *why;
  if (ctx_try(g->c, check_all, &k, &why) != ERR_ok) internal_error(g->c, LOC_NONE, "%s", why);
}
