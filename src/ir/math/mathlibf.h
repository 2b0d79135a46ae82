/* mathlibf.h: functions of float, computed in double and rounded once; see mathlib.h.
 *
 * They are short and, except for sine, cosine and tangent, branch-free, so that gcc -O3 and clang
 * vectorize loops over them. Not proven to be correctly rounded, but nearly so: the error before
 * rounding is below 2^-43, and at most one result in a million is the other neighbor of the true
 * value. "error" is the largest measured on every 97th float, for exp and tanh on all floats. */
#ifndef INGOT_MATHLIBF_H
#define INGOT_MATHLIBF_H

#include "ir/math/mathlib.h"

/*@ imk_expf needs: imk_f64 imk_p5 imk_u64 */
/* exp(x) = s (1 + q) with s a power of 2, relative error of q and 1 + q below 2^-48; |x| < 700 */
static inline double imk_expf(double x, double *q) {
  double t = x * 0x1.71547652b82fep0 + 0x1.8p52, k = t - 0x1.8p52;
  double r = (x - k * 0x1.62e42fefa38p-1) - k * 0x1.ef35793c7673p-45;
  double r2 = r * r;
  *q =
      r * (imk_p5(r, r2, 0x1.0000000000005p0, 0x1.fffffffffffbp-2, 0x1.5555555550df3p-3,
                  0x1.5555555565b2dp-5,
                  imk_p5(r, r2, 0x1.11111123adc15p-7, 0x1.6c16c1359a7c8p-10, 0x1.a0199501717bdp-13,
                         0x1.a01a72dc9524p-16, 0x1.72e0cce065b16p-19 + 0x1.27e59ff617991p-22 * r)));
  return imk_f64((imk_u64(t) + 1023) << 52);
}
/*@ end */

/*@ imk_clampf needs: imk_f32 imk_u32 */
/* |x| clamped to the float with bits `top`; NaN stays. */
static inline double imk_clampf(float x, uint32_t top) {
  uint32_t u = imk_u32(x), m = u & 0x7fffffff;
  return imk_f32(m > top && m <= 0x7f800000 ? (u ^ m) | top : u);
}
/*@ end */

/*@ expf needs: imk_clampf imk_expf */
/* error 0.5 */
static inline float im_expf(float x) {
  double q, s = imk_expf(imk_clampf(x, 0x42d20000), &q); /* 105: beyond the range of float */
  return (float)(s + s * q);
}
/*@ end */

/*@ exp_nonposf needs: expf */
static inline float im_exp_nonposf(float x) {
  return im_expf(x);
}
/*@ end */

/*@ exp_p1f needs: imk_clampf imk_expf */
/* error 0.5 */
static inline float im_exp_p1f(float x) {
  double q, s = imk_expf(imk_clampf(x, 0x42d20000), &q);
  return (float)(1 + (s + s * q));
}
/*@ end */

/*@ imk_logf needs: imk_f64 imk_p4 imk_p5 imk_u64 */
/* log(x) for x > 0, normal and finite; relative error below 2^-50 */
static inline double imk_logf(double x) {
  uint64_t u = imk_u64(x) - 0x3fe6a09e00000000 + 0x3ff0000000000000;
  double m = imk_f64((u & 0x000fffffffffffff) + 0x3fe6a09e00000000);
  double k = imk_f64(0x4330000000000000 | u >> 52) - 0x1.00000000003ffp52;
  double s = (m - 1) / (m + 1), z = s * s, z2 = z * z;
  double p = imk_p5(
      z, z2, 0x1.5555555555592p-1, 0x1.999999997fdep-2, 0x1.24924941f0bc9p-2, 0x1.c71c52084f6fbp-3,
      imk_p4(z, z2, 0x1.74663f647b34ep-3, 0x1.39a1a7a735455p-3, 0x1.2f066251eaa4cp-3, 0));
  return k * 0x1.62e42fefa38p-1 + ((2 * s + s * z * p) + k * 0x1.ef35793c7673p-45);
}
/*@ end */

/*@ logf needs: imk_f32 imk_logf imk_pickf imk_u32 */
/* error 0.5 */
static inline float im_logf(float x) {
  uint32_t u = imk_u32(x), m = u & 0x7fffffff;
  uint32_t other = m == 0 ? 0xff800000 : u > 0x80000000 && m <= 0x7f800000 ? 0x7fc00000 : u;
  return imk_pickf(u - 1 < 0x7f7fffff, (float)imk_logf(x), imk_f32(other));
}
/*@ end */

