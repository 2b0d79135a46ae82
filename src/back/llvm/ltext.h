/* ltext.h: private to ltext.c and lmath.c: C text that is read as code of LLVM. */
#ifndef INGOT_BACK_LLVM_TEXT_H
#define INGOT_BACK_LLVM_TEXT_H

#include "back/llvm/llvm.h"

/* Types of the text, each converted to those behind it where the two meet. */
typedef enum TextBase { TB_void, TB_i32, TB_u32, TB_i64, TB_u64, TB_f32, TB_f64 } TextBase;
typedef struct TextType {
  TextBase base;
  bool pointer; /* to such */
} TextType;

/* A value, or where it lies. */
typedef struct TextValue {
  LVal v;
  TextType t;
  bool place;
} TextValue;

typedef struct TextName {
  const char *at;
  size_t n;
  LVal place; /* of a table: its first element */
  TextType t;
  bool table;
} TextName;

typedef struct TextFunction {
  Str name;
  TextType result;
  u32 n;
  TextType param[8];
} TextFunction;

typedef struct CText {
  Gen *g;
  const char *at, *end;
  const char *word; /* the token that comes next, ended by `at` */
  size_t n;
  VEC(TextName) name;         /* tables, then variables */
  VEC(TextFunction) function; /* of the text so far */
  TextType result;            /* of the function being read */
} CText;

/* ltext.c: tokens and expressions */
void ct_next(CText *r);
bool ct_is(const CText *r, const char *word);
bool ct_take(CText *r, const char *word); /* goes on if it is that */
void ct_need(CText *r, const char *word);
bool ct_type(CText *r, TextType *t); /* false: no type comes next */
LType ct_llvm(CText *r, TextType t);
TextValue ct_expr(CText *r);                   /* with assignments */
LVal ct_as(CText *r, TextValue x, TextType t); /* its value, converted */
LVal ct_truth(CText *r, TextValue x);          /* i1 */
void ct_name(CText *r, TextName name);
_Noreturn void ct_fail(CText *r, const char *what);

#endif
