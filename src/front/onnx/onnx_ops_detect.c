/* onnx_ops_detect.c: NonMaxSuppression. compose_nms.c selects the boxes; the result lists the used
 * entries of its table in row-major order.
 */
#include "front/onnx/onnx_builder.h"

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
  NmsInputs s = {.score = score, .rounds = on_dim(b, score, 2)};
  s.limit = optional_scalar(b, 3, mk_like(g, boxes, 0));
  s.box = boxes;
  s.kind = on_int(b, "center_point_box", 0) ? BX_centre : BX_corners;
  Val zero = mk_scalar(g, DT_i64, 0);
  Val most = mk_max(g, mk_cast(g, optional_scalar(b, 2, mk_scalar(g, DT_i64, 0)), DT_i64), zero);
  i64 known;
  u32 one;
  if (graph_ints(g, most, &known, 1, &one))
    s.rounds = dim_min(b->ds, s.rounds, known > DIM_MAX ? DIM_MAX : known);
  s.least = optional_scalar(b, 4, 0);
  s.trip = mk_min(g, most, mk_extent(g, s.rounds, DT_i64));
  Val taken = compose_nms(g, &s);
  Val where = mk_nonzero(g, mk_ge(g, taken, mk_like(g, taken, 0))); /* [3, n] */
  where = mk_transpose(g, where, (const i64[]){1, 0});
  Val part[2] = {mk_slice_axis(g, where, 1, 0, 2),
                 mk_unsqueeze(g, mk_gather_nd(g, taken, where, 0), 1)};
  b->out[0] = mk_concat(g, part, 2, 1);
}
