/* lmem.c: addresses, loads, stores, and narrow floats in memory.
 *
 * In: index expressions that are known to stay in range, so their arithmetic is marked nsw. The
 * constants of an address are added last: elements that differ by a constant share one pointer. */
#include "back/llvm/llvm.h"

/* ---- index arithmetic ---- */

static LVal index_bin(LlvmGen *g, Op op, LVal a, LVal b) {
  LLVMBuilderRef at = g->unit->builder;
  switch (op) {
  case OP_add: return g->l->LLVMBuildNSWAdd(at, a, b, "");
  case OP_sub: return g->l->LLVMBuildNSWSub(at, a, b, "");
  case OP_mul: return g->l->LLVMBuildNSWMul(at, a, b, "");
  case OP_max: return lv_select(g, lv_icmp(g, LLVMIntSGT, a, b), a, b);
  default: return lv_select(g, lv_icmp(g, LLVMIntSLT, a, b), a, b);
  }
}

LVal gen_index(LlvmGen *g, ExprId id) {
  const Expr *x = prog_expr(g->p, id);
  bool plain =
      x->op == OP_add || x->op == OP_sub || x->op == OP_mul || x->op == OP_max || x->op == OP_min;
  if (x->kind != EX_op || x->dt != DT_i64 || !plain) return gen_expr(g, id);
  LVal a = gen_index(g, x->arg[0]), b = gen_index(g, x->arg[1]);
  return index_bin(g, x->op, a, b);
}

LVal gen_dim(LlvmGen *g, Dim d) {
  return dim_is_const(d) ? lv_int(g, 64, 1, d) : gen_index(g, ex_dim(g->p, d));
}

static LVal sum(LlvmGen *g, Op op, LVal a, LVal b) {
  if (!b) return a;
  if (!a && op == OP_add) return b;
  return index_bin(g, op, a ? a : lv_int(g, 64, 1, 0), b);
}

/* Returns the index without its constant term, which is added to *k; NULL: the index is a constant.
 */
static LVal split(LlvmGen *g, ExprId id, i64 *k) {
  const Expr *x = prog_expr(g->p, id);
  i64 number, ka = 0, kb = 0;
  if (ex_is_int(g->p, id, &number)) {
    *k += number;
    return NULL;
  }
  if (x->kind != EX_op || x->dt != DT_i64 || x->narg != 2) return gen_index(g, id);
  if (x->op == OP_add || x->op == OP_sub) {
    LVal a = split(g, x->arg[0], &ka), b = split(g, x->arg[1], &kb);
    *k += x->op == OP_add ? ka + kb : ka - kb;
    return sum(g, x->op, a, b);
  }
  if (x->op != OP_mul || !ex_is_int(g->p, x->arg[1], &number)) return gen_index(g, id);
  LVal a = split(g, x->arg[0], &ka);
  *k += ka * number;
  return a ? index_bin(g, OP_mul, a, lv_int(g, 64, 1, number)) : NULL;
}

/* ---- addresses ---- */

static LVal step(LlvmGen *g, LType t, LVal at, LVal by) {
  return by ? g->l->LLVMBuildInBoundsGEP2(g->unit->builder, t, at, &by, 1, "") : at;
}

/* Row-major by Horner's rule. t: element type. */
static LVal element(LlvmGen *g, BufId b, LVal base, LType t, const ExprId *idx, u32 n) {
  const Buf *x = prog_buf(g->p, b);
  LVal at = NULL;
  i64 k = 0;
  for (u32 i = 0; i < n; i++) {
    Dim d = x->dim[i];
    if (i && dim_is_const(d)) {
      k *= d;
      if (at && d != 1) at = index_bin(g, OP_mul, at, lv_int(g, 64, 1, d));
    } else if (i && (at || k)) {
      at = sum(g, OP_add, at, k ? lv_int(g, 64, 1, k) : NULL);
      at = index_bin(g, OP_mul, at, gen_dim(g, d));
      k = 0;
    }
    at = sum(g, OP_add, at, split(g, idx[i], &k));
  }
  base = step(g, t, base, at);
  return k ? step(g, t, base, lv_int(g, 64, 1, k)) : base;
}

/* Register buffers as arrays, if not all loops over them are unrolled; initially zero. */
static LVal gen_registers(LlvmGen *g, BufId b) {
  const Buf *x = prog_buf(g->p, b);
  LLVMBuilderRef builder = g->unit->builder;
  i64 n = 1;
  if (g->reg[b]) return g->reg[b];
  for (u32 i = 0; i < x->rank; i++) n *= x->dim[i];
  LType t = lt_value(g, x->dt, x->lanes), all = g->l->LLVMArrayType(t, (unsigned)n);
  LVal at = lv_alloca(g, all);
  LLVMBasicBlockRef here = g->l->LLVMGetInsertBlock(builder);
  g->l->LLVMPositionBuilderAtEnd(builder, g->head);
  lv_store(g, g->l->LLVMConstNull(all), at, 0);
  g->reg[b] = lv_cast(g, LLVMBitCast, at, lt_pointer(g, t));
  g->l->LLVMPositionBuilderAtEnd(builder, here);
  return g->reg[b];
}

