/* tflite_ops_math.c: elementwise operators.
 *
 * Linear ones compute on q - zero of quantized operands, the others on real values; see
 * tflite_builder.c. Comparisons and logic keep their types.
 */
#include "front/tflite/tflite_import.h"

#include <math.h>

#define LITE_PI 3.14159265358979323846

/* arg: OP_add, OP_sub. Operands are shifted to the left and scaled by at most 1/2, so that the
 * larger scale keeps all bits, as the kernels of TensorFlow Lite do. */
static Val linear_sum(LiteNode *b) {
  double s[2], step = (double)lite_result(b, 0)->q.scale[0];
  int shift = lite_result(b, 0)->dt == DT_i16 ? 15 : 20;
  Val in[2];
  for (u32 i = 0; i < 2; i++) s[i] = (double)lite_operand(b, i)->q.scale[0];
  double twice = 2 * fmax(s[0], s[1]);
  for (u32 i = 0; i < 2; i++) {
    Val x = lite_sub_zero_point(b, lite_in(b, i), lite_operand(b, i));
    bool half = 2 * s[i] == twice;
    x = mk_shl(b->g, x, mk_like(b->g, x, shift - half));
    in[i] = half ? x : lite_mul_quantized1(b, x, s[i] / twice);
  }
  Val y = mk_map2(b->g, (Op)b->arg, in[0], in[1]);
  return lite_mul_quantized1(b, y, twice / ldexp(step, shift));
}

/* Factors are computed in f32 where the kernels of TensorFlow Lite do so. */
static Val linear_product(LiteNode *b) {
  Val x = lite_sub_zero_point(b, lite_in(b, 0), lite_operand(b, 0));
  Val y = lite_sub_zero_point(b, lite_in(b, 1), lite_operand(b, 1));
  float k = lite_operand(b, 0)->q.scale[0] * lite_operand(b, 1)->q.scale[0];
  k /= lite_result(b, 0)->q.scale[0];
  return lite_mul_quantized1(b, mk_mul(b->g, x, y), (double)k);
}

/* Field 0 of the options is the fused activation. */
void lite_binary(LiteNode *b) {
  i64 act = flat_i8(&b->op->opt, 0, LA_none);
  if (lite_is_linear(b, 2) && b->arg != OP_div && act != LA_tanh) {
    Val y = b->arg == OP_mul ? linear_product(b) : linear_sum(b);
    lite_set_stored(b, 0, lite_stored(b, y, lite_result(b, 0), act));
    return;
  }
  Val y = lite_real(b, 1);
  y = mk_map2(b->g, (Op)b->arg, lite_real(b, 0), y);
  lite_set_activated(b, 0, y, act);
}

void lite_binary_plain(LiteNode *b) {
  Val y = lite_real(b, 1);
  lite_set_real(b, 0, mk_map2(b->g, (Op)b->arg, lite_real(b, 0), y));
}

void lite_unary(LiteNode *b) {
  lite_set_real(b, 0, mk_map1(b->g, (Op)b->arg, lite_real(b, 0)));
}

/* Quantized operands as integers in units of 1/256, which TensorFlow Lite compares. */
static Val comparable(LiteNode *b, u32 i) {
  const LiteTensor *t = lite_operand(b, i);
  if (!lite_is_quant(t) || t->q.n != 1) return lite_real(b, i);
  Val x = mk_mulk(b->g, lite_sub_zero_point(b, lite_in(b, i), t), 256);
  return lite_mul_quantized1(b, x, (double)t->q.scale[0]);
}

void lite_compare(LiteNode *b) {
  bool stored = lite_same_quant(lite_operand(b, 0), lite_operand(b, 1));
  Val x = stored ? lite_in(b, 0) : comparable(b, 0), y = stored ? lite_in(b, 1) : comparable(b, 1);
  lite_set_stored(b, 0, mk_map2(b->g, (Op)b->arg, x, y));
}

void lite_logical(LiteNode *b) {
  Val x = lite_in(b, 0);
  lite_set_stored(b, 0,
                  b->op->nin > 1 ? mk_map2(b->g, (Op)b->arg, x, lite_in(b, 1))
                                 : mk_map1(b->g, (Op)b->arg, x));
}

