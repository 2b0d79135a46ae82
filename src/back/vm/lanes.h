/* lanes.h: elements of registers and memory, for machine.c and tile.c. */
#ifndef INGOT_VM_LANES_H
#define INGOT_VM_LANES_H

#include "back/vm/vm.h"
#include "ir/math/mathlibf.h"

#if defined(__GNUC__)
#define VM_ALIAS __attribute__((may_alias))
#else
#define VM_ALIAS
#endif
/* Source registers equal the destination or do not overlap it, so iterations are independent. */
#if defined(__clang__)
#pragma clang diagnostic ignored                                                                   \
    "-Wpass-failed" /* a loop that is not vectorized is still correct */
#define VM_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define VM_IVDEP _Pragma("GCC ivdep")
#else
#define VM_IVDEP
#endif

/* Keeps gcc from unrolling loops of one vector's length before it vectorizes them. */
#if defined(__GNUC__) && !defined(__clang__)
#define VM_NOUNROLL _Pragma("GCC unroll 1")
#else
#define VM_NOUNROLL
#endif

typedef float VM_ALIAS vm_f;
typedef double VM_ALIAS vm_d;
typedef i32 VM_ALIAS vm_w;
typedef i64 VM_ALIAS vm_l;
typedef u32 VM_ALIAS vm_uw;
typedef u64 VM_ALIAS vm_ul;
typedef i8 VM_ALIAS vm_i8;
typedef u8 VM_ALIAS vm_u8;
typedef i16 VM_ALIAS vm_i16;
typedef u16 VM_ALIAS vm_u16;

/* max and min of eval.c as branchless selects: NaN if either is NaN; of equals the first. */
#define LANE_ORDER(T, name, than)                                                                  \
  static inline T name(T a, T b) {                                                                 \
    const T x = b than a ? b : a;                                                                  \
    return b != b ? b : x;                                                                         \
  }
LANE_ORDER(float, lane_larger_f, >)
LANE_ORDER(float, lane_smaller_f, <)
LANE_ORDER(double, lane_larger_d, >)
LANE_ORDER(double, lane_smaller_d, <)
#undef LANE_ORDER

/* Rounds to nearest, ties to even, by an instruction if the CPU has one. */
static inline float lane_round(float x) {
#if defined(__AVX2__)
  return __builtin_rintf(x);
#else
  return im_rintf(x);
#endif
}

/* Result of quant: round, add the zero point, saturate; NaN gives 0. */
static inline i32 lane_quant(float x, float zero, float lo, float hi) {
  float r = lane_round(x) + zero;
  r = r == r ? r : 0;
  r = r > lo ? r : lo;
  r = r < hi ? r : hi;
  return (i32)r;
}

/* Quotient or floored remainder; 0 if y is 0. */
static inline i64 lane_quotient(bool rest, i64 x, i64 y) {
  if (y == 0 || y == -1) return rest || !y ? 0 : (i64)(0 - (u64)x);
  const i64 r = x % y;
  if (!rest) return x / y;
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

/* Sums of products of OP_dot_i8x4 and OP_dot_i16x2. */
static inline i32 lane_dot_i8x4(u32 a, u32 b) {
  return (i32)(u8)a * (i8)(u8)b + (i32)(u8)(a >> 8) * (i8)(u8)(b >> 8) +
         (i32)(u8)(a >> 16) * (i8)(u8)(b >> 16) + (i32)(u8)(a >> 24) * (i8)(u8)(b >> 24);
}

static inline u32 lane_dot_i16x2(u32 a, u32 b) {
  return (u32)((i32)(i16)(u16)a * (i16)(u16)b) +
         (u32)((i32)(i16)(u16)(a >> 16) * (i16)(u16)(b >> 16));
}

#endif
