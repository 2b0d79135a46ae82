/* Bytes -> safetensors file -> every byte of every tensor.
 *
 * A refusal has code 3 or 4; what is accepted tiles the data behind the header exactly, and memory
 * stays linear in the input.
 */
#include "io/safetensors.h"
#include <stdlib.h>

typedef struct Job {
  const u8 *at;
  size_t n;
  u64 sum;
} Job;

static void read_file(Ctx *c, void *arg) {
  Job *j = arg;
  StoredTensors v = safetensors_read(c, j->at, j->n, LOC_NONE);
  const u8 *end = NULL;
  for (u32 i = 0; i < v.n; i++) {
    const StoredTensor *t = &v.at[i];
    if (end && t->at != end) abort();
    end = t->at + t->bytes;
    for (u64 k = 0; k < t->bytes; k++) j->sum += t->at[k];
  }
  if (end && end != j->at + j->n) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n) {
  Ctx *c = ctx_new(NULL, NULL);
  Job j = {.at = at, .n = n};
  Err e = ctx_protect(c, read_file, &j);
  if (e != ERR_ok && e != ERR_input && e != ERR_unsupported) abort();
  if (c->work.used + c->keep.used > 512 * n + 65536) abort();
  ctx_free(c);
  return 0;
}
