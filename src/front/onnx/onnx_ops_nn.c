/* onnx_ops_nn.c: convolutions, pooling and matrix products.
 *
 * All window operators read their attributes (kernel, strides, dilations, explicit or automatic
 * padding) in one place; front/compose/window.c builds them.
 */
#include "front/onnx/onnx_builder.h"

#include <math.h>

/* ---- attributes ---- */

typedef enum AutoPad { PAD_given, PAD_valid, PAD_upper, PAD_lower } AutoPad;

static AutoPad auto_pad(Build *b) {
  return (AutoPad)on_choice(b, "auto_pad", "NOTSET VALID SAME_UPPER SAME_LOWER");
}

/* Reads all but the kernel extents, which w->size holds; in: spatial extents of the operand. */
static void read_window(Build *b, Window *w, const Dim *in) {
  i64 pads[2 * MAX_RANK] = {0};
  on_int_list(b, "strides", w->stride, w->n, 1, 1);
  on_int_list(b, "dilations", w->dilation, w->n, 1, 1);
  AutoPad kind = auto_pad(b);
  if (kind == PAD_given) on_int_list(b, "pads", pads, 2 * w->n, 0, 0);
  for (u32 i = 0; i < w->n; i++) {
    w->lo[i] = pads[i];
    w->hi[i] = pads[w->n + i];
  }
  if (kind == PAD_upper || kind == PAD_lower) window_same(b->g, w, in, kind == PAD_upper);
  for (u32 i = 0; i < w->n; i++) w->given[i] = w->hi[i];
  if (on_int(b, "ceil_mode", 0)) window_ceil(b->g, w, in);
}

static u32 spatial(Build *b, Val x) {
  u32 rank = on_rank(b, x);
  if (rank < 3) on_bad(b, "the operand has rank %u, expected at least 3", rank);
  return rank - 2;
}

static Window pool_window(Build *b, Val x) {
  Window w = {.n = spatial(b, x)};
  if (!on_has_attr(b, "kernel_shape")) on_bad(b, "attribute kernel_shape is missing");
  on_int_list(b, "kernel_shape", w.size, w.n, 1, 1);
  read_window(b, &w, on_type(b, x)->dim + 2);
  return w;
}

/* ---- convolutions ---- */

static void kernel_extents(Build *b, Window *w, Val weights) {
  i64 given[MAX_RANK];
  if (on_rank(b, weights) != w->n + 2)
    on_bad(b, "weights have rank %u, expected %u", on_rank(b, weights), w->n + 2);
  for (u32 i = 0; i < w->n; i++) {
    w->size[i] = on_static_dim(b, weights, 2 + i);
    if (w->size[i] < 1 || w->size[i] > INT32_MAX)
      on_bad(b, "the kernel has extent %lld, expected 1 to 2^31-1", (long long)w->size[i]);
  }
  if (!on_has_attr(b, "kernel_shape")) return;
  on_int_list(b, "kernel_shape", given, w->n, 1, 1);
  for (u32 i = 0; i < w->n; i++)
    if (given[i] != w->size[i])
      on_bad(b, "kernel_shape is %lld on axis %u, but the weights have %lld", (long long)given[i],
             i, (long long)w->size[i]);
}

Val on_conv(Build *b, Val x, Val weights) {
  Window w = {.n = spatial(b, x)};
  kernel_extents(b, &w, weights);
  read_window(b, &w, on_type(b, x)->dim + 2);
  return window_conv(b->g, x, weights, on_int(b, "group", 1), w);
}

/* Cells to crop (negative: to add) at both ends of the full result along axis i. */
static void transpose_crop(Build *b, const Window *w, u32 i, Dim in, i64 more, const i64 *shape,
                           AutoPad kind, i64 *lo, i64 *hi) {
  i64 total;
  if (shape) {
    if (!dim_is_const(in)) on_unsupported(b, "output_shape is given for a symbolic extent");
    total = (in - 1) * w->stride[i] + window_span(w, i) + more - shape[i];
  } else {
    total = window_span(w, i) + more - w->stride[i];
  }
  i64 half = total > 0 ? total / 2 : 0;
  *lo = kind == PAD_upper || total <= 0 ? half : total - half;
  *hi = total - *lo - more;
}

