/* onnx_rewrite.c: writes an ONNX file with new elements for some weights.
 *
 * In: a model as read, names of initializers, and tensors of their types and shapes. Out: the file.
 * Elements stored as raw data are replaced in place and all other bytes stay. If some are stored
 * otherwise, onnx_write.c writes the model anew with the same contents; external weights are then
 * stored inside, or in one file PATH.data if there are too many. Sparse initializers are refused,
 * because not all elements are stored. Nodes in training mode are written in inference mode,
 * because the reported results use the running statistics.
 */
#include "front/onnx/onnx_edit.h"
#include "front/onnx/onnx_reader.h"
#include "front/onnx/pb.h"

#include <string.h>

/* The elements in the file, if they are contiguous and in native byte order. */
static const u8 *raw_place(const Source *s, const OnnxModel *m, Str name, const Tensor *t) {
  const OnnxTensor *x = onnx_find_init(m->graph, name);
  bool inside = x && x->raw.n && x->raw.at >= s->at && x->raw.at + x->raw.n <= s->at + s->n;
  return inside && x->raw.n == data_raw_bytes(t) ? x->raw.at : NULL;
}

/* The bytes of the file with these replaced; false: a weight must be written anew. */
static bool patch(Ctx *c, const Source *s, const OnnxModel *m, const Str *name, Tensor *const *t,
                  u32 n, const char *path) {
  for (u32 i = 0; i < n; i++)
    if (!raw_place(s, m, name[i], t[i])) return false;
  u8 *all = arena_copy(&c->work, s->at, s->n);
  for (u32 i = 0; i < n; i++) {
    StrBuf raw = sb_new(&c->work);
    data_write_raw(c, &raw, t[i]);
    memcpy(all + (raw_place(s, m, name[i], t[i]) - s->at), raw.at, raw.n);
  }
  file_write(c, path, all, s->n);
  return true;
}

static void replace(Ctx *c, OnnxModel *m, Str name, const Tensor *t) {
  if (!onnx_find_init(m->graph, name))
    fail(c, ERR_unsupported, LOC_NONE,
         "weight '%s' is not a dense initializer of the main graph: it cannot be written",
         show(c, name));
  onnx_put_init(c, m->graph, name, t);
}

/* ---- inference mode ---- */

static bool has_more_outputs(const OnnxNode *n) {
  for (u32 i = 1; i < n->out.n; i++)
    if (n->out.at[i]) return true;
  return false;
}

/* Names visible in a graph, or in the body of a function at one of its calls. */
typedef struct ModeScope {
  const struct ModeScope *up; /* enclosing graph, or the scope of the call; NULL: the main graph */
  const OnnxGraph *graph;     /* NULL in a function */
  const OnnxFunction *fn;     /* NULL in a graph */
  const OnnxNode *call;
  i64 opset;
  u32 depth;
} ModeScope;

typedef struct ModeCheck {
  Ctx *c;
  const OnnxModel *m;
  const char *path;
  Map functions; /* function_key -> 1 + index */
  u32 nodes;     /* number of nodes visited in sub-graphs and calls */
} ModeCheck;

static const OnnxAttr *named_attr(const OnnxAttr *at, u32 n, Str name) {
  for (u32 i = 0; i < n; i++)
    if (at[i].name == name) return &at[i];
  return NULL;
}

/* The attribute of a node at this call of its function. */
static const OnnxAttr *mode_attr(Ctx *c, const ModeScope *s, const OnnxNode *n, const char *name) {
  const OnnxAttr *a = onnx_attr(c, n, name);
  while (a && a->ref) {
    while (s && !s->fn) s = s->up;
    if (!s) return NULL;
    const OnnxAttr *given = named_attr(s->call->attrs.at, s->call->attrs.n, a->ref);
    a = given ? given : named_attr(s->fn->attrs.at, s->fn->attrs.n, a->ref);
    s = s->up;
  }
  return a;
}

static i64 mode_int(Ctx *c, const ModeScope *s, const OnnxNode *n, const char *name, i64 absent) {
  const OnnxAttr *a = mode_attr(c, s, n, name);
  return a && a->type == OA_int ? a->i : absent;
}

static const OnnxNode *find_maker(const OnnxNode *node, u32 n, Str name) {
  for (u32 i = 0; i < n; i++)
    for (u32 k = 0; k < node[i].out.n; k++)
      if (node[i].out.at[k] == name) return &node[i];
  return NULL;
}

