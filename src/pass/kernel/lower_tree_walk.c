/* lower_tree_walk.c: loops in which every element follows its own path, such as decision trees.
 *
 * In: a loop that carries one integer tensor. The body computes each element from its previous
 * value and from loop invariants, by maps and by gathers with indices proven in range. Out: kernels
 * in which an element runs through all iterations in a register. An element stops early when an
 * iteration does not change it, because the body depends on nothing else.
 *
 * Each load depends on the previous one, so several elements run interleaved to hide latency. They
 * are neighbors along the second-to-last axis if that is long enough, because those start at the
 * same node and read the same cache lines. The remainder runs along the last axis.
 */
#include "pass/form/nest.h"

enum {
  WALK_NODES = 48, /* limit for the expression of one step */
};

typedef struct TreeWalk {
  Lower *l;
  const Node *n;        /* the loop */
  Val carried, next;    /* loop-carried value and its next value */
  Type type;            /* type of both */
  bool *inside;         /* by value: defined in the body */
  BufId start;          /* extent 1 along axes on which all elements start equal */
  i64 lanes;            /* interleaved elements */
  ExprId pos[MAX_RANK]; /* position of the first of them */
  BufId reg;            /* their current values */
  VarId only;           /* current value of a single element */
} TreeWalk;

/* Is the result of n, a node of the body, computed element by element? */
static bool moves_alone(TreeWalk *w, const Node *n) {
  Lower *l = w->l;
  Graph *g = l->g;
  const Type *t = graph_type(g, n->out[0]);
  if (n->nout != 1 || t->kind != TY_tensor || t->rank != w->type.rank) return false;
  for (u32 i = 0; i < t->rank; i++)
    if (t->dim[i] != w->type.dim[i]) return false;
  if (op_info[n->op].kind == OK_MAP) return n->op != OP_bitcast;
  if (n->op != OP_gather && n->op != OP_gather_elems) return false;
  u32 axis = (u32)node_int(n, AT_axis, 0);
  return index_is_certain(g, n->in[1], graph_type(g, n->in[0])->dim[axis]);
}

/* Number of nodes in the expression of operand i of n; 0: not supported. size: by value of the
 * body. */
static u32 operand_size(TreeWalk *w, const u32 *size, const Node *loop, const Node *n, u32 i) {
  Lower *l = w->l;
  Val v = n->in[i];
  const GraphRegion *body = &l->g->region.at[loop->region[0]];
  bool gathered = i == 0 && op_info[n->op].kind == OK_GATHER;
  if (!v || v == body->param.at[0] || v == body->param.at[1]) return 0;
  if (v == w->carried || w->inside[v]) return gathered ? 0 : size[v];
  return graph_type(l->g, v)->kind == TY_tensor && !layout_of(l, l->buf[v]);
}

static bool body_fits(TreeWalk *w, const Node *loop) {
  Lower *l = w->l;
  Graph *g = l->g;
  const GraphRegion *body = &g->region.at[loop->region[0]];
  u32 *size = NEWS(&l->c->scratch, u32, g->val.n);
  size[w->carried] = 1;
  w->inside = NEWS(&l->c->scratch, bool, g->val.n);
  for (u32 i = 0; i < body->node.n; i++) {
    const Node *n = graph_node(g, body->node.at[i]);
    for (u32 k = 0; k < n->nout; k++) w->inside[n->out[k]] = true;
    if (n->op == OP_const) size[n->out[0]] = 1;
    if (n->op == OP_const || !moves_alone(w, n)) continue;
    u32 sum = 1;
    for (u32 k = 0; k < n->nin && sum; k++) {
      u32 more = operand_size(w, size, loop, n, k);
      sum = more && sum + more <= WALK_NODES ? sum + more : 0;
    }
    size[n->out[0]] = sum;
  }
  return size[w->next] && w->inside[w->next] && !graph_const(g, w->next);
}

/* Buffer of v. A constant that repeats along the second-to-last axis gets a copy of extent 1. */
static BufId start_of(Lower *l, Val v) {
  const Tensor *t = graph_const(l->g, v);
  i64 dim[MAX_RANK];
  if (!t || t->rank < 2 || !t->n) return l->buf[v];
  u64 line = (u64)t->dim[t->rank - 1], block = line * (u64)t->dim[t->rank - 2], at = 0;
  for (u64 i = 0; i < t->n; i++)
    if (tensor_get(t, i).i != tensor_get(t, i / block * block + i % line).i) return l->buf[v];
  for (u32 i = 0; i < t->rank; i++) dim[i] = t->dim[i];
  dim[t->rank - 2] = 1;
  Tensor *once = tensor_new(&l->c->work, t->dt, dim, t->rank);
  for (u64 i = 0; i < t->n; i++)
    if (i % block < line) tensor_set(once, at++, tensor_get(t, i));
  return prog_add_const(l->p, once, 0);
}

