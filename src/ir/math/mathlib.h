/* mathlib.h: the elementary functions of ingot, one source used twice.
 *
 * The compiler includes this file (eval.c, vm/rows.h) and mathlib.c pastes parts of it into
 * generated C. So every engine computes the same bits, and none needs libm. In: float or double.
 * Out: results and special values as in C99 Annex F, without errno; exception flags and NaN
 * payloads are unspecified. Method: argument reduction and minimax polynomials; all constants come
 * from tools/mathfit.py. Functions of float compute in double and round once.
 *
 * Needs: IEEE float and double with subnormals, evaluated in their own type (FLT_EVAL_METHOD 0),
 * round to nearest, no -ffast-math. Bits are the same everywhere if products are not contracted
 * into fma (-ffp-contract=off, or -std=c99 with gcc). With contraction the stated errors hold, but
 * the bits may differ. Nothing here has writable data, tables over 2 KB, or undefined behavior.
 *
 * A part stands between a line "@ NAME needs: NAMES" and a line "@ end", both comments. It is one
 * function or table and uses the parts it names, which come before it. Part NAME is the function
 * im_NAME, or a helper whose full name is NAME, imk_*. "error" is the largest measured, in ulp. */
#ifndef INGOT_MATHLIB_H
#define INGOT_MATHLIB_H

#include <stdint.h>

/*@ imk_requant needs: */
/* OP_requant without branches: the remainder of the shift decides whether to round up. */
static inline int32_t imk_requant(int32_t a, int32_t b, uint32_t c) {
  const int64_t p = (int64_t)a * b;
  const int32_t m = (int32_t)(p >> 32) + (int32_t)((uint32_t)p >> 31); /* within [-2^30, 2^30] */
  const int32_t rest = (int32_t)(((uint32_t)1 << (c & 31)) - 1);
  return (m >> (c & 31)) + ((m & rest) > (rest >> 1) + (m < 0));
}
/*@ end */

/*@ imk_f64 needs: */
static inline double imk_f64(uint64_t u) {
  union {
    uint64_t u;
    double f;
  } v;
  v.u = u;
  return v.f;
}
/*@ end */

/*@ imk_u64 needs: */
static inline uint64_t imk_u64(double f) {
  union {
    double f;
    uint64_t u;
  } v;
  v.f = f;
  return v.u;
}
/*@ end */

/*@ imk_abs needs: imk_f64 imk_u64 */
static inline double imk_abs(double x) {
  return imk_f64(imk_u64(x) & 0x7fffffffffffffff);
}
/*@ end */

/*@ imk_sign needs: imk_f64 imk_u64 */
/* |x| with the sign of s */
static inline double imk_sign(double x, double s) {
  return imk_f64((imk_u64(x) & 0x7fffffffffffffff) | (imk_u64(s) & 0x8000000000000000));
}
/*@ end */

/*@ imk_inf needs: imk_f64 */
static inline double imk_inf(void) {
  return imk_f64(0x7ff0000000000000);
}
/*@ end */

/*@ imk_nan needs: imk_f64 */
static inline double imk_nan(void) {
  return imk_f64(0x7ff8000000000000);
}
/*@ end */

/*@ imk_f32 needs: */
static inline float imk_f32(uint32_t u) {
  union {
    uint32_t u;
    float f;
  } v;
  v.u = u;
  return v.f;
}
/*@ end */

/*@ imk_u32 needs: */
static inline uint32_t imk_u32(float f) {
  union {
    float f;
    uint32_t u;
  } v;
  v.f = f;
  return v.u;
}
/*@ end */

/*@ imk_absf needs: imk_f32 imk_u32 */
static inline float imk_absf(float x) {
  return imk_f32(imk_u32(x) & 0x7fffffff);
}
/*@ end */

/*@ imk_signf needs: imk_f32 imk_u32 */
static inline float imk_signf(float x, float s) {
  return imk_f32((imk_u32(x) & 0x7fffffff) | (imk_u32(s) & 0x80000000));
}
/*@ end */

/* Branch-free select by bit masks, both operands computed: with `yes ? a : b`, compilers that keep
 * possibly trapping arithmetic under a branch (gcc) do not vectorize the loop. */

