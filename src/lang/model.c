/* model.c: models, which are layers in a row, and networks from files.
 *
 * `model NAME { layers { ... } }` makes a class: layers with sizes. A call makes an object of it
 * with weights of its own: normal numbers times the root of 2 / inputs (He), from a seed that the
 * number of the object decides; offsets are 0, gains 1. `import "FILE" as NAME` makes an object
 * that is called with tensors and gives those that the network makes of them.
 */
#include "lang/thing.h"

#include <math.h>
#include <string.h>

/* ---- classes ---- */

static const TensorOp activation_op[] = {
#define LAYER(name, make, least, most)
#define PLAIN_LAYER(name, sizes)
#define ACTIVATION(name) RC_DO_##name,
#include "front/lang/layers.def"
#undef LAYER
#undef PLAIN_LAYER
#undef ACTIVATION
};

static void add_part(Eval *ev, Thing *m, Thing *part) {
  enum { STEP = 16 };
  if (m->npart % STEP == 0) {
    Thing **more = NEWS(&ev->c->keep, Thing *, m->npart + STEP);
    if (m->npart) memcpy(more, m->part, m->npart * sizeof *more);
    m->part = more;
  }
  m->part[m->npart++] = part;
}

/* The checker has looked at names and numbers of layers. */
static void add_activation(Eval *ev, Thing *m, const Ast *n) {
  Thing *t = thing_new(ev, TH_activation);
  u32 i = 0;
  while (i + 1 < activation_count && !str_is(ev->c, n->name, activation_name[i])) i++;
  t->num[0] = i;
  add_part(ev, m, t);
}

/* A layer with its sizes; what is given by name comes behind them: activation. */
static void add_layer(Eval *ev, Thing *m, Ast *n) {
  enum { SIZES = 8 };
  Worth arg[SIZES], out;
  u32 count = 0, row = 0;
  while (row + 1 < layer_count && !str_is(ev->c, n->a->name, layer_info[row].name)) row++;
  const LayerInfo *l = &layer_info[row];
  while (count < n->nkid && n->kid[count]->kind != AST_named) count++;
  if (l->make) {
    for (u32 i = 0; i < count; i++) arg[i] = eval_node(ev, n->kid[i]);
    ev->at = n;
    builtin_fn[builtin_find(l->make)](ev, arg, count, &out);
    for (u32 i = 0; i < count; i++) worth_drop(ev, &arg[i]);
    add_part(ev, m, out.u.thing);
  } else if (count) {
    add_activation(ev, m, n->kid[0]);
  } else {
    add_part(ev, m, thing_new(ev, TH_flatten));
  }
  if (n->nkid > count) add_activation(ev, m, n->kid[count]->a);
}

Worth model_class(Eval *ev, const Ast *n) {
  Thing *m = thing_new(ev, TH_class);
  m->ast = n;
  for (u32 i = 0; i < n->nkid; i++) add_layer(ev, m, n->kid[i]);
  return worth_thing(m);
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

Worth model_object(Eval *ev, const Thing *class) {
  Thing *m = thing_new(ev, TH_model);
  m->ast = class->ast;
  for (u32 i = 0; i < class->npart; i++) {
    const Thing *from = class->part[i];
    Thing *part = thing_new(ev, from->what);
    memcpy(part->num, from->num, sizeof part->num);
    for (u32 k = 0; k < from->nweight; k++) part->weight[part->nweight++] = fresh(ev, from, k);
    add_part(ev, m, part);
  }
  return worth_thing(m);
}

static Lazy *flat(Eval *ev, Lazy *x) {
  const i64 dim[2] = {x->rank ? x->dim[0] : 1,
                      x->rank && x->dim[0] ? (i64)x->n / x->dim[0] : (i64)x->n};
  return lazy_make(ev, RC_DO_reshape, &x, 1, NULL, 0, dim, 2);
}

static Lazy *activate(Eval *ev, const Thing *part, Lazy *x) {
  const double last = 0;
  return lazy_make(ev, activation_op[(u32)part->num[0]], &x, 1, &last, 1, x->dim, x->rank);
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

Lazy *model_forward(Eval *ev, Thing *m, Lazy *x) {
  lazy_share(x);
  for (u32 i = 0; i < m->npart; i++) {
    Thing *part = m->part[i];
    Lazy *y;
    if (part->what == TH_activation)
      y = activate(ev, part, x);
    else if (part->what == TH_flatten)
      y = flat(ev, x);
    else if (part->what == TH_dropout)
      y = m->num[0] == 1 ? lazy_share(x) : drop(ev, part, x);
    else
      y = layer_forward(ev, part, x);
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
  optim_step(ev, opt, old.u.list, &new);
  set_parameters(ev, m, new.u.list);
  worth_drop(ev, &old);
  worth_drop(ev, &new);
}

bool model_method(Eval *ev, Thing *m, const char *name, Worth *arg, u32 n, Worth *out) {
  if (n == 1 && !strcmp(name, "forward"))
    *out = worth_lazy(model_forward(ev, m, arg_tensor(ev, &arg[0])));
  else if (n == 0 && !strcmp(name, "parameters"))
    *out = parameters(ev, m);
  else if (n == 1 && !strcmp(name, "set_parameters"))
    set_parameters(ev, m, arg_array(ev, &arg[0]));
  else if (n == 2 && (!strcmp(name, "update_parameters") || !strcmp(name, "update")))
    update(ev, m, arg_array(ev, &arg[0]), &arg[1]);
  else if (n == 1 && !strcmp(name, "step"))
    step(ev, m, arg_thing(ev, &arg[0], "an optimiser"));
  else if (n == 0 && (!strcmp(name, "train") || !strcmp(name, "eval")))
    m->num[0] = !strcmp(name, "eval");
  else
    return false;
  return true;
}

void model_show(Eval *ev, const Thing *m, Text *out) {
  text_fmt(out, "%s(", str_text(ev->c, m->ast->name));
  for (u32 i = 0; i < m->npart; i++) {
    if (i) text_puts(out, ", ");
    if (m->part[i]->what == TH_activation)
      text_puts(out, activation_name[(u32)m->part[i]->num[0]]);
    else
      thing_show(ev, m->part[i], out);
  }
  text_puts(out, ")");
}