/*@ tanhf needs: imk_clampf imk_expf imk_signf */
/* error 0.5. (E - 1) / (E + 1) with E = exp(2x); E - 1 = (s - 1) + s q has no cancellation */
static inline float im_tanhf(float x) {
  double q, s = imk_expf(2 * imk_clampf(x, 0x41400000), &q); /* from 12 on it is 1 */
  double m = (s - 1) + s * q;
  return imk_signf((float)(m / (m + 2)), x); /* m of -0 is 0 */
}
/*@ end */

/*@ erff needs: imk_clampf imk_p4 imk_p5 */
/* error 0.5 + 1e-6. x p(u), u in [-1, 1]: one polynomial for |x| <= 4; beyond, erf rounds to 1 */
static inline float im_erff(float x) {
  double a = imk_clampf(x, 0x40800000), u = a * a * 0.125 - 1;
  double u2 = u * u;
  return (
      float)(a *
             (imk_p5(
                 u, u2, 0x1.6a040781a48bp-2, -0x1.69a0ccda3ed0ap-3, 0x1.0dabaf0636463p-3,
                 -0x1.b92e95c102037p-4,
                 imk_p5(u, u2, 0x1.717efc6b1259bp-4, -0x1.3215d8c4fb9dap-4, 0x1.ea97f34504107p-5,
                        -0x1.76e863796102bp-5,
                        imk_p5(u, u2, 0x1.0ed5188b21124p-5, -0x1.703505f2b1b8fp-6,
                               0x1.d636ec30429dcp-7, -0x1.1a01fb2bb9988p-7,
                               imk_p5(u, u2, 0x1.3e083443f6372p-8, -0x1.51ef38f4af981p-9,
                                      0x1.5354caad78adp-10, -0x1.416e04ad83313p-11,
                                      imk_p5(u, u2, 0x1.1de1ff7e721e5p-12, -0x1.ec0e1a4a139b7p-14,
                                             0x1.aa8b05bacc68dp-15, -0x1.40051521c77f3p-16,
                                             imk_p4(u, u2, 0x1.4ae8c00b567ecp-18,
                                                    -0x1.0dfc8d0850eb6p-19, 0x1.963e871f03154p-20,
                                                    -0x1.e0a9b6e0ab53ap-22))))))));
}
/*@ end */

/*@ gelu_x2f needs: erff */
/* each step rounded, as in the composed form */
static inline float im_gelu_x2f(float x) {
  return x * (1.0f + im_erff(x * 0x1.6a09e6p-1f));
}
/*@ end */

/* Sine and cosine: x = q pi/2 + r, |r| <= pi/4. */

/*@ imk_pio2f needs: imk_u64 */
/* Returns q and r. |x| < 2^18, so that q times the upper part of pi/2 is exact. */
static inline uint64_t imk_pio2f(double x, double *r) {
  double t = x * 0x1.45f306dc9c883p-1 + 0x1.8p52, k = t - 0x1.8p52;
  *r = (x - k * 0x1.921fb544p0) - k * 0x1.0b4611a626331p-34;
  return imk_u64(t);
}
/*@ end */

/* clang-format off */
/*@ imk_twopif needs: */
/* 2/pi in binary, after one word of zeros */
static const uint32_t imk_twopif[8] = {0x0,
    0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
};
/*@ end */
/* clang-format on */

/*@ imk_turnsf needs: imk_twopif */
/* m 2/pi for m below 2^24, from 96 bits of the table starting at bit b: the upper and lower 64 bits
 * of the product above 2^-64 */
static inline uint64_t imk_turnsf(uint32_t m, uint32_t b, uint64_t *low) {
  const uint32_t *t = imk_twopif + (b >> 5);
  uint64_t mid, top;
  b &= 31;
  *low = m * (((uint64_t)t[2] << 32 | t[3]) << b >> 32);
  mid = m * (((uint64_t)t[1] << 32 | t[2]) << b >> 32) + (*low >> 32);
  top = m * (((uint64_t)t[0] << 32 | t[1]) << b >> 32) + (mid >> 32);
  return top << 32 | (mid & 0xffffffff);
}
/*@ end */

/*@ imk_bigpif needs: imk_turnsf imk_u64 */
/* imk_pio2f for 2^18 <= |x|, a finite float: see imk_bigpi; uses 96 bits of 2/pi. */
static inline uint64_t imk_bigpif(double x, double *r) {
  uint64_t m = imk_u64(x), q, low, f;
  double y;
  f = imk_turnsf((uint32_t)(m >> 29 & 0x7fffff) | 0x800000, (uint32_t)(m >> 52 & 2047) - 1016,
                 &low);
  q = f >> 62;
  f = f << 2 | (low >> 30 & 3);
  y = f >> 63 ? -1 - (double)(int64_t)~f : (double)(int64_t)f;
  q += f >> 63;
  y = (y + (double)(int64_t)(low << 2 & 0xffffffff) * 0x1p-32) * 0x1.921fb54442d18p-64;
  *r = x < 0 ? -y : y;
  return x < 0 ? 0 - q : q;
}
/*@ end */

