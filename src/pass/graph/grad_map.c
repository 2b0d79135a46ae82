/* grad_map.c: gradients of scalar operators, from the formulas of grad.def.
 *
 * In: a node of a scalar operator and the gradient of its result. Out: gradients of its operands.
 * The rows of grad.def become functions, one per formula. Only formulas of operands that need a
 * gradient are called.
 *
 * C does not fix the order in which arguments are evaluated, and so the order in which nested
 * formulas create nodes. So operators of formulas take their operands from a stack, and commas fix
 * the order.
 */
#include "pass/graph/grad_internal.h"

enum { DEEPEST = 16 };

/* Context of a formula. */
typedef struct MapSite {
  Graph *g;
  const Val *in;
  Val out, got;
  Val stack[DEEPEST];
  u32 depth;
} MapSite;
typedef Val Formula(MapSite *m);

static void push(MapSite *m, Val v) {
  if (m->depth == DEEPEST) internal_error(m->g->c, LOC_NONE, "grad.def: a formula is too deep");
  m->stack[m->depth++] = v;
}

static Val pop(MapSite *m) {
  return m->stack[--m->depth];
}

static Val like(const MapSite *m, double x) {
  return mk_like(m->g, m->got, x);
}

/* Applies op to two operands from the stack; the last one pushed comes first. */
static Val two(MapSite *m, Op op) {
  Val a = pop(m), b = pop(m);
  return mk_map2(m->g, op, a, b);
}

static Val three(MapSite *m) {
  Val c = pop(m), a = pop(m), b = pop(m);
  return mk_select(m->g, c, a, b);
}

#define A               m->in[0]
#define B               m->in[1]
#define C               m->in[2]
#define Y               m->out
#define V               m->got
#define K(x)            like(m, x)
#define F(op, a)        mk_map1(m->g, OP_##op, a)
#define G(op, a, b)     (push(m, b), push(m, a), two(m, OP_##op))
#define NEG(a)          F(neg, a)
#define ADD(a, b)       G(add, a, b)
#define SUB(a, b)       G(sub, a, b)
#define MUL(a, b)       G(mul, a, b)
#define DIV(a, b)       G(div, a, b)
#define SELECT(c, a, b) (push(m, b), push(m, a), push(m, c), three(m))
#define CAST(a, b)      mk_cast(m->g, a, graph_type(m->g, b)->dt)

#define FORMULA(op, letter, formula)                                                               \
  static Val op##_##letter(MapSite *m) {                                                           \
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
  MapSite m = {.g = d->g, .in = n->in, .out = n->out[0], .got = v};
  for (u32 i = 0; i < n->nin; i++)
    if (grad_needed(d, n->in[i])) grad_accumulate(d, n->in[i], formulas[n->op][i](&m));
}
