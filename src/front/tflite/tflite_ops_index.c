/* tflite_ops_index.c: gather, scatter, argmax, top-k, cumulative sums.
 *
 * Run-time indices must be in range, else the run fails, as in TensorFlow Lite.
 */
#include "front/tflite/tflite_import.h"

static Val index_of(LiteNode *b, u32 i) {
  Val v = lite_in(b, i);
  DType dt = lite_dt(b, v);
  if (!dtype_is_int(dt))
    lite_bad(b, "indices have type %s, expected integers", dtype_info[dt].name);
  return dt == DT_i32 || dt == DT_i64 ? v : mk_cast(b->g, v, DT_i64);
}

/* ---- gathers ---- */

/* Indices [batch.., n..] into axis `axis` of x [batch.., between.., d, rest..]. Moves that axis
 * after the batch axes, and the axes between to after those of the indices. */
static Val gather_batch(LiteNode *b, Val x, Val idx, u32 axis, u32 batch) {
  Graph *g = b->g;
  u32 rank = lite_rank(b, x), n = lite_rank(b, idx) - batch, between = axis - batch, p = 0;
  if (rank - 1 + n > MAX_RANK || lite_rank(b, idx) == MAX_RANK)
    lite_unsupported(b, "rank %u is not supported; expected at most %d", rank - 1 + n, MAX_RANK);
  idx = mk_unsqueeze(g, idx, lite_rank(b, idx));
  Val y = mk_gather_nd(g, mk_move_axis(g, x, axis, batch), idx, batch);
  i64 perm[MAX_RANK];
  for (u32 i = 0; i < batch; i++) perm[p++] = i;
  for (u32 i = 0; i < between; i++) perm[p++] = batch + n + i;
  for (u32 i = 0; i < n; i++) perm[p++] = batch + i;
  for (u32 i = batch + n + between; p < rank - 1 + n; i++) perm[p++] = i;
  return mk_transpose(g, y, perm);
}

void lite_gather(LiteNode *b) {
  Val x = lite_in(b, 0), idx = index_of(b, 1);
  u32 axis = lite_axis(b, flat_i32(&b->op->opt, 0, 0), lite_rank(b, x)), rank = lite_rank(b, idx);
  i64 batch = flat_i32(&b->op->opt, 1, 0);
  if (batch < 0) batch += rank;
  if (batch < 0 || batch > axis || batch > rank)
    lite_bad(b, "batch_dims is %lld, expected 0 to the axis", (long long)batch);
  Dim d = val_dim(b->g, x, axis);
  idx = mk_check_index(b->g, idx, &d, 1);
  lite_set_stored(
      b, 0, batch ? gather_batch(b, x, idx, axis, (u32)batch) : mk_gather(b->g, x, idx, axis));
}

/* Coordinates along the last axis of operand i, into a tensor with these extents. */
static Val coords(LiteNode *b, u32 i, const Dim *dim, u32 rank) {
  Val idx = index_of(b, i);
  u32 n = lite_rank(b, idx);
  Dim depth = n ? val_dim(b->g, idx, n - 1) : 0;
  if (!dim_is_const(depth) || depth < 1 || depth > rank)
    lite_bad(b, "coordinates have %lld numbers, but the rank is %u", (long long)depth, rank);
  return mk_check_index(b->g, idx, dim, (u32)depth);
}

void lite_gather_nd(LiteNode *b) {
  Val x = lite_in(b, 0);
  Type t = *graph_type(b->g, x);
  lite_set_stored(b, 0, mk_gather_nd(b->g, x, coords(b, 1, t.dim, t.rank), 0));
}

/* Looks up rows of a table; a quantized one as integers or as floats. */
void lite_embedding(LiteNode *b) {
  Val idx = index_of(b, 0), table = lite_in(b, 1);
  const LiteTensor *t = lite_operand(b, 1);
  Dim d = val_dim(b->g, table, 0);
  idx = mk_check_index(b->g, idx, &d, 1);
  if (lite_result(b, 0)->dt == t->dt)
    lite_set_stored(b, 0, mk_gather(b->g, table, idx, 0));
  else if (t->q.n > 1)
    lite_set_real(b, 0, mk_gather(b->g, lite_real(b, 1), idx, 0));
  else
    lite_set_real(b, 0, lite_real_of(b, mk_gather(b->g, table, idx, 0), t));
}

/* ---- scatters ---- */

/* Scatters into zeros; duplicates are summed. */
void lite_scatter_nd(LiteNode *b) {
  Val upd = lite_in(b, 1);
  Dim dim[MAX_RANK];
  u32 rank = lite_dim_list(b, 2, dim, MAX_RANK);
  Val idx = coords(b, 0, dim, rank), zeros = mk_full(b->g, mk_like(b->g, upd, 0), dim, rank);
  lite_set_stored(b, 0, mk_scatter_nd(b->g, zeros, idx, upd, "add"));
}

