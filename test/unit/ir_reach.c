/* ir_reach.c: bounds of rounded numbers, against every number of the narrow types. */
#include "check.h"
#include "ir/graph/graph.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return a < b ? -1 : a > b;
}

static bool holds(FloatRange b, double x) {
  return isnan(x) || (b.lo <= x && x <= b.hi);
}

/* What lies at x, and in a range that ends there, stays inside once it is rounded. */
static bool is_inside(DType dt, double x, double other) {
  FloatRange one = bounds_outward(dt, (FloatRange){x, x, false});
  FloatRange wide = bounds_outward(dt, (FloatRange){fmin(x, other), fmax(x, other), false});
  double y = scalar_round(dt, x);
  return holds(one, y) && holds(wide, y) && holds(wide, scalar_round(dt, other));
}

static void around(DType dt, double x, double other) {
  CHECK(is_inside(dt, x, other));
  CHECK(is_inside(dt, nextafter(x, INFINITY), other));
  CHECK(is_inside(dt, nextafter(x, -INFINITY), other));
}

/* At all numbers of the type, between them, and beyond the last; where a number of the type is a
 * bound it stays one. */
static void narrow_type(DType dt) {
  static double at[1 << 16];
  u32 n = 0, bits = dtype_info[dt].bits;
  for (u32 k = 0; k < 1u << bits; k++) {
    u16 raw = (u16)k;
    double x = scalar_load(dt, &raw).f;
    if (isfinite(x)) at[n++] = x;
  }
  qsort(at, n, sizeof *at, by_value);
  CHECK(n > 10);
  for (u32 i = 0; i < n; i++) {
    FloatRange b = bounds_outward(dt, (FloatRange){at[i], at[i], false});
    CHECK(dt == DT_f8e8m0 || (b.lo == at[i] && b.hi == at[i]));
    double next = i + 1 < n ? at[i + 1] : at[i] * 4 + 1, other = at[(u64)i * 7919 % n];
    around(dt, at[i], other);
    around(dt, (at[i] + next) / 2, other);
    around(dt, at[i] / 2 + next / 2, -other);
  }
}

static void wide_type(DType dt) {
  for (u64 i = 0; i < 200000; i++) {
    double x = ldexp((double)(i64)random_bits(3, i), (int)(random_bits(4, i) % 300) - 200);
    double other = ldexp((double)(i64)random_bits(5, i), (int)(random_bits(6, i) % 300) - 200);
    around(dt, x, other);
    around(dt, scalar_round(DT_f32, x), other);
  }
}

int main(void) {
  static const DType narrow[] = {DT_f16,    DT_bf16,       DT_f8e4m3fn, DT_f8e4m3fnuz,
                                 DT_f8e5m2, DT_f8e5m2fnuz, DT_f8e8m0,   DT_f4e2m1};
  for (u32 i = 0; i < sizeof narrow / sizeof *narrow; i++) narrow_type(narrow[i]);
  wide_type(DT_f32);
  wide_type(DT_f64);
  return check_end();
}
