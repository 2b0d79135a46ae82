/* interp.h: what the files of the interpreter share; nobody else includes this. */
#ifndef INGOT_INTERP_H
#define INGOT_INTERP_H

#include "back/back.h"

typedef struct Run Run;   /* one execution of a program */
typedef struct View View; /* a buffer while running */
typedef struct Loop Loop; /* a loop, prepared */
typedef struct Plan Plan; /* how a loop is executed by rows */

/* dim, stride, n and data hold while `ready`; those of a buffer whose dimensions depend on data are
 * computed again at the first use after one of the symbols was set. */
struct View {
  u8 *data;
  BufId root;  /* buffer whose memory this is */
  BufId other; /* of a root: its last view; of a view: the one before; 0: none */
  u32 input;   /* of one given by the caller: its place there */
  BufId place; /* equal for all that have the same memory, by themselves or by the plan */
  bool fixed;  /* never changes while running */
  u32 ready;   /* Run.set when it was made so; 0: it is not */
  u32 size;    /* bytes of one element, all lanes */
  u32 rank;
  u64 n;             /* elements */
  i64 *dim, *stride; /* rank entries; strides in elements */
};

typedef struct Mem {
  u8 *data;
  u64 cap; /* bytes */
} Mem;

struct Run {
  Ctx *c;
  Prog *p;
  InterpOptions o;
  Arena *a;    /* temporary memory of this run */
  Arena *keep; /* results */
  Tensor *const *in;
  View *view;         /* by buffer */
  Mem *mem;           /* by buffer; only roots have one */
  Scalar **var;       /* by variable: its lanes */
  i64 *env;           /* by symbol */
  Loop **loop;        /* by statement: NULL until it is needed */
  const Range *range; /* by variable; NULL until it is needed */
  u8 *pool;           /* rows of the plan that runs: slots of ROW * 8 bytes */
  u32 npool;
  u8 *base;     /* the arena of a planned program */
  BufId *owner; /* by byte of it: root that was stored there last; NULL: nobody watches */
  u64 steps;    /* iterations so far */
  u32 set;      /* 1 + how often a symbol was set: views that depend on data are made anew */
  Loc loc;      /* of the statement that runs, for messages */
};

/* interp.c */
static inline bool view_is_ready(const Run *r, const View *v) {
  return v->fixed ? v->ready != 0 : v->ready == r->set;
}
View *view_get(Run *r, BufId b); /* ready, with memory */
Scalar eval(Run *r, ExprId e);   /* one lane */
i64 eval_int(Run *r, ExprId e);  /* of type i64 */
Scalar apply(const Prog *p, Op op, DType from, DType to, bool sat, const Scalar *arg);
_Noreturn void out_of_bounds(Run *r, BufId b, u32 axis, i64 index, i64 lanes);

/* ---- loops by rows ---- */

enum { ROW = 512 }; /* iterations that are evaluated together */

/* Integer that is linear in the loop variable v: k + sum coef * at->i + step * v. */
typedef struct Term {
  const Scalar *at;
  i64 coef;
} Term;
typedef struct Lin {
  i64 k, step;
  u32 n;
  Term *term;
} Lin;

/* Expression that does not change during the loop; evaluated when it starts. */
typedef struct Atom {
  ExprId e;
  Scalar val;
} Atom;

typedef struct Row Row;

/* One place of the body that touches a buffer, or several with equal indices. */
typedef struct Access {
  BufId buf, root;       /* root: View.place */
  struct Access *before; /* another of the same buffer */
  u32 loads, stores;
  const ExprId *idx;
  bool linear;  /* in every index */
  bool fixed;   /* and the strides are known: flat holds */
  Lin flat;     /* offset in elements */
  Lin *dim;     /* by axis */
  Row **row;    /* by axis: the index where it is not linear, else NULL */
  bool *check;  /* by axis: not proven to be in range */
  u32 slot;     /* offsets of a row, when not linear */
  View *v;      /* from here on: of the run that is going on */
  i64 off, inc; /* offset of the first iteration, and from one to the next */
} Access;

