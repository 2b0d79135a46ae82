/* lower_suppress.c: boxes by falling score, none of which overlaps one taken before it too much.
 *
 * Line by line. The boxes whose score is high enough become a heap, from which they are taken one
 * after the other, the best first: as few are put in order as are looked at. Each is compared with
 * those that were kept before it, which lie side by side for vectors: a block of them at a time,
 * until one overlaps it. If none does it is kept, too. So the work grows with boxes looked at times
 * boxes kept, whatever the length of the line is.
 *
 * Where vectors are there, they also find the parts of the line in which no score is high enough.
 *
 * A box with an edge that is no number has an area that is none, nor is any overlap with it: so the
 * extremes of edges need not care for NaN. A block is filled up with boxes at 0 that have no area,
 * and overlap nothing.
 */
#include "pass/kernel/tile.h"

#include "ir/cost.h"

enum { EDGES = 4, AREA = EDGES, BOX_ROWS, BLOCK_VECTORS = 4 };

typedef struct SuppressLine {
  Prog *p;
  BufId score, box, out;
  BufId key, at; /* the heap: scores and positions */
  BufId kept;    /* [BOX_ROWS, boxes]: edges and areas */
  DType dt;
  u32 lanes;
  i64 block; /* boxes that are compared at a time */
  Dim n;
  VarId var[3]; /* batch, class */
  VarId limit, least, most;
  VarId size, count; /* of the heap, of those kept */
} SuppressLine;

static ExprId plus(Prog *p, ExprId a, i64 k) {
  return ex_op2(p, OP_add, a, ex_int(p, k));
}

static ExprId zero_of(const SuppressLine *s) {
  return ex_const(s->p, s->dt, (Scalar){0});
}

static ExprId load_score(const SuppressLine *s, ExprId i, u32 lanes) {
  ExprId idx[3] = {ex_at(s->p, s->var[0]), ex_at(s->p, s->var[1]), i};
  return ex_load_vec(s->p, s->score, idx, 3, lanes);
}

/* ---- candidates ---- */

/* Box i, if its score is high enough; else the next takes its place. */
static void put_candidate(const SuppressLine *s, Cursor *at, ExprId i) {
  Prog *p = s->p;
  VarId pos = let_new(p, at, "pos", i), v = let_new(p, at, "v", load_score(s, ex_var(p, pos), 1));
  store_at(p, at, s->key, &s->size, ex_var(p, v));
  ExprId place = ex_cast(p, prog_buf(p, s->at)->dt, ex_var(p, pos), false);
  store_at(p, at, s->at, &s->size, place);
  ExprId one = ex_cast(p, DT_i64, ex_op2(p, OP_gt, ex_var(p, v), ex_var(p, s->least)), false);
  prog_set(p, at, s->size, ex_op2(p, OP_add, ex_var(p, s->size), one));
}

/* i64: is one of the scores of the block that begins at i not too low, or NaN? */
static ExprId any_score(const SuppressLine *s, Cursor *at, VarId i) {
  Prog *p = s->p;
  ExprId zero = ex_int(p, 0);
  BufId some = tile_registers(p, DT_i32, s->lanes, 1, 1, "some");
  ExprId none = ex_splat(p, ex_const(p, DT_i32, (Scalar){0}), s->lanes);
  reg_store(p, at, some, zero, zero, none);
  Cursor in = *at;
  ExprId u = tile_unrolled(p, &in, BLOCK_VECTORS, "u");
  ExprId first = ex_op2(p, OP_mul, u, ex_int(p, s->lanes));
  ExprId v = load_score(s, ex_op2(p, OP_add, ex_var(p, i), first), s->lanes);
  ExprId low = ex_op2(p, OP_le, v, ex_splat(p, ex_var(p, s->least), s->lanes));
  ExprId one = ex_splat(p, ex_const(p, DT_i32, (Scalar){.i = 1}), s->lanes);
  ExprId so_far = reg_load(p, some, zero, zero);
  reg_store(p, &in, some, zero, zero, ex_op3(p, OP_select, low, so_far, one));
  return tile_fold_lanes(p, at, OP_max, reg_load(p, some, zero, zero));
}

