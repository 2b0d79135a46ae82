/* cli_train.c: trains a model and writes it with its new weights.
 *
 * In: a model, arrays, options. Out: a file; on a terminal a progress line; on standard output a
 * table with a line per epoch, or JSON.
 */
#include "cli/cli.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* The table on standard output, and the notice that precedes it. */
typedef struct Shown {
  int rows, told;
  const IngotTrained *trained;
  char checkpoint[4096];
} Shown;

static void tell_resumed(Shown *w) {
  char text[4160];
  if (!w->trained->resumed || w->told++) return;
  snprintf(text, sizeof text, "resuming from %s: step %llu", w->checkpoint,
           (unsigned long long)w->trained->resumed + 1);
  watch_line("", text);
}

static void show_progress(void *user, const IngotProgress *p) {
  char text[200], metric[40] = "";
  tell_resumed(user);
  if (!isnan(p->accuracy)) snprintf(metric, sizeof metric, ", accuracy %.2f %%", p->accuracy);
  snprintf(
      text, sizeof text, "epoch %llu/%llu, %3.0f %%, loss %.4g%s, %.0f examples/s, %.0f s left",
      (unsigned long long)p->epoch, (unsigned long long)p->epochs,
      100 * (double)p->example / (double)p->examples, p->loss, metric, p->rate, p->seconds_left);
  watch_progress(text);
}

static void print_score(const IngotEpoch *e, const char *what, const IngotScore *s) {
  if (!s->examples) return;
  printf("%5llu  %-9s %9.4g", (unsigned long long)e->epoch, what, e->rate);
  print_number("%*.4g", 10, s->loss);
  print_number("%*.2f", 10, s->accuracy);
  print_number("%*.2f", 10, s->precision);
  print_number("%*.2f", 10, s->recall);
  print_number("%*.2f", 10, s->f1);
  putchar('\n');
}

static void print_epoch(void *user, const IngotEpoch *e) {
  Shown *w = user;
  tell_resumed(w);
  watch_progress(NULL); /* both may be the same terminal */
  if (!w->rows++)
    printf("epoch  %-9s %9s%10s%10s%10s%10s%10s\n", "data", "rate", "loss", "accuracy", "precision",
           "recall", "F1");
  print_score(e, "train", &e->train);
  print_score(e, "validate", &e->validate);
}

static void json_score(const char *before, const IngotScore *s) {
  printf("%s{\"examples\":%llu", before, (unsigned long long)s->examples);
  json_real(",\"loss\":", s->loss);
  json_real(",\"accuracy\":", s->accuracy);
  json_real(",\"precision\":", s->precision);
  json_real(",\"recall\":", s->recall);
  json_real(",\"f1\":", s->f1);
  putchar('}');
}

static void print_json(const IngotTrained *t) {
  json_text("{\"engine\":", t->engine);
  printf(",\"weights\":%llu,\"steps\":%llu,\"resumed\":%llu", (unsigned long long)t->weights,
         (unsigned long long)t->steps, (unsigned long long)t->resumed);
  json_real(",\"seconds\":", t->seconds);
  printf(",\"best\":%llu", (unsigned long long)t->best);
  printf(",\"epochs\":[");
  for (uint32_t i = 0; i < t->nepoch; i++) {
    const IngotEpoch *e = &t->epoch[i];
    printf("%s\n {\"epoch\":%llu", i ? "," : "", (unsigned long long)e->epoch);
    json_real(",\"rate\":", e->rate);
    json_score(",\"train\":", &e->train);
    if (e->validate.examples) json_score(",\"validate\":", &e->validate);
    putchar('}');
  }
  printf("]}\n");
}

static int emit(const Args *a, const IngotTrain *o) {
  OutputFiles t;
  char name[256];
  uint64_t ram[2] = {0, 0};
  Args all = *a;
  if (!is_c_name(a->emit_c)) return cli_refuse(a, "--emit: expected a name that ends in .c");
  if (a->data || a->training.validate || a->engine || a->output || a->training.in_place)
    return cli_refuse(
        a, "--emit writes C and does not train: leave out --data, --engine and --output");
  all.output = a->emit_c;
  all.train = NULL;
  all.nfreeze = all.models[0].freeze = 0;
  c_prefix(&all, name, sizeof name);
  c_files(&t, a->emit_c);
  all.writes[all.nwrites++] = t.source;
  all.writes[all.nwrites++] = t.header;
  const char *slash = strrchr(t.weights, '/');
  IngotCodegen c = {.name = name, .weights_file = slash ? slash + 1 : t.weights};
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  IngotStatus s = cli_prepare(m, &all);
  watch_task("train");
  if (!s) s = ingot_train_c(m, o, &c, t.source, t.header, t.weights, ram);
  watch_task(NULL);
  if (!s) printf("RAM %llu bytes", (unsigned long long)ram[0]);
  if (!s && ram[1]) printf(", %llu without --recompute", (unsigned long long)ram[1]);
  if (!s) putchar('\n');
  return cli_finish(m, &all, s);
}

int verb_train(const Args *a) {
  IngotTrained t = {0};
  Shown shown = {.trained = &t};
  IngotTrain o = a->training;
  o.output = o.in_place ? a->model : a->output;
  o.data = a->data;
  o.label = a->label;
  o.more = a->train;
  o.seed = a->seed;
  o.freeze = a->freeze;
  o.nfreeze = (uint32_t)a->nfreeze;
  o.engine = a->engine;
  o.on_progress = show_progress;
  o.on_epoch = a->json ? NULL : print_epoch;
  o.user = &shown;
  watch_line_buffered();
  if (a->emit_c) return emit(a, &o);
  if (a->training.in_place && (a->output || !strcmp(a->model, "-")))
    return cli_refuse(a, "--in-place writes to MODEL, which must be a file: leave out --output");
  if (!o.output) return cli_refuse(a, "--output is missing: expected a file, or --in-place");
  if (!a->data)
    return cli_refuse(a, "--data is missing: expected an .npz with examples and labels");
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  Args all = *a;
  all.data = all.train = NULL; /* not inputs of one run */
  all.nfreeze = all.models[0].freeze = 0;
  if (a->output) all.writes[all.nwrites++] = a->output;
  IngotStatus s = cli_prepare(m, &all);
  watch_task("train");
  if (!s) {
    snprintf(shown.checkpoint, sizeof shown.checkpoint, "%s%s",
             a->training.checkpoint ? a->training.checkpoint : o.output,
             a->training.checkpoint ? "" : ".checkpoint");
    watch_checkpoint(shown.checkpoint);
    s = ingot_train(m, &o, &t);
    watch_checkpoint(NULL);
  }
  watch_task(NULL);
  all.quiet = a->quiet || (!s && t.rank); /* rank 0 prints the same messages */
  if (!s && !t.rank && a->json) print_json(&t);
  if (!s && !t.rank && a->training.patience && !a->json)
    printf("best epoch %llu of %u: its weights were written\n", (unsigned long long)t.best,
           t.nepoch);
  return cli_finish(m, &all, s);
}
