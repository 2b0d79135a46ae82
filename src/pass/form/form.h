/* form.h: a node as a domain, affine index maps and a scalar body.
 *
 * The domain is a list of axes. Axes of the result come first, in the order of its dimensions. In a
 * contraction, axes that both factors share precede the others. Reduction axes follow, in the order
 * in which the reduction runs. Every index of every operand and of the result is a sum of axes with
 * constant factors. MAP, REDUCE, CONTRACT, WINDOW, VIEW, JOIN, iota and random all have a Form
 * (form.c). One function turns a Form into loops (nest.c).
 */
#ifndef INGOT_FORM_H
#define INGOT_FORM_H

#include "ir/graph/graph.h"
#include "ir/prog/prog.h"

typedef struct Axis Axis;
typedef struct Index Index;
typedef struct Operand Operand;
typedef struct Form Form;

enum { FORM_AXES = 2 * MAX_RANK + 2, FORM_IN = 3 };

struct Axis {
  i64 lo; /* range [lo, hi) */
  Dim hi;
  bool reduce;
  Dim full_hi; /* end of the whole axis, if this is a part of it; 0: this is all of it */
};

enum { GUARD_low = 1, GUARD_high = 2 };

/* sum of coef[i] * axis[i], + base + shift */
struct Index {
  u32 n; /* number of terms */
  u32 axis[2];
  i64 coef[2];
  Dim base;
  i64 shift;
  i64 dilation; /* above 1: only multiples of this count, divided by it */
  u8 guard;     /* the index may be out of bounds on that side; such points are skipped */
  bool stretch; /* the dimension may be 1 at run time; then the index is 0 */
};

struct Operand {
  BufId buf;
  u32 rank;
  Index idx[MAX_RANK];
};

typedef enum FormKind {
  FB_copy,   /* in[0] */
  FB_op,     /* op(in...); in a reduction, of operands converted to acc */
  FB_iota,   /* value of axis `which` */
  FB_random, /* function of the row-major index of the result */
  FB_mmq,    /* quantized matmul, without operands: see lower_mmq.c */
} FormKind;

struct Form {
  u32 naxes, nin;
  Axis axis[FORM_AXES];
  Operand out, in[FORM_IN];
  FormKind body;
  Op op;
  bool sat;    /* cast: saturate */
  bool small;  /* cast: the operand is known to be small */
  u32 which;   /* iota: axis */
  i64 seed;    /* random: seed */
  bool reduce; /* result = with(...with(init, body), body...) over the reduction axes */
  Op with;
  DType acc; /* type of the accumulator; differs from the result's for narrow floats */
  Scalar init;
  Operand from; /* initial value of the reduction; buf 0: init */
  DType dt;     /* type of the reduction's result, before the epilogue */
  Val of;       /* the value that the body computes; 0: a copy */
  Val root;     /* the result of the epilogue */
  Val epilogue; /* the reduction's value if this kernel has an epilogue, whose result is `out`; 0:
                   none */
};

/* form.c. buf: by graph value. */
bool form_of(Graph *g, const Node *n, Prog *p, const BufId *buf,
             Form *f);                                  /* false: n has no form */
void form_copy(Prog *p, BufId from, BufId to, Form *f); /* broadcasts if the shapes differ */
/* Form that copies one operand of concat to its offset along axis. */
void form_part(Prog *p, BufId from, BufId to, u32 axis, Dim offset, Form *f);
/* Form that copies the operand of pad into the result, with gaps of `interior` elements. */
void form_spread(Prog *p, BufId from, BufId to, const Dim *lo, const Dim *interior, Form *f);
static inline bool index_moves(const Index *ix, u32 axis) {
  return (ix->n > 0 && ix->axis[0] == axis) || (ix->n > 1 && ix->axis[1] == axis);
}
bool operand_moves(const Operand *o, u32 axis);
/* A guarded index that moves along the axis, NULL: none; *of (may be NULL): its operand. */
const Index *form_guard(const Form *f, u32 axis, const Operand **of);
/* op, or for bool its logical equivalent: or, and. */
Op reduce_op(Op op, DType dt);

/* Number of phases of a dilated operand; 1: f itself. A phase has every n-th point of the result,
 * and the window positions that meet an element there. */
u32 form_phases(const Form *f);
Form form_phase(Prog *p, const Form *f, u32 which);

/* Objects that are created once and cached in a Map `once`: first number of the key. */
typedef enum MemoKind {
  ON_view,     /* view of a buffer: form_merge.c */
  ON_flat,     /* view without trailing dimensions of 1: widen.c */
  ON_padded,   /* constant padded so that the last vector stays in bounds: widen.c */
  ON_packed,   /* operand packed into panels: tile_pack.c */
  ON_i16,      /* int16 weights along the reduction: lower_i16.c */
  ON_mmq,      /* quantized weights in panels: mmq_pack.c */
  ON_winograd, /* weights transformed for a patch size: lower_winograd.c */
  ON_weights,  /* source of transformed weights */
  ON_tested    /* dimension already checked in every run: lower_require.c */
} MemoKind;

/* form_merge.c */
void form_merge(Prog *p, Map *once, Form *f);
BufId form_view(Prog *p, Map *once, BufId b, const Dim *dim, u32 rank); /* cached */

#endif