/* x with upd (1) at position (2), clamped so that upd lies inside. */
void lite_update_slice(LiteNode *b) {
  Graph *g = b->g;
  Val x = lite_in(b, 0), y = lite_in(b, 1), start = mk_cast(g, index_of(b, 2), DT_i64), inside = 0;
  Type t = *graph_type(g, x), u = *graph_type(g, y);
  if (u.rank != t.rank || lite_rank(b, start) != 1)
    lite_bad(b, "the operands have different ranks, expected equal ones");
  for (u32 i = 0; i < t.rank; i++) {
    if (u.dim[i] == t.dim[i]) continue;
    Dim most = dim_sub(b->ds, t.dim[i], u.dim[i]);
    Val at = mk_reshape(g, mk_slice_axis(g, start, 0, i, 1), NULL, 0), zero = mk_like(g, at, 0);
    Val last = mk_extent(g, most, DT_i64);
    at = mk_min(g, mk_max(g, at, zero), last);
    Val place = mk_sub(g, mk_iota(g, DT_i64, &t.dim[i], 1, 0), at);
    Val size = mk_extent(g, u.dim[i], DT_i64);
    Val in = mk_lt(g, place, size);
    in = mk_and(g, mk_ge(g, place, zero), in);
    last = mk_addk(g, size, -1);
    place = mk_min(g, mk_max(g, place, zero), last);
    y = mk_gather(g, y, place, i);
    in = mk_expand_tail(g, in, t.rank - 1 - i);
    inside = inside ? mk_and(g, inside, in) : in;
  }
  lite_set_stored(b, 0, inside ? mk_select(g, inside, y, x) : y);
}

/* ---- positions ---- */

/* arg: OP_argmax or OP_argmin */
void lite_arg(LiteNode *b) {
  Val x = lite_in(b, 0);
  u32 axis = lite_axis(b, lite_int(b, 1), lite_rank(b, x));
  Val y = mk_arg(b->g, (Op)b->arg, x, axis, false, false);
  lite_set_stored(b, 0, mk_cast(b->g, y, lite_result(b, 0)->dt));
}

void lite_topk(LiteNode *b) {
  Val x = lite_in(b, 0), y[2];
  u32 rank = lite_rank(b, x);
  i64 k = lite_int(b, 1);
  Dim d = rank ? val_dim(b->g, x, rank - 1) : 0;
  if (k < 0 || (dim_is_const(d) && k > d))
    lite_bad(b, "k is %lld for an axis of extent %lld", (long long)k, (long long)d);
  mk_topk(b->g, x, rank - 1, k, true, &y[0], &y[1]);
  lite_set_stored(b, 0, y[0]);
  if (b->op->nout > 1) lite_set_stored(b, 1, mk_cast(b->g, y[1], lite_result(b, 1)->dt));
}

/* Coordinates of nonzero elements, one per row. */
void lite_where(LiteNode *b) {
  Val at = mk_nonzero(b->g, lite_in(b, 0));
  lite_set_stored(b, 0, mk_transpose(b->g, at, (const i64[]){1, 0}));
}

void lite_one_hot(LiteNode *b) {
  Graph *g = b->g;
  Val idx = index_of(b, 0);
  i64 depth = lite_int(b, 1);
  u32 rank = lite_rank(b, idx) + 1;
  if (rank > MAX_RANK)
    lite_unsupported(b, "rank %u is not supported; expected at most %d", rank, MAX_RANK);
  if (depth < 0 || depth > INT32_MAX)
    lite_bad(b, "depth is %lld, expected 0 to 2^31-1", (long long)depth);
  u32 axis = lite_axis(b, flat_i32(&b->op->opt, 0, 0), rank);
  Dim shape[MAX_RANK];
  for (u32 i = 0; i < rank; i++) shape[i] = i == axis ? depth : 1;
  Val here = mk_iota(g, lite_dt(b, idx), shape, rank, axis);
  Val on = mk_reshape(g, lite_in(b, 2), NULL, 0), off = mk_reshape(g, lite_in(b, 3), NULL, 0);
  lite_set_stored(b, 0, mk_select(g, mk_eq(g, mk_unsqueeze(g, idx, axis), here), on, off));
}

void lite_cumsum(LiteNode *b) {
  Val x = lite_in(b, 0);
  u32 axis = lite_axis(b, lite_int(b, 1), lite_rank(b, x));
  lite_set_stored(b, 0,
                  mk_cum(b->g, OP_cumsum, x, axis, flat_u8(&b->op->opt, 0, 0) != 0,
                         flat_u8(&b->op->opt, 1, 0) != 0));
}
