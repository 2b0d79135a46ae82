/* laid.c: which values can lie in memory in another order than row-major, and who can read them.
 */
#include "ir/graph.h"

bool type_can_be_laid(const Type *t) {
  if (t->kind != TY_tensor || t->dt != DT_f32 || t->rank < 3 || t->rank > 5) return false;
  for (u32 i = 0; i < t->rank; i++)
    if (!dim_is_const(t->dim[i]) || t->dim[i] < 1) return false;
  return true;
}

bool node_is_view(const Node *n) {
  return n->op == OP_transpose || n->op == OP_slice || n->op == OP_broadcast;
}

bool node_takes_layout(const Node *n) {
  if (node_is_view(n)) return true;
  if (n->op < OP_SCALARS) return n->op != OP_bitcast;
  switch (n->op) {
  case OP_conv:
  case OP_contract:
  case OP_pool_max:
  case OP_pool_sum:
  case OP_reduce_sum:
  case OP_reduce_prod:
  case OP_reduce_max:
  case OP_reduce_min:
  case OP_concat:
  case OP_pad: return true;
  case OP_gather: return node_int(n, AT_axis, 0) >= 2; /* moves blocks as they are */
  default: return false;
  }
}
