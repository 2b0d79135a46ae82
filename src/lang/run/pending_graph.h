/* pending_graph.h: the pending operations of a tensor. Private to src/lang. */
#ifndef INGOT_LANG_NEEDED_H
#define INGOT_LANG_NEEDED_H

#include "lang/run/tensor.h"

typedef struct PendingGraph {
  Eval *ev;
  VEC(LazyTensor *) all; /* by serial, after sorting */
  LazyTensor *const *out;
  u32 nout;
  bool deep;          /* also list tracked operations that are computed */
  Ingot *m;           /* while the graph is built */
  const TracedFn *fn; /* graph of a traced function; NULL: known tensors are parameters */
} PendingGraph;

/* pending_graph.c */
void pending_collect(PendingGraph *k, Arena *a); /* collects the operations of k->out */
/* True for an operation, false for a known operand. */
bool pending_is_op(const PendingGraph *k, const LazyTensor *t);
/* Equal bytes for equal programs. */
StrBuf pending_key(const PendingGraph *k, Arena *a);

/* force.c: builds the graph as the model of k->m */
void pending_build(Ctx *c, PendingGraph *k);

#endif
