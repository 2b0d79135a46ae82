/* place_search.c: places memory intervals below a given height by tree search.
 *
 * In: items, a height, a budget. Out: offsets, or those of the deepest dead end if no plan of that
 * height exists or the budget is used up. Method: depth-first search over canonical plans, in which
 * every item is pushed down as far as possible. Items are placed in order of offset, each at its
 * lowest possible offset. Plans that differ only in the order of equal items are visited once. Time
 * is divided into sections with the same live items.
 *
 * A branch is pruned
 *
 *   - if the unplaced items of a section do not fit above the lowest of their offsets
 *   - if the next offset is so high that another item fits below it
 *   - without trying alternatives to an item that nothing can lie above
 *
 * If no unplaced item crosses a boundary between sections, both sides are searched separately. The
 * method follows MiniMalloc (Moffitt, ASPLOS 2023). The budget counts steps, not seconds, so that
 * results do not depend on the machine.
 */
#include <stdlib.h>
#include "pass/memory/place.h"

typedef struct Saved {
  u32 id; /* lifted item; n + section whose `few` changed; n + nsec + placed item */
  u64 value;
} Saved;

typedef struct PlaceChoice {
  u64 low;
  u32 rank, id;
} PlaceChoice;

/* Unplaced items in consecutive sections. */
typedef struct PlacePart {
  u32 id, n;       /* range in Search.id */
  u32 first, last; /* range of sections */
  u64 level;       /* nothing is placed below this any more */
  u32 rank;        /* at the level itself, only items of this rank or later */
} PlacePart;

typedef struct Search {
  const PlaceItem *item;
  u32 n, nsec;
  u32 *lo, *hi;     /* by item: its sections, inclusive */
  u64 *low;         /* by item: lowest possible offset; once placed, its offset */
  bool *placed;     /* by item */
  u32 *rank;        /* by item: order among equals */
  u32 *member;      /* items of each section, consecutively, unplaced ones first */
  u32 *start;       /* by section: index of its first member; nsec + 1 entries */
  u32 *alive;       /* by section: number of unplaced members */
  u32 *slot;        /* by item and section: index in member */
  u32 *slots;       /* by item: index of its slots, minus its first section */
  u64 *open;        /* by section: bytes of unplaced items */
  u32 *few;         /* by section: number of items that can be the lowest; see on_ground */
  u32 *stamp;       /* by section: last step in which it was examined */
  u32 *begin, *end; /* by section: open items of a part that do; see cut */
  u32 turn;
  VEC(Saved) trail;
  VEC(PlaceChoice) choice; /* three stacks of the recursion */
  VEC(u32) id;
  VEC(PlacePart) part;
  u64 area, deep; /* placed area: now, and at the deepest dead end so far */
  u64 *kept;      /* by item: offset at that dead end, or PLACE_OPEN */
  u32 most;       /* maximum alternatives of a section that is decided at once */
  u64 height;
  u64 work, budget;
  Arena *a;
} Search;

/* ---- placing ---- */

static void save(Search *s, u32 id, u64 *at, u64 value) {
  *vec_push(s->a, &s->trail) = (Saved){id, *at};
  *at = value;
}

static void undo_to(Search *s, u32 mark) {
  while (s->trail.n > mark) {
    Saved x = s->trail.at[--s->trail.n];
    if (x.id < s->n) {
      s->low[x.id] = x.value;
    } else if (x.id < s->n + s->nsec) {
      s->few[x.id - s->n] = (u32)x.value;
    } else {
      u32 id = x.id - s->n - s->nsec;
      s->placed[id] = false;
      s->area -= place_area(&s->item[id]);
      for (u32 sec = s->lo[id]; sec <= s->hi[id]; sec++) {
        s->open[sec] += s->item[id].size;
        s->alive[sec]++; /* it follows the unplaced ones */
      }
    }
  }
}

/* Moves an item of a section after the unplaced ones. */
static void retire(Search *s, u32 sec, u32 id) {
  u32 *at = &s->slot[(u32)(s->slots[id] + sec)], last = s->start[sec] + --s->alive[sec];
  u32 other = s->member[last];
  s->member[*at] = other;
  s->member[last] = id;
  s->slot[(u32)(s->slots[other] + sec)] = *at;
  *at = last;
}

/* Can the item be the lowest of a section, with enough room above it for the others? In any plan
 * one of them is. */
