/* train.h: turns a model into a training step. */
#ifndef INGOT_TRAIN_H
#define INGOT_TRAIN_H

#include "pass/graph/grad.h"

typedef struct TrainOptions TrainOptions;

/* Part of the step to build. Weights are states with the same names in all parts. */
typedef enum TrainPart {
  TP_step,   /* all of it */
  TP_eval,   /* loss and classes of the model in inference mode; weights unchanged */
  TP_grads,  /* loss and classes in training mode, gradients as results NAME.grad, running means as
                results NAME.next; weights unchanged */
  TP_update, /* the optimizer, with gradients as parameters NAME.grad */
  TP_infer,  /* the model in inference mode with its own results; weights unchanged */
} TrainPart;

/* Names are rows of the tables in train_loss.c and train_update.c. A number below 0 (TRAIN_DEFAULT)
 * selects the default of the optimizer (train_update.c), the same as in PyTorch. */
enum { TRAIN_DEFAULT = -1 };
#define DEFAULT_LR 1e-3                             /* learning rate */
static inline bool train_is_training(TrainPart p) { /* layers are in training mode */
  return p != TP_eval && p != TP_infer;
}
struct TrainOptions {
  const char *loss;      /* cross_entropy, mse, mae, bce, bce_logits */
  const char *optimizer; /* sgd, momentum, adam, adamw, rmsprop, adagrad, lion, lamb */
  double momentum;       /* momentum; sgd: ignored */
  double beta1, beta2;   /* adam, adamw, lion, lamb; rmsprop: beta2 */
  double epsilon;
  double decay; /* weight decay, times the learning rate; added to gradients except with adamw,
                   lion and lamb */
  double clip;  /* clip the global gradient norm to this; <0: no clipping */
  double
      clip_value; /* clip every element of the gradients to -X..X, before `clip`; <0: no clipping */
  double smoothing; /* cross_entropy: label smoothing, the share of the target that is spread evenly
                       over all classes; <0: none */
  i64 axis;         /* cross_entropy: axis of the classes; <0: axis 1 */
  u32 output;       /* result that is compared with the label */
  bool recompute;   /* see GradOptions */
  bool classes;     /* add the result "class" */
  TrainPart part;
  bool (*trains)(void *user, Str name); /* is the weight of that name trained? NULL: all are */
  void *user;
};

/* Turns the model g, in place, into a graph of one training step and returns it; TP_update returns
 * a new graph.
 *
 * Parameters: those of the model, then "label" (i64 classes, or floats of the result's type) and
 * "rate" (f32 scalar).
 *
 * Results: "loss", a scalar. cross_entropy adds "right", i64: correct predictions of the batch.
 * `classes` adds "class", i64: the predicted classes, for cross_entropy and binary losses.
 *
 * Weights, the named float constants, become states that start with their contents. So do the
 * moments of the optimizer, named WEIGHT.m and so on. A weight that the loss does not depend on
 * stays unchanged.
 *
 * Fails if no weight can be trained or the loss does not fit. */
Graph *train_step(Graph *g, const TrainOptions *o);

#endif
