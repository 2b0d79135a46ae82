/* core.c: built-in functions of numbers, strings and arrays. */
#include "lang/own.h"
#include "lang/tensor.h"

#include <math.h>
#include <string.h>

static void put(Eval *ev, const Text *t) {
  if (ev->o->write && t->n) ev->o->write(ev->o->user, t->at, t->n);
}

void bi_print(Eval *ev, Worth *arg, u32 n, Worth *out) {
  Mark mark = arena_mark(&ev->stack);
  Text t = text_new(&ev->stack);
  for (u32 i = 0; i < n; i++) { /* what is shown may compute: that comes first */
    if (i) text_puts(&t, " ");
    show_worth(ev, &arg[i], &t);
  }
  text_puts(&t, "\n");
  put(ev, &t);
  arena_rewind(&ev->stack, mark);
  (void)out;
}

void bi_str(Eval *ev, Worth *arg, u32 n, Worth *out) {
  Mark mark = arena_mark(&ev->stack);
  Text t = text_new(&ev->stack);
  show_worth(ev, &arg[0], &t);
  *out = worth_text(ev, t.at, t.n);
  arena_rewind(&ev->stack, mark);
  (void)n;
}

void bi_len(Eval *ev, Worth *arg, u32 n, Worth *out) {
  (void)n;
  switch (arg->kind) {
  case KD_string: *out = worth_int((i64)arg->u.text->n); return;
  case KD_array:
  case KD_tuple: *out = worth_int((i64)arg->u.list->n); return;
  case KD_tensor: bi_tensor_size(ev, arg, n, out); return;
  default: ARG_BAD(ev, "len() takes an array, a string or a tensor, got %s", worth_kind(arg));
  }
}

void bi_range(Eval *ev, Worth *arg, u32 n, Worth *out) {
  i64 from = n > 1 ? arg_int(ev, &arg[0]) : 0, end = arg_int(ev, &arg[n > 1 ? 1 : 0]);
  i64 step = n > 2 ? arg_int(ev, &arg[2]) : 1;
  if (!step) ARG_BAD(ev, "range(): the step is 0");
  u64 span = step > 0     ? (end > from ? (u64)end - (u64)from : 0)
             : from > end ? (u64)from - (u64)end
                          : 0;
  u64 by = step > 0 ? (u64)step : 0 - (u64)step, count = span / by + (span % by != 0);
  *out = worth_list(ev, KD_array, count);
  for (u64 i = 0; i < count; i++) out->u.list->at[i] = worth_int((i64)((u64)from + i * (u64)step));
}

void bi_type(Eval *ev, Worth *arg, u32 n, Worth *out) {
  const char *text = worth_kind(&arg[0]);
  *out = worth_text(ev, text, strlen(text));
  (void)n;
}

void bi_assert(Eval *ev, Worth *arg, u32 n, Worth *out) {
  (void)out;
  if (worth_true(&arg[0])) return;
  Text t = text_new(&ev->c->keep);
  if (n > 1) show_worth(ev, &arg[1], &t);
  ARG_BAD(ev, "%s", n > 1 ? text_cstr(&t) : "the assertion does not hold");
}

/* ---- numbers, and tensors element by element ---- */

double number_of(Op op, double x, double y) {
  return scalar_eval(op, DT_f64, (Scalar[]){{.f = x}, {.f = y}, {.f = 0}}).f;
}

double number_pick(bool largest, double x, double y) {
  return (largest ? x >= y : x <= y) || isnan(y) ? x : y;
}

static void of_one(Eval *ev, Worth *arg, TensorOp op, Op of, Worth *out) {
  if (arg->kind == KD_tensor) {
    *out = worth_lazy(lazy_map(ev, op, arg->u.lazy, NULL, 0));
    out->u.lazy->raw = arg->u.lazy->raw;
  } else {
    *out = worth_float(number_of(of, arg_number(ev, arg), 0));
  }
}

