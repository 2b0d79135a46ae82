/* tflite_model.c: decodes a TensorFlow Lite file into structs.
 *
 * In: bytes. Out: a LiteModel with copied names, tensors and operators; contents and options stay
 * in the file. All references are checked here: buffers, tensors, operator codes, sub-graphs. The
 * import reports everything unsupported. Field numbers are those of TensorFlow's schema.fbs,
 * version 3.
 */
#include "front/tflite/tflite_import.h"

#include "io/data.h"

#include <string.h>

/* Messages of the schema, fields in order. */
enum { MODEL_version, MODEL_codes, MODEL_graphs, MODEL_description, MODEL_buffers, MODEL_sigs = 7 };
enum { CODE_old, CODE_custom, CODE_version, CODE_builtin };
enum { GRAPH_tensors, GRAPH_in, GRAPH_out, GRAPH_ops, GRAPH_name };
enum { TENSOR_shape, TENSOR_type, TENSOR_buffer, TENSOR_name, TENSOR_quant, TENSOR_variable };
enum { TENSOR_sparsity = 6, TENSOR_open };
enum { QUANT_scale = 2, QUANT_zero, QUANT_details_type, QUANT_details, QUANT_axis };
enum { NODE_code, NODE_in, NODE_out, NODE_opt_type, NODE_opt, NODE_custom };
enum { NODE_intermediates = 8, NODE_custom_at, NODE_custom_n };
enum { BUFFER_data, BUFFER_at, BUFFER_n };
enum { SIG_in, SIG_out, SIG_key, SIG_graph = 4 };
enum { NAME_name, NAME_tensor };

typedef struct LiteCode {
  u32 code;
  Str name;
} LiteCode;

typedef struct LiteRead {
  Ctx *c;
  FlatBuffer *f;
  LiteModel *m;
  LiteCode *code;
  FileSpan *buffer;
  u32 ncode, nbuffer;
} LiteRead;

/* Types in the order of their codes. */
static const DType types[] = {
    DT_f32, DT_f16,  DT_i32, DT_u8,   DT_i64,  DT_str, DT_bool, DT_i16, DT_c64,  DT_i8,
    DT_f64, DT_c128, DT_u64, DT_none, DT_none, DT_u32, DT_u16,  DT_i4,  DT_bf16,
};

DType lite_dtype(i64 code) {
  return code >= 0 && (u64)code < sizeof types / sizeof *types ? types[code] : DT_none;
}

static _Noreturn void wrong(const LiteRead *r, const char *what, i64 i, u32 n) {
  fail(r->c, ERR_input, r->f->loc, "%s %lld, but there are only %u", what, (long long)i, n);
}

/* ---- tensors ---- */

static i64 *shape_of(LiteRead *r, const FlatVec *v, bool open, Str name) {
  i64 *dim = NEWS(&r->c->keep, i64, v->n + 1);
  for (u32 i = 0; i < v->n; i++) {
    dim[i] = flat_vec_int(v, i);
    if (dim[i] < (open ? -1 : 0))
      fail(r->c, ERR_input, r->f->loc, "tensor '%s': dimension %u is %lld, expected 0 or more",
           show(r->c, name), i, (long long)dim[i]);
  }
  return dim;
}

/* Converters write minimum and maximum without a scale for tensors that are not quantized. */
static LiteQuant quant_of(LiteRead *r, const LiteTensor *t, FlatTable q) {
  FlatVec scale = flat_vec(&q, QUANT_scale, 4), zero = flat_vec(&q, QUANT_zero, 8);
  LiteQuant out = {.n = scale.n, .other = flat_u8(&q, QUANT_details_type, 0) != 0};
  i64 axis = flat_i32(&q, QUANT_axis, 0);
  if (out.other) out.n = 0; /* group scales are not supported */
  if (!out.n) return out;
  float *s = NEWS(&r->c->keep, float, out.n);
  i64 *z = NEWS(&r->c->keep, i64, out.n);
  const char *name = show(r->c, t->name);
  if (zero.n > 1 && zero.n != out.n)
    fail(r->c, ERR_input, r->f->loc, "tensor '%s' has %u scales, but %u zero points", name, out.n,
         zero.n);
  for (u32 i = 0; i < out.n; i++) {
    s[i] = flat_vec_f32(&scale, i);
    z[i] = zero.n ? flat_vec_int(&zero, zero.n == 1 ? 0 : i) : 0;
    if (!(s[i] >= 0 && s[i] <= 3.4e38f) || z[i] < -65536 || z[i] > 65536)
      fail(r->c, ERR_input, r->f->loc,
           "tensor '%s' has scale %g and zero point %lld, expected up to 3.4e38 and +-65536", name,
           (double)s[i], (long long)z[i]);
  }
  out.scale = s;
  out.zero = z;
  out.axis = (u32)axis;
  if (out.n > 1 && (axis < 0 || axis >= t->rank || t->dim[axis] != out.n))
    fail(r->c, ERR_input, r->f->loc,
         "tensor '%s' has %u scales on axis %lld, expected one for each point of an axis", name,
         out.n, (long long)axis);
  return out;
}

