/* plan.c: assigns every buffer of the arena an offset.
 *
 * In: a program. Out: the same program with offsets and the size of its arena. Buffers that are
 * live at the same time do not overlap (live.c, place.c). A result that may overwrite an operand
 * that dies there takes over its memory (prog_share.c). A program with an unbounded buffer stays
 * unplanned: engines that grow memory can run it, others refuse it. State comes first, in the order
 * of the buffers, so its offsets do not depend on the rest.
 */
#include "pass/memory/live.h"
#include "pass/pass.h"

static bool bounded(Prog *p) {
  u64 bytes;
  Sym sym;
  for (BufId b = 1; b < p->buf.n; b++)
    if (!prog_buf(p, b)->alias && mem_in_arena(p, b) && !mem_bytes(p, b, &bytes, &sym))
      return false;
  return true;
}

/* ---- in place ---- */

/* Representative of life i (union-find). */
static u32 find(u32 *into, u32 i) {
  while (into[i] != i) i = into[i] = into[into[i]];
  return i;
}

typedef struct PlaceSharing {
  Prog *p;
  LiveRanges *l;
  u32 *into; /* by life: the life whose memory it shares, or itself */
  KernelAccesses *touches;
} PlaceSharing;

/* Lets the life `to`, which begins at a kernel, take over the memory of `from`, which ends there,
 * if allowed. Skips lives that also end here: another result of this kernel could get the same
 * offset. */
static bool take_over(PlaceSharing *o, u32 from, u32 to) {
  u32 x = find(o->into, from);
  PlaceItem *a = &o->l->item[x], *b = &o->l->item[to];
  if (x == to || a->last != b->first || a->first >= a->last || a->size != b->size || !b->size)
    return false;
  if (b->first == b->last) return false;
  if (!mem_in_place(o->touches, o->l->point[b->first], o->l->root[from], o->l->root[to]))
    return false;
  o->into[to] = x;
  a->last = b->last;
  b->first = 1; /* an empty interval: it has no memory */
  b->last = 0;
  return true;
}

/* Visits kernels in order. Each life that begins there takes over the first operand that allows it.
 * Lives that begin and end there, such as scratch, are skipped. Memory that was taken over leaves
 * the list. */
static void share(PlaceSharing *o) {
  LiveRanges *l = o->l;
  u32 *ends = NEWS(&o->p->c->scratch, u32, l->npoint + 1); /* by point: 1 + life that ends there */
  u32 *next = NEWS(&o->p->c->scratch, u32, l->n + 1), *starts, *then;
  starts = NEWS(&o->p->c->scratch, u32, l->npoint + 1);
  then = NEWS(&o->p->c->scratch, u32, l->n + 1);
  for (u32 i = l->n; i-- > 0;) {
    const PlaceItem *it = &l->item[i];
    o->into[i] = i;
    if (it->first >= it->last) continue;
    next[i] = ends[it->last];
    ends[it->last] = i + 1;
    then[i] = starts[it->first];
    starts[it->first] = i + 1;
  }
  for (u32 k = 0; k < l->npoint; k++) {
    if (prog_stmt(o->p, l->point[k])->kind != ST_kernel) continue;
    for (u32 to = starts[k]; to; to = then[to - 1])
      for (u32 *from = &ends[k]; *from; from = &next[*from - 1])
        if (take_over(o, *from - 1, to - 1)) {
          *from = next[*from - 1];
          break;
        }
  }
}

/* State is live at all points, so nothing shares its bytes, and moving it to the start costs
 * nothing. */
static void put_state_first(Prog *p, LiveRanges *l) {
  u64 base = 0;
  for (u32 i = 0; i < l->n; i++) {
    PlaceItem *it = &l->item[i];
    if (prog_buf(p, l->root[i])->space != BS_state) continue;
    for (u32 k = 0; k < l->n; k++)
      if (l->item[k].offset >= base && l->item[k].offset < it->offset)
        l->item[k].offset += it->size;
    it->offset = base;
    base += it->size;
  }
}

void plan(Prog *p) {
  p->planned = false;
  mem_sweep(p);
  if (!bounded(p)) return;
  LiveRanges l = live_find(p, &p->c->scratch);
  PlaceSharing o = {p, &l, NEWS(&p->c->scratch, u32, l.n + 1), mem_accesses(p, &p->c->scratch)};
  share(&o);
  PlaceResult r = place_items(l.item, l.n, PLACE_BUDGET, &p->c->scratch);
  put_state_first(p, &l);
  for (u32 i = 0; i < l.n; i++) prog_buf(p, l.root[i])->offset = l.item[find(o.into, i)].offset;
  p->arena_bytes = r.height;
  p->planned = true;
}

/* ---- statistics ---- */

/* The first point with the most live bytes. */
static u32 find_peak(const LiveRanges *l, u64 *bytes, Arena *a) {
  u64 *begin = NEWS(a, u64, l->npoint + 2), *end = NEWS(a, u64, l->npoint + 2), live = 0;
  u32 at = 0;
  for (u32 i = 0; i < l->n; i++) {
    const PlaceItem *it = &l->item[i];
    if (it->first > it->last) continue;
    begin[it->first] += it->size;
    end[it->last + 1] += it->size;
  }
  *bytes = 0;
  for (u32 k = 0; k < l->npoint; k++) {
    live = live + begin[k] - end[k];
    if (live > *bytes) at = k;
    if (live > *bytes) *bytes = live;
  }
  return at;
}

/* Buffers live at a point, one per offset, largest first. */
static void list_peak(const LiveRanges *l, u32 at, PlanReport *r, Arena *a) {
  r->peak = NEWS(a, BufId, l->n);
  r->peak_bytes = NEWS(a, u64, l->n);
  for (u32 i = 0; i < l->n; i++) {
    const PlaceItem *it = &l->item[i];
    if (it->first > at || it->last < at || !it->size) continue;
    u32 k = r->npeak++;
    for (; k > 0 && r->peak_bytes[k - 1] < it->size; k--) {
      r->peak[k] = r->peak[k - 1];
      r->peak_bytes[k] = r->peak_bytes[k - 1];
    }
    r->peak[k] = l->root[i];
    r->peak_bytes[k] = it->size;
  }
}

PlanReport plan_report(Prog *p, Arena *a) {
  PlanReport r = {0};
  for (BufId b = 1; b < p->buf.n; b++) {
    if (prog_buf(p, b)->data && prog_buf(p, b)->space == BS_const)
      r.weights += tensor_bytes(prog_buf(p, b)->data);
    if (prog_is_planned(prog_buf(p, b))) r.buffers++;
  }
  if (!bounded(p)) {
    for (StmtId s = 1; s < p->stmt.n; s++) r.kernels += prog_stmt(p, s)->kind == ST_kernel;
    return r;
  }
  LiveRanges l = live_find(p, a);
  for (u32 k = 0; k < l.npoint; k++) r.kernels += prog_stmt(p, l.point[k])->kind == ST_kernel;
  for (u32 i = 0; i < l.n; i++) r.naive += l.item[i].size;
  share(&(PlaceSharing){p, &l, NEWS(a, u32, l.n + 1), mem_accesses(p, a)});
  u32 at = find_peak(&l, &r.bound, a);
  list_peak(&l, at, &r, a);
  const Stmt *s = l.npoint ? prog_stmt(p, l.point[at]) : NULL;
  if (s && s->kind == ST_kernel) {
    r.peak_kernel = s->label;
    r.peak_loc = &s->loc;
  }
  return r;
}
