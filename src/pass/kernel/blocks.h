/* blocks.h: rows of blocks in the order in which kernels read them; shared by lower_blocks.c and
 * blocks_pack.c. */
#ifndef INGOT_BLOCKS_H
#define INGOT_BLOCKS_H

#include "ir/block.h"
#include "pass/lower/lower.h"

/* Constants of the program, in panels of as many rows as a vector has lanes. n is a row in units of
 * BLOCK_X elements. */
typedef struct Panels {
  BlockKind kind;
  u32 lanes;
  i64 rows, n, blocks; /* of a row */
  u32 words;           /* vectors of four bytes a lane that hold a unit: 4 with 4 bits, 8 with 8 */
  u32 group, split;    /* elements of a group, groups of a unit */
  i64 less;            /* an element is the unsigned number in memory less this */
  u32 bits;            /* that number has */
  BufId quant;         /* i32[panels, n * words, lanes]: of four bits, word j holds elements 4 j to
                          4 j + 3 in the lower halves of its bytes and those 16 behind in the upper */
  BufId s, o; /* [panels, n * split, lanes] factors and offsets: f16, f32, or bytes that d and m
                 are multiplied with; o 0: none */
  BufId d, m; /* f16[panels, blocks, lanes]; 0: s and o are all */
} Panels;

/* blocks_pack.c */
Panels blocks_pack(Lower *l, BlockKind kind, BufId rows, u32 lanes);

#endif
