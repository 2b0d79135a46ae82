/* rows.h: loops over lanes of registers, for machine.c.
 *
 * In: registers, rows of memory, an operation with its types. Out: registers or rows. Frequent
 * operations are loops that compilers vectorize. The rest runs lane by lane through src/ir/eval.c.
 * Both give the same bits. */
#ifndef INGOT_VM_ROWS_H
#define INGOT_VM_ROWS_H

#include "back/vm/lanes.h"

#include <string.h>
#include "ir/math/mathlibd.h"
#include "ir/math/mathlibs.h"

/* Common vector lengths get fixed trip counts, so that the compiler needs no loop. */
#define EACH(n, ...)                                                                               \
  do {                                                                                             \
    const u32 all_lanes = (n);                                                                     \
    VM_IVDEP for (u32 i = 0; i < all_lanes; i++) {                                                 \
      __VA_ARGS__;                                                                                 \
    }                                                                                              \
  } while (0)
#define EACH_OF(lanes, ...)                                                                        \
  {                                                                                                \
    VM_IVDEP VM_NOUNROLL for (u32 i = 0; i < (lanes); i++) {                                       \
      __VA_ARGS__;                                                                                 \
    }                                                                                              \
  }
#define EACH_OR(few, n, ...)                                                                       \
  do {                                                                                             \
    if ((n) == (few))                                                                              \
      EACH_OF(few, __VA_ARGS__)                                                                    \
    else                                                                                           \
      EACH(n, __VA_ARGS__);                                                                        \
  } while (0)
/* FEW: lanes of 4 bytes; WIDE: lanes of 8 bytes. */
#if defined(__AVX512F__)
#define EACH_FEW(n, ...)                                                                           \
  do {                                                                                             \
    if ((n) == 16)                                                                                 \
      EACH_OF(16, __VA_ARGS__)                                                                     \
    else                                                                                           \
      EACH_OR(8, n, __VA_ARGS__);                                                                  \
  } while (0)
#define EACH_WIDE(n, ...) EACH_OR(8, n, __VA_ARGS__)
#elif defined(__AVX2__)
#define EACH_FEW(n, ...)  EACH_OR(8, n, __VA_ARGS__)
#define EACH_WIDE(n, ...) EACH_OR(4, n, __VA_ARGS__)
#else
#define EACH_FEW  EACH
#define EACH_WIDE EACH
#endif
#ifdef VM_SMALL
#define COPY_FEW(to, from, n)  copy_words(to, from, n)
#define COPY_WIDE(to, from, n) copy_words(to, from, 2 * (n))
static void copy_words(void *to, const void *from, u32 n) {
  const vm_uw *f = from;
  for (vm_uw *t = to; n; n--) *t++ = *f++;
}
#else
#define COPY(T, each, to, from, n)                                                                 \
  do {                                                                                             \
    T *into = (to);                                                                                \
    const T *out_of = (from);                                                                      \
    each(n, into[i] = out_of[i]);                                                                  \
  } while (0)
#define COPY_FEW(to, from, n)  COPY(vm_uw, EACH_FEW, to, from, n)
#define COPY_WIDE(to, from, n) COPY(vm_ul, EACH_WIDE, to, from, n)
#endif

/* ---- elements ---- */

/* Register representation of each type: floats of at most 32 bits as f32, integers that fit as i32.
 * A table instead of conditions: gcc 13.3 of Ubuntu 24.04 unswitches such conditions out of loops
 * and miscompiles one (f64). */
#define HELD_N(bits) DT_i32
#define HELD_F(bits) ((bits) == 64 ? DT_f64 : DT_f32)
#define HELD_I(bits) ((bits) == 64 ? DT_i64 : DT_i32)
#define HELD_U(bits) ((bits) >= 32 ? DT_i64 : DT_i32)
#define HELD_B(bits) DT_i32
#define HELD_S(bits) DT_i64
#define HELD_C(bits) DT_i32
static const u8 held_type[DT_COUNT] = {
#define DT(name, cls, bits, bytes, onnx, text) HELD_##cls(bits),
#include "ir/dtypes.def"
#undef DT
};

static DType held_as(DType dt) {
  return (DType)held_type[dt];
}

static u32 held_bytes(DType dt) {
  return dtype_bytes(held_as(dt));
}

static Scalar get(DType dt, const u64 *reg, u32 i) {
  return scalar_load(held_as(dt), (const u8 *)reg + (size_t)i * held_bytes(dt));
}

