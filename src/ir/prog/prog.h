/* prog.h: the Prog, loops over buffers.
 *
 * A program owns buffers, variables, expressions and statements in arrays. Ids are 32-bit; 0 means
 * "none".
 * Statements form lists through `next`.
 * Expressions are trees (never shared), typed by dtype and lanes: lanes > 1 is a short vector.
 * Index arithmetic uses ordinary i64 expressions.
 * Buffers are row-major over their dimensions. Dimensions may be symbolic: memory is sized for the
 * bounds, strides follow the actual extents.
 * Expressions are strict: every load is performed, also in the branch of a select that is not
 * chosen, so every index must be in range. A load that may be out of range must stand under an `if`
 * or outside the range of the loop.
 * A name needs to differ only from the names visible at the same place; prog_names ensures that. */
#ifndef INGOT_PROG_H
#define INGOT_PROG_H

#include "ir/ir.h"
#include "ir/prog/record.h"
#include "ir/target.h"

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
  BS_in,    /* provided by the caller, read-only */
  BS_out,   /* provided by the caller, written */
  BS_const, /* data known at compile time */
  BS_temp,  /* in the arena */
  BS_state, /* in the arena, kept from run to run; initially data, or all zero */
  BS_local, /* scratch of the kernel that declares it; each thread, on a GPU each block, has its own
             */
  BS_reg,   /* registers: indexed only by constants (or unrolled variables); the first index may be
               the variable of a warp or thread loop */
  BS_COUNT
} BufSpace;

/* GPU_THREADS: the program runs on a GPU, where every iteration of a parallel loop has a worker. */
enum { MAX_LANES = 64, MAX_THREADS = 64, GPU_THREADS = 1 << 16 };

struct Buf {
  Str name;
  BufSpace space;
  DType dt;
  u32 lanes; /* lanes of one element; 1 for scalars, more only in BS_reg */
  u32 rows;  /* of a fragment, see Expr; else 0 */
  u32 rank;
  Dim *dim;
  BufId alias;  /* this buffer is a view of that memory (same type and number of elements); 0: not a
                   view */
  Tensor *data; /* BS_const: contents; BS_state: initial contents, NULL: zeros */
  u64 offset;   /* BS_temp, BS_state, BS_local of a planned program: offset in the arena, a multiple
                   of 64 */
  bool shared;  /* BS_state: belongs to another program of the same file, which initializes it */
};

/* Loop counters (i64), values named by let, and the symbols of Dims (i64). */
struct Var {
  Str name;
  DType dt;
  u32 lanes;
  u32 rows; /* of a fragment, see Expr; else 0 */
  i32 sym;  /* >= 0: holds the value of that symbol */
};

typedef enum ExprKind {
  EX_const,   /* imm */
  EX_var,     /* ref: variable */
  EX_load,    /* ref: buffer; arg: one index per dimension. lanes > 1: consecutive along the last
                 dimension, or one element of a register buffer */
  EX_op,      /* op: a scalar op, elementwise over lanes; arg */
  EX_splat,   /* arg[0] scalar -> lanes */
  EX_hreduce, /* reduces the lanes of arg[0] with op, in lane order -> scalar */
  EX_shuffle, /* selects lanes of arg[0] and further operands, concatenated; pick: lane numbers */
  EX_quad,    /* arg[0]: load of 4 lanes of i8 or u8, or 2 of i16, from memory -> their bits as one
                 i32, first lane lowest; or of a fragment of u8 -> a fragment of such i32 */
  EX_random,  /* uniform [0,1) of dtype; arg[0]: node seed, arg[1]: index; also depends on the seed
                 of the run */
  EX_turn,    /* arg[0]: load of a fragment from memory -> its transpose */
  EX_mma,     /* fragments: arg[2] + arg[0] times the transpose of arg[1] */
  EX_COUNT
} ExprKind;

