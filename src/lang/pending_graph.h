/* pending_graph.h: what a tensor that is looked at is made of. Private to src/lang. */
#ifndef INGOT_LANG_NEEDED_H
#define INGOT_LANG_NEEDED_H

#include "lang/tensor.h"

typedef struct PendingGraph {
  Eval *ev;
  VEC(LazyTensor *) all; /* by serial, once it is sorted */
  LazyTensor *const *out;
  u32 nout;
  bool deep;          /* recipes that gradients go through are listed again */
  Ingot *m;           /* while it is built */
  const TracedFn *fn; /* it is the graph of a function; NULL: what is known are parameters */
} PendingGraph;

/* pending_graph.c */
void pending_collect(PendingGraph *k, Arena *a); /* of k->out */
/* Is it to be computed, and no operand? */
bool pending_is_op(const PendingGraph *k, const LazyTensor *t);
/* The same bytes for the same program. */
StrBuf pending_key(const PendingGraph *k, Arena *a);

/* force.c: its graph, as the model of k->m */
void pending_build(Ctx *c, PendingGraph *k);

#endif
