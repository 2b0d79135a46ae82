/* onnx_edit.c: edits the main graph of a decoded model.
 *
 * In: an OnnxModel. Out: the same, edited; additions live in c->work. This file does not know what
 * operators mean, only that names are values. A node reads its inputs and every outer value that
 * its sub-graphs use.
 */
#include "front/onnx/onnx_edit.h"
#include <string.h>

/* ---- nodes ---- */

OnnxNode *onnx_add_node(Ctx *c, OnnxGraph *g, const char *op, const char *domain, Str name) {
  OnnxNode *n = vec_push(&c->work, &g->nodes);
  *n = (OnnxNode){.op = str_of(c, op), .domain = str_of(c, domain), .name = name};
  return n;
}

void onnx_node_in(Ctx *c, OnnxNode *n, Str name) {
  *vec_push(&c->work, &n->in) = name;
  n->edited = true;
}

void onnx_node_out(Ctx *c, OnnxNode *n, Str name) {
  *vec_push(&c->work, &n->out) = name;
  n->edited = true;
}

void onnx_drop_attr(Ctx *c, OnnxNode *n, const char *name) {
  u32 k = 0;
  for (u32 i = 0; i < n->attrs.n; i++)
    if (!str_is(c, n->attrs.at[i].name, name)) n->attrs.at[k++] = n->attrs.at[i];
  n->attrs.n = k;
  n->edited = true;
}

void onnx_set_int(Ctx *c, OnnxNode *n, const char *name, i64 x) {
  onnx_drop_attr(c, n, name);
  *vec_push(&c->work, &n->attrs) = (OnnxAttr){.name = str_of(c, name), .type = OA_int, .i = x};
}

i64 onnx_get_int(const Ctx *c, const OnnxNode *n, const char *name, i64 otherwise) {
  const OnnxAttr *a = onnx_attr(c, n, name);
  return a && a->type == OA_int ? a->i : otherwise;
}

float onnx_get_float(const Ctx *c, const OnnxNode *n, const char *name, float otherwise) {
  const OnnxAttr *a = onnx_attr(c, n, name);
  return a && a->type == OA_float ? a->f : otherwise;
}

/* ---- inputs and initializers ---- */

bool onnx_is_input(const OnnxGraph *g, Str name) {
  for (u32 i = 0; i < g->inputs.n; i++)
    if (g->inputs.at[i].name == name) return true;
  return false;
}

OnnxTensor *onnx_find_init(const OnnxGraph *g, Str name) {
  for (u32 i = 0; i < g->inits.n; i++)
    if (g->inits.at[i].name == name) return &g->inits.at[i];
  return NULL;
}

void onnx_put_init(Ctx *c, OnnxGraph *g, Str name, const Tensor *t) {
  OnnxTensor *to = onnx_find_init(g, name);
  if (!to) to = vec_push(&c->work, &g->inits);
  *to = (OnnxTensor){.name = name, .code = dtype_info[t->dt].onnx, .dt = t->dt, .data = t};
  for (u32 i = 0; i < t->rank; i++) *vec_push(&c->work, &to->dims) = t->dim[i];
}

void onnx_drop_init(OnnxGraph *g, Str name) {
  u32 k = 0;
  for (u32 i = 0; i < g->inits.n; i++)
    if (g->inits.at[i].name != name) g->inits.at[k++] = g->inits.at[i];
  g->inits.n = k;
  k = 0;
  for (u32 i = 0; i < g->inputs.n; i++)
    if (g->inputs.at[i].name != name) g->inputs.at[k++] = g->inputs.at[i];
  g->inputs.n = k;
}

/* ---- reads ---- */

static void count_reads(Map *m, const OnnxGraph *g, u32 each) {
  for (u32 i = 0; i < g->outputs.n; i++) *map_put(m, g->outputs.at[i].name) += each;
  for (u32 i = 0; i < g->nodes.n; i++) {
    const OnnxNode *n = &g->nodes.at[i];
    for (u32 k = 0; k < n->in.n; k++) *map_put(m, n->in.at[k]) += each;
    for (u32 k = 0; k < n->attrs.n; k++) {
      const OnnxAttr *a = &n->attrs.at[k];
      if (a->g) count_reads(m, a->g, 2);
      for (u32 x = 0; x < a->graphs.n; x++) count_reads(m, a->graphs.at[x], 2);
    }
  }
}

