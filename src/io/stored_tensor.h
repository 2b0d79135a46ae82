/* stored_tensor.h: a tensor in a weight file. */
#ifndef INGOT_STORED_TENSOR_H
#define INGOT_STORED_TENSOR_H

#include "ir/quant/qblock.h"

typedef struct StoredTensor StoredTensor;

enum { STORED_RANK = 8 };

struct StoredTensor {
  Str name;
  QBlockKind kind; /* a row of ir/quant/qblocks.def */
  u32 rank;
  i64 dim[STORED_RANK]; /* outermost first, in elements */
  const u8 *at;         /* in the bytes of the file; unaligned */
  u64 bytes;
};
typedef VEC(StoredTensor) StoredTensors;

#endif
