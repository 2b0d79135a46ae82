/* native_code.c: register code as C; see native.h.
 *
 * In: the code of a function or file. Out: the statements of a C function. Method: each instruction
 * becomes a statement, each register a variable of C; instructions of proven kinds become
 * arithmetic on numbers. If functions are differentiated, values may have other kinds: then all
 * operators test kinds. Registers are passed by value, so that the C compiler keeps them in
 * registers of the machine. Messages are those of lang_run.c.
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

static const char *const kinds[KD_COUNT] = {
    [KD_int] = "int", [KD_float] = "float", [KD_bool] = "bool"};

static const char *const operators[TOK_COUNT] = {
    [TOK_add] = "add", [TOK_sub] = "sub", [TOK_mul] = "mul", [TOK_div] = "div",
    [TOK_mod] = "mod", [TOK_at] = "at",   [TOK_lt] = "lt",   [TOK_le] = "le",
    [TOK_gt] = "gt",   [TOK_ge] = "ge",   [TOK_eq] = "eq",   [TOK_ne] = "ne"};

__attribute__((format(printf, 2, 3))) static const char *text(NativeGen *p, const char *fmt, ...) {
  StrBuf t = sb_new(p->a);
  va_list args;
  va_start(args, fmt);
  sb_vfmt(&t, fmt, args);
  va_end(args);
  return sb_cstr(&t);
}

/* ---- operands ---- */

static u32 number_of_register(u32 x) {
  return x / (u32)sizeof(LangValue);
}

static bool is_temp(const NativeGen *p, u32 x) {
  return number_of_register(x) >= p->code->nvar;
}

static const char *variable(NativeGen *p, u32 slot) {
  return p->code->fn ? text(p, "v%u", slot) : text(p, "g%u[%u]", p->code->file, slot);
}

static const char *reg(NativeGen *p, u32 x) {
  u32 n = number_of_register(x);
  return is_temp(p, x) ? text(p, "t%u", n - p->code->nvar) : variable(p, n);
}

/* The value, with a reference: that of a temp is taken. */
static const char *use(NativeGen *p, u32 x) {
  return text(p, is_temp(p, x) ? "take(&%s)" : "share(%s)", reg(p, x));
}

static const char *constant(NativeGen *p, const LangValue *v) {
  if (v->kind == KD_string)
    return text(p, "strings[%u]", native_string(p, str_intern(p->c, v->u.text->at, v->u.text->n)));
  if (v->kind == KD_int) return text(p, "%lldLL", (long long)v->u.i);
  return isinf(v->u.f) ? "INFINITY" : text(p, "%a", v->u.f);
}

static const char *place(NativeGen *p, const VarRef *v) {
  return v->kind == VR_global ? text(p, "g%u[%u]", v->file, v->slot) : variable(p, v->slot);
}

/* A pointer to the first of n places that is set, or to the last. */
static const char *pointer(NativeGen *p, const VarRef *v, u32 n) {
  const char *at = n ? text(p, "&%s", place(p, &v[n - 1])) : "(LangValue *)0";
  for (u32 i = n; i-- > 1;) {
    const char *x = place(p, &v[i - 1]);
    at = text(p, "(%s.kind ? &%s : %s)", x, x, at);
  }
  return at;
}

/* Number of places before the name of the function itself. */
static u32 before_self(const VarRef *v, u32 n) {
  u32 i = 0;
  while (i < n && v[i].kind != VR_self) i++;
  return i;
}

static const char *held(NativeGen *p, const char *at, const Ast *n) {
  return text(p, "held(%s, %s, %u)", at, native_quoted(p, n->name), native_loc(p, n));
}

/* The value of a name, without a reference. */
static const char *found(NativeGen *p, const Ast *n) {
  static const char self[] = "(LangValue){KD_fn, .u = {.fn = self}}";
  u32 k = before_self(n->place, n->nplace);
  const char *at = pointer(p, n->place, k);
  if (k == n->nplace) return text(p, "*%s", held(p, at, n));
  return k ? text(p, "(%s)->kind ? *%s : %s", at, at, self) : self;
}

/* Writes a value. Temps hold no reference when they are written, nor do variables of numbers. */
static void put(NativeGen *p, u32 to, bool number, const char *v) {
  bool plain = is_temp(p, to) || (number && p->typed);
  native_emit(p, plain ? "%s = %s;" : "set(&%s, %s);", reg(p, to), v);
}

