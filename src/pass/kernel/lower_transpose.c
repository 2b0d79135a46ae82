/* lower_transpose.c: maps whose operands and result are contiguous along different axes.
 *
 * In: a form without a reduction: a transpose or a copy between row-major and channel blocks, with
 * maps. Out: loops over tiles of two axes. A tile is computed in vectors along the contiguous axis
 * of the operands. A square tile is transposed in registers and stored in vectors along the result.
 * Other tiles go through a small buffer and are stored element by element, in the order of the
 * result. A remainder along the first axis is the end of a tile that overlaps the previous one, or
 * is left to scalar loops.
 */
#include "pass/kernel/tile.h"

#include "ir/prog/affine.h"

enum { ACROSS = 16 };        /* elements of a tile along the axis of the result: one cache line */
enum { MAX_TRANSPOSE = 16 }; /* maximum vectors transposed in registers */

struct TransposePlan {
  Tile t;    /* its lanes run along the operands */
  u32 out;   /* contiguous axis of the result */
  bool turn; /* vectors of the result can be stored */
  VarId to;  /* lane of these vectors */
  DType as;  /* element type of the exchanged lanes */
  i64 done;  /* lanes of a tile that an earlier tile has stored */
};

/* Type in which lanes are exchanged: f32 or i32. f16 is rounded before or at the store, with equal
 * results. Bytes use int16 if registers hold enough of them. DT_COUNT: not supported. */
static DType transpose_dtype(const Lower *l, DType dt) {
  if (dt == DT_f32 || dtype_is_half(dt)) return DT_f32;
  if (dt == DT_i32) return DT_i32;
  return dtype_is_narrow_int(dt) && l->pass->target->lanes >= 8 ? DT_i16 : DT_COUNT;
}

static ExprId stored_as(Prog *p, BufId out, ExprId value) {
  DType dt = prog_buf(p, out)->dt;
  return dt == prog_expr(p, value)->dt ? value : ex_cast(p, dt, value, dtype_is_half(dt));
}

static bool is_wide(const Axis *a, i64 least) {
  return !a->reduce && !a->lo && dim_is_const(a->hi) && a->hi >= least;
}

/* Can the value be computed in vectors along this axis? */
static bool try_axis(TransposePlan *x, u32 axis) {
  Tile *t = &x->t;
  Lower *l = t->l;
  bool blocked = false;
  const Layout *to = layout_of(l, t->f.out.buf);
  t->axis.lane = axis;
  t->lanes = l->pass->target->lanes;
  if (to && to->block && to->block < t->lanes) t->lanes = to->block;
  for (u32 k = 0; k < t->f.nin; k++) {
    const Layout *y = layout_of(l, t->f.in[k].buf);
    if (!y || !y->block || !operand_moves(&t->f.in[k], axis)) continue;
    t->lanes = y->block;
    blocked = true;
  }
  while (!blocked && t->lanes > 4 && t->lanes > t->f.axis[axis].hi) t->lanes /= 2;
  if (!blocked && t->f.axis[axis].hi < t->lanes) return false;
  t->store.pads = blocked;
  t->lane_var = prog_add_var(t->p, DT_i64, str_of(t->p->c, "lane"));
  return tile_map_is_wide(t);
}

/* Point of the lane axis at which a block begins. */
static ExprId first_lane(const TransposePlan *x, ExprId block) {
  Prog *p = x->t.p;
  ExprId lanes = ex_op2(p, OP_mul, ex_copy(p, block), ex_int(p, x->t.lanes));
  return ex_op2(p, OP_add, lanes, ex_int(p, x->t.at.from));
}

/* Stores a tile from its buffer element by element, in the order of the result. */
static void store_all(TransposePlan *x, Cursor at, BufId tile, ExprId block, ExprId first,
                      i64 count) {
  Tile *t = &x->t;
  Prog *p = t->p;
  i64 n = t->f.axis[t->axis.lane].hi;
  ExprId base = first_lane(x, block);
  ExprId end = ex_int(p, t->lanes);
  if (t->store.pads && n % t->lanes)
    end = ex_op2(p, OP_min, end, ex_op2(p, OP_sub, ex_int(p, n), ex_copy(p, base)));
  VarId a = prog_for(p, &at, ex_int(p, x->done), end, "c");
  VarId b = prog_for(p, &at, ex_int(p, 0), ex_int(p, count), "e");
  t->at.val[t->axis.lane] = ex_op2(p, OP_add, base, ex_var(p, a));
  t->at.val[x->out] = ex_op2(p, OP_add, ex_copy(p, first), ex_var(p, b));
  Nest nest = tile_nest(t, at);
  nest.in.inner = (InnerVars){2, {{a, t->lanes}, {b, ACROSS}}};
  ExprId from[2] = {ex_var(p, b), ex_var(p, a)};
  nest_store(&nest, stored_as(p, t->f.out.buf, ex_load(p, tile, from, 2)));
}

