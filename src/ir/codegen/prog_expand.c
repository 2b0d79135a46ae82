/* prog_expand.c: expands operations that a machine lacks.
 *
 * In: an expression, and the operations of the machine. Out: the expression with each missing
 * operation that has a row here replaced by a sequence of universal operations with the same bits.
 * Values used twice become variables, in statements before it. Sequences are independent of width:
 * they serve scalars and vectors of any length.
 *
 * f16 and bf16 values that the machine cannot widen are f32 in registers, rounded after each
 * operation except pure selections. Memory accesses use their bits: bitcast.u16(x[0:4]), and y[0:4]
 * = bitcast.f16(..) of u16.
 *
 * Only prog_legalize applies this, so a back end never sees an operation with a row that its
 * machine lacks. Without a row: vector rounding of f64, which the LLVM back end refuses if it has
 * no instruction; fma, which lowering only creates for machines that have it; and f16 or bf16 made
 * from f64 or from integers beyond f32, which must be rounded once. Float to byte conversions have
 * a row for LLVM; C has instructions in cvop.def for them, with portable fallbacks. */
#include "ir/prog/prog.h"

typedef struct Expand {
  Prog *p;
  Arena *a;
  const Caps *has;
  Map *singles; /* by f16 or bf16 variable: the f32 variable that replaces it */
  StmtList *out;
  u32 lanes; /* lanes of the current operation */
} Expand;

/* ---- expressions ---- */

/* A variable may be an operand many times, any other expression once. */
static ExprId use(Expand *q, ExprId id) {
  const Expr *x = prog_expr(q->p, id);
  return x->kind == EX_var ? ex_take(q->p, x) : id;
}

static ExprId make(Expand *q, Expr x, const ExprId *arg, u32 n) {
  x.kind = EX_op;
  x.lanes = q->lanes;
  x.narg = n;
  x.arg = NEWS(q->a, ExprId, n);
  for (u32 i = 0; i < n; i++) x.arg[i] = use(q, arg[i]);
  return ex_take(q->p, &x);
}

static ExprId op2(Expand *q, Op op, ExprId a, ExprId b) {
  DType dt = op_info[op].res == OR_pred ? DT_bool : prog_expr(q->p, a)->dt;
  return make(q, (Expr){.op = op, .dt = dt}, (ExprId[]){a, b}, 2);
}

static ExprId op3(Expand *q, Op op, ExprId a, ExprId b, ExprId c) {
  DType dt = prog_expr(q->p, b)->dt;
  return make(q, (Expr){.op = op, .dt = dt}, (ExprId[]){a, b, c}, 3);
}

static ExprId cast(Expand *q, DType to, ExprId a) {
  if (prog_expr(q->p, a)->dt == to) return a;
  return make(q, (Expr){.op = OP_cast, .dt = to}, &a, 1);
}

static ExprId bits(Expand *q, DType to, ExprId a) {
  const Expr *x = prog_expr(q->p, a);
  bool back = x->kind == EX_op && x->op == OP_bitcast && prog_expr(q->p, x->arg[0])->dt == to;
  if (x->dt == to || back) return back ? x->arg[0] : a;
  return make(q, (Expr){.op = OP_bitcast, .dt = to}, &a, 1);
}

static ExprId number(Expand *q, DType dt, Scalar x) {
  Expr one = {.kind = EX_const, .dt = dt, .lanes = 1, .imm = x};
  ExprId id = ex_take(q->p, &one);
  if (q->lanes == 1) return id;
  Expr all = {.kind = EX_splat, .dt = dt, .lanes = q->lanes, .narg = 1};
  all.arg = arena_copy(q->a, &id, sizeof id);
  return ex_take(q->p, &all);
}

static ExprId real(Expand *q, double x) {
  return number(q, DT_f32, (Scalar){.f = x});
}

/* A constant as i32 bits. */
static ExprId word(Expand *q, u32 x) {
  return number(q, DT_i32, (Scalar){.i = (i32)x});
}

static ExprId let(Expand *q, ExprId id) {
  const Expr *x = prog_expr(q->p, id);
  if (x->kind == EX_var) return id;
  VarId v = prog_add_var(q->p, x->dt, str_of(q->p->c, "t"));
  prog_var(q->p, v)->lanes = x->lanes;
  Stmt s = {.kind = ST_let, .var = v, .a = id, .step = 1, .loc = LOC_NONE};
  Expr var = {.kind = EX_var, .dt = x->dt, .lanes = x->lanes, .ref = v};
  stmts_add(q->p, q->out, &s);
  return ex_take(q->p, &var);
}

