/* lower_tile.c: writes the kernels of tile.h as loops over vectors.
 *
 * In: the record of a form (kernel_choose.c). Out: loops. One axis of the result, or of the
 * reduction, is the lanes:
 *
 *   map            no reduction: one vector of the result at a time
 *   outer product  one operand is broadcast, the other packed into panels: matmul, convolutions
 *                  over channel blocks
 *   vertical       all operands move along the lanes: depthwise convolutions, pools, reductions
 *                  of outer axes
 *   horizontal     lanes run along the reduction and are combined at its end
 *
 * Rows and panels are covered exactly by tiles of two sizes. A remainder that fills no vector is
 * stored lane by lane. Integers use the same loops, with dot products of four int8 or two int16
 * (tile_int.c).
 */
#include "pass/kernel/tile.h"

#include "ir/prog/affine.h"

#include <string.h>

ExprId tile_unrolled(Prog *p, Cursor *at, i64 n, const char *name, LoopRole role) {
  if (n == 1) return ex_int(p, 0);
  VarId v = for_role(p, at, ex_int(p, 0), ex_int(p, n), name, role);
  prog_stmt(p, at->owner)->flags |= LF_unroll;
  return ex_var(p, v);
}

/* Opens a parallel loop with a role and returns its counter; for n = 1: 0, and no loop. */
static ExprId count_role(Prog *p, Cursor *at, i64 n, const char *name, LoopRole role) {
  ExprId v = count_parallel(p, at, n, name);
  if (n > 1) prog_stmt(p, at->owner)->role = (u8)role;
  return v;
}

BufId tile_registers(Prog *p, DType dt, u32 lanes, i64 rows, i64 columns, const char *name) {
  Dim dim[2] = {rows, columns};
  BufId b = prog_add_buf(p, BS_reg, dt, dim, 2, str_of(p->c, name));
  prog_buf(p, b)->lanes = lanes;
  return b;
}

ExprId reg_load(Prog *p, BufId b, ExprId i, ExprId j) {
  ExprId idx[2] = {ex_copy(p, i), ex_copy(p, j)};
  return ex_load(p, b, idx, 2);
}

void reg_store(Prog *p, Cursor *at, BufId b, ExprId i, ExprId j, ExprId value) {
  ExprId idx[2] = {ex_copy(p, i), ex_copy(p, j)};
  prog_store(p, at, b, idx, 2, value);
}

VarId tile_let(Prog *p, Cursor *at, ExprId value, const char *name) {
  VarId v = prog_add_var(p, prog_expr(p, value)->dt, str_of(p->c, name));
  prog_var(p, v)->lanes = prog_expr(p, value)->lanes;
  prog_let(p, at, v, value);
  return v;
}

ExprId tile_lane_groups(Prog *p, VarId a, VarId b, u32 each, bool odd) {
  u32 lanes = prog_var(p, a)->lanes;
  u8 *pick = NEWS(&p->c->keep, u8, lanes);
  for (u32 i = 0; i < lanes; i++) {
    u32 group = i / each;
    pick[i] = (u8)(group % 2 * lanes + (group / 2 * 2 + odd) * each + i % each);
  }
  return ex_shuffle(p, ex_var(p, a), ex_var(p, b), pick, lanes);
}

/* ---- operands ---- */

Nest tile_nest(const Tile *t, Cursor at) {
  Nest x = {.l = t->l, .p = t->p, .f = &t->f, .at = at, .sub = t->at.val};
  x.in.inner = t->at.inner;
  for (u32 i = 0; i < x.in.inner.n; i++) /* vectors of a remainder have fewer lanes */
    if (x.in.inner.at[i].var == t->lane_var) x.in.inner.at[i].n = t->lanes;
  memcpy(x.var, t->at.var, sizeof x.var);
  return x;
}

void tile_loop(Tile *t, Cursor *at, u32 axis) {
  Nest x = tile_nest(t, *at);
  nest_loop(&x, axis);
  *at = x.at;
  t->at.var[axis] = x.var[axis];
  if (x.var[axis]) t->at.val[axis] = ex_var(t->p, x.var[axis]);
}

ExprId tile_operand(const Tile *t, u32 k) {
  Prog *p = t->p;
  Nest x = tile_nest(t, prog_end());
  if (t->use[k] == LU_packed) return pack_load(t, k);
  ExprId e = nest_load(&x, k);
  if (k == t->bytes.operand) e = bytes_load(t, e);
  if (t->lanes == 1) return e;
  Vectorizer w = tile_widen(t, 0);
  ExprId v = widen(&w, e);
  if (!v) internal_error(p->c, LOC_NONE, "an operand is not contiguous along the lanes");
  return v;
}

Vectorizer tile_widen(const Tile *t, ExprId held) {
  return (Vectorizer){.p = t->p,
                      .lane = t->lane_var,
                      .lanes = t->lanes,
                      .acc_var = held ? t->acc_var : 0,
                      .vec = held,
                      .once = &t->l->once,
                      .strided = t->f.reduce && t->f.nin == 1};
}

