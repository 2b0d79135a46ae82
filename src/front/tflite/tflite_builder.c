/* tflite_builder.c: shared by operator builders: operands, quantization, results.
 *
 * A quantized tensor stands for (q - zero) * scale. Operators that are linear in q - zero are
 * computed on these integers, times a factor of scales (lite_mul_quantized), to match TensorFlow
 * Lite to the bit. It multiplies by 31-bit fixed-point numbers, shifts, and rounds both times: the
 * operator requant, or the same steps in i64 where a sum may have more than 30 bits. Only 64-bit
 * sums are scaled in f32. Other operators compute in f32 and round to nearest, halves away from
 * zero.
 */
#include "front/tflite/tflite_import.h"

#include <math.h>

/* ---- operands ---- */

bool lite_has(LiteNode *b, u32 i) {
  return i < b->op->nin && b->op->in[i] >= 0;
}

/* 0: absent. */
static Val lite_opt(LiteNode *b, u32 i) {
  return lite_has(b, i) ? lite_value(b->im, (u32)b->op->in[i]) : 0;
}

Val lite_in(LiteNode *b, u32 i) {
  Val v = lite_opt(b, i);
  if (!v) lite_bad(b, "input %u is absent, expected a tensor", i);
  return v;
}

const LiteTensor *lite_operand(LiteNode *b, u32 i) {
  if (!lite_has(b, i)) lite_bad(b, "input %u is absent, expected a tensor", i);
  return &b->im->scope->graph->tensor[b->op->in[i]];
}

const LiteTensor *lite_result(LiteNode *b, u32 k) {
  if (k >= b->op->nout || b->op->out[k] < 0)
    lite_bad(b, "output %u is absent, expected a tensor", k);
  return &b->im->scope->graph->tensor[b->op->out[k]];
}

DType lite_dt(LiteNode *b, Val v) {
  return graph_type(b->g, v)->dt;
}

u32 lite_rank(LiteNode *b, Val v) {
  return graph_type(b->g, v)->rank;
}

/* ---- quantization ---- */

bool lite_is_quant(const LiteTensor *t) {
  return t->q.n && (t->dt == DT_i8 || t->dt == DT_u8 || t->dt == DT_i16 || t->dt == DT_i4);
}

bool lite_same_quant(const LiteTensor *x, const LiteTensor *y) {
  if (x->dt != y->dt || lite_is_quant(x) != lite_is_quant(y)) return false;
  if (!lite_is_quant(x)) return true;
  bool same = x->q.n == y->q.n && (x->q.n == 1 || x->q.axis == y->q.axis);
  for (u32 i = 0; same && i < x->q.n; i++)
    same = x->q.scale[i] == y->q.scale[i] && x->q.zero[i] == y->q.zero[i];
  return same;
}

bool lite_is_linear(LiteNode *b, u32 n) {
  const LiteTensor *out = lite_result(b, 0);
  bool fits = lite_is_quant(out) && out->q.n == 1 && out->q.scale[0] > 0;
  for (u32 i = 0; fits && i < n; i++) {
    const LiteTensor *t = lite_operand(b, i);
    fits = lite_is_quant(t) && t->q.n == 1 && t->q.scale[0] > 0 && !t->q.other;
  }
  return fits;
}

double lite_ratio(LiteNode *b, u32 i) {
  return (double)lite_operand(b, i)->q.scale[0] / (double)lite_result(b, 0)->q.scale[0];
}

bool lite_is_symmetric(const LiteTensor *t) {
  for (u32 i = 0; i < t->q.n; i++)
    if (t->q.zero[i]) return false;
  return true;
}

/* A scalar, or a vector along axis of a value of that rank. */
static Val broadcast_param(LiteNode *b, Tensor *t, u32 axis, u32 rank) {
  Val v = mk_const(b->g, t);
  if (!t->rank) return v;
  if (axis >= rank) lite_bad(b, "the scales are on axis %u, but the rank is %u", axis, rank);
  return mk_expand_tail(b->g, v, rank - 1 - axis);
}

Val lite_scale(LiteNode *b, const LiteTensor *t, u32 axis, u32 rank) {
  Tensor *s = tensor_new(&b->c->work, DT_f32, (const i64[]){t->q.n}, t->q.n > 1);
  for (u32 i = 0; i < s->n; i++) tensor_set(s, i, (Scalar){.f = (double)t->q.scale[i]});
  return broadcast_param(b, s, axis, rank);
}

