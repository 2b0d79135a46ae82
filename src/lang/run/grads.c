/* grads.c: gradients.
 *
 * tensor_backward records, for every leaf that the loss depends on and that wants a gradient, a
 * lazy gradient operation, accumulated to its previous gradient. The optimizer or the first reader
 * computes all gradients and the loss in one program. Pending gradients are computed at the next
 * tensor_backward, so that chains do not grow.
 */
#include "lang/run/lang_object.h"

#include <string.h>

void bi_tensor_requires_grad(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *t = arg_tensor(ev, &arg[0]);
  bool flag = value_is_true(&arg[1]);
  (void)n;
  if (t->tracked == flag) {
    *out = value_retain(&arg[0]);
    return;
  }
  LazyTensor *leaf = lazy_detach(ev, t);
  leaf->tracked = flag;
  leaf->id = lazy_autograd(ev, t); /* copies share their gradient */
  leaf->id->box.refs++;
  *out = value_tensor(leaf);
}

/* ---- backward ---- */

/* Collects the leaves that want gradients. */
static void find_leaves(Eval *ev, LazyTensor *loss, LazyTensors *to) {
  LazyTensors todo = {0};
  u32 mark = lazy_mark(ev);
  *vec_push(&ev->stack, &todo) = loss;
  while (todo.n) {
    LazyTensor *t = todo.at[--todo.n];
    if (t->mark == mark || !t->tracked) continue;
    t->mark = mark;
    if (t->op == LOP_leaf) *vec_push(&ev->stack, to) = t;
    for (u32 i = 0; i < t->nin; i++) *vec_push(&ev->stack, &todo) = t->in[i];
  }
}

static LazyTensor *make_derivative(Eval *ev, LazyTensor *y, LazyTensor *x) {
  LazyTensor *in[2] = {y, x};
  return lazy_make(ev, LOP_grad, in, 2, NULL, 0, x->dim, x->rank);
}

/* Refuses explicit gradients in a function being differentiated: they have no derivative. */
static LazyTensor *derivative(Eval *ev, LazyTensor *y, LazyTensor *x) {
  if (ev->in_grad)
    ARG_BAD(ev, "%s() in a function that is differentiated: grad(f) has derivatives there",
            builtin_name(ev));
  return make_derivative(ev, y, x);
}

static void add_grad(Eval *ev, AutogradMeta *id, LazyTensor *g) {
  LazyTensor *old = id->grad;
  if (old) {
    LazyTensor *both = tensor_broadcast_op(ev, LOP_add, old, g, "gradients");
    lazy_drop(ev, g);
    lazy_drop(ev, old);
    g = both;
  }
  id->grad = g;
}

void grads_pending(Eval *ev, LazyTensors *to) {
  LazyTensors leaves = {0};
  if (!ev->last_loss) return;
  find_leaves(ev, ev->last_loss, &leaves);
  for (u32 i = 0; i < leaves.n; i++)
    if (leaves.at[i]->id && leaves.at[i]->id->grad && !leaves.at[i]->id->grad->data)
      *vec_push(&ev->stack, to) = leaves.at[i]->id->grad;
}

void grads_release_graph(Eval *ev) {
  LazyTensor *loss = ev->last_loss;
  if (!loss) return;
  ev->last_loss = NULL;
  if (loss->data) {
    lazy_drop_inputs(ev, loss);
    loss->tracked = false;
  }
  lazy_drop(ev, loss);
}

/* Computes pending gradients of the previous loss. */
static void force_grads(Eval *ev) {
  LazyTensors grads = {0};
  Mark mark = arena_mark(&ev->stack);
  grads_pending(ev, &grads);
  if (grads.n) lazy_force(ev, grads.at, grads.n);
  arena_rewind(&ev->stack, mark);
}

static void backward(Eval *ev, LazyTensor *loss) {
  LazyTensors leaves = {0};
  force_grads(ev);
  Mark mark = arena_mark(&ev->stack);
  find_leaves(ev, loss, &leaves);
  for (u32 i = 0; i < leaves.n; i++)
    add_grad(ev, lazy_autograd(ev, leaves.at[i]), derivative(ev, loss, leaves.at[i]));
  arena_rewind(&ev->stack, mark);
  LazyTensor *old = ev->last_loss;
  ev->last_loss = lazy_retain(loss);
  lazy_drop(ev, old);
}

void bi_tensor_backward(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  bool number = arg->kind == KD_int || arg->kind == KD_float; /* a sum of untracked values */
  LazyTensor *loss = number ? NULL : arg_tensor(ev, &arg[0]);
  if (number || !loss->tracked)
    ARG_BAD(ev, "tensor_backward(): no gradient goes through this value; tensor_requires_grad(t, "
                "true) marks what it is computed from");
  backward(ev, loss);
  (void)n, (void)out;
}

static LangValue copy_as_raw(Eval *ev, LazyTensor *t) {
  LazyTensor *r = lazy_detach(ev, t);
  r->raw = true;
  return value_tensor(r);
}

