/* tensors.c: built-in functions that create, reshape and inspect tensors. */
#include "lang/run/tensor.h"

#include <math.h>
#include <string.h>

u32 arg_shape(Eval *ev, const LangValue *d, i64 *dim) {
  const ListObj *l = arg_array(ev, d);
  if (l->n > MAX_RANK)
    ARG_BAD(ev, "%s(): a tensor has at most %d dimensions", builtin_name(ev), MAX_RANK);
  for (u64 i = 0; i < l->n; i++) dim[i] = arg_size(ev, &l->at[i]);
  return (u32)l->n;
}

static bool is_nested(const ListObj *l) {
  return l->n && l->at[0].kind == KD_array;
}

static LazyTensor *of_data(Eval *ev, const LangValue *data, const LangValue *shape) {
  i64 dim[MAX_RANK];
  const ListObj *l = arg_array(ev, data);
  if (!shape && is_nested(l)) return lazy_from_array(ev, data);
  u32 rank = 1;
  dim[0] = (i64)l->n;
  if (shape) rank = arg_shape(ev, shape, dim);
  LazyTensor *flat = lazy_from_array(ev, data);
  u64 have = flat->n, n = dims_count(ev, dim, rank);
  if (n != have)
    ARG_BAD(ev, "%s() shape %s (total: %llu) does not match data length %llu", builtin_name(ev),
            dims_text(ev, dim, rank), (unsigned long long)n, (unsigned long long)have);
  if (flat->tracked) {
    LazyTensor *t = lazy_make(ev, LOP_reshape, &flat, 1, NULL, 0, dim, rank);
    lazy_drop(ev, flat);
    return t;
  }
  flat->rank = rank; /* not shared yet */
  memcpy(flat->dim, dim, rank * sizeof *dim);
  return flat;
}

void bi_tensor(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = value_tensor(of_data(ev, &arg[0], n > 1 ? &arg[1] : NULL));
}

void bi_tensor_with_grad(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  bi_tensor(ev, arg, n, out);
  out->u.lazy->tracked = true;
}

void bi_tensor_from_data(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  bi_tensor(ev, arg, n, out);
  out->u.lazy->tracked = value_is_true(&arg[2]);
}

void bi_tensor_from_scalar(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  const i64 one = 1;
  LazyTensor *x = arg[0].kind == KD_tensor ? arg[0].u.lazy : NULL, *t;
  if (x && x->n == 1 && x->tracked) {
    t = lazy_make(ev, LOP_reshape, &x, 1, NULL, 0, &one, 1);
  } else {
    t = lazy_new(ev, &one, 1);
    t->data[0] = arg_number(ev, &arg[0]);
  }
  t->raw = true;
  *out = value_tensor(t);
  (void)n;
}

static LangValue full(Eval *ev, const LangValue *shape, double x) {
  i64 dim[MAX_RANK];
  u32 rank = arg_shape(ev, shape, dim);
  LazyTensor *t = lazy_new(ev, dim, rank);
  for (u64 i = 0; x != 0 && i < t->n; i++) t->data[i] = x;
  return value_tensor(t);
}

void bi_tensor_zeros(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = full(ev, &arg[0], 0);
  (void)n;
}

void bi_tensor_ones(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = full(ev, &arg[0], 1);
  (void)n;
}

void bi_tensor_full(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  (void)n;
  LazyTensor *x = arg[1].kind == KD_tensor ? arg[1].u.lazy : NULL;
  if (!x || x->n != 1 || !x->tracked) {
    *out = full(ev, &arg[0], arg_number(ev, &arg[1]));
    return;
  }
  LangValue ones = full(ev, &arg[0], 1);
  LazyTensor *one = lazy_make(ev, LOP_reshape, &x, 1, NULL, 0, NULL, 0);
  *out = value_tensor(tensor_broadcast_op(ev, LOP_mul, ones.u.lazy, one, "tensor_full()"));
  lazy_drop(ev, one);
  value_drop(ev, &ones);
}

void bi_tensor_eye(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  i64 k = arg_int(ev, &arg[0]);
  const i64 dim[2] = {k, k};
  LazyTensor *t = lazy_new(ev, dim, 2);
  for (i64 i = 0; i < k; i++) t->data[i * k + i] = 1;
  *out = value_tensor(t);
  (void)n;
}

