/* nest.c: turns a Form into loops.
 *
 * Without a reduction there is one loop nest over the axes of the result. With a reduction there
 * are two variants, which add in the same order and give the same bits:
 *
 *   (a) result axes; a scalar accumulator; reduction axes inside
 *   (b) result axes except one; a row of accumulators along that one; reduction axes; the row
 *       innermost
 *
 * kernel_choose.c selects (a), (b) or a vector family. A row is kept in the result itself unless
 * the accumulator has a wider type. An index that may leave its dimension (padding) clips the
 * bounds of the innermost of its loops, so that loop bodies have no conditions.
 */
#include "ir/prog/prog_mem.h"
#include "pass/form/nest.h"

#include <math.h>

static ExprId scaled(Nest *x, u32 axis, i64 coef) {
  VarId v = x->var[axis];
  if (x->sub && x->sub[axis])
    return ex_op2(x->p, OP_mul, ex_copy(x->p, x->sub[axis]), ex_int(x->p, coef));
  ExprId e = v ? ex_var(x->p, v) : ex_int(x->p, x->f->axis[axis].lo);
  return ex_op2(x->p, OP_mul, e, ex_int(x->p, coef));
}

static ExprId plus(Prog *p, ExprId e, i64 k) {
  return ex_op2(p, k < 0 ? OP_sub : OP_add, e, ex_int(p, k < 0 ? -k : k));
}

ExprId nest_index(Nest *x, const Operand *o, u32 i) {
  Prog *p = x->p;
  const Index *ix = &o->idx[i];
  ExprId e = ix->base ? ex_dim(p, ix->base) : 0;
  for (u32 k = 0; k < ix->n; k++) {
    i64 coef = ix->coef[k];
    if (coef < 0 && e)
      e = ex_op2(p, OP_sub, e, scaled(x, ix->axis[k], -coef));
    else
      e = e ? ex_op2(p, OP_add, e, scaled(x, ix->axis[k], coef)) : scaled(x, ix->axis[k], coef);
  }
  e = plus(p, e ? e : ex_int(p, 0), ix->shift);
  if (!ix->stretch) return e;
  ExprId one = ex_op2(p, OP_eq, ex_dim(p, prog_buf(p, o->buf)->dim[i]), ex_int(p, 1));
  return ex_op3(p, OP_select, one, ex_int(p, 0), e);
}

u32 nest_address(Nest *x, const Operand *o, BufId *b, ExprId *idx) {
  u32 n = o->rank;
  *b = o->buf;
  for (u32 i = 0; i < n; i++) idx[i] = nest_index(x, o, i);
  storage_address(x->l, b, idx, &n, &x->in.inner);
  return n;
}

static ExprId load(Nest *x, const Operand *o) {
  ExprId idx[MAX_RANK];
  const Buf *b = prog_buf(x->p, prog_root(x->p, o->buf));
  if (b->space == BS_const && b->data->n == 1 && dtype_info[b->dt].cls != 'S')
    return ex_const(x->p, b->dt,
                    tensor_get(b->data, 0)); /* one number for all broadcast positions */
  for (u32 i = 0; i < o->rank; i++) idx[i] = nest_index(x, o, i);
  return storage_load(x->l, o->buf, idx, &x->in);
}

ExprId nest_load(Nest *x, u32 in) {
  return load(x, &x->f->in[in]);
}

/* Value to store for a reduction: that of the epilogue, with `value` as the accumulator, if the
 * kernel has one. */
ExprId nest_finish(Nest *x, ExprId value) {
  if (!x->f->epilogue) return value;
  ExprId idx[MAX_RANK];
  Operand own = x->f->out; /* index in the value itself, independent of where it is stored */
  for (u32 i = 0; i < own.rank; i++) {
    own.idx[i].base = 0;
    idx[i] = nest_index(x, &own, i);
  }
  ExprScope in = x->in;
  in.acc = x->f->epilogue;
  in.acc_expr = value;
  return inlined_eval(x->l, x->f->root, idx, &in);
}

void nest_store(Nest *x, ExprId value) {
  ExprId idx[MAX_RANK + 1];
  BufId to;
  u32 n = nest_address(x, &x->f->out, &to, idx);
  prog_store(x->p, &x->at, to, idx, n, value);
}

/* Bounds of axis such that a * axis + b * other + shift stays in 0 .. dim - 1. Truncating division
 * is wrong only below zero, where the other bound applies. */
static void clip(Nest *x, const Index *ix, u32 axis, Dim dim, ExprId *lo, ExprId *hi) {
  Prog *p = x->p;
  u32 k = ix->axis[0] == axis ? 0 : 1;
  i64 a = ix->coef[k], b = ix->coef[1 - k];
  if (ix->guard & GUARD_low) {
    ExprId e = ex_op2(p, OP_sub, ex_int(p, a - 1 - ix->shift), scaled(x, ix->axis[1 - k], b));
    *lo = ex_op2(p, OP_max, ex_op2(p, OP_div, e, ex_int(p, a)), *lo);
  }
  if (ix->guard & GUARD_high) {
    ExprId e = plus(p, ex_dim(p, dim), a - 1 - ix->shift);
    e = ex_op2(p, OP_sub, e, scaled(x, ix->axis[1 - k], b));
    *hi = ex_op2(p, OP_min, ex_op2(p, OP_div, e, ex_int(p, a)), *hi);
  }
}

