/* split_pools.c: splits large pooling windows by dimension.
 *
 * In: a graph. Out: the same graph, where a pool with a large window is a chain of pools along one
 * dimension each, last dimension first. The maximum of a window is the maximum of its row maxima.
 * Of equal elements (-0 and 0) every step keeps the first, so the chain does too. Padding never
 * wins. Sums are sums of row sums, except for f16, where row sums would be rounded.
 *
 * The pass runs for targets with vectors, unless the program is optimized for memory: row results
 * are stored.
 *
 * needs: canonical graph  keeps: values bit for bit, except last bits of float sums  breaks:
 * nothing
 */
#include "pass/pass.h"

#include <math.h>
#include <string.h>

enum { CHAIN = 32 }; /* nodes searched for a convolution */

typedef struct PoolWindow {
  u32 n;
  i64 size[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK], lo[MAX_RANK], hi[MAX_RANK];
} PoolWindow;

static void copy_list(const Node *n, AttrKey key, i64 *to, u32 *count) {
  const Dim *from = node_list(n, key, count);
  memcpy(to, from, *count * sizeof *to);
}

static PoolWindow window_of(const Node *n) {
  PoolWindow w;
  copy_list(n, AT_window, w.size, &w.n);
  copy_list(n, AT_stride, w.stride, &w.n);
  copy_list(n, AT_dilation, w.dilation, &w.n);
  copy_list(n, AT_pad_lo, w.lo, &w.n);
  copy_list(n, AT_pad_hi, w.hi, &w.n);
  return w;
}

/* Is v computed elementwise or by pools from a convolution? Then lanes are channels, and neighbors
 * along the last dimension are not contiguous. */
static bool is_of_conv(Graph *g, Val v) {
  for (u32 i = 0; i < CHAIN; i++) {
    NodeId def = graph_val(g, v)->def;
    const Node *n = def ? graph_node(g, def) : NULL;
    if (n && n->op == OP_conv) return true;
    if (!n || !n->nin || (op_info[n->op].kind != OK_MAP && op_info[n->op].kind != OK_WINDOW))
      return false;
    v = n->in[0];
  }
  return false;
}

/* Compares the number of elements read per result: all at once, or dimension by dimension,
 * including rows that a stride skips. Strided elements along the last dimension need shuffles,
 * unless lanes are channels. */
static bool pays(const PoolWindow *w, bool in_lanes) {
  double all = 1, lines = 0, made = 1;
  for (u32 i = 0; i < w->n; i++) {
    double each = !in_lanes && i + 1 == w->n && w->stride[i] > 1 ? figures.pool_apart : 1;
    all *= (double)w->size[i] * each;
    lines += (double)w->size[i] * made * each;
    made *= (double)(w->stride[i] < w->size[i] ? w->stride[i] : w->size[i]);
  }
  return all >= (in_lanes ? figures.pool_gain : figures.pool_plain_gain) * lines;
}

/* The window along dimension d alone. */
static Val pool_along(Graph *g, Op op, Val x, const PoolWindow *w, u32 d) {
  PoolWindow one = {.n = w->n};
  for (u32 i = 0; i < w->n; i++) one.size[i] = one.stride[i] = one.dilation[i] = 1;
  one.size[d] = w->size[d];
  one.stride[d] = w->stride[d];
  one.dilation[d] = w->dilation[d];
  one.lo[d] = w->lo[d];
  one.hi[d] = w->hi[d];
  return mk_pool(g, op, x, one.n, one.size, one.stride, one.dilation, one.lo, one.hi);
}

/* Pads x with values that never win, so that no window needs bounds checks and all outputs are
 * vectors. Leaves x alone if the pool has a stride, because the copy would take longer than the
 * pool, or if a dimension would more than double. */
static Val pad_neutral(Graph *g, Val x, PoolWindow *w) {
  Dim lo[MAX_RANK] = {0}, hi[MAX_RANK] = {0};
  u32 first = graph_type(g, x)->rank - w->n;
  bool any = false;
  for (u32 i = 0; i < w->n; i++) {
    i64 least, most;
    dim_bounds(g->dims, graph_type(g, x)->dim[first + i], &least, &most);
    if (w->stride[i] > 1 || w->lo[i] > least || w->hi[i] > least - w->lo[i]) return x;
    any |= w->lo[i] || w->hi[i];
  }
  if (!any) return x;
  for (u32 i = 0; i < w->n; i++) {
    lo[first + i] = w->lo[i];
    hi[first + i] = w->hi[i];
    w->lo[i] = w->hi[i] = 0;
  }
  return mk_pad(g, x, mk_like(g, x, -INFINITY), lo, hi, NULL);
}

/* Does a chain of pools equal the pool? */
static bool may_chain(Graph *g, const Node *n) {
  if (n->op != OP_pool_sum) return n->op == OP_pool_max;
  return dtype_is_full_float(graph_type(g, n->in[0])->dt);
}

static bool visit(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  if (!may_chain(g, n)) return true;
  PoolWindow w = window_of(n);
  Val x = n->in[0];
  bool in_lanes = is_of_conv(g, x);
  if (!pays(&w, in_lanes)) return true;
  Op op = n->op;
  g->loc = n->loc;
  DType dt = graph_type(g, x)->dt;
  if (op == OP_pool_max && (dtype_is_full_float(dt) || dtype_is_half(dt)) && !in_lanes)
    x = pad_neutral(g, x, &w);
  for (u32 d = w.n; d-- > 0;)
    if (w.size[d] > 1 || w.stride[d] > 1 || w.lo[d] || w.hi[d]) x = pool_along(g, op, x, &w, d);
  return !edit_swap(e, id, x);
}

void split_pools(PassCtx *u) {
  if (u->target->lanes < 4 || u->aim == AIM_ram) return;
  edit_run(u->g, visit, NULL);
}