static ExprId shifted(Expand *q, Op op, ExprId x, u32 by) {
  return by ? op2(q, op, x, word(q, by)) : x;
}

static ExprId masked(Expand *q, ExprId x, u32 mask) {
  return op2(q, OP_and, x, word(q, mask));
}

/* ---- rounding floats to integral values ---- */

/* Adds and subtracts 2^23 to round the magnitude; larger numbers are integral already, and NaN
 * stays NaN. Zeros have the sign of x. */
static ExprId nearest(Expand *q, ExprId x) {
  ExprId i = let(q, bits(q, DT_i32, x)), m = let(q, masked(q, i, 0x7fffffff));
  ExprId sum = op2(q, OP_add, bits(q, DT_f32, m), real(q, 0x1p23));
  ExprId r = bits(q, DT_i32, op2(q, OP_sub, sum, real(q, 0x1p23)));
  r = op2(q, OP_or, r, op2(q, OP_xor, i, m));
  ExprId fits = op2(q, OP_lt, m, word(q, 0x4b000000));
  return op3(q, OP_select, fits, bits(q, DT_f32, r), x);
}

static ExprId down(Expand *q, ExprId x) {
  ExprId r = let(q, nearest(q, x));
  return op3(q, OP_select, op2(q, OP_gt, r, x), op2(q, OP_sub, r, real(q, 1)), r);
}

/* r with the sign of x. */
static ExprId with_sign(Expand *q, ExprId r, ExprId x) {
  ExprId m = masked(q, bits(q, DT_i32, r), 0x7fffffff);
  return bits(q, DT_f32, op2(q, OP_or, m, masked(q, bits(q, DT_i32, x), 0x80000000)));
}

static ExprId up(Expand *q, ExprId x) {
  ExprId r = let(q, nearest(q, x)), next = op2(q, OP_add, r, real(q, 1));
  return op3(q, OP_select, op2(q, OP_lt, r, x), with_sign(q, next, x), r);
}

static ExprId towards_zero(Expand *q, ExprId x) {
  ExprId m = bits(q, DT_f32, masked(q, bits(q, DT_i32, x), 0x7fffffff));
  return with_sign(q, down(q, let(q, m)), x);
}

/* Narrower floats are rounded as f32, which is exact. */
static ExprId rounded(Expand *q, const Expr *x, const ExprId *arg) {
  ExprId a = let(q, cast(q, DT_f32, arg[0]));
  ExprId r = x->op == OP_floor   ? down(q, a)
             : x->op == OP_ceil  ? up(q, a)
             : x->op == OP_trunc ? towards_zero(q, a)
                                 : nearest(q, a);
  return cast(q, x->dt, r);
}

/* ---- dot products of bytes and of int16 ---- */

static ExprId signed_field(Expand *q, ExprId x, u32 at, u32 n) {
  return shifted(q, OP_shr, shifted(q, OP_shl, x, 32 - at - n), 32 - n);
}

/* c + the products of n-bit fields `from` to `to`. */
static ExprId products(Expand *q, const ExprId *arg, u32 from, u32 to, u32 n, ExprId c) {
  for (u32 at = from; at < to; at += n) {
    ExprId a =
        n == 8 ? masked(q, shifted(q, OP_shr, arg[0], at), 0xff) : signed_field(q, arg[0], at, n);
    ExprId product = op2(q, OP_mul, a, signed_field(q, arg[1], at, n));
    c = c ? op2(q, OP_add, c, product) : product;
  }
  return c;
}

static ExprId dot_i16x2(Expand *q, const Expr *x, const ExprId *arg) {
  (void)x;
  return products(q, arg, 0, 32, 16, arg[2]);
}

/* With dot_i16x2, if the machine has it: bytes of b move to the upper half of an int16, which keeps
 * their sign; sums are 256 times as large and still fit in 32 bits. */
