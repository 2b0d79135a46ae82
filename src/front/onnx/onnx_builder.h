/* onnx_builder.h: what an operator's builder sees.
 *
 * A builder turns one ONNX node into core ops with the mk_* constructors of graph.h and sets its
 * outputs. It reads attributes through the accessors below (type-checked, defaults given), operands
 * from b->in (0: absent). Differences between opsets are decided on b->opset inside the builder.
 * What it cannot do it refuses with on_unsupported; what the model may not do with on_bad.
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
  Val *in;   /* nin entries, 0 where absent */
  u32 nin;
  Val *out; /* nout entries, to be set where the name is not empty */
  u32 nout; /* as listed by the node, at least 1 */
};
typedef void BuildFn(Build *b);

_Noreturn void on_bad(Build *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
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
void on_set_output(Build *b, Val y); /* the first output, of the type of the first input */
DType on_dtype(Build *b, Val v);
u32 on_rank(Build *b, Val v);
Dim on_dim(Build *b, Val v, u32 axis);
i64 on_static_dim(Build *b, Val v, u32 axis); /* fails (unsupported) when symbolic */

/* attributes; a wrong type fails */
const OnnxAttr *on_attr(Build *b,
                        const char *name); /* after substitution in functions; NULL when absent */
bool on_has_attr(Build *b, const char *name);
const OnnxAttr *on_typed(Build *b, const char *name, OnnxAttrType type); /* refuses another type */
Tensor *on_table(Build *b, const OnnxAttr *a); /* of one number or string, or a list of them */
i64 on_int(Build *b, const char *name, i64 otherwise);
double on_float(Build *b, const char *name, double otherwise);
Str on_str(Build *b, const char *name, const char *otherwise);
bool on_str_is(Build *b, const char *name, const char *otherwise,
               const char *value); /* attr or default == value */
/* Which of `words`, which blanks separate, it is; absent: the first; another is refused. */
u32 on_choice(Build *b, const char *name, const char *words);
/* Writes up to max entries; returns the count, or -1 when the attribute is absent. */
i32 on_ints(Build *b, const char *name, i64 *out, u32 max);
/* Exactly n entries, none below least; all of them `otherwise` when the attribute is absent. */
void on_int_list(Build *b, const char *name, i64 *to, u32 n, i64 least, i64 otherwise);
i32 on_floats(Build *b, const char *name, double *out, u32 max);
Tensor *on_tensor(Build *b, const char *name);         /* NULL when absent */
const OnnxGraph *on_graph(Build *b, const char *name); /* fails when absent */

/* Contents that must be known while compiling: constants, shape arithmetic, or the contents of an
 * input the caller bound (it is then pinned). Fails otherwise, naming the operand and the flag that
 * helps. */
const Tensor *on_known(Build *b, u32 i);
u32 on_known_ints(Build *b, u32 i, i64 *out, u32 max); /* returns the count */
u32 on_known_dims(Build *b, u32 i, Dim *out, u32 max); /* entries may be symbolic; constants >= 0 */
/* A target shape: entries may be symbolic; -1 comes out as ON_AUTO. */
#define ON_AUTO INT64_MIN
u32 on_known_shape(Build *b, u32 i, Dim *out, u32 max);
bool on_try_ints(Build *b, u32 i, i64 *out, u32 max, u32 *n); /* false instead of failing */
/* From an attribute up to some opset, from an input afterwards (axes, split, pads...): -1 when
 * neither is there. */
i32 on_ints_or_input(Build *b, const char *attr, u32 input, i64 *out, u32 max);

/* Does the node compute as in training? file: what its attributes, inputs and outputs say. They
 * count unless the model is being trained; the import warns about them. */
bool on_training(Build *b, bool file);

/* axes: normalised into 0..rank-1, checked, duplicates refused */
u32 on_axis(Build *b, i64 axis, u32 rank);
u32 on_axis_of(Build *b, Val x, i64 otherwise); /* the attribute axis */
void on_axes(Build *b, i64 *axes, u32 n, u32 rank);

/* sub-graphs: imports g's nodes into the current block; in[] are its parameters' values (given),
 * ret[] its results. */
u32 on_subgraph(Build *b, const OnnxGraph *g, const Val *in, u32 nin, Val *ret, u32 max);

/* onnx_strings.c: strings as rows of bytes, u8[.., k], with zeros behind them. */
i64 string_max_bytes(Graph *g, Val strings); /* bytes of the longest they may hold; at least 1 */
Val on_string_bytes(Build *b, Val strings);  /* that wide */
Val on_strings(Build *b, Val rows);
/* mk_loop, for strings too: they cross the edges of the body as bytes. */
void on_loop(Build *b, Val trip, Val cond, Val *carried, u32 ncarried, Val *scan, u32 nscan,
             BodyFn *body, void *user);

/* onnx_ops_index.c: integers that the model gives as indices of an axis of extent d; run-time ones
 * are tested before they are used. */
Val on_index(Build *b, Val idx, Dim d);

/* onnx_dynamic_dims.c: 0, 1, ... k - 1 for a number k of the run; the run is refused unless it is
 * in 0..most, and then says `wrong`; NULL: it was computed to be. */
Val dynamic_iota(Build *b, Val k, Dim most, const char *wrong);
/* Appends the entries of a list of sizes to out, those of the run as symbols; false: some have no
 * bound. */
bool dynamic_dims(Build *b, Val v, Dim *out, u32 max, u32 *n);

/* onnx_ops_string_number.c: strings of the decimal digits of integers; numbers that strings hold.
 */
Val number_to_string(Build *b, Val x);
Val string_to_number(Build *b, Val x, DType to);

/* onnx_ops_control.c: the one element of v, of any rank */
Val on_scalar(Build *b, Val v);
/* A scan input whose length along the axis must be `length`; one of unknown length is tested in the
 * run. */
Val scan_length(Build *b, Val x, u32 axis, Dim length);

/* onnx_ops_math.c: Relu, Tanh... as fused operators and recurrent cells name them; NULL name: none
 * is */
Val on_activated(Build *b, Val x, const char *name, double alpha, double beta);

/* onnx_ops_nn.c: what the quantized relatives share; attributes are read from the node. */
Val on_conv(Build *b, Val x, Val weights); /* without bias */
Val on_average_pool(Build *b, Val x);
Val on_global_average(Build *b, Val x);
Val on_channels(Build *b, Val x, bool to_front); /* moved from the end to axis 1, or back */
Val on_gemm(Build *b, Val x, Val y);             /* the product alone, transposed as asked */

/* onnx_ops_quant.c: x [.., k] quantized over its range, times w [k, n] with a scale and a zero
 * point (0: none), in all or one a column. */
Val on_dynamic_product(Build *b, Val x, Val w, Val w_scale, Val w_zero);

/* onnx_ops_ms_attention.c: from a projection [batch, length, q + k + v] on, with the numbers of the
 * inputs for mask, past and bias; sets both outputs, of type dt. */
void on_projected_attention(Build *b, Val x, u32 mask, u32 past, u32 bias, DType dt);

/* onnx_ops_random.c: Dropout in training mode; sets the outputs */
void on_dropout(Build *b, double ratio);

/* one row of onnx_ops.def finds its builder by operator name */
BuildFn
#define ON(domain, name, since, until, build, arg, most) build,
#include "front/onnx/onnx_ops.def"
#undef ON
    on_nothing; /* ends the list of declarations */

#endif
