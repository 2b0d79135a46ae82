/* mmq.h: matmul with quantized weights (family matmul_quant); shared by lower_mmq.c and mmq_*.c.
 *
 * Terms: a quant block is the storage unit of a weight format, with one or two scales. A group
 * shares one scale. A unit is QBLOCK_X consecutive elements of a row, at least one group. x is the
 * other operand: int8 with scales, or f32.
 */
#ifndef INGOT_BLOCKS_H
#define INGOT_BLOCKS_H

#include "ir/quant/qblock.h"
#include "pass/kernel/tile.h"
#include "pass/form/nest.h"

/* Panels stored together, interleaved word by word of the reduction. One row of x with all of them
 * reads memory sequentially, which suits the hardware prefetcher. */
enum { PANELS = 4 };

/* Weights as constants of the program, in panels of `lanes` rows. n counts units of a row. */
typedef struct MmqPanels {
  QBlockKind kind;
  u32 lanes;
  bool loops; /* scalar loops, see quant; panels are separate, not PANELS together */
  bool along; /* scalar loops: elements of a unit are contiguous */
  i64 slices,
      turns; /* threads of a GPU, see lower_block_rows.c: thread slice * lanes + lane has units
                slice, slice + slices, ... of a row, `turns` of them, zeros at the end */
  i64 rows, n, blocks; /* quant blocks of a row */
  u32 words;        /* vectors of four bytes per lane in a unit: one per bit of an element, or 8 if
                       unpacked */
  u32 group, split; /* elements of a group, groups of a unit */
  i64 less;         /* an element is the stored unsigned integer minus this */
  bool is_signed;   /* stored bytes are the signed elements; less is 0 */
  u32 bits;         /* bits of the stored integer */
  BufId quant; /* i32[panels / 4, n, words, 4, lanes]: see MmqPiece. For scalar loops u8[panels, n,
                  bytes, 1, lanes], or i8 if signed. For slices i32[panels, turns, words, threads],
                  s [panels, turns, split * (1 or 2), threads], d without the fourth dimension. With
                  8 bits, byte e is element e; otherwise it holds element e, and e + 16 in its upper
                  half. If `along`: i8[panels, n, lanes, 1, 32] */
  BufId s;     /* [panels / 4, n * split, 1 or 2, 4, lanes]: scales, with offsets if 2; f16, f32, or
                  bytes that multiply d */
  BufId d; /* f16[panels / 4, blocks, 1 or 2, 4, lanes]: scales of quant blocks, with offsets if 2;
              0: s is complete */
  bool offsets;
} MmqPanels;

/* Position of some bits of elements 4 j to 4 j + 3, one per byte of a word: `bits` bits from bit
 * `from` of the byte are the bits from bit `to` of the element. */
typedef struct MmqPiece {
  u32 word, from, bits, to;
} MmqPiece;

/* Bytes of a unit for scalar loops. */
static inline u32 unit_bytes(const MmqPanels *q) {
  return q->bits == 8 ? QBLOCK_X : QBLOCK_X / 2;
}

/* mmq_pack.c. Lists the pieces of elements 4 j to 4 j + 3 in a unit of so many words; returns their
 * number. */
u32 mmq_pieces(u32 words, u32 j, MmqPiece piece[8]);
/* signs: 8-bit elements may be signed. */
MmqPanels mmq_pack(Lower *l, QBlockKind kind, BufId rows, u32 lanes, bool signs);
MmqPanels mmq_pack_slices(Lower *l, QBlockKind kind, BufId rows, u32 lanes, i64 slices, i64 turns);
/* Packs `count` rows from `first` on for scalar loops, as signed bytes. along: see MmqPanels. */
MmqPanels mmq_pack_loops(Lower *l, QBlockKind kind, BufId rows, u32 lanes, i64 first, i64 count,
                         bool along);

/* mmq_loops.c: int8 x on targets without vectors; false: format not supported. */
bool mmq_loops(Lower *l, Cursor at, const Form *f, const Node *n, QBlockKind kind);

/* Rows of x in a tile, and in a tile for the remainder. Each row takes one or two registers for its
 * sums. With maddubs, f32 sums are needed so rarely that they may stay in memory. A single row
 * takes PANELS panels of weights. */
enum { FULL_ROWS = 8, SHORT_ROWS = 4 };

/* Bias of the lower of two 16-bit sums in one register; makes it non-negative. */
enum { JOINED_BIAS = 0x8000 };

/* Four bytes of 128. */
static const i64 FOUR_128 = (i32)0x80808080;

/* Words of an unpacked unit. First its elements, four per word, signed if the format is. Then the
 * integer scales of two groups: with maddubs each one in both halves of a word, otherwise both in
 * one word. Then the initial sums, because 128 is added to x. ROW_PAD separates rows of x: at a
 * distance of a multiple of an L1 way, rows compete for the same cache sets. */
