/* fit.h: what the files of `ingot train` share.
 *
 * A Drive is one program of the training (the step, or what is measured with its weights), made
 * for a number of examples and loaded; its arrays and states stay where they are from run to run.
 * States have the same names in all of them, and are copied from one to the other.
 */
#ifndef INGOT_API_FIT_H
#define INGOT_API_FIT_H

#include "api/own.h"

typedef struct Drive Drive;
typedef struct Memo Memo;         /* a state in memory */
typedef struct FitSet FitSet;     /* examples and their labels */
typedef struct Column Column;     /* the array of one input */
typedef struct Tally Tally;       /* what was counted over examples */
typedef struct FitPlace FitPlace; /* how far the training is */
typedef struct Training Training;

struct Memo {
  Str name;
  DType dt;
  u32 rank;
  const i64 *dim;
  u8 *at;
  u64 bytes;
  bool weight; /* of the model, not of the optimizer */
};

struct Drive {
  Ingot *m; /* NULL: not made */
  const char *engine;
  CallFn *code; /* NULL: bytecode, or interp */
  Frame frame;
  u8 *arena;
  Tensor **in, **out; /* by parameter and result of m */
  Memo *held;
  u32 nheld;
  VEC(Str) weight; /* names of states that the model has */
  i64 classes;     /* labels are below this; 0: any number */
};

struct Column {
  Str name;
  const Tensor *t;
  u64 row;   /* bytes of an example */
  bool same; /* no example has one of its own: all of it, in every step */
};

struct FitSet {
  const char *path;
  u64 n; /* examples; 0: there are none */
  Column *col;
  u32 ncol;
  Column label;
  u64 hash; /* of all arrays */
};

/* Numbers of classes are as large as they come. */
struct Tally {
  double loss;            /* summed over examples */
  u64 n;                  /* examples */
  u64 right, count;       /* of labels */
  VEC(i64) hit, said, is; /* by class: rightly said, said, and so many there are */
};

struct FitPlace {
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
  FitSet data, validate;
  Drive step, rest, measure, measure_rest; /* rest: of batches that are not full */
  u64 share;                               /* examples of a share; 0: steps are whole */
  Drive slopes, slopes_rest, update;       /* of shares */
  Ranks ranks;
  VEC(Memo) state; /* weights, moments and running means, where they lie: all that is learnt */
  u32 *order;      /* of the examples of this epoch */
  FitPlace at;
  Tally tally;
  VEC(IngotEpoch) row;
  double began, saved, shown; /* ms */
  u64 began_at;               /* examples that were seen before */
};

/* drive.c */
/* part of the step for so many examples; spec: as ingot_set_train takes it. */
void drive_open(Training *f, Drive *d, TrainPart part, u64 rows, const char *engine);
void drive_close(Drive *d);
Tensor *drive_in(const Drive *d, Str name); /* NULL: there is none; its data may be written */
const Tensor *drive_out(const Drive *d, const char *name); /* of the last run */
void drive_run(Drive *d, u64 seed);
Memo *drive_held(const Drive *d, Str name); /* NULL: there is none */
/* States that it has, from where they are learnt, and back. */
void drive_set(const Training *f, const Drive *d);
void drive_get(const Training *f, const Drive *d);

/* fit_data.c */
FitSet fit_read(Training *f, const char *path);
void fit_bind(const Training *f, Ingot *m, u64 rows); /* the shapes of its inputs */
/* Rows `which` of the set into the arrays of a drive. */
void fit_give(const FitSet *s, const Drive *d, const u32 *which, u64 n);
/* Labels in the type that the step wants; refuses those that are none. */
void fit_labels(Training *f, FitSet *s, const Drive *d, u64 rows);

/* fit.c: for what is not worth compiling */
const char *fit_slow_engine(const Training *f);

/* fit_tally.c */
/* Rows `which` of a set, that a drive has run: their mean loss, and their classes or NULL. */
void tally_add(Training *f, Tally *t, const FitSet *s, const u32 *which, u64 rows, double loss,
               const i64 *class);
double drive_loss(const Drive *d);
const i64 *drive_class(const Drive *d); /* NULL: the loss has none */
void tally_score(const Training *f, const Tally *t, IngotScore *to);

/* fit_share.c: a batch in shares, each with derivatives of its own */
void share_open(Training *f);
void share_step(Training *f, u64 rows, double rate);
void share_close(Training *f);

/* ranks.c */
Ranks ranks_find(void);             /* by what mpirun tells */
void ranks_begin(Ctx *c, Ranks *r); /* of several: all of them come here */
void ranks_end(Ranks *r);
/* n bytes of each, in the order of their ranks. */
void ranks_gather(Ctx *c, const Ranks *r, const void *mine, void *all, u64 n);

/* fit_save.c: checkpoints */
void fit_save(Training *f);
bool fit_load(Training *f); /* false: there is none */
void fit_forget(Training *f);

#endif
