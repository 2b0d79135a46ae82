/* half.c: f16 and bf16 are stored as such and computed with as f32.
 *
 * In: a graph. Out: the same graph where every operator that computes with halves (f16 or bf16)
 * works on f32: its operands are cast, its result is cast back. Such an operator accumulates in
 * f32 and rounds once, at its end, so these casts change nothing by themselves. The result of a
 * layer that is cast back only to be cast again for its users keeps the bits that f32 has for it: a
 * network of halves rounds where its inputs and results are, not between its layers, unless
 * --precise asks for that. A cast that the model has is what the model means, and stays; so do
 * those to floats of 8 bits and fewer, by which models quantise. Operators that move elements
 * follow what they move, so that a table of halves is gathered as halves, and a transposed product
 * stays f32.
 *
 * Only for machines with vectors, which have no arithmetic for halves, but convert a register of
 * them at a time where they are loaded and stored. Elsewhere halves save memory, which is scarce.
 *
 * needs: nothing  keeps: types of inputs, results and what blocks pass  breaks: nothing
 * (leaves equal and dead nodes to cse and dce)
 */
#include "pass/pass.h"

typedef struct Half {
  bool precise;
  Map made; /* casts back to halves that stand behind operators which were built again */
} Half;

/* Is this cast the end of the layer that computes its operand, not one that the model has? */
static bool ends_layer(Graph *g, const Node *cast) {
  NodeId of = graph_val(g, cast->in[0])->def;
  const Loc *a = &cast->loc, *b = &graph_node(g, of)->loc;
  return of && a->index >= 0 && a->index == b->index && a->node == b->node && a->op == b->op;
}

/* The f32 value that v was cast from and may stand for it; 0: there is none. */
static Val cast_from(Edit *e, Val v) {
  const Half *h = e->user;
  const Node *n = graph_def(e->g, v, OP_cast);
  if (!n || h->precise || graph_type(e->g, n->in[0])->dt != DT_f32) return 0;
  return map_get(&h->made, v) || ends_layer(e->g, n) ? n->in[0] : 0;
}

static Val in_f32(Edit *e, Val v) {
  Graph *g = e->g;
  if (!dtype_is_half(graph_type(g, v)->dt)) return v;
  Val from = cast_from(e, v);
  const Tensor *t = graph_const(g, v);
  return from ? from : t ? mk_const(g, tensor_as(&g->c->work, t, DT_f32)) : mk_cast(g, v, DT_f32);
}

typedef enum Part { PART_none, PART_computes, PART_moves } Part;

/* What an operator does with halves. Those that are left work on one element after another. */
static Part part_of(const Node *n) {
  switch (op_info[n->op].kind) {
  case OK_MAP: return n->op == OP_cast || n->op == OP_bitcast ? PART_none : PART_computes;
  case OK_REDUCE:
  case OK_CONTRACT:
  case OK_WINDOW: return PART_computes;
  case OK_VIEW:
  case OK_JOIN: return PART_moves;
  default: return PART_none;
  }
}

/* Builds the node again on f32. */
static void rebuild(Edit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  DType dt = graph_type(g, n.out[0])->dt;
  Val *in = NEWS(&g->c->scratch, Val, n.nin);
  for (u32 i = 0; i < n.nin; i++) in[i] = in_f32(e, n.in[i]);
  Val out = graph_node(g, graph_add(g, n.op, in, n.nin, n.attr, n.nattr))->out[0];
  if (dtype_is_half(dt)) {
    Half *h = e->user;
    out = mk_cast(g, out, dt);
    *map_put(&h->made, out) = 1;
  }
  edit_replace(e, n.out[0], out);
}

static bool visit(Edit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  Part part = part_of(n);
  bool halves = false, made = false;
  for (u32 i = 0; i < n->nin; i++) {
    if (!dtype_is_half(graph_type(g, n->in[i])->dt)) continue;
    halves = true;
    made = made || cast_from(e, n->in[i]);
  }
  if (made && n->op == OP_cast && graph_type(g, n->out[0])->dt == DT_f32) {
    edit_replace(e, n->out[0], cast_from(e, n->in[0]));
    return false;
  }
  if (!halves || part == PART_none || (part == PART_moves && !made)) return true;
  rebuild(e, id);
  return false;
}

void half(Unit *u) {
  Half h = {u->precise, map_new(&u->c->scratch)};
  if (u->target->lanes == 1 || !edit_run(u->g, visit, &h)) return;
  u->g->left = LEFT_equal; /* casts of one value for several users */
}
