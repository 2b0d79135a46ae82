/* dim_visit.c: iterates over the symbols of a dimension.
 *
 * In: a dimension. Out: its symbols in the order of its text, a derived one before its operands;
 * and common queries about them. */
#include "ir/dim.h"
#include "ir/lexer.h"

bool dim_next(SymVisit *w) {
  const Dim open[2] = {w->b, w->a};
  w->a = w->b = 0;
  for (u32 k = 0; k < 2; k++) {
    const DimAffine *f = open[k] < 0 ? &w->ds->aff.at[-1 - open[k]] : NULL;
    for (u32 i = f ? f->n : 0; i-- > 0;) w->more[w->n++] = f->sym[i];
  }
  if (!w->n) return false;
  w->sym = w->more[--w->n];
  w->info = &w->ds->sym.at[w->sym];
  if (w->info->kind == SY_derived) w->a = w->info->a, w->b = w->info->b;
  return true;
}

bool dim_mentions(const Dims *ds, Dim d, Sym s) {
  for (SymVisit w = dim_visit(ds, d); dim_next(&w);)
    if (w.sym == s) return true;
  return false;
}

bool dim_is_data(const Dims *ds, Dim d) {
  for (SymVisit w = dim_visit(ds, d); dim_next(&w);)
    if (w.info->kind == SY_data) return true;
  return false;
}

void dims_mark_used(Dims *ds, Dim d, bool *used) {
  for (SymVisit w = dim_visit(ds, d); dim_next(&w);) used[w.sym] = true;
}
