/* grad_control.c: gradients of if and loop.
 *
 * In: a control node and the gradients of its results. Out: another control node that passes them
 * on to the values which the regions read from outside. Its region is built with nodes that refer
 * to values of the forward region F as if they were visible. Afterwards these values are provided
 * (Cloner):
 *
 *   if    The branch is computed again before its gradient.
 *   loop  Iterates from the last iteration to the first. The forward loop stores what an iteration
 *         read as additional scans. With GradOptions.recompute it stores only the carried values,
 * and the iteration is computed again. The backward loop carries the gradients of carried values,
 *         and sums for values from outside. Gradients of rows that iterations gather from a value
 * are applied after the loop, all at once.
 *
 * Refused: data-dependent sizes in anything that would have to be recomputed.
 */
#include "pass/graph/grad_internal.h"

#include <string.h>

typedef VEC(Val) Vals;

/* ---- values of a region ---- */

/* Marks the values defined in a region and those inside it. */
static void mark_inside(Graph *g, RegionId b, bool *inside) {
  const GraphRegion *k = &g->region.at[b];
  for (u32 i = 0; i < k->param.n; i++) inside[k->param.at[i]] = true;
  for (u32 i = 0; i < k->node.n; i++) {
    const Node *n = graph_node(g, k->node.at[i]);
    for (u32 j = 0; j < n->nout; j++) inside[n->out[j]] = true;
    for (u32 j = 0; j < n->nregion; j++) mark_inside(g, n->region[j], inside);
  }
}

typedef void UseFn(void *user, Val *use);

/* Visits every use of a value in a region, including results. */
static void each_use(Graph *g, RegionId b, UseFn *fn, void *user) {
  for (u32 i = 0; i < g->region.at[b].node.n; i++) {
    Node *n = graph_node(g, g->region.at[b].node.at[i]);
    for (u32 j = 0; j < n->nin; j++)
      if (n->in[j]) fn(user, &n->in[j]);
    for (u32 j = 0; j < n->nregion; j++) each_use(g, n->region[j], fn, user);
  }
  for (u32 i = 0; i < g->region.at[b].ret.n; i++) fn(user, &g->region.at[b].ret.at[i]);
}

typedef struct Captures {
  const Grad *d;
  bool *seen; /* by value: defined inside, or listed */
  Vals list;
} Captures;

static void add_capture(void *user, Val *use) {
  Captures *o = user;
  if (!grad_needed(o->d, *use) || o->seen[*use]) return;
  o->seen[*use] = true;
  *vec_push(&o->d->g->c->work, &o->list) = *use;
}

/* Values from outside that the regions of n read and that need gradients. */
static Vals captures_of(Grad *d, const Node *n) {
  Captures o = {.d = d, .seen = NEWS(&d->g->c->work, bool, d->g->val.n)};
  for (u32 i = 0; i < n->nregion; i++) mark_inside(d->g, n->region[i], o.seen);
  for (u32 i = 0; i < n->nregion; i++) each_use(d->g, n->region[i], add_capture, &o);
  return o.list;
}

/* Sets their gradients aside while a region is differentiated. */
static Val *save_grads(Grad *d, const Vals *list) {
  Val *old = NEWS(&d->g->c->work, Val, list->n + 1);
  for (u32 i = 0; i < list->n; i++) {
    old[i] = d->adj[list->at[i]];
    d->adj[list->at[i]] = 0;
  }
  return old;
}

static void restore_grads(Grad *d, const Vals *list, const Val *old) {
  for (u32 i = 0; i < list->n; i++) d->adj[list->at[i]] = old[i];
}

/* ---- providing values of a forward region ---- */

typedef struct Cloner {
  Graph *g;
  RegionId from; /* F */
  bool *inside;
  bool *needed; /* by value of F */
  Val *by;      /* by value: its replacement; 0: itself */
  u32 n;        /* number of values */
} Cloner;

static void note_need(void *user, Val *use) {
  Cloner *s = user;
  if (s->inside[*use]) s->needed[*use] = true;
}

