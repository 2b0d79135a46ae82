/* cexpr.c: data expressions in C.
 *
 * In: expression trees. Out: C text that is bit-exact with eval.c: integers wrap, casts saturate,
 * and narrow floats are rounded after every operation. cindex.c writes index arithmetic. */
#include "back/c/c.h"

#include "ir/prog/prog_mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- types and names ---- */

const char *c_type(DType dt) {
  static const char *const names[DT_COUNT] = {
      [DT_f64] = "double",   [DT_f32] = "float",   [DT_f16] = "float",    [DT_bf16] = "float",
      [DT_i64] = "int64_t",  [DT_i32] = "int32_t", [DT_i16] = "int16_t",  [DT_i8] = "int8_t",
      [DT_i4] = "int8_t",    [DT_i2] = "int8_t",   [DT_u64] = "uint64_t", [DT_u32] = "uint32_t",
      [DT_u16] = "uint16_t", [DT_u8] = "uint8_t",  [DT_u4] = "uint8_t",   [DT_u2] = "uint8_t",
      [DT_bool] = "uint8_t"};
  if (names[dt]) return names[dt];
  return dtype_is_float(dt) ? "float" : NULL;
}

const char *c_storage(DType dt) {
  if (dtype_is_half(dt)) return "uint16_t";
  if (dtype_is_narrow_float(dt)) return "uint8_t";
  return c_type(dt);
}

/* Conversions between floats and their bits: functions of crt.def and their extra arguments, see
 * eval.c. Functions that may saturate also take `sat`. */
static const struct FloatBits {
  RtSnippet get, put;
  const char *from_bits, *to_bits, *decode, *encode;
} float_bits[DT_COUNT] = {
    [DT_f64] = {RT_of_bits, RT_bits, "ig_of_bits${sfx}(", "ig_bits${sfx}(", "", NULL},
    [DT_f32] = {RT_of_f32_bits, RT_f32_bits, "ig_of_f32_bits${sfx}(", "ig_f32_bits${sfx}(", "",
                NULL},
    [DT_f16] = {RT_get_f16, RT_put_f16, "ig_get_f16${sfx}(", "ig_put_f16${sfx}(", "", NULL},
    [DT_bf16] = {RT_get_bf16, RT_put_bf16, "ig_get_bf16${sfx}(", "ig_put_bf16${sfx}(", "", NULL},
    [DT_f8e8m0] = {RT_get_e8m0, RT_put_e8m0, "ig_get_e8m0${sfx}(", "ig_put_e8m0${sfx}(", "", ""},
#define NARROW(encode, decode)                                                                     \
  { RT_decode, RT_encode, "ig_decode${sfx}(", "ig_encode${sfx}(", ", " decode, ", " encode }
    [DT_f8e4m3fn] = NARROW("3, 7, 0x7e, 0, 0x7f, 0x80", "3, 7, 0, 0x7f, 0x80"),
    [DT_f8e4m3fnuz] = NARROW("3, 8, 0x7f, 0, 0x80, 0x80", "3, 8, 0, 0x80, 0x80"),
    [DT_f8e5m2] = NARROW("2, 15, 0x7b, 0x7c, 0x7d, 0x80", "2, 15, 0x7c, 0x7d, 0x80"),
    [DT_f8e5m2fnuz] = NARROW("2, 16, 0x7f, 0, 0x80, 0x80", "2, 16, 0, 0x80, 0x80"),
    [DT_f4e2m1] = NARROW("1, 1, 7, 0, 0, 8", "1, 1, 0, 0, 8"),
#undef NARROW
};

void c_unsupported(Emit *e, const char *what) {
  fail(e->c, ERR_unsupported, LOC_NONE, "the C back end does not support %s", what);
}

void put_buf_name(Emit *e, BufId b) {
  const Buf *x = prog_buf(e->p, b);
  u32 pos = 0;
  if (e->by_buf.param[b]) {
    put_param_mark(e->t, e->by_buf.param[b] - 1);
    return;
  }
  e->by_buf.used[b] = true;
  switch (x->space) {
  case BS_in:
    while (e->p->in.at[pos] != b) pos++;
    sb_fmt(e->t, "in%u", pos);
    break;
  case BS_out:
    while (e->p->out.at[pos] != b) pos++;
    sb_fmt(e->t, "out%u", pos);
    break;
  case BS_const:
    sb_fmt(e->t, weight_is_string(e, x->data) ? "w%u.at" : "w%u", e->weights.number[b]);
    break;
  case BS_local: sb_fmt(e->t, "s%u", b); break;
  case BS_reg: sb_fmt(e->t, "r%u", b); break;
  default: sb_fmt(e->t, "t%u", b); break;
  }
}