void bi_abs(Eval *ev, Worth *arg, u32 n, Worth *out) {
  (void)n;
  if (arg->kind == KD_int)
    *out = worth_int(arg->u.i < 0 ? (i64)(0 - (u64)arg->u.i) : arg->u.i);
  else
    of_one(ev, arg, RC_DO_abs, OP_abs, out);
}

void bi_sqrt(Eval *ev, Worth *arg, u32 n, Worth *out) {
  (void)n;
  if (arg->kind != KD_tensor && arg_number(ev, arg) < 0) ARG_BAD(ev, "sqrt() of a negative number");
  of_one(ev, arg, RC_DO_sqrt, OP_sqrt, out);
}

void bi_log(Eval *ev, Worth *arg, u32 n, Worth *out) {
  (void)n;
  if (arg->kind != KD_tensor && !(arg_number(ev, arg) > 0))
    ARG_BAD(ev, "log() of a number that is not above 0");
  of_one(ev, arg, RC_DO_log, OP_log, out);
}

#define OF_ONE(name)                                                                               \
  void bi_##name(Eval *ev, Worth *arg, u32 n, Worth *out) {                                        \
    of_one(ev, arg, RC_DO_##name, OP_##name, out);                                                 \
    (void)n;                                                                                       \
  }
OF_ONE(exp)
OF_ONE(sin)
OF_ONE(cos)
OF_ONE(tan)
#undef OF_ONE

void bi_pow(Eval *ev, Worth *arg, u32 n, Worth *out) {
  (void)n;
  if (arg[0].kind != KD_tensor && arg[1].kind != KD_tensor) {
    *out = worth_float(number_of(OP_pow, arg_number(ev, &arg[0]), arg_number(ev, &arg[1])));
    return;
  }
  Lazy *p = tensor_of(ev, &arg[0]), *q = tensor_of(ev, &arg[1]);
  *out = worth_lazy(tensor_two(ev, RC_DO_pow, p, q, "pow()"));
  lazy_drop(ev, p);
  lazy_drop(ev, q);
}

/* Two tensors are one again; beside a number, one that gradients go through. */
static bool stays_tensor(const Worth *x, const Worth *y) {
  if (x->kind == KD_tensor && y->kind == KD_tensor) return true;
  return (x->kind == KD_tensor && x->u.lazy->tracked) ||
         (y->kind == KD_tensor && y->u.lazy->tracked);
}

/* Of a tensor its largest or smallest element, of two numbers the one; of two tensors, element by
 * element. */
static void pick(Eval *ev, Worth *arg, u32 n, bool largest, Worth *out) {
  if (n == 1) {
    Lazy *t = arg_tensor(ev, arg);
    const double *x = lazy_data(ev, t);
    if (!t->n) ARG_BAD(ev, "%s() of an empty tensor", builtin_name(ev));
    u64 best = 0;
    for (u64 i = 1; i < t->n; i++)
      if (largest ? x[i] > x[best] : x[i] < x[best]) best = i;
    *out =
        ev->in_grad && t->tracked ? worth_lazy(tensor_element(ev, t, best)) : worth_float(x[best]);
  } else if (stays_tensor(&arg[0], &arg[1])) {
    Lazy *p = tensor_of(ev, &arg[0]), *q = tensor_of(ev, &arg[1]);
    *out = worth_lazy(tensor_two(ev, largest ? RC_DO_max : RC_DO_min, p, q, builtin_name(ev)));
    lazy_drop(ev, p);
    lazy_drop(ev, q);
  } else if (arg[0].kind == KD_int && arg[1].kind == KD_int) {
    bool first = largest ? arg[0].u.i >= arg[1].u.i : arg[0].u.i <= arg[1].u.i;
    *out = worth_int(arg[first ? 0 : 1].u.i);
  } else {
    double x = arg_number(ev, &arg[0]), y = arg_number(ev, &arg[1]);
    *out = worth_float(number_pick(largest, x, y));
  }
}

void bi_min(Eval *ev, Worth *arg, u32 n, Worth *out) {
  pick(ev, arg, n, false, out);
}

void bi_max(Eval *ev, Worth *arg, u32 n, Worth *out) {
  pick(ev, arg, n, true, out);
}