static void put(DType dt, u64 *reg, u32 i, Scalar x) {
  scalar_store(held_as(dt), (u8 *)reg + (size_t)i * held_bytes(dt), x);
}

static DType result_of(u32 o) {
  return (DType)(o >> 24);
}

static Scalar apply(MathMode math, u32 o, const Scalar *arg) {
  return scalar_eval_as(math, (Op)(o & 0xff), (DType)(o >> 8 & 0xff), arg);
}

/* Rare cases are noinline: with them inline, gcc makes the dispatch loop a third slower. */
#if defined(__GNUC__) && !defined(VM_SMALL)
#define VM_COLD   __attribute__((noinline))
#define VM_INLINE __attribute__((always_inline)) inline
#else
#define VM_COLD
#define VM_INLINE
#endif
#ifndef VM_NOINLINE /* defined by the standalone machine */
#define VM_NOINLINE
#endif
VM_COLD static void general(MathMode math, u32 o, u64 *to, const u64 *const *from, u32 narg,
                            u32 n) {
  DType dt = (DType)(o >> 8 & 0xff);
  bool select = (o & 0xff) == OP_select;
  for (u32 i = 0; i < n; i++) {
    Scalar arg[3] = {{.i = 0}, {.i = 0}, {.i = 0}};
    for (u32 k = 0; k < narg; k++) arg[k] = get(select && !k ? DT_bool : dt, from[k], i);
    put(result_of(o), to, i, apply(math, o, arg));
  }
}

/* ---- memory and registers ---- */

/* The small machine has loops only for quantized models, and one for all strides. */
#ifdef VM_SMALL
#define IS_UNIT(inc) false
#define MORE(...)
#else
#define IS_UNIT(inc) ((inc) == 1)
#define MORE(...)    __VA_ARGS__

/* f16 to f32 as bits: the exponent bias differs by 112. */
static inline u32 half_bits(u32 h) {
  u32 m = h & 0x7fff;
  u32 x = m >= 0x7c00 ? 0x7f800000 | (m & 0x3ff) << 13 : imk_u32(imk_f32(m << 13) * 0x1p112f);
  return x | (h & 0x8000) << 16;
}
#endif

/* n elements of type F to type T, of which one side has a stride. */
#define MOVE(F, T, expr, to_step, from_step)                                                       \
  {                                                                                                \
    const F *p = (const F *)(const void *)from;                                                    \
    T *o = (T *)(void *)to;                                                                        \
    if (IS_UNIT(by))                                                                               \
      for (u32 i = 0; i < n; i++) {                                                                \
        const F x = p[i];                                                                          \
        o[i] = (T)(expr);                                                                          \
      }                                                                                            \
    else                                                                                           \
      for (ptrdiff_t i = 0; i < (ptrdiff_t)n; i++) {                                               \
        const F x = p[i * (from_step)];                                                            \
        o[i * (to_step)] = (T)(expr);                                                              \
      }                                                                                            \
    return;                                                                                        \
  }

/* n elements of memory with stride inc. A single element may have a stride that overflows
 * ptrdiff_t. */
static void read_row(DType dt, u64 *to, const u8 *from, i64 inc, u32 n) {
  const ptrdiff_t by = (ptrdiff_t)inc;
  switch (dt) {
  case DT_f32:
  case DT_i32: MOVE(vm_uw, vm_uw, x, 1, by)
  case DT_f64:
  case DT_i64:
  case DT_u64: MOVE(vm_ul, vm_ul, x, 1, by)
  case DT_i16: MOVE(vm_i16, vm_w, x, 1, by)
  case DT_u16: MOVE(vm_u16, vm_w, x, 1, by)
  case DT_i8: MOVE(vm_i8, vm_w, x, 1, by)
  case DT_u8:
    MOVE(vm_u8, vm_w, x, 1, by)
    MORE(case DT_u32 : case DT_str : MOVE(vm_uw, vm_l, x, 1, by))
    MORE(case DT_bool : MOVE(vm_u8, vm_w, x != 0, 1, by))
    MORE(case DT_f16 : MOVE(vm_u16, vm_uw, half_bits(x), 1, by))
    MORE(case DT_bf16 : MOVE(vm_u16, vm_uw, (u32)x << 16, 1, by))
  default: break;
  }
  for (u32 i = 0; i < n; i++)
    put(dt, to, i, scalar_load(dt, from + by * (ptrdiff_t)(i * dtype_bytes(dt))));
}

