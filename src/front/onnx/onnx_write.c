/* onnx_write.c: a decoded model -> bytes of ModelProto.
 *
 * In: an OnnxModel, possibly edited by onnx_edit.c or made by onnx_export.c. Out: its bytes, and a
 * file of external weights if it has many. Method: copies the messages of model, graph and nodes
 * field by field. For a field that a struct holds, the value of the struct replaces the first
 * occurrence in the file. Unchanged messages are copied whole.
 *
 * Functions, sub-graphs and sparse tensors are copied unchanged, because edits only affect the main
 * graph. External data in them are refused, because their path would change.
 */
#include "front/onnx/onnx_edit.h"
#include "front/onnx/pb.h"
#include <string.h>

typedef struct Write {
  Ctx *c;
  OnnxOut *out;
  bool to_side; /* weights go to the external file */
} Write;

static void put_str(const Write *w, StrBuf *t, u32 field, Str s) {
  wire_put_bytes(t, field, str_text(w->c, s), str_len(w->c, s));
}

static void put_float(StrBuf *t, u32 field, float x) {
  u32 bits;
  memcpy(&bits, &x, sizeof bits);
  wire_put_varint(t, (u64)field << 3 | WT_fixed32);
  sb_put(t, (u8[4]){(u8)bits, (u8)(bits >> 8), (u8)(bits >> 16), (u8)(bits >> 24)}, 4);
}

/* ---- copied fields ---- */

/* Copies the field whose tag k has just read, from `start` on. */
static void copy_field(StrBuf *t, Wire *k, size_t start) {
  wire_skip(k);
  sb_put(t, k->base + start, k->pos - start);
}

static Wire message_reader(const Write *w, FileSpan body) {
  return wire_reopen(w->c, body.at, body, LOC_NONE);
}

/* ---- tensors ---- */

static _Noreturn void refuse_external(Ctx *c, Str name) {
  fail(c, ERR_unsupported, LOC_NONE,
       "tensor '%s' of a node has external data: such models are not written", show(c, name));
}

/* Refuses external data, which would be searched for next to the new model. */
static void check_nodes(Ctx *c, const OnnxNode *node, u32 n) {
  for (u32 i = 0; i < n; i++)
    for (u32 j = 0; j < node[i].attrs.n; j++) {
      const OnnxAttr *a = &node[i].attrs.at[j];
      if (a->t && a->t->is_external) refuse_external(c, a->t->name);
      for (u32 k = 0; k < a->tensors.n; k++)
        if (a->tensors.at[k].is_external) refuse_external(c, a->tensors.at[k].name);
      u32 graphs = a->graphs.n + (a->g != NULL);
      for (u32 k = 0; k < graphs; k++) {
        const OnnxGraph *g = k < a->graphs.n ? a->graphs.at[k] : a->g;
        for (u32 x = 0; x < g->inits.n; x++)
          if (g->inits.at[x].is_external) refuse_external(c, g->inits.at[x].name);
        check_nodes(c, g->nodes.at, g->nodes.n); /* at most ONNX_GRAPH_DEPTH levels */
      }
    }
}

/* Size of a stored tensor in bytes. */
static u64 stored_bytes(const OnnxTensor *t) {
  u64 n = 1;
  if (t->data) n = t->data->n;
  for (u32 i = 0; !t->data && i < t->dims.n; i++)
    if (t->dims.at[i] < 0 || !size_mul(n, (u64)t->dims.at[i], &n)) return 0;
  DType dt = t->data ? t->data->dt : t->dt;
  u64 bits = dt == DT_bool ? 8 : dtype_info[dt].bits;
  return n > UINT64_MAX / 128 ? 0 : (n * bits + 7) / 8;
}

static void put_pair(Write *w, StrBuf *t, const char *key, const char *value) {
  StrBuf pair = sb_new(&w->c->scratch);
  wire_put_bytes(&pair, 1, key, strlen(key));
  wire_put_bytes(&pair, 2, value, strlen(value));
  wire_put_bytes(t, 13, pair.at, pair.n);
}

/* Writes elements to the external file and their location to the message. */
static void put_external(Write *w, StrBuf *t, Str name, const Tensor *x) {
  static const u8 zeros[EXTERNAL_ALIGN];
  StrBuf *side = &w->out->side;
  sb_put(side, zeros, (EXTERNAL_ALIGN - side->n % EXTERNAL_ALIGN) % EXTERNAL_ALIGN);
  Str at = str_fmt(w->c, "%llu", (unsigned long long)side->n),
      n = str_fmt(w->c, "%llu", (unsigned long long)data_raw_bytes(x));
  data_write_raw(w->c, side, x);
  for (u32 i = 0; i < x->rank; i++) wire_put_int(t, 1, x->dim[i]);
  wire_put_int(t, 2, dtype_info[x->dt].onnx);
  put_str(w, t, 8, name);
  put_pair(w, t, "location", w->out->side_name);
  put_pair(w, t, "offset", str_text(w->c, at));
  put_pair(w, t, "length", str_text(w->c, n));
  wire_put_int(t, 14, 1);
}

