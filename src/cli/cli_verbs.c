/* cli_verbs.c: the table of verbs; run, inspect, compile, vm and the lists.
 */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void print_messages(const Ingot *m, int quiet) {
  for (uint32_t i = 0; i < ingot_message_count(m); i++) {
    int is_warning;
    const char *text = ingot_message(m, i, &is_warning);
    if (is_warning && quiet) continue;
    if (is_warning)
      watch_line("warning: ", text);
    else
      watch_error(text);
  }
}

void print_hint(const Ingot *m, const Args *a) {
  const char *word;
  if (!ingot_hint(m, 0) || a->nmodels > 1) return; /* unknown which model is meant */
  fprintf(stderr, "ingot: for example: ingot %s", a->verb);
  for (int i = 0; i < a->nword; i++) shell_word(" ", a->word[i], stderr);
  for (uint32_t i = 0; (word = ingot_hint(m, i)); i++) shell_word(" ", word, stderr);
  fputc('\n', stderr);
}

/* Reports the default target and alternatives, on a terminal or with --verbose. Bytecode,
 * WebAssembly, LLVM and boards have other defaults. */
static void print_target(const Args *a) {
  const char *portable[] = {"compile", "export", "inspect"}, *native = ingot_native();
  char line[200];
  int plain = 0, other = a->build.target || a->build.backend ||
                         (a->project && !strstr("cmake make rust", a->project));
  for (int i = 0; i < 3; i++) plain = plain || !strcmp(a->verb, portable[i]);
  other = other || (a->output && (strstr(a->output, ".wasm") || strstr(a->output, ".igb")));
  if (a->march || a->quiet || other || !(isatty(STDERR_FILENO) || a->verbose)) return;
  if (plain && strcmp(native, "scalar"))
    snprintf(line, sizeof line,
             "target scalar, portable C without vectors; --march native uses %s, often several "
             "times faster%s",
             native, strcmp(native, "neon") ? "; --march multi serves every x86-64 CPU" : "");
  else if (!strcmp(a->verb, "build"))
    snprintf(line, sizeof line, "target %s, this CPU; --march multi or scalar for others", native);
  else
    return;
  watch_line("", line);
}

int cli_finish(Ingot *m, const Args *a, IngotStatus s) {
  print_messages(m, a->quiet);
  if (!s) print_target(a);
  if (s) print_hint(m, a);
  ingot_free(m);
  return (int)s;
}

/* Words before all models apply to each model; words after a model apply to that one. */
static int is_given(const Args *a, int k, int word, int first, int from, int to) {
  return word < first || (word >= from && (k + 1 >= a->nmodels || word < to));
}

#define SAID(list) is_given(a, k, i, first->list, w->list, end->list)
/* Applies the options on dimensions of model k. */
static IngotStatus set_dims(Ingot *m, const Args *a, int k) {
  const ModelArgs *first = &a->models[0], *w = &a->models[k];
  const ModelArgs *end = &a->models[k + 1 < a->nmodels ? k + 1 : k];
  IngotStatus s = INGOT_OK;
  for (int i = 0; !s && i < a->ndim; i++)
    if (SAID(dim)) s = ingot_set_dim(m, a->dim[i]);
  for (int i = 0; !s && i < a->nshape; i++)
    if (SAID(shape)) s = ingot_set_shape(m, a->shape[i], 0);
  for (int i = 0; !s && i < a->nmax_shape; i++)
    if (SAID(max_shape)) s = ingot_set_shape(m, a->max_shape[i], 1);
  return s;
}

/* Applies the options on inputs of model k. */
static IngotStatus set_inputs(Ingot *m, const Args *a, int k) {
  const ModelArgs *first = &a->models[0], *w = &a->models[k];
  const ModelArgs *end = &a->models[k + 1 < a->nmodels ? k + 1 : k];
  IngotStatus s = INGOT_OK;
  for (int i = 0; !s && i < a->nstate; i++)
    if (SAID(state)) s = ingot_set_state(m, a->state[i]);
  for (int i = 0; !s && i < a->nfreeze; i++)
    if (SAID(freeze)) s = ingot_freeze(m, a->freeze[i]);
  for (int i = 0; !s && i < a->ninput; i++)
    if (SAID(input)) s = ingot_input_spec(m, a->input[i]);
  return s;
}
#undef SAID

