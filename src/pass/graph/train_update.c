/* train_update.c: optimizers, as nodes.
 *
 * In: weights, which are states, their gradients d and the learning rate r. Out: their next values;
 * the moments are states too. Formulas and default parameters are PyTorch's; those of lion and lamb
 * are of the papers by Chen et al. (2023) and You et al. (2020):
 *
 *   sgd, momentum   v = mu v + d          w -= r v
 *   adam, adamw     m = b1 m + (1 - b1) d   v = b2 v + (1 - b2) d^2
 *                   w -= r / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps)
 *   rmsprop         v = b2 v + (1 - b2) d^2   w -= r d / (sqrt(v) + eps)
 *   adagrad         v = v + d^2             w -= r d / (sqrt(v) + eps)
 *   lion            w -= r (sign(b1 m + (1 - b1) d) + decay w)   m = b2 m + (1 - b2) d
 *   lamb            u = what adam subtracts + decay w            w -= r u |w| / |u|, if both norms
 *                   are positive, else w -= r u
 *
 * Powers of b1 and b2 are states that start at 1, so no step counter is needed.
 */
#include "pass/graph/train_internal.h"

#include <string.h>

typedef struct Update {
  Graph *g;
  const struct Optimizer *kind;
  double mu, b1, b2, eps, decay;
  Val rate;   /* in the type of w */
  Val p1, p2; /* powers of b1 and b2 after this step, f32 */
} Update;

/* Returns what is subtracted from w, before the learning rate is applied. */
typedef Val MoveFn(const Update *u, Val w, Val d);

struct Optimizer {
  const char *name;
  MoveFn *move;
  double mu, b1, b2, eps, decay; /* default parameters */
  bool powers;                   /* reads p1 and p2 */
  bool decoupled;                /* decoupled weight decay: not added to the gradients */
  bool trust;                    /* scale the move of a weight by the ratio of the norms */
};

static Val times(Graph *g, Val a, double k) {
  return mk_mul(g, a, mk_like(g, a, k));
}

/* A state in the shape of w that starts at zeros. */
static Val moment(const Update *u, Val w, const char *end) {
  Graph *g = u->g;
  Str name = str_fmt(g->c, "%s.%s", str_text(g->c, graph_val(g, w)->name), end);
  return train_add_state(g, *graph_type(g, w), name, NULL);
}

/* m = k m + (1 - k) x */
static Val blend(const Update *u, Val m, double k, Val x) {
  Val fresh = times(u->g, x, 1 - k);
  Val next = mk_add(u->g, times(u->g, m, k), fresh);
  train_set_next(u->g, m, next);
  return next;
}

static Val move_sgd(const Update *u, Val w, Val d) {
  (void)u, (void)w;
  return d;
}

static Val move_momentum(const Update *u, Val w, Val d) {
  Val v = moment(u, w, "v"), next = mk_add(u->g, times(u->g, v, u->mu), d);
  train_set_next(u->g, v, next);
  return next;
}

/* 1 - p, in the type of w */
static Val unbiased(const Update *u, Val p, Val w) {
  Graph *g = u->g;
  return mk_cast(g, mk_sub(g, mk_like(g, p, 1), p), graph_type(g, w)->dt);
}

static Val move_adam(const Update *u, Val w, Val d) {
  Graph *g = u->g;
  Val m = blend(u, moment(u, w, "m"), u->b1, d);
  Val square = mk_mul(g, d, d);
  Val v = blend(u, moment(u, w, "v"), u->b2, square);
  Val scale = mk_recip(g, mk_sqrt(g, unbiased(u, u->p2, w)));
  Val eps = mk_like(g, v, u->eps);
  Val low = mk_add(g, mk_mul(g, mk_sqrt(g, v), scale), eps);
  return mk_div(g, mk_mul(g, m, mk_recip(g, unbiased(u, u->p1, w))), low);
}

static Val move_rmsprop(const Update *u, Val w, Val d) {
  Graph *g = u->g;
  Val square = mk_mul(g, d, d);
  Val v = blend(u, moment(u, w, "v"), u->b2, square);
  Val eps = mk_like(g, v, u->eps);
  return mk_div(g, d, mk_add(g, mk_sqrt(g, v), eps));
}

static Val move_adagrad(const Update *u, Val w, Val d) {
  Graph *g = u->g;
  Val v = moment(u, w, "v"), next = mk_add(g, v, mk_mul(g, d, d));
  train_set_next(g, v, next);
  Val eps = mk_like(g, v, u->eps);
  return mk_div(g, d, mk_add(g, mk_sqrt(g, next), eps));
}

