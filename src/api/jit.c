/* jit.c: engine jit: runs the program as code that LLVM makes in this process.
 *
 * In: a model with inputs. Out: its outputs. Code and arena are made before the first run and kept
 * with the session. One thread runs the code, whatever --threads says; results are bit-identical.
 */
#include "api/api_internal.h"

#include <stdlib.h>
#include <string.h>

static Jit *make_code(Ingot *m) {
  StrBuf self = sb_new(&m->c->keep);
  const char *keep = m->compiled.keep_quietly ? NULL : m->compiled.keep;
  if (keep) api_key_self(m->c, &self);
  LlvmOptions o = {.target = api_program_target(m),
                   .keep = keep,
                   .maker = sb_cstr(&self),
                   .take = cache_check_file};
  return jit_make(m->p, &o);
}

static Jit *code_of(Ingot *m) {
  if (m->states.jit_of != m->p) api_close_jit(m);
  if (!m->states.jit) m->states.jit = make_code(m);
  m->states.jit_of = m->p;
  if (!m->states.jit_arena) m->states.jit_arena = api_alloc_arena(m, m->p->arena_bytes + 1);
  return m->states.jit;
}

static void check(Ingot *m) {
  if (!m->opened.reader)
    fail(m->c, ERR_unsupported, LOC_NONE,
         "engine jit does not run programs in text form: its code does not check their indices");
  api_need_runnable(m);
}

void api_make_jit(Ingot *m) {
  check(m);
  code_of(m);
}

const Jit *api_code_jit(Ingot *m) {
  check(m);
  return code_of(m);
}

void api_check_jit(Ingot *m, int status) {
  if (status)
    fail(m->c, ERR_input, (Loc){.file = m->opened.source.file, .index = -1}, "%s",
         status_text(m->c, &m->states.jit->why, (u32)status));
}

static void call(Ingot *m, const Jit *j, const CallArgs *f, u64 seed) {
  api_check_jit(m, j->run(m->states.jit_arena, f->size, seed, f->in, f->out, f->shape));
}

static CallArgs frame_of(Ingot *m, const Jit *j) {
  CallArgs f = api_call_args(m, m->states.jit_arena);
  f.in[m->p->in.n] = j->weights;
  return f;
}

void api_run_jit(Ingot *m, u64 seed) {
  check(m);
  const Jit *j = code_of(m);
  CallArgs f = frame_of(m, j);
  call(m, j, &f, seed);
  for (u32 i = 0; i < m->p->out.n; i++) {
    const Buf *b = prog_buf(m->p, m->p->out.at[i]);
    m->run.out[i] = tensor_wrap(&m->run.once, b->dt, f.shape[i], b->rank, f.out[i]);
  }
}

static double run_once(Bench *a) {
  Ingot *m = a->m;
  const Jit *j = code_of(m);
  Mark mark = arena_mark(&m->run.once);
  CallArgs f = frame_of(m, j);
  double start = time_ms();
  call(m, j, &f, a->seed);
  double ms = time_ms() - start;
  arena_rewind(&m->run.once, mark); /* results are not used */
  return ms;
}

void api_bench_jit(Bench *a) {
  check(a->m);
  double start = time_ms();
  code_of(a->m);
  a->out->build_ms = time_ms() - start;
  bench_runs(a, run_once);
}

void api_close_jit(Ingot *m) {
  jit_end(m->states.jit);
  m->states.jit = NULL;
  m->states.jit_arena = NULL;
}

/* ---- object code ---- */

/* LLVM name of the machine of a target: TRIPLE,CPU,FEATURES. triple: up to all three given by the
 * user, completed with the features of the target; NULL: from the target. */
static const char *machine_of(Ctx *c, const Target *t, const char *triple) {
  size_t name = strcspn(t->llvm, ","), to = name + (t->llvm[name] == ',');
  to += strcspn(t->llvm + to, ",");
  const char *own = *t->llvm ? t->llvm + to + 1 : t->features, *plus = *t->llvm ? "" : "+";
  StrBuf s = sb_new(&c->keep);
  if (triple)
    sb_puts(&s, triple);
  else
    sb_put(&s, t->llvm, to);
  const char *given = sb_cstr(&s), *cpu = strchr(given, ',');
  const char *features = cpu ? strchr(cpu + 1, ',') : NULL;
  bool some = features && features[1];
  sb_puts(&s, features ? "" : cpu ? "," : ",,");
  for (const char *at = own; *at; some = true) {
    size_t n = strcspn(at, ",");
    sb_fmt(&s, "%s%s%.*s", some ? "," : "", plus, (int)n, at);
    at += n + (at[n] == ',');
  }
  return sb_cstr(&s);
}