static void write_row(DType dt, u8 *to, const u64 *from, i64 inc, u32 n) {
  const ptrdiff_t by = (ptrdiff_t)inc;
  switch (dt) {
  case DT_f32:
  case DT_i32: MOVE(vm_uw, vm_uw, x, by, 1)
  case DT_f64:
  case DT_i64:
  case DT_u64: MOVE(vm_ul, vm_ul, x, by, 1)
  case DT_i16:
  case DT_u16: MOVE(vm_uw, vm_u16, x, by, 1)
  case DT_i8:
  case DT_u8:
    MOVE(vm_uw, vm_u8, x, by, 1)
    MORE(case DT_u32 : case DT_str : MOVE(vm_ul, vm_uw, x, by, 1))
    MORE(case DT_bool : MOVE(vm_uw, vm_u8, x != 0, by, 1))
  default: break;
  }
  for (u32 i = 0; i < n; i++)
    scalar_store(dt, to + by * (ptrdiff_t)(i * dtype_bytes(dt)), get(dt, from, i));
}
#undef MOVE

#define CONVERT(A, O, expr)                                                                        \
  {                                                                                                \
    const A *a = (const A *)(const void *)from;                                                    \
    O *o = (O *)(void *)to;                                                                        \
    for (u32 i = 0; i < n; i++) {                                                                  \
      const A x = a[i];                                                                            \
      o[i] = (O)(expr);                                                                            \
    }                                                                                              \
    return;                                                                                        \
  }

/* 8-bit and 16-bit integers: sign-extends from the highest kept bit. */
static void fit(DType dt, u64 *to, const u64 *from, u32 n) {
#ifndef VM_SMALL
  switch (dt) {
  case DT_i8: CONVERT(vm_w, vm_w, (i8)x)
  case DT_u8: CONVERT(vm_w, vm_w, (u8)x)
  case DT_i16: CONVERT(vm_w, vm_w, (i16)x)
  case DT_u16: CONVERT(vm_w, vm_w, (u16)x)
  case DT_u32: CONVERT(vm_l, vm_l, (u32)x)
  default: break;
  }
#endif
  if (held_as(dt) == DT_i32 && dt != DT_bool && dtype_bytes(dt) < 4) {
    const u32 keep = ((u32)1 << dtype_info[dt].bits) - 1,
              sign = dtype_is_signed(dt) ? keep / 2 + 1 : 0;
    const vm_uw *p = (const vm_uw *)(const void *)from;
    vm_uw *o = (vm_uw *)(void *)to;
    EACH(n, o[i] = ((p[i] & keep) ^ sign) - sign);
    return;
  }
  for (u32 i = 0; i < n; i++) {
    Scalar x = get(dt, from, i);
    if (dtype_is_float(dt))
      x.f = scalar_round(dt, x.f);
    else
      x.i = scalar_wrap(dt, x.i);
    put(dt, to, i, x);
  }
}

static void cast(u32 how, u64 *to, const u64 *from, u32 n) {
  const DType a = (DType)(how & 0xff), b = (DType)(how >> 8 & 0xff), ha = held_as(a);
  const bool sat = how >> 16 & 1;
  if (b == DT_f32 && ha == DT_i32) CONVERT(vm_w, vm_f, x)
  if (sat && (a == DT_f32 || a == DT_i32) && (b == DT_i8 || b == DT_u8)) {
    const i32 lo = b == DT_i8 ? -128 : 0, hi = lo + 255;
    if (a == DT_i32) CONVERT(vm_w, vm_w, x < lo ? lo : x > hi ? hi : x)
    CONVERT(vm_f, vm_w, x != x ? 0 : x <= (float)lo ? lo : x >= (float)hi ? hi : (i32)x)
  }
#ifndef VM_SMALL
  if (b == DT_f32 && ha == DT_f32) CONVERT(vm_uw, vm_uw, x)
  if (b == DT_f32 && (a == DT_i64 || a == DT_u32)) CONVERT(vm_l, vm_f, x)
  if (b == DT_f64 && ha == DT_i32) CONVERT(vm_w, vm_d, x)
  if (b == DT_f64 && a == DT_i64) CONVERT(vm_l, vm_d, x)
  if (b == DT_i64 && ha == DT_i32) CONVERT(vm_w, vm_l, x)
  if (b == DT_i32 && ha == DT_i32) CONVERT(vm_w, vm_w, x)
  if (b == DT_bool && ha == DT_i32) CONVERT(vm_w, vm_w, x != 0)
  if (b == DT_bool && ha == DT_i64) CONVERT(vm_l, vm_w, x != 0)
  if (sat && a == DT_f64 && b == DT_i64)
    CONVERT(vm_d, vm_l, x != x ? 0 : x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : (i64)x)
#endif
  for (u32 i = 0; i < n; i++) put(b, to, i, scalar_cast(a, b, get(a, from, i), sat));
}
#undef CONVERT