static Val lite_zero_point(LiteNode *b, const LiteTensor *t, u32 axis, u32 rank) {
  Tensor *z = tensor_new(&b->c->work, DT_i32, (const i64[]){t->q.n}, t->q.n > 1);
  for (u32 i = 0; i < z->n; i++) tensor_set(z, i, (Scalar){.i = t->q.zero[i]});
  return broadcast_param(b, z, axis, rank);
}

static void check_quant(LiteNode *b, const LiteTensor *t) {
  if (t->q.other)
    lite_unsupported(
        b, "tensor '%s' is quantized in groups or by a custom scheme, which is not supported",
        show(b->c, t->name));
}

void lite_check(LiteNode *b) {
  for (u32 i = 0; i < b->op->nin; i++)
    if (lite_has(b, i)) check_quant(b, lite_operand(b, i));
  for (u32 i = 0; i < b->op->nout; i++) {
    if (b->op->out[i] < 0) continue;
    const LiteTensor *t = lite_result(b, i);
    check_quant(b, t);
    if (t->dt == DT_str)
      lite_unsupported(b, "result '%s' has strings, which is not supported", show(b->c, t->name));
  }
}

Val lite_sub_zero_point(LiteNode *b, Val v, const LiteTensor *t) {
  check_quant(b, t);
  Val x = mk_cast(b->g, v, DT_i32);
  return lite_is_symmetric(t) ? x
                              : mk_sub(b->g, x, lite_zero_point(b, t, t->q.axis, lite_rank(b, v)));
}

Val lite_real_of(LiteNode *b, Val v, const LiteTensor *t) {
  check_quant(b, t);
  if (!lite_is_quant(t)) return mk_widen(b->g, v);
  Val x = mk_cast(b->g, lite_sub_zero_point(b, v, t), DT_f32);
  return mk_mul(b->g, x, lite_scale(b, t, t->q.axis, lite_rank(b, v)));
}

Val lite_real(LiteNode *b, u32 i) {
  return lite_real_of(b, lite_in(b, i), lite_operand(b, i));
}

/* ---- compile-time contents ---- */

u32 lite_ints(LiteNode *b, u32 i, i64 *out, u32 max) {
  u32 n;
  if (!graph_ints(b->g, lite_in(b, i), out, max, &n))
    lite_unsupported(b, "input %u, '%s': expected a constant of at most %u integers", i,
                     show(b->c, lite_operand(b, i)->name), max);
  return n;
}

u32 lite_dim_list(LiteNode *b, u32 i, Dim *out, u32 max) {
  u32 n;
  if (!graph_dim_list(b->g, lite_in(b, i), out, max, &n))
    lite_unsupported(b, "input %u, '%s': expected at most %u known extents, or extents of inputs",
                     i, show(b->c, lite_operand(b, i)->name), max);
  return n;
}

i64 lite_int(LiteNode *b, u32 i) {
  i64 x;
  if (lite_ints(b, i, &x, 1) != 1) lite_bad(b, "input %u: expected one number", i);
  return x;
}

u32 lite_axis(LiteNode *b, i64 axis, u32 rank) {
  i64 at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank)
    lite_bad(b, "axis %lld is out of range for rank %u", (long long)axis, rank);
  return (u32)at;
}

/* ---- results ---- */

static Val div_scale(LiteNode *b, Val x, const LiteTensor *t) {
  check_quant(b, t);
  Val scale = lite_scale(b, t, t->q.axis, lite_rank(b, x));
  return mk_div(b->g, mk_cast(b->g, x, DT_f32), scale);
}

static Val add_zero_point(LiteNode *b, Val x, const LiteTensor *t) {
  if (lite_is_symmetric(t)) return x;
  Val zero = mk_cast(b->g, lite_zero_point(b, t, t->q.axis, lite_rank(b, x)), lite_dt(b, x));
  return mk_add(b->g, x, zero);
}

Val lite_rounded(LiteNode *b, Val x) {
  return mk_round(b->g, mk_mulk(b->g, x, LITE_NUDGE));
}

