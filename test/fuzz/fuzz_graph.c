/* Bytes -> text of a graph -> the graph passes, verified after each.
 *
 * What is accepted must print the same after being read again, before and after the passes;
 * whatever is refused is the text's fault, never a bug that a verifier finds.
 */
#include "pass/pass.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Job {
  const char *at;
  size_t n;
} Job;

/* A graph, printed and read again. */
typedef struct Twice {
  Graph *g;
  StrBuf t, side;
} Twice;

static void reread(Ctx *c, void *arg) {
  Twice *w = arg;
  StrBuf t = sb_new(&c->keep), side = sb_new(&c->keep);
  Graph *h = graph_parse(c, w->t.at, w->t.n, 0, (const u8 *)w->side.at, w->side.n);
  graph_print(h, &t, &side);
  if (t.n != w->t.n || memcmp(t.at, w->t.at, t.n)) abort();
  if (side.n != w->side.n || (side.n && memcmp(side.at, w->side.at, side.n))) abort();
}

static void same(Ctx *c, Graph *g) {
  Twice w = {g, sb_new(&c->keep), sb_new(&c->keep)};
  const char *why;
  graph_print(g, &w.t, &w.side);
  if (ctx_try(c, reread, &w, &why) != ERR_ok) {
    fprintf(stderr, "not read back: %s\n%.*s", why, (int)w.t.n, w.t.at);
    abort();
  }
}

static void passes(Ctx *c, Graph *g) {
  PassCtx u = {.c = c, .g = g};
  PipeOptions o = {.stop = "dce", .check = true};
  pipeline_run(&u, &o);
  same(c, u.g);
}

static void run(Ctx *c, void *arg) {
  const Job *j = arg;
  Graph *g = graph_parse(c, j->at, j->n, 0, NULL, 0);
  same(c, g);
  passes(c, g);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n) {
  Job j = {(const char *)at, n};
  Ctx *c = ctx_new(NULL, NULL);
  Err e = ctx_protect(c, run, &j);
  if (e != ERR_ok && e != ERR_input && e != ERR_unsupported) abort();
  ctx_free(c);
  return 0;
}
