/* mmq_cross.c: int8 matmul with half the multiplications, by Winograd's inner product (1968).
 *
 * In: x and panels of weights. Out: both in crossed form, as scratch buffers, and the code of one
 * unit. For targets without dot_i8x4. Two products are w0 x0 + w1 x1 = (w0 + x1) (w1 + x0) - w0 w1
 * - x0 x1. The last two terms depend on weights or x alone and are computed once. A single row,
 * which reads both in place, gets the same integers.
 */
#include "pass/kernel/mmq.h"

static ExprId same(const MmqTile *b, i64 x, u32 lanes) {
  ExprId e = ex_const(b->p, DT_i32, (Scalar){.i = x});
  return lanes > 1 ? ex_splat(b->p, e, lanes) : e;
}

/* Crossed form of one side. four: four bytes with 128 added. half: the even and the odd ones, two
 * per word. Returns sum + products of even and odd neighbors + 128 times all four: the correction
 * that is subtracted at the end. */
static ExprId cross_four(const MmqTile *b, Cursor *in, ExprId four, u32 lanes, VarId *half,
                         ExprId sum) {
  Prog *p = b->p;
  VarId all = tile_let(p, in, four, "q");
  half[0] = tile_let(p, in, ex_op2(p, OP_and, ex_var(p, all), same(b, 0x00ff00ff, lanes)), "e");
  ExprId odd = ex_op2(p, OP_shr, ex_var(p, all), same(b, 8, lanes));
  half[1] = tile_let(p, in, ex_op2(p, OP_and, odd, same(b, 0x00ff00ff, lanes)), "o");
  ExprId both = ex_op2(p, OP_add, ex_var(p, half[0]), ex_var(p, half[1]));
  sum = ex_op3(p, OP_dot_i16x2, both, same(b, 0x00800080, lanes), sum);
  return ex_op3(p, OP_dot_i16x2, ex_var(p, half[0]), ex_var(p, half[1]), sum);
}

/* i32[tiles, units, SHORT_ROWS, CROSSED]: crossed x in the order in which tiles read it. */
BufId mmq_cross_x(const MmqTile *b, Cursor in) {
  Prog *p = b->p;
  Dim n = b->t.f.axis[0].hi,
      dim[4] = {dim_div(p->dims, n, SHORT_ROWS), b->q.n, SHORT_ROWS, CROSSED};
  BufId to = prog_add_buf(p, BS_local, DT_i32, dim, 4, str_of(p->c, "crossed"));
  ExprId tiles = ex_op2(p, OP_div, mmq_rows_of_tiles(b), ex_int(p, SHORT_ROWS));
  ExprId tile = ex_var(p, for_parallel(p, &in, ex_int(p, 0), tiles, "r"));
  ExprId i = ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_int(p, SHORT_ROWS), "i"));
  ExprId row = mmq_plus(p, tile, SHORT_ROWS, ex_copy(p, i));
  ExprId unit = ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_int(p, b->q.n), "u"));
  ExprId sum = same(b, 0, 1);
  for (u32 j = 0; j < CROSS_ODD; j++) {
    VarId half[2];
    ExprId four = mmq_x_load(b, b->x, row, mmq_plus(p, unit, QBLOCK_X, ex_int(p, 4 * j)), true);
    four = ex_op2(p, OP_xor, four, same(b, FOUR_128, 1));
    sum = cross_four(b, &in, four, 1, half, sum);
    for (u32 odd = 0; odd < 2; odd++) {
      ExprId idx[4] = {ex_copy(p, tile), ex_copy(p, unit), ex_copy(p, i),
                       ex_int(p, j + odd * CROSS_ODD)};
      prog_store(p, &in, to, idx, 4, ex_var(p, half[odd]));
    }
  }
  prog_store(p, &in, to, (ExprId[]){tile, unit, i, ex_int(p, CROSS_OFF)}, 4, sum);
  return to;
}

/* Adds 128 to weights. */
static ExprId with_128(const MmqTile *b, ExprId four) {
  Prog *p = b->p;
  if (b->q.is_signed) return ex_op2(p, OP_xor, four, mmq_ints(b, FOUR_128));
  if (b->q.less == 128) return four;
  return ex_op2(p, OP_add, four, mmq_ints(b, (i32)(u32)((128 - b->q.less) * 0x01010101)));
}

