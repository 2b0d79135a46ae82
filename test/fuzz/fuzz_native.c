/* Bytes -> program -> the walk that finds its graphs -> C.
 *
 * Beyond what the sanitizers see: a refusal is the program's fault (code 2, 3 or 4), and no memory
 * is left. The walk has few turns, and the allocator refuses more than MOST_BYTES. Programs that
 * read files are left out: what is on a disk is no part of the input.
 */
#include "lang/run/lang_value.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STEPS = 2000, MOST_TEXT = 2000 };
static const size_t MOST_BYTES = (size_t)256 << 20;
#include "memory.h"

typedef struct Job {
  Ingot *m;
  const char *at;
  size_t n;
} Job;

static void run(Ctx *c, void *arg) {
  const Job *j = arg;
  Script *s = script_new(c, str_of(c, "input.ch"), j->at, j->n, NULL);
  StrBuf out = sb_new(&c->keep);
  script_load(s);
  script_native(j->m, s, MOST_STEPS, true, &out);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n) {
  static const char *const reads[] = {"import", "load"};
  Memory mem = {0};
  Job j = {.at = (const char *)at, .n = n};
  if (n > MOST_TEXT) return 0;
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < sizeof reads / sizeof *reads; k++)
      if (n - i >= strlen(reads[k]) && !memcmp(at + i, reads[k], strlen(reads[k]))) return 0;
  IngotAlloc a = {resize, &mem};
  j.m = ingot_new(&a);
  IngotStatus e = api_call(j.m, run, &j);
  bool fine = e == INGOT_OK || e == INGOT_USAGE || e == INGOT_UNSUPPORTED || e == INGOT_BAD_INPUT;
  if (!fine && !(e == INGOT_SYSTEM && mem.refused)) {
    fprintf(stderr, "fuzz_native: %s\n", j.m->c->diags ? j.m->c->diags->text : "no message");
    abort();
  }
  ingot_free(j.m);
  if (mem.held) abort();
  return 0;
}
