/* onnx_ops_signal.c: DFT, STFT, window functions, MelWeightMatrix.
 *
 * A transform of length n = p * q is a transform of length p, a product with twiddle factors, and a
 * transform of length q (Cooley-Tukey). Short and prime lengths are products with a constant
 * matrix. Complex numbers are two values, real and imaginary, [batch, length]. Lengths must be
 * static.
 */
#include "front/onnx/onnx_builder.h"

#include <math.h>

typedef struct Complex {
  Val re, im; /* im 0: real */
} Complex;

enum { DIRECT = 48 }; /* longest divisible length that uses one matrix */
#define DFT_MAX    ((i64)1 << 24)
#define DFT_MATRIX ((i64)1 << 26) /* maximum matrix elements for a prime length */

static const double turn = 6.283185307179586476925286766559;

/* cos and sin of sign * 2 pi (row * col mod n) / n, [rows, cols]. */
static Complex roots(Build *b, DType dt, i64 rows, i64 cols, i64 n, int sign) {
  i64 dim[2] = {rows, cols};
  Tensor *re = tensor_new(&b->c->work, dt, dim, 2), *im = tensor_new(&b->c->work, dt, dim, 2);
  for (i64 i = 0; i < rows; i++)
    for (i64 j = 0; j < cols; j++) {
      double at = turn * (double)(i * j % n) / (double)n;
      tensor_set(re, (u64)(i * cols + j), (Scalar){.f = scalar_round(dt, cos(at))});
      tensor_set(im, (u64)(i * cols + j), (Scalar){.f = scalar_round(dt, sign * sin(at))});
    }
  return (Complex){mk_const(b->g, re), mk_const(b->g, im)};
}

static Complex multiply(Build *b, Complex x, Complex y) {
  Complex r = {mk_mul(b->g, x.re, y.re), mk_mul(b->g, x.re, y.im)};
  if (!x.im) return r;
  r.re = mk_sub(b->g, r.re, mk_mul(b->g, x.im, y.im));
  r.im = mk_add(b->g, r.im, mk_mul(b->g, x.im, y.re));
  return r;
}

static Complex contract(Build *b, Complex x, Complex y, const char *spec) {
  Graph *g = b->g;
  Complex r = {mk_contract(g, x.re, y.re, spec), mk_contract(g, x.re, y.im, spec)};
  if (!x.im) return r;
  r.re = mk_sub(g, r.re, mk_contract(g, x.im, y.im, spec));
  r.im = mk_add(g, r.im, mk_contract(g, x.im, y.re, spec));
  return r;
}

static Complex reshaped(Build *b, Complex x, const Dim *dim, u32 rank) {
  return (Complex){mk_reshape(b->g, x.re, dim, rank), x.im ? mk_reshape(b->g, x.im, dim, rank) : 0};
}

/* The largest divisor of n up to DIRECT; 1 if there is none. */
static i64 split(i64 n) {
  for (i64 p = DIRECT; p > 1; p--)
    if (n % p == 0) return p;
  return 1;
}

/* First `keep` results of the transform of x [batch, n]. Recursion depth: one level per divisor. */
static Complex transform(Build *b, Complex x, i64 n, i64 keep, int sign) {
  Graph *g = b->g;
  Dim batch = on_dim(b, x.re, 0);
  DType dt = on_dtype(b, x.re);
  i64 p = n <= DIRECT ? 1 : split(n), q = n / p;
  if (p == 1) {
    if (keep > DFT_MATRIX / n)
      on_unsupported(
          b, "the transform has the prime length %lld, expected a length with smaller factors",
          (long long)n);
    return contract(b, x, roots(b, dt, n, keep, n, sign), "bj,jk->bk");
  }
  Dim grid[3] = {batch, p, q}, row[2] = {dim_mul(b->ds, batch, p), q}, line[2] = {batch, n};
  Complex root = roots(b, dt, p, p, p, sign);
  Complex y = contract(b, reshaped(b, x, grid, 3), root, "bjq,jk->bkq");
  y = multiply(b, y, roots(b, dt, p, q, n, sign));
  y = reshaped(b, transform(b, reshaped(b, y, row, 2), q, q, sign), grid, 3);
  y.re = mk_transpose(g, y.re, (const i64[]){0, 2, 1});
  y.im = mk_transpose(g, y.im, (const i64[]){0, 2, 1});
  y = reshaped(b, y, line, 2);
  return (Complex){mk_slice_axis(g, y.re, 1, 0, keep), mk_slice_axis(g, y.im, 1, 0, keep)};
}

