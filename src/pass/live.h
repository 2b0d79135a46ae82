/* live.h: lifetimes of the buffers of a program, and the pure problem of placing them. */
#ifndef INGOT_LIVE_H
#define INGOT_LIVE_H

#include "ir/prog_mem.h"

/* Memory that must lie somewhere from point `first` to point `last`, both included. */
typedef struct FitItem {
  u64 size;
  u32 first, last;
  u64 offset; /* result */
} FitItem;

/* live.c: points are numbered in the order of the text: a kernel is one, other statements one each. */
typedef struct Lives {
  u32 n;
  FitItem *item; /* by life; unused ones have first > last */
  BufId *root;   /* by life */
  u32 *of;       /* by buffer: 1 + life of its root; 0: not in the arena */
  u32 npoint;
  StmtId *point; /* the statement at each point */
} Lives;
/* Unbounded sizes are refused with ERR_unsupported. */
Lives live_find(Prog *p, Arena *a);

/* fit.c */
typedef struct FitResult {
  u64 height; /* bytes that are needed */
  u64 bound;  /* most bytes live at one point: no plan needs less */
  u64 nodes;  /* of the exact search */
} FitResult;
/* Sizes are multiples of `align`, and so are the offsets. The same items always get the same offsets. */
FitResult fit(FitItem *item, u32 n, u64 budget, Arena *a);

#endif
