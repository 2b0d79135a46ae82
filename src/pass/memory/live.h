/* live.h: lifetimes of the buffers of a program. */
#ifndef INGOT_LIVE_H
#define INGOT_LIVE_H

#include "ir/prog_mem.h"
#include "pass/memory/place.h"

/* live.c: points are numbered in the order of the text: a kernel is one, other statements one each.
 */
typedef struct LiveRanges {
  u32 n;
  PlaceItem *item; /* by life; unused ones have first > last */
  BufId *root;     /* by life */
  u32 *of;         /* by buffer: 1 + life of its root; 0: not in the arena */
  u32 npoint;
  StmtId *point; /* the statement at each point */
} LiveRanges;
/* Unbounded sizes are refused with ERR_unsupported. */
LiveRanges live_find(Prog *p, Arena *a);

#endif