static ExprId dot_i8x4(Expand *q, const Expr *x, const ExprId *arg) {
  if (!caps_has(q->has, CAP_dot_i16x2, x->lanes)) return products(q, arg, 0, 32, 8, arg[2]);
  ExprId odd = masked(q, shifted(q, OP_shr, arg[0], 8), 0x00ff00ff);
  ExprId sum = op3(q, OP_dot_i16x2, odd, masked(q, arg[1], 0xff00ff00), word(q, 0));
  ExprId even = masked(q, arg[0], 0x00ff00ff);
  sum = op3(q, OP_dot_i16x2, even, masked(q, shifted(q, OP_shl, arg[1], 8), 0xff00ff00), sum);
  return op2(q, OP_add, arg[2], shifted(q, OP_shr, sum, 8));
}

/* Saturates to int16. */
static ExprId saturated(Expand *q, ExprId x) {
  return op2(q, OP_min, op2(q, OP_max, x, word(q, (u32)INT16_MIN)), word(q, INT16_MAX));
}

static ExprId maddubs(Expand *q, const Expr *x, const ExprId *arg) {
  (void)x;
  ExprId lo = saturated(q, products(q, arg, 0, 16, 8, 0));
  ExprId hi = shifted(q, OP_shl, saturated(q, products(q, arg, 16, 32, 8, 0)), 16);
  ExprId low = masked(q, op2(q, OP_add, arg[2], lo), 0xffff);
  return op2(q, OP_or, low, masked(q, op2(q, OP_add, arg[2], hi), 0xffff0000));
}

/* Sets all bits of each byte whose highest bit is set in x. */
static ExprId spread_high(Expand *q, ExprId x) {
  ExprId one = let(q, masked(q, shifted(q, OP_shr, x, 7), 0x01010101));
  return op2(q, OP_sub, shifted(q, OP_shl, one, 8), one);
}

/* Four bytes in one 32-bit word. A byte is negated as complement plus 1; the carry stays in it,
 * because its highest bit is added without carry. A byte is 0 unless adding 127 to its lower bits
 * reaches the highest bit, or that is set. */
static ExprId psign(Expand *q, const Expr *x, const ExprId *arg) {
  (void)x;
  ExprId b = arg[1], minus = let(q, spread_high(q, b));
  ExprId some = op2(q, OP_add, masked(q, b, 0x7f7f7f7f), word(q, 0x7f7f7f7f));
  ExprId turned = let(q, op2(q, OP_xor, arg[0], minus));
  ExprId low = op2(q, OP_add, masked(q, turned, 0x7f7f7f7f), masked(q, minus, 0x01010101));
  ExprId r = op2(q, OP_xor, low, masked(q, turned, 0x80808080));
  return op2(q, OP_and, r, spread_high(q, op2(q, OP_or, b, some)));
}

/* ---- saturation ---- */

/* Clamps x to the limits of `to` that `from` can exceed, in the type `from`. */
static ExprId between(Expand *q, DType from, DType to, ExprId x) {
  Scalar lo, hi, from_lo, from_hi;
  dtype_limits(to, &lo, &hi);
  dtype_limits(from, &from_lo, &from_hi);
  if (to == DT_u64) lo.i = 0;
  if (to != DT_u64 && (from == DT_u64 || from_hi.i > hi.i))
    x = op2(q, OP_min, x, number(q, from, hi));
  bool low = dtype_is_signed(from) && from_lo.i < lo.i;
  if (low) x = op2(q, OP_max, x, number(q, from, lo));
  return x;
}

/* The 16-bit limits are exact in f32; NaN becomes 0. */
static ExprId clamped(Expand *q, const Expr *x, ExprId a) {
  Scalar lo, hi;
  dtype_limits(x->dt, &lo, &hi);
  if (!x->small) a = let(q, op3(q, OP_select, op2(q, OP_eq, a, a), a, real(q, 0)));
  ExprId min = real(q, (double)lo.i), max = real(q, (double)hi.i);
  a = let(q, op3(q, OP_select, op2(q, OP_lt, a, real(q, (double)lo.i)), min, a));
  a = op3(q, OP_select, op2(q, OP_gt, a, real(q, (double)hi.i)), max, a);
  a = make(q, (Expr){.op = OP_cast, .dt = DT_i32, .sat = true, .small = true}, &a, 1);
  return cast(q, x->dt, a);
}

