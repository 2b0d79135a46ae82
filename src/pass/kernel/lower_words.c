/* lower_words.c: products of bytes where there are no vectors.
 *
 * In: a form that sums up products of bytes with a constant matrix of bytes, on a target of plain
 * loops. Out: a loop along the sum for every result. Both factors lie along it: the matrix is
 * brought into that order while compiling, and stays bytes; a row of the other factor is stored as
 * numbers of 16 bits once, for all results. The sum is unsigned, modulo 2^32 as that of integers
 * is: in this shape compilers find the instruction that adds up products of 16 bits by pairs
 * (pmaddwd), which every x86-64 has, while a row of sums costs them more steps than floats do.
 *
 * Only for C: engines that run loops one element at a time are faster along a row of results.
 * Small matrices stay as they are: the row takes memory, which is scarce where models are small.
 */
#include "pass/kernel/tile.h"

/* Elements of a matrix, and what the length of a sum is a multiple of: compilers make vectors of
 * loops that leave no rest. */
enum { LEAST_ELEMENTS = 1 << 14, SUM_STEP = 16 };

static bool is_plain_index(const Index *ix) {
  return ix->n == 1 && ix->coef[0] == 1 && !ix->base && !ix->shift && !ix->guard && !ix->stretch &&
         ix->dilation <= 1;
}

/* The byte type that holds all elements; DT_none: none does. */
static DType byte_type(const Tensor *t) {
  i64 lo = 0, hi = 0;
  for (u64 i = 0; i < t->n; i++) {
    i64 x = tensor_get(t, i).i;
    lo = x < lo ? x : lo;
    hi = x > hi ? x : hi;
  }
  return lo >= INT8_MIN && hi <= INT8_MAX ? DT_i8 : !lo && hi <= UINT8_MAX ? DT_u8 : DT_none;
}

/* The constant matrix that operand k is, indexed by the fold and by one axis of the result, which
 * is returned; FORM_AXES: it is none. */
static u32 matrix_axis(const Lower *l, const Form *f, u32 k, u32 fold) {
  const Operand *o = &f->in[k];
  const Buf *b = prog_buf(l->p, prog_root(l->p, o->buf));
  u32 axis = FORM_AXES;
  if (b->space != BS_const || !b->data || !b->data->data || o->rank != 2) return FORM_AXES;
  if (!dtype_is_int(b->dt) || b->data->n < LEAST_ELEMENTS || layout_of(l, o->buf)) return FORM_AXES;
  for (u32 d = 0; d < 2; d++) {
    if (!is_plain_index(&o->idx[d])) return FORM_AXES;
    if (o->idx[d].axis[0] != fold) axis = o->idx[d].axis[0];
  }
  if (axis == FORM_AXES || o->idx[0].axis[0] == o->idx[1].axis[0] || f->axis[axis].fold)
    return FORM_AXES;
  return byte_type(b->data) == DT_none ? FORM_AXES : axis;
}

/* Do the elements of a buffer fit in 16 bits? Bytes do, and bytes less a zero point. */
static bool fits_words(const Lower *l, BufId b) {
  const Storage *s = storage_of(l, b);
  i64 zero = 0;
  if (s->kind != SK_inlined) return dtype_bytes(prog_buf(l->p, b)->dt) == 1;
  Val q = graph_narrow(l->g, s->value, &zero);
  return q && dtype_bytes(graph_type(l->g, q)->dt) == 1 && zero >= -UINT8_MAX && zero <= UINT8_MAX;
}

/* Does operand k, bytes, lie along the fold, and is it the same for all results along `axis`? */
static bool lies_along(const Lower *l, const Form *f, u32 k, u32 fold, u32 axis) {
  const Operand *o = &f->in[k];
  if (!o->rank || !fits_words(l, o->buf)) return false;
  const Index *last = &o->idx[o->rank - 1];
  for (u32 d = 0; d < o->rank; d++)
    if (o->idx[d].guard || index_moves(&o->idx[d], axis)) return false;
  return is_plain_index(last) && last->axis[0] == fold;
}

static u32 only_fold(const Form *f) {
  u32 fold = FORM_AXES;
  for (u32 i = 0; i < f->naxes; i++) {
    if (!f->axis[i].fold || f->axis[i].hi == 1) continue;
    if (fold != FORM_AXES) return FORM_AXES;
    fold = i;
  }
  return fold;
}

