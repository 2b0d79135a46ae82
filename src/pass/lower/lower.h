/* lower.h: what the files of lowering share; nobody else includes this. */
#ifndef INGOT_LOWER_H
#define INGOT_LOWER_H

#include "ir/affine.h"
#include "pass/lower/form.h"
#include "pass/kernel/family.h"
#include "pass/pass.h"
#include "pass/kernel/tune_table.h"

typedef struct States States;         /* what is kept from run to run, see lower_state.c */
typedef struct Attentions Attentions; /* see attention.h */

/* Where a value lives. It has a buffer of its own shape in any case, of which forms are made as of
 * any other; that is the memory, or stands for it. */
typedef enum StorageKind {
  SK_memory,  /* the buffer itself, row-major */
  SK_inlined, /* nowhere: computed where it is read */
  SK_slot,    /* a part of the result of a concat, written there at once */
  SK_layout,  /* mem: channels in blocks, a border around */
  SK_state    /* mem: kept from run to run and longer along one axis; maybe a ring */
} StorageKind;

typedef struct Storage {
  StorageKind kind;
  Val value;            /* inlined: this one */
  const Layout *layout; /* NULL: row-major; one that is inlined is computed block by block */
  BufId mem;
  Val into;   /* result of a concat that it already lies in, in its place; 0: none */
  u32 axis;   /* slot: of the concat; state: the one that is longer in memory */
  Dim offset; /* where it begins along that axis, in a ring behind the head */
  VarId head; /* ring: where the window begins; 0: none */
  i64 ring;   /* places of the ring; without a head: an index is taken modulo it */
} Storage;

/* Where values are. */
typedef struct Storages {
  Storage *of; /* by value; see storage_of */
  Map by_buf;  /* buffer -> its value, where that is not simply SK_memory */
} Storages;

typedef struct Lower {
  Ctx *c;
  Graph *g;
  Prog *p;
  BufId *buf; /* of each graph value */
  Cursor at;  /* where the next statement goes */
  const Node *n;
  Storages places;
  States *states;
  Attentions *attentions;
  Map once; /* see OnceKind */
  const PassCtx *unit;
} Lower;

typedef void LowerFn(Lower *l, Cursor at); /* the node is l->n; at: inside its kernel */

/* lower.c */
void lower_region(Lower *l, RegionId b);
BufId lower_temp(Lower *l, Val v);        /* buffer of a value, made if need be */
Cursor lower_kernel(Lower *l, Str label); /* region at l->at, with the node's location */
/* The same where the family says all there is to say. */
Cursor lower_small(Lower *l, const char *label, Family family);
void lower_copy(Lower *l, BufId from, BufId to); /* as a kernel of its own */
static inline BufId lower_in(const Lower *l, u32 i) {
  return l->buf[l->n->in[i]];
}
static inline BufId lower_out(const Lower *l, u32 i) {
  return l->buf[l->n->out[i]];
}

/* lower_form.c */
/* What surrounds an expression: handed down to whatever writes it. */
typedef struct ExprScope {
  Val acc;         /* value that lies in the accumulator; 0: none */
  ExprId acc_expr; /* that accumulator, rounded to its type */
  InnerVars inner; /* variables that run over lanes */
} ExprScope;

/* Loops over the axes of a form, opened one after the other. */
typedef struct Nest {
  Lower *l;
  Prog *p;
  const Form *f;
  Cursor at;            /* innermost */
  VarId var[FORM_AXES]; /* 0: not open, or an extent of 1 */
  const ExprId *sub;    /* instead of variables: values of axes, 0 where there is none */
  ExprScope in;
} Nest;
void nest_loop(Nest *x, u32 axis);
void nest_loops(Nest *x, bool fold,
                u32 but); /* all that are folded, or all that are not; but one */
ExprId nest_index(Nest *x, const Operand *o, u32 i);
/* Where the element of an operand lies in memory: buffer, indices and their number. */
u32 nest_address(Nest *x, const Operand *o, BufId *b, ExprId *idx);
ExprId nest_load(Nest *x, u32 in);
void nest_store(Nest *x, ExprId value);
/* What the users of a fold make of it, if it is finished in this kernel. */
ExprId nest_finish(Nest *x, ExprId value);
void lower_form(Lower *l, Cursor at, const Form *f);
void lower_plain(Lower *l, Cursor at, const Form *f);         /* one element after the other */
void lower_row(Lower *l, Cursor at, const Form *f, u32 axis); /* of sums, along this axis */
ExprId nest_value(Nest *x); /* of the body at the place where the nest stands */

/* lower_fuse.c: values without memory, see fuse.c */
void inlined_value(Lower *l, Val v);        /* it is computed where it is read */
bool inlined_make(Lower *l, const Node *n); /* its result needs no code of its own */
/* Element of v, computed from its operands. */
ExprId inlined_eval(Lower *l, Val v, const ExprId *idx, const ExprScope *in);
/* The folded value that v is made of in its group, or v itself; 0: none. */
Val group_accumulator(Lower *l, Val v);
/* Root of a group whose fold is computed in this kernel: its form; false if there is none. */
bool group_reduction(Lower *l, const Node *root, Form *f);

