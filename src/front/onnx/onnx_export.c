/* onnx_export.c: writes a Graph as an ONNX model.
 *
 * In: a Graph before the passes `layout` and `fuse`. Out: a model of opset 21 with the operators of
 * ai.onnx, which onnx_write.c turns into bytes. Every core operator has one spelling: most are one
 * ONNX operator (the table `spelled`), the others a few. Constants become initializers. A symbolic
 * dimension is computed from Shape of a value that has it as an extent. Operators without a
 * spelling are refused by name, all of them in one run.
 *
 * The result keeps names of inputs, outputs and, as far as they are unique, of values.
 */
#include "front/onnx/onnx_edit.h"
#include <math.h>
#include <string.h>

enum { EXPORT_OPSET = 21, EXPORT_IR_VERSION = 10 };

typedef struct Export {
  Ctx *c;
  Graph *g;
  OnnxGraph *main, *to; /* to: the graph or sub-graph that receives nodes */
  Map taken;
  Str *name;   /* by value: its name in the model; 0: not written yet */
  Str *extent; /* by symbol: a value i64[1] with its extent; 0: not written yet */
  Val *shown;  /* by symbol: a value with this extent along axis[symbol]; 0: none */
  u32 *axis;
  u32 nsym;       /* symbols of the graph; more are made while writing */
  Str *result;    /* by value: its name as an output; 0: not an output */
  const Node *at; /* the node being written */
  DType dt;       /* type of its result */
  u32 errors;
} Export;

/* The ONNX operators that compute the same from the same operands, without attributes. */
static const char *const spelled[OP_COUNT] = {
    [OP_add] = "Add",         [OP_sub] = "Sub",        [OP_mul] = "Mul",
    [OP_div] = "Div",         [OP_pow] = "Pow",        [OP_max] = "Max",
    [OP_min] = "Min",         [OP_neg] = "Neg",        [OP_abs] = "Abs",
    [OP_sign] = "Sign",       [OP_floor] = "Floor",    [OP_ceil] = "Ceil",
    [OP_round] = "Round",     [OP_sqrt] = "Sqrt",      [OP_recip] = "Reciprocal",
    [OP_exp] = "Exp",         [OP_exp_nonpos] = "Exp", [OP_log] = "Log",
    [OP_sin] = "Sin",         [OP_cos] = "Cos",        [OP_tan] = "Tan",
    [OP_asin] = "Asin",       [OP_acos] = "Acos",      [OP_atan] = "Atan",
    [OP_sinh] = "Sinh",       [OP_cosh] = "Cosh",      [OP_tanh] = "Tanh",
    [OP_asinh] = "Asinh",     [OP_acosh] = "Acosh",    [OP_atanh] = "Atanh",
    [OP_erf] = "Erf",         [OP_eq] = "Equal",       [OP_lt] = "Less",
    [OP_le] = "LessOrEqual",  [OP_gt] = "Greater",     [OP_ge] = "GreaterOrEqual",
    [OP_isnan] = "IsNaN",     [OP_isinf] = "IsInf",    [OP_select] = "Where",
    [OP_nonzero] = "NonZero",
};

/* ---- nodes and constants ---- */

static Str fresh(Export *x, const char *stem) {
  return onnx_fresh_name(x->c, &x->taken, stem, "");
}

/* Appends a node with one result, which is returned. Operand 0 is an absent one. */
static Str put(Export *x, const char *op, const Str *in, u32 nin) {
  const Value *v = graph_val(x->g, x->at->out[0]);
  Str out = fresh(x, v->name ? str_text(x->c, v->name) : op_info[x->at->op].name);
  OnnxNode *n = onnx_add_node(x->c, x->to, op, "", str_fmt(x->c, "%s_%s", str_text(x->c, out), op));
  for (u32 i = 0; i < nin; i++) onnx_node_in(x->c, n, in[i]);
  onnx_node_out(x->c, n, out);
  return out;
}

static Str put1(Export *x, const char *op, Str a) {
  return put(x, op, &a, 1);
}

static Str put2(Export *x, const char *op, Str a, Str b) {
  return put(x, op, (Str[]){a, b}, 2);
}

static OnnxNode *last(Export *x) {
  return &x->to->nodes.at[x->to->nodes.n - 1];
}

static void set_int(Export *x, const char *name, i64 value) {
  onnx_set_int(x->c, last(x), name, value);
}

static void set_text(Export *x, const char *name, Str value) {
  *vec_push(&x->c->work, &last(x)->attrs) =
      (OnnxAttr){.name = str_of(x->c, name), .type = OA_string, .s = value};
}

/* Sets a list attribute to the concatenation of two lists. */
static void set_lists(Export *x, const char *name, const Dim *a, u32 na, const Dim *b, u32 nb) {
  OnnxAttr *to = vec_push(&x->c->work, &last(x)->attrs);
  *to = (OnnxAttr){.name = str_of(x->c, name), .type = OA_ints};
  for (u32 i = 0; i < na + nb; i++) *vec_push(&x->c->work, &to->ints) = i < na ? a[i] : b[i - na];
}

static void set_list(Export *x, const char *name, AttrKey key) {
  u32 n;
  const Dim *d = node_list(x->at, key, &n);
  set_lists(x, name, d, n, NULL, 0);
}

