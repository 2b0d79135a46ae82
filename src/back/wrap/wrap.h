/* wrap.h: what texts around a generated file have in common. */
#ifndef INGOT_WRAP_H
#define INGOT_WRAP_H

#include "back/back.h"

/* How a language writes a product of sizes. */
typedef struct SizeSyntax {
  const char *one, *number; /* number: of a factor, behind its digits */
  const char *size;         /* the function that makes a size of an i64 */
} SizeSyntax;

/* params.c */
const Buf *param_buf(const Prog *p, const EmitParam *x); /* of an input, an output or its shape */
/* Elements that a run reads or writes, at most: a product of extents. */
void put_elements(StrBuf *t, const Prog *p, const EmitFacts *f, const Buf *b,
                  const SizeSyntax *how);

#endif
