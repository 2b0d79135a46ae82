/* lang_model.c: models, sequences of layers.
 *
 * `model NAME { layers { ... } }` defines a class of layers with sizes (class.c). Calling it
 * creates an object with its own weights: He initialization, normal with standard
 * deviation sqrt(2 / inputs), seeded by the number of the object. Biases are 0, gains 1.
 */
#include "lang/run/lang_object.h"

#include <math.h>
#include <string.h>

static const struct {
  LazyOp op;
  const char *name;
} activations[] = {
#define LAYER(name, make, min, max)
#define PLAIN_LAYER(name, sizes)
#define ACTIVATION(name) {LOP_##name, #name},
#include "lang/syntax/layers.def"
#undef LAYER
#undef PLAIN_LAYER
#undef ACTIVATION
};

void model_reserve(Eval *ev, LangObject *m, u32 most) {
  m->part = NEWS(&ev->c->keep, LangObject *, most + 1);
}

void model_add(LangObject *m, LangObject *part) {
  m->part[m->npart++] = part;
}

static LazyTensor *init_weight(Eval *ev, const LangObject *part, u32 k) {
  const LazyTensor *w = part->weight[k];
  LazyTensor *t;
  if (w->rank < 2) {
    t = lazy_new(ev, w->dim, w->rank);
    memcpy(t->data, w->data, (size_t)w->n * sizeof *w->data);
  } else {
    u64 outputs = (u64)(part->what == OBJ_conv2d ? w->dim[0] : w->dim[1]);
    t = random_tensor(ev, w->dim, w->rank);
    for (u64 i = 0; i < t->n; i++) t->data[i] *= sqrt(2.0 * (double)outputs / (double)t->n);
  }
  t->tracked = true;
  return t;
}

static void set_training(LangObject *m, bool on) {
  m->num[OBJECT_TRAINS] = on;
  for (u32 i = 0; i < m->npart; i++) m->part[i]->num[OBJECT_TRAINS] = on;
}

LangValue model_instantiate(Eval *ev, const LangObject *class) {
  LangObject *m = object_new(ev, OBJ_model);
  m->name = class->name;
  model_reserve(ev, m, class->npart);
  for (u32 i = 0; i < class->npart; i++) {
    const LangObject *from = class->part[i];
    LangObject *part = object_new(ev, from->what);
    memcpy(part->num, from->num, sizeof part->num);
    for (u32 k = 0; k < from->nweight; k++)
      part->weight[part->nweight++] = init_weight(ev, from, k);
    if (part->what == OBJ_batchnorm) {
      const i64 features = (i64)part->num[0];
      part->stat[0] = lazy_new(ev, &features, 1);
      part->stat[1] = lazy_new(ev, &features, 1);
      for (i64 k = 0; k < features; k++) part->stat[1]->data[k] = 1;
    }
    model_add(m, part);
  }
  set_training(m, true);
  return value_object(m);
}

static LazyTensor *flat(Eval *ev, LazyTensor *x) {
  const i64 dim[2] = {x->rank ? x->dim[0] : 1,
                      x->rank ? size_product(ev, x->dim + 1, x->rank - 1) : 1};
  return lazy_make(ev, LOP_reshape, &x, 1, NULL, 0, dim, 2);
}

static LazyTensor *activate(Eval *ev, const LangObject *part, LazyTensor *x) {
  const double last = 0;
  return lazy_map(ev, activations[(u32)part->num[0]].op, x, &last, 1);
}

/* Drops random elements, different ones in each call. */
static LazyTensor *apply_dropout(Eval *ev, const LangObject *part, LazyTensor *x) {
  LazyTensor *mask = random_tensor_uniform(ev, x->dim, x->rank);
  double p = part->num[0];
  for (u64 i = 0; i < mask->n; i++) mask->data[i] = mask->data[i] < p ? 0 : 1 / (1 - p);
  LazyTensor *y = tensor_broadcast_op(ev, LOP_mul, x, mask, "dropout");
  lazy_drop(ev, mask);
  return y;
}