void open_paren(Emit *e, Precedence mine, Precedence at) {
  if (mine < at) sb_puts(e->t, "(");
}
void close_paren(Emit *e, Precedence mine, Precedence at) {
  if (mine < at) sb_puts(e->t, ")");
}

/* ---- constants ---- */

/* A literal that reads back as x, maybe not the shortest. NaN and infinity need no library. */
void put_float(StrBuf *t, bool wide, double x) {
  const char *zero = wide ? "0.0" : "0.0f", *one = wide ? "1.0" : "1.0f";
  char s[40];
  if (isnan(x)) {
    sb_fmt(t, "(%s / %s)", zero, zero);
  } else if (isinf(x)) {
    sb_fmt(t, "(%s%s / %s)", x < 0 ? "-" : "", one, zero);
  } else {
    snprintf(s, sizeof s, wide ? "%.17g" : "%.9g", x);
    for (char *p = s; *p; p++)
      if (*p == ',') *p = '.'; /* the host program may have set a locale */
    sb_fmt(t, "%s%s%s", s, strpbrk(s, ".e") ? "" : ".0", wide ? "" : "f");
  }
}

static void put_int(Emit *e, DType dt, i64 x) {
  if (dt == DT_u64)
    sb_fmt(e->t, "%" PRIu64 "u", (u64)x);
  else if (x == INT64_MIN)
    sb_puts(e->t, "INT64_MIN");
  else if (x > INT32_MAX || x < INT32_MIN)
    sb_fmt(e->t, x < 0 ? "(INT64_C(%" PRId64 "))" : "INT64_C(%" PRId64 ")", x);
  else if (x == INT32_MIN)
    sb_puts(e->t, "INT32_MIN");
  else
    sb_fmt(e->t, x < 0 ? "(%" PRId64 ")" : "%" PRId64, x);
}

/* ---- loads, casts, rounding ---- */

/* Opens a call that converts bits to a float; the caller closes it with the returned text. */
static const char *open_from_bits(Emit *e, DType dt) {
  const struct FloatBits *f = &float_bits[dt];
  if (!f->from_bits) c_unsupported(e, dtype_info[dt].name);
  c_need(e, f->get);
  put_template_text(e, e->t, f->from_bits);
  return str_text(e->c, str_fmt(e->c, "%s)", f->decode));
}

/* Opens a call that converts a float to its bits, as an unsigned integer. */
static const char *open_to_bits(Emit *e, DType dt, bool sat) {
  const struct FloatBits *f = &float_bits[dt];
  if (!f->to_bits) c_unsupported(e, dtype_info[dt].name);
  c_need(e, f->put);
  put_template_text(e, e->t, f->to_bits);
  return f->encode ? str_text(e->c, str_fmt(e->c, "%s, %d)", f->encode, sat)) : ")";
}

/* Default: overflow saturates, unless the type has an infinity. */
static bool saturates(DType dt) {
  return dt != DT_f8e5m2;
}

/* Opens a conversion to the bits in memory. */
static const char *open_code(Emit *e, DType dt) {
  if (float_bits[dt].put == RT_encode) sb_puts(e->t, "(uint8_t)");
  return open_to_bits(e, dt, saturates(dt));
}

static void put_load(Emit *e, const Expr *x) {
  bool coded = dtype_is_narrow_float(x->dt) && prog_buf(e->p, x->ref)->space != BS_reg;
  const char *end = coded ? open_from_bits(e, x->dt) : "";
  put_element(e, x->ref, x->arg, x->narg, x->lanes);
  sb_puts(e->t, end);
}

