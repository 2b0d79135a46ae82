/* stored_tensor.h: tensors as containers of weights hold them. */
#ifndef INGOT_STORED_TENSOR_H
#define INGOT_STORED_TENSOR_H

#include "ir/qblock.h"

typedef struct StoredTensor StoredTensor; /* a tensor in a file */

enum { STORED_RANK = 8 };

struct StoredTensor {
  Str name;
  QBlockKind kind; /* of its elements, a row of ir/qblocks.def */
  u32 rank;
  i64 dim[STORED_RANK]; /* outermost first, in elements */
  const u8 *at;         /* in the bytes of the file; not aligned for its type */
  u64 bytes;
};
typedef VEC(StoredTensor) StoredTensors;

#endif
