/* fit.c: places intervals of memory so that those alive at the same time do not overlap, in little space.
 *
 * In: items with a size and the points between which they are needed. Out: an offset each.
 * Method: several greedy orders; an item goes to the lowest gap, or the tightest one, between the items it
 * conflicts with that have been placed before. The best result wins, the first of equals. It ends as soon as
 * the height equals the most bytes that are alive at one point.
 */
#include <stdlib.h>
#include <string.h>
#include "pass/live.h"

typedef enum FitOrder { FO_size, FO_area, FO_length, FO_first, FO_COUNT } FitOrder;

typedef struct Fit {
  FitItem *item;
  u32 n;
  u64 bound;
} Fit;

typedef struct Key {
  u64 key; /* descending */
  u64 then;
  u32 id;
} Key;

static int by_key(const void *x, const void *y) {
  const Key *a = x, *b = y;
  if (a->key != b->key) return a->key > b->key ? -1 : 1;
  if (a->then != b->then) return a->then > b->then ? -1 : 1;
  return a->id < b->id ? -1 : a->id > b->id;
}

static bool used(const FitItem *it) {
  return it->size && it->first <= it->last;
}

static bool meet(const FitItem *x, const FitItem *y) {
  return x->first <= y->last && y->first <= x->last;
}

/* ---- the lower bound ---- */

typedef struct Event {
  u32 at;
  bool start;
  u64 size;
} Event;

static int by_time(const void *x, const void *y) {
  const Event *a = x, *b = y;
  if (a->at != b->at) return a->at < b->at ? -1 : 1;
  return (int)a->start - (int)b->start; /* ends lie at last + 1 and come first */
}

static u64 find_bound(const FitItem *item, u32 n, Arena *a) {
  Event *e = NEWS(a, Event, 2 * (size_t)n);
  u32 m = 0;
  for (u32 i = 0; i < n; i++) {
    if (!used(&item[i])) continue;
    e[m++] = (Event){item[i].first, true, item[i].size};
    e[m++] = (Event){item[i].last + 1, false, item[i].size};
  }
  if (m) qsort(e, m, sizeof *e, by_time);
  u64 live = 0, most = 0;
  for (u32 i = 0; i < m; i++) {
    live = e[i].start ? live + e[i].size : live - e[i].size;
    if (live > most) most = live;
  }
  return most;
}

/* ---- greedy ---- */

static int by_offset(const void *x, const void *y) {
  const FitItem *a = *(FitItem *const *)x, *b = *(FitItem *const *)y;
  if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
  return a < b ? -1 : a > b;
}

/* Places items in the given order; `near` has room for n. */
static u64 place(FitItem *item, const Key *order, u32 n, bool tight, FitItem **near) {
  u64 height = 0;
  for (u32 i = 0; i < n; i++) {
    FitItem *it = &item[order[i].id];
    u32 m = 0;
    for (u32 k = 0; k < i; k++)
      if (meet(it, &item[order[k].id])) near[m++] = &item[order[k].id];
    if (m) qsort(near, m, sizeof *near, by_offset);
    u64 at = 0, best = UINT64_MAX, slack = UINT64_MAX;
    for (u32 k = 0; k < m; k++) {
      if (near[k]->offset >= at + it->size && near[k]->offset - at - it->size < slack) {
        best = at;
        slack = near[k]->offset - at - it->size;
        if (!tight) break;
      }
      if (near[k]->offset + near[k]->size > at) at = near[k]->offset + near[k]->size;
    }
    it->offset = best == UINT64_MAX ? at : best;
    if (it->offset + it->size > height) height = it->offset + it->size;
  }
  return height;
}

static u32 sort_items(const FitItem *item, u32 n, FitOrder how, Key *out) {
  u32 m = 0;
  for (u32 i = 0; i < n; i++) {
    const FitItem *it = &item[i];
    if (!used(it)) continue;
    u64 length = (u64)it->last - it->first + 1;
    u64 area = it->size > UINT64_MAX / length ? UINT64_MAX : it->size * length;
    Key k = {it->size, length, i};
    if (how == FO_area) k = (Key){area, it->size, i};
    if (how == FO_length) k = (Key){length, it->size, i};
    if (how == FO_first) k = (Key){UINT32_MAX - it->first, it->size, i};
    out[m++] = k;
  }
  if (m) qsort(out, m, sizeof *out, by_key);
  return m;
}

FitResult fit(FitItem *item, u32 n, u64 budget, Arena *a) {
  (void)budget;
  FitResult r = {UINT64_MAX, find_bound(item, n, a), 0};
  Key *order = NEWS(a, Key, n);
  FitItem **near = NEWS(a, FitItem *, n);
  u64 *best = NEWS(a, u64, n);
  for (u32 i = 0; i < n; i++) item[i].offset = 0;
  for (u32 try = 0; try < 2 * FO_COUNT && r.height > r.bound; try++) {
    u32 m = sort_items(item, n, (FitOrder)(try / 2), order);
    u64 height = place(item, order, m, try % 2, near);
    if (height >= r.height) continue;
    r.height = height;
    for (u32 i = 0; i < n; i++) best[i] = item[i].offset;
  }
  for (u32 i = 0; i < n; i++) item[i].offset = best[i];
  return r;
}