static ExprId saturate(Expand *q, const Expr *x, const ExprId *arg) {
  DType from = prog_expr(q->p, arg[0])->dt;
  ExprId a = arg[0];
  if (from == DT_f64) { /* the limits of i32 include the narrow ones */
    a = make(q, (Expr){.op = OP_cast, .dt = DT_i32, .sat = true}, &a, 1);
    from = DT_i32;
  }
  if (dtype_is_float(from)) return clamped(q, x, let(q, cast(q, DT_f32, a)));
  return cast(q, x->dt, between(q, from, x->dt, a));
}

/* round(y) + k as a byte, and conversions of that: see ex_bytes. The bounds are integers, so
 * clamping comes first; adding 1.5 * 2^23 rounds. NaN becomes the lower bound, which is 0 for
 * unsigned bytes; otherwise it is replaced by 0. */
static ExprId bytes(Expand *q, const Expr *x, ExprId y, DType as, i64 k) {
  Scalar min, max;
  dtype_limits(as, &min, &max);
  double lo = (double)(min.i - k), hi = (double)(max.i - k);
  y = let(q, y);
  ExprId t = let(q, op3(q, OP_select, op2(q, OP_gt, y, real(q, lo)), y, real(q, lo)));
  t = op3(q, OP_select, op2(q, OP_lt, t, real(q, hi)), t, real(q, hi));
  t = op2(q, OP_add, t, real(q, 0x1.8p23));
  bool zero = dtype_is_signed(as) && !ex_bytes_small(q->p, x), whole = x->dt == DT_f32;
  i64 add = x->dt == DT_i16 ? 0 : k; /* i16 values are less k */
  ExprId r = whole ? op2(q, OP_sub, t, real(q, 0x1.8p23))
                   : op2(q, OP_add, bits(q, DT_i32, t), word(q, (u32)(add - 0x4b400000)));
  ExprId none = whole ? real(q, (double)-k) : word(q, (u32)(add - k));
  if (zero) r = op3(q, OP_select, op2(q, OP_eq, y, y), r, none);
  return cast(q, x->dt, r);
}

/* ---- f16 and bf16 ---- */

static bool lacks_half(const Caps *has, DType dt, u32 lanes) {
  return dtype_is_half(dt) && !caps_has(has, dt == DT_f16 ? CAP_f16 : CAP_bf16, lanes);
}

/* Multiplying by 2^112 moves the exponent into place and normalizes subnormals; infinities and NaN
 * get all exponent bits set again. */
static ExprId widened(Expand *q, DType from, ExprId u16) {
  ExprId u = cast(q, DT_i32, u16);
  if (from == DT_bf16) return bits(q, DT_f32, shifted(q, OP_shl, u, 16));
  u = let(q, u);
  ExprId m = let(q, shifted(q, OP_shl, masked(q, u, 0x7fff), 13));
  ExprId f = bits(q, DT_i32, op2(q, OP_mul, bits(q, DT_f32, m), real(q, 0x1p112)));
  ExprId finite = op2(q, OP_lt, m, word(q, 0xf800000)), zero = word(q, 0);
  f = op2(q, OP_or, f, op3(q, OP_select, finite, zero, word(q, 0x7f800000)));
  return bits(q, DT_f32, op2(q, OP_or, f, shifted(q, OP_shl, masked(q, u, 0x8000), 16)));
}

/* Rounds to nearest, ties to even. Normal numbers: adds half of the dropped part, less one if the
 * last kept bit is 0. Subnormals: adds 0.5, whose last bit has the weight of the smallest f16.
 * Larger numbers become infinite; NaN stays NaN. */
static ExprId f16_bits(Expand *q, ExprId y) {
  ExprId u = let(q, bits(q, DT_i32, y)), a = let(q, masked(q, u, 0x7fffffff));
  ExprId top = let(q, shifted(q, OP_shr, a, 13)), odd = masked(q, top, 1);
  ExprId n = op2(q, OP_add, op2(q, OP_add, a, word(q, 0xfff - 0x38000000)), odd);
  ExprId s = bits(q, DT_i32, op2(q, OP_add, bits(q, DT_f32, a), real(q, 0.5)));
  s = op2(q, OP_sub, s, word(q, 0x3f000000));
  n = op3(q, OP_select, op2(q, OP_lt, a, word(q, 0x38800000)), s, shifted(q, OP_shr, n, 13));
  ExprId nan = op2(q, OP_or, masked(q, top, 0x3ff), word(q, 0x7e00)), inf = word(q, 0x7c00);
  ExprId over = op3(q, OP_select, op2(q, OP_gt, a, word(q, 0x7f800000)), nan, inf);
  n = op3(q, OP_select, op2(q, OP_lt, a, word(q, 0x47800000)), n, over);
  return op2(q, OP_or, n, masked(q, shifted(q, OP_shr, u, 16), 0x8000));
}

