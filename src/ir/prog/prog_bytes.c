/* prog_bytes.c: matches expression trees that back ends compute faster as a whole.
 *
 * In: an expression. Out: the operand that it rounds and saturates, if it is round(y) + k as a
 * byte, that less k as i16 or f32, or bytes converted to floats. The bounds are integers, so
 * clamping may come before rounding. Also matches loads and stores of the bits of f16 and bf16. */
#include "ir/prog/prog.h"

enum { FEWEST_LANES = 4 };

/* The constant in all lanes, or NULL. */
static const Expr *splat_const(const Prog *p, ExprId id) {
  const Expr *s = prog_expr(p, id);
  const Expr *c = s->kind == EX_splat ? prog_expr(p, s->arg[0]) : s;
  return c->kind == EX_const ? c : NULL;
}

i64 ex_splat_int(const Prog *p, ExprId id) {
  const Expr *c = splat_const(p, id);
  return c ? c->imm.i : INT64_MIN;
}

ExprId ex_quantized(const Prog *p, const Expr *cast, ExprId *zero) {
  u32 bits = dtype_is_int(cast->dt) ? dtype_info[cast->dt].bits : 0;
  *zero = 0;
  if (cast->kind != EX_op || cast->op != OP_cast || !cast->sat || (bits != 8 && bits != 16))
    return 0;
  const Expr *x = prog_expr(p, cast->arg[0]);
  if (x->kind == EX_op && x->op == OP_add && x->dt == DT_f32) {
    const Expr *last = prog_expr(p, x->arg[1]);
    u32 side = last->kind == EX_op && last->op == OP_round;
    *zero = x->arg[!side];
    x = prog_expr(p, x->arg[side]);
  }
  return x->kind == EX_op && x->op == OP_round && x->dt == DT_f32 ? x->arg[0] : 0;
}

/* Matches a saturating cast of round(x) + k to bytes; returns x, else 0. */
static ExprId quantized(const Prog *p, const Expr *cast, i64 *k) {
  ExprId zero, x = ex_quantized(p, cast, &zero);
  const Expr *c = zero ? splat_const(p, zero) : NULL;
  *k = 0;
  if (!x || dtype_bytes(cast->dt) != 1) return 0;
  if (!zero) return x;
  if (!c || !(c->imm.f >= -255 && c->imm.f <= 255)) return 0;
  *k = (i64)c->imm.f;
  return (double)*k == c->imm.f ? x : 0;
}

/* Matches an i16 value i16(byte) - k, where the byte is round(x) + k saturated; returns x, else 0.
 * as: type of the byte. */
static ExprId as_i16(const Prog *p, const Expr *x, DType *as, i64 *k) {
  i64 less = 0;
  if (x->kind == EX_op && x->op == OP_sub && x->dt == DT_i16) {
    less = ex_splat_int(p, x->arg[1]);
    x = prog_expr(p, x->arg[0]);
  }
  if (x->kind != EX_op || x->op != OP_cast || x->dt != DT_i16) return 0;
  x = prog_expr(p, x->arg[0]);
  if (x->kind != EX_op || x->op != OP_cast) return 0;
  *as = x->dt;
  ExprId y = quantized(p, x, k);
  return y && *k == less ? y : 0;
}

/* Matches an f32 value f32(byte - k), where the byte is round(x) + k saturated; returns x, else 0.
 * as: type of the byte. */
static ExprId requantized(const Prog *p, const Expr *cast, DType *as, i64 *k) {
  const Expr *x = prog_expr(p, cast->arg[0]);
  i64 less = 0;
  if (cast->dt != DT_f32) return 0;
  if (x->kind == EX_op && x->op == OP_sub && x->dt == DT_i32) {
    less = ex_splat_int(p, x->arg[1]);
    x = prog_expr(p, x->arg[0]);
  }
  if (x->kind == EX_op && x->op == OP_cast && x->dt == DT_i32) x = prog_expr(p, x->arg[0]);
  if (x->dt == DT_i16 && !less) return as_i16(p, x, as, k);
  if (x->kind != EX_op || x->op != OP_cast) return 0;
  *as = x->dt;
  ExprId y = quantized(p, x, k);
  return y && *k == less ? y : 0;
}