static void go(NativeGen *p, u32 at, u32 by) {
  native_emit(p, "goto L%u;", at + (u32)((i32)by / (i32)sizeof(Ins)));
}

static void unless(NativeGen *p, const char *holds, u32 at, u32 by) {
  native_emit(p, "if (!(%s)) goto L%u;", holds, at + (u32)((i32)by / (i32)sizeof(Ins)));
}

/* ---- operators ---- */

/* Operand x of an operator: a register, or a constant in the forms `k` and `l`. */
static const char *operand(NativeGen *p, u32 x, char form, bool is_float) {
  if (form == 'r' && p->typed) return text(p, "%s.u.%c", reg(p, x), is_float ? 'f' : 'i');
  if (form == 'r') return use(p, x);
  LangValue k = is_float ? p->code->k[number_of_register(x)] : value_int((i32)x);
  const char *c = constant(p, &k);
  return p->typed ? c : text(p, is_float ? "of_float(%s)" : "of_int(%s)", c);
}

/* The value of an operator, or, if `tests`, whether it holds. */
static const char *operation(NativeGen *p, const Ast *n, bool is_float, const char *x,
                             const char *y, bool tests) {
  const char *name = operators[n->op], *kind = is_float ? "float" : "int";
  if (!p->typed)
    return text(p, tests ? "holds(do_%s(%s, %s, %u))" : "do_%s(%s, %s, %u)", name, x, y,
                native_loc(p, n));
  if (tok_compares(n->op))
    return text(p, tests ? "%s %s %s" : "of_bool(%s %s %s)", x, tok_text[n->op], y);
  if (n->op == TOK_div || n->op == TOK_mod)
    return text(p, "%s_%s(%s, %s, %u)", name, kind, x, y, native_loc(p, n));
  return text(p, "%s_%s(%s, %s)", name, kind, x, y);
}

static void arithmetic(NativeGen *p, const Ins *i, const Ast *n) {
  u32 form = i->op >= CO_mod_i ? i->op - CO_mod_i : (i->op - CO_add_i) % 6;
  bool is_float = form >= 3, swapped = form % 3 == 2;
  const char *x = operand(p, i->b, 'r', is_float);
  const char *y = operand(p, i->c, form % 3 ? 'k' : 'r', is_float);
  put(p, i->a, true, operation(p, n, is_float, swapped ? y : x, swapped ? x : y, false));
}

static void compare_and_go(NativeGen *p, u32 at, const Ins *i, const Ast *n) {
  u32 form = (i->op - CO_unless_lt_i) % 4;
  const char *x = operand(p, i->a, 'r', form > 1),
             *y = operand(p, i->b, form % 2 ? 'k' : 'r', form > 1);
  unless(p, operation(p, n, form > 1, x, y, true), at, i->c);
}

static void minmax(NativeGen *p, const Ins *i, const Ast *n) {
  bool is_float = i->op >= CO_min_f, max = (i->op - CO_min_i) % 2;
  const char *x = operand(p, i->b, 'r', is_float), *y = operand(p, i->c, 'r', is_float);
  if (p->typed) {
    put(p, i->a, true,
        text(p, "%s_%s(%s, %s)", max ? "max" : "min", is_float ? "float" : "int", x, y));
    return;
  }
  put(p, i->a, true,
      text(p, "builtin2(bi_%s, \"%s\", %s, %s, %u)", builtin_code[n->builtin - 1],
           max ? "max" : "min", x, y, native_loc(p, n)));
}

/* ---- elements ---- */

/* Statements that find the lvalue n with indices in temps from `index` on: *q. */
static void lvalue(NativeGen *p, const Ast *n, u32 index) {
  VEC(const Ast *) step = {0};
  for (; n->kind != AST_name && !n->nplace; n = n->a) *vec_push(p->a, &step) = n;
  native_emit(p, "LangValue *q = assigned(%s, %s, %u);",
              pointer(p, n->place, before_self(n->place, n->nplace)), native_quoted(p, n->name),
              native_loc(p, n));
  for (u32 i = step.n; i-- > 0;) {
    const Ast *x = step.at[i];
    if (x->kind != AST_index) {
      native_emit(p, "q = place_field(q, %s, %u);", native_quoted(p, x->name), native_loc(p, x));
      continue;
    }
    native_emit(p, "q = place_element(q, take(&%s), %u, %u);", reg(p, index), native_loc(p, x),
                native_loc(p, x->b));
    index += (u32)sizeof(LangValue);
  }
}

