/* eval_call.c: calls of functions and built-ins.
 *
 * A function has variables of its own: parameters, what it took along when it was defined, and what
 * it defines. They lie in an arena that is taken back when it returns.
 */
#include "lang/dry.h"
#include "lang/thing.h"

#include <string.h>

BuiltinFn *const builtin_fn[] = {
#define BI(name, sig, args, shape, fn) bi_##fn,
#include "front/lang/builtins.def"
#undef BI
};

Worth eval_closure(Eval *ev, Ast *n) {
  LangFn *f = n->fn;
  BoxFn *b = share_new(ev, KD_fn, sizeof *b + f->capture.n * sizeof *b->with);
  b->fn = f;
  b->n = f->capture.n;
  for (u32 i = 0; i < b->n; i++) {
    const Capture *c = &f->capture.at[i];
    const Ast name = {.kind = AST_name, .place = c->from, .nplace = c->nfrom};
    const Worth *d = eval_variable(ev, &name);
    if (d) b->with[i] = worth_share(d);
    if (!d && c->nfrom && c->from[0].kind == PL_self && ev->local->self) {
      b->with[i] = (Worth){KD_fn, .u = {.fn = ev->local->self}};
      ev->local->self->box.refs++;
    }
  }
  return (Worth){KD_fn, .u = {.fn = b}};
}

Worth fn_gradient(Eval *ev, BoxFn *f) {
  BoxFn *g = share_new(ev, KD_fn, sizeof *g);
  g->fn = f->fn;
  g->grad_of = f;
  f->box.refs++;
  return (Worth){KD_fn, .u = {.fn = g}};
}

static void fill(Eval *ev, Locals *l, BoxFn *f, const Worth *arg, u32 n) {
  for (u32 i = 0; i < n; i++) l->at[f->fn->ast->kid[i]->slot] = arg[i];
  for (u32 i = 0; i < f->n; i++)
    if (f->with[i].kind != KD_none) l->at[f->fn->capture.at[i].slot] = worth_share(&f->with[i]);
  l->self = f;
  (void)ev;
}

/* Parameters with shapes: what their symbols stand for is the same in the whole call. */
static void check_sizes(Eval *ev, const Ast *at, BoxFn *f, u32 n) {
  for (u32 i = 0; i < n; i++) {
    const LangType *t = f->fn->self.item[i];
    if (t->kind == KD_any) continue;
    eval_becomes(ev, at->kind == AST_call && i < at->nkid ? at->kid[i] : at,
                 &ev->local->at[f->fn->ast->kid[i]->slot], t);
  }
}

Worth call_fn(Eval *ev, const Ast *at, BoxFn *f, Worth *arg, u32 n) {
  LangFn *fn = f->fn;
  eval_stop(ev, at);
  if (f->grad_of) return call_grad(ev, at, f->grad_of, arg, n);
  if (n != fn->ast->nkid)
    eval_fail(ev, at, "Wrong number of arguments: expected %u, got %u", fn->ast->nkid, n);
  if (ev->dry) dry_call(ev, at, fn);
  Mark mark = arena_mark(&ev->stack);
  Locals *l = arena_alloc(&ev->stack, sizeof *l + fn->nslot * sizeof *l->at);
  l->outer = ev->local;
  l->call = at;
  l->n = fn->nslot;
  fill(ev, l, f, arg, n);
  ev->local = l;
  DryCall dry;
  if (ev->dry) dry_enter(ev, &dry);
  check_sizes(ev, at, f, n);
  Worth v;
  if (!hot_call(ev, fn, &v)) v = eval_block(ev, fn->ast->a);
  if (ev->flow == FLOW_return) {
    worth_drop(ev, &v);
    v = ev->result;
    ev->result.kind = KD_none;
  }
  ev->flow = FLOW_next;
  if (ev->dry) v = dry_leave(ev, &dry, v);
  for (u32 i = 0; i < l->n; i++) worth_drop(ev, &l->at[i]);
  ev->local = l->outer;
  arena_rewind(&ev->stack, mark);
  if (fn->result->kind == KD_float && v.kind == KD_int)
    v = v.open ? worth_unknown(ev, KD_float) : worth_float((double)v.u.i);
  return v;
}

