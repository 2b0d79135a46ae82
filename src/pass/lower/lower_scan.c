/* lower_scan.c: argmax, argmin and cumulative sums: loops along a line that carry a value.
 *
 * For adjacent lines, vector lanes process as many lines at a time, each with its own extreme and
 * position.
 *
 * Elements are compared in their own type. NaN is larger than everything and -0 equals 0, as in the
 * reference evaluator.
 */
#include "pass/lower/lower.h"

/* ---- positions of extremes ---- */

/* Adjacent lines of a node. */
typedef struct ArgLines {
  Prog *p;
  BufId x, out;
  u32 axis, last_dim, lanes;
  bool keep, last, max;
  VarId var[MAX_RANK]; /* except along axis and last_dim */
} ArgLines;

/* Elements at position k of the lines from `first` on. */
static ExprId load_lines(const ArgLines *s, ExprId first, ExprId k) {
  ExprId idx[MAX_RANK];
  for (u32 i = 0; i < s->last_dim; i++) idx[i] = i == s->axis ? k : ex_at(s->p, s->var[i]);
  idx[s->last_dim] = first;
  return ex_load_vec(s->p, s->x, idx, s->last_dim + 1, s->lanes);
}

/* Finds one extreme per lane. With `first`, the lanes are adjacent lines from `first` on, each of
 * `count` elements. Without (0), one line of `count` vectors is searched. A better element replaces
 * the extreme, and so does an equal one if the last of equal elements is wanted. NaN is never
 * replaced. Stores the step of each extreme to `place`, and the extremes to `tops` if it exists. */
static void arg_lanes(const ArgLines *s, Cursor at, ExprId first, Dim count, BufId tops,
                      BufId place) {
  Prog *p = s->p;
  ExprId zero = ex_int(p, 0), to = ex_int(p, 0), also = ex_int(p, 0);
  BufId top = tile_registers(p, prog_buf(p, s->x)->dt, s->lanes, 1, 1, "top"),
        best = tile_registers(p, DT_i32, s->lanes, 1, 1, "best");
  ExprId start = load_lines(s, first ? ex_copy(p, first) : ex_int(p, 0), ex_int(p, 0));
  reg_store(p, &at, top, zero, zero, start);
  reg_store(p, &at, best, zero, zero, ex_splat(p, ex_const(p, DT_i32, (Scalar){0}), s->lanes));
  Cursor in = at;
  VarId k = prog_for(p, &in, ex_int(p, 1), ex_dim(p, count), "k");
  ExprId from = first ? ex_copy(p, first) : ex_op2(p, OP_mul, ex_var(p, k), ex_int(p, s->lanes));
  VarId v = tile_let(p, &in, load_lines(s, from, ex_var(p, k)), "v");
  Op worse = s->max ? (s->last ? OP_lt : OP_le) : (s->last ? OP_gt : OP_ge);
  ExprId here = ex_splat(p, ex_cast(p, DT_i32, ex_var(p, k), false), s->lanes);
  ExprId other = here;
  if (dtype_is_float(prog_buf(p, s->x)->dt)) {
    ExprId number = ex_op2(p, OP_eq, reg_load(p, top, zero, zero), reg_load(p, top, zero, zero));
    other = ex_op3(p, OP_select, number, here, reg_load(p, best, zero, zero));
  }
  ExprId stays = ex_op2(p, worse, ex_var(p, v), reg_load(p, top, zero, zero));
  ExprId old = reg_load(p, best, zero, zero);
  reg_store(p, &in, best, zero, zero, ex_op3(p, OP_select, stays, old, other));
  ExprId extreme = ex_op2(p, s->max ? OP_max : OP_min, reg_load(p, top, zero, zero), ex_var(p, v));
  reg_store(p, &in, top, zero, zero, extreme);
  prog_store(p, &at, place, &to, 1, reg_load(p, best, zero, zero));
  if (tops) prog_store(p, &at, tops, &also, 1, reg_load(p, top, zero, zero));
}

