/* lang_value.c: memory of values. Also compiled into programs.
 *
 * Heap objects are reference-counted. The evaluator lists them, to free all after a failure.
 * Reference cycles cannot occur: functions capture copies of variables.
 */
#include "lang/run/lang_value.h"
#include "lang/run/tensor.h"

#include <string.h>

void *heap_new(Eval *ev, LangKind kind, size_t bytes) {
  HeapObj *b = ev->c->alloc.resize(ev->c->alloc.user, NULL, 0, bytes);
  if (!b) fail(ev->c, ERR_system, LOC_NONE, "out of memory");
  memset(b, 0, bytes);
  b->refs = 1;
  b->kind = kind;
  b->bytes = bytes;
  heap_link(ev, b);
  return b;
}

/* Drops a reference. Objects that die are put on the list `waiting`, because nested lists may be
 * too deep for recursion. */
static void unchain(Eval *ev, LangValue *d, HeapObj **waiting) {
  if (!value_is_boxed(d)) return;
  HeapObj *b = d->u.box;
  d->kind = KD_none;
  if (--b->refs) return;
  heap_unlink(ev, b);
  b->next = *waiting;
  b->prev = NULL;
  *waiting = b;
}

static void release(Eval *ev, HeapObj *b, HeapObj **waiting) {
  if (b->kind == KD_array || b->kind == KD_tuple || b->kind == KD_struct) {
    ListObj *l = (ListObj *)b;
    for (u64 i = 0; i < l->n; i++) unchain(ev, &l->at[i], waiting);
  } else if (b->kind == KD_fn) {
    ClosureObj *f = (ClosureObj *)b;
    for (u32 i = 0; i < f->n; i++) unchain(ev, &f->with[i], waiting);
    LangValue of = {KD_fn, .u = {.fn = f->grad_of}};
    if (f->grad_of) unchain(ev, &of, waiting);
  } else if (b->kind == KD_tensor) {
    lazy_release(ev, (LazyTensor *)b);
  } else if (b->kind == KD_object) {
    object_release(ev, (LangObject *)b);
  } else if (b->kind == KD_none) {
    autograd_release(ev, (AutogradMeta *)b);
  }
}

void heap_drop(Eval *ev, HeapObj *b) {
  if (!b || --b->refs) return;
  HeapObj *waiting = NULL;
  heap_unlink(ev, b);
  for (HeapObj *x = b; x; x = waiting) {
    if (x != b) waiting = x->next;
    release(ev, x, &waiting);
    ev->c->alloc.resize(ev->c->alloc.user, x, x->bytes, 0);
  }
}

LangValue value_retain(const LangValue *d) {
  if (value_is_boxed(d)) d->u.box->refs++;
  return *d;
}

void value_drop(Eval *ev, LangValue *d) {
  if (value_is_boxed(d)) heap_drop(ev, d->u.box);
  d->kind = KD_none;
}

LangValue value_int(i64 i) {
  return (LangValue){KD_int, .u = {.i = i}};
}

LangValue value_float(double f) {
  return (LangValue){KD_float, .u = {.f = f}};
}

LangValue value_bool(bool b) {
  return (LangValue){KD_bool, .u = {.i = b}};
}

static void too_many(Eval *ev, u64 n) {
  if (n > MOST_ELEMENTS)
    ARG_BAD(ev, "a value of %llu elements: the limit is %llu", (unsigned long long)n,
            (unsigned long long)MOST_ELEMENTS);
}

LangValue value_string(Eval *ev, const char *at, size_t n) {
  too_many(ev, n);
  StringObj *t = heap_new(ev, KD_string, sizeof *t + n + 1);
  t->n = n;
  if (n) memcpy(t->at, at, n);
  return (LangValue){KD_string, .u = {.text = t}};
}

LangValue value_list(Eval *ev, LangKind kind, u64 n) {
  too_many(ev, n);
  ListObj *l = heap_new(ev, kind, sizeof *l + (size_t)n * sizeof *l->at);
  l->n = l->room = n;
  for (u64 i = 0; i < n; i++) l->at[i].kind = KD_null;
  return (LangValue){kind, .u = {.list = l}};
}

