/* lower_index.c: operators whose indices are data: gather, scatter, nonzero.
 *
 * Negative indices count from the end. A gather clamps indices that are out of range, so every load
 * is in bounds. A scatter skips them with an `if`. Updates of a scatter run sequentially in
 * row-major order, because two may have the same target.
 */
#include "pass/lower/lower.h"

/* Loads the index at var and makes it non-negative. */
static VarId read_index(Prog *p, Cursor *at, BufId idx, const VarId *var, Dim extent) {
  VarId raw = let_new(p, at, "raw", ex_cast(p, DT_i64, load_at(p, idx, var), false));
  ExprId neg = ex_op2(p, OP_lt, ex_var(p, raw), ex_int(p, 0));
  ExprId from_end = ex_op2(p, OP_add, ex_var(p, raw), ex_dim(p, extent));
  return let_new(p, at, "pos", ex_op3(p, OP_select, neg, from_end, ex_var(p, raw)));
}

/* Loads an index of the current gather and clamps it. */
static VarId read_clamped(Lower *l, Cursor *at, const VarId *var, Dim extent) {
  Prog *p = l->p;
  BufId idx = lower_in(l, 1);
  if (index_is_certain(l->g, l->n->in[1], extent))
    return let_new(p, at, "pick", ex_cast(p, DT_i64, load_at(p, idx, var), false));
  VarId pos = read_index(p, at, idx, var, extent);
  ExprId last = ex_op2(p, OP_sub, ex_dim(p, extent), ex_int(p, 1));
  ExprId e = ex_op2(p, OP_min, ex_var(p, pos), last);
  return let_new(p, at, "pick", ex_op2(p, OP_max, e, ex_int(p, 0)));
}

static ExprId in_range(Prog *p, VarId pos, Dim extent) {
  ExprId low = ex_op2(p, OP_ge, ex_var(p, pos), ex_int(p, 0));
  return ex_op2(p, OP_and, low, ex_op2(p, OP_lt, ex_var(p, pos), ex_dim(p, extent)));
}

/* ---- gathers ---- */

static void note(Lower *l, Family f, u32 lanes) {
  kernel_record(l->p, l->at.last, (KernelRecord){.family = f, .tile.lanes = lanes > 1 ? lanes : 0});
}

/* Gather along an axis after channel blocks: copies a block at a time. */
static void gather_blocks(Lower *l, Cursor at, const Layout *y) {
  Prog *p = l->p;
  BufId x = lower_in(l, 0), out = lower_out(l, 0);
  u32 axis = (u32)node_int(l->n, AT_axis, 0), rank = prog_buf(p, out)->rank, n = rank, m = rank;
  Dim dim[MAX_RANK];
  VarId var[MAX_RANK];
  ExprId from[MAX_RANK + 1], to[MAX_RANK + 1];
  for (u32 i = 0; i < rank; i++) dim[i] = prog_buf(p, out)->dim[i];
  dim[1] = (dim[1] + y->block - 1) / y->block;
  note(l, FA_gather_rows, y->block);
  open_loops(p, &at, dim, rank, MAX_RANK, var);
  VarId pick = read_clamped(l, &at, var + axis, prog_buf(p, x)->dim[axis]);
  for (u32 i = 0; i < rank; i++) {
    from[i] = i == axis ? ex_var(p, pick) : ex_at(p, var[i]);
    to[i] = ex_at(p, var[i]);
  }
  from[1] = ex_op2(p, OP_mul, from[1], ex_int(p, y->block));
  to[1] = ex_op2(p, OP_mul, to[1], ex_int(p, y->block));
  storage_address(l, &x, from, &n, &(InnerVars){0});
  storage_address(l, &out, to, &m, &(InnerVars){0});
  prog_store(p, &at, out, to, m, ex_load_vec(p, x, from, n, y->block));
}

/* A gather along rows with constant indices: each vector of the result is a shuffle of one vector
 * of the operand. */
