/* facts.c: what `inspect` reports of an ONNX file, built or not.
 *
 * In: a decoded model. Out: versions, operators in all graphs and functions, sizes of weights:
 * initializers and the tensors of Constant nodes, in all graphs.
 */
#include "front/onnx/import.h"

typedef struct Count {
  Ctx *c;
  ModelFacts *f;
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

/* Elements that the file declares for a tensor; absurd numbers do not count. */
static void count_tensor(ModelFacts *f, const OnnxTensor *t) {
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

void onnx_facts(Ctx *c, const Model *m, ModelFacts *out) {
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
