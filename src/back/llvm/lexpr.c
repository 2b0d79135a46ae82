/* lexpr.c: expressions as LLVM values, bit-exact with eval.c.
 *
 * Nothing is contracted or reordered: no fast-math flags are set. Functions use quick.def if the
 * program's math mode says so, instructions if the machine has them, and calls otherwise
 * (lcall.c). */
#include "back/llvm/llvm.h"

#include <math.h>
#include <string.h>

LVal gen_fma(LlvmGen *g, LVal a, LVal b, LVal c) {
  return lv_intrinsic(g, "llvm.fma", g->l->LLVMTypeOf(a), (LVal[]){a, b, c}, 3);
}

/* ---- floats ---- */

/* max or min: NaN if either is NaN; of equal values the first. */
static LVal extreme(LlvmGen *g, LLVMRealPredicate p, LVal a, LVal b) {
  LVal m = lv_select(g, lv_fcmp(g, p, b, a), b, a);
  return lv_select(g, lv_fcmp(g, LLVMRealUNO, b, b), b, m);
}

static LVal sign_of(LlvmGen *g, LVal a, bool wide, u32 lanes) {
  LVal zero = lv_real(g, wide, lanes, 0);
  LVal r = lv_select(g, lv_fcmp(g, LLVMRealUNO, a, a), a, zero);
  r = lv_select(g, lv_fcmp(g, LLVMRealOLT, a, zero), lv_real(g, wide, lanes, -1), r);
  return lv_select(g, lv_fcmp(g, LLVMRealOGT, a, zero), lv_real(g, wide, lanes, 1), r);
}

/* Intrinsics with machine instructions; else LLVM calls a library, with the same bits. */
static const char *instruction(Op op) {
  switch (op) {
  case OP_sqrt: return "llvm.sqrt";
  case OP_floor: return "llvm.floor";
  case OP_ceil: return "llvm.ceil";
  case OP_trunc: return "llvm.trunc";
  case OP_round: return "llvm.nearbyint";
  case OP_abs: return "llvm.fabs";
  default: return NULL;
  }
}

static LVal function(LlvmGen *g, const Expr *x, LVal *arg) {
  MathMode part = scalar_math_mode(g->p->math, x->op, x->dt);
  if (part == MM_q || part == MM_u) {
    Str name = str_fmt(g->c, "%s%c", op_info[x->op].name, part == MM_q ? 'q' : 'u');
    return gen_quick(g, str_text(g->c, name), x->lanes, arg);
  }
  return gen_math(g, x->op, part, arg, x->narg, x->lanes);
}

/* Computes in f32 or f64; the caller rounds to a narrower type. */
static LVal float_op(LlvmGen *g, const Expr *x, LVal *arg) {
  bool wide = x->dt == DT_f64;
  LVal a = arg[0], b = arg[1];
  switch (x->op) {
  case OP_add: return lv_bin(g, LLVMFAdd, a, b);
  case OP_sub: return lv_bin(g, LLVMFSub, a, b);
  case OP_mul: return lv_bin(g, LLVMFMul, a, b);
  case OP_div: return lv_bin(g, LLVMFDiv, a, b);
  case OP_recip: return lv_bin(g, LLVMFDiv, lv_real(g, wide, x->lanes, 1), a);
  case OP_neg: return g->l->LLVMBuildFNeg(g->unit->builder, a, "");
  case OP_max: return extreme(g, LLVMRealOGT, a, b);
  case OP_min: return extreme(g, LLVMRealOLT, a, b);
  case OP_sign: return sign_of(g, a, wide, x->lanes);
  case OP_fma: return gen_fma(g, a, b, arg[2]);
  default: break;
  }
  const char *name = instruction(x->op);
  bool rounds = op_is(x->op, OF_ROUNDS);
  if (rounds && !caps_has(&g->has, CAP_round, x->lanes)) lv_refuse(g, op_info[x->op].name);
  return name ? lv_intrinsic(g, name, g->l->LLVMTypeOf(a), arg, 1) : function(g, x, arg);
}

