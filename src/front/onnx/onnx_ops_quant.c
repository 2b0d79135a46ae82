/* onnx_ops_quant.c: quantized operators.
 *
 * A quantized tensor stands for (q - zero point) * scale. Products are exact in i32. Results are
 * rounded half to even, shifted by the zero point and saturated. Nonlinear operators compute on
 * dequantized f32. Scales and zero points are per tensor, per channel, or per group along an axis.
 */
#include "front/onnx/packed.h"

/* ---- parameters ---- */

static bool one_element(Build *b, Val v) {
  const Type *t = on_type(b, v);
  for (u32 i = 0; i < t->rank; i++)
    if (t->dim[i] != 1) return false;
  return true;
}

/* Repeats every element `block` times along axis and crops to the extents of x. */
static Val spread_blocks(Build *b, Val v, const Type *x, u32 axis, i64 block) {
  Type t = *on_type(b, v);
  Dim dim[MAX_RANK];
  if (t.rank == MAX_RANK)
    on_unsupported(b, "the operand has rank %u, expected less than %d with blocks", t.rank,
                   MAX_RANK);
  for (u32 i = 0; i < t.rank; i++) {
    Dim d = t.dim[i], e = x->dim[i];
    bool known = dim_is_const(d) && dim_is_const(e);
    bool fits = i == axis ? d <= e && d * block >= e && (d - 1) * block < e : d == e;
    if (known && !fits)
      on_bad(b,
             "blocks of %lld: scale or zero point has extent %lld on axis %u, the operand has %lld",
             (long long)block, (long long)d, i, (long long)e);
    dim[i > axis ? i + 1 : i] = d;
  }
  dim[axis + 1] = 1;
  v = mk_reshape(b->g, v, dim, t.rank + 1);
  dim[axis + 1] = block;
  v = mk_broadcast(b->g, v, dim, t.rank + 1);
  Dim all = dim_mul(b->ds, t.dim[axis], block);
  for (u32 i = 0; i < t.rank; i++) dim[i] = i == axis ? all : t.dim[i];
  return mk_slice_axis(b->g, mk_reshape(b->g, v, dim, t.rank), axis, 0, x->dim[axis]);
}

/* Reshapes v to broadcast against x: a scalar, or one element per position or group on axis. */
static Val broadcast_param(Build *b, Val v, Val x, i64 axis, i64 block) {
  Type t = *on_type(b, v), tx = *on_type(b, x);
  if (one_element(b, v)) return mk_reshape(b->g, v, NULL, 0);
  if (tx.rank == 1 && (axis > 0 || axis < -1)) axis = 0; /* the only axis */
  u32 at = on_axis(b, axis, tx.rank);
  if (block > 0) {
    if (t.rank != tx.rank)
      on_bad(b, "scale or zero point of rank %u in blocks, expected %u", t.rank, tx.rank);
    return spread_blocks(b, v, &tx, at, block);
  }
  if (t.rank != 1) on_bad(b, "scale or zero point has rank %u, expected 0 or 1", t.rank);
  if (dim_is_const(t.dim[0]) && dim_is_const(tx.dim[at]) && t.dim[0] != tx.dim[at])
    on_bad(b, "found %lld scales or zero points, expected %lld, the extent of axis %u",
           (long long)t.dim[0], (long long)tx.dim[at], at);
  return mk_expand_tail(b->g, v, tx.rank - 1 - at);
}

static i64 block_size(Build *b) {
  i64 block = on_int(b, "block_size", 0);
  if (block < 0 || block > INT32_MAX)
    on_bad(b, "block_size is %lld, expected at least 0", (long long)block);
  return block;
}

static bool is_zero(Build *b, Val v) {
  const Tensor *t = graph_const(b->g, v);
  for (u64 i = 0; t && i < t->n; i++) {
    Scalar s = tensor_get(t, i);
    if (dtype_is_float(t->dt) ? s.f != 0 : s.i != 0) return false;
  }
  return t != NULL;
}

/* ---- quantize and dequantize; zero points (0: none) broadcast against their operand ---- */

/* q - zero point: i32, or f32 for the narrow floats. */
static Val centred(Build *b, Val q, Val zero) {
  DType to = dtype_is_float(on_dtype(b, q)) ? DT_f32 : DT_i32;
  q = mk_cast(b->g, q, to);
  return zero && !is_zero(b, zero) ? mk_sub(b->g, q, mk_cast(b->g, zero, to)) : q;
}

static Val dequantized(Build *b, Val q, Val scale, Val zero) {
  Val x = mk_cast(b->g, centred(b, q, zero), DT_f32);
  return mk_mul(b->g, x, mk_cast(b->g, scale, DT_f32));
}

