/* lower_topk.c: the k best of every line, in order.
 *
 * Small k: an insertion-sorted list. An element better than the last of the list is inserted; most
 * are not.
 *
 * Large k: radix select and LSD radix sort on a 32-bit key that is smaller for better elements.
 * Counting the highest digits shows how far the k best reach. Elements up to there are copied and
 * sorted digit by digit.
 *
 * Types without such a key, or if memory is scarce: merge sort of all positions.
 *
 * All three keep equal elements in order of position and give the same result; the choice is by
 * time.
 */
#include "pass/lower/lower.h"

#include "ir/prog/cost.h"

enum { KEY = 32 };
typedef struct TopkRow {
  Prog *p;
  BufId x;
  u32 axis;
  Dim n;
  bool largest;
  VarId var[MAX_RANK]; /* position of the line */
} TopkRow;

static void put_result(Lower *l, const TopkRow *s, Cursor *at, VarId to, VarId best) {
  Prog *p = s->p;
  VarId at_to[MAX_RANK], at_from[MAX_RANK];
  for (u32 i = 0; i < prog_buf(p, s->x)->rank; i++) {
    at_to[i] = i == s->axis ? to : s->var[i];
    at_from[i] = i == s->axis ? best : s->var[i];
  }
  store_at(p, at, lower_out(l, 0), at_to, load_at(p, s->x, at_from));
  store_at(p, at, lower_out(l, 1), at_to, ex_var(p, best));
}

/* ---- small k: list ---- */

/* Shifts elements before `to` that are worse than v back by one; `to` becomes the position of v. */
static void make_room(const TopkRow *s, Cursor at, BufId kept, VarId v, VarId to) {
  Prog *p = s->p;
  VarId go = let_new(p, &at, "go", ex_op2(p, OP_gt, ex_var(p, to), ex_int(p, 0)));
  prog_while(p, &at, ex_var(p, go));
  ExprId front = ex_op2(p, OP_sub, ex_var(p, to), ex_int(p, 1));
  VarId pos = let_new(p, &at, "pos", ex_load(p, kept, &front, 1));
  VarId u = let_new(p, &at, "u", key_at(p, s->x, s->var, s->axis, pos));
  prog_set(p, &at, go, ex_before(p, v, u, s->largest));
  Cursor in = at;
  prog_if(p, &in, ex_var(p, go));
  store_at(p, &in, kept, &to, ex_var(p, pos));
  prog_set(p, &in, to, ex_op2(p, OP_sub, ex_var(p, to), ex_int(p, 1)));
  ExprId more = ex_op2(p, OP_gt, ex_var(p, to), ex_int(p, 0));
  prog_set(p, &at, go, ex_op2(p, OP_and, ex_var(p, go), more));
}

/* Inserts v, of position i, at `to` or before it. */
static void insert(const TopkRow *s, Cursor at, BufId kept, VarId v, VarId i, ExprId place) {
  VarId to = let_new(s->p, &at, "to", place);
  make_room(s, at, kept, v, to);
  store_at(s->p, &at, kept, &to, ex_var(s->p, i));
}

/* The worst element of the list. */
static ExprId worst(const TopkRow *s, Cursor *at, BufId kept, Dim k) {
  ExprId back = ex_int(s->p, k - 1);
  VarId last = let_new(s->p, at, "last", ex_load(s->p, kept, &back, 1));
  return key_at(s->p, s->x, s->var, s->axis, last);
}

/* Inserts element i if it is better than the worst of the list. */
static void offer(const TopkRow *s, Cursor in, BufId kept, VarId i, VarId least, Dim k) {
  Prog *p = s->p;
  VarId v = let_new(p, &in, "v", key_at(p, s->x, s->var, s->axis, i));
  ExprId no = ex_op2(p, s->largest ? OP_le : OP_ge, ex_var(p, v), ex_var(p, least));
  prog_if(p, &in, ex_op1(p, OP_not, no));
  prog_if(p, &in, ex_before(p, v, least, s->largest));
  insert(s, in, kept, v, i, ex_int(p, k - 1));
  prog_set(p, &in, least, worst(s, &in, kept, k));
}

/* Elements from the k-th on, in contiguous blocks of two vectors: one test rejects most blocks.
 * Returns the first element that is left. */
