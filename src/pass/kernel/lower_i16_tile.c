/* lower_i16_tile.c: int8 matmul and convolution on microcontrollers (family i16).
 *
 * In: the plan of lower_i16.c. Out: register tiles of dot products, each with its epilogue.
 *
 * A tile of rows and columns keeps its sums and the operands of one step in the 13 registers of
 * Thumb. The weights of its columns are interleaved, so that one pointer serves all columns, and
 * rows have constant distances, so that one pointer serves all rows. A target with dot_i16x2 adds
 * two products at a time: widen_i8x2 takes pairs of weights out of a 32-bit word.
 *
 * Rows are stored as int16 first, a block of them for all columns. If the windows of neighboring
 * rows overlap along axis `slide` (the width of a convolution), a block holds one image row: for
 * each position along that axis, the elements that windows read there. A window is then contiguous,
 * and every element is stored once instead of once for each window (im2col). The reduction runs
 * along that axis first. Else a block holds the rows of one tile.
 *
 * A tile reads up to three elements after its row, because weights are padded to whole steps. Their
 * weights are zero, and elements after the last row are zeroed.
 */
#include "pass/kernel/i16.h"

typedef struct TileWriter {
  Lower *l;
  Prog *p;
  const Form *f;
  const I16Plan *s;
  Nest outer; /* loops outside of blocks */
  BufId rows, matrix;
  ExprId row0; /* first row of the block; 0: row 0 */
  i64 length;  /* elements stored per position along `slide`, or per row */
} TileWriter;

/* A tile of rows of the block. */
typedef struct RowTile {
  i64 from, rows;
  i64 step;  /* elements of the reduction per iteration, a multiple of TILE_STEP */
  VarId var; /* number of the tile; 0: only one */
} RowTile;

/* The index of operand x that both the row axis and a reduction axis move, if windows overlap along
 * it and only it depends on the row. */
static const Index *sliding(const Lower *l, const Form *f, const I16Plan *s, u32 *dim) {
  const Index *found = NULL;
  const Operand *o = &f->in[s->x];
  for (u32 d = 0; d < o->rank && s->row < FORM_AXES; d++) {
    const Index *ix = &o->idx[d];
    if (!index_moves(ix, s->row)) continue;
    if (found || ix->n != 2 || ix->base || ix->stretch) return NULL;
    u32 k = ix->axis[0] == s->row;
    const Axis *window = &f->axis[ix->axis[k]];
    if (!window->reduce || window->lo || window->hi < 2 || ix->coef[k] != 1 ||
        ix->coef[1 - k] < 1 || ix->coef[1 - k] >= window->hi ||
        !dim_is_const(prog_buf(l->p, o->buf)->dim[d]))
      return NULL;
    found = ix;
    *dim = d;
  }
  for (u32 d = 0; found && d < o->rank; d++)
    if (&o->idx[d] != found && index_moves(&o->idx[d], found->axis[found->axis[0] == s->row]))
      return NULL;
  return found;
}

/* Positions along `slide` that n rows read; without it, n rows. */
static i64 positions(const Form *f, const I16Plan *s, i64 n) {
  return s->slide < FORM_AXES ? (n - 1) * s->stride + f->axis[s->slide].hi : n;
}

void i16_tile_plan(const Lower *l, const Form *f, I16Plan *s) {
  const Tensor *w = prog_buf(l->p, prog_root(l->p, f->in[s->w].buf))->data;
  u32 dim;
  s->micro = true;
  s->pairs = l->pass->target->has & CAP_dot_i16x2 && i16_byte_type(w) == DT_i8;
  s->padded = (s->sum + TILE_STEP - 1) / TILE_STEP * TILE_STEP;
  i64 one = s->pairs ? LIMIT_micro_cols_pairs : LIMIT_micro_cols_one;
  s->tile_cols = i16_part(s->cols, s->rows == 1 ? one : LIMIT_micro_cols);
  s->block_rows = s->rows < LIMIT_micro_rows ? s->rows : LIMIT_micro_rows;
  s->block_cols = s->cols;
  s->stride = 1;
  const Index *ix = sliding(l, f, s, &dim);
  if (!ix) return;
  u32 k = ix->axis[0] == s->row;
  s->slide = ix->axis[k];
  s->stride = ix->coef[1 - k];
  i64 length = s->sum / f->axis[s->slide].hi;
  if (positions(f, s, s->rows) * length * 2 <= LIMIT_micro_row_bytes)
    s->block_rows = s->rows;
  else
    s->slide = FORM_AXES;
}

