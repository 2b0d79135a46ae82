/* tflite_ops_conv.c: convolutions, matrix products and pools.
 *
 * TensorFlow Lite stores images as [N, H, W, C], the core as [N, C, H, W]. Images are transposed
 * before a window and back after its epilogue (bias, scale, activation); passes remove redundant
 * transposes. Quantized products are summed in i32 like TensorFlow Lite, or in i64 if 16-bit
 * activations could overflow.
 */
#include "front/tflite/tflite_import.h"

#include <math.h>

static const i64 to_core[] = {0, 3, 1, 2}, to_lite[] = {0, 2, 3, 1};

/* Handling of floats that are multiplied by int8 weights: see tflite_dynamic_quant.c. */
typedef enum LiteHybrid { HY_none, HY_symmetric, HY_centred } LiteHybrid;

/* Operands of a sum of products, and its epilogue. */
typedef struct LiteProduct {
  u32 x, w, bias; /* input numbers; bias beyond the last: none */
  u32 axis;       /* output channel axis of the result */
  i64 act;
  LiteHybrid hybrid;
  bool is_window; /* x is an image, to be transposed first */
} LiteProduct;

static Val operand(LiteNode *b, const LiteProduct *p) {
  Val x = lite_in(b, p->x);
  return p->is_window ? mk_transpose(b->g, x, to_core) : x;
}

/* x: [N, C, H, W] if it is an image */
typedef Val SumFn(LiteNode *b, Val x, Val w, const void *how);

/* ---- integers ---- */

/* TensorFlow Lite's factor for 64-bit sums has 15 bits; the same gives equal 16-bit results. */
static double reduced(double k) {
  int e;
  double m = round(ldexp(frexp(k, &e), 31)); /* 2^30 to 2^31 */
  i64 bits = m < 0x7fff0000 ? ((i64)m + (1 << 15)) >> 16 : 0x7fff;
  return ldexp((double)bits, e - 15);
}

/* y times scale of x times scale of w over scale of the result, per channel or in all. */
static Val to_steps(LiteNode *b, const LiteProduct *p, Val y, const LiteTensor *out, bool wide) {
  const LiteTensor *x = lite_operand(b, p->x), *w = lite_operand(b, p->w);
  double *k = NEWS(&b->c->scratch, double, w->q.n);
  for (u32 i = 0; i < w->q.n; i++) {
    k[i] = (double)x->q.scale[0] * (double)w->q.scale[i] / (double)out->q.scale[0];
    if (wide) k[i] = reduced(k[i]);
  }
  if (wide) return lite_mul_quantized_i64(b, y, k, w->q.n, p->axis);
  return lite_mul_quantized(b, y, k, w->q.n, p->axis);
}

/* Does i32 hold every sum of these weights with int16 activations, plus the bias? Output channels
 * are the axis of the scales, or the first. */
static bool fits_i32(LiteNode *b, const LiteProduct *p) {
  const LiteTensor *tw = lite_operand(b, p->w);
  const Tensor *w = graph_const(b->g, lite_in(b, p->w));
  const Tensor *k = lite_has(b, p->bias) ? graph_const(b->g, lite_in(b, p->bias)) : NULL;
  if (!w || !w->rank || (lite_has(b, p->bias) && !k)) return false;
  u32 axis = tw->q.n > 1 ? tw->q.axis : 0;
  if (axis >= w->rank || (tw->q.n > 1 && w->dim[axis] != tw->q.n))
    lite_bad(b, "the weights have %u scales on axis %u, expected one for each point of an axis",
             tw->q.n, axis);
  u64 inner = 1, n = (u64)w->dim[axis];
  for (u32 i = axis + 1; i < w->rank; i++) inner *= (u64)w->dim[i];
  double *sum = NEWS(&b->c->scratch, double, n + 1), most = 0;
  for (u64 i = 0; i < w->n; i++) sum[i / inner % n] += fabs((double)tensor_get(w, i).i);
  for (u64 i = 0; i < n; i++) most = fmax(most, sum[i]);
  double bias = 0;
  for (u64 i = 0; k && i < k->n; i++) bias = fmax(bias, fabs((double)tensor_get(k, i).i));
  return most * 32768 + bias < 0x1p31;
}

