/* eval.c: semantics of every scalar op and of every conversion between element types.
 *
 * Every engine and the constant folder must agree with this file bit by bit. In: scalars of one
 * dtype (see Scalar in ir.h). Out: a scalar that the result type can represent. Rules: f64 is
 * computed in double, f32 in float, elementary functions by mathlib*.h. Narrower floats are
 * computed as f32 and rounded again. Integers are computed modulo 2^64 and wrapped. Assumes the
 * default rounding mode. No bit pattern of an operand causes undefined behavior. Does not handle
 * complex numbers (they read as zero) or numbers in strings. */
#include "ir/ir.h"
#include "ir/math/mathlibd.h"
#include "ir/math/mathlibf.h"
#include "ir/math/mathlibs.h"

#include <math.h>
#include <string.h>

/* ---- float formats as bits ---- */

/* A binary float narrower than double: sign, exponent, `mant` mantissa bits. Codes without the sign
 * bit increase with the value up to `max`, the largest finite one. */
typedef struct Fmt {
  u8 mant, bias;
  u32 max;  /* code of the largest finite value */
  u32 inf;  /* code of infinity; 0: none */
  u32 nan;  /* smallest NaN code; 0: none. Formats without -0 use the code of -0 */
  u32 sign; /* sign bit */
} Fmt;

/* Types that are not narrow floats have sign 0. */
static const Fmt *fmt_of(DType d) {
  static const Fmt fmts[] = {
      {0, 0, 0, 0, 0, 0},
      {23, 127, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x80000000},
      {10, 15, 0x7bff, 0x7c00, 0x7c01, 0x8000},
      {7, 127, 0x7f7f, 0x7f80, 0x7f81, 0x8000},
      {3, 7, 0x7e, 0, 0x7f, 0x80},
      {3, 8, 0x7f, 0, 0x80, 0x80},
      {2, 15, 0x7b, 0x7c, 0x7d, 0x80},
      {2, 16, 0x7f, 0, 0x80, 0x80},
      {1, 1, 7, 0, 0, 8},
  };
  static const u8 which[DT_COUNT] = {
      [DT_f32] = 1,        [DT_f16] = 2,    [DT_bf16] = 3,       [DT_f8e4m3fn] = 4,
      [DT_f8e4m3fnuz] = 5, [DT_f8e5m2] = 6, [DT_f8e5m2fnuz] = 7, [DT_f4e2m1] = 8,
  };
  return &fmts[which[d]];
}

static u64 bits_of(double x) {
  u64 u;
  memcpy(&u, &x, sizeof u);
  return u;
}

static double of_bits(u64 u) {
  double x;
  memcpy(&x, &u, sizeof x);
  return x;
}

static double decode(const Fmt *f, u32 code) {
  u64 sign = code & f->sign ? (u64)1 << 63 : 0;
  u32 mag = code & (f->sign - 1);
  if (f->nan == f->sign && code == f->nan) return NAN;
  if (f->inf && mag == f->inf) return of_bits(sign | (u64)0x7ff << 52);
  u64 frac = mag & (((u32)1 << f->mant) - 1);
  if (f->nan &&
      mag >= f->nan) /* keeps payload and quiet bit, so that loads and stores are inverse */
    return of_bits(sign | (u64)0x7ff << 52 | frac << (52 - f->mant));
  i32 exp = (i32)(mag >> f->mant);
  double m = exp > 0 ? (double)(frac + ((u64)1 << f->mant)) : (double)frac;
  double x = ldexp(m, (exp > 0 ? exp : 1) - f->bias - f->mant);
  return sign ? -x : x;
}

/* NaN keeps its sign and the top bits of its payload if the format has space for them. */
static u32 encode_nan(const Fmt *f, u64 bits) {
  u32 sign = bits >> 63 ? f->sign : 0;
  if (!f->nan) return sign ^ f->sign; /* no NaN: a zero of the opposite sign, as ml_dtypes does */
  if (f->nan == f->sign) return f->nan;
  if (!f->inf) return f->nan | sign;
  u32 frac = (u32)(bits << 12 >> (64 - f->mant));
  if (frac == 0) frac = (u32)1 << (f->mant - 1);
  return f->inf | frac | sign;
}

