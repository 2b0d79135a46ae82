/* inflate.h: a decoder for deflate (RFC 1951).
 *
 * Codes are decoded with a table indexed by the next INF_FAST bits; longer codes by canonical
 * decoding, one length at a time. Reads past the input, writes past the output, distances before
 * its start and oversubscribed codes are refused. An incomplete code fails only when a missing code
 * word occurs. No streaming: input and output are complete. C99 without other ingot code: compiled
 * here, and with tools/runner.c into every program of `ingot build`.
 */
#ifndef INGOT_INFLATE_H
#define INGOT_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { INF_FAST = 9, INF_BITS = 15, INF_LIT = 288, INF_DIST = 30 };

typedef struct InfCode {
  uint16_t fast[1 << INF_FAST]; /* symbol << 4 | length; 0: longer code */
  uint16_t count[INF_BITS + 1]; /* number of codes per length */
  uint16_t symbol[INF_LIT];     /* sorted by code */
} InfCode;

typedef struct Inflate {
  const uint8_t *in;
  size_t nin, pos;
  uint64_t word; /* bit buffer, lowest bit first */
  uint32_t have;
  uint8_t *out;
  size_t nout, at;
  const char *why; /* the first error */
  bool is_fixed;   /* lit and dist hold the fixed codes */
  InfCode lit, dist;
} Inflate;

static bool inf_wrong(Inflate *b, const char *why) {
  if (!b->why) b->why = why;
  return false;
}

static void inf_fill(Inflate *b) {
  while (b->have <= 56 && b->pos < b->nin) {
    b->word |= (uint64_t)b->in[b->pos++] << b->have;
    b->have += 8;
  }
}

/* Takes up to 16 bits. Past the end it returns 0 and records an error. */
static uint32_t inf_take(Inflate *b, uint32_t n) {
  if (b->have < n) inf_fill(b);
  if (b->have < n) {
    inf_wrong(b, "the deflated data is truncated");
    return 0;
  }
  uint32_t x = (uint32_t)(b->word & (((uint64_t)1 << n) - 1));
  b->word >>= n;
  b->have -= n;
  return x;
}

static uint32_t inf_reverse(uint32_t code, uint32_t len) {
  uint32_t r = 0;
  for (uint32_t i = 0; i < len; i++) r |= (code >> i & 1) << (len - 1 - i);
  return r;
}

static bool inf_build(Inflate *b, InfCode *h, const uint8_t *len, uint32_t n) {
  uint16_t next[INF_BITS + 2] = {0}, code[INF_BITS + 2] = {0};
  memset(h->fast, 0, sizeof h->fast);
  memset(h->count, 0, sizeof h->count);
  for (uint32_t i = 0; i < n; i++) h->count[len[i]]++;
  h->count[0] = 0;
  int32_t left = 1;
  for (uint32_t l = 1; l <= INF_BITS; l++) {
    left = 2 * left - h->count[l];
    if (left < 0) return inf_wrong(b, "deflate: invalid code lengths");
    next[l + 1] = (uint16_t)(next[l] + h->count[l]);
    code[l + 1] = (uint16_t)((code[l] + h->count[l]) << 1);
  }
  for (uint32_t i = 0; i < n; i++) {
    uint32_t l = len[i];
    if (l == 0) continue;
    h->symbol[next[l]++] = (uint16_t)i;
    uint32_t word = code[l]++;
    if (l > INF_FAST) continue;
    for (uint32_t k = inf_reverse(word, l); k < 1u << INF_FAST; k += 1u << l)
      h->fast[k] = (uint16_t)(i << 4 | l);
  }
  return true;
}

/* The next symbol, or INF_LIT after an error. */
static uint32_t inf_decode(Inflate *b, const InfCode *h) {
  if (b->have < INF_BITS) inf_fill(b);
  uint32_t f = h->fast[b->word & ((1u << INF_FAST) - 1)];
  if (f && (f & 15) <= b->have) {
    b->word >>= f & 15;
    b->have -= f & 15;
    return f >> 4;
  }
  uint32_t code = 0, first = 0, index = 0;
  for (uint32_t l = 1; l <= INF_BITS && l <= b->have; l++) {
    code |= (uint32_t)(b->word >> (l - 1)) & 1;
    if (code < first + h->count[l]) {
      b->word >>= l;
      b->have -= l;
      return h->symbol[index + (code - first)];
    }
    index += h->count[l];
    first = (first + h->count[l]) << 1;
    code <<= 1;
  }
  inf_wrong(b,
            b->have < INF_BITS ? "the deflated data is truncated" : "deflate: undefined code word");
  return INF_LIT;
}

