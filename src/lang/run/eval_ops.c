/* eval_ops.c: evaluates operators, casts, ranges and indices; value_ops.c computes them. */
#include "lang/run/dry.h"

LangValue eval_binary(Eval *ev, const Ast *n, const LangValue *x, const LangValue *y) {
  LangValue open;
  ev->at = n;
  if (ev->dry && dry_binary(ev, n, x, y, &open)) return open;
  if (ev->dims && size_binary(ev, n, x, y, &open)) return open;
  return value_binary(ev, n, x, y);
}

LangValue eval_unary(Eval *ev, const Ast *n) {
  LangValue v = eval_node(ev, n->a), r;
  if (ev->flow != FLOW_next) return v;
  if (value_is_unknown(ev, &v))
    r = value_unknown(ev, n->op == TOK_not ? KD_bool : v.kind);
  else
    r = n->op == TOK_not ? value_bool(!value_is_true(&v)) : value_negate(ev, n, &v);
  value_drop(ev, &v);
  return r;
}

LangValue eval_cast(Eval *ev, const Ast *n) {
  LangValue v = eval_node(ev, n->a);
  return ev->flow == FLOW_next ? value_cast(ev, n, v, str_text(ev->c, n->name)) : v;
}

static i64 bound(Eval *ev, Ast *n, bool *known) {
  LangValue d = eval_node(ev, n);
  if (value_is_unknown(ev, &d)) *known = false;
  return ev->flow == FLOW_next ? value_bound(ev, n, &d) : 0;
}

bool eval_bounds(Eval *ev, const Ast *range, i64 *from, i64 *end) {
  bool known = true;
  *from = bound(ev, range->a, &known);
  *end = bound(ev, range->b, &known);
  if (range->op == TOK_upto) *end = value_upto(ev, range, *end);
  return known;
}

LangValue eval_range(Eval *ev, const Ast *n) {
  i64 from, end;
  if (!eval_bounds(ev, n, &from, &end)) dry_refuse(ev, n, "a range");
  return value_range(ev, n, from, end);
}

static LangValue at_index(Eval *ev, const Ast *n, const LangValue *v, const LangValue *i) {
  LangValue open;
  ev->at = n;
  if (ev->dry && dry_element(ev, n, v, i, &open)) return open;
  if (!ev->dry && value_is_unknown(ev, i)) dry_refuse(ev, n->b, "an index");
  return value_index(ev, n, v, i);
}

LangValue eval_index(Eval *ev, const Ast *n) {
  LangValue i, r, *name = n->a->kind == AST_name && !n->a->to ? eval_variable(ev, n->a) : NULL;
  LangValue v = name ? (LangValue){.kind = KD_null} : eval_node(ev, n->a);
  i = eval_node(ev, n->b);
  if (ev->flow != FLOW_next) return v;
  if (name) name = eval_variable(ev, n->a); /* the index may have redefined it */
  r = at_index(ev, n, name ? name : &v, &i);
  value_drop(ev, &v);
  value_drop(ev, &i);
  return r;
}
