/* lower_control.c: if and loop.
 *
 * Regions are lowered where they run, inside the branches and the loop. The results of a branch are
 * copied to the buffers of the node. Carried values of a loop live in the buffers of its results,
 * which are also the parameters of the region. New values are copied there at the end of an
 * iteration. A new value that itself lies in such a buffer goes through a temporary copy, so that
 * it is not overwritten before it is read.
 */
#include "pass/lower/lower.h"

/* ---- if ---- */

static void branch(Lower *l, Cursor at, u32 which) {
  const Node *n = l->n;
  Cursor around = l->at;
  l->at = at;
  lower_region(l, n->region[which]);
  const GraphRegion *b = &l->g->region.at[n->region[which]],
                    *other = &l->g->region.at[n->region[!which]];
  u32 k = 0;
  for (u32 i = 0; i < n->nout; i++) {
    const Type *t = graph_type(l->g, b->ret.at[i]), *o = graph_type(l->g, other->ret.at[i]);
    for (u32 j = 0; j < t->rank; j++) {
      if (t->dim[j] == o->dim[j]) continue;
      if (k >= n->nsym) internal_error(l->c, n->loc, "if has %u symbols, too few", n->nsym);
      prog_set(l->p, &l->at, prog_sym_var(l->p, n->sym[k++]), ex_dim(l->p, t->dim[j]));
    }
  }
  for (u32 i = 0; i < n->nout; i++) lower_copy(l, l->buf[b->ret.at[i]], lower_out(l, i));
  l->at = around;
}

void lower_if(Lower *l) {
  Cursor in = l->at;
  StmtId s = prog_if(l->p, &in, load_at(l->p, lower_in(l, 0), NULL));
  l->at.last = s;
  prog_stmt(l->p, s)->loc = l->n->loc;
  branch(l, in, 0);
  branch(l, prog_else(s), 1);
}

/* ---- loop ---- */

/* Copies new carried values to the buffers of the old ones. */
static void carry(Lower *l, const GraphRegion *b) {
  const Node *n = l->n;
  u32 count = n->nin - 2;
  BufId *from = NEWS(&l->c->scratch, BufId, count);
  for (u32 i = 0; i < count; i++) {
    from[i] = l->buf[b->ret.at[1 + i]];
    bool mixed = false;
    for (u32 k = 0; k < count; k++)
      mixed |= k != i && prog_root(l->p, from[i]) == prog_root(l->p, lower_out(l, k));
    if (!mixed) continue;
    const Buf *old = prog_buf(l->p, from[i]);
    BufId copy = prog_add_buf(l->p, BS_temp, old->dt, old->dim, old->rank, 0);
    lower_copy(l, from[i], copy);
    from[i] = copy;
  }
  for (u32 i = 0; i < count; i++)
    if (from[i] != lower_out(l, i)) lower_copy(l, from[i], lower_out(l, i));
}

/* out[i] = x, for the slice of one iteration. */
static void append(Lower *l, BufId x, BufId out, VarId i) {
  Prog *p = l->p;
  Cursor at = lower_small(l, "append", FA_indexed);
  VarId var[MAX_RANK];
  var[0] = i;
  open_loops(p, &at, prog_buf(p, x)->dim, prog_buf(p, x)->rank, MAX_RANK, var + 1);
  store_at(p, &at, out, var, load_at(p, x, var + 1));
}

static void store_scalar(Lower *l, BufId b, ExprId e) {
  prog_store(l->p, &l->at, b, NULL, 0, e);
}

/* Value of a scalar; that of a constant is known. */
static ExprId scalar_of(Lower *l, Val v) {
  const Tensor *t = graph_const(l->g, v);
  return t ? ex_const(l->p, t->dt, tensor_get(t, 0)) : load_at(l->p, l->buf[v], NULL);
}

void lower_loop(Lower *l) {
  if (lower_tree_walk(l, l->n)) return;
  Prog *p = l->p;
  const Node *n = l->n;
  const GraphRegion *b = &l->g->region.at[n->region[0]];
  u32 ncarried = n->nin - 2;
  VarId done = n->nsym ? prog_sym_var(p, n->sym[0]) : 0;
  Val trip = n->in[0], cond = n->in[1], then = b->ret.at[0];
  bool always = graph_is_true(l->g, cond) && (then == b->param.at[1] || graph_is_true(l->g, then));
  for (u32 i = 0; i < ncarried; i++) lower_copy(l, lower_in(l, 2 + i), lower_out(l, i));
  VarId i = let_new(p, &l->at, "iter", ex_int(p, 0));
  VarId go = always ? 0 : let_new(p, &l->at, "go", scalar_of(l, cond));
  if (done) prog_set(p, &l->at, done, ex_int(p, 0)); /* counts the slices of scan outputs */
  ExprId more = ex_op2(p, OP_lt, ex_var(p, i), scalar_of(l, trip));
  if (!always) more = ex_op2(p, OP_and, more, ex_var(p, go));
  Cursor after = l->at;
  StmtId s = prog_while(p, &l->at, more);
  after.last = s;
  prog_stmt(p, s)->loc = n->loc;
  store_scalar(l, lower_temp(l, b->param.at[0]), ex_var(p, i));
  store_scalar(l, lower_temp(l, b->param.at[1]), always ? scalar_of(l, cond) : ex_var(p, go));
  for (u32 k = 0; k < ncarried; k++) l->buf[b->param.at[2 + k]] = lower_out(l, k);
  lower_region(l, n->region[0]);
  if (done) {
    prog_set(p, &l->at, done, ex_op2(p, OP_add, ex_var(p, i), ex_int(p, 1)));
    prog_stmt(p, l->at.last)->loc = n->loc; /* location of the loop, for the trip count limit */
  }
  for (u32 k = ncarried; k < n->nout; k++) append(l, l->buf[b->ret.at[1 + k]], lower_out(l, k), i);
  if (!always) prog_set(p, &l->at, go, scalar_of(l, then));
  carry(l, b);
  prog_set(p, &l->at, i, ex_op2(p, OP_add, ex_var(p, i), ex_int(p, 1)));
  l->at = after;
}
