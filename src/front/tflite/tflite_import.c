/* tflite_import.c: a decoded TensorFlow Lite model as a Graph.
 *
 * In: a LiteModel and import options. Out: a Graph of core ops. Operators are visited in file
 * order; each has a builder by its code (tflite_ops.def). Tensors with contents become constants
 * when first used. Result shapes are computed, because those in the file assume the batch of the
 * conversion. An unsupported operator poisons its results, so one run reports all of them. An
 * invalid one ends the import.
 */
#include "front/tflite/tflite_import.h"

#include <string.h>

static const LiteRow rows[] = {
#define TF(code, name, build, arg, least, most) {code, #name, build, arg, least, most},
#define NO(code, name)                          {code, #name, NULL, 0, 0, 255},
#include "front/tflite/tflite_ops.def"
#undef TF
#undef NO
};
enum { NROWS = sizeof rows / sizeof *rows };

static Loc here(const LiteImport *im) {
  return (Loc){.file = im->file, .index = -1};
}

/* ---- table ---- */

Str lite_op_name(Ctx *c, u32 code) {
  for (u32 i = 0; i < NROWS; i++)
    if (rows[i].code == code && code != LITE_CUSTOM) return str_of(c, rows[i].name);
  return str_fmt(c, code == LITE_CUSTOM ? "CUSTOM" : "operator %u", code);
}

static const LiteRow *find_row(const LiteImport *im, const LiteOp *op) {
  for (u32 i = 0; i < NROWS; i++)
    if (rows[i].code == op->code && rows[i].build &&
        (op->code != LITE_CUSTOM || str_is(im->c, op->name, rows[i].name)))
      return &rows[i];
  return NULL;
}

bool lite_op_at(u32 i, ReaderOp *out) {
  for (u32 k = 0; k < NROWS; k++) {
    if (!rows[k].build || i--) continue;
    *out = (ReaderOp){"tflite", rows[k].name, 0, 0};
    return true;
  }
  return false;
}

/* ---- operators ---- */

Val lite_value(LiteImport *im, u32 tensor) {
  const LiteTensor *t = &im->scope->graph->tensor[tensor];
  Val *v = &im->scope->val[tensor];
  u64 n;
  bool empty = !t->variable && shape_count(t->dim, t->rank, &n) && !n && t->raw.at;
  if (*v || (!t->raw.n && !empty)) return *v;
  RegionId cur = im->g->cur;
  Loc at = im->g->loc;
  im->g->cur = 1; /* before the control node being built, visible to all later nodes */
  im->g->loc = LOC_NONE;
  *v = mk_const(im->g, lite_tensor(im->c, t, here(im)));
  graph_val(im->g, *v)->name = t->name;
  graph_val(im->g, *v)->weight = im->g->opens && dtype_is_float(t->dt);
  im->g->cur = cur;
  im->g->loc = at;
  return *v;
}

static void unsupported_op(LiteImport *im, const LiteOp *op, Loc loc) {
  if (!find_row(im, op))
    diag(im->c, ERR_unsupported, loc, "%s %s is not supported",
         op->code == LITE_CUSTOM ? "custom operator" : "operator", show(im->c, op->name));
}

typedef struct BuildAttempt {
  const LiteRow *row;
  LiteNode *b;
} BuildAttempt;

static void attempt(Ctx *c, void *arg) {
  const BuildAttempt *a = arg;
  (void)c;
  lite_check(a->b);
  a->row->build(a->b);
}

/* Runs the builder. Records a refusal and returns false; other failures propagate. */
static bool build_op(LiteImport *im, LiteNode *b, Loc loc) {
  const LiteRow *row = find_row(im, b->op);
  if (!row) {
    unsupported_op(im, b->op, loc);
    return false;
  }
  if (b->op->nin < row->least || (row->most != 255 && b->op->nin > row->most))
    fail(im->c, ERR_input, loc, "%u inputs are given, but %s takes %u to %u", b->op->nin, row->name,
         row->least, row->most);
  b->arg = row->arg;
  RegionId cur = im->g->cur;
  LiteScope *scope = im->scope;
  u32 depth = im->depth;
  bool once = im->once;
  Err e = ctx_protect(im->c, attempt, &(BuildAttempt){row, b});
  if (!e) return true;
  if (e != ERR_unsupported) longjmp(*im->c->door, (int)e); /* already recorded */
  im->g->cur = cur;
  im->scope = scope;
  im->depth = depth;
  im->once = once;
  return false;
}

