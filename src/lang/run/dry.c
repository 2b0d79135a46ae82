/* dry.c: values of a dry run; see dry.h. Control flow is in dry_paths.c. */
#include "lang/run/dry.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

bool value_is_unknown(const Eval *ev, const LangValue *d) {
  if (!ev->dry) return ev->dims && d->open;
  return d->open || (d->kind == KD_float && isnan(d->u.f));
}

_Noreturn void dry_refuse(Eval *ev, const Ast *at, const char *what) {
  StrBuf t = sb_new(&ev->c->keep);
  if (!ev->dry)
    eval_fail(ev, at, "%s depends on a symbolic size: the function cannot become a graph", what);
  sb_fmt(&t, "%s that depends on tensor data is not supported in a compiled program", what);
  fail(ev->c, ERR_unsupported, LOC_NONE, "%s", eval_message(ev, at, sb_cstr(&t)));
}

void dry_clear_data(Eval *ev, LazyTensor *t) {
  if (ev->dry)
    for (u64 i = 0; i < t->n; i++) t->data[i] = NAN;
}

bool dry_load_file(Eval *ev, const char *path, LangValue *out) {
  const LangType *t = ev->dry ? ev->at->to : NULL;
  if (!ev->dry || !access(path, R_OK)) return false;
  bool known = t && t->kind == KD_tensor && t->shaped;
  for (u32 i = 0; known && i < t->rank; i++) known = t->dim[i] >= 0;
  if (!known) {
    StrBuf what = sb_new(&ev->c->keep);
    sb_fmt(&what, "cannot read '%s': %s", show_text(ev->c, str_of(ev->c, path)), strerror(errno));
    fail(
        ev->c, ERR_system, LOC_NONE, "%s",
        script_place(ev->s->all->at[ev->at->file], ev->at->at, sb_cstr(&what),
                     "let x: tensor<float64, [2, 3]> = ... is enough to compile without the file"));
  }
  *out = value_tensor(lazy_new(ev, t->dim, t->rank));
  dry_clear_data(ev, out->u.lazy);
  return true;
}

LangValue value_unknown(Eval *ev, LangKind kind) {
  LangValue d = {.kind = kind};
  if (!ev->dry) dry_refuse(ev, ev->at, "a number");
  if (kind == KD_float) return value_float(NAN);
  if (kind == KD_string) d = value_string(ev, "", 0);
  if (kind == KD_int) d.u.i = 1;
  d.open = UNK_value;
  return d;
}

/* ---- graphs ---- */

typedef struct DryJob {
  PendingGraph *k;
  Ingot *to;
} DryJob;

static void note(Ctx *c, void *arg) {
  DryJob *j = arg;
  j->k->m = j->to;
  pending_build(c, j->k);
}

/* All graphs are entries of one file: the first is the model of the session, the others are in its
 * entries. */
Ingot *dry_add_entry(DryRun *d) {
  Ctx *c = d->m->c;
  Ingot *x = d->m;
  if (d->nentry) {
    x = NEW(&c->keep, Ingot);
    x->c = c;
    x->run.once.c = c;
    *vec_push(&c->keep, &d->m->entries.also) = x;
  }
  x->entries.entry = str_text(c, str_fmt(c, "g%u", d->nentry++));
  return x;
}

static void add(PendingGraph *k, const StrBuf *key) {
  Eval *ev = k->ev;
  DryRun *d = ev->dry;
  Ctx *c = d->m->c;
  Ingot *x = dry_add_entry(d);
  DryJob j = {k, x};
  if (api_call(d->m, note, &j))
    fail(ev->c, ERR_unsupported, LOC_NONE, "%s",
         eval_message(ev, ev->at, d->m->c->diags ? diag_cause(d->m->c->diags) : "out of memory"));
  *vec_push(&c->keep, &d->graph) = x;
  *vec_push(&c->keep, &d->key) = (DryKey){arena_copy(&c->keep, key->at, key->n), key->n};
  *map_put_bytes(&d->by_key, key->at, key->n) = d->graph.n;
  d->idle = 0;
}

void dry_force(PendingGraph *k, const StrBuf *key) {
  Eval *ev = k->ev;
  if (!map_get_bytes(&ev->dry->by_key, key->at, key->n)) add(k, key);
  for (u32 i = 0; i < k->nout; i++) {
    LazyTensor *t = k->out[i];
    if (t->data) continue;
    t->data = lazy_alloc(ev, t->n);
    dry_clear_data(ev, t);
  }
}

static bool is_number(const LangValue *d) {
  return d->kind == KD_int || d->kind == KD_float || d->kind == KD_bool;
}

