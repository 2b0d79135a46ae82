/* Protobuf messages for tests: fields appended to a byte string, nested ones built apart and put
 * in. */
#ifndef PBUILD_H
#define PBUILD_H

#include "base/base.h"

static inline void pb_varint(StrBuf *t, u64 x) {
  for (; x >= 0x80; x >>= 7) sb_put(t, (u8[1]){(u8)(x | 0x80)}, 1);
  sb_put(t, (u8[1]){(u8)x}, 1);
}

static inline void pb_tag(StrBuf *t, u32 field, u32 wire) {
  pb_varint(t, field << 3 | wire);
}

static inline void pb_int(StrBuf *t, u32 field, i64 x) {
  pb_tag(t, field, 0);
  pb_varint(t, (u64)x);
}

static inline void pb_bytes(StrBuf *t, u32 field, const void *at, size_t n) {
  pb_tag(t, field, 2);
  pb_varint(t, n);
  sb_put(t, at, n);
}

static inline void pb_text(StrBuf *t, u32 field, const char *s) {
  pb_bytes(t, field, s, __builtin_strlen(s));
}

static inline void pb_message(StrBuf *t, u32 field, const StrBuf *m) {
  pb_bytes(t, field, m->at, m->n);
}

static inline void pb_float(StrBuf *t, u32 field, float x) {
  u32 bits;
  __builtin_memcpy(&bits, &x, 4);
  pb_tag(t, field, 5);
  for (u32 i = 0; i < 4; i++) sb_put(t, (u8[1]){(u8)(bits >> (8 * i))}, 1);
}

#endif
