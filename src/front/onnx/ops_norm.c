/* ops_norm.c: builders of normalisations, of softmax and its relatives, and of losses.
 *
 * All compute on widened operands and round once at the end, whatever the standard's function
 * bodies round in between. Means and variances are of the whole population.
 */
#include "front/onnx/builder.h"

/* x as wide as it is computed in: the parameters of a normalisation may have a type of their own.
 */
static Val as_type_of(Build *b, Val v, Val x) {
  return mk_cast(b->g, v, on_dtype(b, x));
}

static u32 axes_from(Build *b, Val x, u32 first, i64 *axes) {
  u32 rank = on_rank(b, x), n = 0;
  for (u32 i = first; i < rank; i++) axes[n++] = i;
  return n;
}

static Val inverse_root(Build *b, Val var, double eps) {
  return mk_map1(b->g, OP_recip, mk_map1(b->g, OP_sqrt, on_addk(b, var, eps)));
}

/* A vector with one entry a channel, shaped to stand against x (channels on axis 1). */
static Val per_channel(Build *b, Val v, Val x) {
  u32 rank = on_rank(b, x);
  if (on_rank(b, v) != 1) on_bad(b, "a parameter has rank %u, expected 1", on_rank(b, v));
  if (rank > 1) {
    Dim have = on_dim(b, v, 0), want = on_dim(b, x, 1);
    if (dim_is_const(have) && dim_is_const(want) && have != want)
      on_bad(b, "a parameter has %lld entries for %lld channels", (long long)have, (long long)want);
  }
  return on_expand_tail(b, as_type_of(b, v, x), rank > 2 ? rank - 2 : 0);
}

/* ---- BatchNormalization ---- */

typedef struct Batch {
  Val x, scale, bias, mean, var; /* widened; parameters broadcast against x */
  i64 axes[MAX_RANK];            /* that statistics are taken over */
  u32 n;
} Batch;

/* spatial = 0: statistics for every place, not only for every channel. */
static Val batch_param(Build *b, u32 i, Val x, bool spatial) {
  Val v = on_in(b, i);
  const Type *t = on_type(b, x);
  if (spatial || t->rank < 2) return per_channel(b, v, x);
  return as_type_of(b, mk_reshape(b->g, v, t->dim + 1, t->rank - 1), x);
}

static Batch batch_read(Build *b) {
  Batch s = {.x = on_widen(b, on_in(b, 0))};
  bool spatial = b->opset >= 9 || on_int(b, "spatial", 1);
  s.scale = batch_param(b, 1, s.x, spatial);
  s.bias = batch_param(b, 2, s.x, spatial);
  s.mean = batch_param(b, 3, s.x, spatial);
  s.var = batch_param(b, 4, s.x, spatial);
  for (u32 i = 0; i < on_rank(b, s.x); i++)
    if (i == 0 || (spatial && i != 1)) s.axes[s.n++] = i;
  return s;
}

/* x * k + (bias - mean * k): both parameters are constants in a model that does not train. */
static Val batch_apply(Build *b, const Batch *s, Val mean, Val var, double eps) {
  Val k = on_mul(b, s->scale, inverse_root(b, var, eps));
  return on_add(b, on_mul(b, s->x, k), on_sub(b, s->bias, on_mul(b, mean, k)));
}

static Val blend(Build *b, Val old, Val now, double momentum) {
  return on_add(b, on_mulk(b, old, momentum), on_mulk(b, now, 1 - momentum));
}

/* Up to opset 13 further outputs ask for training (Y, mean, var, saved mean, saved var); later an
 * attribute. */
void build_batchnorm(Build *b) {
  DType dt = on_dtype(b, on_in(b, 0));
  Batch s = batch_read(b);
  double eps = on_float(b, "epsilon", 1e-5f), momentum = on_float(b, "momentum", 0.9f);
  bool more = false;
  for (u32 i = 1; i < b->nout; i++) more = more || on_wants(b, i);
  bool train =
      b->opset >= 14 ? on_int(b, "training_mode", 0) != 0 : more && !on_int(b, "is_test", 0);
  if (more && !train) on_bad(b, "outputs after the first are there in training mode only");
  if (!train) {
    b->out[0] = on_narrow(b, batch_apply(b, &s, s.mean, s.var, eps), dt);
    return;
  }
  Val mean = on_mean(b, s.x, s.axes, s.n, true), d = on_sub(b, s.x, mean);
  Val var = on_mean(b, on_mul(b, d, d), s.axes, s.n, true);
  b->out[0] = on_narrow(b, batch_apply(b, &s, mean, var, eps), dt);
  Val stat[4] = {blend(b, s.mean, mean, momentum), blend(b, s.var, var, momentum), mean, var};
  for (u32 i = 1; i < b->nout && i < 5; i++) {
    if (!on_wants(b, i)) continue;
    Val like = on_in(b, i % 2 ? 3 : 4);
    Type t = *on_type(b, like);
    b->out[i] = on_narrow(b, mk_reshape(b->g, stat[i - 1], t.dim, t.rank), t.dt);
  }
}

