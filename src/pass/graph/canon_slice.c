/* canon_slice.c: canon rules that compute only what is read.
 *
 * In: a slice that is the only use of its operand, or a loop whose results are read only in part.
 * Out: the slice moves up through elementwise nodes, views, joins, reductions and contractions,
 * which then compute only that part. A loop ends after the last row that is read, and a loop with
 * one iteration is replaced by its body. So a classifier that reads one token computes its last
 * layer for that token only. Results are bit-exact.
 *
 * Slices stop at convolutions and pools: slicing their results would separate the maps after them
 * from the accumulators. Nothing moves into or out of a region.
 */
#include <string.h>
#include "pass/graph/canon.h"

enum {
  CUT_DEPTH = 12,
  CUT_VISITS = 10000
}; /* limits, because values may be reached on very many paths */
static const NodeId CUT_MANY = UINT32_MAX; /* users read different parts */

/* Part of a value that is read: elements start .. start + size - 1 on every axis. */
typedef struct SliceBox {
  u32 rank;
  Dim start[MAX_RANK], size[MAX_RANK];
} SliceBox;

/* ---- parts that users read, at the start of a round ---- */

static bool same_slice(Graph *g, NodeId a, NodeId b) {
  static const AttrKey keys[] = {AT_start, AT_size, AT_step};
  for (u32 i = 0; i < 3; i++) {
    u32 n, m;
    const Dim *x = node_list(graph_node(g, a), keys[i], &n);
    const Dim *y = node_list(graph_node(g, b), keys[i], &m);
    if (n != m || memcmp(x, y, n * sizeof *x)) return false;
  }
  return true;
}

/* Leading rows of axis 0 that a slice needs; INT64_MAX: unknown. */
static i64 rows_read(const Node *n) {
  u32 rank;
  const Dim *start = node_list(n, AT_start, &rank), *size = node_list(n, AT_size, &rank);
  const Dim *step = node_list(n, AT_step, &rank);
  if (!rank || !dim_is_const(start[0]) || !dim_is_const(size[0]) || !size[0]) return INT64_MAX;
  return step[0] < 0 ? start[0] + 1 : start[0] + (size[0] - 1) * step[0] + 1;
}

static void see_use(Graph *g, Canon *k, RegionId b, NodeId id, Val v) {
  const Node *n = graph_node(g, id);
  bool slice = n->op == OP_slice;
  i64 rows = slice ? rows_read(n) : INT64_MAX;
  if (rows > k->rows[v]) k->rows[v] = rows;
  bool same = slice && k->home[v] == b && k->cut[v] != CUT_MANY &&
              (!k->cut[v] || same_slice(g, k->cut[v], id));
  k->cut[v] = same ? id : CUT_MANY;
}

void canon_find_slices(Graph *g, Canon *k) {
  Arena *a = &g->c->scratch;
  k->cut = NEWS(a, NodeId, k->n);
  k->part = NEWS(a, Val, k->n);
  k->home = NEWS(a, RegionId, k->n);
  k->rows = NEWS(a, i64, k->n);
  for (RegionId b = 1; b < g->region.n; b++)
    for (u32 i = 0; i < g->region.at[b].node.n; i++) {
      const Node *n = graph_node(g, g->region.at[b].node.at[i]);
      for (u32 j = 0; j < n->nout; j++) k->home[n->out[j]] = b;
    }
  for (RegionId b = 1; b < g->region.n; b++) {
    const GraphRegion *x = &g->region.at[b];
    for (u32 i = 0; i < x->node.n; i++) {
      const Node *n = graph_node(g, x->node.at[i]);
      for (u32 j = 0; j < n->nin; j++)
        if (n->in[j]) see_use(g, k, b, x->node.at[i], n->in[j]);
    }
    for (u32 i = 0; i < x->ret.n; i++) {
      k->cut[x->ret.at[i]] = CUT_MANY;
      k->rows[x->ret.at[i]] = INT64_MAX;
    }
  }
}

/* ---- slices ---- */

/* The part that a slice reads, if it is contiguous and less than the whole. */
static bool box_of(Graph *g, const Node *n, SliceBox *b) {
  const Type *t = graph_type(g, n->in[0]);
  const Dim *start = node_list(n, AT_start, &b->rank), *size = node_list(n, AT_size, &b->rank);
  const Dim *step = node_list(n, AT_step, &b->rank);
  bool less = false;
  for (u32 i = 0; i < b->rank; i++) {
    if (!dim_is_const(t->dim[i]) || !dim_is_const(start[i]) || !dim_is_const(size[i])) return false;
    if (!size[i] || (step[i] != 1 && size[i] != 1)) return false;
    b->start[i] = start[i];
    b->size[i] = size[i];
    less = less || size[i] != t->dim[i];
  }
  return less;
}