static void put_tensor(Write *w, StrBuf *to, u32 field, const OnnxTensor *t) {
  bool to_side = w->to_side && stored_bytes(t) >= EXTERNAL_MIN_BYTES && t->dt != DT_str;
  if (!t->data && !t->is_external && !to_side) {
    wire_put_bytes(to, field, t->body.at, t->body.n);
    return;
  }
  Mark mark = arena_mark(&w->c->scratch);
  const Tensor *x = onnx_tensor(w->c, t, w->out->from, LOC_NONE, &w->c->scratch);
  StrBuf body = sb_new(&w->c->scratch);
  if (to_side)
    put_external(w, &body, t->name, x);
  else
    data_write_pb(w->c, &body, t->name, x);
  wire_put_bytes(to, field, body.at, body.n);
  arena_rewind(&w->c->scratch, mark);
}

/* ---- nodes ---- */

static void put_graph(Write *w, StrBuf *to, u32 field, const OnnxGraph *g);

/* An attribute without bytes has one of the types that onnx_edit.c and onnx_export.c make. */
static void put_attr(Write *w, StrBuf *to, const OnnxAttr *a) {
  StrBuf t = sb_new(&w->c->scratch);
  if (a->body.at) {
    wire_put_bytes(to, 5, a->body.at, a->body.n);
    return;
  }
  put_str(w, &t, 1, a->name);
  if (a->type == OA_float) put_float(&t, 2, a->f);
  if (a->type == OA_int) wire_put_int(&t, 3, a->i);
  if (a->type == OA_string) put_str(w, &t, 4, a->s);
  if (a->type == OA_graph) put_graph(w, &t, 6, a->g);
  for (u32 i = 0; a->type == OA_ints && i < a->ints.n; i++) wire_put_int(&t, 8, a->ints.at[i]);
  wire_put_int(&t, 20, a->type);
  wire_put_bytes(to, 5, t.at, t.n);
}

static bool node_field(u32 field) { /* field held by OnnxNode */
  return (field >= 1 && field <= 5) || field == 7 || field == 8;
}

static void put_node(Write *w, StrBuf *to, const OnnxNode *n) {
  if (n->body.at && !n->edited) {
    wire_put_bytes(to, 1, n->body.at, n->body.n);
    return;
  }
  StrBuf t = sb_new(&w->c->scratch);
  for (u32 i = 0; i < n->in.n; i++) put_str(w, &t, 1, n->in.at[i]);
  for (u32 i = 0; i < n->out.n; i++) put_str(w, &t, 2, n->out.at[i]);
  if (n->name) put_str(w, &t, 3, n->name);
  put_str(w, &t, 4, n->op);
  for (u32 i = 0; i < n->attrs.n; i++) put_attr(w, &t, &n->attrs.at[i]);
  if (n->domain) put_str(w, &t, 7, n->domain);
  if (n->overload) put_str(w, &t, 8, n->overload);
  if (n->body.at) {
    Wire k = message_reader(w, n->body);
    for (size_t start = k.pos; wire_next(&k); start = k.pos) {
      if (node_field(k.field))
        wire_skip(&k);
      else
        copy_field(&t, &k, start);
    }
  }
  wire_put_bytes(to, 1, t.at, t.n);
}

/* ---- graph ---- */

enum { G_node = 1, G_init = 5, G_input = 11, G_output = 12 };

/* The name in a ValueInfoProto. */
static Str value_name(const Write *w, FileSpan body) {
  Str name = 0;
  for (Wire k = message_reader(w, body); wire_next(&k);) {
    if (k.field == 1)
      name = wire_str(&k);
    else
      wire_skip(&k);
  }
  return name;
}

static void put_list(Write *w, StrBuf *t, const OnnxGraph *g, u32 field) {
  for (u32 i = 0; field == G_node && i < g->nodes.n; i++) put_node(w, t, &g->nodes.at[i]);
  for (u32 i = 0; field == G_init && i < g->inits.n; i++) put_tensor(w, t, G_init, &g->inits.at[i]);
}

/* A ValueInfoProto. Outputs added by edits have no type. */
static void put_value(Write *w, StrBuf *to, u32 field, const DeclValue *v) {
  Arena *a = &w->c->scratch;
  StrBuf t = sb_new(a), shape = sb_new(a), tensor = sb_new(a), type = sb_new(a);
  put_str(w, &t, 1, v->name);
  for (u32 i = 0; i < v->type.dims.n; i++) {
    const DeclDim *d = &v->type.dims.at[i];
    StrBuf dim = sb_new(a);
    if (d->kind == OD_value) wire_put_int(&dim, 1, d->value);
    if (d->kind == OD_param) put_str(w, &dim, 2, d->param);
    wire_put_bytes(&shape, 1, dim.at, dim.n);
  }
  if (v->type.kind == OT_tensor) {
    wire_put_int(&tensor, 1, v->type.elem_code);
    wire_put_bytes(&tensor, 2, shape.at, shape.n);
    wire_put_bytes(&type, 1, tensor.at, tensor.n);
    wire_put_bytes(&t, 2, type.at, type.n);
  }
  wire_put_bytes(to, field, t.at, t.n);
}