Map onnx_use_counts(Ctx *c, const OnnxGraph *g) {
  Map m = map_new(&c->work);
  count_reads(&m, g, 1);
  return m;
}

void onnx_drop_unused(Ctx *c, OnnxGraph *g, const Map *before) {
  Map now = onnx_use_counts(c, g);
  VEC(Str) gone = {0};
  for (u32 i = 0; i < g->inits.n; i++) {
    Str name = g->inits.at[i].name;
    if (map_get(before, name) && !map_get(&now, name)) *vec_push(&c->work, &gone) = name;
  }
  for (u32 i = 0; i < gone.n; i++) onnx_drop_init(g, gone.at[i]);
  u32 k = 0;
  for (u32 i = 0; i < g->nodes.n; i++) {
    const OnnxNode *n = &g->nodes.at[i];
    bool dead = onnx_is_op(c, n, "Constant") && n->out.n == 1 && map_get(before, n->out.at[0]) &&
                !map_get(&now, n->out.at[0]);
    if (!dead) g->nodes.at[k++] = *n;
  }
  g->nodes.n = k;
}

/* ---- names ---- */

static void take_names(Map *m, const OnnxGraph *g) {
  for (u32 i = 0; i < g->inits.n; i++) *map_put(m, g->inits.at[i].name) = 1;
  for (u32 i = 0; i < g->inputs.n; i++) *map_put(m, g->inputs.at[i].name) = 1;
  for (u32 i = 0; i < g->nodes.n; i++) {
    const OnnxNode *n = &g->nodes.at[i];
    for (u32 k = 0; k < n->in.n; k++) *map_put(m, n->in.at[k]) = 1;
    for (u32 k = 0; k < n->out.n; k++) *map_put(m, n->out.at[k]) = 1;
    for (u32 k = 0; k < n->attrs.n; k++) {
      const OnnxAttr *a = &n->attrs.at[k];
      if (a->g) take_names(m, a->g);
      for (u32 x = 0; x < a->graphs.n; x++) take_names(m, a->graphs.at[x]);
    }
  }
}

Map onnx_names(Ctx *c, const OnnxGraph *g) {
  Map m = map_new(&c->work);
  take_names(&m, g);
  return m;
}

Str onnx_fresh_name(Ctx *c, Map *taken, const char *stem, const char *end) {
  Str s = str_fmt(c, "%s%s", stem, end);
  for (u32 i = 1; map_get(taken, s); i++) s = str_fmt(c, "%s%s_%u", stem, end, i);
  *map_put(taken, s) = 1;
  return s;
}

/* ---- opsets ---- */

static bool same_domain(const Ctx *c, Str s, const char *domain) {
  bool plain = !*domain || !strcmp(domain, "ai.onnx");
  return str_is(c, s, domain) || (plain && (!s || str_is(c, s, "ai.onnx")));
}

bool onnx_is_op(const Ctx *c, const OnnxNode *n, const char *op) {
  return str_is(c, n->op, op) && same_domain(c, n->domain, "");
}

i64 onnx_opset(const Ctx *c, const OnnxModel *m, const char *domain) {
  for (u32 i = 0; i < m->opsets.n; i++)
    if (same_domain(c, m->opsets.at[i].domain, domain)) return m->opsets.at[i].version;
  return 0;
}

void onnx_require_opset(Ctx *c, OnnxModel *m, const char *domain, i64 version) {
  if (onnx_opset(c, m, domain)) return;
  *vec_push(&c->work, &m->opsets) = (OnnxOpset){str_of(c, domain), version};
}

/* ---- order ---- */

/* A node that waits for its operands: producers `from`.. of Sort.reads, those before `next` are
 * done. An explicit stack, because models may be chains of any length. */
