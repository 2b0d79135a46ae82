/* train_checkpoint.c: saves and loads checkpoints.
 *
 * Format: an .npz. state/NAME: weights, moments and running means, bit-exact; ingot/options:
 * options as lines of text; ingot/place: epoch, examples seen in it, total steps; ingot/counts and
 * ingot/loss: metrics of this epoch; ingot/epochs: scores of earlier epochs. The order of examples
 * and the seed of each step follow from seed, epoch and step number. The file is written under
 * another name and renamed, so a complete one always exists. With --patience, best/NAME has the
 * weights of the best epoch, which follows from the scores.
 */
#include "api/train_loop.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SCORE_NUMBERS = 6, EPOCH_NUMBERS = 2 + 2 * SCORE_NUMBERS };

/* ---- options ---- */

static void write_options(const Training *f, StrBuf *t) {
  const IngotTrain *o = f->o;
  sb_puts(t, "ingot train 1\n");
  sb_fmt(t, "model %016llx\n",
         (unsigned long long)hash_bytes(f->m->opened.source.at, f->m->opened.source.n));
  sb_fmt(t, "--data %016llx\n", (unsigned long long)f->data.hash);
  sb_fmt(t, "--validate %016llx\n", (unsigned long long)f->validate.hash);
  sb_fmt(t, "step %s\n", f->spec);
  sb_fmt(t, "--lr %.17g\n--schedule %s\n", f->rate, o->schedule ? o->schedule : "constant");
  sb_fmt(t, "--batch %llu\n--epochs %llu\n--seed %llu\n", (unsigned long long)f->batch,
         (unsigned long long)f->epochs, (unsigned long long)o->seed);
  if (o->patience) sb_fmt(t, "--patience %llu\n", (unsigned long long)o->patience);
  if (f->microbatch) sb_fmt(t, "shares of %llu examples\n", (unsigned long long)f->microbatch);
}

static size_t line_of(const char *s) {
  return strcspn(s, "\n");
}

/* Reports the first line that differs. */
static void check_options(Training *f, const Tensor *have) {
  Ctx *c = f->c;
  StrBuf want = sb_new(&c->scratch), there = sb_new(&c->scratch);
  write_options(f, &want);
  sb_put(&there, have->data, have->n);
  const char *a = sb_cstr(&there), *b = sb_cstr(&want);
  while (*a && *b && line_of(a) == line_of(b) && !strncmp(a, b, line_of(a))) {
    a += line_of(a) + (a[line_of(a)] == '\n');
    b += line_of(b) + (b[line_of(b)] == '\n');
  }
  if (!*a && !*b) return;
  Loc loc = {.file = str_of(c, f->checkpoint), .index = -1};
  fail(c, ERR_input, loc,
       "is the checkpoint of another training: it has '%s', this one '%s'; remove it, or name "
       "another with --checkpoint",
       show(c, str_intern(c, a, line_of(a))), show(c, str_intern(c, b, line_of(b))));
}

/* ---- arrays ---- */

typedef struct Arrays {
  Arena *a;
  Ctx *c;
  VEC(Str) name;
  VEC(Tensor *) t;
} Arrays;

static void add(Arrays *x, Str name, DType dt, const i64 *dim, u32 rank, const void *data) {
  *vec_push(x->a, &x->name) = name;
  *vec_push(x->a, &x->t) = tensor_wrap(x->a, dt, dim, rank, data);
}

static void add_list(Arrays *x, const char *name, DType dt, i64 n, const void *data) {
  add(x, str_of(x->c, name), dt, &n, 1, data);
}

static void score_numbers(const IngotScore *s, double *to) {
  double x[SCORE_NUMBERS] = {(double)s->examples, s->loss,   s->accuracy,
                             s->precision,        s->recall, s->f1};
  memcpy(to, x, sizeof x);
}

static IngotScore score_of(const double *x) {
  return (IngotScore){(u64)x[0], x[1], x[2], x[3], x[4], x[5]};
}

