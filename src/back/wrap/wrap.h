/* wrap.h: shared by the wrappers around a generated C file. */
#ifndef INGOT_WRAP_H
#define INGOT_WRAP_H

#include "back/back.h"

/* Syntax of a product of sizes in a language. */
typedef struct SizeSyntax {
  const char *one, *number; /* number: suffix of an integer literal */
  const char *size;         /* function that converts an i64 to a size */
} SizeSyntax;

/* params.c */
const Buf *param_buf(const Prog *p,
                     const EmitParam *x); /* buffer of an input, an output or a shape */
/* Maximum number of elements of a run, as a product of extents. */
void put_elements(StrBuf *t, const Prog *p, const EmitFacts *f, const Buf *b,
                  const SizeSyntax *how);

#endif