IngotStatus prepare_more_models(Ingot *m, const Args *a) {
  IngotStatus s = INGOT_OK;
  Ingot *more;
  if (a->nmodels > 1 && a->tune)
    return (IngotStatus)cli_refuse(
        a, "--tune accepts one model: tune each one, then use --tuned FILE");
  for (int k = 1; !s && k < a->nmodels; k++) {
    s = ingot_open_also(m, a->models[k].path, &more);
    if (!s) s = set_dims(more, a, k);
    if (!s) s = set_inputs(more, a, k);
  }
  return s;
}

int refuse_option(const Args *a, const char *name, const char *why) {
  fprintf(stderr, "ingot %s: --%s: %s\n", a->verb, name, why);
  return INGOT_USAGE;
}

/* Options that change the graph during import. A function of a program is not imported. */
static const char changes_import[] = "grad train freeze state";

/* Options that shape a program. Bytecode is already compiled: they belong to ingot compile. */
static const char shapes_program[] =
    "context chunk every-token cache activation-type bake-prompt date shapes max-shapes freeze "
    "state "
    "grad train "
    "march optimize-for ram precise threads threads-api threads-grain tuned tune";

/* May --output replace a model? opt writes one only as OUT.onnx. */
static int writes_models(const Args *a) {
  const char *end = a->output ? strrchr(a->output, '.') : NULL;
  return is_one_of("quantize train compile", a->verb) ||
         (!strcmp(a->verb, "opt") && end && !strcmp(end, ".onnx"));
}

/* Refuses to overwrite a model if a value was forgotten, as in `--html MODEL`. */
static int check_no_model_overwritten(const Args *a) {
  for (int i = 0; i < a->nwrites; i++) {
    const char *path = a->writes[i];
    if ((path == a->output && writes_models(a)) || !ingot_is_model_file(path)) continue;
    fprintf(stderr, "ingot %s: %s%s: refusing to overwrite a model; was a value forgotten?\n",
            a->verb,
            path == a->html     ? "--html "
            : path == a->output ? "--output "
                                : "",
            path);
    return 0;
  }
  return 1;
}

IngotStatus cli_prepare(Ingot *m, const Args *a) {
  if (!check_no_model_overwritten(a)) return INGOT_USAGE;
  IngotStatus s = ingot_will_write(m, a->writes, (uint32_t)a->nwrites);
  if (!s && a->bytes) s = ingot_open_bytes(m, a->bytes, a->nbytes, a->model);
  int script = !a->bytes && is_script(a->model);
  const char *given = args_first_given(a, changes_import);
  if (!s && script && given) {
    refuse_option(a, given,
                  "is not supported for a function of a program: write it in the program "
                  "(autograd, a constant, a variable)");
    return INGOT_UNSUPPORTED;
  }
  if (!s && script) s = set_dims(m, a, 0); /* opening runs the program and its function */
  if (!s && !a->bytes) s = script ? open_script(m, a) : ingot_open(m, a->model);
  given = args_first_given(a, shapes_program);
  if (!s && given && ingot_is_vm(m))
    return refuse_option(
        a, given, "not for bytecode, which is already compiled: give the option to ingot compile");
  if (!s && (a->context || a->chunk || a->every_token || a->cache || a->activations))
    s = ingot_set_language(
        m, &(IngotLanguage){a->context, a->chunk, a->every_token, a->cache, 0, a->activations});
  if (!s && a->bake_prompt) s = ingot_bake_prompt(m, a->bake_prompt);
  if (!s && a->date && (a->bake_prompt || strcmp(a->verb, "play"))) s = ingot_set_day(m, a->date);
  if (!s && a->train) s = ingot_set_train(m, a->train);
  if (!s && a->grad) s = ingot_set_grad(m, a->grad);
  if (!s && !script) s = set_dims(m, a, 0);
  if (!s) s = set_inputs(m, a, 0);
  if (!s && a->inputs) s = ingot_input_file(m, a->inputs);
  if (!s && a->data) s = ingot_input_file(m, a->data);
  if (!s && a->march) s = ingot_set_target(m, a->march);
  if (!s && a->optimize_for) s = ingot_optimize_for(m, a->optimize_for);
  if (!s && a->ram) s = ingot_set_ram(m, a->ram);
  if (!s && a->precise) s = ingot_set_precise(m);
  if (!s && a->precision) s = ingot_set_precision(m, a->precision);
  if (!s && (a->threads || a->threads_api || a->threads_grain))
    s = ingot_set_threads(m, a->threads ? (int)a->threads : 1, a->threads_api,
                          (int)a->threads_grain);
  if (!s && a->tuned) s = ingot_set_tuned(m, a->tuned);
  if (!s && (a->keep_code || !strcmp(a->verb, "run"))) s = ingot_keep_code(m, a->keep_code);
  if (!s && a->library) s = ingot_set_library(m, a->library, a->name);
  if (!s && a->python) s = ingot_set_python(m, a->python);
  return s;
}

