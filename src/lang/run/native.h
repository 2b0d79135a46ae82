/* native.h: translates programs to C. Private to native*.c.
 *
 * Scalar code is translated statement by statement; values are those of value.h. Each
 * expression leaves its value in its own C variable, a temp, which owns a reference until something
 * takes it. Live temps own a reference at the current position. A jump out of an expression drops
 * them first, so references do not leak.
 */
#ifndef INGOT_LANG_NATIVE_H
#define INGOT_LANG_NATIVE_H

#include "back/back.h"
#include "lang/run/lang_value.h"

typedef struct NativeGen NativeGen;
typedef struct NativeLoop NativeLoop;
typedef u32 Temp; /* tN in C; 0: none */

struct NativeLoop {
  NativeLoop *outer;
  u32 number, live; /* live: number of live temps outside the loop */
  bool breaks, continues;
};

struct NativeGen {
  Ctx *c;
  Arena *a;
  Script *s;
  bool tensors; /* the program uses tensors */
  bool typed;   /* values have their static types: not if functions are differentiated */
  StrBuf tables, bodies;
  VEC(LangFn *) fn; /* in order of discovery */
  VEC(const StructInfo *) structs;
  VEC(Str) string;
  VEC(const LangType *) type;
  VEC(const Ast *) place;
  Map fn_at, string_at, place_at, struct_at, type_at; /* -> 1 + index */
  /* the function being translated */
  StrBuf *out;
  LangFn *in; /* NULL: top level */
  u32 file;   /* file index */
  Temp ntemp;
  VEC(Temp) live;
  NativeLoop *loop;
  u32 nloop, deep;
};

/* native_program.c */
void native_emit(NativeGen *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
u32 native_loc(NativeGen *p, const Ast *n);
u32 native_string(NativeGen *p, Str s);
u32 native_struct(NativeGen *p, const StructInfo *s);
u32 native_type(NativeGen *p, const Ast *at, const LangType *t);
u32 native_fn(NativeGen *p, LangFn *f);
const char *native_quoted(NativeGen *p, Str s); /* as a C literal */

/* native_stmt.c; to: receives the value; 0: unused */
void native_stmt(NativeGen *p, Ast *n, Temp to);
void native_block(NativeGen *p, const Ast *n, Temp to);
void native_clear_scope(NativeGen *p, const Ast *scope);
/* C expression of a variable: a slot of the function or of the file. */
const char *native_slot(NativeGen *p, u32 slot);
/* C expression of a pointer to the first set variable among the places. */
const char *native_pointer(NativeGen *p, const VarRef *place, u32 n);
const char *native_lvalue(NativeGen *p, const Ast *n); /* C expression of a pointer */

/* native_expr.c */
Temp native_expr(NativeGen *p, Ast *n); /* a live temp */
Temp native_temp(NativeGen *p);
void native_live(NativeGen *p, Temp t);
void native_moved(NativeGen *p, Temp t); /* its reference was taken */
Temp native_closure(NativeGen *p, Ast *fn);
const char *native_builtin(const char *name);       /* suffix of bi_NAME */
Temp native_bounds(NativeGen *p, const Ast *range); /* declares loN and hiN; returns N */

#endif
