/* cost.c: estimates the work of a graph and the run time of a program.
 *
 * Graph: operations, as a possibly huge floating-point number: elements written times elements
 * summed for each, times known trip counts. A lower bound with symbolic extents at their minimum,
 * an upper bound per node with extents at their maximum. Meant for limits and budgets, not for
 * predicting times. Also counts the multiply-adds shown in reports.
 * Program: nanoseconds of a single-threaded run, to compare alternatives: cost of loops, loads,
 * stores and operators (target.def, flags of ops.def) times how often they run. Also statements
 * executed, for budgets.
 * Closed forms: the cost of one way to compute something, in the unit that its users compare: see
 * cost.h. */
#include "ir/affine.h"
#include "ir/cost.h"
#include "ir/graph.h"

#include <math.h>
#include <string.h>

/* Overhead of a loop iteration, in operations on a long row; its body comes on top. */
#define ITERATION 1000.0

/* How symbolic extents are evaluated. */
typedef struct Sizes {
  Graph *g;
  bool upper;     /* at their maximum, else at their minimum */
  const i64 *env; /* values of symbols, or NULL */
} Sizes;

static double extent(const Sizes *z, Dim d) {
  i64 lo, hi;
  if (z->env) return (double)dim_eval(z->g->dims, d, z->env);
  dim_bounds(z->g->dims, d, &lo, &hi);
  return (double)(z->upper ? hi : lo);
}

static double elements(const Sizes *z, Val v) {
  const Type *t = graph_type(z->g, v);
  double n = 1;
  if (t->kind != TY_tensor) return 1;
  for (u32 i = 0; i < t->rank; i++) n *= extent(z, t->dim[i]);
  return n;
}

/* Products summed for one element of the result. */
static double products(const Sizes *z, const Node *n) {
  Graph *g = z->g;
  const Type *x = graph_type(g, n->in[0]), *w = graph_type(g, n->in[1]);
  double all = 1;
  if (n->op == OP_conv) {
    u32 ns = 0;
    const Dim *dilate =
        node_list(n, AT_input_dilation, &ns); /* one of this many weights meets an element */
    for (u32 i = 1; i < w->rank; i++) all *= extent(z, w->dim[i]);
    for (u32 i = 0; dilate && i < ns; i++) all /= (double)dilate[i];
    return all;
  }
  const char *spec = str_text(g->c, node_attr(n, AT_spec)->u.s), *result = strstr(spec, "->");
  for (u32 i = 0; i < x->rank; i++)
    if (!result || !strchr(result, spec[i])) all *= extent(z, x->dim[i]);
  for (u32 i = 0; i < w->rank; i++) {
    char ch = spec[x->rank + 1 + i];
    if ((!result || !strchr(result, ch)) && !memchr(spec, ch, x->rank)) all *= extent(z, w->dim[i]);
  }
  return all;
}

double node_steps(Graph *g, const Node *n, bool upper) {
  const Sizes z = {g, upper, NULL};
  double all = 0;
  u32 nwin;
  const Dim *window;
  for (u32 i = 0; i < n->nout; i++) all += elements(&z, n->out[i]);
  switch (op_info[n->op].kind) {
  case OK_CONTRACT: return all * products(&z, n);
  case OK_WINDOW:
    window = node_list(n, AT_window, &nwin);
    for (u32 i = 0; i < nwin; i++) all *= extent(&z, window[i]);
    return all;
  default:
    if (n->op == OP_nms) all *= extent(&z, graph_type(g, n->in[0])->dim[2]);
    for (u32 i = 0; i < n->nin; i++)
      if (n->in[i]) all += elements(&z, n->in[i]);
    return all;
  }
}

static double region_steps(Graph *g, RegionId b, double times, NodeId *costliest,
                           double *max_cost) {
  double all = 0;
  for (u32 i = 0; i < g->blk.at[b].node.n; i++) {
    NodeId id = g->blk.at[b].node.at[i];
    const Node *n = graph_node(g, id);
    double x, y;
    if (n->op == OP_loop) {
      double count = fmax((double)loop_trip_count(g, n), 0);
      x = count * (ITERATION + region_steps(g, n->blk[0], times * count, costliest, max_cost));
      y = count * ITERATION;
    } else if (n->op == OP_if) {
      double then_cost = region_steps(g, n->blk[0], 0, costliest, max_cost),
             else_cost = region_steps(g, n->blk[1], 0, costliest, max_cost);
      x = y = then_cost < else_cost ? then_cost : else_cost;
    } else {
      x = y = node_steps(g, n, false);
    }
    all += x;
    if (times * y <= *max_cost) continue;
    *max_cost = times * y;
    *costliest = id;
  }
  return all;
}

