/* shrink_consts.c: stores constants in the narrowest type that holds their values.
 *
 * In: a program. Out: the same program, the same bits, smaller constants. Weights of quantized
 * models become i32 when zero points are subtracted, and indices are i64, though most fit in a
 * byte. On a microcontroller that is four or eight times the flash. The constant is stored as i8,
 * u8, i16, u16 or i32, and every load casts back, which is exact. Integers that are loaded as
 * vectors stay as packed.
 *
 * Floats that are only loaded as vectors become f16 or bf16 if that is exact, on machines that
 * widen a register at a time. So weights of an f16 network take as many bytes as in its file. Small
 * constants are left alone: a different type makes a kernel differ from an otherwise equal one,
 * which costs code.
 *
 * needs: nothing  keeps: results bit for bit  breaks: nothing
 */
#include "pass/pass.h"

static bool holds(DType dt, i64 lo, i64 hi) {
  Scalar least, most;
  dtype_limits(dt, &least, &most);
  return least.i <= lo && hi <= most.i;
}

/* The type to store t in; its own if nothing is gained. */
static DType narrowest(const Tensor *t) {
  static const DType types[] = {DT_i8, DT_u8, DT_i16, DT_u16, DT_i32};
  i64 lo = INT64_MAX, hi = INT64_MIN;
  u32 wide = dtype_bytes(t->dt);
  if (dtype_info[t->dt].cls != 'I' && dtype_info[t->dt].cls != 'U') return t->dt;
  if (wide < 2 || t->n * (wide - 1) < LIMIT_narrow_bytes) return t->dt;
  for (u64 i = 0; i < t->n; i++) {
    i64 x = tensor_get(t, i).i;
    if (x < 0 && t->dt == DT_u64) return t->dt; /* 2^63 or more */
    lo = x < lo ? x : lo;
    hi = x > hi ? x : hi;
  }
  for (u32 i = 0; i < sizeof types / sizeof *types; i++) {
    u32 bytes = dtype_bytes(types[i]);
    u64 saved = t->n * (u64)(wide - bytes);
    if (bytes >= wide) break;
    if (holds(types[i], lo, hi))
      return saved >= (bytes == 1 ? LIMIT_narrow_bytes : LIMIT_narrow_i16_bytes) ? types[i] : t->dt;
  }
  return t->dt;
}

/* Returns, by buffer that owns memory: can every load of it become a cast? Floats are loaded as
 * vectors, others are not. */
static bool *find_plain(Prog *p) {
  bool *plain = NEWS(&p->c->scratch, bool, p->buf.n);
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    plain[b] = x->space == BS_const && !x->alias;
  }
  for (BufId b = 1; b < p->buf.n; b++)
    if (prog_buf(p, b)->dt != prog_buf(p, prog_root(p, b))->dt) plain[prog_root(p, b)] = false;
  for (ExprId e = 1; e < p->nexpr; e++) {
    const Expr *x = prog_expr(p, e);
    if (x->kind == EX_load && (x->dt == DT_f32 ? x->lanes < 4 : x->lanes > 1))
      plain[prog_root(p, x->ref)] = false;
  }
  return plain;
}

void shrink_consts(PassCtx *u) {
  Prog *p = u->p;
  bool *plain = find_plain(p);
  DType *was = NEWS(&p->c->scratch, DType, p->buf.n); /* by buffer; DT_none: unchanged */
  for (BufId b = 1; b < p->buf.n; b++) {
    Buf *bp = prog_buf(p, b);
    DType to = !plain[b]          ? bp->dt
               : bp->dt == DT_f32 ? lanes_stored(u->target, bp->data)
                                  : narrowest(bp->data);
    if (to == bp->dt) continue;
    was[b] = bp->dt;
    bp->data = tensor_as(&p->c->work, bp->data, to);
    bp->dt = to;
  }
  for (BufId b = 1; b < p->buf.n; b++) { /* its views */
    BufId root = prog_root(p, b);
    if (root == b || !was[root]) continue;
    was[b] = was[root];
    prog_buf(p, b)->dt = prog_buf(p, root)->dt;
  }
  for (ExprId e = 1, n = p->nexpr; e < n; e++) {
    Expr x = *prog_expr(p, e);
    if (x.kind != EX_load || !was[x.ref]) continue;
    x.dt = prog_buf(p, x.ref)->dt;
    ExprId cast = ex_cast(p, was[x.ref], ex_new(p, &x), false);
    *prog_expr(p, e) = *prog_expr(p, cast); /* its parent refers to it by this id */
  }
}
