/* c.h: private to src/back/c: what the files of the C emitter share.
 *
 * Identifiers in function bodies are never names of the model: they are made here (in0, out0, w3,
 * t12, x, y), are the word of a kernel, or are what a pass calls a loop (cname.c), so no name can
 * clash or inject. Prototypes and macros of the header carry names of the model as identifiers that
 * cparam.c makes. Elsewhere names appear only inside comments, reduced to harmless characters.
 */
#ifndef INGOT_BACK_C_H
#define INGOT_BACK_C_H

#include "back/back.h"

typedef struct Emit Emit;

/* Snippets of supporting C, pasted only where used: see crt.c. */
typedef enum RtSnippet {
#define RT(name, needs, text) RT_##name,
#include "back/c/crt.def"
#undef RT
  RT_COUNT
} RtSnippet;

/* How vectors, registers and unrolled loops are written. */
typedef enum BodyMode {
  BM_plain,  /* there are none */
  BM_loops,  /* arrays and loops over lanes: any compiler */
  BM_vectors /* GNU vectors in variables with names, loops written out: the target */
} BodyMode;

enum { WIDTHS = 7 }; /* powers of two up to MAX_LANES */

/* The body of a function, while it is written. */
typedef struct FuncBody {
  BodyMode mode;
  u32 w;    /* lanes of the value being written: BM_vectors */
  u32 id;   /* of all bodies of the file, from 1 on */
  Arena *a; /* what lasts as long as the body */
  u32 nreg, nlet;
  StrBuf decl;  /* of registers */
  Map declared; /* by name */
  u64 frame;    /* bytes its variables and values could take */
} FuncBody;

/* Operands of C operators; one weaker than its place is put in parentheses. */
typedef enum Prec {
  PR_any,
  PR_cond,
  PR_or,
  PR_and,
  PR_eq,
  PR_rel,
  PR_add,
  PR_mul,
  PR_unary,
  PR_atom
} Prec;

/* Weights of a file: those of several bodies that have the same bytes are one. */
typedef struct Weight {
  const Tensor *data;
  Str name;
  u64 users; /* bodies, one bit each */
  u64 place; /* offset in the file of weights */
} Weight;
typedef struct WeightPool {
  Map at; /* hash -> 1 + number of the last with it */
  VEC(Weight) w;
  VEC(u32) before; /* by number: 1 + number of another with the same hash */
} WeightPool;

/* Names of variables in the function being written. */
typedef struct LocalNames {
  VEC(const char *) scope; /* of the loops around what is being written */
  VEC(const char *) mark;  /* by number of the mark, in a kernel */
} LocalNames;

/* C name of each variable in scope. */
typedef struct VarNames {
  const char **at;
  u32 n; /* there is room for */
} VarNames;

/* ---- what a body has, each known to one file of this folder or two ---- */

typedef struct EntryCode {
  StrBuf params; /* of NAME_run behind the arena */
  StrBuf args;   /* the names of these */
  StrBuf text;   /* body of NAME_run */
} EntryCode;

typedef struct KernelCode {
  Map at;                 /* text of a kernel without its names -> 1 + number */
  VEC(const char *) word; /* by number: what stands between NAME_ and _number */
  StrBuf text;            /* all of them */
  StrBuf heads;           /* their declarations, for parts that are compiled separately */
  u64 *part_bytes;        /* by part: of its kernels */
} KernelCode;

typedef struct WeightForm {
  WeightPool *pool; /* NULL: the file has one program */
  u32 *number;      /* by buffer: in the names of constants */
  bool text;        /* long ones are strings */
  bool blob;        /* or in a file of their own: */
  u64 *place;       /* by buffer: offset there */
  u64 table;        /* and that of EmitExtra.table */
  u64 bytes, hash;
} WeightForm;

/* What kernels and the entry could take of the stack, and how long their text is. */
typedef struct FrameSizes {
  u32 most_values;               /* of a kernel: parameters, variables and operations */
  u32 most_params;               /* of a kernel */
  u32 most_bytes;                /* that these, and all else of plain loops, take */
  u64 entry_frame, kernel_frame; /* of the entry, of the largest kernel */
  u64 code;                      /* bytes of statements, without names that comments quote */
} FrameSizes;

