/* ref.h: private to the reference evaluator, ref*.c.
 *
 * A kernel gets the operands of its node as tensors and creates the results. It derives shapes from
 * operands and attributes alone. ref.c then compares them with the types of the graph, which
 * detects wrong inference rules. */
#ifndef INGOT_REF_H
#define INGOT_REF_H

#include "ir/graph/graph.h"

typedef struct Ref {
  Graph *g;
  Ctx *c;
  Arena *a;   /* results */
  Arena *tmp; /* emptied after every node */
  bool wide;
  u64 seed, max_bytes, spent;
  i64 *env;    /* value of each symbol */
  bool *known; /* is env[sym] set? */
  u32 nsym;
  Tensor **val;      /* by graph value; NULL for a single node */
  const Node *n;     /* the running node */
  Tensor *const *in; /* its operands */
} Ref;

typedef void RefFn(Ref *r, const Node *n, Tensor *const *in, Tensor **out);

#define REF_BAD(r, ...) fail((r)->c, ERR_input, (r)->n->loc, __VA_ARGS__)

/* ref.c */
void ref_region(Ref *r, RegionId b); /* runs its nodes; results are in r->val */
Tensor *ref_value(Ref *r, Val v);
i64 ref_dim(Ref *r, Dim d);  /* fails when negative or not determined */
i64 ref_size(Ref *r, Dim d); /* may be negative */
bool ref_known(const Ref *r, Dim d);
void ref_set(Ref *r, Sym s, i64 x);
/* Reads an attribute that lists exactly n dimensions. */
void ref_dims(Ref *r, const Node *n, AttrKey key, i64 *to, u32 count);
/* New result; counts against the budget. Narrow floats become f64 in wide mode. */
Tensor *ref_new(Ref *r, DType dt, const i64 *dim, u32 rank);
Tensor *ref_share(Ref *r, const Tensor *x, const i64 *dim, u32 rank); /* same data, other shape */
static inline DType ref_dtype(const Ref *r, DType d) {
  return r->wide && dtype_is_float(d) ? DT_f64 : d;
}
/* Data of a tensor made by ref_new. */
static inline void *ref_data(const Tensor *t) {
  return (void *)t->data;
}

/* ref_acc.c: arithmetic uses one of three accumulator types for all element types. */
typedef struct Loops {
  size_t size;
  /* acc[i * sacc] += a[i * sa] * b[i * sb], ascending i; the product is rounded first. */
  void (*mac)(void *acc, i64 sacc, const void *a, i64 sa, const void *b, i64 sb, i64 n);
  /* acc[i * sacc] = acc[i * sacc] op x[i * sx]; op: add mul max min */
  void (*reduce)(Op op, void *acc, i64 sacc, const void *x, i64 sx, i64 n);
  /* out[i] = a[i * sa] op b[i * sb]; op: add sub mul max min */
  void (*map)(Op op, void *out, const void *a, i64 sa, const void *b, i64 sb, i64 n);
} Loops;
const Loops *acc_loops(DType dt);
/* All elements as float, double or i64; no copy if t already has that type. With `order`, u64 is
 * shifted so that i64 comparison is correct (acc_finish undoes it). */
const void *acc_read(Ref *r, const Tensor *t, bool order);
/* Accumulators for t, a result of ref_new: its own memory, or a temporary that acc_finish rounds
 * and stores. */
void *acc_begin(Ref *r, Tensor *t);
void acc_finish(Ref *r, Tensor *t, const void *acc, bool order);
/* Sets identities; max and min: for values read with `order`. */
void acc_empty(const Tensor *t, void *acc, Op op);
/* Sort key of each element: NaN above everything, -0 equal to +0. */
i64 *acc_keys(Ref *r, const Tensor *t);

/* Row-major iteration over an index space, with offsets into up to four arrays. */
enum { NDITER_RANK = 2 * MAX_RANK, NDITER_ARRAYS = 4 };
typedef struct NdIter {
  u32 rank, arrays;
  i64 dim[NDITER_RANK], at[NDITER_RANK];
  i64 step[NDITER_ARRAYS][NDITER_RANK], off[NDITER_ARRAYS];
} NdIter;
bool nditer_start(NdIter *w); /* set dim, step, rank, arrays and off before; false if empty */
bool nditer_next(NdIter *w);
void shape_strides(const i64 *dim, u32 rank, i64 *stride);
i64 shape_product(const i64 *dim, u32 rank);

/* kernels */
RefFn ref_map;                                              /* ref_map.c */
RefFn ref_const, ref_dims_node, ref_iota, ref_random;       /* ref_map.c */
RefFn ref_reduce, ref_arg, ref_cum;                         /* ref_reduce.c */
RefFn ref_contract;                                         /* ref_contract.c */
RefFn ref_conv, ref_pool, ref_pool_arg;                     /* ref_window.c */
RefFn ref_reshape, ref_transpose, ref_slice, ref_broadcast; /* ref_move.c */
RefFn ref_concat, ref_pad, ref_str_encode, ref_str_decode;  /* ref_move.c */
RefFn ref_gather, ref_gather_elems, ref_gather_nd;          /* ref_index.c */
RefFn ref_scatter_elems, ref_scatter_nd, ref_check_index;   /* ref_index.c */
RefFn ref_nonzero, ref_topk, ref_nms;                       /* ref_index.c */
RefFn ref_dequantize, ref_matmul_quant;                     /* ref_qblock.c */
RefFn ref_if, ref_loop;                                     /* ref_control.c */

#endif
