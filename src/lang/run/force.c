/* force.c: computes tensors on demand.
 *
 * In: tensors. Out: their data. Method: collects the pending operations (pending_graph.c) and looks
 * up their key in a table. On a miss they become a Graph, whose parameters are the known tensors,
 * and a program. The interpreter runs a small program the first time, because most structures never
 * recur. From the second time on the chosen engine runs it, with the same bits.
 */
#include "lang/run/dry.h"
#include "pass/graph/grad.h"

#include <string.h>

enum { MAX_PROGS = 256 }; /* cached programs */
#define SMALL_STEPS                                                                                \
  300000.0 /* max operations of a program that the interpreter runs the first time */

typedef struct TensorProg {
  Ingot *m;
  u32 nin, nout, runs;
  Tensor **in, **out;
} TensorProg;

struct ProgCache {
  Map by_key; /* key -> 1 + index */
  VEC(TensorProg) made;
  Arena a;
};

/* All requested derivatives of y at once: they share intermediate values. */
static void build_grads(Graph *g, PendingGraph *k, Val *val, const LazyTensor *y) {
  Val *x = NEWS(&g->c->work, Val, k->all.n), *d = NEWS(&g->c->work, Val, k->all.n);
  u32 *who = NEWS(&g->c->work, u32, k->all.n), n = 0;
  for (u32 i = 0; i < k->all.n; i++) {
    const LazyTensor *t = k->all.at[i];
    if (!pending_is_op(k, t) || t->op != LOP_grad || t->in[0] != y || t->in[1]->op != LOP_leaf)
      continue;
    x[n] = val[t->in[1]->place];
    who[n++] = i;
  }
  if (n) grad(g, val[y->place], x, n, NULL, 0, d);
  for (u32 i = 0; i < n; i++) val[who[i]] = d[i];
}

static Val build_grad(Graph *g, PendingGraph *k, Val *val, const LazyTensor *t, u32 at) {
  if (t->in[1]->op == LOP_leaf) {
    build_grads(g, k, val, t->in[0]);
    return val[at];
  }
  Val d;
  grad(g, val[t->in[0]->place], &val[t->in[1]->place], 1, NULL, 0, &d);
  return d;
}

/* Known tensors are parameters. In a traced function only its arguments are; the rest are
 * constants. */
static Val known_value(Graph *g, const PendingGraph *k, const LazyTensor *t, u32 i) {
  Ctx *c = g->c;
  if (!k->fn) {
    Type type = type_tensor(&c->work, DT_f64, t->dim, t->rank);
    return graph_param(g, 1, type, str_fmt(c, "x%u", i));
  }
  Tensor *x = tensor_new(&c->work, k->fn->dt, t->dim, t->rank);
  for (u64 j = 0; j < t->n; j++)
    tensor_set(x, j, scalar_cast(DT_f64, k->fn->dt, (Scalar){.f = t->data[j]}, true));
  return mk_const(g, x);
}

static void params(Graph *g, const PendingGraph *k, Val *val) {
  const TracedFn *f = k->fn;
  for (u32 i = 0; f && i < f->n; i++) {
    Type type = type_tensor(&g->c->work, f->dt, f->param[i]->dim, f->param[i]->rank);
    Val v = graph_param(g, 1, type, str_of(g->c, f->name[i]));
    if (f->param[i]->mark == k->ev->mark) val[f->param[i]->place] = v;
  }
}

void pending_build(Ctx *c, PendingGraph *k) {
  Graph *g = graph_new(c);
  Val *val = NEWS(&c->work, Val, k->all.n), in[MAX_RANK * 4];
  g->name = str_of(c, "tensors");
  if (k->fn && k->ev->dims) g->dims = k->ev->dims;
  g->loc = LOC_NONE;
  params(g, k, val);
  for (u32 i = 0; i < k->all.n; i++) {
    const LazyTensor *t = k->all.at[i];
    if (!pending_is_op(k, t) && !val[i]) val[i] = known_value(g, k, t, i);
  }
  for (u32 i = 0; i < k->all.n; i++) {
    const LazyTensor *t = k->all.at[i];
    if (!pending_is_op(k, t) || val[i]) continue;
    if (t->op == LOP_grad) {
      val[i] = build_grad(g, k, val, t, i);
      continue;
    }
    Val *operand = t->nin <= sizeof in / sizeof *in ? in : NEWS(&c->work, Val, t->nin);
    for (u32 j = 0; j < t->nin; j++) operand[j] = val[t->in[j]->place];
    val[i] = mk_reshape(g, lazy_op_build(g, t, operand), t->dim, t->rank);
  }
  for (u32 i = 0; i < k->nout; i++)
    graph_result(g, val[k->out[i]->place],
                 k->nout == 1 ? str_of(c, "output") : str_fmt(c, "output%u", i));
  k->m->g = g;
  model_adopt(k->m, "tensors");
  api_describe(k->m);
}