/* ---- comparisons ---- */

static LVal compare_floats(LlvmGen *g, const Expr *x, LVal a, LVal b, bool wide) {
  static const LLVMRealPredicate how[OP_SCALARS] = {
      [OP_eq] = LLVMRealOEQ, [OP_ne] = LLVMRealUNE, [OP_lt] = LLVMRealOLT,
      [OP_le] = LLVMRealOLE, [OP_gt] = LLVMRealOGT, [OP_ge] = LLVMRealOGE};
  if (x->op == OP_isnan) return lv_fcmp(g, LLVMRealUNO, a, a);
  if (x->op != OP_isinf) return lv_fcmp(g, how[x->op], a, b);
  LVal size = lv_intrinsic(g, "llvm.fabs", g->l->LLVMTypeOf(a), &a, 1);
  return lv_fcmp(g, LLVMRealOEQ, size, lv_real(g, wide, x->lanes, (double)INFINITY));
}

static LVal compare(LlvmGen *g, const Expr *x, LVal a, LVal b) {
  static const LLVMIntPredicate how[2][OP_SCALARS] = {{[OP_eq] = LLVMIntEQ,
                                                       [OP_ne] = LLVMIntNE,
                                                       [OP_lt] = LLVMIntULT,
                                                       [OP_le] = LLVMIntULE,
                                                       [OP_gt] = LLVMIntUGT,
                                                       [OP_ge] = LLVMIntUGE},
                                                      {[OP_eq] = LLVMIntEQ,
                                                       [OP_ne] = LLVMIntNE,
                                                       [OP_lt] = LLVMIntSLT,
                                                       [OP_le] = LLVMIntSLE,
                                                       [OP_gt] = LLVMIntSGT,
                                                       [OP_ge] = LLVMIntSGE}};
  DType dt = prog_expr(g->p, x->arg[0])->dt;
  if (dtype_is_float(dt)) return compare_floats(g, x, a, b, dt == DT_f64);
  LLVMIntPredicate p = how[dtype_is_signed(dt)][x->op];
  return p ? lv_icmp(g, p, a, b) : lv_int(g, 1, x->lanes, 0); /* isnan, isinf */
}

/* ---- operations ---- */

static LVal gen_op(LlvmGen *g, const Expr *x) {
  LVal arg[3] = {NULL, NULL, NULL}, bits = gen_half_bits(g, x);
  if (bits) return bits;
  for (u32 i = 0; i < x->narg; i++) arg[i] = gen_expr(g, x->arg[i]);
  if (x->op == OP_cast) return gen_cast(g, x, arg[0]);
  if (x->op == OP_bitcast) return gen_bitcast(g, x, arg[0]);
  if (x->op == OP_select) return lv_select(g, arg[0], arg[1], arg[2]);
  if (op_info[x->op].res == OR_pred) return compare(g, x, arg[0], arg[1]);
  if (!dtype_is_float(x->dt)) return gen_int_op(g, x, arg);
  LVal r = float_op(g, x, arg);
  return dtype_is_narrow_float(x->dt) ? llvm_round_float(g, x->dt, r, x->lanes) : r;
}

/* ---- vectors ---- */

/* Shuffles lane by lane, for cases that shufflevector cannot express. */
static LVal gather_lanes(LlvmGen *g, const Expr *x, const LVal *arg, u32 n) {
  LVal all = g->l->LLVMGetUndef(lt_value(g, x->dt, x->lanes));
  for (u32 i = 0; i < x->lanes; i++) {
    LVal from = arg[x->pick[i] / n];
    all = lv_put_lane(g, all, n > 1 ? lv_lane(g, from, x->pick[i] % n) : from, i);
  }
  return all;
}

