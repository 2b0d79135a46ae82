/* lower_i16.c: int8 matmul and convolution on targets without vectors (family i16).
 *
 * In: a form that sums products of int8 with constant int8, for scalar loops. Out: blocks of
 * results, each a dot product along one long axis made of all reduction axes.
 *
 * Both factors are stored along that axis. The constant is reordered at compile time and stays
 * int8. The rows of the other factor that a block needs are stored as int16, once for all columns
 * (im2col, a few points at a time), with zeros where a window leaves the image. Tiles of rows and
 * columns run along the reduction together, so that bytes are widened once for several rows.
 *
 * The sum is u32, which equals the integer sum modulo 2^32. In this shape C compilers find pmaddwd,
 * which every x86-64 has. For a row of accumulators they generate more instructions than for
 * floats. The sums of a block are stored. The epilogue runs in a loop along the contiguous axis of
 * the result, which C compilers vectorize too.
 *
 * Rows are points of the result that share the constant factor. Columns share the other one.
 *
 * The family is used for generated C only: engines that run loops element by element are faster
 * along a row of results. Small kernels are left alone, because rows need memory, which is scarce
 * where models are small.
 */
#include "pass/kernel/i16.h"

enum {
  SUM_STEP = 16, /* lengths are a multiple of this, so that vectorized loops have no remainder */
  BLOCK = 16,    /* contiguous results: a vector of int8 */
};

i64 i16_extent(const Form *f, u32 axis) {
  return f->axis[axis].hi - f->axis[axis].lo;
}

static bool is_open(const Form *f, u32 axis) {
  return !dim_is_const(f->axis[axis].hi) || f->axis[axis].lo;
}

/* Returns the 8-bit type that holds all elements; DT_none: there is none. */
DType i16_byte_type(const Tensor *t) {
  i64 lo = 0, hi = 0;
  for (u64 i = 0; i < t->n; i++) {
    i64 x = tensor_get(t, i).i;
    lo = x < lo ? x : lo;
    hi = x > hi ? x : hi;
  }
  return lo >= INT8_MIN && hi <= INT8_MAX ? DT_i8 : !lo && hi <= UINT8_MAX ? DT_u8 : DT_none;
}

/* Is operand k a constant of int8 whose elements are all used? */
static bool is_weights(const Lower *l, const Form *f, u32 k) {
  const Operand *o = &f->in[k];
  const Buf *b = prog_buf(l->p, prog_root(l->p, o->buf));
  if (b->space != BS_const || !b->data || !b->data->data || b->data->rank != o->rank) return false;
  if (!dtype_is_int(b->dt) || layout_of(l, o->buf) || is_inlined(l, o->buf)) return false;
  for (u32 d = 0; d < o->rank; d++) {
    const Index *ix = &o->idx[d];
    if (ix->base || ix->shift || ix->guard || ix->stretch || ix->dilation > 1) return false;
  }
  for (u32 i = 0; i < f->naxes; i++)
    if (operand_moves(o, i) && is_open(f, i)) return false;
  return i16_byte_type(b->data) != DT_none;
}

bool i16_fits(const Lower *l, const Form *f, u32 k) {
  BufId b = f->in[k].buf;
  const Storage *s = storage_of(l, b);
  i64 zero = 0;
  for (u32 d = 0; d < f->in[k].rank; d++)
    if (f->in[k].idx[d].dilation > 1 || f->in[k].idx[d].stretch) return false;
  if (s->kind != SK_inlined) return dtype_bytes(prog_buf(l->p, b)->dt) == 1;
  Val q = graph_narrow(l->g, s->value, &zero);
  return q && dtype_bytes(graph_type(l->g, q)->dt) == 1 && zero >= -UINT8_MAX && zero <= UINT8_MAX;
}

/* Is the result contiguous along the axis? */
static bool lies_along(const Lower *l, const Form *f, u32 axis) {
  const Operand *o = &f->out;
  for (u32 d = o->rank; axis < FORM_AXES && d-- > 0;) {
    if (index_moves(&o->idx[d], axis)) return o->idx[d].n == 1 && o->idx[d].coef[0] == 1;
    if (prog_buf(l->p, o->buf)->dim[d] != 1) return false;
  }
  return false;
}

/* Finds the axes; false if the form has no rows and columns. Takes the last axis of each kind with
 * more than a few points; the others become outer loops. */