/* a * by + b; variable 0 counts as 0, expression 0 as 0 */
static ExprId scaled(Prog *p, VarId a, i64 by, ExprId b) {
  if (!a) return b ? b : ex_int(p, 0);
  ExprId e = ex_op2(p, OP_mul, ex_var(p, a), ex_int(p, by));
  return b ? ex_op2(p, OP_add, e, b) : e;
}

/* row0 + b */
static ExprId row_at(const TileWriter *w, ExprId b) {
  return w->row0 ? ex_op2(w->p, OP_add, ex_copy(w->p, w->row0), b) : b;
}

/* Linear index along the reduction axes except `slide`. */
static ExprId linear(Nest *x, u32 slide) {
  Prog *p = x->p;
  ExprId k = 0;
  for (u32 i = 0; i < x->f->naxes; i++) {
    if (!x->f->axis[i].reduce || i == slide) continue;
    ExprId v = ex_at(p, x->var[i]);
    if (k) k = ex_op2(p, OP_mul, k, ex_int(p, x->f->axis[i].hi));
    k = k ? ex_op2(p, OP_add, k, v) : v;
  }
  return k ? k : ex_int(p, 0);
}

static void zero(TileWriter *w, Cursor at, i64 from, i64 to) {
  Prog *p = w->p;
  if (from >= to) return;
  VarId k = prog_for(p, &at, ex_int(p, from), ex_int(p, to), "k");
  prog_store(p, &at, w->rows, (ExprId[]){ex_var(p, k)}, 1, ex_const(p, DT_i16, (Scalar){0}));
}

/* Stores n rows from row0 on. Where windows leave the image along `slide`, the range is constant,
 * because the block is a whole image row; along other axes, loops are clipped. */
static void fill_rows(TileWriter *w, Cursor at, i64 n) {
  Prog *p = w->p;
  const I16Plan *s = w->s;
  u32 dim = 0;
  bool slides = s->slide < FORM_AXES;
  i64 all = positions(w->f, s, n), lo = 0, hi = all, end = all * w->length;
  const Index *ix = slides ? sliding(w->l, w->f, s, &dim) : NULL;
  ExprId sub[FORM_AXES] = {0};
  Nest x = w->outer;
  x.at = at;
  if (ix) {
    i64 extent = prog_buf(p, w->f->in[s->x].buf)->dim[dim];
    if (ix->guard & GUARD_low && ix->shift < 0) lo = -ix->shift < all ? -ix->shift : all;
    if (ix->guard & GUARD_high && extent - ix->shift < hi) hi = extent - ix->shift;
    if (hi < lo) hi = lo;
    zero(w, x.at, 0, lo * w->length);
    zero(w, x.at, hi * w->length, end);
  }
  zero(w, x.at, end, end + s->padded - s->sum);
  if (hi == lo) return; /* every window lies in the padding */
  VarId q = 0;
  if (!slides && s->guarded && s->row < FORM_AXES) { /* bounds depend on the row */
    q = x.var[s->row] = prog_for(p, &x.at, row_at(w, ex_int(p, 0)), row_at(w, ex_int(p, n)), "j");
    if (w->row0) q = let_new(p, &x.at, "r", ex_op2(p, OP_sub, ex_var(p, q), ex_copy(p, w->row0)));
  }
  ExprId edge = nest_at_edge(&x, s->slide);
  if (edge) {
    Cursor in = x.at;
    prog_if(p, &in, edge);
    VarId k =
        prog_for(p, &in, ex_int(p, 0), ex_int(p, slides ? (hi - lo) * w->length : s->sum), "k");
    ExprId to = slides ? ex_op2(p, OP_add, ex_var(p, k), ex_int(p, lo * w->length))
                       : scaled(p, q, w->length, ex_var(p, k));
    prog_store(p, &in, w->rows, &to, 1, ex_const(p, DT_i16, (Scalar){0}));
  }
  i16_copy_loops(&x, s->slide);
  if (slides || !q) {
    if (hi - lo > 1) {
      q = prog_for(p, &x.at, ex_int(p, lo), ex_int(p, hi), "q");
      if (!slides) prog_stmt(p, x.at.owner)->flags |= LF_unroll;
    }
    if (slides)
      sub[s->slide] = q ? ex_var(p, q) : ex_int(p, lo);
    else if (s->row < FORM_AXES)
      sub[s->row] = row_at(w, ex_at(p, q));
    if (slides) sub[s->row] = ex_int(p, 0);
    x.sub = sub;
  }
  ExprId to = scaled(p, q, w->length, linear(&x, s->slide));
  if (!q && lo) to = ex_op2(p, OP_add, to, ex_int(p, lo * w->length));
  prog_store(p, &x.at, w->rows, &to, 1, ex_cast(p, DT_i16, nest_load(&x, s->x), false));
}

