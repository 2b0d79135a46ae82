/* nn.c: built-in neural network functions: activations, layers, losses, attention. */
#include "lang/run/lang_object.h"

#include <math.h>
#include <string.h>

/* ---- activations ---- */

static void apply(Eval *ev, const LangValue *arg, LazyOp op, const double *attr, u32 nattr,
                  LangValue *out) {
  *out = value_tensor(lazy_map(ev, op, arg_tensor(ev, arg), attr, nattr));
}

#define ACTIVATION(name, op)                                                                       \
  void bi_##name(Eval *ev, LangValue *arg, u32 n, LangValue *out) {                                \
    apply(ev, arg, op, NULL, 0, out);                                                              \
    (void)n;                                                                                       \
  }
ACTIVATION(nn_relu, LOP_relu)
ACTIVATION(nn_sigmoid, LOP_sigmoid)
ACTIVATION(nn_tanh, LOP_tanh)
ACTIVATION(nn_gelu, LOP_gelu)

/* An activation of a tensor or of a number. */
static void activation_fn(Eval *ev, const LangValue *arg, LazyOp op, Op of, LangValue *out) {
  if (arg->kind == KD_tensor)
    apply(ev, arg, op, NULL, 0, out);
  else
    *out = value_float(number_of(of, arg_number(ev, arg), 0));
}

void bi_relu(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  activation_fn(ev, arg, LOP_relu, OP_max, out);
  (void)n;
}

void bi_sigmoid(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  if (arg->kind == KD_tensor)
    apply(ev, arg, LOP_sigmoid, NULL, 0, out);
  else
    *out = value_float(1 / (1 + number_of(OP_exp, -arg_number(ev, arg), 0)));
  (void)n;
}

void bi_tanh(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  activation_fn(ev, arg, LOP_tanh, OP_tanh, out);
  (void)n;
}

void bi_nn_softmax(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  const double all = 1;
  apply(ev, arg, LOP_softmax, &all, 1, out);
  (void)n;
}

void bi_softmax(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  const double last = 0;
  apply(ev, arg, LOP_softmax, &last, 1, out);
  (void)n;
}

void bi_nn_leaky_relu(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  const double slope = n > 1 ? arg_number(ev, &arg[1]) : 0.01;
  apply(ev, arg, LOP_leaky_relu, &slope, 1, out);
}

void bi_nn_elu(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  const double alpha = n > 1 ? arg_number(ev, &arg[1]) : 1;
  apply(ev, arg, LOP_elu, &alpha, 1, out);
}

/* ---- layers ---- */

void bi_nn_linear(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *in[3];
  for (u32 i = 0; i < 3; i++) in[i] = arg_tensor(ev, &arg[i]);
  const LazyTensor *x = in[0], *w = in[1], *b = in[2];
  if (!x->rank || w->rank != 2 || x->dim[x->rank - 1] != w->dim[0] || b->rank != 1 ||
      b->dim[0] != w->dim[1])
    ARG_BAD(
        ev,
        "nn_linear(): shapes %s, %s and %s do not fit: x [.., in], weights [in, out], bias [out]",
        dims_text(ev, x->dim, x->rank), dims_text(ev, w->dim, w->rank),
        dims_text(ev, b->dim, b->rank));
  i64 dim[MAX_RANK];
  memcpy(dim, x->dim, sizeof dim);
  dim[x->rank - 1] = w->dim[1];
  *out = value_tensor(lazy_make(ev, LOP_linear, in, 3, NULL, 0, dim, x->rank));
  (void)n;
}

void bi_nn_embedding(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *in[2] = {arg_tensor(ev, &arg[0]), arg_tensor(ev, &arg[1])};
  if (in[1]->rank != 2)
    ARG_BAD(ev, "nn_embedding(): the table is a matrix, got shape %s",
            dims_text(ev, in[1]->dim, in[1]->rank));
  const double *index = lazy_data(ev, in[0]);
  for (u64 i = 0; i < in[0]->n; i++)
    if (!(ev->dry && isnan(index[i])) && !(index[i] >= 0 && index[i] < (double)in[1]->dim[0]))
      ARG_BAD(ev, "nn_embedding(): index %g is out of bounds for %lld rows", index[i],
              (long long)in[1]->dim[0]);
  const i64 dim[2] = {(i64)in[0]->n, in[1]->dim[1]};
  *out = value_tensor(lazy_make(ev, LOP_gather, in, 2, NULL, 0, dim, 2));
  (void)n;
}

