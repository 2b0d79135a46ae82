/* lower_mmq.c: matmul with quantized weights (matmul_quant). mmq.h defines quant block, group and
 * unit.
 *
 * In: the form of matmul_quant. Out: loops over tiles of a few rows of x and panels of weights, on
 * every target; without vectors a panel is one row. Weights are integers of a few bits, packed at
 * compile time (mmq_pack.c). They are unpacked where they are used, or once for all rows if
 * unpacking is expensive and rows are many (mmq_many.c).
 *
 * int8 x: products of a group are summed exactly as integers, four at a time (dot_i8x4). Each group
 * is then scaled and added in f32. If groups are shorter than 32 and have integer scales, these are
 * applied as integers and a whole quant block is scaled in f32. Two groups are scaled at once if
 * their sums share a register.
 *
 * f32 x: weights are dequantized in registers, as pass dequantize does, and products are added in
 * order.
 *
 * A result adds its groups in order, independent of the tile. So rows of x give the same bits one
 * by one or together, and for any number of threads.
 */
#include "ir/prog/cost.h"
#include "pass/kernel/mmq.h"
#include "pass/kernel/tile.h"

/* ---- loads ---- */

ExprId mmq_splat(const MmqTile *b, ExprId e) {
  return b->q.lanes > 1 ? ex_splat(b->p, e, b->q.lanes) : e;
}

ExprId mmq_plus(Prog *p, ExprId a, i64 k, ExprId b) {
  return ex_op2(p, OP_add, ex_op2(p, OP_mul, ex_copy(p, a), ex_int(p, k)), b);
}

/* Loads a vector from packed constants: `word` of a reduction step. */
ExprId mmq_panel_load(const MmqTile *b, const MmqAt *at, BufId from, ExprId v, ExprId step,
                      u32 word) {
  Prog *p = b->p;
  ExprId inside = ex_op2(p, OP_add, ex_copy(p, at->inside), ex_copy(p, v));
  ExprId idx[5] = {ex_copy(p, at->group), step, ex_int(p, word), inside, ex_int(p, 0)};
  return b->q.lanes > 1 ? ex_load_vec(p, from, idx, 5, b->q.lanes) : ex_load(p, from, idx, 5);
}

ExprId mmq_ints(const MmqTile *b, i64 x) {
  return mmq_splat(b, ex_const(b->p, DT_i32, (Scalar){.i = x}));
}

/* Loads an element of an operand, or four of them as one word. */
ExprId mmq_x_load(const MmqTile *b, BufId from, ExprId row, ExprId at, bool four) {
  Prog *p = b->p;
  ExprId idx[MAX_RANK + 1] = {ex_copy(p, row), at};
  u32 n = 2;
  storage_address(b->t.l, &from, idx, &n, &b->t.at.inner);
  return four ? ex_quad(p, ex_load_vec(p, from, idx, n, 4)) : ex_load(p, from, idx, n);
}

/* Two consecutive sums of x as the halves of one word. */
static ExprId x_pair(const MmqTile *b, ExprId row, ExprId at) {
  Prog *p = b->p;
  BufId from = b->sum;
  ExprId idx[MAX_RANK + 1] = {ex_copy(p, row), at};
  u32 n = 2;
  storage_address(b->t.l, &from, idx, &n, &b->t.at.inner);
  return ex_quad(p, ex_load_vec(p, from, idx, n, 2));
}

static ExprId madd(const MmqTile *b, ExprId x, ExprId y, ExprId sum) {
  if (b->t.l->pass->target->fma) return ex_op3(b->p, OP_fma, x, y, sum);
  return ex_op2(b->p, OP_add, sum, ex_op2(b->p, OP_mul, x, y));
}

ExprId mmq_negate(Prog *p, ExprId x) {
  return ex_op1(p, OP_neg, x);
}

/* Scale (or offset) of the quant block of panel v. */
static ExprId block_load(const MmqTile *b, const MmqAt *at, ExprId v, bool offset) {
  ExprId e = mmq_panel_load(b, at, b->q.d, v, ex_copy(b->p, at->block), offset);
  return ex_cast(b->p, DT_f32, e, false);
}

/* Own scale (or offset) of group g of the unit. */
static ExprId group_load(const MmqTile *b, const MmqAt *at, ExprId v, u32 g, bool offset,
                         DType dt) {
  Prog *p = b->p;
  ExprId step = mmq_plus(p, at->unit, b->q.split, ex_int(p, g));
  return ex_cast(p, dt, mmq_panel_load(b, at, b->q.s, v, step, offset), false);
}

/* Complete scale (or offset) of group g: f16, or a byte times that of the quant block. */
static ExprId scale_load(const MmqTile *b, const MmqAt *at, ExprId v, u32 g, bool offset) {
  Prog *p = b->p;
  if (!b->q.d) return group_load(b, at, v, g, offset, DT_f32);
  ExprId e = ex_cast(p, DT_f32, group_load(b, at, v, g, offset, DT_i32), false);
  e = ex_op2(p, OP_mul, block_load(b, at, v, offset), e);
  return offset ? mmq_negate(p, e) : e;
}

static ExprId row_at(const MmqTile *b, const MmqAt *at, ExprId i) {
  return ex_op2(b->p, OP_add, ex_copy(b->p, at->row), ex_copy(b->p, i));
}

/* Number of rows of x that tiles compute; the others are computed one by one. */
ExprId mmq_rows_of_tiles(const MmqTile *b) {
  Prog *p = b->p;
  ExprId tiles = ex_op2(p, OP_div, ex_dim(p, b->t.f.axis[0].hi), ex_int(p, SHORT_ROWS));
  return ex_op2(p, OP_mul, tiles, ex_int(p, SHORT_ROWS));
}

