/* onnx_model.c: ONNX protobuf messages -> plain structs.
 *
 * One function per message with a switch over field numbers. Of repeated singular fields the last
 * counts. Unknown fields are skipped. wire_message bounds recursion by WIRE_DEPTH. Counts are
 * bounded by the bytes present and by the limits in onnx.h. Tensor data are neither copied nor
 * read. The importer checks the meaning: operators, types, names.
 */
#include "front/onnx/onnx.h"
#include <string.h>

/* State of one decode. */
typedef struct ModelRead {
  Ctx *c;
  Arena *a;
  u64 *spent; /* see OnnxSparse */
  u32 nodes, tensors, records, items, graph_depth;
} ModelRead;

static void read_graph(ModelRead *r, Wire k, OnnxGraph *g);
static void read_type(ModelRead *r, Wire k, DeclType *t);

static void count(const Wire *k, u32 *n, u32 max, const char *what) {
  if (*n >= max)
    fail(k->c, ERR_unsupported, k->loc, "byte %zu: more than %u %s", k->pos, max, what);
  *n += 1;
}

/* Appends one element to a list. The limits keep 32-bit counts from wrapping. */
#define ADD_RECORD(r, k, v)                                                                        \
  (count((k), &(r)->records, ONNX_MAX_RECORDS, "records"), vec_push((r)->a, (v)))
#define ADD_ITEM(r, k, v)                                                                          \
  (count((k), &(r)->items, ONNX_MAX_ITEMS, "list elements"), vec_push((r)->a, (v)))

/* Reserves exactly n elements: most lists are short, and growing them by halves wastes memory. */
#define RESERVE(r, v, n) reserve((r)->a, (void **)&(v)->at, &(v)->cap, (n), sizeof *(v)->at)

static void reserve(Arena *a, void **at, u32 *cap, u32 n, size_t size) {
  if (n == 0 || n > ONNX_MAX_NODES) return; /* such lists grow on demand up to their limit */
  *at = arena_array(a, n, size);
  *cap = n;
}

/* The bytes of the message that k will read. */
static FileSpan body_of(const Wire *k) {
  return (FileSpan){k->base + k->pos, k->end - k->pos};
}

static i32 read_i32(Wire *k) {
  return (i32)(u32)(u64)wire_int(k);
}

static void read_ints(ModelRead *r, Wire *k, Ints *v) {
  for (Wire l = wire_list(k, WT_varint); wire_more(&l);) *ADD_ITEM(r, k, v) = (i64)wire_varint(&l);
}

static void read_pair(Wire k, OnnxPair *p) {
  while (wire_next(&k)) {
    switch (k.field) {
    case 1: p->key = wire_str(&k); break;
    case 2: p->value = wire_str(&k); break;
    default: wire_skip(&k);
    }
  }
}

static void read_opset(Wire k, OnnxOpset *o) {
  while (wire_next(&k)) {
    switch (k.field) {
    case 1: o->domain = wire_str(&k); break;
    case 2: o->version = wire_int(&k); break;
    default: wire_skip(&k);
    }
  }
}

/* ---- types ---- */

static void read_dim(Wire k, DeclDim *d) {
  while (wire_next(&k)) {
    switch (k.field) {
    case 1:
      d->kind = OD_value;
      d->value = wire_int(&k);
      break;
    case 2:
      d->param = wire_str(&k);
      d->kind = d->param ? OD_param : OD_unknown;
      break;
    default: wire_skip(&k);
    }
  }
}

static void read_shape(ModelRead *r, Wire k, DeclType *t) {
  u32 n[WIRE_COUNTS];
  wire_counts(k, n);
  t->has_shape = true;
  t->dims.n = 0;
  RESERVE(r, &t->dims, n[1]);
  while (wire_next(&k)) {
    if (k.field == 1)
      read_dim(wire_message(&k), ADD_RECORD(r, &k, &t->dims));
    else
      wire_skip(&k);
  }
}

/* The body of tensor_type and sparse_tensor_type. */
static void read_tensor_type(ModelRead *r, Wire k, DeclType *t) {
  while (wire_next(&k)) {
    switch (k.field) {
    case 1:
      t->elem_code = read_i32(&k);
      t->dt = dtype_from_onnx(t->elem_code);
      break;
    case 2: read_shape(r, wire_message(&k), t); break;
    default: wire_skip(&k);
    }
  }
}

