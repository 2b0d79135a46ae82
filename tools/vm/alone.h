/* Types, tables and small functions that the standalone machine needs. Replaces ir.h and back.h in
 * ingot_vm.c. */
#ifndef VM_ALONE_H
#define VM_ALONE_H

#include <stdbool.h>

/* string.h may not exist */
void *memcpy(void *to, const void *from, size_t n);
void *memset(void *to, int x, size_t n);

#define VM_STANDALONE
#define VM_NO_TILES
#ifdef __OPTIMIZE_SIZE__ /* one dispatch, not one after each instruction */
#define VM_SWITCH
#define VM_SMALL
#endif
/* gcc assumes that a double operation is one instruction even if it is a library call, and inlines
 * functions that use a few. */
#if defined(VM_SMALL) && defined(__GNUC__) && !defined(__clang__)
#define VM_NOINLINE __attribute__((noipa))
/* Tail calls take more code than calls if a function has many. */
#pragma GCC optimize("no-optimize-sibling-calls")
#else
#define VM_NOINLINE
#endif
/* If double operations are library calls, doubles are in integer registers; pass arguments there,
 * too. */
#if defined(VM_SMALL) && defined(__ARM_PCS_VFP) && !(__ARM_FP & 8)
#define VM_DOUBLE __attribute__((pcs("aapcs")))
#else
#define VM_DOUBLE
#endif
VM_NOINLINE static float imk_lesser(float, float);
VM_NOINLINE static float imk_larger(float, float);
VM_NOINLINE VM_DOUBLE static double imk_add(double, double, double *);
VM_NOINLINE VM_DOUBLE static double imk_addf(double, double, double *);
VM_NOINLINE static float imk_pow2(float, float);
VM_NOINLINE static uint64_t imk_joined(const uint64_t *, int);
/* clang-format off */
#define OF_DOUBLE(name) VM_DOUBLE static double name(double);
OF_DOUBLE(im_rint) OF_DOUBLE(im_floor) OF_DOUBLE(im_ceil) OF_DOUBLE(im_trunc) OF_DOUBLE(im_sqrt)
OF_DOUBLE(im_exp) OF_DOUBLE(im_exp_nonpos) OF_DOUBLE(im_exp_p1) OF_DOUBLE(im_log) OF_DOUBLE(im_tanh)
OF_DOUBLE(im_erf) OF_DOUBLE(im_gelu_x2) OF_DOUBLE(im_sin) OF_DOUBLE(im_cos) OF_DOUBLE(im_tan)
OF_DOUBLE(imk_asin) OF_DOUBLE(im_asin) OF_DOUBLE(im_acos) OF_DOUBLE(im_atan) OF_DOUBLE(im_sinh)
OF_DOUBLE(im_cosh) OF_DOUBLE(im_asinh) OF_DOUBLE(im_acosh) OF_DOUBLE(im_atanh) OF_DOUBLE(imk_logf)
OF_DOUBLE(imk_log1pf)
#undef OF_DOUBLE
    /* clang-format on */
    VM_DOUBLE static uint64_t imk_split(double x, int *e);
VM_DOUBLE static double imk_round(uint64_t hi, uint64_t lo, int e, uint64_t sign);
VM_DOUBLE static double im_fma(double a, double b, double c);
VM_DOUBLE static double im_fmod(double x, double y);
VM_DOUBLE static double im_mod(double x, double y);
VM_DOUBLE static double imk_mul(double a, double b, double *lo);
VM_DOUBLE static double imk_scale(double x, int k);
VM_DOUBLE static int imk_exp(double x, double xl, double *hi, double *lo);
VM_DOUBLE static double imk_log(double x, double *lo);
VM_DOUBLE static int imk_bigpi(double x, double *y0, double *y1);
VM_DOUBLE static int imk_pio2(double x, double *y0, double *y1);
VM_DOUBLE static double imk_sin(double y0, double y1, double *lo);
VM_DOUBLE static double imk_cos(double y0, double y1, double *lo);
VM_DOUBLE static double imk_wave(double x, int turn);
VM_DOUBLE static double imk_root(double h, double l, double *lo);
VM_DOUBLE static double imk_arc(double a, double one);
VM_DOUBLE static double im_pow(double x, double y);
VM_DOUBLE static double imk_expf(double x, double *q);
VM_DOUBLE static double imk_clampf(float x, uint32_t top);
VM_DOUBLE static uint64_t imk_pio2f(double x, double *r);
VM_DOUBLE static uint64_t imk_bigpif(double x, double *r);
VM_DOUBLE static double imk_wavef(double r, uint64_t q);
VM_DOUBLE static uint64_t imk_anglef(float x, double *r);
VM_DOUBLE static double imk_asinf(double t, double z);
#ifdef INGOT_VM_SINGLE
#define VM_SINGLE
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wattributes" /* functions that are inline elsewhere */
#endif