/* Rounds to nearest, ties to even. Beyond the largest finite value: that value with sat, else
 * infinity or NaN, whichever the format has. */
static u32 encode(const Fmt *f, double x, bool sat) {
  u64 bits = bits_of(x);
  u32 sign = bits >> 63 ? f->sign : 0;
  u64 mag = bits & ~((u64)1 << 63);
  if (mag > (u64)0x7ff << 52) return encode_nan(f, bits);
  i32 exp = (i32)(mag >> 52) - 1023;
  u64 m = (mag & (((u64)1 << 52) - 1)) | (u64)1 << 52;
  i32 min_exp = 1 - f->bias; /* exponent of the smallest normal number; subnormals share it */
  i32 shift = 52 - f->mant + (exp < min_exp ? min_exp - exp : 0);
  u32 code = 0;
  bool over = exp > f->bias + 1; /* beyond the largest of any format; the code would overflow */
  if (shift < 54 && !over) {     /* else below half of the smallest number */
    u64 half = m >> (shift - 1);
    code = (u32)(half >> 1);
    if ((half & 1) && ((code & 1) || half << (shift - 1) != m)) code++;
    if (exp > min_exp) code += (u32)(exp - min_exp) << f->mant;
  }
  if (code > f->max || over) {
    if (sat || (!f->inf && !f->nan))
      code = f->max;
    else if (f->inf)
      code = f->inf;
    else
      return f->nan == f->sign ? f->nan : f->nan | sign;
  }
  if (code == 0 && f->nan == f->sign) return 0; /* no -0 */
  return code | sign;
}

static double decode_e8m0(u32 code) {
  return code == 0xff ? NAN : ldexp(1, (i32)code - 127);
}

/* Rounds to the next power of two away from zero, like ONNX round_mode "up"; drops the sign. */
static u32 encode_e8m0(double x, bool sat) {
  u32 bits = imk_u32((float)x) & 0x7fffffff, code = (bits + 0x7fffff) >> 23;
  if (bits > 0x7f800000) return 0xff;
  if (bits <= 0x400000) return 0; /* 2^-127 */
  return code <= 0xfe ? code : sat ? 0xfe : 0xff;
}

static double narrow(DType d, double x, bool sat) {
  if (d == DT_f64) return x;
  if (d == DT_f32 && !isnan(x)) return (float)x;
  if (d == DT_f8e8m0) return decode_e8m0(encode_e8m0(x, sat));
  const Fmt *f = fmt_of(d);
  return f->sign ? decode(f, encode(f, x, sat && d != DT_f16 && d != DT_bf16 && d != DT_f32)) : x;
}

double scalar_round(DType d, double x) {
  return narrow(d, x, d != DT_f8e5m2);
}

/* ---- memory ---- */

Scalar scalar_load(DType d, const void *p) {
  Scalar x = {.i = 0};
  float f;
  u32 n = dtype_bytes(d);
  u64 u = 0;
  switch (d) {
  case DT_f32:
    memcpy(&f, p, sizeof f);
    x.f = f;
    if (!isnan(f)) return x;
    break;
  case DT_none:
  case DT_c64:
  case DT_c128: return x;
  default: break;
  }
#ifdef VM_SMALL /* only for little-endian targets */
  memcpy(&u, p, n);
#else
  if (n == 1) {
    u = *(const u8 *)p;
  } else if (n == 2) {
    u16 v;
    memcpy(&v, p, sizeof v);
    u = v;
  } else if (n == 4) {
    u32 v;
    memcpy(&v, p, sizeof v);
    u = v;
  } else {
    memcpy(&u, p, sizeof u);
  }
#endif
  if (d == DT_f64)
    x.f = of_bits(u);
  else if (d == DT_f8e8m0)
    x.f = decode_e8m0((u32)u);
  else if (d == DT_f4e2m1)
    x.f = decode(fmt_of(d), (u32)u & 15);
  else if (dtype_is_float(d))
    x.f = decode(fmt_of(d), (u32)u);
  else
    x.i = d == DT_bool ? u != 0 : scalar_wrap(d, (i64)u);
  return x;
}

