/* subgraph.c: parts of a model, to find errors of an engine.
 *
 * In: an imported graph before the passes. expose turns every value computed at the top level into
 * an output, in order. cut keeps one of these values with the nodes at most `depth` steps before
 * it, and turns the values they read into parameters. Both number and name values in the same way,
 * so results of the exposed model are inputs of the cut one. Values whose extents are computed at
 * run time never become parameters: the nodes that compute them stay. stored follows the values
 * through the passes by unique labels: a pass removes the label of a value whose meaning it
 * changes.
 */
#include "api/api_internal.h"

static bool is_exposed(Graph *g, Val v) {
  const Type *t = graph_type(g, v);
  return t->kind == TY_tensor && t->dt != DT_str && !graph_const(g, v);
}

/* Values of the top level, numbered from 0. */
typedef struct Values {
  VEC(Val) val;
  Map at; /* value -> 1 + number */
} Values;

static Values list_values(Graph *g) {
  Values vs = {.at = map_new(&g->c->keep)};
  const GraphRegion *b = &g->region.at[1];
  for (u32 i = 0; i < b->node.n; i++) {
    const Node *n = graph_node(g, b->node.at[i]);
    for (u32 k = 0; k < n->nout; k++) {
      if (!is_exposed(g, n->out[k])) continue;
      *vec_push(&g->c->keep, &vs.val) = n->out[k];
      *map_put(&vs.at, n->out[k]) = vs.val.n;
    }
  }
  return vs;
}

/* Label of the model plus the number, because labels need not be unique. */
static Str value_name(Graph *g, Val v, u32 number) {
  Str name = graph_val(g, v)->name;
  return name ? str_fmt(g->c, "%s#%u", str_text(g->c, name), number) : str_fmt(g->c, "#%u", number);
}

static void need_plain_graph(Ingot *m) {
  api_need_single_entry(m);
  m->runs = true;
  api_import(m, false);
  if (!m->g || m->passed)
    fail(m->c, ERR_usage, LOC_NONE, "expected an imported graph before the passes");
}

/* value: their numbers, unless all are wanted. */
static void expose(Ingot *m, bool all, const u32 *value, u32 n) {
  if (!all && n) api_need(m->c, value, "the list of values");
  need_plain_graph(m);
  api_clear_run(m);
  Graph *g = m->g;
  Values vs = list_values(g);
  GraphRegion *b = &g->region.at[1];
  b->ret.n = g->out_name.n = g->state.n = 0;
  m->opened.ports = NULL;
  for (u32 k = 0; k < (all ? vs.val.n : n); k++) {
    u32 i = all ? k : value[k];
    if (i >= vs.val.n)
      fail(m->c, ERR_usage, LOC_NONE, "value %u does not exist: expected a number below %u", i,
           vs.val.n);
    graph_result(g, vs.val.at[i], value_name(g, vs.val.at[i], i));
  }
  api_describe(m);
}

IngotStatus ingot_expose(Ingot *m) {
  API_CALL(m, expose(m, true, NULL, 0));
}

IngotStatus ingot_expose_some(Ingot *m, const uint32_t *value, uint32_t n) {
  API_CALL(m, expose(m, false, value, n));
}

static void list_stored(Ingot *m, const u32 **out, u32 *nout) {
  Ctx *c = m->c;
  api_need(c, out && nout ? out : NULL, "a pointer to the values");
  need_plain_graph(m);
  Graph *g = m->g;
  Values vs = list_values(g);
  Map number = map_new(&c->keep); /* label -> 1 + number of the value */
  bool *stored = NEWS(&c->keep, bool, vs.val.n + 1);
  for (u32 i = 0; i < vs.val.n; i++) {
    Str name = graph_val(g, vs.val.at[i])->name = value_name(g, vs.val.at[i], i);
    *map_put(&number, name) = i + 1;
  }
  for (u32 i = 0; i < g->region.at[1].ret.n; i++) { /* results are stored, whatever their name */
    const u32 *at = map_get(&vs.at, g->region.at[1].ret.at[i]);
    if (at) stored[*at - 1] = true;
  }
  api_run_passes(m, &(IngotPassOptions){.stop = "fuse"});
  g = m->g;
  for (u32 i = 0; i < g->region.at[1].node.n; i++) {
    const Node *n = graph_node(g, g->region.at[1].node.at[i]);
    for (u32 k = 0; k < n->nout; k++) {
      const Value *v = graph_val(g, n->out[k]);
      const u32 *at = v->name && v->home == HOME_buffer ? map_get(&number, v->name) : NULL;
      if (at) stored[*at - 1] = true;
    }
  }
  u32 *value = NEWS(&c->keep, u32, vs.val.n + 1), n = 0;
  for (u32 i = 0; i < vs.val.n; i++)
    if (stored[i]) value[n++] = i;
  *out = value;
  *nout = n;
}

IngotStatus ingot_stored(Ingot *m, const uint32_t **value, uint32_t *n) {
  if (value) *value = NULL;
  if (n) *n = 0;
  API_CALL(m, list_stored(m, value, n));
}

typedef struct OriginArg {
  const Node *n;
  const char *text;
} OriginArg;

static void do_origin(Ctx *c, void *arg) {
  OriginArg *a = arg;
  StrBuf t = sb_new(&c->keep);
  sb_puts(&t, op_info[a->n->op].name);
  if (a->n->loc.op) sb_fmt(&t, " of %s", show(c, a->n->loc.op));
  if (a->n->loc.node) sb_fmt(&t, " '%s'", show(c, a->n->loc.node));
  a->text = sb_cstr(&t);
}