static bool find_axes(const Form *f, I16Plan *s) {
  s->row = s->col = FORM_AXES;
  s->sum = 1;
  for (u32 i = 0; i < f->naxes; i++) {
    bool w = operand_moves(&f->in[s->w], i), x = operand_moves(&f->in[s->x], i);
    if (f->axis[i].reduce) {
      if (is_open(f, i) || (!w && f->axis[i].hi != 1)) return false;
      s->sum *= f->axis[i].hi;
      s->guarded = s->guarded || form_guard(f, i, NULL);
    } else if (w && !x && (is_open(f, i) || f->axis[i].hi != 1)) {
      if (s->col < FORM_AXES && i16_extent(f, s->col) >= i16_extent(f, i)) continue;
      s->col = i;
    } else if (x && !w && !is_open(f, i) && f->axis[i].hi > 1) {
      if (s->row < FORM_AXES && f->axis[i].hi < 4 && f->axis[s->row].hi >= f->axis[i].hi) continue;
      s->row = i;
    }
  }
  return s->col < FORM_AXES;
}

/* Halves `most` until it divides n. */
i64 i16_part(i64 n, i64 most) {
  while (n % most) most /= 2;
  return most;
}

static void find_blocks(const Lower *l, const Form *f, I16Plan *s) {
  s->rows = s->row < FORM_AXES ? f->axis[s->row].hi : 1;
  s->cols = f->axis[s->col].hi;
  s->slide = FORM_AXES;
  s->tile_cols = 1;
  if (l->pass->target->micro) {
    i16_tile_plan(l, f, s);
    return;
  }
  s->padded = (s->sum + SUM_STEP - 1) / SUM_STEP * SUM_STEP;
  s->by_rows = lies_along(l, f, s->row);
  s->block_rows = s->by_rows ? BLOCK : 4;
  while (s->block_rows > 4 && s->block_rows * s->padded * 2 > LIMIT_i16_row_bytes)
    s->block_rows /= 2;
  if (s->block_rows > s->rows) s->block_rows = s->rows;
  s->block_cols = s->by_rows ? i16_part(s->cols, 2) : s->cols < BLOCK ? s->cols : BLOCK;
}

bool i16_plan(const Lower *l, const Form *f, I16Plan *s) {
  const PassCtx *u = l->pass;
  if (u->target->lanes >= 4 || !u->for_c || u->aim != AIM_time || !f->reduce) return false;
  if (f->nin != 2 || f->body != FB_op || f->op != OP_mul || f->with != OP_add || f->acc != DT_i32 ||
      f->init.i || f->from.buf)
    return false;
  for (u32 k = 0; k < 2; k++) {
    *s = (I16Plan){.w = k, .x = 1 - k};
    if (!is_weights(l, f, k) || !i16_fits(l, f, 1 - k) || !find_axes(f, s)) continue;
    find_blocks(l, f, s);
    i64 around = 1, added = s->padded - s->sum;
    for (u32 i = 0; i < f->naxes; i++)
      if (!f->axis[i].reduce && !is_open(f, i) && i != s->row && i != s->col)
        around *= i16_extent(f, i);
    i64 products = s->micro ? LIMIT_micro_products : LIMIT_i16_products;
    if (s->cols < (s->micro ? 2 : LIMIT_i16_columns) || s->sum < LIMIT_i16_sum) continue;
    if (s->sum * s->cols * s->rows < products / around) continue;
    if (added > s->sum / 3 && added * s->cols > LIMIT_i16_padding) continue;
    return true;
  }
  return false;
}

bool i16_choose(Lower *l, const Form *f, KernelChoice *r) {
  I16Plan s;
  if (!i16_plan(l, f, &s)) return false;
  r->family = FA_i16;
  r->size = str_fmt(l->c, "%lldx%lld dot products of %lld", (long long)s.block_rows,
                    (long long)s.block_cols, (long long)s.sum);
  return true;
}

/* ---- weights ---- */

/* Order in which the weights are stored: reduction axes last. */
u32 i16_weight_order(const Form *f, const I16Plan *s, u32 *axis) {
  u32 n = 0;
  for (u32 i = 0; i < f->naxes; i++)
    if (!f->axis[i].reduce && i != s->col && operand_moves(&f->in[s->w], i)) axis[n++] = i;
  axis[n++] = s->col;
  if (s->slide < FORM_AXES) axis[n++] = s->slide;
  for (u32 i = 0; i < f->naxes; i++)
    if (f->axis[i].reduce && i != s->slide) axis[n++] = i;
  return n;
}

