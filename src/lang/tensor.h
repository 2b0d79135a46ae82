/* tensor.h: tensors of programs. Private to src/lang.
 *
 * A tensor is computed when it is looked at. Until then it is a recipe: an operator and the tensors
 * it is applied to. What is looked at is cut out of these, becomes a Graph of core operators in f64
 * whose parameters are the tensors that are known, and runs on the engine; programs are kept by the
 * structure they were made of, so that the steps of a loop are compiled once.
 */
#ifndef INGOT_LANG_TENSOR_H
#define INGOT_LANG_TENSOR_H

#include "lang/lang_value.h"

typedef enum LazyOp {
#define LAZY_OP(name) LOP_##name,
#include "lang/lazy_ops.def"
#undef LAZY_OP
  LAZY_OP_COUNT
} LazyOp;

enum {
  LAZY_ATTRS = 8,
  LAZY_SIZE = 1500
}; /* LAZY_SIZE: recipes that wait for each other, at most */

#define UNKNOWN_COUNT UINT64_MAX /* elements of a tensor one of whose extents is open */

typedef VEC(LazyTensor *) LazyTensors;

/* What copies of a tensor share: its gradient, and what optimisers keep of it. */
struct AutogradMeta {
  HeapObj box;
  LazyTensor *grad; /* NULL: none */
  u64 line;         /* the same for what optimisers make of it */
};

struct LazyTensor {
  HeapObj box;
  LazyOp op;    /* LOP_leaf: data alone */
  bool raw;     /* shows as a raw tensor, can be indexed */
  bool tracked; /* gradients go through it */
  u8 nattr;
  u32 rank, nin, size; /* size: recipes below it that have not been computed, roughly */
  i64 dim[MAX_RANK];
  u64 n;        /* elements */
  double *data; /* NULL: not computed yet */
  LazyTensor **in;
  double attr[LAZY_ATTRS];
  AutogradMeta *id; /* NULL: nobody has asked for its gradient */
  u64 serial;       /* above those of `in` */
  u32 mark, place;  /* while a graph is made: of that one; its value there */
};

/* lazy.c */
LazyTensor *lazy_new(Eval *ev, const i64 *dim, u32 rank); /* a leaf of zeros */
LazyTensor *lazy_scalar(Eval *ev, double x);              /* rank 0 */
double *lazy_alloc(Eval *ev, u64 n);                      /* for data: zeros */
/* Takes no shares of `in`; the shape is given. */
LazyTensor *lazy_make(Eval *ev, LazyOp op, LazyTensor *const *in, u32 nin, const double *attr,
                      u32 nattr, const i64 *dim, u32 rank);
LazyTensor *lazy_detach(Eval *ev, LazyTensor *t); /* its data as a leaf by itself, not tracked */
AutogradMeta *lazy_autograd(Eval *ev, LazyTensor *t);
void lazy_drop_inputs(Eval *ev, LazyTensor *t);
void lazy_release(Eval *ev, LazyTensor *t);
void lazy_free_data(Eval *ev,
                    LazyTensor *t); /* its memory alone: nothing else may be touched any more */
void autograd_release(Eval *ev, AutogradMeta *id);
bool lazy_equal(Eval *ev, LazyTensor *x, LazyTensor *y);
void lazy_show(Eval *ev, LazyTensor *t, StrBuf *out);
void lazy_show_plain(Eval *ev, LazyTensor *t, StrBuf *out); /* as tensor_print does */
LangValue value_tensor(LazyTensor *t);                      /* takes it */
LazyTensor *lazy_map(Eval *ev, LazyOp op, LazyTensor *x, const double *attr,
                     u32 nattr);                  /* of its shape */
LangValue lazy_to_array(Eval *ev, LazyTensor *t); /* its numbers */
LazyTensor *lazy_retain(LazyTensor *t);
void lazy_drop(Eval *ev, LazyTensor *t);
const char *dims_text(Eval *ev, const i64 *dim, u32 rank);     /* [2, 3]; in c->keep */
u64 dims_count(Eval *ev, const i64 *dim, u32 rank);            /* fails where that is too many */
LazyTensor *lazy_from_array(Eval *ev, const LangValue *array); /* arrays in arrays */

LazyTensor *lazy_placeholder(Eval *ev, const i64 *dim,
                             u32 rank); /* a leaf that will never have data */

/* A function that can become a graph. */
typedef struct TracedFn {
  DType dt;
  LazyTensor **param, **out;
  const char **name; /* of parameters */
  u32 n, nout;
} TracedFn;

/* force.c */
void traced_build_graph(Eval *ev, Ingot *m, const TracedFn *t); /* in that session */
void lazy_show_graph(Eval *ev, LazyTensor *t, StrBuf *out);     /* of what is not computed yet */
void traced_show_graph(Eval *ev, const TracedFn *t, StrBuf *out);
const double *lazy_data(Eval *ev, LazyTensor *t);
/* It follows from what a function will be given that becomes a graph: nothing can look at it. */
bool lazy_is_symbolic(Eval *ev, LazyTensor *t);
void lazy_force(Eval *ev, LazyTensor *const *t, u32 n); /* in one program */
void prog_cache_free(Eval *ev);

/* pending_graph.c */
u32 lazy_mark(Eval *ev); /* one that no tensor has */

/* lazy_ops.c: the graph of one recipe */
Val lazy_op_build(Graph *g, const LazyTensor *t, const Val *in);
extern const char *const lazy_op_name[LAZY_OP_COUNT];

/* grads.c */
void grads_pending(Eval *ev,
                   LazyTensors *to); /* of the last loss, that nobody has computed; in ev->stack */
void grads_release_graph(Eval *ev);  /* behind a step: what the loss was made of is let go */

/* lang_object.c */
const char *object_kind_name(const LangObject *t);
void object_show(Eval *ev, const LangObject *t, StrBuf *out);
void object_release(Eval *ev, LangObject *t);

/* operators.c: what + and the like do with tensors and numbers */
LangValue tensor_binary(Eval *ev, const Ast *at, Tok op, const LangValue *x, const LangValue *y);
/* A tensor and an array; equal, or not. */
LangValue equal_elements(Eval *ev, const LangValue *x, const LangValue *y, bool equal);
LangValue tensor_negate(Eval *ev, LazyTensor *t);
LazyTensor *tensor_broadcast_op(Eval *ev, LazyOp op, LazyTensor *x, LazyTensor *y,
                                const char *what); /* shapes broadcast */
LangValue tensor_index(Eval *ev, const Ast *at, LazyTensor *t, const LangValue *index);
LazyTensor *arg_tensor(Eval *ev, const LangValue *d);
LazyTensor *tensor_of(Eval *ev,
                      const LangValue *d); /* a share of the tensor, or the number as one */
LazyTensor *tensor_element(Eval *ev, LazyTensor *t, u64 at); /* shape [1] */

/* eval_call.c: fails where a gradient would be cut in silence */
void refuse_tracked(Eval *ev, const LazyTensor *t);

#endif
