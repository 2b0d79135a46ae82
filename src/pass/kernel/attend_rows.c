/* attend_rows.c: the online softmax of each row (query); see lower_attention.c.
 *
 * In: a SoftmaxState per row over the keys seen so far: the maximum score m, the sum of exp(score -
 * m), and the sum of values with these weights. Out: loops that initialize it (attend_begin), store
 * that of a segment (attend_keep), merge another segment (attend_merge) and divide to get the
 * result (attend_end). To merge two segments, the sums of each are multiplied by exp(its m - the
 * larger m) and added. A segment in which the mask hides all keys of a row is skipped. So the bits
 * of a row do not depend on the number of segments after the keys it sees.
 */
#include "pass/kernel/attend.h"

#include <math.h>

/* Opens loops over the rows of a block and returns a cursor inside. *row becomes the number of the
 * row in the block; val_s and val_y are set to it. */
static Cursor each_row(Attend *x, Cursor at, RowBlock b, ExprId *row) {
  Prog *p = x->p;
  VarId i = prog_for(p, &at, ex_int(p, 0), ex_var(p, b.count), "i");
  set_axis(x, x->block, plus(p, ex_var(p, b.l0), ex_var(p, i)));
  *row = ex_var(p, i);
  if (x->tile == x->block) return at;
  i64 n = extent(x, x->tile);
  VarId g = prog_for(p, &at, ex_int(p, 0), ex_int(p, n), "j");
  set_axis(x, x->tile, ex_var(p, g));
  *row = plus(p, times(p, *row, n), ex_var(p, g));
  return at;
}

/* Opens a loop along the width: over whole vectors or, if lanes is 1, over the remaining elements.
 * Returns the first element of a step. */
static ExprId each_piece(const Attend *x, Cursor *at, u32 lanes) {
  Prog *p = x->p;
  i64 n = x->y.axis[x->width].hi, whole = n / x->lanes;
  if (lanes == 1) return ex_var(p, prog_for(p, at, ex_int(p, whole * x->lanes), ex_int(p, n), "v"));
  return times(p, ex_var(p, prog_for(p, at, ex_int(p, 0), ex_int(p, whole), "v")), lanes);
}

/* Lanes of the next loop along the width: 1 if vectors leave a remainder; 0: done. */
static u32 next_lanes(const Attend *x, u32 lanes) {
  return lanes > 1 && x->y.axis[x->width].hi % x->lanes ? 1 : 0;
}

static ExprId spread(const Attend *x, ExprId e, u32 lanes) {
  return lanes > 1 ? splat_of(x, e) : e;
}

void attend_begin(Attend *x, Cursor at, RowBlock b, SoftmaxState of) {
  Prog *p = x->p;
  ExprId row, zero = ex_int(p, 0);
  at = each_row(x, at, b, &row);
  reg_store(p, &at, of.largest, row, zero, number(p, -INFINITY));
  reg_store(p, &at, of.total, row, zero, number(p, 0));
  for (u32 lanes = x->lanes; lanes; lanes = next_lanes(x, lanes)) {
    Cursor in = at;
    ExprId v = each_piece(x, &in, lanes);
    reg_store(p, &in, of.sums, row, v, spread(x, number(p, 0), lanes));
  }
}

void attend_keep(Attend *x, Cursor at, RowBlock b, ExprId first) {
  Prog *p = x->p;
  ExprId row, zero = ex_int(p, 0);
  at = each_row(x, at, b, &row);
  ExprId to = plus(p, ex_copy(p, first), ex_copy(p, row));
  reg_store(p, &at, x->parts.largest, to, zero, at2(p, x->here.largest, row, zero, 1));
  reg_store(p, &at, x->parts.total, to, zero, at2(p, x->here.total, row, zero, 1));
  for (u32 lanes = x->lanes; lanes; lanes = next_lanes(x, lanes)) {
    Cursor in = at;
    ExprId v = each_piece(x, &in, lanes);
    reg_store(p, &in, x->parts.sums, to, v, at2(p, x->here.sums, row, v, lanes));
  }
}

