/* grad_internal.h: what the files of grad share. */
#ifndef INGOT_GRAD_OWN_H
#define INGOT_GRAD_OWN_H

#include "pass/graph/grad.h"

typedef struct Grad Grad;
typedef struct RowGrad RowGrad;

/* What a gather in a body has got, to be handed on behind the loop. */
struct RowGrad {
  Val from, idx, got;
  i64 axis;
};

struct Grad {
  Graph *g;
  GradOptions o;
  bool *active;  /* by value: depends on xs */
  bool *fixed;   /* by value: hands nothing on, zs and, but with o.through, xs */
  Val *adj;      /* by value: derivative of y, or 0 */
  u32 nval;      /* values there were at the start: others have no derivative */
  bool changed;  /* of active */
  bool *by_rows; /* by value: gathers from it are collected in rows; NULL: none */
  VEC(RowGrad) rows;
};

/* n: a copy, because building moves nodes; v: what its first result got, or 0. */
typedef void BackFn(Grad *d, const Node *n, Val v);

/* grad_reverse.c */
bool grad_needed(const Grad *d, Val x);
void grad_accumulate(Grad *d, Val x, Val v); /* v is summed over what x was broadcast along */
void grad_backward(Grad *d, RegionId b);     /* the nodes of a block, last one first */
Val grad_zeros(Graph *g, Val like);          /* of the type of a value */
Val grad_or_zeros(Grad *d, Val x);           /* what x got, or zeros */
Val grad_result(const Grad *d, Val v);       /* what a result has to hand on; 0: nothing */
_Noreturn void grad_refuse(Graph *g, const Node *n, const char *why);
BackFn grad_map; /* grad_map.c */

#define RULE(op, function) BackFn function;
#include "pass/graph/grad.def"

#endif
