/* onnx_tensor.c: loads the elements of initializers, attributes, sparse tensors and data files.
 *
 * Elements come from raw_data, from the typed list of the element type, or from an external file.
 * The loader first checks that there is exactly one source. Then shape times type must equal the
 * bytes (or list elements) before anything is allocated. On little-endian hosts raw and external
 * bytes are used in place, except types below 8 bits, which are unpacked, and invalid bools, which
 * are copied. Checksums of external data are not verified.
 */
#include "front/onnx/onnx.h"
#include "io/data.h"
#include <string.h>

typedef struct Load {
  Ctx *c;
  Arena *a;
  Loc loc;
  const OnnxTensor *t;
  DType dt;
  u64 n;     /* elements */
  u64 bytes; /* in a file */
} Load;

/* Checks rank and extents; returns the number of elements. */
static u64 check_shape(Ctx *c, Loc loc, Str name, const Ints *dims) {
  u64 n;
  if (dims->n > MAX_RANK)
    fail(c, ERR_unsupported, loc, "tensor '%s' has rank %u, expected at most %d", show(c, name),
         dims->n, MAX_RANK);
  for (u32 i = 0; i < dims->n; i++) {
    if (dims->at[i] < 0)
      fail(c, ERR_input, loc, "tensor '%s' has extent %lld in dimension %u, expected at least 0",
           show(c, name), (long long)dims->at[i], i);
  }
  if (!shape_count(dims->at, dims->n, &n))
    fail(c, ERR_input, loc, "tensor '%s' has more than 2^40 elements", show(c, name));
  return n;
}

static DType check_dtype(Ctx *c, Loc loc, const OnnxTensor *t) {
  if (t->code == 0) fail(c, ERR_input, loc, "tensor '%s' has no element type", show(c, t->name));
  if (t->dt == DT_none)
    fail(c, ERR_unsupported, loc, "tensor '%s' has unknown element type %d, expected one of ONNX",
         show(c, t->name), (int)t->code);
  return t->dt;
}

/* Little-endian bytes of the exact length. */
static Tensor *from_bytes(const Load *l, const u8 *at) {
  return data_from_bytes(l->a, l->dt, l->t->dims.at, l->t->dims.n, at, false);
}

static Tensor *from_raw(const Load *l) {
  const OnnxTensor *t = l->t;
  if (l->dt == DT_str)
    fail(l->c, ERR_input, l->loc, "tensor '%s': strings cannot be raw data", show(l->c, t->name));
  if (t->raw.n != l->bytes)
    fail(l->c, ERR_input, l->loc,
         "tensor '%s' has %zu bytes of raw data, expected %llu from shape and type",
         show(l->c, t->name), t->raw.n, (unsigned long long)l->bytes);
  return from_bytes(l, t->raw.at);
}

/* ---- typed lists ---- */

/* The TensorProto field that holds elements of the type. */
static u32 list_field(DType dt) {
  switch (dt) {
  case DT_f32:
  case DT_c64: return 4;
  case DT_f64:
  case DT_c128: return 10;
  case DT_str: return 6;
  case DT_i64: return 7;
  case DT_u64:
  case DT_u32: return 11;
  default: return 5;
  }
}

static _Noreturn void fail_value(const Load *l, u64 i, i64 x) {
  fail(l->c, ERR_input, l->loc,
       "tensor '%s': found %lld at element %llu, expected a value of type %s",
       show(l->c, l->t->name), (long long)x, (unsigned long long)i, dtype_info[l->dt].name);
}

/* Stores value i of int32_data. Bit patterns may be sign-extended or not. */
static void put_i32(const Load *l, u8 *to, u64 i, i32 x) {
  u32 bits = dtype_stored_bits(l->dt) < 8 ? 8 : dtype_stored_bits(l->dt);
  if (bits < 32 && (x < -(1 << (bits - 1)) || x >= 1 << bits)) fail_value(l, i, x);
  if (l->dt == DT_bool) {
    to[i] = x != 0;
  } else if (dtype_info[l->dt].bits < 8) {
    u64 first = i * (8 / dtype_info[l->dt].bits);
    data_unpack_byte(l->dt, (u8)x, to + first, l->n - first);
  } else if (bits == 8) {
    to[i] = (u8)x;
  } else if (bits == 16) {
    u16 half = (u16)x;
    memcpy(to + 2 * i, &half, 2);
  } else {
    memcpy(to + 4 * i, &x, 4);
  }
}

/* Reads the next value of list l; i counts values, not elements. */
static void put_value(const Load *l, Wire *list, u8 *to, u64 i) {
  u32 u;
  u64 w;
  switch (list->field) {
  case 4:
    u = wire_u32(list);
    memcpy(to + 4 * i, &u, 4);
    break;
  case 5: put_i32(l, to, i, (i32)(u32)wire_varint(list)); break;
  case 10:
    w = wire_u64(list);
    memcpy(to + 8 * i, &w, 8);
    break;
  default:
    w = wire_varint(list);
    if (l->dt == DT_u32) {
      u = (u32)w;
      if (w > UINT32_MAX) fail_value(l, i, (i64)w);
      memcpy(to + 4 * i, &u, 4);
    } else {
      memcpy(to + 8 * i, &w, 8);
    }
  }
}

