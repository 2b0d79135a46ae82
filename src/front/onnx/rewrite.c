/* rewrite.c: an ONNX file with other elements for some of its weights.
 *
 * In: a model as it was read, names of initializers and tensors of their types and shapes. Out: the
 * file, whose other bytes are what they were: elements that lie in it as raw data are replaced
 * where they are. If some do not, the model is written anew (write.c), with the same contents;
 * weights that lay in files of their own lie inside then, or all in one beside it where there are
 * too many. Initializers that are stored sparsely are refused: their elements are not all there to
 * be changed. Nodes in training mode are written in inference mode: the model is trained, and what
 * was measured is the model with its running statistics.
 */
#include "front/onnx/edit.h"
#include "front/onnx/import.h"
#include "front/onnx/pb.h"

#include <string.h>

/* The elements in the file, if they lie there in one piece as a processor has them. */
static const u8 *raw_place(const Source *s, const OnnxModel *m, Str name, const Tensor *t) {
  const OnnxTensor *x = onnx_find_init(m->graph, name);
  bool inside = x && x->raw.n && x->raw.at >= s->at && x->raw.at + x->raw.n <= s->at + s->n;
  return inside && x->raw.n == data_raw_bytes(t) ? x->raw.at : NULL;
}

/* The bytes of the file with these replaced; false: some have to be written anew. */
static bool patch(Ctx *c, const Source *s, const OnnxModel *m, const Str *name, Tensor *const *t,
                  u32 n, const char *path) {
  for (u32 i = 0; i < n; i++)
    if (!raw_place(s, m, name[i], t[i])) return false;
  u8 *all = arena_copy(&c->work, s->at, s->n);
  for (u32 i = 0; i < n; i++) {
    Text raw = text_new(&c->work);
    data_write_raw(c, &raw, t[i]);
    memcpy(all + (raw_place(s, m, name[i], t[i]) - s->at), raw.at, raw.n);
  }
  file_write(c, path, all, s->n);
  return true;
}

static void replace(Ctx *c, OnnxModel *m, Str name, const Tensor *t) {
  if (!onnx_find_init(m->graph, name))
    fail(c, ERR_unsupported, LOC_NONE,
         "weight '%s' is no dense initializer of the main graph: it cannot be written",
         show(c, name));
  onnx_put_init(c, m->graph, name, t);
}

/* ---- inference mode ---- */

static bool has_more_outputs(const OnnxNode *n) {
  for (u32 i = 1; i < n->out.n; i++)
    if (n->out.at[i]) return true;
  return false;
}

/* Is the value a constant that is false? */
static bool is_false(Ctx *c, const OnnxGraph *g, Str name, const char *path) {
  const OnnxTensor *t = onnx_find_init(g, name);
  for (u32 i = 0; !t && i < g->nodes.n; i++) {
    const OnnxNode *n = &g->nodes.at[i];
    if (!onnx_is_op(c, n, "Constant") || !n->out.n || n->out.at[0] != name) continue;
    const OnnxAttr *a = onnx_attr(c, n, "value");
    t = a ? a->t : NULL;
  }
  const Tensor *x = t ? onnx_tensor(c, t, path, LOC_NONE, &c->scratch) : NULL;
  return x && x->n && !tensor_get(x, 0).i;
}

/* Mirrors build_batchnorm and build_dropout. */
static bool is_training(Ctx *c, const OnnxGraph *g, const OnnxNode *n, i64 opset,
                        const char *path) {
  if (onnx_is_op(c, n, "BatchNormalization"))
    return has_more_outputs(n) || onnx_get_int(c, n, "training_mode", 0);
  if (!onnx_is_op(c, n, "Dropout")) return false;
  if (n->in.n > 2 && n->in.at[2]) return !is_false(c, g, n->in.at[2], path);
  return opset < 7 && !onnx_get_int(c, n, "is_test", !has_more_outputs(n));
}

/* Bodies and functions are written as they were read. */
static void refuse_inner(Ctx *c, const OnnxGraph *g, const OnnxNode *node, u32 n, i64 opset,
                         const char *path, bool inner) {
  for (u32 i = 0; i < n; i++) {
    if (inner && is_training(c, g, &node[i], opset, path))
      fail(c, ERR_unsupported, (Loc){.node = node[i].name, .op = node[i].op, .index = -1},
           "is in training mode inside a sub-graph or function, which is not rewritten; export "
           "the model for inference (torch: model.eval())");
    for (u32 k = 0; k < node[i].attrs.n; k++) {
      const OnnxGraph *in = node[i].attrs.at[k].g;
      if (in) refuse_inner(c, in, in->nodes.at, in->nodes.n, opset, path, true);
    }
  }
}

/* Reads of the statistics that the node returned become reads of those it is given. */
static void to_inference(Ctx *c, OnnxGraph *g, u32 at, i64 opset, const Map *reads) {
  OnnxNode *n = &g->nodes.at[at];
  bool norm = onnx_is_op(c, n, "BatchNormalization");
  if (!norm && n->in.n > 2) n->in.n = 2;
  onnx_drop_attr(c, n, "training_mode");
  if (opset < 7) onnx_set_int(c, n, "is_test", 1);
  OnnxNode old = *n;
  if (norm) n->out.n = 1;
  for (u32 i = 1; norm && i < old.out.n && old.in.n > 4; i++) {
    if (!old.out.at[i] || !map_get(reads, old.out.at[i])) continue;
    OnnxNode *same = onnx_add_node(c, g, "Identity", "", 0);
    onnx_node_in(c, same, old.in.at[i % 2 ? 3 : 4]);
    onnx_node_out(c, same, old.out.at[i]);
  }
}

/* Returns how many nodes of the main graph were in training mode. */
static u32 infer_mode(Ctx *c, OnnxModel *m, const char *path) {
  OnnxGraph *g = m->graph;
  i64 opset = onnx_opset(c, m, "");
  Map reads = onnx_reads(c, g);
  u32 count = 0, n = g->nodes.n;
  refuse_inner(c, g, g->nodes.at, n, opset, path, false);
  for (u32 i = 0; i < m->functions.n; i++)
    refuse_inner(c, g, m->functions.at[i].nodes.at, m->functions.at[i].nodes.n, opset, path, true);
  for (u32 i = 0; i < n; i++) {
    if (!is_training(c, g, &g->nodes.at[i], opset, path)) continue;
    to_inference(c, g, i, opset, &reads);
    count++;
  }
  if (count) onnx_drop_unread(c, g, &reads);
  if (count) onnx_sort(c, g);
  return count;
}

void onnx_rewrite(Ctx *c, const Source *s, const Model *m, const Str *name, Tensor *const *t, u32 n,
                  const char *path) {
  OnnxModel *to = onnx_copy(c, m->own);
  for (u32 i = 0; i < n; i++) replace(c, to, name[i], t[i]);
  u32 training = infer_mode(c, to, s->path);
  if (!path || (!training && patch(c, s, m->own, name, t, n, path))) return;
  if (training)
    warn(c, LOC_NONE, "%u nodes were in training mode; %s is written for inference", training,
         path);
  onnx_save(c, to, s->path, path);
}
