/* ir.h: what both intermediate forms share: element types, scalars, dimensions, tensors, operators.
 */
#ifndef INGOT_IR_H
#define INGOT_IR_H

#include "base/base.h"

typedef struct Dims Dims; /* table of symbols and affine expressions */
typedef i64 Dim;          /* >= 0: that extent; < 0: expression -1 - d of the table */
typedef u32 Sym;          /* symbol of the table */
typedef struct SymInfo SymInfo;
typedef struct Type Type;     /* of a graph value */
typedef struct Tensor Tensor; /* concrete array: constants, inputs, results */
typedef union Scalar Scalar;  /* one element, any dtype */
typedef struct OpInfo OpInfo; /* row of ops.def */

enum { MAX_RANK = 16 };
#define DIM_MAX ((i64)1 << 40) /* no extent, and no product of extents, may exceed this */

typedef enum DType {
#define DT(name, cls, bits, bytes, onnx, text) DT_##name,
#include "ir/dtypes.def"
#undef DT
  DT_COUNT
} DType;

typedef struct DTypeInfo {
  const char *name;
  char cls; /* F I U B S C, N for none */
  u8 bits, bytes, onnx;
} DTypeInfo;
extern const DTypeInfo dtype_info[DT_COUNT];

/* Floats of any width live in f (every narrower float is exact in double); integers and bool in i
 * (u64 as the same bits); strings as their Str in i. Complex numbers are not scalars. */
union Scalar {
  double f;
  i64 i;
};

typedef enum OpKind {
  OK_MAP,
  OK_LEAF,
  OK_REDUCE,
  OK_CONTRACT,
  OK_WINDOW,
  OK_VIEW,
  OK_JOIN,
  OK_GATHER,
  OK_SCATTER,
  OK_SCAN,
  OK_CONTROL,
  OK_DYNAMIC,
  OK_RANDOM,
  OK_OPAQUE,
  OK_COUNT
} OpKind;

typedef enum Op {
#define SC(name, nin, cls, res, flags, text) OP_##name,
#define OP(name, lo, hi, nout, kind, flags, attrs, text)
#include "ir/ops.def"
#undef SC
#undef OP
  OP_SCALARS, /* scalar ops are below */
  OP_before_structural = OP_SCALARS - 1,
#define SC(name, nin, cls, res, flags, text)
#define OP(name, lo, hi, nout, kind, flags, attrs, text) OP_##name,
#include "ir/ops.def"
#undef SC
#undef OP
  OP_COUNT
} Op;

/* Columns of ops.def that are yes or no, see flags.def: a bit each. */
enum {
#define FLAG(name, text) OF_BIT_##name,
#include "ir/flags.def"
#undef FLAG
};
typedef enum OpFlag {
#define FLAG(name, text) OF_##name = 1 << OF_BIT_##name,
#include "ir/flags.def"
#undef FLAG
} OpFlag;
/* BITS: INT or bool */
typedef enum OpClass { OC_NUM, OC_FLT, OC_INT, OC_I32, OC_BITS, OC_ANY } OpClass;
typedef enum OpRes { OR_same, OR_pred, OR_sel, OR_to, OR_none } OpRes;

struct OpInfo {
  const char *name;
  u16 nin_min, nin_max, nout;
  OpKind kind;
  OpClass cls;       /* scalar ops */
  OpRes res;         /* scalar ops */
  u16 flags;         /* of OpFlag */
  const char *attrs; /* structural ops */
  const char *text;
};
extern const OpInfo op_info[OP_COUNT];
extern const char *const op_kind_name[OK_COUNT];

static inline bool op_is(Op op, OpFlag flag) {
  return (op_info[op].flags & flag) != 0;
}
/* Is an element of the result computed from those at its place? A bitcast reads bits in memory. */
static inline bool op_is_elementwise(Op op) {
  return op < OP_SCALARS && op != OP_bitcast;
}

/* ---- dimensions ---- */