/* A float list in one packed piece can be used like raw data. */
static bool find_packed(const Load *l, u32 field, FileSpan *out) {
  if (field != 4 && field != 10) return false;
  Wire k = wire_reopen(l->c, l->t->base, l->t->body, l->loc);
  u32 pieces = 0;
  while (wire_next(&k)) {
    if (k.field != field) {
      wire_skip(&k);
      continue;
    }
    pieces++;
    if (k.wire != WT_bytes) return false;
    *out = wire_bytes(&k);
  }
  return pieces == 1 && out->n == l->bytes;
}

static _Noreturn void fail_count(const Load *l, u64 want, const char *how) {
  fail(l->c, ERR_input, l->loc, "tensor '%s': %s values than the %llu its shape asks for",
       show(l->c, l->t->name), how, (unsigned long long)want);
}

static Tensor *from_list(const Load *l, u32 field) {
  u32 bits = dtype_stored_bits(l->dt);
  u64 per = bits < 8 ? 8 / bits : 1, parts = dtype_info[l->dt].cls == 'C' ? 2 : 1;
  u64 want = l->n / per + (l->n % per != 0), have = 0;
  if (!size_mul(want, parts, &want) || want > l->t->body.n) /* a value takes at least one byte */
    fail_count(l, want, "fewer");
  FileSpan piece;
  if (find_packed(l, field, &piece)) return from_bytes(l, piece.at);
  u8 *to = arena_array(l->a, (size_t)l->n, dtype_bytes(l->dt));
  WireType elem = field == 4 ? WT_fixed32 : field == 10 ? WT_fixed64 : WT_varint;
  Wire k = wire_reopen(l->c, l->t->base, l->t->body, l->loc);
  while (wire_next(&k)) {
    if (k.field != field) {
      wire_skip(&k);
    } else if (field == 6) {
      Str s = wire_str(&k);
      if (have == want) fail_count(l, want, "more");
      memcpy(to + 4 * have++, &s, 4);
    } else {
      for (Wire list = wire_list(&k, elem); wire_more(&list); have++) {
        if (have == want) fail_count(l, want, "more");
        put_value(l, &list, to, have);
      }
    }
  }
  if (have < want) fail_count(l, want, "fewer");
  return tensor_wrap(l->a, l->dt, l->t->dims.at, l->t->dims.n, to);
}

/* ---- external data ---- */

static u64 parse_count(const Load *l, const char *key, Str value) {
  const char *s = str_text(l->c, value);
  u64 x = 0;
  size_t n = str_len(l->c, value);
  bool ok = n > 0;
  for (size_t i = 0; i < n && ok; i++)
    ok = s[i] >= '0' && s[i] <= '9' && size_mul(x, 10, &x) && size_add(x, (u64)(s[i] - '0'), &x);
  if (!ok)
    fail(l->c, ERR_input, l->loc, "tensor '%s': external data %s is '%s', expected a number",
         show(l->c, l->t->name), key, show(l->c, value));
  return x;
}

static Tensor *from_file(const Load *l, const char *model_path) {
  enum { LOCATION, OFFSET, LENGTH, CHECKSUM, KEYS };
  static const char *const name[KEYS] = {"location", "offset", "length", "checksum"};
  const OnnxTensor *t = l->t;
  const OnnxPair *found[KEYS] = {NULL};
  Ctx *c = l->c;
  for (u32 i = 0; i < t->external.n; i++) {
    const OnnxPair *p = &t->external.at[i];
    u32 k = 0;
    while (k < KEYS && !str_is(c, p->key, name[k])) k++;
    if (k == KEYS) continue;
    if (found[k])
      fail(c, ERR_input, l->loc, "tensor '%s': external data define '%s' twice", show(c, t->name),
           name[k]);
    found[k] = p;
  }
  if (!found[LOCATION])
    fail(c, ERR_input, l->loc, "tensor '%s': external data have no location", show(c, t->name));
  if (l->dt == DT_str)
    fail(c, ERR_input, l->loc, "tensor '%s': strings cannot be external data", show(c, t->name));
  u64 offset = found[OFFSET] ? parse_count(l, "offset", found[OFFSET]->value) : 0;
  u64 length = found[LENGTH] ? parse_count(l, "length", found[LENGTH]->value) : l->bytes;
  if (length != l->bytes)
    fail(c, ERR_input, l->loc,
         "tensor '%s' has %llu bytes of external data, expected %llu from shape and type",
         show(c, t->name), (unsigned long long)length, (unsigned long long)l->bytes);
  File f = file_read_beneath(c, model_path, found[LOCATION]->value, l->loc);
  if (offset > f.n || length > f.n - offset)
    fail(c, ERR_input, l->loc,
         "tensor '%s': external data of %llu bytes at %llu, but '%s' has %zu bytes",
         show(c, t->name), (unsigned long long)length, (unsigned long long)offset,
         show(c, found[LOCATION]->value), f.n);
  return from_bytes(l, f.at + offset);
}