/* A fragment is a matrix that a warp, or a matrix register of a CPU, holds: lanes = rows x columns,
 * row-major. In memory it is a box of the last two dimensions.
 * A warp: operands of a product are FRAG_ROWS rows of FRAG_BYTES bytes, of f16, bf16, or of f32
 * that the product rounds to tf32; sums are FRAG_ROWS x FRAG_ROWS of f32.
 * A matrix register: operands and sums are FRAG_ROWS x FRAG_ROWS of i32. Each element of an operand
 * is four bytes, and the product adds their OP_dot_i8x4. Memory may hold the left operand as u8,
 * FRAG_ROWS rows of TILE_BYTES. */
enum { FRAG_ROWS = 16, FRAG_BYTES = 32, FRAG_LANES = FRAG_ROWS * FRAG_ROWS, TILE_BYTES = 64 };

struct Expr {
  ExprKind kind;
  DType dt;
  u32 lanes;
  u32 rows; /* of a fragment; 0: not one */
  Op op;    /* EX_op, EX_hreduce */
  u32 ref;  /* EX_var, EX_load */
  u32 narg;
  ExprId *arg;
  Scalar imm;     /* EX_const */
  bool sat;       /* EX_op cast */
  bool small;     /* EX_op, saturating cast: the operand is in -2^30..2^30 */
  bool low;       /* EX_op dot_i8x4: all bytes of arg[0] are below 128 */
  const u8 *pick; /* EX_shuffle: one entry per lane */
};

typedef enum StmtKind {
  ST_for,      /* var from lo to hi (exclusive) by step > 0; body */
  ST_while,    /* cond; body */
  ST_if,       /* cond; body, other */
  ST_let,      /* declares var = value */
  ST_set,      /* var = value */
  ST_store,    /* buf[index] = value; lanes > 1: consecutive along the last dimension */
  ST_kernel,   /* one node or group; body. Reads only buffers and enclosing variables */
  ST_require,  /* ends the run with the message in label if cond is false; inside a kernel it ends
                  the kernel, and a copy after the kernel ends the run */
  ST_fence,    /* loads of buf that follow are not moved before it: see schedule.c */
  ST_prefetch, /* prefetches the cache line of element a of buf; may be past its end */
  ST_commit,   /* ends a group of async stores */
  ST_await,    /* the async stores of all groups but the last `step` ones are done */
  ST_COUNT
} StmtKind;

/* parallel: iterations may run concurrently. Their writes do not overlap. If only the body uses a
 * temporary, each iteration writes all that it reads. After the pass `parallel`, such a loop is
 * the whole body of its kernel; threads take chunks of it. Marked loops directly inside it are
 * merged into one iteration space: see prog_parallel_nest.
 * dot16_loop: int16 dot-product loop with a trip count divisible by 16; C adds a clang pragma that
 * forces the vector width.
 * nounroll: accumulators fill the registers; if the C compiler unrolls the loop, hoisted loads
 * spill.
 * warp, thread: iterations run at the same time on the warps or threads of a block, and the end of
 * the loop joins them: see pass/gpu/sync.c. barrier: the block meets before the loop, set there.
 * after: what precedes the loop in the kernel accesses no memory that other kernels write, set
 * there. */
typedef enum LoopFlag {
  LF_parallel = 1,
  LF_unroll = 2,
  LF_dot16_loop = 4,
  LF_nounroll = 8,
  LF_warp = 16,
  LF_thread = 32,
  LF_barrier = 64,
  LF_after = 128,
  LF_team = LF_warp | LF_thread
} LoopFlag;
enum { WARP_LANES = 32, BLOCK_WARPS = 32 }; /* threads of a warp; maximum warps of a block */

/* pin: the loaded value stays in its register or variable and is not reloaded at each use.
 * prefetch: the buffer is read as one stream; prefetch `step` bytes ahead.
 * async: a copy to scratch of a block that is done at an ST_await. */