/* Element [i] or [i][j] of `of`, which stays where it is. kind: that it has for certain, or NULL */
static void element(NativeGen *p, const Ins *i, const Ast *n, const char *of, const char *kind) {
  bool two = i->op >= CO_index2_i && i->op <= CO_index2_b;
  u32 at = native_loc(p, n), where = native_loc(p, n->b);
  const char *row = two ? text(p, ", %u, %u", native_loc(p, n->a), native_loc(p, n->a->b)) : "";
  const char *v;
  if (p->typed && kind)
    v = two ? text(p, "index2_%s(%s, %s.u.i, %s.u.i%s, %u, %u)", kind, of, reg(p, i->c),
                   reg(p, i[1].a), row, at, where)
            : text(p, "index_%s(%s, %s.u.i, %u, %u)", kind, of, reg(p, i->c), at, where);
  else
    v = two ? text(p, "index_taken(at_index(%s, %s%s), %s, %u, %u)", of, use(p, i->c), row,
                   use(p, i[1].a), at, where)
            : text(p, "at_index(%s, %s, %u, %u)", of, use(p, i->c), at, where);
  put(p, i->a, kind != NULL, v);
}

/* The array of a variable of a file. */
static const char *global(NativeGen *p, const Ins *i, const Ast *n) {
  return text(p, "*%s", held(p, text(p, "&g%u[%u]", i->b >> 24, i->b & 0xffffff), n->a));
}

static void store(NativeGen *p, const Ins *i, const Ast *n) {
  const char *to = reg(p, i->a), *v = reg(p, i->c);
  const Ast *x = n->a;
  u32 at = native_loc(p, x), where = native_loc(p, x->b);
  if (i->op == CO_store_n && p->typed)
    native_emit(p, "if (!stored(%s, %s.u.i, %s)) %s = any_store(%s, %s, %s, %u, %u);", to,
                reg(p, i->b), v, to, to, reg(p, i->b), v, at, where);
  else if (i->op == CO_store_n)
    native_emit(p, "%s = store(%s, %s, take(&%s), %u, %u);", to, to, use(p, i->b), v, at, where);
  else
    native_emit(p, "%s = store2(%s, %s, %s, take(&%s), %u, %u, %u, %u);", to, to, use(p, i->b),
                use(p, i[1].a), v, native_loc(p, x->a), native_loc(p, x->a->b), at, where);
}

/* ---- functions ---- */

/* Begins a block with the array a of n temps from x on, which are taken. */
static void arguments(NativeGen *p, u32 x, u32 n) {
  native_emit(p, "{");
  p->deep++;
  native_emit(p, "LangValue a[%u];", n + !n); /* tcc counts no initializers that are structs */
  for (u32 i = 0; i < n; i++)
    native_emit(p, "a[%u] = %s;", i, use(p, x + i * (u32)sizeof(LangValue)));
}

static void end_block(NativeGen *p) {
  p->deep--;
  native_emit(p, "}");
}

static void call(NativeGen *p, const Ins *i, const Ast *n) {
  StrBuf places = sb_new(p->a);
  const char *f = reg(p, i->a);
  sb_fmt(&places, "%u", native_loc(p, n));
  for (u32 k = 0; k < n->nkid; k++) sb_fmt(&places, ", %u", native_loc(p, n->kid[k]));
  arguments(p, i->a + (u32)sizeof(LangValue), i->b);
  native_emit(p, "static const int pos[] = {%s};", sb_cstr(&places));
  if (i->op == CO_method)
    native_emit(p, "%s = call_method(take(&%s), %s, a, %u, pos, %u);", f, f,
                native_quoted(p, n->a->name), i->b, native_loc(p, n->a));
  else
    native_emit(p, "%s = call(take(&%s), a, %u, pos);", f, f, i->b);
  end_block(p);
}

