/* onnx_ops_ms.c: fused operators of com.microsoft except attention and quantization, and unofficial
 * operators of opset 1.
 *
 * If an operator is one of ai.onnx with another signature, its operands are reordered and the
 * builder of ai.onnx (opset MODERN) does the rest.
 */
#include "front/onnx/onnx_builder.h"

#include <string.h>

enum { MODERN = 21 };

static void finish(Build *b, u32 i, Val x) {
  if (i < b->nout && (i == 0 || on_wants(b, i)))
    b->out[i] = mk_cast(b->g, x, on_dtype(b, b->in[0]));
}

/* ---- products ---- */

/* Swaps the last two axes. batch: first moves axis 0 after the other batch axes. */
static Val transposed(Build *b, Val x, bool batch, bool last) {
  u32 rank = on_rank(b, x);
  i64 perm[MAX_RANK];
  for (u32 i = 0; i < rank; i++) perm[i] = i;
  if (rank < 2) return x;
  if (batch && rank > 2) {
    for (u32 i = 0; i + 2 < rank; i++) perm[i] = i + 1;
    perm[rank - 2] = 0;
  }
  if (last) {
    i64 t = perm[rank - 1];
    perm[rank - 1] = perm[rank - 2];
    perm[rank - 2] = t;
  }
  return mk_transpose(b->g, x, perm);
}

void build_fusedmatmul(Build *b) {
  Val x =
      transposed(b, on_wide(b, 0), on_int(b, "transBatchA", 0) != 0, on_int(b, "transA", 0) != 0);
  Val y =
      transposed(b, on_wide(b, 1), on_int(b, "transBatchB", 0) != 0, on_int(b, "transB", 0) != 0);
  double alpha = on_float(b, "alpha", 1);
  Val r = mk_matmul(b->g, x, y);
  finish(b, 0, alpha == 1 ? r : mk_mulk(b->g, r, alpha));
}

void build_fusedconv(Build *b) {
  double p[2] = {0, 0};
  on_floats(b, "activation_params", p, 2);
  b->opset = MODERN;
  build_conv(b);
  Val y = mk_widen(b->g, b->out[0]);
  if (on_has(b, 3)) y = mk_add(b->g, y, mk_widen(b->g, b->in[3]));
  finish(b, 0, on_activated(b, y, str_text(b->c, on_str(b, "activation", "")), p[0], p[1]));
}

void build_fusedgemm(Build *b) {
  b->opset = MODERN;
  build_gemm(b);
  Val y = mk_widen(b->g, b->out[0]);
  double p = on_float(b, "activation_alpha", 0.01), q = on_float(b, "activation_beta", 0);
  finish(b, 0, on_activated(b, y, str_text(b->c, on_str(b, "activation", "")), p, q));
}

/* ---- activations ---- */

static Val with_bias(Build *b) {
  Val x = on_wide(b, 0), bias = on_opt(b, 1);
  return bias ? mk_add(b->g, x, mk_widen(b->g, bias)) : x;
}

void build_biasgelu(Build *b) {
  finish(b, 0, compose_gelu(b->g, with_bias(b), false));
}

void build_fastgelu(Build *b) {
  Val x = with_bias(b), cube = mk_mul(b->g, mk_mul(b->g, x, x), x);
  Val bent = mk_mulk(b->g, cube, 0.035677408136300125);
  Val t = mk_tanh(b->g, mk_add(b->g, mk_mulk(b->g, x, 0.7978845608028654), bent));
  Val up = mk_addk(b->g, t, 1);
  finish(b, 0, mk_mul(b->g, mk_mulk(b->g, x, 0.5), up));
}

void build_quickgelu(Build *b) {
  finish(b, 0, compose_silu(b->g, on_wide(b, 0), on_float(b, "alpha", 1.702f)));
}

/* ---- normalization of a sum; argument 1: RMS ---- */

