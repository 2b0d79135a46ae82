/* digest.c: a cryptographic hash, for names of cached code: a file that was made to collide with
 * another model would make ingot run that model's code.
 *
 * In: bytes. Out: 128 bits as 32 hexadecimal digits. Method: BLAKE2b (RFC 7693), without a key. */
#include "base/base.h"

#include <string.h>

enum { BLOCK = 128, ROUNDS = 12 };

static const u64 iv[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                          0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                          0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

/* Order of the message words per round, four bits each; word 0 is the last digit. */
static const u64 order[10] = {0xfedcba9876543210, 0x357b20c16df984ae, 0x491763eadf250c8b,
                              0x8f04a562ebcd1397, 0xd386cb1efa427509, 0x91ef57d438b0a6c2,
                              0xb8293670a4def15c, 0xa2684f05931ce7bd, 0x5a417d2c803b9ef6,
                              0x0dc3e9bf5167482a};

static u64 right(u64 x, int by) {
  return x >> by | x << (64 - by);
}

static void mix(u64 *a, u64 *b, u64 *c, u64 *d, u64 x, u64 y) {
  *a += *b + x, *d = right(*d ^ *a, 32), *c += *d, *b = right(*b ^ *c, 24);
  *a += *b + y, *d = right(*d ^ *a, 16), *c += *d, *b = right(*b ^ *c, 63);
}

static void compress(u64 h[8], const u8 block[BLOCK], u64 count, bool last) {
  u64 v[16], m[16] = {0};
  for (int i = 0; i < BLOCK; i++) m[i / 8] |= (u64)block[i] << i % 8 * 8;
  memcpy(v, h, 8 * sizeof *v);
  memcpy(v + 8, iv, sizeof iv);
  v[12] ^= count;
  if (last) v[14] = ~v[14];
  for (int r = 0; r < ROUNDS; r++) {
    u64 o = order[r % 10];
    for (int i = 0; i < 8; i++, o >>= 8) {
      int k = i % 4, turn = i / 4; /* columns, then diagonals */
      mix(&v[k], &v[4 + (k + turn) % 4], &v[8 + (k + 2 * turn) % 4], &v[12 + (k + 3 * turn) % 4],
          m[o & 15], m[o >> 4 & 15]);
    }
  }
  for (int i = 0; i < 8; i++) h[i] ^= v[i] ^ v[i + 8];
}

Digest digest_bytes(const void *at, size_t n) {
  const u8 *p = at;
  u64 h[8], count = 0;
  u8 end[BLOCK] = {0};
  memcpy(h, iv, sizeof h);
  h[0] ^= 0x01010000 ^ DIGEST_DIGITS / 2;
  for (; n - count > BLOCK; p += BLOCK) compress(h, p, count += BLOCK, false);
  if (n > count) memcpy(end, p, n - count);
  compress(h, end, n, true);
  Digest d = {{0}};
  for (int i = 0; i < DIGEST_DIGITS; i++)
    d.digit[i] = "0123456789abcdef"[h[i / 16] >> (i % 16 ^ 1) * 4 & 15];
  return d;
}
