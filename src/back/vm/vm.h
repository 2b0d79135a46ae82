/* vm.h: register bytecode and the machine that runs it.
 *
 * Code consists of 32-bit words; vmops.def lists the instructions. A machine has a register file of
 * 8-byte slots, and buffers. A register is named by its first slot. An element of class f or w
 * takes 4 bytes, of class d or l 8 bytes; a vector takes as many slots as it fills. All slots start
 * as zero except those of VmCode.init.
 *
 * Memory is accessed only through buffers. An access names a buffer, a register with an offset, and
 * a constant added to it, in elements of the type. The machine compares the first and last offset
 * of each access with the size of the buffer, and ends the run with VM_BOUNDS if one is outside.
 * Verified code can thus compute wrong results but touches no other memory. The verifier checks
 * every instruction once, without running it:
 * - the opcode is in the table, and all its words (vm_words) are present;
 * - each register lies in the file with all its lanes (row lanes if the number is 0); there are at
 *   most VM_LANES lanes;
 * - each buffer is below nbuf, is writable if it is the first operand, and is aligned for its type;
 * - each type has a class (vm_class) that matches its register; the type of quant is narrow;
 * - an operation is scalar and has the right number of operands, and `fun` has that function;
 * - a jump leads to the first word of an instruction; the last instruction is stop or jmp;
 * - a message is below nmessage; lanes selected by pick are below their number;
 * - a panel has 1 to VM_TILE rows and columns, and all its registers lie in the file.
 *
 * Code may loop forever, so a caller that runs foreign code sets a limit (Vm.fuel). A backward jump
 * costs 1, a panel the number of iterations of its three loops. Other instructions are free: they
 * process at most VM_LANES elements and continue forward. A run thus executes at most fuel * nword
 * instructions and fuel panel iterations. */
#ifndef INGOT_VM_H
#define INGOT_VM_H

#include "back/back.h"

typedef enum VmOp {
#define VM(name, operands) VM_##name,
#include "back/vm/vmops.def"
#undef VM
  VM_COUNT
} VmOp;

typedef struct VmOpInfo {
  const char *operands, *name;
} VmOpInfo;
extern const VmOpInfo vm_ops[VM_COUNT]; /* not in the standalone machine */

enum { VM_LANES = 1024, VM_TILE = 32 };
#define VM_FUEL ((u64)1 << 40) /* default for code from a file: hours */

/* Register class of a value. */
typedef enum VmClass { VC_none, VC_f, VC_d, VC_w, VC_l } VmClass;

/* Products of a panel: x is one element for all lanes (b) or a vector (m). */
typedef enum VmPanel {
  VP_fma_b, /* f32, FMA */
  VP_fma_m,
  VP_mac_b, /* f32, product rounded before the addition */
  VP_mac_m,
  VP_dot_i8x4_b, /* w: four bytes of x, see OP_dot_i8x4 */
  VP_dot_i16x2_b,
  VP_COUNT
} VmPanel;

typedef struct VmInit {
  u64 bits;
  u32 slot, zero;
} VmInit;

typedef struct VmCode {
  u32 *word;
  u32 nword;
  u32 slots; /* slots of the register file */
  u32 row;   /* maximum lanes of a row */
  u32 nbuf, nmessage;
  MathMode math;
  VmInit *init;
  u32 ninit;
} VmCode;

typedef struct VmMem {
  u8 *at;
  u64 bytes;
} VmMem;

typedef struct Vm {
  const VmCode *code;
  u64 *file; /* VmCode.slots slots, aligned to 64 bytes */
  VmMem *buf;
  u64 seed; /* seed of random numbers */
  u64 fuel; /* limit of the run; 0: none */
  u32 at;   /* word where the run ended */
} Vm;

typedef enum VmStatus {
  VM_DONE,
  VM_BOUNDS,    /* an offset was outside its buffer */
  VM_NO_FUEL,   /* the limit was reached */
  VM_NEED = 16, /* plus the number of the message */
} VmStatus;

/* machine.c: one source, compiled per instruction set. Call vm_begin first. */
u32 vm_exec(Vm *m);
u32 vm_exec_avx2(Vm *m);
u32 vm_exec_avx512(Vm *m);
/* tile.c: one source, compiled per instruction set; p: the instruction `panel`. False: an offset is
 * outside its buffer. */
bool vm_tile(Vm *m, const u32 *p, u32 lanes);
bool vm_tile_avx2(Vm *m, const u32 *p, u32 lanes);
bool vm_tile_avx512(Vm *m, const u32 *p, u32 lanes);
void vm_begin(Vm *m); /* clears the register file and stores VmCode.init */

/* vm_ops.c */
const char *vm_operands(u32 op);
VmClass vm_class(DType dt);
u32 vm_class_bytes(VmClass c);
bool vm_is_narrow(DType dt); /* an 8-bit or 16-bit integer */
u32 vm_words(u32 head);      /* length of the instruction in words; 0: invalid */

#ifndef VM_STANDALONE /* the rest needs ingot, not only the machine */

/* vm_text.c: printer and parser, exact inverses. Parsed code must be verified before it runs. */
void vm_print(const VmCode *c, StrBuf *t);
VmCode *vm_parse(Ctx *c, const char *text, size_t n, Str file, Arena *a);

/* ---- programs ---- */

/* A Prog as code, with the tables to run it. */
struct VmProgram {
  const Prog *p;
  VmCode code;
  u32 *buf;    /* by root buffer of p: buffer of the machine; UINT32_MAX: none */
  u32 *symbol; /* by symbol: its slot; 0: none */
  u32 nsymbol;
  Str *message;
  StmtId *needs; /* by message: the require statement */
  Arena *a;      /* arena it lives in */
  u8 *arena;     /* memory of all runs, see vm_prepare; NULL: the program has no plan */
  u64 *file;     /* register file of all runs */
  u8 **constant; /* by machine buffer: aligned copy of unaligned data, or NULL */
  bool foreign;  /* read from a file: untrusted code */
};

#endif
#endif