/* arg: of LiteActivation */
void lite_relu(LiteNode *b) {
  const LiteTensor *x = lite_operand(b, 0), *out = lite_result(b, 0);
  if (lite_same_quant(x, out))
    lite_set_stored(b, 0, lite_clamp_activation(b, lite_in(b, 0), out, b->arg));
  else if (lite_is_linear(b, 1))
    lite_set_stored(b, 0,
                    lite_stored(b,
                                lite_mul_quantized1(b, lite_sub_zero_point(b, lite_in(b, 0), x),
                                                    (double)(float)lite_ratio(b, 0)),
                                out, b->arg));
  else
    lite_set_activated(b, 0, lite_real(b, 0), b->arg);
}

void lite_relu_0_to_1(LiteNode *b) {
  lite_set_real(b, 0, mk_clamp(b->g, lite_real(b, 0), 0, 1));
}

void lite_logistic(LiteNode *b) {
  lite_set_real(b, 0, compose_sigmoid(b->g, lite_real(b, 0)));
}

void lite_square(LiteNode *b) {
  Val x = lite_real(b, 0);
  lite_set_real(b, 0, mk_mul(b->g, x, x));
}

void lite_squared_difference(LiteNode *b) {
  Val d = lite_real(b, 1);
  d = mk_sub(b->g, lite_real(b, 0), d);
  lite_set_real(b, 0, mk_mul(b->g, d, d));
}

void lite_rsqrt(LiteNode *b) {
  lite_set_real(b, 0, mk_recip(b->g, mk_sqrt(b->g, lite_real(b, 0))));
}

/* Computes on stored integers if all three have the same quantization; nothing is rounded. */
void lite_extreme(LiteNode *b) {
  const LiteTensor *x = lite_operand(b, 0), *y = lite_operand(b, 1), *out = lite_result(b, 0);
  if (lite_same_quant(x, out) && lite_same_quant(y, out)) {
    Val second = lite_in(b, 1);
    lite_set_stored(b, 0, mk_map2(b->g, (Op)b->arg, lite_in(b, 0), second));
  } else {
    lite_binary_plain(b);
  }
}

/* ---- division ---- */

/* Floor: subtracts 1 if the quotient was rounded up. */
void lite_floor_div(LiteNode *b) {
  Val x = lite_real(b, 0), y = lite_real(b, 1), q = mk_div(b->g, x, y);
  if (dtype_is_float(lite_dt(b, q))) {
    lite_set_real(b, 0, mk_floor(b->g, q));
    return;
  }
  Val zero = mk_like(b->g, x, 0), rest = mk_ne(b->g, mk_mul(b->g, q, y), x);
  Val signs = mk_lt(b->g, y, zero);
  signs = mk_ne(b->g, mk_lt(b->g, x, zero), signs);
  Val less = mk_addk(b->g, q, -1);
  lite_set_real(b, 0, mk_select(b->g, mk_and(b->g, rest, signs), less, q));
}

/* ---- activations ---- */

/* x if x >= 0, else x times slopes, in integers; by: scale of the slope steps. */
static void give_leaky(LiteNode *b, Val x, Val sloped, float by) {
  float in = lite_operand(b, 0)->q.scale[0], out = lite_result(b, 0)->q.scale[0];
  Val above = mk_ge(b->g, x, mk_like(b->g, x, 0));
  Val up = lite_mul_quantized1(b, x, (double)(in / out)),
      down = lite_mul_quantized1(b, sloped, (double)(in * by / out));
  lite_set_stored(b, 0,
                  lite_stored(b, mk_select(b->g, above, up, down), lite_result(b, 0), LA_none));
}

void lite_leaky_relu(LiteNode *b) {
  double alpha = (double)flat_f32(&b->op->opt, 0, 0);
  if (lite_is_linear(b, 1) && alpha > 0) {
    Val x = lite_sub_zero_point(b, lite_in(b, 0), lite_operand(b, 0));
    give_leaky(b, x, x, (float)alpha);
    return;
  }
  Val x = lite_real(b, 0);
  lite_set_real(b, 0, compose_leaky_relu(b->g, x, mk_like(b->g, x, alpha)));
}

