/* quantize_onnx.c: quantizes ONNX models with measured ranges.
 *
 * In: an open model, examples, options. Out: a quantized model file, and its error per layer and
 * per output, on calibration and on held-out examples. Method: run the model on the examples with
 * the inputs of its layers as outputs. Every allowed calibration method gives a model; the one with
 * the smallest output error is kept. With a budget, each layer is quantized alone to measure its
 * cost. Then the most costly layers are excluded, as few as the budget allows (bisection).
 */
#include "driver/quantize/quantize_internal.h"
#include "front/onnx/onnx_quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SOME_EXAMPLES = 32, SOME_LABELLED = 512 }; /* examples used for decisions */

typedef struct Quantize {
  Ingot *m;
  Ctx *c;
  const IngotQuantize *o;
  IngotQuantized *out;
  QuantJob *j;
  Examples data, holdout, some;
  Tensor ***want_data, ***want_holdout,
      ***want_some; /* outputs of the original model: by example, output */
  u32 noutput;
  const char **output;
  QuantRange range;
  double budget;
  double *alone;
  bool *by_budget;
  ModelRunner a, b; /* closed even after a failure */
} Quantize;

/* ---- options ---- */

static u32 choose_word(Ctx *c, const char *option, const char *value, const char *const *name,
                       u32 n, u32 otherwise) {
  return value ? row_named(c, option, value, name, n, sizeof *name) : otherwise;
}

static QuantOptions read_options(Ctx *c, const IngotQuantize *o) {
  static const char *const types[] = {"u8", "s8"};
  QuantOptions w = {.symmetric = o->symmetric != 0, .equalize = o->equalize != 0, .block = 32};
  w.method =
      (QuantMethod)choose_word(c, "method", o->method, quant_method_name, QM_COUNT, QM_static);
  bool weights = w.method == QM_weights8 || w.method == QM_weights4;
  w.per = (QuantGranularity)choose_word(c, "granularity of weight scales", o->granularity,
                                        quant_granularity_name, QP_COUNT,
                                        weights ? QP_group : QP_channel);
  w.is_signed = choose_word(c, "type of activations", o->activations, types, 2, 0) == 1;
  if (o->block) w.block = o->block;
  if (w.block < 16 || w.block & (w.block - 1))
    fail(c, ERR_usage, LOC_NONE, "--block %u: expected a power of 2, at least 16", w.block);
  if (w.per == QP_group && !weights)
    fail(c, ERR_usage, LOC_NONE, "--granularity group needs --method weights8 or weights4");
  if (w.per != QP_group && w.method == QM_weights4)
    fail(c, ERR_usage, LOC_NONE, "--method weights4 needs --granularity group");
  if (!o->data && w.method == QM_static)
    fail(c, ERR_usage, LOC_NONE,
         "--method static calibrates activations: expected --data, an .npz with arrays for the "
         "inputs");
  if (!o->data && (o->holdout || o->label || o->budget || o->bias_correction))
    fail(c, ERR_usage, LOC_NONE, "%s needs calibration data: expected --data",
         o->holdout  ? "a holdout"
         : o->label  ? "a label"
         : o->budget ? "a budget"
                     : "bias correction");
  return w;
}

static double read_budget(Ctx *c, const char *text) {
  char *end;
  double x = strtod(text, &end);
  if (end == text || *end || !isfinite(x) || x < 0)
    fail(c, ERR_usage, LOC_NONE,
         "--budget '%s': expected a number: dB, or points of accuracy with --label", text);
  return x;
}

static void keep_named(Quantize *q) {
  Ctx *c = q->c;
  for (u32 i = 0; i < q->o->nexclude; i++) {
    const char *form = q->o->exclude[i];
    Suggestion near = suggest_new(form);
    bool found = false;
    for (u32 k = 0; k < q->j->layer.n; k++) {
      QuantLayer *l = &q->j->layer.at[k];
      bool fits = glob_match(form, str_text(c, l->name)) || glob_match(form, str_text(c, l->y));
      suggest_try(&near, str_text(c, l->name));
      l->skip |= fits;
      found |= fits;
    }
    if (!found)
      fail(c, ERR_usage, LOC_NONE,
           "--exclude '%s': expected the name of a Conv, Gemm, MatMul or Gather with constant "
           "weights%s",
           form, suggest_text(c, &near));
  }
}

