/* cvop.c: values of a piece: operations on C vectors, with the bits that eval.c gives.
 *
 * In: expressions with lanes, and the piece of them that is being written. Out: expressions of GNU
 * vector types. What the extension says by itself is written plainly: arithmetic, comparisons,
 * bits, conversions. Everything else is a function of the file: choices by masks, and for
 * operations that no operator stands for (exp, saturating casts, narrow floats) a loop over lanes
 * around the scalar code, which compilers turn into vectors where they can. A bool is a byte in
 * each lane; between a comparison and a choice it stays a mask, as wide as the elements that it
 * chooses.
 */
#include "back/c/c.h"

#include <inttypes.h>
#include <string.h>

/* ---- types ---- */

static const struct ElemInfo {
  const char *name, *type;
  u32 bytes;
} elems[VE_COUNT] = {
    [VE_f32] = {"f32", "float", 4},    [VE_f64] = {"f64", "double", 8},
    [VE_i8] = {"i8", "int8_t", 1},     [VE_i16] = {"i16", "int16_t", 2},
    [VE_i32] = {"i32", "int32_t", 4},  [VE_i64] = {"i64", "int64_t", 8},
    [VE_u8] = {"u8", "uint8_t", 1},    [VE_u16] = {"u16", "uint16_t", 2},
    [VE_u32] = {"u32", "uint32_t", 4}, [VE_u64] = {"u64", "uint64_t", 8},
};

/* Of values: narrow floats are computed with as f32, narrow integers and bools as bytes. */
Elem elem_of(DType dt) {
  if (dt == DT_f64) return VE_f64;
  if (dtype_is_float(dt)) return VE_f32;
  bool is_signed = dtype_is_signed(dt);
  switch (dtype_bytes(dt)) {
  case 2: return is_signed ? VE_i16 : VE_u16;
  case 4: return is_signed ? VE_i32 : VE_u32;
  case 8: return is_signed ? VE_i64 : VE_u64;
  default: return is_signed ? VE_i8 : VE_u8;
  }
}

u32 elem_bytes(Elem k) {
  return elems[k].bytes;
}

static Elem signed_of(u32 bytes) {
  return bytes == 1 ? VE_i8 : bytes == 2 ? VE_i16 : bytes == 4 ? VE_i32 : VE_i64;
}

static Elem unsigned_of(u32 bytes) {
  return bytes == 1 ? VE_u8 : bytes == 2 ? VE_u16 : bytes == 4 ? VE_u32 : VE_u64;
}

static u32 log2_of(u32 w) {
  u32 n = 0;
  while (w > 1) w /= 2, n++;
  return n;
}

const char *vector_type(Emit *e, Elem k, u32 w) {
  Text t = text_new(e->b.a);
  e->vec_type[k][log2_of(w)] = true;
  put_own(e, &t, "ig_%sx%u@", elems[k].name, w);
  return text_cstr(&t);
}

void put_vector_type(Emit *e, Elem k, u32 w) {
  text_puts(e->t, vector_type(e, k, w));
}

static const char *mine(Emit *e, Elem k) {
  return vector_type(e, k, e->b.piece.w);
}

/* Does memory hold such elements as they are? */
static bool is_plain(DType dt) {
  return dt == DT_f32 || dt == DT_f64 || !dtype_is_float(dt);
}

/* An integer that fills its C type. */
static bool is_full(DType dt) {
  return !dtype_is_float(dt) && dtype_info[dt].bits >= 8;
}

/* Opens conversions of vectors; the caller closes with what is returned. By factors of two in size:
 * for more at once compilers leave the vector registers. */
const char *open_convert(Emit *e, Text *t, Elem from, Elem to) {
  Text end = text_new(e->b.a);
  bool bytes = (from == VE_u8 || from == VE_i8) && (to == VE_i32 || to == VE_f32);
  const char *widen = bytes ? need_widen(e, from) : NULL;
  if (widen) {
    const char *rest = open_convert(e, t, VE_i32, to);
    text_fmt(t, "%s(", widen);
    text_fmt(&end, ")%s", rest);
    return text_cstr(&end);
  }
  while (from != to) {
    bool is_float = from <= VE_f64, to_float = to <= VE_f64;
    u32 have = elems[from].bytes, want = to_float && !is_float && have < 4 ? 4 : elems[to].bytes;
    Elem next = to;
    if (is_float && !to_float)
      next = signed_of(have);
    else if (!is_float && want > 2 * have)
      next = signed_of(2 * have);
    else if (!is_float && want < have / 2)
      next = signed_of(have / 2);
    else if (to_float && !is_float && have < 4)
      next = VE_i32;
    text_puts(t, "__builtin_convertvector(");
    text_fmt(&end, ", %s)", vector_type(e, next, e->b.piece.w));
    from = next;
  }
  return text_cstr(&end);
}