void bi_tensor_grad(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *t = arg_tensor(ev, &arg[0]);
  (void)n;
  if (t->id && t->id->grad) {
    force_grads(ev);
    *out = copy_as_raw(ev, t->id->grad);
    return;
  }
  if (!ev->last_loss || !t->tracked || t->op == LOP_leaf)
    ARG_BAD(ev, "tensor_grad(): the tensor has no gradient");
  LazyTensor *g = derivative(ev, ev->last_loss, t);
  *out = copy_as_raw(ev, g);
  lazy_drop(ev, g);
}

static void forget_grad(Eval *ev, LazyTensor *t) {
  if (!t->id || !t->id->grad) return;
  LazyTensor *old = t->id->grad;
  t->id->grad = NULL;
  lazy_drop(ev, old);
}

void bi_tensor_zero_grad(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *t = arg_tensor(ev, &arg[0]);
  if (t->id && t->id->grad) {
    forget_grad(ev, t);
    t->id->grad = lazy_new(ev, t->dim, t->rank);
  }
  *out = value_retain(&arg[0]);
  (void)n;
}

void bi_tensor_set_grad(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *t = arg_tensor(ev, &arg[0]);
  const ListObj *l = arg_array(ev, &arg[1]);
  if (l->n != t->n)
    ARG_BAD(ev, "tensor_set_grad(): %llu numbers for shape %s", (unsigned long long)l->n,
            dims_text(ev, t->dim, t->rank));
  LazyTensor *leaf = lazy_detach(ev, t);
  leaf->tracked = t->tracked;
  LazyTensor *g = lazy_new(ev, t->dim, t->rank);
  for (u64 i = 0; i < l->n; i++) g->data[i] = arg_number(ev, &l->at[i]);
  lazy_autograd(ev, leaf)->grad = g;
  *out = value_tensor(leaf);
  (void)n;
}

void bi_reset_graph(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  force_grads(ev);
  lazy_drop(ev, ev->last_loss);
  ev->last_loss = NULL;
  (void)arg, (void)n, (void)out;
}

/* ---- gradients of functions ---- */

static LazyTensor *leaf_of(Eval *ev, const LangValue *d) {
  LazyTensor *t;
  const i64 one = 1;
  if (d->kind == KD_tensor) {
    t = lazy_detach(ev, d->u.lazy);
  } else if (d->kind == KD_array) {
    LazyTensor *of = lazy_from_array(ev, d);
    t = lazy_detach(ev, of);
    lazy_drop(ev, of);
  } else {
    t = lazy_new(ev, &one, 1);
    t->data[0] = arg_number(ev, d);
  }
  t->tracked = true;
  return t;
}

/* True if y depends on the arguments that enclosing functions are differentiated by. */
static bool depends_on(Eval *ev, LazyTensor *y, const LazyTensor *x) {
  LazyTensors leaves = {0};
  if (!ev->in_grad || x->op != LOP_leaf) return ev->in_grad;
  Mark mark = arena_mark(&ev->stack);
  find_leaves(ev, y, &leaves);
  bool other = leaves.n > 1 || (leaves.n && leaves.at[0] != x);
  arena_rewind(&ev->stack, mark);
  return other;
}

/* Calls f with its first argument as a leaf and returns the derivative, as a number if the argument
 * was one. In a nested gradient the argument becomes a new value (LOP_same) and the result stays a
 * tensor. */
LangValue call_grad(Eval *ev, const Ast *at, ClosureObj *f, LangValue *arg, u32 n) {
  if (!n) eval_fail(ev, at, "a function without arguments has no gradient");
  ev->at = at;
  bool number = arg[0].kind == KD_int || arg[0].kind == KD_float;
  bool nested = ev->in_grad && arg[0].kind == KD_tensor && arg[0].u.lazy->tracked;
  LazyTensor *x = nested ? lazy_map(ev, LOP_same, arg[0].u.lazy, NULL, 0) : leaf_of(ev, &arg[0]);
  value_drop(ev, &arg[0]);
  arg[0] = value_tensor(lazy_retain(x));
  ev->in_grad++;
  LangValue y = call_fn(ev, at, f, arg, n);
  ev->in_grad--;
  ev->at = at;
  if (y.kind != KD_tensor || !y.u.lazy->tracked)
    ARG_BAD(ev, "the function gives %s that does not depend on its argument", value_kind_name(&y));
  LazyTensor *d = make_derivative(ev, y.u.lazy, x);
  d->tracked = depends_on(ev, y.u.lazy, x);
  if (!d->tracked) lazy_data(ev, d);
  value_drop(ev, &y);
  lazy_drop(ev, x);
  LangValue out = value_tensor(d);
  if (number && !d->tracked) {
    out = value_float(d->data[0]);
    lazy_drop(ev, d);
  }
  return out;
}

