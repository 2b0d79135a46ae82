/* value_ops.c: operators, casts, indices and conversions. Also compiled into programs.
 *
 * Integers have 64 bits and wrap. If one operand is a float, both become floats. Division by zero
 * fails. Unknown values (dry.h) are handled by the callers, except in casts and conversions.
 */
#include "lang/run/dry.h"
#include "lang/run/tensor.h"

#include <math.h>
#include <string.h>

static const char *verb(Tok op) {
  switch (op) {
  case TOK_add: return "add";
  case TOK_sub: return "subtract";
  case TOK_mul:
  case TOK_at: return "multiply";
  case TOK_div: return "divide";
  case TOK_mod: return "modulo";
  default: return "compare";
  }
}

static _Noreturn void cannot(Eval *ev, const Ast *n, const LangValue *x, const LangValue *y) {
  eval_fail(ev, n, "Cannot %s %s and %s", verb(n->op), value_kind_name(x), value_kind_name(y));
}

static LangValue of_ints(Eval *ev, const Ast *n, i64 x, i64 y) {
  switch (n->op) {
  case TOK_add: return value_int((i64)((u64)x + (u64)y));
  case TOK_sub: return value_int((i64)((u64)x - (u64)y));
  case TOK_mul: return value_int((i64)((u64)x * (u64)y));
  case TOK_lt: return value_bool(x < y);
  case TOK_le: return value_bool(x <= y);
  case TOK_gt: return value_bool(x > y);
  case TOK_ge: return value_bool(x >= y);
  case TOK_eq: return value_bool(x == y);
  case TOK_ne: return value_bool(x != y);
  default: break;
  }
  if (!y) eval_fail(ev, n, n->op == TOK_mod ? "Modulo by zero" : "Division by zero");
  if (y == -1) return value_int(n->op == TOK_mod ? 0 : (i64)(0 - (u64)x)); /* avoids a trap */
  return value_int(n->op == TOK_mod ? x % y : x / y);
}

static LangValue of_floats(Eval *ev, const Ast *n, double x, double y) {
  switch (n->op) {
  case TOK_add: return value_float(x + y);
  case TOK_sub: return value_float(x - y);
  case TOK_mul: return value_float(x * y);
  case TOK_lt: return value_bool(x < y);
  case TOK_le: return value_bool(x <= y);
  case TOK_gt: return value_bool(x > y);
  case TOK_ge: return value_bool(x >= y);
  case TOK_eq: return value_bool(x == y);
  case TOK_ne: return value_bool(x != y);
  default: break;
  }
  if (y == 0) eval_fail(ev, n, "Division by zero");
  return value_float(x / y);
}

static LangValue joined(Eval *ev, const LangValue *x, const LangValue *y) {
  if (x->kind == KD_string) {
    u64 n = x->u.text->n;
    if (n + y->u.text->n > MOST_ELEMENTS) ARG_BAD(ev, "the string becomes too long");
    StringObj *t = heap_new(ev, KD_string, sizeof *t + n + y->u.text->n + 1);
    t->n = n + y->u.text->n;
    memcpy(t->at, x->u.text->at, n);
    memcpy(t->at + n, y->u.text->at, y->u.text->n);
    return (LangValue){KD_string, .u = {.text = t}};
  }
  u64 n = x->u.list->n, more = y->u.list->n;
  LangValue d = value_list(ev, KD_array, n + more);
  for (u64 i = 0; i < n; i++) d.u.list->at[i] = value_retain(&x->u.list->at[i]);
  for (u64 i = 0; i < more; i++) d.u.list->at[n + i] = value_retain(&y->u.list->at[i]);
  return d;
}

static bool is_number(const LangValue *d) {
  return d->kind == KD_int || d->kind == KD_float;
}

static double as_double(const LangValue *d) {
  return d->kind == KD_int ? (double)d->u.i : d->u.f;
}