/*@ imk_pick needs: imk_f64 imk_u64 */
static inline double imk_pick(int yes, double a, double b) {
  uint64_t v = imk_u64(b);
  return imk_f64(v ^ ((imk_u64(a) ^ v) & (0 - (uint64_t)yes)));
}
/*@ end */

/*@ imk_pickf needs: imk_f32 imk_u32 */
static inline float imk_pickf(int yes, float a, float b) {
  uint32_t v = imk_u32(b);
  return imk_f32(v ^ ((imk_u32(a) ^ v) & (0 - (uint32_t)yes)));
}
/*@ end */

/* Rounding to integers: adding 2^52 to a smaller number leaves no fraction bits. */

/*@ rint needs: imk_f64 imk_pick imk_sign imk_u64 */
static inline double im_rint(double x) {
  uint64_t m = imk_u64(x) & 0x7fffffffffffffff;
  double r = (imk_f64(m) + 0x1p52) - 0x1p52;
  return imk_pick(m < 0x4330000000000000, imk_sign(r, x), x);
}
/*@ end */

/*@ floor needs: rint imk_pick */
static inline double im_floor(double x) {
  double r = im_rint(x);
  return imk_pick(r > x, r - 1, r);
}
/*@ end */

/*@ ceil needs: floor */
static inline double im_ceil(double x) {
  return -im_floor(-x); /* -0.7 to -0 */
}
/*@ end */

/*@ trunc needs: floor imk_abs imk_sign */
static inline double im_trunc(double x) {
  return imk_sign(im_floor(imk_abs(x)), x);
}
/*@ end */

/*@ rintf needs: imk_f32 imk_pickf imk_signf imk_u32 */
static inline float im_rintf(float x) {
  uint32_t m = imk_u32(x) & 0x7fffffff;
  float r = (imk_f32(m) + 0x1p23f) - 0x1p23f;
  return imk_pickf(m < 0x4b000000, imk_signf(r, x), x);
}
/*@ end */

/*@ floorf needs: rintf imk_pickf */
static inline float im_floorf(float x) {
  float r = im_rintf(x);
  return imk_pickf(r > x, r - 1, r);
}
/*@ end */

/*@ ceilf needs: floorf */
static inline float im_ceilf(float x) {
  return -im_floorf(-x);
}
/*@ end */

/*@ truncf needs: floorf imk_absf imk_signf */
static inline float im_truncf(float x) {
  return imk_signf(im_floorf(imk_absf(x)), x);
}
/*@ end */

/*@ sqrt needs: imk_f64 imk_inf imk_nan imk_u64 */
/* Correctly rounded. A compiler's builtin would call libm for errno. So this uses the instruction
 * where it is known, else computes digit by digit: q grows to 54 bits, of which the last one
 * rounds. A tie is impossible: the square of 54 bits with the last one set does not fit in 53. In
 * AVX code the legacy SSE encoding costs a state transition of about 100 cycles. gcc writes the VEX
 * form, with the operand repeated, in functions with AVX. clang must be told, by flags or, in
 * generated C, by IG_REGION, which only machines with AVX define. Conditions must not nest:
 * back/llvm/lcparse.c parses this text. */
static inline double im_sqrt(double x) {
  uint64_t m, q = 0, r = 0;
  int e, i, adjust = 0;
  if (x < 0) return imk_nan();
#if defined(__GNUC__) && defined(__SSE2_MATH__) && !defined(__clang__)
  __asm__("%vsqrtsd %0, %d0" : "+x"(x));
  return x;
#elif defined(__SSE2_MATH__) && (defined(__AVX__) || (defined(IG_REGION) && IG_REGION))
  __asm__("vsqrtsd %0, %0, %0" : "+x"(x));
  return x;
#elif defined(__GNUC__) && defined(__SSE2_MATH__)
  __asm__("sqrtsd %0, %0" : "+x"(x));
  return x;
#elif defined(__GNUC__) && defined(__aarch64__)
  __asm__("fsqrt %d0, %d0" : "+w"(x));
  return x;
#elif defined(__GNUC__) && defined(__wasm__)
  __asm__("local.get %0\nf64.sqrt\nlocal.set %0" : "+r"(x));
  return x;
#endif
  if (!(x > 0 && x < imk_inf())) return x;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    adjust = 27;
  }
  m = imk_u64(x);
  e = (int)(m >> 52) - 1023;
  m = (m & 0x000fffffffffffff) | 0x0010000000000000;
  if (e & 1) m <<= 1;
  m <<= 10; /* the two leading digits of the square are the top bits of m */
  for (i = 0; i < 54; i++) {
    r = r << 2 | m >> 62;
    m <<= 2;
    q <<= 1;
    if (r >= 2 * q + 1) {
      r -= 2 * q + 1;
      q++;
    }
  }
  q = (q + 1) >> 1;
  e = (e - (e & 1)) / 2 - adjust;
  return imk_f64(q + ((uint64_t)(e + 1022) << 52));
}
/*@ end */