/* Units per step of a tile: a whole quant block if it has a scale. */
i64 mmq_step_units(const MmqTile *b) {
  return b->q.d ? qblock_info[b->q.kind].elems / QBLOCK_X : 1;
}

/* Opens a loop over the units of the unpacked part. */
void mmq_unpack_units(const MmqTile *b, Cursor *in, MmqAt *at) {
  Prog *p = b->p;
  i64 units = mmq_step_units(b);
  ExprId all = ex_op2(p, OP_mul, ex_copy(p, b->steps), ex_int(p, units));
  at->place = ex_var(p, prog_for(p, in, ex_int(p, 0), all, "u"));
  at->unit = mmq_plus(p, b->first, units, ex_copy(p, at->place));
}

u32 mmq_unpacked_words(const MmqTile *b) {
  bool maddubs = b->t.l->pass->maddubs;
  u32 scales = qblock_is_scaled(b->q.kind) ? (maddubs ? UNPACKED_SCALES : 1) : 0;
  if (b->crossed) return CROSSED;
  return UNPACKED_WORDS + scales + b->is_shifted;
}

/* Index of a word of unpacked panels. */
u32 mmq_unpacked_at(const MmqTile *b, ExprId place, u32 word, ExprId v, ExprId idx[4]) {
  Prog *p = b->p;
  idx[0] = ex_copy(p, place);
  idx[1] = ex_int(p, word);
  idx[2] = ex_copy(p, v);
  idx[3] = ex_int(p, 0);
  return 4;
}

ExprId mmq_unpacked_load(const MmqTile *b, const MmqAt *at, u32 word, ExprId v) {
  ExprId idx[4];
  u32 n = mmq_unpacked_at(b, at->place, word, v, idx);
  return ex_load_vec(b->p, b->unpacked, idx, n, b->q.lanes);
}

/* Loads word j of the unit of each panel into registers. */
static BufId load_word(const MmqTile *b, const MmqAt *at, Cursor in, u32 j) {
  Prog *p = b->p;
  BufId w = tile_registers(p, DT_i32, b->q.lanes, 1, at->size.panels, "w");
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel);
  ExprId e = b->unpacked ? mmq_unpacked_load(b, at, j, v)
                         : mmq_panel_load(b, at, b->q.quant, v, ex_copy(p, at->unit), j);
  reg_store(p, &in, w, ex_int(p, 0), v, e);
  if (b->prefetch_bytes && at->size.rows == 1) {
    prog_stmt(p, in.last)->flags |= SF_prefetch;
    prog_stmt(p, in.last)->step = b->prefetch_bytes;
  }
  return w;
}

/* Loads the words that contain elements 4 j to 4 j + 3 unless w, initially zeros, has them. Loading
 * late saves registers and keeps memory accesses sequential. */
void mmq_load_words(const MmqTile *b, const MmqAt *at, Cursor in, BufId *w, u32 j) {
  MmqPiece piece[8];
  u32 n = mmq_pieces(b->q.words, j, piece);
  for (u32 i = 0; i < n; i++)
    if (!w[piece[i].word]) w[piece[i].word] = load_word(b, at, in, piece[i].word);
}

/* Elements 4 j to 4 j + 3 of the unit in row i of the tile. */
static ExprId four_of_x(const MmqTile *b, const MmqAt *at, ExprId i, u32 j) {
  Prog *p = b->p;
  if (!b->fours)
    return mmq_x_load(b, b->x, row_at(b, at, i), mmq_plus(p, at->unit, QBLOCK_X, ex_int(p, 4 * j)),
                      true);
  return ex_load(p, b->fours, (ExprId[]){row_at(b, at, i), ex_copy(p, at->unit), ex_int(p, j)}, 3);
}

/* ---- integers ---- */

/* Shifts x left by `by` (right if negative) and masks every lane. */
static ExprId moved(const MmqTile *b, ExprId x, i32 by, i64 mask) {
  if (by > 0) x = ex_op2(b->p, OP_shl, x, mmq_ints(b, by));
  if (by < 0) x = ex_op2(b->p, OP_shr, x, mmq_ints(b, -by));
  return ex_op2(b->p, OP_and, x, mmq_ints(b, mask));
}

/* Elements 4 j to 4 j + 3 of panel v as bytes. w: the words that contain them, in registers. */
ExprId mmq_four_bytes(const MmqTile *b, const BufId *w, u32 j, ExprId v) {
  Prog *p = b->p;
  MmqPiece piece[8];
  u32 n = mmq_pieces(b->q.words, j, piece);
  ExprId all = 0;
  for (u32 i = 0; i < n; i++) {
    const MmqPiece *x = &piece[i];
    ExprId e = reg_load(p, w[x->word], ex_int(p, 0), v);
    i64 mask = (i32)(((1u << x->bits) - 1) * 0x01010101u << x->to);
    if (x->bits < 8) e = moved(b, e, (i32)x->to - (i32)x->from, mask);
    all = all ? ex_op2(p, OP_or, all, e) : e;
  }
  return all;
}

/* sums[i, v] += products of elements 4 j to 4 j + 3, both signed. The signs of the weights move to
 * x (psign). The sum of two products fits in 16 bits, because x is never -128. */