static LangValue forward(Eval *ev, LangObject *layer, const LangValue *x) {
  LangValue out = value_tensor(layer_forward(ev, layer, arg_tensor(ev, x)));
  heap_drop(ev, &layer->box);
  return out;
}

static LangObject *made(Eval *ev, BuiltinFn *make, LangValue *arg, u32 n) {
  LangValue out;
  make(ev, arg, n, &out);
  return out.u.thing;
}

void bi_nn_conv2d(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = forward(ev, made(ev, bi_conv2d, arg + 1, 5), &arg[0]);
  (void)n;
}

/* A stride of 0 means the kernel size. */
static LangObject *pool(Eval *ev, BuiltinFn *make, LangValue *arg) {
  LangValue size[2] = {arg[1], arg_int(ev, &arg[2]) ? arg[2] : arg[1]};
  return made(ev, make, size, 2);
}

void bi_nn_maxpool2d(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = forward(ev, pool(ev, bi_maxpool2d, arg), &arg[0]);
  (void)n;
}

void bi_nn_avgpool2d(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = forward(ev, pool(ev, bi_avgpool2d, arg), &arg[0]);
  (void)n;
}

void bi_nn_batchnorm(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = forward(ev, made(ev, bi_batchnorm, arg + 1, 1), &arg[0]);
  (void)n;
}

/* ---- losses: a number, or a tensor of one element if gradients flow through it ---- */

/* Same shape, except for a leading or trailing 1. */
static bool same_shape(const LazyTensor *x, const LazyTensor *y) {
  if (x->rank < y->rank) return same_shape(y, x);
  size_t bytes = y->rank * sizeof *y->dim;
  if (x->rank == y->rank) return !memcmp(x->dim, y->dim, bytes);
  if (x->rank != y->rank + 1) return false;
  return (x->dim[0] == 1 && !memcmp(x->dim + 1, y->dim, bytes)) ||
         (x->dim[y->rank] == 1 && !memcmp(x->dim, y->dim, bytes));
}

/* True if t holds the class of each row of scores. */
static bool are_classes(const LazyTensor *scores, const LazyTensor *t) {
  return scores->rank == t->rank + 1 && !memcmp(scores->dim, t->dim, t->rank * sizeof *t->dim);
}

static void loss(Eval *ev, const LangValue *arg, LazyOp op, LangValue *out) {
  LazyTensor *in[2] = {arg_tensor(ev, &arg[0]), arg_tensor(ev, &arg[1])};
  const i64 one = 1;
  bool sorts = op == LOP_cross_entropy || op == LOP_cross_entropy_logits;
  if (sorts && !same_shape(in[0], in[1]) && are_classes(in[0], in[1])) {
    LangValue more[2] = {arg[1], value_int(in[0]->dim[in[0]->rank - 1])}, hot[2] = {arg[0]};
    bi_one_hot(ev, more, 2, &hot[1]);
    loss(ev, hot, op, out);
    value_drop(ev, &hot[1]);
    return;
  }
  if (!same_shape(in[0], in[1]))
    ARG_BAD(ev, "%s(): shape mismatch %s vs %s", builtin_name(ev),
            dims_text(ev, in[0]->dim, in[0]->rank), dims_text(ev, in[1]->dim, in[1]->rank));
  LazyTensor *same = lazy_make(ev, LOP_reshape, &in[1], 1, NULL, 0, in[0]->dim, in[0]->rank);
  if (in[1]->rank != in[0]->rank) in[1] = same;
  LazyTensor *t = lazy_make(ev, op, in, 2, NULL, 0, &one, 1);
  lazy_drop(ev, same);
  *out = value_tensor(t);
  if (t->tracked || lazy_is_symbolic(ev, t)) return;
  *out = value_float(lazy_data(ev, t)[0]);
  lazy_drop(ev, t);
}

#define LOSS(name, op)                                                                             \
  void bi_##name(Eval *ev, LangValue *arg, u32 n, LangValue *out) {                                \
    loss(ev, arg, op, out);                                                                        \
    (void)n;                                                                                       \
  }