void scalar_store(DType d, void *p, Scalar x) {
  u64 u = (u64)x.i;
  switch (dtype_info[d].cls) {
  case 'N':
  case 'C': return;
  case 'B': u = x.i != 0; break;
  case 'I':
  case 'U': u = (u64)scalar_wrap(d, x.i); break;
  case 'F':
    if (d == DT_f32 && !isnan(x.f)) {
      float f = (float)x.f;
      memcpy(p, &f, sizeof f);
      return;
    }
    if (d == DT_f8e8m0)
      u = encode_e8m0(x.f, true);
    else if (d != DT_f64)
      u = encode(fmt_of(d), x.f, d != DT_f16 && d != DT_bf16 && d != DT_f8e5m2);
    break;
  default: break;
  }
#ifdef VM_SMALL
  memcpy(p, &u, dtype_bytes(d));
#else
  u8 u1 = (u8)u;
  u16 u2 = (u16)u;
  u32 u4 = (u32)u;
  switch (dtype_bytes(d)) {
  case 1: memcpy(p, &u1, 1); break;
  case 2: memcpy(p, &u2, 2); break;
  case 4: memcpy(p, &u4, 4); break;
  case 8: memcpy(p, &u, 8); break;
  default: break;
  }
#endif
}

/* ---- conversion ---- */

/* Largest finite value of float types without infinity; 0 for types with infinity. */
static double largest(DType d) {
  switch (d) {
  case DT_f8e4m3fn: return 448;
  case DT_f8e4m3fnuz: return 240;
  case DT_f8e5m2fnuz: return 57344;
  case DT_f8e8m0: return 0x1p127;
  case DT_f4e2m1: return 6;
  default: return 0;
  }
}

void dtype_limits(DType d, Scalar *lo, Scalar *hi) {
  u32 bits = dtype_info[d].bits;
  *lo = *hi = (Scalar){.i = 0};
  switch (dtype_info[d].cls) {
  case 'F':
    hi->f = largest(d) != 0 ? largest(d) : INFINITY;
    lo->f = d == DT_f8e8m0 ? 0x1p-127 : -hi->f;
    break;
  case 'I':
    hi->i = (i64)(((u64)1 << (bits - 1)) - 1);
    lo->i = -hi->i - 1;
    break;
  case 'U': hi->i = bits == 64 ? -1 : (i64)(((u64)1 << bits) - 1); break;
  case 'B': hi->i = 1; break;
  default: break;
  }
}

i64 scalar_wrap(DType d, i64 x) {
  u32 bits = dtype_info[d].bits;
  if (bits == 0 || bits >= 64) return x;
  u32 mask = UINT32_MAX >> (32 - bits), u = (u32)x & mask; /* no type has 33 to 63 bits */
  if (dtype_is_signed(d) && u >> (bits - 1)) return -(i64)(~u & mask) - 1;
  return (i64)u;
}

/* Truncates; NaN gives 0; saturates at the range of i64, or of u64 for that type. */
static i64 to_int(DType d, double x) {
  if (isnan(x)) return 0;
  if (d == DT_u64 && x >= 0x1p63) return x < 0x1p64 ? (i64)(u64)x : -1;
  if (x >= 0x1p63) return INT64_MAX;
  return x < -0x1p63 ? INT64_MIN : (i64)x;
}

static i64 clamp_float(DType d, double x) {
  Scalar lo, hi;
  dtype_limits(d, &lo, &hi);
  double top =
      d == DT_u64 ? 0x1p64 : (double)hi.i; /* i64: rounds up to 2^63, where to_int saturates */
  if (x <= (double)lo.i) return lo.i;
  return x >= top ? hi.i : to_int(d, x);
}