bool words_choose(Lower *l, const Form *f, KernelRecord *r) {
  u32 fold = f->fold ? only_fold(f) : FORM_AXES;
  const Unit *u = l->unit;
  if (u->target->lanes >= 4 || !u->for_c || u->aim != AIM_time || fold == FORM_AXES) return false;
  if (f->nin != 2 || f->body != FB_op || f->op != OP_mul || f->with != OP_add || f->acc != DT_i32 ||
      f->init.i || f->from.buf)
    return false;
  const Axis *a = &f->axis[fold];
  if (!dim_is_const(a->hi) || a->lo || a->hi % SUM_STEP) return false;
  for (u32 k = 0; k < 2; k++) {
    u32 axis = matrix_axis(l, f, k, fold);
    if (axis == FORM_AXES || !lies_along(l, f, 1 - k, fold, axis)) continue;
    r->family = FA_words;
    r->axis = axis;
    r->size = str_fmt(l->c, "sums of %lld", (long long)a->hi);
    return true;
  }
  return false;
}

/* The matrix of operand k, bytes, with the fold last. */
static BufId turned(Lower *l, const Form *f, u32 k, u32 fold) {
  const Operand *o = &f->in[k];
  const Tensor *t = prog_buf(l->p, prog_root(l->p, o->buf))->data;
  bool last = o->idx[1].axis[0] == fold;
  u32 *known = map_put_bytes(&l->once, (i64[]){ON_words, o->buf, last}, 3 * sizeof(i64));
  if (*known) return *known;
  i64 rows = last ? t->dim[0] : t->dim[1], along = last ? t->dim[1] : t->dim[0];
  Tensor *to = tensor_new(&l->c->keep, byte_type(t), (i64[]){rows, along}, 2);
  for (i64 i = 0; i < rows; i++)
    for (i64 j = 0; j < along; j++)
      tensor_set(to, (u64)(i * along + j),
                 tensor_get(t, (u64)(last ? i * along + j : j * rows + i)));
  *known = prog_add_const(l->p, to, prog_buf(l->p, o->buf)->name);
  return *known;
}

static ExprId as_i32(Prog *p, BufId b, const ExprId *idx, u32 n) {
  return ex_cast(p, DT_i32, ex_load(p, b, idx, n), false);
}

void words_write(Lower *l, Cursor at, const Form *f, KernelRecord *r) {
  Prog *p = l->p;
  u32 fold = only_fold(f), axis = r->axis, w = matrix_axis(l, f, 0, fold) == axis ? 0 : 1;
  Dim n = f->axis[fold].hi;
  BufId words = prog_add_buf(p, BS_local, DT_i16, &n, 1, str_of(p->c, "words"));
  BufId matrix = turned(l, f, w, fold);
  Nest x = {.l = l, .p = p, .f = f, .at = at};
  nest_loops(&x, false, axis);
  Nest fill = x;
  nest_loop(&fill, fold);
  ExprId k = ex_var(p, fill.var[fold]);
  prog_store(p, &fill.at, words, &k, 1, ex_cast(p, DT_i16, nest_load(&fill, 1 - w), false));
  nest_loop(&x, axis);
  VarId acc = let_new(p, &x.at, "acc", ex_const(p, DT_u32, (Scalar){0}));
  Cursor in = x.at;
  VarId v = prog_for(p, &in, ex_int(p, 0), ex_int(p, n), "k");
  ExprId row = x.var[axis] ? ex_var(p, x.var[axis]) : ex_int(p, f->axis[axis].lo);
  ExprId one = as_i32(p, words, (ExprId[]){ex_var(p, v)}, 1),
         other = as_i32(p, matrix, (ExprId[]){row, ex_var(p, v)}, 2);
  ExprId product = ex_cast(p, DT_u32, ex_op2(p, OP_mul, one, other), false);
  prog_set(p, &in, acc, ex_op2(p, OP_add, ex_var(p, acc), product));
  ExprId sum = ex_cast(p, DT_i32, ex_var(p, acc), false);
  nest_store(&x, nest_finish(&x, ex_finish(p, f->dt, sum)));
}
