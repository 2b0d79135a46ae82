/* lower_nms.c: non-maximum suppression.
 *
 * Each line (batch, class) is processed separately. Boxes with a sufficient score form a heap and
 * are taken from it best first, so only as many are sorted as are examined. Each is compared with
 * the boxes kept before it, which are stored as arrays: one vector block at a time, until one
 * overlaps. If none overlaps, it is kept. The work is proportional to boxes examined times boxes
 * kept, independent of the length of the line.
 *
 * With vectors, blocks of scores that are all too low are skipped.
 *
 * A box with a NaN edge has a NaN area and NaN overlaps, so min and max of edges need no NaN
 * handling. A block is padded with boxes at 0 without area, which overlap nothing.
 */
#include "pass/lower/lower.h"

enum { EDGES = 4, AREA = EDGES, BOX_ROWS };

typedef struct NmsCtx {
  Prog *p;
  BufId score, box, out;
  BufId heap; /* i64 keys, see key_of */
  BufId kept; /* [BOX_ROWS, boxes]: edges and areas */
  BoxKind kind;
  u32 lanes;
  i64 block; /* boxes compared at a time */
  Dim n;
  VarId var[3]; /* loop variables: batch, class, none */
  VarId limit, least, most;
  VarId size, count; /* elements of the heap, number of kept boxes */
} NmsCtx;

/* One test of as many boxes as there are lanes, from i on. mine: edges and area; NULL for tests of
 * scores. */
typedef ExprId BoxTest(const NmsCtx *s, Cursor *at, ExprId i, const VarId *mine);

static ExprId plus(Prog *p, ExprId a, i64 k) {
  return ex_op2(p, OP_add, a, ex_int(p, k));
}

static ExprId zero_of(const NmsCtx *s) {
  return ex_const(s->p, DT_f32, (Scalar){0});
}

static ExprId load_score(const NmsCtx *s, ExprId i, u32 lanes) {
  ExprId idx[3] = {ex_at(s->p, s->var[0]), ex_at(s->p, s->var[1]), i};
  return ex_load_vec(s->p, s->score, idx, 3, lanes);
}

static ExprId spread(const NmsCtx *s, ExprId e) {
  return s->lanes > 1 ? ex_splat(s->p, e, s->lanes) : e;
}

/* Does the test hold for any box of the block that starts at i? */
static ExprId any_of_block(const NmsCtx *s, Cursor *at, VarId i, BoxTest *test, const VarId *mine) {
  Prog *p = s->p;
  if (s->lanes == 1) return test(s, at, ex_var(p, i), mine);
  BufId some = tile_any_begin(p, at, s->lanes);
  Cursor in = *at;
  ExprId u = tile_unrolled(p, &in, LIMIT_nms_vectors, "u", RO_none);
  ExprId first = ex_op2(p, OP_mul, u, ex_int(p, s->lanes));
  ExprId is = test(s, &in, ex_op2(p, OP_add, ex_var(p, i), first), mine);
  tile_any_add(p, &in, some, is);
  return tile_any(p, at, some);
}

/* ---- candidates ---- */

/* Sort key: grows with the score and, for equal scores, falls with the position. Its high half is
 * the bits of the score, with negative scores inverted. */
static ExprId key_of(Prog *p, Cursor *at, VarId v, VarId pos) {
  VarId raw = let_new(p, at, "raw", ex_bitcast(p, DT_i32, ex_var(p, v)));
  ExprId none = ex_const(p, DT_i32, (Scalar){0}),
         minus = ex_const(p, DT_i32, (Scalar){.i = INT32_MIN});
  ExprId is_minus = ex_op2(p, OP_eq, ex_var(p, raw), minus); /* -0 counts as 0 */
  ExprId same = ex_op3(p, OP_select, is_minus, none, ex_var(p, raw));
  VarId bits = let_new(p, at, "bits", same);
  ExprId sign = ex_op2(p, OP_shr, ex_var(p, bits), ex_const(p, DT_i32, (Scalar){.i = 31}));
  ExprId turn = ex_op2(p, OP_and, sign, ex_const(p, DT_i32, (Scalar){.i = INT32_MAX}));
  ExprId up = ex_cast(p, DT_i64, ex_op2(p, OP_xor, ex_var(p, bits), turn), false);
  ExprId low = ex_op2(p, OP_sub, ex_int(p, UINT32_MAX), ex_var(p, pos));
  return ex_op2(p, OP_add, ex_op2(p, OP_shl, up, ex_int(p, 32)), low);
}

