/* Open-addressing hash map: 64-bit number or byte string -> u32. Linear probing, at most 3/4 full,
 * storage in an arena. No deletion, and no iteration, because output must not depend on slot order.
 * A slot pointer is valid until the next put.
 *
 * Keys may come from hostile files, so numbers and bytes are hashed with SipHash-1-3. Its key is
 * fixed, so that hash values are the same in all runs. */
#include "base/base.h"
#include <string.h>

struct MapSlot {
  u64 hash; /* 0: free */
  union {
    u64 num;
    const u8 *bytes;
  } key;
  size_t n; /* bytes of the key */
  u32 value;
};
typedef struct MapSlot MapSlot;

static u64 rotate(u64 x, int by) {
  return x << by | x >> (64 - by);
}

static void mix(u64 v[4]) {
  v[0] += v[1], v[1] = rotate(v[1], 13) ^ v[0], v[0] = rotate(v[0], 32);
  v[2] += v[3], v[3] = rotate(v[3], 16) ^ v[2];
  v[0] += v[3], v[3] = rotate(v[3], 21) ^ v[0];
  v[2] += v[1], v[1] = rotate(v[1], 17) ^ v[2], v[2] = rotate(v[2], 32);
}

static void absorb(u64 v[4], u64 word) {
  v[3] ^= word;
  mix(v);
  v[0] ^= word;
}

static void begin(u64 v[4]) {
  const u64 k0 = 0x0706050403020100, k1 = 0x0f0e0d0c0b0a0908;
  v[0] = k0 ^ 0x736f6d6570736575;
  v[1] = k1 ^ 0x646f72616e646f6d;
  v[2] = k0 ^ 0x6c7967656e657261;
  v[3] = k1 ^ 0x7465646279746573;
}

static u64 read_word(const u8 *p) {
  u64 word = 0;
  for (int i = 7; i >= 0; i--) word = word << 8 | p[i];
  return word;
}

/* word: the bytes after the last full 8 of n. */
static u64 end(u64 v[4], u64 word, u64 n) {
  absorb(v, word | n << 56);
  v[2] ^= 0xff;
  for (int i = 0; i < 3; i++) mix(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

u64 hash_bytes(const void *at, size_t n) {
  const u8 *p = at;
  size_t left = n;
  u64 v[4], word = 0;
  begin(v);
  for (; left >= 8; left -= 8, p += 8) absorb(v, read_word(p));
  for (size_t i = left; i > 0; i--) word = word << 8 | p[i - 1];
  return end(v, word, n);
}

u64 hash_pieces(const Chunk *piece, u32 n) {
  u64 v[4], word = 0, all = 0;
  begin(v);
  for (u32 k = 0; k < n; k++) {
    const u8 *p = piece[k].at;
    for (size_t i = 0; i < piece[k].n;) {
      if (all % 8 == 0 && piece[k].n - i >= 8) {
        absorb(v, read_word(p + i));
        i += 8;
        all += 8;
        continue;
      }
      word |= (u64)p[i++] << all % 8 * 8;
      if (++all % 8) continue;
      absorb(v, word);
      word = 0;
    }
  }
  return end(v, word, all);
}

static u64 hash_key(const void *at, size_t n) {
  u64 h = hash_bytes(at, n);
  return h ? h : 1;
}

static u64 hash_num(u64 key) {
  u8 b[8];
  for (int i = 0; i < 8; i++) b[i] = (u8)(key >> 8 * i);
  return hash_key(b, 8);
}

Map map_new(Arena *a) {
  return (Map){.a = a};
}

Map map_copy(Arena *a, const Map *m) {
  Map r = *m;
  r.a = a;
  if (m->cap) r.slot = arena_copy(a, m->slot, m->cap * sizeof *m->slot);
  return r;
}

/* The slot of the key, or the free slot for it; NULL if the map has no slots yet. */
static MapSlot *find(const Map *m, u64 hash, u64 num, const void *key, size_t n) {
  if (m->cap == 0) return NULL;
  u32 mask = m->cap - 1;
  for (u32 i = (u32)hash & mask;; i = (i + 1) & mask) {
    MapSlot *s = &m->slot[i];
    if (s->hash == 0) return s;
    if (s->hash != hash) continue;
    if (key ? s->n == n && memcmp(s->key.bytes, key, n) == 0 : s->key.num == num) return s;
  }
}

/* Hostile builds move small maps on every put, so that stale slot pointers are detected. */
static bool crowded(const Map *m) {
#ifdef INGOT_HOSTILE
  if (m->n < 64) return true;
#endif
  return m->n >= m->cap - m->cap / 4;
}

static void reserve(Map *m) {
  if (!crowded(m)) return;
  u32 cap = m->cap;
  if (m->n >= cap - cap / 4) {
    if (cap > UINT32_MAX / 2)
      fail(m->a->c, ERR_system, LOC_NONE, "map of more than %u entries", m->n);
    cap = cap ? cap * 2 : 8;
  }
  MapSlot *to = NEWS(m->a, MapSlot, cap), *from = m->slot;
  for (u32 i = 0; i < m->cap; i++) {
    if (from[i].hash == 0) continue;
    u32 at = (u32)from[i].hash & (cap - 1);
    while (to[at].hash) at = (at + 1) & (cap - 1);
    to[at] = from[i];
  }
#ifdef INGOT_HOSTILE
  if (m->cap) memset(from, 0xa5, m->cap * sizeof *from);
#endif
  m->slot = to;
  m->cap = cap;
}

u32 *map_get(const Map *m, u64 key) {
  MapSlot *s = find(m, hash_num(key), key, NULL, 0);
  return s && s->hash ? &s->value : NULL;
}

u32 *map_put(Map *m, u64 key) {
  u64 hash = hash_num(key);
  MapSlot *s = find(m, hash, key, NULL, 0);
  if (s && s->hash) return &s->value;
  reserve(m);
  s = find(m, hash, key, NULL, 0);
  *s = (MapSlot){.hash = hash, .key.num = key};
  m->n++;
  return &s->value;
}

u32 *map_get_bytes(const Map *m, const void *key, size_t n) {
  if (n == 0) key = "";
  MapSlot *s = find(m, hash_key(key, n), 0, key, n);
  return s && s->hash ? &s->value : NULL;
}

u32 *map_put_bytes(Map *m, const void *key, size_t n) {
  if (n == 0) key = "";
  u64 hash = hash_key(key, n);
  MapSlot *s = find(m, hash, 0, key, n);
  if (s && s->hash) return &s->value;
  const u8 *copy = arena_copy(m->a, key, n);
  reserve(m);
  s = find(m, hash, 0, copy, n);
  *s = (MapSlot){.hash = hash, .key.bytes = copy, .n = n};
  m->n++;
  return &s->value;
}