/* x is already divided by its scale. Adding the zero point in f32 is exact unless it saturates. */
static Val quantized(Build *b, Val x, Val zero, DType to, bool sat) {
  bool moved = zero && !is_zero(b, zero);
  if (dtype_is_int(to)) {
    x = mk_widen(b->g, mk_round(b->g, x));
    if (moved) x = mk_add(b->g, x, mk_cast(b->g, zero, on_dtype(b, x)));
    return mk_cast_sat(b->g, x, to);
  }
  if (moved) x = mk_add(b->g, x, mk_cast(b->g, zero, on_dtype(b, x)));
  if (sat || on_dtype(b, x) == to) return mk_cast(b->g, x, to);
  Attr at[2] = {{.key = AT_to, .kind = AK_dtype, .u.i = to}, {.key = AT_sat, .kind = AK_int}};
  return mk_node(b->g, OP_cast, &x, 1, at, 2);
}

/* ---- QuantizeLinear, DequantizeLinear ---- */

static void check_quantized(Build *b, DType dt) {
  bool wide = dtype_is_int(dt) && dtype_info[dt].bits > 16;
  if (wide || !(dtype_is_int(dt) || (dtype_is_float(dt) && dtype_info[dt].bits <= 8)))
    on_bad(b, "%s is not a quantized type", dtype_info[dt].name);
}

static DType dtype_attr(Build *b, const char *name, DType otherwise) {
  i64 code = on_int(b, name, 0);
  DType dt = code ? dtype_from_onnx(code) : otherwise;
  if (!dt)
    on_bad(b, "attribute %s: unknown element type %lld, expected one of ONNX", name,
           (long long)code);
  return dt;
}

/* The type of the scale decides the precision of the division, if ingot computes in it. */
static DType division_type(Build *b, Val x, Val scale) {
  DType dt = on_dtype(b, scale);
  if (!dtype_is_float(dt)) dt = DT_f64;
  if (dtype_info[dt].bits < 16) dt = dtype_is_float(on_dtype(b, x)) ? on_dtype(b, x) : DT_f32;
  dt = dtype_attr(b, "precision", dt);
  if (!dtype_is_float(dt) || dtype_info[dt].bits < 16)
    on_bad(b, "precision is %s, expected a float of 16 bits or more", dtype_info[dt].name);
  return dt;
}

void build_quantizelinear(Build *b) {
  Val x = on_in(b, 0), scale = on_in(b, 1), zero = on_opt(b, 2);
  i64 axis = on_int(b, "axis", 1), block = block_size(b);
  DType div = division_type(b, x, scale), to = zero ? on_dtype(b, zero) : DT_u8;
  DType asked = dtype_attr(b, "output_dtype", to);
  if (zero && asked != to)
    on_bad(b, "output_dtype is %s, but the zero point is %s", dtype_info[asked].name,
           dtype_info[to].name);
  check_quantized(b, asked);
  if (zero) zero = broadcast_param(b, zero, x, axis, block);
  scale = mk_cast(b->g, broadcast_param(b, scale, x, axis, block), div);
  bool sat = on_int(b, "saturate", 1) || asked == DT_f4e2m1;
  b->out[0] = quantized(b, mk_div(b->g, mk_cast(b->g, x, div), scale), zero, asked, sat);
}

/* A matrix with 4 or 8 bits and groups along an axis, as rows that stay packed; 0: not possible. */
static Val packed_matrix(Build *b, Val x, Val scale, Val zero, i64 axis, i64 block) {
  const Tensor *q = graph_const(b->g, x), *s = graph_const(b->g, scale),
               *z = zero ? graph_const(b->g, zero) : NULL;
  if (!q || !s || (zero && !z) || q->rank != 2 || s->rank != 2 || !dtype_is_int(q->dt)) return 0;
  u32 at = on_axis(b, axis, 2), bits = dtype_info[q->dt].bits;
  i64 n = q->dim[at], rows = q->dim[1 - at], low = dtype_is_signed(q->dt) ? 1 << (bits - 1) : 0;
  if (!packed_fits(rows, n, block, bits, true) || n % block || s->dt != DT_f32) return 0;
  if (s->dim[at] != n / block || s->dim[1 - at] != rows || (z && z->n != s->n)) return 0;
  PackedRows p = packed_new(b->g->c, rows, n, bits);
  for (i64 r = 0; r < rows; r++)
    for (i64 i = 0; i < n; i++) {
      i64 of = i / block, blocks = n / block, e = (r * n + i) / QBLOCK_X;
      u64 in = (u64)(at ? r * n + i : i * rows + r),
          by = (u64)(at ? r * blocks + of : of * rows + r);
      p.code[r * n + i] = (u8)(tensor_get(q, in).i + low);
      if (i % QBLOCK_X) continue;
      p.scale[e] = (float)tensor_get(s, by).f;
      p.zero[e] = (float)(low + (z ? tensor_get(z, by).i : 0));
    }
  Val v = packed_value(b->g, &p, true);
  return at ? v : mk_transpose(b->g, v, (const i64[]){1, 0});
}