enum { UNPACKED_WORDS = QBLOCK_X / 4, UNPACKED_SCALES = 2, ROW_PAD = 2 };

/* Words of a crossed unit (mmq_cross.c): the even elements of each four as halves of a word, the
 * odd ones, and the correction of the products. 128 is added to all, so that halves do not carry
 * into each other. */
enum { CROSS_ODD = QBLOCK_X / 4, CROSS_OFF = QBLOCK_X / 2, CROSSED };

typedef struct MmqTile {
  Tile t; /* lanes are rows of weights, rows are rows of x */
  Prog *p;
  MmqPanels q;
  BufId x, by, sum; /* by: scales, sum: sums of x; 0: x is float */
  BufId unpacked;   /* weights of the part in unpacked or crossed form; 0: none */
  BufId
      kept; /* f32[rows, PANELS, lanes]: sums of earlier parts of the reduction; 0: one part only */
  ExprId first, steps; /* range of the part: in quant blocks if these have scales and several units,
                          else in units */
  BufId crossed;       /* i32[tiles, units, SHORT_ROWS, CROSSED]: crossed x; 0: none */
  BufId fours; /* i32[rows, units + ROW_PAD, UNPACKED_WORDS]: x as words of four bytes; 0: none */
  bool is_shifted; /* 128 is added to `fours` */
  bool unpacks;    /* panels are unpacked once for tiles of many rows */
  BufId off; /* i32[rows, groups]: initial sums of tiles; 0: computed from `sum`. i32[rows, units]
                if the sums of two groups share a register */
  i64 rows, wide;     /* rows and panels of a tile when there are many rows of x */
  i64 prefetch_bytes; /* prefetch distance in bytes for the weights of a single row; 0: no prefetch
                       */
} MmqTile;

/* Position of a tile. */
typedef struct MmqAt {
  TileSize size;
  ExprId row;           /* first row */
  ExprId group, inside; /* first panel: number of its group of PANELS, and panel within it */
  ExprId unit, block;   /* position in the reduction */
  ExprId place;         /* number of the unit among the unpacked ones */
} MmqAt;

/* lower_mmq.c */
ExprId mmq_splat(const MmqTile *b, ExprId e); /* splat */
ExprId mmq_plus(Prog *p, ExprId a, i64 k, ExprId b);
ExprId mmq_ints(const MmqTile *b, i64 x);
ExprId mmq_panel_load(const MmqTile *b, const MmqAt *at, BufId from, ExprId v, ExprId step,
                      u32 word);
ExprId mmq_x_load(const MmqTile *b, BufId from, ExprId row, ExprId at, bool four);
ExprId mmq_negate(Prog *p, ExprId x);
u32 mmq_unpacked_words(const MmqTile *b);
u32 mmq_unpacked_at(const MmqTile *b, ExprId place, u32 word, ExprId v, ExprId idx[4]);
ExprId mmq_rows_of_tiles(const MmqTile *b);
i64 mmq_step_units(const MmqTile *b);
void mmq_unpack_units(const MmqTile *b, Cursor *in, MmqAt *at);
void mmq_load_words(const MmqTile *b, const MmqAt *at, Cursor in, BufId *w, u32 j);
ExprId mmq_four_bytes(const MmqTile *b, const BufId *w, u32 j, ExprId v);
ExprId mmq_scale_pair(const MmqTile *b, const MmqAt *at, ExprId v, u32 g, u32 h, i64 up);
ExprId mmq_bias(const MmqTile *b, ExprId row, ExprId group);
u32 mmq_most_pairs(const MmqTile *b);
ExprId mmq_unpacked_load(const MmqTile *b, const MmqAt *at, u32 word, ExprId v);
void mmq_end_group(const MmqTile *b, const MmqAt *at, Cursor in, BufId sums, BufId acc, u32 g);

/* lower_block_rows.c: f32 x, on a GPU */
void block_rows_mmq(Lower *l, Cursor at, const Form *f, QBlockKind kind, BufId x, BufId w);

/* mmq_cross.c */
BufId mmq_cross_x(const MmqTile *b, Cursor in);
void mmq_cross_panels(const MmqTile *b, Cursor in, BufId to, ExprId group, ExprId inside,
                      i64 panels);
void mmq_unit_of_crossed(const MmqTile *b, const MmqAt *at, Cursor in, BufId acc);

/* mmq_many.c: prepares x for tiles of many rows, and chooses the rows and panels of a tile. */
void mmq_unpack_panels(const MmqTile *b, Cursor in, BufId to, ExprId group, ExprId inside,
                       i64 panels);
void mmq_prepare_rows(MmqTile *b, Cursor at);

#endif