/* ---- running ---- */

static Tensor *copy_value(Ctx *c, const Tensor *t) {
  Tensor *y = tensor_new(&c->keep, t->dt, t->dim, t->rank);
  if (t->n) memcpy((void *)(uintptr_t)y->data, t->data, tensor_bytes(t));
  return y;
}

static void begin_runner(Quantize *q, ModelRunner *t, const struct OnnxModel *m, QuantTap which) {
  runner_close(t);
  *t = (ModelRunner){
      .c = q->c, .model = sb_new(&q->c->work), .file = str_text(q->c, q->m->opened.source.file)};
  quant_probe(q->j, m, which, &t->model);
}

static Tensor ***run_model(Quantize *q, const Examples *e) {
  Tensor ***out = NEWS(&q->c->keep, Tensor **, e->n + 1);
  for (u32 i = 0; i < e->n; i++) {
    runner_run(&q->a, e, i);
    out[i] = NEWS(&q->c->keep, Tensor *, q->noutput + 1);
    for (u32 k = 0; k < q->noutput; k++) {
      const Tensor *t = runner_value(&q->a, q->output[k]);
      out[i][k] = t ? copy_value(q->c, t) : NULL;
    }
  }
  return out;
}

static const Tensor *first_float(const Quantize *q, Tensor **out) {
  for (u32 k = 0; k < q->noutput; k++)
    if (out[k] && dtype_is_float(out[k]->dt)) return out[k];
  return NULL;
}

/* Labels: one per row, along leading axes of the output, each a valid index. */
static void check_labels(const Quantize *q, const Examples *e, Tensor ***out, const char *what) {
  Ctx *c = q->c;
  for (u32 i = 0; e->label && i < e->n; i++) {
    const Tensor *t = first_float(q, out[i]);
    const ClassLabels *l = &e->label[i];
    u64 rows = 1, axis = 0;
    if (!t) fail(c, ERR_input, LOC_NONE, "--label: expected an output of floats, found none");
    while (axis < t->rank && rows != l->n) rows *= (u64)t->dim[axis++];
    if (rows != l->n || !t->n)
      fail(c, ERR_input, LOC_NONE, "%s %u has %u labels, its output is %s: expected one per row",
           what, i, l->n, shape_text(c, dtype_info[t->dt].name, t->dim, t->rank));
    for (u32 r = 0; r < l->n; r++)
      if (l->at[r] < 0 || (u64)l->at[r] >= t->n / rows)
        fail(c, ERR_input, LOC_NONE, "%s %u has label %lld: expected 0 to %llu", what, i,
             (long long)l->at[r], (unsigned long long)(t->n / rows - 1));
  }
}

/* Uses the runner that check_model has opened. */
static void want_outputs(Quantize *q) {
  const Model *model = q->m->opened.model;
  q->noutput = model->noutput;
  q->output = NEWS(&q->c->keep, const char *, q->noutput + 1);
  for (u32 k = 0; k < q->noutput; k++) q->output[k] = str_text(q->c, model->output[k].name);
  q->want_data = run_model(q, &q->data);
  q->want_holdout = run_model(q, &q->holdout);
  check_labels(q, &q->data, q->want_data, "example");
  check_labels(q, &q->holdout, q->want_holdout, "held-out example");
  u32 limit = q->o->label ? SOME_LABELLED : SOME_EXAMPLES;
  u32 step = (q->data.n + limit - 1) / limit;
  if (!step) step = 1;
  q->some = api_examples_slice(&q->data, &q->c->keep, 0, q->data.n, step);
  q->want_some = NEWS(&q->c->keep, Tensor **, q->some.n + 1);
  for (u32 i = 0; i < q->some.n; i++) q->want_some[i] = q->want_data[i * step];
  runner_close(&q->a);
}