static bool reduces(Op op) {
  return op_info[op].kind == OK_REDUCE && op_is(op, OF_REDUCES) && op != OP_resume_sum;
}

/* The axis of a reshape's operand that equals the one sliced axis of its result; MAX_RANK: none. */
static u32 axis_after(Graph *g, const Node *n, const SliceBox *b, u32 *cut) {
  const Type *in = graph_type(g, n->in[0]), *out = graph_type(g, n->out[0]);
  i64 before = 1, at = 1;
  u32 many = 0;
  for (u32 i = 0; i < b->rank; i++)
    if (b->size[i] != out->dim[i]) {
      *cut = i;
      many++;
    }
  for (u32 i = 0; many == 1 && i < *cut; i++) before *= out->dim[i];
  for (u32 i = 0; many == 1 && i < in->rank && dim_is_const(in->dim[i]); i++) {
    if (at == before && in->dim[i] == out->dim[*cut]) return i;
    at *= in->dim[i];
  }
  return MAX_RANK;
}

/* Can the operands of the node be sliced instead of its result? */
static bool divides(Graph *g, const Node *n, const SliceBox *b) {
  u32 cut;
  if (op_is_elementwise(n->op)) return true;
  switch (n->op) { /* each operator needs its own slicing, see `part_of` */
  case OP_transpose:
  case OP_broadcast:
  case OP_slice:
  case OP_contract: return true;
  case OP_reshape: return axis_after(g, n, b, &cut) < MAX_RANK;
  case OP_concat: {
    i64 axis = node_int(n, AT_axis, 0);
    return b->size[axis] == graph_type(g, n->out[0])->dim[axis];
  }
  default: return reduces(n->op);
  }
}

/* Box of an operand that is broadcast from the right. */
static SliceBox box_aligned(Graph *g, Val v, const SliceBox *b) {
  const Type *t = graph_type(g, v);
  SliceBox x = {.rank = t->rank};
  for (u32 i = 0; i < t->rank; i++) {
    u32 k = b->rank - t->rank + i;
    bool one = t->dim[i] == 1;
    x.start[i] = one ? 0 : b->start[k];
    x.size[i] = one ? 1 : b->size[k];
  }
  return x;
}

/* Box of operand k of a contraction: axes of the result are sliced, summed axes are whole. */
static SliceBox box_contract(Graph *g, const Node *n, u32 k, const SliceBox *b) {
  const Type *t = graph_type(g, n->in[k]);
  const char *spec = str_text(g->c, node_attr(n, AT_spec)->u.s);
  const char *in = k ? strchr(spec, ',') + 1 : spec, *out = strchr(spec, '>') + 1;
  SliceBox x = {.rank = t->rank};
  for (u32 i = 0; i < t->rank; i++) {
    const char *at = strchr(out, in[i]);
    x.start[i] = at ? b->start[at - out] : 0;
    x.size[i] = at ? b->size[at - out] : t->dim[i];
  }
  return x;
}

static SliceBox box_reduce(Graph *g, const Node *n, const SliceBox *b) {
  const Type *t = graph_type(g, n->in[0]);
  u32 naxes, at = 0;
  const Dim *axes = node_list(n, AT_axes, &naxes);
  bool keep = node_int(n, AT_keep, 0) != 0;
  SliceBox x = {.rank = t->rank};
  for (u32 i = 0; i < t->rank; i++) {
    bool gone = false;
    for (u32 k = 0; k < naxes; k++) gone = gone || axes[k] == (Dim)i;
    x.start[i] = gone ? 0 : b->start[at];
    x.size[i] = gone ? t->dim[i] : b->size[at];
    at += !gone || keep;
  }
  return x;
}

static SliceBox box_transpose(const Node *n, const SliceBox *b) {
  SliceBox x = {.rank = b->rank};
  u32 rank;
  const Dim *perm = node_list(n, AT_perm, &rank);
  for (u32 i = 0; i < rank; i++) {
    x.start[perm[i]] = b->start[i];
    x.size[perm[i]] = b->size[i];
  }
  return x;
}