static void add_signed(const MmqTile *b, const MmqAt *at, Cursor in, BufId sums, const BufId *w,
                       u32 j) {
  Prog *p = b->p;
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel),
         e = reg_load(p, w[j], ex_int(p, 0), v);
  VarId m = tile_let(p, &in, ex_op2(p, OP_psign, e, ex_copy(p, e)), "m");
  ExprId i = tile_unrolled(p, &in, at->size.rows, "p", RO_row);
  ExprId x = mmq_x_load(b, b->x, row_at(b, at, i),
                        mmq_plus(p, at->unit, QBLOCK_X, ex_int(p, 4 * j)), true);
  x = ex_op2(p, OP_psign, mmq_splat(b, x), ex_copy(p, e));
  ExprId two = ex_op3(p, OP_maddubs, ex_var(p, m), x, mmq_ints(b, 0));
  ExprId n = ex_op3(p, OP_dot_i16x2, two, mmq_ints(b, 0x00010001), reg_load(p, sums, i, v));
  reg_store(p, &in, sums, i, v, n);
}

/* sums[i, v] = op(elements 4 j to 4 j + 3 of the weights, those of x, sums) */
static void add_four(const MmqTile *b, const MmqAt *at, Cursor in, BufId sums, Op op,
                     const BufId *w, u32 j) {
  Prog *p = b->p;
  ExprId i = tile_unrolled(p, &in, at->size.rows, "p", RO_row);
  VarId f = tile_let(p, &in, mmq_splat(b, four_of_x(b, at, i, j)), "x");
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel), e = mmq_four_bytes(b, w, j, v);
  ExprId x = ex_var(p, f), sum = reg_load(p, sums, i, v);
  reg_store(p, &in, sums, i, v,
            b->is_shifted ? ex_op3(p, op, x, e, sum) : ex_op3(p, op, e, x, sum));
}

/* Correction for the unsigned storage of weights: minus the offset of a group of weights times the
 * sum of x. */
ExprId mmq_bias(const MmqTile *b, ExprId row, ExprId group) {
  Prog *p = b->p;
  ExprId sum = mmq_x_load(b, b->sum, row, group, false);
  if (qblock_is_scaled(b->q.kind)) sum = ex_cast(p, DT_i32, sum, false);
  return ex_op2(p, OP_mul, sum, ex_const(p, DT_i32, (Scalar){.i = -b->q.less}));
}

/* Initializes the sums of group g with this correction. */
static BufId begin_group(const MmqTile *b, const MmqAt *at, Cursor in, u32 g) {
  Prog *p = b->p;
  BufId sums = tile_registers(p, DT_i32, b->q.lanes, at->size.rows, at->size.panels, "n");
  ExprId i = tile_unrolled(p, &in, at->size.rows, "p", RO_row), first = mmq_ints(b, 0);
  if (b->q.less) {
    ExprId row = row_at(b, at, i), group = mmq_plus(p, at->unit, b->q.split, ex_int(p, g));
    ExprId sum = b->off ? ex_load(p, b->off, (ExprId[]){row, group}, 2) : mmq_bias(b, row, group);
    first = ex_var(p, tile_let(p, &in, mmq_splat(b, sum), "less"));
  }
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel);
  if (b->is_shifted) first = mmq_unpacked_load(b, at, mmq_unpacked_words(b) - 1, v);
  reg_store(p, &in, sums, i, v, first);
  return sums;
}

/* acc[i, v] += scaled sums of group g. */
void mmq_end_group(const MmqTile *b, const MmqAt *at, Cursor in, BufId sums, BufId acc, u32 g) {
  Prog *p = b->p;
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel);
  VarId s = tile_let(p, &in, scale_load(b, at, v, g, false), "s"), o = 0;
  if (b->q.offsets) o = tile_let(p, &in, scale_load(b, at, v, g, true), "o");
  ExprId i = tile_unrolled(p, &in, at->size.rows, "p", RO_row), row = row_at(b, at, i);
  ExprId by = mmq_x_load(b, b->by, row, ex_copy(p, at->unit), false);
  ExprId n = ex_cast(p, DT_f32, reg_load(p, sums, i, v), false);
  ExprId scale = ex_op2(p, OP_mul, ex_var(p, s), mmq_splat(b, by));
  reg_store(p, &in, acc, i, v, madd(b, n, scale, reg_load(p, acc, i, v)));
  if (!o) return;
  ExprId sum = mmq_x_load(b, b->sum, row, mmq_plus(p, at->unit, b->q.split, ex_int(p, g)), false);
  reg_store(p, &in, acc, i, v, madd(b, ex_var(p, o), mmq_splat(b, sum), reg_load(p, acc, i, v)));
}

static BufId zeros(const MmqTile *b, const MmqAt *at, Cursor in) {
  Prog *p = b->p;
  BufId to = tile_registers(p, DT_i32, b->q.lanes, at->size.rows, at->size.panels, "h");
  ExprId i = tile_unrolled(p, &in, at->size.rows, "p", RO_row);
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel);
  reg_store(p, &in, to, i, v, mmq_ints(b, 0));
  return to;
}

/* sums[i, v] += both halves of pairs[i, v] */
static void add_pairs(const MmqTile *b, const MmqAt *at, Cursor in, BufId sums, BufId pairs) {
  Prog *p = b->p;
  ExprId i = tile_unrolled(p, &in, at->size.rows, "p", RO_row);
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel);
  ExprId n = ex_op3(p, OP_dot_i16x2, reg_load(p, pairs, i, v), mmq_ints(b, 0x00010001),
                    reg_load(p, sums, i, v));
  reg_store(p, &in, sums, i, v, n);
}

