/* lower.c: turns a graph into a program with one buffer per value and one kernel per group.
 *
 * In: a checked graph. Out: a program. For a target without vectors it computes the same bits as
 * the reference evaluator; vector kernels may sum in another order. Values that fuse.c marked
 * inline or epilogue get no buffer. No memory is reused and nothing moves between kernels here.
 *
 * Parameters and results of the graph are buffers of the caller. A result that no node writes
 * directly (a parameter, a constant, a view, one returned twice) is copied at the end. reshape is a
 * view of its operand's buffer and costs nothing. Data symbols are variables set by the node that
 * owns them. Complex numbers have no scalar operators and are refused.
 */
#include "pass/lower/lower.h"
#include "pass/kernel/attention.h"
#include "ir/prog/prog_mem.h"

/* Operators without a form. */
static const struct {
  LowerFn *fn;
  Family family; /* FA_COUNT: lowering chooses it */
} kinds[OP_COUNT] = {
    [OP_dims] = {lower_dims, FA_scalars},
    [OP_argmax] = {lower_arg, FA_search},
    [OP_argmin] = {lower_arg, FA_search},
    [OP_pool_argmax] = {lower_pool_arg, FA_search},
    [OP_concat] = {lower_concat, FA_COUNT},
    [OP_pad] = {lower_pad, FA_COUNT},
    [OP_gather] = {lower_gather, FA_COUNT},
    [OP_gather_elems] = {lower_gather_elems, FA_indexed},
    [OP_gather_nd] = {lower_gather_nd, FA_indexed},
    [OP_scatter_elems] = {lower_scatter_elems, FA_indexed},
    [OP_scatter_nd] = {lower_scatter_nd, FA_indexed},
    [OP_cumsum] = {lower_cum, FA_scan},
    [OP_cumprod] = {lower_cum, FA_scan},
    [OP_nonzero] = {lower_nonzero, FA_search},
    [OP_topk] = {lower_topk, FA_search},
    [OP_nms] = {lower_nms, FA_search},
};

void lower_copy(Lower *l, BufId from, BufId to) {
  Form f;
  if (from == to) return;
  form_copy(l->p, from, to, &f);
  lower_form(l, lower_kernel(l, str_of(l->c, "copy")), &f);
}

/* ---- nodes ---- */

/* Can a program not compute the node on this element type? Complex numbers: never. Strings can only
 * be moved. */
static bool refused(const Node *n, DType dt) {
  char cls = dtype_info[dt].cls;
  if (cls == 'C') return true;
  if (cls != 'S') return false;
  switch (op_info[n->op].kind) {
  case OK_MAP: return n->op == OP_cast || n->op == OP_bitcast;
  case OK_LEAF: return n->op != OP_const;
  case OK_VIEW:
  case OK_JOIN:
  case OK_GATHER:
  case OK_SCATTER:
  case OK_CONTROL: return false;
  default: return true;
  }
}

static void check_types(Lower *l, const Node *n) {
  DType bad = DT_none;
  for (u32 i = 0; i < n->nin + n->nout; i++) {
    DType dt = lower_type(l, i < n->nin ? n->in[i] : n->out[i - n->nin])->dt;
    if (refused(n, dt)) bad = dt;
  }
  if (bad == DT_none) return;
  diag(l->c, ERR_unsupported, n->loc, "%s on %s cannot be lowered", op_info[n->op].name,
       dtype_info[bad].name);
}

/* Runs before anything is built, so that one run reports every unsupported node. */
static void check_block(Lower *l, RegionId b) {
  const GraphRegion *region = &l->g->region.at[b];
  for (u32 i = 0; i < region->node.n; i++) {
    const Node *n = l->n = graph_node(l->g, region->node.at[i]);
    if (n->op != OP_const && n->op != OP_reshape) check_types(l, n);
    for (u32 k = 0; k < n->nregion; k++) check_block(l, n->region[k]);
  }
  l->n = NULL;
}

/* Refuses parameters and results that a program has no buffers for, used or not. */
static void check_interface(Lower *l, const Val *val, u32 n, const char *what) {
  for (u32 i = 0; i < n; i++) {
    const Value *v = graph_val(l->g, val[i]);
    if (v->type.kind == TY_tensor && dtype_info[v->type.dt].cls == 'C')
      diag(l->c, ERR_unsupported, LOC_NONE, "%s %u is %s, which cannot be lowered", what, i,
           dtype_info[v->type.dt].name);
  }
}

static void lower_node(Lower *l, const Node *n);

/* Lowers the nodes between the contractions of an attention that was not fused. */
static void lower_parts(Lower *l, const Node *root) {
  NodeId id = graph_val(l->g, root->out[0])->def;
  const Attentions *all = l->attentions;
  if (!all->part[id]) return;
  bool was = l->attentions->plain;
  l->attentions->plain = true;
  for (RegionId b = 1; b < l->g->region.n; b++)
    for (u32 i = 0; i < l->g->region.at[b].node.n; i++) {
      NodeId k = l->g->region.at[b].node.at[i];
      const Node *n = graph_node(l->g, k);
      bool part = all->part[k] == all->part[id] && k != id;
      if (part || (all->hidden[k] && !l->buf[n->out[0]])) lower_node(l, n);
    }
  l->attentions->plain = was;
  l->n = root;
}

