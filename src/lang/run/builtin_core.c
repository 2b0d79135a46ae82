/* builtin_core.c: built-in functions of numbers, strings and arrays. */
#include "lang/run/lang_value.h"
#include "lang/run/tensor.h"

#include <math.h>
#include <string.h>

static void write_text(Eval *ev, const StrBuf *t) {
  if (ev->o->write && t->n) ev->o->write(ev->o->user, t->at, t->n);
}

void bi_print(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  Mark mark = arena_mark(&ev->stack);
  StrBuf t = sb_new(&ev->stack);
  for (u32 i = 0; i < n; i++) { /* show before printing, because showing may compute */
    if (i) sb_puts(&t, " ");
    value_show(ev, &arg[i], &t);
  }
  sb_puts(&t, "\n");
  write_text(ev, &t);
  arena_rewind(&ev->stack, mark);
  (void)out;
}

void bi_str(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  Mark mark = arena_mark(&ev->stack);
  StrBuf t = sb_new(&ev->stack);
  value_show(ev, &arg[0], &t);
  *out = value_string(ev, t.at, t.n);
  arena_rewind(&ev->stack, mark);
  (void)n;
}

void bi_len(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  (void)n;
  switch (arg->kind) {
  case KD_string: *out = value_int((i64)arg->u.text->n); return;
  case KD_array:
  case KD_tuple: *out = value_int((i64)arg->u.list->n); return;
  case KD_tensor: bi_tensor_size(ev, arg, n, out); return;
  default: ARG_BAD(ev, "len() takes an array, a string or a tensor, got %s", value_kind_name(arg));
  }
}

void bi_range(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  i64 from = n > 1 ? arg_int(ev, &arg[0]) : 0, end = arg_int(ev, &arg[n > 1 ? 1 : 0]);
  i64 step = n > 2 ? arg_int(ev, &arg[2]) : 1;
  if (!step) ARG_BAD(ev, "range(): the step is 0");
  u64 span = step > 0     ? (end > from ? (u64)end - (u64)from : 0)
             : from > end ? (u64)from - (u64)end
                          : 0;
  u64 by = step > 0 ? (u64)step : 0 - (u64)step, count = span / by + (span % by != 0);
  *out = value_list(ev, KD_array, count);
  for (u64 i = 0; i < count; i++) out->u.list->at[i] = value_int((i64)((u64)from + i * (u64)step));
}

void bi_type(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  const char *text = value_kind_name(&arg[0]);
  *out = value_string(ev, text, strlen(text));
  (void)n;
}

void bi_assert(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  (void)out;
  if (value_is_true(&arg[0])) return;
  StrBuf t = sb_new(&ev->c->keep);
  if (n > 1) value_show(ev, &arg[1], &t);
  ARG_BAD(ev, "%s", n > 1 ? sb_cstr(&t) : "the assertion does not hold");
}

/* ---- numbers, and tensors element by element ---- */

double number_of(Op op, double x, double y) {
  return scalar_eval(op, DT_f64, (Scalar[]){{.f = x}, {.f = y}, {.f = 0}}).f;
}

double number_minmax(bool largest, double x, double y) {
  return (largest ? x >= y : x <= y) || isnan(y) ? x : y;
}

static void unary_fn(Eval *ev, LangValue *arg, LazyOp op, Op of, LangValue *out) {
  if (arg->kind == KD_tensor) {
    *out = value_tensor(lazy_map(ev, op, arg->u.lazy, NULL, 0));
    out->u.lazy->raw = arg->u.lazy->raw;
  } else {
    *out = value_float(number_of(of, arg_number(ev, arg), 0));
  }
}

void bi_abs(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  (void)n;
  if (arg->kind == KD_int)
    *out = value_int(arg->u.i < 0 ? (i64)(0 - (u64)arg->u.i) : arg->u.i);
  else
    unary_fn(ev, arg, LOP_abs, OP_abs, out);
}

void bi_sqrt(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  (void)n;
  if (arg->kind != KD_tensor && arg_number(ev, arg) < 0) ARG_BAD(ev, "sqrt() of a negative number");
  unary_fn(ev, arg, LOP_sqrt, OP_sqrt, out);
}

void bi_log(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  (void)n;
  if (arg->kind != KD_tensor && !(arg_number(ev, arg) > 0))
    ARG_BAD(ev, "log() of a number that is not above 0");
  unary_fn(ev, arg, LOP_log, OP_log, out);
}

#define OF_ONE(name)                                                                               \
  void bi_##name(Eval *ev, LangValue *arg, u32 n, LangValue *out) {                                \
    unary_fn(ev, arg, LOP_##name, OP_##name, out);                                                 \
    (void)n;                                                                                       \
  }
OF_ONE(exp)
OF_ONE(sin)
OF_ONE(cos)
OF_ONE(tan)
#undef OF_ONE

void bi_pow(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  (void)n;
  if (arg[0].kind != KD_tensor && arg[1].kind != KD_tensor) {
    *out = value_float(number_of(OP_pow, arg_number(ev, &arg[0]), arg_number(ev, &arg[1])));
    return;
  }
  LazyTensor *p = tensor_of(ev, &arg[0]), *q = tensor_of(ev, &arg[1]);
  *out = value_tensor(tensor_broadcast_op(ev, LOP_pow, p, q, "pow()"));
  lazy_drop(ev, p);
  lazy_drop(ev, q);
}

/* Two tensors give a tensor; a tensor and a number only if gradients flow through the tensor. */
static bool stays_tensor(const LangValue *x, const LangValue *y) {
  if (x->kind == KD_tensor && y->kind == KD_tensor) return true;
  return (x->kind == KD_tensor && x->u.lazy->tracked) ||
         (y->kind == KD_tensor && y->u.lazy->tracked);
}

/* One tensor: its largest or smallest element. Two numbers or two tensors: element by element. */
static void min_or_max(Eval *ev, LangValue *arg, u32 n, bool largest, LangValue *out) {
  if (n == 1) {
    LazyTensor *t = arg_tensor(ev, arg);
    const double *x = lazy_data(ev, t);
    if (!t->n) ARG_BAD(ev, "%s() of an empty tensor", builtin_name(ev));
    u64 best = 0;
    for (u64 i = 1; i < t->n; i++)
      if (largest ? x[i] > x[best] : x[i] < x[best]) best = i;
    *out = ev->in_grad && t->tracked ? value_tensor(tensor_element(ev, t, best))
                                     : value_float(x[best]);
  } else if (stays_tensor(&arg[0], &arg[1])) {
    LazyTensor *p = tensor_of(ev, &arg[0]), *q = tensor_of(ev, &arg[1]);
    *out =
        value_tensor(tensor_broadcast_op(ev, largest ? LOP_max : LOP_min, p, q, builtin_name(ev)));
    lazy_drop(ev, p);
    lazy_drop(ev, q);
  } else if (arg[0].kind == KD_int && arg[1].kind == KD_int) {
    bool first = largest ? arg[0].u.i >= arg[1].u.i : arg[0].u.i <= arg[1].u.i;
    *out = value_int(arg[first ? 0 : 1].u.i);
  } else {
    double x = arg_number(ev, &arg[0]), y = arg_number(ev, &arg[1]);
    *out = value_float(number_minmax(largest, x, y));
  }
}

void bi_min(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  min_or_max(ev, arg, n, false, out);
}

void bi_max(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  min_or_max(ev, arg, n, true, out);
}
