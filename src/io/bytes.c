/* bytes.c: converts the stored elements of a tensor.
 *
 * In: bytes of the exact length, in either byte order. Out: a tensor. Bytes in native format are
 * used in place. Types below a byte are unpacked. Swapped byte order and bools other than 0 and 1
 * need a copy.
 */
#include "io/data.h"

#define IS_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

void data_unpack_byte(DType dt, u8 byte, u8 *to, u64 n) {
  u32 bits = dtype_info[dt].bits, per = 8 / bits;
  u32 mask = (1u << bits) - 1, sign = dtype_is_signed(dt) ? 1u << (bits - 1) : 0;
  for (u32 i = 0; i < per && i < n; i++) {
    u32 x = (u32)byte >> (i * bits) & mask;
    to[i] = (u8)((x ^ sign) - sign);
  }
}

static const u8 *unpack(Arena *a, DType dt, u64 n, const u8 *at) {
  u8 *to = arena_array(a, (size_t)n, 1);
  u64 per = 8 / dtype_info[dt].bits;
  for (u64 i = 0; i < n; i += per) data_unpack_byte(dt, at[i / per], to + i, n - i);
  return to;
}

static const u8 *clean_bool(Arena *a, u64 n, const u8 *at) {
  u8 high = 0;
  for (u64 i = 0; i < n; i++) high |= at[i];
  if (high <= 1) return at;
  u8 *to = arena_array(a, (size_t)n, 1);
  for (u64 i = 0; i < n; i++) to[i] = at[i] != 0;
  return to;
}

/* Swaps the bytes of every number; a complex element is two numbers. */
static const u8 *swap(Arena *a, DType dt, u64 n, const u8 *at) {
  size_t size = dtype_bytes(dt) / (dtype_info[dt].cls == 'C' ? 2 : 1);
  u8 *to = arena_array(a, (size_t)n, dtype_bytes(dt));
  for (size_t i = 0; i < n * dtype_bytes(dt); i += size)
    for (size_t j = 0; j < size; j++) to[i + j] = at[i + size - 1 - j];
  return to;
}

Tensor *data_from_bytes(Arena *a, DType dt, const i64 *dim, u32 rank, const u8 *at, bool big) {
  Tensor *t = tensor_wrap(a, dt, dim, rank, at);
  if (dt == DT_bool)
    t->data = clean_bool(a, t->n, at);
  else if (dtype_info[dt].bits < 8)
    t->data = unpack(a, dt, t->n, at);
  else if (big != IS_BIG && dtype_bytes(dt) > 1)
    t->data = swap(a, dt, t->n, at);
  return t;
}
