/* lower_dot_rows.c: dot products of contiguous operands, a vector of results at a time (dot_rows).
 *
 * In: the record of such a form. Out: loops over tiles of as many results as a vector has lanes.
 * Each result has its own vector accumulator, with lanes along the reduction. Convolutions with few
 * outputs read channel blocks this way, and windows slide over one line. At the end, the
 * accumulators are reduced across: halves of two vectors are exchanged and added, then quarters of
 * two such sums, until one vector holds a result in each lane. The epilogue runs on that vector.
 */
#include "pass/kernel/tile.h"

#include <string.h>

/* Lane i of the result is the reduction of vector i; lanes past `count` repeat the last one. */
static ExprId reduce_across(const KernelChoice *r, Cursor *at, BufId acc, i64 count) {
  Prog *p = r->t.p;
  u32 n = r->t.lanes;
  VarId v[DOT_ROWS_LANES];
  for (u32 i = 0; i < n; i++)
    v[i] =
        tile_let(p, at, reg_load(p, acc, ex_int(p, i < count ? i : count - 1), ex_int(p, 0)), "s");
  for (n /= 2; n > 0; n /= 2)
    for (u32 i = 0; i < n; i++)
      v[i] = tile_let(p, at,
                      ex_op2(p, r->t.f.with, tile_lane_groups(p, v[i], v[i + n], n, false),
                             tile_lane_groups(p, v[i], v[i + n], n, true)),
                      "s");
  return ex_var(p, v[0]);
}

/* One reduction step: acc[i] = with(acc[i], body) for results from `first` on. Operands shared by
 * all results are loaded once. */
static void step(Tile *t, Cursor at, BufId acc, ExprId first, i64 count) {
  Prog *p = t->p;
  VarId held[FORM_IN] = {0};
  ExprId arg[FORM_IN], zero = ex_int(p, 0);
  t->at.val[t->axis.lane] = tile_lane(t);
  for (u32 k = 0; k < t->f.nin; k++) {
    if (tile_varies(t, k)) continue;
    held[k] = tile_let(p, &at, tile_operand(t, k), "x");
  }
  ExprId i = tile_unrolled(p, &at, count, "p", RO_row);
  t->at.val[t->axis.row] = ex_op2(p, OP_add, ex_copy(p, first), ex_copy(p, i));
  for (u32 k = 0; k < t->f.nin; k++) arg[k] = held[k] ? ex_var(p, held[k]) : tile_operand(t, k);
  reg_store(p, &at, acc, i, zero, tile_accumulate(t, reg_load(p, acc, i, zero), arg));
}

/* Opens the reduction loops. The one over vectors of the lane axis is outermost, because channel
 * blocks are contiguous in memory and a line has no other reduction. */
static Cursor open_reduction(Tile *t, Cursor at) {
  Prog *p = t->p;
  i64 vectors = t->f.axis[t->axis.lane].hi / t->lanes;
  t->at.panel = ex_int(p, 0);
  if (vectors > 1)
    t->at.panel = ex_var(p, for_role(p, &at, t->at.panel, ex_int(p, vectors), "v", RO_reduce));
  for (u32 i = 0; i < t->f.naxes; i++)
    if (t->f.axis[i].reduce && i != t->axis.lane) tile_loop(t, &at, i);
  return at;
}

/* Writes `count` results of tile number `tile`. */
static void one_tile(const KernelChoice *r, Cursor at, ExprId tile, i64 count) {
  const Tile *t = &r->t;
  Tile partial = *t, out = r->out;
  Prog *p = t->p;
  BufId acc = tile_registers(p, t->f.acc, t->lanes, count, 1, "acc");
  BufId all = tile_registers(p, t->f.acc, t->lanes, 1, 1, "all");
  ExprId zero = ex_int(p, 0), init = ex_splat(p, ex_const(p, t->f.acc, t->f.init), t->lanes);
  Cursor in = at;
  ExprId i = tile_unrolled(p, &in, count, "p", RO_row);
  reg_store(p, &in, acc, i, zero, init);
  in = open_reduction(&partial, at);
  step(&partial, in, acc, ex_op2(p, OP_mul, ex_copy(p, tile), ex_int(p, t->lanes)), count);
  reg_store(p, &at, all, zero, zero, reduce_across(r, &at, acc, count));
  memcpy(out.at.val, t->at.val, sizeof out.at.val);
  tile_store(&out, at, all, (TileSize){1, 1}, 0, tile, count);
}

void dot_rows_write(Lower *l, Cursor at, const Form *f, KernelChoice *r) {
  Tile *t = &r->t;
  (void)f;
  for (u32 i = 0; i < t->f.naxes; i++)
    if (!t->f.axis[i].reduce && i != t->axis.row) tile_loop(t, &at, i);
  i64 n = t->f.axis[t->axis.row].hi, tiles = n / t->lanes;
  Cursor in = at;
  ExprId tile = count_parallel(l->p, &in, tiles, "r");
  one_tile(r, in, tile, t->lanes);
  if (n % t->lanes) one_tile(r, at, ex_int(l->p, tiles), n % t->lanes);
}