static bool output_shape(Build *b, i64 *shape, u32 n) {
  i64 all[MAX_RANK];
  i32 found = on_ints(b, "output_shape", all, MAX_RANK);
  if (found <= 0) return false;
  if ((u32)found != n && (u32)found != n + 2) /* some exporters write the whole shape */
    on_bad(b, "output_shape has %d elements, expected %u", found, n);
  for (u32 i = 0; i < n; i++) {
    shape[i] = all[(u32)found - n + i];
    if (shape[i] < 1 || shape[i] > INT32_MAX)
      on_bad(b, "output_shape: element %u is %lld, expected 1 to 2^31-1", i, (long long)shape[i]);
  }
  return true;
}

static Val conv_transpose(Build *b, Val x, Val weights) {
  Window w = {.n = spatial(b, x)};
  i64 more[MAX_RANK], shape[MAX_RANK], pads[2 * MAX_RANK] = {0}, lo[MAX_RANK], hi[MAX_RANK];
  kernel_extents(b, &w, weights);
  on_int_list(b, "strides", w.stride, w.n, 1, 1);
  on_int_list(b, "dilations", w.dilation, w.n, 1, 1);
  on_int_list(b, "output_padding", more, w.n, 0, 0);
  AutoPad kind = auto_pad(b);
  bool shaped = output_shape(b, shape, w.n), by_rule = shaped || kind >= PAD_upper;
  if (!by_rule && kind == PAD_given) on_int_list(b, "pads", pads, 2 * w.n, 0, 0);
  for (u32 i = 0; i < w.n; i++) {
    lo[i] = pads[i];
    hi[i] = pads[w.n + i] - more[i];
    if (by_rule)
      transpose_crop(b, &w, i, on_dim(b, x, 2 + i), more[i], shaped ? shape : NULL, kind, &lo[i],
                     &hi[i]);
  }
  return window_conv_transpose(b->g, x, weights, on_int(b, "group", 1), &w, lo, hi);
}

/* Argument 1: ConvTranspose. Rounds once, after adding the bias. */
void build_conv(Build *b) {
  Val (*conv)(Build *, Val, Val) = b->arg ? conv_transpose : on_conv;
  if (!on_has(b, 2)) {
    b->out[0] = conv(b, on_in(b, 0), on_in(b, 1));
    return;
  }
  Val w = on_wide(b, 1), y = conv(b, on_wide(b, 0), w);
  on_set_output(b, compose_bias(b->g, y, on_wide(b, 2)));
}

/* A depthwise convolution over time. The state holds the inputs that the next call needs. */
void build_causalconv(Build *b) {
  Val x = on_in(b, 0), w = on_in(b, 1), past;
  DType dt = on_dtype(b, x);
  if (on_rank(b, x) != 3 || on_rank(b, w) != 3)
    on_bad(b, "the input has rank %u and the weight %u, expected 3", on_rank(b, x), on_rank(b, w));
  i64 channels = on_static_dim(b, w, 0), k = on_static_dim(b, w, 2);
  if (k < 1) on_bad(b, "the kernel has extent %lld, expected 1 or more", (long long)k);
  Dim shape[3] = {on_dim(b, x, 0), on_dim(b, x, 1), k - 1};
  past = on_has(b, 3) ? b->in[3] : mk_full(b->g, mk_like(b->g, x, 0), shape, 3);
  Val both[2] = {past, x};
  Val all = mk_concat(b->g, both, 2, 2);
  static const i64 one[1] = {1}, none[1] = {0};
  Val weights = mk_widen(b->g, w);
  Val y = mk_conv(b->g, mk_widen(b->g, all), weights, channels, one, one, none, none);
  if (on_has(b, 2)) y = compose_bias(b->g, y, mk_widen(b->g, b->in[2]));
  if (on_choice(b, "activation", "none silu swish")) {
    y = mk_widen(b->g, mk_cast(b->g, y, dt)); /* the standard rounds here */
    y = mk_mul(b->g, y, compose_sigmoid(b->g, y));
  }
  b->out[0] = mk_cast(b->g, y, dt);
  if (on_wants(b, 1)) b->out[1] = mk_slice_axis(b->g, all, 2, on_dim(b, x, 2), k - 1);
}

/* ---- pooling ---- */

/* arg: row-major positions in the (padded) plane. The standard counts over all of x, within a plane
 * in row-major or column-major order. */