typedef enum StoreFlag { SF_pin = 1, SF_prefetch = 2, SF_async = 4 } StoreFlag;
enum { ASYNC_GROUPS = 15 };      /* maximum groups of async stores that are not done */
enum { PREFETCH_MAX = 1 << 20 }; /* bytes; lines stay in L2 until they are used */

/* spills: if the compiler hoists all loads that follow the fence, they do not fit in registers.
 * Some compilers do not hoist them: for those, IG_FENCE_SPILL of C is empty. */
typedef enum FenceFlag { FF_spills = 1 } FenceFlag;

/* noinline: accumulators need all registers, so the kernel stays a function.
 * tree_walk: has more live integers than registers; they must not be moved to vector registers. */
typedef enum KernelFlag { KF_noinline = 1, KF_tree_walk = 2 } KernelFlag;

/* The label of a kernel starts with a word of [a-z0-9_], at most this long, that says what it
 * computes. Node names follow after a space. */
enum { KERNEL_LABEL_MAX = 40 };

struct Stmt {
  StmtKind kind;
  StmtId next;
  StmtId body, other; /* first statement of a list */
  VarId var;          /* for, let, set */
  ExprId a, b;        /* for: lo, hi; while, if, require: cond in a; let, set, store: value in a */
  i64 step;           /* for: increment; with SF_prefetch: distance in bytes */
  u8 flags;  /* for: LoopFlag; let, set, store to registers: StoreFlag; fence: FenceFlag; kernel:
                KernelFlag */
  u32 chunk; /* parallel for: iterations per chunk */
  BufId buf; /* store, fence, prefetch */
  u32 nidx;
  ExprId *idx;
  Str label;       /* kernel, require */
  RecordId record; /* kernel: its first record; for: the one that it belongs to; 0: none,
                      or several */
  u8 role;         /* for: LoopRole */
  StmtId into; /* kernel: the kernel that loop_fuse merged it into, or the original of this copy; 0:
                  none */
  Loc loc;
};

struct Prog {
  Ctx *c;
  Dims *dims;
  Str name;
  VEC(Buf) buf;
  VEC(Var) var;
  VEC(Expr *) page; /* pages of EXPR_PAGE expressions */
  u32 nexpr;
  VEC(Stmt) stmt;
  VEC(KernelRecord) record; /* at[0] is unused */
  VEC(BufId) in, out;       /* parameters in order */
  StmtId body;
  VarId *sym_var; /* variable of each symbol, 0 if not used */
  u32 nsym_var;
  MathMode math;   /* elementary functions of f32: see scalar_math_mode */
  u32 threads;     /* threads per run; 0 or 1: single-threaded */
  u32 grain;       /* minimum work of a chunk, in estimated ns; 0: the default */
  bool planned;    /* offsets are set */
  u64 arena_bytes; /* set by the pass plan */
};

/* A list under construction. */
typedef struct StmtList {
  StmtId first, last;
} StmtList;

/* Insertion point: the end of a list. Copies stay valid while others append. */
typedef struct Cursor {
  StmtId owner; /* statement that owns the list; 0: the program */
  bool other;   /* in the else part of owner */
  StmtId last;  /* a statement of that list, where the search for the end starts; 0: at the first */
} Cursor;

/* prog.c: construction. Builders check types and leave through internal_error(). */
Prog *prog_new(Ctx *c, Dims *dims);
/* Copy-on-append: the result shares everything with p; additions go only to the result. */
Prog *prog_extend(const Prog *p);
static inline Buf *prog_buf(const Prog *p, BufId b) {
  return &p->buf.at[b];
}
/* Expressions never move: code that visits one may build others. */
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
static inline KernelRecord *prog_record(const Prog *p, RecordId r) {
  return &p->record.at[r];
}
/* Does it have an offset in the arena of a planned program? */
static inline bool prog_is_planned(const Buf *b) {
  return !b->alias && (b->space == BS_temp || b->space == BS_state || b->space == BS_local);
}
/* BS_in and BS_out are also appended to p->in and p->out. Dimensions are copied. */
BufId prog_add_buf(Prog *p, BufSpace space, DType dt, const Dim *dim, u32 rank, Str name);
BufId prog_add_const(Prog *p, Tensor *t, Str name);
BufId prog_add_view(Prog *p, BufId of, const Dim *dim, u32 rank,
                    Str name);                   /* creates an alias with the same elements */
