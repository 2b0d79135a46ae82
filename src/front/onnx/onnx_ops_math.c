/* onnx_ops_math.c: elementwise operators: arithmetic, comparison, logic, casts, activations. */
#include "front/onnx/onnx_builder.h"

#include <string.h>

/* Broadcasting before opset 7 is explicit: y is aligned at `axis` of x, or at its end. */
static Val broadcast_old(Build *b, Val x, Val y) {
  if (b->opset >= 7 || !on_int(b, "broadcast", 0)) return y;
  u32 rx = on_rank(b, x), ry = on_rank(b, y);
  if (!on_has_attr(b, "axis") || ry == 0) return y;
  u32 axis = on_axis(b, on_int(b, "axis", 0), rx);
  Dim dim[MAX_RANK];
  if (axis + ry > rx) on_bad(b, "axis %u with rank %u exceeds rank %u", axis, ry, rx);
  for (u32 i = 0; i < rx - axis; i++) dim[i] = i < ry ? on_dim(b, y, i) : 1;
  return mk_reshape(b->g, y, dim, rx - axis);
}

void build_unary(Build *b) {
  Val x = on_in(b, 0);
  b->out[0] = mk_map1(b->g, (Op)b->arg, x);
}

/* Rounding functions do not change integers. */
void build_round(Build *b) {
  Val x = on_in(b, 0);
  b->out[0] = dtype_is_int(on_dtype(b, x)) ? x : mk_map1(b->g, (Op)b->arg, x);
}

void build_binary(Build *b) {
  Val x = on_in(b, 0), y = on_in(b, 1);
  b->out[0] = mk_map2(b->g, (Op)b->arg, x, broadcast_old(b, x, y));
}

/* Max, Min, Sum with any number of operands. */
void build_variadic(Build *b) {
  Val acc = on_in(b, 0);
  for (u32 i = 1; i < b->nin; i++) acc = mk_map2(b->g, (Op)b->arg, acc, on_in(b, i));
  b->out[0] = acc;
}

void build_mean(Build *b) {
  build_variadic(b);
  b->out[0] = mk_div(b->g, b->out[0], mk_like(b->g, b->out[0], b->nin));
}

void build_identity(Build *b) {
  b->out[0] = on_any(b, 0);
}

void build_mod(Build *b) {
  Val x = on_in(b, 0), y = on_in(b, 1);
  bool c_like = on_int(b, "fmod", 0) != 0;
  b->out[0] = mk_map2(b->g, c_like ? OP_fmod : OP_mod, x, y);
}

/* The result has the type of the base. An integer with a float exponent is computed in f64. */
void build_pow(Build *b) {
  Val x = on_in(b, 0), y = broadcast_old(b, x, on_in(b, 1));
  DType dt = on_dtype(b, x), et = on_dtype(b, y);
  DType in = dtype_is_float(dt) || dtype_is_int(et) ? dt : DT_f64;
  Val power = mk_cast(b->g, y, in);
  b->out[0] = mk_cast(b->g, mk_pow(b->g, mk_cast(b->g, x, in), power), dt);
}

void build_bitshift(Build *b) {
  bool left = on_str_is(b, "direction", "", "LEFT");
  if (!left && !on_str_is(b, "direction", "", "RIGHT"))
    on_bad(b, "direction is another text, expected LEFT or RIGHT");
  b->out[0] = mk_map2(b->g, left ? OP_shl : OP_shr, on_in(b, 0), on_in(b, 1));
}

void build_isinf(Build *b) {
  Val x = on_in(b, 0), zero = mk_like(b->g, x, 0), r = mk_isinf(b->g, x);
  bool pos = on_int(b, "detect_positive", 1) != 0, neg = on_int(b, "detect_negative", 1) != 0;
  if (!pos) r = mk_and(b->g, r, mk_lt(b->g, x, zero));
  if (!neg) r = mk_and(b->g, r, mk_gt(b->g, x, zero));
  b->out[0] = r;
}

void build_where(Build *b) {
  b->out[0] = mk_select(b->g, on_in(b, 0), on_in(b, 1), on_in(b, 2));
}

/* ---- conversion ---- */

/* Opsets 1 to 5 give the type as a string. */
static DType target_type(Build *b) {
  static const struct {
    const char *name;
    DType dt;
  } old[] = {{"FLOAT", DT_f32},  {"DOUBLE", DT_f64}, {"FLOAT16", DT_f16}, {"INT8", DT_i8},
             {"INT16", DT_i16},  {"INT32", DT_i32},  {"INT64", DT_i64},   {"UINT8", DT_u8},
             {"UINT16", DT_u16}, {"UINT32", DT_u32}, {"UINT64", DT_u64},  {"BOOL", DT_bool}};
  const OnnxAttr *a = on_attr(b, "to");
  if (!a) on_bad(b, "attribute to is missing");
  if (a->type == OA_string) {
    for (u32 i = 0; i < sizeof old / sizeof *old; i++)
      if (str_is(b->c, a->s, old[i].name)) return old[i].dt;
    on_bad(b, "attribute to is '%s', expected the name of an element type", show(b->c, a->s));
  }
  DType dt = dtype_from_onnx(on_int(b, "to", 0));
  if (!dt)
    on_bad(b, "attribute to is %lld, expected an element type of ONNX",
           (long long)on_int(b, "to", 0));
  return dt;
}

