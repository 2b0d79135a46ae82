/* pb.c: .pb files of ONNX test data: TensorProto, SequenceProto, OptionalProto.
 *
 * The files do not name their message; the declared type of the value decides. onnx_tensor.c loads
 * the elements. Message nesting is bounded. A map is the list of its values, with keys. Tensors are
 * written as raw data (string data for strings).
 */
#include "front/onnx/onnx.h"
#include "front/onnx/pb.h"
#include "io/data.h"
#include <sys/stat.h>
#include <string.h>

typedef struct ProtoRead {
  Ctx *c;
  Arena *a;
  Loc loc;
  const char *path;
  u64 *spent;
  u32 count; /* number of elements, at most ONNX_MAX_TENSORS */
} ProtoRead;

/* SequenceProto.DataType and OptionalProto.DataType. */
enum { EL_none, EL_tensor, EL_sparse, EL_seq, EL_map, EL_opt };

static void read_list(ProtoRead *r, Wire k, PbValue *d);

static void read_tensor(ProtoRead *r, Wire k, PbValue *d) {
  d->kind = TY_tensor;
  d->t = onnx_tensor(r->c, onnx_tensor_at(k), r->path, r->loc, r->a);
}

/* MapProto: keys are integers (field 3) or strings (4), values a SequenceProto (5). */
static void read_map(ProtoRead *r, Wire k, PbValue *d) {
  VEC(i64) key = {0};
  bool text = false;
  d->kind = TY_seq;
  while (wire_next(&k)) {
    if (k.field == 3) {
      Wire list = wire_list(&k, WT_varint);
      while (wire_more(&list)) *vec_push(r->a, &key) = (i64)wire_varint(&list);
    } else if (k.field == 4) {
      text = true;
      *vec_push(r->a, &key) = (i64)wire_str(&k);
    } else if (k.field == 5) {
      read_list(r, wire_message(&k), d);
    } else {
      wire_skip(&k);
    }
  }
  i64 n = key.n;
  if (d->n != key.n) wire_fail(&k, k.pos, "a map has more or fewer keys than values");
  d->keys = tensor_new(r->a, text ? DT_str : DT_i64, &n, 1);
  for (u32 i = 0; i < key.n; i++) tensor_set(d->keys, i, (Scalar){.i = key.at[i]});
}

/* One element. In both messages its kind is the field number minus 2. */
static void read_elem(ProtoRead *r, Wire *k, PbValue *d) {
  Wire m = wire_message(k);
  switch (k->field - 2) {
  case EL_tensor: read_tensor(r, m, d); break;
  case EL_sparse:
    d->kind = TY_tensor;
    d->t = onnx_sparse(r->c, onnx_sparse_at(m, r->spent), r->path, r->loc, r->a);
    break;
  case EL_seq:
  case EL_opt:
    d->kind = k->field - 2 == EL_seq ? TY_seq : TY_opt;
    read_list(r, m, d);
    break;
  default: read_map(r, m, d);
  }
}

/* SequenceProto (d->kind TY_seq) or OptionalProto (TY_opt): same fields, many or one. */
static void read_list(ProtoRead *r, Wire k, PbValue *d) {
  VEC(PbValue) elems = {0};
  i64 type = EL_none;
  while (wire_next(&k)) {
    if (k.field == 2) {
      type = wire_int(&k);
      if (type < EL_none || type > EL_opt) wire_fail(&k, k.pos, "the element type is not known");
    } else if (k.field >= 3 && k.field <= 7) {
      if (type != EL_none && k.field - 2 != (u64)type)
        wire_fail(&k, k.pos, "an element does not have the declared type");
      if (d->kind == TY_opt) elems.n = 0;
      if (r->count++ >= ONNX_MAX_TENSORS) wire_limit(&k, k.pos, "more than 1000000 elements");
      u32 field = k.field;
      PbValue *slot = vec_push(r->a, &elems);
      *slot = (PbValue){0};
      read_elem(r, &k, slot);
      type = field - 2; /* applies to all following elements */
    } else {
      wire_skip(&k);
    }
  }
  d->elem = elems.at;
  d->n = elems.n;
}

PbValue *data_read_pb(Ctx *c, const u8 *at, size_t n, const DeclType *type, const char *path,
                      Loc loc, Arena *a) {
  ProtoRead r = {.c = c, .a = a, .loc = loc, .path = path, .spent = NEW(a, u64)};
  PbValue *d = NEW(a, PbValue);
  Wire k = wire_open(c, at, n, loc);
  switch (type ? type->kind : OT_none) {
  case OT_none:
  case OT_tensor: read_tensor(&r, k, d); break;
  case OT_sparse:
    d->kind = TY_tensor;
    d->t = onnx_sparse(c, onnx_sparse_at(k, r.spent), path, loc, a);
    break;
  case OT_seq:
  case OT_opt:
    d->kind = type->kind == OT_seq ? TY_seq : TY_opt;
    read_list(&r, k, d);
    break;
  case OT_map: read_map(&r, k, d); break;
  default: fail(c, ERR_unsupported, loc, "opaque values are not supported");
  }
  return d;
}

