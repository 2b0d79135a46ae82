/* eval_call.c: calls of functions and built-ins.
 *
 * The variables of a call are its parameters, captures and definitions. They are in an arena that
 * is rewound when the call returns.
 */
#include "lang/run/dry.h"
#include "lang/run/lang_object.h"

#include <string.h>

BuiltinFn *const builtin_fn[] = {
#define BI(name, sig, args, shape, fn) bi_##fn,
#include "lang/syntax/builtins.def"
#undef BI
};

LangValue eval_closure(Eval *ev, Ast *n) {
  LangFn *f = n->fn;
  ClosureObj *b = heap_new(ev, KD_fn, sizeof *b + f->capture.n * sizeof *b->with);
  b->fn = f;
  b->n = f->capture.n;
  for (u32 i = 0; i < b->n; i++) {
    const Capture *c = &f->capture.at[i];
    const Ast name = {.kind = AST_name, .place = c->from, .nplace = c->nfrom};
    const LangValue *d = eval_variable(ev, &name);
    if (d) b->with[i] = value_retain(d);
    if (!d && c->nfrom && c->from[0].kind == VR_self && ev->local->self) {
      b->with[i] = (LangValue){KD_fn, .u = {.fn = ev->local->self}};
      ev->local->self->box.refs++;
    }
  }
  return (LangValue){KD_fn, .u = {.fn = b}};
}

static void fill(Eval *ev, Locals *l, ClosureObj *f, const LangValue *arg, u32 n) {
  for (u32 i = 0; i < n; i++) l->at[f->fn->ast->kid[i]->slot] = arg[i];
  for (u32 i = 0; i < f->n; i++)
    if (f->with[i].kind != KD_none) l->at[f->fn->capture.at[i].slot] = value_retain(&f->with[i]);
  l->self = f;
  (void)ev;
}

/* Binds the symbols in parameter shapes for the whole call. */
static void check_sizes(Eval *ev, const Ast *at, ClosureObj *f, u32 n) {
  for (u32 i = 0; i < n; i++) {
    const LangType *t = f->fn->self.item[i];
    if (t->kind == KD_any) continue;
    value_convert(ev, at->kind == AST_call && i < at->nkid ? at->kid[i] : at,
                  &ev->local->at[f->fn->ast->kid[i]->slot], t);
  }
}

LangValue call_fn(Eval *ev, const Ast *at, ClosureObj *f, LangValue *arg, u32 n) {
  LangFn *fn = f->fn;
  eval_check_stop(ev, at);
  if (f->grad_of) return call_grad(ev, at, f->grad_of, arg, n);
  if (n != fn->ast->nkid)
    eval_fail(ev, at, "Wrong number of arguments: expected %u, got %u", fn->ast->nkid, n);
  if (ev->dry) dry_check_recursion(ev, at, fn);
  Mark mark = arena_mark(&ev->stack);
  Locals *l = arena_alloc(&ev->stack, sizeof *l + fn->nslot * sizeof *l->at);
  l->outer = ev->local;
  l->call = at;
  l->n = fn->nslot;
  fill(ev, l, f, arg, n);
  ev->local = l;
  DryCall dry;
  if (ev->dry) dry_call_begin(ev, &dry);
  check_sizes(ev, at, f, n);
  LangValue v;
  if (!hot_call(ev, fn, &v)) v = eval_block(ev, fn->ast->a);
  if (ev->flow == FLOW_return) {
    value_drop(ev, &v);
    v = ev->result;
    ev->result.kind = KD_none;
  }
  ev->flow = FLOW_next;
  if (ev->dry) v = dry_call_end(ev, &dry, v);
  for (u32 i = 0; i < l->n; i++) value_drop(ev, &l->at[i]);
  ev->local = l->outer;
  arena_rewind(&ev->stack, mark);
  if (fn->result->kind == KD_float && v.kind == KD_int)
    v = v.open ? value_unknown(ev, KD_float) : value_float((double)v.u.i);
  return v;
}