/* Opens a call that rounds a float to dt; the caller closes it with the returned text. */
static const char *open_round(Emit *e, DType dt, bool sat) {
  if (dt == DT_f32) {
    sb_puts(e->t, "(float)(");
    return ")";
  }
  if (dtype_is_half(dt)) {
    c_need(e, dt == DT_f16 ? RT_rnd_f16 : RT_rnd_bf16);
    put_template(e, e->t, "ig_rnd_%s${sfx}(", dtype_info[dt].name);
    return ")";
  }
  const char *outer = open_from_bits(e, dt), *inner = open_to_bits(e, dt, sat);
  return str_text(e->c, str_fmt(e->c, "%s%s", inner, outer));
}

/* Opens a conversion that wraps an integer to dt. */
static const char *open_wrap(Emit *e, DType dt) {
  u32 bits = dtype_info[dt].bits;
  if (dt == DT_bool) {
    sb_puts(e->t, "((");
    return ") & 1)";
  }
  if (bits >= 8) {
    sb_fmt(e->t, "(%s)(", c_type(dt));
    return ")";
  }
  StrBuf t = sb_new(&e->c->scratch);
  if (dtype_is_signed(dt)) {
    c_need(e, RT_wrap);
    put_template(e, e->t, "(%s)ig_wrap${sfx}(", c_type(dt));
    sb_fmt(&t, ", %u)", bits);
  } else {
    sb_fmt(e->t, "(%s)((", c_type(dt));
    sb_fmt(&t, ") & %u)", (1u << bits) - 1);
  }
  return sb_cstr(&t);
}

/* Saturating functions take the limits; for unsigned operands only the upper one. */
static void put_clamped(Emit *e, DType to, ExprId a, RtSnippet n, const char *name) {
  Scalar lo, hi;
  dtype_limits(to, &lo, &hi);
  c_need(e, n);
  put_template(e, e->t, "(%s)%s${sfx}(", c_type(to), name);
  put_data(e, a, PR_any);
  sb_puts(e->t, ", ");
  if (n != RT_clamp_u) {
    put_int(e, DT_i64, to == DT_u64 ? 0 : lo.i);
    sb_puts(e->t, ", ");
  }
  put_int(e, DT_i64, to == DT_u64 ? INT64_MAX : hi.i);
  sb_puts(e->t, ")");
}

static void put_float_to_int(Emit *e, DType to, ExprId a, bool sat) {
  bool wide = prog_expr(e->p, a)->dt == DT_f64, large = to == DT_u64;
  const char *end = "";
  if (sat && !large) {
    if (!wide && dtype_bytes(to) <= 2)
      put_clamped(e, to, a, RT_clamp_fn, "ig_clamp_fn");
    else
      put_clamped(e, to, a, wide ? RT_clamp_f : RT_clamp_ff, wide ? "ig_clamp_f" : "ig_clamp_ff");
    return;
  }
  c_need(e, sat     ? (wide ? RT_clamp_fu : RT_clamp_fuf)
            : large ? (wide ? RT_to_u64 : RT_to_u64f)
                    : (wide ? RT_to_i64 : RT_to_i64f));
  if (!large) end = open_wrap(e, to);
  put_template(e, e->t, "%s%s${sfx}(",
               sat     ? "ig_clamp_fu"
               : large ? "ig_to_u64"
                       : "ig_to_i64",
               wide ? "" : "f");
  put_data(e, a, PR_any);
  sb_fmt(e->t, ")%s", end);
}

static void put_int_to_int(Emit *e, DType from, DType to, ExprId a, bool sat) {
  if (!sat || from == DT_bool) {
    const char *end = open_wrap(e, to);
    put_data(e, a, PR_any);
    sb_puts(e->t, end);
  } else if (from == DT_u64) {
    put_clamped(e, to, a, RT_clamp_u, "ig_clamp_u");
  } else if (from == DT_i32 && dtype_info[to].bits <= 16) {
    put_clamped(e, to, a, RT_clamp_n, "ig_clamp_n");
  } else {
    put_clamped(e, to, a, RT_clamp_i, "ig_clamp_i");
  }
}

