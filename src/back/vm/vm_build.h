/* vm_build.h: shared by the files that compile a Prog to bytecode; private to them.
 *
 * Code is collected in levels: the program, a kernel, a loop body. Each level has two streams that
 * run in order: `pre`, which is invariant while the level runs, and `body`. A value knows the level
 * from which it is available (`avail`). An operation without side effects goes to the `pre` of that
 * level, so loop-invariant code is hoisted and computed once. Registers are virtual; vm_alloc.c
 * assigns slots. */
#ifndef INGOT_VM_BUILD_H
#define INGOT_VM_BUILD_H

#include "back/vm/vm.h"
#include "ir/prog/affine.h"
#include "ir/prog/prog.h"

enum { VM_LABEL = 0xffff, MAX_LEVELS = 200, ROW_LANES = 256 };

/* A value in a register. lanes: 1 is broadcast to any number; 0 is a row. */
typedef struct VmVal {
  u32 reg, avail, lanes;
} VmVal;

/* A virtual register, or a part of another. */
typedef struct VReg {
  u32 slots, slot;
  u32 parent, off;
  u32 first, last; /* words that name it; first 0: none */
  bool named;      /* several instructions may write it; false: only one does */
  bool fixed;      /* owns its slots for the whole run */
  bool seen;       /* the caller reads it after the run */
} VReg;

typedef struct VmLevel {
  u32 id; /* unique over all levels */
  U32Vec pre, body;
  u32 nundo; /* length of VmBuild.undo at its start */
} VmLevel;

typedef struct VarInfo {
  VmVal val;
  bool mutable; /* has its own register */
  u32 level;    /* 1 + deepest open level that assigns it; 0: none */
} VarInfo;

/* Previous level of a variable or scalar. */
typedef struct LevelUndo {
  VarId var; /* 0: the scalar */
  BufId buf;
  u32 level;
} LevelUndo;

/* A buffer of one element that is kept in a register. */
typedef struct VmScalar {
  u32 reg;   /* 0: in memory */
  u32 level; /* like VarInfo.level */
} VmScalar;

/* The loop being compiled as rows. */
typedef struct RowLoop {
  VarId var; /* 0: none */
  i64 step;
  VmVal at; /* loop counter of the first lane */
  VmVal iota;
} RowLoop;

typedef struct VmBuild {
  Ctx *c;
  Prog *p;
  Arena *a;
  VEC(VReg) reg;
  VarInfo *var; /* by variable */
  bool *sets;   /* by variable: is it assigned by a set? */
  u32 nvar;
  u32 *buf;         /* by root: machine buffer; UINT32_MAX: none */
  VmScalar *scalar; /* by buffer */
  VmVal *bufreg;    /* by buffer: its registers */
  bool *memory;     /* by register buffer: kept in memory */
  u32 nbuf;
  bool *fixed;      /* by machine buffer: constant */
  Map constant;     /* bits and class -> register */
  VEC(VmInit) init; /* slot: a virtual register */
  Map same;         /* CSE of pure operations: see emit_pure */
  VmLevel level[MAX_LEVELS];
  u32 cur, nlevel, nlabel;
  VEC(LevelUndo) undo;
  VEC(Str) message;
  VEC(StmtId) needs;
  u32 def;    /* position of the last result in the current stream; 0: none */
  u32 defreg; /* register of that result */
  RowLoop row;
  struct {
    u32 key[8], n, reg;
    bool constant;
  } loaded[16]; /* available loads: those of the current body since its last store (constants stay)
                   or label */
  u32 nloaded;
  u32 *reads; /* by register buffer: loads in the current kernel */
  bool tiles; /* reductions of the current kernel are as lowering wrote them */
  bool *dead; /* by root: neither loaded nor visible after the run */
} VmBuild;

/* Address of an access: offset plus constant. Row: with the stride between lanes. */
typedef struct VmAddr {
  u32 buf;
  DType dt;
  VmVal at;
  i64 k;
  bool moves; /* inc is not 0 */
  i64 inc;
  VmVal step;      /* row stride known at run time; reg 0: inc is the stride */
  bool by_offsets; /* at is a row of offsets */
} VmAddr;

