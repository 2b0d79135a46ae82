/* Bytes -> JSON. What is accepted has every value inside the limits, and every key is found again.
 */
#include "io/json.h"
#include <stdlib.h>
#include <string.h>

typedef struct Job {
  const u8 *at;
  size_t n;
} Job;

static void walk(const Json *j, u32 depth) {
  if (depth > JSON_DEPTH) abort();
  if (j->kind == JS_array)
    for (u32 i = 0; i < j->n; i++) walk(&j->at[i], depth + 1);
  if (j->kind != JS_object) return;
  for (u32 i = 0; i < j->n; i++) {
    const Json *key = json_key(j, i);
    if (json_get_bytes(j, key->text, key->n) != json_value(j, i)) abort();
    walk(json_value(j, i), depth + 1);
  }
}

static void run(Ctx *c, void *arg) {
  const Job *job = arg;
  walk(json_read(c, job->at, job->n, LOC_NONE, &c->work).root, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n) {
  Job j = {at, n};
  Ctx *c = ctx_new(NULL, NULL);
  Err e = ctx_protect(c, run, &j);
  if (e != ERR_ok && e != ERR_input) abort();
  ctx_free(c);
  return 0;
}
