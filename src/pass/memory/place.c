/* place.c: assigns offsets to memory intervals so that items alive at the same time do not overlap,
 * in little space.
 *
 * In: items with a size and the points between which they are live. Out: an offset each. Method:
 * greedy placement in several orders; an item goes to the lowest gap, or the tightest one, between
 * conflicting items placed before. The best result wins, the first of equals. Stops when the height
 * equals the peak of live bytes, which is a lower bound. Otherwise place_search.c tries to improve
 * it.
 */
#include <stdlib.h>
#include <string.h>
#include "ir/ir.h"
#include "pass/memory/place.h"

typedef enum PlaceOrder { FO_size, FO_area, FO_length, FO_first, FO_COUNT } PlaceOrder;

/* Index of placed items, to find those that conflict with another: a tree over all items in order
 * of their first point. Its nodes store the last point and the highest end below them. If most
 * items conflict, a scan in order of offsets is faster.
 *
 * Floor: at the point where an item begins, memory may be full from 0 up to some height. An item
 * lies above the floors of all its points, so items below them are not examined. Of many items that
 * are live together, only the top of the stack counts. */
typedef struct PlacerCtx {
  u32 n, leaves; /* number of items; a power of two */
  u32 *begin;    /* by leaf: first point */
  u32 *id;       /* by leaf: item */
  u32 *leaf;     /* by item */
  u32 *end;      /* by node (root 1, leaves from `leaves` on): 1 + last point; 0: none */
  u64 *top;      /* by node: highest end of a placed item */
  u64 *floor; /* by node: maximum of its items. If it exceeds both children, all items of the node
                 were raised, but the children not yet */
  PlaceItem **found, **sorted;
  u32 nsorted;
} PlacerCtx;

typedef struct BestPlan {
  PlaceItem *item; /* best plan so far */
  PlaceItem *tried;
  u32 n;
  u64 rest;    /* smallest area that a search left unplaced; 0: none has failed yet */
  u64 descent; /* steps of a search without backtracking */
  PlacerCtx placer;
  PlaceResult r;
} BestPlan;

enum { FIT_MANY = 2000 }; /* maximum items that are searched */

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

static bool used(const PlaceItem *it) {
  return it->size && it->first <= it->last;
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
  return (int)a->start - (int)b->start; /* ends are at last + 1 and come first */
}

static u64 find_bound(const PlaceItem *item, u32 n, Arena *a) {
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
  const PlaceItem *a = *(PlaceItem *const *)x, *b = *(PlaceItem *const *)y;
  if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
  return a < b ? -1 : a > b;
}

static PlacerCtx placer_new(const PlaceItem *item, u32 n, Arena *a) {
  PlacerCtx w = {.n = n, .leaves = 1};
  while (w.leaves < n) w.leaves *= 2;
  w.begin = NEWS(a, u32, n);
  w.id = NEWS(a, u32, n);
  w.leaf = NEWS(a, u32, n);
  w.end = NEWS(a, u32, 2 * (size_t)w.leaves);
  w.top = NEWS(a, u64, 2 * (size_t)w.leaves);
  w.floor = NEWS(a, u64, 2 * (size_t)w.leaves);
  w.found = NEWS(a, PlaceItem *, n);
  w.sorted = NEWS(a, PlaceItem *, n);
  Key *order = NEWS(a, Key, n);
  for (u32 i = 0; i < n; i++) order[i] = (Key){UINT32_MAX - item[i].first, 0, i};
  if (n) qsort(order, n, sizeof *order, by_key);
  for (u32 i = 0; i < n; i++) {
    w.id[i] = order[i].id;
    w.leaf[order[i].id] = i;
    w.begin[i] = item[order[i].id].first;
  }
  return w;
}

static void placer_clear(PlacerCtx *w) {
  memset(w->end, 0, 2 * (size_t)w->leaves * sizeof *w->end);
  memset(w->top, 0, 2 * (size_t)w->leaves * sizeof *w->top);
  memset(w->floor, 0, 2 * (size_t)w->leaves * sizeof *w->floor);
  w->nsorted = 0;
}

