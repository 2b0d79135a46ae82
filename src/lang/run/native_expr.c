/* native_expr.c: expressions as C; see native.h. Evaluation order and error messages are those of
 * eval*.c.
 */
#include "lang/run/native.h"

#include <math.h>
#include <string.h>

/* Suffix of bi_NAME, by row of builtins.def. */
static const char *const builtin_code[] = {
#define BI(name, sig, args, shape, fn) #fn,
#include "lang/syntax/builtins.def"
#undef BI
};

const char *native_builtin(const char *name) {
  return builtin_code[builtin_find(name)];
}

Temp native_temp(NativeGen *p) {
  return ++p->ntemp;
}

void native_live(NativeGen *p, Temp t) {
  *vec_push(p->a, &p->live) = t;
}

void native_moved(NativeGen *p, Temp t) {
  u32 i = p->live.n;
  while (i && p->live.at[i - 1] != t) i--;
  if (!i) return;
  for (; i < p->live.n; i++) p->live.at[i - 1] = p->live.at[i];
  p->live.n--;
}

/* A new live temp with the formatted value. */
#define VALUE(p, ...) value(p, sb_cstr(&(*format_text(p, __VA_ARGS__))))

__attribute__((format(printf, 2, 3))) static StrBuf *format_text(NativeGen *p, const char *fmt,
                                                                 ...) {
  StrBuf *t = NEW(p->a, StrBuf);
  va_list args;
  *t = sb_new(p->a);
  va_start(args, fmt);
  sb_vfmt(t, fmt, args);
  va_end(args);
  return t;
}

static Temp value(NativeGen *p, const char *c) {
  Temp t = native_temp(p);
  native_emit(p, "LangValue t%u = %s;", t, c);
  native_live(p, t);
  return t;
}

static bool has_self(const Ast *n) {
  for (u32 i = 0; i < n->nplace; i++)
    if (n->place[i].kind == VR_self) return true;
  return false;
}

/* "int", "float" or "bool" if the value of n has this kind for certain, else NULL. */
static const char *plain_kind(const NativeGen *p, const Ast *n) {
  const LangType *t = n->to ? n->to : n->type;
  if (!p->typed || !t) return NULL;
  return t->kind == KD_int     ? "int"
         : t->kind == KD_float ? "float"
         : t->kind == KD_bool  ? "bool"
                               : NULL;
}

static Temp name(NativeGen *p, const Ast *n) {
  u32 before = 0;
  while (before < n->nplace && n->place[before].kind != VR_self) before++;
  const char *kind = n->to ? NULL : plain_kind(p, n);
  if (before == n->nplace && before && kind)
    return VALUE(p, "%s_in(%s, %s, %u)", kind, native_pointer(p, n->place, n->nplace),
                 native_quoted(p, n->name), native_loc(p, n));
  if (before == n->nplace)
    return VALUE(p, "share(*held(%s, %s, %u))", native_pointer(p, n->place, n->nplace),
                 native_quoted(p, n->name), native_loc(p, n));
  const char *self = "share((LangValue){KD_fn, .u = {.fn = self}})";
  if (!before) return VALUE(p, "%s", self);
  const char *var = native_pointer(p, n->place, before);
  return VALUE(p, "(%s)->kind ? share(*%s) : %s", var, var, self);
}

Temp native_closure(NativeGen *p, Ast *n) {
  LangFn *f = n->fn;
  Temp t = VALUE(p, "(LangValue){KD_fn, .u = {.fn = fn_new(&fn_%u)}}", native_fn(p, f));
  for (u32 i = 0; i < f->capture.n; i++) {
    const Capture *c = &f->capture.at[i];
    u32 known = 0;
    while (known < c->nfrom && c->from[known].kind != VR_self) known++;
    if (known)
      native_emit(p, "t%u.u.fn->with[%u] = share(*%s);", t, i, native_pointer(p, c->from, known));
    else if (c->nfrom && p->in)
      native_emit(p, "t%u.u.fn->with[%u] = share((LangValue){KD_fn, .u = {.fn = self}});", t, i);
  }
  return t;
}

