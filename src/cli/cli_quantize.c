/* cli_quantize.c: quantizes a model and reports the error.
 *
 * In: a model, calibration data, options. Out: a file; on standard output a table with a line per
 * layer and the error of the outputs, or JSON.
 */
#include "cli/cli.h"

#include <math.h>
#include <string.h>

static void print_loss(const char *what, const IngotQuantError *l) {
  if (!l->examples) return;
  printf("%s: %u example%s, SQNR ", what, l->examples, l->examples == 1 ? "" : "s");
  print_number("%*.1f", 0, l->sqnr);
  printf(" dB, MSE %.2g, largest error %.2g", l->mse, l->max_error);
  if (!isnan(l->accuracy)) printf(", accuracy %.2f %% (was %.2f %%)", l->accuracy, l->was);
  putchar('\n');
  for (uint32_t i = 0; i < l->noutput; i++) {
    const IngotOutputError *o = &l->output[i];
    if (!o->elements && (isnan(o->sqnr) || l->noutput == 1)) continue;
    printf("  ");
    print_name(o->name, 0);
    if (o->elements) {
      printf(": %llu of %llu elements changed\n", (unsigned long long)o->changed,
             (unsigned long long)o->elements);
      continue;
    }
    printf(": SQNR ");
    print_number("%*.1f", 0, o->sqnr);
    printf(" dB, MSE %.2g, largest error %.2g\n", o->mse, o->max_error);
  }
}

static void print_table(const IngotQuantized *q, int tensors) {
  int wide = 5, alone = 0;
  for (uint32_t i = 0; i < q->nlayer; i++) {
    int w = name_width(q->layer[i].name);
    wide = w > wide ? w : wide;
    alone |= !isnan(q->layer[i].alone);
  }
  wide = wide > 48 ? 48 : wide;
  if (q->nlayer)
    printf("%-*s %-8s %9s %9s %9s %10s %10s%s\n", wide, tensors ? "tensor" : "layer",
           tensors ? "type" : "operator", "SQNR dB", "MSE", "max error", "bytes", "now",
           alone ? "  alone dB" : "");
  for (uint32_t i = 0; i < q->nlayer; i++) {
    const IngotLayer *l = &q->layer[i];
    print_name(l->name, wide);
    printf(" %-8s ", l->op);
    print_number("%*.1f", 9, l->sqnr);
    print_number(" %*.2g", 9, l->mse);
    print_number(" %*.2g", 9, l->max_error);
    printf(" %10llu %10llu", (unsigned long long)l->before, (unsigned long long)l->after);
    if (alone) print_number(" %*.1f", 9, l->alone);
    printf("%s%s\n", l->kept ? "  stays: " : "", l->kept ? l->why : "");
  }
  printf("%s%s%s: %llu bytes, %llu before (%.3f)\n", q->method, q->calibrate ? ", " : "",
         q->calibrate ? q->calibrate : "", (unsigned long long)q->after,
         (unsigned long long)q->before, q->before ? (double)q->after / (double)q->before : 0.0);
  if (q->nlayer && !tensors && !q->data.examples)
    printf("without --data nothing was run: errors above are those of the weights\n");
  print_loss("calibration data", &q->data);
  print_loss("held-out data", &q->holdout);
  if (q->data.examples && !q->holdout.examples)
    printf("held-out data: none (only one example); the error on other data may be larger "
           "(--holdout)\n");
}

static void json_loss(const char *before, const IngotQuantError *l) {
  printf("%s{\"examples\":%u", before, l->examples);
  json_real(",\"sqnr_db\":", l->examples ? l->sqnr : (double)NAN);
  json_real(",\"mse\":", l->examples ? l->mse : (double)NAN);
  json_real(",\"max_error\":", l->examples ? l->max_error : (double)NAN);
  json_real(",\"accuracy\":", l->accuracy);
  json_real(",\"float_accuracy\":", l->was);
  printf(",\"outputs\":[");
  for (uint32_t i = 0; i < l->noutput; i++) {
    const IngotOutputError *o = &l->output[i];
    json_text(i ? ",{\"name\":" : "{\"name\":", o->name);
    json_real(",\"sqnr_db\":", o->sqnr);
    json_real(",\"mse\":", o->mse);
    json_real(",\"max_error\":", o->max_error);
    printf(",\"elements\":%llu,\"changed\":%llu}", (unsigned long long)o->elements,
           (unsigned long long)o->changed);
  }
  printf("]}");
}

