/* lower_fuse.c: groups: values that fuse.c has decided not to keep in memory.
 *
 * Such a value gets a buffer in name only (it is inlined), so that forms can be made of its users
 * as of any other. Where an element of an inlined one is loaded, the expression that computes it
 * stands instead: the form of its node with every axis replaced by the index, and so on down to
 * buffers. A group that ends a fold is written as the loops of the fold, whose accumulator takes
 * the place of the folded value when the root is stored.
 */
#include "pass/lower/lower.h"
#include "ir/text.h"

/* Is the shape of the whole known when the part is computed? Sizes that nodes find out are, if the
 * part itself has them. */
static bool is_settled(Lower *l, const Type *whole, const Type *part) {
  Dims *ds = l->g->dims;
  u32 n = dim_nsyms(ds);
  bool *need = NEWS(&l->c->scratch, bool, n + 1), *have = NEWS(&l->c->scratch, bool, n + 1);
  for (u32 i = 0; i < whole->rank; i++) dims_use(ds, whole->dim[i], need);
  for (u32 i = 0; i < part->rank; i++) dims_use(ds, part->dim[i], have);
  for (Sym s = 0; s < n; s++)
    if (need[s] && !have[s] && dim_syminfo(ds, s)->kind == SY_data) return false;
  return true;
}

/* Values with one user, a concat of the same block, are written where they belong. */
static void slots_find(Lower *l, const u32 *uses) {
  Graph *g = l->g;
  for (BlkId b = 1; b < g->blk.n; b++)
    for (u32 i = 0; i < g->blk.at[b].node.n; i++) {
      const Node *n = graph_node(g, g->blk.at[b].node.at[i]);
      if (n->op != OP_concat) continue;
      u32 axis = (u32)node_int(n, AT_axis, 0);
      Dim at = 0;
      for (u32 k = 0; k < n->nin; k++) {
        const Value *v = graph_val(g, n->in[k]);
        if (uses[n->in[k]] == 1 && l->block[v->def] == b && part_fits(g, n, k) &&
            is_settled(l, graph_type(g, n->out[0]), &v->type))
          l->slot[n->in[k]] = (Slot){n->out[0], axis, at};
        at = dim_add(g->dims, at, v->type.dim[axis]);
      }
    }
}

void inlined_find(Lower *l) {
  Graph *g = l->g;
  l->inlined = map_new(&l->c->scratch);
  l->slot = NEWS(&l->c->scratch, Slot, g->val.n);
  l->block = NEWS(&l->c->scratch, BlkId, g->node.n);
  u32 *uses = NEWS(&l->c->scratch, u32, g->val.n);
  graph_use_counts(g, uses);
  for (BlkId b = 1; b < g->blk.n; b++)
    for (u32 i = 0; i < g->blk.at[b].node.n; i++) l->block[g->blk.at[b].node.at[i]] = b;
  slots_find(l, uses);
}

bool is_inlined(const Lower *l, BufId b) {
  return map_get(&l->inlined, b) != NULL;
}

bool inlined_make(Lower *l, const Node *n) {
  if (n->nout != 1 || graph_val(l->g, n->out[0])->home == HOME_buffer) return false;
  *map_put(&l->inlined, lower_temp(l, n->out[0])) = n->out[0];
  return true;
}

/* The element of buffer b at idx, from memory or computed. */
static ExprId element(Lower *l, BufId b, const ExprId *idx, const ExprScope *in) {
  if (is_inlined(l, b)) return inlined_load(l, b, idx, in);
  ExprId at[MAX_RANK + 1];
  u32 n = prog_buf(l->p, b)->rank;
  for (u32 i = 0; i < n; i++) at[i] = idx[i];
  layout_address(l, &b, at, &n, &in->inner);
  return ex_load(l->p, b, at, n);
}