/* ---- one tile ---- */

/* Runs the epilogue on a vector whose results are not contiguous, and returns it in a variable. */
static VarId epilogue_scattered(Tile *t, Cursor *at, ExprId vec, ExprId first) {
  Prog *p = t->p;
  t->at.val[t->axis.lane] = ex_op2(p, OP_add, ex_copy(p, first), ex_var(p, t->lane_var));
  Nest x = tile_nest(t, *at);
  Vectorizer w = tile_widen(t, vec);
  ExprId value = widen(&w, nest_finish(&x, ex_var(p, t->acc_var)));
  if (!value)
    internal_error(p->c, LOC_NONE, "the epilogue of a reduction is not contiguous along the lanes");
  return tile_let(p, at, value, "done");
}

void store_wide(Nest *x, const Vectorizer *w, ExprId value) {
  ExprId idx[MAX_RANK + 1];
  BufId out;
  u32 n = nest_address(x, &x->f->out, &out, idx);
  value = widen(w, value);
  if (!value || !widen_place(w, &out, idx, &n))
    internal_error(x->p->c, LOC_NONE, "a result is not contiguous along the lanes");
  prog_store(x->p, &x->at, out, idx, n, value);
}

/* Stores the first `valid` lanes of each accumulator. */
void tile_store(Tile *t, Cursor at, BufId acc, TileSize s, ExprId row, ExprId panel, i64 valid) {
  Prog *p = t->p;
  ExprId i = tile_unrolled(p, &at, s.rows, "p", RO_row),
         j = tile_unrolled(p, &at, s.panels, "v", RO_panel);
  if (t->axis.row < FORM_AXES) t->at.val[t->axis.row] = ex_op2(p, OP_add, ex_copy(p, row), i);
  ExprId first = ex_mul_add(p, ex_op2(p, OP_add, ex_copy(p, panel), ex_copy(p, j)), t->lanes,
                            ex_int(p, t->at.from));
  bool whole = valid == t->lanes && t->store.is_wide;
  bool finishes = t->lanes > 1 && t->store.finish_is_wide && !t->bytes.sum_in_f32 &&
                  (valid == t->lanes || (valid > 1 && t->store.finish_stays_inside));
  VarId done = 0;
  if (!whole && finishes) done = epilogue_scattered(t, &at, reg_load(p, acc, i, j), first);
  for (i64 k = 0; k < (whole ? 1 : valid); k++) {
    ExprId lane = whole && t->lanes > 1 ? ex_var(p, t->lane_var) : ex_int(p, k);
    t->at.val[t->axis.lane] = ex_op2(p, OP_add, ex_copy(p, first), lane);
    ExprId vec = done ? ex_var(p, done) : reg_load(p, acc, i, j);
    if (t->bytes.sum_in_f32) vec = bytes_sum(t, vec);
    Nest x = tile_nest(t, at);
    if (whole && t->lanes > 1) {
      Vectorizer w = tile_widen(t, vec);
      store_wide(&x, &w, nest_finish(&x, ex_var(p, t->acc_var)));
      continue;
    }
    u8 pick = (u8)k;
    if (t->lanes > 1) vec = ex_shuffle(p, vec, 0, &pick, 1);
    nest_store(&x, done ? vec : nest_finish(&x, vec));
  }
}

ExprId tile_accumulate(const Tile *t, ExprId acc, const ExprId *arg) {
  Prog *p = t->p;
  const Form *f = &t->f;
  if (f->body == FB_copy) return ex_op2(p, f->with, acc, arg[0]);
  if (t->axis.quad < FORM_AXES)
    return ex_op3(p, t->axis.each == 2 ? OP_dot_i16x2 : OP_dot_i8x4, arg[t->bytes.operand],
                  arg[1 - t->bytes.operand], acc);
  if (f->op == OP_mul && f->with == OP_add && dtype_is_full_float(f->acc) &&
      t->l->pass->target->fma)
    return ex_op3(p, OP_fma, arg[0], arg[1], acc);
  return ex_op2(p, f->with, acc, ex_op(p, f->op, arg, f->nin));
}

