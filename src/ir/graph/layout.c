/* layout.c: which values may have a layout other than row-major, and which nodes can read them.
 * Windows of nodes. */
#include "ir/graph/graph.h"

NodeWindow node_window(Graph *g, const Node *n) {
  NodeWindow w = {0};
  const Dim *size =
      n->op == OP_conv ? graph_type(g, n->in[1])->dim + 2 : node_list(n, AT_window, &w.n);
  const Dim *gaps = node_list(n, AT_input_dilation, &w.n);
  w.stride = node_list(n, AT_stride, &w.n);
  w.dilation = node_list(n, AT_dilation, &w.n);
  w.lo = node_list(n, AT_pad_lo, &w.n);
  w.hi = node_list(n, AT_pad_hi, &w.n);
  for (u32 i = 0; i < w.n; i++) {
    w.size[i] = size[i];
    w.input_dilation[i] = gaps ? gaps[i] : 1;
  }
  return w;
}

bool type_can_have_layout(const Type *t) {
  if (t->kind != TY_tensor || t->rank < 3 || t->rank > 5) return false;
  if (t->dt != DT_f32 && t->dt != DT_i32 && !dtype_is_half(t->dt) && !dtype_is_narrow_int(t->dt))
    return false;
  for (u32 i = 0; i < t->rank; i++) {
    bool open = !dim_is_const(t->dim[i]);
    if (open ? i > 0 : t->dim[i] < 1) return false; /* the batch dimension may be symbolic */
  }
  return true;
}

bool node_is_view(const Node *n) {
  return op_info[n->op].kind == OK_VIEW && !op_is(n->op, OF_ALIAS);
}

bool node_is_decode(Graph *g, const Node *n) {
  if (n->op != OP_cast && n->op != OP_sub) return false;
  if (n->op == OP_cast && dtype_is_half(graph_type(g, n->in[0])->dt))
    return node_int(n, AT_layer, 0) && graph_type(g, n->out[0])->dt == DT_f32;
  if (graph_type(g, n->out[0])->dt != DT_i32) return false;
  if (n->op == OP_cast) return dtype_is_narrow_int(graph_type(g, n->in[0])->dt);
  NodeId def = graph_val(g, n->in[0])->def;
  const Tensor *k = graph_const(g, n->in[1]);
  return k && k->n == 1 && def && graph_node(g, def)->op == OP_cast &&
         node_is_decode(g, graph_node(g, def)) &&
         type_equal(graph_type(g, n->in[0]), graph_type(g, n->out[0]));
}

bool node_is_widening(Graph *g, const Node *n) {
  if (n->op != OP_cast || !dtype_is_narrow_int(graph_type(g, n->in[0])->dt)) return false;
  return dtype_bytes(graph_type(g, n->out[0])->dt) > dtype_bytes(graph_type(g, n->in[0])->dt);
}

Val graph_narrow(Graph *g, Val v, i64 *zero) {
  NodeId def = graph_val(g, v)->def;
  Scalar lo, hi;
  *zero = 0;
  if (!def || !node_is_decode(g, graph_node(g, def))) return 0;
  if (graph_node(g, def)->op == OP_sub) {
    *zero = tensor_get(graph_const(g, graph_node(g, def)->in[1]), 0).i;
    def = graph_val(g, graph_node(g, def)->in[0])->def;
  }
  Val q = graph_node(g, def)->in[0];
  if (!dtype_is_narrow_int(graph_type(g, q)->dt)) return 0;
  dtype_limits(graph_type(g, q)->dt, &lo, &hi);
  return *zero >= lo.i && *zero <= hi.i ? q : 0;
}

Val graph_widen_as(Graph *g, Val v, Val q) {
  const Node *less = graph_def(g, v, OP_sub);
  Val zero = less ? less->in[1] : 0;
  q = mk_cast(g, q, DT_i32);
  return zero ? mk_sub(g, q, zero) : q;
}

Val graph_bytes(Graph *g, Val v, i64 *zero) {
  Val q = graph_narrow(g, v, zero);
  return q && dtype_bytes(graph_type(g, q)->dt) == 1 ? q : 0;
}

/* The bytes that v widens with a cast; 0: no match. */
static Val cast_bytes(Graph *g, Val v) {
  const Node *n = graph_def(g, v, OP_cast);
  bool is = n && !dtype_is_float(graph_type(g, v)->dt) && dtype_bytes(graph_type(g, v)->dt) > 1;
  return is && (graph_type(g, n->in[0])->dt == DT_u8 || graph_type(g, n->in[0])->dt == DT_i8)
             ? n->in[0]
             : 0;
}

Val graph_bytes_and_zero(Graph *g, Val v, Val *zero) {
  Scalar lo, hi;
  const Node *n = graph_def(g, v, OP_sub);
  *zero = n ? n->in[1] : 0;
  Val q = cast_bytes(g, n ? n->in[0] : v), z = n ? cast_bytes(g, n->in[1]) : 0;
  if (!q || !n) return q;
  DType dt = graph_type(g, q)->dt;
  const Tensor *t = graph_const(g, *zero);
  if (!t) return z && graph_type(g, z)->dt == dt ? q : 0;
  dtype_limits(dt, &lo, &hi);
  for (u64 i = 0; i < t->n; i++)
    if (tensor_get(t, i).i < lo.i || tensor_get(t, i).i > hi.i) return 0;
  return q;
}

bool node_takes_layout(const Node *n) {
  if (n->op == OP_gather) return node_int(n, AT_axis, 0) >= 2; /* moves channel blocks unchanged */
  if (op_is(n->op, OF_REDUCES)) return n->op != OP_resume_sum && n->op != OP_matmul_quant;
  return op_is_elementwise(n->op) || node_is_view(n) || op_info[n->op].kind == OK_JOIN;
}

/* Is the value computed by an epilogue of a reduction in the same kernel? */
static bool has_tail(Graph *g, Val v) {
  const Value *x = graph_val(g, v);
  if (x->home != HOME_inline || !x->def) return x->home == HOME_epilogue;
  const Node *n = graph_node(g, x->def);
  for (u32 i = 0; i < n->nin; i++)
    if (has_tail(g, n->in[i])) return true;
  return false;
}

static bool is_folded(Graph *g, const Node *n) {
  if (op_info[n->op].kind != OK_MAP) return true;
  for (u32 i = 0; i < n->nin; i++)
    if (has_tail(g, n->in[i])) return true;
  return false;
}

bool concat_part_fits(Graph *g, const Node *concat, u32 k) {
  const Value *v = graph_val(g, concat->in[k]);
  const Layout *y = graph_val(g, concat->out[0])->layout;
  if (!v->def || v->home != HOME_buffer) return false;
  const Node *n = graph_node(g, v->def);
  OpKind kind = op_info[n->op].kind;
  if (kind != OK_MAP && (kind == OK_REDUCE || !op_is(n->op, OF_REDUCES))) return false;
  bool same = !v->layout || !v->layout->block || (y && y->block == v->layout->block);
  return same || !is_folded(g, n);
}
