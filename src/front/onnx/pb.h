/* pb.h: the .pb files of ONNX test data; see io/data.h for what readers and writers promise. */
#ifndef INGOT_PB_H
#define INGOT_PB_H

#include "front/reader.h"

typedef struct Datum Datum; /* a tensor, a sequence, or an optional */

struct Datum {
  TypeKind kind;
  Tensor *t;    /* TY_tensor */
  Tensor *keys; /* of a map, whose elements are its values; else NULL */
  Datum *elem;  /* n of them; TY_opt has 0 or 1 */
  u32 n;
};

/* A TensorProto, SequenceProto or OptionalProto: the files do not say which, the declared type
 * does. NULL or a type without kind: a tensor. model_path as for onnx_tensor. */
Datum *data_read_pb(Ctx *c, const u8 *at, size_t n, const DeclType *type, const char *path, Loc loc,
                    Arena *a);
void data_write_pb(Ctx *c, StrBuf *out, Str name, const Tensor *t);
/* The elements alone, as raw_data and files beside a model hold them; no strings. */
u64 data_raw_bytes(const Tensor *t);
void data_write_raw(Ctx *c, StrBuf *out, const Tensor *t);
void data_write_datum(Ctx *c, StrBuf *out, Str name, const Datum *d);
/* The folder, or test_data_set_0 in it where the arrays are there. */
const char *data_folder(Ctx *c, const char *folder);
/* Paths FOLDER/STEM_0.pb, FOLDER/STEM_1.pb... as far as they exist. */
Strs data_list(Ctx *c, const char *folder, const char *stem, Arena *a);

#endif