static void swap_use(void *user, Val *use) {
  const Cloner *s = user;
  if (*use < s->n && s->by[*use]) *use = s->by[*use];
}

static Cloner cloner_new(Graph *g, RegionId from, RegionId to) {
  Arena *a = &g->c->work;
  u32 n = g->val.n;
  Cloner s = {g, from, NEWS(a, bool, n), NEWS(a, bool, n), NEWS(a, Val, n), n};
  mark_inside(g, from, s.inside);
  each_use(g, to, note_need, &s);
  return s;
}

/* Nodes of region b from `mark` on are set aside until insert_end, so that others are built before
 * them. */
typedef struct InsertPoint {
  RegionId b, cur;
  u32 n;
  NodeId *node;
} InsertPoint;

static InsertPoint insert_begin(Graph *g, RegionId b, u32 mark) {
  GraphRegion *k = &g->region.at[b];
  InsertPoint gap = {b, g->cur, k->node.n - mark, NULL};
  gap.node = arena_copy(&g->c->work, k->node.at + mark, gap.n * sizeof *gap.node);
  k->node.n = mark;
  g->cur = b;
  return gap;
}

static void insert_end(Graph *g, const InsertPoint *gap) {
  for (u32 i = 0; i < gap->n; i++)
    *vec_push(&g->c->work, &g->region.at[gap->b].node) = gap->node[i];
  g->cur = gap->cur;
}

static void copy_node(Cloner *s, const Node *n);

static RegionId copy_block(Cloner *s, RegionId from) {
  Graph *g = s->g;
  RegionId to = graph_region(g, 0), cur = g->cur;
  for (u32 i = 0; i < g->region.at[from].param.n; i++) {
    Val p = g->region.at[from].param.at[i];
    s->by[p] = graph_param(g, to, *graph_type(g, p), graph_val(g, p)->name);
  }
  g->cur = to;
  for (u32 i = 0; i < g->region.at[from].node.n; i++) {
    Node n = *graph_node(g, g->region.at[from].node.at[i]);
    copy_node(s, &n);
  }
  for (u32 i = 0; i < g->region.at[from].ret.n; i++) {
    Val v = g->region.at[from].ret.at[i];
    swap_use(s, &v);
    *vec_push(&g->c->work, &g->region.at[to].ret) = v;
  }
  g->cur = cur;
  return to;
}

static void copy_node(Cloner *s, const Node *n) {
  Graph *g = s->g;
  Val *in = NEWS(&g->c->work, Val, n->nin + 1);
  RegionId region[2];
  Loc loc = g->loc;
  if (n->nsym) grad_refuse(g, n, "its size depends on data, so it cannot be recomputed");
  for (u32 i = 0; i < n->nin; i++) {
    in[i] = n->in[i];
    swap_use(s, &in[i]);
  }
  for (u32 i = 0; i < n->nregion; i++) region[i] = copy_block(s, n->region[i]);
  g->loc = n->loc;
  NodeId id = n->nregion
                  ? graph_add_control(g, n->op, in, n->nin, n->attr, n->nattr, region, n->nregion)
                  : graph_add(g, n->op, in, n->nin, n->attr, n->nattr);
  for (u32 i = 0; i < n->nout; i++) s->by[n->out[i]] = graph_node(g, id)->out[i];
  g->loc = loc;
}

/* Marks the operands of needed nodes of F. */
static void need_operands(Cloner *s) {
  Graph *g = s->g;
  const GraphRegion *f = &g->region.at[s->from];
  for (u32 i = f->node.n; i-- > 0;) {
    const Node *n = graph_node(g, f->node.at[i]);
    bool on = false;
    for (u32 k = 0; k < n->nout; k++) on = on || s->needed[n->out[k]];
    for (u32 k = 0; on && k < n->nin; k++)
      if (n->in[k]) note_need(s, &n->in[k]);
    for (u32 k = 0; on && k < n->nregion; k++) each_use(g, n->region[k], note_need, s);
  }
}

