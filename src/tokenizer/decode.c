/* decode.c: token ids -> text, token by token. The output is always valid UTF-8: bytes of an
 * incomplete character are held back, invalid bytes become U+FFFD.
 */
#include "tokenizer/tokenizer.h"
#include <string.h>

static const u8 REPLACEMENT[3] = {0xef, 0xbf, 0xbd};
static const u8 SPACE[3] = {0xe2, 0x96, 0x81};

size_t detok_max_bytes(const Vocab *v) {
  return 3 * ((size_t)v->head->longest + 8);
}

/* True if p[0..n) is a proper prefix of a UTF-8 character. */
static bool is_utf8_prefix(const u8 *p, size_t n) {
  if (p[0] < 0xc2 || p[0] > 0xf4 || n >= (p[0] >= 0xf0 ? 4u : p[0] >= 0xe0 ? 3u : 2u)) return false;
  for (size_t i = 1; i < n; i++)
    if ((p[i] & 0xc0) != 0x80) return false;
  if (n < 2) return true;
  return !(p[0] == 0xe0 && p[1] < 0xa0) && !(p[0] == 0xed && p[1] > 0x9f) &&
         !(p[0] == 0xf0 && p[1] < 0x90) && !(p[0] == 0xf4 && p[1] > 0x8f);
}

/* Number of leading bytes of kept that become one U+FFFD. */
static u8 bad_length(const Detok *d, bool one_by_one) {
  u8 n = 1;
  while (!one_by_one && n < d->nkept && is_utf8_prefix(d->kept, n + 1u)) n++;
  return n;
}

static size_t drop_bad(Detok *d, bool one_by_one, u8 *to) {
  u8 n = bad_length(d, one_by_one);
  memcpy(to, REPLACEMENT, 3);
  d->nkept = (u8)(d->nkept - n);
  memmove(d->kept, d->kept + n, d->nkept);
  return 3;
}

static size_t put_byte(Detok *d, bool one_by_one, u8 byte, u8 *to) {
  size_t n = 0;
  d->kept[d->nkept++] = byte;
  while (d->nkept) {
    u32 length;
    if (utf8_get(d->kept, d->nkept, &length) < VOCAB_BAD_BYTE) {
      memcpy(to + n, d->kept, length);
      n += length;
      d->nkept = (u8)(d->nkept - length);
      memmove(d->kept, d->kept + length, d->nkept);
    } else if (is_utf8_prefix(d->kept, d->nkept)) {
      break;
    } else {
      n += drop_bad(d, one_by_one, to + n);
    }
  }
  return n;
}

static bool starts(const u8 *p, u32 n, const char *with) {
  u32 k = 0;
  while (k < n && with[k] && p[k] == (u8)with[k]) k++;
  return !with[k];
}

/* Removes spaces before punctuation from a WordPiece token with its leading space; n grows by at
 * most one. */
static u32 clean_word(u8 *p, u32 n) {
  static const char tight[][5] = {" .",   " ?",  " !",  " ,",   " ' ",
                                  " n't", " 'm", " 's", " 've", " 're"};
  u32 out = 0;
  for (u32 i = 0; i < n;) {
    u32 drop = 0;
    for (u32 k = 0; k < sizeof tight / sizeof *tight && !drop; k++)
      if (starts(p + i, n - i, tight[k])) drop = k + 1;
    if (drop) i++;
    p[out++] = p[i++];
    if (drop == 5) i++; /* both spaces of " ' " are dropped */
  }
  return out;
}

/* The bytes of a token, as this decoder writes them. */
static u32 spell(const Detok *d, const Vocab *v, u32 id, u8 *to) {
  u32 n, out = 0, flags = v->head->flags;
  const u8 *p = vocab_token(v, id, &n);
  u8 own = vocab_flags(v, id);
  if (v->head->decode == VD_wordpiece) {
    bool inside = d->begun && starts(p, n, "##");
    if (d->begun && !inside) to[out++] = ' ';
    memcpy(to + out, p + (inside ? 2 : 0), n - (inside ? 2 : 0));
    out += n - (inside ? 2 : 0);
    return flags & VF_clean ? clean_word(to, out) : out;
  }
  if (v->head->decode == VD_bytes || (own & TF_byte)) {
    memcpy(to, p, n);
    return n;
  }
  for (u32 i = 0; i < n;) {
    bool space = n - i >= 3 && memcmp(p + i, SPACE, 3) == 0;
    bool drop =
        !d->begun && space && ((flags & VF_strip_spaces) || ((flags & VF_strip_first) && i == 0));
    if (!drop) to[out++] = space ? ' ' : p[i];
    i += space ? 3 : 1;
  }
  return out;
}

size_t detok_put(Detok *d, const Vocab *v, u32 id, u8 *to) {
  size_t n = 0;
  if (id >= v->head->ntoken) return 0;
  if ((vocab_flags(v, id) & TF_special) && !d->special) return 0;
  /* Decoded to the end of the buffer, because it may grow to three times its size. */
  u8 *text = to + 2 * ((size_t)v->head->longest + 8);
  u32 length = spell(d, v, id, text);
  d->begun = 1;
  for (u32 i = 0; i < length; i++)
    n += put_byte(d, (v->head->flags & VF_bad_one_by_one) != 0, text[i], to + n);
  return n;
}

size_t detok_end(Detok *d, const Vocab *v, u8 *to) {
  size_t n = 0;
  while (d->nkept) n += drop_bad(d, (v->head->flags & VF_bad_one_by_one) != 0, to + n);
  return n;
}
