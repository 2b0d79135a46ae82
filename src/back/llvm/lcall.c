/* lcall.c: operations done by functions of eval.c.
 *
 * In: an operation, conversion or random number, with one or more lanes. Out: one call of
 * llvm_runtime_call per lane, with all numbers as 64 bits and floats as double. So every operator
 * has the bits of the interpreter. Object files cannot call it; they refuse such operations by
 * name. */
#include "back/llvm/llvm.h"

#include <string.h>

static Scalar scalar_of(u64 bits, DType dt) {
  Scalar x = {.i = (i64)bits};
  if (dtype_is_float(dt)) memcpy(&x.f, &bits, sizeof bits);
  return x;
}

static u64 bits_of(Scalar x, DType dt) {
  u64 bits = (u64)x.i;
  if (dtype_is_float(dt)) memcpy(&bits, &x.f, sizeof bits);
  return bits;
}

/* Fields of code from the lowest bit: kind 4, operator 8, types 8 each, flag 4, math 4. */
u64 llvm_runtime_call(u64 code, u64 a, u64 b, u64 c) {
  Op op = (Op)(code >> 4 & 255);
  DType from = (DType)(code >> 12 & 255), to = (DType)(code >> 20 & 255);
  MathMode math = (MathMode)(code >> 32 & 15);
  bool flag = code >> 28 & 1;
  Scalar arg[3] = {scalar_of(a, from), scalar_of(b, from), scalar_of(c, from)}, x = {.i = 0};
  u8 raw[8] = {0};
  switch ((CallKind)(code & 15)) {
  case CK_op: return bits_of(scalar_eval_as(math, op, from, arg), to);
  case CK_cast: return bits_of(scalar_cast(from, to, arg[0], flag), to);
  case CK_decode: memcpy(raw, &a, sizeof raw); return bits_of(scalar_load(from, raw), from);
  case CK_encode:
    scalar_store(from, raw, arg[0]);
    memcpy(&a, raw, sizeof raw);
    return a;
  default: x.f = random_unit(to, a, b, c); return bits_of(x, to);
  }
}

static LVal widen(LlvmGen *g, LVal x, DType dt, bool raw) {
  if (raw || !dtype_is_float(dt)) {
    if (!raw && lt_bits(dt) == 64) return x;
    bool is_signed = !raw && dtype_is_signed(dt);
    return lv_cast(g, is_signed ? LLVMSExt : LLVMZExt, x, lt_int(g, 64));
  }
  if (dt != DT_f64) x = lv_cast(g, LLVMFPExt, x, lt_real(g, true));
  return lv_cast(g, LLVMBitCast, x, lt_int(g, 64));
}

static LVal narrow(LlvmGen *g, LVal x, DType dt, bool raw) {
  u32 bits = raw ? 8 * dtype_bytes(dt) : lt_bits(dt);
  if (raw || !dtype_is_float(dt)) return bits == 64 ? x : lv_cast(g, LLVMTrunc, x, lt_int(g, bits));
  x = lv_cast(g, LLVMBitCast, x, lt_real(g, true));
  return dt == DT_f64 ? x : lv_cast(g, LLVMFPTrunc, x, lt_real(g, false));
}

static const char *name_of(RuntimeCall f) {
  return f.kind == CK_op     ? op_info[f.op].name
         : f.kind == CK_cast ? dtype_info[f.to].name
                             : dtype_info[f.from].name;
}

static LVal call_one(LlvmGen *g, RuntimeCall f, const LVal *arg, u32 n) {
  LType word = lt_int(g, 64), params[4] = {word, word, word, word};
  LType type = g->l->LLVMFunctionType(word, params, 4, 0);
  LVal fn = g->l->LLVMGetNamedFunction(g->unit->module, RUNTIME_CALL_NAME), args[4];
  if (!fn) fn = lv_function(g, RUNTIME_CALL_NAME, type);
  u64 code = (u64)f.kind | (u64)f.op << 4 | (u64)f.from << 12 | (u64)f.to << 20 |
             (u64)f.flag << 28 | (u64)g->p->math << 32;
  args[0] = lv_int(g, 64, 1, (i64)code);
  for (u32 i = 0; i < 3; i++) {
    bool plain = f.kind == CK_random;
    args[i + 1] = i >= n  ? lv_int(g, 64, 1, 0)
                  : plain ? arg[i]
                          : widen(g, arg[i], f.from, f.kind == CK_decode);
  }
  LVal r = g->l->LLVMBuildCall2(g->unit->builder, type, fn, args, 4, "");
  return narrow(g, r, f.kind == CK_decode ? f.from : f.to, f.kind == CK_encode);
}

LVal gen_call(LlvmGen *g, RuntimeCall f, const LVal *arg, u32 n, u32 lanes) {
  if (g->o->object)
    fail(g->c, ERR_unsupported, g->c->here,
         "LLVM object code does not support %s; build it without --backend llvm", name_of(f));
  if (lanes == 1) return call_one(g, f, arg, n);
  LVal all = NULL, one[3];
  for (u32 i = 0; i < lanes; i++) {
    for (u32 k = 0; k < n; k++) one[k] = lv_lane(g, arg[k], i);
    LVal x = call_one(g, f, one, n);
    if (!i) all = g->l->LLVMGetUndef(lt_lanes(g, g->l->LLVMTypeOf(x), lanes));
    all = lv_put_lane(g, all, x, i);
  }
  return all;
}
