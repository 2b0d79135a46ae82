/* sizes.c: symbolic extents in a traced function (trace.c).
 *
 * A size name in a parameter type without a value is a symbol of the graph (Dim), bounded by
 * --max-shapes. Derived shapes are expressions. As an integer it is unknown: it can be added,
 * multiplied and used in shapes. Anything that needs its value is refused.
 */
#include "lang/run/dry.h"

bool size_is_symbolic(const Eval *ev, i64 d) {
  return ev->dims && d < 0 && d != SIZE_ANY;
}

i64 size_times(Eval *ev, i64 x, i64 y) {
  return ev->dims ? dim_mul(ev->dims, x, y) : x * y;
}

i64 size_sum(Eval *ev, i64 x, i64 y) {
  return ev->dims ? dim_add(ev->dims, x, y) : x + y;
}

i64 size_window_count(Eval *ev, i64 extent, i64 size, i64 stride) {
  Dim room = dim_addk(ev->dims, extent, -size);
  return dim_addk(ev->dims, dim_div(ev->dims, room, stride), 1);
}

/* Extents on both sides cancel, so that symbols are not divided. */
i64 size_infer(Eval *ev, const LazyTensor *t, const i64 *dim, u32 rank, u32 without) {
  i64 all[MAX_RANK], by[MAX_RANK];
  u32 nall = t->rank, nby = 0;
  for (u32 i = 0; i < t->rank; i++) all[i] = t->dim[i];
  for (u32 i = 0; i < rank; i++) {
    u32 k = 0;
    if (i == without) continue;
    while (k < nall && !(size_is_symbolic(ev, dim[i]) && all[k] == dim[i])) k++;
    if (k < nall)
      all[k] = all[--nall];
    else
      by[nby++] = dim[i];
  }
  Dim n = dim_product(ev->dims, all, nall), d = dim_product(ev->dims, by, nby);
  if (size_is_symbolic(ev, d) || d == 0) dry_refuse(ev, ev->at, "an extent");
  Dim q = dim_div(ev->dims, n, d);
  if (dim_mul(ev->dims, q, d) != n) dry_refuse(ev, ev->at, "an extent");
  return q;
}

void size_show(const Eval *ev, i64 d, StrBuf *out) {
  if (size_is_symbolic(ev, d))
    dim_print(ev->dims, d, out);
  else
    sb_fmt(out, "%lld", (long long)d);
}

LangValue value_size(const Eval *ev, i64 d) {
  LangValue n = value_int(d);
  n.open = size_is_symbolic(ev, d) ? UNK_size : UNK_none;
  return n;
}

i64 arg_size(Eval *ev, const LangValue *d) {
  if (ev->dims && d->kind == KD_int && d->open) return d->u.i;
  i64 n = arg_int(ev, d);
  if (ev->dims && n < -1) ARG_BAD(ev, "%s(): an extent is negative", builtin_name(ev));
  return ev->dims && n == -1 ? SIZE_ANY : n;
}

bool size_binary(Eval *ev, const Ast *n, const LangValue *x, const LangValue *y, LangValue *out) {
  if (!x->open && !y->open) return false;
  bool ints = x->kind == KD_int && y->kind == KD_int;
  bool known = (x->open || x->u.i >= 0) && (y->open || y->u.i >= 0);
  if (!ints || !known || (n->op != TOK_add && n->op != TOK_mul))
    dry_refuse(ev, n, "what is computed");
  *out = value_size(ev, n->op == TOK_add ? dim_add(ev->dims, x->u.i, y->u.i)
                                         : dim_mul(ev->dims, x->u.i, y->u.i));
  return true;
}
