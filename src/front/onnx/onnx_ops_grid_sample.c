/* onnx_ops_grid_sample.c: interpolation at real-valued positions: GridSample, AffineGrid,
 * DeformConv.
 *
 * One method for any number of axes: a position gives a few neighbors ("taps") and weights along
 * each axis. The taps of all axes are read by one gather and contracted with the product of the
 * weights.
 */
#include "front/onnx/onnx_builder.h"

#include <math.h>

typedef enum Fill { FILL_zeros, FILL_border, FILL_reflection } Fill;
typedef enum Kind { SAMPLE_nearest, SAMPLE_linear, SAMPLE_cubic } Kind;

/* Taps along one axis, all [batch, points, taps]. */
typedef struct SampleTaps {
  Val at;     /* i64 */
  Val weight; /* 0: a single tap */
  Val inside; /* bool; 0: all inside */
} SampleTaps;

typedef struct Sampler {
  Build *b;
  Kind kind;
  Fill fill;
  bool corners; /* align_corners: borders are the centers of the outermost elements */
} Sampler;

/* ---- taps ---- */

/* Reflects x at lo and lo + span until it lies between them. */
static Val reflect(Build *b, Val x, Val lo, Val span) {
  Graph *g = b->g;
  Val zero = mk_like(g, x, 0), from = mk_sub(g, x, lo), twice = mk_mulk(g, span, 2);
  Val t = mk_fmod(g, mk_abs(g, from), twice);
  Val back = mk_sub(g, twice, t);
  t = mk_select(g, mk_gt(g, t, span), back, t);
  t = mk_select(g, mk_gt(g, span, zero), t, zero); /* a single element is the only position */
  Val below = mk_le(g, from, span);
  Val in = mk_and(g, mk_ge(g, from, zero), below);
  return mk_select(g, in, x, mk_add(g, lo, t));
}

/* Borders of an axis of extent d, as scalars of the type of x. */
static void borders(const Sampler *s, Val x, Dim d, Val *lo, Val *span) {
  Build *b = s->b;
  *lo = mk_like(b->g, x, s->corners ? 0 : -0.5);
  *span = mk_addk(b->g, mk_extent(b->g, d, on_dtype(b, x)), s->corners ? -1 : 0);
}

/* Maps a position outside of the borders back according to the padding mode. */
static Val apply_padding_mode(const Sampler *s, Val x, Dim d) {
  Build *b = s->b;
  Graph *g = b->g;
  Val lo, span;
  if (s->fill == FILL_zeros) return x;
  borders(s, x, d, &lo, &span);
  if (s->fill == FILL_reflection) return reflect(b, x, lo, span);
  Val last = mk_addk(g, mk_extent(g, d, on_dtype(b, x)), -1), zero = mk_like(g, x, 0);
  Val near = mk_min(g, mk_max(g, x, zero), last);
  Val above = mk_gt(g, x, mk_add(g, lo, span));
  Val out = mk_or(g, mk_lt(g, x, lo), above);
  return mk_select(g, out, near, x);
}

/* Weight of neighbor i of position x; f = x - floor(x). */
static Val tap_weight(Build *b, Kind kind, Val f, i32 i) {
  if (kind == SAMPLE_linear) return i ? f : mk_sub(b->g, mk_like(b->g, f, 1), f);
  const double a = -0.75;
  Val d = mk_abs(b->g, mk_addk(b->g, f, -i)), r; /* distance */
  if (i == 0 || i == 1) {
    r = mk_addk(b->g, mk_mulk(b->g, d, a + 2), -(a + 3));
    return mk_addk(b->g, mk_mul(b->g, mk_mul(b->g, r, d), d), 1);
  }
  r = mk_addk(b->g, mk_mul(b->g, mk_addk(b->g, mk_mulk(b->g, d, a), -5 * a), d), 8 * a);
  return mk_addk(b->g, mk_mul(b->g, r, d), -4 * a);
}

