/* trace.c: compiles a function of a program as a model.
 *
 * In: a program, and the name of a function on tensors with annotated shapes. Extents are numbers
 * or names with values from -d, --shape and --max-shapes (sizes.c). Out: its graph in the session,
 * for every command: C, bytecode, reports. The top-level statements run first, so that trained
 * tensors become weights. Then the function is called once with tensors without data. A function
 * whose control flow depends on data is refused.
 */
#include "lang/run/lang_object.h"

#include <string.h>

static const LangType *tensor_param(const LangFn *f, u32 i) {
  const LangType *t = f->self.item[i];
  bool known = t->kind == KD_tensor && t->shaped;
  for (u32 k = 0; known && k < t->rank; k++) known = t->dim[k] > 0 || (t->name && t->name[k]);
  return known ? t : NULL;
}

static bool is_model(const LangFn *f) {
  for (u32 i = 0; i < f->ast->nkid; i++)
    if (!tensor_param(f, i)) return false;
  return f->ast->nkid > 0;
}

Ast *trace_find_function(Eval *ev, const char *name) {
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
         name ? "%s: unknown function '%s'"
              : "%s: no function takes only tensors with shapes, such as x: tensor<float32, "
                "[batch, 4]>",
         str_text(ev->c, ev->s->file), name);
  if (n > 1 && !name)
    fail(ev->c, ERR_usage, LOC_NONE,
         "%s: several functions can be models; choose one with --function",
         str_text(ev->c, ev->s->file));
  for (u32 i = 0; i < found->nkid; i++)
    if (!tensor_param(found->fn, i))
      eval_fail(ev, found->kid[i],
                "a function that becomes a model takes tensors with shapes, such as "
                "tensor<float32, [batch, 4]>");
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

static u32 results(Eval *ev, const Ast *f, const LangValue *v, LazyTensor ***out) {
  bool one = v->kind == KD_tensor, list = v->kind == KD_array || v->kind == KD_tuple;
  u32 n = one ? 1 : list ? (u32)v->u.list->n : 0;
  *out = NEWS(&ev->c->keep, LazyTensor *, n + 1);
  for (u32 i = 0; i < n; i++) {
    const LangValue *x = one ? v : &v->u.list->at[i];
    if (x->kind != KD_tensor)
      n = 0;
    else
      (*out)[i] = x->u.lazy;
  }
  if (!n)
    eval_fail(ev, f, "a function that becomes a model returns tensors; this one returns %s",
              value_kind_name(v));
  return n;
}

/* ---- open sizes ---- */

static bool is_param(const Ast *f, Str name) {
  for (u32 i = 0; i < f->nkid; i++)
    if (f->kid[i]->name == name) return true;
  return false;
}

/* True if d gives this extent. NAME=N in --max-shapes is a size, unless an input has this name. */
static bool bind_dim_matches(const BindDim *d, const Ast *f, u32 param, u32 axis, Str size) {
  if (d->symbol) return size && d->symbol == size;
  if (d->input == f->kid[param]->name) return d->axis == axis;
  return size && d->input == size && d->rank == 1 && !is_param(f, size);
}

/* The option for a size; a number takes precedence over a bound. NULL: none. */
static const BindDim *find_bind_dim(Ingot *m, const Ast *f, Str size) {
  const BindDim *found = NULL;
  for (u32 i = 0; i < f->nkid; i++) {
    const LangType *t = tensor_param(f->fn, i);
    for (u32 k = 0; k < t->rank; k++)
      for (u32 j = 0; t->name && t->name[k] == size && j < m->options.dim.n; j++) {
        const BindDim *d = &m->options.dim.at[j];
        if (!bind_dim_matches(d, f, i, k, size)) continue;
        if (found && found->bound == d->bound && found->value != d->value)
          fail(m->c, ERR_usage, LOC_NONE,
               "the size '%s' was given as %lld and as %lld, expected one number", show(m->c, size),
               (long long)found->value, (long long)d->value);
        if (!found || (found->bound && !d->bound)) found = d;
      }
  }
  return found;
}

