/* prog.h: the Prog, loops over buffers.
 *
 * A program owns buffers, variables, expressions and statements in arrays; ids are 32-bit, 0 is
 * "none". Statements form lists through `next`. Expressions are trees (never shared), typed by
 * dtype and lanes: lanes > 1 is a short vector. Index arithmetic is ordinary i64 expressions.
 * Buffers are row-major over their dimensions, which may be symbolic: the memory is sized for the
 * bounds, the strides follow the actual extents. Expressions are strict: every load is performed,
 * also in the branch of a select that is not chosen, so its index must be in range. What must not
 * be read stands under an `if` or outside the loop's range. Names need only differ from the names
 * visible at the same place; prog_names sees to that.
 */
#ifndef INGOT_PROG_H
#define INGOT_PROG_H

#include "ir/ir.h"
#include "ir/target.h"

typedef struct Prog Prog;
typedef struct KernelNote KernelNote;
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
  BS_state, /* in the arena, kept from run to run; before the first: data, or all zero */
  BS_local, /* scratch of the kernel that declares it; each thread has its own */
  BS_reg,   /* registers: indexed by constants (or unrolled variables) only */
  BS_COUNT
} BufSpace;

enum { MAX_LANES = 64, MAX_THREADS = 64 };

struct Buf {
  Str name;
  BufSpace space;
  DType dt;
  u32 lanes; /* of one element; 1 for scalars, more only in BS_reg */
  u32 rank;
  Dim *dim;
  BufId alias;  /* other view of the same memory, or 0; same type and number of elements */
  Tensor *data; /* BS_const; BS_state: what it begins with, NULL: zeros */
  u64 offset;   /* BS_temp, BS_state, BS_local of a planned program: place in the arena, a multiple
                   of 64 */
  bool shared;  /* BS_state: that of another program of the same file, which sets it up */
};

/* Loop counters (i64), values named by let, and the symbols of Dims (i64). */
struct Var {
  Str name;
  DType dt;
  u32 lanes;
  i32 sym; /* >= 0: holds that symbol */
};

typedef enum ExprKind {
  EX_const, /* imm */
  EX_var,   /* ref: variable */
  EX_load,  /* ref: buffer; arg: one index per dimension; lanes > 1: consecutive along the last, or
               one element of registers that hold vectors */
  EX_op,    /* op: a scalar op, elementwise over lanes; arg */
  EX_splat, /* arg[0] scalar -> lanes */
  EX_hreduce, /* op over the lanes of arg[0], in lane order -> scalar */
  EX_shuffle, /* lanes of arg[0] (and of the others behind them) chosen by pick */
  EX_quad,    /* arg[0]: load of four lanes of i8 or u8, or of two of i16, from memory -> their bits
                 as i32, the first lowest */
  EX_random,  /* uniform [0,1) of dtype; arg[0]: node seed, arg[1]: index; also uses the run's seed
               */
  EX_COUNT
} ExprKind;

struct Expr {
  ExprKind kind;
  DType dt;
  u32 lanes;
  Op op;   /* EX_op, EX_hreduce */
  u32 ref; /* EX_var, EX_load */
  u32 narg;
  ExprId *arg;
  Scalar imm;     /* EX_const */
  bool sat;       /* EX_op cast */
  bool small;     /* EX_op cast that saturates: of a number between -2^30 and 2^30 */
  bool low;       /* EX_op dot4: all bytes of arg[0] are below 128 */
  const u8 *pick; /* EX_shuffle: lanes entries */
};

typedef enum StmtKind {
  ST_for,     /* var from lo to hi (exclusive) by step, which is above 0; body */
  ST_while,   /* cond; body */
  ST_if,      /* cond; body, other */
  ST_let,     /* declares var = value */
  ST_set,     /* var = value */
  ST_store,   /* buf[index] = value; lanes > 1: consecutive along the last */
  ST_kernel,  /* names a region: one node or group; body. Reads only buffers and enclosing variables
               */
  ST_require, /* cond; the run ends with the message in label where it does not hold; in a kernel
               * the kernel does, and the same one stands behind it */
  ST_fence,   /* loads of buf that stand behind it are not done before it: see schedule.c */
  ST_prefetch, /* the line of memory a elements behind the start of buf, maybe behind its end, is
                * read soon: a hint */
  ST_COUNT
} StmtKind;