static void print_json(const IngotQuantized *q) {
  json_text("{\"method\":", q->method);
  if (q->calibrate) json_text(",\"calibrate\":", q->calibrate);
  printf(",\"bytes_before\":%llu,\"bytes\":%llu", (unsigned long long)q->before,
         (unsigned long long)q->after);
  json_loss(",\n\"data\":", &q->data);
  json_loss(",\n\"holdout\":", &q->holdout);
  printf(",\n\"layers\":[");
  for (uint32_t i = 0; i < q->nlayer; i++) {
    const IngotLayer *l = &q->layer[i];
    json_text(i ? ",\n {\"name\":" : "\n {\"name\":", l->name);
    json_text(",\"op\":", l->op);
    printf(",\"kept\":%s,\"bytes_before\":%llu,\"bytes\":%llu", l->kept ? "true" : "false",
           (unsigned long long)l->before, (unsigned long long)l->after);
    json_real(",\"sqnr_db\":", l->sqnr);
    json_real(",\"mse\":", l->mse);
    json_real(",\"max_error\":", l->max_error);
    json_real(",\"alone_db\":", l->alone);
    printf("}");
  }
  printf("]}\n");
}

/* Opens the model with the user's options and, for missing sizes, those of another object. */
static Ingot *open_with_dims(const Args *a, const Ingot *found, IngotStatus *s) {
  const char *option, *word;
  Ingot *m = new_model();
  *s = m ? cli_prepare(m, a) : INGOT_SYSTEM;
  for (uint32_t i = 0; !*s && found && (option = ingot_hint(found, i)); i += 2)
    if (!strcmp(option, "-d") && (word = ingot_hint(found, i + 1))) *s = ingot_set_dim(m, word);
  return m;
}

/* Writes the HTML report of the original model with the errors of its layers. */
static IngotStatus show_layers(const Args *a, const IngotQuantized *q) {
  Args plain = *a;
  plain.data = NULL;
  IngotStatus s;
  Ingot *m = open_with_dims(&plain, NULL, &s), *with = NULL;
  if (!s) s = write_html_report(m, a, &(IngotReport){.quantized = q});
  if (s && m && ingot_hint(m, 0)) {
    with = open_with_dims(&plain, m, &s);
    if (!s) s = write_html_report(with, a, &(IngotReport){.quantized = q});
  }
  if (s && (with || m)) print_messages(with ? with : m, a->quiet);
  ingot_free(with);
  ingot_free(m);
  return s;
}

int verb_quantize(const Args *a) {
  IngotQuantize o = a->quantize;
  o.output = a->output;
  o.data = a->data;
  o.label = a->label;
  o.exclude = a->exclude;
  o.nexclude = (uint32_t)a->nexclude;
  IngotQuantized q;
  watch_line_buffered();
  if (!a->output) return cli_refuse(a, "--output is missing: expected the file to write");
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  Args all = *a;
  all.data = NULL; /* not inputs of one run */
  all.writes[all.nwrites++] = a->output;
  if (a->html) all.writes[all.nwrites++] = a->html;
  IngotStatus s = cli_prepare(m, &all);
  watch_task("quantize");
  if (!s) s = ingot_quantize(m, &o, &q);
  watch_task(NULL);
  if (!s && a->html) s = show_layers(a, &q);
  if (!s && a->json)
    print_json(&q);
  else if (!s)
    print_table(&q, a->quantize.type != NULL);
  return cli_finish(m, a, s);
}
