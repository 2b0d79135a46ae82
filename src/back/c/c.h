/* c.h: shared by the files of the C emitter; private to src/back/c.
 *
 * Identifiers in function bodies never come from the model. They are made here (in0, out0, w3, t12,
 * x, y), are the word of a kernel, or are names that a pass gave a loop (cname.c), so no name can
 * clash or inject code. Prototypes and macros of the header use identifiers that cparam.c makes
 * from the model's names. Elsewhere these names appear only in comments, reduced to harmless
 * characters. */
#ifndef INGOT_BACK_C_H
#define INGOT_BACK_C_H

#include "back/back.h"

typedef struct Emit Emit;

/* Snippets of support code, written only where used: see crt.c. */
typedef enum RtSnippet {
#define RT(name, needs, text) RT_##name,
#include "back/c/crt.def"
#undef RT
  RT_COUNT
} RtSnippet;

/* Form of vectors, registers and unrolled loops. */
typedef enum BodyMode {
  BM_plain,   /* the code has none */
  BM_loops,   /* arrays and loops over lanes: any compiler */
  BM_vectors, /* GNU vectors in named variables, unrolled: the target */
  BM_warp,    /* CUDA: a warp runs it; lane i of a vector is a scalar of thread i; unrolled */
  BM_thread   /* CUDA: a thread runs it; it has no vectors, registers are variables; unrolled */
} BodyMode;

enum { WIDTHS = 7 }; /* powers of two up to MAX_LANES */

/* The function body being written. */
typedef struct FuncBody {
  BodyMode mode;
  u32 w;    /* BM_vectors: lanes of the value being written */
  u32 id;   /* unique in the file, from 1 */
  Arena *a; /* lives as long as the body */
  u32 nreg, nlet;
  StrBuf decl;  /* declarations of registers */
  Map declared; /* by name */
  u64 frame;    /* bytes: estimate of its variables and values */
} FuncBody;

/* Precedence of C operators. An operand weaker than its context gets parentheses. */
typedef enum Precedence {
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
} Precedence;

/* Weights of a file. Variants with the same bytes share one. */
typedef struct Weight {
  const Tensor *data;
  Str name;
  u64 users; /* bit set of variants */
  u64 place; /* offset in the weights file */
} Weight;
typedef struct WeightPool {
  Map at; /* hash -> 1 + number of the last weight with it */
  VEC(Weight) w;
  VEC(u32) before; /* by number: 1 + number of an earlier weight with the same hash */
} WeightPool;

/* Names of variables in the function being written. */
typedef struct LocalNames {
  VEC(const char *) scope; /* names of the enclosing loops */
  VEC(const char *) mark;  /* by number of the mark, in a kernel */
} LocalNames;

/* C name of each variable in scope. */
typedef struct VarNames {
  const char **at;
  u32 n; /* capacity */
} VarNames;

/* ---- parts of a variant, each used by one or two files ---- */

typedef struct EntryCode {
  StrBuf params; /* parameters of NAME_run after the arena */
  StrBuf args;   /* names of these parameters */
  StrBuf text;   /* body of NAME_run */
} EntryCode;

typedef struct KernelCode {
  Map at;                 /* kernel text without names -> 1 + number */
  VEC(const char *) word; /* by number: the part between NAME_ and _number */
  StrBuf text;            /* all kernels */
  StrBuf heads;           /* declarations, for parts that are compiled separately */
  u64 *part_bytes;        /* by part: size of its kernels */
} KernelCode;

typedef struct WeightForm {
  WeightPool *pool; /* NULL: the file has one program */
  u32 *number;      /* by buffer: number in the name of the constant */
  bool text;        /* large weights are strings */
  bool blob;        /* weights are in a separate file */
  u64 *place;       /* by buffer: offset in that file */
  u64 table;        /* offset of EmitExtra.table in that file */
  u64 bytes, hash;
} WeightForm;

/* Stack use and text size of kernels and entry. */
typedef struct FrameSizes {
  u32 max_values;                /* maximum of a kernel: parameters, variables, operations */
  u32 max_params;                /* maximum of a kernel */
  u32 max_bytes;                 /* maximum stack bytes of a kernel of plain loops */
  u64 entry_frame, kernel_frame; /* bytes: entry, largest kernel */
  u64 code;                      /* bytes of statements, without names quoted in comments */
} FrameSizes;

