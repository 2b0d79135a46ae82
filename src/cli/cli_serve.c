/* cli_serve.c: `ingot serve`: an HTTP server for a language model (ingot_serve). */
#include "cli/cli.h"

static void print_line(void *user, const char *line) {
  const Args *a = user;
  if (!a->quiet) fprintf(stderr, "%s\n", line);
}

static void on_ready(void *user, uint32_t port) {
  (void)user, (void)port;
  watch_task(NULL);
  watch_yield_signals();
}

int verb_serve(const Args *a) {
  Args rest = *a;
  if (!a->model) return cli_refuse(a, "the model is missing: --model-path PATH");
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  rest.march = NULL;
  if (!rest.threads) rest.threads = default_threads();
  IngotStatus s = cli_prepare(m, &rest);
  if (s) return cli_finish(m, a, s);
  watch_task("compile");
  s = ingot_serve(m, &(IngotServe){.host = a->host,
                                   .port = (uint32_t)a->port,
                                   .key = a->api_key,
                                   .key_file = a->api_key_file,
                                   .slots = a->slots ? (uint32_t)a->slots : 4,
                                   .queue = a->queue ? (uint32_t)a->queue : 64,
                                   .timeout = (uint32_t)a->timeout,
                                   .name = a->name,
                                   .engine = a->engine,
                                   .cc = a->build.cc,
                                   .march = a->march,
                                   .on_ready = on_ready,
                                   .on_log = print_line,
                                   .user = (void *)(uintptr_t)a});
  watch_task(NULL);
  return cli_finish(m, a, s);
}