/* Offset in the tensor of the element at these axis values. */
static u64 place_of(const Operand *o, const Tensor *t, const i64 *at) {
  i64 place = 0;
  for (u32 d = 0; d < o->rank; d++) {
    i64 i = 0;
    for (u32 k = 0; k < o->idx[d].n; k++) i += o->idx[d].coef[k] * at[o->idx[d].axis[k]];
    place = place * t->dim[d] + i;
  }
  return (u64)place;
}

/* Offset of element k of a row of weights. A tile stores TILE_STEP elements of each of its rows,
 * then the next ones; for 16-bit pairs, elements 1 and 2 are exchanged. */
static u64 weight_place(const I16Plan *s, u64 row, u64 k) {
  static const u8 exchanged[TILE_STEP] = {0, 2, 1, 3};
  u64 tile = (u64)s->tile_cols, padded = (u64)s->padded, in = k % TILE_STEP;
  if (tile == 1 && !s->pairs) return row * padded + k;
  if (s->pairs) in = exchanged[in];
  return row / tile * tile * padded + (k / TILE_STEP * tile + row % tile) * TILE_STEP + in;
}

BufId i16_weights(Lower *l, const Form *f, const I16Plan *s) {
  const Operand *o = &f->in[s->w];
  const Tensor *t = prog_buf(l->p, prog_root(l->p, o->buf))->data;
  u32 axis[FORM_AXES], n = i16_weight_order(f, s, axis);
  i64 key[5 + FORM_AXES + 5 * MAX_RANK] = {ON_i16, o->buf, s->tile_cols, s->padded, s->pairs},
                              at[FORM_AXES] = {0}, rows = 1;
  u32 nkey = 5, d;
  for (u32 i = 0; i < n; i++) key[nkey++] = axis[i] * (i64)(1 << 16) + i16_extent(f, axis[i]);
  for (d = 0; d < o->rank; d++)
    for (u32 k = 0; k < o->idx[d].n; k++) {
      key[nkey++] = o->idx[d].axis[k];
      key[nkey++] = o->idx[d].coef[k];
    }
  u32 *known = map_put_bytes(&l->once, key, nkey * sizeof *key);
  if (*known) return *known;
  for (u32 i = 0; i < n; i++)
    if (!f->axis[axis[i]].reduce) rows *= i16_extent(f, axis[i]);
  i64 tile = s->tile_cols;
  Tensor *to = tensor_new(&l->c->keep, i16_byte_type(t), (i64[]){rows / tile, s->padded * tile}, 2);
  for (u64 i = 0; i < (u64)(rows * s->sum); i++) {
    u64 row = i / (u64)s->sum, k = i % (u64)s->sum;
    tensor_set(to, weight_place(s, row, k), tensor_get(t, place_of(o, t, at)));
    for (d = n; d > 0 && ++at[axis[d - 1]] == i16_extent(f, axis[d - 1]); d--) at[axis[d - 1]] = 0;
  }
  *known = prog_add_const(l->p, to, prog_buf(l->p, o->buf)->name);
  return *known;
}

typedef struct I16Writer {
  Lower *l;
  Prog *p;
  const Form *f;
  const I16Plan *s;
  Nest outer; /* loops outside of blocks */
  BufId i16, sums, matrix;
  i64 rows, cols;           /* size of a block in this part */
  i64 tile_rows, tile_cols; /* size of tiles in it */
  i64 first_col;            /* first column of the part */
  ExprId row0;              /* first row of the block */
  VarId col_block;          /* number of the block of columns; 0: only one */
} I16Writer;

/* a * by + b; variable 0 counts as 0 */
static ExprId at_block(Prog *p, VarId a, i64 by, ExprId b) {
  if (!a) return b;
  ExprId e = ex_op2(p, OP_mul, ex_var(p, a), ex_int(p, by));
  return b ? ex_op2(p, OP_add, e, b) : e;
}

/* Opens a loop over n points; none if n is 1. */
static VarId loop_over(Prog *p, Cursor *at, i64 n, const char *name) {
  return n > 1 ? prog_for(p, at, ex_int(p, 0), ex_int(p, n), name) : 0;
}

static ExprId value_of(Prog *p, VarId v) {
  return v ? ex_var(p, v) : ex_int(p, 0);
}

static ExprId block_row(const I16Writer *w) {
  return w->row0 ? ex_copy(w->p, w->row0) : ex_int(w->p, 0);
}

void i16_copy_loops(Nest *x, u32 but) {
  for (u32 i = 0; i < x->f->naxes; i++) {
    if (!x->f->axis[i].reduce || i == but) continue;
    nest_loop(x, i);
    if (x->var[i]) prog_stmt(x->p, x->at.owner)->role = RO_none;
  }
}

