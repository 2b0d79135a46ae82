/* lquick.c: functions of quick.def on values of any width.
 *
 * In: the name of a function and its operands. Out: its steps as instructions, in the order of
 * quick.def, each rounded once: the same bits as every other engine. */
#include "back/llvm/llvm.h"
#include "ir/math/quick.h"

#include <string.h>

/* The function being inlined. */
typedef struct QuickCode {
  LlvmGen *g;
  const Quick *q;
  u32 lanes;
  LVal *value; /* by step */
} QuickCode;

static LVal word_const(const QuickCode *s, i64 x) {
  return lv_int(s->g, 32, s->lanes, x);
}

static LVal as_type(const QuickCode *s, LVal x, bool bits) {
  LType t = bits ? lt_int(s->g, 32) : lt_real(s->g, false);
  return lv_cast(s->g, LLVMBitCast, x, lt_lanes(s->g, t, s->lanes));
}

/* p * 2^k in two factors, so that k = 128 does not overflow before the product does. */
static LVal power(const QuickCode *s, LVal p, LVal t) {
  LlvmGen *g = s->g;
  LVal m = lv_bin(g, LLVMSub, as_type(s, t, true), word_const(s, 0x4b3fff02));
  LVal h = lv_bin(g, LLVMLShr, m, word_const(s, 1)), by = word_const(s, 23);
  LVal first = as_type(s, lv_bin(g, LLVMShl, h, by), false);
  LVal second = as_type(s, lv_bin(g, LLVMShl, lv_bin(g, LLVMSub, m, h), by), false);
  return lv_bin(g, LLVMFMul, lv_bin(g, LLVMFMul, p, first), second);
}

/* y, with the precise function of x in lanes of at least 2^13; computed only if there is such a
 * lane. */
static LVal large_args(const QuickCode *s, Op op, LVal x, LVal y) {
  LlvmGen *g = s->g;
  LLVMBuilderRef b = g->unit->builder;
  LVal edge = lv_real(g, false, s->lanes, 0x1p13), back = lv_real(g, false, s->lanes, -0x1p13);
  LVal near =
      lv_bin(g, LLVMAnd, lv_fcmp(g, LLVMRealOLT, x, edge), lv_fcmp(g, LLVMRealOGT, x, back));
  LVal all = near;
  for (u32 i = 0; s->lanes > 1 && i < s->lanes; i++)
    all = i ? lv_bin(g, LLVMAnd, all, lv_lane(g, near, i)) : lv_lane(g, near, 0);
  LLVMBasicBlockRef from = g->l->LLVMGetInsertBlock(b);
  LLVMBasicBlockRef rare = g->l->LLVMAppendBasicBlockInContext(g->unit->context, g->fn, "far");
  LLVMBasicBlockRef end = g->l->LLVMAppendBasicBlockInContext(g->unit->context, g->fn, "near");
  g->l->LLVMBuildCondBr(b, all, end, rare);
  g->l->LLVMPositionBuilderAtEnd(b, rare);
  LVal exact = gen_math(g, op, MM_f, &x, 1, s->lanes);
  LVal other = lv_select(g, near, y, exact);
  LLVMBasicBlockRef last = g->l->LLVMGetInsertBlock(b);
  g->l->LLVMBuildBr(b, end);
  g->l->LLVMPositionBuilderAtEnd(b, end);
  LVal r = g->l->LLVMBuildPhi(b, g->l->LLVMTypeOf(y), "");
  g->l->LLVMAddIncoming(r, (LVal[]){y, other}, (LLVMBasicBlockRef[]){from, last}, 2);
  return r;
}

static LVal mask(const QuickCode *s, LLVMRealPredicate p, LVal a, LVal b) {
  return lv_cast(s->g, LLVMSExt, lv_fcmp(s->g, p, a, b),
                 lt_lanes(s->g, lt_int(s->g, 32), s->lanes));
}

static LVal compared(const QuickCode *s, LLVMRealPredicate p, LVal a, LVal b) {
  return lv_select(s->g, lv_fcmp(s->g, p, a, b), a, b);
}

static LVal gen_step(const QuickCode *s, const QuickStep *x) {
  LlvmGen *g = s->g;
  LVal a = x->n > 0 ? s->value[x->arg[0]] : NULL, b = x->n > 1 ? s->value[x->arg[1]] : NULL;
  LVal both[2] = {a, b};
  bool bits = x->bits;
  switch (x->op) {
  case QO_const: return bits ? word_const(s, x->value.i) : lv_real(g, false, s->lanes, x->value.f);
  case QO_add: return lv_bin(g, bits ? LLVMAdd : LLVMFAdd, a, b);
  case QO_sub: return lv_bin(g, bits ? LLVMSub : LLVMFSub, a, b);
  case QO_mul: return lv_bin(g, bits ? LLVMMul : LLVMFMul, a, b);
  case QO_div: return lv_bin(g, LLVMFDiv, a, b);
  case QO_neg: return g->l->LLVMBuildFNeg(g->unit->builder, a, "");
  case QO_and: return lv_bin(g, LLVMAnd, a, b);
  case QO_or: return lv_bin(g, LLVMOr, a, b);
  case QO_xor: return lv_bin(g, LLVMXor, a, b);
  case QO_not: return lv_bin(g, LLVMXor, a, word_const(s, -1));
  case QO_shl: return lv_bin(g, LLVMShl, a, word_const(s, x->value.i));
  case QO_shr: return lv_bin(g, LLVMLShr, a, word_const(s, x->value.i));
  case QO_lt: return mask(s, LLVMRealOLT, a, b);
  case QO_le: return mask(s, LLVMRealOLE, a, b);
  case QO_eq: return mask(s, LLVMRealOEQ, a, b);
  case QO_bits:
  case QO_float: return as_type(s, a, x->op == QO_bits);
  case QO_lesser: return compared(s, LLVMRealOLT, a, b);
  case QO_larger: return compared(s, LLVMRealOGT, a, b);
  case QO_mad: return gen_fma(g, a, b, s->value[x->arg[2]]);
  case QO_pow2: return power(s, a, b);
  case QO_farsin: return large_args(s, OP_sin, a, b);
  case QO_farcos: return large_args(s, OP_cos, a, b);
  case QO_call: return gen_quick(g, x->text, s->lanes, both);
  default: return NULL;
  }
}

LVal gen_quick(LlvmGen *g, const char *name, u32 lanes, const LVal *arg) {
  Quick q;
  LVal value[QUICK_STEPS];
  QuickCode s = {g, &q, lanes, value};
  if (!quick_find(&q, name)) lv_refuse(g, name);
  for (u32 i = 0; i < q.n; i++) value[i] = i < q.nparam ? arg[i] : gen_step(&s, &q.step[i]);
  return value[q.result];
}
