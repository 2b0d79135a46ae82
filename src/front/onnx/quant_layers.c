/* quant_layers.c: selects the layers to quantize.
 *
 * In: a decoded model. Out: a QuantJob: a copy with normalization folded, its layers, and the
 * tensors that they read. A layer is a Conv, Gemm or MatMul of the main graph whose weights are a
 * constant of f32. Products of two computed matrices, recurrent layers, sub-graphs and functions
 * are not quantized.
 */
#include "front/onnx/onnx_edit.h"
#include "front/onnx/onnx_import.h"
#include "front/onnx/onnx_quantize.h"

const char *const quant_method_name[QM_COUNT] = {"static",   "dynamic", "weights8",
                                                 "weights4", "f16",     "bf16"};
const char *const quant_range_name[QR_COUNT] = {"minmax", "average", "percentile", "entropy",
                                                "mse"};
const char *const quant_granularity_name[QP_COUNT] = {"channel", "tensor", "group"};

void quant_reindex(QuantJob *j) {
  const OnnxGraph *g = j->m->graph;
  Arena *a = &j->c->work;
  j->init = map_new(a);
  j->maker = map_new(a);
  j->readers = onnx_use_counts(j->c, g);
  for (u32 i = 0; i < g->inits.n; i++) *map_put(&j->init, g->inits.at[i].name) = i + 1;
  for (u32 i = 0; i < g->nodes.n; i++) {
    const OnnxNode *n = &g->nodes.at[i];
    for (u32 k = 0; k < n->out.n; k++)
      if (n->out.at[k]) *map_put(&j->maker, n->out.at[k]) = i + 1;
  }
}

u32 quant_use_count(const QuantJob *j, Str name) {
  const u32 *n = map_get(&j->readers, name);
  return n ? *n : 0;
}

const Tensor *quant_constant(QuantJob *j, Str name) {
  const OnnxGraph *g = j->m->graph;
  const OnnxTensor *t = NULL;
  u32 *at = map_get(&j->init, name), *by = map_get(&j->maker, name);
  if (at) {
    t = &g->inits.at[*at - 1];
  } else if (by && str_is(j->c, g->nodes.at[*by - 1].op, "Constant")) {
    const OnnxAttr *a = onnx_attr(j->c, &g->nodes.at[*by - 1], "value");
    t = a && a->type == OA_tensor ? a->t : NULL;
  }
  if (!t || t->dt != DT_f32) return NULL;
  const Tensor *x = onnx_tensor(j->c, t, j->path, LOC_NONE, &j->c->keep);
  if ((uintptr_t)x->data % sizeof(float) == 0) return x;
  return tensor_wrap(&j->c->keep, DT_f32, x->dim, x->rank,
                     arena_copy(&j->c->keep, x->data, tensor_bytes(x)));
}

static u32 point_of(QuantJob *j, Str name) {
  for (u32 i = 0; i < j->point.n; i++)
    if (j->point.at[i].name == name) return i;
  *vec_push(&j->c->keep, &j->point) =
      (QuantObserver){.name = name, .lo = 0, .hi = 0, .from = 0, .to = 0};
  return j->point.n - 1;
}

/* The constant that an Add after a MatMul adds to its columns; 0: none. */
static Str bias_after(QuantJob *j, Str y, i64 columns) {
  const OnnxGraph *g = j->m->graph;
  if (quant_use_count(j, y) != 1) return 0;
  for (u32 i = 0; i < g->nodes.n; i++) {
    const OnnxNode *n = &g->nodes.at[i];
    if (!onnx_is_op(j->c, n, "Add") || n->in.n != 2) continue;
    if (n->in.at[0] != y && n->in.at[1] != y) continue;
    Str b = n->in.at[n->in.at[0] == y];
    const Tensor *t = quant_constant(j, b);
    return t && t->rank == 1 && t->dim[0] == columns && quant_use_count(j, b) == 1 ? b : 0;
  }
  return 0;
}

enum { LEAST_TABLE = 4096 }; /* minimum size of a table that justifies two more nodes */

static bool match_table(QuantJob *j, u32 i, QuantLayer *l) {
  const OnnxNode *n = &j->m->graph->nodes.at[i];
  if (!onnx_is_op(j->c, n, "Gather") || n->in.n != 2 || n->out.n != 1) return false;
  const Tensor *t = quant_constant(j, n->in.at[0]);
  if (!t || t->rank != 2 || t->n < LEAST_TABLE || onnx_get_int(j->c, n, "axis", 0)) return false;
  *l = (QuantLayer){.name = n->name ? n->name : n->out.at[0],
                    .op = n->op,
                    .x = n->in.at[1],
                    .w = n->in.at[0],
                    .y = n->out.at[0],
                    .node = i,
                    .weight = t,
                    .table = true,
                    .before = tensor_bytes(t),
                    .after = tensor_bytes(t)};
  return true;
}