/* Names visible to the linker. */
#define vm_exec          ingot_vm_exec_
#define vm_tile          ingot_vm_tile_
#define vm_begin         ingot_vm_begin_
#define vm_ops           ingot_vm_ops_
#define vm_operands      ingot_vm_operands_
#define vm_class         ingot_vm_class_
#define vm_class_bytes   ingot_vm_class_bytes_
#define vm_is_narrow     ingot_vm_is_narrow_
#define vm_words         ingot_vm_words_
#define igb_tables       ingot_vm_tables_
#define igb_sum          ingot_vm_sum_
#define igb_sum_add      ingot_vm_sum_add_
#define igb_element      ingot_vm_element_
#define igb_head         ingot_vm_head_
#define igb_verify       ingot_vm_verify_
#define igb_open         ingot_vm_open_
#define igb_extent       ingot_vm_extent_
#define dtype_info       ingot_vm_types_
#define dtype_limits     ingot_vm_limits_
#define op_info          ingot_vm_operations_
#define scalar_load      ingot_vm_load_
#define scalar_store     ingot_vm_store_
#define scalar_cast      ingot_vm_cast_
#define scalar_round     ingot_vm_round_
#define scalar_eval      ingot_vm_eval_
#define scalar_is_fast   ingot_vm_is_fast_
#define scalar_math_mode ingot_vm_part_
#define scalar_eval_as   ingot_vm_eval_as_
#define scalar_wrap      ingot_vm_wrap_
#define random_bits      ingot_vm_random_bits_
#define random_unit      ingot_vm_random_unit_

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;

typedef enum DType {
#define DT(name, cls, bits, bytes, onnx, text) DT_##name,
#include "ir/dtypes.def"
#undef DT
  DT_COUNT
} DType;

typedef struct DTypeInfo {
  char cls;
  u8 bits, bytes;
} DTypeInfo;
extern const DTypeInfo dtype_info[DT_COUNT];

typedef enum Op {
#define SC(name, nin, cls, res, flags, text) OP_##name,
#define OP(name, lo, hi, nout, kind, flags, attrs, text)
#include "ir/ops.def"
#undef SC
#undef OP
  OP_SCALARS
} Op;
enum {
#define FLAG(name, text) OF_BIT_##name,
#include "ir/flags.def"
#undef FLAG
};
typedef enum OpFlag {
#define FLAG(name, text) OF_##name = 1 << OF_BIT_##name,
#include "ir/flags.def"
#undef FLAG
} OpFlag;
typedef enum OpResultType { OR_same, OR_pred, OR_sel, OR_to, OR_none } OpResultType;
typedef struct OpInfo {
  u8 nin_min, res;
  u8 flags; /* from FUNC on */
} OpInfo;
extern const OpInfo op_info[OP_SCALARS];

typedef union Scalar {
  double f;
  i64 i;
} Scalar;
typedef enum MathMode { MM_f, MM_d, MM_q, MM_u, MM_s, MM_COUNT } MathMode;

static inline bool op_is(Op op, OpFlag flag) {
  return (op_info[op].flags & flag >> OF_BIT_FUNC) != 0;
}
VM_NOINLINE static bool dtype_is_float(DType d) {
  return dtype_info[d].cls == 'F';
}
VM_NOINLINE static bool dtype_is_signed(DType d) {
  return dtype_info[d].cls == 'I';
}
VM_NOINLINE static u32 dtype_bytes(DType d) {
  return dtype_info[d].bytes;
}