Tensor *onnx_tensor(Ctx *c, const OnnxTensor *t, const char *model_path, Loc loc, Arena *a) {
  Load l = {.c = c, .a = a, .loc = loc, .t = t};
  if (t->data) return tensor_wrap(a, t->data->dt, t->data->dim, t->data->rank, t->data->data);
  l.dt = check_dtype(c, loc, t);
  l.n = check_shape(c, loc, t->name, &t->dims);
  u64 bits; /* n <= 2^40, so it cannot overflow; checked anyway */
  if (!size_mul(l.n, dtype_stored_bits(l.dt), &bits) || !size_add(bits, 7, &l.bytes))
    fail(c, ERR_input, loc, "tensor '%s' has more than 2^40 elements", show(c, t->name));
  l.bytes /= 8;
  if (t->has_segment)
    fail(c, ERR_unsupported, loc, "tensor '%s' is stored in segments, which is not supported",
         show(c, t->name));
  u32 field = list_field(l.dt);
  if (t->fields & ~(1u << field))
    fail(c, ERR_input, loc, "tensor '%s': data in a list that does not belong to type %s",
         show(c, t->name), dtype_info[l.dt].name);
  if ((t->fields != 0) + (t->raw.n > 0) + t->is_external > 1)
    fail(c, ERR_input, loc, "tensor '%s' has its data in more than one place", show(c, t->name));
  if (t->is_external) return from_file(&l, model_path);
  return t->raw.at && !t->fields ? from_raw(&l) : from_list(&l, field);
}

/* ---- sparse ---- */

/* Position of element i in the dense tensor; -1 if an index is out of range. */
static i64 dense_position(const Tensor *indices, const Ints *dims, u64 n, u64 i) {
  if (n == 0) return -1;
  if (indices->rank == 1) {
    i64 x = tensor_get(indices, i).i;
    return x >= 0 && (u64)x < n ? x : -1;
  }
  i64 at = 0; /* cannot overflow: below n, the product of all extents */
  for (u32 d = 0; d < dims->n; d++) {
    i64 x = tensor_get(indices, i * dims->n + d).i;
    if (x < 0 || x >= dims->at[d]) return -1;
    at = at * dims->at[d] + x;
  }
  return at;
}

Tensor *onnx_sparse(Ctx *c, const OnnxSparse *s, const char *model_path, Loc loc, Arena *a) {
  if (!s->values || !s->indices) fail(c, ERR_input, loc, "a sparse tensor lacks values or indices");
  const char *name = show(c, s->values->name);
  u64 n = check_shape(c, loc, s->values->name, &s->dims), bytes, total;
  Tensor *val = onnx_tensor(c, s->values, model_path, loc, a);
  Tensor *idx = onnx_tensor(c, s->indices, model_path, loc, a);
  bool fits = val->rank == 1 && idx->dt == DT_i64 && idx->rank >= 1 && idx->rank <= 2 &&
              idx->dim[0] == val->dim[0] && (idx->rank == 1 || idx->dim[1] == (i64)s->dims.n);
  if (!fits)
    fail(c, ERR_input, loc, "sparse tensor '%s': expected values [n] and i64 indices [n] or [n,%u]",
         name, s->dims.n);
  if (!size_mul(n, dtype_bytes(val->dt), &bytes) || !size_add(*s->spent, bytes, &total) ||
      total > ONNX_SPARSE_BYTES)
    fail(c, ERR_unsupported, loc,
         "sparse tensor '%s' and those before it take more than %llu bytes when dense", name,
         (unsigned long long)ONNX_SPARSE_BYTES);
  *s->spent = total;
  Tensor *out = tensor_new(a, val->dt, s->dims.at, s->dims.n);
  size_t size = dtype_bytes(val->dt);
  i64 last = -1;
  for (u64 i = 0; i < val->n; i++) {
    i64 at = dense_position(idx, &s->dims, n, i);
    if (at < 0)
      fail(c, ERR_input, loc, "sparse tensor '%s': index number %llu is outside of its shape", name,
           (unsigned long long)i);
    if (at <= last)
      fail(c, ERR_input, loc, "sparse tensor '%s': indices are not ascending at %llu", name,
           (unsigned long long)i);
    last = at;
    memcpy((u8 *)out->data + (size_t)at * size, (const u8 *)val->data + i * size, size);
  }
  return out;
}
