/* script.c: programs of the language: run, check, fmt. */
#include "cli/cli.h"

#include <string.h>

int is_script(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot && (!strcmp(dot, ".ch") || !strcmp(dot, ".charl"));
}

static void write_out(void *user, const char *text, size_t n) {
  fwrite(text, 1, n, user);
}

int run_script(const Args *a) {
  Ingot *m = open_or_complain();
  if (!m) return INGOT_SYSTEM;
  IngotScript o = {.engine = a->engine, .seed = a->seed, .write = write_out, .user = stdout};
  IngotStatus s = ingot_script_run(m, a->model, &o);
  fflush(stdout); /* what was printed stands in front of what went wrong */
  return finish(m, a, s);
}

int verb_check(const Args *a) {
  Ingot *m = open_or_complain();
  if (!m) return INGOT_SYSTEM;
  return finish(m, a, ingot_script_check(m, a->model));
}

int verb_fmt(const Args *a) {
  const char *text;
  size_t n;
  Ingot *m = open_or_complain();
  if (!m) return INGOT_SYSTEM;
  IngotStatus s = ingot_script_format(m, a->model, &text, &n);
  if (!s && a->output) s = ingot_write_file(m, a->output, text, n);
  if (!s && !a->output) fwrite(text, 1, n, stdout);
  return finish(m, a, s);
}
