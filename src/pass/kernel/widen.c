/* widen.c: turns scalar expressions into vectors.
 *
 * In: an expression tree and the variable that becomes the lane. Out: the tree over vectors,
 * bit-exact lane by lane. Subtrees that do not depend on the variable are computed once and splat.
 * A load must step by one element along its last dimension that is not 1. If the caller allows it,
 * a load may step by two, and a shuffle of two vectors selects the lanes.
 */
#include "pass/kernel/widen.h"

#include "ir/prog/affine.h"

#include <string.h>

static bool depends(const Vectorizer *w, ExprId e) {
  return ex_mentions(w->p, e, w->lane) || (w->acc_var && ex_mentions(w->p, e, w->acc_var));
}

/* Types with vectors in all back ends: not below 8 bits, and no 8-bit floats. */
static bool has_vectors(DType dt) {
  u32 bits = dtype_info[dt].bits;
  return dt == DT_bool || (dtype_is_int(dt) && bits >= 8) || (dtype_is_float(dt) && bits >= 16);
}

/* The same memory without the dimensions of 1 after dimension d. */
static BufId flat_view(const Vectorizer *w, BufId b, u32 d) {
  Prog *p = w->p;
  u32 *slot = map_put_bytes(w->once, (i64[]){ON_flat, b, d}, 3 * sizeof(i64));
  if (*slot) return *slot;
  Dim dim[MAX_RANK];
  const Buf *x = prog_buf(p, b);
  memcpy(dim, x->dim, (d + 1) * sizeof *dim);
  Str name = x->name;
  return *slot = prog_add_view(p, b, dim, d + 1, name);
}

/* Pads the last dimension of a constant with zeros to a multiple of the lanes. */
static BufId pad_const(const Vectorizer *w, BufId b) {
  Prog *p = w->p;
  Buf *x = prog_buf(p, b);
  BufId root = prog_root(p, b);
  const Tensor *t = prog_buf(p, root)->data;
  i64 n = x->dim[x->rank - 1], more = (n + w->lanes - 1) / w->lanes * w->lanes;
  if (prog_buf(p, root)->space != BS_const || n == more) return b;
  u32 *slot = map_put_bytes(w->once, (i64[]){ON_padded, b, w->lanes}, 3 * sizeof(i64));
  if (*slot) return *slot;
  i64 dim[MAX_RANK];
  memcpy(dim, x->dim, x->rank * sizeof *dim);
  dim[x->rank - 1] = more;
  Tensor *to = tensor_new(&p->c->keep, t->dt, dim, x->rank);
  u64 rows = t->n / (u64)n;
  u32 size = dtype_bytes(t->dt);
  for (u64 i = 0; i < rows; i++)
    memcpy((u8 *)(uintptr_t)to->data + i * (u64)more * size,
           (const u8 *)t->data + i * (u64)n * size, (u64)n * size);
  return *slot = prog_add_const(p, to, prog_buf(p, root)->name);
}

/* The index at lane 0 if it has this step along the lanes, else 0. */
static ExprId first_index(const Vectorizer *w, ExprId idx, i64 step) {
  Prog *p = w->p;
  Affine a;
  if (!affine_of(p, idx, &a) || affine_coef(&a, w->lane) != step) return 0;
  for (u32 i = 0; i < a.n; i++) {
    if (a.t[i].var == w->lane)
      a.t[i--] = a.t[--a.n];
    else if (!a.t[i].var && ex_mentions(p, a.t[i].e, w->lane))
      return 0;
  }
  return affine_expr(p, &a);
}

bool widen_place(const Vectorizer *w, BufId *buf, ExprId *idx, u32 *n) {
  Prog *p = w->p;
  const Buf *b = prog_buf(p, *buf);
  u32 d = *n;
  if (!has_vectors(b->dt) || b->lanes != 1) return false;
  while (d > 0 && b->dim[d - 1] == 1) d--;
  if (!d) return false;
  for (u32 i = 0; i < *n; i++)
    if (i != d - 1 && ex_mentions(p, idx[i], w->lane)) return false;
  ExprId first = first_index(w, idx[d - 1], 1);
  if (!first) return false;
  idx[d - 1] = first;
  if (d < *n) *buf = flat_view(w, *buf, d - 1);
  *n = d;
  *buf = pad_const(w, *buf);
  return true;
}

/* Loads every second element: the even lanes of one vector and the odd lanes of another, which ends
 * at the last element needed, so that no load goes past it. */
static ExprId every_second(const Vectorizer *w, const Expr *x) {
  Prog *p = w->p;
  const Buf *b = prog_buf(p, x->ref);
  ExprId idx[2][MAX_RANK];
  u32 n = x->narg, half = w->lanes / 2;
  if (!has_vectors(b->dt) || b->lanes != 1 || !n) return 0;
  for (u32 i = 0; i + 1 < n; i++)
    if (ex_mentions(p, x->arg[i], w->lane)) return 0;
  ExprId first = first_index(w, ex_copy(p, x->arg[n - 1]), 2);
  if (!first) return 0;
  u8 *pick = NEWS(&p->c->keep, u8, w->lanes);
  for (u32 i = 0; i < w->lanes; i++) pick[i] = (u8)(i < half ? 2 * i : 2 * i + 1);
  for (u32 k = 0; k < 2; k++)
    for (u32 i = 0; i + 1 < n; i++) idx[k][i] = ex_copy(p, x->arg[i]);
  idx[0][n - 1] = first;
  idx[1][n - 1] = ex_op2(p, OP_add, ex_copy(p, first), ex_int(p, w->lanes - 1));
  return ex_shuffle(p, ex_load_vec(p, x->ref, idx[0], n, w->lanes),
                    ex_load_vec(p, x->ref, idx[1], n, w->lanes), pick, w->lanes);
}

static ExprId widen_load(const Vectorizer *w, const Expr *x) {
  Prog *p = w->p;
  ExprId idx[MAX_RANK];
  BufId b = x->ref;
  u32 n = x->narg;
  for (u32 i = 0; i < n; i++) idx[i] = ex_copy(p, x->arg[i]);
  if (!widen_place(w, &b, idx, &n)) return w->strided ? every_second(w, x) : 0;
  return ex_load_vec(p, b, idx, n, w->lanes);
}

ExprId widen(const Vectorizer *w, ExprId id) {
  Prog *p = w->p;
  Expr x = *prog_expr(p, id);
  if (!depends(w, id)) return has_vectors(x.dt) ? ex_splat(p, ex_copy(p, id), w->lanes) : 0;
  if (x.kind == EX_var) return x.ref == w->acc_var ? ex_copy(p, w->vec) : 0;
  if (x.kind == EX_load) return widen_load(w, &x);
  if (x.kind != EX_op || !has_vectors(x.dt)) return 0;
  ExprId arg[4];
  for (u32 i = 0; i < x.narg; i++)
    if (!(arg[i] = widen(w, x.arg[i]))) return 0;
  if (x.op == OP_cast) {
    ExprId e = ex_cast(p, x.dt, arg[0], x.sat);
    if (prog_expr(p, e)->kind == EX_op) prog_expr(p, e)->small |= x.small;
    return e;
  }
  if (x.op == OP_bitcast) return ex_bitcast(p, x.dt, arg[0]);
  return ex_op(p, x.op, arg, x.narg);
}
