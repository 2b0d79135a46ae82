/* grad_map.c: derivatives of scalar operators, from the formulas of grad.def.
 *
 * In: a node of a scalar operator and what its result got. Out: what its operands get. A formula is
 * a function made by the rows; the operands that derivatives pass through have theirs called.
 */
#include "pass/graph/grad_own.h"

/* What formulas see. */
typedef struct MapSite {
  Graph *g;
  const Val *in;
  Val out, got;
} MapSite;
typedef Val Formula(const MapSite *m);

static Val like(const MapSite *m, double x) {
  return mk_like(m->g, m->got, x);
}

#define A               m->in[0]
#define B               m->in[1]
#define C               m->in[2]
#define Y               m->out
#define V               m->got
#define K(x)            like(m, x)
#define F(op, a)        mk_map1(m->g, OP_##op, a)
#define G(op, a, b)     mk_map2(m->g, OP_##op, a, b)
#define NEG(a)          F(neg, a)
#define ADD(a, b)       G(add, a, b)
#define SUB(a, b)       G(sub, a, b)
#define MUL(a, b)       G(mul, a, b)
#define DIV(a, b)       G(div, a, b)
#define SELECT(c, a, b) mk_select(m->g, c, a, b)
#define CAST(a, b)      mk_cast(m->g, a, graph_type(m->g, b)->dt)

#define FORMULA(op, letter, formula)                                                               \
  static Val op##_##letter(const MapSite *m) {                                                     \
    return formula;                                                                                \
  }
#define MAP1(op, da)         FORMULA(op, a, da)
#define MAP2(op, da, db)     FORMULA(op, a, da) FORMULA(op, b, db)
#define MAP3(op, da, db, dc) FORMULA(op, a, da) FORMULA(op, b, db) FORMULA(op, c, dc)
#include "pass/graph/grad.def"

static Formula *const formulas[OP_SCALARS][3] = {
#define MAP1(op, da)         [OP_##op] = {op##_a},
#define MAP2(op, da, db)     [OP_##op] = {op##_a, op##_b},
#define MAP3(op, da, db, dc) [OP_##op] = {op##_a, op##_b, op##_c},
#include "pass/graph/grad.def"
};

void grad_map(Grad *d, const Node *n, Val v) {
  MapSite m = {d->g, n->in, n->out[0], v};
  for (u32 i = 0; i < n->nin; i++)
    if (grad_wants(d, n->in[i])) grad_give(d, n->in[i], formulas[n->op][i](&m));
}
