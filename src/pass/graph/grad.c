/* grad.c: derivatives of one value with respect to others, as nodes of the same graph.
 *
 * In: a graph, and values of it: y, xs, and zs, which stay as they are. Out: for each x the
 * derivative of the sum of y. Method: reverse accumulation over the core operators between xs and
 * y, last node first; each hands its derivative on to its operands as core operators again, so that
 * no engine knows about derivatives. Where a function has a corner (max, abs, rounding) one of the
 * derivatives beside it is taken. Refused: operators without a rule here, among them control flow,
 * conv and windows.
 */
#include "pass/graph/grad.h"

#include <string.h>

typedef struct Grad {
  Graph *g;
  bool *active; /* by value: depends on xs */
  bool *fixed;  /* by value: one of xs or zs */
  Val *adj;     /* by value: derivative of y, or 0 */
  u32 nval;     /* values there were at the start */
} Grad;

static Val add(Grad *d, Val x, Val y) {
  return mk_map2(d->g, OP_add, x, y);
}
static Val sub(Grad *d, Val x, Val y) {
  return mk_map2(d->g, OP_sub, x, y);
}
static Val mul(Grad *d, Val x, Val y) {
  return mk_map2(d->g, OP_mul, x, y);
}
static Val quotient(Grad *d, Val x, Val y) {
  return mk_map2(d->g, OP_div, x, y);
}

static Val k(Grad *d, Val like, double x) {
  return mk_like(d->g, like, x);
}

/* g summed over what the type t was broadcast along. */
static Val unbroadcast(Grad *d, Val v, const Type *t) {
  Type have = *graph_type(d->g, v);
  i64 axes[MAX_RANK];
  u32 n = 0, more = have.rank - t->rank;
  for (u32 i = 0; i < have.rank; i++)
    if (i < more || (t->dim[i - more] == 1 && have.dim[i] != 1)) axes[n++] = i;
  if (n) v = mk_reduce(d->g, OP_reduce_sum, v, axes, n, true);
  return mk_reshape(d->g, v, t->dim, t->rank);
}

static void give(Grad *d, Val x, Val v) {
  if (x >= d->nval || !d->active[x]) return;
  Type t = *graph_type(d->g, x);
  v = unbroadcast(d, v, &t);
  d->adj[x] = d->adj[x] ? add(d, d->adj[x], v) : v;
}

static bool wants(const Grad *d, Val x) {
  return x < d->nval && d->active[x];
}

/* ---- elementwise ---- */

/* Derivative of a function of one operand x with the value y; 0 when there is no rule. */
static Val slope(Grad *d, Op op, Val x, Val y) {
  Graph *g = d->g;
  Val one = k(d, x, 1), xx = mul(d, x, x);
  switch (op) { /* a formula each: a table would hold functions */
  case OP_neg: return k(d, x, -1);
  case OP_abs: return mk_map1(g, OP_sign, x);
  case OP_sign:
  case OP_floor:
  case OP_ceil:
  case OP_round:
  case OP_trunc: return k(d, x, 0);
  case OP_sqrt: return quotient(d, k(d, x, 0.5), y);
  case OP_recip: return mk_map1(g, OP_neg, mul(d, y, y));
  case OP_exp: return y;
  case OP_log: return mk_map1(g, OP_recip, x);
  case OP_sin: return mk_map1(g, OP_cos, x);
  case OP_cos: return mk_map1(g, OP_neg, mk_map1(g, OP_sin, x));
  case OP_tan: return add(d, one, mul(d, y, y));
  case OP_asin: return mk_map1(g, OP_recip, mk_map1(g, OP_sqrt, sub(d, one, xx)));
  case OP_acos: return quotient(d, k(d, x, -1), mk_map1(g, OP_sqrt, sub(d, one, xx)));
  case OP_atan: return mk_map1(g, OP_recip, add(d, one, xx));
  case OP_sinh: return mk_map1(g, OP_cosh, x);
  case OP_cosh: return mk_map1(g, OP_sinh, x);
  case OP_tanh: return sub(d, one, mul(d, y, y));
  case OP_asinh: return mk_map1(g, OP_recip, mk_map1(g, OP_sqrt, add(d, xx, one)));
  case OP_acosh: return mk_map1(g, OP_recip, mk_map1(g, OP_sqrt, sub(d, xx, one)));
  case OP_atanh: return mk_map1(g, OP_recip, sub(d, one, xx));
  case OP_erf:
    return mul(d, mk_map1(g, OP_exp, mk_map1(g, OP_neg, xx)), k(d, x, 1.1283791670955126));
  default: return 0;
  }
}

