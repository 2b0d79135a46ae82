/* check_shape.c: shapes of tensors, as far as they are known before the run.
 *
 * In: a call of a built-in function, or an operator, whose operands have types. Out: the type of
 * its result with its shape, where that follows from numbers in the text; shapes that cannot fit
 * are errors. What is not known here is found when the program runs.
 */
#include "front/lang/check.h"

#include <string.h>

static const LangType *shaped(Checker *k, const i64 *dim, u32 rank) {
  LangType *t = NEW(k->a, LangType);
  *t = (LangType){.kind = KD_tensor, .shaped = true, .rank = rank};
  t->dim = arena_copy(k->a, dim, (rank + 1) * sizeof *dim);
  return t;
}

static bool is_known(const LangType *t) {
  if (!t || t->kind != KD_tensor || !t->shaped) return false;
  for (u32 i = 0; i < t->rank; i++)
    if (t->dim[i] < 0) return false;
  return true;
}

/* [2, 3] in the text. */
static bool literal(const Ast *n, i64 *dim, u32 *rank) {
  if (!n || n->kind != AST_array || n->nkid >= MAX_RANK) return false;
  for (u32 i = 0; i < n->nkid; i++) {
    if (n->kid[i]->kind != AST_int) return false;
    dim[i] = n->kid[i]->i;
  }
  *rank = n->nkid;
  return true;
}

static bool is_one_of(const char *name, const char *const *list) {
  for (; *list; list++)
    if (!strcmp(*list, name)) return true;
  return false;
}

static const LangType *mismatch(Checker *k, const Ast *n, const char *what, const LangType *x,
                                const LangType *y) {
  const char *first = lang_type_text(k->c, x), *second = lang_type_text(k->c, y);
  check_wrong(k, n, NULL, "%s: shapes of %s and %s do not fit", what, first, second);
  return &type_tensor_any;
}

const LangType *shape_two(Checker *k, const Ast *n, const char *what, const LangType *x,
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

/* The first argument, or the second, is a shape. */
static const LangType *made(Checker *k, const Ast *n, const char *name) {
  static const char *const first[] = {"tensor_zeros",  "tensor_ones",    "tensor_full",
                                      "tensor_randn",  "tensor_rand",    "tensor_randn_seeded",
                                      "random_normal", "random_uniform", NULL};
  static const char *const second[] = {"tensor",         "tensor_from_array", "tensor_with_grad",
                                       "tensor_reshape", "reshape",           NULL};
  i64 dim[MAX_RANK + 1];
  u32 rank;
  bool known = (is_one_of(name, first) && literal(n->kid[0], dim, &rank)) ||
               (n->nkid > 1 && is_one_of(name, second) && literal(n->kid[1], dim, &rank));
  for (u32 i = 0; known && i < rank; i++) known = dim[i] >= 0;
  return known ? shaped(k, dim, rank) : NULL;
}

static const LangType *turned(Checker *k, const LangType *t) {
  i64 dim[2];
  if (!is_known(t) || t->rank != 2) return &type_tensor_any;
  dim[0] = t->dim[1];
  dim[1] = t->dim[0];
  return shaped(k, (const i64[]){dim[0], dim[1], 0}, 2);
}

const LangType *shape_call(Checker *k, const Ast *n, const char *name) {
  static const char *const same[] = {
      "nn_relu",        "nn_sigmoid",           "nn_tanh",          "nn_softmax",
      "nn_gelu",        "nn_leaky_relu",        "nn_elu",           "tensor_relu",
      "tensor_sigmoid", "tensor_tanh",          "tensor_gelu",      "tensor_softmax",
      "softmax",        "tensor_abs",           "tensor_sqrt",      "tensor_exp",
      "tensor_log",     "tensor_requires_grad", "tensor_zero_grad", NULL};
  static const char *const two[] = {"tensor_add", "tensor_sub", "tensor_mul", "tensor_div", NULL};
  const LangType *t = n->nkid ? n->kid[0]->type : NULL, *u = n->nkid > 1 ? n->kid[1]->type : NULL;
  if (!t) return &type_tensor_any;
  const LangType *fixed = made(k, n, name);
  if (fixed) return fixed;
  if (is_one_of(name, same) && t->kind == KD_tensor) return t;
  if (u && is_one_of(name, two)) return shape_two(k, n, name, t, u);
  if (u && (!strcmp(name, "tensor_matmul") || !strcmp(name, "nn_linear")))
    return shape_matmul(k, n, name, t, u);
  if (!strcmp(name, "tensor_transpose") || !strcmp(name, "transpose")) return turned(k, t);
  return &type_tensor_any;
}
