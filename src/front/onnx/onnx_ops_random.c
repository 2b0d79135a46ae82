/* onnx_ops_random.c: random operators.
 *
 * All are functions of OP_random, a uniform value per element that depends on the seeds of node and
 * run and on the element index. The standard does not define a generator, so only type, shape and
 * distribution agree with other runtimes.
 */
#include "front/onnx/onnx_import.h"

#include <string.h>

/* The seed attribute, or a default that differs between nodes. */
static i64 seed_of(Build *b) {
  const OnnxAttr *given = on_attr(b, "seed");
  if (!given) return (i64)b->im->steps * 0x9e3779b9 + 1;
  if (given->type == OA_int) return given->i;
  float f = (float)on_float(b, "seed", 0);
  u32 bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

/* Shape and dtype: from attributes, or from the operand for the *Like operators. */
static DType target(Build *b, bool like, Dim *dim, u32 *rank) {
  DType dt = DT_f32;
  if (like) {
    const Type *t = on_type(b, on_in(b, 0));
    dt = t->dt;
    *rank = t->rank;
    memcpy(dim, t->dim, t->rank * sizeof *dim);
  } else {
    i32 n = on_ints(b, "shape", dim, MAX_RANK);
    if (n < 0) on_bad(b, "attribute shape is missing");
    for (i32 i = 0; i < n; i++)
      if (dim[i] < 0)
        on_bad(b, "shape: element %d is %lld, expected at least 0", i, (long long)dim[i]);
    *rank = (u32)n;
  }
  if (on_has_attr(b, "dtype")) dt = dtype_from_onnx(on_int(b, "dtype", 0));
  if (!dt)
    on_bad(b, "dtype is %lld, expected an element type of ONNX", (long long)on_int(b, "dtype", 0));
  return dt;
}

static Val uniform(Build *b, DType dt, const Dim *dim, u32 rank, i64 salt) {
  return mk_random(b->g, dtype_acc(dt), dim, rank, seed_of(b) + salt);
}

static DType float_target(Build *b, Dim *dim, u32 *rank) {
  DType dt = target(b, b->arg != 0, dim, rank);
  if (!dtype_is_float(dt))
    on_unsupported(b, "the element type is %s, expected a float type", dtype_info[dt].name);
  return dt;
}

void build_random_uniform(Build *b) {
  Dim dim[MAX_RANK];
  u32 rank;
  DType dt = float_target(b, dim, &rank);
  double low = on_float(b, "low", 0), high = on_float(b, "high", 1);
  Val u = uniform(b, dt, dim, rank, 0);
  b->out[0] = mk_cast(b->g, mk_addk(b->g, mk_mulk(b->g, u, high - low), low), dt);
}

/* Box-Muller: sqrt(-2 log(1 - u)) cos(2 pi v) */
void build_random_normal(Build *b) {
  Dim dim[MAX_RANK];
  u32 rank;
  DType dt = float_target(b, dim, &rank);
  Graph *g = b->g;
  Val u = uniform(b, dt, dim, rank, 0), v = uniform(b, dt, dim, rank, 0x5bd1e995);
  Val r = mk_sqrt(g, mk_mulk(g, mk_log(g, mk_sub(g, mk_like(g, u, 1), u)), -2));
  Val z = mk_mul(g, r, mk_cos(g, mk_mulk(g, v, 6.28318530717958647692)));
  double mean = on_float(b, "mean", 0), scale = on_float(b, "scale", 1);
  b->out[0] = mk_cast(g, mk_addk(g, mk_mulk(g, z, scale), mean), dt);
}

void build_bernoulli(Build *b) {
  Dim dim[MAX_RANK];
  u32 rank;
  DType dt = target(b, true, dim, &rank);
  Val p = on_wide(b, 0), u = uniform(b, on_dtype(b, p), dim, rank, 0);
  b->out[0] = mk_cast(b->g, mk_lt(b->g, u, p), dt);
}

/* x: log-probabilities [batch, classes]. The sample is the number of prefix sums at or below u. */
void build_multinomial(Build *b) {
  Graph *g = b->g;
  Val x = on_wide(b, 0);
  if (on_rank(b, x) != 2) on_bad(b, "the operand has rank %u, expected 2", on_rank(b, x));
  i64 samples = on_int(b, "sample_size", 1), axis = 1, last = 2;
  DType dt = dtype_from_onnx(on_int(b, "dtype", 6));
  if (samples < 1 || samples > INT32_MAX || (dt != DT_i32 && dt != DT_i64))
    on_bad(b, "sample_size is %lld and dtype %lld, expected 1 or more, and int32 or int64",
           (long long)samples, (long long)on_int(b, "dtype", 6));
  Val cdf = mk_cum(g, OP_cumsum, compose_softmax(g, x, &axis, 1), 1, false, false);
  Dim classes = on_dim(b, x, 1), shape[3] = {on_dim(b, x, 0), samples, 1};
  Val u = mk_random(g, on_dtype(b, x), shape, 3, seed_of(b));
  Val below = mk_cast(g, mk_le(g, mk_unsqueeze(g, cdf, 1), u), DT_i64);
  Val n = mk_reduce(g, OP_reduce_sum, below, &last, 1, false);
  b->out[0] = mk_cast(g, mk_min(g, n, mk_extent(g, dim_addk(b->ds, classes, -1), DT_i64)), dt);
}

/* Scales the kept elements to preserve the mean. */
void on_dropout(Build *b, double ratio) {
  Graph *g = b->g;
  Val x = on_wide(b, 0);
  Type t = *on_type(b, b->in[0]);
  if (!(ratio > 0 && ratio < 1)) on_bad(b, "ratio is %g, expected 0 to 1", ratio);
  Val u = uniform(b, DT_f32, t.dim, t.rank, 0), keep = mk_ge(g, u, mk_like(g, u, ratio));
  Val zero = mk_like(g, x, 0);
  Val y = mk_select(g, keep, mk_mulk(g, x, 1 / (1 - ratio)), zero);
  b->out[0] = mk_cast(g, y, t.dt);
  if (on_wants(b, 1)) b->out[1] = mk_cast(g, keep, b->opset >= 10 ? DT_bool : t.dt);
}
