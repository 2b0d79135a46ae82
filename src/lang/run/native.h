/* native.h: translates programs to C. Private to native*.c.
 *
 * Register code is translated instruction by instruction (native_code.c); native_program.c adds the
 * tables of types, structs, functions and positions. Values are those of value.h.
 */
#ifndef INGOT_LANG_NATIVE_H
#define INGOT_LANG_NATIVE_H

#include "back/back.h"
#include "lang/run/lang_code.h"

typedef struct NativeGen NativeGen;

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
  StrBuf *out;
  const RegCode *code; /* being translated */
  u32 deep;
};

/* native_program.c */
void native_emit(NativeGen *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
u32 native_loc(NativeGen *p, const Ast *n);
u32 native_string(NativeGen *p, Str s);
u32 native_struct(NativeGen *p, const StructInfo *s);
u32 native_type(NativeGen *p, const LangType *t);
u32 native_fn(NativeGen *p, LangFn *f);
const char *native_quoted(NativeGen *p, Str s); /* as a C literal */

/* native_code.c: statements, up to `goto out` */
void native_code(NativeGen *p, const RegCode *code);

#endif