typedef struct Picks {
  i64 n, extent; /* elements of the result row, of the operand row */
  i64 *from;     /* by position: index, non-negative and in range */
  u32 lanes;
  bool whole; /* vectors of the operand start at multiples of the lanes, as they were stored */
} Picks;

enum { MAX_RUNS = 8 }; /* limit of statements per row */

static bool has_vectors(const Lower *l, BufId x) {
  return l->pass->target && l->pass->target->lanes >= 4 && l->pass->aim != AIM_size &&
         prog_buf(l->p, x)->dt == DT_f32;
}

static i64 picks_base(const Picks *q, i64 first) {
  i64 least = q->from[first];
  for (i64 i = first; i < first + q->lanes; i++)
    if (q->from[i] < least) least = q->from[i];
  if (q->whole && q->lanes > 1) least -= least % q->lanes;
  return least + q->lanes > q->extent ? q->extent - q->lanes : least;
}

/* Do the vectors at a and b select the same lanes, each from one vector? */
static bool picks_agree(const Picks *q, i64 a, i64 b) {
  i64 from = picks_base(q, a), other = picks_base(q, b);
  for (i64 i = 0; i < q->lanes; i++)
    if (q->from[a + i] - from != q->from[b + i] - other || q->from[a + i] - from >= q->lanes)
      return false;
  return true;
}

/* Number of vectors from position i on with the same selection, at equal distances in the
 * operand. */
static i64 picks_run(const Picks *q, i64 i, i64 *step) {
  i64 count = 1;
  *step = 0;
  for (i64 k = i + q->lanes; k + q->lanes <= q->n && picks_agree(q, i, k); k += q->lanes) {
    i64 more = picks_base(q, k) - picks_base(q, k - q->lanes);
    if (count == 1) *step = more;
    if (more != *step || more < 0) break;
    count++;
  }
  return count;
}

/* First position of the next run; the last vector ends with the row. */
static i64 picks_next(const Picks *q, i64 i, i64 count) {
  i += count * q->lanes;
  return i < q->n && i + q->lanes > q->n ? q->n - q->lanes : i;
}

static bool picks_are_few(const Picks *q) {
  i64 step, runs = 0;
  for (i64 i = 0; i < q->n; i = picks_next(q, i, picks_run(q, i, &step)))
    if (++runs > MAX_RUNS || !picks_agree(q, i, i)) return false;
  return true;
}

static bool picks_find(Lower *l, Picks *q) {
  Prog *p = l->p;
  const Buf *x = prog_buf(p, lower_in(l, 0)), *idx = prog_buf(p, lower_in(l, 1));
  const Tensor *t = graph_const(l->g, l->n->in[1]);
  u32 axis = (u32)node_int(l->n, AT_axis, 0);
  if (!has_vectors(l, lower_in(l, 0)) || !t || idx->rank != 1 || axis + 1 != x->rank ||
      !dim_is_const(x->dim[axis]))
    return false;
  *q = (Picks){(i64)t->n, x->dim[axis], NEWS(&l->c->scratch, i64, t->n), l->pass->target->lanes,
               true};
  while (q->lanes > 4 && (q->lanes > q->extent || q->lanes > q->n)) q->lanes /= 2;
  if (q->lanes > q->extent || q->lanes > q->n) return false;
  for (i64 i = 0; i < q->n; i++) {
    i64 raw = tensor_get(t, (u64)i).i, pos = raw < 0 ? raw + q->extent : raw;
    q->from[i] = pos >= q->extent ? q->extent - 1 : pos < 0 ? 0 : pos;
  }
  if (picks_are_few(q)) return true;
  q->whole = false;
  return picks_are_few(q);
}