static i64 clamp_int(DType from, DType to, i64 x) {
  Scalar lo, hi;
  dtype_limits(to, &lo, &hi);
  if (from == DT_u64) return (u64)x > (u64)hi.i ? hi.i : x;
  if (to == DT_u64) return x < 0 ? 0 : x;
  return x < lo.i ? lo.i : x > hi.i ? hi.i : x;
}

/* Nearest value of float type d, rounded once. */
static double from_int(DType from, DType d, i64 x, bool sat) {
  bool neg = from != DT_u64 && x < 0;
  u64 m = neg ? 0 - (u64)x : (u64)x;
  if (d == DT_f32) return neg ? -(float)m : (float)m;
  /* 53 bits, the last one sticky, so that the second rounding breaks ties correctly */
  if (d != DT_f64 && m >> 53) m = (m & ~(u64)0x7ff) | (m & 0x7ff ? 0x800 : 0);
  double f = neg ? -(double)m : (double)m;
  return narrow(d, f, sat);
}

Scalar scalar_cast(DType from, DType to, Scalar x, bool sat) {
  Scalar r = {.i = 0};
  char cf = dtype_info[from].cls, ct = dtype_info[to].cls;
  if (from == to) return x;
  if (strchr("NSC", cf) || strchr("NSC", ct)) return r;
  if (cf == 'F') {
    if (ct == 'F')
      r.f = narrow(to, x.f, sat);
    else if (ct == 'B')
      r.i = x.f != 0;
    else
      r.i = sat ? clamp_float(to, x.f) : scalar_wrap(to, to_int(to, x.f));
  } else {
    if (ct == 'F')
      r.f = from_int(from, to, x.i, sat);
    else if (ct == 'B')
      r.i = x.i != 0;
    else
      r.i = sat ? clamp_int(from, to, x.i) : scalar_wrap(to, x.i);
  }
  return r;
}

/* ---- floats ---- */

/* Unary operations and their functions in mathlib*.h. */
#define EACH_WHOLE(DO)                                                                             \
  DO(floor, floor)                                                                                 \
  DO(ceil, ceil)                                                                                   \
  DO(trunc, trunc)
#define EACH_ROUNDING(DO)                                                                          \
  DO(round, rint)                                                                                  \
  DO(sqrt, sqrt)
#ifdef VM_SINGLE /* targets that reject functions computed in double */
#define EACH_FUNCTION EACH_ROUNDING
#else
#define EACH_FUNCTION(DO)                                                                          \
  EACH_ROUNDING(DO)                                                                                \
  DO(exp, exp)                                                                                     \
  DO(exp_p1, exp_p1)                                                                               \
  DO(exp_nonpos, exp_nonpos)                                                                       \
  DO(log, log)                                                                                     \
  DO(sin, sin)                                                                                     \
  DO(cos, cos)                                                                                     \
  DO(tan, tan)                                                                                     \
  DO(asin, asin)                                                                                   \
  DO(acos, acos)                                                                                   \
  DO(atan, atan)                                                                                   \
  DO(sinh, sinh)                                                                                   \
  DO(cosh, cosh)                                                                                   \
  DO(tanh, tanh)                                                                                   \
  DO(asinh, asinh)                                                                                 \
  DO(acosh, acosh)                                                                                 \
  DO(atanh, atanh)                                                                                 \
  DO(gelu_x2, gelu_x2)                                                                             \
  DO(erf, erf)
#endif

static double eval_f64(Op op, double a, double b, double c) {
  switch (op) {
  case OP_add: return a + b;
  case OP_sub: return a - b;
  case OP_mul: return a * b;
  case OP_div: return a / b;
  case OP_mod: return im_mod(a, b);
  case OP_fmod: return im_fmod(a, b);
#ifndef VM_SINGLE
  case OP_pow: return im_pow(a, b);
#endif
  case OP_max: return b > a || isnan(b) ? b : a; /* equal operands (-0, 0): the first */
  case OP_min: return b < a || isnan(b) ? b : a;
  case OP_fma: return im_fma(a, b, c);
  case OP_recip: return 1 / a;
  case OP_neg: return -a;
  case OP_abs: return fabs(a);
  case OP_sign: return isnan(a) ? a : (a > 0) - (a < 0);
#define DO(op, fn)                                                                                 \
  case OP_##op: return im_##fn(a);
    EACH_FUNCTION(DO)
    EACH_WHOLE(DO)
#undef DO
  default: return 0;
  }
}