LVal gen_buf(LlvmGen *g, BufId b) {
  LVal at = g->base[b];
  if (!at) internal_error(g->c, LOC_NONE, "a buffer has no address here");
  return g->moving[b] ? lv_load(g, lt_pointer(g, lt_memory(g, prog_buf(g->p, b)->dt, 1)), at, 0)
                      : at;
}

static LVal address(LlvmGen *g, BufId b, const ExprId *idx, u32 n) {
  return element(g, b, gen_buf(g, b), lt_memory(g, prog_buf(g->p, b)->dt, 1), idx, n);
}

/* ---- loads and stores ---- */

/* Loads the bits as stored. */
static LVal load_raw(LlvmGen *g, const Expr *x) {
  const Buf *b = prog_buf(g->p, x->ref);
  LType t = lt_memory(g, b->dt, x->lanes);
  LVal at = address(g, x->ref, x->arg, x->narg);
  if (x->lanes > 1) at = lv_cast(g, LLVMBitCast, at, lt_pointer(g, t));
  return lv_load(g, t, at, dtype_bytes(b->dt));
}

LVal gen_half_bits(LlvmGen *g, const Expr *x) {
  const Expr *half = ex_half_load(g->p, x);
  return half ? load_raw(g, half) : NULL;
}

LVal gen_load(LlvmGen *g, const Expr *x) {
  const Buf *b = prog_buf(g->p, x->ref);
  if (b->space == BS_reg) {
    LType t = lt_value(g, b->dt, b->lanes);
    return lv_load(g, t, element(g, x->ref, gen_registers(g, x->ref), t, x->arg, x->narg), 0);
  }
  LVal raw = load_raw(g, x);
  if (b->dt == DT_bool) return lv_icmp(g, LLVMIntNE, raw, lv_int(g, 8, x->lanes, 0));
  return dtype_is_narrow_float(b->dt) ? float_of_bits(g, b->dt, raw, x->lanes) : raw;
}

LVal gen_quad(LlvmGen *g, const Expr *x) {
  const Expr *from = prog_expr(g->p, x->arg[0]);
  LVal at = address(g, from->ref, from->arg, from->narg);
  LType t = lt_int(g, 32);
  return lv_load(g, t, lv_cast(g, LLVMBitCast, at, lt_pointer(g, t)), 4 / from->lanes);
}

void gen_store(LlvmGen *g, const Stmt *s) {
  const Buf *b = prog_buf(g->p, s->buf);
  u32 lanes = prog_expr(g->p, s->a)->lanes;
  ExprId bits = ex_half_stored(g->p, s);
  LVal x = gen_expr(g, bits ? bits : s->a);
  if (b->space == BS_reg) {
    LType t = lt_value(g, b->dt, b->lanes);
    lv_store(g, x, element(g, s->buf, gen_registers(g, s->buf), t, s->idx, s->nidx), 0);
    return;
  }
  LType t = lt_memory(g, b->dt, lanes);
  LVal at = address(g, s->buf, s->idx, s->nidx);
  if (lanes > 1) at = lv_cast(g, LLVMBitCast, at, lt_pointer(g, t));
  if (b->dt == DT_bool) x = lv_cast(g, LLVMZExt, x, t);
  if (dtype_is_narrow_float(b->dt) && !bits) x = bits_of_float(g, b->dt, x, lanes);
  lv_store(g, x, at, dtype_bytes(b->dt));
}

/* ---- narrow floats ---- */

static LType half_type(LlvmGen *g, u32 lanes) {
  return lt_lanes(g, g->l->LLVMHalfTypeInContext(g->unit->context), lanes);
}

LVal float_of_bits(LlvmGen *g, DType dt, LVal bits, u32 lanes) {
  LType real = lt_value(g, dt, lanes);
  if (dtype_is_full_float(dt)) return lv_cast(g, LLVMBitCast, bits, real);
  if (dt == DT_f16 && caps_has(&g->has, CAP_f16, lanes))
    return lv_cast(g, LLVMFPExt, lv_cast(g, LLVMBitCast, bits, half_type(g, lanes)), real);
  return gen_call(g, (RuntimeCall){CK_decode, 0, dt, dt, false}, &bits, 1, lanes);
}

LVal bits_of_float(LlvmGen *g, DType dt, LVal x, u32 lanes) {
  LType raw = lt_lanes(g, lt_int(g, 8 * dtype_bytes(dt)), lanes);
  if (dtype_is_full_float(dt)) return lv_cast(g, LLVMBitCast, x, raw);
  if (dt == DT_f16 && caps_has(&g->has, CAP_f16, lanes))
    return lv_cast(g, LLVMBitCast, lv_cast(g, LLVMFPTrunc, x, half_type(g, lanes)), raw);
  return gen_call(g, (RuntimeCall){CK_encode, 0, dt, dt, false}, &x, 1, lanes);
}

LVal llvm_round_float(LlvmGen *g, DType dt, LVal x, u32 lanes) {
  if (dtype_is_half(dt)) return float_of_bits(g, dt, bits_of_float(g, dt, x, lanes), lanes);
  RuntimeCall f = {CK_cast, OP_cast, DT_f32, dt, dt != DT_f8e5m2};
  return gen_call(g, f, &x, 1, lanes);
}