static Temp logical(NativeGen *p, const Ast *n) {
  Temp x = native_expr(p, n->a);
  native_moved(p, x);
  bool needs = n->op == TOK_and;
  native_emit(p, "int h%u = holds(t%u);", x, x);
  native_emit(p, "if (%sh%u) {", needs ? "" : "!", x);
  p->deep++;
  Temp y = native_expr(p, n->b);
  native_moved(p, y);
  native_emit(p, "h%u = holds(t%u);", x, y);
  p->deep--;
  native_emit(p, "}");
  return VALUE(p, "of_bool(h%u)", x);
}

static Temp binary(NativeGen *p, const Ast *n) {
  static const char *const name[TOK_COUNT] = {
      [TOK_add] = "add", [TOK_sub] = "sub", [TOK_mul] = "mul", [TOK_div] = "div",
      [TOK_mod] = "mod", [TOK_at] = "at",   [TOK_lt] = "lt",   [TOK_le] = "le",
      [TOK_gt] = "gt",   [TOK_ge] = "ge",   [TOK_eq] = "eq",   [TOK_ne] = "ne"};
  if (n->op == TOK_and || n->op == TOK_or) return logical(p, n);
  Temp x = native_expr(p, n->a), y = native_expr(p, n->b);
  native_moved(p, x);
  native_moved(p, y);
  const char *kind = plain_kind(p, n->a), *other = plain_kind(p, n->b);
  bool typed = kind && kind == other && *kind != 'b' && n->op != TOK_at;
  typed = typed && (n->op != TOK_mod || *kind == 'i');
  return VALUE(p, "do_%s%s%s(t%u, t%u, %u)", name[n->op], typed ? "_" : "", typed ? kind : "", x, y,
               native_loc(p, n));
}

static Temp unary(NativeGen *p, const Ast *n) {
  Temp x = native_expr(p, n->a);
  native_moved(p, x);
  if (n->op == TOK_not) return VALUE(p, "of_bool(!holds(t%u))", x);
  return VALUE(p, "do_neg(t%u, %u)", x, native_loc(p, n));
}

static Temp cast(NativeGen *p, const Ast *n) {
  Temp x = native_expr(p, n->a);
  native_moved(p, x);
  return VALUE(p, "cast(t%u, %s, %u)", x, native_quoted(p, n->name), native_loc(p, n));
}

/* Declares the bounds of a range, loN and hiN. Returns N. */
Temp native_bounds(NativeGen *p, const Ast *n) {
  Temp a = native_expr(p, n->a);
  native_moved(p, a);
  native_emit(p, "int64_t lo%u = bound(t%u, %u);", a, a, native_loc(p, n->a));
  Temp b = native_expr(p, n->b);
  native_moved(p, b);
  native_emit(p, "int64_t hi%u = bound(t%u, %u);", a, b, native_loc(p, n->b));
  if (n->op == TOK_upto) native_emit(p, "hi%u = upto(hi%u, %u);", a, a, native_loc(p, n));
  return a;
}

static Temp range(NativeGen *p, const Ast *n) {
  Temp t = native_bounds(p, n);
  return VALUE(p, "range(lo%u, hi%u, %u)", t, t, native_loc(p, n));
}

static Temp list(NativeGen *p, const Ast *n) {
  Temp t =
      VALUE(p, "value_list(&eval, KD_%s, %u)", n->kind == AST_array ? "array" : "tuple", n->nkid);
  for (u32 i = 0; i < n->nkid; i++) {
    Temp x = native_expr(p, n->kid[i]);
    native_moved(p, x);
    native_emit(p, "t%u.u.list->at[%u] = t%u;", t, i, x);
  }
  return t;
}

static Temp record(NativeGen *p, const Ast *n) {
  Temp t = VALUE(p, "of_struct(&struct_%u)", native_struct(p, n->of));
  for (u32 i = 0; i < n->nkid; i++) {
    Temp x = native_expr(p, n->kid[i]->a);
    native_moved(p, x);
    native_emit(p, "t%u.u.list->at[%u] = t%u;", t, n->kid[i]->slot, x);
  }
  return t;
}

static Temp repeat(NativeGen *p, const Ast *n) {
  Temp x = native_expr(p, n->a), times = native_expr(p, n->b);
  native_moved(p, x);
  native_moved(p, times);
  return VALUE(p, "repeat(t%u, t%u, %u)", x, times, native_loc(p, n));
}

