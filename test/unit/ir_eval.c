/* Meaning of the scalar ops: the corners ops.def names, integers against wide arithmetic, every op
 * on every type with hostile bit patterns (for the sanitizers), and the random numbers. */
#include "check.h"
#include "ir/ir.h"

#include <math.h>
#include <string.h>

static i64 ev(Op op, DType d, i64 a, i64 b) {
  Scalar arg[2] = {{.i = a}, {.i = b}};
  return scalar_eval(op, d, arg).i;
}

static double ef(Op op, DType d, double a, double b) {
  Scalar arg[2] = {{.f = a}, {.f = b}};
  return scalar_eval(op, d, arg).f;
}

static i64 cmp(Op op, DType d, double a, double b) {
  Scalar arg[2] = {{.f = a}, {.f = b}};
  return scalar_eval(op, d, arg).i;
}

static i64 to_int(DType d, double x, bool sat) {
  return scalar_cast(DT_f64, d, (Scalar){.f = x}, sat).i;
}

static i64 recast(DType from, DType to, i64 x, bool sat) {
  return scalar_cast(from, to, (Scalar){.i = x}, sat).i;
}

static void integers(void) {
  CHECK(ev(OP_add, DT_i8, 127, 1) == -128 && ev(OP_sub, DT_u8, 0, 1) == 255);
  CHECK(ev(OP_mul, DT_i64, INT64_MAX, 2) == -2 && ev(OP_add, DT_i2, 1, 1) == -2);
  CHECK(ev(OP_div, DT_i32, -7, 2) == -3 && ev(OP_div, DT_i32, 7, 0) == 0);
  CHECK(ev(OP_div, DT_i32, INT32_MIN, -1) == INT32_MIN);
  CHECK(ev(OP_div, DT_i64, INT64_MIN, -1) == INT64_MIN && ev(OP_div, DT_u64, -1, 2) == INT64_MAX);
  CHECK(ev(OP_mod, DT_i32, -7, 3) == 2 && ev(OP_mod, DT_i32, 7, -3) == -2);
  CHECK(ev(OP_mod, DT_i64, INT64_MIN, -1) == 0 && ev(OP_mod, DT_i64, 5, 0) == 0);
  CHECK(ev(OP_fmod, DT_i32, -7, 3) == -1 && ev(OP_fmod, DT_i32, 7, -3) == 1);
  CHECK(ev(OP_fmod, DT_i64, INT64_MIN, -1) == 0 && ev(OP_fmod, DT_u64, -1, 10) == 5);
  CHECK(ev(OP_pow, DT_i32, -3, 3) == -27 && ev(OP_pow, DT_i32, 2, -1) == 0);
  CHECK(ev(OP_pow, DT_i32, -1, -3) == -1 && ev(OP_pow, DT_i32, 1, INT32_MIN) == 1);
  CHECK(ev(OP_pow, DT_i32, 0, -1) == 0 && ev(OP_pow, DT_i32, 0, 0) == 1);
  CHECK(ev(OP_pow, DT_u8, 3, 5) == 243 && ev(OP_pow, DT_u8, 2, 8) == 0);
  CHECK(ev(OP_max, DT_u64, -1, 1) == -1 && ev(OP_max, DT_i64, -1, 1) == 1);
  CHECK(ev(OP_min, DT_u64, -1, 1) == 1 && ev(OP_min, DT_i64, -1, 1) == -1);
  CHECK(ev(OP_lt, DT_u64, 1, -1) == 1 && ev(OP_lt, DT_i64, 1, -1) == 0);
  CHECK(ev(OP_abs, DT_i8, -128, 0) == -128 && ev(OP_neg, DT_u8, 1, 0) == 255);
  CHECK(ev(OP_abs, DT_i64, INT64_MIN, 0) == INT64_MIN && ev(OP_sign, DT_u64, -1, 0) == 1);
  CHECK(ev(OP_not, DT_bool, 1, 0) == 0 && ev(OP_not, DT_bool, 0, 0) == 1);
  CHECK(ev(OP_not, DT_u4, 5, 0) == 10 && ev(OP_not, DT_i32, 0, 0) == -1);
  CHECK(ev(OP_xor, DT_bool, 1, 1) == 0 && ev(OP_or, DT_bool, 1, 0) == 1);
  CHECK(ev(OP_shl, DT_u8, 255, 4) == 240 && ev(OP_shl, DT_u8, 1, 8) == 0);
  CHECK(ev(OP_shl, DT_i64, 1, 63) == INT64_MIN && ev(OP_shl, DT_i64, 1, 64) == 0);
  CHECK(ev(OP_shr, DT_i8, -128, 3) == -16 && ev(OP_shr, DT_i8, -1, 8) == -1);
  CHECK(ev(OP_shr, DT_u64, -1, 63) == 1 && ev(OP_shr, DT_u64, -1, 64) == 0);
  CHECK(ev(OP_shr, DT_i32, 5, -1) == 0 && ev(OP_shl, DT_i32, 5, -1) == 0);
  CHECK(ev(OP_eq, DT_str, 7, 7) == 1 && ev(OP_ne, DT_str, 7, 7) == 0);
}

