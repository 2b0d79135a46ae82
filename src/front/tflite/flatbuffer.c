/* flatbuffer.c: a reader of FlatBuffers.
 *
 * In: bytes. Out: their tables, vectors and strings by field number. Method: nothing is decoded in
 * advance. A table begins with the backward offset of its vtable (size of the vtable, size of the
 * table, an offset for each field, 0: absent). References are forward offsets; vectors begin with a
 * count. Every offset is checked when it is followed. Numbers are assembled from bytes, so
 * alignment and byte order do not matter. Offsets only lead forward, and recursion follows the
 * code, so cycles are impossible. FlatBuffer.left bounds the total that can be opened.
 */
#include "front/tflite/flatbuffer.h"

#include <string.h>

enum { FLAT_SHARE = 16, FLAT_LEAST = 1 << 16, FLAT_TABLE = 16 };

static _Noreturn void malformed(const FlatBuffer *f, const char *what, size_t at) {
  fail(f->c, ERR_input, f->loc, "not a well-formed FlatBuffer: %s at byte %zu", what, at);
}

/* Checks that there are n bytes at `at`. */
static void need(const FlatBuffer *f, u64 at, u64 n, const char *what) {
  if (at > f->n || n > f->n - at) malformed(f, what, at < f->n ? (size_t)at : f->n);
}

static void charge(FlatBuffer *f, u64 n, size_t at) {
  if (n > f->left) malformed(f, "parts are shared too often", at);
  f->left -= n;
}

void flat_charge(FlatBuffer *f, u64 n) {
  if (n > f->left)
    fail(f->c, ERR_unsupported, f->loc, "contents are many times as large as the file");
  f->left -= n;
}

/* n <= 8 bytes, little-endian, already checked to be present. */
static u64 number(const FlatBuffer *f, size_t at, u32 n) {
  u64 x = 0;
  for (u32 i = n; i-- > 0;) x = x << 8 | f->at[at + i];
  return x;
}

static i64 extended(u64 x, u32 n) {
  u64 sign = (u64)1 << (8 * n - 1);
  return (i64)((x ^ sign) - sign);
}

FlatBuffer flat_open(Ctx *c, const u8 *at, size_t n, Loc loc) {
  return (FlatBuffer){c, at, n, loc, (u64)n * FLAT_SHARE + FLAT_LEAST};
}

/* ---- tables ---- */

static FlatTable open_table(FlatBuffer *f, u64 at) {
  need(f, at, 4, "a table outside of the file");
  i64 back = extended(number(f, (size_t)at, 4), 4);
  i64 list = (i64)at - back;
  if (list < 0) malformed(f, "a table without fields", (size_t)at);
  need(f, (u64)list, 4, "a list of fields outside of the file");
  u64 bytes = number(f, (size_t)list, 2), size = number(f, (size_t)list + 2, 2);
  if (bytes < 4 || bytes % 2 || size < 4)
    malformed(f, "a list of fields with an invalid size", (size_t)list);
  need(f, (u64)list, bytes, "a list of fields outside of the file");
  need(f, at, size, "a table that ends outside of the file");
  charge(f, FLAT_TABLE, (size_t)at);
  return (FlatTable){f, (size_t)at, (size_t)list + 4, (u32)(bytes / 2 - 2), (u32)size};
}

FlatTable flat_root(FlatBuffer *f) {
  need(f, 0, 8, "the file is too short for a table");
  return open_table(f, number(f, 0, 4));
}

/* Offset of a field of n bytes; 0: absent. */
static size_t place(const FlatTable *t, u32 field, u32 n) {
  if (!t->f || field >= t->n) return 0;
  u64 at = number(t->f, t->fields + 2 * (size_t)field, 2);
  if (!at) return 0;
  if (at < 4 || at + n > t->size) malformed(t->f, "a field outside of its table", t->at);
  return t->at + (size_t)at;
}

bool flat_has(const FlatTable *t, u32 field) {
  return place(t, field, 0) != 0;
}

static i64 signed_field(const FlatTable *t, u32 field, u32 n, i64 otherwise) {
  size_t at = place(t, field, n);
  return at ? extended(number(t->f, at, n), n) : otherwise;
}

u64 flat_u64(const FlatTable *t, u32 field, u64 otherwise) {
  size_t at = place(t, field, 8);
  return at ? number(t->f, at, 8) : otherwise;
}

i64 flat_i8(const FlatTable *t, u32 field, i64 otherwise) {
  return signed_field(t, field, 1, otherwise);
}

i64 flat_u8(const FlatTable *t, u32 field, i64 otherwise) {
  size_t at = place(t, field, 1);
  return at ? t->f->at[at] : otherwise;
}

i64 flat_i32(const FlatTable *t, u32 field, i64 otherwise) {
  return signed_field(t, field, 4, otherwise);
}

i64 flat_u32(const FlatTable *t, u32 field, i64 otherwise) {
  size_t at = place(t, field, 4);
  return at ? (i64)number(t->f, at, 4) : otherwise;
}

static float float_at(const FlatBuffer *f, size_t at) {
  u32 bits = (u32)number(f, at, 4);
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

float flat_f32(const FlatTable *t, u32 field, float otherwise) {
  size_t at = place(t, field, 4);
  return at ? float_at(t->f, at) : otherwise;
}

FlatTable flat_table(const FlatTable *t, u32 field) {
  size_t at = place(t, field, 4);
  return at ? open_table(t->f, at + number(t->f, at, 4)) : (FlatTable){0};
}

/* ---- vectors ---- */

FlatVec flat_vec(const FlatTable *t, u32 field, u32 size) {
  size_t at = place(t, field, 4);
  if (!at) return (FlatVec){0};
  FlatBuffer *f = t->f;
  u64 to = at + number(f, at, 4);
  need(f, to, 4, "a vector outside of the file");
  u64 n = number(f, (size_t)to, 4);
  need(f, to + 4, n * size, "a vector that ends outside of the file");
  charge(f, size > 1 ? n * size : 4, (size_t)to);
  return (FlatVec){f, (size_t)to + 4, (u32)n, size, true};
}

FileSpan flat_bytes(const FlatTable *t, u32 field) {
  FlatVec v = flat_vec(t, field, 1);
  return v.given ? (FileSpan){v.f->at + v.at, v.n} : (FileSpan){0};
}

Str flat_str(const FlatTable *t, u32 field) {
  FlatVec v = flat_vec(t, field, 1);
  if (!v.n) return 0;
  charge(v.f, v.n, v.at);
  return str_intern(v.f->c, v.f->at + v.at, v.n);
}

FlatTable flat_vec_table(const FlatVec *v, u32 i) {
  size_t at = v->at + (size_t)i * 4;
  return open_table(v->f, at + number(v->f, at, 4));
}

i64 flat_vec_int(const FlatVec *v, u32 i) {
  return extended(number(v->f, v->at + (size_t)i * v->size, v->size), v->size);
}

float flat_vec_f32(const FlatVec *v, u32 i) {
  return float_at(v->f, v->at + (size_t)i * 4);
}
