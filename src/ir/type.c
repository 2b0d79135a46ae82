/* type.c: types of graph values: construction, comparison, text.
 *
 * Dimensions are interned, so shapes are compared by id. */
#include "ir/ir.h"

#include <string.h>

Type type_tensor(Arena *a, DType dt, const Dim *dim, u32 rank) {
  /* dim of a scalar is not NULL, so that it can be passed to memcpy */
  return (Type){TY_tensor, dt, rank, arena_copy(a, dim, rank * sizeof *dim), NULL};
}

bool type_has_shape(const Type *t, const Dim *dim, u32 rank) {
  return t->rank == rank && (!rank || !memcmp(t->dim, dim, rank * sizeof *dim));
}

bool type_equal(const Type *x, const Type *y) {
  for (; x->kind == y->kind && x->kind != TY_tensor; x = x->elem, y = y->elem)
    if (!x->elem || !y->elem) return x->elem == y->elem;
  return x->kind == y->kind && x->dt == y->dt && type_has_shape(x, y->dim, y->rank);
}

bool type_is_nonempty(const Type *t) {
  for (u32 i = 0; i < t->rank; i++)
    if (!dim_is_const(t->dim[i]) || !t->dim[i]) return false;
  return true;
}

bool type_is_static(const Type *t) {
  if (t->kind != TY_tensor) return false;
  for (u32 i = 0; i < t->rank; i++)
    if (!dim_is_const(t->dim[i])) return false;
  return true;
}

Dim type_count(Dims *ds, const Type *t) {
  return dim_product(ds, t->dim, t->rank);
}

const char *index_text(Ctx *c, const Tensor *t, u64 i) {
  StrBuf out = sb_new(&c->scratch);
  u64 below = t->n;
  sb_puts(&out, "[");
  for (u32 d = 0; d < t->rank; d++) {
    below /= (u64)t->dim[d];
    sb_fmt(&out, "%s%llu", d ? "," : "", (unsigned long long)(i / below % (u64)t->dim[d]));
  }
  sb_puts(&out, "]");
  return sb_cstr(&out);
}

const char *shape_text(Ctx *c, const char *dtype, const i64 *dim, u32 rank) {
  StrBuf t = sb_new(&c->scratch);
  sb_fmt(&t, "%s[", dtype);
  for (u32 k = 0; k < rank; k++) {
    sb_puts(&t, k ? "," : "");
    if (dim[k] < 0)
      sb_puts(&t, "?");
    else
      sb_fmt(&t, "%lld", (long long)dim[k]);
  }
  sb_puts(&t, "]");
  return sb_cstr(&t);
}

const char *type_text(const Dims *ds, const Type *t) {
  StrBuf text = sb_new(&dims_ctx(ds)->scratch);
  type_print(ds, t, &text);
  return sb_cstr(&text);
}

void type_print(const Dims *ds, const Type *t, StrBuf *out) {
  u32 open = 0;
  for (; t && t->kind != TY_tensor; t = t->elem, open++)
    sb_puts(out, t->kind == TY_seq ? "seq(" : "opt(");
  if (t) {
    sb_puts(out, dtype_info[t->dt].name);
    sb_puts(out, "[");
    for (u32 i = 0; i < t->rank; i++) {
      if (i > 0) sb_puts(out, ",");
      dim_print(ds, t->dim[i], out);
    }
    sb_puts(out, "]");
  }
  while (open-- > 0) sb_puts(out, ")");
}
