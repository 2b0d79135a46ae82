/* tokenize.c: ingot_open_vocab, ingot_tokenize, ingot_detokenize. */
#include "api/api_internal.h"
#include "front/vocab_file.h"
#include "chat/chat.h"

static void open_vocab(Ingot *m, const char *path) {
  Ctx *c = m->c;
  api_need(c, path, "the name of a file");
  VocabBlob f = vocab_file(c, path, &c->keep);
  Vocab *v = NEW(&c->keep, Vocab);
  if (!vocab_open(v, f.at, f.n)) internal_error(c, LOC_NONE, "a vocabulary that cannot be opened");
  m->opened.vocab = v;
}

IngotStatus ingot_open_vocab(Ingot *m, const char *path) {
  API_CALL(m, open_vocab(m, path));
}

static const Vocab *need_vocab(Ingot *m) {
  if (!m->opened.vocab)
    fail(m->c, ERR_usage, LOC_NONE,
         "no vocabulary is open: expected a language model or a tokenizer file");
  return m->opened.vocab;
}

/* Warns of bytes that no token represents in a byte-level vocabulary. */
static void warn_lost(Ctx *c, const Vocab *v, const u8 *text, size_t n) {
  bool seen[256] = {0};
  u32 lost = 0, first = 0, id[8];
  size_t room = vocab_encode_bytes(v, 1);
  void *memory = arena_alloc(&c->scratch, room);
  if (!(v->head->flags & VF_byte_level)) return;
  for (size_t i = 0; i < n; i++) {
    if (seen[text[i]]) continue;
    seen[text[i]] = true;
    if (vocab_encode(v, &text[i], 1, NULL, 0, id, 8, memory, room)) continue;
    if (!lost++) first = text[i];
  }
  if (lost)
    warn(c, LOC_NONE,
         "%u kind%s of bytes in the text, the first 0x%02x, have no token and are lost", lost,
         lost > 1 ? "s" : "", first);
}

static void tokenize(Ingot *m, const void *text, size_t n, unsigned flags, const uint32_t **ids,
                     size_t *count) {
  Ctx *c = m->c;
  const Vocab *v = need_vocab(m);
  api_need(c, ids, "the ids");
  api_need(c, count, "the number of ids");
  if (n) api_need(c, text, "the text");
  if (n > 1 << 28) fail(c, ERR_unsupported, LOC_NONE, "expected a text of at most 256 MB");
  arena_clear(&c->scratch);
  u32 how =
      (flags & INGOT_SPECIAL ? VE_parse_special : 0) | (flags & INGOT_BARE ? 0 : VE_add_special);
  *ids = text_ids(c, v, text, n, NULL, how, &c->scratch, count);
  warn_lost(c, v, text, n);
}

IngotStatus ingot_tokenize(Ingot *m, const void *text, size_t n, unsigned flags,
                           const uint32_t **ids, size_t *count) {
  API_CALL(m, tokenize(m, text, n, flags, ids, count));
}

static void detokenize(Ingot *m, const uint32_t *ids, size_t n, unsigned flags, const char **text,
                       size_t *bytes) {
  Ctx *c = m->c;
  const Vocab *v = need_vocab(m);
  if (n) api_need(c, ids, "the ids");
  api_need(c, text, "the text");
  api_need(c, bytes, "the length of the text");
  arena_clear(&c->scratch);
  StrBuf t = sb_new(&c->scratch);
  Detok d = {.special = flags & INGOT_SPECIAL};
  u8 *piece = arena_alloc(&c->scratch, detok_max_bytes(v));
  for (size_t i = 0; i < n; i++) {
    if (ids[i] >= v->head->ntoken)
      fail(c, ERR_usage, LOC_NONE, "token id %u is out of range: the vocabulary has %u tokens",
           ids[i], v->head->ntoken);
    sb_put(&t, piece, detok_put(&d, v, ids[i], piece));
  }
  sb_put(&t, piece, detok_end(&d, v, piece));
  *text = sb_cstr(&t);
  *bytes = t.n;
}

IngotStatus ingot_detokenize(Ingot *m, const uint32_t *ids, size_t n, unsigned flags,
                             const char **text, size_t *bytes) {
  API_CALL(m, detokenize(m, ids, n, flags, text, bytes));
}