/* Vector of the value along the operands, at element first + e of the axis of the result. */
static ExprId vector_at(TransposePlan *x, ExprId block, ExprId first, ExprId e) {
  Tile *t = &x->t;
  Prog *p = t->p;
  t->at.panel = ex_copy(p, block);
  t->at.val[t->axis.lane] = tile_lane(t);
  t->at.val[x->out] = ex_op2(p, OP_add, ex_copy(p, first), e);
  Nest nest = tile_nest(t, prog_end());
  Vectorizer w = tile_widen(t, 0);
  ExprId value = widen(&w, nest_value(&nest));
  if (!value) internal_error(p->c, LOC_NONE, "a map is not contiguous along the lanes");
  const Expr *v = prog_expr(p, value);
  if (v->dt == x->as) return value;
  bool rounds = x->as == DT_f32 && v->kind == EX_op && v->op == OP_cast &&
                prog_expr(p, v->arg[0])->dt == DT_f32;
  return rounds ? v->arg[0] : ex_cast(p, x->as, value, false);
}

/* Address of a vector of the result, for one point of the lane axis; false: not contiguous. */
static bool place_of(TransposePlan *x, ExprId lane, ExprId first, BufId *out, ExprId *idx,
                     u32 *rank) {
  Tile *t = &x->t;
  Prog *p = t->p;
  Lower *l = t->l;
  Vectorizer w = {.p = p, .lane = x->to, .lanes = t->lanes, .once = &l->once};
  t->at.val[t->axis.lane] = lane;
  t->at.val[x->out] = ex_op2(p, OP_add, ex_copy(p, first), ex_var(p, x->to));
  Nest nest = tile_nest(t, prog_end());
  nest.in.inner = (InnerVars){1, {{x->to, t->lanes}}};
  *rank = nest_address(&nest, &t->f.out, out, idx);
  return widen_place(&w, out, idx, rank);
}

/* Transposes a square tile in registers: exchanges halves of two vectors, then quarters, down to
 * single lanes. */
static void transposed_tile(TransposePlan *x, Cursor at, ExprId block, ExprId first) {
  Tile *t = &x->t;
  Prog *p = t->p;
  u32 lanes = t->lanes, rank;
  VarId v[MAX_TRANSPOSE];
  for (u32 i = 0; i < lanes; i++)
    v[i] = tile_let(p, &at, vector_at(x, block, first, ex_int(p, i)), "t");
  for (u32 n = lanes / 2; n > 0; n /= 2)
    for (u32 i = 0; i < lanes; i++) {
      if (i & n) continue;
      VarId a = v[i], b = v[i + n];
      v[i] = tile_let(p, &at, tile_lane_groups(p, a, b, n, false), "t");
      v[i + n] = tile_let(p, &at, tile_lane_groups(p, a, b, n, true), "t");
    }
  for (u32 i = (u32)x->done; i < lanes; i++) {
    BufId out;
    ExprId idx[MAX_RANK + 1], lane = ex_op2(p, OP_add, first_lane(x, block), ex_int(p, i));
    if (!place_of(x, lane, first, &out, idx, &rank))
      internal_error(p->c, LOC_NONE, "a result is not contiguous along the lanes");
    prog_store(p, &at, out, idx, rank, stored_as(p, out, ex_var(p, v[i])));
  }
}

/* Writes `count` elements along the axis of the result from `first` on, one block along the
 * other. */
static void one_tile(TransposePlan *x, Cursor at, ExprId block, ExprId first, i64 count) {
  Tile *t = &x->t;
  Prog *p = t->p;
  TransposePlan in = *x;
  Dim dim[2] = {ACROSS, t->lanes};
  BufId tile = prog_add_buf(p, BS_local, x->as, dim, 2, str_of(p->c, "tile"));
  Cursor inside = at;
  VarId b = prog_for(p, &inside, ex_int(p, 0), ex_int(p, count), "e");
  in.t.at.inner.at[in.t.at.inner.n++] = (InnerVar){b, ACROSS};
  ExprId value = vector_at(&in, block, first, ex_var(p, b));
  ExprId to[2] = {ex_var(p, b), ex_int(p, 0)};
  prog_store(p, &inside, tile, to, 2, value);
  store_all(x, at, tile, block, first, count);
}

