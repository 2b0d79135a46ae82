/* safetensors.c: reads safetensors files.
 *
 * In: the bytes of a file: u64 n (little-endian), n bytes of JSON, the data. Out: tensors that
 * point into the data. The JSON is an object: name -> {"dtype", "shape", "data_offsets": [begin,
 * end]}, with offsets from the start of the data. "__metadata__" is not a tensor. Method: each
 * entry is checked alone, then all are sorted by offset. Each must start where the previous one
 * ends.
 */
#include "io/safetensors.h"
#include "io/json.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RECORDS = 1000000 };
#define MAX_SIZE ((i64)INT32_MAX) /* per axis */

typedef struct Dtype {
  const char *name;
  QBlockKind kind;
} Dtype;

static const Dtype dtypes[] = {
    {"F64", BK_F64},   {"F32", BK_F32},         {"F16", BK_F16},         {"BF16", BK_BF16},
    {"I64", BK_I64},   {"I32", BK_I32},         {"I16", BK_I16},         {"I8", BK_I8},
    {"U64", BK_U64},   {"U32", BK_U32},         {"U16", BK_U16},         {"U8", BK_U8},
    {"BOOL", BK_BOOL}, {"F8_E4M3", BK_F8_E4M3}, {"F8_E5M2", BK_F8_E5M2},
};

/* A tensor and its offset. */
typedef struct Entry {
  StoredTensor t;
  u64 at;
} Entry;

static u64 header_bytes(const u8 *at) {
  u64 n = 0;
  for (u32 i = 8; i-- > 0;) n = n << 8 | at[i];
  return n;
}

bool safetensors_sniff(const u8 *at, size_t n) {
  return n > 8 && at[8] == '{' && header_bytes(at) <= SAFETENSORS_HEADER;
}

static QBlockKind read_dtype(const JsonDoc *d, const Json *entry) {
  const Json *j = json_require(d, entry, "dtype", JS_string);
  for (u32 i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
    if (json_is(j, dtypes[i].name)) return dtypes[i].kind;
  json_fail(d, j, ERR_unsupported, "dtype %s is not supported", show(d->c, json_str(d->c, j)));
}

/* Element i of an array of numbers. */
static i64 read_number(const JsonDoc *d, const Json *list, u32 i, i64 max) {
  const Json *j = &list->at[i];
  if (j->kind != JS_int || j->i < 0 || j->i > max)
    json_fail(d, j, ERR_input, "expected a number from 0 to %lld", (long long)max);
  return j->i;
}

static Entry read_entry(const JsonDoc *d, const Json *key, const Json *value, u64 size) {
  Entry e = {.t.name = json_str(d->c, key)};
  if (!key->n || memchr(key->text, 0, key->n))
    json_fail(d, key, ERR_input, "the name of a tensor is empty, or holds a zero");
  if (value->kind != JS_object)
    json_fail(d, value, ERR_input, "expected an object with dtype, shape and data_offsets");
  const Json *shape = json_require(d, value, "shape", JS_array);
  const Json *range = json_require(d, value, "data_offsets", JS_array);
  StoredTensor *t = &e.t;
  t->kind = read_dtype(d, value);
  t->rank = shape->n;
  if (shape->n > STORED_RANK)
    json_fail(d, shape, ERR_unsupported, "the shape has %u axes, expected at most %d", shape->n,
              STORED_RANK);
  u64 bytes = qblock_info[t->kind].bytes;
  bool empty = false;
  for (u32 i = 0; i < shape->n; i++) {
    t->dim[i] = read_number(d, shape, i, MAX_SIZE);
    empty |= t->dim[i] == 0;
    if (t->dim[i] && !size_mul(bytes, (u64)t->dim[i], &bytes)) bytes = UINT64_MAX;
  }
  if (empty) bytes = 0;
  if (range->n != 2) json_fail(d, range, ERR_input, "expected two numbers, begin and end");
  e.at = (u64)read_number(d, range, 0, INT64_MAX);
  u64 end = (u64)read_number(d, range, 1, INT64_MAX);
  if (end < e.at || end > size)
    json_fail(d, range, ERR_input, "data_offsets are %llu to %llu, but the data has %llu bytes",
              (unsigned long long)e.at, (unsigned long long)end, (unsigned long long)size);
  t->bytes = end - e.at;
  if (t->bytes != bytes)
    json_fail(d, range, ERR_input, "data_offsets span %llu bytes, shape and dtype need %llu",
              (unsigned long long)t->bytes, (unsigned long long)bytes);
  return e;
}

static void check_metadata(const JsonDoc *d, const Json *j) {
  if (j->kind != JS_object) json_fail(d, j, ERR_input, "__metadata__: expected an object");
  for (u32 i = 0; i < j->n; i++)
    if (json_value(j, i)->kind != JS_string)
      json_fail(d, json_value(j, i), ERR_input, "__metadata__: expected a string");
}

/* If several start at one byte, all but one are empty. */
static int by_place(const void *a, const void *b) {
  const Entry *x = a, *y = b;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  if (x->t.bytes != y->t.bytes) return x->t.bytes < y->t.bytes ? -1 : 1;
  return x->t.name < y->t.name ? -1 : x->t.name > y->t.name;
}

StoredTensors safetensors_read(Ctx *c, const u8 *at, size_t n, Loc loc) {
  StoredTensors out = {0};
  u64 header = n >= 8 ? header_bytes(at) : 0;
  if (n < 8 || header > n - 8)
    fail(c, ERR_input, loc, "the header claims %llu bytes, but the file has %zu",
         (unsigned long long)header, n);
  if (header > SAFETENSORS_HEADER)
    fail(c, ERR_input, loc, "the header has %llu bytes, expected at most %d",
         (unsigned long long)header, SAFETENSORS_HEADER);
  JsonDoc d = json_read(c, at + 8, (size_t)header, loc, &c->work);
  const u8 *data = at + 8 + header;
  u64 size = n - 8 - header, end = 0;
  if (d.root->kind != JS_object) json_fail(&d, d.root, ERR_input, "expected an object of tensors");
  if (d.root->n > MAX_RECORDS)
    json_fail(&d, d.root, ERR_input, "the file has %u tensors, expected at most %d", d.root->n,
              MAX_RECORDS);
  VEC(Entry) all = {0};
  for (u32 i = 0; i < d.root->n; i++) {
    const Json *key = json_key(d.root, i), *value = json_value(d.root, i);
    if (json_is(key, "__metadata__"))
      check_metadata(&d, value);
    else
      *vec_push(&c->work, &all) = read_entry(&d, key, value, size);
  }
  if (all.n) qsort(all.at, all.n, sizeof *all.at, by_place);
  for (u32 i = 0; i < all.n; i++) {
    Entry *e = &all.at[i];
    if (e->at != end)
      fail(c, ERR_input, loc, "tensor '%s' begins at byte %llu of the data, expected %llu",
           show(c, e->t.name), (unsigned long long)e->at, (unsigned long long)end);
    e->t.at = data + e->at;
    end = e->at + e->t.bytes;
    *vec_push(&c->work, &out) = e->t;
  }
  if (end != size)
    fail(c, ERR_input, loc, "%llu bytes are left after the last tensor",
         (unsigned long long)(size - end));
  return out;
}
