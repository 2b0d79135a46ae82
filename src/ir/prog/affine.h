/* affine.h: an integer expression as a constant plus terms with constant coefficients. */
#ifndef INGOT_AFFINE_H
#define INGOT_AFFINE_H

#include "ir/prog/prog.h"

enum { AFFINE_TERMS = 12 };

typedef struct AffTerm {
  ExprId e;  /* a variable or an opaque subexpression; owned by its original tree */
  VarId var; /* 0: not a variable */
  i64 coef;
} AffTerm;

typedef struct Affine {
  i64 k;
  u32 n;
  AffTerm t[AFFINE_TERMS];
} Affine;

/* A variable with range 0..n-1. */
typedef struct InnerVar {
  VarId var;
  i64 n;
} InnerVar;

enum { INNER_VARS = 3 };

typedef struct InnerVars {
  u32 n;
  InnerVar at[INNER_VARS];
} InnerVars;

bool affine_of(Prog *p, ExprId e, Affine *a); /* false: too many terms, or overflow */
ExprId affine_expr(Prog *p, const Affine *a); /* a new tree */
i64 affine_coef(const Affine *a, VarId v);
/* Is y = x + *by for all values of the variables? Conservative: false if a term is not affine. */
bool affine_differ_by(const Affine *x, const Affine *y, i64 *by);
/* e = block * *q + *r with 0 <= *r < block. Emits a division and remainder unless the rest is 0 or
 * one of the inner variables. */
void ex_split(Prog *p, ExprId e, i64 block, const InnerVars *inner, ExprId *q, ExprId *r);

#endif