/* Converts integer positions (as floats) to indices. */
static SampleTaps index_taps(const Sampler *s, Val at, Dim d) {
  Build *b = s->b;
  Graph *g = b->g;
  SampleTaps t = {0};
  Val last = mk_addk(g, mk_extent(g, d, on_dtype(b, at)), -1), zero = mk_like(g, at, 0), lo, span;
  if (s->fill == FILL_zeros) {
    Val below = mk_le(g, at, last);
    t.inside = mk_and(g, mk_ge(g, at, zero), below);
  } else if (s->fill == FILL_reflection) {
    borders(s, at, d, &lo, &span);
    at = reflect(b, at, lo, span);
  }
  t.at = mk_cast(g, mk_min(g, mk_max(g, at, zero), last), DT_i64);
  return t;
}

/* x: positions [batch, points] in elements along an axis of extent d. */
static SampleTaps taps_at(const Sampler *s, Val x, Dim d) {
  Graph *g = s->b->g;
  if (s->kind == SAMPLE_nearest)
    return index_taps(s, mk_unsqueeze(g, apply_padding_mode(s, mk_round(g, x), d), 2), d);
  /* a cubic kernel crosses the border, so only its taps are clamped */
  if (s->kind != SAMPLE_cubic || s->fill != FILL_border) x = apply_padding_mode(s, x, d);
  Val base = mk_floor(g, x), f = mk_sub(g, x, base), at[4], w[4];
  i32 first = s->kind == SAMPLE_linear ? 0 : -1, n = s->kind == SAMPLE_linear ? 2 : 4;
  for (i32 i = 0; i < n; i++) {
    at[i] = mk_unsqueeze(g, mk_addk(g, base, first + i), 2);
    w[i] = mk_unsqueeze(g, tap_weight(s->b, s->kind, f, first + i), 2);
  }
  SampleTaps t = index_taps(s, mk_concat(g, at, (u32)n, 2), d);
  t.weight = mk_concat(g, w, (u32)n, 2);
  return t;
}

/* [batch, points, taps] with the taps on axis 2 + i of 2 + n. */
static Val spread(Build *b, Val x, u32 i, u32 n) {
  Type t = *on_type(b, x);
  Dim dim[MAX_RANK] = {t.dim[0], t.dim[1]};
  for (u32 k = 0; k < n; k++) dim[2 + k] = k == i ? t.dim[2] : 1;
  return mk_reshape(b->g, x, dim, 2 + n);
}

/* Combines the taps of the last n axes of x: [batch, points, all]. */
static SampleTaps join_taps(Build *b, Val x, const SampleTaps *t, u32 n) {
  Graph *g = b->g;
  SampleTaps r = {0};
  Type tx = *on_type(b, x);
  for (u32 i = 0; i < n; i++) {
    Val at = spread(b, t[i].at, i, n);
    if (i)
      r.at = mk_add(g, mk_mul(g, r.at, mk_extent(g, tx.dim[tx.rank - n + i], DT_i64)), at);
    else
      r.at = at;
    Val w = t[i].weight ? spread(b, t[i].weight, i, n) : 0,
        in = t[i].inside ? spread(b, t[i].inside, i, n) : 0;
    if (w) r.weight = r.weight ? mk_mul(g, r.weight, w) : w;
    if (in) r.inside = r.inside ? mk_and(g, r.inside, in) : in;
  }
  Type ta = *on_type(b, r.at);
  Dim flat[3] = {ta.dim[0], ta.dim[1], dim_product(b->ds, ta.dim + 2, n)};
  r.at = mk_reshape(g, r.at, flat, 3);
  if (r.weight) r.weight = mk_reshape(g, r.weight, flat, 3);
  if (r.inside) r.inside = mk_reshape(g, r.inside, flat, 3);
  return r;
}

/* Samples x [batch, channels, n axes] at n lists of positions [batch, points]: [batch, channels,
 * points]. Computes in the type of the weights. */
