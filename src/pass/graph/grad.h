/* grad.h: derivatives on the Graph, for front ends and passes. */
#ifndef INGOT_GRAD_H
#define INGOT_GRAD_H

#include "ir/graph.h"

typedef struct GradOptions {
  bool recompute; /* loops keep what they carry and compute the rest of a turn again, instead of
                     keeping all that derivatives read */
  bool total; /* an x that depends on another hands on what it got: total derivatives, each as if
                   it were the only x; else it is held fixed for the others, as ONNX's Gradient */
  bool gaps;  /* 0 for an x that y does not depend on, instead of zeros */
} GradOptions;

/* Appends to g->cur the derivatives of the sum of y with respect to each x; zs are held fixed. All
 * are values that the block, or one around it, already has; x may be constants. Loops between them
 * get results more, which hold what the derivatives need of each turn. What has no derivative fails
 * with ERR_unsupported at the place of its node. */
void grad(Graph *g, Val y, const Val *x, u32 nx, const Val *z, u32 nz, Val *out);
void grad_with(Graph *g, const GradOptions *o, Val y, const Val *x, u32 nx, const Val *z, u32 nz,
               Val *out);
/* Why an operator hands no derivative on, or is refused; NULL: it has a rule. */
const char *grad_reason(Op op);

#endif