/* Reads an element of a variable without copying the list. */
static Temp element(NativeGen *p, const Ast *n) {
  u32 at = native_loc(p, n), where = native_loc(p, n->b);
  if (n->a->kind == AST_name && !n->a->to && !has_self(n->a)) {
    const char *var = native_pointer(p, n->a->place, n->a->nplace);
    const char *name = native_quoted(p, n->a->name);
    u32 of = native_loc(p, n->a);
    native_emit(p, "held(%s, %s, %u);", var, name, of);
    Temp i = native_expr(p, n->b);
    native_moved(p, i);
    return VALUE(p, "at_index(*held(%s, %s, %u), t%u, %u, %u)", var, name, of, i, at, where);
  }
  Temp v = native_expr(p, n->a), i = native_expr(p, n->b);
  native_moved(p, i);
  native_moved(p, v);
  Temp t = VALUE(p, "at_index(t%u, t%u, %u, %u)", v, i, at, where);
  native_emit(p, "drop(t%u);", v);
  return t;
}

static Temp member(NativeGen *p, const Ast *n) {
  if (n->nplace) return name(p, n);
  Temp v = native_expr(p, n->a);
  native_moved(p, v);
  return VALUE(p, "member(t%u, %s, %u)", v, native_quoted(p, n->name), native_loc(p, n));
}

static Temp item(NativeGen *p, const Ast *n) {
  Temp v = native_expr(p, n->a);
  native_moved(p, v);
  return VALUE(p, "item(t%u, %lldLL, %u)", v, (long long)n->i, native_loc(p, n));
}

static Temp change(NativeGen *p, const Ast *n, bool pushes) {
  Temp v = pushes ? native_expr(p, n->kid[1]) : 0, of = 0;
  const char *to;
  if (is_lvalue(n->kid[0])) {
    to = native_lvalue(p, n->kid[0]);
  } else {
    of = native_expr(p, n->kid[0]);
    to = sb_cstr(format_text(p, "&t%u", of));
  }
  u32 at = native_loc(p, n);
  if (v) native_moved(p, v);
  Temp t = v ? VALUE(p, "push(%s, t%u, %u)", to, v, at) : VALUE(p, "pop(%s, %u)", to, at);
  if (of) {
    native_moved(p, of);
    native_emit(p, "drop(t%u);", of);
  }
  return t;
}

static Temp *arguments(NativeGen *p, const Ast *n) {
  Temp *arg = NEWS(p->a, Temp, n->nkid + 1);
  for (u32 i = 0; i < n->nkid; i++) arg[i] = native_expr(p, n->kid[i]);
  return arg;
}

/* Declares aN, an array of the arguments, and takes them. Returns N. */
static u32 array(NativeGen *p, const Ast *n, const Temp *arg) {
  u32 number = native_temp(p);
  native_emit(p, "LangValue a%u[%u];", number, n->nkid + 1);
  for (u32 i = 0; i < n->nkid; i++) {
    native_emit(p, "a%u[%u] = t%u;", number, i, arg[i]);
    native_moved(p, arg[i]);
  }
  return number;
}

/* True if the result may be a tensor or an object although no argument is one. */
static bool makes_tensors(const BuiltinInfo *b) {
  return strchr("TLvoygmr", strchr(b->sig, ':')[1]) != NULL;
}

static Temp builtin(NativeGen *p, const Ast *n) {
  const BuiltinInfo *b = &builtin_info[n->builtin - 1];
  u32 a = array(p, n, arguments(p, n));
  p->tensors |= makes_tensors(b);
  Temp t = VALUE(p, "builtin(bi_%s, \"%s\", a%u, %u, %u)", builtin_code[n->builtin - 1], b->name, a,
                 n->nkid, native_loc(p, n));
  for (u32 i = 0; i < n->nkid; i++) native_emit(p, "drop(a%u[%u]);", a, i);
  return t;
}

/* Declares pN, the positions of a call and its arguments. */
static void places(NativeGen *p, const Ast *n, u32 number) {
  StrBuf places = sb_new(p->a);
  sb_fmt(&places, "%u", native_loc(p, n));
  for (u32 i = 0; i < n->nkid; i++) sb_fmt(&places, ", %u", native_loc(p, n->kid[i]));
  native_emit(p, "static const int p%u[] = {%s};", number, sb_cstr(&places));
}

