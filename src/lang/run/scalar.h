/* scalar.h: compiles numeric loops to Progs. Private to scalar*.c.
 *
 * A compiled loop includes its inner loops and the functions it calls. Such a Prog has no effect
 * except its results. If a check fails (it requires what the interpreter would check), nothing has
 * changed. The interpreter then repeats this part, fails at the same place and reports the error.
 * So compiled code has no messages of its own.
 */
#ifndef INGOT_LANG_SCALAR_H
#define INGOT_LANG_SCALAR_H

#include "ir/prog/prog.h"
#include "lang/run/lang_value.h"

typedef struct NumVar NumVar;     /* a program variable in the Prog */
typedef struct NumArray NumArray; /* an array of numbers in the Prog */
typedef struct NumVal NumVal;     /* value of an expression */
typedef struct NumDest NumDest;   /* destination of the value of a statement */
typedef struct NumScope NumScope; /* a loop or call that can be left */
typedef struct NumLoop NumLoop;   /* the Prog */
typedef struct NumBuild NumBuild; /* while it is built */
/* mutually recursive functions, while they are compiled */
typedef struct NumRecursion NumRecursion;
typedef struct NumRecFn NumRecFn;     /* one of them */
typedef struct NumClosure NumClosure; /* a function value with its captures */
typedef VEC(LangKind) NumKinds;       /* by variable: its kind at a program point */

/* Header of the integer and float buffers; variables follow. */
enum { IN_fuel, IN_at, IN_end, IN_ints };
enum { OUT_leave, OUT_at, OUT_over, OUT_fuel, OUT_value, OUT_ints };
enum { OUT_floats = 1 };

/* How a loop or call is left. */
enum { EXIT_none, EXIT_continue, EXIT_break, EXIT_return };

/* Fuel: each iteration takes one; a run ends when none is left. If an outermost iteration needs
 * FUEL_MAX more, the interpreter runs it and its inner loops are compiled alone. So the caller can
 * stop the program at any time. */
enum { FUEL = 1 << 20, FUEL_MAX = 1 << 26 };
enum { NUM_CAPTURES = 4 };
enum { NUM_KINDS = 3, NUM_DEPTH = 120, NUM_STMTS = 20000, NUM_VARS = 400 };
/* max range end: engines may advance several iterations at once */
#define NUM_END      ((i64)1 << 62)
#define NUM_ELEMENTS ((u64)1 << 22) /* max per array */

struct NumVar {
  VarRef place; /* location in the call that runs the loop, if home is set */
  /* Path of capture indices from that function to the variable. ncapture 0: the variable itself. */
  u32 ncapture, capture[NUM_CAPTURES];
  /* Location when the Prog was built. NULL: local to the loop. */
  LangValue *home;
  u32 frame, slot;     /* if home is NULL: call and slot */
  LangKind entry;      /* kind at entry */
  VarId as[NUM_KINDS]; /* variables for int, float, bool; 0: not used */
  u32 in[NUM_KINDS];   /* position in the buffer; 0: not an input */
  VarId tag; /* variable with its current kind, if it may differ from entry; 0: the same */
  bool changed;
  u32 out[NUM_KINDS], out_tag;
  u32 array;        /* KD_array: 1 + index */
  bool fixed;       /* loop counter that the body does not change */
  bool natural;     /* and never negative */
  const LangFn *fn; /* KD_fn at entry */
  u32 closure;      /* KD_fn: 1 + index */
};

/* Nested arrays with rows of equal length are one row-major buffer. */
enum { NUM_RANK = 4 };
struct NumArray {
  LangKind kind; /* kind of the elements */
  u32 rank;
  u64 room;   /* capacity in elements */
  u32 length; /* position of its extents in the integer buffer */
  VarId n[NUM_RANK];
  BufId in, out;    /* out: 0 if unchanged */
  bool read_as_one; /* a copy of an earlier state may be used elsewhere */
};

struct NumVal {
  LangKind kind; /* KD_any: unknown; KD_none: unreachable */
  ExprId e;
  VarId var; /* variable with the value, readable repeatedly; 0: use e once */
  u32 array;
  u32 closure; /* KD_fn: 1 + index */
};

struct NumClosure {
  const LangFn *fn;
  NumVal *with; /* by capture, immutable; KD_none: unset */
};

