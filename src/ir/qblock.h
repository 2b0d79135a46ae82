/* qblock.h: block formats, rows of qblocks.def: weights of a few bits with scales of their own.
 *
 * A value of them is u8[.., blocks, bytes] in both intermediate forms, as the file has it;
 * OP_dequantize says which floats they mean. */
#ifndef INGOT_IR_BLOCK_H
#define INGOT_IR_BLOCK_H

#include "ir/ir.h"

typedef struct QBlockInfo QBlockInfo; /* row of qblocks.def */
typedef struct Plane Plane;           /* integers of a block at even distances */
typedef struct QBlockParts QBlockParts;

typedef enum QBlockKind {
#define PLAIN(name, ...) BK_##name,
#define BLOCK(name, ...) BK_##name,
#define PLANE(...)
#include "ir/qblocks.def"
#undef PLAIN
#undef BLOCK
#undef PLANE
  BK_COUNT
} QBlockKind;

typedef enum QBlockPart { BP_quant, BP_scale, BP_least, BP_COUNT } QBlockPart;
/* What a byte of a plane holds. */
typedef enum QBlockDigit { BD_bits1, BD_bits2, BD_bits4, BD_bits8, BD_byte, BD_trit } QBlockDigit;
typedef enum QBlockFactor { BV_none, BV_half, BV_power, BV_single } QBlockFactor;

enum { QBLOCK_MOST = 256, QBLOCK_GROUPS = 16 }; /* elements and scales of a block, at most */
enum { QBLOCK_X = 32 };       /* factors of blocks share a scale in so many: qblock_x */
enum { QBLOCK_X_MOST = 127 }; /* and are that at most, up or down */
enum { QBLOCK_NO = 0xffff };  /* no such byte */

struct Plane {
  QBlockKind kind;
  QBlockPart part;
  u16 at, chunks, run;
  QBlockDigit digit;
  u16 first, levels, into, shift;
};

struct QBlockInfo {
  const char *name;
  u32 gguf;         /* number of the type in GGUF files */
  u32 elems, bytes; /* of one block */
  DType plain;      /* elements one by one, of that type; DT_none: blocks, and what follows */
  u32 per;          /* elements that share a scale */
  i32 less;
  const i8 *values; /* NULL: linear */
  u32 d;
  QBlockFactor factor;
  i32 scale_less;
  u32 m; /* QBLOCK_NO: nothing is added */
};

/* A block in the form that all formats share: element i is s[i / per] * v[i] + o[i / per]. */
struct QBlockParts {
  i16 v[QBLOCK_MOST];                       /* -128 to 127 */
  float s[QBLOCK_GROUPS], o[QBLOCK_GROUPS]; /* o: 0 where nothing is added */
  float d, m;                               /* s = d, or d * sc; o = m, or -(m * mn) */
  i16 sc[QBLOCK_GROUPS], mn[QBLOCK_GROUPS];
};

/* qblock.c */
extern const QBlockInfo qblock_info[BK_COUNT];
QBlockKind qblock_from_name(const char *s, size_t n); /* BK_COUNT if unknown */
QBlockKind qblock_from_gguf(u64 type);                /* BK_COUNT if unknown */
const Plane *qblock_planes(QBlockKind k, u32 *n);
bool qblock_has(QBlockKind k, QBlockPart part); /* does a plane hold it? */
u32 qblock_bits(QBlockKind k);                  /* of its integers, as numbers without a sign */
static inline bool qblock_is_plain(QBlockKind k) {
  return qblock_info[k].plain != DT_none;
}
/* Elements whose products with factors of the same scale are added up as integers. */
static inline u32 qblock_group(QBlockKind k) {
  return qblock_info[k].per < QBLOCK_X ? qblock_info[k].per : QBLOCK_X;
}
/* Are its elements bytes with signs, and nothing is added to them? Sums of x are not needed then.
 */
static inline bool qblock_has_signs(QBlockKind k) {
  return qblock_info[k].m == QBLOCK_NO && qblock_bits(k) == 8;
}
/* Do QBLOCK_X elements have two scales, which are integers? Sums of products with factors of 8
 * bits, times these, are then added up as integers: 256 products of 6 bits, 7 and 8 stay below
 * 2^28. */
static inline bool qblock_is_scaled(QBlockKind k) {
  return qblock_group(k) < QBLOCK_X && qblock_has(k, BP_scale);
}
/* Factors that share a scale: those of a whole block, where its sums are integers. */
static inline u32 qblock_x(QBlockKind k) {
  return qblock_is_scaled(k) ? qblock_info[k].elems : QBLOCK_X;
}
/* What the factors of a group of such a block add up to at most, without their signs, so that their
 * products do not leave 16 bits. */
static inline i64 qblock_x_sum(QBlockKind k) {
  i64 least = qblock_info[k].less, above = ((i64)1 << qblock_bits(k)) - 1 - least;
  return INT16_MAX / (least > above ? least : above);
}
/* Of sums of such factors in groups: i16 where two are taken at a time. */
static inline DType qblock_sum_type(QBlockKind k) {
  if (qblock_info[k].m != QBLOCK_NO) return DT_f32;
  return qblock_is_scaled(k) ? DT_i16 : DT_i32;
}
/* Which scale element e of a block has. */
static inline u32 qblock_scale(QBlockKind k, u32 e) {
  return qblock_info[k].per ? e / qblock_info[k].per : 0;
}
/* Of a block that is not plain. */
void qblock_split(QBlockKind k, const u8 *block, QBlockParts *to);
/* As many elements as n blocks have, in order; from may be unaligned. */
void qblock_decode(QBlockKind k, const u8 *from, size_t n, float *to);

/* qblock_encode.c: n blocks of floats; false: there is no quantiser of this kind. */
bool qblock_encode(QBlockKind k, const float *from, size_t n, u8 *to);
/* The inverse of qblock_split: integers as planes hold them (q, sc, mn; NULL where there are none),
 * of a kind whose factor is a half. */
void qblock_join(QBlockKind k, const i32 *const *part, float d, float m, u8 *to);

/* qblock_search.c: the same as qblock_encode, for kinds whose scales are integers */
bool qblock_search(QBlockKind k, const float *from, size_t n, u8 *to);

#endif