static void floats(void) {
  CHECK(isnan(ef(OP_max, DT_f32, NAN, 1)) && isnan(ef(OP_max, DT_f32, 1, NAN)));
  CHECK(isnan(ef(OP_min, DT_f64, NAN, 1)) && isnan(ef(OP_min, DT_f16, 1, NAN)));
  CHECK(ef(OP_max, DT_f32, -INFINITY, 2) == 2 && ef(OP_min, DT_f32, 3, 2) == 2);
  CHECK(isnan(ef(OP_sign, DT_f32, NAN, 0)) && ef(OP_sign, DT_f32, -3, 0) == -1);
  CHECK(ef(OP_sign, DT_f64, -0.0, 0) == 0 && ef(OP_abs, DT_f32, -2, 0) == 2);
  CHECK(ef(OP_mod, DT_f32, -7, 3) == 2 && ef(OP_mod, DT_f32, 7, -3) == -2);
  CHECK(signbit(ef(OP_mod, DT_f64, 6, -3)) && !signbit(ef(OP_mod, DT_f32, -6, 3)));
  CHECK(isinf(ef(OP_mod, DT_f64, -1, INFINITY)) && isnan(ef(OP_mod, DT_f32, 1, 0)));
  CHECK(ef(OP_fmod, DT_f32, -7, 3) == -1 && ef(OP_fmod, DT_f32, 7, -3) == 1);
  CHECK(ef(OP_round, DT_f32, 2.5, 0) == 2 && ef(OP_round, DT_f32, 3.5, 0) == 4);
  CHECK(ef(OP_round, DT_f64, -0.5, 0) == 0 && ef(OP_trunc, DT_f64, -1.5, 0) == -1);
  CHECK(ef(OP_floor, DT_f16, -1.5, 0) == -2 && ef(OP_ceil, DT_bf16, 1.5, 0) == 2);
  CHECK(ef(OP_div, DT_f32, 1, 3) == (double)(1.0f / 3) && ef(OP_div, DT_f64, 1, 3) == 1.0 / 3);
  CHECK(isinf(ef(OP_div, DT_f32, 1, 0)) && isinf(ef(OP_recip, DT_f32, 0, 0)));
  CHECK(ef(OP_exp, DT_f32, 1, 0) == (double)(float)exp(1) && ef(OP_exp, DT_f64, 1, 0) == exp(1));
  CHECK(ef(OP_add, DT_f16, 2048, 1) == 2048 && ef(OP_add, DT_f16, 2048, 3) == 2052);
  CHECK(isinf(ef(OP_mul, DT_f16, 300, 300)) && ef(OP_mul, DT_f8e4m3fn, 300, 300) == 448);
  CHECK(ef(OP_pow, DT_f32, 2, 0.5) == (double)(float)sqrt(2) && ef(OP_erf, DT_f32, 0, 0) == 0);
  Scalar fma[3] = {{.f = 1 + 0x1p-23}, {.f = 1 - 0x1p-23}, {.f = -1}};
  CHECK(scalar_eval(OP_fma, DT_f32, fma).f == -0x1p-46);
  CHECK(cmp(OP_eq, DT_f32, NAN, NAN) == 0 && cmp(OP_ne, DT_f32, NAN, NAN) == 1);
  CHECK(cmp(OP_lt, DT_f32, NAN, 1) == 0 && cmp(OP_ge, DT_f64, NAN, 1) == 0);
  CHECK(cmp(OP_eq, DT_f32, 0.0, -0.0) == 1 && cmp(OP_le, DT_f16, 1, 1) == 1);
  CHECK(cmp(OP_isnan, DT_f32, NAN, 0) == 1 && cmp(OP_isinf, DT_f32, -INFINITY, 0) == 1);
  CHECK(cmp(OP_isinf, DT_f32, 1, 0) == 0 && cmp(OP_isnan, DT_f64, INFINITY, 0) == 0);
  Scalar sel[3] = {{.i = 1}, {.f = 2}, {.f = 3}};
  CHECK(scalar_eval(OP_select, DT_f32, sel).f == 2);
  sel[0].i = 0;
  CHECK(scalar_eval(OP_select, DT_f32, sel).f == 3);
}