ExprId ex_bytes(const Prog *p, const Expr *x, DType *as, i64 *k) {
  *as = x->dt;
  if (x->kind != EX_op || x->lanes < FEWEST_LANES) return 0;
  if (x->dt == DT_i16) return as_i16(p, x, as, k);
  if (x->op != OP_cast) return 0;
  ExprId y = quantized(p, x, k);
  return y ? y : requantized(p, x, as, k);
}

bool ex_bytes_small(const Prog *p, const Expr *x) {
  while (x->kind == EX_op && x->narg && !x->sat) x = prog_expr(p, x->arg[0]);
  return x->small;
}

static bool picks_all(const Expr *x, u32 n, bool in_parts) {
  for (u32 i = 0; i < BYTES_JOINED * n; i++)
    if (x->pick[in_parts ? byte_in_part(i / n, i % n) : i] != i) return false;
  return true;
}

bool ex_joins(const Prog *p, const Expr *x, bool *in_parts) {
  *in_parts = false;
  if (x->kind != EX_shuffle || x->narg != BYTES_JOINED) return false;
  u32 n = prog_expr(p, x->arg[0])->lanes;
  if (n == 1 || x->lanes != BYTES_JOINED * n) return false;
  *in_parts = n > BYTES_JOINED && picks_all(x, n, true);
  return *in_parts || picks_all(x, n, false);
}

ExprId ex_of_bytes(const Prog *p, const Expr *x, i64 *k) {
  *k = 0;
  if (x->kind != EX_op || x->op != OP_cast || x->dt != DT_f32) return 0;
  ExprId y = x->arg[0];
  const Expr *of = prog_expr(p, y);
  if (of->kind == EX_op && of->op == OP_sub && of->dt == DT_i32) {
    *k = ex_splat_int(p, of->arg[1]);
    if (*k < -255 || *k > 255) return 0;
    y = of->arg[0];
    of = prog_expr(p, y);
  }
  if (of->kind == EX_op && of->op == OP_cast && of->dt == DT_i32) {
    y = of->arg[0];
    of = prog_expr(p, y);
  }
  return of->dt == DT_u8 || of->dt == DT_i8 ? y : 0;
}

ExprId ex_byte_part(const Prog *p, const Expr *x, u32 *q, i64 *k) {
  const Expr *of = prog_expr(p, ex_of_bytes(p, x, k));
  if (of->kind != EX_shuffle || of->narg != 1) return 0;
  const Expr *from = prog_expr(p, of->arg[0]);
  *q = of->pick[0] / BYTES_JOINED;
  if (from->kind != EX_var || from->lanes != BYTES_JOINED * x->lanes) return 0;
  for (u32 i = 0; i < x->lanes; i++)
    if (of->pick[i] != byte_in_part(*q, i)) return 0;
  return of->arg[0];
}

const Expr *ex_half_load(const Prog *p, const Expr *x) {
  if (x->kind != EX_op || x->op != OP_bitcast || x->dt != DT_u16) return NULL;
  const Expr *of = prog_expr(p, x->arg[0]);
  bool half = of->kind == EX_load && dtype_is_half(of->dt);
  return half && prog_buf(p, of->ref)->space != BS_reg ? of : NULL;
}

ExprId ex_half_stored(const Prog *p, const Stmt *s) {
  const Buf *b = prog_buf(p, s->buf);
  const Expr *x = prog_expr(p, s->a);
  if (b->space == BS_reg || !dtype_is_half(b->dt) || x->kind != EX_op || x->op != OP_bitcast)
    return 0;
  return prog_expr(p, x->arg[0])->dt == DT_u16 ? x->arg[0] : 0;
}
