/* boxes.c: which of many boxes to keep. See compose.h.
 *
 * All batches and classes at once: every round of a loop takes the best box left of each and
 * removes what overlaps it too much. The rounds write the boxes into a table with a row per class.
 * The loop ends early when no class has a box left.
 */
#include "front/compose/compose.h"

#include <math.h>

typedef struct Suppress {
  const Boxes *boxes;
  Val edge[4], area; /* [batch, classes, boxes] */
  Val none;          /* -Inf */
  Dim shape[3];
  Dim rounds;
} Suppress;

/* carried: bool [batch, classes, boxes], i64 [batch, classes, rounds] */
enum { BOX_free, BOX_taken, BOX_carried };

/* bool: boxes that overlap the one at `best` [batch, classes, 1] by more than the limit. */
static Val overlaps(Graph *g, const Suppress *s, Val best) {
  Val mine[4], area = mk_gather_elems(g, s->area, best, 2), side[2];
  for (u32 i = 0; i < 4; i++) mine[i] = mk_gather_elems(g, s->edge[i], best, 2);
  Val zero = mk_like(g, area, 0);
  for (u32 i = 0; i < 2; i++) {
    Val lo = mk_max(g, s->edge[i], mine[i]), hi = mk_min(g, s->edge[2 + i], mine[2 + i]);
    side[i] = mk_max(g, mk_sub(g, hi, lo), zero);
  }
  Val common = mk_mul(g, side[0], side[1]);
  Val all = mk_sub(g, mk_add(g, s->area, area), common);
  Val other = mk_gt(g, area, zero);
  Val real = mk_and(g, mk_gt(g, s->area, zero), other);
  real = mk_and(g, real, mk_gt(g, common, zero));
  real = mk_and(g, real, mk_gt(g, all, zero));
  return mk_and(g, real, mk_gt(g, mk_div(g, common, all), s->boxes->limit));
}

static void take_best(Graph *g, void *user, Val round, Val *cond, Val *carried, Val *scan) {
  const Suppress *s = user;
  (void)scan;
  Val free = carried[BOX_free], left = mk_select(g, free, s->boxes->score, s->none);
  Val best = mk_arg(g, OP_argmax, left, 2, true, false), got = mk_gather_elems(g, free, best, 2);
  Val now = mk_and(g, mk_eq(g, mk_iota(g, DT_i64, &s->rounds, 1, 0), round), got);
  carried[BOX_taken] = mk_select(g, now, best, carried[BOX_taken]);
  Val gone = mk_eq(g, mk_iota(g, DT_i64, s->shape + 2, 1, 0), best);
  gone = mk_or(g, gone, overlaps(g, s, best));
  carried[BOX_free] = mk_and(g, free, mk_not(g, gone));
  *cond = mk_reduce(g, OP_reduce_max, got, (const i64[]){0, 1, 2}, 3, false);
}

Val compose_suppress(Graph *g, const Boxes *x) {
  Type t = *graph_type(g, x->score);
  Suppress s = {.boxes = x,
                .none = mk_like(g, x->score, -INFINITY),
                .shape = {t.dim[0], t.dim[1], t.dim[2]},
                .rounds = x->rounds};
  Val high = mk_sub(g, x->edge[2], x->edge[0]), wide = mk_sub(g, x->edge[3], x->edge[1]);
  s.area = mk_broadcast(g, mk_mul(g, high, wide), s.shape, 3);
  for (u32 i = 0; i < 4; i++) s.edge[i] = mk_broadcast(g, x->edge[i], s.shape, 3);
  Dim table[3] = {t.dim[0], t.dim[1], x->rounds};
  Val carried[BOX_carried] = {x->free, mk_full(g, mk_scalar(g, DT_i64, -1), table, 3)}, scan;
  mk_loop(g, x->trip, mk_scalar(g, DT_bool, 1), carried, BOX_carried, &scan, 0, take_best, &s);
  return carried[BOX_taken];
}