double graph_steps(Graph *g, NodeId *costliest) {
  double max_cost = 0;
  *costliest = 0;
  return region_steps(g, 1, 1, costliest, &max_cost);
}

/* A convolution over an input with inserted zeros (an imported transposed convolution) multiplies
 * fewer elements by this factor. */
static double zeros_between(Graph *g, const Node *n) {
  const Node *pad = graph_def(g, n->in[0], OP_pad);
  u32 rank = 0;
  double all = 1;
  if (n->op != OP_conv || !pad) return 1;
  const Dim *between = node_list(pad, AT_interior, &rank);
  for (u32 i = 0; i < rank; i++)
    if (dim_is_const(between[i])) all *= (double)between[i] + 1;
  return all;
}

/* Trip count of a loop if known, else its bound. */
static double trips(const Sizes *z, const Node *n) {
  i64 lo, hi;
  Dim d;
  u32 count;
  if (graph_dim_list(z->g, n->in[0], &d, 1, &count) && count == 1) return extent(z, d);
  value_int_range(z->g, n->in[0], &lo, &hi);
  return hi > 0 && hi < INT32_MAX ? (double)hi : 1;
}

/* OP_if counts as its more expensive branch. */
static double region_macs(const Sizes *z, RegionId b) {
  Graph *g = z->g;
  double macs = 0;
  for (u32 i = 0; i < g->blk.at[b].node.n; i++) {
    const Node *n = graph_node(g, g->blk.at[b].node.at[i]);
    if (op_info[n->op].kind == OK_CONTRACT)
      macs += elements(z, n->out[0]) * products(z, n) / zeros_between(g, n);
    if (n->op == OP_loop) macs += trips(z, n) * region_macs(z, n->blk[0]);
    if (n->op == OP_if) {
      double then_cost = region_macs(z, n->blk[0]), else_cost = region_macs(z, n->blk[1]);
      macs += then_cost > else_cost ? then_cost : else_cost;
    }
  }
  return macs;
}

double graph_macs(Graph *g, bool bounds) {
  u32 ns = dim_nsyms(g->dims);
  i64 *env = bounds ? NULL : NEWS(&g->c->scratch, i64, ns + 1);
  for (u32 i = 0; env && i < ns; i++) env[i] = 1;
  const Sizes z = {g, true, env};
  return region_macs(&z, 1);
}

/* ---- programs ---- */

/* Is b = a + *by for a constant? True for the bounds of a strip-mined loop. */
static bool ends_differ_by(Prog *p, ExprId a, ExprId b, i64 *by) {
  Affine x, y;
  return affine_of(p, a, &x) && affine_of(p, b, &y) && x.n && affine_differ_by(&x, &y, by);
}

static double most_turns(Prog *p, const Range *var, const Stmt *s, bool *fixed) {
  i64 by;
  if ((*fixed = ends_differ_by(p, s->a, s->b, &by)))
    return by > 0 ? ceil((double)by / (double)s->step) : 0;
  Range lo = ex_range(p, s->a, var), hi = ex_range(p, s->b, var);
  *fixed = lo.lo == lo.hi && hi.lo == hi.hi;
  double n = ceil(((double)hi.hi - (double)lo.lo) / (double)s->step);
  return n > 0 ? n : 0;
}

double loop_trips(Prog *p, const Range *var, const Stmt *s, bool *fixed) {
  double n = most_turns(p, var, s, fixed);
  return n > 1e9 ? figures.open_turns : n;
}

/* Indices become pointer increments and cost nothing. */
static double expr_time(Prog *p, ExprId id) {
  const Expr *e = prog_expr(p, id);
  double wide = e->lanes > 8 ? e->lanes / 8.0 : e->lanes > 1 ? 1 : 2, sum = 0;
  if (e->kind == EX_load) return figures.ns_per_step * wide;
  for (u32 i = 0; i < e->narg; i++) sum += expr_time(p, e->arg[i]);
  if (e->kind == EX_const || e->kind == EX_var || e->kind == EX_splat) return sum;
  double steps = e->kind != EX_op        ? 2
                 : op_is(e->op, OF_FUNC) ? figures.func_steps
                 : op_is(e->op, OF_SLOW) ? figures.slow_steps
                                         : 1;
  return sum + figures.ns_per_step * wide * steps;
}

double stmt_time(Prog *p, const Range *var, StmtId id) {
  const Stmt *s = prog_stmt(p, id);
  double sum = list_time(p, var, s->body), own = s->kind == ST_store ? figures.ns_per_step : 0;
  bool fixed;
  if (s->kind == ST_for) return loop_trips(p, var, s, &fixed) * (sum + figures.ns_per_turn);
  if (s->kind == ST_while) return figures.open_turns * (sum + expr_time(p, s->a));
  return own + sum + list_time(p, var, s->other) + (s->a ? expr_time(p, s->a) : 0);
}