/* Number of maddubs steps whose sums stay in 16 bits. */
u32 mmq_most_pairs(const MmqTile *b) {
  i64 top = (1 << b->q.bits) - 1, least = qblock_info[b->q.kind].less;
  i64 largest = b->is_shifted ? 255 * (least > top - least ? least : top - least) : 128 * top;
  return (u32)(INT16_MAX / (2 * largest));
}

/* Adds products of words from `first` to `end` with maddubs, and widens to 32 bits before 16 bits
 * overflow. */
static void group_of_pairs(const MmqTile *b, const MmqAt *at, Cursor in, BufId sums, BufId *w,
                           u32 first, u32 end) {
  u32 most = mmq_most_pairs(b);
  for (u32 from = first, to; from < end; from = to) {
    to = from + most < end ? from + most : end;
    BufId pairs = zeros(b, at, in);
    for (u32 j = from; j < to; j++) {
      mmq_load_words(b, at, in, w, j);
      add_four(b, at, in, pairs, OP_maddubs, w, j);
    }
    add_pairs(b, at, in, sums, pairs);
  }
}

static void add_group(const MmqTile *b, const MmqAt *at, Cursor in, BufId sums, BufId *w, u32 first,
                      u32 end) {
  if (b->t.l->pass->maddubs && !b->q.is_signed) {
    group_of_pairs(b, at, in, sums, w, first, end);
    return;
  }
  for (u32 j = first; j < end; j++) {
    mmq_load_words(b, at, in, w, j);
    if (b->q.is_signed)
      add_signed(b, at, in, sums, w, j);
    else
      add_four(b, at, in, sums, OP_dot_i8x4, w, j);
  }
}

static void unit_of_ints(const MmqTile *b, const MmqAt *at, Cursor in, BufId acc) {
  BufId w[8] = {0};
  u32 fours = b->q.group / 4;
  for (u32 g = 0; g < b->q.split; g++) {
    BufId sums = begin_group(b, at, in, g);
    add_group(b, at, in, sums, w, g * fours, (g + 1) * fours);
    mmq_end_group(b, at, in, sums, acc, g);
  }
}

/* ---- integers with integer scales, two groups in a unit ---- */

/* acc[i, v] += total[i, v] times the scales of the quant block and of x. */
static void end_block(const MmqTile *b, const MmqAt *at, Cursor in, BufId total, BufId acc) {
  Prog *p = b->p;
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel);
  VarId d = tile_let(p, &in, block_load(b, at, v, false), "d");
  ExprId i = tile_unrolled(p, &in, at->size.rows, "p", RO_row), row = row_at(b, at, i);
  ExprId by = mmq_splat(b, mmq_x_load(b, b->by, row, ex_copy(p, at->block), false));
  ExprId scale = ex_op2(p, OP_mul, ex_var(p, d), by);
  ExprId n = ex_cast(p, DT_f32, reg_load(p, total, i, v), false);
  reg_store(p, &in, acc, i, v, madd(b, n, scale, reg_load(p, acc, i, v)));
}

/* acc[i, v] += the offsets of both groups of the unit. */
static void add_offsets(const MmqTile *b, const MmqAt *at, Cursor in, BufId acc) {
  Prog *p = b->p;
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel);
  VarId o[2];
  for (u32 g = 0; g < 2; g++) o[g] = tile_let(p, &in, scale_load(b, at, v, g, true), "o");
  ExprId i = tile_unrolled(p, &in, at->size.rows, "p", RO_row), row = row_at(b, at, i);
  ExprId sum = reg_load(p, acc, i, v);
  for (u32 g = 0; g < 2; g++) {
    ExprId x = mmq_x_load(b, b->sum, row, mmq_plus(p, at->unit, 2, ex_int(p, g)), false);
    sum = madd(b, ex_var(p, o[g]), mmq_splat(b, x), sum);
  }
  reg_store(p, &in, acc, i, v, sum);
}

/* Packs x into the lower and y into the upper half of each lane, both shifted left. */
static ExprId halves(const MmqTile *b, ExprId x, ExprId y, i64 up) {
  ExprId high = ex_op2(b->p, OP_shl, y, mmq_ints(b, 16 + up));
  return ex_op2(b->p, OP_or, moved(b, x, (i32)up, 0xffff), high);
}

/* Packs the scales of two groups of the unit into the halves of a lane, shifted left. */
ExprId mmq_scale_pair(const MmqTile *b, const MmqAt *at, ExprId v, u32 g, u32 h, i64 up) {
  ExprId low = group_load(b, at, v, g, false, DT_i32);
  return halves(b, low, group_load(b, at, v, h, false, DT_i32), up);
}

/* Loads the scales of groups g and h of the unit of each panel into registers. word: their position
 * in an unpacked panel. */
static BufId load_scales(const MmqTile *b, const MmqAt *at, Cursor in, u32 g, u32 h, u32 word) {
  Prog *p = b->p;
  BufId to = tile_registers(p, DT_i32, b->q.lanes, 1, at->size.panels, "s");
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel);
  ExprId e = b->unpacked ? mmq_unpacked_load(b, at, UNPACKED_WORDS + word, v)
                         : mmq_scale_pair(b, at, v, g, h, 0);
  reg_store(p, &in, to, ex_int(p, 0), v, e);
  return to;
}

