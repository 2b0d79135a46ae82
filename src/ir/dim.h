/* dim.h: private to dim.c, dim_minmax.c and dim_text.c. */
#ifndef INGOT_DIM_H
#define INGOT_DIM_H

#include "ir/ir.h"

typedef struct DimSize {
  u32 size, depth; /* see DIM_SIZE, DIM_DEPTH */
} DimSize;
typedef struct DimAffine DimAffine; /* interned expression */
typedef struct DimPoly DimPoly;     /* expression under construction */

enum {
  DIM_TERMS = 128,  /* limit of terms in one expression */
  DIM_FACTORS = 32, /* limit of factors in one product */
  DIM_DEPTH = 24,   /* limit of nested quotients, remainders, min and max */
};
#define NO_SYM UINT32_MAX /* as a monomial: the constant 1 */

/* k0 + sum coef[i] * sym[i]; n > 0, coefficients are not 0, terms in the order of cmp_mono. */
struct DimAffine {
  i64 k0;
  u32 n;
  DimSize extent;
  Sym *sym;
  i64 *coef;
};

/* k0 + sum coef[i] * sym[i]; n may be 0, and then k0 has any sign. All numbers are within
 * +-DIM_MAX. */
struct DimPoly {
  i64 k0;
  u32 n;
  u8 over; /* Over: a limit was exceeded, the value is invalid */
  Sym sym[DIM_TERMS];
  i64 coef[DIM_TERMS];
};

typedef enum Overflow { OVERFLOW_number = 1, OVERFLOW_terms = 2 } Overflow;

struct Dims {
  Ctx *c;
  Arena *a;
  VEC(SymInfo) sym;
  VEC(DimSize) extent; /* size of each symbol */
  VEC(DimAffine) aff;  /* Dim -1 - i is aff i */
  Map by_aff;          /* content of an expression -> index + 1 */
  Map by_op;           /* op, a, b -> derived symbol + 1 */
  Map by_name;         /* kind and requested name -> symbol + 1 */
  Map by_text;         /* name in text -> symbol + 1 */
};

DimPoly poly_const(i64 k);
DimPoly poly_of(const Dims *ds, Dim d);
void poly_add(const Dims *ds, DimPoly *p, const DimPoly *q, i64 k); /* p += k * q */
void poly_simplify(const Dims *ds, DimPoly *p);                     /* see dim_minmax.c */
DimPoly poly_mul(Dims *ds, const DimPoly *p, const DimPoly *q);
Dim poly_dim(Dims *ds, const DimPoly *p); /* interns; fails on overflow and negative constants */
u32 dim_factors(const Dims *ds, Sym s, Sym *out); /* at most DIM_FACTORS, each not a product */
Sym dim_only_sym(const Dims *ds, Dim d);          /* the symbol that is all of d, or NO_SYM */
Sym dim_find(const Dims *ds, Str name);           /* by the name in text; NO_SYM if unknown */
/* raw: no simplification by bounds, so that printed text is read back unchanged. */
Dim dim_div_with(Dims *ds, Dim a, Dim b, bool raw);
Dim dim_mod_with(Dims *ds, Dim a, Dim b, bool raw);
Dim dim_minmax_with(Dims *ds, Op op, Dim a, Dim b, bool raw); /* OP_min, OP_max */

#endif
