/* tflite_ops_quant.c: operators that change the stored type. */
#include "front/tflite/tflite_import.h"

/* i32 with a scale counts as quantized for these operators. */
static Val number_of(LiteNode *b) {
  const LiteTensor *t = lite_operand(b, 0);
  if (t->dt != DT_i32 || !t->q.n) return lite_real(b, 0);
  Val x = mk_cast(b->g, lite_sub_zero_point(b, lite_in(b, 0), t), DT_f32);
  return mk_mul(b->g, x, lite_scale(b, t, t->q.axis, lite_rank(b, x)));
}

void lite_quantize(LiteNode *b) {
  const LiteTensor *x = lite_operand(b, 0), *out = lite_result(b, 0);
  bool wide = out->dt == DT_i32 && out->q.n == 1 && out->q.scale[0] > 0;
  if (!lite_is_quant(out) && !wide)
    lite_unsupported(b, "the target type has no scale, which is not supported");
  if (lite_is_linear(b, 1) || (wide && lite_is_quant(x) && x->q.n == 1)) {
    Val q = lite_sub_zero_point(b, lite_in(b, 0), x);
    if (x->q.scale[0] != out->q.scale[0]) q = lite_mul_quantized1(b, q, lite_ratio(b, 0));
    lite_set_stored(b, 0, lite_stored(b, q, out, LA_none));
  } else {
    lite_set_stored(b, 0, lite_quantized(b, number_of(b), out));
  }
}

void lite_dequantize(LiteNode *b) {
  lite_set_stored(b, 0, mk_cast(b->g, number_of(b), lite_result(b, 0)->dt));
}

/* Sparse constants were expanded when they were read. */
void lite_densify(LiteNode *b) {
  lite_set_stored(b, 0, lite_in(b, 0));
}

/* Converts stored values, ignoring scales. */
void lite_cast(LiteNode *b) {
  Val x = lite_in(b, 0);
  DType to = lite_result(b, 0)->dt, from = lite_dt(b, x);
  if (!to || dtype_info[to].cls == 'C' || dtype_info[from].cls == 'C' || to == DT_str ||
      from == DT_str)
    lite_unsupported(b, "a cast from %s to type %d is not supported", dtype_info[from].name,
                     lite_result(b, 0)->code);
  if (to == DT_bool && from != DT_bool)
    lite_set_stored(b, 0, mk_ne(b->g, x, mk_like(b->g, x, 0)));
  else
    lite_set_stored(b, 0, mk_cast(b->g, x, to));
}

/* Reinterprets bits as another type of the same width. */
void lite_bitcast(LiteNode *b) {
  Val x = lite_in(b, 0);
  DType to = lite_result(b, 0)->dt, from = lite_dt(b, x);
  if (!to || dtype_bytes(to) != dtype_bytes(from) || to == DT_bool || dtype_info[to].bits < 8)
    lite_unsupported(b, "a bitcast from %s to type %d is not supported", dtype_info[from].name,
                     lite_result(b, 0)->code);
  Attr at = {.key = AT_to, .kind = AK_dtype, .u.i = to};
  if (to != from) x = mk_node(b->g, OP_bitcast, &x, 1, &at, 1);
  lite_set_stored(b, 0, x);
}
