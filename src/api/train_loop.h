/* train_loop.h: what the files of `ingot train` share.
 *
 * A Drive is one program of the training (the step, or what is measured with its weights), made
 * for a number of examples and loaded; its arrays and states stay where they are from run to run.
 * States have the same names in all of them, and are copied from one to the other.
 */
#ifndef INGOT_API_TRAIN_LOOP_H
#define INGOT_API_TRAIN_LOOP_H

#include "api/api_internal.h"

typedef struct TrainStep TrainStep;
typedef struct StateArray StateArray;       /* a state in memory */
typedef struct Dataset Dataset;             /* examples and their labels */
typedef struct DataColumn DataColumn;       /* the array of one input */
typedef struct Metrics Metrics;             /* what was counted over examples */
typedef struct TrainPosition TrainPosition; /* how far the training is */
typedef struct Training Training;

struct StateArray {
  Str name;
  DType dt;
  u32 rank;
  const i64 *dim;
  u8 *at;
  u64 bytes;
  bool weight; /* of the model, not of the optimizer */
};

struct TrainStep {
  Ingot *m; /* NULL: not made */
  const char *engine;
  CallFn *code; /* NULL: bytecode, or interp */
  CallArgs frame;
  u8 *arena;
  Tensor **in, **out; /* by parameter and result of m */
  StateArray *state;
  u32 nstate;
  VEC(Str) weight; /* names of states that the model has */
  i64 classes;     /* labels are below this; 0: any number */
};

struct DataColumn {
  Str name;
  const Tensor *t;
  u64 row;   /* bytes of an example */
  bool same; /* no example has one of its own: all of it, in every step */
};

struct Dataset {
  const char *path;
  u64 n; /* examples; 0: there are none */
  DataColumn *col;
  u32 ncol;
  DataColumn label;
  u64 hash; /* of all arrays */
};

/* Numbers of classes are as large as they come. */
struct Metrics {
  double loss;      /* summed over examples */
  u64 n;            /* examples */
  u64 right, count; /* of labels */
  VEC(i64)
  correct, predicted, actual; /* by class: rightly predicted, predicted, and so many there are */
};

struct TrainPosition {
  u64 epoch, row, step; /* row: examples of the epoch that were seen; step: of all */
};

/* Processes that train together; size 1: there is only this one. */
typedef struct Ranks {
  int rank, size;
  const struct MpiCalls *mpi; /* NULL: not begun */
} Ranks;

/* In: what ingot_train was asked; all else is made of it. */
struct Training {
  Ingot *m;
  Ctx *c;
  const IngotTrain *o;
  IngotTrained *out;
  const char *spec, *engine, *checkpoint;
  double rate, every;
  u32 schedule;             /* 0: the rate stays; else 1 + its row */
  double x, y;              /* its numbers */
  u64 batch, steps, epochs; /* steps: of an epoch */
  bool fixed;               /* the model takes batches of one size only */
  bool yes;                 /* classes are yes and no */
  Dataset data, validate;
  TrainStep step, rest, measure, measure_rest; /* rest: of batches that are not full */
  u64 microbatch;                              /* examples of a microbatch; 0: steps are whole */
  TrainStep grads, grads_rest, update;         /* of shares */
  Ranks ranks;
  VEC(StateArray)
  state;      /* weights, moments and running means, where they lie: all that is learnt */
  u32 *order; /* of the examples of this epoch */
  TrainPosition at;
  Metrics tally;
  VEC(IngotEpoch) row;
  double began, saved, shown; /* ms */
  u64 began_at;               /* examples that were seen before */
};

/* train_step.c */
/* part of the step for so many examples; spec: as ingot_set_train takes it. */
void train_step_open(Training *f, TrainStep *d, TrainPart part, u64 rows, const char *engine);
void train_step_close(TrainStep *d);
Tensor *train_step_in(const TrainStep *d,
                      Str name); /* NULL: there is none; its data may be written */
const Tensor *train_step_out(const TrainStep *d, const char *name); /* of the last run */
void train_step_run(TrainStep *d, u64 seed);
StateArray *train_step_state(const TrainStep *d, Str name); /* NULL: there is none */
/* States that it has, from where they are learnt, and back. */
void train_step_set_states(const Training *f, const TrainStep *d);
void train_step_get_states(const Training *f, const TrainStep *d);

/* train_data.c */
Dataset dataset_read(Training *f, const char *path);
void dataset_bind_shapes(const Training *f, Ingot *m, u64 rows); /* the shapes of its inputs */
/* Rows `which` of the set into the arrays of a drive. */
void dataset_gather(const Dataset *s, const TrainStep *d, const u32 *which, u64 n);
/* Labels in the type that the step wants; refuses those that are none. */
void dataset_convert_labels(Training *f, Dataset *s, const TrainStep *d, u64 rows);

/* train_loop.c: for what is not worth compiling */
const char *train_cheap_engine(const Training *f);

/* train_metrics.c */
/* Rows `which` of a set, that a drive has run: their mean loss, and their classes or NULL. */
void metrics_add(Training *f, Metrics *t, const Dataset *s, const u32 *which, u64 rows, double loss,
                 const i64 *class);
double train_step_loss(const TrainStep *d);
const i64 *train_step_class(const TrainStep *d); /* NULL: the loss has none */
void metrics_score(const Training *f, const Metrics *t, IngotScore *to);

/* train_accumulate.c: a batch in shares, each with derivatives of its own */
void accumulate_open(Training *f);
void accumulate_step(Training *f, u64 rows, double rate);
void accumulate_close(Training *f);

/* ranks.c */
Ranks ranks_find(void);             /* by what mpirun tells */
void ranks_begin(Ctx *c, Ranks *r); /* of several: all of them come here */
void ranks_end(Ranks *r);
/* n bytes of each, in the order of their ranks. */
void ranks_gather(Ctx *c, const Ranks *r, const void *mine, void *all, u64 n);

/* checkpoint_save.c: checkpoints */
void checkpoint_save(Training *f);
bool checkpoint_load(Training *f); /* false: there is none */
void checkpoint_remove(Training *f);

#endif
