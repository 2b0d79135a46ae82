/* tflite_ops_reduce.c: reductions and the normalization operators made of them.
 *
 * Quantized tensors are reduced as real values, except min and max, which reduce stored values.
 */
#include "front/tflite/tflite_import.h"

typedef struct Axes {
  i64 at[MAX_RANK];
  u32 n;
  bool keep;
} Axes;

/* Axes of input 1; duplicates are allowed. */
static Axes axes_of(LiteNode *b) {
  i64 given[MAX_RANK];
  u32 rank = lite_rank(b, lite_in(b, 0)), n = lite_ints(b, 1, given, MAX_RANK);
  Axes a = {.keep = flat_u8(&b->op->opt, 0, 0) != 0};
  bool has[MAX_RANK] = {false};
  for (u32 i = 0; rank && i < n; i++) has[lite_axis(b, given[i], rank)] = true;
  for (u32 i = 0; i < rank; i++)
    if (has[i]) a.at[a.n++] = i;
  return a;
}

static Val reduced(LiteNode *b, Op op, Val x, const Axes *a) {
  return a->n ? mk_reduce(b->g, op, x, a->at, a->n, a->keep) : x;
}

/* arg: OP_reduce_* */
void lite_reduce(LiteNode *b) {
  Axes a = axes_of(b);
  lite_set_real(b, 0, reduced(b, (Op)b->arg, lite_real(b, 0), &a));
}

/* Maximum and minimum; for bools any and all. */
void lite_reduce_extreme(LiteNode *b) {
  Axes a = axes_of(b);
  if (lite_same_quant(lite_operand(b, 0), lite_result(b, 0)))
    lite_set_stored(b, 0, reduced(b, (Op)b->arg, lite_in(b, 0), &a));
  else
    lite_reduce(b);
}

/* Number of elements per result; 0: unknown, or too many for an i32 sum. */
static i64 cells(LiteNode *b, Val x, const Axes *a) {
  double n = 1;
  for (u32 i = 0; i < a->n; i++) {
    Dim d = val_dim(b->g, x, (u32)a->at[i]);
    n *= dim_is_const(d) ? (double)d : 0;
  }
  return n < 0x1p15 ? (i64)n : 0;
}

void lite_mean(LiteNode *b) {
  Axes a = axes_of(b);
  i64 n = cells(b, lite_in(b, 0), &a);
  if (!lite_is_linear(b, 1) || !n) {
    lite_set_real(b, 0, mk_mean(b->g, lite_real(b, 0), a.at, a.n, a.keep));
    return;
  }
  Val sum =
      reduced(b, OP_reduce_sum, lite_sub_zero_point(b, lite_in(b, 0), lite_operand(b, 0)), &a);
  Val y = lite_mul_quantized1(b, sum, lite_ratio(b, 0) / (double)n);
  lite_set_stored(b, 0, lite_stored(b, y, lite_result(b, 0), LA_none));
}

/* ---- along the last axis ---- */

static i64 last_axis(LiteNode *b, Val x) {
  if (!lite_rank(b, x)) lite_bad(b, "the operand is a scalar, expected rank 1 or more");
  return lite_rank(b, x) - 1;
}

void lite_softmax(LiteNode *b) {
  Val x = lite_real(b, 0);
  i64 axis = last_axis(b, x);
  float beta = flat_f32(&b->op->opt, 0, 1);
  if (beta != 1) x = mk_mulk(b->g, x, (double)beta);
  lite_set_real(b, 0, compose_softmax(b->g, x, &axis, 1));
}

void lite_log_softmax(LiteNode *b) {
  Val x = lite_real(b, 0);
  i64 axis = last_axis(b, x);
  lite_set_real(b, 0, compose_log_softmax(b->g, x, &axis, 1));
}

/* x over its L2 norm, at least 1e-6. */
void lite_l2_normalization(LiteNode *b) {
  Val x = lite_real(b, 0);
  i64 axis = last_axis(b, x);
  Val sum = mk_reduce(b->g, OP_reduce_sum, mk_mul(b->g, x, x), &axis, 1, true);
  Val length = mk_sqrt(b->g, sum);
  Val y = mk_div(b->g, x, mk_max(b->g, length, mk_like(b->g, x, 1e-6)));
  lite_set_activated(b, 0, y, flat_i8(&b->op->opt, 0, LA_none));
}

/* x * (bias + alpha * sum of squares of the channels within radius)^-beta */
void lite_local_response_normalization(LiteNode *b) {
  const FlatTable *o = &b->op->opt;
  Val x = lite_real(b, 0);
  i64 radius = flat_i32(o, 0, 0), size = 2 * radius + 1, one = 1;
  last_axis(b, x);
  if (radius < 0 || radius > 1 << 20)
    lite_bad(b, "radius is %lld, expected 0 to 2^20", (long long)radius);
  Val sum = mk_pool(b->g, OP_pool_sum, mk_mul(b->g, x, x), 1, &size, &one, &one, &radius, &radius);
  Val base =
      mk_addk(b->g, mk_mulk(b->g, sum, (double)flat_f32(o, 2, 0)), (double)flat_f32(o, 1, 0));
  Val k = mk_pow(b->g, base, mk_like(b->g, x, -(double)flat_f32(o, 3, 0)));
  lite_set_real(b, 0, mk_mul(b->g, x, k));
}