void lite_prelu(LiteNode *b) {
  if (lite_is_linear(b, 2)) {
    Val x = lite_sub_zero_point(b, lite_in(b, 0), lite_operand(b, 0));
    Val slope = lite_sub_zero_point(b, lite_in(b, 1), lite_operand(b, 1));
    give_leaky(b, x, mk_mul(b->g, x, slope), lite_operand(b, 1)->q.scale[0]);
    return;
  }
  Val slope = lite_real(b, 1);
  lite_set_real(b, 0, compose_leaky_relu(b->g, lite_real(b, 0), slope));
}

void lite_elu(LiteNode *b) {
  lite_set_real(b, 0, compose_elu(b->g, lite_real(b, 0), 1));
}

void lite_hard_swish(LiteNode *b) {
  Val x = lite_real(b, 0);
  Val part = mk_clamp(b->g, mk_addk(b->g, x, 3), 0, 6);
  lite_set_real(b, 0, mk_mulk(b->g, mk_mul(b->g, x, part), 1.0 / 6));
}

void lite_gelu(LiteNode *b) {
  lite_set_real(b, 0, compose_gelu(b->g, lite_real(b, 0), flat_u8(&b->op->opt, 0, 0) != 0));
}

/* ---- selection ---- */

/* arg 1: a condition of rank 1 may select rows. */
void lite_select(LiteNode *b) {
  Val c = lite_in(b, 0), x, y;
  const LiteTensor *out = lite_result(b, 0);
  bool stored =
      lite_same_quant(lite_operand(b, 1), out) && lite_same_quant(lite_operand(b, 2), out);
  x = stored ? lite_in(b, 1) : lite_real(b, 1);
  y = stored ? lite_in(b, 2) : lite_real(b, 2);
  u32 rank = lite_rank(b, x);
  if (b->arg && lite_rank(b, c) == 1 && rank > 1) c = mk_expand_tail(b->g, c, rank - 1);
  x = mk_select(b->g, c, x, y);
  if (stored)
    lite_set_stored(b, 0, x);
  else
    lite_set_real(b, 0, x);
}

void lite_add_n(LiteNode *b) {
  Val y = lite_real(b, 0);
  for (u32 i = 1; i < b->op->nin; i++) y = mk_add(b->g, y, lite_real(b, i));
  lite_set_real(b, 0, y);
}

/* Angle of the point (x, y) in -pi..pi: atan of the ratio if it is at most 1, else of its inverse;
 * plus half a turn left of the y axis. */
void lite_atan2(LiteNode *b) {
  Graph *g = b->g;
  Val y = lite_real(b, 0), x = lite_real(b, 1), zero = mk_like(g, x, 0);
  Val ax = mk_abs(g, x), ay = mk_abs(g, y), steep = mk_gt(g, ay, ax);
  Val top = mk_min(g, ax, ay), bottom = mk_max(g, ax, ay);
  Val none = mk_eq(g, bottom, zero), same = mk_eq(g, top, bottom);
  Val ratio = mk_div(g, top, bottom);
  ratio = mk_select(g, same, mk_like(g, x, 1), ratio); /* both infinite */
  Val a = mk_atan(g, mk_select(g, none, zero, ratio));
  a = mk_select(g, steep, mk_addk(g, mk_neg(g, a), LITE_PI / 2), a);
  Val inverse = mk_recip(g, x); /* distinguishes -0 from 0 */
  Val left = mk_lt(g, inverse, zero);
  left = mk_and(g, mk_eq(g, x, zero), left);
  left = mk_or(g, mk_lt(g, x, zero), left);
  a = mk_select(g, left, mk_addk(g, mk_neg(g, a), LITE_PI), a);
  Val below = mk_recip(g, y);
  below = mk_lt(g, mk_select(g, mk_eq(g, y, zero), below, y), zero);
  lite_set_real(b, 0, mk_select(g, below, mk_neg(g, a), a));
}