static Val pool_indices(Build *b, Val arg, Val x, const Window *w, bool padded, bool columns) {
  Type t = *on_type(b, x);
  Val at[MAX_RANK], acc = 0;
  if (padded || columns) {
    for (u32 i = w->n; i-- > 0;) {
      Dim d = t.dim[2 + i];
      if (padded) d = dim_add(b->ds, d, dim_add(b->ds, w->lo[i], w->hi[i]));
      at[i] = mk_mod(b->g, arg, mk_extent(b->g, d, DT_i64));
      if (padded) at[i] = mk_sub(b->g, at[i], mk_extent(b->g, w->lo[i], DT_i64));
      arg = mk_div(b->g, arg, mk_extent(b->g, d, DT_i64));
    }
    for (u32 i = 0; i < w->n; i++) {
      u32 k = columns ? w->n - 1 - i : i;
      acc = acc ? mk_add(b->g, mk_mul(b->g, acc, mk_extent(b->g, t.dim[2 + k], DT_i64)), at[k])
                : at[k];
    }
  } else {
    acc = arg;
  }
  Dim planes = dim_mul(b->ds, t.dim[0], t.dim[1]), dim[MAX_RANK] = {t.dim[0], t.dim[1]};
  for (u32 i = 0; i < w->n; i++) dim[2 + i] = 1;
  Val size = mk_extent(b->g, dim_product(b->ds, t.dim + 2, w->n), DT_i64);
  Val first = mk_mul(b->g, mk_iota(b->g, DT_i64, &planes, 1, 0), size);
  return mk_add(b->g, acc, mk_reshape(b->g, first, dim, t.rank));
}

void build_maxpool(Build *b) {
  Val x = on_in(b, 0);
  Window w = pool_window(b, x);
  b->out[0] = window_pool(b->g, OP_pool_max, x, w, -INFINITY);
  if (!on_wants(b, 1)) return;
  Val arg = window_pool(b->g, OP_pool_argmax, x, w, -INFINITY);
  b->out[1] = pool_indices(b, arg, x, &w, !window_is_fixed(&w), on_int(b, "storage_order", 0) != 0);
}

Val on_average_pool(Build *b, Val x) {
  return window_average(b->g, x, pool_window(b, x), on_int(b, "count_include_pad", 0) != 0);
}

void build_averagepool(Build *b) {
  on_set_output(b, on_average_pool(b, on_wide(b, 0)));
}

/* p is a float in opset 1. */
static double norm_order(Build *b) {
  const OnnxAttr *a = on_attr(b, "p");
  double p = a && a->type == OA_float ? on_float(b, "p", 2) : (double)on_int(b, "p", 2);
  if (!(p > 0)) on_bad(b, "p is %g, expected a positive number", (double)p);
  return p;
}

static Val to_power(Build *b, Val x, double p) {
  x = mk_abs(b->g, x);
  if (p == 1) return x;
  return p == 2 ? mk_mul(b->g, x, x) : mk_pow(b->g, x, mk_like(b->g, x, p));
}

static Val to_root(Build *b, Val x, double p) {
  if (p == 1) return x;
  return p == 2 ? mk_sqrt(b->g, x) : mk_pow(b->g, x, mk_like(b->g, x, 1 / p));
}

void build_lppool(Build *b) {
  Val x = on_wide(b, 0);
  double p = norm_order(b);
  Window w = pool_window(b, x);
  Val sum = window_pool(b->g, OP_pool_sum, to_power(b, x, p), w, 0);
  on_set_output(b, to_root(b, sum, p));
}

static u32 spatial_axes(Build *b, Val x, i64 *axes) {
  spatial(b, x); /* refuses operands without spatial axes */
  return axes_from(b->g, x, 2, axes);
}

Val on_global_average(Build *b, Val x) {
  i64 axes[MAX_RANK];
  u32 n = spatial_axes(b, x, axes);
  return mk_mean(b->g, x, axes, n, true);
}

void build_globalaveragepool(Build *b) {
  on_set_output(b, on_global_average(b, on_wide(b, 0)));
}

void build_globalmaxpool(Build *b) {
  i64 axes[MAX_RANK];
  Val x = on_in(b, 0);
  u32 n = spatial_axes(b, x, axes);
  b->out[0] = mk_reduce(b->g, OP_reduce_max, x, axes, n, true);
}

