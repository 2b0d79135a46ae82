/* machine.c: runs bytecode.
 *
 * In: a Vm whose code has been verified (or made here) and whose file has been initialised. Out:
 * why it ended. Method: one loop, threaded by computed goto where the compiler has it. The meaning
 * of every operator is src/ir/eval.c; what is used much is written out here as loops that compilers
 * turn into vectors, equal to it to the bit. This text is compiled once for each instruction set
 * (VM_NAME), and stands alone but for eval.c and the mathematics it includes: no memory is asked
 * for, nothing is kept, no function of a library is called but memcpy and memset.
 */
#include "back/vm/vm.h"

#include <string.h>
#include "ir/mathlibd.h"
#include "ir/mathlibf.h"
#include "ir/mathlibs.h"

#ifndef VM_NAME
#define VM_NAME vm_exec
#define VM_BASE 1
#endif

#include "back/vm/rows.h"
#include "back/vm/tile.h"

/* Where a walk reaches from its first element on, in elements: the least and the largest. */
static bool walk_fits(const VmMem *b, i64 at, const u32 *step, const i64 *n, u32 count, i64 lanes,
                      i64 size) {
  double lo = (double)at, hi = (double)at;
  for (u32 k = 0; k < 3; k++) {
    double d = (double)(i32)step[k] * (double)(n[k] - 1);
    if (d < 0)
      lo += d;
    else
      hi += d;
  }
  double d = (double)(i32)step[3] * (double)(count - 1);
  if (d < 0)
    lo += d;
  else
    hi += d;
  return lo >= 0 && hi <= (double)((i64)b->bytes / size - lanes);
}

/* Operands of a panel behind its first word: see vmops.def. False: it would leave a buffer. */
static bool panel(Vm *m, const u32 *p, u32 lanes) {
  u32 rows = p[2], cols = p[3], kind = p[4];
  bool wide = kind == VP_fma_m || kind == VP_mac_m;
  /* elements of x are bytes, or halves, that are read four bytes at a time */
  i64 size = kind == VP_dot4_b ? 1 : kind == VP_dot2_b ? 2 : 4;
  i64 n[3], xa = (i64)m->file[p[9]], ya = (i64)m->file[p[16]];
  for (u32 k = 0; k < 3; k++) {
    n[k] = (i64)m->file[p[5 + k]];
    if (n[k] <= 0) return true;
    if (n[k] >= (i64)1 << 40) return false;
  }
  const VmMem *bx = &m->buf[p[8]], *by = &m->buf[p[15]];
  if (xa < 0 || ya < 0 || xa > (i64)1 << 44 || ya > (i64)1 << 44) return false;
  xa += (i32)p[10];
  ya += (i32)p[17];
  if (!walk_fits(bx, xa, p + 11, n, rows, wide ? lanes : 4 / size, size)) return false;
  if (!walk_fits(by, ya, p + 18, n, cols, lanes, 4)) return false;
  Walk x = {bx->at + xa * size, {0}, (i32)p[14] * size};
  Walk y = {by->at + ya * 4, {0}, (i32)p[21] * (i64)4};
  for (u32 k = 0; k < 3; k++) {
    x.step[k] = (i32)p[11 + k] * size;
    y.step[k] = (i32)p[18 + k] * (i64)4;
  }
  u32 *sum = (u32 *)(void *)(m->file + p[1]);
  if (!tile_run(kind, sum, lanes, rows, cols, n, &x, &y))
    tile_plain(kind, sum, lanes, rows, cols, n, &x, &y);
  return true;
}

/* y = y + x * c, or x * z, lane by lane; memory that may be the same, but then the same lane. */
static void mac(vm_f *y, const vm_f *x, const vm_f *z, float c, u32 n) {
  if (z)
    VM_FREE for (u32 i = 0; i < n; i++) y[i] = y[i] + x[i] * z[i];
  else
    VM_FREE for (u32 i = 0; i < n; i++) y[i] = y[i] + x[i] * c;
}

#ifdef VM_BASE
void vm_begin(Vm *m) {
  const VmCode *c = m->code;
  memset(m->file, 0, (size_t)c->slots * 8);
  for (u32 i = 0; i < c->ninit; i++) m->file[c->init[i].slot] = c->init[i].bits;
}
#endif

/* ---- the loop ---- */