/* Body of sequence_type, optional_type (element: field 1) and map_type (key: 1, value: 2). */
static void read_elem_type(ModelRead *r, Wire k, DeclType *t) {
  u32 field = t->kind == OT_map ? 2 : 1;
  count(&k, &r->records, ONNX_MAX_RECORDS, "records");
  t->elem = NEW(r->a, DeclType);
  while (wire_next(&k)) {
    if (k.field == field) {
      *t->elem = (DeclType){0};
      read_type(r, wire_message(&k), t->elem);
    } else if (k.field == 1) {
      t->elem_code = read_i32(&k);
      t->dt = dtype_from_onnx(t->elem_code);
    } else {
      wire_skip(&k);
    }
  }
}

static void read_type(ModelRead *r, Wire k, DeclType *t) {
  while (wire_next(&k)) {
    DeclTypeKind kind = OT_none;
    switch (k.field) {
    case 1: kind = OT_tensor; break;
    case 4: kind = OT_seq; break;
    case 5: kind = OT_map; break;
    case 7: kind = OT_opaque; break;
    case 8: kind = OT_sparse; break;
    case 9: kind = OT_opt; break;
    default: wire_skip(&k); continue;
    }
    *t = (DeclType){.kind = kind};
    Wire body = wire_message(&k);
    if (kind == OT_tensor || kind == OT_sparse)
      read_tensor_type(r, body, t);
    else if (kind != OT_opaque)
      read_elem_type(r, body, t);
  }
}

static void read_value(ModelRead *r, Wire k, DeclValue *v) {
  while (wire_next(&k)) {
    switch (k.field) {
    case 1: v->name = wire_str(&k); break;
    case 2:
      v->type = (DeclType){0};
      read_type(r, wire_message(&k), &v->type);
      break;
    default: wire_skip(&k);
    }
  }
}

/* ---- tensors ---- */

/* Typed data stay in the file. Records only that they are present; an empty packed list is not. */
static void note_data(OnnxTensor *t, Wire *k) {
  u32 field = k->field; /* skipping a group changes k->field */
  bool empty = false;
  if (k->wire == WT_bytes)
    empty = wire_bytes(k).n == 0 && field != 6;
  else
    wire_skip(k);
  if (!empty) t->fields |= 1u << field;
}

static void read_tensor(ModelRead *r, Wire k, OnnxTensor *t) {
  u32 n[WIRE_COUNTS];
  count(&k, &r->tensors, ONNX_MAX_TENSORS, "tensors");
  wire_counts(k, n);
  RESERVE(r, &t->dims, n[1]);
  RESERVE(r, &t->external, n[13]);
  t->base = k.base;
  t->body = body_of(&k);
  while (wire_next(&k)) {
    switch (k.field) {
    case 1: read_ints(r, &k, &t->dims); break;
    case 2:
      t->code = read_i32(&k);
      t->dt = dtype_from_onnx(t->code);
      break;
    case 3:
      t->has_segment = true;
      wire_skip(&k);
      break;
    case 4:
    case 5:
    case 6:
    case 7:
    case 10:
    case 11: note_data(t, &k); break;
    case 8: t->name = wire_str(&k); break;
    case 9: t->raw = wire_bytes(&k); break;
    case 13: read_pair(wire_message(&k), ADD_RECORD(r, &k, &t->external)); break;
    case 14: t->is_external = wire_int(&k) == 1; break;
    default: wire_skip(&k);
    }
  }
}

static OnnxTensor *new_tensor(ModelRead *r, Wire k) {
  OnnxTensor *t = NEW(r->a, OnnxTensor);
  read_tensor(r, k, t);
  return t;
}

static void read_sparse(ModelRead *r, Wire k, OnnxSparse *s) {
  count(&k, &r->records, ONNX_MAX_RECORDS, "records");
  s->spent = r->spent;
  while (wire_next(&k)) {
    switch (k.field) {
    case 1: s->values = new_tensor(r, wire_message(&k)); break;
    case 2: s->indices = new_tensor(r, wire_message(&k)); break;
    case 3: read_ints(r, &k, &s->dims); break;
    default: wire_skip(&k);
    }
  }
}

/* ---- nodes ---- */

static OnnxGraph *new_graph(ModelRead *r, Wire k) {
  count(&k, &r->records, ONNX_MAX_RECORDS, "records");
  if (r->graph_depth >= ONNX_GRAPH_DEPTH) wire_limit(&k, k.pos, "graphs nested more than 16 deep");
  OnnxGraph *g = NEW(r->a, OnnxGraph);
  r->graph_depth++;
  read_graph(r, k, g);
  r->graph_depth--;
  return g;
}

/* Field number of AttributeProto -> the type it belongs to. */
static OnnxAttrType attr_type_of(u32 field) {
  static const u8 type[24] = {
      [2] = OA_float,  [3] = OA_int,    [4] = OA_string,  [5] = OA_tensor,   [6] = OA_graph,
      [7] = OA_floats, [8] = OA_ints,   [9] = OA_strings, [10] = OA_tensors, [11] = OA_graphs,
      [14] = OA_type,  [15] = OA_types, [22] = OA_sparse, [23] = OA_sparses,
  };
  return field < 24 ? (OnnxAttrType)type[field] : OA_none;
}