void bi_grad(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  if (arg->kind != KD_fn) ARG_BAD(ev, "grad() takes a function, got %s", value_kind_name(arg));
  *out = fn_gradient(ev, arg->u.fn);
  (void)n;
}

/* autograd(loss, [w, b]): the gradients that backward would add. */
static LangValue grads_of(Eval *ev, LazyTensor *loss, const ListObj *l) {
  LangValue out = value_list(ev, KD_array, l->n);
  for (u64 i = 0; i < l->n; i++)
    out.u.list->at[i] = value_tensor(derivative(ev, loss, arg_tensor(ev, &l->at[i])));
  Mark mark = arena_mark(&ev->stack);
  LazyTensor **d = arena_array(&ev->stack, l->n + 1, sizeof *d);
  for (u64 i = 0; i < l->n; i++) d[i] = out.u.list->at[i].u.lazy;
  lazy_force(ev, d, (u32)l->n);
  arena_rewind(&ev->stack, mark);
  return out;
}

/* autograd(x): a leaf. autograd(f, x): the gradient of f at x. autograd(loss, [w, ..]). */
void bi_autograd(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LangValue x;
  if (n == 1)
    *out = value_tensor(leaf_of(ev, &arg[0]));
  else if (arg[0].kind == KD_fn)
    *out = (x = value_retain(&arg[1]), call_grad(ev, ev->at, arg[0].u.fn, &x, 1));
  else
    *out = grads_of(ev, arg_tensor(ev, &arg[0]), arg_array(ev, &arg[1]));
}

/* ---- explicit gradients ---- */

/* Gradient with respect to x, given the gradient with respect to y. */
static LangValue vector_jacobian(Eval *ev, LazyTensor *y, LazyTensor *x, LazyTensor *given) {
  LazyTensor *z = tensor_broadcast_op(ev, LOP_mul, y, given, "gradients"),
             *d = derivative(ev, z, x);
  LangValue out = lazy_to_array(ev, d);
  lazy_drop(ev, d);
  lazy_drop(ev, z);
  return out;
}

static LazyTensor *given(Eval *ev, const LangValue *d, const LazyTensor *like) {
  const ListObj *l = arg_array(ev, d);
  if (l->n != like->n)
    ARG_BAD(ev, "%s(): %llu numbers for shape %s", builtin_name(ev), (unsigned long long)l->n,
            dims_text(ev, like->dim, like->rank));
  LazyTensor *t = lazy_new(ev, like->dim, like->rank);
  for (u64 i = 0; i < l->n; i++) t->data[i] = arg_number(ev, &l->at[i]);
  return t;
}

static LazyTensor *tracked(Eval *ev, const LangValue *d) {
  LazyTensor *t = lazy_detach(ev, arg_tensor(ev, d));
  t->tracked = true;
  return t;
}

void bi_autograd_compute_linear_grad(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LangValue in[3], y;
  for (u32 i = 0; i < 3; i++) in[i] = value_tensor(tracked(ev, &arg[i]));
  bi_nn_linear(ev, in, 3, &y);
  LazyTensor *g = given(ev, &arg[3], y.u.lazy);
  *out = value_list(ev, KD_tuple, 3);
  for (u32 i = 0; i < 3; i++) out->u.list->at[i] = vector_jacobian(ev, y.u.lazy, in[i].u.lazy, g);
  for (u32 i = 0; i < 3; i++) value_drop(ev, &in[i]);
  value_drop(ev, &y);
  lazy_drop(ev, g);
  (void)n;
}

void bi_autograd_compute_relu_grad(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *x = tracked(ev, &arg[0]), *g = given(ev, &arg[1], x);
  LazyTensor *y = lazy_map(ev, LOP_relu, x, NULL, 0);
  *out = vector_jacobian(ev, y, x, g);
  lazy_drop(ev, y);
  lazy_drop(ev, g);
  lazy_drop(ev, x);
  (void)n;
}

/* Derivative s (1 - s), from the result s. */
void bi_autograd_compute_sigmoid_grad(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *s = arg_tensor(ev, &arg[0]), *g = given(ev, &arg[1], s);
  const double *x = lazy_data(ev, s);
  *out = value_list(ev, KD_array, s->n);
  for (u64 i = 0; i < s->n; i++) out->u.list->at[i] = value_float(g->data[i] * x[i] * (1 - x[i]));
  lazy_drop(ev, g);
  (void)n;
}

void bi_autograd_compute_mse_grad(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  LazyTensor *p = tracked(ev, &arg[0]), *t = arg_tensor(ev, &arg[1]);
  LangValue in[2] = {value_tensor(p), value_tensor(t)}, y;
  bi_loss_mse(ev, in, 2, &y);
  LazyTensor *d = derivative(ev, y.u.lazy, p);
  *out = lazy_to_array(ev, d);
  lazy_drop(ev, d);
  value_drop(ev, &y);
  lazy_drop(ev, p);
  (void)n;
}
