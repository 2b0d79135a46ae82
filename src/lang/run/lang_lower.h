/* lang_lower.h: state of the lowering to register code. Private to lang_lower.c, lang_known.c and
 * lang_inline.c.
 */
#ifndef INGOT_LANG_LOWER_H
#define INGOT_LANG_LOWER_H

#include "lang/run/lang_code.h"

#define NOWHERE UINT32_MAX /* the value is unused */

enum {
  TEMP = 1 << 24,     /* temps are numbered from here on until all variables are known */
  INLINE_VARS = 128,  /* variables of functions that are expanded at once, at most */
  INLINE_NODES = 4000 /* nodes of all functions that are expanded in a piece of code, at most */
};

typedef VEC(u32) Positions;

typedef struct Known { /* what was known of a variable */
  u32 slot;
  LangKind kind; /* KD_none: maybe not set. KD_any: set */
} Known;
typedef VEC(Known) Knowns;

/* The paths that meet after a choice. A path ends with known_path_end(). known_join() follows
 * the last. */
typedef struct PathMerge {
  u32 mark;  /* of the log, where the paths begin */
  u32 first; /* in Lowering.met */
  u32 paths; /* reachable so far */
} PathMerge;

typedef struct Met { /* a variable that some of the paths change */
  u32 slot;
  LangKind kind; /* where these paths meet */
  u32 paths;     /* their number */
  u32 outer;     /* Lowering.met_at before */
} Met;

typedef struct Join { /* where the paths of a conditional jump meet */
  u32 at, join;
} Join;

typedef struct LowerLoop {
  struct LowerLoop *outer;
  Positions ends, continues; /* jumps */
  u32 temps;                 /* live outside */
} LowerLoop;

typedef struct InReg {
  u32 reg;
  LangKind kind; /* KD_any: not proven */
} InReg;

/* A function whose body is expanded at a call. */
typedef struct CallExpansion {
  struct CallExpansion *outer;
  const LangFn *fn;
  const LangFn *const *arg; /* by parameter: the function that it probably is, or NULL */
  u32 level;
  u32 first;            /* its first variable */
  const u32 *param;     /* registers of the parameters */
  LowerLoop *loop;      /* of the caller */
  u32 temps, dst, from; /* from: first instruction of the body */
  LangKind kind;        /* of the results so far; KD_none: there is none */
  Positions returns;
} CallExpansion;

typedef struct Lowering {
  Eval *ev;
  Ctx *c;
  Arena *a;
  RegCode *code;
  const LangFn *in; /* NULL: a file */
  const Script *s;
  VEC(Ins) ins;
  VEC(const Ast *) at;
  VEC(LangValue) k;
  u32 nslot, nvar; /* nvar: with those of expanded functions */
  u32 top, max;    /* temps in use */
  LowerLoop *loop;
  CallExpansion *into;   /* the expanded function, or NULL */
  u32 var, expanded;     /* variables in use; nodes of expanded functions */
  bool dead;             /* the current position is unreachable */
  Positions conditional; /* jumps whose paths have not met yet */
  VEC(Join) join;
  /* by slot */
  LangKind *known;
  u32 *seen;    /* shared variables: `calls` when its kind became known */
  bool *direct; /* only numbers are ever stored there */
  u32 *stamp;
  u32 *met_at; /* its row in `met`, if that row is of this variable */
  u32 calls, stamps;
  Knowns log;   /* what was known before each change */
  VEC(Met) met; /* a stack: inner choices end first */
} Lowering;

/* lang_known.c: facts about nodes, and about variables at the current position */
static inline bool kind_is_number(LangKind k) {
  return k == KD_int || k == KD_float || k == KD_bool;
}
static inline LangKind kind_meet(LangKind x, LangKind y) {
  return x == y ? x : x == KD_none || y == KD_none ? KD_none : KD_any;
}
static inline u32 ast_parts(const Ast *n) {
  return 3 + n->nkid;
}
static inline Ast *ast_part(const Ast *n, u32 i) {
  return i >= 3 ? n->kid[i - 3] : i == 0 ? n->a : i == 1 ? n->b : n->c;
}
/* A call of a function of the program, which may set variables of files. */
bool ast_is_user_call(const Ast *n);
bool ast_is_change(const Ast *n); /* push or pop */
bool ast_calls(const Ast *n);     /* evaluating n may call functions of the program */
bool ast_changes(const Ast *n);   /* evaluating n may change variables, or leave the function */
/* The kind that the value of n has for certain, or KD_any. The lowering checks it where the program
 * does not prove it. */
LangKind ast_kind(const Ast *n);

void known_begin(Lowering *l);
u32 known_slot(const Lowering *l, u32 slot); /* register of a slot of the function */
/* The register of a variable of this code, or -1. */
i64 known_variable(const Lowering *l, const VarRef *p);
bool known_shared(const Lowering *l, u32 slot); /* functions or other files see the variable */
LangKind known_kind(const Lowering *l, u32 slot);
void known_set(Lowering *l, u32 slot, LangKind k);
void known_undo(Lowering *l, u32 mark); /* of l->log */
void known_forget_shared(Lowering *l);  /* a call may change variables of files */
void known_forget_scope(Lowering *l, const Ast *scope);
/* Forgets the kinds of the variables that n sets. */
void known_forget_assigned(Lowering *l, const Ast *n);
void known_direct(Lowering *l, u32 slot, LangKind k);
void known_direct_assigned(Lowering *l, const Ast *n);
PathMerge known_paths(const Lowering *l, u32 mark);
void known_path_end(Lowering *l, PathMerge *m);
void known_join(Lowering *l, const PathMerge *m);

/* lang_inline.c */
/* Expands the call, if that is faster. *kind: of the result. */
bool inline_call(Lowering *l, Ast *n, u32 dst, LangKind *kind);
void inline_return(Lowering *l, Ast *n);

/* lang_lower.c */
u32 code_emit(Lowering *l, CodeOp op, u32 a, u32 b, u32 c, const Ast *at);
u32 code_temp(Lowering *l);
void code_patch(Lowering *l, u32 at, u32 to); /* the target of a jump */
LangKind code_into(Lowering *l, Ast *n, u32 dst);
LangKind code_block(Lowering *l, const Ast *n, u32 dst);
void code_define(Lowering *l, u32 slot, Ast *n);
/* The register of a name that can be read in place, or -1. */
i64 code_plain(const Lowering *l, const Ast *n);
InReg code_variable(Lowering *l, const Ast *n, u32 slot);
void code_drop_temps(Lowering *l, u32 from);
/* Calls function a with n->nkid arguments in the temps after it. */
void code_call(Lowering *l, const Ast *n, u32 base, bool borrowed);

#endif