static void set_graph(Export *x, const char *name, OnnxGraph *g) {
  *vec_push(&x->c->work, &last(x)->attrs) =
      (OnnxAttr){.name = str_of(x->c, name), .type = OA_graph, .g = g};
}

static Str put_const(Export *x, const char *stem, const Tensor *t) {
  Str name = fresh(x, stem);
  onnx_put_init(x->c, x->main, name, t);
  return name;
}

static Str put_scalar(Export *x, DType dt, double value) {
  Tensor *t = tensor_new(&x->c->work, dt, NULL, 0);
  tensor_set(t, 0, dtype_is_float(dt) ? (Scalar){.f = value} : (Scalar){.i = (i64)value});
  return put_const(x, "scalar", t);
}

static Str put_ints(Export *x, const i64 *value, u32 n) {
  i64 dim = n;
  Tensor *t = tensor_new(&x->c->work, DT_i64, &dim, 1);
  for (u32 i = 0; i < n; i++) tensor_set(t, i, (Scalar){.i = value[i]});
  return put_const(x, "ints", t);
}

static Str cast_to(Export *x, Str a, DType to) {
  Str out = put1(x, "Cast", a);
  set_int(x, "to", dtype_info[to].onnx);
  return out;
}

static Str operand(Export *x, u32 i) {
  return x->name[x->at->in[i]];
}

static const Type *type_in(Export *x, u32 i) {
  return graph_type(x->g, x->at->in[i]);
}

static void refuse(Export *x, const char *why) {
  x->errors++;
  diag(x->c, ERR_unsupported, x->at->loc, "the core operator '%s'%s has no ONNX form",
       op_info[x->at->op].name, why);
}

/* ---- dimensions ---- */

static Str dim_value(Export *x, Dim d);

/* The extent of a symbol as i64[1]. */
static Str symbol_value(Export *x, Sym s) {
  SymInfo info = *dim_syminfo(x->g->dims, s);
  Str out = s < x->nsym ? x->extent[s] : 0;
  if (out) return out;
  if (info.kind == SY_derived) {
    Str a = dim_value(x, info.a), b = dim_value(x, info.b);
    const char *op = info.op == OP_mod ? "Mod" : spelled[info.op];
    if (!op) {
      x->errors++;
      diag(x->c, ERR_unsupported, x->at->loc, "a dimension computed by '%s' has no ONNX form",
           op_info[info.op].name);
      return 0;
    }
    out = put2(x, op, a, b);
  } else if (x->shown[s]) {
    out = put1(x, "Shape", x->name[x->shown[s]]);
    set_int(x, "start", x->axis[s]);
    set_int(x, "end", x->axis[s] + 1);
  } else {
    x->errors++;
    diag(x->c, ERR_unsupported, x->at->loc,
         "dimension '%s' has no ONNX form: expected the extent of an input or of an earlier value",
         show(x->c, info.name));
  }
  if (s < x->nsym) x->extent[s] = out;
  return out;
}

static Str dim_value(Export *x, Dim d) {
  if (dim_is_const(d)) return put_ints(x, &d, 1);
  DimTerms t = dim_terms(x->g->dims, d);
  Str sum = t.k0 || !t.n ? put_ints(x, &t.k0, 1) : 0;
  for (u32 i = 0; i < t.n; i++) {
    Str term = symbol_value(x, t.sym[i]);
    if (t.coef[i] != 1) term = put2(x, "Mul", term, put_ints(x, &t.coef[i], 1));
    sum = sum ? put2(x, "Add", sum, term) : term;
  }
  return sum;
}

/* Dimensions as i64[n]. */
static Str dims_value(Export *x, const Dim *d, u32 n) {
  bool known = true;
  for (u32 i = 0; i < n; i++) known = known && dim_is_const(d[i]);
  if (known) return put_ints(x, d, n);
  Str *part = NEWS(&x->c->work, Str, n);
  for (u32 i = 0; i < n; i++) part[i] = dim_value(x, d[i]);
  if (n == 1) return part[0];
  Str out = put(x, "Concat", part, n);
  set_int(x, "axis", 0);
  return out;
}

/* Remembers where the extents of symbols can be read. */
static void show_dims(Export *x, Val v) {
  const Type *t = graph_type(x->g, v);
  for (u32 i = 0; i < t->rank; i++) {
    Sym s = 0;
    if (!dim_is_sym(x->g->dims, t->dim[i], SY_input, &s) &&
        !dim_is_sym(x->g->dims, t->dim[i], SY_data, &s))
      continue;
    if (x->shown[s]) continue;
    x->shown[s] = v;
    x->axis[s] = i;
  }
}

static Str reshape_to(Export *x, Str a, const Dim *d, u32 n) {
  Str out = put2(x, "Reshape", a, dims_value(x, d, n));
  set_int(x, "allowzero", 1);
  return out;
}

/* ---- maps ---- */

