/* vm_binary.h: the instructions of two operands by rule, for a machine of few bytes.
 *
 * In: an opcode. Out: what it computes of which class, in which form. In vmops.def they stand
 * between VM_add_f and VM_div_l in fours, one for each form, the same ones for each class with a
 * choice (vsel) behind them, then some more; tables have no rows for them.
 */
#ifndef INGOT_VM_PAIRS_H
#define INGOT_VM_PAIRS_H

#include "back/vm/vm.h"

enum { VM_BINARY_COUNT = VM_div_l - VM_add_f };
#define SKIP_BINARY(op) ((op) < VM_add_f ? (op) : (op)-VM_BINARY_COUNT)

typedef struct VmBinary {
  VmClass cls;
  Op op;
  u32 form; /* of one element; of vectors; of a vector and one element; the same, turned */
} VmBinary;

static inline bool is_binary(u32 code) {
  return code - VM_add_f < VM_BINARY_COUNT;
}

VM_NOINLINE static VmBinary binary_of(u32 code) {
  static const u8 first[] = {OP_add, OP_sub, OP_mul, OP_max, OP_min,
                             OP_eq,  OP_ne,  OP_lt,  OP_le,  OP_select};
  static const u8 rest[] = {OP_div, OP_div, OP_and, OP_or, OP_xor, OP_and, OP_or, OP_xor};
  static const u8 cls[] = {VC_f, VC_d, VC_w, VC_l}, own[] = {0, 1, 2, 2, 2, 3, 3, 3};
  const u32 each = VM_add_d - VM_add_f;
  if (code >= VM_div_f) {
    code -= VM_div_f;
    return (VmBinary){(VmClass)cls[own[code / 4]], (Op)rest[code / 4], code % 4};
  }
  code -= VM_add_f;
  return (VmBinary){(VmClass)cls[code / each], (Op)first[code % each / 4], code % each % 4};
}

#endif
