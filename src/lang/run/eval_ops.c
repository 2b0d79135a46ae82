/* eval_ops.c: operators, casts, indices and conversions.
 *
 * Integers have 64 bits and wrap. If one operand is a float, both become floats. Division by zero
 * fails.
 */
#include "lang/run/dry.h"

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

LangValue eval_binary(Eval *ev, const Ast *n, const LangValue *x, const LangValue *y) {
  LangValue open;
  ev->at = n;
  if (ev->dry && dry_binary(ev, n, x, y, &open)) return open;
  if (ev->dims && size_binary(ev, n, x, y, &open)) return open;
  bool mixed =
      x->kind == KD_tensor ? y->kind == KD_array : x->kind == KD_array && y->kind == KD_tensor;
  if (mixed && (n->op == TOK_eq || n->op == TOK_ne))
    return equal_elements(ev, x, y, n->op == TOK_eq);
  if (n->op == TOK_eq || n->op == TOK_ne)
    return value_bool(value_equal(ev, x, y) == (n->op == TOK_eq));
  if (n->op != TOK_mod && (x->kind == KD_tensor || y->kind == KD_tensor) &&
      (x->kind == KD_tensor || is_number(x)) && (y->kind == KD_tensor || is_number(y)))
    return tensor_binary(ev, n, n->op, x, y);
  if (n->op == TOK_at) cannot(ev, n, x, y);
  if (x->kind == KD_int && y->kind == KD_int) return of_ints(ev, n, x->u.i, y->u.i);
  if (is_number(x) && is_number(y) && n->op != TOK_mod)
    return of_floats(ev, n, x->kind == KD_int ? (double)x->u.i : x->u.f,
                     y->kind == KD_int ? (double)y->u.i : y->u.f);
  bool joins =
      n->op == TOK_add && x->kind == y->kind && (x->kind == KD_string || x->kind == KD_array);
  if (!joins) cannot(ev, n, x, y);
  return joined(ev, x, y);
}

LangValue eval_unary(Eval *ev, const Ast *n) {
  LangValue v = eval_node(ev, n->a), r = v;
  if (ev->flow != FLOW_next) return v;
  if (value_is_unknown(ev, &v)) {
    r = value_unknown(ev, n->op == TOK_not ? KD_bool : v.kind);
  } else if (n->op == TOK_not) {
    r = value_bool(!value_is_true(&v));
  } else if (v.kind == KD_int) {
    r = value_int((i64)(0 - (u64)v.u.i));
  } else if (v.kind == KD_float) {
    r = value_float(-v.u.f);
  } else if (v.kind == KD_tensor) {
    ev->at = n;
    r = tensor_negate(ev, v.u.lazy);
  } else {
    eval_fail(ev, n, "Cannot negate %s", value_kind_name(&v));
  }
  value_drop(ev, &v);
  return r;
}

static i64 truncated(double x) {
  if (isnan(x)) return 0;
  if (x >= 0x1p63) return INT64_MAX;
  if (x < -0x1p63) return INT64_MIN;
  return (i64)x;
}

LangValue eval_cast(Eval *ev, const Ast *n) {
  LangValue v = eval_node(ev, n->a);
  char to = *str_text(ev->c, n->name);
  if (ev->flow != FLOW_next) return v;
  if (v.kind == KD_tensor && v.u.lazy->n == 1) {
    if (to == 'f' && ev->in_grad && v.u.lazy->tracked) return v; /* keeps gradients */
    double x = lazy_data(ev, v.u.lazy)[0];
    value_drop(ev, &v);
    v = value_float(x);
  }
  LangValue open;
  if (ev->dry && dry_cast(ev, &v, to, &open)) return open;
  if (value_is_unknown(ev, &v) && to == 'i') return v;
  if (value_is_unknown(ev, &v)) dry_refuse(ev, n, "a number");
  if (!is_number(&v) && v.kind != KD_bool)
    eval_fail(ev, n, "Cannot cast %s to %s", value_kind_name(&v), str_text(ev->c, n->name));
  double x = v.kind == KD_float ? v.u.f : (double)v.u.i;
  if (to == 'b') return value_bool(x != 0);
  if (to == 'f') return value_float(x);
  return v.kind == KD_float ? value_int(truncated(x)) : value_int(v.u.i);
}

/* ---- ranges and indices ---- */

