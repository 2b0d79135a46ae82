/* tflite_import.h: state of one import and interface for builders; private to src/front/tflite. */
#ifndef INGOT_TFLITE_IMPORT_H
#define INGOT_TFLITE_IMPORT_H

#include "front/compose/compose.h"
#include "front/input_extents.h"
#include "front/tflite/tflite.h"

typedef struct LiteImport LiteImport; /* one import */
typedef struct LiteScope LiteScope;   /* the tensors of a sub-graph being built */
typedef struct LiteNode LiteNode;     /* an operator being built */
typedef struct LiteRow LiteRow;       /* a row of tflite_ops.def */
typedef struct LiteState LiteState;   /* state kept from run to run: tflite_ops_control.c */
typedef void LiteFn(LiteNode *b);

#define LITE_POISON UINT32_MAX /* result of a refused operator; its users are skipped */

enum { LITE_CUSTOM = 32 };

/* Values of the TensorFlow schema. */
typedef enum LiteActivation { LA_none, LA_relu, LA_relu_n1_to_1, LA_relu6, LA_tanh } LiteActivation;

struct LiteRow {
  u32 code;
  const char *name;
  LiteFn *build; /* NULL: not supported */
  i64 arg;
  u32 least, most; /* number of inputs; most 255: any */
};

struct LiteState {
  Str name;
  Val now;       /* 0: not a parameter yet */
  u32 in;        /* index of the parameter */
  Tensor *start; /* NULL: zeros */
};

struct LiteScope {
  LiteScope *up; /* scope of the calling operator; its tensors are not visible */
  const LiteGraph *graph;
  Val *val; /* value of each tensor; 0: unknown */
};

struct LiteImport {
  Ctx *c;
  Graph *g;
  const LiteModel *m;
  const ImportOptions *o;
  Str file;
  LiteScope *scope;
  Extents extents;
  Map variable; /* tflite_ops_control.c: name of a variable, or tensor -> 1 + index of its state */
  VEC(LiteState) state;
  bool once; /* in the sub-graph of CALL_ONCE */
  u32 depth; /* nesting of sub-graphs */
  u32 steps; /* operators built, and tensors of sub-graphs; bounded */
};

struct LiteNode {
  Ctx *c;
  Graph *g;
  Dims *ds;
  LiteImport *im;
  const LiteOp *op;
  i64 arg;  /* argument of the table row */
  Val *out; /* op->nout values, set by lite_set_real or lite_set_stored */
};

/* tflite_import.c */
/* Builds sub-graph `graph` with inputs `in` into the current region. Returns the number of its
 * results, in ret. A refusal inside refuses the caller. */
u32 lite_subgraph(LiteNode *b, u32 graph, const Val *in, u32 nin, Val *ret, u32 max);
/* Stored value of a tensor of the current scope; makes constants. 0: not computed yet. */
Val lite_value(LiteImport *im, u32 tensor);
Str lite_op_name(Ctx *c, u32 code); /* "CONV_2D", or its number */
/* tflite_import.c: operators have no names; uses that of the first output; 0: none */
Str lite_node_name(const LiteGraph *g, const LiteOp *op);
DType lite_dtype(i64 code); /* tflite_model.c; DT_none: not supported */

/* ---- tflite_builder.c ---- */

/* Refuses operands and results that no builder supports; called before each builder. */
void lite_check(LiteNode *b);

#define lite_bad(b, ...)         fail((b)->c, ERR_input, (b)->g->loc, __VA_ARGS__)
#define lite_unsupported(b, ...) fail((b)->c, ERR_unsupported, (b)->g->loc, __VA_ARGS__)

/* Operands, as stored: a quantized tensor gives its integers. */
bool lite_has(LiteNode *b, u32 i);
Val lite_in(LiteNode *b, u32 i); /* fails when it is absent */
const LiteTensor *lite_operand(LiteNode *b, u32 i);
const LiteTensor *lite_result(LiteNode *b, u32 k);
DType lite_dt(LiteNode *b, Val v);
u32 lite_rank(LiteNode *b, Val v);
/* Int8, i4 or i16 with a scale. A bias (i32 or i64 with a scale) is left to its operator. */
bool lite_is_quant(const LiteTensor *t);
/* Are type, scales and zero points equal, so that stored elements can be moved unchanged? */
bool lite_same_quant(const LiteTensor *x, const LiteTensor *y);
/* Real value: (q - zero) * scale in f32 if quantized, f32 for f16 and bf16, else unchanged. */
Val lite_real(LiteNode *b, u32 i);
Val lite_real_of(LiteNode *b, Val v,
                 const LiteTensor *t); /* real value of v, which is stored like t */
