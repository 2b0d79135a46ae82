/* data.h: tensors in files of their own: .npy and .npz.
 *
 * Readers are pure functions of the bytes, which must outlive the result: what can be used in place
 * is not copied. They refuse whatever is left over or missing with ERR_input, legal files that
 * ingot cannot hold with ERR_unsupported. Writers append to a Text; the same tensor always gives
 * the same bytes.
 */
#ifndef INGOT_DATA_H
#define INGOT_DATA_H

#include "ir/ir.h"

typedef struct NamedTensor NamedTensor;

struct NamedTensor {
  Str name;
  Tensor *t;
};
typedef VEC(NamedTensor) NamedTensors;

/* npy.c */
Tensor *data_read_npy(Ctx *c, const u8 *at, size_t n, Loc loc, Arena *a);
/* numpy has no name for bf16, the 8-bit floats and types below a byte, and stores them as V2 or V1
 * (one element per byte). Such arrays are taken to hold `as`, if that is such a type; otherwise
 * refused. */
Tensor *data_read_npy_as(Ctx *c, const u8 *at, size_t n, DType as, Loc loc, Arena *a);
void data_write_npy(Ctx *c, StrBuf *out, const Tensor *t);

/* npz.c: zip archives of .npy members, stored or deflated; other members are ignored. Written ones
 * are stored. */
NamedTensors data_read_npz(Ctx *c, const u8 *at, size_t n, Loc loc, Arena *a);
/* Unpacks only the arrays that `want` names; of the others t is NULL. */
typedef bool NpzFilter(const void *user, Str name);
NamedTensors data_read_npz_some(Ctx *c, const u8 *at, size_t n, Loc loc, Arena *a, NpzFilter *want,
                                const void *user);
void data_write_npz(Ctx *c, StrBuf *out, const Str *name, Tensor *const *t, u32 n);

/* bytes.c: bytes of the exact length -> tensor, used in place where possible. big: numbers are
 * big-endian. */
Tensor *data_from_bytes(Arena *a, DType dt, const i64 *dim, u32 rank, const u8 *at, bool big);

/* One packed byte into up to `n` elements of bits 2 or 4, lowest bits first. */
void data_unpack_byte(DType dt, u8 byte, u8 *to, u64 n);

/* npz.c, from inflate.h: RFC 1951. NULL, or what is wrong; in and out must be used up exactly. */
const char *inflate(const u8 *in, size_t nin, u8 *out, size_t nout);

#endif
