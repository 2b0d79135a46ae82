/* tile_choose.c: chooses the lane axis, the row axis and the size of a tile.
 *
 * In: a form. Out: a complete Tile, or false if no axis can be the lanes. To find out whether
 * operands and result can be vectors, it writes the scalar expressions of one point, widens them
 * and drops them.
 */
#include "pass/kernel/tile.h"

#include "ir/prog/affine.h"
#include "ir/prog/cost.h"

#include <math.h>
#include <string.h>

/* Drops bounds checks that a border of zeros replaces: 0 times a weight adds nothing. */
static void drop_guards(Tile *t) {
  Form *f = &t->f;
  if (!f->reduce || f->with != OP_add || f->body != FB_op || f->op != OP_mul) return;
  for (u32 k = 0; k < f->nin; k++) {
    Operand *o = &f->in[k];
    const Layout *y = layout_of(t->l, o->buf);
    if (y && y->fill != (k == t->bytes.operand ? t->bytes.zero : 0)) continue;
    for (u32 d = 2; y && d < o->rank; d++) {
      Index *ix = &o->idx[d];
      if (!ix->guard || ix->n != 2) continue;
      i64 first = ix->shift, last = ix->shift;
      for (u32 i = 0; i < 2; i++) last += ix->coef[i] * (f->axis[ix->axis[i]].hi - 1);
      if (first >= -y->lo[d] && last < prog_buf(t->p, o->buf)->dim[d] + y->hi[d]) ix->guard = 0;
    }
  }
}

/* The axis that steps by one through this index; other axes must not leave the channel block. */
static u32 axis_in(const Form *f, const Index *ix, i64 block) {
  u32 found = FORM_AXES;
  for (u32 i = 0; i < ix->n; i++) {
    const Axis *a = &f->axis[ix->axis[i]];
    if (a->hi == a->lo + 1) continue;
    if (ix->coef[i] == 1 && found == FORM_AXES)
      found = ix->axis[i];
    else if (!block || ix->coef[i] % block)
      return FORM_AXES;
  }
  if (block && (ix->shift % block || !dim_is_const(ix->base) || ix->base % block)) return FORM_AXES;
  return found;
}

/* How much of a channel block this index covers before another axis jumps: all of it, or the part
 * of one group of channels; 0: too little. */
static u32 part_of(const Form *f, const Index *ix, u32 block) {
  while (block >= LAYOUT_PART && axis_in(f, ix, block) == FORM_AXES) block /= 2;
  return block >= LAYOUT_PART ? block : 0;
}

/* May the last vector store all its lanes? True if lanes past the extent are padding of the channel
 * block, or do not exist. */
static bool fills_up(const Tile *t) {
  const Index *ix = &t->f.out.idx[1];
  i64 extent = t->f.axis[t->axis.lane].hi;
  return extent % t->lanes == 0 || ix->n != 1 ||
         ix->base + ix->shift + extent == prog_buf(t->p, t->f.out.buf)->dim[1];
}

/* tile_lane_axis for any extent. */
static u32 lane_axis(const Tile *t) {
  const Form *f = &t->f;
  const Layout *y = layout_of(t->l, f->out.buf);
  u32 axis = FORM_AXES;
  if (y && y->block) {
    u32 part = part_of(f, &f->out.idx[1], y->block);
    if (part) axis = axis_in(f, &f->out.idx[1], part);
  } else {
    u32 d = f->out.rank;
    while (d > 0 && !f->out.idx[d - 1].n && prog_buf(t->p, f->out.buf)->dim[d - 1] == 1) d--;
    if (d) axis = axis_in(f, &f->out.idx[d - 1], 0);
  }
  return axis == FORM_AXES || form_guard(f, axis, NULL) || f->axis[axis].lo ? FORM_AXES : axis;
}

u32 tile_lane_axis(const Tile *t) {
  u32 axis = lane_axis(t);
  return axis < FORM_AXES && dim_is_const(t->f.axis[axis].hi) ? axis : FORM_AXES;
}

/* Does a pooling window slide along the lanes? */
static bool slides_along(const Tile *t) {
  const Operand *x = &t->f.in[0];
  for (u32 d = 0; t->f.reduce && t->f.nin == 1 && d < x->rank; d++)
    if (x->idx[d].n == 2 && x->idx[d].axis[0] == t->axis.lane) return true;
  return false;
}

