/* grad.h: gradients on the Graph, for front ends and passes. */
#ifndef INGOT_GRAD_H
#define INGOT_GRAD_H

#include "ir/graph/graph.h"

typedef struct GradOptions {
  bool recompute; /* checkpoint loops: store only the carried values and recompute the rest of an
                     iteration */
  bool total; /* total derivatives: an x that depends on another x passes its gradient on. Otherwise
                 it is held fixed, as in ONNX's Gradient */
  bool gaps;  /* return 0 instead of a zero tensor if y does not depend on x */
} GradOptions;

/* Appends to g->cur the gradients of sum(y) with respect to each x; zs are held fixed. All are
 * values of this region or of one around it; x may be constants. Loops between them get additional
 * results that store what the gradient needs of each iteration. An operator without a gradient
 * fails with ERR_unsupported at the location of its node. */
void grad(Graph *g, Val y, const Val *x, u32 nx, const Val *z, u32 nz, Val *out);
void grad_with(Graph *g, const GradOptions *o, Val y, const Val *x, u32 nx, const Val *z, u32 nz,
               Val *out);
/* Why an operator passes no gradient on, or is refused; NULL: it has a rule. */
const char *grad_reason(Op op);

#endif
