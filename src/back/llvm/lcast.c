/* lcast.c: conversions between element types, with the bits that scalar_cast of eval.c gives. */
#include "back/llvm/llvm.h"

static bool is_wide(DType dt) {
  return dt == DT_f32 || dt == DT_f64;
}

LVal wrap_int(Gen *g, DType dt, LVal x, u32 lanes) {
  u32 bits = dtype_info[dt].bits, have = lt_bits(dt);
  if (dt == DT_bool || bits == have) return x;
  LVal by = lv_int(g, have, lanes, have - bits);
  if (!dtype_is_signed(dt)) return lv_bin(g, LLVMAnd, x, lv_int(g, have, lanes, (1 << bits) - 1));
  return lv_bin(g, LLVMAShr, lv_bin(g, LLVMShl, x, by), by);
}

/* To another number of bits: with the sign of its type, or without its upper bits. */
static LVal resize(Gen *g, DType from, DType to, LVal x, u32 lanes) {
  LType t = lt_value(g, to, lanes);
  u32 a = lt_bits(from), b = lt_bits(to);
  if (b > a) x = lv_cast(g, dtype_is_signed(from) ? LLVMSExt : LLVMZExt, x, t);
  if (b < a) x = lv_cast(g, LLVMTrunc, x, t);
  return wrap_int(g, to, x, lanes);
}

/* Limits of `to` that numbers of `from` can be beyond. */
static LVal clamp_int(Gen *g, DType from, DType to, LVal x, u32 lanes) {
  Scalar lo, hi, from_lo, from_hi;
  u32 bits = lt_bits(from);
  bool is_signed = dtype_is_signed(from);
  dtype_limits(to, &lo, &hi);
  dtype_limits(from, &from_lo, &from_hi);
  bool high = to != DT_u64 && (from == DT_u64 || from_hi.i > hi.i);
  bool low = is_signed && from_lo.i < (to == DT_u64 ? 0 : lo.i);
  if (high) {
    LVal k = lv_int(g, bits, lanes, hi.i);
    x = lv_pick(g, lv_icmp(g, is_signed ? LLVMIntSGT : LLVMIntUGT, x, k), k, x);
  }
  if (low) {
    LVal k = lv_int(g, bits, lanes, to == DT_u64 ? 0 : lo.i);
    x = lv_pick(g, lv_icmp(g, LLVMIntSLT, x, k), k, x);
  }
  return x;
}

/* A float of 8 and 16 bits' range meets the limits as a float; NaN becomes 0. */
static LVal clamp_float(Gen *g, DType to, LVal x, u32 lanes) {
  Scalar lo, hi;
  dtype_limits(to, &lo, &hi);
  LVal low = lv_real(g, false, lanes, (double)lo.i), high = lv_real(g, false, lanes, (double)hi.i);
  x = lv_pick(g, lv_fcmp(g, LLVMRealUNO, x, x), lv_real(g, false, lanes, 0), x);
  x = lv_pick(g, lv_fcmp(g, LLVMRealOLT, x, low), low, x);
  x = lv_pick(g, lv_fcmp(g, LLVMRealOGT, x, high), high, x);
  LVal r = lv_cast(g, LLVMFPToSI, x, lt_lanes(g, lt_int(g, 32), lanes));
  return lv_cast(g, LLVMTrunc, r, lt_value(g, to, lanes));
}

/* Truncates; NaN gives 0; stops at the ends of an integer of so many bits. */
static LVal to_int(Gen *g, LVal x, bool wide, bool is_signed, u32 bits, u32 lanes) {
  double lo = is_signed ? -(double)((u64)1 << (bits - 1)) : 0;
  double top = bits == 64 && !is_signed ? 0x1p64 : (double)((u64)1 << (bits - is_signed));
  LType t = lt_lanes(g, lt_int(g, bits), lanes);
  LVal zero = lv_real(g, wide, lanes, 0), least = lv_real(g, wide, lanes, lo);
  LVal over = lv_fcmp(g, LLVMRealOGE, x, lv_real(g, wide, lanes, top));
  LVal under = lv_fcmp(g, LLVMRealOLE, x, least);
  LVal out = lv_bin(g, LLVMOr, lv_fcmp(g, LLVMRealUNO, x, x), lv_bin(g, LLVMOr, over, under));
  LVal r = lv_cast(g, is_signed ? LLVMFPToSI : LLVMFPToUI, lv_pick(g, out, zero, x), t);
  i64 hi = is_signed ? (i64)(((u64)1 << (bits - 1)) - 1) : -1;
  r = lv_pick(g, over, lv_int(g, bits, lanes, hi), r);
  if (!is_signed) return r;
  return lv_pick(g, under, lv_int(g, bits, lanes, (i64)((u64)1 << (bits - 1))), r);
}