static void put_graph(Write *w, StrBuf *to, u32 to_field, const OnnxGraph *g) {
  StrBuf t = sb_new(&w->c->work);
  bool done[16] = {false};
  u32 outputs = 0;
  Wire k = message_reader(w, g->body);
  for (size_t start = k.pos; wire_next(&k); start = k.pos) {
    u32 field = k.field;
    if (field == G_node || field == G_init) {
      if (!done[field]) put_list(w, &t, g, field);
      done[field] = true;
      wire_skip(&k);
    } else if (field == G_input) {
      FileSpan body = wire_bytes(&k);
      if (onnx_is_input(g, value_name(w, body))) wire_put_bytes(&t, G_input, body.at, body.n);
    } else {
      outputs += field == G_output;
      copy_field(&t, &k, start);
    }
  }
  if (!done[G_node]) put_list(w, &t, g, G_node);
  if (!done[G_init]) put_list(w, &t, g, G_init);
  if (!g->body.at) put_str(w, &t, 2, g->name);
  for (u32 i = 0; !g->body.at && i < g->inputs.n; i++) put_value(w, &t, G_input, &g->inputs.at[i]);
  for (; outputs < g->outputs.n; outputs++) put_value(w, &t, G_output, &g->outputs.at[outputs]);
  wire_put_bytes(to, to_field, t.at, t.n);
}

/* ---- model ---- */

static void put_opset(Write *w, StrBuf *t, const OnnxOpset *o) {
  StrBuf body = sb_new(&w->c->scratch);
  put_str(w, &body, 1, o->domain);
  wire_put_int(&body, 2, o->version);
  wire_put_bytes(t, 8, body.at, body.n);
}

/* The version in an OperatorSetIdProto. */
static i64 version_in(const Write *w, FileSpan body) {
  i64 version = 0;
  for (Wire k = message_reader(w, body); wire_next(&k);) {
    if (k.field == 2)
      version = wire_int(&k);
    else
      wire_skip(&k);
  }
  return version;
}

void onnx_write(Ctx *c, const OnnxModel *m, OnnxOut *out) {
  Write w = {.c = c, .out = out};
  u64 bytes = 0;
  u32 opsets = 0;
  bool graph = false;
  check_nodes(c, m->graph->nodes.at, m->graph->nodes.n);
  for (u32 i = 0; i < m->graph->inits.n; i++) bytes += stored_bytes(&m->graph->inits.at[i]);
  w.to_side = out->side_name && bytes > out->side_from;
  StrBuf *t = &out->model;
  Wire k = message_reader(&w, m->body);
  for (size_t start = k.pos; wire_next(&k); start = k.pos) {
    if (k.field == 1) {
      wire_skip(&k);
      wire_put_int(t, 1, m->ir_version);
    } else if (k.field == 7) {
      wire_skip(&k);
      if (!graph) put_graph(&w, t, 7, m->graph);
      graph = true;
    } else if (k.field == 8) {
      FileSpan body = wire_bytes(&k);
      const OnnxOpset *o = &m->opsets.at[opsets++];
      if (version_in(&w, body) == o->version)
        wire_put_bytes(t, 8, body.at, body.n);
      else
        put_opset(&w, t, o);
    } else {
      copy_field(t, &k, start);
    }
  }
  if (!m->body.at) {
    wire_put_int(t, 1, m->ir_version);
    put_str(&w, t, 2, m->producer);
    put_graph(&w, t, 7, m->graph);
  }
  for (; opsets < m->opsets.n; opsets++) put_opset(&w, t, &m->opsets.at[opsets]);
  if (t->n > WIRE_MAX_BYTES)
    fail(c, ERR_unsupported, LOC_NONE,
         "the model takes %zu bytes, but a protobuf file holds at most %u", t->n,
         (unsigned)WIRE_MAX_BYTES);
}

u64 onnx_save(Ctx *c, const OnnxModel *m, const char *from, const char *path) {
  const char *slash = strrchr(path, '/');
  Str side_path = str_fmt(c, "%s.data", path),
      name = str_fmt(c, "%s.data", slash ? slash + 1 : path);
  OnnxOut out = {.model = sb_new(&c->work),
                 .side = sb_new(&c->work),
                 .side_name = str_text(c, name),
                 .side_from = EXTERNAL_THRESHOLD,
                 .from = from};
  onnx_write(c, m, &out);
  FileOut f[2] = {{.path = path, .at = out.model.at, .n = out.model.n},
                  {.path = str_text(c, side_path), .at = out.side.at, .n = out.side.n}};
  files_write(c, f, out.side.n ? 2 : 1);
  return out.model.n + out.side.n;
}