void build_dequantizelinear(Build *b) {
  Val x = on_in(b, 0), scale = on_in(b, 1), zero = on_opt(b, 2);
  i64 axis = on_int(b, "axis", 1), block = block_size(b);
  DType to = dtype_attr(b, "output_dtype", on_dtype(b, scale));
  if (on_dtype(b, x) != DT_i32) check_quantized(b, on_dtype(b, x));
  if (zero && on_dtype(b, zero) != on_dtype(b, x))
    on_bad(b, "the zero point is %s, but the operand is %s", dtype_info[on_dtype(b, zero)].name,
           dtype_info[on_dtype(b, x)].name);
  Val packed = block && to == DT_f32 ? packed_matrix(b, x, scale, zero, axis, block) : 0;
  if (packed) {
    b->out[0] = packed;
    return;
  }
  if (zero) zero = broadcast_param(b, zero, x, axis, block);
  b->out[0] = mk_cast(b->g, dequantized(b, x, broadcast_param(b, scale, x, axis, block), zero), to);
}

/* Quantizes to u8 over the range of x extended to 0; returns scale and zero point. */
static Val dynamic_u8(Build *b, Val x, Val *scale, Val *point) {
  Val zero = mk_like(b->g, x, 0);
  i64 axes[MAX_RANK];
  u32 rank = axes_from(b->g, x, 0, axes);
  Val hi = mk_max(b->g, mk_reduce(b->g, OP_reduce_max, x, axes, rank, false), zero);
  Val lo = mk_min(b->g, mk_reduce(b->g, OP_reduce_min, x, axes, rank, false), zero);
  Val steps = mk_like(b->g, x, 255);
  Val step = mk_div(b->g, mk_sub(b->g, hi, lo), steps);
  Val one = mk_like(b->g, x, 1);
  *scale = mk_select(b->g, mk_eq(b->g, hi, lo), one, step);
  Val at = mk_round(b->g, mk_clamp(b->g, mk_neg(b->g, mk_div(b->g, lo, *scale)), 0, 255));
  *point = mk_cast_sat(b->g, at, DT_u8);
  return quantized(b, mk_div(b->g, x, *scale), *point, DT_u8, true);
}

void build_dynamicquantize(Build *b) {
  Val scale, point;
  b->out[0] = dynamic_u8(b, on_in(b, 0), &scale, &point);
  if (on_wants(b, 1)) b->out[1] = scale;
  if (on_wants(b, 2)) b->out[2] = point;
}

/* ---- products ---- */

/* A parameter of the left operand of a matrix product: a vector has one element per row. */
static Val per_row(Build *b, Val v) {
  if (one_element(b, v)) return mk_reshape(b->g, v, NULL, 0);
  return on_rank(b, v) == 1 ? mk_expand_tail(b->g, v, 1) : v;
}

/* A parameter of the right operand of a matrix product: a vector has one element per column. */
static Val per_column(Build *b, Val v) {
  return one_element(b, v) ? mk_reshape(b->g, v, NULL, 0) : v;
}

static Val left_centred(Build *b, u32 q, u32 zero) {
  Val x = on_in(b, q), z = on_opt(b, zero);
  return centred(b, x, z ? per_row(b, z) : 0);
}

static Val right_centred(Build *b, u32 q, u32 zero) {
  Val x = on_in(b, q), z = on_opt(b, zero);
  return centred(b, x, z ? per_column(b, z) : 0);
}

/* Integer products need 8-bit operands. */
static void want_bytes(Build *b) {
  for (u32 i = 0; i < 2; i++) {
    DType dt = on_dtype(b, on_in(b, i));
    if (dt != DT_i8 && dt != DT_u8)
      on_bad(b, "input %u has type %s, expected int8 or uint8", i, dtype_info[dt].name);
  }
}

void build_matmulinteger(Build *b) {
  want_bytes(b);
  Val x = left_centred(b, 0, 2), y = right_centred(b, 1, 3);
  b->out[0] = mk_matmul(b->g, x, y);
}

static Val scalar(Build *b, Val v) {
  if (!one_element(b, v)) on_bad(b, "a scale or zero point: expected one element");
  return mk_reshape(b->g, v, NULL, 0);
}