/* Stores at `to` a shuffle of the vector at `from`, with the selection of position `first`. */
static void store_picks(Lower *l, Cursor *at, const Picks *q, const VarId *var, i64 first,
                        ExprId from, ExprId to) {
  Prog *p = l->p;
  BufId x = lower_in(l, 0), out = lower_out(l, 0);
  u32 rank = prog_buf(p, x)->rank;
  ExprId src[MAX_RANK], dst[MAX_RANK];
  u8 *pick = NEWS(&p->c->keep, u8, q->lanes);
  for (u32 i = 0; i < q->lanes; i++) pick[i] = (u8)(q->from[first + i] - picks_base(q, first));
  for (u32 i = 0; i + 1 < rank; i++) {
    src[i] = ex_at(p, var[i]);
    dst[i] = ex_at(p, var[i]);
  }
  src[rank - 1] = from;
  dst[rank - 1] = to;
  ExprId v = ex_load_vec(p, x, src, rank, q->lanes);
  prog_store(p, at, out, dst, rank, ex_shuffle(p, v, 0, pick, q->lanes));
}

static void gather_lines(Lower *l, Cursor at, const Picks *q) {
  Prog *p = l->p;
  note(l, FA_shuffle, q->lanes);
  u32 rank = prog_buf(p, lower_out(l, 0))->rank;
  VarId var[MAX_RANK];
  open_loops(p, &at, prog_buf(p, lower_out(l, 0))->dim, rank - 1, MAX_RANK, var);
  i64 step, count;
  for (i64 i = 0; i < q->n; i = picks_next(q, i, count)) {
    i64 base = picks_base(q, i);
    count = picks_run(q, i, &step);
    Cursor in = at;
    ExprId v = count_parallel(p, &in, count, "v");
    ExprId from = ex_op2(p, OP_mul, ex_copy(p, v), ex_int(p, step));
    ExprId to = ex_op2(p, OP_mul, v, ex_int(p, q->lanes));
    store_picks(l, &in, q, var, i, ex_op2(p, OP_add, from, ex_int(p, base)),
                ex_op2(p, OP_add, to, ex_int(p, i)));
  }
}

/* Copies the last dimension of x at `from` to that of out at `to`; short rows are copied inline. */
static void copy_line(Lower *l, Cursor at, BufId x, const VarId *from, BufId out, const VarId *to) {
  Prog *p = l->p;
  u32 lanes = l->pass->target->lanes, n = prog_buf(p, x)->rank, m = prog_buf(p, out)->rank;
  i64 done = 0, extent = prog_buf(p, x)->dim[n - 1];
  for (u32 next; done < extent; lanes = next) {
    next = lanes > 4 ? lanes / 2 : 1;
    i64 count = (extent - done) / lanes;
    ExprId src[MAX_RANK], dst[MAX_RANK];
    Cursor in = at;
    if (!count) continue;
    ExprId v = count_parallel(p, &in, count, "v");
    for (u32 i = 0; i + 1 < n; i++) src[i] = ex_at(p, from[i]);
    for (u32 i = 0; i + 1 < m; i++) dst[i] = ex_at(p, to[i]);
    v = ex_op2(p, OP_add, ex_op2(p, OP_mul, v, ex_int(p, lanes)), ex_int(p, done));
    src[n - 1] = v;
    dst[m - 1] = ex_copy(p, v);
    prog_store(p, &in, out, dst, m,
               lanes > 1 ? ex_load_vec(p, x, src, n, lanes) : ex_load(p, x, src, n));
    done += count * lanes;
  }
}

void lower_gather(Lower *l, Cursor at) {
  Prog *p = l->p;
  BufId x = lower_in(l, 0), idx = lower_in(l, 1), out = lower_out(l, 0);
  const Layout *y = layout_of(l, x);
  Picks q;
  if (y) {
    gather_blocks(l, at, y);
    return;
  }
  if (picks_find(l, &q)) {
    gather_lines(l, at, &q);
    return;
  }
  u32 axis = (u32)node_int(l->n, AT_axis, 0), nidx = prog_buf(p, idx)->rank;
  u32 rank = prog_buf(p, x)->rank, split = axis + nidx;
  VarId var[MAX_RANK], from[MAX_RANK];
  const Dim *dim = prog_buf(p, out)->dim;
  open_loops(p, &at, dim, split, MAX_RANK, var);
  VarId pick = read_clamped(l, &at, var + axis, prog_buf(p, x)->dim[axis]);
  bool line = axis + 1 < rank && has_vectors(l, x) && dim_is_const(prog_buf(p, x)->dim[rank - 1]);
  note(l, line ? FA_gather_rows : FA_indexed, line ? l->pass->target->lanes : 1);
  open_loops(p, &at, dim + split, prog_buf(p, out)->rank - split - line, MAX_RANK, var + split);
  for (u32 i = 0; i < rank; i++) from[i] = i < axis ? var[i] : i == axis ? pick : var[i - 1 + nidx];
  if (line)
    copy_line(l, at, x, from, out, var);
  else
    store_at(p, &at, out, var, load_at(p, x, from));
}

