/* lang_value.h: private to src/lang: values of a running program, and what walks its tree.
 *
 * A Worth is a value: small ones lie in it, others in a Holder that counts who holds it. Arrays,
 * tuples and tensors are values too: a box that several hold is copied before it changes. A
 * function that gives a Worth gives a share of its box; one that takes a Worth leaves the caller's
 * share alone, unless it says that it takes it. After a failure the boxes that are left are freed
 * together.
 */
#ifndef INGOT_LANG_OWN_H
#define INGOT_LANG_OWN_H

#include "api/api_internal.h"
#include "front/lang/lang.h"
#include "lang/symbol_sizes.h"

typedef struct LangValue LangValue;
typedef struct HeapObj HeapObj;
typedef struct StringObj StringObj;
typedef struct ListObj ListObj;
typedef struct ClosureObj ClosureObj;
typedef struct LangObject LangObject;     /* a layer, an optimiser, a model */
typedef struct LazyTensor LazyTensor;     /* a tensor: see lazy.c */
typedef struct AutogradMeta AutogradMeta; /* what copies of a tensor share */
typedef struct Locals Locals;             /* variables of a call */
typedef struct Eval Eval;                 /* a program that runs */
typedef struct ProgCache ProgCache;       /* see force.c */
typedef struct NetSession NetSession;     /* see net.c */
typedef struct HotLoop HotLoop;           /* see scalar.c */
typedef struct HotLoops HotLoops;
typedef struct DryRun DryRun; /* see dry.h */

struct HeapObj {
  u32 refs;
  LangKind kind;        /* KD_none: an Ident */
  HeapObj *prev, *next; /* all there are */
  size_t bytes;
};

/* What is not known of a value before the run. */
typedef enum UnknownKind {
  UNK_none,
  UNK_value,  /* the number or text: it follows from the data of tensors (dry.h) */
  UNK_length, /* of an array, which is as long as it may become (dry.h) */
  UNK_shape,  /* KD_null: tensors of several shapes (dry.h) */
  UNK_kind,   /* KD_null: values of several kinds (dry.h) */
  UNK_size    /* KD_int: the value is a Dim, a size that a function is compiled for (sizes.c) */
} UnknownKind;

struct LangValue {
  LangKind kind; /* KD_none: a variable that holds nothing yet */
  UnknownKind open;
  union {
    i64 i; /* KD_int, KD_bool */
    double f;
    HeapObj *box;
    StringObj *text;
    ListObj *list;
    ClosureObj *fn;
    LangObject *thing;
    LazyTensor *lazy;
  } u;
};

struct StringObj {
  HeapObj box;
  size_t n;
  char at[]; /* a zero behind it */
};

struct ListObj { /* KD_array, KD_tuple, KD_struct */
  HeapObj box;
  const StructInfo *of; /* KD_struct */
  u64 n, room;          /* room: of elements, n at least */
  LangValue at[];
};

struct ClosureObj {
  HeapObj box;
  LangFn *fn;
  ClosureObj *grad_of; /* it is the gradient of that one; NULL: it is itself */
  u32 n;
  LangValue with[]; /* by capture */
};

typedef enum Flow { FLOW_next, FLOW_break, FLOW_continue, FLOW_return } Flow;

struct Locals {
  Locals *outer;
  ClosureObj *self; /* NULL: the file */
  const Ast *call;  /* that it was called by */
  SymbolSizes size; /* in this call */
  u32 n;
  LangValue at[];
};

/* No array, tensor or string has more elements. */
#define MOST_ELEMENTS ((u64)1 << 28)
enum { EVAL_DEPTH = 6000 }; /* nodes of the tree inside each other, calls included */
enum { MODULES = 64 };      /* files of a program */

struct Eval {
  Ctx *c;
  Script *s;
  const IngotScript *o;
  HeapObj *all;
  Locals *local;
  Locals *file[MODULES]; /* variables of the program, 0, and its modules; NULL: not run yet */
  Arena stack;           /* of Locals */
  Flow flow;
  LangValue result; /* of the return under way */
  u32 depth;
  bool tracing;          /* a function becomes a graph: see trace.c */
  u32 in_grad;           /* calls whose gradient is wanted */
  const Ast *at;         /* the call that a built-in works for */
  ProgCache *made;       /* programs of tensors */
  NetSession *nets;      /* of imported networks */
  HotLoops *hot;         /* loops that are counted */
  DryRun *dry;           /* no tensor is computed; NULL: all are */
  Dims *dims;            /* of extents that are no numbers, see sizes.c; NULL: all are */
  u64 serial;            /* of the next tensor */
  u32 mark;              /* of the last list of tensors */
  u32 scans;             /* searches for calls, see scalar_analysis.c */
  u64 random;            /* seed of the run: of random numbers that get none, with serial */
  LazyTensor *last_loss; /* that tensor_backward was called with */
};

