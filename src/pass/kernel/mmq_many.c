/* mmq_many.c: prepares x and weights for tiles of many rows.
 *
 * In: a matmul with quantized weights. Out: loops before its tiles that store x in the order the
 * tiles read, and unpack panels of weights once for all rows. Both are scratch buffers of the
 * kernel. Tiles add the same integers as a single row, which reads x and weights in place, so
 * results are bit-exact.
 */
#include "pass/kernel/mmq.h"

/* Converts four unsigned bytes to the signed values they encode. */
static ExprId with_signs(const MmqTile *b, ExprId four) {
  Prog *p = b->p;
  if (!b->is_shifted) return four;
  ExprId up = ex_op2(p, OP_add, four, mmq_ints(b, (128 - b->q.less) * 0x01010101));
  return ex_op2(p, OP_xor, up, mmq_ints(b, FOUR_128));
}

/* Correction for adding 128 to x, which makes it unsigned: -128 times the sum of the weights, as
 * initial value of the sums. word: the unpacked unit. */
static ExprId products_with_128(const MmqTile *b, const VarId *word) {
  Prog *p = b->p;
  bool scaled = qblock_is_scaled(b->q.kind);
  u32 fours = b->q.group / 4, most = mmq_most_pairs(b);
  ExprId sum = mmq_ints(b, 0);
  for (u32 j = 0, n; j < UNPACKED_WORDS; j += n) {
    ExprId pairs = mmq_ints(b, 0);
    n = most < fours - j % fours ? most : fours - j % fours;
    for (u32 k = 0; k < n; k++)
      pairs = ex_op3(p, OP_maddubs, mmq_ints(b, FOUR_128), ex_var(p, word[j + k]), pairs);
    ExprId by = scaled ? ex_var(p, word[UNPACKED_WORDS + j / fours]) : mmq_ints(b, 0x00010001);
    sum = ex_op3(p, OP_dot_i16x2, pairs, by, sum);
  }
  return mmq_negate(p, sum);
}

static ExprId unpacked_scales(const MmqTile *b, const MmqAt *at, ExprId v, u32 word) {
  bool pairs = b->t.l->pass->maddubs;
  return mmq_scale_pair(b, at, v, pairs ? word : 0, pairs ? word : 1, 0);
}

/* Unpacks a part of some panels once, for all tiles of rows. */
void mmq_unpack_panels(const MmqTile *b, Cursor in, BufId to, ExprId group, ExprId inside,
                       i64 panels) {
  Prog *p = b->p;
  MmqAt at = {.size = {1, 1}, .group = group};
  BufId w[8] = {0};
  mmq_unpack_units(b, &in, &at);
  VarId word[UNPACKED_WORDS + UNPACKED_SCALES];
  u32 words = mmq_unpacked_words(b) - b->is_shifted;
  ExprId v = tile_unrolled(p, &in, panels, "v", RO_panel);
  at.inside = ex_op2(p, OP_add, inside, ex_copy(p, v));
  for (u32 j = 0; j <= words; j++) {
    ExprId one = ex_int(p, 0), idx[4], e;
    if (j == words && !b->is_shifted) continue;
    if (j < UNPACKED_WORDS) mmq_load_words(b, &at, in, w, j);
    if (j < words) {
      e = j < UNPACKED_WORDS ? with_signs(b, mmq_four_bytes(b, w, j, one))
                             : unpacked_scales(b, &at, one, j - UNPACKED_WORDS);
      word[j] = tile_let(p, &in, e, "w");
    }
    prog_store(p, &in, to, idx, mmq_unpacked_at(b, at.place, j, v, idx),
               j < words ? ex_var(p, word[j]) : products_with_128(b, word));
  }
}

/* i32[rows, groups]: negated contribution of the zero point of the weights, the initial value of
 * sums. Or i32[rows, units] with both groups of a unit as halves. */
static BufId offs_of_x(const MmqTile *b, Cursor in) {
  Prog *p = b->p;
  bool joined = qblock_is_scaled(b->q.kind) && b->unpacks;
  Dim n = b->t.f.axis[0].hi, dim[2] = {n, joined ? b->q.n : b->q.n * b->q.split};
  BufId to = prog_add_buf(p, BS_local, DT_i32, dim, 2, str_of(p->c, "off"));
  ExprId row = ex_var(p, for_parallel(p, &in, ex_int(p, 0), mmq_rows_of_tiles(b), "r"));
  ExprId at = ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_int(p, dim[1]), "g")), e;
  if (joined) {
    ExprId up = mmq_bias(b, row, mmq_plus(p, at, 2, ex_int(p, 1)));
    up = ex_op2(p, OP_shl, up, ex_const(p, DT_i32, (Scalar){.i = 16}));
    e = ex_op2(p, OP_add, up, mmq_bias(b, row, mmq_plus(p, at, 2, ex_int(p, 0))));
    e = ex_op2(p, OP_add, e, ex_const(p, DT_i32, (Scalar){.i = JOINED_BIAS}));
  } else {
    e = mmq_bias(b, row, ex_copy(p, at));
  }
  prog_store(p, &in, to, (ExprId[]){row, at}, 2, e);
  return to;
}