/* ---- writing ---- */

/* Packs elements below 8 bits, lowest bits first. */
static void put_packed(StrBuf *out, const Tensor *t, u64 bytes) {
  u32 bits = dtype_info[t->dt].bits, per = 8 / bits, mask = (1u << bits) - 1;
  const u8 *from = t->data;
  for (u64 i = 0; i < bytes; i++) {
    u32 x = 0;
    for (u32 k = 0; k < per && i * per + k < t->n; k++)
      x |= (from[i * per + k] & mask) << (k * bits);
    sb_put(out, (u8[1]){(u8)x}, 1);
  }
}

static bool is_packed(DType dt) {
  return dtype_info[dt].bits < 8 && dt != DT_bool;
}

u64 data_raw_bytes(const Tensor *t) {
  u32 per = is_packed(t->dt) ? 8 / dtype_info[t->dt].bits : 1;
  return per > 1 ? t->n / per + (t->n % per != 0) : tensor_bytes(t);
}

void data_write_raw(Ctx *c, StrBuf *out, const Tensor *t) {
  u64 bytes = data_raw_bytes(t);
  if (is_packed(t->dt))
    put_packed(out, t, bytes);
  else if (bytes > 0) /* swapped on big-endian hosts: the format is little-endian */
    sb_put(out, data_from_bytes(&c->scratch, t->dt, t->dim, t->rank, t->data, false)->data, bytes);
}

void data_write_pb(Ctx *c, StrBuf *out, Str name, const Tensor *t) {
  for (u32 i = 0; i < t->rank; i++) {
    wire_put_int(out, 1, t->dim[i]);
  }
  wire_put_int(out, 2, dtype_info[t->dt].onnx);
  if (name) wire_put_bytes(out, 8, str_text(c, name), str_len(c, name));
  if (t->dt == DT_str) {
    for (u64 i = 0; i < t->n; i++) {
      Str s = (Str)tensor_get(t, i).i;
      wire_put_bytes(out, 6, str_text(c, s), str_len(c, s));
    }
    return;
  }
  u64 bytes = data_raw_bytes(t);
  if (bytes > WIRE_MAX_BYTES - 4096)
    fail(c, ERR_unsupported, LOC_NONE, "a tensor of %llu bytes does not fit in a protobuf file",
         (unsigned long long)bytes);
  wire_put_varint(out, 9 << 3 | WT_bytes);
  wire_put_varint(out, bytes);
  data_write_raw(c, out, t);
}

/* Elements are nested messages, so each is built separately first. */
void data_write_datum(Ctx *c, StrBuf *out, Str name, const PbValue *d) {
  if (d->kind == TY_tensor) {
    data_write_pb(c, out, name, d->t);
    return;
  }
  static const u8 code[] = {[TY_tensor] = EL_tensor, [TY_seq] = EL_seq, [TY_opt] = EL_opt};
  u32 type = d->n ? code[d->elem[0].kind] : d->kind == TY_seq ? EL_tensor : EL_none;
  if (name) wire_put_bytes(out, 1, str_text(c, name), str_len(c, name));
  wire_put_int(out, 2, type);
  for (u32 i = 0; i < d->n; i++) {
    StrBuf part = sb_new(&c->scratch);
    data_write_datum(c, &part, 0, &d->elem[i]);
    wire_put_bytes(out, 2 + type, part.at, part.n);
  }
}

/* The layout of the ONNX model zoo: data folders are next to the model. */
const char *data_folder(Ctx *c, const char *folder) {
  struct stat st;
  static const char *const first[] = {"input_0.pb", "output_0.pb"};
  for (u32 i = 0; i < 2; i++)
    if (stat(fmt_text(c, "%s/%s", folder, first[i]), &st) == 0) return folder;
  const char *below = fmt_text(c, "%s/test_data_set_0", folder);
  return stat(below, &st) == 0 && S_ISDIR(st.st_mode) ? below : folder;
}

Strs data_list(Ctx *c, const char *folder, const char *stem, Arena *a) {
  Strs out = {0};
  struct stat st;
  for (u32 i = 0; i < 65536; i++) {
    Str path = str_fmt(c, "%s/%s_%u.pb", folder, stem, i);
    if (stat(str_text(c, path), &st) != 0) break;
    *vec_push(a, &out) = path;
  }
  return out;
}