static i64 offer_blocks(const TopkRow *s, u32 lanes, Cursor at, BufId kept, VarId least, Dim k) {
  Prog *p = s->p;
  const Buf *x = prog_buf(p, s->x);
  u32 rank = x->rank;
  i64 block = 2 * (i64)lanes;
  if (lanes < 4 || s->axis + 1 != rank || !dim_is_const(s->n) || x->dt != DT_f32 ||
      s->n - k < LIMIT_topk_blocks * block)
    return k;
  i64 end = k + (s->n - k) / block * block;
  VarId from = prog_for(p, &at, ex_int(p, k), ex_int(p, end), "from");
  prog_stmt(p, at.owner)->step = block;
  ExprId idx[MAX_RANK];
  BufId some = tile_any_begin(p, &at, lanes);
  Cursor in = at;
  ExprId u = ex_op2(p, OP_mul, tile_unrolled(p, &in, 2, "u", RO_none), ex_int(p, lanes));
  for (u32 i = 0; i < rank; i++) idx[i] = ex_at(p, s->var[i]);
  idx[s->axis] = ex_op2(p, OP_add, ex_var(p, from), u);
  ExprId v = ex_load_vec(p, s->x, idx, rank, lanes);
  ExprId worse = ex_op2(p, s->largest ? OP_le : OP_ge, v, ex_splat(p, ex_var(p, least), lanes));
  tile_any_add(p, &in, some, ex_op1(p, OP_not, worse));
  prog_if(p, &at, tile_any(p, &at, some));
  VarId i =
      prog_for(p, &at, ex_var(p, from), ex_op2(p, OP_add, ex_var(p, from), ex_int(p, block)), "i");
  offer(s, at, kept, i, least, k);
  return end;
}

/* A comparison with the worst of the list rejects most elements. Better elements and NaN are
 * compared exactly afterwards. */
static void keep_best(Lower *l, const TopkRow *s, Cursor at, Dim k) {
  Prog *p = s->p;
  BufId kept = prog_add_buf(p, BS_local, DT_i64, &k, 1, str_of(p->c, "kept"));
  Cursor in = at;
  if (!dim_is_const(s->n)) { /* fewer than k: the entries must be valid positions */
    VarId i = prog_for(p, &in, ex_int(p, 0), ex_dim(p, k), "i");
    store_at(p, &in, kept, &i, ex_int(p, 0));
    in = at;
  }
  ExprId first = ex_op2(p, OP_min, ex_dim(p, k), ex_dim(p, s->n));
  VarId i = prog_for(p, &in, ex_int(p, 0), first, "i");
  VarId v = let_new(p, &in, "v", key_at(p, s->x, s->var, s->axis, i));
  insert(s, in, kept, v, i, ex_var(p, i));
  VarId least = let_new(p, &at, "least", worst(s, &at, kept, k));
  u32 lanes = l->pass->aim == AIM_time ? l->pass->target->lanes : 1;
  i64 from = offer_blocks(s, lanes, at, kept, least, k);
  in = at;
  i = prog_for(p, &in, ex_int(p, from), ex_dim(p, s->n), "i");
  offer(s, in, kept, i, least, k);
  VarId place = prog_for(p, &at, ex_int(p, 0), ex_dim(p, k), "place");
  VarId best = let_new(p, &at, "best", load_at(p, kept, &place));
  put_result(l, s, &at, place, best);
}

/* ---- large k: merge sort ---- */

/* The position at index i of the run, or any valid one if i is past the end. */
static VarId position(const TopkRow *s, Cursor *at, BufId pos, VarId i) {
  Prog *p = s->p;
  ExprId last = ex_op2(p, OP_sub, ex_dim(p, s->n), ex_int(p, 1));
  ExprId idx = ex_op2(p, OP_min, ex_var(p, i), last);
  return let_new(p, at, "pos", ex_load(p, pos, &idx, 1));
}

static ExprId bounded(const TopkRow *s, VarId from, ExprId plus) {
  Prog *p = s->p;
  return ex_op2(p, OP_min, ex_op2(p, OP_add, ex_var(p, from), plus), ex_dim(p, s->n));
}