/* Copies the needed nodes of F to g->cur. */
static void copy_needed(Cloner *s) {
  Graph *g = s->g;
  for (u32 i = 0; i < g->region.at[s->from].node.n; i++) {
    Node n = *graph_node(g, g->region.at[s->from].node.at[i]);
    bool on = false;
    for (u32 k = 0; k < n.nout; k++) on = on || s->needed[n.out[k]];
    if (on && !s->by[n.out[0]]) copy_node(s, &n);
  }
}

/* ---- if ---- */

static RegionId back_branch(Grad *d, const Node *n, u32 which, const Vals *out) {
  Graph *g = d->g;
  RegionId from = n->region[which], to = graph_region(g, 0), cur = g->cur;
  Val *old = save_grads(d, out);
  g->cur = to;
  for (u32 i = 0; i < n->nout; i++)
    if (grad_result(d, n->out[i]))
      grad_accumulate(d, g->region.at[from].ret.at[i], grad_result(d, n->out[i]));
  grad_backward(d, from);
  for (u32 i = 0; i < out->n; i++) {
    Val v = grad_or_zeros(d, out->at[i]);
    *vec_push(&g->c->work, &g->region.at[to].ret) = v;
  }
  restore_grads(d, out, old);
  g->cur = cur;
  Cloner s = cloner_new(g, from, to);
  need_operands(&s);
  InsertPoint gap = insert_begin(g, to, 0);
  copy_needed(&s);
  insert_end(g, &gap);
  each_use(g, to, swap_use, &s);
  return to;
}

void back_if(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  (void)v;
  if (n->nsym) grad_refuse(g, n, "its branches have results of different sizes");
  Vals out = captures_of(d, n);
  if (!out.n) return;
  RegionId region[2];
  for (u32 k = 0; k < 2; k++) region[k] = back_branch(d, n, k, &out);
  NodeId id = graph_add_control(g, OP_if, n->in, 1, NULL, 0, region, 2);
  for (u32 i = 0; i < out.n; i++) grad_accumulate(d, out.at[i], graph_node(g, id)->out[i]);
}

/* ---- loop ---- */

typedef struct LoopGrad {
  NodeId loop;
  RegionId from, to;
  u32 carried; /* values carried by the forward loop */
  Val count,
      i; /* number of iterations; forward iteration that a backward iteration reverses, in `to` */
  u32 mark; /* nodes of `to` before all that need values of F */
  Vals out; /* values of the enclosing region whose gradients the loop sums */
} LoopGrad;

static void unmark(void *user, Val *use) {
  ((bool *)user)[*use] = false;
}

/* Which values from outside F reads only by its own gathers. */
static bool *find_rows(Grad *d, RegionId from, const Vals *list) {
  Graph *g = d->g;
  bool *is = NEWS(&g->c->work, bool, g->val.n);
  const GraphRegion *f = &g->region.at[from];
  for (u32 i = 0; i < list->n; i++) is[list->at[i]] = true;
  for (u32 i = 0; i < f->node.n; i++) {
    const Node *n = graph_node(g, f->node.at[i]);
    for (u32 k = 0; k < n->nin; k++)
      if (n->in[k] && (n->op != OP_gather || k)) is[n->in[k]] = false;
    for (u32 k = 0; k < n->nregion; k++) each_use(g, n->region[k], unmark, is);
  }
  for (u32 i = 0; i < f->ret.n; i++) is[f->ret.at[i]] = false;
  return is;
}

/* Number of iterations: the trip count, or a scan if the loop may end early. */
static Val count_iterations(Graph *g, NodeId loop) {
  Node n = *graph_node(g, loop);
  Dim trip;
  u32 one;
  if (loop_is_counted(g, &n) && graph_dim_list(g, n.in[0], &trip, 1, &one)) return n.in[0];
  if (loop_is_counted(g, &n)) return mk_max(g, n.in[0], mk_scalar(g, DT_i64, 0));
  Val stack, i = g->region.at[n.region[0]].param.at[0];
  graph_add_scans(g, loop, &i, 1, &stack);
  return mk_dims_as(g, DT_i64, 0, graph_type(g, stack)->dim, 1);
}