typedef struct Statuses {
  VEC(Str) text; /* of requires */
  Map at;        /* text -> 1 + number */
} Statuses;

typedef struct SharedKernels {
  u32 n, args;   /* kernels that threads share; the most arguments of one */
  StrBuf cases;  /* that call them */
  StrBuf shares; /* functions that ask threads to */
} SharedKernels;

typedef struct Profile {
  VEC(KernelFacts) kernel; /* in the order of the entry */
  Map at;                  /* StmtId -> 1 + number */
  const Range *range;      /* by variable; NULL: not needed yet */
} Profile;

/* Vectors of the target: what of the extension, and which functions on them, the text uses. */
typedef struct VectorCode {
  bool twice;                    /* some body is written twice */
  bool type[DT_COUNT][WIDTHS];   /* C vectors used; loads and stores through pointers use */
  bool memory[DT_COUNT][WIDTHS]; /* these */
  Map written;                   /* by name: functions on vectors that are written */
  StrBuf text;
  u64 quick_frame;    /* of the functions of cmath.c */
  bool fences;        /* loads are kept where they are */
  bool pins;          /* loaded vectors are kept in registers */
  bool prefetches;    /* memory is fetched ahead */
  bool prefetches_at; /* lines of it are */
  bool intrinsics;    /* of x86, for what vectors cannot say */
  bool dot4;          /* some of them for several products at a time */
} VectorCode;

/* Where a piece of the state lies in the arena, and among the others. */
typedef struct StatePiece {
  u64 at, from, n;
} StatePiece;
typedef VEC(StatePiece) StatePieces;

/* A body of a file: what its programs have in common. Kernels with the same text are one, whichever
 * of them call it. */
typedef struct CpuVariant {
  Emit *first; /* of the programs */
  u32 n;
  KernelCode kernels;
  Statuses why;
  SharedKernels shared_kernels;
  Profile profile;
  bool need[RT_COUNT];
  bool math[OP_SCALARS][MM_COUNT]; /* functions used */
  VectorCode vec;
  bool dispatched;   /* one of several bodies: which of them runs is found out by running */
  bool vectors_only; /* it is compiled only where its vectors are */
} CpuVariant;

/* By buffer. */
typedef struct BufMarks {
  bool *used;    /* some kernel reads or writes it */
  char *written; /* in the kernel being written */
  u32 *param;    /* 1 + number of the parameter it is in that kernel */
  u32 *reg;      /* registers: their number, */
  u32 *reg_body; /* in this body */
} BufMarks;

/* What is kept from run to run. */
typedef struct StateInit {
  bool state;   /* something is */
  BufId begins; /* what it begins with where that is not zero, in pieces; 0: it is */
  StatePieces pieces;
} StateInit;

/* A program of a body, while it is written: an entry of the file. */
struct Emit {
  Ctx *c;
  CpuVariant *variant;
  Emit *next; /* program of the body */
  Prog *p;    /* as it was given, and what is made of it here: expressions of extents, symbols */
  const EmitOptions *o;
  const EmitEntry *given;
  const char *marks[5]; /* suffix of the body's names, NAME, that in capitals, and both with the
                           name of the entry: see put_template */
  StrBuf *t;            /* being written */
  u32 indent;
  EntryCode entry;
  WeightForm weights;
  FrameSizes sizes;
  ParamMarks marked;
  LocalNames names;
  VarNames var;
  BufMarks by_buf;
  StateInit state_init;
  bool random;
  bool *open_out; /* by result: its shape is known only after running */
  StmtId shared;  /* the loop that threads share, of the kernel being written; 0: none */
  bool in_kernel; /* the text being written is that of a kernel, not of the entry */
  FuncBody b;
  u32 nbodies;
  VarId hole[3]; /* variables that stand for operands: see put_scalar_op */
};

