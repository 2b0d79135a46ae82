/* jinja.c: evaluates a parsed template.
 *
 * A set inside a loop or macro is local to it, as in Jinja. if and generation do not open a scope.
 */
#include "chat/jinja_internal.h"
#include <string.h>

_Noreturn void jinja_fail(const Jinja *j, Err code, const char *fmt, ...) {
  StrBuf t = sb_new(&j->c->scratch);
  va_list args;
  va_start(args, fmt);
  sb_vfmt(&t, fmt, args);
  va_end(args);
  fail(j->c, code, j->loc, "chat template: %s", sb_cstr(&t));
}

static JinjaVal eval(Jinja *j, const JinjaNode *n);
static JinjaFlow run(Jinja *j, const JinjaNode *n, JinjaOut *out);

static JinjaVal look_up(Jinja *j, JinjaVal name) {
  for (const JinjaFrame *f = j->frame; f; f = f->outer) {
    const JinjaVal *v = dict_find(j, f->vars.dict, name);
    if (v) return *v;
  }
  return jinja_global(name);
}

static void push(Jinja *j, JinjaFrame *f) {
  f->outer = j->frame;
  f->vars = jinja_dict(j->a);
  j->frame = f;
}

static void assign(Jinja *j, const JinjaNode *to, JinjaVal v) {
  if (to->op == JN_name) {
    dict_put(j, j->frame->vars.dict, to->value, v);
    return;
  }
  JinjaVal space = eval(j, to->a);
  if (space.kind != JK_space) jinja_fail(j, ERR_input, "only a namespace has members to set");
  dict_put(j, space.dict, to->value, v);
}

static void assign_all(Jinja *j, const JinjaNode *to, JinjaVal v) {
  if (!to->next) {
    assign(j, to, v);
    return;
  }
  JinjaVal list = jinja_items(j, v);
  u32 n = 0;
  for (const JinjaNode *t = to; t; t = t->next) n++;
  if (list.list->v.n != n) jinja_fail(j, ERR_input, "expected %u values to unpack", n);
  for (u32 i = 0; to; to = to->next, i++) assign(j, to, list.list->v.at[i]);
}

static void fill(Jinja *j, const JinjaNode *arg, JinjaArgs *to) {
  to->n = to->nnamed = 0;
  for (; arg; arg = arg->next) {
    JinjaVal v = eval(j, arg->a);
    if (to->n == JINJA_ARGS || to->nnamed == JINJA_ARGS)
      jinja_fail(j, ERR_unsupported, "a call has too many arguments");
    if (arg->value.kind == JK_string) {
      to->name[to->nnamed] = arg->value;
      to->named[to->nnamed++] = v;
    } else {
      to->at[to->n++] = v;
    }
  }
}

static JinjaVal call_macro(Jinja *j, const JinjaNode *m, const JinjaArgs *args) {
  JinjaFrame frame, *outer = j->frame;
  JinjaOut out = out_new(j);
  if (++j->depth > JINJA_DEPTH) jinja_fail(j, ERR_input, "macros call each other too deeply");
  j->frame = j->global;
  push(j, &frame);
  u32 i = 0;
  for (const JinjaNode *p = m->a; p; p = p->next, i++) {
    JinjaVal v = {.kind = JK_undefined};
    bool given = i < args->n;
    if (given) v = args->at[i];
    for (u32 k = 0; k < args->nnamed && !given; k++)
      if (jinja_equal(j, args->name[k], p->value)) v = args->named[k], given = true;
    if (!given && p->a) v = eval(j, p->a);
    dict_put(j, frame.vars.dict, p->value, v);
  }
  run(j, m->c, &out);
  j->frame = outer;
  j->depth--;
  return out_end(&out);
}