static ExprId is_set(Prog *p, ExprId flag) {
  return ex_op2(p, OP_gt, flag, ex_const(p, DT_i32, (Scalar){0}));
}

static void find_candidates(const SuppressLine *s, Cursor *at) {
  Prog *p = s->p;
  ExprId from = ex_int(p, 0);
  if (s->lanes > 1) {
    ExprId blocks = ex_op2(p, OP_div, ex_dim(p, s->n), ex_int(p, s->block));
    VarId whole = let_new(p, at, "whole", ex_op2(p, OP_mul, blocks, ex_int(p, s->block)));
    Cursor in = *at;
    VarId i = prog_for(p, &in, ex_int(p, 0), ex_var(p, whole), "i");
    prog_stmt(p, in.owner)->step = s->block;
    prog_if(p, &in, is_set(p, any_score(s, &in, i)));
    VarId k = prog_for(p, &in, ex_int(p, 0), ex_int(p, s->block), "k");
    put_candidate(s, &in, ex_op2(p, OP_add, ex_var(p, i), ex_var(p, k)));
    from = ex_var(p, whole);
  }
  Cursor in = *at;
  VarId i = prog_for(p, &in, from, ex_dim(p, s->n), "i");
  put_candidate(s, &in, ex_var(p, i));
}

/* ---- the heap ---- */

/* Does the first score and position come before the second? */
static ExprId comes_first(Prog *p, const VarId *a, const VarId *b) {
  ExprId more = ex_op2(p, OP_gt, ex_var(p, a[0]), ex_var(p, b[0]));
  ExprId same = ex_op2(p, OP_eq, ex_var(p, a[0]), ex_var(p, b[0]));
  ExprId in_front = ex_op2(p, OP_lt, ex_var(p, a[1]), ex_var(p, b[1]));
  return ex_op2(p, OP_or, more, ex_op2(p, OP_and, same, in_front));
}

static void heap_load(const SuppressLine *s, Cursor *at, VarId i, VarId *to) {
  to[0] = let_new(s->p, at, "v", load_at(s->p, s->key, &i));
  to[1] = let_new(s->p, at, "pos", load_at(s->p, s->at, &i));
}

static void heap_store(const SuppressLine *s, Cursor *at, VarId i, const VarId *from) {
  store_at(s->p, at, s->key, &i, ex_var(s->p, from[0]));
  store_at(s->p, at, s->at, &i, ex_var(s->p, from[1]));
}

/* Moves what lies at `start` down until nothing below it comes before it. */
static void sift_down(const SuppressLine *s, Cursor at, VarId start) {
  Prog *p = s->p;
  VarId moved[2], kid[2], other[2];
  heap_load(s, &at, start, moved);
  VarId hole = let_new(p, &at, "hole", ex_var(p, start));
  ExprId below = ex_op2(p, OP_add, ex_var(p, hole), ex_var(p, hole));
  VarId next = let_new(p, &at, "next", plus(p, below, 1));
  Cursor in = at;
  prog_while(p, &in, ex_op2(p, OP_lt, ex_var(p, next), ex_var(p, s->size)));
  ExprId right = ex_op2(p, OP_min, plus(p, ex_var(p, next), 1), plus(p, ex_var(p, s->size), -1));
  VarId beside = let_new(p, &in, "beside", right);
  heap_load(s, &in, next, kid);
  heap_load(s, &in, beside, other);
  VarId take = let_new(p, &in, "take", comes_first(p, other, kid));
  for (u32 i = 0; i < 2; i++) {
    ExprId one = ex_op3(p, OP_select, ex_var(p, take), ex_var(p, other[i]), ex_var(p, kid[i]));
    prog_set(p, &in, kid[i], one);
  }
  ExprId to = ex_op3(p, OP_select, ex_var(p, take), ex_var(p, beside), ex_var(p, next));
  VarId lower = let_new(p, &in, "lower", to);
  VarId down = let_new(p, &in, "down", comes_first(p, kid, moved));
  prog_set(p, &in, next, ex_var(p, s->size));
  prog_if(p, &in, ex_var(p, down));
  heap_store(s, &in, hole, kid);
  prog_set(p, &in, hole, ex_var(p, lower));
  below = ex_op2(p, OP_add, ex_var(p, hole), ex_var(p, hole));
  prog_set(p, &in, next, plus(p, below, 1));
  heap_store(s, &at, hole, moved);
}