static void build(Ctx *c, void *arg) {
  pending_build(c, arg);
}

void model_adopt(Ingot *m, const char *name) {
  m->opened.reader = &reader_table[0]; /* the reader of text forms */
  if (!m->opened.source.at)
    m->opened.source = (Source){.at = (const u8 *)"", .file = str_of(m->c, name)};
}

/* Reports an error of the program's session in that of the script. */
static void check_status(Eval *ev, Ingot *m, IngotStatus s) {
  if (!s) return;
  const Diag *d = m->c->diags;
  Err code = (Err)s == ERR_system ? ERR_system : (Err)s;
  const char *text = d ? diag_cause(d) : "out of memory";
  fail(ev->c, code, LOC_NONE, "%s", eval_message(ev, ev->at, text));
}

static void prog_cache_clear(ProgCache *r) {
  for (u32 i = 0; i < r->made.n; i++) ingot_free(r->made.at[i].m);
  r->made.n = 0;
}

void prog_cache_free(Eval *ev) {
  if (!ev->made) return;
  prog_cache_clear(ev->made);
  arena_clear(&ev->made->a);
  ev->made = NULL;
}

static ProgCache *prog_cache_get(Eval *ev) {
  if (!ev->made) {
    ev->made = NEW(&ev->c->keep, ProgCache);
    ev->made->a.c = ev->c;
    ev->made->by_key = map_new(&ev->made->a);
  }
  return ev->made;
}

typedef struct ProgJob {
  PendingGraph *k;
  TensorProg *made;
} ProgJob;

/* All that may fail in the session of the program. */
static void build_prog(Ctx *c, void *arg) {
  PendingGraph *k = ((ProgJob *)arg)->k;
  TensorProg *made = ((ProgJob *)arg)->made;
  pending_build(c, k);
  made->nout = k->nout;
  for (u32 i = 0; i < k->all.n; i++) made->nin += !pending_is_op(k, k->all.at[i]);
  made->in = NEWS(&c->keep, Tensor *, made->nin + 1);
  made->out = NEWS(&c->keep, Tensor *, made->nout + 1);
  for (u32 i = 0, n = 0; i < k->all.n; i++)
    if (!pending_is_op(k, k->all.at[i]))
      made->in[n++] = tensor_wrap(&c->keep, DT_f64, k->all.at[i]->dim, k->all.at[i]->rank, NULL);
}

static TensorProg *compile_prog(PendingGraph *k, const StrBuf *key) {
  Eval *ev = k->ev;
  ProgCache *r = ev->made;
  if (r->made.n == MAX_PROGS) {
    prog_cache_clear(r);
    memset(&r->made, 0, sizeof r->made);
    arena_clear(&r->a);
    r->by_key = map_new(&r->a);
  }
  TensorProg *made = vec_push(&r->a, &r->made);
  IngotAlloc alloc = {ev->c->alloc.resize, ev->c->alloc.user};
  made->m = k->m = ingot_new(&alloc);
  if (!made->m) {
    r->made.n--;
    fail(ev->c, ERR_system, LOC_NONE, "out of memory");
  }
  made->m->c->guard = ev->c->guard;
  if (ev->o->march) check_status(ev, made->m, ingot_set_target(made->m, ev->o->march));
  ProgJob turn = {k, made};
  check_status(ev, made->m, api_call(made->m, build_prog, &turn));
  *map_put_bytes(&r->by_key, key->at, key->n) = r->made.n;
  return made;
}

typedef struct RunJob {
  Eval *ev;
  TensorProg *made;
} RunJob;

static void run(Ctx *c, void *arg) {
  RunJob *t = arg;
  TensorProg *d = t->made;
  Ingot *m = d->m;
  const Engine *e = api_engine(c, t->ev->o->engine ? t->ev->o->engine : "vm", 0);
  bool graph = e->info.flags & INGOT_GRAPH;
  NodeId dear;
  if (e->info.flags & INGOT_FILE)
    fail(c, ERR_usage, LOC_NONE, "engine %s runs files only", e->info.name);
  arena_clear(&m->run.once);
  m->run.in = d->in;
  m->run.out = d->out;
  m->run.nin = d->nin;
  m->run.nout = d->nout;
  bool once = !d->runs && m->g && graph_steps(m->g, &dear) < SMALL_STEPS;
  d->runs++;
  m->compiled.stays = true;
  if (!graph && !m->p) {
    if (e->info.flags & INGOT_NATIVE) api_native_flags(m);
    api_run_passes(m, &(IngotPassOptions){.skip = "canon"}); /* canon may change last bits */
  }
  if (once && !graph) e = api_engine(c, "interp", 0); /* same bits, without generating code */
  e->run(m, 0);
}

