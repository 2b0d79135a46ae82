/* compose_nms.c: non-maximum suppression. See compose.h. */
#include "front/compose/compose.h"

#include <float.h>
#include <math.h>

Val compose_nms(Graph *g, const NmsInputs *x) {
  Type t = *graph_type(g, x->score);
  Dim table[3] = {t.dim[0], t.dim[1], x->rounds};
  if (x->rounds == 0) return mk_full(g, mk_scalar(g, DT_i64, -1), table, 3);
  Val score = x->score, least = x->least;
  if (!least) { /* -Inf is a valid score and comes last */
    score = mk_max(g, score, mk_like(g, score, -FLT_MAX));
    least = mk_like(g, score, -INFINITY);
  }
  return mk_nms(g, (const Val[]){score, x->box, x->limit, least, x->trip}, x->kind, x->rounds);
}
