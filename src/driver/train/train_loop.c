/* train_loop.c: trains a model on examples.
 *
 * In: an open ONNX model, arrays, options. Out: the model with new weights as a file, and the
 * scores of every epoch. Method: the step of pass/graph/train.h, compiled for the batch size and
 * run by the selected engine; the learning rate is an input. Each epoch sees all examples once, in
 * an order that depends on seed and epoch. An incomplete last batch gets its own step, which runs
 * as bytecode: it is not worth compiling, and gives the same bits. Models with a fixed batch size
 * skip these examples, different ones in every epoch.
 */
#include "driver/train/train_loop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_EVERY 5.0 /* seconds between checkpoints */
#define LEAST_EVERY 1.0 /* the same at the end of an epoch, if lower */

/* ---- learning rate ---- */

typedef double ScheduleFn(const Training *f, double x, double y);

/* Multiplies the rate by y every x epochs. */
static double rate_step(const Training *f, double x, double y) {
  return f->rate * pow(y, floor((double)f->at.epoch / x));
}

static double rate_exp(const Training *f, double x, double y) {
  (void)y;
  return f->rate * pow(x, (double)f->at.epoch);
}

static double rate_cosine(const Training *f, double x, double y) {
  const double half = 3.14159265358979323846;
  (void)y;
  double part = (double)f->at.step / ((double)f->steps * (double)f->epochs);
  return x + (f->rate - x) * (1 + cos(half * part)) / 2;
}

static const struct {
  const char *name;
  ScheduleFn *rate;
  double x, y; /* defaults; x below 0: a third of the epochs */
} schedules[] = {
    {"step", rate_step, -1, 0.1}, {"exp", rate_exp, 0.95, 0}, {"cosine", rate_cosine, 0, 0}};
enum { NSCHEDULES = sizeof schedules / sizeof *schedules };

static double read_number(Training *f, const char *text, char **end) {
  double x = strtod(text, end);
  if (*end == text || !isfinite(x) || x < 0)
    fail(f->c, ERR_usage, LOC_NONE, "--schedule %s: expected a number that is at least 0 at '%s'",
         show(f->c, str_of(f->c, f->o->schedule)), show(f->c, str_of(f->c, text)));
  return x;
}

/* NAME, NAME:X or NAME:X,Y */
static void read_schedule(Training *f) {
  Ctx *c = f->c;
  const char *text = f->o->schedule;
  if (!text || !strcmp(text, "constant")) return;
  size_t n = strcspn(text, ":");
  const char *word = str_text(c, str_intern(c, text, n));
  Suggestion near = suggest_new(word);
  for (u32 i = 0; i < NSCHEDULES; i++) {
    suggest_try(&near, schedules[i].name);
    if (strcmp(word, schedules[i].name) != 0) continue;
    f->schedule = i + 1;
    f->x = schedules[i].x < 0 ? fmax(1, ceil((double)f->epochs / 3)) : schedules[i].x;
    f->y = schedules[i].y;
    char *end = (char *)(uintptr_t)(text + n);
    if (*end) f->x = read_number(f, text + n + 1, &end);
    if (*end == ',' && i == 0) f->y = read_number(f, end + 1, &end);
    if (*end || (i == 0 && f->x < 1))
      fail(c, ERR_usage, LOC_NONE,
           "--schedule %s: expected step[:EPOCHS[,K]], exp[:K] or "
           "cosine[:LOW]",
           show(c, str_of(c, text)));
    return;
  }
  fail(c, ERR_usage, LOC_NONE,
       "--schedule: unknown schedule '%s'; expected constant, step, exp or cosine%s",
       show(c, str_of(c, word)), suggest_text(c, &near));
}

static double learning_rate(const Training *f) {
  return f->schedule ? schedules[f->schedule - 1].rate(f, f->x, f->y) : f->rate;
}

/* ---- options ---- */

static const char *step_spec(Training *f) {
  const IngotTrain *o = f->o;
  StrBuf t = sb_new(&f->c->keep);
  sb_fmt(&t, "loss=%s,optimizer=%s,classes=1", o->loss ? o->loss : "cross_entropy",
         o->optimizer ? o->optimizer : "adam");
  if (o->clip > 0) sb_fmt(&t, ",clip=%.17g", o->clip);
  for (u32 i = 0; i < o->nfreeze; i++) sb_fmt(&t, ",freeze=%s", o->freeze[i]);
  if (o->more && *o->more) sb_fmt(&t, ",%s", o->more);
  return sb_cstr(&t);
}