/*@ sqrtf needs: imk_f32 imk_u32 */
/* Square root in f32, correctly rounded, with integers only where the CPU has no instruction. */
static inline float im_sqrtf(float x) {
  uint32_t m, q = 0, r = 0;
  int e, i, adjust = 0;
#if defined(__GNUC__) && defined(__SSE2_MATH__) && !defined(__clang__)
  if (x >= 0) {
    __asm__("%vsqrtss %0, %d0" : "+x"(x));
    return x;
  }
#elif defined(__SSE2_MATH__) && (defined(__AVX__) || (defined(IG_REGION) && IG_REGION))
  if (x >= 0) {
    __asm__("vsqrtss %0, %0, %0" : "+x"(x));
    return x;
  }
#elif defined(__GNUC__) && defined(__SSE2_MATH__)
  if (x >= 0) {
    __asm__("sqrtss %0, %0" : "+x"(x));
    return x;
  }
#elif defined(__GNUC__) && defined(__aarch64__)
  if (x >= 0) {
    __asm__("fsqrt %s0, %s0" : "+w"(x));
    return x;
  }
#elif defined(__GNUC__) && defined(__wasm__)
  if (x >= 0) {
    __asm__("local.get %0\nf32.sqrt\nlocal.set %0" : "+r"(x));
    return x;
  }
#elif defined(__GNUC__) && defined(__ARM_FP) && defined(__VFP_FP__) && !defined(__SOFTFP__)
  if (x < 0) return imk_f32(0x7fc00000);
  __asm__("vsqrt.f32 %0, %0" : "+t"(x));
  return x;
#endif
  if (x < 0) return imk_f32(0x7fc00000);
  if (!(x > 0 && x <= 0x1.fffffep127f)) return x;
  if (x < 0x1p-126f) {
    x *= 0x1p24f;
    adjust = 12;
  }
  m = imk_u32(x);
  e = (int)(m >> 23) - 127;
  m = (m & 0x007fffff) | 0x00800000;
  if (e & 1) m <<= 1;
  m <<= 7;
  for (i = 0; i < 25; i++) {
    r = r << 2 | m >> 30;
    m <<= 2;
    q <<= 1;
    if (r >= 2 * q + 1) {
      r -= 2 * q + 1;
      q++;
    }
  }
  q = (q + 1) >> 1;
  e = (e - (e & 1)) / 2 - adjust;
  return imk_f32(q + ((uint32_t)(e + 126) << 23));
}
/*@ end */

/*@ imk_wide needs: */
/* The 128 bits of a * b; the upper half is returned. */
static inline uint64_t imk_wide(uint64_t a, uint64_t b, uint64_t *lo) {
  uint64_t a1 = a >> 32, a0 = a & 0xffffffff, b1 = b >> 32, b0 = b & 0xffffffff;
  uint64_t p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0;
  uint64_t mid = (p00 >> 32) + (p01 & 0xffffffff) + (p10 & 0xffffffff);
  *lo = mid << 32 | (p00 & 0xffffffff);
  return a1 * b1 + (p01 >> 32) + (p10 >> 32) + (mid >> 32);
}
/*@ end */

/*@ imk_split needs: imk_abs imk_u64 */
/* |x| = m 2^e with m in [2^52, 2^53); x is finite and not 0. */
static inline uint64_t imk_split(double x, int *e) {
  uint64_t u = imk_u64(x) & 0x7fffffffffffffff;
  int sub = u >> 52 == 0;
  if (sub) u = imk_u64(imk_abs(x) * 0x1p54);
  *e = (int)(u >> 52) - 1075 - 54 * sub;
  return (u & 0x000fffffffffffff) | 0x0010000000000000;
}
/*@ end */