typedef enum SymKind {
  SY_input,   /* bound by the shape of an input, or by the user */
  SY_data,    /* set by a node while running (nonzero, loop, if) */
  SY_derived, /* op(a, b) of other dimensions: mul div mod min max */
} SymKind;

struct SymInfo {
  SymKind kind;
  Str name;
  i64 lo, hi; /* bounds, inclusive; hi == DIM_MAX: unbounded */
  Op op;      /* SY_derived: OP_mul, OP_div (floor), OP_mod, OP_min, OP_max */
  Dim a, b;
};

/* ---- types and tensors ---- */

typedef enum TypeKind { TY_tensor, TY_seq, TY_opt } TypeKind;

struct Type {
  TypeKind kind;
  DType dt;
  u32 rank;
  Dim *dim;   /* rank entries */
  Type *elem; /* of seq and opt */
};

struct Tensor {
  DType dt;
  u32 rank;
  i64 *dim;
  const void *data; /* row-major, maybe unaligned: read through scalar_load or memcpy */
  u64 n;            /* elements */
};

/* dtype.c */
DType dtype_from_name(const char *s, size_t n); /* DT_none if unknown */
DType dtype_from_onnx(i64 code);                /* DT_none if unknown */
static inline bool dtype_is_float(DType d) {
  return dtype_info[d].cls == 'F';
}
static inline bool dtype_is_narrow_int(DType d) { /* integers that products are made of */
  return d == DT_u8 || d == DT_i8 || d == DT_i16;
}
/* Floats that are computed with as they lie in memory. */
static inline bool dtype_is_full_float(DType d) {
  return d == DT_f32 || d == DT_f64;
}
/* Narrower floats: memory has other bits than the f32 they are computed with. */
static inline bool dtype_is_narrow_float(DType d) {
  return dtype_is_float(d) && !dtype_is_full_float(d);
}
/* Floats of 16 bits: stored so, computed with as f32. */
static inline bool dtype_is_half(DType d) {
  return d == DT_f16 || d == DT_bf16;
}
static inline bool dtype_is_int(DType d) {
  return dtype_info[d].cls == 'I' || dtype_info[d].cls == 'U';
}
static inline bool dtype_is_signed(DType d) {
  return dtype_info[d].cls == 'I';
}
static inline u32 dtype_bytes(DType d) {
  return dtype_info[d].bytes;
}
DType dtype_acc(DType d); /* accumulator: f32 for narrower floats, else itself */
void dtype_limits(DType d, Scalar *lo, Scalar *hi); /* -Inf/+Inf for floats that have them */
/* The integers that an integer type or bool holds; of u64, and of what is none, all of i64, and
 * false. */
bool dtype_int_range(DType d, i64 *lo, i64 *hi);

/* What integers that enter or leave a model stand for: x is the number (x - zero) * scale. By name:
 * passes add and remove inputs and outputs, and none renames them. */
typedef struct Scale {
  Str name;
  bool out;     /* of an output; an input may have the same name */
  double scale; /* finite and positive */
  i64 zero;     /* within the type */
} Scale;
typedef VEC(Scale) Scales;
/* NULL: they stand for themselves. */
static inline const Scale *scale_find(const Scales *s, Str name, bool out) {
  for (u32 i = 0; s && i < s->n; i++)
    if (s->at[i].name == name && s->at[i].out == out) return &s->at[i];
  return NULL;
}

/* op.c */
Op op_from_name(const char *s, size_t n); /* OP_COUNT if unknown */
Op op_reducer(Op op);                     /* sums, extremes...: what takes in one element more */
bool op_accepts(Op op, DType d);          /* scalar ops: operand class */
const char *op_attr_spec(Op op);          /* of nodes, spelt as in ops.def */

/* Kinds of a function, by the letter its name ends in (expf, expq, ...): MM_f precise, of float;
 * MM_d the same of double; MM_q fast and MM_u fused, of quick.def; MM_s single, of mathlibs.h.
 * Prog.math is one of them, never MM_d. */
typedef enum MathMode { MM_f, MM_d, MM_q, MM_u, MM_s, MM_COUNT } MathMode;