static const char *choose_engine(Ctx *c, const char *name) {
  static const char *const can[] = {"c", "jit", "vm", "interp"};
  StrBuf t = sb_new(&c->scratch);
  if (!name) return compiler_exists(c, NULL) ? "c" : llvm_version() ? "jit" : "vm";
  for (u32 i = 0; i < sizeof can / sizeof *can; i++) {
    if (!strcmp(name, can[i])) return can[i];
    sb_fmt(&t, "%s%s", i ? ", " : "", can[i]);
  }
  fail(c, ERR_usage, LOC_NONE, "--engine: engine '%s' cannot train; expected %s",
       show(c, str_of(c, name)), sb_cstr(&t));
}

/* Fixed size of the first axis of an input; 0: open. */
static i64 fixed_rows(const DeclValue *in) {
  const DeclDim *d = in->type.has_shape && in->type.dims.n ? &in->type.dims.at[0] : NULL;
  return d && d->kind == OD_value ? d->value : 0;
}

static void choose_batch(Training *f) {
  Ctx *c = f->c;
  f->batch = f->o->batch ? f->o->batch : 32;
  if (f->batch > f->data.n) f->batch = f->data.n;
  for (u32 i = 0; i < f->data.ncol; i++) {
    i64 rows = f->data.col[i].same ? 0 : fixed_rows(f->m->opened.model->input[i]);
    if (!rows) continue;
    f->fixed = true;
    if ((u64)rows != f->batch)
      fail(c, ERR_unsupported, LOC_NONE,
           "input '%s' is %s: expected batches of %lld, found --batch %llu of %llu examples",
           show(c, f->data.col[i].name),
           decl_type_string(c, f->data.col[i].name, &f->m->opened.model->input[i]->type),
           (long long)rows, (unsigned long long)f->batch, (unsigned long long)f->data.n);
  }
  u64 left = f->data.n % f->batch;
  f->steps = f->data.n / f->batch + (left && !f->fixed);
  if (left && f->fixed)
    warn(c, LOC_NONE, "the model has batch size %llu: every epoch skips %llu of %llu examples",
         (unsigned long long)f->batch, (unsigned long long)left, (unsigned long long)f->data.n);
}

/* One microbatch per rank, unless more are requested. */
static void choose_microbatch(Training *f) {
  u64 n = f->o->accumulate ? f->o->accumulate : f->ranks.size > 1 ? (u64)f->ranks.size : 0;
  if (!n) return;
  if (f->batch % n)
    fail(f->c, ERR_usage, LOC_NONE,
         "--accumulate: a batch of %llu examples cannot be split into %llu equal parts",
         (unsigned long long)f->batch, (unsigned long long)n);
  if (f->fixed && n > 1)
    fail(f->c, ERR_unsupported, LOC_NONE,
         "--accumulate: the model has the fixed batch size %llu, which cannot be split",
         (unsigned long long)f->batch);
  f->microbatch = f->batch / n;
}

static void prepare(Training *f) {
  Ctx *c = f->c;
  const IngotTrain *o = f->o;
  f->rate = o->rate ? o->rate : DEFAULT_LR;
  f->epochs = o->epochs ? o->epochs : 1;
  f->every = o->checkpoint_every < 0 ? USUAL_EVERY : o->checkpoint_every;
  f->engine = choose_engine(c, o->engine);
  f->spec = step_spec(f);
  f->yes = o->loss && !strncmp(o->loss, "bce", 3);
  f->ranks = ranks_find();
  f->checkpoint = o->checkpoint;
  if (!o->checkpoint && !file_is_device(o->output))
    f->checkpoint = str_text(c, str_fmt(c, "%s.checkpoint", o->output));
  if (!strcmp(f->engine, "c")) {
    compiler_need(c, NULL);
    api_target_native(f->m, NULL);
  }
  api_target_host(f->m);
  read_schedule(f);
  f->data = dataset_read(f, o->data);
  if (o->validate) f->validate = dataset_read(f, o->validate);
  choose_batch(f);
  choose_microbatch(f);
  f->order = NEWS(&c->keep, u32, f->data.n + f->validate.n + 1);
}

