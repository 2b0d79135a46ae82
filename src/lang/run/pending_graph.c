/* pending_graph.c: the pending operations of a tensor.
 *
 * In: tensors. Out: all pending operations they depend on and the known operands, in creation
 * order, and a byte string that identifies the computation: the key of a program.
 *
 * A gradient needs all operations between its ends, even those already computed. In this case all
 * tracked operations are listed again.
 */
#include "lang/run/pending_graph.h"

#include <stdlib.h>

u32 lazy_mark(Eval *ev) {
  return ++ev->mark;
}

bool pending_is_op(const PendingGraph *k, const LazyTensor *t) {
  if (t->op == LOP_leaf) return false;
  return !t->data || (k->deep && t->tracked);
}

static void collect(PendingGraph *k, Arena *a) {
  VEC(LazyTensor *) todo = {0};
  u32 mark = lazy_mark(k->ev);
  k->all.n = 0;
  for (u32 i = 0; i < k->nout; i++) *vec_push(a, &todo) = k->out[i];
  while (todo.n) {
    LazyTensor *t = todo.at[--todo.n];
    if (t->mark == mark) continue;
    t->mark = mark;
    *vec_push(a, &k->all) = t;
    for (u32 i = 0; pending_is_op(k, t) && i < t->nin; i++) *vec_push(a, &todo) = t->in[i];
  }
}

static int by_serial(const void *x, const void *y) {
  const LazyTensor *p = *(LazyTensor *const *)x, *q = *(LazyTensor *const *)y;
  return p->serial < q->serial ? -1 : p->serial > q->serial;
}

static bool has_grad(const PendingGraph *k) {
  for (u32 i = 0; i < k->all.n; i++)
    if (k->all.at[i]->op == LOP_grad && !k->all.at[i]->data) return true;
  return false;
}

void pending_collect(PendingGraph *k, Arena *a) {
  collect(k, a);
  if (has_grad(k)) {
    k->deep = true;
    collect(k, a);
  }
  qsort(k->all.at, k->all.n, sizeof *k->all.at, by_serial);
  for (u32 i = 0; i < k->all.n; i++) k->all.at[i]->place = i;
}

static void put_u32(StrBuf *t, u64 x) {
  u32 v = (u32)x;
  sb_put(t, &v, sizeof v);
}

StrBuf pending_key(const PendingGraph *k, Arena *a) {
  StrBuf t = sb_new(a);
  for (u32 i = 0; i < k->all.n; i++) {
    const LazyTensor *x = k->all.at[i];
    bool open = pending_is_op(k, x);
    put_u32(&t, open ? x->op : 0);
    put_u32(&t, x->rank);
    for (u32 d = 0; d < x->rank; d++) put_u32(&t, (u64)x->dim[d]);
    if (!open) continue;
    for (u32 j = 0; j < x->nin; j++) put_u32(&t, x->in[j]->place);
    sb_put(&t, x->attr, x->nattr * sizeof *x->attr);
  }
  for (u32 i = 0; i < k->nout; i++) put_u32(&t, k->out[i]->place);
  return t;
}
