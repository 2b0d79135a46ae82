/* lcparse.h: private to lcparse.c and lmath.c: C text that is read as code of LLVM. */
#ifndef INGOT_BACK_LLVM_TEXT_H
#define INGOT_BACK_LLVM_TEXT_H

#include "back/llvm/llvm.h"

/* Types of the text, each converted to those behind it where the two meet. */
typedef enum CBaseType { TB_void, TB_i32, TB_u32, TB_i64, TB_u64, TB_f32, TB_f64 } CBaseType;
typedef struct CType {
  CBaseType base;
  bool pointer; /* to such */
} CType;

/* A value, or where it lies. */
typedef struct CValue {
  LVal v;
  CType t;
  bool place;
} CValue;

typedef struct CName {
  const char *at;
  size_t n;
  LVal place; /* of a table: its first element */
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
  Gen *g;
  const char *at, *end;
  const char *word; /* the token that comes next, ended by `at` */
  size_t n;
  VEC(CName) name;         /* tables, then variables */
  VEC(CFunction) function; /* of the text so far */
  CType result;            /* of the function being read */
} CParser;

/* lcparse.c: tokens and expressions */
void ct_next(CParser *r);
bool ct_is(const CParser *r, const char *word);
bool ct_accept(CParser *r, const char *word); /* goes on if it is that */
void ct_expect(CParser *r, const char *word);
bool ct_type(CParser *r, CType *t); /* false: no type comes next */
LType ct_llvm_type(CParser *r, CType t);
CValue ct_expr(CParser *r);                     /* with assignments */
LVal ct_convert(CParser *r, CValue x, CType t); /* its value, converted */
LVal ct_truth(CParser *r, CValue x);            /* i1 */
void ct_declare(CParser *r, CName name);
_Noreturn void ct_fail(CParser *r, const char *what);

#endif
