/* loop.h: loops under construction. */
#ifndef INGOT_LOOP_H
#define INGOT_LOOP_H

#include "ir/graph/graph.h"

/* A finished body, before its node is added. */
typedef struct CountedLoop {
  Val trip, cond; /* outside: i64 and bool scalars */
  Val i, go;      /* first parameters of the body; values below i are defined outside */
  u32 n;          /* carried values */
  const Val *init, *param,
      *next;  /* each carried value before, during and after an iteration; 0: not a tensor */
  Val more;   /* the condition at the end of the body */
  u32 nsyms;  /* number of symbols before the body */
  u32 visits; /* values visited by loop_count */
} CountedLoop;

/* trip_count.c */
/* Moves bounds on counters from the loop condition into the trip count; g->cur is outside. */
void loop_count(Graph *g, CountedLoop *l, RegionId body);
/* Is next = p + *step? Looks through integer casts that preserve every p. */
bool loop_steps(Graph *g, Val next, Val p, i64 *step);
bool loop_always(Graph *g, Val cond); /* is it constant true? */

/* loop.c */
typedef struct LoopDraft {
  CountedLoop count;
  RegionId body;
  u32 nscan;
  Val *instead; /* by carried value: its result computed without the loop; 0: still carried */
  u32 *grows;   /* by carried value: 1 + axis along which each iteration appends to it; 0: none */
  bool *some;   /* by carried value: only iterations with a condition append to it */
} LoopDraft;
/* The body of a loop as mk_loop builds it; not yet a node. */
LoopDraft loop_draft(Graph *g, Val trip, Val cond, Val *carried, u32 ncarried, Val *scan, u32 nscan,
                     BodyFn *body, void *user);
/* Derives the trip count; removes carried values that are invariant or a function of the
 * iteration. */
void loop_simplify(Graph *g, LoopDraft *d);
/* Adds the node; results go to carried and scan. */
void loop_finish(Graph *g, const LoopDraft *d, Val *carried, Val *scan);

#endif
