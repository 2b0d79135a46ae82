/* tflite_dynamic_quant.c: dynamic quantization of activations.
 *
 * In: floats that are multiplied by int8 weights (dynamic range quantization). Out: int8 values and
 * a scale per row or image, like TensorFlow Lite's hybrid kernels: symmetric, x / (largest
 * magnitude / 127), or with a zero point over the range of x extended to 0.
 */
#include "front/tflite/tflite_import.h"

static Val nonzero_or_one(LiteNode *b, Val range, Val scale) {
  Val none = mk_eq(b->g, range, mk_like(b->g, range, 0));
  return mk_select(b->g, none, mk_like(b->g, range, 1), scale);
}

static Val symmetric(LiteNode *b, Val x, const i64 *axes, u32 n, Val *scale) {
  Val range = mk_reduce(b->g, OP_reduce_max, mk_abs(b->g, x), axes, n, true);
  Val full = mk_like(b->g, x, 127);
  *scale = nonzero_or_one(b, range, mk_div(b->g, range, full));
  Val by = nonzero_or_one(b, range, mk_div(b->g, full, range));
  Val q = mk_cast_sat(b->g, lite_rounded(b, mk_mul(b->g, x, by)), DT_i8);
  return mk_cast(b->g, q, DT_i32);
}

static Val asymmetric(LiteNode *b, Val x, const i64 *axes, u32 n, Val *scale) {
  Val none = mk_like(b->g, x, 0);
  Val hi = mk_max(b->g, mk_reduce(b->g, OP_reduce_max, x, axes, n, true), none);
  Val lo = mk_min(b->g, mk_reduce(b->g, OP_reduce_min, x, axes, n, true), none);
  Val range = mk_sub(b->g, hi, lo);
  *scale = nonzero_or_one(b, range, mk_mulk(b->g, range, 1.0 / 255));
  Val from = mk_addk(b->g, mk_neg(b->g, mk_div(b->g, lo, *scale)), -128);
  Val zero = mk_cast_sat(b->g, lite_rounded(b, from), DT_i8);
  Val steps = mk_cast(b->g, zero, DT_f32);
  steps = mk_add(b->g, mk_div(b->g, x, *scale), steps);
  Val q = mk_cast_sat(b->g, lite_rounded(b, steps), DT_i8);
  zero = mk_cast(b->g, zero, DT_i32);
  return mk_sub(b->g, mk_cast(b->g, q, DT_i32), zero);
}

Val lite_dynamic(LiteNode *b, Val x, const i64 *axes, u32 n, bool centre, Val *scale) {
  return (centre ? asymmetric : symmetric)(b, x, axes, n, scale);
}