/* Row i of a stack; zeros if it is empty, which no iteration reads. */
static Val row_of(Graph *g, Val stack, Val i) {
  Type t = *graph_type(g, stack);
  if (t.dim[0] != 0) return mk_gather(g, stack, i, 0);
  return mk_broadcast(g, mk_scalar(g, t.dt, 0), t.dim + 1, t.rank - 1);
}

/* Stores values of F for every iteration, and replaces them in the backward region. */
static void stack_values(Cloner *s, const LoopGrad *t, const Vals *list) {
  Graph *g = s->g;
  Val *stack = NEWS(&g->c->work, Val, list->n + 1);
  graph_add_scans(g, t->loop, list->at, list->n, stack);
  for (u32 i = 0; i < list->n; i++) s->by[list->at[i]] = row_of(g, stack[i], t->i);
}

/* Provides values of F to the backward region: the counter is known, constants are rebuilt, all
 * others were stored. */
static void clone_iteration(Grad *d, const LoopGrad *t) {
  Graph *g = d->g;
  Cloner s = cloner_new(g, t->from, t->to);
  Vals kept = {0};
  if (d->o.recompute) need_operands(&s);
  InsertPoint gap = insert_begin(g, t->to, t->mark);
  for (u32 i = 0; i < g->region.at[t->from].param.n; i++) {
    Val p = g->region.at[t->from].param.at[i];
    if (!s.needed[p]) continue;
    if (i == 0) s.by[p] = t->i;
    if (i == 1) s.by[p] = mk_scalar(g, DT_bool, 1);
    if (i > 1) *vec_push(&g->c->work, &kept) = p;
  }
  for (u32 i = 0; !d->o.recompute && i < g->region.at[t->from].node.n; i++) {
    Node n = *graph_node(g, g->region.at[t->from].node.at[i]);
    for (u32 k = 0; k < n.nout; k++) {
      if (!s.needed[n.out[k]]) continue;
      if (op_info[n.op].kind == OK_LEAF && !s.by[n.out[k]])
        copy_node(&s, &n);
      else
        *vec_push(&g->c->work, &kept) = n.out[k];
    }
  }
  if (kept.n) stack_values(&s, t, &kept);
  if (d->o.recompute) copy_needed(&s);
  insert_end(g, &gap);
  each_use(g, t->to, swap_use, &s);
}

/* Parameters of the backward region: iteration, condition, gradients of carried values, sums. */
static void begin_block(Grad *d, LoopGrad *t) {
  Graph *g = d->g;
  Arena *a = &g->c->work;
  Val j = graph_param(g, t->to, type_tensor(a, DT_i64, NULL, 0), 0);
  Val go = graph_param(g, t->to, type_tensor(a, DT_bool, NULL, 0), 0);
  Val last = mk_sub(g, t->count, mk_scalar(g, DT_i64, 1));
  *vec_push(a, &g->region.at[t->to].ret) = go;
  g->cur = t->to;
  t->i = mk_sub(g, last, j);
  t->mark = g->region.at[t->to].node.n;
}

/* Sets the gradients of an iteration's results. For carried values they come from the next
 * iteration, for scans from a row of the gradient. */
static void seed(Grad *d, const Node *n, const LoopGrad *t) {
  Graph *g = d->g;
  for (u32 k = 0; k < t->carried; k++) {
    Val p = g->region.at[t->from].param.at[2 + k], r = g->region.at[t->from].ret.at[1 + k];
    if (grad_needed(d, p)) grad_accumulate(d, r, graph_param(g, t->to, *graph_type(g, p), 0));
  }
  for (u32 k = t->carried; k < n->nout; k++) {
    Val got = grad_result(d, n->out[k]);
    if (got) grad_accumulate(d, g->region.at[t->from].ret.at[1 + k], row_of(g, got, t->i));
  }
}

