/* mmq_loops.c: int8 matmul with quantized weights on targets without vectors.
 *
 * In: the form of matmul_quant with int8 x. Out: scalar loops. The innermost one runs along LANES
 * results whose weights are interleaved byte by byte. A reduction step unpacks a few elements once
 * for all rows of x of a tile, and adds their products to a row of sums. After the 32 elements of a
 * unit the sums are scaled and added in f32.
 *
 * C compilers vectorize such loops, so sums are as narrow as possible. They are int16 if those of a
 * unit fit; intermediate wraparound is harmless. Otherwise they are int32, and products are added
 * in int16 first as far as they fit. 8-bit elements are stored along the unit in C, so that
 * compilers find pmaddwd (lower_i16.c); scaling runs along results there too.
 *
 * A result adds its units in order, independent of the tile, so rows of x give the same bits one by
 * one or together. Formats with 5 to 7 bits or groups below 32 elements, and f32 x, are left to
 * lower_mmq.c.
 */
#include "pass/kernel/mmq.h"
#include "pass/kernel/tile.h"

/* Results per panel (too many for C compilers to unroll), rows of x in a tile, and bytes or
 * elements per step. Pointers to weights and the x values must fit in registers, which are few on
 * small machines. */
enum { LANES = 32, X_MOST = 127 };
typedef struct MmqLoops {
  Lower *l;
  Prog *p;
  const Form *f;
  MmqPanels q;
  BufId x, by, sum;  /* operands: int8, scales, sums; sum 0: none */
  BufId sums, acc;   /* tile [rows, LANES] */
  BufId words;       /* x of a unit, i16[rows, QBLOCK_X], if weights are stored along the unit */
  DType sum_dt;      /* type of sums */
  u32 together;      /* products whose sum fits in int16 */
  i64 first;         /* first result of the panels */
  ExprId panel, row; /* current panel; first row of x */
  u32 rows;          /* rows of the tile */
} MmqLoops;

static ExprId operand(const MmqLoops *b, BufId from, u32 i, ExprId at) {
  Prog *p = b->p;
  InnerVars inner = {0};
  ExprId idx[MAX_RANK + 1] = {ex_op2(p, OP_add, ex_copy(p, b->row), ex_int(p, i)), at};
  u32 n = 2;
  storage_address(b->l, &from, idx, &n, &inner);
  return ex_load(p, from, idx, n);
}

static ExprId weight(const MmqLoops *b, BufId from, ExprId step, ExprId at, VarId lane) {
  Prog *p = b->p;
  ExprId idx[5] = {ex_copy(p, b->panel), step, at, ex_int(p, 0), ex_var(p, lane)};
  return ex_load(p, from, idx, 5);
}

static ExprId of_tile(const MmqLoops *b, BufId from, u32 i, VarId lane) {
  ExprId idx[2] = {ex_int(b->p, i), ex_var(b->p, lane)};
  return ex_load(b->p, from, idx, 2);
}

static void to_tile(const MmqLoops *b, Cursor *at, BufId to, u32 i, VarId lane, ExprId value) {
  ExprId idx[2] = {ex_int(b->p, i), ex_var(b->p, lane)};
  prog_store(b->p, at, to, idx, 2, value);
}

static VarId along_lanes(const MmqLoops *b, Cursor *at) {
  return prog_for(b->p, at, ex_int(b->p, 0), ex_int(b->p, b->q.lanes), "v");
}

/* ---- a unit of 32 elements ---- */

/* Initializes the sums with the correction for unsigned weights. */
static void begin_unit(const MmqLoops *b, Cursor in, ExprId unit) {
  Prog *p = b->p;
  VarId first[LIMIT_mmq_rows];
  for (u32 i = 0; i < b->rows; i++) {
    ExprId e = ex_const(p, DT_i32, (Scalar){.i = -b->q.less});
    if (b->q.less)
      e = ex_op2(p, OP_mul, ex_cast(p, DT_i32, operand(b, b->sum, i, ex_copy(p, unit)), false), e);
    first[i] = let_new(p, &in, "less", ex_cast(p, b->sum_dt, e, false));
  }
  VarId v = along_lanes(b, &in);
  for (u32 i = 0; i < b->rows; i++) to_tile(b, &in, b->sums, i, v, ex_var(p, first[i]));
}

