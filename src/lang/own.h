/* own.h: private to src/lang: values of a running program, and what walks its tree.
 *
 * A Worth is a value: small ones lie in it, others in a Holder that counts who holds it. Arrays,
 * tuples and tensors are values too: a box that several hold is copied before it changes. A
 * function that gives a Worth gives a share of its box; one that takes a Worth leaves the caller's
 * share alone, unless it says that it takes it. After a failure the boxes that are left are freed
 * together.
 */
#ifndef INGOT_LANG_OWN_H
#define INGOT_LANG_OWN_H

#include "api/own.h"
#include "front/lang/lang.h"
#include "lang/extents.h"

typedef struct Worth Worth;
typedef struct Holder Holder;
typedef struct BoxText BoxText;
typedef struct BoxList BoxList;
typedef struct BoxFn BoxFn;
typedef struct Thing Thing;           /* a layer, an optimiser, a model */
typedef struct Lazy Lazy;             /* a tensor: see lazy.c */
typedef struct Ident Ident;           /* what copies of a tensor share */
typedef struct Locals Locals;         /* variables of a call */
typedef struct Eval Eval;             /* a program that runs */
typedef struct Recipes Recipes;       /* see force.c */
typedef struct NetSession NetSession; /* see net.c */
typedef struct HotLoop HotLoop;       /* see scalar.c */
typedef struct HotLoops HotLoops;
typedef struct DryRun DryRun; /* see dry.h */

struct Holder {
  u32 refs;
  LangKind kind;       /* KD_none: an Ident */
  Holder *prev, *next; /* all there are */
  size_t bytes;
};

/* What is not known of a value before the run. */
typedef enum WorthOpen {
  OPEN_not,
  OPEN_value,  /* the number or text: it follows from the data of tensors (dry.h) */
  OPEN_length, /* of an array, which is as long as it may become (dry.h) */
  OPEN_shape,  /* KD_null: tensors of several shapes (dry.h) */
  OPEN_kind,   /* KD_null: values of several kinds (dry.h) */
  OPEN_size    /* KD_int: the value is a Dim, a size that a function is compiled for (sizes.c) */
} WorthOpen;

struct Worth {
  LangKind kind; /* KD_none: a variable that holds nothing yet */
  WorthOpen open;
  union {
    i64 i; /* KD_int, KD_bool */
    double f;
    Holder *box;
    BoxText *text;
    BoxList *list;
    BoxFn *fn;
    Thing *thing;
    Lazy *lazy;
  } u;
};

struct BoxText {
  Holder box;
  size_t n;
  char at[]; /* a zero behind it */
};

struct BoxList { /* KD_array, KD_tuple, KD_struct */
  Holder box;
  const StructInfo *of; /* KD_struct */
  u64 n, room;          /* room: of elements, n at least */
  Worth at[];
};

struct BoxFn {
  Holder box;
  LangFn *fn;
  BoxFn *grad_of; /* it is the gradient of that one; NULL: it is itself */
  u32 n;
  Worth with[]; /* by capture */
};

typedef enum Flow { FLOW_next, FLOW_break, FLOW_continue, FLOW_return } Flow;

struct Locals {
  Locals *outer;
  BoxFn *self;      /* NULL: the file */
  const Ast *call;  /* that it was called by */
  SymbolSizes size; /* in this call */
  u32 n;
  Worth at[];
};

/* No array, tensor or string has more elements. */
#define MOST_ELEMENTS ((u64)1 << 28)
enum { EVAL_DEPTH = 6000 }; /* nodes of the tree inside each other, calls included */
enum { MODULES = 64 };      /* files of a program */

struct Eval {
  Ctx *c;
  Script *s;
  const IngotScript *o;
  Holder *all;
  Locals *local;
  Locals *file[MODULES]; /* variables of the program, 0, and its modules; NULL: not run yet */
  Arena stack;           /* of Locals */
  Flow flow;
  Worth result; /* of the return under way */
  u32 depth;
  bool tracing;     /* a function becomes a graph: see trace.c */
  u32 in_grad;      /* calls whose gradient is wanted */
  const Ast *at;    /* the call that a built-in works for */
  Recipes *made;    /* programs of tensors */
  NetSession *nets; /* of imported networks */
  HotLoops *hot;    /* loops that are counted */
  DryRun *dry;      /* no tensor is computed; NULL: all are */
  Dims *dims;       /* of extents that are no numbers, see sizes.c; NULL: all are */
  u64 serial;       /* of the next tensor */
  u32 mark;         /* of the last list of tensors */
  u32 scans;        /* searches for calls, see scalar_scan.c */
  u64 random;       /* seed of the run: of random numbers that get none, with serial */
  Lazy *last_loss;  /* that tensor_backward was called with */
};