static Str export_cast(Export *x) {
  const DTypeInfo *from = &dtype_info[type_in(x, 0)->dt], *to = &dtype_info[x->dt];
  Str a = operand(x, 0);
  DType dt = type_in(x, 0)->dt;
  bool is_signed = to->cls == 'I', is_float = from->cls == 'F';
  if (!node_cast_sat(x->at) || !dtype_is_int(x->dt) || to->bits > 32 || from->cls == 'B')
    return cast_to(x, a, x->dt);
  if (is_float && (to->bits == 32 || from->bits < 32)) /* holds the bounds exactly */
    a = cast_to(x, a, dt = to->bits == 32 ? DT_f64 : DT_f32);
  double least = is_signed ? -ldexp(1, to->bits - 1) : 0, most = ldexp(1, to->bits - is_signed) - 1;
  if (is_float || (from->cls == 'I' && (!is_signed || from->bits > to->bits)))
    a = put2(x, "Max", a, put_scalar(x, dt, least));
  if (is_float || from->bits - (from->cls == 'I') > to->bits - is_signed)
    a = put2(x, "Min", a, put_scalar(x, dt, most));
  return cast_to(x, a, x->dt);
}

/* Remainder of floats with the sign of b. ONNX has only the one with the sign of a. */
static Str export_mod(Export *x) {
  bool is_float = dtype_is_float(x->dt);
  Str a = operand(x, 0), b = operand(x, 1), r = put2(x, "Mod", a, b);
  set_int(x, "fmod", is_float || x->at->op == OP_fmod);
  if (!is_float || x->at->op == OP_fmod) return r;
  Str zero = put_scalar(x, x->dt, 0);
  Str below = put2(x, "Less", r, zero), apart = put2(x, "Xor", below, put2(x, "Less", b, zero));
  Str move = put2(x, "And", apart, put1(x, "Not", put2(x, "Equal", r, zero)));
  return put(x, "Where", (Str[]){move, put2(x, "Add", r, b), r}, 3);
}

/* Shifts within unsigned types. The bits of a negative number are inverted around a shift to the
 * right, which makes it arithmetic. */
static Str shift(Export *x, Str a, Str by, DType dt, bool left) {
  DType u = dtype_info[dt].bits == 64 ? DT_u64 : DT_u32;
  bool is_signed = dtype_is_signed(dt), inverts = is_signed && !left;
  Str below = inverts ? put2(x, "Less", a, put_scalar(x, dt, 0)) : 0;
  if (inverts) a = put(x, "Where", (Str[]){below, put1(x, "BitwiseNot", a), a}, 3);
  if (is_signed) {
    a = cast_to(x, a, u);
    by = cast_to(x, by, u);
  }
  a = put2(x, "BitShift", a, by);
  set_text(x, "direction", str_of(x->c, left ? "LEFT" : "RIGHT"));
  if (is_signed) a = cast_to(x, a, dt);
  return inverts ? put(x, "Where", (Str[]){below, put1(x, "BitwiseNot", a), a}, 3) : a;
}

/* Computes in i64: products of two i32 fit. */
static Str export_requant(Export *x) {
  Str p = cast_to(x, operand(x, 0), DT_i64);
  p = put2(x, "Mul", p, cast_to(x, operand(x, 1), DT_i64));
  p = put2(x, "Add", p, put_scalar(x, DT_i64, 0x1p31));
  p = shift(x, p, put_scalar(x, DT_i64, 32), DT_i64, false);
  Str by = put2(x, "BitwiseAnd", operand(x, 2), put_scalar(x, DT_i32, 31));
  by = cast_to(x, by, DT_i64);
  Str half = shift(x, put_scalar(x, DT_i64, 1), by, DT_i64, true);
  half = put2(x, "Div", half, put_scalar(x, DT_i64, 2));
  Str sign = put1(x, "Sign", p), far = put2(x, "Add", put1(x, "Abs", p), half);
  return cast_to(x, put2(x, "Mul", sign, shift(x, far, by, DT_i64, false)), DT_i32);
}

static Str export_map(Export *x) {
  Str a = operand(x, 0), b = x->at->nin > 1 ? operand(x, 1) : 0;
  bool logical = type_in(x, 0)->dt == DT_bool;
  switch (x->at->op) {
  case OP_cast: return export_cast(x);
  case OP_mod:
  case OP_fmod: return export_mod(x);
  case OP_ne: return put1(x, "Not", put2(x, "Equal", a, b));
  case OP_fma: return put2(x, "Add", put2(x, "Mul", a, b), operand(x, 2));
  case OP_exp_p1: {
    Str e = put1(x, "Exp", a);
    return put2(x, "Add", e, put_scalar(x, x->dt, 1));
  }
  case OP_trunc: {
    Str sign = put1(x, "Sign", a);
    return put2(x, "Mul", sign, put1(x, "Floor", put1(x, "Abs", a)));
  }
  case OP_gelu_x2: {
    Str erf = put1(x, "Erf", put2(x, "Mul", a, put_scalar(x, x->dt, sqrt(0.5))));
    Str one = put_scalar(x, x->dt, 1);
    return put2(x, "Mul", a, put2(x, "Add", erf, one));
  }
  case OP_and: return put2(x, logical ? "And" : "BitwiseAnd", a, b);
  case OP_or: return put2(x, logical ? "Or" : "BitwiseOr", a, b);
  case OP_xor: return put2(x, logical ? "Xor" : "BitwiseXor", a, b);
  case OP_not: return put1(x, logical ? "Not" : "BitwiseNot", a);
  case OP_shl:
  case OP_shr:
    if (dtype_is_signed(x->dt)) {
      i64 lo, hi, bits = dtype_info[x->dt].bits;
      value_int_range(x->g, x->at->in[1], &lo, &hi);
      if (bits < 32 || lo < 0 || hi >= bits) break;
    }
    return shift(x, a, b, x->dt, x->at->op == OP_shl);
  case OP_requant: return export_requant(x);
  default: break;
  }
  refuse(x, "");
  return 0;
}

