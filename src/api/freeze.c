/* freeze.c: inputs that become constants.
 *
 * In: bindings of inputs, some of them frozen (ingot_freeze). Out: for an ONNX model, the list that
 * the importer turns into constants before it builds nodes, so that untaken branches and their
 * weights are never read. For a graph in text form, the graph with the parameter replaced. Contents
 * given again for a frozen input must be equal.
 */
#include "api/api_internal.h"

#include <string.h>

const InputBinding *api_frozen(const Ingot *m, Str name) {
  for (u32 i = 0; i < m->options.given.n; i++)
    if (m->options.given.at[i].frozen && m->options.given.at[i].name == name)
      return &m->options.given.at[i];
  return NULL;
}

/* Are all elements of t equal to this one? */
static bool is_all(const Tensor *t, const Tensor *one) {
  u32 bytes = dtype_bytes(one->dt);
  for (u64 i = 0; i < t->n; i++)
    if (memcmp((const u8 *)t->data + i * bytes, one->data, bytes)) return false;
  return true;
}

/* Is t, or one element of it for all places, equal to the frozen value? */
static bool agrees(const Ctx *c, const InputBinding *frozen, const Tensor *t, bool fills) {
  const Tensor *x = frozen->data;
  bool filled = frozen->kind != IB_data && !x->rank;
  if (x->dt != t->dt) return false;
  if (fills) return is_all(x, t);
  return filled ? is_all(t, x) : tensor_equal(c, x, t);
}

bool api_is_redundant(Ingot *m, InputBinding *v) {
  Ctx *c = m->c;
  const InputBinding *frozen = v->frozen ? NULL : api_frozen(m, v->name);
  const char *name = show(c, v->name);
  if (!frozen) return false;
  if (v->kind == IB_rand)
    fail(c, ERR_usage, LOC_NONE, "input '%s' is frozen and cannot be random", name);
  const Tensor *t = v->kind == IB_text ? api_parse_value(c, name, frozen->data->dt, v->text)
                                       : api_binding_tensor(m, v);
  if (!agrees(c, frozen, t, v->kind != IB_data && !t->rank))
    fail(c, ERR_usage, LOC_NONE, "input '%s' is frozen; found other contents for it", name);
  return true;
}

/* ---- graphs in text form ---- */

static Tensor *binding_tensor(Ingot *m, InputBinding *v, const Type *t) {
  const char *name = show(m->c, v->name);
  i64 dim[MAX_RANK];
  if (v->kind == IB_text) v->data = api_parse_value(m->c, name, t->dt, v->text);
  bool fill = v->kind != IB_data && !v->data->rank;
  bool fits = v->data->dt == t->dt && (fill || v->data->rank == t->rank);
  for (u32 i = 0; i < t->rank; i++) {
    dim[i] = dim_is_const(t->dim[i]) ? t->dim[i] : -1;
    fits = fits && dim[i] >= 0 && (fill || v->data->dim[i] == dim[i]);
  }
  if (!fits)
    fail(m->c, ERR_input, LOC_NONE, "input '%s' cannot be frozen: another type or shape", name);
  if (!fill) return v->data;
  Tensor *all = tensor_new(&m->c->work, t->dt, dim, t->rank);
  for (u64 i = 0; i < all->n; i++) tensor_set(all, i, tensor_get(v->data, 0));
  return all;
}

/* Adds a constant before all nodes. */
static Val first_const(Graph *g, Tensor *t, Str name) {
  g->cur = 1;
  Val c = mk_const(g, t);
  graph_val(g, c)->name = name;
  GraphRegion *b = &g->region.at[1];
  NodeId id = b->node.at[b->node.n - 1];
  memmove(b->node.at + 1, b->node.at, (b->node.n - 1) * sizeof *b->node.at);
  b->node.at[0] = id;
  return c;
}

static void replace(Graph *g, Val old, Val by) {
  for (NodeId id = 1; id < g->node.n; id++)
    for (u32 k = 0; k < graph_node(g, id)->nin; k++)
      if (graph_node(g, id)->in[k] == old) graph_node(g, id)->in[k] = by;
  for (RegionId b = 1; b < g->region.n; b++)
    for (u32 k = 0; k < g->region.at[b].ret.n; k++)
      if (g->region.at[b].ret.at[k] == old) g->region.at[b].ret.at[k] = by;
}

static void freeze(Ingot *m, InputBinding *v) {
  Graph *g = m->g;
  GraphRegion *b = &g->region.at[1];
  u32 at = 0, pins = 0;
  while (at < b->param.n && graph_val(g, b->param.at[at])->name != v->name) at++;
  if (at == b->param.n) api_no_input(m, v->name);
  Val old = b->param.at[at];
  replace(g, old, first_const(g, binding_tensor(m, v, graph_type(g, old)), v->name));
  b = &g->region.at[1];
  for (b->param.n--; at < b->param.n; at++) {
    b->param.at[at] = b->param.at[at + 1];
    graph_val(g, b->param.at[at])->pos = at;
  }
  for (u32 i = 0; i < g->pin.n; i++)
    if (g->pin.at[i].param != old) g->pin.at[pins++] = g->pin.at[i];
  g->pin.n = pins;
}

void api_freeze_text(Ingot *m) {
  for (u32 i = 0; i < m->options.given.n; i++) {
    if (!m->options.given.at[i].frozen) continue;
    if (!m->g || m->g->state.n)
      fail(m->c, ERR_unsupported, LOC_NONE, "input '%s' cannot be frozen: the text is %s",
           show(m->c, m->options.given.at[i].name),
           m->g ? "of a graph with state" : "a program, not a graph");
    freeze(m, &m->options.given.at[i]);
  }
  for (u32 i = 0; i < m->options.given.n; i++) api_is_redundant(m, &m->options.given.at[i]);
}