void build_skipnorm(Build *b) {
  bool simple = b->arg != 0;
  Val skip = on_wide(b, 1), x = mk_add(b->g, on_wide(b, 0), skip);
  Val beta = simple ? 0 : on_opt(b, 3);
  Val bias = on_opt(b, simple ? 3 : 4), mean = 0, inv, y;
  if (bias) x = mk_add(b->g, x, mk_widen(b->g, bias));
  i64 axis = (i64)on_rank(b, x) - 1;
  double eps = on_float(b, "epsilon", 1e-12f);
  if (axis < 0) on_bad(b, "the operand is a scalar, expected rank 1 or more");
  if (simple)
    y = compose_rms_norm(b->g, x, &axis, 1, eps, &inv);
  else
    y = compose_normalize(b->g, x, &axis, 1, eps, &mean, &inv);
  finish(b, 0, compose_affine(b->g, y, on_in(b, 2), beta));
  if (on_wants(b, 1)) b->out[1] = mean ? mean : mk_mean(b->g, x, &axis, 1, true);
  if (on_wants(b, 2)) b->out[2] = inv;
  finish(b, 3, x);
}

/* Looks up rows of the table in input i. */
static Val looked_up(Build *b, u32 i, Val ids) {
  return mk_gather(b->g, on_in(b, i), on_index(b, ids, on_dim(b, b->in[i], 0)), 0);
}

/* Sum of word, position and segment embeddings, normalized; the mask becomes a word count. */
void build_embednorm(Build *b) {
  Graph *g = b->g;
  Val ids = on_in(b, 0), place = on_in(b, 3), position;
  if (on_rank(b, ids) != 2 || on_rank(b, place) != 2)
    on_bad(b, "input_ids has rank %u and position_embedding %u, expected 2", on_rank(b, ids),
           on_rank(b, place));
  DType dt = on_dtype(b, on_in(b, 2)), id = on_dtype(b, ids);
  Dim batch = on_dim(b, ids, 0);
  Val x = mk_widen(g, looked_up(b, 2, ids));
  position =
      on_has(b, 8) ? looked_up(b, 3, b->in[8]) : mk_slice_axis(g, place, 0, 0, on_dim(b, ids, 1));
  x = mk_add(g, x, mk_widen(g, position));
  if (on_has(b, 1) && on_has(b, 4)) x = mk_add(g, x, mk_widen(g, looked_up(b, 4, b->in[1])));
  Val y = compose_normalize(g, x, &(i64){2}, 1, on_float(b, "epsilon", 1e-12f), NULL, NULL);
  b->out[0] = mk_cast(g, compose_affine(b->g, y, on_in(b, 5), on_opt(b, 6)), dt);
  if (on_wants(b, 1)) {
    Val none = mk_full(g, mk_scalar(g, id, 0), &batch, 1);
    Val one = on_has(b, 7) ? mk_eq(g, b->in[7], mk_like(g, b->in[7], 1)) : 0;
    b->out[1] = one ? mk_reduce(g, OP_reduce_sum, mk_cast(g, one, id), &(i64){1}, 1, false) : none;
  }
  if (on_wants(b, 2)) b->out[2] = mk_cast(g, x, dt);
}

/* ---- other signatures of standard operators ---- */

void build_ms_pad(Build *b) {
  b->opset = MODERN;
  build_pad(b);
}

void build_ms_range(Build *b) {
  Val *in = NEWS(&b->c->work, Val, 3);
  in[0] = on_in(b, 0);
  in[1] = on_in(b, 1);
  in[2] = on_has(b, 2) ? b->in[2] : mk_like(b->g, in[0], 1);
  b->in = in;
  b->nin = 3;
  b->opset = MODERN;
  build_range(b);
}

void build_expanddims(Build *b) {
  i64 axis;
  u32 rank = on_rank(b, on_in(b, 0));
  if (on_known_ints(b, 1, &axis, 1) != 1) on_bad(b, "input 1, axis: expected one element");
  b->out[0] = mk_unsqueeze(b->g, b->in[0], on_axis(b, axis, rank + 1));
}

void build_nhwcmaxpool(Build *b) {
  b->in[0] = on_channels(b, on_in(b, 0), true);
  b->opset = MODERN;
  build_maxpool(b);
  b->out[0] = on_channels(b, b->out[0], false);
}