static void put_cast(Emit *e, const Expr *x) {
  DType from = prog_expr(e->p, x->arg[0])->dt, to = x->dt;
  bool ff = dtype_is_float(from), tf = dtype_is_float(to);
  if (from == to) {
    put_data(e, x->arg[0], PR_unary); /* widening never rounds, even if the cast saturates */
  } else if (to == DT_bool) {
    sb_puts(e->t, "(uint8_t)(");
    put_data(e, x->arg[0], PR_rel);
    sb_puts(e->t, " != 0)");
  } else if (ff && tf && (to == DT_f64 || (to == DT_f32 && from != DT_f64))) {
    sb_fmt(e->t, "(%s)", c_type(to));
    put_data(e, x->arg[0], PR_unary);
  } else if (ff && tf) {
    const char *end = open_round(e, to, x->sat);
    put_data(e, x->arg[0], PR_any);
    sb_puts(e->t, end);
  } else if (ff) {
    put_float_to_int(e, to, x->arg[0], x->sat);
  } else if (dtype_is_full_float(to)) {
    sb_fmt(e->t, "(%s)", c_type(to));
    put_data(e, x->arg[0], PR_unary);
  } else if (tf) {
    if (from == DT_u64) c_unsupported(e, "u64 to a narrow float");
    c_need(e, RT_sticky);
    const char *end = open_round(e, to, x->sat);
    put_template(e, e->t, "ig_sticky${sfx}(");
    put_data(e, x->arg[0], PR_any);
    sb_fmt(e->t, ")%s", end);
  } else {
    put_int_to_int(e, from, to, x->arg[0], x->sat);
  }
}

/* The bits of a value as an unsigned integer. */
static void put_bits(Emit *e, ExprId id) {
  DType dt = prog_expr(e->p, id)->dt;
  const char *end = ")";
  if (dtype_is_float(dt))
    end = open_code(e, dt);
  else
    sb_fmt(e->t, "(uint%u_t)(", dtype_bytes(dt) * 8);
  put_data(e, id, PR_any);
  sb_puts(e->t, end);
}

/* ---- operators ---- */

void put_operands(Emit *e, const Expr *x) {
  sb_puts(e->t, "(");
  for (u32 i = 0; i < x->narg; i++) {
    if (i) sb_puts(e->t, ", ");
    put_data(e, x->arg[i], PR_any);
  }
  sb_puts(e->t, ")");
}

static void put_call(Emit *e, const Expr *x, const char *name) {
  put_template(e, e->t, "%s${sfx}", name);
  put_operands(e, x);
}

void put_binary(Emit *e, const Expr *x, const char *op, Precedence mine, Precedence at) {
  open_paren(e, mine, at);
  put_data(e, x->arg[0], mine);
  sb_fmt(e->t, " %s ", op);
  put_data(e, x->arg[1], (Precedence)(mine + 1));
  close_paren(e, mine, at);
}

void put_unary(Emit *e, const char *sign, ExprId x, Precedence at) {
  open_paren(e, PR_unary, at);
  sb_puts(e->t, sign);
  put_data(e, x, PR_atom);
  close_paren(e, PR_unary, at);
}

const char *c_infix(Op op) {
  static const char *const sign[OP_SCALARS] = {
      [OP_add] = "+", [OP_sub] = "-", [OP_mul] = "*", [OP_div] = "/", [OP_eq] = "==",
      [OP_ne] = "!=", [OP_lt] = "<",  [OP_le] = "<=", [OP_gt] = ">",  [OP_ge] = ">=",
      [OP_and] = "&", [OP_or] = "|",  [OP_xor] = "^"};
  return sign[op];
}

/* Functions of crt.def on floats: double, float. */
static const struct FloatCall {
  RtSnippet wide, narrow;
  const char *name;
} float_calls[OP_SCALARS] = {
    [OP_max] = {RT_max, RT_maxf, "ig_max"},       [OP_min] = {RT_min, RT_minf, "ig_min"},
    [OP_abs] = {RT_abs, RT_absf, "ig_abs"},       [OP_sign] = {RT_sign, RT_signf, "ig_sign"},
    [OP_isnan] = {RT_nan, RT_isnanf, "ig_isnan"}, [OP_isinf] = {RT_inff, RT_isinff, "ig_isinf"},
};

static void put_float_call(Emit *e, const Expr *x, bool wide) {
  const struct FloatCall *f = &float_calls[x->op];
  c_need(e, wide ? f->wide : f->narrow);
  put_call(e, x, wide ? f->name : str_text(e->c, str_fmt(e->c, "%sf", f->name)));
}

