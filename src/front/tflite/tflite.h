/* tflite.h: TensorFlow Lite models: what a file holds, and the row of the format in the table of
 * readers. */
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
  u32 n; /* scales: 1, or one for each place on axis; 0: not quantised */
  u32 axis;
  const float *scale; /* n; finite and positive */
  const i64 *zero;    /* n */
  bool other;         /* it has a way of its own: blocks, or custom; n is 0 */
};

struct LiteTensor {
  Str name;
  i32 code;     /* its type in the numbers of the format */
  DType dt;     /* the same; DT_none: ingot has none, or it is no tensor of numbers */
  u32 rank;     /* <= MAX_RANK */
  i64 *dim;     /* as the converter left them; not negative */
  i64 *open;    /* likewise, -1 where the extent is given when the model runs; NULL: nowhere */
  FileSpan raw; /* contents; n 0: none, it is computed (or it has no elements) */
  LiteQuant q;
  bool variable;    /* kept from one run to the next */
  FlatTable sparse; /* how contents lie that are stored for few elements; f NULL: all are there */
};

struct LiteOp {
  u32 code;      /* a row of tflite_ops.def */
  Str name;      /* of the operator; of a custom one its own */
  i32 *in, *out; /* numbers of tensors; -1: absent */
  u32 nin, nout;
  i32 *intermediate; /* of recurrent layers: tensors that say how to quantise in between */
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
  LiteGraph *graph; /* the first is the model */
  u32 ngraph;
  LiteSignature *sig;
  u32 nsig;
};

enum {
  LITE_GRAPH_DEPTH = 16,     /* sub-graphs that call others */
  LITE_MOST_STEPS = 4000000, /* operators built and tensors, sub-graphs written out at each call */
};

/* tflite_model.c: bytes to structs; every reference between them has been tested. */
LiteModel *lite_read(Ctx *c, const u8 *at, size_t n, Str file);
/* Numbers as the file stores them; fails at loc where there are too few bytes. */
Tensor *lite_tensor(Ctx *c, const LiteTensor *t, Loc loc);
/* tflite_sparse.c: `bytes` that the contents of a sparse tensor are. */
const u8 *lite_dense(Ctx *c, const LiteTensor *t, u64 bytes, Loc loc);

/* The row of the table: tflite_model.c, tflite_import.c, tflite_info.c, tflite_options.c */
bool lite_sniff(const u8 *at, size_t n);
Model *lite_open(Ctx *c, const Source *s);
Graph *lite_import(Ctx *c, const Source *s, const Model *m, const ImportOptions *o);
void lite_info(Ctx *c, const Model *m, ModelInfo *out);
void lite_attributes(Ctx *c, const Model *m, const Loc *at, StrBuf *out);
bool lite_op_at(u32 i, ReaderOp *out);

#endif
