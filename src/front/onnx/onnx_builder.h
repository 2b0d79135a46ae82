/* onnx_builder.h: interface for operator builders.
 *
 * A builder turns one ONNX node into core ops with the mk_* constructors of graph.h and sets its
 * outputs. It reads attributes through the accessors below (type-checked, with defaults) and
 * operands from b->in (0: absent). It handles differences between opsets by b->opset. It refuses
 * unsupported cases with on_unsupported and invalid models with on_bad.
 */
#ifndef INGOT_ONNX_BUILDER_H
#define INGOT_ONNX_BUILDER_H

#include "front/compose/compose.h"
#include "front/onnx/onnx.h"

typedef struct Build Build;
typedef struct Import Import;

struct Build {
  Ctx *c;
  Graph *g;
  Dims *ds;
  Import *im;
  const OnnxNode *node;
  i64 opset; /* version of the operator's domain */
  u32 arg;   /* fourth column of the operator's row */
  Val *in;   /* nin values, 0: absent */
  u32 nin;
  Val *out; /* nout values, to be set if the name is not empty */
  u32 nout; /* as listed by the node, at least 1 */
};
typedef void BuildFn(Build *b);

#define on_bad(b, ...) fail((b)->c, ERR_input, (b)->g->loc, __VA_ARGS__)
_Noreturn void on_unsupported(Build *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* operands */
Val on_in(Build *b, u32 i);  /* fails when absent, or not a tensor */
Val on_any(Build *b, u32 i); /* fails when absent; may be a sequence or optional, see list.h */
static inline bool on_has(const Build *b, u32 i) {
  return i < b->nin && b->in[i];
}
static inline bool on_wants(const Build *b, u32 i) {
  return i < b->nout && b->node->out.n > i && b->node->out.at[i];
}
static inline const Type *on_type(Build *b, Val v) {
  return graph_type(b->g, v);
}
static inline Val on_opt(const Build *b, u32 i) {
  return on_has(b, i) ? b->in[i] : 0;
}
Val on_wide(Build *b, u32 i);        /* on_in, widened */
void on_set_output(Build *b, Val y); /* sets output 0, cast to the type of input 0 */
DType on_dtype(Build *b, Val v);
u32 on_rank(Build *b, Val v);
Dim on_dim(Build *b, Val v, u32 axis);
i64 on_static_dim(Build *b, Val v, u32 axis); /* fails (unsupported) when symbolic */

/* attributes; a wrong type fails */
const OnnxAttr *on_attr(Build *b,
                        const char *name); /* after substitution in functions; NULL when absent */
bool on_has_attr(Build *b, const char *name);
const OnnxAttr *on_typed(Build *b, const char *name, OnnxAttrType type); /* refuses another type */
Tensor *on_table(Build *b, const OnnxAttr *a); /* from a number, a string, or a list of them */
i64 on_int(Build *b, const char *name, i64 otherwise);
double on_float(Build *b, const char *name, double otherwise);
Str on_str(Build *b, const char *name, const char *otherwise);
bool on_str_is(Build *b, const char *name, const char *otherwise,
               const char *value); /* attr or default == value */
/* Index of the attribute among the space-separated `words`. Absent: 0. Other values are refused. */
u32 on_choice(Build *b, const char *name, const char *words);
/* Writes up to max elements; returns the count, or -1 when the attribute is absent. */
i32 on_ints(Build *b, const char *name, i64 *out, u32 max);
/* Reads exactly n elements, none below least. If the attribute is absent, all are `otherwise`. */
void on_int_list(Build *b, const char *name, i64 *to, u32 n, i64 least, i64 otherwise);
i32 on_floats(Build *b, const char *name, double *out, u32 max);
Tensor *on_tensor(Build *b, const char *name);         /* NULL when absent */
const OnnxGraph *on_graph(Build *b, const char *name); /* fails when absent */

/* Contents that must be known at compile time: constants, shape arithmetic, or an input bound by
 * the caller (the graph is then valid for these contents only). Fails otherwise and names the
 * operand and the option that helps. */
const Tensor *on_known(Build *b, u32 i);
u32 on_known_ints(Build *b, u32 i, i64 *out, u32 max); /* returns the count */
u32 on_known_dims(Build *b, u32 i, Dim *out, u32 max); /* may be symbolic; constants >= 0 */
/* A target shape: elements may be symbolic; -1 becomes ON_AUTO. */
#define ON_AUTO INT64_MIN
u32 on_known_shape(Build *b, u32 i, Dim *out, u32 max);
bool on_try_ints(Build *b, u32 i, i64 *out, u32 max, u32 *n); /* false instead of failing */
/* Reads a list that is an attribute in old opsets and an input in new ones (axes, split, pads...).
 * -1 if both are absent. */
i32 on_ints_or_input(Build *b, const char *attr, u32 input, i64 *out, u32 max);

/* Does the node run in training mode? file: mode according to the model, which counts unless the
 * model is being trained. The import warns about it. */
bool on_training(Build *b, bool file);

/* axes: normalized to 0..rank-1; invalid and repeated ones are refused */
u32 on_axis(Build *b, i64 axis, u32 rank);
u32 on_axis_of(Build *b, Val x, i64 otherwise); /* the attribute axis */
void on_axes(Build *b, i64 *axes, u32 n, u32 rank);

/* sub-graphs: imports the nodes of g into the current region. in[]: values of its parameters;
 * ret[]: its results. */
u32 on_subgraph(Build *b, const OnnxGraph *g, const Val *in, u32 nin, Val *ret, u32 max);

/* onnx_strings.c: strings as zero-padded rows of bytes, u8[.., k]. */
i64 string_max_bytes(Graph *g, Val strings); /* maximum length in bytes, at least 1 */
Val on_string_bytes(Build *b, Val strings);  /* k = string_max_bytes */
Val on_strings(Build *b, Val rows);
/* mk_loop that also accepts strings, which enter and leave the body as bytes. */
void on_loop(Build *b, Val trip, Val cond, Val *carried, u32 ncarried, Val *scan, u32 nscan,
             BodyFn *body, void *user);

/* onnx_ops_index.c: indices into an axis of extent d. Run-time indices are checked before use. */
Val on_index(Build *b, Val idx, Dim d);

/* onnx_dynamic_dims.c: 0, 1, ... k - 1 for a run-time k. The run fails with message `wrong` unless
 * k is in 0..most. NULL: k is known to be in range. */
Val dynamic_iota(Build *b, Val k, Dim most, const char *wrong);
/* Appends a list of sizes to out, run-time sizes as symbols. False: some have no bound. */
bool dynamic_dims(Build *b, Val v, Dim *out, u32 max, u32 *n);

/* onnx_ops_string_number.c: conversion between numbers and decimal strings. */
Val number_to_string(Build *b, Val x);
Val string_to_number(Build *b, Val x, DType to);

/* onnx_ops_control.c: the only element of v, which may have any rank */
Val on_scalar(Build *b, Val v);
/* Checks that a scan input has this length along the axis, if necessary at run time. */
Val scan_length(Build *b, Val x, u32 axis, Dim length);

/* onnx_ops_math.c: Relu, Tanh... by the names of fused operators and recurrent cells. NULL: none */
Val on_activated(Build *b, Val x, const char *name, double alpha, double beta);

/* onnx_ops_nn.c: shared with quantized operators. Attributes are read from the node. */
Val on_conv(Build *b, Val x, Val weights); /* without bias */
Val on_average_pool(Build *b, Val x);
Val on_global_average(Build *b, Val x);
Val on_channels(Build *b, Val x,
                bool to_front);      /* moves channels from the last axis to axis 1, or back */
Val on_gemm(Build *b, Val x, Val y); /* product without bias, transposed as the attributes say */

/* onnx_ops_quant.c: x [.., k], dynamically quantized, times w [k, n]. w has one scale and zero
 * point (0: none), or one per column. */
Val on_dynamic_product(Build *b, Val x, Val w, Val w_scale, Val w_zero);

/* onnx_ops_ms_attention.c: attention from a projection [batch, length, q + k + v]. mask, past,
 * bias: input numbers. Sets both outputs, of type dt. */
void on_projected_attention(Build *b, Val x, u32 mask, u32 past, u32 bias, DType dt);

/* onnx_ops_random.c: Dropout in training mode; sets the outputs */
void on_dropout(Build *b, double ratio);

/* builders of the rows of onnx_ops.def */
BuildFn
#define ON(domain, name, since, until, build, arg, most) build,
#include "front/onnx/onnx_ops.def"
#undef ON
    on_nothing; /* ends the list of declarations */

#endif
