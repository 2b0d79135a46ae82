/* lazy_ops.c: builds the graph of a lazy operation in f64, from layers of front/compose and core
 * operators.
 *
 * In: an operation and the values of its operands. Out: the value of its result; the caller sets
 * its shape. Shapes were checked when the operation was created.
 */
#include "lang/run/tensor.h"
#include "front/compose/compose.h"

#include <math.h>

const char *const lazy_op_name[LAZY_OP_COUNT] = {
#define LAZY_OP(name) #name,
#include "lang/run/lazy_ops.def"
#undef LAZY_OP
};

static u32 rank_of(Graph *g, Val v) {
  return graph_type(g, v)->rank;
}

static u32 all_axes(Graph *g, Val v, i64 *axes) {
  u32 n = rank_of(g, v);
  for (u32 i = 0; i < n; i++) axes[i] = i;
  return n;
}

static Val sum_all(Graph *g, Val v) {
  i64 axes[MAX_RANK];
  u32 n = all_axes(g, v, axes);
  return n ? mk_reduce(g, OP_reduce_sum, v, axes, n, false) : v;
}

static Val mean_all(Graph *g, Val v, u64 n) {
  i64 axes[MAX_RANK];
  if (n == UNKNOWN_COUNT) return mk_mean(g, v, axes, all_axes(g, v, axes), false);
  Val count = mk_like(g, v, (double)n);
  return mk_div(g, sum_all(g, v), count);
}

static Val softmax(Graph *g, const LazyTensor *t, Val x) {
  i64 axes[MAX_RANK];
  u32 n = all_axes(g, x, axes);
  if (!n) return mk_like(g, x, 1);
  if (t->attr[0] == 1) return compose_softmax(g, x, axes, n);
  return compose_softmax(g, x, &axes[n - 1], 1);
}

/* x [.., in], w [in, out], b [out] */
static Val linear(Graph *g, const Val *in) {
  return mk_add(g, mk_matmul(g, in[0], in[1]), in[2]);
}

static Val transpose(Graph *g, Val x) {
  i64 perm[MAX_RANK];
  u32 n = all_axes(g, x, perm);
  if (n < 2) return x;
  perm[n - 1] = n - 2;
  perm[n - 2] = n - 1;
  return mk_transpose(g, x, perm);
}

static Val of_axis(Graph *g, const LazyTensor *t, Val x, bool mean) {
  i64 axis = (i64)t->attr[0];
  return mean ? mk_mean(g, x, &axis, 1, false) : mk_reduce(g, OP_reduce_sum, x, &axis, 1, false);
}

static Val rows(Graph *g, const LazyTensor *t, Val x) {
  return mk_slice_axis(g, x, 0, (Dim)t->attr[0], (Dim)t->attr[1]);
}

/* A fraction between two classes counts as the lower class, as in one_hot(). */
static Val one_hot(Graph *g, const LazyTensor *t, Val x) {
  u32 rank = rank_of(g, x);
  Dim count = (Dim)t->attr[0];
  Val classes = mk_iota(g, graph_type(g, x)->dt, &count, 1, 0);
  Val hot = mk_map2(g, OP_eq, mk_unsqueeze(g, mk_floor(g, x), rank), classes);
  return mk_cast(g, hot, graph_type(g, x)->dt);
}

static Window window(i64 size, i64 stride, i64 pad) {
  Window w = {.n = 2};
  for (u32 i = 0; i < 2; i++) {
    w.size[i] = size;
    w.stride[i] = stride;
    w.dilation[i] = 1;
    w.lo[i] = w.hi[i] = w.given[i] = pad;
  }
  return w;
}

static Val conv(Graph *g, const LazyTensor *t, const Val *in) {
  Window w = window(t->in[1]->dim[3], (i64)t->attr[0], (i64)t->attr[1]);
  w.size[0] = t->in[1]->dim[2];
  Val y = window_conv(g, in[0], in[1], 1, w);
  return t->nin > 2 ? compose_bias(g, y, in[2]) : y;
}

static Val pool(Graph *g, const LazyTensor *t, Val x, bool mean) {
  Window w = window((i64)t->attr[0], (i64)t->attr[1], 0);
  return mean ? window_average(g, x, w, false) : window_pool(g, OP_pool_max, x, w, -INFINITY);
}

