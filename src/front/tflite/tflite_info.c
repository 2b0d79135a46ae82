/* tflite_info.c: report of `inspect` on a TensorFlow Lite file.
 *
 * In: a decoded model. Out: operators of all sub-graphs, sizes of weights.
 */
#include "front/tflite/tflite_import.h"

void lite_info(Ctx *c, const Model *m, ModelInfo *out) {
  const LiteModel *lm = m->own;
  Map at = map_new(&c->keep), seen = map_new(&c->keep);
  out->version = lm->version;
  out->producer = lm->description;
  for (u32 i = 0; i < lm->ngraph; i++) {
    const LiteGraph *g = &lm->graph[i];
    out->nnodes += g->nop;
    for (u32 k = 0; k < g->nop; k++) {
      u32 *slot = map_put(&at, g->op[k].name);
      if (!*slot) {
        *vec_push(&c->keep, &out->op) = (OpCount){g->op[k].name, 0};
        *slot = out->op.n;
      }
      out->op.at[*slot - 1].n++;
    }
    for (u32 k = 0; k < g->ntensor; k++) { /* buffers may be shared */
      const LiteTensor *t = &g->tensor[k];
      u64 n;
      u32 *slot = t->raw.n ? map_put(&seen, (u64)(t->raw.at - lm->flat->at)) : NULL;
      if (!slot || (*slot)++ || !shape_count(t->dim, t->rank, &n)) continue;
      out->params += n;
      out->bytes += t->raw.n;
    }
  }
}
