/* Placing memory: plans are sound and never below the bound, the search finds the best plan of
 * small cases, hard cases come near the bound, the same case always gets the same plan, and many
 * items are placed in little time.
 */
#include "../../bench/plan_cases.h"
#include "check.h"
#include <string.h>
#include <time.h>

static u64 state = 1;

static u32 below(u32 n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (u32)(state >> 33) % n;
}

static bool meet(const PlaceItem *x, const PlaceItem *y) {
  return x->first <= y->last && y->first <= x->last;
}

static bool sound(const PlaceItem *it, u32 n, u64 height) {
  for (u32 i = 0; i < n; i++) {
    if (it[i].first > it[i].last || !it[i].size) continue;
    if (it[i].offset + it[i].size > height) return false;
    for (u32 k = 0; k < i; k++)
      if (it[k].size && it[k].first <= it[k].last && meet(&it[i], &it[k]) &&
          it[i].offset < it[k].offset + it[k].size && it[k].offset < it[i].offset + it[i].size)
        return false;
  }
  return true;
}

/* The lowest height, by placing items in every order, each as low as those before it allow from
 * above. */
static u64 best(PlaceItem *it, u32 n, u32 placed, u64 height, u64 limit) {
  if (height >= limit) return limit;
  if (placed == (1u << n) - 1) return height;
  for (u32 i = 0; i < n; i++) {
    if (placed >> i & 1) continue;
    it[i].offset = 0;
    for (u32 k = 0; k < n; k++)
      if (placed >> k & 1 && meet(&it[i], &it[k]) && it[k].offset + it[k].size > it[i].offset)
        it[i].offset = it[k].offset + it[k].size;
    u64 top = it[i].offset + it[i].size;
    limit = best(it, n, placed | 1u << i, top > height ? top : height, limit);
  }
  return limit;
}

static void small(Arena *a) {
  u32 searched = 0;
  for (u32 turn = 0; turn < 400; turn++) {
    PlaceItem it[8], copy[8];
    u32 n = 2 + below(6);
    for (u32 i = 0; i < n; i++) {
      it[i] = (PlaceItem){64 * (1 + below(9)), below(8), 0, 0};
      it[i].last = it[i].first + below(5);
    }
    memcpy(copy, it, sizeof it);
    PlaceResult greedy = place_items(it, n, 0, a), r = place_items(it, n, PLACE_BUDGET, a);
    CHECK(sound(it, n, r.height));
    CHECK(r.height >= r.bound && r.height <= greedy.height);
    CHECK(r.height == best(copy, n, 0, 0, UINT64_MAX));
    searched += r.height < greedy.height;
  }
  CHECK(searched > 0);
}

static void odd(Arena *a) {
  PlaceItem it[4] = {{128, 0, 3, 7}, {64, 5, 4, 7}, {0, 0, 9, 7}, {64, 4, 6, 7}};
  PlaceResult r = place_items(it, 4, PLACE_BUDGET, a);
  CHECK(r.height == 128 && r.bound == 128);
  CHECK(it[0].offset == 0 && it[1].offset == 0 && it[2].offset == 0 && it[3].offset == 0);
  r = place_items(NULL, 0, PLACE_BUDGET, a);
  CHECK(r.height == 0 && r.bound == 0);
}

static void hard(Arena *a) {
  for (u64 seed = 1; seed <= 3; seed++) {
    PlaceItem it[160], again[160];
    u32 n = case_make(it, 150, 0, seed, a);
    memcpy(again, it, sizeof it);
    PlaceResult r = place_items(it, n, PLACE_BUDGET / 8, a);
    CHECK(r.bound == (u64)CASE_SIDE * CASE_UNIT);
    CHECK(sound(it, n, r.height));
    CHECK(r.height <= r.bound + r.bound / 10);
    place_items(again, n, PLACE_BUDGET / 8, a);
    CHECK(!memcmp(it, again, n * sizeof *it));
  }
}

/* Where the search does not come to an end, the plan is what it had placed with the rest on top:
 * sound, and much better than the greedy one. */
static void unfinished(Arena *a) {
  PlaceItem it[460];
  u32 n = case_make(it, 450, 5, 1, a);
  PlaceResult greedy = place_items(it, n, 0, a);
  CHECK(sound(it, n, greedy.height) && greedy.height >= greedy.bound);
  PlaceResult r = place_items(it, n, PLACE_BUDGET / 16, a);
  CHECK(sound(it, n, r.height) && r.height >= r.bound);
  CHECK(r.height - r.bound < (greedy.height - greedy.bound) / 3 * 2);
}

/* Many items that are all needed at the end: the time grows with their number, not with its
 * square. */
static void many(Arena *a) {
  enum { MANY = 200000 };
  PlaceItem *it = NEWS(a, PlaceItem, MANY);
  for (u32 i = 0; i < MANY; i++) it[i] = (PlaceItem){64 * (1 + below(3)), i, MANY, 0};
  clock_t start = clock();
  PlaceResult r = place_items(it, MANY, 0, a);
  CHECK(clock() - start < 10 * CLOCKS_PER_SEC);
  CHECK(r.height == r.bound);
  CHECK(sound(it, 2000, r.height));
}

static void all(Ctx *c, void *arg) {
  (void)arg;
  small(&c->work);
  odd(&c->work);
  hard(&c->work);
  unfinished(&c->work);
  many(&c->work);
}

int main(void) {
  Ctx *c = ctx_new(NULL, NULL);
  CHECK(c && ctx_protect(c, all, NULL) == ERR_ok);
  ctx_free(c);
  return check_end();
}
