/* Bytes -> GGUF file -> every key by every type, every byte of every tensor, what inspect tells.
 *
 * A refusal has code 3 or 4, and memory stays linear in the input: a key takes a record of a few
 * dozen bytes for the fourteen that it has at least.
 */
#include "front/llm/llm.h"
#include <stdlib.h>

typedef struct Job {
  const u8 *at;
  size_t n;
  LmFile *f;
  const char *key;
  u32 kind; /* how it is asked for */
  u64 sum;
} Job;

static void read_file(Ctx *c, void *arg) {
  Job *j = arg;
  ModelInfo facts = {0};
  Model *m = lm_read(c, &(Source){.at = j->at, .n = j->n});
  j->f = (LmFile *)m->own;
  lm_info(c, m, &facts);
}

static void read_key(Ctx *c, void *arg) {
  Job *j = arg;
  LmList l;
  FileSpan s;
  double f = 0;
  i64 i = 0;
  bool b = false;
  (void)c;
  if (!lm_list(j->f, j->key, &l)) abort();
  switch (j->kind) {
  case 0:
    while (lm_next_int(&l, -1000, 1000, &i)) j->sum += (u64)i;
    break;
  case 1:
    while (lm_next_float(&l, &f)) j->sum += f > 0;
    break;
  case 2:
    while (lm_next_bool(&l, &b)) j->sum += b;
    break;
  default:
    while (lm_next_string(&l, &s)) j->sum += s.n ? s.at[s.n - 1] : 0;
    break;
  }
}

static void check(Err e) {
  if (e != ERR_ok && e != ERR_input && e != ERR_unsupported) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n) {
  Ctx *c = ctx_new(NULL, NULL);
  Job j = {.at = at, .n = n};
  check(ctx_protect(c, read_file, &j));
  if (c->work.used + c->keep.used > 512 * n + 65536) abort();
  for (u32 i = 0; j.f && i < 4 * j.f->gguf->key.n; i++) {
    j.key = str_text(c, j.f->gguf->key.at[i / 4].name);
    j.kind = i % 4;
    check(ctx_protect(c, read_key, &j));
  }
  for (u32 i = 0; j.f && i < j.f->tensor.n; i++)
    for (u64 k = 0; k < j.f->tensor.at[i].bytes; k++) j.sum += j.f->tensor.at[i].at[k];
  ctx_free(c);
  return 0;
}
