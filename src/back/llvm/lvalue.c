/* lvalue.c: LLVM types, constants and instructions for values of a Prog. */
#include "back/llvm/llvm.h"

#include <stdio.h>
#include <string.h>

void lv_refuse(LlvmGen *g, const char *what) {
  fail(g->c, ERR_unsupported, g->c->here, "the LLVM back end does not support %s", what);
}

bool llvm_has_feature(const LlvmGen *g, const char *name) {
  size_t n = strlen(name);
  for (const char *at = g->features; (at = strstr(at, name)); at += n)
    if (at > g->features && at[-1] == '+' && (!at[n] || at[n] == ',')) return true;
  return false;
}

/* ---- types ---- */

LType lt_int(LlvmGen *g, u32 bits) {
  return g->l->LLVMIntTypeInContext(g->unit->context, bits);
}

LType lt_real(LlvmGen *g, bool wide) {
  LLVMContextRef c = g->unit->context;
  return wide ? g->l->LLVMDoubleTypeInContext(c) : g->l->LLVMFloatTypeInContext(c);
}

LType lt_lanes(LlvmGen *g, LType t, u32 lanes) {
  return lanes > 1 ? g->l->LLVMVectorType(t, lanes) : t;
}

u32 lt_bits(DType dt) {
  return dt == DT_bool ? 1 : 8 * dtype_bytes(dt);
}

LType lt_value(LlvmGen *g, DType dt, u32 lanes) {
  if (dtype_is_float(dt)) return lt_lanes(g, lt_real(g, dt == DT_f64), lanes);
  if (!dtype_is_int(dt) && dt != DT_bool) lv_refuse(g, dtype_info[dt].name);
  return lt_lanes(g, lt_int(g, lt_bits(dt)), lanes);
}

LType lt_memory(LlvmGen *g, DType dt, u32 lanes) {
  if (dtype_is_full_float(dt)) return lt_value(g, dt, lanes);
  if (!dtype_is_float(dt) && !dtype_is_int(dt) && dt != DT_bool) lv_refuse(g, dtype_info[dt].name);
  return lt_lanes(g, lt_int(g, 8 * dtype_bytes(dt)), lanes);
}

LType lt_pointer(LlvmGen *g, LType of) {
  return g->l->LLVMPointerType(of, 0);
}

LType lt_bytes(LlvmGen *g) {
  return lt_pointer(g, lt_int(g, 8));
}

/* ---- values ---- */

LVal lv_splat(LlvmGen *g, LVal x, u32 lanes) {
  if (lanes == 1) return x;
  LType t = lt_lanes(g, g->l->LLVMTypeOf(x), lanes), mask = lt_lanes(g, lt_int(g, 32), lanes);
  LVal none = g->l->LLVMGetUndef(t), first = lv_put_lane(g, none, x, 0);
  return g->l->LLVMBuildShuffleVector(g->unit->builder, first, none, g->l->LLVMConstNull(mask), "");
}

static LVal const_splat(LlvmGen *g, LVal x, u32 lanes) {
  LVal lane[MAX_LANES];
  if (lanes == 1) return x;
  for (u32 i = 0; i < lanes; i++) lane[i] = x;
  return g->l->LLVMConstVector(lane, lanes);
}

LVal lv_int(LlvmGen *g, u32 bits, u32 lanes, i64 x) {
  return const_splat(g, g->l->LLVMConstInt(lt_int(g, bits), (u64)x, 1), lanes);
}

LVal lv_real(LlvmGen *g, bool wide, u32 lanes, double x) {
  return const_splat(g, g->l->LLVMConstReal(lt_real(g, wide), x), lanes);
}

LVal lv_bin(LlvmGen *g, LLVMOpcode op, LVal a, LVal b) {
  return g->l->LLVMBuildBinOp(g->unit->builder, op, a, b, "");
}

LVal lv_cast(LlvmGen *g, LLVMOpcode op, LVal a, LType to) {
  return g->l->LLVMBuildCast(g->unit->builder, op, a, to, "");
}

LVal lv_icmp(LlvmGen *g, LLVMIntPredicate p, LVal a, LVal b) {
  return g->l->LLVMBuildICmp(g->unit->builder, p, a, b, "");
}

LVal lv_fcmp(LlvmGen *g, LLVMRealPredicate p, LVal a, LVal b) {
  return g->l->LLVMBuildFCmp(g->unit->builder, p, a, b, "");
}

LVal lv_select(LlvmGen *g, LVal c, LVal a, LVal b) {
  return g->l->LLVMBuildSelect(g->unit->builder, c, a, b, "");
}

LVal lv_lane(LlvmGen *g, LVal x, u32 i) {
  return g->l->LLVMBuildExtractElement(g->unit->builder, x, lv_int(g, 32, 1, i), "");
}

LVal lv_put_lane(LlvmGen *g, LVal x, LVal one, u32 i) {
  return g->l->LLVMBuildInsertElement(g->unit->builder, x, one, lv_int(g, 32, 1, i), "");
}

LVal lv_load(LlvmGen *g, LType t, LVal at, u32 align) {
  LVal x = g->l->LLVMBuildLoad2(g->unit->builder, t, at, "");
  if (align) g->l->LLVMSetAlignment(x, align);
  return x;
}

void lv_store(LlvmGen *g, LVal x, LVal at, u32 align) {
  LVal s = g->l->LLVMBuildStore(g->unit->builder, x, at);
  if (align) g->l->LLVMSetAlignment(s, align);
}

/* In the first block of the function, so that LLVM promotes it. */
LVal lv_alloca(LlvmGen *g, LType t) {
  LLVMBuilderRef b = g->unit->builder;
  LLVMBasicBlockRef here = g->l->LLVMGetInsertBlock(b);
  g->l->LLVMPositionBuilderAtEnd(b, g->head);
  LVal at = g->l->LLVMBuildAlloca(b, t, "");
  g->l->LLVMPositionBuilderAtEnd(b, here);
  return at;
}

/* ---- functions of LLVM ---- */

LVal lv_intrinsic(LlvmGen *g, const char *name, LType type, const LVal *arg, u32 n) {
  LVal args[4];
  LType types[1] = {type};
  size_t ntypes = type ? 1 : 0;
  unsigned id = g->l->LLVMLookupIntrinsicID(name, strlen(name));
  if (!id) lv_refuse(g, name);
  memcpy(args, arg, n * sizeof *arg);
  LVal fn = g->l->LLVMGetIntrinsicDeclaration(g->unit->module, id, types, ntypes);
  LType ft = g->l->LLVMIntrinsicGetType(g->unit->context, id, types, ntypes);
  return g->l->LLVMBuildCall2(g->unit->builder, ft, fn, args, n, "");
}