/* Positions of one vector of lines. */
static void arg_vector(const ArgLines *s, Cursor at, ExprId first, BufId place) {
  Prog *p = s->p;
  ExprId idx[MAX_RANK];
  u32 n = 0;
  arg_lanes(s, at, first, prog_buf(p, s->x)->dim[s->axis], 0, place);
  VarId lane = prog_for(p, &at, ex_int(p, 0), ex_int(p, s->lanes), "lane");
  for (u32 i = 0; i < s->last_dim; i++)
    if (i != s->axis || s->keep) idx[n++] = i == s->axis ? ex_int(p, 0) : ex_at(p, s->var[i]);
  idx[n++] = ex_op2(p, OP_add, first, ex_var(p, lane));
  prog_store(p, &at, s->out, idx, n, ex_cast(p, DT_i64, load_at(p, place, &lane), false));
}

/* Processes adjacent lines in vectors; false: not possible. The last vector overlaps the previous
 * one. */
static bool arg_vertical(Lower *l, Cursor at) {
  Prog *p = l->p;
  const Target *t = l->pass->target;
  const Buf *x = prog_buf(p, lower_in(l, 0));
  ArgLines s = {.p = p, .x = lower_in(l, 0), .out = lower_out(l, 0), .last_dim = x->rank - 1};
  s.axis = (u32)node_int(l->n, AT_axis, 0);
  s.keep = node_int(l->n, AT_keep, 0) != 0;
  s.last = node_int(l->n, AT_last, 0) != 0;
  s.max = l->n->op == OP_argmax;
  s.lanes = t->lanes;
  Dim n = x->dim[s.last_dim], count = x->dim[s.axis];
  if (t->lanes < 4 || s.axis == s.last_dim || !dim_is_const(n) || !dim_is_const(count) ||
      count > INT32_MAX || (x->dt != DT_f32 && x->dt != DT_i32))
    return false;
  while (s.lanes > 4 && s.lanes > n) s.lanes /= 2;
  if (s.lanes > n) return false;
  for (u32 i = 0; i < s.last_dim; i++)
    if (i != s.axis && prog_buf(p, s.x)->dim[i] != 1)
      s.var[i] = for_parallel(p, &at, ex_int(p, 0), ex_dim(p, prog_buf(p, s.x)->dim[i]), "i");
  Dim lanes = s.lanes;
  BufId place = prog_add_buf(p, BS_local, DT_i32, &lanes, 1, str_of(p->c, "place"));
  Cursor in = at;
  ExprId v = count_parallel(p, &in, n / s.lanes, "v");
  arg_vector(&s, in, ex_op2(p, OP_mul, v, ex_int(p, s.lanes)), place);
  if (n % s.lanes) arg_vector(&s, at, ex_int(p, n - s.lanes), place);
  return true;
}

/* Is v at position k better than `top` at `best`? Ties, including two NaN, are decided by position;
 * the first NaN always wins. */
static ExprId arg_better(Prog *p, bool max, bool last, VarId v, VarId k, VarId top, VarId best) {
  ExprId better = ex_op2(p, max ? OP_gt : OP_lt, ex_var(p, v), ex_var(p, top));
  ExprId is_later = ex_op2(p, last ? OP_gt : OP_lt, ex_var(p, k), ex_var(p, best));
  ExprId equal = ex_op2(p, OP_eq, ex_var(p, v), ex_var(p, top));
  better = ex_op2(p, OP_or, better, ex_op2(p, OP_and, equal, is_later));
  if (!dtype_is_float(prog_var(p, v)->dt)) return better;
  ExprId first = ex_op2(p, OP_lt, ex_var(p, k), ex_var(p, best));
  first = ex_op2(p, OP_or, ex_op1(p, OP_not, ex_op1(p, OP_isnan, ex_var(p, top))), first);
  first = ex_op2(p, OP_and, ex_op1(p, OP_isnan, ex_var(p, v)), first);
  return ex_op2(p, OP_or, better, first);
}