void attend_merge(Attend *x, Cursor at, RowBlock b, SoftmaxState one, ExprId first) {
  Prog *p = x->p;
  ExprId row, zero = ex_int(p, 0);
  at = each_row(x, at, b, &row);
  ExprId from = plus(p, ex_copy(p, first), ex_copy(p, row));
  VarId top = let_new(p, &at, "top", at2(p, one.largest, from, zero, 1));
  prog_if(p, &at, ex_op2(p, OP_ne, ex_var(p, top), number(p, -INFINITY)));
  VarId old = let_new(p, &at, "old", at2(p, x->all.largest, row, zero, 1));
  VarId new = let_new(p, &at, "new", ex_op2(p, OP_max, ex_var(p, old), ex_var(p, top)));
  VarId less = let_new(p, &at, "less", exp_of(x, minus(p, ex_var(p, old), ex_var(p, new))));
  VarId more = let_new(p, &at, "more", exp_of(x, minus(p, ex_var(p, top), ex_var(p, new))));
  reg_store(p, &at, x->all.largest, row, zero, ex_var(p, new));
  ExprId was = ex_op2(p, OP_mul, at2(p, x->all.total, row, zero, 1), ex_var(p, less));
  ExprId add = ex_op2(p, OP_mul, at2(p, one.total, from, zero, 1), ex_var(p, more));
  reg_store(p, &at, x->all.total, row, zero, plus(p, was, add));
  for (u32 lanes = x->lanes; lanes; lanes = next_lanes(x, lanes)) {
    Cursor in = at;
    ExprId v = each_piece(x, &in, lanes);
    was = ex_op2(p, OP_mul, at2(p, x->all.sums, row, v, lanes), spread(x, ex_var(p, less), lanes));
    add = at2(p, one.sums, from, v, lanes);
    reg_store(p, &in, x->all.sums, row, v,
              fma_or_mul_add(x, add, spread(x, ex_var(p, more), lanes), was));
  }
}

/* Address in the result of the element or vector at `first`. */
static u32 place_of(Attend *x, ExprId first, u32 lanes, BufId *out, ExprId *idx) {
  Prog *p = x->p;
  x->val_y[x->width] = lanes > 1 ? plus(p, first, ex_var(p, x->lane)) : first;
  Nest n = attend_nest(x, &x->y, x->val_y);
  Vectorizer w = {.p = p, .lane = x->lane, .lanes = lanes, .once = &x->l->once};
  u32 rank = nest_address(&n, &x->y.out, out, idx);
  if (lanes > 1 && !widen_place(&w, out, idx, &rank))
    internal_error(p->c, LOC_NONE, "the result of an attention is not contiguous");
  return rank;
}

void attend_end(Attend *x, Cursor at, RowBlock b, SoftmaxState of) {
  Prog *p = x->p;
  ExprId row, zero = ex_int(p, 0);
  at = each_row(x, at, b, &row);
  ExprId sum = at2(p, of.total, row, zero, 1);
  if (x->a->whole_rows) {
    ExprId top = at2(p, of.largest, row, zero, 1);
    ExprId none = ex_op2(p, OP_eq, top, number(p, -INFINITY));
    sum = ex_op3(p, OP_select, none, number(p, 1), sum);
  }
  VarId by = let_new(p, &at, "by", ex_op1(p, OP_recip, sum));
  for (u32 lanes = x->lanes; lanes; lanes = next_lanes(x, lanes)) {
    Cursor in = at;
    ExprId v = each_piece(x, &in, lanes), idx[MAX_RANK + 1];
    ExprId e = ex_op2(p, OP_mul, at2(p, of.sums, row, v, lanes), spread(x, ex_var(p, by), lanes));
    BufId out;
    u32 rank = place_of(x, v, lanes, &out, idx);
    prog_store(p, &in, out, idx, rank, e);
  }
}