/* Lanes of a register with the widest elements of the form. */
static u32 full_lanes(const Tile *t) {
  Prog *p = t->p;
  const Form *f = &t->f;
  bool wide = prog_buf(p, f->out.buf)->dt == DT_f64 || f->dt == DT_f64;
  for (u32 k = 0; k < f->nin; k++) wide = wide || prog_buf(p, f->in[k].buf)->dt == DT_f64;
  return wide ? t->l->pass->target->lanes / 2 : t->l->pass->target->lanes;
}

/* Size in bytes of the widest elements that e computes with. */
static u32 widest_of(Prog *p, ExprId id) {
  const Expr *x = prog_expr(p, id);
  u32 n = lane_bytes(x->dt);
  for (u32 i = 0; i < x->narg && x->kind != EX_load; i++) {
    u32 more = widest_of(p, x->arg[i]);
    if (more > n) n = more;
  }
  return n;
}

/* Lanes of a map: fill a register with results if nothing is computed in wider elements, or if
 * wider ones are narrowed to bytes a register at a time (ex_bytes). */
static u32 map_lanes(Tile *t) {
  Prog *p = t->p;
  DType to = prog_buf(p, t->f.out.buf)->dt, as;
  u32 n = full_lanes(t), narrow = lane_bytes(to);
  i64 k;
  if (narrow >= 4 || t->l->pass->aim == AIM_size) return n;
  t->lanes = n;
  ProgMark mark = trial_begin(t);
  Nest x = tile_nest(t, prog_end());
  ExprId e = nest_value(&x);
  u32 widest = widest_of(p, e);
  Expr wide = *prog_expr(p, e);
  wide.lanes = n;
  bool bytes = narrow == 1 && widest <= 4 && ex_bytes(p, &wide, &as, &k) && as == to;
  trial_end(t, mark);
  return widest == narrow || bytes ? 4 * t->l->pass->target->lanes / narrow : n;
}

static u32 lanes_for(Tile *t, bool packed) {
  const Layout *y = layout_of(t->l, t->f.out.buf);
  u32 n = t->f.reduce ? full_lanes(t) : map_lanes(t);
  if (y && y->block) return part_of(&t->f, &t->f.out.idx[1], y->block);
  for (u32 k = 0; k < t->f.nin; k++) { /* vectors stay inside a channel block */
    const Layout *x = layout_of(t->l, t->f.in[k].buf);
    if (x && x->block && x->block < n && operand_moves(&t->f.in[k], t->axis.lane)) n = x->block;
  }
  i64 extent = t->f.axis[t->axis.lane].hi;
  while (n > 4 && (packed ? n / 2 >= extent : n > extent)) n /= 2;
  return extent < n && !packed ? 1 : n;
}

/* Starts a trial: every axis becomes a variable, and the lane axis lane_var. `trial_end` drops
 * everything written until then. */
ProgMark trial_begin(Tile *t) {
  Prog *p = t->p;
  ProgMark mark = prog_mark(p);
  t->at.inner = (InnerVars){1, {{t->lane_var, t->lanes}}};
  for (u32 i = 0; i < t->f.naxes; i++)
    if (t->f.axis[i].hi != t->f.axis[i].lo + 1)
      t->at.val[i] = ex_var(p, prog_add_var(p, DT_i64, 0));
  t->at.panel = ex_var(p, prog_add_var(p, DT_i64, 0));
  t->at.val[t->axis.lane] = tile_lane(t);
  return mark;
}

/* Starts a trial at the vector that begins at t->at.from. */
static ProgMark trial_begin_first(Tile *t) {
  ProgMark mark = trial_begin(t);
  t->at.panel = ex_int(t->p, 0);
  t->at.val[t->axis.lane] = tile_lane(t);
  return mark;
}

void trial_end(Tile *t, ProgMark mark) {
  memset(t->at.val, 0, sizeof t->at.val);
  prog_rewind(t->p, mark);
}

bool tile_is_const(const Tile *t, BufId b) {
  return !is_inlined(t->l, b) && !layout_of(t->l, b) &&
         prog_buf(t->p, prog_root(t->p, b))->space == BS_const;
}

/* Can a vector load leave its buffer when the last vector extends past the extent? */
static bool reaches_out(Tile *t, ExprId e) {
  for (ExprVisit w = ex_visit(t->p, e); ex_next(&w);) {
    if (w.e->kind == EX_shuffle) return true;
    if (w.e->kind != EX_load || w.e->lanes <= 1) continue;
    const Buf *b = prog_buf(t->p, w.e->ref);
    if (b->lanes > 1) continue;
    if (!dim_is_const(b->dim[b->rank - 1]) || b->dim[b->rank - 1] % w.e->lanes) return true;
  }
  return false;
}

