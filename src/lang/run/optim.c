/* optim.c: optimizers, schedules, gradient clipping.
 *
 * A step returns new tensors. It computes them, their gradients and a pending loss in one program:
 * forward, backward and update of a training step. Optimizer state belongs to a line of tensors: a
 * parameter and its successors. Values that change from step to step are operands, so that the
 * program is compiled once.
 */
#include "lang/run/lang_object.h"

#include <math.h>
#include <string.h>

/* ---- constructors ---- */

static LangValue optimizer(Eval *ev, ObjectKind what, const LangValue *arg, u32 n,
                           const double *otherwise, u32 count) {
  LangObject *t = object_new(ev, what);
  LangValue out = value_object(t);
  for (u32 i = 0; i < count; i++) t->num[i] = i < n ? arg_number(ev, &arg[i]) : otherwise[i];
  return out;
}

void bi_sgd_create(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = optimizer(ev, OBJ_sgd, arg, n, (const double[]){0, 0, 0}, 3);
}

void bi_adam_create(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = optimizer(ev, OBJ_adam, arg, n, (const double[]){0, 0.9, 0.999, 1e-8}, 4);
}

void bi_rmsprop_create(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = optimizer(ev, OBJ_rmsprop, arg, n, (const double[]){0, 0.99, 1e-8}, 3);
}

/* ---- operations of a step; each takes its operands ---- */

static LazyTensor *two(Eval *ev, LazyOp op, LazyTensor *x, LazyTensor *y) {
  LazyTensor *t = tensor_broadcast_op(ev, op, x, y, "the step");
  lazy_drop(ev, x);
  lazy_drop(ev, y);
  return t;
}

static LazyTensor *scaled_by(Eval *ev, LazyTensor *x, double k) {
  return two(ev, LOP_mul, x, lazy_scalar(ev, k));
}

static LazyTensor *sqrt_of(Eval *ev, LazyTensor *x) {
  LazyTensor *t = lazy_map(ev, LOP_sqrt, x, NULL, 0);
  lazy_drop(ev, x);
  return t;
}

/* b m + (1 - b) g; NULL: m is zero */
static LazyTensor *moving_average(Eval *ev, LazyTensor *m, double b, LazyTensor *g) {
  LazyTensor *new = scaled_by(ev, g, 1 - b);
  return m ? two(ev, LOP_add, scaled_by(ev, lazy_retain(m), b), new) : new;
}

static void set_moment(Eval *ev, LazyTensor **slot, LazyTensor *x) {
  LazyTensor *old = *slot;
  *slot = lazy_retain(x);
  lazy_drop(ev, old);
}

static LazyTensor *sgd_update(Eval *ev, const LangObject *t, OptimizerState *m, LazyTensor *p,
                              LazyTensor *g) {
  if (t->num[2] != 0) {
    LazyTensor *decay = scaled_by(ev, lazy_retain(p), t->num[2]);
    decay->tracked = false; /* else the moment would keep the operations of all steps */
    g = two(ev, LOP_add, g, decay);
  }
  if (t->num[1] != 0) {
    if (m->first) g = two(ev, LOP_add, scaled_by(ev, lazy_retain(m->first), t->num[1]), g);
    set_moment(ev, &m->first, g);
  }
  return scaled_by(ev, g, t->num[0]);
}

static LazyTensor *adam_update(Eval *ev, const LangObject *t, OptimizerState *m, LazyTensor *g) {
  double b1 = t->num[1], b2 = t->num[2], n = (double)m->steps;
  LazyTensor *first = moving_average(ev, m->first, b1, lazy_retain(g));
  LazyTensor *second = moving_average(ev, m->second, b2, two(ev, LOP_mul, lazy_retain(g), g));
  set_moment(ev, &m->first, first);
  set_moment(ev, &m->second, second);
  LazyTensor *by = sqrt_of(ev, scaled_by(ev, second, 1 / (1 - number_of(OP_pow, b2, n))));
  LazyTensor *up = scaled_by(ev, first, t->num[0] / (1 - number_of(OP_pow, b1, n)));
  return two(ev, LOP_div, up, two(ev, LOP_add, by, lazy_scalar(ev, t->num[3])));
}

static LazyTensor *rmsprop_update(Eval *ev, const LangObject *t, OptimizerState *m, LazyTensor *g) {
  LazyTensor *square =
      moving_average(ev, m->second, t->num[1], two(ev, LOP_mul, lazy_retain(g), lazy_retain(g)));
  set_moment(ev, &m->second, square);
  /* in a fixed order: program keys depend on it */
  LazyTensor *eps = lazy_scalar(ev, t->num[2]);
  LazyTensor *by = two(ev, LOP_add, sqrt_of(ev, square), eps);
  return two(ev, LOP_div, scaled_by(ev, g, t->num[0]), by);
}