static SliceBox box_reshape(Graph *g, const Node *n, const SliceBox *b) {
  const Type *t = graph_type(g, n->in[0]);
  SliceBox x = {.rank = t->rank};
  u32 cut, axis = axis_after(g, n, b, &cut);
  for (u32 i = 0; i < t->rank; i++) {
    x.start[i] = i == axis ? b->start[cut] : 0;
    x.size[i] = i == axis ? b->size[cut] : t->dim[i];
  }
  return x;
}

static SliceBox box_concat(Graph *g, const Node *n, u32 k, const SliceBox *b) {
  SliceBox x = *b;
  i64 axis = node_int(n, AT_axis, 0);
  x.size[axis] = graph_type(g, n->in[k])->dim[axis];
  return x;
}

/* Box that a slice reads of its operand, in any order. Symbolic starts count as 0. */
static SliceBox box_slice(const Node *n, const SliceBox *b) {
  SliceBox x = *b;
  u32 rank;
  const Dim *start = node_list(n, AT_start, &rank), *step = node_list(n, AT_step, &rank);
  for (u32 i = 0; i < rank; i++) {
    Dim first = dim_is_const(start[i]) ? start[i] : 0;
    x.start[i] = first + step[i] * (step[i] < 0 ? b->start[i] + b->size[i] - 1 : b->start[i]);
    x.size[i] = (b->size[i] - 1) * (step[i] < 0 ? -step[i] : step[i]) + 1;
  }
  return x;
}

/* Part of operand k that box b of the result needs. */
static SliceBox box_in(Graph *g, const Node *n, u32 k, const SliceBox *b) {
  if (n->op < OP_SCALARS || n->op == OP_broadcast) return box_aligned(g, n->in[k], b);
  switch (n->op) { /* as in `divides` */
  case OP_contract: return box_contract(g, n, k, b);
  case OP_transpose: return box_transpose(n, b);
  case OP_reshape: return box_reshape(g, n, b);
  case OP_concat: return box_concat(g, n, k, b);
  case OP_slice: return box_slice(n, b);
  default: return box_reduce(g, n, b);
  }
}

/* Can the node compute a part of its result? An operand read in part must have a known extent
 * there, because an unknown one may be 1 and broadcast, or not match. */
static bool passes(Graph *g, const Node *n, const SliceBox *b) {
  if (!divides(g, n, b)) return false;
  for (u32 k = 0; k < n->nin; k++) {
    const Type *t = graph_type(g, n->in[k]);
    SliceBox x = box_in(g, n, k, b);
    for (u32 i = 0; i < t->rank; i++)
      if (!dim_is_const(t->dim[i]) && x.size[i] != t->dim[i]) return false;
  }
  return true;
}

/* Builds box b of the result of a node from parts of its operands. */
static Val part_of(Graph *g, Node n, const SliceBox *b) {
  Val *in = NEWS(&g->c->scratch, Val, n.nin);
  g->loc = n.loc;
  for (u32 i = 0; i < n.nin; i++) {
    SliceBox x = box_in(g, &n, i, b);
    in[i] = mk_slice(g, n.in[i], x.start, x.size, NULL);
  }
  if (n.op == OP_reshape) return mk_reshape(g, in[0], b->size, b->rank);
  if (n.op == OP_broadcast) return mk_broadcast(g, in[0], b->size, b->rank);
  return mk_node(g, n.op, in, n.nin, n.attr, n.nattr);
}

/* Is there work above that a part would save? 1: yes; 0: no, but harmless; -1: a reduction that has
 * an epilogue only if its users read all of it. *left: number of values that may still be
 * visited. */
static i32 saves(GraphEdit *e, Val v, const SliceBox *b, u32 depth, u32 *left) {
  Graph *g = e->g;
  const Canon *k = e->user;
  NodeId def = graph_val(g, v)->def;
  if (!def || v >= k->n || graph_const(g, v)) return 0;
  const Node *n = graph_node(g, def);
  OpKind kind = op_info[n->op].kind;
  if (n->op == OP_conv || kind == OK_WINDOW) return -1;
  if (n->op == OP_contract || reduces(n->op) || n->op == OP_loop) return 1;
  if (!depth || !passes(g, n, b)) return 0;
  if (!*left) return -1; /* gives up */
  --*left;
  i32 found = 0;
  for (u32 i = 0; i < n->nin; i++) {
    SliceBox x = box_in(g, n, i, b);
    i32 got = saves(e, n->in[i], &x, depth - 1, left);
    if (got < 0) return got;
    found |= got;
  }
  return found;
}

