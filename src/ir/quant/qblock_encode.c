/* qblock_encode.c: floats to blocks, byte-identical to ggml's reference quantizers.
 *
 * In: floats. Out: blocks of a format with a row below, or plain floats; qblock_search.c handles
 * formats with integer scales. The step d of a block is computed in f32 and rounded to f16 only for
 * storage. Integers are x times 1 / d, rounded as the row says. If 1 / d is infinite (x near the
 * smallest floats), results that are not finite become 0. The planes of qblocks.def say where an
 * integer is stored. */
#include "ir/quant/qblock.h"

#include <math.h>
#include <string.h>

/* How the step and the integers are computed. */
typedef enum StepRule {
  SR_signed, /* d = (element of largest magnitude, signed) / div;  q = trunc(x / d + add) */
  SR_range,  /* d = (max - min) / div, m = min;  q = trunc((x - m) / d + add) */
  SR_far,    /* d = (largest magnitude) / div;  q = round(x / d), ties away from 0 */
} StepRule;

typedef struct Quantizer {
  QBlockKind kind;
  StepRule rule;
  float div, add;
  i32 max; /* upper limit of integers */
} Quantizer;

static const Quantizer quantizers[] = {
    {BK_Q4_0, SR_signed, -8, 8.5f, 15},   {BK_Q4_1, SR_range, 15, 0.5f, 15},
    {BK_Q5_0, SR_signed, -16, 16.5f, 31}, {BK_Q5_1, SR_range, 31, 0.5f, 31},
    {BK_Q8_0, SR_far, 127, 0, 127},
};

static float farthest(const float *x, u32 n) {
  float far = x[0];
  for (u32 i = 1; i < n; i++)
    if (fabsf(x[i]) > fabsf(far)) far = x[i];
  return far;
}

static void range(const float *x, u32 n, float *lo, float *hi) {
  *lo = *hi = x[0];
  for (u32 i = 1; i < n; i++) {
    if (x[i] < *lo) *lo = x[i];
    if (x[i] > *hi) *hi = x[i];
  }
}

static i32 truncated(float x) {
  return x > -2147483648.0f && x < 2147483648.0f ? (i32)x : 0;
}

static i32 rounded(float x) {
  float a = fabsf(x), whole = floorf(a);
  i32 q = truncated(whole + floorf(2 * (a - whole)));
  return x < 0 ? -q : q;
}

/* Inverse of reading a plane; the bits of `to` are clear. */
static void put_plane(const Plane *p, const i32 *q, u8 *to) {
  u32 bits = p->digit == BD_byte ? 8 : 1u << p->digit, mask = (1u << bits) - 1;
  to += p->at;
  q += p->into;
  for (u32 chunk = 0; chunk < p->chunks; chunk++, to += p->run)
    for (u32 level = p->first; level < (u32)p->first + p->levels; level++, q += p->run)
      for (u32 i = 0; i < p->run; i++)
        to[i] |= (u8)(((u32)q[i] >> p->shift & mask) << bits * level);
}

static void put_half(u8 *to, float x) {
  u16 bits;
  scalar_store(DT_f16, &bits, (Scalar){.f = scalar_round(DT_f16, x)});
  to[0] = (u8)bits;
  to[1] = (u8)(bits >> 8);
}

void qblock_join(QBlockKind k, const i32 *const *part, float d, float m, u8 *to) {
  const QBlockInfo *b = &qblock_info[k];
  u32 n;
  const Plane *plane = qblock_planes(k, &n);
  memset(to, 0, b->bytes);
  for (u32 i = 0; i < n; i++) put_plane(&plane[i], part[plane[i].part], to);
  put_half(to + b->d, d);
  if (b->m != QBLOCK_NO) put_half(to + b->m, m);
}

static void encode(const Quantizer *z, const float *x, u8 *to) {
  const QBlockInfo *b = &qblock_info[z->kind];
  float lo = 0, hi = 0, d;
  i32 q[QBLOCK_MOST];
  if (z->rule == SR_range) {
    range(x, b->elems, &lo, &hi);
    d = (hi - lo) / z->div;
  } else {
    hi = farthest(x, b->elems);
    d = (z->rule == SR_far ? fabsf(hi) : hi) / z->div;
  }
  float inverse = d == 0 ? 0 : 1 / d;
  for (u32 i = 0; i < b->elems; i++) {
    float t = (z->rule == SR_range ? x[i] - lo : x[i]) * inverse;
    q[i] = z->rule == SR_far ? rounded(t) : truncated(t + z->add) & 255;
    if (q[i] > z->max) q[i] = z->max;
  }
  qblock_join(z->kind, (const i32 *const[]){q, NULL, NULL}, d, lo, to);
}

/* Rounds to f16, ties to even; false: overflow or NaN. */
static bool float_half(float x, u8 *to) {
  float shifted =
      fabsf(x) + 0.5f; /* the last bit has the weight of the last bit of a subnormal f16 */
  u32 bits, small;
  memcpy(&bits, &x, sizeof bits);
  memcpy(&small, &shifted, sizeof small);
  u32 a = bits & 0x7fffffff, even = a >> 13 & 1;
  u32 h = a < 0x38800000 ? small - 0x3f000000 : (a - 0x38000000 + 0xfff + even) >> 13;
  if (a >= 0x47800000) return false;
  h |= bits >> 16 & 0x8000;
  to[0] = (u8)h;
  to[1] = (u8)(h >> 8);
  return true;
}

static void encode_plain(QBlockKind k, const float *from, size_t n, u8 *to) {
  DType dt = qblock_info[k].plain;
  for (size_t i = 0; i < n; i++)
    if (dt != DT_f16 || !float_half(from[i], to + i * 2))
      scalar_store(dt, to + i * dtype_bytes(dt),
                   scalar_cast(DT_f32, dt, (Scalar){.f = from[i]}, false));
}

bool qblock_encode(QBlockKind k, const float *from, size_t n, u8 *to) {
  const QBlockInfo *b = &qblock_info[k];
  const Quantizer *z = quantizers, *end = z + sizeof quantizers / sizeof *quantizers;
  if (qblock_is_plain(k) && dtype_is_float(b->plain)) {
    encode_plain(k, from, n, to);
    return true;
  }
  while (z < end && z->kind != k) z++;
  if (z == end) return qblock_search(k, from, n, to);
  for (size_t j = 0; j < n; j++, from += b->elems, to += b->bytes) encode(z, from, to);
  return true;
}
