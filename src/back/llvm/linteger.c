/* linteger.c: operations on integers, bit-exact with eval.c: they wrap, and none is undefined. Dot
 * products come here if the machine has instructions for them (g->has). */
#include "back/llvm/llvm.h"

/* Type and lanes of an integer operation. */
typedef struct IntKind {
  LlvmGen *g;
  DType dt;
  u32 bits, lanes;
  bool is_signed;
} IntKind;

static LVal number(const IntKind *k, i64 x) {
  return lv_int(k->g, k->bits, k->lanes, x);
}

static LVal is_equal(const IntKind *k, LVal a, i64 x) {
  return lv_icmp(k->g, LLVMIntEQ, a, number(k, x));
}

static LVal negated(const IntKind *k, LVal a) {
  return lv_bin(k->g, LLVMSub, number(k, 0), a);
}

/* A divisor made safe, and masks of the lanes where it was 0 or, if signed, -1. */
typedef struct Divisor {
  LVal safe, zero, minus; /* minus NULL: unsigned */
  bool plain;             /* a constant other than 0 and -1 */
} Divisor;

static Divisor divisor(const IntKind *k, ExprId id, LVal b) {
  const Expr *e = prog_expr(k->g->p, id);
  if (e->kind == EX_splat) e = prog_expr(k->g->p, e->arg[0]);
  if (e->kind == EX_const && e->imm.i != 0 && e->imm.i != -1)
    return (Divisor){.safe = b, .plain = 1};
  Divisor d = {.zero = is_equal(k, b, 0)};
  LVal bad = d.zero;
  if (k->is_signed) {
    d.minus = is_equal(k, b, -1);
    bad = lv_bin(k->g, LLVMOr, bad, d.minus);
  }
  d.safe = lv_select(k->g, bad, number(k, 1), b);
  return d;
}

static LVal quotient(const IntKind *k, ExprId id, LVal a, LVal b) {
  Divisor d = divisor(k, id, b);
  LVal q = lv_bin(k->g, k->is_signed ? LLVMSDiv : LLVMUDiv, a, d.safe);
  if (d.plain) return q;
  if (d.minus) q = lv_select(k->g, d.minus, negated(k, a), q);
  return lv_select(k->g, d.zero, number(k, 0), q);
}

/* floors: result has the sign of b. Divisors 0 and -1 are replaced by 1, which leaves 0. */
static LVal rest(const IntKind *k, ExprId id, LVal a, LVal b, bool floors) {
  Divisor d = divisor(k, id, b);
  LVal r = lv_bin(k->g, k->is_signed ? LLVMSRem : LLVMURem, a, d.safe);
  if (!k->is_signed || !floors) return r;
  LVal sides = lv_icmp(k->g, LLVMIntSLT, lv_bin(k->g, LLVMXor, r, d.safe), number(k, 0));
  LVal some = lv_icmp(k->g, LLVMIntNE, r, number(k, 0));
  return lv_select(k->g, lv_bin(k->g, LLVMAnd, sides, some), lv_bin(k->g, LLVMAdd, r, d.safe), r);
}

static LVal shift(const IntKind *k, Op op, LVal a, LVal b) {
  LVal far = lv_icmp(k->g, LLVMIntUGE, b, number(k, dtype_info[k->dt].bits));
  bool sign = op == OP_shr && k->is_signed;
  LVal by = lv_select(k->g, far, number(k, sign ? k->bits - 1 : 0), b);
  LLVMOpcode how = op == OP_shl ? LLVMShl : sign ? LLVMAShr : LLVMLShr;
  LVal r = lv_bin(k->g, how, a, by);
  return sign ? r : lv_select(k->g, far, number(k, 0), r);
}

static LVal sign_of(const IntKind *k, LVal a) {
  LVal zero = number(k, 0), one = number(k, 1);
  LVal up = lv_icmp(k->g, k->is_signed ? LLVMIntSGT : LLVMIntUGT, a, zero);
  LVal r = lv_select(k->g, up, one, zero);
  return k->is_signed ? lv_select(k->g, lv_icmp(k->g, LLVMIntSLT, a, zero), number(k, -1), r) : r;
}

/* ---- dot products of int8 and int16 ---- */

/* The intrinsic for a vector of i32; names for 128, 256 and 512 bits. */
static const char *named(const IntKind *k, const char *const *name) {
  return k->lanes == 4 ? name[0] : k->lanes == 8 ? name[1] : k->lanes == 16 ? name[2] : NULL;
}

/* The bits as lanes of 16 or 8 bits. */
static LVal parts(const IntKind *k, LVal a, u32 bits) {
  return lv_cast(k->g, LLVMBitCast, a, lt_lanes(k->g, lt_int(k->g, bits), k->lanes * 32 / bits));
}

static LVal whole(const IntKind *k, LVal a) {
  return lv_cast(k->g, LLVMBitCast, a, lt_lanes(k->g, lt_int(k->g, 32), k->lanes));
}

static LVal madd(const IntKind *k, LVal a, LVal b) {
  static const char *const name[] = {"llvm.x86.sse2.pmadd.wd", "llvm.x86.avx2.pmadd.wd",
                                     "llvm.x86.avx512.pmaddw.d.512"};
  LVal arg[] = {parts(k, a, 16), parts(k, b, 16)};
  return lv_intrinsic(k->g, named(k, name), NULL, arg, 2);
}