/* Can vectors of the result be stored? */
static bool can_transpose(TransposePlan *x) {
  Tile *t = &x->t;
  Prog *p = t->p;
  BufId out;
  ExprId idx[MAX_RANK + 1];
  u32 rank;
  if (t->lanes > MAX_TRANSPOSE || t->l->pass->aim == AIM_size) return false;
  x->to = prog_add_var(p, DT_i64, str_of(p->c, "lane"));
  ProgMark mark = prog_mark(p);
  ExprId first = ex_op2(p, OP_mul, ex_var(p, prog_add_var(p, DT_i64, 0)), ex_int(p, t->lanes));
  bool ok = place_of(x, ex_int(p, 0), first, &out, idx, &rank);
  prog_rewind(p, mark);
  return ok;
}

/* Loops over blocks of the lane axis from `from` on, with tiles of `each` elements along the axis
 * of the result. */
static void loop_blocks(TransposePlan *x, Cursor at, i64 from, i64 blocks, i64 each) {
  Tile *t = &x->t;
  Prog *p = t->p;
  i64 m = t->f.axis[x->out].hi;
  if (!blocks) return;
  ExprId first = ex_int(p, 0);
  ExprId block = ex_op2(p, OP_add, count_parallel(p, &at, blocks, "o"), ex_int(p, from));
  if (m >= each) {
    Cursor in = at;
    if (m >= 2 * each)
      first = ex_op2(p, OP_mul, ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_int(p, m / each), "r")),
                     ex_int(p, each));
    if (x->turn)
      transposed_tile(x, in, block, first);
    else
      one_tile(x, in, block, first, each);
  }
  if (m % each) one_tile(x, at, block, ex_int(p, m / each * each), m % each);
}

/* Can a remainder be the end of a vector that overlaps the previous one? */
static bool ends_again(const TransposePlan *x) {
  Tile last = x->t;
  i64 n = last.f.axis[last.axis.lane].hi;
  if (last.store.pads || n % last.lanes == 0 || n < last.lanes) return false;
  last.at.from = n - last.lanes;
  return tile_map_repeats(&last) && tile_map_is_wide(&last);
}

/* Returns the first point of the lane axis that is not written. */
static i64 loop_tiles(TransposePlan *x, Cursor at) {
  Tile *t = &x->t;
  i64 n = t->f.axis[t->axis.lane].hi, whole = n / t->lanes;
  bool ends = ends_again(x), pads = t->store.pads;
  for (u32 i = 0; i < t->f.naxes; i++)
    if (i != t->axis.lane && i != x->out) tile_loop(t, &at, i);
  x->turn = can_transpose(x);
  i64 each = x->turn ? t->lanes : ACROSS;
  loop_blocks(x, at, 0, whole, each);
  if (ends) {
    t->at.from = n - t->lanes;
    x->done = t->lanes - n % t->lanes;
    loop_blocks(x, at, 0, 1, each);
  }
  x->turn = false; /* channels that fill no block */
  if (pads && n % t->lanes) loop_blocks(x, at, whole, 1, ACROSS);
  return ends || pads ? n : whole * t->lanes;
}

bool transpose_choose(Lower *l, const Form *f, KernelChoice *r) {
  if (f->reduce || f->body == FB_iota || f->body == FB_random) return false;
  TransposePlan x = {.t = tile_of(l, f), .as = transpose_dtype(l, prog_buf(l->p, f->out.buf)->dt)};
  if (x.as == DT_COUNT) return false;
  x.out = tile_lane_axis(&x.t);
  if (x.out == FORM_AXES || !is_wide(&f->axis[x.out], 4)) return false;
  for (u32 i = 0; i < f->naxes; i++)
    if (f->axis[i].lo || !dim_is_const(f->axis[i].hi) || f->axis[i].hi < 1) return false;
  for (u32 i = f->naxes; i-- > 0;) {
    if (i == x.out || !is_wide(&f->axis[i], 4) || !try_axis(&x, i)) continue;
    r->family = FA_transpose;
    r->turn = NEW(&l->c->scratch, TransposePlan);
    *r->turn = x;
    r->reason = str_fmt(l->c, "%lld contiguous elements are read, %lld are stored",
                        (long long)f->axis[i].hi, (long long)f->axis[x.out].hi);
    return true;
  }
  return false;
}

void transpose_write(Lower *l, Cursor at, const Form *f, KernelChoice *r) {
  TransposePlan *x = r->turn;
  u32 axis = x->t.axis.lane;
  Form rest = *f;
  rest.axis[axis].lo = loop_tiles(x, at);
  if (rest.axis[axis].lo != rest.axis[axis].hi) lower_plain(l, at, &rest);
}