bool tile_map_is_wide(Tile *t) {
  ProgMark mark = trial_begin(t);
  Nest x = tile_nest(t, prog_end());
  ExprId e = nest_value(&x), v = 0;
  Vectorizer w = tile_widen(t, 0);
  if (ex_mentions(t->p, e, t->lane_var)) v = widen(&w, e);
  bool ok =
      v && (t->f.axis[t->axis.lane].hi % t->lanes == 0 || !t->store.pads || !reaches_out(t, v));
  trial_end(t, mark);
  return ok;
}

bool tile_map_repeats(Tile *t) {
  Prog *p = t->p;
  BufId to = prog_root(p, t->f.out.buf);
  bool ok = prog_buf(p, to)->space != BS_state;
  ProgMark mark = trial_begin(t);
  Nest x = tile_nest(t, prog_end());
  for (ExprVisit w = ex_visit(p, nest_value(&x)); ex_next(&w);)
    if (w.e->kind == EX_load && prog_root(p, w.e->ref) == to) ok = false;
  trial_end(t, mark);
  return ok;
}

/* Finds how operand k moves along the lanes; false: in a way that vectors cannot follow. */
static bool use_of(Tile *t, u32 k, bool *out) {
  Nest x = tile_nest(t, prog_end());
  ExprId e = nest_load(&x, k);
  t->use[k] = LU_splat;
  if (!ex_mentions(t->p, e, t->lane_var)) return true;
  t->use[k] = LU_packed;
  if (t->f.reduce && tile_is_const(t, t->f.in[k].buf)) return true;
  Vectorizer w = tile_widen(t, 0);
  ExprId v = widen(&w, e);
  t->use[k] = v ? LU_vector : LU_packed;
  if (v && reaches_out(t, v)) *out = true;
  return v || (t->f.reduce && t->f.nin == 2 && pack_can_run(t, k));
}

static EpilogueCost epilogue_cost(Prog *p, ExprId e) {
  EpilogueCost all = EC_plain;
  for (ExprVisit w = ex_visit(p, e); ex_next(&w);) {
    const Expr *x = w.e;
    if (x->kind == EX_op && (x->op == OP_div || scalar_is_fast(x->op, x->dt))) return EC_functions;
    if (x->kind == EX_load && prog_buf(p, prog_root(p, x->ref))->space != BS_const) all = EC_loads;
  }
  return all;
}

/* Does the epilogue e of a partial vector load only existing elements? Constants along the lanes
 * are padded. */
static bool stays_inside(Tile *t, ExprId e) {
  for (ExprVisit w = ex_visit(t->p, e); ex_next(&w);)
    if (w.e->kind == EX_load && w.e->lanes > 1 &&
        prog_buf(t->p, prog_root(t->p, w.e->ref))->space != BS_const)
      return false;
  return !reaches_out(t, e);
}

/* Can the result of the epilogue be stored as vectors? */
static bool store_is_wide(Tile *t, bool *out) {
  Prog *p = t->p;
  Nest x = tile_nest(t, prog_end());
  ExprId idx[MAX_RANK + 1];
  BufId b;
  Vectorizer w =
      tile_widen(t, ex_splat(p, ex_const(p, prog_var(p, t->acc_var)->dt, (Scalar){0}), t->lanes));
  u32 n = nest_address(&x, &t->f.out, &b, idx);
  bool place = widen_place(&w, &b, idx, &n);
  if (!place && !t->f.reduce) return false;
  ExprId e = widen(&w, t->f.reduce ? nest_finish(&x, ex_var(p, t->acc_var)) : nest_value(&x));
  /* lanes are extracted from a variable, and back ends have no f16 vector variables */
  t->store.finish_is_wide = e && t->f.reduce && !dtype_is_half(prog_expr(p, e)->dt);
  t->store.finish_stays_inside = t->store.finish_is_wide && stays_inside(t, e);
  if (e && place && reaches_out(t, e)) *out = true;
  if (e && place && t->f.reduce) t->store.finish = epilogue_cost(p, e);
  return e && place;
}

bool tile_map_fits(const Tile *t, i64 from, u32 lanes) {
  Tile x = *t;
  bool out = false;
  x.lanes = lanes;
  x.at.from = from;
  ProgMark mark = trial_begin_first(&x);
  bool ok = store_is_wide(&x, &out);
  trial_end(&x, mark);
  return ok;
}