/* True if the result may be a tensor or an object although no argument is one. */
static bool makes_tensors(const BuiltinInfo *b) {
  return strchr("TLvoygmr", strchr(b->sig, ':')[1]) != NULL;
}

static void built_in(NativeGen *p, const Ins *i, const Ast *n) {
  const BuiltinInfo *b = &builtin_info[i->c];
  p->tensors |= makes_tensors(b);
  arguments(p, i->a, i->b);
  native_emit(p, "%s = builtin(bi_%s, \"%s\", a, %u, %u);", reg(p, i->a), builtin_code[i->c],
              b->name, i->b, native_loc(p, n));
  end_block(p);
}

static void closure(NativeGen *p, const Ins *i) {
  LangFn *f = p->code->closure.at[i->b]->fn;
  native_emit(p, "%s{", i->op == CO_hoist ? text(p, "if (!%s.kind) ", reg(p, i->a)) : "");
  p->deep++;
  native_emit(p, "ClosureObj *f = fn_new(&fn_%u);", native_fn(p, f));
  for (u32 k = 0; k < f->capture.n; k++) {
    const Capture *c = &f->capture.at[k];
    u32 known = before_self(c->from, c->nfrom);
    if (known)
      native_emit(p, "f->with[%u] = share(*%s);", k, pointer(p, c->from, known));
    else if (c->nfrom && p->code->fn)
      native_emit(p, "f->with[%u] = share((LangValue){KD_fn, .u = {.fn = self}});", k);
  }
  put(p, i->a, false, "(LangValue){KD_fn, .u = {.fn = f}}");
  end_block(p);
}

/* ---- models: as class.c makes them ---- */

static void add_activation(NativeGen *p, const Ast *n, const char *class) {
  u32 i = 0;
  while (i + 1 < activation_count && !str_is(p->c, n->name, activation_name[i])) i++;
  native_emit(p, "class_plain(%s, OBJ_activation, %u);", class, i);
}

static void layer(NativeGen *p, const Ins *i, const Ast *n) {
  u32 row = 0, count = i->c;
  const char *class = reg(p, i->a);
  while (row + 1 < layer_count && !str_is(p->c, n->a->name, layer_info[row].name)) row++;
  const LayerInfo *l = &layer_info[row];
  if (l->make) {
    arguments(p, i->b, count);
    native_emit(p, "class_add(%s, builtin(bi_%s, \"%s\", a, %u, %u));", class,
                builtin_code[builtin_find(l->make)], l->make, count, native_loc(p, n));
    end_block(p);
  } else if (count) {
    add_activation(p, n->kid[0], class);
  } else {
    native_emit(p, "class_plain(%s, OBJ_flatten, 0);", class);
  }
  if (n->nkid > count) add_activation(p, n->kid[count]->a, class);
}

/* ---- all instructions ---- */

/* C condition: v matches the pattern. */
static const char *fits(NativeGen *p, const Ast *pattern, const char *v) {
  switch (pattern->kind) {
  case AST_int: return text(p, "fits_int(%s, %lldLL)", v, (long long)pattern->i);
  case AST_float: return text(p, "fits_float(%s, %a)", v, pattern->f);
  case AST_bool: return text(p, "fits_bool(%s, %d)", v, (int)pattern->i);
  default: return text(p, "fits_text(%s, strings[%u])", v, native_string(p, pattern->name));
  }
}

static void check(NativeGen *p, const Ins *i, const Ast *n) {
  const char *v = reg(p, i->a);
  bool named = n && !is_temp(p, i->a);
  if (p->typed && i->op == CO_check)
    native_emit(p, "if (%s.kind != KD_%s) %s = expected(%s, &type_of_%s, %s, %u);", v, kinds[i->b],
                v, v, kinds[i->b], named ? native_quoted(p, n->name) : "NULL", native_loc(p, n));
  else if (named)
    native_emit(p, "%s;", held(p, text(p, "&%s", v), n));
}