static ExprId bf16_bits(Expand *q, ExprId y) {
  ExprId u = let(q, bits(q, DT_i32, y)), top = let(q, shifted(q, OP_shr, u, 16));
  ExprId n = op2(q, OP_add, op2(q, OP_add, u, word(q, 0x7fff)), masked(q, top, 1));
  ExprId nan = op2(q, OP_gt, masked(q, u, 0x7fffffff), word(q, 0x7f800000));
  return op3(q, OP_select, nan, op2(q, OP_or, top, word(q, 0x40)), shifted(q, OP_shr, n, 16));
}

static ExprId narrowed(Expand *q, DType to, ExprId y) {
  return cast(q, DT_u16, to == DT_f16 ? f16_bits(q, y) : bf16_bits(q, y));
}

static bool is_in_memory(const Prog *p, const Expr *x) {
  return x->kind == EX_load && prog_buf(p, x->ref)->space != BS_reg;
}

/* Does f32 hold every number of the type? */
static bool is_single(DType dt) {
  return dtype_is_float(dt) ? dt != DT_f64 : dtype_info[dt].bits <= 16;
}

/* Is the cast through f32 rounded like a direct one? */
static bool rounds_single(const Prog *p, const Expr *x) {
  return x->kind == EX_op && x->op == OP_cast && is_single(prog_expr(p, x->arg[0])->dt);
}

static bool only_chooses(Op op) {
  return op == OP_select || op == OP_max || op == OP_min || op == OP_neg || op == OP_abs;
}

static ExprId single(Expand *q, ExprId id);

/* The expression computed in f32, with its operands. */
static ExprId of_singles(Expand *q, Expr x) {
  const ExprId *arg = x.arg;
  u32 lanes = x.lanes;
  x.dt = DT_f32;
  x.arg = x.narg ? NEWS(q->a, ExprId, x.narg) : NULL;
  for (u32 i = 0; i < x.narg; i++)
    x.arg[i] = dtype_is_half(prog_expr(q->p, arg[i])->dt) ? single(q, arg[i]) : arg[i];
  q->lanes = lanes;
  bool same = x.kind == EX_op && x.op == OP_cast && prog_expr(q->p, x.arg[0])->dt == DT_f32;
  return same ? x.arg[0] : ex_take(q->p, &x);
}

/* The f32 variable that replaces an f16 or bf16 one; unchanged if declared elsewhere. */
static ExprId single_var(Expand *q, ExprId id) {
  Expr x = *prog_expr(q->p, id);
  const u32 *v = map_get(q->singles, x.ref);
  if (!v) return cast(q, DT_f32, id);
  x.dt = DT_f32;
  x.ref = *v;
  return ex_take(q->p, &x);
}

/* Rounds y, an f32, to the 16-bit type. */
static ExprId rounded_to(Expand *q, DType half, ExprId y) {
  return widened(q, half, narrowed(q, half, y));
}

/* Lane by lane, each step rounded. */
static ExprId reduced(Expand *q, Expr x) {
  ExprId from = let(q, single(q, x.arg[0])), sum = 0;
  u32 n = prog_expr(q->p, from)->lanes;
  q->lanes = 1;
  for (u32 i = 0; i < n; i++) {
    u8 *pick = NEWS(q->a, u8, 1);
    pick[0] = (u8)i;
    Expr e = {.kind = EX_shuffle, .dt = DT_f32, .lanes = 1, .narg = 1, .pick = pick};
    e.arg = NEWS(q->a, ExprId, 1);
    e.arg[0] = use(q, from);
    ExprId lane = ex_take(q->p, &e);
    if (i) lane = op2(q, x.op, sum, lane);
    sum = i && !only_chooses(x.op) ? rounded_to(q, x.dt, lane) : lane;
  }
  return sum;
}