static ExprId position_of(Prog *p, ExprId key) {
  ExprId low = ex_op2(p, OP_and, key, ex_int(p, UINT32_MAX));
  return ex_op2(p, OP_sub, ex_int(p, UINT32_MAX), low);
}

/* Appends box i to the candidates if its score is high enough; else the next box overwrites it. */
static void put_candidate(const NmsCtx *s, Cursor *at, ExprId i) {
  Prog *p = s->p;
  VarId pos = let_new(p, at, "pos", i), v = let_new(p, at, "v", load_score(s, ex_var(p, pos), 1));
  store_at(p, at, s->heap, &s->size, key_of(p, at, v, pos));
  ExprId one = ex_cast(p, DT_i64, ex_op2(p, OP_gt, ex_var(p, v), ex_var(p, s->least)), false);
  prog_set(p, at, s->size, ex_op2(p, OP_add, ex_var(p, s->size), one));
}

/* Tests for scores from i on that are high enough, or NaN. */
static ExprId test_score(const NmsCtx *s, Cursor *at, ExprId i, const VarId *mine) {
  Prog *p = s->p;
  (void)at, (void)mine;
  ExprId low = ex_op2(p, OP_le, load_score(s, i, s->lanes), spread(s, ex_var(p, s->least)));
  return ex_op1(p, OP_not, low);
}

static void find_candidates(const NmsCtx *s, Cursor *at) {
  Prog *p = s->p;
  ExprId from = ex_int(p, 0);
  if (s->lanes > 1) {
    ExprId blocks = ex_op2(p, OP_div, ex_dim(p, s->n), ex_int(p, s->block));
    VarId whole = let_new(p, at, "whole", ex_op2(p, OP_mul, blocks, ex_int(p, s->block)));
    Cursor in = *at;
    VarId i = prog_for(p, &in, ex_int(p, 0), ex_var(p, whole), "i");
    prog_stmt(p, in.owner)->step = s->block;
    prog_if(p, &in, any_of_block(s, &in, i, test_score, NULL));
    VarId k = prog_for(p, &in, ex_int(p, 0), ex_int(p, s->block), "k");
    put_candidate(s, &in, ex_op2(p, OP_add, ex_var(p, i), ex_var(p, k)));
    from = ex_var(p, whole);
  }
  Cursor in = *at;
  VarId i = prog_for(p, &in, from, ex_dim(p, s->n), "i");
  put_candidate(s, &in, ex_var(p, i));
}

/* ---- the heap ---- */

/* Sifts the key at `start` down. Branches on comparisons of keys would be mispredicted, so the
 * result of the comparison is added as an integer. */