/* cstatus.c */
u32 status_add(Emit *e, Loc loc, Str message); /* the status that means this */
void put_why(Emit *e, StrBuf *t);              /* NAME_why, once all are known */
/* The rest of a function that returns the line of its argument; the last for numbers beyond. */
void put_string_lookup(StrBuf *t, const char *number, const char *const *line, u32 n);

/* cname.c */
const char *kernel_ident(Emit *e, Str label); /* part of an identifier: what it computes */
void put_kernel_name(Emit *e, StrBuf *t, const char *prefix, u32 number);
/* The name of a loop's variable, or of one that is set once; in a kernel a mark that stands for it.
 * The first is in scope until name_end. */
const char *name_loop(Emit *e, VarId v);
void name_end(Emit *e);
const char *name_let(Emit *e, VarId v);
void put_param_mark(StrBuf *t, u32 number); /* stands for a parameter of the kernel */
/* The text of a kernel with names in place of its marks. Returns its length with a letter, and a
 * number where there is one, for each name: long names are not more code. */
u64 put_named(const LocalNames *names, StrBuf *t, const StrBuf *marked, const char *const *param);

/* cindex.c */
void put_index(Emit *e, ExprId x); /* index arithmetic: plain ptrdiff_t */
/* t3[(i * 4 + j) * 8]; with lanes > 1 the lane z */
void put_element(Emit *e, BufId b, const ExprId *idx, u32 n, u32 lanes);
bool fold_int(Emit *e, ExprId x, i64 *value); /* a number, or true or false? */
void put_dim(Emit *e, Dim d);

/* cexpr.c */
void put_expr(Emit *e, ExprId x);          /* data: wraps, converts, rounds as eval.c says */
void put_data(Emit *e, ExprId x, Prec at); /* the same as an operand */
void put_operands(Emit *e, const Expr *x); /* (a, b), of a function */
void put_binary(Emit *e, const Expr *x, const char *op, Prec mine, Prec at);
void put_unary(Emit *e, const char *sign, ExprId x, Prec at);
void open_paren(Emit *e, Prec mine, Prec at);
void close_paren(Emit *e, Prec mine, Prec at);
_Noreturn void unsupported(Emit *e, const char *what);
const char *c_type(DType dt);    /* of a value */
const char *c_storage(DType dt); /* of an element in memory */
const char *c_infix(Op op);      /* NULL: not an operator of C */
void put_buf_name(Emit *e, BufId b);
void put_float(StrBuf *t, bool wide, double x); /* a literal that reads back as x */
void need(Emit *e, RtSnippet n);
void put_stored(Emit *e, DType dt, ExprId x); /* a value as it lies in memory */

