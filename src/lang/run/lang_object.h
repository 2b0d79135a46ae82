/* lang_object.h: layers, optimizers, models. Private to src/lang. */
#ifndef INGOT_LANG_THING_H
#define INGOT_LANG_THING_H

#include "lang/run/tensor.h"

typedef enum ObjectKind {
#define OBJECT(name, kind, show) OBJ_##name,
#include "lang/run/lang_objects.def"
#undef OBJECT
  OBJECT_COUNT
} ObjectKind;

/* OBJECT_TRAINS: training mode of a model and its layers */
enum { OBJECT_NUMBERS = 8, OBJECT_TRAINS = 7 };

/* Optimizer state of a tensor. */
typedef struct OptimizerState {
  u64 line; /* see AutogradMeta */
  i64 steps;
  LazyTensor *first, *second; /* NULL before the first step */
} OptimizerState;

struct LangObject {
  HeapObj box;
  ObjectKind what;
  double num[OBJECT_NUMBERS]; /* meaning by kind: see lang_objects.def */
  u32 nweight;
  LazyTensor *weight[8];
  /* batchnorm in a model: running mean and variance, or NULL */
  LazyTensor *stat[2];
  /* moment_at: AutogradMeta.line -> 1 + index in moment */
  VEC(OptimizerState) moment;
  Map moment_at;
  u32 npart; /* layers of a model, in order */
  LangObject **part;
  const char *name; /* name of a model */
  const char *path; /* path of a network */
};

/* lang_object.c */
LangObject *object_new(Eval *ev, ObjectKind what);
LangValue value_object(LangObject *t); /* takes t */
LangObject *arg_object(Eval *ev, const LangValue *d, const char *what);
OptimizerState *object_moment(Eval *ev, LangObject *t, u64 line);
LangValue object_method(Eval *ev, const Ast *at, const LangValue *on, const char *name,
                        LangValue *arg, u32 n);
/* Checks the arguments of a network: tensors without gradients. Computes them. */
void net_check(Eval *ev, const LangObject *t, const LangValue *arg, u32 n);
LangValue object_call(Eval *ev, const Ast *at, LangObject *t, LangValue *arg, u32 n);

/* lang_model.c */
/* reserves space for the layers of an empty model */
void model_reserve(Eval *ev, LangObject *m, u32 most);
void model_add(LangObject *m, LangObject *part);
LangValue model_instantiate(Eval *ev, const LangObject *class);
LazyTensor *model_forward(Eval *ev, LangObject *m, LazyTensor *x);
/* False if the method does not exist. */
bool model_method(Eval *ev, LangObject *m, const char *name, LangValue *arg, u32 n, LangValue *out);
/* Methods of methods.def. save and load are in weights.c. */
#define METHOD(name, n, result, fn)                                                                \
  void do_##fn(Eval *ev, LangObject *m, LangValue *arg, LangValue *out);
#include "lang/syntax/methods.def"
#undef METHOD
void model_show(Eval *ev, const LangObject *m, StrBuf *out);

/* net.c */
LangValue net_import(Eval *ev, const Ast *n);
void nets_free(Eval *ev);
LangValue net_call(Eval *ev, LangObject *t, LangValue *arg, u32 n);

/* optim.c */
/* also: more tensors to compute in the same program. */
void optim_step(Eval *ev, LangObject *opt, const ListObj *old, const LazyTensors *also,
                LangValue *out);

/* random.c */
LazyTensor *random_tensor(Eval *ev, const i64 *dim, u32 rank); /* normal distribution */
LazyTensor *random_tensor_uniform(Eval *ev, const i64 *dim, u32 rank);

/* layers.c */
LazyTensor *layer_forward(Eval *ev, LangObject *layer, LazyTensor *x);
double initial_weight(u64 i); /* see layers.c */

#endif
