/* check_shape.c: infers shapes of tensors at compile time.
 *
 * In: a call of a built-in function or an operator, with typed operands. Out: the result type, with
 * a shape where literals determine it. Shapes that cannot match are errors. Unknown shapes are
 * checked at run time.
 */
#include "lang/syntax/check.h"

#include <string.h>

static const LangType *shaped(Checker *k, const i64 *dim, u32 rank) {
  LangType *t = NEW(k->a, LangType);
  *t = (LangType){.kind = KD_tensor, .shaped = true, .rank = rank};
  t->dim = arena_copy(k->a, dim, (rank + 1) * sizeof *dim);
  return t;
}

static bool is_known(const LangType *t) {
  if (t->kind != KD_tensor || !t->shaped) return false;
  for (u32 i = 0; i < t->rank; i++)
    if (t->dim[i] < 0) return false;
  return true;
}

/* Reads a literal such as [2, 3]. */
static bool literal(const Ast *n, i64 *dim, u32 *rank) {
  if (!n || n->kind != AST_array || n->nkid >= MAX_RANK) return false;
  for (u32 i = 0; i < n->nkid; i++) {
    if (n->kid[i]->kind != AST_int) return false;
    dim[i] = n->kid[i]->i;
  }
  *rank = n->nkid;
  return true;
}

static const LangType *mismatch(Checker *k, const Ast *n, const char *what, const LangType *x,
                                const LangType *y) {
  const char *first = lang_type_text(k->c, x), *second = lang_type_text(k->c, y);
  check_error(k, n, NULL, "%s: shapes of %s and %s do not fit", what, first, second);
  return &type_tensor_any;
}

const LangType *shape_broadcast(Checker *k, const Ast *n, const char *what, const LangType *x,
                                const LangType *y) {
  i64 dim[MAX_RANK + 1];
  if (x->kind == KD_int || x->kind == KD_float) return y;
  if (y->kind == KD_int || y->kind == KD_float) return x;
  if (!is_known(x) || !is_known(y)) return &type_tensor_any;
  u32 rank = x->rank > y->rank ? x->rank : y->rank;
  for (u32 i = 0; i < rank; i++) {
    i64 p = i < x->rank ? x->dim[x->rank - 1 - i] : 1;
    i64 q = i < y->rank ? y->dim[y->rank - 1 - i] : 1;
    if (p != q && p != 1 && q != 1) return mismatch(k, n, what, x, y);
    dim[rank - 1 - i] = p == 1 ? q : p;
  }
  return shaped(k, dim, rank);
}

const LangType *shape_matmul(Checker *k, const Ast *n, const char *what, const LangType *x,
                             const LangType *y) {
  i64 dim[MAX_RANK + 1];
  if (!is_known(x) || !is_known(y) || !x->rank || y->rank != 2) return &type_tensor_any;
  if (x->dim[x->rank - 1] != y->dim[0]) return mismatch(k, n, what, x, y);
  memcpy(dim, x->dim, x->rank * sizeof *dim);
  dim[x->rank - 1] = y->dim[1];
  return shaped(k, dim, x->rank);
}

/* Number of elements, or -1 if too large for a tensor. */
static i64 count(const i64 *dim, u32 rank) {
  u64 n = 1;
  for (u32 i = 0; i < rank; i++)
    if (!size_mul(n, (u64)dim[i], &n) || n > INT64_MAX) return -1;
  return (i64)n;
}

static const char *dims_text(Checker *k, const i64 *dim, u32 rank) {
  StrBuf t = sb_new(k->a);
  sb_puts(&t, "[");
  for (u32 i = 0; i < rank; i++) sb_fmt(&t, "%s%lld", i ? ", " : "", (long long)dim[i]);
  sb_puts(&t, "]");
  return sb_cstr(&t);
}

static const char *dims_of(Checker *k, const LangType *t) {
  return dims_text(k, t->dim, t->rank);
}

/* Reads a shape literal with all extents present. */
static bool shape_in_text(const Ast *n, i64 *dim, u32 *rank) {
  if (!literal(n, dim, rank)) return false;
  for (u32 i = 0; i < *rank; i++)
    if (dim[i] < 0) return false;
  return count(dim, *rank) >= 0;
}

static bool is_number(const Ast *n) {
  return n->type && (n->type->kind == KD_int || n->type->kind == KD_float);
}

/* Shape of nested array literals with rows of equal length. */
static bool data_in_text(const Ast *n, i64 *dim, u32 *rank) {
  for (*rank = 0; n->kind == AST_array && n->nkid; n = n->kid[0]) {
    if (*rank == MAX_RANK) return false;
    dim[(*rank)++] = n->nkid;
    bool rows = n->kid[0]->kind == AST_array;
    for (u32 i = 0; i < n->nkid; i++) {
      if (rows ? n->kid[i]->kind != AST_array : !is_number(n->kid[i])) return false;
      if (rows && n->kid[i]->nkid != n->kid[0]->nkid) return false;
      if (rows && n->kid[i]->nkid && n->kid[i]->kid[0]->kind == AST_array && i) return false;
    }
  }
  return *rank > 0 && is_number(n);
}

const LangType *shape_data(Checker *k, const Ast *n) {
  i64 dim[MAX_RANK + 1];
  u32 rank;
  return data_in_text(n, dim, &rank) ? shaped(k, dim, rank) : &type_tensor_any;
}

