/* tflite_ops_control.c: branches, loops and state: variable tensors, and variables with handles.
 *
 * A state is a hidden parameter of the graph with a result that is its next value (Graph.state). A
 * handle is a constant, the index of the state. CALL_ONCE runs before the first run, so its
 * assignments are initial contents and must be constants. Sub-graphs are inlined at each call.
 */
#include "front/tflite/tflite_import.h"

/* ---- states ---- */

static LiteState *state_at(LiteImport *im, u64 key, Str name, u32 *number) {
  u32 *slot = map_put(&im->variable, key);
  if (!*slot) {
    *vec_push(&im->c->work, &im->state) = (LiteState){.name = name};
    *slot = im->state.n;
  }
  *number = *slot - 1;
  return &im->state.at[*slot - 1];
}

static void make_param(LiteImport *im, LiteState *s, Type t) {
  s->in = im->g->region.at[1].param.n;
  s->now = graph_param(im->g, 1, t, s->name);
}

static Type type_like(LiteNode *b, const LiteTensor *t) {
  u64 n;
  if (!t->dt || t->dt == DT_str)
    lite_unsupported(b, "variables of type %d are not supported", t->code);
  if (!shape_count(t->dim, t->rank, &n)) lite_bad(b, "a variable has more than 2^40 elements");
  return type_tensor(&b->c->work, t->dt, t->dim, t->rank);
}

/* limit of expanded initial contents, because a small file can request much memory */
enum { START_MOST = 1 << 26 };

/* The stored form of 0 in all elements. */
static Tensor *zeros_like(LiteNode *b, const LiteTensor *t) {
  u64 n;
  if (!lite_is_quant(t) || lite_is_symmetric(t)) return NULL;
  if (!shape_count(t->dim, t->rank, &n) || n > START_MOST)
    lite_unsupported(b, "a variable has more than 2^26 elements");
  Tensor *z = tensor_new(&b->c->work, t->dt, t->dim, t->rank);
  for (u64 i = 0; i < n; i++) tensor_set(z, i, (Scalar){.i = t->q.zero[0]});
  return z;
}

static LiteState *variable_of(LiteNode *b, u32 i) {
  const LiteTensor *t = lite_operand(b, i);
  u32 number;
  if (!t->variable) lite_bad(b, "input %u, '%s', is not a variable", i, show(b->c, t->name));
  if (b->im->scope->up) lite_unsupported(b, "variables in a sub-graph are not supported");
  LiteState *s = state_at(b->im, (u64)1 << 32 | (u32)b->op->in[i], t->name, &number);
  if (!s->now) {
    s->start = zeros_like(b, t);
    make_param(b->im, s, type_like(b, t));
  }
  return s;
}

Val lite_state_get(LiteNode *b, u32 i) {
  return variable_of(b, i)->now;
}

void lite_state_set(LiteNode *b, u32 i, Val next) {
  variable_of(b, i)->now = next;
}

void lite_finish_states(LiteImport *im) {
  Graph *g = im->g;
  for (u32 i = 0; i < im->state.n; i++) {
    const LiteState *s = &im->state.at[i];
    if (!s->now) continue;
    *vec_push(&im->c->work, &g->state) =
        (StatePair){.in = s->in, .out = g->region.at[1].ret.n, .start = s->start};
    graph_result(g, s->now, str_fmt(im->c, "%s.next", str_text(im->c, s->name)));
  }
  graph_check_state(g, ERR_input);
}

/* ---- variables by handles ---- */

void lite_var_handle(LiteNode *b) {
  Str box = flat_str(&b->op->opt, 0), name = flat_str(&b->op->opt, 1);
  Str key =
      str_fmt(b->c, "%s/%s", box ? str_text(b->c, box) : "", name ? str_text(b->c, name) : "");
  u32 number;
  state_at(b->im, key, name ? name : key, &number);
  lite_result(b, 0);
  b->out[0] = mk_scalar(b->g, DT_i64, number);
}

static LiteState *state_of(LiteNode *b) {
  const Tensor *t = graph_const(b->g, lite_in(b, 0));
  if (!t || t->n != 1 || t->dt != DT_i64 || tensor_get(t, 0).i < 0 ||
      tensor_get(t, 0).i >= b->im->state.n)
    lite_unsupported(b, "the variable is not known at compile time, which is not supported");
  return &b->im->state.at[tensor_get(t, 0).i];
}

void lite_read_variable(LiteNode *b) {
  LiteState *s = state_of(b);
  Type t = s->start ? type_tensor(&b->c->work, s->start->dt, s->start->dim, s->start->rank)
                    : type_like(b, lite_result(b, 0));
  if (!s->now) make_param(b->im, s, t);
  lite_set_stored(b, 0, s->now);
}