/* ---- programs ---- */

const char *train_cheap_engine(const Training *f) {
  return strcmp(f->engine, "interp") ? "vm" : "interp";
}

static void open_step(Training *f) {
  u64 left = f->fixed ? 0 : f->data.n % f->batch;
  train_step_open(f, &f->step, TP_step, f->batch, f->engine);
  dataset_convert_labels(f, &f->data, &f->step, f->batch);
  if (left) train_step_open(f, &f->rest, TP_step, left, train_cheap_engine(f));
  for (u32 i = 0; i < f->step.nstate; i++) *vec_push(&f->c->keep, &f->state) = f->step.state[i];
}

static void open_measure(Training *f) {
  if (!f->validate.n) return;
  u64 rows = f->fixed || f->validate.n > f->batch ? f->batch : f->validate.n;
  u64 left = f->fixed ? 0 : f->validate.n % rows;
  if (f->validate.n < rows)
    fail(f->c, ERR_unsupported, LOC_NONE,
         "%s: %llu examples are fewer than the batch size of the model, %llu", f->o->validate,
         (unsigned long long)f->validate.n, (unsigned long long)rows);
  train_step_open(f, &f->measure, TP_eval, rows, f->engine);
  dataset_convert_labels(f, &f->validate, &f->measure, rows);
  if (left) train_step_open(f, &f->measure_rest, TP_eval, left, train_cheap_engine(f));
}

/* ---- early stopping ---- */

static void open_best(Training *f) {
  if (!f->o->patience) return;
  if (!f->validate.n)
    fail(f->c, ERR_usage, LOC_NONE, "--patience needs the loss on other examples: add --validate");
  for (u32 i = 0; i < f->state.n; i++) {
    StateArray *h = &f->state.at[i];
    if (h->weight) h->best = arena_copy(&f->c->keep, h->at, h->bytes);
  }
}

/* Index of the finished epoch whose weights are to be written. */
static u32 best_epoch(const Training *f) {
  u32 best = 0;
  double lowest = INFINITY; /* a loss that is not a number never counts */
  if (!f->o->patience) return f->row.n - 1;
  for (u32 i = 0; i < f->row.n; i++) {
    if (!(f->row.at[i].validate.loss < lowest)) continue;
    lowest = f->row.at[i].validate.loss;
    best = i;
  }
  return best;
}

static void keep_best(Training *f) {
  if (!f->o->patience || best_epoch(f) != f->row.n - 1) return;
  for (u32 i = 0; i < f->state.n; i++) {
    const StateArray *h = &f->state.at[i];
    if (h->best) memcpy(h->best, h->at, h->bytes);
  }
}

static bool is_finished(const Training *f) {
  if (f->at.epoch >= f->epochs) return true;
  return f->o->patience && f->row.n && f->row.n - 1 - best_epoch(f) >= f->o->patience;
}

/* ---- steps ---- */

/* Fisher-Yates shuffle, seeded by seed and epoch. */
static void shuffle(Training *f) {
  u64 seed = random_bits(f->o->seed, f->at.epoch);
  for (u32 i = 0; i < f->data.n; i++) f->order[i] = i;
  for (u32 i = (u32)f->data.n; i > 1; i--) {
    u32 k = (u32)(random_bits(seed, i) % i), x = f->order[i - 1];
    f->order[i - 1] = f->order[k];
    f->order[k] = x;
  }
}

static void report_progress(Training *f) {
  double now = time_ms(), spent = (now - f->began) / 1e3;
  u64 seen = f->at.epoch * f->data.n + f->at.row, all = f->epochs * f->data.n;
  if (!f->o->on_progress || f->ranks.rank || (now - f->shown < 100 && f->at.row < f->data.n))
    return;
  const Metrics *t = &f->tally;
  IngotProgress p = {.epoch = f->at.epoch + 1,
                     .epochs = f->epochs,
                     .example = f->at.row,
                     .examples = f->data.n,
                     .loss = t->loss / (double)t->n,
                     .accuracy =
                         t->count ? 100 * (double)t->right / (double)t->count : (double)NAN};
  p.rate = spent > 0 ? (double)(seen - f->began_at) / spent : 0;
  p.seconds_left = p.rate > 0 ? (double)(all - seen) / p.rate : 0;
  f->shown = now;
  f->o->on_progress(f->o->user, &p);
}