/* sums[i, v] += s[v] times the maddubs products of `fours` words from `first` on */
static void add_scaled(const MmqTile *b, const MmqAt *at, Cursor in, BufId sums, BufId s,
                       const BufId *w, u32 first, u32 fours) {
  Prog *p = b->p;
  ExprId i = tile_unrolled(p, &in, at->size.rows, "p", RO_row);
  VarId x[8];
  for (u32 j = 0; j < fours; j++)
    x[j] = tile_let(p, &in, mmq_splat(b, four_of_x(b, at, i, first + j)), "x");
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel), pairs = mmq_ints(b, 0);
  for (u32 j = 0; j < fours; j++) {
    ExprId e = mmq_four_bytes(b, w, first + j, v), of = ex_var(p, x[j]);
    pairs =
        b->is_shifted ? ex_op3(p, OP_maddubs, of, e, pairs) : ex_op3(p, OP_maddubs, e, of, pairs);
  }
  ExprId by = reg_load(p, s, ex_int(p, 0), v);
  reg_store(p, &in, sums, i, v, ex_op3(p, OP_dot_i16x2, pairs, by, reg_load(p, sums, i, v)));
}

/* total[i, v] -= offset of the weights: both sums of x with both scales */
static void take_off(const MmqTile *b, const MmqAt *at, Cursor in, BufId total) {
  Prog *p = b->p;
  i64 up = 0;
  while ((i64)1 << up < b->q.less) up++;
  ExprId i = tile_unrolled(p, &in, at->size.rows, "p", RO_row);
  ExprId two = x_pair(b, row_at(b, at, i), mmq_plus(p, at->unit, 2, ex_int(p, 0)));
  VarId x = tile_let(p, &in, mmq_splat(b, two), "less");
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel);
  ExprId s = mmq_scale_pair(b, at, v, 0, 1, up);
  ExprId off = ex_op3(p, OP_dot_i16x2, s, ex_var(p, x), mmq_ints(b, 0));
  reg_store(p, &in, total, i, v, ex_op2(p, OP_sub, reg_load(p, total, i, v), off));
}

/* total[i, v] += correction for the products of an unpacked unit with 128 */
static void add_unpacked(const MmqTile *b, const MmqAt *at, Cursor in, BufId total) {
  Prog *p = b->p;
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel);
  VarId off = tile_let(p, &in, mmq_unpacked_load(b, at, mmq_unpacked_words(b) - 1, v), "off");
  ExprId i = tile_unrolled(p, &in, at->size.rows, "p", RO_row);
  reg_store(p, &in, total, i, v, ex_op2(p, OP_add, reg_load(p, total, i, v), ex_var(p, off)));
}

/* With maddubs: multiplying by the scale of a group also adds the halves. */
static void unit_of_scaled_pairs(const MmqTile *b, const MmqAt *at, Cursor in, BufId total) {
  BufId w[8] = {0};
  u32 fours = b->q.group / 4, most = mmq_most_pairs(b);
  if (b->is_shifted) add_unpacked(b, at, in, total);
  for (u32 g = 0; g < b->q.split; g++) {
    BufId s = load_scales(b, at, in, g, g, g);
    for (u32 j = 0, n; j < fours; j += n) {
      n = j + most < fours ? most : fours - j;
      for (u32 k = 0; k < n; k++) mmq_load_words(b, at, in, w, g * fours + j + k);
      add_scaled(b, at, in, total, s, w, g * fours + j, n);
    }
  }
  if (b->q.less) take_off(b, at, in, total);
}

/* total[i, v] += sums of a group, times its scale */
static void add_times_scale(const MmqTile *b, const MmqAt *at, Cursor in, BufId total, BufId sums,
                            u32 g) {
  Prog *p = b->p;
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel);
  VarId s = tile_let(p, &in, group_load(b, at, v, g, false, DT_i32), "s");
  ExprId i = tile_unrolled(p, &in, at->size.rows, "p", RO_row);
  ExprId n = ex_op2(p, OP_mul, reg_load(p, sums, i, v), ex_var(p, s));
  reg_store(p, &in, total, i, v, ex_op2(p, OP_add, reg_load(p, total, i, v), n));
}

/* Initializes the sums of group 1. Then group 0 continues from them, shifted left, and from
 * `off`. */
static void begin_joined(const MmqTile *b, const MmqAt *at, Cursor in, BufId sums) {
  Prog *p = b->p;
  ExprId i = tile_unrolled(p, &in, at->size.rows, "p", RO_row);
  ExprId idx[2] = {row_at(b, at, i), ex_copy(p, at->unit)};
  VarId off = tile_let(p, &in, mmq_splat(b, ex_load(p, b->off, idx, 2)), "less");
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel);
  ExprId up = ex_op2(p, OP_shl, reg_load(p, sums, i, v), mmq_ints(b, 16));
  reg_store(p, &in, sums, i, v, ex_op2(p, OP_add, up, ex_var(p, off)));
}

/* An unpacked unit whose two groups share a register as halves. JOINED_BIAS keeps the lower half
 * from borrowing from the upper one. One multiplication applies both scales. */
static void unit_of_joined(const MmqTile *b, const MmqAt *at, Cursor in, BufId total) {
  Prog *p = b->p;
  if (!b->off || !b->unpacked) internal_error(p->c, LOC_NONE, "joined sums have no initial value");
  BufId w[8] = {0}, sums = zeros(b, at, in);
  u32 fours = b->q.group / 4;
  add_group(b, at, in, sums, w, fours, 2 * fours);
  begin_joined(b, at, in, sums);
  add_group(b, at, in, sums, w, 0, fours);
  BufId s = load_scales(b, at, in, 0, 1, 0);
  ExprId i = tile_unrolled(p, &in, at->size.rows, "p", RO_row);
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel);
  ExprId two = ex_op2(p, OP_xor, reg_load(p, sums, i, v), mmq_ints(b, JOINED_BIAS));
  ExprId n =
      ex_op3(p, OP_dot_i16x2, two, reg_load(p, s, ex_int(p, 0), v), reg_load(p, total, i, v));
  reg_store(p, &in, total, i, v, n);
}