/* Merges two neighboring runs of width w, starting at lo, from a into b. */
static void merge_runs(const TopkRow *s, Cursor at, BufId a, BufId b, VarId lo, VarId w) {
  Prog *p = s->p;
  VarId mid = let_new(p, &at, "mid", bounded(s, lo, ex_var(p, w)));
  VarId hi = let_new(p, &at, "hi", bounded(s, mid, ex_var(p, w)));
  VarId i = let_new(p, &at, "i", ex_var(p, lo)), k = let_new(p, &at, "k", ex_var(p, mid));
  VarId o = prog_for(p, &at, ex_var(p, lo), ex_var(p, hi), "o");
  VarId left = position(s, &at, a, i), right = position(s, &at, a, k);
  VarId x = let_new(p, &at, "x", key_at(p, s->x, s->var, s->axis, left));
  VarId y = let_new(p, &at, "y", key_at(p, s->x, s->var, s->axis, right));
  ExprId done = ex_op2(p, OP_ge, ex_var(p, i), ex_var(p, mid));
  ExprId more = ex_op2(p, OP_lt, ex_var(p, k), ex_var(p, hi));
  ExprId turn = ex_op2(p, OP_or, done, ex_before(p, y, x, s->largest));
  VarId second = let_new(p, &at, "second", ex_op2(p, OP_and, more, turn));
  ExprId take = ex_op3(p, OP_select, ex_var(p, second), ex_var(p, right), ex_var(p, left));
  store_at(p, &at, b, &o, take);
  ExprId one = ex_cast(p, DT_i64, ex_var(p, second), false);
  ExprId other = ex_cast(p, DT_i64, ex_op1(p, OP_not, ex_var(p, second)), false);
  prog_set(p, &at, k, ex_op2(p, OP_add, ex_var(p, k), one));
  prog_set(p, &at, i, ex_op2(p, OP_add, ex_var(p, i), other));
}

static void sort(Lower *l, const TopkRow *s, Cursor at, Dim k) {
  Prog *p = s->p;
  BufId a = prog_add_buf(p, BS_local, DT_i64, &s->n, 1, str_of(p->c, "order"));
  BufId b = prog_add_buf(p, BS_local, DT_i64, &s->n, 1, str_of(p->c, "merged"));
  Cursor in = at;
  VarId i = prog_for(p, &in, ex_int(p, 0), ex_dim(p, s->n), "i");
  store_at(p, &in, a, &i, ex_var(p, i));
  VarId w = let_new(p, &at, "w", ex_int(p, 1));
  in = at;
  prog_while(p, &in, ex_op2(p, OP_lt, ex_var(p, w), ex_dim(p, s->n)));
  VarId pair = let_new(p, &in, "pair", ex_op2(p, OP_add, ex_var(p, w), ex_var(p, w)));
  ExprId count =
      ex_op2(p, OP_add, ex_dim(p, s->n), ex_op2(p, OP_sub, ex_var(p, pair), ex_int(p, 1)));
  count = ex_op2(p, OP_div, count, ex_var(p, pair));
  Cursor inner = in;
  VarId run = prog_for(p, &inner, ex_int(p, 0), count, "run");
  VarId lo = let_new(p, &inner, "lo", ex_op2(p, OP_mul, ex_var(p, run), ex_var(p, pair)));
  merge_runs(s, inner, a, b, lo, w);
  inner = in;
  i = prog_for(p, &inner, ex_int(p, 0), ex_dim(p, s->n), "i");
  store_at(p, &inner, a, &i, load_at(p, b, &i));
  prog_set(p, &in, w, ex_var(p, pair));
  VarId to = prog_for(p, &at, ex_int(p, 0), ex_dim(p, k), "to");
  VarId best = let_new(p, &at, "best", load_at(p, a, &to));
  put_result(l, s, &at, to, best);
}

/* ---- large k: radix sort ---- */

typedef struct KeyDigits {
  i64 bits;            /* bits of a digit */
  BufId count;         /* by digit: its count, then the offset of its elements */
  BufId key[2], at[2]; /* keys and positions, double-buffered */
} KeyDigits;

static bool has_key(DType dt) {
  return dt == DT_f32 || dt == DT_bool || dt == DT_i32 || dt == DT_u32 || dtype_is_narrow_int(dt);
}

