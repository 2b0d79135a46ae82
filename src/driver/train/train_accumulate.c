/* train_accumulate.c: training steps with gradient accumulation.
 *
 * In: rows of a batch. Out: the same step as for the whole batch, except for rounding. Each
 * microbatch gives the gradients of its mean loss; these are weighted by its fraction of the batch
 * and added in order. So the bits depend on the size of a microbatch, not on the number of
 * processes. In each round every process runs one microbatch; an all-gather follows, then each
 * process adds and updates its own weights, which stay equal everywhere. Batch normalization sees a
 * microbatch only; running means are averaged over the microbatches.
 */
#include "driver/train/train_loop.h"

#include <string.h>

/* Results of a microbatch: gradients, running means, loss, classes, one after the other. */
typedef struct ShardResult {
  u64 sums, bytes; /* sums: bytes of the results that are added */
} ShardResult;

static const i64 *classes_of(const TrainStep *d, u64 *n) {
  const Tensor *t = train_step_out(d, "class");
  *n = t ? t->n : 0;
  return t ? t->data : NULL;
}

/* Do microbatches return classes? Known before the first run. */
static bool has_classes(const TrainStep *d) {
  bool found = false;
  for (u32 i = 0; i < d->m->run.nout; i++)
    found = found || str_is(d->m->c, api_result_name(d->m, i), "class");
  return found;
}

/* Is result i added up? All floats except the loss are. */
static bool is_sum(const TrainStep *d, u32 i) {
  Str name = api_result_name(d->m, i);
  IngotTensor t = ingot_output_info(d->m, i);
  return t.dtype[0] == 'f' && !str_is(d->m->c, name, "loss");
}

static u64 bytes_of(const TrainStep *d, u32 i) {
  IngotTensor t = ingot_output_info(d->m, i);
  u64 n;
  shape_count(t.dim, t.rank, &n);
  return n * dtype_bytes(dtype_from_name(t.dtype, strlen(t.dtype)));
}

static ShardResult result_layout(const TrainStep *d, u64 labels) {
  ShardResult p = {0, 0};
  for (u32 i = 0; i < d->m->run.nout; i++)
    if (is_sum(d, i)) p.sums += bytes_of(d, i);
  p.bytes = p.sums + sizeof(double) + labels * sizeof(i64);
  return p;
}

void accumulate_open(Training *f) {
  Ctx *c = f->c;
  u64 left = f->data.n % f->batch % f->microbatch;
  train_step_open(f, &f->grads, TP_grads, f->microbatch, f->engine);
  dataset_convert_labels(f, &f->data, &f->grads, f->microbatch);
  if (left) train_step_open(f, &f->grads_rest, TP_grads, left, train_cheap_engine(f));
  train_step_open(f, &f->update, TP_update, f->microbatch, f->engine);
  for (u32 i = 0; i < f->update.nstate; i++) *vec_push(&c->keep, &f->state) = f->update.state[i];
  for (u32 i = 0; i < f->grads.nstate; i++)
    if (!train_step_state(&f->update, f->grads.state[i].name))
      *vec_push(&c->keep, &f->state) = f->grads.state[i];
}

void accumulate_close(Training *f) {
  train_step_close(&f->grads);
  train_step_close(&f->grads_rest);
  train_step_close(&f->update);
}

/* Runs one microbatch and writes its results. */
static void run_microbatch(Training *f, const u32 *which, u64 rows, u64 number, u8 *to) {
  TrainStep *d = rows == f->microbatch ? &f->grads : &f->grads_rest;
  u64 n;
  dataset_gather(&f->data, d, which, rows);
  train_step_run(d, random_bits(random_bits(f->o->seed + 1, f->at.step), number));
  for (u32 i = 0; i < d->m->run.nout; i++) {
    if (!is_sum(d, i)) continue;
    memcpy(to, d->out[i]->data, tensor_bytes(d->out[i]));
    to += tensor_bytes(d->out[i]);
  }
  double loss = train_step_loss(d);
  memcpy(to, &loss, sizeof loss);
  const i64 *class = classes_of(d, &n);
  if (n) memcpy(to + sizeof loss, class, n * sizeof *class);
}