static LVal float_to_int(Gen *g, DType from, DType to, LVal x, u32 lanes, bool sat) {
  bool wide = from == DT_f64, is_signed = dtype_is_signed(to);
  u32 bits = dtype_info[to].bits;
  if (sat && !wide && bits <= 16) return clamp_float(g, to, x, lanes);
  if (sat && bits >= 32) return to_int(g, x, wide, is_signed, bits, lanes);
  if (sat) { /* of double: the limits of i32 hold all that the narrow ones do */
    LVal r = to_int(g, x, wide, true, 32, lanes);
    return resize(g, DT_i32, to, clamp_int(g, DT_i32, to, r, lanes), lanes);
  }
  if (to == DT_u64) { /* numbers below zero wrap as those of i64 do */
    LVal minus = to_int(g, x, wide, true, 64, lanes), plus = to_int(g, x, wide, false, 64, lanes);
    LVal below = lv_fcmp(g, LLVMRealOLT, x, lv_real(g, wide, lanes, 0));
    return lv_pick(g, below, minus, plus);
  }
  return resize(g, DT_i64, to, to_int(g, x, wide, true, 64, lanes), lanes);
}

static LVal int_to_float(Gen *g, const Expr *x, DType from, LVal a) {
  DType to = x->dt;
  LVal r;
  if (!is_wide(to) && dtype_info[from].bits > 16)
    return gen_call(g, (Called){CK_cast, OP_cast, from, to, x->sat}, &a, 1, x->lanes);
  r = lv_cast(g, dtype_is_signed(from) ? LLVMSIToFP : LLVMUIToFP, a, lt_value(g, to, x->lanes));
  if (is_wide(to)) return r;
  if (dtype_is_half(to)) return round_float(g, to, r, x->lanes);
  return gen_call(g, (Called){CK_cast, OP_cast, DT_f32, to, x->sat}, &r, 1, x->lanes);
}

static LVal float_to_float(Gen *g, const Expr *x, DType from, LVal a) {
  DType to = x->dt;
  if (to == DT_f64) return lv_cast(g, LLVMFPExt, a, lt_value(g, to, x->lanes));
  if (to == DT_f32 && from != DT_f64) return a;
  if (to == DT_f32) return lv_cast(g, LLVMFPTrunc, a, lt_value(g, to, x->lanes));
  if (dtype_is_half(to) && from != DT_f64) return round_float(g, to, a, x->lanes);
  return gen_call(g, (Called){CK_cast, OP_cast, from, to, x->sat}, &a, 1, x->lanes);
}

LVal gen_cast(Gen *g, const Expr *x, LVal a) {
  DType from = prog_expr(g->p, x->arg[0])->dt, to = x->dt;
  bool ff = dtype_is_float(from), tf = dtype_is_float(to);
  u32 lanes = x->lanes;
  if (from == to) return a;
  if (to == DT_bool && ff) return lv_fcmp(g, LLVMRealUNE, a, lv_real(g, from == DT_f64, lanes, 0));
  if (to == DT_bool) return lv_icmp(g, LLVMIntNE, a, lv_int(g, lt_bits(from), lanes, 0));
  if (ff && tf) return float_to_float(g, x, from, a);
  if (ff) return float_to_int(g, from, to, a, lanes, x->sat);
  if (tf) return int_to_float(g, x, from, a);
  if (x->sat && from != DT_bool) a = clamp_int(g, from, to, a, lanes);
  return resize(g, from, to, a, lanes);
}

LVal gen_bitcast(Gen *g, const Expr *x, LVal a) {
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

/* The sum with 1.5 * 2^23 rounds to whole numbers. NaN becomes the lower bound, which is a byte of
 * 0 where there is no sign; else 0 is put in its place. See cvop.def. */
LVal gen_bytes(Gen *g, const Expr *x, LVal y, DType as, i64 k) {
  Scalar least, most;
  u32 lanes = x->lanes;
  dtype_limits(as, &least, &most);
  LVal lo = lv_real(g, false, lanes, (double)(least.i - k));
  LVal hi = lv_real(g, false, lanes, (double)(most.i - k)),
       magic = lv_real(g, false, lanes, 0x1.8p23);
  LVal is = dtype_is_signed(as) ? lv_fcmp(g, LLVMRealUNO, y, y) : NULL;
  LVal t = lv_pick(g, lv_fcmp(g, LLVMRealOGT, y, lo), y, lo);
  t = lv_bin(g, LLVMFAdd, lv_pick(g, lv_fcmp(g, LLVMRealOLT, t, hi), t, hi), magic);
  if (x->dt == DT_f32) {
    LVal r = lv_bin(g, LLVMFSub, t, magic);
    return is ? lv_pick(g, is, lv_real(g, false, lanes, (double)-k), r) : r;
  }
  i64 add = x->dt == DT_i16 ? 0 : k; /* numbers of 16 bits are less k */
  LVal r = lv_cast(g, LLVMBitCast, t, lt_lanes(g, lt_int(g, 32), lanes));
  r = lv_bin(g, LLVMAdd, r, lv_int(g, 32, lanes, add - 0x4b400000));
  if (is) r = lv_pick(g, is, lv_int(g, 32, lanes, add - k), r);
  return lv_cast(g, LLVMTrunc, r, lt_value(g, x->dt, lanes));
}