/* First leaf that begins at a point or after it. */
static u32 first_leaf(const PlacerCtx *w, u64 point) {
  u32 lo = 0, hi = w->n;
  while (lo < hi) {
    u32 mid = lo + (hi - lo) / 2;
    if (w->begin[mid] < point)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

/* A range of leaves. */
typedef struct Leaves {
  u32 from, to; /* exclusive */
} Leaves;

static Leaves half(Leaves l, bool upper) {
  u32 mid = l.from + (l.to - l.from) / 2;
  return upper ? (Leaves){mid, l.to} : (Leaves){l.from, mid};
}

static void hand_down(PlacerCtx *w, u32 node) {
  u64 *below = &w->floor[2 * (size_t)node], was = below[0] > below[1] ? below[0] : below[1];
  for (u32 i = 0; i < 2; i++)
    if (below[i] == was) below[i] = w->floor[node];
}

/* Highest floor of some leaves. */
static u64 find_floor(PlacerCtx *w, u32 node, Leaves all, Leaves of) {
  if (all.from >= of.to || all.to <= of.from) return 0;
  if (all.from >= of.from && all.to <= of.to) return w->floor[node];
  hand_down(w, node);
  u64 x = find_floor(w, 2 * node, half(all, false), of);
  u64 y = find_floor(w, 2 * node + 1, half(all, true), of);
  return x > y ? x : y;
}

/* Raises floors of some leaves that are at `from`, where none is higher. */
static void raise_floor(PlacerCtx *w, u32 node, Leaves all, Leaves of, u64 from, u64 to) {
  if (all.from >= of.to || all.to <= of.from || w->floor[node] < from) return;
  if (all.from >= of.from && all.to <= of.to) {
    w->floor[node] = to;
    return;
  }
  hand_down(w, node);
  raise_floor(w, 2 * node, half(all, false), of, from, to);
  raise_floor(w, 2 * node + 1, half(all, true), of, from, to);
  u64 x = w->floor[2 * node], y = w->floor[2 * node + 1];
  w->floor[node] = x > y ? x : y;
}

/* Lowest offset that an item may have because of floors. */
static u64 placer_floor(PlacerCtx *w, const PlaceItem *it) {
  Leaves of = {first_leaf(w, it->first), first_leaf(w, (u64)it->last + 1)};
  return find_floor(w, 1, (Leaves){0, w->leaves}, of);
}

static void placer_add(PlacerCtx *w, const PlaceItem *item, u32 id) {
  const PlaceItem *it = &item[id];
  u32 end = it->last + 1;
  u64 top = it->offset + it->size;
  for (u32 k = w->leaves + w->leaf[id]; k && w->end[k] < end; k /= 2) w->end[k] = end;
  for (u32 k = w->leaves + w->leaf[id]; k && w->top[k] < top; k /= 2) w->top[k] = top;
  Leaves of = {first_leaf(w, it->first), first_leaf(w, (u64)it->last + 1)}, all = {0, w->leaves};
  if (find_floor(w, 1, all, of) == it->offset) raise_floor(w, 1, all, of, it->offset, top);
}

/* Selects conflicting items: begin before leaf `stop`, live at point `after` or later, and reach
 * above the floor. */
typedef struct Query {
  u32 stop, after;
  u64 floor;
} Query;

/* Collects selected placed items below a node; false: more than `most`. */
static bool gather(PlacerCtx *w, PlaceItem *item, u32 node, Leaves all, const Query *x, u32 *m,
                   u32 most) {
  if (all.from >= x->stop || w->end[node] <= x->after || w->top[node] <= x->floor) return true;
  if (node >= w->leaves) {
    if (*m == most) return false;
    w->found[(*m)++] = &item[w->id[all.from]];
    return true;
  }
  return gather(w, item, 2 * node, half(all, false), x, m, most) &&
         gather(w, item, 2 * node + 1, half(all, true), x, m, most);
}

/* Sorts the first n items of the order, all placed, by offset. */
static void sort_placed(PlacerCtx *w, PlaceItem *item, const Key *order, u32 n) {
  u32 more = n - w->nsorted, k = w->nsorted;
  for (u32 i = 0; i < more; i++) w->found[i] = &item[order[k + i].id];
  if (more) qsort(w->found, more, sizeof *w->found, by_offset);
  w->nsorted = n;
  while (more) { /* merges from the end */
    bool old = k && by_offset(&w->sorted[k - 1], &w->found[more - 1]) > 0;
    w->sorted[--n] = old ? w->sorted[--k] : w->found[--more];
  }
}

/* Collects items among the first n of the order that conflict with an item above its floor, by
 * offset; returns their number. */
static u32 placer_find(PlacerCtx *w, PlaceItem *item, const Key *order, u32 n, const PlaceItem *it,
                       u64 floor) {
  Query x = {first_leaf(w, (u64)it->last + 1), it->first, floor};
  u32 m = 0;
  if (gather(w, item, 1, (Leaves){0, w->leaves}, &x, &m, n / 16 + 16)) {
    if (m > 1) qsort(w->found, m, sizeof *w->found, by_offset);
    return m;
  }
  sort_placed(w, item, order, n);
  m = 0;
  for (u32 i = 0; i < n; i++)
    if (it->first <= w->sorted[i]->last && w->sorted[i]->first <= it->last)
      w->found[m++] = w->sorted[i];
  return m;
}

/* Places items in the given order, except the first `done`, which are placed. */
static void place(PlaceItem *item, const Key *order, u32 done, u32 n, bool tight, PlacerCtx *w) {
  placer_clear(w);
  for (u32 i = 0; i < done; i++) placer_add(w, item, order[i].id);
  for (u32 i = done; i < n; i++) {
    PlaceItem *it = &item[order[i].id];
    u64 at = placer_floor(w, it), best = UINT64_MAX, slack = UINT64_MAX;
    u32 m = placer_find(w, item, order, i, it, at);
    for (u32 k = 0; k < m; k++) {
      const PlaceItem *x = w->found[k];
      if (x->offset >= at + it->size && x->offset - at - it->size < slack) {
        best = at;
        slack = x->offset - at - it->size;
        if (!tight) break;
      }
      if (x->offset + x->size > at) at = x->offset + x->size;
    }
    it->offset = best == UINT64_MAX ? at : best;
    placer_add(w, item, order[i].id);
  }
}

static void sort_items(const PlaceItem *item, u32 n, PlaceOrder how, Key *out) {
  for (u32 i = 0; i < n; i++) {
    const PlaceItem *it = &item[i];
    u64 length = (u64)it->last - it->first + 1;
    u64 area = it->size > UINT64_MAX / length ? UINT64_MAX : it->size * length;
    out[i] = (Key){it->size, length, i};
    if (how == FO_area) out[i] = (Key){area, it->size, i};
    if (how == FO_length) out[i] = (Key){length, it->size, i};
    if (how == FO_first) out[i] = (Key){UINT32_MAX - it->first, it->size, i};
  }
  if (n) qsort(out, n, sizeof *out, by_key);
}

/* Keeps the current plan if it is better. */
static void keep_if_better(BestPlan *b) {
  u64 height = 0;
  for (u32 i = 0; i < b->n; i++)
    if (b->tried[i].offset + b->tried[i].size > height)
      height = b->tried[i].offset + b->tried[i].size;
  if (height >= b->r.height) return;
  b->r.height = height;
  memcpy(b->item, b->tried, b->n * sizeof *b->item);
}

/* Heights are sums of sizes, so the greatest common divisor of all sizes divides them. */
static u64 gcd_of_sizes(const PlaceItem *item, u32 n) {
  u64 g = 0;
  for (u32 i = 0; i < n; i++)
    for (u64 x = item[i].size; x;) {
      u64 rest = g % x;
      g = x;
      x = rest;
    }
  return g ? g : 1;
}

/* Luby sequence 1 1 2 1 1 2 4 ..., from i = 1 on: length of the i-th restart. */
static u64 luby(u64 i) {
  for (;;) {
    u64 k = 1;
    while (2 * k <= i) k *= 2; /* k <= i < 2 k */
    if (i == 2 * k - 1) return k;
    i -= k - 1;
  }
}

/* Search strategies. Without slack, many short restarts that decide full sections first;
 * otherwise longer ones from the bottom up. Strategies alternate, because one often succeeds where
 * another fails. */
typedef struct SearchConfig {
  u32 most;     /* see place_below */
  u32 noise;    /* how much the orders are perturbed, in 128ths */
  u32 descents; /* steps of a short restart */
} SearchConfig;

enum { FIT_STYLES = 3 };
static const SearchConfig tight[FIT_STYLES] = {{40, 256, 2}, {12, 1024, 2}, {40, 4096, 2}};
static const SearchConfig loose[FIT_STYLES] = {{1, 64, 8}, {1, 64, 8}, {1, 256, 8}};

u64 place_area(const PlaceItem *it) {
  return (it->size / 64 + 1) * ((u64)it->last - it->first + 1);
}

/* Places the remaining items of a search where they fit, largest first, and keeps the plan if it is
 * better. Does nothing if much more remains than in another attempt. */
static void finish(BestPlan *b, Key *order) {
  u64 rest = 0;
  u32 done = 0;
  for (u32 i = 0; i < b->n; i++) {
    const PlaceItem *it = &b->tried[i];
    bool open = it->offset == PLACE_OPEN;
    done += !open;
    rest += open ? place_area(it) : 0;
    order[i] = (Key){open ? it->size : UINT64_MAX, 0, i};
  }
  if (b->rest && rest > 4 * b->rest) return;
  if (!b->rest || rest < b->rest) b->rest = rest;
  qsort(order, b->n, sizeof *order, by_key);
  place(b->tried, order, done, b->n, false, &b->placer);
  keep_if_better(b);
}

/* Searches a plan of this height in several orders, later ones perturbed; true if found. A search
 * that went wrong near its root rarely recovers, so restarts pay off. */
static bool search(BestPlan *b, u64 height, const SearchConfig *style, u64 budget, Key *order,
                   Arena *a) {
  u32 *rank = NEWS(a, u32, b->n);
  for (u32 try = 0; budget; try++) {
    const SearchConfig *how = &style[try / FO_COUNT % FIT_STYLES];
    u64 slice = luby(try / (FO_COUNT * FIT_STYLES) + 1) * how->descents * b->descent;
    u64 left = slice < budget ? slice : budget;
    budget -= left;
    sort_items(b->tried, b->n, (PlaceOrder)(try % FO_COUNT), order);
    for (u32 i = 0; i < b->n; i++) {
      u64 more = try < FO_COUNT ? 0 : random_bits(try, i) % how->noise;
      order[i].key = (b->n - i) * (128 + more);
      order[i].then = 0;
    }
    qsort(order, b->n, sizeof *order, by_key);
    for (u32 i = 0; i < b->n; i++) rank[order[i].id] = i;
    if (place_below(b->tried, b->n, rank, how->most, height, &left, a)) {
      keep_if_better(b);
      return true;
    }
    finish(b, order);
    if (left) return false; /* the search space is exhausted */
  }
  return false;
}

static void improve(BestPlan *b, u64 budget, Arena *a) {
  Key *order = NEWS(a, Key, b->n);
  u32 *rank = NEWS(a, u32, b->n);
  u64 step = gcd_of_sizes(b->item, b->n), low = b->r.bound, left = budget;
  for (u32 i = 0; i < b->n; i++) rank[i] = i;
  if (!place_below(b->tried, b->n, rank, 1, UINT64_MAX / 4, &left, a)) return;
  keep_if_better(b);
  b->descent = budget - left;
  if (search(b, low, tight, budget / 4 * 3, order, a)) return;
  for (u32 turn = 0; turn < 6 && b->r.height > low + step; turn++) {
    u64 mid = low + (b->r.height - low) / 2 / step * step;
    if (mid <= low) mid = low + step;
    b->rest = 0;
    if (!search(b, mid, loose, budget / 24, order, a)) low = mid;
  }
}

PlaceResult place_items(PlaceItem *item, u32 n, u64 budget, Arena *a) {
  BestPlan b = {.r = {UINT64_MAX, find_bound(item, n, a)}};
  Key *order = NEWS(a, Key, n);
  u32 *from = NEWS(a, u32, n);
  b.item = NEWS(a, PlaceItem, n);
  b.tried = NEWS(a, PlaceItem, n);
  for (u32 i = 0; i < n; i++) {
    item[i].offset = 0;
    if (!used(&item[i])) continue;
    from[b.n] = i;
    b.tried[b.n++] = item[i];
  }
  b.placer = placer_new(b.tried, b.n, a);
  for (u32 try = 0; try < 2 * FO_COUNT && b.r.height > b.r.bound; try++) {
    sort_items(b.tried, b.n, (PlaceOrder)(try / 2), order);
    place(b.tried, order, 0, b.n, try % 2, &b.placer);
    keep_if_better(&b);
  }
  if (b.r.height > b.r.bound && b.n <= FIT_MANY) improve(&b, budget, a);
  for (u32 i = 0; i < b.n; i++) item[from[i]].offset = b.item[i].offset;
  return b.r;
}
