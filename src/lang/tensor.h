/* tensor.h: tensors of programs. Private to src/lang.
 *
 * A tensor is computed when it is looked at. Until then it is a recipe: an operator and the tensors
 * it is applied to. What is looked at is cut out of these, becomes a Graph of core operators in f64
 * whose parameters are the tensors that are known, and runs on the engine; programs are kept by the
 * structure they were made of, so that the steps of a loop are compiled once.
 */
#ifndef INGOT_LANG_TENSOR_H
#define INGOT_LANG_TENSOR_H

#include "lang/own.h"

typedef enum TensorOp {
#define RECIPE(name) RC_DO_##name,
#include "lang/recipes.def"
#undef RECIPE
  RECIPE_COUNT
} TensorOp;

enum {
  LAZY_ATTRS = 8,
  LAZY_SIZE = 1500
}; /* LAZY_SIZE: recipes that wait for each other, at most */

#define OPEN_COUNT UINT64_MAX /* elements of a tensor one of whose extents is open */

typedef VEC(Lazy *) Lazies;

/* What copies of a tensor share: its gradient, and what optimisers keep of it. */
struct Ident {
  Holder box;
  Lazy *grad; /* NULL: none */
  u64 line;   /* the same for what optimisers make of it */
};

struct Lazy {
  Holder box;
  TensorOp op;  /* RC_DO_leaf: data alone */
  bool raw;     /* shows as a raw tensor, can be indexed */
  bool tracked; /* gradients go through it */
  u8 nattr;
  u32 rank, nin, size; /* size: recipes below it that have not been computed, roughly */
  i64 dim[MAX_RANK];
  u64 n;        /* elements */
  double *data; /* NULL: not computed yet */
  Lazy **in;
  double attr[LAZY_ATTRS];
  Ident *id;       /* NULL: nobody has asked for its gradient */
  u64 serial;      /* above those of `in` */
  u32 mark, place; /* while a graph is made: of that one; its value there */
};

/* lazy.c */
Lazy *lazy_new(Eval *ev, const i64 *dim, u32 rank); /* a leaf of zeros */
Lazy *lazy_scalar(Eval *ev, double x);              /* rank 0 */
double *lazy_room(Eval *ev, u64 n);                 /* for data: zeros */
/* Takes no shares of `in`; the shape is given. */
Lazy *lazy_make(Eval *ev, TensorOp op, Lazy *const *in, u32 nin, const double *attr, u32 nattr,
                const i64 *dim, u32 rank);
Lazy *lazy_leaf_of(Eval *ev, Lazy *t); /* its data as a leaf by itself, not tracked */
Ident *lazy_ident(Eval *ev, Lazy *t);
void lazy_drop_recipe(Eval *ev, Lazy *t);
void lazy_release(Eval *ev, Lazy *t);
void lazy_forget(Eval *ev, Lazy *t); /* its memory alone: nothing else may be touched any more */
void ident_release(Eval *ev, Ident *id);
bool lazy_equal(Eval *ev, Lazy *x, Lazy *y);
void lazy_show(Eval *ev, Lazy *t, Text *out);
void lazy_show_plain(Eval *ev, Lazy *t, Text *out); /* as tensor_print does */
Worth worth_lazy(Lazy *t);                          /* takes it */
Lazy *lazy_map(Eval *ev, TensorOp op, Lazy *x, const double *attr, u32 nattr); /* of its shape */
Worth lazy_array(Eval *ev, Lazy *t);                                           /* its numbers */
Lazy *lazy_share(Lazy *t);
void lazy_drop(Eval *ev, Lazy *t);
const char *dims_text(Eval *ev, const i64 *dim, u32 rank); /* [2, 3]; in c->keep */
u64 dims_count(Eval *ev, const i64 *dim, u32 rank);        /* fails where that is too many */
Lazy *lazy_of_array(Eval *ev, const Worth *array);         /* arrays in arrays */

Lazy *lazy_hole(Eval *ev, const i64 *dim, u32 rank); /* a leaf that will never have data */

/* A function that can become a graph. */
typedef struct TracedFn {
  DType dt;
  Lazy **param, **out;
  const char **name; /* of parameters */
  u32 n, nout;
} TracedFn;

/* force.c */
void lazy_graph(Eval *ev, Ingot *m, const TracedFn *t); /* in that session */
void lazy_show_graph(Eval *ev, Lazy *t, Text *out);     /* of what is not computed yet */
void traced_show_graph(Eval *ev, const TracedFn *t, Text *out);
const double *lazy_data(Eval *ev, Lazy *t);
/* It follows from what a function will be given that becomes a graph: nothing can look at it. */
bool lazy_waits(Eval *ev, Lazy *t);
void lazy_force(Eval *ev, Lazy *const *t, u32 n); /* in one program */
void recipes_free(Eval *ev);

/* needed.c */
u32 lazy_mark(Eval *ev); /* one that no tensor has */

/* recipes.c: the graph of one recipe */
Val recipe_build(Graph *g, const Lazy *t, const Val *in);
extern const char *const recipe_name[RECIPE_COUNT];

/* grads.c */
void grads_pending(Eval *ev,
                   Lazies *to); /* of the last loss, that nobody has computed; in ev->stack */
void grads_done(Eval *ev);      /* behind a step: what the loss was made of is let go */

/* thing.c */
const char *thing_kind(const Thing *t);
void thing_show(Eval *ev, const Thing *t, Text *out);
void thing_release(Eval *ev, Thing *t);

/* operators.c: what + and the like do with tensors and numbers */
Worth tensor_binary(Eval *ev, const Ast *at, Tok op, const Worth *x, const Worth *y);
/* A tensor and an array; equal, or not. */
Worth equal_elements(Eval *ev, const Worth *x, const Worth *y, bool equal);
Worth tensor_negate(Eval *ev, Lazy *t);
Lazy *tensor_two(Eval *ev, TensorOp op, Lazy *x, Lazy *y, const char *what); /* shapes broadcast */
Worth tensor_index(Eval *ev, const Ast *at, Lazy *t, const Worth *index);
Lazy *arg_tensor(Eval *ev, const Worth *d);
Lazy *tensor_of(Eval *ev, const Worth *d);       /* a share of the tensor, or the number as one */
Lazy *tensor_element(Eval *ev, Lazy *t, u64 at); /* shape [1] */

/* eval_call.c: fails where a gradient would be cut in silence */
void refuse_tracked(Eval *ev, const Lazy *t);

#endif