const char *builtin_name(const Eval *ev) {
  const Ast *n = ev->at;
  return n && n->kind == AST_call && n->builtin ? builtin_info[n->builtin - 1].name : "operator";
}

/* push and pop modify the variable given to them. */
static LangValue change(Eval *ev, Ast *n) {
  bool pushes = builtin_fn[n->builtin - 1] == bi_push;
  LangValue v = pushes ? eval_node(ev, n->kid[1]) : (LangValue){.kind = KD_null};
  LangValue *to = is_lvalue(n->kid[0]) ? eval_lvalue(ev, n->kid[0]) : NULL, own;
  if (!to) {
    own = eval_node(ev, n->kid[0]);
    to = &own;
  }
  v = pushes ? value_push(ev, n, to, v) : value_pop(ev, n, to);
  if (to == &own) value_drop(ev, to);
  return v;
}

void bi_push(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  (void)arg, (void)n, (void)out;
  ARG_BAD(ev, "push() has no variable"); /* change() handles it */
}

void bi_pop(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  bi_push(ev, arg, n, out);
}

/* Takes f and the arguments. */
static LangValue call_value(Eval *ev, Ast *n, LangValue *f, LangValue *arg) {
  LangValue out;
  if (f->kind == KD_fn) {
    out = call_fn(ev, n, f->u.fn, arg, n->nkid);
    for (u32 i = 0; i < n->nkid; i++) arg[i].kind = KD_none; /* moved */
  } else if (f->kind == KD_object) {
    out = object_call(ev, n, f->u.thing, arg, n->nkid);
  } else {
    eval_fail(ev, n, "Cannot call non-function value: %s", value_kind_name(f));
  }
  value_drop(ev, f);
  return out;
}

/* A method of an object, or a function in a field of a struct. */
static LangValue eval_method(Eval *ev, Ast *n, LangValue *arg) {
  LangValue on = eval_node(ev, n->a->a), f, r;
  const LangValue *field = value_field(&on, n->a);
  if (field)
    r = (f = value_retain(field), call_value(ev, n, &f, arg));
  else
    r = object_method(ev, n, &on, str_text(ev->c, n->a->name), arg, n->nkid);
  value_drop(ev, &on);
  return r;
}

static LangValue apply(Eval *ev, Ast *n, LangValue *arg) {
  LangValue out = {.kind = KD_null};
  if (n->builtin) {
    ev->at = n;
    if (!ev->dry || !dry_builtin(ev, n, arg, &out))
      builtin_fn[n->builtin - 1](ev, arg, n->nkid, &out);
    ev->at = n;
  } else if (n->a->kind == AST_member && !n->a->nplace) {
    out = eval_method(ev, n, arg);
  } else {
    LangValue f = eval_node(ev, n->a);
    out = call_value(ev, n, &f, arg);
  }
  return out;
}

static bool is_change(const Ast *n) {
  BuiltinFn *f = n->builtin ? builtin_fn[n->builtin - 1] : NULL;
  return f && (f == bi_push || f == bi_pop);
}

LangValue eval_call(Eval *ev, Ast *n) {
  enum { FEW = 8 };
  LangValue few[FEW], *arg = few;
  if (is_change(n)) return change(ev, n);
  Mark mark = arena_mark(&ev->stack);
  if (n->nkid > FEW) arg = arena_array(&ev->stack, n->nkid, sizeof *arg);
  for (u32 i = 0; i < n->nkid; i++) arg[i] = eval_node(ev, n->kid[i]);
  LangValue out = {.kind = KD_null};
  for (u32 i = 0; ev->dry && i < n->nkid; i++) dry_require_known(ev, n->kid[i], &arg[i]);
  if (ev->flow == FLOW_next) out = apply(ev, n, arg);
  for (u32 i = 0; i < n->nkid; i++) value_drop(ev, &arg[i]);
  arena_rewind(&ev->stack, mark);
  return out;
}