static i64 bound(Eval *ev, Ast *n, bool *known) {
  LangValue d = eval_node(ev, n);
  if (value_is_unknown(ev, &d)) *known = false;
  if (ev->flow != FLOW_next) return 0;
  if (d.kind == KD_float) return truncated(d.u.f);
  if (d.kind != KD_int)
    eval_fail(ev, n, "a range goes from number to number, got %s", value_kind_name(&d));
  return d.u.i;
}

bool eval_bounds(Eval *ev, const Ast *range, i64 *from, i64 *end) {
  bool known = true;
  *from = bound(ev, range->a, &known);
  *end = bound(ev, range->b, &known);
  if (range->op != TOK_upto) return known;
  if (*end == INT64_MAX) eval_fail(ev, range, "the range is too long");
  *end += 1;
  return known;
}

LangValue eval_range(Eval *ev, const Ast *n) {
  i64 from, end;
  if (!eval_bounds(ev, n, &from, &end)) dry_refuse(ev, n, "a range");
  ev->at = n;
  u64 count = end > from ? (u64)end - (u64)from : 0;
  LangValue d = value_list(ev, KD_array, count);
  for (u64 i = 0; i < count; i++) d.u.list->at[i] = value_int(from + (i64)i);
  return d;
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

static LangValue at_index(Eval *ev, const Ast *n, const LangValue *v, const LangValue *i) {
  LangValue open;
  if (ev->dry && dry_element(ev, n, v, i, &open)) return open;
  if (!ev->dry && value_is_unknown(ev, i)) dry_refuse(ev, n->b, "an index");
  if (v->kind == KD_tensor) return tensor_index(ev, n, v->u.lazy, i);
  if (v->kind != KD_array) eval_fail(ev, n, "Cannot index into %s", value_kind_name(v));
  if (i->kind == KD_array) return slice(ev, n, v->u.list, i->u.list);
  if (i->kind != KD_int)
    eval_fail(ev, n->b, "Index must be an integer or range, got %s", value_kind_name(i));
  i64 k = i->u.i < 0 ? i->u.i + (i64)v->u.list->n : i->u.i;
  if (k < 0 || (u64)k >= v->u.list->n)
    eval_fail(ev, n->b, "Index out of bounds: %lld", (long long)i->u.i);
  return value_retain(&v->u.list->at[k]);
}

LangValue eval_index(Eval *ev, const Ast *n) {
  LangValue i, r, *name = n->a->kind == AST_name && !n->a->to ? eval_variable(ev, n->a) : NULL;
  LangValue v = name ? (LangValue){.kind = KD_null} : eval_node(ev, n->a);
  i = eval_node(ev, n->b);
  if (ev->flow != FLOW_next) return v;
  if (name) name = eval_variable(ev, n->a); /* the index may have redefined it */
  ev->at = n;
  r = at_index(ev, n, name ? name : &v, &i);
  value_drop(ev, &v);
  value_drop(ev, &i);
  return r;
}

/* ---- conversions ---- */

static _Noreturn void unfit(Eval *ev, const Ast *n, const LangValue *d, const LangType *to) {
  eval_fail(ev, n, "expected %s, found %s", lang_type_text(ev->c, to), value_kind_name(d));
}

static void check_size(Eval *ev, const Ast *n, const LazyTensor *t, u32 i, const LangType *to) {
  const char *name = to->name && to->name[i] ? str_text(ev->c, to->name[i]) : NULL;
  i64 want = to->dim[i];
  if (!symbols_unify(&ev->local->size, name, &want, t->dim[i]))
    eval_fail(ev, n, "more than %d symbols in the types of a function", SYMBOLS);
  StrBuf text = sb_new(&ev->c->keep);
  if (want == t->dim[i]) return;
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
    eval_convert(ev, n, &list_make_unique(ev, d)->at[i], elem);
  }
}

/* Converts a tensor of one element to a number, unless gradients flow through it. */
static void becomes_float(Eval *ev, const Ast *n, LangValue *d, const LangType *to) {
  if (d->kind == KD_int) {
    *d = value_is_unknown(ev, d) ? value_unknown(ev, KD_float) : value_float((double)d->u.i);
  } else if (d->kind == KD_tensor && d->u.lazy->n == 1) {
    if (ev->in_grad && d->u.lazy->tracked) return;
    double x = lazy_data(ev, d->u.lazy)[0];
    value_drop(ev, d);
    *d = value_float(x);
  } else if (d->kind != KD_float) {
    unfit(ev, n, d, to);
  }
}

void eval_convert(Eval *ev, const Ast *n, LangValue *d, const LangType *to) {
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
