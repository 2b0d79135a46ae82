/* vm_binary.h: decodes two-operand instructions by rule, for the standalone machine.
 *
 * In: an opcode. Out: operation, class and form. vmops.def lists these instructions from VM_add_f
 * to VM_div_l in groups of four, one per form. Each class has the same operations followed by
 * select (vsel); some more follow. The small tables omit these rows. */
#ifndef INGOT_VM_PAIRS_H
#define INGOT_VM_PAIRS_H

#include "back/vm/vm.h"

enum { VM_BINARY_COUNT = VM_div_l - VM_add_f };
#define SKIP_BINARY(op) ((op) < VM_add_f ? (op) : (op)-VM_BINARY_COUNT)

typedef struct VmBinary {
  VmClass cls;
  Op op;
  u32 form; /* scalar; vector, vector; vector, scalar; scalar, vector */
} VmBinary;

static inline bool is_binary(u32 code) {
  return code - VM_add_f < VM_BINARY_COUNT;
}

VM_NOINLINE static VmBinary binary_of(u32 code) {
  static const u8 first[] = {OP_add, OP_sub, OP_mul, OP_max, OP_min,
                             OP_eq,  OP_ne,  OP_lt,  OP_le,  OP_select};
  static const u8 rest[] = {OP_div, OP_div, OP_and, OP_or, OP_xor, OP_shl, OP_and, OP_or, OP_xor};
  static const u8 cls[] = {VC_f, VC_d, VC_w, VC_l}, own[] = {0, 1, 2, 2, 2, 2, 3, 3, 3};
  const u32 each = VM_add_d - VM_add_f;
  if (code >= VM_div_f) {
    code -= VM_div_f;
    return (VmBinary){(VmClass)cls[own[code / 4]], (Op)rest[code / 4], code % 4};
  }
  code -= VM_add_f;
  return (VmBinary){(VmClass)cls[code / each], (Op)first[code % each / 4], code % each % 4};
}

#endif