/* ---- functions of the file ---- */

/* Is it to be written? Then the caller appends its text to helper_text. */
bool is_wanted(Emit *e, const char *name) {
  u32 *slot = map_put_bytes(&e->helpers, name, strlen(name));
  return !(*slot)++;
}

static const char *name_of(Emit *e, const char *what, Elem k) {
  Text t = text_new(e->b.a);
  put_own(e, &t, "ig_%s_%sx%u@", what, elems[k].name, e->b.piece.w);
  return text_cstr(&t);
}

static const char *need_set(Emit *e, Elem k) {
  const char *name = name_of(e, "set", k);
  if (!is_wanted(e, name)) return name;
  Text *t = &e->helper_text;
  text_fmt(t, HELPER "%s %s(%s x) {\n  return (%s){", mine(e, k), name, elems[k].type, mine(e, k));
  for (u32 i = 0; i < e->b.piece.w; i++) text_puts(t, i ? ", x" : "x");
  text_puts(t, "};\n}\n");
  return name;
}

const char *need_select(Emit *e, Elem k) {
  const char *name = name_of(e, "select", k);
  if (!is_wanted(e, name)) return name;
  const char *type = mine(e, k), *mask = mine(e, signed_of(elems[k].bytes));
  text_fmt(&e->helper_text,
           HELPER "%s %s(%s m, %s a, %s b) {\n  return (%s)((m & (%s)a) | (~m & (%s)b));\n}\n",
           type, name, mask, type, type, type, mask, mask);
  return name;
}

static u32 bits_of(const Emit *e, Elem k) {
  return e->b.piece.w * elems[k].bytes * 8;
}

const char *x86_prefix(u32 bits) {
  return bits == 128 ? "_mm" : bits == 256 ? "_mm256" : "_mm512";
}

/* Larger and smaller: NaN if either is NaN, the first of equal ones. The instruction of x86 does
 * all of that unless b is NaN, which the compiler rules out where b is a constant. */
static const char *need_extreme(Emit *e, Elem k, bool is_max) {
  const char *op = is_max ? "max" : "min", *name = name_of(e, op, k), *select = need_select(e, k);
  bool is_float = k == VE_f32 || k == VE_f64, x86 = is_float && bits_of(e, k) >= 128;
  if (!is_wanted(e, name)) return name;
  const char *type = mine(e, k), *mask = mine(e, signed_of(elems[k].bytes));
  Text *t = &e->helper_text;
  e->intrinsics = e->intrinsics || x86;
  text_fmt(t, HELPER "%s %s(%s a, %s b) {\n", type, name, type, type);
  if (x86)
    text_fmt(t, "#if defined(__x86_64__)\n  return %s((%s)(b != b), b, %s_%s_%s(b, a));\n#else\n",
             select, mask, x86_prefix(bits_of(e, k)), op, k == VE_f32 ? "ps" : "pd");
  text_fmt(t, "  return %s((%s)(b %s a)%s, b, a);\n", select, mask, is_max ? ">" : "<",
           is_float ? " | (b != b)" : "");
  text_puts(t, x86 ? "#endif\n}\n" : "}\n");
  return name;
}

static const char *need_abs(Emit *e, Elem k) {
  const char *name = name_of(e, "abs", k);
  if (!is_wanted(e, name)) return name;
  const char *type = mine(e, k), *bits = mine(e, unsigned_of(elems[k].bytes));
  text_fmt(&e->helper_text,
           k == VE_f32 || k == VE_f64 ? HELPER "%s %s(%s a) {\n  return (%s)((%s)a << 1 >> 1);\n}\n"
                                      : HELPER
               "%s %s(%s a) {\n  return (%s)(((%s)a ^ (%s)(a < 0)) - (%s)(a < 0));\n}\n",
           type, name, type, type, bits, bits, bits);
  return name;
}

static const char *need_is_nan(Emit *e, Elem k) {
  const char *name = name_of(e, "isnan", k);
  if (!is_wanted(e, name)) return name;
  text_fmt(&e->helper_text, HELPER "%s %s(%s a) {\n  return (%s)(a != a);\n}\n",
           mine(e, signed_of(elems[k].bytes)), name, mine(e, k),
           mine(e, signed_of(elems[k].bytes)));
  return name;
}

