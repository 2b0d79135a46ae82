/* train.h: a model as the step that trains it. */
#ifndef INGOT_TRAIN_H
#define INGOT_TRAIN_H

#include "pass/graph/grad.h"

typedef struct TrainOptions TrainOptions;

/* What of the step is made; weights are states in all of them, under the same names. */
typedef enum TrainPart {
  TP_step,   /* all of it */
  TP_eval,   /* loss and classes alone, of a model that does as it will be used; weights stay */
  TP_grads,  /* the same in training, and derivatives as results NAME.slope, running means as
                 results NAME.next; weights stay */
  TP_update, /* the rest, of derivatives that are parameters NAME.slope */
  TP_infer,  /* the model as it will be used, with the results it has; weights stay */
} TrainPart;

/* Names are those of the tables in train_loss.c and train_update.c; numbers below 0 (TRAIN_DEFAULT)
 * are the usual ones of the optimizer (train_update.c), as PyTorch has them: 0 is a number. */
enum { TRAIN_DEFAULT = -1 };
#define DEFAULT_LR 1e-3                             /* of learning */
static inline bool train_is_training(TrainPart p) { /* layers do as in training */
  return p != TP_eval && p != TP_infer;
}
struct TrainOptions {
  const char *loss;      /* cross_entropy, mse, mae, bce, bce_logits */
  const char *optimizer; /* sgd, momentum, adam, adamw, rmsprop, adagrad */
  double momentum;       /* momentum; of sgd none */
  double beta1, beta2;   /* adam, adamw; rmsprop: beta2 */
  double epsilon;
  double decay;   /* weights shrink by this times the rate: added to derivatives, but with adamw */
  double clip;    /* derivatives are scaled so that all together are not longer; <0: as they are */
  i64 axis;       /* cross_entropy: of the classes; <0: axis 1 */
  u32 output;     /* which result is compared with the label */
  bool recompute; /* see GradOptions */
  bool classes;   /* a result more: "class" */
  TrainPart part;
  bool (*trains)(void *user, Str name); /* is the weight of that name trained? NULL: all are */
  void *user;
};

/* Makes of the model g, in place, a graph of one step, which is returned; TP_update: a new one. Its
 * parameters stay; behind them come "label" (i64 classes, or floats of the result's type) and
 * "rate" (f32, a scalar). Results: "loss", a scalar, and of cross_entropy "right", i64: how many of
 * the batch were; with `classes`, of cross_entropy and the losses of yes and no, "class", i64: what
 * the model takes each for. Weights, the labelled constants of floats, become states that begin
 * with their contents, and so do the moments of the optimizer, named WEIGHT.m and so on. A weight
 * that the loss does not depend on stays as it is. Fails where there is no weight to train, or the
 * loss does not fit. */
Graph *train_step(Graph *g, const TrainOptions *o);

#endif
