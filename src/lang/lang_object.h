/* lang_object.h: layers, optimisers, models. Private to src/lang. */
#ifndef INGOT_LANG_THING_H
#define INGOT_LANG_THING_H

#include "lang/tensor.h"

typedef enum ObjectKind {
#define OBJECT(name, kind, show) OBJ_##name,
#include "lang/lang_objects.def"
#undef OBJECT
  OBJECT_COUNT
} ObjectKind;

enum { OBJECT_NUMBERS = 8, OBJECT_TRAINS = 7 }; /* OBJECT_TRAINS: of a model, and of its layers */

/* What an optimiser keeps of a tensor. */
typedef struct Moment {
  u64 line; /* see Ident */
  i64 steps;
  LazyTensor *first, *second; /* NULL: not yet */
} Moment;

struct LangObject {
  HeapObj box;
  ObjectKind what;
  double num[OBJECT_NUMBERS]; /* by kind: see lang_objects.def */
  u32 nweight;
  LazyTensor *weight[8];
  LazyTensor
      *stat[2]; /* of a batchnorm in a model: mean and variance of what it has seen; or NULL */
  VEC(Moment) moment; /* and where that of a line is: 1 + its number */
  Map moment_at;
  u32 npart; /* of a model: its layers, in order */
  LangObject **part;
  const char *name; /* of a model */
  const char *path; /* of a network */
};

/* lang_object.c */
LangObject *object_new(Eval *ev, ObjectKind what);
LangValue value_object(LangObject *t); /* takes it */
LangObject *arg_object(Eval *ev, const LangValue *d, const char *what);
Moment *object_moment(Eval *ev, LangObject *t, u64 line);
LangValue object_method(Eval *ev, const Ast *at, const LangValue *on, const char *name,
                        LangValue *arg, u32 n);
/* What a network is called with: tensors that no gradient goes through; they are computed. */
void net_check(Eval *ev, const LangObject *t, const LangValue *arg, u32 n);
LangValue object_call(Eval *ev, const Ast *at, LangObject *t, LangValue *arg, u32 n);

/* class.c */
LangValue model_class(Eval *ev, const Ast *n);

/* lang_model.c */
void model_reserve(Eval *ev, LangObject *m, u32 most); /* for so many layers; there is none yet */
void model_add(LangObject *m, LangObject *part);
LangValue model_instantiate(Eval *ev, const LangObject *class);
LazyTensor *model_forward(Eval *ev, LangObject *m, LazyTensor *x);
bool model_method(Eval *ev, LangObject *m, const char *name, LangValue *arg, u32 n,
                  LangValue *out); /* false: there is none */
/* Of methods.def; save and load are in weights.c: parameters as the arrays of an archive. */
#define METHOD(name, n, result, fn)                                                                \
  void do_##fn(Eval *ev, LangObject *m, LangValue *arg, LangValue *out);
#include "front/lang/methods.def"
#undef METHOD
void model_show(Eval *ev, const LangObject *m, StrBuf *out);

/* net.c */
LangValue net_import(Eval *ev, const Ast *n);
void nets_free(Eval *ev);
LangValue net_call(Eval *ev, LangObject *t, LangValue *arg, u32 n);

/* optim.c */
/* also: to be computed in the same program, if it is not yet. */
void optim_step(Eval *ev, LangObject *opt, const ListObj *old, const LazyTensors *also,
                LangValue *out);

/* random.c */
LazyTensor *random_tensor(Eval *ev, const i64 *dim, u32 rank); /* normal */
LazyTensor *random_tensor_uniform(Eval *ev, const i64 *dim, u32 rank);

/* layers.c */
LazyTensor *layer_forward(Eval *ev, LangObject *layer, LazyTensor *x);
double initial_weight(u64 i); /* what layers begin with, see layers.c */

#endif