/* Saturation of f32 to 8 and 16 bits, whose limits f32 can say. */
static const char *need_clamp(Emit *e, DType to) {
  Text n = text_new(e->b.a);
  put_own(e, &n, "ig_clamp_%sx%u@", dtype_info[to].name, e->b.piece.w);
  const char *name = text_cstr(&n), *select = need_select(e, VE_f32);
  if (!is_wanted(e, name)) return name;
  const char *f = mine(e, VE_f32), *m = mine(e, VE_i32), *type = mine(e, elem_of(to));
  Scalar lo, hi;
  dtype_limits(to, &lo, &hi);
  text_fmt(&e->helper_text,
           HELPER "%s %s(%s x) {\n"
                  "  %s lo = %d.0f - (%s){0}, hi = %d.0f - (%s){0};\n"
                  "  x = (%s)((%s)x & (x == x));\n"
                  "  x = %s(x < lo, lo, x);\n"
                  "  x = %s(x > hi, hi, x);\n"
                  "  return ",
           type, name, f, f, (int)lo.i, f, (int)hi.i, f, f, m, select, select);
  const char *end = open_convert(e, &e->helper_text, VE_f32, elem_of(to));
  text_fmt(&e->helper_text, "x%s;\n}\n", end);
  return name;
}

/* Names of operands in the scalar text of an operation: e->hole. */
void put_scalar_op(Emit *e, const Expr *x, DType from, const char *const *name) {
  Expr op = *x;
  ExprId arg[3];
  op.lanes = 1;
  op.arg = arg;
  for (u32 i = 0; i < x->narg; i++) {
    Expr v = {.kind = EX_var, .dt = from, .lanes = 1, .ref = e->hole[i]};
    if (x->op == OP_select && i == 0) v.dt = DT_bool;
    e->var[e->hole[i]] = name[i];
    arg[i] = ex_new(e->p, &v);
  }
  put_expr(e, ex_new(e->p, &op));
}

/* A loop over lanes around the scalar operation. */
static const char *need_loop(Emit *e, const Expr *x, DType from) {
  static const char *const lane[3] = {"a.at[z]", "b.at[z]", "c.at[z]"};
  Text n = text_new(e->b.a);
  u32 w = e->b.piece.w;
  if (x->op == OP_cast || x->op == OP_bitcast)
    put_own(e, &n, "ig_%s%s_%s_%sx%u@", op_info[x->op].name, x->sat ? "_sat" : "",
            dtype_info[from].name, dtype_info[x->dt].name, w);
  else
    put_own(e, &n, "ig_%s_lanes_%sx%u@", op_info[x->op].name, dtype_info[from].name, w);
  const char *name = text_cstr(&n);
  if (!is_wanted(e, name)) return name;
  Elem k = elem_of(from), r = elem_of(x->dt);
  Text t = text_new(e->b.a), *outer = e->t;
  e->t = &t;
  text_fmt(&t, "static inline %s %s(", mine(e, r), name);
  for (u32 i = 0; i < x->narg; i++) text_fmt(&t, "%s%s %c0", i ? ", " : "", mine(e, k), 'a' + i);
  text_puts(&t, ") {\n");
  for (u32 i = 0; i < x->narg; i++)
    text_fmt(&t, "  union { %s v; %s at[%u]; } %c = {%c0};\n", mine(e, k), elems[k].type, w,
             'a' + i, 'a' + i);
  text_fmt(&t,
           "  union { %s v; %s at[%u]; } r;\n  for (int z = 0; z < %u; z++) r.at[z] = ", mine(e, r),
           elems[r].type, w, w);
  put_scalar_op(e, x, from, lane);
  text_puts(&t, ";\n  return r.v;\n}\n");
  e->t = outer;
  text_put(&e->helper_text, t.at, t.n);
  return name;
}

/* fma and sqrt as the machine's instructions, which no operator of the extension says. */
static const char *need_machine(Emit *e, const Expr *x) {
  Elem k = elem_of(x->dt);
  bool fma = x->op == OP_fma;
  const char *loop = need_loop(e, x, x->dt), *name = name_of(e, op_info[x->op].name, k);
  if (bits_of(e, k) < 128) return loop;
  if (!is_wanted(e, name)) return name;
  Text *t = &e->helper_text;
  const char *type = mine(e, k);
  e->intrinsics = true;
  text_fmt(t, HELPER "%s %s(%s a", type, name, type);
  if (fma) text_fmt(t, ", %s b, %s c", type, type);
  text_fmt(t, ") {\n#if defined(__x86_64__)%s%s\n", fma ? " && " : "",
           fma ? feature_test(e, "FMA") : "");
  text_fmt(t, "  return %s_%s_%s(%s);\n", x86_prefix(bits_of(e, k)), fma ? "fmadd" : "sqrt",
           k == VE_f32 ? "ps" : "pd", fma ? "a, b, c" : "a");
  if (bits_of(e, k) == 128) /* compilers find it in the loop, too, but look for it long */
    text_fmt(t, "#elif defined(__aarch64__) && defined(__ARM_NEON)\n  return %s_%s(%s);\n",
             fma ? "vfmaq" : "vsqrtq", k == VE_f32 ? "f32" : "f64", fma ? "c, a, b" : "a");
  text_fmt(t, "#else\n  return %s(%s);\n#endif\n}\n", loop, fma ? "a, b, c" : "a");
  return name;
}

