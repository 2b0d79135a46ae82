/* tokenizer_model.c: token ids of one word.
 *
 * BPE: a list of symbols and a heap of mergeable pairs (lowest rank, then leftmost). A pair is
 * identified by its left symbol, which knows its place in the heap, so that a merge updates two
 * keys in place: O(n log n). Unigram: the best path (Viterbi), with two bytes per byte up
 * to the next cut and a ring of scores as long as the longest token. WordPiece: greedy longest
 * match.
 */
#include "tokenizer/tokenizer.h"
#include <string.h>

size_t vocab_viterbi_window(const Vocab *v) {
  size_t n = 8; /* an unknown character has up to 4 bytes */
  while (n <= v->head->longest) n *= 2;
  return n;
}

static bool push_id(IdList *out, u32 id) {
  if (out->n == out->max) {
    out->full = true;
    return false;
  }
  out->at[out->n++] = id;
  return true;
}

/* Adds byte tokens, or the unknown token. */
static void push_unknown(const Vocab *v, const u8 *at, size_t n, bool fuse, IdList *out) {
  u32 count, unknown = v->head->unknown;
  const u32 *byte = vocab_section(v, VP_byte_id, &count, sizeof *byte);
  bool fall = (v->head->flags & VF_byte_fallback) != 0;
  for (size_t i = 0; fall && i < n; i++) fall = byte[at[i]] != 0;
  for (size_t i = 0; fall && i < n; i++) push_id(out, byte[at[i]] - 1);
  if (fall || unknown == VOCAB_NONE) return;
  if (fuse && out->n && out->at[out->n - 1] == unknown) return;
  push_id(out, unknown);
}

/* ---- BPE ---- */

typedef struct Bpe {
  const Vocab *v;
  u32 n;             /* initial symbols */
  u32 *id;           /* id of each symbol */
  u32 *next, *prev;  /* n or VOCAB_NONE: none */
  u32 *rank;         /* rank of the pair that it starts; VOCAB_NONE: not mergeable */
  u32 *heap, *place; /* heap of symbols by rank; place of each in it */
  u32 nheap;
} Bpe;

static const TokenMerge *merge_of(const Vocab *v, u32 left, u32 right) {
  u32 n;
  const u32 *slot = vocab_section(v, VP_slot, &n, sizeof *slot);
  const TokenMerge *merge = vocab_section(v, VP_merge, &n, sizeof *merge);
  if (!n) return NULL;
  u32 mask = v->head->slot_mask, k = merge_hash(left, right, v->head->slot_seed) & mask;
  for (; slot[k]; k = (k + 1) & mask) {
    const TokenMerge *m = &merge[slot[k] - 1];
    if (m->left == left && m->right == right) return m;
  }
  return NULL;
}

static bool before(const Bpe *b, u32 x, u32 y) {
  return b->rank[x] != b->rank[y] ? b->rank[x] < b->rank[y] : x < y;
}

static void set_place(Bpe *b, u32 k, u32 symbol) {
  b->heap[k] = symbol;
  b->place[symbol] = k;
}

static void sift_up(Bpe *b, u32 k) {
  u32 x = b->heap[k];
  for (; k && before(b, x, b->heap[(k - 1) / 2]); k = (k - 1) / 2)
    set_place(b, k, b->heap[(k - 1) / 2]);
  set_place(b, k, x);
}

static void sift_down(Bpe *b, u32 k) {
  u32 x = b->heap[k];
  for (u32 kid; (kid = 2 * k + 1) < b->nheap; k = kid) {
    if (kid + 1 < b->nheap && before(b, b->heap[kid + 1], b->heap[kid])) kid++;
    if (!before(b, b->heap[kid], x)) break;
    set_place(b, k, b->heap[kid]);
  }
  set_place(b, k, x);
}

static u32 pair_rank(const Bpe *b, u32 x) {
  if (b->next[x] >= b->n) return VOCAB_NONE;
  const TokenMerge *m = merge_of(b->v, b->id[x], b->id[b->next[x]]);
  return m ? m->rank : VOCAB_NONE;
}

/* Updates the pair that x starts. */
static void update(Bpe *b, u32 x) {
  u32 k = b->place[x], rank = pair_rank(b, x);
  b->rank[x] = rank;
  if (k == VOCAB_NONE) {
    if (rank == VOCAB_NONE) return;
    set_place(b, b->nheap, x);
    sift_up(b, b->nheap++);
    return;
  }
  if (rank == VOCAB_NONE) {
    b->place[x] = VOCAB_NONE;
    if (k == --b->nheap) return;
    x = b->heap[b->nheap];
    set_place(b, k, x);
  }
  sift_up(b, k);
  sift_down(b, b->place[x]);
}

