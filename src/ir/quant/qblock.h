/* qblock.h: quantized block formats, rows of qblocks.def: low-bit weights with a scale per group.
 *
 * A value is u8[.., blocks, bytes] in Graph and Prog, as stored in the file; OP_dequantize defines
 * the floats. */
#ifndef INGOT_IR_BLOCK_H
#define INGOT_IR_BLOCK_H

#include "ir/ir.h"

typedef struct QBlockInfo QBlockInfo; /* row of qblocks.def */
typedef struct Plane Plane;           /* integers of a block stored at a regular stride */
typedef struct QBlockParts QBlockParts;

typedef enum QBlockKind {
#define PLAIN(name, ...) BK_##name,
#define BLOCK(name, ...) BK_##name,
#define PLANE(...)
#include "ir/quant/qblocks.def"
#undef PLAIN
#undef BLOCK
#undef PLANE
  BK_COUNT
} QBlockKind;

typedef enum QBlockPart { BP_quant, BP_scale, BP_least, BP_COUNT } QBlockPart;
/* Digits in a byte of a plane. */
typedef enum QBlockDigit { BD_bits1, BD_bits2, BD_bits4, BD_bits8, BD_byte, BD_trit } QBlockDigit;
typedef enum QBlockFactor { BV_none, BV_half, BV_power, BV_single } QBlockFactor;

enum { QBLOCK_MOST = 256, QBLOCK_GROUPS = 16 }; /* limits: elements and groups of a block */
enum { QBLOCK_X = 32 };                         /* activations per scale: see qblock_x */
enum { QBLOCK_X_MOST = 127 };                   /* largest magnitude of quantized activations */
enum { QBLOCK_NO = 0xffff };                    /* byte offset: absent */

struct Plane {
  QBlockKind kind;
  QBlockPart part;
  u16 at, chunks, run;
  QBlockDigit digit;
  u16 first, levels, into, shift;
};

struct QBlockInfo {
  const char *name;
  u32 gguf;         /* type number in GGUF files */
  u32 elems, bytes; /* elements and bytes of a block */
  DType plain; /* unquantized elements of this type; DT_none: a block format, described below */
  u32 per;     /* group size: elements that share a scale */
  i32 less;
  const i8 *values; /* NULL: linear */
  u32 d;
  QBlockFactor factor;
  i32 scale_less;
  u32 m; /* QBLOCK_NO: no offset */
};

/* A block in the form shared by all formats: element i is s[i / per] * v[i] + o[i / per]. */
struct QBlockParts {
  i16 v[QBLOCK_MOST];                       /* in -128..127 */
  float s[QBLOCK_GROUPS], o[QBLOCK_GROUPS]; /* o: 0 without an offset */
  float d, m;                               /* s = d, or d * sc; o = m, or -(m * mn) */
  i16 sc[QBLOCK_GROUPS], mn[QBLOCK_GROUPS];
};

/* qblock.c */
extern const QBlockInfo qblock_info[BK_COUNT];
QBlockKind qblock_from_name(const char *s, size_t n); /* BK_COUNT if unknown */
QBlockKind qblock_from_gguf(u64 type);                /* BK_COUNT if unknown */
const Plane *qblock_planes(QBlockKind k, u32 *n);
bool qblock_has(QBlockKind k, QBlockPart part); /* does the format have this part? */
u32 qblock_bits(QBlockKind k);                  /* bits of its integers, as unsigned */
static inline bool qblock_is_plain(QBlockKind k) {
  return qblock_info[k].plain != DT_none;
}
/* Elements whose products are accumulated as integers: they share one scale on both sides. */
static inline u32 qblock_group(QBlockKind k) {
  return qblock_info[k].per < QBLOCK_X ? qblock_info[k].per : QBLOCK_X;
}
/* Are its elements signed bytes without an offset? Then sums of x are not needed. */
static inline bool qblock_has_signs(QBlockKind k) {
  return qblock_info[k].m == QBLOCK_NO && qblock_bits(k) == 8;
}
/* Do QBLOCK_X elements have two integer scales? Then int8 dot products times these scales are
 * accumulated as integers: 256 products of 6, 7 and 8 bits stay below 2^28. */
static inline bool qblock_is_scaled(QBlockKind k) {
  return qblock_group(k) < QBLOCK_X && qblock_has(k, BP_scale);
}
/* Activations that share a scale: a whole block if its sums are integers. */
static inline u32 qblock_x(QBlockKind k) {
  return qblock_is_scaled(k) ? qblock_info[k].elems : QBLOCK_X;
}
/* Limit of the sum of magnitudes of the activations in a group, so that products fit in 16 bits. */
static inline i64 qblock_x_sum(QBlockKind k) {
  i64 least = qblock_info[k].less, above = ((i64)1 << qblock_bits(k)) - 1 - least;
  return INT16_MAX / (least > above ? least : above);
}
/* Type of the sums of activations per group: i16 if two groups are processed at a time. */
static inline DType qblock_sum_type(QBlockKind k) {
  if (qblock_info[k].m != QBLOCK_NO) return DT_f32;
  return qblock_is_scaled(k) ? DT_i16 : DT_i32;
}
/* Group of element e of a block. */
static inline u32 qblock_scale(QBlockKind k, u32 e) {
  return qblock_info[k].per ? e / qblock_info[k].per : 0;
}
/* Splits a block into its parts. k must not be a plain format. */
void qblock_split(QBlockKind k, const u8 *block, QBlockParts *to);
/* Decodes the elements of n blocks, in order; from may be unaligned. */
void qblock_decode(QBlockKind k, const u8 *from, size_t n, float *to);

/* qblock_encode.c: quantizes n blocks; false: not supported for this format. */
bool qblock_encode(QBlockKind k, const float *from, size_t n, u8 *to);
/* Inverse of qblock_split for formats with an f16 factor. part: integers q, sc, mn as stored in
 * planes; NULL: absent. */
void qblock_join(QBlockKind k, const i32 *const *part, float d, float m, u8 *to);

/* qblock_search.c: qblock_encode for formats with integer scales */
bool qblock_search(QBlockKind k, const float *from, size_t n, u8 *to);

#endif
