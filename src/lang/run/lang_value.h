/* lang_value.h: values of a running program, and its evaluator. Private to src/lang.
 *
 * A LangValue holds small values directly and others in a reference-counted HeapObj. Arrays, tuples
 * and tensors have value semantics: a shared object is copied before it changes. A function that
 * returns a LangValue returns a reference. A function that gets a LangValue borrows it, unless its
 * comment says that it takes it. After a failure all remaining objects are freed together.
 */
#ifndef INGOT_LANG_OWN_H
#define INGOT_LANG_OWN_H

#include "api/api_internal.h"
#include "lang/syntax/lang.h"
#include "lang/run/symbol_sizes.h"

typedef struct LangValue LangValue;
typedef struct HeapObj HeapObj;
typedef struct StringObj StringObj;
typedef struct ListObj ListObj;
typedef struct ClosureObj ClosureObj;
typedef struct LangObject LangObject;     /* a layer, optimizer or model */
typedef struct LazyTensor LazyTensor;     /* see lazy.c */
typedef struct AutogradMeta AutogradMeta; /* gradient state that copies of a tensor share */
typedef struct Locals Locals;             /* variables of a call */
typedef struct Eval Eval;                 /* a running program */
typedef struct ProgCache ProgCache;       /* see force.c */
typedef struct NetSession NetSession;     /* see net.c */
typedef struct HotLoop HotLoop;           /* see scalar.c */
typedef struct HotLoops HotLoops;
typedef struct DryRun DryRun; /* see dry.h */

struct HeapObj {
  u32 refs;
  LangKind kind;        /* KD_none: an AutogradMeta */
  HeapObj *prev, *next; /* list of all objects */
  size_t bytes;
};

/* The unknown property of a value. */
typedef enum UnknownKind {
  UNK_none,
  UNK_value,  /* value of a number or string: depends on tensor data (dry.h) */
  UNK_length, /* length of an array, which is as long as it may become (dry.h) */
  UNK_shape,  /* KD_null: tensors of several shapes (dry.h) */
  UNK_kind,   /* KD_null: values of several kinds (dry.h) */
  UNK_size    /* KD_int: the value is a Dim, a symbolic size (sizes.c) */
} UnknownKind;

struct LangValue {
  LangKind kind; /* KD_none: an unset variable */
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
  char at[]; /* NUL-terminated */
};

struct ListObj { /* KD_array, KD_tuple, KD_struct */
  HeapObj box;
  const StructInfo *of; /* KD_struct */
  u64 n, room;          /* room: capacity in elements */
  LangValue at[];
};

struct ClosureObj {
  HeapObj box;
  LangFn *fn;
  ClosureObj *grad_of; /* this is the gradient of that function; NULL: a plain function */
  u32 n;
  LangValue with[]; /* captured values */
};

typedef enum Flow { FLOW_next, FLOW_break, FLOW_continue, FLOW_return } Flow;

struct Locals {
  Locals *outer;
  ClosureObj *self; /* NULL: top level */
  const Ast *call;  /* call expression */
  SymbolSizes size; /* symbols in parameter shapes */
  u32 n;
  LangValue at[];
};

/* Maximum number of elements of arrays, tensors and strings. */
#define MOST_ELEMENTS ((u64)1 << 28)
enum { EVAL_DEPTH = 6000 }; /* nesting of AST nodes, including calls */
enum { MODULES = 64 };      /* max files of a program */

struct Eval {
  Ctx *c;
  Script *s;
  const IngotScript *o;
  HeapObj *all;
  Locals *local;
  Locals *file[MODULES]; /* variables of the program (0) and its modules; NULL: not run yet */
  Arena stack;           /* of Locals */
  Flow flow;
  LangValue result; /* of the current return */
  u32 depth;
  bool tracing;     /* a function becomes a graph: see trace.c */
  u32 in_grad;      /* nesting of calls being differentiated */
  const Ast *at;    /* current call of a built-in */
  ProgCache *made;  /* compiled tensor programs */
  NetSession *nets; /* imported networks */
  HotLoops *hot;    /* counted loops */
  DryRun *dry;      /* in a dry run, else NULL */
  Dims *dims;       /* while sizes are symbolic (sizes.c), else NULL */
  u64 serial;       /* of the next tensor */
  u32 mark;         /* last mark of pending_collect */
  u32 scans;        /* call-graph searches, see scalar_analysis.c */
  u64 random;       /* seed of the run; random functions without a seed combine it with serial */
  LazyTensor *last_loss; /* last argument of tensor_backward */
};