ExprId nest_at_edge(Nest *x, u32 but) {
  Prog *p = x->p;
  ExprId any = 0;
  for (u32 i = 0; i < x->f->naxes; i++) {
    const Operand *of;
    const Index *g = x->f->axis[i].reduce && i != but ? form_guard(x->f, i, &of) : NULL;
    if (!g) continue;
    u32 k = g->axis[0] != i;
    for (u32 high = 0; high < 2; high++) {
      if (!(g->guard & (high ? GUARD_high : GUARD_low))) continue;
      i64 last = high ? g->coef[k] * (x->f->axis[i].hi - 1) : 0;
      ExprId at = plus(p, scaled(x, g->axis[1 - k], g->coef[1 - k]), g->shift + last);
      ExprId end = high ? ex_dim(p, prog_buf(p, of->buf)->dim[g - of->idx]) : ex_int(p, 0);
      ExprId out = ex_op2(p, high ? OP_ge : OP_lt, at, end);
      any = any ? ex_op2(p, OP_or, any, out) : out;
    }
  }
  return any;
}

/* An axis of extent 1 needs no loop, unless clipping may leave it empty. */
void nest_loop(Nest *x, u32 axis) {
  static const char *const names[] = {"i", "j", "k", "l", "m", "n", "o", "p"};
  Prog *p = x->p;
  const Axis *a = &x->f->axis[axis];
  const Operand *of;
  const Index *g = form_guard(x->f, axis, &of);
  if (!g && a->hi == a->lo + 1) return;
  ExprId lo = ex_int(p, a->lo), hi = ex_dim(p, a->hi);
  if (g && x->var[g->axis[g->axis[0] == axis]])
    clip(x, g, axis, prog_buf(p, of->buf)->dim[g - of->idx], &lo, &hi);
  x->var[axis] = prog_for(p, &x->at, lo, hi, names[axis < 8 ? axis : 7]);
  if (a->reduce)
    prog_stmt(p, x->at.owner)->role = RO_reduce;
  else
    loop_set_parallel(p, x->at.owner);
}

void nest_loops(Nest *x, bool reduce, u32 but) {
  for (u32 i = 0; i < x->f->naxes; i++)
    if (x->f->axis[i].reduce == reduce && i != but) nest_loop(x, i);
}

/* ---- bodies ---- */

/* a + b as exp_p1(x) if a is exp(x) and b is 1; else 0. As a divisor of sigmoid, it needs fewer
 * operations than exp. */
static ExprId exp_plus_one(Prog *p, ExprId a, ExprId b) {
  const Expr *x = prog_expr(p, a), *y = prog_expr(p, b);
  if (x->kind != EX_op || x->op != OP_exp || x->dt != DT_f32) return 0;
  if (y->kind != EX_const || y->imm.f != 1) return 0;
  ExprId arg = x->arg[0];
  return ex_op(p, OP_exp_p1, &arg, 1);
}

/* The other operand of e = op(operand, constant), either order if commutative; 0: no match. */
static ExprId other_operand(Prog *p, ExprId e, Op op, double *constant) {
  const Expr *o = prog_expr(p, e);
  if (o->kind != EX_op || o->op != op || o->dt != DT_f32) return 0;
  for (u32 i = op == OP_div; i < 2; i++) { /* the divisor, or either factor */
    const Expr *k = prog_expr(p, o->arg[i]);
    *constant = k->imm.f;
    if (k->kind == EX_const) return o->arg[1 - i];
  }
  return 0;
}

/* a * b as gelu_x2(a) if b is about 1 + erf(a / sqrt 2), else 0. gelu_x2(s a) / s = a (1 + erf(s a
 * / sqrt 2)); s differs from 1 if sqrt 2 was rounded to f16. */
static ExprId gelu_twice(Prog *p, ExprId a, ExprId b) {
  double one, k;
  ExprId f = other_operand(p, b, OP_add, &one);
  if (!f || one != 1) return 0;
  const Expr *e = prog_expr(p, f);
  if (e->kind != EX_op || e->op != OP_erf) return 0;
  ExprId of = e->arg[0], arg = other_operand(p, of, OP_mul, &k);
  double s = arg ? k * sqrt(2) : 0;
  if (!arg && (arg = other_operand(p, of, OP_div, &k))) s = sqrt(2) / k;
  if (!arg || !ex_same(p, arg, a) || fabs(s - 1) > 0x1p-8) return 0;
  if (fabs(s - 1) <= 0x1.7p-24)
    return ex_op(p, OP_gelu_x2, &arg, 1); /* also accepts the next float */
  ExprId scaled = ex_op2(p, OP_mul, arg, ex_const(p, DT_f32, (Scalar){.f = (float)s}));
  return ex_op2(p, OP_mul, ex_op(p, OP_gelu_x2, &scaled, 1),
                ex_const(p, DT_f32, (Scalar){.f = (float)(1 / s)}));
}

