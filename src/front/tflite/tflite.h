/* tflite.h: decoded TensorFlow Lite models, and callbacks of the reader table. */
#ifndef INGOT_TFLITE_H
#define INGOT_TFLITE_H

#include "front/reader.h"
#include "front/tflite/flatbuffer.h"

typedef struct LiteModel LiteModel;
typedef struct LiteGraph LiteGraph; /* a sub-graph */
typedef struct LiteTensor LiteTensor;
typedef struct LiteQuant LiteQuant;
typedef struct LiteOp LiteOp;
typedef struct LiteSignature LiteSignature;
typedef struct LiteName LiteName;

/* q stands for (q - zero) * scale. */
struct LiteQuant {
  u32 n; /* number of scales: 1, or one per index of axis; 0: not quantized */
  u32 axis;
  const float *scale; /* n; finite and positive */
  const i64 *zero;    /* n */
  bool other;         /* unsupported scheme: groups, or custom; n is 0 */
};

struct LiteTensor {
  Str name;
  i32 code;     /* element type in the numbering of the format */
  DType dt;     /* element type; DT_none: not supported, or not numeric */
  u32 rank;     /* <= MAX_RANK */
  i64 *dim;     /* as converted; not negative */
  i64 *open;    /* dim with -1 for extents given at run time; NULL: all are static */
  FileSpan raw; /* contents; n 0: computed (or without elements) */
  LiteQuant q;
  bool variable;    /* state, kept from run to run */
  FlatTable sparse; /* layout of sparse contents; f NULL: dense */
};

struct LiteOp {
  u32 code;      /* a row of tflite_ops.def */
  Str name;      /* operator name; the custom name of a custom operator */
  i32 *in, *out; /* tensor indices; -1: absent */
  u32 nin, nout;
  i32 *intermediate; /* recurrent layers: tensors with intermediate scales */
  u32 nintermediate;
  FlatTable opt; /* builtin_options */
  i64 opt_type;
  FileSpan custom; /* custom_options: FlexBuffer */
};

struct LiteGraph {
  Str name;
  LiteTensor *tensor;
  u32 ntensor;
  LiteOp *op;
  u32 nop;
  i32 *in, *out;
  u32 nin, nout;
};

struct LiteName {
  Str name;
  u32 tensor;
};

struct LiteSignature {
  Str key;
  u32 graph;
  LiteName *in, *out;
  u32 nin, nout;
};

struct LiteModel {
  FlatBuffer *flat;
  i64 version;
  Str description;
  LiteGraph *graph; /* the first one is the model */
  u32 ngraph;
  LiteSignature *sig;
  u32 nsig;
};

enum {
  LITE_GRAPH_DEPTH = 16,     /* nesting of sub-graph calls */
  LITE_MOST_STEPS = 4000000, /* operators and tensors after inlining sub-graphs at each call */
};

/* tflite_model.c: bytes to structs; all references between them are checked. */
LiteModel *lite_read(Ctx *c, const u8 *at, size_t n, Str file);
/* Elements as stored; fails at loc if there are too few bytes. */
Tensor *lite_tensor(Ctx *c, const LiteTensor *t, Loc loc);
/* tflite_sparse.c: the dense contents of a sparse tensor, of size `bytes`. */
const u8 *lite_dense(Ctx *c, const LiteTensor *t, u64 bytes, Loc loc);

/* Callbacks of the reader table in tflite_model.c, tflite_import.c, tflite_info.c, tflite_options.c
 */
bool lite_sniff(const u8 *at, size_t n);
Model *lite_open(Ctx *c, const Source *s);
Graph *lite_import(Ctx *c, const Source *s, const Model *m, const ImportOptions *o);
void lite_info(Ctx *c, const Model *m, ModelInfo *out);
void lite_attributes(Ctx *c, const Model *m, const Loc *at, StrBuf *out);
bool lite_op_at(u32 i, ReaderOp *out);

#endif
