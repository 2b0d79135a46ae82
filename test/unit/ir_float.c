/* Narrow floats: every code read and written back, rounding at and beside every midpoint,
 * conversions at the ends of the range. The expected values follow from the order of the codes, not
 * from tables. */
#include "check.h"
#include "ir/ir.h"

#include <math.h>
#include <string.h>

static const DType narrow[] = {DT_f16,    DT_bf16,       DT_f8e4m3fn, DT_f8e4m3fnuz,
                               DT_f8e5m2, DT_f8e5m2fnuz, DT_f4e2m1};
enum { NNARROW = sizeof narrow / sizeof *narrow };

static double of_code(DType d, u32 code) {
  u8 at[4];
  u16 wide = (u16)code;
  at[0] = (u8)code;
  if (dtype_bytes(d) == 2) memcpy(at, &wide, 2);
  return scalar_load(d, at).f;
}

static u32 to_code(DType d, double x) {
  u8 at[4] = {0};
  u16 wide;
  scalar_store(d, at, (Scalar){.f = x});
  memcpy(&wide, at, 2);
  return dtype_bytes(d) == 2 ? wide : at[0];
}

static double cast(DType d, double x, bool sat) {
  return scalar_cast(DT_f64, d, (Scalar){.f = x}, sat).f;
}

static bool same(double x, double y) {
  return (isnan(x) && isnan(y)) || (x == y && !signbit(x) == !signbit(y));
}

static void codes(DType d) {
  u32 n = (u32)1 << dtype_info[d].bits;
  double last = -1;
  for (u32 code = 0; code < n; code++) {
    double x = of_code(d, code);
    CHECK(to_code(d, x) == code);
    if (isnan(x)) continue;
    CHECK(same(scalar_round(d, x), x) && same(cast(d, x, false), x));
    if (code >= n / 2) { /* the sign bit */
      CHECK(same(x, -of_code(d, code - n / 2)));
      continue;
    }
    CHECK(x > last); /* codes are in order, so neighbors are consecutive */
    if (code > 0 && !isinf(x)) {
      double mid = (last + x) / 2, even = code & 1 ? last : x;
      CHECK(scalar_round(d, mid) == even && scalar_round(d, -mid) == -even);
      CHECK(scalar_round(d, nextafter(mid, 1e300)) == x);
      CHECK(scalar_round(d, nextafter(mid, 0)) == last);
    }
    last = x;
  }
}

/* max: largest finite value; half: the first value that rounds beyond it; over: what that becomes
 */
static void ends(DType d, double max, double half, double over, double over_sat) {
  CHECK(cast(d, max, false) == max && cast(d, nextafter(half, 0), false) == max);
  CHECK(same(cast(d, half, false), over) && same(cast(d, INFINITY, false), over));
  CHECK(same(cast(d, half, true), over_sat) && same(cast(d, INFINITY, true), over_sat));
  CHECK(same(cast(d, -half, false), -over) && same(cast(d, -INFINITY, true), -over_sat));
  CHECK(same(cast(d, 1e300, false), over) && same(cast(d, -1e300, true), -over_sat));
  CHECK(cast(d, 5e-324, true) == 0 && cast(d, -1e-310, true) == 0);
  if (d != DT_f4e2m1) CHECK(isnan(cast(d, NAN, true)) && isnan(cast(d, -NAN, false)));
}

