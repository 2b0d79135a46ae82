/* canon_view.c: canon rules that move transposes and reshapes.
 *
 * In: a node. Out: a transpose moves up through elementwise nodes, joins and pads if every path
 * ends at transposes, contractions or constants, so that two become one or none. Reshapes move up
 * in the same way. A reduction reads the operand of a transpose directly. Axes that a reduction
 * drops are dropped by the reduction itself, not by a reshape after it. Only values with one use
 * are rebuilt.
 */
#include <string.h>
#include "pass/graph/canon.h"

enum { UP_DEPTH = 12, UP_NODES = 32 };

/* A search upwards from a view. */
typedef struct ViewWalk {
  GraphEdit *e;
  const i64 *perm;       /* transpose */
  const Type *from, *to; /* reshape: shape of the maps, and their new shape */
  u32 nodes, gain;
} ViewWalk;

static bool single(Graph *g, Val v) {
  return type_count(g->dims, graph_type(g, v)) == 1;
}

static Val rebuilt(Graph *g, const Node *n, const Val *in, const Attr *at) {
  return mk_node(g, n->op, in, n->nin, at, n->nattr);
}

/* ---- transposes ---- */

/* Can v, an operand of rank `rank` after broadcasting, be transposed without a new transpose? */
static bool can_transpose(ViewWalk *u, Val v, u32 rank, u32 depth) {
  Graph *g = u->e->g;
  if (single(g, v) || graph_const(g, v)) return true;
  const Node *n = graph_producer(g, v);
  if (!n || graph_type(g, v)->rank != rank || !depth || ++u->nodes > UP_NODES) return false;
  if (n->op == OP_transpose || (n->op == OP_contract && canon_one_use(u->e, v))) {
    u->gain++; /* the spec of a contraction absorbs a transpose */
    return true;
  }
  bool passes = op_is_elementwise(n->op) || op_info[n->op].kind == OK_JOIN;
  if (!passes || !canon_one_use(u->e, v)) return false;
  u32 nin = n->op == OP_pad ? 1 : n->nin;
  for (u32 i = 0; i < nin; i++)
    if (!can_transpose(u, n->in[i], rank, depth - 1)) return false;
  return true;
}

static Val transposed(ViewWalk *u, Val v, u32 rank);

static Val transposed_node(ViewWalk *u, const Node *was, u32 rank) {
  Graph *g = u->e->g;
  Node n = *was;
  Val *in = NEWS(&g->c->scratch, Val, n.nin);
  Attr at[8];
  Dim list[3][MAX_RANK];
  u32 nlist = 0, count;
  for (u32 i = 0; i < n.nin; i++)
    in[i] = n.op == OP_pad && i ? n.in[i] : transposed(u, n.in[i], rank);
  for (u32 i = 0; i < n.nattr; i++) {
    at[i] = n.attr[i];
    if (n.op == OP_concat && at[i].key == AT_axis) {
      i64 axis = at[i].u.i;
      for (u32 k = 0; k < rank; k++)
        if (u->perm[k] == axis) at[i].u.i = k;
    }
    if (n.op != OP_pad) continue;
    const Dim *old = node_list(&n, at[i].key, &count);
    for (u32 k = 0; k < rank; k++) list[nlist][k] = old[u->perm[k]];
    at[i].u.list = list[nlist++];
  }
  g->loc = n.loc;
  return rebuilt(g, &n, in, at);
}

static Val transposed(ViewWalk *u, Val v, u32 rank) {
  Graph *g = u->e->g;
  const Node *n = graph_producer(g, v);
  Type t = *graph_type(g, v);
  if (single(g, v) && t.rank < rank) return v;
  if (graph_const(g, v) || single(g, v)) {
    Dim dim[MAX_RANK];
    for (u32 i = 0; i < rank; i++) dim[i] = i < rank - t.rank ? 1 : t.dim[i - (rank - t.rank)];
    return mk_transpose(g, mk_reshape(g, v, dim, rank), u->perm);
  }
  if (n->op == OP_contract) return mk_transpose(g, v, u->perm);
  if (n->op != OP_transpose) return transposed_node(u, n, rank);
  u32 count;
  const Dim *inner = node_list(n, AT_perm, &count);
  i64 both[MAX_RANK];
  for (u32 i = 0; i < rank; i++) both[i] = inner[u->perm[i]];
  return mk_transpose(g, n->in[0], both);
}