ListObj *list_make_unique(Eval *ev, LangValue *d) {
  ListObj *l = d->u.list;
  if (l->box.refs == 1) return l;
  LangValue copy = value_list(ev, d->kind, l->n);
  copy.u.list->of = l->of;
  for (u64 i = 0; i < l->n; i++) copy.u.list->at[i] = value_retain(&l->at[i]);
  value_drop(ev, d);
  *d = copy;
  return d->u.list;
}

void list_push(Eval *ev, LangValue *d, LangValue x) {
  ListObj *l = d->u.list;
  bool own = l->box.refs == 1;
  if (!own || l->n == l->room) { /* grows by half, so that n pushes move O(n) elements */
    too_many(ev, l->n + 1);
    u64 room = l->n + l->n / 2 + 4;
    ListObj *more = heap_new(ev, d->kind, sizeof *more + (size_t)room * sizeof *more->at);
    more->n = l->n;
    more->room = room;
    for (u64 i = 0; i < l->n; i++) more->at[i] = own ? l->at[i] : value_retain(&l->at[i]);
    if (own) l->n = 0; /* its elements have moved */
    d->u.list = more;
    heap_drop(ev, &l->box);
    l = more;
  }
  l->at[l->n++] = x;
}

static bool same_lists(Eval *ev, const ListObj *x, const ListObj *y) {
  if (x == y) return true;
  if (x->n != y->n) return false;
  for (u64 i = 0; i < x->n; i++)
    if (!value_equal(ev, &x->at[i], &y->at[i])) return false;
  return true;
}

bool value_equal(Eval *ev, const LangValue *x, const LangValue *y) {
  if (x->kind == KD_int && y->kind == KD_float) return (double)x->u.i == y->u.f;
  if (x->kind == KD_float && y->kind == KD_int) return x->u.f == (double)y->u.i;
  if (x->kind == KD_tensor && (y->kind == KD_int || y->kind == KD_float))
    return x->u.lazy->n == 1 && lazy_data(ev, x->u.lazy)[0] == arg_number(ev, y);
  if (y->kind == KD_tensor && (x->kind == KD_int || x->kind == KD_float))
    return value_equal(ev, y, x);
  if (x->kind != y->kind) return false;
  switch (x->kind) {
  case KD_null: return true;
  case KD_int:
  case KD_bool: return x->u.i == y->u.i;
  case KD_float: return x->u.f == y->u.f;
  case KD_string:
    return x->u.text->n == y->u.text->n && !memcmp(x->u.text->at, y->u.text->at, x->u.text->n);
  case KD_struct:
  case KD_array:
  case KD_tuple: {
    if (x->kind == KD_struct && !struct_same(x->u.list->of, y->u.list->of)) return false;
    if (ev->depth > EVAL_DEPTH) eval_fail(ev, ev->at, "arrays are nested too deeply to compare");
    ev->depth++;
    bool same = same_lists(ev, x->u.list, y->u.list);
    ev->depth--;
    return same;
  }
  case KD_tensor: return lazy_equal(ev, x->u.lazy, y->u.lazy);
  default: return false; /* functions and objects are never equal */
  }
}

bool value_is_true(const LangValue *d) {
  switch (d->kind) {
  case KD_none:
  case KD_null: return false;
  case KD_int:
  case KD_bool: return d->u.i != 0;
  case KD_float: return d->u.f != 0;
  default: return true;
  }
}

const char *value_kind_name(const LangValue *d) {
  if (d->kind == KD_tensor && d->u.lazy->raw) return "tensor";
  if (d->kind == KD_struct) return d->u.list->of->text;
  if (d->kind == KD_object) return object_kind_name(d->u.thing);
  return kind_name[d->kind];
}

LangValue fn_gradient(Eval *ev, ClosureObj *f) {
  ClosureObj *g = heap_new(ev, KD_fn, sizeof *g);
  g->fn = f->fn;
  g->grad_of = f;
  f->box.refs++;
  return (LangValue){KD_fn, .u = {.fn = g}};
}
