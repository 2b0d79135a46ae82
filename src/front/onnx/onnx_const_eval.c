/* onnx_const_eval.c: compile-time contents of values for builders.
 *
 * In: a value. Out: its tensor, if it depends only on constants and on inputs bound by the caller.
 * Method: collect the nodes it depends on and run the reference evaluator on them in order. A bound
 * input that was used is pinned: the graph is valid for these contents only.
 */
#include "front/onnx/onnx_import.h"

#include <stdlib.h>

enum { KNOWN_NODES = 4096, KNOWN_BYTES = 64 << 20 };

typedef struct Slice {
  Import *im;
  VEC(NodeId) node;
  Map seen; /* Val -> 1 */
  Map have; /* Val -> 1 + index into data */
  VEC(Tensor *) data;
  Val blame;
} Slice;

static void have(Slice *s, Val v, Tensor *t) {
  *vec_push(&s->im->c->scratch, &s->data) = t;
  *map_put(&s->have, v) = s->data.n;
}

static bool take_param(Slice *s, Val v) {
  Import *im = s->im;
  Graph *g = im->g;
  const GraphRegion *b = &g->region.at[1];
  u32 pos = graph_val(g, v)->pos;
  s->blame = v;
  if (pos >= b->param.n || b->param.at[pos] != v) return false; /* a loop variable */
  for (u32 i = 0; i < im->o->ninput; i++) {
    if (im->o->input[i].name != graph_val(g, v)->name || im->o->input[i].fill) continue;
    Tensor *t = (Tensor *)im->o->input[i].data;
    if (t->dt != graph_type(g, v)->dt) return false;
    have(s, v, t);
    return true;
  }
  return false;
}

/* Collects the dependencies of v; false if one is unknown. */
static bool collect(Slice *s, Val v) {
  VEC(Val) todo = {0};
  *vec_push(&s->im->c->scratch, &todo) = v;
  while (todo.n) {
    Val x = todo.at[--todo.n];
    u32 *slot = map_put(&s->seen, x);
    if (*slot) continue;
    *slot = 1;
    NodeId id = graph_val(s->im->g, x)->def;
    if (!id) {
      if (!take_param(s, x)) return false;
      continue;
    }
    const Node *n = graph_node(s->im->g, id);
    OpKind k = op_info[n->op].kind;
    if (k == OK_CONTROL || k == OK_RANDOM || k == OK_DYNAMIC || n->op == OP_dims) return false;
    if (s->node.n == KNOWN_NODES) return false;
    *vec_push(&s->im->c->scratch, &s->node) = id;
    for (u32 i = 0; i < n->nin; i++) *vec_push(&s->im->c->scratch, &todo) = n->in[i];
  }
  return true;
}

static int by_id(const void *a, const void *b) {
  NodeId x = *(const NodeId *)a, y = *(const NodeId *)b;
  return x < y ? -1 : x > y;
}

static bool evaluate(Slice *s) {
  Graph *g = s->im->g;
  Arena *a = &s->im->c->work;
  if (s->node.n) qsort(s->node.at, s->node.n, sizeof(NodeId), by_id);
  u64 bytes = 0;
  for (u32 i = 0; i < s->node.n; i++) {
    const Node *n = graph_node(g, s->node.at[i]);
    Tensor **in = NEWS(a, Tensor *, n->nin + 1), **out = NEWS(a, Tensor *, n->nout + 1);
    if (n->op == OP_const) {
      have(s, n->out[0], node_attr(n, AT_value)->u.t);
      continue;
    }
    for (u32 k = 0; k < n->nin; k++) {
      u32 *slot = map_get(&s->have, n->in[k]);
      if (!slot) continue; /* another output of a node that is already present */
      in[k] = s->data.at[*slot - 1];
    }
    const Type *t = graph_type(g, n->out[0]);
    u64 count = 1;
    for (u32 k = 0; k < t->rank; k++)
      if (!dim_is_const(t->dim[k]) || !size_mul(count, (u64)t->dim[k], &count)) return false;
    bytes += count * dtype_bytes(t->dt);
    if (bytes > KNOWN_BYTES) return false;
    ref_node(g, s->node.at[i], in, out, a);
    for (u32 k = 0; k < n->nout; k++)
      if (!map_get(&s->have, n->out[k])) have(s, n->out[k], out[k]);
  }
  return true;
}

/* The evaluated tensor of v, or NULL. */
static Tensor *known_tensor(const Slice *s, Val v) {
  u32 *slot = map_get(&s->have, v);
  return slot && s->data.at ? s->data.at[*slot - 1] : NULL;
}

static void pin_params(Slice *s) {
  Import *im = s->im;
  const GraphRegion *b = &im->g->region.at[1];
  for (u32 i = 0; i < b->param.n; i++) {
    Tensor *t = known_tensor(s, b->param.at[i]);
    if (t && !graph_pin(im->g, b->param.at[i]))
      *vec_push(&im->c->work, &im->g->pin) = (FixedParam){b->param.at[i], t};
  }
}

const Tensor *import_const_eval(Import *im, Val v, Val *blame) {
  *blame = 0;
  const Tensor *t = graph_const(im->g, v);
  if (t) return t;
  Slice s = {.im = im};
  s.seen = map_new(&im->c->scratch);
  s.have = map_new(&im->c->scratch);
  bool good = collect(&s, v) && evaluate(&s);
  *blame = s.blame;
  if (!good) return NULL;
  pin_params(&s);
  return known_tensor(&s, v);
}

/* An open extent of an input that occurs in d, or 0. */
static Str open_extent(Graph *g, Dim d) {
  for (Sym s = 0; !dim_is_const(d) && s < dim_nsyms(g->dims); s++)
    if (dim_syminfo(g->dims, s)->kind == SY_input && dim_mentions(g->dims, d, s))
      return dim_syminfo(g->dims, s)->name;
  return 0;
}

Str import_open(Import *im, Val v) {
  Graph *g = im->g;
  Map seen = map_new(&im->c->scratch);
  Str found = 0;
  VEC(Val) todo = {0};
  *vec_push(&im->c->scratch, &todo) = v;
  while (todo.n) {
    Val x = todo.at[--todo.n];
    u32 *slot = map_put(&seen, x);
    if (*slot) continue;
    *slot = 1;
    NodeId id = graph_val(g, x)->def;
    const Node *n = id ? graph_node(g, id) : NULL;
    OpKind k = n ? op_info[n->op].kind : OK_CONTROL;
    if (k == OK_CONTROL || k == OK_RANDOM || k == OK_DYNAMIC) return 0;
    u32 extents = 0;
    const Dim *dim = n->op == OP_dims ? node_list(n, AT_shape, &extents) : NULL;
    for (u32 i = 0; i < extents && !found; i++) found = open_extent(g, dim[i]);
    for (u32 i = 0; i < n->nin; i++) *vec_push(&im->c->scratch, &todo) = n->in[i];
  }
  return found;
}
