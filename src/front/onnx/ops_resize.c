/* ops_resize.c: Resize and Upsample.
 *
 * Every mode is separable: along each resized axis an output element is a weighted sum of a few
 * input elements whose places and weights depend on its position alone. They are computed here, in
 * double, and become constant index vectors and weights: one gather per tap, or one contraction
 * with a matrix where the taps are many (antialias). Where a size is only known at run time, the
 * same formulas are nodes of the graph.
 */
#include "front/onnx/own.h"

#include <math.h>
#include <string.h>

typedef enum Mode { RS_nearest, RS_linear, RS_cubic } Mode;

typedef struct Resize {
  Build *b;
  Mode mode;
  const char *coord, *nearest;
  double cubic_a, extrapolate;
  bool exclude, antialias;
  bool single; /* scales are given, in f32 */
} Resize;

typedef struct Axis {
  i64 in, out; /* -1: symbolic */
  Dim to;      /* late: the extent wanted */
  bool late;   /* the run computes places and weights */
  double scale, roi0, roi1;
  u32 ntap;
  i64 *at;    /* [out, ntap] clamped places */
  double *w;  /* [out, ntap] */
  bool *gone; /* [out] outside of the region of interest */
} Axis;

/* Which element is the nearest is told in the precision of the scales: place 8 of a row stretched
 * by 1.6 comes from place 5, although 1.6 as f32 is a little more. Weights need not care. */
static double rounded(const Resize *r, double v) {
  return r->single && r->mode == RS_nearest ? (double)(float)v : v;
}

static double source(const Resize *r, const Axis *x, double o) {
  double n = (double)x->in, len = rounded(r, x->scale * n);
  double middle = rounded(r, (o + 0.5) / x->scale);
  const char *c = r->coord;
  if (!strcmp(c, "half_pixel")) return rounded(r, middle - 0.5);
  if (!strcmp(c, "asymmetric")) return rounded(r, o / x->scale);
  if (!strcmp(c, "align_corners")) return len == 1 ? 0 : rounded(r, o * (n - 1) / (len - 1));
  if (!strcmp(c, "pytorch_half_pixel"))
    return (float)len == 1 ? -0.5 : rounded(r, middle - 0.5); /* 5 times 0.2 is 1 */
  if (!strcmp(c, "tf_half_pixel_for_nn")) return middle;
  if (!strcmp(c, "half_pixel_symmetric")) {
    double adjust = (double)x->out / (x->scale * n);
    return n / 2 * (1 - adjust) + (o + 0.5) / x->scale - 0.5;
  }
  if (!strcmp(c, "tf_crop_and_resize")) {
    double span = (x->roi1 - x->roi0) * (n - 1);
    double all = x->scale * n;
    return x->roi0 * (n - 1) + (all == 1 ? span / 2 : o * span / (all - 1));
  }
  on_bad(r->b, "coordinate_transformation_mode '%s' is not known", c);
}

static i64 nearest_place(const Resize *r, double x) {
  if (!strcmp(r->nearest, "floor")) return (i64)floor(x);
  if (!strcmp(r->nearest, "ceil")) return (i64)ceil(x);
  bool half = x - floor(x) == 0.5;
  if (!strcmp(r->nearest, "round_prefer_floor")) return (i64)(half ? floor(x) : floor(x + 0.5));
  if (!strcmp(r->nearest, "round_prefer_ceil")) return (i64)(half ? ceil(x) : floor(x + 0.5));
  on_bad(r->b, "nearest_mode '%s' is not known", r->nearest);
}

