/* blocks.h: rows of blocks in the order in which kernels read them, and tiles of products with
 * them; shared by lower_blocks.c, blocks_loops.c, blocks_many.c, blocks_cross.c and blocks_pack.c.
 */
#ifndef INGOT_BLOCKS_H
#define INGOT_BLOCKS_H

#include "ir/block.h"
#include "pass/kernel/tile.h"
#include "pass/lower/lower.h"

/* Panels that lie together, word by word of the fold: one row of x with all of them reads memory
 * strictly onwards, which is what machines fetch ahead of use. */
enum { PANELS = 4 };

/* Constants of the program, in panels of as many rows as a vector has lanes. n is a row in units of
 * BLOCK_X elements. */
typedef struct Panels {
  BlockKind kind;
  u32 lanes;
  bool loops;          /* for plain loops: see quant; panels lie one by one, not PANELS together */
  bool along;          /* likewise, and elements of a unit lie beside each other */
  i64 rows, n, blocks; /* of a row */
  u32 words;           /* vectors of four bytes a lane for a unit: as many as an element has bits,
                          or 8 where it is unpacked */
  u32 group, split;    /* elements of a group, groups of a unit */
  i64 less;            /* an element is the unsigned number in memory less this */
  bool is_signed;      /* bytes are the elements, with their signs: less is 0 */
  u32 bits;            /* that number has */
  BufId quant;         /* i32[panels / 4, n, words, 4, lanes]: see BlockPiece. For plain loops
                          u8[panels, n, bytes, 1, lanes], or i8 with signs: of 8 bits byte e is element e,
                          else byte e holds element e and in its upper half e + 16; where units lie along
                          i8[panels, n, lanes, 1, 32] */
  BufId s; /* [panels / 4, n * split, 1 or 2, 4, lanes] factors, and offsets beside them: f16, f32,
              or bytes that d is multiplied with */
  BufId d; /* f16[panels / 4, blocks, 1 or 2, 4, lanes], likewise; 0: s is all */
  bool offsets;
} Panels;

/* Where some bits of elements 4 j to 4 j + 3 are, one in each byte of a word: so many from bit
 * `from` of the byte on are those from bit `to` of the element on. */
typedef struct BlockPiece {
  u32 word, from, bits, to;
} BlockPiece;

/* Bytes of a unit for plain loops. */
static inline u32 unit_bytes(const Panels *q) {
  return q->bits == 8 ? BLOCK_X : BLOCK_X / 2;
}

/* blocks_pack.c. Of elements 4 j to 4 j + 3 in a unit of so many words; how many there are. */
u32 blocks_pieces(u32 words, u32 j, BlockPiece piece[8]);
/* signs: elements of 8 bits may have signs. */
Panels blocks_pack(Lower *l, BlockKind kind, BufId rows, u32 lanes, bool signs);
/* For plain loops; bytes have their signs. Rows from `first` on, `count` of them; along: see
 * Panels. */
Panels blocks_pack_loops(Lower *l, BlockKind kind, BufId rows, u32 lanes, i64 first, i64 count,
                         bool along);

/* blocks_loops.c: products with bytes where there are no vectors; false: it does not know them. */
bool blocks_loops(Lower *l, Cursor at, const Form *f, const Node *n, BlockKind kind);

/* Rows of x in a tile, of which each has a register or two for its sums, by the registers there
 * are; and in those for the rest. Where products are added by pairs, sums in f32 are wanted so
 * seldom that they may lie in memory. A single row goes with PANELS of weights. */
enum { FULL_ROWS = 8, SHORT_ROWS = 4 };

/* What the lower half of two sums in one register is too large by, which makes it positive. */
enum { JOINED_BIAS = 0x8000 };

/* Four bytes of 128. */
static const i64 FOUR_128 = (i32)0x80808080;

/* Of an unpacked unit: its elements, four to a word, with their signs if the format has any; the
 * scales of two groups, if these are integers, of each as both halves of a word where products are
 * added by pairs, else both as the halves of one; and what the sums of products with x, to which
 * 128 is added then, begin with. Rows of such x lie a little apart, as rows that are a multiple of
 * a way of the first cache apart meet in the same few lines of it. */
enum { UNPACKED_WORDS = BLOCK_X / 4, UNPACKED_SCALES = 2, ROW_PAD = 2 };