static void loop(NativeGen *p, u32 at, const Ins *i, const Ast *n) {
  const char *now = reg(p, i->a), *end = reg(p, i->a + (u32)sizeof(LangValue)), *v = reg(p, i->b);
  bool first = i->op == CO_for_first || i->op == CO_each_first;
  bool numbers = i->op == CO_for_first || i->op == CO_for_next;
  if (first && numbers && !p->typed) {
    native_emit(p, "%s = of_int(bound(%s, %u));", now, now, native_loc(p, n->a->a));
    native_emit(p, "%s = of_int(bound(%s, %u));", end, end, native_loc(p, n->a->b));
  }
  if (first && !numbers) {
    native_emit(p, "check_array(%s, %u);", end, native_loc(p, n->a));
    native_emit(p, "%s = of_int(0);", now);
  }
  const char *more = numbers ? text(p, "%s.u.i < %s.u.i", now, end)
                             : text(p, "(uint64_t)%s.u.i < %s.u.list->n", now, end);
  const char *next = numbers ? text(p, "of_int(%s.u.i++)", now)
                             : text(p, "share(%s.u.list->at[%s.u.i++])", end, now);
  if (first) {
    unless(p, more, at, i->c);
    native_emit(p, "set(&%s, %s);", v, next);
  } else {
    native_emit(p, "if (%s) {", more);
    p->deep++;
    native_emit(p, "set(&%s, %s);", v, next);
    go(p, at, i->c);
    end_block(p);
  }
}

/* A conversion of one number by function `name`, if its kind is proven, else by careful. */
static void one(NativeGen *p, const Ins *i, const char *name, char field, const char *careful) {
  put(p, i->a, true,
      p->typed ? text(p, "%s%s.u.%c)", name, reg(p, i->b), field) : text(p, careful, use(p, i->b)));
}