/* Concatenates vectors of n lanes. */
static LVal join(LlvmGen *g, LVal a, LVal b, u32 n) {
  LVal mask[MAX_LANES];
  for (u32 i = 0; i < 2 * n; i++) mask[i] = lv_int(g, 32, 1, i);
  return g->l->LLVMBuildShuffleVector(g->unit->builder, a, b, g->l->LLVMConstVector(mask, 2 * n),
                                      "");
}

static LVal gen_shuffle(LlvmGen *g, const Expr *x) {
  LVal arg[MAX_LANES] = {NULL}, mask[MAX_LANES];
  u32 n = prog_expr(g->p, x->arg[0])->lanes;
  for (u32 i = 0; i < x->narg; i++) arg[i] = gen_expr(g, x->arg[i]);
  if (x->lanes == 1) {
    LVal from = arg[x->pick[0] / n];
    return n > 1 ? lv_lane(g, from, x->pick[0] % n) : from;
  }
  bool four = n > 1 && x->narg == BYTES_JOINED && x->lanes == BYTES_JOINED * n;
  if (!four && (n == 1 || x->narg > 2)) return gather_lanes(g, x, arg, n);
  LVal first = arg[0], second = arg[x->narg > 1];
  if (four) first = second = join(g, join(g, first, second, n), join(g, arg[2], arg[3], n), 2 * n);
  for (u32 i = 0; i < x->lanes; i++) mask[i] = lv_int(g, 32, 1, x->pick[i]);
  return g->l->LLVMBuildShuffleVector(g->unit->builder, first, second,
                                      g->l->LLVMConstVector(mask, x->lanes), "");
}

static LVal gen_reduction(LlvmGen *g, const Expr *x) {
  Expr pair = *x;
  u32 n = prog_expr(g->p, x->arg[0])->lanes;
  LVal from = gen_expr(g, x->arg[0]), arg[2] = {n > 1 ? lv_lane(g, from, 0) : from, NULL};
  pair.kind = EX_op;
  pair.lanes = 1;
  for (u32 i = 1; i < n; i++) {
    arg[1] = lv_lane(g, from, i);
    arg[0] = dtype_is_float(x->dt) ? float_op(g, &pair, arg) : gen_int_op(g, &pair, arg);
    if (dtype_is_narrow_float(x->dt)) arg[0] = llvm_round_float(g, x->dt, arg[0], 1);
  }
  return arg[0];
}

static LVal gen_random(LlvmGen *g, const Expr *x) {
  LVal arg[3] = {gen_expr(g, x->arg[0]), g->seed, gen_expr(g, x->arg[1])};
  return gen_call(g, (RuntimeCall){CK_random, 0, x->dt, x->dt, false}, arg, 3, 1);
}

static LVal gen_const(LlvmGen *g, const Expr *x) {
  if (dtype_is_float(x->dt)) return lv_real(g, x->dt == DT_f64, x->lanes, x->imm.f);
  return lv_int(g, lt_bits(x->dt), x->lanes, x->imm.i);
}

LVal gen_expr(LlvmGen *g, ExprId id) {
  const Expr *x = prog_expr(g->p, id);
  switch (x->kind) {
  case EX_const: return gen_const(g, x);
  case EX_var:
    if (!g->var[x->ref]) internal_error(g->c, LOC_NONE, "a variable has no value here");
    return g->placed[x->ref] ? lv_load(g, lt_value(g, x->dt, x->lanes), g->var[x->ref], 0)
                             : g->var[x->ref];
  case EX_load: return gen_load(g, x);
  case EX_op: return gen_op(g, x);
  case EX_splat: {
    const Expr *of = prog_expr(g->p, x->arg[0]);
    Expr all = *of;
    all.lanes = x->lanes;
    return of->kind == EX_const ? gen_const(g, &all)
                                : lv_splat(g, gen_expr(g, x->arg[0]), x->lanes);
  }
  case EX_hreduce: return gen_reduction(g, x);
  case EX_shuffle: return gen_shuffle(g, x);
  case EX_quad: return gen_quad(g, x);
  case EX_random: return gen_random(g, x);
  default: lv_refuse(g, "an expression of this kind");
  }
}
