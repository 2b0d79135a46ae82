/* tensor.h: lazy tensors. Private to src/lang.
 *
 * A tensor is computed on demand. Until then it is an operation on other tensors. The pending
 * operations become a Graph of core operators in f64, with the known tensors as parameters, which
 * runs on the engine. Programs are cached by structure, so that a loop body is compiled once.
 */
#ifndef INGOT_LANG_TENSOR_H
#define INGOT_LANG_TENSOR_H

#include "lang/run/lang_value.h"

typedef enum LazyOp {
#define LAZY_OP(name) LOP_##name,
#include "lang/run/lazy_ops.def"
#undef LAZY_OP
  LAZY_OP_COUNT
} LazyOp;

enum {
  /* LAZY_SIZE: max chain of pending operations */
  LAZY_ATTRS = 8,
  LAZY_SIZE = 1500
};

#define UNKNOWN_COUNT UINT64_MAX /* number of elements with a symbolic extent */

typedef VEC(LazyTensor *) LazyTensors;

/* Gradient state that copies of a tensor share. */
struct AutogradMeta {
  HeapObj box;
  LazyTensor *grad; /* NULL: none */
  u64 line;         /* key of optimizer state; updated parameters keep it */
};

struct LazyTensor {
  HeapObj box;
  LazyOp op;    /* LOP_leaf: data only */
  bool raw;     /* shown as a raw tensor, can be indexed */
  bool tracked; /* gradients flow through it */
  u8 nattr;
  u32 rank, nin, size; /* size: approximate number of pending operations below it */
  i64 dim[MAX_RANK];
  u64 n;        /* elements */
  double *data; /* NULL: pending */
  LazyTensor **in;
  double attr[LAZY_ATTRS];
  AutogradMeta *id; /* NULL: gradient never requested */
  u64 serial;       /* greater than those of `in` */
  u32 mark, place;  /* while a graph is built: its mark, and the value in it */
};

/* lazy.c */
LazyTensor *lazy_new(Eval *ev, const i64 *dim, u32 rank); /* a leaf of zeros */
LazyTensor *lazy_scalar(Eval *ev, double x);              /* rank 0 */
double *lazy_alloc(Eval *ev, u64 n);                      /* zeroed */
/* Adds references to `in`. */
LazyTensor *lazy_make(Eval *ev, LazyOp op, LazyTensor *const *in, u32 nin, const double *attr,
                      u32 nattr, const i64 *dim, u32 rank);
LazyTensor *lazy_detach(Eval *ev, LazyTensor *t); /* a leaf with the same data, not tracked */
AutogradMeta *lazy_autograd(Eval *ev, LazyTensor *t);
void lazy_drop_inputs(Eval *ev, LazyTensor *t);
void lazy_release(Eval *ev, LazyTensor *t);
/* Frees the memory only, without touching other objects. */
void lazy_free_data(Eval *ev, LazyTensor *t);
void autograd_release(Eval *ev, AutogradMeta *id);
bool lazy_equal(Eval *ev, LazyTensor *x, LazyTensor *y);
void lazy_show(Eval *ev, LazyTensor *t, StrBuf *out);
void lazy_show_plain(Eval *ev, LazyTensor *t, StrBuf *out); /* as tensor_print does */
LangValue value_tensor(LazyTensor *t);                      /* takes t */
/* An elementwise operation. */
LazyTensor *lazy_map(Eval *ev, LazyOp op, LazyTensor *x, const double *attr, u32 nattr);
LangValue lazy_to_array(Eval *ev, LazyTensor *t); /* nested arrays */
LazyTensor *lazy_retain(LazyTensor *t);
void lazy_drop(Eval *ev, LazyTensor *t);
const char *dims_text(Eval *ev, const i64 *dim, u32 rank);     /* [2, 3]; in c->keep */
u64 dims_count(Eval *ev, const i64 *dim, u32 rank);            /* fails if too large */
LazyTensor *lazy_from_array(Eval *ev, const LangValue *array); /* nested arrays */

/* A leaf that never has data. */
LazyTensor *lazy_placeholder(Eval *ev, const i64 *dim, u32 rank);

/* A function that becomes a graph. */
typedef struct TracedFn {
  DType dt;
  LazyTensor **param, **out;
  const char **name; /* names of parameters */
  u32 n, nout;
} TracedFn;

/* force.c */
void traced_build_graph(Eval *ev, Ingot *m, const TracedFn *t); /* in session m */
void lazy_show_graph(Eval *ev, LazyTensor *t, StrBuf *out);     /* pending operations only */
void traced_show_graph(Eval *ev, const TracedFn *t, StrBuf *out);
const double *lazy_data(Eval *ev, LazyTensor *t);
/* True if it depends on the arguments of a traced function, so that it has no data. */
bool lazy_is_symbolic(Eval *ev, LazyTensor *t);
void lazy_force(Eval *ev, LazyTensor *const *t, u32 n); /* in one program */
void prog_cache_free(Eval *ev);

/* pending_graph.c */
u32 lazy_mark(Eval *ev); /* a new mark */

/* lazy_ops.c: the graph of one operation */
Val lazy_op_build(Graph *g, const LazyTensor *t, const Val *in);
extern const char *const lazy_op_name[LAZY_OP_COUNT];

/* grads.c */
/* Pending gradients of the last loss. In ev->stack. */
void grads_pending(Eval *ev, LazyTensors *to);
void grads_release_graph(Eval *ev); /* after a step: drops the operations of the loss */

/* lang_object.c */
const char *object_kind_name(const LangObject *t);
void object_show(Eval *ev, const LangObject *t, StrBuf *out);
void object_release(Eval *ev, LangObject *t);

/* operators.c: arithmetic of tensors and numbers */
LangValue tensor_binary(Eval *ev, const Ast *at, Tok op, const LangValue *x, const LangValue *y);
/* Compares a tensor with an array, element by element. */
LangValue equal_elements(Eval *ev, const LangValue *x, const LangValue *y, bool equal);
LangValue tensor_negate(Eval *ev, LazyTensor *t);
/* Shapes are broadcast. */
LazyTensor *tensor_broadcast_op(Eval *ev, LazyOp op, LazyTensor *x, LazyTensor *y,
                                const char *what);
LangValue tensor_index(Eval *ev, const Ast *at, LazyTensor *t, const LangValue *index);
LazyTensor *arg_tensor(Eval *ev, const LangValue *d);
/* A reference to the tensor, or the number as a tensor. */
LazyTensor *tensor_of(Eval *ev, const LangValue *d);
LazyTensor *tensor_element(Eval *ev, LazyTensor *t, u64 at); /* shape [1] */

/* eval_call.c: fails if a gradient would be lost silently */
void refuse_tracked(Eval *ev, const LazyTensor *t);

#endif