/* Key of the element at position i: 0 is the best. NaN is larger than everything, -0 is 0. */
static ExprId key_of(const TopkRow *s, Cursor *at, VarId i) {
  Prog *p = s->p;
  ExprId up;
  VarId v = let_new(p, at, "v", key_at(p, s->x, s->var, s->axis, i));
  DType dt = prog_var(p, v)->dt;
  const i64 half = (i64)1 << (KEY - 1), top = 2 * half - 1;
  if (dt == DT_f32) { /* bits grow with values from 0 on, and fall with negative ones */
    ExprId some = ex_op2(p, OP_eq, ex_var(p, v), ex_const(p, dt, (Scalar){0}));
    ExprId one = ex_op3(p, OP_select, some, ex_const(p, dt, (Scalar){0}), ex_var(p, v));
    VarId bits = let_new(p, at, "bits", ex_cast(p, DT_i64, ex_bitcast(p, DT_i32, one), false));
    ExprId above = ex_op2(p, OP_add, ex_var(p, bits), ex_int(p, half));
    ExprId below = ex_op2(p, OP_sub, ex_int(p, -1), ex_var(p, bits));
    ExprId positive = ex_op2(p, OP_ge, ex_var(p, bits), ex_int(p, 0));
    up = ex_op3(p, OP_select, positive, above, below);
    up = ex_op3(p, OP_select, ex_op1(p, OP_isnan, ex_var(p, v)), ex_int(p, top), up);
  } else {
    bool is_signed = dtype_info[dt].cls == 'I';
    ExprId wide = ex_cast(p, DT_i64, ex_var(p, v), false);
    up = is_signed ? ex_op2(p, OP_add, wide, ex_int(p, half)) : wide;
  }
  return s->largest ? ex_op2(p, OP_sub, ex_int(p, top), up) : up;
}

static ExprId digit_of(Prog *p, const KeyDigits *d, VarId key, i64 shift) {
  ExprId e = ex_var(p, key);
  if (shift) e = ex_op2(p, OP_shr, e, ex_int(p, shift));
  return shift + d->bits >= KEY ? e : ex_op2(p, OP_and, e, ex_int(p, ((i64)1 << d->bits) - 1));
}

static ExprId load_i64(Prog *p, BufId b, VarId i) {
  return ex_cast(p, DT_i64, load_at(p, b, &i), false);
}

static void clear_counts(Prog *p, Cursor at, const KeyDigits *d) {
  VarId b = prog_for(p, &at, ex_int(p, 0), ex_int(p, (i64)1 << d->bits), "b");
  store_at(p, &at, d->count, &b, ex_const(p, DT_i32, (Scalar){0}));
}

static void count_digit(Prog *p, Cursor *at, const KeyDigits *d, VarId key, i64 shift) {
  VarId b = let_new(p, at, "b", digit_of(p, d, key, shift));
  ExprId more = ex_op2(p, OP_add, load_at(p, d->count, &b), ex_const(p, DT_i32, (Scalar){.i = 1}));
  store_at(p, at, d->count, &b, more);
}

/* Copies elements whose highest digit does not exceed that of the k-th best, in order of position,
 * to key[0] and at[0]. Returns their number. */
static VarId choose(const TopkRow *s, Cursor *at, const KeyDigits *d, Dim k) {
  Prog *p = s->p;
  i64 high = KEY - d->bits;
  clear_counts(p, *at, d);
  Cursor in = *at;
  VarId i = prog_for(p, &in, ex_int(p, 0), ex_dim(p, s->n), "i");
  VarId key = let_new(p, &in, "key", key_of(s, &in, i));
  store_at(p, &in, d->key[1], &i, ex_cast(p, DT_u32, ex_var(p, key), false));
  count_digit(p, &in, d, key, high);
  VarId cut = let_new(p, at, "cut", ex_int(p, 0));
  VarId seen = let_new(p, at, "seen", load_i64(p, d->count, cut));
  in = *at;
  prog_while(p, &in, ex_op2(p, OP_lt, ex_var(p, seen), ex_dim(p, k)));
  prog_set(p, &in, cut, ex_op2(p, OP_add, ex_var(p, cut), ex_int(p, 1)));
  prog_set(p, &in, seen, ex_op2(p, OP_add, ex_var(p, seen), load_i64(p, d->count, cut)));
  VarId m = let_new(p, at, "m", ex_int(p, 0));
  in = *at;
  i = prog_for(p, &in, ex_int(p, 0), ex_dim(p, s->n), "i");
  key = let_new(p, &in, "key", load_i64(p, d->key[1], i));
  store_at(p, &in, d->key[0], &m, ex_cast(p, DT_u32, ex_var(p, key), false));
  store_at(p, &in, d->at[0], &m, ex_var(p, i));
  ExprId kept = ex_op2(p, OP_le, digit_of(p, d, key, high), ex_var(p, cut));
  prog_set(p, &in, m, ex_op2(p, OP_add, ex_var(p, m), ex_cast(p, DT_i64, kept, false)));
  return m;
}

