/* onnx_ops_unique.c: Unique.
 *
 * Sorts rows (elements, or slices along the axis) stably, so equal rows are adjacent in original
 * order. A row that differs from its predecessor starts a group. Rows of several elements are
 * sorted column by column, from the last to the first.
 */
#include "front/onnx/onnx_builder.h"

typedef struct UniqueRows {
  Build *b;
  Val x; /* [rows, columns] */
} UniqueRows;

static Val sorted_order(Build *b, Val column) {
  Val v, order;
  mk_topk(b->g, column, 0, on_dim(b, column, 0), false, &v, &order);
  return order;
}

static void sort_column(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  UniqueRows *r = user;
  Build *b = r->b;
  (void)cond, (void)scan;
  Val last = mk_addk(g, mk_extent(g, on_dim(b, r->x, 1), DT_i64), -1);
  Val column = mk_gather(g, mk_gather(g, r->x, mk_sub(g, last, i), 1), carried[0], 0);
  carried[0] = mk_gather(g, carried[0], sorted_order(b, column), 0);
}

static Val order_of(UniqueRows *r) {
  Build *b = r->b;
  Graph *g = b->g;
  Dim rows = on_dim(b, r->x, 0), columns = on_dim(b, r->x, 1);
  if (columns == 1) return sorted_order(b, mk_squeeze(g, r->x, 1));
  Val order = mk_iota(g, DT_i64, &rows, 1, 0), scan;
  mk_loop(g, mk_extent(g, columns, DT_i64), 0, &order, 1, &scan, 0, sort_column, r);
  return order;
}

/* bool [rows]: the row differs from its predecessor; NaN equals NaN. */
static Val starts_group(Build *b, Val x) {
  Graph *g = b->g;
  Dim rows = on_dim(b, x, 0);
  Val i = mk_iota(g, DT_i64, &rows, 1, 0), zero = mk_scalar(g, DT_i64, 0);
  Val before = mk_gather(g, x, mk_max(g, mk_addk(g, i, -1), zero), 0);
  Val differs = mk_ne(g, x, before);
  if (dtype_is_float(on_dtype(b, x))) {
    Val other = mk_isnan(g, before);
    Val both = mk_and(g, mk_isnan(g, x), other);
    differs = mk_and(g, differs, mk_not(g, both));
  }
  differs = mk_reduce(g, OP_reduce_max, differs, &(i64){1}, 1, false);
  return mk_or(g, differs, mk_eq(g, i, zero));
}

static Val running_group(Build *b, Val starts) {
  return mk_addk(b->g, mk_cum(b->g, OP_cumsum, mk_cast(b->g, starts, DT_i64), 0, false, false), -1);
}

static Val places_of(Build *b, Val flags) {
  return mk_squeeze(b->g, mk_nonzero(b->g, flags), 0);
}

void build_unique(Build *b) {
  Graph *g = b->g;
  Val x = on_in(b, 0), out[4];
  Type t = *on_type(b, x);
  bool whole = !on_has_attr(b, "axis");
  u32 axis = whole ? 0 : on_axis(b, on_int(b, "axis", 0), t.rank);
  if (t.dt == DT_str) on_unsupported(b, "the operand holds strings, expected numbers");
  Dim total = type_count(b->ds, &t), rows = whole ? total : t.dim[axis], flat[2] = {rows, 1};
  Val front = whole ? mk_reshape(g, x, &total, 1) : mk_move_axis(g, x, axis, 0);
  Type tf = *on_type(b, front);
  flat[1] = dim_product(b->ds, tf.dim + 1, tf.rank - 1);
  Val key = t.dt == DT_bool ? mk_cast(g, front, DT_u8) : front;
  UniqueRows r = {.b = b, .x = mk_reshape(g, key, flat, 2)};
  Val order = order_of(&r), starts = starts_group(b, mk_gather(g, r.x, order, 0));
  Val zeros = mk_full(g, mk_scalar(g, DT_i64, 0), &rows, 1);
  if (on_int(b, "sorted", 1)) {
    out[1] = mk_gather(g, order, places_of(b, starts), 0);
    out[2] = mk_scatter_elems(g, zeros, order, running_group(b, starts), 0, "none");
  } else { /* groups in the order of their first rows */
    Val i = mk_iota(g, DT_i64, &rows, 1, 0), at = mk_select(g, starts, i, mk_like(g, i, 0));
    Val group = running_group(b, starts);
    Val head =
        mk_gather(g, mk_scatter_elems(g, zeros, running_group(b, starts), at, 0, "max"), group, 0);
    Val first = mk_scatter_elems(g, zeros, order, mk_gather(g, order, head, 0), 0,
                                 "none"); /* count of the group of each row */
    Val leads = mk_eq(g, first, i);
    out[1] = places_of(b, leads);
    out[2] = mk_gather(g, running_group(b, leads), first, 0);
  }
  out[0] = mk_gather(g, front, out[1], 0);
  Type tu = *on_type(b, out[1]);
  Val none = mk_full(g, mk_scalar(g, DT_i64, 0), tu.dim, 1),
      ones = mk_full(g, mk_scalar(g, DT_i64, 1), &rows, 1);
  out[3] = mk_scatter_elems(g, none, out[2], ones, 0, "add");
  if (!whole) out[0] = mk_move_axis(g, out[0], 0, axis);
  for (u32 i = 0; i < b->nout && i < 4; i++)
    if (on_wants(b, i)) b->out[i] = out[i];
}
