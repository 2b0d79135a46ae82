/* affine.c: decomposes integer expressions into terms and rebuilds them.
 *
 * In: expression trees of i64. Out: a constant and terms. Sums, differences and products with
 * constants are decomposed; everything else is an opaque term. Used to see how an index depends on
 * one variable, and to split an index into block and lane. */
#include "ir/prog/affine.h"

static bool add_term(Prog *p, Affine *a, ExprId e, i64 coef) {
  const Expr *x = prog_expr(p, e);
  VarId var = x->kind == EX_var ? x->ref : 0;
  for (u32 i = 0; i < a->n; i++) {
    bool same = var ? a->t[i].var == var : !a->t[i].var && ex_same(p, a->t[i].e, e);
    if (!same) continue;
    return !__builtin_add_overflow(a->t[i].coef, coef, &a->t[i].coef);
  }
  if (a->n == AFFINE_TERMS) return false;
  a->t[a->n++] = (AffTerm){e, var, coef};
  return true;
}

static bool gather(Prog *p, Affine *a, ExprId e, i64 coef) {
  const Expr *x = prog_expr(p, e);
  i64 k;
  if (ex_is_int(p, e, &k))
    return !__builtin_mul_overflow(coef, k, &k) && !__builtin_add_overflow(a->k, k, &a->k);
  if (x->kind == EX_op && x->dt == DT_i64 && x->narg == 2) {
    ExprId l = x->arg[0], r = x->arg[1];
    if (x->op == OP_add) return gather(p, a, l, coef) && gather(p, a, r, coef);
    if (x->op == OP_sub) return gather(p, a, l, coef) && coef > INT64_MIN && gather(p, a, r, -coef);
    bool left = x->op == OP_mul && ex_is_int(p, r, &k);
    if (left || (x->op == OP_mul && ex_is_int(p, l, &k)))
      return !__builtin_mul_overflow(coef, k, &k) && gather(p, a, left ? l : r, k);
  }
  return add_term(p, a, e, coef);
}

bool affine_of(Prog *p, ExprId e, Affine *a) {
  *a = (Affine){0};
  if (!gather(p, a, e, 1)) return false;
  u32 n = 0;
  for (u32 i = 0; i < a->n; i++)
    if (a->t[i].coef) a->t[n++] = a->t[i];
  a->n = n;
  return true;
}

ExprId affine_expr(Prog *p, const Affine *a) {
  ExprId sum = 0;
  for (u32 i = 0; i < a->n; i++) {
    i64 c = a->t[i].coef;
    bool minus = c < 0 && sum;
    ExprId e = ex_copy(p, a->t[i].e);
    e = ex_op2(p, OP_mul, e, ex_int(p, minus ? -c : c));
    sum = !sum ? e : ex_op2(p, minus ? OP_sub : OP_add, sum, e);
  }
  if (!sum) return ex_int(p, a->k);
  return a->k < 0 ? ex_op2(p, OP_sub, sum, ex_int(p, -a->k))
                  : ex_op2(p, OP_add, sum, ex_int(p, a->k));
}

i64 affine_coef(const Affine *a, VarId v) {
  for (u32 i = 0; i < a->n; i++)
    if (a->t[i].var == v) return a->t[i].coef;
  return 0;
}

static bool has_terms_of(const Affine *x, const Affine *y) {
  for (u32 i = 0; i < y->n; i++)
    if (!y->t[i].var || affine_coef(x, y->t[i].var) != y->t[i].coef) return false;
  return true;
}

bool affine_differ_by(const Affine *x, const Affine *y, i64 *by) {
  return has_terms_of(x, y) && has_terms_of(y, x) && !__builtin_sub_overflow(y->k, x->k, by);
}

static bool is_inner(const Affine *rest, i64 block, const InnerVars *inner) {
  if (rest->k || rest->n > 1) return false;
  if (!rest->n) return true;
  for (const InnerVar *v = inner->at; v < inner->at + inner->n; v++)
    if (rest->t[0].var == v->var && rest->t[0].coef > 0)
      return v->n <= block && rest->t[0].coef * (v->n - 1) < block;
  return false;
}

/* Moves the terms of a that are multiples of n to *whole, divided by n. */
static void take_multiples(Affine *a, i64 n, Affine *whole) {
  u32 kept = 0;
  i64 odd = a->k % n;
  if (odd < 0) odd += n;
  *whole = (Affine){.k = (a->k - odd) / n};
  a->k = odd;
  for (u32 i = 0; i < a->n; i++) {
    AffTerm t = a->t[i];
    if (t.coef % n) {
      a->t[kept++] = t;
    } else {
      t.coef /= n;
      whole->t[whole->n++] = t;
    }
  }
  a->n = kept;
}

void ex_split(Prog *p, ExprId e, i64 block, const InnerVars *inner, ExprId *q, ExprId *r) {
  Affine rest, whole, parts;
  if (affine_of(p, e, &rest)) {
    take_multiples(&rest, block, &whole);
    if (is_inner(&rest, block, inner) || !rest.n) {
      *q = affine_expr(p, &whole);
      *r = affine_expr(p, &rest);
      return;
    }
    for (i64 n = block / 2; n > 1; n /= 2) { /* parts of a block, and the remainder within one */
      Affine within = rest;
      take_multiples(&within, n, &parts);
      if (!is_inner(&within, n, inner)) continue;
      ExprId part = affine_expr(p, &parts), each = ex_int(p, block / n);
      *q = ex_op2(p, OP_add, affine_expr(p, &whole),
                  ex_op2(p, OP_div, ex_copy(p, part), ex_copy(p, each)));
      *r = ex_op2(p, OP_add, ex_op2(p, OP_mul, ex_op2(p, OP_mod, part, each), ex_int(p, n)),
                  affine_expr(p, &within));
      return;
    }
  }
  *q = ex_op2(p, OP_div, ex_copy(p, e), ex_int(p, block));
  *r = ex_op2(p, OP_mod, e, ex_int(p, block));
}
