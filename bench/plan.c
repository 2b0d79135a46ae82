/* plan.c: how near memory plans come to the lower bound on hard cases, and how long that takes.
 *
 *   plan [SEEDS]      one line a case; exit status 1 if one is worse than 10 % or slower than 5 s
 *
 * Cases with holes have room to spare in most places; they are only shown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "plan_cases.h"

typedef struct Bench {
  u32 seeds;
  bool bad;
} Bench;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void one(Ctx *c, Bench *b, u32 n, u32 holes, u64 seed) {
  PlaceItem *item = NEWS(&c->work, PlaceItem, n + 4);
  n = case_make(item, n, holes, seed, &c->work);
  PlaceResult greedy = place_items(item, n, 0, &c->work);
  double start = now();
  PlaceResult r = place_items(item, n, PLACE_BUDGET, &c->work);
  double secs = now() - start, ratio = (double)r.height / (double)r.bound;
  for (u32 i = 0; i < n; i++)
    for (u32 k = 0; k < i; k++)
      if (item[i].first <= item[k].last && item[k].first <= item[i].last &&
          item[i].offset < item[k].offset + item[k].size &&
          item[k].offset < item[i].offset + item[i].size) {
        printf("items %u and %u overlap\n", i, k);
        b->bad = true;
      }
  if ((!holes && ratio > 1.10) || secs > 5) b->bad = true;
  printf(
      "%4u buffers, %u %% holes, seed %2llu: greedy %.3f, plan %.3f of the lower bound, %.2f s\n",
      n, holes, (unsigned long long)seed, (double)greedy.height / (double)greedy.bound, ratio,
      secs);
  fflush(stdout);
  arena_clear(&c->work);
}

static void all(Ctx *c, void *arg) {
  Bench *b = arg;
  static const u32 count[] = {150, 200, 250, 300, 350, 400, 450};
  for (u32 i = 0; i < sizeof count / sizeof *count; i++)
    for (u32 seed = 1; seed <= b->seeds; seed++) one(c, b, count[i], 0, seed);
  for (u32 i = 0; i < sizeof count / sizeof *count; i++) one(c, b, count[i], 5, 1);
}

int main(int argc, char **argv) {
  Bench b = {.seeds = argc > 1 ? (u32)atoi(argv[1]) : 30};
  Ctx *c = ctx_new(NULL, NULL);
  if (!c || ctx_protect(c, all, &b) != ERR_ok) return 2;
  ctx_free(c);
  return b.bad;
}
