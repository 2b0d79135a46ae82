/* lang_code.h: typed register code of the language. Private to src/lang/run.
 *
 * lang_lower.c translates the checked tree of a function or file to a RegCode. lang_run.c executes
 * it, lang_dump.c prints it. Registers are LangValues: first the variables of the function, in the
 * order of their slots, then those of functions that are expanded, then temps. The registers of a
 * file are its variables, so that functions and other files can read them.
 *
 * Typing: lowering proves where a register holds an integer, a float or a boolean, from the kinds
 * of parameters, literals and operators, and from `check` instructions at values that the checker
 * promises only (elements, results of calls, variables of files). Typed instructions do not test
 * kinds. If a check fails, the call continues with careful handlers for the same instructions,
 * which test kinds. They also run calls that are differentiated, dry runs, and functions with
 * symbolic sizes.
 *
 * Calls: the function and its arguments are in consecutive temps. The arguments become the first
 * registers of the callee without being copied. The result replaces the function.
 */
#ifndef INGOT_LANG_CODE_H
#define INGOT_LANG_CODE_H

#include "lang/run/dry.h"

typedef enum CodeOp {
#define INS(name, operands, careful) CO_##name,
#include "lang/run/lang_code.def"
#undef INS
  CODE_OP_COUNT
} CodeOp;
extern const char *const code_operands[CODE_OP_COUNT];
extern const CodeOp code_base[CODE_OP_COUNT]; /* by LIKE; others: the instruction itself */
static inline CodeOp code_general(u32 op) {   /* the form that the lowering emits */
  while (code_base[op] != op) op = code_base[op];
  return (CodeOp)op;
}

/* Registers and constants are byte offsets, jump targets are relative to the instruction. */
typedef struct Ins {
  u32 op, a, b, c;
} Ins;

/* Instructions of loops, branches and matches, for dry runs. */
typedef struct CodeLoop { /* a `while` */
  u32 head, body, next, end;
} CodeLoop;
typedef struct CodeMatch {
  const u32 *arm;
  u32 n, join;
} CodeMatch;

/* A call whose function is expanded in the code; see lang_inline.c. Registers are numbers here. */
typedef struct KindOf {
  u32 reg;
  LangKind kind;
} KindOf;
typedef struct CodeExpansion {
  const LangFn *fn;
  const KindOf *test,
      *with; /* arguments of unproven kind; captured values, in order. KD_any: set */
  u32 ntest, nwith;
  const u32 *unset; /* variables that begin so */
  u32 nunset;
  bool plain; /* only captured numbers need to be tested and set */
  u32 level;  /* 1 + number of expansions that it is in */
} CodeExpansion;

/* The kind of an argument for this type that needs no conversion. KD_none: any; KD_any: no kind */
static inline LangKind param_kind(const LangType *t) {
  LangKind k = t->kind;
  if (k == KD_int || k == KD_float || k == KD_bool || k == KD_string || k == KD_fn ||
      k == KD_object)
    return k;
  return k == KD_any ? KD_none : KD_any;
}

typedef enum Flow { FLOW_next, FLOW_break, FLOW_continue, FLOW_return, FLOW_end } Flow;

struct RegCode {
  Eval *ev;
  LangFn *fn; /* NULL: a file */
  u32 file;
  Ins *ins;
  const Ast **at; /* by instruction */
  u32 n;
  LangValue *k; /* constants */
  u32 nk;
  VEC(const LangType *) type;
  VEC(const Ast *) closure;
  VEC(CodeExpansion) expanded;
  u32 nslot, nvar, nreg, nparam; /* nslot: own variables; nvar: and those of expanded functions */
  const LangType *const *param;
  u8 *quick;   /* by parameter: param_kind() */
  bool floats; /* an integer result becomes a float */
  VEC(CodeLoop) loop;
  u32 *join; /* by conditional jump: where its paths meet. UINT32_MAX: the test of a loop */
  VEC(CodeMatch) match;
};

/* A call, or the statements of a file. */
struct Frame {
  Frame *outer, *next; /* next: kept for reuse */
  const RegCode *code;
  LangValue *r;
  const Ins *pc;    /* the call that it waits for */
  ClosureObj *self; /* NULL: a file */
  const Ast *call;
  bool careful;
  LangValue *top; /* of the registers before the call */
  Locals *regs;
  SymbolSizes size; /* symbols in parameter shapes */
};

/* lang_lower.c */
const RegCode *code_of_fn(Eval *ev, LangFn *fn); /* lowers it at its first call */
/* Statements of a file, from `first` on. valued: the value of the last is the result. */
const RegCode *code_of_file(Eval *ev, const Script *s, u32 first, bool valued);

/* lang_frame.c */
Frame *frame_push(Eval *ev, const Ast *at, ClosureObj *f, LangValue *arg, u32 n); /* takes arg */
LangValue frame_result(Eval *ev, const Frame *f, LangValue v); /* of the declared type; takes v */
/* Drops the variables and returns to the outer frame. */
static inline void frame_pop(Eval *ev, Frame *f) {
  LangValue *d = f->r;
  for (u32 i = f->code->nslot; i; i--, d++) {
    if (value_is_boxed(d)) heap_drop(ev, d->u.box);
    d->kind = KD_none;
  }
  ev->top = f->top;
  ev->regs = f->regs;
  ev->frame = f->outer;
  ev->depth--;
}
/* Variables of a file, with the values of `old`, which may be NULL. */
Locals *file_variables(Eval *ev, const RegCode *code, const Locals *old);
LangValue run_file(Eval *ev, const RegCode *code); /* the value of the last statement */
void registers_clear(Eval *ev);                    /* after a failure */
LangValue *variable_find(Eval *ev, const VarRef *place, u32 n); /* NULL if unset */
LangValue variable_value(Eval *ev, const Ast *name);
LangValue closure_new(Eval *ev, const Ast *fn);
/* NULL if d has no such field or is not a struct */
LangValue *value_field(const LangValue *d, const Ast *n);
LangValue *value_need_field(Eval *ev, const Ast *n, const LangValue *d);
/* Address of an lvalue; takes its indices. */
LangValue *lvalue_place(Eval *ev, const Ast *n, LangValue *index);

/* lang_run.c */
/* Executes from instruction `at` until `stop`; the result is how it ended. A returned value is in
 * ev->result. Not in a dry run: until the call returns. */
Flow run_range(Eval *ev, Frame *f, u32 at, u32 stop);
/* In a dry run: the condition of a loop, from `at` until `stop`, or until a jump to `end`, which is
 * FLOW_end. */
Flow run_test(Eval *ev, Frame *f, u32 at, u32 stop, u32 end);

/* dry_paths.c */
/* Executes n paths, given by their first instructions, until they meet at `join`, and joins them.
 */
void dry_paths(Eval *ev, Frame *f, const u32 *path, u32 n, u32 join);
/* A whole `while` loop. FLOW_return: the call returns. */
Flow dry_while(Eval *ev, Frame *f, const CodeLoop *loop, const Ast *n);
/* A whole `for` loop with the body from `body` until `next`. at: the next value and the end, or
 * nothing and the array. */
Flow dry_for(Eval *ev, Frame *f, LangValue *at, LangValue *var, u32 body, u32 next);

/* class.c */
LangValue class_new(Eval *ev, const Ast *n);
void class_add(Eval *ev, LangObject *class, const Ast *layer, LangValue *size, u32 n);

/* lang_dump.c */
void code_print(const RegCode *code, StrBuf *out);

#endif
