/* symbol_sizes.h: named extents in tensor types. Also compiled into programs. */
#ifndef INGOT_LANG_EXTENTS_H
#define INGOT_LANG_EXTENTS_H

#include "ir/ir.h"

#include <string.h>

struct Eval;

enum { SYMBOLS = 16 };
typedef struct SymbolSizes { /* values of symbols in types */
  u32 n;
  struct {
    const char *name;
    i64 n;
  } at[SYMBOLS];
} SymbolSizes;

/* Sets *want to the required extent: *want itself if it is a number, else the value of the name,
 * which `have` defines at first use. False if there are too many names. */
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