/* y + k, k along p->axis. */
static Val biased(LiteNode *b, const LiteProduct *p, Val y, Val k) {
  if (lite_rank(b, k) != 1 || val_dim(b->g, k, 0) != val_dim(b->g, y, p->axis))
    lite_bad(b, "the bias: expected one element for each output channel");
  return mk_add(b->g, y, mk_expand_tail(b->g, k, lite_rank(b, y) - 1 - p->axis));
}

static Val with_bias(LiteNode *b, const LiteProduct *p, Val y, DType dt) {
  return lite_has(b, p->bias) ? biased(b, p, y, mk_cast(b->g, lite_in(b, p->bias), dt)) : y;
}

static void check_scales(LiteNode *b, const LiteProduct *p, const LiteTensor *out) {
  const LiteTensor *x = lite_operand(b, p->x), *w = lite_operand(b, p->w);
  if (x->q.n != 1 || out->q.n != 1)
    lite_unsupported(b, "activations with one scale per channel are not supported");
  for (u32 i = 0; i < w->q.n; i++)
    if (!(w->q.scale[i] > 0) || !(x->q.scale[0] > 0) || !(out->q.scale[0] > 0))
      lite_bad(b, "a scale is 0, expected a positive number");
}

static Val integer_product(LiteNode *b, const LiteProduct *p, SumFn *sum, const void *how) {
  const LiteTensor *x = lite_operand(b, p->x), *w = lite_operand(b, p->w), *out = lite_result(b, 0);
  check_scales(b, p, out);
  bool small = lite_has(b, p->bias) && lite_operand(b, p->bias)->dt == DT_i32;
  DType dt = x->dt == DT_i16 && !small && !fits_i32(b, p) ? DT_i64 : DT_i32;
  Val xc = mk_cast(b->g, lite_sub_zero_point(b, operand(b, p), x), dt);
  Val wc = mk_cast(b->g, lite_sub_zero_point(b, lite_in(b, p->w), w), dt);
  Val acc = with_bias(b, p, sum(b, xc, wc, how), dt);
  bool wide = x->dt == DT_i16 && !small && p->is_window;
  return lite_stored(b, to_steps(b, p, acc, out, wide), out, p->act);
}

/* ---- floats ---- */

static Val float_product(LiteNode *b, const LiteProduct *p, SumFn *sum, const void *how) {
  Val x = lite_real_of(b, operand(b, p), lite_operand(b, p->x)), w = lite_real(b, p->w);
  if (!dtype_is_float(lite_dt(b, x)) || !dtype_is_float(lite_dt(b, w)))
    lite_unsupported(b, "products of %s and %s are not supported", dtype_info[lite_dt(b, x)].name,
                     dtype_info[lite_dt(b, w)].name);
  Val y = sum(b, x, w, how);
  if (lite_has(b, p->bias)) {
    const LiteTensor *t = lite_operand(b, p->bias);
    Val k = mk_cast(b->g, lite_in(b, p->bias), DT_f32);
    if (t->q.n && !dtype_is_float(t->dt)) k = mk_mul(b->g, k, lite_scale(b, t, 0, 1));
    y = biased(b, p, y, k);
  }
  return lite_activated(b, y, p->act);
}

/* ---- int8 weights times floats ---- */

static bool is_hybrid(LiteNode *b, const LiteProduct *p) {
  const LiteTensor *x = lite_operand(b, p->x), *w = lite_operand(b, p->w);
  return p->hybrid != HY_none && x->dt == DT_f32 && (w->dt == DT_i8 || w->dt == DT_i4) &&
         lite_is_quant(w) && !w->q.other && lite_is_symmetric(w) && lite_result(b, 0)->dt == DT_f32;
}

static Val hybrid_product(LiteNode *b, const LiteProduct *p, SumFn *sum, const void *how) {
  Val x = operand(b, p), scale;
  u32 rank = lite_rank(b, x);
  i64 axes[MAX_RANK];
  u32 n = axes_from(b->g, x, p->is_window ? 1 : rank - 1, axes);
  Val q = lite_dynamic(b, x, axes, n, p->hybrid == HY_centred, &scale);
  Val w = lite_sub_zero_point(b, lite_in(b, p->w), lite_operand(b, p->w));
  Val y = mk_cast(b->g, sum(b, q, w, how), DT_f32);
  if (lite_rank(b, y) != rank) /* leading axes were flattened to rows */
    scale = mk_reshape(b->g, scale, (const Dim[]){val_dim(b->g, y, 0), 1}, 2);
  Val by = lite_scale(b, lite_operand(b, p->w), p->axis, lite_rank(b, y));
  y = mk_mul(b->g, y, mk_mul(b->g, scale, by));
  return lite_activated(b, with_bias(b, p, y, DT_f32), p->act);
}

