/* lazy.c: tensors as values.
 *
 * In: shapes, data, operations. Out: heap objects. A lazy operation holds references to its
 * operands. Once computed it drops them, unless gradients flow through it, so loops do not
 * accumulate history. Only chains of pending operations grow; they are computed at LAZY_SIZE
 * operations.
 */
#include "lang/run/tensor.h"

#include <string.h>

double *lazy_alloc(Eval *ev, u64 n) {
  size_t bytes = (size_t)(n ? n : 1) * sizeof(double);
  double *p = ev->c->alloc.resize(ev->c->alloc.user, NULL, 0, bytes);
  if (!p) fail(ev->c, ERR_system, LOC_NONE, "out of memory");
  memset(p, 0, bytes);
  return p;
}

static void data_free(Eval *ev, LazyTensor *t) {
  if (!t->data) return;
  ev->c->alloc.resize(ev->c->alloc.user, t->data, (size_t)(t->n ? t->n : 1) * sizeof(double), 0);
  t->data = NULL;
}

static void inputs_free(Eval *ev, LazyTensor *t) {
  if (!t->in) return;
  ev->c->alloc.resize(ev->c->alloc.user, t->in, t->nin * sizeof *t->in, 0);
  t->in = NULL;
  t->nin = 0;
}

/* Strides are bounded, too: an extent of 0 counts as 1. */
u64 dims_count(Eval *ev, const i64 *dim, u32 rank) {
  u64 n = 1;
  bool empty = false, open = false;
  for (u32 i = 0; i < rank; i++) {
    if (size_is_symbolic(ev, dim[i])) {
      open = true;
      continue;
    }
    if (dim[i] < 0)
      ARG_BAD(ev, "%s(): an extent is negative: %s", builtin_name(ev), dims_text(ev, dim, rank));
    empty |= !dim[i];
    if (dim[i] && (!size_mul(n, (u64)dim[i], &n) || n > MOST_ELEMENTS))
      ARG_BAD(ev, "%s(): a tensor of shape %s has too many elements", builtin_name(ev),
              dims_text(ev, dim, rank));
  }
  return open ? UNKNOWN_COUNT : empty ? 0 : n;
}

static LazyTensor *blank(Eval *ev, const i64 *dim, u32 rank) {
  if (rank > MAX_RANK)
    ARG_BAD(ev, "%s(): a tensor has at most %d dimensions", builtin_name(ev), MAX_RANK);
  u64 n = dims_count(ev, dim, rank);
  LazyTensor *t = heap_new(ev, KD_tensor, sizeof *t);
  t->rank = rank;
  t->n = n;
  if (rank) memcpy(t->dim, dim, rank * sizeof *dim);
  t->serial = ev->serial++;
  return t;
}

LazyTensor *lazy_new(Eval *ev, const i64 *dim, u32 rank) {
  LazyTensor *t = blank(ev, dim, rank);
  if (t->n == UNKNOWN_COUNT) dry_refuse(ev, ev->at, "what a tensor holds");
  t->data = lazy_alloc(ev, t->n);
  return t;
}

LazyTensor *lazy_placeholder(Eval *ev, const i64 *dim, u32 rank) {
  return blank(ev, dim, rank);
}

LazyTensor *lazy_scalar(Eval *ev, double x) {
  LazyTensor *t = lazy_new(ev, NULL, 0);
  t->data[0] = x;
  return t;
}

LazyTensor *lazy_make(Eval *ev, LazyOp op, LazyTensor *const *in, u32 nin, const double *attr,
                      u32 nattr, const i64 *dim, u32 rank) {
  LazyTensor *t = blank(ev, dim, rank);
  t->in = ev->c->alloc.resize(ev->c->alloc.user, NULL, 0, nin * sizeof *t->in);
  if (!t->in) fail(ev->c, ERR_system, LOC_NONE, "out of memory");
  t->op = op;
  t->nin = nin;
  t->nattr = (u8)nattr;
  t->size = 1;
  for (u32 i = 0; i < nattr; i++) {
    LangValue d = value_float(t->attr[i] = attr[i]);
    if (ev->dry && value_is_unknown(ev, &d))
      dry_refuse(ev, ev->at, "a number that is part of a graph");
  }
  for (u32 i = 0; i < nin; i++) {
    t->in[i] = lazy_retain(in[i]);
    t->tracked |= in[i]->tracked && op != LOP_grad;
    t->size += in[i]->data ? 0 : in[i]->size;
  }
  if (t->size > LAZY_SIZE && !ev->tracing) lazy_force(ev, &t, 1);
  return t;
}

