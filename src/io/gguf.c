/* gguf.c: reads GGUF files.
 *
 * In: the bytes of a file. Out: its keys and tensors, which point into these bytes. Grammar, all
 * numbers little-endian:
 *
 *   file    = "GGUF" u32:version u64:tensors u64:keys key* tensor* padding data
 *   key     = string u32:type value
 *   value   = a number of that type, or string, or array
 *   array   = u32:type u64:n value*
 *   string  = u64:n byte*
 *   tensor  = string u32:rank u64:size*rank u32:type u64:offset      sizes innermost first
 *
 * Offsets count from the data, which starts at a multiple of the alignment (key general.alignment,
 * default 32). Method: one pass with a bounds-checked cursor. A count is compared with the
 * remaining bytes before memory is allocated for it. Then tensors are sorted by offset: each must
 * start where the previous one ends, rounded up to the alignment.
 */
#include "io/gguf.h"

#include <stdlib.h>
#include <string.h>

enum {
  MAX_STRING = 16 << 20,
  MAX_ELEMENTS = 1 << 26, /* per array */
  MAX_RECORDS = 1000000,  /* keys or tensors */
  MAX_NAME = 255,         /* maximum bytes of a tensor name; ggml allows 63 */
  MAX_KEY = 65535,
  MIN_KEY_BYTES = 8 + 1 + 4 + 1,
  MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8,
  MIN_ALIGNMENT = 8,
};
#define MAX_SIZE  ((u64)INT32_MAX) /* per axis */
#define MAX_BYTES ((u64)1 << 40)   /* per tensor */

