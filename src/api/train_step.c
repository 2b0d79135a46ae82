/* train_step.c: a program of the training, made once and run many times.
 *
 * In: an open model, a part of its training step, and the number of examples. Out: the part as its
 * own session with the same Ctx, compiled and loaded, with input arrays at fixed addresses. Engines
 * c and jit are called directly: a run copies and allocates nothing. States lie in the arena of the
 * code, or in separate memory for bytecode, in row-major order.
 */
#include "api/train_loop.h"

#include <string.h>

static Tensor **make_inputs(Ingot *m) {
  u32 n = api_param_count(m);
  Tensor **in = NEWS(&m->c->keep, Tensor *, n + 1);
  for (u32 i = 0; i < n; i++) {
    IngotTensor t = ingot_input_info(m, i);
    in[i] = tensor_new(&m->c->keep, dtype_from_name(t.dtype, strlen(t.dtype)), t.dim, t.rank);
  }
  return in;
}

/* Address of the state in buffer b. */
static u8 *memory_of(const TrainStep *d, BufId b) {
  const Buf *x = prog_buf(d->m->p, b);
  if (d->code) return d->arena + x->offset;
  const InterpState *s =
      strcmp(d->engine, "vm") ? d->m->states.interp_state : d->m->states.vm_state;
  return s->at[b];
}

static void find_states(TrainStep *d) {
  Prog *p = d->m->p;
  Ctx *c = d->m->c;
  d->state = NEWS(&c->keep, StateArray, p->buf.n + 1);
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    if (x->space != BS_state || x->alias) continue;
    u64 n;
    i64 *dim = NEWS(&c->keep, i64, x->rank + 1);
    for (u32 i = 0; i < x->rank; i++) dim[i] = x->dim[i];
    if (!shape_count(dim, x->rank, &n)) internal_error(c, LOC_NONE, "a state of open size");
    if (train_step_state(d, x->name))
      fail(c, ERR_unsupported, LOC_NONE, "two states of the step are called '%s'",
           show(c, x->name));
    d->state[d->nstate++] = (StateArray){
        x->name, x->dt, x->rank, dim, memory_of(d, b), n * dtype_bytes(x->dt), false, NULL};
    for (u32 i = 0; i < d->weight.n; i++)
      if (d->weight.at[i] == x->name) d->state[d->nstate - 1].weight = true;
  }
}

/* Uses the arrays of the call frame. */
static void load_code(TrainStep *d) {
  Ingot *m = d->m;
  Ctx *c = m->c;
  bool jit = !strcmp(d->engine, "jit");
  const Jit *j = jit ? api_code_jit(m) : NULL;
  d->code = jit ? j->run : api_code_c(m);
  d->arena = jit ? m->states.jit_arena : m->states.arena;
  d->frame = api_call_args(m, d->arena);
  if (jit) d->frame.in[m->p->in.n] = j->weights;
  for (u32 i = 0; i < m->p->in.n; i++)
    d->in[i] = tensor_wrap(&c->keep, d->in[i]->dt, d->in[i]->dim, d->in[i]->rank, d->frame.in[i]);
  for (u32 i = 0; i < m->p->out.n; i++) {
    const Buf *b = prog_buf(m->p, m->p->out.at[i]);
    d->out[i] = tensor_wrap(&c->keep, b->dt, d->frame.shape[i], b->rank, d->frame.out[i]);
  }
}

/* Number of classes that the step expects in the labels. */
static i64 count_classes(Ingot *m) {
  i64 *limit = NEWS(&m->c->scratch, i64, m->g->val.n);
  index_limits(m->g, limit);
  for (u32 i = 0; i < api_param_count(m); i++)
    if (str_is(m->c, api_param_name(m, i), "label"))
      return limit[m->g->region.at[1].param.at[api_graph_index(m, i, false)]];
  return 0;
}