static void read_floats(ModelRead *r, Wire *k, OnnxAttr *a) {
  for (Wire l = wire_list(k, WT_fixed32); wire_more(&l);) {
    u32 bits = wire_u32(&l);
    memcpy(ADD_ITEM(r, k, &a->floats), &bits, sizeof bits);
  }
}

static void read_attr_field(ModelRead *r, Wire *k, OnnxAttr *a) {
  switch (k->field) {
  case 1: a->name = wire_str(k); break;
  case 2: a->f = wire_float(k); break;
  case 3: a->i = wire_int(k); break;
  case 4: a->s = wire_str(k); break;
  case 5: a->t = new_tensor(r, wire_message(k)); break;
  case 6: a->g = new_graph(r, wire_message(k)); break;
  case 7: read_floats(r, k, a); break;
  case 8: read_ints(r, k, &a->ints); break;
  case 9: *ADD_ITEM(r, k, &a->strings) = wire_str(k); break;
  case 10: read_tensor(r, wire_message(k), vec_push(r->a, &a->tensors)); break;
  case 11: *ADD_RECORD(r, k, &a->graphs) = new_graph(r, wire_message(k)); break;
  case 14:
    a->tp = NEW(r->a, DeclType);
    count(k, &r->records, ONNX_MAX_RECORDS, "records");
    read_type(r, wire_message(k), a->tp);
    break;
  case 15: read_type(r, wire_message(k), ADD_RECORD(r, k, &a->types)); break;
  case 21: a->ref = wire_str(k); break;
  case 22:
    a->sparse = NEW(r->a, OnnxSparse);
    read_sparse(r, wire_message(k), a->sparse);
    break;
  case 23: read_sparse(r, wire_message(k), ADD_RECORD(r, k, &a->sparses)); break;
  default: wire_skip(k);
  }
}

static void read_attr(ModelRead *r, Wire k, OnnxAttr *a) {
  size_t start = k.pos;
  a->body = body_of(&k);
  i64 declared = 0;
  OnnxAttrType seen = OA_none;
  while (wire_next(&k)) {
    if (k.field == 20) {
      declared = wire_int(&k);
      continue;
    }
    if (attr_type_of(k.field) != OA_none) seen = attr_type_of(k.field);
    read_attr_field(r, &k, a);
  }
  if (declared < 0 || declared >= OA_COUNT)
    fail(r->c, ERR_input, k.loc, "byte %zu: attribute '%s' has type %lld, expected 0 to %d", start,
         show(r->c, a->name), (long long)declared, OA_COUNT - 1);
  a->type = declared ? (OnnxAttrType)declared : seen;
  bool empty = (a->type == OA_tensor && !a->t) || (a->type == OA_graph && !a->g) ||
               (a->type == OA_sparse && !a->sparse) || (a->type == OA_type && !a->tp);
  if (empty && !a->ref)
    fail(r->c, ERR_input, k.loc, "byte %zu: attribute '%s' lacks the value of its type", start,
         show(r->c, a->name));
}

static void check_attrs(const ModelRead *r, const Wire *k, const OnnxNode *n, size_t start);

static void read_node(ModelRead *r, Wire k, OnnxNode *n) {
  size_t start = k.pos;
  u32 have[WIRE_COUNTS];
  count(&k, &r->nodes, ONNX_MAX_NODES, "nodes");
  n->body = body_of(&k);
  wire_counts(k, have);
  RESERVE(r, &n->in, have[1]);
  RESERVE(r, &n->out, have[2]);
  RESERVE(r, &n->attrs, have[5]);
  while (wire_next(&k)) {
    switch (k.field) {
    case 1: *ADD_ITEM(r, &k, &n->in) = wire_str(&k); break;
    case 2: *ADD_ITEM(r, &k, &n->out) = wire_str(&k); break;
    case 3: n->name = wire_str(&k); break;
    case 4: n->op = wire_str(&k); break;
    case 5: read_attr(r, wire_message(&k), ADD_RECORD(r, &k, &n->attrs)); break;
    case 7: n->domain = wire_str(&k); break;
    case 8: n->overload = wire_str(&k); break;
    default: wire_skip(&k);
    }
  }
  check_attrs(r, &k, n, start);
}