/* Is axis a a better row axis than b, which has too few points? */
static bool longer(const Form *f, u32 a, u32 b) {
  const Axis *x = &f->axis[a], *y = &f->axis[b];
  return dim_is_const(x->hi) && dim_is_const(y->hi) && y->hi - y->lo < (i64)figures.few_rows &&
         x->hi - x->lo > y->hi - y->lo;
}

/* Bit mask of LaneUse: the operands that move along an axis. */
static u32 movers(const Tile *t, u32 axis) {
  u32 mask = 0;
  for (u32 k = 0; k < t->f.nin; k++)
    if (operand_moves(&t->f.in[k], axis)) mask |= 1u << t->use[k];
  return mask;
}

bool tile_row_fits(const Tile *t, u32 axis) {
  const Axis *a = &t->f.axis[axis];
  if (a->reduce || axis == t->axis.lane || a->hi == a->lo + 1 || form_guard(&t->f, axis, NULL))
    return false;
  u32 mask = movers(t, axis);
  return mask && !(mask & 1u << LU_packed);
}

/* Finds the innermost axis that can be the rows. Best is one that vectors do not move along,
 * because all rows then share a loaded vector. If nothing is shared, takes rows of known number. */
static u32 row_axis(const Tile *t) {
  const Form *f = &t->f;
  u32 first = FORM_AXES, second = FORM_AXES;
  for (u32 i = f->naxes; i-- > 0;) {
    if (!tile_row_fits(t, i)) continue;
    if (movers(t, i) == 1u << LU_splat && (first == FORM_AXES || longer(f, i, first))) first = i;
    if (second == FORM_AXES && dim_is_const(f->axis[i].hi)) second = i;
  }
  return first == FORM_AXES ? second : first;
}

/* Finds a reduction axis that some operand stores in channel blocks. */
static void find_split(Tile *t) {
  const Form *f = &t->f;
  t->axis.split = FORM_AXES;
  for (u32 k = 0; k < f->nin; k++) {
    const Layout *y = layout_of(t->l, f->in[k].buf);
    if (!y || !y->block) continue;
    u32 part = part_of(f, &f->in[k].idx[1], y->block);
    u32 axis = part ? axis_in(f, &f->in[k].idx[1], part) : FORM_AXES;
    if (axis == FORM_AXES || !f->axis[axis].reduce || f->axis[axis].lo) continue;
    t->axis.split = axis;
    t->axis.block = part;
    return;
  }
}

/* Innermost reduction axes that are unrolled together. */
static u64 short_reductions(const Form *f) {
  i64 steps = 1;
  u64 mask = 0;
  for (u32 i = f->naxes; i-- > 0;) {
    const Axis *a = &f->axis[i];
    if (!a->reduce || a->hi == a->lo + 1) continue;
    if (!dim_is_const(a->hi) || a->hi - a->lo > (i64)figures.window_steps || form_guard(f, i, NULL))
      break;
    steps *= a->hi - a->lo;
    if (steps > (i64)figures.window_steps) break;
    mask |= (u64)1 << i;
  }
  return mask;
}

/* n = big * size + small * (size - 1) with as few tiles as possible and size <= max. */
RowSplit tile_cover(i64 n, i64 max) {
  i64 count = (n + max - 1) / max, size = (n + count - 1) / count;
  return (RowSplit){size, count - (size * count - n), size * count - n};
}

/* Number of rows, or an estimate of it. */
static i64 row_count(const Tile *t) {
  const Axis *a = &t->f.axis[t->axis.row];
  if (dim_is_const(a->hi)) return a->hi - a->lo;
  i64 n = extent_upto(t->p->dims, a->hi, LIMIT_open_rows);
  return n > 1 ? n : 1;
}

/* Is a large second factor better packed, although it is contiguous? Unpacked, the cache lines of a
 * panel are far apart: they exceed the associativity of the cache, and each one needs its own TLB
 * entry. */
static bool is_scattered(const Tile *t, u32 k) {
  const Form *f = &t->f;
  if (t->use[k] != LU_vector || f->nin != 2 || t->axis.row == FORM_AXES || tile_varies(t, k) ||
      t->use[1 - k] != LU_splat || !pack_can_run(t, k))
    return false;
  double bytes = (double)f->axis[t->axis.lane].hi * dtype_bytes(f->acc) * tile_reduction_size(t);
  return bytes > figures.own_bytes &&
         (double)row_count(t) >= figures.packed_rows * t->l->pass->target->cost->pack_rows;
}