static Val convert(Build *b, Val x, DType to) {
  char from_cls = dtype_info[on_dtype(b, x)].cls, to_cls = dtype_info[to].cls;
  if (from_cls != 'C' && to_cls == 'S' && from_cls != 'S') return number_to_string(b, x);
  if (from_cls == 'S' && to_cls != 'C' && to_cls != 'S') return string_to_number(b, x, to);
  if (from_cls != to_cls && (strchr("SC", from_cls) || strchr("SC", to_cls)))
    on_unsupported(b, "elements of type %s cannot be converted to %s",
                   dtype_info[on_dtype(b, x)].name, dtype_info[to].name);
  if (to == DT_f8e8m0 && !on_str_is(b, "round_mode", "up", "up"))
    on_unsupported(b, "round_mode is '%s', expected up", show(b->c, on_str(b, "round_mode", "up")));
  if (on_dtype(b, x) == to || on_int(b, "saturate", 1)) return mk_cast(b->g, x, to);
  Attr at[2] = {{.key = AT_to, .kind = AK_dtype, .u.i = to}, {.key = AT_sat, .kind = AK_int}};
  return mk_node(b->g, OP_cast, &x, 1, at, 2);
}

void build_cast(Build *b) {
  b->out[0] = convert(b, on_in(b, 0), target_type(b));
}
void build_castlike(Build *b) {
  b->out[0] = convert(b, on_in(b, 0), on_dtype(b, on_in(b, 1)));
}

void build_bitcast(Build *b) {
  Val x = on_in(b, 0);
  DType to = target_type(b);
  if (to == on_dtype(b, x)) {
    b->out[0] = x;
    return;
  }
  Attr at = {.key = AT_to, .kind = AK_dtype, .u.i = to};
  b->out[0] = mk_node(b->g, OP_bitcast, &x, 1, &at, 1);
}

/* ---- activations: computed on widened operands ---- */

void build_relu(Build *b) {
  b->out[0] = compose_relu(b->g, on_in(b, 0));
}

void build_clip(Build *b) {
  Val x = on_in(b, 0);
  if (b->opset < 11) {
    if (on_has_attr(b, "min")) x = mk_max(b->g, x, mk_like(b->g, x, on_float(b, "min", 0)));
    if (on_has_attr(b, "max")) x = mk_min(b->g, x, mk_like(b->g, x, on_float(b, "max", 0)));
  } else {
    if (on_has(b, 1)) x = mk_max(b->g, x, mk_reshape(b->g, on_in(b, 1), NULL, 0));
    if (on_has(b, 2)) x = mk_min(b->g, x, mk_reshape(b->g, on_in(b, 2), NULL, 0));
  }
  b->out[0] = x;
}

void build_leakyrelu(Build *b) {
  Val x = on_in(b, 0);
  b->out[0] = compose_leaky_relu(b->g, x, mk_like(b->g, x, on_float(b, "alpha", 0.01f)));
}

void build_prelu(Build *b) {
  Val x = on_in(b, 0), slope = on_in(b, 1);
  u32 rx = on_rank(b, x);
  if (b->opset < 7 && on_rank(b, slope) == 1 && rx > 2) slope = mk_expand_tail(b->g, slope, rx - 2);
  b->out[0] = compose_leaky_relu(b->g, x, slope);
}

/* The argument is the index: activations without attributes, then those with alpha (default 1). */
void build_activation(Build *b) {
  static Val (*const plain[])(Graph *, Val) = {compose_sigmoid, compose_softplus, compose_softsign,
                                               compose_mish};
  static Val (*const by_alpha[])(Graph *, Val, double) = {compose_elu, compose_celu, compose_silu};
  u32 n = sizeof plain / sizeof *plain;
  Val x = on_wide(b, 0);
  on_set_output(b, b->arg < n ? plain[b->arg](b->g, x)
                              : by_alpha[b->arg - n](b->g, x, on_float(b, "alpha", 1)));
}

