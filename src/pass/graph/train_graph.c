/* train_graph.c: turns a model into a training step.
 *
 * In: a model whose weights are named float constants, a loss and an optimizer by name. Out: the
 * same graph with weights and moments as states, and the loss as its only result. Forward, backward
 * and update are ordinary nodes, so every engine and back end runs them. Runs before all passes.
 */
#include "pass/graph/train_internal.h"

Val train_add_state(Graph *g, Type t, Str name, Tensor *start) {
  Val v = graph_param(g, 1, t, name);
  StatePair *k = vec_push(&g->c->work, &g->state);
  *k = (StatePair){.in = g->region.at[1].param.n - 1, .start = start};
  return v;
}

void train_set_next(Graph *g, Val param, Val next) {
  for (u32 i = 0; i < g->state.n; i++) {
    if (g->region.at[1].param.at[g->state.at[i].in] != param) continue;
    g->state.at[i].out = g->region.at[1].ret.n;
    graph_result(g, next, str_fmt(g->c, "%s.next", str_text(g->c, graph_val(g, param)->name)));
  }
}

/* ---- weights ---- */

static bool is_running_stat(const Graph *g, Val v) {
  for (u32 i = 0; i < g->drift.n; i++)
    if (g->drift.at[i].of == v) return true;
  return false;
}

/* Is n a weight? A constant that the reader marked; in a text, any named one. Inference and
 * evaluation take all of them from the state, including running means. */
static bool is_weight(Graph *g, const TrainOptions *o, const Node *n) {
  if (n->op != OP_const || (g->opens && !graph_val(g, n->out[0])->weight)) return false;
  if (!graph_val(g, n->out[0])->name || is_running_stat(g, n->out[0])) return false;
  const Type *t = graph_type(g, n->out[0]);
  if (!dtype_is_float(t->dt) || !t->rank || !graph_const(g, n->out[0])->n) return false;
  return !o->trains || o->trains(o->user, graph_val(g, n->out[0])->name) ||
         !train_is_training(o->part);
}

typedef struct Swaps {
  Val *old, *new;
  u32 n;
} Swaps;

static void replace_all(Graph *g, const Swaps *s) {
  Val *by = NEWS(&g->c->work, Val, g->val.n);
  for (u32 i = 0; i < s->n; i++) by[s->old[i]] = s->new[i];
  for (NodeId id = 1; id < g->node.n; id++) {
    Node *n = graph_node(g, id);
    for (u32 k = 0; k < n->nin; k++)
      if (by[n->in[k]]) n->in[k] = by[n->in[k]];
  }
  for (RegionId b = 1; b < g->region.n; b++)
    for (u32 k = 0; k < g->region.at[b].ret.n; k++)
      if (by[g->region.at[b].ret.at[k]]) g->region.at[b].ret.at[k] = by[g->region.at[b].ret.at[k]];
}

/* Parameter names must not clash with those that the step adds. */
static void refuse_names(Graph *g, Val v, const char *what) {
  static const char *const own[] = {"label", "rate"};
  for (u32 i = 0; i < sizeof own / sizeof *own; i++)
    if (str_is(g->c, graph_val(g, v)->name, own[i]))
      fail(g->c, ERR_unsupported, LOC_NONE,
           "the model has %s '%s', but the training step adds an input of that name; rename it",
           what, own[i]);
}

