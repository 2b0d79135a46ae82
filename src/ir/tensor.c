/* tensor.c: concrete arrays. The arena owns header, shape and (for tensor_new) data.
 *
 * Data read from a file may be unaligned, so elements go through scalar_load. */
#include "ir/ir.h"

#include <string.h>

bool shape_count(const i64 *dim, u32 rank, u64 *n) {
  u64 prod = 1;
  bool empty = false, over = false;
  for (u32 i = 0; i < rank; i++) {
    if (dim[i] < 0) return false;
    if (dim[i] == 0) empty = true;
    if (dim[i] > DIM_MAX) return false;
    if (!over && (!size_mul(prod, (u64)dim[i], &prod) || prod > (u64)DIM_MAX)) over = true;
  }
  *n = empty ? 0 : prod;
  return empty || !over;
}

static Tensor *mk_tensor(Arena *a, DType dt, const i64 *dim, u32 rank) {
  Tensor *t = NEW(a, Tensor);
  t->dt = dt;
  t->rank = rank;
  t->dim = NEWS(a, i64, rank > 0 ? rank : 1);
  if (rank > 0) memcpy(t->dim, dim, rank * sizeof *dim);
  if (!shape_count(dim, rank, &t->n))
    fail(a->c, ERR_input, LOC_NONE, "size overflow: a tensor has more than 2^40 elements");
  return t;
}

Tensor *tensor_new(Arena *a, DType dt, const i64 *dim, u32 rank) {
  Tensor *t = mk_tensor(a, dt, dim, rank);
  t->data = arena_array(a, t->n > 0 ? t->n : 1, dtype_bytes(dt) > 0 ? dtype_bytes(dt) : 1);
  return t;
}

Tensor *tensor_wrap(Arena *a, DType dt, const i64 *dim, u32 rank, const void *data) {
  Tensor *t = mk_tensor(a, dt, dim, rank);
  t->data = data;
  return t;
}

Scalar tensor_get(const Tensor *t, u64 i) {
  return scalar_load(t->dt, (const u8 *)t->data + i * dtype_bytes(t->dt));
}

void tensor_set(Tensor *t, u64 i, Scalar x) {
  /* tensor_new made this memory writable; the field is const for tensor_wrap */
  u8 *data = (u8 *)(uintptr_t)t->data;
  scalar_store(t->dt, data + i * dtype_bytes(t->dt), x);
}

Tensor *tensor_as(Arena *a, const Tensor *t, DType dt) {
  Tensor *to = tensor_new(a, dt, t->dim, t->rank);
  for (u64 i = 0; i < t->n; i++) tensor_set(to, i, tensor_get(t, i));
  return to;
}

DType tensor_half(const Tensor *t) {
  static const DType types[] = {DT_f16, DT_bf16};
  for (u32 i = 0; i < sizeof types / sizeof *types; i++) {
    u64 k = 0;
    for (; k < t->n; k++) {
      double x = tensor_get(t, k).f;
      if (scalar_round(types[i], x) != x) break; /* also for NaN */
    }
    if (k == t->n) return types[i];
  }
  return t->dt;
}

bool tensor_equal(const Ctx *c, const Tensor *x, const Tensor *y) {
  (void)c; /* strings are interned: equal bytes have the same Str */
  if (x->dt != y->dt || x->rank != y->rank || x->n != y->n) return false;
  for (u32 i = 0; i < x->rank; i++)
    if (x->dim[i] != y->dim[i]) return false;
  return x->n == 0 || memcmp(x->data, y->data, tensor_bytes(x)) == 0;
}

i64 strings_max_len(const Ctx *c, const Tensor *t) {
  i64 max = 1;
  for (u64 i = 0; i < t->n; i++) {
    i64 n = (i64)str_len(c, (Str)tensor_get(t, i).i);
    if (n > max) max = n;
  }
  return max;
}

bool strings_to_bytes(const Ctx *c, const Tensor *t, u8 *rows, i64 k) {
  for (u64 i = 0; i < t->n; i++) {
    Str s = (Str)tensor_get(t, i).i;
    size_t n = str_len(c, s);
    const char *at = str_text(c, s);
    if (n > (size_t)k || (n && !at[n - 1])) return false;
    memcpy(rows + i * (u64)k, at, n);
    memset(rows + i * (u64)k + n, 0, (size_t)k - n);
  }
  return true;
}

void bytes_to_strings(Ctx *c, const Tensor *rows, Tensor *t) {
  i64 k = rows->dim[rows->rank - 1];
  for (u64 i = 0; i < t->n; i++) {
    const u8 *at = (const u8 *)rows->data + i * (u64)k;
    size_t n = (size_t)k;
    while (n && !at[n - 1]) n--;
    tensor_set(t, i, (Scalar){.i = str_intern(c, at, n)});
  }
}