static JinjaVal call(Jinja *j, const JinjaNode *n) {
  JinjaArgs *args = NEW(j->a, JinjaArgs);
  JinjaVal out = {.kind = JK_undefined}, f;
  jinja_charge_memory(j, sizeof *args);
  fill(j, n->b, args);
  if (n->a->op == JN_attr) {
    JinjaVal of = eval(j, n->a->a);
    if (jinja_method(j, of, n->a->value, args, &out)) return out;
    f = of.kind == JK_dict || of.kind == JK_space ? jinja_attr(j, of, n->a->value) : out;
  } else {
    f = eval(j, n->a);
  }
  if (f.kind == JK_function) return jinja_function(j, f, args);
  if (f.kind != JK_macro) {
    const JinjaNode *name = n->a;
    bool named = name->op == JN_attr || name->op == JN_name;
    jinja_fail(j, ERR_unsupported, "%s%s cannot be called",
               named ? show(j->c, str_intern(j->c, name->value.s.at, name->value.s.n)) : "a value",
               name->op == JN_attr ? " (method)" : "");
  }
  return call_macro(j, f.macro, args);
}

static i64 floor_div(i64 a, i64 b) {
  i64 q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static JinjaVal arithmetic(Jinja *j, JinjaStr op, JinjaVal a, JinjaVal b) {
  double x = a.kind == JK_float ? a.f : (double)a.i, y = b.kind == JK_float ? b.f : (double)b.i;
  bool whole = a.kind != JK_float && b.kind != JK_float,
       divides = op.at[0] == '/' || op.at[0] == '%';
  i64 r = 0;
  if (divides && y == 0) jinja_fail(j, ERR_input, "division by zero");
  if (whole && !(op.n == 1 && op.at[0] == '/')) {
    bool over = false;
    if (str_equal(op, "+"))
      over = __builtin_add_overflow(a.i, b.i, &r);
    else if (str_equal(op, "-"))
      over = __builtin_sub_overflow(a.i, b.i, &r);
    else if (str_equal(op, "*"))
      over = __builtin_mul_overflow(a.i, b.i, &r);
    else if (b.i == -1)
      over = op.at[0] == '/' && __builtin_sub_overflow(0, a.i, &r);
    else if (divides)
      r = op.at[0] == '/' ? floor_div(a.i, b.i) : a.i - floor_div(a.i, b.i) * b.i;
    else
      jinja_fail(j, ERR_unsupported, "operator ** is not supported");
    if (over) jinja_fail(j, ERR_input, "an integer does not fit in 64 bits");
    return jinja_int(r);
  }
  if (op.n > 1 || op.at[0] == '%')
    jinja_fail(j, ERR_unsupported, "operators //, ** and %% are not supported on floats");
  return (JinjaVal){.kind = JK_float,
                    .f = op.at[0] == '+'   ? x + y
                         : op.at[0] == '-' ? x - y
                         : op.at[0] == '*' ? x * y
                                           : x / y};
}

static bool contains(Jinja *j, JinjaVal in, JinjaVal what) {
  if (in.kind == JK_string) {
    if (what.kind != JK_string)
      jinja_fail(j, ERR_input, "the left side of 'in' must be a string, too");
    for (u32 i = 0; i <= in.s.n; i++)
      if (str_at(j, in.s, i, what.s)) return true;
    return false;
  }
  if (in.kind == JK_dict || in.kind == JK_space) return dict_find(j, in.dict, what) != NULL;
  JinjaVal list = jinja_items(j, in);
  for (u32 i = 0; i < list.list->v.n; i++)
    if (jinja_equal(j, list.list->v.at[i], what)) return true;
  return false;
}

static JinjaVal add(Jinja *j, JinjaVal a, JinjaVal b) {
  if (a.kind == JK_string && b.kind == JK_string) {
    JinjaOut o = out_new(j);
    bool safe = a.s.safe || b.s.safe;
    out_str(&o, safe && !a.s.safe ? jinja_escape(j, a.s) : a.s);
    out_str(&o, safe && !b.s.safe ? jinja_escape(j, b.s) : b.s);
    JinjaVal sum = out_end(&o);
    sum.s.safe = safe;
    return sum;
  }
  if (a.kind != b.kind || (a.kind != JK_list && a.kind != JK_tuple))
    jinja_fail(j, ERR_input, "'+' needs values of the same kind%s",
               a.kind == JK_undefined || b.kind == JK_undefined ? ", one of them undefined" : "");
  JinjaVal list = jinja_list(j->a);
  list.kind = a.kind;
  for (u32 k = 0; k < 2; k++) {
    const JinjaList *from = k ? b.list : a.list;
    for (u32 i = 0; i < from->v.n; i++) jinja_push(j, list, from->v.at[i]);
  }
  return list;
}

static JinjaVal binary(Jinja *j, JinjaStr op, JinjaVal a, JinjaVal b) {
  bool ordered;
  if (op.at[op.n - 1] == 'n') return jinja_bool(contains(j, b, a) == (op.n == 2));
  if (str_equal(op, "==") || str_equal(op, "!="))
    return jinja_bool(jinja_equal(j, a, b) == (op.at[0] == '='));
  if (op.at[0] == '<' || op.at[0] == '>') {
    int d = jinja_compare(j, a, b, &ordered);
    if (!ordered) jinja_fail(j, ERR_input, "values of these kinds cannot be compared");
    d = op.at[0] == '<' ? d : -d;
    return jinja_bool(d < 0 || (d == 0 && op.n == 2));
  }
  if (op.at[0] == '~') {
    a = text_of(j, a), b = text_of(j, b);
    a.s.safe = b.s.safe = false;
    return add(j, a, b);
  }
  if (jinja_is_number(a) && jinja_is_number(b)) return arithmetic(j, op, a, b);
  if (op.at[0] == '+') return add(j, a, b);
  if (op.at[0] == '*' && a.kind == JK_string && jinja_is_number(b)) {
    JinjaOut o = out_new(j);
    for (i64 i = 0; i < b.i; i++) out_str(&o, a.s), jinja_step(j);
    return out_end(&o);
  }
  jinja_fail(j, ERR_unsupported, "operator '%s' is not supported on these values",
             show(j->c, str_intern(j->c, op.at, op.n)));
}

static i64 bound(Jinja *j, const JinjaNode *n, i64 otherwise, i64 count, i64 lo, i64 hi) {
  JinjaVal v = n ? eval(j, n) : (JinjaVal){.kind = JK_none};
  if (v.kind == JK_none || v.kind == JK_undefined) return otherwise;
  if (v.kind != JK_int) jinja_fail(j, ERR_input, "a slice index is not an integer");
  i64 i = v.i < 0 ? v.i + count : v.i;
  return i < lo ? lo : i > hi ? hi : i;
}

static JinjaVal slice(Jinja *j, const JinjaNode *n) {
  JinjaVal v = eval(j, n->a), step = n->d ? eval(j, n->d) : jinja_int(1);
  bool text = v.kind == JK_string;
  if (!text && v.kind != JK_list && v.kind != JK_tuple)
    jinja_fail(j, ERR_input, "this value cannot be sliced; expected a string or a list");
  if (step.kind != JK_int || !step.i)
    jinja_fail(j, ERR_input, "the step of a slice must be a nonzero integer");
  JinjaVal list = jinja_items(j, v), out = jinja_list(j->a);
  i64 count = list.list->v.n, by = step.i;
  if (by > count) by = count + 1;
  if (by < -count) by = -count - 1;
  i64 from =
      by > 0 ? bound(j, n->b, 0, count, 0, count) : bound(j, n->b, count - 1, count, -1, count - 1);
  i64 to =
      by > 0 ? bound(j, n->c, count, count, 0, count) : bound(j, n->c, -1, count, -1, count - 1);
  JinjaOut o = out_new(j);
  for (i64 i = from; by > 0 ? i < to : i > to; i += by) {
    if (text)
      out_str(&o, list.list->v.at[i].s);
    else
      jinja_push(j, out, list.list->v.at[i]);
  }
  if (!text) out.kind = v.kind;
  return text ? out_end(&o) : out;
}

static JinjaVal build(Jinja *j, const JinjaNode *n) {
  JinjaVal v = n->op == JN_dict ? jinja_dict(j->a) : jinja_list(j->a);
  if (n->op == JN_tuple) v.kind = JK_tuple;
  for (const JinjaNode *e = n->b; e; e = e->next) {
    JinjaVal x = eval(j, e->a);
    if (n->op == JN_dict) {
      e = e->next;
      dict_put(j, v.dict, x, eval(j, e->a));
    } else {
      jinja_push(j, v, x);
    }
  }
  return v;
}

static JinjaVal apply(Jinja *j, const JinjaNode *n, JinjaVal v) {
  JinjaArgs *args = NEW(j->a, JinjaArgs);
  jinja_charge_memory(j, sizeof *args);
  fill(j, n->b, args);
  if (n->op == JN_test) return jinja_bool(jinja_test(j, n->value, v, args));
  return jinja_filter(j, n->value, v, args);
}

static JinjaVal negative(Jinja *j, JinjaVal v) {
  if (v.kind == JK_float) return (JinjaVal){.kind = JK_float, .f = -v.f};
  if (v.kind != JK_int && v.kind != JK_bool)
    jinja_fail(j, ERR_input, "the operand of '-' is not a number");
  return jinja_int(v.i == INT64_MIN ? v.i : -v.i);
}

static JinjaVal eval_now(Jinja *j, const JinjaNode *n) {
  JinjaVal v;
  switch (n->op) {
  case JN_literal: return n->value;
  case JN_name: return look_up(j, n->value);
  case JN_attr: return jinja_attr(j, eval(j, n->a), n->value);
  case JN_item: v = eval(j, n->a); return jinja_attr(j, v, eval(j, n->b));
  case JN_slice: return slice(j, n);
  case JN_call: return call(j, n);
  case JN_filter:
  case JN_test: return apply(j, n, eval(j, n->a));
  case JN_not: return jinja_bool(!jinja_is_true(eval(j, n->a)));
  case JN_neg: return negative(j, eval(j, n->a));
  case JN_and: v = eval(j, n->a); return jinja_is_true(v) ? eval(j, n->b) : v;
  case JN_or: v = eval(j, n->a); return jinja_is_true(v) ? v : eval(j, n->b);
  case JN_cond:
    if (jinja_is_true(eval(j, n->a))) return eval(j, n->b);
    return n->c ? eval(j, n->c) : (JinjaVal){.kind = JK_undefined};
  case JN_list:
  case JN_tuple:
  case JN_dict: return build(j, n);
  case JN_binary: v = eval(j, n->a); return binary(j, n->value.s, v, eval(j, n->b));
  default: jinja_fail(j, ERR_unsupported, "expected a value, found a statement");
  }
}

static JinjaVal eval(Jinja *j, const JinjaNode *n) {
  if (++j->depth > JINJA_DEPTH) jinja_fail(j, ERR_input, "nested too deeply");
  jinja_step(j);
  j->loc.line = n->line;
  JinjaVal v = eval_now(j, n);
  j->depth--;
  return v;
}

static JinjaVal loop_of(Jinja *j, const JinjaList *list, u32 i) {
  JinjaVal loop = jinja_dict(j->a), none = {.kind = JK_undefined};
  u32 n = list->v.n;
  jinja_charge_memory(j, 12 * sizeof(JinjaPair));
  jinja_set(j->a, loop, "index", jinja_int(i + 1));
  jinja_set(j->a, loop, "index0", jinja_int(i));
  jinja_set(j->a, loop, "revindex", jinja_int(n - i));
  jinja_set(j->a, loop, "revindex0", jinja_int(n - i - 1));
  jinja_set(j->a, loop, "first", jinja_bool(i == 0));
  jinja_set(j->a, loop, "last", jinja_bool(i + 1 == n));
  jinja_set(j->a, loop, "length", jinja_int(n));
  jinja_set(j->a, loop, "previtem", i ? list->v.at[i - 1] : none);
  jinja_set(j->a, loop, "nextitem", i + 1 < n ? list->v.at[i + 1] : none);
  return loop;
}

static JinjaFlow run_for(Jinja *j, const JinjaNode *n, JinjaOut *out) {
  JinjaVal all = jinja_items(j, eval(j, n->b)), list = jinja_list(j->a);
  JinjaFlow flow = JF_next;
  JinjaFrame frame;
  for (u32 i = 0; i < all.list->v.n; i++) {
    bool wanted = true;
    if (n->e) {
      push(j, &frame);
      assign_all(j, n->a, all.list->v.at[i]);
      wanted = jinja_is_true(eval(j, n->e));
      j->frame = frame.outer;
    }
    if (wanted) jinja_push(j, list, all.list->v.at[i]);
  }
  for (u32 i = 0; i < list.list->v.n && flow != JF_break; i++) {
    push(j, &frame);
    jinja_set(j->a, frame.vars, "loop", loop_of(j, list.list, i));
    assign_all(j, n->a, list.list->v.at[i]);
    flow = run(j, n->c, out);
    j->frame = frame.outer;
  }
  return list.list->v.n ? JF_next : run(j, n->d, out);
}

static JinjaVal run_block(Jinja *j, const JinjaNode *body, const JinjaNode *filter,
                          JinjaFlow *flow) {
  JinjaFrame frame;
  JinjaOut out = out_new(j);
  push(j, &frame);
  *flow = run(j, body, &out);
  j->frame = frame.outer;
  return filter ? apply(j, filter, out_end(&out)) : out_end(&out);
}

static JinjaFlow run_one(Jinja *j, const JinjaNode *n, JinjaOut *out) {
  JinjaFlow flow = JF_next;
  switch (n->op) {
  case JN_data: out_str(out, n->value.s); break;
  case JN_print: out_value(out, eval(j, n->a)); break;
  case JN_if: return run(j, jinja_is_true(eval(j, n->a)) ? n->b : n->c, out);
  case JN_for: return run_for(j, n, out);
  case JN_set:
    if (n->b)
      assign_all(j, n->a, eval(j, n->b));
    else
      assign_all(j, n->a, run_block(j, n->c, n->d, &flow));
    break;
  case JN_macro:
    dict_put(j, j->frame->vars.dict, n->value, (JinjaVal){.kind = JK_macro, .macro = n});
    break;
  case JN_body:
    if (!n->a) return run(j, n->c, out);
    out_value(out, run_block(j, n->c, n->a, &flow));
    return flow;
  case JN_break: return JF_break;
  case JN_continue: return JF_continue;
  default: out_value(out, eval(j, n));
  }
  return JF_next;
}

static JinjaFlow run(Jinja *j, const JinjaNode *n, JinjaOut *out) {
  JinjaFlow flow = JF_next;
  if (++j->depth > JINJA_DEPTH) jinja_fail(j, ERR_input, "nested too deeply");
  for (; n && flow == JF_next; n = n->next) {
    jinja_step(j);
    j->loc.line = n->line;
    flow = run_one(j, n, out);
  }
  j->depth--;
  return flow;
}

JinjaStr jinja_render(Ctx *c, const char *at, size_t n, JinjaVal vars, i64 now, Loc loc, Arena *a) {
  Jinja j = {.c = c, .a = a, .loc = loc, .now = now};
  JinjaFrame given = {.vars = vars}, global;
  j.frame = &given;
  push(&j, &global);
  j.global = &global;
  const JinjaNode *tree = jinja_parse(&j, at, n);
  JinjaOut out = out_new(&j);
  run(&j, tree, &out);
  return out_end(&out).s;
}
