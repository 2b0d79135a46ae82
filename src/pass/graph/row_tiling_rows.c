/* row_tiling_rows.c: computes which rows of every value a stripe computes, and which are kept for
 * the next.
 *
 * In: a run of nodes. Out: for every node and stripe, the number of rows computed by its end, and
 * the first row that is still to be read. Method: backwards. Results are split evenly. The rows of
 * a result that a stripe computes determine, through the window of the node, the rows of its
 * operands. The maximum over all users is computed, and from the minimum of all later uses on, rows
 * are kept.
 */
#include "pass/graph/row_tiling.h"

/* Is it a window over all axes after the channels, the first of which is the rows? */
static bool is_window(Graph *g, const Node *n) {
  u32 ns;
  if (n->op == OP_conv) return true;
  if (op_info[n->op].kind != OK_WINDOW || !op_is(n->op, OF_REDUCES)) return false;
  node_list(n, AT_window, &ns);
  return ns + 2 == graph_type(g, n->out[0])->rank;
}

static bool is_part(Graph *g, const Node *n) {
  u32 rank;
  if (n->op != OP_slice) return false;
  const Dim *start = node_list(n, AT_start, &rank), *step = node_list(n, AT_step, &rank);
  return start[ROW_AXIS] == 0 && step[ROW_AXIS] == 1 &&
         graph_type(g, n->in[0])->dim[ROW_AXIS] == graph_type(g, n->out[0])->dim[ROW_AXIS];
}

/* Rows must be reduced in order, so earlier axes must stay. Sums of narrow floats are excluded,
 * because they are rounded only at the end and cannot be continued. */
bool stripe_reduces(Graph *g, const Node *n) {
  u32 count = 0;
  if (n->op != OP_reduce_sum && n->op != OP_reduce_max && n->op != OP_reduce_min) return false;
  const Type *t = graph_type(g, n->in[0]);
  const Dim *axes = node_list(n, AT_axes, &count);
  bool rows = false;
  for (u32 i = 0; i < count; i++) {
    if (axes[i] < ROW_AXIS) return false;
    rows = rows || axes[i] == ROW_AXIS;
  }
  return rows && (n->op != OP_reduce_sum || !dtype_is_float(t->dt) || dtype_acc(t->dt) == t->dt);
}

bool stripe_can_tile(Graph *g, const Node *n) {
  if (n->nout != 1 || n->nregion || n->nsym) return false;
  bool reduced = stripe_reduces(g, n);
  const Type *t = graph_type(g, reduced ? n->in[0] : n->out[0]);
  if (t->kind != TY_tensor || t->rank <= ROW_AXIS || t->rank > 5) return false;
  for (u32 i = 0; i < t->rank; i++)
    if (!dim_is_const(t->dim[i]) || t->dim[i] < 1) return false;
  if (op_is_elementwise(n->op)) return true;
  if (n->op == OP_concat) return node_int(n, AT_axis, 0) != ROW_AXIS;
  return reduced || is_window(g, n) || is_part(g, n);
}

u32 stripe_axis(Graph *g, const Node *n, u32 k) {
  if (n->op >= OP_SCALARS) return k && n->op == OP_conv ? NO_AXIS : ROW_AXIS;
  const Type *t = graph_type(g, n->in[k]), *out = graph_type(g, n->out[0]);
  u32 less = out->rank - t->rank;
  if (less > ROW_AXIS || t->rank + less <= ROW_AXIS) return NO_AXIS;
  return t->dim[ROW_AXIS - less] == out->dim[ROW_AXIS] ? ROW_AXIS - less : NO_AXIS;
}

RowRange stripe_reads(Graph *g, const Node *n, u32 k, RowRange out, i64 pad[2]) {
  pad[0] = pad[1] = 0;
  if (!is_window(g, n)) return out;
  NodeWindow w = node_window(g, n);
  i64 step = w.stride[0], input_dilation = w.input_dilation[0];
  i64 rows = graph_type(g, n->in[k])->dim[ROW_AXIS], from = out.from * step - w.lo[0];
  i64 to = from + (out.to - out.from - 1) * step + (w.size[0] - 1) * w.dilation[0] + 1;
  RowRange in = {from > 0 ? (from + input_dilation - 1) / input_dilation : 0,
                 to > 0 ? (to - 1) / input_dilation + 1 : 0};
  if (in.to > rows) in.to = rows;
  pad[0] = in.from * input_dilation - from;
  pad[1] = to - ((in.to - 1) * input_dilation + 1);
  return in;
}

