/* cost.c: how much work a graph asks for.
 *
 * In: a graph. Out: operations, as a floating-point number that may be enormous: elements written,
 * times those summed up for each; iterations of loops whose number is certain. A lower bound when
 * symbolic extents are taken at their smallest, an upper bound for a node when at their largest;
 * good for refusing and for budgets, not for predicting times. The multiply-adds that people are
 * told are counted here too.
 */
#include "ir/graph.h"

#include <string.h>

/* An iteration costs what its body costs, and about so much as this many operations of a long row.
 */
#define ITERATION 1000.0

/* How symbolic extents are taken. */
typedef struct Sizes {
  Graph *g;
  bool most;      /* at their largest, else at their smallest */
  const i64 *env; /* or, unless NULL, with these symbols */
} Sizes;

static double extent(const Sizes *z, Dim d) {
  i64 lo, hi;
  if (z->env) return (double)dim_eval(z->g->dims, d, z->env);
  dim_bounds(z->g->dims, d, &lo, &hi);
  return (double)(z->most ? hi : lo);
}

static double elements(const Sizes *z, Val v) {
  const Type *t = graph_type(z->g, v);
  double n = 1;
  if (t->kind != TY_tensor) return 1;
  for (u32 i = 0; i < t->rank; i++) n *= extent(z, t->dim[i]);
  return n;
}

/* Products that are summed up for one element of the result. */
static double products(const Sizes *z, const Node *n) {
  Graph *g = z->g;
  const Type *x = graph_type(g, n->in[0]), *w = graph_type(g, n->in[1]);
  double all = 1;
  if (n->op == OP_conv) {
    u32 ns = 0;
    const Dim *dilate =
        node_list(n, AT_input_dilation, &ns); /* of so many weights one meets an element */
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

double node_steps(Graph *g, const Node *n, bool most) {
  const Sizes z = {g, most, NULL};
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
    for (u32 i = 0; i < n->nin; i++)
      if (n->in[i]) all += elements(&z, n->in[i]);
    return all;
  }
}

/* Iterations of a loop that nothing but its count ends; 0 for others. */
static double iterations(Graph *g, const Node *n) {
  const Tensor *trip = graph_const(g, n->in[0]), *go = graph_const(g, n->in[1]);
  const Blk *b = &g->blk.at[n->blk[0]];
  const Tensor *next = graph_const(g, b->ret.at[0]);
  bool stays = b->ret.at[0] == b->param.at[1] || (next && next->n == 1 && tensor_get(next, 0).i);
  if (!trip || trip->n != 1 || !go || go->n != 1 || !tensor_get(go, 0).i || !stays) return 0;
  double count = (double)tensor_get(trip, 0).i;
  return count > 0 ? count : 0;
}

static double block_steps(Graph *g, BlkId b, double times, NodeId *dear, double *dearest) {
  double all = 0;
  for (u32 i = 0; i < g->blk.at[b].node.n; i++) {
    NodeId id = g->blk.at[b].node.at[i];
    const Node *n = graph_node(g, id);
    double x, y;
    if (n->op == OP_loop) {
      double count = iterations(g, n);
      x = count * (ITERATION + block_steps(g, n->blk[0], times * count, dear, dearest));
      y = count * ITERATION;
    } else if (n->op == OP_if) {
      double yes = block_steps(g, n->blk[0], 0, dear, dearest),
             no = block_steps(g, n->blk[1], 0, dear, dearest);
      x = y = yes < no ? yes : no;
    } else {
      x = y = node_steps(g, n, false);
    }
    all += x;
    if (times * y <= *dearest) continue;
    *dearest = times * y;
    *dear = id;
  }
  return all;
}

double graph_steps(Graph *g, NodeId *dear) {
  double dearest = 0;
  *dear = 0;
  return block_steps(g, 1, 1, dear, &dearest);
}

/* A convolution over something with zeros between its elements multiplies so many times fewer
 * elements; transposed convolutions are imported so. */
static double zeros_between(Graph *g, const Node *n) {
  NodeId def = g->val.at[n->in[0]].def;
  const Node *pad = def ? graph_node(g, def) : NULL;
  u32 rank = 0;
  double all = 1;
  if (n->op != OP_conv || !pad || pad->op != OP_pad) return 1;
  const Dim *between = node_list(pad, AT_interior, &rank);
  for (u32 i = 0; i < rank; i++)
    if (dim_is_const(between[i])) all *= (double)between[i] + 1;
  return all;
}

/* Iterations of a loop: of its count where that is known, or bounded. */
static double trips(const Sizes *z, const Node *n) {
  i64 lo, hi;
  Dim d;
  u32 count;
  if (graph_dim_list(z->g, n->in[0], &d, 1, &count) && count == 1) return extent(z, d);
  value_span(z->g, n->in[0], &lo, &hi);
  return hi > 0 && hi < INT32_MAX ? (double)hi : 1;
}

/* Of a choice the dearer branch. */
static double block_macs(const Sizes *z, BlkId b) {
  Graph *g = z->g;
  double macs = 0;
  for (u32 i = 0; i < g->blk.at[b].node.n; i++) {
    const Node *n = graph_node(g, g->blk.at[b].node.at[i]);
    if (op_info[n->op].kind == OK_CONTRACT)
      macs += elements(z, n->out[0]) * products(z, n) / zeros_between(g, n);
    if (n->op == OP_loop) macs += trips(z, n) * block_macs(z, n->blk[0]);
    if (n->op == OP_if) {
      double yes = block_macs(z, n->blk[0]), no = block_macs(z, n->blk[1]);
      macs += yes > no ? yes : no;
    }
  }
  return macs;
}

double graph_macs(Graph *g, bool bounds) {
  u32 ns = dim_nsyms(g->dims);
  i64 *env = bounds ? NULL : NEWS(&g->c->scratch, i64, ns + 1);
  for (u32 i = 0; env && i < ns; i++) env[i] = 1;
  const Sizes z = {g, true, env};
  return block_macs(&z, 1);
}