static double kernel(const Resize *r, double d) {
  d = fabs(d);
  if (r->mode == RS_linear) return d < 1 ? 1 - d : 0;
  double a = r->cubic_a;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* Taps of output o: 2 or 4 neighbours, more when an antialiased kernel is stretched. */
static void fill_taps(const Resize *r, Axis *x, i64 o, double squeeze) {
  double s = source(r, x, (double)o);
  i64 *at = x->at + o * x->ntap;
  double *w = x->w + o * x->ntap, sum = 0;
  x->gone[o] = !strcmp(r->coord, "tf_crop_and_resize") && (s < 0 || s > (double)(x->in - 1));
  if (r->mode == RS_nearest) {
    at[0] = nearest_place(r, s);
    w[0] = 1;
  } else {
    i64 first = (i64)floor(s) - (x->ntap / 2 - 1);
    for (u32 k = 0; k < x->ntap; k++) {
      at[k] = first + k;
      bool outside = at[k] < 0 || at[k] >= x->in;
      w[k] = outside && r->exclude ? 0 : kernel(r, ((double)at[k] - s) * squeeze);
      sum += w[k];
    }
    if ((r->exclude || squeeze < 1) && sum != 0)
      for (u32 k = 0; k < x->ntap; k++) w[k] /= sum;
  }
  for (u32 k = 0; k < x->ntap; k++) at[k] = at[k] < 0 ? 0 : at[k] >= x->in ? x->in - 1 : at[k];
}

static void plan_axis(const Resize *r, Axis *x) {
  Build *b = r->b;
  double squeeze = r->antialias && x->scale < 1 ? x->scale : 1;
  double reach = r->mode == RS_linear ? 1 : 2;
  x->ntap = r->mode == RS_nearest ? 1 : 2 * (u32)ceil(reach / squeeze);
  u64 n;
  if (!size_mul((u64)x->out, x->ntap, &n) || n > (1u << 28))
    on_bad(b, "resized extent %lld", (long long)x->out);
  x->at = NEWS(&b->c->work, i64, n);
  x->w = NEWS(&b->c->work, double, n);
  x->gone = NEWS(&b->c->work, bool, (u64)x->out);
  for (i64 o = 0; o < x->out; o++) fill_taps(r, x, o, squeeze);
}

/* A constant of extent `out` along `axis`, 1 elsewhere (behind it), so that it broadcasts. */
static Tensor *along(Build *b, DType dt, i64 out, u32 axis, u32 rank) {
  i64 dim[MAX_RANK];
  for (u32 i = 0; i < rank - axis; i++) dim[i] = i ? 1 : out;
  return tensor_new(&b->c->work, dt, dim, rank - axis);
}

static Val gather_taps(Build *b, Val v, const Axis *x, u32 axis) {
  Graph *g = b->g;
  u32 rank = on_rank(b, v);
  Val sum = 0;
  for (u32 k = 0; k < x->ntap; k++) {
    Tensor *at = tensor_new(&b->c->work, DT_i64, &x->out, 1);
    Tensor *w = along(b, on_dtype(b, v), x->out, axis, rank);
    bool plain = true;
    for (i64 o = 0; o < x->out; o++) {
      double weight = x->w[o * x->ntap + k];
      tensor_set(at, (u64)o, (Scalar){.i = x->at[o * x->ntap + k]});
      if (x->ntap > 1) tensor_set(w, (u64)o, (Scalar){.f = scalar_round(w->dt, weight)});
      plain = plain && weight == 1;
    }
    Val y = mk_gather(g, v, mk_const(g, at), axis);
    if (!plain) y = on_mul(b, y, mk_const(g, w));
    sum = k ? on_add(b, sum, y) : y;
  }
  return sum;
}

static Val matrix_taps(Build *b, Val v, const Axis *x, u32 axis) {
  Graph *g = b->g;
  u32 rank = on_rank(b, v);
  i64 dim[2] = {x->out, x->in};
  u64 n;
  if (!size_mul((u64)x->out, (u64)x->in, &n) || n > (1u << 28))
    on_bad(b, "resized extent %lld", (long long)x->out);
  Tensor *m = tensor_new(&b->c->work, on_dtype(b, v), dim, 2);
  for (i64 o = 0; o < x->out; o++)
    for (u32 k = 0; k < x->ntap; k++) {
      u64 i = (u64)(o * x->in + x->at[o * x->ntap + k]);
      double w = tensor_get(m, i).f + x->w[o * x->ntap + k];
      tensor_set(m, i, (Scalar){.f = scalar_round(m->dt, w)});
    }
  char spec[3 * MAX_RANK + 8];
  u32 p = 0;
  for (u32 i = 0; i < rank; i++) spec[p++] = (char)('a' + i);
  spec[p++] = ',';
  spec[p++] = 'Z';
  spec[p++] = (char)('a' + axis);
  spec[p++] = '-';
  spec[p++] = '>';
  for (u32 i = 0; i < rank; i++) spec[p++] = i == axis ? 'Z' : (char)('a' + i);
  spec[p] = 0;
  return mk_contract(g, v, mk_const(g, m), spec);
}

static Val resize_axis(const Resize *r, Val v, Axis *x, u32 axis) {
  Build *b = r->b;
  Graph *g = b->g;
  plan_axis(r, x);
  v = x->ntap > 4 ? matrix_taps(b, v, x, axis) : gather_taps(b, v, x, axis);
  bool any = false;
  Tensor *gone = along(b, DT_bool, x->out, axis, on_rank(b, v));
  for (i64 o = 0; o < x->out; o++) {
    tensor_set(gone, (u64)o, (Scalar){.i = x->gone[o]});
    any = any || x->gone[o];
  }
  return any ? mk_select(g, mk_const(g, gone), mk_like(g, v, r->extrapolate), v) : v;
}

/* An extent that is not known yet, n times as large: for whole n, these modes repeat every element
 * n times. */
static Val repeat_axis(const Resize *r, Val v, const Axis *x, u32 axis) {
  Build *b = r->b;
  Graph *g = b->g;
  bool floors = !strcmp(r->coord, "asymmetric") && !strcmp(r->nearest, "floor");
  bool rounds = !strcmp(r->coord, "half_pixel") && !strncmp(r->nearest, "round", 5);
  i64 times = (i64)x->scale;
  if (r->mode != RS_nearest || (double)times != x->scale || (!floors && !rounds))
    on_unsupported(b, "resizing a symbolic dimension, but to a multiple, to the nearest");
  Dim n = dim_mul(b->ds, on_dim(b, v, axis), times);
  Val at = mk_map2(g, OP_div, mk_iota(g, DT_i64, &n, 1, 0), mk_ints(g, &times, 1));
  return mk_gather(g, v, at, axis);
}

/* ---- sizes of the run: places and weights as f64[out] ---- */

/* Where output o looks, as `source` says. */
static Val late_source(const Resize *r, Val o, Val n, Val len) {
  Build *b = r->b;
  Graph *g = b->g;
  const char *c = r->coord;
  Val scale = on_div(b, len, n), one = mk_scalar(g, DT_f64, 1);
  Val single = mk_map2(g, OP_eq, len, one),
      half = on_addk(b, on_div(b, on_addk(b, o, 0.5), scale), -0.5);
  if (!strcmp(c, "half_pixel")) return half;
  if (!strcmp(c, "asymmetric")) return on_div(b, o, scale);
  if (!strcmp(c, "pytorch_half_pixel"))
    return mk_select(g, single, mk_scalar(g, DT_f64, -0.5), half);
  if (!strcmp(c, "align_corners")) {
    Val last = mk_map2(g, OP_max, on_addk(b, len, -1), one); /* of one, o is 0 */
    return on_div(b, on_mul(b, o, on_addk(b, n, -1)), last);
  }
  on_unsupported(b, "coordinate_transformation_mode '%s' to a size only known at run time", c);
}

static Val late_nearest(const Resize *r, Val s) {
  Build *b = r->b;
  Graph *g = b->g;
  if (!strcmp(r->nearest, "floor")) return mk_map1(g, OP_floor, s);
  if (!strcmp(r->nearest, "ceil")) return mk_map1(g, OP_ceil, s);
  if (!strcmp(r->nearest, "round_prefer_floor")) return mk_map1(g, OP_ceil, on_addk(b, s, -0.5));
  return mk_map1(g, OP_floor, on_addk(b, s, 0.5));
}

static Val late_kernel(const Resize *r, Val d) {
  Build *b = r->b;
  Graph *g = b->g;
  double a = r->cubic_a;
  d = mk_map1(g, OP_abs, d);
  if (r->mode == RS_linear)
    return mk_map2(g, OP_max, on_sub(b, mk_like(g, d, 1), d), mk_like(g, d, 0));
  Val near = on_addk(b, on_mulk(b, d, a + 2), -(a + 3));
  near = on_addk(b, on_mul(b, on_mul(b, near, d), d), 1);
  Val far = on_addk(b, on_mul(b, on_addk(b, on_mulk(b, d, a), -5 * a), d), 8 * a);
  far = on_addk(b, on_mul(b, far, d), -4 * a);
  return mk_select(g, mk_map2(g, OP_le, d, mk_like(g, d, 1)), near, far);
}

static Val late_axis(const Resize *r, Val v, const Axis *x, u32 axis) {
  Build *b = r->b;
  Graph *g = b->g;
  u32 rank = on_rank(b, v), ntap = r->mode == RS_nearest ? 1 : r->mode == RS_linear ? 2 : 4;
  Dim in = on_dim(b, v, axis), shape[MAX_RANK];
  if (r->exclude || r->antialias) on_unsupported(b, "exclude_outside or antialias to such a size");
  Val n = on_extent(b, in, DT_f64), len = on_extent(b, x->to, DT_f64), sum = 0;
  Val o = mk_cast(g, mk_iota(g, DT_i64, &x->to, 1, 0), DT_f64), s = late_source(r, o, n, len);
  Val first = r->mode == RS_nearest ? late_nearest(r, s) : mk_map1(g, OP_floor, s);
  Val last = mk_map2(g, OP_sub, on_extent(b, in, DT_i64), mk_scalar(g, DT_i64, 1));
  for (u32 i = axis; i < rank; i++) shape[i - axis] = i == axis ? x->to : 1;
  for (u32 k = 0; k < ntap; k++) {
    Val place = on_addk(b, first, ntap == 4 ? (double)k - 1 : (double)k);
    Val at = mk_map2(g, OP_max, mk_cast(g, place, DT_i64), mk_scalar(g, DT_i64, 0));
    Val y = mk_gather(g, v, mk_map2(g, OP_min, at, last), axis);
    if (ntap == 1) return y;
    Val w = mk_cast(g, late_kernel(r, on_sub(b, place, s)), on_dtype(b, v));
    y = on_mul(b, y, mk_reshape(g, w, shape, rank - axis));
    sum = k ? on_add(b, sum, y) : y;
  }
  return sum;
}

/* ---- parameters ---- */

static u32 read_floats(Build *b, u32 i, double *out, u32 max) {
  const Tensor *t = on_known(b, i);
  if (t->n > max || !dtype_is_float(t->dt))
    on_bad(b, "input %u must hold at most %u floats", i, max);
  for (u32 k = 0; k < t->n; k++) out[k] = tensor_get(t, k).f;
  return (u32)t->n;
}

static bool given(Build *b, u32 i) {
  if (!on_has(b, i)) return false;
  const Type *t = on_type(b, b->in[i]);
  return !(t->rank == 1 && t->dim[0] == 0);
}

static void sizes_from_scales(Build *b, Axis *x, u32 n, const double *scale) {
  for (u32 i = 0; i < n; i++) {
    if (!(scale[i] > 0)) on_bad(b, "scale %g must be positive", scale[i]);
    x[i].scale = scale[i];
    x[i].out = -1;
    if (x[i].in < 0) continue;
    /* In f32, as scales are: 5 times 1.8 is 9, though 1.8 as f32 is a little less. */
    double out = floor((double)((float)x[i].in * (float)scale[i]));
    if (!(out < (double)INT32_MAX)) on_bad(b, "resized extent is too large");
    x[i].out = (i64)out;
  }
}

static void scales_from_sizes(Build *b, Axis *x, u32 n, const i64 *size) {
  bool larger = on_str_is(b, "keep_aspect_ratio_policy", "stretch", "not_smaller");
  bool smaller = on_str_is(b, "keep_aspect_ratio_policy", "stretch", "not_larger");
  double pick = 0;
  for (u32 i = 0; i < n; i++) {
    if (x[i].in < 0) on_unsupported(b, "a known size for a symbolic dimension");
    if (size[i] < 0 || size[i] > INT32_MAX || (x[i].in == 0 && size[i]))
      on_bad(b, "size %lld", (long long)size[i]);
    x[i].out = size[i];
    x[i].scale = x[i].in ? (double)size[i] / (double)x[i].in : 1;
    if (!i || (larger ? x[i].scale > pick : x[i].scale < pick)) pick = x[i].scale;
  }
  for (u32 i = 0; (larger || smaller) && i < n; i++) {
    x[i].scale = pick;
    x[i].out = (i64)floor(pick * (double)x[i].in + 0.5);
  }
}

static void read_mode(Resize *r) {
  Build *b = r->b;
  const char *m = str_text(b->c, on_str(b, "mode", "nearest"));
  if (!strcmp(m, "nearest"))
    r->mode = RS_nearest;
  else if (!strcmp(m, "linear") || !strcmp(m, "bilinear"))
    r->mode = RS_linear;
  else if (!strcmp(m, "cubic"))
    r->mode = RS_cubic;
  else
    on_bad(b, "mode '%s' is not known", m);
}

/* Narrow floats and integers are blended in f32 (f64 for wide integers); nearest only moves
 * elements. */
static void finish(Resize *r, Val v, Axis *x, const i64 *axes, u32 n) {
  Build *b = r->b;
  DType dt = on_dtype(b, v);
  if (r->mode != RS_nearest) v = dtype_is_float(dt) ? on_widen(b, v) : mk_cast(b->g, v, DT_f32);
  for (u32 i = 0; i < n; i++) {
    bool crop = !strcmp(r->coord, "tf_crop_and_resize");
    if (x[i].late) {
      v = late_axis(r, v, &x[i], (u32)axes[i]);
      continue;
    }
    if (x[i].in == x[i].out && x[i].scale == 1 && !crop) continue;
    if (x[i].in < 0 && crop) on_unsupported(b, "cropping a symbolic dimension");
    v = x[i].in < 0 ? repeat_axis(r, v, &x[i], (u32)axes[i])
                    : resize_axis(r, v, &x[i], (u32)axes[i]);
  }
  if (r->mode != RS_nearest && dtype_is_int(dt))
    v = mk_cast_sat(b->g, mk_map1(b->g, OP_round, v), dt);
  b->out[0] = on_narrow(b, v, dt);
}

static void axis_extents(Build *b, Val v, Axis *x, const i64 *axes, u32 n) {
  memset(x, 0, n * sizeof *x);
  for (u32 i = 0; i < n; i++) {
    Dim d = on_dim(b, v, (u32)axes[i]);
    x[i].in = dim_is_const(d) ? d : -1;
  }
}

/* Sizes that depend on symbolic extents: each axis must become a multiple of itself, or have a
 * known size. */
static bool scales_from_dims(Build *b, Val v, u32 i, Axis *x, const i64 *axes, u32 n) {
  Dim size[MAX_RANK];
  u32 k;
  bool open = false;
  for (u32 j = 0; j < n; j++) open = open || x[j].in < 0;
  if (!open) return false;
  if (!graph_dim_list(b->g, on_in(b, i), size, MAX_RANK, &k) || k != n) return false;
  if (!on_str_is(b, "keep_aspect_ratio_policy", "stretch", "stretch")) return false;
  for (u32 j = 0; j < n; j++) {
    Dim d = on_dim(b, v, (u32)axes[j]);
    bool found = dim_is_const(d) && dim_is_const(size[j]) && d > 0 && size[j] <= INT32_MAX;
    if (found) x[j].scale = (double)size[j] / (double)d;
    for (i64 times = 1; !found && times <= 16; times++) {
      found = size[j] == dim_mul(b->ds, d, times);
      if (found) x[j].scale = (double)times;
    }
    if (!found) return false;
    x[j].out = dim_is_const(size[j]) ? size[j] : -1;
  }
  return true;
}

/* Sizes of which some are numbers of the run, or follow from open extents in another way. */
static bool late_sizes(Build *b, Val v, u32 i, Axis *x, const i64 *axes, u32 n) {
  Dim size[MAX_RANK];
  u32 k = 0;
  Val blame;
  if (import_known(b->im, on_in(b, i), &blame) ||
      !on_str_is(b, "keep_aspect_ratio_policy", "stretch", "stretch") ||
      !late_dims(b, b->in[i], size, MAX_RANK, &k) || k != n)
    return false;
  for (u32 j = 0; j < n; j++) {
    Dim d = on_dim(b, v, (u32)axes[j]);
    bool fixed = dim_is_const(d) && dim_is_const(size[j]) && d > 0 && size[j] <= INT32_MAX;
    x[j].late = !fixed && d != size[j];
    x[j].to = size[j];
    x[j].scale = fixed ? (double)size[j] / (double)d : 1;
    x[j].out = fixed ? size[j] : x[j].in;
  }
  return true;
}

void build_resize(Build *b) {
  Val v = on_in(b, 0);
  u32 rank = on_rank(b, v), n = rank;
  bool old = b->opset < 11;
  Resize r = {.b = b, .cubic_a = on_float(b, "cubic_coeff_a", -0.75)};
  read_mode(&r);
  r.coord = str_text(
      b->c, on_str(b, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"));
  r.nearest = str_text(b->c, on_str(b, "nearest_mode", old ? "floor" : "round_prefer_floor"));
  r.exclude = on_int(b, "exclude_outside", 0) != 0;
  r.antialias = on_int(b, "antialias", 0) != 0;
  r.extrapolate = on_float(b, "extrapolation_value", 0);
  i64 axes[MAX_RANK], size[MAX_RANK];
  double scale[MAX_RANK], roi[2 * MAX_RANK];
  i32 na = on_ints(b, "axes", axes, MAX_RANK);
  for (u32 i = 0; na < 0 && i < rank; i++) axes[i] = i;
  if (na >= 0) n = (u32)na;
  on_axes(b, axes, n, rank);
  Axis x[MAX_RANK];
  u32 in_scales = old ? 1 : 2, in_sizes = old ? 99 : 3;
  bool by_scale = given(b, in_scales), by_size = given(b, in_sizes);
  r.single = by_scale;
  if (by_scale == by_size) on_bad(b, "exactly one of scales and sizes must be given");
  axis_extents(b, v, x, axes, n);
  if (by_scale ||
      (!scales_from_dims(b, v, in_sizes, x, axes, n) && !late_sizes(b, v, in_sizes, x, axes, n))) {
    u32 got = by_scale ? read_floats(b, in_scales, scale, MAX_RANK)
                       : on_known_ints(b, in_sizes, size, MAX_RANK);
    if (got != n) on_bad(b, "%u scales or sizes for %u axes", got, n);
    if (by_scale)
      sizes_from_scales(b, x, n, scale);
    else
      scales_from_sizes(b, x, n, size);
  }
  if (!strcmp(r.coord, "tf_crop_and_resize")) {
    if (read_floats(b, 1, roi, 2 * MAX_RANK) != 2 * n) on_bad(b, "roi must have %u entries", 2 * n);
    for (u32 i = 0; i < n; i++) x[i].roi0 = roi[i], x[i].roi1 = roi[n + i];
  }
  finish(&r, v, x, axes, n);
}

void build_upsample(Build *b) {
  Val v = on_in(b, 0);
  u32 n = on_rank(b, v);
  Resize r = {.b = b, .coord = "asymmetric", .nearest = "floor", .single = true};
  read_mode(&r);
  double scale[MAX_RANK];
  i64 axes[MAX_RANK];
  for (u32 i = 0; i < n; i++) axes[i] = i, scale[i] = 1;
  if (b->opset >= 9) {
    if (read_floats(b, 1, scale, MAX_RANK) != n) on_bad(b, "scales must have %u entries", n);
  } else if (on_has_attr(b, "scales")) {
    if (on_floats(b, "scales", scale, MAX_RANK) != (i32)n)
      on_bad(b, "scales must have %u entries", n);
  } else {
    if (n != 4) on_bad(b, "needs rank 4");
    scale[2] = on_float(b, "height_scale", 1);
    scale[3] = on_float(b, "width_scale", 1);
  }
  Axis x[MAX_RANK];
  axis_extents(b, v, x, axes, n);
  sizes_from_scales(b, x, n, scale);
  finish(&r, v, x, axes, n);
}