/* ---- reductions and products ---- */

static Str export_reduce(Export *x) {
  static const char *const ops[] = {"ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"};
  bool resumes = x->at->op == OP_resume_sum, logical = x->dt == DT_bool;
  u32 n;
  const Dim *axes = node_list(x->at, AT_axes, &n);
  Str a = logical ? cast_to(x, operand(x, 0), DT_i32) : operand(x, 0);
  Str r = put2(x, ops[resumes ? 0 : x->at->op - OP_reduce_sum], a, put_ints(x, axes, n));
  set_int(x, "keepdims", node_int(x->at, AT_keep, 0));
  if (resumes) r = put2(x, "Add", r, operand(x, 1));
  return logical ? cast_to(x, r, DT_bool) : r;
}

static Str export_arg(Export *x) {
  put1(x, x->at->op == OP_argmax ? "ArgMax" : "ArgMin", operand(x, 0));
  set_int(x, "axis", node_int(x->at, AT_axis, 0));
  set_int(x, "keepdims", node_int(x->at, AT_keep, 0));
  set_int(x, "select_last_index", node_int(x->at, AT_last, 0));
  return last(x)->out.at[0];
}

/* The operand with its last two axes swapped. */
static Str swap_last(Export *x, u32 i, Str a) {
  Dim perm[MAX_RANK];
  u32 rank = type_in(x, i)->rank;
  for (u32 k = 0; k < rank; k++) perm[k] = k;
  perm[rank - 1] = rank - 2;
  perm[rank - 2] = rank - 1;
  Str out = put1(x, "Transpose", a);
  set_lists(x, "perm", perm, rank, NULL, 0);
  return out;
}

/* "bmk,bkn->bmn", also with swapped operands or without batch axes: MatMul; other specs: Einsum. */
static Str export_contract(Export *x) {
  Str spec = node_attr(x->at, AT_spec)->u.s;
  const char *s = str_text(x->c, spec), *comma = strchr(s, ','), *out = strstr(s, "->") + 2;
  const char *right = comma + 1;
  size_t na = (size_t)(comma - s), nb = (size_t)(out - 2 - right), no = strlen(out), batch = no - 2;
  bool fits = na >= 2 && nb >= 2 && no == na && (nb == na || nb == 2) && !memcmp(s, out, batch) &&
              (nb == 2 || !memcmp(right, out, batch));
  if (fits) {
    const char *a = s + batch, *b = right + nb - 2, m = out[batch], n = out[batch + 1];
    bool swap_a = a[1] == m, swap_b = b[0] == n;
    char ka = a[!swap_a], kb = b[swap_b];
    if (a[swap_a] == m && b[!swap_b] == n && ka == kb) {
      Str left = swap_a ? swap_last(x, 0, operand(x, 0)) : operand(x, 0);
      return put2(x, "MatMul", left, swap_b ? swap_last(x, 1, operand(x, 1)) : operand(x, 1));
    }
  }
  Str r = put2(x, "Einsum", operand(x, 0), operand(x, 1));
  set_text(x, "equation", spec);
  return r;
}

/* a with k copies of fill after every element of an axis but the last. *d: its dimensions. */
static Str spread(Export *x, Str a, Dim *d, u32 rank, u32 axis, i64 k, Str fill) {
  Dim apart[MAX_RANK + 1], pads[2 * (MAX_RANK + 1)] = {0};
  Dims *ds = x->g->dims;
  memcpy(apart, d, rank * sizeof *d);
  memmove(apart + axis + 2, apart + axis + 1, (rank - axis - 1) * sizeof *d);
  apart[axis + 1] = 1;
  a = reshape_to(x, a, apart, rank + 1);
  pads[rank + 1 + axis + 1] = k;
  a = put(x, "Pad", (Str[]){a, put_ints(x, pads, 2 * rank + 2), fill}, 3);
  d[axis] = dim_mul(ds, d[axis], k + 1);
  a = reshape_to(x, a, d, rank);
  d[axis] = dim_addk(ds, d[axis], -k);
  Str end = dims_value(x, &d[axis], 1), zero = put_ints(x, &(i64){0}, 1);
  Str in[] = {a, zero, end, put_ints(x, &(i64){axis}, 1)};
  return put(x, "Slice", in, 4);
}

/* Operand i of a product of integers as bytes and their zero points: one, or one per channel. */
static bool bytes_operand(Export *x, u32 i, Str *bytes, Str *zero) {
  i64 number = 0;
  Val z = 0, q = graph_bytes(x->g, x->at->in[i], &number);
  if (!q) q = graph_bytes_and_zero(x->g, x->at->in[i], &z);
  if (!q || !x->name[q] || (z && !x->name[z])) return false;
  DType dt = graph_type(x->g, q)->dt;
  *bytes = x->name[q];
  *zero = z ? cast_to(x, x->name[z], dt) : put_scalar(x, dt, (double)number);
  Dim n = z ? type_count(x->g->dims, graph_type(x->g, z)) : 1;
  if (z) *zero = reshape_to(x, *zero, &n, n != 1);
  return true;
}