/* Operators of two operands; false when there is no rule. */
static bool back_two(Grad *d, Op op, Val x, Val y, Val out, Val v) {
  Graph *g = d->g;
  switch (op) {
  case OP_add: give(d, x, v), give(d, y, v); return true;
  case OP_sub: give(d, x, v), give(d, y, mk_map1(g, OP_neg, v)); return true;
  case OP_mul: give(d, x, mul(d, v, y)), give(d, y, mul(d, v, x)); return true;
  case OP_div:
    give(d, x, quotient(d, v, y));
    give(d, y, quotient(d, mk_map1(g, OP_neg, mul(d, v, out)), y));
    return true;
  case OP_pow:
    if (wants(d, x))
      give(d, x, mul(d, v, mul(d, y, mk_map2(g, OP_pow, x, add(d, y, k(d, y, -1))))));
    if (wants(d, y)) give(d, y, mul(d, v, mul(d, out, mk_map1(g, OP_log, x))));
    return true;
  case OP_max:
  case OP_min: { /* of two equal operands the second is the result */
    Val first = mk_map2(g, op == OP_max ? OP_gt : OP_lt, x, y);
    give(d, x, mk_select(g, first, v, k(d, v, 0)));
    give(d, y, mk_select(g, first, k(d, v, 0), v));
    return true;
  }
  default: return false;
  }
}

static bool back_map(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  if (n->op == OP_select) {
    give(d, n->in[1], mk_select(g, n->in[0], v, k(d, v, 0)));
    give(d, n->in[2], mk_select(g, n->in[0], k(d, v, 0), v));
    return true;
  }
  if (n->op == OP_cast) {
    give(d, n->in[0], mk_cast(g, v, graph_type(g, n->in[0])->dt));
    return true;
  }
  if (n->op == OP_fma) {
    give(d, n->in[0], mul(d, v, n->in[1]));
    give(d, n->in[1], mul(d, v, n->in[0]));
    give(d, n->in[2], v);
    return true;
  }
  if (n->nin == 2) return back_two(d, n->op, n->in[0], n->in[1], n->out[0], v);
  Val s = slope(d, n->op, n->in[0], n->out[0]);
  if (s) give(d, n->in[0], mul(d, v, s));
  return s != 0;
}

/* ---- structural ---- */

/* v of a reduction, again with the axes that were reduced. */
static Val unreduced(Grad *d, const Node *n, Val v, const Type *t) {
  u32 c;
  const i64 *axes = node_list(n, AT_axes, &c);
  Dim dim[MAX_RANK];
  memcpy(dim, t->dim, t->rank * sizeof *dim);
  for (u32 i = 0; i < c; i++) dim[axes[i]] = 1;
  return mk_reshape(d->g, v, dim, t->rank);
}

static void back_reduce(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  Val x = n->in[0];
  Type t = *graph_type(d->g, x);
  if (!t.rank) {
    give(d, x, v);
    return;
  }
  v = unreduced(d, n, v, &t);
  if (n->op != OP_reduce_sum) { /* shared among the largest */
    u32 c;
    const i64 *axes = node_list(n, AT_axes, &c);
    Val best = mk_map2(g, OP_eq, x, unreduced(d, n, n->out[0], &t));
    Val hit = mk_cast(g, best, t.dt);
    v = mul(d, hit, quotient(d, v, mk_reduce(g, OP_reduce_sum, hit, axes, c, true)));
  }
  give(d, x, mk_broadcast(g, v, t.dim, t.rank));
}

