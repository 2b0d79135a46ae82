/* quant_fold.c: graph rewrites before quantization.
 *
 * In: the graph of a job. Out: the same function in exact arithmetic, with
 *   - BatchNormalization with constant statistics folded into the only Conv that feeds it, so that
 *     the folded weights are quantized, as in ONNX Runtime
 *   - Transpose of constant matrices evaluated
 *   - (equalize) channels between two convolutions, or Conv-Relu-Conv, scaled so that the weights
 *     on
 *     both sides have the same range: Nagel et al., Data-Free Quantization Through Weight
 *     Equalization and Bias Correction, 2019
 */
#include "front/onnx/onnx_edit.h"
#include "front/onnx/onnx_quantize.h"
#include <math.h>
#include <string.h>

static Tensor *copy_of(QuantJob *j, const Tensor *t) {
  Tensor *y = tensor_new(&j->c->keep, DT_f32, t->dim, t->rank);
  memcpy((void *)(uintptr_t)y->data, t->data, tensor_bytes(t));
  return y;
}

static float *numbers(const Tensor *t) {
  return (float *)(uintptr_t)t->data;
}

/* Stores the elements under a new name, so that other readers of the old one are not affected. */
static void replace_operand(QuantJob *j, OnnxNode *n, u32 operand, const Tensor *t,
                            const char *end) {
  Str old = operand < n->in.n ? n->in.at[operand] : n->out.at[0];
  Str name = onnx_fresh_name(j->c, &j->taken, str_text(j->c, old), end);
  onnx_put_init(j->c, j->m->graph, name, t);
  *map_put(&j->init, name) = j->m->graph->inits.n;
  while (n->in.n <= operand) *vec_push(&j->c->work, &n->in) = 0;
  n->in.at[operand] = name;
  n->edited = true;
}

/* ---- normalization ---- */

enum { BN_scale = 1, BN_bias, BN_mean, BN_var };

static bool fold_norm(QuantJob *j, OnnxNode *bn) {
  OnnxGraph *g = j->m->graph;
  u32 *by = bn->in.n == 5 ? map_get(&j->maker, bn->in.at[0]) : NULL;
  OnnxNode *conv = by ? &g->nodes.at[*by - 1] : NULL;
  if (!conv || !onnx_is_op(j->c, conv, "Conv") || quant_use_count(j, bn->in.at[0]) != 1)
    return false;
  if (bn->out.n != 1 || onnx_get_int(j->c, bn, "training_mode", 0) || conv->in.n < 2) return false;
  const Tensor *w = quant_constant(j, conv->in.at[1]), *b = NULL, *of[5] = {NULL};
  if (conv->in.n > 2 && conv->in.at[2] && !(b = quant_constant(j, conv->in.at[2]))) return false;
  if (!w || w->rank < 3) return false;
  i64 n = w->dim[0];
  if (n < 1 || (b && (b->rank != 1 || b->dim[0] != n))) return false;
  for (u32 i = BN_scale; i <= BN_var; i++) {
    of[i] = quant_constant(j, bn->in.at[i]);
    if (!of[i] || of[i]->rank != 1 || of[i]->dim[0] != n) return false;
  }
  double eps = (double)onnx_get_float(j->c, bn, "epsilon", 1e-5f);
  Tensor *w2 = copy_of(j, w), *b2 = tensor_new(&j->c->keep, DT_f32, &n, 1);
  u64 per = w->n / (u64)n;
  for (i64 i = 0; i < n; i++) {
    u64 at = (u64)i;
    double f = tensor_get(of[BN_scale], at).f / sqrt(tensor_get(of[BN_var], at).f + eps);
    double was = b ? tensor_get(b, at).f : 0;
    for (u64 k = 0; k < per; k++) numbers(w2)[at * per + k] *= (float)f;
    numbers(b2)[i] =
        (float)((was - tensor_get(of[BN_mean], at).f) * f + tensor_get(of[BN_bias], at).f);
  }
  replace_operand(j, conv, 1, w2, "_folded");
  replace_operand(j, conv, 2, b2, conv->in.n > 2 && conv->in.at[2] ? "_folded" : "_bias");
  conv->out.at[0] = bn->out.at[0];
  bn->out.n = 0; /* removed below */
  return true;
}

