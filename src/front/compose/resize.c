/* resize.c: resizing along any axes. See compose.h.
 *
 * Every mode is separable: along each resized axis an output element is a weighted sum of a few
 * input elements. Their positions and weights depend on the output position only. This file
 * computes them in double and makes them constant index vectors and weights: one gather per tap, or
 * one matrix product if there are many taps (antialias). If a size is known only at run time, the
 * graph computes the same formulas.
 */
#include "front/compose/compose.h"

#include <math.h>

const char *const resize_coord_name[RC_COUNT] = {
    [RC_half_pixel] = "half_pixel",
    [RC_asymmetric] = "asymmetric",
    [RC_align_corners] = "align_corners",
    [RC_pytorch_half_pixel] = "pytorch_half_pixel",
    [RC_tf_half_pixel_for_nn] = "tf_half_pixel_for_nn",
    [RC_half_pixel_symmetric] = "half_pixel_symmetric",
    [RC_tf_crop_and_resize] = "tf_crop_and_resize",
};
const char *const resize_nearest_name[RN_COUNT] = {
    [RN_floor] = "floor",
    [RN_ceil] = "ceil",
    [RN_round_prefer_floor] = "round_prefer_floor",
    [RN_round_prefer_ceil] = "round_prefer_ceil",
};

/* Taps of all result elements along one axis. */
typedef struct ResizeTaps {
  u32 n;
  i64 *at;    /* [out, n] clamped positions */
  double *w;  /* [out, n] */
  bool *gone; /* [out] outside of the region of interest */
} ResizeTaps;

/* Nearest positions are computed in f32, one operation at a time, because scales are f32. Example:
 * position 8 of a row stretched by 1.6 comes from position 5, although 1.6 as f32 is slightly
 * larger. Weights do not need this. */
static double rounded(const Resize *r, double v) {
  return r->mode == RS_nearest ? (double)(float)v : v;
}

/* Source position of output o. Uses the integer length of the result instead of scale * length, as
 * ONNX Runtime and PyTorch do. Only half_pixel_symmetric compares the two. */
static double source(const Resize *r, const ResizeAxis *x, double o) {
  double n = (double)x->in, len = (double)x->out, scale = rounded(r, x->scale);
  double middle = rounded(r, (o + 0.5) / scale);
  switch (r->coord) {
  case RC_asymmetric: return rounded(r, o / scale);
  case RC_align_corners: return len == 1 ? 0 : rounded(r, o * (n - 1) / (len - 1));
  case RC_pytorch_half_pixel: return len > 1 ? rounded(r, middle - 0.5) : 0;
  case RC_tf_half_pixel_for_nn: return middle;
  case RC_half_pixel_symmetric: {
    double share = rounded(r, len / rounded(r, scale * n));
    double offset = rounded(r, n / 2 * rounded(r, 1 - share));
    return rounded(r, offset + (o + 0.5) / scale - 0.5);
  }
  case RC_tf_crop_and_resize: {
    double first = rounded(r, x->roi0 * (n - 1)), part = rounded(r, x->roi1 - x->roi0);
    if (!(len > 1)) return rounded(r, 0.5 * rounded(r, x->roi0 + x->roi1) * (n - 1));
    part = rounded(r, rounded(r, o * part) * (n - 1));
    return rounded(r, first + rounded(r, part / (len - 1)));
  }
  default: return rounded(r, middle - 0.5); /* RC_half_pixel */
  }
}

/* Positions this close to the midpoint of two elements count as midpoints, as in ONNX Runtime. */
#define HALFWAY 1e-6

static i64 nearest_place(const Resize *r, double x) {
  switch (r->nearest) {
  case RN_floor: return (i64)floor(x);
  case RN_ceil: return (i64)ceil(x);
  case RN_round_prefer_floor: return (i64)ceil(x - 0.5 - HALFWAY);
  default: return (i64)floor(x + 0.5 + HALFWAY);
  }
}

