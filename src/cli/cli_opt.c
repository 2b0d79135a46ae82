/* cli_opt.c: runs passes and prints the IR.
 *
 * In: a model or a text form of the IR. Out: the text after the last pass or after the passes of
 * --dump, or the output of --explain, --choices, --dump=llvm or --dump=cuda, or the register code
 * of a program (--dump=bytecode). -o OUT.onnx writes the graph as an ONNX model, by default after
 * canon. Standard output shortens long constants unless --constants all is given; a file has all of
 * them.
 */
#include "cli/cli.h"

#include <string.h>

typedef struct Dump {
  const Args *a;
  size_t n; /* bytes so far */
  int full; /* limit of a terminal exceeded: print nothing more */
} Dump;

static void dumped(void *user, const char *pass, const char *text, size_t n) {
  Dump *d = user;
  d->n += n;
  d->full = d->full || !fits_terminal(d->a, "IR", d->n);
  if (d->full) return;
  printf("# after %s\n", pass);
  fwrite(text, 1, n, stdout);
}

static void timed(void *user, const char *pass, double ms, uint32_t before, uint32_t after) {
  (void)user;
  fprintf(stderr, "%-10s %9.3f ms  %u -> %u\n", pass, ms, before, after);
}

/* Writes to --output or prints. */
static IngotStatus give_opt_text(Ingot *m, const Args *a, const char *text, size_t n) {
  if (a->output) return ingot_write_files(m, &(IngotFile){a->output, text, n}, 1);
  return print_result(a, "text", text, n);
}

/* Writes the final text, with large constants next to it if --weights-file is given. */
static IngotStatus write_opt(Ingot *m, const Args *a, const char *weights_path) {
  const char *text, *weights = NULL;
  size_t n, nweights = 0;
  IngotStatus s = ingot_print(m, &text, &n, a->weights_file ? &weights : NULL, &nweights);
  IngotFile f[] = {{weights_path, weights, nweights}, {a->output, text, n}};
  return s ? s : ingot_write_files(m, f + !nweights, 2 - !nweights);
}

int verb_opt(const Args *a) {
  if (a->constants && strcmp(a->constants, "all") && strcmp(a->constants, "brief"))
    return refuse_option(a, "constants", "expected all or brief");
  int brief = !a->constants ? !a->output : !strcmp(a->constants, "brief");
  if (brief && a->output)
    return refuse_option(
        a, "constants",
        "expected all with --output: ingot cannot read a text with shortened constants");
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  Dump dump = {.a = a};
  const char *end = a->output ? strrchr(a->output, '.') : NULL;
  int is_onnx = end && !strcmp(end, ".onnx");
  IngotPassOptions pipe = {.start = a->start,
                           .stop = a->stop   ? a->stop
                                   : is_onnx ? "canon"
                                             : NULL,
                           .skip = a->skip,
                           .dump = a->dump,
                           .check = a->check,
                           .on_dump = dumped,
                           .on_time = a->time ? timed : NULL,
                           .user = &dump,
                           .brief = !a->constants || brief};
  const char *text;
  size_t n;
  if (is_script(a->model) && !a->function && a->dump && !strcmp(a->dump, "bytecode")) {
    IngotStatus s = ingot_script_dump(m, a->model, &text, &n);
    return cli_finish(m, a, s ? s : give_opt_text(m, a, text, n));
  }
  char weights_path[4096];
  Args all = *a;
  if (a->output) all.writes[all.nwrites++] = a->output;
  if (a->output && a->weights_file) all.writes[all.nwrites++] = weights_path;
  snprintf(weights_path, sizeof weights_path, "%.4000s.bin", a->output ? a->output : "");
  IngotStatus s = cli_prepare(m, &all);
  int is_llvm = a->dump && !strcmp(a->dump, "llvm");
  int is_cuda = a->dump && !strcmp(a->dump, "cuda");
  if (!s && (a->explain || a->choices || is_llvm || is_cuda)) {
    s = a->choices   ? ingot_choices(m, &text, &n)
        : a->explain ? ingot_explain(m, &text, &n)
        : is_cuda    ? ingot_print_cuda(m, &text, &n)
                     : ingot_print_llvm(m, &text, &n);
    if (!s) s = give_opt_text(m, a, text, n);
    return cli_finish(m, a, s);
  }
  if (!s) s = ingot_passes(m, &pipe);
  if (!s && dump.full) s = INGOT_USAGE;
  if (!s && is_onnx) {
    s = ingot_write_onnx(m, a->output);
  } else if (!s && a->output) {
    s = write_opt(m, a, weights_path);
  } else if (!s && !a->dump) {
    s = brief ? ingot_print_brief(m, &text, &n) : ingot_print(m, &text, &n, NULL, NULL);
    if (!s) s = print_result(a, "IR", text, n);
  }
  return cli_finish(m, a, s);
}