VarId prog_add_var(Prog *p, DType dt, Str name); /* name 0: generated */
/* input and data symbols; for derived ones use ex_dim */
VarId prog_sym_var(Prog *p, Sym s);

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
ExprId ex_mul_add(Prog *p, ExprId a, i64 k, ExprId b); /* a * k + b, of indices */
ExprId ex_splat(Prog *p, ExprId a, u32 lanes);
ExprId ex_shuffle(Prog *p, ExprId a, ExprId b, const u8 *pick, u32 lanes); /* b may be 0 */
ExprId ex_quad(Prog *p, ExprId a);
ExprId ex_fragment(Prog *p, BufId b, const ExprId *idx, u32 n, u32 rows, u32 columns);
ExprId ex_splat_fragment(Prog *p, ExprId a, u32 rows, u32 columns);
ExprId ex_turn(Prog *p, ExprId a);
ExprId ex_mma(Prog *p, ExprId a, ExprId b, ExprId c);
ExprId ex_random(Prog *p, DType dt, ExprId seed, ExprId index);
ExprId ex_dim(Prog *p, Dim d); /* i64 value of a dimension */
ExprId ex_copy(Prog *p, ExprId e);
ExprId ex_new(Prog *p, const Expr *e);           /* as given, unchecked; operands are copied */
ExprId ex_take(Prog *p, const Expr *e);          /* ex_new that takes over the array of operands */
bool ex_is_int(const Prog *p, ExprId e, i64 *x); /* an integer constant? */

Cursor prog_end(void);        /* end of the program's own list */
Cursor prog_inside(StmtId s); /* end of the body of s */
Cursor prog_else(StmtId s);   /* end of the else part of s */
StmtId prog_push(Prog *p, Cursor *at, StmtKind kind);
/* Moves to the end of the list, so that the next push need not search. */
void prog_seek_end(Prog *p, Cursor *at);
/* Inserts after at->last, or at the head of the list if that is 0; at->last becomes the new one. */
StmtId prog_insert(Prog *p, Cursor *at, StmtKind kind);
/* appends a copy of s, without its successors */
void stmts_add(Prog *p, StmtList *to, const Stmt *s);
void stmts_move(Prog *p, StmtList *to, StmtId s); /* appends an existing statement */
/* The link that holds the id of the successor of at->last. */
StmtId *prog_link(Prog *p, const Cursor *at);
/* Opens a loop and moves the cursor into it; returns its variable. To continue after the loop, keep
 * a copy of the cursor. at->owner becomes the loop statement. */
VarId prog_for(Prog *p, Cursor *at, ExprId lo, ExprId hi, const char *name);
StmtId prog_if(Prog *p, Cursor *at, ExprId cond);    /* moves the cursor into the body */
StmtId prog_while(Prog *p, Cursor *at, ExprId cond); /* moves the cursor into the body */
StmtId prog_kernel(Prog *p, Cursor *at, Str label);  /* moves the cursor into the body */
void prog_require(Prog *p, Cursor *at, ExprId cond, Str message);
void prog_store(Prog *p, Cursor *at, BufId b, const ExprId *idx, u32 n, ExprId value);
void prog_let(Prog *p, Cursor *at, VarId v, ExprId value);
void prog_set(Prog *p, Cursor *at, VarId v, ExprId value);
BufId prog_root(const Prog *p, BufId b); /* the buffer whose memory b shares */
/* Bytes of stored data: constants and initial contents of state. */
u64 prog_stored_bytes(const Prog *p);
/* Renames variables and buffers before printing so that no name shadows another. */
void prog_names(Prog *p);

