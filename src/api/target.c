/* target.c: which machine the code of a model is for.
 *
 * In: the name of a target, of a CPU, or nothing. Out: the row of target.def and flags of the C
 * compiler. Text (compile, opt) is made for the scalar machine unless another is named; what is
 * compiled at once (run, bench, build) for the machine we are on.
 */
#include "api/own.h"

#include <stdlib.h>
#include <string.h>

/* "arm-none-eabi-gcc" is another machine's compiler and knows nothing of this one. */
static bool is_cross(const char *cc) {
  static const char *const tails[] = {"-gcc", "-clang", "-cc"};
  if (!cc || !*cc) cc = getenv("CC");
  for (u32 i = 0; cc && i < sizeof tails / sizeof *tails; i++)
    if (strstr(cc, tails[i])) return true;
  return false;
}

void api_native(Ingot *m, const char *cc) {
  if (m->target || is_cross(cc)) return;
  m->target = target_native();
  m->cflags = target_native_flags();
}

/* Engines are compared to the bit, so a program is the same for all of them unless a target is
 * named; only the compiler makes the most of this machine. */
void api_here(Ingot *m) {
  if (!m->cflags && !is_cross(NULL)) m->cflags = target_native_flags();
}

static void set(Ingot *m, const char *name, const Target *t) {
  m->target = t;
  m->cflags = strcmp(name, "native") ? t->cflags : target_native_flags();
}

void api_march(Ingot *m, const char *name) {
  const Target *t = target_find(name);
  if (t) {
    set(m, name, t);
    return;
  }
  m->target = target_scalar();
  m->cflags = str_text(m->c, str_fmt(m->c, "-march=%s", name));
}

void words_target(Ctx *c, Words *w, const Ingot *m) {
  if (m->cflags) words_add(c, w, m->cflags);
}

typedef struct TargetArg {
  Ingot *m;
  const char *name;
} TargetArg;

static void do_set_target(Ctx *c, void *arg) {
  TargetArg *a = arg;
  const Target *t = target_find(a->name);
  if (!t) {
    Text names = text_new(&c->scratch);
    for (u32 i = 0; i < target_count; i++) text_fmt(&names, ", %s", target_table[i].name);
    fail(c, ERR_usage, LOC_NONE, "no target '%s'; there are native%s", a->name, text_cstr(&names));
  }
  set(a->m, a->name, t);
}

static void do_set_precise(Ctx *c, void *arg) {
  TargetArg *a = arg;
  (void)c;
  a->m->precise = true;
}

IngotStatus ingot_set_precise(Ingot *m) {
  return api_call(m, do_set_precise, &(TargetArg){m, NULL});
}

IngotStatus ingot_set_target(Ingot *m, const char *name) {
  return api_call(m, do_set_target, &(TargetArg){m, name});
}

/* ---- threads ---- */

void words_threads(Ctx *c, Words *w, const Ingot *m) {
  if (m->threads > 1) words_add(c, w, m->openmp ? "-fopenmp" : "-pthread");
}

typedef struct ThreadsArg {
  Ingot *m;
  int n, grain;
  const char *api;
} ThreadsArg;

static void do_set_threads(Ctx *c, void *arg) {
  ThreadsArg *a = arg;
  bool openmp = a->api && !strcmp(a->api, "openmp");
  if (a->n < 1 || a->n > MAX_THREADS)
    fail(c, ERR_usage, LOC_NONE, "%d threads; there are 1 to %d", a->n, MAX_THREADS);
  if (a->api && !openmp && strcmp(a->api, "pthread"))
    fail(c, ERR_usage, LOC_NONE, "no threads '%s'; there are pthread and openmp", a->api);
  if (a->grain < 0) fail(c, ERR_usage, LOC_NONE, "a grain of %d ns", a->grain);
  a->m->threads = (u32)a->n;
  a->m->grain = (u32)a->grain;
  a->m->openmp = openmp;
}

IngotStatus ingot_set_threads(Ingot *m, int n, const char *api, int grain) {
  return api_call(m, do_set_threads, &(ThreadsArg){m, n, grain, api});
}
