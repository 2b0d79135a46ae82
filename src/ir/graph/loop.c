/* loop.c: builds loops.
 *
 * In: a function that builds the body. Out: the node. For loops of models, loop_simplify runs in
 * between:
 * - trip_count.c derives the trip count.
 * - A loop-invariant carried value becomes the value from outside.
 * - An induction variable is computed from the iteration number, which gives it bounds; its result
 * follows from the trip count.
 * - A value that every iteration only appends to becomes a scan, because carried values keep their
 * shape. If only some iterations append, their conditions become a second scan that selects rows.
 * Exporters without constants in bodies carry weights, and their own counters next to that of the
 * loop; scripts collect results with Concat. */
#include "ir/graph/loop.h"

LoopDraft loop_draft(Graph *g, Val trip, Val cond, Val *carried, u32 ncarried, Val *scan, u32 nscan,
                     BodyFn *body, void *user) {
  Arena *a = &g->c->work;
  RegionId outer = g->cur;
  LoopDraft d = {.nscan = nscan};
  CountedLoop *c = &d.count;
  Val *init = NEWS(a, Val, ncarried + 1), *param = NEWS(a, Val, ncarried + 1),
      *next = NEWS(a, Val, ncarried + 1);
  d.instead = NEWS(a, Val, ncarried + 1);
  d.grows = NEWS(a, u32, ncarried + 1);
  d.some = NEWS(a, bool, ncarried + 1);
  c->trip = trip;
  c->cond = cond ? cond : mk_scalar(g, DT_bool, 1);
  c->n = ncarried;
  c->nsyms = dim_nsyms(g->dims);
  d.body = graph_region(g, 0);
  c->i = graph_param(g, d.body, type_tensor(a, DT_i64, NULL, 0), 0);
  c->go = graph_param(g, d.body, type_tensor(a, DT_bool, NULL, 0), 0);
  for (u32 k = 0; k < ncarried; k++) {
    init[k] = carried[k];
    param[k] = next[k] = graph_param(g, d.body, *graph_type(g, carried[k]), 0);
  }
  c->more = c->go;
  g->cur = d.body;
  body(g, user, c->i, &c->more, next, scan);
  GraphRegion *b = &g->region.at[d.body];
  *vec_push(a, &b->ret) = c->more;
  for (u32 k = 0; k < ncarried; k++) *vec_push(a, &b->ret) = next[k];
  for (u32 k = 0; k < nscan; k++) *vec_push(a, &b->ret) = scan[k];
  g->cur = outer;
  c->init = init;
  c->param = param;
  c->next = next;
  return d;
}

/* ---- carried values that can be removed ---- */

/* Replacements of the carried parameters, whose ids are consecutive. */
typedef struct Swap {
  Val first;
  u32 n;
  Val *by;   /* 0: not replaced */
  u32 *uses; /* by value: uses by nodes and results */
} Swap;

static void swap_one(const Swap *s, Val *v) {
  u32 k = *v - s->first;
  if (*v < s->first || k >= s->n) return;
  s->uses[k]++;
  if (s->by[k]) *v = s->by[k];
}

/* Regions inside the body have larger ids than the body. */
static void swap_all(Graph *g, RegionId body, const Swap *s) {
  for (RegionId b = body; b < g->region.n; b++) {
    GraphRegion *k = &g->region.at[b];
    for (u32 i = 0; i < k->node.n; i++) {
      Node *n = graph_node(g, k->node.at[i]);
      for (u32 j = 0; j < n->nin; j++) swap_one(s, &n->in[j]);
    }
    for (u32 i = 0; i < k->ret.n; i++) swap_one(s, &k->ret.at[i]);
  }
}

/* init + step * i in the type of the counter. An unsigned counter with a negative step is a
 * difference, which wraps like its increments. */
static Val counter_at(Graph *g, Val init, i64 step, Val i) {
  DType dt = graph_type(g, init)->dt;
  Val v = mk_cast(g, i, dt);
  double far = step < 0 ? -(double)step : (double)step;
  if (far != 1) v = mk_mul(g, v, mk_scalar(g, dt, far));
  return mk_map2(g, step < 0 ? OP_sub : OP_add, init, v);
}