/* prog_text.c, prog_parse.c: exact inverses; constants as for graph_print. The grammar is in
 * docs/ir.md. */
/* longest constant printed inline, in elements; deepest nesting of statements or operands */
enum { PROG_INLINE = 64, PROG_DEPTH = 400 };
extern const char *const buf_space_name[BS_COUNT];
void prog_print(Prog *p, StrBuf *out, StrBuf *weights);
Prog *prog_parse(Ctx *c, const char *text, size_t n, Str file, const u8 *weights, size_t nweights);

/* prog_bind.c: values of symbols, from the shapes of inputs. Fails with ERR_input if shapes do not
 * match. Result in a. */
i64 *prog_bind(Prog *p, Tensor *const *in, Arena *a);
bool prog_has_state(const Prog *p);
/* Does the statement set a symbol to a size kept with the state? at: its arena offset. */
bool prog_is_state_size(const Prog *p, StmtId id, Sym *sym, u64 *at);
/* Does the caller know s between runs, from the shape of an input or kept with the state? */
bool prog_caller_knows(const Prog *p, Sym s);

/* record.c */
/* Appends a record to those of a kernel. */
RecordId record_add(Prog *p, StmtId kernel, const KernelRecord *r);
/* Appends the records of kernel `from` to those of `to`, which got its loops. */
void record_move(Prog *p, StmtId from, StmtId to);
/* Gives a new kernel copies of the records of its loops, which belonged to kernel `from`. */
void record_split(Prog *p, StmtId from, StmtId to);
/* Corrects the records of a kernel whose accumulators were split or named. */
void record_fit(Prog *p, StmtId kernel);
void record_rename(Prog *p, StmtId kernel, BufId was, BufId buf); /* replaces a buffer */
void record_estimate(Prog *p); /* sets the times of all records */
/* A message if the records or the roles of a kernel contradict its loops, else NULL. */
const char *record_mismatch(Prog *p, StmtId kernel);
/* Examples: 6x2 of 8 lanes; of 8 lanes; F(4x4). Empty: no size */
Str record_size(const Prog *p, const KernelRecord *r);

/* prog_range.c: values an integer variable or expression can take; unknown: all of i64. */
typedef struct Range {
  i64 lo, hi;
} Range;
Range *prog_ranges(Prog *p, const i64 *env,
                   Arena *a); /* result by variable; env: values of input symbols, or NULL */
Range ex_range(Prog *p, ExprId e, const Range *var);

/* cost.c: estimated time of a single-threaded run; var: see prog_ranges. */
/* Upper bound of the trip count, *fixed: exact. A guess if unbounded. */
double stmt_trip_count(Prog *p, const Range *var, const Stmt *s, bool *fixed);
double stmt_time(Prog *p, const Range *var, StmtId s);     /* ns */
double list_time(Prog *p, const Range *var, StmtId first); /* ns, of first and its successors */
/* Time of a run in ns, with the overhead of kernel calls. each (or NULL): time of every kernel, by
 * statement. */
double prog_time(Prog *p, double *each);
double prog_steps(Prog *p); /* upper bound of statements executed */
/* Upper bound of the statements that a list executes; above `limit` if unknown. */
u64 list_runs(Prog *p, StmtId first, u64 limit);

/* prog_work.c: work of one kernel call; buffers exclude views and registers. */
typedef VEC(BufId) BufIds;
typedef struct KernelWork {
  double macs, bytes; /* multiply-adds as executed; bytes of all buffers touched */
  double whole;       /* integer part of macs */
  BufIds read, written;
} KernelWork;
KernelWork prog_work(Prog *p, const Range *range, StmtId kernel, Arena *a);

/* prog_visit.c: iterate over statements and expressions in pre-order, in the order of the text:
 *
 *   for (StmtVisit w = prog_visit(p, first); (s = prog_next(&w));)
 *     for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);)
 *       if (x.e->kind == EX_load) ... */
