/* lang_object.c: objects as values: kind names, text form, methods. */
#include "lang/run/lang_object.h"

#include <string.h>

static const struct {
  const char *kind, *show;
} rows[OBJECT_COUNT] = {
#define OBJECT(name, kind, show) {kind, show},
#include "lang/run/lang_objects.def"
#undef OBJECT
};

LangObject *object_new(Eval *ev, ObjectKind what) {
  LangObject *t = heap_new(ev, KD_object, sizeof *t);
  t->what = what;
  return t;
}

LangValue value_object(LangObject *t) {
  return (LangValue){KD_object, .u = {.thing = t}};
}

const char *object_kind_name(const LangObject *t) {
  return rows[t->what].kind;
}

void object_show(Eval *ev, const LangObject *t, StrBuf *out) {
  if (t->what == OBJ_class || t->what == OBJ_model) {
    model_show(ev, t, out);
    return;
  }
  if (t->what == OBJ_net) sb_fmt(out, "Network(%s)", t->path);
  for (const char *s = rows[t->what].show; *s; s++) {
    if (*s == '$')
      show_number(out, t->num[*++s - '0']);
    else
      sb_put(out, s, 1);
  }
}

void object_release(Eval *ev, LangObject *t) {
  for (u32 i = 0; i < t->nweight; i++) lazy_drop(ev, t->weight[i]);
  for (u32 i = 0; i < 2; i++) lazy_drop(ev, t->stat[i]);
  t->stat[0] = t->stat[1] = NULL;
  for (u32 i = 0; i < t->moment.n; i++) {
    lazy_drop(ev, t->moment.at[i].first);
    lazy_drop(ev, t->moment.at[i].second);
  }
  for (u32 i = 0; i < t->npart; i++) heap_drop(ev, &t->part[i]->box);
  t->nweight = t->moment.n = t->npart = 0;
}

LangObject *arg_object(Eval *ev, const LangValue *d, const char *what) {
  if (d->kind == KD_object) return d->u.thing;
  ARG_BAD(ev, "%s() takes %s here, got %s", builtin_name(ev), what, value_kind_name(d));
}

OptimizerState *object_moment(Eval *ev, LangObject *t, u64 line) {
  if (!t->moment.n) t->moment_at = map_new(&ev->c->keep);
  u32 *at = map_put(&t->moment_at, line);
  if (!*at) {
    *vec_push(&ev->c->keep, &t->moment) = (OptimizerState){.line = line};
    *at = t->moment.n;
  }
  return &t->moment.at[*at - 1];
}

LangValue object_method(Eval *ev, const Ast *at, const LangValue *on, const char *name,
                        LangValue *arg, u32 n) {
  LangValue out = {.kind = KD_null};
  ev->at = at;
  if (on->kind != KD_object)
    eval_fail(ev, at->a, "%s has no functions: pass it to a function as an argument",
              value_kind_name(on));
  LangObject *t = on->u.thing;
  if (t->what == OBJ_model && model_method(ev, t, name, arg, n, &out)) return out;
  if (t->what == OBJ_net && !strcmp(name, "forward")) return net_call(ev, t, arg, n);
  if (n == 1 && t->what != OBJ_model && t->what != OBJ_class && !strcmp(name, "forward"))
    return value_tensor(layer_forward(ev, t, arg_tensor(ev, &arg[0])));
  eval_fail(ev, at, "%s has no function '%s' that takes %u arguments", value_kind_name(on), name,
            n);
}

LangValue object_call(Eval *ev, const Ast *at, LangObject *t, LangValue *arg, u32 n) {
  const LangValue on = {KD_object, .u = {.thing = t}};
  if (t->what == OBJ_class && !n) return model_instantiate(ev, t);
  return object_method(ev, at, &on, "forward", arg, n);
}

void net_check(Eval *ev, const LangObject *t, const LangValue *arg, u32 n) {
  for (u32 i = 0; i < n; i++) {
    LazyTensor *x = arg_tensor(ev, &arg[i]);
    if (x->tracked)
      ARG_BAD(ev,
              "%s: no gradient goes through an imported network; tensor_requires_grad(t, false) "
              "gives the tensor without one",
              t->path);
    lazy_data(ev, x);
  }
}
