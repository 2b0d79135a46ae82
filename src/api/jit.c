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
  if (keep) cache_key_add_self(m->c, &self);
  LlvmOptions o = {.target = api_program_target(m),
                   .keep = keep,
                   .maker = sb_cstr(&self),
                   .label = cache_label(m),
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

void api_close_jit(Ingot *m) {
  jit_end(m->states.jit);
  m->states.jit = NULL;
  m->states.jit_arena = NULL;
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