static LiteTensor tensor_of(LiteRead *r, FlatTable x) {
  LiteTensor t = {.name = flat_str(&x, TENSOR_name), .code = (i32)flat_i8(&x, TENSOR_type, 0)};
  FlatVec shape = flat_vec(&x, TENSOR_shape, 4), open = flat_vec(&x, TENSOR_open, 4);
  i64 buffer = flat_u32(&x, TENSOR_buffer, 0);
  t.dt = lite_dtype(t.code);
  t.variable = flat_u8(&x, TENSOR_variable, 0) != 0;
  t.sparse = flat_table(&x, TENSOR_sparsity);
  t.rank = shape.n;
  if (t.rank > MAX_RANK)
    fail(r->c, ERR_unsupported, r->f->loc, "tensor '%s': rank %u exceeds %d", show(r->c, t.name),
         t.rank, MAX_RANK);
  t.dim = shape_of(r, &shape, false, t.name);
  if (open.n == shape.n && open.n) t.open = shape_of(r, &open, true, t.name);
  if (buffer >= r->nbuffer) wrong(r, "a tensor has buffer", buffer, r->nbuffer);
  t.raw = r->buffer[buffer];
  t.q = quant_of(r, &t, flat_table(&x, TENSOR_quant));
  return t;
}

Tensor *lite_tensor(Ctx *c, const LiteTensor *t, Loc loc) {
  u64 n, bytes;
  const char *name = show(c, t->name);
  if (!t->dt || t->dt == DT_str)
    fail(c, ERR_unsupported, loc, "tensor '%s' has contents of type %d, which is not supported",
         name, t->code);
  if (!shape_count(t->dim, t->rank, &n))
    fail(c, ERR_input, loc, "tensor '%s' has more than 2^40 elements", name);
  u32 bits = dtype_info[t->dt].bits;
  bytes = bits < 8 && t->dt != DT_bool ? (n * bits + 7) / 8 : n * dtype_bytes(t->dt);
  const u8 *at = t->sparse.f ? lite_dense(c, t, bytes, loc) : t->raw.at;
  if (!t->sparse.f && t->raw.n != bytes)
    fail(c, ERR_input, loc, "tensor '%s' has %zu bytes, but its shape takes %llu", name, t->raw.n,
         (unsigned long long)bytes);
  return data_from_bytes(&c->work, t->dt, t->dim, t->rank, at, false);
}

/* ---- operators ---- */

/* Tensor indices; -1: absent, if allowed. */
static i32 *list_of(LiteRead *r, const LiteGraph *g, FlatVec v, u32 *n, bool absent) {
  i32 *out = NEWS(&r->c->keep, i32, v.n + 1);
  for (u32 i = 0; i < v.n; i++) {
    i64 x = flat_vec_int(&v, i);
    if (x < (absent ? -1 : 0) || x >= g->ntensor)
      wrong(r, "an operator refers to tensor", x, g->ntensor);
    out[i] = (i32)x;
  }
  *n = v.n;
  return out;
}

static LiteOp op_of(LiteRead *r, const LiteGraph *g, FlatTable x) {
  i64 code = flat_u32(&x, NODE_code, 0);
  if (code >= r->ncode) wrong(r, "an operator has code", code, r->ncode);
  const LiteCode *k = &r->code[code];
  LiteOp op = {.code = k->code, .name = k->name};
  op.in = list_of(r, g, flat_vec(&x, NODE_in, 4), &op.nin, true);
  op.out = list_of(r, g, flat_vec(&x, NODE_out, 4), &op.nout, true);
  op.intermediate = list_of(r, g, flat_vec(&x, NODE_intermediates, 4), &op.nintermediate, true);
  op.opt_type = flat_u8(&x, NODE_opt_type, 0);
  if (op.opt_type) op.opt = flat_table(&x, NODE_opt);
  op.custom = flat_bytes(&x, NODE_custom);
  u64 at = flat_u64(&x, NODE_custom_at, 0), n = flat_u64(&x, NODE_custom_n, 0);
  if (at > 1) {
    if (at > r->f->n || n > r->f->n - at) wrong(r, "options of an operator at byte", (i64)at, 0);
    op.custom = (FileSpan){r->f->at + at, (size_t)n};
  }
  return op;
}

static LiteGraph graph_of(LiteRead *r, FlatTable x) {
  FlatVec tensors = flat_vec(&x, GRAPH_tensors, 4), ops = flat_vec(&x, GRAPH_ops, 4);
  LiteGraph g = {.name = flat_str(&x, GRAPH_name), .ntensor = tensors.n, .nop = ops.n};
  g.tensor = NEWS(&r->c->keep, LiteTensor, g.ntensor + 1);
  for (u32 i = 0; i < g.ntensor; i++) g.tensor[i] = tensor_of(r, flat_vec_table(&tensors, i));
  g.in = list_of(r, &g, flat_vec(&x, GRAPH_in, 4), &g.nin, false);
  g.out = list_of(r, &g, flat_vec(&x, GRAPH_out, 4), &g.nout, false);
  g.op = NEWS(&r->c->keep, LiteOp, g.nop + 1);
  for (u32 i = 0; i < g.nop; i++) g.op[i] = op_of(r, &g, flat_vec_table(&ops, i));
  return g;
}