static void merge_all(Bpe *b) {
  for (u32 i = 0; i < b->n; i++) {
    b->prev[i] = i ? i - 1 : VOCAB_NONE;
    b->next[i] = i + 1;
    b->place[i] = VOCAB_NONE;
  }
  for (u32 i = 0; i < b->n; i++)
    if ((b->rank[i] = pair_rank(b, i)) != VOCAB_NONE) set_place(b, b->nheap++, i);
  for (u32 k = b->nheap / 2; k-- > 0;) sift_down(b, k);
  while (b->nheap) {
    u32 x = b->heap[0], y = b->next[x];
    b->id[x] = merge_of(b->v, b->id[x], b->id[y])->id;
    b->next[x] = b->next[y];
    if (b->next[x] < b->n) b->prev[b->next[x]] = x;
    b->id[y] = VOCAB_NONE;
    if (b->place[y] != VOCAB_NONE) {
      b->next[y] = b->n; /* merged away */
      update(b, y);
    }
    update(b, x);
    if (b->prev[x] != VOCAB_NONE) update(b, b->prev[x]);
  }
}

/* Adds a symbol; one that is unused or not a token is split into its parts. */
static void push_symbol(const Vocab *v, u32 id, bool *unknown, IdList *out) {
  u32 n, nmerge, stack[64], depth = 0;
  const TokenMerge *merge = vocab_section(v, VP_merge, &nmerge, sizeof *merge);
  const u32 *part = vocab_section(v, VP_made_by, &n, sizeof *part); /* index of its merge + 1 */
  stack[depth++] = id;
  while (depth) {
    id = stack[--depth];
    bool no_token = id >= v->head->ntoken;
    if (!no_token && !(vocab_flags(v, id) & TF_unused)) {
      *unknown = id == v->head->unknown;
      push_id(out, id);
    } else if (id < n && part[id] && depth + 2 <= sizeof stack / sizeof *stack) {
      stack[depth++] = merge[part[id] - 1].right;
      stack[depth++] = merge[part[id] - 1].left;
    } else {
      const u8 *at = vocab_token(v, id, &n);
      push_unknown(v, at, n, *unknown && (v->head->flags & VF_fuse_unknown), out);
      *unknown = !(v->head->flags & VF_byte_fallback);
    }
  }
}

/* Words above this are merged in pieces if the memory does not suffice for the whole. */
enum { WORD_PIECE = 1 << 16 };

/* The merges as a bit for each pair of bytes, last and first of both parts. */
typedef struct MergePairs {
  u32 *bit;
  bool apart; /* unknown text is always a symbol, and no merge begins with it */
  bool split; /* apart, and symbols of unknown text stay separate */
} MergePairs;

static void note_pairs(const Vocab *v, MergePairs *p) {
  u32 n, nleft, nright;
  const TokenMerge *merge = vocab_section(v, VP_merge, &n, sizeof *merge);
  memset(p->bit, 0, (1 << 16) / 8);
  p->apart = !(v->head->flags & VF_byte_level) && v->head->unknown != VOCAB_NONE;
  for (u32 i = 0; i < n; i++) {
    u32 id = merge[i].left;
    const u8 *left = vocab_token(v, id, &nleft), *right = vocab_token(v, merge[i].right, &nright);
    u32 pair = nleft && nright ? (u32)left[nleft - 1] << 8 | right[0] : 0;
    p->bit[pair >> 5] |= (u32)1 << (pair & 31);
    if (id == v->head->unknown || (id < v->head->ntoken && vocab_flags(v, id) & TF_byte))
      p->apart = false;
  }
  const u32 *byte = vocab_section(v, VP_byte_id, &n, sizeof *byte);
  bool fall = (v->head->flags & VF_byte_fallback) != 0;
  for (u32 i = 0; fall && i < n; i++) fall = byte[i] != 0;
  p->split = p->apart && (fall || !(v->head->flags & VF_fuse_unknown));
}

/* End of the piece of a word that begins at `from`: no merge joins the symbols on both sides. The
 * right one is a token, or both are unknown text that is split. */