enum { VISIT_INLINE = 8 };
typedef struct ExprList {
  const ExprId *at;
  u32 n;
} ExprList;
typedef struct ExprVisit {
  Prog *p;
  Expr *e;                             /* the one visited */
  u32 below;                           /* operands to visit next; set to 0 to skip them */
  ExprId a, b;                         /* trees still to visit; 0: none */
  ExprList idx;                        /* trees still to visit after a and b */
  ExprList now;                        /* remaining siblings of e */
  u32 n, room;                         /* remaining siblings of the ancestors of e */
  ExprList *more, small[VISIT_INLINE]; /* more: in scratch, if small is full */
} ExprVisit;
typedef struct StmtVisit {
  Prog *p;
  StmtId id;   /* the one visited */
  bool skip;   /* set to skip the body */
  StmtId only; /* visit this statement and its body only; 0: the list */
  u32 n, room; /* lists still to visit */
  StmtId *more, small[VISIT_INLINE];
} StmtVisit;
void ex_suspend(ExprVisit *w);
ExprId ex_resume(ExprVisit *w);
/* Visits a tree; 0: nothing. */
static inline ExprVisit ex_visit(Prog *p, ExprId e) {
  ExprVisit w;
  w.p = p;
  w.a = e;
  w.more = NULL;
  w.below = w.b = w.idx.n = w.now.n = w.n = 0;
  return w;
}
/* Visits all trees of a statement, without its body. */
static inline ExprVisit ex_visit_stmt(Prog *p, const Stmt *s) {
  ExprVisit w = ex_visit(p, s->a);
  w.b = s->b;
  w.idx = (ExprList){s->idx, s->nidx};
  return w;
}
/* False at the end. */
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
StmtVisit prog_visit(Prog *p, StmtId first);    /* first, its successors, and their bodies */
StmtVisit prog_visit_one(Prog *p, StmtId only); /* only and its body */
Stmt *prog_next(StmtVisit *w);                  /* NULL at the end */
bool ex_mentions(Prog *p, ExprId e, VarId v);
bool ex_loads(Prog *p, ExprId e); /* does it read memory? */
/* The load if e copies memory, or, where a condition does not hold, zeros: select(splat(c), load,
 * splat(0)); else NULL. */
const Expr *ex_copied(const Prog *p, const Expr *e);
bool ex_same(Prog *p, ExprId a, ExprId b); /* structurally equal */
/* prog_lanes.c: vectors in registers. Piece: part of a vector that fits in one register; a scalar
 * if w is 1. */
typedef struct Piece {
  u32 off, w, q; /* first lane, number of lanes, index of the piece */
} Piece;
typedef struct Pieces {
  u32 n;
  Piece at[MAX_LANES];
} Pieces;
u32 lane_bytes(DType dt); /* bytes of an element in a register */
/* Maximum lanes of a piece for these statements, without nested kernels. */
u32 prog_lanes(Prog *p, StmtId first, const Target *t);
Pieces lane_pieces(u32 lanes, u32 max_lanes);
/* Storage type of a constant that is only loaded as vectors: f32 becomes f16 or bf16 if that is
 * exact and the target widens a whole register at once. */
DType lanes_stored(const Target *t, const Tensor *x);

/* prog_bytes.c */
/* Matches round(y) + zero saturated to an integer of 8 or 16 bits. Returns y; zero: 0: none. 0: no
 * match. */
ExprId ex_quantized(const Prog *p, const Expr *cast, ExprId *zero);
/* Matches round(y) + k saturated to bytes, optionally converted back to i16 or f32 less k. Returns
 * y; as: type of the bytes. 0: no match, or too few lanes. */
ExprId ex_bytes(const Prog *p, const Expr *x, DType *as, i64 *k);
/* is the operand of the saturating cast marked small? */
bool ex_bytes_small(const Prog *p, const Expr *x);
enum { BYTES_JOINED = 4 }; /* f32 registers whose bytes fill one register */
/* Is x a shuffle of all lanes of four registers? in_parts: in the order of byte_in_part, else
 * concatenated. */
