/* lower_topk.c: the k best of every line, in order.
 *
 * A few are kept in order while the line is gone through: an element that is better than the last
 * of them is put in its place, and most are not. More are taken from the front of the line's
 * positions, sorted by merging runs of growing length. Both keep equal elements in the order of
 * their positions, so they give the same result; the choice is one of time.
 */
#include "pass/lower/lower.h"

/* Always few; few of many, and how many times as many these are. */
enum { FEW = 16, SOME = 512, OF = 8 };

typedef struct TopkLine {
  Prog *p;
  BufId x;
  u32 axis;
  Dim n;
  bool largest;
  VarId var[MAX_RANK]; /* the line */
} TopkLine;

static void put_result(Lower *l, const TopkLine *s, Cursor *at, VarId to, VarId best) {
  Prog *p = s->p;
  VarId at_to[MAX_RANK], at_from[MAX_RANK];
  for (u32 i = 0; i < prog_buf(p, s->x)->rank; i++) {
    at_to[i] = i == s->axis ? to : s->var[i];
    at_from[i] = i == s->axis ? best : s->var[i];
  }
  store_at(p, at, lower_out(l, 0), at_to, load_at(p, s->x, at_from));
  store_at(p, at, lower_out(l, 1), at_to, ex_var(p, best));
}

/* ---- a few ---- */

/* Moves those in front of place `to` that v is better than one back, and leaves `to` where it goes.
 */
static void make_room(const TopkLine *s, Cursor at, BufId kept, VarId v, VarId to) {
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

static void insert(Lower *l, const TopkLine *s, Cursor at, Dim k) {
  Prog *p = s->p;
  BufId kept = prog_add_buf(p, BS_local, DT_i64, &k, 1, str_of(p->c, "kept"));
  Cursor in = at;
  VarId i = prog_for(p, &in, ex_int(p, 0), ex_dim(p, k), "i");
  store_at(p, &in, kept, &i, ex_int(p, 0));
  in = at;
  i = prog_for(p, &in, ex_int(p, 0), ex_dim(p, s->n), "i");
  VarId v = let_new(p, &in, "v", key_at(p, s->x, s->var, s->axis, i));
  ExprId back = ex_int(p, k - 1);
  VarId last = let_new(p, &in, "last", ex_load(p, kept, &back, 1));
  VarId y = let_new(p, &in, "y", key_at(p, s->x, s->var, s->axis, last));
  ExprId room = ex_op2(p, OP_lt, ex_var(p, i), ex_dim(p, k));
  prog_if(p, &in, ex_op2(p, OP_or, room, ex_before(p, v, y, s->largest)));
  VarId to = let_new(p, &in, "to", ex_op2(p, OP_min, ex_var(p, i), ex_int(p, k - 1)));
  make_room(s, in, kept, v, to);
  store_at(p, &in, kept, &to, ex_var(p, i));
  VarId place = prog_for(p, &at, ex_int(p, 0), ex_dim(p, k), "place");
  VarId best = let_new(p, &at, "best", load_at(p, kept, &place));
  put_result(l, s, &at, place, best);
}

/* ---- many ---- */

/* The position that stands at place i of the run, or some other one when i is beyond the end. */
static VarId position(const TopkLine *s, Cursor *at, BufId pos, VarId i) {
  Prog *p = s->p;
  ExprId last = ex_op2(p, OP_sub, ex_dim(p, s->n), ex_int(p, 1));
  ExprId idx = ex_op2(p, OP_min, ex_var(p, i), last);
  return let_new(p, at, "pos", ex_load(p, pos, &idx, 1));
}

static ExprId bounded(const TopkLine *s, VarId from, ExprId plus) {
  Prog *p = s->p;
  return ex_op2(p, OP_min, ex_op2(p, OP_add, ex_var(p, from), plus), ex_dim(p, s->n));
}

/* Merges two neighbouring runs of width w, the first of which starts at lo, from a into b. */
static void merge_runs(const TopkLine *s, Cursor at, BufId a, BufId b, VarId lo, VarId w) {
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

static void sort(Lower *l, const TopkLine *s, Cursor at, Dim k) {
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

void lower_topk(Lower *l, Cursor at) {
  Prog *p = l->p;
  TopkLine s = {.p = p, .x = lower_in(l, 0), .axis = (u32)node_int(l->n, AT_axis, 0)};
  s.largest = node_int(l->n, AT_largest, 1) != 0;
  s.n = prog_buf(p, s.x)->dim[s.axis];
  Dim k = prog_buf(p, lower_out(l, 0))->dim[s.axis];
  open_loops(p, &at, prog_buf(p, s.x)->dim, prog_buf(p, s.x)->rank, s.axis, s.var);
  bool some = dim_is_const(s.n) && k <= SOME && s.n >= OF * k;
  if (dim_is_const(k) && k > 0 && (k <= FEW || some))
    insert(l, &s, at, k);
  else
    sort(l, &s, at, k);
}