Val on_activated(Build *b, Val x, const char *name, double alpha, double beta) {
  Graph *g = b->g;
  if (!*name) return x;
  if (!strcmp(name, "Relu")) return compose_relu(g, x);
  if (!strcmp(name, "Tanh")) return mk_tanh(g, x);
  if (!strcmp(name, "Sigmoid")) return compose_sigmoid(g, x);
  if (!strcmp(name, "LeakyRelu")) return compose_leaky_relu(g, x, mk_like(g, x, alpha));
  if (!strcmp(name, "Clip")) return mk_clamp(g, x, alpha, beta);
  if (!strcmp(name, "HardSigmoid")) return compose_hard_sigmoid(g, x, alpha, beta);
  if (!strcmp(name, "ThresholdedRelu")) {
    Val zero = mk_like(g, x, 0);
    return mk_select(g, mk_gt(g, x, mk_like(g, x, alpha)), x, zero);
  }
  if (!strcmp(name, "ScaledTanh")) return mk_mulk(g, mk_tanh(g, mk_mulk(g, x, beta)), alpha);
  if (!strcmp(name, "Elu")) return compose_elu(g, x, alpha);
  if (!strcmp(name, "Softsign")) return compose_softsign(g, x);
  if (!strcmp(name, "Softplus")) return mk_log(g, mk_addk(g, mk_exp(g, x), 1));
  if (!strcmp(name, "Affine")) return mk_addk(g, mk_mulk(g, x, alpha), beta);
  on_unsupported(b, "activation '%s' is not an RNN activation of ONNX", name);
}

void build_selu(Build *b) {
  bool old = b->opset < 6;
  double alpha = on_float(b, "alpha", old ? 1.6732f : 1.67326319217681884765625);
  double gamma = on_float(b, "gamma", old ? 1.0507f : 1.05070102214813232421875);
  on_set_output(b, compose_selu(b->g, on_wide(b, 0), alpha, gamma));
}

void build_hardsigmoid(Build *b) {
  double alpha = on_float(b, "alpha", 0.2f), beta = on_float(b, "beta", 0.5f);
  on_set_output(b, compose_hard_sigmoid(b->g, on_wide(b, 0), alpha, beta));
}

void build_hardswish(Build *b) {
  Val x = on_wide(b, 0);
  on_set_output(b, mk_mul(b->g, x, compose_hard_sigmoid(b->g, x, 1.0f / 6, 0.5)));
}

/* The activated first operand gates the second. */
void build_swiglu(Build *b) {
  Val x = on_wide(b, 0), y = on_wide(b, 1);
  on_set_output(b, mk_mul(b->g, compose_silu(b->g, x, on_float(b, "alpha", 1)), y));
}

void build_gelu(Build *b) {
  bool by_tanh = on_choice(b, "approximate", "none tanh") == 1;
  on_set_output(b, compose_gelu(b->g, on_wide(b, 0), by_tanh));
}

void build_thresholdedrelu(Build *b) {
  Val x = on_in(b, 0), alpha = mk_like(b->g, x, on_float(b, "alpha", 1));
  Val zero = mk_like(b->g, x, 0);
  b->out[0] = mk_select(b->g, mk_gt(b->g, x, alpha), x, zero);
}

void build_shrink(Build *b) {
  Val x = on_in(b, 0);
  double lambd = on_float(b, "lambd", 0.5), bias = on_float(b, "bias", 0);
  Val low = mk_lt(b->g, x, mk_like(b->g, x, -lambd));
  Val high = mk_gt(b->g, x, mk_like(b->g, x, lambd));
  Val zero = mk_like(b->g, x, 0);
  Val r = mk_select(b->g, high, mk_addk(b->g, x, -bias), zero);
  b->out[0] = mk_select(b->g, low, mk_addk(b->g, x, bias), r);
}

/* Identity in inference mode. In training mode the generator is not that of other runtimes, as the
 * standard does not define one. */
void build_dropout(Build *b) {
  Val x = on_in(b, 0);
  i64 mode = 0;
  u32 n;
  if (on_has(b, 2) && !on_try_ints(b, 2, &mode, 1, &n))
    on_unsupported(b, "training_mode that is only known at run time");
  if (b->opset < 7 && on_has_attr(b, "is_test") && !on_int(b, "is_test", 0)) mode = 1;
  if (b->opset < 7 && !on_has_attr(b, "is_test") && on_wants(b, 1)) mode = 1;
  double ratio = on_float(b, "ratio", 0.5);
  bool drops = mode || !on_has(b, 2); /* training: a constant false still counts */
  if (drops && (mode || b->g->trains) && on_has(b, 1)) ratio = tensor_get(on_known(b, 1), 0).f;
  if (drops && ratio != 0 && on_training(b, mode)) {
    on_dropout(b, ratio);
    return;
  }
  b->out[0] = x;
  if (!on_wants(b, 1)) return;
  Type t = *on_type(b, x); /* copied: building nodes moves types */
  DType dt = b->opset >= 10 ? DT_bool : t.dt;
  b->out[1] = mk_full(b->g, mk_scalar(b->g, dt, 1), t.dim, t.rank);
}