static Val move_lion(const Update *u, Val w, Val d) {
  Graph *g = u->g;
  Val m = moment(u, w, "m"), old = times(g, m, u->b1);
  Val direction = mk_sign(g, mk_add(g, old, times(g, d, 1 - u->b1)));
  blend(u, m, u->b2, d);
  return direction;
}

static const struct Optimizer optimizers[] = {
    {"sgd", move_sgd, 0, 0, 0, 0, 0, false, false, false},
    {"momentum", move_momentum, 0.9, 0, 0, 0, 0, false, false, false},
    {"adam", move_adam, 0, 0.9, 0.999, 1e-8, 0, true, false, false},
    {"adamw", move_adam, 0, 0.9, 0.999, 1e-8, 0.01, true, true, false},
    {"rmsprop", move_rmsprop, 0, 0, 0.99, 1e-8, 0, false, false, false},
    {"adagrad", move_adagrad, 0, 0, 0, 1e-10, 0, false, false, false},
    {"lion", move_lion, 0, 0.9, 0.99, 0, 0, false, true, false},
    {"lamb", move_adam, 0, 0.9, 0.999, 1e-6, 0.01, true, true, true},
};
enum { NOPTIMIZERS = sizeof optimizers / sizeof *optimizers };

static const struct Optimizer *find(Graph *g, const char *name) {
  u32 i = row_named(g->c, "optimizer", name, optimizers, NOPTIMIZERS, sizeof *optimizers);
  return &optimizers[i];
}

/* k to the power of the step number: a state that starts at 1. */
static Val power(Graph *g, double k, const char *name) {
  Tensor *one = tensor_new(&g->c->work, DT_f32, NULL, 0);
  tensor_set(one, 0, (Scalar){.f = 1});
  Val p = train_add_state(g, type_tensor(&g->c->work, DT_f32, NULL, 0), str_of(g->c, name), one);
  Val next = times(g, p, k);
  train_set_next(g, p, next);
  return next;
}

/* sqrt(sum(x^2)), a scalar in the type of x */
static Val norm(Graph *g, Val x) {
  i64 axes[MAX_RANK];
  for (u32 i = 0; i < MAX_RANK; i++) axes[i] = i;
  return mk_sqrt(g,
                 mk_reduce(g, OP_reduce_sum, mk_mul(g, x, x), axes, graph_type(g, x)->rank, false));
}

/* The move of lamb: u |w| / |u|, where u includes the weight decay. */
static Val trusted(const Update *u, Val w, Val move) {
  Graph *g = u->g;
  move = u->decay ? mk_add(g, move, times(g, w, u->decay)) : move;
  Val of_w = norm(g, w), of_move = norm(g, move), zero = mk_like(g, of_w, 0);
  Val both = mk_lt(g, zero, mk_min(g, of_w, of_move));
  Val one = mk_like(g, of_w, 1), ratio = mk_select(g, both, mk_div(g, of_w, of_move), one);
  return mk_mul(g, move, ratio);
}

static double value_or(double told, double usual) {
  return told >= 0 ? told : usual;
}

void train_update(Graph *g, const TrainOptions *o, Val rate, const Val *w, const Val *d, u32 n) {
  const struct Optimizer *kind = find(g, o->optimizer);
  Update u = {.g = g, .kind = kind};
  u.mu = value_or(o->momentum, kind->mu);
  u.b1 = value_or(o->beta1, kind->b1);
  u.b2 = value_or(o->beta2, kind->b2);
  u.eps = value_or(o->epsilon, kind->eps);
  u.decay = value_or(o->decay, kind->decay);
  if (kind->powers) {
    u.p1 = power(g, u.b1, "beta1.power");
    u.p2 = power(g, u.b2, "beta2.power");
  }
  for (u32 i = 0; i < n; i++) {
    Val x = w[i], by = d[i];
    if (!by) continue; /* the loss does not depend on it */
    u.rate = mk_cast(g, rate, graph_type(g, x)->dt);
    if (u.decay && !kind->decoupled) by = mk_add(g, by, times(g, x, u.decay));
    Val move = kind->move(&u, w[i], by);
    if (kind->trust) move = trusted(&u, w[i], move);
    move = mk_mul(g, u.rate, move);
    if (u.decay && kind->decoupled && !kind->trust) {
      Val less = times(g, u.rate, u.decay);
      x = mk_mul(g, x, mk_sub(g, mk_like(g, x, 1), less));
    }
    train_set_next(g, w[i], mk_sub(g, x, move));
  }
}