/* Finds extremes in the lanes of vectors along a line and reduces them to `top` and `best`. Returns
 * the number of elements seen; 0: vectors do not apply. */
static i64 arg_horizontal(Lower *l, Cursor *at, const VarId *var, VarId top, VarId best) {
  Prog *p = l->p;
  const Buf *x = prog_buf(p, lower_in(l, 0));
  ArgLines s = {.p = p, .x = lower_in(l, 0), .last_dim = x->rank - 1};
  Dim n = x->dim[s.last_dim], lanes = s.lanes = l->pass->target->lanes;
  if (lanes < 4 || (u32)node_int(l->n, AT_axis, 0) != s.last_dim || !dim_is_const(n) ||
      n < LIMIT_scan_vectors * lanes || n > INT32_MAX || (x->dt != DT_f32 && x->dt != DT_i32))
    return 0;
  DType dt = x->dt;
  s.axis = MAX_RANK;
  s.last = node_int(l->n, AT_last, 0) != 0;
  s.max = l->n->op == OP_argmax;
  for (u32 i = 0; i < s.last_dim; i++) s.var[i] = var[i];
  BufId tops = prog_add_buf(p, BS_local, dt, &lanes, 1, str_of(p->c, "tops")),
        place = prog_add_buf(p, BS_local, DT_i32, &lanes, 1, str_of(p->c, "place"));
  arg_lanes(&s, *at, 0, n / lanes, tops, place);
  Cursor in = *at;
  VarId lane = prog_for(p, &in, ex_int(p, 0), ex_int(p, lanes), "lane");
  VarId v = let_new(p, &in, "v", load_at(p, tops, &lane));
  ExprId turn = ex_cast(p, DT_i64, load_at(p, place, &lane), false);
  turn = ex_op2(p, OP_mul, turn, ex_int(p, lanes));
  VarId k = let_new(p, &in, "k", ex_op2(p, OP_add, turn, ex_var(p, lane)));
  prog_if(p, &in, arg_better(p, s.max, s.last, v, k, top, best));
  prog_set(p, &in, best, ex_var(p, k));
  prog_set(p, &in, top, ex_var(p, v));
  return n / lanes * lanes;
}

/* Remaining elements of a line from position `from` on, one by one. */
static void arg_rest(Lower *l, Cursor at, const VarId *var, VarId top, VarId best, i64 from) {
  Prog *p = l->p;
  BufId x = lower_in(l, 0);
  u32 axis = (u32)node_int(l->n, AT_axis, 0);
  bool last = node_int(l->n, AT_last, 0) != 0;
  if (prog_buf(p, x)->dim[axis] == from) return;
  VarId k = prog_for(p, &at, ex_int(p, from), ex_dim(p, prog_buf(p, x)->dim[axis]), "k");
  VarId v = let_new(p, &at, "v", key_at(p, x, var, axis, k));
  bool flt = dtype_is_float(prog_var(p, v)->dt), max = l->n->op == OP_argmax;
  ExprId better = ex_op2(p, max ? OP_gt : OP_lt, ex_var(p, v), ex_var(p, top));
  if (last) better = ex_op2(p, OP_or, better, ex_op2(p, OP_eq, ex_var(p, v), ex_var(p, top)));
  if (flt) { /* the first NaN always wins */
    ExprId first = ex_op1(p, OP_not, ex_op1(p, OP_isnan, ex_var(p, top)));
    first = ex_op2(p, OP_and, ex_op1(p, OP_isnan, ex_var(p, v)), first);
    better = ex_op2(p, OP_or, better, first);
  }
  prog_if(p, &at, better);
  prog_set(p, &at, best, ex_var(p, k));
  prog_set(p, &at, top, ex_var(p, v));
}