typedef struct StatusTexts {
  VEC(Str) text; /* texts of requires */
  Map at;        /* text -> 1 + number */
} StatusTexts;

typedef struct SharedKernels {
  u32 n, args;   /* kernels run by several threads; most arguments of one */
  StrBuf cases;  /* switch cases that call them */
  StrBuf shares; /* functions that hand them to the threads */
} SharedKernels;

typedef struct Profile {
  VEC(KernelFacts) kernel; /* in the order of the entry */
  Map at;                  /* StmtId -> 1 + number */
  const Range *range;      /* by variable; NULL: not computed yet */
} Profile;

/* Vector types and functions that the text uses. */
typedef struct VectorCode {
  bool twice;                    /* some body is written for vectors and as loops */
  bool type[DT_COUNT][WIDTHS];   /* C vector types used as values */
  bool memory[DT_COUNT][WIDTHS]; /* types used for loads and stores */
  Map written;                   /* names of vector functions already written */
  StrBuf text;
  u64 quick_frame;    /* stack bytes of the functions of cmath.c */
  bool fences;        /* uses IG_FENCE */
  bool pins;          /* uses IG_PIN */
  bool prefetches;    /* uses prefetch by address */
  bool prefetches_at; /* uses prefetch by element */
  bool intrinsics;    /* uses x86 intrinsics */
  bool dot_i8x4;      /* uses dot-product instructions */
} VectorCode;

/* A piece of the state: offset in the arena, offset in the initial values, bytes. */
typedef struct StateRange {
  u64 at, from, n;
} StateRange;
typedef VEC(StateRange) StatePieces;

/* One variant of a file. Its programs share kernels with equal text. */
typedef struct CpuVariant {
  Emit *first; /* first program */
  u32 n;
  KernelCode kernels;
  StatusTexts why;
  SharedKernels shared_kernels;
  Profile profile;
  bool need[RT_COUNT];
  bool math[OP_SCALARS][MM_COUNT]; /* functions used */
  VectorCode vec;
  bool dispatched;   /* one of several variants, selected at run time */
  bool vectors_only; /* compiled only where its vectors are available */
} CpuVariant;

/* Values of put_template. */
enum { TV_sfx, TV_name, TV_NAME, TV_entry, TV_ENTRY, TV_COUNT };

/* Marks by buffer. */
typedef struct BufMarks {
  bool *used;    /* some kernel reads or writes it */
  char *written; /* in the current kernel */
  u32 *param;    /* 1 + parameter number in the current kernel */
  u32 *reg;      /* number of a register buffer */
  u32 *reg_body; /* body that reg is valid for */
} BufMarks;

/* Initial state. */
typedef struct StateInit {
  bool state;    /* the program has state */
  BufId initial; /* constant with the initial values; 0: all zero */
  StatePieces pieces;
} StateInit;

/* A program of a variant while it is written: one entry of the file. */
struct Emit {
  Ctx *c;
  CpuVariant *variant;
  Emit *next; /* next program of the variant */
  Prog *p;    /* the given program, plus expressions of extents and symbols made here */
  const EmitOptions *o;
  const EmitEntry *given;
  TemplateVar vars[TV_COUNT + 1]; /* see put_template */
  StrBuf *t;                      /* text being written */
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
  bool *open_out;    /* by output: shape known only after the run */
  StmtId shared;     /* parallel loop of the current kernel; 0: none */
  bool in_kernel;    /* writing a kernel, not the entry */
  const char *index; /* C type of loop variables and indices */
  bool cuda;         /* the text is a dialect of CUDA: see back/cuda */
  bool *joins;       /* CUDA, by buffer: other lanes read what a lane stores */
  u32 warps;         /* CUDA: warps of the block that runs the kernel; 0: workers are single */
  u8 team;           /* CUDA: LF_warp or LF_thread inside of such a loop */
  void (*launch)(Emit *e, StmtId kernel, void *arg); /* CUDA: writes the call of a kernel */
  void *launch_arg;
  FuncBody b;
  u32 nbodies;
  VarId hole[3]; /* variables that stand for operands: see put_scalar_op */
};

/* cstatus.c */
u32 status_add(Emit *e, Loc loc, Str message); /* the status with this message */
void put_why(Emit *e, StrBuf *t);              /* NAME_why, once all statuses are known */
/* The rest of a function that returns line[number]; larger numbers return the last line. */
void put_string_lookup(StrBuf *t, const char *number, const char *const *line, u32 n);

