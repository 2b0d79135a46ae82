/* lang_value.h: the evaluator of a program. Private to src/lang. */
#ifndef INGOT_LANG_OWN_H
#define INGOT_LANG_OWN_H

#include "api/api_internal.h"
#include "lang/syntax/lang.h"
#include "lang/run/value.h"

typedef struct Locals Locals;
typedef struct ProgCache ProgCache;   /* see force.c */
typedef struct NetSession NetSession; /* see net.c */
typedef struct RegCode RegCode;       /* see lang_code.h */
typedef struct Frame Frame;
typedef struct DryRun DryRun; /* see dry.h */

/* Registers. The first n are variables of a file, the first `all` its registers; calls follow. */
struct Locals {
  Locals *next; /* more room */
  LangValue *end;
  u32 n, all;
  LangValue at[];
};

enum { MODULES = 64 }; /* max files of a program */

struct Eval {
  Ctx *c;
  Script *s;
  const IngotScript *o;
  HeapObj *all;
  Frame *frame, *root;   /* the running call; the first, which runs nothing */
  Locals *regs;          /* where the registers in use end; NULL: none are */
  Locals *segments;      /* of calls only */
  u32 nreg;              /* registers in them */
  LangValue *top;        /* end of the registers in use */
  Locals *file[MODULES]; /* variables of the program (0) and its modules; NULL: not run yet */
  Arena stack;           /* temporary memory of operations */
  LangValue result;      /* of the current return */
  u32 depth;
  bool careful;     /* no call relies on static kinds */
  bool native;      /* the code becomes C: no call is expanded */
  bool tracing;     /* a function becomes a graph: see trace.c */
  u32 in_grad;      /* nesting of calls being differentiated */
  const Ast *at;    /* current call of a built-in */
  ProgCache *made;  /* compiled tensor programs */
  NetSession *nets; /* imported networks */
  DryRun *dry;      /* in a dry run, else NULL */
  Dims *dims;       /* while sizes are symbolic (sizes.c), else NULL */
  u64 serial;       /* of the next tensor */
  u32 mark;         /* last mark of pending_collect */
  u64 random;       /* seed of the run; random functions without a seed combine it with serial */
  LazyTensor *last_loss; /* last argument of tensor_backward */
};

/* The list of all objects. */
static inline void heap_link(Eval *ev, HeapObj *b) {
  b->next = ev->all;
  if (ev->all) ev->all->prev = b;
  ev->all = b;
}
static inline void heap_unlink(Eval *ev, HeapObj *b) {
  if (b->prev)
    b->prev->next = b->next;
  else
    ev->all = b->next;
  if (b->next) b->next->prev = b->prev;
}

/* Texts of types, and the sizes that symbols in types have in this call. */
static inline const char *struct_field_text(Eval *ev, const StructInfo *s, u64 i) {
  return str_text(ev->c, s->field[i]);
}
static inline const char *type_symbol(Eval *ev, const LangType *t, u32 i) {
  return t->name && t->name[i] ? str_text(ev->c, t->name[i]) : NULL;
}
SymbolSizes *call_sizes(Eval *ev);

/* lang_frame.c */
void heap_free_all(Eval *ev);
/* Fails if the caller requested a stop. */
static inline void eval_check_stop(Eval *ev, const Ast *at) {
  if (ev->o->stop && *ev->o->stop) eval_fail(ev, at, "stopped");
}
/* The message with the position of a node. */
const char *eval_message(Eval *ev, const Ast *at, const char *what);
bool is_lvalue(const Ast *n); /* a variable, or an element or field in one */

/* force.c: makes the graph or program built in m its model. name: for messages */
void model_adopt(Ingot *m, const char *name);

/* lang_script.c: the whole program as C. steps: budget of the dry run */
void script_native(Ingot *m, Script *s, u64 steps, bool no_files, StrBuf *out);

/* native_program.c: the program as C. main: function to call after the statements, or NULL. graphs:
 * C of the tensor graphs, or NULL. False if graphs is NULL and the program has tensors. */
bool native_program(Eval *ev, const Ast *main, const StrBuf *graphs, StrBuf *out);
/* native_graphs.c: the C of all graphs, and their table. d: NULL if there are none */
void native_graphs(DryRun *d, StrBuf *out);

/* modules.c */
void script_load(Script *s);                /* parses and checks the program with its modules */
void module_run(Eval *ev, const Script *s); /* unless it has run */
/* Resolves a path relative to the folder of file. */
const char *path_relative_to(Ctx *c, Str file, const char *path);

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

extern BuiltinFn *const builtin_fn[];

#endif