/* acc * (sx * sy / so), so 0: none. The factor comes first, as it is constant in most models. */
static Val rescaled(Build *b, Val acc, Val sx, Val sy, Val so) {
  Val second = mk_cast(b->g, sy, DT_f32);
  Val k = mk_mul(b->g, mk_cast(b->g, sx, DT_f32), second);
  if (so) k = mk_div(b->g, k, mk_cast(b->g, so, DT_f32));
  return mk_mul(b->g, mk_cast(b->g, acc, DT_f32), k);
}

/* zero 0: no zero point, and the type of input 0. */
static Val rounded_out(Build *b, Val x, Val zero) {
  return quantized(b, x, zero, on_dtype(b, zero ? zero : b->in[0]), true);
}

void build_qlinearmatmul(Build *b) {
  Val w = right_centred(b, 3, 5);
  Val acc = mk_matmul(b->g, left_centred(b, 0, 2), w);
  Val sx = per_row(b, on_in(b, 1)), sy = per_column(b, on_in(b, 4)), zero = on_opt(b, 7);
  Val r = rescaled(b, acc, sx, sy, per_row(b, on_in(b, 6)));
  b->out[0] = rounded_out(b, r, zero ? per_row(b, zero) : 0);
}

static Val conv_i32(Build *b, u32 x, u32 xzero, u32 w, u32 wzero) {
  Val vx = on_in(b, x), vw = on_in(b, w), zx = on_opt(b, xzero), zw = on_opt(b, wzero);
  if (zx) zx = broadcast_param(b, zx, vx, 1, 0);
  if (zw) zw = broadcast_param(b, zw, vw, 0, 0);
  Val weights = centred(b, vw, zw);
  return on_conv(b, centred(b, vx, zx), weights);
}

void build_convinteger(Build *b) {
  want_bytes(b);
  b->out[0] = conv_i32(b, 0, 2, 1, 3);
}

void build_qlinearconv(Build *b) {
  bool last = on_int(b, "channels_last", 0) != 0;
  if (last) b->in[0] = on_channels(b, on_in(b, 0), true);
  Val acc = conv_i32(b, 0, 2, 3, 5), sw = on_in(b, 4);
  if (on_has(b, 8)) acc = mk_add(b->g, acc, broadcast_param(b, b->in[8], acc, 1, 0));
  Val sx = scalar(b, on_in(b, 1)), so = scalar(b, on_in(b, 6)), zero = on_opt(b, 7);
  Val r = rescaled(b, acc, sx, broadcast_param(b, sw, acc, 1, 0), so);
  b->out[0] = rounded_out(b, r, zero ? scalar(b, zero) : 0);
  if (last) b->out[0] = on_channels(b, b->out[0], false);
}

/* The bias is i32 in the scale of the product. Without an output scale the result is f32. */
void build_qgemm(Build *b) {
  Val x = left_centred(b, 0, 2), y = on_in(b, 3), zy = on_opt(b, 5), sy = on_in(b, 4);
  bool by_row = on_int(b, "transB", 0) != 0;
  if (zy) zy = broadcast_param(b, zy, y, by_row ? 0 : 1, 0);
  Val acc = on_gemm(b, x, centred(b, y, zy));
  if (on_has(b, 6)) acc = mk_add(b->g, acc, b->in[6]);
  Val so = on_has(b, 7) ? scalar(b, b->in[7]) : 0, zero = on_opt(b, 8);
  Val scale = per_column(b, sy);
  Val r = rescaled(b, acc, scalar(b, on_in(b, 1)), scale, so);
  double alpha = on_float(b, "alpha", 1);
  if (alpha != 1) r = mk_mulk(b->g, r, alpha);
  b->out[0] = so ? rounded_out(b, r, zero ? scalar(b, zero) : 0) : r;
}

/* ---- operators of com.microsoft on dequantized operands ---- */

/* Quantizes f32 to the output of the operator, with scalar scale and zero point. */
static Val to_output(Build *b, Val x, u32 scale, u32 zero, DType otherwise) {
  Val s = scalar(b, on_in(b, scale)), z = on_opt(b, zero);
  if (z) {
    otherwise = on_dtype(b, z);
    z = scalar(b, z);
  }
  return quantized(b, mk_div(b->g, x, mk_cast(b->g, s, DT_f32)), z, otherwise, true);
}

/* Dequantizes operand q; scale and zero point are the next two inputs. */
static Val real_input(Build *b, u32 q) {
  Val x = on_in(b, q), scale = on_in(b, q + 1), zero = on_opt(b, q + 2);
  if (zero) zero = scalar(b, zero);
  return dequantized(b, x, scalar(b, scale), zero);
}

void build_qlinearbinary(Build *b) {
  Val other = real_input(b, 3);
  Val r = mk_map2(b->g, (Op)b->arg, real_input(b, 0), other);
  b->out[0] = to_output(b, r, 6, 7, on_dtype(b, b->in[0]));
}

