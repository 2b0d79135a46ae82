/* build.h: what the files that turn a Prog into bytecode share; nobody else includes this.
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
typedef struct Val {
  u32 reg, avail, lanes;
} Val;

/* A register that nobody has given slots yet, or a part of another. */
typedef struct VReg {
  u32 slots, slot;
  u32 parent, off;
  u32 first, last; /* words where it is named; first 0: nowhere */
  bool named;      /* something else may be stored there later */
  bool fixed;      /* has its slots for itself as long as the program runs */
} VReg;

typedef struct Nest {
  u32 id; /* of all levels that ever were */
  Words32 pre, body;
  u32 nundo; /* of Build.undo when it began */
} Nest;

typedef struct VarInfo {
  Val val;
  bool mutable; /* has a register of its own */
  u32 level;    /* deepest level at hand that sets it, 1 + that; 0: none */
} VarInfo;

typedef struct Undo {
  VarId var;
  u32 level;
} Undo;

/* The loop that is being written as rows. */
typedef struct RowLoop {
  VarId var; /* 0: none */
  i64 step;
  Val at; /* the counter of its first lane */
  Val iota;
} RowLoop;

typedef struct Build {
  Ctx *c;
  Prog *p;
  Arena *a;
  VEC(VReg) reg;
  VarInfo *var; /* by variable */
  bool *sets;   /* by variable: is there a set? */
  u32 nvar;
  u32 *buf;     /* by root: its buffer of the machine; UINT32_MAX: none */
  Val *bufreg;  /* by buffer: its registers */
  bool *memory; /* by buffer of registers: is memory here */
  u32 nbuf;
  Map constant;     /* bits and class -> register */
  VEC(VmInit) init; /* slot: a virtual register */
  Map same;         /* operations that are there: see pure */
  Nest level[MOST_LEVELS];
  u32 cur, nlevel, nlabel;
  VEC(Undo) undo;
  VEC(Str) message;
  VEC(StmtId) needs;
  u32 def;    /* where in the stream at hand the last result is named; 0: nowhere */
  u32 defreg; /* and which register that is */
  RowLoop row;
  u32 *reads; /* by buffer of registers: loads in the kernel at hand */
} Build;

/* Where an access begins: offset and what is added to it. Row: from lane to lane. */
typedef struct Place {
  u32 buf;
  DType dt;
  Val at;
  i64 k;
  bool moves; /* inc is not 0 */
  i64 inc;
  Val step;   /* of a row whose step is not known now; reg 0: it is */
  bool apart; /* at is a row of offsets */
} Place;

/* vm_build.c */
u32 new_reg(Build *b, VmClass cls, u32 lanes);
u32 part_reg(Build *b, u32 of, u32 off, VmClass cls, u32 lanes);
void put_words(Build *b, Words32 *to, const u32 *w, u32 n);
u32 label_new(Build *b);
void label_here(Build *b, u32 label);
/* An instruction without result, in the body at hand. */
void effect(Build *b, VmOp op, u32 lanes, const u32 *operand, u32 n);
/* One with a result of its own, in the body at hand. */
Val result(Build *b, VmOp op, u32 lanes, VmClass cls, const u32 *operand, u32 n);
/* One that depends on nothing but its operands, of which the last is there from `avail` on. */
Val pure(Build *b, VmOp op, u32 lanes, VmClass cls, u32 avail, const u32 *operand, u32 n);
Val constant(Build *b, DType dt, Scalar x);
Val integer(Build *b, i64 x);
/* The value in that register, by making the instruction that computed it write there if it can. */
void settle(Build *b, Val v, u32 reg, VmClass cls, u32 lanes);
void level_push(Build *b, StmtId first);
void level_pop(Build *b);

/* vm_expr.c */
Val compile(Build *b, ExprId e);
Val widen_val(Build *b, Val v, VmClass cls, u32 lanes); /* in so many lanes */
Place place(Build *b, BufId buf, const ExprId *idx);
Val load_from(Build *b, const Place *at, u32 lanes);
void store_to(Build *b, const Place *at, Val v, u32 lanes);
bool in_registers(Build *b, BufId buf, const ExprId *idx, u32 *reg);
bool row_depends(Build *b, ExprId e);
u32 operation(Build *b, Op op, DType of, DType to); /* the operand o */

/* vm_row.c */
bool row_loop(Build *b, const Stmt *s); /* false: nothing was written */
bool flat_of(Build *b, BufId buf, const ExprId *idx, Affine *to);

/* vm_panel.c */
bool panel_loop(Build *b, StmtId id); /* false: nothing was written */

/* vm_compile.c */
void compile_list(Build *b, StmtId first);

/* vm_alloc.c */
void vm_finish(Build *b, VmCode *code);

#endif
