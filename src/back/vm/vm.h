/* vm.h: register bytecode, and the machine that runs it.
 *
 * Code is words of 32 bits; vmops.def has the instructions. A machine has a file of registers,
 * slots of 8 bytes, and buffers. A register is the number of its first slot. An element of class f
 * or w takes 4 bytes, of d or l 8; a vector lies in as many slots as it fills. What each slot holds
 * before the code starts is zero but for VmCode.init.
 *
 * Memory is reached only through buffers: each access names one, a register with an offset and a
 * number added to it, in elements of its type. The machine compares every offset, and the last one
 * of what it reads or writes, with the extent of the buffer; where it does not fit, the run ends
 * with VM_BOUNDS. So code that has been verified can compute nonsense but touches nothing else. To
 * be verified, once and without running, is for every instruction:
 *   - its opcode is in the table, and all its words are there; so many for each (vm_words);
 *   - a register and what its class and lanes take (row lanes where that number is 0) lie in the
 *     file; lanes are at most VM_LANES;
 *   - a buffer is one of nbuf, and none that is only read where it is written, which is what an
 *     instruction does with its first operand; elements of it are aligned as their type wants;
 *   - a type has a class (vm_class), and is that of what it stands for; that of quant is narrow;
 *   - an operation is a scalar one, takes as many operands, and `fun` has that function;
 *   - a jump leads to the first word of an instruction, and the last instruction is a stop or jmp;
 *   - a message is one of nmessage; lanes that pick chooses are below their number;
 *   - a panel has 1 to VM_TILE rows and columns, and all its registers lie in the file.
 * Code may loop for ever: whoever runs code of others gives it a limit (Vm.fuel). A jump that is
 * taken to its own word or one before takes 1, a panel as many as its three loops have iterations
 * together; nothing else takes any, as it does at most VM_LANES elements and what follows lies
 * ahead. So a run executes at most fuel * nword instructions, with so many iterations of panels.
 */
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
extern const VmOpInfo vm_ops[VM_COUNT]; /* not of a machine of few bytes */

enum { VM_LANES = 1024, VM_TILE = 32 };
#define VM_FUEL ((u64)1 << 40) /* of code that was read, if nothing else is said: hours */

/* How a value is held in registers. */
typedef enum VmClass { VC_none, VC_f, VC_d, VC_w, VC_l } VmClass;

/* What a panel multiplies: x is one element for all lanes (b) or a vector (m). */
typedef enum VmPanel {
  VP_fma_b, /* f32, fma */
  VP_fma_m,
  VP_mac_b, /* f32, rounded before it is added */
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
  u32 slots; /* of the file */
  u32 row;   /* most lanes of a row */
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
  u64 *file; /* VmCode.slots, at a multiple of 64 */
  VmMem *buf;
  u64 seed; /* of random numbers */
  u64 fuel; /* the run ends before it has used up so much; 0: no limit */
  u32 at;   /* word where it ended */
} Vm;

typedef enum VmEnd {
  VM_DONE,
  VM_BOUNDS,    /* an offset left its buffer */
  VM_NO_FUEL,   /* no fuel */
  VM_NEED = 16, /* and the number of the message */
} VmEnd;

/* machine.c: the same text for several instruction sets. The file has been initialised. */
u32 vm_exec(Vm *m);
u32 vm_exec_avx2(Vm *m);
u32 vm_exec_avx512(Vm *m);
/* tile.c: likewise; p: the instruction `panel`. False: it would leave a buffer. */
bool vm_tile(Vm *m, const u32 *p, u32 lanes);
bool vm_tile_avx2(Vm *m, const u32 *p, u32 lanes);
bool vm_tile_avx512(Vm *m, const u32 *p, u32 lanes);
void vm_begin(Vm *m); /* clears the file and stores VmCode.init */

/* vm_ops.c */
const char *vm_operands(u32 op);
VmClass vm_class(DType dt);
u32 vm_class_bytes(VmClass c);
bool vm_is_narrow(DType dt); /* an integer of 8 or 16 bits */
u32 vm_words(u32 head);      /* of the instruction, with its first; 0: there is none such */

#ifndef VM_STANDALONE /* where there is nothing of ingot but the machine */

/* vm_text.c: exact inverses. What is read has the form of code; to be run it must be verified. */
void vm_print(const VmCode *c, StrBuf *t);
VmCode *vm_parse(Ctx *c, const char *text, size_t n, Str file, Arena *a);

/* ---- programs ---- */

/* A Prog as code, with what whoever runs it must know. */
struct VmProgram {
  const Prog *p;
  VmCode code;
  u32 *buf;    /* by root buffer of p: its number in the machine; UINT32_MAX: none */
  u32 *symbol; /* by symbol: the slot that holds it; 0: none */
  u32 nsymbol;
  Str *message;
  StmtId *needs; /* by message: the statement that requires it */
  Arena *a;      /* that it lives in */
  u8 *arena;     /* for all runs, see vm_prepare; NULL: the program is not planned */
  u64 *file;     /* likewise */
  u8 **constant; /* likewise, by buffer of the machine: a copy where data is not aligned, or NULL */
  bool foreign;  /* read from a file: others have made the code */
};

#endif
#endif
