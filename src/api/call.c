/* call.c: runs on arrays of the caller; declarations of a model before import.
 *
 * In: arrays in the order of the parameters, and memory for results. Out: results, written there
 * directly by engines c and jit if possible, else copied. Inputs are not copied. Memory that a call
 * allocates is freed by the next one. A call that is refused because of its arrays leaves the model
 * usable.
 */
#include "api/api_internal.h"

#include <string.h>

static Tensor *wrap_input(Ingot *m, u32 i, const IngotTensor *x) {
  Ctx *c = m->c;
  if (!x->dtype) {
    Tensor *usual = api_train_default(m, i);
    if (!usual)
      fail(c, ERR_usage, LOC_NONE, "input '%s' is not given: expected an array for every input",
           show(c, api_param_name(m, i)));
    return usual;
  }
  if (x->rank) api_need(c, x->dim, "the shape of an array");
  if (x->bytes) api_need(c, x->data, "the contents of an array");
  DType dt = dtype_from_name(x->dtype, strlen(x->dtype));
  u64 n;
  if (!dt || dt == DT_str)
    fail(c, ERR_usage, LOC_NONE, "input '%s': arrays of type '%s' are not supported",
         show(c, api_param_name(m, i)), x->dtype);
  if (x->rank > MAX_RANK || !shape_count(x->dim, x->rank, &n) || n * dtype_bytes(dt) != x->bytes)
    fail(c, ERR_usage, LOC_NONE,
         "input '%s': found %llu bytes, expected those of its shape and type",
         show(c, api_param_name(m, i)), (unsigned long long)x->bytes);
  Tensor *t = tensor_wrap(&m->run.once, dt, x->dim, x->rank, n ? x->data : "");
  IngotTensor info = ingot_input_info(m, i);
  bool fits = !strcmp(info.dtype, x->dtype) && info.rank == x->rank;
  for (u32 k = 0; fits && k < info.rank; k++) fits = info.dim[k] < 0 || info.dim[k] == x->dim[k];
  return fits ? t : api_check_input(m, i, t);
}

/* Copies results that an engine could not write in place. */
static void copy_outputs(Ingot *m, const IngotOutBuffer *room, u32 n) {
  for (u32 i = 0; i < n; i++) {
    Tensor *t = m->run.out[i];
    u64 bytes = tensor_bytes(t);
    if (!room[i].data || t->data == room[i].data) continue;
    if (bytes > room[i].bytes)
      fail(m->c, ERR_usage, LOC_NONE, "output '%s' needs %llu bytes, found memory for %llu",
           show(m->c, api_result_name(m, i)), (unsigned long long)bytes,
           (unsigned long long)room[i].bytes);
    if (bytes) memcpy(room[i].data, t->data, (size_t)bytes);
    m->run.out[i] = tensor_wrap(&m->run.once, t->dt, t->dim, t->rank, room[i].data);
  }
}

static bool overlaps(const void *a, u64 na, const void *b, u64 nb) {
  uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
  return na && nb && (x < y ? y - x < na : x - y < nb);
}

/* Results are written while inputs are read, in any order. */
static void check_no_overlap(Ingot *m, const IngotCall *o) {
  for (u32 i = 0; i < o->nout; i++) {
    const IngotOutBuffer *r = &o->out[i];
    if (!r->data) continue;
    for (u32 k = 0; k < o->nin; k++)
      if (o->in[k].dtype && overlaps(r->data, r->bytes, o->in[k].data, o->in[k].bytes))
        fail(m->c, ERR_usage, LOC_NONE, "the memory for output '%s' overlaps input '%s'",
             show(m->c, api_result_name(m, i)), show(m->c, api_param_name(m, k)));
    for (u32 k = 0; k < i; k++)
      if (o->out[k].data && overlaps(r->data, r->bytes, o->out[k].data, o->out[k].bytes))
        fail(m->c, ERR_usage, LOC_NONE, "the memory for output '%s' overlaps that for output '%s'",
             show(m->c, api_result_name(m, i)), show(m->c, api_result_name(m, k)));
  }
}