/* parallel: iterations may run at the same time. What they write does not overlap; a temporary that
 * only the body touches, and that an iteration reads, is written first by that iteration. Behind
 * the pass `parallel` such a loop is all of its kernel and is handed out to threads, chunk by
 * chunk; those that stand directly inside it and are marked too are handed out with it, as one
 * loop: see prog_parallel_nest. pairs: sums of products of 16 bits, a multiple of 16 of them; C
 * tells those compilers so that would rather take fewer at a time. nounroll: its sums leave no
 * register for what compilers load ahead where they write several steps out. */
typedef enum LoopFlag {
  LF_parallel = 1,
  LF_unroll = 2,
  LF_dot16_loop = 4,
  LF_nounroll = 8
} LoopFlag;

/* hold: what is loaded to registers, or to a variable, stays there and is not loaded again at each
 * use. ahead: it is read in one stream, of which memory `step` bytes further on may be fetched
 * already. */
typedef enum StoreFlag { SF_pin = 1, SF_prefetch = 2 } StoreFlag;
enum {
  PREFETCH_MAX = 1 << 20
}; /* bytes: as much as a core's own cache has, where they are to stay */

/* many: a compiler that does all loads behind the barrier before what uses them needs more
 * registers than there are, and keeps some in memory. Not all compilers do: IG_FENCE_SPILL of C is
 * empty for those. */
typedef enum FenceFlag { FF_spills = 1 } FenceFlag;

/* noinline: its sums need all registers, and it stays a function of its own. walks: it keeps more
 * integers than there are registers, which none should be put aside for. */
typedef enum KernelFlag { KF_noinline = 1, KF_tree_walk = 2 } KernelFlag;

/* The label of a kernel begins with a word, [a-z0-9_] and so long at most, that says what it
 * computes; behind a blank are the names of nodes. */
enum { KERNEL_LABEL_MAX = 40 };

/* How a kernel, or a part of it, is written, for people. */
struct KernelNote {
  u32 family;       /* row of families.def */
  Str size, reason; /* 0: there is nothing to say */
  const KernelNote *before;
};

struct Stmt {
  StmtKind kind;
  StmtId next;
  StmtId body, other; /* first statement of a list */
  VarId var;          /* for, let, set */
  ExprId a, b;        /* for: lo, hi; while, if, require: cond in a; let, set, store: value in a */
  i64 step;           /* for; with SF_prefetch: bytes */
  u8 flags;           /* for: LoopFlag; let, set, store to registers: StoreFlag; barrier:
                         FenceFlag; kernel: KernelFlag */
  u32 chunk;          /* for parallel: iterations handed out at once */
  BufId buf;          /* store, barrier */
  u32 nidx;
  ExprId *idx;
  Str label;             /* kernel, require */
  const KernelNote *how; /* kernel: the last of the families it is written in; NULL: not said */
  StmtId into; /* kernel: the one that loop_fuse has made it part of, or that it is a copy of; 0:
                  none */
  Loc loc;
};

struct Prog {
  Ctx *c;
  Dims *dims;
  Str name;
  VEC(Buf) buf;
  VEC(Var) var;
  VEC(Expr *) page; /* of EXPR_PAGE expressions each */
  u32 nexpr;
  VEC(Stmt) stmt;
  VEC(BufId) in, out; /* parameters in order */
  StmtId body;
  VarId *sym_var; /* variable of each symbol, 0 if not used */
  u32 nsym_var;
  MathMode math;   /* which functions of f32 it means: see scalar_math_mode */
  u32 threads;     /* that work on one run; 0 or 1: loops are walked by one */
  u32 grain;       /* least work of a chunk, in ns by estimate; 0: the default */
  bool planned;    /* offsets are set */
  u64 arena_bytes; /* of a planned program */
};