Val lite_quantized(LiteNode *b, Val x, const LiteTensor *t) {
  Val v = div_scale(b, x, t), less = mk_lt(b->g, x, mk_like(b->g, x, 0));
  double below = 0x1.fffffep-2; /* largest float below 0.5, so values below a half stay below */
  Val half = mk_like(b->g, v, below);
  half = mk_select(b->g, less, mk_like(b->g, v, -below), half);
  return mk_cast_sat(b->g, add_zero_point(b, mk_trunc(b->g, mk_add(b->g, v, half)), t), t->dt);
}

/* k[i] as f32 along an axis. */
static Val factors(LiteNode *b, const double *k, u32 n, u32 axis, u32 rank) {
  Tensor *t = tensor_new(&b->c->work, DT_f32, (const i64[]){n}, n > 1);
  for (u32 i = 0; i < n; i++) tensor_set(t, i, (Scalar){.f = (double)(float)k[i]});
  return broadcast_param(b, t, axis, rank);
}

/* Fixed-point factor of TensorFlow Lite: m / 2^31 * 2^e. */
typedef struct Fixed {
  i64 m; /* 0, or in [2^30, 2^31) */
  int e;
} Fixed;

static Fixed fixed_of(double k) {
  Fixed f;
  f.m = llround(ldexp(frexp(k, &f.e), 31));
  if (f.m == (i64)1 << 31) {
    f.m >>= 1;
    f.e++;
  }
  return f.e < -31 ? (Fixed){0, 0} : f;
}

/* x[i] in type dt along an axis. */
static Val along(LiteNode *b, DType dt, const i64 *x, u32 n, u32 axis, u32 rank) {
  bool same = true;
  for (u32 i = 1; i < n; i++) same = same && x[i] == x[0];
  Tensor *t = tensor_new(&b->c->work, dt, (const i64[]){n}, n > 1 && !same);
  for (u32 i = 0; i < t->n; i++) tensor_set(t, i, (Scalar){.i = x[i]});
  return broadcast_param(b, t, axis, rank);
}

/* requant for sums that may have more than 30 bits after the shift to the left, in i64. */
static Val requant_wide(LiteNode *b, Val x, Val m, Val right) {
  Graph *g = b->g;
  Val p = mk_cast(g, x, DT_i64), factor = mk_cast(g, m, DT_i64), n = mk_cast(g, right, DT_i64);
  p = mk_addk(g, mk_mul(g, p, factor), 0x1p30);
  Val none = mk_like(g, p, 0), one = mk_like(g, p, 1);
  Val y = mk_shr(g, p, mk_like(g, p, 31)), sign = mk_shr(g, y, mk_like(g, p, 63));
  Val by = mk_max(g, n, one), z = mk_add(g, y, sign);
  by = mk_sub(g, by, one);
  z = mk_shr(g, z, by);
  z = mk_shr(g, mk_addk(g, z, 1), one);
  n = mk_gt(g, n, none);
  return mk_cast(g, mk_select(g, n, z, y), DT_i32);
}

Val lite_mul_quantized(LiteNode *b, Val x, const double *k, u32 n, u32 axis) {
  u32 rank = lite_rank(b, x);
  i64 *m = NEWS(&b->c->scratch, i64, n), *right = NEWS(&b->c->scratch, i64, n), lo, hi;
  i64 *left = NEWS(&b->c->scratch, i64, n), most = 0;
  for (u32 i = 0; i < n; i++) {
    Fixed f = fixed_of(k[i]);
    m[i] = f.m;
    right[i] = f.e < 0 ? -f.e : 0;
    left[i] = f.e > 0 ? f.e : 0;
    most = left[i] > most ? left[i] : most;
  }
  Val by = along(b, DT_i32, m, n, axis, rank), down = along(b, DT_i32, right, n, axis, rank);
  value_int_range(b->g, x, &lo, &hi);
  bool fits = most < 30 && lo >= -((i64)1 << (30 - most)) && hi < (i64)1 << (30 - most);
  for (u32 i = 0; i < n; i++) left[i] += fits;
  if (most || fits) x = mk_shl(b->g, x, along(b, DT_i32, left, n, axis, rank));
  if (!fits) return requant_wide(b, x, by, down);
  return mk_requant(b->g, x, by, down);
}

