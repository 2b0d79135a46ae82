/* weight.c: tensors of a model file as values of a graph.
 *
 * In: the name of a tensor. Out: a constant that points into the file, or the floats computed from
 * it. GGUF quant groups are dequantized. compressed-tensors stores NAME (i8) or NAME_packed (4 or 8
 * bits in u32, with an offset of half the range), NAME_scale, and optionally NAME_zero_point. A
 * scale applies to the whole tensor, a row, or a group of elements of a row.
 */
#include "front/compose/compose.h"
#include "front/llm/llm.h"
#include "io/data.h"

#include <string.h>

/* ---- supported quantization schemes ---- */

static const char *const formats[] = {"int-quantized", "pack-quantized"};

static _Noreturn void refuse(LmFile *f, const char *what, FileSpan s) {
  fail(f->c, ERR_unsupported, f->loc, "config.json: %s '%s' is not supported", what,
       show(f->c, str_intern(f->c, s.at, s.n)));
}

static bool is(FileSpan s, const char *text) {
  return s.n == strlen(text) && !memcmp(s.at, text, s.n);
}

void lm_check_quantized(LmFile *f) {
  FileSpan s;
  LmList l;
  bool known = false;
  if (f->gguf || !lm_list(f, "quantization_config", &l)) return;
  if (!lm_string(f, "quantization_config.quant_method", &s)) s = (FileSpan){(const u8 *)"", 0};
  if (!is(s, "compressed-tensors")) refuse(f, "quant_method", s);
  if (!lm_string(f, "quantization_config.format", &s)) s = (FileSpan){(const u8 *)"", 0};
  for (u32 i = 0; i < sizeof formats / sizeof *formats; i++) known |= is(s, formats[i]);
  if (!known) refuse(f, "format", s);
  if (lm_list(f, "quantization_config.transform_config.config_groups", &l) && l.json->n)
    fail(f->c, ERR_unsupported, f->loc,
         "config.json: transforms of quantized weights are not supported (transform_config)");
}

/* ---- constants ---- */

static Val constant(Graph *g, const StoredTensor *t) {
  Ctx *c = g->c;
  Tensor *x = data_from_bytes(&c->work, qblock_info[t->kind].plain, t->dim, t->rank, t->at, false);
  Val v = mk_const(g, x);
  graph_val(g, v)->name = t->name;
  return v;
}

/* Dequantizes u8[.., groups of a row, bytes of a group]. */
static Val unblocked(Graph *g, const LmFile *f, const StoredTensor *t) {
  const QBlockInfo *b = &qblock_info[t->kind];
  i64 dim[STORED_RANK + 1];
  memcpy(dim, t->dim, sizeof t->dim);
  dim[t->rank - 1] /= b->elems;
  dim[t->rank] = b->bytes;
  Val v = mk_const(g, tensor_wrap(&g->c->work, DT_u8, dim, t->rank + 1, t->at));
  graph_val(g, v)->name = t->name;
  return mk_dequantize(g, v, b->name, f->x_bits);
}

Val lm_experts_weight(Graph *g, const LmFile *f, const char *name, bool side) {
  StoredTensor t = *lm_require_tensor(f, name);
  Ctx *c = g->c;
  if (t.rank != 3 || !t.dim[0] || !t.dim[1] || !t.dim[2])
    fail(c, ERR_input, f->loc, "tensor '%s' has rank %u, expected experts, rows and columns",
         show(c, t.name), t.rank);
  i64 experts = t.dim[0], rows = t.dim[1];
  if (side) {
    size_t bytes = (size_t)(t.bytes / (u64)(experts * rows));
    u8 *at = arena_alloc(&c->work, (size_t)t.bytes);
    for (i64 r = 0; r < rows; r++)
      for (i64 e = 0; e < experts; e++)
        memcpy(at + (size_t)(r * experts + e) * bytes, t.at + (size_t)(e * rows + r) * bytes,
               bytes);
    t.at = at;
  }
  t.rank = 2;
  t.dim[0] = side ? rows : experts * rows;
  t.dim[1] = side ? experts * t.dim[2] : t.dim[2];
  return qblock_is_plain(t.kind) ? constant(g, &t) : unblocked(g, f, &t);
}

/* ---- integers with scales ---- */

static const StoredTensor *sibling_tensor(const LmFile *f, const char *name, const char *end) {
  return lm_tensor(f, str_text(f->c, str_fmt(f->c, "%s%s", name, end)));
}

bool lm_is_stored(const LmFile *f, const char *name) {
  return lm_tensor(f, name) || sibling_tensor(f, name, "_packed");
}

static _Noreturn void bad_tensor(const LmFile *f, const char *name, const char *what) {
  fail(f->c, ERR_input, f->loc, "tensor '%s': %s", show(f->c, str_of(f->c, name)), what);
}

/* u8[rows, bytes] to u8[rows, 2 * bytes]: low nibble first. */
static Val split_nibbles(Graph *g, Val v, i64 rows, i64 bytes) {
  Val low = mk_and(g, v, mk_scalar(g, DT_u8, 15)), high = mk_shr(g, v, mk_scalar(g, DT_u8, 4));
  v = mk_concat(g, (Val[]){mk_unsqueeze(g, low, 2), mk_unsqueeze(g, high, 2)}, 2, 2);
  return mk_reshape(g, v, (Dim[]){rows, bytes * 2}, 2);
}