/* A list that is being put together. */
typedef struct StmtList {
  StmtId first, last;
} StmtList;

/* Where statements are appended: the end of a list. Copies stay valid while others append. */
typedef struct Cursor {
  StmtId owner; /* statement whose list it is; 0: the program */
  bool other;   /* its else part */
  StmtId last;  /* a statement of that list, or 0: where the search for the end begins */
} Cursor;

/* prog.c: construction. All builders are strict about types and leave through bug(). */
Prog *prog_new(Ctx *c, Dims *dims);
/* A program to which more can be added, and the given one does not have it: all that there is
 * belongs to both, and stays as it is. */
Prog *prog_extend(const Prog *p);
static inline Buf *prog_buf(const Prog *p, BufId b) {
  return &p->buf.at[b];
}
/* Expressions never move: code that walks one may build others. */
enum { EXPR_PAGE = 256 };
static inline Expr *prog_expr(const Prog *p, ExprId e) {
  return &p->page.at[e / EXPR_PAGE][e % EXPR_PAGE];
}
static inline Stmt *prog_stmt(const Prog *p, StmtId s) {
  return &p->stmt.at[s];
}
static inline Var *prog_var(const Prog *p, VarId v) {
  return &p->var.at[v];
}
/* Does it have a place in the arena of a planned program? */
static inline bool prog_is_planned(const Buf *b) {
  return !b->alias && (b->space == BS_temp || b->space == BS_state || b->space == BS_local);
}
/* BS_in and BS_out are also appended to p->in and p->out. Dimensions are copied. */
BufId prog_add_buf(Prog *p, BufSpace space, DType dt, const Dim *dim, u32 rank, Str name);
BufId prog_add_const(Prog *p, Tensor *t, Str name);
BufId prog_add_view(Prog *p, BufId of, const Dim *dim, u32 rank,
                    Str name);                   /* alias, same elements */
VarId prog_add_var(Prog *p, DType dt, Str name); /* name 0: made up */
VarId prog_sym_var(Prog *p, Sym s);              /* input and data symbols; derived ones: ex_dim */

/* Expressions. Operands are consumed: an expression has one parent, see ex_copy. */
ExprId ex_int(Prog *p, i64 x); /* i64 constant */
ExprId ex_const(Prog *p, DType dt, Scalar x);
ExprId ex_var(Prog *p, VarId v);
ExprId ex_load(Prog *p, BufId b, const ExprId *idx, u32 n);
ExprId ex_load_vec(Prog *p, BufId b, const ExprId *idx, u32 n, u32 lanes);
ExprId ex_op1(Prog *p, Op op, ExprId a);
ExprId ex_op2(Prog *p, Op op, ExprId a, ExprId b); /* folds integer constants and identities */
ExprId ex_op3(Prog *p, Op op, ExprId a, ExprId b, ExprId c);
ExprId ex_op(Prog *p, Op op, const ExprId *arg, u32 n); /* any arity, never folds */
ExprId ex_cast(Prog *p, DType to, ExprId a, bool sat);
ExprId ex_bitcast(Prog *p, DType to, ExprId a);
ExprId ex_splat(Prog *p, ExprId a, u32 lanes);
ExprId ex_hreduce(Prog *p, Op op, ExprId a);
ExprId ex_shuffle(Prog *p, ExprId a, ExprId b, const u8 *pick, u32 lanes); /* b 0: only a */
ExprId ex_quad(Prog *p, ExprId a);
ExprId ex_random(Prog *p, DType dt, ExprId seed, ExprId index);
ExprId ex_dim(Prog *p, Dim d); /* i64 value of a dimension */
ExprId ex_copy(Prog *p, ExprId e);
ExprId ex_new(Prog *p, const Expr *e);           /* as given, unchecked; operands are copied */
ExprId ex_take(Prog *p, const Expr *e);          /* the same with the operands' own array */
bool ex_is_int(const Prog *p, ExprId e, i64 *x); /* an integer constant? */