LazyTensor *lazy_map(Eval *ev, LazyOp op, LazyTensor *x, const double *attr, u32 nattr) {
  return lazy_make(ev, op, &x, 1, attr, nattr, x->dim, x->rank);
}

LangValue lazy_to_array(Eval *ev, LazyTensor *t) {
  const double *x = lazy_data(ev, t);
  LangValue out = value_list(ev, KD_array, t->n);
  for (u64 i = 0; i < t->n; i++) out.u.list->at[i] = value_float(x[i]);
  return out;
}

LazyTensor *lazy_detach(Eval *ev, LazyTensor *t) {
  const double *from = lazy_data(ev, t);
  LazyTensor *leaf = lazy_new(ev, t->dim, t->rank);
  memcpy(leaf->data, from, (size_t)t->n * sizeof *from);
  return leaf;
}

AutogradMeta *lazy_autograd(Eval *ev, LazyTensor *t) {
  if (!t->id) {
    t->id = heap_new(ev, KD_none, sizeof *t->id);
    t->id->line = ev->serial++;
  }
  return t->id;
}

void lazy_drop_inputs(Eval *ev, LazyTensor *t) {
  for (u32 i = 0; i < t->nin; i++) lazy_drop(ev, t->in[i]);
  inputs_free(ev, t);
  t->op = LOP_leaf;
}

/* Iterative: chains of operations may be too long for recursion. */
void lazy_release(Eval *ev, LazyTensor *t) {
  LazyTensor *chain = NULL, *x = t;
  for (;;) {
    for (u32 i = 0; i < x->nin; i++) {
      LazyTensor *y = x->in[i];
      if (y->box.refs > 1) {
        y->box.refs--;
        continue;
      }
      /* waits in the chain; freed after its operands */
      y->serial = (u64)(uintptr_t)chain;
      chain = y;
    }
    inputs_free(ev, x);
    data_free(ev, x);
    if (x->id) heap_drop(ev, &x->id->box);
    x->id = NULL;
    if (x != t) heap_drop(ev, &x->box); /* already emptied */
    if (!chain) return;
    x = chain;
    chain = (LazyTensor *)(uintptr_t)x->serial;
  }
}

void lazy_free_data(Eval *ev, LazyTensor *t) {
  data_free(ev, t);
  inputs_free(ev, t);
}

void autograd_release(Eval *ev, AutogradMeta *id) {
  if (id->grad) lazy_drop(ev, id->grad);
  id->grad = NULL;
}

LazyTensor *lazy_retain(LazyTensor *t) {
  t->box.refs++;
  return t;
}

void lazy_drop(Eval *ev, LazyTensor *t) {
  if (t) heap_drop(ev, &t->box);
}

LangValue value_tensor(LazyTensor *t) {
  return (LangValue){KD_tensor, .u = {.lazy = t}};
}

bool lazy_equal(Eval *ev, LazyTensor *x, LazyTensor *y) {
  if (x->rank != y->rank || memcmp(x->dim, y->dim, x->rank * sizeof *x->dim)) return false;
  const double *p = lazy_data(ev, x), *q = lazy_data(ev, y);
  for (u64 i = 0; i < x->n; i++)
    if (p[i] != q[i]) return false;
  return true;
}

/* ---- shapes and text ---- */

const char *dims_text(Eval *ev, const i64 *dim, u32 rank) {
  StrBuf t = sb_new(&ev->c->keep);
  sb_puts(&t, "[");
  for (u32 i = 0; i < rank; i++) {
    sb_puts(&t, i ? ", " : "");
    size_show(ev, dim[i], &t);
  }
  sb_puts(&t, "]");
  return sb_cstr(&t);
}

static void put_dims(const LazyTensor *t, StrBuf *out) {
  sb_puts(out, "[");
  for (u32 i = 0; i < t->rank; i++) sb_fmt(out, "%s%lld", i ? ", " : "", (long long)t->dim[i]);
  sb_puts(out, "]");
}

