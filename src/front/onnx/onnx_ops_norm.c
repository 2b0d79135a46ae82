/* onnx_ops_norm.c: normalization, softmax and losses.
 *
 * All compute on widened operands and round once at the end, even where function bodies of the
 * standard round in between. Means and variances are population statistics.
 */
#include "front/onnx/onnx_builder.h"

/* Casts a parameter to the type in which x is computed. */
static Val as_type_of(Build *b, Val v, Val x) {
  return mk_cast(b->g, v, on_dtype(b, x));
}

/* ---- BatchNormalization ---- */

typedef struct Batch {
  Val x, scale, bias, mean, var; /* widened; parameters broadcast against x */
  i64 axes[MAX_RANK];            /* reduced axes */
  u32 n;
} Batch;

/* spatial = 0: statistics per position, not only per channel. */
static Val batch_param(Build *b, u32 i, Val x, bool spatial) {
  Val v = on_in(b, i);
  const Type *t = on_type(b, x);
  if (spatial || t->rank < 2) return compose_per_channel(b->g, v, x);
  return as_type_of(b, mk_reshape(b->g, v, t->dim + 1, t->rank - 1), x);
}

static Batch batch_read(Build *b) {
  Batch s = {.x = on_wide(b, 0)};
  bool spatial = b->opset >= 9 || on_int(b, "spatial", 1);
  s.scale = batch_param(b, 1, s.x, spatial);
  s.bias = batch_param(b, 2, s.x, spatial);
  s.mean = batch_param(b, 3, s.x, spatial);
  s.var = batch_param(b, 4, s.x, spatial);
  for (u32 i = 0; i < on_rank(b, s.x); i++)
    if (i == 0 || (spatial && i != 1)) s.axes[s.n++] = i;
  return s;
}

static Val blend(Build *b, Val old, Val now, double momentum) {
  Val fresh = mk_mulk(b->g, now, 1 - momentum);
  return mk_add(b->g, mk_mulk(b->g, old, momentum), fresh);
}

/* Up to opset 13, further outputs (mean, var, saved mean, saved var) select training mode. */
void build_batchnorm(Build *b) {
  DType dt = on_dtype(b, on_in(b, 0));
  Batch s = batch_read(b);
  double eps = on_float(b, "epsilon", 1e-5f), momentum = on_float(b, "momentum", 0.9f);
  bool more = false;
  for (u32 i = 1; i < b->nout; i++) more = more || on_wants(b, i);
  bool file =
      b->opset >= 14 ? on_int(b, "training_mode", 0) != 0 : more && !on_int(b, "is_test", 0);
  if (more && !file) on_bad(b, "outputs after the first exist in training mode only");
  bool train = on_training(b, file);
  if (!train) {
    b->out[0] =
        mk_cast(b->g, compose_batch_norm(b->g, s.x, s.scale, s.bias, s.mean, s.var, eps), dt);
    for (u32 i = 1; i < b->nout; i++) b->out[i] = on_in(b, i % 2 ? 3 : 4);
    return;
  }
  Val mean = mk_mean(b->g, s.x, s.axes, s.n, true), d = mk_sub(b->g, s.x, mean);
  Val var = mk_mean(b->g, mk_mul(b->g, d, d), s.axes, s.n, true);
  b->out[0] = mk_cast(b->g, compose_batch_norm(b->g, s.x, s.scale, s.bias, mean, var, eps), dt);
  Val stat[4] = {blend(b, s.mean, mean, momentum), blend(b, s.var, var, momentum), mean, var};
  for (u32 i = 1; i < 5; i++) {
    bool drifts = i < 3 && b->g->trains, wanted = i < b->nout && on_wants(b, i);
    if (!drifts && !wanted) continue;
    Val like = on_in(b, i % 2 ? 3 : 4);
    Type t = *on_type(b, like);
    Val next = mk_cast(b->g, mk_reshape(b->g, stat[i - 1], t.dim, t.rank), t.dt);
    if (drifts) *vec_push(&b->c->work, &b->g->drift) = (RunningStat){like, next};
    if (wanted) b->out[i] = next;
  }
}

/* ---- other normalizations ---- */

void build_instancenorm(Build *b) {
  Val x = on_wide(b, 0);
  i64 axes[MAX_RANK];
  if (on_rank(b, x) < 2) on_bad(b, "the operand has rank %u, expected at least 2", on_rank(b, x));
  u32 n = axes_from(b->g, x, 2, axes);
  Val y = compose_normalize(b->g, x, axes, n, on_float(b, "epsilon", 1e-5f), NULL, NULL);
  y = mk_mul(b->g, y, compose_per_channel(b->g, on_in(b, 1), x));
  y = mk_add(b->g, y, compose_per_channel(b->g, on_in(b, 2), x));
  on_set_output(b, y);
}