void lower_gather_elems(Lower *l, Cursor at) {
  Prog *p = l->p;
  BufId x = lower_in(l, 0), idx = lower_in(l, 1), out = lower_out(l, 0);
  u32 axis = (u32)node_int(l->n, AT_axis, 0), rank = prog_buf(p, x)->rank;
  VarId var[MAX_RANK], from[MAX_RANK];
  open_loops(p, &at, prog_buf(p, idx)->dim, rank, MAX_RANK, var);
  VarId pick = read_clamped(l, &at, var, prog_buf(p, x)->dim[axis]);
  for (u32 i = 0; i < rank; i++) from[i] = i == axis ? pick : var[i];
  store_at(p, &at, out, var, load_at(p, x, from));
}

/* Variable that holds constant k. */
static VarId number(Prog *p, Cursor *at, u32 k) {
  return k ? let_new(p, at, "c", ex_int(p, k)) : 0;
}

void lower_gather_nd(Lower *l, Cursor at) {
  Prog *p = l->p;
  BufId x = lower_in(l, 0), idx = lower_in(l, 1), out = lower_out(l, 0);
  u32 batch = (u32)node_int(l->n, AT_batch, 0), nrow = prog_buf(p, idx)->rank - 1;
  u32 depth = (u32)prog_buf(p, idx)->dim[nrow], rank = prog_buf(p, x)->rank;
  VarId var[2 * MAX_RANK], from[MAX_RANK], coord[MAX_RANK];
  const Dim *dim = prog_buf(p, out)->dim;
  open_loops(p, &at, dim, nrow, MAX_RANK, var);
  for (u32 i = 0; i < nrow; i++) coord[i] = var[i];
  for (u32 i = 0; i < batch; i++) from[i] = var[i];
  for (u32 k = 0; k < depth; k++) {
    coord[nrow] = number(p, &at, k);
    from[batch + k] = read_clamped(l, &at, coord, prog_buf(p, x)->dim[batch + k]);
  }
  open_loops(p, &at, dim + nrow, prog_buf(p, out)->rank - nrow, MAX_RANK, var + nrow);
  for (u32 i = batch + depth; i < rank; i++) from[i] = var[nrow + i - batch - depth];
  store_at(p, &at, out, var, load_at(p, x, from));
}

/* ---- scatters ---- */

/* How an update combines with the old element; OP_COUNT: replaces it. */
static Op update_op(Lower *l, DType dt) {
  Str s = node_attr(l->n, AT_reduce)->u.s;
  if (str_is(l->c, s, "none")) return OP_COUNT;
  Op op = reduce_op(op_from_name(str_text(l->c, s), str_len(l->c, s)), dt);
  if (!op_accepts(op, dt))
    fail(l->c, ERR_unsupported, l->n->loc, "%s: reduction %s does not take elements of type %s",
         op_info[l->n->op].name, op_info[op].name, dtype_info[dt].name);
  return op;
}

static void update(Lower *l, Cursor *at, const VarId *to, const VarId *from) {
  Prog *p = l->p;
  BufId out = lower_out(l, 0);
  Op op = update_op(l, prog_buf(p, out)->dt);
  ExprId value = load_at(p, lower_in(l, 2), from);
  if (op != OP_COUNT) value = ex_op2(p, op, load_at(p, out, to), value);
  store_at(p, at, out, to, value);
}

static void copy_operand(Lower *l, Cursor at) {
  Form f;
  if (lower_in(l, 0) == lower_out(l, 0)) return; /* state updated in place */
  form_copy(l->p, lower_in(l, 0), lower_out(l, 0), &f);
  lower_form(l, at, &f);
}

