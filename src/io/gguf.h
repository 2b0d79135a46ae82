/* gguf.h: the container GGUF: keys with typed values, and tensors, in the bytes of one file.
 *
 * gguf_read is a pure function of the bytes, which must outlive what it returns: strings, arrays
 * and weights are never copied. What it returns has been checked as a whole: lengths, counts and
 * sizes fit the file, no name comes twice, no two tensors overlap. Version 2 and 3, little-endian;
 * others, and types of tensors that blocks.def does not have, are refused by name.
 */
#ifndef INGOT_GGUF_H
#define INGOT_GGUF_H

#include "io/stored.h"
#include "io/wire.h"

typedef struct Gguf Gguf;       /* a file */
typedef struct GgufKey GgufKey; /* a key and where its value lies */

enum {
  GGUF_RANK = 4,
  GGUF_DEPTH = 4, /* arrays in arrays */
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
  StoredVec tensor;
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

#endif