static u32 all_but_channels(u32 rank, i64 *axes) {
  u32 n = 0;
  for (u32 i = 0; i < rank; i++)
    if (i != 1) axes[n++] = i;
  return n;
}

static Val channel_mean(Graph *g, const LazyTensor *x, Val v, bool variance) {
  i64 axes[MAX_RANK];
  u32 n = all_but_channels(x->rank, axes);
  if (!variance) return mk_mean(g, v, axes, n, false);
  u64 count = x->dim[1] ? x->n / (u64)x->dim[1] : 1;
  Val d = mk_sub(g, v, mk_mean(g, v, axes, n, true));
  Val sum = mk_reduce(g, OP_reduce_sum, mk_mul(g, d, d), axes, n, false);
  return mk_div(g, sum, mk_like(g, v, count > 1 ? (double)(count - 1) : 1));
}

/* Normalizes over all axes except channels (axis 1), with a gain and an offset per channel. */
static Val batchnorm(Graph *g, const LazyTensor *t, const Val *in) {
  i64 axes[MAX_RANK];
  u32 n = all_but_channels(t->rank, axes);
  Val y;
  if (t->nin < 5)
    y = compose_normalize(g, in[0], axes, n, t->attr[0], NULL, NULL);
  else {
    Val scale = compose_per_channel(g, compose_rsqrt(g, in[4], t->attr[0]), in[0]);
    y = mk_mul(g, mk_sub(g, in[0], compose_per_channel(g, in[3], in[0])), scale);
  }
  if (t->nin < 3) return y;
  Val shift = compose_per_channel(g, in[2], y);
  return mk_add(g, mk_mul(g, y, compose_per_channel(g, in[1], y)), shift);
}

static Val layernorm(Graph *g, const LazyTensor *t, const Val *in) {
  i64 axis = (i64)t->rank - 1;
  Val y = compose_normalize(g, in[0], &axis, 1, t->attr[0], NULL, NULL);
  return t->nin < 3 ? y : compose_affine(g, y, in[1], in[2]);
}

/* ---- losses: shape [1] ---- */

static Val mse(Graph *g, const LazyTensor *t, const Val *in) {
  Val d = mk_sub(g, in[0], in[1]);
  return mean_all(g, mk_mul(g, d, d), t->in[0]->n);
}

static Val cross_entropy(Graph *g, const LazyTensor *t, const Val *in) {
  Val p = mk_clamp(g, in[0], 1e-10, 1 - 1e-10);
  return mean_all(g, mk_neg(g, mk_mul(g, in[1], mk_log(g, p))), t->in[0]->n);
}

static Val cross_entropy_logits(Graph *g, const LazyTensor *t, const Val *in) {
  const LazyTensor *z = t->in[0];
  i64 axis = (i64)z->rank - 1;
  u64 last = z->rank > 1 ? (u64)z->dim[z->rank - 1] : 0, rows = last ? z->n / last : 1;
  Val lp = z->rank ? compose_log_softmax(g, in[0], &axis, 1) : mk_like(g, in[0], 0);
  Val each = mk_neg(g, mk_mul(g, in[1], lp));
  if (z->n != UNKNOWN_COUNT) return mean_all(g, each, rows);
  each = mk_reduce(g, OP_reduce_sum, each, &axis, 1, false);
  return z->rank > 1 ? mean_all(g, each, UNKNOWN_COUNT) : each;
}

static Val bce(Graph *g, const LazyTensor *t, const Val *in) {
  Val p = mk_clamp(g, in[0], 1e-10, 1 - 1e-10), one = mk_like(g, p, 1);
  Val yes = mk_mul(g, in[1], mk_log(g, p));
  Val log = mk_log(g, mk_sub(g, one, p));
  Val no = mk_mul(g, mk_sub(g, one, in[1]), log);
  return mean_all(g, mk_neg(g, mk_add(g, yes, no)), t->in[0]->n);
}

/* ---- attention ---- */

