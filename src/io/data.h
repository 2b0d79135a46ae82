/* data.h: tensors in files of their own: .npy, .npz, and the .pb files of ONNX test data.
 *
 * Readers are pure functions of the bytes, which must outlive the result: what can be used in place
 * is not copied. They refuse whatever is left over or missing with ERR_input, legal files that
 * ingot cannot hold with ERR_unsupported. Writers append to a Text; the same tensor always gives
 * the same bytes.
 */
#ifndef INGOT_DATA_H
#define INGOT_DATA_H

#include "front/onnx/onnx.h"

typedef struct Named Named;
typedef struct Datum Datum; /* a tensor, a sequence, or an optional */

struct Named {
  Str name;
  Tensor *t;
};
typedef VEC(Named) NamedVec;

struct Datum {
  TypeKind kind;
  Tensor *t;    /* TY_tensor */
  Tensor *keys; /* of a map, whose elements are its values; else NULL */
  Datum *elem;  /* n of them; TY_opt has 0 or 1 */
  u32 n;
};

/* npy.c */
Tensor *data_read_npy(Ctx *c, const u8 *at, size_t n, Loc loc, Arena *a);
/* numpy has no name for bf16, the 8-bit floats and types below a byte, and stores them as V2 or V1
 * (one element per byte). Such arrays are taken to hold `as`, if that is such a type; otherwise
 * refused. */
Tensor *data_read_npy_as(Ctx *c, const u8 *at, size_t n, DType as, Loc loc, Arena *a);
void data_write_npy(Ctx *c, Text *out, const Tensor *t);

/* npz.c: zip archives of .npy members, stored or deflated; other members are ignored. Written ones
 * are stored. */
NamedVec data_read_npz(Ctx *c, const u8 *at, size_t n, Loc loc, Arena *a);
void data_write_npz(Ctx *c, Text *out, const Str *name, Tensor *const *t, u32 n);

/* pb.c */
/* A TensorProto, SequenceProto or OptionalProto: the files do not say which, the declared type
 * does. NULL or a type without kind: a tensor. model_path as for onnx_tensor. */
Datum *data_read_pb(Ctx *c, const u8 *at, size_t n, const OnnxType *type, const char *path, Loc loc,
                    Arena *a);
void data_write_pb(Ctx *c, Text *out, Str name, const Tensor *t);
void data_write_datum(Ctx *c, Text *out, Str name, const Datum *d);
/* The folder, or test_data_set_0 in it where the arrays are there. */
const char *data_folder(Ctx *c, const char *folder);
/* Paths FOLDER/STEM_0.pb, FOLDER/STEM_1.pb... as far as they exist. */
Strs data_list(Ctx *c, const char *folder, const char *stem, Arena *a);

/* tensor.c: bytes of the exact length -> tensor, used in place where possible. big: numbers are
 * big-endian. */
Tensor *data_from_bytes(Arena *a, DType dt, const i64 *dim, u32 rank, const u8 *at, bool big);

/* npz.c, from inflate.h: RFC 1951. NULL, or what is wrong; in and out must be used up exactly. */
const char *inflate(const u8 *in, size_t nin, u8 *out, size_t nout);

#endif