/* [.., count]: 1 at the given index */
void bi_one_hot(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *t = arg_tensor(ev, &arg[0]);
  i64 dim[MAX_RANK + 1], count = arg_int(ev, &arg[1]);
  memcpy(dim, t->dim, sizeof t->dim);
  dim[t->rank] = count;
  if (lazy_is_symbolic(ev, t)) {
    *out = value_tensor(
        lazy_make(ev, LOP_one_hot, &t, 1, &(double){(double)count}, 1, dim, t->rank + 1));
    return;
  }
  const double *x = lazy_data(ev, t);
  LazyTensor *y = lazy_new(ev, dim, t->rank + 1);
  for (u64 i = 0; i < t->n; i++) {
    if (ev->dry && isnan(x[i])) {
      y->data[i * (u64)count] = x[i]; /* NaN: the index is unknown */
      continue;
    }
    if (!(x[i] >= 0 && x[i] < (double)count))
      ARG_BAD(ev, "one_hot(): %g is not from 0 to %lld", x[i], (long long)count - 1);
    y->data[i * (u64)count + (u64)x[i]] = 1;
  }
  *out = value_tensor(y);
  (void)n;
}

void bi_tensor_zeros_like(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  (void)n;
  if (arg->kind == KD_tensor) {
    *out = value_tensor(lazy_new(ev, arg->u.lazy->dim, arg->u.lazy->rank));
    return;
  }
  *out = value_list(ev, KD_array, arg_array(ev, arg)->n);
  for (u64 i = 0; i < out->u.list->n; i++) out->u.list->at[i] = value_float(0);
}

/* ---- properties ---- */

void bi_tensor_shape(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  const LazyTensor *t = arg_tensor(ev, &arg[0]);
  *out = value_list(ev, KD_array, t->rank);
  for (u32 i = 0; i < t->rank; i++) out->u.list->at[i] = value_size(ev, t->dim[i]);
  (void)n;
}

void bi_tensor_size(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  const LazyTensor *t = arg_tensor(ev, &arg[0]);
  *out = value_size(ev, size_product(ev, t->dim, t->rank));
  (void)n;
}

void bi_tensor_print(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  StrBuf t = sb_new(&ev->stack);
  Mark mark = arena_mark(&ev->stack);
  lazy_show_plain(ev, arg_tensor(ev, &arg[0]), &t);
  sb_puts(&t, "\n");
  if (ev->o->write) ev->o->write(ev->o->user, t.at, t.n);
  arena_rewind(&ev->stack, mark);
  (void)n, (void)out;
}

static u64 place_of(Eval *ev, const LazyTensor *t, const LangValue *index) {
  const ListObj *l = arg_array(ev, index);
  u64 at = 0;
  if (l->n != t->rank)
    ARG_BAD(ev, "%s(): %llu indices for a tensor of %u dimensions", builtin_name(ev),
            (unsigned long long)l->n, t->rank);
  for (u32 i = 0; i < t->rank; i++) {
    i64 k = arg_int(ev, &l->at[i]);
    if (k < 0 || k >= t->dim[i])
      ARG_BAD(ev, "%s(): index %lld is out of bounds for shape %s", builtin_name(ev), (long long)k,
              dims_text(ev, t->dim, t->rank));
    at = at * (u64)t->dim[i] + (u64)k;
  }
  return at;
}

void bi_tensor_get(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *t = arg_tensor(ev, &arg[0]);
  u64 at = place_of(ev, t, &arg[1]);
  *out = ev->in_grad && t->tracked ? value_tensor(tensor_element(ev, t, at))
                                   : value_float(lazy_data(ev, t)[at]);
  (void)n;
}

void bi_tensor_set(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *t = arg_tensor(ev, &arg[0]);
  u64 at = place_of(ev, t, &arg[1]);
  refuse_tracked(ev, t);
  LazyTensor *copy = lazy_detach(ev, t);
  copy->data[at] = arg_number(ev, &arg[2]);
  copy->raw = t->raw;
  *out = value_tensor(copy);
  (void)n;
}

void bi_tensor_get_data(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *t = arg_tensor(ev, &arg[0]);
  if (ev->in_grad) refuse_tracked(ev, t);
  *out = lazy_to_array(ev, t);
  (void)n;
}

void bi_tensor_item(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  (void)n;
  if (arg->kind == KD_tensor && arg->u.lazy->n != 1)
    ARG_BAD(ev, "tensor_item() takes a tensor of one element, got shape %s",
            dims_text(ev, arg->u.lazy->dim, arg->u.lazy->rank));
  if (arg->kind == KD_tensor && arg->u.lazy->tracked)
    *out = ev->in_grad ? value_retain(arg) : value_float(lazy_data(ev, arg->u.lazy)[0]);
  else
    *out = value_float(arg_number(ev, arg));
}