void train_step_open(Training *f, TrainStep *d, TrainPart part, u64 rows, const char *engine) {
  Ctx *c = f->c;
  const Ingot *of = f->m;
  Ingot *m = NEW(&c->keep, Ingot);
  *m = (Ingot){.c = c,
               .opened.source = of->opened.source,
               .opened.reader = of->opened.reader,
               .opened.model = of->opened.model,
               .machine.target = of->machine.target,
               .codegen = of->codegen,
               .tuning = of->tuning};
  m->run.once.c = c;
  m->compiled.cflags = of->compiled.cflags;
  m->options.train = f->spec;
  m->options.part = part;
  *d = (TrainStep){.m = m, .engine = engine};
  dataset_bind_shapes(f, m, rows);
  api_import(m, false);
  for (u32 i = 0; i < m->g->state.n; i++) {
    const Value *v = graph_val(m->g, m->g->region.at[1].param.at[m->g->state.at[i].in]);
    if (v->weight) *vec_push(&c->keep, &d->weight) = v->name;
  }
  d->classes = count_classes(m);
  api_run_passes(m, NULL);
  d->in = m->run.in = make_inputs(m);
  m->run.nin = api_param_count(m);
  m->run.nout = ingot_output_count(m);
  d->out = m->run.out = NEWS(&c->keep, Tensor *, m->run.nout + 1);
  if (!strcmp(engine, "vm"))
    m->states.vm_state = interp_state(m->p, &c->keep);
  else if (!strcmp(engine, "interp"))
    m->states.interp_state = interp_state(m->p, &c->keep);
  else
    load_code(d);
  find_states(d);
}

void train_step_close(TrainStep *d) {
  if (!d->m) return;
  api_close_c(d->m);
  api_close_jit(d->m);
  arena_clear(&d->m->run.once);
  d->m = NULL;
}

Tensor *train_step_in(const TrainStep *d, Str name) {
  for (u32 i = 0; i < d->m->run.nin; i++)
    if (api_param_name(d->m, i) == name) return d->in[i];
  return NULL;
}

const Tensor *train_step_out(const TrainStep *d, const char *name) {
  for (u32 i = 0; i < d->m->run.nout; i++)
    if (str_is(d->m->c, api_result_name(d->m, i), name)) return d->out[i];
  return NULL;
}

void train_step_run(TrainStep *d, u64 seed) {
  Ingot *m = d->m;
  if (d->code) {
    const CallArgs *f = &d->frame;
    int status = d->code(d->arena, f->size, seed, f->in, f->out, f->shape);
    if (!strcmp(d->engine, "jit"))
      api_check_jit(m, status);
    else
      api_check_c(m, status);
    return;
  }
  Mark scratch = arena_mark(&m->c->scratch);
  arena_clear(&m->run.once);
  if (!strcmp(d->engine, "vm")) {
    VmOptions o = {.seed = seed, .state = m->states.vm_state};
    vm_run(api_vm(m), &o, d->in, d->out, &m->run.once);
  } else {
    InterpOptions o = {.seed = seed, .state = m->states.interp_state};
    interp_run(m->p, &o, d->in, d->out, &m->run.once);
  }
  arena_rewind(&m->c->scratch, scratch);
}

StateArray *train_step_state(const TrainStep *d, Str name) {
  for (u32 i = 0; i < d->nstate; i++)
    if (d->state[i].name == name) return &d->state[i];
  return NULL;
}

void train_step_set_states(const Training *f, const TrainStep *d) {
  for (u32 i = 0; i < f->state.n; i++) {
    const StateArray *x = &f->state.at[i], *to = train_step_state(d, x->name);
    if (to && to->bytes == x->bytes) memcpy(to->at, x->at, x->bytes);
  }
}

void train_step_get_states(const Training *f, const TrainStep *d) {
  for (u32 i = 0; i < f->state.n; i++) {
    const StateArray *x = &f->state.at[i], *from = train_step_state(d, x->name);
    if (from && from->bytes == x->bytes) memcpy(x->at, from->at, x->bytes);
  }
}

double train_step_loss(const TrainStep *d) {
  return tensor_get(train_step_out(d, "loss"), 0).f;
}

const i64 *train_step_class(const TrainStep *d) {
  const Tensor *t = train_step_out(d, "class");
  return t ? t->data : NULL;
}
