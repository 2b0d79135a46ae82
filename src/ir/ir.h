/* ir.h: definitions that Graph and Prog share: element types, scalars, dimensions, tensors,
 * operators. */
#ifndef INGOT_IR_H
#define INGOT_IR_H

#include "base/base.h"

typedef struct Dims Dims; /* table of symbols and affine expressions */
typedef i64 Dim;          /* >= 0: that extent; < 0: expression -1 - d of the table */
typedef u32 Sym;          /* symbol of the table */
typedef struct SymInfo SymInfo;
typedef struct Type Type;     /* type of a graph value */
typedef struct Tensor Tensor; /* concrete array: constants, inputs, results */
typedef union Scalar Scalar;  /* one element, any dtype */
typedef struct OpInfo OpInfo; /* row of ops.def */

enum { MAX_RANK = 16 };
#define DIM_MAX ((i64)1 << 40) /* limit of every extent and every product of extents */

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

/* Floats of any width are in f (every narrower float is exact in double); integers and bool in i
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

/* Boolean columns of ops.def, one bit each: see flags.def. */
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
typedef enum OpOperandClass { OC_NUM, OC_FLT, OC_INT, OC_I32, OC_BITS, OC_ANY } OpOperandClass;
typedef enum OpResultType { OR_same, OR_pred, OR_sel, OR_to, OR_none } OpResultType;

struct OpInfo {
  const char *name;
  u16 nin_min, nin_max, nout;
  OpKind kind;
  OpOperandClass cls; /* scalar ops */
  OpResultType res;   /* scalar ops */
  u16 flags;          /* OpFlag bits */
  const char *attrs;  /* structural ops */
  const char *text;
};
extern const OpInfo op_info[OP_COUNT];
extern const char *const op_kind_name[OK_COUNT];

static inline bool op_is(Op op, OpFlag flag) {
  return (op_info[op].flags & flag) != 0;
}
/* Does each element of the result depend only on the operand elements at the same position? A
 * bitcast does not: it reads bits in memory. */
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
  Type *elem; /* element type of seq and opt */
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
static inline bool dtype_is_narrow_int(DType d) { /* operand types of integer products */
  return d == DT_u8 || d == DT_i8 || d == DT_i16;
}
/* Floats that are computed in their storage type. */
static inline bool dtype_is_full_float(DType d) {
  return d == DT_f32 || d == DT_f64;
}
/* Floats below 32 bits: stored narrow, computed as f32. */
static inline bool dtype_is_narrow_float(DType d) {
  return dtype_is_float(d) && !dtype_is_full_float(d);
}
/* 16-bit floats: stored as such, computed as f32. */
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
static inline u32 dtype_stored_bits(DType d) { /* of one element; bool: a byte */
  return d == DT_bool ? 8 : dtype_info[d].bits;
}
DType dtype_acc(DType d); /* accumulator: f32 for narrower floats, else itself */
void dtype_limits(DType d, Scalar *lo, Scalar *hi); /* -Inf/+Inf for floats that have them */
/* Range of an integer type or bool. u64 and other types: all of i64, and returns false. */
bool dtype_int_range(DType d, i64 *lo, i64 *hi);

/* Meaning of integer inputs and outputs of a model: x stands for (x - zero) * scale. Found by name,
 * because passes add and remove inputs and outputs but never rename them. */
typedef struct QuantParams {
  Str name;
  bool out;     /* belongs to an output; an input may have the same name */
  double scale; /* finite and positive */
  i64 zero;     /* within the type */
} QuantParams;
typedef VEC(QuantParams) Scales;
/* NULL: not quantized. */
static inline const QuantParams *scale_find(const Scales *s, Str name, bool out) {
  for (u32 i = 0; s && i < s->n; i++)
    if (s->at[i].name == name && s->at[i].out == out) return &s->at[i];
  return NULL;
}

/* op.c */
Op op_from_name(const char *s, size_t n); /* OP_COUNT if unknown */
Op op_reducer(Op op);                     /* the binary op that a reduction applies per element */
bool op_accepts(Op op, DType d);          /* scalar ops: operand class */
const char *op_attr_spec(Op op);          /* attributes of a node, as written in ops.def */

/* Variants of elementary functions, named by the last letter (expf, expq, ...). MM_f: precise
 * float. MM_d: precise double. MM_q: fast, MM_u: fused, both from quick.def. MM_s: single, from
 * mathlibs.h. Prog.math is one of them, never MM_d. */
typedef enum MathMode { MM_f, MM_d, MM_q, MM_u, MM_s, MM_COUNT } MathMode;

/* eval.c: semantics of every scalar op */
Scalar scalar_load(DType d, const void *p);
void scalar_store(DType d, void *p, Scalar x); /* x must be representable: see scalar_cast */
Scalar scalar_cast(DType from, DType to, Scalar x, bool sat);
/* to the nearest value of float type d, ties to even; saturates if d has no infinity. */
double scalar_round(DType d, double x);
/* d: dtype of operands (of a and b for select). */
Scalar scalar_eval(Op op, DType d, const Scalar *arg);
/* Does the op have a fast variant (quick.def)? */
bool scalar_is_fast(Op op, DType d);
/* The variant a program of that math mode uses; the fast one if that mode has none. */
MathMode scalar_math_mode(MathMode math, Op op, DType d);
Scalar scalar_eval_as(MathMode math, Op op, DType d, const Scalar *arg);
/* Identity of the reduction by add, mul, max or min; for bool, max is or and min is and. */
Scalar scalar_identity(Op op, DType d);
i64 scalar_wrap(DType d, i64 x);      /* two's complement value of integer type d */
u64 random_bits(u64 seed, u64 index); /* the generator of OP_random */
/* Uniform in [0,1), exact in float type d: with the bits of its significand, never 1. */
double random_unit(DType d, u64 node_seed, u64 run_seed, u64 index);

