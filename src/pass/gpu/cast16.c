/* cast16.c: stores what products read as f16 or bf16 (--precision f16, bf16).
 *
 * In: a graph for a GPU. Out: the same graph, in which the f32 operands of matrix products and
 * convolutions are casts of 16-bit values, and constant operands are rounded to them. Products then
 * multiply 16-bit values and sum in f32; their results, the epilogues and all other operators stay
 * f32. A value that a product reads is rounded once, where it is computed, and all its users read
 * the rounded value, so that only 16 bits are stored. A view of such a value is taken before the
 * cast. Depthwise convolutions stay f32. Constants beyond the range of f16 stay as they are.
 *
 * Casts of halves to f32 get the mark `layer`: fuse computes them in every user (node_is_decode),
 * also in models that hold f16 themselves.
 *
 * needs: widen_f16  keeps: types of inputs and results  breaks: nothing (leaves equal and dead
 * nodes)
 */
#include "pass/pass.h"

#include <math.h>

typedef struct Cast16 {
  const PassCtx *u;
  DType dt;   /* DT_none: only marks casts */
  bool *read; /* by value that existed at the start: a product reads it, or a view of it */
  u32 nread;
} Cast16;

/* Is it a product whose operands are f32? */
static bool is_product(Graph *g, const Node *n) {
  if ((n->op != OP_conv && n->op != OP_contract) || n->nin < 2) return false;
  for (u32 i = 0; i < 2; i++)
    if (graph_type(g, n->in[i])->dt != DT_f32) return false;
  i64 group = node_int(n, AT_group, 1);
  return n->op == OP_contract || group == 1 || graph_type(g, n->in[1])->dim[1] > 1;
}

static const Node *view_of(Graph *g, Val v) {
  NodeId def = graph_val(g, v)->def;
  const Node *n = def ? graph_node(g, def) : NULL;
  return n && n->nout == 1 && op_info[n->op].kind == OK_VIEW && n->op != OP_check_index ? n : NULL;
}

/* The halves that v is a cast of; 0: it is not. */
static Val halves_of(Graph *g, Val v) {
  const Node *n = graph_def(g, v, OP_cast);
  return n && graph_type(g, v)->dt == DT_f32 && dtype_is_half(graph_type(g, n->in[0])->dt)
             ? n->in[0]
             : 0;
}

static Val widened(Graph *g, Val half) {
  Val v = mk_cast(g, half, DT_f32);
  cast_mark(g, v);
  return v;
}

/* Returns v in 16 bits: the value it was cast from, through views, or a new cast. */
static Val as_halves(Graph *g, Val v, DType dt) {
  Val half = halves_of(g, v);
  if (half) return half;
  const Node *n = view_of(g, v);
  if (!n) return dt ? mk_cast(g, v, dt) : 0;
  Node copy = *n;
  Val in[4], first = as_halves(g, n->in[0], dt);
  if (!first || n->nin > 4) return 0;
  for (u32 i = 0; i < copy.nin; i++) in[i] = i ? copy.in[i] : first;
  return mk_node(g, copy.op, in, copy.nin, copy.attr, copy.nattr);
}

/* A constant with every element rounded; 0: one is too large. */
static Val rounded(Graph *g, const Tensor *t, DType dt) {
  const Tensor *half = tensor_as(&g->c->work, t, dt);
  Tensor *wide = tensor_as(&g->c->work, half, DT_f32);
  for (u64 i = 0; i < t->n; i++)
    if (isfinite(tensor_get(t, i).f) && !isfinite(tensor_get(wide, i).f)) return 0;
  return mk_const(g, wide);
}

static bool visit(GraphEdit *e, NodeId id) {
  Cast16 *o = e->user;
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  if (is_product(g, &n)) {
    Val in[2];
    bool changed = false;
    for (u32 i = 0; i < 2; i++) {
      const Tensor *t = graph_const(g, n.in[i]);
      Val half = t ? 0 : as_halves(g, n.in[i], o->dt), by = half ? widened(g, half) : 0;
      if (t && o->dt) by = rounded(g, t, o->dt);
      in[i] = by ? by : n.in[i];
      changed = changed || by;
    }
    for (u32 i = 0; i < 2; i++) graph_node(g, id)->in[i] = in[i];
    e->changed = e->changed || changed;
  }
  Val v = n.out[0];
  if (!o->dt || n.nout != 1 || v >= o->nread || !o->read[v] || view_of(g, v) || halves_of(g, v) ||
      n.op == OP_const || graph_type(g, v)->dt != DT_f32)
    return true;
  Node now = *graph_node(g, id);
  Val *in = NEWS(&g->c->scratch, Val, now.nin + 1);
  for (u32 i = 0; i < now.nin; i++) in[i] = now.in[i];
  if (now.nregion) return true;
  Val made = mk_node(g, now.op, in, now.nin, now.attr, now.nattr);
  edit_replace(e, v, widened(g, mk_cast(g, made, o->dt)));
  return false;
}

void cast16(PassCtx *u) {
  Graph *g = u->g;
  Cast16 o = {.u = u, .nread = g->val.n, .read = NEWS(&u->c->scratch, bool, g->val.n)};
  if (!u->target->warp) return;
  o.dt = u->precision == PREC_f16 ? DT_f16 : u->precision == PREC_bf16 ? DT_bf16 : DT_none;
  for (RegionId b = 1; b < g->region.n; b++)
    for (u32 i = 0; i < g->region.at[b].node.n; i++) {
      const Node *n = graph_node(g, g->region.at[b].node.at[i]);
      for (u32 k = 0; is_product(g, n) && k < 2; k++) {
        Val v = n->in[k];
        for (const Node *w; (w = view_of(g, v));) v = w->in[0];
        o.read[v] = true;
      }
    }
  if (edit_run(g, visit, &o)) g->left = LEFT_equal | LEFT_dead;
}
