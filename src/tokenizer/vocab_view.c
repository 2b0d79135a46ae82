/* vocab_view.c: access to the tables of a vocabulary, tries, UTF-8.
 *
 * In: the bytes that vocab_make wrote. The header and the section offsets are checked; the contents
 * are trusted.
 */
#include "tokenizer/tokenizer.h"
#include <string.h>

const void *vocab_section(const Vocab *v, VocabSection p, u32 *count, u32 size) {
  *count = v->head->part[2 * p + 1] / size;
  return v->base + v->head->part[2 * p];
}

static Trie trie(const Vocab *v, VocabSection first) {
  Trie t;
  u32 n;
  t.first = vocab_section(v, first, &n, sizeof *t.first);
  t.value = vocab_section(v, (VocabSection)(first + 1), &t.n, sizeof *t.value);
  t.label = vocab_section(v, (VocabSection)(first + 2), &n, 1);
  return t;
}

bool vocab_open(Vocab *v, const void *at, size_t n) {
  const VocabHeader *h = at;
  if (n < sizeof *h || h->magic != VOCAB_MAGIC || h->version != VOCAB_VERSION || h->bytes > n)
    return false;
  for (u32 p = 0; p < VP_END; p++) {
    u32 from = h->part[2 * p], size = h->part[2 * p + 1];
    if (from % 8 || from < sizeof *h || from > h->bytes || size > h->bytes - from) return false;
  }
  v->base = at;
  v->head = h;
  v->token = trie(v, VP_trie_first);
  v->raw = trie(v, VP_raw_first);
  v->norm = trie(v, VP_norm_first);
  return true;
}

const u8 *vocab_token(const Vocab *v, u32 id, u32 *n) {
  u32 count;
  const u32 *at = vocab_section(v, VP_token_at, &count, sizeof *at);
  const u8 *bytes = vocab_section(v, VP_token_byte, &count, 1);
  *n = at[id + 1] - at[id];
  return bytes + at[id];
}

u8 vocab_flags(const Vocab *v, u32 id) {
  u32 n;
  const u8 *flag = vocab_section(v, VP_token_flag, &n, 1);
  return flag[id];
}

bool vocab_stops(const Vocab *v, u32 id) {
  u32 n;
  const u32 *stop = vocab_section(v, VP_stop, &n, sizeof *stop);
  for (u32 i = 0; i < n; i++)
    if (stop[i] == id) return true;
  return false;
}

u32 trie_step(const Trie *t, u32 node, u8 byte) {
  u32 lo = t->first[node], hi = t->first[node + 1];
  while (lo < hi) {
    u32 mid = lo + (hi - lo) / 2;
    if (t->label[mid] == byte) return mid;
    if (t->label[mid] < byte)
      lo = mid + 1;
    else
      hi = mid;
  }
  return VOCAB_NONE;
}

u32 trie_longest(const Trie *t, const u8 *p, size_t n, size_t *length) {
  u32 node = 0, found = VOCAB_NONE;
  if (!t->n) return found;
  for (size_t i = 0; i < n; i++) {
    node = trie_step(t, node, p[i]);
    if (node == VOCAB_NONE) break;
    if (!t->value[node]) continue;
    found = t->value[node] - 1;
    *length = i + 1;
  }
  return found;
}

u32 utf8_get(const u8 *p, size_t n, u32 *length) {
  u32 ch = p[0], more = ch >= 0xf0 ? 3 : ch >= 0xe0 ? 2 : 1;
  *length = 1;
  if (ch < 0x80) return ch;
  if (ch < 0xc2 || ch > 0xf4 || n <= more) return VOCAB_BAD_BYTE + ch;
  ch &= 0x3fu >> more;
  for (u32 i = 1; i <= more; i++) {
    if ((p[i] & 0xc0) != 0x80) return VOCAB_BAD_BYTE + p[0];
    ch = ch << 6 | (p[i] & 0x3fu);
  }
  static const u32 least[] = {0, 0x80, 0x800, 0x10000};
  if (ch < least[more] || ch > 0x10ffff || (ch >= 0xd800 && ch < 0xe000))
    return VOCAB_BAD_BYTE + p[0];
  *length = more + 1;
  return ch;
}

u32 utf8_put(u8 *p, u32 ch) {
  if (ch < 0x80 || ch >= VOCAB_BAD_BYTE) {
    p[0] = (u8)ch;
    return 1;
  }
  static const u8 lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  u32 n = ch < 0x800 ? 2 : ch < 0x10000 ? 3 : 4;
  for (u32 i = n; i-- > 1; ch >>= 6) p[i] = (u8)(0x80 | (ch & 0x3f));
  p[0] = (u8)(lead[n] | ch);
  return n;
}

/* Unicode White_Space. */
bool char_is_space(u32 ch) {
  return (ch >= 9 && ch <= 13) || ch == ' ' || ch == 0x85 || ch == 0xa0 || ch == 0x1680 ||
         (ch >= 0x2000 && ch <= 0x200a) || ch == 0x2028 || ch == 0x2029 || ch == 0x202f ||
         ch == 0x205f || ch == 0x3000;
}
