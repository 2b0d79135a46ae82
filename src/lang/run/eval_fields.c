/* eval_fields.c: structs, and lvalues.
 *
 * A struct is a list of its fields. An lvalue is a variable, or an element or field in one. Indices
 * are evaluated first, because they may change the variable. Shared lists on the path are copied.
 */
#include "lang/run/dry.h"

enum { STEPS = 64 }; /* max number of elements and fields in an lvalue */

LangValue eval_record(Eval *ev, const Ast *n) {
  LangValue d = value_list(ev, KD_struct, n->of->n);
  d.u.list->of = n->of;
  for (u32 i = 0; i < n->nkid; i++) d.u.list->at[n->kid[i]->slot] = eval_node(ev, n->kid[i]->a);
  return d;
}

/* Field n->name of d, or NULL if d has none or is not a struct. */
LangValue *value_field(const LangValue *d, const Ast *n) {
  if (d->kind != KD_struct) return NULL;
  u32 i = struct_field(d->u.list->of, n->name);
  return i < d->u.list->n ? &d->u.list->at[i] : NULL;
}

static _Noreturn void no_field(Eval *ev, const Ast *n, const LangValue *d) {
  eval_fail(ev, n, "%s has no field '%s'", value_kind_name(d), str_text(ev->c, n->name));
}

LangValue eval_member(Eval *ev, const Ast *n) {
  LangValue v = eval_node(ev, n->a);
  if (ev->flow != FLOW_next) return v;
  const LangValue *x = value_field(&v, n);
  if (!x) no_field(ev, n, &v);
  LangValue r = value_retain(x);
  value_drop(ev, &v);
  return r;
}

/* ---- lvalues ---- */

/* Any element may change: marks all as unknown. */
static void open_all(Eval *ev, ListObj *l) {
  for (u64 i = 0; i < l->n; i++) {
    LangValue *d = &l->at[i];
    if (d->kind == KD_int || d->kind == KD_float || d->kind == KD_bool)
      *d = value_unknown(ev, d->kind);
  }
}

static LangValue *inside(Eval *ev, const Ast *n, LangValue *in, const LangValue *index) {
  if (n->kind == AST_member) {
    if (!value_field(in, n)) no_field(ev, n, in);
    list_make_unique(ev, in);
    return value_field(in, n);
  }
  if (in->kind == KD_array && value_is_unknown(ev, index)) {
    ListObj *l = list_make_unique(ev, in);
    open_all(ev, l);
    if (!l->n) dry_refuse(ev, n->b, "an index");
    return &l->at[0];
  }
  return value_element(ev, n, in, index);
}

bool is_lvalue(const Ast *n) {
  while (n->kind == AST_index || (n->kind == AST_member && !n->nplace)) n = n->a;
  return n->kind == AST_name;
}

LangValue *eval_lvalue(Eval *ev, const Ast *n) {
  const Ast *at[STEPS], *base = n;
  LangValue index[STEPS];
  u32 depth = 0;
  for (; base->kind == AST_index || base->kind == AST_member; base = base->a) {
    if (depth == STEPS) eval_fail(ev, n, "more than %d indices and fields", STEPS);
    at[depth++] = base;
  }
  for (u32 i = depth; i-- > 0;)
    if (at[i]->kind == AST_index) index[i] = eval_node(ev, at[i]->b);
  LangValue *to = eval_variable(ev, base);
  if (!to)
    eval_fail(ev, base, "Cannot assign to undefined variable: %s", str_text(ev->c, base->name));
  for (u32 i = depth; i-- > 0;) {
    to = inside(ev, at[i], to, &index[i]);
    if (at[i]->kind == AST_index) value_drop(ev, &index[i]);
  }
  return to;
}