struct NumDest {
  LangKind kind; /* KD_none: nothing stored yet; KD_any: several kinds */
  VarId var;
  bool floats; /* convert integers to floats */
};

struct NumScope {
  NumScope *outer;
  const LangFn *fn; /* NULL: a loop */
  VarId leave;      /* EXIT_*; 0: nothing leaves it early */
  u32 jumps;        /* number of statements so far that may leave it */
  bool any;         /* `ways` is set */
  NumKinds ways;    /* kinds of variables at break, continue and return */
  NumKinds head;    /* kinds of variables at the start of an iteration */
  NumDest *result;  /* result of a call */
  u32 frames;       /* inlined calls before it */
};

/* nint_out, nfloat_out: sizes of the output buffers. A loop over an array has it as the first
 * array. */
struct NumLoop {
  Ingot *m;
  VEC(NumVar) var;
  VEC(NumArray) array;
  u32 nint, nfloat, nint_out, nfloat_out;
  u32 depth;              /* AST depth below the loop, including calls */
  bool over;              /* iterates over the first array */
  bool valued;            /* the value of the loop is used */
  LangKind value, result; /* kinds; result: of a return in it */
  u32 value_out, result_out;
};

/* Limits: recursion depth, calls per function, arguments per call, mutually recursive functions.
 * Beyond these the interpreter runs the loop. */
enum { REC_DEPTH = 256, REC_CALLS = 8, REC_ARGS = 8, REC_FNS = 8 };
struct NumRecFn {
  u32 closure; /* 1 + index */
  LangKind kind[REC_ARGS], result;
};
struct NumRecursion {
  NumRecFn member[REC_FNS];
  u32 n, now; /* number of members; index and frame of the one being compiled */
  u32 frame;
  bool alone; /* there is one member */
  u32 calls;  /* calls of members compiled so far */
  /* AST depth of the body, and the largest depth from there to a call in it. */
  u32 depth, levels;
  VarId deep;         /* index of the top call */
  VarId which;        /* its member */
  VarId first, ready; /* its first result, and the end of those available */
  VarId call;         /* index of the next call's result in this pass */
  VarId waits;        /* not 0: waits for a call */
  /* Indexed by call: member, arguments, end of its results. 0: not used yet. */
  BufId whose, done, arg[2][REC_ARGS];
  BufId results[2];
};

struct NumBuild {
  Eval *ev;
  Ctx *c;
  Arena *a;
  Prog *p;
  NumLoop *to;
  Cursor head, at;
  NumKinds now;
  NumScope *scope;
  NumRecursion *self;
  u32 frame, nframe, depth, nested;
  u32 nhead; /* statements before all others */
  BufId in_int, in_float, out_int, out_float;
  VarId fuel;
  VEC(ExprId) load; /* loads from arrays */
  VEC(NumClosure) closure;
  NumDest result, value;
};

/* scalar_analysis.c */
bool ast_is_pure(const Ast *n);     /* without side effects or statements */
bool ast_cannot_fail(const Ast *n); /* pure, and cannot fail */
/* How the loop or call with body n is left: bits 1 << EXIT_*. */
u32 ast_exits(const Ast *n);
bool ast_has_loop(const Ast *n);
bool ast_has_call(const Ast *n); /* calls a function of the program */
/* True if `from` calls `to`, directly or indirectly. */
bool fn_reaches(Eval *ev, const LangFn *from, const LangFn *to);
bool fn_in_cycle(Eval *ev, const LangFn *f); /* it calls another function that calls it */
typedef VEC(u32) NumSlots;
/* Variables defined in n, without nested scopes. */
void ast_defines(Arena *a, const Ast *n, NumSlots *to);
bool ast_assigns(const Ast *n, u32 slot); /* to this variable of the same function */

