/* boxes.c: which of many boxes to keep. See compose.h.
 *
 * All batches and classes at once: every round of a loop takes the best box left of each and
 * removes what overlaps it too much. The rounds write the boxes into a table with a row per class.
 * The loop ends early when no class has a box left.
 */
#include "front/compose/compose.h"

#include <float.h>
#include <math.h>

typedef struct Suppress {
  Val edge[4], area; /* [batch, classes, boxes] */
  Val limit, none;   /* at least 0; -Inf */
  Val place;         /* 0, 1, 2 ...: f32 where it has them all, else i32 */
} Suppress;

static Val area_of(Graph *g, const Val *edge) {
  Val high = mk_sub(g, edge[2], edge[0]), wide = mk_sub(g, edge[3], edge[1]);
  return mk_mul(g, high, wide);
}

/* bool: boxes that overlap the one at `best` [batch, classes, 1] by more than the limit, or at all
 * where the limit is below 0. What two boxes have in common is no larger than either, also when it
 * is rounded: where one has no area, or turned edges, it is 0, and the quotient 0 or NaN. */
static Val overlaps(Graph *g, const Suppress *s, Val best) {
  Val mine[4], side[2], zero = mk_like(g, s->area, 0);
  for (u32 i = 0; i < 4; i++) mine[i] = mk_gather_elems(g, s->edge[i], best, 2);
  for (u32 i = 0; i < 2; i++) {
    Val lo = mk_max(g, s->edge[i], mine[i]), hi = mk_min(g, s->edge[2 + i], mine[2 + i]);
    side[i] = mk_max(g, mk_sub(g, hi, lo), zero);
  }
  Val common = mk_mul(g, side[0], side[1]);
  Val all = mk_sub(g, mk_add(g, s->area, area_of(g, mine)), common);
  return mk_gt(g, mk_div(g, common, all), s->limit);
}

/* [batch, classes, 1]: where the first true of each line is. Extremes of floats run on vectors,
 * argmax does not. */
static Val first_of(Graph *g, const Suppress *s, Val here) {
  Val far = mk_like(g, s->place, INT32_MAX);
  return mk_reduce(g, OP_reduce_min, mk_select(g, here, s->place, far), &(i64){2}, 1, true);
}

/* Carried: scores of the boxes left, as those of boxes are; -Inf of those that are gone. One row of
 * the table: the box of each class, or -1. */
static void take_best(Graph *g, void *user, Val round, Val *cond, Val *carried, Val *scan) {
  const Suppress *s = user;
  (void)round;
  Val left = *carried, top = mk_reduce(g, OP_reduce_max, left, &(i64){2}, 1, true);
  Val got = mk_gt(g, top, s->none), first = first_of(g, s, mk_eq(g, left, top));
  Val best = mk_cast(g, first, DT_i64);
  *scan = mk_select(g, got, best, mk_scalar(g, DT_i64, -1));
  Val gone = mk_eq(g, s->place, first);
  gone = mk_or(g, gone, overlaps(g, s, best));
  *carried = mk_select(g, gone, s->none, left);
  *cond = mk_reduce(g, OP_reduce_max, got, (const i64[]){0, 1, 2}, 3, false);
}

Val compose_suppress(Graph *g, const Boxes *x) {
  Type t = *graph_type(g, x->score);
  Dim table[3] = {t.dim[0], t.dim[1], x->rounds};
  i64 least, most;
  if (x->rounds == 0) return mk_full(g, mk_scalar(g, DT_i64, -1), table, 3);
  dim_bounds(g->dims, t.dim[2], &least, &most);
  Suppress s = {.none = mk_like(g, x->score, -INFINITY)};
  s.place = mk_iota(g, most <= 1 << 24 ? DT_f32 : DT_i32, t.dim + 2, 1, 0);
  s.limit = mk_max(g, x->limit, mk_like(g, x->limit, 0));
  s.area = mk_broadcast(g, area_of(g, x->edge), t.dim, 3);
  for (u32 i = 0; i < 4; i++) s.edge[i] = mk_broadcast(g, x->edge[i], t.dim, 3);
  /* -Inf is a score, too: it is taken behind all others */
  Val score = mk_max(g, x->score, mk_like(g, x->score, t.dt == DT_f64 ? -DBL_MAX : -FLT_MAX));
  Val left = mk_select(g, x->free, score, s.none), row;
  mk_loop(g, x->trip, mk_scalar(g, DT_bool, 1), &left, 1, &row, 1, take_best, &s);
  Val rows = mk_transpose(g, mk_squeeze(g, row, 3), (const i64[]){1, 2, 0});
  Dim lo[3] = {0}, hi[3] = {0, 0, dim_sub(g->dims, x->rounds, graph_type(g, rows)->dim[2])};
  return mk_pad(g, rows, mk_scalar(g, DT_i64, -1), lo, hi, NULL);
}