static bool inf_copy(Inflate *b, uint32_t lensym) {
  static const uint16_t len_base[29] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                        15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                        67, 83, 99, 115, 131, 163, 195, 227, 258};
  static const uint8_t len_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                        2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
  if (lensym >= 29) return inf_wrong(b, "deflate: invalid length symbol");
  size_t len = len_base[lensym] + inf_take(b, len_extra[lensym]);
  uint32_t s = inf_decode(b, &b->dist);
  if (s >= INF_DIST) return inf_wrong(b, "deflate: invalid distance symbol");
  uint32_t extra = s < 4 ? 0 : s / 2 - 1;
  size_t base = s < 4 ? s + 1 : (size_t)(2 + s % 2) * ((size_t)1 << extra) + 1;
  size_t dist = base + inf_take(b, extra);
  if (b->why) return false;
  if (dist > b->at) return inf_wrong(b, "deflate: distance before the start of the output");
  if (len > b->nout - b->at) return inf_wrong(b, "more bytes than the header says");
  uint8_t *to = b->out + b->at;
  const uint8_t *from = to - dist;
  for (size_t i = 0; i < len; i++) to[i] = from[i]; /* may overlap: copies byte by byte */
  b->at += len;
  return true;
}

static bool inf_coded(Inflate *b) {
  for (;;) {
    uint32_t s = inf_decode(b, &b->lit);
    if (b->why) return false;
    if (s == 256) return true;
    if (s > 256) {
      if (!inf_copy(b, s - 257)) return false;
    } else {
      if (b->at >= b->nout) return inf_wrong(b, "more bytes than the header says");
      b->out[b->at++] = (uint8_t)s;
    }
  }
}

static bool inf_stored(Inflate *b) {
  inf_take(b, b->have & 7);
  uint32_t n = inf_take(b, 16), not_n = inf_take(b, 16);
  if (b->why) return false;
  if ((n ^ 0xffff) != not_n) return inf_wrong(b, "deflate: damaged length of a stored block");
  for (; n > 0 && b->have >= 8; n--) {
    if (b->at >= b->nout) return inf_wrong(b, "more bytes than the header says");
    b->out[b->at++] = (uint8_t)inf_take(b, 8);
  }
  if (n > b->nin - b->pos) return inf_wrong(b, "the deflated data is truncated");
  if (n > b->nout - b->at) return inf_wrong(b, "more bytes than the header says");
  if (n > 0) memcpy(b->out + b->at, b->in + b->pos, n);
  b->pos += n;
  b->at += n;
  return true;
}

static bool inf_fixed(Inflate *b) {
  uint8_t len[INF_LIT];
  if (b->is_fixed) return true;
  b->is_fixed = true;
  for (uint32_t i = 0; i < INF_LIT; i++) len[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  if (!inf_build(b, &b->lit, len, INF_LIT)) return false;
  memset(len, 5, INF_DIST);
  return inf_build(b, &b->dist, len, INF_DIST);
}

/* Reads the two codes of a dynamic block; their lengths are Huffman- and run-length-coded. */
static bool inf_dynamic(Inflate *b) {
  static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                    11, 4,  12, 3, 13, 2, 14, 1, 15};
  uint8_t len[INF_LIT + 32] = {0};
  b->is_fixed = false;
  uint32_t nlit = inf_take(b, 5) + 257, ndist = inf_take(b, 5) + 1, ncode = inf_take(b, 4) + 4;
  if (nlit > 286 || ndist > INF_DIST) return inf_wrong(b, "deflate: too many symbols");
  for (uint32_t i = 0; i < ncode; i++) len[order[i]] = (uint8_t)inf_take(b, 3);
  if (b->why || !inf_build(b, &b->lit, len, 19)) return false;
  memset(len, 0, 19);
  for (uint32_t i = 0; i < nlit + ndist;) {
    uint32_t s = inf_decode(b, &b->lit);
    if (b->why) return false;
    if (s < 16) {
      len[i++] = (uint8_t)s;
      continue;
    }
    if (s == 16 && i == 0)
      return inf_wrong(b, "deflate: repeated code length without a previous one");
    uint8_t value = s == 16 ? len[i - 1] : 0;
    uint32_t run = s == 16   ? 3 + inf_take(b, 2)
                   : s == 17 ? 3 + inf_take(b, 3)
                             : 11 + inf_take(b, 7);
    if (run > nlit + ndist - i)
      return inf_wrong(b, "deflate: run of code lengths past the last symbol");
    while (run-- > 0) len[i++] = value;
  }
  if (b->why) return false;
  return inf_build(b, &b->dist, len + nlit, ndist) && inf_build(b, &b->lit, len, nlit);
}

/* Returns NULL or an error. Input and output must be consumed exactly. */
static const char *inflate_all(const uint8_t *in, size_t nin, uint8_t *out, size_t nout) {
  Inflate b;
  memset(&b, 0, offsetof(Inflate, lit)); /* tables are built before use */
  b.in = in, b.nin = nin, b.out = out, b.nout = nout;
  bool last = false;
  while (!last && !b.why) {
    last = inf_take(&b, 1);
    switch (inf_take(&b, 2)) {
    case 0: inf_stored(&b); break;
    case 1:
      if (inf_fixed(&b)) inf_coded(&b);
      break;
    case 2:
      if (inf_dynamic(&b)) inf_coded(&b);
      break;
    default: inf_wrong(&b, "deflate: invalid block type");
    }
  }
  if (!b.why && b.at != b.nout) inf_wrong(&b, "fewer bytes than the header says");
  if (!b.why && (b.pos < b.nin || b.have >= 8)) inf_wrong(&b, "bytes after the last block");
  return b.why;
}

#endif