/* Turns named float constants into states. */
static Swaps open_weights(Graph *g, const TrainOptions *o) {
  Swaps s = {0};
  u32 most = g->region.at[1].node.n + 1;
  s.old = NEWS(&g->c->work, Val, most);
  s.new = NEWS(&g->c->work, Val, most);
  for (u32 i = 0; i < g->region.at[1].node.n; i++) {
    Node n = *graph_node(g, g->region.at[1].node.at[i]);
    if (!is_weight(g, o, &n)) continue;
    Val v = n.out[0];
    if (dtype_bytes(graph_type(g, v)->dt) < 4)
      fail(g->c, ERR_unsupported, n.loc, "weight '%s' is %s, expected f32 or f64",
           show(g->c, graph_val(g, v)->name), dtype_info[graph_type(g, v)->dt].name);
    refuse_names(g, v, "a weight");
    s.old[s.n] = v;
    s.new[s.n++] =
        train_add_state(g, *graph_type(g, v), graph_val(g, v)->name, node_attr(&n, AT_value)->u.t);
    graph_val(g, s.new[s.n - 1])->weight = true;
    graph_val(g, v)->name = 0;
  }
  replace_all(g, &s);
  return s;
}

/* Turns running statistics into states, too. */
static void open_running_stats(Graph *g, const TrainOptions *o) {
  Swaps s = {NEWS(&g->c->work, Val, g->drift.n + 1), NEWS(&g->c->work, Val, g->drift.n + 1), 0};
  for (u32 i = 0; i < g->drift.n; i++) {
    const Node *n = graph_def(g, g->drift.at[i].of, OP_const);
    if (!n) continue;
    Val v = n->out[0];
    s.old[s.n] = v;
    s.new[s.n] =
        train_add_state(g, *graph_type(g, v), graph_val(g, v)->name, node_attr(n, AT_value)->u.t);
    graph_val(g, s.new[s.n])->weight = true;
    graph_val(g, v)->name = 0;
    Val next = g->drift.at[i].next;
    if (o->part == TP_grads)
      graph_result(g, next,
                   str_fmt(g->c, "%s.next", str_text(g->c, graph_val(g, s.new[s.n])->name)));
    train_set_next(g, s.new[s.n], o->part == TP_grads ? s.new[s.n] : next);
    s.n++;
  }
  replace_all(g, &s);
}

/* Clips the global gradient norm to `most`. */
static void clip_norm(Graph *g, double most, Val *d, u32 n) {
  Val sum = 0;
  i64 axes[MAX_RANK];
  for (u32 i = 0; i < MAX_RANK; i++) axes[i] = i;
  for (u32 i = 0; i < n; i++) {
    if (!d[i]) continue;
    u32 rank = graph_type(g, d[i])->rank;
    Val x = mk_reduce(g, OP_reduce_sum, mk_mul(g, d[i], d[i]), axes, rank, false);
    x = mk_cast(g, x, DT_f32);
    sum = sum ? mk_add(g, sum, x) : x;
  }
  Val little = mk_scalar(g, DT_f32, 1e-6);
  Val length = mk_add(g, mk_sqrt(g, sum), little);
  Val one = mk_scalar(g, DT_f32, 1);
  Val by = mk_min(g, mk_div(g, mk_scalar(g, DT_f32, most), length), one);
  for (u32 i = 0; i < n; i++)
    if (d[i]) d[i] = mk_mul(g, d[i], mk_cast(g, by, graph_type(g, d[i])->dt));
}

/* Clips every element of the gradients to -most..most. */
static void clip_elements(Graph *g, double most, Val *d, u32 n) {
  for (u32 i = 0; i < n; i++) {
    if (!d[i]) continue;
    Val high = mk_like(g, d[i], most);
    d[i] = mk_min(g, mk_max(g, d[i], mk_like(g, d[i], -most)), high);
  }
}

static void clip_gradients(Graph *g, const TrainOptions *o, Val *d, u32 n) {
  if (o->clip_value >= 0) clip_elements(g, o->clip_value, d, n);
  if (o->clip >= 0) clip_norm(g, o->clip, d, n);
}

static Val add_rate(Graph *g) {
  return graph_param(g, 1, type_tensor(&g->c->work, DT_f32, NULL, 0), str_of(g->c, "rate"));
}

static Str grad_name(Graph *g, Val w) {
  return str_fmt(g->c, "%s.grad", str_text(g->c, graph_val(g, w)->name));
}