typedef void BuiltinFn(Eval *ev, LangValue *arg, u32 n, LangValue *out);

/* lang_value.c */
void *heap_new(Eval *ev, LangKind kind, size_t bytes); /* zeroed; fails if out of memory */
static inline bool value_is_boxed(const LangValue *d) {
  return d->kind >= KD_string && d->kind <= KD_object;
}
LangValue value_retain(const LangValue *d);
void value_drop(Eval *ev, LangValue *d); /* clears d */
void heap_drop(Eval *ev, HeapObj *b);
void heap_free_all(Eval *ev);
LangValue value_int(i64 i);
LangValue value_float(double f);
LangValue value_bool(bool b);
LangValue value_string(Eval *ev, const char *at, size_t n);
LangValue value_list(Eval *ev, LangKind kind, u64 n); /* filled with null */
/* Copies the list of d if it is shared. */
ListObj *list_make_unique(Eval *ev, LangValue *d);
void list_push(Eval *ev, LangValue *d, LangValue x); /* takes x; copies a shared list */
bool value_equal(Eval *ev, const LangValue *x, const LangValue *y);
bool value_is_true(const LangValue *d);
const char *value_kind_name(const LangValue *d); /* as type() returns */

/* show.c */
void value_show(Eval *ev, const LangValue *d, StrBuf *out);

/* digits.c */
void show_float(StrBuf *out, double x, bool exponent); /* exponent: the format of tensors */
void show_number(StrBuf *out, double x); /* in text forms of objects: no ".0" for integers */