/* eval.c: the meaning of every scalar op, in one place */
Scalar scalar_load(DType d, const void *p);
void scalar_store(DType d, void *p, Scalar x); /* x must be representable: see scalar_cast */
Scalar scalar_cast(DType from, DType to, Scalar x, bool sat);
double scalar_round(DType d, double x); /* to the nearest value of float type d, ties to even,
                                           saturating if d has no infinity */
Scalar scalar_eval(Op op, DType d,
                   const Scalar *arg); /* d: dtype of operands (of a and b for select) */
/* Operations that are other functions in programs that say so: see quick.def. */
bool scalar_is_fast(Op op, DType d);
/* Which function it is in a program of that mathematics; the fast one where that has none. */
MathMode scalar_math_mode(MathMode math, Op op, DType d);
Scalar scalar_eval_as(MathMode math, Op op, DType d, const Scalar *arg);
/* What add, mul, max or min of no elements is; of bool or and and, for max and min. */
Scalar scalar_identity(Op op, DType d);
i64 scalar_wrap(DType d, i64 x);      /* two's complement value of integer type d */
u64 random_bits(u64 seed, u64 index); /* the generator behind OP_random */
/* Uniform in [0,1), exact in float type d (as many bits as d has digits, so it never rounds to 1).
 */
double random_unit(DType d, u64 node_seed, u64 run_seed, u64 index);

/* mathlib.c: the text of mathlib*.h, in parts */
/* The template of one part (a function's name has @ behind it) and the names of the parts it needs,
 * separated by spaces and ended by a star; NULL if there is no such part. */
const char *mathlib_text(const char *name, size_t *n, const char **needs);
/* Appends the parts named (separated by spaces) and all they need, in an order in which C can read
 * them, with a suffix behind their names. fma: a condition of the preprocessor, whether the
 * compiler makes one instruction of it; MATHLIB_FMA: by its flags. */
#define MATHLIB_FMA "defined(__FMA__)"
void mathlib_write(StrBuf *t, const char *names, const char *suffix, const char *fma);

/* dim.c */
Dims *dims_new(Ctx *c);
Ctx *dims_ctx(const Dims *ds);
Sym dim_sym(Dims *ds, SymKind kind, Str name, i64 lo,
            i64 hi); /* same kind and name: the same symbol, bounds narrowed */
u32 dim_nsyms(const Dims *ds);
SymInfo *dim_syminfo(Dims *ds, Sym s);
Dims *dims_copy(const Dims *ds); /* equal numbers mean the same in both; they part from here on */
/* The symbols that d is made of, a derived one before those it is derived from:
 *
 *   for (SymVisit w = dim_visit(ds, d); dim_next(&w);)
 *     if (w.info->kind == SY_data) ...
 */
