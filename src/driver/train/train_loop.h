/* train_loop.h: shared by the files of `ingot train`.
 *
 * A TrainStep is one program of the training (the step, or an evaluation with its weights),
 * compiled for a number of examples and loaded. Its arrays and states keep their addresses between
 * runs. States have the same names in all programs, and are copied between them.
 */
#ifndef INGOT_API_TRAIN_LOOP_H
#define INGOT_API_TRAIN_LOOP_H

#include "api/api_internal.h"

typedef struct TrainStep TrainStep;
typedef struct StateArray StateArray;       /* a state in memory */
typedef struct Dataset Dataset;             /* examples and their labels */
typedef struct DataColumn DataColumn;       /* array of one input */
typedef struct Metrics Metrics;             /* sums over examples */
typedef struct TrainPosition TrainPosition; /* progress of the training */
typedef struct Training Training;

struct StateArray {
  Str name;
  DType dt;
  u32 rank;
  const i64 *dim;
  u8 *at;
  u64 bytes;
  bool weight; /* belongs to the model, not to the optimizer */
  u8 *best;    /* with patience, weights only: contents after the best epoch */
};

struct TrainStep {
  Ingot *m; /* NULL: not made */
  const char *engine;
  CallFn *code; /* NULL: bytecode, or interp */
  CallArgs frame;
  u8 *arena;
  Tensor **in, **out; /* by parameter and by result of m */
  StateArray *state;
  u32 nstate;
  VEC(Str) weight; /* names of weight states */
  i64 classes;     /* labels are below this; 0: any */
};

struct DataColumn {
  Str name;
  const Tensor *t;
  u64 row;   /* bytes of an example */
  bool same; /* the array has no example axis: use all of it in every step */
};

struct Dataset {
  const char *path;
  u64 n; /* examples; 0: no data */
  DataColumn *col;
  u32 ncol;
  DataColumn label;
  u64 hash; /* hash of all arrays */
};

/* Arrays grow with the number of classes. */
struct Metrics {
  double loss;      /* summed over examples */
  u64 n;            /* examples */
  u64 right, count; /* labels predicted correctly; all labels */
  VEC(i64)
  correct, predicted, actual; /* by class: true positives, predictions, labels */
};

struct TrainPosition {
  u64 epoch, row, step; /* row: examples seen in this epoch; step: total */
};

/* MPI processes; size 1: only this one. */
typedef struct Ranks {
  int rank, size;
  const struct MpiCalls *mpi; /* NULL: not initialized */
} Ranks;

/* State of one ingot_train call. */
struct Training {
  Ingot *m;
  Ctx *c;
  const IngotTrain *o;
  IngotTrained *out;
  const char *spec, *engine, *checkpoint;
  double rate, every;
  u32 schedule;             /* 0: constant rate; else 1 + row of the schedule table */
  double x, y;              /* parameters of the schedule */
  u64 batch, steps, epochs; /* steps: per epoch */
  bool fixed;               /* the model has a fixed batch size */
  bool yes;                 /* binary classes */
  Dataset data, validate;
  TrainStep step, rest, measure, measure_rest; /* rest: for an incomplete last batch */
  u64 microbatch;                      /* examples of a microbatch; 0: no gradient accumulation */
  TrainStep grads, grads_rest, update; /* with gradient accumulation */
  Ranks ranks;
  VEC(StateArray)
  state;      /* weights, moments and running means: the master copy */
  u32 *order; /* order of examples in this epoch */
  TrainPosition at;
  Metrics tally;
  VEC(IngotEpoch) row;
  double began, saved, shown; /* ms */
  u64 began_at;               /* examples seen before this call */
};

/* train_step.c */
/* Opens a part of the step for `rows` examples; spec: as in ingot_set_train. */
void train_step_open(Training *f, TrainStep *d, TrainPart part, u64 rows, const char *engine);
void train_step_close(TrainStep *d);
Tensor *train_step_in(const TrainStep *d, Str name); /* NULL: unknown; its data may be written */
const Tensor *train_step_out(const TrainStep *d, const char *name); /* an output of the last run */
void train_step_run(TrainStep *d, u64 seed);
StateArray *train_step_state(const TrainStep *d, Str name); /* NULL: unknown */
/* Copy the states of a step from and to the master copy. */
void train_step_set_states(const Training *f, const TrainStep *d);
void train_step_get_states(const Training *f, const TrainStep *d);

/* train_data.c */
Dataset dataset_read(Training *f, const char *path);
void dataset_bind_shapes(const Training *f, Ingot *m, u64 rows); /* sets the shapes of its inputs */
/* Copies rows `which` of the set into the arrays of a step. */
void dataset_gather(const Dataset *s, const TrainStep *d, const u32 *which, u64 n);
/* Converts labels to the type of the step; refuses invalid ones. */
void dataset_convert_labels(Training *f, Dataset *s, const TrainStep *d, u64 rows);

/* train_loop.c: an engine without compile time, for short work */
const char *train_cheap_engine(const Training *f);

/* train_metrics.c */
/* Adds the results of rows `which`: their mean loss, and their classes or NULL. */
void metrics_add(Training *f, Metrics *t, const Dataset *s, const u32 *which, u64 rows, double loss,
                 const i64 *class);
double train_step_loss(const TrainStep *d);
const i64 *train_step_class(const TrainStep *d); /* NULL: the loss has no classes */
void metrics_score(const Training *f, const Metrics *t, IngotScore *to);

/* train_accumulate.c: gradient accumulation over microbatches */
void accumulate_open(Training *f);
void accumulate_step(Training *f, u64 rows, double rate);
void accumulate_close(Training *f);

/* ranks.c */
Ranks ranks_find(void);             /* from the environment of mpirun */
void ranks_begin(Ctx *c, Ranks *r); /* collective: all processes call it */
void ranks_end(Ranks *r);
/* All-gather of n bytes per rank. */
void ranks_gather(Ctx *c, const Ranks *r, const void *mine, void *all, u64 n);

/* train_checkpoint.c */
void checkpoint_save(Training *f);
bool checkpoint_load(Training *f); /* false: no checkpoint */
void checkpoint_remove(Training *f);

#endif
