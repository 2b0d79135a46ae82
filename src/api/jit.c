/* jit.c: engine jit: the program as code that LLVM makes in this process.
 *
 * In: a model with inputs. Out: its outputs. The code is made before the first run and kept with
 * the session, as is the arena. One thread runs it, however many the program is for: the bits are
 * the same.
 */
#include "api/own.h"

#include <string.h>

static Jit *code_of(Ingot *m) {
  LlvmOptions o = {.target = api_made(m), .keep = m->compiled.keep, .version = INGOT_VERSION};
  if (m->kept.jit_of != m->p) api_close_jit(m);
  if (!m->kept.jit) m->kept.jit = jit_make(m->p, &o);
  m->kept.jit_of = m->p;
  if (!m->kept.jit_arena) m->kept.jit_arena = api_memory_for(m->c, m->p->arena_bytes + 1);
  return m->kept.jit;
}

static void check(Ingot *m) {
  if (!m->reader)
    fail(m->c, ERR_unsupported, LOC_NONE,
         "engine jit runs only what the passes have made: the indices of a program from text are "
         "not checked in its code");
  api_can_run(m);
}

static void call(Ingot *m, const Jit *j, const Frame *f, u64 seed) {
  int status = j->run(m->kept.jit_arena, f->size, seed, f->in, f->out, f->shape);
  if (status)
    fail(m->c, ERR_input, (Loc){.file = m->source.file, .index = -1}, "%s",
         status_text(m->c, &j->why, (u32)status));
}

static Frame frame_of(Ingot *m, const Jit *j) {
  Frame f = api_frame(m, m->kept.jit_arena);
  f.in[m->p->in.n] = j->weights;
  return f;
}

void api_run_jit(Ingot *m, u64 seed) {
  check(m);
  const Jit *j = code_of(m);
  Frame f = frame_of(m, j);
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
  Frame f = frame_of(m, j);
  double start = time_ms();
  call(m, j, &f, a->seed);
  double ms = time_ms() - start;
  arena_rewind(&m->run.once, mark); /* results are not looked at */
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
  jit_end(m->kept.jit);
  m->kept.jit = NULL;
  m->kept.jit_arena = NULL;
}

static void keep_code(Ingot *m, const char *folder) {
  Ctx *c = m->c;
  api_need(c, folder, "the folder of code");
  m->compiled.keep = *folder ? str_text(c, str_of(c, folder)) : cache_file(c, ".", "--keep-code");
}

IngotStatus ingot_keep_code(Ingot *m, const char *folder) {
  API_CALL(m, keep_code(m, folder));
}

uint32_t ingot_llvm(void) {
  return llvm_version();
}
