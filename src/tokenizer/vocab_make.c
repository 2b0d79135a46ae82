/* vocab_make.c: VocabSpec -> the bytes of a vocabulary (tokenizer.h).
 *
 * Tries are built from sorted strings, level by level, so that the children of a node are adjacent.
 * The merge table is hashed; seeds are tried until all chains are short, so every lookup is fast.
 * Numbers have native byte order.
 */
#include "tokenizer/vocab.h"
#include <stdlib.h>
#include <string.h>

enum { LONGEST_CHAIN = 64, SEEDS = 64 };

typedef struct VocabOut {
  VocabSpec *s;
  VocabHeader head;
  StrBuf t;
} VocabOut;

static void put(VocabOut *o, VocabSection p, const void *at, size_t n) {
  static const u8 zero[8];
  if (o->t.n + n > 0x7fffffff)
    fail(o->s->c, ERR_unsupported, o->s->loc, "the vocabulary takes more than 2 GB");
  o->head.part[2 * p] = (u32)o->t.n;
  o->head.part[2 * p + 1] = (u32)n;
  sb_put(&o->t, at, n);
  sb_put(&o->t, zero, (8 - o->t.n % 8) % 8);
}

static void put_words(VocabOut *o, VocabSection p, const u32 *at, u32 n) {
  put(o, p, at, (size_t)n * sizeof *at);
}

/* ---- tries ---- */

typedef struct TrieKey {
  const u8 *at;
  u32 n, value;
} TrieKey;
typedef VEC(TrieKey) TrieKeys;

typedef struct TrieRange {
  u32 lo, hi, depth;
} TrieRange;

static int by_bytes(const void *a, const void *b) {
  const TrieKey *x = a, *y = b;
  int d = memcmp(x->at, y->at, x->n < y->n ? x->n : y->n);
  if (d) return d;
  if (x->n != y->n) return x->n < y->n ? -1 : 1;
  return x->value < y->value ? -1 : x->value > y->value;
}

static void put_trie(VocabOut *o, VocabSection part, TrieKeys *keys) {
  Arena *a = o->s->a;
  VEC(TrieRange) node = {0};
  U32Vec first = {0}, value = {0};
  VEC(u8) label = {0};
  const TrieKey *key = keys->at;
  if (keys->n) qsort(keys->at, keys->n, sizeof *keys->at, by_bytes);
  *vec_push(a, &node) = (TrieRange){0, keys->n, 0};
  *vec_push(a, &label) = 0;
  for (u32 i = 0; i < node.n; i++) {
    TrieRange r = node.at[i];
    u32 id = 0;
    for (; key && r.lo < r.hi && key[r.lo].n == r.depth; r.lo++) id = key[r.lo].value;
    *vec_push(a, &value) = id;
    *vec_push(a, &first) = node.n;
    while (key && r.lo < r.hi) {
      u32 hi = r.lo;
      u8 byte = key[r.lo].at[r.depth];
      while (hi < r.hi && key[hi].at[r.depth] == byte) hi++;
      *vec_push(a, &node) = (TrieRange){r.lo, hi, r.depth + 1};
      *vec_push(a, &label) = byte;
      r.lo = hi;
    }
  }
  *vec_push(a, &first) = node.n;
  put_words(o, part, first.at, first.n);
  put_words(o, part + 1, value.at, value.n);
  put(o, part + 2, label.at, value.n);
}

static void put_tries(VocabOut *o) {
  VocabSpec *s = o->s;
  TrieKeys token = {0}, raw = {0}, norm = {0};
  u32 never = TF_special | TF_byte | TF_unknown | (s->head.model == VM_unigram ? TF_unused : 0);
  for (u32 i = 0; i < s->token.n; i++) {
    const VocabToken *t = &s->token.at[i];
    if (t->n && !(t->flags & never)) *vec_push(s->a, &token) = (TrieKey){t->at, t->n, i + 1};
  }
  for (u32 i = 0; i < s->added.n; i++) {
    const AddedToken *t = &s->added.at[i];
    bool normalized = t->normalized && !(s->token.at[t->id].flags & TF_special);
    if (t->n) *vec_push(s->a, normalized ? &norm : &raw) = (TrieKey){t->at, t->n, t->id + 1};
  }
  put_trie(o, VP_trie_first, &token);
  put_trie(o, VP_raw_first, &raw);
  put_trie(o, VP_norm_first, &norm);
}

/* ---- tokens and merges ---- */