/* as stored, of the type of the result */
static Val product(LiteNode *b, const LiteProduct *p, SumFn *sum, const void *how) {
  const LiteTensor *out = lite_result(b, 0);
  bool ints = lite_is_quant(lite_operand(b, p->x)) && lite_is_quant(lite_operand(b, p->w));
  if (ints && lite_is_quant(out)) return integer_product(b, p, sum, how);
  if (is_hybrid(b, p)) return hybrid_product(b, p, sum, how);
  Val y = float_product(b, p, sum, how);
  return lite_is_quant(out) ? lite_quantized(b, y, out) : mk_cast(b->g, y, out->dt);
}

/* ---- windows ---- */

typedef struct LiteWindow {
  Window w;
  bool same; /* SAME padding, else VALID */
  i64 group;
} LiteWindow;

/* Height before width; the caller sets the sizes. */
static LiteWindow window_of(LiteNode *b, i64 sh, i64 sw, i64 dh, i64 dw) {
  i64 padding = flat_i8(&b->op->opt, 0, 0);
  LiteWindow s = {.w = {.n = 2, .stride = {sh, sw}, .dilation = {dh, dw}}, .same = padding == 0};
  if (padding != 0 && padding != 1)
    lite_unsupported(b, "padding mode %lld is not supported", (long long)padding);
  if (sh < 1 || sw < 1 || dh < 1 || dw < 1)
    lite_bad(b, "strides are %lld, %lld and dilations %lld, %lld, expected positive numbers",
             (long long)sh, (long long)sw, (long long)dh, (long long)dw);
  return s;
}

static i64 known_dim(LiteNode *b, Val v, u32 axis) {
  Dim d = val_dim(b->g, v, axis);
  if (!dim_is_const(d))
    lite_unsupported(b, "the extent of axis %u is symbolic, expected a number", axis);
  return d;
}

static i64 window_dim(LiteNode *b, Val w, u32 axis) {
  i64 n = known_dim(b, w, axis);
  if (n < 1 || n > INT32_MAX)
    lite_bad(b, "a window has extent %lld, expected 1 to 2^31-1", (long long)n);
  return n;
}

static void want_image(LiteNode *b, Val x, Val w) {
  if (lite_rank(b, x) != 4 || (w && lite_rank(b, w) != 4))
    lite_bad(b, "expected operands of rank 4");
}

/* x: [N, C, H, W] */
static void pad_slide(LiteNode *b, LiteWindow *s, Val x) {
  Dim in[2] = {val_dim(b->g, x, 2), val_dim(b->g, x, 3)};
  if (s->same) window_same(b->g, &s->w, in, true);
}

/* w: [O, H, W, I] */
static Val sum_conv(LiteNode *b, Val x, Val w, const void *how) {
  LiteWindow s = *(const LiteWindow *)how;
  pad_slide(b, &s, x);
  return window_conv(b->g, x, mk_transpose(b->g, w, to_core), s.group, s.w);
}

/* Window of operands 0 and 1. field: dilation of the width; that of the height follows. */
static LiteWindow slide_2d(LiteNode *b, u32 field) {
  const FlatTable *o = &b->op->opt;
  LiteWindow s = window_of(b, flat_i32(o, 2, 0), flat_i32(o, 1, 0), flat_i32(o, field + 1, 1),
                           flat_i32(o, field, 1));
  Val x = lite_in(b, 0), w = lite_in(b, 1);
  want_image(b, x, w);
  for (u32 i = 0; i < 2; i++) s.w.size[i] = window_dim(b, w, 1 + i);
  return s;
}