#define REG(T, k) ((T *)(void *)(file + pc[k]))
#define f_(k)     REG(vm_f, k)
#define d_(k)     REG(vm_d, k)
#define w_(k)     REG(vm_w, k)
#define l_(k)     REG(vm_l, k)
#define uw_(k)    REG(vm_uw, k)
#define ul_(k)    REG(vm_ul, k)

/* The element at buffer, offset and number from operand k on: n of them must be there. */
#define AT(k, size, n)                                                                             \
  const VmMem *mem = &m->buf[pc[k]];                                                               \
  const i64 at = (i64)((u64)*l_((k) + 1) + (u64)(i64)(i32)pc[(k) + 2]);                            \
  if (at < 0 || at > (i64)(mem->bytes / (size)) - (i64)(n)) goto bounds;                           \
  u8 *const p = mem->at + at * (i64)(size);

#define LOOP_f EACH_FEW
#define LOOP_d EACH
#define LOOP_w EACH_FEW
#define LOOP_l EACH
#define BINARY(op, c, T, expr)                                                                     \
  CASE(op##_##c) {                                                                                 \
    const T a = *REG(T, 2), b = *REG(T, 3);                                                        \
    *REG(T, 1) = (T)(expr);                                                                        \
    NEXT(4)                                                                                        \
  }                                                                                                \
  BINARY_V(op, c, T, T, expr)
#define BINARY_V(op, c, T, O, expr)                                                                \
  CASE(v##op##_##c) {                                                                              \
    const T *x = REG(T, 2), *y = REG(T, 3);                                                        \
    O *o = REG(O, 1);                                                                              \
    LOOP_##c(n, const T a = x[i]; const T b = y[i]; o[i] = (O)(expr));                             \
    NEXT(4)                                                                                        \
  }                                                                                                \
  CASE(v##op##s_##c) {                                                                             \
    const T *x = REG(T, 2), b = *REG(T, 3);                                                        \
    O *o = REG(O, 1);                                                                              \
    LOOP_##c(n, const T a = x[i]; o[i] = (O)(expr));                                               \
    NEXT(4)                                                                                        \
  }                                                                                                \
  CASE(v##op##r_##c) {                                                                             \
    const T a = *REG(T, 2), *y = REG(T, 3);                                                        \
    O *o = REG(O, 1);                                                                              \
    LOOP_##c(n, const T b = y[i]; o[i] = (O)(expr));                                               \
    NEXT(4)                                                                                        \
  }
#define COMPARE(op, c, T, expr)                                                                    \
  CASE(op##_##c) {                                                                                 \
    const T a = *REG(T, 2), b = *REG(T, 3);                                                        \
    *w_(1) = (expr);                                                                               \
    NEXT(4)                                                                                        \
  }                                                                                                \
  BINARY_V(op, c, T, vm_w, expr)
#define EVERY(c, T, U)                                                                             \
  BINARY(add, c, U, a + b)                                                                         \
  BINARY(sub, c, U, a - b)                                                                         \
  BINARY(mul, c, U, a *b)                                                                          \
  COMPARE(eq, c, T, a == b)                                                                        \
  COMPARE(ne, c, T, a != b)                                                                        \
  COMPARE(lt, c, T, a < b)                                                                         \
  COMPARE(le, c, T, a <= b)                                                                        \
  CASE(mov_##c) {                                                                                  \
    *REG(T, 1) = *REG(T, 2);                                                                       \
    NEXT(3)                                                                                        \
  }                                                                                                \
  CASE(vmov_##c) {                                                                                 \
    memmove(REG(T, 1), REG(T, 2), n * sizeof(T));                                                  \
    NEXT(3)                                                                                        \
  }                                                                                                \
  CASE(splat_##c) {                                                                                \
    const U x = *REG(U, 2);                                                                        \
    U *o = REG(U, 1);                                                                              \
    LOOP_##c(n, o[i] = x);                                                                         \
    NEXT(3)                                                                                        \
  }                                                                                                \
  CASE(vsel_##c) {                                                                                 \
    const vm_w *s = w_(2);                                                                         \
    const T *x = REG(T, 3), *y = REG(T, 4);                                                        \
    T *o = REG(T, 1);                                                                              \
    LOOP_##c(n, o[i] = s[i] ? x[i] : y[i]);                                                        \
    NEXT(5)                                                                                        \
  }

