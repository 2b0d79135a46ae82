/* train_internal.h: what the files of train share. */
#ifndef INGOT_TRAIN_OWN_H
#define INGOT_TRAIN_OWN_H

#include "pass/graph/train.h"

/* A parameter that the step keeps: what it begins with, and its next value. */
Val train_add_state(Graph *g, Type t, Str name, Tensor *start);
void train_set_next(Graph *g, Val param, Val next);

/* train_loss.c */
/* What is seen of the classes of a batch: how many are right, and which they are; 0: none. */
typedef struct Classes {
  Val right, is;
} Classes;
/* The loss of result y, a scalar. Adds the parameter "label". */
Val train_loss(Graph *g, const TrainOptions *o, Val y, Classes *seen);

/* train_update.c */
/* The next values of weights w, kept parameters, whose derivatives are d. */
void train_update(Graph *g, const TrainOptions *o, Val rate, const Val *w, const Val *d, u32 n);

#endif
