/* shrink_consts.c: constants take the narrowest type that holds them.
 *
 * In: a program. Out: the same program, the same bits, smaller constants. Weights of quantised
 * models become i32 when their zero points are subtracted, indices are i64, though most would fit
 * in a byte; on a small machine that is four or eight times the flash. The constant is stored in
 * i8, u8, i16, u16 or i32, and every load of it is a cast back, which is exact. Integers that are
 * loaded as vectors stay as they are packed. Floats that are only loaded as vectors become f16 or
 * bf16 where that holds each of them, on machines that widen a register of them at a time: the
 * weights of a network of halves take as many bytes as in its file. A type other than that of its
 * neighbours makes a kernel differ from one that was equal, and code costs memory too, so little is
 * not saved.
 *
 * needs: nothing  keeps: results bit for bit  breaks: nothing
 */
#include "pass/pass.h"

/* Bytes worth the cast: those of whole bytes are weights of one kind, those of 16 bits may be
 * biases whose types differ from layer to layer. */
enum { MIN_BYTES = 64, MIN_WORDS = 1024 };

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
  if (wide < 2 || t->n * (wide - 1) < MIN_BYTES) return t->dt;
  for (u64 i = 0; i < t->n; i++) {
    i64 x = tensor_get(t, i).i;
    if (x < 0 && t->dt == DT_u64) return t->dt; /* not below 2^63 */
    lo = x < lo ? x : lo;
    hi = x > hi ? x : hi;
  }
  for (u32 i = 0; i < sizeof types / sizeof *types; i++) {
    u32 bytes = dtype_bytes(types[i]);
    u64 saved = t->n * (u64)(wide - bytes);
    if (bytes >= wide) break;
    if (holds(types[i], lo, hi))
      return saved >= (bytes == 1 ? MIN_BYTES : MIN_WORDS) ? types[i] : t->dt;
  }
  return t->dt;
}

/* By buffer that owns memory: can every load of it become a cast? Floats are loaded as vectors, and
 * others not. */
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
  DType *was = NEWS(&p->c->scratch, DType, p->buf.n); /* by buffer; DT_none: it stays */
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
    *prog_expr(p, e) = *prog_expr(p, cast); /* its parent knows it by this number */
  }
}
