/* scalar.h: private to scalar*.c: loops of plain numbers become programs of the bytecode machine.
 *
 * What is compiled is a loop with all that it runs: loops inside of it, functions that it calls.
 * Such a program has no effect but its results: where something fails in it (it requires what the
 * tree walk would check), nothing has happened yet, and the tree walk does that part again, fails
 * at the same place and says what is wrong. So code that is compiled has no messages of its own.
 */
#ifndef INGOT_LANG_SCALAR_H
#define INGOT_LANG_SCALAR_H

#include "ir/prog.h"
#include "lang/lang_value.h"

typedef struct NumVar NumVar;     /* a variable of the language in such a program */
typedef struct NumArray NumArray; /* an array of numbers, likewise */
typedef struct NumVal NumVal;     /* what an expression gives */
typedef struct NumDest NumDest;   /* where the value of a statement is put */
typedef struct NumScope NumScope; /* a loop, or a call, that can be left */
typedef struct NumLoop NumLoop;   /* the program */
typedef struct NumBuild NumBuild; /* while it is made */
typedef struct NumRecursion
    NumRecursion;                     /* functions that call each other, while they are written */
typedef struct NumRecFn NumRecFn;     /* one of them */
typedef struct NumClosure NumClosure; /* a function as a value, with what it took along */
typedef VEC(LangKind) NumKinds;       /* by variable, what it holds at a place of the text */

/* Behind them in the buffers of integers and floats: variables. */
enum { IN_fuel, IN_at, IN_end, IN_ints };
enum { OUT_leave, OUT_at, OUT_over, OUT_fuel, OUT_value, OUT_ints };
enum { OUT_floats = 1 };

/* How a loop is left, or a call. */
enum { EXIT_none, EXIT_continue, EXIT_break, EXIT_return };

/* A turn of a loop takes one; a run goes on until it has none left. A turn of the outermost loop
 * that takes FUEL_MAX more is left to the tree walk, whose inner loops are compiled alone: so the
 * caller is asked again and again whether the program shall end. */
enum { FUEL = 1 << 20, FUEL_MAX = 1 << 26 };
enum { NUM_CAPTURES = 4 };
enum { NUM_KINDS = 3, NUM_DEPTH = 120, NUM_STMTS = 20000, NUM_VARS = 400 };
#define NUM_END      ((i64)1 << 62) /* of ranges: engines may count several turns at once */
#define NUM_ELEMENTS ((u64)1 << 22) /* of an array */

struct NumVar {
  VarRef place; /* of the call that runs the loop, if home is there */
  /* Of what the function there took along, of what that took along: which. 0: the variable itself
   */
  u32 ncapture, capture[NUM_CAPTURES];
  LangValue *home;     /* where it was when the program was made; NULL: nothing outside knows it */
  u32 frame, slot;     /* home NULL: of which call, and which variable of it */
  LangKind entry;      /* what it held */
  VarId as[NUM_KINDS]; /* int, float, bool; 0: not used */
  u32 in[NUM_KINDS];   /* its place in the buffer; 0: it is not an input */
  VarId tag;           /* the kind that it has, if it is another than at entry; 0: the same */
  bool changed;
  u32 out[NUM_KINDS], out_tag;
  u32 array;        /* KD_array: 1 + its number */
  bool fixed;       /* it is the counter of a loop, which nothing changes */
  bool natural;     /* and not below 0 */
  const LangFn *fn; /* KD_fn at entry */
  u32 closure;      /* KD_fn: 1 + its number */
};

/* Arrays in arrays that are all of one length lie in one buffer, row after row. */
enum { NUM_RANK = 4 };
struct NumArray {
  LangKind kind; /* of its elements */
  u32 rank;
  u64 room;   /* elements of the buffers */
  u32 length; /* the place of its extents in the buffer of integers */
  VarId n[NUM_RANK];
  BufId in, out;    /* out: 0, if it is not changed */
  bool read_as_one; /* somebody else holds it as it was at some time */
};

struct NumVal {
  LangKind kind; /* KD_any: nobody can say; KD_none: control does not come here */
  ExprId e;
  VarId var; /* the value again and again; 0: e, once */
  u32 array;
  u32 closure; /* KD_fn: 1 + its number */
};