/* Maximum rows of tiles with so many panels. */
i64 tile_rows(const Tile *t, i64 panels) {
  if (t->sums.rows && panels == t->sums.panels) return t->sums.rows;
  i64 most = t->sums.budget / panels, count = t->axis.row == FORM_AXES ? 1 : row_count(t);
  if (most > t->sums.max_rows) most = t->sums.max_rows;
  return most > count ? count : most;
}

/* Time of one reduction step over all rows. */
static double column_time(const Tile *t, i64 panels) {
  RowSplit c = tile_cover(row_count(t), tile_rows(t, panels));
  const Costs *cost = t->l->pass->target->cost;
  return (double)c.big * tile_step(cost, c.size, panels) +
         (double)c.small * tile_step(cost, c.size - 1, panels);
}

double tile_time(const Tile *t, i64 columns) {
  i64 whole = columns / t->sums.panels, rest = columns % t->sums.panels;
  return (double)whole * column_time(t, t->sums.panels) + (rest ? column_time(t, rest) : 0);
}

double tile_fma_share(const Tile *t) {
  i64 n = (t->f.axis[t->axis.lane].hi + t->lanes - 1) / t->lanes;
  return (double)n * (double)row_count(t) / tile_time(t, n);
}

static i64 best_panels(const Tile *t, i64 n) {
  Tile x = *t;
  i64 best = 1;
  double least = 0;
  for (x.sums.panels = 1;
       (double)x.sums.panels <= t->l->pass->target->cost->tile_panels && x.sums.panels <= n;
       x.sums.panels++) {
    double cost = tile_time(&x, n);
    if (x.sums.panels > 1 && cost > least) continue;
    best = x.sums.panels;
    least = cost;
  }
  return best;
}

/* Number of panels for a single row. Few, since each is a separate memory stream, but enough to
 * hide the latency of additions, also in the remainder. */
static i64 few_panels(const Costs *c, i64 n) {
  i64 few = c->streams > 1 ? (i64)c->streams : 1, cost[LIMIT_single_row_panels + 1],
      least = INT64_MAX, best = few;
  for (i64 v = 1; v <= LIMIT_single_row_panels; v++) {
    if (v < few) continue;
    i64 rest = n % v;
    cost[v] = n / v * v + (!rest || rest > few ? rest : few);
    if (cost[v] < least) least = cost[v];
  }
  while ((double)cost[best] > figures.rest_slack * (double)least) best++;
  return n < best ? n : best;
}

/* Is a reduction axis left as a loop? */
static bool loops_inside(const Tile *t) {
  for (u32 i = 0; i < t->f.naxes; i++) {
    const Axis *a = &t->f.axis[i];
    if (a->reduce && a->hi != a->lo + 1 && !(t->unroll >> i & 1)) return true;
  }
  return false;
}

/* Rows of a tile whose operand slides along them under an unrolled window. The accumulators and the
 * loads of one window line shall stay in registers. If all lines are unrolled, so shall the
 * weights, because C compilers hoist loads. */
static i64 window_rows(const Tile *t, i64 most) {
  const Form *f = &t->f;
  i64 lines = loops_inside(t) ? 1 : 2;
  for (u32 k = 0; k < f->nin; k++)
    for (u32 d = 0; d < f->in[k].rank; d++) {
      const Index *ix = &f->in[k].idx[d];
      if (ix->n != 2 || ix->axis[0] != t->axis.row || !(t->unroll >> ix->axis[1] & 1)) continue;
      const Axis *window = &f->axis[ix->axis[1]];
      i64 stride = ix->coef[0], size = window->hi - window->lo,
          room = (i64)t->l->pass->target->cost->window;
      if (ix->coef[1] != 1 || stride < 1) continue;
      i64 fit = (room - lines * size + stride) / (1 + stride);
      return fit < 2 ? 2 : fit < most ? fit : most;
    }
  return most;
}

/* On a GPU small tiles are better than few: every warp has one. */
static void spread_tiles(Tile *t, i64 panels) {
  enum { SUMS_MIN = 4 }; /* fewer load more often than they add */
  double points = 1;
  for (u32 i = 0; i < t->f.naxes; i++) {
    const Axis *a = &t->f.axis[i];
    if (!a->reduce && i != t->axis.lane && dim_is_const(a->hi)) points *= (double)(a->hi - a->lo);
  }
  while (points * (double)panels / ((double)(t->sums.max_rows * t->sums.panels)) < figures.warps &&
         t->sums.max_rows * t->sums.panels > SUMS_MIN) {
    if (t->sums.panels > 1)
      t->sums.panels /= 2;
    else
      t->sums.max_rows = (t->sums.max_rows + 1) / 2;
  }
}

