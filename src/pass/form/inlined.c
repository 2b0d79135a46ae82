/* inlined.c: lowers values that fuse.c marked inline or epilogue.
 *
 * Such a value gets a placeholder buffer, so that forms of its users can be built as usual. A load
 * from an inlined value is replaced by its expression: the form of its node with every axis
 * replaced by the index, recursively down to buffers. A group with an epilogue is written as the
 * loops of the reduction; the accumulator replaces the reduction's value when the root is stored.
 */
#include "pass/form/nest.h"

void inlined_value(Lower *l, Val v) {
  l->places.of[v].kind = SK_inlined;
  l->places.of[v].value = v;
  lower_temp(l, v);
}

bool inlined_make(Lower *l, const Node *n) {
  if (n->nout != 1 || graph_val(l->g, n->out[0])->home == HOME_buffer) return false;
  inlined_value(l, n->out[0]);
  return true;
}

/* Element of v at idx as an index: negative values count from the end, then it is clamped. */
static ExprId pick_eval(Lower *l, Val v, const ExprId *idx, Dim extent, const ExprScope *in) {
  Prog *p = l->p;
  ExprId raw = ex_cast(p, DT_i64, storage_load(l, l->buf[v], idx, in), false);
  if (index_is_certain(l->g, v, extent)) return raw;
  ExprId neg = ex_op2(p, OP_lt, ex_copy(p, raw), ex_int(p, 0));
  ExprId end = ex_op2(p, OP_add, ex_copy(p, raw), ex_dim(p, extent));
  ExprId pos = ex_op3(p, OP_select, neg, end, raw);
  pos = ex_op2(p, OP_min, pos, ex_op2(p, OP_sub, ex_dim(p, extent), ex_int(p, 1)));
  return ex_op2(p, OP_max, pos, ex_int(p, 0));
}

/* Element of a gather. */
static ExprId gather_eval(Lower *l, const Node *n, const ExprId *idx, const ExprScope *in) {
  Prog *p = l->p;
  BufId x = l->buf[n->in[0]];
  bool lines = n->op == OP_gather; /* otherwise the index has the rank of x */
  u32 axis = (u32)node_int(n, AT_axis, 0), rank = prog_buf(p, x)->rank;
  u32 nidx = prog_buf(p, l->buf[n->in[1]])->rank, more = lines ? nidx - 1 : 0;
  ExprId at[MAX_RANK], place[MAX_RANK];
  for (u32 i = 0; i < nidx; i++) place[i] = ex_copy(p, idx[lines ? axis + i : i]);
  ExprId pos = pick_eval(l, n->in[1], place, prog_buf(p, x)->dim[axis], in);
  for (u32 i = 0; i < rank; i++) at[i] = i == axis ? pos : ex_copy(p, idx[i < axis ? i : i + more]);
  return storage_load(l, x, at, in);
}

ExprId inlined_eval(Lower *l, Val v, const ExprId *idx, const ExprScope *in) {
  Form f;
  const Node *n = graph_node(l->g, graph_val(l->g, v)->def);
  if (n->op == OP_gather || n->op == OP_gather_elems) return gather_eval(l, n, idx, in);
  if (!form_of(l->g, n, l->p, l->buf, &f) || f.reduce)
    internal_error(l->c, n->loc, "%s cannot be inlined", op_info[n->op].name);
  Nest x = {.l = l, .p = l->p, .f = &f, .sub = idx, .in = *in};
  return nest_value(&x);
}

/* The reduction below v, if any; a group has at most one. */
static Val reduction_below(Lower *l, Val v) {
  const Value *x = graph_val(l->g, v);
  if (x->home == HOME_epilogue) return v;
  if (x->home != HOME_inline) return 0;
  const Node *n = graph_node(l->g, x->def);
  for (u32 i = 0; i < n->nin; i++) {
    Val found = reduction_below(l, n->in[i]);
    if (found) return found;
  }
  return 0;
}

Val group_accumulator(Lower *l, Val v) {
  const Node *n = graph_producer(l->g, v);
  if (!n || op_is(n->op, OF_REDUCES)) return n ? v : 0;
  Val found = 0;
  for (u32 i = 0; i < n->nin && op_info[n->op].kind == OK_MAP && !found; i++)
    found = reduction_below(l, n->in[i]);
  return found;
}

bool group_reduction(Lower *l, const Node *root, Form *f) {
  if (op_info[root->op].kind != OK_MAP) return false;
  Val v = 0;
  for (u32 i = 0; i < root->nin && !v; i++) v = reduction_below(l, root->in[i]);
  if (!v) return false;
  const Node *n = graph_node(l->g, graph_val(l->g, v)->def);
  if (!form_of(l->g, n, l->p, l->buf, f))
    internal_error(l->c, n->loc, "%s has no form", op_info[n->op].name);
  f->out.buf = l->buf[root->out[0]]; /* same shape, as fuse.c ensures */
  f->epilogue = v;
  f->root = root->out[0];
  return true;
}