static bool walk_find(Lower *l, const Node *n, TreeWalk *w) {
  const GraphRegion *body = &l->g->region.at[n->region[0]];
  if (n->nin != 3 || n->nout != 1 || n->nsym || !graph_is_true(l->g, n->in[1])) return false;
  if (body->ret.at[0] != body->param.at[1] && !graph_is_true(l->g, body->ret.at[0])) return false;
  *w =
      (TreeWalk){.l = l, .n = n, .carried = body->param.at[2], .next = body->ret.at[1], .lanes = 1};
  w->type = *graph_type(l->g, n->out[0]);
  if (w->type.kind != TY_tensor || !w->type.rank || !dtype_is_int(w->type.dt)) return false;
  if (layout_of(l, l->buf[w->n->out[0]]) || !body_fits(w, n)) return false;
  w->start = start_of(l, n->in[2]);
  if (l->pass->target->lanes > 1 && l->pass->aim != AIM_size) w->lanes = (i64)figures.walks;
  return true;
}

/* ---- the kernels ---- */

/* Marks the values of the body as inline. */
static void body_inline(TreeWalk *w, const GraphRegion *body) {
  Lower *l = w->l;
  inlined_value(l, w->carried);
  for (u32 i = 0; i < body->node.n; i++) {
    const Node *n = graph_node(l->g, body->node.at[i]);
    if (n->op == OP_const)
      l->buf[n->out[0]] = prog_add_const(l->p, node_attr(n, AT_value)->u.t, 0);
    else
      inlined_value(l, n->out[0]);
  }
}

/* Index in a buffer of the element in lane g along axis. */
static void walk_index(TreeWalk *w, BufId b, u32 axis, VarId g, ExprId *idx) {
  Prog *p = w->l->p;
  for (u32 i = 0; i < w->type.rank; i++) {
    bool once = prog_buf(p, b)->dim[i] == 1;
    idx[i] = once ? ex_int(p, 0) : ex_copy(p, w->pos[i]);
    if (i == axis && !once) idx[i] = ex_op2(p, OP_add, idx[i], ex_at(p, g));
  }
}

/* Opens a loop over lanes; for one lane none, and returns variable 0. */
static VarId each_lane(Prog *p, Cursor *at, i64 lanes) {
  if (lanes == 1) return 0;
  VarId g = prog_for(p, at, ex_int(p, 0), ex_int(p, lanes), "g");
  prog_stmt(p, at->owner)->flags |= LF_unroll;
  return g;
}

/* Current value of the element in lane g. */
static ExprId lane(TreeWalk *w, VarId g) {
  Prog *p = w->l->p;
  ExprId idx = ex_at(p, g);
  return g ? ex_load(p, w->reg, &idx, 1) : ex_var(p, w->only);
}

static void move_lane(TreeWalk *w, Cursor *at, VarId g, ExprId to) {
  Prog *p = w->l->p;
  ExprId idx = ex_at(p, g);
  if (g)
    prog_store(p, at, w->reg, &idx, 1, to);
  else
    prog_set(p, at, w->only, to);
}

static ExprId walk_rounds(TreeWalk *w) {
  Lower *l = w->l;
  const Tensor *t = graph_const(l->g, w->n->in[0]);
  return t ? ex_int(l->p, tensor_get(t, 0).i) : load_at(l->p, l->buf[w->n->in[0]], NULL);
}

static ExprId start_value(TreeWalk *w, u32 axis, VarId g) {
  ExprId idx[MAX_RANK];
  walk_index(w, w->start, axis, g, idx);
  return ex_load(w->l->p, w->start, idx, w->type.rank);
}

static void walk_begin(TreeWalk *w, Cursor *at, u32 axis, i64 lanes) {
  Prog *p = w->l->p;
  if (lanes == 1) {
    w->only = let_new(p, at, "at", start_value(w, axis, 0));
    return;
  }
  w->reg = prog_add_buf(p, BS_reg, w->type.dt, &lanes, 1, str_of(p->c, "walk"));
  Cursor in = *at;
  VarId g = each_lane(p, &in, lanes);
  move_lane(w, &in, g, start_value(w, axis, g));
}

/* One iteration; sets `moved` (unless variable 0) if an element changes. */
static void walk_step(TreeWalk *w, Cursor at, u32 axis, i64 lanes, VarId moved) {
  Lower *l = w->l;
  Prog *p = l->p;
  ExprId idx[MAX_RANK];
  VarId g = each_lane(p, &at, lanes);
  ExprScope scope = {.acc = w->carried, .acc_expr = lane(w, g)};
  walk_index(w, l->buf[w->n->out[0]], axis, g, idx);
  ExprId next = inlined_eval(l, w->next, idx, &scope);
  if (moved) {
    VarId to = let_new(p, &at, "next", next);
    ExprId differs = ex_op2(p, OP_xor, ex_var(p, to), lane(w, g));
    prog_set(p, &at, moved, ex_op2(p, OP_or, ex_var(p, moved), differs));
    next = ex_var(p, to);
  }
  move_lane(w, &at, g, next);
}

static void walk_all(TreeWalk *w, Cursor at, u32 axis, i64 lanes) {
  Prog *p = w->l->p;
  prog_for(p, &at, ex_int(p, 0), walk_rounds(w), "round");
  walk_step(w, at, axis, lanes, 0);
}