void build_globallppool(Build *b) {
  i64 axes[MAX_RANK];
  Val x = on_wide(b, 0);
  u32 n = spatial_axes(b, x, axes);
  double p = norm_order(b);
  Val sum = mk_reduce(b->g, OP_reduce_sum, to_power(b, x, p), axes, n, true);
  on_set_output(b, to_root(b, sum, p));
}

/* Scatters elements to the positions in indices (over the whole unpooled tensor). A larger
 * output_shape is zero-padded. */
void build_maxunpool(Build *b) {
  Val x = on_in(b, 0), idx = on_in(b, 1);
  Window w = {.n = spatial(b, x)};
  i64 pads[2 * MAX_RANK], want[MAX_RANK];
  Dim dim[MAX_RANK] = {on_dim(b, x, 0), on_dim(b, x, 1)}, none[MAX_RANK] = {0}, hi[MAX_RANK];
  if (!on_has_attr(b, "kernel_shape")) on_bad(b, "attribute kernel_shape is missing");
  on_int_list(b, "kernel_shape", w.size, w.n, 1, 1);
  on_int_list(b, "strides", w.stride, w.n, 1, 1);
  on_int_list(b, "pads", pads, 2 * w.n, 0, 0);
  for (u32 i = 0; i < w.n; i++) {
    i64 k = w.size[i] - w.stride[i] - pads[i] - pads[w.n + i];
    Dim d = on_dim(b, x, 2 + i);
    if (dim_is_const(d) && d * w.stride[i] + k < 1) on_bad(b, "no elements are left on axis %u", i);
    dim[2 + i] = dim_addk(b->ds, dim_mul(b->ds, d, w.stride[i]), k);
  }
  Dim count = type_count(b->ds, on_type(b, x)), all = dim_product(b->ds, dim, w.n + 2);
  Val zero = mk_like(b->g, x, 0);
  Val values = mk_reshape(b->g, x, &count, 1);
  Val at = on_index(b, mk_reshape(b->g, idx, &count, 1), all);
  Val y = mk_scatter_elems(b->g, mk_full(b->g, zero, &all, 1), at, values, 0, "none");
  y = mk_reshape(b->g, y, dim, w.n + 2);
  if (on_has(b, 2)) {
    u32 n = on_known_ints(b, 2, want, MAX_RANK);
    if (n != w.n + 2) on_bad(b, "output_shape has %u elements, expected %u", n, w.n + 2);
    for (u32 i = 0; i < n; i++) {
      if (dim_is_const(dim[i]) && want[i] < dim[i])
        on_bad(b, "output_shape is %lld on axis %u, expected at least %lld", (long long)want[i], i,
               (long long)dim[i]);
      hi[i] = dim_sub(b->ds, want[i], dim[i]);
    }
    y = mk_pad(b->g, y, zero, none, hi, NULL);
  }
  b->out[0] = y;
}