StripeNode *stripe_node_of(const StripeGroup *r, Val v) {
  NodeId def = v ? graph_val(r->g, v)->def : 0;
  if (!def || def >= r->limit || r->home[def] != 1 || r->at[def] < r->from || r->at[def] >= r->to)
    return NULL;
  StripeNode *b = &r->node[r->at[def] - r->from];
  return b->id ? b : NULL;
}

/* Values from outside that cost nothing stay before the group. */
static bool is_elsewhere(const StripeGroup *r, const Node *n) {
  if (op_info[n->op].kind == OK_LEAF) return true;
  if (!node_is_view(n)) return false;
  return !stripe_node_of(r, n->in[0]);
}

static bool fits(const StripeGroup *r, const Node *n) {
  Graph *g = r->g;
  if (!stripe_can_tile(g, n)) return false;
  for (u32 k = 0; k < n->nin; k++) {
    StripeNode *of = stripe_node_of(r, n->in[k]);
    if (!of) continue;
    if (of->reduces || stripe_axis(g, n, k) != ROW_AXIS) return false;
    of->inner = true;
  }
  return true;
}

bool stripe_group_open(StripeGroup *r, Arena *a) {
  Graph *g = r->g;
  r->node = NEWS(a, StripeNode, r->to - r->from + 1);
  for (u32 p = r->from; p < r->to; p++) {
    NodeId id = g->region.at[1].node.at[p];
    const Node *n = graph_node(g, id);
    StripeNode *b = &r->node[p - r->from];
    if (is_elsewhere(r, n)) continue;
    if (!fits(r, n)) return false;
    bool reduced = stripe_reduces(g, n);
    const Type *t = graph_type(g, reduced ? n->in[0] : n->out[0]);
    *b = (StripeNode){.id = id, .rows = t->dim[ROW_AXIS], .reduces = reduced};
    b->again = !reduced && graph_val(g, n->out[0])->home != HOME_buffer;
    b->result = r->last[n->out[0]] >= r->to;
    if (b->again && b->result) return false;
    r->end = p;
  }
  return true;
}

RowRange stripe_new_rows(const StripeNode *b, u32 stripe) {
  i64 from = b->again ? b->first[stripe] : b->done[stripe - 1];
  return (RowRange){from < b->done[stripe] ? from : b->done[stripe], b->done[stripe]};
}

RowRange stripe_kept_rows(const StripeNode *b, u32 stripe) {
  i64 from = b->again ? b->done[stripe] : b->first[stripe + 1];
  return (RowRange){from < b->done[stripe] ? from : b->done[stripe], b->done[stripe]};
}

/* Called after all users of b: makes the requested rows monotonic over stripes. */
static void finalize_rows(StripeNode *b, u32 stripes) {
  for (u32 i = 1; i <= stripes; i++) {
    i64 share = (b->rows * i + stripes - 1) / stripes;
    if (!b->inner) b->done[i] = share;
    if (b->done[i] < b->done[i - 1]) b->done[i] = b->done[i - 1];
  }
  if (b->result) b->done[stripes] = b->rows;
  for (u32 i = stripes; i >= 1; i--)
    if (b->first[i] > b->first[i + 1]) b->first[i] = b->first[i + 1];
}

static bool request_rows(StripeGroup *r, const StripeNode *b) {
  Graph *g = r->g;
  const Node *n = graph_node(g, b->id);
  for (u32 k = 0; k < n->nin; k++) {
    StripeNode *of = stripe_node_of(r, n->in[k]);
    for (u32 i = 1; i <= r->stripes; i++) {
      RowRange out = stripe_new_rows(b, i);
      i64 pad[2];
      if (out.from == out.to || (!of && stripe_axis(g, n, k) == NO_AXIS)) continue;
      RowRange in = stripe_reads(g, n, k, out, pad);
      if (in.from >= in.to) return false;
      if (of && of->done[i] < in.to) of->done[i] = in.to;
      if (of && of->first[i] > in.from) of->first[i] = in.from;
    }
  }
  return true;
}

bool stripe_group_rows(StripeGroup *r, u32 stripes, Arena *a) {
  r->stripes = stripes;
  for (u32 i = 0; i < r->to - r->from; i++) {
    StripeNode *b = &r->node[i];
    b->done = NEWS(a, i64, stripes + 2);
    b->first = NEWS(a, i64, stripes + 2);
    for (u32 k = 0; k < stripes + 2; k++) b->first[k] = INT64_MAX;
  }
  for (u32 i = r->to - r->from; i-- > 0;) {
    StripeNode *b = &r->node[i];
    if (!b->id) continue;
    finalize_rows(b, stripes);
    if (!request_rows(r, b)) return false;
  }
  return true;
}
