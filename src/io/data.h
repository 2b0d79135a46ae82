/* data.h: tensors in .npy and .npz files.
 *
 * Readers are pure functions of the bytes, which must outlive the result: native data is used in
 * place. Missing or extra bytes fail with ERR_input, valid files that ingot cannot represent with
 * ERR_unsupported. Writers append to a StrBuf and are deterministic.
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
/* numpy has no name for bf16, the 8-bit floats and types below a byte. It stores them as V2 or V1,
 * one element per byte. Such arrays are read as `as` if that is one of these types, else
 * refused. */
Tensor *data_read_npy_as(Ctx *c, const u8 *at, size_t n, DType as, Loc loc, Arena *a);
void data_write_npy(Ctx *c, StrBuf *out, const Tensor *t);

/* npz.c: zip archives of .npy members, stored or deflated. Other members are ignored. The writer
 * only stores. */
NamedTensors data_read_npz(Ctx *c, const u8 *at, size_t n, Loc loc, Arena *a);
/* Unpacks only the arrays for which `want` is true; the others have t == NULL. */
typedef bool NpzFilter(const void *user, Str name);
NamedTensors data_read_npz_some(Ctx *c, const u8 *at, size_t n, Loc loc, Arena *a, NpzFilter *want,
                                const void *user);
void data_write_npz(Ctx *c, StrBuf *out, const Str *name, Tensor *const *t, u32 n);

/* bytes.c: bytes of the exact length -> tensor, used in place if possible. big: big-endian. */
Tensor *data_from_bytes(Arena *a, DType dt, const i64 *dim, u32 rank, const u8 *at, bool big);

/* Unpacks a byte into up to `n` elements of 2 or 4 bits, lowest bits first. */
void data_unpack_byte(DType dt, u8 byte, u8 *to, u64 n);

/* npz.c, from inflate.h: RFC 1951. Returns NULL or an error. Input and output must be consumed
 * exactly. */
const char *inflate(const u8 *in, size_t nin, u8 *out, size_t nout);

#endif