LangValue value_binary(Eval *ev, const Ast *n, const LangValue *x, const LangValue *y) {
  ev->at = n;
  if (n->op == TOK_at && x->kind != KD_tensor && y->kind != KD_tensor) cannot(ev, n, x, y);
  if (x->kind == KD_int && y->kind == KD_int) return of_ints(ev, n, x->u.i, y->u.i);
  if (is_number(x) && is_number(y) && n->op != TOK_mod)
    return of_floats(ev, n, as_double(x), as_double(y));
  bool mixed =
      x->kind == KD_tensor ? y->kind == KD_array : x->kind == KD_array && y->kind == KD_tensor;
  if (mixed && (n->op == TOK_eq || n->op == TOK_ne))
    return equal_elements(ev, x, y, n->op == TOK_eq);
  if (n->op == TOK_eq || n->op == TOK_ne)
    return value_bool(value_equal(ev, x, y) == (n->op == TOK_eq));
  if (n->op != TOK_mod && (x->kind == KD_tensor || y->kind == KD_tensor) &&
      (x->kind == KD_tensor || is_number(x)) && (y->kind == KD_tensor || is_number(y)))
    return tensor_binary(ev, n, n->op, x, y);
  bool joins =
      n->op == TOK_add && x->kind == y->kind && (x->kind == KD_string || x->kind == KD_array);
  if (!joins) cannot(ev, n, x, y);
  return joined(ev, x, y);
}

LangValue value_negate(Eval *ev, const Ast *n, const LangValue *d) {
  ev->at = n;
  if (d->kind == KD_int) return value_int((i64)(0 - (u64)d->u.i));
  if (d->kind == KD_float) return value_float(-d->u.f);
  if (d->kind == KD_tensor) return tensor_negate(ev, d->u.lazy);
  eval_fail(ev, n, "Cannot negate %s", value_kind_name(d));
}

static i64 truncated(double x) {
  if (isnan(x)) return 0;
  if (x >= 0x1p63) return INT64_MAX;
  if (x < -0x1p63) return INT64_MIN;
  return (i64)x;
}

/* Converts a tensor of one element to a float. */
static void read_element(Eval *ev, LangValue *d) {
  double x = lazy_data(ev, d->u.lazy)[0];
  value_drop(ev, d);
  *d = value_float(x);
}

/* True if gradients flow through d, which then stays a tensor. */
static bool keeps_gradient(const Eval *ev, const LangValue *d) {
  return ev->in_grad && d->u.lazy->tracked;
}

LangValue value_cast(Eval *ev, const Ast *n, LangValue d, const char *to) {
  if (d.kind == KD_tensor && d.u.lazy->n == 1) {
    if (*to == 'f' && keeps_gradient(ev, &d)) return d;
    read_element(ev, &d);
  }
  if (value_is_unknown(ev, &d)) return dry_cast(ev, n, &d, *to);
  if (!is_number(&d) && d.kind != KD_bool)
    eval_fail(ev, n, "Cannot cast %s to %s", value_kind_name(&d), to);
  double x = d.kind == KD_float ? d.u.f : (double)d.u.i;
  if (*to == 'b') return value_bool(x != 0);
  if (*to == 'f') return value_float(x);
  return d.kind == KD_float ? value_int(truncated(x)) : value_int(d.u.i);
}

/* ---- ranges and indices ---- */

i64 value_bound(Eval *ev, const Ast *n, const LangValue *d) {
  if (d->kind == KD_float) return truncated(d->u.f);
  if (d->kind != KD_int) eval_fail(ev, n, "a range needs two numbers, got %s", value_kind_name(d));
  return d->u.i;
}

i64 value_upto(Eval *ev, const Ast *n, i64 end) {
  if (end == INT64_MAX) eval_fail(ev, n, "the range is too long");
  return end + 1;
}

LangValue value_range(Eval *ev, const Ast *n, i64 from, i64 end) {
  ev->at = n;
  u64 count = end > from ? (u64)end - (u64)from : 0;
  LangValue d = value_list(ev, KD_array, count);
  for (u64 i = 0; i < count; i++) d.u.list->at[i] = value_int(from + (i64)i);
  return d;
}

