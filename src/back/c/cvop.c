/* cvop.c: operations on C vectors, bit-exact with eval.c.
 *
 * In: expressions with lanes, legalized for the target. Out: expressions of GNU vector types.
 * Arithmetic, comparisons, bit operations and conversions use operators. Everything else is a
 * function of the file: selects by mask, and loops over lanes around scalar code (exp, saturating
 * casts, narrow floats), which compilers vectorize if they can. A bool is a byte per lane. Between
 * a comparison and a select it stays a mask as wide as the selected elements. */
#include "back/c/c.h"

#include <inttypes.h>

static const char *mine(Emit *e, DType k) {
  return vector_type(e, k, false);
}

/* An integer that fills its C type. */
static bool is_full(DType dt) {
  return !dtype_is_float(dt) && dtype_info[dt].bits >= 8;
}

/* ---- masks ---- */

static void put_call(Emit *e, const Expr *x, const char *name) {
  sb_puts(e->t, name);
  put_operands(e, x);
}

static const char *bits_text(Op op) {
  return op == OP_and ? "&" : op == OP_or ? "|" : op == OP_xor ? "^" : NULL;
}

static bool is_mask_op(const Expr *x) {
  return x->kind == EX_op && (op_info[x->op].res == OR_pred ? x->op != OP_isinf
                              : x->op == OP_cast            ? true
                                                            : bits_text(x->op) || x->op == OP_not);
}

/* A comparison: a mask as wide as the operands. */
static void put_comparison(Emit *e, const Expr *x, DType k) {
  sb_fmt(e->t, "(%s)(", mine(e, signed_of(dtype_bytes(k))));
  const char *call = need_vector(e, op_info[x->op].name, k, NULL);
  if (call) {
    put_call(e, x, call);
  } else if (x->op == OP_cast) {
    put_data(e, x->arg[0], PR_rel);
    sb_puts(e->t, " != 0");
  } else {
    put_binary(e, x, c_infix(x->op), x->op == OP_eq || x->op == OP_ne ? PR_eq : PR_rel, PR_any);
  }
  sb_puts(e->t, ")");
}

/* A vector of bools as a mask of elements of this size: -1 or 0. */
static void put_mask(Emit *e, ExprId id, u32 bytes) {
  Expr x = *prog_expr(e->p, id);
  if (!is_mask_op(&x)) {
    sb_puts(e->t, "-");
    const char *end = open_convert(e, e->t, DT_u8, signed_of(bytes));
    put_data(e, id, PR_any);
    sb_puts(e->t, end);
    return;
  }
  if (op_info[x.op].res == OR_pred || x.op == OP_cast) {
    DType k = c_elem_type(prog_expr(e->p, x.arg[0])->dt);
    const char *end = open_convert(e, e->t, signed_of(dtype_bytes(k)), signed_of(bytes));
    put_comparison(e, &x, k);
    sb_puts(e->t, end);
  } else if (x.op == OP_not) {
    sb_puts(e->t, "~(");
    put_mask(e, x.arg[0], bytes);
    sb_puts(e->t, ")");
  } else {
    sb_puts(e->t, "((");
    put_mask(e, x.arg[0], bytes);
    sb_fmt(e->t, ") %s (", bits_text(x.op));
    put_mask(e, x.arg[1], bytes);
    sb_puts(e->t, "))");
  }
}

/* ---- operations ---- */

static bool is_convertible(DType from, DType to, bool sat) {
  bool wide = dtype_is_full_float(to), full = is_full(from) || from == DT_bool;
  if (dtype_is_float(from)) return wide && (dtype_is_full_float(from) || to == DT_f64);
  if (dtype_is_float(to)) return wide && full;
  return full && is_full(to) && (!sat || from == DT_bool);
}

/* Casts to bytes and requantization; false: x is something else. */
static bool put_bytes(Emit *e, const Expr *x) {
  i64 k;
  DType as;
  ExprId y = ex_bytes(e->p, x, &as, &k);
  if (!y) return false;
  const Expr *of = prog_expr(e->p, y);
  bool in_parts, joined = ex_joins(e->p, of, &in_parts);
  const char *f = in_parts          ? "pack"
                  : joined          ? "join"
                  : x->dt == DT_i16 ? "quantize_i16"
                  : x->dt == DT_f32 ? "requantize"
                                    : "quantize";
  e->b.frame += e->b.w * 64;
  if (joined) e->b.w /= BYTES_JOINED;
  const char *name = NULL;
  if (ex_bytes_small(e->p, x) && x->dt == as)
    name = need_vector(e,
                       in_parts ? "pack_small"
                       : joined ? "join_small"
                                : "quantize_small",
                       as, NULL);
  sb_fmt(e->t, "%s(", name ? name : need_vector(e, f, as, NULL));
  for (u32 i = 0; i < (joined ? of->narg : 1); i++) {
    if (i) sb_puts(e->t, ", ");
    put_data(e, joined ? of->arg[i] : y, PR_any);
  }
  sb_fmt(e->t, ", %d)", (int)k);
  return true;
}

