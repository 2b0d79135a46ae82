/* onnx_ops_roi.c: RoiAlign and MaxRoiPool.
 *
 * RoiAlign samples inside every bin. Their number may depend on the region, so it loops over the
 * maximum number of samples and masks the rest. Channels are the last axis of the image, so that
 * one gather reads all channels of a position.
 */
#include "front/onnx/onnx_builder.h"

#include <math.h>

/* One axis, for every region. */
typedef struct RoiAxis {
  Val start, bin; /* [regions, 1]: first position, extent of a bin */
  Val samples;    /* [regions, 1]: samples per bin, as a float */
  Dim extent, pooled;
} RoiAxis;

typedef struct Align {
  Build *b;
  RoiAxis y, x;
  Val image;   /* [batch * height * width, channels] */
  Val batch;   /* [regions, 1, 1] i64: offset of the region's image in elements */
  Val columns; /* maximum number of samples along x, i64 scalar */
  bool max;
} Align;

/* Low neighbor of [regions, pooled] positions, weight of the high one; in: inside the image. */
typedef struct LerpTap {
  Val low, high, part, in;
} LerpTap;

static Val column(Build *b, Val rois, u32 i) {
  return mk_slice_axis(b->g, rois, 1, i, 1);
}

static RoiAxis roi_axis(Build *b, Val rois, u32 i, Dim extent, Dim pooled, bool half) {
  Graph *g = b->g;
  double scale = on_float(b, "spatial_scale", 1);
  i64 ratio = on_int(b, "sampling_ratio", 0);
  RoiAxis s = {.extent = extent, .pooled = pooled};
  s.start = mk_addk(g, mk_mulk(g, column(b, rois, i), scale), half ? -0.5 : 0);
  Val size =
      mk_sub(g, mk_addk(g, mk_mulk(g, column(b, rois, i + 2), scale), half ? -0.5 : 0), s.start);
  if (!half) size = mk_max(g, size, mk_like(g, size, 1));
  s.bin = mk_div(g, size, mk_like(g, size, (double)pooled));
  Type t = *on_type(b, s.bin);
  if (ratio > 0) {
    s.samples = mk_broadcast(g, mk_like(g, size, (double)ratio), t.dim, 2);
    return s;
  }
  /* the quotient may be one ulp too large, however it is computed */
  Val n = mk_ceil(g, s.bin), less = mk_addk(g, n, -1);
  Val enough = mk_ge(g, mk_mulk(g, less, (double)pooled), size);
  Val zero = mk_like(g, size, 0);
  s.samples = mk_max(g, mk_select(g, enough, less, n), zero);
  return s;
}

/* Sample k (a float) of every bin. */
static LerpTap lerp_tap(Build *b, const RoiAxis *s, Val k) {
  Graph *g = b->g;
  DType dt = on_dtype(b, s->start);
  Dim row[2] = {1, s->pooled};
  Val at = mk_add(g, s->start, mk_mul(g, mk_iota(g, dt, row, 2, 1), s->bin));
  at = mk_add(g, at, mk_div(g, mk_mul(g, mk_addk(g, k, 0.5), s->bin), s->samples));
  Val end = mk_extent(g, s->extent, dt), last = mk_addk(g, end, -1);
  LerpTap r;
  Val below = mk_le(g, at, end);
  r.in = mk_and(g, mk_ge(g, at, mk_like(g, at, -1)), below);
  at = mk_min(g, mk_max(g, at, mk_like(g, at, 0)), last);
  Val low = mk_floor(g, at);
  r.part = mk_sub(g, at, low);
  r.low = mk_cast(g, low, DT_i64);
  r.high = mk_cast(g, mk_min(g, mk_addk(g, low, 1), last), DT_i64);
  return r;
}

static Val over_y(Build *b, Val v) {
  return mk_unsqueeze(b->g, v, 2);
} /* [regions, pooled y, 1] */
static Val over_x(Build *b, Val v) {
  return mk_unsqueeze(b->g, v, 1);
} /* [regions, 1, pooled x] */