/* sum += part * x, or sum = part * x for the first microbatch. */
static void add_floats(float *sum, const float *x, u64 n, float part, bool first) {
  for (u64 i = 0; first && i < n; i++) sum[i] = part * x[i];
  for (u64 i = 0; !first && i < n; i++) {
    float y = part * x[i];
    sum[i] += y;
  }
}

static void add_doubles(double *sum, const double *x, u64 n, double part, bool first) {
  for (u64 i = 0; first && i < n; i++) sum[i] = part * x[i];
  for (u64 i = 0; !first && i < n; i++) {
    double y = part * x[i];
    sum[i] += y;
  }
}

static void add_gradients(const TrainStep *d, u8 *sum, const u8 *from, double part, bool first) {
  for (u32 i = 0; i < d->m->run.nout; i++) {
    if (!is_sum(d, i)) continue;
    u64 n = bytes_of(d, i);
    if (!strcmp(ingot_output_info(d->m, i).dtype, "f64"))
      add_doubles((double *)(void *)sum, (const double *)(const void *)from, n / 8, part, first);
    else
      add_floats((float *)(void *)sum, (const float *)(const void *)from, n / 4, (float)part,
                 first);
    sum += n;
    from += n;
  }
}

/* Copies sums to their readers: gradients to the update, running means to the states. */
static void set_gradients(Training *f, const u8 *sum) {
  const TrainStep *d = &f->grads;
  Ctx *c = f->c;
  for (u32 i = 0; i < d->m->run.nout; i++) {
    if (!is_sum(d, i)) continue;
    u64 n = bytes_of(d, i);
    const char *name = str_text(c, api_result_name(d->m, i));
    Tensor *to = train_step_in(&f->update, str_of(c, name));
    size_t stem = strlen(name) - strlen(".next");
    StateArray *h = to ? NULL : train_step_state(d, str_intern(c, name, stem));
    if (to) memcpy((void *)(uintptr_t)to->data, sum, n);
    if (h) memcpy(h->at, sum, n);
    sum += n;
  }
}

static void add_metrics(Training *f, const u8 *packet, const ShardResult *p, const u32 *which,
                        u64 rows) {
  double loss;
  memcpy(&loss, packet + p->sums, sizeof loss);
  const i64 *class = (const i64 *)(const void *)(packet + p->sums + sizeof loss);
  metrics_add(f, &f->tally, &f->data, which, rows, loss, has_classes(&f->grads) ? class : NULL);
}

void accumulate_step(Training *f, u64 rows, double rate) {
  Ctx *c = f->c;
  const u32 *which = f->order + f->at.row;
  u64 size = (u64)f->ranks.size, mine = (u64)f->ranks.rank,
      count = (rows + f->microbatch - 1) / f->microbatch;
  Mark mark = arena_mark(&c->scratch);
  ShardResult p = result_layout(&f->grads, f->data.label.t->n / f->data.n * f->microbatch);
  u64 room = (p.bytes + 7) / 8 * 8;
  u8 *own = arena_alloc(&c->scratch, room), *all = arena_alloc(&c->scratch, room * size),
     *sum = arena_alloc(&c->scratch, p.sums + 8);
  train_step_set_states(f, &f->grads);
  if (f->grads_rest.m) train_step_set_states(f, &f->grads_rest);
  for (u64 from = 0; from < count; from += size) {
    u64 k = from + mine, at = k * f->microbatch;
    if (k < count)
      run_microbatch(f, which + at, rows - at < f->microbatch ? rows - at : f->microbatch, k, own);
    ranks_gather(c, &f->ranks, own, all, room);
    for (u64 r = 0; r < size && from + r < count; r++) {
      at = (from + r) * f->microbatch;
      u64 n = rows - at < f->microbatch ? rows - at : f->microbatch;
      add_gradients(&f->grads, sum, all + r * room, (double)n / (double)rows, from + r == 0);
      add_metrics(f, all + r * room, &p, which + at, n);
    }
  }
  set_gradients(f, sum);
  tensor_set(train_step_in(&f->update, str_of(c, "rate")), 0, (Scalar){.f = rate});
  train_step_run(&f->update, 0);
  arena_rewind(&c->scratch, mark);
}
