/* widen_f16.c: stores f16 and bf16 as such and computes in f32.
 *
 * In: a graph. Out: the same graph, where every operator on f16 or bf16 works on f32: operands are
 * cast, and the result is cast back. Such an operator accumulates in f32 and rounds once at its
 * end, so these casts change nothing by themselves. A result that is cast back only to be cast
 * again for its users stays f32. So an f16 network rounds at its inputs and outputs, not between
 * layers, unless --precise. Casts that are in the model stay, and so do casts to 8-bit floats and
 * below, which models use to quantize. Operators that move elements keep the type they move: a
 * table of f16 is gathered as f16, and a transposed product stays f32.
 *
 * The pass runs for targets with vectors. They have no f16 arithmetic, but convert a register at a
 * time on loads and stores. Targets without vectors keep f16, because memory is scarce there.
 *
 * needs: nothing  keeps: types of inputs, results and values that regions pass  breaks: nothing
 * (leaves equal and dead nodes to cse and dce)
 */
#include "pass/pass.h"

/* The f32 value that v was cast from and that may replace it; 0: none. */
static Val cast_from(GraphEdit *e, Val v) {
  const PassCtx *u = e->user;
  const Node *n = graph_def(e->g, v, OP_cast);
  if (!n || u->precise || graph_type(e->g, n->in[0])->dt != DT_f32) return 0;
  return node_int(n, AT_layer, 0) ? n->in[0] : 0;
}

static Val in_f32(GraphEdit *e, Val v) {
  Graph *g = e->g;
  if (!dtype_is_half(graph_type(g, v)->dt)) return v;
  Val from = cast_from(e, v);
  const Tensor *t = graph_const(g, v);
  return from ? from : t ? mk_const(g, tensor_as(&g->c->work, t, DT_f32)) : mk_cast(g, v, DT_f32);
}

typedef enum Part { PART_none, PART_computes, PART_moves } Part;

/* How an operator treats f16. All others work element by element. */
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

static void rebuild(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  DType dt = graph_type(g, n.out[0])->dt;
  Val *in = NEWS(&g->c->scratch, Val, n.nin);
  for (u32 i = 0; i < n.nin; i++) in[i] = in_f32(e, n.in[i]);
  Val out = mk_node(g, n.op, in, n.nin, n.attr, n.nattr);
  if (dtype_is_half(dt)) {
    out = mk_cast(g, out, dt);
    cast_mark(g, out);
  }
  edit_replace(e, n.out[0], out);
}

static bool visit(GraphEdit *e, NodeId id) {
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

/* Removes the attribute layer, so that later passes treat all casts alike. */
static void drop_marks(Graph *g) {
  for (NodeId i = 1; i < g->node.n; i++) {
    Node *n = graph_node(g, i);
    if (n->op == OP_cast && node_attr(n, AT_layer)) n->nattr--; /* the last key */
  }
}

void widen_f16(PassCtx *u) {
  Graph *g = u->g;
  if (u->target->lanes > 1 && edit_run(g, visit, u))
    g->left = LEFT_equal; /* casts of one value for several users */
  drop_marks(g);
}
