/* boxes.c: which of many boxes to keep. See compose.h. */
#include "front/compose/compose.h"

#include <float.h>
#include <math.h>

Val compose_suppress(Graph *g, const Boxes *x) {
  Type t = *graph_type(g, x->score);
  Dim table[3] = {t.dim[0], t.dim[1], x->rounds}, wide[3] = {t.dim[0], 1, t.dim[2]};
  if (x->rounds == 0) return mk_full(g, mk_scalar(g, DT_i64, -1), table, 3);
  Val edge[4], score = x->score, least = x->least;
  for (u32 i = 0; i < 4; i++) edge[i] = mk_broadcast(g, x->edge[i], wide, 3);
  if (!least) { /* -Inf is a score, too: it is taken behind all others */
    score = mk_max(g, score, mk_like(g, score, t.dt == DT_f64 ? -DBL_MAX : -FLT_MAX));
    least = mk_like(g, score, -INFINITY);
  }
  Val in[5] = {score, mk_concat(g, edge, 4, 1), x->limit, least, x->trip};
  return mk_suppress(g, in, x->rounds);
}
