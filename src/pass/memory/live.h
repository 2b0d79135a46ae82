/* live.h: lifetimes of the buffers of a program. */
#ifndef INGOT_LIVE_H
#define INGOT_LIVE_H

#include "ir/prog/prog_mem.h"
#include "pass/memory/place.h"

/* live.c. Points are numbered in program order: one per kernel, and one per other statement. */
typedef struct LiveRanges {
  u32 n;
  PlaceItem *item; /* sorted by lifetime; unused: first > last */
  BufId *root;     /* by life: root buffer */
  u32 *of;         /* by buffer: 1 + life of its root; 0: not in the arena */
  u32 npoint;
  StmtId *point; /* by point: its statement */
} LiveRanges;
/* Fails with ERR_unsupported if a size is unbounded. */
LiveRanges live_find(Prog *p, Arena *a);

#endif