void build_qlinearsigmoid(Build *b) {
  b->out[0] = to_output(b, compose_sigmoid(b->g, real_input(b, 0)), 3, 4, on_dtype(b, b->in[0]));
}

void build_qlinearleakyrelu(Build *b) {
  Val x = real_input(b, 0), slope = mk_like(b->g, x, on_float(b, "alpha", 0.01f));
  b->out[0] = to_output(b, compose_leaky_relu(b->g, x, slope), 3, 4, on_dtype(b, b->in[0]));
}

void build_qlinearpool(Build *b) {
  bool last = on_int(b, "channels_last", 0) != 0;
  Val x = real_input(b, 0);
  if (last) x = on_channels(b, x, true);
  x = b->arg ? on_global_average(b, x) : on_average_pool(b, x);
  if (last) x = on_channels(b, x, false);
  b->out[0] = to_output(b, x, 3, 4, on_dtype(b, b->in[0]));
}

/* Inputs: scale and zero point of the result, then triples. */
void build_qlinearconcat(Build *b) {
  u32 n = b->nin < 2 ? 0 : (b->nin - 2) / 3;
  if (!n || b->nin != 2 + 3 * n) on_bad(b, "there are %u inputs, expected 2 and triples", b->nin);
  Val *part = NEWS(&b->c->scratch, Val, n);
  for (u32 i = 0; i < n; i++) part[i] = to_output(b, real_input(b, 2 + 3 * i), 0, 1, DT_u8);
  b->out[0] = mk_concat(b->g, part, n, on_axis(b, on_int(b, "axis", 0), on_rank(b, part[0])));
}

void build_qlinearsoftmax(Build *b) {
  Val x = real_input(b, 0);
  i64 axes[MAX_RANK];
  u32 n = axes_from(b->g, x, on_axis_of(b, x, -1), axes);
  if (on_int(b, "opset", 13) >= 13) n = 1; /* before opset 13, all axes from there on together */
  b->out[0] = to_output(b, compose_softmax(b->g, x, axes, n), 3, 4, on_dtype(b, b->in[0]));
}

void build_qlinearwhere(Build *b) {
  Val x = to_output(b, real_input(b, 1), 7, 8, on_dtype(b, on_in(b, 1)));
  Val y = to_output(b, real_input(b, 4), 7, 8, on_dtype(b, on_in(b, 4)));
  b->out[0] = mk_select(b->g, on_in(b, 0), x, y);
}

void build_qlinearreducemean(Build *b) {
  Val x = real_input(b, 0);
  i64 axes[MAX_RANK];
  i32 n = on_ints(b, "axes", axes, MAX_RANK);
  if (n <= 0) n = (i32)axes_from(b->g, x, 0, axes);
  on_axes(b, axes, (u32)n, on_rank(b, x));
  Val y = mk_mean(b->g, x, axes, (u32)n, on_int(b, "keepdims", 1) != 0);
  b->out[0] = to_output(b, y, 3, 4, on_dtype(b, b->in[0]));
}

/* ---- products whose result is a float ---- */

static void add_bias_to(Build *b, Val y, u32 bias) {
  if (on_has(b, bias)) y = mk_add(b->g, y, mk_cast(b->g, b->in[bias], on_dtype(b, y)));
  b->out[0] = y;
}

void build_matmulintegertofloat(Build *b) {
  Val w = right_centred(b, 1, 5);
  Val acc = mk_matmul(b->g, left_centred(b, 0, 4), w);
  Val scale = per_column(b, on_in(b, 3));
  Val y = rescaled(b, acc, per_column(b, on_in(b, 2)), scale, 0);
  add_bias_to(b, mk_cast(b->g, y, on_dtype(b, b->in[2])), 6);
}

Val on_dynamic_product(Build *b, Val x, Val w, Val w_scale, Val w_zero) {
  Val scale, point, q = dynamic_u8(b, x, &scale, &point);
  w = centred(b, w, w_zero ? per_column(b, w_zero) : 0);
  Val acc = mk_matmul(b->g, centred(b, q, point), w);
  return rescaled(b, acc, scale, per_column(b, w_scale), 0);
}

void build_dynamicquantizematmul(Build *b) {
  Val y = on_dynamic_product(b, on_in(b, 0), on_in(b, 1), on_in(b, 2), on_opt(b, 3));
  add_bias_to(b, y, 4);
}

/* input, weight, bias, scales of both, mask, zero points of both, past */
void build_qattention(Build *b) {
  Val w = right_centred(b, 1, 7);
  Val acc = mk_matmul(b->g, left_centred(b, 0, 6), w);
  Val scale = per_column(b, on_in(b, 4));
  Val x = rescaled(b, acc, scalar(b, on_in(b, 3)), scale, 0);
  x = mk_add(b->g, x, mk_cast(b->g, on_in(b, 2), DT_f32));
  on_projected_attention(b, x, 5, 8, UINT32_MAX, on_dtype(b, b->in[2]));
}

