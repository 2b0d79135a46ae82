/* builtin_args.c: argument checks of built-in functions. */
#include "lang/run/tensor.h"

#include <math.h>

void refuse_tracked(Eval *ev, const LazyTensor *t) {
  if (t->tracked)
    ARG_BAD(ev,
            "%s(): no gradient goes through this argument; tensor_requires_grad(t, false) gives "
            "the tensor without one",
            builtin_name(ev));
}

double arg_number(Eval *ev, const LangValue *d) {
  if (value_is_unknown(ev, d)) return value_unknown(ev, KD_float).u.f;
  if (d->kind == KD_int) return (double)d->u.i;
  if (d->kind == KD_float) return d->u.f;
  if (d->kind == KD_tensor && d->u.lazy->n == 1) {
    refuse_tracked(ev, d->u.lazy);
    return lazy_data(ev, d->u.lazy)[0];
  }
  ARG_BAD(ev, "%s() takes a number here, got %s", builtin_name(ev), value_kind_name(d));
}

i64 arg_int(Eval *ev, const LangValue *d) {
  if (value_is_unknown(ev, d)) dry_refuse(ev, ev->at, "an integer");
  if (d->kind == KD_int) return d->u.i;
  if (d->kind == KD_float && d->u.f == trunc(d->u.f) && fabs(d->u.f) < 0x1p62) return (i64)d->u.f;
  ARG_BAD(ev, "%s() takes an integer here, got %s", builtin_name(ev), value_kind_name(d));
}

ListObj *arg_array(Eval *ev, const LangValue *d) {
  if (value_is_unknown(ev, d)) dry_refuse(ev, ev->at, "the length of an array");
  if (d->kind == KD_array) return d->u.list;
  ARG_BAD(ev, "%s() takes an array here, got %s", builtin_name(ev), value_kind_name(d));
}