static Val sample(const Sampler *s, Val x, const Val *pos, u32 n) {
  Build *b = s->b;
  Graph *g = b->g;
  SampleTaps t[MAX_RANK];
  Type tx = *on_type(b, x);
  for (u32 i = 0; i < n; i++) t[i] = taps_at(s, pos[i], tx.dim[2 + i]);
  SampleTaps all = join_taps(b, x, t, n);
  Type ta = *on_type(b, all.at);
  Dim flat[3] = {tx.dim[0], tx.dim[1], dim_product(b->ds, tx.dim + 2, n)};
  Dim many[4] = {tx.dim[0], tx.dim[1], ta.dim[1], ta.dim[2]}, line[3] = {many[0], many[1], 0};
  line[2] = dim_mul(b->ds, many[2], many[3]);
  if (all.weight) x = mk_cast(g, x, on_dtype(b, all.weight));
  Val idx = mk_reshape(g, mk_broadcast(g, mk_unsqueeze(g, all.at, 1), many, 4), line, 3);
  Val y = mk_reshape(g, mk_gather_elems(g, mk_reshape(g, x, flat, 3), idx, 2), many, 4);
  if (all.inside) {
    Val zero = mk_like(g, y, 0);
    y = mk_select(g, mk_unsqueeze(g, all.inside, 1), y, zero);
  }
  return all.weight ? mk_contract(g, y, all.weight, "ncpt,npt->ncp") : mk_squeeze(g, y, 3);
}

/* ---- GridSample ---- */

static Sampler grid_sampler(Build *b) {
  static const Kind kinds[] = {SAMPLE_linear, SAMPLE_nearest, SAMPLE_cubic, SAMPLE_linear,
                               SAMPLE_cubic};
  return (Sampler){.b = b,
                   .kind = kinds[on_choice(b, "mode", "linear nearest cubic bilinear bicubic")],
                   .fill = (Fill)on_choice(b, "padding_mode", "zeros border reflection"),
                   .corners = on_int(b, "align_corners", 0) != 0};
}

void build_gridsample(Build *b) {
  Graph *g = b->g;
  Sampler s = grid_sampler(b);
  Val x = on_in(b, 0), grid = on_in(b, 1), pos[MAX_RANK];
  Type tx = *on_type(b, x), tg = *on_type(b, grid);
  u32 n = tx.rank - 2;
  if (tx.rank < 3 || tg.rank != tx.rank || (dim_is_const(tg.dim[n + 1]) && tg.dim[n + 1] != n))
    on_bad(b, "a grid of rank %u for rank %u, expected equal ranks and a coordinate per axis",
           tg.rank, tx.rank);
  DType type = tx.dt == DT_f64 || tg.dt == DT_f64 ? DT_f64 : DT_f32;
  Dim points = dim_product(b->ds, tg.dim + 1, n), flat[3] = {tg.dim[0], points, n};
  grid = mk_reshape(g, mk_cast(g, grid, type), flat, 3);
  for (u32 i = 0; i < n; i++) { /* the last coordinate belongs to the first axis */
    Val c = mk_squeeze(g, mk_slice_axis(g, grid, 2, n - 1 - i, 1), 2),
        d = mk_extent(g, tx.dim[2 + i], type);
    c = mk_addk(g, c, 1);
    if (s.corners) {
      Val less = mk_addk(g, d, -1);
      pos[i] = mk_mul(g, mk_mulk(g, c, 0.5), less);
    } else
      pos[i] = mk_mulk(g, mk_addk(g, mk_mul(g, c, d), -1), 0.5);
  }
  Val y = sample(&s, x, pos, n);
  Dim out[MAX_RANK] = {tx.dim[0], tx.dim[1]};
  for (u32 i = 0; i < n; i++) out[2 + i] = tg.dim[1 + i];
  if (dtype_is_int(tx.dt) && s.kind != SAMPLE_nearest) y = mk_cast_sat(g, y, tx.dt);
  b->out[0] = mk_reshape(g, mk_cast(g, y, tx.dt), out, tx.rank);
}

