/* i16.h: plan of the family i16, shared by lower_i16.c (loops that C compilers vectorize) and
 * lower_i16_tile.c (register tiles of microcontrollers). */
#ifndef INGOT_I16_H
#define INGOT_I16_H

#include "pass/kernel/tile.h"

enum { TILE_STEP = 4 }; /* elements of a reduction that a register tile unrolls */

/* A form as rows and columns. */
typedef struct I16Plan {
  u32 w, x;        /* operands: the constant one, the other */
  u32 row, col;    /* axes; row may be FORM_AXES: a single row */
  i64 rows, cols;  /* extents of these axes */
  i64 sum, padded; /* length of the reduction, and with zero padding */
  i64 block_rows, block_cols;
  bool by_rows;  /* the result is contiguous along rows */
  bool guarded;  /* windows may leave the image */
  bool micro;    /* register tiles */
  bool pairs;    /* register tiles of dot_i16x2 */
  i64 tile_cols; /* columns whose weights are interleaved; 1: one row of weights per column */
  u32 slide;     /* reduction axis along which windows of neighboring rows overlap, see
                    lower_i16_tile.c; FORM_AXES: none */
  i64 stride;    /* window positions from one row to the next */
} I16Plan;

i64 i16_extent(const Form *f, u32 axis);
/* Halves `most` until it divides n. */
i64 i16_part(i64 n, i64 most);
/* 8-bit type that holds all elements; DT_none: there is none. */
DType i16_byte_type(const Tensor *t);
/* Do the elements of operand k fit in int16? int8 does, also minus a zero point. */
bool i16_fits(const Lower *l, const Form *f, u32 k);
/* false: the form is not of the family. */
bool i16_plan(const Lower *l, const Form *f, I16Plan *s);
/* Order in which the axes of the weights are stored: reduction axes last. Returns their number. */
u32 i16_weight_order(const Form *f, const I16Plan *s, u32 *axis);
/* The weights in that order, padded with zeros: [columns / tile_cols][padded * tile_cols]. */
BufId i16_weights(Lower *l, const Form *f, const I16Plan *s);
/* Opens loops over the reduction axes except `but`, around a copy: nothing is summed, so that they
 * have no role. */
void i16_copy_loops(Nest *x, u32 but);

/* lower_i16_tile.c */
void i16_tile_plan(const Lower *l, const Form *f, I16Plan *s); /* sets all but the axes */
void i16_tile_write(Lower *l, Cursor at, const Form *f, const I16Plan *s);

/* lower_window.c */
bool window_choose(Lower *l, const Form *f, KernelChoice *r);
void window_write(Lower *l, Cursor at, const Form *f, KernelChoice *r);

#endif