/* Is node i a layer? Fills *l. */
static bool match_layer(QuantJob *j, u32 i, QuantLayer *l) {
  Ctx *c = j->c;
  const OnnxNode *n = &j->m->graph->nodes.at[i];
  bool conv = onnx_is_op(j->c, n, "Conv"), gemm = onnx_is_op(j->c, n, "Gemm"),
       product = onnx_is_op(j->c, n, "MatMul");
  if ((!conv && !gemm && !product) || n->in.n < 2 || n->out.n != 1) return false;
  *l = (QuantLayer){.name = n->name ? n->name : n->out.at[0],
                    .op = n->op,
                    .x = n->in.at[0],
                    .w = n->in.at[1],
                    .b = n->in.n > 2 ? n->in.at[2] : 0,
                    .y = n->out.at[0],
                    .node = i};
  l->weight = quant_constant(j, l->w);
  l->bias = l->b ? quant_constant(j, l->b) : NULL;
  if (!l->weight || (l->b && !l->bias) || quant_constant(j, l->x)) return false;
  if (onnx_is_input(j->m->graph, l->w) && !map_get(&j->init, l->w)) return false;
  if (conv) {
    l->axis = 0;
    if (l->weight->rank < 3 || (l->bias && l->bias->rank != 1)) return false;
    if (l->bias && l->bias->dim[0] != l->weight->dim[0]) return false;
  } else {
    if (l->weight->rank != 2) return false;
    bool turned = gemm && onnx_get_int(c, n, "transB", 0);
    l->axis = turned ? 0 : 1;
    if (gemm && (onnx_get_int(c, n, "transA", 0) || onnx_get_float(c, n, "alpha", 1) != 1 ||
                 onnx_get_float(c, n, "beta", 1) != 1))
      return false;
    i64 columns = l->weight->dim[l->axis];
    if (l->bias && (l->bias->rank != 1 || l->bias->dim[0] != columns)) return false;
    if (product) l->late_bias = bias_after(j, l->y, columns);
  }
  if (!l->weight->n || l->weight->n < 2) return false;
  l->before = tensor_bytes(l->weight);
  l->after = l->before;
  l->point = point_of(j, l->x);
  j->point.at[l->point].along[quant_axis(l)].wanted = true;
  return true;
}

QuantJob *quant_open(Ctx *c, const Model *m, const char *path, const QuantOptions *w) {
  QuantJob *j = NEW(&c->work, QuantJob);
  *j = (QuantJob){.c = c, .wish = *w, .path = path, .m = onnx_copy(c, m->own)};
  return j;
}

void quant_find_layers(QuantJob *j) {
  Ctx *c = j->c;
  const QuantOptions *w = &j->wish;
  j->taken = onnx_names(c, j->m->graph);
  quant_reindex(j);
  quant_fold(j);
  quant_reindex(j);
  for (u32 i = 0; i < j->m->graph->nodes.n; i++) {
    QuantLayer l;
    if (match_layer(j, i, &l) || match_table(j, i, &l)) *vec_push(&c->keep, &j->layer) = l;
  }
  if (w->equalize) quant_equalize(j);
  bool conv = false;
  for (u32 i = 0; i < j->layer.n; i++) conv |= j->layer.at[i].weight->rank > 2;
  if (w->method != QM_weights4 || !conv) return;
  j->four = onnx_upgrade_opset(c, j->m, 21);
  quant_reindex(j);
  if (!j->four)
    warn(c, LOC_NONE,
         "convolutions get 8-bit weights: 4-bit weights need opset 21, to which "
         "this model cannot be converted");
}

/* ---- existing quantization ---- */

/* Counts nodes of the main graph, where layers are. */
u32 quant_count_quantized(const QuantJob *j, Str *op) {
  const OnnxGraph *g = j->m->graph;
  u32 n = 0;
  *op = 0;
  for (u32 i = 0; i < g->nodes.n; i++) {
    if (!op_quantizes(j->c, &g->nodes.at[i])) continue;
    if (!n++) *op = g->nodes.at[i].op;
  }
  return n;
}

/* ---- observed values ---- */

static void show_value(QuantJob *j, OnnxModel *m, Str name) {
  OnnxGraph *g = m->graph;
  for (u32 i = 0; i < g->outputs.n; i++)
    if (g->outputs.at[i].name == name) return;
  *vec_push(&j->c->work, &g->outputs) = (DeclValue){.name = name};
}

void quant_probe(QuantJob *j, const OnnxModel *m, QuantTap which, StrBuf *to) {
  OnnxModel *shown = onnx_copy(j->c, m);
  for (u32 i = 0; which == QB_points && i < j->point.n; i++)
    show_value(j, shown, j->point.at[i].name);
  for (u32 i = 0; which == QB_results && i < j->layer.n; i++)
    show_value(j, shown, j->layer.at[i].y);
  OnnxOut out = {.model = *to, .side = sb_new(&j->c->work), .from = j->path};
  onnx_write(j->c, shown, &out);
  *to = out.model;
}

u64 quant_write(QuantJob *j, const OnnxModel *m, const char *path) {
  return onnx_save(j->c, m, j->path, path);
}

u64 quant_source_bytes(const Source *s, const Model *m) {
  const OnnxModel *om = m->own;
  u64 n = s->n, count;
  for (u32 i = 0; i < om->graph->inits.n; i++) {
    const OnnxTensor *t = &om->graph->inits.at[i];
    if (t->is_external && shape_count(t->dims.at, t->dims.n, &count))
      n += count * dtype_bytes(t->dt);
  }
  return n;
}