/* cstmt.c */
void put_line(Emit *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void put_block(Emit *e, StmtId first);
void begin_line(Emit *e);

/* cbody.c: a list of statements as the body of a function, twice if it has vectors */
void put_body(Emit *e, StmtId first, StmtId owner);
void put_reg(Emit *e, BufId b, const ExprId *idx, u32 n, bool whole);

/* cvec.c: vectors as arrays */
void put_shuffle_lane(Emit *e, const Expr *shuffle,
                      u32 i); /* lane i of what it makes; in any form */
void put_reduction(Emit *e, const Stmt *let);
void put_lanes_assign(Emit *e, const Stmt *s);
void put_lanes_store(Emit *e, const Stmt *s);

/* chelper.c: types of vectors as long as the one being written, and functions on them */
DType elem_of(DType dt); /* of their elements */
DType signed_of(u32 bytes);
DType unsigned_of(u32 bytes);
const char *vector_type(Emit *e, DType k, bool memory); /* memory: behind a pointer */
/* Opens conversions; the caller closes with what is returned. */
const char *open_convert(Emit *e, StrBuf *t, DType from, DType to);
const char *need_vector(Emit *e, const char *what, DType k, const char *loop); /* of cvop.def */
const char *need_loop(Emit *e, const Expr *x, DType from); /* a scalar operation, lane by lane */
const char *need_narrow(Emit *e, DType dt, bool store);    /* narrow floats likewise */
void put_scalar_op(Emit *e, const Expr *x, DType from, const char *const *name);
bool is_wanted(Emit *e, const char *name); /* is the text of this function still to be written? */

/* cvop.c: vectors of the target */
void put_vector(Emit *e, ExprId x, Prec at);
void put_vector_store(Emit *e, const Stmt *s);
void put_vectors(Emit *e, StrBuf *out); /* types and functions, behind the runtime */

/* cmath.c */
const char *need_quick(Emit *e, const Expr *x); /* of quick.def, for the vector being written */

/* ckernel.c */
void put_kernel_call(Emit *e, StmtId s); /* writes the function too, unless an equal one exists */

/* cemit.c */
/* Writes the kernels and the entry of one more program of a body, each aside. pool: of a file with
 * several programs, or NULL. */
CpuVariant *variant_begin(Ctx *c);
Emit *emit_begin(CpuVariant *all, const EmitEntry *given, const EmitOptions *o, WeightPool *pool,
                 const char *suffix, Blob *blob);
EmitFacts facts_of(const CpuVariant *body);
u64 arena_bytes(const Emit *e);
u64 buf_elements(Emit *e, BufId b);     /* at most */
u64 buf_bytes(Emit *e, BufId b);        /* at most */
bool is_argument(const Emit *e, Sym s); /* a size that the caller gives? */
/* The arguments of NAME_run behind the arena, each behind a comma; how they are written, with %u
 * for their numbers: */
typedef struct ArgForms {
  const char *size, *seed, *in, *out, *shape;
} ArgForms;
void put_run_args(Emit *e, StrBuf *t, const ArgForms *f);
/* Extents of results, form with %u for result and axis: those that are open, known only after
 * running, or the others as far as they are no numbers. */
void put_out_shapes(Emit *e, const char *form, bool open);
/* Of a function that callers know: "static " for one of several. */
const char *linkage(const Emit *e);
void put_banner(Emit *e, StrBuf *t, const char *suffix);
void put_declarations(Emit *e, StrBuf *t, const EmitFacts *facts);
void put_prelude(Emit *e, StrBuf *t);
void put_warning_pragmas(StrBuf *t);  /* warnings that are off */
void put_support(Emit *e, StrBuf *t); /* functions that kernels call */
void put_functions(Emit *e, StrBuf *t);
bool any_state(const Emit *e); /* of the body's programs */

/* cparam.c: the interface as callers see it */
EmitParams list_params(Emit *e); /* parameters of NAME_run after the arena, with their names */
void put_statuses(Emit *e, StrBuf *t); /* enum NAME_status */
void put_prototype(Emit *e,
                   StrBuf *t); /* NAME_run of the entry, with a comment on each parameter */
void put_named_macros(Emit *e, StrBuf *t); /* sizes of arrays by their names */

/* cstate.c: what is kept from run to run */
bool has_own_state(const Prog *p);
bool has_shared_state(const Prog *p); /* of the first program of the file */
void begin_state(Emit *e);            /* before tables are made for its buffers */
void put_reset(Emit *e, StrBuf *t);

/* csplit.c: parts that are compiled side by side */
bool has_parts(const Emit *e);
void split_begin(Emit *e);
u32 split_choose(Emit *e, u64 bytes); /* the part of a kernel whose text is so long */
const char *kernel_linkage(const Emit *e);
void put_split(Emit *e, StrBuf *t); /* what the macros mean */
void put_part_begin(const Emit *e, StrBuf *t, u32 part);
void put_part_end(const Emit *e, StrBuf *t);

/* cguard.c: vectors, or what stands in for them */
bool has_fallback(const Emit *e);     /* can the body be compiled without them, with other sums? */
bool has_vector_guard(const Emit *e); /* does the text ask whether there are vectors? */
/* A condition of the preprocessor: may functions of the body use this, "AVX2"? */
const char *feature_test(Emit *e, const char *feature);
void put_intrinsics(StrBuf *t); /* headers */
void put_vector_guard(Emit *e, StrBuf *t);
void put_fma_fallback(Emit *e, StrBuf *t); /* what sums are without vectors */
/* Functions of the target, whatever the flags are. The second ends what the first has begun, and
 * has the functions that callers know. */
void put_target_push(StrBuf *t, const char *features);
void put_target_pop(StrBuf *t);
void put_cpu_test(StrBuf *t, const char *features, const char *gap); /* has this CPU all of them? */
bool checks_cpu(const Emit *e); /* is the CPU asked before they are entered? */
u32 cpu_status(Emit *e); /* checks_cpu: what NAME_run returns on a CPU without the features */
void put_target_region(Emit *e, StrBuf *t);
void put_target_region_end(Emit *e, StrBuf *t);
const char *inner_linkage(const Emit *e); /* of a function inside that callers know */
void put_target_name(Emit *e, StrBuf *t); /* NAME_target */

/* cprofile.c: with EmitOptions.profile, else nothing */
void put_profile_call(Emit *e, StmtId kernel);
void put_profile_begin(Emit *e, StrBuf *t);
void put_profile_macro(Emit *e, StrBuf *t);
void put_profile_declarations(Emit *e, StrBuf *t, u32 kernels);
void put_profile_names(Emit *e, StrBuf *t);

/* cthread.c */
bool is_shared(Emit *e, const Stmt *kernel);      /* is it a loop that threads share? */
ExprId shared_count(Emit *e, const Stmt *kernel); /* its iterations */
void put_shared(Emit *e, StmtId first);           /* the loop, inside its function */
u64 pool_bytes(const Emit *e);                    /* of the arena */
void put_thread_headers(Emit *e, StrBuf *t);
void put_threads(Emit *e, StrBuf *t);
void put_thread_entry(Emit *e, StrBuf *t); /* of each program */
void put_thread_start(Emit *e, StrBuf *t); /* of the body */
void put_thread_declarations(Emit *e, StrBuf *t);

/* cweights.c */
void begin_weights(Emit *e, WeightPool *pool);
void put_weights(Emit *e, StrBuf *out);
void make_blob(Emit *e, Blob *blob);
void put_weights_head(Emit *e, StrBuf *t); /* what stands in front of them */
void put_weight(Emit *e, StrBuf *t, const Tensor *d, u32 number, Str name);
void put_table(Emit *e, StrBuf *t); /* of EmitExtra */
u64 table_bytes(const EmitOptions *o);
u64 stack_with_extra(const EmitOptions *o, u64 run); /* bytes, of what takes the most */
void begin_blob(Blob *blob);
void end_blob(Emit *e, Blob *blob);
bool weight_is_string(const Emit *e,
                      const Tensor *d); /* stored as a string in a union; its array is w.at */

/* cselftest.c */
u64 selftest_bytes(Emit *e);
void put_selftest(Emit *e, StrBuf *out);

/* crun.c */
void put_caller(Emit *e, StrBuf *out, const Prog *const *body, u32 n, u64 arena);

/* crt.c */
/* What a body calls its own carries its suffix, so that a file can have several: functions, types,
 * and macros that do not mean the same in all bodies. @ in the text stands for it, $ for NAME and
 * ` for NAME in capitals; MINE is NAME where the file has one entry, else NAME_ENTRY, and MY_CAPS
 * that in capitals; sb_fmt does the rest. */
#define MINE    "\1"
#define MY_CAPS "\2"
void put_template(Emit *e, StrBuf *t, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void put_template_text(Emit *e, StrBuf *t, const char *text); /* nothing but that */
void put_runtime(Emit *e, StrBuf *out);
void put_math(Emit *e, StrBuf *out);
const char *math_name(Ctx *c, Op op, MathMode part); /* of the part that is this operation */
MathMode math_part(const Emit *e, Op op, DType dt);
void put_comment(StrBuf *t, const char *text, size_t n); /* harmless characters only */
void put_trailing_comment(Emit *e, StrBuf *t, Str name); /* as a comment that ends the line */
void put_label(StrBuf *t, const char *text, size_t n);   /* all of it, over several lines */
Str short_text(Ctx *c, Str s); /* of a long one the beginning and a number, as unique as it was */

#endif
