/* vm_build.h: what the files that turn a Prog into bytecode share; nobody else includes this.
 *
 * Code is collected in levels: the program, a kernel, the body of a loop. Each has two streams, run
 * one behind the other: `pre`, what does not change while the level's list runs, and `body`. A
 * value knows from which level on it is there (`avail`): an operation without side effects goes to
 * the `pre` of that level, so what a loop does not change is computed outside of it, and only once.
 * Registers are virtual here: vm_alloc.c gives them slots.
 */
#ifndef INGOT_VM_BUILD_H
#define INGOT_VM_BUILD_H

#include "back/vm/vm.h"
#include "ir/affine.h"
#include "ir/prog.h"

enum { VM_LABEL = 0xffff, MOST_LEVELS = 200, ROW_LANES = 256 };

typedef VEC(u32) Words32;

/* A value in a register. lanes: 1 stands for any number of equal ones; 0: a row. */
typedef struct VmVal {
  u32 reg, avail, lanes;
} VmVal;

/* A register that nobody has given slots yet, or a part of another. */
typedef struct VReg {
  u32 slots, slot;
  u32 parent, off;
  u32 first, last; /* words where it is named; first 0: nowhere */
  bool named;      /* something else may be stored there later; false: one instruction writes it */
  bool fixed;      /* has its slots for itself as long as the program runs */
  bool seen;       /* whoever runs the code reads it afterwards */
} VReg;

typedef struct VmLevel {
  u32 id; /* of all levels that ever were */
  Words32 pre, body;
  u32 nundo; /* of VmBuild.undo when it began */
} VmLevel;

typedef struct VarInfo {
  VmVal val;
  bool mutable; /* has a register of its own */
  u32 level;    /* deepest level at hand that sets it, 1 + that; 0: none */
} VarInfo;

/* The level of a variable, or of a scalar, before the one at hand. */
typedef struct SetUndo {
  VarId var; /* 0: the scalar */
  BufId buf;
  u32 level;
} SetUndo;

/* A buffer with one element that is a register here. */
typedef struct VmScalar {
  u32 reg;   /* 0: it is memory */
  u32 level; /* as VarInfo.level */
} VmScalar;

/* The loop that is being written as rows. */
typedef struct RowLoop {
  VarId var; /* 0: none */
  i64 step;
  VmVal at; /* the counter of its first lane */
  VmVal iota;
} RowLoop;

typedef struct VmBuild {
  Ctx *c;
  Prog *p;
  Arena *a;
  VEC(VReg) reg;
  VarInfo *var; /* by variable */
  bool *sets;   /* by variable: is there a set? */
  u32 nvar;
  u32 *buf;         /* by root: its buffer of the machine; UINT32_MAX: none */
  VmScalar *scalar; /* by buffer */
  VmVal *bufreg;    /* by buffer: its registers */
  bool *memory;     /* by buffer of registers: is memory here */
  u32 nbuf;
  bool *fixed;      /* by buffer of the machine: a constant */
  Map constant;     /* bits and class -> register */
  VEC(VmInit) init; /* slot: a virtual register */
  Map same;         /* operations that are there: see pure */
  VmLevel level[MOST_LEVELS];
  u32 cur, nlevel, nlabel;
  VEC(SetUndo) undo;
  VEC(Str) message;
  VEC(StmtId) needs;
  u32 def;    /* where in the stream at hand the last result is named; 0: nowhere */
  u32 defreg; /* and which register that is */
  RowLoop row;
  struct {
    u32 key[8], n, reg;
    bool constant;
  } loaded[16]; /* what the body at hand has loaded since it last stored, constants apart, or could
                   be jumped to */
  u32 nloaded;
  u32 *reads; /* by buffer of registers: loads in the kernel at hand */
  bool *dead; /* by root: nothing loads from it, nor sees it after the run */
} VmBuild;

/* Where an access begins: offset and what is added to it. Row: from lane to lane. */
typedef struct VmAddr {
  u32 buf;
  DType dt;
  VmVal at;
  i64 k;
  bool moves; /* inc is not 0 */
  i64 inc;
  VmVal step;      /* of a row whose step is not known now; reg 0: it is */
  bool by_offsets; /* at is a row of them */
} VmAddr;