/* The four neighbors times their weights, each [regions, pooled y, pooled x, channels]. */
static void corners(const Align *a, const LerpTap *y, const LerpTap *x, Val *out) {
  Build *b = a->b;
  Graph *g = b->g;
  Val one = mk_like(g, y->part, 1), zero = mk_like(g, y->part, 0);
  Val in_x = over_x(b, x->in);
  Val in = mk_and(g, over_y(b, y->in), in_x);
  for (u32 i = 0; i < 4; i++) {
    Val wy = over_y(b, i / 2 ? y->part : mk_sub(g, one, y->part));
    Val wx = over_x(b, i % 2 ? x->part : mk_sub(g, one, x->part));
    Val w = mk_select(g, in, mk_mul(g, wy, wx), zero);
    Val wide = mk_extent(g, a->x.extent, DT_i64);
    Val line = mk_mul(g, over_y(b, i / 2 ? y->high : y->low), wide);
    Val at = mk_add(g, mk_add(g, line, over_x(b, i % 2 ? x->high : x->low)), a->batch);
    Val weight = mk_unsqueeze(g, w, 3);
    out[i] = mk_mul(g, mk_gather(g, a->image, at, 0), weight);
  }
}

static void align_step(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  Align *a = user;
  Build *b = a->b;
  DType dt = on_dtype(b, a->image);
  (void)cond, (void)scan;
  Val ky = mk_cast(g, mk_div(g, i, a->columns), dt), kx = mk_cast(g, mk_mod(g, i, a->columns), dt),
      v[4];
  LerpTap y = lerp_tap(b, &a->y, ky), x = lerp_tap(b, &a->x, kx);
  corners(a, &y, &x, v);
  Val in_row = mk_lt(g, kx, a->x.samples);
  Val live = mk_and(g, mk_lt(g, ky, a->y.samples), in_row), all;
  live = mk_expand_tail(g, live, 2); /* [regions, 1, 1, 1] */
  Op op = a->max ? OP_max : OP_add;
  Val low = mk_map2(g, op, v[2], v[3]);
  all = mk_map2(g, op, mk_map2(g, op, v[0], v[1]), low);
  carried[0] = mk_select(g, live, mk_map2(g, op, carried[0], all), carried[0]);
}

static Val max_samples(Build *b, Val samples) {
  return mk_cast(b->g, mk_reduce(b->g, OP_reduce_max, samples, (const i64[]){0, 1}, 2, false),
                 DT_i64);
}

static Dim output_extent(Build *b, const char *name) {
  i64 n = on_int(b, name, 1);
  if (n < 1 || n > INT32_MAX) on_bad(b, "%s is %lld, expected at least 1", name, (long long)n);
  return n;
}

void build_roialign(Build *b) {
  Graph *g = b->g;
  Val image = on_wide(b, 0), rois = mk_cast(g, on_in(b, 1), on_dtype(b, image));
  Type t = *on_type(b, image);
  if (t.rank != 4 || on_rank(b, rois) != 2)
    on_bad(b, "X has rank %u and rois rank %u, expected 4 and 2", t.rank, on_rank(b, rois));
  const char *usual = b->opset < 16 ? "output_half_pixel" : "half_pixel";
  bool half = on_str_is(b, "coordinate_transformation_mode", usual, "half_pixel");
  Align a = {.b = b, .max = on_choice(b, "mode", "avg max") == 1};
  a.y = roi_axis(b, rois, 1, t.dim[2], output_extent(b, "output_height"), half);
  a.x = roi_axis(b, rois, 0, t.dim[3], output_extent(b, "output_width"), half);
  Dim area = dim_mul(b->ds, t.dim[2], t.dim[3]),
      flat[2] = {dim_mul(b->ds, t.dim[0], area), t.dim[1]};
  a.image = mk_reshape(g, mk_transpose(g, image, (const i64[]){0, 2, 3, 1}), flat, 2);
  Val image_of = mk_cast(g, on_index(b, on_in(b, 2), t.dim[0]), DT_i64);
  a.batch = mk_expand_tail(g, mk_mul(g, image_of, mk_extent(g, area, DT_i64)), 2);
  a.columns = max_samples(b, a.x.samples);
  Dim out[4] = {on_dim(b, rois, 0), a.y.pooled, a.x.pooled, t.dim[1]};
  Val acc = mk_full(g, mk_like(g, image, a.max ? -INFINITY : 0), out, 4), scan;
  mk_loop(g, mk_mul(g, max_samples(b, a.y.samples), a.columns), 0, &acc, 1, &scan, 0, align_step,
          &a);
  Val count = mk_expand_tail(g, mk_mul(g, a.y.samples, a.x.samples), 2), one = mk_like(g, acc, 1);
  if (a.max) {
    Val zero = mk_like(g, acc, 0);
    acc = mk_select(g, mk_lt(g, count, one), zero, acc);
  } else
    acc = mk_div(g, acc, mk_max(g, count, one));
  on_set_output(b, mk_transpose(g, acc, (const i64[]){0, 3, 1, 2}));
}

