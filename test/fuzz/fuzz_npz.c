/* Bytes -> npy, npz, pb or deflated data; the first byte says which.
 *
 * What is accepted must come back the same after being written and read again. The checksum keeps
 * mutations from getting far into an archive, so npy and inflate are also targets of their own.
 */
#include "front/onnx/onnx.h"
#include "front/onnx/pb.h"
#include "io/data.h"
#include <stdlib.h>
#include <string.h>

typedef struct Job {
  u32 kind;
  const u8 *at;
  size_t n;
} Job;

static void same(const Ctx *c, const Tensor *x, const Tensor *y) {
  if (!tensor_equal(c, x, y)) abort();
}

static void npy(Ctx *c, const Tensor *t) {
  StrBuf out = sb_new(&c->work);
  data_write_npy(c, &out, t);
  same(c, t, data_read_npy_as(c, (const u8 *)out.at, out.n, t->dt, LOC_NONE, &c->work));
}

static void pb(Ctx *c, const PbValue *d) {
  for (u32 i = 0; i < d->n; i++) pb(c, &d->elem[i]);
  if (!d->t) return;
  StrBuf out = sb_new(&c->work);
  data_write_pb(c, &out, 0, d->t);
  same(c, d->t, data_read_pb(c, (const u8 *)out.at, out.n, NULL, NULL, LOC_NONE, &c->work)->t);
}

static void npz(Ctx *c, const u8 *at, size_t n) {
  NamedTensors v = data_read_npz(c, at, n, LOC_NONE, &c->work);
  Str *name = NEWS(&c->work, Str, v.n + 1);
  Tensor **t = NEWS(&c->work, Tensor *, v.n + 1);
  for (u32 i = 0; i < v.n; i++) name[i] = v.at[i].name, t[i] = v.at[i].t;
  StrBuf out = sb_new(&c->work);
  data_write_npz(c, &out, name, t, v.n);
  NamedTensors w = data_read_npz(c, (const u8 *)out.at, out.n, LOC_NONE, &c->work);
  if (w.n != v.n) abort();
  for (u32 i = 0; i < v.n; i++) {
    if (w.at[i].name != name[i]) abort();
    same(c, t[i], w.at[i].t);
  }
}

static void unpack(Ctx *c, const u8 *at, size_t n) {
  if (n < 2) return;
  size_t size = (size_t)at[0] << 8 | at[1];
  inflate(at + 2, n - 2, arena_alloc(&c->work, size), size);
}

static void run(Ctx *c, void *arg) {
  const Job *j = arg;
  DeclType inner = {.kind = OT_tensor},
           type = {.kind = j->kind == 4 ? OT_seq : OT_opt, .elem = &inner};
  switch (j->kind) {
  case 0: npy(c, data_read_npy_as(c, j->at, j->n, DT_i4, LOC_NONE, &c->work)); break;
  case 1: npz(c, j->at, j->n); break;
  case 2: unpack(c, j->at, j->n); break;
  case 3: pb(c, data_read_pb(c, j->at, j->n, NULL, NULL, LOC_NONE, &c->work)); break;
  default: pb(c, data_read_pb(c, j->at, j->n, &type, NULL, LOC_NONE, &c->work));
  }
}

/* Sparse tensors in sequences may ask for the whole budget; a fuzzer has no time for that. */
static bool has_huge(const u8 *at, size_t n) {
  for (size_t i = 0; i + 3 < n; i++)
    if (at[i] >= 0x80 && at[i + 1] >= 0x80 && at[i + 2] >= 0x80) return true;
  return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n) {
  if (n == 0) return 0;
  Job j = {.kind = at[0] % 6, .at = at + 1, .n = n - 1};
  if (j.kind > 3 && has_huge(at, n)) return 0;
  Ctx *c = ctx_new(NULL, NULL);
  Err e = ctx_protect(c, run, &j);
  if (e != ERR_ok && e != ERR_input && e != ERR_unsupported) abort();
  ctx_free(c);
  return 0;
}