/* Runs the epilogue of one result. */
static void finish(TileWriter *w, Cursor *at, ExprId row, ExprId col, ExprId sum) {
  ExprId sub[FORM_AXES] = {0};
  Nest x = w->outer;
  x.at = *at;
  if (w->s->row < FORM_AXES) sub[w->s->row] = row_at(w, row);
  sub[w->s->col] = col;
  x.sub = sub;
  nest_store(&x, nest_finish(&x, ex_finish(w->p, w->f->dt, sum)));
}

/* Number of a tile of columns among all weights. */
static ExprId matrix_row(const TileWriter *w, VarId tile) {
  Prog *p = w->p;
  u32 axis[FORM_AXES], n = i16_weight_order(w->f, w->s, axis);
  ExprId e = 0;
  for (u32 i = 0; i < n && axis[i] != w->s->col; i++) {
    ExprId v = ex_at(p, w->outer.var[axis[i]]);
    if (e) e = ex_op2(p, OP_mul, e, ex_int(p, i16_extent(w->f, axis[i])));
    e = e ? ex_op2(p, OP_add, e, v) : v;
  }
  if (!e) return ex_at(p, tile);
  e = ex_op2(p, OP_mul, e, ex_int(p, w->s->cols / w->s->tile_cols));
  return ex_op2(p, OP_add, e, ex_at(p, tile));
}

/* Element j of step k of a row of the tile, or of two elements from there on. */
static ExprId row_load(const TileWriter *w, const RowTile *t, i64 row, VarId k, i64 j) {
  Prog *p = w->p;
  i64 apart = w->length * w->s->stride;
  ExprId at = scaled(p, k, t->step, ex_int(p, (t->from + row) * apart + j));
  if (t->var) at = scaled(p, t->var, t->rows * apart, at);
  if (!w->s->pairs) return ex_cast(p, DT_i32, ex_load(p, w->rows, &at, 1), false);
  return ex_quad(p, ex_load_vec(p, w->rows, &at, 1, 2));
}

/* Element j of step k of a column of the tile, or four elements of one word. */
static ExprId col_load(const TileWriter *w, const RowTile *t, VarId col_tile, i64 col, VarId k,
                       i64 j) {
  Prog *p = w->p;
  i64 cols = w->s->tile_cols, in = (j / TILE_STEP * cols + col) * TILE_STEP + j % TILE_STEP;
  ExprId place = scaled(p, k, t->step * cols, ex_int(p, in));
  ExprId idx[2] = {matrix_row(w, col_tile), place};
  if (!w->s->pairs) return ex_cast(p, DT_i32, ex_load(p, w->matrix, idx, 2), false);
  return ex_quad(p, ex_load_vec(p, w->matrix, idx, 2, 4));
}

/* Element j of a column, or pair j / 2 from its word. */
static VarId let_col(const TileWriter *w, Cursor *at, const RowTile *t, VarId word, VarId col_tile,
                     i64 c, VarId k, i64 j) {
  Prog *p = w->p;
  if (!w->s->pairs) return let_new(p, at, "y", col_load(w, t, col_tile, c, k, j));
  ExprId odd = ex_const(p, DT_i32, (Scalar){.i = j / 2 % 2});
  return let_new(p, at, "y", ex_op2(p, OP_widen_i8x2, ex_var(p, word), odd));
}

static void add_product(const TileWriter *w, Cursor *at, VarId acc, VarId x, VarId y) {
  Prog *p = w->p;
  ExprId one = ex_var(p, x), other = ex_var(p, y), sum = ex_var(p, acc);
  sum = w->s->pairs ? ex_op3(p, OP_dot_i16x2, one, other, sum)
                    : ex_op2(p, OP_add, sum, ex_op2(p, OP_mul, one, other));
  prog_set(p, at, acc, sum);
}

/* Adds TILE_STEP products, from element j0 of iteration k on, to every sum. Loads are in the order
 * that needs the fewest registers, which gcc keeps. */