/* ---- other normalisations ---- */

void build_instancenorm(Build *b) {
  Val x = on_widen(b, on_in(b, 0));
  i64 axes[MAX_RANK];
  if (on_rank(b, x) < 2) on_bad(b, "the operand has rank %u, expected at least 2", on_rank(b, x));
  u32 n = axes_from(b, x, 2, axes);
  Val y = on_normalize(b, x, axes, n, on_float(b, "epsilon", 1e-5f), NULL, NULL);
  y = on_mul(b, y, per_channel(b, on_in(b, 1), x));
  y = on_add(b, y, per_channel(b, on_in(b, 2), x));
  b->out[0] = on_narrow(b, y, on_dtype(b, b->in[0]));
}

static DType stash_type(Build *b) {
  DType dt = dtype_from_onnx(on_int(b, "stash_type", 1));
  if (!dtype_is_float(dt)) on_bad(b, "stash_type %lld", (long long)on_int(b, "stash_type", 1));
  return dt;
}

/* The operand in the precision of the statistics: at least that of stash_type. */
static Val stashed(Build *b, Val x, DType stash) {
  x = on_widen(b, x);
  return stash == DT_f64 ? mk_cast(b->g, x, DT_f64) : x;
}

/* y * scale + bias, both optional but the scale, broadcast to y. */
static Val affine(Build *b, Val y, Val scale, Val bias) {
  u32 rank = on_rank(b, y);
  if (on_rank(b, scale) > rank || (bias && on_rank(b, bias) > rank))
    on_bad(b, "scale or bias has a higher rank than the operand");
  y = on_mul(b, y, as_type_of(b, scale, y));
  return bias ? on_add(b, y, as_type_of(b, bias, y)) : y;
}

void build_layernorm(Build *b) {
  DType dt = on_dtype(b, on_in(b, 0)), stash = stash_type(b);
  Val x = stashed(b, b->in[0], stash), mean, inv;
  i64 axes[MAX_RANK];
  u32 n = axes_from(b, x, on_axis(b, on_int(b, "axis", -1), on_rank(b, x)), axes);
  Val y = on_normalize(b, x, axes, n, on_float(b, "epsilon", 1e-5f), &mean, &inv);
  b->out[0] = on_narrow(b, affine(b, y, on_in(b, 1), on_has(b, 2) ? b->in[2] : 0), dt);
  if (on_wants(b, 1)) b->out[1] = on_narrow(b, mean, stash);
  if (on_wants(b, 2)) b->out[2] = on_narrow(b, inv, stash);
}

void build_rmsnorm(Build *b) {
  DType dt = on_dtype(b, on_in(b, 0)), stash = stash_type(b);
  Val x = stashed(b, b->in[0], stash);
  i64 axes[MAX_RANK];
  u32 n = axes_from(b, x, on_axis(b, on_int(b, "axis", -1), on_rank(b, x)), axes);
  Val square = on_mean(b, on_mul(b, x, x), axes, n, true);
  Val inv = inverse_root(b, square, on_float(b, "epsilon", 1e-5f));
  b->out[0] = on_narrow(b, affine(b, on_mul(b, x, inv), on_in(b, 1), 0), dt);
  if (on_wants(b, 1)) b->out[1] = on_narrow(b, inv, stash); /* SimplifiedLayerNormalization */
}