/* Index of element e of a step, from byte `first` of the unit on. A byte has two 4-bit elements;
 * the lower halves of all bytes come first. */
static ExprId step_element(const MmqLoops *b, ExprId first, u32 e, u32 bytes) {
  u32 upper = e / bytes * unit_bytes(&b->q);
  return ex_op2(b->p, OP_add, ex_copy(b->p, first), ex_int(b->p, e % bytes + upper));
}

/* Weight e of a step; `byte` holds its bytes. */
static ExprId step_weight(const MmqLoops *b, const VarId *byte, u32 e, u32 bytes) {
  Prog *p = b->p;
  ExprId w = ex_var(p, byte[e % bytes]);
  if (unit_bytes(&b->q) < QBLOCK_X)
    w = e < bytes ? ex_op2(p, OP_and, w, ex_const(p, DT_u8, (Scalar){.i = 15}))
                  : ex_op2(p, OP_shr, w, ex_const(p, DT_u8, (Scalar){.i = 4}));
  return ex_cast(p, DT_i16, w, false);
}

/* Returns sum + the products of a step. Products are added in int16 while that cannot overflow. */
static ExprId add_products(const MmqLoops *b, ExprId sum, const VarId *x, const VarId *byte, u32 n,
                           u32 bytes) {
  Prog *p = b->p;
  u32 most = b->sum_dt == DT_i16 ? 1 : b->together;
  for (u32 e = 0; e < n;) {
    ExprId part = 0;
    for (u32 k = 0; k < most && e < n; k++, e++) {
      ExprId one = ex_op2(p, OP_mul, step_weight(b, byte, e, bytes), ex_var(p, x[e]));
      part = part ? ex_op2(p, OP_add, part, one) : one;
    }
    sum = ex_op2(p, OP_add, sum, ex_cast(p, b->sum_dt, part, false));
  }
  return sum;
}

static void add_unit(const MmqLoops *b, Cursor in, ExprId unit) {
  Prog *p = b->p;
  u32 all = unit_bytes(&b->q),
      n = b->rows > 1 ? LIMIT_mmq_step_tile : LIMIT_mmq_step_bytes * QBLOCK_X / all;
  u32 bytes = n * all / QBLOCK_X;
  VarId x[LIMIT_mmq_rows][LIMIT_mmq_step_most], byte[LIMIT_mmq_step_bytes];
  ExprId first = ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_int(p, all / bytes), "k"));
  first = ex_op2(p, OP_mul, first, ex_int(p, bytes));
  for (u32 i = 0; i < b->rows; i++)
    for (u32 e = 0; e < n; e++) {
      ExprId at = mmq_plus(p, unit, QBLOCK_X, step_element(b, first, e, bytes));
      x[i][e] = let_new(p, &in, "x", ex_cast(p, DT_i16, operand(b, b->x, i, at), false));
    }
  VarId v = along_lanes(b, &in);
  for (u32 e = 0; e < bytes; e++) {
    ExprId at = step_element(b, first, e, bytes);
    byte[e] = let_new(p, &in, "w", weight(b, b->q.quant, ex_copy(p, unit), at, v));
  }
  for (u32 i = 0; i < b->rows; i++) {
    ExprId sum = add_products(b, of_tile(b, b->sums, i, v), x[i], byte, n, bytes);
    to_tile(b, &in, b->sums, i, v, sum);
  }
}