/* q [.., n, d], k [.., m, d], mask that broadcasts against [.., n, m]: above 0.5 keeps */
static Val attention(Graph *g, const LazyTensor *t, const Val *in) {
  i64 axis = (i64)t->rank - 1;
  double d = (double)t->in[0]->dim[t->in[0]->rank - 1];
  Val s = mk_mulk(g, mk_matmul(g, in[0], transpose(g, in[1])), 1 / sqrt(d));
  if (t->nin > 2) {
    Val keep = mk_gt(g, in[2], mk_like(g, in[2], 0.5));
    s = mk_select(g, keep, s, mk_like(g, s, -1e9));
  }
  return compose_softmax(g, s, &axis, 1);
}

/* ---- recurrent layers ---- */

/* Gate i of the concatenated gates. */
static Val gate(Graph *g, Val all, i64 h, u32 i) {
  return mk_slice_axis(g, all, 1, (Dim)(i * h), (Dim)h);
}

static Val step_of(Graph *g, Val x, i64 s) {
  return mk_squeeze(g, mk_slice_axis(g, x, 1, s, 1), 1);
}

static Val start(Graph *g, const LazyTensor *t, Val x) {
  const Dim shape[2] = {t->dim[0], t->dim[2]};
  return mk_broadcast(g, mk_like(g, x, 0), shape, 2);
}

static void lstm_step(Graph *g, const LazyTensor *t, const Val *in, Val x, Val *state) {
  i64 h = t->dim[2];
  Val back = mk_matmul(g, state[0], in[2]);
  Val all = mk_add(g, mk_add(g, mk_matmul(g, x, in[1]), back), in[3]);
  Val i = compose_sigmoid(g, gate(g, all, h, 0)), f = compose_sigmoid(g, gate(g, all, h, 1));
  Val c = mk_tanh(g, gate(g, all, h, 2)), o = compose_sigmoid(g, gate(g, all, h, 3));
  Val fresh = mk_mul(g, i, c);
  state[1] = mk_add(g, mk_mul(g, f, state[1]), fresh);
  state[0] = mk_mul(g, o, mk_tanh(g, state[1]));
}

/* Gates r z n, concatenated; the reset gate is applied before the product; wn: weights of gate n */
static void gru_step(Graph *g, const LazyTensor *t, const Val *in, Val wn, Val x, Val *state) {
  i64 h = t->dim[2];
  Val hid = state[0];
  Val xi = mk_add(g, mk_matmul(g, x, in[1]), in[3]);
  Val hh = mk_matmul(g, hid, in[2]);
  Val hr = gate(g, hh, h, 0);
  Val r = compose_sigmoid(g, mk_add(g, gate(g, xi, h, 0), hr));
  Val hz = gate(g, hh, h, 1);
  Val z = compose_sigmoid(g, mk_add(g, gate(g, xi, h, 1), hz));
  Val hn = mk_matmul(g, mk_mul(g, r, hid), wn);
  Val n = mk_tanh(g, mk_add(g, gate(g, xi, h, 2), hn));
  Val keep = mk_mul(g, z, hid);
  state[0] = mk_add(g, keep, mk_mul(g, mk_sub(g, mk_like(g, z, 1), z), n));
}

typedef struct CellSteps {
  const LazyTensor *t;
  const Val *in;
  Val rows, wn; /* rows: x with time as the first axis, if the number of steps is symbolic */
} CellSteps;

static void step(Graph *g, const CellSteps *s, Val x, Val *state) {
  if (s->t->op == LOP_lstm)
    lstm_step(g, s->t, s->in, x, state);
  else
    gru_step(g, s->t, s->in, s->wn, x, state);
}

static void step_in_loop(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  const CellSteps *s = user;
  (void)cond;
  step(g, s, mk_gather(g, s->rows, i, 0), carried);
  scan[0] = carried[0];
}

/* Unrolled if the number of steps is known, else a loop. */
static Val recurrent(Graph *g, const LazyTensor *t, const Val *in) {
  CellSteps s = {.t = t, .in = in};
  Val state[2] = {start(g, t, in[0])}, all;
  u32 n = t->op == LOP_lstm ? 2 : 1;
  state[1] = state[0];
  if (n == 1) s.wn = mk_slice_axis(g, in[2], 1, (Dim)(2 * t->dim[2]), (Dim)t->dim[2]);
  if (!dim_is_const(t->dim[1])) {
    const i64 turned[3] = {1, 0, 2};
    s.rows = mk_transpose(g, in[0], turned);
    Val trip = mk_dims_as(g, DT_i64, 0, &t->dim[1], 1);
    mk_loop(g, trip, 0, state, n, &all, 1, step_in_loop, &s);
    return mk_transpose(g, all, turned);
  }
  i64 steps = t->dim[1];
  Val *out = NEWS(&g->c->work, Val, steps + 1);
  for (i64 i = 0; i < steps; i++) {
    step(g, &s, step_of(g, in[0], i), state);
    out[i] = mk_unsqueeze(g, state[0], 1);
  }
  return mk_concat(g, out, (u32)steps, 1);
}

