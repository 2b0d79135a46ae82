/* small.h: functions of small.def, optimized for code size.
 *
 * In: registers, rows of memory, an operation. Out: registers or rows, with the bits of fast.def.
 * Method: one loop for all forms of an operation; a scalar operand has stride 0. Rare operations
 * run lane by lane through eval.c. */
#ifndef INGOT_VM_SMALL_H
#define INGOT_VM_SMALL_H

#include "back/vm/vm_binary.h"
#include "back/vm/rows.h"

/* ---- memory and registers ---- */

#define MOVE(T, R, to_step, from_step)                                                             \
  {                                                                                                \
    const T *p = (const T *)(const void *)from;                                                    \
    R *o = (R *)(void *)to;                                                                        \
    for (ptrdiff_t i = 0; i < (ptrdiff_t)n; i++) o[i * (to_step)] = (R)p[i * (from_step)];         \
    return;                                                                                        \
  }

/* n elements of memory with stride inc. A single element may have a stride that overflows
 * ptrdiff_t. */
static void read_row(DType dt, u64 *to, const u8 *from, i64 inc, u32 n) {
  const ptrdiff_t by = (ptrdiff_t)inc;
  switch (dt) {
  case DT_f32:
  case DT_i32: MOVE(vm_uw, vm_uw, 1, by)
  case DT_f64:
  case DT_i64:
  case DT_u64: MOVE(vm_ul, vm_ul, 1, by)
  case DT_i16: MOVE(vm_i16, vm_w, 1, by)
  case DT_u16: MOVE(vm_u16, vm_w, 1, by)
  case DT_i8: MOVE(vm_i8, vm_w, 1, by)
  case DT_u8: MOVE(vm_u8, vm_w, 1, by)
  default: break;
  }
  for (u32 i = 0; i < n; i++)
    put(dt, to, i, scalar_load(dt, from + by * (ptrdiff_t)(i * dtype_bytes(dt))));
}

static void write_row(DType dt, u8 *to, const u64 *from, i64 inc, u32 n) {
  const ptrdiff_t by = (ptrdiff_t)inc;
  switch (dt) {
  case DT_f32:
  case DT_i32: MOVE(vm_uw, vm_uw, by, 1)
  case DT_f64:
  case DT_i64:
  case DT_u64: MOVE(vm_ul, vm_ul, by, 1)
  case DT_i16:
  case DT_u16: MOVE(vm_uw, vm_u16, by, 1)
  case DT_i8:
  case DT_u8: MOVE(vm_uw, vm_u8, by, 1)
  default: break;
  }
  for (u32 i = 0; i < n; i++)
    scalar_store(dt, to + by * (ptrdiff_t)(i * dtype_bytes(dt)), get(dt, from, i));
}
#undef MOVE

/* 8-bit and 16-bit integers: sign-extends from the highest kept bit. */
static void fit(DType dt, u64 *to, const u64 *from, u32 n) {
  if (held_as(dt) == DT_i32 && dt != DT_bool && dtype_bytes(dt) < 4) {
    const u32 keep = ((u32)1 << dtype_info[dt].bits) - 1,
              sign = dtype_is_signed(dt) ? keep / 2 + 1 : 0;
    const vm_uw *p = (const vm_uw *)(const void *)from;
    for (vm_uw *o = (vm_uw *)(void *)to; n; n--) *o++ = ((*p++ & keep) ^ sign) - sign;
    return;
  }
  fit_lanes(dt, to, from, n);
}

/* Casts that are frequent in quantized models have their own loops. */
static void cast(u32 how, u64 *to, const u64 *from, u32 n) {
  const DType a = (DType)(how & 0xff), b = (DType)(how >> 8 & 0xff), ha = held_as(a);
  const bool sat = how >> 16 & 1;
  if (b == DT_f32 && ha == DT_i32) {
    const vm_w *p = (const vm_w *)(const void *)from;
    for (vm_f *o = (vm_f *)(void *)to; n; n--) *o++ = (float)*p++;
    return;
  }
  if (sat && a == DT_f32 && (b == DT_i8 || b == DT_u8)) {
    const i32 lo = b == DT_i8 ? -128 : 0, hi = lo + 255;
    const vm_f *p = (const vm_f *)(const void *)from;
    for (vm_w *o = (vm_w *)(void *)to; n; n--, p++)
      *o++ = *p != *p ? 0 : *p <= (float)lo ? lo : *p >= (float)hi ? hi : (i32)*p;
    return;
  }
  for (u32 i = 0; i < n; i++) put(b, to, i, scalar_cast(a, b, get(a, from, i), sat));
}

