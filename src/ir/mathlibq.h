/* mathlibq.h: functions of float by float arithmetic alone, for programs that say `math fast`; see
 * mathlib.h.
 *
 * In: float. Out: float, with the error stated at each function and the special values of the
 * precise ones: NaN, infinities, zeros with their signs, subnormals. Method: argument reduction and
 * polynomials or quotients of them whose coefficients have one sign, so that rounding errors do not
 * grow. Nothing branches: cmath.c of the C back end turns the same text into functions of vectors
 * by putting vector types for `float`, `uint32_t` and `int`. Hence it is written in what both have:
 * arithmetic and comparisons of variables with each other and with constants, bits, and the parts
 * down to imk_far, which that file has in a form of its own. A constant by itself is imk_all(x).
 *
 * Those that end in u are for programs that say `math fused`: products are added without being
 * rounded, which halves the operations where the machine does so.
 *
 * Those that end in s are for programs that say `math single`, of machines without vectors: they
 * may branch (exp, tanh and erf do not, so that compilers make vectors of loops over them), and no
 * operation is in double, also where those above call a function of mathlibf.h.
 *
 * "error" is the largest seen, in units in the last place; docs/ir.md says on how many floats each
 * was measured. test/unit/math_quick.c holds them to it on fewer: every 97th of 2^-20..2^14. */
#ifndef INGOT_MATHLIBQ_H
#define INGOT_MATHLIBQ_H

#include "ir/mathlibf.h"

/*@ imk_all needs: */
static inline float imk_all(float x) {
  return x;
}
/*@ end */

/*@ imk_mask needs: */
/* all bits, or none */
static inline uint32_t imk_mask(int yes) {
  return 0 - (uint32_t)yes;
}
/*@ end */

/*@ imk_lesser needs: */
/* b where they cannot be compared */
static inline float imk_lesser(float a, float b) {
  return a < b ? a : b;
}
/*@ end */

/*@ imk_larger needs: */
static inline float imk_larger(float a, float b) {
  return a > b ? a : b;
}
/*@ end */

/*@ imk_farsin needs: sinf */
/* y = sin(x) holds below 2^13 only */
static inline float imk_farsin(float x, float y) {
  return x < 0x1p13f && x > -0x1p13f ? y : im_sinf(x);
}
/*@ end */

/*@ imk_farcos needs: cosf */
static inline float imk_farcos(float x, float y) {
  return x < 0x1p13f && x > -0x1p13f ? y : im_cosf(x);
}
/*@ end */

/*@ imk_mad needs: fmaf */
/* a * b + c, rounded once */
static inline float imk_mad(float a, float b, float c) {
  return im_fmaf(a, b, c);
}
/*@ end */

/*@ imk_pow2 needs: imk_f32 imk_u32 */
/* p 2^k for t = k + 1.5 2^23 and p about 1, in two factors: results may be subnormal, and k = 128
 * must not overflow before the product does. */
static inline float imk_pow2(float p, float t) {
  uint32_t m = imk_u32(t) - 0x4b3fff02u, h = m >> 1; /* k + 254 */
  return p * imk_f32(h << 23) * imk_f32((m - h) << 23);
}
/*@ end */

/*@ expu needs: imk_all imk_larger imk_lesser imk_mad imk_pow2 */
/* error 1.0 */
static inline float im_expu(float x) {
  float a = imk_larger(imk_all(-104.0f), imk_lesser(imk_all(89.0f), x));
  float t = imk_mad(a, imk_all(0x1.715476p0f), imk_all(0x1.8p23f)), k = t - 0x1.8p23f;
  float r = imk_mad(k, imk_all(-0x1.7f7d1cp-20f), imk_mad(k, imk_all(-0x1.62e4p-1f), a));
  float p = imk_mad(imk_all(0x1.6a254ep-10f), r, imk_all(0x1.1239dap-7f));
  p = imk_mad(imk_mad(p, r, imk_all(0x1.5558fp-5f)), r, imk_all(0x1.555492p-3f));
  p = imk_mad(p, r, imk_all(0x1.fffffcp-2f));
  return imk_pow2(1.0f + imk_mad(r * r, p, r), t);
}
/*@ end */

