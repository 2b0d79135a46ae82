/* llvm.h: private to src/back/llvm: what the files of the LLVM back end share.
 *
 * Values of a program become values of LLVM: a float of 32 bits or fewer is `float`, rounded where
 * eval.c rounds; an integer has the bits it takes in memory, so that an i4 is eight with its sign;
 * a bool is i1, in memory a byte. Vectors are as long as prog_legalize leaves them.
 */
#ifndef INGOT_BACK_LLVM_H
#define INGOT_BACK_LLVM_H

#include "back/back.h"
#include "back/llvm/types.h"

typedef LLVMValueRef LVal;
typedef LLVMTypeRef LType;
typedef struct Gen Gen;

/* The library, once it is loaded. */
struct Llvm {
#define LF(result, name, params) result(*name) params;
#include "back/llvm/functions.def"
#undef LF
  void *handle;
  u32 version; /* 14 */
};

/* One of the modules that are compiled side by side. */
typedef struct LlvmUnit {
  const Llvm *l;
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  u64 work; /* of what is in it, roughly: expressions */
  const char *passes;
  LLVMTargetMachineRef machine;
  LLVMMemoryBufferRef object;
  const char *why; /* it could not be compiled */
} LlvmUnit;

/* What the entry is given, by number of input, output, symbol, buffer. */
typedef struct EntryParams {
  LVal arena, *in, *out, *shape, *size, *weight;
} EntryParams;

struct Gen {
  Ctx *c;
  ParamMarks marks; /* of kernels */
  Prog *p;
  const Llvm *l;
  const LlvmOptions *o;
  const char *triple, *cpu, *features; /* of the machine */
  LLVMTargetRef machine;
  Caps has;       /* operations that it has, or LLVM for it */
  LlvmUnit *unit; /* being written to */
  LlvmUnit *units;
  u32 nunits;
  LVal fn;
  LLVMBasicBlockRef head; /* of the function: for what lasts as long as it */
  LVal *base;             /* by buffer: its address in this function, or a place that holds it */
  bool *moving;           /* by buffer: such a place, since barriers change the address */
  LVal *reg;              /* by buffer of registers: an array, where they are no variables */
  LVal *var;              /* by variable: its value, or a place that holds it */
  bool *placed;           /* by variable: such a place */
  bool *is_set;           /* by variable, in the body at hand: more than one value */
  u32 nvars;
  LVal seed;
  EntryParams params;
  bool in_kernel;
  Map numbers; /* text of a kernel -> 1 + its number */
  u32 nkernels;
  const char *holds; /* constraint of a vector in a register; NULL: the machine has none */
  StrList *why;      /* texts of requires */
  const char *file;  /* that objects are kept in; NULL: none */
};

/* find_llvm.c */
const Llvm *llvm_load(Ctx *c); /* leaves as ERR_unsupported where there is none */

/* lvalue.c: types and instructions */
LType lt_int(Gen *g, u32 bits);
LType lt_real(Gen *g, bool wide);
LType lt_lanes(Gen *g, LType t, u32 lanes);
LType lt_value(Gen *g, DType dt, u32 lanes);
LType lt_memory(Gen *g, DType dt, u32 lanes); /* of elements in memory */
LType lt_pointer(Gen *g, LType of);
u32 lt_bits(DType dt); /* of an integer as a value */
LVal lv_int(Gen *g, u32 bits, u32 lanes, i64 x);
LVal lv_real(Gen *g, bool wide, u32 lanes, double x);
LVal lv_splat(Gen *g, LVal x, u32 lanes);
LVal lv_bin(Gen *g, LLVMOpcode op, LVal a, LVal b);
LVal lv_cast(Gen *g, LLVMOpcode op, LVal a, LType to);
LVal lv_icmp(Gen *g, LLVMIntPredicate p, LVal a, LVal b);
LVal lv_fcmp(Gen *g, LLVMRealPredicate p, LVal a, LVal b);
LVal lv_select(Gen *g, LVal c, LVal a, LVal b);
LVal lv_lane(Gen *g, LVal x, u32 i);
LVal lv_put_lane(Gen *g, LVal x, LVal one, u32 i);
LVal lv_load(Gen *g, LType t, LVal at, u32 align);
void lv_store(Gen *g, LVal x, LVal at, u32 align);
LVal lv_alloca(Gen *g, LType t); /* memory of the function */
/* A function of LLVM's own; type: of its operands, or NULL where the name tells it. */
LVal lv_intrinsic(Gen *g, const char *name, LType type, const LVal *arg, u32 n);
bool has_feature(const Gen *g, const char *name);
_Noreturn void lv_refuse(Gen *g, const char *what);