/* ---- all ---- */

static Val two(Graph *g, Op op, const Val *in) {
  return mk_map2(g, op, in[0], in[1]);
}

static Val one(Graph *g, const LazyTensor *t, const Val *in) {
  switch (t->op) {
  case LOP_same: return mk_mul(g, in[0], mk_like(g, in[0], 1));
  case LOP_neg: return mk_neg(g, in[0]);
  case LOP_abs: return mk_abs(g, in[0]);
  case LOP_sqrt: return mk_sqrt(g, in[0]);
  case LOP_exp: return mk_exp(g, in[0]);
  case LOP_log: return mk_log(g, in[0]);
  case LOP_sin: return mk_sin(g, in[0]);
  case LOP_cos: return mk_cos(g, in[0]);
  case LOP_tan: return mk_tan(g, in[0]);
  case LOP_relu: return compose_relu(g, in[0]);
  case LOP_sigmoid: return compose_sigmoid(g, in[0]);
  case LOP_tanh: return mk_tanh(g, in[0]);
  case LOP_gelu: return compose_gelu(g, in[0], true);
  case LOP_leaky_relu: return compose_leaky_relu(g, in[0], mk_like(g, in[0], t->attr[0]));
  case LOP_elu: return compose_elu(g, in[0], t->attr[0]);
  case LOP_softmax: return softmax(g, t, in[0]);
  case LOP_transpose: return transpose(g, in[0]);
  case LOP_swap12: return mk_transpose(g, in[0], (const i64[]){0, 2, 1, 3});
  case LOP_sum: return sum_all(g, in[0]);
  case LOP_mean: return mean_all(g, in[0], t->in[0]->n);
  case LOP_sum_axis: return of_axis(g, t, in[0], false);
  case LOP_mean_axis: return of_axis(g, t, in[0], true);
  case LOP_slice: return rows(g, t, in[0]);
  case LOP_one_hot: return one_hot(g, t, in[0]);
  case LOP_maxpool2d: return pool(g, t, in[0], false);
  case LOP_avgpool2d: return pool(g, t, in[0], true);
  default: return in[0]; /* reshape: the caller sets the shape */
  }
}

Val lazy_op_build(Graph *g, const LazyTensor *t, const Val *in) {
  switch (t->op) {
  case LOP_add: return two(g, OP_add, in);
  case LOP_sub: return two(g, OP_sub, in);
  case LOP_mul: return two(g, OP_mul, in);
  case LOP_div: return two(g, OP_div, in);
  case LOP_pow: return two(g, OP_pow, in);
  case LOP_max: return two(g, OP_max, in);
  case LOP_min: return two(g, OP_min, in);
  case LOP_matmul: return mk_matmul(g, in[0], in[1]);
  case LOP_linear: return linear(g, in);
  case LOP_concat: return mk_concat(g, in, t->nin, (i64)t->attr[0]);
  case LOP_gather: return mk_gather(g, in[1], mk_cast(g, in[0], DT_i64), 0);
  case LOP_conv2d: return conv(g, t, in);
  case LOP_batchnorm: return batchnorm(g, t, in);
  case LOP_channel_mean: return channel_mean(g, t->in[0], in[0], false);
  case LOP_channel_variance: return channel_mean(g, t->in[0], in[0], true);
  case LOP_layernorm: return layernorm(g, t, in);
  case LOP_mse: return mse(g, t, in);
  case LOP_cross_entropy: return cross_entropy(g, t, in);
  case LOP_cross_entropy_logits: return cross_entropy_logits(g, t, in);
  case LOP_bce: return bce(g, t, in);
  case LOP_attention_weights: return attention(g, t, in);
  case LOP_lstm:
  case LOP_gru: return recurrent(g, t, in);
  default: return one(g, t, in);
  }
}