static void put_tokens(VocabOut *o) {
  VocabSpec *s = o->s;
  StrBuf bytes = sb_new(s->a);
  U32Vec at = {0};
  u8 *flag = arena_alloc(s->a, s->token.n + 1);
  u32 *byte = NEWS(s->a, u32, 256);
  for (u32 i = 0; i < s->token.n; i++) {
    const VocabToken *t = &s->token.at[i];
    if (t->n > VOCAB_TOKEN_BYTES)
      fail(s->c, ERR_unsupported, s->loc, "token %u has %u bytes, expected at most %d", i, t->n,
           VOCAB_TOKEN_BYTES);
    *vec_push(s->a, &at) = (u32)bytes.n;
    sb_put(&bytes, t->at, t->n);
    flag[i] = (u8)t->flags;
    if (i < o->head.ntoken && t->n > o->head.longest) o->head.longest = t->n;
    bool alone = s->head.flags & VF_byte_level ? t->n == 1 && !(t->flags & TF_special)
                                               : t->n == 1 && (t->flags & TF_byte);
    if (alone && i < o->head.ntoken) byte[t->at[0]] = i + 1;
  }
  *vec_push(s->a, &at) = (u32)bytes.n;
  put_words(o, VP_token_at, at.at, at.n);
  put(o, VP_token_byte, bytes.at, bytes.n);
  put(o, VP_token_flag, flag, s->token.n);
  put_words(o, VP_byte_id, byte, 256);
}

/* False if a chain is too long. The last of equal pairs wins. */
static bool fill_slots(const VocabSpec *s, u32 *slot, u32 mask, u32 seed) {
  memset(slot, 0, ((size_t)mask + 1) * sizeof *slot);
  for (u32 i = 0; i < s->merge.n; i++) {
    const TokenMerge *m = &s->merge.at[i];
    u32 k = merge_hash(m->left, m->right, seed) & mask, steps = 0;
    for (; slot[k]; k = (k + 1) & mask) {
      const TokenMerge *old = &s->merge.at[slot[k] - 1];
      if (old->left == m->left && old->right == m->right) break;
      if (++steps > LONGEST_CHAIN) return false;
    }
    slot[k] = i + 1;
  }
  return true;
}

static void put_merges(VocabOut *o) {
  VocabSpec *s = o->s;
  u32 size = 16;
  while (size < 2 * s->merge.n) size *= 2;
  u32 *slot = NEWS(s->a, u32, size), seed = 0;
  while (seed < SEEDS && !fill_slots(s, slot, size - 1, seed)) seed++;
  if (seed == SEEDS)
    fail(s->c, ERR_unsupported, s->loc, "the merges cannot be hashed without long chains");
  o->head.slot_mask = size - 1;
  o->head.slot_seed = seed;
  u32 *made_by = NEWS(s->a, u32, s->token.n + 1);
  for (u32 i = s->merge.n; i-- > 0;) made_by[s->merge.at[i].id] = i + 1;
  put(o, VP_merge, s->merge.at, s->merge.n * sizeof *s->merge.at);
  put_words(o, VP_slot, slot, s->merge.n ? size : 0);
  put_words(o, VP_made_by, made_by, s->merge.n ? s->token.n : 0);
}

static void put_scores(VocabOut *o) {
  VocabSpec *s = o->s;
  double *score = NEWS(s->a, double, (size_t)s->token.n + 1), least = 0;
  bool any = false;
  for (u32 i = 0; i < s->token.n; i++) {
    score[i] = s->token.at[i].score;
    bool counts = !(s->token.at[i].flags & (TF_unknown | TF_special | TF_byte)) ||
                  !(s->head.flags & VF_narrow_sums);
    if (counts && (!any || score[i] < least)) least = score[i], any = true;
  }
  score[s->token.n] = s->head.flags & VF_narrow_sums ? (double)((float)least - 10.0f) : least - 10;
  put(o, VP_score, score, s->head.model == VM_unigram ? (s->token.n + 1) * sizeof *score : 0);
}

/* ---- tables of steps ---- */

static void put_sets(VocabOut *o) {
  VocabSpec *s = o->s;
  U32Vec at = {0}, word = {0};
  for (u32 i = 0; i < s->set.n; i++) {
    *vec_push(s->a, &at) = word.n;
    *vec_push(s->a, &word) = 0;
    for (u32 k = 0; k < s->set.at[i].range.n; k++) {
      *vec_push(s->a, &word) = s->set.at[i].range.at[k].lo << 8 | 1;
      *vec_push(s->a, &word) = s->set.at[i].range.at[k].hi << 8;
    }
  }
  *vec_push(s->a, &at) = word.n;
  put_words(o, VP_set, word.at, word.n);
  put_words(o, VP_set_at, at.at, at.n);
}

static void put_unicode(VocabOut *o) {
  VocabSpec *s = o->s;
  U32Vec combining = {0}, compose = {0};
  const Unicode *u = s->orders ? spec_unicode(s) : NULL;
  for (u32 i = 0; u && i < u->combining.n; i++)
    *vec_push(s->a, &combining) = u->combining.at[i].first << 8 | u->combining.at[i].value;
  for (u32 i = 0; u && s->composes && i < u->compose.n; i++) {
    *vec_push(s->a, &compose) = u->compose.at[i].a;
    *vec_push(s->a, &compose) = u->compose.at[i].b;
    *vec_push(s->a, &compose) = u->compose.at[i].c;
  }
  put_words(o, VP_combining, combining.at, combining.n);
  put_words(o, VP_compose, compose.at, compose.n);
  put_words(o, VP_map_at, s->map_at.at, s->map_at.n);
  put_words(o, VP_map_key, s->map_key.at, s->map_key.n);
  put_words(o, VP_map_start, s->map_start.at, s->map_start.n);
  put_words(o, VP_map_unit, s->map_unit.at, s->map_unit.n);
  put(o, VP_charsmap, s->charsmap, s->ncharsmap);
}