static DType stash_type(Build *b) {
  DType dt = dtype_from_onnx(on_int(b, "stash_type", 1));
  if (!dtype_is_float(dt))
    on_bad(b, "stash_type %lld is not a float type", (long long)on_int(b, "stash_type", 1));
  return dt;
}

/* The operand in the precision of the statistics, at least stash_type. */
static Val stashed(Build *b, Val x, DType stash) {
  x = mk_widen(b->g, x);
  return stash == DT_f64 ? mk_cast(b->g, x, DT_f64) : x;
}

void build_layernorm(Build *b) {
  DType dt = on_dtype(b, on_in(b, 0)), stash = stash_type(b);
  Val x = stashed(b, b->in[0], stash), mean, inv;
  i64 axes[MAX_RANK];
  u32 n = axes_from(b->g, x, on_axis_of(b, x, -1), axes);
  Val y = compose_normalize(b->g, x, axes, n, on_float(b, "epsilon", 1e-5f), &mean, &inv);
  b->out[0] = mk_cast(b->g, compose_affine(b->g, y, on_in(b, 1), on_opt(b, 2)), dt);
  if (on_wants(b, 1)) b->out[1] = mk_cast(b->g, mean, stash);
  if (on_wants(b, 2)) b->out[2] = mk_cast(b->g, inv, stash);
}

void build_rmsnorm(Build *b) {
  DType dt = on_dtype(b, on_in(b, 0)), stash = stash_type(b);
  Val x = stashed(b, b->in[0], stash);
  i64 axes[MAX_RANK];
  u32 n = axes_from(b->g, x, on_axis_of(b, x, -1), axes);
  Val inv, y = compose_rms_norm(b->g, x, axes, n, on_float(b, "epsilon", 1e-5f), &inv);
  b->out[0] = mk_cast(b->g, compose_affine(b->g, y, on_in(b, 1), 0), dt);
  if (on_wants(b, 1)) b->out[1] = mk_cast(b->g, inv, stash); /* SimplifiedLayerNormalization */
}

/* Scale and bias have one element per group (opset 18) or per channel (from 21). */
void build_groupnorm(Build *b) {
  Val x = stashed(b, on_in(b, 0), stash_type(b));
  Val y = compose_group_norm(b->g, x, on_int(b, "num_groups", 0), on_in(b, 1), on_in(b, 2),
                             b->opset < 21, on_float(b, "epsilon", 1e-5f));
  on_set_output(b, y);
}

/* The sum of squares over neighboring channels is a pool along the channel axis. */
void build_lrn(Build *b) {
  Val x = on_wide(b, 0);
  u32 rank = on_rank(b, x), n = rank - 1;
  i64 size = on_int(b, "size", 0);
  double alpha = on_float(b, "alpha", 1e-4f), beta = on_float(b, "beta", 0.75);
  if (rank < 2) on_bad(b, "the operand has rank %u, expected at least 2", rank);
  if (size < 1 || size > INT32_MAX) on_bad(b, "size is %lld, expected at least 1", (long long)size);
  i64 window[MAX_RANK], one[MAX_RANK], lo[MAX_RANK] = {(size - 1) / 2}, hi[MAX_RANK] = {size / 2};
  for (u32 i = 0; i < n; i++) window[i] = one[i] = 1;
  window[0] = size;
  Val sum = mk_pool(b->g, OP_pool_sum, mk_mul(b->g, x, x), n, window, one, one, lo, hi);
  Val base = mk_addk(b->g, mk_mulk(b->g, sum, alpha / (double)size), on_float(b, "bias", 1));
  on_set_output(b, mk_div(b->g, x, mk_pow(b->g, base, mk_like(b->g, x, beta))));
}

/* A vector of norm 0 is unchanged. */
void build_lpnorm(Build *b) {
  Val x = on_wide(b, 0), norm;
  i64 axis = on_axis_of(b, x, -1), p = on_int(b, "p", 2);
  if (p != 1 && p != 2) on_bad(b, "p must be 1 or 2, found %lld", (long long)p);
  Val term = p == 1 ? mk_abs(b->g, x) : mk_mul(b->g, x, x);
  norm = mk_reduce(b->g, OP_reduce_sum, term, &axis, 1, true);
  if (p == 2) norm = mk_sqrt(b->g, norm);
  Val zero = mk_like(b->g, x, 0), none = mk_eq(b->g, norm, zero);
  on_set_output(b, mk_select(b->g, none, zero, mk_div(b->g, x, norm)));
}

void build_meanvariance(Build *b) {
  Val x = on_wide(b, 0);
  i64 axes[MAX_RANK] = {0, 2, 3};
  i32 n = on_ints(b, "axes", axes, MAX_RANK);
  if (n < 0) n = 3;
  on_axes(b, axes, (u32)n, on_rank(b, x));
  Val d = mk_sub(b->g, x, mk_mean(b->g, x, axes, (u32)n, true));
  Val deviation = mk_sqrt(b->g, mk_mean(b->g, mk_mul(b->g, d, d), axes, (u32)n, true));
  on_set_output(b, mk_div(b->g, d, mk_addk(b->g, deviation, 1e-9)));
}

