/* Bytes -> tokens, tree, types. What is accepted by the parser is laid out anew: the result has the
 * same tokens, and laying it out again changes nothing.
 */
#include "lang/syntax/lang.h"
#include <stdlib.h>
#include <string.h>

typedef struct Job {
  const char *at;
  size_t n;
} Job;

static void compare(const Script *a, const Script *b) {
  if (a->token.n != b->token.n || a->comment.n != b->comment.n) abort();
  for (u32 i = 0; i < a->token.n; i++) {
    const Token *x = &a->token.at[i], *y = &b->token.at[i];
    if (x->kind != y->kind || x->n != y->n || memcmp(a->at + x->at, b->at + y->at, x->n)) abort();
  }
}

static void run(Ctx *c, void *arg) {
  const Job *j = arg;
  Script *s = script_new(c, 0, j->at, j->n, NULL);
  script_parse(s);
  diag_raise(c);
  StrBuf once = sb_new(&c->work), twice = sb_new(&c->work);
  script_format(s, &once);
  Script *again = script_new(c, 0, once.at, once.n, NULL);
  compare(s, again);
  script_format(again, &twice);
  if (once.n != twice.n || (once.n && memcmp(once.at, twice.at, once.n))) abort();
  script_check(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n) {
  Job j = {(const char *)at, n};
  if (n > 4096) return 0;
  Ctx *c = ctx_new(NULL, NULL);
  Err e = ctx_protect(c, run, &j);
  if (e != ERR_ok && e != ERR_input) abort();
  ctx_free(c);
  return 0;
}