static LVal dot(const IntKind *k, Op op, LVal *arg) {
  static const char *const four[] = {"llvm.x86.avx512.vpdpbusd.128", "llvm.x86.avx512.vpdpbusd.256",
                                     "llvm.x86.avx512.vpdpbusd.512"};
  static const char *const two[] = {"llvm.x86.avx512.vpdpwssd.128", "llvm.x86.avx512.vpdpwssd.256",
                                    "llvm.x86.avx512.vpdpwssd.512"};
  LVal with[] = {arg[2], arg[0], arg[1]};
  if (caps_has(&k->g->has, CAP_dot_i8x4, k->lanes))
    return lv_intrinsic(k->g, named(k, op == OP_dot_i8x4 ? four : two), NULL, with, 3);
  return lv_bin(k->g, LLVMAdd, arg[2], madd(k, arg[0], arg[1]));
}

static LVal maddubs(const IntKind *k, LVal *arg) {
  static const char *const name[] = {"llvm.x86.ssse3.pmadd.ub.sw.128", "llvm.x86.avx2.pmadd.ub.sw",
                                     "llvm.x86.avx512.pmaddubs.w.512"};
  LVal with[] = {parts(k, arg[0], 8), parts(k, arg[1], 8)};
  LVal sum = lv_intrinsic(k->g, named(k, name), NULL, with, 2);
  return whole(k, lv_bin(k->g, LLVMAdd, parts(k, arg[2], 16), sum));
}

static LVal psign(const IntKind *k, LVal *arg) {
  static const char *const name[] = {"llvm.x86.ssse3.psign.b.128", "llvm.x86.avx2.psign.b", NULL};
  LVal a = parts(k, arg[0], 8), b = parts(k, arg[1], 8), zero = lv_int(k->g, 8, k->lanes * 4, 0);
  if (named(k, name)) return whole(k, lv_intrinsic(k->g, named(k, name), NULL, (LVal[]){a, b}, 2));
  /* 512 bits have masks instead of psign */
  LVal r = lv_select(k->g, lv_icmp(k->g, LLVMIntSLT, b, zero), lv_bin(k->g, LLVMSub, zero, a), a);
  return whole(k, lv_select(k->g, lv_icmp(k->g, LLVMIntEQ, b, zero), zero, r));
}

/* See ops.def. */
static LVal requant(const IntKind *k, LVal *arg) {
  LlvmGen *g = k->g;
  LVal w[2], half = lv_int(g, 64, k->lanes, (i64)1 << 31), by = lv_int(g, 64, k->lanes, 32);
  for (u32 i = 0; i < 2; i++)
    w[i] = lv_cast(g, LLVMSExt, arg[i], lt_lanes(g, lt_int(g, 64), k->lanes));
  LVal p = lv_bin(g, LLVMAdd, lv_bin(g, LLVMMul, w[0], w[1]), half);
  LVal m = lv_cast(g, LLVMTrunc, lv_bin(g, LLVMAShr, p, by), lt_lanes(g, lt_int(g, 32), k->lanes));
  LVal zero = number(k, 0), one = number(k, 1), n = lv_bin(g, LLVMAnd, arg[2], number(k, 31));
  LVal none = lv_icmp(g, LLVMIntEQ, n, zero);
  LVal less = lv_bin(g, LLVMAdd, m, lv_bin(g, LLVMAShr, m, number(k, 31)));
  n = lv_select(g, none, zero, lv_bin(g, LLVMSub, n, one));
  LVal y = lv_bin(g, LLVMAdd, lv_bin(g, LLVMAShr, less, n), one);
  return lv_select(g, none, m, lv_bin(g, LLVMAShr, y, one));
}

/* ---- all ---- */

LVal gen_int_op(LlvmGen *g, const Expr *x, LVal *arg) {
  IntKind k = {g, x->dt, lt_bits(x->dt), x->lanes, dtype_is_signed(x->dt)};
  LVal a = arg[0], b = arg[1], r;
  LLVMIntPredicate more = k.is_signed ? LLVMIntSGT : LLVMIntUGT;
  switch (x->op) {
  case OP_add: r = lv_bin(g, LLVMAdd, a, b); break;
  case OP_sub: r = lv_bin(g, LLVMSub, a, b); break;
  case OP_mul: r = lv_bin(g, LLVMMul, a, b); break;
  case OP_neg: r = negated(&k, a); break;
  case OP_and: return lv_bin(g, LLVMAnd, a, b);
  case OP_or: return lv_bin(g, LLVMOr, a, b);
  case OP_xor: return lv_bin(g, LLVMXor, a, b);
  case OP_not: r = lv_bin(g, LLVMXor, a, number(&k, -1)); break;
  case OP_shl:
  case OP_shr: r = shift(&k, x->op, a, b); break;
  case OP_div: r = quotient(&k, x->arg[1], a, b); break;
  case OP_mod:
  case OP_fmod: r = rest(&k, x->arg[1], a, b, x->op == OP_mod); break;
  case OP_max: return lv_select(g, lv_icmp(g, more, a, b), a, b);
  case OP_min: return lv_select(g, lv_icmp(g, more, b, a), a, b);
  case OP_abs: {
    if (!k.is_signed) return a;
    r = lv_select(g, lv_icmp(g, LLVMIntSLT, a, number(&k, 0)), negated(&k, a), a);
    break;
  }
  case OP_sign: return sign_of(&k, a);
  case OP_dot_i8x4:
  case OP_dot_i16x2: return dot(&k, x->op, arg);
  case OP_maddubs: return maddubs(&k, arg);
  case OP_psign: return psign(&k, arg);
  case OP_requant: return requant(&k, arg);
  default:
    return gen_call(g, (RuntimeCall){CK_op, x->op, x->dt, x->dt, false}, arg, x->narg, x->lanes);
  }
  return wrap_int(g, x->dt, r, x->lanes);
}