void lite_conv_2d(LiteNode *b) {
  const FlatTable *o = &b->op->opt;
  LiteWindow s = slide_2d(b, 4);
  Val x = lite_in(b, 0), w = lite_in(b, 1);
  i64 in = known_dim(b, x, 3), per = known_dim(b, w, 3);
  if (per < 1 || in % per)
    lite_bad(b, "the operand has %lld channels, but the weights have %lld", (long long)in,
             (long long)per);
  s.group = in / per;
  LiteProduct p = {.x = 0, .w = 1, .bias = 2, .axis = 1, .is_window = true};
  p.act = flat_i8(o, 3, LA_none);
  p.hybrid = lite_operand(b, 1)->q.n > 1 ? HY_centred : HY_symmetric;
  lite_set_stored(b, 0, mk_transpose(b->g, product(b, &p, sum_conv, &s), to_lite));
}

/* w: [1, H, W, O] */
static Val sum_depthwise(LiteNode *b, Val x, Val w, const void *how) {
  static const i64 turn[] = {3, 0, 1, 2};
  LiteWindow s = *(const LiteWindow *)how;
  pad_slide(b, &s, x);
  return window_conv(b->g, x, mk_transpose(b->g, w, turn), s.group, s.w);
}

void lite_depthwise_conv_2d(LiteNode *b) {
  const FlatTable *o = &b->op->opt;
  LiteWindow s = slide_2d(b, 5);
  Val x = lite_in(b, 0), w = lite_in(b, 1);
  s.group = known_dim(b, x, 3);
  if (known_dim(b, w, 0) != 1 || s.group < 1 || known_dim(b, w, 3) % s.group)
    lite_bad(b, "the weights have %lld channels, expected a multiple of %lld",
             (long long)known_dim(b, w, 3), (long long)s.group);
  LiteProduct p = {.x = 0, .w = 1, .bias = 2, .axis = 1, .is_window = true};
  p.act = flat_i8(o, 4, LA_none);
  p.hybrid = HY_centred;
  lite_set_stored(b, 0, mk_transpose(b->g, product(b, &p, sum_depthwise, &s), to_lite));
}

/* x [N, D, H, W, C], w [D, H, W, I, O] */
void lite_conv_3d(LiteNode *b) {
  static const i64 turn[] = {0, 4, 1, 2, 3}, back[] = {0, 2, 3, 4, 1}, turn_w[] = {4, 3, 0, 1, 2};
  const FlatTable *o = &b->op->opt;
  Val x = lite_real(b, 0), w = lite_real(b, 1);
  if (lite_rank(b, x) != 5 || lite_rank(b, w) != 5) lite_bad(b, "expected operands of rank 5");
  if (!dtype_is_float(lite_dt(b, x)))
    lite_unsupported(b, "a 3D convolution of %s is not supported", dtype_info[lite_dt(b, x)].name);
  Window v = {.n = 3};
  Dim in[3];
  for (u32 i = 0; i < 3; i++) { /* fields are depth, width, height */
    u32 axis = i ? 3 - i : 0;
    v.stride[axis] = flat_i32(o, 1 + i, 0);
    v.dilation[axis] = flat_i32(o, 5 + i, 1);
    v.size[axis] = window_dim(b, w, axis);
    in[axis] = val_dim(b->g, x, 1 + axis);
    if (v.stride[axis] < 1 || v.dilation[axis] < 1)
      lite_bad(b, "found stride %lld and dilation %lld, expected at least 1",
               (long long)v.stride[axis], (long long)v.dilation[axis]);
  }
  if (flat_i8(o, 0, 0) == 0) window_same(b->g, &v, in, true);
  w = mk_transpose(b->g, w, turn_w);
  Val y = window_conv(b->g, mk_transpose(b->g, x, turn), w, 1, v);
  if (lite_has(b, 2)) y = compose_bias(b->g, y, lite_real(b, 2));
  lite_set_activated(b, 0, mk_transpose(b->g, y, back), flat_i8(o, 4, LA_none));
}

/* Weights [O, H, W, I] and the result shape. */
typedef struct LiteTransposeConv {
  LiteWindow s;
  i64 out[2];
} LiteTransposeConv;