static Str export_conv(Export *x) {
  u32 n, spread_n;
  const Type *t = type_in(x, 0);
  const Dim *lo = node_list(x->at, AT_pad_lo, &n), *hi = node_list(x->at, AT_pad_hi, &n),
            *holes = node_list(x->at, AT_input_dilation, &spread_n);
  Str in[4] = {operand(x, 0), operand(x, 1)};
  bool whole = !dtype_is_float(x->dt);
  for (u32 i = 0; whole && i < 2; i++)
    if (!bytes_operand(x, i, &in[i], &in[2 + i])) {
      refuse(x, " of integers other than bytes");
      return 0;
    }
  Dim d[MAX_RANK];
  memcpy(d, t->dim, t->rank * sizeof *d);
  for (u32 i = 0; holes && i < spread_n; i++)
    if (holes[i] > 1)
      in[0] = spread(x, in[0], d, t->rank, i + 2, holes[i] - 1,
                     whole ? in[2] : put_scalar(x, x->dt, 0));
  put(x, whole ? "ConvInteger" : "Conv", in, whole ? 4 : 2);
  set_int(x, "group", node_int(x->at, AT_group, 1));
  set_list(x, "strides", AT_stride);
  set_list(x, "dilations", AT_dilation);
  set_lists(x, "pads", lo, n, hi, n);
  return last(x)->out.at[0];
}

/* Pools work on [N, C, ...]: leading axes are joined. */
static Str export_pool(Export *x) {
  u32 n, lead;
  const Type *t = type_in(x, 0), *y = graph_type(x->g, x->at->out[0]);
  const Dim *window = node_list(x->at, AT_window, &n), *lo = node_list(x->at, AT_pad_lo, &n),
            *hi = node_list(x->at, AT_pad_hi, &n);
  Dim d[MAX_RANK + 2] = {1, 0};
  Str a = operand(x, 0), out;
  bool sums = x->at->op == OP_pool_sum, indices = x->at->op == OP_pool_argmax, joins;
  DType dt = t->dt;
  if (!dtype_is_float(dt) && (sums || (dt != DT_i8 && dt != DT_u8))) {
    refuse(x, str_text(x->c, str_fmt(x->c, " of %s", dtype_info[dt].name)));
    return 0;
  }
  lead = t->rank - n;
  joins = lead != 2;
  if (joins) {
    d[1] = dim_product(x->g->dims, t->dim, lead);
    memcpy(d + 2, t->dim + lead, n * sizeof *d);
    a = reshape_to(x, a, d, n + 2);
  }
  out = put1(x, sums ? "AveragePool" : "MaxPool", a);
  set_lists(x, "kernel_shape", window, n, NULL, 0);
  set_list(x, "strides", AT_stride);
  set_list(x, "dilations", AT_dilation);
  set_lists(x, "pads", lo, n, hi, n);
  if (sums) set_int(x, "count_include_pad", 1);
  if (indices) {
    onnx_node_out(x->c, last(x), fresh(x, "indices"));
    out = put2(x, "Mod", last(x)->out.at[1],
               dims_value(x, &(Dim){dim_product(x->g->dims, t->dim + lead, n)}, 1));
  }
  if (sums) {
    double elements = 1;
    for (u32 i = 0; i < n; i++) elements *= (double)window[i];
    out = put2(x, "Mul", out, put_scalar(x, x->dt, elements));
  }
  return joins ? reshape_to(x, out, y->dim, y->rank) : out;
}

/* ---- views and joins ---- */

static Str export_slice(Export *x) {
  u32 n, unused;
  Dims *ds = x->g->dims;
  const Dim *from = node_list(x->at, AT_start, &n), *step = node_list(x->at, AT_step, &unused),
            *size = node_list(x->at, AT_size, &unused);
  Dim end[MAX_RANK];
  i64 axis[MAX_RANK];
  Str ends = 0;
  for (u32 i = 0; i < n; i++) {
    axis[i] = i;
    end[i] = step[i] > 0 ? dim_add(ds, from[i], dim_mul(ds, size[i], step[i])) : 0;
  }
  ends = dims_value(x, end, n);
  for (u32 i = 0; i < n; i++) { /* before the first element: counted from the end, below 0 */
    if (step[i] > 0) continue;
    Str end_size = dim_value(x, dim_mul(ds, size[i], -step[i]));
    Str here = put2(x, "Sub", dim_value(x, from[i]), end_size);
    Str below = put2(x, "Sub", here, dim_value(x, type_in(x, 0)->dim[i]));
    i64 at = i;
    ends = put(x, "ScatterElements", (Str[]){ends, put_ints(x, &at, 1), below}, 3);
  }
  Str starts = dims_value(x, from, n), axes = put_ints(x, axis, n);
  return put(x, "Slice", (Str[]){operand(x, 0), starts, ends, axes, put_ints(x, step, n)}, 5);
}

