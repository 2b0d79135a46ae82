/* activation.c: activation functions. See compose.h. */
#include "front/compose/compose.h"

#include <math.h>

static Val negative(Graph *g, Val x) {
  return mk_lt(g, x, mk_like(g, x, 0));
}
static Val exp_less_one(Graph *g, Val x) {
  return mk_addk(g, mk_exp(g, x), -1);
}

Val compose_relu(Graph *g, Val x) {
  return mk_max(g, x, mk_like(g, x, 0));
}

Val compose_leaky_relu(Graph *g, Val x, Val slope) {
  Val scaled = mk_mul(g, x, slope);
  return mk_select(g, negative(g, x), scaled, x);
}

Val compose_sigmoid(Graph *g, Val x) {
  Val e = mk_exp(g, mk_neg(g, x));
  return mk_recip(g, mk_addk(g, e, 1));
}

Val compose_hard_sigmoid(Graph *g, Val x, double alpha, double beta) {
  return mk_clamp(g, mk_addk(g, mk_mulk(g, x, alpha), beta), 0, 1);
}

Val compose_silu(Graph *g, Val x, double alpha) {
  return mk_mul(g, x, compose_sigmoid(g, mk_mulk(g, x, alpha)));
}

Val compose_gelu(Graph *g, Val x, bool by_tanh) {
  Val t;
  if (by_tanh) {
    Val cube = mk_mul(g, mk_mul(g, x, x), x);
    Val inner =
        mk_mulk(g, mk_add(g, x, mk_mulk(g, cube, 0.044715)), sqrt(2 / 3.14159265358979323846));
    t = mk_tanh(g, inner);
  } else {
    t = mk_erf(g, mk_mulk(g, x, sqrt(0.5)));
  }
  Val shifted = mk_addk(g, t, 1);
  return mk_mul(g, mk_mulk(g, x, 0.5), shifted);
}

Val compose_elu(Graph *g, Val x, double alpha) {
  Val low = mk_mulk(g, exp_less_one(g, x), alpha);
  return mk_select(g, negative(g, x), low, x);
}

Val compose_celu(Graph *g, Val x, double alpha) {
  Val low = mk_mulk(g, exp_less_one(g, mk_div(g, x, mk_like(g, x, alpha))), alpha);
  return mk_select(g, negative(g, x), low, x);
}

Val compose_selu(Graph *g, Val x, double alpha, double gamma) {
  Val low = mk_mulk(g, mk_addk(g, mk_mulk(g, mk_exp(g, x), alpha), -alpha), gamma);
  Val high = mk_mulk(g, x, gamma);
  return mk_select(g, mk_gt(g, x, mk_like(g, x, 0)), high, low);
}

/* log(1 + exp(x)) without overflow: max(x, 0) + log(1 + exp(-|x|)) */
Val compose_softplus(Graph *g, Val x) {
  Val e = mk_exp(g, mk_neg(g, mk_abs(g, x)));
  Val tail = mk_log(g, mk_addk(g, e, 1));
  return mk_add(g, mk_max(g, x, mk_like(g, x, 0)), tail);
}

Val compose_softsign(Graph *g, Val x) {
  return mk_div(g, x, mk_addk(g, mk_abs(g, x), 1));
}

Val compose_mish(Graph *g, Val x) {
  return mk_mul(g, x, mk_tanh(g, compose_softplus(g, x)));
}