/*@ imk_shift needs: */
/* (hi, lo) 2^-n; lost bits set the last bit (sticky). */
static inline uint64_t imk_shift(uint64_t hi, uint64_t *lo, int n) {
  uint64_t lost = 0;
  if (n >= 128) {
    *lo = 1;
    return 0;
  }
  if (n >= 64) {
    lost = *lo;
    *lo = hi;
    hi = 0;
    n -= 64;
  }
  if (n > 0) {
    lost |= *lo << (64 - n);
    *lo = hi << (64 - n) | *lo >> n;
    hi >>= n;
  }
  *lo |= lost != 0;
  return hi;
}
/*@ end */

/*@ imk_round needs: imk_f64 */
/* (hi, lo) 2^e rounded to nearest even, with the sign given; hi or lo is not 0. */
static inline double imk_round(uint64_t hi, uint64_t lo, int e, uint64_t sign) {
  uint64_t m, half;
  int drop = 11;
  if (hi == 0) {
    hi = lo;
    lo = 0;
    e -= 64;
  }
  while (hi >> 63 == 0) {
    hi = hi << 1 | lo >> 63;
    lo <<= 1;
    e--;
  }
  e += 127; /* exponent of the leading bit */
  hi |= lo != 0;
  if (e > 1023) return imk_f64(sign | 0x7ff0000000000000);
  if (e < -1022) {
    drop += -1022 - e;
    e = -1022;
    if (drop > 64) return imk_f64(sign);
    if (drop == 64) return imk_f64(sign | (hi > 0x8000000000000000));
  }
  half = (uint64_t)1 << (drop - 1);
  m = hi >> drop;
  if ((hi & half) && ((hi & (half - 1)) || (m & 1))) m++;
  return imk_f64(sign | (m + ((uint64_t)(e + 1022) << 52)));
}
/*@ end */

/*@ fma needs: imk_abs imk_inf imk_round imk_shift imk_split imk_u64 imk_wide */
/* Correctly rounded, in integers. The product has 106 bits, held in 128 with 20 zeros below. So the
 * operand shifted right loses bits only when leading ones cannot cancel. */
static inline double im_fma(double a, double b, double c) {
  int ea, eb, ec;
  uint64_t ma, mb, hi, lo, chi, clo, sign, csign;
  double ab = a * b;
#if defined(__GNUC__) && (defined(__FMA__) || defined(__aarch64__))
  return __builtin_fma(a, b, c);
#endif
  if (!(imk_abs(a) < imk_inf() && imk_abs(b) < imk_inf()) || a == 0 || b == 0) return ab + c;
  if (!(imk_abs(c) < imk_inf())) return c;
  if (c == 0) return ab;
  ma = imk_split(a, &ea);
  mb = imk_split(b, &eb);
  chi = imk_split(c, &ec) << 9;
  clo = 0;
  hi = imk_wide(ma, mb, &lo);
  hi = hi << 20 | lo >> 44;
  lo <<= 20;
  ea += eb - 20;
  ec -= 73;
  sign = (imk_u64(a) ^ imk_u64(b)) & 0x8000000000000000;
  csign = imk_u64(c) & 0x8000000000000000;
  if (ea < ec) {
    hi = imk_shift(hi, &lo, ec - ea);
    ea = ec;
  } else if (ec < ea) {
    chi = imk_shift(chi, &clo, ea - ec);
  }
  if (sign == csign) {
    lo += clo;
    hi += chi + (lo < clo);
  } else {
    if (hi < chi || (hi == chi && lo < clo)) {
      uint64_t t = hi;
      hi = chi;
      chi = t;
      t = lo;
      lo = clo;
      clo = t;
      sign = csign;
    }
    hi -= chi + (lo < clo);
    lo -= clo;
    if ((hi | lo) == 0) return 0;
  }
  return imk_round(hi, lo, ea, sign);
}
/*@ end */