/* ---- overlaps ---- */

static ExprId row_of(const SuppressLine *s, u32 row, ExprId i, u32 lanes) {
  ExprId idx[2] = {ex_int(s->p, row), i};
  return ex_load_vec(s->p, s->kept, idx, 2, lanes);
}

/* The edges and the area of the box at pos. */
static void load_box(const SuppressLine *s, Cursor *at, VarId pos, VarId *mine) {
  static const char *const names[] = {"y0", "x0", "y1", "x1"};
  Prog *p = s->p;
  ExprId side[2];
  for (u32 i = 0; i < EDGES; i++) {
    ExprId idx[3] = {ex_at(p, s->var[0]), ex_int(p, i), ex_cast(p, DT_i64, ex_var(p, pos), false)};
    mine[i] = let_new(p, at, names[i], ex_load(p, s->box, idx, 3));
  }
  for (u32 i = 0; i < 2; i++)
    side[i] = ex_op2(p, OP_sub, ex_var(p, mine[2 + i]), ex_var(p, mine[i]));
  mine[AREA] = let_new(p, at, "area", ex_op2(p, OP_mul, side[0], side[1]));
}

static ExprId spread(const SuppressLine *s, ExprId e) {
  return s->lanes > 1 ? ex_splat(s->p, e, s->lanes) : e;
}

/* The larger, or the smaller; either where one is NaN. */
static ExprId extreme(const SuppressLine *s, Cursor *at, Op better, ExprId a, ExprId b) {
  Prog *p = s->p;
  VarId x = tile_let(p, at, a, "x"), y = tile_let(p, at, b, "y");
  ExprId is = ex_op2(p, better, ex_var(p, x), ex_var(p, y));
  return ex_op3(p, OP_select, is, ex_var(p, x), ex_var(p, y));
}

/* bool: which of the boxes kept from i on overlap mine by more than the limit. */
static ExprId overlaps(const SuppressLine *s, Cursor *at, ExprId i, const VarId *mine) {
  Prog *p = s->p;
  ExprId side[2];
  for (u32 k = 0; k < 2; k++) {
    ExprId low = row_of(s, k, ex_copy(p, i), s->lanes);
    ExprId lo = extreme(s, at, OP_gt, low, spread(s, ex_var(p, mine[k])));
    ExprId high = row_of(s, 2 + k, ex_copy(p, i), s->lanes);
    ExprId hi = extreme(s, at, OP_lt, high, spread(s, ex_var(p, mine[2 + k])));
    side[k] = extreme(s, at, OP_gt, ex_op2(p, OP_sub, hi, lo), spread(s, zero_of(s)));
  }
  VarId common = tile_let(p, at, ex_op2(p, OP_mul, side[0], side[1]), "common");
  ExprId both = row_of(s, AREA, i, s->lanes);
  both = ex_op2(p, OP_add, both, spread(s, ex_var(p, mine[AREA])));
  ExprId all = ex_op2(p, OP_sub, both, ex_var(p, common));
  ExprId part = ex_op2(p, OP_div, ex_var(p, common), all);
  return ex_op2(p, OP_gt, part, spread(s, ex_var(p, s->limit)));
}