struct NumClosure {
  const LangFn *fn;
  NumVal *with; /* by capture; they stay what they are. KD_none: nothing was there */
};

struct NumDest {
  LangKind kind; /* KD_none: nothing has been put there; KD_any: of several kinds */
  VarId var;
  bool floats; /* integers become floats */
};

struct NumScope {
  NumScope *outer;
  const LangFn *fn; /* NULL: a loop */
  VarId leave;      /* LEAVE_..; 0: nothing in it leaves it early */
  u32 jumps;        /* statements that may leave it, so far */
  bool any;         /* ways is there */
  NumKinds ways;    /* of variables, where a loop is left or goes on */
  NumKinds head;    /* of variables, where a turn begins */
  NumDest *result;  /* of a call */
  u32 frames;       /* calls that were written out before it */
};

/* out: of the buffers; a loop over an array has that as the first. */
struct NumLoop {
  Ingot *m;
  VEC(NumVar) var;
  VEC(NumArray) array;
  u32 nint, nfloat, nint_out, nfloat_out;
  u32 depth;              /* of the tree below the loop, with calls */
  bool over;              /* an array is walked, the first */
  bool valued;            /* somebody looks at the value of the loop */
  LangKind value, result; /* their kinds; result: of a return in it */
  u32 value_out, result_out;
};

/* Calls inside each other, calls that one makes, arguments of one, and functions that call each
 * other: more are left to the walk. */
enum { REC_DEPTH = 256, REC_CALLS = 8, REC_ARGS = 8, REC_FNS = 8 };
struct NumRecFn {
  u32 closure; /* 1 + its number */
  LangKind kind[REC_ARGS], result;
};
struct NumRecursion {
  NumRecFn member[REC_FNS];
  u32 n, now; /* how many, and which is being written, in which frame */
  u32 frame;
  bool alone;         /* there is one */
  u32 calls;          /* of members that were written so far */
  u32 depth, levels;  /* of the tree: where the body begins, and most from there to a call in it */
  VarId deep;         /* number of the call on top */
  VarId which;        /* member that it is of */
  VarId first, ready; /* of its results: the first, and behind the last that is there */
  VarId call;         /* the result that the next call in the walk has */
  VarId waits;        /* not 0: for a call that is to be made */
  /* By number of the call: its member, its arguments, and behind the last of its results; integers,
   * and floats. 0: not used yet. */
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
  u32 nhead; /* statements in front of all others */
  BufId in_int, in_float, out_int, out_float;
  VarId fuel;
  VEC(ExprId) load; /* of arrays */
  VEC(NumClosure) closure;
  NumDest result, value;
};

/* scalar_analysis.c */
bool ast_is_pure(const Ast *n);     /* it changes nothing, and has no statements */
bool ast_cannot_fail(const Ast *n); /* and cannot fail */
/* What leaves the loop or call whose body n is: bits 1 << LEAVE_. */
u32 ast_exits(const Ast *n);
bool ast_has_loop(const Ast *n);
bool ast_has_call(const Ast *n); /* of a function of the program */
/* Does the one call the other, itself or by functions that it calls? */
bool fn_reaches(Eval *ev, const LangFn *from, const LangFn *to);
bool fn_in_cycle(Eval *ev, const LangFn *f); /* it calls another that calls it */
typedef VEC(u32) NumSlots;
void ast_defines(Arena *a, const Ast *n, NumSlots *to); /* variables, those of scopes in it apart */
bool ast_assigns(const Ast *n, u32 slot);               /* to that variable of the same function */