typedef enum RowKind { RW_const, RW_var, RW_lin, RW_let, RW_load, RW_op, RW_random } RowKind;
typedef enum RowClass { RC_float, RC_double, RC_int } RowClass; /* float: f32 and narrower */

/* A value of every iteration: one element of its class each, or a single one for all (`one`). */
typedef struct RowVal {
  void *p;
  bool one;
} RowVal;

struct Row {
  RowKind kind;
  DType dt, from; /* from: of the last operand */
  RowClass cls;
  Op op;
  bool sat;
  bool copy; /* load: the memory may change before the value is used */
  u32 narg;
  Row *arg[3];
  Lin lin;
  Access *acc;
  u32 ref; /* var: VarId; let: number in plan->let */
  u32 slot;
  union {
    float f;
    double d;
    i64 i;
  } cell; /* room for a single value */
};

typedef enum StepKind { SP_let, SP_store, SP_fold_var, SP_fold_mem } StepKind;
typedef struct Step {
  StepKind kind;
  u32 ref;    /* let: number; fold_var: VarId */
  Row *value; /* fold: the operand that is not the accumulator */
  Access *to; /* store, fold_mem */
  DType dt;
  Op op;      /* fold */
  bool swap;  /* fold: op(value, accumulator) */
  Row *a, *b; /* itself + a * b, all f32 in linear memory or constant: done in one pass */
} Step;

struct Plan {
  VarId var;
  i64 step;
  VEC(Step) steps;
  VEC(Access *) acc;
  VEC(Atom *) atom;
  u32 nlet, nslot;
  bool shared; /* two accesses of one memory, one of them a store: look before running */
  RowVal *let;
  i64 lo; /* of the run that is going on */
};

/* A bound of a loop: larger or smaller of two linear numbers, each divided by a constant; or
 * anything. */
typedef struct Bound {
  Op op;    /* OP_max, OP_min; OP_add: only the first; OP_SCALARS: e */
  Lin x[2]; /* step 0 */
  i64 div[2];
  ExprId e;
} Bound;

struct Loop {
  Bound lo, hi;
  Plan *plan; /* NULL: one iteration at a time */
};

static inline i64 lin_at(const Lin *l, i64 v) {
  u64 x = (u64)l->k + (u64)l->step * (u64)v;
  for (u32 i = 0; i < l->n; i++) x += (u64)l->term[i].coef * (u64)l->term[i].at->i;
  return (i64)x;
}

static inline RowClass row_class(DType dt) {
  return dt == DT_f64 ? RC_double : dtype_is_float(dt) ? RC_float : RC_int;
}

/* interp_plan.c */
Loop *loop_new(Run *r, StmtId id);

/* interp_row.c: runs n iterations from lo on; false: not this time, nothing has been done. */
bool plan_run(Run *r, Plan *plan, i64 lo, u64 n);

/* interp_kern.c: loops over rows. */
typedef void Kern2(void *o, const void *a, const void *b, u32 n, bool one_a, bool one_b);
typedef void Kern1(void *o, const void *a, u32 n);
Kern2 *kern2(Op op,
             DType dt); /* NULL when there is none; the result is not yet wrapped or rounded */
Kern1 *kern1(const Prog *p, Op op, DType dt);
void kern_fit(DType dt, void *o, u32 n); /* wraps or rounds to dt */
bool kern_cast(DType from, DType to, bool sat, void *o, const void *a, u32 n); /* false: not done */
void kern_select(RowClass cls, void *o, const i64 *c, const void *a, const void *b, u32 n,
                 bool one_c, bool one_a, bool one_b);
bool kern_fold(Op op, DType dt, bool swap, Scalar *acc, const void *a, u32 n, bool one);
void kern_load(DType dt, void *o, const u8 *from, i64 inc, u32 n); /* inc in elements */
void kern_store(DType dt, u8 *to, i64 inc, const void *a, u32 n, bool one);
void kern_mac(float *y, const float *a, i64 inc_a, const float *b, i64 inc_b, u64 n);
float kern_dot(float acc, const float *a, i64 inc_a, const float *b, i64 inc_b, u64 n);
Scalar row_get(RowClass cls, const void *p, u32 i);
void row_put(RowClass cls, void *p, u32 i, Scalar x);

#endif
