/* gguf.h: GGUF files: keys with typed values, and tensors.
 *
 * gguf_read is a pure function of the bytes, which must outlive the result: strings, arrays and
 * weights are never copied. The result is fully validated: lengths, counts and sizes fit the file,
 * names are unique, tensors do not overlap. Versions 2 and 3, little-endian. Other versions, and
 * tensor types that are not in qblocks.def, are refused by name.
 */
#ifndef INGOT_GGUF_H
#define INGOT_GGUF_H

#include "io/stored_tensor.h"
#include "io/wire.h"

typedef struct Gguf Gguf;       /* a file */
typedef struct GgufKey GgufKey; /* a key and the location of its value */
typedef struct GgufOut GgufOut; /* a file being written */
typedef VEC(Chunk) GgufPieces;

enum {
  GGUF_RANK = 4,
  GGUF_DEPTH = 4,      /* nesting of arrays */
  GGUF_ALIGNMENT = 32, /* default */
  GGUF_ALIGNMENT_MOST = 4096,
};

/* In the order of their numbers in the file. */
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
  GgufType type; /* type of the value, or of the elements of an array */
  bool array;
  u64 n;          /* elements; 1 if not an array */
  const u8 *at;   /* the first element: little-endian, unaligned */
  const u8 *stop; /* end of the last element */
};

struct Gguf {
  u32 version;
  u64 alignment;
  VEC(GgufKey) key;
  Map by_key; /* name -> 1 + index in key */
  StoredTensors tensor;
};

bool gguf_sniff(const u8 *at, size_t n);
Gguf *gguf_read(Ctx *c, const u8 *at, size_t n, Loc loc);
const GgufKey *gguf_key(Ctx *c, const Gguf *g, const char *name); /* NULL: absent */
/* Reads the element at *at, which is not an array, and advances *at. Integers and bool as i64
 * (false if a u64 does not fit), floats as double, strings as bytes of the file. */
bool gguf_int(GgufType t, const u8 **at, i64 *out); /* false: not an integer, or too large */
bool gguf_float(GgufType t, const u8 **at, double *out);
FileSpan gguf_string(const u8 **at);
extern const char *const gguf_type_name[GT_COUNT];
/* Bytes per element; the minimum for strings and arrays. */
extern const u8 gguf_type_bytes[GT_COUNT];

/* gguf_write.c: writes keys and tensors in the order of the calls */
struct GgufOut {
  Ctx *c;
  Arena *a;
  u64 alignment;
  StrBuf keys, tensors; /* their records */
  u64 nkey, ntensor;
  u64 end;          /* size of the data so far */
  GgufPieces piece; /* chunks of the data */
  u64 bytes;        /* size of the complete file */
};
GgufOut *gguf_out(Ctx *c, Arena *a, u64 alignment);
void gguf_put_int(GgufOut *o, const char *name, GgufType t, i64 x); /* or bool */
void gguf_put_float(GgufOut *o, const char *name, double x);        /* an f32 */
void gguf_put_string(GgufOut *o, const char *name, const void *at, size_t n);
void gguf_put_text(GgufOut *o, const char *name, const char *text);
/* Starts a list; the caller adds its n elements next. */
void gguf_put_list(GgufOut *o, const char *name, GgufType t, u64 n);
void gguf_add_int(GgufOut *o, GgufType t, i64 x);
void gguf_add_float(GgufOut *o, double x);
void gguf_add_string(GgufOut *o, const void *at, size_t n);
void gguf_put_key(GgufOut *o, const GgufKey *k); /* a copy of a key of another file */
/* Ignores t->at: `data` provides t->bytes bytes. */
void gguf_put_tensor(GgufOut *o, const StoredTensor *t, Chunk data);
GgufPieces gguf_finish(GgufOut *o); /* chunks of the whole file, for files_write */

#endif