/* ---- model ---- */

/* Codes above 127 do not fit the older one-byte field, which then holds 127. */
static void read_codes(LiteRead *r, FlatVec v) {
  r->ncode = v.n;
  r->code = NEWS(&r->c->scratch, LiteCode, v.n + 1);
  for (u32 i = 0; i < v.n; i++) {
    FlatTable x = flat_vec_table(&v, i);
    i64 old = flat_i8(&x, CODE_old, 0), code = flat_i32(&x, CODE_builtin, 0);
    if (old > code) code = old;
    Str custom = flat_str(&x, CODE_custom);
    if (code < 0) wrong(r, "operator code", code, v.n);
    r->code[i] = (LiteCode){(u32)code, custom};
    if (code != LITE_CUSTOM || !custom) r->code[i].name = lite_op_name(r->c, (u32)code);
  }
}

/* In files above 2 GB, contents follow the FlatBuffer. */
static void read_buffers(LiteRead *r, FlatVec v) {
  r->nbuffer = v.n;
  r->buffer = NEWS(&r->c->scratch, FileSpan, v.n + 1);
  for (u32 i = 0; i < v.n; i++) {
    FlatTable x = flat_vec_table(&v, i);
    u64 at = flat_u64(&x, BUFFER_at, 0), n = flat_u64(&x, BUFFER_n, 0);
    r->buffer[i] = flat_bytes(&x, BUFFER_data);
    if (at <= 1) continue;
    if (at > r->f->n || n > r->f->n - at)
      fail(r->c, ERR_input, r->f->loc, "is truncated: buffer %u has %llu bytes at offset %llu", i,
           (unsigned long long)n, (unsigned long long)at);
    r->buffer[i] = (FileSpan){r->f->at + at, (size_t)n};
  }
}

static LiteName *names_of(LiteRead *r, const LiteGraph *g, FlatVec v, u32 *n) {
  LiteName *out = NEWS(&r->c->keep, LiteName, v.n + 1);
  for (u32 i = 0; i < v.n; i++) {
    FlatTable x = flat_vec_table(&v, i);
    i64 tensor = flat_u32(&x, NAME_tensor, 0);
    if (tensor >= g->ntensor) wrong(r, "a signature names tensor", tensor, g->ntensor);
    out[i] = (LiteName){flat_str(&x, NAME_name), (u32)tensor};
  }
  *n = v.n;
  return out;
}

static void read_signatures(LiteRead *r, FlatVec v) {
  r->m->nsig = v.n;
  r->m->sig = NEWS(&r->c->keep, LiteSignature, v.n + 1);
  for (u32 i = 0; i < v.n; i++) {
    FlatTable x = flat_vec_table(&v, i);
    LiteSignature *s = &r->m->sig[i];
    i64 graph = flat_u32(&x, SIG_graph, 0);
    if (graph >= r->m->ngraph) wrong(r, "a signature is of sub-graph", graph, r->m->ngraph);
    s->graph = (u32)graph;
    s->key = flat_str(&x, SIG_key);
    s->in = names_of(r, &r->m->graph[graph], flat_vec(&x, SIG_in, 4), &s->nin);
    s->out = names_of(r, &r->m->graph[graph], flat_vec(&x, SIG_out, 4), &s->nout);
  }
}

bool lite_sniff(const u8 *at, size_t n) {
  return n >= 8 && !memcmp(at + 4, "TFL3", 4);
}

LiteModel *lite_read(Ctx *c, const u8 *at, size_t n, Str file) {
  FlatBuffer *f = NEW(&c->keep, FlatBuffer);
  LiteModel *m = NEW(&c->keep, LiteModel);
  LiteRead r = {.c = c, .f = f, .m = m};
  *f = flat_open(c, at, n, (Loc){.file = file, .index = -1});
  FlatTable x = flat_root(f);
  m->flat = f;
  m->version = flat_u32(&x, MODEL_version, 0);
  if (m->version != 3)
    fail(c, ERR_unsupported, f->loc, "TensorFlow Lite version %lld is not supported, expected 3",
         (long long)m->version);
  m->description = flat_str(&x, MODEL_description);
  read_codes(&r, flat_vec(&x, MODEL_codes, 4));
  read_buffers(&r, flat_vec(&x, MODEL_buffers, 4));
  FlatVec graphs = flat_vec(&x, MODEL_graphs, 4);
  if (!graphs.n) fail(c, ERR_input, f->loc, "the model has no sub-graph");
  m->ngraph = graphs.n;
  m->graph = NEWS(&c->keep, LiteGraph, graphs.n);
  for (u32 i = 0; i < graphs.n; i++) m->graph[i] = graph_of(&r, flat_vec_table(&graphs, i));
  read_signatures(&r, flat_vec(&x, MODEL_sigs, 4));
  return m;
}