/* lang_eval.c */
LangValue eval_node(Eval *ev, Ast *n);
LangValue eval_block(Eval *ev, const Ast *n);
void eval_check_stop(Eval *ev, const Ast *at); /* fails if the caller requested a stop */
_Noreturn void eval_fail(Eval *ev, const Ast *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
LangValue *eval_variable(Eval *ev, const Ast *name); /* NULL if unset */
void eval_hoist(Eval *ev, const Ast *block);
/* Fails if the program runs without file access (IngotScript.no_files). */
void eval_check_file(Eval *ev, const char *path);
/* The message with the position of a node. */
const char *eval_message(Eval *ev, const Ast *at, const char *what);

/* eval_fields.c */
LangValue eval_record(Eval *ev, const Ast *n);
LangValue eval_member(Eval *ev, const Ast *n);
/* NULL if d has no such field or is not a struct */
LangValue *value_field(const LangValue *d, const Ast *n);
bool is_lvalue(const Ast *n); /* a variable, or an element or field in one */
/* Address of an lvalue. Copies shared lists on the path. */
LangValue *eval_lvalue(Eval *ev, const Ast *n);

/* force.c: makes the graph or program built in m its model. name: for messages */
void model_adopt(Ingot *m, const char *name);

/* scalar.c: compiles hot loops */
typedef struct HotIter { /* a running loop */
  HotLoop *loop;         /* NULL: interpreted */
  i64 at, end;           /* of a `for`: next and end value */
  u64 walked;            /* interpreted iterations so far */
  u64 begin;             /* iterations of all loops before this one */
  const ListObj *over;   /* array of a `for`; NULL: a range */
} HotIter;
HotIter hot_begin(Eval *ev, Ast *n);
/* Before an iteration: runs as many as it can. False: interpret the next iteration, at t->at. True:
 * the loop ended; flow says whether by a return. value: of the last iteration. */
bool hot_run(Eval *ev, HotIter *t, Ast *n, LangValue *value);
/* Calls a recursive function whose variables are set. False: interpret it. */
bool hot_call(Eval *ev, LangFn *fn, LangValue *value);
void hot_free(Eval *ev);

/* scalar_analysis.c */
void loops_mark_unused(Script *s); /* loops with unused values */

/* lang_script.c: the whole program as C. steps: budget of the dry run */
void script_native(Ingot *m, Script *s, u64 steps, bool no_files, StrBuf *out);

/* native_program.c: the program as C. main: function to call after the statements, or NULL. graphs:
 * C of the tensor graphs, or NULL. False if graphs is NULL and the program has tensors. */
bool native_program(Script *s, const Ast *main, const StrBuf *graphs, StrBuf *out);
/* native_graphs.c: the C of all graphs, and their table */
void native_graphs(DryRun *d, StrBuf *out);

/* modules.c */
void script_load(Script *s); /* parses and checks the program with its modules */
LangValue eval_module(Eval *ev, const Script *s); /* runs it, unless it has run */
Locals *locals_of_file(Eval *ev, u32 nslot);
/* Resolves a path relative to the folder of file. */
const char *path_relative_to(Ctx *c, Str file, const char *path);

/* eval_ops.c */
LangValue eval_binary(Eval *ev, const Ast *n, const LangValue *x, const LangValue *y);
LangValue eval_unary(Eval *ev, const Ast *n);
LangValue eval_cast(Eval *ev, const Ast *n);
LangValue eval_index(Eval *ev, const Ast *n);
LangValue eval_range(Eval *ev, const Ast *n);
bool eval_bounds(Eval *ev, const Ast *range, i64 *from, i64 *end); /* false: a bound is unknown */
/* Converts d to the type, or fails at n. */
void eval_convert(Eval *ev, const Ast *n, LangValue *d, const LangType *to);

/* eval_call.c */
LangValue eval_call(Eval *ev, Ast *n);
LangValue eval_closure(Eval *ev, Ast *fn);
LangValue fn_gradient(Eval *ev, ClosureObj *f); /* as a function */
/* grads.c: the gradient of f with respect to its first argument. Takes the arguments. */
LangValue call_grad(Eval *ev, const Ast *at, ClosureObj *f, LangValue *arg, u32 n);
/* Takes the arguments. */
LangValue call_fn(Eval *ev, const Ast *at, ClosureObj *f, LangValue *arg, u32 n);

/* dry.c */
bool value_is_unknown(const Eval *ev, const LangValue *d);
LangValue value_unknown(Eval *ev, LangKind kind); /* a number or an empty string */
_Noreturn void dry_refuse(Eval *ev, const Ast *at, const char *what);
void dry_clear_data(Eval *ev, LazyTensor *t); /* in a dry run: marks the data as unknown */
/* In a dry run, if the file does not exist: a tensor with the annotated shape; fails without an
 * annotation. False: read the file. */
bool dry_load_file(Eval *ev, const char *path, LangValue *out);

/* sizes.c: extents, possibly symbolic */
#define SIZE_ANY INT64_MIN /* the -1 of reshape; symbolic sizes are negative */
bool size_is_symbolic(const Eval *ev, i64 d);
i64 size_sum(Eval *ev, i64 x, i64 y);
/* Number of windows that fit in a symbolic extent; size: kernel size minus padding. */
i64 size_window_count(Eval *ev, i64 extent, i64 size, i64 stride);
/* The value of extent `without`, so that the shape has as many elements as t. */
i64 size_infer(Eval *ev, const LazyTensor *t, const i64 *dim, u32 rank, u32 without);
void size_show(const Eval *ev, i64 d, StrBuf *out);
LangValue value_size(const Eval *ev, i64 d);
i64 arg_size(Eval *ev, const LangValue *d);
/* False if both are known. */
bool size_binary(Eval *ev, const Ast *n, const LangValue *x, const LangValue *y, LangValue *out);

/* dry_paths.c: joins other into d; differences become unknown */
void dry_join(Eval *ev, LangValue *d, const LangValue *other);

/* trace.c */
/* The function `name`, or the only one that can be a model. Fails if there is none. */
Ast *trace_find_function(Eval *ev, const char *name);
void script_trace(Eval *ev, Ingot *m, Ast *f); /* after the run */
/* The graph of a function as text. False if its shapes are unknown. */
bool trace_show(Eval *ev, ClosureObj *fn, StrBuf *out);

/* builtin_args.c */
#define ARG_BAD(ev, ...) eval_fail(ev, (ev)->at, __VA_ARGS__)
const char *builtin_name(const Eval *ev);
double arg_number(Eval *ev, const LangValue *d);
/* returns the rank; dim has MAX_RANK elements */
u32 arg_shape(Eval *ev, const LangValue *d, i64 *dim);
/* Math functions as engines compute them, independent of the C library. */
double number_of(Op op, double x, double y);
/* max or min; the first of equal numbers; a number if one operand is NaN. */
double number_minmax(bool largest, double x, double y);
i64 arg_int(Eval *ev, const LangValue *d);
ListObj *arg_array(Eval *ev, const LangValue *d);

#define BI(name, sig, args, shape, fn) BuiltinFn bi_##fn;
#include "lang/syntax/builtins.def"
#undef BI
extern BuiltinFn *const builtin_fn[];

#endif