/* ---- softmax ---- */

/* Before opset 13 all axes from `axis` on are normalized together. */
static u32 softmax_axes(Build *b, Val x, i64 *axes) {
  u32 axis = on_axis_of(b, x, b->opset < 13 ? 1 : -1);
  if (b->opset < 13) return axes_from(b->g, x, axis, axes);
  axes[0] = axis;
  return 1;
}

/* Argument 1: LogSoftmax. */
void build_softmax(Build *b) {
  i64 axes[MAX_RANK];
  Val x = on_wide(b, 0);
  u32 n = softmax_axes(b, x, axes);
  on_set_output(b, (b->arg ? compose_log_softmax : compose_softmax)(b->g, x, axes, n));
}

/* 1 at the first maximum, 0 elsewhere. */
void build_hardmax(Build *b) {
  Val x = on_in(b, 0);
  Type t = *on_type(b, x);
  u32 axis = on_axis(b, on_int(b, "axis", b->opset < 13 ? 1 : -1), t.rank);
  Dim flat[2] = {dim_product(b->ds, t.dim, axis), dim_product(b->ds, t.dim + axis, t.rank - axis)};
  if (b->opset < 13) {
    x = mk_reshape(b->g, x, flat, 2);
    axis = 1;
  }
  Type u = *on_type(b, x);
  Dim dim[MAX_RANK];
  for (u32 i = 0; i < u.rank; i++) dim[i] = i == axis ? u.dim[i] : 1;
  Val top = mk_arg(b->g, OP_argmax, x, axis, true, false);
  Val hit = mk_eq(b->g, mk_iota(b->g, DT_i64, dim, u.rank, axis), top);
  b->out[0] = mk_reshape(b->g, mk_cast(b->g, hit, t.dt), t.dim, t.rank);
}

/* ---- losses ---- */

/* Loss of log-probabilities [N, C, ...] and labels [N, ...]; ignore_index has weight 0. */
static Val likelihood_loss(Build *b, Val logp, Val label, Val weight) {
  u32 how = on_choice(b, "reduction", "mean sum none");
  bool mean = how == 0, sum = how == 1;
  if (on_rank(b, logp) < 2 || on_rank(b, label) != on_rank(b, logp) - 1)
    on_bad(b, "labels have rank %u and scores rank %u, expected one less and at least 2",
           on_rank(b, label), on_rank(b, logp));
  bool ignores = on_has_attr(b, "ignore_index");
  i64 axes[MAX_RANK];
  Val zero = mk_like(b->g, logp, 0), factor = 0, skip = 0;
  if (ignores) { /* ignore_index may be out of range */
    Val index =
        mk_cast(b->g, mk_ints(b->g, &(i64){on_int(b, "ignore_index", 0)}, 1), on_dtype(b, label));
    skip = mk_eq(b->g, label, mk_reshape(b->g, index, NULL, 0));
    label = mk_select(b->g, skip, mk_like(b->g, label, 0), label);
  }
  label = on_index(b, label, on_dim(b, logp, 1));
  Val picked = mk_gather_elems(b->g, logp, mk_unsqueeze(b->g, label, 1), 1);
  Val loss = mk_neg(b->g, mk_squeeze(b->g, picked, 1));
  if (weight) factor = mk_gather(b->g, as_type_of(b, weight, logp), label, 0);
  if (factor) loss = mk_mul(b->g, loss, factor);
  if (ignores) {
    loss = mk_select(b->g, skip, zero, loss);
    factor = mk_select(b->g, skip, zero, factor ? factor : mk_like(b->g, logp, 1));
  }
  if (!mean && !sum) return loss;
  u32 n = axes_from(b->g, loss, 0, axes);
  if (mean && !factor) return mk_mean(b->g, loss, axes, n, false);
  loss = mk_reduce(b->g, OP_reduce_sum, loss, axes, n, false);
  if (!mean) return loss;
  return mk_div(b->g, loss, mk_reduce(b->g, OP_reduce_sum, factor, axes, n, false));
}

void build_nllloss(Build *b) {
  on_set_output(b, likelihood_loss(b, on_wide(b, 0), on_in(b, 1), on_opt(b, 2)));
}

void build_crossentropyloss(Build *b) {
  DType dt = on_dtype(b, on_in(b, 0));
  static const i64 channels = 1;
  if (on_rank(b, b->in[0]) < 2)
    on_bad(b, "scores have rank %u, expected 2 or more", on_rank(b, b->in[0]));
  Val logp = compose_log_softmax(b->g, mk_widen(b->g, b->in[0]), &channels, 1);
  b->out[0] = mk_cast(b->g, likelihood_loss(b, logp, on_in(b, 1), on_opt(b, 2)), dt);
  if (on_wants(b, 1)) b->out[1] = mk_cast(b->g, logp, dt);
}
