/* vm_ops.c: the table of instructions as data: names, operands and lengths, from vmops.def. */
#include "back/vm/vm.h"

#ifdef VM_SMALL
#include "back/vm/vm_binary.h"

const char *vm_operands(u32 op) {
  static const char *const form[] = {"d? s? s?", "D? S? S?", "D? S? s?", "D? s? S?"};
  static const char *const other[] = {
#define VM_NO_BINARY
#define VM(name, operands) operands,
#include "back/vm/vmops.def"
#undef VM
#undef VM_NO_BINARY
  };
  if (!is_binary(op)) return other[SKIP_BINARY(op)];
  const VmBinary p = binary_of(op);
  return p.op == OP_select ? "D? Sw S? S?" : form[p.form];
}
#else
const VmOpInfo vm_ops[VM_COUNT] = {
#define VM(name, operands) {operands, #name},
#include "back/vm/vmops.def"
#undef VM
};

const char *vm_operands(u32 op) {
  return vm_ops[op].operands;
}
#endif

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
  const char *all = vm_operands(op);
  for (const char *s = all; *s; s++) {
    if (*s == ' ' || (s > all && s[-1] != ' ')) continue;
    n += *s == 'p' ? ((head >> 16) + 3) / 4 : 1;
  }
  return n;
}