/*@ imk_wavef needs: imk_f64 imk_p5 imk_u64 */
/* sin(r + q pi/2) */
static inline double imk_wavef(double r, uint64_t q) {
  double z = r * r, z2 = z * z;
  double s =
      r * (1 + z * (imk_p5(z, z2, -0x1.555555555223cp-3, 0x1.1111110c87262p-7,
                           -0x1.a019f93925401p-13, 0x1.71d76ce0ca4dap-19, -0x1.a961895a24145p-26)));
  double c =
      1 + z * (imk_p5(z, z2, -0x1.ffffffffe98d6p-2, 0x1.55555545c5e2bp-5, -0x1.6c16b348f797ep-10,
                      0x1.a00eb9ac258a7p-16, -0x1.23c978e2ac4fap-22));
  return imk_f64(imk_u64(q & 1 ? c : s) ^ (q & 2) << 62);
}
/*@ end */

/*@ imk_anglef needs: imk_bigpif imk_pio2f */
/* imk_pio2f for any x; r is NaN if x is not finite. */
static inline uint64_t imk_anglef(float x, double *r) {
  double a = x;
  if (a < 0x1p18 && a > -0x1p18) return imk_pio2f(a, r);
  if (x - x == 0) return imk_bigpif(a, r);
  *r = x - x;
  return 0;
}
/*@ end */

/*@ sinf needs: imk_anglef imk_wavef */
/* error 0.5 + 2e-6 */
static inline float im_sinf(float x) {
  double r;
  uint64_t q = imk_anglef(x, &r);
  return (float)imk_wavef(r, q);
}
/*@ end */

/*@ cosf needs: imk_anglef imk_wavef */
/* error 0.5 + 2e-6 */
static inline float im_cosf(float x) {
  double r;
  uint64_t q = imk_anglef(x, &r);
  return (float)imk_wavef(r, q + 1);
}
/*@ end */

/*@ tanf needs: imk_anglef imk_wavef */
/* error 0.5 + 1e-6 */
static inline float im_tanf(float x) {
  double r;
  uint64_t q = imk_anglef(x, &r);
  return (float)(imk_wavef(r, q) / imk_wavef(r, q + 1));
}
/*@ end */

/*@ imk_asinf needs: imk_p5 */
/* asin(t) for z = t^2, |t| <= 1/2 */
static inline double imk_asinf(double t, double z) {
  double z2 = z * z;
  return t +
         t * z *
             (imk_p5(z, z2, 0x1.555555565a875p-3, 0x1.333331f2794b4p-4, 0x1.6db762af9dd62p-5,
                     0x1.f1ab440df199p-6,
                     imk_p5(z, z2, 0x1.7027e2ffb86cbp-6, 0x1.0e119c0e765f4p-6, 0x1.30d96a2f59728p-6,
                            -0x1.6fe5a67bf5d2dp-9, 0x1.056eec5b9ca98p-5)));
}
/*@ end */

/*@ asinf needs: sqrt imk_abs imk_asinf imk_sign */
/* error 0.5 + 1e-6 */
static inline float im_asinf(float x) {
  double a = imk_abs(x), z = a > 0.5 ? (1 - a) * 0.5 : a * a;
  double y = imk_asinf(a > 0.5 ? im_sqrt(z) : a, z);
  return (float)imk_sign(a > 0.5 ? 0x1.921fb54442d18p0 - 2 * y : y, x);
}
/*@ end */

/*@ acosf needs: sqrt imk_abs imk_asinf imk_sign */
/* error 0.5 */
static inline float im_acosf(float x) {
  double a = imk_abs(x), z = a > 0.5 ? (1 - a) * 0.5 : a * a;
  double y = imk_asinf(a > 0.5 ? im_sqrt(z) : a, z);
  if (x > 0.5f) return (float)(2 * y);
  if (x < -0.5f) return (float)(2 * (0x1.921fb54442d18p0 - y));
  return (float)(0x1.921fb54442d18p0 - imk_sign(y, x));
}
/*@ end */

