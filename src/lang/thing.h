/* thing.h: layers, optimisers, models. Private to src/lang. */
#ifndef INGOT_LANG_THING_H
#define INGOT_LANG_THING_H

#include "lang/tensor.h"

typedef enum ThingKind {
#define THING(name, kind, show) TH_##name,
#include "lang/things.def"
#undef THING
  THING_COUNT
} ThingKind;

enum { THING_NUMBERS = 8, THING_TRAINS = 7 }; /* THING_TRAINS: of a model, and of its layers */

/* What an optimiser keeps of a tensor. */
typedef struct Moment {
  u64 line; /* see Ident */
  i64 steps;
  Lazy *first, *second; /* NULL: not yet */
} Moment;

struct Thing {
  Holder box;
  ThingKind what;
  double num[THING_NUMBERS]; /* by kind: see things.def */
  u32 nweight;
  Lazy *weight[8];
  Lazy *stat[2]; /* of a batchnorm in a model: mean and variance of what it has seen; or NULL */
  VEC(Moment) moment; /* and where that of a line is: 1 + its number */
  Map moment_at;
  u32 npart; /* of a model: its layers, in order */
  Thing **part;
  const char *name; /* of a model */
  const char *path; /* of a network */
};

/* thing.c */
Thing *thing_new(Eval *ev, ThingKind what);
Worth worth_thing(Thing *t); /* takes it */
Thing *arg_thing(Eval *ev, const Worth *d, const char *what);
Moment *thing_moment(Eval *ev, Thing *t, u64 line);
Worth thing_method(Eval *ev, const Ast *at, const Worth *on, const char *name, Worth *arg, u32 n);
/* What a network is called with: tensors that no gradient goes through; they are computed. */
void net_check(Eval *ev, const Thing *t, const Worth *arg, u32 n);
Worth thing_call(Eval *ev, const Ast *at, Thing *t, Worth *arg, u32 n);

/* class.c */
Worth model_class(Eval *ev, const Ast *n);

/* model.c */
void model_room(Eval *ev, Thing *m, u32 most); /* for so many layers; there is none yet */
void model_add(Thing *m, Thing *part);
Worth model_object(Eval *ev, const Thing *class);
Lazy *model_forward(Eval *ev, Thing *m, Lazy *x);
bool model_method(Eval *ev, Thing *m, const char *name, Worth *arg, u32 n,
                  Worth *out); /* false: there is none */
/* Of methods.def; save and load are in weights.c: parameters as the arrays of an archive. */
#define METHOD(name, n, result, fn) void do_##fn(Eval *ev, Thing *m, Worth *arg, Worth *out);
#include "front/lang/methods.def"
#undef METHOD
void model_show(Eval *ev, const Thing *m, Text *out);

/* net.c */
Worth net_import(Eval *ev, const Ast *n);
void nets_free(Eval *ev);
Worth net_call(Eval *ev, Thing *t, Worth *arg, u32 n);

/* optim.c */
/* also: to be computed in the same program, if it is not yet. */
void optim_step(Eval *ev, Thing *opt, const BoxList *old, const Lazies *also, Worth *out);

/* random.c */
Lazy *random_tensor(Eval *ev, const i64 *dim, u32 rank); /* normal */
Lazy *random_tensor_uniform(Eval *ev, const i64 *dim, u32 rank);

/* layers.c */
Lazy *layer_forward(Eval *ev, Thing *layer, Lazy *x);
double fixed_weight(u64 i); /* what layers begin with, see layers.c */

#endif
