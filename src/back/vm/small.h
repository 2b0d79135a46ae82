/* small.h: two-operand instructions of the standalone machine, optimized for code size.
 *
 * In: registers, an instruction. Out: registers, with the bits of handlers.def. Method: one loop
 * for all forms of an operation; a scalar operand has stride 0. */
#ifndef INGOT_VM_SMALL_H
#define INGOT_VM_SMALL_H

#include "back/vm/vm_binary.h"
#include "back/vm/rows.h"

static void binary_f(Op op, u64 *to, const vm_f *x, const vm_f *y, u32 dx, u32 dy, u32 n) {
  const float x0 = *x, y0 = *y; /* a scalar operand may overlap the first lane of the result */
  vm_f *o = (vm_f *)(void *)to;
  if (!dx) x = &x0;
  if (!dy) y = &y0;
  switch (op) {
  case OP_add:
    for (; n; n--, x += dx, y += dy) *o++ = *x + *y;
    break;
  case OP_mul:
    for (; n; n--, x += dx, y += dy) *o++ = *x * *y;
    break;
  case OP_max:
    for (; n; n--, x += dx, y += dy) *o++ = lane_larger_f(*x, *y);
    break;
  default:
    for (; n; n--, x += dx, y += dy)
      if (op_info[op].res == OR_pred)
        *(vm_w *)(void *)o++ = compare_float(op, *x, *y);
      else
        *o++ = eval_f32(op, *x, *y, 0);
  }
}

static u32 of_words(Op op, i32 a, i32 b) {
  switch (op) {
  case OP_add: return (u32)a + (u32)b;
  case OP_sub: return (u32)a - (u32)b;
  case OP_mul: return (u32)a * (u32)b;
  case OP_max: return (u32)(a > b ? a : b);
  case OP_min: return (u32)(a < b ? a : b);
  case OP_and: return (u32)(a & b);
  case OP_or: return (u32)(a | b);
  case OP_xor: return (u32)(a ^ b);
  case OP_shl: return (u32)b > 31 ? 0 : (u32)a << b;
  case OP_eq: return a == b;
  case OP_ne: return a != b;
  case OP_lt: return a < b;
  default: return a <= b;
  }
}

static void binary_w(Op op, u64 *to, const vm_w *x, const vm_w *y, u32 dx, u32 dy, u32 n) {
  const i32 x0 = *x, y0 = *y;
  if (!dx) x = &x0;
  if (!dy) y = &y0;
  for (vm_uw *o = (vm_uw *)(void *)to; n; n--, x += dx, y += dy) *o++ = of_words(op, *x, *y);
}

/* 64-bit elements. */
static void binary_wide(const VmBinary *p, u64 *to, const vm_ul *x, const vm_ul *y, u32 dx, u32 dy,
                        u32 n) {
  const u64 x0 = *x, y0 = *y;
  const bool pred = op_info[p->op].res == OR_pred;
  for (u32 i = 0; i < n; i++) {
    const u64 a = dx ? x[i] : x0, b = dy ? y[i] : y0;
    u64 r;
    if (p->cls == VC_l)
      r = pred ? compare_int(p->op, true, (i64)a, (i64)b)
               : (u64)eval_int(p->op, DT_i64, (i64)a, (i64)b);
    else
      r = pred ? compare_float(p->op, imk_f64(a), imk_f64(b))
               : imk_u64(eval_f64(p->op, imk_f64(a), imk_f64(b), 0));
    if (pred)
      ((vm_w *)(void *)to)[i] = (i32)r;
    else
      ((vm_ul *)to)[i] = r;
  }
}

/* vsel: lanes of one or two words. */
static void choose(u64 *to, const vm_w *s, const u64 *x, const u64 *y, u32 words, u32 n) {
  for (u32 i = 0; i < n; i++)
    for (u32 k = i * words; k < (i + 1) * words; k++)
      ((vm_uw *)(void *)to)[k] = ((const vm_uw *)(const void *)(s[i] ? x : y))[k];
}

/* Runs the instruction and returns its length in words. */
static u32 binary_op(u64 *file, const u32 *pc, u32 n) {
  const VmBinary p = binary_of(*pc & 0xffff);
  const u32 dx = p.form != 3, dy = p.form != 2;
  u64 *const to = file + pc[1], *const x = file + pc[2], *const y = file + pc[3];
  if (p.op == OP_select) {
    choose(to, (const vm_w *)(void *)x, y, file + pc[4], vm_class_bytes(p.cls) / 4, n);
    return 5;
  }
  if (!p.form) n = 1;
  if (p.cls == VC_f)
    binary_f(p.op, to, (const vm_f *)(const void *)x, (const vm_f *)(const void *)y, dx, dy, n);
  else if (p.cls == VC_w)
    binary_w(p.op, to, (const vm_w *)(const void *)x, (const vm_w *)(const void *)y, dx, dy, n);
  else
    binary_wide(&p, to, x, y, dx, dy, n);
  return 4;
}

#endif