const char *ingot_output_origin(const Ingot *m, uint32_t i) {
  if (!m || !m->g || i >= ingot_output_count(m)) return "";
  const Value *v = graph_val(m->g, m->g->region.at[1].ret.at[api_graph_index(m, i, true)]);
  if (!v->def) return "input";
  OriginArg a = {.n = graph_node(m->g, v->def), .text = ""};
  ctx_protect(m->c, do_origin, &a); /* out of memory: returns nothing */
  return a.text;
}

/* ---- cut ---- */

typedef struct Subgraph {
  Graph *g;
  Values vs;
  u32 *steps; /* by node: 1 + steps before the value; 0: removed */
  Map param;  /* value -> its parameter */
  Map used;   /* parameters of the model that are still used */
} Subgraph;

static bool is_open(Graph *g, const Type *t) {
  for (u32 i = 0; i < t->rank; i++)
    for (SymVisit w = dim_visit(g->dims, t->dim[i]); dim_next(&w);)
      if (w.info->kind != SY_input) return true;
  return false;
}

static void keep_value(Subgraph *u, Val v, u32 steps, u32 depth);

static void keep_block(Subgraph *u, RegionId b, u32 steps, u32 depth) {
  const GraphRegion *region = &u->g->region.at[b];
  for (u32 i = 0; i < region->node.n; i++) {
    const Node *n = graph_node(u->g, region->node.at[i]);
    u->steps[region->node.at[i]] = 1;
    for (u32 k = 0; k < n->nin; k++) keep_value(u, n->in[k], steps, depth);
    for (u32 k = 0; k < n->nregion; k++) keep_block(u, n->region[k], steps, depth);
  }
  for (u32 i = 0; i < region->ret.n; i++) keep_value(u, region->ret.at[i], steps, depth);
}

/* Keeps the node that computes v, or turns v into a parameter if it is too many steps away. */
static void keep_value(Subgraph *u, Val v, u32 steps, u32 depth) {
  if (!v) return;
  Graph *g = u->g;
  NodeId id = graph_val(g, v)->def;
  if (!id) {
    *map_put(&u->used, v) = 1;
    return;
  }
  const Node *n = graph_node(g, id);
  bool top = map_get(&u->vs.at, v) != NULL;
  if (top && steps >= depth && !is_open(g, graph_type(g, v))) {
    *map_put(&u->param, v) = 1;
    return;
  }
  u32 now = n->op == OP_const ? steps : steps + 1;
  if (u->steps[id] && u->steps[id] <= now + 1) return;
  u->steps[id] = now + 1;
  for (u32 i = 0; i < n->nin; i++) keep_value(u, n->in[i], now, depth);
  for (u32 i = 0; i < n->nregion; i++) keep_block(u, n->region[i], now, depth);
}

static bool visit(GraphEdit *e, NodeId id) {
  Subgraph *u = e->user;
  const Node *n = graph_node(u->g, id);
  for (u32 i = 0; i < n->nout; i++) {
    u32 *p = map_get(&u->param, n->out[i]);
    if (p) edit_replace(e, n->out[i], *p);
  }
  return u->steps[id] != 0;
}

/* Sets the remaining parameters, then the new ones, and renumbers them. */
static void set_params(Subgraph *u) {
  Graph *g = u->g;
  GraphRegion *b = &g->region.at[1];
  u32 n = 0;
  for (u32 i = 0; i < b->param.n; i++)
    if (map_get(&u->used, b->param.at[i])) b->param.at[n++] = b->param.at[i];
  b->param.n = n;
  for (u32 i = 0; i < n; i++) graph_val(g, b->param.at[i])->pos = i;
  for (u32 i = 0; i < u->vs.val.n; i++) {
    Val v = u->vs.val.at[i];
    u32 *p = map_get(&u->param, v);
    if (p) *map_put(&u->param, v) = graph_param(g, 1, *graph_type(g, v), value_name(g, v, i));
  }
}

static void extract(Ingot *m, u32 value, u32 depth) {
  Ctx *c = m->c;
  need_plain_graph(m);
  api_clear_run(m);
  Graph *g = m->g;
  Subgraph u = {
      .g = g, .vs = list_values(g), .param = map_new(&c->keep), .used = map_new(&c->keep)};
  if (value >= u.vs.val.n)
    fail(c, ERR_usage, LOC_NONE, "the model has %u values: number %u is out of range", u.vs.val.n,
         value);
  Val v = u.vs.val.at[value];
  Str name = value_name(g, v, value);
  u.steps = NEWS(&c->keep, u32, g->node.n);
  keep_value(&u, v, 0, depth ? depth : UINT32_MAX - 2);
  set_params(&u);
  g->region.at[1].ret.n = g->out_name.n = g->state.n = 0;
  m->opened.ports = NULL;
  graph_result(g, v, name);
  bool eager = g->eager;
  g->eager = false;
  edit_run(g, visit, &u);
  dce(g);
  g->eager = eager;
  u32 n = 0;
  for (u32 i = 0; i < g->pin.n; i++)
    if (map_get(&u.used, g->pin.at[i].param)) g->pin.at[n++] = g->pin.at[i];
  g->pin.n = n;
  api_describe(m);
}

IngotStatus ingot_extract_subgraph(Ingot *m, uint32_t value, uint32_t depth) {
  API_CALL(m, extract(m, value, depth));
}
