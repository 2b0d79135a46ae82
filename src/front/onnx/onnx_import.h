/* onnx_import.h: state of one import; private to src/front/onnx. */
#ifndef INGOT_ONNX_IMPORT_H
#define INGOT_ONNX_IMPORT_H

#include "front/input_extents.h"
#include "front/onnx/onnx_builder.h"
#include "front/onnx/onnx_reader.h"

typedef struct Scope Scope;
typedef struct List List;

#define VAL_POISON UINT32_MAX /* result of a refused node; its users are skipped */

/* Names visible in one graph or function body. */
struct Scope {
  Scope *up;       /* enclosing graph; NULL for the model and for functions */
  RegionId region; /* region of its constants */
  Map name;        /* Str -> Val */
  Map init;        /* Str -> 1 + index of initializer; sparse ones after the dense */
  Map later;       /* Str -> 1: defined by some node of this graph */
  const OnnxGraph *graph;
  const OnnxFunction *fn; /* function body: its attribute defaults and opsets */
  const OnnxNode *call;   /* the node that called it */
  Scope *caller;
};

#define VAL_ABSENT (UINT32_MAX - 1) /* an input that the call of a function leaves out */
#define VAL_LISTS  (UINT32_MAX / 2) /* above: sequences and optionals, see list.h */

static inline bool val_is_real(Val v) {
  return v && v < VAL_LISTS; /* a tensor of the graph */
}
static inline bool val_is_list(Val v) {
  return v >= VAL_LISTS && v < VAL_ABSENT;
}

typedef struct OpRow {
  const char *domain, *name;
  i32 since, until;
  BuildFn *build;
  u32 arg;
  u32 most;   /* maximum number of inputs; 255: any */
  bool lists; /* takes sequences and optionals */
  bool quant; /* quantizes, or computes on quantized values */
} OpRow;

/* Slice(x, i, i + k) with a run-time i may have fewer than k elements at the end of the axis. A
 * Loop is first built with run-time lengths. If its body cannot be built so, it gets k elements. */
typedef enum SliceMode { SLICES_fixed, SLICES_exact, SLICES_fixed_loop } SliceMode;

/* The counter of a Loop whose body is being built: 0..trip-1. */
typedef struct LoopCounter {
  Val i, trip;
  const struct LoopCounter *outer;
} LoopCounter;

/* A size computed at run time, and its symbol. */
typedef struct LateSize {
  Val size;
  Dim dim;
} LateSize;

struct Import {
  Ctx *c;
  Graph *g;
  const OnnxModel *m;
  const char *path; /* see Source */
  const ImportOptions *o;
  Str file;
  Scope *scope;
  Map rows; /* "domain/name" -> 1 + first row */
  Map fns;  /* "domain/name/overload" -> 1 + function */
  VEC(List *) lists;
  Extents extents;
  Map unknown_attrs;  /* operator and attribute -> 1: warned as unknown */
  VEC(LateSize) late; /* sizes in the main region whose bound is not known yet */
  Str unbound;        /* name of the last of them; 0: none */
  SliceMode slices;
  const LoopCounter *counter; /* innermost; NULL outside of loops */
  Map training;               /* OnnxNode -> 1: in training mode */
  u32 ntraining;
  Loc first_training;
  u32 depth; /* nesting of sub-graphs and functions */
  u32 steps; /* nodes built, inlined functions included; bounded */
};

/* onnx_op_table.c */
extern const OpRow op_rows[];
extern const u32 op_row_count;
/* Names of the attributes of all versions of the operator, each between spaces. */
const char *op_attrs(const OpRow *row);
const char *domain_key(Ctx *c, Str domain);   /* "ai", "ml", "ms"..., NULL for others */
bool op_quantizes(Ctx *c, const OnnxNode *n); /* see OpRow.quant */

/* onnx_import.c */
void import_nodes(Import *im, const OnnxNode *node, u32 n);
Scope *scope_new(Import *im, Scope *up);
Val scope_find(Import *im, Str name); /* 0 when unknown */
void scope_define(Import *im, Str name, Val v, Loc loc);
Loc import_here(const Import *im); /* the file */

#define BODY_FAILS "its body cannot be built: " /* prefix of the cause */

/* Runs fn. After a failure, restores the import state and stores the reason in *why. */
Err import_try(Import *im, void (*fn)(Ctx *c, void *arg), void *arg, const char **why);

/* onnx_inputs.c */
void import_inputs(Import *im, const Model *m);

/* onnx_const_eval.c */
/* The tensor of v if it is known at compile time. NULL otherwise, with the parameter it depends on
 * (0: none) in *blame. */
const Tensor *import_const_eval(Import *im, Val v, Val *blame);
/* An open extent of an input, if v is computed from such extents and constants only; 0: none. */
Str import_open(Import *im, Val v);

#endif
