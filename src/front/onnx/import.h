/* import.h: from ONNX bytes to a Graph. */
#ifndef INGOT_IMPORT_H
#define INGOT_IMPORT_H

#include "ir/graph.h"
#include "front/onnx/onnx.h"

typedef struct BindDim BindDim;
typedef struct BindInput BindInput;
typedef struct ImportOptions ImportOptions;
typedef struct Port Port;

/* One dimension fixed or bounded by the user: by symbol name (input 0), or by input and axis. */
struct BindDim {
  Str symbol; /* or 0 */
  Str input;  /* or 0 */
  i64 axis;
  i64 value;
  u32 rank;   /* of a whole shape: how many dimensions it gives; 0 for a single one */
  bool bound; /* value is the largest extent (--max-shapes), the dimension stays symbolic */
  bool used;
};

/* An array the caller will run with: binds the dimensions of that input, and its contents where a
 * shape depends on them (the parameter is then pinned to these contents). */
struct BindInput {
  Str name;
  const Tensor *data;
  bool fill;   /* data is one element, for every place: it says nothing about the shape */
  bool frozen; /* the input is a constant of the model, and no parameter */
};

typedef VEC(BindInput) BindInputs;

/* A dimension that nobody gave: what option would (value not set), and what it is. */
typedef struct MissingDim {
  BindDim bind; /* by symbol, or by input and axis; rank: a whole shape */
  Str what;
  bool is_side; /* height, width or depth of an image */
} MissingDim;
typedef struct MissingDims {
  const MissingDim *at;
  u32 n;
} MissingDims;

/* How an output of the model is made of outputs of the graph, which are tensors: element k of
 * sequence y is output y.k, what an optional holds is output y. Where that is only known at run
 * time (open): the elements stacked, y, and their number, y.count; beside an optional, y.has. A
 * sequence of maps (ZipMap) is the values, y, and y.keys, which are the same in all. */
struct Port {
  TypeKind kind;
  u32 flat;   /* TY_tensor: number among the outputs of the graph */
  bool text;  /* TY_tensor: strings, which leave the graph as rows of bytes */
  bool maps;  /* TY_seq: values and keys of maps */
  bool open;  /* stack and count (TY_seq), or value and flag (TY_opt) */
  u32 n;      /* TY_seq, TY_opt: elements; 0 for a stack */
  Port *elem; /* n of them, then those of an open one */
};

struct ImportOptions {
  const char *path; /* of the model, for external data; NULL: refused */
  BindDim *dim;
  u32 ndim;
  BindInput *input;
  u32 ninput;
  bool symbolic;        /* unknown dimensions stay symbolic without bound (inspect) */
  BindInputs *frozen;   /* receives those that became constants; NULL: not wanted */
  MissingDims *missing; /* receives those that made the import fail; NULL: not wanted */
  Port **outputs;       /* receives one per output of the model; NULL: not wanted */
};

/* import.c; fails with ERR_input or ERR_unsupported; every unsupported node is recorded first. */
Graph *onnx_import(Ctx *c, const OnnxModel *m, Str file, const ImportOptions *o);

/* inputs.c: the inputs that are not initializers, in order; *n receives how many. */
const OnnxValue **onnx_inputs(Ctx *c, const OnnxModel *m, u32 *n);
/* Is there such an input, or one of whose elements this is the name (x.0)? */
bool onnx_takes_input(Ctx *c, const OnnxModel *m, Str name);

/* extents.c: a type as the model declares it, f32[batch,3,224,224]. In c->scratch. */
const char *onnx_declared(Ctx *c, const OnnxType *t);

/* ops.c: the operators, in the order of onnx_ops.def. */
typedef struct OnnxOpInfo {
  const char *domain, *name;
  i32 since, until; /* opset versions it is read in; until 0: no end */
} OnnxOpInfo;
u32 onnx_op_count(void);
OnnxOpInfo onnx_op_at(u32 i);

#endif
