/* blocks.h: rows of blocks in the order in which kernels read them; shared by lower_blocks.c,
 * blocks_loops.c and blocks_pack.c. */
#ifndef INGOT_BLOCKS_H
#define INGOT_BLOCKS_H

#include "ir/block.h"
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
  i64 rows, n, blocks; /* of a row */
  u32 words;           /* vectors of four bytes a lane for a unit: 8 with 8 bits, else 4, and */
  u32 high;            /* as many as an element has bits above its lower 4 */
  u32 group, split;    /* elements of a group, groups of a unit */
  i64 less;            /* an element is the unsigned number in memory less this */
  bool is_signed;      /* bytes are the elements, with their signs: less is 0 */
  u32 bits;            /* that number has */
  BufId quant; /* i32[panels / 4, n, words + high, 4, lanes]. Of 8 bits word j holds elements 4 j to
                  4 j + 3. Else it holds their lower 4 bits, and in the upper halves of its bytes
                  those of elements 16 behind. Behind these words are the upper bits: in each
                  byte those of 4 j + i follow each other by j, as far as they fit. For plain
                  loops u8[panels, n, bytes, 1, lanes], or i8 with signs: of 8 bits byte e is
                  element e, else byte e holds element e and in its upper half e + 16 */
  BufId s, o; /* [panels / 4, n * split, 1, 4, lanes] factors and offsets: f16, f32, or bytes that d
                 and m are multiplied with; o 0: none */
  BufId d, m; /* f16[panels / 4, blocks, 1, 4, lanes]; 0: s and o are all */
} Panels;

/* Where the upper bits of elements 4 j to 4 j + 3 are: in which word behind the others, from which
 * bit of its bytes on. */
static inline u32 high_word(const Panels *q, u32 j) {
  return q->words + j / (8 / q->high);
}
static inline u32 high_bit(const Panels *q, u32 j) {
  return j % (8 / q->high) * q->high;
}

/* Bytes of a unit for plain loops. */
static inline u32 unit_bytes(const Panels *q) {
  return q->words * 4;
}

/* blocks_pack.c. signs: elements of 8 bits may have signs. */
Panels blocks_pack(Lower *l, BlockKind kind, BufId rows, u32 lanes, bool signs);
/* For plain loops; bytes have their signs. Rows from `first` on, `count` of them. */
Panels blocks_pack_loops(Lower *l, BlockKind kind, BufId rows, u32 lanes, i64 first, i64 count);

/* blocks_loops.c: products with bytes where there are no vectors; false: it does not know them. */
bool blocks_loops(Lower *l, Cursor at, const Form *f, const Node *n, BlockKind kind);

#endif
