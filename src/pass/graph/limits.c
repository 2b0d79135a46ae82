/* limits.c: casts to bytes of what cannot be large.
 *
 * In: a graph. Out: the same graph, with sat = 2 at casts from f32 to bytes whose operand is a
 * number between -2^29 and 2^29, and no NaN, whatever the inputs are: sums, products and bounds of
 * constants and of integers of at most 32 bits, as quantised networks have them. Method: intervals,
 * computed in double from the operands on. Rounding in f32 moves a bound by parts of 2^-24 a step,
 * for which the other half of 2^30 has room.
 *
 * needs: nothing; behind all passes that make constants  keeps: values  breaks: nothing
 */
#include "pass/pass.h"

#include <math.h>

enum { MOST_STEPS = 256, MOST_CONST = 1 << 16 }; /* operands looked at for one cast; elements */
#define SMALL 0x1p29
#define LARGE 0x1p100 /* beyond it nothing is claimed: f32 ends at 2^128 */

typedef struct Extremes {
  double lo, hi;
} Extremes;

static bool of_const(const Tensor *t, Extremes *e) {
  if (!t->data || !t->n || t->n > MOST_CONST) return false;
  *e = (Extremes){INFINITY, -INFINITY};
  for (u64 i = 0; i < t->n; i++) {
    Scalar s = tensor_get(t, i);
    double x = dtype_is_float(t->dt) ? s.f : (double)s.i;
    if (!isfinite(x)) return false;
    e->lo = fmin(e->lo, x);
    e->hi = fmax(e->hi, x);
  }
  return true;
}

static Extremes product(Extremes a, Extremes b) {
  double p = a.lo * b.lo, q = a.lo * b.hi, r = a.hi * b.lo, s = a.hi * b.hi;
  return (Extremes){fmin(fmin(p, q), fmin(r, s)), fmax(fmax(p, q), fmax(r, s))};
}

static bool of_map(const Node *n, const Extremes *x, Extremes *e) {
  const Extremes a = x[0], b = x[1];
  switch (n->op) { /* what each does to bounds is no column of the table */
  case OP_cast: *e = a; break;
  case OP_add: *e = (Extremes){a.lo + b.lo, a.hi + b.hi}; break;
  case OP_sub: *e = (Extremes){a.lo - b.hi, a.hi - b.lo}; break;
  case OP_mul: *e = product(a, b); break;
  case OP_div:
    if (b.lo <= 0 && b.hi >= 0) return false;
    *e = product(a, (Extremes){1 / b.hi, 1 / b.lo});
    break;
  case OP_neg: *e = (Extremes){-a.hi, -a.lo}; break;
  case OP_max: *e = (Extremes){fmax(a.lo, b.lo), fmax(a.hi, b.hi)}; break;
  case OP_min: *e = (Extremes){fmin(a.lo, b.lo), fmin(a.hi, b.hi)}; break;
  case OP_round: *e = (Extremes){a.lo - 1, a.hi + 1}; break;
  case OP_select: *e = (Extremes){fmin(b.lo, x[2].lo), fmax(b.hi, x[2].hi)}; break;
  default: return false;
  }
  return fabs(e->lo) < LARGE && fabs(e->hi) < LARGE;
}

/* What a type says of its values. */
static bool of_type(DType dt, Extremes *e) {
  Scalar lo, hi;
  if (dt != DT_bool && (!dtype_is_int(dt) || dtype_info[dt].bits > 32)) return false;
  dtype_limits(dt, &lo, &hi);
  *e = dt == DT_bool ? (Extremes){0, 1} : (Extremes){(double)lo.i, (double)hi.i};
  return true;
}

/* What v is computed from says more than its type, unless that could wrap around; false: it may be
 * anything. left: operands that may be looked at. */
static bool find(Graph *g, Val v, u32 *left, Extremes *e) {
  DType dt = graph_type(g, v)->dt;
  const Tensor *c = graph_const(g, v);
  const Node *n = graph_maker(g, v);
  Extremes x[3] = {{0, 0}, {0, 0}, {0, 0}}, own;
  bool known = of_type(dt, e);
  if (!*left) return known;
  --*left;
  if (c) return (!graph_val(g, v)->weight && of_const(c, e)) || known;
  if ((!known && dt != DT_f32) || !n || n->nout != 1) return known;
  if (op_info[n->op].kind == OK_VIEW) return find(g, n->in[0], left, e);
  if (op_info[n->op].kind != OK_MAP) return known;
  for (u32 i = 0; i < n->nin; i++)
    if (!find(g, n->in[i], left, &x[i])) return known;
  if (!of_map(n, x, &own) || (known && (own.lo < e->lo || own.hi > e->hi))) return known;
  *e = own;
  return true;
}

void limits(Graph *g) {
  for (NodeId i = 1; i < g->node.n; i++) {
    Node *n = graph_node(g, i);
    Extremes e;
    u32 left = MOST_STEPS;
    if (n->op != OP_cast || node_int(n, AT_sat, 0) != 1) continue;
    DType to = graph_type(g, n->out[0])->dt;
    if ((to != DT_u8 && to != DT_i8) || graph_type(g, n->in[0])->dt != DT_f32) continue;
    if (!find(g, n->in[0], &left, &e) || e.lo < -SMALL || e.hi > SMALL) continue;
    for (u32 k = 0; k < n->nattr; k++)
      if (n->attr[k].key == AT_sat) n->attr[k].u.i = CAST_NEAR;
  }
}