/* Rounding of f32 to integers, as mathlib.h has it, in operators of the extension: compilers do not
 * make vectors of a loop over it. */
static const char *need_round(Emit *e, Op op) {
  const char *name = name_of(e, op_info[op].name, VE_f32), *select = need_select(e, VE_f32);
  const char *nearest = op == OP_round ? "" : need_round(e, OP_round);
  if (!is_wanted(e, name)) return name;
  const char *f = mine(e, VE_f32), *m = mine(e, VE_i32);
  Text *t = &e->helper_text;
  text_fmt(t, HELPER "%s %s(%s x) {\n  %s m = (%s)x & 0x7fffffff, sign = (%s)x ^ m;\n", f, name, f,
           m, m, m);
  if (op == OP_round)
    text_fmt(t,
             "  %s r = ((%s)m + 0x1p23f) - 0x1p23f;\n"
             "  return %s(m < 0x4b000000, (%s)((%s)r | sign), x);\n}\n",
             f, f, select, f, m);
  else if (op == OP_floor)
    text_fmt(t, "  %s r = %s(x);\n  (void)sign;\n  return %s(r > x, r - 1.0f, r);\n}\n", f, nearest,
             select);
  else if (op == OP_ceil)
    text_fmt(t,
             "  %s r = %s(x), up = (%s)(((%s)(r + 1.0f) & 0x7fffffff) | sign);\n"
             "  return %s(r < x, up, r);\n}\n",
             f, nearest, f, m, select);
  else
    text_fmt(t,
             "  %s a = (%s)m, r = %s(a);\n"
             "  return (%s)((%s)%s(r > a, r - 1.0f, r) | sign);\n}\n",
             f, f, nearest, f, m, select);
  return name;
}

/* ---- masks ---- */

static void put_vec(Emit *e, ExprId id, Prec at);

static void put_args(Emit *e, const char *name, const Expr *x) {
  text_fmt(e->t, "%s(", name);
  for (u32 i = 0; i < x->narg; i++) {
    if (i) text_puts(e->t, ", ");
    put_vec(e, x->arg[i], PR_any);
  }
  text_puts(e->t, ")");
}

static void put_pair(Emit *e, const Expr *x, const char *op, Prec mine, Prec at) {
  open_paren(e, mine, at);
  put_vec(e, x->arg[0], mine);
  text_fmt(e->t, " %s ", op);
  put_vec(e, x->arg[1], (Prec)(mine + 1));
  close_paren(e, mine, at);
}

static const char *bits_text(Op op) {
  return op == OP_and ? "&" : op == OP_or ? "|" : op == OP_xor ? "^" : NULL;
}

static bool is_mask_op(const Expr *x) {
  return x->kind == EX_op && (op_info[x->op].res == OR_pred ? x->op != OP_isinf
                              : x->op == OP_cast            ? true
                                                            : bits_text(x->op) || x->op == OP_not);
}

/* A comparison: all bits of a lane, as wide as the operands. */
static void put_comparison(Emit *e, const Expr *x, Elem k) {
  text_fmt(e->t, "(%s)(", mine(e, signed_of(elems[k].bytes)));
  if (x->op == OP_isnan) {
    put_args(e, need_is_nan(e, k), x);
  } else if (x->op == OP_cast) {
    put_vec(e, x->arg[0], PR_rel);
    text_puts(e->t, " != 0");
  } else {
    put_pair(e, x, c_infix(x->op), x->op == OP_eq || x->op == OP_ne ? PR_eq : PR_rel, PR_any);
  }
  text_puts(e->t, ")");
}

