/* A file of bytecode with its checksum made right, read and run on made-up inputs: whatever is in
 * it, it is refused, or runs, or ends for want of fuel. What needs much memory is not run. */
#ifndef FUZZ_HOSTILE_H
#define FUZZ_HOSTILE_H

#include "back/vm/igb.h"
#include <stdlib.h>
#include <string.h>

enum { HOSTILE_FUEL = 3000, HOSTILE_BYTES = 1 << 20, HOSTILE_ELEMENTS = 10000 };

typedef struct Hostile {
  const u8 *at;
  size_t n;
  bool ran; /* to its end */
} Hostile;

/* What a reader would stumble over before it sees anything else. */
static void hostile_mend(u8 *at, size_t n) {
  IgbHead *h = (IgbHead *)(void *)at;
  IgbSum s = igb_sum();
  if (n < sizeof *h) return;
  memcpy(h->magic, IGB_MAGIC, 8);
  h->version = IGB_VERSION;
  h->tables = igb_tables();
  h->bytes = n;
  igb_sum_add(&s, at, n);
  h->check = s.h;
}

static Tensor *hostile_input(Ctx *c, Prog *p, const Buf *b) {
  i64 dim[MAX_RANK], lo;
  u64 n = 1;
  for (u32 k = 0; k < b->rank; k++) {
    dim_bounds(p->dims, b->dim[k], &lo, &dim[k]);
    if (dim[k] < 0 || dim[k] > HOSTILE_ELEMENTS || (n *= (u64)dim[k]) > HOSTILE_ELEMENTS)
      return NULL;
  }
  Tensor *t = tensor_new(&c->keep, b->dt, dim, b->rank);
  for (u64 k = 0; k < t->n && b->dt != DT_str; k++) {
    Scalar x = {.i = (i64)(k % 2)};
    if (dtype_is_float(b->dt)) x.f = (double)(k % 3);
    tensor_set(t, k, x);
  }
  return t;
}

static bool hostile_small(Prog *p) {
  for (u32 i = 0; i < p->out.n; i++) {
    const Buf *b = prog_buf(p, p->out.at[i]);
    u64 n = 1;
    for (u32 k = 0; k < b->rank; k++) {
      i64 lo, hi;
      dim_bounds(p->dims, b->dim[k], &lo, &hi);
      if (hi > HOSTILE_ELEMENTS || (n *= hi < 0 ? 0 : (u64)hi) > HOSTILE_ELEMENTS) return false;
    }
  }
  return p->in.n < 20 && p->out.n < 20;
}

static void hostile_try(Ctx *c, void *arg) {
  Hostile *j = arg;
  const IgbHead *h = (const IgbHead *)(const void *)j->at;
  Tensor *in[20], *out[20];
  Igb g;
  u64 where;
  if (j->n >= sizeof *h && !igb_open(j->at, j->n, &g, &where) &&
      (h->arena > HOSTILE_BYTES || h->slots > HOSTILE_BYTES / 8))
    return;
  VmProgram *v = vm_read(c, j->at, j->n, &c->keep);
  Prog *p = vm_prog(v);
  if (!hostile_small(p)) return;
  for (u32 i = 0; i < p->in.n; i++)
    if (!(in[i] = hostile_input(c, p, prog_buf(p, p->in.at[i])))) return;
  /* By turns: the machine for any CPU, and the one for this. */
  vm_run(v, &(VmOptions){.fuel = HOSTILE_FUEL, .plain = h->check & 1}, in, out, &c->keep);
  u64 sum = 0;
  for (u32 i = 0; i < p->out.n; i++)
    for (u64 k = 0; k < tensor_bytes(out[i]); k++) sum += ((const u8 *)out[i]->data)[k];
  j->ran = sum <= UINT64_MAX;
}

/* True: it ran to its end. */
static bool hostile(const u8 *at, size_t n) {
  Hostile j = {.at = at, .n = n};
  Ctx *c = ctx_new(NULL, NULL);
  Err e = ctx_protect(c, hostile_try, &j);
  if (e != ERR_ok && e != ERR_input && e != ERR_unsupported && e != ERR_usage) abort();
  ctx_free(c);
  return j.ran;
}

#endif