/* cname.c */
const char *kernel_ident(Emit *e,
                         Str label); /* identifier part that says what the kernel computes */
void put_kernel_name(Emit *e, StrBuf *t, const char *prefix, u32 number);
/* The name of a loop variable or of a variable assigned once. In a kernel, a mark that stands for
 * the name. The name of a loop is in scope until name_end. */
const char *name_loop(Emit *e, VarId v);
void name_end(Emit *e);
const char *name_let(Emit *e, VarId v);
void put_param_mark(StrBuf *t, u32 number); /* stands for a parameter of the kernel */
/* Writes the kernel text with names in place of marks. Returns its length with all names counted as
 * short, so that long names do not count as code. */
u64 put_named(const LocalNames *names, StrBuf *t, const StrBuf *marked, const char *const *param);

/* cindex.c */
void put_index(Emit *e, ExprId x); /* index arithmetic: plain ptrdiff_t */
/* t3[(i * 4 + j) * 8]; lanes > 1: lane z */
void put_element(Emit *e, BufId b, const ExprId *idx, u32 n, u32 lanes);
bool fold_int(Emit *e, ExprId x, i64 *value); /* is it an integer or bool constant? */
void put_dim(Emit *e, Dim d);

/* cexpr.c */
void put_expr(Emit *e, ExprId x);                /* data: wraps, converts and rounds like eval.c */
void put_data(Emit *e, ExprId x, Precedence at); /* put_expr as an operand */
void put_operands(Emit *e, const Expr *x);       /* (a, b), arguments of a function */
void put_binary(Emit *e, const Expr *x, const char *op, Precedence mine, Precedence at);
void put_unary(Emit *e, const char *sign, ExprId x, Precedence at);
void open_paren(Emit *e, Precedence mine, Precedence at);
void close_paren(Emit *e, Precedence mine, Precedence at);
_Noreturn void c_unsupported(Emit *e, const char *what);
const char *c_type(DType dt);    /* type of a value */
const char *c_storage(DType dt); /* type of an element in memory */
const char *c_infix(Op op);      /* NULL: not a C operator */
void put_buf_name(Emit *e, BufId b);
void put_float(StrBuf *t, bool wide, double x); /* a literal that reads back as x */
void c_need(Emit *e, RtSnippet n);
void put_stored(Emit *e, DType dt, ExprId x); /* the value converted to its form in memory */

