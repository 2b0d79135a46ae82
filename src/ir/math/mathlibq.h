/* mathlibq.h: the functions of quick.def and the operations they use, as C functions on one float,
 * for interpreters. See mathlib.h for the format of these files. */
#ifndef INGOT_MATHLIBQ_H
#define INGOT_MATHLIBQ_H

#include "ir/math/mathlibf.h"

/*@ imk_mask needs: */
/* all bits set, or none */
static inline uint32_t imk_mask(int yes) {
  return 0 - (uint32_t)yes;
}
/*@ end */

/*@ imk_lesser needs: */
/* b if unordered */
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
/* y = sin(x) is only valid below 2^13 */
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
/* p 2^k for t = k + 1.5 2^23, in two factors: results may be subnormal, and k = 128 must not
 * overflow before the product does. */
static inline float imk_pow2(float p, float t) {
  uint32_t m = imk_u32(t) - 0x4b3fff02u, h = m >> 1; /* k + 254 */
  return p * imk_f32(h << 23) * imk_f32((m - h) << 23);
}
/*@ end */

#define QUICK(name, x)    static inline float im_##name(float x) {
#define PART(name, x, u)  static inline float imk_##name(float x, uint32_t u) {
#define F(v, x)           float v = x;
#define U(v, x)           uint32_t v = x;
#define SET(v, x)         v = x;
#define RESULT(x)         return x;
#define END               }
#define K(c)              (c)
#define B(c)              (c)
#define ADD(a, b)         ((a) + (b))
#define SUB(a, b)         ((a) - (b))
#define MUL(a, b)         ((a) * (b))
#define DIV(a, b)         ((a) / (b))
#define NEG(a)            (-(a))
#define MAD(a, b, c)      imk_mad(a, b, c)
#define LESSER(a, b)      imk_lesser(a, b)
#define LARGER(a, b)      imk_larger(a, b)
#define BITS(a)           imk_u32(a)
#define FLOAT(a)          imk_f32(a)
#define AND(a, b)         ((a) & (b))
#define OR(a, b)          ((a) | (b))
#define XOR(a, b)         ((a) ^ (b))
#define NOT(a)            (~(a))
#define SHL(a, b)         ((a) << (b))
#define SHR(a, b)         ((a) >> (b))
#define LT(a, b)          imk_mask((a) < (b))
#define LE(a, b)          imk_mask((a) <= (b))
#define EQ(a, b)          imk_mask((a) == (b))
#define POW2(a, b)        imk_pow2(a, b)
#define FARSIN(a, b)      imk_farsin(a, b)
#define FARCOS(a, b)      imk_farcos(a, b)
#define CALL1(name, a)    im_##name(a)
#define CALL2(name, a, b) imk_##name(a, b)
#include "ir/math/quick.def"

#endif