/* Part of a byte vector as floats; false: x is something else. */
static bool put_part(Emit *e, const Expr *x) {
  i64 k;
  u32 q;
  ExprId y = ex_byte_part(e->p, x, &q, &k);
  if (!y) return false;
  const Expr *from = prog_expr(e->p, y);
  e->b.frame += e->b.w * 64;
  sb_fmt(e->t, "%s(%s, %u, %d)", need_vector(e, "part", from->dt, NULL), e->var.at[from->ref], q,
         (int)k);
  return true;
}

static void put_cast(Emit *e, const Expr *x, Precedence at) {
  DType from = prog_expr(e->p, x->arg[0])->dt, to = x->dt;
  if (from == to || (to == DT_f32 && dtype_is_float(from) && from != DT_f64)) {
    put_data(e, x->arg[0], at); /* narrow floats are held as f32 */
  } else if (from == DT_f32 && to == DT_f16) {
    need_narrow(e, to, false);
    need_narrow(e, to, true);
    put_call(e, x, need_vector(e, "round_f16", DT_f32, NULL));
  } else if (is_convertible(from, to, x->sat) || (x->small && from == DT_f32 && to == DT_i32)) {
    const char *end = open_convert(e, e->t, c_elem_type(from), c_elem_type(to));
    put_data(e, x->arg[0], PR_any);
    sb_puts(e->t, end);
  } else {
    put_call(e, x, c_need_loop(e, x, from));
  }
}

static void put_select(Emit *e, const Expr *x) {
  DType k = c_elem_type(x->dt);
  sb_fmt(e->t, "%s(", need_vector(e, "select", k, NULL));
  put_mask(e, x->arg[0], dtype_bytes(k));
  sb_puts(e->t, ", ");
  put_data(e, x->arg[1], PR_any);
  sb_puts(e->t, ", ");
  put_data(e, x->arg[2], PR_any);
  sb_puts(e->t, ")");
}

/* C form of an operation: an operator, or a function of cvop.def. Integers wrap, so they are
 * computed as unsigned. */
typedef struct VecOp {
  const char *sign;
  Precedence prec;
  const char *function;
} VecOp;
static const VecOp float_ops[OP_SCALARS] = {
    [OP_add] = {"+", PR_add, NULL},       [OP_sub] = {"-", PR_add, NULL},
    [OP_mul] = {"*", PR_mul, NULL},       [OP_div] = {"/", PR_mul, NULL},
    [OP_neg] = {"-", PR_unary, NULL},     [OP_max] = {NULL, PR_any, "max"},
    [OP_min] = {NULL, PR_any, "min"},     [OP_abs] = {NULL, PR_any, "abs"},
    [OP_fma] = {NULL, PR_any, "fma"},     [OP_sqrt] = {NULL, PR_any, "sqrt"},
    [OP_round] = {NULL, PR_any, "round"}, [OP_floor] = {NULL, PR_any, "floor"},
    [OP_ceil] = {NULL, PR_any, "ceil"},   [OP_trunc] = {NULL, PR_any, "trunc"},
};
static const VecOp int_ops[OP_SCALARS] = {
    [OP_add] = {"+", PR_any, NULL},
    [OP_sub] = {"-", PR_any, NULL},
    [OP_mul] = {"*", PR_any, NULL},
    [OP_neg] = {"-", PR_any, NULL},
    [OP_max] = {NULL, PR_any, "max"},
    [OP_min] = {NULL, PR_any, "min"},
    [OP_abs] = {NULL, PR_any, "abs"},
    [OP_dot_i8x4] = {NULL, PR_any, "dot_i8x4"},
    [OP_dot_i16x2] = {NULL, PR_any, "dot_i16x2"},
    [OP_maddubs] = {NULL, PR_any, "maddubs"},
    [OP_psign] = {NULL, PR_any, "psign"},
    [OP_requant] = {NULL, PR_any, "requant"},
};

