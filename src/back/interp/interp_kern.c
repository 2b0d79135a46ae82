/* interp_kern.c: the loops over rows, one for each operation and class of values.
 *
 * In: rows of float, double or i64. Out: the same kind of rows, element by element what eval.c
 * defines; operations without an entry here go through scalar_eval. Results of types narrower than
 * their class are wrapped or rounded by kern_fit afterwards. The file is compiled for speed;
 * nothing else in it is clever.
 */
#include "back/interp/interp.h"
#include "ir/mathlibd.h"
#include "ir/mathlibf.h"
#include "ir/mathlibs.h"

#include <math.h>
#include <string.h>

Scalar row_get(RowClass cls, const void *p, u32 i) {
  Scalar x;
  if (cls == RC_float)
    x.f = ((const float *)p)[i];
  else if (cls == RC_double)
    x.f = ((const double *)p)[i];
  else
    x.i = ((const i64 *)p)[i];
  return x;
}

void row_put(RowClass cls, void *p, u32 i, Scalar x) {
  if (cls == RC_float)
    ((float *)p)[i] = (float)x.f;
  else if (cls == RC_double)
    ((double *)p)[i] = x.f;
  else
    ((i64 *)p)[i] = x.i;
}

/* ---- two operands ---- */

#define BINARY(name, T, R, expr)                                                                   \
  static void name(void *op, const void *ap, const void *bp, u32 n, bool one_a, bool one_b) {      \
    R *o = op;                                                                                     \
    const T *pa = ap, *pb = bp;                                                                    \
    if (one_a) {                                                                                   \
      const T a = *pa;                                                                             \
      for (u32 i = 0; i < n; i++) {                                                                \
        const T b = pb[i];                                                                         \
        o[i] = (expr);                                                                             \
      }                                                                                            \
    } else if (one_b) {                                                                            \
      const T b = *pb;                                                                             \
      for (u32 i = 0; i < n; i++) {                                                                \
        const T a = pa[i];                                                                         \
        o[i] = (expr);                                                                             \
      }                                                                                            \
    } else {                                                                                       \
      for (u32 i = 0; i < n; i++) {                                                                \
        const T a = pa[i], b = pb[i];                                                              \
        o[i] = (expr);                                                                             \
      }                                                                                            \
    }                                                                                              \
  }