/* ---- packed group-quantized weights ---- */

enum { ACCURACY_INT8 = 4 }; /* MatMulNBits accuracy_level that allows int8 activations */

static i64 packed_bits(Build *b) {
  i64 bits = on_int(b, "bits", 4);
  if (bits != 2 && bits != 4 && bits != 8)
    on_unsupported(b, "attribute bits is %lld, expected 2, 4 or 8", (long long)bits);
  return bits;
}

/* u8 [..., n] to u8 [..., n * 8 / bits], low bits first. */
static Val unpacked(Build *b, Val x, i64 bits) {
  Graph *g = b->g;
  i64 per = 8 / bits;
  Type t = *on_type(b, x);
  if (per == 1) return x;
  if (t.dt != DT_u8) on_bad(b, "packed values have type %s, expected u8", dtype_info[t.dt].name);
  Val shift = mk_cast(g, mk_mulk(g, mk_iota(g, DT_i32, &per, 1, 0), (double)bits), DT_u8);
  Val y = mk_shr(g, mk_unsqueeze(g, x, t.rank), shift);
  y = mk_and(g, y, mk_like(g, y, (double)((1 << bits) - 1)));
  Dim dim[MAX_RANK];
  for (u32 i = 0; i < t.rank; i++) dim[i] = t.dim[i];
  dim[t.rank - 1] = dim_mul(b->ds, dim[t.rank - 1], per);
  return mk_reshape(g, y, dim, t.rank);
}

/* Zero points [rows, groups] as floats: packed, plain, or the middle of the range. */
static Val block_zeros(Build *b, Val zero, Val like, i64 rows, i64 blocks, i64 bits) {
  Graph *g = b->g;
  if (!zero) return mk_like(g, like, (double)(1 << (bits - 1)));
  Dim shape[2] = {rows, 0}, all[2] = {rows, blocks};
  if (on_dtype(b, zero) == DT_u8) {
    shape[1] = (blocks * bits + 7) / 8;
    zero = mk_slice_axis(g, unpacked(b, mk_reshape(g, zero, shape, 2), bits), 1, 0, blocks);
  }
  return mk_cast(g, mk_reshape(g, zero, all, 2), on_dtype(b, like));
}

/* A constant of n elements; NULL: not constant, or another size. */
static const Tensor *known(Build *b, Val v, u64 n) {
  const Tensor *t = v ? graph_const(b->g, v) : NULL;
  return t && t->n == n ? t : NULL;
}

static u32 code_at(const u8 *at, i64 i, i64 bits) {
  return bits == 8 ? at[i] : at[i / 2] >> (i % 2 * 4) & 15;
}

/* Zero point of a group, as a code. */
static float zero_at(const Tensor *zero, i64 row, i64 block, i64 blocks, i64 bits) {
  i64 bytes = (blocks * bits + 7) / 8;
  if (!zero) return (float)(1 << (bits - 1));
  if (zero->dt != DT_u8) return (float)tensor_get(zero, (u64)(row * blocks + block)).f;
  return (float)code_at((const u8 *)zero->data + row * bytes, block, bits);
}

/* Weights of MatMulNBits as rows that stay packed; 0: not possible. */
static Val packed_weights(Build *b, i64 n, i64 k, i64 block, i64 bits) {
  i64 blocks = (k + block - 1) / block, bytes = block * bits / 8, zbytes = (blocks * bits + 7) / 8;
  Val zero = on_opt(b, 3);
  bool exact = on_int(b, "accuracy_level", 0) != ACCURACY_INT8;
  if (!packed_fits(n, k, block, bits, exact) || on_has(b, 4)) return 0;
  const Tensor *w = known(b, on_in(b, 1), (u64)(n * blocks * bytes)),
               *s = known(b, on_in(b, 2), (u64)(n * blocks)), *z = NULL;
  if (zero) z = known(b, zero, (u64)(n * (on_dtype(b, zero) == DT_u8 ? zbytes : blocks)));
  if (!w || w->dt != DT_u8 || !s || !dtype_is_float(s->dt) || (zero && !z)) return 0;
  if (z && z->dt != DT_u8 && !dtype_is_float(z->dt)) return 0;
  PackedRows p = packed_new(b->g->c, n, k, bits);
  for (i64 r = 0; r < n; r++)
    for (i64 i = 0; i < k; i++) {
      const u8 *row = (const u8 *)w->data + (r * blocks + i / block) * bytes;
      p.code[r * k + i] = (u8)code_at(row, i % block, bits);
      if (i % QBLOCK_X) continue;
      p.scale[(r * k + i) / QBLOCK_X] = (float)tensor_get(s, (u64)(r * blocks + i / block)).f;
      p.zero[(r * k + i) / QBLOCK_X] = zero_at(z, r, i / block, blocks, bits);
    }
  return packed_value(b->g, &p, exact);
}

