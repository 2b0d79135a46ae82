/* cli_script.c: programs of the language: run, check, fmt. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int is_script(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot && (!strcmp(dot, ".ch") || !strcmp(dot, ".charl"));
}

static void write_out(void *user, const char *text, size_t n) {
  fwrite(text, 1, n, user);
}

/* Were options of models given? A program has no inputs. */
int has_model_options(const Args *a) {
  return args_first_given(a,
                          "input inputs data text keep-code tuned precise optimize-for ram threads "
                          "threads-api threads-grain library name python state steps max-steps "
                          "function input-dim shapes max-shapes freeze context chunk every-token "
                          "cache activation-type grad train") != NULL;
}

/* Only verbs that run a program let it access files. */
int forbids_files(const Args *a) {
  if (a->files || a->no_files) return a->no_files;
  return strcmp(a->verb, "run") && strcmp(a->verb, "repl") && strcmp(a->verb, "build");
}

int run_script(const Args *a) {
  if (a->output || has_model_options(a))
    return cli_refuse(
        a,
        "for a program expected only --engine, --march and --seed; other options apply to models");
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  IngotScript o = {.engine = a->engine,
                   .march = a->march,
                   .seed = a->seed,
                   .write = write_out,
                   .user = stdout,
                   .no_files = forbids_files(a)};
  IngotStatus s = ingot_script_run(m, a->model, &o);
  fflush(stdout); /* before messages on stderr */
  return cli_finish(m, a, s);
}

/* Discards the printed text: it is not a result of the verb. */
IngotStatus open_script(Ingot *m, const Args *a) {
  IngotScript o = {.seed = a->seed,
                   .write = a->quiet ? NULL : write_out,
                   .user = stderr,
                   .no_files = forbids_files(a)};
  return ingot_script_open(m, a->model, a->function, &o);
}

/* On a terminal, Ctrl-C interrupts the evaluation; elsewhere it ends the process. */
int verb_repl(const Args *a) {
  static volatile int stop;
  enum { ROOM = 1 << 20 };
  char *text = malloc(ROOM), *line;
  Ingot *m = new_model_or_report();
  IngotScript o = {.engine = a->engine,
                   .seed = a->seed,
                   .write = write_out,
                   .user = stdout,
                   .stop = &stop,
                   .no_files = forbids_files(a)};
  IngotRepl *r = m && text ? ingot_repl_new(m, &o) : NULL;
  size_t n = 0;
  while (r && (line = play_read_line(n ? "... " : "> "))) {
    size_t length = strlen(line) + 1;
    const char *word = line + (*line == ':' || *line == '/');
    if (!n && (!strcmp(word, "quit") || !strcmp(word, "exit"))) break;
    const char *entry = !n && !strcmp(word, "help") ? ":help" : line;
    if (n + length + 2 > ROOM) n = 0; /* too long for one entry: start over */
    n += (size_t)snprintf(text + n, ROOM - n, "%s%s", n ? "\n" : "", entry);
    stop = 0;
    if (isatty(STDIN_FILENO)) watch_interrupt(&stop);
    int more = ingot_repl_line(r, text);
    watch_interrupt(NULL);
    if (more) continue;
    n = 0;
    fflush(stdout);
  }
  ingot_repl_free(r);
  free(text);
  return m ? cli_finish(m, a, INGOT_OK) : INGOT_SYSTEM;
}

int verb_check(const Args *a) {
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  return cli_finish(m, a, ingot_script_check(m, a->model));
}

int verb_fmt(const Args *a) {
  const char *text;
  size_t n;
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  IngotStatus s = ingot_script_format(m, a->model, &text, &n);
  if (!s && a->output) s = ingot_write_file(m, a->output, text, n);
  if (!s && !a->output) fwrite(text, 1, n, stdout);
  return cli_finish(m, a, s);
}