/* acc[i, j] = with(acc[i, j], body) */
static void step_tile(Tile *t, Cursor at, BufId acc, TileSize s, ExprId row, ExprId panel) {
  Prog *p = t->p;
  const Form *f = &t->f;
  BufId held[FORM_IN] = {0};
  VarId splat[FORM_IN] = {0};
  ExprId zero = ex_int(p, 0);
  for (u32 k = 0; k < f->nin; k++) {
    if (t->use[k] == LU_splat || tile_varies(t, k)) continue;
    held[k] = tile_registers(p, f->acc, t->lanes, 1, s.panels, "b");
    Cursor in = at;
    ExprId j = tile_unrolled(p, &in, s.panels, "v", RO_panel);
    t->at.panel_in_tile = j;
    t->at.panel = ex_op2(p, OP_add, ex_copy(p, panel), ex_copy(p, j));
    t->at.val[t->axis.lane] = tile_lane(t);
    reg_store(p, &in, held[k], zero, j, tile_operand(t, k));
    if (t->widens && t->wide[k]) pack_keep(t, &in, k, reg_load(p, held[k], zero, j));
  }
  ExprId i = tile_unrolled(p, &at, s.rows, "p", RO_row);
  if (t->axis.row < FORM_AXES)
    t->at.val[t->axis.row] = ex_op2(p, OP_add, ex_copy(p, row), ex_copy(p, i));
  for (u32 k = 0; k < f->nin; k++) {
    if (t->use[k] != LU_splat) continue;
    splat[k] = tile_let(p, &at, tile_operand(t, k), "x");
  }
  ExprId j = tile_unrolled(p, &at, s.panels, "v", RO_panel), arg[FORM_IN];
  t->at.panel_in_tile = j;
  t->at.panel = ex_op2(p, OP_add, ex_copy(p, panel), ex_copy(p, j));
  t->at.val[t->axis.lane] = tile_lane(t);
  for (u32 k = 0; k < f->nin; k++)
    arg[k] = splat[k]  ? ex_var(p, splat[k])
             : held[k] ? reg_load(p, held[k], zero, j)
                       : tile_operand(t, k);
  reg_store(p, &at, acc, i, j, tile_accumulate(t, reg_load(p, acc, i, j), arg));
}

ExprId tile_first(const Tile *t) {
  Prog *p = t->p;
  return ex_mul_add(p, ex_copy(p, t->at.panel), t->lanes, ex_int(p, t->at.from));
}

ExprId tile_lane(const Tile *t) {
  Prog *p = t->p;
  ExprId first = tile_first(t);
  return t->lanes == 1 ? first : ex_op2(p, OP_add, first, ex_var(p, t->lane_var));
}

/* Opens the loop over the groups of an axis and returns its counter. */
static ExprId open_groups(const Tile *t, Cursor *at, i64 n) {
  Prog *p = t->p;
  i64 steps = t->axis.each == 2 && n % LIMIT_dot_i16x2_steps == 0 ? LIMIT_dot_i16x2_steps : 1;
  ExprId q = ex_int(p, 0);
  if (n > steps) q = ex_var(p, for_role(p, at, q, ex_int(p, n / steps), "q", RO_reduce));
  if (n > steps && steps > 1) prefetch_lines(t, at, q);
  return steps == 1 ? q : ex_mul_add(p, q, steps, tile_unrolled(p, at, steps, "s", RO_reduce));
}

/* Opens the loops of the reduction. An axis in channel blocks becomes two loops: over blocks at its
 * own position, and over the channels of a block innermost, so that memory is read in order. */
static void open_reduction(Tile *t, Cursor *at) {
  Prog *p = t->p;
  const Form *f = &t->f;
  VarId block = 0;
  for (u32 i = 0; i < f->naxes; i++) {
    if (!f->axis[i].reduce) continue;
    if (i == t->axis.quad && i != t->axis.split) {
      i64 n = (f->axis[i].hi + t->axis.each - 1) / t->axis.each;
      t->at.quad = open_groups(t, at, n);
      t->at.val[i] = ex_op2(p, OP_mul, ex_copy(p, t->at.quad), ex_int(p, t->axis.each));
      continue;
    }
    if (prefetch_steps(t, i) > 1) {
      i64 steps = prefetch_steps(t, i);
      VarId q = for_role(p, at, ex_int(p, 0), ex_int(p, f->axis[i].hi / steps), "q", RO_reduce);
      prefetch_lines(t, at, ex_var(p, q));
      VarId c = for_role(p, at, ex_int(p, 0), ex_int(p, steps), "c", RO_reduce);
      t->at.val[i] = ex_mul_add(p, ex_var(p, q), steps, ex_var(p, c));
      continue;
    }
    if (i != t->axis.split) {
      tile_loop(t, at, i);
      if (t->at.var[i] && t->unroll >> i & 1) prog_stmt(p, at->owner)->flags |= LF_unroll;
      continue;
    }
    i64 blocks = (f->axis[i].hi + t->axis.block - 1) / t->axis.block;
    if (blocks > 1) block = for_role(p, at, ex_int(p, 0), ex_int(p, blocks), "cb", RO_reduce);
  }
  if (t->axis.split == FORM_AXES) return;
  i64 each = t->axis.split == t->axis.quad ? t->axis.each : 1,
      n = (f->axis[t->axis.split].hi + each - 1) / each, within = t->axis.block / each;
  ExprId base = ex_op2(p, OP_mul, ex_at(p, block), ex_int(p, within)), end = ex_int(p, within);
  if (n % within) end = ex_op2(p, OP_min, end, ex_op2(p, OP_sub, ex_int(p, n), ex_copy(p, base)));
  prefetch_lines(t, at, ex_at(p, block));
  VarId c = for_role(p, at, ex_int(p, 0), end, "c", RO_reduce);
  if (each == 2 && n % within == 0 && within <= LIMIT_dot_i16x2_steps)
    prog_stmt(p, at->owner)->flags |= LF_unroll;
  t->at.inner.at[t->at.inner.n++] = (InnerVar){c, within};
  t->at.split_block = block;
  t->at.split_lane = c;
  t->at.val[t->axis.split] =
      ex_op2(p, OP_mul, ex_op2(p, OP_add, base, ex_var(p, c)), ex_int(p, each));
}

