/* encode.c: text -> token ids. Finds added tokens and tokenizes the text between them. */
#include "tokenizer/tokenizer.h"
#include <string.h>

typedef struct Encoding {
  const Vocab *v;
  const u8 *text, *marked;
  size_t n;
  u32 flags;
  IdList out;
  TokenizerMem room;
  int error; /* VOCAB_ROOM, VOCAB_SLOW; 0: none */
} Encoding;

static bool add(IdList *out, u32 id) {
  out->full = out->full || out->n == out->max;
  if (out->full) return false;
  out->at[out->n++] = id;
  return true;
}

/* ---- added tokens ---- */

static bool is_word(const Vocab *v, const u8 *p, size_t n) {
  TokenDfa s = vocab_dfa(v, v->head->word_scanner);
  size_t steps = 0;
  return n && dfa_match(&s, p, n, &steps) > 0;
}

/* True if the token has no word character next to it. */
static bool is_single_word(const Vocab *v, const u8 *at, size_t n, size_t from, size_t to) {
  size_t last = from;
  if (v->head->word_scanner == VOCAB_NONE) return true;
  while (last && (at[--last] & 0xc0) == 0x80) continue;
  return !(from && is_word(v, at + last, from - last)) && !(to < n && is_word(v, at + to, n - to));
}

/* The longest added token at p + i that is allowed there. */
static u32 added_at(const Encoding *e, const Trie *t, const u8 *p, size_t n, size_t i,
                    const u8 *marked, size_t *end) {
  u32 node = 0, found = VOCAB_NONE;
  bool tainted = false;
  for (size_t k = i; k < n; k++) {
    node = trie_step(t, node, p[k]);
    if (node == VOCAB_NONE) break;
    tainted = tainted || (marked && marked[k]);
    if (!t->value[node]) continue;
    u32 id = t->value[node] - 1, flag = vocab_flags(e->v, id);
    if ((flag & TF_special) && (tainted || !(e->flags & VE_parse_special))) continue;
    if ((flag & TF_single_word) && !is_single_word(e->v, p, n, i, k + 1)) continue;
    found = id;
    *end = k + 1;
  }
  return found;
}

/* The first added token in p[pos..n): its start and end, including the spaces it strips. */
static u32 next_added(const Encoding *e, const Trie *t, const u8 *p, size_t n, const u8 *marked,
                      size_t pos, size_t *from, size_t *to) {
  for (size_t i = pos; t->n > 1 && i < n; i++) {
    u32 length, id = added_at(e, t, p, n, i, marked, to);
    if (id == VOCAB_NONE) continue;
    u32 flag = vocab_flags(e->v, id);
    *from = i;
    while ((flag & TF_rstrip) && *to < n && char_is_space(utf8_get(p + *to, n - *to, &length)))
      *to += length;
    while ((flag & TF_lstrip) && *from > pos) {
      size_t last = *from;
      while (last > pos && (p[--last] & 0xc0) == 0x80) continue;
      if (!char_is_space(utf8_get(p + last, *from - last, &length))) break;
      *from = last;
    }
    return id;
  }
  return VOCAB_NONE;
}

/* ---- text between added tokens ---- */

static void encode_words(Encoding *e, const u8 *at, size_t n, bool first, TokenizerMem room) {
  if (!vocab_normalize(e->v, VP_prep, first, &at, &n, &room)) {
    e->error = VOCAB_ROOM;
    return;
  }
  TokenSplitter w = pretok_begin(e->v, at, n);
  const u8 *word;
  size_t length = 0;
  while (!e->error && !e->out.full && pretok_next(&w, &word, &length))
    if (!vocab_encode_word(e->v, word, length, &e->out, room)) e->error = VOCAB_ROOM;
  if (w.steps > w.most) e->error = VOCAB_SLOW;
}

static void encode_stretch(Encoding *e, const u8 *at, size_t n, bool first) {
  TokenizerMem room = e->room;
  if (!vocab_normalize(e->v, VP_norm, first, &at, &n, &room)) {
    e->error = VOCAB_ROOM;
    return;
  }
  for (size_t pos = 0; pos < n && !e->error && !e->out.full;) {
    size_t from = n, to = n;
    u32 id = next_added(e, &e->v->norm, at, n, NULL, pos, &from, &to);
    if (id == VOCAB_NONE) from = to = n;
    if (from > pos) encode_words(e, at + pos, from - pos, first && pos == 0, room);
    if (id != VOCAB_NONE) add(&e->out, id);
    pos = to;
  }
}

static void put_all(const Vocab *v, VocabSection part, IdList *out) {
  u32 n;
  const u32 *id = vocab_section(v, part, &n, sizeof *id);
  for (u32 i = 0; i < n; i++) add(out, id[i]);
}

i64 vocab_encode(const Vocab *v, const void *text, size_t n, const u8 *marked, u32 flags, u32 *ids,
                 size_t max, void *room, size_t nroom) {
  Encoding e = {.v = v,
                .text = text,
                .marked = marked,
                .n = n,
                .flags = flags,
                .out = {.at = ids, .max = max},
                .room = {.at = room, .n = nroom}};
  if (n > 0x7fffffff) return VOCAB_ROOM;
  if (flags & VE_add_special) put_all(v, VP_prefix, &e.out);
  for (size_t pos = 0; pos < n && !e.error && !e.out.full;) {
    size_t from = n, to = n;
    u32 id = next_added(&e, &v->raw, e.text, n, marked, pos, &from, &to);
    if (id == VOCAB_NONE) from = to = n;
    if (from > pos) encode_stretch(&e, e.text + pos, from - pos, pos == 0);
    if (id != VOCAB_NONE) add(&e.out, id);
    pos = to;
  }
  if (flags & VE_add_special) put_all(v, VP_suffix, &e.out);
  return e.error ? e.error : e.out.full ? VOCAB_FULL : (i64)e.out.n;
}

/* Memory is linear in the text length: factor [0], constant [1]. */
size_t vocab_encode_bytes(const Vocab *v, size_t n) {
  bool bpe = v->head->model == VM_bpe, unigram = v->head->model == VM_unigram;
  size_t most[2] = {0}, per_byte = bpe ? 24 : unigram ? 2 : 0;
  for (u32 k = 0; k < 2; k++) {
    size_t bytes = k ? 0 : 1, kept = 0;
    for (u32 phase = 0; phase < 2; phase++) {
      u32 steps;
      vocab_section(v, phase ? VP_prep : VP_norm, &steps, sizeof(TokenizerStep));
      if (!steps) continue;
      size_t chars = bytes * v->head->grow + k * v->head->more;
      if (kept + 8 * chars > most[k]) most[k] = kept + 8 * chars;
      bytes = 4 * chars;
      kept += bytes + 8 * k;
    }
    if (kept + per_byte * bytes > most[k]) most[k] = kept + per_byte * bytes;
  }
  if (unigram) most[1] += vocab_viterbi_window(v) * sizeof(double);
  if (most[0] > VOCAB_PER_BYTE) {
    most[0] = VOCAB_PER_BYTE;
    most[1] += VOCAB_SLACK;
  }
  return most[0] * n + most[1] + 128;
}
