/* dim_minmax.c: cancels min and max terms of a sum that choose between the same two operands.
 *
 * In: a sum. Out: an equal sum with fewer terms. Method: max(a, b) + min(a + c, b + c) = a + b + c,
 * and two terms of the same kind differ by c, whichever of a and b is larger. Splitting and
 * rejoining an axis, for example, gives lengths max(0, n - 1) and min(1, n), whose sum is n. */
#include "ir/dim.h"

static bool is_minmax(const SymInfo *s) {
  return s->kind == SY_derived && (s->op == OP_min || s->op == OP_max);
}

/* *c = y - x if that is constant. */
static bool distance(const Dims *ds, Dim x, Dim y, i64 *c) {
  DimPoly p = poly_of(ds, y), q = poly_of(ds, x);
  poly_add(ds, &p, &q, -1);
  *c = p.k0;
  return p.n == 0 && !p.over;
}

static void add_sym(const Dims *ds, DimPoly *p, Sym s, i64 k) {
  DimPoly one = {.n = 1, .sym = {s}, .coef = {1}};
  poly_add(ds, p, &one, k);
}

/* Replaces terms i and j, k times each, by their sum: a + b + c for a max and a min, c for two of
 * the same kind (`like`) with opposite signs. k is the smaller coefficient. */
static bool cancel_pair(const Dims *ds, DimPoly *p, u32 i, u32 j) {
  const SymInfo *x = &ds->sym.at[p->sym[i]], *y = &ds->sym.at[p->sym[j]];
  bool like = x->op == y->op, same_sign = (p->coef[i] < 0) == (p->coef[j] < 0);
  i64 ca, cb, k = p->coef[i], other = same_sign ? p->coef[j] : -p->coef[j];
  if (!is_minmax(x) || !is_minmax(y) || like == same_sign) return false;
  if (!distance(ds, x->a, y->a, &ca) || !distance(ds, x->b, y->b, &cb) || ca != cb) return false;
  if (k < 0 ? other > k : other < k) k = other;
  DimPoly out = *p, rest = poly_const(like ? -ca : ca);
  add_sym(ds, &out, p->sym[i], -k);
  add_sym(ds, &out, p->sym[j], same_sign ? -k : k);
  if (!like) {
    DimPoly a = poly_of(ds, x->a), b = poly_of(ds, x->b);
    poly_add(ds, &rest, &a, 1);
    poly_add(ds, &rest, &b, 1);
  }
  poly_add(ds, &out, &rest, k);
  if (out.over || (out.n == 0 && out.k0 < 0)) return false; /* not a dimension */
  *p = out;
  return true;
}

void poly_simplify(const Dims *ds, DimPoly *p) {
  bool again = !p->over;
  while (again) { /* each round removes a term and adds its operands */
    again = false;
    for (u32 i = 0; i < p->n && !again; i++)
      for (u32 j = i + 1; j < p->n && !again; j++) again = cancel_pair(ds, p, i, j);
  }
}