static void one_tile(Tile *t, Cursor at, TileSize s, ExprId row, ExprId panel, i64 valid) {
  Prog *p = t->p;
  const Form *f = &t->f;
  BufId acc = tile_registers(p, f->acc, t->lanes, s.rows, s.panels, "acc");
  TileExtent *largest = &prog_record(p, t->record)->tile;
  *largest = tile_larger(*largest, (TileExtent){(u32)s.rows, (u32)s.panels, t->lanes});
  Cursor init = at;
  ExprId i = tile_unrolled(p, &init, s.rows, "p", RO_row),
         j = tile_unrolled(p, &init, s.panels, "v", RO_panel);
  ExprId zero = ex_const(p, f->acc, f->init);
  if (t->lanes > 1) zero = ex_splat(p, zero, t->lanes);
  if (t->bytes.sums) {
    t->at.panel = ex_op2(p, OP_add, ex_copy(p, panel), ex_copy(p, j));
    zero = sums_load(t);
  }
  reg_store(p, &init, acc, i, j, zero);
  Tile in = *t;
  Cursor inside = at;
  in.at.fetch.first = panel;
  open_reduction(&in, &inside);
  step_tile(&in, inside, acc, s, row, panel);
  tile_store(t, at, acc, s, row, panel, valid);
}

/* ---- loops around tiles ---- */

/* Tiles of an unknown number of rows: full tiles, then smaller ones, then single rows. */
static void open_rows(Tile *t, Cursor at, i64 panels, ExprId panel, i64 valid) {
  Prog *p = t->p;
  Dim n = t->f.axis[t->axis.row].hi;
  ExprId done = ex_int(p, 0);
  for (i64 rows = tile_rows(t, panels); rows > 1;
       rows = rows > LIMIT_rest_rows ? LIMIT_rest_rows : 1) {
    ExprId left = ex_op2(p, OP_sub, ex_dim(p, n), ex_copy(p, done));
    ExprId count = ex_op2(p, OP_div, left, ex_int(p, rows));
    Cursor in = at;
    VarId r = for_parallel(p, &in, ex_int(p, 0), ex_copy(p, count), "r");
    prog_stmt(p, in.owner)->role = RO_row;
    ExprId first = ex_op2(p, OP_add, ex_op2(p, OP_mul, ex_var(p, r), ex_int(p, rows)), done);
    one_tile(t, in, (TileSize){rows, panels}, first, panel, valid);
    done = ex_op2(p, OP_add, ex_copy(p, done), ex_op2(p, OP_mul, count, ex_int(p, rows)));
  }
  VarId r = for_parallel(p, &at, done, ex_dim(p, n), "r");
  prog_stmt(p, at.owner)->role = RO_row;
  one_tile(t, at, (TileSize){1, panels}, ex_var(p, r), panel, valid);
}

/* Do the loops between panels and rows run in order, so that later outer iterations can read what
 * the first one stored? */
static bool keeps_outer(const Tile *t) {
  return t->p->threads < 2;
}

/* Do the tiles of an outer iteration read an f16 panel often enough to convert it to f32 once? */
static bool widens_once(const Tile *t, i64 tiles) {
  double enough = t->l->pass->target->cost->widen_tiles;
  if (t->at.outer_count && keeps_outer(t)) tiles *= t->at.outer_count;
  return enough > 0 && (double)tiles >= enough;
}

/* Opens the loop over tiles and returns its counter. On the first line it leaves out the tile that
 * widened the panels. */
static ExprId open_other_tiles(const Tile *t, Cursor *at, i64 count, bool first_outer) {
  Prog *p = t->p;
  if (!first_outer)
    return ex_op2(p, OP_add, count_role(p, at, count - 1, "r", RO_row), ex_int(p, 1));
  if (count == 1) {
    prog_if(p, at, ex_op2(p, OP_lt, ex_int(p, 0), ex_copy(p, t->at.outer)));
    return ex_int(p, 0);
  }
  ExprId done = ex_op2(p, OP_min, ex_copy(p, t->at.outer), ex_int(p, 1));
  ExprId from = ex_op2(p, OP_sub, ex_int(p, 1), done);
  return ex_var(p, for_role(p, at, from, ex_int(p, count), "r", RO_row));
}