/* False if an operand is poisoned. */
static bool operands_good(LiteImport *im, const LiteOp *op, Loc loc) {
  bool good = true;
  for (u32 i = 0; i < op->nin; i++) {
    if (op->in[i] < 0) continue;
    Val v = lite_value(im, (u32)op->in[i]);
    if (v == LITE_POISON) good = false;
    if (!v && !im->scope->graph->tensor[op->in[i]].variable)
      fail(im->c, ERR_input, loc, "input %u, tensor '%s', is not computed by an earlier operator",
           i, show(im->c, im->scope->graph->tensor[op->in[i]].name));
  }
  return good;
}

Str lite_node_name(const LiteGraph *g, const LiteOp *op) {
  return op->nout && op->out[0] >= 0 ? g->tensor[op->out[0]].name : 0;
}

static void define(LiteImport *im, const LiteOp *op, u32 k, Val v, Loc loc) {
  if (op->out[k] < 0) return;
  const LiteTensor *t = &im->scope->graph->tensor[op->out[k]];
  Val *slot = &im->scope->val[op->out[k]];
  if (*slot || t->raw.n)
    fail(im->c, ERR_input, loc, "tensor '%s' is computed twice or is a constant",
         show(im->c, t->name));
  if (!v) fail(im->c, ERR_input, loc, "%s has no output number %u", show(im->c, op->name), k);
  *slot = v;
  if (v != LITE_POISON && !graph_val(im->g, v)->name) graph_val(im->g, v)->name = t->name;
}

/* Sub-graphs are inlined at each call; limits the growth of nested calls. */
static void count_steps(LiteImport *im, u32 n, Loc loc) {
  if (n > LITE_MOST_STEPS - im->steps)
    fail(im->c, ERR_unsupported, loc, "the model has more than %d operators and tensors",
         LITE_MOST_STEPS);
  im->steps += n;
}

static void import_ops(LiteImport *im) {
  const LiteGraph *lg = im->scope->graph;
  for (u32 i = 0; i < lg->nop; i++) {
    const LiteOp *op = &lg->op[i];
    Loc loc = {.file = im->file, .node = lite_node_name(lg, op), .op = op->name, .index = (i32)i};
    count_steps(im, 1, loc);
    LiteNode b = {.c = im->c, .g = im->g, .ds = im->g->dims, .im = im, .op = op};
    b.out = NEWS(&im->c->work, Val, op->nout + 1);
    im->g->loc = im->c->here = loc;
    NodeId first = im->g->node.n;
    bool good = operands_good(im, op, loc);
    if (!good) unsupported_op(im, op, loc);
    good = good && build_op(im, &b, loc);
    if (good) layer_end(im->g, first);
    for (u32 k = 0; k < op->nout; k++) define(im, op, k, good ? b.out[k] : LITE_POISON, loc);
    if (!im->depth) arena_clear(&im->c->scratch);
  }
}

static LiteScope *scope_new(LiteImport *im, u32 graph) {
  LiteScope *s = NEW(&im->c->work, LiteScope);
  s->up = im->scope;
  s->graph = &im->m->graph[graph];
  count_steps(im, s->graph->ntensor, here(im));
  s->val = NEWS(&im->c->work, Val, s->graph->ntensor + 1);
  return s;
}

