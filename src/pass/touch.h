/* touch.h: what a piece of a program does to memory and variables. */
#ifndef INGOT_TOUCH_H
#define INGOT_TOUCH_H

#include "ir/prog.h"

typedef struct Touch {
  BufId buf, root;
  ExprId *idx; /* into the expression or statement: may be replaced */
  u32 n;
  u32 lanes; /* elements along the last dimension */
  bool write;
} Touch;

typedef struct Touched {
  Prog *p;
  VEC(Touch) at;
  bool *declared, *used; /* by variable */
  bool ordered;          /* sets a variable of the program around it, or may end the run */
  bool loops;            /* while: for how long is not known */
  u32 nstmts;
} Touched;

Touched touched(Prog *p, StmtId first);    /* the statement and those behind it; in scratch */
Touched touched_one(Prog *p, StmtId only); /* the statement alone */

#endif
