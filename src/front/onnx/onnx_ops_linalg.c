/* onnx_ops_linalg.c: Det and Inverse by Gaussian elimination with partial pivoting, a loop over
 * columns. Matrices are [batch, n, m], m = n for Det; Inverse appends the identity. A zero pivot
 * gives determinant 0, and an infinite or NaN inverse.
 */
#include "front/onnx/onnx_builder.h"

typedef struct Elim {
  Build *b;
  bool whole; /* Gauss-Jordan: also eliminates above the pivot and scales the pivot to 1 */
} Elim;

/* carried: matrices [batch, n, m], determinants [batch]. Swaps row k with the row from k on that
 * has the largest element in column k. */
static void eliminate(Graph *g, void *user, Val k, Val *cond, Val *carried, Val *scan) {
  Elim *e = user;
  Build *b = e->b;
  (void)cond, (void)scan;
  Type t = *on_type(b, carried[0]);
  Dim line[3] = {t.dim[0], t.dim[1], 1};
  Val i = mk_iota(g, DT_i64, t.dim + 1, 1, 0), a = carried[0];
  Val column = mk_gather(g, a, k, 2), below = mk_ge(g, i, k); /* [batch, n] */
  Val less = mk_like(g, a, -1);
  Val size = mk_select(g, below, mk_abs(g, column), less);
  Val p = mk_arg(g, OP_argmax, size, 1, true, false); /* [batch, 1] */
  Val other = mk_select(g, mk_eq(g, i, p), k, i);
  Val from = mk_select(g, mk_eq(g, i, k), p, other);
  Val rows = mk_broadcast(g, mk_reshape(g, from, line, 3), t.dim, 3);
  a = mk_gather_elems(g, a, rows, 1);
  column = mk_gather(g, a, k, 2);
  Val pivot = mk_gather(g, column, k, 1), row = mk_gather(g, a, k, 1); /* [batch], [batch, m] */
  Val same = mk_eq(g, mk_squeeze(g, p, 1), k);
  carried[1] = mk_mul(g, carried[1], mk_select(g, same, pivot, mk_neg(g, pivot)));
  Val zero = mk_like(g, a, 0), wide = mk_unsqueeze(g, pivot, 1), factor;
  if (e->whole) {
    row = mk_div(g, row, wide);
    factor = mk_select(g, mk_eq(g, i, k), zero, column);
  } else {
    Val quotient = mk_div(g, column, wide);
    factor = mk_select(g, mk_eq(g, wide, zero), zero, quotient);
    factor = mk_select(g, mk_gt(g, i, k), factor, zero);
  }
  Val over = mk_unsqueeze(g, row, 1);
  Val taken = mk_mul(g, mk_unsqueeze(g, factor, 2), over);
  Val left = mk_sub(g, a, taken);
  if (e->whole) {
    Val here = mk_expand_tail(g, mk_eq(g, i, k), 1);
    left = mk_select(g, here, mk_unsqueeze(g, row, 1), left);
  }
  carried[0] = left;
}

/* The operand as [batch, n, n]. */
static Val square_matrices(Build *b, Type *t) {
  Val x = on_wide(b, 0);
  *t = *on_type(b, x);
  if (t->rank < 2) on_bad(b, "the operand has rank %u, expected at least 2", t->rank);
  Dim n = t->dim[t->rank - 1], m = t->dim[t->rank - 2];
  if (n != m && dim_is_const(n) && dim_is_const(m))
    on_bad(b, "a matrix is %lld by %lld, expected a square", (long long)m, (long long)n);
  Dim flat[3] = {dim_product(b->ds, t->dim, t->rank - 2), n, n};
  return mk_reshape(b->g, x, flat, 3);
}

void build_det(Build *b) {
  Type t;
  Elim e = {.b = b};
  Val a = square_matrices(b, &t), scan;
  Dim batch = on_dim(b, a, 0), n = on_dim(b, a, 1);
  Val carried[2] = {a, mk_full(b->g, mk_like(b->g, a, 1), &batch, 1)};
  mk_loop(b->g, mk_extent(b->g, n, DT_i64), 0, carried, 2, &scan, 0, eliminate, &e);
  on_set_output(b, mk_reshape(b->g, carried[1], t.dim, t.rank - 2));
}

void build_inverse(Build *b) {
  Type t;
  Elim e = {.b = b, .whole = true};
  Val a = square_matrices(b, &t), scan;
  Type ta = *on_type(b, a);
  Dim n = ta.dim[1];
  Val col = mk_iota(b->g, DT_i64, ta.dim, 3, 2);
  Val unit = mk_eq(b->g, mk_iota(b->g, DT_i64, ta.dim, 3, 1), col);
  Val both[2] = {a, mk_cast(b->g, unit, ta.dt)};
  Val carried[2] = {mk_concat(b->g, both, 2, 2), mk_full(b->g, mk_like(b->g, a, 1), ta.dim, 1)};
  mk_loop(b->g, mk_extent(b->g, n, DT_i64), 0, carried, 2, &scan, 0, eliminate, &e);
  Val y = mk_slice_axis(b->g, carried[0], 2, n, n);
  on_set_output(b, mk_reshape(b->g, y, t.dim, t.rank));
}
