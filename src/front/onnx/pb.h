/* pb.h: .pb files of ONNX test data. See io/data.h for the contract of readers and writers. */
#ifndef INGOT_PB_H
#define INGOT_PB_H

#include "front/reader.h"

typedef struct PbValue PbValue; /* a tensor, a sequence, or an optional */

struct PbValue {
  TypeKind kind;
  Tensor *t;     /* TY_tensor */
  Tensor *keys;  /* keys of a map, whose values are the elements; else NULL */
  PbValue *elem; /* n elements; TY_opt has 0 or 1 */
  u32 n;
};

/* Reads a TensorProto, SequenceProto or OptionalProto, according to the declared type. NULL or a
 * type without kind: a tensor. model_path as for onnx_tensor. */
PbValue *data_read_pb(Ctx *c, const u8 *at, size_t n, const DeclType *type, const char *path,
                      Loc loc, Arena *a);
void data_write_pb(Ctx *c, StrBuf *out, Str name, const Tensor *t);
/* The elements without header, as in raw_data and external files; no strings. */
u64 data_raw_bytes(const Tensor *t);
void data_write_raw(Ctx *c, StrBuf *out, const Tensor *t);
void data_write_datum(Ctx *c, StrBuf *out, Str name, const PbValue *d);
/* The folder, or its subfolder test_data_set_0 if the arrays are there. */
const char *data_folder(Ctx *c, const char *folder);
/* Existing paths FOLDER/STEM_0.pb, FOLDER/STEM_1.pb... */
Strs data_list(Ctx *c, const char *folder, const char *stem, Arena *a);

#endif
