/* infer.h: private to infer.c and infer_control.c. */
#ifndef INGOT_INFER_H
#define INGOT_INFER_H

#include "ir/graph/graph.h"

/* Fails if the number of elements exceeds the limit. */
Type sized_type(Graph *g, const Node *n, DType dt, const Dim *dim, u32 rank);
void infer_control(Graph *g, Node *n, Type *out);
/* The k-th symbol that n sets; created with these bounds if it is new. */
Dim data_symbol(Graph *g, Node *n, u32 k, i64 lo, i64 hi);

#endif