/* True if any part of the value is unknown. */
static bool holds_open(const Eval *ev, const LangValue *d) {
  if (value_is_unknown(ev, d) || d->kind == KD_tensor) return true;
  if (d->kind != KD_array && d->kind != KD_tuple && d->kind != KD_struct) return false;
  for (u64 i = 0; i < d->u.list->n; i++)
    if (holds_open(ev, &d->u.list->at[i])) return true;
  return false;
}

bool dry_binary(Eval *ev, const Ast *n, const LangValue *x, const LangValue *y, LangValue *out) {
  bool open = value_is_unknown(ev, x) || value_is_unknown(ev, y);
  if (tok_compares(n->op) && (n->op == TOK_eq || n->op == TOK_ne || open)) {
    bool elements =
        x->kind == KD_tensor ? y->kind == KD_array : x->kind == KD_array && y->kind == KD_tensor;
    if (elements || (!holds_open(ev, x) && !holds_open(ev, y))) return false;
    value_equal(ev, x, y); /* forces tensors */
    *out = value_unknown(ev, KD_bool);
    return true;
  }
  if (!open || !is_number(x) || !is_number(y)) return false;
  *out = value_unknown(ev, x->kind == KD_float || y->kind == KD_float ? KD_float : KD_int);
  return true;
}

LangValue dry_cast(Eval *ev, const Ast *n, const LangValue *v, char to) {
  if (ev->dry && is_number(v))
    return value_unknown(ev, to == 'b' ? KD_bool : to == 'f' ? KD_float : KD_int);
  if (to != 'i') dry_refuse(ev, n, "a number");
  return *v;
}

LangValue dry_any_element(Eval *ev, const ListObj *l) {
  LangValue d = {.kind = KD_none};
  for (u64 i = 0; i < l->n; i++) dry_join(ev, &d, &l->at[i]);
  return d;
}

/* An unknown element of an array is the join of all elements. */
bool dry_element(Eval *ev, const Ast *n, const LangValue *v, const LangValue *i, LangValue *out) {
  if (!value_is_unknown(ev, i)) return false;
  if (v->kind == KD_tensor) {
    const LazyTensor *t = v->u.lazy;
    if (t->rank == 1 && !t->tracked) {
      lazy_data(ev, v->u.lazy);
      *out = value_float(NAN);
      return true;
    }
    if (!t->data || t->tracked) dry_refuse(ev, n->b, "an index");
    return false; /* any row will do */
  }
  if (v->kind != KD_array) return false;
  if (!v->u.list->n) dry_refuse(ev, n->b, "an index");
  *out = dry_any_element(ev, v->u.list);
  dry_require_known(ev, n, out);
  if (is_number(out)) {
    LangKind kind = out->kind;
    *out = value_unknown(ev, kind);
  }
  return true;
}

/* The result kind if it is not a tensor. KD_none: the function must be called. */
static LangKind result_kind(const Ast *n, const LangValue *arg) {
  char r = strchr(builtin_info[n->builtin - 1].sig, ':')[1];
  if (r == 'i') return KD_int;
  if (r == 'b') return KD_bool;
  if (r == 's') return KD_string;
  if (n->nkid && arg[0].kind == KD_tensor) return KD_none;
  if (r == 'f' || r == '~') return KD_float;
  if (r != '=' && r != 'N') return KD_none;
  for (u32 i = 0; i < n->nkid; i++)
    if (arg[i].kind != KD_int) return arg[i].kind == KD_tensor ? KD_none : KD_float;
  return KD_int;
}

bool dry_builtin(Eval *ev, const Ast *n, LangValue *arg, LangValue *out) {
  BuiltinFn *f = builtin_fn[n->builtin - 1];
  bool open = false;
  for (u32 i = 0; i < n->nkid; i++) open |= value_is_unknown(ev, &arg[i]);
  if (f == bi_str) {
    StrBuf t = sb_new(&ev->stack);
    if (!holds_open(ev, &arg[0])) return false;
    value_show(ev, &arg[0], &t);
    *out = value_unknown(ev, KD_string);
    return true;
  }
  if (f == bi_tensor_get && arg[1].kind == KD_array && holds_open(ev, &arg[1])) {
    if (ev->in_grad) dry_refuse(ev, n, "an index");
    lazy_data(ev, arg_tensor(ev, &arg[0]));
    *out = value_float(NAN);
    return true;
  }
  if (!open || f == bi_print) return false;
  if (f == bi_assert) return true;
  LangKind kind = result_kind(n, arg);
  if (kind == KD_none) return false;
  *out = value_unknown(ev, kind);
  return true;
}