/* Dot products along the unit, for a few results at a time. */
static void sum_along(const MmqLoops *b, Cursor at, ExprId unit) {
  Prog *p = b->p;
  u32 cols = b->rows > 1 ? LIMIT_mmq_along_tile : LIMIT_mmq_along_row;
  VarId acc[LIMIT_mmq_rows * LIMIT_mmq_along_row];
  Cursor in = at;
  VarId k = prog_for(p, &in, ex_int(p, 0), ex_int(p, QBLOCK_X), "k");
  for (u32 i = 0; i < b->rows; i++) {
    ExprId x = operand(b, b->x, i, mmq_plus(p, unit, QBLOCK_X, ex_var(p, k)));
    to_tile(b, &in, b->words, i, k, ex_cast(p, DT_i16, x, false));
  }
  while (b->q.lanes % cols) cols /= 2;
  ExprId first = ex_var(p, prog_for(p, &at, ex_int(p, 0), ex_int(p, b->q.lanes / cols), "v"));
  for (u32 i = 0; i < b->rows * cols; i++)
    acc[i] = let_new(p, &at, "acc", ex_const(p, DT_u32, (Scalar){0}));
  in = at;
  k = i16_dot_loop(p, &in, QBLOCK_X);
  for (u32 i = 0; i < b->rows * cols; i++) {
    ExprId lane = mmq_plus(p, first, cols, ex_int(p, i % cols));
    ExprId idx[5] = {ex_copy(p, b->panel), ex_copy(p, unit), lane, ex_int(p, 0), ex_var(p, k)};
    i16_dot_add(p, &in, acc[i], of_tile(b, b->words, i / cols, k), ex_load(p, b->q.quant, idx, 5));
  }
  for (u32 i = 0; i < b->rows * cols; i++) {
    ExprId idx[2] = {ex_int(p, i / cols), mmq_plus(p, first, cols, ex_int(p, i % cols))};
    prog_store(p, &at, b->sums, idx, 2, ex_cast(p, DT_i32, ex_var(p, acc[i]), false));
  }
}

/* Scale or offset of a unit: stored as one number, or as a factor of the quant block and one of the
 * unit. */
static ExprId scale(const MmqLoops *b, ExprId unit, ExprId block, VarId v, bool offset) {
  Prog *p = b->p;
  ExprId e = ex_cast(p, DT_f32, weight(b, b->q.s, ex_copy(p, unit), ex_int(p, offset), v), false);
  if (!b->q.d) return e;
  ExprId d = ex_cast(p, DT_f32, weight(b, b->q.d, ex_copy(p, block), ex_int(p, offset), v), false);
  e = ex_op2(p, OP_mul, d, e);
  return offset ? ex_op1(p, OP_neg, e) : e;
}

static void end_unit(const MmqLoops *b, Cursor in, ExprId unit, ExprId block) {
  Prog *p = b->p;
  VarId by[LIMIT_mmq_rows], sum[LIMIT_mmq_rows], o = 0;
  for (u32 i = 0; i < b->rows; i++) {
    by[i] = let_new(p, &in, "by", operand(b, b->by, i, ex_copy(p, unit)));
    if (b->q.offsets) sum[i] = let_new(p, &in, "sum", operand(b, b->sum, i, ex_copy(p, unit)));
  }
  VarId v = along_lanes(b, &in);
  VarId s = let_new(p, &in, "s", scale(b, unit, block, v, false));
  if (b->q.offsets) o = let_new(p, &in, "o", scale(b, unit, block, v, true));
  for (u32 i = 0; i < b->rows; i++) {
    ExprId f = ex_op2(p, OP_mul, ex_var(p, s), ex_var(p, by[i]));
    f = ex_op2(p, OP_mul, ex_cast(p, DT_f32, of_tile(b, b->sums, i, v), false), f);
    f = ex_op2(p, OP_add, of_tile(b, b->acc, i, v), f);
    if (o) f = ex_op2(p, OP_add, f, ex_op2(p, OP_mul, ex_var(p, o), ex_var(p, sum[i])));
    to_tile(b, &in, b->acc, i, v, f);
  }
}

static void one_tile(MmqLoops *b, Cursor at, u32 rows, ExprId row) {
  Prog *p = b->p;
  i64 units = qblock_info[b->q.kind].elems / QBLOCK_X;
  Dim size[2] = {rows, b->q.lanes};
  b->rows = rows;
  b->row = row;
  b->sums = prog_add_buf(p, BS_local, b->sum_dt, size, 2, str_of(p->c, "sums"));
  b->acc = prog_add_buf(p, BS_local, DT_f32, size, 2, str_of(p->c, "acc"));
  size[1] = QBLOCK_X;
  if (b->q.along) b->words = prog_add_buf(p, BS_local, DT_i16, size, 2, str_of(p->c, "words"));
  Cursor in = at;
  VarId v = along_lanes(b, &in);
  for (u32 i = 0; i < rows; i++)
    to_tile(b, &in, b->acc, i, v, ex_const(p, DT_f32, (Scalar){.f = 0}));
  in = at;
  ExprId unit, block;
  if (b->q.d && units > 1) {
    block = ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_int(p, b->q.blocks), "j"));
    ExprId u = ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_int(p, units), "u"));
    unit = mmq_plus(p, block, units, u);
  } else {
    block = unit = ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_int(p, b->q.n), "u"));
  }
  if (b->q.along) {
    sum_along(b, in, unit);
  } else {
    begin_unit(b, in, unit);
    add_unit(b, in, unit);
  }
  end_unit(b, in, unit, block);
  v = along_lanes(b, &at);
  for (u32 i = 0; i < rows; i++) {
    ExprId val[FORM_AXES] = {ex_op2(p, OP_add, ex_copy(p, row), ex_int(p, i)),
                             mmq_plus(p, b->panel, LANES, ex_int(p, b->first))};
    val[1] = ex_op2(p, OP_add, val[1], ex_var(p, v));
    Nest x = {.l = b->l, .p = p, .f = b->f, .at = at, .sub = val};
    nest_store(&x, nest_finish(&x, of_tile(b, b->acc, i, v)));
    at = x.at;
  }
}