/* Letters of an operand that appear neither in the other nor in the result were summed alone. */
static bool back_contract(Grad *d, const Node *n, Val v) {
  const char *spec = str_text(d->g->c, node_attr(n, AT_spec)->u.s);
  const char *comma = strchr(spec, ','), *arrow = strstr(spec, "->");
  char part[3][64];
  size_t len[3] = {(size_t)(comma - spec), (size_t)(arrow - comma - 1), strlen(arrow + 2)};
  const char *at[3] = {spec, comma + 1, arrow + 2};
  for (u32 i = 0; i < 3; i++) {
    if (len[i] >= sizeof part[i]) return false;
    memcpy(part[i], at[i], len[i]);
    part[i][len[i]] = 0;
  }
  for (u32 i = 0; i < 2; i++) {
    if (!wants(d, n->in[i])) continue;
    for (const char *c = part[i]; *c; c++)
      if (!strchr(part[2], *c) && !strchr(part[1 - i], *c)) return false;
    Str made = str_fmt(d->g->c, "%s,%s->%s", part[2], part[1 - i], part[i]);
    give(d, n->in[i], mk_contract(d->g, v, n->in[1 - i], str_text(d->g->c, made)));
  }
  return true;
}

static bool back_slice(Grad *d, const Node *n, Val v) {
  Type t = *graph_type(d->g, n->in[0]);
  u32 c;
  const Dim *start = node_list(n, AT_start, &c), *size = node_list(n, AT_size, &c);
  const i64 *step = node_list(n, AT_step, &c);
  Dim lo[MAX_RANK], hi[MAX_RANK];
  i64 inner[MAX_RANK];
  for (u32 i = 0; i < t.rank; i++) {
    if (!dim_is_const(start[i]) || !dim_is_const(size[i]) || !dim_is_const(t.dim[i]) || step[i] < 1)
      return false;
    i64 used = size[i] ? (size[i] - 1) * step[i] + 1 : 0;
    lo[i] = start[i];
    hi[i] = t.dim[i] - start[i] - used;
    inner[i] = step[i] - 1;
  }
  give(d, n->in[0], mk_pad(d->g, v, k(d, v, 0), lo, hi, inner));
  return true;
}

static void back_concat(Grad *d, const Node *n, Val v) {
  u32 axis = (u32)node_int(n, AT_axis, 0);
  Dim at = 0;
  for (u32 i = 0; i < n->nin; i++) {
    Dim size = graph_type(d->g, n->in[i])->dim[axis];
    if (wants(d, n->in[i])) give(d, n->in[i], mk_slice_axis(d->g, v, axis, at, size));
    at = dim_add(d->g->dims, at, size);
  }
}

static bool back_pad(Grad *d, const Node *n, Val v) {
  Type t = *graph_type(d->g, n->in[0]);
  u32 c;
  const Dim *lo = node_list(n, AT_lo, &c);
  const i64 *inner = node_list(n, AT_interior, &c);
  i64 step[MAX_RANK];
  if (wants(d, n->in[1])) return false;
  for (u32 i = 0; i < t.rank; i++) step[i] = inner[i] + 1;
  give(d, n->in[0], mk_slice(d->g, v, lo, t.dim, step));
  return true;
}

/* Rows of the first axis, moved there: added up where they came from. */
static void back_gather(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  u32 axis = (u32)node_int(n, AT_axis, 0);
  Type t = *graph_type(d->g, n->in[0]);
  u32 rank = graph_type(g, v)->rank, more = graph_type(g, n->in[1])->rank;
  i64 perm[MAX_RANK], back[MAX_RANK];
  Dim dim[MAX_RANK];
  for (u32 i = 0; i < rank; i++) perm[i] = i < more ? axis + i : i < more + axis ? i - more : i;
  for (u32 i = 0; i < t.rank; i++) {
    u32 from = i == 0 ? axis : i <= axis ? i - 1 : i;
    dim[i] = t.dim[from];
    back[from] = i;
  }
  Val zero = mk_broadcast(g, k(d, v, 0), dim, t.rank);
  Val idx = mk_unsqueeze(g, mk_cast(g, n->in[1], DT_i64), more);
  give(d, n->in[0],
       mk_transpose(g, mk_scatter_nd(g, zero, idx, mk_transpose(g, v, perm), "add"), back));
}

