/* qblock.c: the table of block formats from qblocks.def, and decoding.
 *
 * In: a format and bytes. Out: integers with scales, or floats, bit-identical to ggml's decoders.
 * One loop over planes serves all formats. Encoding is in qblock_encode.c. */
#include "ir/quant/qblock.h"

#include <string.h>

#define TABLE(...)                                                                                 \
  (const i8[]) {                                                                                   \
    __VA_ARGS__                                                                                    \
  }
#define NONE NULL
#define NO   QBLOCK_NO
const QBlockInfo qblock_info[BK_COUNT] = {
#define PLAIN(name, gguf, bytes, dt)                                                               \
  [BK_##name] = {#name, gguf, 1, bytes, DT_##dt, 0, 0, NULL, 0, BV_none, 0, 0},
#define BLOCK(name, gguf, elems, bytes, per, less, values, d, factor, scale_less, m)               \
  [BK_##name] = {#name, gguf,   elems, bytes,       DT_none,    per,                               \
                 less,  values, d,     BV_##factor, scale_less, m},
#define PLANE(...)
#include "ir/quant/qblocks.def"
#undef PLAIN
#undef BLOCK
#undef PLANE
};

/* Planes of a format are consecutive. */
static const Plane planes[] = {
#define PLAIN(...)
#define BLOCK(...)
#define PLANE(name, part, at, chunks, run, digit, first, levels, into, shift)                      \
  {BK_##name, BP_##part, at, chunks, run, BD_##digit, first, levels, into, shift},
#include "ir/quant/qblocks.def"
#undef PLAIN
#undef BLOCK
#undef PLANE
};
enum { NPLANES = sizeof planes / sizeof *planes };

QBlockKind qblock_from_name(const char *s, size_t n) {
  for (int k = 0; k < BK_COUNT; k++) {
    const char *name = qblock_info[k].name;
    if (strlen(name) == n && memcmp(name, s, n) == 0) return (QBlockKind)k;
  }
  return BK_COUNT;
}

QBlockKind qblock_from_gguf(u64 type) {
  for (int k = 0; k < BK_COUNT; k++)
    if (qblock_info[k].gguf == type && type != QBLOCK_NO) return (QBlockKind)k;
  return BK_COUNT;
}

const Plane *qblock_planes(QBlockKind k, u32 *n) {
  u32 first = 0, end;
  while (first < NPLANES && planes[first].kind != k) first++;
  for (end = first; end < NPLANES && planes[end].kind == k;) end++;
  *n = end - first;
  return planes + first;
}

bool qblock_has(QBlockKind k, QBlockPart part) {
  u32 n;
  const Plane *p = qblock_planes(k, &n);
  for (u32 i = 0; i < n; i++)
    if (p[i].part == part) return true;
  return false;
}

static i32 digit(QBlockDigit d, u8 byte, u32 level) {
  static const u8 power3[] = {1, 3, 9, 27, 81};
  u32 bits = 1u << d; /* valid for BD_bits1 to BD_bits8 */
  if (d == BD_byte) return (i8)byte;
  if (d == BD_trit) return (u8)(byte * power3[level]) * 3 >> 8;
  return byte >> bits * level & ((1 << bits) - 1);
}

static void add_plane(const Plane *p, const u8 *block, i16 *to) {
  const u8 *from = block + p->at;
  to += p->into;
  for (u32 chunk = 0; chunk < p->chunks; chunk++, from += p->run)
    for (u32 level = p->first; level < (u32)p->first + p->levels; level++, to += p->run)
      for (u32 i = 0; i < p->run; i++)
        to[i] = (i16)(to[i] + digit(p->digit, from[i], level) * (1 << p->shift));
}

static float half_at(const u8 *p) {
  return (float)scalar_load(DT_f16, p).f;
}

static float single_at(const u8 *p) {
  return (float)scalar_load(DT_f32, p).f;
}

static float factor_at(QBlockFactor f, const u8 *p) {
  if (f == BV_single) return single_at(p);
  u32 bits = *p < 2 ? 0x200000u << *p : (u32)(*p - 1) << 23;
  float x;
  if (f == BV_half) return half_at(p);
  memcpy(&x, &bits, sizeof x);
  return x;
}

static void split(QBlockKind k, const Plane *plane, u32 n, const u8 *block, QBlockParts *to) {
  const QBlockInfo *b = &qblock_info[k];
  i16 *part[BP_COUNT] = {to->v, to->sc, to->mn};
  bool has[BP_COUNT] = {0};
  memset(to->v, 0, b->elems * sizeof *to->v);
  memset(to->sc, 0, sizeof to->sc);
  memset(to->mn, 0, sizeof to->mn);
  for (u32 i = 0; i < n; i++) {
    add_plane(&plane[i], block, part[plane[i].part]);
    has[plane[i].part] = true;
  }
  for (u32 i = 0; i < b->elems; i++)
    to->v[i] = b->values ? b->values[to->v[i]] : (i16)(to->v[i] - b->less);
  to->d = factor_at(b->factor, block + b->d);
  to->m = b->m == QBLOCK_NO        ? 0
          : b->factor == BV_single ? single_at(block + b->m)
                                   : half_at(block + b->m);
  for (u32 g = 0; g < b->elems / b->per; g++) {
    to->sc[g] = (i16)(to->sc[g] - b->scale_less);
    to->s[g] = has[BP_scale] ? to->d * (float)to->sc[g] : to->d;
    to->o[g] = has[BP_least] ? -(to->m * (float)to->mn[g]) : to->m;
  }
}

static u32 largest(QBlockKind k) {
  static const u8 max_digit[] = {[BD_bits1] = 1,   [BD_bits2] = 3,  [BD_bits4] = 15,
                                 [BD_bits8] = 255, [BD_byte] = 255, [BD_trit] = 2};
  u32 n, sum[QBLOCK_MOST] = {0}, all = 0;
  const Plane *p = qblock_planes(k, &n);
  for (u32 i = 0; i < n; i++) /* planes of the same integers start at the same one */
    if (p[i].part == BP_quant) sum[p[i].into] += (u32)max_digit[p[i].digit] << p[i].shift;
  for (u32 i = 0; i < QBLOCK_MOST; i++) all = sum[i] > all ? sum[i] : all;
  return all;
}

u32 qblock_bits(QBlockKind k) {
  u32 max = largest(k), bits = 1;
  if (qblock_info[k].values || max > 127) return 8;
  while (max >> bits) bits++;
  return bits;
}

void qblock_split(QBlockKind k, const u8 *block, QBlockParts *to) {
  u32 n;
  const Plane *plane = qblock_planes(k, &n);
  split(k, plane, n, block, to);
}

/* Fast path for f16, the most common unquantized type. False: x is not finite. */
static bool half_float(const u8 *from, float *to) {
  u16 h;
  memcpy(&h, from, sizeof h);
  u32 bits = (u32)(h & 0x7fff) << 13;
  float x;
  memcpy(&x, &bits, sizeof x);
  x *= 0x1p112f; /* exact: adjusts the exponent bias and normalizes subnormals */
  *to = h & 0x8000 ? -x : x;
  return (h & 0x7c00) != 0x7c00;
}

static void decode_plain(DType dt, const u8 *from, size_t n, float *to) {
  for (size_t i = 0; i < n; i++) {
    if (dt == DT_f16 && half_float(from + i * 2, &to[i])) continue;
    Scalar x = scalar_load(dt, from + i * dtype_bytes(dt));
    to[i] = (float)scalar_cast(dt, DT_f32, x, false).f;
  }
}

void qblock_decode(QBlockKind k, const u8 *from, size_t n, float *to) {
  const QBlockInfo *b = &qblock_info[k];
  QBlockParts part;
  u32 nplane;
  const Plane *plane = qblock_planes(k, &nplane);
  if (qblock_is_plain(k)) {
    decode_plain(b->plain, from, n, to);
    return;
  }
  for (size_t j = 0; j < n; j++, from += b->bytes, to += b->elems) {
    split(k, plane, nplane, from, &part);
    for (u32 i = 0; i < b->elems; i++) {
      float x = part.s[i / b->per] * (float)part.v[i];
      to[i] = b->m == QBLOCK_NO ? x : x + part.o[i / b->per];
    }
  }
}