static Str export_pad(Export *x) {
  u32 n, unused;
  const Type *t = type_in(x, 0);
  const Dim *lo = node_list(x->at, AT_lo, &n), *hi = node_list(x->at, AT_hi, &n),
            *interior = node_list(x->at, AT_interior, &unused);
  Dim d[MAX_RANK], both[2 * MAX_RANK];
  bool any = false;
  Str a = operand(x, 0);
  memcpy(d, t->dim, t->rank * sizeof *d);
  for (u32 i = 0; i < n; i++) {
    if (interior[i] > 0) a = spread(x, a, d, n, i, interior[i], operand(x, 1));
    any = any || lo[i] || hi[i];
    both[i] = lo[i];
    both[n + i] = hi[i];
  }
  return any ? put(x, "Pad", (Str[]){a, dims_value(x, both, 2 * n), operand(x, 1)}, 3) : a;
}

static Str index_operand(Export *x) {
  DType dt = type_in(x, 1)->dt;
  bool fits =
      dt == DT_i64 || (dt == DT_i32 && x->at->op != OP_gather_nd && x->at->op != OP_scatter_nd);
  return fits ? operand(x, 1) : cast_to(x, operand(x, 1), DT_i64);
}

static Str export_gather(Export *x) {
  Op op = x->at->op;
  put2(x,
       op == OP_gather      ? "Gather"
       : op == OP_gather_nd ? "GatherND"
                            : "GatherElements",
       operand(x, 0), index_operand(x));
  set_int(x, op == OP_gather_nd ? "batch_dims" : "axis",
          node_int(x->at, op == OP_gather_nd ? AT_batch : AT_axis, 0));
  return last(x)->out.at[0];
}

static Str export_scatter(Export *x) {
  bool elements = x->at->op == OP_scatter_elems;
  put(x, elements ? "ScatterElements" : "ScatterND",
      (Str[]){operand(x, 0), index_operand(x), operand(x, 2)}, 3);
  if (elements) set_int(x, "axis", node_int(x->at, AT_axis, 0));
  set_text(x, "reduction", node_attr(x->at, AT_reduce)->u.s);
  return last(x)->out.at[0];
}

/* Range along an axis, broadcast along the others. */
static Str export_iota(Export *x) {
  u32 n, axis = (u32)node_int(x->at, AT_axis, 0);
  const Dim *shape = node_list(x->at, AT_shape, &n);
  Dim column[MAX_RANK];
  Dim scalar = 0;
  Str end = reshape_to(x, dim_value(x, shape[axis]), &scalar, 0);
  Str zero = put_scalar(x, DT_i64, 0);
  Str a = put(x, "Range", (Str[]){zero, end, put_scalar(x, DT_i64, 1)}, 3);
  for (u32 i = 0; i < n; i++) column[i] = i == axis ? shape[i] : 1;
  if (x->dt != DT_i64) a = cast_to(x, a, x->dt);
  a = reshape_to(x, a, column, n);
  return n > 1 ? put2(x, "Expand", a, dims_value(x, shape, n)) : a;
}

static Str export_dims(Export *x) {
  u32 n;
  const Dim *d = node_list(x->at, AT_shape, &n), none = 0;
  Str a = dims_value(x, d, n);
  if (!node_int(x->at, AT_rank, 1)) a = reshape_to(x, a, &none, 0);
  return x->dt == DT_i64 ? a : cast_to(x, a, x->dt);
}

/* ---- control ---- */

static void export_region(Export *x, RegionId r);

static DeclValue declared(Export *x, Val v, Str name) {
  const Type *t = graph_type(x->g, v);
  DeclValue d = {
      .name = name,
      .type = {
          .kind = OT_tensor, .elem_code = dtype_info[t->dt].onnx, .dt = t->dt, .has_shape = true}};
  for (u32 i = 0; i < t->rank; i++) {
    Sym s = 0;
    bool named = dim_is_sym(x->g->dims, t->dim[i], SY_input, &s);
    *vec_push(&x->c->work, &d.type.dims) =
        (DeclDim){.kind = dim_is_const(t->dim[i]) ? OD_value
                          : named                 ? OD_param
                                                  : OD_unknown,
                  .param = named ? dim_syminfo(x->g->dims, s)->name : 0,
                  .value = t->dim[i]};
  }
  return d;
}

/* Writes a region as a sub-graph. Extents that are computed in it cannot be used outside. */
static OnnxGraph *inner_graph(Export *x, RegionId r, const char *stem) {
  OnnxGraph *g = NEW(&x->c->work, OnnxGraph), *outer = x->to;
  const Node *at = x->at;
  Str *extent = x->extent;
  Val *shown = x->shown;
  x->extent = arena_copy(&x->c->work, extent, x->nsym * sizeof *extent);
  x->shown = arena_copy(&x->c->work, shown, x->nsym * sizeof *shown);
  x->to = g;
  g->name = fresh(x, stem);
  const GraphRegion *b = &x->g->region.at[r];
  for (u32 i = 0; i < b->param.n; i++) {
    Val v = b->param.at[i];
    x->name[v] = fresh(x, "state");
    *vec_push(&x->c->work, &g->inputs) = declared(x, v, x->name[v]);
  }
  export_region(x, r);
  x->at = at;
  for (u32 i = 0; i < b->ret.n; i++) {
    Str out = put1(x, "Identity", x->name[b->ret.at[i]]);
    *vec_push(&x->c->work, &g->outputs) = declared(x, b->ret.at[i], out);
  }
  x->to = outer;
  x->extent = extent;
  x->shown = shown;
  return g;
}