void lower_scatter_elems(Lower *l, Cursor at) {
  Prog *p = l->p;
  BufId idx = lower_in(l, 1);
  u32 axis = (u32)node_int(l->n, AT_axis, 0), rank = prog_buf(p, idx)->rank;
  Dim extent = prog_buf(p, lower_out(l, 0))->dim[axis];
  VarId var[MAX_RANK], to[MAX_RANK];
  copy_operand(l, at);
  open_ordered(p, &at, prog_buf(p, idx)->dim, rank, var);
  VarId pos = read_index(p, &at, idx, var, extent);
  prog_if(p, &at, in_range(p, pos, extent));
  for (u32 i = 0; i < rank; i++) to[i] = i == axis ? pos : var[i];
  update(l, &at, to, var);
}

void lower_scatter_nd(Lower *l, Cursor at) {
  Prog *p = l->p;
  BufId idx = lower_in(l, 1), u = lower_in(l, 2), out = lower_out(l, 0);
  u32 nrow = prog_buf(p, idx)->rank - 1, depth = (u32)prog_buf(p, idx)->dim[nrow];
  u32 rank = prog_buf(p, out)->rank;
  VarId var[2 * MAX_RANK], to[MAX_RANK], coord[MAX_RANK];
  copy_operand(l, at);
  const Dim *dim = prog_buf(p, u)->dim;
  open_ordered(p, &at, dim, nrow, var);
  for (u32 i = 0; i < nrow; i++) coord[i] = var[i];
  for (u32 k = 0; k < depth; k++) {
    Dim extent = prog_buf(p, out)->dim[k];
    coord[nrow] = number(p, &at, k);
    to[k] = read_index(p, &at, idx, coord, extent);
    prog_if(p, &at, in_range(p, to[k], extent));
  }
  open_ordered(p, &at, dim + nrow, prog_buf(p, u)->rank - nrow, var + nrow);
  for (u32 i = depth; i < rank; i++) to[i] = var[nrow + i - depth];
  update(l, &at, to, var);
}

/* ---- nonzero ---- */

static ExprId is_nonzero(Prog *p, BufId x, const VarId *var) {
  DType dt = prog_buf(p, x)->dt;
  Scalar zero = {.i = 0};
  if (dt == DT_f8e8m0)
    return ex_cast(p, DT_bool, load_at(p, x, var), false); /* the type has no zero */
  if (dtype_is_float(dt)) zero.f = 0;
  return ex_op2(p, OP_ne, load_at(p, x, var), ex_const(p, dt, zero));
}

/* Counts in a first pass and stores in a second, because rows of the result are as long as the
 * count. */
void lower_nonzero(Lower *l, Cursor at) {
  Prog *p = l->p;
  BufId x = lower_in(l, 0), out = lower_out(l, 0);
  u32 rank = prog_buf(p, x)->rank;
  VarId var[MAX_RANK];
  VarId count = let_new(p, &at, "count", ex_int(p, 0));
  Cursor in = at;
  open_ordered(p, &in, prog_buf(p, x)->dim, rank, var);
  ExprId one = ex_cast(p, DT_i64, is_nonzero(p, x, var), false);
  prog_set(p, &in, count, ex_op2(p, OP_add, ex_var(p, count), one));
  if (l->n->nsym) prog_set(p, &at, prog_sym_var(p, l->n->sym[0]), ex_var(p, count));
  prog_set(p, &at, count, ex_int(p, 0));
  open_ordered(p, &at, prog_buf(p, x)->dim, rank, var);
  prog_if(p, &at, is_nonzero(p, x, var));
  for (u32 i = 0; i < rank; i++) {
    ExprId idx[2] = {ex_int(p, i), ex_var(p, count)};
    prog_store(p, &at, out, idx, 2, ex_at(p, var[i]));
  }
  prog_set(p, &at, count, ex_op2(p, OP_add, ex_var(p, count), ex_int(p, 1)));
}