/* Floats are reduced in float, not in double. */
static void accumulate(MathMode math, u32 o, bool turned, u64 *to, const u64 *from, u32 first,
                       u32 n) {
  const DType dt = (DType)(o >> 8 & 0xff);
  const Op op = (Op)(o & 0xff);
  if (dt == DT_f32 && !turned && (op == OP_add || op == OP_mul || op == OP_max || op == OP_min)) {
    const vm_f *p = (const vm_f *)(const void *)from;
    float a = *(vm_f *)(void *)to;
    for (u32 i = first; i < n; i++) a = eval_f32(op, a, p[i], 0);
    *(vm_f *)(void *)to = a;
    return;
  }
  reduce_lanewise(math, o, turned, to, from, first, n);
}

/* ---- addresses ---- */

/* Address of element `at` if n elements are in bounds; otherwise NULL. */
VM_NOINLINE static u8 *element(const VmMem *mem, i64 at, u32 size, u32 n) {
  if (at < 0 || at >= (i64)1 << 40 || (u64)(at + n) * size > mem->bytes) return NULL;
  return mem->at + (size_t)at * size;
}

/* Address of an operand triple: buffer, offset, immediate. */
static u8 *place(const Vm *m, const u32 *operand, u32 size, u32 n) {
  const i64 at = (i64)(m->file[operand[1]] + (u64)(i64)(i32)operand[2]);
  return element(&m->buf[operand[0]], at, size, n);
}

/* Address of an operand triple whose n elements have stride inc. */
static u8 *places(const Vm *m, const u32 *operand, i64 inc, u32 size, u32 n) {
  const VmMem *mem = &m->buf[operand[0]];
  const i64 at = (i64)(m->file[operand[1]] + (u64)(i64)(i32)operand[2]), most = (i64)1 << 40;
  u8 *first = element(mem, at, size, 1);
  if (!first || inc > most || inc < -most) return NULL;
  return element(mem, at + inc * ((i64)n - 1), size, 1) ? first : NULL;
}

static void copy_words(u64 *to, const u64 *from, u32 n) {
  const vm_uw *f = (const vm_uw *)from;
  for (vm_uw *t = (vm_uw *)to; n; n--) *t++ = *f++;
}

/* Lanes of a register and elements of a buffer at one offset per lane. operand: buffer, register of
 * offsets, immediate. */
static bool gather_scatter(const Vm *m, const u32 *operand, DType dt, u64 *reg, u32 n, bool write) {
  const u32 step = held_bytes(dt);
  u8 *lane = (u8 *)reg;
  for (u32 i = 0; i < n; i++, lane += step) {
    const i64 at = (i64)(m->file[operand[1] + i] + (u64)(i64)(i32)operand[2]);
    u8 *p = element(&m->buf[operand[0]], at, dtype_bytes(dt), 1);
    u64 one = 0;
    if (!p) return false;
    if (write) {
      memcpy(&one, lane, step);
      write_row(dt, p, &one, 1, 1);
    } else {
      read_row(dt, &one, p, 1, 1);
      memcpy(lane, &one, step);
    }
  }
  return true;
}

/* quant; quant_f if y is NULL. */
static void quantize(vm_w *o, const vm_w *x, const vm_w *y, const vm_f *by, float zero, u32 type,
                     u32 n) {
  float lo, hi;
  quant_range(type, &lo, &hi);
  for (u32 i = 0; i < n; i++) {
    const float v =
        y ? (float)(i32)((u32)x[i] + (u32)y[i]) * by[i] : ((const vm_f *)(const void *)x)[i];
    o[i] = lane_quant(v, zero, lo, hi);
  }
}

/* ---- two-operand instructions, see vm_binary.h ---- */

#define OPCODE (head & 0xffff)

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

/* o = fma(x, y, z) for n lanes. */
static void fma_lanes(vm_f *o, const vm_f *x, u32 dx, const vm_f *y, u32 dy, const vm_f *z, u32 n) {
  const float x0 = *x, y0 = *y;
  for (u32 i = 0; i < n; i++) o[i] = im_fmaf(dx ? x[i] : x0, dy ? y[i] : y0, z[i]);
}

static void fma_lanes_d(vm_d *o, const vm_d *x, const vm_d *y, u32 dy, const vm_d *z, u32 n) {
  const double y0 = *y;
  for (u32 i = 0; i < n; i++) o[i] = im_fma(x[i], dy ? y[i] : y0, z[i]);
}

#endif