/* vm_build.c */
u32 new_reg(VmBuild *b, VmClass cls, u32 lanes);
u32 part_reg(VmBuild *b, u32 of, u32 off, VmClass cls, u32 lanes);
void put_words(VmBuild *b, Words32 *to, const u32 *w, u32 n);
u32 label_new(VmBuild *b);
void label_here(VmBuild *b, u32 label);
/* An instruction without result, in the body at hand. */
void emit_effect(VmBuild *b, VmOp op, u32 lanes, const u32 *operand, u32 n);
/* One with a result of its own, in the body at hand. */
VmVal result(VmBuild *b, VmOp op, u32 lanes, VmClass cls, const u32 *operand, u32 n);
/* One that depends on nothing but its operands, of which the last is there from `avail` on. */
VmVal emit_pure(VmBuild *b, VmOp op, u32 lanes, VmClass cls, u32 avail, const u32 *operand, u32 n);
/* A load: the same as result, unless it is there already. */
VmVal loaded(VmBuild *b, VmOp op, u32 lanes, VmClass cls, const u32 *operand, u32 n);
VmVal constant(VmBuild *b, DType dt, Scalar x);
VmVal integer(VmBuild *b, i64 x);
/* The value in that register, by making the instruction that computed it write there if it can. */
void assign_reg(VmBuild *b, VmVal v, u32 reg, VmClass cls, u32 lanes);
void level_push(VmBuild *b, StmtId first);
void level_pop(VmBuild *b);

/* vm_expr.c */
VmVal compile(VmBuild *b, ExprId e);
VmVal widen_val(VmBuild *b, VmVal v, VmClass cls, u32 lanes); /* in so many lanes */
VmAddr place(VmBuild *b, BufId buf, const ExprId *idx);
VmAddr addr_affine(VmBuild *b, BufId buf, const Affine *at); /* of variables */
VmVal load_from(VmBuild *b, const VmAddr *at, u32 lanes);
void store_to(VmBuild *b, const VmAddr *at, VmVal v, u32 lanes);
/* Is that element in a register of the machine, here from which level on? */
bool in_registers(VmBuild *b, BufId buf, const ExprId *idx, VmVal *at);
bool row_depends(VmBuild *b, ExprId e);
u32 operation(VmBuild *b, Op op, DType of, DType to); /* the operand o */

/* vm_quant.c */
bool vm_quantise(VmBuild *b, const Expr *e, VmVal *out); /* false: it is nothing of the kind */

/* vm_row.c */
bool vm_row_loop(VmBuild *b, const Stmt *s); /* false: nothing was written */
bool flat_of(VmBuild *b, BufId buf, const ExprId *idx, Affine *to);

/* vm_panel.c */
bool vm_panel_loop(VmBuild *b, StmtId id); /* false: nothing was written */

/* vm_compile.c */
bool vm_loop_runs(VmBuild *b, ExprId lo, ExprId hi); /* a loop, once at least? */
void compile_list(VmBuild *b, StmtId first);

/* vm_scalar.c */
void choose_scalars(VmBuild *b);
void store_scalars(VmBuild *b); /* those that are results */

/* vm_taps.c */
void vm_taps(VmBuild *b, Words32 *code);

/* vm_fuse.c */
void vm_fuse(VmBuild *b, Words32 *code);

/* vm_alloc.c */
/* One operand of an instruction at a time. */
typedef struct Operands {
  const char *at;
  u32 word; /* behind the first of the instruction */
  char kind, cls;
  bool also_read;
} Operands;
bool next_operand(Operands *o);
bool is_reg(char kind);
u32 root_of(const VmBuild *b, u32 reg);
u32 code_words(const u32 *w); /* of an instruction or a label */
bool has_effect(u32 head);    /* other than to write its first operand */
void count_uses(const VmBuild *b, const u32 *w, u32 *uses, u32 by); /* by root */
void vm_finish(VmBuild *b, VmCode *code);

#endif
