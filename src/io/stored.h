/* stored.h: tensors as containers of weights hold them. */
#ifndef INGOT_STORED_H
#define INGOT_STORED_H

#include "ir/block.h"

typedef struct Stored Stored; /* a tensor in a file */

enum { STORED_RANK = 8 };

struct Stored {
  Str name;
  BlockKind kind; /* of its elements, a row of ir/blocks.def */
  u32 rank;
  i64 dim[STORED_RANK]; /* outermost first, in elements */
  const u8 *at;         /* in the bytes of the file; not aligned for its type */
  u64 bytes;
};
typedef VEC(Stored) StoredVec;

#endif