/* Of a unit of crossed elements: the even ones of each four as halves of a word, the odd ones, and
 * what products of sums are too large by. 128 is added to all, so that no half of a sum reaches
 * into the other. */
enum { CROSS_ODD = BLOCK_X / 4, CROSS_OFF = BLOCK_X / 2, CROSSED };

typedef struct BlockTile {
  Tile t; /* its lanes are rows of weights, its rows are rows of x */
  Prog *p;
  Panels q;
  BufId x, by, sum; /* by, sum 0: x is floats */
  BufId unpacked;   /* a part of the panel is in there, unpacked, or of some, crossed; 0: none */
  BufId kept;       /* f32[rows, PANELS, lanes]: sums of the parts before this one; 0: it is all */
  ExprId first, steps; /* of the part: blocks if these have factors and several units, else units */
  BufId crossed;       /* x is in there, i32[tiles, units, SHORT_ROWS, CROSSED]; 0: it is not */
  BufId fours;         /* x is in there, i32[rows, units + ROW_PAD, UNPACKED_WORDS]; 0: it is not */
  bool is_shifted;     /* and 128 is added */
  bool unpacks;        /* panels are unpacked for tiles of many rows */
  BufId off;      /* i32[rows, groups]: what sums of tiles begin with; 0: made from `sum` there; or
                     i32[rows, units], where sums of two groups are halves of a register */
  i64 rows, wide; /* of x in a tile where there are many, and panels it has then */
  i64 ahead;      /* bytes by which weights that a single row reads are fetched early; 0: not */
} BlockTile;

/* Where a tile stands. */
typedef struct BlockAt {
  TileSize size;
  ExprId row;           /* the first one */
  ExprId group, inside; /* the first panel: which PANELS, and which of them */
  ExprId unit, block;   /* of the fold */
  ExprId place;         /* of the unit among the unpacked */
} BlockAt;

/* lower_blocks.c */
ExprId blocks_spread(const BlockTile *b, ExprId e); /* the same in all lanes */
ExprId blocks_plus(Prog *p, ExprId a, i64 k, ExprId b);
ExprId blocks_ints(const BlockTile *b, i64 x);
ExprId blocks_panel_load(const BlockTile *b, const BlockAt *at, BufId from, ExprId v, ExprId step,
                         u32 word);
ExprId blocks_x_load(const BlockTile *b, BufId from, ExprId row, ExprId at, bool four);
ExprId blocks_minus(Prog *p, ExprId x);
u32 blocks_unpacked_words(const BlockTile *b);
u32 blocks_unpacked_at(const BlockTile *b, ExprId place, u32 word, ExprId v, ExprId idx[4]);
ExprId blocks_rows_of_tiles(const BlockTile *b);
i64 blocks_step_units(const BlockTile *b);
void blocks_unpack_units(const BlockTile *b, Cursor *in, BlockAt *at);
void blocks_load_words(const BlockTile *b, const BlockAt *at, Cursor in, BufId *w, u32 j);
ExprId blocks_four_bytes(const BlockTile *b, const BufId *w, u32 j, ExprId v);
ExprId blocks_scale_pair(const BlockTile *b, const BlockAt *at, ExprId v, u32 g, u32 h, i64 up);
ExprId blocks_too_much(const BlockTile *b, ExprId row, ExprId group);
u32 blocks_most_pairs(const BlockTile *b);
ExprId blocks_unpacked_load(const BlockTile *b, const BlockAt *at, u32 word, ExprId v);
void blocks_end_group(const BlockTile *b, const BlockAt *at, Cursor in, BufId sums, BufId acc,
                      u32 g);

/* blocks_cross.c */
BufId blocks_cross_x(const BlockTile *b, Cursor in);
void blocks_cross_panels(const BlockTile *b, Cursor in, BufId to, ExprId group, ExprId inside,
                         i64 panels);
void blocks_unit_of_crossed(const BlockTile *b, const BlockAt *at, Cursor in, BufId acc);

/* blocks_many.c. How x is kept for tiles of many rows, and how many of these and of panels a tile
 * has. */
void blocks_unpack_panels(const BlockTile *b, Cursor in, BufId to, ExprId group, ExprId inside,
                          i64 panels);
void blocks_prepare_rows(BlockTile *b, Cursor at);

#endif