static void choose_size(Tile *t) {
  const Target *to = t->l->pass->target;
  const Costs *c = to->cost;
  bool splat = false, packed = false, quads = t->axis.each > 1;
  i64 n = (t->f.axis[t->axis.lane].hi + t->lanes - 1) / t->lanes;
  i64 widest = (i64)(quads && c->dot_i8x4_panels > 0 ? c->dot_i8x4_panels : c->tile_panels);
  /* one panel at a time lets loop_fuse fuse more kernels by channel block */
  bool small = t->l->pass->aim == AIM_size, full = t->lanes == to->lanes;
  t->sums.budget = (i64)(t->axis.each == 4 ? c->dot_i8x4_sums : c->sums);
  if (t->axis.each == 2) t->sums.budget -= (i64)figures.pair_products;
  if (t->lanes > to->lanes)
    t->sums.budget /= t->lanes / to->lanes; /* a vector takes this many registers */
  bool many = t->sums.budget >= (i64)figures.many_sums;
  i64 half = (i64)(many ? figures.lone_sums_many : figures.lone_sums);
  for (u32 k = 0; k < t->f.nin; k++) {
    splat = splat || t->use[k] == LU_splat;
    packed = packed || t->use[k] != LU_splat;
  }
  if (t->axis.row == FORM_AXES) {
    t->sums.panels = small ? 1 : full && c->streams > 0 ? few_panels(c, n) : n < 8 ? n : half;
    t->sums.max_rows = 1;
  } else if (splat && packed) {
    t->sums.max_rows = small ? 4 : (i64)c->tile_rows;
    t->sums.panels = t->l->pass->aim != AIM_time       ? 1
                     : quads && c->dot_i8x4_panels > 0 ? (n < widest ? n : widest)
                                                       : best_panels(t, n);
  } else {
    t->sums.panels = 1;
    t->sums.max_rows = small ? 2 : half;
    if (!small) t->unroll = short_reductions(&t->f);
    t->sums.panels_innermost = slides_along(t); /* reads each line once, not once per panel */
    if (full && c->window > 0 && t->f.nin == 2) t->sums.max_rows = window_rows(t, t->sums.max_rows);
  }
  if (to->warp) spread_tiles(t, n);
  tile_tune(t, splat && packed ? widest : 0);
}

Tile tile_of(Lower *l, const Form *f) {
  return (Tile){.l = l,
                .p = l->p,
                .f = *f,
                .axis.row = FORM_AXES,
                .axis.split = FORM_AXES,
                .bytes = {.operand = FORM_IN},
                .axis.quad = FORM_AXES,
                .axis.each = 1};
}

static bool is_plain(DType dt) {
  return dtype_is_full_float(dt) || dtype_is_half(dt) || dt == DT_i32 || dtype_is_narrow_int(dt);
}

/* Are there vectors of its types? f32, f64, and integers up to 32 bits whose reductions do not
 * depend on the order. */
static bool has_type(Prog *p, const Form *f) {
  if (f->body == FB_iota || f->body == FB_random) return false;
  if (!is_plain(prog_buf(p, f->out.buf)->dt)) return false;
  return !f->reduce || (is_plain(f->acc) && f->acc == f->dt);
}

static bool any_guard(const Form *f) {
  for (u32 i = 0; i < f->naxes; i++)
    if (form_guard(f, i, NULL)) return true;
  return false;
}

/* How often the panels of operand k are read: once per row, or per row and image. */
static double times_read(const Tile *t, u32 k) {
  double n = 1;
  const Layout *y = layout_of(t->l, t->f.out.buf);
  if (!y || !y->block) return (double)t->f.axis[t->axis.row].hi;
  for (u32 i = 0; i < t->f.naxes; i++) {
    const Axis *a = &t->f.axis[i];
    if (a->reduce || i == t->axis.lane || operand_moves(&t->f.in[k], i) || tile_is_batch(t, i))
      continue;
    n *= dim_is_const(a->hi) ? (double)(a->hi - a->lo) : 1;
  }
  return n;
}

static bool refuse(Tile *t, const char *why_not) {
  t->why_not = why_not;
  return false;
}