static void put_data(const double *x, u64 n, bool exponent, StrBuf *out) {
  sb_puts(out, "[");
  for (u64 i = 0; i < n; i++) {
    if (i) sb_puts(out, ", ");
    show_float(out, x[i], exponent);
  }
  sb_puts(out, "]");
}

void lazy_show(Eval *ev, LazyTensor *t, StrBuf *out) {
  const double *x = lazy_data(ev, t);
  if (t->raw) {
    sb_puts(out, "Tensor(");
    put_dims(t, out);
    sb_puts(out, ", ");
    put_data(x, t->n, false, out);
  } else {
    sb_puts(out, "AutogradTensor(");
    put_data(x, t->n, true, out);
    sb_puts(out, ", shape=");
    put_dims(t, out);
  }
  sb_puts(out, ")");
}

void lazy_show_plain(Eval *ev, LazyTensor *t, StrBuf *out) {
  const double *x = lazy_data(ev, t);
  sb_puts(out, "Tensor(shape: ");
  put_dims(t, out);
  sb_puts(out, ", data: ");
  put_data(x, t->n, true, out);
  sb_puts(out, ")");
}

/* ---- nested arrays ---- */

static u64 fill(Eval *ev, const LangValue *d, const i64 *dim, u32 rank, double *to) {
  if (!rank) {
    *to = arg_number(ev, d);
    return 1;
  }
  if (d->kind != KD_array || (i64)d->u.list->n != dim[0])
    ARG_BAD(ev, "the rows of an array that becomes a tensor have different lengths");
  u64 n = 0;
  for (u64 i = 0; i < d->u.list->n; i++)
    n += fill(ev, &d->u.list->at[i], dim + 1, rank - 1, to + n);
  return n;
}

/* True if gradients flow through an element of the nested array. */
static bool is_tracked(const LangValue *d) {
  if (d->kind == KD_tensor) return d->u.lazy->tracked;
  if (d->kind != KD_array) return false;
  for (u64 i = 0; i < d->u.list->n; i++)
    if (is_tracked(&d->u.list->at[i])) return true;
  return false;
}

/* Collects all elements, each as a tensor of shape [1]. */
static void gather(Eval *ev, const LangValue *d, const i64 *dim, u32 rank, LazyTensors *to) {
  const i64 one = 1;
  if (rank) {
    if (d->kind != KD_array || (i64)d->u.list->n != dim[0])
      ARG_BAD(ev, "the rows of an array that becomes a tensor have different lengths");
    for (u64 i = 0; i < d->u.list->n; i++) gather(ev, &d->u.list->at[i], dim + 1, rank - 1, to);
    return;
  }
  if (d->kind == KD_tensor && d->u.lazy->n != 1) arg_number(ev, d); /* fails */
  LazyTensor *t = tensor_of(ev, d);
  *vec_push(&ev->stack, to) = lazy_make(ev, LOP_reshape, &t, 1, NULL, 0, &one, 1);
  lazy_drop(ev, t);
}

static LazyTensor *joined(Eval *ev, const LangValue *array, const i64 *dim, u32 rank) {
  Mark mark = arena_mark(&ev->stack);
  LazyTensors part = {0};
  const double axis = 0;
  gather(ev, array, dim, rank, &part);
  const i64 all = part.n;
  LazyTensor *flat = lazy_make(ev, LOP_concat, part.at, part.n, &axis, 1, &all, 1);
  LazyTensor *t = lazy_make(ev, LOP_reshape, &flat, 1, NULL, 0, dim, rank);
  for (u32 i = 0; i < part.n; i++) lazy_drop(ev, part.at[i]);
  lazy_drop(ev, flat);
  arena_rewind(&ev->stack, mark);
  return t;
}

LazyTensor *lazy_from_array(Eval *ev, const LangValue *array) {
  i64 dim[MAX_RANK];
  u32 rank = 0;
  for (const LangValue *d = array; d->kind == KD_array; d = &d->u.list->at[0]) {
    if (rank == MAX_RANK) ARG_BAD(ev, "a tensor has at most %d dimensions", MAX_RANK);
    dim[rank++] = (i64)d->u.list->n;
    if (!d->u.list->n) break;
  }
  if (is_tracked(array)) return joined(ev, array, dim, rank);
  LazyTensor *t = lazy_new(ev, dim, rank);
  fill(ev, array, dim, rank, t->data);
  return t;
}