/* lower_flat.c */
enum { FLAT_VALUES = 32 }; /* of a group, at most */
typedef struct FlatValue {
  Val v;
  BufId was;
  Dim dim[MAX_RANK];
} FlatValue;
typedef struct FlatMaps {
  Lower *l;
  Val root;
  u32 rank, n;
  bool inlined; /* there is something that is */
  FlatValue at[FLAT_VALUES];
} FlatMaps;
/* A group of maps with fewer axes, n being its root: its form, until flat_end; false: as it was. */
bool flat_begin(Lower *l, const Node *n, Form *f, FlatMaps *s);
void flat_end(FlatMaps *s);

/* lower_storage.c */
void storage_begin(Lower *l);
void storage_end(Lower *l);
const Storage *storage_of(const Lower *l, BufId b); /* of the value whose buffer this is */
static inline bool is_inlined(const Lower *l, BufId b) {
  return storage_of(l, b)->kind == SK_inlined;
}
static inline const Layout *layout_of(const Lower *l, BufId b) { /* NULL: plain */
  return storage_of(l, b)->layout;
}
/* Element -> place in memory. */
void storage_address(Lower *l, BufId *b, ExprId *idx, u32 *n, const InnerVars *inner);
/* Element, from memory or computed. */
ExprId storage_load(Lower *l, BufId b, const ExprId *idx, const ExprScope *in);
BufId layout_temp(Lower *l, Val v);      /* of a value with a layout */
bool slots_all(Lower *l, const Node *n); /* a concat whose operands are all in place */
void slot_redirect(Lower *l, Form *f);   /* the result goes to its slot, if it has one */

/* lower_mmq.c: products with rows of blocks, for all targets. */
void lower_mmq(Lower *l, Cursor at, const Form *f);

/* lower_tree_walk.c: a loop that moves every element on its own; false: nothing was written. */
bool lower_tree_walk(Lower *l);

/* lower_util.c */
/* Loops over all dimensions but `skip` (MAX_RANK: none), row-major; the cursor ends up inside. A
 * dimension of extent 1, and the one left out, have no loop and variable 0. */
void open_loops(Prog *p, Cursor *at, const Dim *dim, u32 rank, u32 skip, VarId *var);
/* The same where iterations have an order: open_loops says that they have none. */
void open_ordered(Prog *p, Cursor *at, const Dim *dim, u32 rank, VarId *var);
/* The iterations of this loop may run at the same time, see LF_parallel. */
void loop_set_parallel(Prog *p, StmtId loop);
VarId for_parallel(Prog *p, Cursor *at, ExprId lo, ExprId hi, const char *name); /* such a loop */
/* The counter of such a loop over n > 0; 0, and no loop, where n is 1. */
ExprId count_parallel(Prog *p, Cursor *at, i64 n, const char *name);
ExprId ex_at(Prog *p, VarId v);                     /* value of such a variable */
ExprId load_at(Prog *p, BufId b, const VarId *var); /* element at these variables */
void store_at(Prog *p, Cursor *at, BufId b, const VarId *var, ExprId value);
VarId let_new(Prog *p, Cursor *at, const char *name, ExprId value);
ExprId ex_finish(Prog *p, DType to, ExprId acc); /* rounds an accumulator as scalar_round does */
/* Does a come before b when the largest (or smallest) is wanted? NaN is larger than everything. */
ExprId ex_before(Prog *p, VarId a, VarId b, bool largest);
/* Element of x at var, with position k along axis, in the type it is compared in. */
ExprId key_at(Prog *p, BufId x, const VarId *var, u32 axis, VarId k);
DType key_dtype(DType dt); /* type in which elements are compared */

/* lower_require.c: what the node demands of symbolic dimensions, in front of it. */
void lower_require(Lower *l);
void lower_check_index(Lower *l); /* what node within demands of its operand */

/* lower_state.c */
States *states_begin(Lower *l); /* gives buffers to the values that states_end expects there */
bool states_holds(const States *o, const Node *n); /* its result is in the memory of a state */
bool states_view(States *o, BufId of, const Dim *dim,
                 u32 rank); /* may a view of it have this shape? */
void states_end(States *o);

/* kinds without a form */
LowerFn lower_concat, lower_pad, lower_dims;                  /* lower_join.c */
LowerFn lower_arg, lower_pool_arg, lower_cum;                 /* lower_scan.c */
LowerFn lower_gather, lower_gather_elems, lower_gather_nd;    /* lower_index.c */
LowerFn lower_scatter_elems, lower_scatter_nd, lower_nonzero; /* lower_index.c */
LowerFn lower_topk;                                           /* lower_topk.c */
LowerFn lower_nms;                                            /* lower_nms.c */
void lower_if(Lower *l);                                      /* lower_control.c */
void lower_loop(Lower *l);

#endif