/* ---- MaxRoiPool ---- */

static Val nearest_half_away(Build *b, Val x) {
  Val up = mk_floor(b->g, mk_addk(b->g, mk_abs(b->g, x), 0.5));
  return mk_mul(b->g, mk_sign(b->g, x), up);
}

/* bool [regions, pooled, extent]: positions of each bin. Bin k of n over `size` positions is k *
 * size / n to (k + 1) * size / n, rounded outwards. */
static Val bin_members(Build *b, Val rois, u32 i, Dim extent, Dim pooled) {
  Graph *g = b->g;
  double scale = on_float(b, "spatial_scale", 1);
  Val start = nearest_half_away(b, mk_mulk(g, column(b, rois, i), scale));
  Val end = nearest_half_away(b, mk_mulk(g, column(b, rois, i + 2), scale));
  Val one = mk_like(g, start, 1);
  Val size = mk_max(g, mk_addk(g, mk_sub(g, end, start), 1), one);
  Dim row[2] = {1, pooled};
  Val k = mk_iota(g, DT_i64, row, 2, 1), at = mk_iota(g, DT_i64, &extent, 1, 0),
      n = mk_like(g, k, (double)pooled);
  size = mk_cast(g, size, DT_i64);
  start = mk_cast(g, start, DT_i64);
  Val lo = mk_add(g, mk_div(g, mk_mul(g, k, size), n), start);
  Val hi = mk_addk(g, mk_mul(g, mk_addk(g, k, 1), size), (double)pooled - 1);
  hi = mk_add(g, mk_div(g, hi, n), start);
  Val above = mk_ge(g, at, mk_unsqueeze(g, lo, 2));
  return mk_and(g, above, mk_lt(g, at, mk_unsqueeze(g, hi, 2)));
}

void build_maxroipool(Build *b) {
  Graph *g = b->g;
  Val image = on_wide(b, 0), rois = mk_cast(g, on_in(b, 1), on_dtype(b, image));
  Type t = *on_type(b, image);
  i64 pooled[2];
  if (t.rank != 4 || on_rank(b, rois) != 2)
    on_bad(b, "X has rank %u and rois rank %u, expected 4 and 2", t.rank, on_rank(b, rois));
  if (on_ints(b, "pooled_shape", pooled, 2) != 2 || pooled[0] < 1 || pooled[1] < 1)
    on_bad(b, "pooled_shape: expected two positive elements");
  Val in_y = bin_members(b, rois, 2, t.dim[2], pooled[0]),
      in_x = bin_members(b, rois, 1, t.dim[3], pooled[1]);
  Val batch = on_index(b, mk_squeeze(g, mk_cast(g, column(b, rois, 0), DT_i64), 1), t.dim[0]),
      low = mk_like(g, image, -INFINITY);
  Val x =
      mk_unsqueeze(g, mk_gather(g, image, batch, 0), 2); /* [regions, channels, 1, height, width] */
  Val y = mk_select(g, mk_unsqueeze(g, mk_unsqueeze(g, in_y, 1), 4), x, low);
  y = mk_unsqueeze(g, mk_reduce(g, OP_reduce_max, y, &(i64){3}, 1, false),
                   3); /* [regions, channels, pooled, 1, width] */
  y = mk_select(g, mk_unsqueeze(g, mk_unsqueeze(g, in_x, 1), 1), y, low);
  y = mk_reduce(g, OP_reduce_max, y, &(i64){4}, 1, false);
  Val zero = mk_like(g, y, 0);
  y = mk_select(g, mk_eq(g, y, low), zero, y); /* an empty bin */
  on_set_output(b, y);
}