/* Statements. */
Cursor prog_end(void);        /* end of the program's own list */
Cursor prog_inside(StmtId s); /* end of the body of s */
Cursor prog_else(StmtId s);   /* end of the else part of s */
StmtId prog_push(Prog *p, Cursor *at, StmtKind kind);
/* Behind what others have pushed: the next push need not search. */
void prog_seek_end(Prog *p, Cursor *at);
/* Behind at->last, or at the head of the list where that is 0; at->last is the new one. */
StmtId prog_insert(Prog *p, Cursor *at, StmtKind kind);
void stmts_add(Prog *p, StmtList *to, const Stmt *s); /* a new statement, whatever stood behind s */
void stmts_move(Prog *p, StmtList *to, StmtId s);     /* one that is there */
/* Where the id of the statement behind at->last stands. */
StmtId *prog_link(Prog *p, const Cursor *at);
/* Opens a loop and moves the cursor into it; returns its variable. Keep a copy of the cursor to go
 * on behind the loop. at->owner is the loop statement afterwards. */
VarId prog_for(Prog *p, Cursor *at, ExprId lo, ExprId hi, const char *name);
StmtId prog_if(Prog *p, Cursor *at, ExprId cond);    /* moves the cursor into the body */
StmtId prog_while(Prog *p, Cursor *at, ExprId cond); /* likewise */
StmtId prog_kernel(Prog *p, Cursor *at, Str label);  /* likewise */
void prog_require(Prog *p, Cursor *at, ExprId cond, Str message);
void prog_store(Prog *p, Cursor *at, BufId b, const ExprId *idx, u32 n, ExprId value);
void prog_let(Prog *p, Cursor *at, VarId v, ExprId value);
void prog_set(Prog *p, Cursor *at, VarId v, ExprId value);
BufId prog_root(const Prog *p, BufId b); /* the buffer whose memory b shares */
/* Of what a product brings along: constants, and what states begin with. */
u64 prog_stored_bytes(const Prog *p);
/* Renames so that no name hides another that is visible. Printing and emitting begin with it. */
void prog_names(Prog *p);

/* prog_text.c, prog_parse.c: exact inverses; constants as for graph_print. The grammar is in
 * docs/ir.md. */
/* elements of a constant; nesting of statements, of operands */
enum { PROG_INLINE = 64, PROG_DEPTH = 400 };
extern const char *const buf_space_name[BS_COUNT];
void prog_print(Prog *p, StrBuf *out, StrBuf *side);
Prog *prog_parse(Ctx *c, const char *text, size_t n, Str file, const u8 *side, size_t nside);

/* prog_bind.c: symbols from the shapes of inputs; fails with ERR_input where they do not fit. In
 * arena a. */
i64 *prog_bind(Prog *p, Tensor *const *in, Arena *a);
bool prog_has_state(const Prog *p);
/* Does the statement set a symbol to a size that is kept with the state? at: its place in the
 * arena, an i64. */
bool prog_is_state_size(const Prog *p, StmtId id, Sym *sym, u64 *at);
/* Does whoever calls know it between runs: by the shape of an input, or kept with the state? */
bool prog_caller_knows(const Prog *p, Sym s);

/* prog_range.c: values an integer variable or expression can take; unknown: all of i64. */
typedef struct Range {
  i64 lo, hi;
} Range;
Range *prog_ranges(Prog *p, const i64 *env,
                   Arena *a); /* by variable; env: input symbols, or NULL */
Range ex_range(Prog *p, ExprId e, const Range *var);

