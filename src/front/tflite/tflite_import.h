/* tflite_import.h: private to src/front/tflite: the state of one import, and what a builder of an
 * operator needs. */
#ifndef INGOT_TFLITE_IMPORT_H
#define INGOT_TFLITE_IMPORT_H

#include "front/compose/compose.h"
#include "front/input_extents.h"
#include "front/tflite/tflite.h"

typedef struct LiteImport LiteImport; /* one import */
typedef struct LiteScope LiteScope;   /* the tensors of a sub-graph while it is built */
typedef struct LiteNode LiteNode;     /* an operator while it is built */
typedef struct LiteRow LiteRow;       /* a row of tflite_ops.def */
typedef struct LiteState
    LiteState; /* what is kept from one run to the next: tflite_ops_control.c */
typedef void LiteFn(LiteNode *b);

#define LITE_POISON                                                                                \
  UINT32_MAX /* result of an operator that was refused; its users are passed over */

enum { LITE_CUSTOM = 32 };

/* Numbers of TensorFlow's schema. */
typedef enum LiteActivation { LA_none, LA_relu, LA_relu_n1_to_1, LA_relu6, LA_tanh } LiteActivation;

struct LiteRow {
  u32 code;
  const char *name;
  LiteFn *build; /* NULL: not supported */
  i64 arg;
  u32 least, most; /* inputs; most 255: any number */
};

struct LiteState {
  Str name;
  Val now;       /* 0: there is no parameter yet */
  u32 in;        /* of it: its number */
  Tensor *start; /* NULL: zeros */
};

struct LiteScope {
  LiteScope *up; /* of the operator that calls this sub-graph; its tensors are not seen */
  const LiteGraph *graph;
  Val *val; /* of each tensor; 0: not known yet */
};

struct LiteImport {
  Ctx *c;
  Graph *g;
  const LiteModel *m;
  const ImportOptions *o;
  Str file;
  LiteScope *scope;
  Extents extents;
  Map variable; /* of tflite_ops_control.c: name of a variable, or tensor -> 1 + number of its state
                 */
  VEC(LiteState) state;
  bool once; /* in the sub-graph of CALL_ONCE */
  u32 depth; /* of sub-graphs */
  u32 steps; /* operators built, and tensors of sub-graphs: bounded */
};

struct LiteNode {
  Ctx *c;
  Graph *g;
  Dims *ds;
  LiteImport *im;
  const LiteOp *op;
  i64 arg;  /* of the row */
  Val *out; /* op->nout; to be filled by lite_set_real or lite_set_stored */
};

/* tflite_import.c */
/* Builds the operators of sub-graph `graph` into the current block; in: its inputs. Returns how
 * many results it has, in ret. What is refused in it refuses the caller. */
u32 lite_subgraph(LiteNode *b, u32 graph, const Val *in, u32 nin, Val *ret, u32 max);
/* Value of a tensor of the current scope, as stored: a constant is made where it is first used.
 * 0: nothing has computed it. */
Val lite_value(LiteImport *im, u32 tensor);
Str lite_op_name(Ctx *c, u32 code); /* "CONV_2D", or its number */
/* tflite_import.c: operators have none of their own: that of the first output; 0: none */
Str lite_node_name(const LiteGraph *g, const LiteOp *op);
DType lite_dtype(i64 code); /* tflite_model.c: DT_none: ingot has none */

/* ---- tflite_builder.c: what builders call ---- */

/* Refuses operands and results that no builder takes; comes before each. */
void lite_check(LiteNode *b);