/* A vector of bools as a mask of elements of so many bytes: -1 or 0. */
static void put_mask(Emit *e, ExprId id, u32 bytes) {
  Expr x = *prog_expr(e->p, id);
  if (!is_mask_op(&x) || tmp_name(e, id)) {
    text_puts(e->t, "-");
    const char *end = open_convert(e, e->t, VE_u8, signed_of(bytes));
    put_vec(e, id, PR_any);
    text_puts(e->t, end);
    return;
  }
  if (op_info[x.op].res == OR_pred || x.op == OP_cast) {
    Elem k = elem_of(prog_expr(e->p, x.arg[0])->dt);
    const char *end = open_convert(e, e->t, signed_of(elems[k].bytes), signed_of(bytes));
    put_comparison(e, &x, k);
    text_puts(e->t, end);
  } else if (x.op == OP_not) {
    text_puts(e->t, "~(");
    put_mask(e, x.arg[0], bytes);
    text_puts(e->t, ")");
  } else {
    text_puts(e->t, "((");
    put_mask(e, x.arg[0], bytes);
    text_fmt(e->t, ") %s (", bits_text(x.op));
    put_mask(e, x.arg[1], bytes);
    text_puts(e->t, "))");
  }
}

/* ---- operations ---- */

static bool is_convertible(DType from, DType to, bool sat) {
  bool wide = to == DT_f32 || to == DT_f64, full = is_full(from) || from == DT_bool;
  if (dtype_is_float(from)) return wide && (from == DT_f32 || from == DT_f64 || to == DT_f64);
  if (dtype_is_float(to)) return wide && full;
  return full && is_full(to) && (!sat || from == DT_bool);
}

static void put_cast(Emit *e, const Expr *x, Prec at) {
  DType from = prog_expr(e->p, x->arg[0])->dt, to = x->dt;
  i64 k;
  ExprId y = quantised(e, x, &k);
  if (y) {
    text_fmt(e->t, "%s(", need_quantise(e, to));
    put_vec(e, y, PR_any);
    text_fmt(e->t, ", %d)", (int)k);
    return;
  }
  DType as;
  y = requantised(e, x, &as, &k);
  if (y) {
    text_fmt(e->t, "%s(", need_requantise(e, as));
    put_vec(e, y, PR_any);
    text_fmt(e->t, ", %d)", (int)k);
    return;
  }
  if (from == to || (to == DT_f32 && dtype_is_float(from) && from != DT_f64)) {
    put_vec(e, x->arg[0], at); /* narrow floats are kept as f32 */
  } else if (from == DT_f32 && (to == DT_f16 || to == DT_bf16)) {
    put_args(e, need_half_round(e, to), x);
  } else if (is_convertible(from, to, x->sat)) {
    const char *end = open_convert(e, e->t, elem_of(from), elem_of(to));
    put_vec(e, x->arg[0], PR_any);
    text_puts(e->t, end);
  } else if (x->sat && from == DT_f32 && is_full(to) && dtype_bytes(to) <= 2) {
    put_args(e, need_clamp(e, to), x);
  } else {
    put_args(e, need_loop(e, x, from), x);
  }
}

static void put_select(Emit *e, const Expr *x) {
  Elem k = elem_of(x->dt);
  text_fmt(e->t, "%s(", need_select(e, k));
  put_mask(e, x->arg[0], elems[k].bytes);
  text_puts(e->t, ", ");
  put_vec(e, x->arg[1], PR_any);
  text_puts(e->t, ", ");
  put_vec(e, x->arg[2], PR_any);
  text_puts(e->t, ")");
}

/* false: no operator says it */
static bool put_float_op(Emit *e, const Expr *x, Prec at) {
  Elem k = elem_of(x->dt);
  switch (x->op) {
  case OP_add: put_pair(e, x, "+", PR_add, at); return true;
  case OP_sub: put_pair(e, x, "-", PR_add, at); return true;
  case OP_mul: put_pair(e, x, "*", PR_mul, at); return true;
  case OP_div: put_pair(e, x, "/", PR_mul, at); return true;
  case OP_recip:
    open_paren(e, PR_mul, at);
    text_fmt(e->t, "%s(1) / ", need_set(e, k));
    put_vec(e, x->arg[0], PR_unary);
    close_paren(e, PR_mul, at);
    return true;
  case OP_neg:
    open_paren(e, PR_unary, at);
    text_puts(e->t, "-");
    put_vec(e, x->arg[0], PR_atom);
    close_paren(e, PR_unary, at);
    return true;
  case OP_max: put_args(e, need_extreme(e, k, true), x); return true;
  case OP_min: put_args(e, need_extreme(e, k, false), x); return true;
  case OP_abs: put_args(e, need_abs(e, k), x); return true;
  case OP_fma:
  case OP_sqrt: put_args(e, need_machine(e, x), x); return true;
  case OP_round:
  case OP_floor:
  case OP_ceil:
  case OP_trunc:
    if (k != VE_f32) return false;
    put_args(e, need_round(e, x->op), x);
    return true;
  default: {
    MathPart part = math_part(e, x->op, x->dt);
    if (part != MP_q && part != MP_u) return false;
    put_args(e, need_quick(e, x), x);
    return true;
  }
  }
}