LangValue value_repeat(Eval *ev, const Ast *n, LangValue d, const LangValue *times) {
  ev->at = n;
  double k = arg_number(ev, times);
  if (k >= 0x1p62) k = 0x1p62; /* too many: reported below */
  LangValue l = value_list(ev, KD_array, k > 0 ? (u64)k : 0);
  for (u64 i = 0; i < l.u.list->n; i++) l.u.list->at[i] = value_retain(&d);
  value_drop(ev, &d);
  return l;
}

/* Slice from the first to the last element of the index, clipped. */
static LangValue slice(Eval *ev, const Ast *n, const ListObj *l, const ListObj *index) {
  i64 from = 0, to = 0;
  if (index->n) {
    const LangValue *a = &index->at[0], *b = &index->at[index->n - 1];
    if (a->kind != KD_int || b->kind != KD_int)
      eval_fail(ev, n->b, "Index must be an integer or range, got an array of %s",
                value_kind_name(a));
    from = a->u.i < 0 ? 0 : a->u.i;
    to = b->u.i < (i64)l->n ? b->u.i + 1 : (i64)l->n;
  }
  u64 count = to > from ? (u64)(to - from) : 0;
  LangValue d = value_list(ev, KD_array, count);
  for (u64 i = 0; i < count; i++) d.u.list->at[i] = value_retain(&l->at[from + (i64)i]);
  return d;
}

LangValue value_index(Eval *ev, const Ast *n, const LangValue *d, const LangValue *i) {
  ev->at = n;
  if (d->kind == KD_tensor) return tensor_index(ev, n, d->u.lazy, i);
  if (d->kind != KD_array) eval_fail(ev, n, "Cannot index into %s", value_kind_name(d));
  const ListObj *l = d->u.list;
  if (i->kind == KD_array) return slice(ev, n, l, i->u.list);
  if (i->kind != KD_int)
    eval_fail(ev, n->b, "Index must be an integer or range, got %s", value_kind_name(i));
  i64 k = i->u.i < 0 ? i->u.i + (i64)l->n : i->u.i;
  if (k < 0 || (u64)k >= l->n) eval_fail(ev, n->b, "Index out of bounds: %lld", (long long)i->u.i);
  return value_retain(&l->at[k]);
}

LangValue value_item(Eval *ev, const Ast *n, LangValue d, i64 i) {
  if (d.kind != KD_tuple && d.kind != KD_array)
    eval_fail(ev, n, "Cannot index type %s with tuple index syntax", value_kind_name(&d));
  if (i < 0 || (u64)i >= d.u.list->n)
    eval_fail(ev, n, "Tuple index out of bounds: index %lld on tuple of length %llu", (long long)i,
              (unsigned long long)d.u.list->n);
  LangValue x = value_retain(&d.u.list->at[i]);
  value_drop(ev, &d);
  return x;
}

LangValue *value_element(Eval *ev, const Ast *n, LangValue *in, const LangValue *i) {
  if (in->kind != KD_array) eval_fail(ev, n, "Cannot index into %s", value_kind_name(in));
  ListObj *l = list_make_unique(ev, in);
  if (!is_number(i))
    eval_fail(ev, n->b, "Index must be an integer or range, got %s", value_kind_name(i));
  double f = i->kind == KD_int ? 0 : trunc(i->u.f);
  i64 k = i->kind == KD_int ? i->u.i : fabs(f) < 9e18 ? (i64)f : -1;
  if (k < 0 || (u64)k >= l->n)
    eval_fail(ev, n->b, "Index %lld out of bounds (len=%llu)", (long long)k,
              (unsigned long long)l->n);
  return &l->at[k];
}

/* Not arg_array, because the length may be unknown. */
static ListObj *array_in(Eval *ev, const LangValue *d) {
  return d->kind == KD_array ? d->u.list : arg_array(ev, d);
}

LangValue value_push(Eval *ev, const Ast *n, LangValue *to, LangValue x) {
  ev->at = n;
  array_in(ev, to);
  list_push(ev, to, x);
  return value_retain(to);
}