void lower_arg(Lower *l, Cursor at) {
  Prog *p = l->p;
  BufId x = lower_in(l, 0), out = lower_out(l, 0);
  u32 axis = (u32)node_int(l->n, AT_axis, 0), rank = prog_buf(p, x)->rank, n = 0;
  bool keep = node_int(l->n, AT_keep, 0) != 0;
  VarId var[MAX_RANK], to[MAX_RANK];
  if (arg_vertical(l, at)) return;
  open_loops(p, &at, prog_buf(p, x)->dim, rank, axis, var);
  VarId best = let_new(p, &at, "best", ex_int(p, 0));
  VarId top = let_new(p, &at, "top", key_at(p, x, var, axis, 0));
  i64 seen = arg_horizontal(l, &at, var, top, best);
  arg_rest(l, at, var, top, best, seen ? seen : 1);
  for (u32 i = 0; i < rank; i++)
    if (i != axis || keep) to[n++] = var[i];
  store_at(p, &at, out, to, ex_var(p, best));
}

void lower_pool_arg(Lower *l, Cursor at) {
  Prog *p = l->p;
  Form f;
  form_of(l->g, l->n, p, l->buf, &f);
  Nest x = {.l = l, .p = p, .f = &f, .at = at};
  u32 ns, rank = f.in[0].rank;
  node_list(l->n, AT_window, &ns);
  DType key = key_dtype(prog_buf(p, f.in[0].buf)->dt);
  nest_loops(&x, false, FORM_AXES);
  VarId best = let_new(p, &x.at, "best", ex_int(p, -1));
  VarId top = let_new(p, &x.at, "top", ex_const(p, key, scalar_identity(OP_max, key)));
  Cursor after = x.at;
  nest_loops(&x, true, FORM_AXES);
  VarId v = let_new(p, &x.at, "v", ex_cast(p, key, nest_load(&x, 0), false));
  ExprId none = ex_op2(p, OP_lt, ex_var(p, best), ex_int(p, 0));
  prog_if(p, &x.at, ex_op2(p, OP_or, none, ex_before(p, v, top, true)));
  ExprId here = ex_int(p, 0);
  for (u32 i = rank - ns; i < rank; i++) {
    here = ex_op2(p, OP_mul, here, ex_dim(p, prog_buf(p, f.in[0].buf)->dim[i]));
    here = ex_op2(p, OP_add, here, nest_index(&x, &f.in[0], i));
  }
  prog_set(p, &x.at, best, here);
  prog_set(p, &x.at, top, ex_var(p, v));
  x.at = after;
  nest_store(&x, ex_op2(p, OP_max, ex_var(p, best), ex_int(p, 0)));
}

/* ---- cumulative sums ---- */

typedef struct CumLines {
  Prog *p;
  BufId x, out;
  u32 axis, last_dim, lanes;
  Op op;
  bool exclusive, reverse;
  VarId var[MAX_RANK]; /* except along axis and last_dim */
} CumLines;

/* One vector of adjacent lines from `first` on. */
static void cum_vector(const CumLines *s, Cursor at, ExprId first) {
  Prog *p = s->p;
  DType dt = prog_buf(p, s->x)->dt;
  Dim n = prog_buf(p, s->x)->dim[s->axis];
  u32 rank = s->last_dim + 1;
  ExprId zero = ex_int(p, 0), from[MAX_RANK], to[MAX_RANK];
  BufId acc = tile_registers(p, dt, s->lanes, 1, 1, "acc");
  ExprId start = ex_const(p, dt, scalar_identity(s->op, dt));
  reg_store(p, &at, acc, zero, zero, s->lanes > 1 ? ex_splat(p, start, s->lanes) : start);
  VarId k = prog_for(p, &at, ex_int(p, 0), ex_dim(p, n), "k");
  if (s->reverse) {
    ExprId last = ex_op2(p, OP_sub, ex_dim(p, n), ex_int(p, 1));
    k = let_new(p, &at, "r", ex_op2(p, OP_sub, last, ex_var(p, k)));
  }
  for (u32 i = 0; i < s->last_dim; i++) {
    from[i] = i == s->axis ? ex_var(p, k) : ex_at(p, s->var[i]);
    to[i] = i == s->axis ? ex_var(p, k) : ex_at(p, s->var[i]);
  }
  from[s->last_dim] = ex_copy(p, first);
  to[s->last_dim] = first;
  VarId next = tile_let(
      p, &at,
      ex_op2(p, s->op, reg_load(p, acc, zero, zero), ex_load_vec(p, s->x, from, rank, s->lanes)),
      "next");
  ExprId value = s->exclusive ? reg_load(p, acc, zero, zero) : ex_var(p, next);
  prog_store(p, &at, s->out, to, rank, value);
  reg_store(p, &at, acc, zero, zero, ex_var(p, next));
}