static void sift_down(const NmsCtx *s, Cursor at, VarId start) {
  Prog *p = s->p;
  VarId moved = let_new(p, &at, "moved", load_at(p, s->heap, &start));
  VarId hole = let_new(p, &at, "hole", ex_var(p, start));
  ExprId below = ex_op2(p, OP_add, ex_var(p, hole), ex_var(p, hole));
  VarId next = let_new(p, &at, "next", plus(p, below, 1));
  Cursor in = at;
  prog_while(p, &in, ex_op2(p, OP_lt, ex_var(p, next), ex_var(p, s->size)));
  ExprId right = ex_op2(p, OP_min, plus(p, ex_var(p, next), 1), plus(p, ex_var(p, s->size), -1));
  VarId sibling = let_new(p, &in, "sibling", right);
  VarId left = let_new(p, &in, "left", load_at(p, s->heap, &next));
  VarId other = let_new(p, &in, "other", load_at(p, s->heap, &sibling));
  ExprId second = ex_op2(p, OP_gt, ex_var(p, other), ex_var(p, left));
  ExprId kid = ex_op2(p, OP_add, ex_var(p, next), ex_cast(p, DT_i64, second, false));
  VarId from = let_new(p, &in, "from", kid);
  VarId larger = let_new(p, &in, "larger", load_at(p, s->heap, &from));
  prog_set(p, &in, next, ex_var(p, s->size));
  prog_if(p, &in, ex_op2(p, OP_gt, ex_var(p, larger), ex_var(p, moved)));
  store_at(p, &in, s->heap, &hole, ex_var(p, larger));
  prog_set(p, &in, hole, ex_var(p, from));
  below = ex_op2(p, OP_add, ex_var(p, hole), ex_var(p, hole));
  prog_set(p, &in, next, plus(p, below, 1));
  store_at(p, &at, s->heap, &hole, ex_var(p, moved));
}

/* ---- overlaps ---- */

static ExprId row_of(const NmsCtx *s, u32 row, ExprId i, u32 lanes) {
  ExprId idx[2] = {ex_int(s->p, row), i};
  return ex_load_vec(s->p, s->kept, idx, 2, lanes);
}

/* Edge of the box with these coordinates: low y, low x, high y, high x. */
static ExprId edge_of(const NmsCtx *s, const VarId *of, u32 edge) {
  Prog *p = s->p;
  u32 side = edge % 2;
  bool high = edge > 1;
  if (s->kind == BX_centre) {
    ExprId size = ex_var(p, of[3 - side]);
    ExprId half = ex_op2(p, OP_mul, size, ex_const(p, DT_f32, (Scalar){.f = 0.5}));
    return ex_op2(p, high ? OP_add : OP_sub, ex_var(p, of[1 - side]), half);
  }
  if (s->kind == BX_edges) return ex_var(p, of[edge]);
  return ex_op2(p, high ? OP_max : OP_min, ex_var(p, of[side]), ex_var(p, of[2 + side]));
}

/* Loads the edges and the area of the box at pos. */
static void load_box(const NmsCtx *s, Cursor *at, VarId pos, VarId *mine) {
  static const char *const names[] = {"y0", "x0", "y1", "x1"};
  Prog *p = s->p;
  VarId of[EDGES];
  ExprId side[2];
  for (u32 i = 0; i < EDGES; i++) {
    ExprId idx[3] = {ex_at(p, s->var[0]), ex_var(p, pos), ex_int(p, i)};
    of[i] = let_new(p, at, "e", ex_load(p, s->box, idx, 3));
  }
  for (u32 i = 0; i < EDGES; i++) mine[i] = let_new(p, at, names[i], edge_of(s, of, i));
  for (u32 i = 0; i < 2; i++)
    side[i] = ex_op2(p, OP_sub, ex_var(p, mine[2 + i]), ex_var(p, mine[i]));
  mine[AREA] = let_new(p, at, "area", ex_op2(p, OP_mul, side[0], side[1]));
}

/* Maximum or minimum; either operand if one is NaN. */
static ExprId extreme(const NmsCtx *s, Cursor *at, Op better, ExprId a, ExprId b) {
  Prog *p = s->p;
  VarId x = tile_let(p, at, a, "x"), y = tile_let(p, at, b, "y");
  ExprId is = ex_op2(p, better, ex_var(p, x), ex_var(p, y));
  return ex_op3(p, OP_select, is, ex_var(p, x), ex_var(p, y));
}