/* A number, or a symbol with a bound. The first axis is a batch: 1 by default. */
static Dim size_of(Eval *ev, Ingot *m, const Ast *f, Str size, u32 axis) {
  Ctx *c = ev->c;
  const BindDim *d = find_bind_dim(m, f, size);
  if (d && !d->bound) return d->value;
  if (!d && axis) {
    fail(c, ERR_usage, LOC_NONE,
         "%s: the size '%s' of the function '%s' is not known; give it with -d %s=N, or a bound "
         "with "
         "--max-shapes %s=N",
         str_text(c, ev->s->file), str_text(c, size), str_text(c, f->name), str_text(c, size),
         str_text(c, size));
  }
  if (!d) {
    warn(c, LOC_NONE, "%s: the size '%s' of the function '%s' is not known, taken as 1",
         str_text(c, ev->s->file), str_text(c, size), str_text(c, f->name));
    return 1;
  }
  if (!ev->dims) ev->dims = dims_new(c);
  return dim_of_sym(ev->dims, dim_sym(ev->dims, SY_input, size, 0, d->value));
}

/* Extents of parameter i. A size name has one value in the function. */
static void extents(Eval *ev, Ingot *m, const Ast *f, u32 i, i64 *dim) {
  const LangType *t = tensor_param(f->fn, i);
  for (u32 k = 0; k < t->rank; k++) {
    dim[k] = t->dim[k];
    for (u32 j = 0; dim[k] > 0 && j < m->options.dim.n; j++) {
      const BindDim *d = &m->options.dim.at[j];
      if (d->symbol || !bind_dim_matches(d, f, i, k, 0)) continue;
      if (!d->bound && d->value != dim[k])
        fail(m->c, ERR_usage, LOC_NONE, "dimension %u of '%s' is %lld, but %lld was given", k,
             str_text(ev->c, f->kid[i]->name), (long long)dim[k], (long long)d->value);
    }
    if (dim[k] < 1) dim[k] = size_of(ev, m, f, t->name[k], k);
  }
}

/* Checks that every option refers to an existing extent. */
static void check_bind_dims(const Ingot *m, const Ast *f) {
  for (u32 j = 0; j < m->options.dim.n; j++) {
    const BindDim *d = &m->options.dim.at[j];
    bool used = false;
    for (u32 i = 0; i < f->nkid; i++) {
      const LangType *t = tensor_param(f->fn, i);
      for (u32 k = 0; k < t->rank; k++)
        used |= bind_dim_matches(d, f, i, k, t->name ? t->name[k] : 0);
    }
    if (!used)
      fail(m->c, ERR_usage, LOC_NONE, "the function '%s' has no size '%s'", str_text(m->c, f->name),
           show(m->c, d->symbol ? d->symbol : d->input));
  }
}

/* Calls the function with tensors without data. m: options for its sizes; NULL: all are numbers. */
static TracedFn traced(Eval *ev, Ingot *m, Ast *f, ClosureObj *fn) {
  LangValue *arg = NEWS(&ev->c->keep, LangValue, f->nkid);
  TracedFn t = {.dt = element(ev, f), .n = f->nkid};
  t.param = NEWS(&ev->c->keep, LazyTensor *, f->nkid);
  t.name = NEWS(&ev->c->keep, const char *, f->nkid);
  for (u32 i = 0; i < f->nkid; i++) {
    const LangType *type = tensor_param(f->fn, i);
    i64 dim[MAX_RANK];
    memcpy(dim, type->dim, type->rank * sizeof *dim);
    if (m) extents(ev, m, f, i, dim);
    t.param[i] = lazy_placeholder(ev, dim, type->rank);
    t.name[i] = str_text(ev->c, f->kid[i]->name);
    arg[i] = value_tensor(lazy_retain(t.param[i]));
  }
  ev->tracing = true;
  LangValue v = call_fn(ev, f, fn, arg, f->nkid);
  t.nout = results(ev, f, &v, &t.out);
  return t;
}

void script_trace(Eval *ev, Ingot *m, Ast *f) {
  check_bind_dims(m, f);
  TracedFn t = traced(ev, m, f, ev->file[0]->at[f->slot].u.fn);
  traced_build_graph(ev, m, &t);
}

bool trace_show(Eval *ev, ClosureObj *fn, StrBuf *out) {
  if (fn->grad_of || !is_model(fn->fn)) return false;
  /* unknown */
  for (u32 i = 0; i < fn->fn->ast->nkid; i++)
    for (u32 k = 0; k < fn->fn->self.item[i]->rank; k++)
      if (fn->fn->self.item[i]->dim[k] < 1) return false;
  TracedFn t = traced(ev, NULL, fn->fn->ast, fn);
  ev->tracing = false;
  traced_show_graph(ev, &t, out);
  return true;
}
