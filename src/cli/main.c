/* main.c: finds the verb and runs it. Results go to stdout, everything else to stderr. */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void help(FILE *to) {
  static const char *const groups[] = {"compile", "run", "examine", "change", "language", "ingot"};
  enum { NGROUPS = sizeof groups / sizeof *groups };
  fputs("ingot compiles neural networks to plain C. It reads ONNX, TensorFlow Lite, GGUF and\n"
        "safetensors.\n\n"
        "usage: ingot COMMAND MODEL [OPTIONS]\n"
        "       ingot MODEL [OPTIONS]      same as ingot compile MODEL\n",
        to);
  int wide = 0;
  for (int i = 0; i < verb_count; i++)
    if ((int)strlen(verb_table[i].name) > wide) wide = (int)strlen(verb_table[i].name);
  for (int k = 0; k < NGROUPS; k++) {
    fprintf(to, "\n%s:\n", groups[k]);
    for (int i = 0; i < verb_count; i++) {
      const Verb *v = &verb_table[i];
      if (!strcmp(v->group ? v->group : groups[NGROUPS - 1], groups[k]))
        fprintf(to, "  %-*s %s\n", wide, v->name, v->text);
    }
  }
  fputs("\n'ingot COMMAND --help' lists the common options of a command, --help-all all its "
        "options.\n"
        "exit codes: 0 ok, 1 mismatch, 2 usage, 3 unsupported, 4 bad input, 5 system\n",
        to);
}

/* Runs a verb on the words after it. */
static int run(const Verb *v, int argc, char **argv) {
  Args a;
  int e = args_read(&a, v, argc, argv);
  if (e) return e;
  watch_set_verbosity(a.quiet, a.verbose);
  if (!a.help) return v->run(&a);
  args_help(v, a.help_all, stdout);
  return 0;
}

/* Is it a file or an option instead of a verb, as in 'ingot model.onnx > model.c'? */
static int is_file(const char *word) {
  return *word == '-' || strpbrk(word, "./") || access(word, F_OK) == 0;
}

static const Verb *find_verb(const char *word) {
  for (int i = 0; i < verb_count; i++)
    if (!strcmp(word, verb_table[i].name)) return &verb_table[i];
  return NULL;
}

static int help_verb(const char *word) {
  const Verb *v = find_verb(word);
  if (!v) return suggest_verb(word);
  args_help(v, 0, stdout);
  return 0;
}

static int act(int argc, char **argv) {
  if (argc < 2) {
    help(stderr);
    return INGOT_USAGE;
  }
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help") ||
      !strcmp(argv[1], "--help-all")) {
    if (argc > 2) return help_verb(argv[2]);
    help(stdout);
    return 0;
  }
  if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-v")) {
    uint32_t llvm = ingot_llvm();
    if (llvm)
      printf("ingot " INGOT_VERSION " (LLVM %u)\n", llvm);
    else
      puts("ingot " INGOT_VERSION);
    return 0;
  }
  const Verb *v = find_verb(argv[1]);
  if (v) return run(v, argc - 2, argv + 2);
  return is_file(argv[1]) ? run(&verb_table[0], argc - 1, argv + 1) : suggest_verb(argv[1]);
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN); /* a closed pipe or a full disk is an error code, not a fatal signal */
  signal(SIGXFSZ, SIG_IGN);
  int e = act(argc, argv);
  if (fflush(stdout) || ferror(stdout)) {
    if (!e) e = INGOT_SYSTEM;
    if (errno != EPIPE)
      fputs("ingot: standard output: write failed\n", stderr); /* a closed pipe is not an error */
  }
  return e;
}
