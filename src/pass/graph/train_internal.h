/* train_internal.h: shared by the files of train. */
#ifndef INGOT_TRAIN_OWN_H
#define INGOT_TRAIN_OWN_H

#include "pass/graph/train.h"

/* Adds a state: a parameter with its initial value and its next value. */
Val train_add_state(Graph *g, Type t, Str name, Tensor *start);
void train_set_next(Graph *g, Val param, Val next);

/* train_loss.c */
/* Predictions of a batch: number of correct ones, and classes; 0: none. */
typedef struct Predictions {
  Val right, is;
} Predictions;
/* Scalar loss of result y. Adds the parameter "label". */
Val train_loss(Graph *g, const TrainOptions *o, Val y, Predictions *seen);

/* train_update.c */
/* Sets the next values of the weights w, which are states, from their gradients d. */
void train_update(Graph *g, const TrainOptions *o, Val rate, const Val *w, const Val *d, u32 n);

#endif