static const LangType *of_data(Checker *k, const Ast *n, const char *name) {
  i64 dim[MAX_RANK + 1], have[MAX_RANK + 1];
  u32 rank, flat;
  bool data = data_in_text(n->kid[0], have, &flat);
  if (n->nkid == 1) return data ? shaped(k, have, flat) : &type_tensor_any;
  if (!shape_in_text(n->kid[1], dim, &rank)) return &type_tensor_any;
  if (data && count(have, flat) != count(dim, rank))
    check_error(k, n, NULL, "%s() shape %s (total: %lld) does not match data length %lld", name,
                dims_text(k, dim, rank), (long long)count(dim, rank), (long long)count(have, flat));
  return shaped(k, dim, rank);
}

static const LangType *reshaped(Checker *k, const Ast *n, const char *name, const LangType *x) {
  i64 dim[MAX_RANK + 1];
  u32 rank;
  if (!shape_in_text(n->kid[1], dim, &rank)) return &type_tensor_any;
  if (is_known(x) && count(x->dim, x->rank) != count(dim, rank))
    check_error(k, n, NULL, "%s(): cannot reshape %s to %s", name, dims_of(k, x),
                dims_text(k, dim, rank));
  return shaped(k, dim, rank);
}

static const LangType *transposed(Checker *k, const LangType *t) {
  i64 dim[MAX_RANK + 1];
  if (!is_known(t) || t->rank < 2) return &type_tensor_any;
  memcpy(dim, t->dim, t->rank * sizeof *dim);
  dim[t->rank - 1] = t->dim[t->rank - 2];
  dim[t->rank - 2] = t->dim[t->rank - 1];
  return shaped(k, dim, t->rank);
}

static const LangType *linear(Checker *k, const Ast *n, const LangType *x, const LangType *w,
                              const LangType *b) {
  bool fits =
      (!is_known(x) || x->rank) && (!is_known(w) || w->rank == 2) && (!is_known(b) || b->rank == 1);
  if (fits && is_known(x) && is_known(w)) fits = x->dim[x->rank - 1] == w->dim[0];
  if (fits && is_known(w) && is_known(b)) fits = b->dim[0] == w->dim[1];
  if (!fits && is_known(x) && is_known(w) && is_known(b))
    check_error(
        k, n, NULL,
        "nn_linear(): shapes %s, %s and %s do not fit: x [.., in], weights [in, out], bias [out]",
        dims_of(k, x), dims_of(k, w), dims_of(k, b));
  if (!fits || !is_known(x) || !is_known(w)) return &type_tensor_any;
  i64 dim[MAX_RANK + 1];
  memcpy(dim, x->dim, x->rank * sizeof *dim);
  dim[x->rank - 1] = w->dim[1];
  return shaped(k, dim, x->rank);
}

/* Same shape, except for a leading or trailing 1. */
static bool are_same(const LangType *x, const LangType *y) {
  if (x->rank < y->rank) return are_same(y, x);
  size_t bytes = y->rank * sizeof *y->dim;
  if (x->rank == y->rank) return !memcmp(x->dim, y->dim, bytes);
  if (x->rank != y->rank + 1) return false;
  return (x->dim[0] == 1 && !memcmp(x->dim + 1, y->dim, bytes)) ||
         (x->dim[y->rank] == 1 && !memcmp(x->dim, y->dim, bytes));
}

/* classes: y may hold the class of each row of x instead. */
static const LangType *loss(Checker *k, const Ast *n, const char *name, const LangType *x,
                            const LangType *y, bool classes) {
  bool sorts = classes && is_known(x) && is_known(y) && x->rank == y->rank + 1 &&
               !memcmp(x->dim, y->dim, y->rank * sizeof *y->dim);
  if (is_known(x) && is_known(y) && !sorts && !are_same(x, y))
    check_error(k, n, NULL, "%s(): shape mismatch %s vs %s", name, dims_of(k, x), dims_of(k, y));
  return &type_any;
}

static const LangType *optimizer_step(Checker *k, const Ast *n, const char *name, const LangType *p,
                                      const LangType *g) {
  if (is_known(p) && is_known(g) && !type_same(p, g))
    check_error(k, n, NULL, "%s(): shape %s for a parameter of shape %s", name, dims_of(k, g),
                dims_of(k, p));
  return p->kind == KD_tensor ? p : &type_tensor_any;
}

const LangType *shape_call(Checker *k, const Ast *n, const BuiltinInfo *b) {
  const LangType *t = n->nkid ? n->kid[0]->type : &type_none;
  const LangType *u = n->nkid > 1 ? n->kid[1]->type : &type_none;
  i64 dim[MAX_RANK + 1];
  u32 rank;
  switch (b->shape) {
  case SH_none: break;
  case SH_first:
    return shape_in_text(n->kid[0], dim, &rank) ? shaped(k, dim, rank) : &type_tensor_any;
  case SH_data: return of_data(k, n, b->name);
  case SH_reshape: return reshaped(k, n, b->name, t);
  case SH_same: return t->kind == KD_tensor ? t : &type_tensor_any;
  case SH_broadcast: return shape_broadcast(k, n, b->name, t, u);
  case SH_matmul: return shape_matmul(k, n, b->name, t, u);
  case SH_linear: return linear(k, n, t, u, n->kid[2]->type);
  case SH_transpose: return transposed(k, t);
  case SH_flatten:
    return is_known(t) ? shaped(k, (i64[]){count(t->dim, t->rank), 0}, 1) : &type_tensor_any;
  case SH_gather:
    if (!is_known(t) || !is_known(u) || u->rank != 2) break;
    return shaped(k, (i64[]){count(t->dim, t->rank), u->dim[1], 0}, 2);
  case SH_loss:
  case SH_classes: return loss(k, n, b->name, t, u, b->shape == SH_classes);
  case SH_step: return optimizer_step(k, n, b->name, t, u);
  }
  return &type_tensor_any;
}
