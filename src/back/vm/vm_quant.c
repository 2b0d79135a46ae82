/* vm_quant.c: quantization as single instructions.
 *
 * In: an expression. Out: its value, if it matches one of three forms: an integer converted and
 * scaled (`dequant`), a float rounded and saturated to a narrow type (`quant_f`), or both after an
 * addition (`quant`), the epilogue of int8 products. The instructions are bit-exact with the
 * separate operators. Adding a zero point of 0 changes nothing. */
#include "back/vm/vm_build.h"

static const Expr *op_of(VmBuild *b, ExprId id, Op op, DType dt) {
  const Expr *e = prog_expr(b->p, id);
  return e->kind == EX_op && e->op == op && e->dt == dt ? e : NULL;
}

/* Is it equal in all lanes? */
static bool is_uniform(VmBuild *b, ExprId id) {
  const Expr *e = prog_expr(b->p, id);
  return (e->lanes == 1 || e->kind == EX_splat) && !row_depends(b, id);
}

/* float(int) * scale, in either order. */
static bool is_scaled(VmBuild *b, const Expr *mul, ExprId *whole, ExprId *scale) {
  for (u32 i = 0; i < 2; i++) {
    const Expr *cast = op_of(b, mul->arg[i], OP_cast, DT_f32);
    *whole = cast ? cast->arg[0] : 0;
    *scale = mul->arg[1 - i];
    if (*whole && vm_class(prog_expr(b->p, *whole)->dt) == VC_w) return true;
  }
  return false;
}

static VmVal zero(VmBuild *b, DType dt) {
  return vb_constant(b, dt, (Scalar){.i = 0});
}

static bool dequantize(VmBuild *b, const Expr *e, VmVal *out) {
  ExprId whole, scale;
  if (!is_scaled(b, e, &whole, &scale) || !is_uniform(b, scale)) return false;
  if (is_uniform(b, whole)) return false;
  const Expr *sub = op_of(b, whole, OP_sub, DT_i32);
  if (sub && !is_uniform(b, sub->arg[1])) sub = NULL;
  VmVal x = vb_compile(b, sub ? sub->arg[0] : whole),
        k = sub ? vb_compile(b, sub->arg[1]) : zero(b, DT_i32), by = vb_compile(b, scale);
  *out = emit_pure(b, VM_dequant, x.lanes, VC_f, (VmVal[]){x, k, by}, 3);
  return true;
}

/* round(float(sum) * scale) + z */
static bool quantize_sum(VmBuild *b, ExprId value, VmVal z, DType to, VmVal *out) {
  const Expr *mul = op_of(b, value, OP_mul, DT_f32);
  ExprId whole, scale;
  if (!mul || !is_scaled(b, mul, &whole, &scale)) return false;
  const Expr *add = op_of(b, whole, OP_add, DT_i32);
  VmVal x = vb_compile(b, add ? add->arg[0] : whole),
        y = add ? vb_compile(b, add->arg[1]) : zero(b, DT_i32), by = vb_compile(b, scale);
  u32 lanes = x.lanes != 1 ? x.lanes : y.lanes != 1 ? y.lanes : by.lanes;
  x = widen_val(b, x, VC_w, lanes);
  y = widen_val(b, y, VC_w, lanes);
  by = widen_val(b, by, VC_f, lanes);
  *out = emit_typed(b, VM_quant, lanes, VC_w, (VmVal[]){x, y, by, z}, 4, to);
  return true;
}

bool vm_quantize(VmBuild *b, const Expr *e, VmVal *out) {
  if (e->op == OP_mul && e->dt == DT_f32) return dequantize(b, e, out);
  ExprId point, value = ex_quantized(b->p, e, &point);
  if (!value || (point && !is_uniform(b, point))) return false;
  VmVal z = point ? vb_compile(b, point) : zero(b, DT_f32);
  if (quantize_sum(b, value, z, e->dt, out)) return true;
  VmVal x = vb_compile(b, value);
  *out = emit_typed(b, VM_quant_f, x.lanes, VC_w, (VmVal[]){x, z}, 2, e->dt);
  return true;
}
