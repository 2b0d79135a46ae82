/* model.c: models, which are layers in a row.
 *
 * `model NAME { layers { ... } }` makes a class: layers with sizes (class.c). A call makes an
 * object of it with weights of its own: normal numbers times the root of 2 / inputs (He), from a
 * seed that the number of the object decides; offsets are 0, gains 1.
 */
#include "lang/thing.h"

#include <math.h>
#include <string.h>

static const struct {
  TensorOp op;
  const char *name;
} activations[] = {
#define LAYER(name, make, least, most)
#define PLAIN_LAYER(name, sizes)
#define ACTIVATION(name) {RC_DO_##name, #name},
#include "front/lang/layers.def"
#undef LAYER
#undef PLAIN_LAYER
#undef ACTIVATION
};

void model_room(Eval *ev, Thing *m, u32 most) {
  m->part = NEWS(&ev->c->keep, Thing *, most + 1);
}

void model_add(Thing *m, Thing *part) {
  m->part[m->npart++] = part;
}

/* ---- objects ---- */

static Lazy *fresh(Eval *ev, const Thing *part, u32 k) {
  const Lazy *w = part->weight[k];
  Lazy *t;
  if (w->rank < 2) {
    t = lazy_new(ev, w->dim, w->rank);
    memcpy(t->data, w->data, (size_t)w->n * sizeof *w->data);
  } else {
    u64 outputs = (u64)(part->what == TH_conv2d ? w->dim[0] : w->dim[1]);
    t = random_tensor(ev, w->dim, w->rank);
    for (u64 i = 0; i < t->n; i++) t->data[i] *= sqrt(2.0 * (double)outputs / (double)t->n);
  }
  t->tracked = true;
  return t;
}

static void set_training(Thing *m, bool on) {
  m->num[THING_TRAINS] = on;
  for (u32 i = 0; i < m->npart; i++) m->part[i]->num[THING_TRAINS] = on;
}

Worth model_object(Eval *ev, const Thing *class) {
  Thing *m = thing_new(ev, TH_model);
  m->name = class->name;
  model_room(ev, m, class->npart);
  for (u32 i = 0; i < class->npart; i++) {
    const Thing *from = class->part[i];
    Thing *part = thing_new(ev, from->what);
    memcpy(part->num, from->num, sizeof part->num);
    for (u32 k = 0; k < from->nweight; k++) part->weight[part->nweight++] = fresh(ev, from, k);
    if (part->what == TH_batchnorm) {
      const i64 features = (i64)part->num[0];
      part->stat[0] = lazy_new(ev, &features, 1);
      part->stat[1] = lazy_new(ev, &features, 1);
      for (i64 k = 0; k < features; k++) part->stat[1]->data[k] = 1;
    }
    model_add(m, part);
  }
  set_training(m, true);
  return worth_thing(m);
}

static Lazy *flat(Eval *ev, Lazy *x) {
  const i64 dim[2] = {x->rank ? x->dim[0] : 1,
                      x->rank ? size_product(ev, x->dim + 1, x->rank - 1) : 1};
  return lazy_make(ev, RC_DO_reshape, &x, 1, NULL, 0, dim, 2);
}

static Lazy *activate(Eval *ev, const Thing *part, Lazy *x) {
  const double last = 0;
  return lazy_map(ev, activations[(u32)part->num[0]].op, x, &last, 1);
}

/* Elements are dropped at random, other ones in every run. */
static Lazy *drop(Eval *ev, const Thing *part, Lazy *x) {
  Lazy *mask = random_tensor_uniform(ev, x->dim, x->rank);
  double p = part->num[0];
  for (u64 i = 0; i < mask->n; i++) mask->data[i] = mask->data[i] < p ? 0 : 1 / (1 - p);
  Lazy *y = tensor_two(ev, RC_DO_mul, x, mask, "dropout");
  lazy_drop(ev, mask);
  return y;
}

/* What a batch has goes into what has been seen, a tenth of it; no gradient does. */
static void see(Eval *ev, Thing *part, Lazy *x) {
  static const TensorOp op[2] = {RC_DO_channel_mean, RC_DO_channel_variance};
  const double old = 0.9, new = 0.1;
  for (u32 i = 0; i < 2; i++) {
    Lazy *k = lazy_scalar(ev, old), *l = lazy_scalar(ev, new), *stat = part->stat[i];
    Lazy *seen = lazy_make(ev, op[i], &x, 1, NULL, 0, &x->dim[1], 1);
    seen->tracked = false;
    Lazy *a = tensor_two(ev, RC_DO_mul, stat, k, "batchnorm");
    Lazy *b = tensor_two(ev, RC_DO_mul, seen, l, "batchnorm");
    part->stat[i] = tensor_two(ev, RC_DO_add, a, b, "batchnorm");
    Lazy *done[] = {k, l, stat, seen, a, b};
    for (u32 j = 0; j < sizeof done / sizeof *done; j++) lazy_drop(ev, done[j]);
  }
}

/* What a layer does only while it learns is no part of a model that is shipped. */
static void refuse_training(Eval *ev, const Thing *part) {
  Text t = text_new(&ev->c->keep);
  thing_show(ev, part, &t);
  ARG_BAD(ev,
          "%s is being trained: eval() of the model comes before a function with it is compiled",
          text_cstr(&t));
}