/* Crops or zero-pads x [batch, have] to n. */
static Val fit(Build *b, Val x, i64 n) {
  i64 have = on_static_dim(b, x, 1);
  if (have >= n) return mk_slice_axis(b->g, x, 1, 0, n);
  Dim lo[2] = {0}, hi[2] = {0, n - have};
  return mk_pad(b->g, x, mk_like(b->g, x, 0), lo, hi, NULL);
}

/* Elements n / 2 - 1 (or n / 2 for odd n) down to 1 of x [batch, n / 2 + 1]. */
static Val mirrored(Build *b, Val x, i64 n) {
  i64 count = n - (n / 2 + 1);
  Dim start[2] = {0, count}, size[2] = {on_dim(b, x, 0), count};
  return mk_slice(b->g, x, start, size, (const i64[]){1, -1});
}

/* The other half of the spectrum of a real signal. */
static Complex completed(Build *b, Complex x, i64 n) {
  Graph *g = b->g;
  if (n < 3) return x;
  Val re[2] = {x.re, mirrored(b, x.re, n)};
  x.re = mk_concat(g, re, 2, 1);
  if (!x.im) return x;
  Val im[2] = {x.im, mk_neg(g, mirrored(b, x.im, n))};
  x.im = mk_concat(g, im, 2, 1);
  return x;
}

static i64 check_length(Build *b, i64 n) {
  if (n < 1 || n > DFT_MAX)
    on_bad(b, "the length of the transform is %lld, expected 1 to 2^24", (long long)n);
  return n;
}

/* Splits x [..., 1 or 2] into real and imaginary parts [batch, length], with `axis` last. */
static Complex parts_of(Build *b, Val x, u32 axis) {
  Graph *g = b->g;
  Type t = *on_type(b, x);
  i64 perm[MAX_RANK];
  u32 k = 0, last = t.rank - 1;
  for (u32 i = 0; i < last; i++)
    if (i != axis) perm[k++] = i;
  perm[k] = axis;
  Val part[2] = {0};
  if (t.dim[last] != 1 && t.dim[last] != 2)
    on_bad(b, "the last extent is another number, expected 1 (real) or 2 (complex)");
  for (u32 i = 0; i < (u32)t.dim[last]; i++) {
    Val v = mk_transpose(g, mk_squeeze(g, mk_slice_axis(g, x, last, i, 1), last), perm);
    Dim flat[2] = {1, t.dim[axis]};
    for (u32 j = 0; j < last; j++)
      if (j != axis) flat[0] = dim_mul(b->ds, flat[0], t.dim[j]);
    part[i] = mk_reshape(g, v, flat, 2);
  }
  return (Complex){part[0], part[1]};
}

/* Inverse of parts_of for results of length n; the last extent of a real result is 1. */
static Val join_parts(Build *b, Complex y, const Type *t, u32 axis, i64 n) {
  Graph *g = b->g;
  Dim dim[MAX_RANK];
  u32 k = 0, last = t->rank - 1;
  for (u32 i = 0; i < last; i++)
    if (i != axis) dim[k++] = t->dim[i];
  dim[k] = n;
  Val part[2] = {y.re, y.im};
  u32 parts = y.im ? 2 : 1;
  for (u32 i = 0; i < parts; i++)
    part[i] =
        mk_unsqueeze(g, mk_move_axis(g, mk_reshape(g, part[i], dim, last), last - 1, axis), last);
  return mk_concat(g, part, parts, last);
}

