/* engine.c: the table of engines, and running a model.
 *
 * In: a model with inputs, and the name of an engine. Out: its outputs. The command line derives
 * names, comparisons and measurements from the table. The first row is the default.
 */
#include "api/api_internal.h"

#include <string.h>

static void interpret(Ingot *m, InterpOptions o) {
  if (!m->states.interp_state && api_has_state(m))
    m->states.interp_state = interp_state(m->p, &m->c->keep);
  o.state = m->states.interp_state;
  interp_run(m->p, &o, m->run.in, m->run.out, &m->run.once);
}

static void run_interp(Ingot *m, u64 seed) {
  interpret(m, (InterpOptions){.seed = seed});
}

static void run_watch(Ingot *m, u64 seed) {
  interpret(m, (InterpOptions){.seed = seed, .watch = true});
}

VmProgram *api_vm(Ingot *m) {
  if (m->states.vm_of != m->p) {
    m->states.vm = vm_compile(m->p, &m->c->keep);
    m->states.vm_of = m->p;
  }
  return m->states.vm;
}

static void make_vm(Ingot *m) {
  api_vm(m);
}

static void run_vm(Ingot *m, u64 seed) {
  if (!m->states.vm_state && api_has_state(m)) m->states.vm_state = interp_state(m->p, &m->c->keep);
  VmOptions o = {.seed = seed, .fuel = m->max_steps, .state = m->states.vm_state};
  vm_run(api_vm(m), &o, m->run.in, m->run.out, &m->run.once);
}

static void run_ref(Ingot *m, u64 seed) {
  RefOptions o = {.seed = seed};
  api_run_ref(m, &o);
}

static void run_ref64(Ingot *m, u64 seed) {
  RefOptions o = {.wide = true, .seed = seed};
  api_run_ref(m, &o);
}

static const Engine engines[] = {
    {{"vm", INGOT_EXACT | INGOT_PEER | INGOT_TIMED | INGOT_HOST}, run_vm, make_vm},
    {{"c", INGOT_EXACT | INGOT_PEER | INGOT_TIMED | INGOT_NATIVE}, api_run_c, api_make_c},
    {{"jit", INGOT_EXACT | INGOT_TIMED | INGOT_OPTIONAL | INGOT_HOST}, api_run_jit, api_make_jit},
    {{"cuda", INGOT_TIMED | INGOT_OPTIONAL | INGOT_DEVICE}, api_run_cuda, api_make_cuda},
    {{"interp", INGOT_EXACT | INGOT_TIMED}, run_interp, NULL},
    {{"ref", INGOT_GRAPH | INGOT_JUDGE}, run_ref, NULL},
    {{"ref64", INGOT_GRAPH}, run_ref64, NULL},
    {{"watch", INGOT_EXACT}, run_watch, NULL},
    {{"onnxruntime", INGOT_FILE | INGOT_PEER}, api_run_python, NULL},
};
enum { NENGINES = sizeof engines / sizeof *engines };

const IngotEngine *ingot_engine(uint32_t i) {
  return i < NENGINES ? &engines[i].info : NULL;
}

static const Engine *find(const char *name) {
  for (u32 i = 0; i < NENGINES; i++)
    if (!strcmp(engines[i].info.name, name)) return &engines[i];
  return NULL;
}

const IngotEngine *ingot_find_engine(const char *name) {
  const Engine *e = name ? find(name) : NULL;
  return e ? &e->info : NULL;
}

const Engine *api_engine(Ctx *c, const char *name, unsigned flags) {
  const Engine *e = name ? find(name) : &engines[0];
  if (e && (e->info.flags & flags) == flags) return e;
  StrBuf t = sb_new(&c->keep);
  Suggestion near = suggest_new(name);
  for (u32 i = 0; i < NENGINES; i++) {
    if ((engines[i].info.flags & flags) != flags) continue;
    sb_fmt(&t, "%s%s", t.n ? ", " : "", engines[i].info.name);
    suggest_try(&near, engines[i].info.name);
    bool gpu = engines[i].info.flags & INGOT_DEVICE;
    if (!strcmp(name, gpu ? "gpu" : "cpu") && (gpu || engines[i].info.flags & INGOT_NATIVE))
      near.name = engines[i].info.name;
  }
  fail(c, ERR_usage, LOC_NONE, "--engine: unknown engine '%s'%s; expected %s%s", name,
       flags & INGOT_TIMED ? " to measure" : "", sb_cstr(&t), suggest_text(c, &near));
}