/* A float operation in f32 or f64; the caller rounds to a narrower type. */
static void put_float_op(Emit *e, const Expr *x, Precedence at, bool wide) {
  bool sum = x->op == OP_add || x->op == OP_sub;
  if (c_infix(x->op)) {
    put_binary(e, x, c_infix(x->op), sum ? PR_add : PR_mul, at);
  } else if (x->op == OP_neg) {
    put_unary(e, "-", x->arg[0], at);
  } else if (x->op == OP_recip) {
    open_paren(e, PR_mul, at);
    sb_puts(e->t, wide ? "1.0 / " : "1.0f / ");
    put_data(e, x->arg[0], PR_unary);
    close_paren(e, PR_mul, at);
  } else if (float_calls[x->op].name) {
    put_float_call(e, x, wide);
  } else {
    MathMode part = math_part(e, x->op, x->dt);
    bool stands_in = x->op == OP_fma && !e->cuda && has_fallback(e);
    e->variant->math[x->op][part] = true;
    Str name = str_fmt(e->c, "im_%s", math_name(e->c, x->op, part));
    put_call(e, x, !stands_in ? str_text(e->c, name) : wide ? "ig_mad64" : "ig_mad");
  }
}

static const struct IntCall {
  RtSnippet s, u;
  const char *sname, *uname;
} int_calls[OP_SCALARS] = {
    [OP_dot_i8x4] = {RT_dot_i8x4, RT_dot_i8x4, "ig_dot_i8x4", "ig_dot_i8x4"},
    [OP_dot_i16x2] = {RT_dot_i16x2, RT_dot_i16x2, "ig_dot_i16x2", "ig_dot_i16x2"},
    [OP_widen_i8x2] = {RT_widen_i8x2, RT_widen_i8x2, "ig_widen_i8x2", "ig_widen_i8x2"},
    [OP_div] = {RT_sdiv, RT_udiv, "ig_sdiv", "ig_udiv"},
    [OP_maddubs] = {RT_maddubs, RT_maddubs, "ig_maddubs", "ig_maddubs"},
    [OP_psign] = {RT_psign, RT_psign, "ig_psign", "ig_psign"},
    [OP_requant] = {RT_requant, RT_requant, "ig_requant", "ig_requant"},
    [OP_mod] = {RT_smod, RT_umod, "ig_smod", "ig_umod"},
    [OP_fmod] = {RT_sfmod, RT_umod, "ig_sfmod", "ig_umod"},
    [OP_pow] = {RT_spow, RT_upow, "ig_spow", "ig_upow"},
    [OP_max] = {RT_smax, RT_umax, "ig_smax", "ig_umax"},
    [OP_min] = {RT_smin, RT_umin, "ig_smin", "ig_umin"},
    [OP_abs] = {RT_sabs, RT_uabs, "ig_sabs", "ig_uabs"},
    [OP_sign] = {RT_ssign, RT_usign, "ig_ssign", "ig_usign"},
};

static void put_shift(Emit *e, const Expr *x) {
  bool is_signed = dtype_is_signed(x->dt), left = x->op == OP_shl;
  i64 n;
  if (left && x->dt == DT_i32 && ex_is_int(e->p, x->arg[1], &n) && n >= 0 && n < 32) {
    sb_puts(e->t, "(int32_t)((uint32_t)");
    put_data(e, x->arg[0], PR_unary);
    sb_fmt(e->t, " << %d)", (int)n);
    return;
  }
  const char *end = open_wrap(e, x->dt);
  c_need(e, left ? RT_shl : is_signed ? RT_sshr : RT_ushr);
  put_template(e, e->t,
               left        ? "ig_shl${sfx}((uint64_t)"
               : is_signed ? "ig_sshr${sfx}("
                           : "ig_ushr${sfx}(");
  put_data(e, x->arg[0], PR_unary);
  sb_puts(e->t, left ? ", (uint64_t)" : ", ");
  put_data(e, x->arg[1], PR_unary);
  sb_fmt(e->t, ", %u)%s", dtype_info[x->dt].bits, end);
}

/* Is the value at least 1 and at most 31? Only constants are examined. */
static bool is_shift(const Prog *p, ExprId id) {
  const Expr *x = prog_expr(p, id);
  if (x->kind == EX_op && x->op == OP_cast) return is_shift(p, x->arg[0]);
  if (x->kind == EX_const) return x->imm.i >= 1 && x->imm.i <= 31;
  const Tensor *t = x->kind == EX_load ? prog_buf(p, prog_root(p, x->ref))->data : NULL;
  if (!t || !t->data) return false;
  for (u64 i = 0; i < t->n; i++)
    if (tensor_get(t, i).i < 1 || tensor_get(t, i).i > 31) return false;
  return true;
}