bool ex_joins(const Prog *p, const Expr *x, bool *in_parts);
/* Matches bytes converted to f32 less k; returns the bytes, 0: no match. */
ExprId ex_of_bytes(const Prog *p, const Expr *x, i64 *k);
/* Matches ex_of_bytes of register q out of four in one variable, in the order of byte_in_part. */
ExprId ex_byte_part(const Prog *p, const Expr *x, u32 *q, i64 *k);
/* The load of f16 or bf16 whose bits x is; NULL: no match. */
const Expr *ex_half_load(const Prog *p, const Expr *x);
/* bits that s stores as f16 or bf16; 0: none */
ExprId ex_half_stored(const Prog *p, const Stmt *s);
/* x86 packs and unpacks wide registers within 128-bit parts. Returns the byte number of lane i of
 * register q in that order. */
static inline u32 byte_in_part(u32 q, u32 i) {
  return i / BYTES_JOINED * BYTES_JOINED * BYTES_JOINED + BYTES_JOINED * q + i % BYTES_JOINED;
}
i64 ex_splat_int(const Prog *p, ExprId id); /* integer constant in all lanes; INT64_MIN: not one */

/* prog_unfuse.c */
typedef struct UnfusedExpr {
  ExprId id;
  Expr expr;
} UnfusedExpr;
typedef struct UnfusedExprs {
  MathMode math; /* original math mode */
  bool any;      /* does anything differ? */
  VEC(UnfusedExpr) was;
} UnfusedExprs;
UnfusedExprs prog_unfuse(Prog *p, Arena *a);    /* rewrites p for a machine without FMA */
void prog_fuse(Prog *p, const UnfusedExprs *u); /* restores p */

/* prog_check.c: verifier of scopes, types, ranks, lanes, and provably out-of-range indices. */
void prog_check(Prog *p);       /* leaves through internal_error() */
void prog_check_input(Prog *p); /* checks a program parsed from text; fails with ERR_input */

enum { MOST_STATEMENTS = 20000 }; /* limit of statements in an unrolled copy */
/* prog_unroll.c: a copy of the list with its unrolled loops expanded; operands in a. 0: too long, a
 * bound is unknown, or the list contains kernels. */
StmtId prog_unroll(Prog *p, StmtId first, Arena *a);
/* prog_unroll that keeps loops with the role reduce and the loops inside of them. 0 also if
 * the bound of an unrolled loop is not a constant. */
StmtId prog_unroll_tiles(Prog *p, StmtId first, Arena *a);
/* Expands such a loop, except for those inside of it. */
StmtId prog_unroll_loop(Prog *p, StmtId loop, Arena *a);
StmtId prog_copy(Prog *p, StmtId first, Arena *a); /* keeps loops, skips kernels */
/* Does the list contain vectors, register buffers or unrolled loops? */
bool prog_is_special(Prog *p, StmtId first);
/* Warps of the block that runs a kernel, from its warp and thread loops; 0: it has none. */
u32 prog_block_warps(Prog *p, StmtId first);
/* Everything created after the mark is dropped on rewind, except for variables of symbols. */
typedef struct ProgMark {
  u32 expr, stmt, var;
} ProgMark;
ProgMark prog_mark(const Prog *p);
void prog_rewind(Prog *p, ProgMark m);

/* kernel_params.c: the parameters of a kernel: buffers, variables, seed of the run. */
typedef struct KernelParams {
  VEC(BufId) buf;
  VEC(VarId) var;
  bool random;
} KernelParams;
/* Entries hold the number of the last kernel that has the property. Zero-initialized, one per
 * Prog. */
typedef struct ParamMarks {
  u32 n, nvar;                  /* kernels so far; capacity for variables */
  u32 *declares, *takes, *sets; /* by variable */
  u32 *takes_buf, *writes;      /* by buffer */
} ParamMarks;
/* handed: the parallel loop whose trip count threads receive, or 0. */
KernelParams kernel_params(Prog *p, StmtId first, StmtId handed, ParamMarks *m, Arena *a);
/* Does the parameter share memory with another one (mem_overlap)? By index of u's buffers. */
bool *params_shared(Prog *p, const KernelParams *u, Arena *a);

