/* widen.h: a scalar expression in one variable becomes a vector over its next values. */
#ifndef INGOT_WIDEN_H
#define INGOT_WIDEN_H

#include "pass/lower/form.h"

typedef struct Widen {
  Prog *p;
  VarId lane; /* runs over the lanes, from 0 */
  u32 lanes;
  VarId acc_var; /* stands for a value that is a vector already; 0: none */
  ExprId vec;    /* that vector; copied */
  Map *once;     /* see OnceKind */
  bool strided;  /* loads may step by two */
} Widen;

/* A new tree; 0 where an operand is not contiguous along the lane. */
ExprId widen(const Widen *w, ExprId e);
/* The address of a store: its last index for lane 0; false where the lane does not run along it.
 * buf and idx are replaced when the vector lies along an earlier dimension. */
bool widen_place(const Widen *w, BufId *buf, ExprId *idx, u32 *n);

#endif
