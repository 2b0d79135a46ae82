/* lower_layout.c: values whose memory is not plain row-major.
 *
 * Such a value has two buffers: one in name only, with the dimensions of its type, of which forms
 * are made as of any other; and the memory itself. Where an element is loaded or stored, its index
 * becomes the place in memory: channels are taken apart into block and lane, the border is added.
 * The border is written when the buffer is made, just in front of what writes the inside.
 */
#include "pass/lower/lower.h"

#include "ir/affine.h"

static Dim outer_dim(const Layout *y, const Type *t, u32 i) {
  return t->dim[i] + y->lo[i] + y->hi[i];
}

/* Zeros for dimension d in [from, to); the ones in front of it inside, the ones behind all over. */
static void zero_slab(Lower *l, Cursor at, BufId b, const Layout *y, u32 rank, u32 d, i64 from,
                      i64 to) {
  Prog *p = l->p;
  ExprId idx[MAX_RANK + 1];
  u32 all = prog_buf(p, b)->rank, last = all - 1;
  if (from == to) return;
  for (u32 i = 0; i < last + (all == rank); i++) {
    Dim lo = 0, hi = prog_buf(p, b)->dim[i];
    if (i >= 2 && i < d) {
      lo = y->lo[i];
      hi -= y->hi[i];
    } else if (i == d) {
      lo = from;
      hi = to;
    }
    if (hi == lo + 1)
      idx[i] = ex_int(p, lo);
    else
      idx[i] = ex_var(p, prog_for(p, &at, ex_int(p, lo), ex_dim(p, hi), "i"));
  }
  ExprId zero = ex_const(p, prog_buf(p, b)->dt, (Scalar){.i = y->fill});
  if (all > rank) {
    idx[last] = ex_int(p, 0);
    zero = ex_splat(p, zero, y->block);
  }
  prog_store(p, &at, b, idx, all, zero);
}

/* rest: of the last block only a part has channels. Bytes are read four at a time, those behind the
 * last channel too; they count for nothing, but memory that nobody wrote is not read. */
static void zero_border(Lower *l, BufId b, const Layout *y, u32 rank, bool rest) {
  bool any = rest;
  for (u32 i = 2; i < rank; i++) any = any || y->lo[i] || y->hi[i];
  if (!any) return;
  Cursor at = lower_kernel(l, str_of(l->c, "border"));
  for (u32 i = 2; i < rank; i++) {
    i64 n = prog_buf(l->p, b)->dim[i];
    zero_slab(l, at, b, y, rank, i, 0, y->lo[i]);
    zero_slab(l, at, b, y, rank, i, n - y->hi[i], n);
  }
  i64 blocks = prog_buf(l->p, b)->dim[1];
  if (rest) zero_slab(l, at, b, y, rank, 1, blocks - 1, blocks);
}

BufId layout_temp(Lower *l, Val v) {
  Prog *p = l->p;
  const Value *x = graph_val(l->g, v);
  const Layout *y = x->layout;
  const Type *t = &x->type;
  Dim dim[MAX_RANK + 1];
  u32 rank = t->rank;
  for (u32 i = 0; i < rank; i++) dim[i] = i < 2 ? t->dim[i] : outer_dim(y, t, i);
  if (y->block) {
    dim[1] = (dim[1] + y->block - 1) / y->block;
    dim[rank] = y->block;
  }
  BufId name = prog_add_buf(p, BS_temp, t->dt, t->dim, rank, x->name);
  BufId mem = prog_add_buf(p, BS_temp, t->dt, dim, rank + (y->block != 0), x->name);
  *map_put(&l->named, name) = l->placed.n;
  *vec_push(&l->c->scratch, &l->placed) = (Placed){mem, y};
  zero_border(l, mem, y, rank,
              y->block && t->dim[1] % y->block && dtype_bytes(t->dt) == 1 && t->dt != DT_bool);
  return name;
}

const Layout *layout_of(const Lower *l, BufId b) {
  const u32 *at = map_get(&l->named, b);
  return at ? l->placed.at[*at].y : NULL;
}

void layout_address(Lower *l, BufId *b, ExprId *idx, u32 *n, const InnerVars *inner) {
  Prog *p = l->p;
  const u32 *at = map_get(&l->named, *b);
  if (!at) return;
  const Layout *y = l->placed.at[*at].y;
  *b = l->placed.at[*at].mem;
  for (u32 i = 2; i < *n; i++)
    if (y->lo[i]) idx[i] = ex_op2(p, OP_add, idx[i], ex_int(p, y->lo[i]));
  if (!y->block) return;
  ExprId q, r;
  ex_split(p, idx[1], y->block, inner, &q, &r);
  idx[1] = q;
  idx[(*n)++] = r;
}

/* Every access must have gone through layout_address: what is left would read memory nobody writes.
 */
void layout_done(Lower *l) {
  Prog *p = l->p;
  for (ExprId i = 1; i < p->nexpr; i++) {
    const Expr *x = prog_expr(p, i);
    if (x->kind == EX_load && layout_of(l, x->ref))
      bug(l->c, LOC_NONE, "a load of %s by its plain name", show(l->c, prog_buf(p, x->ref)->name));
  }
  for (u32 i = 1; i < p->stmt.n; i++)
    if (p->stmt.at[i].kind == ST_store && layout_of(l, p->stmt.at[i].buf))
      bug(l->c, LOC_NONE, "a store to %s by its plain name",
          show(l->c, prog_buf(p, p->stmt.at[i].buf)->name));
}