static void whole_step(Training *f, u64 rows, double rate) {
  const u32 *which = f->order + f->at.row;
  TrainStep *d = rows == f->batch ? &f->step : &f->rest;
  if (d != &f->step) train_step_set_states(f, d);
  dataset_gather(&f->data, d, which, rows);
  tensor_set(train_step_in(d, str_of(f->c, "rate")), 0, (Scalar){.f = rate});
  train_step_run(d, random_bits(f->o->seed + 1, f->at.step));
  if (d != &f->step) train_step_get_states(f, d);
  metrics_add(f, &f->tally, &f->data, which, rows, train_step_loss(d), train_step_class(d));
}

static _Noreturn void diverge(Training *f, const char *what, u64 steps) {
  fail(f->c, ERR_input, LOC_NONE,
       "%s not finite in epoch %llu, step %llu: try a lower --lr, or --clip", what,
       (unsigned long long)f->at.epoch + 1, (unsigned long long)steps);
}

/* The loss of the last step was computed before its update. */
static void check_weights(Training *f) {
  for (u32 i = 0; i < f->state.n; i++) {
    const StateArray *h = &f->state.at[i];
    if (!h->weight || !dtype_is_float(h->dt)) continue;
    for (u64 at = 0; at < h->bytes; at += dtype_bytes(h->dt))
      if (!isfinite(scalar_load(h->dt, h->at + at).f))
        diverge(f, str_text(f->c, str_fmt(f->c, "a weight of '%s' is", show(f->c, h->name))),
                f->at.step);
  }
}

static void run_step(Training *f, u64 rows) {
  double rate = scalar_round(DT_f32, learning_rate(f));
  if (f->microbatch)
    accumulate_step(f, rows, rate);
  else
    whole_step(f, rows, rate);
  if (!isfinite(f->tally.loss)) diverge(f, "the loss is", f->at.step + 1);
  f->at.row += rows;
  f->at.step++;
}

static void save_if_due(Training *f, double seconds) {
  if (f->checkpoint && time_ms() - f->saved >= 1e3 * seconds) checkpoint_save(f);
}

static void measure(Training *f, IngotScore *to) {
  Metrics t = {0};
  u64 rows;
  if (!f->validate.n) return;
  u32 *which = f->order + f->data.n;
  train_step_set_states(f, &f->measure);
  if (f->measure_rest.m) train_step_set_states(f, &f->measure_rest);
  u64 full = (u64)train_step_in(&f->measure, str_of(f->c, "label"))->dim[0];
  for (u64 at = 0; at < f->validate.n; at += rows) {
    rows = f->validate.n - at < full ? f->validate.n - at : full;
    if (rows < full && f->fixed) break;
    TrainStep *d = rows == full ? &f->measure : &f->measure_rest;
    for (u64 i = 0; i < rows; i++) which[i] = (u32)(at + i);
    dataset_gather(&f->validate, d, which, rows);
    train_step_run(d, 0);
    metrics_add(f, &t, &f->validate, which, rows, train_step_loss(d), train_step_class(d));
  }
  metrics_score(f, &t, to);
  if (!isfinite(t.loss) && !f->ranks.rank)
    warn(f->c, LOC_NONE, "the loss on %s is not finite after epoch %llu", f->o->validate,
         (unsigned long long)f->at.epoch + 1);
}

static void report_epoch(const Training *f, u32 i) {
  if (f->o->on_epoch && !f->ranks.rank) f->o->on_epoch(f->o->user, &f->row.at[i]);
}

