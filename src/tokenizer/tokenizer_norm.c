/* tokenizer_norm.c: normalization steps on arrays of characters.
 *
 * Each step reads one array and writes another. A long text is taken in chunks, so memory is needed
 * for its actual result and the arrays of a chunk. Unicode forms: full decomposition (a table,
 * Hangul by formula), canonical ordering (a stable counting sort per run of marks), canonical
 * composition. All are linear.
 */
#include "tokenizer/tokenizer.h"
#include <string.h>

typedef struct Chars {
  const Vocab *v;
  u32 *at, *other; /* the text, and space for the next one */
  size_t n, max;
} Chars;

enum {
  HANGUL_S = 0xac00,
  HANGUL_L = 0x1100,
  HANGUL_V = 0x1161,
  HANGUL_T = 0x11a7,
  HANGUL_NV = 21,
  HANGUL_NT = 28,
  HANGUL_COUNT = 19 * 21 * 28,
  CHARSMAP_DEPTH = 256, /* max bytes of a rule */
};

void *tokenizer_alloc(TokenizerMem *r, size_t n) {
  n = (n + 7) & ~(size_t)7;
  if (n > r->n) return NULL;
  void *p = r->at;
  r->at += n;
  r->n -= n;
  return p;
}

static void swap(Chars *x, size_t n) {
  u32 *was = x->at;
  x->at = x->other;
  x->other = was;
  x->n = n;
}

