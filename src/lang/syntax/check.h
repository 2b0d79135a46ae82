/* check.h: shared declarations of the type checker.
 *
 * A variable is a slot of a function. Its type may change where `let` defines it again, so types
 * belong to bindings: one for each definition of a name. Where paths meet, their bindings are
 * unified (union-find). The type of a binding is the join of all values ever stored there. The
 * checker visits the tree until no type changes, then once more to report errors and to record
 * conversions.
 */
#ifndef INGOT_LANG_CHECK_H
#define INGOT_LANG_CHECK_H

#include "lang/syntax/lang.h"

typedef struct Checker Checker;
typedef struct FnState FnState; /* a function being checked */
typedef struct Binding Binding;
typedef struct SlotChange SlotChange; /* a slot, and a binding that it has or had */
typedef VEC(SlotChange) SlotChanges;

struct Binding {
  const LangType *type;
  u32 parent;    /* union-find parent; itself: a root */
  bool declared; /* has a type annotation */
};

struct SlotChange {
  u32 slot, bind;
};

struct ScopeNames {
  ScopeNames *outer; /* in the same function */
  Map slot;          /* Str -> 1 + slot */
  u32 n;             /* slots of the function, including these */
};

struct FnState {
  FnState *outer;
  LangFn *fn;
  ScopeNames *names;
  SlotBinds cur;   /* by slot: the current binding; 0: none yet */
  SlotChanges log; /* the old binding of each change */
  SlotBinds met;   /* by slot: the last merge that visited it */
  u32 merges;
  Map captures;         /* Str -> 1 + Capture */
  SlotBinds capture_at; /* by slot: 1 + Capture */
  u32 loops;            /* number of enclosing loops */
  u32 nslot;
};

struct Checker {
  Script *s; /* the file being checked */
  Ctx *c;
  Arena *a;
  FnState *in;
  VEC(Binding) bind;
  bool report, changed;
};

/* names.c */
u32 slot_get(const SlotBinds *s, u32 slot);
void slot_set(Checker *k, SlotBinds *s, u32 slot, u32 b);
void names_open(Checker *k, Ast *n, Asts *body); /* opens a scope with the names these define */
void names_close(Checker *k, Ast *n);
u32 names_define(Checker *k, Str name); /* the slot in the innermost scope */
/* Collects the nodes in n that define names, without nested scopes. */
void names_collect(Checker *k, Ast *n, Asts *to);
/* Fills n->place. False if the name does not exist. */
bool names_find(Checker *k, Ast *n, Str name);
/* Type of a name that names_find found. KD_none: not defined yet. */
const LangType *names_type(Checker *k, const Ast *n);
/* True if functions or other files see the variable. */
bool names_is_shared(const Checker *k, const VarRef *p);
void names_share(Checker *k, Script *s, u32 slot);
void names_suggest(Checker *k, Suggestion *near);

/* check.c */
const LangType *check_block(Checker *k, Ast *n);
const LangType *check_statement(Checker *k, Ast *n);
const LangType *check_fn(Checker *k, Ast *n);
const LangType *check_if(Checker *k, Ast *n, bool valued);
u32 bind_root(Checker *k, u32 b);
u32 bind_of(Checker *k, Ast *n, u32 slot); /* binding of n at slot; becomes the current one */
void bind_join(Checker *k, u32 b, const LangType *t);
const LangType *bind_type(Checker *k, u32 b);
/* Paths. rollback undoes and returns the changes since a mark; replay and join apply them again. */
u32 state_mark(const Checker *k);
SlotChanges state_rollback(Checker *k, u32 mark);
void state_replay(Checker *k, const SlotChanges *path);
void state_join(Checker *k, const SlotChanges *path); /* the path may or may not be taken */
/* Merges another path from the same mark into the current state. */
void state_merge(Checker *k, u32 mark, const SlotChanges *other);
void check_push(Checker *k, const Ast *target, Ast *value);
void check_error(Checker *k, const Ast *n, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Resolves a type annotation. */
const LangType *check_type(Checker *k, const Ast *n);
const LangType *type_by_name(const char *name); /* NULL if unknown */

/* check_expr.c */
const LangType *check_expr(Checker *k, Ast *n);
/* Checks that the value of n may be stored as `to`, and records a conversion if it needs one. */
void check_assignable(Checker *k, Ast *n, const LangType *to, const char *what);
/* check_shape.c: shape inference of tensor expressions */
/* Expects that the number of arguments was checked. */
const LangType *shape_call(Checker *k, const Ast *n, const BuiltinInfo *b);
/* Type of a tensor made from an array literal. */
const LangType *shape_data(Checker *k, const Ast *n);
const LangType *shape_broadcast(Checker *k, const Ast *n, const char *what, const LangType *x,
                                const LangType *y);
const LangType *shape_matmul(Checker *k, const Ast *n, const char *what, const LangType *x,
                             const LangType *y);
/* check_struct.c */
void structs_collect(Checker *k, Script *s);
void structs_resolve(Checker *k, Script *s); /* the types of their fields */
void check_struct(Checker *k, const Ast *n);
/* A struct or model by name, in `module` unless that is 0. NULL if unknown. */
const LangType *struct_type(Checker *k, Str module, Str name);
const LangType *check_record(Checker *k, Ast *n);
const LangType *check_member(Checker *k, Ast *n);
bool is_field_target(const Ast *n); /* assignment to a field, or to an element of one */
const LangType *check_set_field(Checker *k, Ast *n);
/* check_model.c */
void check_model(Checker *k, Ast *n);
/* Result type of calling an instance of the model with a tensor of type t. */
const LangType *shape_forward(Checker *k, const Ast *at, const Ast *model, const LangType *t);
/* check_call.c */
/* Checks the kinds of the first `count` arguments against row `row` of builtins.def. */
void check_arg_kinds(Checker *k, const Ast *n, const char *name, u32 row, u32 count);
const LangType *check_call(Checker *k, Ast *n);
void check_unused(Checker *k, const Ast *n); /* warns about a statement with an unused result */

#endif