/* An f16 or bf16 expression as f32. Its operands are legal. */
static ExprId single(Expand *q, ExprId id) {
  Expr x = *prog_expr(q->p, id);
  q->lanes = x.lanes;
  if (is_in_memory(q->p, &x)) return widened(q, x.dt, bits(q, DT_u16, id));
  if (x.kind == EX_var) return single_var(q, id);
  if (x.kind == EX_const || x.kind == EX_splat || x.kind == EX_shuffle) return of_singles(q, x);
  if (x.kind == EX_hreduce) return reduced(q, x);
  if (x.kind != EX_op) return cast(q, DT_f32, id);
  if (x.op == OP_bitcast) return widened(q, x.dt, bits(q, DT_u16, x.arg[0]));
  if (x.op == OP_cast && !rounds_single(q->p, &x)) return cast(q, DT_f32, id);
  ExprId r = of_singles(q, x);
  return only_chooses(x.op) ? r : rounded_to(q, x.dt, r);
}

/* The bits of an f16 or bf16 expression, as u16. */
static ExprId half_bits(Expand *q, ExprId id) {
  Expr x = *prog_expr(q->p, id);
  q->lanes = x.lanes;
  if (is_in_memory(q->p, &x)) return bits(q, DT_u16, id);
  if (x.kind == EX_op && x.op == OP_bitcast) return bits(q, DT_u16, x.arg[0]);
  ExprId y = rounds_single(q->p, &x) ? of_singles(q, x) : single(q, id);
  q->lanes = x.lanes;
  return narrowed(q, x.dt, y);
}

/* Converts 16-bit float operands of an expression of another type: a comparison or a cast. */
static bool take_singles(Expand *q, Expr *x) {
  bool some = false;
  for (u32 i = 0; i < x->narg && x->kind == EX_op; i++) {
    const Expr *a = prog_expr(q->p, x->arg[i]);
    if (!lacks_half(q->has, a->dt, a->lanes)) continue;
    if (x->op == OP_bitcast && is_in_memory(q->p, a)) continue;
    x->arg[i] = x->op == OP_bitcast ? half_bits(q, x->arg[i]) : single(q, x->arg[i]);
    some = true;
  }
  return some;
}

/* ---- table of expansions ---- */

static bool saturates(const Prog *p, const Expr *x) {
  DType from = prog_expr(p, x->arg[0])->dt;
  bool ints = (dtype_is_int(from) || from == DT_bool) && dtype_is_int(x->dt);
  bool narrow = dtype_is_int(x->dt) && dtype_info[x->dt].bits <= 16;
  return x->sat && from != x->dt && (ints || (dtype_is_float(from) && narrow));
}

static bool is_rounding(const Prog *p, const Expr *x) {
  (void)p;
  return x->dt != DT_f64;
}

static const struct Row {
  u32 needs;                                  /* CAP_ bit of machines that have the operation */
  bool (*fits)(const Prog *p, const Expr *x); /* NULL: always */
  ExprId (*make)(Expand *q, const Expr *x, const ExprId *arg); /* operands are variables */
} rows[OP_SCALARS] = {
    [OP_round] = {CAP_round, is_rounding, rounded},
    [OP_floor] = {CAP_round, is_rounding, rounded},
    [OP_ceil] = {CAP_round, is_rounding, rounded},
    [OP_trunc] = {CAP_round, is_rounding, rounded},
    [OP_dot_i8x4] = {CAP_dot_i8x4, NULL, dot_i8x4},
    [OP_dot_i16x2] = {CAP_dot_i16x2, NULL, dot_i16x2},
    [OP_maddubs] = {CAP_maddubs, NULL, maddubs},
    [OP_psign] = {CAP_psign, NULL, psign},
    [OP_cast] = {CAP_saturate, saturates, saturate},
};

/* NULL: the machine has it, or the table does not. */
static const struct Row *row_of(const Prog *p, const Caps *has, const Expr *x) {
  const struct Row *r = x->kind == EX_op ? &rows[x->op] : NULL;
  bool lacks = r && r->make && !caps_has(has, r->needs, x->lanes) && (!r->fits || r->fits(p, x));
  return lacks ? r : NULL;
}