_Noreturn void lite_bad(LiteNode *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void lite_unsupported(LiteNode *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Operands. As stored: integers of a quantised tensor are what lies in memory. */
bool lite_has(LiteNode *b, u32 i);
Val lite_in(LiteNode *b, u32 i);  /* fails when it is absent */
Val lite_opt(LiteNode *b, u32 i); /* 0: absent */
const LiteTensor *lite_operand(LiteNode *b, u32 i);
const LiteTensor *lite_result(LiteNode *b, u32 k);
DType lite_dt(LiteNode *b, Val v);
u32 lite_rank(LiteNode *b, Val v);
/* Bytes, i4 or i16 with a scale. A bias of i32 or i64 with one is not: its operator knows. */
bool lite_is_quant(const LiteTensor *t);
/* Do both have the same type, scales and zero points, so that elements may be moved as they are? */
bool lite_same_quant(const LiteTensor *x, const LiteTensor *y);
/* The number an operand stands for: (q - zero) * scale in f32 of a quantised one, f32 of f16 and
 * bf16; others as they are. */
Val lite_real(LiteNode *b, u32 i);
Val lite_real_of(LiteNode *b, Val v, const LiteTensor *t);        /* the same of any value like t */
Val lite_sub_zero_point(LiteNode *b, Val v, const LiteTensor *t); /* q - zero, i32 */
/* Its scale (f32) and zero point (i32), which stand against a value of that rank whose axis `axis`
 * is the tensor's own q.axis; scalars where there is but one. */
Val lite_scale(LiteNode *b, const LiteTensor *t, u32 axis, u32 rank);
Val lite_zero_point(LiteNode *b, const LiteTensor *t, u32 axis, u32 rank);
bool lite_is_symmetric(const LiteTensor *t); /* all zero points are 0 */
/* Contents that must be known while compiling: integers of any type, at most max. */
u32 lite_ints(LiteNode *b, u32 i, i64 *out, u32 max);
u32 lite_dim_list(LiteNode *b, u32 i, Dim *out, u32 max); /* not negative, may be symbolic */
i64 lite_int(LiteNode *b, u32 i);                         /* one */
u32 lite_axis(LiteNode *b, i64 axis, u32 rank);           /* negative ones counted from the end */

/* Results. give: a real number; quantised, or rounded to the type the tensor has. */
void lite_set_real(LiteNode *b, u32 k, Val x);
void lite_set_stored(LiteNode *b, u32 k, Val x); /* as stored; its type is tested */
/* x / scale rounded to the nearest, halves away from zero, as TensorFlow Lite does it, moved by the
 * zero point and saturated. */
Val lite_quantised(LiteNode *b, Val x, const LiteTensor *t);
/* Integers times k, one number or n along an axis, as whole numbers in f32: what TensorFlow Lite's
 * MultiplyByQuantizedMultiplier makes of them. below: whether x is negative, where that is cheaper
 * to have than x a second time; 0: it is not. */
Val lite_mul_quantized(LiteNode *b, Val x, Val below, const double *k, u32 n, u32 axis);
Val lite_mul_quantized_i64(LiteNode *b, Val x, const double *k, u32 n,
                           u32 axis); /* of sums of 64 bits */
Val lite_mul_quantized1(LiteNode *b, Val x, double k);
/* Are the result and the first n inputs quantised, with one scale each? Then lite_ratio is that of
 * input i over that of the result. */
bool lite_is_linear(LiteNode *b, u32 n);
double lite_ratio(LiteNode *b, u32 i);
/* Whole numbers, in steps of t: moved by its zero point, bounded by an activation, saturated. */
Val lite_stored(LiteNode *b, Val x, const LiteTensor *t, i64 act);
/* x, of the type of t or a float that holds what is stored, within the bounds of an activation. */
Val lite_clamp_activation(LiteNode *b, Val x, const LiteTensor *t, i64 act);
/* To whole numbers, halves away from zero: a step is made larger by so little that what is not near
 * a half stays where it is. */
#define LITE_NUDGE (1 + 0x1p-22)
Val lite_rounded(LiteNode *b, Val x);
Val lite_activated(LiteNode *b, Val x, i64 act); /* a number of LiteActivation */
void lite_set_activated(LiteNode *b, u32 k, Val x, i64 act);

/* tflite_dynamic_quant.c: x in integers, i32, over the axes with one scale; centre: with a zero
 * point, which has been taken off. */
Val lite_dynamic(LiteNode *b, Val x, const i64 *axes, u32 n, bool centre, Val *scale);

/* flexbuffer.c: the number of that name in the options of a custom operator; false: there is none.
 */
bool flex_number(FileSpan s, const char *name, double *out);

/* ---- tflite_ops_control.c ---- */

/* What an operand that is a variable holds now; what it will hold. */
Val lite_state_get(LiteNode *b, u32 i);
void lite_state_set(LiteNode *b, u32 i, Val next);
void lite_finish_states(LiteImport *im); /* behind all outputs */

/* ---- builders, by the rows ---- */
LiteFn
#define TF(code, name, build, arg, least, most) build,
#define NO(code, name)
#include "front/tflite/tflite_ops.def"
#undef TF
#undef NO
    lite_nothing; /* ends the list of declarations */

#endif