const Engine *api_engine_for(const Ingot *m, const char *name, unsigned flags) {
  bool own = api_is_bytecode(m);
  const Engine *e = api_engine(m->c, own && !name ? "vm" : name, flags);
  if (own && e->run != run_vm) api_need_model(m, e->info.name);
  return e;
}

/* ---- run ---- */

void api_clear_run(Ingot *m) {
  m->run.out = NULL;
  m->run.text = NULL;
  m->run.nin = m->run.nout = 0;
}

void api_check_pins(Ingot *m) {
  for (u32 i = 0; m->g && i < m->g->pin.n; i++) {
    const FixedParam *p = &m->g->pin.at[i];
    u32 pos = 0;
    while (api_graph_index(m, pos, false) != graph_val(m->g, p->param)->pos) pos++;
    if (!tensor_equal(m->c, m->run.in[pos], p->data))
      fail(m->c, ERR_input, LOC_NONE,
           "input '%s' decides shapes: the model was built for other contents",
           show(m->c, graph_val(m->g, p->param)->name));
  }
}

/* Limit against mistakes and attacks: days of work. */
#define RUN_STEPS 1e15

static void check_cost(Ingot *m) {
  NodeId dear;
  double steps = m->g ? graph_steps(m->g, &dear) : 0;
  if (steps > RUN_STEPS)
    fail(m->c, ERR_unsupported, graph_node(m->g, dear)->loc,
         "a run takes at least %.1g operations, the limit is %.0g", steps, RUN_STEPS);
}

static void set_max_steps(Ingot *m, u64 n) {
  m->max_steps = n;
}

IngotStatus ingot_set_max_steps(Ingot *m, uint64_t n) {
  API_CALL(m, set_max_steps(m, n));
}

/* Imports the model if necessary, before inputs are checked. */
static void begin(Ingot *m, const Engine *e) {
  if (m->max_steps && e->run != run_vm)
    fail(m->c, ERR_usage, LOC_NONE, "--max-steps: engine %s does not count steps; expected vm",
         e->info.name);
  if (e->info.flags & INGOT_NATIVE && !m->compiled.library) compiler_need(m->c, NULL);
  if (e->info.flags & INGOT_DEVICE) cuda_need(m->c);
  m->runs = true;
  api_import(m, false);
  check_cost(m);
}

/* Makes the program for an engine that runs one. */
static void make_program(Ingot *m, const Engine *e) {
  unsigned flags = e->info.flags;
  if (flags & INGOT_GRAPH && !m->g)
    fail(m->c, ERR_usage, LOC_NONE, "engine %s evaluates graphs, not programs", e->info.name);
  if (flags & INGOT_FILE && api_has_state(m))
    fail(m->c, ERR_unsupported, LOC_NONE, "engine %s keeps no state from run to run", e->info.name);
  if (flags & INGOT_NATIVE) {
    m->codegen.for_c = true;
    api_native_flags(m);
  }
  if (flags & INGOT_DEVICE) api_target_device(m);
  if (!(flags & (INGOT_GRAPH | INGOT_FILE)) && !m->p) api_run_passes(m, NULL);
}

void api_ready(Ingot *m, const Engine *e) {
  begin(m, e);
  make_program(m, e);
}

static void run(Ingot *m, const char *engine, u64 seed) {
  Ctx *c = m->c;
  const Engine *e = api_engine_for(m, engine, 0);
  begin(m, e);
  api_clear_run(m);
  arena_clear(&m->run.once);
  m->run.in = api_inputs(m, seed);
  m->run.nin = api_param_count(m);
  m->run.nout = ingot_output_count(m);
  m->run.out = NEWS(&c->keep, Tensor *, m->run.nout + 1);
  api_check_pins(m);
  make_program(m, e);
  e->run(m, seed);
  api_decode_strings(m);
}

IngotStatus ingot_run(Ingot *m, const char *engine, uint64_t seed) {
  API_CALL(m, run(m, engine, seed));
}

IngotTensor ingot_output(const Ingot *m, uint32_t i) {
  if (!m || !m->run.out || i >= m->run.nout || !m->run.out[i])
    return (IngotTensor){"", "", 0, NULL, NULL, 0};
  IngotTensor t = api_tensor(m, api_result_name(m, i), m->run.out[i]);
  if (m->run.out[i]->dt == DT_str && m->run.text) {
    t.data = m->run.text[i];
    t.bytes = m->run.out[i]->n * sizeof(char *);
  }
  return t;
}
