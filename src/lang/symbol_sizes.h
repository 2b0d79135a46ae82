/* symbol_sizes.h: extents of tensors, as types name them. Embeddable: programs that were compiled
 * have it too.
 */
#ifndef INGOT_LANG_EXTENTS_H
#define INGOT_LANG_EXTENTS_H

#include "ir/ir.h"

#include <string.h>

struct Eval;

enum { SYMBOLS = 16 };
typedef struct SymbolSizes { /* what symbols of types stand for */
  u32 n;
  struct {
    const char *name;
    i64 n;
  } at[SYMBOLS];
} SymbolSizes;

/* What an extent of a type has to be: *want, if that is a number, or what its name stands for,
 * which is `have` from the first time on. False: there are too many names. */
static inline bool symbols_unify(SymbolSizes *s, const char *name, i64 *want, i64 have) {
  for (u32 k = 0; name && k < s->n; k++)
    if (!strcmp(s->at[k].name, name)) {
      *want = s->at[k].n;
      return true;
    }
  if (*want >= 0) return true;
  *want = have;
  if (name && s->n == SYMBOLS) return false;
  if (name) {
    s->at[s->n].name = name;
    s->at[s->n++].n = have;
  }
  return true;
}

i64 size_times(struct Eval *ev, i64 x, i64 y);

static inline i64 size_product(struct Eval *ev, const i64 *dim, u32 rank) {
  i64 n = 1;
  for (u32 i = 0; i < rank; i++) n = size_times(ev, n, dim[i]);
  return n;
}

#endif