static ExprId apply(Nest *x) {
  Prog *p = x->p;
  const Form *f = x->f;
  ExprId arg[FORM_IN] = {0};
  DType to = prog_buf(p, f->out.buf)->dt;
  for (u32 i = 0; i < f->nin; i++) {
    arg[i] = nest_load(x, i);
    if (f->reduce) arg[i] = ex_cast(p, f->acc, arg[i], false);
  }
  if (f->body == FB_copy) return arg[0];
  if (f->op == OP_cast) {
    ExprId e = ex_cast(p, to, arg[0], f->sat);
    if (prog_expr(p, e)->kind == EX_op) prog_expr(p, e)->small |= f->small;
    return e;
  }
  if (f->op == OP_bitcast)
    return prog_expr(p, arg[0])->dt == to ? arg[0] : ex_bitcast(p, to, arg[0]);
  for (u32 i = 0; i < 2 && p->math == MM_u && !f->reduce; i++) {
    ExprId e = f->op == OP_add   ? exp_plus_one(p, arg[i], arg[1 - i])
               : f->op == OP_mul ? gelu_twice(p, arg[i], arg[1 - i])
                                 : 0;
    if (e) return e;
  }
  return ex_op(p, f->op, arg, f->nin);
}

ExprId nest_value(Nest *x) {
  Prog *p = x->p;
  const Form *f = x->f;
  DType to = prog_buf(p, f->out.buf)->dt;
  if (f->body == FB_iota) return ex_cast(p, to, scaled(x, f->which, 1), false);
  if (f->body == FB_random) {
    ExprId at = ex_int(p, 0);
    for (u32 i = 0; i < f->naxes; i++) {
      at = ex_op2(p, OP_mul, at, ex_dim(p, f->axis[i].hi));
      at = ex_op2(p, OP_add, at, scaled(x, i, 1));
    }
    return ex_random(p, to, ex_int(p, f->seed), at);
  }
  return apply(x);
}

static ExprId first_value(Nest *x) {
  const Form *f = x->f;
  return f->from.buf ? load(x, &f->from) : ex_const(x->p, f->acc, f->init);
}

static void reduce_scalar(Nest *x) {
  Prog *p = x->p;
  const Form *f = x->f;
  nest_loops(x, false, FORM_AXES);
  VarId acc = let_new(p, &x->at, "acc", first_value(x));
  Cursor after = x->at;
  nest_loops(x, true, FORM_AXES);
  prog_set(p, &x->at, acc, ex_op2(p, f->with, ex_var(p, acc), nest_value(x)));
  x->at = after;
  nest_store(x, nest_finish(x, ex_finish(p, f->dt, ex_var(p, acc))));
}

static void reduce_row(Nest *x, u32 inner) {
  Prog *p = x->p;
  const Form *f = x->f;
  ExprId idx[MAX_RANK + 1];
  BufId at;
  Operand row = f->out;
  bool wider = f->acc != prog_buf(p, f->out.buf)->dt;
  nest_loops(x, false, inner);
  if (wider) {
    row = (Operand){.rank = 1};
    row.buf = prog_add_buf(p, BS_local, f->acc, &f->axis[inner].hi, 1, str_of(p->c, "row"));
    row.idx[0] = (Index){.n = 1, .axis = {inner}, .coef = {1}};
  }
  Cursor here = x->at;
  Form whole = *f; /* the complete row: without operands nothing is clipped */
  whole.nin = 0;
  Nest fill = *x;
  fill.f = &whole;
  nest_loop(&fill, inner);
  u32 n = nest_address(&fill, &row, &at, idx);
  prog_store(p, &fill.at, at, idx, n, first_value(&fill));
  x->at = here;
  nest_loops(x, true, FORM_AXES);
  nest_loop(x, inner);
  n = nest_address(x, &row, &at, idx);
  ExprId old = ex_load(p, at, idx, n);
  nest_address(x, &row, &at, idx);
  prog_store(p, &x->at, at, idx, n, ex_op2(p, f->with, old, nest_value(x)));
  x->at = here;
  x->var[inner] = 0;
  if (!wider && !f->epilogue) return;
  fill = *x;
  fill.f = &whole;
  nest_loop(&fill, inner);
  n = nest_address(&fill, &row, &at, idx);
  nest_store(&fill, nest_finish(&fill, ex_finish(p, f->dt, ex_load(p, at, idx, n))));
}

void lower_plain(Lower *l, Cursor at, const Form *f) {
  Nest x = {.l = l, .p = l->p, .f = f, .at = at};
  if (f->reduce) {
    reduce_scalar(&x);
    return;
  }
  nest_loops(&x, false, FORM_AXES);
  nest_store(&x, nest_value(&x));
}

void lower_row(Lower *l, Cursor at, const Form *f, u32 axis) {
  Nest x = {.l = l, .p = l->p, .f = f, .at = at};
  reduce_row(&x, axis);
}