static float eval_f32(Op op, float a, float b, float c) {
  switch (op) {
  case OP_add: return a + b;
  case OP_sub: return a - b;
  case OP_mul: return a * b;
  case OP_div: return a / b;
#ifndef VM_SINGLE
  case OP_pow: return im_powf(a, b);
#endif
  case OP_max: return b > a || isnan(b) ? b : a;
  case OP_min: return b < a || isnan(b) ? b : a;
  case OP_fma: return im_fmaf(a, b, c);
  case OP_recip: return 1 / a;
  case OP_neg: return -a;
  case OP_abs: return fabsf(a);
#define DO(op, fn)                                                                                 \
  case OP_##op: return im_##fn##f(a);
    EACH_FUNCTION(DO)
#ifdef VM_SMALL /* Exact, or double rounding without effect: 53 >= 2 * 24 + 2. */
  default: return (float)eval_f64(op, a, b, c);
#else
    EACH_WHOLE(DO)
  case OP_mod: return im_modf(a, b);
  case OP_fmod: return im_fmodf(a, b);
  case OP_sign: return isnan(a) ? a : (float)((a > 0) - (a < 0));
  default: return 0;
#endif
#undef DO
  }
}

static bool compare_float(Op op, double a, double b) {
  switch (op) {
  case OP_eq: return a == b;
  case OP_ne: return a != b;
  case OP_lt: return a < b;
  case OP_le: return a <= b;
  case OP_gt: return a > b;
  case OP_ge: return a >= b;
  case OP_isnan: return isnan(a);
  case OP_isinf: return isinf(a);
  default: return false;
  }
}

/* ---- integers ---- */

static bool compare_int(Op op, bool is_signed, i64 x, i64 y) {
  /* flipping the top bit maps signed order to unsigned order */
  u64 flip = is_signed ? (u64)1 << 63 : 0, a = (u64)x ^ flip, b = (u64)y ^ flip;
  switch (op) {
  case OP_eq: return a == b;
  case OP_ne: return a != b;
  case OP_lt: return a < b;
  case OP_le: return a <= b;
  case OP_gt: return a > b;
  case OP_ge: return a >= b;
  default: return false; /* isnan, isinf */
  }
}

static u64 pow_u64(u64 a, u64 n) {
  u64 r = 1;
  for (; n > 0; n >>= 1, a *= a)
    if (n & 1) r *= a;
  return r;
}

static u32 maddubs(u32 a, u32 b, u32 c) {
  u32 all = 0;
  for (u32 i = 0; i < 32; i += 16) {
    i32 sum = 0;
    for (u32 k = i; k < i + 16; k += 8) sum += (i32)(u8)(a >> k) * (i8)(u8)(b >> k);
    sum = sum < INT16_MIN ? INT16_MIN : sum > INT16_MAX ? INT16_MAX : sum;
    all |= (u32)(u16)((c >> i) + (u32)sum) << i;
  }
  return all;
}

/* Operations on the bytes or 16-bit halves of 32-bit words. */
static u32 eval_packed(Op op, u32 a, u32 b, u32 c) {
  if (op == OP_maddubs) return maddubs(a, b, c);
  if (op == OP_requant) return (u32)imk_requant((i32)a, (i32)b, c);
  if (op == OP_widen_i8x2) {
    a >>= b % 2 * 8;
    return (u16)(i8)(u8)a | (u32)(u16)(i8)(u8)(a >> 16) << 16;
  }
  if (op == OP_psign) c = 0;
  for (u32 i = 0; i < 32; i += 8) {
    u32 x = a >> i & 255;
    i32 y = (i8)(u8)(b >> i);
    if (op == OP_dot_i8x4)
      c += x * (u32)y;
    else if (op == OP_psign)
      c |= (x * (u32)((y > 0) - (y < 0)) & 255) << i;
    else if (i % 16 == 0)
      c += (u32)((i16)(u16)(a >> i) * (i16)(u16)(b >> i));
  }
  return c;
}