static void run(Ingot *m, const IngotCall *o) {
  Ctx *c = m->c;
  api_need(c, o, "the call options");
  u32 nin = api_param_count(m), nout = ingot_output_count(m);
  if (o->nin != nin || (o->nout && o->nout != nout))
    fail(c, ERR_usage, LOC_NONE, "found %u inputs and memory for %u outputs; expected %u and %u",
         o->nin, o->nout, nin, nout);
  if (nin) api_need(c, o->in, "the inputs");
  if (o->nout) api_need(c, o->out, "the memory for outputs");
  check_no_overlap(m, o);
  api_clear_run(m);
  arena_clear(&m->run.once);
  m->run.in = NEWS(&m->run.once, Tensor *, nin + 1);
  for (u32 i = 0; i < nin; i++) m->run.in[i] = wrap_input(m, i, &o->in[i]);
  m->run.out = NEWS(&m->run.once, Tensor *, nout + 1);
  m->run.nin = nin;
  m->run.nout = nout;
  api_check_pins(m);
  m->run.out_buffer = o->nout ? o->out : NULL;
  m->called->run(m, o->seed);
  copy_outputs(m, o->out, o->nout);
}

static void get_ready(Ingot *m, const char *engine) {
  const Engine *e = api_engine_for(m, engine, 0);
  if (m->called == e && (m->p || e->info.flags & INGOT_GRAPH)) return;
  if (e->info.flags & INGOT_FILE)
    fail(m->c, ERR_unsupported, LOC_NONE, "engine %s reads files: use ingot_run", e->info.name);
  api_ready(m, e);
  m->compiled.stays = true;
  if (e->make) e->make(m);
  m->called = e;
}

IngotStatus ingot_ready(Ingot *m, const char *engine) {
  API_CALL(m, get_ready(m, engine));
}

static IngotStatus run_ready(Ingot *m, const IngotCall *o) {
  API_CALL(m, run(m, o));
}

IngotStatus ingot_call(Ingot *m, const IngotCall *o) {
  IngotStatus s = ingot_ready(m, o ? o->engine : NULL);
  if (s) return s;
  s = run_ready(m, o);
  m->run.out_buffer = NULL;
  if (s) api_clear_run(m);
  if (s != INGOT_BAD_INPUT && s != INGOT_USAGE && s != INGOT_SYSTEM) return s;
  m->status = ERR_ok; /* the next call may succeed, or have enough memory: */
  m->c->nerrors = 0;  /* errors so far stay messages */
  m->c->code = ERR_ok;
  return s;
}

int ingot_input_decides(const Ingot *m, uint32_t i) {
  for (u32 k = 0; m && m->g && i < m->facts.ndesc[0] && k < m->g->pin.n; k++)
    if (graph_val(m->g, m->g->pin.at[k].param)->pos == api_graph_index(m, i, false)) return 1;
  return 0;
}

static void declare(Ingot *m, bool is_output, u32 i, IngotPortInfo *out) {
  Ctx *c = m->c;
  api_need(c, out, "a pointer to the declaration");
  *out = (IngotPortInfo){0};
  if (!m->opened.source.at)
    fail(c, ERR_usage, LOC_NONE, "no model is open: expected ingot_open before this call");
  const Model *d = m->opened.model;
  if (!d || i >= (is_output ? d->noutput : d->ninput)) return;
  const DeclValue *v = is_output ? &d->output[i] : d->input[i];
  const DeclType *t = &v->type;
  i64 *dim = NEWS(&c->keep, i64, t->dims.n + 1);
  const char **symbol = NEWS(&c->keep, const char *, t->dims.n + 1);
  for (u32 k = 0; k < t->dims.n; k++) {
    const DeclDim *x = &t->dims.at[k];
    Str name = decl_symbol(c, x);
    dim[k] = x->kind == OD_value && x->value >= 0 ? x->value : -1;
    symbol[k] = name ? str_text(c, name) : NULL;
  }
  *out = (IngotPortInfo){.name = str_text(c, v->name),
                         .type = str_text(c, str_of(c, decl_type_string(c, 0, t))),
                         .dtype = t->kind == OT_tensor && t->dt ? dtype_info[t->dt].name : NULL,
                         .has_shape = t->has_shape,
                         .rank = t->dims.n,
                         .dim = dim,
                         .symbol = symbol};
}

IngotStatus ingot_declared(Ingot *m, int is_output, uint32_t i, IngotPortInfo *out) {
  API_CALL(m, declare(m, is_output != 0, i, out));
}
