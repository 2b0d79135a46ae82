/* Bytes -> text of a program -> the interpreter and bytecode.
 *
 * What is accepted must print the same after being read again. A program that is sure to end soon
 * is run both ways, and nothing may be read or written that is not its memory. That results agree
 * is for programs that write what they read: test/unit/prog_interp.c makes such.
 */
#include "back/back.h"
#include "small.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARAMS = 4 };
static const Small small = {20000, 10000, false};

typedef struct Job {
  const char *at;
  size_t n;
  Prog *p;
  StrBuf t;
  bool vm; /* as bytecode */
  Tensor *in[MOST_PARAMS], *out[2][MOST_PARAMS];
} Job;

static void reread(Ctx *c, void *arg) {
  Job *j = arg;
  StrBuf t = sb_new(&c->keep);
  prog_print(prog_parse(c, j->t.at, j->t.n, 0, NULL, 0), &t, NULL);
  if (t.n != j->t.n || memcmp(t.at, j->t.at, t.n)) abort();
}

static void make_inputs(Ctx *c, Job *j) {
  for (u32 i = 0; i < j->p->in.n; i++) {
    const Buf *b = prog_buf(j->p, j->p->in.at[i]);
    i64 dim[MAX_RANK], hi;
    for (u32 k = 0; k < b->rank; k++) dim_bounds(j->p->dims, b->dim[k], &hi, &dim[k]);
    j->in[i] = tensor_new(&c->keep, b->dt, dim, b->rank);
    for (u64 k = 0; k < j->in[i]->n && b->dt != DT_str; k++) {
      Scalar x = {.i = (i64)(k % 2)};
      if (dtype_is_float(b->dt)) x.f = (double)(k % 3);
      tensor_set(j->in[i], k, x);
    }
  }
}

static void run(Ctx *c, void *arg) {
  Job *j = arg;
  if (j->vm)
    vm_run(vm_compile(j->p, &c->keep), NULL, j->in, j->out[1], &c->keep);
  else
    interp_run(j->p, NULL, j->in, j->out[0], &c->keep);
}

/* Each way ends, with results or with a refusal. Results may differ: a program made of bytes reads
 * what it never wrote. */
static void both(Ctx *c, Job *j) {
  make_inputs(c, j);
  for (int vm = 0; vm < 2; vm++) {
    j->vm = vm;
    Err e = ctx_protect(c, run, j);
    u64 sum = 0;
    for (u32 i = 0; e == ERR_ok && i < j->p->out.n; i++)
      for (u64 k = 0; k < tensor_bytes(j->out[vm][i]); k++)
        sum += ((const u8 *)j->out[vm][i]->data)[k];
    if (e == ERR_mismatch || sum == UINT64_MAX) abort();
  }
}

static void parse(Ctx *c, void *arg) {
  Job *j = arg;
  const char *why;
  j->p = prog_parse(c, j->at, j->n, 0, NULL, 0);
  j->t = sb_new(&c->keep);
  prog_print(j->p, &j->t, NULL);
  if (ctx_try(c, reread, j, &why) != ERR_ok) {
    fprintf(stderr, "not read back: %s\n%.*s", why, (int)j->t.n, j->t.at);
    abort();
  }
  bool few = j->p->in.n <= MOST_PARAMS && j->p->out.n <= MOST_PARAMS;
  if (few && is_small(j->p, &small)) both(c, j);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n) {
  Job j = {.at = (const char *)at, .n = n};
  Ctx *c = ctx_new(NULL, NULL);
  Err e = ctx_protect(c, parse, &j);
  if (e != ERR_ok && e != ERR_input && e != ERR_unsupported) abort();
  ctx_free(c);
  return 0;
}