static void walk_until_still(TreeWalk *w, Cursor at, u32 axis, i64 lanes) {
  Prog *p = w->l->p;
  DType dt = w->type.dt;
  Scalar zero = {.i = 0}, one = {.i = 1};
  VarId round = let_new(p, &at, "round", ex_int(p, 0));
  VarId moved = let_new(p, &at, "moved", ex_const(p, dt, one));
  ExprId more = ex_op2(p, OP_lt, ex_var(p, round), walk_rounds(w));
  ExprId any = ex_op2(p, OP_ne, ex_var(p, moved), ex_const(p, dt, zero));
  prog_while(p, &at, ex_op2(p, OP_and, more, any));
  prog_set(p, &at, moved, ex_const(p, dt, zero));
  walk_step(w, at, axis, lanes, moved);
  prog_set(p, &at, round, ex_op2(p, OP_add, ex_var(p, round), ex_int(p, 1)));
}

/* All iterations of `lanes` elements along axis, from w->pos on. */
static void walk_lanes(TreeWalk *w, Cursor at, u32 axis, i64 lanes) {
  Lower *l = w->l;
  Prog *p = l->p;
  ExprId idx[MAX_RANK];
  i64 rounds;
  bool is_short = ex_is_int(p, walk_rounds(w), &rounds) && rounds <= LIMIT_walk_short;
  walk_begin(w, &at, axis, lanes);
  if (lanes > 1 && is_short)
    walk_all(w, at, axis, lanes);
  else
    walk_until_still(w, at, axis, lanes);
  VarId g = each_lane(p, &at, lanes);
  walk_index(w, l->buf[w->n->out[0]], axis, g, idx);
  prog_store(p, &at, l->buf[w->n->out[0]], idx, w->type.rank, lane(w, g));
}

/* Opens a loop along axis from lo to hi by `step` and sets the position. */
static void walk_loop(TreeWalk *w, Cursor *at, u32 axis, Dim lo, Dim hi, i64 step) {
  static const char *const names[] = {"i", "j", "k", "l", "m", "n", "o", "p"};
  Prog *p = w->l->p;
  Dims *ds = p->dims;
  Dim count = dim_div(ds, dim_sub(ds, hi, lo), step);
  w->pos[axis] = ex_dim(p, lo);
  if (count == 1) return;
  VarId v = prog_for(p, at, ex_int(p, 0), ex_dim(p, count), names[axis < 8 ? axis : 7]);
  loop_set_parallel(p, at->owner);
  ExprId by = ex_op2(p, OP_mul, ex_var(p, v), ex_int(p, step));
  w->pos[axis] = ex_op2(p, OP_add, by, w->pos[axis]);
}

static void walk_outer(TreeWalk *w, Cursor *at, u32 n) {
  for (u32 i = 0; i < n; i++) walk_loop(w, at, i, 0, w->type.dim[i], 1);
}

/* Largest multiple of the lanes in an extent. */
static Dim filled(TreeWalk *w, Dim d) {
  Dims *ds = w->l->p->dims;
  return dim_mul(ds, dim_div(ds, d, w->lanes), w->lanes);
}

/* Elements from `from` on of the second-to-last axis, with lanes along the last one. */
static void walk_rest(TreeWalk *w, Cursor at, Dim from) {
  u32 last = w->type.rank - 1;
  Dim n = w->type.dim[last], full = filled(w, n);
  walk_outer(w, &at, last ? last - 1 : 0);
  if (last) walk_loop(w, &at, last - 1, from, w->type.dim[last - 1], 1);
  Cursor in = at;
  if (full != 0 && w->lanes > 1) {
    walk_loop(w, &in, last, 0, full, w->lanes);
    walk_lanes(w, in, last, w->lanes);
  }
  in = at;
  if (w->lanes == 1) full = 0;
  if (full == n) return;
  walk_loop(w, &in, last, full, n, 1);
  walk_lanes(w, in, last, 1);
}

static Cursor walk_kernel(TreeWalk *w) {
  Lower *l = w->l;
  Cursor at = lower_kernel(l, group_label(l->g, w->n));
  KernelRecord r = {.family = FA_tree_walk};
  r.size = str_fmt(l->c, "of %lld interleaved", (long long)w->lanes);
  kernel_record(l->p, l->at.last, r);
  return at;
}

bool lower_tree_walk(Lower *l, const Node *n) {
  TreeWalk w;
  if (!walk_find(l, n, &w)) return false;
  u32 rank = w.type.rank;
  Dim from = 0, rows = rank > 1 ? w.type.dim[rank - 2] : 0;
  body_inline(&w, &l->g->region.at[n->region[0]]);
  if (rows != 0 && w.lanes > 1 && filled(&w, rows) != 0) {
    Cursor at = walk_kernel(&w);
    from = filled(&w, rows);
    walk_outer(&w, &at, rank - 2);
    walk_loop(&w, &at, rank - 1, 0, w.type.dim[rank - 1], 1);
    walk_loop(&w, &at, rank - 2, 0, from, w.lanes);
    walk_lanes(&w, at, rank - 2, w.lanes);
  }
  if (rank == 1 || from != rows) walk_rest(&w, walk_kernel(&w), from);
  return true;
}