/* Sorts the first m elements by one digit, from one pair of buffers to the other. */
static void sort_digit(Prog *p, Cursor at, const KeyDigits *d, VarId m, i64 shift, u32 from) {
  clear_counts(p, at, d);
  Cursor in = at;
  VarId i = prog_for(p, &in, ex_int(p, 0), ex_var(p, m), "i");
  VarId key = let_new(p, &in, "key", load_i64(p, d->key[from], i));
  count_digit(p, &in, d, key, shift);
  VarId next = let_new(p, &at, "next", ex_const(p, DT_i32, (Scalar){0}));
  in = at;
  VarId b = prog_for(p, &in, ex_int(p, 0), ex_int(p, (i64)1 << d->bits), "b");
  VarId here = let_new(p, &in, "here", ex_var(p, next));
  prog_set(p, &in, next, ex_op2(p, OP_add, ex_var(p, next), load_at(p, d->count, &b)));
  store_at(p, &in, d->count, &b, ex_var(p, here));
  i = prog_for(p, &at, ex_int(p, 0), ex_var(p, m), "i");
  key = let_new(p, &at, "key", load_i64(p, d->key[from], i));
  b = let_new(p, &at, "b", digit_of(p, d, key, shift));
  VarId to = let_new(p, &at, "to", load_i64(p, d->count, b));
  store_at(p, &at, d->key[!from], &to, ex_cast(p, DT_u32, ex_var(p, key), false));
  store_at(p, &at, d->at[!from], &to, load_at(p, d->at[from], &i));
  ExprId more = ex_op2(p, OP_add, ex_var(p, to), ex_int(p, 1));
  store_at(p, &at, d->count, &b, ex_cast(p, DT_i32, more, false));
}

static void sort_digits(Lower *l, const TopkRow *s, Cursor at, Dim k) {
  Prog *p = s->p;
  KeyDigits d = {.bits = dim_is_const(s->n) && s->n < LIMIT_topk_long_line ? LIMIT_topk_short_digit
                                                                           : LIMIT_topk_long_digit};
  Dim digits = (Dim)1 << d.bits;
  d.count = prog_add_buf(p, BS_local, DT_i32, &digits, 1, str_of(p->c, "count"));
  for (u32 i = 0; i < 2; i++) {
    d.key[i] = prog_add_buf(p, BS_local, DT_u32, &s->n, 1, str_of(p->c, "key"));
    d.at[i] = prog_add_buf(p, BS_local, DT_i64, &s->n, 1, str_of(p->c, "at"));
  }
  VarId m = choose(s, &at, &d, k);
  u32 in = 0;
  for (i64 shift = 0; shift < KEY; shift += d.bits, in = !in) sort_digit(p, at, &d, m, shift, in);
  VarId to = prog_for(p, &at, ex_int(p, 0), ex_dim(p, k), "to");
  VarId best = let_new(p, &at, "best", load_at(p, d.at[in], &to));
  put_result(l, s, &at, to, best);
}

/* Is insertion cheaper than counting digits? In random order about k (1 + log(n / k)) elements
 * shift half of the list. */
static bool is_few(Dim n, Dim k) {
  if (!dim_is_const(k) || k <= 0) return false;
  return k <= LIMIT_topk_list || (dim_is_const(n) && n / k >= k);
}

void lower_topk(Lower *l, Cursor at) {
  Prog *p = l->p;
  TopkRow s = {.p = p, .x = lower_in(l, 0), .axis = (u32)node_int(l->n, AT_axis, 0)};
  s.largest = node_int(l->n, AT_largest, 1) != 0;
  s.n = prog_buf(p, s.x)->dim[s.axis];
  Dim k = prog_buf(p, lower_out(l, 0))->dim[s.axis];
  open_loops(p, &at, prog_buf(p, s.x)->dim, prog_buf(p, s.x)->rank, s.axis, s.var);
  i64 most = extent_upto(p->dims, s.n, INT32_MAX);
  if (is_few(s.n, k))
    keep_best(l, &s, at, k);
  else if (l->pass->aim == AIM_time && has_key(prog_buf(p, s.x)->dt) && most >= LIMIT_topk_line &&
           most < INT32_MAX)
    sort_digits(l, &s, at, k);
  else
    sort(l, &s, at, k);
}