/* ---- errors ---- */

/* Counts rows of the first float output whose argmax equals the label. */
static u32 count_right(const Quantize *q, Tensor **out, const ClassLabels *label) {
  const Tensor *t = first_float(q, out);
  u32 right = 0;
  if (!t || t->n % label->n) return 0;
  u64 n = t->n / label->n;
  for (u32 r = 0; r < label->n; r++) {
    u64 best = 0;
    for (u64 k = 1; k < n; k++)
      if (tensor_get(t, r * n + k).f > tensor_get(t, r * n + best).f) best = k;
    right += (i64)best == label->at[r];
  }
  return right;
}

/* Averages relative errors, so that all float outputs count equally. */
static IngotQuantError finish_loss(const Quantize *q, const ErrorSums *sums, const Examples *e,
                                   u32 right, u32 was) {
  IngotQuantError l = {.examples = e->n, .accuracy = NAN, .was = NAN};
  double ratio = 0;
  u32 kinds = 0;
  ErrorSums all = {0};
  IngotOutputError *each = NEWS(&q->c->keep, IngotOutputError, q->noutput + 1);
  l.output = each;
  l.noutput = q->noutput;
  for (u32 k = 0; k < q->noutput; k++) {
    each[k] = (IngotOutputError){q->output[k],
                                 error_sums_sqnr(&sums[k]),
                                 error_sums_mse(&sums[k]),
                                 sums[k].n ? sums[k].max_abs : (double)NAN,
                                 sums[k].whole,
                                 sums[k].changed};
    if (!sums[k].n) continue;
    if (sums[k].noise != 0) ratio += sums[k].noise / sums[k].signal;
    all.noise += sums[k].noise;
    all.n += sums[k].n;
    all.max_abs = fmax(all.max_abs, sums[k].max_abs);
    kinds++;
  }
  l.sqnr = kinds ? quant_sqnr(kinds, ratio) : (double)NAN;
  l.mse = error_sums_mse(&all);
  l.max_error = all.max_abs;
  if (e->label && e->n) {
    double all = 0;
    for (u32 i = 0; i < e->n; i++) all += e->label[i].n;
    double of = 100 / all;
    l.accuracy = right * of;
    l.was = was * of;
  }
  return l;
}

/* Measures the model in runner b against known outputs. layers: sums of the errors of layer results
 * vs runner a; NULL: not wanted. */
static IngotQuantError measure(Quantize *q, const Examples *e, Tensor ***want, ErrorSums *layers) {
  ErrorSums *sums = NEWS(&q->c->keep, ErrorSums, q->noutput + 1);
  Tensor **have = NEWS(&q->c->keep, Tensor *, q->noutput + 1);
  u32 right = 0, was = 0;
  for (u32 i = 0; i < e->n; i++) {
    runner_run(&q->b, e, i);
    for (u32 k = 0; k < q->noutput; k++) {
      have[k] = (Tensor *)(uintptr_t)runner_value(&q->b, q->output[k]);
      error_sums_add(&sums[k], have[k], want[i][k]);
    }
    if (e->label) right += count_right(q, have, &e->label[i]);
    if (e->label) was += count_right(q, want[i], &e->label[i]);
    if (!layers) continue;
    runner_run(&q->a, e, i);
    for (u32 k = 0; k < q->j->layer.n; k++) {
      const char *y = str_text(q->c, q->j->layer.at[k].y);
      error_sums_add(&layers[k], runner_value(&q->b, y), runner_value(&q->a, y));
    }
  }
  return finish_loss(q, sums, e, right, was);
}

/* Measures the model without the skipped layers, on some examples. */
static IngotQuantError measure_some(Quantize *q) {
  Mark mark = arena_mark(&q->c->work);
  begin_runner(q, &q->b, quant_make(q->j), QB_none);
  IngotQuantError l = measure(q, &q->some, q->want_some, NULL);
  runner_close(&q->b);
  arena_rewind(&q->c->work, mark);
  return l;
}

/* ---- calibration ---- */