/* Integers wrap: computed unsigned. */
static void put_wrapped(Emit *e, const Expr *x, const char *op) {
  Elem k = elem_of(x->dt);
  const char *u = mine(e, unsigned_of(elems[k].bytes));
  text_fmt(e->t, "(%s)(", mine(e, k));
  for (u32 i = 0; i < x->narg; i++) {
    if (i) text_puts(e->t, " ");
    if (i || x->narg == 1) text_fmt(e->t, "%s ", op);
    text_fmt(e->t, "(%s)", u);
    put_vec(e, x->arg[i], PR_unary);
  }
  text_puts(e->t, ")");
}

/* By the same number of bits in every lane. */
static bool put_shift(Emit *e, const Expr *x) {
  Expr by = *prog_expr(e->p, x->arg[1]);
  Elem k = elem_of(x->dt);
  bool left = x->op == OP_shl;
  i64 n;
  if (by.kind != EX_splat || !ex_is_int(e->p, by.arg[0], &n)) {
    if (by.kind != EX_splat || prog_expr(e->p, by.arg[0])->kind != EX_const) return false;
    n = prog_expr(e->p, by.arg[0])->imm.i;
  }
  if (n < 0 || n >= (i64)dtype_info[x->dt].bits) return false;
  text_fmt(e->t, "(%s)((%s)", mine(e, k), left ? mine(e, unsigned_of(elems[k].bytes)) : mine(e, k));
  put_vec(e, x->arg[0], PR_atom);
  text_fmt(e->t, " %s %" PRId64 ")", left ? "<<" : ">>", n);
  return true;
}

static bool put_int_op(Emit *e, const Expr *x, Prec at) {
  Elem k = elem_of(x->dt);
  switch (x->op) {
  case OP_add: put_wrapped(e, x, "+"); return true;
  case OP_sub:
  case OP_neg: put_wrapped(e, x, "-"); return true;
  case OP_mul: put_wrapped(e, x, "*"); return true;
  case OP_and:
  case OP_or:
  case OP_xor:
    text_puts(e->t, "(");
    put_pair(e, x, bits_text(x->op), PR_unary, PR_any);
    text_puts(e->t, ")");
    return true;
  case OP_not:
    open_paren(e, PR_unary, at);
    text_puts(e->t, "~");
    put_vec(e, x->arg[0], PR_atom);
    close_paren(e, PR_unary, at);
    return true;
  case OP_dot4: put_args(e, need_dot4(e, need_loop(e, x, x->dt), mine(e, k)), x); return true;
  case OP_max: put_args(e, need_extreme(e, k, true), x); return true;
  case OP_min: put_args(e, need_extreme(e, k, false), x); return true;
  case OP_abs:
    if (!dtype_is_signed(x->dt)) return false;
    put_args(e, need_abs(e, k), x);
    return true;
  case OP_shl:
  case OP_shr: return put_shift(e, x);
  default: return false;
  }
}

static bool put_bool_op(Emit *e, const Expr *x) {
  if (x->op == OP_isinf || !is_mask_op(x)) return false;
  if (x->op == OP_not) {
    text_puts(e->t, "(");
    put_vec(e, x->arg[0], PR_unary);
    text_puts(e->t, " ^ 1)");
  } else if (bits_text(x->op)) {
    text_puts(e->t, "(");
    put_pair(e, x, bits_text(x->op), PR_unary, PR_any);
    text_puts(e->t, ")");
  } else { /* a comparison */
    Elem k = elem_of(prog_expr(e->p, x->arg[0])->dt);
    text_puts(e->t, "(");
    const char *end = open_convert(e, e->t, signed_of(elems[k].bytes), VE_u8);
    put_comparison(e, x, k);
    text_fmt(e->t, "%s & 1)", end);
  }
  return true;
}