static bool can_be_lowest(const Search *s, u32 sec, u32 id) {
  return s->low[id] + s->open[sec] <= s->height;
}

/* Recounts such items; false: none. */
static bool settle(Search *s, u32 sec) {
  u32 n = 0;
  if (s->stamp[sec] == s->turn) return true;
  s->stamp[sec] = s->turn;
  s->work += s->alive[sec];
  for (u32 k = s->start[sec]; k < s->start[sec] + s->alive[sec]; k++)
    n += can_be_lowest(s, sec, s->member[k]);
  if (n != s->few[sec]) {
    *vec_push(s->a, &s->trail) = (Saved){s->n + sec, s->few[sec]};
    s->few[sec] = n;
  }
  return n > 0 || !s->open[sec];
}

/* Places an item at its lowest offset and lifts conflicting items; false: something no longer
 * fits. */
static bool put(Search *s, u32 id) {
  const PlaceItem *it = &s->item[id];
  u64 top = s->low[id] + it->size;
  bool ok = true;
  s->placed[id] = true;
  s->area += place_area(it);
  *vec_push(s->a, &s->trail) = (Saved){s->n + s->nsec + id, 0};
  u32 from = s->trail.n;
  s->turn++;
  for (u32 sec = s->lo[id]; sec <= s->hi[id]; sec++) {
    s->open[sec] -= it->size;
    s->work += s->alive[sec];
    retire(s, sec, id);
    for (u32 k = s->start[sec]; k < s->start[sec] + s->alive[sec]; k++) {
      u32 other = s->member[k];
      if (s->low[other] >= top) continue;
      save(s, other, &s->low[other], top);
      ok = ok && top + s->item[other].size <= s->height;
    }
  }
  u32 to = s->trail.n;
  for (u32 sec = s->lo[id]; ok && sec <= s->hi[id]; sec++) ok = settle(s, sec);
  for (u32 i = from; ok && i < to; i++) { /* sections of all lifted items */
    u32 other = s->trail.at[i].id;
    for (u32 sec = s->lo[other]; ok && sec <= s->hi[other]; sec++) ok = settle(s, sec);
  }
  return ok;
}

/* Can an unplaced item lie above it? */
static bool has_hat(Search *s, u32 id) {
  for (u32 sec = s->lo[id]; sec <= s->hi[id]; sec++)
    if (s->open[sec]) return true;
  return false;
}

/* ---- the tree ---- */

