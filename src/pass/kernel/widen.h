/* widen.h: turns a scalar expression into a vector over consecutive values of one variable. */
#ifndef INGOT_WIDEN_H
#define INGOT_WIDEN_H

#include "pass/form/form.h"

typedef struct Vectorizer {
  Prog *p;
  VarId lane; /* becomes the lane number */
  u32 lanes;
  VarId acc_var; /* placeholder for a value that already is a vector; 0: none */
  ExprId vec;    /* that vector; copied at each use */
  Map *once;     /* see MemoKind */
  bool strided;  /* loads may have stride 2 */
} Vectorizer;

/* Returns a new tree; 0 if an operand is not contiguous along the lane. */
ExprId widen(const Vectorizer *w, ExprId e);
/* Address of a vector store: the last index at lane 0; false if the lane does not run along it.
 * Replaces buf and idx if the vector lies along an earlier dimension. */
bool widen_place(const Vectorizer *w, BufId *buf, ExprId *idx, u32 *n);

#endif