/* ---- element by element ---- */

static void binary_fn(Eval *ev, LangValue *arg, LazyOp op, Tok sign, LangValue *out) {
  if (arg[0].kind == KD_tensor && arg[1].kind == KD_tensor) {
    StrBuf t = sb_new(&ev->c->scratch);
    sb_fmt(&t, "%s()", builtin_name(ev));
    *out = value_tensor(tensor_broadcast_op(ev, op, arg[0].u.lazy, arg[1].u.lazy, sb_cstr(&t)));
  } else {
    if (arg[0].kind != KD_tensor && arg[1].kind != KD_tensor)
      ARG_BAD(ev, "%s() takes a tensor, got %s", builtin_name(ev), value_kind_name(&arg[0]));
    *out = tensor_binary(ev, ev->at, sign, &arg[0], &arg[1]);
  }
}

#define OF_TWO(name)                                                                               \
  void bi_tensor_##name(Eval *ev, LangValue *arg, u32 n, LangValue *out) {                         \
    binary_fn(ev, arg, LOP_##name, TOK_##name, out);                                               \
    (void)n;                                                                                       \
  }
OF_TWO(add)
OF_TWO(sub)
OF_TWO(mul)
OF_TWO(div)
#undef OF_TWO

static void one(Eval *ev, const LangValue *arg, LazyOp op, LangValue *out) {
  *out = value_tensor(lazy_map(ev, op, arg_tensor(ev, arg), NULL, 0));
}

#define OF_ONE(name)                                                                               \
  void bi_tensor_##name(Eval *ev, LangValue *arg, u32 n, LangValue *out) {                         \
    one(ev, arg, LOP_##name, out);                                                                 \
    (void)n;                                                                                       \
  }
OF_ONE(abs)
OF_ONE(sqrt)
OF_ONE(exp)
OF_ONE(log)
#undef OF_ONE

/* ---- reshaping ---- */

static LangValue reshaped(Eval *ev, LazyTensor *t, const i64 *dim, u32 rank) {
  if (dims_count(ev, dim, rank) != t->n ||
      size_product(ev, dim, rank) != size_product(ev, t->dim, t->rank))
    ARG_BAD(ev, "%s(): cannot reshape %s to %s", builtin_name(ev), dims_text(ev, t->dim, t->rank),
            dims_text(ev, dim, rank));
  return value_tensor(lazy_make(ev, LOP_reshape, &t, 1, NULL, 0, dim, rank));
}

void bi_tensor_reshape(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  i64 dim[MAX_RANK], known = 1, open = -1;
  LazyTensor *t = arg_tensor(ev, &arg[0]);
  u32 rank = arg_shape(ev, &arg[1], dim);
  for (u32 i = 0; i < rank; i++) {
    if (size_is_symbolic(ev, dim[i])) continue;
    if ((dim[i] == -1 || dim[i] == SIZE_ANY) && open < 0)
      open = i;
    else
      known = dim[i] > 0 && known > 0 && known < (i64)1 << 30 ? known * dim[i] : dim[i] ? known : 0;
  }
  if (open >= 0 && dims_count(ev, t->dim, t->rank) == UNKNOWN_COUNT)
    dim[open] = size_infer(ev, t, dim, rank, (u32)open);
  else if (open >= 0 && known > 0 && t->n % (u64)known == 0)
    dim[open] = (i64)(t->n / (u64)known);
  *out = reshaped(ev, t, dim, rank);
  (void)n;
}

void bi_flatten(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *t = arg_tensor(ev, &arg[0]);
  const i64 all = size_product(ev, t->dim, t->rank);
  *out = reshaped(ev, t, &all, 1);
  (void)n;
}

void bi_tensor_transpose(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *t = arg_tensor(ev, &arg[0]);
  i64 dim[MAX_RANK];
  if (t->rank < 2)
    ARG_BAD(ev, "%s() takes a matrix, got shape %s", builtin_name(ev),
            dims_text(ev, t->dim, t->rank));
  memcpy(dim, t->dim, sizeof dim);
  dim[t->rank - 1] = t->dim[t->rank - 2];
  dim[t->rank - 2] = t->dim[t->rank - 1];
  *out = value_tensor(lazy_make(ev, LOP_transpose, &t, 1, NULL, 0, dim, t->rank));
  (void)n;
}