/* Element of a gather: its index counts from the end when negative, and is clamped. */
static ExprId gather_eval(Lower *l, const Node *n, const ExprId *idx, const ExprScope *in) {
  Prog *p = l->p;
  BufId x = l->buf[n->in[0]], from = l->buf[n->in[1]];
  u32 axis = (u32)node_int(n, AT_axis, 0), rank = prog_buf(p, x)->rank;
  u32 nidx = prog_buf(p, from)->rank;
  Dim extent = prog_buf(p, x)->dim[axis];
  ExprId at[MAX_RANK], place[MAX_RANK];
  for (u32 i = 0; i < nidx; i++) place[i] = ex_copy(p, idx[axis + i]);
  ExprId raw = ex_cast(p, DT_i64, element(l, from, place, in), false);
  ExprId neg = ex_op2(p, OP_lt, ex_copy(p, raw), ex_int(p, 0));
  ExprId end = ex_op2(p, OP_add, ex_copy(p, raw), ex_dim(p, extent));
  ExprId pos = ex_op3(p, OP_select, neg, end, raw);
  pos = ex_op2(p, OP_min, pos, ex_op2(p, OP_sub, ex_dim(p, extent), ex_int(p, 1)));
  pos = ex_op2(p, OP_max, pos, ex_int(p, 0));
  for (u32 i = 0; i < rank; i++)
    at[i] = i == axis ? pos : ex_copy(p, idx[i < axis ? i : i + nidx - 1]);
  return element(l, x, at, in);
}

ExprId inlined_eval(Lower *l, Val v, const ExprId *idx, const ExprScope *in) {
  Form f;
  const Node *n = graph_node(l->g, graph_val(l->g, v)->def);
  if (n->op == OP_gather) return gather_eval(l, n, idx, in);
  if (!form_of(l->g, n, l->p, l->buf, &f) || f.fold)
    bug(l->c, n->loc, "%s has no value in place", op_info[n->op].name);
  Nest x = {.l = l, .p = l->p, .f = &f, .sub = idx, .in = *in};
  return nest_value(&x);
}

ExprId inlined_load(Lower *l, BufId b, const ExprId *idx, const ExprScope *in) {
  Val v = *map_get(&l->inlined, b);
  return v == in->acc ? ex_copy(l->p, in->acc_expr) : inlined_eval(l, v, idx, in);
}

/* The folded value below v, if there is one; there is at most one in a group. */
static Val fold_below(Lower *l, Val v) {
  const Value *x = graph_val(l->g, v);
  if (x->home == HOME_epilogue) return v;
  if (x->home != HOME_inline) return 0;
  const Node *n = graph_node(l->g, x->def);
  for (u32 i = 0; i < n->nin; i++) {
    Val found = fold_below(l, n->in[i]);
    if (found) return found;
  }
  return 0;
}

bool group_fold(Lower *l, const Node *root, Form *f) {
  if (op_info[root->op].kind != OK_MAP) return false;
  Val v = 0;
  for (u32 i = 0; i < root->nin && !v; i++) v = fold_below(l, root->in[i]);
  if (!v) return false;
  const Node *n = graph_node(l->g, graph_val(l->g, v)->def);
  if (!form_of(l->g, n, l->p, l->buf, f)) bug(l->c, n->loc, "%s has no form", op_info[n->op].name);
  f->out.buf = l->buf[root->out[0]]; /* same shape: fuse.c sees to that */
  f->epilogue = v;
  return true;
}

/* ---- parts of a concat ---- */

bool slots_all(Lower *l, const Node *n) {
  if (n->op != OP_concat) return false;
  for (u32 i = 0; i < n->nin; i++)
    if (l->slot[n->in[i]].into != n->out[0]) return false;
  return true;
}

void slot_redirect(Lower *l, Form *f) {
  const Slot *s = &l->slot[l->n->out[0]];
  if (!s->into) return;
  f->out.buf = lower_temp(l, s->into);
  f->out.idx[s->axis].base = s->offset;
}
