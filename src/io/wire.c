/* wire.c: reads and writes the protobuf wire format.
 *
 * A Wire is a cursor over one message. Nested messages get their own cursor over the same base, so
 * positions in messages count from the start of the file. Lengths are compared with the remaining
 * bytes (n > end - pos), never added first. Only interned strings are allocated. Skipping is not
 * recursive. The field numbers of ONNX are in the front end.
 */
#include "io/wire.h"
#include <string.h>

void wire_fail(const Wire *k, size_t pos, const char *what) {
  fail(k->c, ERR_input, k->loc, "byte %zu: %s%s", pos, what,
       pos < 16 ? " (is this an ONNX model?)" : "");
}

void wire_limit(const Wire *k, size_t pos, const char *what) {
  fail(k->c, ERR_unsupported, k->loc, "byte %zu: %s", pos, what);
}

Wire wire_open(Ctx *c, const u8 *at, size_t n, Loc loc) {
  Wire k = {.c = c, .loc = loc, .base = at, .pos = 0, .end = n};
  if (n > WIRE_MAX_BYTES)
    fail(c, ERR_input, loc,
         "%zu bytes: a protobuf file holds at most %u (keep weights in external data)", n,
         (unsigned)WIRE_MAX_BYTES);
  return k;
}

Wire wire_reopen(Ctx *c, const u8 *base, FileSpan message, Loc loc) {
  size_t pos = (size_t)(message.at - base);
  return (Wire){.c = c, .loc = loc, .base = base, .pos = pos, .end = pos + message.n};
}

u64 wire_varint(Wire *k) {
  size_t start = k->pos;
  u64 x = 0;
  for (u32 shift = 0; shift < 64; shift += 7) {
    if (k->pos >= k->end) wire_fail(k, start, "number runs past the end of its message");
    u8 b = k->base[k->pos++];
    /* The tenth byte holds one significant bit; the others are dropped, as in protobuf. */
    x |= (u64)(b & 0x7f) << shift;
    if (b < 0x80) return x;
  }
  wire_fail(k, start, "number of more than 10 bytes");
}

static const u8 *take(Wire *k, size_t n) {
  if (n > k->end - k->pos) wire_fail(k, k->pos, "number runs past the end of its message");
  const u8 *at = k->base + k->pos;
  k->pos += n;
  return at;
}

u32 wire_u32(Wire *k) {
  const u8 *p = take(k, 4);
  return (u32)p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
}

u64 wire_u64(Wire *k) {
  u64 lo = wire_u32(k);
  return lo | (u64)wire_u32(k) << 32;
}

bool wire_next(Wire *k) {
  if (k->pos >= k->end) return false;
  size_t start = k->pos;
  u64 tag = wire_varint(k);
  u32 wire = (u32)(tag & 7);
  if (tag > UINT32_MAX || tag >> 3 == 0) wire_fail(k, start, "invalid field number");
  if (wire > WT_fixed32) wire_fail(k, start, "invalid wire type");
  k->field = (u32)(tag >> 3);
  k->wire = (WireType)wire;
  return true;
}

/* Skips a length and its bytes. Returns their position. */
static size_t take_length(Wire *k, size_t *n) {
  size_t start = k->pos;
  u64 len = wire_varint(k);
  if (len > k->end - k->pos)
    fail(k->c, ERR_input, k->loc, "byte %zu: field %u claims %llu bytes, %zu remain", start,
         k->field, (unsigned long long)len, k->end - k->pos);
  size_t at = k->pos;
  *n = (size_t)len;
  k->pos += *n;
  return at;
}

static void skip_plain(Wire *k) {
  size_t n;
  switch (k->wire) {
  case WT_varint: wire_varint(k); break;
  case WT_fixed64: take(k, 8); break;
  case WT_fixed32: take(k, 4); break;
  case WT_bytes: take_length(k, &n); break;
  default: wire_fail(k, k->pos, "end of a group that was not begun");
  }
}

/* Groups are nested messages of old protobuf, without a length; ONNX does not use them. */
void wire_skip(Wire *k) {
  if (k->wire != WT_group) {
    skip_plain(k);
    return;
  }
  u32 open[WIRE_DEPTH];
  u32 n = 0;
  open[n++] = k->field;
  while (n > 0) {
    if (!wire_next(k)) wire_fail(k, k->pos, "group without end");
    if (k->wire == WT_group) {
      if (n + k->depth >= WIRE_DEPTH) wire_limit(k, k->pos, "groups nested more than 64 deep");
      open[n++] = k->field;
    } else if (k->wire == WT_end) {
      if (open[--n] != k->field) wire_fail(k, k->pos, "end of another group");
    } else {
      skip_plain(k);
    }
  }
}

void wire_counts(Wire k, u32 *count) {
  memset(count, 0, WIRE_COUNTS * sizeof *count);
  while (wire_next(&k)) {
    u32 field = k.field; /* wire_skip changes it */
    wire_skip(&k);
    if (field < WIRE_COUNTS) count[field]++;
  }
}

static void expect(const Wire *k, WireType wire) {
  if (k->wire != wire)
    fail(k->c, ERR_input, k->loc, "byte %zu: field %u has wire type %d, expected %d", k->pos,
         k->field, (int)k->wire, (int)wire);
}

i64 wire_int(Wire *k) {
  expect(k, WT_varint);
  return (i64)wire_varint(k);
}

float wire_float(Wire *k) {
  expect(k, WT_fixed32);
  u32 bits = wire_u32(k);
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

FileSpan wire_bytes(Wire *k) {
  expect(k, WT_bytes);
  size_t n;
  size_t at = take_length(k, &n);
  return (FileSpan){k->base + at, n};
}

Str wire_str(Wire *k) {
  FileSpan s = wire_bytes(k);
  return str_intern(k->c, s.at, s.n);
}

Wire wire_message(Wire *k) {
  expect(k, WT_bytes);
  Wire m = *k;
  size_t n;
  m.pos = take_length(k, &n);
  m.end = m.pos + n; /* take_length checked the bound */
  m.depth = k->depth + 1;
  if (m.depth >= WIRE_DEPTH) wire_limit(k, m.pos, "messages nested more than 64 deep");
  return m;
}

Wire wire_list(Wire *k, WireType elem) {
  Wire m = *k;
  if (k->wire == WT_bytes) {
    size_t n;
    m.pos = take_length(k, &n);
    m.end = m.pos + n;
    size_t size = elem == WT_fixed32 ? 4 : elem == WT_fixed64 ? 8 : 1;
    if (n % size != 0)
      wire_fail(k, m.pos, "list of numbers whose length is not a multiple of theirs");
  } else {
    expect(k, elem);
    skip_plain(k);
    m.end = k->pos;
  }
  return m;
}

void wire_put_varint(StrBuf *t, u64 x) {
  for (; x >= 0x80; x >>= 7) sb_put(t, (u8[1]){(u8)(x | 0x80)}, 1);
  sb_put(t, (u8[1]){(u8)x}, 1);
}

void wire_put_int(StrBuf *t, u32 field, i64 x) {
  wire_put_varint(t, (u64)field << 3 | WT_varint);
  wire_put_varint(t, (u64)x);
}

void wire_put_bytes(StrBuf *t, u32 field, const void *at, size_t n) {
  wire_put_varint(t, (u64)field << 3 | WT_bytes);
  wire_put_varint(t, n);
  if (n) sb_put(t, at, n);
}
