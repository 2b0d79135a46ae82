/* list.c: sequences and optionals at import time, as lists of values or stacks. See list.h. */
#include "front/onnx/list.h"

#include <string.h>

Val list_add(Import *im, List l) {
  List *p = NEW(&im->c->work, List);
  *p = l;
  *vec_push(&im->c->work, &im->lists) = p;
  return VAL_LISTS + im->lists.n - 1;
}

const List *list_at(const Import *im, Val v) {
  return im->lists.at[v - VAL_LISTS];
}

Val list_known(Import *im, TypeKind kind, const Val *at, u32 n) {
  List l = {.kind = kind, .n = n};
  l.at = NEWS(&im->c->work, Val, n + 1);
  if (n) memcpy(l.at, at, n * sizeof *at);
  return list_add(im, l);
}

Val list_stacked(Import *im, Val stack, Val count) {
  return list_add(im, (List){.kind = TY_seq, .stack = stack, .count = count});
}

const List *on_list(Build *b, u32 i) {
  Val v = on_any(b, i);
  if (!val_is_list(v) || list_at(b->im, v)->kind != TY_seq)
    on_bad(b, "input %u is not a sequence, expected one", i);
  if (list_at(b->im, v)->keys)
    on_unsupported(b, "input %u is a sequence of maps, expected one of tensors", i);
  return list_at(b->im, v);
}

bool list_type(Build *b, const List *l, Type *out) {
  if (l->keys) return false;
  if (l->stack) {
    Type t = *on_type(b, l->stack);
    *out = type_tensor(&b->c->work, t.dt, t.dim + 1, t.rank - 1);
    return true;
  }
  for (u32 i = 0; i < l->n; i++) {
    if (!val_is_real(l->at[i])) return false;
    const Type *t = on_type(b, l->at[i]);
    if (t->rank == MAX_RANK) return false;
    if (i && !type_equal(out, t)) return false;
    if (!i) *out = type_tensor(&b->c->work, t->dt, t->dim, t->rank);
  }
  return l->n > 0;
}

bool list_stack(Build *b, const List *l, Val *stack, Val *count) {
  Type t;
  if (!list_type(b, l, &t)) return false;
  *stack = l->stack;
  *count = l->count;
  if (l->stack) return true;
  Val *row = NEWS(&b->c->work, Val, l->n);
  for (u32 i = 0; i < l->n; i++) row[i] = mk_unsqueeze(b->g, l->at[i], 0);
  *stack = mk_concat(b->g, row, l->n, 0);
  *count = mk_scalar(b->g, DT_i64, l->n);
  return true;
}

Dim list_capacity(Build *b, const List *l) {
  return l->stack ? on_dim(b, l->stack, 0) : (Dim)l->n;
}

Val zeros_of(Build *b, const Type *t) {
  Val zero = mk_const(b->g, tensor_new(&b->c->work, t->dt, NULL, 0));
  return mk_full(b->g, zero, t->dim, t->rank);
}

Val stack_fit(Build *b, Val stack, Dim capacity) {
  Type t = *on_type(b, stack);
  Dim have = t.dim[0], dim[MAX_RANK];
  if (have == capacity) return stack;
  bool known = dim_is_const(have) && dim_is_const(capacity);
  if (!known || have > capacity) return mk_slice_axis(b->g, stack, 0, 0, capacity);
  memcpy(dim, t.dim, t.rank * sizeof *dim);
  dim[0] = capacity - have;
  t.dim = dim;
  Val part[2] = {stack, zeros_of(b, &t)};
  return mk_concat(b->g, part, 2, 0);
}