static void copy_results(PendingGraph *k, TensorProg *made) {
  for (u32 i = 0; i < k->nout; i++) {
    LazyTensor *t = k->out[i];
    if (t->data) continue;
    t->data = lazy_alloc(k->ev, t->n);
    memcpy(t->data, made->out[i]->data, (size_t)t->n * sizeof(double));
  }
}

static void compute(PendingGraph *k, const StrBuf *key) {
  Eval *ev = k->ev;
  ProgCache *r = prog_cache_get(ev);
  const u32 *at = map_get_bytes(&r->by_key, key->at, key->n);
  TensorProg *made = at ? &r->made.at[*at - 1] : compile_prog(k, key);
  for (u32 i = 0, j = 0; i < k->all.n; i++)
    if (!pending_is_op(k, k->all.at[i])) made->in[j++]->data = k->all.at[i]->data;
  RunJob turn = {ev, made};
  check_status(ev, made->m, api_call(made->m, run, &turn));
  copy_results(k, made);
}

/* Fails if a needed value depends on the arguments of a traced function. */
static void refuse_holes(const PendingGraph *k) {
  for (u32 i = 0; i < k->all.n; i++) {
    const LazyTensor *t = k->all.at[i];
    bool given = false;
    for (u32 j = 0; k->fn && j < k->fn->n; j++) given |= k->fn->param[j] == t;
    if (!pending_is_op(k, t) && !t->data && !given)
      eval_fail(k->ev, k->ev->at,
                "the function reads the data of its arguments: it cannot become a graph");
  }
}

bool lazy_is_symbolic(Eval *ev, LazyTensor *t) {
  PendingGraph k = {.ev = ev, .out = &t, .nout = 1};
  bool waits = false;
  if (!ev->tracing) return false;
  Mark mark = arena_mark(&ev->stack);
  pending_collect(&k, &ev->stack);
  for (u32 i = 0; i < k.all.n; i++) waits |= !pending_is_op(&k, k.all.at[i]) && !k.all.at[i]->data;
  arena_rewind(&ev->stack, mark);
  return waits;
}

void traced_build_graph(Eval *ev, Ingot *m, const TracedFn *t) {
  PendingGraph k = {.ev = ev, .out = t->out, .nout = t->nout, .m = m, .fn = t};
  prog_cache_get(ev);
  pending_collect(&k, &ev->stack);
  refuse_holes(&k);
  pending_build(ev->c, &k);
}

static void show_graph(PendingGraph *k, StrBuf *out) {
  Eval *ev = k->ev;
  IngotAlloc alloc = {ev->c->alloc.resize, ev->c->alloc.user};
  prog_cache_get(ev);
  pending_collect(k, &ev->stack);
  refuse_holes(k);
  k->m = ingot_new(&alloc);
  if (!k->m) fail(ev->c, ERR_system, LOC_NONE, "out of memory");
  IngotStatus s = api_call(k->m, build, k);
  StrBuf text = sb_new(&ev->c->work);
  if (!s) graph_print(k->m->g, &text, NULL);
  ingot_free(k->m);
  if (s) ARG_BAD(ev, "this value has no graph");
  sb_put(out, text.at, text.n);
}

void lazy_show_graph(Eval *ev, LazyTensor *t, StrBuf *out) {
  PendingGraph k = {.ev = ev, .out = &t, .nout = 1};
  show_graph(&k, out);
}

void traced_show_graph(Eval *ev, const TracedFn *t, StrBuf *out) {
  PendingGraph k = {.ev = ev, .out = t->out, .nout = t->nout, .fn = t};
  show_graph(&k, out);
}

void lazy_force(Eval *ev, LazyTensor *const *t, u32 n) {
  Mark mark = arena_mark(&ev->stack);
  LazyTensor **out = arena_array(&ev->stack, n + 1, sizeof *out);
  PendingGraph k = {.ev = ev, .out = out};
  for (u32 i = 0; i < n; i++)
    if (!t[i]->data) out[k.nout++] = t[i];
  if (k.nout) {
    pending_collect(&k, &ev->stack);
    if (ev->tracing) refuse_holes(&k);
    StrBuf key = pending_key(&k, &ev->stack);
    if (ev->dry)
      dry_force(&k, &key);
    else
      compute(&k, &key);
    for (u32 i = 0; i < k.nout; i++) {
      out[i]->size = 0;
      if (!out[i]->tracked) lazy_drop_inputs(ev, out[i]);
    }
  }
  arena_rewind(&ev->stack, mark);
}

const double *lazy_data(Eval *ev, LazyTensor *t) {
  if (!t->data) lazy_force(ev, &t, 1);
  return t->data;
}
