/* plan_cases.h: memory plans that are hard to find and known to exist.
 *
 * A square of time and memory is cut into rectangles, straight through or as a pinwheel, until
 * there are as many as wanted. Every point of time is full, so the most that is alive is the height
 * of the square, and the cuts show that this height is enough; greedy placement misses it by 20 to
 * 40 %.
 */
#ifndef PLAN_CASES_H
#define PLAN_CASES_H

#include "pass/memory/place.h"

enum { CASE_SIDE = 1024, CASE_UNIT = 1024 };

typedef struct CaseRect {
  u32 x, w, y, h;
} CaseRect;

static u64 case_next(u64 *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  u64 x = *seed ^ *seed >> 29;
  return x * 0x9e3779b97f4a7c15u >> 33;
}

static u32 case_pick(u64 *seed, u32 lo, u32 hi) { /* lo .. hi */
  return lo + (u32)(case_next(seed) % (hi - lo + 1));
}

/* Cuts rectangle i into two or five; returns how many there are now. */
static u32 case_cut(CaseRect *r, u32 n, u32 i, u64 *seed) {
  CaseRect a = r[i];
  if (case_next(seed) % 4 == 0 && a.w >= 3 && a.h >= 3) {
    u32 x1 = case_pick(seed, 1, a.w - 2), x2 = case_pick(seed, x1 + 1, a.w - 1);
    u32 y1 = case_pick(seed, 1, a.h - 2), y2 = case_pick(seed, y1 + 1, a.h - 1);
    r[i] = (CaseRect){a.x, x2, a.y, y1};
    r[n] = (CaseRect){a.x + x2, a.w - x2, a.y, y2};
    r[n + 1] = (CaseRect){a.x + x1, a.w - x1, a.y + y2, a.h - y2};
    r[n + 2] = (CaseRect){a.x, x1, a.y + y1, a.h - y1};
    r[n + 3] = (CaseRect){a.x + x1, x2 - x1, a.y + y1, y2 - y1};
    return n + 4;
  }
  bool time = case_next(seed) % 2 ? a.w >= 2 : a.h < 2;
  if (time) {
    u32 w = case_pick(seed, 1, a.w - 1);
    r[i].w = w;
    r[n] = (CaseRect){a.x + w, a.w - w, a.y, a.h};
  } else {
    u32 h = case_pick(seed, 1, a.h - 1);
    r[i].h = h;
    r[n] = (CaseRect){a.x, a.w, a.y + h, a.h - h};
  }
  return n + 1;
}

/* Room for n + 4; returns the number of items. The height is CASE_SIDE * CASE_UNIT. Of a hundred
 * rectangles, `holes` are left out, so that there is some room to spare. */
static u32 case_make(PlaceItem *item, u32 n, u32 holes, u64 seed, Arena *a) {
  CaseRect *r = NEWS(a, CaseRect, n + 4);
  u32 m = 1;
  r[0] = (CaseRect){0, CASE_SIDE, 0, CASE_SIDE};
  while (m < n) {
    u32 best = 0; /* of three, the largest */
    u64 area = 0;
    for (u32 k = 0; k < 3; k++) {
      u32 i = case_pick(&seed, 0, m - 1);
      if ((u64)r[i].w * r[i].h > area) best = i;
      if ((u64)r[i].w * r[i].h > area) area = (u64)r[i].w * r[i].h;
    }
    if (area > 1) m = case_cut(r, m, best, &seed);
  }
  for (u32 i = m; i-- > 1;) { /* their order says nothing about the cuts */
    u32 k = case_pick(&seed, 0, i);
    CaseRect x = r[i];
    r[i] = r[k];
    r[k] = x;
  }
  m -= m * holes / 100;
  for (u32 i = 0; i < m; i++)
    item[i] = (PlaceItem){(u64)r[i].h * CASE_UNIT, r[i].x, r[i].x + r[i].w - 1, 0};
  return m;
}

#endif