/* Further results of the last node. */
static void put_outputs(Export *x) {
  for (u32 i = 1; i < x->at->nout; i++) onnx_node_out(x->c, last(x), fresh(x, "result"));
}

static Str export_control(Export *x) {
  const Node n = *x->at;
  Str *in = NEWS(&x->c->work, Str, n.nin);
  OnnxGraph *body[2] = {NULL};
  bool loops = n.op == OP_loop;
  for (u32 i = 0; i < n.nin; i++) in[i] = n.in[i] ? x->name[n.in[i]] : 0;
  for (u32 i = 0; i < n.nregion; i++) body[i] = inner_graph(x, n.region[i], "body");
  put(x, loops ? "Loop" : "If", in, n.nin);
  set_graph(x, loops ? "body" : "then_branch", body[0]);
  if (!loops) set_graph(x, "else_branch", body[1]);
  put_outputs(x);
  return last(x)->out.at[0];
}

/* ---- graphs ---- */

/* The attributes are the axis and the two flags of a prefix sum. */
static Str export_cumsum(Export *x) {
  put2(x, "CumSum", operand(x, 0), put_scalar(x, DT_i64, (double)node_int(x->at, AT_axis, 0)));
  set_int(x, "exclusive", node_int(x->at, AT_exclusive, 0));
  set_int(x, "reverse", node_int(x->at, AT_reverse, 0));
  return last(x)->out.at[0];
}

static Str export_topk(Export *x) {
  u32 n;
  const Dim *k = node_list(x->at, AT_k, &n);
  put2(x, "TopK", operand(x, 0), dims_value(x, k, 1));
  set_int(x, "axis", node_int(x->at, AT_axis, 0));
  set_int(x, "largest", node_int(x->at, AT_largest, 1));
  put_outputs(x);
  return last(x)->out.at[0];
}

/* Element types that came after the opset, or that ONNX lacks as an operand of Cast. */
static bool type_fits(DType dt) {
  return dt != DT_i2 && dt != DT_u2 && dt != DT_f4e2m1 && dt != DT_f8e8m0;
}

static Str export_op(Export *x) {
  const Node *n = x->at;
  u32 rank;
  const Dim *shape;
  for (u32 i = 0; i < n->nin + n->nout; i++) {
    Val v = i < n->nin ? n->in[i] : n->out[i - n->nin];
    if (!v || type_fits(graph_type(x->g, v)->dt)) continue;
    refuse(x, str_text(x->c, str_fmt(x->c, " of %s", dtype_info[graph_type(x->g, v)->dt].name)));
    return 0;
  }
  if (spelled[n->op]) {
    Str in[3] = {0};
    for (u32 i = 0; i < n->nin; i++) in[i] = operand(x, i);
    return put(x, spelled[n->op], in, n->nin);
  }
  if (n->op < OP_SCALARS) return export_map(x);
  switch (n->op) {
  case OP_const: {
    const Value *v = graph_val(x->g, n->out[0]);
    return put_const(x, v->name ? str_text(x->c, v->name) : "const", node_attr(n, AT_value)->u.t);
  }
  case OP_dims: return export_dims(x);
  case OP_iota: return export_iota(x);
  case OP_reduce_sum:
  case OP_reduce_prod:
  case OP_reduce_max:
  case OP_reduce_min:
  case OP_resume_sum: return export_reduce(x);
  case OP_argmax:
  case OP_argmin: return export_arg(x);
  case OP_contract: return export_contract(x);
  case OP_conv: return export_conv(x);
  case OP_pool_max:
  case OP_pool_sum:
  case OP_pool_argmax: return export_pool(x);
  case OP_reshape:
    shape = node_list(n, AT_shape, &rank);
    return reshape_to(x, operand(x, 0), shape, rank);
  case OP_transpose:
    put1(x, "Transpose", operand(x, 0));
    set_list(x, "perm", AT_perm);
    return last(x)->out.at[0];
  case OP_slice: return export_slice(x);
  case OP_broadcast:
    shape = node_list(n, AT_shape, &rank);
    return put2(x, "Expand", operand(x, 0), dims_value(x, shape, rank));
  case OP_concat: {
    Str *in = NEWS(&x->c->work, Str, n->nin);
    for (u32 i = 0; i < n->nin; i++) in[i] = operand(x, i);
    put(x, "Concat", in, n->nin);
    set_int(x, "axis", node_int(n, AT_axis, 0));
    return last(x)->out.at[0];
  }
  case OP_pad: return export_pad(x);
  case OP_gather:
  case OP_gather_elems:
  case OP_gather_nd: return export_gather(x);
  case OP_scatter_elems:
  case OP_scatter_nd: return export_scatter(x);
  case OP_check_index: return operand(x, 0); /* ONNX checks indices where they are used */
  case OP_cumsum: return export_cumsum(x);
  case OP_if:
  case OP_loop: return export_control(x);
  case OP_topk: return export_topk(x);
  default: break;
  }
  refuse(x, "");
  return 0;
}