/* cost.c: of a run by one thread, roughly; var: see prog_ranges. */
/* Iterations, at most; *fixed: exactly. A guess where there is no bound. */
double loop_trips(Prog *p, const Range *var, const Stmt *s, bool *fixed);
double stmt_time(Prog *p, const Range *var, StmtId s);     /* nanoseconds */
double list_time(Prog *p, const Range *var, StmtId first); /* of it and those behind it */
/* Of all, with what calling kernels takes; each, unless NULL: by statement, of every kernel. */
double prog_time(Prog *p, double *each);
double prog_steps(Prog *p); /* statements run, at most */
/* Statements that a list runs, at most; above `most` where there are more, or nobody knows. */
u64 list_runs(Prog *p, StmtId first, u64 most);

/* prog_work.c: of one call of a kernel; buffers without views and registers. */
typedef VEC(BufId) BufIds;
typedef struct KernelWork {
  double macs, bytes; /* multiply-adds, as it does them; of all that it touches */
  double whole;       /* of these, those of integers */
  BufIds read, written;
} KernelWork;
KernelWork prog_work(Prog *p, const Range *range, StmtId kernel, Arena *a);

/* prog_visit.c: one after the other, the outer before the inner, in the order of the text:
 *
 *   for (StmtVisit w = prog_visit(p, first); (s = prog_next(&w));)
 *     for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);)
 *       if (x.e->kind == EX_load) ...
 */
enum { VISIT_INLINE = 8 };
typedef struct ExprList {
  const ExprId *at;
  u32 n;
} ExprList;
typedef struct ExprVisit {
  Prog *p;
  Expr *e;                           /* the one visited */
  u32 below;                         /* operands that come next; set to 0 they are left out */
  ExprId a, b;                       /* trees that come behind this one; 0: none */
  ExprList idx;                      /* and those behind them */
  ExprList now;                      /* operands behind the one visited */
  u32 n, room;                       /* operands behind those around it */
  ExprList *more, few[VISIT_INLINE]; /* more, in scratch, if few are not enough */
} ExprVisit;
typedef struct StmtVisit {
  Prog *p;
  StmtId id;   /* the one visited */
  bool skip;   /* set: what is inside of it is left out */
  StmtId only; /* not those behind it; 0: all */
  u32 n, room; /* still to be visited */
  StmtId *more, few[VISIT_INLINE];
} StmtVisit;
void ex_suspend(ExprVisit *w);
ExprId ex_resume(ExprVisit *w);
/* A tree; 0: nothing. */
static inline ExprVisit ex_visit(Prog *p, ExprId e) {
  ExprVisit w;
  w.p = p;
  w.a = e;
  w.more = NULL;
  w.below = w.b = w.idx.n = w.now.n = w.n = 0;
  return w;
}
/* All trees of a statement, not of its body. */
static inline ExprVisit ex_visit_stmt(Prog *p, const Stmt *s) {
  ExprVisit w = ex_visit(p, s->a);
  w.b = s->b;
  w.idx = (ExprList){s->idx, s->nidx};
  return w;
}
/* False: there is none. */
static inline bool ex_next(ExprVisit *w) {
  if (w->below) {
    if (w->now.n) ex_suspend(w);
    w->now = (ExprList){w->e->arg, w->below};
  }
  ExprId id = w->now.n ? (w->now.n--, *w->now.at++) : ex_resume(w);
  if (!id) return false;
  w->e = prog_expr(w->p, id);
  w->below = w->e->narg;
  return true;
}
StmtVisit prog_visit(Prog *p, StmtId first);    /* it and those behind it, and their bodies */
StmtVisit prog_visit_one(Prog *p, StmtId only); /* it and its body */
Stmt *prog_next(StmtVisit *w);                  /* NULL: there is none */
bool ex_mentions(Prog *p, ExprId e, VarId v);
bool ex_loads(Prog *p, ExprId e);          /* does it read memory? */
bool ex_same(Prog *p, ExprId a, ExprId b); /* equal in structure */
/* prog_lanes.c: vectors in registers. A part of a vector that is in one, or a scalar if w is 1: */
typedef struct Piece {
  u32 off, w, q; /* first lane, lanes, number */
} Piece;
typedef struct Pieces {
  u32 n;
  Piece at[MAX_LANES];
} Pieces;
u32 lane_bytes(DType dt); /* of an element in a register */
/* Most lanes of a piece, for these statements without those of kernels among them. */
u32 prog_lanes(Prog *p, StmtId first, const Target *t);
Pieces lane_pieces(u32 lanes, u32 most);
/* The type in memory of a constant that is loaded in vectors only: f32 is f16 or bf16 where these
 * hold all of it and the machine widens a register of them at a time. */
