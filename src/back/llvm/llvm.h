/* llvm.h: shared by the files of the LLVM back end; private to src/back/llvm.
 *
 * Values map to LLVM values. A float of at most 32 bits is `float`, rounded where eval.c rounds. An
 * integer has the width it has in memory, so an i4 is a sign-extended i8. A bool is i1, and a byte
 * in memory. Vectors have the widths that prog_legalize leaves. */
#ifndef INGOT_BACK_LLVM_H
#define INGOT_BACK_LLVM_H

#include "back/back.h"
#include "back/llvm/types.h"

typedef LLVMValueRef LVal;
typedef LLVMTypeRef LType;
typedef struct LlvmGen LlvmGen;

/* The loaded library. */
struct Llvm {
#define LF(result, name, params) result(*name) params;
#include "back/llvm/functions.def"
#undef LF
  void *handle;
  u32 version; /* major version */
};

/* One of the modules that are compiled in parallel. */
typedef struct LlvmUnit {
  const Llvm *l;
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  u64 work; /* estimate: number of expressions */
  const char *passes;
  LLVMTargetMachineRef machine;
  LLVMMemoryBufferRef object;
  const char *why; /* error message; NULL: compiled */
} LlvmUnit;

/* Arguments of the entry, by number of input, output, symbol, buffer. */
typedef struct EntryParams {
  LVal arena, *in, *out, *shape, *size, *weight;
} EntryParams;

struct LlvmGen {
  Ctx *c;
  ParamMarks marks; /* marks of kernels */
  Prog *p;
  const Llvm *l;
  const LlvmOptions *o;
  const char *triple, *cpu, *features; /* names of the target machine */
  LLVMTargetRef machine;
  Caps has;       /* operations that the machine or LLVM supports */
  LlvmUnit *unit; /* current unit */
  LlvmUnit *units;
  u32 nunits;
  LVal fn;
  LLVMBasicBlockRef head; /* first block of the function, for allocas */
  LVal *base;             /* by buffer: address in this function, or an alloca that holds it */
  bool *moving;           /* by buffer: base is an alloca, since fences change the address */
  LVal *reg;              /* by register buffer: its array, if it is not split into variables */
  LVal *var;              /* by variable: value, or an alloca that holds it */
  bool *placed;           /* by variable: var is an alloca */
  bool *is_set;           /* by variable: assigned more than once in the current body */
  u32 nvars;
  LVal seed;
  EntryParams params;
  bool in_kernel;
  Map numbers; /* text of a kernel -> 1 + number */
  u32 nkernels;
  const char *pin_constraint; /* asm constraint of a vector register; NULL: none */
  StrList *why;               /* texts of requires */
  const char *file;           /* cache file for objects; NULL: none */
};

/* find_llvm.c */
const Llvm *llvm_load(Ctx *c); /* fails with ERR_unsupported without LLVM */

/* lvalue.c: types and instructions */
LType lt_int(LlvmGen *g, u32 bits);
LType lt_real(LlvmGen *g, bool wide);
LType lt_lanes(LlvmGen *g, LType t, u32 lanes);
LType lt_value(LlvmGen *g, DType dt, u32 lanes);
LType lt_memory(LlvmGen *g, DType dt, u32 lanes); /* element in memory */
LType lt_pointer(LlvmGen *g, LType of);
LType lt_bytes(LlvmGen *g); /* pointer to bytes */
u32 lt_bits(DType dt);      /* width of an integer value */
LVal lv_int(LlvmGen *g, u32 bits, u32 lanes, i64 x);
LVal lv_real(LlvmGen *g, bool wide, u32 lanes, double x);
LVal lv_splat(LlvmGen *g, LVal x, u32 lanes);
LVal lv_bin(LlvmGen *g, LLVMOpcode op, LVal a, LVal b);
LVal lv_cast(LlvmGen *g, LLVMOpcode op, LVal a, LType to);
LVal lv_icmp(LlvmGen *g, LLVMIntPredicate p, LVal a, LVal b);
LVal lv_fcmp(LlvmGen *g, LLVMRealPredicate p, LVal a, LVal b);
LVal lv_select(LlvmGen *g, LVal c, LVal a, LVal b);
LVal lv_lane(LlvmGen *g, LVal x, u32 i);
LVal lv_put_lane(LlvmGen *g, LVal x, LVal one, u32 i);
LVal lv_load(LlvmGen *g, LType t, LVal at, u32 align);
void lv_store(LlvmGen *g, LVal x, LVal at, u32 align);
LVal lv_alloca(LlvmGen *g, LType t); /* in the first block of the function */
/* Calls an LLVM intrinsic; type: type parameter, or NULL if the name includes it. */
LVal lv_intrinsic(LlvmGen *g, const char *name, LType type, const LVal *arg, u32 n);
bool llvm_has_feature(const LlvmGen *g, const char *name);
_Noreturn void lv_refuse(LlvmGen *g, const char *what);

