/* tune_table.h: choices of lowering as text, and a table of measured choices that override the cost
 * model.
 */
#ifndef INGOT_TUNE_H
#define INGOT_TUNE_H

#include "pass/pass.h"

typedef struct TuneQuery TuneQuery;

enum { TUNE_CHOICES = 8 }; /* maximum offered for one key */

/* A query of lowering with its answer. */
struct TuneQuery {
  Str key;
  StmtId kernel; /* kernel it belongs to; 0: none */
  u32 n, taken;
  const Str *choice; /* n choices; the first is that of the cost model */
  bool known;        /* the table had an entry that matches a choice */
};

struct TuneTable {
  Ctx *c;
  Map table; /* Str key -> Str choice */
  VEC(TuneQuery) asked;
};

/* tune_table.c */
TuneTable *tune_new(Ctx *c);
void tune_set(TuneTable *t, Str key, Str choice); /* replaces an earlier entry */
/* Returns which of n choices to take. A table can select only offered choices, so its contents
 * never affect correctness. */
u32 tune_query(TuneTable *t, StmtId kernel, Str key, const Str *choice, u32 n);
/* Assigns to this kernel the query of this key, which was made before the kernel existed. */
void tune_add_kernel(TuneTable *t, StmtId kernel, Str key);

#endif