static Temp call(NativeGen *p, const Ast *n) {
  BuiltinFn *known = n->builtin ? builtin_fn[n->builtin - 1] : NULL;
  if (known == bi_push || known == bi_pop) return change(p, n, known == bi_push);
  if (known) return builtin(p, n);
  Temp *arg = arguments(p, n);
  bool method = n->a->kind == AST_member && !n->a->nplace;
  Temp f = native_expr(p, method ? n->a->a : n->a);
  u32 a = array(p, n, arg);
  native_moved(p, f);
  places(p, n, a);
  if (method)
    return VALUE(p, "call_method(t%u, %s, a%u, %u, p%u, %u)", f, native_quoted(p, n->a->name), a,
                 n->nkid, a, native_loc(p, n->a));
  return VALUE(p, "call(t%u, a%u, %u, p%u)", f, a, n->nkid, a);
}

static Temp by_statement(NativeGen *p, Ast *n) {
  Temp t = VALUE(p, "{.kind = KD_none}");
  native_stmt(p, n, t);
  return t;
}

/* C condition: v matches the pattern. */
static const char *fits(NativeGen *p, const Ast *pattern, Temp v) {
  if (!pattern || pattern->kind == AST_name) return "1";
  switch (pattern->kind) {
  case AST_int: return sb_cstr(format_text(p, "fits_int(t%u, %lldLL)", v, (long long)pattern->i));
  case AST_float: return sb_cstr(format_text(p, "fits_float(t%u, %a)", v, pattern->f));
  case AST_bool: return sb_cstr(format_text(p, "fits_bool(t%u, %d)", v, (int)pattern->i));
  default:
    return sb_cstr(
        format_text(p, "fits_text(t%u, strings[%u])", v, native_string(p, pattern->name)));
  }
}

static Temp match(NativeGen *p, const Ast *n) {
  Temp v = native_expr(p, n->a), t;
  native_moved(p, v);
  t = VALUE(p, "{.kind = KD_none}");
  for (u32 i = 0; i < n->nkid; i++) {
    Ast *arm = n->kid[i];
    native_emit(p, "%sif (%s) {", i ? "} else " : "", fits(p, arm->a, v));
    p->deep++;
    native_clear_scope(p, arm);
    if (arm->a && arm->a->kind == AST_name)
      native_emit(p, "set(&%s, t%u);", native_slot(p, arm->a->slot), v);
    else
      native_emit(p, "drop(t%u);", v);
    native_stmt(p, arm->b, t);
    native_clear_scope(p, arm);
    p->deep--;
  }
  native_emit(p, "} else {");
  native_emit(p,
              "  script_fail(%u, \"Non-exhaustive match: value %%s didn't match any pattern\", "
              "value_kind_name(&t%u));",
              native_loc(p, n), v);
  native_emit(p, "}");
  return t;
}

static Temp number(NativeGen *p, const Ast *n) {
  if (isinf(n->f)) return VALUE(p, "of_float(INFINITY)");
  return VALUE(p, "of_float(%a)", n->f);
}

static Temp plain(NativeGen *p, Ast *n) {
  switch (n->kind) {
  case AST_int: return VALUE(p, "of_int(%lldLL)", (long long)n->i);
  case AST_float: return number(p, n);
  case AST_bool: return VALUE(p, "of_bool(%d)", (int)n->i);
  case AST_string: return VALUE(p, "share(strings[%u])", native_string(p, n->name));
  case AST_name: return name(p, n);
  case AST_array:
  case AST_tuple: return list(p, n);
  case AST_record: return record(p, n);
  case AST_repeat: return repeat(p, n);
  case AST_range: return range(p, n);
  case AST_unary: return unary(p, n);
  case AST_binary: return binary(p, n);
  case AST_cast: return cast(p, n);
  case AST_index: return element(p, n);
  case AST_item: return item(p, n);
  case AST_member: return member(p, n);
  case AST_match: return match(p, n);
  case AST_call: return call(p, n);
  case AST_named: return native_expr(p, n->a);
  case AST_fn: return native_closure(p, n);
  default: return by_statement(p, n);
  }
}

Temp native_expr(NativeGen *p, Ast *n) {
  Temp t = plain(p, n);
  if (n->to && n->kind != AST_if)
    native_emit(p, "becomes(&t%u, &type_%u, %u);", t, native_type(p, n, n->to), native_loc(p, n));
  return t;
}
