/* onnx_ops_resize.c: target sizes of Resize and Upsample; front/compose/resize.c builds them. */
#include "front/onnx/onnx_import.h"

#include <math.h>

static u32 read_floats(Build *b, u32 i, double *out, u32 max) {
  const Tensor *t = on_known(b, i);
  if (t->n > max || !dtype_is_float(t->dt))
    on_bad(b, "input %u has another type or length, expected at most %u floats", i, max);
  for (u32 k = 0; k < t->n; k++) out[k] = tensor_get(t, k).f;
  return (u32)t->n;
}

static bool has_operand(Build *b, u32 i) {
  if (!on_has(b, i)) return false;
  const Type *t = on_type(b, b->in[i]);
  return !(t->rank == 1 && t->dim[0] == 0);
}

static void sizes_from_scales(Build *b, ResizeAxis *x, u32 n, const double *scale) {
  for (u32 i = 0; i < n; i++) {
    if (!(scale[i] > 0)) on_bad(b, "a scale is %g, expected more than 0", scale[i]);
    x[i].scale = scale[i];
    x[i].out = -1;
    if (x[i].in < 0) continue;
    /* Computed in f32 like scales: 5 times 1.8 is 9, although 1.8 as f32 is slightly smaller. */
    double out = floor((double)((float)x[i].in * (float)scale[i]));
    if (!(out < (double)INT32_MAX))
      on_bad(b, "extent %lld times %g is %g, expected less than 2^31", (long long)x[i].in, scale[i],
             out);
    x[i].out = (i64)out;
  }
}

static void scales_from_sizes(Build *b, ResizeAxis *x, u32 n, const i64 *size) {
  bool larger = on_str_is(b, "keep_aspect_ratio_policy", "stretch", "not_smaller");
  bool smaller = on_str_is(b, "keep_aspect_ratio_policy", "stretch", "not_larger");
  double pick = 0;
  for (u32 i = 0; i < n; i++) {
    if (x[i].in < 0)
      on_unsupported(b, "input sizes gives a number for a symbolic dimension, expected scales");
    if (size[i] < 0 || size[i] > INT32_MAX || (x[i].in == 0 && size[i]))
      on_bad(b, "a size is %lld, expected 0 to 2^31-1, and 0 for an empty axis",
             (long long)size[i]);
    x[i].out = size[i];
    x[i].scale = x[i].in ? (double)size[i] / (double)x[i].in : 1;
    if (!i || (larger ? x[i].scale > pick : x[i].scale < pick)) pick = x[i].scale;
  }
  for (u32 i = 0; (larger || smaller) && i < n; i++) {
    x[i].scale = pick;
    x[i].out = (i64)floor(pick * (double)x[i].in + 0.5);
  }
}

/* Index of an attribute value in a list of names. */
static u32 named(Build *b, const char *attr, const char *otherwise, const char *const *name,
                 u32 n) {
  for (u32 i = 0; i < n; i++)
    if (on_str_is(b, attr, otherwise, name[i])) return i;
  on_bad(b, "%s '%s' is not known", attr, show(b->c, on_str(b, attr, otherwise)));
}

static ResizeMode read_mode(Build *b) {
  u32 i = on_choice(b, "mode", "nearest linear cubic bilinear");
  return i == 3 ? RS_linear : (ResizeMode)i;
}

static void axis_extents(Build *b, Val v, ResizeAxis *x, const i64 *axes, u32 n) {
  for (u32 i = 0; i < n; i++) {
    Dim d = on_dim(b, v, (u32)axes[i]);
    x[i] = (ResizeAxis){.axis = (u32)axes[i], .in = dim_is_const(d) ? d : -1};
  }
}