/* ---- AffineGrid ---- */

/* Coordinates of axis i from -1 to 1, [all points]. */
static Val centred_axis(Build *b, DType dt, const Dim *size, u32 n, u32 i, bool corners) {
  Val k = mk_iota(b->g, dt, size, n, i), d = mk_extent(b->g, size[i], dt);
  Dim points = dim_product(b->ds, size, n);
  if (corners && size[i] == 1)
    k = mk_broadcast(b->g, mk_like(b->g, k, 0), size, n);
  else if (corners) {
    Val less = mk_addk(b->g, d, -1);
    k = mk_addk(b->g, mk_div(b->g, mk_mulk(b->g, k, 2), less), -1);
  } else
    k = mk_addk(b->g, mk_div(b->g, mk_addk(b->g, mk_mulk(b->g, k, 2), 1), d), -1);
  return mk_reshape(b->g, k, &points, 1);
}

void build_affinegrid(Build *b) {
  Graph *g = b->g;
  Val theta = on_wide(b, 0), col[MAX_RANK];
  Dim size[MAX_RANK], out[MAX_RANK];
  u32 rank = on_known_dims(b, 1, size, MAX_RANK), n = rank - 2;
  if (rank < 3 || on_rank(b, theta) != 3 || on_dim(b, theta, 1) != n ||
      on_dim(b, theta, 2) != n + 1)
    on_bad(b, "theta for a size of %u elements: expected [N, 2, 3] or [N, 3, 4]", rank);
  bool corners = on_int(b, "align_corners", 0) != 0;
  for (u32 i = 0; i < n; i++)
    col[n - 1 - i] =
        mk_unsqueeze(g, centred_axis(b, on_dtype(b, theta), size + 2, n, i, corners), 1);
  Dim ones[2] = {dim_product(b->ds, size + 2, n), 1};
  col[n] = mk_broadcast(g, mk_like(g, theta, 1), ones, 2);
  Val grid = mk_contract(g, theta, mk_concat(g, col, n + 1, 1), "nij,pj->npi");
  out[0] = size[0];
  for (u32 i = 0; i < n; i++) out[1 + i] = size[2 + i];
  out[n + 1] = n;
  on_set_output(b, mk_reshape(g, grid, out, n + 2));
}

/* ---- DeformConv ---- */

typedef struct Deform {
  u32 n; /* spatial axes */
  i64 kernel[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK], pad[2 * MAX_RANK];
  i64 group, offset_group, taps; /* taps: number of kernel elements */
} Deform;

static Deform deform_read(Build *b, Val x, Val w) {
  Deform d = {.n = on_rank(b, x) - 2, .taps = 1};
  if (on_rank(b, x) < 3 || on_rank(b, w) != on_rank(b, x))
    on_bad(b, "X has rank %u and W %u, expected equal ranks of at least 3", on_rank(b, x),
           on_rank(b, w));
  d.group = on_int(b, "group", 1);
  d.offset_group = on_int(b, "offset_group", 1);
  for (u32 i = 0; i < d.n; i++) {
    d.kernel[i] = on_static_dim(b, w, 2 + i);
    u64 taps;
    if (!size_mul((u64)d.taps, (u64)d.kernel[i], &taps) || taps > (1u << 20))
      on_bad(b, "the kernel has more than 2^20 elements");
    d.taps = (i64)taps;
  }
  on_int_list(b, "strides", d.stride, d.n, 0, 1);
  on_int_list(b, "dilations", d.dilation, d.n, 0, 1);
  on_int_list(b, "pads", d.pad, 2 * d.n, 0, 0);
  i64 channels = on_static_dim(b, x, 1), out = on_static_dim(b, w, 0);
  if (d.group < 1 || d.offset_group < 1 || channels % d.offset_group || out % d.group ||
      on_static_dim(b, w, 1) * d.group != channels)
    on_bad(b, "found %lld channels, %lld groups and %lld offset groups, expected divisors",
           (long long)channels, (long long)d.group, (long long)d.offset_group);
  return d;
}