/* Scales the sums of groups one by one. */
static void unit_of_scaled(const MmqTile *b, const MmqAt *at, Cursor in, BufId total) {
  BufId w[8] = {0};
  u32 fours = b->q.group / 4;
  for (u32 g = 0; g < b->q.split; g++) {
    BufId sums = begin_group(b, at, in, g);
    add_group(b, at, in, sums, w, g * fours, (g + 1) * fours);
    add_times_scale(b, at, in, total, sums, g);
  }
}

/* ---- floats ---- */

/* Element e of the unit in panel v. If it is a single piece, without the detour through bytes. */
static ExprId one_element(const MmqTile *b, const BufId *w, u32 e, ExprId v) {
  u32 j = e / 4, byte = e % 4 * 8;
  MmqPiece piece[8];
  if (mmq_pieces(b->q.words, j, piece) > 1)
    return moved(b, mmq_four_bytes(b, w, j, v), -(i32)byte, 255);
  ExprId word = reg_load(b->p, w[piece->word], ex_int(b->p, 0), v);
  return moved(b, word, -(i32)(byte + piece->from), (1 << piece->bits) - 1);
}

/* Adds the products with element e of the unit. */
static void add_one(const MmqTile *b, const MmqAt *at, Cursor in, BufId acc, const BufId *w,
                    u32 e) {
  Prog *p = b->p;
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel);
  ExprId u = one_element(b, w, e, v);
  if (b->q.less) u = ex_op2(p, OP_sub, u, mmq_ints(b, b->q.less));
  ExprId s = scale_load(b, at, v, e / b->q.group, false);
  ExprId f = ex_op2(p, OP_mul, s, ex_cast(p, DT_f32, u, false));
  if (b->q.offsets) f = ex_op2(p, OP_add, f, scale_load(b, at, v, e / b->q.group, true));
  VarId weight = tile_let(p, &in, f, "w");
  ExprId i = tile_unrolled(p, &in, at->size.rows, "p", RO_row);
  ExprId x =
      mmq_x_load(b, b->x, row_at(b, at, i), mmq_plus(p, at->unit, QBLOCK_X, ex_int(p, e)), false);
  reg_store(p, &in, acc, i, v, madd(b, ex_var(p, weight), mmq_splat(b, x), reg_load(p, acc, i, v)));
}

static void unit_of_floats(const MmqTile *b, const MmqAt *at, Cursor in, BufId acc) {
  BufId w[8] = {0};
  for (u32 e = 0; e < QBLOCK_X; e++) {
    mmq_load_words(b, at, in, w, e / 4);
    add_one(b, at, in, acc, w, e);
  }
}

static ExprId kept_at(const MmqTile *b, const MmqAt *at, ExprId i, ExprId v, ExprId idx[3]) {
  idx[0] = row_at(b, at, i);
  idx[1] = ex_op2(b->p, OP_add, ex_copy(b->p, at->inside), ex_copy(b->p, v));
  idx[2] = ex_int(b->p, 0);
  return ex_load_vec(b->p, b->kept, idx, 3, b->q.lanes);
}

/* Initializes the sums of a tile: zero, or those of the earlier parts. */
static BufId begin_tile(const MmqTile *b, const MmqAt *at, Cursor in) {
  Prog *p = b->p;
  BufId acc = tile_registers(p, DT_f32, b->q.lanes, at->size.rows, at->size.panels, "acc");
  ExprId i = tile_unrolled(p, &in, at->size.rows, "p", RO_row), idx[3];
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel);
  ExprId e =
      b->kept ? kept_at(b, at, i, v, idx) : mmq_splat(b, ex_const(p, DT_f32, (Scalar){.f = 0}));
  reg_store(p, &in, acc, i, v, e);
  return acc;
}

static void keep_tile(const MmqTile *b, const MmqAt *at, Cursor in, BufId acc) {
  Prog *p = b->p;
  ExprId i = tile_unrolled(p, &in, at->size.rows, "p", RO_row), idx[3];
  ExprId v = tile_unrolled(p, &in, at->size.panels, "v", RO_panel);
  kept_at(b, at, i, v, idx);
  prog_store(p, &in, b->kept, idx, 3, reg_load(p, acc, i, v));
}

