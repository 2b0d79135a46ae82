/* nest.h: the state of lowering, storage of values, and loops over the axes of a form.
 *
 * pass/kernel and pass/lower include this header; pass/form knows neither of them. */
#ifndef INGOT_NEST_H
#define INGOT_NEST_H

#include "ir/prog/affine.h"
#include "pass/form/form.h"
#include "pass/pass.h"

typedef struct States States;         /* state between runs, see lower_state.c */
typedef struct Attentions Attentions; /* see attention.h */

/* The memory of a value. Forms use a buffer with the shape of the value; it is the memory itself or
 * a view of it. */
typedef enum StorageKind {
  SK_memory,  /* the buffer itself, row-major */
  SK_inlined, /* nowhere: computed where it is read */
  SK_slot,    /* a part of the result of a concat, written there directly */
  SK_layout,  /* mem: channel blocks with a border */
  SK_state    /* mem: kept between runs and longer along one axis; possibly a ring buffer */
} StorageKind;

typedef struct Storage {
  StorageKind kind;
  Val value; /* inlined: the value */
  const Layout
      *layout; /* NULL: row-major; an inlined value with a layout is computed block by block */
  BufId mem;
  Val into;   /* result of a concat that it is a slot of; 0: none */
  u32 axis;   /* slot: axis of the concat; state: axis that is longer in memory */
  Dim offset; /* start along that axis; in a ring: relative to the head */
  VarId head; /* ring: start of the window; 0: none */
  i64 ring;   /* elements of the ring; without a head, indices are taken modulo this */
} Storage;

/* Storage of all values. */
typedef struct Storages {
  Storage *of; /* by value; see storage_of */
  Map by_buf;  /* buffer -> its value, unless SK_memory */
} Storages;

typedef struct Lower {
  Ctx *c;
  Graph *g;
  Prog *p;
  BufId *buf;    /* by graph value */
  Cursor at;     /* position of the next statement */
  const Node *n; /* the node being lowered; only pass/lower reads it, and lower_kernel */
  Storages places;
  States *states;
  Attentions *attentions;
  Map once; /* see MemoKind */
  const PassCtx *pass;
} Lower;

/* nest.c */
/* Context in which an expression is built. */
typedef struct ExprScope {
  Val acc;         /* value held in the accumulator; 0: none */
  ExprId acc_expr; /* the accumulator, rounded to its type */
  InnerVars inner; /* variables that run over lanes */
} ExprScope;

/* Loops over the axes of a form, opened one by one. */
typedef struct Nest {
  Lower *l;
  Prog *p;
  const Form *f;
  Cursor at;            /* innermost */
  VarId var[FORM_AXES]; /* 0: not open, or an extent of 1 */
  const ExprId *sub;    /* values of axes that replace variables; 0: none for this axis */
  ExprScope in;
} Nest;
void nest_loop(Nest *x, u32 axis);
void nest_loops(Nest *x, bool reduce,
                u32 but); /* opens all reduction axes, or all others, except axis `but` */
ExprId nest_index(Nest *x, const Operand *o, u32 i);
/* Address of an element of an operand: buffer, indices, and as result their number. */
u32 nest_address(Nest *x, const Operand *o, BufId *b, ExprId *idx);
ExprId nest_load(Nest *x, u32 in);
/* Does the window leave the image along a reduction axis other than `but`? 0: it cannot. */
ExprId nest_at_edge(Nest *x, u32 but);
void nest_store(Nest *x, ExprId value);
/* Applies the epilogue to the result of a reduction, if this kernel has one. */
ExprId nest_finish(Nest *x, ExprId value);
void lower_plain(Lower *l, Cursor at, const Form *f); /* scalar loops, one element at a time */
void lower_row(Lower *l, Cursor at, const Form *f,
               u32 axis);   /* family row_acc: accumulators along this axis */
ExprId nest_value(Nest *x); /* value of the body at the current point */

/* inlined.c: values without memory, as marked by fuse.c */
void inlined_value(Lower *l, Val v); /* marks v as computed where it is read */
bool inlined_make(Lower *l,
                  const Node *n); /* true: no code is written for n; its users compute the result */
