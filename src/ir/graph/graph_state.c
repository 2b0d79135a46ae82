/* graph_state.c: validity of states, results that become parameters of the next run.
 *
 * In: a graph with types. Out: whether its pairs of parameter and result are valid. A result must
 * have the type of its parameter. It may be longer along one axis whose extent is a symbol of the
 * parameter alone (a KV cache). The symbol is 0 in the first run and then takes the extent of the
 * previous result. Other changes of extents are refused. */
#include "ir/graph/graph.h"

bool state_fits(Graph *g, Val in, Val out, GrowingAxis *how, const char **why) {
  const Type *a = graph_type(g, in), *b = graph_type(g, out);
  *how = (GrowingAxis){.axis = MAX_RANK};
  *why = "they are not tensors";
  if (a->kind != TY_tensor || b->kind != TY_tensor) return false;
  *why = "their types differ";
  if (a->dt != b->dt || a->rank != b->rank) return false;
  for (u32 i = 0; i < a->rank; i++) {
    if (a->dim[i] == b->dim[i]) continue;
    *why = "their shapes differ";
    if (how->axis != MAX_RANK || !dim_is_sym(g->dims, a->dim[i], SY_input, &how->sym)) return false;
    how->axis = i;
    how->next = b->dim[i];
  }
  for (u32 i = 0; i < a->rank; i++) {
    *why = "two extents grow with the same symbol";
    if (how->axis != MAX_RANK && i != how->axis && dim_mentions(g->dims, a->dim[i], how->sym))
      return false;
  }
  *why = "";
  return true;
}

GrowingAxis state_growth(Graph *g, const StatePair *s) {
  GrowingAxis how;
  const char *why;
  const GraphRegion *b = &g->region.at[1];
  if (!state_fits(g, b->param.at[s->in], b->ret.at[s->out], &how, &why))
    internal_error(g->c, LOC_NONE, "state: %s", why);
  how.most = s->most;
  return how;
}

static const char *name_of(Graph *g, u32 in) {
  return show(g->c, graph_val(g, g->region.at[1].param.at[in])->name);
}

/* A symbol grows in one way, and extents of other states do not depend on it. */
static void check_pair(Graph *g, Err code, const StatePair *s, const GrowingAxis *how,
                       const StatePair *t) {
  const Type *x = graph_type(g, g->region.at[1].param.at[t->in]);
  GrowingAxis other = state_growth(g, t);
  for (u32 i = 0; i < x->rank; i++) {
    if (!dim_mentions(g->dims, x->dim[i], how->sym)) continue;
    if (other.axis != i || other.sym != how->sym || other.next != how->next ||
        other.most != how->most)
      fail(g->c, code, LOC_NONE, "states '%s' and '%s' share a symbol but grow differently",
           name_of(g, s->in), name_of(g, t->in));
  }
}

static bool starts_right(Graph *g, const StatePair *s) {
  const Type *t = graph_type(g, g->region.at[1].param.at[s->in]);
  bool same = t->dt == s->start->dt && t->rank == s->start->rank;
  for (u32 i = 0; same && i < t->rank; i++) same = t->dim[i] == s->start->dim[i];
  return same;
}

void graph_check_state(Graph *g, Err code) {
  const GraphRegion *b = &g->region.at[1];
  for (u32 i = 0; i < g->state.n; i++) {
    const StatePair *s = &g->state.at[i];
    GrowingAxis how;
    const char *why;
    if (s->in >= b->param.n || s->out >= b->ret.n)
      fail(g->c, code, LOC_NONE, "state %u has no parameter or no result", i);
    if (!state_fits(g, b->param.at[s->in], b->ret.at[s->out], &how, &why))
      fail(g->c, code, LOC_NONE, "'%s' cannot be the next value of '%s': %s",
           s->out < g->out_name.n ? show(g->c, g->out_name.at[s->out]) : "a result",
           name_of(g, s->in), why);
    for (u32 k = 0; k < i; k++)
      if (g->state.at[k].in == s->in || g->state.at[k].out == s->out)
        fail(g->c, code, LOC_NONE, "'%s' or its next value belongs to two states",
             name_of(g, s->in));
    if (s->most && how.axis == MAX_RANK)
      fail(g->c, code, LOC_NONE, "state '%s' has a maximum extent, but does not grow",
           name_of(g, s->in));
    if (s->window && how.axis == MAX_RANK)
      fail(g->c, code, LOC_NONE, "state '%s' has a window, but does not grow", name_of(g, s->in));
    if (s->start && !starts_right(g, s))
      fail(g->c, code, LOC_NONE,
           "the initial contents of state '%s' have another type than the state",
           name_of(g, s->in));
    if (how.axis != MAX_RANK && dim_syminfo(g->dims, how.sym)->lo > 0)
      fail(g->c, code, LOC_NONE, "state '%s' starts empty, but %s is at least %lld",
           name_of(g, s->in), show(g->c, dim_syminfo(g->dims, how.sym)->name),
           (long long)dim_syminfo(g->dims, how.sym)->lo);
  }
  for (u32 i = 0; i < g->state.n; i++) {
    GrowingAxis how = state_growth(g, &g->state.at[i]);
    for (u32 k = 0; how.axis != MAX_RANK && k < g->state.n; k++)
      check_pair(g, code, &g->state.at[i], &how, &g->state.at[k]);
  }
}