/* Crosses a part of some panels of weights. */
void mmq_cross_panels(const MmqTile *b, Cursor in, BufId to, ExprId group, ExprId inside,
                      i64 panels) {
  Prog *p = b->p;
  MmqAt at = {.size = {1, 1}, .group = group};
  BufId w[8] = {0};
  mmq_unpack_units(b, &in, &at);
  ExprId v = tile_unrolled(p, &in, panels, "v", RO_panel), sum = mmq_ints(b, 0), idx[4];
  at.inside = ex_op2(p, OP_add, inside, ex_copy(p, v));
  for (u32 j = 0; j < CROSS_ODD; j++) {
    VarId half[2];
    mmq_load_words(b, &at, in, w, j);
    ExprId four = with_128(b, mmq_four_bytes(b, w, j, ex_int(p, 0)));
    sum = cross_four(b, &in, four, b->q.lanes, half, sum);
    for (u32 odd = 0; odd < 2; odd++)
      prog_store(p, &in, to, idx, mmq_unpacked_at(b, at.place, j + odd * CROSS_ODD, v, idx),
                 ex_var(p, half[odd]));
  }
  ExprId off = ex_op2(p, OP_sub, mmq_ints(b, 128 * 128 * QBLOCK_X), sum);
  prog_store(p, &in, to, idx, mmq_unpacked_at(b, at.place, CROSS_OFF, v, idx), off);
}

static VarId crossed_x(const MmqTile *b, const MmqAt *at, Cursor *in, ExprId i, u32 word) {
  Prog *p = b->p;
  ExprId tile = ex_op2(p, OP_div, ex_copy(p, at->row), ex_int(p, SHORT_ROWS));
  ExprId idx[4] = {tile, ex_copy(p, at->unit), ex_copy(p, i), ex_int(p, word)};
  return tile_let(p, in, mmq_splat(b, ex_load(p, b->crossed, idx, 4)), "x");
}

void mmq_unit_of_crossed(const MmqTile *b, const MmqAt *at, Cursor in, BufId acc) {
  Prog *p = b->p;
  i64 panels = at->size.panels;
  BufId sums = tile_registers(p, DT_i32, b->q.lanes, at->size.rows, panels, "n");
  Cursor to = in;
  ExprId i = tile_unrolled(p, &to, at->size.rows, "p", RO_row);
  VarId x[2] = {crossed_x(b, at, &to, i, CROSS_OFF)};
  ExprId v = tile_unrolled(p, &to, panels, "v", RO_panel),
         off = mmq_unpacked_load(b, at, CROSS_OFF, v);
  reg_store(p, &to, sums, i, v, ex_op2(p, OP_sub, off, ex_var(p, x[0])));
  for (u32 j = 0; j < CROSS_ODD; j++) {
    BufId w[2];
    for (u32 odd = 0; odd < 2; odd++) {
      to = in;
      w[odd] = tile_registers(p, DT_i32, b->q.lanes, 1, panels, "w");
      v = tile_unrolled(p, &to, panels, "v", RO_panel);
      reg_store(p, &to, w[odd], ex_int(p, 0), v, mmq_unpacked_load(b, at, j + odd * CROSS_ODD, v));
    }
    to = in;
    i = tile_unrolled(p, &to, at->size.rows, "p", RO_row);
    for (u32 odd = 0; odd < 2; odd++) x[odd] = crossed_x(b, at, &to, i, j + odd * CROSS_ODD);
    v = tile_unrolled(p, &to, panels, "v", RO_panel);
    ExprId one = ex_op2(p, OP_add, reg_load(p, w[0], ex_int(p, 0), v), ex_var(p, x[1]));
    ExprId other = ex_op2(p, OP_add, reg_load(p, w[1], ex_int(p, 0), v), ex_var(p, x[0]));
    reg_store(p, &to, sums, i, v, ex_op3(p, OP_dot_i16x2, one, other, reg_load(p, sums, i, v)));
  }
  mmq_end_group(b, at, in, sums, acc, 0);
}