/* y = x . w', w [N, groups, bytes] packed along K, with a scale and zero point per group. */
void build_matmulnbits(Build *b) {
  Graph *g = b->g;
  Val x = on_wide(b, 0), zero = on_opt(b, 3);
  i64 n = on_int(b, "N", 0), k = on_int(b, "K", 0), block = on_int(b, "block_size", 0),
      bits = packed_bits(b);
  if (n < 1 || k < 1 || block < 1 || n > INT32_MAX || k > INT32_MAX || block > INT32_MAX)
    on_bad(b, "N, K and block_size are %lld, %lld and %lld, expected positive numbers below 2^31",
           (long long)n, (long long)k, (long long)block);
  if (on_int(b, "weight_prepacked", 0))
    on_unsupported(b, "weight_prepacked is not 0, so the weights have the layout of one machine");
  g->rounds = g->rounds || on_int(b, "accuracy_level", 0) == ACCURACY_INT8;
  Val rows = on_dtype(b, x) == DT_f32 ? packed_weights(b, n, k, block, bits) : 0;
  if (rows) {
    Val y = mk_matmul(g, x, mk_transpose(g, rows, (const i64[]){1, 0}));
    if (on_has(b, 5)) y = mk_add(g, y, mk_cast(g, b->in[5], on_dtype(b, y)));
    on_set_output(b, y);
    return;
  }
  i64 blocks = (k + block - 1) / block;
  Dim packed[2] = {n, blocks * (block * bits / 8)}, cut[3] = {n, blocks, block},
      row[2] = {n, blocks * block};
  Val w = mk_reshape(g, unpacked(b, mk_reshape(g, on_in(b, 1), packed, 2), bits), cut, 3);
  Dim all[2] = {n, blocks}, each[3] = {n, blocks, 1};
  w = mk_cast(g, w, on_dtype(b, x));
  zero = block_zeros(b, zero, w, n, blocks, bits);
  Val scale = mk_cast(g, mk_reshape(g, on_in(b, 2), all, 2), on_dtype(b, x));
  if (on_has(b, 4)) { /* g_idx: the group of each column */
    Val of = on_index(b, mk_slice_axis(g, b->in[4], 0, 0, k), blocks);
    w = mk_slice_axis(g, mk_reshape(g, w, row, 2), 1, 0, k);
    if (on_rank(b, zero)) on_unsupported(b, "g_idx together with zero points");
    Val by = mk_gather(g, scale, of, 1);
    w = mk_mul(g, mk_sub(g, w, zero), by);
  } else {
    if (on_rank(b, zero)) zero = mk_reshape(g, zero, each, 3);
    Val by = mk_reshape(g, scale, each, 3);
    w = mk_mul(g, mk_sub(g, w, zero), by);
    w = mk_slice_axis(g, mk_reshape(g, w, row, 2), 1, 0, k);
  }
  Val y = mk_matmul(g, x, mk_transpose(g, w, (const i64[]){1, 0}));
  if (on_has(b, 5)) y = mk_add(g, y, mk_cast(g, b->in[5], on_dtype(b, y)));
  on_set_output(b, y);
}

/* Values of codes 0 to 15 relative to the largest magnitude of a group. */
static const float bnb4_values[2][16] = {
    {0, 0x1.555556p-8f, 0x1.555556p-1f, 1, 0x1.555556p-2f, 0.5f, 0x1.555556p-3f, 0.25f, -0.0f,
     -0x1.555556p-8f, -0x1.555556p-1f, -1, -0x1.555556p-2f, -0.5f, -0x1.555556p-3f, -0.25f},
    {-1, -0x1.647362p-1f, -0x1.0cd660p-1f, -0x1.946540p-2f, -0x1.23449ap-2f, -0x1.7a6a7ep-3f,
     -0x1.74f0e2p-4f, 0, 0x1.45f5fep-4f, 0x1.4995c6p-3f, 0x1.f809bap-3f, 0x1.5a0674p-2f,
     0x1.c34970p-2f, 0x1.200f56p-1f, 0x1.722766p-1f, 1}};