/* slice(op(x)) -> op(slice(x)) if this is all that is read of op(x) */
bool canon_slice_up(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Canon *k = e->user;
  Node n = *graph_node(g, id);
  Val v = n.in[0];
  SliceBox b;
  if (v >= k->n || !k->cut[v] || k->cut[v] == CUT_MANY || !graph_val(g, v)->def) return false;
  if (k->part[v]) return edit_swap(e, id, k->part[v]);
  const Node *x = graph_node(g, graph_val(g, v)->def);
  if (x->op == OP_slice || !box_of(g, &n, &b) || !passes(g, x, &b)) return false;
  bool summed = x->op == OP_contract || reduces(x->op);
  u32 left = CUT_VISITS;
  for (u32 i = 0, found = summed; i < x->nin && !summed; i++) {
    SliceBox in = box_in(g, x, i, &b);
    i32 got = saves(e, x->in[i], &in, CUT_DEPTH, &left);
    found |= got > 0;
    if (got < 0 || (i + 1 == x->nin && !found)) return false;
  }
  k->part[v] = part_of(g, *x, &b);
  return edit_swap(e, id, k->part[v]);
}

/* Number of rows of the loop's scan outputs that are read; -1: carried values are results. */
static i64 rows_needed(const Canon *k, const Node *n, u32 carried) {
  i64 most = 0;
  for (u32 i = 0; i < n->nout; i++) {
    if (n->out[i] >= k->n || (i < carried && k->uses[n->out[i]])) return -1;
    if (k->rows[n->out[i]] > most) most = k->rows[n->out[i]];
  }
  return most;
}

/* Shortens values from outside that the body reads row by row. */
static void shorten_inputs(GraphEdit *e, NodeId id, i64 n) {
  Graph *g = e->g;
  Canon *k = e->user;
  RegionId b = graph_node(g, id)->region[0];
  Val i = g->region.at[b].param.at[0];
  for (u32 at = 0; at < g->region.at[b].node.n; at++) {
    NodeId use = g->region.at[b].node.at[at];
    const Node *x = graph_node(g, use);
    if (x->op != OP_gather || x->in[1] != i || node_int(x, AT_axis, 0)) continue;
    Val v = x->in[0];
    Dim d = graph_type(g, v)->dim[0];
    if (v >= k->n || k->home[v] == b || !k->home[v] || !dim_is_const(d) || d <= n) continue;
    Val part = mk_slice_axis(g, edit_current(e, v), 0, 0, n);
    graph_node(g, use)->in[0] = part;
  }
}

static void shorten(GraphEdit *e, NodeId id, i64 n, u32 carried) {
  Graph *g = e->g;
  Val trip = mk_scalar(g, DT_i64, (double)n);
  shorten_inputs(e, id, n);
  Node *x = graph_node(g, id);
  x->in[0] = trip;
  for (u32 i = carried; i < x->nout; i++) {
    Type *t = graph_type(g, x->out[i]);
    Dim *dim = arena_copy(&g->c->work, t->dim, t->rank * sizeof *dim);
    dim[0] = n;
    t->dim = dim;
  }
  e->changed = true;
}

/* Replaces a loop with one iteration by its body. */
static bool unroll_one(GraphEdit *e, NodeId id, u32 carried) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  const GraphRegion *body = &g->region.at[n.region[0]];
  u32 nret = body->ret.n;
  Val *ret = NEWS(&g->c->scratch, Val, nret);
  for (u32 i = 0; i < carried; i++) /* a body that changes the type is left alone */
    if (!type_equal(graph_type(g, n.in[2 + i]), graph_type(g, n.out[i]))) return false;
  Val zero = mk_scalar(g, DT_i64, 0);
  for (u32 i = 0; i < carried + 2; i++)
    edit_replace(e, g->region.at[n.region[0]].param.at[i], i ? n.in[i] : zero);
  edit_inline(e, n.region[0], ret);
  for (u32 i = 0; i < n.nout; i++) {
    Type t = *graph_type(g, n.out[i]);
    edit_replace(e, n.out[i], i < carried ? ret[1 + i] : mk_reshape(g, ret[1 + i], t.dim, t.rank));
  }
  return true;
}

/* loop of n rows, of which m are read -> loop of m rows; loop of 1 -> its body */
bool canon_loop(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  u32 carried = n->nin - 2;
  i64 count = loop_trip_count(g, n);
  if (n->nsym) return false;
  if (count == 1) return unroll_one(e, id, carried);
  i64 rows = rows_needed(e->user, n, carried);
  if (count > 1 && rows > 0 && rows < count) shorten(e, id, rows, carried);
  return false;
}