void bi_tensor_concat(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  const ListObj *l = arg_array(ev, &arg[0]);
  if (!l->n) ARG_BAD(ev, "tensor_concat(): expected at least one tensor");
  const LazyTensor *first = arg_tensor(ev, &l->at[0]);
  i64 axis = n > 1 ? arg_int(ev, &arg[1]) : 0, dim[MAX_RANK];
  if (axis < 0) axis += first->rank;
  if (axis < 0 || axis >= first->rank) ARG_BAD(ev, "tensor_concat(): the axis is out of range");
  memcpy(dim, first->dim, sizeof dim);
  dim[axis] = 0;
  Mark mark = arena_mark(&ev->stack);
  LazyTensor **in = arena_array(&ev->stack, l->n, sizeof *in);
  for (u64 i = 0; i < l->n; i++) {
    in[i] = arg_tensor(ev, &l->at[i]);
    for (u32 k = 0; k < first->rank; k++)
      if (in[i]->rank != first->rank || (k != axis && in[i]->dim[k] != dim[k]))
        ARG_BAD(ev, "tensor_concat(): shape mismatch %s vs %s",
                dims_text(ev, first->dim, first->rank), dims_text(ev, in[i]->dim, in[i]->rank));
    dim[axis] = size_sum(ev, dim[axis], in[i]->dim[axis]);
  }
  double attr = (double)axis;
  *out = value_tensor(lazy_make(ev, LOP_concat, in, (u32)l->n, &attr, 1, dim, first->rank));
  arena_rewind(&ev->stack, mark);
}

/* ---- reductions ---- */

static double total(Eval *ev, LazyTensor *t) {
  const double *x = lazy_data(ev, t);
  double s = 0;
  for (u64 i = 0; i < t->n; i++) s += x[i];
  return s;
}

/* Returns a number, or a tensor of one element if gradients flow through t, or a tensor if an axis
 * is given. */
static void reduce_sum(Eval *ev, LangValue *arg, u32 n, bool mean, LangValue *out) {
  LazyTensor *t = arg_tensor(ev, &arg[0]);
  const i64 one = 1;
  i64 dim[MAX_RANK], axis = n > 1 ? arg_int(ev, &arg[1]) : 0;
  if (n == 1 && !t->tracked) {
    *out = value_float(mean ? total(ev, t) / (double)t->n : total(ev, t));
    return;
  }
  if (n == 1) {
    *out = value_tensor(lazy_make(ev, mean ? LOP_mean : LOP_sum, &t, 1, NULL, 0, &one, 1));
    return;
  }
  if (axis < 0) axis += t->rank;
  if (axis < 0 || axis >= t->rank) ARG_BAD(ev, "%s(): the axis is out of range", builtin_name(ev));
  u32 rank = 0;
  for (u32 i = 0; i < t->rank; i++)
    if (i != axis) dim[rank++] = t->dim[i];
  double attr = (double)axis;
  *out =
      value_tensor(lazy_make(ev, mean ? LOP_mean_axis : LOP_sum_axis, &t, 1, &attr, 1, dim, rank));
}

void bi_sum(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  reduce_sum(ev, arg, n, false, out);
}

void bi_mean(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  reduce_sum(ev, arg, n, true, out);
}

static i64 argmax_of(const double *x, i64 n, i64 step) {
  i64 at = 0;
  for (i64 i = 1; i < n; i++)
    if (x[i * step] > x[at * step]) at = i;
  return at;
}

static LangValue argmax_value(Eval *ev, const double *x, i64 n, i64 step) {
  i64 at = argmax_of(x, n, step);
  LangValue open = value_float(x[at * step]), d = value_int(at);
  return value_is_unknown(ev, &open) ? value_unknown(ev, KD_int) : d;
}

/* Over all elements, or an array along the last axis. */
void bi_argmax(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *t = arg_tensor(ev, &arg[0]);
  const double *x = lazy_data(ev, t);
  if (!t->n) ARG_BAD(ev, "argmax() of an empty tensor");
  if (n == 1) {
    *out = argmax_value(ev, x, (i64)t->n, 1);
    return;
  }
  i64 axis = arg_int(ev, &arg[1]);
  if (axis < 0) axis += t->rank;
  if (axis < 0 || axis >= t->rank) ARG_BAD(ev, "argmax(): the axis is out of range");
  i64 inner = 1, extent = t->dim[axis];
  for (u32 i = (u32)axis + 1; i < t->rank; i++) inner *= t->dim[i];
  *out = value_list(ev, KD_array, t->n / (u64)extent);
  for (i64 i = 0; i < (i64)out->u.list->n; i++)
    out->u.list->at[i] =
        argmax_value(ev, x + i / inner * inner * extent + i % inner, extent, inner);
}