enum { DIM_SIZE = 400 }; /* symbols and operations of one dimension */
typedef struct SymVisit {
  const Dims *ds;
  Sym sym; /* the one visited */
  const SymInfo *info;
  Dim a, b; /* whose symbols come next; set to 0 they are left out */
  u32 n;
  Sym more[DIM_SIZE]; /* those behind them */
} SymVisit;
static inline SymVisit dim_visit(const Dims *ds, Dim d) {
  SymVisit w;
  w.ds = ds;
  w.a = d;
  w.b = w.n = 0;
  return w;
}
bool dim_next(SymVisit *w);
bool dim_mentions(const Dims *ds, Dim d, Sym s);
bool dim_is_data(const Dims *ds, Dim d); /* does a symbol of kind SY_data occur in it? */
Dim dim_of_sym(Dims *ds, Sym s);
bool dim_is_sym(const Dims *ds, Dim d, SymKind kind, Sym *s); /* one of that kind, nothing else? */
static inline bool dim_is_const(Dim d) {
  return d >= 0;
}
Dim dim_add(Dims *ds, Dim a, Dim b);
Dim dim_sub(Dims *ds, Dim a, Dim b); /* a constant negative result fails with ERR_input */
Dim dim_mul(Dims *ds, Dim a, Dim b);
Dim dim_div(Dims *ds, Dim a, Dim b); /* floor; b > 0 */
Dim dim_mod(Dims *ds, Dim a, Dim b);
Dim dim_min(Dims *ds, Dim a, Dim b);
Dim dim_max(Dims *ds, Dim a, Dim b);
Dim dim_addk(Dims *ds, Dim a, i64 k);
Dim dim_product(Dims *ds, const Dim *d, u32 n);
void dim_bounds(const Dims *ds, Dim d, i64 *lo, i64 *hi);
i64 dim_eval(const Dims *ds, Dim d, const i64 *env); /* env[sym]; derived symbols are computed */
/* Terms of an affine expression: d = k0 + sum of n products coef[i] * sym[i]. */
typedef struct DimTerms {
  i64 k0;
  u32 n;
  const Sym *sym;
  const i64 *coef;
} DimTerms;
DimTerms dim_terms(const Dims *ds, Dim d);
void dim_print(const Dims *ds, Dim d, StrBuf *t); /* 3, n, 2*n+1, (n+1)/2 */
Str sym_range_error(Ctx *c, const SymInfo *s);    /* what a run says that leaves the bounds of s */
/* Parses one dimension expression; unknown names fail. Returns bytes consumed (0: malformed). */
size_t dim_parse(Dims *ds, const char *at, size_t n, Dim *out);

/* type.c */
Type type_tensor(Arena *a, DType dt, const Dim *dim, u32 rank);
bool type_equal(const Type *x, const Type *y);
bool type_is_static(const Type *t);   /* tensor whose dimensions are all constants */
bool type_is_nonempty(const Type *t); /* it has elements, whatever sizes turn out to be */
bool type_has_shape(const Type *t, const Dim *dim, u32 rank);
Dim type_count(Dims *ds, const Type *t);                     /* number of elements */
void type_print(const Dims *ds, const Type *t, StrBuf *out); /* f32[n,3], seq(f32[3]), opt(i64[]) */
const char *type_text(const Dims *ds, const Type *t);        /* the same, in c->scratch */
const char *index_text(Ctx *c, const Tensor *t, u64 i);      /* of element i: "[0,2,5]" */
const char *shape_text(Ctx *c, const char *dtype, const i64 *dim,
                       u32 rank); /* f32[1,?], likewise */

/* tensor.c */
bool shape_count(const i64 *dim, u32 rank, u64 *n); /* product; false when above DIM_MAX */
Tensor *tensor_new(Arena *a, DType dt, const i64 *dim, u32 rank); /* zeroed, writable data */
Tensor *tensor_wrap(Arena *a, DType dt, const i64 *dim, u32 rank, const void *data);
static inline u64 tensor_bytes(const Tensor *t) {
  return t->n * dtype_bytes(t->dt);
}
Scalar tensor_get(const Tensor *t, u64 i);
void tensor_set(Tensor *t, u64 i, Scalar x);            /* only on tensors of tensor_new */
Tensor *tensor_as(Arena *a, const Tensor *t, DType dt); /* the same numbers, of the same class */
DType tensor_half(const Tensor *t); /* f16 or bf16 if that holds all of its floats; else its type */
/* Strings as rows of k bytes, zeros behind them. False when one is longer, or ends with a zero. */
bool strings_to_bytes(const Ctx *c, const Tensor *strings, u8 *rows, i64 k);
void bytes_to_strings(Ctx *c, const Tensor *rows, Tensor *strings); /* strings: of tensor_new */
i64 strings_max_len(const Ctx *c, const Tensor *strings);           /* bytes; at least 1 */
bool tensor_equal(const Ctx *c, const Tensor *x, const Tensor *y);  /* same type, shape and bits */
/* strided_copy.c: elements of `size` bytes; steps along the axes are bytes too. */
void strided_copy(u32 rank, const i64 *dim, u32 size, u8 *to, const i64 *sto, const u8 *from,
                  const i64 *sfrom);

#endif
