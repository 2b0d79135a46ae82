/* optim.c: optimisers, schedules, clipping.
 *
 * A step gives new tensors. It computes them with the gradients they need, and the loss if nobody
 * has looked at it yet, in one program: forward, backward and update of a training step. Optimisers
 * keep what they need from step to step for each line of tensors: a parameter and what became of
 * it. Numbers that change from step to step are operands, so that the program stays the same.
 */
#include "lang/thing.h"

#include <math.h>
#include <string.h>

/* ---- making them ---- */

static Worth optimiser(Eval *ev, ThingKind what, const Worth *arg, u32 n, const double *otherwise,
                       u32 count) {
  Thing *t = thing_new(ev, what);
  Worth out = worth_thing(t);
  for (u32 i = 0; i < count; i++) t->num[i] = i < n ? arg_number(ev, &arg[i]) : otherwise[i];
  return out;
}

void bi_sgd_create(Eval *ev, Worth *arg, u32 n, Worth *out) {
  *out = optimiser(ev, TH_sgd, arg, n, (const double[]){0, 0, 0}, 3);
}

void bi_adam_create(Eval *ev, Worth *arg, u32 n, Worth *out) {
  *out = optimiser(ev, TH_adam, arg, n, (const double[]){0, 0.9, 0.999, 1e-8}, 4);
}

void bi_rmsprop_create(Eval *ev, Worth *arg, u32 n, Worth *out) {
  *out = optimiser(ev, TH_rmsprop, arg, n, (const double[]){0, 0.99, 1e-8}, 3);
}

/* ---- recipes of a step; each takes its operands ---- */

static Lazy *two(Eval *ev, TensorOp op, Lazy *x, Lazy *y) {
  Lazy *t = tensor_two(ev, op, x, y, "the step");
  lazy_drop(ev, x);
  lazy_drop(ev, y);
  return t;
}

static Lazy *times(Eval *ev, Lazy *x, double k) {
  return two(ev, RC_DO_mul, x, lazy_scalar(ev, k));
}

static Lazy *root(Eval *ev, Lazy *x) {
  Lazy *t = lazy_map(ev, RC_DO_sqrt, x, NULL, 0);
  lazy_drop(ev, x);
  return t;
}

/* b m + (1 - b) g; NULL: m is zero */
static Lazy *mixed(Eval *ev, Lazy *m, double b, Lazy *g) {
  Lazy *new = times(ev, g, 1 - b);
  return m ? two(ev, RC_DO_add, times(ev, lazy_share(m), b), new) : new;
}

static void keep(Eval *ev, Lazy **slot, Lazy *x) {
  Lazy *old = *slot;
  *slot = lazy_share(x);
  lazy_drop(ev, old);
}

static Lazy *sgd_move(Eval *ev, const Thing *t, Moment *m, Lazy *p, Lazy *g) {
  if (t->num[2] != 0) {
    Lazy *decay = times(ev, lazy_share(p), t->num[2]);
    decay->tracked = false; /* else the moment would keep the recipes of all steps */
    g = two(ev, RC_DO_add, g, decay);
  }
  if (t->num[1] != 0) {
    if (m->first) g = two(ev, RC_DO_add, times(ev, lazy_share(m->first), t->num[1]), g);
    keep(ev, &m->first, g);
  }
  return times(ev, g, t->num[0]);
}

static Lazy *adam_move(Eval *ev, const Thing *t, Moment *m, Lazy *g) {
  double b1 = t->num[1], b2 = t->num[2], n = (double)m->steps;
  Lazy *first = mixed(ev, m->first, b1, lazy_share(g));
  Lazy *second = mixed(ev, m->second, b2, two(ev, RC_DO_mul, lazy_share(g), g));
  keep(ev, &m->first, first);
  keep(ev, &m->second, second);
  Lazy *by = root(ev, times(ev, second, 1 / (1 - number_of(OP_pow, b2, n))));
  Lazy *up = times(ev, first, t->num[0] / (1 - number_of(OP_pow, b1, n)));
  return two(ev, RC_DO_div, up, two(ev, RC_DO_add, by, lazy_scalar(ev, t->num[3])));
}

static Lazy *rmsprop_move(Eval *ev, const Thing *t, Moment *m, Lazy *g) {
  Lazy *square = mixed(ev, m->second, t->num[1], two(ev, RC_DO_mul, lazy_share(g), lazy_share(g)));
  keep(ev, &m->second, square);
  Lazy *eps =
      lazy_scalar(ev, t->num[2]); /* one behind the other: keys of programs tell the order */
  Lazy *by = two(ev, RC_DO_add, root(ev, square), eps);
  return two(ev, RC_DO_div, times(ev, g, t->num[0]), by);
}

