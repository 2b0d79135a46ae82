/* prog.h: the Prog, loops over buffers.
 *
 * A program owns buffers, variables, expressions and statements in arrays; ids are 32-bit, 0 is "none".
 * Statements form lists through `next`. Expressions are trees (never shared), typed by dtype and lanes:
 * lanes > 1 is a short vector. Index arithmetic is ordinary i64 expressions.
 * Buffers are row-major over their dimensions, which may be symbolic: the memory is sized for the bounds,
 * the strides follow the actual extents.
 */
#ifndef INGOT_PROG_H
#define INGOT_PROG_H

#include "ir/ir.h"

typedef struct Prog Prog;
typedef u32 BufId;
typedef u32 VarId;
typedef u32 ExprId;
typedef u32 StmtId;
typedef struct Buf Buf;
typedef struct Var Var;
typedef struct Expr Expr;
typedef struct Stmt Stmt;

typedef enum BufSpace {
  BS_in,    /* given by the caller, read only */
  BS_out,   /* given by the caller, written */
  BS_const, /* data known now */
  BS_temp,  /* in the arena */
  BS_local, /* scratch of the kernel that declares it */
  BS_reg,   /* registers: indexed by constants (or unrolled variables) only */
  BS_COUNT
} BufSpace;

struct Buf {
  Str name;
  BufSpace space;
  DType dt;
  u32 lanes; /* of one element; 1 for scalars, more only in BS_reg */
  u32 rank;
  Dim *dim;
  BufId alias;  /* other view of the same memory, or 0; same number of elements */
  Tensor *data; /* BS_const */
};

/* Loop counters, scalars set by let/set, and the symbols of Dims (i64). */
struct Var {
  Str name;
  DType dt;
  u32 lanes;
  i32 sym; /* >= 0: holds that symbol */
};

typedef enum ExprKind {
  EX_const,   /* imm */
  EX_var,     /* ref: variable */
  EX_load,    /* ref: buffer; arg: one index per dimension; lanes > 1: consecutive along the last */
  EX_op,      /* op: a scalar op, elementwise over lanes; arg */
  EX_splat,   /* arg[0] scalar -> lanes */
  EX_hreduce, /* op over the lanes of arg[0], in lane order -> scalar */
  EX_shuffle, /* lanes of arg[0] (and arg[1] behind them) chosen by list */
  EX_random,  /* uniform [0,1) of dtype; arg[0]: node seed, arg[1]: index; also uses the run's seed */
  EX_COUNT
} ExprKind;

struct Expr {
  ExprKind kind;
  DType dt;
  u32 lanes;
  Op op;         /* EX_op, EX_hreduce */
  u32 ref;       /* EX_var, EX_load */
  u32 narg;
  ExprId *arg;
  Scalar imm;    /* EX_const */
  bool sat;      /* EX_op cast */
  const u8 *pick; /* EX_shuffle: lanes entries */
};

typedef enum StmtKind {
  ST_for,    /* var from lo to hi (exclusive) by step; body */
  ST_while,  /* cond; body */
  ST_if,     /* cond; body, other */
  ST_let,    /* declares var = value */
  ST_set,    /* var = value */
  ST_store,  /* buf[index] = value; lanes > 1: consecutive along the last */
  ST_kernel, /* names a region: one node or group; body. Reads only buffers and enclosing variables */
  ST_COUNT
} StmtKind;

typedef enum LoopFlag { LF_parallel = 1, LF_simd = 2, LF_unroll = 4 } LoopFlag;

struct Stmt {
  StmtKind kind;
  StmtId next;
  StmtId body, other; /* first statement of a list */
  VarId var;          /* for, let, set */
  ExprId a, b;        /* for: lo, hi; while, if: cond in a; let, set, store: value in a */
  i64 step;           /* for */
  u8 flags;           /* for: LoopFlag */
  u32 chunk;          /* for parallel: iterations handed out at once */
  BufId buf;          /* store */
  u32 nidx;
  ExprId *idx;
  Str label;          /* kernel */
  Loc loc;
};

struct Prog {
  Ctx *c;
  Dims *dims;
  Str name;
  VEC(Buf) buf;
  VEC(Var) var;
  VEC(Expr) expr;
  VEC(Stmt) stmt;
  VEC(BufId) in, out; /* parameters in order */
  StmtId body;
  VarId *sym_var;     /* variable of each symbol, 0 if not used */
  u32 nsym_var;
};

/* prog.c: construction. Statements are appended to the list that prog_at points to. */
Prog *prog_new(Ctx *c, Dims *dims);
static inline Buf *prog_buf(Prog *p, BufId b) { return &p->buf.at[b]; }
static inline Expr *prog_expr(Prog *p, ExprId e) { return &p->expr.at[e]; }
static inline Stmt *prog_stmt(Prog *p, StmtId s) { return &p->stmt.at[s]; }
BufId prog_add_buf(Prog *p, BufSpace space, DType dt, const Dim *dim, u32 rank, Str name);
VarId prog_add_var(Prog *p, DType dt, Str name); /* name 0: made up, unique */
VarId prog_sym_var(Prog *p, Sym s);
ExprId ex_int(Prog *p, i64 x);                  /* i64 constant */
ExprId ex_const(Prog *p, DType dt, Scalar x);
ExprId ex_var(Prog *p, VarId v);
ExprId ex_load(Prog *p, BufId b, const ExprId *idx, u32 n);
ExprId ex_op1(Prog *p, Op op, ExprId a);
ExprId ex_op2(Prog *p, Op op, ExprId a, ExprId b); /* folds integer constants and identities */
ExprId ex_op3(Prog *p, Op op, ExprId a, ExprId b, ExprId c);
ExprId ex_cast(Prog *p, DType to, ExprId a, bool sat);
ExprId ex_dim(Prog *p, Dim d);                  /* i64 value of a dimension */
ExprId ex_copy(Prog *p, ExprId e);              /* expressions are trees: copy before a second use */
typedef struct Cursor { StmtId *head; StmtId last; } Cursor; /* where statements are appended */
StmtId prog_push(Prog *p, Cursor *at, StmtKind kind);
/* Opens a loop and moves the cursor into it; returns its variable. */
VarId prog_for(Prog *p, Cursor *at, ExprId lo, ExprId hi, const char *name);
void prog_store(Prog *p, Cursor *at, BufId b, const ExprId *idx, u32 n, ExprId value);
void prog_let(Prog *p, Cursor *at, VarId v, ExprId value);
void prog_set(Prog *p, Cursor *at, VarId v, ExprId value);

/* prog_text.c: exact inverses; constants as for graph_print. */
void prog_print(Prog *p, Text *out, Text *side);
Prog *prog_parse(Ctx *c, const char *text, size_t n, Str file, const u8 *side, size_t nside);

/* prog_check.c: verifier: scopes, types, ranks, and bounds where they can be proven; leaves through bug(). */
void prog_check(Prog *p);

#endif
