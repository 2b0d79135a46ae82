/* graph_work.c: estimates the work of a graph.
 *
 * In: a graph. Out: operations, as a possibly huge floating-point number: elements written times
 * elements summed for each, times known trip counts. A lower bound with symbolic extents at their
 * minimum, an upper bound per node with extents at their maximum. Meant for limits and budgets, not
 * for predicting times. Also counts the multiply-adds shown in reports. */
#include "ir/graph/graph.h"

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
  for (u32 i = 0; i < g->region.at[b].node.n; i++) {
    NodeId id = g->region.at[b].node.at[i];
    const Node *n = graph_node(g, id);
    double x, y;
    if (n->op == OP_loop) {
      double count = fmax((double)loop_trip_count(g, n), 0);
      x = count * (ITERATION + region_steps(g, n->region[0], times * count, costliest, max_cost));
      y = count * ITERATION;
    } else if (n->op == OP_if) {
      double then_cost = region_steps(g, n->region[0], 0, costliest, max_cost),
             else_cost = region_steps(g, n->region[1], 0, costliest, max_cost);
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
static double trip_count(const Sizes *z, const Node *n) {
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
  for (u32 i = 0; i < g->region.at[b].node.n; i++) {
    const Node *n = graph_node(g, g->region.at[b].node.at[i]);
    if (op_info[n->op].kind == OK_CONTRACT)
      macs += elements(z, n->out[0]) * products(z, n) / zeros_between(g, n);
    if (n->op == OP_loop) macs += trip_count(z, n) * region_macs(z, n->region[0]);
    if (n->op == OP_if) {
      double then_cost = region_macs(z, n->region[0]), else_cost = region_macs(z, n->region[1]);
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