static void instruction(NativeGen *p, u32 at) {
  const Ins *i = &p->code->ins[at];
  const Ast *n = p->code->at[at];
  if ((i->op >= CO_add_i && i->op < CO_binary)) {
    arithmetic(p, i, n);
    return;
  }
  if (i->op >= CO_unless_lt_i && i->op <= CO_unless_ne_fk) {
    compare_and_go(p, at, i, n);
    return;
  }
  switch (i->op) {
  case CO_move:
  case CO_borrow: put(p, i->a, false, text(p, "share(%s)", reg(p, i->b))); return;
  case CO_move_n: put(p, i->a, true, p->typed ? reg(p, i->b) : use(p, i->b)); return;
  case CO_set: native_emit(p, "set(&%s, take(&%s));", reg(p, i->a), reg(p, i->b)); return;
  case CO_null: native_emit(p, "set(&%s, null);", reg(p, i->a)); return;
  case CO_int: put(p, i->a, true, text(p, "of_int(%d)", (int)(i32)i->b)); return;
  case CO_bool: put(p, i->a, true, text(p, "of_bool(%u)", i->b)); return;
  case CO_const: {
    const LangValue *k = &p->code->k[number_of_register(i->b)];
    put(p, i->a, true, text(p, "of_%s(%s)", kinds[k->kind], constant(p, k)));
    return;
  }
  case CO_string:
    put(p, i->a, false, text(p, "share(%s)", constant(p, &p->code->k[number_of_register(i->b)])));
    return;
  case CO_drop:
    for (u32 k = 0; k < i->b; k++)
      native_emit(p, "forget(&%s);", reg(p, i->a + k * (u32)sizeof(LangValue)));
    return;
  case CO_check:
  case CO_held: check(p, i, n); return;
  case CO_name: put(p, i->a, false, text(p, "share(%s)", found(p, n))); return;
  case CO_global_n:
    if (p->typed) {
      const char *g = text(p, "g%u[%u]", i->b & 255, i->c), *kind = kinds[i->b >> 8];
      put(p, i->a, true,
          text(p, "%s.kind == KD_%s ? %s : expected(share(%s), &type_of_%s, %s, %u)", g, kind, g, g,
               kind, native_quoted(p, n->name), native_loc(p, n)));
      return;
    } /* fall through */
  case CO_global:
    put(p, i->a, false, text(p, "share(*%s)", held(p, text(p, "&g%u[%u]", i->b & 255, i->c), n)));
    return;
  case CO_set_global:
    native_emit(p, "set(assigned(&g%u[%u], %s, %u), take(&%s));", i->b, i->c,
                native_quoted(p, n->a->name), native_loc(p, n->a), reg(p, i->a));
    return;
  case CO_self: put(p, i->a, false, "share((LangValue){KD_fn, .u = {.fn = self}})"); return;
  case CO_binary:
    put(p, i->a, false,
        text(p, "do_%s(%s, %s, %u)", operators[n->op], use(p, i->b), use(p, i->c),
             native_loc(p, n)));
    return;
  case CO_neg_i:
    one(p, i, "sub_int(0, ", 'i', text(p, "do_neg(%%s, %u)", native_loc(p, n)));
    return;
  case CO_neg_f: one(p, i, "of_float(-", 'f', text(p, "do_neg(%%s, %u)", native_loc(p, n))); return;
  case CO_not_b: one(p, i, "of_bool(!", 'i', "of_bool(!holds(%s))"); return;
  case CO_unary:
    put(p, i->a, false,
        n->op == TOK_not ? text(p, "of_bool(!holds(%s))", use(p, i->b))
                         : text(p, "do_neg(%s, %u)", use(p, i->b), native_loc(p, n)));
    return;
  case CO_truth: put(p, i->a, true, text(p, "of_bool(holds(%s))", use(p, i->b))); return;
  case CO_promote: one(p, i, "of_float((double)", 'i', "promoted(%s)"); return;
  case CO_to_float:
    one(p, i, "of_float((double)", 'i',
        text(p, "becomes(%%s, &type_of_float, %u)", native_loc(p, n)));
    return;
  case CO_to_int:
    one(p, i, "to_int(", 'f',
        text(p, "cast(%%s, %s, %u)", native_quoted(p, n->name), native_loc(p, n)));
    return;
  case CO_cast:
    put(p, i->a, false,
        text(p, "cast(%s, %s, %u)", use(p, i->b), native_quoted(p, n->name), native_loc(p, n)));
    return;
  case CO_convert:
    native_emit(p, "%s = becomes(%s, &type_%u, %u);", reg(p, i->a), reg(p, i->a),
                native_type(p, p->code->type.at[i->b]), native_loc(p, n));
    return;
  case CO_min_i:
  case CO_max_i:
  case CO_min_f:
  case CO_max_f: minmax(p, i, n); return;
  case CO_jump:
  case CO_back:
  case CO_leave: go(p, at, i->a); return;
  case CO_unless: unless(p, text(p, "holds(%s)", use(p, i->a)), at, i->b); return;
  case CO_unless_b:
    unless(p, p->typed ? text(p, "%s.u.i", reg(p, i->a)) : text(p, "holds(%s)", use(p, i->a)), at,
           i->b);
    return;
  case CO_loop:
  case CO_match:
  case CO_more: return;
  case CO_bound:
    native_emit(p, "%s = of_int(bound(%s, %u));", reg(p, i->a), reg(p, i->a), native_loc(p, n));
    return;
  case CO_upto:
    native_emit(p, "%s = of_int(upto(bound(%s, %u), %u));", reg(p, i->a), reg(p, i->a),
                native_loc(p, n->b), native_loc(p, n));
    return;
  case CO_for_first:
  case CO_for_next:
  case CO_each_first:
  case CO_each_next: loop(p, at, i, n); return;
  case CO_fits: unless(p, fits(p, n, reg(p, i->a)), at, i->b); return;
  case CO_no_fit: native_emit(p, "no_fit(%s, %u);", reg(p, i->a), native_loc(p, n)); return;
  case CO_list:
    put(p, i->a, false,
        text(p, "value_list(&eval, KD_%s, %u)", i->b == KD_array ? "array" : "tuple", i->c));
    return;
  case CO_record:
    put(p, i->a, false, text(p, "of_struct(&struct_%u)", native_struct(p, n->of)));
    return;
  case CO_put: native_emit(p, "%s.u.list->at[%u] = %s;", reg(p, i->a), i->b, use(p, i->c)); return;
  case CO_repeat:
    put(p, i->a, false,
        text(p, "repeat(%s, %s, %u)", use(p, i->b), use(p, i->c), native_loc(p, n)));
    return;
  case CO_range:
    put(p, i->a, false,
        text(p, "range(bound(%s, %u), bound(%s, %u), %u)", reg(p, i->b), native_loc(p, n->a),
             reg(p, i->c), native_loc(p, n->b), native_loc(p, n)));
    return;
  case CO_index:
    if (is_temp(p, i->b)) {
      put(p, i->a, false,
          text(p, "index_taken(%s, %s, %u, %u)", use(p, i->b), use(p, i->c), native_loc(p, n),
               native_loc(p, n->b)));
      return;
    }
    element(p, i, n, reg(p, i->b), NULL);
    return;
#define BY_KIND(letter, kind)                                                                      \
  case CO_index_##letter:                                                                          \
  case CO_index2_##letter: element(p, i, n, reg(p, i->b), kind); return;                           \
  case CO_gindex_##letter: element(p, i, n, global(p, i, n), kind); return;
    BY_KIND(i, "int")
    BY_KIND(f, "float")
    BY_KIND(b, "bool")
#undef BY_KIND
  case CO_gindex: element(p, i, n, global(p, i, n), NULL); return;
  case CO_len: put(p, i->a, false, text(p, "len(%s, %u)", use(p, i->b), native_loc(p, n))); return;
  case CO_item:
    native_emit(p, "%s = item(%s, %lldLL, %u);", reg(p, i->a), reg(p, i->a), (long long)n->i,
                native_loc(p, n));
    return;
  case CO_member:
    put(p, i->a, false,
        text(p, "member(%s, %s, %u)", use(p, i->b), native_quoted(p, n->name), native_loc(p, n)));
    return;
  case CO_store_n:
  case CO_store2_n: store(p, i, n); return;
  case CO_store:
  case CO_push:
  case CO_pop:
    native_emit(p, "{");
    p->deep++;
    lvalue(p, i->op == CO_store ? n->a : n->kid[0], i->op == CO_store ? i->a : i->b);
    if (i->op == CO_store)
      native_emit(p, "set(q, %s);", use(p, i->b));
    else if (i->op == CO_push)
      put(p, i->a, false, text(p, "push(q, %s, %u)", use(p, i->c), native_loc(p, n)));
    else
      put(p, i->a, false, text(p, "pop(q, %u)", native_loc(p, n)));
    end_block(p);
    return;
  case CO_push_temp:
    native_emit(p, "set(&%s, push(&%s, %s, %u));", reg(p, i->a), reg(p, i->a), use(p, i->b),
                native_loc(p, n));
    return;
  case CO_pop_temp:
    native_emit(p, "set(&%s, pop(&%s, %u));", reg(p, i->a), reg(p, i->a), native_loc(p, n));
    return;
  case CO_closure:
  case CO_hoist: closure(p, i); return;
  case CO_call:
  case CO_method: call(p, i, n); return;
  case CO_builtin: built_in(p, i, n); return;
  case CO_ret:
    native_emit(p, "%s; goto out;", text(p, p->code->fn ? "r = %s" : "drop(%s)", use(p, i->a)));
    return;
  case CO_class:
    p->tensors = true;
    put(p, i->a, false, text(p, "class_new(%s, %u)", native_quoted(p, n->name), 2 * n->nkid));
    return;
  case CO_layer: layer(p, i, n); return;
  case CO_network: {
    const char *from =
        path_relative_to(p->c, p->s->all->at[n->file]->file, str_text(p->c, n->a->name));
    p->tensors = true;
    put(p, i->a, false, text(p, "net_new(%s)", native_quoted(p, str_of(p->c, from))));
    return;
  }
  case CO_module:
    native_emit(p, "if (!ran[%u]) ran[%u] = 1, file_%u();", n->module->number, n->module->number,
                n->module->number);
    return;
  default: eval_fail(p->code->ev, n, "this is not supported in a compiled program");
  }
}

void native_code(NativeGen *p, const RegCode *code) {
  u32 ntemp = code->nreg - code->nvar;
  bool *target = NEWS(p->a, bool, code->n + 1);
  p->code = code;
  for (u32 i = 0; i < code->n; i++)
    for (u32 k = 0; k < 3; k++)
      if (code_operands[code->ins[i].op][k] == 'j')
        target[i + (u32)((i32)(&code->ins[i].a)[k] / (i32)sizeof(Ins))] = true;
  for (u32 i = 0; i < ntemp; i++) native_emit(p, "LangValue t%u = {.kind = KD_none};", i);
  for (u32 i = 0; i < code->n; i++) {
    if (target[i]) native_emit(p, "L%u:;", i);
    instruction(p, i);
  }
}
