/* RFC 1951: deflated bytes -> the bytes they stand for.
 *
 * Codes are decoded through a table indexed by the next FAST bits; longer codes fall back to the
 * canonical walk, one length at a time. Reading past the input, writing past the output and
 * distances before its start are refused; so are codes that promise more symbols than fit. An
 * incomplete code is accepted until one of its missing words turns up. Takes the whole input and
 * output at once: no streaming.
 */
#include "onnx/data.h"
#include <string.h>

enum { FAST = 9, MAX_BITS = 15, MAX_LIT = 288, MAX_DIST = 30 };

typedef struct Huff {
  u16 fast[1 << FAST];     /* symbol << 4 | length; 0: not a short code */
  u16 count[MAX_BITS + 1]; /* codes of each length */
  u16 symbol[MAX_LIT];     /* sorted by code */
} Huff;

typedef struct Bits {
  const u8 *in;
  size_t nin, pos;
  u64 word; /* the next bits, lowest first */
  u32 have;
  u8 *out;
  size_t nout, at;
  const char *why; /* the first thing that was wrong */
  bool is_fixed;   /* lit and dist hold the fixed codes */
  Huff lit, dist;
} Bits;

static bool wrong(Bits *b, const char *why) {
  if (!b->why) b->why = why;
  return false;
}

static void fill(Bits *b) {
  while (b->have <= 56 && b->pos < b->nin) {
    b->word |= (u64)b->in[b->pos++] << b->have;
    b->have += 8;
  }
}

/* Up to 16 bits. Past the end it answers 0 and notes it. */
static u32 take(Bits *b, u32 n) {
  if (b->have < n) fill(b);
  if (b->have < n) {
    wrong(b, "deflated data end early");
    return 0;
  }
  u32 x = (u32)(b->word & (((u64)1 << n) - 1));
  b->word >>= n;
  b->have -= n;
  return x;
}

static u32 reverse(u32 code, u32 len) {
  u32 r = 0;
  for (u32 i = 0; i < len; i++) r |= (code >> i & 1) << (len - 1 - i);
  return r;
}

static bool build(Bits *b, Huff *h, const u8 *len, u32 n) {
  u16 next[MAX_BITS + 2] = {0}, code[MAX_BITS + 2] = {0};
  memset(h->fast, 0, sizeof h->fast);
  memset(h->count, 0, sizeof h->count);
  for (u32 i = 0; i < n; i++) h->count[len[i]]++;
  h->count[0] = 0;
  i32 left = 1;
  for (u32 l = 1; l <= MAX_BITS; l++) {
    left = 2 * left - h->count[l];
    if (left < 0) return wrong(b, "code lengths that do not fit together");
    next[l + 1] = (u16)(next[l] + h->count[l]);
    code[l + 1] = (u16)((code[l] + h->count[l]) << 1);
  }
  for (u32 i = 0; i < n; i++) {
    u32 l = len[i];
    if (l == 0) continue;
    h->symbol[next[l]++] = (u16)i;
    u32 word = code[l]++;
    if (l > FAST) continue;
    for (u32 k = reverse(word, l); k < 1u << FAST; k += 1u << l) h->fast[k] = (u16)(i << 4 | l);
  }
  return true;
}

/* The next symbol, or MAX_LIT after an error. */
static u32 decode(Bits *b, const Huff *h) {
  if (b->have < MAX_BITS) fill(b);
  u32 f = h->fast[b->word & ((1u << FAST) - 1)];
  if (f && (f & 15) <= b->have) {
    b->word >>= f & 15;
    b->have -= f & 15;
    return f >> 4;
  }
  u32 code = 0, first = 0, index = 0;
  for (u32 l = 1; l <= MAX_BITS && l <= b->have; l++) {
    code |= (u32)(b->word >> (l - 1)) & 1;
    if (code < first + h->count[l]) {
      b->word >>= l;
      b->have -= l;
      return h->symbol[index + (code - first)];
    }
    index += h->count[l];
    first = (first + h->count[l]) << 1;
    code <<= 1;
  }
  wrong(b, b->have < MAX_BITS ? "deflated data end early" : "a code word that was not defined");
  return MAX_LIT;
}

