/* gguf_write.c: writes GGUF version 3.
 *
 * In: keys and tensors in file order. The bytes of a tensor are a chunk that may be computed while
 * the file is written, so the whole file is never in memory. Out: chunks for files_write. The
 * grammar is in gguf.c.
 */
#include "io/gguf.h"

#include <string.h>

static const u8 zeros[GGUF_ALIGNMENT_MOST];

static void put(StrBuf *t, u64 x, u32 bytes) {
  u8 at[8];
  for (u32 i = 0; i < bytes; i++) at[i] = (u8)(x >> 8 * i);
  sb_put(t, at, bytes);
}

static void put_bytes(StrBuf *t, const void *at, size_t n) {
  put(t, n, 8);
  sb_put(t, at, n);
}

GgufOut *gguf_out(Ctx *c, Arena *a, u64 alignment) {
  GgufOut *o = NEW(a, GgufOut);
  o->c = c;
  o->a = a;
  o->alignment = alignment;
  o->keys = sb_new(a);
  o->tensors = sb_new(a);
  return o;
}

/* ---- keys ---- */

static void begin_key(GgufOut *o, const char *name, GgufType t) {
  put_bytes(&o->keys, name, strlen(name));
  put(&o->keys, t, 4);
  o->nkey++;
}

void gguf_put_int(GgufOut *o, const char *name, GgufType t, i64 x) {
  begin_key(o, name, t);
  put(&o->keys, (u64)x, gguf_type_bytes[t]);
}

void gguf_put_float(GgufOut *o, const char *name, double x) {
  float f = (float)x;
  u32 bits;
  memcpy(&bits, &f, sizeof bits);
  begin_key(o, name, GT_f32);
  put(&o->keys, bits, 4);
}

void gguf_put_string(GgufOut *o, const char *name, const void *at, size_t n) {
  begin_key(o, name, GT_string);
  put_bytes(&o->keys, at, n);
}

void gguf_put_text(GgufOut *o, const char *name, const char *text) {
  gguf_put_string(o, name, text, strlen(text));
}

void gguf_put_list(GgufOut *o, const char *name, GgufType t, u64 n) {
  begin_key(o, name, GT_array);
  put(&o->keys, t, 4);
  put(&o->keys, n, 8);
}

void gguf_add_int(GgufOut *o, GgufType t, i64 x) {
  put(&o->keys, (u64)x, gguf_type_bytes[t]);
}

void gguf_add_float(GgufOut *o, double x) {
  float f = (float)x;
  u32 bits;
  memcpy(&bits, &f, sizeof bits);
  put(&o->keys, bits, 4);
}

void gguf_add_string(GgufOut *o, const void *at, size_t n) {
  put_bytes(&o->keys, at, n);
}

void gguf_put_key(GgufOut *o, const GgufKey *k) {
  begin_key(o, str_text(o->c, k->name), k->array ? GT_array : k->type);
  if (k->array) {
    put(&o->keys, k->type, 4);
    put(&o->keys, k->n, 8);
  }
  sb_put(&o->keys, k->at, (size_t)(k->stop - k->at));
}

/* ---- tensors ---- */

void gguf_put_tensor(GgufOut *o, const StoredTensor *t, Chunk data) {
  u64 end;
  put_bytes(&o->tensors, str_text(o->c, t->name), str_len(o->c, t->name));
  put(&o->tensors, t->rank, 4);
  for (u32 i = t->rank; i-- > 0;) put(&o->tensors, (u64)t->dim[i], 8);
  put(&o->tensors, qblock_info[t->kind].gguf, 4);
  put(&o->tensors, o->end, 8);
  *vec_push(o->a, &o->piece) = data;
  if (!size_add(o->end, t->bytes, &end) || !size_align(end, o->alignment, &end))
    fail(o->c, ERR_input, LOC_NONE, "the tensors take more than 2^64 bytes");
  if (end > o->end + t->bytes)
    *vec_push(o->a, &o->piece) = (Chunk){.at = zeros, .n = (size_t)(end - o->end - t->bytes)};
  o->end = end;
  o->ntensor++;
}

GgufPieces gguf_finish(GgufOut *o) {
  GgufPieces all = {0};
  StrBuf head = sb_new(o->a);
  u64 n;
  sb_put(&head, "GGUF", 4);
  put(&head, 3, 4);
  put(&head, o->ntensor, 8);
  put(&head, o->nkey, 8);
  sb_put(&head, o->keys.at, o->keys.n);
  sb_put(&head, o->tensors.at, o->tensors.n);
  if (!size_align(head.n, o->alignment, &n)) n = head.n;
  sb_put(&head, zeros, (size_t)(n - head.n));
  *vec_push(o->a, &all) = (Chunk){.at = head.at, .n = head.n};
  for (u32 i = 0; i < o->piece.n; i++) *vec_push(o->a, &all) = o->piece.at[i];
  o->bytes = head.n + o->end;
  return all;
}