/* Processes adjacent lines in vectors; false: not possible. The remainder uses narrower vectors,
 * not overlapping ones, because the result may be in place. */
static bool cum_vertical(Lower *l, Cursor at) {
  Prog *p = l->p;
  const Buf *x = prog_buf(p, lower_in(l, 0));
  CumLines s = {.p = p, .x = lower_in(l, 0), .out = lower_out(l, 0), .last_dim = x->rank - 1};
  s.op = op_reducer(l->n->op);
  s.axis = (u32)node_int(l->n, AT_axis, 0);
  s.exclusive = node_int(l->n, AT_exclusive, 0) != 0;
  s.reverse = node_int(l->n, AT_reverse, 0) != 0;
  s.lanes = l->pass->target->lanes;
  Dim n = x->dim[s.last_dim];
  if (s.lanes < 4 || s.axis == s.last_dim || !dim_is_const(n) || n < s.lanes || x->dt != DT_f32)
    return false;
  for (u32 i = 0; i < s.last_dim; i++)
    if (i != s.axis && prog_buf(p, s.x)->dim[i] != 1)
      s.var[i] = for_parallel(p, &at, ex_int(p, 0), ex_dim(p, prog_buf(p, s.x)->dim[i]), "i");
  for (i64 done = 0; done < n;) {
    i64 count = (n - done) / s.lanes;
    if (count) {
      Cursor in = at;
      ExprId v = ex_op2(p, OP_mul, count_parallel(p, &in, count, "v"), ex_int(p, s.lanes));
      cum_vector(&s, in, ex_op2(p, OP_add, v, ex_int(p, done)));
      done += count * s.lanes;
    }
    s.lanes = s.lanes > 4 ? s.lanes / 2 : 1; /* lanes of the remainder */
  }
  return true;
}

void lower_cum(Lower *l, Cursor at) {
  Prog *p = l->p;
  BufId x = lower_in(l, 0), out = lower_out(l, 0);
  DType dt = prog_buf(p, x)->dt, acc_dt = dtype_is_float(dt) ? dtype_acc(dt) : dt;
  Op op = op_reducer(l->n->op);
  u32 axis = (u32)node_int(l->n, AT_axis, 0);
  Dim n = prog_buf(p, x)->dim[axis];
  bool exclusive = node_int(l->n, AT_exclusive, 0) != 0,
       reverse = node_int(l->n, AT_reverse, 0) != 0;
  VarId var[MAX_RANK];
  if (acc_dt == dt && cum_vertical(l, at)) return;
  open_loops(p, &at, prog_buf(p, x)->dim, prog_buf(p, x)->rank, axis, var);
  VarId acc = let_new(p, &at, "acc", ex_const(p, acc_dt, scalar_identity(op, dt)));
  var[axis] = prog_for(p, &at, ex_int(p, 0), ex_dim(p, n), "k");
  if (reverse) {
    ExprId last = ex_op2(p, OP_sub, ex_dim(p, n), ex_int(p, 1));
    var[axis] = let_new(p, &at, "r", ex_op2(p, OP_sub, last, ex_var(p, var[axis])));
  }
  ExprId next = ex_cast(p, acc_dt, load_at(p, x, var), false);
  next = ex_op2(p, reduce_op(op, dt), ex_var(p, acc), next);
  if (!exclusive) prog_set(p, &at, acc, next);
  store_at(p, &at, out, var, ex_finish(p, dt, ex_var(p, acc)));
  if (exclusive) prog_set(p, &at, acc, next);
}