/* Tests which of the kept boxes from i on overlap mine by more than the limit. */
static ExprId test_overlap(const NmsCtx *s, Cursor *at, ExprId i, const VarId *mine) {
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

/* Tests which of the kept boxes intersect mine. Others have an overlap of 0 or NaN, and this test
 * takes a third of the time. */
static ExprId test_touch(const NmsCtx *s, Cursor *at, ExprId i, const VarId *mine) {
  Prog *p = s->p;
  ExprId all = 0;
  (void)at;
  for (u32 k = 0; k < EDGES; k++) {
    ExprId edge = row_of(s, k, ex_copy(p, i), s->lanes);
    ExprId across = spread(s, ex_var(p, mine[(k + 2) % EDGES]));
    ExprId is = ex_op2(p, k < 2 ? OP_lt : OP_gt, edge, across);
    all = all ? ex_op2(p, OP_and, all, is) : is;
  }
  return all;
}

/* Sets `clear` to false if a kept box overlaps mine too much. */
static void compare(const NmsCtx *s, Cursor at, const VarId *mine, VarId clear) {
  Prog *p = s->p;
  VarId i = let_new(p, &at, "i", ex_int(p, 0));
  prog_while(p, &at, ex_op2(p, OP_lt, ex_var(p, i), ex_var(p, s->count)));
  Cursor in = at;
  prog_if(p, &in, any_of_block(s, &in, i, test_touch, mine));
  prog_if(p, &in, any_of_block(s, &in, i, test_overlap, mine));
  prog_set(p, &in, clear, ex_const(p, DT_bool, (Scalar){0}));
  prog_set(p, &in, i, ex_var(p, s->count));
  prog_set(p, &at, i, plus(p, ex_var(p, i), s->block));
}

/* Appends mine to the kept boxes; a new block is first filled with boxes that overlap nothing. */
static void keep(const NmsCtx *s, Cursor at, VarId pos, const VarId *mine) {
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
  store_at(p, &at, s->out, to, ex_var(p, pos));
  prog_set(p, &at, s->count, plus(p, ex_var(p, s->count), 1));
}

/* Keeps or drops the best box of the heap and moves the last one to the root. */
static void take_best(const NmsCtx *s, Cursor at) {
  Prog *p = s->p;
  VarId top = let_new(p, &at, "top", ex_int(p, 0)), mine[BOX_ROWS];
  VarId pos = let_new(p, &at, "pos", position_of(p, load_at(p, s->heap, &top)));
  load_box(s, &at, pos, mine);
  VarId clear = let_new(p, &at, "clear", ex_const(p, DT_bool, (Scalar){.i = 1}));
  compare(s, at, mine, clear);
  Cursor in = at;
  prog_if(p, &in, ex_var(p, clear));
  keep(s, in, pos, mine);
  prog_set(p, &at, s->size, plus(p, ex_var(p, s->size), -1));
  store_at(p, &at, s->heap, &top, load_at(p, s->heap, &s->size));
}

/* One loop first builds the heap, from its last inner node up, and then pops from it: both sift
 * down at `start`. */
static void take_all(NmsCtx *s, Cursor *at, Dim k) {
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

static void add_scratch(NmsCtx *s, Dim k) {
  Prog *p = s->p;
  Dim blocks = dim_div(p->dims, dim_add(p->dims, k, s->block - 1), s->block);
  Dim rows[2] = {BOX_ROWS, dim_mul(p->dims, blocks, s->block)};
  s->heap = prog_add_buf(p, BS_local, DT_i64, &s->n, 1, str_of(p->c, "heap"));
  s->kept = prog_add_buf(p, BS_local, DT_f32, rows, 2, str_of(p->c, "kept"));
}

void lower_nms(Lower *l, Cursor at) {
  Prog *p = l->p;
  NmsCtx s = {.p = p, .score = lower_in(l, 0), .box = lower_in(l, 1), .out = lower_out(l, 0)};
  const Target *t = l->pass->target;
  const Buf *x = prog_buf(p, s.score);
  s.kind = node_box_kind(l->c, l->n);
  s.n = x->dim[2];
  s.lanes = l->pass->aim != AIM_size && t->lanes >= 4 ? t->lanes : 1;
  s.block = s.lanes > 1 ? (i64)s.lanes * LIMIT_nms_vectors : 1;
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