/* lmem.c: addresses, loads, stores, narrow floats */
LVal gen_index(Gen *g, ExprId x); /* index arithmetic, which does not wrap */
LVal gen_dim(Gen *g, Dim d);
LVal gen_buf(Gen *g, BufId b); /* its address */
LVal gen_load(Gen *g, const Expr *x);
LVal gen_half_bits(Gen *g, const Expr *x); /* of halves in memory; NULL: x is something else */
LVal gen_quad(Gen *g, const Expr *x);
void gen_store(Gen *g, const Stmt *s);
LVal float_of_bits(Gen *g, DType dt, LVal bits, u32 lanes);
LVal bits_of_float(Gen *g, DType dt, LVal x, u32 lanes);
LVal round_float(Gen *g, DType dt, LVal x, u32 lanes); /* f32 to a narrower one */

/* lexpr.c, linteger.c, lcast.c, lquick.c */
LVal gen_expr(Gen *g, ExprId x);
LVal gen_int_op(Gen *g, const Expr *x, LVal *arg);
LVal gen_cast(Gen *g, const Expr *x, LVal a);
LVal gen_bitcast(Gen *g, const Expr *x, LVal a);
LVal wrap_int(Gen *g, DType dt, LVal x, u32 lanes); /* one of less than a byte */
LVal gen_quick(Gen *g, const char *name, u32 lanes, const LVal *arg);
LVal gen_fma(Gen *g, LVal a, LVal b, LVal c);

/* lmath.c: a function of mathlib*.h */
LVal gen_math(Gen *g, Op op, MathMode part, const LVal *arg, u32 n, u32 lanes);

/* lcall.c: what is left to functions of ingot itself, lane by lane */
typedef enum CallKind { CK_op, CK_cast, CK_decode, CK_encode, CK_random } CallKind;
typedef struct RuntimeCall {
  CallKind kind;
  Op op;
  DType from, to;
  bool flag; /* of a cast: it saturates */
} RuntimeCall;
LVal gen_call(Gen *g, RuntimeCall f, const LVal *arg, u32 n, u32 lanes);
u64 llvm_runtime_call(u64 code, u64 a, u64 b, u64 c);
#define RUNTIME_CALL_NAME "ingot_called"

/* lstmt.c */
void gen_body(Gen *g, StmtId first);

/* lkernel.c */
void gen_kernel_call(Gen *g, StmtId id);
void lv_attribute(Gen *g, LVal fn, u32 index, const char *name, u64 value);
LVal lv_function(Gen *g, const char *name, LType type);

/* lentry.c */
void gen_entry(Gen *g);
LLVMBasicBlockRef gen_function_begin(Gen *g, LVal fn); /* begins a function */
/* The body of one that runs the program, once g->given is set. */
void gen_entry_body(Gen *g, LVal fn, LLVMBasicBlockRef first);
LVal lv_element(Gen *g, LType t, LVal array, u64 i); /* its address */
bool is_open_shape(Prog *p, const Buf *b);           /* does it depend on what is found out? */

/* ljit.c */
void gen_begin(Gen *g, const Prog *p, const LlvmOptions *o, StrList *why);
u32 status_of(Gen *g, const Stmt *require);
void list_statuses(Gen *g); /* of the entry, in order */
#define ENTRY_NAME "ingot_entry"

/* lcompile.c */
void machine_find(Gen *g, const char *triple); /* sets up a target of LLVM, and g->has */
u32 units_wanted(u32 kernels);
void units_begin(Gen *g, u32 n);
void units_check(Gen *g);   /* is it what LLVM takes? */
void units_compile(Gen *g); /* an object of each, side by side */
void units_end(Gen *g);

/* lkey.c: text that two kernels share only if one function serves both */
StrBuf kernel_key(Gen *g, StmtId first, const KernelParams *u);
StrBuf program_key(Gen *g);

/* lcache.c: objects of a program in a file */
bool cache_read(Gen *g);
void cache_write(Gen *g);

#endif
