/* grad.h: derivatives on the Graph, for front ends and passes. */
#ifndef INGOT_GRAD_H
#define INGOT_GRAD_H

#include "ir/graph.h"

/* Appends to g->cur the derivatives of the sum of y with respect to each x; zs are held fixed. All
 * are values that block already has. What has no rule fails with ERR_unsupported at g->loc. */
void grad(Graph *g, Val y, const Val *x, u32 nx, const Val *z, u32 nz, Val *out);

#endif