/* Sets `clear` to false if a box that was kept overlaps mine too much. */
static void compare(const SuppressLine *s, Cursor at, const VarId *mine, VarId clear) {
  Prog *p = s->p;
  ExprId zero = ex_int(p, 0);
  VarId i = let_new(p, &at, "i", ex_int(p, 0));
  prog_while(p, &at, ex_op2(p, OP_lt, ex_var(p, i), ex_var(p, s->count)));
  ExprId hit;
  if (s->lanes > 1) {
    BufId hits = tile_registers(p, DT_i32, s->lanes, 1, 1, "hits");
    ExprId none = ex_splat(p, ex_const(p, DT_i32, (Scalar){0}), s->lanes);
    reg_store(p, &at, hits, zero, zero, none);
    Cursor in = at;
    ExprId u = tile_unrolled(p, &in, BLOCK_VECTORS, "u");
    ExprId first = ex_op2(p, OP_mul, u, ex_int(p, s->lanes));
    ExprId over = overlaps(s, &in, ex_op2(p, OP_add, ex_var(p, i), first), mine);
    ExprId one = ex_splat(p, ex_const(p, DT_i32, (Scalar){.i = 1}), s->lanes);
    over = ex_op3(p, OP_select, over, one, reg_load(p, hits, zero, zero));
    reg_store(p, &in, hits, zero, zero, over);
    hit = is_set(p, tile_fold_lanes(p, &at, OP_max, reg_load(p, hits, zero, zero)));
  } else
    hit = overlaps(s, &at, ex_var(p, i), mine);
  VarId found = let_new(p, &at, "found", hit);
  prog_set(p, &at, i, plus(p, ex_var(p, i), s->block));
  prog_if(p, &at, ex_var(p, found));
  prog_set(p, &at, clear, ex_const(p, DT_bool, (Scalar){0}));
  prog_set(p, &at, i, ex_var(p, s->count));
}

/* Mine behind those that are kept; where it begins a block, nothing overlaps the rest of that. */
static void keep(const SuppressLine *s, Cursor at, VarId pos, const VarId *mine) {
  Prog *p = s->p;
  if (s->block > 1) {
    Cursor in = at;
    ExprId rest = ex_op2(p, OP_and, ex_var(p, s->count), ex_int(p, s->block - 1));
    prog_if(p, &in, ex_op2(p, OP_eq, rest, ex_int(p, 0)));
    VarId row = prog_for(p, &in, ex_int(p, 0), ex_int(p, BOX_ROWS), "row");
    VarId k = prog_for(p, &in, ex_int(p, 0), ex_int(p, s->block), "k");
    ExprId idx[2] = {ex_var(p, row), ex_op2(p, OP_add, ex_var(p, s->count), ex_var(p, k))};
    prog_store(p, &in, s->kept, idx, 2, zero_of(s));
  }
  for (u32 i = 0; i < BOX_ROWS; i++) {
    ExprId idx[2] = {ex_int(p, i), ex_var(p, s->count)};
    prog_store(p, &at, s->kept, idx, 2, ex_var(p, mine[i]));
  }
  VarId to[3] = {s->var[0], s->var[1], s->count};
  store_at(p, &at, s->out, to, ex_cast(p, DT_i64, ex_var(p, pos), false));
  prog_set(p, &at, s->count, plus(p, ex_var(p, s->count), 1));
}

/* The best box of the heap is kept or not, and the last one put in its place. */
static void take_best(const SuppressLine *s, Cursor at) {
  Prog *p = s->p;
  VarId top = let_new(p, &at, "top", ex_int(p, 0)), mine[BOX_ROWS], last[2];
  VarId pos = let_new(p, &at, "best", load_at(p, s->at, &top));
  load_box(s, &at, pos, mine);
  VarId clear = let_new(p, &at, "clear", ex_const(p, DT_bool, (Scalar){.i = 1}));
  compare(s, at, mine, clear);
  Cursor in = at;
  prog_if(p, &in, ex_var(p, clear));
  keep(s, in, pos, mine);
  prog_set(p, &at, s->size, plus(p, ex_var(p, s->size), -1));
  heap_load(s, &at, s->size, last);
  heap_store(s, &at, top, last);
}