/* transpose(map(transpose(x), k)) -> map(x, k') */
bool canon_transpose_up(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  u32 rank;
  ViewWalk u = {.e = e, .perm = node_list(&n, AT_perm, &rank)};
  const Node *x = graph_producer(g, n.in[0]);
  if (!x || x->op == OP_transpose || x->op == OP_const || x->op == OP_contract) return false;
  if (single(g, n.in[0])) return false;
  if (!can_transpose(&u, n.in[0], rank, UP_DEPTH) || !u.gain) return false;
  return edit_swap(e, id, transposed(&u, n.in[0], rank));
}

/* ---- reshapes ---- */

/* Is v a reduction with one use that has this shape if it drops, or keeps, its reduced axes?
 * (Excludes resume_sum, whose initial value would change shape.) */
static bool keeps_otherwise(GraphEdit *e, Val v, const Type *want) {
  Graph *g = e->g;
  const Node *r = graph_producer(g, v);
  if (!r || op_info[r->op].kind != OK_REDUCE || r->nin != 1 || !canon_one_use(e, v)) return false;
  const Type *x = graph_type(g, r->in[0]);
  bool arg = !op_is(r->op, OF_REDUCES), keep = want->rank == x->rank;
  u32 naxes = 1;
  Dim own = node_int(r, AT_axis, 0);
  const Dim *axes = arg ? &own : node_list(r, AT_axes, &naxes);
  if (keep == (node_int(r, AT_keep, 0) != 0)) return false;
  if (!keep && want->rank + naxes != x->rank) return false;
  for (u32 i = 0, at = 0; i < x->rank; i++) {
    bool gone = false;
    for (u32 k = 0; k < naxes; k++) gone = gone || axes[k] == (Dim)i;
    if (gone && !keep) continue;
    if (want->dim[at++] != (gone ? 1 : x->dim[i])) return false;
  }
  return true;
}

static Val reduced(Graph *g, const Node *was, const Type *want) {
  Node r = *was;
  bool keep = want->rank == graph_type(g, r.in[0])->rank;
  u32 naxes;
  g->loc = r.loc;
  if (!op_is(r.op, OF_REDUCES))
    return mk_arg(g, r.op, r.in[0], node_int(&r, AT_axis, 0), keep, node_int(&r, AT_last, 0) != 0);
  const Dim *axes = node_list(&r, AT_axes, &naxes);
  return mk_reduce(g, r.op, r.in[0], axes, naxes, keep);
}

/* Does t broadcast against equal last axes of both shapes? */
static bool fits_both(const ViewWalk *u, const Type *t) {
  if (t->rank > u->from->rank || t->rank > u->to->rank) return false;
  for (u32 i = 1; i <= t->rank; i++)
    if (u->from->dim[u->from->rank - i] != u->to->dim[u->to->rank - i]) return false;
  return true;
}

static bool can_reshape(ViewWalk *u, Val v, u32 depth) {
  Graph *g = u->e->g;
  const Type *t = graph_type(g, v);
  if (single(g, v) && t->rank <= u->to->rank) return true;
  bool whole = type_has_shape(t, u->from->dim, u->from->rank);
  if (graph_const(g, v)) return whole || fits_both(u, t);
  const Node *n = graph_producer(g, v);
  if (!whole || !n || !depth || ++u->nodes > UP_NODES) return false;
  if (n->op == OP_reshape || keeps_otherwise(u->e, v, u->to)) {
    u->gain++;
    return true;
  }
  if (!op_is_elementwise(n->op) || !canon_one_use(u->e, v)) return false;
  for (u32 i = 0; i < n->nin; i++)
    if (!can_reshape(u, n->in[i], depth - 1)) return false;
  return true;
}

static Val reshaped(ViewWalk *u, Val v) {
  Graph *g = u->e->g;
  const Node *at = graph_producer(g, v);
  Type t = *graph_type(g, v);
  if (!type_has_shape(&t, u->from->dim, u->from->rank) || (single(g, v) && t.rank <= u->to->rank))
    return v;
  if (!at || at->op == OP_const) return mk_reshape(g, v, u->to->dim, u->to->rank);
  Node n = *at;
  if (n.op == OP_reshape) return mk_reshape(g, n.in[0], u->to->dim, u->to->rank);
  if (n.op >= OP_SCALARS) return reduced(g, &n, u->to);
  Val in[3];
  for (u32 i = 0; i < n.nin; i++) in[i] = reshaped(u, n.in[i]);
  g->loc = n.loc;
  return rebuilt(g, &n, in, n.attr);
}