/* valid: rows of the last panel that exist. */
static void one_tile(MmqTile *b, Cursor at, TileSize s, ExprId row, ExprId group, ExprId inside,
                     i64 valid) {
  Prog *p = b->p;
  i64 units = mmq_step_units(b);
  MmqAt here = {.size = s, .row = row, .group = group, .inside = inside};
  BufId acc = begin_tile(b, &here, at);
  Cursor in = at;
  bool scaled = b->by && qblock_is_scaled(b->q.kind);
  BufId total = 0;
  Cursor block = at;
  const char *name = units > 1 ? "k" : "u";
  ExprId step = ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_copy(p, b->steps), name));
  here.block = ex_op2(p, OP_add, ex_copy(p, b->first), ex_copy(p, step));
  here.unit = here.block;
  here.place = step;
  if (units > 1) {
    if (scaled) total = zeros(b, &here, in);
    block = in;
    ExprId u = ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_int(p, units), "u"));
    here.place = mmq_plus(p, step, units, ex_copy(p, u));
    here.unit = mmq_plus(p, here.block, units, u);
  }
  if (b->crossed && s.rows > 1)
    mmq_unit_of_crossed(b, &here, in, acc);
  else if (scaled)
    (b->t.l->pass->maddubs ? unit_of_scaled_pairs
     : b->unpacked         ? unit_of_joined
                           : unit_of_scaled)(b, &here, in, total);
  else if (b->by)
    unit_of_ints(b, &here, in, acc);
  else
    unit_of_floats(b, &here, in, acc);
  if (scaled && b->q.offsets) add_offsets(b, &here, in, acc);
  if (scaled) end_block(b, &here, block, total, acc);
  if (b->kept)
    keep_tile(b, &here, at, acc);
  else
    tile_store(&b->t, at, acc, s, row, mmq_plus(p, group, PANELS, ex_copy(p, inside)), valid);
}

/* Tiles of s.rows rows of x from row `done` on, as long as that many are left, with count *
 * s.panels panels from `first` on. Returns the next row. */
static ExprId tiles_of(MmqTile *b, Cursor in, TileSize s, ExprId done, ExprId group, ExprId first,
                       i64 count, i64 valid) {
  Prog *p = b->p;
  ExprId left = ex_op2(p, OP_sub, ex_dim(p, b->t.f.axis[0].hi), ex_copy(p, done)), inside = first;
  ExprId tiles = ex_op2(p, OP_div, left, ex_int(p, s.rows));
  ExprId r = ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_copy(p, tiles), "r"));
  if (count > 1) {
    ExprId c = ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_int(p, count), "c"));
    inside = mmq_plus(p, c, s.panels, first);
  }
  one_tile(b, in, s, mmq_plus(p, r, s.rows, ex_copy(p, done)), group, inside, valid);
  return ex_op2(p, OP_add, done, ex_op2(p, OP_mul, tiles, ex_int(p, s.rows)));
}

/* Tiles for all rows, with count * panels panels from `first` on. Returns the next row. */
static ExprId tiles_of_rows(MmqTile *b, Cursor in, ExprId group, ExprId first, i64 count,
                            i64 panels, i64 valid) {
  ExprId done = ex_int(b->p, 0);
  for (i64 rows = b->rows; rows > 1; rows = rows > SHORT_ROWS ? SHORT_ROWS : 1)
    done = tiles_of(b, in, (TileSize){rows, panels}, done, group, first, count, valid);
  return done;
}

/* kept = 0 in panels from `first` on */
static void begin_kept(const MmqTile *b, Cursor in, i64 first, i64 panels) {
  Prog *p = b->p;
  ExprId idx[3] = {ex_var(p, prog_for(p, &in, ex_int(p, 0), mmq_rows_of_tiles(b), "r"))};
  idx[1] = ex_op2(p, OP_add, ex_int(p, first), tile_unrolled(p, &in, panels, "v", RO_panel));
  idx[2] = ex_int(p, 0);
  prog_store(p, &in, b->kept, idx, 3, mmq_splat(b, ex_const(p, DT_f32, (Scalar){.f = 0})));
}

/* Stores the results from `kept`. */
static void end_kept(MmqTile *b, Cursor in, ExprId group, i64 first, i64 panels, i64 valid) {
  Prog *p = b->p;
  TileSize s = {1, panels};
  ExprId row = ex_var(p, prog_for(p, &in, ex_int(p, 0), mmq_rows_of_tiles(b), "r"));
  MmqAt at = {.size = s, .row = row, .inside = ex_int(p, first)};
  BufId acc = begin_tile(b, &at, in);
  tile_store(&b->t, in, acc, s, row, mmq_plus(p, group, PANELS, ex_int(p, first)), valid);
}

/* Opens a loop over parts of the reduction, of `each` steps except the last; over none if no tile
 * reads them. */
static void each_part(MmqTile *b, Cursor *in, i64 steps, i64 each) {
  Prog *p = b->p;
  ExprId any = ex_op2(p, OP_min, mmq_rows_of_tiles(b), ex_int(p, 1));
  i64 parts = (steps + each - 1) / each;
  ExprId k =
      ex_var(p, prog_for(p, in, ex_int(p, 0), ex_op2(p, OP_mul, any, ex_int(p, parts)), "k"));
  b->first = ex_op2(p, OP_mul, k, ex_int(p, each));
  b->steps = ex_int(p, each);
  if (steps % each == 0) return;
  ExprId left = ex_op2(p, OP_sub, ex_int(p, steps), ex_copy(p, b->first));
  b->steps = ex_op2(p, OP_min, b->steps, left);
}

/* Panels that are unpacked or crossed once for all rows: count * panels panels from `first` on. A
 * part is as many units as fit in L1. Sums of all rows are kept between parts. All panels take a
 * part before the next part, so that its x stays in L2. There is one part if the sums would not fit
 * in L2. Returns the next row. */
