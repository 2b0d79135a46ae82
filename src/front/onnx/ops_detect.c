/* ops_detect.c: NonMaxSuppression.
 *
 * All batches and classes at once: every round of a loop takes the best box left of each and
 * removes what overlaps it too much. The rounds write the boxes into a table with a row per class,
 * whose used entries, in row-major order, are the result. The loop ends early when no class has a
 * box left.
 */
#include "front/onnx/builder.h"

#include <math.h>

typedef struct Boxes {
  Build *b;
  Val edge[4];     /* low y, low x, high y, high x: [batch, classes, boxes] */
  Val area;        /* likewise */
  Val score, none; /* scores likewise; -Inf */
  Val limit;       /* overlap above it removes a box */
  Dim shape[3];    /* batch, classes, boxes */
} Boxes;

/* carried: bool [batch, classes, boxes], i64 [batch, classes, rounds] */
enum { BOX_free, BOX_taken, BOX_carried };

static void find_edges(Boxes *s, Val boxes, bool centre) {
  Graph *g = s->b->g;
  Val c[4];
  for (u32 i = 0; i < 4; i++) { /* [batch, 1, boxes] */
    c[i] = mk_squeeze(g, mk_slice_axis(g, boxes, 2, i, 1), 2);
    c[i] = mk_unsqueeze(g, c[i], 1);
  }
  for (u32 i = 0; i < 2; i++) { /* y, then x */
    if (centre) {
      Val half = mk_mulk(g, c[3 - i], 0.5), mid = c[1 - i];
      s->edge[i] = mk_sub(g, mid, half);
      s->edge[2 + i] = mk_add(g, mid, half);
    } else {
      s->edge[i] = mk_min(g, c[i], c[2 + i]);
      s->edge[2 + i] = mk_max(g, c[i], c[2 + i]);
    }
  }
  Val height = mk_sub(g, s->edge[3], s->edge[1]);
  s->area = mk_mul(g, mk_sub(g, s->edge[2], s->edge[0]), height);
  s->area = mk_broadcast(g, s->area, s->shape, 3);
  for (u32 i = 0; i < 4; i++) s->edge[i] = mk_broadcast(g, s->edge[i], s->shape, 3);
}

/* bool: boxes that overlap the one at `best` [batch, classes, 1] by more than the limit. */
static Val overlaps(const Boxes *s, Val best) {
  Graph *g = s->b->g;
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
  return mk_and(g, real, mk_gt(g, mk_div(g, common, all), s->limit));
}

static void take_best(Graph *g, void *user, Val round, Val *cond, Val *carried, Val *scan) {
  Boxes *s = user;
  Build *b = s->b;
  (void)scan;
  Val free = carried[BOX_free], left = mk_select(g, free, s->score, s->none);
  Val best = mk_arg(g, OP_argmax, left, 2, true, false), got = mk_gather_elems(g, free, best, 2);
  Type t = *on_type(b, carried[BOX_taken]);
  Val now = mk_and(g, mk_eq(g, mk_iota(g, DT_i64, t.dim + 2, 1, 0), round), got);
  carried[BOX_taken] = mk_select(g, now, best, carried[BOX_taken]);
  Val gone = mk_eq(g, mk_iota(g, DT_i64, s->shape + 2, 1, 0), best);
  gone = mk_or(g, gone, overlaps(s, best));
  carried[BOX_free] = mk_and(g, free, mk_not(g, gone));
  *cond = mk_reduce(g, OP_reduce_max, got, (const i64[]){0, 1, 2}, 3, false);
}

static Val optional_scalar(Build *b, u32 i, Val otherwise) {
  if (!on_has(b, i)) return otherwise;
  const Type *t = on_type(b, b->in[i]);
  if (t->rank == 1 && t->dim[0] == 0) return otherwise;
  return mk_reshape(b->g, b->in[i], NULL, 0);
}

void build_nonmaxsuppression(Build *b) {
  Graph *g = b->g;
  Val boxes = on_in(b, 0), score = on_in(b, 1);
  if (on_rank(b, boxes) != 3 || on_rank(b, score) != 3 || on_dim(b, boxes, 2) != 4)
    on_bad(b, "expected boxes of rank 3 with 4 coordinates, and scores of rank 3");
  Type t = *on_type(b, score);
  Boxes s = {.b = b,
             .score = score,
             .none = mk_like(g, score, -INFINITY),
             .shape = {t.dim[0], t.dim[1], t.dim[2]}};
  s.limit = optional_scalar(b, 3, mk_like(g, boxes, 0));
  find_edges(&s, boxes, on_int(b, "center_point_box", 0) != 0);
  Val zero = mk_scalar(g, DT_i64, 0);
  Val most = mk_max(g, mk_cast(g, optional_scalar(b, 2, mk_scalar(g, DT_i64, 0)), DT_i64), zero);
  i64 known;
  u32 one;
  Dim table[3] = {t.dim[0], t.dim[1], t.dim[2]};
  if (graph_ints(g, most, &known, 1, &one))
    table[2] = dim_min(b->ds, table[2], known > DIM_MAX ? DIM_MAX : known);
  Val least = optional_scalar(b, 4, 0);
  Val free = least ? mk_gt(g, score, least) : mk_eq(g, score, score); /* NaN is no score */
  Val carried[BOX_carried] = {free, mk_full(g, mk_scalar(g, DT_i64, -1), table, 3)}, scan;
  Val trip = mk_min(g, most, mk_extent(g, table[2], DT_i64));
  mk_loop(g, trip, mk_scalar(g, DT_bool, 1), carried, BOX_carried, &scan, 0, take_best, &s);
  Val taken = carried[BOX_taken];
  Val where = mk_nonzero(g, mk_ge(g, taken, mk_like(g, taken, 0))); /* [3, n] */
  where = mk_transpose(g, where, (const i64[]){1, 0});
  Val part[2] = {mk_slice_axis(g, where, 1, 0, 2),
                 mk_unsqueeze(g, mk_gather_nd(g, taken, where, 0), 1)};
  b->out[0] = mk_concat(g, part, 2, 1);
}
