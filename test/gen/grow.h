/* grow.h: private to the generator: a graph under construction. */
#ifndef GROW_H
#define GROW_H

#include "gen.h"

enum { MAX_BASE = 5, MAX_SYMS = 2, LEAST_RANK = 5 };

typedef struct Param {
  Val v;
  Fill fill;
} Param;

struct Gen {
  Rng rng;
  Graph *g;
  Arena *a;
  Mode mode;
  bool smooth, narrow; /* narrow: a float type below f32 has been used */
  bool on[OP_COUNT];   /* operators of this graph's policy */
  DType dt[6];         /* element types of this graph's policy */
  u32 ndt;
  Dim base[MAX_BASE]; /* extents most dimensions are taken from */
  u32 nbase;
  Sym sym[MAX_SYMS];
  u32 nsym, depth;  /* of blocks */
  i64 most;         /* elements of one value */
  VEC(Val) seen;    /* values that may be used here */
  VEC(Grain) grain; /* by value */
  VEC(Param) param;
};

/* grow.c */
bool chance(Gen *G, u32 percent);
u32 below(Gen *G, u32 n);
Type type_of(Gen *G, Val v);
Grain *grain_of(Gen *G, Val v);
i64 hi_of(Gen *G, Dim d);
i64 lo_of(Gen *G, Dim d);
double count_hi(Gen *G, const Dim *d, u32 rank); /* elements at most */
bool small(Gen *G, const Dim *d, u32 rank);
Dim any_dim(Gen *G, i64 least);
u32 any_shape(Gen *G, Dim *d, u32 lo, u32 hi, i64 least);
DType any_dtype(Gen *G, const char *classes); /* "FIUB": letters of dtype_info */
bool is_class(DType dt, const char *classes);
Val param_of(Gen *G, DType dt, const Dim *d, u32 rank, Fill f);
Val const_of(Gen *G, DType dt, const Dim *d, u32 rank, Fill f); /* constant extents only */
Val leaf_of(Gen *G, DType dt, const Dim *d, u32 rank);
Val index_of(Gen *G, const Dim *d, u32 rank, i64 extent); /* i64 or i32 */
Val scalar_of(Gen *G, DType dt, double x);
/* A value that may be used here, of one of the classes and ranks; made if there is none. */
Val some(Gen *G, const char *classes, u32 lo, u32 hi);
Val some_of(Gen *G, DType dt, const Dim *d, u32 rank); /* exactly this type */
/* A value that broadcasts with t and does not make it too large. */
Val some_beside(Gen *G, DType dt, const Type *t);
Val node(Gen *G, Op op, const Val *in, u32 nin, const Attr *at, u32 nat, Grain r);
void rough(Gen *G); /* the graph jumps where its values change a little */
bool grow(Gen *G);  /* one more node */
void grow_some(Gen *G, u32 n);

Attr a_int(AttrKey key, i64 i);
Attr a_list(AttrKey key, const Dim *d, u32 n);
Attr a_dtype(DType dt);
Attr a_str(Gen *G, AttrKey key, const char *s);

/* Rows: each adds a node of the operator, or returns 0 if it finds nothing that fits. */
typedef Val Row(Gen *G, Op op);
Row row_map, row_reduce, row_arg, row_contract, row_conv, row_pool; /* rows_math.c */
Row row_cum, row_topk, row_suppress, row_select, row_cast;
Row row_reshape, row_transpose, row_slice, row_broadcast, row_concat, row_pad; /* rows_move.c */
Row row_within, row_gather, row_gather_elems, row_gather_nd, row_scatter_elems, row_scatter_nd,
    row_nonzero;
Row row_leaf;
Row row_if, row_loop;   /* rows_flow.c */
bool grow_back(Gen *G); /* a node in front of a parameter */

#endif
