/* tune_table.c: autotuning table, and a log of queries to it.
 *
 * In: a key (kernel and shape) and its legal choices, best first by the cost model. Out: the choice
 * in the table, or the first. Every query is logged, so that the autotuner
 * (driver/bench/autotune.c) knows what to measure. Keys and choices are opaque here; tile_tune.c
 * and winograd_plan.c define them.
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

static Str tune_get(const TuneTable *t, Str key) {
  const u32 *at = map_get(&t->table, key);
  return at ? *at : 0;
}

u32 tune_query(TuneTable *t, StmtId kernel, Str key, const Str *choice, u32 n) {
  Str named = tune_get(t, key);
  u32 taken = 0;
  while (taken < n && choice[taken] != named) taken++;
  bool known = taken < n;
  if (!known) taken = 0;
  for (u32 i = 0; i < t->asked.n; i++) /* trials query the same key several times */
    if (t->asked.at[i].key == key && t->asked.at[i].kernel == kernel) return taken;
  if (named && !known)
    warn(t->c, LOC_NONE, "the tuning file has '%s', which is not a legal choice for: %s",
         show(t->c, named), show_text(t->c, key));
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