/* Moves the nodes from the m-th on before the others. */
static void to_front(Graph *g, RegionId body, u32 m) {
  GraphRegion *b = &g->region.at[body];
  u32 n = b->node.n - m;
  NodeId *moved = NEWS(&g->c->scratch, NodeId, n + 1);
  for (u32 i = 0; i < n; i++) moved[i] = b->node.at[m + i];
  for (u32 i = m; i-- > 0;) b->node.at[i + n] = b->node.at[i];
  for (u32 i = 0; i < n; i++) b->node.at[i] = moved[i];
}

/* A counter that is only read by its own increment stays, unless its result is known. */
static void replace_counter(Graph *g, LoopDraft *d, u32 k, i64 step, bool exact, const Swap *s) {
  const CountedLoop *c = &d->count;
  RegionId outer = g->cur;
  if (exact) {
    Val times = mk_max(g, c->trip, mk_scalar(g, DT_i64, 0));
    d->instead[k] = counter_at(g, c->init[k], step, times);
  }
  if (!exact && s->uses[k] < 2) return;
  g->cur = d->body;
  s->by[k] = counter_at(g, c->init[k], step, c->i);
  g->cur = outer;
}

static u32 uses_of(Graph *g, RegionId body, Val v) {
  u32 n = 0;
  for (RegionId b = body; b < g->region.n; b++) {
    const GraphRegion *k = &g->region.at[b];
    for (u32 i = 0; i < k->node.n; i++) {
      const Node *x = graph_node(g, k->node.at[i]);
      for (u32 j = 0; j < x->nin; j++) n += x->in[j] == v;
    }
    for (u32 i = 0; i < k->ret.n; i++) n += k->ret.at[i] == v;
  }
  return n;
}

static void remove_node(GraphRegion *b, NodeId id) {
  u32 n = 0;
  for (u32 i = 0; i < b->node.n; i++)
    if (b->node.at[i] != id) b->node.at[n++] = b->node.at[i];
  b->node.n = n;
}

/* next = concat(p, new) without other readers: new becomes a scan, in the shape of p except along
 * the axis. */
static void stack_instead(Graph *g, LoopDraft *d, u32 k, const Swap *s) {
  const CountedLoop *c = &d->count;
  NodeId def = graph_val(g, c->next[k])->def;
  const Node *n = def ? graph_node(g, def) : NULL;
  if (!n || n->op != OP_concat || n->nin != 2 || n->in[0] != c->param[k] || s->uses[k] != 1) return;
  u32 axis = (u32)node_int(n, AT_axis, 0);
  const Type *p = graph_type(g, c->param[k]);
  Val more = n->in[1];
  Dim dim[MAX_RANK];
  if (p->rank == MAX_RANK || uses_of(g, d->body, c->next[k]) != 1) return;
  for (u32 i = 0; i < p->rank; i++) dim[i] = i == axis ? graph_type(g, more)->dim[i] : p->dim[i];
  RegionId outer = g->cur;
  g->cur = d->body;
  more = mk_reshape(g, more, dim, p->rank);
  g->cur = outer;
  remove_node(&g->region.at[d->body], def);
  *vec_push(&g->c->work, &g->region.at[d->body].ret) = more;
  d->grows[k] = axis + 1;
}

/* The node no longer sets the symbols of this type. */
static void drop_symbols(Graph *g, Node *n, const Type *t) {
  u32 left = 0;
  for (u32 i = 0; i < n->nsym; i++) {
    bool used = false;
    for (u32 k = 0; k < t->rank; k++) used = used || dim_mentions(g->dims, t->dim[k], n->sym[i]);
    if (!used) n->sym[left++] = n->sym[i];
  }
  n->nsym = left;
}

/* next = if(c) {concat(p, new)} else {p}, or the other way around: the If returns new or zeros,
 * which become a scan, and c becomes another one. */
