/* vm_quant.c: quantization as single instructions.
 *
 * In: an expression. Out: its value, if it matches one of three forms: an integer converted and
 * scaled (`dequant`), a float rounded and saturated to a narrow type (`quant_f`), or both after an
 * addition (`quant`), the epilogue of int8 products. The instructions are bit-exact with the
 * separate operators. Adding a zero point of 0 changes nothing. */
#include "back/vm/vm_build.h"

static u32 latest(u32 a, u32 b) {
  return a > b ? a : b;
}

static const Expr *op_of(VmBuild *b, ExprId id, Op op, DType dt) {
  const Expr *e = prog_expr(b->p, id);
  return e->kind == EX_op && e->op == op && e->dt == dt ? e : NULL;
}

/* Is it equal in all lanes? */
static bool is_uniform(VmBuild *b, ExprId id) {
  const Expr *e = prog_expr(b->p, id);
  return (e->lanes == 1 || e->kind == EX_splat) && !row_depends(b, id);
}

/* The operand of an int to float cast; 0: something else. */
static ExprId integer_of(VmBuild *b, ExprId id) {
  const Expr *e = op_of(b, id, OP_cast, DT_f32);
  return e && vm_class(prog_expr(b->p, e->arg[0])->dt) == VC_w ? e->arg[0] : 0;
}

/* float(int) * scale, in either order. */
static bool is_scaled(VmBuild *b, const Expr *mul, ExprId *whole, ExprId *scale) {
  for (u32 i = 0; i < 2; i++) {
    *whole = integer_of(b, mul->arg[i]);
    *scale = mul->arg[1 - i];
    if (*whole) return true;
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
  u32 avail = latest(latest(x.avail, k.avail), by.avail);
  *out = emit_pure(b, VM_dequant, x.lanes, VC_f, avail, (u32[]){x.reg, k.reg, by.reg}, 3);
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
  u32 avail = latest(latest(latest(x.avail, y.avail), by.avail), z.avail);
  u32 lanes = x.lanes != 1 ? x.lanes : y.lanes != 1 ? y.lanes : by.lanes;
  x = widen_val(b, x, VC_w, lanes);
  y = widen_val(b, y, VC_w, lanes);
  by = widen_val(b, by, VC_f, lanes);
  *out = emit_pure(b, VM_quant, lanes, VC_w, avail, (u32[]){x.reg, y.reg, by.reg, z.reg, to}, 5);
  return true;
}

static bool quantize(VmBuild *b, const Expr *e, VmVal *out) {
  if (!vm_is_narrow(e->dt) || !e->sat) return false;
  const Expr *add = op_of(b, e->arg[0], OP_add, DT_f32);
  u32 side = add && op_of(b, add->arg[1], OP_round, DT_f32) ? 1 : 0;
  if (add && !is_uniform(b, add->arg[1 - side])) return false;
  const Expr *round = op_of(b, add ? add->arg[side] : e->arg[0], OP_round, DT_f32);
  if (!round) return false;
  VmVal z = add ? vb_compile(b, add->arg[1 - side]) : zero(b, DT_f32);
  if (quantize_sum(b, round->arg[0], z, e->dt, out)) return true;
  VmVal x = vb_compile(b, round->arg[0]);
  u32 avail = latest(x.avail, z.avail);
  *out = emit_pure(b, VM_quant_f, x.lanes, VC_w, avail, (u32[]){x.reg, z.reg, e->dt}, 3);
  return true;
}

bool vm_quantize(VmBuild *b, const Expr *e, VmVal *out) {
  if (e->op == OP_mul && e->dt == DT_f32) return dequantize(b, e, out);
  return e->op == OP_cast && prog_expr(b->p, e->arg[0])->dt == DT_f32 && quantize(b, e, out);
}