static bool back_node(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  u32 c;
  if (n->op < OP_SCALARS) return back_map(d, n, v);
  Type t = *graph_type(d->g, n->in[0]);
  switch (n->op) {
  case OP_reduce_sum:
  case OP_reduce_max:
  case OP_reduce_min: back_reduce(d, n, v); return true;
  case OP_contract: return back_contract(d, n, v);
  case OP_reshape: give(d, n->in[0], mk_reshape(g, v, t.dim, t.rank)); return true;
  case OP_broadcast: give(d, n->in[0], v); return true;
  case OP_transpose: {
    const i64 *perm = node_list(n, AT_perm, &c);
    i64 back[MAX_RANK];
    for (u32 i = 0; i < c; i++) back[perm[i]] = i;
    give(d, n->in[0], mk_transpose(g, v, back));
    return true;
  }
  case OP_slice: return back_slice(d, n, v);
  case OP_concat: back_concat(d, n, v); return true;
  case OP_pad: return back_pad(d, n, v);
  case OP_gather: back_gather(d, n, v); return true;
  case OP_cumsum:
    give(d, n->in[0],
         mk_cum(g, OP_cumsum, v, node_int(n, AT_axis, 0), node_int(n, AT_exclusive, 0) != 0,
                node_int(n, AT_reverse, 0) == 0));
    return true;
  default: return false;
  }
}

/* Values that depend on xs, and not only through zs. */
static void find_active(Grad *d) {
  Graph *g = d->g;
  for (NodeId id = 1; id < g->node.n; id++) {
    const Node *n = graph_node(g, id);
    bool on = false;
    for (u32 i = 0; i < n->nin; i++) on = on || (n->in[i] && d->active[n->in[i]]);
    for (u32 i = 0; on && i < n->nout; i++) {
      Val v = n->out[i];
      if (!d->fixed[v] && dtype_is_float(graph_type(g, v)->dt)) d->active[v] = true;
    }
  }
}

static _Noreturn void refuse(Graph *g, const Node *n) {
  fail(g->c, ERR_unsupported, g->loc, "the derivative of %s is not supported", op_info[n->op].name);
}

/* Hands on what the node's result got; false: there is no rule for it. */
static bool back(Grad *d, const Node *n) {
  if (n->nout != 1) { /* more results than one, of which some are asked for */
    for (u32 i = 0; i < n->nout; i++)
      if (d->adj[n->out[i]]) return false;
    return true;
  }
  Val v = n->out[0] < d->nval && !d->fixed[n->out[0]] ? d->adj[n->out[0]] : 0;
  return !v || back_node(d, n, v);
}

void grad(Graph *g, Val y, const Val *x, u32 nx, const Val *z, u32 nz, Val *out) {
  Arena *a = &g->c->work;
  Grad d = {.g = g, .nval = g->val.n};
  d.active = NEWS(a, bool, d.nval);
  d.fixed = NEWS(a, bool, d.nval);
  d.adj = NEWS(a, Val, d.nval);
  for (u32 i = 0; i < nx; i++) d.fixed[x[i]] = d.active[x[i]] = true;
  for (u32 i = 0; i < nz; i++) d.fixed[z[i]] = true, d.active[z[i]] = false;
  find_active(&d);
  Type t = *graph_type(g, y);
  if (d.active[y]) d.adj[y] = mk_broadcast(g, k(&d, y, 1), t.dim, t.rank);
  for (NodeId id = graph_val(g, y)->def; id > 0; id--) {
    Node n = *graph_node(g, id); /* building moves the nodes */
    if (!back(&d, &n)) refuse(g, &n);
  }
  for (u32 i = 0; i < nx; i++) {
    t = *graph_type(g, x[i]);
    out[i] = d.adj[x[i]];
    if (!out[i]) out[i] = mk_broadcast(g, mk_scalar(g, t.dt, 0), t.dim, t.rank);
  }
}
