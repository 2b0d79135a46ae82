/* operators.c: arithmetic of tensors and numbers; indexing of tensors.
 *
 * Shapes broadcast as in numpy. Comparisons treat tensors of one element as numbers.
 */
#include "lang/run/tensor.h"

#include <math.h>
#include <string.h>

LazyTensor *arg_tensor(Eval *ev, const LangValue *d) {
  if (d->kind == KD_tensor) return d->u.lazy;
  ARG_BAD(ev, "%s() takes a tensor here, got %s", builtin_name(ev), value_kind_name(d));
}

LazyTensor *tensor_broadcast_op(Eval *ev, LazyOp op, LazyTensor *x, LazyTensor *y,
                                const char *what) {
  i64 dim[MAX_RANK];
  u32 rank = x->rank > y->rank ? x->rank : y->rank;
  for (u32 i = 0; i < rank; i++) { /* from the last axis */
    i64 p = i < x->rank ? x->dim[x->rank - 1 - i] : 1,
        q = i < y->rank ? y->dim[y->rank - 1 - i] : 1;
    if (p != q && p != 1 && q != 1)
      ARG_BAD(ev, "%s: shape mismatch %s vs %s", what, dims_text(ev, x->dim, x->rank),
              dims_text(ev, y->dim, y->rank));
    dim[rank - 1 - i] = p == 1 ? q : p;
  }
  LazyTensor *in[2] = {x, y};
  return lazy_make(ev, op, in, 2, NULL, 0, dim, rank);
}

LazyTensor *tensor_of(Eval *ev, const LangValue *d) {
  return d->kind == KD_tensor ? lazy_retain(d->u.lazy) : lazy_scalar(ev, arg_number(ev, d));
}

/* x @ y: matrices or batches of matrices. */
static LazyTensor *matmul(Eval *ev, LazyTensor *x, LazyTensor *y) {
  bool fine = x->rank >= 1 && y->rank == 2 && x->dim[x->rank - 1] == y->dim[0];
  bool stack = x->rank >= 3 && y->rank == x->rank && x->dim[x->rank - 1] == y->dim[y->rank - 2] &&
               !memcmp(x->dim, y->dim, (x->rank - 2) * sizeof *x->dim);
  if (!fine && !stack)
    ARG_BAD(ev, "%s(): shape mismatch %s vs %s", builtin_name(ev), dims_text(ev, x->dim, x->rank),
            dims_text(ev, y->dim, y->rank));
  i64 dim[MAX_RANK];
  memcpy(dim, x->dim, sizeof dim);
  dim[x->rank - 1] = y->dim[y->rank - 1];
  LazyTensor *in[2] = {x, y};
  return lazy_make(ev, LOP_matmul, in, 2, NULL, 0, dim, x->rank);
}

void bi_tensor_matmul(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  (void)n;
  *out = value_tensor(matmul(ev, arg_tensor(ev, &arg[0]), arg_tensor(ev, &arg[1])));
}

/* Comparisons have no derivative, so they may read tracked tensors. */
static double seen(Eval *ev, const LangValue *d) {
  return d->kind == KD_tensor ? lazy_data(ev, d->u.lazy)[0] : arg_number(ev, d);
}

static bool compare(Eval *ev, const Ast *at, Tok op, const LangValue *p, const LangValue *q) {
  for (u32 i = 0; i < 2; i++) {
    const LangValue *d = i ? q : p;
    if (d->kind == KD_tensor && d->u.lazy->n != 1)
      eval_fail(ev, at, "Cannot compare a tensor of shape %s",
                dims_text(ev, d->u.lazy->dim, d->u.lazy->rank));
  }
  double x = seen(ev, p), y = seen(ev, q);
  switch (op) {
  case TOK_lt: return x < y;
  case TOK_le: return x <= y;
  case TOK_gt: return x > y;
  default: return x >= y;
  }
}

LangValue tensor_binary(Eval *ev, const Ast *at, Tok op, const LangValue *x, const LangValue *y) {
  static const LazyOp of[TOK_COUNT] = {[TOK_add] = LOP_add,
                                       [TOK_sub] = LOP_sub,
                                       [TOK_mul] = LOP_mul,
                                       [TOK_div] = LOP_div,
                                       [TOK_at] = LOP_matmul};
  ev->at = at;
  if (!of[op]) {
    LangValue yes = value_bool(compare(ev, at, op, x, y));
    return ev->dry ? value_unknown(ev, KD_bool) : yes;
  }
  if (op == TOK_div && y->kind != KD_tensor && arg_number(ev, y) == 0)
    eval_fail(ev, at, "Division by zero");
  LazyTensor *p = tensor_of(ev, x), *q = tensor_of(ev, y);
  LazyTensor *r =
      op == TOK_at ? matmul(ev, p, q) : tensor_broadcast_op(ev, of[op], p, q, tok_text[op]);
  lazy_drop(ev, p);
  lazy_drop(ev, q);
  return value_tensor(r);
}