static void put_int_op(Emit *e, const Expr *x, Precedence at) {
  DType dt = x->dt;
  bool is_signed = dtype_is_signed(dt), wide = dtype_info[dt].bits == 64;
  const char *u = wide ? "(uint64_t)" : "(uint32_t)", *end;
  switch (x->op) {
  case OP_add:
  case OP_sub:
  case OP_mul:
    end = open_wrap(e, dt);
    sb_puts(e->t, u);
    put_data(e, x->arg[0], PR_unary);
    sb_fmt(e->t, " %s %s", c_infix(x->op), u);
    put_data(e, x->arg[1], PR_unary);
    sb_puts(e->t, end);
    return;
  case OP_and:
  case OP_or:
  case OP_xor:
    open_paren(e, PR_any, at);
    put_data(e, x->arg[0], PR_atom);
    sb_fmt(e->t, " %s ", c_infix(x->op));
    put_data(e, x->arg[1], PR_atom);
    close_paren(e, PR_any, at);
    return;
  case OP_not:
    if (dt == DT_bool) {
      sb_puts(e->t, "!");
      put_data(e, x->arg[0], PR_atom);
      return;
    }
    end = open_wrap(e, dt);
    sb_puts(e->t, "~");
    put_data(e, x->arg[0], PR_atom);
    sb_puts(e->t, end);
    return;
  case OP_neg:
    end = open_wrap(e, dt);
    sb_fmt(e->t, "0 - %s", u);
    put_data(e, x->arg[0], PR_unary);
    sb_puts(e->t, end);
    return;
  case OP_shl:
  case OP_shr: put_shift(e, x); return;
  default: break;
  }
  const struct IntCall *call = &int_calls[x->op];
  if (!call->sname) c_unsupported(e, op_info[x->op].name);
  if (x->op == OP_requant && is_shift(e->p, x->arg[2])) {
    c_need(e, RT_requant1);
    put_call(e, x, "ig_requant1");
    return;
  }
  c_need(e, is_signed ? call->s : call->u);
  end = open_wrap(e, dt);
  put_call(e, x, is_signed ? call->sname : call->uname);
  sb_puts(e->t, end);
}

/* Avoids comparisons of an integer with itself, which fusion creates and compilers warn about. */
static bool is_with_itself(Emit *e, const Expr *x) {
  return !dtype_is_float(prog_expr(e->p, x->arg[0])->dt) && ex_same(e->p, x->arg[0], x->arg[1]);
}

static void put_compare(Emit *e, const Expr *x, Precedence at) {
  bool wide = prog_expr(e->p, x->arg[0])->dt == DT_f64;
  if (float_calls[x->op].name) {
    put_float_call(e, x, wide);
  } else if (is_with_itself(e, x)) {
    sb_puts(e->t, x->op == OP_eq || x->op == OP_le || x->op == OP_ge ? "1" : "0");
  } else { /* compilers warn about unparenthesized nested comparisons */
    Precedence mine = x->op == OP_eq || x->op == OP_ne ? PR_eq : PR_rel;
    open_paren(e, mine, at);
    put_data(e, x->arg[0], PR_add);
    sb_fmt(e->t, " %s ", c_infix(x->op));
    put_data(e, x->arg[1], PR_add);
    close_paren(e, mine, at);
  }
}