Val lite_mul_quantized_i64(LiteNode *b, Val x, const double *k, u32 n, u32 axis) {
  Val by = factors(b, k, n, axis, lite_rank(b, x));
  return mk_floor(b->g, mk_addk(b->g, mk_mul(b->g, mk_cast(b->g, x, DT_f32), by), 0.5));
}

Val lite_mul_quantized1(LiteNode *b, Val x, double k) {
  return lite_mul_quantized(b, x, &k, 1, 0);
}

/* Bounds of an activation as real numbers; false: it is not a clamp. */
static bool bounds_of(i64 act, double *lo, double *hi) {
  *lo = act == LA_relu_n1_to_1 ? -1 : act == LA_relu || act == LA_relu6 ? 0 : -INFINITY;
  *hi = act == LA_relu_n1_to_1 ? 1 : act == LA_relu6 ? 6 : INFINITY;
  return act == LA_none || act == LA_relu || act == LA_relu6 || act == LA_relu_n1_to_1;
}

static Val clamp_to(LiteNode *b, Val x, double lo, double hi) {
  if (lo > -INFINITY) x = mk_max(b->g, x, mk_like(b->g, x, lo));
  return hi < INFINITY ? mk_min(b->g, x, mk_like(b->g, x, hi)) : x;
}

Val lite_clamp_activation(LiteNode *b, Val x, const LiteTensor *t, i64 act) {
  double lo, hi;
  Scalar least, most;
  if (act != LA_none && !lite_is_quant(t)) return lite_activated(b, x, act);
  if (act == LA_none) return x;
  if (!bounds_of(act, &lo, &hi) || t->q.n != 1)
    lite_unsupported(b, "activation %lld of a quantized result with %u scales is not supported",
                     (long long)act, t->q.n);
  dtype_limits(t->dt, &least, &most);
  lo = (double)t->q.zero[0] + round(lo / (double)t->q.scale[0]);
  hi = (double)t->q.zero[0] + round(hi / (double)t->q.scale[0]);
  return clamp_to(b, x, lo > (double)least.i ? fmin(lo, (double)most.i) : -INFINITY,
                  hi < (double)most.i ? fmax(hi, (double)least.i) : INFINITY);
}

Val lite_stored(LiteNode *b, Val x, const LiteTensor *t, i64 act) {
  check_quant(b, t);
  return mk_cast_sat(b->g, lite_clamp_activation(b, add_zero_point(b, x, t), t, act), t->dt);
}

Val lite_activated(LiteNode *b, Val x, i64 act) {
  double lo, hi;
  if (act == LA_tanh) return mk_tanh(b->g, x);
  if (!bounds_of(act, &lo, &hi))
    lite_unsupported(b, "fused activation %lld is not supported", (long long)act);
  return clamp_to(b, x, lo, hi);
}

void lite_set_stored(LiteNode *b, u32 k, Val x) {
  const LiteTensor *t = lite_result(b, k);
  if (lite_dt(b, x) != t->dt)
    lite_bad(b, "output '%s' is declared as %s but computed as %s", show(b->c, t->name),
             dtype_info[t->dt].name, dtype_info[lite_dt(b, x)].name);
  b->out[k] = x;
}

void lite_set_real(LiteNode *b, u32 k, Val x) {
  const LiteTensor *t = lite_result(b, k);
  if (lite_is_quant(t)) {
    if (!dtype_is_float(lite_dt(b, x)))
      lite_bad(b, "output '%s' is quantized, but computed as %s", show(b->c, t->name),
               dtype_info[lite_dt(b, x)].name);
    double *k = NEWS(&b->c->scratch, double, t->q.n);
    for (u32 i = 0; i < t->q.n; i++) k[i] = LITE_NUDGE / (double)t->q.scale[i];
    Val by = factors(b, k, t->q.n, t->q.axis, lite_rank(b, x));
    x = mk_mul(b->g, mk_cast(b->g, x, DT_f32), by);
    x = lite_stored(b, mk_round(b->g, x), t, LA_none);
  } else if (dtype_is_half(t->dt)) {
    x = mk_cast(b->g, x, t->dt);
  }
  lite_set_stored(b, k, x);
}

void lite_set_activated(LiteNode *b, u32 k, Val x, i64 act) {
  lite_set_real(b, k, lite_activated(b, x, act));
}

void lite_nothing(LiteNode *b) {
  lite_unsupported(b, "operator %s is not supported", show(b->c, b->op->name));
}
