/* gguf.h: the container GGUF: keys with typed values, and tensors, in the bytes of one file.
 *
 * gguf_read is a pure function of the bytes, which must outlive what it returns: strings, arrays
 * and weights are never copied. What it returns has been checked as a whole: lengths, counts and
 * sizes fit the file, no name comes twice, no two tensors overlap. Version 2 and 3, little-endian;
 * others, and types of tensors that qblocks.def does not have, are refused by name.
 */
#ifndef INGOT_GGUF_H
#define INGOT_GGUF_H

#include "io/stored_tensor.h"
#include "io/wire.h"

typedef struct Gguf Gguf;       /* a file */
typedef struct GgufKey GgufKey; /* a key and where its value lies */
typedef struct GgufOut GgufOut; /* a file that is put together */
typedef VEC(Chunk) GgufPieces;

enum {
  GGUF_RANK = 4,
  GGUF_DEPTH = 4,      /* arrays in arrays */
  GGUF_ALIGNMENT = 32, /* unless the file says otherwise */
  GGUF_ALIGNMENT_MOST = 4096,
};

/* In the order of their numbers. */
typedef enum GgufType {
  GT_u8,
  GT_i8,
  GT_u16,
  GT_i16,
  GT_u32,
  GT_i32,
  GT_f32,
  GT_bool,
  GT_string,
  GT_array,
  GT_u64,
  GT_i64,
  GT_f64,
  GT_COUNT
} GgufType;

struct GgufKey {
  Str name;
  GgufType type; /* of the value; of its elements, if it is an array */
  bool array;
  u64 n;          /* elements; 1 if it is no array */
  const u8 *at;   /* of the first element: little-endian, anywhere */
  const u8 *stop; /* behind the last */
};

struct Gguf {
  u32 version;
  u64 alignment;
  VEC(GgufKey) key;
  Map by_key; /* name -> place in key, plus 1 */
  StoredTensors tensor;
};

bool gguf_sniff(const u8 *at, size_t n);
Gguf *gguf_read(Ctx *c, const u8 *at, size_t n, Loc loc);
const GgufKey *gguf_key(Ctx *c, const Gguf *g, const char *name); /* NULL: absent */
/* The element at *at, of a type that is no array, and *at moves behind it. Integers and bool as
 * i64 (a u64 beyond that is false), floats as double, strings as bytes of the file. */
bool gguf_int(GgufType t, const u8 **at, i64 *out); /* false: not an integer, or too large */
bool gguf_float(GgufType t, const u8 **at, double *out);
FileSpan gguf_string(const u8 **at);
extern const char *const gguf_type_name[GT_COUNT];
/* Bytes of an element; of the two that have none of their own, the fewest. */
extern const u8 gguf_type_bytes[GT_COUNT];

/* gguf_write.c: keys and tensors stand in the file in the order of the calls */
struct GgufOut {
  Ctx *c;
  Arena *a;
  u64 alignment;
  StrBuf keys, tensors; /* their records */
  u64 nkey, ntensor;
  u64 end;          /* of the data so far */
  GgufPieces piece; /* of the data */
  u64 bytes;        /* of the whole file, when it is finished */
};
GgufOut *gguf_out(Ctx *c, Arena *a, u64 alignment);
void gguf_put_int(GgufOut *o, const char *name, GgufType t, i64 x); /* or bool */
void gguf_put_float(GgufOut *o, const char *name, double x);        /* an f32 */
void gguf_put_string(GgufOut *o, const char *name, const void *at, size_t n);
/* A list; its n elements are added next. */
void gguf_put_list(GgufOut *o, const char *name, GgufType t, u64 n);
void gguf_add_int(GgufOut *o, GgufType t, i64 x);
void gguf_add_float(GgufOut *o, double x);
void gguf_add_string(GgufOut *o, const void *at, size_t n);
void gguf_put_key(GgufOut *o, const GgufKey *k); /* of another file, as it is */
/* t->at is not looked at: data are, or make, t->bytes bytes. */
void gguf_put_tensor(GgufOut *o, const StoredTensor *t, Chunk data);
GgufPieces gguf_finish(GgufOut *o); /* of the whole file, for files_write */

#endif
