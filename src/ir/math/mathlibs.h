/* mathlibs.h: functions of float for programs with `math single`, for machines without vectors; see
 * mathlib.h.
 *
 * Like those of quick.def, but they may branch (exp, tanh and erf do not, so that compilers
 * vectorize loops over them), and all operations are in float, also where those call mathlibf.h.
 * "error" is the largest measured, in ulp. */
#ifndef INGOT_MATHLIBS_H
#define INGOT_MATHLIBS_H

#include "ir/math/mathlibq.h"

/*@ imk_within needs: imk_f32 */
/* The smaller of the non-negative floats with bits m and top; NaN stays. Uses integers: compilers
 * turn float comparisons into branches and then do not vectorize the loop. */
static inline float imk_within(uint32_t m, uint32_t top) {
  uint32_t over = 0u - (uint32_t)(((int32_t)m > (int32_t)top) & ((int32_t)m <= 0x7f800000));
  return imk_f32((m & ~over) | (top & over));
}
/*@ end */

/*@ exps needs: imk_f32 imk_pow2 imk_u32 imk_within */
/* exp(x) with the bits of im_expq. |x| is clamped to 104, where exp overflows or underflows in f32.
 */
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
/* exp(x) - 1 for |x| < 80: 2^k q + (2^k - 1); the last part is rounded only if it is close to the
 * result. */
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

/*@ gelu_x2s needs: erfs */
/* error 2.5e-7 |x| */
static inline float im_gelu_x2s(float x) {
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

/*@ imk_fars needs: imk_turned imk_turnsf imk_u32 */
/* sin(a + turn pi/2) for 2^13 <= a, finite. Of the product with 2/pi, the two bits before the
 * binary point and 64 after it are computed as integers; see imk_bigpif. */
static inline float imk_fars(float a, uint32_t turn) {
  uint32_t u = imk_u32(a), n;
  uint64_t low, f = imk_turnsf((u & 0x7fffff) | 0x800000, (u >> 23) - 120, &low);
  float r;
  n = (uint32_t)(f >> 62) + turn;
  f = f << 2 | (low >> 30 & 3);
  n += (uint32_t)(f >> 63);
  r = (f >> 63 ? -(float)(int64_t)~f : (float)(int64_t)f) * 0x1.921fb6p-64f;
  return imk_turned(r, n);
}
/*@ end */

/*@ imk_waves needs: imk_fars imk_turned imk_u32 imk_waveq */
/* sin(a + turn pi/2), 0 <= a. Below 2^13 three parts of pi/2 suffice, except near its multiples,
 * where imk_waveq has more. Below pi/4 no reduction is needed. */
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