static void loop_rows(Tile *t, Cursor at, i64 panels, ExprId panel, i64 valid) {
  Prog *p = t->p;
  i64 most = tile_rows(t, panels);
  if (t->axis.row == FORM_AXES) {
    one_tile(t, at, (TileSize){1, panels}, 0, panel, valid);
    return;
  }
  Dim n = t->f.axis[t->axis.row].hi;
  if (!dim_is_const(n)) {
    open_rows(t, at, panels, panel, valid);
    return;
  }
  const CacheTile *b = &t->at.block;
  bool in_block = b->each && b->axis == t->axis.row;
  i64 lo = in_block ? 0 : t->f.axis[t->axis.row].lo;
  RowSplit c = tile_cover(in_block ? b->each : n - lo, most);
  i64 lines = t->at.outer_count ? t->at.outer_count : 1;
  t->widens = widens_once(t, c.big + c.small) && pack_widen(t, panels);
  bool first_outer = t->widens && lines > 1 && keeps_outer(t);
  prefetch_choose(t, panels, lines * (c.big + c.small));
  for (u32 part = 0; part < 2; part++) {
    i64 count = part ? c.small : c.big, first = part ? c.big * c.size : 0, rows = c.size - part;
    if (!count || !rows) continue;
    Cursor in = at;
    ExprId tile = ex_int(p, part ? c.big : 0), turn = 0;
    if (t->at.outer_count) tile = ex_mul_add(p, ex_copy(p, t->at.outer), c.big + c.small, tile);
    t->at.fetch.tile = tile;
    if (t->widens) {
      Cursor begin = in;
      if (first_outer) prog_if(p, &begin, ex_op2(p, OP_lt, ex_copy(p, t->at.outer), ex_int(p, 1)));
      ExprId first_row = ex_int(p, lo + first);
      if (in_block) first_row = ex_op2(p, OP_add, ex_copy(p, b->first), first_row);
      one_tile(t, begin, (TileSize){rows, panels}, first_row, panel, valid);
      t->widens = false;
      if (count == 1 && !first_outer) continue;
      turn = open_other_tiles(t, &in, count, first_outer);
    } else {
      turn = count_role(p, &in, count, "r", RO_row);
    }
    ExprId row = ex_mul_add(p, ex_copy(p, turn), rows, ex_int(p, lo + first));
    if (in_block) row = ex_op2(p, OP_add, ex_copy(p, b->first), row);
    t->at.fetch.tile = ex_op2(p, OP_add, ex_copy(p, tile), turn);
    one_tile(t, in, (TileSize){rows, panels}, row, panel, valid);
  }
}

bool tile_is_batch(const Tile *t, u32 axis) {
  bool splat = false, vector = false;
  if (t->f.axis[axis].reduce || axis == t->axis.lane || axis == t->axis.row) return false;
  for (u32 k = 0; k < t->f.nin; k++) {
    if (!operand_moves(&t->f.in[k], axis)) continue;
    if (t->use[k] == LU_packed) return true;
    splat = splat || t->use[k] == LU_splat;
    vector = vector || t->use[k] == LU_vector;
  }
  return splat && vector;
}

/* Opens loops over batch axes, or over the other axes from `first` to `last` - 1. */
static Cursor open_axes(Tile *t, Cursor at, bool batch, u32 first, u32 last) {
  const CacheTile *b = &t->at.block;
  for (u32 i = first; i < last; i++) {
    if (t->f.axis[i].reduce || i == t->axis.lane || i == t->axis.row ||
        tile_is_batch(t, i) != batch)
      continue;
    if (b->each && i == b->axis)
      t->at.val[i] =
          ex_op2(t->p, OP_add, ex_copy(t->p, b->first), count_parallel(t->p, &at, b->each, "l"));
    else
      tile_loop(t, &at, i);
  }
  return at;
}

/* Numbers the points of the loops inside the loop over panels. */
static void count_lines(Tile *t) {
  Prog *p = t->p;
  const CacheTile *b = &t->at.block;
  for (u32 i = 0; i < t->f.naxes && !t->sums.panels_innermost; i++) {
    const Axis *a = &t->f.axis[i];
    bool cut = b->each && i == b->axis;
    if (a->reduce || i == t->axis.lane || i == t->axis.row || tile_is_batch(t, i) ||
        !t->at.val[i] || (b->each && i < b->axis) || !dim_is_const(a->hi))
      continue;
    ExprId v =
        ex_op2(p, OP_sub, ex_copy(p, t->at.val[i]), cut ? ex_copy(p, b->first) : ex_int(p, a->lo));
    i64 n = cut ? b->each : a->hi - a->lo;
    t->at.outer = t->at.outer_count ? ex_mul_add(p, t->at.outer, n, v) : v;
    t->at.outer_count = (t->at.outer_count ? t->at.outer_count : 1) * n;
  }
}

/* Panels first .. first + count - 1 in tiles of `each`; valid: lanes of a panel that the result
 * has. */
