/* onnx.h: an ONNX model decoded into plain structs.
 *
 * Everything lives in c->work. Names are interned and may contain any bytes. Bulk data are not
 * copied; they point into the file, which must outlive the model. Decoding is a pure function of
 * the bytes: only onnx_tensor opens external files. Unused parts (documentation, training, devices,
 * quantization annotations) are skipped. They stay in `body`, from which onnx_edit.h writes the
 * model again.
 */
#ifndef INGOT_ONNX_H
#define INGOT_ONNX_H

#include "front/reader.h"
#include "io/wire.h"
#include "ir/ir.h"

typedef struct OnnxModel OnnxModel;
typedef struct OnnxGraph OnnxGraph;
typedef struct OnnxNode OnnxNode;
typedef struct OnnxAttr OnnxAttr;
typedef struct OnnxTensor OnnxTensor;
typedef struct OnnxSparse OnnxSparse;
typedef struct OnnxFunction OnnxFunction;
typedef struct OnnxOpset OnnxOpset;
typedef struct OnnxPair OnnxPair; /* StringStringEntryProto */
typedef VEC(i64) Ints;

enum {
  ONNX_GRAPH_DEPTH = 16,      /* nesting of graphs in attributes */
  ONNX_MAX_NODES = 1000000,   /* in the whole model, functions included */
  ONNX_MAX_EXPANDED = 250000, /* nodes after inlining local functions at every call */
  ONNX_MAX_DEPTH = 24,        /* nested sub-graphs and function calls together */
  ONNX_MAX_TENSORS = 1000000, /* in the whole model, functions included */
  ONNX_MAX_RECORDS = 1 << 23, /* all other messages: attributes, types, dimensions... */
  ONNX_MAX_ITEMS = 1 << 26,   /* numbers and strings in lists, tensor data excepted */
};
#define ONNX_SPARSE_BYTES                                                                          \
  ((u64)512 << 20) /* all sparse tensors of a model together, made dense                           \
                    */

struct OnnxPair {
  Str key, value;
};

struct OnnxOpset {
  Str domain; /* "" and "ai.onnx" are the same; kept as written */
  i64 version;
};

/* ---- tensors ---- */

struct OnnxTensor {
  Str name;
  i32 code;      /* element type in ONNX numbering */
  DType dt;      /* element type; DT_none if ingot lacks it */
  Ints dims;     /* as written: may be negative */
  FileSpan raw;  /* raw_data */
  FileSpan body; /* the whole message; typed data are read from it when the tensor is loaded */
  u32 fields;    /* bits 1 << field number of the non-empty data fields */
  bool is_external, has_segment;
  VEC(OnnxPair) external;
  const u8 *base;     /* start of the file, for offsets in messages */
  const Tensor *data; /* elements of a tensor that is in no file; else NULL */
};

struct OnnxSparse {
  OnnxTensor *values, *indices; /* NULL when absent; values has the name of a sparse initializer */
  Ints dims;
  u64 *spent; /* bytes of the budget ONNX_SPARSE_BYTES used so far, shared by the model */
};

/* ---- nodes ---- */

/* Values are those of AttributeProto.AttributeType. */
typedef enum OnnxAttrType {
  OA_none,
  OA_float,
  OA_int,
  OA_string,
  OA_tensor,
  OA_graph,
  OA_floats,
  OA_ints,
  OA_strings,
  OA_tensors,
  OA_graphs,
  OA_sparse,
  OA_sparses,
  OA_type,
  OA_types,
  OA_COUNT
} OnnxAttrType;

/* Only the field selected by `type` is valid. It is never NULL unless ref is set. */
struct OnnxAttr {
  Str name;
  Str ref;           /* in a function body: attribute of the call to use instead; 0: none */
  OnnxAttrType type; /* inferred from the present field in old files */
  float f;
  i64 i;
  Str s;
  OnnxTensor *t;
  OnnxGraph *g;
  OnnxSparse *sparse;
  DeclType *tp;
  VEC(float) floats;
  Ints ints;
  Strs strings;
  VEC(OnnxTensor) tensors;
  VEC(OnnxGraph *) graphs;
  VEC(OnnxSparse) sparses;
  VEC(DeclType) types;
  FileSpan body; /* as read; empty: made by onnx_edit.h */
};

struct OnnxNode {
  Str name, op, domain, overload;
  Strs in; /* 0: absent */
  Strs out;
  VEC(OnnxAttr) attrs; /* no two of the same name */
  FileSpan body;       /* as read; empty: made by onnx_edit.h */
  bool edited;         /* the fields are valid instead of body */
};

struct OnnxGraph {
  Str name;
  VEC(OnnxNode) nodes;
  VEC(OnnxTensor) inits;
  VEC(OnnxSparse) sparse_inits;
  VEC(DeclValue) inputs, outputs;
  FileSpan body;
};

struct OnnxFunction {
  Str name, domain, overload;
  Strs inputs, outputs;
  VEC(OnnxAttr) attrs; /* with their defaults */
  VEC(OnnxNode) nodes;
  VEC(OnnxOpset) opsets;
};

struct OnnxModel {
  i64 ir_version;
  Str producer, producer_version;
  VEC(OnnxOpset) opsets;
  VEC(OnnxFunction) functions;
  OnnxGraph *graph; /* never NULL */
  u32 nnodes;       /* in the whole model */
  u64 sparse_spent;
  FileSpan body;
};

/* onnx_model.c */
/* Fails with ERR_input and the byte offset. file is only used in messages. */
OnnxModel *onnx_read(Ctx *c, const u8 *at, size_t n, Str file);
/* The attribute of that name, NULL when absent. */
const OnnxAttr *onnx_attr(const Ctx *c, const OnnxNode *n, const char *name);
/* Decode one message outside of a model; spent as in OnnxSparse. */
OnnxTensor *onnx_tensor_at(Wire k);
OnnxSparse *onnx_sparse_at(Wire k, u64 *spent);

/* onnx_tensor.c: loads the elements of a stored tensor. Types below 8 bits become one element per
 * byte (sign-extended), strings are interned, bools are 0 or 1. The result points into the file if
 * the bytes can be used directly, else into arena a. model_path NULL refuses external data. */
Tensor *onnx_tensor(Ctx *c, const OnnxTensor *t, const char *model_path, Loc loc, Arena *a);
Tensor *onnx_sparse(Ctx *c, const OnnxSparse *s, const char *model_path, Loc loc, Arena *a);

#endif