static void add_epochs(Training *f, Arrays *x) {
  i64 dim[2] = {f->row.n, EPOCH_NUMBERS};
  double *all = NEWS(x->a, double, f->row.n *EPOCH_NUMBERS + 1);
  for (u32 i = 0; i < f->row.n; i++) {
    double *to = all + (size_t)i * EPOCH_NUMBERS;
    to[0] = (double)f->row.at[i].epoch;
    to[1] = f->row.at[i].rate;
    score_numbers(&f->row.at[i].train, to + 2);
    score_numbers(&f->row.at[i].validate, to + 2 + SCORE_NUMBERS);
  }
  add(x, str_of(x->c, "ingot/epochs"), DT_f64, dim, 2, all);
}

static void add_counts(Training *f, Arrays *x) {
  const Metrics *t = &f->tally;
  i64 n = t->correct.n, dim[2] = {3, n}, totals[3] = {(i64)t->n, (i64)t->right, (i64)t->count};
  i64 *all = NEWS(x->a, i64, 3 * (size_t)n + 1);
  if (n) {
    memcpy(all, t->correct.at, (size_t)n * 8);
    memcpy(all + n, t->predicted.at, (size_t)n * 8);
    memcpy(all + 2 * n, t->actual.at, (size_t)n * 8);
  }
  add(x, str_of(x->c, "ingot/counts"), DT_i64, dim, 2, all);
  add_list(x, "ingot/totals", DT_i64, 3, arena_copy(x->a, totals, sizeof totals));
  add_list(x, "ingot/loss", DT_f64, 1, &t->loss);
}

void checkpoint_save(Training *f) {
  Ctx *c = f->c;
  Mark mark = arena_mark(&c->scratch);
  Arrays x = {.a = &c->scratch, .c = c};
  StrBuf options = sb_new(&c->scratch), out = sb_new(&c->scratch);
  write_options(f, &options);
  add_list(&x, "ingot/options", DT_u8, (i64)options.n, options.at);
  i64 place[3] = {(i64)f->at.epoch, (i64)f->at.row, (i64)f->at.step};
  add_list(&x, "ingot/place", DT_i64, 3, place);
  add_counts(f, &x);
  add_epochs(f, &x);
  for (u32 i = 0; i < f->state.n; i++) {
    const StateArray *h = &f->state.at[i];
    add(&x, str_fmt(c, "state/%s", str_text(c, h->name)), h->dt, h->dim, h->rank, h->at);
    if (h->best)
      add(&x, str_fmt(c, "best/%s", str_text(c, h->name)), h->dt, h->dim, h->rank, h->best);
  }
  data_write_npz(c, &out, x.name.at, x.t.at, x.t.n);
  FileOut file = {.path = f->checkpoint, .at = out.at, .n = out.n, .update = true};
  if (!f->ranks.rank) files_write(c, &file, 1);
  arena_rewind(&c->scratch, mark);
  f->saved = time_ms();
}

/* ---- resuming ---- */

static Tensor *find(Training *f, const NamedTensors *v, Str name, DType dt) {
  Ctx *c = f->c;
  for (u32 i = 0; i < v->n; i++)
    if (v->at[i].name == name && v->at[i].t->dt == dt) return v->at[i].t;
  Loc loc = {.file = str_of(c, f->checkpoint), .index = -1};
  fail(c, ERR_input, loc, "is not a checkpoint: expected an array '%s' of %s", show(c, name),
       dtype_info[dt].name);
}

static Tensor *find_list(Training *f, const NamedTensors *v, const char *name, DType dt, u64 n) {
  Tensor *t = find(f, v, str_of(f->c, name), dt);
  Loc loc = {.file = str_of(f->c, f->checkpoint), .index = -1};
  if (n && t->n != n)
    fail(f->c, ERR_input, loc, "is not a checkpoint: '%s' has a wrong size", name);
  return t;
}