LangValue value_pop(Eval *ev, const Ast *n, LangValue *from) {
  ev->at = n;
  if (!array_in(ev, from)->n) eval_fail(ev, n, "pop() of an empty array");
  ListObj *l = list_make_unique(ev, from);
  return l->at[--l->n];
}

/* ---- conversions ---- */

static _Noreturn void unfit(Eval *ev, const Ast *n, const LangValue *d, const LangType *to) {
  eval_fail(ev, n, "expected %s, found %s", lang_type_text(ev->c, to), value_kind_name(d));
}

static void check_size(Eval *ev, const Ast *n, const LazyTensor *t, u32 i, const LangType *to) {
  const char *name = type_symbol(ev, to, i);
  i64 want = to->dim[i];
  if (!symbols_unify(call_sizes(ev), name, &want, t->dim[i]))
    eval_fail(ev, n, "more than %d symbols in the types of a function", SYMBOLS);
  if (want == t->dim[i]) return;
  StrBuf text = sb_new(&ev->c->keep);
  size_show(ev, want, &text);
  eval_fail(ev, n, "the shape is %s, expected %s where %s is %s", dims_text(ev, t->dim, t->rank),
            lang_type_text(ev->c, to), name ? name : "the extent", sb_cstr(&text));
}

static void becomes_tensor(Eval *ev, const Ast *n, LangValue *d, const LangType *to) {
  if (d->kind == KD_array) {
    ev->at = n;
    LangValue t = value_tensor(lazy_from_array(ev, d));
    value_drop(ev, d);
    *d = t;
  }
  if (d->kind != KD_tensor) unfit(ev, n, d, to);
  const LazyTensor *t = d->u.lazy;
  if (to->shaped && t->rank != to->rank)
    eval_fail(ev, n, "the shape is %s, expected %s", dims_text(ev, t->dim, t->rank),
              lang_type_text(ev->c, to));
  for (u32 i = 0; to->shaped && i < t->rank; i++) check_size(ev, n, t, i, to);
}

/* True if no element needs a conversion; then the list is not copied. */
static bool is_ready(const LangValue *d, const LangType *to) {
  if (to->kind == KD_any || to->kind == KD_none) return true;
  if (to->kind == KD_float) return d->kind == KD_float;
  return to->kind == d->kind && to->kind != KD_struct && to->kind != KD_array &&
         to->kind != KD_tuple && to->kind != KD_tensor;
}

static void becomes_list(Eval *ev, const Ast *n, LangValue *d, const LangType *to) {
  if (d->kind != to->kind) unfit(ev, n, d, to);
  if (to->kind == KD_tuple && d->u.list->n != to->n) unfit(ev, n, d, to);
  for (u64 i = 0; i < d->u.list->n; i++) {
    const LangType *elem = to->kind == KD_tuple ? to->item[i] : to->elem;
    if (is_ready(&d->u.list->at[i], elem)) continue;
    value_convert(ev, n, &list_make_unique(ev, d)->at[i], elem);
  }
}

/* Converts a tensor of one element to a number, unless gradients flow through it. */
static void becomes_float(Eval *ev, const Ast *n, LangValue *d, const LangType *to) {
  if (d->kind == KD_int) {
    *d = value_is_unknown(ev, d) ? value_unknown(ev, KD_float) : value_float((double)d->u.i);
  } else if (d->kind == KD_tensor && d->u.lazy->n == 1) {
    if (!keeps_gradient(ev, d)) read_element(ev, d);
  } else if (d->kind != KD_float) {
    unfit(ev, n, d, to);
  }
}

void value_convert(Eval *ev, const Ast *n, LangValue *d, const LangType *to) {
  switch (to->kind) {
  case KD_any:
  case KD_none: return;
  case KD_float: becomes_float(ev, n, d, to); return;
  case KD_array:
  case KD_tuple: becomes_list(ev, n, d, to); return;
  case KD_tensor: becomes_tensor(ev, n, d, to); return;
  default:
    if (d->kind != to->kind) unfit(ev, n, d, to);
    if (to->kind == KD_struct && !struct_same(d->u.list->of, to->of)) unfit(ev, n, d, to);
  }
}
