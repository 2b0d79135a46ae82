/* layers.c: layers as objects.
 *
 * Initial weights are deterministic, so that programs print the same in every run: v(i) times a
 * scale, where v increases by a constant step and wraps at 1. Weights require gradients.
 */
#include "lang/run/lang_object.h"

#include <math.h>
#include <string.h>

double initial_weight(u64 i) {
  return 2 * ((double)((9301 * i + 49297) % 233280) / 233280.0) - 1;
}

static LazyTensor *weights(Eval *ev, const i64 *dim, u32 rank, double scale) {
  LazyTensor *t = lazy_new(ev, dim, rank);
  for (u64 i = 0; i < t->n; i++) t->data[i] = initial_weight(i) * scale;
  return t;
}

static void own(LangObject *t, LazyTensor *w) {
  w->tracked = true;
  t->weight[t->nweight++] = w;
}

static i64 positive(Eval *ev, const LangValue *d) {
  i64 n = arg_int(ev, d);
  if (n < 1)
    ARG_BAD(ev, "%s(): expected a size of at least 1, got %lld", builtin_name(ev), (long long)n);
  return n;
}

/* ---- constructors ---- */

void bi_linear(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  const i64 dim[2] = {positive(ev, &arg[0]), positive(ev, &arg[1])};
  LangObject *t = object_new(ev, OBJ_linear);
  *out = value_object(t);
  t->num[0] = (double)dim[0];
  t->num[1] = (double)dim[1];
  own(t, weights(ev, dim, 2, sqrt(2.0 / (double)(dim[0] + dim[1]))));
  own(t, lazy_new(ev, dim + 1, 1));
  (void)n;
}

void bi_conv2d(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  i64 k = positive(ev, &arg[2]);
  const i64 dim[4] = {positive(ev, &arg[1]), positive(ev, &arg[0]), k, k};
  LangObject *t = object_new(ev, OBJ_conv2d);
  *out = value_object(t);
  for (u32 i = 0; i < 3; i++) t->num[i] = arg_number(ev, &arg[i]);
  t->num[3] = n > 3 ? (double)positive(ev, &arg[3]) : 1;
  t->num[4] = n > 4 ? (double)arg_int(ev, &arg[4]) : 0;
  if (t->num[4] < 0) ARG_BAD(ev, "%s(): the padding is negative", builtin_name(ev));
  own(t, weights(ev, dim, 4, sqrt(2.0 / (double)(dim[1] * k * k))));
  own(t, lazy_new(ev, dim, 1));
}

static void pool(Eval *ev, ObjectKind what, LangValue *arg, u32 n, LangValue *out) {
  LangObject *t = object_new(ev, what);
  *out = value_object(t);
  t->num[0] = (double)positive(ev, &arg[0]);
  t->num[1] = n > 1 ? (double)positive(ev, &arg[1]) : t->num[0];
}

void bi_maxpool2d(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  pool(ev, OBJ_maxpool2d, arg, n, out);
}

void bi_avgpool2d(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  pool(ev, OBJ_avgpool2d, arg, n, out);
}

/* A gain of ones and an offset of zeros. */
static void norm(Eval *ev, ObjectKind what, LangValue *arg, LangValue *out) {
  i64 features = positive(ev, &arg[0]);
  LangObject *t = object_new(ev, what);
  *out = value_object(t);
  t->num[0] = (double)features;
  t->num[1] = 1e-5;
  LazyTensor *gain = lazy_new(ev, &features, 1);
  for (i64 i = 0; i < features; i++) gain->data[i] = 1;
  own(t, gain);
  own(t, lazy_new(ev, &features, 1));
}

void bi_batchnorm(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  norm(ev, OBJ_batchnorm, arg, out);
  (void)n;
}

void bi_layernorm(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  norm(ev, OBJ_layernorm, arg, out);
  (void)n;
}

void bi_dropout(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  double p = arg_number(ev, &arg[0]);
  if (!(p >= 0 && p < 1)) ARG_BAD(ev, "%s(): expected a probability in [0, 1)", builtin_name(ev));
  LangObject *t = object_new(ev, OBJ_dropout);
  t->num[0] = p;
  *out = value_object(t);
  (void)n;
}

/* Weights of all gates, [rows, gates * hidden]; every gate starts with the same values. */
static LazyTensor *gates(Eval *ev, i64 rows, i64 hidden, i64 count) {
  const i64 dim[2] = {rows, count * hidden};
  LazyTensor *t = lazy_new(ev, dim, 2);
  double scale = sqrt(2.0 / (double)(rows + hidden));
  for (i64 i = 0; i < rows; i++)
    for (i64 k = 0; k < count * hidden; k++)
      t->data[i * count * hidden + k] = initial_weight((u64)(i * hidden + k % hidden)) * scale;
  return t;
}

static void recurrent(Eval *ev, ObjectKind what, i64 count, LangValue *arg, LangValue *out) {
  i64 in = positive(ev, &arg[0]), hidden = positive(ev, &arg[1]), all = count * hidden;
  LangObject *t = object_new(ev, what);
  *out = value_object(t);
  t->num[0] = (double)in;
  t->num[1] = (double)hidden;
  own(t, gates(ev, in, hidden, count));
  own(t, gates(ev, hidden, hidden, count));
  own(t, lazy_new(ev, &all, 1));
  /* forget gate */
  for (i64 i = 0; what == OBJ_lstm && i < hidden; i++) t->weight[2]->data[hidden + i] = 1;
}

void bi_lstm_create(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  recurrent(ev, OBJ_lstm, 4, arg, out);
  (void)n;
}

void bi_gru_create(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  recurrent(ev, OBJ_gru, 3, arg, out);
  (void)n;
}

/* ---- forward ---- */