/* What is subtracted from p. */
static Lazy *move(Eval *ev, Thing *t, Lazy *p) {
  Moment *m = thing_moment(ev, t, lazy_ident(ev, p)->line);
  Lazy *g = lazy_share(p->id->grad);
  m->steps++;
  switch (t->what) {
  case TH_adam: return adam_move(ev, t, m, g);
  case TH_rmsprop: return rmsprop_move(ev, t, m, g);
  default: return sgd_move(ev, t, m, p, g);
  }
}

/* ---- steps ---- */

static void want(Eval *ev, Lazies *all, Lazy *t) {
  if (t && !t->data) *vec_push(&ev->stack, all) = t;
}

/* The result of p - move becomes a leaf: the next step begins there. */
static void settle(Eval *ev, Thing *opt, const BoxList *old, BoxList *new) {
  for (u64 i = 0; i < old->n; i++) {
    Lazy *p = new->at[i].u.lazy;
    if (p == old->at[i].u.lazy) continue;
    lazy_drop_recipe(ev, p);
    p->tracked = true;
    lazy_ident(ev, p)->line = lazy_ident(ev, old->at[i].u.lazy)->line;
  }
  (void)opt;
}

void optim_step(Eval *ev, Thing *opt, const BoxList *old, const Lazies *also, Worth *out) {
  Mark mark = arena_mark(&ev->stack);
  Lazies all = {0};
  *out = worth_list(ev, KD_array, old->n);
  for (u64 i = 0; i < old->n; i++) {
    Lazy *p = arg_tensor(ev, &old->at[i]);
    if (!lazy_ident(ev, p)->grad) { /* the loss does not depend on it */
      out->u.list->at[i] = worth_share(&old->at[i]);
      continue;
    }
    Lazy *new = two(ev, RC_DO_sub, lazy_share(p), move(ev, opt, p));
    out->u.list->at[i] = worth_lazy(new);
    want(ev, &all, new);
    Moment *m = thing_moment(ev, opt, p->id->line);
    want(ev, &all, m->first);
    want(ev, &all, m->second);
  }
  if (ev->last_loss) want(ev, &all, ev->last_loss);
  for (u32 i = 0; also && i < also->n; i++) want(ev, &all, also->at[i]);
  grads_pending(ev, &all);
  if (all.n) lazy_force(ev, all.at, all.n);
  settle(ev, opt, old, out->u.list);
  grads_done(ev);
  arena_rewind(&ev->stack, mark);
}

static void step(Eval *ev, Worth *arg, ThingKind what, Worth *out) {
  Thing *t = arg_thing(ev, &arg[0], "an optimiser");
  if (t->what != what)
    ARG_BAD(ev, "%s() takes another optimiser, got %s", builtin_name(ev), thing_kind(t));
  optim_step(ev, t, arg_array(ev, &arg[1]), NULL, out);
}

void bi_sgd_step(Eval *ev, Worth *arg, u32 n, Worth *out) {
  step(ev, arg, TH_sgd, out);
  (void)n;
}

void bi_adam_step(Eval *ev, Worth *arg, u32 n, Worth *out) {
  step(ev, arg, TH_adam, out);
  (void)n;
}

void bi_rmsprop_step(Eval *ev, Worth *arg, u32 n, Worth *out) {
  step(ev, arg, TH_rmsprop, out);
  (void)n;
}

/* ---- steps by hand ---- */

/* A tensor of the shape of p, or an array of as many numbers. */
static Lazy *numbers(Eval *ev, const Worth *d, const Lazy *p) {
  if (d->kind == KD_tensor) {
    const Lazy *t = d->u.lazy;
    if (t->rank != p->rank || memcmp(t->dim, p->dim, p->rank * sizeof *p->dim))
      ARG_BAD(ev, "%s(): shape %s for a parameter of shape %s", builtin_name(ev),
              dims_text(ev, t->dim, t->rank), dims_text(ev, p->dim, p->rank));
    return lazy_share(d->u.lazy);
  }
  const BoxList *l = arg_array(ev, d);
  if (l->n != p->n)
    ARG_BAD(ev, "%s(): %llu numbers for shape %s", builtin_name(ev), (unsigned long long)l->n,
            dims_text(ev, p->dim, p->rank));
  Lazy *t = lazy_new(ev, p->dim, p->rank);
  for (u64 i = 0; i < l->n; i++) t->data[i] = arg_number(ev, &l->at[i]);
  return t;
}

static Worth leaf(Eval *ev, Lazy *t, bool tracked) {
  lazy_data(ev, t);
  lazy_drop_recipe(ev, t);
  t->tracked = tracked;
  return worth_lazy(t);
}