/* Calls a function of cvop.def; false: there is none. */
static bool put_function(Emit *e, const Expr *x, const char *name, DType k) {
  bool loop = x->op == OP_fma || x->op == OP_sqrt;
  const char *f = x->low ? need_vector(e, "dot_i8x4_low", k, NULL) : NULL;
  if (!f) f = need_vector(e, name, k, loop ? c_need_loop(e, x, k) : NULL);
  if (!f) return false;
  if (x->op == OP_dot_i8x4 || x->op == OP_dot_i16x2) {
    e->variant->vec.dot_i8x4 = true;
    e->b.frame += e->b.w * 32; /* its operands and steps, without optimization */
  }
  if (x->op == OP_requant) e->b.frame += e->b.w * 64; /* its steps, without optimization */
  put_call(e, x, f);
  return true;
}

static bool put_float_op(Emit *e, const Expr *x, Precedence at) {
  DType k = c_elem_type(x->dt);
  const VecOp *o = &float_ops[x->op];
  MathMode part = math_part(e, x->op, x->dt);
  const char *call = o->sign ? need_vector(e, op_info[x->op].name, k, NULL) : NULL;
  if (call) {
    put_call(e, x, call);
  } else if (x->op == OP_recip) {
    open_paren(e, PR_mul, at);
    sb_fmt(e->t, "%s(1) / ", need_vector(e, "set", k, NULL));
    put_data(e, x->arg[0], PR_unary);
    close_paren(e, PR_mul, at);
  } else if (o->sign && x->narg == 2) {
    put_binary(e, x, o->sign, o->prec, at);
  } else if (o->sign) {
    put_unary(e, o->sign, x->arg[0], at);
  } else if (o->function) {
    return (!op_is(x->op, OF_ROUNDS) || k == DT_f32) && put_function(e, x, o->function, k);
  } else if (part == MM_q || part == MM_u) {
    put_call(e, x, need_quick(e, x));
  } else {
    return false;
  }
  return true;
}

static void put_wrapped(Emit *e, const Expr *x, const char *op) {
  DType k = c_elem_type(x->dt);
  const char *u = mine(e, unsigned_of(dtype_bytes(k)));
  sb_fmt(e->t, "(%s)(", mine(e, k));
  for (u32 i = 0; i < x->narg; i++) {
    if (i) sb_puts(e->t, " ");
    if (i || x->narg == 1) sb_fmt(e->t, "%s ", op);
    sb_fmt(e->t, "(%s)", u);
    put_data(e, x->arg[i], PR_unary);
  }
  sb_puts(e->t, ")");
}

/* A shift by the same amount in every lane. */
static bool put_shift(Emit *e, const Expr *x) {
  DType k = c_elem_type(x->dt);
  bool left = x->op == OP_shl;
  i64 n = ex_splat_int(e->p, x->arg[1]);
  if (n < 0 || n >= (i64)dtype_info[x->dt].bits) return false;
  sb_fmt(e->t, "(%s)((%s)", mine(e, k), left ? mine(e, unsigned_of(dtype_bytes(k))) : mine(e, k));
  put_data(e, x->arg[0], PR_atom);
  sb_fmt(e->t, " %s %" PRId64 ")", left ? "<<" : ">>", n);
  return true;
}

static bool put_int_op(Emit *e, const Expr *x, Precedence at) {
  const VecOp *o = &int_ops[x->op];
  if (o->sign) {
    put_wrapped(e, x, o->sign);
  } else if (bits_text(x->op)) {
    sb_puts(e->t, "(");
    put_binary(e, x, bits_text(x->op), PR_unary, PR_any);
    sb_puts(e->t, ")");
  } else if (x->op == OP_not) {
    put_unary(e, "~", x->arg[0], at);
  } else if (x->op == OP_shl || x->op == OP_shr) {
    return put_shift(e, x);
  } else {
    bool none = !o->function || (x->op == OP_abs && !dtype_is_signed(x->dt));
    return !none && put_function(e, x, o->function, c_elem_type(x->dt));
  }
  return true;
}

static bool put_bool_op(Emit *e, const Expr *x) {
  if (x->op == OP_isinf || !is_mask_op(x)) return false;
  if (x->op == OP_not) {
    sb_puts(e->t, "(");
    put_data(e, x->arg[0], PR_unary);
    sb_puts(e->t, " ^ 1)");
  } else if (bits_text(x->op)) {
    sb_puts(e->t, "(");
    put_binary(e, x, bits_text(x->op), PR_unary, PR_any);
    sb_puts(e->t, ")");
  } else { /* a comparison */
    DType k = c_elem_type(prog_expr(e->p, x->arg[0])->dt);
    sb_puts(e->t, "(");
    const char *end = open_convert(e, e->t, signed_of(dtype_bytes(k)), DT_u8);
    put_comparison(e, x, k);
    sb_fmt(e->t, "%s & 1)", end);
  }
  return true;
}