static void loop_panels(Tile *t, Cursor at, i64 first, i64 count, i64 each, i64 valid) {
  Prog *p = t->p;
  if (!count) return;
  ExprId panel =
      ex_mul_add(p, count_role(p, &at, count / each, "o", RO_panel), each, ex_int(p, first));
  Tile in = *t;
  if (!t->sums.panels_innermost)
    at = open_axes(&in, at, false, in.at.block.each ? in.at.block.axis : 0, in.f.naxes);
  count_lines(&in);
  loop_rows(&in, at, each, panel, valid);
}

/* Lanes from t->at.from on: whole vectors, then the remainder in narrower or partial vectors. */
static void loop_lanes(Tile *t, Cursor at) {
  i64 n = t->f.axis[t->axis.lane].hi - t->at.from;
  i64 whole = t->store.pads ? (n + t->lanes - 1) / t->lanes : n / t->lanes, each = t->sums.panels;
  if (each > whole) each = whole;
  if (each) {
    i64 main = whole / each * each;
    loop_panels(t, at, 0, main, each, t->lanes);
    loop_panels(t, at, main, whole - main, whole - main, t->lanes);
  }
  if (t->store.pads || n == whole * t->lanes) return;
  if (t->store.partial) {
    loop_panels(t, at, whole, 1, 1, n - whole * t->lanes);
    return;
  }
  Tile rest = *t;
  rest.at.from += whole * t->lanes;
  for (rest.lanes = t->lanes; rest.lanes > n - whole * t->lanes;) rest.lanes /= 2;
  loop_lanes(&rest, at);
}

/* Splits an axis into cache tiles. Axes outside of it are also outside of all panels. */
static void loop_blocks(Tile *t, Cursor at, CacheTile b) {
  Prog *p = t->p;
  const Axis *a = &t->f.axis[b.axis];
  i64 n = a->hi - a->lo;
  if (b.axis != t->axis.row) at = open_axes(t, at, false, 0, b.axis);
  for (u32 part = 0; part < 2; part++) {
    i64 count = part ? n % b.each > 0 : n / b.each, first = part ? n / b.each * b.each : 0;
    if (!count) continue;
    Tile in = *t;
    Cursor inside = at;
    in.at.block = b;
    in.at.block.each = part ? n % b.each : b.each;
    in.at.block.first =
        ex_mul_add(p, count_parallel(p, &inside, count, "b"), b.each, ex_int(p, a->lo + first));
    loop_lanes(&in, inside);
  }
}

static void lower_reduction(Tile *t, Cursor at) {
  u32 n = t->f.naxes;
  at = open_axes(t, at, true, 0, n);
  for (u32 k = 0; k < t->f.nin; k++)
    if (t->packed_at_run[k]) pack_run(t, at, k);
  CacheTile block = cache_tile(t);
  if (t->sums.panels_innermost) at = open_axes(t, at, false, 0, n);
  if (block.axis < FORM_AXES)
    loop_blocks(t, at, block);
  else
    loop_lanes(t, at);
}

/* ---- horizontal reductions ---- */

/* One reduction step into acc[j], for lanes from point `first` of the lane axis on. The first `but`
 * lanes were already reduced. */
static void step_horizontal(Tile *t, Cursor at, BufId acc, ExprId j, ExprId first, i64 but) {
  Prog *p = t->p;
  const Form *f = &t->f;
  ExprId arg[FORM_IN], zero = ex_int(p, 0);
  t->at.val[t->axis.lane] =
      t->lanes == 1 ? first : ex_op2(p, OP_add, first, ex_var(p, t->lane_var));
  for (u32 k = 0; k < f->nin; k++) arg[k] = tile_operand(t, k);
  ExprId sum = tile_accumulate(t, reg_load(p, acc, zero, j), arg);
  if (but && !op_is(f->with, OF_IDEM)) {
    u8 *pick = NEWS(&p->c->keep, u8, t->lanes);
    for (u32 i = 0; i < t->lanes; i++) pick[i] = (u8)(i < but ? t->lanes + i : i);
    sum = ex_shuffle(p, sum, reg_load(p, acc, zero, j), pick, t->lanes);
  }
  reg_store(p, &at, acc, zero, j, sum);
}

/* Loops over vectors [from, to) of the reduction, `each` at a time into as many accumulators. */
static void loop_horizontal(Tile *t, Cursor at, BufId acc, ExprId from, ExprId to, i64 each) {
  Prog *p = t->p;
  i64 lo, hi, step = each * t->lanes;
  if (ex_is_int(p, from, &lo) && ex_is_int(p, to, &hi) && lo >= hi) return;
  ExprId v = ex_var(p, for_role(p, &at, from, to, "v", RO_reduce));
  ExprId j = tile_unrolled(p, &at, each, "u", RO_none),
         more = ex_op2(p, OP_mul, ex_copy(p, j), ex_int(p, t->lanes));
  step_horizontal(t, at, acc, j, ex_mul_add(p, v, step, more), 0);
}

