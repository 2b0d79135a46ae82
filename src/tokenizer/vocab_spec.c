/* vocab_spec.c: shared parts of tokenizer descriptions. */
#include "tokenizer/vocab.h"
#include <stdlib.h>
#include <string.h>

VocabSpec *spec_new(Ctx *c, Arena *a, Loc loc) {
  VocabSpec *s = NEW(a, VocabSpec);
  s->c = c;
  s->a = a;
  s->loc = loc;
  s->head.unknown = s->head.bos = s->head.eos = s->head.pad = VOCAB_NONE;
  s->head.word_scanner = VOCAB_NONE;
  return s;
}

const Unicode *spec_unicode(VocabSpec *s) {
  if (!s->unicode) s->unicode = unicode_read(s->c, s->a);
  return s->unicode;
}

void spec_step(VocabSpec *s, bool prep, TokenizerStep t) {
  if (prep)
    *vec_push(s->a, &s->prep) = t;
  else
    *vec_push(s->a, &s->norm) = t;
}

u32 spec_chars(VocabSpec *s, const char *text, size_t n, u32 *count) {
  u32 first = s->unit.n, length;
  for (size_t i = 0; i < n; i += length)
    *vec_push(s->a, &s->unit) = utf8_get((const u8 *)text + i, n - i, &length);
  *count = s->unit.n - first;
  return first;
}

u32 spec_set(VocabSpec *s, const char *names) {
  CharSet set = {0};
  const char *p = names;
  while (*p) {
    size_t n = strcspn(p, " ");
    if (*p == 'U') { /* U+HEX-HEX: a range */
      char *end;
      u32 lo = (u32)strtoul(p + 2, &end, 16),
          hi = *end == '-' ? (u32)strtoul(end + 1, NULL, 16) : lo;
      charset_add(s->a, &set, lo, hi + 1);
    } else if (*p == '-') {
      CharSet without = {0}, rest = charset_complement(s->a, &set);
      u32 ch = (u32)strtoul(p + 3, NULL, 16);
      charset_add(s->a, &without, ch, ch + 1);
      charset_union(s->a, &rest, &without);
      set = charset_complement(s->a, &rest);
    } else if (!charset_named(s->a, spec_unicode(s), &set, p, n)) {
      internal_error(s->c, s->loc, "unknown set of characters %s", p);
    }
    p += n + (p[n] == ' ');
  }
  *vec_push(s->a, &s->set) = set;
  return s->set.n - 1;
}

/* ---- character maps ---- */

static void add_entry(VocabSpec *s, const Unicode *u, const UniMap *m) {
  *vec_push(s->a, &s->map_key) = m->c;
  *vec_push(s->a, &s->map_start) = s->map_unit.n;
  for (u32 i = 0; i < m->n; i++) *vec_push(s->a, &s->map_unit) = u->unit.at[m->at + i];
}

static u32 end_map(VocabSpec *s) {
  *vec_push(s->a, &s->map_key) = UINT32_MAX;
  *vec_push(s->a, &s->map_start) = s->map_unit.n;
  return s->map_at.n;
}

/* Merges two sorted lists without duplicates; the second takes precedence. */
static u32 add_map(VocabSpec *s, const UniMaps *x, const UniMaps *y) {
  const Unicode *u = spec_unicode(s);
  if (!s->map_at.n) *vec_push(s->a, &s->map_at) = 0;
  u32 i = 0, k = 0, ny = y ? y->n : 0;
  while (i < x->n || k < ny) {
    bool second = k < ny && (i == x->n || y->at[k].c <= x->at[i].c);
    if (second && i < x->n && y->at[k].c == x->at[i].c) i++;
    add_entry(s, u, second ? &y->at[k++] : &x->at[i++]);
  }
  u32 number = end_map(s);
  *vec_push(s->a, &s->map_at) = s->map_key.n;
  return number;
}

void spec_form(VocabSpec *s, bool compat, bool compose) {
  const Unicode *u = spec_unicode(s);
  u32 *map = compat ? &s->compat : &s->canon;
  if (!*map) *map = add_map(s, &u->canon, compat ? &u->compat : NULL);
  s->orders = true;
  s->composes = s->composes || compose;
  spec_step(s, false, (TokenizerStep){.kind = NK_expand, .a = *map - 1});
  if (compose) spec_step(s, false, (TokenizerStep){.kind = NK_compose});
}

void spec_lower(VocabSpec *s) {
  if (!s->lower) s->lower = add_map(s, &spec_unicode(s)->lower, NULL);
  spec_step(s, false, (TokenizerStep){.kind = NK_map, .a = s->lower - 1});
}

void spec_replace(VocabSpec *s, bool prep, const char *from, const char *to) {
  TokenizerStep t = {.kind = NK_replace};
  t.a = spec_chars(s, from, strlen(from), &t.b);
  t.c = spec_chars(s, to, strlen(to), &t.d);
  spec_step(s, prep, t);
}

void spec_prepend(VocabSpec *s, bool prep, const char *text, u32 flags) {
  TokenizerStep t = {.kind = NK_prepend, .c = flags};
  t.a = spec_chars(s, text, strlen(text), &t.b);
  spec_step(s, prep, t);
}

