/* strided_copy.c: copies boxes of elements between arrays with arbitrary strides.
 *
 * In: extents, and for both sides an address and byte strides. Out: every element of the box is
 * copied. Method: row by row along the last axis; rows contiguous on both sides use memcpy. */
#include "ir/ir.h"

#include <string.h>

static void copy_row(u8 *to, i64 sto, const u8 *from, i64 sfrom, i64 n, u32 size) {
  if (sto == (i64)size && sfrom == (i64)size) {
    memcpy(to, from, (size_t)n * size);
    return;
  }
  switch (size) { /* constant sizes compile to a load and a store */
  case 1:
    for (i64 i = 0; i < n; i++) to[i * sto] = from[i * sfrom];
    break;
  case 4:
    for (i64 i = 0; i < n; i++) memcpy(to + i * sto, from + i * sfrom, 4);
    break;
  case 8:
    for (i64 i = 0; i < n; i++) memcpy(to + i * sto, from + i * sfrom, 8);
    break;
  default:
    for (i64 i = 0; i < n; i++) memcpy(to + i * sto, from + i * sfrom, size);
  }
}

void strided_copy(u32 rank, const i64 *dim, u32 size, u8 *to, const i64 *sto, const u8 *from,
                  const i64 *sfrom) {
  if (rank == 0) {
    memcpy(to, from, size);
  } else if (rank == 1) {
    copy_row(to, *sto, from, *sfrom, *dim, size);
  } else {
    for (i64 i = 0; i < *dim; i++)
      strided_copy(rank - 1, dim + 1, size, to + i * *sto, sto + 1, from + i * *sfrom, sfrom + 1);
  }
}