static void load_state(Training *f, const NamedTensors *v, const char *kind, const StateArray *h,
                       u8 *to) {
  Ctx *c = f->c;
  const Tensor *t = find(f, v, str_fmt(c, "%s/%s", kind, str_text(c, h->name)), h->dt);
  Loc loc = {.file = str_of(c, f->checkpoint), .index = -1};
  if (tensor_bytes(t) != h->bytes)
    fail(c, ERR_input, loc, "is not a checkpoint of this model: '%s' has another size",
         show(c, h->name));
  if (h->bytes) memcpy(to, t->data, h->bytes);
}

static void load_states(Training *f, const NamedTensors *v) {
  for (u32 i = 0; i < f->state.n; i++) {
    const StateArray *h = &f->state.at[i];
    load_state(f, v, "state", h, h->at);
    if (h->best) load_state(f, v, "best", h, h->best);
  }
}

static void load_counts(Training *f, const NamedTensors *v) {
  Metrics *t = &f->tally;
  Ctx *c = f->c;
  const Tensor *counts = find_list(f, v, "ingot/counts", DT_i64, 0),
               *totals = find_list(f, v, "ingot/totals", DT_i64, 3);
  u64 n = counts->n / 3;
  *t = (Metrics){.loss = tensor_get(find_list(f, v, "ingot/loss", DT_f64, 1), 0).f};
  t->n = (u64)tensor_get(totals, 0).i;
  t->right = (u64)tensor_get(totals, 1).i;
  t->count = (u64)tensor_get(totals, 2).i;
  for (u64 i = 0; i < n; i++) {
    *vec_push(&c->keep, &t->correct) = tensor_get(counts, i).i;
    *vec_push(&c->keep, &t->predicted) = tensor_get(counts, n + i).i;
    *vec_push(&c->keep, &t->actual) = tensor_get(counts, 2 * n + i).i;
  }
}

static void load_epochs(Training *f, const NamedTensors *v) {
  const Tensor *t = find_list(f, v, "ingot/epochs", DT_f64, 0);
  for (u64 i = 0; i + EPOCH_NUMBERS <= t->n; i += EPOCH_NUMBERS) {
    double x[EPOCH_NUMBERS];
    for (u32 k = 0; k < EPOCH_NUMBERS; k++) x[k] = tensor_get(t, i + k).f;
    *vec_push(&f->c->keep, &f->row) =
        (IngotEpoch){(u64)x[0], x[1], score_of(x + 2), score_of(x + 2 + SCORE_NUMBERS)};
  }
}

bool checkpoint_load(Training *f) {
  Ctx *c = f->c;
  struct stat st;
  if (stat(f->checkpoint, &st) && (errno == ENOENT || errno == ENOTDIR)) return false;
  Loc loc = {.file = str_of(c, f->checkpoint), .index = -1};
  File file = file_read_own(c, f->checkpoint);
  NamedTensors v = data_read_npz(c, file.at, file.n, loc, &c->keep);
  check_options(f, find_list(f, &v, "ingot/options", DT_u8, 0));
  const Tensor *place = find_list(f, &v, "ingot/place", DT_i64, 3);
  f->at = (TrainPosition){(u64)tensor_get(place, 0).i, (u64)tensor_get(place, 1).i,
                          (u64)tensor_get(place, 2).i};
  if (f->at.epoch > f->epochs || f->at.row > f->data.n)
    fail(c, ERR_input, loc, "is not a valid checkpoint: found epoch %llu, example %llu",
         (unsigned long long)f->at.epoch, (unsigned long long)f->at.row);
  load_states(f, &v);
  load_counts(f, &v);
  load_epochs(f, &v);
  return true;
}

void checkpoint_remove(Training *f) {
  if (f->ranks.rank) return;
  if (unlink(f->checkpoint) && errno != ENOENT)
    warn(f->c, LOC_NONE, "%s: the checkpoint cannot be removed: %s", f->checkpoint,
         strerror(errno));
}
