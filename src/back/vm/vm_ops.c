/* vm_ops.c: the table of instructions as data.
 *
 * In: vmops.def. Out: names and operands for whoever prints, reads, verifies or writes code, and
 * how many words an instruction has.
 */
#include "back/vm/vm.h"

const VmOpInfo vm_ops[VM_COUNT] = {
#ifdef VM_ALONE
#define VM(name, operands) {operands},
#else
#define VM(name, operands) {operands, #name},
#endif
#include "back/vm/vmops.def"
#undef VM
};

VmClass vm_class(DType dt) {
  if (dt == DT_f64) return VC_d;
  if (dt == DT_i64 || dt == DT_u64 || dt == DT_u32 || dt == DT_str) return VC_l;
  if (dt == DT_none || dt == DT_c64 || dt == DT_c128 || dt >= DT_COUNT) return VC_none;
  return dtype_is_float(dt) ? VC_f : VC_w;
}

u32 vm_class_bytes(VmClass c) {
  return c == VC_d || c == VC_l ? 8 : 4;
}

bool vm_is_narrow(DType dt) {
  return dt == DT_u8 || dt == DT_i8 || dt == DT_u16 || dt == DT_i16;
}

u32 vm_words(u32 head) {
  u32 op = head & 0xffff, n = 1;
  if (op >= VM_COUNT) return 0;
  for (const char *s = vm_ops[op].operands; *s; s++) {
    if (*s == ' ' || (s > vm_ops[op].operands && s[-1] != ' ')) continue;
    n += *s == 'p' ? ((head >> 16) + 3) / 4 : 1;
  }
  return n;
}