typedef void BuiltinFn(Eval *ev, LangValue *arg, u32 n, LangValue *out);

/* lang_value.c */
void *heap_new(Eval *ev, LangKind kind, size_t bytes); /* zero; fails if there is no memory */
static inline bool value_is_boxed(const LangValue *d) {
  return d->kind >= KD_string && d->kind <= KD_object;
}
LangValue value_retain(const LangValue *d);
void value_drop(Eval *ev, LangValue *d); /* and it holds nothing */
void heap_drop(Eval *ev, HeapObj *b);
void heap_free_all(Eval *ev);
LangValue value_int(i64 i);
LangValue value_float(double f);
LangValue value_bool(bool b);
LangValue value_string(Eval *ev, const char *at, size_t n);
LangValue value_list(Eval *ev, LangKind kind, u64 n); /* of nulls */
/* The list by itself: copied if others hold it. d is changed. */
ListObj *list_make_unique(Eval *ev, LangValue *d);
void list_push(Eval *ev, LangValue *d, LangValue x); /* takes x; d is changed, alone */
bool value_equal(Eval *ev, const LangValue *x, const LangValue *y);
bool value_is_true(const LangValue *d);
const char *value_kind_name(const LangValue *d); /* as type() tells */

/* show.c */
void value_show(Eval *ev, const LangValue *d, StrBuf *out);

/* digits.c */
void show_float(StrBuf *out, double x, bool exponent); /* exponent: as tensors have it */
void show_number(StrBuf *out, double x);               /* a field: no point where it is whole */