/* Remainder of a reduction of known length whose last vector may start anywhere. The last points,
 * if they fill no vector, are the end of a vector that overlaps the previous one. */
static void rest_horizontal(Tile *t, Cursor at, BufId acc, i64 n, i64 each) {
  Prog *p = t->p;
  i64 lanes = t->lanes, done = n / (lanes * each) * each, vectors = n / lanes;
  for (i64 v = done; v < vectors; v++)
    step_horizontal(t, at, acc, ex_int(p, v - done), ex_int(p, v * lanes), 0);
  if (n % lanes)
    step_horizontal(t, at, acc, ex_int(p, (vectors - done) % each), ex_int(p, n - lanes),
                    lanes - n % lanes);
}

/* Remainder of a reduction of unknown length: vector by vector, then element by element into
 * `one`. */
static void open_rest_horizontal(Tile *t, Cursor at, BufId acc, BufId one, ExprId n, i64 each) {
  Prog *p = t->p;
  i64 lanes = t->lanes;
  ExprId vectors = ex_op2(p, OP_div, ex_copy(p, n), ex_int(p, lanes));
  ExprId blocks = ex_op2(p, OP_div, ex_copy(p, n), ex_int(p, lanes * each));
  loop_horizontal(t, at, acc, ex_op2(p, OP_mul, blocks, ex_int(p, each)), vectors, 1);
  t->lanes = 1;
  loop_horizontal(t, at, one, ex_op2(p, OP_mul, ex_copy(p, vectors), ex_int(p, lanes)), n, 1);
}

ExprId tile_reduce_lanes(Prog *p, Cursor *at, Op with, ExprId v) {
  u32 lanes = prog_expr(p, v)->lanes, last = op_is(with, OF_IDEM) ? 1 : lanes < 4 ? lanes : 4;
  for (u32 by = lanes / 2; by >= last; by /= 2) {
    VarId held = tile_let(p, at, v, "half");
    u8 *pick = NEWS(&p->c->keep, u8, lanes);
    for (u32 i = 0; i < lanes; i++) pick[i] = (u8)(i ^ by);
    v = ex_op2(p, with, ex_var(p, held), ex_shuffle(p, ex_var(p, held), 0, pick, lanes));
  }
  VarId held = tile_let(p, at, v, "part");
  ExprId sum = 0;
  for (u32 i = 0; i < last; i++) {
    u8 pick = (u8)i;
    ExprId one = ex_shuffle(p, ex_var(p, held), 0, &pick, 1);
    sum = sum ? ex_op2(p, with, sum, one) : one;
  }
  return sum;
}

BufId tile_any_begin(Prog *p, Cursor *at, u32 lanes) {
  BufId some = tile_registers(p, DT_i32, lanes, 1, 1, "some");
  ExprId none = ex_splat(p, ex_const(p, DT_i32, (Scalar){0}), lanes);
  reg_store(p, at, some, ex_int(p, 0), ex_int(p, 0), none);
  return some;
}

void tile_any_add(Prog *p, Cursor *at, BufId some, ExprId is) {
  ExprId zero = ex_int(p, 0), so_far = reg_load(p, some, zero, zero);
  ExprId one = ex_splat(p, ex_const(p, DT_i32, (Scalar){.i = 1}), prog_expr(p, is)->lanes);
  reg_store(p, at, some, zero, zero, ex_op3(p, OP_select, is, one, so_far));
}

ExprId tile_any(Prog *p, Cursor *at, BufId some) {
  ExprId zero = ex_int(p, 0);
  ExprId any = tile_reduce_lanes(p, at, OP_or, reg_load(p, some, zero, zero));
  return ex_op2(p, OP_gt, any, ex_const(p, DT_i32, (Scalar){0}));
}