/* ---- transposes ---- */

static bool fold_transpose(QuantJob *j, OnnxNode *n) {
  const OnnxAttr *perm = onnx_attr(j->c, n, "perm");
  if (n->in.n != 1 || n->out.n != 1 || quant_use_count(j, n->out.at[0]) == 0) return false;
  if (perm && (perm->ints.n != 2 || perm->ints.at[0] != 1)) return false;
  const Tensor *t = quant_constant(j, n->in.at[0]);
  if (!t || t->rank != 2) return false;
  for (u32 i = 0; i < j->m->graph->outputs.n; i++)
    if (j->m->graph->outputs.at[i].name == n->out.at[0]) return false;
  i64 dim[2] = {t->dim[1], t->dim[0]};
  Tensor *y = tensor_new(&j->c->keep, DT_f32, dim, 2);
  for (i64 r = 0; r < dim[1]; r++)
    for (i64 k = 0; k < dim[0]; k++)
      tensor_set(y, (u64)(k * dim[1] + r), tensor_get(t, (u64)(r * dim[0] + k)));
  onnx_put_init(j->c, j->m->graph, n->out.at[0], y);
  *map_put(&j->init, n->out.at[0]) = j->m->graph->inits.n;
  n->out.n = 0;
  return true;
}

/* Removes constants that lost their last reader. */
static void drop_unused(QuantJob *j) {
  onnx_drop_unused(j->c, j->m->graph, &j->readers);
  quant_reindex(j);
}

void quant_fold(QuantJob *j) {
  OnnxGraph *g = j->m->graph;
  for (u32 i = 0; i < g->nodes.n; i++) {
    OnnxNode *n = &g->nodes.at[i];
    if (onnx_is_op(j->c, n, "BatchNormalization")) fold_norm(j, n);
    if (onnx_is_op(j->c, n, "Transpose")) fold_transpose(j, n);
  }
  u32 k = 0;
  for (u32 i = 0; i < g->nodes.n; i++)
    if (g->nodes.at[i].out.n) g->nodes.at[k++] = g->nodes.at[i];
  bool changed = k < g->nodes.n;
  g->nodes.n = k;
  if (!changed) return;
  drop_unused(j);
}

/* ---- equalization ---- */

static const OnnxNode *only_reader(const QuantJob *j, Str name) {
  const OnnxGraph *g = j->m->graph;
  if (quant_use_count(j, name) != 1) return NULL;
  for (u32 i = 0; i < g->nodes.n; i++)
    for (u32 k = 0; k < g->nodes.at[i].in.n; k++)
      if (g->nodes.at[i].in.at[k] == name) return &g->nodes.at[i];
  return NULL;
}

static QuantLayer *layer_at(QuantJob *j, const OnnxNode *n) {
  for (u32 i = 0; n && i < j->layer.n; i++)
    if (&j->m->graph->nodes.at[j->layer.at[i].node] == n) return &j->layer.at[i];
  return NULL;
}

/* The convolution that is the only reader of the result of l. */
static QuantLayer *next_layer(QuantJob *j, const QuantLayer *l) {
  const OnnxNode *n = only_reader(j, l->y);
  if (n && onnx_is_op(j->c, n, "Relu")) n = only_reader(j, n->out.at[0]);
  QuantLayer *to = layer_at(j, n);
  return n && to && n->in.at[0] == to->x && onnx_is_op(j->c, n, "Conv") ? to : NULL;
}

/* Weights of l that read input channel ch: the first, and the stride between runs of `run`. */
typedef struct ChannelUse {
  u64 first, step, run, count;
} ChannelUse;