/* Sums overlapping patches in the padded image, which is then cropped. */
void build_col2im(Build *b) {
  Val x = on_in(b, 0);
  i64 image[MAX_RANK], pads[2 * MAX_RANK];
  Window w = {.n = on_known_ints(b, 1, image, (MAX_RANK - 2) / 2)};
  if (on_rank(b, x) != 3) on_bad(b, "the operand has rank %u, expected 3", on_rank(b, x));
  if (on_known_ints(b, 2, w.size, (MAX_RANK - 2) / 2) != w.n)
    on_bad(b, "image_shape and block_shape differ in length, expected one element per image axis "
              "in both");
  on_int_list(b, "strides", w.stride, w.n, 1, 1);
  on_int_list(b, "dilations", w.dilation, w.n, 1, 1);
  on_int_list(b, "pads", pads, 2 * w.n, 0, 0);
  Dim grid[MAX_RANK], wide[MAX_RANK], start[MAX_RANK] = {0}, dim[MAX_RANK];
  for (u32 i = 0; i < w.n; i++) {
    if (image[i] < 1 || image[i] > INT32_MAX || w.size[i] < 1 || w.size[i] > INT32_MAX)
      on_bad(b, "image_shape or block_shape: axis %u has an extent outside of 1 to 2^31-1", i);
    wide[i] = image[i] + pads[i] + pads[w.n + i];
    if (wide[i] < window_span(&w, i))
      on_bad(b, "the block is longer than the padded image on axis %u", i);
    grid[i] = w.size[i];
    grid[w.n + i] = (wide[i] - window_span(&w, i)) / w.stride[i] + 1;
  }
  Dim block = dim_product(b->ds, grid, w.n), cells = dim_product(b->ds, grid, 2 * w.n);
  Val at = mk_scalar(b->g, DT_i64, 0);
  for (u32 i = 0; i < w.n; i++) {
    Val k = mk_mulk(b->g, mk_iota(b->g, DT_i64, grid, 2 * w.n, i), (double)w.dilation[i]);
    Val p = mk_mulk(b->g, mk_iota(b->g, DT_i64, grid, 2 * w.n, w.n + i), (double)w.stride[i]);
    Val place = mk_add(b->g, k, p);
    at = mk_add(b->g, mk_mulk(b->g, at, (double)wide[i]), place);
  }
  dim[0] = on_dim(b, x, 0);
  dim[1] = dim_div(b->ds, on_dim(b, x, 1), block);
  dim[2] = cells;
  at = mk_broadcast(b->g, mk_reshape(b->g, at, &cells, 1), dim, 3);
  Val patches = mk_reshape(b->g, mk_widen(b->g, x), dim, 3);
  dim[2] = dim_product(b->ds, wide, w.n);
  Val y = mk_full(b->g, mk_like(b->g, patches, 0), dim, 3);
  y = mk_cast(b->g, mk_scatter_elems(b->g, y, at, patches, 2, "add"), on_dtype(b, x));
  for (u32 i = 0; i < w.n; i++) dim[2 + i] = wide[i];
  y = mk_reshape(b->g, y, dim, w.n + 2);
  for (u32 i = 0; i < w.n; i++) {
    start[2 + i] = pads[i];
    dim[2 + i] = image[i];
  }
  b->out[0] = mk_slice(b->g, y, start, dim, NULL);
}

/* ---- matrix products ---- */

void build_matmul(Build *b) {
  b->out[0] = mk_matmul(b->g, on_in(b, 0), on_in(b, 1));
}

Val on_channels(Build *b, Val x, bool to_front) {
  u32 rank = on_rank(b, x);
  if (rank < 3) on_bad(b, "the operand has rank %u, expected at least 3", rank);
  return mk_move_axis(b->g, x, to_front ? rank - 1 : 1, to_front ? 1 : rank - 1);
}

Val on_gemm(Build *b, Val x, Val y) {
  if (on_rank(b, x) != 2 || on_rank(b, y) != 2)
    on_bad(b, "operands have ranks %u and %u, expected 2", on_rank(b, x), on_rank(b, y));
  bool tx = on_int(b, "transA", 0) != 0, ty = on_int(b, "transB", 0) != 0;
  static const char *const spec[2][2] = {{"mk,kn->mn", "mk,nk->mn"}, {"km,kn->mn", "km,nk->mn"}};
  return mk_contract(b->g, x, y, spec[tx][ty]);
}

/* alpha * x * y + beta * z; integers with factors other than 1 are computed in f64. */
void build_gemm(Build *b) {
  Val x = on_wide(b, 0), y = on_wide(b, 1);
  DType dt = on_dtype(b, b->in[0]);
  double alpha = on_float(b, "alpha", 1), beta = on_float(b, "beta", 1);
  Val r = on_gemm(b, x, y);
  bool exact = dtype_is_int(dt) && (alpha != 1 || beta != 1);
  if (exact) r = mk_cast(b->g, r, DT_f64);
  if (alpha != 1) r = mk_mulk(b->g, r, alpha);
  if (on_has(b, 2) && beta != 0) {
    Val z = mk_widen(b->g, b->in[2]);
    Type want = *on_type(b, r), have = *on_type(b, z);
    for (u32 i = 0; i < have.rank; i++) {
      Dim d = i < 2 ? want.dim[1 - i] : 1, e = have.dim[have.rank - 1 - i];
      if (e != 1 && dim_is_const(d) && dim_is_const(e) && d != e)
        on_bad(b, "C has extent %lld, expected 1 or %lld, that of the product", (long long)e,
               (long long)d);
    }
    if (have.rank > 2) on_bad(b, "C has rank %u, expected at most 2", have.rank);
    if (exact) z = mk_cast(b->g, z, DT_f64);
    if (beta != 1) z = mk_mulk(b->g, z, beta);
    r = mk_add(b->g, r, z);
  }
  b->out[0] = mk_cast(b->g, r, dt);
}
