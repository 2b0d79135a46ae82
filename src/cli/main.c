/* main.c: finds the verb and runs it. Results go to stdout, everything else to stderr. */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void help(FILE *to) {
  fputs("ingot turns neural networks into plain C. This build reads ONNX, TensorFlow Lite,\n"
        "GGUF and safetensors.\n\n"
        "usage: ingot VERB MODEL [OPTIONS]\n"
        "       ingot MODEL [OPTIONS]      the same as ingot compile MODEL\n\n",
        to);
  int wide = 0;
  for (int i = 0; i < verb_count; i++)
    if ((int)strlen(verb_table[i].name) > wide) wide = (int)strlen(verb_table[i].name);
  for (int i = 0; i < verb_count; i++)
    fprintf(to, "  %-*s %s\n", wide, verb_table[i].name, verb_table[i].text);
  fputs("\n'ingot VERB --help' lists the options of a verb.\n"
        "exit codes: 0 ok, 1 mismatch, 2 usage, 3 unsupported, 4 bad input, 5 system\n",
        to);
}

/* Runs a verb on the words behind it. */
static int run(const Verb *v, int argc, char **argv) {
  Args a;
  int e = args_read(&a, v, argc, argv);
  if (e) return e;
  watch_as(a.quiet, a.verbose);
  if (!a.help) return v->run(&a);
  args_help(v, stdout);
  return 0;
}

/* 'ingot model.onnx > model.c': a file or an option where a verb could be. */
static int is_file(const char *word) {
  return *word == '-' || strpbrk(word, "./") || access(word, F_OK) == 0;
}

static const Verb *find_verb(const char *word) {
  for (int i = 0; i < verb_count; i++)
    if (!strcmp(word, verb_table[i].name)) return &verb_table[i];
  return NULL;
}

static int no_verb(const char *word) {
  const char *names[64], *near;
  for (int i = 0; i < verb_count; i++) names[i] = verb_table[i].name;
  near = ingot_nearest(word, names, (size_t)verb_count);
  fprintf(stderr, "ingot: no verb '%s'; %s%s%ssee 'ingot --help'\n", word,
          near ? "did you mean '" : "", near ? near : "", near ? "'? " : "");
  return INGOT_USAGE;
}

static int help_verb(const char *word) {
  const Verb *v = find_verb(word);
  if (!v) return no_verb(word);
  args_help(v, stdout);
  return 0;
}

static int act(int argc, char **argv) {
  if (argc < 2) {
    help(stderr);
    return INGOT_USAGE;
  }
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
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
  return is_file(argv[1]) ? run(&verb_table[0], argc - 1, argv + 1) : no_verb(argv[1]);
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN); /* a closed pipe or a full disk is an error code, not a death */
  signal(SIGXFSZ, SIG_IGN);
  int e = act(argc, argv);
  if (fflush(stdout) || ferror(stdout)) {
    if (!e) e = INGOT_SYSTEM;
    if (errno != EPIPE)
      fputs("ingot: standard output: write failed\n",
            stderr); /* a reader that left wants no more */
  }
  return e;
}