/* The first cols elements of each row of u32, minus half their range: f32[rows, cols]. */
static Val unpack(Graph *g, const StoredTensor *t, i64 rows, i64 cols, u32 bits) {
  i64 dim[2] = {rows, t->dim[1] * 4};
  Val v = mk_const(g, tensor_wrap(&g->c->work, DT_u8, dim, 2, t->at));
  graph_val(g, v)->name = t->name;
  if (bits == 4) v = split_nibbles(g, v, rows, dim[1]);
  v = mk_cast(g, mk_slice_axis(g, v, 1, 0, cols), DT_f32);
  return mk_addk(g, v, -(double)(1 << (bits - 1)));
}

/* Number of u32 that hold n elements of 4 or 8 bits. */
static i64 packed_u32s(i64 n, u32 bits) {
  return (n * bits + 31) / 32;
}

/* Unpacks NAME_packed and returns its shape. */
static Val unpack_weight(Graph *g, const LmFile *f, const char *name, const StoredTensor *t,
                         i64 *size) {
  const StoredTensor *shape = sibling_tensor(f, name, "_shape");
  if (!shape || shape->rank != 1 || shape->dim[0] != 2 ||
      (shape->kind != BK_I64 && shape->kind != BK_I32))
    bad_tensor(f, name, "the weight is packed, but its _shape is not two integers");
  DType dt = qblock_info[shape->kind].plain;
  for (u32 i = 0; i < 2; i++) {
    u8 bytes[8];
    for (u32 k = 0; k < dtype_bytes(dt); k++)
      bytes[__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? dtype_bytes(dt) - 1 - k : k] =
          shape->at[i * dtype_bytes(dt) + k];
    size[i] = scalar_load(dt, bytes).i;
  }
  if (t->kind != BK_I32 || t->rank != 2 || size[0] != t->dim[0] || size[1] < 1 ||
      size[1] > INT32_MAX)
    bad_tensor(f, name, "the sizes of _packed and _shape do not match");
  if (sibling_tensor(f, name, "_g_idx"))
    fail(f->c, ERR_unsupported, f->loc, "tensor '%s': reordered groups (_g_idx) are not supported",
         show(f->c, str_of(f->c, name)));
  for (u32 bits = 4; bits <= 8; bits += 4)
    if (t->dim[1] == packed_u32s(size[1], bits)) return unpack(g, t, size[0], size[1], bits);
  bad_tensor(f, name, "the sizes of _packed and _shape do not match");
}

/* One zero point per scale: plain integers, or u32 that pack eight rows. */
static Val zeros(Graph *g, const LmFile *f, const char *name, const StoredTensor *z, i64 rows,
                 i64 groups) {
  if (z->kind != BK_I32) {
    if (!qblock_is_plain(z->kind) || z->bytes / qblock_info[z->kind].bytes != (u64)(rows * groups))
      bad_tensor(f, name, "the sizes of _zero_point and _scale do not match");
    return mk_cast(g, mk_reshape(g, constant(g, z), (Dim[]){rows, groups}, 2), DT_f32);
  }
  if (z->rank != 2 || z->dim[1] != groups || z->dim[0] != packed_u32s(rows, 4))
    bad_tensor(f, name, "the sizes of _zero_point and _scale do not match");
  Val v = mk_const(g, tensor_wrap(&g->c->work, DT_u8, (i64[]){z->dim[0], groups, 4}, 3, z->at));
  v = mk_reshape(g, mk_transpose(g, v, (i64[]){1, 0, 2}), (Dim[]){groups, z->dim[0] * 4}, 2);
  v = mk_slice_axis(g, split_nibbles(g, v, groups, z->dim[0] * 4), 1, 0, rows);
  return mk_addk(g, mk_cast(g, mk_transpose(g, v, (i64[]){1, 0}), DT_f32), -8);
}

/* Integers q f32[rows, cols] times the scales of NAME. */
static Val scaled(Graph *g, const LmFile *f, const char *name, Val q, const i64 *size) {
  const StoredTensor *s = sibling_tensor(f, name, "_scale"),
                     *z = sibling_tensor(f, name, "_zero_point");
  if (!s || !qblock_is_plain(s->kind) || !dtype_is_float(qblock_info[s->kind].plain))
    bad_tensor(f, name, "the weight is quantized, but has no float _scale");
  u64 n = s->bytes / qblock_info[s->kind].bytes;
  i64 rows = n == 1 ? 1 : size[0];
  if (!rows || !n || n % (u64)rows || size[1] % (i64)(n / (u64)rows))
    bad_tensor(f, name, "_scale does not have one element per row or group");
  i64 groups = (i64)(n / (u64)rows);
  Val k = mk_cast(g, mk_reshape(g, constant(g, s), (Dim[]){rows, groups, 1}, 3), DT_f32);
  q = mk_reshape(g, q, (Dim[]){size[0], groups, size[1] / groups}, 3);
  if (z) q = mk_sub(g, q, mk_unsqueeze(g, zeros(g, f, name, z, rows, groups), 2));
  return mk_reshape(g, mk_mul(g, q, k), (Dim[]){size[0], size[1]}, 2);
}

Val lm_weight(Graph *g, const LmFile *f, const char *name) {
  const StoredTensor *packed = sibling_tensor(f, name, "_packed");
  i64 size[2];
  if (packed) {
    Val q = unpack_weight(g, f, name, packed, size);
    return scaled(g, f, name, q, size);
  }
  const StoredTensor *t = lm_require_tensor(f, name);
  if (!qblock_is_plain(t->kind)) return unblocked(g, f, t);
  if (t->kind != BK_I8 || t->rank != 2 || !sibling_tensor(f, name, "_scale")) return constant(g, t);
  return scaled(g, f, name, mk_cast(g, constant(g, t), DT_f32), t->dim);
}