/* Element of v, computed from its operands. */
ExprId inlined_eval(Lower *l, Val v, const ExprId *idx, const ExprScope *in);
/* The reduction whose accumulator the group of v uses, or v itself; 0: none. */
Val group_accumulator(Lower *l, Val v);
/* Form of the reduction that the kernel of this root computes; false: it has none. */
bool group_reduction(Lower *l, const Node *root, Form *f);

/* storage.c */
const Type *lower_type(Lower *l, Val v); /* type of a tensor; fails if v is not one */
BufId lower_buf(Lower *l, BufSpace space, Val v, Str name);
BufId lower_temp(Lower *l, Val v); /* buffer of a value, created on demand */
void storage_begin(Lower *l);
void storage_end(Lower *l);
const Storage *storage_of(const Lower *l, BufId b); /* storage of the value with this buffer */
static inline bool is_inlined(const Lower *l, BufId b) {
  return storage_of(l, b)->kind == SK_inlined;
}
static inline const Layout *layout_of(const Lower *l, BufId b) { /* NULL: row-major */
  return storage_of(l, b)->layout;
}
/* Replaces element indices by an address in memory. */
void storage_address(Lower *l, BufId *b, ExprId *idx, u32 *n, const InnerVars *inner);
/* Loads an element or computes it inline. */
ExprId storage_load(Lower *l, BufId b, const ExprId *idx, const ExprScope *in);
bool slots_all(Lower *l, const Node *n); /* are all operands of this concat in their slots? */
void slot_redirect(Lower *l, Form *f);   /* stores to the slot of the result, if it has one */

/* nest_util.c */
/* Attaches a record to a kernel. Parts that are written in the same way share one, with the largest
 * tile of all. */
RecordId kernel_record(Prog *p, StmtId kernel, KernelRecord r);
Cursor lower_kernel(Lower *l, Str label); /* opens a kernel at l->at, with the node's location */
/* Opens a kernel whose note is only its family. */
Cursor lower_small(Lower *l, const char *label, Family family);
/* Opens parallel loops over all dimensions except `skip` (MAX_RANK: none), row-major; the cursor
 * ends inside. Dimension `skip` and those of extent 1 get no loop, and variable 0. */
void open_loops(Prog *p, Cursor *at, const Dim *dim, u32 rank, u32 skip, VarId *var);
/* Opens loops over all dimensions whose iterations run in order. */
void open_ordered(Prog *p, Cursor *at, const Dim *dim, u32 rank, VarId *var);
VarId for_role(Prog *p, Cursor *at, ExprId lo, ExprId hi, const char *name, LoopRole role);
/* Marks a loop with independent iterations (LF_parallel). Its default role is batch. */
void loop_set_parallel(Prog *p, StmtId loop);
VarId for_parallel(Prog *p, Cursor *at, ExprId lo, ExprId hi,
                   const char *name); /* opens a parallel loop */
/* Opens a parallel loop over n > 0 and returns its counter; for n = 1 returns 0 without a loop. */
ExprId count_parallel(Prog *p, Cursor *at, i64 n, const char *name);
ExprId ex_at(Prog *p, VarId v);                     /* value of a loop variable; 0 for variable 0 */
ExprId load_at(Prog *p, BufId b, const VarId *var); /* element at these loop variables */
void store_at(Prog *p, Cursor *at, BufId b, const VarId *var, ExprId value);
VarId let_new(Prog *p, Cursor *at, const char *name, ExprId value);
ExprId ex_finish(Prog *p, DType to, ExprId acc); /* rounds an accumulator as scalar_round does */
/* Does a precede b in descending (largest) or ascending order? NaN counts as the largest. */
ExprId ex_before(Prog *p, VarId a, VarId b, bool largest);
/* Element of x at var, at position k along axis, converted to key_dtype. */
ExprId key_at(Prog *p, BufId x, const VarId *var, u32 axis, VarId k);
DType key_dtype(DType dt); /* type in which elements are compared */

#endif