static void put_op(Emit *e, const Expr *x, Prec at) {
  DType from = prog_expr(e->p, x->arg[x->narg - 1])->dt;
  if (x->op == OP_select) {
    put_select(e, x);
    return;
  }
  if (x->dt == DT_bool && x->op != OP_bitcast) {
    if (from == DT_bool && x->op == OP_cast)
      put_vec(e, x->arg[0], at);
    else if (!put_bool_op(e, x))
      put_args(e, need_loop(e, x, from), x);
    return;
  }
  if (x->op == OP_cast) {
    put_cast(e, x, at);
    return;
  }
  bool fills = (is_full(x->dt) || x->dt == DT_f32 || x->dt == DT_f64) &&
               (is_full(from) || from == DT_f32 || from == DT_f64);
  if (x->op == OP_bitcast && fills) {
    text_fmt(e->t, "(%s)", mine(e, elem_of(x->dt)));
    put_vec(e, x->arg[0], PR_unary);
    return;
  }
  bool done = x->op != OP_bitcast &&
              (is_full(x->dt) ? put_int_op(e, x, at)
                              : (x->dt == DT_f32 || x->dt == DT_f64) && put_float_op(e, x, at));
  if (!done) put_args(e, need_loop(e, x, from), x);
}

/* ---- memory ---- */

const char *memory_type(Emit *e, Elem k) {
  Text t = text_new(e->b.a);
  u32 i = log2_of(e->b.piece.w);
  e->vec_type[k][i] = e->vec_mem[k][i] = true;
  put_own(e, &t, "ig_%sx%uu@", elems[k].name, e->b.piece.w);
  return text_cstr(&t);
}

/* Narrow floats, lane by lane: ig_load_f16x8(p), ig_store_f16x8(p, v). */
static const char *need_narrow(Emit *e, DType dt, bool store) {
  if (dt == DT_f16 || dt == DT_bf16) return need_half(e, dt, store);
  Text n = text_new(e->b.a);
  u32 w = e->b.piece.w;
  put_own(e, &n, "ig_%s_%sx%u@", store ? "store" : "load", dtype_info[dt].name, w);
  const char *name = text_cstr(&n), *type = mine(e, VE_f32);
  if (!is_wanted(e, name)) return name;
  Text t = text_new(e->b.a), *outer = e->t;
  e->t = &t;
  Expr x = {.kind = EX_var, .dt = dt, .lanes = 1, .ref = e->hole[0]};
  if (store) {
    text_fmt(&t, "static inline void %s(%s *p, %s v) {\n  union { %s v; float at[%u]; } a = {v};\n",
             name, c_storage(dt), type, type, w);
    text_fmt(&t, "  for (int z = 0; z < %u; z++) p[z] = ", w);
    e->var[e->hole[0]] = "a.at[z]";
    put_stored(e, dt, ex_new(e->p, &x));
    text_puts(&t, ";\n}\n");
  } else { /* the bits, converted */
    DType bits = dtype_bytes(dt) == 2 ? DT_u16 : DT_u8;
    static const char *const lane[3] = {"p[z]", NULL, NULL};
    Expr op = {.kind = EX_op, .op = OP_bitcast, .dt = dt, .narg = 1};
    text_fmt(&t, "static inline %s %s(const %s *p) {\n  union { %s v; float at[%u]; } r;\n", type,
             name, c_storage(dt), type, w);
    text_fmt(&t, "  for (int z = 0; z < %u; z++) r.at[z] = ", w);
    put_scalar_op(e, &op, bits, lane);
    text_puts(&t, ";\n  return r.v;\n}\n");
  }
  e->t = outer;
  text_put(&e->helper_text, t.at, t.n);
  return name;
}

static void put_address(Emit *e, BufId b, const ExprId *idx, u32 n, u32 lanes) {
  text_puts(e->t, "&");
  put_element(e, b, idx, n, lanes);
}

static void put_load(Emit *e, const Expr *x, Prec at) {
  if (prog_buf(e->p, x->ref)->space == BS_reg) {
    put_reg(e, x->ref, x->arg, x->narg, false);
  } else if (is_plain(x->dt)) {
    open_paren(e, PR_unary, at);
    text_fmt(e->t, "*(const %s *)", memory_type(e, elem_of(x->dt)));
    put_address(e, x->ref, x->arg, x->narg, x->lanes);
    close_paren(e, PR_unary, at);
  } else {
    text_fmt(e->t, "%s(", need_narrow(e, x->dt, false));
    put_address(e, x->ref, x->arg, x->narg, x->lanes);
    text_puts(e->t, ")");
  }
}

/* What is stored as f16 or bf16, before it is rounded: the store rounds. */
static ExprId unrounded(Emit *e, DType to, ExprId id) {
  const Expr *x = prog_expr(e->p, id);
  bool rounds = x->kind == EX_op && x->op == OP_cast && (to == DT_f16 || to == DT_bf16) &&
                prog_expr(e->p, x->arg[0])->dt == DT_f32 && !tmp_name(e, id);
  return rounds ? x->arg[0] : id;
}