static double kernel(const Resize *r, double d) {
  d = fabs(d);
  if (r->mode == RS_linear) return d < 1 ? 1 - d : 0;
  double a = r->cubic_a;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* Taps of output o: 2 or 4 neighbors, more if an antialiased kernel is stretched. */
static void fill_taps(const Resize *r, const ResizeAxis *x, ResizeTaps *t, i64 o, double squeeze) {
  double s = source(r, x, (double)o);
  i64 *at = t->at + o * t->n;
  double *w = t->w + o * t->n, sum = 0;
  t->gone[o] = r->coord == RC_tf_crop_and_resize && (s < 0 || s > (double)(x->in - 1));
  if (r->mode == RS_nearest) {
    at[0] = nearest_place(r, s);
    w[0] = 1;
  } else {
    i64 first = (i64)floor(s) - (t->n / 2 - 1);
    for (u32 k = 0; k < t->n; k++) {
      at[k] = first + k;
      bool outside = at[k] < 0 || at[k] >= x->in;
      w[k] = outside && r->exclude ? 0 : kernel(r, ((double)at[k] - s) * squeeze);
      sum += w[k];
    }
    if ((r->exclude || squeeze < 1) && sum != 0)
      for (u32 k = 0; k < t->n; k++) w[k] /= sum;
  }
  for (u32 k = 0; k < t->n; k++) at[k] = at[k] < 0 ? 0 : at[k] >= x->in ? x->in - 1 : at[k];
}

static ResizeTaps plan_axis(Graph *g, const Resize *r, const ResizeAxis *x) {
  double squeeze = r->antialias && x->scale < 1 ? x->scale : 1;
  double reach = r->mode == RS_linear ? 1 : 2;
  ResizeTaps t = {.n = r->mode == RS_nearest ? 1 : 2 * (u32)ceil(reach / squeeze)};
  u64 n;
  if (!size_mul((u64)x->out, t.n, &n) || n > (1u << 28))
    fail(g->c, ERR_input, g->loc, "cannot resize an axis to extent %lld, expected 1 or more",
         (long long)x->out);
  t.at = NEWS(&g->c->work, i64, n);
  t.w = NEWS(&g->c->work, double, n);
  t.gone = NEWS(&g->c->work, bool, (u64)x->out);
  for (i64 o = 0; o < x->out; o++) fill_taps(r, x, &t, o, squeeze);
  return t;
}

/* A constant of extent `out` along `axis` and 1 on all axes after it, so that it broadcasts. */
static Tensor *axis_tensor(Graph *g, DType dt, i64 out, u32 axis, u32 rank) {
  i64 dim[MAX_RANK];
  for (u32 i = 0; i < rank - axis; i++) dim[i] = i ? 1 : out;
  return tensor_new(&g->c->work, dt, dim, rank - axis);
}

static Val gather_taps(Graph *g, Val v, const ResizeAxis *x, const ResizeTaps *t) {
  Type type = *graph_type(g, v);
  Val sum = 0;
  for (u32 k = 0; k < t->n; k++) {
    Tensor *at = tensor_new(&g->c->work, DT_i64, &x->out, 1);
    Tensor *w = axis_tensor(g, type.dt, x->out, x->axis, type.rank);
    bool plain = true;
    for (i64 o = 0; o < x->out; o++) {
      double weight = t->w[o * t->n + k];
      tensor_set(at, (u64)o, (Scalar){.i = t->at[o * t->n + k]});
      if (t->n > 1) tensor_set(w, (u64)o, (Scalar){.f = scalar_round(w->dt, weight)});
      plain = plain && weight == 1;
    }
    Val y = mk_gather(g, v, mk_const(g, at), x->axis);
    if (!plain) y = mk_mul(g, y, mk_const(g, w));
    sum = k ? mk_add(g, sum, y) : y;
  }
  return sum;
}

static Val matrix_taps(Graph *g, Val v, const ResizeAxis *x, const ResizeTaps *t) {
  Type type = *graph_type(g, v);
  i64 dim[2] = {x->out, x->in};
  u64 n;
  if (!size_mul((u64)x->out, (u64)x->in, &n) || n > (1u << 28))
    fail(g->c, ERR_input, g->loc, "cannot resize an axis to extent %lld, expected 1 or more",
         (long long)x->out);
  Tensor *m = tensor_new(&g->c->work, type.dt, dim, 2);
  for (i64 o = 0; o < x->out; o++)
    for (u32 k = 0; k < t->n; k++) {
      u64 i = (u64)(o * x->in + t->at[o * t->n + k]);
      double w = tensor_get(m, i).f + t->w[o * t->n + k];
      tensor_set(m, i, (Scalar){.f = scalar_round(m->dt, w)});
    }
  char spec[3 * MAX_RANK + 8];
  u32 p = 0;
  for (u32 i = 0; i < type.rank; i++) spec[p++] = (char)('a' + i);
  spec[p++] = ',';
  spec[p++] = 'Z';
  spec[p++] = (char)('a' + x->axis);
  spec[p++] = '-';
  spec[p++] = '>';
  for (u32 i = 0; i < type.rank; i++) spec[p++] = i == x->axis ? 'Z' : (char)('a' + i);
  spec[p] = 0;
  return mk_contract(g, v, mk_const(g, m), spec);
}

static Val resize_axis(Graph *g, const Resize *r, Val v, const ResizeAxis *x) {
  ResizeTaps t = plan_axis(g, r, x);
  v = t.n > 4 ? matrix_taps(g, v, x, &t) : gather_taps(g, v, x, &t);
  bool any = false;
  Tensor *gone = axis_tensor(g, DT_bool, x->out, x->axis, graph_type(g, v)->rank);
  for (i64 o = 0; o < x->out; o++) {
    tensor_set(gone, (u64)o, (Scalar){.i = t.gone[o]});
    any = any || t.gone[o];
  }
  if (!any) return v;
  Val outside = mk_like(g, v, r->extrapolate);
  return mk_select(g, mk_const(g, gone), outside, v);
}

/* Scales a symbolic extent by an integer n. These modes then repeat every element n times. */
static Val repeat_axis(Graph *g, const Resize *r, Val v, const ResizeAxis *x) {
  bool floors = r->coord == RC_asymmetric && r->nearest == RN_floor;
  bool rounds = r->coord == RC_half_pixel && r->nearest >= RN_round_prefer_floor;
  i64 times = (i64)x->scale;
  if (r->mode != RS_nearest || (double)times != x->scale || (!floors && !rounds))
    fail(g->c, ERR_unsupported, g->loc,
         "a symbolic dimension can only be resized to a multiple with mode nearest");
  Dim n = dim_mul(g->dims, val_dim(g, v, x->axis), times);
  Val by = mk_ints(g, &times, 1);
  Val at = mk_div(g, mk_iota(g, DT_i64, &n, 1, 0), by);
  return mk_gather(g, v, at, x->axis);
}

/* ---- run-time sizes: positions and weights as f64[out] ---- */

/* Source position of output o: the formulas of `source` as nodes. */
static Val dynamic_source(Graph *g, const Resize *r, Val o, Val n, Val len) {
  Val scale = mk_div(g, len, n), one = mk_scalar(g, DT_f64, 1);
  Val single = mk_eq(g, len, one), half = mk_addk(g, mk_div(g, mk_addk(g, o, 0.5), scale), -0.5);
  switch (r->coord) {
  case RC_half_pixel: return half;
  case RC_asymmetric: return mk_div(g, o, scale);
  case RC_pytorch_half_pixel: return mk_select(g, single, mk_scalar(g, DT_f64, 0), half);
  case RC_align_corners: {
    Val last = mk_max(g, mk_addk(g, len, -1), one); /* avoids 0 / 0 if the length is 1 */
    return mk_div(g, mk_mul(g, o, mk_addk(g, n, -1)), last);
  }
  default:
    fail(g->c, ERR_unsupported, g->loc,
         "resizing by %s to a size only known at run time is not supported",
         resize_coord_name[r->coord]);
  }
}

static Val dynamic_nearest(Graph *g, const Resize *r, Val s) {
  switch (r->nearest) {
  case RN_floor: return mk_floor(g, s);
  case RN_ceil: return mk_ceil(g, s);
  case RN_round_prefer_floor: return mk_ceil(g, mk_addk(g, s, -0.5 - HALFWAY));
  default: return mk_floor(g, mk_addk(g, s, 0.5 + HALFWAY));
  }
}

static Val dynamic_kernel(Graph *g, const Resize *r, Val d) {
  double a = r->cubic_a;
  d = mk_abs(g, d);
  if (r->mode == RS_linear) {
    Val zero = mk_like(g, d, 0);
    return mk_max(g, mk_sub(g, mk_like(g, d, 1), d), zero);
  }
  Val near = mk_addk(g, mk_mulk(g, d, a + 2), -(a + 3));
  near = mk_addk(g, mk_mul(g, mk_mul(g, near, d), d), 1);
  Val far = mk_addk(g, mk_mul(g, mk_addk(g, mk_mulk(g, d, a), -5 * a), d), 8 * a);
  far = mk_addk(g, mk_mul(g, far, d), -4 * a);
  return mk_select(g, mk_le(g, d, mk_like(g, d, 1)), near, far);
}

static Val dynamic_axis(Graph *g, const Resize *r, Val v, const ResizeAxis *x) {
  Type t = *graph_type(g, v);
  u32 ntap = r->mode == RS_nearest ? 1 : r->mode == RS_linear ? 2 : 4;
  Dim in = val_dim(g, v, x->axis), shape[MAX_RANK];
  if (r->exclude || r->antialias)
    fail(g->c, ERR_unsupported, g->loc,
         "exclude_outside or antialias to a size only known at run time is not supported");
  Val n = mk_extent(g, in, DT_f64), len = mk_extent(g, x->to, DT_f64), sum = 0;
  Val o = mk_cast(g, mk_iota(g, DT_i64, &x->to, 1, 0), DT_f64), s = dynamic_source(g, r, o, n, len);
  Val first = r->mode == RS_nearest ? dynamic_nearest(g, r, s) : mk_floor(g, s);
  Val one = mk_scalar(g, DT_i64, 1);
  Val last = mk_sub(g, mk_extent(g, in, DT_i64), one);
  for (u32 i = x->axis; i < t.rank; i++) shape[i - x->axis] = i == x->axis ? x->to : 1;
  for (u32 k = 0; k < ntap; k++) {
    Val place = mk_addk(g, first, ntap == 4 ? (double)k - 1 : (double)k);
    Val zero = mk_scalar(g, DT_i64, 0);
    Val at = mk_max(g, mk_cast(g, place, DT_i64), zero);
    Val y = mk_gather(g, v, mk_min(g, at, last), x->axis);
    if (ntap == 1) return y;
    Val w = mk_cast(g, dynamic_kernel(g, r, mk_sub(g, place, s)), t.dt);
    y = mk_mul(g, y, mk_reshape(g, w, shape, t.rank - x->axis));
    sum = k ? mk_add(g, sum, y) : y;
  }
  return sum;
}

/* Narrow floats and integers are blended in f32; nearest only moves elements. */
Val compose_resize(Graph *g, const Resize *r, Val v, const ResizeAxis *x, u32 n) {
  DType dt = graph_type(g, v)->dt;
  bool crop = r->coord == RC_tf_crop_and_resize;
  if (r->mode != RS_nearest) v = dtype_is_float(dt) ? mk_widen(g, v) : mk_cast(g, v, DT_f32);
  for (u32 i = 0; i < n; i++, x++) {
    if (x->late) {
      v = dynamic_axis(g, r, v, x);
      continue;
    }
    if (x->in == x->out && x->scale == 1 && !crop) continue;
    if (x->in < 0 && crop)
      fail(g->c, ERR_unsupported, g->loc, "cropping a symbolic dimension is not supported");
    v = x->in < 0 ? repeat_axis(g, r, v, x) : resize_axis(g, r, v, x);
  }
  if (r->mode != RS_nearest && dtype_is_int(dt)) v = mk_cast_sat(g, mk_round(g, v), dt);
  return mk_cast(g, v, dt);
}