/* scalar_expr.c */
_Noreturn void num_refuse(NumBuild *b, const Ast *at, const char *why);
bool num_is_number(LangKind k);
LangKind num_kind(const NumBuild *b, const NumKinds *at, u32 var);
void num_set_kind(NumBuild *b, u32 var, LangKind k); /* from here on */
u32 num_var_index(NumBuild *b, const VarRef *p);     /* its number; UINT32_MAX: it does not exist */
void num_assign(NumBuild *b, const Ast *at, u32 var, NumVal v);
VarId num_var(NumBuild *b, DType dt, ExprId first); /* declared before all others */
VarId num_as(NumBuild *b, u32 var, LangKind k);     /* the variable while it is of that kind */
NumVal num_expr(NumBuild *b, Ast *n);
ExprId num_read(NumBuild *b, NumVal v);
NumVal num_snapshot(NumBuild *b, NumVal v); /* as it is now */
NumVal num_convert(NumBuild *b, const Ast *at, NumVal v, const LangType *to);
ExprId num_condition(NumBuild *b, const Ast *at, NumVal v);
ExprId num_float(NumBuild *b, const Ast *at, NumVal v);
void num_require(NumBuild *b, ExprId cond);
NumVal num_operand(NumBuild *b, Ast *n);        /* nothing in it leaves a loop */
u32 num_find_var(NumBuild *b, const Ast *name); /* the first of its places that holds something */
NumVal num_value(NumBuild *b, const Ast *at, u32 var); /* what the variable holds */
/* Is it a variable of a call that was written out behind those? Nobody sees it any more. */
bool num_is_out_of_scope(const NumBuild *b, u32 var, u32 frames);
ExprId num_bound(NumBuild *b, Ast *n); /* of a range */
DType num_dtype(LangKind k);

/* scalar_array.c */
typedef struct NumShape { /* of numbers in arrays */
  LangKind kind;          /* KD_none: they are of several kinds, or rows of several lengths */
  u32 rank;
  u64 n, dim[NUM_RANK];
} NumShape;
NumShape num_shape(const ListObj *l);
u32 num_array(NumBuild *b, const NumShape *s);            /* 1 + its number; 0: it is too large */
NumVal num_element(NumBuild *b, u32 array, ExprId index); /* of one that has one extent */
/* 1 + the array that the variable n holds; 0: none. var: NULL, or gets its number. */
u32 num_array_of(NumBuild *b, const Ast *n, u32 *var);
NumVal num_indexed(NumBuild *b, const Ast *n);
bool num_length(NumBuild *b, Ast *n, NumVal *out); /* of an array, or of a row of one */
NumVal num_change_element(NumBuild *b, const Ast *n);
void num_copy_arrays(NumBuild *b); /* those that change, first of all */

/* scalar_call.c */
NumVal num_call(NumBuild *b, Ast *n);
u32 num_closure(NumBuild *b, const LangFn *fn); /* 1 + its number; nothing is taken along yet */
NumVal num_fn(NumBuild *b, Ast *n);             /* a function that is made */
void num_parameter(NumBuild *b, const Ast *at, u32 frame, u32 slot, NumVal v);
void num_captures(NumBuild *b, const Ast *at, u32 frame, u32 closure); /* as parameters */

/* scalar_stmt.c */
NumKinds num_kinds_copy(NumBuild *b, const NumKinds *from);
/* False: control does not come behind it. to: NULL, if nobody looks at the value. */
bool num_stmt(NumBuild *b, Ast *n, NumDest *to);
void num_put_result(NumBuild *b, const Ast *at, NumDest *to, NumVal v);
bool num_block(NumBuild *b, const Ast *n, NumDest *to);
ExprId num_has_fuel(NumBuild *b); /* inside of the outermost loop */
void num_use_fuel(NumBuild *b, i64 turns);
void num_nest(NumBuild *b, const Ast *n); /* a statement inside of another */
/* A call of the function that n defines, with what its variables hold. */
void num_function(NumBuild *b, Ast *n);
/* The whole loop; over: what it walks, or NULL. In the session of to. */
void num_loop(NumBuild *b, Ast *n, const ListObj *over);

/* scalar_recursion.c */
NumVal num_recursion(NumBuild *b, const Ast *n, u32 closure, const NumVal *arg);
NumVal num_rec_call(NumBuild *b, const Ast *n, u32 closure, const NumVal *arg);
/* Is it one of the functions that are being written, or will be? */
bool num_rec_has(const NumBuild *b, const LangFn *f);
/* What is written from here on runs only if no call waits, where there were calls of itself since
 * there were so many; n: what they are in. */
void num_rec_guard(NumBuild *b, const Ast *n, u32 calls);
u32 num_rec_calls(const NumBuild *b);
ExprId num_rec_loop_cond(NumBuild *b, ExprId cond); /* and no call waits */

#endif