DType lanes_stored(const Target *t, const Tensor *x);

/* prog_bytes.c */
/* What is saturated to bytes in x, round(y) + k; also if the bytes are made numbers of 16 bits or
 * floats again, less k. as: the type of the bytes. 0: x is something else, or of few lanes. */
ExprId ex_bytes(const Prog *p, const Expr *x, DType *as, i64 *k);
bool ex_bytes_small(const Prog *p, const Expr *x); /* is what it saturates known to be small? */
enum { BYTES_JOINED = 4 };                         /* registers of floats that fill one as bytes */
/* Is x a shuffle of all lanes of four registers? in_parts: as byte_in_part has them, else one
 * register behind the other. */
bool ex_joins(const Prog *p, const Expr *x, bool *in_parts);
/* Bytes that are made floats in x, less k; 0: x is something else. */
ExprId ex_of_bytes(const Prog *p, const Expr *x, i64 *k);
/* The same of the lanes of register q of a variable that holds four, as byte_in_part has them. */
ExprId ex_byte_part(const Prog *p, const Expr *x, u32 *q, i64 *k);
/* The load from memory of halves whose bits x is; NULL: x is something else. */
const Expr *ex_half_load(const Prog *p, const Expr *x);
ExprId ex_half_stored(const Prog *p, const Stmt *s); /* bits that are stored as halves; 0: none */
/* Wide registers are packed and unpacked in parts of four floats: the byte that lane i of register
 * q is, where nothing crosses from part to part. */
static inline u32 byte_in_part(u32 q, u32 i) {
  return i / BYTES_JOINED * BYTES_JOINED * BYTES_JOINED + BYTES_JOINED * q + i % BYTES_JOINED;
}
i64 ex_splat_int(const Prog *p, ExprId id); /* the integer in all lanes; INT64_MIN: it is none */

/* prog_unfuse.c */
typedef struct UnfusedExpr {
  ExprId id;
  Expr expr;
} UnfusedExpr;
typedef struct Unfused {
  MathMode math; /* as the program was */
  bool any;      /* does anything differ? */
  VEC(UnfusedExpr) was;
} Unfused;
Unfused prog_unfuse(Prog *p, Arena *a);    /* as on a machine without fma */
void prog_fuse(Prog *p, const Unfused *u); /* as it was */

/* prog_check.c: verifier: scopes, types, ranks, lanes, and indices that are provably out of range.
 */
void prog_check(Prog *p);       /* leaves through bug() */
void prog_check_input(Prog *p); /* the same for a program that came as text: ERR_input */

/* prog_unroll.c: a copy of the list with unrolled loops written out, whose operands lie in a; 0: it
 * would be too long, a bound is not known, or there are kernels in it. */
StmtId prog_unroll(Prog *p, StmtId first, Arena *a);
StmtId prog_copy(Prog *p, StmtId first, Arena *a); /* loops stay loops, kernels are not copied */
/* Are there vectors, registers or unrolled loops in the list, of which plain code has none? */
bool prog_is_special(Prog *p, StmtId first);
/* What was made behind the mark is dropped, but for variables of symbols. */
typedef struct ProgMark {
  u32 expr, stmt, var;
} ProgMark;
ProgMark prog_mark(const Prog *p);
void prog_rewind(Prog *p, ProgMark m);

