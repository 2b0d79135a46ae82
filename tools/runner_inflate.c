/* runner_inflate.c: the first part of runner.c: unpacks what an .npz archive holds.
 *
 * In: deflated bytes (RFC 1951) and how many they shall become. Out: those bytes, or nonzero where
 * they are something else. One bit at a time: archives of inputs are small. The Makefile puts this
 * text in front of runner.c.
 */
#define _POSIX_C_SOURCE 200809L /* before any header: of runner.c too */
#include <stddef.h>
#include <string.h>

typedef struct Bits {
  const unsigned char *in;
  size_t n, pos;
  unsigned char *out;
  size_t nout, at;
  int bad;
} Bits;

typedef struct Code {
  int count[16], symbol[288];
} Code;

static unsigned take(Bits *b, int n) {
  unsigned x = 0;
  for (int i = 0; i < n; i++, b->pos++) {
    if (b->pos >= b->n * 8) {
      b->bad = 1;
      return 0;
    }
    x |= (unsigned)(b->in[b->pos / 8] >> b->pos % 8 & 1) << i;
  }
  return x;
}

static void build(Code *c, const unsigned char *len, int n) {
  int at[16] = {0};
  memset(c->count, 0, sizeof c->count);
  for (int i = 0; i < n; i++) c->count[len[i]]++;
  c->count[0] = 0;
  for (int i = 1; i < 15; i++) at[i + 1] = at[i] + c->count[i];
  for (int i = 0; i < n; i++)
    if (len[i]) c->symbol[at[len[i]]++] = i;
}

static int decode(Bits *b, const Code *c) {
  int code = 0, first = 0, index = 0;
  for (int len = 1; len < 16 && !b->bad; len++) {
    code |= (int)take(b, 1);
    if (code - first < c->count[len]) return c->symbol[index + code - first];
    index += c->count[len];
    first = (first + c->count[len]) * 2;
    code *= 2;
  }
  b->bad = 1;
  return 0;
}

static void put(Bits *b, unsigned char x) {
  if (b->at < b->nout)
    b->out[b->at++] = x;
  else
    b->bad = 1;
}

static void copy_back(Bits *b, const Code *dist, int symbol) {
  int k = symbol - 257, d;
  size_t len = 258, far;
  if (k < 8) {
    len = (size_t)k + 3;
  } else if (k < 28) {
    int extra = k / 4 - 1;
    len = ((size_t)(4 + k % 4) << extra) + 3 + take(b, extra);
  } else if (k > 28) {
    b->bad = 1;
  }
  d = decode(b, dist);
  if (d < 4) {
    far = (size_t)d + 1;
  } else {
    int extra = d / 2 - 1;
    far = ((size_t)(2 + d % 2) << extra) + 1 + take(b, extra);
  }
  if (far > b->at || d > 29) b->bad = 1;
  for (; len && !b->bad; len--) put(b, b->out[b->at - far]);
}

static void read_codes(Bits *b, Code *lit, Code *dist) {
  static const unsigned char order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                          11, 4,  12, 3, 13, 2, 14, 1, 15};
  unsigned char len[320] = {0}, first[19] = {0};
  int nlit = (int)take(b, 5) + 257, ndist = (int)take(b, 5) + 1, n = (int)take(b, 4) + 4, i = 0;
  for (int k = 0; k < n; k++) first[order[k]] = (unsigned char)take(b, 3);
  build(lit, first, 19);
  while (i < nlit + ndist && !b->bad) {
    int s = decode(b, lit), times = 1;
    unsigned char value = (unsigned char)s;
    if (s == 16) {
      value = i ? len[i - 1] : 0;
      times = (int)take(b, 2) + 3;
    } else if (s > 16) {
      value = 0;
      times = s == 17 ? (int)take(b, 3) + 3 : (int)take(b, 7) + 11;
    }
    while (times-- && i < nlit + ndist) len[i++] = value;
  }
  if (nlit > 286 || ndist > 30) b->bad = 1;
  if (b->bad) return;
  build(lit, len, nlit);
  build(dist, len + nlit, ndist);
}

static void read_block(Bits *b, int kind) {
  Code lit = {{0}, {0}}, dist = {{0}, {0}};
  if (kind == 0) {
    b->pos = (b->pos + 7) / 8 * 8;
    unsigned n = take(b, 16);
    take(b, 16);
    for (unsigned i = 0; i < n && !b->bad; i++) put(b, (unsigned char)take(b, 8));
    return;
  }
  if (kind == 1) {
    unsigned char len[288];
    for (int i = 0; i < 288; i++)
      len[i] = (unsigned char)(i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8);
    build(&lit, len, 288);
    memset(len, 5, 30);
    build(&dist, len, 30);
  } else if (kind == 2) {
    read_codes(b, &lit, &dist);
  } else {
    b->bad = 1;
  }
  while (!b->bad) {
    int s = decode(b, &lit);
    if (s == 256) return;
    if (s < 256)
      put(b, (unsigned char)s);
    else
      copy_back(b, &dist, s);
  }
}

/* Nonzero when the data are not what they should be. */
static int inflate(const unsigned char *in, size_t n, unsigned char *out, size_t nout) {
  Bits b = {in, n, 0, out, nout, 0, 0};
  int last = 0;
  while (!last && !b.bad) {
    last = (int)take(&b, 1);
    read_block(&b, (int)take(&b, 2));
  }
  return b.bad || b.at != nout;
}