static ExprId unpacked_tiles(const MmqTile *b, Cursor in, ExprId group, i64 first, i64 count,
                             i64 panels, i64 valid) {
  Prog *p = b->p;
  MmqTile many = *b;
  i64 units = mmq_step_units(b), steps = b->q.n / units, words = mmq_unpacked_words(b);
  i64 most = (i64)figures.panel_bytes / (units * words * panels * b->q.lanes * 4);
  double kept = (double)extent_bound(p->dims, b->t.f.axis[0].hi) * PANELS * b->q.lanes * 4;
  i64 parts = kept > figures.own_bytes ? 1
              : most > 1               ? (steps + most - 1) / most
                                       : steps,
      each = (steps + parts - 1) / parts;
  Dim dim[4] = {each * units, words, panels, b->q.lanes};
  Dim sums[3] = {b->t.f.axis[0].hi, PANELS, b->q.lanes};
  BufId to = prog_add_buf(p, BS_local, DT_i32, dim, 4, str_of(p->c, "unpacked"));
  ExprId panel = ex_int(p, first);
  Cursor after = in;
  if (parts > 1) {
    many.kept = prog_add_buf(p, BS_local, DT_f32, sums, 3, str_of(p->c, "kept"));
    begin_kept(&many, in, first, count * panels);
  }
  each_part(&many, &in, steps, each);
  if (count > 1) {
    ExprId c = ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_int(p, count), "c"));
    panel = mmq_plus(p, c, panels, panel);
  }
  (b->crossed ? mmq_cross_panels : mmq_unpack_panels)(&many, in, to, group, panel, panels);
  many.unpacked = to;
  many.q.words = UNPACKED_WORDS;
  if (b->is_shifted) many.q.less = 0;
  ExprId done = tiles_of_rows(&many, in, group, panel, 1, panels, valid);
  if (parts > 1) end_kept(&many, after, group, first, count * panels, valid);
  return done;
}

static ExprId tiles_of_panels(MmqTile *b, Cursor in, ExprId group, i64 first, i64 count, i64 panels,
                              i64 valid) {
  if (b->unpacks || b->crossed) return unpacked_tiles(b, in, group, first, count, panels, valid);
  return tiles_of_rows(b, in, group, ex_int(b->p, first), count, panels, valid);
}

/* `count` panels of a group from `first` on. Tiles of several rows run panel by panel, then smaller
 * tiles, then single rows with all panels. */
static void some_panels(MmqTile *b, Cursor at, ExprId group, i64 first, i64 count, i64 valid) {
  Prog *p = b->p;
  Dim n = b->t.f.axis[0].hi;
  ExprId done = ex_int(p, 0), row = ex_int(p, 0);
  MmqTile one = *b;
  i64 wide = count / b->wide, rest = count % b->wide;
  if (n != 1 && wide) done = tiles_of_panels(b, at, group, first, wide, b->wide, valid);
  if (n != 1 && rest) done = tiles_of_panels(b, at, group, first + count - rest, rest, 1, valid);
  if (n != 1) row = ex_var(p, prog_for(p, &at, done, ex_dim(p, n), "r"));
  one.fours = one.off = 0;
  one.is_shifted = false;
  one_tile(&one, at, (TileSize){1, count}, row, group, ex_int(p, first), valid);
}

static void all_panels(MmqTile *b, Cursor at) {
  Prog *p = b->p;
  i64 lanes = b->q.lanes > 1 ? b->q.lanes : 1;
  i64 whole = b->q.rows / lanes, rest = b->q.rows % lanes, groups = whole / PANELS;
  if (groups) {
    Cursor in = at;
    ExprId o = count_parallel(p, &in, groups, "o");
    some_panels(b, in, o, 0, PANELS, lanes);
  }
  if (whole % PANELS) some_panels(b, at, ex_int(p, groups), 0, whole % PANELS, lanes);
  if (rest) some_panels(b, at, ex_int(p, groups), whole % PANELS, 1, rest);
}

void lower_mmq(Lower *l, Cursor at, const Form *f) {
  const Node *n = graph_producer(l->g, f->of);
  Str name = node_attr(n, AT_kind)->u.s;
  QBlockKind kind = qblock_from_name(str_text(l->c, name), str_len(l->c, name));
  BufId w = l->buf[n->in[1]];
  MmqTile b = {.t = tile_of(l, f), .p = l->p, .x = l->buf[n->in[0]]};
  if (prog_buf(l->p, prog_root(l->p, w))->space != BS_const)
    fail(l->c, ERR_unsupported, n->loc,
         "matmul_quant: the weights are not constant, expected a constant");
  if (l->pass->target->lanes < 4 && mmq_loops(l, at, f, n, kind)) return;
  if (l->pass->target->warp && n->nin == 2) {
    block_rows_mmq(l, at, f, kind, b.x, w);
    return;
  }
  if (n->nin > 2) {
    b.by = l->buf[n->in[2]];
    if (n->nin > 3) b.sum = l->buf[n->in[3]];
  }
  b.q = mmq_pack(l, kind, w, l->pass->target->lanes, b.by && (!b.sum || l->pass->maddubs));
  if (b.q.lanes > 4)
    b.prefetch_bytes =
        (i64)(l->pass->maddubs ? figures.prefetch_bytes : figures.prefetch_dot_i8x4_bytes);
  b.t.axis.lane = 1;
  b.t.axis.row = 0;
  b.t.lanes = b.q.lanes;
  tile_choose_store(&b.t);
  b.first = ex_int(l->p, 0);
  b.steps = ex_int(l->p, b.q.n / mmq_step_units(&b));
  mmq_prepare_rows(&b, at);
  KernelRecord r = {.family = FA_matmul_quant, .tile.lanes = b.q.lanes};
  r.size = str_fmt(l->c, "of %s, %lld rows of %u lanes", qblock_info[kind].name, (long long)b.rows,
                   b.q.lanes);
  r.reason = str_fmt(l->c, "%lld results", (long long)b.q.rows);
  kernel_record(l->p, l->at.last, r);
  all_panels(&b, at);
}