/* Is the value a constant false? An absent function argument counts as one. */
static bool is_false(const ModeCheck *k, const ModeScope *s, Str name) {
  const OnnxTensor *t = NULL;
  while (s && !t) {
    const OnnxGraph *g = s->graph;
    t = g ? onnx_find_init(g, name) : NULL;
    if (t) break;
    const OnnxNode *n = g ? find_maker(g->nodes.at, g->nodes.n, name)
                          : find_maker(s->fn->nodes.at, s->fn->nodes.n, name);
    const OnnxAttr *a =
        n && onnx_is_op(k->c, n, "Constant") ? mode_attr(k->c, s, n, "value") : NULL;
    t = a ? a->t : NULL;
    if (n || (g && onnx_is_input(g, name))) break;
    if (s->fn) {
      u32 i = 0;
      while (i < s->fn->inputs.n && s->fn->inputs.at[i] != name) i++;
      if (i == s->fn->inputs.n) return false;
      if (i >= s->call->in.n || !s->call->in.at[i]) return true;
      name = s->call->in.at[i];
    }
    s = s->up;
  }
  const Tensor *x = t ? onnx_tensor(k->c, t, k->path, LOC_NONE, &k->c->scratch) : NULL;
  return x && x->n && !tensor_get(x, 0).i;
}

/* Mirrors build_batchnorm and build_dropout. */
static bool is_training(const ModeCheck *k, const ModeScope *s, const OnnxNode *n) {
  Ctx *c = k->c;
  if (onnx_is_op(c, n, "BatchNormalization"))
    return has_more_outputs(n) || mode_int(c, s, n, "training_mode", 0);
  if (!onnx_is_op(c, n, "Dropout")) return false;
  if (n->in.n > 2 && n->in.at[2]) return !is_false(k, s, n->in.at[2]);
  return s->opset < 7 && !mode_int(c, s, n, "is_test", !has_more_outputs(n));
}

static u64 function_key(Str domain, Str name, Str overload) {
  return ((u64)domain << 32 | name) ^ (u64)overload * 0x9e3779b97f4a7c15u;
}

static const OnnxFunction *find_function(const ModeCheck *k, const OnnxNode *n) {
  const u32 *slot = map_get(&k->functions, function_key(n->domain, n->op, n->overload));
  return slot ? &k->m->functions.at[*slot - 1] : NULL;
}

static i64 function_opset(const Ctx *c, const OnnxFunction *f) {
  for (u32 i = 0; i < f->opsets.n; i++)
    if (!f->opsets.at[i].domain || str_is(c, f->opsets.at[i].domain, "ai.onnx"))
      return f->opsets.at[i].version;
  return INT64_MAX; /* the importer uses the newest */
}

/* Refuses training mode in sub-graphs and functions, which are copied unchanged. Calls nested
 * deeper than the importer allows never run. */
static void refuse_inner(ModeCheck *k, const ModeScope *s, const OnnxNode *node, u32 n) {
  for (u32 i = 0; i < n; i++) {
    Loc loc = {.node = node[i].name, .op = node[i].op, .index = -1};
    const OnnxFunction *f = find_function(k, &node[i]);
    if (s->depth && ++k->nodes > ONNX_MAX_NODES)
      fail(k->c, ERR_unsupported, loc, "sub-graphs and function calls have more than %d nodes",
           ONNX_MAX_NODES);
    if (s->depth && !f && is_training(k, s, &node[i]))
      fail(k->c, ERR_unsupported, loc,
           "is in training mode inside a sub-graph or function, which is not rewritten; export "
           "the model for inference (torch: model.eval())");
    if (s->depth > ONNX_MAX_DEPTH) continue;
    ModeScope in = {.up = s, .call = &node[i], .opset = s->opset, .depth = s->depth + 1};
    for (u32 j = 0; j < node[i].attrs.n; j++) {
      in.graph = node[i].attrs.at[j].g;
      if (in.graph) refuse_inner(k, &in, in.graph->nodes.at, in.graph->nodes.n);
    }
    if (!f) continue;
    in.graph = NULL;
    in.fn = f;
    in.opset = function_opset(k->c, f);
    refuse_inner(k, &in, f->nodes.at, f->nodes.n);
  }
}

/* Replaces uses of the statistics that the node returns by those that it reads. */
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

/* Returns the number of nodes of the main graph that were in training mode. */
static u32 infer_mode(Ctx *c, OnnxModel *m, const char *path) {
  OnnxGraph *g = m->graph;
  i64 opset = onnx_opset(c, m, "");
  Map reads = onnx_use_counts(c, g);
  u32 count = 0, n = g->nodes.n;
  ModeCheck k = {.c = c, .m = m, .path = path, .functions = map_new(&c->work)};
  for (u32 i = 0; i < m->functions.n; i++) {
    const OnnxFunction *f = &m->functions.at[i];
    *map_put(&k.functions, function_key(f->domain, f->name, f->overload)) = i + 1;
  }
  ModeScope s = {.graph = g, .opset = opset};
  refuse_inner(&k, &s, g->nodes.at, n);
  for (u32 i = 0; i < n; i++) {
    if (find_function(&k, &g->nodes.at[i]) || !is_training(&k, &s, &g->nodes.at[i])) continue;
    to_inference(c, g, i, opset, &reads);
    count++;
  }
  if (count) onnx_drop_unused(c, g, &reads);
  if (count) onnx_toposort(c, g);
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