u32 lite_subgraph(LiteNode *b, u32 graph, const Val *in, u32 nin, Val *ret, u32 max) {
  LiteImport *im = b->im;
  Loc loc = im->g->loc;
  LiteScope *outer = im->scope;
  if (graph >= im->m->ngraph)
    lite_bad(b, "sub-graph %u does not exist: there are %u", graph, im->m->ngraph);
  if (++im->depth > LITE_GRAPH_DEPTH)
    lite_unsupported(b, "calls of sub-graphs are nested deeper than %d", LITE_GRAPH_DEPTH);
  LiteScope *s = scope_new(im, graph);
  const LiteGraph *lg = s->graph;
  if (lg->nin != nin) lite_bad(b, "sub-graph %u takes %u inputs, got %u", graph, lg->nin, nin);
  if (lg->nout > max)
    lite_bad(b, "sub-graph %u has %u outputs, expected at most %u", graph, lg->nout, max);
  im->scope = s;
  for (u32 i = 0; i < nin; i++) s->val[lg->in[i]] = in[i];
  import_ops(im);
  im->g->loc = im->c->here = loc;
  bool poisoned = false;
  for (u32 i = 0; i < lg->nout; i++) {
    ret[i] = lite_value(im, (u32)lg->out[i]);
    if (!ret[i]) lite_bad(b, "sub-graph %u does not compute its output %u", graph, i);
    poisoned = poisoned || ret[i] == LITE_POISON;
  }
  im->scope = outer;
  im->depth--;
  if (poisoned) lite_unsupported(b, "its sub-graph %u cannot be built", graph);
  return lg->nout;
}

/* ---- model ---- */

/* Names of inputs or outputs in signatures, by tensor. */
static Map signature_names(Ctx *c, const LiteModel *m, bool out) {
  Map name = map_new(&c->keep);
  for (u32 i = 0; i < m->nsig; i++) {
    const LiteSignature *s = &m->sig[i];
    const LiteName *at = out ? s->out : s->in;
    for (u32 k = 0; !s->graph && k < (out ? s->nout : s->nin); k++) {
      u32 *first = map_put(&name, at[k].tensor);
      if (!*first) *first = at[k].name;
    }
  }
  return name;
}

/* The declaration of a tensor. An absent or duplicate name gets a number. */
static DeclValue declare(Ctx *c, const LiteGraph *g, const Map *names, Map *taken, bool out,
                         u32 i) {
  u32 tensor = (u32)(out ? g->out[i] : g->in[i]);
  const LiteTensor *t = &g->tensor[tensor];
  const u32 *alias = map_get(names, tensor);
  Str name = alias && *alias ? *alias : t->name;
  if (!name) name = str_fmt(c, "%s_%u", out ? "output" : "input", i);
  while (*map_put(taken, name)) name = str_fmt(c, "%s_%u", str_text(c, name), i);
  *map_put(taken, name) = 1;
  DeclValue v = {name,
                 t->name == name ? 0 : t->name,
                 {.kind = OT_tensor, .elem_code = t->code, .dt = t->dt, .has_shape = true}};
  for (u32 k = 0; k < t->rank; k++) {
    DeclDim d = {.kind = OD_value, .value = t->dim[k]};
    if (t->open && t->open[k] < 0)
      d = k ? (DeclDim){.kind = OD_unknown}
            : (DeclDim){.kind = OD_param, .param = str_of(c, "batch")};
    *vec_push(&c->keep, &v.type.dims) = d;
  }
  return v;
}

Model *lite_open(Ctx *c, const Source *s) {
  LiteModel *lm = lite_read(c, s->at, s->n, s->file);
  const LiteGraph *g = &lm->graph[0];
  Model *m = NEW(&c->keep, Model);
  DeclValue *in = NEWS(&c->keep, DeclValue, g->nin + 1),
            *out = NEWS(&c->keep, DeclValue, g->nout + 1);
  Map in_name = signature_names(c, lm, false), out_name = signature_names(c, lm, true);
  Map ins = map_new(&c->keep), outs = map_new(&c->keep);
  *m = (Model){.own = lm, .ninput = g->nin, .output = out, .noutput = g->nout};
  m->input = NEWS(&c->keep, const DeclValue *, g->nin + 1);
  for (u32 i = 0; i < g->nin; i++) {
    in[i] = declare(c, g, &in_name, &ins, false, i);
    m->input[i] = &in[i];
  }
  for (u32 i = 0; i < g->nout; i++) out[i] = declare(c, g, &out_name, &outs, true, i);
  return m;
}

