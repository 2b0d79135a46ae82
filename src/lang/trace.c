/* trace.c: a function of a program as a model.
 *
 * In: a program, and the name of a function on tensors whose shapes are written down. Out: its
 * graph, in the session, where every verb finds it: C, bytecode, reports. The statements of the
 * file run first, so that what they train is what the function has: tensors that are known become
 * weights. Then the function is called once with tensors that have shapes and no data. A function
 * that looks at them is refused: what it does would depend on them.
 */
#include "lang/thing.h"

#include <string.h>

static const LangType *tensor_param(const LangFn *f, u32 i) {
  const LangType *t = f->self.item[i];
  bool known = t->kind == KD_tensor && t->shaped;
  for (u32 k = 0; known && k < t->rank; k++) known = t->dim[k] > 0;
  return known ? t : NULL;
}

static bool is_model(const LangFn *f) {
  for (u32 i = 0; i < f->ast->nkid; i++)
    if (!tensor_param(f, i)) return false;
  return f->ast->nkid > 0;
}

Ast *trace_choose(Eval *ev, const char *name) {
  Ast *found = NULL;
  u32 n = 0;
  for (u32 i = 0; i < ev->s->root->nkid; i++) {
    Ast *f = ev->s->root->kid[i];
    if (f->kind != AST_fn || !f->name) continue;
    if (name ? str_is(ev->c, f->name, name) : is_model(f->fn)) {
      found = f;
      n++;
    }
  }
  if (!found)
    fail(ev->c, ERR_input, LOC_NONE,
         name ? "%s: there is no function '%s'"
              : "%s: no function takes only tensors of known shapes, such as x: tensor<float32, "
                "[1, 4]>",
         str_text(ev->c, ev->s->file), name);
  if (n > 1 && !name)
    fail(ev->c, ERR_usage, LOC_NONE, "%s: several functions can be models: --function chooses one",
         str_text(ev->c, ev->s->file));
  for (u32 i = 0; i < found->nkid; i++)
    if (!tensor_param(found->fn, i))
      eval_fail(ev, found->kid[i],
                "a function that becomes a model takes tensors whose shapes are numbers, such as "
                "tensor<float32, [1, 4]>");
  return found;
}

/* float32 unless a parameter says float64. */
static DType element(Eval *ev, const Ast *f) {
  for (u32 i = 0; i < f->nkid; i++) {
    const Ast *t = f->kid[i]->a;
    if (t && t->a && t->a->name && str_is(ev->c, t->a->name, "float64")) return DT_f64;
  }
  return DT_f32;
}

static u32 results(Eval *ev, const Ast *f, const Worth *v, Lazy ***out) {
  bool one = v->kind == KD_tensor, list = v->kind == KD_array || v->kind == KD_tuple;
  u32 n = one ? 1 : list ? (u32)v->u.list->n : 0;
  *out = NEWS(&ev->c->keep, Lazy *, n + 1);
  for (u32 i = 0; i < n; i++) {
    const Worth *x = one ? v : &v->u.list->at[i];
    if (x->kind != KD_tensor)
      n = 0;
    else
      (*out)[i] = x->u.lazy;
  }
  if (!n)
    eval_fail(ev, f, "a function that becomes a model gives tensors, this one %s", worth_kind(v));
  return n;
}

/* The function, called with tensors that have no data. */
static TracedFn traced(Eval *ev, Ast *f, BoxFn *fn) {
  Worth *arg = NEWS(&ev->c->keep, Worth, f->nkid);
  TracedFn t = {.dt = element(ev, f), .n = f->nkid};
  t.param = NEWS(&ev->c->keep, Lazy *, f->nkid);
  t.name = NEWS(&ev->c->keep, const char *, f->nkid);
  for (u32 i = 0; i < f->nkid; i++) {
    const LangType *type = tensor_param(f->fn, i);
    t.param[i] = lazy_hole(ev, type->dim, type->rank);
    t.name[i] = str_text(ev->c, f->kid[i]->name);
    arg[i] = worth_lazy(lazy_share(t.param[i]));
  }
  ev->tracing = true;
  Worth v = call_fn(ev, f, fn, arg, f->nkid);
  t.nout = results(ev, f, &v, &t.out);
  return t;
}

void script_trace(Eval *ev, Ingot *m, Ast *f) {
  TracedFn t = traced(ev, f, ev->file[0]->at[f->slot].u.fn);
  lazy_graph(ev, m, &t);
}

bool trace_show(Eval *ev, BoxFn *fn, Text *out) {
  if (fn->grad_of || !is_model(fn->fn)) return false;
  TracedFn t = traced(ev, fn->fn->ast, fn);
  ev->tracing = false;
  traced_show_graph(ev, &t, out);
  return true;
}
