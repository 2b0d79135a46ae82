/* tune_table.h: choices of lowering as text, and a table that knows better than the closed form. */
#ifndef INGOT_TUNE_H
#define INGOT_TUNE_H

#include "pass/pass.h"

typedef struct TuneQuery TuneQuery;

enum { TUNE_CHOICES = 8 }; /* that are offered for one key */

/* One question of lowering, as it was answered. */
struct TuneQuery {
  Str key;
  StmtId kernel; /* it was asked for; 0: for none */
  u32 n, taken;
  const Str *choice; /* n of them, the first is that of the closed form */
  bool known;        /* the table named one of them */
};

struct TuneTable {
  Ctx *c;
  Map table; /* Str key -> Str choice */
  VEC(TuneQuery) asked;
};

/* tune_table.c */
TuneTable *tune_new(Ctx *c);
void tune_set(TuneTable *t, Str key, Str choice); /* in place of an earlier one */
Str tune_get(const TuneTable *t, Str key);        /* 0: there is none */
/* Which of n choices to take. A table can name only what is offered: whatever a file says, the code
 * is right. */
u32 tune_query(TuneTable *t, StmtId kernel, Str key, const Str *choice, u32 n);
/* What was asked for no kernel yet was asked for this one too. */
void tune_add_kernel(TuneTable *t, StmtId kernel, Str key);

#endif
