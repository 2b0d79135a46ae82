/* cost.c: estimates the run time of a program.
 *
 * In: statements of a Prog. Out: nanoseconds of a single-threaded run, to compare alternatives:
 * cost of loops, loads, stores and operators (target.def, flags of ops.def) times how often they
 * run. Also statements executed, for budgets. Closed forms: the cost of one way to compute
 * something, in the unit that its users compare: see cost.h. */
#include "ir/prog/cost.h"
#include "ir/prog/affine.h"

#include <math.h>
#include <string.h>

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

double stmt_trip_count(Prog *p, const Range *var, const Stmt *s, bool *fixed) {
  double n = most_turns(p, var, s, fixed);
  return n > 1e9 ? figures.open_turns : n;
}

/* Indices become pointer increments and cost nothing. */
static double expr_time(Prog *p, ExprId id) {
  const Expr *e = prog_expr(p, id);
  double wide = e->rows ? e->rows : e->lanes > 8 ? e->lanes / 8.0 : e->lanes > 1 ? 1 : 2, sum = 0;
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
  if (s->kind == ST_for) return stmt_trip_count(p, var, s, &fixed) * (sum + figures.ns_per_turn);
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
  if (w->dot_i16x2) products *= t->cost->dot_i16x2_time;
  return side * side * products * w->places + read * (1 + more);
}

double traffic_time(const ThreadTraffic *r, double times) {
  return r->handed * figures.ns_per_byte_shared + r->torn * figures.ns_false_sharing +
         r->weights * times *
             (r->weights > figures.own_bytes ? figures.ns_per_byte_llc : figures.ns_per_byte_l2);
}

double traffic_alone(const ThreadTraffic *r) {
  return r->alone * figures.ns_per_byte_shared;
}