static bool choose(Lower *l, const Form *f, Tile *t, bool bytes) {
  Prog *p = l->p;
  *t = tile_of(l, f);
  if (bytes && !bytes_begin(t)) return false;
  f = &t->f;
  drop_guards(t);
  if (bytes && any_guard(f)) return false;
  t->axis.lane = tile_lane_axis(t);
  if (t->axis.lane == FORM_AXES)
    return refuse(t, "the result is not contiguous along an axis of known extent");
  t->lane_var = prog_add_var(p, DT_i64, str_of(p->c, "lane"));
  t->lanes = lanes_for(t, f->reduce);
  if (t->lanes == 1)
    return refuse(t, "the result has fewer contiguous elements than a vector has lanes");
  t->acc_var = prog_add_var(p, f->reduce ? f->dt : DT_f32, str_of(p->c, "acc"));
  ProgMark mark = trial_begin(t);
  bool ok = true, out = false;
  t->store.partial = true;
  for (u32 k = 0; k < f->nin && ok; k++) {
    ok = use_of(t, k, &out);
    if (t->use[k] == LU_vector) t->store.partial = false;
  }
  bool wide = ok && store_is_wide(t, &out);
  trial_end(t, mark);
  if (!ok) return refuse(t, "an operand is neither contiguous nor constant along the lanes");
  if (!f->reduce && !wide) return refuse(t, "the expression or the store cannot be a vector");
  const Layout *y = layout_of(l, f->out.buf);
  t->store.is_wide = wide;
  t->store.pads =
      wide && y && y->block && fills_up(t) && (!out || f->axis[t->axis.lane].hi % t->lanes == 0);
  if (!t->store.pads && t->lanes > f->axis[t->axis.lane].hi && !t->store.partial) {
    t->lanes = lanes_for(t, false);
    if (y && y->block) return refuse(t, "a vector would leave the channel block");
  }
  if (!f->reduce) return true;
  t->axis.row = row_axis(t);
  find_split(t);
  for (u32 k = 0; k < f->nin; k++)
    if (is_scattered(t, k)) t->use[k] = LU_packed;
  if (bytes && !bytes_choose(t)) return false;
  choose_size(t);
  for (u32 k = 0; k < f->nin; k++) {
    if (t->use[k] != LU_packed) continue;
    if (tile_is_const(t, f->in[k].buf))
      pack_const(t, k);
    else if (t->axis.row == FORM_AXES || times_read(t, k) < l->pass->target->cost->pack_rows ||
             (bytes && t->axis.split < FORM_AXES))
      return refuse(t, "an operand is read too rarely to be packed");
    else
      t->packed_at_run[k] = true;
  }
  if (bytes && t->bytes.zero) pack_sums(t, 1 - t->bytes.operand);
  return true;
}

bool tile_choose(Lower *l, const Form *f, Tile *t) {
  t->why_not = "the target has no vectors of this type";
  return has_type(l->p, f) && (choose(l, f, t, true) || choose(l, f, t, false));
}

bool tile_choose_open(Lower *l, const Form *f, Tile *t) {
  bool out = false;
  *t = tile_of(l, f);
  if (f->reduce || !has_type(l->p, f) || layout_of(l, f->out.buf)) return false;
  t->axis.lane = lane_axis(t);
  if (t->axis.lane == FORM_AXES || f->axis[t->axis.lane].reduce ||
      dim_is_const(f->axis[t->axis.lane].hi))
    return false;
  t->lanes = full_lanes(t);
  t->lane_var = prog_add_var(l->p, DT_i64, str_of(l->p->c, "lane"));
  t->acc_var = prog_add_var(l->p, DT_f32, str_of(l->p->c, "acc"));
  ProgMark mark = trial_begin(t);
  t->store.is_wide = store_is_wide(t, &out);
  trial_end(t, mark);
  return t->store.is_wide;
}

bool tile_horizontal_fits(const Tile *t, i64 from) {
  Tile x = *t;
  bool out = false, ok = true;
  x.at.from = from;
  ProgMark mark = trial_begin_first(&x);
  for (u32 k = 0; k < x.f.nin && ok; k++) ok = use_of(&x, k, &out) && x.use[k] != LU_packed;
  trial_end(&x, mark);
  return ok;
}