static void stack_if(Graph *g, LoopDraft *d, u32 k, const Swap *s) {
  const CountedLoop *c = &d->count;
  NodeId id = graph_val(g, c->next[k])->def;
  Node *n = id ? graph_node(g, id) : NULL;
  if (!n || n->op != OP_if || s->uses[k] != 2 || uses_of(g, d->body, c->next[k]) != 1) return;
  u32 pos = graph_val(g, c->next[k])->pos;
  u32 then = g->region.at[n->region[0]].ret.at[pos] == c->param[k];
  RegionId grown = n->region[then], same = n->region[!then], outer = g->cur;
  Val joined = g->region.at[grown].ret.at[pos];
  NodeId def = graph_val(g, joined)->def;
  const Node *x = def ? graph_node(g, def) : NULL;
  if (g->region.at[same].ret.at[pos] != c->param[k] || !x || x->op != OP_concat || x->nin != 2 ||
      x->in[0] != c->param[k] || uses_of(g, d->body, joined) != 1)
    return;
  u32 axis = (u32)node_int(x, AT_axis, 0);
  const Type *p = graph_type(g, c->param[k]);
  Val more = x->in[1], cond = n->in[0];
  Dim dim[MAX_RANK];
  if (p->rank == MAX_RANK) return;
  for (u32 i = 0; i < p->rank; i++) dim[i] = i == axis ? graph_type(g, more)->dim[i] : p->dim[i];
  remove_node(&g->region.at[grown], def);
  g->cur = grown;
  more = mk_reshape(g, more, dim, p->rank);
  g->region.at[grown].ret.at[pos] = more;
  g->cur = same;
  Val zero = mk_const(g, tensor_new(&g->c->work, p->dt, NULL, 0));
  zero = mk_broadcast(g, zero, dim, p->rank);
  g->region.at[same].ret.at[pos] = zero;
  drop_symbols(g, graph_node(g, id), graph_type(g, c->next[k]));
  graph_val(g, c->next[k])->type = *graph_type(g, more);
  g->cur = d->body;
  if (then) cond = mk_not(g, cond);
  g->cur = outer;
  *vec_push(&g->c->work, &g->region.at[d->body].ret) = c->next[k];
  *vec_push(&g->c->work, &g->region.at[d->body].ret) = cond;
  d->grows[k] = axis + 1;
  d->some[k] = true;
}

/* [T, .., m, ..] -> [.., T * m, ..], appended to init. some: flags of kept rows; 0: all. */
static Val unstack(Graph *g, Val init, Val rows, Val some, u32 axis) {
  if (some && graph_type(g, rows)->dim[0] == 0) return init;
  if (some) rows = mk_gather(g, rows, mk_squeeze(g, mk_nonzero(g, some), 0), 0);
  Type t = *graph_type(g, rows);
  i64 perm[MAX_RANK];
  Dim dim[MAX_RANK];
  for (u32 i = 0; i < t.rank; i++) perm[i] = i < axis ? i + 1 : i == axis ? 0 : i;
  for (u32 i = 0; i + 1 < t.rank; i++)
    dim[i] = i == axis ? dim_mul(g->dims, t.dim[0], t.dim[i + 1]) : t.dim[i + 1];
  Val part[2] = {init, mk_reshape(g, mk_transpose(g, rows, perm), dim, t.rank - 1)};
  return mk_concat(g, part, 2, axis);
}

/* A loop of unknown length that checks base + i against an axis of k elements in each iteration i
 * stops the run in iteration 2k or before: its trip count is at most 2k + 1. */
static void bound_by_indices(Graph *g, LoopDraft *d) {
  CountedLoop *c = &d->count;
  const GraphRegion *b = &g->region.at[d->body];
  i64 lo, hi, size = DIM_MAX;
  value_int_range(g, c->trip, &lo, &hi);
  for (u32 i = 0; hi >= DIM_MAX && i < b->node.n; i++) {
    const Node *n = graph_node(g, b->node.at[i]);
    if (n->op != OP_check_index || graph_type(g, n->in[0])->rank) continue;
    NodeId def = graph_val(g, n->in[0])->def;
    const Node *at = def ? graph_node(g, def) : NULL;
    bool counts =
        at && at->op == OP_add &&
        ((at->in[0] < c->i && at->in[1] == c->i) || (at->in[1] < c->i && at->in[0] == c->i));
    const Attr *k = counts ? node_attr(n, AT_size) : NULL;
    i64 least, most;
    if (!k || k->n != 1) continue;
    dim_bounds(g->dims, k->u.list[0], &least, &most);
    if (most < size) size = most;
  }
  if (size < DIM_MAX / 4)
    c->trip = mk_min(g, c->trip, mk_scalar(g, DT_i64, (double)(2 * size + 1)));
}