int buffer_stdin_model(Args *a) {
  size_t n = 0, room = 1 << 16, got = 1;
  if (strcmp(a->model, "-") != 0) return 0;
  char *at = malloc(room);
  while (at && got) {
    if (n == room) {
      char *more = realloc(at, room *= 2);
      if (!more) free(at);
      at = more;
    }
    got = at ? fread(at + n, 1, room - n, stdin) : 0;
    n += got;
  }
  if (!at || ferror(stdin)) {
    fprintf(stderr, "ingot: -: %s\n", at ? "standard input cannot be read" : "out of memory");
    free(at);
    return INGOT_SYSTEM;
  }
  a->bytes = at; /* until the process ends */
  a->nbytes = n;
  return 0;
}

IngotStatus run_steps(Ingot *m, const Args *a, const char *engine) {
  IngotStatus s = INGOT_OK;
  watch_task(engine ? engine : engine_with(~0u));
  for (unsigned long long i = 0; !s && i < (a->steps ? a->steps : 1); i++)
    s = ingot_run(m, engine, a->seed + i);
  watch_task(NULL);
  return s;
}

static void print_line(void *user, const char *line) {
  const Args *a = user;
  if (!a->quiet) watch_line("tune: ", line);
}

IngotStatus cli_tune(Ingot *m, const Args *a, const char *march) {
  Args own = *a;
  if (!a->tune) return INGOT_OK;
  watch_task("tune");
  IngotStatus s = ingot_tune(m, &(IngotTune){.file = *a->tune ? a->tune : NULL,
                                             .cc = a->build.cc,
                                             .march = march,
                                             .optimize = a->build.optimize,
                                             .on_progress = print_line,
                                             .user = &own});
  watch_task(NULL);
  return s;
}

Ingot *new_model_or_report(void) {
  Ingot *m = new_model();
  if (!m) fputs("ingot: out of memory\n", stderr);
  return m;
}

int cli_refuse(const Args *a, const char *why) {
  fprintf(stderr, "ingot %s: %s\n", a->verb, why);
  return INGOT_USAGE;
}

/* ---- run ---- */

static double element(const IngotTensor *t, uint64_t i, int *known) {
  *known = 1;
  if (!strcmp(t->dtype, "f32")) return (double)((const float *)t->data)[i];
  if (!strcmp(t->dtype, "f64")) return ((const double *)t->data)[i];
  if (!strcmp(t->dtype, "i64")) return (double)((const int64_t *)t->data)[i];
  if (!strcmp(t->dtype, "i32")) return (double)((const int32_t *)t->data)[i];
  if (!strcmp(t->dtype, "i8")) return (double)((const int8_t *)t->data)[i];
  if (!strcmp(t->dtype, "u8") || !strcmp(t->dtype, "bool"))
    return (double)((const uint8_t *)t->data)[i];
  *known = 0;
  return 0;
}

static void print_element(const IngotTensor *t, uint64_t i) {
  int known;
  if (!strcmp(t->dtype, "str")) {
    printf(" \"");
    print_name(((const char *const *)t->data)[i], 0);
    printf("\"");
  } else if (!strcmp(t->dtype, "i64"))
    printf(" %lld", (long long)((const int64_t *)t->data)[i]);
  else if (!strcmp(t->dtype, "i32"))
    printf(" %ld", (long)((const int32_t *)t->data)[i]);
  else
    printf(" %.7g", element(t, i, &known));
}

typedef struct TensorStats {
  uint64_t n, nans;
  int known, text; /* known: printable numbers; text: strings */
  double lo, hi, mean;
} TensorStats;

