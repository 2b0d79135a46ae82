/* Checked arithmetic on 64-bit sizes: each function returns false and does not change *out if the
 * result does not fit. Used for all sizes that come from files. */
#include "base/base.h"

bool size_mul(u64 a, u64 b, u64 *out) {
  u64 r;
  if (__builtin_mul_overflow(a, b, &r)) return false;
  *out = r;
  return true;
}

bool size_add(u64 a, u64 b, u64 *out) {
  u64 r;
  if (__builtin_add_overflow(a, b, &r)) return false;
  *out = r;
  return true;
}

bool size_align(u64 a, u64 align, u64 *out) {
  u64 r;
  if (align == 0 || (align & (align - 1)) != 0) return false;
  if (__builtin_add_overflow(a, align - 1, &r)) return false;
  *out = r & ~(align - 1);
  return true;
}
