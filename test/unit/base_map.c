/* The hash map with 100,000 keys of each kind, and the hash function's fixed values. */
#include "hooks.h"

enum { N = 100000 };

static void numbers(Ctx *c) {
  Map m = map_new(&c->work);
  CHECK(map_get(&m, 0) == NULL);
  for (u64 i = 0; i < N; i++) {
    u64 key = i * 0x100000001 ^ (i & 1 ? UINT64_MAX : 0);
    u32 *v = map_put(&m, key);
    CHECK(*v == 0);
    *v = (u32)i + 1;
  }
  CHECK(m.n == N);
  for (u64 i = 0; i < N; i++) {
    u64 key = i * 0x100000001 ^ (i & 1 ? UINT64_MAX : 0);
    u32 *v = map_get(&m, key);
    CHECK(v && *v == (u32)i + 1 && map_put(&m, key) == v);
    CHECK(map_get(&m, key ^ 0x5000000000000000) == NULL);
  }
  CHECK(m.n == N);
}

static size_t name(char *to, u32 i) {
  size_t n = (size_t)sprintf(to, "/layer.%u/weight", i % 1000);
  memcpy(to + n, &i, sizeof i); /* any bytes, NUL among them */
  return n + sizeof i;
}

static void strings(Ctx *c) {
  Map m = map_new(&c->work);
  char key[64];
  CHECK(map_get_bytes(&m, "", 0) == NULL);
  *map_put_bytes(&m, NULL, 0) = 77;
  for (u32 i = 0; i < N; i++) {
    u32 *v = map_put_bytes(&m, key, name(key, i));
    CHECK(*v == 0);
    *v = i + 1;
  }
  CHECK(m.n == N + 1 && *map_get_bytes(&m, "", 0) == 77);
  for (u32 i = 0; i < N; i++) {
    size_t n = name(key, i);
    u32 *v = map_get_bytes(&m, key, n);
    CHECK(v && *v == i + 1);
    CHECK(map_get_bytes(&m, key, n - 1) == NULL);
  }
}

/* SipHash-1-3 under the key and inputs of its published tests. */
static void hashes(void) {
  u8 in[64];
  u64 sum = 0;
  for (int i = 0; i < 64; i++) in[i] = (u8)i;
  for (size_t n = 0; n <= 64; n++) sum = sum * 31 + hash_bytes(in, n);
  CHECK(hash_bytes(in, 0) == 0xabac0158050fc4dc);
  CHECK(hash_bytes(in, 8) == 0x369095118d299a8e);
  CHECK(sum == 0xa0b7a25b531a5624);
  for (size_t i = 0; i <= 64; i++)
    for (size_t k = i; k <= 64; k += 3) {
      Chunk part[3] = {{.at = in, .n = i}, {.at = in + i, .n = k - i}, {.at = in + k, .n = 64 - k}};
      CHECK(hash_pieces(part, 3) == hash_bytes(in, 64));
      CHECK(hash_pieces(part, 2) == hash_bytes(in, k));
    }
}

static void all(Ctx *c, void *arg) {
  (void)arg;
  numbers(c);
  strings(c);
}

int main(void) {
  TestAlloc t = {0};
  Alloc a = test_alloc(&t);
  Ctx *c = ctx_new(&a, NULL);
  if (!CHECK(c)) return check_end();
  CHECK(ctx_protect(c, all, NULL) == ERR_ok);
  hashes();
  ctx_free(c);
  CHECK(t.blocks == 0);
  return check_end();
}