void spec_split(VocabSpec *s, const char *regex, size_t n, SplitKind kind) {
  if (s->split.n == VOCAB_SPLITS)
    fail(s->c, ERR_unsupported, s->loc, "the pre-tokenizer has more than %d splitting steps",
         VOCAB_SPLITS);
  *vec_push(s->a, &s->split) = (TokenizerStep){.kind = kind, .a = s->scanner_at.n};
  *vec_push(s->a, &s->scanner_at) = s->scanner.n;
  pattern_compile(s->c, spec_unicode(s), regex, n, s->loc, &s->scanner, s->a);
}

/* The byte of a character in the GPT-2 alphabet, or -1. Printable bytes map to themselves, the
 * others to U+0100 and up. */
static int byte_of(u32 ch) {
  static const u8 from[] = {0, 127, 173}, to[] = {33, 161, 174};
  if ((ch >= 33 && ch < 127) || (ch >= 161 && ch < 256 && ch != 173)) return (int)ch;
  u32 k = ch - 256;
  for (u32 i = 0; ch >= 256 && i < 3; i++) {
    u32 n = (u32)(to[i] - from[i]);
    if (k < n) return (int)(from[i] + k);
    k -= n;
  }
  return -1;
}

void spec_bytes_alphabet(VocabSpec *s) {
  for (u32 i = 0; i < s->token.n; i++) {
    VocabToken *t = &s->token.at[i];
    if (t->flags & TF_added) continue;
    u8 *bytes = arena_alloc(s->a, t->n + 1);
    u32 n = 0, length;
    bool all = true;
    for (u32 k = 0; k < t->n && all; k += length) {
      int b = byte_of(utf8_get(t->at + k, t->n - k, &length));
      all = b >= 0;
      if (all) bytes[n++] = (u8)b;
    }
    if (!all) continue; /* keep as is, like an added token */
    t->at = bytes;
    t->n = n;
  }
}

typedef struct ByScore {
  double score;
  u32 id;
} ByScore;

static int higher_first(const void *a, const void *b) {
  const ByScore *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return x->id < y->id ? -1 : x->id > y->id;
}

static void split_token(VocabSpec *s, const Map *id_of, u32 id, u32 rank) {
  const VocabToken *t = &s->token.at[id];
  const u8 *at = t->at; /* stable until a symbol is added */
  u32 n = t->n, length;
  for (u32 k = 0; k < n; k += length) {
    utf8_get(at + k, n - k, &length);
    if (!k) continue;
    const u32 *left = map_get_bytes(id_of, at, k), *right = map_get_bytes(id_of, at + k, n - k);
    if (left && right)
      *vec_push(s->a, &s->merge) =
          (TokenMerge){.left = *left - 1, .right = *right - 1, .id = id, .rank = rank};
  }
}

void spec_merges_of_scores(VocabSpec *s) {
  Map id_of = map_new(s->a);
  u32 ntoken = s->token.n, n = 0, length;
  ByScore *order = NEWS(s->a, ByScore, ntoken + 1);
  for (u32 i = 0; i < ntoken; i++) {
    const VocabToken *t = &s->token.at[i];
    if (t->flags & (TF_special | TF_added | TF_byte | TF_unknown) || !t->n) continue;
    *map_put_bytes(&id_of, t->at, t->n) = i + 1;
    order[n++] = (ByScore){t->score, i};
  }
  /* Characters that occur only inside tokens are symbols, but not tokens. */
  for (u32 i = 0; i < n; i++) {
    VocabToken t = s->token.at[order[i].id];
    for (u32 k = 0; k < t.n; k += length) {
      utf8_get(t.at + k, t.n - k, &length);
      u32 *slot = map_put_bytes(&id_of, t.at + k, length);
      if (*slot) continue;
      *slot = s->token.n + 1;
      *vec_push(s->a, &s->token) = (VocabToken){.at = t.at + k, .n = length};
    }
  }
  s->head.ntoken = ntoken;
  qsort(order, n, sizeof *order, higher_first);
  u32 rank = 0;
  for (u32 i = 0; i < n; i++) {
    if (i && order[i].score != order[i - 1].score) rank++;
    if (s->token.at[order[i].id].n <= VOCAB_TOKEN_BYTES) split_token(s, &id_of, order[i].id, rank);
  }
}

void spec_stop_names(VocabSpec *s) {
  static const char *const name[] = {"<|im_end|>",      "<|eot_id|>",    "<|eom_id|>",
                                     "<|end_of_text|>", "<|endoftext|>", "<end_of_turn>",
                                     "<|end|>",         "</s>",          "<eos>"};
  for (u32 i = 0; i < s->token.n; i++) {
    const VocabToken *t = &s->token.at[i];
    bool stop = i == s->head.eos;
    for (size_t k = 0; k < sizeof name / sizeof *name && !stop && (t->flags & TF_special); k++)
      stop = t->n == strlen(name[k]) && !memcmp(t->at, name[k], t->n);
    for (u32 k = 0; k < s->stop.n; k++) stop = stop && s->stop.at[k] != i;
    if (stop) *vec_push(s->a, &s->stop) = i;
  }
}