/* Weights [n, k] of MatMulBnb4. High bits first; groups cross rows. */
static Val bnb4_weights(Build *b, i64 n, i64 k, i64 block, bool nf4) {
  Graph *g = b->g;
  i64 all = n * k, bytes = (all + 1) / 2, blocks = (all + block - 1) / block;
  Dim cut[2] = {bytes, 1}, flat[1] = {2 * bytes}, shape[2] = {n, k};
  Val packed = on_in(b, 1), scale = on_wide(b, 2);
  if (on_dtype(b, packed) != DT_u8 || on_rank(b, packed) != 1 || on_rank(b, scale) != 1 ||
      on_static_dim(b, packed, 0) != bytes || on_static_dim(b, scale, 0) != blocks)
    on_bad(b, "expected weights u8[%lld] and scales [%lld]", (long long)bytes, (long long)blocks);
  Tensor *table = tensor_new(&b->c->work, DT_f32, (const i64[]){16}, 1);
  for (u32 i = 0; i < 16; i++) tensor_set(table, i, (Scalar){.f = (double)bnb4_values[nf4][i]});
  Val shift = mk_addk(g, mk_mulk(g, mk_iota(g, DT_i32, (const Dim[]){2}, 1, 0), -4), 4);
  shift = mk_cast(g, shift, DT_u8);
  Val code = mk_shr(g, mk_reshape(g, packed, cut, 2), shift);
  code = mk_reshape(g, mk_and(g, code, mk_like(g, code, 15)), flat, 1);
  Val values = mk_const(g, table), w = mk_gather(g, values, mk_cast(g, code, DT_i64), 0);
  Val at = mk_iota(g, DT_i64, &all, 1, 0);
  Val each = mk_gather(g, scale, mk_div(g, at, mk_scalar(g, DT_i64, (double)block)), 0);
  w = mk_mul(g, mk_cast(g, mk_slice_axis(g, w, 0, 0, all), on_dtype(b, each)), each);
  return mk_reshape(g, w, shape, 2);
}

/* y = x . w', or x . w with transB = 0. */
void build_matmulbnb4(Build *b) {
  Val x = on_wide(b, 0);
  i64 n = on_int(b, "N", 0), k = on_int(b, "K", 0), block = on_int(b, "block_size", 0),
      kind = on_int(b, "quant_type", -1);
  if (n < 1 || k < 1 || n > INT32_MAX || k > INT32_MAX)
    on_bad(b, "N is %lld and K is %lld, expected 1 to 2^31-1", (long long)n, (long long)k);
  if (block < 16 || block > INT32_MAX || (block & (block - 1)))
    on_bad(b, "block_size is %lld, expected a power of 2 from 16 on", (long long)block);
  if (kind != 0 && kind != 1)
    on_bad(b, "quant_type is %lld, expected 0 (FP4) or 1 (NF4)", (long long)kind);
  Val w = bnb4_weights(b, n, k, block, kind == 1);
  if (on_int(b, "transB", 1)) w = mk_transpose(b->g, w, (const i64[]){1, 0});
  on_set_output(b, mk_matmul(b->g, x, mk_cast(b->g, w, on_dtype(b, x))));
}

/* Gathers rows of a group-quantized table; u8 holds several values along the last axis. */
void build_gatherblockquantized(Build *b) {
  Graph *g = b->g;
  Val data = on_in(b, 0), scale = on_in(b, 2), zero = on_opt(b, 3);
  i64 bits = packed_bits(b), block = on_int(b, "block_size", 128);
  bool packed = on_dtype(b, data) == DT_u8;
  if (!packed && !dtype_is_int(on_dtype(b, data)))
    on_unsupported(b, "the data have type %s, expected an integer type",
                   dtype_info[on_dtype(b, data)].name);
  if (block < 1) on_unsupported(b, "block_size is %lld, expected 1 or more", (long long)block);
  if (packed) data = unpacked(b, data, bits);
  Type t = *on_type(b, data), ts = *on_type(b, scale);
  u32 at = on_axis(b, on_int(b, "quantize_axis", 1), t.rank),
      from = on_axis(b, on_int(b, "gather_axis", 0), t.rank);
  if (ts.rank != t.rank) on_bad(b, "scales have rank %u, but data have rank %u", ts.rank, t.rank);
  if (zero && packed)
    zero = mk_slice_axis(g, unpacked(b, zero, bits), t.rank - 1, 0, ts.dim[t.rank - 1]);
  Val x = mk_cast(g, data, DT_i32);
  if (zero)
    x = mk_sub(g, x, mk_cast(g, spread_blocks(b, zero, &t, at, block), DT_i32));
  else if (packed)
    x = mk_addk(g, x, -(double)(1 << (bits - 1)));
  scale = spread_blocks(b, mk_cast(g, scale, DT_f32), &t, at, block);
  Val y = mk_mul(g, mk_cast(g, x, DT_f32), scale);
  b->out[0] = mk_cast(g, mk_gather(g, y, on_index(b, on_in(b, 1), t.dim[from]), from), ts.dt);
}
