/* affine.h: an integer expression as a constant plus terms with constant factors. */
#ifndef INGOT_AFFINE_H
#define INGOT_AFFINE_H

#include "ir/prog.h"

enum { AFFINE_TERMS = 12 };

typedef struct AffTerm {
  ExprId e;  /* a variable, or what is not looked into; belongs to the tree it is from */
  VarId var; /* 0: not a variable */
  i64 coef;
} AffTerm;

typedef struct Affine {
  i64 k;
  u32 n;
  AffTerm t[AFFINE_TERMS];
} Affine;

/* A variable that runs from 0 to below n. */
typedef struct InnerVar {
  VarId var;
  i64 n;
} InnerVar;

enum { INNER_VARS = 3 };

typedef struct InnerVars {
  u32 n;
  InnerVar at[INNER_VARS];
} InnerVars;

bool affine_of(Prog *p, ExprId e, Affine *a); /* false: too many terms, or too large */
ExprId affine_expr(Prog *p, const Affine *a); /* a new tree */
i64 affine_coef(const Affine *a, VarId v);
/* Is y = x + *by, whatever the variables are? false also where a term is none. */
bool affine_differ_by(const Affine *x, const Affine *y, i64 *by);
/* e = block * *q + *r with 0 <= *r < block. Where the rest is not one of the inner variables, or 0,
 * division and remainder are left to the machine. */
void ex_split(Prog *p, ExprId e, i64 block, const InnerVars *inner, ExprId *q, ExprId *r);

#endif