static Val sum_transpose(LiteNode *b, Val x, Val w, const void *how) {
  static const i64 turn[] = {3, 0, 1, 2};
  const LiteTransposeConv *t = how;
  i64 lo[2], hi[2];
  for (u32 i = 0; i < 2; i++) {
    i64 k = t->s.w.size[i], step = t->s.w.stride[i], out = t->out[i];
    i64 n = t->s.same ? (out + step - 1) / step : (out + step - k) / step;
    i64 total = (n - 1) * step + k - out;
    lo[i] = total > 0 ? total / 2 : 0;
    i64 in = known_dim(b, x, 2 + i);
    if (in > INT32_MAX)
      lite_unsupported(b, "the extent %lld is not supported; expected less than 2^31",
                       (long long)in);
    hi[i] = (in - 1) * step + k - lo[i] - out;
  }
  return window_conv_transpose(b->g, x, mk_transpose(b->g, w, turn), 1, &t->s.w, lo, hi);
}

void lite_transpose_conv(LiteNode *b) {
  const FlatTable *o = &b->op->opt;
  LiteTransposeConv t = {.s = window_of(b, flat_i32(o, 2, 0), flat_i32(o, 1, 0), 1, 1)};
  Val w = lite_in(b, 1), x = lite_in(b, 2);
  i64 shape[4];
  want_image(b, x, w);
  if (lite_ints(b, 0, shape, 4) != 4) lite_bad(b, "expected the four extents of the result");
  for (u32 i = 0; i < 2; i++) {
    t.s.w.size[i] = window_dim(b, w, 1 + i);
    t.out[i] = shape[1 + i];
    if (t.out[i] < 1 || t.out[i] > INT32_MAX)
      lite_bad(b, "the result has extent %lld, expected 1 to 2^31-1", (long long)t.out[i]);
  }
  LiteProduct p = {.x = 2, .w = 1, .bias = 3, .axis = 1, .is_window = true};
  p.act = flat_i8(o, 3, LA_none);
  lite_set_stored(b, 0, mk_transpose(b->g, product(b, &p, sum_transpose, &t), to_lite));
}

/* ---- matrices ---- */

/* x [.., k] as a matrix, w [m, k] */
static Val sum_dense(LiteNode *b, Val x, Val w, const void *how) {
  Type t = *graph_type(b->g, x);
  Dim k = val_dim(b->g, w, 1), rows = t.rank ? dim_product(b->ds, t.dim, t.rank - 1) : 1;
  (void)how;
  if (!t.rank || t.dim[t.rank - 1] != k)
    rows = dim_div(b->ds, dim_product(b->ds, t.dim, t.rank), k);
  x = mk_reshape(b->g, x, (const Dim[]){rows, k}, 2);
  return mk_contract(b->g, x, w, "nk,mk->nm");
}

void lite_fully_connected(LiteNode *b) {
  const FlatTable *o = &b->op->opt;
  Val w = lite_in(b, 1);
  Type t = *graph_type(b->g, lite_in(b, 0));
  if (flat_i8(o, 1, 0)) lite_unsupported(b, "weights in shuffled order are not supported");
  if (lite_rank(b, w) != 2 || known_dim(b, w, 1) < 1) lite_bad(b, "expected weights of rank 2");
  LiteProduct p = {.x = 0, .w = 1, .bias = 2, .axis = 1, .act = flat_i8(o, 0, LA_none)};
  p.hybrid = !t.rank || t.dim[t.rank - 1] != val_dim(b->g, w, 1) ? HY_none
             : flat_u8(o, 3, 0)                                  ? HY_centred
                                                                 : HY_symmetric;
  Val y = product(b, &p, sum_dense, NULL);
  if (flat_u8(o, 2, 0) && t.rank && t.rank != 2) {
    Dim dim[MAX_RANK];
    for (u32 i = 0; i < t.rank; i++) dim[i] = t.dim[i];
    dim[t.rank - 1] = val_dim(b->g, w, 0);
    y = mk_reshape(b->g, y, dim, t.rank);
  }
  lite_set_stored(b, 0, y);
}

static Val transposed(LiteNode *b, Val v, bool turn) {
  u32 rank = lite_rank(b, v);
  if (rank < 2) lite_bad(b, "an operand has rank 0 or 1, expected at least 2");
  return turn ? mk_move_axis(b->g, v, rank - 1, rank - 2) : v;
}

static Val sum_matmul(LiteNode *b, Val x, Val y, const void *how) {
  (void)how;
  y = transposed(b, y, flat_u8(&b->op->opt, 1, 0) != 0);
  return mk_matmul(b->g, transposed(b, x, flat_u8(&b->op->opt, 0, 0) != 0), y);
}