/* Scale and bias have an entry a group (opset 18) or a channel (from 21). */
void build_groupnorm(Build *b) {
  DType dt = on_dtype(b, on_in(b, 0));
  Val x = stashed(b, b->in[0], stash_type(b));
  Type t = *on_type(b, x);
  i64 groups = on_int(b, "num_groups", 0), axes[MAX_RANK];
  if (t.rank < 2 || t.rank == MAX_RANK) on_bad(b, "the operand has rank %u", t.rank);
  if (groups < 1 || (dim_is_const(t.dim[1]) && t.dim[1] % groups))
    on_bad(b, "%lld channels do not divide into %lld groups", (long long)t.dim[1],
           (long long)groups);
  Dim dim[MAX_RANK] = {t.dim[0], groups, dim_div(b->ds, t.dim[1], groups)};
  for (u32 i = 2; i < t.rank; i++) dim[1 + i] = t.dim[i];
  Val y = mk_reshape(b->g, x, dim, t.rank + 1);
  u32 n = axes_from(b, y, 2, axes);
  y = on_normalize(b, y, axes, n, on_float(b, "epsilon", 1e-5f), NULL, NULL);
  if (b->opset >= 21) y = mk_reshape(b->g, y, t.dim, t.rank);
  y = on_mul(b, y, per_channel(b, on_in(b, 1), y));
  y = on_add(b, y, per_channel(b, on_in(b, 2), y));
  b->out[0] = on_narrow(b, mk_reshape(b->g, y, t.dim, t.rank), dt);
}

/* The sum of squares over neighbouring channels is a pool whose window spans the channel axis only.
 */
void build_lrn(Build *b) {
  Val x = on_widen(b, on_in(b, 0));
  u32 rank = on_rank(b, x), n = rank - 1;
  i64 size = on_int(b, "size", 0);
  double alpha = on_float(b, "alpha", 1e-4f), beta = on_float(b, "beta", 0.75);
  if (rank < 2) on_bad(b, "the operand has rank %u, expected at least 2", rank);
  if (size < 1 || size > INT32_MAX) on_bad(b, "size %lld", (long long)size);
  i64 window[MAX_RANK], one[MAX_RANK], lo[MAX_RANK] = {(size - 1) / 2}, hi[MAX_RANK] = {size / 2};
  for (u32 i = 0; i < n; i++) window[i] = one[i] = 1;
  window[0] = size;
  Val sum = mk_pool(b->g, OP_pool_sum, on_mul(b, x, x), n, window, one, one, lo, hi);
  Val base = on_addk(b, on_mulk(b, sum, alpha / (double)size), on_float(b, "bias", 1));
  Val y = on_div(b, x, mk_map2(b->g, OP_pow, base, mk_like(b->g, x, beta)));
  b->out[0] = on_narrow(b, y, on_dtype(b, b->in[0]));
}

/* A vector of norm 0 stays. */
void build_lpnorm(Build *b) {
  Val x = on_widen(b, on_in(b, 0)), norm;
  i64 axis = on_axis(b, on_int(b, "axis", -1), on_rank(b, x)), p = on_int(b, "p", 2);
  if (p != 1 && p != 2) on_bad(b, "p must be 1 or 2, found %lld", (long long)p);
  Val term = p == 1 ? mk_map1(b->g, OP_abs, x) : on_mul(b, x, x);
  norm = mk_reduce(b->g, OP_reduce_sum, term, &axis, 1, true);
  if (p == 2) norm = mk_map1(b->g, OP_sqrt, norm);
  Val zero = mk_like(b->g, x, 0), none = mk_map2(b->g, OP_eq, norm, zero);
  b->out[0] = on_narrow(b, mk_select(b->g, none, zero, on_div(b, x, norm)), on_dtype(b, b->in[0]));
}

void build_meanvariance(Build *b) {
  Val x = on_widen(b, on_in(b, 0));
  i64 axes[MAX_RANK] = {0, 2, 3};
  i32 n = on_ints(b, "axes", axes, MAX_RANK);
  if (n < 0) n = 3;
  on_axes(b, axes, (u32)n, on_rank(b, x));
  Val d = on_sub(b, x, on_mean(b, x, axes, (u32)n, true));
  Val deviation = mk_map1(b->g, OP_sqrt, on_mean(b, on_mul(b, d, d), axes, (u32)n, true));
  b->out[0] = on_narrow(b, on_div(b, d, on_addk(b, deviation, 1e-9)), on_dtype(b, b->in[0]));
}

/* ---- softmax ---- */

/* Before opset 13 all axes from `axis` on count as one. */
static u32 softmax_axes(Build *b, Val x, i64 *axes) {
  u32 axis = on_axis(b, on_int(b, "axis", b->opset < 13 ? 1 : -1), on_rank(b, x));
  if (b->opset < 13) return axes_from(b, x, axis, axes);
  axes[0] = axis;
  return 1;
}

void build_softmax(Build *b) {
  i64 axes[MAX_RANK];
  Val x = on_widen(b, on_in(b, 0));
  u32 n = softmax_axes(b, x, axes);
  b->out[0] = on_narrow(b, on_softmax(b, x, axes, n), on_dtype(b, b->in[0]));
}