static void lower_node(Lower *l, const Node *n) {
  Form f;
  l->n = n;
  if (n->op == OP_const) {
    Val v = n->out[0];
    l->buf[v] = prog_add_const(l->p, node_attr(n, AT_value)->u.t, graph_val(l->g, v)->name);
    return;
  }
  lower_require(l);
  if (n->nout == 1 && attention_has_part(l, n)) return;
  if (op_is(n->op, OF_ALIAS)) {
    if (n->op == OP_check_index) lower_check_index(l);
    const Type *t = lower_type(l, n->out[0]);
    BufId of = lower_in(l, 0);
    if (!states_view(l->states, of, t->dim, t->rank)) {
      const Buf b = *prog_buf(l->p, of);
      BufId copy = prog_add_buf(l->p, BS_temp, b.dt, b.dim, b.rank, 0);
      lower_copy(l, of, copy);
      of = copy;
    }
    l->buf[n->out[0]] = prog_add_view(l->p, of, t->dim, t->rank, graph_val(l->g, n->out[0])->name);
    return;
  }
  if (states_holds(l->states, n) || inlined_make(l, n)) return;
  for (u32 i = 0; i < n->nout; i++) lower_temp(l, n->out[i]);
  if (n->op == OP_contract) {
    if (lower_attention(l, n)) return;
    lower_parts(l, n);
  }
  if (n->op == OP_if)
    lower_if(l);
  else if (n->op == OP_loop)
    lower_loop(l);
  else if (slots_all(l, n))
    return;
  else if (kinds[n->op].fn) {
    Cursor at = lower_kernel(l, group_label(l->g, n));
    if (kinds[n->op].family != FA_COUNT)
      kernel_record(l->p, l->at.last, (KernelRecord){.family = kinds[n->op].family});
    kinds[n->op].fn(l, at);
  } else if (group_reduction(l, n, &f) || form_of(l->g, n, l->p, l->buf, &f)) {
    FlatMaps flat;
    slot_redirect(l, &f);
    bool is_flat = flat_begin(l, n, &f, &flat);
    lower_form(l, lower_kernel(l, group_label(l->g, n)), &f);
    if (is_flat) flat_end(&flat);
  } else
    diag(l->c, ERR_unsupported, n->loc, "%s cannot be lowered", op_info[n->op].name);
}

void lower_region(Lower *l, RegionId b) {
  const Node *around = l->n;
  const GraphRegion *region = &l->g->region.at[b];
  for (u32 i = 0; i < region->node.n; i++) lower_node(l, graph_node(l->g, region->node.at[i]));
  l->n = around;
}

/* Does a node write this result of the graph directly to the caller's memory? */
static bool direct(Lower *l, Val v) {
  NodeId def = graph_val(l->g, v)->def;
  if (!def || l->buf[v]) return false;
  Op op = graph_node(l->g, def)->op;
  return op != OP_const && !op_is(op, OF_ALIAS);
}

static bool is_state(const Graph *g, u32 out) {
  for (u32 i = 0; i < g->state.n; i++)
    if (g->state.at[i].out == out) return true;
  return false;
}

/* Does the program call functions? Only then does a scalar program depend on the math mode. */
static bool has_functions(Prog *p) {
  for (ExprId i = 1; i < p->nexpr; i++) {
    const Expr *x = prog_expr(p, i);
    if (x->kind == EX_op && scalar_is_fast(x->op, x->dt)) return true;
  }
  return false;
}

/* Loops without a record belong to the first of their kernel. */
static void finish_records(Prog *p) {
  Stmt *s;
  RecordId first = 0;
  for (StmtVisit w = prog_visit(p, p->body); (s = prog_next(&w));) {
    if (s->kind == ST_kernel) first = s->record;
    if (s->kind != ST_for || !s->role) continue;
    if (!s->record) s->record = first;
    if (!s->record) s->role = RO_none;
  }
  record_estimate(p);
}

void lower(PassCtx *u) {
  Graph *g = u->g;
  conv_plans(u);
  Lower l = {.c = u->c, .g = g, .p = prog_new(u->c, g->dims), .at = prog_end()};
  const GraphRegion *b = &g->region.at[1];
  l.p->name = g->name;
  l.p->math = u->precise ? MM_f : u->target->lanes == 1 ? MM_s : u->target->fma ? MM_u : MM_q;
  l.once = map_new(&u->c->scratch);
  l.pass = u;
  l.p->threads = u->threads;
  l.p->grain = u->grain;
  fuse_check(g);
  layout_check(g);
  storage_begin(&l);
  l.buf = NEWS(&u->c->scratch, BufId, g->val.n);
  l.states = states_begin(&l);
  l.attentions = attention_find(&l);
  for (u32 i = 0; i < b->param.n; i++) {
    Val v = b->param.at[i];
    if (l.buf[v]) continue;
    l.buf[v] = lower_buf(&l, BS_in, v, graph_val(g, v)->name);
  }
  BufId *out = NEWS(&u->c->scratch, BufId, b->ret.n);
  for (u32 i = 0; i < b->ret.n; i++) {
    Val v = b->ret.at[i];
    if (is_state(g, i)) continue;
    out[i] = lower_buf(&l, BS_out, v, i < g->out_name.n ? g->out_name.at[i] : 0);
    if (direct(&l, v)) l.buf[v] = out[i];
  }
  check_interface(&l, b->param.at, b->param.n, "input");
  check_interface(&l, b->ret.at, b->ret.n, "output");
  check_block(&l, 1);
  diag_raise(u->c);
  lower_region(&l, 1);
  for (u32 i = 0; i < b->ret.n; i++)
    if (out[i]) lower_copy(&l, l.buf[b->ret.at[i]], out[i]);
  diag_raise(u->c);
  states_end(l.states);
  storage_end(&l);
  finish_records(l.p);
  mem_sweep(l.p);
  if (l.p->math == MM_s && !has_functions(l.p)) l.p->math = MM_f;
  u->p = l.p;
}
