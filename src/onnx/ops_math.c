/* ops_math.c: builders of elementwise operators. */
#include "onnx/builder.h"

Val on_broadcast_old(Build *b, Val x, Val y);

/* Before opset 7 broadcasting was asked for: y's shape stands at `axis` of x's, or at its end. */
Val on_broadcast_old(Build *b, Val x, Val y) {
  if (b->opset >= 7 || !on_int(b, "broadcast", 0)) return y;
  u32 rx = on_rank(b, x), ry = on_rank(b, y);
  if (!on_has_attr(b, "axis") || ry == 0) return y;
  u32 axis = on_axis(b, on_int(b, "axis", 0), rx);
  Dim dim[MAX_RANK];
  if (axis + ry > rx) on_bad(b, "axis %u with rank %u exceeds rank %u", axis, ry, rx);
  for (u32 i = 0; i < rx - axis; i++) dim[i] = i < ry ? on_dim(b, y, i) : 1;
  return mk_reshape(b->g, y, dim, rx - axis);
}

void build_binary(Build *b) {
  Val x = on_in(b, 0), y = on_in(b, 1);
  b->out[0] = mk_map2(b->g, (Op)b->arg, x, on_broadcast_old(b, x, y));
}

void build_identity(Build *b) {
  b->out[0] = on_in(b, 0);
}

void build_relu(Build *b) {
  Val x = on_in(b, 0);
  b->out[0] = mk_map2(b->g, OP_max, x, mk_like(b->g, x, 0));
}