/* Distances between all pairs of rows. */
void build_cdist(Build *b) {
  Graph *g = b->g;
  bool root = on_str_is(b, "metric", "sqeuclidean", "euclidean");
  if (!root && !on_str_is(b, "metric", "sqeuclidean", "sqeuclidean"))
    on_unsupported(b, "metric is '%s', expected euclidean or sqeuclidean",
                   show(b->c, on_str(b, "metric", "")));
  if (on_rank(b, on_in(b, 0)) != 2 || on_rank(b, on_in(b, 1)) != 2)
    on_bad(b, "the operands have rank %u and %u, expected 2", on_rank(b, on_in(b, 0)),
           on_rank(b, on_in(b, 1)));
  Val other = mk_unsqueeze(g, mk_widen(g, b->in[1]), 0);
  Val d = mk_sub(g, mk_unsqueeze(g, mk_widen(g, b->in[0]), 1), other);
  Val s = mk_reduce(g, OP_reduce_sum, mk_mul(g, d, d), &(i64){2}, 1, false);
  finish(b, 0, root ? mk_sqrt(g, s) : s);
}

/* ---- operators of opset 1 written by old exporters of PyTorch and CoreML ---- */

void build_old_affine(Build *b) {
  Val x = on_wide(b, 0);
  finish(b, 0, mk_addk(b->g, mk_mulk(b->g, x, on_float(b, "alpha", 1)), on_float(b, "beta", 0)));
}

void build_old_scale(Build *b) {
  finish(b, 0, mk_mulk(b->g, on_wide(b, 0), on_float(b, "scale", 1)));
}

void build_old_scaledtanh(Build *b) {
  Val t = mk_tanh(b->g, mk_mulk(b->g, on_wide(b, 0), on_float(b, "beta", 1)));
  finish(b, 0, mk_mulk(b->g, t, on_float(b, "alpha", 1)));
}

void build_old_softplus(Build *b) {
  Val e = mk_exp(b->g, mk_mulk(b->g, on_wide(b, 0), on_float(b, "beta", 1)));
  finish(b, 0, mk_mulk(b->g, mk_log(b->g, mk_addk(b->g, e, 1)), on_float(b, "alpha", 1)));
}

/* x * scale + bias per channel. */
void build_old_imagescaler(Build *b) {
  Val x = on_wide(b, 0);
  const OnnxAttr *bias = on_attr(b, "bias");
  u32 rank = on_rank(b, x);
  if (rank < 3) on_bad(b, "the operand has rank %u, expected 4", rank);
  x = mk_mulk(b->g, x, on_float(b, "scale", 1));
  if (bias && bias->type == OA_floats && bias->floats.n) {
    i64 n = bias->floats.n;
    Tensor *t = tensor_new(&b->c->work, on_dtype(b, x), &n, 1);
    for (u32 i = 0; i < n; i++) tensor_set(t, i, (Scalar){.f = (double)bias->floats.at[i]});
    x = mk_add(b->g, x, mk_expand_tail(b->g, mk_const(b->g, t), rank - 2));
  }
  finish(b, 0, x);
}

/* border: left, top, right, bottom. With scale (height, width) only the first two count. */
void build_old_crop(Build *b) {
  Val x = on_in(b, 0);
  Type t = *on_type(b, x);
  i64 border[4], scale[2];
  if (t.rank != 4) on_bad(b, "the operand has rank %u, expected 4", t.rank);
  if (on_ints(b, "border", border, 4) != 4) on_bad(b, "border: expected 4 elements");
  bool sized = on_ints(b, "scale", scale, 2) == 2;
  Dim start[4] = {0, 0, border[1], border[0]}, size[4] = {t.dim[0], t.dim[1]};
  for (u32 i = 0; i < 2; i++) {
    i64 lo = start[2 + i], hi = border[3 - i];
    if (lo < 0 || hi < 0 || lo > INT32_MAX || hi > INT32_MAX)
      on_bad(b, "border removes %lld and %lld elements of axis %u, expected 0 or more",
             (long long)lo, (long long)hi, i + 2);
    size[2 + i] = sized ? scale[i] : dim_addk(b->ds, t.dim[2 + i], -(lo + hi));
    if (sized && scale[i] < 0) on_bad(b, "scale is %lld, expected 0 or more", (long long)scale[i]);
  }
  b->out[0] = mk_slice(b->g, x, start, size, NULL);
}

void build_old_dynamicslice(Build *b) {
  b->opset = 10;
  build_slice(b);
}