/* i32[rows, units, words]: x with four bytes per word, for OP_maddubs. */
static BufId fours_of_x(const MmqTile *b, Cursor in) {
  Prog *p = b->p;
  Dim n = b->t.f.axis[0].hi, dim[3] = {n, b->q.n + ROW_PAD, UNPACKED_WORDS};
  BufId to = prog_add_buf(p, BS_local, DT_i32, dim, 3, str_of(p->c, "fours"));
  ExprId idx[3] = {ex_var(p, for_parallel(p, &in, ex_int(p, 0), mmq_rows_of_tiles(b), "r"))};
  idx[1] = ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_int(p, b->q.n), "u"));
  idx[2] = ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_int(p, UNPACKED_WORDS), "j"));
  ExprId from = ex_op2(p, OP_mul, ex_copy(p, idx[2]), ex_int(p, 4));
  ExprId e = mmq_x_load(b, b->x, idx[0], mmq_plus(p, idx[1], QBLOCK_X, from), true);
  if (b->is_shifted) e = ex_op2(p, OP_xor, e, ex_const(p, DT_i32, (Scalar){.i = FOUR_128}));
  prog_store(p, &in, to, idx, 3, e);
  return to;
}

static bool has_few_rows(const MmqTile *b) {
  Dim n = b->t.f.axis[0].hi;
  return dim_is_const(n) && n < 2 * FULL_ROWS;
}

/* Unpack panels once for all rows of x, instead of in every tile? In-tile unpacking is cheap if the
 * target has dot_i8x4 and elements are not split across words. */
static bool is_unpacked(const MmqTile *b) {
  bool pays = b->t.l->pass->maddubs || 8 % b->q.words;
  return pays && b->by && b->q.words < UNPACKED_WORDS && !has_few_rows(b);
}

static bool is_crossed(const MmqTile *b) {
  const PassCtx *u = b->t.l->pass;
  const Target *t = u->target;
  bool words =
      !(t->has & CAP_maddubs) && t->cost->dot_i16x2_time > 0; /* only int16 multiply-adds */
  bool pays =
      u->maddubs ? b->q.is_signed : words && b->q.split == 1 && !qblock_is_scaled(b->q.kind);
  return pays && u->aim == AIM_time && b->by && !has_few_rows(b);
}

/* Do tiles have two panels that share loads of x? Not if dot_i8x4 exists and tiles do not unpack:
 * then each product needs its own load anyway. With two integer scales per unit, sums are finished
 * so rarely that loads dominate. */
static bool has_two_panels(const MmqTile *b) {
  const PassCtx *u = b->t.l->pass;
  if (is_crossed(b)) return true;
  if (u->maddubs) return b->by && qblock_is_scaled(b->q.kind) && !has_few_rows(b);
  bool ready = b->q.words == 8 || (qblock_is_scaled(b->q.kind) && is_unpacked(b));
  return u->target->regs > 16 && b->by && ready;
}

/* Stores x for tiles of many rows, and chooses the rows and panels of a tile. */
void mmq_prepare_rows(MmqTile *b, Cursor at) {
  const Target *t = b->t.l->pass->target;
  bool pairs = b->t.l->pass->maddubs;
  b->rows = t->lanes < 4 ? 1 : t->regs > 16 || pairs ? FULL_ROWS : SHORT_ROWS;
  b->wide = 1;
  if (b->rows == 1) return;
  if (has_two_panels(b)) {
    b->rows = SHORT_ROWS;
    b->wide = 2;
  }
  if (is_crossed(b)) {
    b->crossed = mmq_cross_x(b, at);
    return;
  }
  b->unpacks = is_unpacked(b);
  if (b->unpacks && pairs) {
    b->is_shifted = b->q.less != 0 && (b->q.split == 1 || qblock_is_scaled(b->q.kind));
    b->fours = fours_of_x(b, at);
  } else if (b->by && b->q.less && !has_few_rows(b)) {
    b->off = offs_of_x(b, at);
  }
}
