/* machine.c: runs bytecode.
 *
 * In: a Vm with verified (or self-compiled) code and an initialized register file. Out: the reason
 * it ended. Method: a dispatch loop, threaded by computed goto if the compiler supports it.
 * src/ir/eval.c defines every operator. Frequent ones are loops here that compilers vectorize,
 * bit-exact with eval.c. This source is compiled once per instruction set (VM_NAME). It depends
 * only on eval.c and the math functions it includes: it allocates nothing, keeps nothing, and calls
 * no library function except memcpy and memset. */
#include "back/vm/rows.h"
#ifdef VM_SMALL
#include "back/vm/small.h"
#endif

#if defined(VM_AVX512)
#define VM_NAME vm_exec_avx512
#define VM_TILE vm_tile_avx512
#elif defined(VM_AVX2)
#define VM_NAME vm_exec_avx2
#define VM_TILE vm_tile_avx2
#else
#define VM_NAME vm_exec
#define VM_TILE vm_tile
#define VM_BASE 1
#endif

/* Charges the iterations of a panel's nested loops as jumps. */
static bool spend_fuel(const u64 *file, const u32 *trips, u64 *fuel) {
  u64 all = 1;
  for (u32 k = 0; k < 3; k++) {
    const i64 n = (i64)file[trips[k]];
    if (n <= 0) return true;
    if ((u64)n >= *fuel / all) return false;
    all *= (u64)n;
  }
  *fuel -= all;
  return true;
}

#ifdef VM_BASE
void vm_begin(Vm *m) {
  const VmCode *c = m->code;
  memset(m->file, 0, (size_t)c->slots * 8);
  for (u32 i = 0; i < c->ninit; i++) m->file[c->init[i].slot] = c->init[i].bits;
}
#endif

/* ---- the loop ---- */

#define LANES_OF(head) ((head) >> 16 ? (head) >> 16 : vl)
#ifdef VM_SMALL
#define LANES lanes
#else
#define LANES LANES_OF(head)
#endif

#define REG(T, k) ((T *)(void *)(file + pc[k]))
#define f_(k)     REG(vm_f, k)
#define d_(k)     REG(vm_d, k)
#define w_(k)     REG(vm_w, k)
#define l_(k)     REG(vm_l, k)
#define uw_(k)    REG(vm_uw, k)
#define ul_(k)    REG(vm_ul, k)

/* clang-format off */
#if defined(__GNUC__) && !defined(VM_SWITCH)
#define CASE(name) L_##name:
#define NEXT(words) { pc += (words); head = *pc; goto *label[head & 0xffff]; }
#define BEGIN NEXT(0)
#define END
#elif defined(VM_SMALL)
#define CASE(name) case SKIP_BINARY(VM_##name):
#define NEXT(words) { pc += (words); continue; }
#define BEGIN for (;;) { head = *pc; const u32 lanes = LANES_OF(head); \
  if (is_binary(head & 0xffff)) NEXT(binary_op(file, pc, lanes)) switch (SKIP_BINARY(head & 0xffff)) {
#define END default: goto bounds; } }
#else
#define CASE(name) case VM_##name:
#define NEXT(words) { pc += (words); continue; }
#define BEGIN for (;;) { head = *pc; switch (head & 0xffff) {
#define END default: goto bounds; } }
#endif
/* clang-format on */

/* Labels as values are a GNU extension. */
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
  const MathMode math = m->code->math;
  u32 vl = 0, head, end;
  /* clang-format off */
  BEGIN
#include "back/vm/handlers.def"
  END
bounds:
  end = VM_BOUNDS;
  goto out;
/* clang-format on */
no_fuel:
  end = VM_NO_FUEL;
out:
  m->at = (u32)(pc - code);
  return end;
}