static void put_load(Emit *e, const Expr *x, Precedence at, bool bits);

static void put_op(Emit *e, const Expr *x, Precedence at) {
  DType from = prog_expr(e->p, x->arg[x->narg - 1])->dt;
  if (x->op == OP_select) {
    put_select(e, x);
    return;
  }
  if (x->dt == DT_bool && x->op != OP_bitcast) {
    if (from == DT_bool && x->op == OP_cast)
      put_data(e, x->arg[0], at);
    else if (!put_bool_op(e, x))
      put_call(e, x, c_need_loop(e, x, from));
    return;
  }
  if (put_bytes(e, x) || put_part(e, x)) return;
  if (x->op == OP_cast) {
    put_cast(e, x, at);
    return;
  }
  bool fills = (is_full(x->dt) || dtype_is_full_float(x->dt)) &&
               (is_full(from) || dtype_is_full_float(from));
  if (x->op == OP_bitcast && fills) {
    sb_fmt(e->t, "(%s)", mine(e, c_elem_type(x->dt)));
    put_data(e, x->arg[0], PR_unary);
    return;
  }
  const Expr *half = ex_half_load(e->p, x);
  if (half) {
    put_load(e, half, at, true);
    return;
  }
  bool done = x->op != OP_bitcast &&
              (is_full(x->dt) ? put_int_op(e, x, at)
                              : dtype_is_full_float(x->dt) && put_float_op(e, x, at));
  if (!done) put_call(e, x, c_need_loop(e, x, from));
}

/* ---- memory ---- */

static void put_address(Emit *e, BufId b, const ExprId *idx, u32 n) {
  sb_puts(e->t, "&");
  put_element(e, b, idx, n, 1);
}

/* bits: load f16 as u16. */
static void put_load(Emit *e, const Expr *x, Precedence at, bool bits) {
  if (!dtype_is_narrow_float(x->dt) || bits) {
    open_paren(e, PR_unary, at);
    sb_fmt(e->t, "*(const %s *)", vector_type(e, bits ? DT_u16 : c_elem_type(x->dt), true));
    put_address(e, x->ref, x->arg, x->narg);
    close_paren(e, PR_unary, at);
  } else {
    sb_fmt(e->t, "%s(", need_narrow(e, x->dt, false));
    put_address(e, x->ref, x->arg, x->narg);
    sb_puts(e->t, ")");
  }
}

/* A value to be stored as f16, before rounding; the store function rounds. */
static ExprId unrounded(Emit *e, DType to, ExprId id) {
  const Expr *x = prog_expr(e->p, id);
  bool rounds = dtype_is_half(to) && x->kind == EX_op && x->op == OP_cast;
  return rounds && prog_expr(e->p, x->arg[0])->dt == DT_f32 ? x->arg[0] : id;
}

void put_vector_store(Emit *e, const Stmt *s) {
  DType dt = prog_buf(e->p, s->buf)->dt;
  ExprId bits = ex_half_stored(e->p, s);
  bool plain = !dtype_is_narrow_float(dt) || bits;
  e->b.w = prog_expr(e->p, s->a)->lanes;
  if (plain)
    sb_fmt(e->t, "*(%s *)", vector_type(e, bits ? DT_u16 : c_elem_type(dt), true));
  else
    sb_fmt(e->t, "%s(", need_narrow(e, dt, true));
  put_address(e, s->buf, s->idx, s->nidx);
  sb_puts(e->t, plain ? " = " : ", ");
  put_expr(e, bits ? bits : unrounded(e, dt, s->a));
  if (!plain) sb_puts(e->t, ")");
}

/* ---- values ---- */

/* Lanes of one or two vectors as long as the result, or scalars. */
static void put_shuffle(Emit *e, const Expr *x) {
  DType k = c_elem_type(x->dt);
  bool scalars = prog_expr(e->p, x->arg[0])->lanes == 1;
  if (scalars)
    sb_fmt(e->t, "(%s){", mine(e, k));
  else
    sb_fmt(e->t, "IG_SHUFFLE(%s, ", mine(e, signed_of(dtype_bytes(k))));
  for (u32 i = 0; !scalars && i < 2; i++) {
    put_data(e, x->arg[i < x->narg ? i : 0], PR_any);
    sb_puts(e->t, ", ");
  }
  for (u32 i = 0; i < x->lanes; i++) {
    if (i) sb_puts(e->t, ", ");
    if (scalars)
      put_data(e, x->arg[x->pick[i]], PR_any);
    else
      sb_fmt(e->t, "%u", x->pick[i]);
  }
  sb_puts(e->t, scalars ? "}" : ")");
}