static LlvmOptions object_options(Ingot *m, const IngotBuild *o, const char *name) {
  LlvmOptions l = {.target = api_program_target(m), .object = true, .name = name};
  const char *triple = o ? o->triple : NULL;
  bool here = o ? !o->march || !strcmp(o->march, "native") : target_is_here(l.target);
  if (triple || !here) l.machine = machine_of(m->c, l.target, triple);
  return l;
}

void api_check_backend(Ctx *c, const IngotBuild *o) {
  static const char *const only_c = "not supported with --backend llvm";
  if (strcmp(o->backend, "llvm") != 0)
    fail(c, ERR_usage, LOC_NONE, "--backend %s: expected llvm", o->backend);
  if (o->optimize) fail(c, ERR_unsupported, LOC_NONE, "--optimize: %s", only_c);
  if (o->cc && !ends_with(o->output, ".so"))
    fail(c, ERR_unsupported, LOC_NONE, "--cc: only OUT.so needs a C compiler with --backend llvm");
  if (o->sanitize) fail(c, ERR_unsupported, LOC_NONE, "--sanitize: %s", only_c);
  if (o->c.weights) fail(c, ERR_unsupported, LOC_NONE, "--weights: %s", only_c);
  if (o->c.selftest > 0) fail(c, ERR_unsupported, LOC_NONE, "--selftest: %s", only_c);
  if (o->c.caller) fail(c, ERR_unsupported, LOC_NONE, "--caller: %s", only_c);
  if (o->c.profile) fail(c, ERR_unsupported, LOC_NONE, "--profile: %s", only_c);
  if (o->c.debug) fail(c, ERR_unsupported, LOC_NONE, "--debug: %s", only_c);
}

/* Refuses language models and files of several models: their interface has more functions than
 * NAME_run, and only the C back end writes these. */
void api_need_plain(Ingot *m) {
  static const char *const through_c = "leave out --backend llvm";
  Loc loc = {.file = m->opened.source.file, .index = -1};
  if (ingot_is_language_model(m))
    fail(m->c, ERR_unsupported, loc, "--backend llvm: is a language model: %s", through_c);
  if (api_entry_count(m) > 1)
    fail(m->c, ERR_unsupported, LOC_NONE, "--backend llvm: several models in one file: %s",
         through_c);
}

void api_object(Ingot *m, const IngotBuild *o, const char *name, StrBuf *to) {
  LlvmOptions l = object_options(m, o, name);
  if (m->p->threads > 1)
    fail(m->c, ERR_unsupported, LOC_NONE, "--threads: not supported with --backend llvm");
  llvm_object(m->p, &l, to);
}

static void print_llvm(Ingot *m, const char **text, size_t *n) {
  StrBuf t = sb_new(&m->c->keep);
  api_need(m->c, text && n ? text : NULL, "a pointer to the text");
  api_need_model(m, "code of LLVM");
  api_target_host(m);
  api_run_passes(m, NULL);
  LlvmOptions l = object_options(m, NULL, "model");
  l.object = false;
  llvm_print(m->p, &l, &t);
  api_return_text(&t, text, n);
}

IngotStatus ingot_print_llvm(Ingot *m, const char **text, size_t *n) {
  api_return_text(NULL, text, n);
  API_CALL(m, print_llvm(m, text, n));
}

static void keep_default(Ctx *c, void *arg) {
  Ingot *m = arg;
  m->compiled.keep = cache_file(c, ".", "--keep-code");
}

/* NULL: engine c only; failures only cost time. */
static void keep_code(Ingot *m, const char *folder) {
  Ctx *c = m->c;
  DiagMark before = diag_mark(c);
  const char *given = getenv("INGOT_CACHE");
  m->compiled.keep_quietly = !folder;
  m->compiled.keep = NULL;
  if (folder && !*folder)
    keep_default(c, m);
  else if (folder)
    m->compiled.keep = cache_folder_trusted(c, folder) ? str_text(c, str_of(c, folder)) : NULL;
  else if ((!given || strcmp(given, "0") != 0) && ctx_protect(c, keep_default, m))
    diag_rewind(c, before);
}

IngotStatus ingot_keep_code(Ingot *m, const char *folder) {
  API_CALL(m, keep_code(m, folder));
}

uint32_t ingot_llvm(void) {
  return llvm_version();
}