/* Longest replacement of the rules, in characters. */
static u32 charsmap_longest(const VocabSpec *s) {
  u32 most = 1, n = 0;
  for (u32 i = s->head.charsmap_trie; i < s->ncharsmap; i++) {
    n = s->charsmap[i] ? n + 1 : 0;
    most = n > most ? n : most;
  }
  return most;
}

/* Max characters that a step makes of one. */
static u64 step_growth(const VocabSpec *s, const TokenizerStep *t, u32 *more) {
  switch ((NormKind)t->kind) {
  case NK_expand: return t->a + 1 == s->compat ? UNI_MAP_MAX : 4;
  case NK_map: return 2;
  case NK_surround: return 3;
  case NK_replace: return t->d > t->b ? (t->d + t->b - 1) / t->b : 1;
  case NK_prepend: *more += t->b; return 1;
  case NK_charsmap: return charsmap_longest(s);
  default: return 1;
  }
}

static void bound_growth(VocabOut *o) {
  VocabSpec *s = o->s;
  o->head.grow = 1;
  o->head.more = 16;
  for (u32 k = 0; k < 2; k++) {
    const TokenizerStep *t = k ? s->prep.at : s->norm.at;
    u64 grow = 1, more = 0;
    for (u32 i = 0; i < (k ? s->prep.n : s->norm.n); i++) {
      u32 add = 0;
      u64 by = step_growth(s, &t[i], &add);
      grow *= by;
      more = more * by + add;
      if (grow > 4096 || more > 1 << 20)
        fail(s->c, ERR_unsupported, s->loc, "the normalizer lengthens texts too much");
    }
    if (grow > o->head.grow) o->head.grow = (u32)grow;
    if (more + 16 > o->head.more) o->head.more = (u32)more + 16;
  }
}

static void check(const VocabSpec *s) {
  if (s->token.n > VOCAB_MAX_TOKENS)
    fail(s->c, ERR_unsupported, s->loc, "the vocabulary has %u tokens, expected at most %d",
         s->token.n, VOCAB_MAX_TOKENS);
  for (u32 i = 0; i < s->merge.n; i++) {
    const TokenMerge *m = &s->merge.at[i];
    if (m->left >= s->token.n || m->right >= s->token.n || m->id >= s->token.n)
      fail(s->c, ERR_input, s->loc, "merge %u uses tokens that do not exist", i);
  }
}

const u8 *vocab_make(VocabSpec *s, size_t *n) {
  VocabOut o = {.s = s, .head = s->head, .t = sb_new(s->a)};
  check(s);
  if (!o.head.ntoken) o.head.ntoken = s->token.n;
  o.head.magic = VOCAB_MAGIC;
  o.head.version = VOCAB_VERSION;
  o.head.nsymbol = s->token.n;
  sb_put(&o.t, &o.head, sizeof o.head);
  while (o.t.n % 8) sb_put(&o.t, "", 1);
  put_tokens(&o);
  put_tries(&o);
  put_merges(&o);
  put_scores(&o);
  put(&o, VP_norm, s->norm.at, s->norm.n * sizeof(TokenizerStep));
  put(&o, VP_prep, s->prep.at, s->prep.n * sizeof(TokenizerStep));
  put(&o, VP_split, s->split.at, s->split.n * sizeof(TokenizerStep));
  put_words(&o, VP_unit, s->unit.at, s->unit.n);
  put_words(&o, VP_scanner, s->scanner.at, s->scanner.n);
  put_words(&o, VP_scanner_at, s->scanner_at.at, s->scanner_at.n);
  put_sets(&o);
  put_unicode(&o);
  put_words(&o, VP_prefix, s->prefix.at, s->prefix.n);
  put_words(&o, VP_suffix, s->suffix.at, s->suffix.n);
  put_words(&o, VP_stop, s->stop.at, s->stop.n);
  put(&o, VP_chat, s->chat ? s->chat : "", s->nchat);
  bound_growth(&o);
  o.head.bytes = (u32)o.t.n;
  memcpy(o.t.at, &o.head, sizeof o.head);
  Vocab v;
  if (!vocab_open(&v, o.t.at, o.t.n))
    internal_error(s->c, s->loc, "a vocabulary that cannot be opened");
  if (s->head.model == VM_wordpiece) {
    u32 node = v.token.n ? trie_step(&v.token, 0, '#') : VOCAB_NONE;
    o.head.dash_node = node == VOCAB_NONE ? VOCAB_NONE : trie_step(&v.token, node, '#');
    memcpy(o.t.at, &o.head, sizeof o.head);
  }
  *n = o.t.n;
  return (const u8 *)o.t.at;
}