/* A tensor and an array of as many numbers: 1 where equal, in the shape of the tensor. */
LangValue equal_elements(Eval *ev, const LangValue *x, const LangValue *y, bool equal) {
  LazyTensor *t = x->kind == KD_tensor ? x->u.lazy : y->u.lazy;
  const ListObj *list = x->kind == KD_array ? x->u.list : y->u.list;
  if (list->n != t->n)
    ARG_BAD(ev, "a tensor of %llu elements is compared with an array of %llu",
            (unsigned long long)t->n, (unsigned long long)list->n);
  const double *at = lazy_data(ev, t);
  LazyTensor *r = lazy_new(ev, t->dim, t->rank);
  for (u64 i = 0; i < t->n; i++) {
    const LangValue *v = &list->at[i];
    if (v->kind != KD_int && v->kind != KD_float)
      ARG_BAD(ev, "a tensor is compared with %s", kind_name[v->kind]);
    if (value_is_unknown(ev, v) || (ev->dry && isnan(at[i])))
      r->data[i] = NAN;
    else
      r->data[i] = (at[i] == (v->kind == KD_int ? (double)v->u.i : v->u.f)) == equal;
  }
  return value_tensor(r);
}

LangValue tensor_negate(Eval *ev, LazyTensor *t) {
  return value_tensor(lazy_map(ev, LOP_neg, t, NULL, 0));
}

/* Rows from .. from + count - 1 of axis 0. drop: one row, without that axis. */
static LazyTensor *rows(Eval *ev, LazyTensor *t, i64 from, i64 count, bool drop) {
  i64 dim[MAX_RANK];
  memcpy(dim, t->dim, sizeof dim);
  dim[0] = count;
  if (t->data && !t->tracked) { /* copy at once: all batches of known data then have the same key */
    LazyTensor *part = lazy_new(ev, drop ? dim + 1 : dim, t->rank - drop);
    u64 row = t->dim[0] ? t->n / (u64)t->dim[0] : 0;
    if (part->n) memcpy(part->data, t->data + (u64)from * row, (size_t)part->n * sizeof *t->data);
    part->raw = t->raw;
    return part;
  }
  double attr[2] = {(double)from, (double)count};
  LazyTensor *r = lazy_make(ev, LOP_slice, &t, 1, attr, 2, drop ? dim + 1 : dim, t->rank - drop);
  r->raw = t->raw;
  return r;
}

LazyTensor *tensor_element(Eval *ev, LazyTensor *t, u64 at) {
  const i64 all = (i64)t->n;
  LazyTensor *flat = lazy_make(ev, LOP_reshape, &t, 1, NULL, 0, &all, 1);
  LazyTensor *r = rows(ev, flat, (i64)at, 1, false);
  lazy_drop(ev, flat);
  return r;
}

LangValue tensor_index(Eval *ev, const Ast *at, LazyTensor *t, const LangValue *index) {
  ev->at = at;
  if (!t->rank) eval_fail(ev, at, "a tensor without dimensions has no elements to choose from");
  i64 n = t->dim[0];
  if (size_is_symbolic(ev, n)) dry_refuse(ev, at->b, "which elements there are");
  if (index->kind == KD_array) {
    const ListObj *l = index->u.list;
    i64 from = 0, to = 0;
    if (l->n) {
      from = arg_int(ev, &l->at[0]);
      to = arg_int(ev, &l->at[l->n - 1]);
      from = from < 0 ? 0 : from;
      to = to < n ? to + 1 : n;
    }
    return value_tensor(rows(ev, t, to > from ? from : 0, to > from ? to - from : 0, false));
  }
  if (index->kind != KD_int)
    eval_fail(ev, at->b, "Index must be an integer or range, got %s", value_kind_name(index));
  i64 i = index->u.i < 0 ? index->u.i + n : index->u.i;
  if (i < 0 || i >= n) eval_fail(ev, at->b, "Index out of bounds: %lld", (long long)index->u.i);
  if (t->rank == 1 && !t->tracked) return value_float(lazy_data(ev, t)[i]);
  return value_tensor(rows(ev, t, i, 1, t->rank > 1));
}