static void observe(Quantize *q, QuantStat what) {
  for (u32 i = 0; i < q->data.n; i++) {
    runner_run(&q->a, &q->data, i);
    for (u32 k = 0; k < q->j->point.n; k++) {
      const Tensor *t = runner_value(&q->a, str_text(q->c, q->j->point.at[k].name));
      if (t) quant_observe(q->j, k, t, what);
    }
  }
}

static void need_ranges(const Quantize *q) {
  for (u32 i = 0; i < q->j->layer.n; i++) {
    const QuantLayer *l = &q->j->layer.at[i];
    if (l->skip || l->table || !q->j->point.at[l->point].odd) continue;
    fail(q->c, ERR_input, LOC_NONE,
         "layer '%s' reads '%s', which is infinite or NaN on the examples: exclude the layer "
         "(--exclude)",
         show(q->c, l->name), show(q->c, l->x));
  }
}

/* Chooses ranges: by the given method, or by the smallest output error. */
static void calibrate(Quantize *q) {
  static const QuantRange tried[] = {QR_minmax, QR_mse, QR_percentile};
  u32 asked =
      choose_word(q->c, "calibration", q->o->calibrate, quant_range_name, QR_COUNT, QR_COUNT);
  observe(q, QL_range);
  need_ranges(q);
  if (asked != QR_minmax && asked != QR_average) observe(q, QL_bins);
  q->range = (QuantRange)asked;
  if (asked == QR_COUNT) {
    double best = -INFINITY;
    q->range = QR_minmax;
    for (u32 i = 0; i < sizeof tried / sizeof *tried; i++) {
      quant_choose_ranges(q->j, tried[i]);
      double db = measure_some(q).sqnr;
      if (!(db > best)) continue;
      best = db;
      q->range = tried[i];
    }
  }
  quant_choose_ranges(q->j, q->range);
  q->out->calibrate = quant_range_name[q->range];
}

static void calibrate_all(Quantize *q) {
  bool ranges = q->j->wish.method == QM_static;
  if (!ranges && !q->o->bias_correction) return;
  begin_runner(q, &q->a, q->j->m, QB_points);
  if (ranges) calibrate(q);
  if (q->o->bias_correction) {
    observe(q, QL_means);
    quant_correct_bias(q->j);
  }
  runner_close(&q->a);
}

/* ---- the budget ---- */

static bool within_budget(const Quantize *q, const IngotQuantError *l) {
  if (q->o->label) return l->was - l->accuracy <= q->budget;
  return !(l->sqnr < q->budget);
}

typedef struct Cost {
  u32 layer;
  double db;    /* SQNR of the outputs in dB with only this layer quantized */
  double bytes; /* original size */
} Cost;

static int by_sqnr(const void *a, const void *b) {
  double x = ((const Cost *)a)->db, y = ((const Cost *)b)->db;
  return x < y ? -1 : x > y;
}

/* Orders by noise saved per byte. */
static int by_noise_per_byte(const void *a, const void *b) {
  const Cost *c = a, *d = b;
  double x = pow(10, -c->db / 10) / (c->bytes + 1), y = pow(10, -d->db / 10) / (d->bytes + 1);
  return x > y ? -1 : x < y;
}

/* Smallest number of layers to exclude, in this order, that meets the budget (bisection). */
static u32 fewest_excluded(Quantize *q, const Cost *cost, u32 n) {
  u32 lo = 0;
  for (u32 hi = n; lo < hi;) {
    u32 mid = lo + (hi - lo) / 2;
    for (u32 i = 0; i < n; i++) q->j->layer.at[cost[i].layer].skip = i < mid;
    IngotQuantError l = measure_some(q);
    if (within_budget(q, &l))
      hi = mid;
    else
      lo = mid + 1;
  }
  return lo;
}