Caps caps_scalars(const Target *t) {
  u32 of_target = t ? t->has | (t->fma ? CAP_fma : 0) : CAP_all;
  return (Caps){CAP_all, of_target, t ? 0 : CAP_all, true, false};
}

Caps caps_warp(void) {
  return (Caps){.scalars = CAP_all, .registers = CAP_all, .others = CAP_all, .apart = true};
}

bool caps_has(const Caps *has, u32 what, u32 lanes) {
  bool fills = lanes == 4 || lanes == 8 || lanes == 16;
  return (lanes == 1 ? has->scalars : fills ? has->registers : has->others) & what;
}

static void replace(Expand *q, ExprId id) {
  const Expr *at = prog_expr(q->p, id);
  if (!at->narg || (at->lanes == 1 && q->has->scalars == CAP_all)) return;
  Expr x = *at;
  DType as;
  i64 k;
  ExprId y = ex_bytes(q->p, &x, &as, &k), made, arg[3] = {0};
  if (y) {
    replace(q, y);
    if (q->has->bytes) return;
    q->lanes = x.lanes;
    made = bytes(q, &x, y, as, k);
  } else {
    for (u32 i = 0; i < x.narg; i++) replace(q, x.arg[i]);
    if (!dtype_is_half(x.dt) && take_singles(q, &x)) {
      bool same = (x.op == OP_cast || x.op == OP_bitcast) && prog_expr(q->p, x.arg[0])->dt == x.dt;
      *prog_expr(q->p, id) = same ? *prog_expr(q->p, x.arg[0]) : x;
    }
    const struct Row *r = row_of(q->p, q->has, &x);
    if (!r) return;
    for (u32 i = 0; i < x.narg; i++) {
      const Expr *e = prog_expr(q->p, x.arg[i]);
      arg[i] = let(q, lacks_half(q->has, e->dt, e->lanes) ? single(q, x.arg[i]) : x.arg[i]);
    }
    q->lanes = x.lanes;
    made = r->make(q, &x, arg);
  }
  *prog_expr(q->p, id) = *prog_expr(q->p, made);
}

void ex_legalize(const Legalize *o, ExprId id, StmtList *out) {
  const Caps *has = o->has;
  Expand q = {.p = o->p, .a = o->a, .has = has, .singles = o->singles, .out = out};
  if (id && (has->registers & has->others) != CAP_all) replace(&q, id);
}

/* A let, set or store of f16 or bf16. */
static void keep_halves(Expand *q, Stmt *s) {
  Expr x = *prog_expr(q->p, s->a);
  if (s->kind == ST_store && prog_buf(q->p, s->buf)->space != BS_reg) {
    ExprId u = half_bits(q, s->a);
    q->lanes = x.lanes;
    s->a = bits(q, x.dt, u);
    return;
  }
  if (s->kind == ST_let) {
    Var was = *prog_var(q->p, s->var);
    VarId v = prog_add_var(q->p, DT_f32, was.name);
    prog_var(q->p, v)->lanes = was.lanes;
    *map_put(q->singles, s->var) = v;
  }
  const u32 *v = s->kind == ST_store ? NULL : map_get(q->singles, s->var);
  s->a = single(q, s->a);
  q->lanes = x.lanes;
  if (v)
    s->var = *v;
  else /* register arrays, or a variable of another list */
    s->a = cast(q, x.dt, s->a);
}

void stmt_legalize(const Legalize *o, Stmt *s, StmtList *out) {
  ex_legalize(o, s->a, out);
  ex_legalize(o, s->b, out);
  for (u32 i = 0; i < s->nidx; i++) ex_legalize(o, s->idx[i], out);
  Expand q = {.p = o->p, .a = o->a, .has = o->has, .singles = o->singles, .out = out};
  bool keeps = s->kind == ST_let || s->kind == ST_set || s->kind == ST_store;
  const Expr *x = keeps ? prog_expr(o->p, s->a) : NULL;
  if (x && lacks_half(o->has, x->dt, x->lanes)) keep_halves(&q, s);
}

bool prog_lacks(Prog *p, StmtId first, const Caps *has) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(p, first); (s = prog_next(&w));) {
    w.skip = s->kind == ST_kernel;
    for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);)
      if (row_of(p, has, x.e) || lacks_half(has, x.e->dt, x.e->lanes)) return true;
  }
  return false;
}