/* The loops over other reduction axes are outside of that over the lanes. */
static void lower_horizontal(Tile *t, Cursor at) {
  Prog *p = t->p;
  const Form *f = &t->f;
  Dim extent = f->axis[t->axis.lane].hi;
  i64 lanes = t->lanes, each = LIMIT_horizontal_sums;
  bool known = dim_is_const(extent);
  if (known && extent / lanes < each) each = extent / lanes;
  known = known && (extent % lanes == 0 || tile_horizontal_fits(t, extent - lanes));
  for (u32 i = 0; i < f->naxes; i++)
    if (!f->axis[i].reduce) tile_loop(t, &at, i);
  BufId acc = tile_registers(p, f->acc, t->lanes, 1, each, "acc");
  BufId one = known ? 0 : tile_registers(p, f->acc, 1, 1, 1, "sum");
  ExprId zero = ex_int(p, 0), init = ex_const(p, f->acc, f->init);
  Cursor in = at;
  ExprId j = tile_unrolled(p, &in, each, "v", RO_panel);
  reg_store(p, &in, acc, zero, j, ex_splat(p, init, t->lanes));
  if (one) reg_store(p, &at, one, zero, zero, ex_const(p, f->acc, f->init));
  in = at;
  Tile in_loop = *t;
  for (u32 i = 0; i < f->naxes; i++)
    if (f->axis[i].reduce && i != t->axis.lane) tile_loop(&in_loop, &in, i);
  ExprId n = ex_dim(p, extent);
  ExprId blocks = ex_op2(p, OP_div, ex_copy(p, n), ex_int(p, lanes * each));
  loop_horizontal(&in_loop, in, acc, ex_int(p, 0), blocks, each);
  if (known)
    rest_horizontal(&in_loop, in, acc, extent, each);
  else
    open_rest_horizontal(&in_loop, in, acc, one, n, each);
  ExprId sum = reg_load(p, acc, zero, zero);
  for (i64 k = 1; k < each; k++)
    sum = ex_op2(p, f->with, sum, reg_load(p, acc, zero, ex_int(p, k)));
  sum = tile_reduce_lanes(p, &at, f->with, sum);
  if (one) sum = ex_op2(p, f->with, sum, reg_load(p, one, zero, zero));
  Nest x = tile_nest(t, at);
  nest_store(&x, nest_finish(&x, sum));
}

/* ---- maps ---- */

static void store_map(Tile *t, Cursor at) {
  if (t->table) {
    tile_lut_store(t, at);
    return;
  }
  Nest x = tile_nest(t, at);
  Vectorizer w = tile_widen(t, 0);
  if (t->lanes > 1)
    store_wide(&x, &w, nest_value(&x));
  else
    nest_store(&x, nest_value(&x));
}

/* `count` vectors of the lane axis from `from` on. */
static void map_lanes(Tile t, Cursor at, i64 from, i64 count) {
  Prog *p = t.p;
  if (!count) return;
  t.at.panel = count_role(p, &at, count, "v", RO_lane);
  t.at.from = from;
  t.at.val[t.axis.lane] = tile_lane(&t);
  for (u32 i = t.axis.lane + 1; i < t.f.naxes; i++) tile_loop(&t, &at, i);
  store_map(&t, at);
}

/* A remainder that fills no vector is computed in vectors of half as many lanes, and so on. The
 * last few elements come from a vector that overlaps the previous one, or one by one. */
static void lower_map(Tile *t, Cursor at) {
  i64 n = t->f.axis[t->axis.lane].hi, few = n % LIMIT_least_lanes;
  bool again = few > 1 && n >= LIMIT_least_lanes && tile_map_repeats(t) &&
               (t->table || tile_map_fits(t, n - LIMIT_least_lanes, LIMIT_least_lanes));
  for (u32 i = 0; i < t->axis.lane; i++) tile_loop(t, &at, i);
  if (t->store.pads) {
    map_lanes(*t, at, 0, (n + t->lanes - 1) / t->lanes);
    return;
  }
  for (i64 done = 0; done < n; t->lanes = t->lanes / 2 >= LIMIT_least_lanes ? t->lanes / 2 : 1) {
    i64 count = (n - done) / t->lanes;
    map_lanes(*t, at, done, count);
    done += count * t->lanes;
    if (!again || t->lanes > LIMIT_least_lanes || done + few != n) continue;
    map_lanes(*t, at, n - LIMIT_least_lanes, 1);
    return;
  }
}

/* An axis of open extent: whole vectors, then element by element. */
static void lower_open_map(Tile *t, Cursor at) {
  Prog *p = t->p;
  for (u32 i = 0; i < t->axis.lane; i++) tile_loop(t, &at, i);
  ExprId n = ex_dim(p, t->f.axis[t->axis.lane].hi);
  ExprId vectors = ex_op2(p, OP_div, ex_copy(p, n), ex_int(p, t->lanes));
  ExprId rest = ex_op2(p, OP_mul, ex_copy(p, vectors), ex_int(p, t->lanes));
  for (u32 part = 0; part < 2; part++) {
    Tile x = *t;
    Cursor in = at;
    x.lanes = part ? 1 : t->lanes;
    x.at.panel =
        ex_var(p, for_parallel(p, &in, part ? rest : ex_int(p, 0), part ? n : vectors, "v"));
    prog_stmt(p, in.owner)->role = RO_lane;
    x.at.val[x.axis.lane] = tile_lane(&x);
    for (u32 i = x.axis.lane + 1; i < x.f.naxes; i++) tile_loop(&x, &in, i);
    store_map(&x, in);
  }
}

void tile_write(Lower *l, Cursor at, const Form *f, KernelChoice *r) {
  Tile *t = &r->t;
  (void)l;
  if (r->family == FA_horizontal)
    lower_horizontal(t, at);
  else if (f->reduce)
    lower_reduction(t, at);
  else if (dim_is_const(f->axis[t->axis.lane].hi))
    lower_map(t, at);
  else
    lower_open_map(t, at);
}