/* Tries two orders, by cost and by noise per byte, and keeps the one with fewer bytes. */
static void exclude_by_budget(Quantize *q) {
  static int (*const order[])(const void *, const void *) = {by_sqnr, by_noise_per_byte};
  QuantJob *j = q->j;
  u32 n = 0;
  double min_bytes = INFINITY;
  Cost *cost = NEWS(&q->c->keep, Cost, j->layer.n + 1);
  IngotQuantError all = measure_some(q);
  if (within_budget(q, &all)) return;
  for (u32 i = 0; i < j->layer.n; i++)
    if (!j->layer.at[i].skip)
      cost[n++] = (Cost){.layer = i, .bytes = (double)j->layer.at[i].before};
  for (u32 i = 0; i < n; i++) j->layer.at[cost[i].layer].skip = true;
  for (u32 i = 0; i < n; i++) {
    j->layer.at[cost[i].layer].skip = false;
    cost[i].db = q->alone[cost[i].layer] = measure_some(q).sqnr;
    j->layer.at[cost[i].layer].skip = true;
  }
  for (u32 k = 0; k < sizeof order / sizeof *order; k++) {
    qsort(cost, n, sizeof *cost, order[k]);
    u32 stay = fewest_excluded(q, cost, n);
    double bytes = 0;
    for (u32 i = 0; i < stay; i++) bytes += cost[i].bytes;
    if (bytes >= min_bytes) continue;
    min_bytes = bytes;
    for (u32 i = 0; i < n; i++) q->by_budget[cost[i].layer] = i < stay;
  }
  bool any = false;
  for (u32 i = 0; i < n; i++) {
    j->layer.at[cost[i].layer].skip = q->by_budget[cost[i].layer];
    any = any || !q->by_budget[cost[i].layer];
  }
  if (!any)
    warn(q->c, LOC_NONE, "--budget %g %s: no layer can be quantized", q->budget,
         q->o->label ? "points" : "dB");
}

/* Layers were chosen with a part of the examples. */
static void check_budget(Quantize *q, const char *what, const IngotQuantError *l) {
  if (!l->examples || within_budget(q, l)) return;
  bool points = q->o->label != NULL;
  warn(
      q->c, LOC_NONE,
      "the budget of %g %s does not hold on the %u examples of the %s: %.2f %s; layers were chosen "
      "by %u of the calibration data",
      q->budget, points ? "points" : "dB", l->examples, what,
      points ? l->was - l->accuracy : l->sqnr, points ? "points are lost" : "dB", q->some.n);
}

/* ---- results ---- */

static void report_layers(Quantize *q, const ErrorSums *sums) {
  u32 n = q->j->layer.n;
  IngotLayer *to = NEWS(&q->c->keep, IngotLayer, n + 1);
  for (u32 i = 0; i < n; i++) {
    const QuantLayer *l = &q->j->layer.at[i];
    to[i] = (IngotLayer){.name = str_text(q->c, l->name),
                         .op = str_text(q->c, l->op),
                         .kept = l->skip || l->stays,
                         .why = q->by_budget[i] ? "the budget"
                                : l->skip       ? "asked for"
                                : l->stays      ? l->stays
                                                : "",
                         .before = l->before,
                         .after = l->after,
                         .alone = q->alone[i],
                         .sqnr = NAN,
                         .mse = NAN,
                         .max_error = NAN};
    if (sums) {
      to[i].sqnr = error_sums_sqnr(&sums[i]);
      to[i].mse = error_sums_mse(&sums[i]);
      to[i].max_error = sums[i].max_abs;
    } else if (l->coded && !to[i].kept) { /* error of the weights alone: nothing was run */
      to[i].sqnr = l->coded->sqnr;
      to[i].mse = l->coded->mse;
      to[i].max_error = l->coded->max_error;
    }
  }
  q->out->layer = to;
  q->out->nlayer = n;
}

/* ---- quantize ---- */

static void read_data(Quantize *q) {
  const IngotQuantize *o = q->o;
  Examples all = api_examples(q->m, o->data, o->label);
  u32 held_out = o->holdout || all.n < 2 ? 0 : all.n / 5 ? all.n / 5 : 1;
  q->data = api_examples_slice(&all, &q->c->keep, 0, all.n - held_out, 1);
  q->holdout = o->holdout ? api_examples(q->m, o->holdout, o->label)
                          : api_examples_slice(&all, &q->c->keep, all.n - held_out, held_out, 1);
}