/* lang_eval.c */
LangValue eval_node(Eval *ev, Ast *n);
LangValue eval_block(Eval *ev, const Ast *n);
void eval_check_stop(Eval *ev, const Ast *at); /* fails if the caller wants an end */
_Noreturn void eval_fail(Eval *ev, const Ast *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
LangValue *eval_variable(Eval *ev, const Ast *name); /* NULL: nothing is there yet */
void eval_hoist(Eval *ev, const Ast *block);
/* Refuse the file access of a built-in if the program runs without (IngotScript.no_files). */
void eval_check_file(Eval *ev, const char *path);
/* Where the program is at a node. */
const char *eval_message(Eval *ev, const Ast *at, const char *what);

/* eval_fields.c */
LangValue eval_record(Eval *ev, const Ast *n);
LangValue eval_member(Eval *ev, const Ast *n);
LangValue *value_field(const LangValue *d, const Ast *n); /* NULL: it has none, or is no struct */
bool is_lvalue(const Ast *n); /* a variable, or an element or field inside of one */
LangValue *eval_lvalue(Eval *ev,
                       const Ast *n); /* alone: lists on the way are copied if they are shared */

/* force.c: what was built here is the model that m runs; name: of its messages */
void model_adopt(Ingot *m, const char *name);

/* scalar.c: loops that run often */
typedef struct HotIter { /* a loop that is under way */
  HotLoop *loop;         /* NULL: it is walked */
  i64 at, end;           /* of a for: the next turn, and where it ends */
  u64 walked;            /* turns, so far */
  u64 begin;             /* turns of all loops before it */
  const ListObj *over;   /* that a for walks; NULL: a range */
} HotIter;
HotIter hot_begin(Eval *ev, Ast *n);
/* Before a turn: runs as many as it can. False: that turn is to be walked, from t->at on; true: the
 * loop has ended, and flow says whether by a return. value: of the last turn. */
bool hot_run(Eval *ev, HotIter *t, Ast *n, LangValue *value);
/* A call whose variables are there, of a function that calls itself; false: it is to be walked. */
bool hot_call(Eval *ev, LangFn *fn, LangValue *value);
void hot_free(Eval *ev);

/* scalar_analysis.c */
void loops_mark_unused(Script *s); /* whose value nobody looks at */

/* lang_script.c: the whole program as C; steps: turns and calls of it that may be walked */
void script_native(Ingot *m, Script *s, u64 steps, bool no_files, StrBuf *out);

/* native_program.c: the program as C; main: to be called behind its statements, or NULL; graphs:
 * what its tensors need, NULL: it has none. False: it has some, and nothing was written. */
bool native_program(Script *s, const Ast *main, const StrBuf *graphs, StrBuf *out);
/* native_graphs.c: the C of graphs, and a table of them */
void native_graphs(DryRun *d, StrBuf *out);

/* modules.c */
void script_load(Script *s); /* parses and checks the program with its modules */
LangValue eval_module(Eval *ev, const Script *s); /* runs it, if it has not run yet */
Locals *locals_of_file(Eval *ev, u32 nslot);
const char *path_relative_to(Ctx *c, Str file,
                             const char *path); /* as seen from the folder of file */

/* eval_ops.c */
LangValue eval_binary(Eval *ev, const Ast *n, const LangValue *x, const LangValue *y);
LangValue eval_unary(Eval *ev, const Ast *n);
LangValue eval_cast(Eval *ev, const Ast *n);
LangValue eval_index(Eval *ev, const Ast *n);
LangValue eval_range(Eval *ev, const Ast *n);
bool eval_bounds(Eval *ev, const Ast *range, i64 *from, i64 *end); /* false: one is open */
/* d becomes what the type wants, or fails at n. */
void eval_convert(Eval *ev, const Ast *n, LangValue *d, const LangType *to);

/* eval_call.c */
LangValue eval_call(Eval *ev, Ast *n);
LangValue eval_closure(Eval *ev, Ast *fn);
LangValue fn_gradient(Eval *ev, ClosureObj *f); /* as a function */
/* The gradient of f with respect to its first argument, grads.c; takes the arguments. */
LangValue call_grad(Eval *ev, const Ast *at, ClosureObj *f, LangValue *arg, u32 n);
LangValue call_fn(Eval *ev, const Ast *at, ClosureObj *f, LangValue *arg,
                  u32 n); /* takes the arguments */

/* dry.c */
bool value_is_unknown(const Eval *ev, const LangValue *d); /* a value that is not known yet */
LangValue value_unknown(Eval *ev, LangKind kind); /* such a value: a number or an empty text */
_Noreturn void dry_refuse(Eval *ev, const Ast *at, const char *what);
void dry_clear_data(Eval *ev, LazyTensor *t); /* in a dry run: its data are not known */
/* In a dry run, of a file that is not there: a tensor of the shape that is written down where the
 * file is read; fails if there is none. False: the file is to be read. */
bool dry_load_file(Eval *ev, const char *path, LangValue *out);

/* sizes.c: extents; where some are open */
#define SIZE_ANY INT64_MIN /* what -1 in a shape is where symbols are numbers below 0 */
bool size_is_symbolic(const Eval *ev, i64 d);
i64 size_sum(Eval *ev, i64 x, i64 y);
/* How many windows of that size, less what is padded, fit into an open extent. */
i64 size_window_count(Eval *ev, i64 extent, i64 size, i64 stride);
/* What the extent number `without` has to be, so that t has that shape. */
i64 size_infer(Eval *ev, const LazyTensor *t, const i64 *dim, u32 rank, u32 without);
void size_show(const Eval *ev, i64 d, StrBuf *out);
LangValue value_size(const Eval *ev, i64 d);
i64 arg_size(Eval *ev, const LangValue *d);
/* False: none of the two is open. */
bool size_binary(Eval *ev, const Ast *n, const LangValue *x, const LangValue *y, LangValue *out);

/* dry_paths.c: d is what both have in common; the rest of it is open */
void dry_join(Eval *ev, LangValue *d, const LangValue *other);

/* trace.c */
/* The function of that name, or the only one that can be a model; fails if there is none. */
Ast *trace_find_function(Eval *ev, const char *name);
void script_trace(Eval *ev, Ingot *m, Ast *f); /* behind the run */
/* The graph of a function, as text; false: its shapes are not known. */
bool trace_show(Eval *ev, ClosureObj *fn, StrBuf *out);

/* arguments of built-ins; n counts from 0 */
#define ARG_BAD(ev, ...) eval_fail(ev, (ev)->at, __VA_ARGS__)
const char *builtin_name(const Eval *ev);
double arg_number(Eval *ev, const LangValue *d);
u32 arg_shape(Eval *ev, const LangValue *d, i64 *dim); /* the rank; dim has room for MAX_RANK */
/* Functions of numbers as engines compute them, whatever C library there is. */
double number_of(Op op, double x, double y);
/* The larger, or smaller, of two; of equal ones the first, and no NaN if one is a number. */
double number_minmax(bool largest, double x, double y);
i64 arg_int(Eval *ev, const LangValue *d);
ListObj *arg_array(Eval *ev, const LangValue *d);

#define BI(name, sig, args, shape, fn) BuiltinFn bi_##fn;
#include "front/lang/builtins.def"
#undef BI
extern BuiltinFn *const builtin_fn[];

#endif