/* One loop makes the heap, from its last inner place up, and then takes from it: both move what
 * lies at `start` down. */
static void take_all(SuppressLine *s, Cursor *at, Dim k) {
  Prog *p = s->p;
  ExprId half = ex_op2(p, OP_div, ex_var(p, s->size), ex_int(p, 2));
  VarId start = let_new(p, at, "start", half);
  s->count = let_new(p, at, "count", ex_int(p, 0));
  Cursor in = *at;
  ExprId more = ex_op2(p, OP_lt, ex_var(p, s->count), ex_var(p, s->most));
  more = ex_op2(p, OP_and, ex_op2(p, OP_gt, ex_var(p, s->size), ex_int(p, 0)), more);
  prog_while(p, &in, more);
  Cursor made = in;
  StmtId making = prog_if(p, &made, ex_op2(p, OP_gt, ex_var(p, start), ex_int(p, 0)));
  in.last = making;
  prog_set(p, &made, start, plus(p, ex_var(p, start), -1));
  take_best(s, prog_else(making));
  sift_down(s, in, start);
  in = *at;
  VarId to[3] = {s->var[0], s->var[1]};
  to[2] = prog_for(p, &in, ex_var(p, s->count), ex_dim(p, k), "i");
  store_at(p, &in, s->out, to, ex_int(p, -1));
}

/* ---- lines ---- */

static void add_scratch(SuppressLine *s, Dim k) {
  Prog *p = s->p;
  bool far = extent_upto(p->dims, s->n, INT32_MAX) == INT32_MAX;
  Dim blocks = dim_div(p->dims, dim_add(p->dims, k, s->block - 1), s->block);
  Dim rows[2] = {BOX_ROWS, dim_mul(p->dims, blocks, s->block)};
  s->key = prog_add_buf(p, BS_local, s->dt, &s->n, 1, str_of(p->c, "key"));
  s->at = prog_add_buf(p, BS_local, far ? DT_i64 : DT_i32, &s->n, 1, str_of(p->c, "at"));
  s->kept = prog_add_buf(p, BS_local, s->dt, rows, 2, str_of(p->c, "kept"));
}

void lower_suppress(Lower *l, Cursor at) {
  Prog *p = l->p;
  SuppressLine s = {.p = p, .score = lower_in(l, 0), .box = lower_in(l, 1), .out = lower_out(l, 0)};
  const Target *t = l->unit->target;
  const Buf *x = prog_buf(p, s.score);
  s.dt = x->dt;
  s.n = x->dim[2];
  s.lanes = s.dt == DT_f32 && l->unit->aim != AIM_size && t->lanes >= 4 ? t->lanes : 1;
  s.block = s.lanes > 1 ? (i64)s.lanes * BLOCK_VECTORS : 1;
  Dim k = prog_buf(p, s.out)->dim[2];
  add_scratch(&s, k);
  open_loops(p, &at, prog_buf(p, s.score)->dim, 3, 2, s.var);
  ExprId limit = ex_op2(p, OP_max, load_at(p, lower_in(l, 2), NULL), zero_of(&s));
  s.limit = let_new(p, &at, "limit", limit);
  s.least = let_new(p, &at, "least", load_at(p, lower_in(l, 3), NULL));
  ExprId most = ex_op2(p, OP_min, load_at(p, lower_in(l, 4), NULL), ex_dim(p, k));
  s.most = let_new(p, &at, "most", most);
  s.size = let_new(p, &at, "size", ex_int(p, 0));
  find_candidates(&s, &at);
  take_all(&s, &at, k);
}