/* clang-format off */
#if defined(__GNUC__) && !defined(VM_SWITCH)
#define CASE(name) L_##name:
#define NEXT(words) { pc += (words); head = *pc; n = head >> 16 ? head >> 16 : vl; goto *label[head & 0xffff]; }
#define BEGIN NEXT(0)
#define END
#else
#define CASE(name) case VM_##name:
#define NEXT(words) { pc += (words); continue; }
#define BEGIN for (;;) { head = *pc; n = head >> 16 ? head >> 16 : vl; switch (head & 0xffff) {
#define END default: goto bounds; } }
#endif
/* clang-format on */

#define JUMP(cond, k)                                                                              \
  if (cond) {                                                                                      \
    const u32 *to = code + pc[k];                                                                  \
    if (to <= pc && fuel && !--fuel) goto tired;                                                   \
    pc = to;                                                                                       \
    NEXT(0)                                                                                        \
  }                                                                                                \
  NEXT((k) + 1)

/* Labels as values are what GNU C has beyond C99. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpedantic"
#endif
u32 VM_NAME(Vm *m) {
#if defined(__GNUC__) && !defined(VM_SWITCH)
  static const void *const label[VM_COUNT] = {
#define VM(name, operands) &&L_##name,
#include "back/vm/vmops.def"
#undef VM
  };
#endif
  const u32 *const code = m->code->word, *pc = code;
  u64 *const file = m->file;
  u64 fuel = m->fuel;
  const MathPart math = m->code->math;
  u32 vl = 0, n, head, end;
  BEGIN
  CASE(stop) {
    m->at = (u32)(pc - code);
    return VM_DONE;
  }
  CASE(jmp){JUMP(true, 1)} CASE(jz){JUMP(!*w_(1), 2)} CASE(jlt_l){JUMP(*l_(1) < *l_(2), 3)} CASE(
      jle_l){JUMP(*l_(1) <= *l_(2), 3)} CASE(jeq_l){JUMP(*l_(1) == *l_(2), 3)} CASE(jne_l){
      JUMP(*l_(1) != *l_(2), 3)} CASE(next) {
    *ul_(1) += *ul_(2);
    JUMP(*l_(1) < *l_(3), 4)
  }
  CASE(rows) {
    const i64 a = *l_(1), b = *l_(2), step = *l_(3);
    const u64 all = a < b && step > 0 ? ((u64)b - (u64)a - 1) / (u64)step + 1 : 0;
    vl = all < m->code->row ? (u32)all : m->code->row;
    NEXT(4)
  }
  CASE(need) {
    if (!*w_(1)) {
      m->at = (u32)(pc - code);
      return VM_NEED + pc[2];
    }
    NEXT(3)
  }
  CASE(iota) {
    const u64 first = *ul_(2), step = *ul_(3);
    vm_ul *o = ul_(1);
    for (u32 i = 0; i < n; i++) o[i] = first + i * step;
    NEXT(4)
  }
  CASE(pick_w) {
    const u8 *pick = (const u8 *)(pc + 4);
    const vm_w *a = w_(2);
    vm_w *o = w_(1);
    for (u32 i = 0; i < n; i++)
      if (pick[i] != 255) o[i] = a[pick[i]];
    NEXT(4 + (n + 3) / 4)
  }
  CASE(pick_l) {
    const u8 *pick = (const u8 *)(pc + 4);
    const vm_l *a = l_(2);
    vm_l *o = l_(1);
    for (u32 i = 0; i < n; i++)
      if (pick[i] != 255) o[i] = a[pick[i]];
    NEXT(4 + (n + 3) / 4)
  }
  EVERY(f, vm_f, vm_f)
  EVERY(d, vm_d, vm_d)
  EVERY(w, vm_w, vm_uw)
  EVERY(l, vm_l, vm_ul)
  BINARY(max, f, vm_f, b > a || b != b ? b : a)
  BINARY(min, f, vm_f, b < a || b != b ? b : a)
  BINARY(max, d, vm_d, b > a || b != b ? b : a)
  BINARY(min, d, vm_d, b < a || b != b ? b : a)
  BINARY(max, w, vm_w, a > b ? a : b)
  BINARY(min, w, vm_w, a < b ? a : b)
  BINARY(max, l, vm_l, a > b ? a : b)
  BINARY(min, l, vm_l, a < b ? a : b)
  BINARY(div, f, vm_f, a / b)
  BINARY(div, d, vm_d, a / b)
  BINARY(and, w, vm_w, a & b)
  BINARY(or, w, vm_w, a | b)
  BINARY(xor, w, vm_w, a ^ b)
  BINARY(and, l, vm_l, a & b)
  BINARY(or, l, vm_l, a | b)
  BINARY(xor, l, vm_l, a ^ b)
  CASE(div_l) {
    const i64 a = *l_(2), b = *l_(3);
    *l_(1) = b == 0 ? 0 : b == -1 ? (i64)(0 - (u64)a) : a / b;
    NEXT(4)
  }
  CASE(mod_l) {
    const i64 a = *l_(2), b = *l_(3), r = b == 0 || b == -1 ? 0 : a % b;
    *l_(1) = r != 0 && (r < 0) != (b < 0) ? r + b : r;
    NEXT(4)
  }
  CASE(mad_l) {
    *ul_(1) = *ul_(2) * *ul_(3) + *ul_(4);
    NEXT(5)
  }
  CASE(fma_f) {
    *f_(1) = im_fmaf(*f_(2), *f_(3), *f_(4));
    NEXT(5)
  }
  CASE(fma_d) {
    *d_(1) = im_fma(*d_(2), *d_(3), *d_(4));
    NEXT(5)
  }
  CASE(vfma_f) {
    const vm_f *x = f_(2), *y = f_(3), *z = f_(4);
    vm_f *o = f_(1);
    EACH_FEW(n, o[i] = im_fmaf(x[i], y[i], z[i]));
    NEXT(5)
  }
  CASE(vfmas_f) {
    const vm_f *x = f_(2), y = *f_(3), *z = f_(4);
    vm_f *o = f_(1);
    EACH_FEW(n, o[i] = im_fmaf(x[i], y, z[i]));
    NEXT(5)
  }
  CASE(vfma_d) {
    const vm_d *x = d_(2), *y = d_(3), *z = d_(4);
    vm_d *o = d_(1);
    EACH(n, o[i] = im_fma(x[i], y[i], z[i]));
    NEXT(5)
  }
  CASE(vfmas_d) {
    const vm_d *x = d_(2), y = *d_(3), *z = d_(4);
    vm_d *o = d_(1);
    EACH(n, o[i] = im_fma(x[i], y, z[i]));
    NEXT(5)
  }
  CASE(vdot4) {
    const vm_uw *x = uw_(2), *y = uw_(3), *z = uw_(4);
    vm_uw *o = uw_(1);
    EACH(n, o[i] = z[i] + (u32)tile_dot4(x[i], y[i]));
    NEXT(5)
  }
  CASE(vdot4s) {
    const vm_uw x = *uw_(2), *y = uw_(3), *z = uw_(4);
    vm_uw *o = uw_(1);
    EACH(n, o[i] = z[i] + (u32)tile_dot4(x, y[i]));
    NEXT(5)
  }
  CASE(vdot2) {
    const vm_uw *x = uw_(2), *y = uw_(3), *z = uw_(4);
    vm_uw *o = uw_(1);
    EACH(n, o[i] = z[i] + tile_dot2(x[i], y[i]));
    NEXT(5)
  }
  CASE(vdot2s) {
    const vm_uw x = *uw_(2), *y = uw_(3), *z = uw_(4);
    vm_uw *o = uw_(1);
    EACH(n, o[i] = z[i] + tile_dot2(x, y[i]));
    NEXT(5)
  }
  CASE(fun_f) {
    const u64 *const arg = file + pc[2];
    if (!fun_f(pc[3], f_(1), f_(2), n)) general(math, pc[3], file + pc[1], &arg, 1, n);
    NEXT(4)
  }
  CASE(fun_d) {
    const u64 *const arg = file + pc[2];
    if (!fun_d(pc[3], d_(1), d_(2), n)) general(math, pc[3], file + pc[1], &arg, 1, n);
    NEXT(4)
  }
  CASE(fit) {
    fit((DType)pc[3], file + pc[1], file + pc[2], n);
    NEXT(4)
  }
  CASE(cast) {
    cast(pc[3], file + pc[1], file + pc[2], n);
    NEXT(4)
  }
  CASE(bits) {
    bits(pc[3], file + pc[1], file + pc[2], n);
    NEXT(4)
  }
  CASE(gen1) {
    const u64 *const arg[1] = {file + pc[2]};
    general(math, pc[3], file + pc[1], arg, 1, n);
    NEXT(4)
  }
  CASE(gen2) {
    const u64 *const arg[2] = {file + pc[2], file + pc[3]};
    general(math, pc[4], file + pc[1], arg, 2, n);
    NEXT(5)
  }
  CASE(gen3) {
    const u64 *const arg[3] = {file + pc[2], file + pc[3], file + pc[4]};
    general(math, pc[5], file + pc[1], arg, 3, n);
    NEXT(6)
  }
  CASE(random) {
    for (u32 i = 0; i < n; i++) {
      Scalar x = {.f = random_unit((DType)pc[4], ul_(2)[i], m->seed, ul_(3)[i])};
      put((DType)pc[4], file + pc[1], i, x);
    }
    NEXT(5)
  }
  CASE(fold) {
    fold(math, pc[3], false, file + pc[1], file + pc[2], 0, n);
    NEXT(4)
  }
  CASE(foldr) {
    fold(math, pc[3], true, file + pc[1], file + pc[2], 0, n);
    NEXT(4)
  }
  CASE(reduce) {
    DType dt = (DType)(pc[3] >> 8 & 0xff);
    put(dt, file + pc[1], 0, get(dt, file + pc[2], 0));
    fold(math, pc[3], false, file + pc[1], file + pc[2], 1, n);
    NEXT(4)
  }
  CASE(dot_f) {
    float a = *f_(1);
    for (u32 i = 0; i < n; i++) a = a + f_(2)[i] * f_(3)[i];
    *f_(1) = a;
    NEXT(4)
  }
  CASE(fdot_f) {
    float a = *f_(1);
    for (u32 i = 0; i < n; i++) a = im_fmaf(f_(2)[i], f_(3)[i], a);
    *f_(1) = a;
    NEXT(4)
  }
  CASE(dot_d) {
    double a = *d_(1);
    for (u32 i = 0; i < n; i++) a = a + d_(2)[i] * d_(3)[i];
    *d_(1) = a;
    NEXT(4)
  }
  CASE(fdot_d) {
    double a = *d_(1);
    for (u32 i = 0; i < n; i++) a = im_fma(d_(2)[i], d_(3)[i], a);
    *d_(1) = a;
    NEXT(4)
  }
  CASE(ld_f32) {
    AT(2, 4, 1)
    *f_(1) = *(const vm_f *)(const void *)p;
    NEXT(5)
  }
  CASE(ld_f64) {
    AT(2, 8, 1)
    *d_(1) = *(const vm_d *)(const void *)p;
    NEXT(5)
  }
  CASE(ld_i32) {
    AT(2, 4, 1)
    *w_(1) = *(const vm_w *)(const void *)p;
    NEXT(5)
  }
  CASE(ld_i64) {
    AT(2, 8, 1)
    *l_(1) = *(const vm_l *)(const void *)p;
    NEXT(5)
  }
  CASE(st_f32) {
    AT(1, 4, 1)
    *(vm_f *)(void *)p = *f_(4);
    NEXT(5)
  }
  CASE(st_f64) {
    AT(1, 8, 1)
    *(vm_d *)(void *)p = *d_(4);
    NEXT(5)
  }
  CASE(st_i64) {
    AT(1, 8, 1)
    *(vm_l *)(void *)p = *l_(4);
    NEXT(5)
  }
  CASE(vld_f32) {
    AT(2, 4, n)
    const vm_uw *x = (const vm_uw *)(const void *)p;
    vm_uw *o = uw_(1);
    EACH_FEW(n, o[i] = x[i]);
    NEXT(5)
  }
  CASE(vst_f32) {
    AT(1, 4, n)
    const vm_uw *x = uw_(4);
    vm_uw *o = (vm_uw *)(void *)p;
    EACH_FEW(n, o[i] = x[i]);
    NEXT(5)
  }
  CASE(load) {
    AT(2, dtype_bytes((DType)pc[5]), n)
    read_row((DType)pc[5], file + pc[1], p, 1, n);
    NEXT(6)
  }
  CASE(store) {
    AT(1, dtype_bytes((DType)pc[5]), n)
    write_row((DType)pc[5], p, file + pc[4], 1, n);
    NEXT(6)
  }
  CASE(loads) {
    AT(2, dtype_bytes((DType)pc[6]), 1)
    const i64 inc = *l_(5);
    if (inc > (i64)1 << 40 || inc < -((i64)1 << 40)) goto bounds;
    const i64 last = at + inc * ((i64)n - 1);
    if (last < 0 || last >= (i64)(mem->bytes / dtype_bytes((DType)pc[6]))) goto bounds;
    read_row((DType)pc[6], file + pc[1], p, inc, n);
    NEXT(7)
  }
  CASE(stores) {
    AT(1, dtype_bytes((DType)pc[6]), 1)
    const i64 inc = *l_(5);
    if (inc > (i64)1 << 40 || inc < -((i64)1 << 40)) goto bounds;
    const i64 last = at + inc * ((i64)n - 1);
    if (last < 0 || last >= (i64)(mem->bytes / dtype_bytes((DType)pc[6]))) goto bounds;
    write_row((DType)pc[6], p, file + pc[4], inc, n);
    NEXT(7)
  }
  CASE(gather) {
    const DType dt = (DType)pc[5];
    const VmMem *mem = &m->buf[pc[2]];
    const u64 size = dtype_bytes(dt), all = mem->bytes / size;
    const u32 step = held_bytes(dt);
    for (u32 i = 0; i < n; i++) {
      const u64 at = ul_(3)[i] + (u64)(i64)(i32)pc[4];
      if (at >= all) goto bounds;
      u64 one = 0;
      read_row(dt, &one, mem->at + at * size, 1, 1);
      memcpy((u8 *)(file + pc[1]) + (size_t)i * step, &one, step);
    }
    NEXT(6)
  }
  CASE(scatter) {
    const DType dt = (DType)pc[5];
    const VmMem *mem = &m->buf[pc[1]];
    const u64 size = dtype_bytes(dt), all = mem->bytes / size;
    const u32 step = held_bytes(dt);
    for (u32 i = 0; i < n; i++) {
      const u64 at = ul_(2)[i] + (u64)(i64)(i32)pc[3];
      if (at >= all) goto bounds;
      u64 one = 0;
      memcpy(&one, (const u8 *)(file + pc[4]) + (size_t)i * step, step);
      write_row(dt, mem->at + at * size, &one, 1, 1);
    }
    NEXT(6)
  }
  CASE(quad) {
    const u64 size = dtype_bytes((DType)pc[5]);
    AT(2, size, 4 / size)
    const u8 *q = p;
    *uw_(1) = (u32)q[0] | (u32)q[1] << 8 | (u32)q[2] << 16 | (u32)q[3] << 24;
    NEXT(6)
  }
  CASE(vfmam_f) {
    AT(2, 4, n)
    const vm_f *x = (const vm_f *)(const void *)p, *y = f_(5);
    vm_f *o = f_(1);
    EACH_FEW(n, o[i] = im_fmaf(x[i], y[i], o[i]));
    NEXT(6)
  }
  CASE(vfmab_f) {
    AT(2, 4, 1)
    const vm_f x = *(const vm_f *)(const void *)p, *y = f_(5);
    vm_f *o = f_(1);
    EACH_FEW(n, o[i] = im_fmaf(x, y[i], o[i]));
    NEXT(6)
  }
  CASE(macs_f) {
    vm_f *y;
    {
      AT(1, 4, n)
      y = (vm_f *)(void *)p;
    }
    AT(4, 4, n)
    mac(y, (const vm_f *)(const void *)p, NULL, *f_(7), n);
    NEXT(8)
  }
  CASE(macv_f) {
    vm_f *y;
    const vm_f *x;
    {
      AT(1, 4, n)
      y = (vm_f *)(void *)p;
    }
    {
      AT(4, 4, n)
      x = (const vm_f *)(const void *)p;
    }
    AT(7, 4, n)
    mac(y, x, (const vm_f *)(const void *)p, 0, n);
    NEXT(10)
  }
  CASE(panel) {
    if (!panel(m, pc, n)) goto bounds;
    NEXT(22)
  }
  END bounds : end = VM_BOUNDS;
  goto out;
tired:
  end = VM_TIRED;
out:
  m->at = (u32)(pc - code);
  return end;
}