static _Noreturn void unfit(Eval *ev, const LangObject *t, const LazyTensor *x, const char *want) {
  StrBuf s = sb_new(&ev->c->keep);
  object_show(ev, t, &s);
  ARG_BAD(ev, "%s takes %s, got shape %s", sb_cstr(&s), want, dims_text(ev, x->dim, x->rank));
}

static LazyTensor *of_linear(Eval *ev, LangObject *t, LazyTensor *x) {
  if (!x->rank || (double)x->dim[x->rank - 1] != t->num[0]) unfit(ev, t, x, "[.., inputs]");
  LazyTensor *in[3] = {x, t->weight[0], t->weight[1]};
  i64 dim[MAX_RANK];
  memcpy(dim, x->dim, sizeof dim);
  dim[x->rank - 1] = (i64)t->num[1];
  return lazy_make(ev, LOP_linear, in, 3, NULL, 0, dim, x->rank);
}

/* Number of windows in [batch, channels, height, width]; fails if there are none. */
static i64 windows(Eval *ev, LangObject *t, const LazyTensor *x, i64 extent, double size,
                   double stride, double pad) {
  if (size_is_symbolic(ev, extent))
    return size_window_count(ev, extent, (i64)size - 2 * (i64)pad, (i64)stride);
  i64 room = extent + 2 * (i64)pad - (i64)size;
  if (room < 0) unfit(ev, t, x, "images as large as its kernel at least");
  return room / (i64)stride + 1;
}

static LazyTensor *of_conv(Eval *ev, LangObject *t, LazyTensor *x) {
  if (x->rank != 4 || (double)x->dim[1] != t->num[0])
    unfit(ev, t, x, "[batch, channels, height, width]");
  const i64 dim[4] = {x->dim[0], (i64)t->num[1],
                      windows(ev, t, x, x->dim[2], t->num[2], t->num[3], t->num[4]),
                      windows(ev, t, x, x->dim[3], t->num[2], t->num[3], t->num[4])};
  LazyTensor *in[3] = {x, t->weight[0], t->weight[1]};
  return lazy_make(ev, LOP_conv2d, in, 3, &t->num[3], 2, dim, 4);
}

static LazyTensor *of_pool(Eval *ev, LangObject *t, LazyTensor *x) {
  if (x->rank != 4) unfit(ev, t, x, "[batch, channels, height, width]");
  const i64 dim[4] = {x->dim[0], x->dim[1], windows(ev, t, x, x->dim[2], t->num[0], t->num[1], 0),
                      windows(ev, t, x, x->dim[3], t->num[0], t->num[1], 0)};
  LazyOp op = t->what == OBJ_maxpool2d ? LOP_maxpool2d : LOP_avgpool2d;
  return lazy_make(ev, op, &x, 1, t->num, 2, dim, 4);
}

static LazyTensor *of_norm(Eval *ev, LangObject *t, LazyTensor *x) {
  bool batch = t->what == OBJ_batchnorm;
  u32 axis = batch ? 1 : x->rank - 1;
  if (x->rank < (batch ? 2u : 1u) || (double)x->dim[axis] != t->num[0])
    unfit(ev, t, x, batch ? "[batch, features, ..]" : "[.., features]");
  LazyTensor *in[5] = {x, t->weight[0], t->weight[1], t->stat[0], t->stat[1]};
  bool seen = t->stat[0] && !t->num[OBJECT_TRAINS];
  return lazy_make(ev, batch ? LOP_batchnorm : LOP_layernorm, in, seen ? 5 : 3, &t->num[1], 1,
                   x->dim, x->rank);
}

static LazyTensor *of_dropout(Eval *ev, LangObject *t, LazyTensor *x) {
  double p = t->num[0];
  LazyTensor *mask = lazy_new(ev, x->dim, x->rank), *y;
  for (u64 i = 0; i < x->n; i++) mask->data[i] = initial_weight(i) >= 1 - p ? 0 : 1 / (1 - p);
  y = tensor_broadcast_op(ev, LOP_mul, x, mask, "dropout");
  lazy_drop(ev, mask);
  return y;
}

static LazyTensor *of_steps(Eval *ev, LangObject *t, LazyTensor *x) {
  if (x->rank != 3 || (double)x->dim[2] != t->num[0] ||
      (x->dim[1] < 1 && !size_is_symbolic(ev, x->dim[1])))
    unfit(ev, t, x, "[batch, steps, inputs]");
  const i64 dim[3] = {x->dim[0], x->dim[1], (i64)t->num[1]};
  LazyTensor *in[4] = {x, t->weight[0], t->weight[1], t->weight[2]};
  return lazy_make(ev, t->what == OBJ_lstm ? LOP_lstm : LOP_gru, in, 4, NULL, 0, dim, 3);
}

LazyTensor *layer_forward(Eval *ev, LangObject *t, LazyTensor *x) {
  switch (t->what) {
  case OBJ_linear: return of_linear(ev, t, x);
  case OBJ_conv2d: return of_conv(ev, t, x);
  case OBJ_maxpool2d:
  case OBJ_avgpool2d: return of_pool(ev, t, x);
  case OBJ_batchnorm:
  case OBJ_layernorm: return of_norm(ev, t, x);
  case OBJ_dropout: return of_dropout(ev, t, x);
  case OBJ_lstm:
  case OBJ_gru: return of_steps(ev, t, x);
  default: ARG_BAD(ev, "expected a layer, got %s", object_kind_name(t));
  }
}

void bi_layer_forward(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out =
      value_tensor(layer_forward(ev, arg_object(ev, &arg[0], "a layer"), arg_tensor(ev, &arg[1])));
  (void)n;
}

void bi_nn_linear_forward(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  bi_layer_forward(ev, arg, n, out);
  out->u.lazy->raw = true;
}
