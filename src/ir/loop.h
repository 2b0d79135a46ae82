/* loop.h: loops while they are built. */
#ifndef INGOT_LOOP_H
#define INGOT_LOOP_H

#include "ir/graph.h"

/* A body that stands, in front of the node it will belong to. */
typedef struct CountedLoop {
  Val trip, cond; /* outside: i64 and bool scalars */
  Val i, go;      /* the first parameters of the body; values below i are outside */
  u32 n;          /* carried values */
  const Val *init, *param,
      *next;  /* of each: before, in, and behind an iteration; 0: not a tensor */
  Val more;   /* the condition at the end of the body */
  u32 nsyms;  /* symbols there were when the body was begun */
  u32 visits; /* of values, by loop_count */
} CountedLoop;

/* trip_count.c */
/* Moves what the conditions say about counters into the trip count; g->cur is outside. */
void loop_count(Graph *g, CountedLoop *l, RegionId body);
/* Is next p plus a number? Through integers that hold every p. */
bool loop_steps(Graph *g, Val next, Val p, i64 *step);
bool loop_always(Graph *g, Val cond); /* a constant that is true? */

/* loop.c */
typedef struct LoopDraft {
  CountedLoop count;
  RegionId body;
  u32 nscan;
  Val *instead; /* of each carried value: what its result is without the loop; 0: carried */
  u32 *grows; /* of each: 1 + the axis along which every iteration appends to it; 0: it does not */
} LoopDraft;
/* The body of a loop, as mk_loop builds it, not yet a node. */
LoopDraft loop_draft(Graph *g, Val trip, Val cond, Val *carried, u32 ncarried, Val *scan, u32 nscan,
                     BodyFn *body, void *user);
/* Counts iterations, and does without carried values that stay or follow from the iteration. */
void loop_simplify(Graph *g, LoopDraft *d);
/* Adds the node; results go to carried and scan. */
void loop_finish(Graph *g, const LoopDraft *d, Val *carried, Val *scan);

#endif
