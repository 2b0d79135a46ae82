/* tune_table.c: the table of tuned choices, and what lowering asked of it.
 *
 * In: a key (which kernel, of which shape) and the choices that are legal for it, best first by the
 * closed form. Out: the one that the table names, or the first. Every question is kept, so that
 * whoever measures (api/autotune.c) knows what there is to try. It knows nothing of what keys and
 * choices mean: see tile_tune.c and winograd_plan.c.
 */
#include "pass/kernel/tune_table.h"

#include <string.h>

TuneTable *tune_new(Ctx *c) {
  TuneTable *t = NEW(&c->keep, TuneTable);
  *t = (TuneTable){.c = c, .table = map_new(&c->keep)};
  return t;
}

void tune_set(TuneTable *t, Str key, Str choice) {
  *map_put(&t->table, key) = choice;
}

Str tune_get(const TuneTable *t, Str key) {
  const u32 *at = map_get(&t->table, key);
  return at ? *at : 0;
}

u32 tune_query(TuneTable *t, StmtId kernel, Str key, const Str *choice, u32 n) {
  Str named = tune_get(t, key);
  u32 taken = 0;
  while (taken < n && choice[taken] != named) taken++;
  bool known = taken < n;
  if (!known) taken = 0;
  for (u32 i = 0; i < t->asked.n; i++) /* kernels are tried before they are written */
    if (t->asked.at[i].key == key && t->asked.at[i].kernel == kernel) return taken;
  if (named && !known)
    warn(t->c, LOC_NONE, "tuned choice '%s' is not one of those for: %s", show(t->c, named),
         show_text(t->c, key));
  Str *copy = NEWS(&t->c->keep, Str, n);
  memcpy(copy, choice, n * sizeof *copy);
  *vec_push(&t->c->keep, &t->asked) = (TuneQuery){key, kernel, n, taken, copy, known};
  return taken;
}

void tune_add_kernel(TuneTable *t, StmtId kernel, Str key) {
  for (u32 i = 0; i < t->asked.n; i++)
    if (t->asked.at[i].key == key) {
      TuneQuery a = t->asked.at[i];
      a.kernel = kernel;
      *vec_push(&t->c->keep, &t->asked) = a;
      return;
    }
}