/*@ exp1u needs: imk_all imk_larger imk_lesser imk_mad imk_pow2 */
/* error 5.6, below 3.4 where |x| < 20: what divides by it needs no more. ln 2 in one part */
static inline float im_exp1u(float x) {
  float a = imk_larger(imk_all(-104.0f), imk_lesser(imk_all(89.0f), x));
  float t = imk_mad(a, imk_all(0x1.715476p0f), imk_all(0x1.8p23f)), k = t - 0x1.8p23f;
  float r = imk_mad(k, imk_all(-0x1.62e43p-1f), a);
  float p = imk_mad(imk_all(0x1.10624p-7f), r, imk_all(0x1.5729fp-5f));
  p = imk_mad(imk_mad(p, r, imk_all(0x1.5557bp-3f)), r, imk_all(0x1.fffdfcp-2f));
  return 1.0f + imk_pow2(1.0f + imk_mad(r * r, p, r), t);
}
/*@ end */

/*@ tanhu needs: imk_all imk_larger imk_lesser imk_mad */
/* error 4.7, 2.8e-7 absolute. As tanhq */
static inline float im_tanhu(float x) {
  float a = imk_larger(imk_all(-9.0f), imk_lesser(imk_all(9.0f), x)), z = a * a;
  float p = imk_mad(imk_all(0x1.cbe096p-27f), z, imk_all(0x1.5a35ep-16f));
  float q = imk_mad(imk_all(0x1.a23bcep-21f), z, imk_all(0x1.58d346p-12f));
  p = imk_mad(imk_mad(p, z, imk_all(0x1.ca6b1p-9f)), z, imk_all(0x1.1213cep-3f));
  q = imk_mad(imk_mad(q, z, imk_all(0x1.a816dp-6f)), z, imk_all(0x1.de5f34p-2f));
  p = imk_mad(p, z, imk_all(1.0f));
  q = imk_mad(q, z, imk_all(1.0f));
  return imk_larger(imk_all(-1.0f), imk_lesser(imk_all(1.0f), a * p / q));
}
/*@ end */

/*@ erfu needs: imk_all imk_larger imk_lesser imk_mad */
/* error 5.1, 3.1e-7 absolute. As erfq */
static inline float im_erfu(float x) {
  float a = imk_larger(imk_all(-3.93f), imk_lesser(imk_all(3.93f), x)), z = a * a;
  float p = imk_mad(imk_all(0x1.129092p-19f), z, imk_all(0x1.2a0c88p-12f));
  float q = imk_mad(imk_all(0x1.3edeecp-15f), z, imk_all(0x1.2ff2fp-10f));
  p = imk_mad(imk_mad(p, z, imk_all(0x1.ec5b12p-9f)), z, imk_all(0x1.afe0b6p-5f));
  q = imk_mad(imk_mad(q, z, imk_all(0x1.e9ececp-7f)), z, imk_all(0x1.d3174ep-4f));
  p = imk_mad(imk_mad(p, z, imk_all(0x1.85a0c2p-3f)), z, imk_all(0x1.20dd76p0f));
  q = imk_mad(imk_mad(q, z, imk_all(0x1.00fdbcp-1f)), z, imk_all(1.0f));
  return imk_larger(imk_all(-1.0f), imk_lesser(imk_all(1.0f), a * p / q));
}
/*@ end */

/*@ gelu2u needs: imk_all imk_f32 imk_larger imk_lesser imk_mad imk_u32 */
/* error 3.4e-7 |x|. x + |x| - |x| erfc(|x| / sqrt 2), and erfc is the fourth power
 * of a polynomial: no quotient. From 5.7 on that is below 0 and counts as 0. -0 gives +0 */