typedef struct SortWait {
  u32 node, from, next;
} SortWait;

typedef struct Sort {
  Ctx *c;
  const OnnxGraph *g;
  Map maker; /* Str -> 1 + index of its producer */
  u8 *state; /* 0: not visited, 1: waits for its operands, 2: placed */
  VEC(u32) order, reads;
  VEC(SortWait) wait;
} Sort;

static void add_read(Sort *s, Str name) {
  u32 *m = map_get(&s->maker, name);
  if (m) *vec_push(&s->c->work, &s->reads) = *m - 1;
}

static void add_reads(Sort *s, const OnnxNode *n);

static void add_inner_reads(Sort *s, const OnnxGraph *g) {
  for (u32 j = 0; j < g->nodes.n; j++) add_reads(s, &g->nodes.at[j]);
  for (u32 j = 0; j < g->outputs.n; j++) add_read(s, g->outputs.at[j].name);
}

static void add_reads(Sort *s, const OnnxNode *n) {
  for (u32 k = 0; k < n->in.n; k++) add_read(s, n->in.at[k]);
  for (u32 k = 0; k < n->attrs.n; k++) {
    const OnnxAttr *a = &n->attrs.at[k];
    if (a->g) add_inner_reads(s, a->g);
    for (u32 x = 0; x < a->graphs.n; x++) add_inner_reads(s, a->graphs.at[x]);
  }
}

static void begin_place(Sort *s, u32 i) {
  s->state[i] = 1;
  *vec_push(&s->c->work, &s->wait) = (SortWait){i, s->reads.n, s->reads.n};
  add_reads(s, &s->g->nodes.at[i]);
}

static void place(Sort *s, u32 i) {
  begin_place(s, i);
  while (s->wait.n) {
    SortWait *w = &s->wait.at[s->wait.n - 1];
    if (w->next < s->reads.n) {
      u32 m = s->reads.at[w->next++];
      if (s->state[m] == 0) begin_place(s, m);
      continue;
    }
    s->state[w->node] = 2;
    *vec_push(&s->c->work, &s->order) = w->node;
    s->reads.n = w->from;
    s->wait.n--;
  }
}

void onnx_toposort(Ctx *c, OnnxGraph *g) {
  Sort s = {
      .c = c, .g = g, .maker = map_new(&c->work), .state = NEWS(&c->work, u8, g->nodes.n + 1)};
  for (u32 i = 0; i < g->nodes.n; i++)
    for (u32 k = 0; k < g->nodes.at[i].out.n; k++)
      if (g->nodes.at[i].out.at[k]) *map_put(&s.maker, g->nodes.at[i].out.at[k]) = i + 1;
  for (u32 i = 0; i < g->nodes.n; i++)
    if (!s.state[i]) place(&s, i);
  OnnxNode *to = NEWS(&c->work, OnnxNode, g->nodes.n + 1);
  for (u32 i = 0; i < s.order.n; i++) to[i] = g->nodes.at[s.order.at[i]];
  g->nodes.at = to;
  g->nodes.cap = g->nodes.n;
}

/* ---- copies ---- */

#define COPY_LIST(a, v)                                                                            \
  ((v)->at = arena_copy((a), (v)->at, (v)->n * sizeof *(v)->at), (v)->cap = (v)->n)

OnnxModel *onnx_copy(Ctx *c, const OnnxModel *m) {
  Arena *a = &c->work;
  OnnxModel *to = arena_copy(a, m, sizeof *m);
  OnnxGraph *g = arena_copy(a, m->graph, sizeof *g);
  to->graph = g;
  COPY_LIST(a, &to->opsets);
  COPY_LIST(a, &g->nodes);
  COPY_LIST(a, &g->inits);
  COPY_LIST(a, &g->inputs);
  COPY_LIST(a, &g->outputs);
  for (u32 i = 0; i < g->nodes.n; i++) {
    COPY_LIST(a, &g->nodes.at[i].in);
    COPY_LIST(a, &g->nodes.at[i].out);
    COPY_LIST(a, &g->nodes.at[i].attrs);
  }
  return to;
}
