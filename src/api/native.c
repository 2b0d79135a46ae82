/* native.c: engine c: the generated C, compiled, loaded and run in this process.
 *
 * In: a model with inputs. Out: its outputs. The source is written to a temporary folder, compiled by $CC (or cc) to
 * a shared object with an argument vector (never a shell), loaded, called once, and removed again.
 */
#include "api/own.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef int CallFn(void *arena, const int64_t *size, uint64_t seed, const void *const *in, void *const *out,
                   int64_t *const *shape);

typedef struct Native {
  Ingot *m;
  u64 seed;
  char dir[64], source[96], object[96], log[96];
  void *handle;
} Native;

static void remove_all(Native *n) {
  if (n->handle) dlclose(n->handle);
  if (!*n->dir) return;
  unlink(n->source);
  unlink(n->object);
  unlink(n->log);
  rmdir(n->dir);
}

static void make_folder(Ctx *c, Native *n) {
  const char *tmp = getenv("TMPDIR");
  if (!tmp || strlen(tmp) > 40) tmp = "/tmp";
  snprintf(n->dir, sizeof n->dir, "%s/ingot-XXXXXX", tmp);
  if (!mkdtemp(n->dir)) {
    *n->dir = 0;
    fail(c, ERR_system, LOC_NONE, "%s: no temporary folder: %s", tmp, strerror(errno));
  }
  snprintf(n->source, sizeof n->source, "%s/m.c", n->dir);
  snprintf(n->object, sizeof n->object, "%s/m.so", n->dir);
  snprintf(n->log, sizeof n->log, "%s/log", n->dir);
}

static void compile(Ctx *c, Native *n) {
  const char *cc = getenv("CC");
  if (!cc || !*cc) cc = "cc";
  char *argv[] = {(char *)cc, "-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-shared", "-w", "-o",
                  n->object,  n->source,  "-lm", NULL};
  posix_spawn_file_actions_t act;
  posix_spawn_file_actions_init(&act);
  posix_spawn_file_actions_addopen(&act, 1, n->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&act, 1, 2);
  pid_t pid;
  int e = posix_spawnp(&pid, cc, &act, NULL, argv, environ), status = 0;
  posix_spawn_file_actions_destroy(&act);
  if (e) fail(c, ERR_system, LOC_NONE, "C compiler '%s' cannot be started: %s (set CC)", cc, strerror(e));
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status)) {
    File log = file_read(c, n->log);
    fail(c, ERR_system, LOC_NONE, "C compiler '%s' failed:\n%.*s", cc, (int)(log.n < 2000 ? log.n : 2000),
         (const char *)log.at);
  }
}

/* Values of the input symbols, from the shapes of the inputs. */
static i64 *bind_sizes(Ingot *m) {
  Dims *ds = m->p->dims;
  i64 *size = NEWS(&m->c->keep, i64, dim_nsyms(ds) + 1);
  for (u32 i = 0; i < m->p->in.n; i++) {
    const Buf *b = prog_buf(m->p, m->p->in.at[i]);
    for (u32 k = 0; k < b->rank; k++) {
      i64 k0;
      const Sym *sym;
      const i64 *coef;
      if (dim_is_const(b->dim[k]) || dim_terms(ds, b->dim[k], &k0, &sym, &coef) != 1) continue;
      if (dim_syminfo(ds, sym[0])->kind == SY_input) size[sym[0]] = (m->in[i]->dim[k] - k0) / coef[0];
    }
  }
  return size;
}

static void call(Ctx *c, Native *n, CallFn *fn) {
  Ingot *m = n->m;
  Prog *p = m->p;
  i64 *size = bind_sizes(m);
  const void **in = NEWS(&c->keep, const void *, p->in.n + 1);
  void **out = NEWS(&c->keep, void *, p->out.n + 1);
  i64 **shape = NEWS(&c->keep, i64 *, p->out.n + 1);
  for (u32 i = 0; i < p->in.n; i++) in[i] = arena_copy(&c->keep, m->in[i]->data, tensor_bytes(m->in[i]) + 1);
  for (u32 i = 0; i < p->out.n; i++) {
    const Buf *b = prog_buf(p, p->out.at[i]);
    i64 dim[MAX_RANK], lo;
    shape[i] = NEWS(&c->keep, i64, MAX_RANK);
    for (u32 k = 0; k < b->rank; k++) {
      dim_bounds(p->dims, b->dim[k], &lo, &dim[k]);
      shape[i][k] = dim_eval(p->dims, b->dim[k], size);
    }
    out[i] = (void *)tensor_new(&c->keep, b->dt, dim, b->rank)->data;
  }
  u8 *arena = arena_alloc(&c->keep, p->arena_bytes + 64);
  arena += 64 - (uintptr_t)arena % 64;
  int status = fn(arena, size, n->seed, in, out, shape);
  if (status) fail(c, ERR_input, LOC_NONE, "the compiled model returned status %d", status);
  for (u32 i = 0; i < p->out.n; i++) {
    const Buf *b = prog_buf(p, p->out.at[i]);
    m->out[i] = tensor_wrap(&c->keep, b->dt, shape[i], b->rank, out[i]);
  }
}

static void run(Ctx *c, void *arg) {
  Native *n = arg;
  Text source = text_new(&c->keep), header = text_new(&c->keep);
  IngotC o = {.name = "model", .literal_bytes = 4096, .selftest = -1};
  api_emit(n->m, &o, true, &source, &header);
  make_folder(c, n);
  file_write(c, n->source, source.at, source.n);
  compile(c, n);
  n->handle = dlopen(n->object, RTLD_NOW | RTLD_LOCAL);
  if (!n->handle) fail(c, ERR_system, LOC_NONE, "the compiled model cannot be loaded: %s", dlerror());
  union {
    void *p;
    CallFn *fn;
  } sym = {dlsym(n->handle, "model_call")};
  if (!sym.p) fail(c, ERR_system, LOC_NONE, "the compiled model has no entry");
  call(c, n, sym.fn);
}

void api_run_c(Ingot *m, u64 seed) {
  Native n = {.m = m, .seed = seed};
  Err e = ctx_protect(m->c, run, &n);
  remove_all(&n);
  if (e) longjmp(*m->c->door, (int)e);
}
