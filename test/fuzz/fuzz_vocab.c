/* Bytes -> tokenizer.json, tokenizer.model, a chat template, a pattern, or a GGUF file; the first
 * byte says which, and a GGUF file is known by its own.
 *
 * A vocabulary that is accepted encodes the bytes themselves, within the room that it asks for, to
 * ids that it has, and gives text back that is UTF-8.
 */
#include "front/llm/vocab_read.h"
#include "chat/chat.h"
#include <stdlib.h>
#include <string.h>

typedef struct Job {
  u32 kind;
  const u8 *at;
  size_t n;
} Job;

static void use(Ctx *c, const Vocab *v, const u8 *at, size_t n) {
  n = n < 200 ? n : 200;
  size_t got;
  const u32 *ids = text_ids(c, v, at, n, NULL, VE_parse_special | VE_add_special, &c->keep, &got);
  Detok d = {.special = 1};
  u8 *piece = arena_alloc(&c->work, detok_max_bytes(v));
  for (size_t i = 0; i < got; i++) {
    if (ids[i] >= v->head->ntoken) abort();
    size_t length = detok_put(&d, v, ids[i], piece);
    for (size_t k = 0; k < length;) {
      u32 step;
      if (utf8_get(piece + k, length - k, &step) >= VOCAB_BAD_BYTE) abort();
      k += step;
    }
  }
}

static void make(Ctx *c, VocabSpec *s, const Job *j) {
  size_t n;
  Vocab v;
  const u8 *block = vocab_make(s, &n);
  if (!vocab_open(&v, block, n)) abort();
  use(c, &v, j->at, j->n);
}

static void run(Ctx *c, void *arg) {
  const Job *j = arg;
  if (j->kind == 0) {
    JsonDoc d = json_read(c, j->at, j->n, LOC_NONE, &c->work);
    make(c, vocab_from_json(&d, NULL, &c->work), j);
  } else if (j->kind == 1) {
    make(c, vocab_from_spm(c, j->at, j->n, LOC_NONE, &c->work), j);
  } else if (j->kind == 2) {
    JinjaVal vars = jinja_dict(&c->work), list = jinja_list(&c->work), m = jinja_dict(&c->work);
    jinja_set(&c->work, m, "role", jinja_string(&c->work, "user", 4, false));
    jinja_set(&c->work, m, "content", jinja_string(&c->work, "a b", 3, true));
    jinja_add(&c->work, list, m);
    jinja_set(&c->work, vars, "messages", list);
    jinja_render(c, (const char *)j->at, j->n, vars, 0, LOC_NONE, &c->work);
  } else if (j->kind == 4) {
    make(c, vocab_from_gguf(c, gguf_read(c, j->at, j->n, LOC_NONE), LOC_NONE, &c->work), j);
  } else {
    VocabSpec *s = spec_new(c, &c->work, LOC_NONE);
    size_t n = j->n < 64 ? j->n : 64;
    spec_split(s, (const char *)j->at, n, SB_isolated);
    s->head.flags |= VF_byte_level;
    make(c, s, j);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n) {
  if (n == 0) return 0;
  Job j = {.kind = at[0] % 4, .at = at + 1, .n = n - 1};
  if (at[0] == 'G') j = (Job){.kind = 4, .at = at, .n = n};
  Ctx *c = ctx_new(NULL, NULL);
  Err e = ctx_protect(c, run, &j);
  if (e != ERR_ok && e != ERR_input && e != ERR_unsupported) abort();
  ctx_free(c);
  return 0;
}
