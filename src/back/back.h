/* back.h: engines and emitters that read Prog. Never sees Graph. */
#ifndef INGOT_BACK_H
#define INGOT_BACK_H

#include "ir/prog.h"

typedef struct InterpOptions {
  u64 seed;   /* of random expressions */
  bool plain; /* one iteration at a time, for comparison: the results are the same */
} InterpOptions;

/* interp.c: in: one tensor per p->in (dtype as declared; symbols are bound from their shapes);
 * out: one per p->out, with actual shapes, in arena a. o may be NULL. The program must have passed
 * prog_check. */
void interp_run(Prog *p, const InterpOptions *o, Tensor *const *in, Tensor **out, Arena *a);

#endif