/* Position of each kernel element along axis i without offsets: [taps, outputs]. */
static Val regular_place(Build *b, const Deform *d, DType dt, const Dim *out, u32 i) {
  Dim grid[MAX_RANK], flat[2] = {d->taps, dim_product(b->ds, out, d->n)}, left[2] = {d->taps, 1};
  for (u32 k = 0; k < d->n; k++) grid[k] = d->kernel[k];
  Val tap = mk_reshape(b->g, mk_iota(b->g, dt, grid, d->n, i), left, 2);
  Val o = mk_reshape(b->g, mk_iota(b->g, dt, out, d->n, i), flat + 1, 1);
  o = mk_addk(b->g, mk_mulk(b->g, o, (double)d->stride[i]), -(double)d->pad[i]);
  return mk_add(b->g, mk_mulk(b->g, tap, (double)d->dilation[i]), o);
}

void build_deformconv(Build *b) {
  Graph *g = b->g;
  Val x = on_wide(b, 0), w = on_wide(b, 1), offset = on_wide(b, 2), pos[MAX_RANK];
  Deform d = deform_read(b, x, w);
  DType type = on_dtype(b, x);
  Type tx = *on_type(b, x), to = *on_type(b, offset);
  if (to.rank != tx.rank) on_bad(b, "the offset has rank %u, expected %u", to.rank, tx.rank);
  const Dim *out = to.dim + 2;
  Dim points = dim_product(b->ds, out, d.n), batch = dim_mul(b->ds, tx.dim[0], d.offset_group);
  Dim of[4] = {batch, d.taps, d.n, points}, line[2] = {batch, dim_mul(b->ds, d.taps, points)};
  if (to.dim[1] != d.offset_group * d.taps * (i64)d.n)
    on_bad(b, "the offset does not have one element per tap and axis");
  offset = mk_reshape(g, mk_cast(g, offset, type), of, 4);
  for (u32 i = 0; i < d.n; i++) {
    Val move = mk_squeeze(g, mk_slice_axis(g, offset, 2, i, 1), 2);
    pos[i] = mk_reshape(g, mk_add(g, move, regular_place(b, &d, type, out, i)), line, 2);
  }
  Dim parts[MAX_RANK] = {batch, tx.dim[1] / d.offset_group};
  for (u32 i = 0; i < d.n; i++) parts[2 + i] = tx.dim[2 + i];
  Sampler s = {.b = b, .kind = SAMPLE_linear, .fill = FILL_zeros};
  Val y = sample(&s, mk_reshape(g, x, parts, tx.rank), pos, d.n);
  if (on_has(b, 4)) {
    Dim shape[3] = {batch, 1, line[1]};
    y = mk_mul(g, y, mk_reshape(g, mk_cast(g, b->in[4], type), shape, 3));
  }
  i64 deep = on_static_dim(b, w, 1), wide = on_static_dim(b, w, 0);
  Dim cols[5] = {tx.dim[0], d.group, deep, d.taps, points},
      rows[4] = {d.group, wide / d.group, deep, d.taps};
  Val weights = mk_reshape(g, mk_cast(g, w, type), rows, 4);
  y = mk_contract(g, mk_reshape(g, y, cols, 5), weights, "ngckp,gmck->ngmp");
  Dim shape[MAX_RANK] = {tx.dim[0], wide};
  for (u32 i = 0; i < d.n; i++) shape[2 + i] = out[i];
  y = mk_reshape(g, y, shape, tx.rank);
  if (on_has(b, 3)) y = mk_add(g, y, mk_expand_tail(g, mk_cast(g, b->in[3], type), d.n));
  on_set_output(b, y);
}