/* Sizes from symbolic extents: each axis becomes a multiple of itself, or has a known size. */
static bool scales_from_dims(Build *b, Val v, u32 i, ResizeAxis *x, u32 n) {
  Dim size[MAX_RANK];
  u32 k;
  bool open = false;
  for (u32 j = 0; j < n; j++) open = open || x[j].in < 0;
  if (!open) return false;
  if (!graph_dim_list(b->g, on_in(b, i), size, MAX_RANK, &k) || k != n) return false;
  if (!on_str_is(b, "keep_aspect_ratio_policy", "stretch", "stretch")) return false;
  for (u32 j = 0; j < n; j++) {
    Dim d = on_dim(b, v, x[j].axis);
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

/* Sizes that are known only at run time, or depend on open extents in another way. */
static bool late_sizes(Build *b, Val v, u32 i, ResizeAxis *x, u32 n) {
  Dim size[MAX_RANK];
  u32 k = 0;
  Val blame;
  if (import_const_eval(b->im, on_in(b, i), &blame) ||
      !on_str_is(b, "keep_aspect_ratio_policy", "stretch", "stretch") ||
      !dynamic_dims(b, b->in[i], size, MAX_RANK, &k) || k != n)
    return false;
  for (u32 j = 0; j < n; j++) {
    Dim d = on_dim(b, v, x[j].axis);
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
  Resize r = {.mode = read_mode(b), .cubic_a = on_float(b, "cubic_coeff_a", -0.75)};
  r.coord = named(b, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel",
                  resize_coord_name, RC_COUNT);
  r.nearest =
      named(b, "nearest_mode", old ? "floor" : "round_prefer_floor", resize_nearest_name, RN_COUNT);
  r.exclude = on_int(b, "exclude_outside", 0) != 0;
  r.antialias = on_int(b, "antialias", 0) != 0;
  r.extrapolate = on_float(b, "extrapolation_value", 0);
  i64 axes[MAX_RANK], size[MAX_RANK];
  double scale[MAX_RANK], roi[2 * MAX_RANK];
  i32 na = on_ints(b, "axes", axes, MAX_RANK);
  for (u32 i = 0; na < 0 && i < rank; i++) axes[i] = i;
  if (na >= 0) n = (u32)na;
  on_axes(b, axes, n, rank);
  ResizeAxis x[MAX_RANK];
  u32 in_scales = old ? 1 : 2, in_sizes = old ? 99 : 3;
  bool by_scale = has_operand(b, in_scales), by_size = has_operand(b, in_sizes);
  if (by_scale == by_size) on_bad(b, "expected exactly one of the inputs scales and sizes");
  axis_extents(b, v, x, axes, n);
  if (by_scale || (!scales_from_dims(b, v, in_sizes, x, n) && !late_sizes(b, v, in_sizes, x, n))) {
    u32 got = by_scale ? read_floats(b, in_scales, scale, MAX_RANK)
                       : on_known_ints(b, in_sizes, size, MAX_RANK);
    if (got != n) on_bad(b, "found %u scales or sizes, expected %u, one for each axis", got, n);
    if (by_scale)
      sizes_from_scales(b, x, n, scale);
    else
      scales_from_sizes(b, x, n, size);
  }
  if (r.coord == RC_tf_crop_and_resize) {
    if (read_floats(b, 1, roi, 2 * MAX_RANK) != 2 * n)
      on_bad(b, "roi: expected %u elements", 2 * n);
    for (u32 i = 0; i < n; i++) x[i].roi0 = roi[i], x[i].roi1 = roi[n + i];
  }
  b->out[0] = compose_resize(b->g, &r, v, x, n);
}

void build_upsample(Build *b) {
  Val v = on_in(b, 0);
  u32 n = on_rank(b, v);
  Resize r = {.mode = read_mode(b), .coord = RC_asymmetric, .nearest = RN_floor};
  double scale[MAX_RANK];
  i64 axes[MAX_RANK];
  for (u32 i = 0; i < n; i++) axes[i] = i, scale[i] = 1;
  if (b->opset >= 9) {
    if (read_floats(b, 1, scale, MAX_RANK) != n) on_bad(b, "scales: expected %u elements", n);
  } else if (on_has_attr(b, "scales")) {
    if (on_floats(b, "scales", scale, MAX_RANK) != (i32)n)
      on_bad(b, "scales: expected %u elements", n);
  } else {
    if (n != 4) on_bad(b, "the operand has rank %u, expected 4", n);
    scale[2] = on_float(b, "height_scale", 1);
    scale[3] = on_float(b, "width_scale", 1);
  }
  ResizeAxis x[MAX_RANK];
  axis_extents(b, v, x, axes, n);
  sizes_from_scales(b, x, n, scale);
  b->out[0] = compose_resize(b->g, &r, v, x, n);
}
