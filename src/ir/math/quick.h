/* quick.h: the functions of quick.def as lists of steps. */
#ifndef INGOT_IR_QUICK_H
#define INGOT_IR_QUICK_H

#include "ir/ir.h"

typedef enum QuickOp {
#define QO(name, function, infix) QO_##name,
#include "ir/math/quick_ops.def"
#undef QO
  QO_COUNT
} QuickOp;

enum { QUICK_STEPS = 112 };

typedef struct QuickStep {
  QuickOp op;
  bool bits; /* uint32_t, else float */
  u8 n, arg[3];
  const char *text; /* constant: its C text; call: the function */
  Scalar value;     /* constant: its value; shift: the count */
  const char *name; /* NULL: used once, in the next named step */
} QuickStep;

typedef struct Quick {
  const char *name; /* "expq"; internal functions start with imk_ */
  u32 nparam, n;    /* the first steps are the parameters */
  u8 result;
  QuickStep step[QUICK_STEPS];
} Quick;

/* Functions are numbered callees first. False: number out of range. */
bool quick_make(Quick *to, u32 number);
bool quick_find(Quick *to, const char *name);

/* C syntax for scalars, or for GNU C vectors. Callees get the same suffix. */
typedef struct QuickForm {
  const char *linkage, *real, *bits, *suffix;
  u32 lanes;
  bool calls; /* sums, products and comparisons of floats are calls: see quick_call */
} QuickForm;
/* Function for an operation of floats that has an operator, such as imk_add; NULL: none. */
const char *quick_call(QuickOp op);
bool quick_has(const Quick *q, QuickOp op); /* does it contain this operation? */
void quick_write(StrBuf *t, const Quick *q, const QuickForm *form);
const char *quick_function(QuickOp op); /* name from quick_ops.def */

#endif