/* mathlib.c: the text of mathlib*.h, split into functions */
/* Template of one function or table (function names end with @). needs: names of its dependencies,
 * separated by spaces and ended by a star. NULL: unknown name. */
const char *mathlib_text(const char *name, size_t *n, const char **needs);
/* Appends the named functions (separated by spaces) and their dependencies, in definition order,
 * with a suffix added to their names. fma: preprocessor condition, true if the compiler has an FMA
 * instruction; MATHLIB_FMA: decided by compiler flags. */
#define MATHLIB_FMA "defined(__FMA__)"
void mathlib_write(StrBuf *t, const char *names, const char *suffix, const char *fma);

/* dim.c */
Dims *dims_new(Ctx *c);
Ctx *dims_ctx(const Dims *ds);
/* An existing symbol of the same kind and name is returned, with its bounds narrowed. */
Sym dim_sym(Dims *ds, SymKind kind, Str name, i64 lo, i64 hi);
u32 dim_nsyms(const Dims *ds);
SymInfo *dim_syminfo(Dims *ds, Sym s);
Dims *dims_copy(const Dims *ds); /* same numbering; later additions are independent */
/* Visits the symbols of d, a derived one before its operands:
 *
 *   for (SymVisit w = dim_visit(ds, d); dim_next(&w);)
 *     if (w.info->kind == SY_data) ... */
enum { DIM_SIZE = 400 }; /* limit of symbols and operations in one dimension */
typedef struct SymVisit {
  const Dims *ds;
  Sym sym; /* the one visited */
  const SymInfo *info;
  Dim a, b; /* their symbols come next; set to 0 to skip them */
  u32 n;
  Sym more[DIM_SIZE]; /* symbols still to visit */
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
bool dim_is_data(const Dims *ds, Dim d); /* does it contain a symbol of kind SY_data? */
Dim dim_of_sym(Dims *ds, Sym s);
/* is it exactly one symbol of that kind? */
bool dim_is_sym(const Dims *ds, Dim d, SymKind kind, Sym *s);
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
/* run-time message for a value outside the bounds of s. */
Str sym_range_error(Ctx *c, const SymInfo *s);
/* Parses one dimension expression; fails on unknown names. Returns bytes consumed (0:
 * malformed). */
size_t dim_parse(Dims *ds, const char *at, size_t n, Dim *out);

/* type.c */
Type type_tensor(Arena *a, DType dt, const Dim *dim, u32 rank);
bool type_equal(const Type *x, const Type *y);
bool type_is_static(const Type *t);   /* tensor whose dimensions are all constants */
bool type_is_nonempty(const Type *t); /* every extent is at least 1 */
bool type_has_shape(const Type *t, const Dim *dim, u32 rank);
Dim type_count(Dims *ds, const Type *t);                     /* number of elements */
void type_print(const Dims *ds, const Type *t, StrBuf *out); /* f32[n,3], seq(f32[3]), opt(i64[]) */
const char *type_text(const Dims *ds, const Type *t);        /* type_print, in c->scratch */
/* Position of element i: "[0,2,5]"; in c->scratch. */
const char *index_text(Ctx *c, const Tensor *t, u64 i);
/* f32[1,?]; in c->scratch. */
const char *shape_text(Ctx *c, const char *dtype, const i64 *dim, u32 rank);

/* tensor.c */
bool shape_count(const i64 *dim, u32 rank, u64 *n); /* product; false if above DIM_MAX */
Tensor *tensor_new(Arena *a, DType dt, const i64 *dim, u32 rank); /* zeroed, writable data */
Tensor *tensor_wrap(Arena *a, DType dt, const i64 *dim, u32 rank, const void *data);
static inline u64 tensor_bytes(const Tensor *t) {
  return t->n * dtype_bytes(t->dt);
}
Scalar tensor_get(const Tensor *t, u64 i);
void tensor_set(Tensor *t, u64 i, Scalar x); /* only on tensors of tensor_new */
/* Converted to another type of the same class. */
Tensor *tensor_as(Arena *a, const Tensor *t, DType dt);
DType tensor_half(const Tensor *t); /* f16 or bf16 if all elements are exact in it; else its type */
/* Strings as rows of k bytes, zero-padded. False if a string is longer or ends with a zero byte. */
bool strings_to_bytes(const Ctx *c, const Tensor *strings, u8 *rows, i64 k);
void bytes_to_strings(Ctx *c, const Tensor *rows, Tensor *strings); /* strings: of tensor_new */
i64 strings_max_len(const Ctx *c, const Tensor *strings);           /* bytes; at least 1 */
bool tensor_equal(const Ctx *c, const Tensor *x, const Tensor *y);  /* same type, shape and bits */
/* strided_copy.c: element size and strides are in bytes. */
void strided_copy(u32 rank, const i64 *dim, u32 size, u8 *to, const i64 *sto, const u8 *from,
                  const i64 *sfrom);

#endif
