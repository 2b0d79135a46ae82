/* block.h: block formats, rows of blocks.def: weights of a few bits with scales of their own.
 *
 * A value of them is u8[.., blocks, bytes] in both intermediate forms, as the file has it;
 * OP_unblock says which floats they mean. */
#ifndef INGOT_IR_BLOCK_H
#define INGOT_IR_BLOCK_H

#include "ir/ir.h"

typedef struct BlockInfo BlockInfo; /* row of blocks.def */
typedef struct Plane Plane;         /* integers of a block at even distances */
typedef struct BlockParts BlockParts;

typedef enum BlockKind {
#define PLAIN(name, ...) BK_##name,
#define BLOCK(name, ...) BK_##name,
#define PLANE(...)
#include "ir/blocks.def"
#undef PLAIN
#undef BLOCK
#undef PLANE
  BK_COUNT
} BlockKind;

typedef enum BlockPart { BP_quant, BP_scale, BP_least, BP_COUNT } BlockPart;
/* What a byte of a plane holds. */
typedef enum BlockDigit { BD_bits1, BD_bits2, BD_bits4, BD_bits8, BD_byte, BD_trit } BlockDigit;
typedef enum BlockFactor { BV_none, BV_half, BV_power, BV_single } BlockFactor;

enum { BLOCK_MOST = 256, BLOCK_GROUPS = 16 }; /* elements and scales of a block, at most */
enum { BLOCK_X = 32 };       /* factors of blocks share a scale in so many: block_x */
enum { BLOCK_X_MOST = 127 }; /* and are that at most, up or down */
enum { BLOCK_NO = 0xffff };  /* no such byte */

struct Plane {
  BlockKind kind;
  BlockPart part;
  u16 at, chunks, run;
  BlockDigit digit;
  u16 first, levels, into, shift;
};

struct BlockInfo {
  const char *name;
  u32 gguf;         /* number of the type in GGUF files */
  u32 elems, bytes; /* of one block */
  DType plain;      /* elements one by one, of that type; DT_none: blocks, and what follows */
  u32 per;          /* elements that share a scale */
  i32 less;
  const i8 *values; /* NULL: linear */
  u32 d;
  BlockFactor factor;
  i32 scale_less;
  u32 m; /* BLOCK_NO: nothing is added */
};

/* A block in the form that all formats share: element i is s[i / per] * v[i] + o[i / per]. */
struct BlockParts {
  i16 v[BLOCK_MOST];                      /* -128 to 127 */
  float s[BLOCK_GROUPS], o[BLOCK_GROUPS]; /* o: 0 where nothing is added */
  float d, m;                             /* s = d, or d * sc; o = m, or -(m * mn) */
  i16 sc[BLOCK_GROUPS], mn[BLOCK_GROUPS];
};

/* block.c */
extern const BlockInfo block_info[BK_COUNT];
BlockKind block_from_name(const char *s, size_t n); /* BK_COUNT if unknown */
BlockKind block_from_gguf(u64 type);                /* BK_COUNT if unknown */
const Plane *block_planes(BlockKind k, u32 *n);
bool block_has(BlockKind k, BlockPart part); /* does a plane hold it? */
u32 block_bits(BlockKind k);                 /* of its integers, as numbers without a sign */
static inline bool block_is_plain(BlockKind k) {
  return block_info[k].plain != DT_none;
}
/* Elements whose products with factors of the same scale are added up as integers. */
static inline u32 block_group(BlockKind k) {
  return block_info[k].per < BLOCK_X ? block_info[k].per : BLOCK_X;
}
/* Are its elements bytes with signs, and nothing is added to them? Sums of x are not needed then.
 */
static inline bool block_has_signs(BlockKind k) {
  return block_info[k].m == BLOCK_NO && block_bits(k) == 8;
}
/* Do BLOCK_X elements have two scales, which are integers? Sums of products with factors of 8 bits,
 * times these, are then added up as integers: 256 products of 6 bits, 7 and 8 stay below 2^28. */
static inline bool block_is_scaled(BlockKind k) {
  return block_group(k) < BLOCK_X && block_has(k, BP_scale);
}
/* Factors that share a scale: those of a whole block, where its sums are integers. */
static inline u32 block_x(BlockKind k) {
  return block_is_scaled(k) ? block_info[k].elems : BLOCK_X;
}
/* What the factors of a group of such a block add up to at most, without their signs, so that their
 * products do not leave 16 bits. */
static inline i64 block_x_sum(BlockKind k) {
  i64 least = block_info[k].less, above = ((i64)1 << block_bits(k)) - 1 - least;
  return INT16_MAX / (least > above ? least : above);
}
/* Of sums of such factors in groups: i16 where two are taken at a time. */
static inline DType block_sum_type(BlockKind k) {
  if (block_info[k].m != BLOCK_NO) return DT_f32;
  return block_is_scaled(k) ? DT_i16 : DT_i32;
}
/* Which scale element e of a block has. */
static inline u32 block_scale(BlockKind k, u32 e) {
  return block_info[k].per ? e / block_info[k].per : 0;
}
/* Of a block that is not plain. */
void block_split(BlockKind k, const u8 *block, BlockParts *to);
/* As many elements as n blocks have, in order; from may be unaligned. */
void block_decode(BlockKind k, const u8 *from, size_t n, float *to);

/* block_encode.c: n blocks of floats; false: there is no quantiser of this kind. */
bool block_encode(BlockKind k, const float *from, size_t n, u8 *to);
/* The inverse of block_split: integers as planes hold them (q, sc, mn; NULL where there are none),
 * of a kind whose factor is a half. */
void block_join(BlockKind k, const i32 *const *part, float d, float m, u8 *to);

/* block_search.c: the same as block_encode, for kinds whose scales are integers */
bool block_search(BlockKind k, const float *from, size_t n, u8 *to);

#endif