static inline float im_gelu2u(float x) {
  float m = imk_f32(imk_u32(x) & 0x7fffffffu), t = imk_lesser(imk_all(5.75f), m);
  float q = imk_mad(imk_all(-0x1.111d28p-18f), t, imk_all(0x1.24ebe4p-14f));
  q = imk_mad(imk_mad(q, t, imk_all(-0x1.818044p-12f)), t, imk_all(-0x1.2f485ap-15f));
  q = imk_mad(imk_mad(q, t, imk_all(0x1.2740dcp-8f)), t, imk_all(0x1.6ad4eep-8f));
  q = imk_mad(imk_mad(q, t, imk_all(-0x1.e90c64p-5f)), t, imk_all(-0x1.9883cp-3f));
  q = imk_larger(imk_all(0.0f), imk_mad(q, t, imk_all(1.0f)));
  q = q * q;
  return imk_mad(-t, q * q, x + m);
}
/*@ end */

/*@ expq needs: imk_all imk_larger imk_lesser imk_pow2 */
/* error 0.98 */
static inline float im_expq(float x) {
  float a = imk_larger(imk_all(-104.0f), imk_lesser(imk_all(89.0f), x));
  float t = a * 0x1.715476p0f + 0x1.8p23f, k = t - 0x1.8p23f;
  float r = (a - k * 0x1.62e4p-1f) - k * 0x1.7f7d1cp-20f;
  float p = (((0x1.6a254ep-10f * r + 0x1.1239dap-7f) * r + 0x1.5558fp-5f) * r + 0x1.555492p-3f) * r;
  return imk_pow2(1.0f + (r + r * r * (p + 0x1.fffffcp-2f)), t);
}
/*@ end */

/*@ exp1q needs: expq */
/* error 1.5 */
static inline float im_exp1q(float x) {
  return 1.0f + im_expq(x);
}
/*@ end */

/*@ logq needs: imk_f32 imk_mask imk_u32 */
/* error 0.83. x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); s = f / (2 + f), log(1 + f) = 2
 * atanh(s). The square of f is kept apart because it cancels in s (f^2/2 + ...). */