const char *builtin_name(const Eval *ev) {
  const Ast *n = ev->at;
  return n && n->kind == AST_call && n->builtin ? builtin_info[n->builtin - 1].name : "operator";
}

/* ---- calls ---- */

/* push and pop change the variable that they are given. */
static Worth change(Eval *ev, Ast *n) {
  bool pushes = builtin_fn[n->builtin - 1] == bi_push;
  Worth v = pushes ? eval_node(ev, n->kid[1]) : (Worth){.kind = KD_null};
  Worth *to = is_place(n->kid[0]) ? eval_place(ev, n->kid[0]) : NULL, own;
  if (!to) {
    own = eval_node(ev, n->kid[0]);
    to = &own;
  }
  ev->at = n;
  BoxList *l = to->kind == KD_array ? to->u.list : arg_array(ev, to);
  if (!pushes && !l->n) eval_fail(ev, n, "pop() of an empty array");
  if (pushes) {
    list_push(ev, to, v);
    return to == &own ? own : worth_share(to);
  }
  l = list_own(ev, to);
  v = l->at[--l->n];
  if (to == &own) worth_drop(ev, to);
  return v;
}

void bi_push(Eval *ev, Worth *arg, u32 n, Worth *out) {
  (void)arg, (void)n, (void)out;
  ARG_BAD(ev, "push() has no variable"); /* change() is called instead */
}

void bi_pop(Eval *ev, Worth *arg, u32 n, Worth *out) {
  bi_push(ev, arg, n, out);
}

/* Takes the arguments, and f. */
static Worth call_value(Eval *ev, Ast *n, Worth *f, Worth *arg) {
  Worth out;
  if (f->kind == KD_fn) {
    out = call_fn(ev, n, f->u.fn, arg, n->nkid);
    for (u32 i = 0; i < n->nkid; i++) arg[i].kind = KD_none; /* they were taken */
  } else if (f->kind == KD_object) {
    out = thing_call(ev, n, f->u.thing, arg, n->nkid);
  } else {
    eval_fail(ev, n, "Cannot call non-function value: %s", worth_kind(f));
  }
  worth_drop(ev, f);
  return out;
}

/* A function of an object, or one that a field of a struct holds. */
static Worth eval_method(Eval *ev, Ast *n, Worth *arg) {
  Worth on = eval_node(ev, n->a->a), f, r;
  const Worth *field = worth_field(&on, n->a);
  if (field)
    r = (f = worth_share(field), call_value(ev, n, &f, arg));
  else
    r = thing_method(ev, n, &on, str_text(ev->c, n->a->name), arg, n->nkid);
  worth_drop(ev, &on);
  return r;
}

static Worth apply(Eval *ev, Ast *n, Worth *arg) {
  Worth out = {.kind = KD_null};
  if (n->builtin) {
    ev->at = n;
    if (!ev->dry || !dry_builtin(ev, n, arg, &out))
      builtin_fn[n->builtin - 1](ev, arg, n->nkid, &out);
    ev->at = n;
  } else if (n->a->kind == AST_member && !n->a->nplace) {
    out = eval_method(ev, n, arg);
  } else {
    Worth f = eval_node(ev, n->a);
    out = call_value(ev, n, &f, arg);
  }
  return out;
}

static bool is_change(const Ast *n) {
  BuiltinFn *f = n->builtin ? builtin_fn[n->builtin - 1] : NULL;
  return f && (f == bi_push || f == bi_pop);
}

Worth eval_call(Eval *ev, Ast *n) {
  enum { FEW = 8 };
  Worth few[FEW], *arg = few;
  if (is_change(n)) return change(ev, n);
  Mark mark = arena_mark(&ev->stack);
  if (n->nkid > FEW) arg = arena_array(&ev->stack, n->nkid, sizeof *arg);
  for (u32 i = 0; i < n->nkid; i++) arg[i] = eval_node(ev, n->kid[i]);
  Worth out = {.kind = KD_null};
  for (u32 i = 0; ev->dry && i < n->nkid; i++) dry_look(ev, n->kid[i], &arg[i]);
  if (ev->flow == FLOW_next) out = apply(ev, n, arg);
  for (u32 i = 0; i < n->nkid; i++) worth_drop(ev, &arg[i]);
  arena_rewind(&ev->stack, mark);
  return out;
}