/* Conversions between element widths, which compilers do not vectorize. */
#if defined(__AVX512F__) && !defined(VM_NO_TILES)
#include <immintrin.h>
#define VM_MIXED 16
static inline __m512i wide_u8(const u8 *p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline __m512i wide_i8(const u8 *p) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline __m512i wide_u16(const u8 *p) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
static inline __m512i wide_i16(const u8 *p) {
  return _mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
static inline void mixed_put_u8(void *to, __m512i x) {
  _mm_storeu_si128(to, _mm512_cvtepi32_epi8(x));
}
#define MIXED_LOAD(o, T, p) _mm512_storeu_si512((void *)(o), wide_##T(p))
#define MIXED_FMA(o, T, p, y)                                                                      \
  _mm512_storeu_ps((void *)(o), _mm512_fmadd_ps(_mm512_cvtepi32_ps(wide_##T(p)),                   \
                                                _mm512_loadu_ps((const void *)(y)),                \
                                                _mm512_loadu_ps((const void *)(o))))
#define MIXED_STORE(o, T, x) mixed_put_##T(o, _mm512_loadu_si512((const void *)(x)))
#elif defined(__AVX2__) && defined(__FMA__) && !defined(VM_NO_TILES)
#include <immintrin.h>
#define VM_MIXED            8
static inline __m256i wide_u8(const u8 *p) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
static inline __m256i wide_i8(const u8 *p) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
static inline __m256i wide_u16(const u8 *p) {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline __m256i wide_i16(const u8 *p) {
  return _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
/* The low int16 of every int32, in order. */
static inline __m128i mixed_halves(__m256i x) {
  const __m256i low = _mm256_and_si256(x, _mm256_set1_epi32(0xffff));
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0xd8));
}
static inline void mixed_put_u8(void *to, __m256i x) {
  const __m128i half = mixed_halves(_mm256_and_si256(x, _mm256_set1_epi32(0xff)));
  _mm_storel_epi64(to, _mm_packus_epi16(half, half));
}
#define MIXED_LOAD(o, T, p) _mm256_storeu_si256((void *)(o), wide_##T(p))
#define MIXED_FMA(o, T, p, y)                                                                      \
  _mm256_storeu_ps((void *)(o), _mm256_fmadd_ps(_mm256_cvtepi32_ps(wide_##T(p)),                   \
                                                _mm256_loadu_ps((const void *)(y)),                \
                                                _mm256_loadu_ps((const void *)(o))))
#define MIXED_STORE(o, T, x) mixed_put_##T(o, _mm256_loadu_si256((const void *)(x)))
#else
#define VM_MIXED 0 /* no such width */
#define MIXED_LOAD(o, T, p)
#define MIXED_FMA(o, T, p, y)
#define MIXED_STORE(o, T, x)
#endif

/* Limits of an 8-bit or 16-bit integer type. */
static void quant_range(u32 type, float *lo, float *hi) {
  const bool wide = type == DT_i16 || type == DT_u16;
  const float all = wide ? 65535 : 255;
  *lo = type == DT_i8 || type == DT_i16 ? -((all + 1) / 2) : 0;
  *hi = *lo + all;
}

static void bits(u32 how, u64 *to, const u64 *from, u32 n) {
  DType a = (DType)(how & 0xff), b = (DType)(how >> 8 & 0xff);
#ifndef VM_SMALL
  bool words = (a == DT_f32 && b == DT_i32) || (a == DT_i32 && b == DT_f32);
  if (words || (a == DT_f64 && held_as(b) == DT_i64) || (held_as(a) == DT_i64 && b == DT_f64)) {
    memmove(to, from, n * (words ? 4 : 8));
    return;
  }
#endif
  for (u32 i = 0; i < n; i++) {
    u8 raw[16] = {0};
    scalar_store(a, raw, get(a, from, i));
    put(b, to, i, scalar_load(b, raw));
  }
}

/* One lane of vdot_i8x4, vdot_i16x2 or requant. */
static inline u32 packed(u32 op, u32 a, u32 b, u32 c) {
#ifdef VM_SMALL
  const Op same = op == VM_requant ? OP_requant : op <= VM_vdot_i8x4s ? OP_dot_i8x4 : OP_dot_i16x2;
  return eval_packed(same, a, b, c);
#else
  if (op == VM_requant) return (u32)imk_requant((i32)a, (i32)b, c);
  return c + (op <= VM_vdot_i8x4s ? (u32)lane_dot_i8x4(a, b) : lane_dot_i16x2(a, b));
#endif
}

/* ---- functions ---- */

#define FUNCTION(name, expr)                                                                       \
  case OP_##name:                                                                                  \
    VM_IVDEP for (u32 i = 0; i < n; i++) {                                                         \
      const REAL x = a[i];                                                                         \
      o[i] = (expr);                                                                               \
    }                                                                                              \
    return true;

#ifdef VM_SMALL
static bool fun_f(MathMode math, u32 what, vm_f *o, const vm_f *a, u32 n) {
  const Op op = (Op)(what & 0xff);
  const MathMode part = scalar_math_mode(math, op, DT_f32);
  for (u32 i = 0; i < n; i++)
    o[i] = part < MM_q ? eval_f32(op, a[i], 0, 0) : eval_fast(part, op, a[i]);
  return true;
}
#define fun_d(what, o, a, n) false
#else
#define REAL float
static bool fun_f(MathMode math, u32 what, vm_f *o, const vm_f *a, u32 n) {
  MathMode part = (MathMode)(what >> 16 & 0xff);
  (void)math;
  if (part == MM_q) switch (what & 0xff) {
      FUNCTION(exp, im_expq(x))
      FUNCTION(exp_p1, im_exp_p1q(x))
      FUNCTION(exp_nonpos, im_exp_nonposq(x))
      FUNCTION(log, im_logq(x))
      FUNCTION(tanh, im_tanhq(x))
      FUNCTION(gelu_x2, im_gelu_x2q(x))
      FUNCTION(erf, im_erfq(x))
    default: return false;
    }
  if (part == MM_u) switch (what & 0xff) {
      FUNCTION(exp, im_expu(x))
      FUNCTION(exp_p1, im_exp_p1u(x))
      FUNCTION(exp_nonpos, im_exp_nonposu(x))
      FUNCTION(tanh, im_tanhu(x))
      FUNCTION(gelu_x2, im_gelu_x2u(x))
      FUNCTION(erf, im_erfu(x))
    default: return false;
    }
  if (part != MM_f) return false;
  switch (what & 0xff) {
    FUNCTION(neg, -x)
    FUNCTION(abs, imk_f32(imk_u32(x) & 0x7fffffff))
    FUNCTION(recip, 1 / x)
    FUNCTION(floor, im_floorf(x))
    FUNCTION(ceil, im_ceilf(x))
    FUNCTION(round, im_rintf(x))
    FUNCTION(trunc, im_truncf(x))
    FUNCTION(sqrt, im_sqrtf(x))
#ifndef VM_SINGLE
    FUNCTION(exp, im_expf(x))
    FUNCTION(log, im_logf(x))
    FUNCTION(tanh, im_tanhf(x))
    FUNCTION(erf, im_erff(x))
#endif
  default: return false;
  }
}

#undef REAL
#define REAL double
static bool fun_d(u32 what, vm_d *o, const vm_d *a, u32 n) {
  switch (what & 0xff) {
    FUNCTION(neg, -x)
    FUNCTION(recip, 1 / x)
    FUNCTION(sqrt, im_sqrt(x))
#ifndef VM_SINGLE
    FUNCTION(exp, im_exp(x))
#endif
  default: return false;
  }
}
#undef REAL
#endif
#undef FUNCTION

/* ---- reductions, in order ---- */

#define FOLD(T, name, expr)                                                                        \
  case OP_##name: {                                                                                \
    T a = *(T *)(void *)to;                                                                        \
    const T *p = (const T *)(const void *)from;                                                    \
    for (u32 i = first; i < n; i++) {                                                              \
      const T b = p[i];                                                                            \
      a = (expr);                                                                                  \
    }                                                                                              \
    *(T *)(void *)to = a;                                                                          \
    return;                                                                                        \
  }
#define FOLD_FLOAT(T, larger, smaller)                                                             \
  switch (o & 0xff) {                                                                              \
    FOLD(T, add, a + b)                                                                            \
    FOLD(T, mul, a *b)                                                                             \
    FOLD(T, max, larger(a, b))                                                                     \
    FOLD(T, min, smaller(a, b))                                                                    \
  default: break;                                                                                  \
  }
#define FOLD_INT(T, U)                                                                             \
  switch (o & 0xff) {                                                                              \
    FOLD(U, add, a + b)                                                                            \
    FOLD(T, max, a > b ? a : b)                                                                    \
    FOLD(T, min, a < b ? a : b)                                                                    \
    FOLD(U, or, a | b)                                                                             \
    FOLD(U, and, a &b)                                                                             \
  default: break;                                                                                  \
  }

/* turned: op(lane, a) instead of op(a, lane). */
static void accumulate(MathMode math, u32 o, bool turned, u64 *to, const u64 *from, u32 first,
                       u32 n) {
  const DType dt = (DType)(o >> 8 & 0xff);
  if (!turned || (o & 0xff) <= OP_mul) {
    if (dt == DT_f32) FOLD_FLOAT(vm_f, lane_larger_f, lane_smaller_f)
#ifndef VM_SMALL
    if (dt == DT_f64) FOLD_FLOAT(vm_d, lane_larger_d, lane_smaller_d)
    if (dt == DT_i32) FOLD_INT(vm_w, vm_uw)
    if (dt == DT_i64) FOLD_INT(vm_l, vm_ul)
#endif
  }
  Scalar pair[3] = {get(dt, to, 0), {.i = 0}, {.i = 0}};
  for (u32 i = first; i < n; i++) {
    pair[1] = get(dt, from, i);
    if (turned) pair[2] = pair[0], pair[0] = pair[1], pair[1] = pair[2];
    pair[0] = apply(math, o, pair);
  }
  put(dt, to, 0, pair[0]);
}
#undef FOLD

/* ---- addresses ---- */

/* Address of element `at` if n elements are in bounds; otherwise NULL. */
VM_NOINLINE static VM_INLINE u8 *element(const VmMem *mem, i64 at, u32 size, u32 n) {
  if (at < 0 || at >= (i64)1 << 40 || (u64)(at + n) * size > mem->bytes) return NULL;
  return mem->at + (size_t)at * size;
}

/* Address of an operand triple: buffer, offset, immediate. */
static VM_INLINE u8 *place(const Vm *m, const u32 *operand, u32 size, u32 n) {
  const i64 at = (i64)(m->file[operand[1]] + (u64)(i64)(i32)operand[2]);
  return element(&m->buf[operand[0]], at, size, n);
}

/* Address of an operand triple whose n elements have stride inc. */
static VM_INLINE u8 *places(const Vm *m, const u32 *operand, i64 inc, u32 size, u32 n) {
  const VmMem *mem = &m->buf[operand[0]];
  const i64 at = (i64)(m->file[operand[1]] + (u64)(i64)(i32)operand[2]), most = (i64)1 << 40;
  u8 *first = element(mem, at, size, 1);
  if (!first || inc > most || inc < -most) return NULL;
  return element(mem, at + inc * ((i64)n - 1), size, 1) ? first : NULL;
}

/* Lanes of a register and elements of a buffer at one offset per lane. operand: buffer, register of
 * offsets, immediate. */
static bool gather_scatter(const Vm *m, const u32 *operand, DType dt, u64 *reg, u32 n, bool write) {
  const u32 step = held_bytes(dt);
  u8 *lane = (u8 *)reg;
  for (u32 i = 0; i < n; i++, lane += step) {
    const i64 at = (i64)(m->file[operand[1] + i] + (u64)(i64)(i32)operand[2]);
    u8 *p = element(&m->buf[operand[0]], at, dtype_bytes(dt), 1);
    u64 one = 0;
    if (!p) return false;
    if (write) {
      memcpy(&one, lane, step);
      write_row(dt, p, &one, 1, 1);
    } else {
      read_row(dt, &one, p, 1, 1);
      memcpy(lane, &one, step);
    }
  }
  return true;
}

#endif
