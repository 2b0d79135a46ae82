/* lcparse.h: parser of the C text of mathlib; shared by lcparse.c and lmath.c. */
#ifndef INGOT_BACK_LLVM_TEXT_H
#define INGOT_BACK_LLVM_TEXT_H

#include "back/llvm/llvm.h"

/* Types by conversion rank: the operand with the lower rank is converted to the other type. */
typedef enum CBaseType { TB_void, TB_i32, TB_u32, TB_i64, TB_u64, TB_f32, TB_f64 } CBaseType;
typedef struct CType {
  CBaseType base;
  bool pointer; /* pointer to base */
} CType;

/* An rvalue, or an lvalue with its address. */
typedef struct CValue {
  LVal v;
  CType t;
  bool place;
} CValue;

typedef struct CName {
  const char *at;
  size_t n;
  LVal place; /* address; of a table, its first element */
  CType t;
  bool table;
} CName;

typedef struct CFunction {
  Str name;
  CType result;
  u32 n;
  CType param[8];
} CFunction;

typedef struct CParser {
  LlvmGen *g;
  const char *at, *end;
  const char *word; /* next token, ends at `at` */
  size_t n;
  VEC(CName) name;         /* tables, then variables */
  VEC(CFunction) function; /* functions read so far */
  CType result;            /* result type of the current function */
} CParser;

/* lcparse.c: tokens and expressions */
void ct_next(CParser *r);
bool ct_is(const CParser *r, const char *word);
bool ct_accept(CParser *r, const char *word); /* consumes the token if it matches */
void ct_expect(CParser *r, const char *word);
bool ct_type(CParser *r, CType *t); /* false: the next token is not a type */
LType ct_llvm_type(CParser *r, CType t);
CValue ct_expr(CParser *r);                     /* includes assignments */
LVal ct_convert(CParser *r, CValue x, CType t); /* rvalue, converted to t */
LVal ct_truth(CParser *r, CValue x);            /* i1 */
void ct_declare(CParser *r, CName name);
LLVMBasicBlockRef ct_block(CParser *r, const char *name); /* a new block of the function */
_Noreturn void ct_fail(CParser *r, const char *what);

#endif
