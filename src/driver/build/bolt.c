/* bolt.c: optimizes the layout of a program with llvm-bolt.
 *
 * In: a program linked with relocations, a workload. Out: the program with blocks and functions in
 * execution order, cold code separate. Method: perf samples branches if the CPU records them (few
 * virtual machines do); otherwise llvm-bolt instruments the program. Only the first run of the
 * workload is profiled.
 */
#include "driver/build/build_product.h"

#include <string.h>

bool bolt_has_branches(Ctx *c, const TempDir *f, const char *perf) {
  const char *const argv[] = {
      perf, "record", "-q", "-e", "cycles:u", "-j", "any,u", "-o", tempdir_file(c, f, "perf.data"),
      "--", "true",   NULL};
  return !spawn_status(c, f, "perf", argv);
}

/* Appends the program and its arguments. */
static void add_run(Ctx *c, const ProductBuild *b, ArgVec *w, const char *program) {
  argv_put(c, w, program);
  argv_put_list(c, w, b->work.run.at[0].at);
  if (!b->chats) argv_add(c, w, "--bench 0.5");
}

/* Records branch samples in the format of llvm-bolt. */
static void sample(Ctx *c, const ProductBuild *b, const char *program, const char *data) {
  const char *raw = tempdir_file(c, &b->folder, "perf.data");
  ArgVec w = {0}, to = {0};
  argv_put(c, &w, b->chain.perf, "record", "-q", "-e", "cycles:u", "-j", "any,u", "-o", raw, "--");
  add_run(c, b, &w, program);
  spawn_run(c, &b->folder, "perf", w.at);
  argv_put(c, &to, b->chain.perf2bolt, program, "-p", raw, "-o", data);
  spawn_run(c, &b->folder, "perf2bolt", to.at);
}

static void instrument(Ctx *c, const ProductBuild *b, const char *program, const char *data) {
  const char *made = tempdir_file(c, &b->folder, "bolt-instrumented");
  ArgVec w = {0}, run = {0};
  argv_put(c, &w, b->chain.bolt, program, "-instrument", "-o", made);
  argv_fmt(c, &w, "-instrumentation-file=%s", data);
  spawn_run(c, &b->folder, "llvm-bolt", w.at);
  add_run(c, b, &run, made);
  spawn_run(c, &b->folder, "the instrumented program", run.at);
}

void bolt_apply(Ctx *c, ProductBuild *b, BuildConfig *v) {
  const char *data = tempdir_file(c, &b->folder, "bolt.fdata"),
             *made = tempdir_file(c, &b->folder, "bolt-layout");
  ArgVec w = {0};
  if (b->chain.perf)
    sample(c, b, v->product, data);
  else
    instrument(c, b, v->product, data);
  argv_put(c, &w, b->chain.bolt, v->product, "-o", made);
  argv_fmt(c, &w, "-data=%s", data);
  argv_add(c, &w,
           "-reorder-blocks=ext-tsp -reorder-functions=hfsort -split-functions "
           "-split-all-cold -icf=1 -use-gnu-stack -dyno-stats");
  spawn_run(c, &b->folder, "llvm-bolt", w.at);
  v->product = v->program = made;
}