#define ARITHMETIC(suffix, T)                                                                      \
  BINARY(add_##suffix, T, T, a + b)                                                                \
  BINARY(sub_##suffix, T, T, a - b)                                                                \
  BINARY(mul_##suffix, T, T, a *b)                                                                 \
  BINARY(div_##suffix, T, T, a / b)                                                                \
  BINARY(max_##suffix, T, T, b > a || b != b ? b : a)                                              \
  BINARY(min_##suffix, T, T, b < a || b != b ? b : a)
#define COMPARISON(suffix, T)                                                                      \
  BINARY(eq_##suffix, T, i64, a == b)                                                              \
  BINARY(ne_##suffix, T, i64, a != b)                                                              \
  BINARY(lt_##suffix, T, i64, a < b)                                                               \
  BINARY(le_##suffix, T, i64, a <= b)                                                              \
  BINARY(gt_##suffix, T, i64, a > b)                                                               \
  BINARY(ge_##suffix, T, i64, a >= b)
ARITHMETIC(f, float)
ARITHMETIC(d, double)
COMPARISON(f, float)
COMPARISON(d, double)
COMPARISON(i, i64)
BINARY(pow_f, float, float, im_powf(a, b))
BINARY(pow_d, double, double, im_pow(a, b))
BINARY(add_i, u64, u64, a + b)
BINARY(sub_i, u64, u64, a - b)
BINARY(mul_i, u64, u64, a *b)
BINARY(and_i, u64, u64, a &b)
BINARY(or_i, u64, u64, a | b)
BINARY(xor_i, u64, u64, a ^ b)
BINARY(max_i, i64, i64, a > b ? a : b)
BINARY(min_i, i64, i64, a < b ? a : b)

#define FLOAT_ROWS(suffix)                                                                         \
  {                                                                                                \
    [OP_add] = add_##suffix, [OP_sub] = sub_##suffix, [OP_mul] = mul_##suffix,                     \
    [OP_div] = div_##suffix, [OP_max] = max_##suffix, [OP_min] = min_##suffix,                     \
    [OP_eq] = eq_##suffix, [OP_ne] = ne_##suffix, [OP_lt] = lt_##suffix, [OP_le] = le_##suffix,    \
    [OP_gt] = gt_##suffix, [OP_ge] = ge_##suffix, [OP_pow] = pow_##suffix,                         \
  }

static Kern2 *const rows2[3][OP_SCALARS] = {
    [RC_float] = FLOAT_ROWS(f),
    [RC_double] = FLOAT_ROWS(d),
    [RC_int] = {[OP_add] = add_i,
                [OP_sub] = sub_i,
                [OP_mul] = mul_i,
                [OP_and] = and_i,
                [OP_or] = or_i,
                [OP_xor] = xor_i,
                [OP_max] = max_i,
                [OP_min] = min_i,
                [OP_eq] = eq_i,
                [OP_ne] = ne_i,
                [OP_lt] = lt_i,
                [OP_le] = le_i,
                [OP_gt] = gt_i,
                [OP_ge] = ge_i},
};

Kern2 *kern2(Op op, DType dt) {
  bool order =
      op == OP_max || op == OP_min || op == OP_lt || op == OP_le || op == OP_gt || op == OP_ge;
  if (dt == DT_u64 && order) return NULL; /* i64 has another order */
  return rows2[row_class(dt)][op];
}

/* ---- one operand ---- */

#define UNARY(name, T, R, expr)                                                                    \
  static void name(void *op, const void *ap, u32 n) {                                              \
    R *o = op;                                                                                     \
    const T *pa = ap;                                                                              \
    for (u32 i = 0; i < n; i++) {                                                                  \
      const T a = pa[i];                                                                           \
      o[i] = (R)(expr);                                                                            \
    }                                                                                              \
  }

/* The functions of mathlib*.h, as eval.c has them; f is the suffix of their names for the type. */
#define FUNCTIONS(suffix, T, f)                                                                    \
  UNARY(neg_##suffix, T, T, -a)                                                                    \
  UNARY(recip_##suffix, T, T, 1 / a)                                                               \
  UNARY(isnan_##suffix, T, i64, a != a)                                                            \
  UNARY(floor_##suffix, T, T, im_floor##f(a))                                                      \
  UNARY(ceil_##suffix, T, T, im_ceil##f(a))                                                        \
  UNARY(round_##suffix, T, T, im_rint##f(a))                                                       \
  UNARY(trunc_##suffix, T, T, im_trunc##f(a))                                                      \
  UNARY(sqrt_##suffix, T, T, im_sqrt##f(a))                                                        \
  UNARY(exp_##suffix, T, T, im_exp##f(a))                                                          \
  UNARY(exp1_##suffix, T, T, im_exp1##f(a))                                                        \
  UNARY(exp0_##suffix, T, T, im_exp0##f(a))                                                        \
  UNARY(log_##suffix, T, T, im_log##f(a))                                                          \
  UNARY(sin_##suffix, T, T, im_sin##f(a))                                                          \
  UNARY(cos_##suffix, T, T, im_cos##f(a))                                                          \
  UNARY(tanh_##suffix, T, T, im_tanh##f(a))                                                        \
  UNARY(gelu2_##suffix, T, T, im_gelu2##f(a))                                                      \
  UNARY(erf_##suffix, T, T, im_erf##f(a))
FUNCTIONS(f, float, f)
FUNCTIONS(d, double, )
UNARY(abs_f, float, float, fabsf(a))
UNARY(abs_d, double, double, fabs(a))
UNARY(neg_i, u64, u64, 0 - a)

#define FUNCTION_ROWS(suffix)                                                                      \
  {                                                                                                \
    [OP_neg] = neg_##suffix, [OP_abs] = abs_##suffix, [OP_recip] = recip_##suffix,                 \
    [OP_isnan] = isnan_##suffix, [OP_floor] = floor_##suffix, [OP_ceil] = ceil_##suffix,           \
    [OP_round] = round_##suffix, [OP_trunc] = trunc_##suffix, [OP_sqrt] = sqrt_##suffix,           \
    [OP_exp] = exp_##suffix, [OP_log] = log_##suffix, [OP_sin] = sin_##suffix,                     \
    [OP_cos] = cos_##suffix, [OP_tanh] = tanh_##suffix, [OP_erf] = erf_##suffix,                   \
    [OP_exp1] = exp1_##suffix, [OP_gelu2] = gelu2_##suffix, [OP_exp0] = exp0_##suffix,             \
  }

static Kern1 *const rows1[3][OP_SCALARS] = {
    [RC_float] = FUNCTION_ROWS(f),
    [RC_double] = FUNCTION_ROWS(d),
    [RC_int] = {[OP_neg] = neg_i},
};

/* In programs that say `math fast`, `math fused` or `math single`. */
UNARY(exp_q, float, float, im_expq(a))
UNARY(exp1_q, float, float, im_exp1q(a))
UNARY(exp0_q, float, float, im_exp0q(a))
UNARY(log_q, float, float, im_logq(a))
UNARY(sin_q, float, float, im_sinq(a))
UNARY(cos_q, float, float, im_cosq(a))
UNARY(tanh_q, float, float, im_tanhq(a))
UNARY(gelu2_q, float, float, im_gelu2q(a))
UNARY(erf_q, float, float, im_erfq(a))
UNARY(exp_u, float, float, im_expu(a))
UNARY(exp1_u, float, float, im_exp1u(a))
UNARY(exp0_u, float, float, im_exp0u(a))
UNARY(tanh_u, float, float, im_tanhu(a))
UNARY(gelu2_u, float, float, im_gelu2u(a))
UNARY(erf_u, float, float, im_erfu(a))
UNARY(exp_s, float, float, im_exps(a))
UNARY(sin_s, float, float, im_sins(a))
UNARY(cos_s, float, float, im_coss(a))
UNARY(tanh_s, float, float, im_tanhs(a))
UNARY(gelu2_s, float, float, im_gelu2s(a))
UNARY(erf_s, float, float, im_erfs(a))

static Kern1 *const rows1q[OP_SCALARS] = {
    [OP_exp] = exp_q,   [OP_log] = log_q,     [OP_sin] = sin_q,
    [OP_cos] = cos_q,   [OP_tanh] = tanh_q,   [OP_erf] = erf_q,
    [OP_exp1] = exp1_q, [OP_gelu2] = gelu2_q, [OP_exp0] = exp0_q};

static Kern1 *const rows1u[OP_SCALARS] = {
    [OP_exp] = exp_u,   [OP_exp1] = exp1_u,   [OP_exp0] = exp0_u,
    [OP_tanh] = tanh_u, [OP_gelu2] = gelu2_u, [OP_erf] = erf_u};

static Kern1 *const rows1s[OP_SCALARS] = {
    [OP_exp] = exp_s,   [OP_sin] = sin_s,     [OP_cos] = cos_s,
    [OP_tanh] = tanh_s, [OP_gelu2] = gelu2_s, [OP_erf] = erf_s};

UNARY(not_b, i64, i64, !a)

Kern1 *kern1(const Prog *p, Op op, DType dt) {
  if (op == OP_not) return dt == DT_bool ? not_b : NULL;
  switch (scalar_part(p->math, op, dt)) {
  case MP_q: return rows1q[op];
  case MP_u: return rows1u[op];
  case MP_s: return rows1s[op];
  default: return rows1[row_class(dt)][op];
  }
}

/* ---- narrow types, conversion, choice ---- */

#define EACH_INT(dt, DO, otherwise)                                                                \
  switch (dt) {                                                                                    \
  case DT_i64:                                                                                     \
  case DT_u64: DO(i64) break;                                                                      \
  case DT_i32: DO(i32) break;                                                                      \
  case DT_i16: DO(i16) break;                                                                      \
  case DT_i8: DO(i8) break;                                                                        \
  case DT_u32: DO(u32) break;                                                                      \
  case DT_u16: DO(u16) break;                                                                      \
  case DT_u8: DO(u8) break;                                                                        \
  default: otherwise break;                                                                        \
  }

static void wrap(DType dt, i64 *o, const i64 *a, u32 n) {
#define DO(T)                                                                                      \
  for (u32 i = 0; i < n; i++) o[i] = (T)(u64)a[i];
#define SLOW                                                                                       \
  for (u32 i = 0; i < n; i++) o[i] = scalar_wrap(dt, a[i]);
  EACH_INT(dt, DO, SLOW)
#undef DO
#undef SLOW
}

void kern_fit(DType dt, void *o, u32 n) {
  if (dt == DT_f32 || dt == DT_f64 || dtype_info[dt].bits == 64 || dt == DT_bool) return;
  if (!dtype_is_float(dt)) {
    wrap(dt, o, o, n);
    return;
  }
  float *f = o;
  for (u32 i = 0; i < n; i++) f[i] = (float)scalar_round(dt, f[i]);
}

bool kern_cast(DType from, DType to, bool sat, void *op, const void *ap, u32 n) {
  RowClass cf = row_class(from), ct = row_class(to);
#define CONVERT(T, R, expr)                                                                        \
  {                                                                                                \
    const T *a = ap;                                                                               \
    R *o = op;                                                                                     \
    for (u32 i = 0; i < n; i++) o[i] = (R)(expr);                                                  \
    return true;                                                                                   \
  }
  if (to == DT_bool) {
    if (cf == RC_float) CONVERT(float, i64, a[i] != 0)
    if (cf == RC_double) CONVERT(double, i64, a[i] != 0)
    CONVERT(i64, i64, a[i] != 0)
  }
  if (cf == RC_int && ct == RC_int && !sat) {
    wrap(to, op, ap, n);
    return true;
  }
  if (to == DT_f32 && cf == RC_int && from != DT_u64) CONVERT(i64, float, a[i])
  if (to == DT_f64 && cf == RC_int && from != DT_u64) CONVERT(i64, double, a[i])
  if (to == DT_f32 && cf == RC_float) CONVERT(float, float, a[i])
  if (to == DT_f32 && cf == RC_double) CONVERT(double, float, a[i])
  if (to == DT_f64 && cf == RC_float) CONVERT(float, double, a[i])
#undef CONVERT
  return false;
}

void kern_select(RowClass cls, void *op, const i64 *c, const void *ap, const void *bp, u32 n,
                 bool one_c, bool one_a, bool one_b) {
  u32 sc = !one_c, sa = !one_a, sb = !one_b;
#define CHOOSE(T)                                                                                  \
  {                                                                                                \
    const T *a = ap, *b = bp;                                                                      \
    T *o = op;                                                                                     \
    for (u32 i = 0; i < n; i++) o[i] = c[i * sc] ? a[i * sa] : b[i * sb];                          \
  }
  if (cls == RC_float)
    CHOOSE(float)
  else if (cls == RC_double)
    CHOOSE(double)
  else
    CHOOSE(i64)
#undef CHOOSE
}

/* ---- folds, in order ---- */

#define FOLD(T, expr)                                                                              \
  {                                                                                                \
    const T *p = ap;                                                                               \
    for (u32 i = 0; i < n; i++) {                                                                  \
      const T b = p[one ? 0 : i];                                                                  \
      a = (expr);                                                                                  \
    }                                                                                              \
  }

#define FOLD_FLOAT(T)                                                                              \
  {                                                                                                \
    T a = (T)acc->f;                                                                               \
    if (op == OP_add)                                                                              \
      FOLD(T, a + b)                                                                               \
    else if (op == OP_mul)                                                                         \
      FOLD(T, a *b)                                                                                \
    else if (swap)                                                                                 \
      return false;                                                                                \
    else if (op == OP_max)                                                                         \
      FOLD(T, b > a || b != b ? b : a)                                                             \
    else if (op == OP_min)                                                                         \
      FOLD(T, b < a || b != b ? b : a)                                                             \
    else                                                                                           \
      return false;                                                                                \
    acc->f = a;                                                                                    \
    return true;                                                                                   \
  }

bool kern_fold(Op op, DType dt, bool swap, Scalar *acc, const void *ap, u32 n, bool one) {
  if (dt == DT_f32) FOLD_FLOAT(float)
  if (dt == DT_f64) FOLD_FLOAT(double)
  if (dt != DT_i64) return false;
  if (op == OP_add) {
    u64 a = (u64)acc->i;
    FOLD(u64, a + b)
    acc->i = (i64)a;
    return true;
  }
  i64 a = acc->i;
  if (op == OP_max)
    FOLD(i64, a > b ? a : b)
  else if (op == OP_min)
    FOLD(i64, a < b ? a : b)
  else
    return false;
  acc->i = a;
  return true;
}

/* ---- memory ---- */

void kern_load(DType dt, void *op, const u8 *from, i64 inc, u32 n) {
  if (dt == DT_f32 || dt == DT_f64) {
#define COPY(T)                                                                                    \
  {                                                                                                \
    T *o = op;                                                                                     \
    const T *a = (const T *)(const void *)from;                                                    \
    for (u32 i = 0; i < n; i++) o[i] = a[inc * (i64)i];                                            \
    return;                                                                                        \
  }
    if (dt == DT_f32) COPY(float)
    COPY(double)
#undef COPY
  }
  RowClass cls = row_class(dt);
  i64 *o = op, step = inc * (i64)dtype_bytes(dt);
#define DO(T)                                                                                      \
  for (u32 i = 0; i < n; i++) o[i] = (i64)((const T *)(const void *)from)[inc * (i64)i];
#define SLOW                                                                                       \
  for (u32 i = 0; i < n; i++) row_put(cls, op, i, scalar_load(dt, from + step * (i64)i));
  EACH_INT(dt, DO, SLOW)
#undef DO
#undef SLOW
}

void kern_store(DType dt, u8 *to, i64 inc, const void *ap, u32 n, bool one) {
  u32 s = !one;
  if (dt == DT_f32 || dt == DT_f64) {
#define COPY(T)                                                                                    \
  {                                                                                                \
    T *o = (T *)(void *)to;                                                                        \
    const T *a = ap;                                                                               \
    for (u32 i = 0; i < n; i++) o[inc * (i64)i] = a[i * s];                                        \
    return;                                                                                        \
  }
    if (dt == DT_f32) COPY(float)
    COPY(double)
#undef COPY
  }
  RowClass cls = row_class(dt);
  const i64 *a = ap;
  i64 step = inc * (i64)dtype_bytes(dt);
#define DO(T)                                                                                      \
  for (u32 i = 0; i < n; i++) ((T *)(void *)to)[inc * (i64)i] = (T)a[i * s];
#define SLOW                                                                                       \
  for (u32 i = 0; i < n; i++) scalar_store(dt, to + step * (i64)i, row_get(cls, ap, i * s));
  EACH_INT(dt, DO, SLOW)
#undef DO
#undef SLOW
}

/* y[i] = y[i] + a[i * inc_a] * b[i * inc_b]; neither a nor b overlaps y. */
void kern_mac(float *restrict y, const float *restrict a, i64 inc_a, const float *restrict b,
              i64 inc_b, u64 n) {
  if (inc_a == 0 || (inc_b == 1 && inc_a != 1)) {
    const float *t = a;
    i64 inc_t = inc_a;
    a = b, inc_a = inc_b;
    b = t, inc_b = inc_t;
  }
  if (inc_a == 1 && inc_b == 0) {
    const float k = *b;
    for (u64 i = 0; i < n; i++) y[i] = y[i] + a[i] * k;
  } else if (inc_b == 0) {
    const float k = *b;
    for (u64 i = 0; i < n; i++) y[i] = y[i] + a[(i64)i * inc_a] * k;
  } else if (inc_a == 1 && inc_b == 1) {
    for (u64 i = 0; i < n; i++) y[i] = y[i] + a[i] * b[i];
  } else {
    for (u64 i = 0; i < n; i++) y[i] = y[i] + a[(i64)i * inc_a] * b[(i64)i * inc_b];
  }
}

/* acc + a[0] * b[0] + a[1] * b[1]..., in that order. */
float kern_dot(float acc, const float *a, i64 inc_a, const float *b, i64 inc_b, u64 n) {
  for (u64 i = 0; i < n; i++) acc = acc + a[(i64)i * inc_a] * b[(i64)i * inc_b];
  return acc;
}