/* Index of the last key <= x; the first key is the minimum. */
static u32 below(const u32 *key, u32 n, u32 x, u32 shift) {
  u32 lo = 0, hi = n;
  while (hi - lo > 1) {
    u32 mid = lo + (hi - lo) / 2;
    if (key[mid] >> shift <= x)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}

/* A set is a list of first << 8 | 1 for the start of a range, first << 8 for its end. */
static bool in_set(const Vocab *v, u32 set, u32 ch) {
  u32 n;
  const u32 *at = vocab_section(v, VP_set_at, &n, sizeof *at);
  const u32 *key = (const u32 *)vocab_section(v, VP_set, &n, sizeof *key) + at[set];
  n = at[set + 1] - at[set];
  if (ch >= VOCAB_BAD_BYTE) return false;
  return key[below(key, n, ch, 8)] & 1;
}

static u32 combining(const Vocab *v, u32 ch) {
  u32 n;
  const u32 *key = vocab_section(v, VP_combining, &n, sizeof *key);
  if (ch < 0x300 || ch >= VOCAB_BAD_BYTE || !n) return 0;
  return key[below(key, n, ch, 8)] & 0xff;
}

static CharMap map_of(const Vocab *v, u32 k) {
  u32 n;
  const u32 *at = vocab_section(v, VP_map_at, &n, sizeof *at);
  CharMap m;
  m.key = (const u32 *)vocab_section(v, VP_map_key, &n, sizeof *at) + at[k];
  m.at = (const u32 *)vocab_section(v, VP_map_start, &n, sizeof *at) + at[k];
  m.unit = vocab_section(v, VP_map_unit, &n, sizeof *at);
  m.n = at[k + 1] - at[k] - 1; /* the last entry is the end */
  return m;
}

/* ---- Unicode forms ---- */

static u32 expand_hangul(u32 ch, u32 *to) {
  u32 s = ch - HANGUL_S, t = s % HANGUL_NT;
  to[0] = HANGUL_L + s / (HANGUL_NV * HANGUL_NT);
  to[1] = HANGUL_V + s / HANGUL_NT % HANGUL_NV;
  to[2] = HANGUL_T + t;
  return t ? 3 : 2;
}

static bool map_chars(Chars *x, u32 k, bool hangul) {
  CharMap m = map_of(x->v, k);
  size_t n = 0;
  for (size_t i = 0; i < x->n; i++) {
    u32 ch = x->at[i];
    if (x->max - n < 3) return false;
    if (hangul && ch >= HANGUL_S && ch < HANGUL_S + HANGUL_COUNT) {
      n += expand_hangul(ch, x->other + n);
      continue;
    }
    u32 j = m.n ? below(m.key, m.n, ch, 0) : 0;
    if (!m.n || m.key[j] != ch) {
      x->other[n++] = ch;
      continue;
    }
    for (u32 u = m.at[j]; u < m.at[j + 1]; u++) {
      if (n == x->max) return false;
      x->other[n++] = m.unit[u];
    }
  }
  swap(x, n);
  return true;
}

/* Sorts the marks [from, to) by combining class; stable. */
static void order_run(Chars *x, size_t from, size_t to) {
  u32 count[257] = {0};
  for (size_t i = from; i < to; i++) count[combining(x->v, x->at[i]) + 1]++;
  for (u32 k = 0; k < 256; k++) count[k + 1] += count[k];
  for (size_t i = from; i < to; i++) x->other[from + count[combining(x->v, x->at[i])]++] = x->at[i];
  memcpy(x->at + from, x->other + from, (to - from) * sizeof *x->at);
}

static void order(Chars *x) {
  for (size_t i = 0; i < x->n;) {
    size_t to = i;
    u32 last = 0;
    bool wrong = false;
    for (u32 ccc; to < x->n && (ccc = combining(x->v, x->at[to])); to++) {
      wrong = wrong || ccc < last;
      last = ccc;
    }
    if (wrong) order_run(x, i, to);
    i = to + 1;
  }
}

static u32 compose_pair(const Vocab *v, u32 a, u32 b) {
  if (a >= HANGUL_L && a < HANGUL_L + 19 && b >= HANGUL_V && b < HANGUL_V + HANGUL_NV)
    return HANGUL_S + ((a - HANGUL_L) * HANGUL_NV + (b - HANGUL_V)) * HANGUL_NT;
  if (a >= HANGUL_S && a < HANGUL_S + HANGUL_COUNT && (a - HANGUL_S) % HANGUL_NT == 0 &&
      b > HANGUL_T && b < HANGUL_T + HANGUL_NT)
    return a + (b - HANGUL_T);
  u32 n;
  const u32 *row = vocab_section(v, VP_compose, &n, 3 * sizeof *row);
  u32 lo = 0, hi = n;
  while (lo < hi) {
    u32 mid = lo + (hi - lo) / 2;
    const u32 *r = row + (size_t)3 * mid;
    if (r[0] == a && r[1] == b) return r[2];
    if (r[0] < a || (r[0] == a && r[1] < b))
      lo = mid + 1;
    else
      hi = mid;
  }
  return 0;
}

static void compose(Chars *x) {
  size_t n = 0, starter = 0;
  bool has = false;
  u32 last = 0; /* class of the marks since the starter; 0: none */
  for (size_t i = 0; i < x->n; i++) {
    u32 ch = x->at[i], ccc = combining(x->v, ch);
    bool blocked = n > starter + 1 && (last == 0 || last >= ccc);
    u32 made = has && !blocked ? compose_pair(x->v, x->at[starter], ch) : 0;
    if (made) {
      x->at[starter] = made;
      continue;
    }
    if (ccc == 0) {
      starter = n;
      has = true;
    }
    last = ccc;
    x->at[n++] = ch;
  }
  x->n = n;
}

static bool put(Chars *x, size_t *n, u32 ch) {
  if (*n == x->max) return false;
  x->other[(*n)++] = ch;
  return true;
}

static bool each(Chars *x, const TokenizerStep *t) {
  size_t n = 0;
  for (size_t i = 0; i < x->n; i++) {
    u32 ch = x->at[i];
    bool in = t->kind == NK_fix_utf8 ? ch >= VOCAB_BAD_BYTE : in_set(x->v, t->a, ch);
    if (in && t->kind == NK_drop) continue;
    if (in && t->kind == NK_replace_set) ch = t->b;
    if (in && t->kind == NK_fix_utf8) ch = 0xfffd;
    bool wide = in && t->kind == NK_surround;
    if (wide && !put(x, &n, ' ')) return false;
    if (!put(x, &n, ch) || (wide && !put(x, &n, ' '))) return false;
  }
  swap(x, n);
  return true;
}

static const u32 *units(const Vocab *v, u32 at) {
  u32 n;
  return (const u32 *)vocab_section(v, VP_unit, &n, sizeof(u32)) + at;
}

static bool begins(const Chars *x, size_t i, const u32 *with, u32 n) {
  return x->n - i >= n && memcmp(x->at + i, with, n * sizeof *with) == 0;
}

static bool replace(Chars *x, const TokenizerStep *t) {
  const u32 *from = units(x->v, t->a), *to = units(x->v, t->c);
  size_t n = 0;
  for (size_t i = 0; i < x->n;) {
    if (!begins(x, i, from, t->b)) {
      if (!put(x, &n, x->at[i++])) return false;
      continue;
    }
    for (u32 k = 0; k < t->d; k++)
      if (!put(x, &n, to[k])) return false;
    i += t->b;
  }
  swap(x, n);
  return true;
}

static bool prepend(Chars *x, const TokenizerStep *t, bool first) {
  const u32 *with = units(x->v, t->a);
  if (x->n == 0 || ((t->c & PREPEND_unless) && begins(x, 0, with, t->b)) ||
      ((t->c & PREPEND_first) && !first))
    return true;
  if (x->n + t->b > x->max) return false;
  memmove(x->at + t->b, x->at, x->n * sizeof *x->at);
  memcpy(x->at, with, t->b * sizeof *with);
  x->n += t->b;
  return true;
}

static void trim(Chars *x, bool left, bool right) {
  size_t from = 0;
  while (right && x->n && char_is_space(x->at[x->n - 1])) x->n--;
  while (left && from < x->n && char_is_space(x->at[from])) from++;
  memmove(x->at, x->at + from, (x->n - from) * sizeof *x->at);
  x->n -= from;
}

static void squeeze(Chars *x) {
  size_t n = 0;
  for (size_t i = 0; i < x->n; i++) {
    if (x->at[i] == ' ' && (n == 0 || x->at[n - 1] == ' ')) continue;
    x->at[n++] = x->at[i];
  }
  while (n && x->at[n - 1] == ' ') n--;
  x->n = n;
}

static void runs(Chars *x, u32 from, u32 to) {
  size_t n = 0;
  for (size_t i = 0, k; i < x->n; i = k) {
    for (k = i + 1; x->at[i] == from && k < x->n && x->at[k] == from;) k++;
    x->at[n++] = k - i > 1 ? to : x->at[i];
  }
  x->n = n;
}

/* ---- SentencePiece rules ---- */

/* Unit of a Darts double-array trie: bits 0-7 and 31: label (bit 31: a value), bit 8: a value
 * follows, bits 10 and up: offset, shifted by 8 if bit 9 is set. */
static u32 offset_of(u32 unit) {
  return (unit >> 10) << ((unit & 0x200) >> 6);
}

/* The longest rule at x->at[i]: number of characters, or 0. *to: its replacement. */
static size_t rule(const Chars *x, size_t i, const u32 *trie, u32 nunit, u32 *to) {
  u8 bytes[CHARSMAP_DEPTH];
  size_t used = 0, found = 0;
  u32 node = 0, unit = trie[0];
  node ^= offset_of(unit);
  for (size_t k = i; k < x->n && used + 4 <= sizeof bytes; k++) {
    u32 n = utf8_put(bytes + used, x->at[k]);
    for (u32 b = 0; b < n; b++, used++) {
      node ^= bytes[used];
      if (node >= nunit) return found;
      unit = trie[node];
      if ((unit & 0x800000ff) != bytes[used]) return found;
      node ^= offset_of(unit);
      if (b + 1 < n || !(unit & 0x100) || node >= nunit) continue;
      *to = trie[node] & 0x7fffffff;
      found = k + 1 - i;
    }
  }
  return found;
}

static bool charsmap(Chars *x) {
  u32 bytes, nunit = x->v->head->charsmap_trie / 4;
  const u8 *map = vocab_section(x->v, VP_charsmap, &bytes, 1);
  const u8 *text = map + x->v->head->charsmap_trie;
  u32 ntext = bytes - x->v->head->charsmap_trie, to = 0;
  size_t n = 0;
  if (!nunit) return true;
  for (size_t i = 0; i < x->n;) {
    size_t took =
        x->at[i] < VOCAB_BAD_BYTE ? rule(x, i, (const u32 *)(const void *)map, nunit, &to) : 0;
    if (!took) {
      if (!put(x, &n, x->at[i++])) return false;
      continue;
    }
    i += took;
    while (to < ntext && text[to]) {
      u32 length, ch = utf8_get(text + to, ntext - to, &length);
      if (!put(x, &n, ch)) return false;
      to += length;
    }
  }
  swap(x, n);
  return true;
}

static bool apply(Chars *x, const TokenizerStep *t, bool first) {
  switch ((NormKind)t->kind) {
  case NK_compose: compose(x); return true;
  case NK_expand:
    if (!map_chars(x, t->a, true)) return false;
    order(x);
    return true;
  case NK_map: return map_chars(x, t->a, false);
  case NK_drop:
  case NK_replace_set:
  case NK_surround:
  case NK_fix_utf8: return each(x, t);
  case NK_replace: return replace(x, t);
  case NK_prepend: return prepend(x, t, first);
  case NK_trim: trim(x, t->a, t->b); return true;
  case NK_charsmap: return charsmap(x);
  case NK_collapse_spaces: squeeze(x); return true;
  case NK_collapse_runs: runs(x, t->a, t->b); return true;
  }
  return false;
}

/* ---- chunks ---- */

/* Long texts are normalized in chunks. The result is that of the whole text because no step looks
 * across a seam: this is checked before every step, with the characters on both sides. If it does
 * not hold, the seam is moved, then the chunk grows. */
enum { CHUNK = 4096, EDGE = CHARSMAP_DEPTH, SEAM_TRIES = 4, SEAM_MOVE = 61 };

typedef struct Edge { /* the last characters of a chunk before a step */
  u32 n, at[EDGE];
} Edge;

typedef struct TextChunk {
  size_t from, to;   /* text */
  size_t out, bytes; /* result: offset in the memory, size */
  Edge *last;        /* by step; NULL: the chunk is the whole text */
} TextChunk;

typedef struct Normalizer {
  const Vocab *v;
  const TokenizerStep *step;
  u32 nstep;
  const u8 *at;
  size_t n;
  TokenizerMem room;
  bool first; /* the text begins here */
} Normalizer;

typedef enum ChunkEnd { CHUNK_done, CHUNK_seam, CHUNK_full } ChunkEnd;

/* Never the second character of a composition, and no mark. */
static bool starts_anew(const Vocab *v, u32 ch) {
  u32 n;
  const u32 *row = vocab_section(v, VP_compose, &n, 3 * sizeof *row);
  for (u32 i = 0; i < n; i++)
    if (row[3 * i + 1] == ch) return false;
  return !combining(v, ch) && !(ch >= HANGUL_V && ch < HANGUL_T + HANGUL_NT);
}

/* Does no occurrence of the pattern cross the seam? */
static bool splits_no_match(const Chars *x, const Edge *e, const u32 *with, u32 n) {
  if (x->n < n || e->n < n) return n < 2;
  for (u32 k = 1; k < n; k++)
    if (!memcmp(e->at + e->n - k, with, k * sizeof *with) &&
        !memcmp(x->at, with + k, (n - k) * sizeof *with))
      return false;
  return true;
}

static bool splits_no_rule(const Chars *x, const Edge *e) {
  u32 both[2 * EDGE], bytes, to, nunit = x->v->head->charsmap_trie / 4;
  const u32 *trie = vocab_section(x->v, VP_charsmap, &bytes, 1);
  size_t more = x->n < EDGE ? x->n : EDGE;
  Chars c = {.v = x->v, .at = both, .n = e->n + more};
  memcpy(both, e->at, e->n * sizeof *both);
  memcpy(both + e->n, x->at, more * sizeof *both);
  for (u32 i = 0; nunit && i < e->n; i++)
    if (both[i] < VOCAB_BAD_BYTE && rule(&c, i, trie, nunit, &to) > e->n - i) return false;
  return true;
}

/* Is the text normalized in two parts, split at the seam, equal to the whole text normalized? */
static bool seam_holds(const Chars *x, const TokenizerStep *t, const Edge *e) {
  if (!x->n || !e->n) return false;
  u32 last = e->at[e->n - 1], next = x->at[0];
  switch ((NormKind)t->kind) {
  case NK_map:
  case NK_drop:
  case NK_replace_set:
  case NK_surround:
  case NK_fix_utf8: return true;
  case NK_expand: {
    CharMap m = map_of(x->v, t->a);
    u32 j = m.n ? below(m.key, m.n, next, 0) : 0;
    bool maps = m.n && m.key[j] == next;
    if (maps && m.at[j] == m.at[j + 1]) return false;
    return !combining(x->v, maps ? m.unit[m.at[j]] : next);
  }
  case NK_compose: return starts_anew(x->v, next);
  case NK_replace: return splits_no_match(x, e, units(x->v, t->a), t->b);
  case NK_prepend: return e->n == EDGE || e->n >= t->b;
  case NK_trim:
  case NK_collapse_spaces: return !char_is_space(last) && !char_is_space(next);
  case NK_charsmap: return splits_no_rule(x, e);
  case NK_collapse_runs: return last != t->a || next != t->a;
  }
  return false;
}

/* Reads at least `least` bytes, up to a seam that is likely to hold. 0: out of memory. */
static size_t read_chars(Chars *x, const u8 *p, size_t n, size_t least) {
  u32 length, last = ' ';
  size_t i = 0;
  for (; i < n; i += length) {
    u32 ch = utf8_get(p + i, n - i, &length);
    bool poor = char_is_space(last) || char_is_space(ch) || combining(x->v, ch);
    if (i >= least && (!poor || i >= least + EDGE)) break;
    if (x->n == x->max) return 0;
    x->at[x->n++] = last = ch;
  }
  return i;
}

/* Normalizes the text from c->from on. before: the edges of the chunk before it, or NULL. */
static ChunkEnd normalize_chunk(const Normalizer *w, TextChunk *c, size_t least,
                                const Edge *before) {
  size_t out = (c->out + 3) & ~(size_t)3;
  if (out > w->room.n) return CHUNK_full;
  Chars x = {.v = w->v, .max = (w->room.n - out) / 2 / sizeof *x.at};
  x.at = (u32 *)(void *)(w->room.at + out);
  x.other = x.at + x.max;
  size_t took = read_chars(&x, w->at + c->from, w->n - c->from, least);
  if (!took) return CHUNK_full;
  c->to = c->from + took;
  for (u32 i = 0; i < w->nstep; i++) {
    if (before && !seam_holds(&x, &w->step[i], &before[i])) return CHUNK_seam;
    if (c->last) {
      Edge *e = &c->last[i];
      e->n = x.n < EDGE ? (u32)x.n : EDGE;
      memcpy(e->at, x.at + x.n - e->n, e->n * sizeof *e->at);
    }
    if (before && w->step[i].kind == NK_prepend) continue;
    if (!apply(&x, &w->step[i], w->first)) return CHUNK_full;
  }
  c->bytes = 0; /* at most 4 per character, so no character is overwritten before it is read */
  for (size_t i = 0; i < x.n; i++) c->bytes += utf8_put(w->room.at + c->out + c->bytes, x.at[i]);
  return CHUNK_done;
}

/* CHUNK_seam: try again with larger chunks. *bytes: of the result. */
static ChunkEnd normalize_chunks(const Normalizer *w, Edge *edge, size_t size, size_t *bytes) {
  TextChunk now = {.last = edge}, next;
  Edge *before = NULL, *spare[2] = {edge, edge};
  if (edge) spare[0] += w->nstep, spare[1] += 2 * w->nstep;
  size_t want = size, tries = 0;
  ChunkEnd end = normalize_chunk(w, &now, want, NULL);
  while (end == CHUNK_done && now.to < w->n) {
    next = (TextChunk){.from = now.to, .out = now.out + now.bytes, .last = spare[0]};
    end = normalize_chunk(w, &next, size, now.last);
    if (end == CHUNK_done) {
      spare[0] = before ? before : spare[1];
      before = now.last;
      now = next;
      want = size;
      tries = 0;
    } else if (end == CHUNK_seam) {
      if (++tries == SEAM_TRIES) tries = 0, want *= 2;
      end = normalize_chunk(w, &now, want - tries * SEAM_MOVE, before);
    }
  }
  *bytes = now.out + now.bytes;
  return end;
}

bool vocab_normalize(const Vocab *v, VocabSection steps, bool first, const u8 **at, size_t *n,
                     TokenizerMem *r) {
  Normalizer w = {.v = v, .at = *at, .n = *n, .first = first};
  w.step = vocab_section(v, steps, &w.nstep, sizeof *w.step);
  if (!w.nstep || !*n) return true;
  w.room = *r;
  ChunkEnd end = normalize_chunks(&w, NULL, w.n, n); /* as a whole, if the memory suffices */
  Edge *edge = end == CHUNK_full && w.n > CHUNK + EDGE
                   ? tokenizer_alloc(r, (size_t)3 * w.nstep * sizeof *edge)
                   : NULL;
  w.room = *r;
  if (edge) end = CHUNK_seam;
  for (size_t size = CHUNK; end == CHUNK_seam; size *= 2) end = normalize_chunks(&w, edge, size, n);
  *at = end == CHUNK_done ? tokenizer_alloc(r, *n) : NULL;
  return *at != NULL;
}