/* Stores the rows of the block as int16. Reduction loops are clipped where windows leave the image,
 * which requires the row to be a loop variable. */
static void fill_rows(I16Writer *w, Cursor at) {
  Prog *p = w->p;
  const I16Plan *s = w->s;
  Nest x = w->outer;
  x.at = at;
  ExprId in_block = ex_int(p, 0);
  if (s->row < FORM_AXES) {
    ExprId end = ex_op2(p, OP_add, block_row(w), ex_int(p, w->rows));
    x.var[s->row] = prog_for(p, &x.at, block_row(w), end, "j");
    in_block = ex_op2(p, OP_sub, ex_var(p, x.var[s->row]), block_row(w));
  }
  i64 from = s->guarded ? 0 : s->sum;
  if (from < s->padded) {
    Cursor zero = x.at;
    VarId k = prog_for(p, &zero, ex_int(p, from), ex_int(p, s->padded), "k");
    prog_store(p, &zero, w->i16, (ExprId[]){ex_copy(p, in_block), ex_var(p, k)}, 2,
               ex_const(p, DT_i16, (Scalar){0}));
  }
  i16_copy_loops(&x, FORM_AXES);
  ExprId k = 0;
  for (u32 i = 0; i < w->f->naxes; i++) {
    if (!w->f->axis[i].reduce) continue;
    ExprId v = value_of(p, x.var[i]);
    if (k) k = ex_op2(p, OP_mul, k, ex_int(p, w->f->axis[i].hi));
    k = k ? ex_op2(p, OP_add, k, v) : v;
  }
  prog_store(p, &x.at, w->i16, (ExprId[]){in_block, k}, 2,
             ex_cast(p, DT_i16, nest_load(&x, s->x), false));
}

VarId i16_dot_loop(Prog *p, Cursor *at, i64 n) {
  VarId k = prog_for(p, at, ex_int(p, 0), ex_int(p, n), "k");
  prog_stmt(p, at->owner)->flags |= LF_dot16_loop;
  return k;
}

void i16_dot_add(Prog *p, Cursor *at, VarId acc, ExprId word, ExprId byte) {
  ExprId one = ex_cast(p, DT_i32, word, false), other = ex_cast(p, DT_i32, byte, false);
  ExprId product = ex_cast(p, DT_u32, ex_op2(p, OP_mul, one, other), false);
  prog_set(p, at, acc, ex_op2(p, OP_add, ex_var(p, acc), product));
}

/* Number of a column of the block among all columns. */
static ExprId column(const I16Writer *w, ExprId in_block) {
  ExprId col = at_block(w->p, w->col_block, w->cols, in_block);
  return w->first_col ? ex_op2(w->p, OP_add, col, ex_int(w->p, w->first_col)) : col;
}

/* Row of the weight matrix for column c of the tile. */
static ExprId matrix_row(const I16Writer *w, VarId tile, i64 c) {
  Prog *p = w->p;
  u32 axis[FORM_AXES], n = i16_weight_order(w->f, w->s, axis);
  ExprId e = 0;
  for (u32 i = 0; i < n && axis[i] != w->s->col; i++) {
    ExprId v = value_of(p, w->outer.var[axis[i]]);
    if (e) e = ex_op2(p, OP_mul, e, ex_int(p, i16_extent(w->f, axis[i])));
    e = e ? ex_op2(p, OP_add, e, v) : v;
  }
  ExprId col = column(w, at_block(p, tile, w->tile_cols, ex_int(p, c)));
  if (!e) return col;
  return ex_op2(p, OP_add, ex_op2(p, OP_mul, e, ex_int(p, w->s->cols)), col);
}

/* Accumulates a tile into the sums of the block. */
static void write_tile(I16Writer *w, Cursor at, VarId row_tile, VarId col_tile) {
  Prog *p = w->p;
  VarId acc[16];
  i64 rows = w->tile_rows, cols = w->tile_cols;
  for (i64 i = 0; i < rows * cols; i++)
    acc[i] = let_new(p, &at, "acc", ex_const(p, DT_u32, (Scalar){0}));
  Cursor in = at;
  VarId k = i16_dot_loop(p, &in, w->s->padded);
  for (i64 i = 0; i < rows * cols; i++) {
    ExprId row = at_block(p, row_tile, rows, ex_int(p, i / cols)),
           col = matrix_row(w, col_tile, i % cols);
    ExprId word = ex_load(p, w->i16, (ExprId[]){row, ex_var(p, k)}, 2),
           byte = ex_load(p, w->matrix, (ExprId[]){col, ex_var(p, k)}, 2);
    i16_dot_add(p, &in, acc[i], word, byte);
  }
  for (i64 i = 0; i < rows * cols; i++) {
    ExprId row = at_block(p, row_tile, rows, ex_int(p, i / cols)),
           col = at_block(p, col_tile, cols, ex_int(p, i % cols));
    ExprId idx[2] = {w->s->by_rows ? col : row, w->s->by_rows ? row : col};
    prog_store(p, &at, w->sums, idx, 2, ex_cast(p, DT_i32, ex_var(p, acc[i]), false));
  }
}