static size_t piece_end(const Vocab *v, const MergePairs *p, const u8 *at, size_t n, size_t from) {
  size_t i = from, whole = 0;
  u32 length = 1, count;
  const u32 *byte = vocab_section(v, VP_byte_id, &count, sizeof *byte);
  for (bool known = true; i < n; i += length) {
    bool was = known;
    if (!(v->head->flags & VF_byte_level)) utf8_get(at + i, n - i, &length);
    known = v->head->flags & VF_byte_level
                ? byte[at[i]] != 0
                : trie_longest(&v->token, at + i, length, &whole) != VOCAB_NONE && whole == length;
    if (i - from < WORD_PIECE || (!known && (was || !p->split))) continue;
    u32 pair = (u32)at[i - 1] << 8 | at[i];
    if (was ? !(p->bit[pair >> 5] >> (pair & 31) & 1) : p->apart) break;
  }
  return i;
}

/* The initial symbols of a word, at most max; unknown text is a symbol, too. */
static bool begin_symbols(Bpe *b, const u8 *at, size_t n, size_t max) {
  const VocabHeader *h = b->v->head;
  u32 count;
  const u32 *byte = vocab_section(b->v, VP_byte_id, &count, sizeof *byte);
  bool was_unknown = false;
  for (size_t i = 0; i < n;) {
    u32 length = 1;
    size_t whole = 0;
    if (max - b->n < 4) return false;
    if (h->flags & VF_byte_level) {
      if (byte[at[i]]) b->id[b->n++] = byte[at[i]] - 1;
      i++;
      continue;
    }
    utf8_get(at + i, n - i, &length);
    u32 node = 0;
    for (u32 k = 0; k < length && node != VOCAB_NONE; k++)
      node = trie_step(&b->v->token, node, at[i + k]);
    whole = node != VOCAB_NONE && b->v->token.value[node] ? length : 0;
    if (whole) {
      b->id[b->n++] = b->v->token.value[node] - 1;
      was_unknown = false;
    } else {
      IdList ids = {.at = b->id, .n = b->n, .max = b->n + length};
      push_unknown(b->v, at + i, length, was_unknown && (h->flags & VF_fuse_unknown), &ids);
      was_unknown = ids.n == b->n || ids.at[ids.n - 1] == h->unknown;
      b->n = (u32)ids.n;
    }
    i += length;
  }
  return true;
}

static bool bpe(const Vocab *v, const u8 *at, size_t n, IdList *out, TokenizerMem r) {
  size_t length = 0;
  if (v->head->flags & VF_whole_first) {
    u32 id = trie_longest(&v->token, at, n, &length);
    if (id != VOCAB_NONE && length == n) {
      push_id(out, id);
      return true;
    }
  }
  MergePairs pairs = {.bit = n > WORD_PIECE && r.n / 24 < n ? tokenizer_alloc(&r, (1 << 16) / 8)
                                                            : NULL};
  if (pairs.bit) note_pairs(v, &pairs);
  bool unknown = false;
  for (size_t from = 0, to; from < n; from = to) {
    to = pairs.bit ? piece_end(v, &pairs, at, n, from) : n;
    TokenizerMem rest = r;
    Bpe b = {.v = v, .id = (u32 *)(void *)rest.at};
    if (!begin_symbols(&b, at + from, to - from, rest.n / sizeof(u32))) return false;
    u32 **array[] = {&b.id, &b.next, &b.prev, &b.rank, &b.heap, &b.place};
    for (u32 i = 0; i < sizeof array / sizeof *array; i++)
      if (!(*array[i] = tokenizer_alloc(&rest, b.n * sizeof(u32)))) return false;
    merge_all(&b);
    for (u32 i = 0; i < b.n; i++)
      if (b.id[i] != VOCAB_NONE) push_symbol(v, b.id[i], &unknown, out);
  }
  return true;
}

/* ---- unigram ---- */

/* Paths are followed to the next byte that all of them pass, which is near in most texts. */
enum { PATH_BYTES = 1 << 14 };

typedef struct BestPath { /* the best path to each byte */
  u16 *size;              /* bytes of its last piece, from byte `base` on; 0: unreachable */
  size_t base, far, max;  /* far: end of the longest piece so far; max: elements of size */
  double *sum;  /* score of the path: for the last `ring` bytes, because pieces are shorter */
  size_t ring;  /* a power of two */
  bool unknown; /* the last piece was unknown */
} BestPath;