Val lite_sub_zero_point(LiteNode *b, Val v, const LiteTensor *t); /* q - zero, i32 */
/* Scale (f32) and zero point (i32), shaped to broadcast against a value of that rank whose axis
 * `axis` is q.axis of the tensor. Scalars if there is only one. */
Val lite_scale(LiteNode *b, const LiteTensor *t, u32 axis, u32 rank);
bool lite_is_symmetric(const LiteTensor *t); /* all zero points are 0 */
/* Contents that must be known at compile time: at most max integers of any type. */
u32 lite_ints(LiteNode *b, u32 i, i64 *out, u32 max);
u32 lite_dim_list(LiteNode *b, u32 i, Dim *out, u32 max); /* not negative, may be symbolic */
i64 lite_int(LiteNode *b, u32 i);                         /* one integer */
u32 lite_axis(LiteNode *b, i64 axis, u32 rank);           /* negative axes count from the end */

/* Results. lite_set_real quantizes or rounds a real value to the type of the tensor. */
void lite_set_real(LiteNode *b, u32 k, Val x);
void lite_set_stored(LiteNode *b, u32 k, Val x); /* as stored; checks the type */
/* Rounds x / scale to nearest, halves away from zero, adds the zero point and saturates. */
Val lite_quantized(LiteNode *b, Val x, const LiteTensor *t);
/* Integers times k (one factor, or n along an axis) as i32, to the bit like
 * MultiplyByQuantizedMultiplier of TensorFlow Lite. */
Val lite_mul_quantized(LiteNode *b, Val x, const double *k, u32 n, u32 axis);
Val lite_mul_quantized_i64(LiteNode *b, Val x, const double *k, u32 n,
                           u32 axis); /* i64 sums; f32 */
Val lite_mul_quantized1(LiteNode *b, Val x, double k);
/* Are the result and the first n inputs quantized with one scale each? lite_ratio: scale of input i
 * over scale of the result. */
bool lite_is_linear(LiteNode *b, u32 n);
double lite_ratio(LiteNode *b, u32 i);
/* Adds the zero point of t to integers, clamps to an activation, saturates. */
Val lite_stored(LiteNode *b, Val x, const LiteTensor *t, i64 act);
/* Clamps x, of the stored type of t or a float, to the bounds of an activation. */
Val lite_clamp_activation(LiteNode *b, Val x, const LiteTensor *t, i64 act);
/* Rounds to integers, halves away from zero. The factor only affects values next to a half. */
#define LITE_NUDGE (1 + 0x1p-22)
Val lite_rounded(LiteNode *b, Val x);
Val lite_activated(LiteNode *b, Val x, i64 act); /* act: LiteActivation */
void lite_set_activated(LiteNode *b, u32 k, Val x, i64 act);

/* tflite_dynamic_quant.c: quantizes x to i32 with one scale over the axes. centre: with a zero
 * point, which is already subtracted. */
Val lite_dynamic(LiteNode *b, Val x, const i64 *axes, u32 n, bool centre, Val *scale);

/* flexbuffer.c: a number in the options of a custom operator; false: absent. */
bool flex_number(FileSpan s, const char *name, double *out);

/* ---- tflite_ops_control.c ---- */

/* Current value of a variable operand; sets its next value. */
Val lite_state_get(LiteNode *b, u32 i);
void lite_state_set(LiteNode *b, u32 i, Val next);
void lite_finish_states(LiteImport *im); /* after all outputs */

/* ---- builders, declared from the rows ---- */
LiteFn
#define TF(code, name, build, arg, least, most) build,
#define NO(code, name)
#include "front/tflite/tflite_ops.def"
#undef TF
#undef NO
    lite_nothing; /* ends the list of declarations */

#endif