void build_dft(Build *b) {
  Val x = on_wide(b, 0);
  Type t = *on_type(b, x);
  if (t.rank < 2) on_bad(b, "the operand has rank %u, expected at least 2", t.rank);
  bool inverse = on_int(b, "inverse", 0) != 0, half = on_int(b, "onesided", 0) != 0;
  i64 where = b->opset < 20 ? on_int(b, "axis", 1) : -2, n = 0;
  if (b->opset >= 20 && on_has(b, 2)) on_known_ints(b, 2, &where, 1);
  u32 axis = on_axis(b, where, t.rank);
  if (axis == t.rank - 1)
    on_bad(b, "axis %u holds real and imaginary parts, expected another axis", axis);
  if (on_has(b, 1)) {
    if (on_known_ints(b, 1, &n, 1) != 1) on_bad(b, "dft_length: expected one element");
  } else {
    n = on_static_dim(b, x, axis);
    if (inverse && half) n = 2 * (n - 1);
  }
  check_length(b, n);
  i64 keep = half && !inverse ? n / 2 + 1 : n, given = half && inverse ? n / 2 + 1 : n;
  Complex c = parts_of(b, x, axis);
  c.re = fit(b, c.re, given);
  if (c.im) c.im = fit(b, c.im, given);
  if (half && inverse) c = completed(b, c, n);
  Complex y = transform(b, c, n, keep, inverse ? 1 : -1);
  if (inverse) {
    y.re = mk_mulk(b->g, y.re, 1 / (double)n);
    y.im = half ? 0 : mk_mulk(b->g, y.im, 1 / (double)n);
  }
  on_set_output(b, join_parts(b, y, &t, axis, keep));
}

/* Windowed frames of the signal, transformed: [batch, frames, bins, 2]. */
void build_stft(Build *b) {
  Graph *g = b->g;
  Val x = on_wide(b, 0);
  Type t = *on_type(b, x);
  i64 step, n = 0;
  if (t.rank != 2 && t.rank != 3) on_bad(b, "the signal has rank %u, expected 3", t.rank);
  if (on_known_ints(b, 1, &step, 1) != 1 || step < 1)
    on_bad(b, "frame_step: expected one positive number");
  if (t.rank == 2) x = mk_unsqueeze(g, x, 2);
  if (on_has(b, 3))
    on_known_ints(b, 3, &n, 1);
  else
    n = on_has(b, 2) ? on_static_dim(b, b->in[2], 0) : on_static_dim(b, x, 1);
  check_length(b, n);
  i64 wide = on_has(b, 2) ? on_static_dim(b, b->in[2], 0) : n;
  if (dim_is_const(t.dim[1]) && t.dim[1] < n)
    on_bad(b, "a frame of %lld samples is longer than the signal", (long long)n);
  Dim frames = dim_addk(b->ds, dim_div(b->ds, dim_addk(b->ds, t.dim[1], -n), step), 1),
      grid[2] = {frames, wide};
  Val along = mk_iota(g, DT_i64, grid, 2, 1);
  Val at = mk_add(g, mk_mulk(g, mk_iota(g, DT_i64, grid, 2, 0), (double)step), along);
  Val f = mk_gather(g, x, at, 1); /* [batch, frames, wide, parts] */
  if (on_has(b, 2)) f = mk_mul(g, f, mk_expand_tail(g, mk_cast(g, b->in[2], on_dtype(b, f)), 1));
  Type tf = *on_type(b, f);
  i64 keep = on_int(b, "onesided", 1) ? n / 2 + 1 : n;
  Complex c = parts_of(b, f, 2);
  c.re = fit(b, c.re, n);
  if (c.im) c.im = fit(b, c.im, n);
  Complex y = transform(b, c, n, keep, -1);
  on_set_output(b, join_parts(b, y, &tf, 2, keep));
}

/* ---- windows ---- */