/* Negates x if minus is all ones; minus is all ones or 0. */
static u64 with_sign(u64 x, u64 minus) {
  return (x ^ minus) - minus;
}

/* Quotient or remainder of |a| and |b|, with the signs of both; x / 0 is 0. mod has the sign of b,
 * like Python's %. */
static i64 divide(Op op, u64 a, u64 b, u64 minus_a, u64 minus_b) {
  u64 minus = minus_a;
  a = with_sign(a, minus_a);
  b = with_sign(b, minus_b);
  if (b == 0) return 0;
  u64 r = op == OP_div ? a / b : a % b;
  if (op == OP_div) {
    minus ^= minus_b;
  } else if (op == OP_mod && r && minus != minus_b) {
    r = b - r;
    minus = minus_b;
  }
  return (i64)with_sign(r, minus);
}

/* Negative powers are 1 / a^n truncated: 0 except for a = 1 and -1; 0 for a = 0, like x / 0. */
static i64 eval_int(Op op, DType d, i64 x, i64 y) {
  u64 a = (u64)x, b = (u64)y;
  const bool is_signed = dtype_is_signed(d);
  const u64 minus_a = 0 - (is_signed & a >> 63), minus_b = 0 - (is_signed & b >> 63);
  switch (op) {
  case OP_add: return (i64)(a + b);
  case OP_sub: return (i64)(a - b);
  case OP_mul: return (i64)(a * b);
  case OP_neg: return (i64)(0 - a);
  case OP_and: return (i64)(a & b);
  case OP_or: return (i64)(a | b);
  case OP_xor: return (i64)(a ^ b);
  case OP_not: return d == DT_bool ? a == 0 : (i64)~a;
  case OP_shl: return b >= dtype_info[d].bits ? 0 : (i64)(a << b);
  case OP_shr:
    if (b >= dtype_info[d].bits) return (i64)minus_a;
    return (i64)((a ^ minus_a) >> b ^ minus_a);
  case OP_div:
  case OP_mod:
  case OP_fmod: return divide(op, a, b, minus_a, minus_b);
  case OP_pow:
    if (!minus_b) return (i64)pow_u64(a, b);
    return with_sign(a, minus_a) != 1 ? 0 : b & 1 ? x : 1;
  case OP_max: return compare_int(OP_gt, is_signed, x, y) ? x : y;
  case OP_min: return compare_int(OP_lt, is_signed, x, y) ? x : y;
  case OP_abs: return (i64)with_sign(a, minus_a);
  case OP_sign: return (i64)(minus_a | (a != 0));
  default: return 0;
  }
}

Scalar scalar_eval(Op op, DType d, const Scalar *arg) {
  u32 n = op < OP_SCALARS ? op_info[op].nin_min : 0;
  Scalar zero = {.i = 0}, r = zero;
  Scalar a = n > 0 ? arg[0] : zero, b = n > 1 ? arg[1] : zero, c = n > 2 ? arg[2] : zero;
  if (op == OP_select) return a.i ? b : c;
  if (op == OP_cast || op == OP_bitcast) return a; /* their result type is unknown here */
  if (!dtype_is_float(d)) {
    if (op_info[op].res == OR_pred)
      r.i = compare_int(op, d != DT_u64, a.i, b.i);
    else
      r.i = scalar_wrap(d, op == OP_dot_i8x4 || op == OP_dot_i16x2 || op == OP_maddubs ||
                                   op == OP_psign || op == OP_requant || op == OP_widen_i8x2
                               ? (i64)eval_packed(op, (u32)a.i, (u32)b.i, (u32)c.i)
                               : eval_int(op, d, a.i, b.i));
    return r;
  }
  double fb = n > 1 ? b.f : 0, fc = n > 2 ? c.f : 0;
  if (op_info[op].res == OR_pred)
    r.i = compare_float(op, a.f, fb);
  else if (d == DT_f64)
    r.f = eval_f64(op, a.f, fb, fc);
  else
    r.f = eval_f32(op, (float)a.f, (float)fb, (float)fc);
  if (op_info[op].res != OR_pred && d != DT_f64 && d != DT_f32) r.f = scalar_round(d, r.f);
  return r;
}

