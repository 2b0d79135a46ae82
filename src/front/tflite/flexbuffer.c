/* flexbuffer.c: reads numbers from a FlexBuffer, the options of custom operators.
 *
 * In: bytes. Out: the number of a given name in the root map. Method: the last byte is the width of
 * the root, the one before it its type. Widths are 1, 2, 4 or 8 bytes; offsets lead backwards.
 * Before its values a map has the offset and width of its list of names and the number of entries;
 * after them one type byte each. Every offset is checked before it is read. Only numbers are
 * supported.
 */
#include "front/tflite/tflite_import.h"

#include <string.h>

enum { FLEX_int = 1, FLEX_uint = 2, FLEX_float = 3, FLEX_map = 9, FLEX_bool = 26 };

static bool is_there(FileSpan s, size_t at, u64 n) {
  return at <= s.n && n <= s.n - at;
}

/* A little-endian number of `width` bytes. */
static bool read_uint(FileSpan s, size_t at, u32 width, u64 *out) {
  if (width > 8 || !is_there(s, at, width)) return false;
  *out = 0;
  for (u32 i = width; i-- > 0;) *out = *out << 8 | s.at[at + i];
  return true;
}

/* Target of the offset at `at`. */
static bool follow(FileSpan s, size_t at, u32 width, size_t *to) {
  u64 back;
  if (!read_uint(s, at, width, &back) || back > at) return false;
  *to = at - (size_t)back;
  return true;
}

static bool name_is(FileSpan s, size_t at, const char *name) {
  size_t n = strlen(name) + 1;
  return is_there(s, at, n) && !memcmp(s.at + at, name, n);
}

static bool read_number(FileSpan s, size_t at, u32 width, u32 type, double *out) {
  u64 x;
  if (!read_uint(s, at, width, &x)) return false;
  u64 sign = (u64)1 << (8 * width - 1);
  float narrow;
  u32 bits = (u32)x;
  switch (type >> 2) {
  case FLEX_int: *out = (double)(i64)((x ^ sign) - sign); return true;
  case FLEX_uint:
  case FLEX_bool: *out = (double)x; return true;
  case FLEX_float:
    if (width == 4) {
      memcpy(&narrow, &bits, sizeof narrow);
      *out = (double)narrow;
    } else if (width == 8) {
      memcpy(out, &x, sizeof *out);
    }
    return width >= 4;
  default: return false;
  }
}

bool flex_number(FileSpan s, const char *name, double *out) {
  size_t map, names;
  u64 n, name_width;
  if (s.n < 3) return false;
  u32 root = s.at[s.n - 1], type = s.at[s.n - 2], width = 1u << (type & 3);
  if (type >> 2 != FLEX_map || root > s.n - 2) return false;
  if (!follow(s, s.n - 2 - root, root, &map) || map < 3 * (size_t)width) return false;
  if (!follow(s, map - 3 * (size_t)width, width, &names) ||
      !read_uint(s, map - 2 * (size_t)width, width, &name_width) ||
      !read_uint(s, map - width, width, &n) || n > s.n || name_width > 8 ||
      !is_there(s, map, n * width + n))
    return false;
  for (u64 i = 0; i < n; i++) {
    size_t at;
    if (!follow(s, names + (size_t)(i * name_width), (u32)name_width, &at)) return false;
    if (name_is(s, at, name))
      return read_number(s, map + (size_t)(i * width), width, s.at[map + n * width + i], out);
  }
  return false;
}
