/* thing.c: objects as values: what they are called, how they show, what they can do. */
#include "lang/thing.h"

#include <string.h>

static const struct {
  const char *kind, *show;
} rows[THING_COUNT] = {
#define THING(name, kind, show) {kind, show},
#include "lang/things.def"
#undef THING
};

Thing *thing_new(Eval *ev, ThingKind what) {
  Thing *t = share_new(ev, KD_object, sizeof *t);
  t->what = what;
  return t;
}

Worth worth_thing(Thing *t) {
  return (Worth){KD_object, .u = {.thing = t}};
}

const char *thing_kind(const Thing *t) {
  return rows[t->what].kind;
}

void thing_show(Eval *ev, const Thing *t, Text *out) {
  if (t->what == TH_class || t->what == TH_model) {
    model_show(ev, t, out);
    return;
  }
  if (t->what == TH_net) text_fmt(out, "Network(%s)", t->path);
  for (const char *s = rows[t->what].show; *s; s++) {
    if (*s == '$')
      show_number(out, t->num[*++s - '0']);
    else
      text_put(out, s, 1);
  }
}

void thing_release(Eval *ev, Thing *t) {
  for (u32 i = 0; i < t->nweight; i++) lazy_drop(ev, t->weight[i]);
  for (u32 i = 0; i < 2; i++) lazy_drop(ev, t->stat[i]);
  t->stat[0] = t->stat[1] = NULL;
  for (u32 i = 0; i < t->moment.n; i++) {
    lazy_drop(ev, t->moment.at[i].first);
    lazy_drop(ev, t->moment.at[i].second);
  }
  for (u32 i = 0; i < t->npart; i++) share_drop(ev, &t->part[i]->box);
  t->nweight = t->moment.n = t->npart = 0;
}

Thing *arg_thing(Eval *ev, const Worth *d, const char *what) {
  if (d->kind == KD_object) return d->u.thing;
  ARG_BAD(ev, "%s() takes %s here, got %s", builtin_name(ev), what, worth_kind(d));
}

Moment *thing_moment(Eval *ev, Thing *t, u64 line) {
  if (!t->moment.n) t->moment_at = map_new(&ev->c->keep);
  u32 *at = map_put(&t->moment_at, line);
  if (!*at) {
    *vec_push(&ev->c->keep, &t->moment) = (Moment){.line = line};
    *at = t->moment.n;
  }
  return &t->moment.at[*at - 1];
}

Worth thing_method(Eval *ev, const Ast *at, const Worth *on, const char *name, Worth *arg, u32 n) {
  Worth out = {.kind = KD_null};
  ev->at = at;
  if (on->kind != KD_object)
    eval_fail(ev, at->a, "%s has no functions of its own: it is an argument of others",
              worth_kind(on));
  Thing *t = on->u.thing;
  if (t->what == TH_model && model_method(ev, t, name, arg, n, &out)) return out;
  if (t->what == TH_net && !strcmp(name, "forward")) return net_call(ev, t, arg, n);
  if (n == 1 && t->what != TH_model && t->what != TH_class && !strcmp(name, "forward"))
    return worth_lazy(layer_forward(ev, t, arg_tensor(ev, &arg[0])));
  eval_fail(ev, at, "%s has no function '%s' that takes %u arguments", worth_kind(on), name, n);
}

Worth thing_call(Eval *ev, const Ast *at, Thing *t, Worth *arg, u32 n) {
  const Worth on = {KD_object, .u = {.thing = t}};
  if (t->what == TH_class && !n) return model_object(ev, t);
  return thing_method(ev, at, &on, "forward", arg, n);
}

void net_check(Eval *ev, const Thing *t, const Worth *arg, u32 n) {
  for (u32 i = 0; i < n; i++) {
    Lazy *x = arg_tensor(ev, &arg[i]);
    if (x->tracked)
      ARG_BAD(ev,
              "%s: no gradient goes through an imported network; tensor_requires_grad(t, false) "
              "gives the tensor without one",
              t->path);
    lazy_data(ev, x);
  }
}