/* Refuses two attributes of one name. Few attributes are compared pairwise, many by a map. */
static void check_attrs(const ModelRead *r, const Wire *k, const OnnxNode *n, size_t start) {
  bool many = n->attrs.n > 16;
  Map seen = map_new(&r->c->scratch);
  for (u32 i = 0; i < n->attrs.n; i++) {
    Str name = n->attrs.at[i].name;
    bool twice = false;
    if (many) {
      u32 *slot = map_put(&seen, name);
      twice = *slot;
      *slot = 1;
    } else {
      for (u32 j = 0; j < i; j++) twice |= n->attrs.at[j].name == name;
    }
    if (twice)
      fail(r->c, ERR_input, k->loc, "byte %zu: node '%s' (%s) has two attributes '%s'", start,
           show(r->c, n->name), show(r->c, n->op), show(r->c, name));
  }
}

static void read_graph(ModelRead *r, Wire k, OnnxGraph *g) {
  u32 n[WIRE_COUNTS];
  g->body = body_of(&k);
  wire_counts(k, n);
  RESERVE(r, &g->nodes, n[1]);
  RESERVE(r, &g->inits, n[5]);
  RESERVE(r, &g->inputs, n[11]);
  RESERVE(r, &g->outputs, n[12]);
  while (wire_next(&k)) {
    switch (k.field) {
    case 1: read_node(r, wire_message(&k), vec_push(r->a, &g->nodes)); break;
    case 2: g->name = wire_str(&k); break;
    case 5: read_tensor(r, wire_message(&k), vec_push(r->a, &g->inits)); break;
    case 11: read_value(r, wire_message(&k), ADD_RECORD(r, &k, &g->inputs)); break;
    case 12: read_value(r, wire_message(&k), ADD_RECORD(r, &k, &g->outputs)); break;
    case 15: read_sparse(r, wire_message(&k), ADD_RECORD(r, &k, &g->sparse_inits)); break;
    default: wire_skip(&k);
    }
  }
}

static void read_function(ModelRead *r, Wire k, OnnxFunction *f) {
  u32 n[WIRE_COUNTS];
  wire_counts(k, n);
  RESERVE(r, &f->nodes, n[7]);
  while (wire_next(&k)) {
    switch (k.field) {
    case 1: f->name = wire_str(&k); break;
    case 4: *ADD_ITEM(r, &k, &f->inputs) = wire_str(&k); break;
    case 5: *ADD_ITEM(r, &k, &f->outputs) = wire_str(&k); break;
    case 7: read_node(r, wire_message(&k), vec_push(r->a, &f->nodes)); break;
    case 9: read_opset(wire_message(&k), ADD_RECORD(r, &k, &f->opsets)); break;
    case 10: f->domain = wire_str(&k); break;
    case 11: read_attr(r, wire_message(&k), ADD_RECORD(r, &k, &f->attrs)); break;
    case 13: f->overload = wire_str(&k); break;
    default: wire_skip(&k);
    }
  }
}

OnnxModel *onnx_read(Ctx *c, const u8 *at, size_t n, Str file) {
  Loc loc = LOC_NONE;
  loc.file = file;
  Wire k = wire_open(c, at, n, loc);
  OnnxModel *m = NEW(&c->work, OnnxModel);
  ModelRead r = {.c = c, .a = &c->work, .spent = &m->sparse_spent};
  m->body = body_of(&k);
  while (wire_next(&k)) {
    switch (k.field) {
    case 1: m->ir_version = wire_int(&k); break;
    case 2: m->producer = wire_str(&k); break;
    case 3: m->producer_version = wire_str(&k); break;
    case 7: m->graph = new_graph(&r, wire_message(&k)); break;
    case 8: read_opset(wire_message(&k), ADD_RECORD(&r, &k, &m->opsets)); break;
    case 25: read_function(&r, wire_message(&k), ADD_RECORD(&r, &k, &m->functions)); break;
    default: wire_skip(&k);
    }
  }
  m->nnodes = r.nodes;
  if (!m->graph) fail(c, ERR_input, loc, "no graph in %zu bytes: not an ONNX model", n);
  return m;
}

const OnnxAttr *onnx_attr(const Ctx *c, const OnnxNode *n, const char *name) {
  for (u32 i = 0; i < n->attrs.n; i++)
    if (str_is(c, n->attrs.at[i].name, name)) return &n->attrs.at[i];
  return NULL;
}

OnnxTensor *onnx_tensor_at(Wire k) {
  ModelRead r = {.c = k.c, .a = &k.c->work};
  return new_tensor(&r, k);
}

OnnxSparse *onnx_sparse_at(Wire k, u64 *spent) {
  ModelRead r = {.c = k.c, .a = &k.c->work, .spent = spent};
  OnnxSparse *s = NEW(r.a, OnnxSparse);
  read_sparse(&r, k, s);
  return s;
}
