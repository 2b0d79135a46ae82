/* interp.h: what the files of the interpreter share; nobody else includes this. */
#ifndef INGOT_INTERP_H
#define INGOT_INTERP_H

#include "back/back.h"

typedef struct Run Run;     /* one execution of a program */
typedef struct View View;   /* a buffer while running */
typedef struct Plan Plan;   /* how a loop is executed by rows */
typedef struct Ranges Ranges;

/* dim, stride, n and data hold while `ready`; those of a buffer whose dimensions depend on data are
 * computed again at the first use after one of the symbols was set. */
struct View {
  u8 *data;
  BufId root;  /* buffer whose memory this is */
  bool fixed;  /* never changes while running */
  bool ready;
  u32 size;    /* bytes of one element, all lanes */
  u32 rank;
  u64 n;       /* elements */
  i64 *dim, *stride; /* rank entries; strides in elements */
};

typedef struct Mem {
  u8 *data;
  u64 cap; /* bytes */
} Mem;

struct Run {
  Ctx *c;
  Prog *p;
  InterpOptions o;
  Arena *a;     /* temporary memory of this run */
  Arena *keep;  /* results */
  View *view;   /* by buffer */
  Mem *mem;     /* by buffer; only roots have one */
  Scalar **var; /* by variable: its lanes */
  i64 *env;     /* by symbol */
  Plan **plan;  /* by statement; see plan_get */
  Ranges *ranges;
  Loc loc;      /* of the statement that runs, for messages */
};

/* interp.c */
View *view_get(Run *r, BufId b);            /* ready, with memory */
Scalar eval(Run *r, ExprId e);              /* one lane */
void exec(Run *r, StmtId first);            /* a list */
_Noreturn void out_of_bounds(Run *r, BufId b, u32 axis, i64 index, i64 lanes);

/* interp_plan.c: NULL when the loop must run one iteration at a time. */
const Plan *plan_get(Run *r, StmtId loop);
/* interp_row.c: runs n iterations from lo on; false: not this time, nothing has been done. */
bool plan_run(Run *r, const Plan *plan, i64 lo, u64 n);

#endif