LOSS(loss_mse, LOP_mse)
LOSS(loss_cross_entropy, LOP_cross_entropy)
LOSS(nn_binary_cross_entropy, LOP_bce)
LOSS(nn_cross_entropy_logits, LOP_cross_entropy_logits)

/* ---- attention ---- */

void bi_positional_encoding(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  const i64 dim[2] = {arg_int(ev, &arg[0]), arg_int(ev, &arg[1])};
  if (dim[1] % 2) ARG_BAD(ev, "positional_encoding(): the dimension must be even");
  LazyTensor *t = lazy_new(ev, dim, 2);
  for (i64 i = 0; i < dim[0]; i++)
    for (i64 j = 0; j < dim[1]; j++) {
      double at = (double)i / number_of(OP_pow, 10000, (double)(j - j % 2) / (double)dim[1]);
      t->data[i * dim[1] + j] = number_of(j % 2 ? OP_cos : OP_sin, at, 0);
    }
  *out = value_tensor(t);
  (void)n;
}

void bi_attention_mask_causal(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  i64 k = arg_int(ev, &arg[0]);
  const i64 dim[2] = {k, k};
  LazyTensor *t = lazy_new(ev, dim, 2);
  for (i64 i = 0; i < k; i++)
    for (i64 j = 0; j <= i; j++) t->data[i * k + j] = 1;
  *out = value_tensor(t);
  (void)n;
}

static LazyTensor *op_of(Eval *ev, LazyOp op, LazyTensor *x, const i64 *dim, u32 rank) {
  return lazy_make(ev, op, &x, 1, NULL, 0, dim, rank);
}

/* q [.., n, d], k [.., m, d], v [.., m, e]; mask may be NULL. Returns output and weights. */
static LangValue attend(Eval *ev, LazyTensor *q, LazyTensor *k, LazyTensor *v, LazyTensor *mask) {
  u32 r = q->rank;
  bool fits = r >= 2 && k->rank == r && v->rank == r && q->dim[r - 1] == k->dim[r - 1] &&
              k->dim[r - 2] == v->dim[r - 2] && !memcmp(q->dim, k->dim, (r - 2) * sizeof *q->dim) &&
              !memcmp(q->dim, v->dim, (r - 2) * sizeof *q->dim);
  if (!fits)
    ARG_BAD(ev, "%s(): shapes %s, %s and %s do not fit", builtin_name(ev),
            dims_text(ev, q->dim, q->rank), dims_text(ev, k->dim, k->rank),
            dims_text(ev, v->dim, v->rank));
  i64 dim[MAX_RANK], flat[2] = {q->dim[r - 2], k->dim[r - 2]};
  memcpy(dim, q->dim, sizeof dim);
  dim[r - 1] = k->dim[r - 2];
  LazyTensor *in[3] = {q, k, NULL}, *wide = NULL;
  if (mask) { /* one shared mask, or one number per score */
    i64 have = size_product(ev, mask->dim, mask->rank);
    bool whole = have == size_product(ev, dim, r);
    if (!whole && have != size_product(ev, flat, 2))
      ARG_BAD(ev, "%s(): a mask of shape %s for scores of shape %s", builtin_name(ev),
              dims_text(ev, mask->dim, mask->rank), dims_text(ev, dim, r));
    in[2] = wide =
        whole ? op_of(ev, LOP_reshape, mask, dim, r) : op_of(ev, LOP_reshape, mask, flat, 2);
  }
  LazyTensor *w = lazy_make(ev, LOP_attention_weights, in, mask ? 3 : 2, NULL, 0, dim, r);
  lazy_drop(ev, wide);
  dim[r - 1] = v->dim[r - 1];
  LazyTensor *mix[2] = {w, v};
  LangValue out = value_list(ev, KD_array, 2);
  out.u.list->at[0] = value_tensor(lazy_make(ev, LOP_matmul, mix, 2, NULL, 0, dim, r));
  out.u.list->at[1] = value_tensor(w);
  return out;
}

void bi_attention_scaled(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = attend(ev, arg_tensor(ev, &arg[0]), arg_tensor(ev, &arg[1]), arg_tensor(ev, &arg[2]),
                n > 3 ? arg_tensor(ev, &arg[3]) : NULL);
}

