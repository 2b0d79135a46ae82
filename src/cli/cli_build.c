/* cli_build.c: builds machine code from a model or a whole program; reports the speed-up of every
 * step of a PGO build.
 */
#include "cli/cli.h"

#include <string.h>

static void print_command(void *user, const char *line) {
  (void)user;
  watch_line("", line);
}

static int print_presets(const Args *a) {
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  const char *text;
  size_t n = 0;
  IngotStatus s = ingot_presets(m, a->json, &text, &n);
  if (!s) fwrite(text, 1, n, stdout);
  return cli_finish(m, a, s);
}

static IngotStatus print_speedups(Ingot *m, const Args *a) {
  const char *text;
  size_t n = 0;
  IngotStatus s = ingot_build_report(m, a->json, &text, &n);
  if (!s && (n || !a->json)) {
    fwrite(text, 1, n, stdout);
  } else if (!s) { /* without measured steps */
    json_text("{\"output\":", a->output);
    if (a->nmodels == 1) s = json_memory(m);
    puts("}");
  }
  return s;
}

static int ends(const char *s, const char *end) {
  size_t n = strlen(s), k = strlen(end);
  return n >= k && !strcmp(s + n - k, end);
}

/* Build the whole program? Not with --function, nor if the output is not a program. */
static int is_whole_script(const Args *a) {
  const char *o = a->output;
  return is_script(a->model) && !a->function && !ends(o, ".o") && !ends(o, ".a") &&
         !ends(o, ".so") && !ends(o, ".wasm");
}

static int build_script(const Args *a) {
  if (has_model_options(a) ||
      args_first_given(a, "backend triple march preset lto fast-math pgo bolt "
                          "weights profile selftest caller"))
    return cli_refuse(
        a, "for a whole program expected only --cc, -O and --sanitize; other options apply to "
           "models: --function selects one");
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  IngotBuild o = {.output = a->output,
                  .cc = a->build.cc,
                  .optimize = a->build.optimize,
                  .sanitize = a->build.sanitize,
                  .no_files = forbids_files(a),
                  .on_command = a->verbose ? print_command : NULL};
  return cli_finish(m, a, ingot_script_build(m, a->model, &o));
}

int verb_build(const Args *a) {
  if (a->clean) return clean_cache(a);
  if (a->presets) return print_presets(a);
  if (!a->output)
    return cli_refuse(
        a, "--output is missing: OUT.o, OUT.a, OUT.so, OUT.wasm, or the name of a program");
  if (is_whole_script(a)) return build_script(a);
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  IngotBuild o = a->build;
  o.output = a->output;
  o.march = a->march;
  o.c.name = a->name;
  o.on_command = a->verbose ? print_command : NULL;
  Args rest = *a;
  rest.march = NULL;                        /* passed to the compiler, which knows more CPUs */
  IngotStatus s = ingot_check_build(m, &o); /* early: --tune may take hours */
  if (!s) s = cli_prepare(m, &rest);
  if (!s) s = prepare_more_models(m, &rest);
  if (!s) s = cli_tune(m, a, a->march);
  watch_task("build");
  if (!s) s = ingot_build(m, &o);
  watch_task(NULL);
  if (!s) s = print_speedups(m, a);
  return cli_finish(m, a, s);
}