static TensorStats tensor_stats(const IngotTensor *t) {
  TensorStats s = {
      .n = 1, .known = 1, .text = !strcmp(t->dtype, "str"), .lo = INFINITY, .hi = -INFINITY};
  double sum = 0;
  for (uint32_t i = 0; i < t->rank; i++) s.n *= (uint64_t)t->dim[i];
  for (uint64_t i = 0; i < s.n && s.known && !s.text; i++) {
    double x = element(t, i, &s.known);
    if (isnan(x)) {
      s.nans++;
      continue;
    }
    s.lo = x < s.lo ? x : s.lo;
    s.hi = x > s.hi ? x : s.hi;
    sum += x;
  }
  s.mean = sum / (double)(s.n - s.nans);
  return s;
}

static void summary(const IngotTensor *t) {
  TensorStats s = tensor_stats(t);
  print_name(t->name, 0);
  printf(": %s[", t->dtype);
  for (uint32_t i = 0; i < t->rank; i++) printf("%s%lld", i ? "," : "", (long long)t->dim[i]);
  printf("]");
  if (s.n && s.known && !s.text && s.nans < s.n)
    printf("  min %g  max %g  mean %g", s.lo, s.hi, s.mean);
  if (s.nans) printf("  NaN %llu", (unsigned long long)s.nans);
  if (s.n && s.known) printf("\n ");
  for (uint64_t i = 0; i < s.n && i < 8 && s.known; i++) print_element(t, i);
  if (s.n > 8 && s.known) printf(" ...");
  printf("\n");
}

static void summary_json(const IngotTensor *t, int first) {
  TensorStats s = tensor_stats(t);
  int numbers = s.known && !s.text, known;
  json_text(first ? "\n{\"name\":" : ",\n{\"name\":", t->name);
  json_text(",\"type\":", t->dtype);
  for (uint32_t i = 0; i < t->rank; i++)
    printf(i ? ",%lld" : ",\"shape\":[%lld", (long long)t->dim[i]);
  printf(t->rank ? "]" : ",\"shape\":[]");
  json_real(",\"min\":", numbers ? s.lo : (double)NAN);
  json_real(",\"max\":", numbers ? s.hi : (double)NAN);
  json_real(",\"mean\":", numbers ? s.mean : (double)NAN);
  printf(",\"nan\":%llu,\"first\":[", (unsigned long long)s.nans);
  for (uint64_t i = 0; i < s.n && i < 8 && s.known; i++) {
    if (s.text)
      json_text(i ? "," : "", ((const char *const *)t->data)[i]);
    else
      json_real(i ? "," : "", element(t, i, &known));
  }
  printf("]}");
}

static void print_outputs(const Ingot *m, int json) {
  uint32_t n = ingot_output_count(m);
  if (json) printf("{\"outputs\":[");
  for (uint32_t i = 0; i < n; i++) {
    IngotTensor t = ingot_output(m, i);
    if (json)
      summary_json(&t, i == 0);
    else
      summary(&t);
  }
  if (json) puts("]}");
}

/* Checks --output before the run. */
static int takes_outputs(const char *path) {
  struct stat st;
  size_t n = strlen(path);
  if (n > 4 && (!strcmp(path + n - 4, ".npz") || !strcmp(path + n - 4, ".npy"))) return 1;
  int is_there = !stat(path, &st);
  const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
  if (is_there ? S_ISDIR(st.st_mode) : !strchr(last, '.')) return 1;
  fprintf(stderr,
          "ingot run: --output %s: expected FILE.npz, FILE.npy (of one output) or a folder\n",
          path);
  return 0;
}

static int verb_run(const Args *a) {
  if (is_script(a->model)) return run_script(a);
  if (a->library && (!a->engine || strcmp(a->engine, "c")))
    return cli_refuse(a, "--library needs --engine c");
  const IngotEngine *e = a->engine ? ingot_find_engine(a->engine) : NULL;
  if (a->python && !(e && e->flags & INGOT_FILE))
    return cli_refuse(a, "--python needs --engine onnxruntime");
  warn_unused_threads(a, a->engine ? a->engine : engine_with(~0u));
  if (a->output && !takes_outputs(a->output)) return INGOT_USAGE;
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  IngotStatus s = a->output ? ingot_will_write_outputs(m, a->output) : INGOT_OK;
  if (!s) s = cli_prepare(m, a);
  if (!s && a->text) s = set_text_input(m, a);
  if (!s && a->max_steps) s = ingot_set_max_steps(m, a->max_steps);
  if (!s) s = run_steps(m, a, a->engine);
  if (!s && a->output) s = ingot_write_outputs(m, a->output);
  if (!s && (!a->output || a->json)) print_outputs(m, a->json);
  return cli_finish(m, a, s);
}