double list_time(Prog *p, const Range *var, StmtId first) {
  double sum = 0;
  for (StmtId s = first; s; s = prog_stmt(p, s)->next) sum += stmt_time(p, var, s);
  return sum;
}

double prog_time(Prog *p, double *each) {
  const Range *var = prog_ranges(p, NULL, &p->c->scratch);
  double calls = 0;
  for (StmtId s = 1; each && s < p->stmt.n; s++)
    if (prog_stmt(p, s)->kind == ST_kernel) each[s] = stmt_time(p, var, s);
  for (StmtId s = p->body; s; s = prog_stmt(p, s)->next)
    if (prog_stmt(p, s)->kind == ST_kernel) calls += figures.call_ns;
  return list_time(p, var, p->body) + calls;
}

/* A while loop counts as one iteration: its condition depends on data. */
static double list_steps(Prog *p, const Range *var, StmtId first) {
  double sum = 0;
  bool fixed;
  for (StmtId id = first; id; id = prog_stmt(p, id)->next) {
    const Stmt *s = prog_stmt(p, id);
    double times = s->kind == ST_for ? most_turns(p, var, s, &fixed) : 1;
    sum += 1 + times * (list_steps(p, var, s->body) + list_steps(p, var, s->other));
  }
  return sum;
}

double prog_steps(Prog *p) {
  return list_steps(p, prog_ranges(p, NULL, &p->c->scratch), p->body);
}

u64 list_runs(Prog *p, StmtId first, u64 limit) {
  u64 sum = 0;
  for (StmtId id = first; id && sum <= limit; id = prog_stmt(p, id)->next) {
    const Stmt *s = prog_stmt(p, id);
    i64 lo, hi;
    if (s->kind == ST_while || s->kind == ST_require) return limit + 1;
    u64 body = 1 + list_runs(p, s->body, limit) + list_runs(p, s->other, limit);
    if (s->kind == ST_for && (!ex_is_int(p, s->a, &lo) || !ex_is_int(p, s->b, &hi)))
      return limit + 1;
    u64 turns = s->kind != ST_for ? 1 : hi > lo ? (u64)(hi - lo) : 0;
    sum += turns > limit ? limit + 1 : turns * body;
  }
  return sum;
}

/* ---- closed forms ---- */

i64 extent_upto(Dims *ds, Dim d, i64 limit) {
  i64 lo, hi;
  dim_bounds(ds, d, &lo, &hi);
  return dim_is_const(d) || hi < limit ? hi : limit;
}

i64 extent_bound(Dims *ds, Dim d) {
  i64 lo, hi, open = (i64)figures.open_turns;
  dim_bounds(ds, d, &lo, &hi);
  return hi < DIM_MAX ? hi : lo > open ? lo : open;
}

/* Loads the accumulator and adds; a row of accumulators is also stored. Strided operands cost more
 * than one load: compilers vectorize contiguous ones if the target has vectors. */
double sum_step(double turns, bool row, u32 strides) {
  double step = (row ? 3 : 2) + figures.stride_loads * (double)strides;
  return step * (1 + figures.loop_loads / turns);
}

/* Vectors come from L2, scalars from L1; an accumulator waits for the previous step. */
double tile_step(const Costs *c, i64 rows, i64 panels) {
  double products = fmax((double)(rows * panels), c->fma_wait);
  return rows ? products + c->vector_load * (double)panels + c->element_load * (double)rows : 0;
}

/* Products of all patches, plus the time to load their weights from memory. */
double conv3x3_time(const Target *t, const ConvWork *w) {
  double side = w->m ? w->m + 2 : 3, products = w->in * w->out,
         bytes = side * side * products * w->each_bytes;
  double read = figures.byte_read * t->lanes * bytes;
  double more = w->m && bytes > figures.l2_bytes ? figures.byte_again * w->again : 0;
  if (w->dot2) products *= t->cost->dot2_time;
  return side * side * products * w->places + read * (1 + more);
}

double traffic_time(const ShareTraffic *r, double times) {
  return r->handed * figures.ns_per_byte_shared + r->torn * figures.ns_false_sharing +
         r->weights * times *
             (r->weights > figures.own_bytes ? figures.ns_per_byte_llc : figures.ns_per_byte_l2);
}

double traffic_alone(const ShareTraffic *r) {
  return r->alone * figures.ns_per_byte_shared;
}