/*@ fmod needs: imk_f64 imk_u64 */
/* Exact: long division, 11 binary digits at a time. */
static inline double im_fmod(double x, double y) {
  uint64_t sign = imk_u64(x) & 0x8000000000000000, a = imk_u64(x) ^ sign;
  uint64_t b = imk_u64(y) & 0x7fffffffffffffff;
  int ea = (int)(a >> 52), eb = (int)(b >> 52);
  if (ea == 2047 || b == 0 || b > 0x7ff0000000000000) return (x * y) / (x * y);
  if (a < b) return x;
  a &= 0x000fffffffffffff;
  b &= 0x000fffffffffffff;
  if (ea > 0)
    a |= 0x0010000000000000;
  else
    ea = 1;
  if (eb > 0)
    b |= 0x0010000000000000;
  else
    eb = 1;
  a %= b;
  for (ea -= eb; ea > 0 && a != 0; ea -= 11) a = (a << (ea < 11 ? ea : 11)) % b;
  if (a == 0) return imk_f64(sign);
  while (a < 0x0010000000000000 && eb > 1) {
    a <<= 1;
    eb--;
  }
  return imk_f64(sign | (a + ((uint64_t)(eb - 1) << 52)));
}
/*@ end */

/*@ fmaf needs: imk_abs imk_f64 imk_inf imk_u64 */
/* Correctly rounded: the product is exact in double, and the sum is rounded to odd there, so that
 * rounding to float breaks ties correctly. */
static inline float im_fmaf(float a, float b, float c) {
  double p = (double)a * b, s = p + c, t = s - p, err = (p - (s - t)) + (c - t);
  uint64_t u = imk_u64(s);
#if defined(__GNUC__) && (defined(__FMA__) || defined(__aarch64__) || defined(__ARM_FEATURE_FMA))
  return __builtin_fmaf(a, b, c);
#endif
  if (err != 0 && (u & 1) == 0 && imk_abs(s) < imk_inf()) {
    if ((err > 0) == (s > 0))
      u++; /* away from 0; s is not 0, for then err is 0 */
    else
      u--;
  }
  return (float)imk_f64(u);
}
/*@ end */

/*@ mod needs: fmod imk_sign */
/* Python's %: the remainder, even if zero, has the sign of y. */
static inline double im_mod(double x, double y) {
  double r = im_fmod(x, y);
  if (r == 0) return imk_sign(0, y);
  return (r < 0) != (y < 0) ? r + y : r;
}
/*@ end */

/*@ fmodf needs: imk_f32 imk_u32 */
static inline float im_fmodf(float x, float y) {
  uint32_t sign = imk_u32(x) & 0x80000000, a = imk_u32(x) ^ sign, b = imk_u32(y) & 0x7fffffff;
  int ea = (int)(a >> 23), eb = (int)(b >> 23);
  uint64_t r;
  if (ea == 255 || b == 0 || b > 0x7f800000) return (x * y) / (x * y);
  if (a < b) return x;
  a &= 0x007fffff;
  b &= 0x007fffff;
  if (ea > 0)
    a |= 0x00800000;
  else
    ea = 1;
  if (eb > 0)
    b |= 0x00800000;
  else
    eb = 1;
  r = a % b;
  for (ea -= eb; ea > 0 && r != 0; ea -= 40) r = (r << (ea < 40 ? ea : 40)) % b;
  if (r == 0) return imk_f32(sign);
  while (r < 0x00800000 && eb > 1) {
    r <<= 1;
    eb--;
  }
  return imk_f32(sign | ((uint32_t)r + ((uint32_t)(eb - 1) << 23)));
}
/*@ end */

/*@ modf needs: fmodf imk_signf */
/* Python's %, as im_mod */
static inline float im_modf(float x, float y) {
  float r = im_fmodf(x, y);
  if (r == 0) return imk_signf(0, y);
  return (r < 0) != (y < 0) ? r + y : r;
}
/*@ end */

/*@ imk_p4 needs: */
/* a + b x + c x^2 + d x^3; x2 = x^2 */
static inline double imk_p4(double x, double x2, double a, double b, double c, double d) {
  return (a + b * x) + (c + d * x) * x2;
}
/*@ end */

/*@ imk_p5 needs: imk_p4 */
/* imk_p4 + rest x^4 */
static inline double imk_p5(double x, double x2, double a, double b, double c, double d,
                            double rest) {
  return imk_p4(x, x2, a, b, c, d) + x2 * x2 * rest;
}
/*@ end */

/*@ imk_t5 needs: imk_p5 */
/* imk_p5 with coefficients from a table */
static inline double imk_t5(double x, double x2, const double *c, double rest) {
  return imk_p5(x, x2, c[0], c[1], c[2], c[3], rest);
}
/*@ end */

#endif