/* Updates the running mean and variance with momentum 0.1. No gradient flows through them. */
static void update_running_stats(Eval *ev, LangObject *part, LazyTensor *x) {
  static const LazyOp op[2] = {LOP_channel_mean, LOP_channel_variance};
  const double old = 0.9, new = 0.1;
  for (u32 i = 0; i < 2; i++) {
    LazyTensor *k = lazy_scalar(ev, old), *l = lazy_scalar(ev, new), *stat = part->stat[i];
    LazyTensor *seen = lazy_make(ev, op[i], &x, 1, NULL, 0, &x->dim[1], 1);
    seen->tracked = false;
    LazyTensor *a = tensor_broadcast_op(ev, LOP_mul, stat, k, "batchnorm");
    LazyTensor *b = tensor_broadcast_op(ev, LOP_mul, seen, l, "batchnorm");
    part->stat[i] = tensor_broadcast_op(ev, LOP_add, a, b, "batchnorm");
    LazyTensor *done[] = {k, l, stat, seen, a, b};
    for (u32 j = 0; j < sizeof done / sizeof *done; j++) lazy_drop(ev, done[j]);
  }
}

/* Refuses layers in training mode in a model that is compiled. */
static void refuse_training(Eval *ev, const LangObject *part) {
  StrBuf t = sb_new(&ev->c->keep);
  object_show(ev, part, &t);
  ARG_BAD(ev,
          "%s is being trained: eval() of the model comes before a function with it is compiled",
          sb_cstr(&t));
}

LazyTensor *model_forward(Eval *ev, LangObject *m, LazyTensor *x) {
  lazy_retain(x);
  for (u32 i = 0; i < m->npart; i++) {
    LangObject *part = m->part[i];
    LazyTensor *y;
    bool trains = m->num[OBJECT_TRAINS] != 0;
    if (ev->tracing && trains && (part->what == OBJ_dropout || part->what == OBJ_batchnorm))
      refuse_training(ev, part);
    if (part->what == OBJ_activation)
      y = activate(ev, part, x);
    else if (part->what == OBJ_flatten)
      y = flat(ev, x);
    else if (part->what == OBJ_dropout)
      y = trains ? apply_dropout(ev, part, x) : lazy_retain(x);
    else
      y = layer_forward(ev, part, x);
    if (trains && part->what == OBJ_batchnorm) update_running_stats(ev, part, x);
    lazy_drop(ev, x);
    x = y;
  }
  return x;
}

static u32 count_weights(const LangObject *m) {
  u32 n = 0;
  for (u32 i = 0; i < m->npart; i++) n += m->part[i]->nweight;
  return n;
}

static LangValue parameters(Eval *ev, const LangObject *m) {
  LangValue out = value_list(ev, KD_array, count_weights(m));
  u32 n = 0;
  for (u32 i = 0; i < m->npart; i++)
    for (u32 k = 0; k < m->part[i]->nweight; k++)
      out.u.list->at[n++] = value_tensor(lazy_retain(m->part[i]->weight[k]));
  return out;
}

static void set_parameters(Eval *ev, LangObject *m, const ListObj *l) {
  u32 n = 0;
  if (l->n != count_weights(m))
    ARG_BAD(ev, "got %llu tensors for a model with %u parameters", (unsigned long long)l->n,
            count_weights(m));
  for (u32 i = 0; i < m->npart; i++)
    for (u32 k = 0; k < m->part[i]->nweight; k++, n++) {
      LazyTensor *old = m->part[i]->weight[k], *new = arg_tensor(ev, &l->at[n]);
      if (new->rank != old->rank || memcmp(new->dim, old->dim, old->rank * sizeof *old->dim))
        ARG_BAD(ev, "parameter %u has shape %s, got %s", n, dims_text(ev, old->dim, old->rank),
                dims_text(ev, new->dim, new->rank));
      m->part[i]->weight[k] = lazy_retain(new);
      lazy_drop(ev, old);
    }
}