/* ---- inspect, ops ---- */

static int verb_inspect(const Args *a) {
  if (a->html) return inspect_html(a);
  if (a->bench) return cli_refuse(a, "--bench needs --html; use ingot bench --per-kernel for text");
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  const char *text;
  size_t n = 0;
  IngotStatus s = cli_prepare(m, a);
  watch_task("inspect");
  if (!s) s = ingot_inspect(m, a->json, &text, &n);
  watch_task(NULL);
  if (n) fwrite(text, 1, n, stdout);
  if (!s || (s == INGOT_UNSUPPORTED && n)) print_hint(m, a);
  if (s != INGOT_UNSUPPORTED || !n) return cli_finish(m, a, s);
  fprintf(stderr, "ingot: %s: has nodes that are refused: see the report\n", a->model);
  ingot_free(m);
  return (int)s;
}

/* Converts lines of a name, blanks and a description to JSON. */
static void passes_json(const char *text) {
  char name[64], what[256];
  for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
    size_t k = strcspn(line, " ");
    snprintf(name, sizeof name, "%.*s", (int)k, line);
    k += strspn(line + k, " ");
    snprintf(what, sizeof what, "%.*s", (int)strcspn(line + k, "\n"), line + k);
    json_text(line == text ? "[\n{\"name\":" : ",\n{\"name\":", name);
    json_text(",\"text\":", what);
    printf("}");
  }
  puts("\n]");
}

/* verbs ops, passes, doctor and cache */
static int verb_list(const Args *a) {
  if (a->list && a->clean) return cli_refuse(a, "expected one of --list and --clean, found both");
  if (a->clean) return clean_cache(a);
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  const char *text;
  size_t n = 0;
  IngotStatus s = !strcmp(a->verb, "doctor")  ? ingot_doctor(m, a->json, &text, &n)
                  : !strcmp(a->verb, "ops")   ? ingot_ops(m, a->json, &text, &n)
                  : !strcmp(a->verb, "cache") ? ingot_cache_list(m, a->json, &text, &n)
                                              : ingot_pass_list(m, &text, &n);
  if (!s && a->json && !strcmp(a->verb, "passes"))
    passes_json(text);
  else if (!s)
    fwrite(text, 1, n, stdout);
  return cli_finish(m, a, s);
}

/* ---- compile ---- */

/* Prefix of C names: --name, or the stem of the output file. Characters other than letters and
 * digits become '_'; an m is put before a digit. */
void c_prefix(const Args *a, char *to, size_t n) {
  const char *from = a->name;
  if (!from && a->output && strcmp(a->output, "-")) {
    const char *slash = strrchr(a->output, '/');
    from = slash ? slash + 1 : a->output;
  }
  if (!from) from = "model";
  size_t k = 0;
  if (!a->name && *from >= '0' && *from <= '9') to[k++] = 'm';
  for (size_t i = 0; from[i] && k + 1 < n && (a->name || from[i] != '.'); i++) {
    int fine = (from[i] >= 'a' && from[i] <= 'z') || (from[i] >= 'A' && from[i] <= 'Z') ||
               (from[i] >= '0' && from[i] <= '9');
    to[k++] = fine || a->name ? from[i] : '_';
  }
  to[k] = 0;
  if (!k && !a->name) snprintf(to, n, "model");
}

int is_c_name(const char *output) {
  size_t n = strlen(output);
  return n >= 3 && !strcmp(output + n - 2, ".c") && n + 4 < sizeof((OutputFiles *)0)->weights;
}

void c_files(OutputFiles *t, const char *output) {
  int stem = (int)strlen(output) - 2;
  snprintf(t->source, sizeof t->source, "%s", output);
  snprintf(t->header, sizeof t->header, "%.*s.h", stem, output);
  snprintf(t->weights, sizeof t->weights, "%.*s.bin", stem, output);
  snprintf(t->cpp, sizeof t->cpp, "%.*s.hpp", stem, output);
}

/* Above this size, weights should go to a file, but stdout has no folder for it. */
enum { LARGE_TEXT = 32 << 20 };