static DType output_type(Build *b) {
  DType dt = dtype_from_onnx(on_int(b, "output_datatype", 1));
  if (!dtype_is_float(dt) && !dtype_is_int(dt))
    on_bad(b, "output_datatype is another type, expected a type of numbers");
  return dt;
}

/* a - b cos(2 pi i / n) + c cos(4 pi i / n); the argument selects the row. */
void build_window(Build *b) {
  static const double k[3][3] = {{0.5, 0.5, 0}, {25.0 / 46, 21.0 / 46, 0}, {0.42, 0.5, 0.08}};
  const double *row = k[b->arg];
  Graph *g = b->g;
  Dim size;
  if (on_known_dims(b, 0, &size, 1) != 1) on_bad(b, "input 0, size: expected one element");
  Val n = mk_extent(g, size, DT_f64), i = mk_iota(g, DT_f64, &size, 1, 0);
  if (!on_int(b, "periodic", 1)) n = mk_addk(g, n, -1);
  Val at = mk_div(g, mk_mulk(g, i, turn), n);
  Val w = mk_addk(g, mk_mulk(g, mk_cos(g, at), -row[1]), row[0]);
  if (row[2]) w = mk_add(g, w, mk_mulk(g, mk_cos(g, mk_mulk(g, at, 2)), row[2]));
  b->out[0] = mk_cast(g, w, output_type(b));
}

/* ---- MelWeightMatrix ---- */

static double known_number(Build *b, u32 i) {
  const Tensor *t = on_known(b, i);
  if (t->n != 1) on_bad(b, "input %u has %llu elements, expected one", i, (unsigned long long)t->n);
  Scalar s = tensor_get(t, 0);
  return dtype_is_float(t->dt) ? s.f : (double)s.i;
}

static double mel(double hertz) {
  return 2595 * log10(1 + hertz / 700);
}

/* Triangular filters over the bins of a spectrum, evenly spaced on the mel scale. */
void build_melweights(Build *b) {
  double bins = known_number(b, 0), length = known_number(b, 1), rate = known_number(b, 2);
  double lo = mel(known_number(b, 3)), hi = mel(known_number(b, 4));
  if (!(bins >= 1 && bins < 1e6 && length >= 1 && length < 1e8 && rate >= 1))
    on_bad(b,
           "%g bins, a DFT of %g samples and %g samples per second: expected 1 or more, with less "
           "than 1e6 bins and 1e8 samples",
           bins, length, rate);
  i64 n = (i64)bins, lines = (i64)length / 2 + 1, dim[2] = {lines, n};
  u64 all;
  if (!size_mul((u64)n, (u64)lines, &all) || all > (1u << 28))
    on_bad(b, "%lld bins of %lld frequencies need more than 2^28 elements", (long long)n,
           (long long)lines);
  i64 *edge = NEWS(&b->c->scratch, i64, (size_t)n + 2);
  for (i64 i = 0; i < n + 2; i++) {
    double hertz = 700 * (pow(10, ((double)i * (hi - lo) / (bins + 2) + lo) / 2595) - 1);
    double at = floor((length + 1) * hertz / rate);
    if (!(at >= 0 && at < (double)lines))
      on_bad(b, "expected 0 <= lower_edge_hertz < upper_edge_hertz within the spectrum");
    edge[i] = (i64)at;
  }
  Tensor *t = tensor_new(&b->c->work, DT_f64, dim, 2);
  for (i64 i = 0; i < n; i++) {
    i64 left = edge[i], mid = edge[i + 1], right = edge[i + 2];
    for (i64 j = left; j <= mid; j++)
      tensor_set(t, (u64)(j * n + i),
                 (Scalar){.f = mid > left ? (double)(j - left) / (double)(mid - left) : 1});
    for (i64 j = mid; j < right; j++)
      tensor_set(t, (u64)(j * n + i), (Scalar){.f = (double)(right - j) / (double)(right - mid)});
  }
  b->out[0] = mk_cast(b->g, mk_const(b->g, t), output_type(b));
}