/* Records the scale of an input or output, if there is only one. */
static void note_scale(LiteImport *im, const LiteTensor *t, Str name, bool out) {
  Scalar lo, hi;
  if (!lite_is_quant(t) || t->q.n != 1) return;
  dtype_limits(t->dt, &lo, &hi);
  if (t->q.zero[0] < lo.i || t->q.zero[0] > hi.i) return;
  *vec_push(&im->c->work, &im->g->scale) =
      (QuantParams){name, out, (double)t->q.scale[0], t->q.zero[0]};
}

static void import_inputs(LiteImport *im, const Model *m) {
  const LiteGraph *lg = im->scope->graph;
  Extents *e = &im->extents;
  *e = (Extents){.c = im->c, .dims = im->g->dims, .file = im->file, .o = im->o};
  e->input = m->input;
  e->ninput = m->ninput;
  extents_open(e);
  for (u32 i = 0; i < m->ninput; i++) {
    const DeclValue *v = m->input[i];
    if (!v->type.dt || v->type.dt == DT_str)
      fail(im->c, ERR_unsupported, here(im), "input '%s': element type %d is not supported",
           show(im->c, v->name), v->type.elem_code);
    Type t = extents_type(e, v);
    const BindInput *frozen = extents_frozen(e, v, t);
    Val *slot = &im->scope->val[lg->in[i]];
    if (*slot || lg->tensor[lg->in[i]].raw.n)
      fail(im->c, ERR_input, here(im), "tensor '%s' is an input twice or is a constant",
           show(im->c, v->name));
    *slot = frozen ? mk_const(im->g, (Tensor *)(uintptr_t)frozen->data)
                   : graph_param(im->g, 1, t, v->name);
    if (frozen) graph_val(im->g, *slot)->name = v->name;
    note_scale(im, &lg->tensor[lg->in[i]], v->name, false);
  }
  extents_close(e);
  im->o = e->o;
}

static void import_outputs(LiteImport *im, const Model *m) {
  const LiteGraph *lg = im->scope->graph;
  if (!lg->nout) fail(im->c, ERR_input, here(im), "the model has no outputs");
  OutputStructure *port = NEWS(&im->c->keep, OutputStructure, lg->nout);
  for (u32 i = 0; i < lg->nout; i++) {
    Val v = lite_value(im, (u32)lg->out[i]);
    if (!v)
      fail(im->c, ERR_input, here(im), "output '%s' is not computed by any operator",
           show(im->c, m->output[i].name));
    if (v == LITE_POISON) continue;
    port[i] = (OutputStructure){.kind = TY_tensor, .flat = im->g->out_name.n};
    graph_result(im->g, v, m->output[i].name);
    note_scale(im, &lg->tensor[lg->out[i]], m->output[i].name, true);
  }
  if (im->o->outputs) *im->o->outputs = port;
}

Graph *lite_import(Ctx *c, const Source *s, const Model *m, const ImportOptions *o) {
  LiteImport im = {.c = c, .o = o, .file = s->file, .m = m->own};
  *im.m->flat = flat_open(c, s->at, s->n, here(&im)); /* new budget: options are read again */
  im.g = graph_new(c);
  im.g->eager = true;
  im.g->opens = o->opens;
  im.g->trains = o->trains;
  im.g->name = im.m->graph[0].name;
  im.variable = map_new(&c->work);
  im.scope = scope_new(&im, 0);
  import_inputs(&im, m);
  import_ops(&im);
  import_outputs(&im, m);
  diag_raise(c);
  lite_finish_states(&im);
  im.g->eager = false;
  im.g->loc = LOC_NONE;
  c->here = here(&im);
  return im.g;
}