static int by_low(const void *x, const void *y) {
  const PlaceChoice *a = x, *b = y;
  if (a->low != b->low) return a->low < b->low ? -1 : 1;
  return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Lowest end that an unplaced item can have. */
static u64 lowest_top(Search *s, const PlacePart *p) {
  u64 top = UINT64_MAX;
  s->work += p->n;
  for (u32 i = 0; i < p->n; i++) {
    u32 id = s->id.at[p->id + i];
    if (s->low[id] + s->item[id].size < top) top = s->low[id] + s->item[id].size;
  }
  return top;
}

/* Pushes the unplaced items of a part that may be next, best first. */
static u32 choices(Search *s, const PlacePart *p) {
  u64 most = 0, top = lowest_top(s, p);
  u32 from = s->choice.n;
  for (u32 sec = p->first; sec <= p->last; sec++)
    if (s->open[sec] > most) most = s->open[sec];
  s->work += p->n + (p->last - p->first);
  for (u32 i = 0; i < p->n; i++) {
    u32 id = s->id.at[p->id + i];
    u64 low = s->low[id];
    if (low < p->level || low >= top || low + most > s->height) continue;
    if (low == p->level && s->rank[id] < p->rank) continue;
    *vec_push(s->a, &s->choice) = (PlaceChoice){low, s->rank[id], id};
  }
  u32 n = s->choice.n - from;
  if (n) qsort(s->choice.at + from, n, sizeof *s->choice.at, by_low);
  return n;
}

/* Can an unplaced item that is live together with this one lie below it, ending at or below
 * `reach`? */
static bool has_room_below(Search *s, u32 id, u64 reach) {
  for (u32 sec = s->lo[id]; sec <= s->hi[id]; sec++) {
    s->work += s->alive[sec];
    for (u32 k = s->start[sec]; k < s->start[sec] + s->alive[sec]; k++) {
      u32 other = s->member[k];
      if (other != id && s->low[other] + s->item[other].size <= reach) return true;
    }
  }
  return false;
}

/* Pushes the items one of which is the lowest of a section; 0 if another item may still go below
 * one of them. */
static u32 on_ground(Search *s, u32 sec, u64 top) {
  u32 from = s->choice.n;
  u64 reach = s->height - s->open[sec];
  s->work += s->alive[sec];
  for (u32 k = s->start[sec]; k < s->start[sec] + s->alive[sec]; k++) {
    u32 id = s->member[k];
    if (!can_be_lowest(s, sec, id)) continue;
    *vec_push(s->a, &s->choice) = (PlaceChoice){s->low[id], s->rank[id], id};
    if (reach < top || !has_room_below(s, id, reach)) continue;
    s->choice.n = from;
    return 0;
  }
  u32 n = s->choice.n - from;
  qsort(s->choice.at + from, n, sizeof *s->choice.at, by_low);
  return n;
}

enum { FIT_LOOKS = 64 };

/* Lists the choices of an open section that has at most `most` of them, fewest first. Returns their
 * number; 0: no such section, or none that can be decided yet. */
static u32 forced(Search *s, const PlacePart *p) {
  u32 looks = 0;
  u64 top = lowest_top(s, p);
  for (u32 few = 1; few <= s->most; few++) {
    u64 reached = 0;
    for (;;) {
      u64 best = UINT64_MAX;
      u32 at = 0;
      s->work += (p->last - p->first) / 4;
      for (u32 sec = p->first; sec <= p->last; sec++) {
        if (!s->open[sec] || s->few[sec] != few) continue;
        u64 reach = s->height - s->open[sec];
        if (reach >= reached && reach < best) best = reach, at = sec;
      }
      if (best == UINT64_MAX) break;
      u32 n = on_ground(s, at, top);
      if (n) return n;
      if (++looks == FIT_LOOKS) return 0;
      reached = best + 1;
    }
  }
  return 0;
}

/* Splits the unplaced items of a part where no item crosses, and pushes the pieces. */
static void cut(Search *s, const PlacePart *p, u64 level, u32 rank) {
  for (u32 sec = p->first; sec <= p->last; sec++) s->begin[sec] = s->end[sec] = 0;
  for (u32 i = 0; i < p->n; i++) {
    u32 id = s->id.at[p->id + i];
    if (s->placed[id]) continue;
    s->begin[s->lo[id]]++;
    s->end[s->hi[id]]++;
  }
  s->work += 2 * p->n + (p->last - p->first);
  u32 from = s->part.n, alive = 0;
  for (u32 sec = p->first; sec <= p->last; sec++) {
    if (!alive && s->begin[sec])
      *vec_push(s->a, &s->part) = (PlacePart){0, 0, sec, sec, level, rank};
    alive += s->begin[sec];
    if (alive) s->part.at[s->part.n - 1].last = sec;
    alive -= s->end[sec];
  }
  for (u32 k = from; k < s->part.n; k++) {
    PlacePart *q = &s->part.at[k];
    q->id = s->id.n;
    for (u32 i = 0; i < p->n; i++) {
      u32 id = s->id.at[p->id + i];
      if (s->placed[id] || s->lo[id] < q->first || s->lo[id] > q->last) continue;
      *vec_push(s->a, &s->id) = id;
      q->n++;
    }
  }
}

/* Saves the plan if no earlier one placed more. */
static void dead_end(Search *s) {
  if (s->area <= s->deep) return;
  s->deep = s->area;
  s->work += s->n / 4;
  for (u32 i = 0; i < s->n; i++) s->kept[i] = s->placed[i] ? s->low[i] : PLACE_OPEN;
}

static bool solve(Search *s, PlacePart p) {
  if (s->work > s->budget) return false;
  u32 from = s->choice.n, ids = s->id.n, parts = s->part.n;
  u32 n = forced(s, &p);
  bool done = false, hat = true, must = n > 0;
  if (!must) n = choices(s, &p);
  if (!n) dead_end(s);
  for (u32 i = 0; i < n && hat && !done && s->work <= s->budget; i++) {
    PlaceChoice c = s->choice.at[from + i];
    u32 trail = s->trail.n;
    bool fits = put(s, c.id);
    hat = !fits || has_hat(s, c.id);
    if (fits) {
      if (must)
        cut(s, &p, p.level, p.rank);
      else
        cut(s, &p, c.low, c.rank + 1);
      u32 end = s->part.n;
      done = true;
      for (u32 k = parts; done && k < end; k++) done = solve(s, s->part.at[k]);
    }
    s->id.n = ids;
    s->part.n = parts;
    if (!done && !fits) dead_end(s);
    if (!done) undo_to(s, trail);
  }
  s->choice.n = from;
  return done;
}

/* ---- preparation ---- */

static int by_number(const void *x, const void *y) {
  u32 a = *(const u32 *)x, b = *(const u32 *)y;
  return a < b ? -1 : a > b;
}

static u32 section_of(const u32 *at, u32 n, u32 point) {
  u32 lo = 0, hi = n; /* at[lo] <= point < at[hi] */
  while (hi - lo > 1) {
    u32 mid = lo + (hi - lo) / 2;
    if (at[mid] <= point)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}

/* A section starts wherever an item begins. */
static void add_sections(Search *s) {
  u32 *at = NEWS(s->a, u32, s->n);
  for (u32 i = 0; i < s->n; i++) at[i] = s->item[i].first;
  qsort(at, s->n, sizeof *at, by_number);
  for (u32 i = 0; i < s->n; i++)
    if (s->nsec == 0 || at[s->nsec - 1] != at[i]) at[s->nsec++] = at[i];
  s->lo = NEWS(s->a, u32, s->n);
  s->hi = NEWS(s->a, u32, s->n);
  s->start = NEWS(s->a, u32, s->nsec + 2);
  s->open = NEWS(s->a, u64, s->nsec);
  s->few = NEWS(s->a, u32, s->nsec);
  s->stamp = NEWS(s->a, u32, s->nsec);
  s->begin = NEWS(s->a, u32, s->nsec);
  s->end = NEWS(s->a, u32, s->nsec);
  for (u32 i = 0; i < s->n; i++) {
    s->lo[i] = section_of(at, s->nsec, s->item[i].first);
    s->hi[i] = section_of(at, s->nsec, s->item[i].last);
    for (u32 k = s->lo[i]; k <= s->hi[i]; k++) s->start[k + 1]++;
  }
  for (u32 k = 0; k < s->nsec; k++) s->start[k + 1] += s->start[k];
  u32 *next = arena_copy(s->a, s->start, s->nsec * sizeof *next);
  s->member = NEWS(s->a, u32, s->start[s->nsec]);
  s->slot = NEWS(s->a, u32, s->start[s->nsec]);
  s->slots = NEWS(s->a, u32, s->n);
  s->alive = NEWS(s->a, u32, s->nsec);
  u32 slot = 0;
  for (u32 i = 0; i < s->n; i++) {
    s->slots[i] = slot - s->lo[i]; /* may wrap; adding a section wraps back */
    for (u32 k = s->lo[i]; k <= s->hi[i]; k++) {
      s->slot[slot++] = next[k];
      s->member[next[k]++] = i;
      s->alive[k]++;
    }
  }
}

bool place_below(PlaceItem *item, u32 n, const u32 *rank, u32 most, u64 height, u64 *budget,
                 Arena *a) {
  Mark mark = arena_mark(a);
  Search s = {.item = item, .n = n, .most = most, .height = height, .budget = *budget, .a = a};
  if (n == 0) return true;
  add_sections(&s);
  s.low = NEWS(a, u64, n);
  s.placed = NEWS(a, bool, n);
  s.kept = NEWS(a, u64, n);
  s.rank = arena_copy(a, rank, n * sizeof *rank);
  bool ok = true;
  for (u32 i = 0; i < n; i++) {
    *vec_push(a, &s.id) = i;
    for (u32 k = s.lo[i]; k <= s.hi[i]; k++) s.open[k] += item[i].size;
  }
  s.turn = 1;
  for (u32 k = 0; k < s.nsec; k++) ok = ok && s.open[k] <= height && settle(&s, k);
  if (ok) {
    cut(&s, &(PlacePart){0, n, 0, s.nsec - 1, 0, 0}, 0, 0);
    u32 parts = s.part.n;
    for (u32 k = 0; ok && k < parts; k++) ok = solve(&s, s.part.at[k]);
  }
  for (u32 i = 0; i < n; i++) item[i].offset = ok ? s.low[i] : s.deep ? s.kept[i] : PLACE_OPEN;
  *budget = s.work < s.budget ? s.budget - s.work : 0;
  arena_rewind(a, mark);
  return ok;
}