static IngotStatus print_c(Ingot *m, const Args *a, const IngotCodegen *o) {
  const char *source, *header;
  size_t n, nh;
  IngotStatus s = ingot_emit_c(m, o, &source, &n, &header, &nh);
  if (s) return s;
  if (n > LARGE_TEXT && !a->build.c.weights && !a->quiet)
    fprintf(
        stderr,
        "ingot compile: %.0f MB of C including weights; -o FILE.c writes them to a separate file\n",
        (double)n / 1e6);
  if (!a->output) return print_result(a, "C", source, n);
  fwrite(source, 1, n, stdout); /* -o -: explicitly requested */
  return s;
}

/* Writes bytecode; options of generated C are refused. */
static int compile_bytecode(const Args *a) {
  const char *only_c = args_first_given(
      a, "weights selftest no-selftest cpp caller profile debug split name cc tune tuned threads "
         "threads-api threads-grain");
  if (only_c) return refuse_option(a, only_c, "applies to C, but --output is bytecode (.igb)");
  if (a->nmodels > 1) return cli_refuse(a, "bytecode holds one model: write one .igb for each");
  Args all = *a;
  all.writes[all.nwrites++] = a->output;
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  IngotStatus s = cli_prepare(m, &all);
  watch_task("compile");
  if (!s) s = ingot_write_vm(m, a->output);
  watch_task(NULL);
  return cli_finish(m, a, s);
}

/* Prints the names of the files and, for a single model, its memory. */
static IngotStatus compile_json(Ingot *m, const OutputFiles *t, int models) {
  const void *data;
  size_t n = 0;
  IngotStatus s = ingot_emit_weights(m, &data, &n);
  if (s) return s;
  json_text("{\"source\":", t->source);
  json_text(",\"header\":", t->header);
  if (n) json_text(",\"weights_file\":", t->weights);
  if (models == 1) s = json_memory(m);
  puts("}");
  return s;
}

static int verb_compile(const Args *a) {
  const char *output = a->output && strcmp(a->output, "-") ? a->output : NULL;
  size_t len = output ? strlen(output) : 0;
  char name[256];
  OutputFiles t = {"", "", "", ""};
  if (len > 4 && !strcmp(output + len - 4, ".igb")) return compile_bytecode(a);
  if (output && !is_c_name(output)) {
    fprintf(stderr, "ingot compile: --output %s: expected a name that ends in .c or .igb\n",
            output);
    return INGOT_USAGE;
  }
  if (!output && a->build.c.weights &&
      (!strcmp(a->build.c.weights, "file") || !strcmp(a->build.c.weights, "pointer"))) {
    fprintf(stderr, "ingot compile: --weights %s needs --output FILE.c\n", a->build.c.weights);
    return INGOT_USAGE;
  }
  Args all = *a;
  if (output) {
    c_files(&t, output);
    all.writes[all.nwrites++] = t.source;
    all.writes[all.nwrites++] = t.header;
    /* by default, large weights go to a file */
    if (!a->build.c.weights || !strcmp(a->build.c.weights, "file") ||
        !strcmp(a->build.c.weights, "pointer"))
      all.writes[all.nwrites++] = t.weights;
    if (a->cpp) all.writes[all.nwrites++] = t.cpp;
  }
  const char *slash = strrchr(t.weights, '/');
  if (a->json && !output) return cli_refuse(a, "--json needs --output: standard output has the C");
  if (a->cpp && !output) return cli_refuse(a, "--cpp needs --output FILE.c");
  if (a->tune && !a->march)
    return cli_refuse(a, "--tune needs --march: scalar C has no tile sizes to choose");
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  c_prefix(a, name, sizeof name);
  IngotCodegen o = a->build.c;
  o.name = name;
  o.weights_file = !output ? NULL : slash ? slash + 1 : t.weights;
  o.cpp = a->cpp ? t.cpp : NULL;
  IngotStatus s = cli_prepare(m, &all);
  if (!s) s = prepare_more_models(m, a);
  if (!s) s = cli_tune(m, a, NULL);
  watch_task("compile");
  if (!s && output)
    s = ingot_write_c(m, &o, t.source, t.header, t.weights);
  else if (!s)
    s = print_c(m, a, &o);
  watch_task(NULL);
  if (!s && a->json) s = compile_json(m, &t, a->nmodels);
  return cli_finish(m, a, s);
}

/* ---- vm ---- */

