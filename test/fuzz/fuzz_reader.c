/* Bytes -> ONNX model -> the elements of every tensor in it.
 *
 * Beyond what the sanitizers see: a refusal has code 3 or 4, and memory stays linear in the input.
 * Sparse tensors, the one thing allowed to be larger than the file, are only made dense when small.
 */
#include "front/onnx/onnx.h"
#include <stdlib.h>

typedef struct Job {
  const u8 *at;
  size_t n;
  OnnxModel *m;
  const OnnxTensor *t;
  const OnnxSparse *s;
} Job;

static void read_model(Ctx *c, void *arg) {
  Job *j = arg;
  j->m = onnx_read(c, j->at, j->n, 0);
}

static void load_tensor(Ctx *c, void *arg) {
  Job *j = arg;
  /* "-": external data go as far as the opener, which refuses. */
  if (j->t)
    onnx_tensor(c, j->t, "-", LOC_NONE, &c->work);
  else
    onnx_sparse(c, j->s, NULL, LOC_NONE, &c->work);
}

static void check(Err e) {
  if (e != ERR_ok && e != ERR_input && e != ERR_unsupported) abort();
}

static void tensor(Ctx *c, const OnnxTensor *t) {
  Job j = {.t = t};
  check(ctx_protect(c, load_tensor, &j));
}

static void sparse(Ctx *c, const OnnxSparse *s) {
  Job j = {.s = s};
  u64 n;
  if (!shape_count(s->dims.at, s->dims.n, &n) || n < 4096) check(ctx_protect(c, load_tensor, &j));
}

static void graph(Ctx *c, const OnnxGraph *g);

static void attr(Ctx *c, const OnnxAttr *a) {
  if (a->t) tensor(c, a->t);
  if (a->sparse) sparse(c, a->sparse);
  if (a->g) graph(c, a->g);
  for (u32 i = 0; i < a->tensors.n; i++) tensor(c, &a->tensors.at[i]);
  for (u32 i = 0; i < a->sparses.n; i++) sparse(c, &a->sparses.at[i]);
  for (u32 i = 0; i < a->graphs.n; i++) graph(c, a->graphs.at[i]);
}

static void node(Ctx *c, const OnnxNode *n) {
  for (u32 i = 0; i < n->attrs.n; i++) attr(c, &n->attrs.at[i]);
}

static void graph(Ctx *c, const OnnxGraph *g) {
  for (u32 i = 0; i < g->inits.n; i++) tensor(c, &g->inits.at[i]);
  for (u32 i = 0; i < g->sparse_inits.n; i++) sparse(c, &g->sparse_inits.at[i]);
  for (u32 i = 0; i < g->nodes.n; i++) node(c, &g->nodes.at[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n) {
  Ctx *c = ctx_new(NULL, NULL);
  Job j = {.at = at, .n = n};
  check(ctx_protect(c, read_model, &j));
  if (j.m) {
    graph(c, j.m->graph);
    for (u32 i = 0; i < j.m->functions.n; i++) {
      const OnnxFunction *f = &j.m->functions.at[i];
      for (u32 k = 0; k < f->nodes.n; k++) node(c, &f->nodes.at[k]);
      for (u32 k = 0; k < f->attrs.n; k++) attr(c, &f->attrs.at[k]);
    }
  }
  if (c->work.used > 512 * n + 65536) abort();
  ctx_free(c);
  return 0;
}