/* Lanes run along the reduction axis along which every operand is contiguous or constant. */
bool tile_choose_horizontal(Lower *l, const Form *f, Tile *t) {
  Prog *p = l->p;
  *t = tile_of(l, f);
  t->axis.lane = FORM_AXES;
  if (!f->reduce || !dtype_is_full_float(f->acc) || f->dt != f->acc) return false;
  drop_guards(t);
  for (u32 i = 0; i < f->naxes; i++)
    if (f->axis[i].reduce && f->axis[i].hi != 1) t->axis.lane = i;
  if (t->axis.lane == FORM_AXES || form_guard(&t->f, t->axis.lane, NULL) ||
      f->axis[t->axis.lane].lo)
    return false;
  Dim n = f->axis[t->axis.lane].hi;
  t->lanes = full_lanes(t);
  if (dim_is_const(n))
    while (t->lanes > 4 && t->lanes > n) t->lanes /= 2;
  if (dim_is_const(n) && n < 2 * t->lanes) return false;
  t->lane_var = prog_add_var(p, DT_i64, str_of(p->c, "lane"));
  ProgMark mark = trial_begin(t);
  bool out = false, ok = true;
  for (u32 k = 0; k < f->nin && ok; k++) ok = use_of(t, k, &out) && t->use[k] != LU_packed;
  trial_end(t, mark);
  return ok;
}

void tile_choose_store(Tile *t) {
  bool over = false;
  t->lane_var = prog_add_var(t->p, DT_i64, str_of(t->p->c, "lane"));
  t->acc_var = prog_add_var(t->p, t->f.dt, str_of(t->p->c, "acc"));
  if (t->lanes == 1) return;
  ProgMark mark = trial_begin(t);
  t->store.is_wide = store_is_wide(t, &over);
  trial_end(t, mark);
}

/* Can vectors run along this reduction axis? Operands must be contiguous or constant. */
static bool rows_along(Tile *t, u32 axis) {
  Lower *l = t->l;
  const Axis *a = &t->f.axis[axis];
  if (!a->reduce || a->lo || !dim_is_const(a->hi) || form_guard(&t->f, axis, NULL)) return false;
  t->axis.lane = axis;
  t->lanes = full_lanes(t);
  for (u32 k = 0; k < t->f.nin; k++) { /* vectors stay inside a channel block */
    const Layout *y = layout_of(l, t->f.in[k].buf);
    if (y && y->block && operand_moves(&t->f.in[k], axis)) t->lanes = y->block;
  }
  while (t->lanes > 4 && a->hi % t->lanes) t->lanes /= 2;
  if (a->hi < t->lanes || a->hi % t->lanes) return false; /* the reduction may be empty */
  bool out = false, ok = true;
  ProgMark mark = trial_begin(t);
  for (u32 k = 0; k < t->f.nin && ok; k++)
    ok = use_of(t, k, &out) && (t->use[k] != LU_packed || tile_is_const(t, t->f.in[k].buf));
  trial_end(t, mark);
  return ok;
}

/* The axis of the innermost index of the result, with any step. */
static u32 last_axis(const Tile *t) {
  const Form *f = &t->f;
  u32 d = f->out.rank, axis = tile_lane_axis(t);
  while (d > 0 && !f->out.idx[d - 1].n && prog_buf(t->p, f->out.buf)->dim[d - 1] == 1) d--;
  if (axis < FORM_AXES || !d || f->out.idx[d - 1].n != 1) return axis;
  axis = f->out.idx[d - 1].axis[0];
  const Axis *a = &f->axis[axis];
  return a->reduce || a->lo || !dim_is_const(a->hi) || form_guard(f, axis, NULL) ? FORM_AXES : axis;
}

bool tile_choose_dot_rows(Lower *l, const Form *f, Tile *t, Tile *out) {
  *t = tile_of(l, f);
  if (!f->reduce || !dtype_is_full_float(f->acc) || f->dt != f->acc || f->nin != 2 ||
      f->body != FB_op)
    return false;
  drop_guards(t);
  u32 row = last_axis(t), axis = f->naxes;
  const Layout *y = layout_of(l, f->out.buf);
  if (row == FORM_AXES || (y && y->block) || l->pass->aim == AIM_size) return false;
  t->lane_var = prog_add_var(l->p, DT_i64, str_of(l->p->c, "lane"));
  while (axis > 0 && !rows_along(t, axis - 1)) axis--;
  if (!axis || f->axis[row].hi < t->lanes) return false;
  t->axis.row = row;
  for (u32 k = 0; k < f->nin; k++)
    if (t->use[k] == LU_packed && tile_varies(t, k)) return false;
  *out = tile_of(l, f);
  out->axis.lane = row;
  out->lanes = t->lanes;
  tile_choose_store(out);
  for (u32 k = 0; k < f->nin; k++)
    if (t->use[k] == LU_packed) pack_const(t, k);
  return true;
}
