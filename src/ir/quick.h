/* quick.h: the functions of quick.def as steps. */
#ifndef INGOT_IR_QUICK_H
#define INGOT_IR_QUICK_H

#include "ir/ir.h"

typedef enum QuickOp {
#define QO(name, function, infix) QO_##name,
#include "ir/quick_ops.def"
#undef QO
  QO_COUNT
} QuickOp;

enum { QUICK_STEPS = 112 };

typedef struct QuickStep {
  QuickOp op;
  bool bits; /* uint32_t, else float */
  u8 n, arg[3];
  const char *text; /* of a constant in C; of a call the function */
  Scalar value;     /* of a constant, or how far a shift goes */
  const char *name; /* NULL: used once, in the next step that has a name */
} QuickStep;

typedef struct Quick {
  const char *name; /* "expq"; those that only others call begin with imk_ */
  u32 nparam, n;    /* the first steps are the parameters */
  u8 result;
  QuickStep step[QUICK_STEPS];
} Quick;

/* By number, what is called before what calls it; false: there is no such function. */
bool quick_make(Quick *to, u32 number);
bool quick_find(Quick *to, const char *name);

/* How C says it: of one float, or of vectors of GNU C. Functions that it calls have the same
 * suffix. */
typedef struct QuickForm {
  const char *linkage, *real, *bits, *suffix;
  u32 lanes;
} QuickForm;
bool quick_has(const Quick *q, QuickOp op); /* is it one of the steps? */
void quick_write(StrBuf *t, const Quick *q, const QuickForm *form);
const char *quick_function(QuickOp op); /* of quick_ops.def */

#endif