/* scalar_expr.c */
_Noreturn void num_refuse(NumBuild *b, const Ast *at, const char *why);
bool num_is_number(LangKind k);
LangKind num_kind(const NumBuild *b, const NumKinds *at, u32 var);
void num_set_kind(NumBuild *b, u32 var, LangKind k); /* from here on */
u32 num_var_index(NumBuild *b, const VarRef *p);     /* its index; UINT32_MAX: unset */
void num_assign(NumBuild *b, const Ast *at, u32 var, NumVal v);
VarId num_var(NumBuild *b, DType dt, ExprId first); /* declared before all others */
VarId num_as(NumBuild *b, u32 var, LangKind k);     /* the variable for this kind */
NumVal num_expr(NumBuild *b, Ast *n);
ExprId num_read(NumBuild *b, NumVal v);
NumVal num_snapshot(NumBuild *b, NumVal v); /* the current value */
NumVal num_convert(NumBuild *b, const Ast *at, NumVal v, const LangType *to);
ExprId num_condition(NumBuild *b, const Ast *at, NumVal v);
ExprId num_float(NumBuild *b, const Ast *at, NumVal v);
void num_require(NumBuild *b, ExprId cond);
NumVal num_operand(NumBuild *b, Ast *n);               /* refuses jumps inside */
u32 num_find_var(NumBuild *b, const Ast *name);        /* the first of its places that is set */
NumVal num_value(NumBuild *b, const Ast *at, u32 var); /* its current value */
/* True for a variable of a call that was inlined after `frames`: no longer visible. */
bool num_is_out_of_scope(const NumBuild *b, u32 var, u32 frames);
ExprId num_bound(NumBuild *b, Ast *n); /* bound of a range */
DType num_dtype(LangKind k);

/* scalar_array.c */
typedef struct NumShape { /* shape and kind of nested arrays of numbers */
  LangKind kind;          /* KD_none: mixed kinds, or rows of different length */
  u32 rank;
  u64 n, dim[NUM_RANK];
} NumShape;
NumShape num_shape(const ListObj *l);
u32 num_array(NumBuild *b, const NumShape *s);            /* 1 + index; 0: too large */
NumVal num_element(NumBuild *b, u32 array, ExprId index); /* rank 1 only */
/* 1 + index of the array in variable n, or 0. var: NULL, or receives the variable. */
u32 num_array_of(NumBuild *b, const Ast *n, u32 *var);
NumVal num_indexed(NumBuild *b, const Ast *n);
bool num_length(NumBuild *b, Ast *n, NumVal *out); /* length of an array or of a row */
NumVal num_change_element(NumBuild *b, const Ast *n);
void num_copy_arrays(NumBuild *b); /* arrays that change, before all statements */

/* scalar_call.c */
NumVal num_call(NumBuild *b, Ast *n);
u32 num_closure(NumBuild *b, const LangFn *fn); /* 1 + index; captures are still unset */
NumVal num_fn(NumBuild *b, Ast *n);             /* a function expression */
void num_parameter(NumBuild *b, const Ast *at, u32 frame, u32 slot, NumVal v);
void num_captures(NumBuild *b, const Ast *at, u32 frame, u32 closure); /* as parameters */

/* scalar_stmt.c */
NumKinds num_kinds_copy(NumBuild *b, const NumKinds *from);
/* False if the code after n is unreachable. to: NULL if the value is unused. */
bool num_stmt(NumBuild *b, Ast *n, NumDest *to);
void num_put_result(NumBuild *b, const Ast *at, NumDest *to, NumVal v);
bool num_block(NumBuild *b, const Ast *n, NumDest *to);
ExprId num_has_fuel(NumBuild *b); /* inside the outermost loop */
void num_use_fuel(NumBuild *b, i64 turns);
void num_nest(NumBuild *b, const Ast *n); /* counts nested statements */
/* A call of the function n with the current values of its variables. */
void num_function(NumBuild *b, Ast *n);
/* The whole loop. over: array to iterate over, or NULL. Built in the session of b->to. */
void num_loop(NumBuild *b, Ast *n, const ListObj *over);

/* scalar_recursion.c */
NumVal num_recursion(NumBuild *b, const Ast *n, u32 closure, const NumVal *arg);
NumVal num_rec_call(NumBuild *b, const Ast *n, u32 closure, const NumVal *arg);
/* True if f is a member, or will be. */
bool num_rec_has(const NumBuild *b, const LangFn *f);
/* Runs the following code only if no call waits. Does nothing if the number of compiled calls is
 * still `calls`. */
void num_rec_guard(NumBuild *b, const Ast *n, u32 calls);
u32 num_rec_calls(const NumBuild *b);
ExprId num_rec_loop_cond(NumBuild *b, ExprId cond); /* cond, and no call waits */

#endif