static Val log_softmax(Build *b, Val x, const i64 *axes, u32 n) {
  Val d = on_sub(b, x, mk_reduce(b->g, OP_reduce_max, x, axes, n, true));
  Val sum = mk_reduce(b->g, OP_reduce_sum, mk_map1(b->g, OP_exp, d), axes, n, true);
  return on_sub(b, d, mk_map1(b->g, OP_log, sum));
}

void build_logsoftmax(Build *b) {
  i64 axes[MAX_RANK];
  Val x = on_widen(b, on_in(b, 0));
  u32 n = softmax_axes(b, x, axes);
  b->out[0] = on_narrow(b, log_softmax(b, x, axes, n), on_dtype(b, b->in[0]));
}

/* 1 at the first of the largest, 0 elsewhere. */
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
  Val hit = mk_map2(b->g, OP_eq, mk_iota(b->g, DT_i64, dim, u.rank, axis), top);
  b->out[0] = mk_reshape(b->g, mk_cast(b->g, hit, t.dt), t.dim, t.rank);
}

/* ---- losses ---- */

/* Of log-probabilities [N, C, ...] and labels [N, ...]. Entries whose label is ignore_index weigh
 * nothing. */
static Val likelihood_loss(Build *b, Val logp, Val label, Val weight) {
  bool mean = on_str_is(b, "reduction", "mean", "mean"),
       sum = on_str_is(b, "reduction", "mean", "sum");
  if (!mean && !sum && !on_str_is(b, "reduction", "mean", "none"))
    on_bad(b, "reduction '%s' is not known", show(b->c, on_str(b, "reduction", "")));
  if (on_rank(b, logp) < 2 || on_rank(b, label) != on_rank(b, logp) - 1)
    on_bad(b, "labels of rank %u for scores of rank %u", on_rank(b, label), on_rank(b, logp));
  bool ignores = on_has_attr(b, "ignore_index");
  i64 axes[MAX_RANK];
  Val zero = mk_like(b->g, logp, 0), factor = 0, skip = 0;
  if (ignores) { /* the label to be ignored need not be one */
    Val index =
        mk_cast(b->g, mk_ints(b->g, &(i64){on_int(b, "ignore_index", 0)}, 1), on_dtype(b, label));
    skip = mk_map2(b->g, OP_eq, label, mk_reshape(b->g, index, NULL, 0));
    label = mk_select(b->g, skip, mk_like(b->g, label, 0), label);
  }
  label = on_index(b, label, on_dim(b, logp, 1));
  Val picked = mk_gather_elems(b->g, logp, mk_unsqueeze(b->g, label, 1), 1);
  Val loss = mk_map1(b->g, OP_neg, mk_squeeze(b->g, picked, 1));
  if (weight) factor = mk_gather(b->g, as_type_of(b, weight, logp), label, 0);
  if (factor) loss = on_mul(b, loss, factor);
  if (ignores) {
    loss = mk_select(b->g, skip, zero, loss);
    factor = mk_select(b->g, skip, zero, factor ? factor : mk_like(b->g, logp, 1));
  }
  if (!mean && !sum) return loss;
  u32 n = axes_from(b, loss, 0, axes);
  if (mean && !factor) return on_mean(b, loss, axes, n, false);
  loss = mk_reduce(b->g, OP_reduce_sum, loss, axes, n, false);
  if (!mean) return loss;
  return on_div(b, loss, mk_reduce(b->g, OP_reduce_sum, factor, axes, n, false));
}

void build_nllloss(Build *b) {
  Val x = on_widen(b, on_in(b, 0));
  Val loss = likelihood_loss(b, x, on_in(b, 1), on_has(b, 2) ? b->in[2] : 0);
  b->out[0] = on_narrow(b, loss, on_dtype(b, b->in[0]));
}

void build_crossentropyloss(Build *b) {
  DType dt = on_dtype(b, on_in(b, 0));
  static const i64 channels = 1;
  if (on_rank(b, b->in[0]) < 2)
    on_bad(b, "scores have rank %u, expected 2 or more", on_rank(b, b->in[0]));
  Val logp = log_softmax(b, on_widen(b, b->in[0]), &channels, 1);
  Val loss = likelihood_loss(b, logp, on_in(b, 1), on_has(b, 2) ? b->in[2] : 0);
  b->out[0] = on_narrow(b, loss, dt);
  if (on_wants(b, 1)) b->out[1] = on_narrow(b, logp, dt);
}
