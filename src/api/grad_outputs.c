/* grad_outputs.c: adds gradients as outputs.
 *
 * In: "LOSS" or "LOSS:X,W,..." (ingot_set_grad). Out: after import, the graph with an output
 * NAME.grad for each listed value (default: all float inputs): the gradient of sum(LOSS). LOSS is
 * an output or a value of the graph, X an input, a constant or another value, by name.
 */
#include "api/api_internal.h"
#include "pass/graph/grad.h"

#include <string.h>

/* Closest name among outputs and inputs. */
static const char *near_value(Ingot *m, Str word) {
  Graph *g = m->g;
  Suggestion near = suggest_new(str_text(m->c, word));
  for (u32 i = 0; i < g->out_name.n; i++) suggest_try(&near, str_text(m->c, g->out_name.at[i]));
  for (u32 i = 0; i < g->region.at[1].param.n; i++)
    suggest_try(&near, str_text(m->c, graph_val(g, g->region.at[1].param.at[i])->name));
  return suggest_text(m->c, &near);
}

/* Value of region 1 by its label, the last one of that name; or an output by name. */
static Val find(Graph *g, Str name, bool output) {
  Val found = 0;
  for (u32 i = 0; output && i < g->out_name.n; i++)
    if (g->out_name.at[i] == name) return g->region.at[1].ret.at[i];
  for (u32 i = 0; i < g->region.at[1].param.n; i++)
    if (graph_val(g, g->region.at[1].param.at[i])->name == name)
      found = g->region.at[1].param.at[i];
  for (u32 i = 0; i < g->region.at[1].node.n; i++) {
    const Node *n = graph_node(g, g->region.at[1].node.at[i]);
    for (u32 k = 0; k < n->nout; k++)
      if (graph_val(g, n->out[k])->name == name) found = n->out[k];
  }
  return found;
}

static Val find_float(Ingot *m, const char *at, size_t n, bool output) {
  Str name = str_intern(m->c, at, n);
  Val v = find(m->g, name, output);
  if (!v)
    fail(m->c, ERR_usage, LOC_NONE, "--grad: unknown %s '%s'%s", output ? "output" : "value",
         show(m->c, name), near_value(m, name));
  if (!dtype_is_float(graph_type(m->g, v)->dt))
    fail(m->c, ERR_usage, LOC_NONE, "--grad: '%s' is %s, expected a float type", show(m->c, name),
         type_text(m->g->dims, graph_type(m->g, v)));
  return v;
}

static u32 list_values(Ingot *m, const char *list, Val *x) {
  u32 n = 0;
  const GraphRegion *b = &m->g->region.at[1];
  for (u32 i = 0; !list && i < b->param.n; i++)
    if (dtype_is_float(graph_type(m->g, b->param.at[i])->dt)) x[n++] = b->param.at[i];
  while (list && *list) {
    size_t k = strcspn(list, ",");
    if (k) x[n++] = find_float(m, list, k, false);
    list += k + (list[k] == ',');
  }
  return n;
}

void api_add_grad(Ingot *m) {
  const char *spec = m->options.grad;
  if (!spec) return;
  if (!m->g) fail(m->c, ERR_usage, LOC_NONE, "--grad needs a model, found a program");
  Graph *g = m->g;
  size_t k = strcspn(spec, ":");
  Val y = find_float(m, spec, k, true);
  Val *x = NEWS(&m->c->work, Val, g->region.at[1].param.n + strlen(spec) + 1);
  u32 n = list_values(m, spec[k] ? spec + k + 1 : NULL, x);
  Val *out = NEWS(&m->c->work, Val, n + 1);
  g->cur = 1;
  g->eager = false;
  grad_with(g, &(GradOptions){.total = true}, y, x, n, NULL, 0, out);
  for (u32 i = 0; i < n; i++)
    graph_result(g, out[i], str_fmt(m->c, "%s.grad", str_text(m->c, graph_val(g, x[i])->name)));
  m->opened.ports = NULL; /* the model declares fewer outputs */
}

static void set_grad(Ingot *m, const char *spec) {
  api_need(m->c, spec, "the values to differentiate");
  api_need_unread(m, "--grad");
  m->options.grad = str_text(m->c, str_of(m->c, spec));
}

IngotStatus ingot_set_grad(Ingot *m, const char *spec) {
  API_CALL(m, set_grad(m, spec));
}