Lazy *model_forward(Eval *ev, Thing *m, Lazy *x) {
  lazy_share(x);
  for (u32 i = 0; i < m->npart; i++) {
    Thing *part = m->part[i];
    Lazy *y;
    bool trains = m->num[THING_TRAINS] != 0;
    if (ev->tracing && trains && (part->what == TH_dropout || part->what == TH_batchnorm))
      refuse_training(ev, part);
    if (part->what == TH_activation)
      y = activate(ev, part, x);
    else if (part->what == TH_flatten)
      y = flat(ev, x);
    else if (part->what == TH_dropout)
      y = trains ? drop(ev, part, x) : lazy_share(x);
    else
      y = layer_forward(ev, part, x);
    if (trains && part->what == TH_batchnorm) see(ev, part, x);
    lazy_drop(ev, x);
    x = y;
  }
  return x;
}

static u32 count_weights(const Thing *m) {
  u32 n = 0;
  for (u32 i = 0; i < m->npart; i++) n += m->part[i]->nweight;
  return n;
}

static Worth parameters(Eval *ev, const Thing *m) {
  Worth out = worth_list(ev, KD_array, count_weights(m));
  u32 n = 0;
  for (u32 i = 0; i < m->npart; i++)
    for (u32 k = 0; k < m->part[i]->nweight; k++)
      out.u.list->at[n++] = worth_lazy(lazy_share(m->part[i]->weight[k]));
  return out;
}

static void set_parameters(Eval *ev, Thing *m, const BoxList *l) {
  u32 n = 0;
  if (l->n != count_weights(m))
    ARG_BAD(ev, "%llu tensors for a model that has %u", (unsigned long long)l->n, count_weights(m));
  for (u32 i = 0; i < m->npart; i++)
    for (u32 k = 0; k < m->part[i]->nweight; k++, n++) {
      Lazy *old = m->part[i]->weight[k], *new = arg_tensor(ev, &l->at[n]);
      if (new->rank != old->rank || memcmp(new->dim, old->dim, old->rank * sizeof *old->dim))
        ARG_BAD(ev, "parameter %u has shape %s, got %s", n, dims_text(ev, old->dim, old->rank),
                dims_text(ev, new->dim, new->rank));
      m->part[i]->weight[k] = lazy_share(new);
      lazy_drop(ev, old);
    }
}

/* parameters - lr * gradients */
static void update(Eval *ev, Thing *m, const BoxList *grads, const Worth *lr) {
  Worth old = parameters(ev, m);
  if (grads->n != old.u.list->n)
    ARG_BAD(ev, "%llu gradients for a model that has %u parameters", (unsigned long long)grads->n,
            count_weights(m));
  for (u64 i = 0; i < grads->n; i++) {
    Worth arg[3] = {old.u.list->at[i], grads->at[i], *lr}, new;
    bi_tensor_update_inplace(ev, arg, 3, &new);
    worth_drop(ev, &old.u.list->at[i]);
    old.u.list->at[i] = new;
  }
  set_parameters(ev, m, old.u.list);
  worth_drop(ev, &old);
}

/* What an optimiser makes of the parameters is what the model has from then on. */
static void step(Eval *ev, Thing *m, Thing *opt) {
  Worth old = parameters(ev, m), new;
  Lazies seen = {0};
  for (u32 i = 0; i < m->npart; i++)
    for (u32 k = 0; k < 2 && m->part[i]->stat[k]; k++)
      *vec_push(&ev->stack, &seen) = m->part[i]->stat[k];
  optim_step(ev, opt, old.u.list, &seen, &new);
  set_parameters(ev, m, new.u.list);
  worth_drop(ev, &old);
  worth_drop(ev, &new);
}

/* ---- methods ---- */

void do_forward(Eval *ev, Thing *m, Worth *arg, Worth *out) {
  *out = worth_lazy(model_forward(ev, m, arg_tensor(ev, &arg[0])));
}

void do_parameters(Eval *ev, Thing *m, Worth *arg, Worth *out) {
  *out = parameters(ev, m);
  (void)arg;
}

void do_set_parameters(Eval *ev, Thing *m, Worth *arg, Worth *out) {
  set_parameters(ev, m, arg_array(ev, &arg[0]));
  (void)out;
}

void do_update(Eval *ev, Thing *m, Worth *arg, Worth *out) {
  update(ev, m, arg_array(ev, &arg[0]), &arg[1]);
  (void)out;
}

void do_step(Eval *ev, Thing *m, Worth *arg, Worth *out) {
  step(ev, m, arg_thing(ev, &arg[0], "an optimiser"));
  (void)out;
}

void do_train(Eval *ev, Thing *m, Worth *arg, Worth *out) {
  set_training(m, true);
  (void)ev, (void)arg, (void)out;
}

void do_eval(Eval *ev, Thing *m, Worth *arg, Worth *out) {
  set_training(m, false);
  (void)ev, (void)arg, (void)out;
}

bool model_method(Eval *ev, Thing *m, const char *name, Worth *arg, u32 n, Worth *out) {
  static const struct {
    const char *name;
    u32 n;
    void (*fn)(Eval *ev, Thing *m, Worth *arg, Worth *out);
  } methods[] = {
#define METHOD(name, n, result, fn) {#name, n, do_##fn},
#include "front/lang/methods.def"
#undef METHOD
  };
  for (u32 i = 0; i < sizeof methods / sizeof *methods; i++) {
    if (methods[i].n != n || strcmp(methods[i].name, name)) continue;
    methods[i].fn(ev, m, arg, out);
    return true;
  }
  return false;
}

void model_show(Eval *ev, const Thing *m, Text *out) {
  text_fmt(out, "%s(", m->name);
  for (u32 i = 0; i < m->npart; i++) {
    if (i) text_puts(out, ", ");
    if (m->part[i]->what == TH_activation)
      text_puts(out, activations[(u32)m->part[i]->num[0]].name);
    else
      thing_show(ev, m->part[i], out);
  }
  text_puts(out, ")");
}
