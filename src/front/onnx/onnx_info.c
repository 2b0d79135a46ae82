/* onnx_info.c: report of `inspect` on an ONNX file.
 *
 * In: a decoded model. Out: versions, operators in all graphs and functions, weight sizes
 * (initializers and tensors of Constant nodes in all graphs), and attributes of a node as text.
 */
#include "front/onnx/onnx_reader.h"
#include "ir/lexer.h"

typedef struct Count {
  Ctx *c;
  ModelInfo *f;
  Map at; /* op -> 1 + index */
} Count;

static void count_nodes(Count *k, const OnnxNode *node, u32 n, u32 depth) {
  for (u32 i = 0; i < n; i++) {
    u32 *slot = map_put(&k->at, node[i].op);
    if (!*slot) {
      *vec_push(&k->c->keep, &k->f->op) = (OpCount){node[i].op, 0};
      *slot = k->f->op.n;
    }
    k->f->op.at[*slot - 1].n++;
    for (u32 j = 0; j < node[i].attrs.n && depth < ONNX_GRAPH_DEPTH; j++) {
      const OnnxAttr *a = &node[i].attrs.at[j];
      if (a->type == OA_graph && a->g) count_nodes(k, a->g->nodes.at, a->g->nodes.n, depth + 1);
    }
  }
}

/* Adds the declared elements of a tensor; invalid sizes are skipped. */
static void count_tensor(ModelInfo *f, const OnnxTensor *t) {
  u64 n = 1;
  for (u32 i = 0; i < t->dims.n; i++)
    if (t->dims.at[i] < 0 || !size_mul(n, (u64)t->dims.at[i], &n)) return;
  if (n > DIM_MAX) return;
  f->params += n;
  f->bytes += n * dtype_bytes(t->dt);
}

static void count_weights(Count *k, const OnnxGraph *g, u32 depth) {
  for (u32 i = 0; i < g->inits.n; i++) count_tensor(k->f, &g->inits.at[i]);
  for (u32 i = 0; i < g->nodes.n; i++)
    for (u32 j = 0; j < g->nodes.at[i].attrs.n; j++) {
      const OnnxAttr *a = &g->nodes.at[i].attrs.at[j];
      bool constant = str_is(k->c, g->nodes.at[i].op, "Constant");
      if (a->type == OA_tensor && a->t && constant) count_tensor(k->f, a->t);
      if (a->type == OA_graph && a->g && depth < ONNX_GRAPH_DEPTH)
        count_weights(k, a->g, depth + 1);
    }
}

void onnx_info(Ctx *c, const Model *m, ModelInfo *out) {
  const OnnxModel *om = m->own;
  Count k = {c, out, map_new(&c->keep)};
  out->version = om->ir_version;
  for (u32 i = 0; i < om->opsets.n; i++) {
    Str domain = om->opsets.at[i].domain ? om->opsets.at[i].domain : str_of(c, "ai.onnx");
    *vec_push(&c->keep, &out->opset) = (NamedVersion){domain, om->opsets.at[i].version};
  }
  out->producer = om->producer;
  out->producer_version = om->producer_version;
  out->nnodes = om->nnodes;
  count_weights(&k, om->graph, 0);
  count_nodes(&k, om->graph->nodes.at, om->graph->nodes.n, 0);
  for (u32 i = 0; i < om->functions.n; i++)
    count_nodes(&k, om->functions.at[i].nodes.at, om->functions.at[i].nodes.n, 0);
}

/* ---- attributes ---- */

enum { LIST_SHOWN = 24 }; /* list elements shown */

static void put_float(StrBuf *t, float x) {
  lit_float(t, DT_f32, (const u8 *)&x);
}

/* Number of list elements to show. */
static u32 open_list(StrBuf *t, u32 n) {
  sb_puts(t, "[");
  return n < LIST_SHOWN ? n : LIST_SHOWN;
}

static void close_list(StrBuf *t, u32 n) {
  sb_puts(t, n > LIST_SHOWN ? ",...]" : "]");
}

static void put_tensor(StrBuf *t, const OnnxTensor *x) {
  sb_puts(t, dtype_info[x->dt].name);
  u32 n = open_list(t, x->dims.n);
  for (u32 i = 0; i < n; i++) sb_fmt(t, i ? ",%lld" : "%lld", (long long)x->dims.at[i]);
  close_list(t, x->dims.n);
}

static void put_value(Ctx *c, StrBuf *t, const OnnxAttr *a) {
  u32 n;
  switch (a->type) {
  case OA_float: put_float(t, a->f); return;
  case OA_int: sb_fmt(t, "%lld", (long long)a->i); return;
  case OA_string: sb_fmt(t, "\"%s\"", show(c, a->s)); return;
  case OA_tensor:
    if (a->t) put_tensor(t, a->t);
    return;
  case OA_floats:
    n = open_list(t, a->floats.n);
    for (u32 i = 0; i < n; i++) {
      sb_puts(t, i ? "," : "");
      put_float(t, a->floats.at[i]);
    }
    close_list(t, a->floats.n);
    return;
  case OA_ints:
    n = open_list(t, a->ints.n);
    for (u32 i = 0; i < n; i++) sb_fmt(t, i ? ",%lld" : "%lld", (long long)a->ints.at[i]);
    close_list(t, a->ints.n);
    return;
  case OA_strings:
    n = open_list(t, a->strings.n);
    for (u32 i = 0; i < n; i++) sb_fmt(t, i ? ",\"%s\"" : "\"%s\"", show(c, a->strings.at[i]));
    close_list(t, a->strings.n);
    return;
  case OA_graph: sb_fmt(t, "a graph of %u nodes", a->g ? a->g->nodes.n : 0); return;
  default: sb_puts(t, "..."); return;
  }
}

/* Only finds nodes of the main graph. Nodes of bodies and functions are numbered separately and may
 * be mistaken for one of the same number and name. */
void onnx_attributes(Ctx *c, const Model *m, const Loc *at, StrBuf *out) {
  const OnnxGraph *g = ((const OnnxModel *)m->own)->graph;
  if (at->index < 0 || (u32)at->index >= g->nodes.n) return;
  const OnnxNode *n = &g->nodes.at[at->index];
  if (n->op != at->op || n->name != at->node) return;
  for (u32 i = 0; i < n->attrs.n; i++) {
    sb_fmt(out, i ? ", %s=" : "%s=", show(c, n->attrs.at[i].name));
    put_value(c, out, &n->attrs.at[i]);
  }
}