static void put_op(Emit *e, const Expr *x, Precedence at) {
  if (x->op == OP_cast) {
    open_paren(e, PR_unary, at);
    put_cast(e, x);
    close_paren(e, PR_unary, at);
  } else if (x->op == OP_bitcast) {
    open_paren(e, PR_unary, at);
    const char *end = dtype_is_float(x->dt) ? open_from_bits(e, x->dt) : open_wrap(e, x->dt);
    put_bits(e, x->arg[0]);
    sb_puts(e->t, end);
    close_paren(e, PR_unary, at);
  } else if (x->op == OP_select) {
    open_paren(e, PR_cond, at);
    put_data(e, x->arg[0], PR_or);
    sb_puts(e->t, " ? ");
    put_data(e, x->arg[1], PR_or);
    sb_puts(e->t, " : ");
    put_data(e, x->arg[2], PR_cond);
    close_paren(e, PR_cond, at);
  } else if (op_info[x->op].res == OR_pred) {
    put_compare(e, x, at);
  } else if (!dtype_is_float(x->dt)) {
    open_paren(e, PR_unary, at);
    put_int_op(e, x, PR_unary);
    close_paren(e, PR_unary, at);
  } else if (dtype_is_full_float(x->dt)) {
    put_float_op(e, x, at, x->dt == DT_f64);
  } else {
    const char *end = open_round(e, x->dt, saturates(x->dt));
    put_float_op(e, x, PR_any, false);
    sb_puts(e->t, end);
  }
}

static void put_quad(Emit *e, const Expr *x) {
  const Expr *from = prog_expr(e->p, x->arg[0]);
  bool vectors = e->b.mode == BM_vectors || (e->o->target && e->o->target->micro);
  if (e->cuda) {
    sb_puts(e->t, from->lanes == 2 ? "ig_pair(&" : "ig_quad(&");
  } else if (from->lanes == 2) {
    c_need(e, vectors ? RT_pair_at : RT_pair);
    put_template(e, e->t, vectors ? "ig_pair_at${sfx}(&" : "ig_pair${sfx}(&");
  } else {
    c_need(e, vectors ? RT_quad_at : RT_quad);
    put_template(e, e->t, vectors ? "ig_quad_at${sfx}(&" : "ig_quad${sfx}(&");
  }
  put_element(e, from->ref, from->arg, from->narg, 1);
  sb_puts(e->t, ")");
}

static void put_random(Emit *e, const Expr *x) {
  static const u8 digits[DT_COUNT] = {[DT_f64] = 53, [DT_f32] = 24, [DT_f16] = 11, [DT_bf16] = 8};
  if (!digits[x->dt]) c_unsupported(e, "random numbers of this type");
  c_need(e, RT_random);
  e->random = true;
  put_template(e, e->t, "(%s)ig_random${sfx}((uint64_t)", c_type(x->dt));
  put_data(e, x->arg[0], PR_unary);
  sb_puts(e->t, ", seed, (uint64_t)");
  put_data(e, x->arg[1], PR_unary);
  sb_fmt(e->t, ", %u)", digits[x->dt]);
}

void put_data(Emit *e, ExprId id, Precedence at) {
  const Expr *x = prog_expr(e->p, id);
  if (!c_type(x->dt)) c_unsupported(e, dtype_info[x->dt].name);
  if (x->lanes > 1 && e->b.mode == BM_vectors) {
    put_vector(e, id, at);
    return;
  }
  e->b.frame += x->lanes > 1 ? 64 : 16;
  switch (x->kind) {
  case EX_const:
    if (dtype_is_float(x->dt)) {
      bool minus = signbit(x->imm.f) && !isnan(x->imm.f) && !isinf(x->imm.f);
      open_paren(e, minus ? PR_unary : PR_atom, at);
      put_float(e->t, x->dt == DT_f64, x->imm.f);
      close_paren(e, minus ? PR_unary : PR_atom, at);
    } else
      put_int(e, x->dt, x->imm.i);
    break;
  case EX_var:
    sb_puts(e->t, e->var.at[x->ref]);
    if (x->lanes > 1 && e->b.mode != BM_warp) sb_puts(e->t, "[z]");
    break;
  case EX_load: put_load(e, x); break;
  case EX_op: put_op(e, x, at); break;
  case EX_quad: put_quad(e, x); break;
  case EX_random: put_random(e, x); break;
  case EX_splat: put_data(e, x->arg[0], at); break;
  case EX_shuffle:
    if (e->b.mode == BM_warp)
      put_warp_shuffle(e, x);
    else
      put_shuffle_lane(e, x, 0);
    break;
  default: c_unsupported(e, "a vector expression of this kind"); break;
  }
}

void put_expr(Emit *e, ExprId x) {
  put_data(e, x, PR_any);
}

void put_stored(Emit *e, DType dt, ExprId x) {
  const char *end = dtype_is_narrow_float(dt) ? open_code(e, dt) : "";
  put_data(e, x, PR_any);
  sb_puts(e->t, end);
}