static bool copy_match(Bits *b, u32 lensym) {
  static const u16 len_base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                   31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
  static const u8 len_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                   2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
  if (lensym >= 29) return wrong(b, "no such length symbol");
  size_t len = len_base[lensym] + take(b, len_extra[lensym]);
  u32 s = decode(b, &b->dist);
  if (s >= MAX_DIST) return wrong(b, "no such distance symbol");
  u32 extra = s < 4 ? 0 : s / 2 - 1;
  size_t base = s < 4 ? s + 1 : (size_t)(2 + s % 2) * ((size_t)1 << extra) + 1;
  size_t dist = base + take(b, extra);
  if (b->why) return false;
  if (dist > b->at) return wrong(b, "a distance that reaches before the start");
  if (len > b->nout - b->at) return wrong(b, "more bytes than announced");
  u8 *to = b->out + b->at;
  const u8 *from = to - dist;
  for (size_t i = 0; i < len; i++) to[i] = from[i]; /* may overlap: byte by byte is the meaning */
  b->at += len;
  return true;
}

static bool coded_block(Bits *b) {
  for (;;) {
    u32 s = decode(b, &b->lit);
    if (b->why) return false;
    if (s == 256) return true;
    if (s > 256) {
      if (!copy_match(b, s - 257)) return false;
    } else {
      if (b->at >= b->nout) return wrong(b, "more bytes than announced");
      b->out[b->at++] = (u8)s;
    }
  }
}

static bool stored_block(Bits *b) {
  take(b, b->have & 7);
  u32 n = take(b, 16), not_n = take(b, 16);
  if (b->why) return false;
  if ((n ^ 0xffff) != not_n) return wrong(b, "a stored block with a damaged length");
  for (; n > 0 && b->have >= 8; n--) {
    if (b->at >= b->nout) return wrong(b, "more bytes than announced");
    b->out[b->at++] = (u8)take(b, 8);
  }
  if (n > b->nin - b->pos) return wrong(b, "deflated data end early");
  if (n > b->nout - b->at) return wrong(b, "more bytes than announced");
  if (n > 0) memcpy(b->out + b->at, b->in + b->pos, n);
  b->pos += n;
  b->at += n;
  return true;
}

static bool fixed_codes(Bits *b) {
  u8 len[MAX_LIT];
  if (b->is_fixed) return true;
  b->is_fixed = true;
  for (u32 i = 0; i < MAX_LIT; i++) len[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  if (!build(b, &b->lit, len, MAX_LIT)) return false;
  memset(len, 5, MAX_DIST);
  return build(b, &b->dist, len, MAX_DIST);
}

/* Code lengths are themselves coded, with runs. */
static bool dynamic_codes(Bits *b) {
  static const u8 order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  u8 len[MAX_LIT + 32] = {0};
  b->is_fixed = false;
  u32 nlit = take(b, 5) + 257, ndist = take(b, 5) + 1, ncode = take(b, 4) + 4;
  if (nlit > 286 || ndist > MAX_DIST) return wrong(b, "too many symbols");
  for (u32 i = 0; i < ncode; i++) len[order[i]] = (u8)take(b, 3);
  if (b->why || !build(b, &b->lit, len, 19)) return false;
  memset(len, 0, 19);
  for (u32 i = 0; i < nlit + ndist;) {
    u32 s = decode(b, &b->lit);
    if (b->why) return false;
    if (s < 16) {
      len[i++] = (u8)s;
      continue;
    }
    if (s == 16 && i == 0) return wrong(b, "a repeated length with nothing before it");
    u8 value = s == 16 ? len[i - 1] : 0;
    u32 run = s == 16 ? 3 + take(b, 2) : s == 17 ? 3 + take(b, 3) : 11 + take(b, 7);
    if (run > nlit + ndist - i) return wrong(b, "a run of lengths beyond the last symbol");
    while (run-- > 0) len[i++] = value;
  }
  if (b->why) return false;
  return build(b, &b->dist, len + nlit, ndist) && build(b, &b->lit, len, nlit);
}

const char *inflate(const u8 *in, size_t nin, u8 *out, size_t nout) {
  Bits b;
  memset(&b, 0, offsetof(Bits, lit)); /* the tables are built before they are read */
  b.in = in, b.nin = nin, b.out = out, b.nout = nout;
  bool last = false;
  while (!last && !b.why) {
    last = take(&b, 1);
    switch (take(&b, 2)) {
    case 0: stored_block(&b); break;
    case 1:
      if (fixed_codes(&b)) coded_block(&b);
      break;
    case 2:
      if (dynamic_codes(&b)) coded_block(&b);
      break;
    default: wrong(&b, "no such kind of block");
    }
  }
  if (!b.why && b.at != b.nout) wrong(&b, "fewer bytes than announced");
  if (!b.why && (b.pos < b.nin || b.have >= 8)) wrong(&b, "bytes after the last block");
  return b.why;
}