static void add_step(TileWriter *w, Cursor *at, const VarId *acc, const RowTile *t, VarId col_tile,
                     VarId k, i64 j0) {
  Prog *p = w->p;
  bool pairs = w->s->pairs;
  i64 cols = w->s->tile_cols, each = pairs ? 2 : 1;
  VarId word[LIMIT_micro_cols_one] = {0}, y[LIMIT_micro_cols_one], x[TILE_STEP];
  if (t->rows == 1 && pairs) {
    for (i64 j = 0; j < TILE_STEP; j += each)
      x[j] = let_new(p, at, "x", row_load(w, t, 0, k, j0 + j));
    for (i64 c = 0; c < cols; c++) {
      VarId of = let_new(p, at, "w", col_load(w, t, col_tile, c, k, j0));
      for (i64 j = 0; j < TILE_STEP; j += each)
        add_product(w, at, acc[c], x[j], let_col(w, at, t, of, col_tile, c, k, j0 + j));
    }
    return;
  }
  for (i64 c = 0; pairs && c < cols; c++)
    word[c] = let_new(p, at, "w", col_load(w, t, col_tile, c, k, j0));
  for (i64 j = j0; j < j0 + TILE_STEP; j += each) {
    for (i64 c = 0; t->rows > 1 && c < cols; c++)
      y[c] = let_col(w, at, t, word[c], col_tile, c, k, j);
    for (i64 r = 0; r < t->rows; r++) {
      VarId v = let_new(p, at, "x", row_load(w, t, r, k, j));
      for (i64 c = 0; c < cols; c++) {
        if (t->rows == 1) y[c] = let_col(w, at, t, word[c], col_tile, c, k, j);
        add_product(w, at, acc[r * cols + c], v, y[c]);
      }
    }
  }
}

/* Computes `count` tiles of rows, for all columns. */
static void write_tiles(TileWriter *w, Cursor at, RowTile t, i64 count) {
  Prog *p = w->p;
  i64 cols = w->s->tile_cols, unroll = t.rows == 1 && w->s->padded % (2 * TILE_STEP) == 0 ? 2 : 1;
  VarId acc[LIMIT_micro_rows * LIMIT_micro_cols_one], n = 0, k;
  if (w->s->cols > cols) n = prog_for(p, &at, ex_int(p, 0), ex_int(p, w->s->cols / cols), "n");
  if (count > 1) t.var = prog_for(p, &at, ex_int(p, 0), ex_int(p, count), "m");
  for (i64 i = 0; i < t.rows * cols; i++)
    acc[i] = let_new(p, &at, "acc", ex_const(p, DT_i32, (Scalar){0}));
  Cursor in = at;
  t.step = unroll * TILE_STEP;
  k = prog_for(p, &in, ex_int(p, 0), ex_int(p, w->s->padded / t.step), "k");
  for (i64 i = 0; i < unroll; i++) add_step(w, &in, acc, &t, n, k, i * TILE_STEP);
  for (i64 i = 0; i < t.rows * cols; i++)
    finish(w, &at, scaled(p, t.var, t.rows, ex_int(p, t.from + i / cols)),
           scaled(p, n, cols, ex_int(p, i % cols)), ex_var(p, acc[i]));
}

/* Rows that fill no whole tile; a single one is computed with a part of the last tile, because a
 * tile of one row loads the weights for it alone. */
static i64 rows_left(const I16Plan *s) {
  i64 rest = s->rows % LIMIT_micro_rows;
  return rest == 1 && s->rows > LIMIT_micro_rows ? LIMIT_micro_rows + 1 : rest;
}

void i16_tile_write(Lower *l, Cursor at, const Form *f, const I16Plan *s) {
  Prog *p = l->p;
  TileWriter w = {.l = l, .p = p, .f = f, .s = s, .outer = {.l = l, .p = p, .f = f, .at = at}};
  bool slides = s->slide < FORM_AXES;
  i64 rest = rows_left(s), count = (s->rows - rest) / LIMIT_micro_rows;
  for (u32 i = 0; i < f->naxes; i++)
    if (!f->axis[i].reduce && i != s->row && i != s->col) nest_loop(&w.outer, i);
  at = w.outer.at;
  w.length = slides ? s->sum / f->axis[s->slide].hi : s->sum;
  Dim elements = positions(f, s, s->block_rows) * w.length + s->padded - s->sum;
  w.rows = prog_add_buf(p, BS_local, DT_i16, &elements, 1, str_of(p->c, "i16"));
  w.matrix = i16_weights(l, f, s);
  if (slides) fill_rows(&w, at, s->rows);
  if (count) {
    Cursor in = at;
    VarId block = 0;
    if (!slides && count > 1) block = for_parallel(p, &in, ex_int(p, 0), ex_int(p, count), "i");
    w.row0 = block ? scaled(p, block, LIMIT_micro_rows, 0) : 0;
    if (!slides) fill_rows(&w, in, LIMIT_micro_rows);
    write_tiles(&w, in, (RowTile){.rows = LIMIT_micro_rows}, slides ? count : 1);
  }
  for (i64 from = s->rows - rest, n; from < s->rows; from += n) {
    n = s->rows - from > LIMIT_micro_rows ? LIMIT_micro_rows - 1 : s->rows - from;
    w.row0 = slides || !from ? 0 : ex_int(p, from);
    if (!slides) fill_rows(&w, at, n);
    write_tiles(&w, at, (RowTile){.from = slides ? from : 0, .rows = n}, 1);
  }
}