static void put_splat(Emit *e, const Expr *x) {
  DType k = c_elem_type(x->dt);
  const Expr *of = prog_expr(e->p, x->arg[0]);
  if (of->kind == EX_const && !of->imm.i) { /* all bits zero */
    sb_fmt(e->t, "(%s){0}", mine(e, k));
    return;
  }
  sb_fmt(e->t, "%s(", need_vector(e, "set", k, NULL));
  put_data(e, x->arg[0], PR_any);
  sb_puts(e->t, ")");
}

void put_vector(Emit *e, ExprId id, Precedence at) {
  const Expr *x = prog_expr(e->p, id);
  e->b.w = x->lanes;
  e->b.frame += x->lanes * dtype_bytes(c_elem_type(x->dt)) + 16;
  switch (x->kind) {
  case EX_var: sb_puts(e->t, e->var.at[x->ref]); break;
  case EX_load: put_load(e, x, at, false); break;
  case EX_splat: put_splat(e, x); break;
  case EX_shuffle: put_shuffle(e, x); break;
  case EX_op: put_op(e, x, at); break;
  default: c_unsupported(e, "a vector expression of this kind");
  }
}

void put_vectors(Emit *e, StrBuf *out) {
  if (!e->variant->vec.twice) return;
  put_template(e, out,
               "#if IG_VECTORS${sfx}\n"
               "#if defined(__clang__) || __GNUC__ >= 12\n"
               "#define IG_SHUFFLE(mask, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)\n"
               "#else\n"
               "#define IG_SHUFFLE(mask, a, b, ...) __builtin_shuffle(a, b, (mask){__VA_ARGS__})\n"
               "#endif\n");
  if (e->variant->vec.fences)
    sb_puts(out, "/* loads through p after this fence are not moved before it */\n"
                 "#define IG_FENCE(p) __asm__ __volatile__(\"\" : \"+r\"(p))\n"
                 "#if defined(__clang__)\n"
                 "#define IG_FENCE_SPILL(p) IG_FENCE(p) /* only clang moves them and spills */\n"
                 "#else\n"
                 "#define IG_FENCE_SPILL(p) ((void)0)\n"
                 "#endif\n");
  if (e->variant->vec.pins)
    sb_puts(out, "/* keeps v in a register, so that it is not reloaded at each use */\n"
                 "#if defined(__x86_64__) || defined(__i386__)\n"
                 "#define IG_PIN(v) __asm__(\"\" : \"+v\"(v))\n"
                 "#elif defined(__aarch64__)\n"
                 "#define IG_PIN(v) __asm__(\"\" : \"+w\"(v))\n"
                 "#else\n#define IG_PIN(v) (void)0\n#endif\n");
  if (e->variant->vec.prefetches)
    sb_puts(out,
            "/* prefetches the cache line n bytes after p */\n"
            "#define IG_PREFETCH(p, n) __builtin_prefetch((const void *)((uintptr_t)(p) + (n)), "
            "0, 2)\n");
  if (e->variant->vec.prefetches_at)
    sb_puts(out, "/* prefetches element i of p, which may be past its end */\n"
                 "#define IG_PREFETCH_AT(p, i) __builtin_prefetch((const void *)((uintptr_t)(p) + "
                 "sizeof *(p) * (uintptr_t)(i)))\n");
  for (DType k = 0; k < DT_COUNT; k++)
    for (u32 i = 1; i < WIDTHS; i++) {
      u32 bytes = dtype_bytes(k) << i;
      if (e->variant->vec.type[k][i])
        put_template(e, out, "typedef %s ig_%sx%u${sfx} __attribute__((vector_size(%u)));\n",
                     c_type(k), dtype_info[k].name, 1u << i, bytes);
      if (e->variant->vec.memory[k][i])
        put_template(e, out,
                     "typedef %s ig_%sx%uu${sfx} __attribute__((vector_size(%u), aligned(%u), "
                     "may_alias));\n",
                     c_type(k), dtype_info[k].name, 1u << i, bytes, dtype_bytes(k));
    }
  sb_put(out, e->variant->vec.text.at, e->variant->vec.text.n);
  sb_puts(out, "#endif\n");
}
