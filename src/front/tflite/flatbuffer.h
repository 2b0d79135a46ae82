/* flatbuffer.h: a FlatBuffers reader for untrusted bytes. See flatbuffer.c. */
#ifndef INGOT_FLATBUFFER_H
#define INGOT_FLATBUFFER_H

#include "io/wire.h"

typedef struct FlatBuffer FlatBuffer; /* the bytes of one buffer */
typedef struct FlatTable FlatTable;   /* a table in it */
typedef struct FlatVec FlatVec;       /* a vector in it */

struct FlatBuffer {
  Ctx *c;
  const u8 *at;
  size_t n;
  Loc loc;  /* location in messages */
  u64 left; /* budget of bytes to open: see flat_open */
};

/* All offsets were checked to lie in the buffer. f NULL: absent, all fields have defaults. */
struct FlatTable {
  FlatBuffer *f;
  size_t at, fields; /* offsets of the table and of its vtable entries */
  u32 n, size;       /* number of fields; size of the table in bytes */
};

/* n elements of `size` bytes; n 0: empty or absent (given is false). */
struct FlatVec {
  FlatBuffer *f;
  size_t at;
  u32 n, size;
  bool given;
};

/* Tables may be shared, so a small file can describe a large tree. The bytes of everything opened
 * are limited to a few times the file size. */
FlatBuffer flat_open(Ctx *c, const u8 *at, size_t n, Loc loc);
FlatTable flat_root(FlatBuffer *f);
void flat_charge(FlatBuffer *f, u64 n); /* charges n more bytes; fails beyond the budget */
/* Fields of a table by number; `otherwise` if absent. */
bool flat_has(const FlatTable *t, u32 field);
i64 flat_i8(const FlatTable *t, u32 field, i64 otherwise);
i64 flat_u8(const FlatTable *t, u32 field, i64 otherwise);
i64 flat_i32(const FlatTable *t, u32 field, i64 otherwise);
i64 flat_u32(const FlatTable *t, u32 field, i64 otherwise);
u64 flat_u64(const FlatTable *t, u32 field, u64 otherwise);
float flat_f32(const FlatTable *t, u32 field, float otherwise);
FlatTable flat_table(const FlatTable *t, u32 field);
FlatVec flat_vec(const FlatTable *t, u32 field, u32 size);
FileSpan flat_bytes(const FlatTable *t, u32 field); /* a byte vector, or a string */
Str flat_str(const FlatTable *t, u32 field);        /* 0: absent or empty */
/* Elements of a vector; i < v->n. */
FlatTable flat_vec_table(const FlatVec *v, u32 i);
i64 flat_vec_int(const FlatVec *v, u32 i); /* signed, 1, 4 or 8 bytes */
float flat_vec_f32(const FlatVec *v, u32 i);

#endif