/* reshape(map(reshape(x), k)) -> map(reshape(x), k), and reshape(cast(x)) -> cast(reshape(x)) if
 * the cast widens an integer, since a reshape needs its operand in memory. */
bool canon_reshape_up(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  Type from = *graph_type(g, n.in[0]), to = *graph_type(g, n.out[0]);
  ViewWalk u = {.e = e, .from = &from, .to = &to};
  const Node *x = graph_producer(g, n.in[0]);
  if (!x || x->op >= OP_SCALARS) return false;
  if (canon_one_use(e, n.in[0]) && node_is_widening(g, x)) {
    Node cast = *x;
    Val in = mk_reshape(g, cast.in[0], to.dim, to.rank);
    return edit_swap(e, id, rebuilt(g, &cast, &in, cast.attr));
  }
  if (!can_reshape(&u, n.in[0], UP_DEPTH) || !u.gain) return false;
  return edit_swap(e, id, reshaped(&u, n.in[0]));
}

/* ---- reductions ---- */

static bool ascending(const i64 *x, u32 n) {
  for (u32 i = 1; i < n; i++)
    if (x[i] < x[i - 1]) return false;
  return true;
}

static void sort(i64 *x, u32 n) {
  for (u32 i = 1; i < n; i++)
    for (u32 k = i; k && x[k] < x[k - 1]; k--) {
      i64 t = x[k];
      x[k] = x[k - 1];
      x[k - 1] = t;
    }
}

/* reduce(transpose(x)) -> transpose(reduce(x)): transposing the smaller result is cheaper. Leaves
 * the graph alone if x has other readers after the transpose: norms need both in one layout. */
bool canon_reduce_view(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  const Node *t = canon_one_use_def(e, n.in[0], OP_transpose);
  u32 rank, naxes, left = 0;
  const Dim *axes = node_list(&n, AT_axes, &naxes);
  bool keep = node_int(&n, AT_keep, 0) != 0, gone[MAX_RANK] = {0};
  i64 to[MAX_RANK], rest[MAX_RANK], back[MAX_RANK], place[MAX_RANK];
  if (!t && !ascending(axes, naxes)) {
    memcpy(to, axes, naxes * sizeof *to);
    sort(to, naxes);
    return edit_swap(e, id, mk_reduce(g, n.op, n.in[0], to, naxes, keep));
  }
  if (!t) return false;
  const Dim *perm = node_list(t, AT_perm, &rank);
  for (u32 i = 0; i < naxes; i++) {
    to[i] = perm[axes[i]];
    gone[axes[i]] = true;
  }
  sort(to, naxes);
  Val v = mk_reduce(g, n.op, t->in[0], to, naxes, keep);
  if (keep) return edit_swap(e, id, mk_transpose(g, v, perm));
  for (u32 i = 0; i < rank; i++)
    if (!gone[i]) rest[left++] = perm[i];
  if (ascending(rest, left)) return edit_swap(e, id, v);
  memcpy(place, rest, left * sizeof *place);
  sort(place, left);
  for (u32 i = 0; i < left; i++)
    for (u32 k = 0; k < left; k++)
      if (place[k] == rest[i]) back[i] = k;
  return edit_swap(e, id, mk_transpose(g, v, back));
}

/* reshape(reduce(x)) that only inserts or removes the reduced axes */
bool canon_keep(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  Type want = *graph_type(g, n.out[0]);
  if (!keeps_otherwise(e, n.in[0], &want)) return false;
  return edit_swap(e, id, reduced(g, graph_producer(g, n.in[0]), &want));
}

/* A pool whose window is the whole image becomes a reduction. */
bool canon_global_pool(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  Type x = *graph_type(g, n.in[0]), out = *graph_type(g, n.out[0]);
  NodeWindow w = node_window(g, &n);
  i64 axes[MAX_RANK];
  for (u32 i = 0; i < w.n; i++) {
    u32 k = x.rank - w.n + i;
    bool whole = w.size[i] == x.dim[k] && w.dilation[i] == 1 && !w.lo[i] && !w.hi[i];
    if (!whole || out.dim[k] != 1) return false;
    axes[i] = k;
  }
  Op op = n.op == OP_pool_sum ? OP_reduce_sum : OP_reduce_max;
  return w.n && edit_swap(e, id, mk_reduce(g, op, n.in[0], axes, w.n, true));
}