/* parallel_nest.c: loops that threads share as one iteration space, outermost first. */
enum { PARALLEL_NEST_MAX = 16 };
typedef struct ParallelNest {
  u32 n; /* 0: single-threaded kernel */
  StmtId at[PARALLEL_NEST_MAX];
} ParallelNest;
ParallelNest prog_parallel_nest(Prog *p, StmtId first); /* first: body of a kernel */
ExprId loop_trip_expr(Prog *p, const Stmt *loop);       /* trip count */

/* CAP_ bits of target.h that a back end implements: for scalars, for vectors that fill a register
 * of some machine (4, 8 or 16 lanes of 32 bits), and for other vectors. bytes: it implements the
 * whole pattern of ex_bytes. apart: a shuffle is a separate statement, since all threads of a
 * warp execute it. */
typedef struct Caps {
  u32 scalars, registers, others;
  bool bytes, apart;
} Caps;

/* prog_expand.c */
/* Caps of a back end with functions for all scalar operations and the vector instructions of t; t
 * NULL: functions for vectors too. */
Caps caps_scalars(const Target *t);
Caps caps_warp(void); /* Caps of a GPU, where a lane is a scalar of a thread */
bool caps_has(const Caps *has, u32 what, u32 lanes);
/* State of legalizing a list; operands lie in a. */
typedef struct Legalize {
  Prog *p;
  Arena *a;
  const Caps *has;
  Map *singles; /* f16 or bf16 variable of the list -> its f32 replacement */
} Legalize;
/* Rewrites e in place; replaces operations the machine lacks by sequences. Their variables are
 * declared in statements appended to *out. */
void ex_legalize(const Legalize *o, ExprId e, StmtList *out);
void stmt_legalize(const Legalize *o, Stmt *s, StmtList *out);
/* Does the list, without nested kernels, use an operation that the machine lacks? */
bool prog_lacks(Prog *p, StmtId first, const Caps *has);

/* prog_quotient.c: x / by rounds to the same integer as fma(x, high, x * low), or as x * high if
 * low is 0, for all x. x is first clamped to min..max. False: not proven. */
typedef struct ReciprocalFma {
  float high, low;
} ReciprocalFma;
bool quotient_find(float by, i64 min, i64 max, ReciprocalFma *q);

/* prog_legalize.c: legalizes the list in place for a machine; returns its first statement.
 * max_lanes: maximum lanes of a piece, see prog_lanes; 0: keep whole vectors and register arrays.
 * New objects lie in a. */
StmtId prog_legalize(Prog *p, StmtId first, u32 max_lanes, const Caps *has, Arena *a);
/* prog_fragments.c: an unrolled copy of the list with loops for fragments of integers. */
bool prog_has_fragments(Prog *p, StmtId first);
StmtId prog_fragments(Prog *p, StmtId first, Arena *a);
/* A legalized copy of the list for back ends. With t, its loops are unrolled; 0 if that fails.
 * Without t, for any compiler: loops and arrays stay. Dropped by prog_rewind. */
StmtId kernel_legalize(Prog *p, StmtId first, const Target *t, const Caps *has, Arena *a);

/* prog_check_kernels.c: precondition of back ends that generate code from kernels; fails with
 * ERR_unsupported. */
void prog_check_kernels(Prog *p);
/* The condition to require after s, so that no symbol leaves its bounds; 0: nothing. range: see
 * prog_ranges. */
ExprId prog_bound(Prog *p, const Stmt *s, const Range *range);
/* The require statement with this condition at the start of the list; 0: none. */
StmtId prog_required(Prog *p, StmtId first, ExprId cond);
bool ex_reads_state(Prog *p, ExprId e);

#endif