static inline float im_logq(float x) {
  uint32_t tiny = imk_mask(x < 0x1p-126f), zero = imk_mask(x == 0.0f), neg = imk_mask(x < 0.0f);
  uint32_t fine = imk_mask(x <= 0x1.fffffep127f) & ~zero & ~neg;
  uint32_t other = (imk_u32(x) & ~zero & ~neg) | (zero & 0xff800000u) | (neg & 0x7fc00000u);
  uint32_t u = imk_u32(x * imk_f32(0x3f800000u + (tiny & 0x0b800000u))) + 0x004afb0du;
  float k = imk_f32(0x4b000100u + (u >> 23) - (tiny & 23u)) - 0x1.0002fep23f;
  float f = imk_f32((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  float s = f / (2.0f + f), z = s * s, h = 0.5f * f * f;
  float p = z * ((0x1.31e25p-2f * z + 0x1.995ec4p-2f) * z + 0x1.55557ap-1f);
  float y = k * 0x1.62e4p-1f - ((h - (s * (h + p) + k * 0x1.7f7d1cp-20f)) - f);
  return imk_f32((imk_u32(y) & fine) | (other & ~fine));
}
/*@ end */

/*@ tanhq needs: imk_all imk_larger imk_lesser */
/* error 5.8, 3.5e-7 absolute. x p(z) / q(z), z = x^2, cut at 1: rounding may lead beyond it. Terms
 * in pairs: fewer roundings than term by term */
static inline float im_tanhq(float x) {
  float a = imk_larger(imk_all(-9.0f), imk_lesser(imk_all(9.0f), x)), z = a * a, z2 = z * z;
  float p = (1.0f + 0x1.1213cep-3f * z) +
            z2 * ((0x1.ca6b1p-9f + 0x1.5a35ep-16f * z) + 0x1.cbe096p-27f * z2);
  float q = (1.0f + 0x1.de5f34p-2f * z) +
            z2 * ((0x1.a816dp-6f + 0x1.58d346p-12f * z) + 0x1.a23bcep-21f * z2);
  return imk_larger(imk_all(-1.0f), imk_lesser(imk_all(1.0f), a * p / q));
}
/*@ end */

/*@ erfq needs: imk_all imk_larger imk_lesser */
/* error 6.0, 3.6e-7 absolute. As tanhq. */
static inline float im_erfq(float x) {
  float a = imk_larger(imk_all(-3.93f), imk_lesser(imk_all(3.93f), x)), z = a * a, z2 = z * z;
  float p =
      (0x1.20dd76p0f + 0x1.85a0c2p-3f * z) +
      z2 * ((0x1.afe0b6p-5f + 0x1.ec5b12p-9f * z) + z2 * (0x1.2a0c88p-12f + 0x1.129092p-19f * z));
  float q = (1.0f + 0x1.00fdbcp-1f * z) + z2 * ((0x1.d3174ep-4f + 0x1.e9ececp-7f * z) +
                                                z2 * (0x1.2ff2fp-10f + 0x1.3edeecp-15f * z));
  return imk_larger(imk_all(-1.0f), imk_lesser(imk_all(1.0f), a * p / q));
}
/*@ end */

/*@ gelu2q needs: erfq */
/* error 4.6e-7 |x| */
static inline float im_gelu2q(float x) {
  return x * (1.0f + im_erfq(x * 0x1.6a09e6p-1f));
}
/*@ end */

/* Sine and cosine: |x| = q pi/2 + r, where pi/2 is a sum of four numbers of 11 bits and a rest, so
 * that products with q < 2^13 are exact. The first two differences are exact too; behind them sums
 * carry their rounding error along, for x may come as near to a multiple as 2^-26. */

/*@ imk_waveq needs: imk_f32 imk_u32 */
/* sin(a + turn pi/2) for 0 <= a < 2^13, turn 0 or 1 */
static inline float imk_waveq(float a, uint32_t turn) {
  float t = a * 0x1.45f306p-1f + 0x1.8p23f, k = t - 0x1.8p23f;
  float b = (a - k * 0x1.92p0f) - k * 0x1.fb4p-12f;
  float c = k * 0x1.444p-24f, s = b - c, v = s - b, e = (b - (s - v)) - (c + v);
  float d = k * 0x1.68cp-39f, w = s - d, g = w - s, f = (s - (w - g)) - (d + g);
  float r = w + ((e + f) - k * 0x1.1a6264p-54f);
  float z = r * r;
  float y = r + r * z * ((-0x1.9943a2p-13f * z + 0x1.11073ap-7f) * z - 0x1.555546p-3f);
  float x =
      1.0f - (0.5f * z - z * z * ((0x1.99ebdep-16f * z - 0x1.6c0c34p-10f) * z + 0x1.55554ap-5f));
  uint32_t n = imk_u32(t) + turn, odd = 0u - (n & 1u);
  return imk_f32(((imk_u32(x) & odd) | (imk_u32(y) & ~odd)) ^ (n & 2u) << 30);
}
/*@ end */

/*@ sinq needs: imk_f32 imk_farsin imk_u32 imk_waveq */
/* error 1.6 below 2^13 */
static inline float im_sinq(float x) {
  uint32_t sign = imk_u32(x) & 0x80000000u;
  return imk_farsin(x, imk_f32(imk_u32(imk_waveq(imk_f32(imk_u32(x) ^ sign), sign & 0u)) ^ sign));
}
/*@ end */

/*@ cosq needs: imk_f32 imk_farcos imk_u32 imk_waveq */
/* error 1.6 below 2^13 */
static inline float im_cosq(float x) {
  uint32_t u = imk_u32(x) & 0x7fffffffu;
  return imk_farcos(x, imk_waveq(imk_f32(u), (u & 0u) + 1u));
}
/*@ end */

/*@ imk_within needs: imk_f32 */
/* The number of bits m, not negative, or that of bits top where it is larger; NaN stays. By
 * integers: compilers turn comparisons of floats into branches, and loops with branches into no
 * vectors. */
static inline float imk_within(uint32_t m, uint32_t top) {
  uint32_t over = 0u - (uint32_t)(((int32_t)m > (int32_t)top) & ((int32_t)m <= 0x7f800000));
  return imk_f32((m & ~over) | (top & over));
}
/*@ end */

/*@ exps needs: imk_f32 imk_pow2 imk_u32 imk_within */
/* The bits of im_expq; 104 is beyond the range of float. */
static inline float im_exps(float x) {
  uint32_t u = imk_u32(x) & 0x7fffffffu, sign = imk_u32(x) ^ u;
  float a = imk_f32(imk_u32(imk_within(u, 0x42d00000u)) | sign);
  float t = a * 0x1.715476p0f + 0x1.8p23f, k = t - 0x1.8p23f;
  float r = (a - k * 0x1.62e4p-1f) - k * 0x1.7f7d1cp-20f;
  float p = (((0x1.6a254ep-10f * r + 0x1.1239dap-7f) * r + 0x1.5558fp-5f) * r + 0x1.555492p-3f) * r;
  return imk_pow2(1.0f + (r + r * r * (p + 0x1.fffffcp-2f)), t);
}
/*@ end */

/*@ imk_exm1 needs: imk_f32 imk_u32 */
/* exp(x) - 1 for |x| < 80: of 2^k q + (2^k - 1) the last part is rounded only where it is near the
 * whole. */
static inline float imk_exm1(float x) {
  float t = x * 0x1.715476p0f + 0x1.8p23f, k = t - 0x1.8p23f;
  float r = (x - k * 0x1.62e4p-1f) - k * 0x1.7f7d1cp-20f, z = r * r;
  float p = (0x1.fffffcp-2f + 0x1.555492p-3f * r) +
            z * ((0x1.5558fp-5f + 0x1.1239dap-7f * r) + z * 0x1.6a254ep-10f);
  float s = imk_f32(0x3f800000u + (imk_u32(t) << 23));
  return (r + z * p) * s + (s - 1.0f);
}
/*@ end */

/*@ tanhs needs: imk_exm1 imk_f32 imk_u32 imk_within */
/* error 2.6. With m = exp(2|x|) - 1 it is m / (m + 2); from 9.02 on that is 1. */
static inline float im_tanhs(float x) {
  uint32_t u = imk_u32(x) & 0x7fffffffu, sign = imk_u32(x) ^ u;
  float a = imk_within(u, 0x41200000u), m = imk_exm1(a + a); /* 10 */
  return imk_f32(imk_u32(m / (m + 2.0f)) | sign);
}
/*@ end */

/*@ erfs needs: imk_exm1 imk_f32 imk_u32 imk_within */
/* error 3.12. 1 - exp(-a p(a)), a = |x|; from 3.93 on it is 1. */
static inline float im_erfs(float x) {
  uint32_t u = imk_u32(x) & 0x7fffffffu, sign = imk_u32(x) ^ u;
  float a = imk_within(u, 0x407b851fu), b = a * a, p;
  p = ((0x1.a4fa5ep-4f - 0x1.39cdccp-6f * a) - 0x1.5055cap-13f * b) +
      b * a *
          ((0x1.b4feb6p-10f - 0x1.4bc7e8p-11f * a) + b * (0x1.ed6776p-14f - 0x1.369224p-17f * a));
  p = 0x1.20dd76p0f + (0x1.45f2fap-1f + p * a) * a;
  return imk_f32((imk_u32(imk_exm1(-(a * p))) & 0x7fffffffu) | sign);
}
/*@ end */

/*@ gelu2s needs: erfs */
/* error 2.5e-7 |x| */
static inline float im_gelu2s(float x) {
  return x * (1.0f + im_erfs(x * 0x1.6a09e6p-1f));
}
/*@ end */

/*@ imk_turned needs: imk_f32 imk_u32 */
/* sin(r + n pi/2), |r| <= pi/4 */
static inline float imk_turned(float r, uint32_t n) {
  float z = r * r;
  if (n & 1)
    r = 1.0f - (0.5f * z - z * z * ((0x1.99ebdep-16f * z - 0x1.6c0c34p-10f) * z + 0x1.55554ap-5f));
  else
    r = r + r * z * ((-0x1.9943a2p-13f * z + 0x1.11073ap-7f) * z - 0x1.555546p-3f);
  return imk_f32(imk_u32(r) ^ (n & 2u) << 30);
}
/*@ end */

/*@ imk_fars needs: imk_turned imk_twopif imk_u32 */
/* sin(a + turn pi/2) for 2^13 <= a, finite: of the product with 2/pi the two bits before the point
 * and 64 behind it are computed as integers; see imk_bigpif. */
static inline float imk_fars(float a, uint32_t turn) {
  uint32_t u = imk_u32(a), b = (u >> 23) - 120, s = b & 31, n;
  const uint32_t *t = imk_twopif + (b >> 5);
  uint64_t m = (u & 0x7fffff) | 0x800000, low, mid, top, f;
  float r;
  low = m * (((uint64_t)t[2] << 32 | t[3]) << s >> 32);
  mid = m * (((uint64_t)t[1] << 32 | t[2]) << s >> 32) + (low >> 32);
  top = m * (((uint64_t)t[0] << 32 | t[1]) << s >> 32) + (mid >> 32);
  f = top << 32 | (mid & 0xffffffff);
  n = (uint32_t)(f >> 62) + turn;
  f = f << 2 | (low >> 30 & 3);
  n += (uint32_t)(f >> 63);
  r = (f >> 63 ? -(float)(int64_t)~f : (float)(int64_t)f) * 0x1.921fb6p-64f;
  return imk_turned(r, n);
}
/*@ end */

/*@ imk_waves needs: imk_fars imk_turned imk_u32 imk_waveq */
/* sin(a + turn pi/2), 0 <= a. Below 2^13 three parts of pi/2 do but near its multiples, where
 * imk_waveq has more; a is its own remainder below pi/4. */
static inline float imk_waves(float a, uint32_t turn) {
  float t = a * 0x1.45f306p-1f + 0x1.8p23f, k = t - 0x1.8p23f;
  float r = ((a - k * 0x1.92p0f) - k * 0x1.fb4p-12f) - k * 0x1.4442d2p-24f;
  if (!(a < 0x1p13f)) return a <= 0x1.fffffep127f ? imk_fars(a, turn) : a - a;
  if (r < 0x1p-9f && r > -0x1p-9f && k != 0.0f) return imk_waveq(a, turn);
  return imk_turned(r, imk_u32(t) + turn);
}
/*@ end */

/*@ sins needs: imk_f32 imk_u32 imk_waves */
/* error 1.6 below 2^13, 2.7 beyond */
static inline float im_sins(float x) {
  uint32_t u = imk_u32(x) & 0x7fffffffu;
  return imk_f32(imk_u32(imk_waves(imk_f32(u), 0)) ^ (imk_u32(x) ^ u));
}
/*@ end */

/*@ coss needs: imk_f32 imk_u32 imk_waves */
/* error 1.6 below 2^13, 2.7 beyond */
static inline float im_coss(float x) {
  return imk_waves(imk_f32(imk_u32(x) & 0x7fffffffu), 1);
}
/*@ end */

#endif
