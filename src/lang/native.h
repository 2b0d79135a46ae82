/* native.h: private to native*.c: a program of the language as C.
 *
 * Scalar code of a checked tree is written as C statement by statement; values are those of
 * tools/script.c. Each expression leaves its value in a variable of its own, a temp, which holds a
 * share until something takes it. Temps that hold one where the text is being written are live:
 * what jumps out of the middle of an expression lets them go first, so nothing is ever lost.
 */
#ifndef INGOT_LANG_NATIVE_H
#define INGOT_LANG_NATIVE_H

#include "back/back.h"
#include "lang/lang_value.h"

typedef struct NativeGen NativeGen;
typedef struct NativeLoop NativeLoop;
typedef u32 Temp; /* tN of the C; 0: none */

struct NativeLoop {
  NativeLoop *outer;
  u32 number, live; /* live: how many temps were, around it */
  bool breaks, continues;
};

struct NativeGen {
  Ctx *c;
  Arena *a;
  Script *s;
  bool tensors; /* it is written with them */
  bool wants;   /* it has some */
  StrBuf tables, bodies;
  VEC(LangFn *) fn; /* in the order in which they were met */
  VEC(const StructInfo *) structs;
  VEC(Str) string;
  VEC(const LangType *) type;
  VEC(const Ast *) place;
  Map fn_at, string_at, place_at, struct_at, type_at; /* to 1 + the number */
  /* of the function that is being written */
  StrBuf *out;
  LangFn *in; /* NULL: a file */
  u32 file;   /* its number */
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
const char *native_quoted(NativeGen *p, Str s); /* as a literal */

/* native_stmt.c; to: gets the value, 0: nobody wants it */
void native_stmt(NativeGen *p, Ast *n, Temp to);
void native_block(NativeGen *p, const Ast *n, Temp to);
void native_clear_scope(NativeGen *p, const Ast *scope);
/* A variable as C: the slot of the function, or of the file. */
const char *native_slot(NativeGen *p, u32 slot);
/* A pointer to the first of the places that holds something, as C. */
const char *native_pointer(NativeGen *p, const VarRef *place, u32 n);
const char *native_lvalue(NativeGen *p, const Ast *n); /* the place that n is, as a pointer */

/* native_expr.c */
Temp native_expr(NativeGen *p, Ast *n); /* live */
Temp native_temp(NativeGen *p);
void native_live(NativeGen *p, Temp t);
void native_moved(NativeGen *p, Temp t); /* something has its share now */
Temp native_closure(NativeGen *p, Ast *fn);
const char *native_builtin(const char *name);       /* bi_THAT is what runs */
Temp native_bounds(NativeGen *p, const Ast *range); /* its ends, as loN and hiN; gives N */

#endif