/* A separate graph with the weights w and gradients d (some 0) of g as parameters. */
static Graph *update_alone(Graph *g, const TrainOptions *o, const Swaps *w, const Val *d) {
  Ctx *c = g->c;
  Graph *h = graph_new(c);
  Val *x = NEWS(&c->work, Val, w->n), *by = NEWS(&c->work, Val, w->n);
  u32 n = 0;
  h->cur = 1;
  for (u32 i = 0; i < w->n; i++)
    if (d[i]) by[n++] = graph_param(h, 1, *graph_type(g, w->new[i]), grad_name(g, w->new[i]));
  Val rate = add_rate(h);
  n = 0;
  for (u32 i = 0; i < w->n; i++) {
    if (!d[i]) continue;
    const Value *v = graph_val(g, w->new[i]);
    Tensor *start = NULL;
    for (u32 k = 0; k < g->state.n; k++)
      if (g->region.at[1].param.at[g->state.at[k].in] == w->new[i]) start = g->state.at[k].start;
    x[n] = train_add_state(h, v->type, v->name, start);
    graph_val(h, x[n++])->weight = true;
  }
  /* a program needs a result: the learning rate it was given */
  graph_result(h, mk_add(h, rate, mk_scalar(h, DT_f32, 0)), str_of(c, "rate.used"));
  clip_gradients(h, o, by, n);
  train_update(h, o, rate, x, by, n);
  return h;
}

static void check(Graph *g, const TrainOptions *o) {
  const GraphRegion *b = &g->region.at[1];
  if (g->state.n)
    fail(g->c, ERR_unsupported, LOC_NONE,
         "the model has state; only models without state can be trained");
  if (o->output >= b->ret.n)
    fail(g->c, ERR_usage, LOC_NONE, "output %u does not exist, the model has %u outputs", o->output,
         b->ret.n);
  Val y = b->ret.at[o->output];
  if (!dtype_is_float(graph_type(g, y)->dt))
    fail(g->c, ERR_unsupported, LOC_NONE, "output %u is %s, expected floats for a loss", o->output,
         type_text(g->dims, graph_type(g, y)));
  for (u32 i = 0; i < b->param.n; i++) refuse_names(g, b->param.at[i], "an input");
}

static Val add_loss(Graph *g, const TrainOptions *o) {
  Predictions seen = {0};
  Val y = g->region.at[1].ret.at[o->output];
  g->region.at[1].ret.n = g->out_name.n = 0;
  Val loss = train_loss(g, o, y, &seen);
  graph_result(g, loss, str_of(g->c, "loss"));
  if (seen.right) graph_result(g, seen.right, str_of(g->c, "right"));
  if (o->classes && seen.is) graph_result(g, seen.is, str_of(g->c, "class"));
  return loss;
}

Graph *train_step(Graph *g, const TrainOptions *o) {
  check(g, o);
  g->cur = 1;
  g->eager = false;
  Val loss = o->part == TP_infer ? 0 : add_loss(g, o);
  Val rate = o->part == TP_step ? add_rate(g) : 0;
  Swaps w = open_weights(g, o);
  if (!w.n) fail(g->c, ERR_unsupported, LOC_NONE, "the model has no weights to train");
  Val *d = NEWS(&g->c->work, Val, w.n);
  if (train_is_training(o->part)) {
    GradOptions how = {.recompute = o->recompute, .gaps = true};
    grad_with(g, &how, loss, w.new, w.n, NULL, 0, d);
  }
  if (o->part == TP_update) return update_alone(g, o, &w, d);
  for (u32 i = 0; i < w.n; i++) {
    if (o->part == TP_grads && d[i]) graph_result(g, d[i], grad_name(g, w.new[i]));
    if (o->part != TP_step || !d[i]) train_set_next(g, w.new[i], w.new[i]);
  }
  if (o->part == TP_step) {
    clip_gradients(g, o, d, w.n);
    train_update(g, o, rate, w.new, d, w.n);
  }
  open_running_stats(g, o);
  return g;
}