static void import_it(Ctx *c, void *arg) {
  (void)c;
  api_import(arg, false);
}

/* Refuses early what a run would refuse, with the dimensions of the examples if there are any.
 * Without examples, missing dimensions may have any size that works: the weights are the same. */
static void check_model(Quantize *q) {
  if (!q->o->data) {
    Ctx *c = q->m->c;
    DiagMark before = diag_mark(c);
    Err e = ctx_protect(c, import_it, q->m);
    if (e && !q->m->options.hint.n) longjmp(*c->door, (int)e);
    if (e) diag_rewind(c, before);
    q->m->options.hint.n = 0;
    return;
  }
  read_data(q);
  begin_runner(q, &q->a, q->m->opened.model->own, QB_none);
  runner_run(&q->a, &q->data, 0);
}

/* Refuses a model without layers, or warns of one that is already quantized. */
static void refuse_or_warn(const Quantize *q, bool can) {
  Str op;
  u32 done = quant_count_quantized(q->j, &op);
  Ctx *c = q->c;
  if (!can)
    fail(c, ERR_unsupported, LOC_NONE,
         "has nothing to quantize: no Conv, Gemm, MatMul or Gather with constant f32 weights%s%s%s",
         done ? "; it is already quantized, by nodes such as " : "", done ? show(c, op) : "",
         done ? ": start with the float model" : "");
  if (done)
    warn(c, LOC_NONE,
         "is already quantized, by %u node%s such as %s: these are kept, errors add up, and are "
         "reported relative to this model; start with the float model",
         done, done == 1 ? "" : "s", show(c, op));
}

static void work(Ctx *c, void *arg) {
  Quantize *q = arg;
  QuantOptions w = read_options(c, q->o);
  q->out->method = quant_method_name[w.method];
  if (q->o->budget) q->budget = read_budget(c, q->o->budget);
  q->j = quant_open(c, q->m->opened.model, q->m->opened.source.path, &w);
  check_model(q);
  quant_find_layers(q->j);
  u32 n = q->j->layer.n;
  refuse_or_warn(q, n || w.method == QM_f16 || w.method == QM_bf16);
  q->alone = NEWS(&c->keep, double, n + 1);
  q->by_budget = NEWS(&c->keep, bool, n + 1);
  for (u32 i = 0; i < n; i++) q->alone[i] = NAN;
  keep_named(q);
  if (q->o->data) {
    want_outputs(q);
    calibrate_all(q);
    if (q->o->budget) exclude_by_budget(q);
  }
  struct OnnxModel *made = quant_make(q->j);
  ErrorSums *sums = q->o->data ? NEWS(&c->keep, ErrorSums, n + 1) : NULL;
  for (u32 i = 0; !sums && i < n; i++)
    if (!q->j->layer.at[i].skip) quant_encode_weights(q->j, &q->j->layer.at[i]);
  if (sums) {
    begin_runner(q, &q->a, q->j->m, QB_results);
    begin_runner(q, &q->b, made, QB_results);
    q->out->data = measure(q, &q->data, q->want_data, sums);
    begin_runner(q, &q->b, made, QB_none);
    q->out->holdout = measure(q, &q->holdout, q->want_holdout, NULL);
    if (q->o->budget) check_budget(q, "calibration data", &q->out->data);
    if (q->o->budget) check_budget(q, "held-out data", &q->out->holdout);
  }
  report_layers(q, sums);
  q->out->before = quant_source_bytes(&q->m->opened.source, q->m->opened.model);
  q->out->after = quant_write(q->j, made, q->o->output);
}

void api_quantize_onnx(Ingot *m, const IngotQuantize *o, IngotQuantized *out) {
  Quantize q = {.m = m, .c = m->c, .o = o, .out = out};
  Err e = ctx_protect(m->c, work, &q);
  runner_close(&q.a);
  runner_close(&q.b);
  if (e) longjmp(*m->c->door, (int)e);
}