/* Results of the backward region, in the order of its parameters, then rows as scans. */
static void end_block(Grad *d, const LoopGrad *t) {
  Graph *g = d->g;
  Arena *a = &g->c->work;
  for (u32 k = 0; k < t->carried; k++) {
    Val p = g->region.at[t->from].param.at[2 + k];
    if (!grad_needed(d, p)) continue;
    Val v = grad_or_zeros(d, p);
    *vec_push(a, &g->region.at[t->to].ret) = v;
  }
  for (u32 k = 0; k < t->out.n; k++) {
    Val x = t->out.at[k], sum = graph_param(g, t->to, *graph_type(g, x), 0);
    if (d->adj[x]) sum = mk_add(g, sum, d->adj[x]);
    *vec_push(a, &g->region.at[t->to].ret) = sum;
  }
  for (u32 k = 0; k < d->rows.n; k++) {
    *vec_push(a, &g->region.at[t->to].ret) = d->rows.at[k].idx;
    *vec_push(a, &g->region.at[t->to].ret) = d->rows.at[k].got;
  }
}

/* Applies the rows of all iterations as one gather would: [.., iterations, idx.., ..]. */
static void accumulate_rows(Grad *d, const RowGrad *r, Val idx, Val got) {
  u32 rank = graph_type(d->g, got)->rank;
  i64 perm[MAX_RANK], axis = r->axis;
  for (u32 i = 0; i < rank; i++) perm[i] = i < axis ? i + 1 : i == axis ? 0 : i;
  Val in[2] = {r->from, idx};
  Attr at = {.key = AT_axis, .kind = AK_int, .u.i = axis};
  Node n = {.op = OP_gather, .nin = 2, .in = in, .attr = &at, .nattr = 1, .loc = d->g->loc};
  back_gather(d, &n, mk_transpose(d->g, got, perm));
}

static void add_loop(Grad *d, const Node *n, const LoopGrad *t) {
  Graph *g = d->g;
  Arena *a = &g->c->work;
  Val *in = NEWS(a, Val, 2 + t->carried + t->out.n);
  u32 nin = 2, at = 0;
  in[0] = t->count;
  in[1] = mk_scalar(g, DT_bool, 1);
  for (u32 k = 0; k < t->carried; k++)
    if (grad_needed(d, g->region.at[t->from].param.at[2 + k])) {
      Val got = grad_result(d, n->out[k]);
      in[nin++] = got ? got : grad_zeros(g, n->out[k]);
    }
  for (u32 k = 0; k < t->out.n; k++) in[nin++] = grad_zeros(g, t->out.at[k]);
  Attr scans = {.key = AT_scans, .kind = AK_int, .u.i = 2 * d->rows.n};
  NodeId id = graph_add_control(g, OP_loop, in, nin, &scans, 1, &t->to, 1);
  const Val *out = graph_node(g, id)->out;
  RowGrad *row = d->rows.at;
  u32 nrow = d->rows.n;
  for (u32 k = 0; k < t->carried; k++)
    if (grad_needed(d, g->region.at[t->from].param.at[2 + k]))
      grad_accumulate(d, n->in[2 + k], out[at++]);
  for (u32 k = 0; k < t->out.n; k++) grad_accumulate(d, t->out.at[k], out[at++]);
  d->rows.n = 0;
  for (u32 k = 0; k < nrow; k++, at += 2) accumulate_rows(d, &row[k], out[at], out[at + 1]);
}

void back_loop(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  (void)v;
  LoopGrad t = {.loop = graph_val(g, n->out[0])->def, .from = n->region[0], .carried = n->nin - 2};
  Vals all = captures_of(d, n);
  bool *rows = find_rows(d, t.from, &all), *by_rows = d->by_rows;
  for (u32 i = 0; i < all.n; i++)
    if (!rows[all.at[i]]) *vec_push(&g->c->work, &t.out) = all.at[i];
  RegionId cur = g->cur;
  t.count = count_iterations(g, t.loop);
  t.to = graph_region(g, 0);
  Val *old = save_grads(d, &all);
  Grad outer = *d;
  memset(&d->rows, 0, sizeof d->rows);
  d->by_rows = rows;
  begin_block(d, &t);
  seed(d, n, &t);
  grad_backward(d, t.from);
  end_block(d, &t);
  g->cur = cur;
  clone_iteration(d, &t);
  restore_grads(d, &all, old);
  d->by_rows = by_rows;
  add_loop(d, n, &t);
  d->rows = outer.rows;
}