static Worth array_of(Eval *ev, Lazy *t) { /* takes it */
  Worth out = lazy_array(ev, t);
  lazy_drop(ev, t);
  return out;
}

void bi_optim_sgd_step(Eval *ev, Worth *arg, u32 n, Worth *out) {
  Lazy *p = arg_tensor(ev, &arg[0]), *g = numbers(ev, &arg[1], p);
  *out = leaf(ev, two(ev, RC_DO_sub, lazy_share(p), times(ev, g, arg_number(ev, &arg[2]))),
              p->tracked);
  (void)n;
}

void bi_tensor_update_inplace(Eval *ev, Worth *arg, u32 n, Worth *out) {
  bi_optim_sgd_step(ev, arg, n, out);
  out->u.lazy->tracked = true;
}

void bi_optim_sgd_momentum_step(Eval *ev, Worth *arg, u32 n, Worth *out) {
  Lazy *p = arg_tensor(ev, &arg[0]), *g = numbers(ev, &arg[1], p), *v = numbers(ev, &arg[2], p);
  v = two(ev, RC_DO_add, times(ev, v, arg_number(ev, &arg[4])), g);
  Lazy *up = times(ev, lazy_share(v), arg_number(ev, &arg[3]));
  *out = worth_list(ev, KD_tuple, 2);
  out->u.list->at[0] = leaf(ev, two(ev, RC_DO_sub, lazy_share(p), up), p->tracked);
  out->u.list->at[1] = array_of(ev, v);
  (void)n;
}

void bi_optim_adam_step(Eval *ev, Worth *arg, u32 n, Worth *out) {
  Lazy *p = arg_tensor(ev, &arg[0]), *g = numbers(ev, &arg[1], p);
  Moment m = {.steps = arg_int(ev, &arg[4]),
              .first = numbers(ev, &arg[2], p),
              .second = numbers(ev, &arg[3], p)};
  Thing t = {
      .num = {arg_number(ev, &arg[5]), arg_number(ev, &arg[6]), arg_number(ev, &arg[7]), 1e-8}};
  Lazy *up = adam_move(ev, &t, &m, g);
  *out = worth_list(ev, KD_tuple, 3);
  out->u.list->at[0] = leaf(ev, two(ev, RC_DO_sub, lazy_share(p), up), p->tracked);
  out->u.list->at[1] = array_of(ev, m.first);
  out->u.list->at[2] = array_of(ev, m.second);
  (void)n;
}

void bi_tensor_clip_grad(Eval *ev, Worth *arg, u32 n, Worth *out) {
  const BoxList *l = arg_array(ev, &arg[0]);
  double most = arg_number(ev, &arg[1]), sum = 0;
  for (u64 i = 0; i < l->n; i++) sum += arg_number(ev, &l->at[i]) * arg_number(ev, &l->at[i]);
  double norm = sqrt(sum), k = norm > most ? most / norm : 1;
  *out = worth_list(ev, KD_array, l->n);
  for (u64 i = 0; i < l->n; i++) out->u.list->at[i] = worth_float(arg_number(ev, &l->at[i]) * k);
  (void)n;
}

/* ---- schedules ---- */

void bi_step_lr(Eval *ev, Worth *arg, u32 n, Worth *out) {
  i64 epoch = arg_int(ev, &arg[1]), size = arg_int(ev, &arg[2]);
  if (size < 1) ARG_BAD(ev, "step_lr(): the size of a step is %lld", (long long)size);
  i64 steps = epoch / size;
  *out = worth_float(arg_number(ev, &arg[0]) *
                     number_of(OP_pow, arg_number(ev, &arg[3]), (double)steps));
  (void)n;
}

void bi_exponential_lr(Eval *ev, Worth *arg, u32 n, Worth *out) {
  *out = worth_float(arg_number(ev, &arg[0]) *
                     number_of(OP_pow, arg_number(ev, &arg[2]), arg_number(ev, &arg[1])));
  (void)n;
}

void bi_cosine_annealing_lr(Eval *ev, Worth *arg, u32 n, Worth *out) {
  double most = arg_number(ev, &arg[0]), least = arg_number(ev, &arg[1]);
  double epoch = arg_number(ev, &arg[2]), total = arg_number(ev, &arg[3]);
  if (!(total > 0)) ARG_BAD(ev, "cosine_annealing_lr(): the number of epochs is not above 0");
  if (epoch > total) epoch = total;
  *out =
      worth_float(least + 0.5 * (most - least) * (1 + number_of(OP_cos, M_PI * epoch / total, 0)));
  (void)n;
}
