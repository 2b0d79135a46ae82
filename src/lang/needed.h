/* needed.h: what a tensor that is looked at is made of. Private to src/lang. */
#ifndef INGOT_LANG_NEEDED_H
#define INGOT_LANG_NEEDED_H

#include "lang/tensor.h"

typedef struct Needed {
  Eval *ev;
  VEC(Lazy *) all; /* by serial, once it is sorted */
  Lazy *const *out;
  u32 nout;
  bool deep;          /* recipes that gradients go through are listed again */
  Ingot *m;           /* while it is built */
  const TracedFn *fn; /* it is the graph of a function; NULL: what is known are parameters */
} Needed;

/* needed.c */
void needed_list(Needed *k, Arena *a); /* of k->out */
/* Is it to be computed, and no operand? */
bool needed_is_open(const Needed *k, const Lazy *t);
/* The same bytes for the same program. */
Text needed_key(const Needed *k, Arena *a);

/* force.c: its graph, as the model of k->m */
void needed_build(Ctx *c, Needed *k);

#endif