/* [batch, len, dim] to [batch, heads, len, dim / heads]: reshape, then transpose. */
static LazyTensor *split(Eval *ev, LazyTensor *x, i64 heads) {
  const i64 split[4] = {x->dim[0], x->dim[1], heads, x->dim[2] / heads};
  const i64 dim[4] = {x->dim[0], heads, x->dim[1], x->dim[2] / heads};
  LazyTensor *y = op_of(ev, LOP_reshape, x, split, 4), *z = op_of(ev, LOP_swap12, y, dim, 4);
  lazy_drop(ev, y);
  return z;
}

void bi_attention_multi_head(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *part[3];
  i64 heads = arg_int(ev, &arg[4]), width = arg_int(ev, &arg[3]);
  for (u32 i = 0; i < 3; i++) {
    LazyTensor *x = arg_tensor(ev, &arg[i]);
    if (x->rank != 3 || heads < 1 || x->dim[2] != width || width % heads)
      ARG_BAD(ev, "%s(): shape %s, expected [batch, length, %lld], a multiple of %lld heads",
              builtin_name(ev), dims_text(ev, x->dim, x->rank), (long long)width, (long long)heads);
    part[i] = split(ev, x, heads);
  }
  *out = attend(ev, part[0], part[1], part[2], n > 5 ? arg_tensor(ev, &arg[5]) : NULL);
  LazyTensor *y = out->u.list->at[0].u.lazy;
  const i64 dim[3] = {y->dim[0], y->dim[2], width};
  const i64 split[4] = {y->dim[0], y->dim[2], heads, width / heads};
  LazyTensor *z = op_of(ev, LOP_swap12, y, split, 4);
  out->u.list->at[0] = value_tensor(op_of(ev, LOP_reshape, z, dim, 3));
  lazy_drop(ev, z);
  lazy_drop(ev, y);
  for (u32 i = 0; i < 3; i++) lazy_drop(ev, part[i]);
}

/* x [.., dim] times the initial projection: the identity, or a wave. */
static LazyTensor *project(Eval *ev, LazyTensor *x, i64 from, i64 to) {
  const i64 dim[2] = {from, to};
  LazyTensor *w = lazy_new(ev, dim, 2);
  for (i64 i = 0; i < from * to; i++)
    w->data[i] = from == to ? i / to == i % to : 0.1 * number_of(OP_sin, 0.7 * (double)i, 0);
  i64 shape[MAX_RANK];
  memcpy(shape, x->dim, sizeof shape);
  shape[x->rank - 1] = to;
  LazyTensor *in[2] = {x, w}, *y = lazy_make(ev, LOP_matmul, in, 2, NULL, 0, shape, x->rank);
  lazy_drop(ev, w);
  return y;
}

void bi_attention_self(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *x = arg_tensor(ev, &arg[0]);
  i64 dim = arg_int(ev, &arg[1]), dk = arg_int(ev, &arg[2]), dv = arg_int(ev, &arg[3]);
  if (x->rank < 2 || x->dim[x->rank - 1] != dim || dk < 1 || dv < 1)
    ARG_BAD(ev, "attention_self(): shape %s, expected [.., %lld]", dims_text(ev, x->dim, x->rank),
            (long long)dim);
  LazyTensor *q = project(ev, x, dim, dk), *k = project(ev, x, dim, dk),
             *v = project(ev, x, dim, dv);
  *out = attend(ev, q, k, v, n > 4 ? arg_tensor(ev, &arg[4]) : NULL);
  lazy_drop(ev, q);
  lazy_drop(ev, k);
  lazy_drop(ev, v);
}

/* ---- devices: only the CPU ---- */

void bi_gpu_available(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = value_bool(false);
  (void)ev, (void)arg, (void)n;
}

void bi_gpu_info(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = value_string(ev, "No GPU available", 16);
  (void)arg, (void)n;
}

void bi_tensor_device(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  arg_tensor(ev, &arg[0]);
  *out = value_string(ev, "CPU", 3);
  (void)n;
}

void bi_tensor_to_gpu(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  (void)arg, (void)n, (void)out;
  ARG_BAD(ev, "tensor_to_gpu(): no GPU is available; test with gpu_available()");
}

void bi_tensor_to_cpu(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  arg_tensor(ev, &arg[0]);
  *out = value_retain(&arg[0]);
  (void)n;
}