/*@ atanf needs: imk_abs imk_p4 imk_p5 imk_pick imk_sign */
/* error 0.5 */
static inline float im_atanf(float x) {
  double a = imk_abs(x), t = imk_pick(a > 1, 1 / a, a), z = t * t, z2 = z * z;
  double y =
      t + t * z *
              (imk_p5(z, z2, -0x1.55555555190f5p-2, 0x1.9999996740edcp-3, -0x1.249241bbb2988p-3,
                      0x1.c71b5527781b2p-4,
                      imk_p5(z, z2, -0x1.745047a2cd57p-4, 0x1.3ab29922f0b39p-4,
                             -0x1.0f0ff1421bff5p-4, 0x1.d281ada7fda34p-5,
                             imk_p5(z, z2, -0x1.831486f77e28cp-5, 0x1.255e15f01a5aep-5,
                                    -0x1.7bbd678e3e0dfp-6, 0x1.854821eb7802ap-7,
                                    imk_p4(z, z2, -0x1.20f967bc573ccp-8, 0x1.0fd796c4b8766p-10,
                                           -0x1.e1d73e6efc963p-14, 0)))));
  return (float)imk_sign(imk_pick(a > 1, 0x1.921fb54442d18p0 - y, y), x);
}
/*@ end */

/*@ sinhf needs: imk_abs imk_clampf imk_expf imk_sign */
/* error 0.5 */
static inline float im_sinhf(float x) {
  double q, s = imk_expf(imk_abs(imk_clampf(x, 0x42c80000)), &q); /* 100 */
  double m = (s - 1) + s * q;
  return (float)imk_sign(0.5 * (m + m / (m + 1)), x);
}
/*@ end */

/*@ coshf needs: imk_clampf imk_expf */
/* error 0.5 */
static inline float im_coshf(float x) {
  double q, s = imk_expf(imk_clampf(x, 0x42c80000), &q), e = s + s * q;
  return (float)(0.5 * (e + 1 / e));
}
/*@ end */

/*@ imk_log1pf needs: imk_logf */
/* log(1 + x) for 0 <= x < inf */
static inline double imk_log1pf(double x) {
  double w = 1 + x;
  return imk_logf(w) + (x - (w - 1)) / w;
}
/*@ end */

/*@ asinhf needs: sqrt imk_abs imk_inf imk_log1pf imk_sign */
/* error 0.5 */
static inline float im_asinhf(float x) {
  double a = imk_abs(x), w = a * a;
  double y = imk_log1pf(a + w / (1 + im_sqrt(1 + w)));
  return a < imk_inf() ? (float)imk_sign(y, x) : x;
}
/*@ end */

/*@ acoshf needs: sqrt imk_inf imk_log1pf imk_nan */
/* error 0.5 */
static inline float im_acoshf(float x) {
  double d = (double)x - 1, y = imk_log1pf(d + im_sqrt(d * (d + 2)));
  return d >= 0 && d < imk_inf() ? (float)y : d < 0 ? (float)imk_nan() : x;
}
/*@ end */

/*@ atanhf needs: imk_abs imk_inf imk_log1pf imk_nan imk_sign */
/* error 0.5 */
static inline float im_atanhf(float x) {
  double a = imk_abs(x), y = 0.5 * imk_log1pf(2 * a / (1 - a));
  return (float)imk_sign(a < 1 ? y : a == 1 ? imk_inf() : imk_nan(), x);
}
/*@ end */

/*@ powf needs: imk_abs imk_expf imk_f32 imk_inf imk_logf imk_nan imk_pick imk_pickf imk_u32 imk_u64 */
/* error 0.5 + 1e-6. Squares are computed separately because many of them are ties. */
static inline float im_powf(float x, float y) {
  double a = imk_abs(x), b = imk_abs(y), t = b + 0x1p52, l = imk_logf(a), q, s;
  int big = b >= 0x1p24, whole = big | (t - 0x1p52 == b); /* big ones are even */
  int neg = (int)(imk_u32(x) >> 31) & (int)imk_u64(t) & whole & !big;
  float r, nan = (float)imk_nan();
  l = y * imk_pick(a == 0, -imk_inf(), imk_pick(a == imk_inf(), a, l));
  l = imk_pick(l > 200, 200, imk_pick(l < -200, -200, l));
  s = imk_expf(l, &q);
  r = (float)(s + s * q);
  r = imk_f32(imk_u32(r) ^ (uint32_t)neg << 31);
  r = imk_pickf((x < 0) & !whole & (a < imk_inf()), nan, r);
  r = imk_pickf(y == 2, x * x, r);
  r = imk_pickf((x != x) | (y != y), nan, r);
  return imk_pickf((x == 1) | (y == 0) | ((a == 1) & (b == imk_inf())), 1, r);
}
/*@ end */

#endif