bool scalar_is_fast(Op op, DType d) {
  return op_is(op, OF_FAST) && dtype_is_float(d) && d != DT_f64;
}

/* Falls back to the fast variant if the mode has none. */
MathMode scalar_math_mode(MathMode math, Op op, DType d) {
  static const u8 has[OP_SCALARS] = {
      [OP_exp] = 1 << MM_u | 1 << MM_s,
      [OP_exp_p1] = 1 << MM_u,
      [OP_exp_nonpos] = 1 << MM_u,
      [OP_sin] = 1 << MM_s,
      [OP_cos] = 1 << MM_s,
      [OP_tanh] = 1 << MM_u | 1 << MM_s,
      [OP_gelu_x2] = 1 << MM_u | 1 << MM_s,
      [OP_erf] = 1 << MM_u | 1 << MM_s,
  };
  if (d == DT_f64) return MM_d;
  if (math == MM_f || !scalar_is_fast(op, d)) return MM_f;
  return has[op] >> math & 1 ? math : MM_q;
}

/* part: MM_q, MM_u or MM_s, if the op has that variant. */
static float eval_fast(MathMode part, Op op, float x) {
  bool u = part == MM_u, s = part == MM_s;
  switch (op) {
  case OP_exp: return s ? im_exps(x) : u ? im_expu(x) : im_expq(x);
  case OP_exp_nonpos: return u ? im_exp_nonposu(x) : im_exp_nonposq(x);
  case OP_exp_p1: return u ? im_exp_p1u(x) : im_exp_p1q(x);
  case OP_log: return im_logq(x);
  case OP_sin: return s ? im_sins(x) : im_sinq(x);
  case OP_cos: return s ? im_coss(x) : im_cosq(x);
  case OP_tanh: return s ? im_tanhs(x) : u ? im_tanhu(x) : im_tanhq(x);
  case OP_gelu_x2: return s ? im_gelu_x2s(x) : u ? im_gelu_x2u(x) : im_gelu_x2q(x);
  default: return s ? im_erfs(x) : u ? im_erfu(x) : im_erfq(x);
  }
}

Scalar scalar_eval_as(MathMode math, Op op, DType d, const Scalar *arg) {
  MathMode part = scalar_math_mode(math, op, d);
  if (part < MM_q) return scalar_eval(op, d, arg);
  float y = eval_fast(part, op, (float)arg[0].f);
  return (Scalar){.f = d == DT_f32 ? (double)y : scalar_round(d, y)};
}

/* ---- random numbers ---- */

/* A bijection of 64 bits; every input bit affects every output bit. */
static u64 mix(u64 x) {
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
  x = (x ^ x >> 29) * 0xa0761d6478bd642f;
  return x ^ x >> 32;
}

u64 random_bits(u64 seed, u64 index) {
  return mix(mix(index * 0x9e3779b97f4a7c15 + 0x632be59bd9b4e019) ^ mix(seed ^ 0x2545f4914f6cdd1d));
}

double random_unit(DType d, u64 node_seed, u64 run_seed, u64 index) {
  i32 digits = d == DT_f64 ? 53 : fmt_of(d)->mant + (fmt_of(d)->mant > 1);
  if (digits == 0) return 0; /* d has no fractions */
  u64 bits = random_bits(node_seed ^ mix(run_seed), index);
  return ldexp((double)(bits >> (64 - digits)), -digits);
}