void lite_assign_variable(LiteNode *b) {
  LiteState *s = state_of(b);
  Val v = lite_in(b, 1);
  const Tensor *t = graph_const(b->g, v);
  if (b->im->once) {
    if (!t || s->now)
      lite_unsupported(b, "the initial contents of a variable are computed, expected constants");
    s->start = (Tensor *)(uintptr_t)t;
    return;
  }
  if (b->g->cur != 1)
    lite_unsupported(b, "assigning a variable in a branch or a loop is not supported");
  if (!s->now) make_param(b->im, s, *graph_type(b->g, v));
  s->now = v;
}

void lite_call_once(LiteNode *b) {
  Val none;
  bool outer = b->im->once;
  b->im->once = true;
  lite_subgraph(b, (u32)flat_i32(&b->op->opt, 0, 0), NULL, 0, &none, 0);
  b->im->once = outer;
}

/* ---- branches ---- */

static Val condition(LiteNode *b, Val v) {
  Dim n = type_count(b->ds, graph_type(b->g, v));
  if (lite_dt(b, v) != DT_bool || n != 1)
    lite_bad(b, "the condition has another type or shape, expected one bool");
  return mk_reshape(b->g, v, NULL, 0);
}

static void call(LiteNode *b, u32 field, const Val *in, u32 nin, Val *ret, u32 nret) {
  u32 graph = (u32)flat_i32(&b->op->opt, field, 0);
  if (lite_subgraph(b, graph, in, nin, ret, nret) != nret)
    lite_bad(b, "sub-graph %u: expected %u outputs", graph, nret);
}

void lite_if(LiteNode *b) {
  Graph *g = b->g;
  u32 nin = b->op->nin - 1, nout = b->op->nout;
  Val cond = condition(b, lite_in(b, 0)), *in = NEWS(&b->c->work, Val, nin + 1);
  Val *ret = NEWS(&b->c->work, Val, nout + 1);
  const Tensor *known = graph_const(g, cond);
  RegionId region[2], outer = g->cur;
  for (u32 i = 0; i < nin; i++) in[i] = lite_in(b, 1 + i);
  if (known) {
    call(b, tensor_get(known, 0).i ? 0 : 1, in, nin, b->out, nout);
    return;
  }
  for (u32 k = 0; k < 2; k++) {
    g->cur = region[k] = graph_region(g, 0);
    call(b, k, in, nin, ret, nout);
    for (u32 i = 0; i < nout; i++) *vec_push(&b->c->work, &g->region.at[region[k]].ret) = ret[i];
    g->cur = outer;
  }
  NodeId id = graph_add_control(g, OP_if, &cond, 1, NULL, 0, region, 2);
  for (u32 i = 0; i < nout; i++) lite_set_stored(b, i, graph_node(g, id)->out[i]);
}

/* The next value of a loop-carried tensor, with its previous shape. A run-time extent must not
 * change, such as that of a list in which one row is replaced by joining three parts. */
static Val as_before(Graph *g, Val next, Val before) {
  const Type *t = graph_type(g, next), *was = graph_type(g, before);
  u32 open = 0;
  if (t->rank != was->rank || t->dt != was->dt) return next;
  for (u32 i = 0; i < t->rank; i++) {
    if (t->dim[i] == was->dim[i]) continue;
    if (dim_is_const(t->dim[i]) || open++) return next;
  }
  return open ? mk_reshape(g, next, was->dim, was->rank) : next;
}

static void while_body(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  LiteNode *b = user;
  u32 n = b->op->nin;
  Val *next = NEWS(&b->c->work, Val, n + 1), again;
  (void)i, (void)scan;
  call(b, 1, carried, n, next, n);
  for (u32 k = 0; k < n; k++) next[k] = as_before(g, next[k], carried[k]);
  call(b, 0, next, n, &again, 1);
  for (u32 k = 0; k < n; k++) carried[k] = next[k];
  *cond = condition(b, again);
}

void lite_while(LiteNode *b) {
  u32 n = b->op->nin;
  if (b->op->nout != n)
    lite_bad(b, "found %u inputs and %u outputs, expected equal numbers", n, b->op->nout);
  Val *carried = NEWS(&b->c->work, Val, n + 1), first, scan;
  Tensor *most = tensor_new(&b->c->work, DT_i64, NULL, 0);
  tensor_set(most, 0, (Scalar){.i = INT64_MAX});
  for (u32 i = 0; i < n; i++) carried[i] = lite_in(b, i);
  call(b, 0, carried, n, &first, 1);
  Val goes = condition(b, first);
  mk_loop(b->g, mk_const(b->g, most), goes, carried, n, &scan, 0, while_body, b);
  for (u32 i = 0; i < n; i++) lite_set_stored(b, i, carried[i]);
}
