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

#endif
