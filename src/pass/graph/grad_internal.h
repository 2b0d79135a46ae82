/* grad_internal.h: shared by the files of grad. */
#ifndef INGOT_GRAD_OWN_H
#define INGOT_GRAD_OWN_H

#include "pass/graph/grad.h"

typedef struct Grad Grad;
typedef struct RowGrad RowGrad;

/* Gradient of a gather inside a loop body, applied after the loop. */
struct RowGrad {
  Val from, idx, got;
  i64 axis;
};

struct Grad {
  Graph *g;
  GradOptions o;
  bool *active;  /* by value: depends on xs */
  bool *fixed;   /* by value: passes no gradient on: zs and, unless o.total, xs */
  Val *adj;      /* by value: gradient of y, or 0 */
  u32 nval;      /* number of values at the start; later ones have no gradient */
  bool changed;  /* `active` changed */
  bool *by_rows; /* by value: gradients of gathers from it are collected by rows; NULL: none */
  VEC(RowGrad) rows;
};

/* n: a copy, because building moves nodes; v: gradient of its first result, or 0. */
typedef void BackFn(Grad *d, const Node *n, Val v);

/* grad_reverse.c */
bool grad_needed(const Grad *d, Val x);
void grad_accumulate(Grad *d, Val x, Val v); /* sums v over the axes along which x was broadcast */
void grad_backward(Grad *d, RegionId b);     /* all nodes of a region, last one first */
Val grad_zeros(Graph *g, Val like);          /* zeros of the type of a value */
Val grad_or_zeros(Grad *d, Val x);           /* gradient of x, or zeros */
Val grad_result(const Grad *d, Val v);       /* gradient of a result; 0: none */
_Noreturn void grad_refuse(Graph *g, const Node *n, const char *why);
BackFn grad_map; /* grad_map.c */

#define RULE(op, function) BackFn function;
#include "pass/graph/grad.def"

#endif