static bool viterbi_relax(const Vocab *v, BestPath *p, size_t from, size_t to, double score) {
  double sum = score + p->sum[from & (p->ring - 1)], *best = &p->sum[to & (p->ring - 1)];
  if (v->head->flags & VF_narrow_sums) sum = (float)sum;
  if (to - p->base >= p->max) return false;
  while (p->far < to) p->size[++p->far - p->base] = 0;
  u16 *size = &p->size[to - p->base];
  if (*size && sum <= *best) return true;
  *best = sum;
  *size = (u16)(to - from);
  return true;
}

/* Relaxes all pieces that begin at byte i, where a character of `length` bytes is. */
static bool viterbi_step(const Vocab *v, BestPath *p, const u8 *at, size_t n, size_t i,
                         u32 length) {
  u32 count, node = 0;
  const double *score = vocab_section(v, VP_score, &count, sizeof *score);
  bool single = false;
  for (size_t k = i; k < n && k + 1 - i < p->ring; k++) {
    node = trie_step(&v->token, node, at[k]);
    if (node == VOCAB_NONE) break;
    u32 value = v->token.value[node];
    if (!value) continue;
    if (!viterbi_relax(v, p, i, k + 1, score[value - 1])) return false;
    single = single || k + 1 - i == length;
  }
  return single || viterbi_relax(v, p, i, i + length, score[count - 1]);
}

/* Pushes the pieces of the best path from p->base to byte `end`. */
static void push_path(const Vocab *v, BestPath *p, const u8 *at, size_t end, IdList *out) {
  u16 *to = p->size, next = 0; /* reverse the path: the size of the piece that starts here */
  size_t n = end - p->base, length = 0;
  at += p->base;
  for (size_t i = n; i;) {
    u16 size = to[i];
    to[i] = next;
    next = size;
    i -= size;
  }
  to[0] = next;
  for (size_t i = 0; i < n; i += to[i]) {
    u32 id = trie_longest(&v->token, at + i, to[i], &length);
    if (id == VOCAB_NONE || length < to[i]) {
      push_unknown(v, at + i, to[i], p->unknown && (v->head->flags & VF_fuse_unknown), out);
      p->unknown = true;
    } else {
      push_id(out, id);
      p->unknown = id == v->head->unknown;
    }
  }
  p->base = end;
}

static bool unigram(const Vocab *v, const u8 *at, size_t n, IdList *out, TokenizerMem r) {
  BestPath p = {.ring = vocab_viterbi_window(v)};
  p.sum = tokenizer_alloc(&r, p.ring * sizeof *p.sum);
  p.size = (u16 *)(void *)r.at;
  p.max = r.n / sizeof *p.size;
  if (!p.sum || !p.max) return false;
  p.sum[0] = 0;
  u32 length;
  for (size_t i = 0; i < n; i += length) {
    if (i == p.far && i - p.base >= PATH_BYTES) push_path(v, &p, at, i, out);
    utf8_get(at + i, n - i, &length);
    if (!viterbi_step(v, &p, at, n, i, length)) return false;
  }
  push_path(v, &p, at, n, out);
  return true;
}

/* ---- WordPiece ---- */

static bool wordpiece(const Vocab *v, const u8 *at, size_t n, IdList *out) {
  size_t chars = 0, first = out->n;
  u32 length;
  bool whole = true;
  for (size_t i = 0; i < n; i += length, chars++) utf8_get(at + i, n - i, &length);
  for (size_t i = 0; i < n && whole && chars <= v->head->word_max;) {
    u32 node = i ? v->head->dash_node : 0, id = VOCAB_NONE;
    size_t end = i;
    for (size_t k = i; k < n && node != VOCAB_NONE; k++) {
      node = trie_step(&v->token, node, at[k]);
      if (node == VOCAB_NONE || !v->token.value[node]) continue;
      id = v->token.value[node] - 1;
      end = k + 1;
    }
    whole = id != VOCAB_NONE && push_id(out, id);
    i = end;
  }
  if ((!whole && !out->full) || chars > v->head->word_max) {
    out->n = first;
    if (v->head->unknown != VOCAB_NONE) push_id(out, v->head->unknown);
  }
  return true;
}

bool vocab_encode_word(const Vocab *v, const u8 *at, size_t n, IdList *out, TokenizerMem r) {
  switch ((VocabModel)v->head->model) {
  case VM_bpe: return bpe(v, at, n, out, r);
  case VM_unigram: return unigram(v, at, n, out, r);
  case VM_wordpiece: return wordpiece(v, at, n, out);
  }
  return false;
}