static void casts(void) {
  CHECK(to_int(DT_i32, -1.9, false) == -1 && to_int(DT_i32, NAN, false) == 0);
  CHECK(to_int(DT_i32, NAN, true) == 0 && to_int(DT_u8, -1, false) == 255);
  CHECK(to_int(DT_u8, 300, false) == 44 && to_int(DT_u8, 300, true) == 255);
  CHECK(to_int(DT_u8, -5, true) == 0 && to_int(DT_i8, 127.9, true) == 127);
  CHECK(to_int(DT_i64, 1e30, false) == INT64_MAX && to_int(DT_i64, -1e30, true) == INT64_MIN);
  CHECK(to_int(DT_i64, 0x1p63, true) == INT64_MAX && to_int(DT_i64, -0x1p63, false) == INT64_MIN);
  CHECK((u64)to_int(DT_u64, 0x1p63, false) == (u64)1 << 63 && to_int(DT_u64, 0x1p64, false) == -1);
  CHECK(to_int(DT_u64, INFINITY, true) == -1 && to_int(DT_u64, -INFINITY, true) == 0);
  CHECK(to_int(DT_u64, -1, false) == -1 && to_int(DT_i4, 7.5, true) == 7);
  CHECK(to_int(DT_bool, NAN, false) == 1 && to_int(DT_bool, -0.0, false) == 0);
  CHECK(to_int(DT_bool, 5e-324, false) == 1 && to_int(DT_i4, 9, false) == -7);
  CHECK(recast(DT_i16, DT_i8, 200, false) == -56 && recast(DT_i16, DT_i8, 200, true) == 127);
  CHECK(recast(DT_i64, DT_u64, -1, false) == -1 && recast(DT_i64, DT_u64, -1, true) == 0);
  CHECK(recast(DT_u64, DT_i64, -1, true) == INT64_MAX &&
        recast(DT_u64, DT_u32, -1, true) == UINT32_MAX);
  CHECK(recast(DT_i32, DT_bool, 36, false) == 1 && recast(DT_bool, DT_u2, 1, true) == 1);
  CHECK(recast(DT_i64, DT_i2, 5, true) == 1 && recast(DT_i64, DT_i2, 5, false) == 1);
  CHECK(recast(DT_str, DT_str, 9, false) == 9 && recast(DT_str, DT_i64, 9, false) == 0);
  CHECK(scalar_wrap(DT_i32, (i64)1 << 31) == INT32_MIN && scalar_wrap(DT_u2, -1) == 3);
  CHECK(scalar_wrap(DT_i64, INT64_MIN) == INT64_MIN && scalar_wrap(DT_bool, 1) == 1);
}