static ChannelUse reads_of(const QuantLayer *l, i64 groups, i64 ch) {
  i64 in = l->weight->dim[1], out = l->weight->dim[0], per = out / groups;
  u64 run = l->weight->n / (u64)(in * out);
  i64 g = ch / in;
  return (ChannelUse){.first = ((u64)(g * per * in) + (u64)(ch % in)) * run,
                      .step = (u64)in * run,
                      .run = run,
                      .count = (u64)per};
}

static double abs_max(const float *w, ChannelUse r) {
  double far = 0;
  for (u64 i = 0; i < r.count; i++)
    for (u64 k = 0; k < r.run; k++) far = fmax(far, fabs((double)w[r.first + i * r.step + k]));
  return far;
}

static void scale_by(float *w, ChannelUse r, double f) {
  for (u64 i = 0; i < r.count; i++)
    for (u64 k = 0; k < r.run; k++) w[r.first + i * r.step + k] *= (float)f;
}

static void equalize(QuantJob *j, QuantLayer *a, QuantLayer *b) {
  i64 n = a->weight->dim[0];
  i64 groups = onnx_get_int(j->c, &j->m->graph->nodes.at[b->node], "group", 1);
  u64 per = a->weight->n / (u64)n;
  if (groups < 1 || b->weight->dim[1] * groups != n || b->weight->dim[0] % groups) return;
  float *wa = numbers(a->weight), *wb = numbers(b->weight), *ba = a->bias ? numbers(a->bias) : NULL;
  for (i64 i = 0; i < n; i++) {
    ChannelUse mine = {.first = (u64)i * per, .step = per, .run = per, .count = 1};
    ChannelUse theirs = reads_of(b, groups, i);
    double ra = abs_max(wa, mine), rb = abs_max(wb, theirs);
    if (!(ra > 0) || !(rb > 0)) continue;
    double s = sqrt(ra / rb); /* equalizes the range of both sides */
    if (!(s > 1e-4 && s < 1e4)) continue;
    scale_by(wa, mine, 1 / s);
    scale_by(wb, theirs, s);
    if (ba) ba[i] = (float)(ba[i] / s);
  }
}

enum { EQUAL_ROUNDS = 8 }; /* a layer is in two pairs, so ranges converge in a few rounds */

/* The next layer with the same channels as layer i; NULL: none. */
static QuantLayer *pair_of(QuantJob *j, u32 i) {
  const QuantLayer *l = &j->layer.at[i];
  return onnx_is_op(j->c, &j->m->graph->nodes.at[l->node], "Conv") ? next_layer(j, l) : NULL;
}

/* Makes a private copy of the weights. */
static void own_weights(QuantJob *j, QuantLayer *l) {
  OnnxNode *n = &j->m->graph->nodes.at[l->node];
  l->weight = copy_of(j, l->weight);
  replace_operand(j, n, 1, l->weight, "_equal");
  l->w = n->in.at[1];
  if (!l->bias) return;
  l->bias = copy_of(j, l->bias);
  replace_operand(j, n, 2, l->bias, "_equal");
  l->b = n->in.at[2];
}

void quant_equalize(QuantJob *j) {
  bool *paired = NEWS(&j->c->work, bool, j->layer.n + 1);
  for (u32 i = 0; i < j->layer.n; i++) {
    const QuantLayer *to = pair_of(j, i);
    if (to) paired[i] = paired[to - j->layer.at] = true;
  }
  for (u32 i = 0; i < j->layer.n; i++)
    if (paired[i]) own_weights(j, &j->layer.at[i]);
  for (u32 round = 0; round < EQUAL_ROUNDS; round++)
    for (u32 i = 0; i < j->layer.n; i++) {
      QuantLayer *to = pair_of(j, i);
      if (to) equalize(j, &j->layer.at[i], to);
    }
  drop_unused(j);
  for (u32 i = 0; i < j->layer.n; i++) {
    const u32 *by = map_get(&j->maker, j->layer.at[i].y);
    if (by) j->layer.at[i].node = *by - 1;
  }
}