typedef void BuiltinFn(Eval *ev, Worth *arg, u32 n, Worth *out);

/* box.c */
void *share_new(Eval *ev, LangKind kind, size_t bytes); /* zero; fails if there is no memory */
static inline bool worth_is_boxed(const Worth *d) {
  return d->kind >= KD_string && d->kind <= KD_object;
}
Worth worth_share(const Worth *d);
void worth_drop(Eval *ev, Worth *d); /* and it holds nothing */
void share_drop(Eval *ev, Holder *b);
void share_drop_all(Eval *ev);
Worth worth_int(i64 i);
Worth worth_float(double f);
Worth worth_bool(bool b);
Worth worth_text(Eval *ev, const char *at, size_t n);
Worth worth_list(Eval *ev, LangKind kind, u64 n); /* of nulls */
/* The list by itself: copied if others hold it. d is changed. */
BoxList *list_own(Eval *ev, Worth *d);
void list_push(Eval *ev, Worth *d, Worth x); /* takes x; d is changed, alone */
bool worth_equal(Eval *ev, const Worth *x, const Worth *y);
bool worth_true(const Worth *d);
const char *worth_kind(const Worth *d); /* as type() tells */

/* show.c */
void show_worth(Eval *ev, const Worth *d, Text *out);

/* digits.c */
void show_float(Text *out, double x, bool exponent); /* exponent: as tensors have it */
void show_number(Text *out, double x);               /* a field: no point where it is whole */