void lite_batch_matmul(LiteNode *b) {
  const LiteTensor *w = lite_operand(b, 1);
  LiteProduct p = {.x = 0, .w = 1, .bias = UINT32_MAX, .act = LA_none};
  u32 rank = lite_rank(b, lite_in(b, 0)), other = lite_rank(b, lite_in(b, 1));
  p.axis = (rank > other ? rank : other) - 1;
  if (rank >= other && !flat_u8(&b->op->opt, 0, 0))
    p.hybrid = flat_u8(&b->op->opt, 2, 0) ? HY_centred : HY_symmetric;
  if (lite_is_quant(w) && w->q.n > 1)
    lite_unsupported(b, "weights with one scale per channel are not supported here");
  lite_set_stored(b, 0, product(b, &p, sum_matmul, NULL));
}

/* ---- pools ---- */

static LiteWindow pool_slide(LiteNode *b) {
  const FlatTable *o = &b->op->opt;
  LiteWindow s = window_of(b, flat_i32(o, 2, 0), flat_i32(o, 1, 0), 1, 1);
  s.w.size[0] = flat_i32(o, 4, 0);
  s.w.size[1] = flat_i32(o, 3, 0);
  if (s.w.size[0] < 1 || s.w.size[1] < 1)
    lite_bad(b, "the window is %lldx%lld, expected positive extents", (long long)s.w.size[0],
             (long long)s.w.size[1]);
  return s;
}

/* Transposes operand i and computes its padding. */
static Val pool_operand(LiteNode *b, Val x, LiteWindow *s) {
  want_image(b, x, 0);
  x = mk_transpose(b->g, x, to_core);
  pad_slide(b, s, x);
  return x;
}

static void give_pooled(LiteNode *b, Val y, i64 act) {
  lite_set_stored(b, 0,
                  mk_transpose(b->g, lite_clamp_activation(b, y, lite_result(b, 0), act), to_lite));
}

void lite_max_pool_2d(LiteNode *b) {
  LiteWindow s = pool_slide(b);
  i64 act = flat_i8(&b->op->opt, 5, LA_none);
  if (lite_same_quant(lite_operand(b, 0), lite_result(b, 0))) {
    Val x = pool_operand(b, lite_in(b, 0), &s);
    Scalar lo, hi;
    dtype_limits(lite_dt(b, x), &lo, &hi);
    double least = dtype_is_float(lite_dt(b, x)) ? lo.f : (double)lo.i;
    give_pooled(b, window_pool(b->g, OP_pool_max, x, s.w, least), act);
    return;
  }
  Val x = pool_operand(b, lite_real(b, 0), &s);
  Val y = lite_activated(b, window_pool(b->g, OP_pool_max, x, s.w, -INFINITY), act);
  lite_set_real(b, 0, mk_transpose(b->g, y, to_lite));
}

/* Integers: stored sum over the number of cells, halves away from zero, like TensorFlow Lite. */
void lite_average_pool_2d(LiteNode *b) {
  LiteWindow s = pool_slide(b);
  const LiteTensor *t = lite_operand(b, 0), *out = lite_result(b, 0);
  i64 act = flat_i8(&b->op->opt, 5, LA_none);
  if (lite_is_quant(t) && lite_same_quant(t, out)) {
    Val x = pool_operand(b, mk_cast(b->g, lite_in(b, 0), DT_f32), &s);
    Val y = lite_rounded(b, window_average(b->g, x, s.w, false));
    give_pooled(b, mk_cast_sat(b->g, y, out->dt), act);
    return;
  }
  Val x = pool_operand(b, lite_real(b, 0), &s);
  Val y = lite_activated(b, window_average(b->g, x, s.w, false), act);
  lite_set_real(b, 0, mk_transpose(b->g, y, to_lite));
}

void lite_l2_pool_2d(LiteNode *b) {
  LiteWindow s = pool_slide(b);
  Val x = pool_operand(b, lite_real(b, 0), &s);
  Val y = mk_sqrt(b->g, window_average(b->g, mk_mul(b->g, x, x), s.w, false));
  y = lite_activated(b, y, flat_i8(&b->op->opt, 5, LA_none));
  lite_set_real(b, 0, mk_transpose(b->g, y, to_lite));
}