/* Is the name that of a cached extent? */
static bool is_extent(const Export *x, Str name) {
  for (u32 s = 0; s < x->nsym; s++)
    if (x->extent[s] == name) return true;
  return false;
}

static void export_region(Export *x, RegionId r) {
  const GraphRegion *b = &x->g->region.at[r];
  for (u32 i = 0; i < b->param.n; i++) show_dims(x, b->param.at[i]);
  for (u32 i = 0; i < b->node.n; i++) {
    const Node *n = graph_node(x->g, b->node.at[i]);
    x->at = n;
    x->dt = graph_type(x->g, n->out[0])->dt;
    u32 before = x->to->nodes.n;
    Str first = export_op(x);
    bool made = x->to->nodes.n > before && !is_extent(x, first);
    for (u32 k = 0; k < n->nout && !x->errors; k++) {
      Val v = n->out[k];
      x->name[v] = k ? last(x)->out.at[k] : first;
      if (made && x->result[v] && last(x)->out.at[k] == x->name[v])
        last(x)->out.at[k] = x->name[v] = x->result[v];
      show_dims(x, v);
    }
  }
}

/* Declares an output. A value whose node did not get its name is copied: a parameter, a constant,
 * an extent, a repeated output. */
static void export_result(Export *x, u32 i) {
  Val v = x->g->region.at[1].ret.at[i];
  Str name = x->g->out_name.at[i];
  Node *copy = NEW(&x->c->work, Node);
  *copy = (Node){.op = OP_reshape, .out = arena_copy(&x->c->work, &v, sizeof v), .nout = 1};
  x->at = copy;
  if (x->name[v] != name) {
    put1(x, "Identity", x->name[v]);
    last(x)->out.at[0] = name;
  }
  *vec_push(&x->c->work, &x->main->outputs) = declared(x, v, name);
}

/* Removes nodes and initializers that no output depends on: parts that a spelling did not need. */
static void drop_unread(Ctx *c, OnnxGraph *g) {
  Map uses = onnx_use_counts(c, g);
  bool *live = NEWS(&c->work, bool, g->nodes.n + 1);
  u32 *count, kept = 0;
  for (u32 i = g->nodes.n; i-- > 0;) {
    const OnnxNode *n = &g->nodes.at[i];
    for (u32 k = 0; k < n->out.n; k++)
      live[i] = live[i] || ((count = map_get(&uses, n->out.at[k])) && *count);
    for (u32 k = 0; !live[i] && k < n->in.n; k++) --*map_put(&uses, n->in.at[k]);
  }
  for (u32 i = 0; i < g->nodes.n; i++)
    if (live[i]) g->nodes.at[kept++] = g->nodes.at[i];
  g->nodes.n = kept;
  kept = 0;
  for (u32 i = 0; i < g->inits.n; i++)
    if ((count = map_get(&uses, g->inits.at[i].name)) && *count)
      g->inits.at[kept++] = g->inits.at[i];
  g->inits.n = kept;
}

void graph_write_onnx(Ctx *c, Graph *g, const char *path) {
  OnnxModel *m = NEW(&c->work, OnnxModel);
  OnnxGraph *main = NEW(&c->work, OnnxGraph);
  u32 nval = g->val.n, nsym = dim_nsyms(g->dims) + 1;
  *m = (OnnxModel){.ir_version = EXPORT_IR_VERSION, .producer = str_of(c, "ingot"), .graph = main};
  onnx_require_opset(c, m, "", EXPORT_OPSET);
  main->name = g->name ? g->name : str_of(c, "graph");
  Export x = {.c = c,
              .g = g,
              .main = main,
              .to = main,
              .taken = map_new(&c->work),
              .name = NEWS(&c->work, Str, nval),
              .extent = NEWS(&c->work, Str, nsym),
              .shown = NEWS(&c->work, Val, nsym),
              .axis = NEWS(&c->work, u32, nsym),
              .nsym = nsym,
              .result = NEWS(&c->work, Str, nval)};
  const GraphRegion *b = &g->region.at[1];
  for (Val v = 1; v < nval; v++)
    if (graph_val(g, v)->layout)
      fail(c, ERR_usage, LOC_NONE,
           "the graph has memory layouts, which ONNX cannot express: expected --stop=canon");
  for (u32 i = 0; i < g->out_name.n; i++) {
    *map_put(&x.taken, g->out_name.at[i]) = 1;
    x.result[b->ret.at[i]] = g->out_name.at[i];
  }
  for (u32 i = 0; i < b->param.n; i++) {
    Val v = b->param.at[i];
    x.name[v] = graph_val(g, v)->name;
    *map_put(&x.taken, x.name[v]) = 1;
    *vec_push(&c->work, &main->inputs) = declared(&x, v, x.name[v]);
  }
  export_region(&x, 1);
  if (x.errors) fail(c, ERR_unsupported, LOC_NONE, "the graph cannot be written as ONNX");
  for (u32 i = 0; i < b->ret.n; i++) export_result(&x, i);
  drop_unread(c, main);
  onnx_save(c, m, NULL, path);
}