static void run_epoch(Training *f) {
  shuffle(f);
  IngotEpoch e = {.epoch = f->at.epoch + 1};
  while (f->at.row < f->data.n) {
    u64 left = f->data.n - f->at.row, rows = left < f->batch ? left : f->batch;
    if (rows < f->batch && f->fixed) break;
    run_step(f, rows);
    report_progress(f);
    if (f->at.row < f->data.n) save_if_due(f, f->every);
  }
  check_weights(f);
  TrainPosition after = f->at;
  f->at.step--;
  e.rate = learning_rate(f);
  f->at = after;
  metrics_score(f, &f->tally, &e.train);
  measure(f, &e.validate);
  *vec_push(&f->c->keep, &f->row) = e;
  keep_best(f);
  report_epoch(f, f->row.n - 1);
  f->tally = (Metrics){0};
  f->at.row = 0;
  f->at.epoch++;
  save_if_due(f, f->every < LEAST_EVERY ? f->every : LEAST_EVERY);
}

/* ---- the file ---- */

/* The model and its external weight file, see onnx_save. */
static void release_model(Training *f) {
  const char *path = f->m->opened.source.path;
  if (!f->o->in_place || !path) return;
  file_release(f->c, path);
  file_release(f->c, str_text(f->c, str_fmt(f->c, "%s.data", path)));
}

/* Writes weights and running means. */
static void write_model(Training *f, const char *path) {
  Ctx *c = f->c;
  release_model(f);
  Str *name = NEWS(&c->keep, Str, f->state.n + 1);
  Tensor **t = NEWS(&c->keep, Tensor *, f->state.n + 1);
  u32 n = 0;
  f->out->weights = 0;
  for (u32 i = 0; i < f->state.n; i++) {
    const StateArray *h = &f->state.at[i];
    if (!h->weight) continue;
    name[n] = h->name;
    t[n++] = tensor_wrap(&c->keep, h->dt, h->dim, h->rank, h->best ? h->best : h->at);
    f->out->weights += h->bytes / dtype_bytes(h->dt);
  }
  f->m->opened.reader->rewrite(c, &f->m->opened.source, f->m->opened.model, name, t, n, path);
}

static void work(Ctx *c, void *arg) {
  Training *f = arg;
  prepare(f);
  release_model(f);
  files_plan(c, (const char *const[]){f->o->output, f->checkpoint}, f->checkpoint ? 2 : 1);
  if (f->microbatch)
    accumulate_open(f);
  else
    open_step(f);
  open_measure(f);
  open_best(f);
  write_model(f, NULL);
  ranks_begin(c, &f->ranks);
  if (f->checkpoint && checkpoint_load(f)) f->out->resumed = f->at.step;
  for (u32 i = 0; i < f->row.n; i++) report_epoch(f, i);
  f->began = f->saved = time_ms();
  f->began_at = f->at.epoch * f->data.n + f->at.row;
  while (!is_finished(f)) run_epoch(f);
  f->out->seconds = (time_ms() - f->began) / 1e3;
  f->out->steps = f->at.step - f->out->resumed;
  if (!f->ranks.rank) write_model(f, f->o->output);
  if (f->checkpoint) checkpoint_remove(f);
  ranks_end(&f->ranks);
  f->out->epoch = f->row.at;
  f->out->nepoch = f->row.n;
  f->out->best = f->row.n ? f->row.at[best_epoch(f)].epoch : 0;
  f->out->engine = f->engine;
  f->out->rank = f->ranks.rank;
}

static void train(Ingot *m, const IngotTrain *o, IngotTrained *out) {
  Ctx *c = m->c;
  api_need(c, o, "the training options");
  api_need(c, out, "a pointer to the result");
  api_need(c, o->output, "the path of the trained model");
  api_need(c, o->data, "the path of the examples");
  *out = (IngotTrained){0};
  if (!m->opened.source.at)
    fail(c, ERR_usage, LOC_NONE, "no model is open: expected ingot_open before this call");
  if (!m->opened.reader || !m->opened.reader->rewrite)
    fail(c, ERR_unsupported, LOC_NONE, "is %s, whose weights are not written: expected ONNX",
         m->opened.reader ? m->opened.reader->name : "a program");
  Training f = {.m = m, .c = c, .o = o, .out = out};
  Err e = ctx_protect(c, work, &f);
  train_step_close(&f.step);
  train_step_close(&f.rest);
  train_step_close(&f.measure);
  train_step_close(&f.measure_rest);
  accumulate_close(&f);
  if (e) longjmp(*c->door, (int)e);
}

IngotStatus ingot_train(Ingot *m, const IngotTrain *o, IngotTrained *out) {
  API_CALL(m, train(m, o, out));
}