void loop_simplify(Graph *g, LoopDraft *d) {
  CountedLoop *c = &d->count;
  Arena *a = &g->c->scratch;
  loop_count(g, c, d->body);
  g->region.at[d->body].ret.at[0] = c->more;
  bool exact = loop_always(g, c->cond) && (c->more == c->go || loop_always(g, c->more));
  Swap s = {c->n ? c->param[0] : 0, c->n, NEWS(a, Val, c->n + 1), NEWS(a, u32, c->n + 1)};
  swap_all(g, d->body, &s);
  u32 m = g->region.at[d->body].node.n;
  for (u32 k = 0; k < c->n; k++) {
    i64 step;
    if (c->next[k] == c->param[k])
      d->instead[k] = s.by[k] = c->init[k];
    else if (type_equal(graph_type(g, c->init[k]), graph_type(g, c->next[k])) &&
             loop_steps(g, c->next[k], c->param[k], &step))
      replace_counter(g, d, k, step, exact, &s);
  }
  to_front(g, d->body, m);
  for (u32 k = 0; k < c->n; k++)
    if (!d->instead[k]) {
      stack_instead(g, d, k, &s);
      if (!d->grows[k]) stack_if(g, d, k, &s);
    }
  swap_all(g, d->body, &s);
  bound_by_indices(g, d);
}

/* ---- the node ---- */

/* Removes unneeded carried values from parameters and results. */
static void drop_carried(Graph *g, const LoopDraft *d) {
  GraphRegion *b = &g->region.at[d->body];
  u32 n = 0;
  for (u32 k = 0; k < d->count.n; k++) {
    if (d->instead[k] || d->grows[k]) continue;
    graph_val(g, b->param.at[2 + k])->pos = 2 + n;
    b->param.at[2 + n] = b->param.at[2 + k];
    b->ret.at[1 + n] = b->ret.at[1 + k];
    n++;
  }
  u32 scans = b->ret.n - 1 - d->count.n;
  for (u32 k = 0; k < scans; k++) b->ret.at[1 + n + k] = b->ret.at[1 + d->count.n + k];
  b->param.n = 2 + n;
  b->ret.n = 1 + n + scans;
}

void loop_finish(Graph *g, const LoopDraft *d, Val *carried, Val *scan) {
  const CountedLoop *c = &d->count;
  Val *in = NEWS(&g->c->work, Val, c->n + 2);
  u32 nin = 2, at = 0, scans = g->region.at[d->body].ret.n - 1 - c->n;
  in[0] = c->trip;
  in[1] = c->cond;
  for (u32 k = 0; k < c->n; k++)
    if (!d->instead[k] && !d->grows[k]) in[nin++] = c->init[k];
  drop_carried(g, d);
  Attr many = {.key = AT_scans, .kind = AK_int, .u.i = scans};
  NodeId n = graph_add_control(g, OP_loop, in, nin, &many, 1, &d->body, 1);
  for (u32 k = 0; k < c->n; k++)
    if (!d->grows[k]) carried[k] = d->instead[k] ? d->instead[k] : graph_node(g, n)->out[at++];
  for (u32 k = 0; k < d->nscan; k++) scan[k] = graph_node(g, n)->out[at++];
  for (u32 k = 0; k < c->n; k++)
    if (d->grows[k]) {
      Val rows = graph_node(g, n)->out[at++], some = d->some[k] ? graph_node(g, n)->out[at++] : 0;
      carried[k] = unstack(g, c->init[k], rows, some, d->grows[k] - 1);
    }
}

void mk_loop(Graph *g, Val trip, Val cond, Val *carried, u32 ncarried, Val *scan, u32 nscan,
             BodyFn *body, void *user) {
  LoopDraft d = loop_draft(g, trip, cond, carried, ncarried, scan, nscan, body, user);
  loop_finish(g, &d, carried, scan);
}