/* The amount to subtract from p. */
static LazyTensor *update_of(Eval *ev, LangObject *t, LazyTensor *p) {
  OptimizerState *m = object_moment(ev, t, lazy_autograd(ev, p)->line);
  LazyTensor *g = lazy_retain(p->id->grad);
  m->steps++;
  switch (t->what) {
  case OBJ_adam: return adam_update(ev, t, m, g);
  case OBJ_rmsprop: return rmsprop_update(ev, t, m, g);
  default: return sgd_update(ev, t, m, p, g);
  }
}

static void add_pending_tensor(Eval *ev, LazyTensors *all, LazyTensor *t) {
  if (t && !t->data) *vec_push(&ev->stack, all) = t;
}

/* The result of p - update becomes a leaf, where the next step starts. */
static void replace_params(Eval *ev, LangObject *opt, const ListObj *old, ListObj *new) {
  for (u64 i = 0; i < old->n; i++) {
    LazyTensor *p = new->at[i].u.lazy;
    if (p == old->at[i].u.lazy) continue;
    lazy_drop_inputs(ev, p);
    p->tracked = true;
    lazy_autograd(ev, p)->line = lazy_autograd(ev, old->at[i].u.lazy)->line;
  }
  (void)opt;
}

void optim_step(Eval *ev, LangObject *opt, const ListObj *old, const LazyTensors *also,
                LangValue *out) {
  Mark mark = arena_mark(&ev->stack);
  LazyTensors all = {0};
  *out = value_list(ev, KD_array, old->n);
  for (u64 i = 0; i < old->n; i++) {
    LazyTensor *p = arg_tensor(ev, &old->at[i]);
    if (!lazy_autograd(ev, p)->grad) { /* the loss does not depend on it */
      out->u.list->at[i] = value_retain(&old->at[i]);
      continue;
    }
    LazyTensor *new = two(ev, LOP_sub, lazy_retain(p), update_of(ev, opt, p));
    out->u.list->at[i] = value_tensor(new);
    add_pending_tensor(ev, &all, new);
    OptimizerState *m = object_moment(ev, opt, p->id->line);
    add_pending_tensor(ev, &all, m->first);
    add_pending_tensor(ev, &all, m->second);
  }
  if (ev->last_loss) add_pending_tensor(ev, &all, ev->last_loss);
  for (u32 i = 0; also && i < also->n; i++) add_pending_tensor(ev, &all, also->at[i]);
  grads_pending(ev, &all);
  if (all.n) lazy_force(ev, all.at, all.n);
  replace_params(ev, opt, old, out->u.list);
  grads_release_graph(ev);
  arena_rewind(&ev->stack, mark);
}

static void step(Eval *ev, LangValue *arg, ObjectKind what, LangValue *out) {
  LangObject *t = arg_object(ev, &arg[0], "an optimizer");
  if (t->what != what)
    ARG_BAD(ev, "%s() takes another optimizer, got %s", builtin_name(ev), object_kind_name(t));
  optim_step(ev, t, arg_array(ev, &arg[1]), NULL, out);
}

void bi_sgd_step(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  step(ev, arg, OBJ_sgd, out);
  (void)n;
}

void bi_adam_step(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  step(ev, arg, OBJ_adam, out);
  (void)n;
}

void bi_rmsprop_step(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  step(ev, arg, OBJ_rmsprop, out);
  (void)n;
}

/* ---- explicit steps ---- */

/* A tensor of the shape of p, or an array of as many numbers. */
static LazyTensor *numbers(Eval *ev, const LangValue *d, const LazyTensor *p) {
  if (d->kind == KD_tensor) {
    const LazyTensor *t = d->u.lazy;
    if (t->rank != p->rank || memcmp(t->dim, p->dim, p->rank * sizeof *p->dim))
      ARG_BAD(ev, "%s(): shape %s for a parameter of shape %s", builtin_name(ev),
              dims_text(ev, t->dim, t->rank), dims_text(ev, p->dim, p->rank));
    return lazy_retain(d->u.lazy);
  }
  const ListObj *l = arg_array(ev, d);
  if (l->n != p->n)
    ARG_BAD(ev, "%s(): %llu numbers for shape %s", builtin_name(ev), (unsigned long long)l->n,
            dims_text(ev, p->dim, p->rank));
  LazyTensor *t = lazy_new(ev, p->dim, p->rank);
  for (u64 i = 0; i < l->n; i++) t->data[i] = arg_number(ev, &l->at[i]);
  return t;
}

