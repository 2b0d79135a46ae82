/* packed.h: matrices of few bits with scales, as their files have them. */
#ifndef INGOT_ONNX_PACKED_H
#define INGOT_ONNX_PACKED_H

#include "front/onnx/onnx_builder.h"
#include "ir/qblock.h"

/* Rows of codes, 0 to 2^bits - 1. Element (r, i) is scale * (code - zero), where QBLOCK_X codes in
 * a row have one scale and one zero. */
typedef struct PackedRows {
  i64 rows, n;
  u32 bits;
  u8 *code; /* in scratch, as the others are, until packed_value */
  float *scale, *zero;
  Mark before;
} PackedRows;

/* Can such a matrix, with a scale for `block` elements, stay as it is, and does that pay? exact: as
 * for packed_value. */
bool packed_fits(i64 rows, i64 n, i64 block, i64 bits, bool exact);
PackedRows packed_new(Ctx *c, i64 rows, i64 n, i64 bits);
/* f32[rows, n]. exact: products with it are those of floats. */
Val packed_value(Graph *g, const PackedRows *p, bool exact);

#endif
