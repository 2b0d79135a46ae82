/* rng.c: random numbers, and arrays filled with them. In: a seed. Out: the same on every machine.
 */
#include "gen.h"

#include <math.h>

u64 rng_next(Rng *r) { /* splitmix64 */
  u64 z = r->s += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

u32 rng_below(Rng *r, u32 n) {
  return n ? (u32)((rng_next(r) >> 32) % n) : 0;
}

bool rng_chance(Rng *r, u32 percent) {
  return rng_below(r, 100) < percent;
}

i64 rng_between(Rng *r, i64 lo, i64 hi) {
  u64 span = (u64)hi - (u64)lo + 1, x = rng_next(r);
  return (i64)((u64)lo + (span ? x % span : x));
}

/* ---- ranges ---- */

/* Bits of the mantissa with the hidden one, the finest grain 2^-q, the largest value. */
typedef struct Format {
  int bits, q;
  double mag;
} Format;

static Format format_of(DType dt) {
  switch (dt) {
  case DT_f64: return (Format){53, 500, 0x1p500};
  case DT_f32: return (Format){24, 100, 0x1p100};
  case DT_f16: return (Format){11, 20, 65504};
  case DT_bf16: return (Format){8, 100, 0x1p100};
  case DT_f8e4m3fn: return (Format){4, 8, 448};
  case DT_f8e4m3fnuz: return (Format){4, 8, 240};
  case DT_f8e5m2: return (Format){3, 14, 57344};
  case DT_f8e5m2fnuz: return (Format){3, 14, 57344};
  case DT_f4e2m1: return (Format){2, 1, 6};
  default: return (Format){1, 0, 1}; /* f8e8m0: no sums */
  }
}

double mag_limit(DType dt) {
  Scalar lo, hi;
  if (dtype_is_float(dt)) return format_of(dt).mag;
  dtype_limits(dt, &lo, &hi);
  return dt == DT_u64 ? 0x1p64 : dtype_is_signed(dt) ? -(double)lo.i : (double)hi.i;
}

Grain grain_of_type(DType dt) {
  return (Grain){mag_limit(dt), 0};
}

bool grain_fits(DType dt, Grain x) {
  if (!dtype_is_float(dt)) return true;
  Format f = format_of(dt);
  return x.mag <= f.mag && x.q <= f.q && ldexp(x.mag, x.q) <= ldexp(1, f.bits);
}

Fill fill_any(Rng *r, DType dt, Mode mode) {
  static const double mags[] = {1, 2, 4, 8};
  Fill f = {.mode = mode, .grain = {mags[rng_below(r, 4)], (int)rng_below(r, 3)}};
  if (!dtype_is_float(dt)) {
    f.grain.q = 0;
    if (rng_chance(r, 40)) f.grain.mag = 100;
    if (f.grain.mag > mag_limit(dt) || rng_chance(r, 20)) f.grain.mag = mag_limit(dt);
  }
  while (!grain_fits(dt, f.grain)) {
    if (f.grain.q > 0) f.grain.q--;
    if (!grain_fits(dt, f.grain)) f.grain.mag /= 2;
  }
  return f;
}

/* ---- contents ---- */

static double normal(Rng *r) {
  double x = -6;
  for (int i = 0; i < 12; i++) x += (double)(rng_next(r) >> 11) * 0x1p-53;
  return x;
}

static double odd_float(Rng *r) {
  static const double odd[] = {
      0.0,  -0.0,   INFINITY, -INFINITY, NAN,          1,    -1,   0.5,   -2.5,    0x1p-149, 1e-40,
      3e38, -1e308, 448,      6e4,       2147483648.0, 1e10, 1e19, -1e19, 0x1p-24, 0x1p-14,  255.5};
  return odd[rng_below(r, sizeof odd / sizeof *odd)];
}

static double float_value(Rng *r, const Fill *f) {
  if (f->mode == MODE_raw && rng_chance(r, 35)) return odd_float(r);
  if (f->mode != MODE_exact) return 2 * normal(r);
  i64 k = (i64)ldexp(f->grain.mag, f->grain.q);
  return ldexp((double)rng_between(r, -k, k), -f->grain.q);
}

static i64 int_value(Rng *r, DType dt, const Fill *f) {
  if (dt == DT_bool) return rng_chance(r, 50);
  if (f->mode == MODE_raw && rng_chance(r, 20)) {
    Scalar lo, hi;
    dtype_limits(dt, &lo, &hi);
    return rng_chance(r, 50) ? lo.i : hi.i;
  }
  if (f->grain.mag >= 0x1p62) return scalar_wrap(dt, (i64)rng_next(r));
  i64 k = (i64)f->grain.mag;
  return scalar_wrap(dt, rng_between(r, dtype_is_signed(dt) ? -k : 0, k));
}

void fill_tensor(Rng *r, Tensor *t, const Fill *f) {
  for (u64 i = 0; i < t->n; i++) {
    Scalar x;
    if (f->index)
      x.i = rng_between(r, -f->index - 1, f->index);
    else if (t->dt == DT_f8e8m0)
      x.f = ldexp(
          1, (int)rng_between(r, f->mode == MODE_exact ? 0 : -9, f->mode == MODE_exact ? 0 : 9));
    else if (dtype_is_float(t->dt))
      x = scalar_cast(DT_f64, t->dt, (Scalar){.f = float_value(r, f)}, f->mode != MODE_raw);
    else
      x.i = int_value(r, t->dt, f);
    tensor_set(t, i, x);
  }
}