static LangValue leaf(Eval *ev, LazyTensor *t, bool tracked) {
  lazy_data(ev, t);
  lazy_drop_inputs(ev, t);
  t->tracked = tracked;
  return value_tensor(t);
}

static LangValue array_of(Eval *ev, LazyTensor *t) { /* takes t */
  LangValue out = lazy_to_array(ev, t);
  lazy_drop(ev, t);
  return out;
}

void bi_optim_sgd_step(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *p = arg_tensor(ev, &arg[0]), *g = numbers(ev, &arg[1], p);
  *out = leaf(ev, two(ev, LOP_sub, lazy_retain(p), scaled_by(ev, g, arg_number(ev, &arg[2]))),
              p->tracked);
  (void)n;
}

void bi_tensor_update_inplace(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  bi_optim_sgd_step(ev, arg, n, out);
  out->u.lazy->tracked = true;
}

void bi_optim_sgd_momentum_step(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *p = arg_tensor(ev, &arg[0]), *g = numbers(ev, &arg[1], p),
             *v = numbers(ev, &arg[2], p);
  v = two(ev, LOP_add, scaled_by(ev, v, arg_number(ev, &arg[4])), g);
  LazyTensor *up = scaled_by(ev, lazy_retain(v), arg_number(ev, &arg[3]));
  *out = value_list(ev, KD_tuple, 2);
  out->u.list->at[0] = leaf(ev, two(ev, LOP_sub, lazy_retain(p), up), p->tracked);
  out->u.list->at[1] = array_of(ev, v);
  (void)n;
}

void bi_optim_adam_step(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *p = arg_tensor(ev, &arg[0]), *g = numbers(ev, &arg[1], p);
  OptimizerState m = {.steps = arg_int(ev, &arg[4]),
                      .first = numbers(ev, &arg[2], p),
                      .second = numbers(ev, &arg[3], p)};
  LangObject t = {
      .num = {arg_number(ev, &arg[5]), arg_number(ev, &arg[6]), arg_number(ev, &arg[7]), 1e-8}};
  LazyTensor *up = adam_update(ev, &t, &m, g);
  *out = value_list(ev, KD_tuple, 3);
  out->u.list->at[0] = leaf(ev, two(ev, LOP_sub, lazy_retain(p), up), p->tracked);
  out->u.list->at[1] = array_of(ev, m.first);
  out->u.list->at[2] = array_of(ev, m.second);
  (void)n;
}

void bi_tensor_clip_grad(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  const ListObj *l = arg_array(ev, &arg[0]);
  double most = arg_number(ev, &arg[1]), sum = 0;
  for (u64 i = 0; i < l->n; i++) sum += arg_number(ev, &l->at[i]) * arg_number(ev, &l->at[i]);
  double norm = sqrt(sum), k = norm > most ? most / norm : 1;
  *out = value_list(ev, KD_array, l->n);
  for (u64 i = 0; i < l->n; i++) out->u.list->at[i] = value_float(arg_number(ev, &l->at[i]) * k);
  (void)n;
}

/* ---- learning rate schedules ---- */

void bi_step_lr(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  i64 epoch = arg_int(ev, &arg[1]), size = arg_int(ev, &arg[2]);
  if (size < 1)
    ARG_BAD(ev, "step_lr(): expected a step size of at least 1, got %lld", (long long)size);
  i64 steps = epoch / size;
  *out = value_float(arg_number(ev, &arg[0]) *
                     number_of(OP_pow, arg_number(ev, &arg[3]), (double)steps));
  (void)n;
}

void bi_exponential_lr(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = value_float(arg_number(ev, &arg[0]) *
                     number_of(OP_pow, arg_number(ev, &arg[2]), arg_number(ev, &arg[1])));
  (void)n;
}

void bi_cosine_annealing_lr(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  double most = arg_number(ev, &arg[0]), least = arg_number(ev, &arg[1]);
  double epoch = arg_number(ev, &arg[2]), total = arg_number(ev, &arg[3]);
  if (!(total > 0)) ARG_BAD(ev, "cosine_annealing_lr(): expected a positive number of epochs");
  if (epoch > total) epoch = total;
  *out =
      value_float(least + 0.5 * (most - least) * (1 + number_of(OP_cos, M_PI * epoch / total, 0)));
  (void)n;
}