/* kernel_params.c: what a kernel takes from outside: buffers, variables, the seed of the run. */
typedef struct KernelParams {
  VEC(BufId) buf;
  VEC(VarId) var;
  bool random;
} KernelParams;
/* The number of the kernel looked at last stands at what it has; zero at first, for one Prog. */
typedef struct ParamMarks {
  u32 n, nvar;                  /* kernels so far; room for variables */
  u32 *declares, *takes, *sets; /* by variable */
  u32 *takes_buf, *writes;      /* by buffer */
} ParamMarks;
/* handed: the loop whose end threads are told, or 0. */
KernelParams kernel_params(Prog *p, StmtId first, StmtId handed, ParamMarks *m, Arena *a);
/* By buffer taken: does it share memory with another one (mem_overlap)? */
bool *params_shared(Prog *p, const KernelParams *u, Arena *a);

/* parallel_nest.c: loops that threads share as one, outermost first. */
enum { PARALLEL_NEST_MAX = 16 };
typedef struct ParallelNest {
  u32 n; /* 0: one thread runs the kernel */
  StmtId at[PARALLEL_NEST_MAX];
} ParallelNest;
ParallelNest prog_parallel_nest(Prog *p, StmtId first); /* of a kernel with this body */
ExprId loop_trip_expr(Prog *p, const Stmt *loop);       /* its iterations */

/* What a back end has operations for: HAS_ of target.h, of one lane, of vectors that fill a
 * register of some machine (4, 8 or 16 lanes of 32 bits), and of others. bytes: the whole of what
 * ex_bytes finds. */
typedef struct Caps {
  u32 scalars, registers, others;
  bool bytes;
} Caps;

/* prog_expand.c */
/* Of one that has functions for all scalars, and for vectors the instructions of a machine; NULL:
 * for vectors too. */
Caps caps_scalars(const Target *t);
bool caps_has(const Caps *has, u32 what, u32 lanes);
/* A list that becomes legal; operands lie in a. */
typedef struct Legalize {
  Prog *p;
  Arena *a;
  const Caps *has;
  Map *singles; /* by variable of halves that the list declares: that of f32 in its place */
} Legalize;
/* Change it in place: what the machine does not have is a sequence. Variables of that are declared
 * in statements behind *out. */
void ex_legalize(const Legalize *o, ExprId e, StmtList *out);
void stmt_legalize(const Legalize *o, Stmt *s, StmtList *out);
/* Is there anything in the list, without the kernels in it, that the machine does not have? */
bool prog_lacks(Prog *p, StmtId first, const Caps *has);

/* prog_quotient.c: x / by rounds to the same whole number as fma(x, high, x * low), low 0: as
 * x * high, for all x if numbers below least and above most count as these; false: it may not. */
typedef struct Quotient {
  float high, low;
} Quotient;
bool quotient_find(float by, i64 least, i64 most, Quotient *q);

/* prog_legalize.c: the list as a machine can do it, changed in place; its first statement. most:
 * lanes of a piece, see prog_lanes; 0: vectors stay whole, and registers arrays. What is made lies
 * in a. */
StmtId prog_legalize(Prog *p, StmtId first, u32 most, const Caps *has, Arena *a);
/* A copy of the list as back ends write it: for t with its loops written out, 0 if they cannot be;
 * without t, for any compiler, with loops and arrays. It goes with prog_rewind. */
StmtId kernel_legalize(Prog *p, StmtId first, const Target *t, const Caps *has, Arena *a);

/* prog_check_kernels.c: what back ends that make code of kernels begin with; leaves as
 * ERR_unsupported. */
void prog_check_kernels(Prog *p);
/* What must be required behind a statement, so that no symbol leaves its bounds; 0: nothing.
 * range: see prog_ranges. */
ExprId prog_bound(Prog *p, const Stmt *s, const Range *range);
/* The require of this condition among those that begin the list; 0: there is none. */
StmtId prog_required(Prog *p, StmtId first, ExprId cond);
bool ex_reads_state(Prog *p, ExprId e);

#endif