/* eval.c */
Worth eval_node(Eval *ev, Ast *n);
Worth eval_block(Eval *ev, const Ast *n);
void eval_stop(Eval *ev, const Ast *at); /* fails if the caller wants an end */
_Noreturn void eval_fail(Eval *ev, const Ast *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
Worth *eval_variable(Eval *ev, const Ast *name); /* NULL: nothing is there yet */
void eval_hoist(Eval *ev, const Ast *block);
/* Refuse the file access of a built-in if the program runs without (IngotScript.no_files). */
void eval_file(Eval *ev, const char *path);
/* Where the program is at a node. */
const char *eval_says(Eval *ev, const Ast *at, const char *what);

/* fields.c */
Worth eval_record(Eval *ev, const Ast *n);
Worth eval_member(Eval *ev, const Ast *n);
Worth *worth_field(const Worth *d, const Ast *n); /* NULL: it has none, or is no struct */
bool is_place(const Ast *n); /* a variable, or an element or field inside of one */
Worth *eval_place(Eval *ev,
                  const Ast *n); /* alone: lists on the way are copied if they are shared */

/* force.c: what was built here is the model that m runs; name: of its messages */
void model_adopt(Ingot *m, const char *name);

/* scalar.c: loops that run often */
typedef struct HotTurns { /* a loop that is under way */
  HotLoop *loop;          /* NULL: it is walked */
  i64 at, end;            /* of a for: the next turn, and where it ends */
  u64 walked;             /* turns, so far */
  u64 begin;              /* turns of all loops before it */
  const BoxList *over;    /* that a for walks; NULL: a range */
} HotTurns;
HotTurns hot_begin(Eval *ev, Ast *n);
/* Before a turn: runs as many as it can. False: that turn is to be walked, from t->at on; true: the
 * loop has ended, and flow says whether by a return. value: of the last turn. */
bool hot_run(Eval *ev, HotTurns *t, Ast *n, Worth *value);
/* A call whose variables are there, of a function that calls itself; false: it is to be walked. */
bool hot_call(Eval *ev, LangFn *fn, Worth *value);
void hot_free(Eval *ev);

/* scalar_scan.c */
void loops_mark(Script *s); /* whose value nobody looks at */

/* script.c: the whole program as C; steps: turns and calls of it that may be walked */
void script_native(Ingot *m, Script *s, u64 steps, bool no_files, Text *out);

/* native.c: the program as C; main: to be called behind its statements, or NULL; graphs: what its
 * tensors need, NULL: it has none. False: it has some, and nothing was written. */
bool native_program(Script *s, const Ast *main, const Text *graphs, Text *out);
/* native_graphs.c: the C of graphs, and a table of them */
void native_graphs(DryRun *d, Text *out);

/* modules.c */
void script_load(Script *s);                  /* parses and checks the program with its modules */
Worth eval_module(Eval *ev, const Script *s); /* runs it, if it has not run yet */
Locals *locals_of_file(Eval *ev, u32 nslot);
const char *path_beside(Ctx *c, Str file, const char *path); /* as seen from the folder of file */

/* eval_ops.c */
Worth eval_binary(Eval *ev, const Ast *n, const Worth *x, const Worth *y);
Worth eval_unary(Eval *ev, const Ast *n);
Worth eval_cast(Eval *ev, const Ast *n);
Worth eval_index(Eval *ev, const Ast *n);
Worth eval_range(Eval *ev, const Ast *n);
bool eval_bounds(Eval *ev, const Ast *range, i64 *from, i64 *end); /* false: one is open */
/* d becomes what the type wants, or fails at n. */
void eval_becomes(Eval *ev, const Ast *n, Worth *d, const LangType *to);

/* eval_call.c */
Worth eval_call(Eval *ev, Ast *n);
Worth eval_closure(Eval *ev, Ast *fn);
Worth fn_gradient(Eval *ev, BoxFn *f); /* as a function */
/* The gradient of f with respect to its first argument, grads.c; takes the arguments. */
Worth call_grad(Eval *ev, const Ast *at, BoxFn *f, Worth *arg, u32 n);
Worth call_fn(Eval *ev, const Ast *at, BoxFn *f, Worth *arg, u32 n); /* takes the arguments */

/* dry.c */
bool worth_open(const Eval *ev, const Worth *d); /* a value that is not known yet */
Worth worth_unknown(Eval *ev, LangKind kind);    /* such a value: a number or an empty text */
_Noreturn void dry_refuse(Eval *ev, const Ast *at, const char *what);
void dry_blank(Eval *ev, Lazy *t); /* in a dry run: its data are not known */
/* In a dry run, of a file that is not there: a tensor of the shape that is written down where the
 * file is read; fails if there is none. False: the file is to be read. */
bool dry_file(Eval *ev, const char *path, Worth *out);

/* sizes.c: extents; where some are open */
#define SIZE_ANY INT64_MIN /* what -1 in a shape is where symbols are numbers below 0 */
bool size_is_open(const Eval *ev, i64 d);
i64 size_sum(Eval *ev, i64 x, i64 y);
/* How many windows of that size, less what is padded, fit into an open extent. */
i64 size_windows(Eval *ev, i64 extent, i64 size, i64 stride);
/* What the extent number `without` has to be, so that t has that shape. */
i64 size_rest(Eval *ev, const Lazy *t, const i64 *dim, u32 rank, u32 without);
void size_show(const Eval *ev, i64 d, Text *out);
Worth worth_size(const Eval *ev, i64 d);
i64 arg_size(Eval *ev, const Worth *d);
/* False: none of the two is open. */
bool size_binary(Eval *ev, const Ast *n, const Worth *x, const Worth *y, Worth *out);

/* dry_ways.c: d is what both have in common; the rest of it is open */
void dry_join(Eval *ev, Worth *d, const Worth *other);

/* trace.c */
/* The function of that name, or the only one that can be a model; fails if there is none. */
Ast *trace_choose(Eval *ev, const char *name);
void script_trace(Eval *ev, Ingot *m, Ast *f); /* behind the run */
/* The graph of a function, as text; false: its shapes are not known. */
bool trace_show(Eval *ev, BoxFn *fn, Text *out);

/* arguments of built-ins; n counts from 0 */
#define ARG_BAD(ev, ...) eval_fail(ev, (ev)->at, __VA_ARGS__)
const char *builtin_name(const Eval *ev);
double arg_number(Eval *ev, const Worth *d);
u32 arg_shape(Eval *ev, const Worth *d, i64 *dim); /* the rank; dim has room for MAX_RANK */
/* Functions of numbers as engines compute them, whatever C library there is. */
double number_of(Op op, double x, double y);
/* The larger, or smaller, of two; of equal ones the first, and no NaN if one is a number. */
double number_pick(bool largest, double x, double y);
i64 arg_int(Eval *ev, const Worth *d);
BoxList *arg_array(Eval *ev, const Worth *d);

#define BI(name, sig, args, shape, fn) BuiltinFn bi_##fn;
#include "front/lang/builtins.def"
#undef BI
extern BuiltinFn *const builtin_fn[];

#endif
