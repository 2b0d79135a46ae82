/* check.h: what the files of the checker share.
 *
 * A variable of the program is a slot of a function. What it holds may change its type where `let`
 * defines it anew, so types belong to bindings: one for each place that defines a name. Where paths
 * meet, the bindings that they bring are made one, and its type is that of all that was ever put
 * there. The tree is walked until no type changes, then once more to tell errors and to note where
 * values change their kind.
 */
#ifndef INGOT_LANG_CHECK_H
#define INGOT_LANG_CHECK_H

#include "front/lang/lang.h"

typedef struct Checker Checker;
typedef struct FnState FnState; /* a function that is being walked */
typedef struct Binding Binding;
typedef struct SlotChange SlotChange; /* a slot, and a binding that it holds or held */
typedef VEC(SlotChange) SlotChanges;

struct Binding {
  const LangType *type;
  u32 parent;    /* another that it has become one parent; itself: none */
  bool declared; /* its type was written down */
};

struct SlotChange {
  u32 slot, bind;
};

struct ScopeNames {  /* a scope */
  ScopeNames *outer; /* of the same function */
  Map slot;          /* Str -> 1 + slot */
  u32 n;             /* slots of the function, with these */
};

struct FnState {
  FnState *outer;
  LangFn *fn;
  ScopeNames *names;
  SlotBinds cur;   /* by slot: the binding that holds there; 0: none yet */
  SlotChanges log; /* what cur was before each change */
  SlotBinds met;   /* by slot: the last merge that came by */
  u32 merges;
  Map captures;         /* Str -> 1 + Capture */
  SlotBinds capture_at; /* by slot: 1 + Capture */
  u32 loops;            /* around what is being walked */
  u32 nslot;
};

struct Checker {
  Script *s; /* the file that is being walked */
  Ctx *c;
  Arena *a;
  FnState *in;
  VEC(Binding) bind;
  bool report, changed;
};

/* names.c */
u32 slot_get(const SlotBinds *s, u32 slot);
void slot_set(Checker *k, SlotBinds *s, u32 slot, u32 b);
void names_open(Checker *k, Ast *n, Asts *body); /* a scope with what these define */
void names_close(Checker *k, Ast *n);
u32 names_define(Checker *k, Str name);           /* the slot in the innermost scope */
void names_collect(Checker *k, Ast *n, Asts *to); /* what defines names in it, scopes in it apart */
/* Fills n->place; false: there is no such name. */
bool names_find(Checker *k, Ast *n, Str name);
const LangType *names_type(Checker *k,
                           const Ast *n); /* of what was found; KD_none: not yet there */
/* Others than the statements of the file see the variable of that slot. */
bool names_is_shared(const Checker *k, const VarRef *p);
void names_share(Checker *k, Script *s, u32 slot);
void names_suggest(Checker *k, Suggestion *near);

/* check.c */
const LangType *check_block(Checker *k, Ast *n);
const LangType *check_statement(Checker *k, Ast *n);
const LangType *check_fn(Checker *k, Ast *n);
const LangType *check_if(Checker *k, Ast *n, bool valued);
u32 bind_root(Checker *k, u32 b);
u32 bind_of(Checker *k, Ast *n, u32 slot); /* that n makes at slot, which it then holds */
void bind_join(Checker *k, u32 b, const LangType *t);
const LangType *bind_type(Checker *k, u32 b);
/* Paths: what one has changed since a mark is taken back, and put there or merged again. */
u32 state_mark(const Checker *k);
SlotChanges state_rollback(Checker *k, u32 mark);
void state_replay(Checker *k, const SlotChanges *path);
void state_join(Checker *k, const SlotChanges *path); /* it may have been taken */
/* What another path from the same mark leaves behind comes in. */
void state_merge(Checker *k, u32 mark, const SlotChanges *other);
void check_push(Checker *k, const Ast *target, Ast *value);
void check_error(Checker *k, const Ast *n, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* A type as it is written. */
const LangType *check_type(Checker *k, const Ast *n);
const LangType *type_by_name(const char *name); /* NULL: there is none */

/* check_expr.c */
const LangType *check_expr(Checker *k, Ast *n);
/* The value of n goes where `to` is wanted: what it becomes there, or an error. */
void check_assignable(Checker *k, Ast *n, const LangType *to, const char *what);
/* check_shape.c: tensors with their shapes, where they follow from the text */
/* The arguments are as many as the function takes. */
const LangType *shape_call(Checker *k, const Ast *n, const BuiltinInfo *b);
/* Of an array of numbers in the text, as a tensor. */
const LangType *shape_data(Checker *k, const Ast *n);
const LangType *shape_broadcast(Checker *k, const Ast *n, const char *what, const LangType *x,
                                const LangType *y);
const LangType *shape_matmul(Checker *k, const Ast *n, const char *what, const LangType *x,
                             const LangType *y);
/* check_struct.c */
void structs_collect(Checker *k, Script *s);
void structs_resolve(Checker *k, Script *s); /* the types of their fields */
void check_struct(Checker *k, const Ast *n);
/* A struct or a model by its name, of a module if that is not 0; NULL: there is none. */
const LangType *struct_type(Checker *k, Str module, Str name);
const LangType *check_record(Checker *k, Ast *n);
const LangType *check_member(Checker *k, Ast *n);
bool is_field_target(const Ast *n); /* of an assignment: a field, or elements of one */
const LangType *check_set_field(Checker *k, Ast *n);
/* check_model.c */
void check_model(Checker *k, Ast *n);
/* What an object of the model makes of a tensor of type t. */
const LangType *shape_forward(Checker *k, const Ast *at, const Ast *model, const LangType *t);
/* check_call.c */
/* Are the first n arguments of a call of the kinds that the built-in of that row takes? */
void check_arg_kinds(Checker *k, const Ast *n, const char *name, u32 row, u32 count);
const LangType *check_call(Checker *k, Ast *n);
void check_unused(Checker *k, const Ast *n); /* a statement whose value nobody takes */

#endif