/* Whatever lies in memory: no undefined behavior, and results are values of the result's type. */
static void hostile(void) {
  static const u64 some[] = {0,
                             1,
                             ~(u64)0,
                             (u64)1 << 63,
                             0x7ff0000000000000,
                             0xfff8000000000001,
                             0x43e0000000000000,
                             0x80000000,
                             0x7f800000,
                             0x8080808080808080,
                             63,
                             64};
  enum { N = sizeof some / sizeof *some };
  for (int d = DT_none; d < DT_COUNT; d++) {
    for (int k = 0; k < N * N; k++) {
      Scalar arg[3] = {scalar_load((DType)d, &(u64[2]){some[k % N], 0}),
                       scalar_load((DType)d, &(u64[2]){some[k / N], 0}),
                       scalar_load((DType)d, &(u64[2]){some[(k + 5) % N], 0})};
      for (int op = 0; op < OP_SCALARS; op++) {
        if (!op_accepts((Op)op, (DType)d) || op == OP_select) continue;
        Scalar r = scalar_eval((Op)op, (DType)d, arg);
        if (op_info[op].res == OR_pred) CHECK(r.i == 0 || r.i == 1);
        u8 at[16] = {0};
        if (op_info[op].res != OR_same) continue;
        scalar_store((DType)d, at, r);
        Scalar back = scalar_load((DType)d, at);
        CHECK(dtype_is_float((DType)d) ? back.f == r.f || isnan(r.f) : back.i == r.i);
      }
      for (int to = DT_none; to < DT_COUNT; to++) {
        u8 at[16] = {0};
        scalar_store((DType)to, at, scalar_cast((DType)d, (DType)to, arg[0], k & 1));
      }
    }
  }
}

static void randoms(void) {
  enum { N = 200000 };
  double sum = 0, sq = 0, next = 0, seeds = 0, last = 0.5;
  int bit[64] = {0};
  for (u64 i = 0; i < N; i++) {
    u64 r = random_bits(1, i);
    double x = (double)(r >> 11) * 0x1p-53, y = (double)(random_bits(2, i) >> 11) * 0x1p-53;
    sum += x;
    sq += (x - 0.5) * (x - 0.5);
    next += (x - 0.5) * (last - 0.5);
    seeds += (x - 0.5) * (y - 0.5);
    last = x;
    for (int b = 0; b < 64; b++) bit[b] += (int)(r >> b & 1);
  }
  CHECK(fabs(sum / N - 0.5) < 0.003 && fabs(sq / N - 1.0 / 12) < 0.001);
  CHECK(fabs(next / N) < 0.001 && fabs(seeds / N) < 0.001);
  for (int b = 0; b < 64; b++) CHECK(bit[b] > N / 2 - 1200 && bit[b] < N / 2 + 1200);
  /* one flipped bit of seed or index flips about half of the result */
  int flips = 0;
  for (int b = 0; b < 64; b++) {
    u64 x = random_bits(3, 4) ^ random_bits(3, 4 ^ (u64)1 << b);
    u64 y = random_bits(3, 4) ^ random_bits(3 ^ (u64)1 << b, 4);
    for (; x; x &= x - 1) flips++;
    for (; y; y &= y - 1) flips++;
  }
  CHECK(flips > 128 * 32 - 200 && flips < 128 * 32 + 200);
  CHECK(random_bits(0, 0) != random_bits(0, 1) && random_bits(0, 0) != random_bits(1, 0));
}

int main(void) {
  integers();
  floats();
  casts();
  hostile();
  randoms();
  return check_end();
}