void put_piece_store(Emit *e, const Stmt *s) {
  const Buf *b = prog_buf(e->p, s->buf);
  u32 lanes = prog_expr(e->p, s->a)->lanes;
  bool reg = b->space == BS_reg, vector = e->b.piece.w > 1;
  if (vector && !reg && !is_plain(b->dt)) {
    text_fmt(e->t, "%s(", need_narrow(e, b->dt, true));
    put_address(e, s->buf, s->idx, s->nidx, lanes);
    text_puts(e->t, ", ");
    put_vec(e, unrounded(e, b->dt, s->a), PR_any);
    text_puts(e->t, ")");
    return;
  }
  if (vector && !reg) {
    text_fmt(e->t, "*(%s *)", memory_type(e, elem_of(b->dt)));
    put_address(e, s->buf, s->idx, s->nidx, lanes);
  } else {
    put_element(e, s->buf, s->idx, s->nidx, lanes);
  }
  text_puts(e->t, " = ");
  if (vector)
    put_vec(e, s->a, PR_any);
  else
    put_stored(e, reg ? DT_f32 : b->dt, s->a);
}

/* ---- values ---- */

static void put_vec(Emit *e, ExprId id, Prec at) {
  Expr x = *prog_expr(e->p, id);
  const char *tmp = tmp_name(e, id);
  Elem k = elem_of(x.dt);
  if (!c_type(x.dt)) unsupported(e, dtype_info[x.dt].name);
  e->b.frame += e->b.piece.w * elems[k].bytes + 16;
  if (tmp) {
    put_piece_name(e, tmp, x.lanes);
    return;
  }
  switch (x.kind) {
  case EX_var: put_piece_name(e, e->var[x.ref], x.lanes); break;
  case EX_load: put_load(e, &x, at); break;
  case EX_splat:
    text_fmt(e->t, "%s(", need_set(e, k));
    put_data(e, x.arg[0], PR_any);
    text_puts(e->t, ")");
    break;
  case EX_op: put_op(e, &x, at); break;
  default: unsupported(e, "this place of a vector");
  }
}

void put_piece(Emit *e, ExprId id) {
  if (e->b.mode == BM_vectors && e->b.piece.w > 1)
    put_vec(e, id, PR_any);
  else
    put_expr(e, id);
}

void put_vectors(Emit *e, Text *out) {
  if (!e->vectors) return;
  put_own(e, out,
          "#if IG_VECTORS@\n"
          "#if defined(__clang__) || __GNUC__ >= 12\n"
          "#define IG_SHUFFLE(mask, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)\n"
          "#else\n"
          "#define IG_SHUFFLE(mask, a, b, ...) __builtin_shuffle(a, b, (mask){__VA_ARGS__})\n"
          "#endif\n");
  if (e->keeps)
    text_puts(out, "/* loads through p that stand behind this are not done before it */\n"
                   "#define IG_HERE(p) __asm__ __volatile__(\"\" : \"+r\"(p))\n"
                   "#if defined(__clang__)\n"
                   "#define IG_FRESH(p) IG_HERE(p) /* gcc leaves these where they are */\n"
                   "#else\n"
                   "#define IG_FRESH(p) ((void)0)\n"
                   "#endif\n");
  if (e->holds)
    text_puts(out, "/* v is in a register and not loaded again at each use */\n"
                   "#if defined(__x86_64__) || defined(__i386__)\n"
                   "#define IG_HOLD(v) __asm__(\"\" : \"+v\"(v))\n"
                   "#elif defined(__aarch64__)\n"
                   "#define IG_HOLD(v) __asm__(\"\" : \"+w\"(v))\n"
                   "#else\n#define IG_HOLD(v) (void)0\n#endif\n");
  for (u32 k = 0; k < VE_COUNT; k++)
    for (u32 i = 1; i < WIDTHS; i++) {
      u32 bytes = elems[k].bytes << i;
      if (e->vec_type[k][i])
        put_own(e, out, "typedef %s ig_%sx%u@ __attribute__((vector_size(%u)));\n", elems[k].type,
                elems[k].name, 1u << i, bytes);
      if (e->vec_mem[k][i])
        put_own(e, out,
                "typedef %s ig_%sx%uu@ __attribute__((vector_size(%u), aligned(%u), may_alias));\n",
                elems[k].type, elems[k].name, 1u << i, bytes, elems[k].bytes);
    }
  text_put(out, e->helper_text.at, e->helper_text.n);
  text_puts(out, "#endif\n");
}