VM_DOUBLE static double eval_f64(Op op, double a, double b, double c);
VM_DOUBLE static bool compare_float(Op op, double a, double b);
VM_DOUBLE static double narrow(DType d, double x, bool sat);
VM_DOUBLE double scalar_round(DType d, double x);
VM_DOUBLE static double from_int(DType from, DType d, i64 x, bool sat);
VM_DOUBLE static i64 to_int(DType d, double x);
VM_DOUBLE static double largest(DType d);
Scalar scalar_load(DType d, const void *p);
void scalar_store(DType d, void *p, Scalar x);
Scalar scalar_cast(DType from, DType to, Scalar x, bool sat);
Scalar scalar_eval(Op op, DType d, const Scalar *arg);
bool scalar_is_fast(Op op, DType d);
MathMode scalar_math_mode(MathMode math, Op op, DType d);
Scalar scalar_eval_as(MathMode math, Op op, DType d, const Scalar *arg);
i64 scalar_wrap(DType d, i64 x);
u64 random_bits(u64 seed, u64 index);
double random_unit(DType d, u64 node_seed, u64 run_seed, u64 index);
void dtype_limits(DType d, Scalar *lo, Scalar *hi);

#include "ir/math/mathlib.h"

#if defined(VM_SMALL) && defined(__GNUC__) && !defined(__clang__)
/* Coefficients in tables: instructions that load constants are longer than the constants. */
VM_DOUBLE VM_NOINLINE static double alone_p4(double x, const double *c) {
  return imk_p4(x, x * x, c[0], c[1], c[2], c[3]);
}
VM_DOUBLE VM_NOINLINE static double alone_p5(double rest, double x, const double *c) {
  return imk_p5(x, x * x, c[0], c[1], c[2], c[3], rest);
}
#define imk_p4(x, x2, ...)                                                                         \
  __extension__({                                                                                  \
    static const double imk_table[4] = {__VA_ARGS__};                                              \
    (void)(x2);                                                                                    \
    alone_p4(x, imk_table);                                                                        \
  })
#define imk_p5(x, x2, a, b, c, d, rest)                                                            \
  __extension__({                                                                                  \
    static const double imk_table[4] = {a, b, c, d};                                               \
    (void)(x2);                                                                                    \
    alone_p5(rest, x, imk_table);                                                                  \
  })
#define imk_t5(x, x2, c, rest) alone_p5(rest, x, c)
#endif
#include "ir/math/mathlibd.h"
#include "ir/math/mathlibs.h"

#ifdef VM_SMALL /* one of two with the same bits */
#define im_expq        im_exps
#define im_exp_nonposq im_exps
#define im_exp_p1q(x)  (1.0f + im_exps(x))
#endif

#define NAN      imk_nan()
#define INFINITY imk_inf()
#define isnan(x) ((x) != (x))
#define isinf(x) (imk_abs(x) == imk_inf())
#define fabs     imk_abs
#define fabsf    imk_absf
#define ldexp    alone_ldexp
#define strchr   alone_find
#define memmove  alone_move
#define memcmp   alone_differ

/* exp: no result is subnormal or infinite */
static inline double alone_ldexp(double x, int exp) {
  return x * imk_f64((u64)(1023 + exp) << 52);
}
static inline const char *alone_find(const char *s, int c) {
  while (*s && *s != c) s++;
  return *s ? s : NULL;
}
static inline void alone_move(void *to, const void *from, size_t n) {
  u8 *t = to;
  const u8 *f = from;
  if (t <= f)
    for (size_t i = 0; i < n; i++) t[i] = f[i];
  else
    while (n--) t[n] = f[n];
}
static inline int alone_differ(const void *a, const void *b, size_t n) {
  const u8 *x = a, *y = b;
  for (size_t i = 0; i < n; i++)
    if (x[i] != y[i]) return 1;
  return 0;
}

#endif
