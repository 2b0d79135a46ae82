/* packed.h: matrices of low-bit integers with scales. */
#ifndef INGOT_ONNX_PACKED_H
#define INGOT_ONNX_PACKED_H

#include "front/onnx/onnx_builder.h"
#include "ir/quant/qblock.h"

/* Rows of codes, 0 to 2^bits - 1. Element (r, i) is scale * (code - zero); QBLOCK_X consecutive
 * codes share scale and zero. */
typedef struct PackedRows {
  i64 rows, n;
  u32 bits;
  u8 *code; /* all arrays live in scratch until packed_value */
  float *scale, *zero;
  Mark before;
} PackedRows;

/* Can a matrix with one scale per `block` elements stay packed, and does that pay? */
bool packed_fits(i64 rows, i64 n, i64 block, i64 bits, bool exact);
PackedRows packed_new(Ctx *c, i64 rows, i64 n, i64 bits);
/* f32[rows, n]. exact: products are computed in floats, not in int8. */
Val packed_value(Graph *g, const PackedRows *p, bool exact);

#endif