const char *const gguf_type_name[GT_COUNT] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                              "bool", "string", "array", "u64", "i64", "f64"};
const u8 gguf_type_bytes[GT_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

/* Tensor types that exist or existed and are not supported. */
static const struct {
  u32 number;
  const char *name;
} refused[] = {
    {4, "Q4_2 (withdrawn)"},
    {5, "Q4_3 (withdrawn)"},
    {9, "Q8_1"},
    {15, "Q8_K"},
    {16, "IQ2_XXS"},
    {17, "IQ2_XS"},
    {18, "IQ3_XXS"},
    {19, "IQ1_S"},
    {21, "IQ3_S"},
    {22, "IQ2_S"},
    {29, "IQ1_M"},
    {31, "Q4_0_4_4 (withdrawn)"},
    {32, "Q4_0_4_8 (withdrawn)"},
    {33, "Q4_0_8_8 (withdrawn)"},
    {36, "IQ4_NL_4_4 (withdrawn)"},
    {37, "IQ4_NL_4_8 (withdrawn)"},
    {38, "IQ4_NL_8_8 (withdrawn)"},
    {40, "NVFP4"},
    {41, "Q1_0"},
    {42, "Q2_0"},
};

typedef struct GgufCursor {
  Ctx *c;
  Loc loc;
  const u8 *base;
  size_t pos, end;
} GgufCursor;

static size_t left(const GgufCursor *k) {
  return k->end - k->pos;
}

static void need(const GgufCursor *k, u64 n, const char *what) {
  if (n > left(k))
    fail(k->c, ERR_input, k->loc, "GGUF, byte %zu: %s needs %llu bytes, the file has %zu more",
         k->pos, what, (unsigned long long)n, left(k));
}

static u64 load(const u8 *at, u32 bytes) {
  u64 x = 0;
  for (u32 i = bytes; i-- > 0;) x = x << 8 | at[i];
  return x;
}

static u64 take(GgufCursor *k, u32 bytes, const char *what) {
  need(k, bytes, what);
  k->pos += bytes;
  return load(k->base + k->pos - bytes, bytes);
}

static FileSpan take_string(GgufCursor *k, u64 max, const char *what) {
  u64 n = take(k, 8, what);
  need(k, n, what);
  if (n > max)
    fail(k->c, ERR_input, k->loc, "GGUF, byte %zu: %s has %llu bytes, expected at most %llu",
         k->pos, what, (unsigned long long)n, (unsigned long long)max);
  k->pos += (size_t)n;
  return (FileSpan){k->base + k->pos - n, (size_t)n};
}

/* Names are used in maps, messages and comments: text without NUL. */
static Str take_name(GgufCursor *k, u64 max, const char *what) {
  FileSpan s = take_string(k, max, what);
  if (!s.n || memchr(s.at, 0, s.n) || !utf8_valid((const char *)s.at, s.n))
    fail(k->c, ERR_input, k->loc, "GGUF, byte %zu: %s is %s", k->pos - s.n, what,
         s.n ? "not UTF-8, or holds a zero" : "empty");
  return str_intern(k->c, s.at, s.n);
}

static GgufType take_type(GgufCursor *k) {
  u64 t = take(k, 4, "the type of a value");
  if (t >= GT_COUNT)
    fail(k->c, ERR_input, k->loc, "GGUF, byte %zu: type %llu of a value, expected 0 to %d",
         k->pos - 4, (unsigned long long)t, GT_COUNT - 1);
  return (GgufType)t;
}

/* Checks that n bytes are 0 or 1. */
static void check_bools(const GgufCursor *k, u64 n) {
  for (u64 i = 0; i < n; i++)
    if (k->base[k->pos + i] > 1)
      fail(k->c, ERR_input, k->loc, "GGUF, byte %llu: a bool is %u, expected 0 or 1",
           (unsigned long long)(k->pos + i), k->base[k->pos + i]);
}

/* Skips n values that are not arrays. */
static void skip_flat(GgufCursor *k, GgufType t, u64 n) {
  u64 bytes = 0;
  if (t == GT_string) {
    for (u64 i = 0; i < n; i++) take_string(k, MAX_STRING, "a string");
    return;
  }
  if (!size_mul(n, gguf_type_bytes[t], &bytes)) bytes = UINT64_MAX;
  need(k, bytes, "a value");
  if (t == GT_bool) check_bools(k, n);
  k->pos += (size_t)bytes;
}

static u64 take_count(GgufCursor *k, GgufType t) {
  u64 n = take(k, 8, "the length of an array");
  if (n > left(k) / gguf_type_bytes[t] || n > MAX_ELEMENTS)
    fail(k->c, ERR_input, k->loc,
         "GGUF, byte %zu: an array of %llu of type %s, the file has %zu more %s", k->pos - 8,
         (unsigned long long)n, gguf_type_name[t], left(k),
         n > MAX_ELEMENTS ? "bytes, and the limit is 2^26" : "bytes");
  return n;
}

/* Skips the elements of an array, including nested arrays: todo[d] elements remain at level d. */
static void skip_array(GgufCursor *k, GgufType t, u64 n) {
  u64 todo[GGUF_DEPTH];
  u32 depth = 1;
  if (t != GT_array) {
    skip_flat(k, t, n);
    return;
  }
  todo[0] = n;
  while (depth) {
    if (!todo[depth - 1]) {
      depth--;
      continue;
    }
    todo[depth - 1]--;
    t = take_type(k);
    n = take_count(k, t);
    if (t != GT_array) {
      skip_flat(k, t, n);
      continue;
    }
    if (depth == GGUF_DEPTH)
      fail(k->c, ERR_input, k->loc, "GGUF, byte %zu: arrays are nested more than %d deep", k->pos,
           GGUF_DEPTH);
    todo[depth++] = n;
  }
}

static void read_key(GgufCursor *k, Gguf *g) {
  GgufKey key = {.name = take_name(k, MAX_KEY, "a key"), .n = 1};
  Ctx *c = k->c;
  u32 *slot = map_put(&g->by_key, key.name);
  if (*slot) fail(c, ERR_input, k->loc, "key '%s' comes twice", show(c, key.name));
  if (*str_text(c, key.name) == '.')
    fail(c, ERR_input, k->loc, "key '%s' begins with '.'", show(c, key.name));
  key.type = take_type(k);
  if (key.type == GT_array) {
    key.array = true;
    key.type = take_type(k);
    key.n = take_count(k, key.type);
  }
  key.at = k->base + k->pos;
  if (key.array)
    skip_array(k, key.type, key.n);
  else
    skip_flat(k, key.type, 1);
  key.stop = k->base + k->pos;
  *vec_push(&c->work, &g->key) = key;
  *slot = g->key.n;
}

const GgufKey *gguf_key(Ctx *c, const Gguf *g, const char *name) {
  const u32 *slot = map_get(&g->by_key, str_of(c, name));
  return slot ? &g->key.at[*slot - 1] : NULL;
}

bool gguf_int(GgufType t, const u8 **at, i64 *out) {
  if (t == GT_f32 || t == GT_f64 || t == GT_string || t == GT_array) return false;
  u32 bytes = gguf_type_bytes[t], gap = 64 - 8 * bytes;
  u64 x = load(*at, bytes);
  bool is_signed = t == GT_i8 || t == GT_i16 || t == GT_i32 || t == GT_i64;
  *at += bytes;
  if (is_signed)
    *out = (i64)(x << gap) >> gap;
  else
    *out = (i64)x;
  return is_signed || x <= INT64_MAX;
}

bool gguf_float(GgufType t, const u8 **at, double *out) {
  u64 x = 0;
  if (t != GT_f32 && t != GT_f64) return false;
  x = load(*at, gguf_type_bytes[t]);
  *at += gguf_type_bytes[t];
  if (t == GT_f64) {
    memcpy(out, &x, sizeof x);
  } else {
    u32 bits = (u32)x;
    float f;
    memcpy(&f, &bits, sizeof f);
    *out = f;
  }
  return true;
}

FileSpan gguf_string(const u8 **at) {
  FileSpan s = {*at + 8, (size_t)load(*at, 8)};
  *at = s.at + s.n;
  return s;
}

/* ---- tensors ---- */

static _Noreturn void refuse_type(const GgufCursor *k, Str name, u32 type) {
  const char *known = NULL;
  for (u32 i = 0; i < sizeof refused / sizeof *refused; i++)
    if (refused[i].number == type) known = refused[i].name;
  if (known)
    fail(k->c, ERR_unsupported, k->loc, "tensor '%s' is stored as %s, which ingot does not read",
         show(k->c, name), known);
  fail(k->c, ERR_unsupported, k->loc,
       "tensor '%s' is stored as type number %u, which ingot does not know", show(k->c, name),
       type);
}

/* Computes and checks the number of elements, then of bytes. */
static void measure(const GgufCursor *k, StoredTensor *t) {
  const QBlockInfo *b = &qblock_info[t->kind];
  u64 n = 1;
  i64 row = t->dim[t->rank - 1];
  for (u32 i = 0; i < t->rank; i++)
    if (!size_mul(n, (u64)t->dim[i], &n)) n = UINT64_MAX;
  if (row % b->elems)
    fail(k->c, ERR_input, k->loc,
         "tensor '%s': rows of %lld elements, expected a multiple of %u for %s",
         show(k->c, t->name), (long long)row, b->elems, b->name);
  if (!size_mul(n / b->elems, b->bytes, &t->bytes) || t->bytes > MAX_BYTES)
    fail(k->c, ERR_input, k->loc, "tensor '%s' has more than 2^40 bytes", show(k->c, t->name));
}

/* Returns the offset of the tensor. */
static u64 read_tensor(GgufCursor *k, StoredTensor *t, u64 alignment) {
  t->name = take_name(k, MAX_NAME, "the name of a tensor");
  u64 rank = take(k, 4, "a tensor");
  if (rank < 1 || rank > GGUF_RANK)
    fail(k->c, ERR_input, k->loc, "tensor '%s' has %llu axes, expected 1 to %d",
         show(k->c, t->name), (unsigned long long)rank, GGUF_RANK);
  t->rank = (u32)rank;
  for (u32 i = t->rank; i-- > 0;) {
    u64 size = take(k, 8, "a tensor");
    if (size < 1 || size > MAX_SIZE)
      fail(k->c, ERR_input, k->loc, "tensor '%s' has an axis of %llu, expected 1 to 2^31-1",
           show(k->c, t->name), (unsigned long long)size);
    t->dim[i] = (i64)size;
  }
  u32 type = (u32)take(k, 4, "a tensor");
  t->kind = qblock_from_gguf(type);
  if (t->kind == BK_COUNT) refuse_type(k, t->name, type);
  measure(k, t);
  u64 offset = take(k, 8, "a tensor");
  if (offset % alignment)
    fail(k->c, ERR_input, k->loc, "tensor '%s' begins at byte %llu, expected a multiple of %llu",
         show(k->c, t->name), (unsigned long long)offset, (unsigned long long)alignment);
  return offset;
}

typedef struct GgufPlace {
  u64 at;
  u32 i;
} GgufPlace;

static int by_place(const void *a, const void *b) {
  const GgufPlace *x = a, *y = b;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  return x->i < y->i ? -1 : x->i > y->i;
}

/* Assigns data in order of offset. Each tensor must lie inside the data and follow the previous
 * one. */
static void lay_out(const GgufCursor *k, Gguf *g, GgufPlace *place, u64 data) {
  u64 end = 0, next, size = k->end - data;
  if (g->tensor.n) qsort(place, g->tensor.n, sizeof *place, by_place);
  for (u32 i = 0; i < g->tensor.n; i++) {
    StoredTensor *t = &g->tensor.at[place[i].i];
    if (!size_align(end, g->alignment, &next)) next = UINT64_MAX;
    if (place[i].at != next)
      fail(
          k->c, ERR_input, k->loc,
          "tensor '%s' begins at byte %llu of the data, expected %llu, the end of the previous one",
          show(k->c, t->name), (unsigned long long)place[i].at, (unsigned long long)next);
    if (place[i].at > size || t->bytes > size - place[i].at)
      fail(
          k->c, ERR_input, k->loc,
          "is truncated: tensor '%s' has %llu bytes from byte %llu of the data, which ends at byte "
          "%llu",
          show(k->c, t->name), (unsigned long long)t->bytes, (unsigned long long)place[i].at,
          (unsigned long long)size);
    t->at = k->base + data + place[i].at;
    end = place[i].at + t->bytes;
  }
  if (size - end >= g->alignment)
    fail(k->c, ERR_input, k->loc, "%llu bytes are left after the last tensor",
         (unsigned long long)(size - end));
}

static void read_tensors(GgufCursor *k, Gguf *g, u64 n) {
  Ctx *c = k->c;
  Map names = map_new(&c->work);
  GgufPlace *place = NEWS(&c->work, GgufPlace, n);
  u64 data;
  for (u32 i = 0; i < n; i++) {
    StoredTensor *t = vec_push(&c->work, &g->tensor);
    place[i] = (GgufPlace){read_tensor(k, t, g->alignment), i};
    u32 *slot = map_put(&names, t->name);
    if ((*slot)++) fail(c, ERR_input, k->loc, "tensor '%s' comes twice", show(c, t->name));
  }
  if (!size_align(k->pos, g->alignment, &data) || (n && data > k->end))
    fail(c, ERR_input, k->loc, "the data of %llu tensors are missing", (unsigned long long)n);
  lay_out(k, g, place, data < k->end ? data : k->end);
}

/* In a big-endian file the version appears as a small number in the high bytes. */
static u32 read_version(GgufCursor *k) {
  u64 v = take(k, 4, "the version");
  if (v == 2 || v == 3) return (u32)v;
  if (v && !(v & 0xffffff))
    fail(k->c, ERR_unsupported, k->loc,
         "is a big-endian GGUF file, ingot reads little-endian ones; convert the model again");
  if (!v) fail(k->c, ERR_input, k->loc, "GGUF version 0, expected 2 or 3");
  fail(k->c, ERR_unsupported, k->loc, "GGUF version %llu, ingot reads 2 and 3%s",
       (unsigned long long)v, v == 1 ? "; convert the model again" : "");
}

static u64 read_records(GgufCursor *k, u32 least, const char *what) {
  u64 n = take(k, 8, "the header");
  if (n > left(k) / least || n > MAX_RECORDS)
    fail(k->c, ERR_input, k->loc, "the header names %llu %s, the file has %zu more bytes%s",
         (unsigned long long)n, what, left(k), n > MAX_RECORDS ? ", and the limit is 1000000" : "");
  return n;
}

static u64 read_alignment(const GgufCursor *k, const Gguf *g) {
  const GgufKey *key = gguf_key(k->c, g, "general.alignment");
  i64 n = GGUF_ALIGNMENT;
  if (!key) return GGUF_ALIGNMENT;
  const u8 *at = key->at;
  if (key->array || key->type != GT_u32)
    fail(k->c, ERR_input, k->loc, "key 'general.alignment' has type %s%s, expected u32",
         key->array ? "array of " : "", gguf_type_name[key->type]);
  gguf_int(key->type, &at, &n);
  if (n < MIN_ALIGNMENT || n > GGUF_ALIGNMENT_MOST || (n & (n - 1)))
    fail(k->c, ERR_input, k->loc,
         "key 'general.alignment' is %lld, expected a power of two from %d to %d", (long long)n,
         MIN_ALIGNMENT, GGUF_ALIGNMENT_MOST);
  return (u64)n;
}

bool gguf_sniff(const u8 *at, size_t n) {
  return n >= 4 && !memcmp(at, "GGUF", 4);
}

Gguf *gguf_read(Ctx *c, const u8 *at, size_t n, Loc loc) {
  GgufCursor k = {c, loc, at, 0, n};
  Gguf *g = NEW(&c->work, Gguf);
  g->by_key = map_new(&c->work);
  if (!gguf_sniff(at, n)) fail(c, ERR_input, loc, "is not a GGUF file");
  k.pos = 4;
  g->version = read_version(&k);
  u64 tensors = read_records(&k, MIN_TENSOR_BYTES, "tensors");
  u64 keys = read_records(&k, MIN_KEY_BYTES, "keys");
  for (u64 i = 0; i < keys; i++) read_key(&k, g);
  g->alignment = read_alignment(&k, g);
  read_tensors(&k, g, tensors);
  return g;
}
