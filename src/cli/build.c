/* build: a model as machine code. */
#include "cli/cli.h"

int verb_build(const Args *a) {
  if (!a->output)
    return refuse(a, "--output is missing: OUT.o, OUT.a, OUT.so, or the name of a program");
  Ingot *m = open_or_complain();
  if (!m) return INGOT_SYSTEM;
  IngotBuild o = {.output = a->output,
                  .cc = a->cc,
                  .march = a->march,
                  .optimize = a->optimize,
                  .sanitize = a->sanitize,
                  .via = a->via,
                  .triple = a->triple};
  o.c = (IngotC){.name = a->name,
                 .weights = a->weights,
                 .selftest = a->no_selftest ? -1 : a->selftest,
                 .caller = a->caller,
                 .profile = a->profile,
                 .debug = a->debug};
  Args rest = *a;
  rest.march = NULL;                        /* goes to the compiler, which knows more of them */
  IngotStatus s = ingot_check_build(m, &o); /* --tune may take hours before it is built */
  if (!s) s = prepare(m, &rest);
  if (!s) s = prepare_others(m, &rest);
  if (!s) s = tune(m, a, a->march);
  watch_task("build");
  if (!s) s = ingot_build(m, &o);
  watch_task(NULL);
  return finish(m, a, s);
}