/* parameters - lr * gradients */
static void update(Eval *ev, LangObject *m, const ListObj *grads, const LangValue *lr) {
  LangValue old = parameters(ev, m);
  if (grads->n != old.u.list->n)
    ARG_BAD(ev, "%llu gradients for a model that has %u parameters", (unsigned long long)grads->n,
            count_weights(m));
  for (u64 i = 0; i < grads->n; i++) {
    LangValue arg[3] = {old.u.list->at[i], grads->at[i], *lr}, new;
    bi_tensor_update_inplace(ev, arg, 3, &new);
    value_drop(ev, &old.u.list->at[i]);
    old.u.list->at[i] = new;
  }
  set_parameters(ev, m, old.u.list);
  value_drop(ev, &old);
}

/* Replaces the parameters of the model by the result of an optimizer step. */
static void step(Eval *ev, LangObject *m, LangObject *opt) {
  LangValue old = parameters(ev, m), new;
  LazyTensors seen = {0};
  for (u32 i = 0; i < m->npart; i++)
    for (u32 k = 0; k < 2 && m->part[i]->stat[k]; k++)
      *vec_push(&ev->stack, &seen) = m->part[i]->stat[k];
  optim_step(ev, opt, old.u.list, &seen, &new);
  set_parameters(ev, m, new.u.list);
  value_drop(ev, &old);
  value_drop(ev, &new);
}

void do_forward(Eval *ev, LangObject *m, LangValue *arg, LangValue *out) {
  *out = value_tensor(model_forward(ev, m, arg_tensor(ev, &arg[0])));
}

void do_parameters(Eval *ev, LangObject *m, LangValue *arg, LangValue *out) {
  *out = parameters(ev, m);
  (void)arg;
}

void do_set_parameters(Eval *ev, LangObject *m, LangValue *arg, LangValue *out) {
  set_parameters(ev, m, arg_array(ev, &arg[0]));
  (void)out;
}

void do_update(Eval *ev, LangObject *m, LangValue *arg, LangValue *out) {
  update(ev, m, arg_array(ev, &arg[0]), &arg[1]);
  (void)out;
}

void do_step(Eval *ev, LangObject *m, LangValue *arg, LangValue *out) {
  step(ev, m, arg_object(ev, &arg[0], "an optimizer"));
  (void)out;
}

void do_train(Eval *ev, LangObject *m, LangValue *arg, LangValue *out) {
  set_training(m, true);
  (void)ev, (void)arg, (void)out;
}

void do_eval(Eval *ev, LangObject *m, LangValue *arg, LangValue *out) {
  set_training(m, false);
  (void)ev, (void)arg, (void)out;
}

bool model_method(Eval *ev, LangObject *m, const char *name, LangValue *arg, u32 n,
                  LangValue *out) {
  static const struct {
    const char *name;
    u32 n;
    void (*fn)(Eval *ev, LangObject *m, LangValue *arg, LangValue *out);
  } methods[] = {
#define METHOD(name, n, result, fn) {#name, n, do_##fn},
#include "lang/syntax/methods.def"
#undef METHOD
  };
  for (u32 i = 0; i < sizeof methods / sizeof *methods; i++) {
    if (methods[i].n != n || strcmp(methods[i].name, name)) continue;
    methods[i].fn(ev, m, arg, out);
    return true;
  }
  return false;
}

void model_show(Eval *ev, const LangObject *m, StrBuf *out) {
  sb_fmt(out, "%s(", m->name);
  for (u32 i = 0; i < m->npart; i++) {
    if (i) sb_puts(out, ", ");
    if (m->part[i]->what == OBJ_activation)
      sb_puts(out, activations[(u32)m->part[i]->num[0]].name);
    else
      object_show(ev, m->part[i], out);
  }
  sb_puts(out, ")");
}
