/* form.h: a node as a domain, affine index maps and a scalar body.
 *
 * The domain is a list of axes: first those of the result in the order of its dimensions (of a
 * contraction those that both factors share before the others), then those that are folded, in the
 * order in which the fold must see them. Every index of every operand and of the result is a sum of
 * axes with constant factors. MAP, REDUCE, CONTRACT, WINDOW, VIEW, JOIN, iota and random are all
 * described this way (form.c) and turned into loops by one function (lower_form.c).
 */
#ifndef INGOT_FORM_H
#define INGOT_FORM_H

#include "ir/graph.h"
#include "ir/prog.h"

typedef struct Axis Axis;
typedef struct Index Index;
typedef struct Operand Operand;
typedef struct Form Form;

enum { FORM_AXES = 2 * MAX_RANK + 2, FORM_IN = 3 };

struct Axis {
  i64 lo; /* runs from lo to hi, exclusive */
  Dim hi;
  bool reduce;
  Dim full_hi; /* a part of an axis that ends there; 0: all of it */
};

enum { GUARD_low = 1, GUARD_high = 2 };

/* sum of coef[i] * axis[i], + base + shift */
struct Index {
  u32 n; /* terms */
  u32 axis[2];
  i64 coef[2];
  Dim base;
  i64 shift;
  i64 dilation; /* above 1: it counts only where it is a multiple of this, and is divided by it */
  u8 guard; /* may leave the dimension on that side: such points of the domain do not take part */
  bool stretch; /* the dimension may turn out to be 1 at run time; then the index is 0 */
};

struct Operand {
  BufId buf;
  u32 rank;
  Index idx[MAX_RANK];
};

typedef enum FormBody {
  FB_copy,   /* in[0] */
  FB_op,     /* op(in...); of a fold: on operands converted to acc */
  FB_iota,   /* value of axis `which` */
  FB_random, /* function of the row-major index of the result */
  FB_mmq,    /* products with rows of blocks: no operands, see lower_mmq.c */
} FormBody;

struct Form {
  u32 naxes, nin;
  Axis axis[FORM_AXES];
  Operand out, in[FORM_IN];
  FormBody body;
  Op op;
  bool sat;    /* op is cast */
  bool small;  /* likewise: of a number that is known to be small */
  u32 which;   /* iota */
  i64 seed;    /* random */
  bool reduce; /* result = with(...with(init, body), body...) over the folded axes */
  Op with;
  DType acc; /* type of the reduce; differs from the result's for narrow floats */
  Scalar init;
  Operand from; /* what the fold begins with; buf 0: init */
  DType dt;     /* of the fold's result, before its users finish it */
  Val epilogue; /* that result, where they finish it in this kernel and `out` is theirs; 0: none */
};

/* form.c. buf: of each graph value. */
bool form_of(Graph *g, const Node *n, Prog *p, const BufId *buf, Form *f); /* false: has no form */
void form_copy(Prog *p, BufId from, BufId to, Form *f); /* broadcast where they differ */
/* One operand of concat: its offset along axis in the result. */
void form_part(Prog *p, BufId from, BufId to, u32 axis, Dim offset, Form *f);
/* Operand of pad, spread out inside the result. */
void form_spread(Prog *p, BufId from, BufId to, const Dim *lo, const Dim *interior, Form *f);
static inline bool index_moves(const Index *ix, u32 axis) {
  return (ix->n > 0 && ix->axis[0] == axis) || (ix->n > 1 && ix->axis[1] == axis);
}
bool operand_moves(const Operand *o, u32 axis);
/* A guarded index that moves along the axis, NULL: none; *of: whose it is, if asked for. */
const Index *form_guard(const Form *f, u32 axis, const Operand **of);
/* The fold op on bool: or and and. */
Op reduce_op(Op op, DType dt);

/* Parts in which no index is spread; 1: f itself. A part has every so-manieth point of the result
 * and those points of the window that meet an element there. */
u32 form_phases(const Form *f);
Form form_phase(Prog *p, const Form *f, u32 which);

/* What is made once and found again: first number of the key in a Map `once`. */
typedef enum OnceKind {
  ON_view,     /* of a buffer: form_merge.c */
  ON_flat,     /* without dimensions of 1 at the end: widen.c */
  ON_padded,   /* a constant made longer, so that the last vector stays inside: widen.c */
  ON_packed,   /* in panels: tile_pack.c */
  ON_i16,      /* along the sum: lower_i16.c */
  ON_mmq,      /* rows of blocks in panels: mmq_pack.c */
  ON_winograd, /* weights transformed for patches of a size: lower_winograd.c */
  ON_weights,  /* those that such were made from */
  ON_tested    /* a dimension that every run has been tested for: lower_require.c */
} OnceKind;

/* form_merge.c */
void form_merge(Prog *p, Map *once, Form *f);
BufId form_view(Prog *p, Map *once, BufId b, const Dim *dim, u32 rank); /* made once */

#endif
