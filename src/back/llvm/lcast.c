/* lcast.c: conversions between element types, bit-exact with scalar_cast of eval.c. */
#include "back/llvm/llvm.h"

LVal wrap_int(LlvmGen *g, DType dt, LVal x, u32 lanes) {
  u32 bits = dtype_info[dt].bits, have = lt_bits(dt);
  if (dt == DT_bool || bits == have) return x;
  LVal by = lv_int(g, have, lanes, have - bits);
  if (!dtype_is_signed(dt)) return lv_bin(g, LLVMAnd, x, lv_int(g, have, lanes, (1 << bits) - 1));
  return lv_bin(g, LLVMAShr, lv_bin(g, LLVMShl, x, by), by);
}

/* Extends by the sign of its type, or truncates. */
static LVal resize(LlvmGen *g, DType from, DType to, LVal x, u32 lanes) {
  LType t = lt_value(g, to, lanes);
  u32 a = lt_bits(from), b = lt_bits(to);
  if (b > a) x = lv_cast(g, dtype_is_signed(from) ? LLVMSExt : LLVMZExt, x, t);
  if (b < a) x = lv_cast(g, LLVMTrunc, x, t);
  return wrap_int(g, to, x, lanes);
}

/* Truncates and saturates to an integer of this width; NaN gives 0. */
static LVal to_int(LlvmGen *g, LVal x, bool wide, bool is_signed, u32 bits, u32 lanes) {
  double lo = is_signed ? -(double)((u64)1 << (bits - 1)) : 0;
  double top = bits == 64 && !is_signed ? 0x1p64 : (double)((u64)1 << (bits - is_signed));
  LType t = lt_lanes(g, lt_int(g, bits), lanes);
  LVal zero = lv_real(g, wide, lanes, 0), min = lv_real(g, wide, lanes, lo);
  LVal over = lv_fcmp(g, LLVMRealOGE, x, lv_real(g, wide, lanes, top));
  LVal under = lv_fcmp(g, LLVMRealOLE, x, min);
  LVal out = lv_bin(g, LLVMOr, lv_fcmp(g, LLVMRealUNO, x, x), lv_bin(g, LLVMOr, over, under));
  LVal r = lv_cast(g, is_signed ? LLVMFPToSI : LLVMFPToUI, lv_select(g, out, zero, x), t);
  i64 hi = is_signed ? (i64)(((u64)1 << (bits - 1)) - 1) : -1;
  r = lv_select(g, over, lv_int(g, bits, lanes, hi), r);
  if (!is_signed) return r;
  return lv_select(g, under, lv_int(g, bits, lanes, (i64)((u64)1 << (bits - 1))), r);
}

/* prog_expand.c has replaced saturating casts to narrow integers. */
static LVal float_to_int(LlvmGen *g, const Expr *e, DType from, LVal x) {
  DType to = e->dt;
  bool wide = from == DT_f64, is_signed = dtype_is_signed(to);
  u32 bits = dtype_info[to].bits, lanes = e->lanes;
  if (e->small && to == DT_i32) return lv_cast(g, LLVMFPToSI, x, lt_value(g, to, lanes));
  if (e->sat) return to_int(g, x, wide, is_signed, bits, lanes);
  if (to == DT_u64) { /* negative numbers wrap like i64 */
    LVal minus = to_int(g, x, wide, true, 64, lanes), plus = to_int(g, x, wide, false, 64, lanes);
    LVal below = lv_fcmp(g, LLVMRealOLT, x, lv_real(g, wide, lanes, 0));
    return lv_select(g, below, minus, plus);
  }
  return resize(g, DT_i64, to, to_int(g, x, wide, true, 64, lanes), lanes);
}

static LVal int_to_float(LlvmGen *g, const Expr *x, DType from, LVal a) {
  DType to = x->dt;
  LVal r;
  if (!dtype_is_full_float(to) && dtype_info[from].bits > 16)
    return gen_call(g, (RuntimeCall){CK_cast, OP_cast, from, to, x->sat}, &a, 1, x->lanes);
  r = lv_cast(g, dtype_is_signed(from) ? LLVMSIToFP : LLVMUIToFP, a, lt_value(g, to, x->lanes));
  if (dtype_is_full_float(to)) return r;
  if (dtype_is_half(to)) return llvm_round_float(g, to, r, x->lanes);
  return gen_call(g, (RuntimeCall){CK_cast, OP_cast, DT_f32, to, x->sat}, &r, 1, x->lanes);
}

static LVal float_to_float(LlvmGen *g, const Expr *x, DType from, LVal a) {
  DType to = x->dt;
  if (to == DT_f64) return lv_cast(g, LLVMFPExt, a, lt_value(g, to, x->lanes));
  if (to == DT_f32 && from != DT_f64) return a;
  if (to == DT_f32) return lv_cast(g, LLVMFPTrunc, a, lt_value(g, to, x->lanes));
  if (dtype_is_half(to) && from != DT_f64) return llvm_round_float(g, to, a, x->lanes);
  return gen_call(g, (RuntimeCall){CK_cast, OP_cast, from, to, x->sat}, &a, 1, x->lanes);
}

LVal gen_cast(LlvmGen *g, const Expr *x, LVal a) {
  DType from = prog_expr(g->p, x->arg[0])->dt, to = x->dt;
  bool ff = dtype_is_float(from), tf = dtype_is_float(to);
  u32 lanes = x->lanes;
  if (from == to) return a;
  if (to == DT_bool && ff) return lv_fcmp(g, LLVMRealUNE, a, lv_real(g, from == DT_f64, lanes, 0));
  if (to == DT_bool) return lv_icmp(g, LLVMIntNE, a, lv_int(g, lt_bits(from), lanes, 0));
  if (ff && tf) return float_to_float(g, x, from, a);
  if (ff) return float_to_int(g, x, from, a);
  if (tf) return int_to_float(g, x, from, a);
  return resize(g, from, to, a, lanes);
}

LVal gen_bitcast(LlvmGen *g, const Expr *x, LVal a) {
  DType from = prog_expr(g->p, x->arg[0])->dt, to = x->dt;
  u32 lanes = x->lanes;
  LType raw = lt_lanes(g, lt_int(g, 8 * dtype_bytes(from)), lanes);
  if (dtype_is_float(from))
    a = bits_of_float(g, from, a, lanes);
  else if (from == DT_bool)
    a = lv_cast(g, LLVMZExt, a, raw);
  if (dtype_is_float(to)) return float_of_bits(g, to, a, lanes);
  if (to == DT_bool) return lv_icmp(g, LLVMIntNE, a, lv_int(g, 8, lanes, 0));
  return wrap_int(g, to, a, lanes);
}
