/* onnx_ops_training.c: one step of Adagrad, Adam and Momentum.
 *
 * Inputs: learning rate, step number, then lists of equal length: parameters, gradients, states.
 * Outputs: the lists that change.
 */
#include "front/onnx/onnx_builder.h"

/* Number of parameters if each has `lists` tensors; learning rate and step number as scalars. */
static u32 read_step(Build *b, u32 lists, Val *rate, Val *count) {
  u32 n = b->nin > 2 ? (b->nin - 2) / lists : 0;
  if (!n || b->nin != 2 + lists * n)
    on_bad(b, "there are %u inputs, expected 2 and %u lists of one length", b->nin, lists);
  *rate = mk_reshape(b->g, on_in(b, 0), NULL, 0);
  *count = mk_reshape(b->g, on_in(b, 1), NULL, 0);
  return n;
}

static Val tensor_of(Build *b, u32 list, u32 n, u32 i) {
  return mk_widen(b->g, on_in(b, 2 + list * n + i));
}

static void put(Build *b, u32 list, u32 n, u32 i, Val v) {
  if (on_wants(b, list * n + i)) b->out[list * n + i] = mk_cast(b->g, v, on_dtype(b, b->in[2 + i]));
}

/* The gradient plus that of the regularization term. */
static Val regularized(Build *b, Val x, Val gradient) {
  double k = on_float(b, "norm_coefficient", 0);
  return k ? mk_add(b->g, mk_mulk(b->g, x, k), gradient) : gradient;
}

static Val like(Build *b, Val scalar, Val x) {
  return mk_cast(b->g, scalar, on_dtype(b, x));
}

void build_adagrad(Build *b) {
  Val rate, count;
  u32 n = read_step(b, 3, &rate, &count);
  for (u32 i = 0; i < n; i++) {
    Val x = tensor_of(b, 0, n, i), g = regularized(b, x, tensor_of(b, 1, n, i)),
        h = tensor_of(b, 2, n, i);
    Val late = mk_addk(b->g, mk_mulk(b->g, like(b, count, x), on_float(b, "decay_factor", 0)), 1);
    h = mk_add(b->g, h, mk_mul(b->g, g, g));
    Val root = mk_addk(b->g, mk_sqrt(b->g, h), on_float(b, "epsilon", 1e-6f));
    put(b, 0, n, i,
        mk_sub(b->g, x, mk_div(b->g, mk_mul(b->g, mk_div(b->g, like(b, rate, x), late), g), root)));
    put(b, 1, n, i, h);
  }
}

/* 1 - k^count, the bias correction */
static Val unbiased(Build *b, double k, Val count) {
  Val power = mk_pow(b->g, mk_like(b->g, count, k), count);
  return mk_sub(b->g, mk_like(b->g, count, 1), power);
}

void build_adam(Build *b) {
  Graph *g = b->g;
  Val rate, count;
  u32 n = read_step(b, 4, &rate, &count);
  double alpha = on_float(b, "alpha", 0.9f), beta = on_float(b, "beta", 0.999f);
  for (u32 i = 0; i < n; i++) {
    Val x = tensor_of(b, 0, n, i), d = regularized(b, x, tensor_of(b, 1, n, i));
    Val fresh = mk_mulk(g, d, 1 - alpha);
    Val v = mk_add(g, mk_mulk(g, tensor_of(b, 2, n, i), alpha), fresh);
    Val square = mk_mulk(g, mk_mul(g, d, d), 1 - beta);
    Val h = mk_add(g, mk_mulk(g, tensor_of(b, 3, n, i), beta), square);
    Val root = mk_addk(g, mk_sqrt(g, h), on_float(b, "epsilon", 1e-6f));
    Val t = mk_cast(g, count, DT_f64), r = mk_cast(g, rate, DT_f64);
    Val bias = unbiased(b, alpha, t);
    Val right = mk_div(g, mk_mul(g, r, mk_sqrt(g, unbiased(b, beta, t))), bias);
    r = like(b, mk_select(g, mk_gt(g, t, mk_like(g, t, 0)), right, r), x);
    x = mk_sub(g, x, mk_mul(g, r, mk_div(g, v, root)));
    put(b, 0, n, i, mk_mulk(g, x, 1 - on_float(b, "norm_coefficient_post", 0)));
    put(b, 1, n, i, v);
    put(b, 2, n, i, h);
  }
}

void build_momentum(Build *b) {
  Graph *g = b->g;
  Val rate, count;
  u32 n = read_step(b, 3, &rate, &count);
  double alpha = on_float(b, "alpha", 0), beta = on_float(b, "beta", 0);
  bool nesterov = on_choice(b, "mode", "standard nesterov") == 1;
  for (u32 i = 0; i < n; i++) {
    Val x = tensor_of(b, 0, n, i), d = regularized(b, x, tensor_of(b, 1, n, i)),
        t = like(b, count, x);
    Val one = mk_like(g, t, 1);
    Val later = mk_like(g, t, beta);
    Val k = mk_select(g, mk_gt(g, t, mk_like(g, t, 0)), later, one);
    Val fresh = mk_mul(g, k, d);
    Val v = mk_add(g, mk_mulk(g, tensor_of(b, 2, n, i), alpha), fresh);
    Val move = nesterov ? mk_add(g, d, mk_mulk(g, v, alpha)) : v;
    put(b, 0, n, i, mk_sub(g, x, mk_mul(g, like(b, rate, x), move)));
    put(b, 1, n, i, v);
  }
}
