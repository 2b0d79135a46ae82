/* build: a model as machine code. */
#include "cli/cli.h"

#include <string.h>

int verb_build(const Args *a) {
  if (!a->output) {
    fputs("ingot build: --output is missing: OUT.o, OUT.a, OUT.so, or the name of a program\n",
          stderr);
    return INGOT_USAGE;
  }
  size_t n = strlen(a->output);
  if (n > 2 && (!strcmp(a->output + n - 2, ".c") || !strcmp(a->output + n - 2, ".h"))) {
    fprintf(stderr, "ingot build: %s is the name of a source; `ingot compile` writes those\n",
            a->output);
    return INGOT_USAGE;
  }
  Ingot *m = open_or_complain();
  if (!m) return INGOT_SYSTEM;
  IngotBuild o = {.output = a->output,
                  .cc = a->cc,
                  .march = a->march,
                  .optimize = a->optimize,
                  .sanitize = a->sanitize};
  o.c = (IngotC){.name = a->name,
                 .weights = a->weights,
                 .selftest = a->no_selftest ? -1 : a->selftest,
                 .caller = a->caller,
                 .debug = a->debug};
  Args rest = *a;
  rest.march = NULL; /* goes to the compiler, which knows more of them */
  IngotStatus s = prepare(m, &rest);
  if (!s) s = tune(m, a, a->march);
  if (!s) s = ingot_build(m, &o);
  return finish(m, a, s);
}