/* Runs the epilogue of a block along the contiguous axis of the result. */
static void finish_block(I16Writer *w, Cursor at) {
  Prog *p = w->p;
  const I16Plan *s = w->s;
  ExprId sub[FORM_AXES] = {0};
  Nest x = w->outer;
  x.at = at;
  i64 n[2] = {s->by_rows ? w->cols : w->rows, s->by_rows ? w->rows : w->cols};
  VarId v[2];
  for (u32 i = 0; i < 2; i++) v[i] = loop_over(p, &x.at, n[i], i ? "p" : "o");
  VarId row = v[s->by_rows], col = v[!s->by_rows];
  if (s->row < FORM_AXES) sub[s->row] = ex_op2(p, OP_add, block_row(w), value_of(p, row));
  sub[s->col] = column(w, value_of(p, col));
  x.sub = sub;
  ExprId sum = ex_load(p, w->sums, (ExprId[]){value_of(p, v[0]), value_of(p, v[1])}, 2);
  nest_store(&x, nest_finish(&x, ex_finish(p, w->f->dt, sum)));
}

/* Writes `count` blocks of `cols` columns from column `from` on, for the rows stored before. */
static void write_columns(I16Writer *w, Cursor at, i64 from, i64 cols, i64 count) {
  Prog *p = w->p;
  w->first_col = from;
  w->cols = cols;
  w->tile_cols = i16_part(cols, w->tile_rows > 1 ? 2 : 4);
  w->col_block = loop_over(p, &at, count, "l");
  Cursor tile = at;
  VarId row_tile = loop_over(p, &tile, w->rows / w->tile_rows, "m");
  VarId col_tile = loop_over(p, &tile, cols / w->tile_cols, "n");
  write_tile(w, tile, row_tile, col_tile);
  finish_block(w, at);
}

/* Writes `count` blocks of `rows` rows from row `from` on. */
static void write_blocks(I16Writer *w, i64 from, i64 rows, i64 count) {
  Prog *p = w->p;
  const I16Plan *s = w->s;
  Cursor at = w->outer.at;
  w->rows = rows;
  w->tile_rows = i16_part(rows, 4);
  VarId block = count > 1 ? for_parallel(p, &at, ex_int(p, 0), ex_int(p, count), "i") : 0;
  w->row0 = at_block(p, block, rows, from ? ex_int(p, from) : 0);
  fill_rows(w, at);
  i64 rest = s->cols % s->block_cols;
  write_columns(w, at, 0, s->block_cols, s->cols / s->block_cols);
  if (rest) write_columns(w, at, s->cols - rest, rest, 1);
}

void i16_write(Lower *l, Cursor at, const Form *f, KernelChoice *r) {
  Prog *p = l->p;
  I16Plan s;
  (void)r;
  if (!i16_plan(l, f, &s)) internal_error(l->c, LOC_NONE, "the form does not fit the family i16");
  if (s.micro) {
    i16_tile_write(l, at, f, &s);
    return;
  }
  I16Writer w = {.l = l, .p = p, .f = f, .s = &s, .outer = {.l = l, .p = p, .f = f, .at = at}};
  for (u32 i = 0; i < f->naxes; i++)
    if (!f->axis[i].reduce && i != s.row && i != s.col) nest_loop(&w.outer, i);
  Dim wd[2] = {s.block_rows, s.padded};
  Dim sd[2] = {s.by_rows ? s.block_cols : s.block_rows, s.by_rows ? s.block_rows : s.block_cols};
  w.i16 = prog_add_buf(p, BS_local, DT_i16, wd, 2, str_of(p->c, "i16"));
  w.sums = prog_add_buf(p, BS_local, DT_i32, sd, 2, str_of(p->c, "sums"));
  w.matrix = i16_weights(l, f, &s);
  i64 whole = s.rows / s.block_rows, rest = s.rows % s.block_rows;
  write_blocks(&w, 0, s.block_rows, whole);
  if (rest) write_blocks(&w, s.rows - rest, rest, 1);
}