/* cstmt.c */
void put_line(Emit *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void put_block(Emit *e, StmtId first);
void begin_line(Emit *e);

/* cbody.c: statements as a function body, written twice if it has vectors */
void put_body(Emit *e, StmtId first, StmtId owner);
/* In one form. False, and no text: it is too long to unroll. */
bool put_mode_body(Emit *e, StmtId first, BodyMode mode, StmtId owner);
void put_reg(Emit *e, BufId b, const ExprId *idx, u32 n, bool whole);

/* cvec.c: vectors as arrays */
void put_shuffle_lane(Emit *e, const Expr *shuffle, u32 i); /* lane i of the result, in any form */
void put_reduction(Emit *e, const Stmt *let);
void put_lanes_assign(Emit *e, const Stmt *s);
void put_lanes_store(Emit *e, const Stmt *s);

/* chelper.c: vector types of the current width, and functions on them */
DType c_elem_type(DType dt); /* element type as computed with */
DType signed_of(u32 bytes);
DType unsigned_of(u32 bytes);
const char *vector_type(Emit *e, DType k,
                        bool memory); /* memory: type for access through a pointer */
/* Opens conversions; the caller closes them with the returned text. */
const char *open_convert(Emit *e, StrBuf *t, DType from, DType to);
const char *need_vector(Emit *e, const char *what, DType k,
                        const char *loop); /* function of cvop.def */
const char *c_need_loop(Emit *e, const Expr *x,
                        DType from); /* applies a scalar operation lane by lane */
const char *need_narrow(Emit *e, DType dt,
                        bool store); /* loads or stores narrow floats lane by lane */
void put_scalar_op(Emit *e, const Expr *x, DType from, const char *const *name);
bool is_wanted(Emit *e, const char *name); /* is the function not written yet? */

/* cvop.c: vectors of the target */
void put_vector(Emit *e, ExprId x, Precedence at);
void put_vector_store(Emit *e, const Stmt *s);
void put_vectors(Emit *e, StrBuf *out); /* types and functions; they follow the runtime */

/* cwarp.c: vectors as scalars of the threads of a warp */
void put_lane_number(Emit *e, const char *before, u32 lanes);
void put_warp_shuffle(Emit *e, const Expr *x);
void put_warp_store(Emit *e, const Stmt *s);
bool put_copy(Emit *e, const Stmt *s);
const char *fragment_type(DType dt, u32 lanes);
void put_fragment(Emit *e, ExprId id);
void put_fragment_store(Emit *e, const Stmt *s);

/* cmath.c */
const char *need_quick(Emit *e, const Expr *x); /* function of quick.def, for the current width */

/* ckernel.c */
void put_kernel_call(Emit *e, StmtId s); /* writes the function too, unless an equal one exists */

/* cemit.c */
/* Writes kernels and entry of one more program of a variant into separate buffers. pool: shared by
 * a file with several programs, or NULL. */
CpuVariant *variant_begin(Ctx *c);
Emit *emit_begin(CpuVariant *all, const EmitEntry *given, const EmitOptions *o, WeightPool *pool,
                 const char *suffix, Blob *blob);
/* An Emit without entry, weights and state, for a file of another kind. */
Emit *emit_kernels_begin(CpuVariant *all, const EmitEntry *given, const EmitOptions *o);
EmitFacts facts_of(const CpuVariant *variant);
u64 arena_bytes(const Emit *e);
u64 buf_elements(Emit *e, BufId b);     /* maximum */
u64 buf_bytes(Emit *e, BufId b);        /* maximum */
bool is_argument(const Emit *e, Sym s); /* is it a size that the caller passes? */
/* Arguments of NAME_run after the arena, each preceded by a comma. The forms have %u for
 * numbers: */
typedef struct ArgFormats {
  const char *size, *seed, *in, *out, *shape;
} ArgFormats;
void put_run_args(Emit *e, StrBuf *t, const ArgFormats *f);
/* Extents of outputs. form has %u for output and axis. open: those known only after the run,
 * otherwise those that are not constants. */
void put_out_shapes(Emit *e, const char *form, bool open);
/* "static " for an entry of a dispatched variant, "" for an exported function. */
const char *c_linkage(const Emit *e);
void put_banner(Emit *e, StrBuf *t, const char *suffix);
void put_declarations(Emit *e, StrBuf *t, const EmitFacts *facts);
void put_prelude(Emit *e, StrBuf *t);
void put_warning_pragmas(StrBuf *t);  /* disable warnings */
void put_support(Emit *e, StrBuf *t); /* functions that kernels call */
void put_functions(Emit *e, StrBuf *t);

/* cparam.c: the interface for callers */
EmitParams list_params(Emit *e);           /* parameters of NAME_run after the arena, with names */
void put_statuses(Emit *e, StrBuf *t);     /* enum NAME_status */
void put_prototype(Emit *e, StrBuf *t);    /* NAME_run with a comment on each parameter */
void put_named_macros(Emit *e, StrBuf *t); /* array sizes as named macros */

/* cstate.c: state */
bool has_own_state(const Prog *p);
bool has_shared_state(const Prog *p); /* shared with the first program of the file */
void begin_state(Emit *e);            /* call before tables by buffer are made */
void put_reset(Emit *e, StrBuf *t);

/* csplit.c: parts that are compiled in parallel */
bool has_parts(const Emit *e);
void split_begin(Emit *e);
u32 split_choose(Emit *e, u64 bytes); /* the part for a kernel of this text size */
const char *kernel_linkage(const Emit *e);
void put_split(Emit *e, StrBuf *t); /* definition of the macros */
void put_part_begin(const Emit *e, StrBuf *t, u32 part);
void put_part_end(const Emit *e, StrBuf *t);

/* ccpu.c: statements that return 0 if the CPU lacks a feature that the compiler's flags enable, and
 * the function that they call. */
void put_flags_test(StrBuf *t);
void put_flags_helper(StrBuf *t);

/* cguard.c: choose between vectors and plain loops */
bool has_fallback(const Emit *e); /* can it be compiled without vectors, with different rounding? */
bool has_vector_guard(const Emit *e); /* does the text test for vectors? */
/* A preprocessor condition: may functions of the variant use the feature, such as "AVX2"? */
const char *feature_test(Emit *e, const char *feature);
void put_intrinsics(StrBuf *t); /* headers */
void put_vector_guard(Emit *e, StrBuf *t);
void put_fma_fallback(Emit *e, StrBuf *t); /* how products are added without vectors */
/* Compile functions for the target, independent of compiler flags. put_target_pop ends the region
 * and writes the exported functions. */
void put_target_push(StrBuf *t, const char *features);
void put_target_pop(StrBuf *t);
void put_cpu_test(StrBuf *t, const char *features,
                  const char *gap); /* does this CPU have all features? */
bool checks_cpu(const Emit *e);     /* is the CPU tested before target code runs? */
u32 cpu_status(Emit *e); /* checks_cpu: status of NAME_run on a CPU without the features */
void put_target_region(Emit *e, StrBuf *t);
void put_target_region_end(Emit *e, StrBuf *t);
void put_baseline_end(Emit *e, StrBuf *t); /* end of the functions that call the region */
const char *inner_linkage(const Emit *e);  /* linkage of the inner function of an exported one */
void put_target_name(Emit *e, StrBuf *t);  /* NAME_target */

/* cprofile.c: does nothing without EmitOptions.profile */
void put_profile_call(Emit *e, StmtId kernel);
void put_profile_begin(Emit *e, StrBuf *t);
void put_profile_macro(Emit *e, StrBuf *t);
void put_profile_declarations(Emit *e, StrBuf *t, u32 kernels);
void put_profile_names(Emit *e, StrBuf *t);

/* cthread.c */
bool is_shared(Emit *e, const Stmt *kernel);      /* is the kernel a parallel loop? */
ExprId shared_count(Emit *e, const Stmt *kernel); /* its trip count */
void put_shared(Emit *e, StmtId first);           /* the parallel loop, inside its function */
u64 pool_bytes(const Emit *e);                    /* part of the arena */
void put_thread_headers(Emit *e, StrBuf *t);
void put_threads(Emit *e, StrBuf *t);
void put_thread_entry(Emit *e, StrBuf *t); /* writes the thread entry of each program */
void put_thread_start(Emit *e, StrBuf *t); /* writes the thread start of the variant */
void put_thread_declarations(Emit *e, StrBuf *t);

/* cweights.c */
void begin_weights(Emit *e, WeightPool *pool);
void put_weights(Emit *e, StrBuf *out);
void make_blob(Emit *e, Blob *blob);
void put_weights_head(Emit *e, StrBuf *t); /* declarations before the weights */
void put_weight(Emit *e, StrBuf *t, const Tensor *d, u32 number, Str name);
void put_table(Emit *e, StrBuf *t); /* writes the table of EmitExtra */
u64 table_bytes(const EmitOptions *o);
void begin_blob(Blob *blob);
void end_blob(Emit *e, Blob *blob);
bool weight_is_string(const Emit *e,
                      const Tensor *d); /* stored as a string in a union; its array is w.at */

/* cselftest.c */
u64 selftest_bytes(Emit *e);
void put_selftest(Emit *e, StrBuf *out);

/* crun.c */
void put_caller(Emit *e, StrBuf *out, const Prog *const *variant, u32 n, u64 arena);

/* crt.c */
/* Expands a template, then formats the rest like sb_fmt. ${sfx} is the suffix of the variant, which
 * functions, types and macros that differ between variants carry. ${name} is NAME; ${entry} is
 * NAME, or NAME_ENTRY in a file with several entries; ${NAME} and ${ENTRY} are these in capitals.
 */
void put_template(Emit *e, StrBuf *t, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void put_template_text(Emit *e, StrBuf *t, const char *text); /* without formats */
void put_runtime(Emit *e, StrBuf *out);
void put_math(Emit *e, StrBuf *out);
const char *math_name(Ctx *c, Op op, MathMode part); /* name of the function of this math mode */
MathMode math_part(const Emit *e, Op op, DType dt);
void put_comment(StrBuf *t, const char *text, size_t n); /* harmless characters only */
void put_trailing_comment(Emit *e, StrBuf *t, Str name); /* a comment that ends the line */
void put_label(StrBuf *t, const char *text, size_t n);   /* whole text, over several lines */
Str c_short_text(Ctx *c, Str s); /* shortens a long text to its beginning and a unique number */

#endif