/* vm_build.c */
u32 new_reg(VmBuild *b, VmClass cls, u32 lanes);
u32 part_reg(VmBuild *b, u32 of, u32 off, VmClass cls, u32 lanes);
void put_words(VmBuild *b, U32Vec *to, const u32 *w, u32 n);
u32 label_new(VmBuild *b);
void label_here(VmBuild *b, u32 label);
/* An instruction without a result, in the current body. */
void emit_effect(VmBuild *b, VmOp op, u32 lanes, const u32 *operand, u32 n);
/* An instruction with a new result register, in the current body. */
VmVal vb_result(VmBuild *b, VmOp op, u32 lanes, VmClass cls, const u32 *operand, u32 n);
/* A pure instruction of n registers, placed in the level from which all are available. */
VmVal emit_pure(VmBuild *b, VmOp op, u32 lanes, VmClass cls, const VmVal *x, u32 n);
/* The same with one more word: a type or an operation. */
VmVal emit_typed(VmBuild *b, VmOp op, u32 lanes, VmClass cls, const VmVal *x, u32 n, u32 word);
VmVal emit_int(VmBuild *b, VmOp op, VmVal x, VmVal y); /* i64, one lane */
/* A load, unless an equal one is available. */
VmVal vb_loaded(VmBuild *b, VmOp op, u32 lanes, VmClass cls, const u32 *operand, u32 n);
VmVal vb_constant(VmBuild *b, DType dt, Scalar x);
VmVal vb_integer(VmBuild *b, i64 x);
/* Stores the value in the register, by retargeting the instruction that computed it if possible. */
void assign_reg(VmBuild *b, VmVal v, u32 reg, VmClass cls, u32 lanes);
void level_push(VmBuild *b, StmtId first);
void level_pop(VmBuild *b);

/* vm_expr.c */
VmVal vb_compile(VmBuild *b, ExprId e);
VmVal widen_val(VmBuild *b, VmVal v, VmClass cls, u32 lanes); /* broadcasts to the lanes */
VmAddr vb_place(VmBuild *b, BufId buf, const ExprId *idx);
VmAddr addr_affine(VmBuild *b, BufId buf,
                   const Affine *at); /* address from an affine index of variables */
VmVal load_from(VmBuild *b, const VmAddr *at, u32 lanes);
void store_to(VmBuild *b, const VmAddr *at, VmVal v, u32 lanes);
/* Is the element in a register? Sets the register and its level. */
bool vb_in_registers(VmBuild *b, BufId buf, const ExprId *idx, VmVal *at);
bool row_depends(VmBuild *b, ExprId e);
u32 vb_operation(VmBuild *b, Op op, DType of, DType to); /* operand of kind o */

/* vm_quant.c */
bool vm_quantize(VmBuild *b, const Expr *e,
                 VmVal *out); /* false: the expression is not a quantization */

/* vm_row.c */
bool vm_row_loop(VmBuild *b, const Stmt *s); /* false: nothing was written */
bool flat_of(VmBuild *b, BufId buf, const ExprId *idx, Affine *to);

/* vm_panel.c */
/* false: the loop must be compiled step by step */
bool vm_panel_loop(VmBuild *b, StmtId id);

/* vm_compile.c */
bool vm_loop_runs(VmBuild *b, ExprId lo, ExprId hi); /* does the loop run at least once? */
void compile_list(VmBuild *b, StmtId first);

/* vm_scalar.c */
void choose_scalars(VmBuild *b);
void store_scalars(VmBuild *b); /* stores the scalars that are outputs */

/* vm_fuse.c */
void vm_fuse(VmBuild *b, U32Vec *code);

/* vm_alloc.c */
/* Iterator over the operands of an instruction. */
typedef struct OperandIter {
  const char *at;
  u32 word; /* words after the first */
  char kind, cls;
  bool also_read;
} OperandIter;
bool next_operand(OperandIter *o);
bool vb_is_reg(char kind);
u32 vb_root_of(const VmBuild *b, u32 reg);
u32 code_words(const u32 *w); /* length of an instruction or label */
bool has_effect(u32 head);    /* has an effect other than writing its first operand */
void count_uses(const VmBuild *b, const u32 *w, u32 *uses, u32 by); /* by root */
void vm_finish(VmBuild *b, VmCode *code);

#endif