static void formats(void) {
  CHECK(of_code(DT_f16, 1) == 0x1p-24 && of_code(DT_f16, 0x3c00) == 1);
  CHECK(of_code(DT_bf16, 1) == 0x1p-133 && of_code(DT_bf16, 0x3f80) == 1);
  CHECK(of_code(DT_f8e4m3fn, 1) == 0x1p-9 && of_code(DT_f8e4m3fn, 0x38) == 1);
  CHECK(of_code(DT_f8e4m3fnuz, 1) == 0x1p-10 && of_code(DT_f8e4m3fnuz, 0x40) == 1);
  CHECK(of_code(DT_f8e5m2, 1) == 0x1p-16 && of_code(DT_f8e5m2, 0x3c) == 1);
  CHECK(of_code(DT_f8e5m2fnuz, 1) == 0x1p-17 && of_code(DT_f8e5m2fnuz, 0x40) == 1);
  CHECK(of_code(DT_f4e2m1, 1) == 0.5 && of_code(DT_f4e2m1, 7) == 6 &&
        of_code(DT_f4e2m1, 9) == -0.5);
  CHECK(of_code(DT_f4e2m1, 0xf1) == 0.5); /* the upper half of the byte does not count */
  CHECK(isnan(of_code(DT_f8e4m3fnuz, 0x80)) && isnan(of_code(DT_f8e5m2fnuz, 0x80)));
  CHECK(isnan(of_code(DT_f8e4m3fn, 0x7f)) && isnan(of_code(DT_f8e4m3fn, 0xff)));
  CHECK(same(cast(DT_f8e4m3fnuz, -0.0, true), 0) && same(cast(DT_f8e4m3fn, -0.0, true), -0.0));
  CHECK(same(cast(DT_f8e5m2fnuz, -1e-30, true), 0) && same(cast(DT_f8e5m2, -1e-30, true), -0.0));
  CHECK(cast(DT_f4e2m1, NAN, true) == 0);
  ends(DT_f16, 65504, 65520, INFINITY, INFINITY);
  ends(DT_bf16, 0x1.fep127, 0x1.ffp127, INFINITY, INFINITY);
  ends(DT_f8e4m3fn, 448, nextafter(464, 500), NAN, 448);
  ends(DT_f8e4m3fnuz, 240, 248, NAN, 240);
  ends(DT_f8e5m2, 57344, 61440, INFINITY, 57344);
  ends(DT_f8e5m2fnuz, 57344, 61440, NAN, 57344);
  ends(DT_f4e2m1, 6, 7, 6, 6);
  CHECK(cast(DT_f8e4m3fn, 464, false) == 448); /* a tie, and 448 has the even code */
  CHECK(scalar_round(DT_f8e4m3fn, 1e9) == 448 && isinf(scalar_round(DT_f8e5m2, 1e9)));
  CHECK(isinf(scalar_round(DT_f16, 1e9)) && isinf(scalar_round(DT_f32, 1e39)));
  CHECK(scalar_round(DT_f64, 0.1) == 0.1 && scalar_round(DT_f32, 0.1) == (double)0.1f);
  /* once, not through f32: the last bit of the double decides the tie */
  CHECK(cast(DT_bf16, 1 + 0x1p-8 + 0x1p-40, true) == 1 + 0x1p-7);
}

static void powers(void) {
  DType d = DT_f8e8m0;
  for (u32 code = 0; code < 256; code++) {
    double x = of_code(d, code);
    CHECK(to_code(d, x) == code);
    if (code == 255) {
      CHECK(isnan(x));
      continue;
    }
    CHECK(x == ldexp(1, (int)code - 127) && cast(d, x, false) == x);
    if (code > 0 && code < 254) /* below, f32 is subnormal */
      CHECK(cast(d, x * 1.5, true) == 2 * x && cast(d, x * (1 + 0x1p-23), false) == 2 * x);
  }
  CHECK(cast(d, 0, true) == 0x1p-127 && cast(d, 1e-45, true) == 0x1p-127);
  CHECK(cast(d, 0x1.8p127, true) == 0x1p127 && isnan(cast(d, 0x1.8p127, false)));
  CHECK(cast(d, INFINITY, true) == 0x1p127 && isnan(cast(d, INFINITY, false)));
  CHECK(isnan(cast(d, NAN, true)));
}

static void wide(void) { /* any bit pattern of f32 and f64 survives, NaN too */
  u64 x = 88172645463325252u;
  for (int i = 0; i < 100000; i++) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    u32 in = i & 1 ? (u32)x : 0x7f800000 | (u32)(x & 0x807fffff), out;
    u64 out64;
    scalar_store(DT_f32, &out, scalar_load(DT_f32, &in));
    CHECK(in == out);
    scalar_store(DT_f64, &out64, scalar_load(DT_f64, &x));
    CHECK(x == out64);
  }
}

static double from_int(DType from, i64 x, DType to) {
  return scalar_cast(from, to, (Scalar){.i = x}, true).f;
}

static void integers(void) {
  i64 tie = ((i64)1 << 62) + ((i64)1 << 54);
  CHECK(from_int(DT_i64, tie, DT_bf16) == 0x1p62);
  CHECK(from_int(DT_i64, tie + 1, DT_bf16) == 0x1p62 + 0x1p55);
  CHECK(from_int(DT_i64, -tie - 1, DT_bf16) == -0x1p62 - 0x1p55);
  tie = ((i64)1 << 62) + ((i64)1 << 38);
  CHECK(from_int(DT_i64, tie, DT_f32) == 0x1p62);
  CHECK(from_int(DT_i64, tie + 1, DT_f32) == 0x1p62 + 0x1p39);
  CHECK(from_int(DT_u64, -1, DT_f64) == 0x1p64 && from_int(DT_i64, -1, DT_f64) == -1);
  CHECK(from_int(DT_i64, INT64_MIN, DT_f32) == -0x1p63);
  CHECK(isinf(from_int(DT_i32, 65520, DT_f16)) && from_int(DT_i32, 65519, DT_f16) == 65504);
  CHECK(from_int(DT_i32, 1000, DT_f8e4m3fn) == 448 && from_int(DT_bool, 1, DT_f4e2m1) == 1);
  CHECK(from_int(DT_u8, 5, DT_f8e8m0) == 8);
}

int main(void) {
  for (u32 i = 0; i < NNARROW; i++) codes(narrow[i]);
  formats();
  powers();
  wide();
  integers();
  return check_end();
}
