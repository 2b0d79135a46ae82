/* mmq.h: rows of blocks in the order in which kernels read them, and tiles of products with
 * them; shared by lower_mmq.c, mmq_loops.c, mmq_many.c, mmq_cross.c and mmq_pack.c.
 */
#ifndef INGOT_BLOCKS_H
#define INGOT_BLOCKS_H

#include "ir/qblock.h"
#include "pass/kernel/tile.h"
#include "pass/lower/lower.h"

/* Panels that lie together, word by word of the fold: one row of x with all of them reads memory
 * strictly onwards, which is what machines fetch ahead of use. */
enum { PANELS = 4 };

/* Constants of the program, in panels of as many rows as a vector has lanes. n is a row in units of
 * QBLOCK_X elements. */
typedef struct MmqPanels {
  QBlockKind kind;
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
  BufId quant;         /* i32[panels / 4, n, words, 4, lanes]: see MmqPiece. For plain loops
                          u8[panels, n, bytes, 1, lanes], or i8 with signs: of 8 bits byte e is element e,
                          else byte e holds element e and in its upper half e + 16; where units lie along
                          i8[panels, n, lanes, 1, 32] */
  BufId s; /* [panels / 4, n * split, 1 or 2, 4, lanes] factors, and offsets beside them: f16, f32,
              or bytes that d is multiplied with */
  BufId d; /* f16[panels / 4, blocks, 1 or 2, 4, lanes], likewise; 0: s is all */
  bool offsets;
} MmqPanels;

/* Where some bits of elements 4 j to 4 j + 3 are, one in each byte of a word: so many from bit
 * `from` of the byte on are those from bit `to` of the element on. */
typedef struct MmqPiece {
  u32 word, from, bits, to;
} MmqPiece;

/* Bytes of a unit for plain loops. */
static inline u32 unit_bytes(const MmqPanels *q) {
  return q->bits == 8 ? QBLOCK_X : QBLOCK_X / 2;
}

/* mmq_pack.c. Of elements 4 j to 4 j + 3 in a unit of so many words; how many there are. */
u32 mmq_pieces(u32 words, u32 j, MmqPiece piece[8]);
/* signs: elements of 8 bits may have signs. */
MmqPanels mmq_pack(Lower *l, QBlockKind kind, BufId rows, u32 lanes, bool signs);
/* For plain loops; bytes have their signs. Rows from `first` on, `count` of them; along: see
 * Panels. */
MmqPanels mmq_pack_loops(Lower *l, QBlockKind kind, BufId rows, u32 lanes, i64 first, i64 count,
                         bool along);

/* mmq_loops.c: products with bytes where there are no vectors; false: it does not know them. */
bool mmq_loops(Lower *l, Cursor at, const Form *f, const Node *n, QBlockKind kind);

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
enum { UNPACKED_WORDS = QBLOCK_X / 4, UNPACKED_SCALES = 2, ROW_PAD = 2 };

/* Of a unit of crossed elements: the even ones of each four as halves of a word, the odd ones, and
 * what products of sums are too large by. 128 is added to all, so that no half of a sum reaches
 * into the other. */
enum { CROSS_ODD = QBLOCK_X / 4, CROSS_OFF = QBLOCK_X / 2, CROSSED };

typedef struct MmqTile {
  Tile t; /* its lanes are rows of weights, its rows are rows of x */
  Prog *p;
  MmqPanels q;
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
} MmqTile;

/* Where a tile stands. */
typedef struct MmqAt {
  TileSize size;
  ExprId row;           /* the first one */
  ExprId group, inside; /* the first panel: which PANELS, and which of them */
  ExprId unit, block;   /* of the fold */
  ExprId place;         /* of the unit among the unpacked */
} MmqAt;

/* lower_mmq.c */
ExprId mmq_splat(const MmqTile *b, ExprId e); /* the same in all lanes */
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

/* mmq_cross.c */
BufId mmq_cross_x(const MmqTile *b, Cursor in);
void mmq_cross_panels(const MmqTile *b, Cursor in, BufId to, ExprId group, ExprId inside,
                      i64 panels);
void mmq_unit_of_crossed(const MmqTile *b, const MmqAt *at, Cursor in, BufId acc);

/* mmq_many.c. How x is kept for tiles of many rows, and how many of these and of panels a tile
 * has. */
void mmq_unpack_panels(const MmqTile *b, Cursor in, BufId to, ExprId group, ExprId inside,
                       i64 panels);
void mmq_prepare_rows(MmqTile *b, Cursor at);

#endif