/* lmem.c: addresses, loads, stores, narrow floats */
LVal gen_index(LlvmGen *g, ExprId x); /* index arithmetic, never wraps */
LVal gen_dim(LlvmGen *g, Dim d);
LVal gen_buf(LlvmGen *g, BufId b); /* address of the buffer */
LVal gen_load(LlvmGen *g, const Expr *x);
LVal gen_half_bits(LlvmGen *g,
                   const Expr *x); /* bits of f16 elements in memory; NULL: x is not such a load */
LVal gen_quad(LlvmGen *g, const Expr *x);
void gen_store(LlvmGen *g, const Stmt *s);
LVal float_of_bits(LlvmGen *g, DType dt, LVal bits, u32 lanes);
LVal bits_of_float(LlvmGen *g, DType dt, LVal x, u32 lanes);
LVal llvm_round_float(LlvmGen *g, DType dt, LVal x, u32 lanes); /* f32 to a narrower type */

/* lexpr.c, linteger.c, lcast.c, lquick.c */
LVal gen_expr(LlvmGen *g, ExprId x);
LVal gen_int_op(LlvmGen *g, const Expr *x, LVal *arg);
LVal gen_cast(LlvmGen *g, const Expr *x, LVal a);
LVal gen_bitcast(LlvmGen *g, const Expr *x, LVal a);
LVal wrap_int(LlvmGen *g, DType dt, LVal x, u32 lanes); /* wraps to a type of less than a byte */
LVal gen_quick(LlvmGen *g, const char *name, u32 lanes, const LVal *arg);
LVal gen_fma(LlvmGen *g, LVal a, LVal b, LVal c);

/* lmath.c: a function of mathlib*.h */
LVal gen_math(LlvmGen *g, Op op, MathMode part, const LVal *arg, u32 n, u32 lanes);

/* lcall.c: operations done by functions of ingot, lane by lane */
typedef enum CallKind { CK_op, CK_cast, CK_decode, CK_encode, CK_random } CallKind;
typedef struct RuntimeCall {
  CallKind kind;
  Op op;
  DType from, to;
  bool flag; /* cast: saturates */
} RuntimeCall;
LVal gen_call(LlvmGen *g, RuntimeCall f, const LVal *arg, u32 n, u32 lanes);
u64 llvm_runtime_call(u64 code, u64 a, u64 b, u64 c);
#define RUNTIME_CALL_NAME "ingot_called"

/* lstmt.c */
void gen_body(LlvmGen *g, StmtId first);

/* lkernel.c */
void gen_kernel_call(LlvmGen *g, StmtId id);
void lv_attribute(LlvmGen *g, LVal fn, u32 index, const char *name, u64 value);
LVal lv_function(LlvmGen *g, const char *name, LType type);

/* lentry.c */
void gen_entry(LlvmGen *g);
LLVMBasicBlockRef gen_function_begin(LlvmGen *g, LVal fn); /* begins a function */
/* The body of a function that runs the program; g->params must be set. */
void gen_entry_body(LlvmGen *g, LVal fn, LLVMBasicBlockRef first);
LVal lv_element(LlvmGen *g, LType t, LVal array, u64 i); /* address of an element */
bool is_open_shape(Prog *p, const Buf *b);               /* does the shape depend on data? */

/* ljit.c */
void gen_begin(LlvmGen *g, const Prog *p, const LlvmOptions *o, StrList *why);
u32 llvm_status_of(LlvmGen *g, const Stmt *require);
void list_statuses(LlvmGen *g); /* lists the statuses of the entry, in order */
#define ENTRY_NAME "ingot_entry"

/* lcompile.c */
void machine_find(LlvmGen *g, const char *triple); /* sets up the LLVM target and g->has */
u32 units_wanted(u32 kernels);
void units_begin(LlvmGen *g, u32 n);
void units_check(LlvmGen *g);   /* runs the LLVM verifier */
void units_compile(LlvmGen *g); /* one object per unit, in parallel */
void units_end(LlvmGen *g);

/* lkey.c: keys; equal keys mean that one function can serve both kernels */
StrBuf kernel_key(LlvmGen *g, StmtId first, const KernelParams *u);
StrBuf program_key(LlvmGen *g);

/* lcache.c: cached objects of a program */
bool cache_read(LlvmGen *g);
void cache_write(LlvmGen *g);

#endif