static int verb_vm(const Args *a) {
  const char *output = a->output ? a->output : "";
  size_t n, nh;
  OutputFiles t;
  if (!a->emit || !is_c_name(output)) return cli_refuse(a, "expected --emit and --output FILE.c");
  c_files(&t, output);
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  const char *source, *header;
  IngotStatus s = ingot_emit_vm(m, &source, &n, &header, &nh);
  IngotFile f[] = {{t.header, header, nh}, {t.source, source, n}};
  if (!s) s = ingot_write_files(m, f, 2);
  return cli_finish(m, a, s);
}

#define SHAPES                                                                                     \
  "function files no-files input-dim shapes max-shapes freeze grad train context chunk "           \
  "every-token cache activation-type"
/* --help lists the options named in a usage line. */
const Verb verb_table[] = {
    {"compile", verb_compile,
     "output name weights state march cc tune tuned precise precision optimize-for ram threads "
     "threads-api threads-grain selftest no-selftest split cpp caller profile debug json input "
     "inputs "
     "data bake-prompt date " SHAPES,
     "MODEL... [-d batch=1] [-o FILE.c|FILE.igb] [--name NAME] [--march CPU] [--threads N] "
     "[--weights HOW] [--state auto] [--optimize-for WHAT]",
     "compile models to one C file (and its header with -o), or to bytecode", MODELS_MAX,
     "compile"},
    {"build", verb_build,
     "output name weights state cc march backend triple target tune tuned precise precision "
     "optimize-for ram "
     "optimize sanitize threads threads-api threads-grain selftest no-selftest caller profile "
     "debug preset presets lto pgo bolt fast-math seconds clean json input inputs data "
     "bake-prompt date " SHAPES,
     "MODEL... [-d batch=1] -o OUT.o|OUT.a|OUT.so|OUT.wasm|PROGRAM [--cc CC] [-O3] [--march CPU] "
     "[--threads N] [--preset max] [--pgo] [--backend llvm]",
     "build an object file, a library, WebAssembly or a program", MODELS_MAX, "compile"},
    {"export", verb_export,
     "project output name weights state march tuned precise precision optimize-for ram threads "
     "threads-api "
     "threads-grain selftest no-selftest json input inputs data " SHAPES,
     "MODEL [-d batch=1] --project cmake|make|zephyr|arduino|platformio|esp-idf|rust -o DIR "
     "[--name NAME] [--march CPU]",
     "write a source folder for a build system: C, an example, build files", 1, "compile"},
    {"play", verb_play,
     "model-path prompt file system raw think max-tokens context cache activation-type temperature "
     "top-k top-p "
     "min-p "
     "repeat-penalty "
     "frequency-penalty presence-penalty seed stop engine threads threads-grain cc march precise "
     "precision "
     "bake-prompt date clean conversation single-turn",
     "MODEL [-p PROMPT] [--system TEXT] [--raw] [--max-tokens N] [--context N] [--temperature X] "
     "[--top-k N] [--top-p X] [--seed N] [--threads N]",
     "chat with a language model, or answer a prompt", 1, "run"},
    {"serve", verb_serve,
     "model-path host port api-key api-key-file slots queue timeout context chunk cache "
     "activation-type name "
     "engine "
     "threads threads-grain cc march precise",
     "MODEL [--port N] [--slots N] [--context N] [--queue N] [--threads N] [--api-key-file FILE] "
     "[--host ADDRESS]",
     "serve a language model over HTTP with the OpenAI API", 1, "run"},
    {"run", verb_run,
     "input inputs data text output engine keep-code march tuned precise precision optimize-for "
     "ram threads "
     "threads-api "
     "threads-grain library name python seed state steps max-steps json " SHAPES,
     "MODEL [-d batch=1] [-i x=@x.npy | --inputs FILE.npz | --data DIR | --text TEXT] "
     "[-o FILE.npz|FILE.npy|DIR] [--engine NAME] [--threads N] [--seed N]",
     "run a model and print or write its outputs", 1, "run"},
    {"repl", verb_repl, "engine seed files no-files", "[--engine NAME] [--no-files]",
     "run a program line by line", 0, "language"},
    {"check", verb_check, "", "PROGRAM.ch", "check a program without running it", 1, "language"},
    {"fmt", verb_fmt, "output", "PROGRAM.ch [-o FILE]", "format a program", 1, "language"},
    {"verify", verb_verify,
     "data input inputs engine keep-code march tuned precise precision optimize-for ram threads "
     "threads-api "
     "threads-grain "
     "library name seed state steps rtol atol json html per-node bisect python output " SHAPES,
     "MODEL [-d batch=1] [--data DIR | --per-node | --html FILE | --bisect] [--engine NAME] "
     "[--rtol X] [--atol X] [--python PATH]",
     "compare engines with each other, with ONNX Runtime or with stored outputs", 1, "examine"},
    {"bench", verb_bench,
     "model-path input inputs data engine keep-code seed seconds cc march tune tuned precise "
     "precision "
     "optimize-for ram "
     "optimize "
     "threads threads-api threads-grain state per-kernel json " SHAPES,
     "MODEL [-d batch=1] [--engine NAME] [--threads N] [--march CPU] [--seconds S] [--per-kernel]",
     "measure latency, memory and code size", 1, "examine"},
    {"quantize", verb_quantize,
     "type data holdout method calibrate activations symmetric granularity block bias-correction "
     "equalize exclude budget label output json html input-dim shapes",
     "MODEL --data FILE.npz|DIR | --type TYPE -o OUT [--method HOW] [--exclude NODE] [--budget X]",
     "quantize a model and report the loss of accuracy", 1, "change"},
    {"train", verb_train,
     "data validate label loss optimizer lr schedule clip batch epochs patience accumulate freeze "
     "train "
     "seed engine march threads threads-api threads-grain checkpoint checkpoint-every output "
     "in-place json "
     "emit name recompute input-dim shapes",
     "MODEL.onnx --data FILE.npz -o OUT.onnx|--in-place [--validate FILE.npz] [--loss NAME] "
     "[--optimizer NAME] [--lr X] [--batch N] [--epochs N] | --emit FILE.c",
     "train a model and write it with its new weights, or write the training loop as C", 1,
     "change"},
    {"inspect", verb_inspect,
     "json html bench seconds cc tuned state march precise precision optimize-for ram threads "
     "threads-grain "
     "input inputs data " SHAPES,
     "MODEL [-d batch=1] [--freeze x=1] [--march CPU] [--json | --html FILE [--bench]]",
     "report what a model contains and needs", 1, "examine"},
    {"opt", verb_opt,
     "start stop skip dump march ram tuned choices precise precision threads threads-grain explain "
     "check "
     "time "
     "output weights-file constants state input inputs data " SHAPES,
     "MODEL|TEXT [-d batch=1] [--stop=PASS] [--dump=all] [--constants all] [--explain] "
     "[-o FILE]",
     "run passes and print the intermediate representation (IR)", 1, "examine"},
    {"tokenize", verb_tokenize, "model-path text ids special bare json",
     "MODEL --text TEXT|- | --ids \"1 2 3\" [--special] [--bare]",
     "convert text to token ids, or token ids to text", 1, "examine"},
    {"embed", verb_embed,
     "model-path text engine march precise threads threads-api threads-grain context "
     "activation-type",
     "MODEL --text TEXT|- [--context N]",
     "print the vector or the scores of a text by a text encoder, as JSON", 1, "run"},
    {"perplexity", verb_perplexity,
     "model-path text ids json engine march precise precision threads threads-api threads-grain "
     "context "
     "chunk cache activation-type",
     "MODEL --text FILE | --ids \"1 2 3\" [--context N] [--json]",
     "measure the perplexity of a text under a language model", 1, "examine"},
    {"vm", verb_vm, "emit output", "--emit -o FILE.c",
     "write the bytecode interpreter as one C file (and its header)", 0, "compile"},
    {"passes", verb_list, "json", "[--json]", "list the passes", 0, "ingot"},
    {"ops", verb_list, "json", "[--json]", "list the supported operators", 0, "ingot"},
    {"doctor", verb_list, "json", "[--json]",
     "report CPU, peak throughput, compilers and tools of this machine", 0, "ingot"},
    {"cache", verb_list, "list clean json", "[--list | --clean] [--json]",
     "list or remove compiled code, programs and profiles in ~/.cache/ingot", 0, "ingot"},
    {"completions", verb_completions, "", "bash|zsh|fish", "print a shell completion script", 1,
     "ingot"},
    {"demo", verb_demo, "engine", "[--engine NAME]",
     "classify handwritten digits with the built-in model", 0, "run"},
};
const int verb_count = sizeof verb_table / sizeof *verb_table;
