/* Arenas, marks, growable arrays, checked sizes. */
#include "hooks.h"
#include <stdint.h>

typedef struct Item {
  u8 b[24];
} Item;

static bool is_zero(const void *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (((const u8 *)p)[i]) return false;
  return true;
}

static void sizes_zero_and_aligned(Ctx *c) {
  static const size_t some[] = {0,    1,    15,    16,     17,     100,     4000,   4096,
                                5000, 9999, 65536, 262144, 262145, 1 << 20, 3 << 20};
  for (int round = 0; round < 3; round++) {
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
      u8 *p = arena_alloc(&c->work, some[i]);
      CHECK((uintptr_t)p % 16 == 0);
      CHECK(is_zero(p, some[i]));
      if (some[i]) memset(p, 0xee, some[i]);
    }
    if (round == 1) arena_clear(&c->work);
  }
  arena_clear(&c->work);
  CHECK(c->work.used == 0);
}

/* What was there before the mark stays; what came after is gone and comes back zeroed. */
static void marks(Ctx *c, TestAlloc *t) {
  Arena *a = &c->scratch;
  for (size_t lead = 0; lead < 5000; lead += 357) {
    arena_clear(a);
    u8 *before = lead ? memset(arena_alloc(a, lead), 0x5a, lead) : NULL;
    long blocks = t->blocks;
    Mark m = arena_mark(a);
    for (int round = 0; round < 50; round++) {
      Mark inner = m;
      for (size_t n = 1; n < 2000000; n = n * 3 + 1) {
        if (n > 1000 && inner.used == m.used) inner = arena_mark(a);
        u8 *p = arena_alloc(a, n);
        CHECK(is_zero(p, n < 64 ? n : 64) && p[n - 1] == 0);
        memset(p, 0xa5, n);
      }
      arena_rewind(a, inner);
      CHECK(a->used == inner.used);
      arena_rewind(a, m);
      CHECK(a->used == m.used);
      CHECK(t->blocks == blocks);
    }
    for (size_t i = 0; i < lead; i++) CHECK(before[i] == 0x5a);
  }
}

static void copies_and_arrays(Ctx *c) {
  char *s = arena_copy(&c->work, "hello", 6);
  CHECK(strcmp(s, "hello") == 0);
  CHECK(arena_copy(&c->work, NULL, 0) != NULL);
  u64 *w = NEWS(&c->work, u64, 1000);
  CHECK(is_zero(w, 8000));
  VEC(Item) v = {0};
  VEC(u32) big = {0};
  for (u32 i = 0; i < 3000; i++) {
    Item *it = vec_push(&c->work, &v);
    CHECK(is_zero(it, sizeof *it));
    memset(it, (int)(i & 255), sizeof *it);
    *vec_push(&c->work, &big) = i;
  }
  for (u32 i = 0; i < 3000; i++) CHECK(v.at[i].b[23] == (i & 255) && big.at[i] == i);
  v.n -= 10;
  CHECK(is_zero(vec_push(&c->work, &v), sizeof(Item)));
  for (u32 i = 3000; i < 100000; i++) *vec_push(&c->work, &big) = i;
  CHECK(big.n == 100000 && big.cap >= big.n && big.at[99999] == 99999 && big.at[5] == 5);
}

/* Large requests that grow keep their bytes and their place among others. */
static void extends(Ctx *c, TestAlloc *t) {
  Arena *a = &c->scratch;
  arena_clear(a);
  long blocks = t->blocks;
  u8 *p[3];
  for (u32 i = 0; i < 3; i++) p[i] = memset(arena_alloc(a, 300000), (int)i + 1, 300000);
  Mark m = arena_mark(a);
  u8 *small = memset(arena_alloc(a, 100), 9, 100), *late = arena_alloc(a, 400000);
  for (u32 i = 3; i-- > 0;) p[i] = arena_extend(a, p[i], 300000, 5000000);
  late = arena_extend(a, late, 400000, 800000);
  small = arena_extend(a, small, 100, 200);
  for (u32 i = 0; i < 3; i++) CHECK(p[i][0] == i + 1 && p[i][299999] == i + 1);
  CHECK(small[99] == 9 && late[0] == 0);
  arena_rewind(a, m);
  memset(p[2], 7, 5000000);
  for (u32 i = 0; i < 2; i++) CHECK(p[i][0] == i + 1 && p[i][299999] == i + 1);
  arena_clear(a);
  CHECK(t->blocks == blocks);
}

/* Of a long array only one copy is there, and where it lies among others does not matter. */
static void one_copy(Ctx *c, TestAlloc *t) {
  Arena *a = &c->scratch;
  arena_clear(a);
  size_t bytes = t->bytes;
  VEC(u32) v[2] = {{0}, {0}};
  for (u32 i = 0; i < 1000000; i++) {
    *vec_push(a, &v[0]) = i;
    *vec_push(a, &v[1]) = ~i;
  }
  CHECK(t->bytes - bytes < (v[0].cap + (size_t)v[1].cap) * sizeof *v->at + (4 << 20));
  for (u32 i = 0; i < 1000000; i++) CHECK(v[0].at[i] == i && v[1].at[i] == ~i);
  arena_clear(a);
  CHECK(t->bytes == bytes);
}

static void too_large(Ctx *c, void *arg) {
  switch (*(int *)arg) {
  case 0: arena_alloc(&c->work, SIZE_MAX); break;
  case 1: arena_alloc(&c->work, SIZE_MAX - 100); break;
  case 2: arena_array(&c->work, SIZE_MAX / 8 + 2, 8); break;
  case 3: arena_array(&c->work, SIZE_MAX / 2, 3); break;
  default: {
    u32 n = UINT32_MAX, cap = UINT32_MAX;
    void *at = NULL;
    vec_grow(&c->work, &at, &n, &cap, 1);
  }
  }
}

static void sizes(void) {
  u64 r = 7;
  CHECK(size_mul(1u << 31, 1u << 31, &r) && r == (u64)1 << 62);
  CHECK(!size_mul((u64)1 << 32, (u64)1 << 32, &r) && r == (u64)1 << 62);
  CHECK(size_mul(0, UINT64_MAX, &r) && r == 0);
  CHECK(size_add(UINT64_MAX, 0, &r) && r == UINT64_MAX);
  CHECK(!size_add(UINT64_MAX, 1, &r));
  CHECK(size_align(0, 64, &r) && r == 0);
  CHECK(size_align(1, 64, &r) && r == 64);
  CHECK(size_align(64, 64, &r) && r == 64);
  CHECK(size_align(65, 1, &r) && r == 65);
  CHECK(size_align(UINT64_MAX - 63, 64, &r) && r == UINT64_MAX - 63);
  CHECK(!size_align(UINT64_MAX - 62, 64, &r));
  CHECK(!size_align(5, 0, &r) && !size_align(5, 3, &r));
}

static void all(Ctx *c, void *arg) {
  sizes_zero_and_aligned(c);
  marks(c, arg);
  copies_and_arrays(c);
  extends(c, arg);
  one_copy(c, arg);
}

int main(void) {
  TestAlloc t = {0};
  Alloc a = test_alloc(&t);
  Ctx *c = ctx_new(&a, NULL);
  if (!CHECK(c)) return check_end();
  CHECK(ctx_protect(c, all, &t) == ERR_ok);
  for (int i = 0; i < 5; i++) {
    CHECK(ctx_protect(c, too_large, &i) == ERR_system);
    CHECK(c->nerrors == (u32)i + 1);
  }
  sizes();
  ctx_free(c);
  ctx_free(NULL);
  CHECK(t.blocks == 0 && t.bytes == 0);
  return check_end();
}