/* All rows of x with one panel: tiles of several rows, then the remainder. */
static void all_rows(MmqLoops *b, Cursor at, ExprId panel) {
  Prog *p = b->p;
  Dim n = b->f->axis[0].hi;
  ExprId done = ex_int(p, 0), row = done;
  b->panel = panel;
  if (!dim_is_const(n) || n >= LIMIT_mmq_rows) {
    ExprId tiles = ex_op2(p, OP_div, ex_dim(p, n), ex_int(p, LIMIT_mmq_rows));
    Cursor in = at;
    ExprId r = ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_copy(p, tiles), "r"));
    one_tile(b, in, LIMIT_mmq_rows, ex_op2(p, OP_mul, r, ex_int(p, LIMIT_mmq_rows)));
    done = ex_op2(p, OP_mul, tiles, ex_int(p, LIMIT_mmq_rows));
    if (dim_is_const(n) && n % LIMIT_mmq_rows == 0) return;
  }
  if (n != 1) row = ex_var(p, prog_for(p, &at, done, ex_dim(p, n), "r"));
  one_tile(b, at, 1, row);
}

/* Chooses the type of the sums from the largest element. */
static void choose_sums(MmqLoops *b) {
  i64 most = (i64)1 << b->q.bits, largest = b->q.is_signed ? most / 2 : most - 1;
  i64 off = b->q.less > largest - b->q.less ? b->q.less : largest - b->q.less;
  b->together = (u32)(INT16_MAX / (X_MOST * largest));
  b->sum_dt = !b->q.is_signed && QBLOCK_X * off * X_MOST <= INT16_MAX ? DT_i16 : DT_i32;
}

/* Panels of `lanes` results from `first` on. A remainder gets a narrower panel, so that no padding
 * is stored. */
static void some_panels(MmqLoops *b, Cursor at, BufId w, QBlockKind kind, i64 first, i64 panels,
                        i64 lanes) {
  bool along = qblock_bits(kind) == 8 && b->l->pass->for_c;
  b->q = mmq_pack_loops(b->l, kind, w, (u32)lanes, first, panels * lanes, along);
  b->first = first;
  choose_sums(b);
  ExprId o = count_parallel(b->p, &at, panels, "o");
  all_rows(b, at, o);
}

bool mmq_loops(Lower *l, Cursor at, const Form *f, const Node *n, QBlockKind kind) {
  BufId w = l->buf[n->in[1]];
  u32 bits = qblock_bits(kind);
  i64 rows = prog_buf(l->p, prog_root(l->p, w))->data->dim[0], whole = rows - rows % LANES;
  if (n->nin < 3 || qblock_group(kind) != QBLOCK_X || qblock_is_scaled(kind)) return false;
  if (bits > 4 && bits < 8) return false;
  MmqLoops b = {.l = l, .p = l->p, .f = f, .x = l->buf[n->in[0]], .by = l->buf[n->in[2]]};
  if (n->nin > 3) b.sum = l->buf[n->in[3]];
  KernelRecord r = {.family = FA_matmul_quant};
  r.size = str_fmt(l->c, "of %s, loops along %d results", qblock_info[kind].name, LANES);
  r.reason = str_fmt(l->c, "%lld results", (long long)rows);
  kernel_record(l->p, l->at.last, r);
  if (whole) some_panels(&b, at, w, kind, 0, whole / LANES, LANES);
  if (rows > whole) some_panels(&b, at, w, kind, whole, 1, rows - whole);
  return true;
}
