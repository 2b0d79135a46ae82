/* Derivatives: every operator has a row in grad.def; with arguments, graphs against differences.
 *
 *   grad [-w] [-r] FILE...   derivatives of the results of each graph (text, floats f64), summed
 *       with made-up factors, with respect to its parameters of floats (-w: and its constants of
 *       more than one element), beside central differences of the reference evaluator in double. A
 *       line for each file: the largest relative error, how many values, and of how many the
 *       derivatives are not all 0. Exit 1: above 1e-5, or none. -r: loops compute their turns
 * again.
 *
 * Contents are made up: floats in -1..1, integers in 0..1, or in the range that stands behind @ in
 * the label: "x@0.1..0.9". Of large values a few elements and a few directions are looked at.
 */
#include "pass/graph/grad.h"

#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Task {
  const char *path;
  bool weights, recompute;
  double worst;
  u32 count, some; /* values with derivatives, and those whose are not all 0 */
} Task;

typedef struct Bench {
  Ctx *c;
  Graph *g;    /* with the weighted sum as its only result */
  Graph *back; /* with the derivatives as results */
  Tensor **in; /* parameters */
  Tensor **x;  /* what derivatives are taken of: data of parameters and constants of g */
  u32 nx;
  u64 random;
  const Task *task;
} Bench;

static double unit(Bench *b) { /* 0..1 */
  b->random = b->random * 6364136223846793005u + 1442695040888963407u;
  return (double)(b->random >> 11) / 9007199254740992.0;
}

/* ---- the graph ---- */

/* One number of all results: each element times a factor in 0.5..1.5, or less that. */
static Val weighted(Bench *b, Graph *g) {
  Val sum = 0;
  for (u32 i = 0; i < g->region.at[1].ret.n; i++) {
    Val v = g->region.at[1].ret.at[i];
    Type t = *graph_type(g, v);
    if (!dtype_is_float(t.dt)) continue;
    v = mk_cast(g, v, DT_f64);
    i64 axes[MAX_RANK];
    for (u32 j = 0; j < t.rank; j++) axes[j] = j;
    if (!type_is_static(&t)) { /* open dimensions: squares */
      v = mk_reduce(g, OP_reduce_sum, mk_map2(g, OP_mul, v, v), axes, t.rank, false);
      sum = sum ? mk_map2(g, OP_add, sum, v) : v;
      continue;
    }
    Tensor *k = tensor_new(&g->c->work, DT_f64, t.dim, t.rank);
    for (u64 j = 0; j < k->n; j++)
      tensor_set(k, j, (Scalar){.f = (unit(b) + 0.5) * (unit(b) < 0.5 ? -1 : 1)});
    v = mk_reduce(g, OP_reduce_sum, mk_map2(g, OP_mul, v, mk_const(g, k)), axes, t.rank, false);
    sum = sum ? mk_map2(g, OP_add, sum, v) : v;
  }
  return sum;
}

static void only_results(Graph *g, const Val *v, u32 n) {
  g->region.at[1].ret.n = g->out_name.n = 0;
  g->state.n = 0;
  for (u32 i = 0; i < n; i++) graph_result(g, v[i], 0);
}

static Tensor *made_up(Bench *b, Graph *g, Val v) {
  const Type *t = graph_type(g, v);
  const char *range = strchr(str_text(g->c, graph_val(g, v)->name), '@');
  bool real = dtype_is_float(t->dt);
  double lo = real ? -1 : 0, hi = 1;
  if (range) sscanf(range + 1, "%lf..%lf", &lo, &hi);
  i64 dim[MAX_RANK];
  for (u32 i = 0; i < t->rank; i++) dim[i] = dim_is_const(t->dim[i]) ? t->dim[i] : 3;
  Tensor *x = tensor_new(&g->c->keep, t->dt, dim, t->rank);
  for (u64 i = 0; i < x->n; i++) {
    double r = unit(b);
    Scalar s = {.f = lo + r * (hi - lo)};
    if (!real) s.i = (i64)(lo + floor(r * (hi - lo + 1)));
    tensor_set(x, i, s);
  }
  return x;
}

/* Constants get data of their own, which can be changed. */
static Tensor *opened(Graph *g, NodeId id) {
  Node *n = graph_node(g, id);
  for (u32 i = 0; i < n->nattr; i++) {
    if (n->attr[i].key != AT_value) continue;
    Tensor *t = n->attr[i].u.t, *own = tensor_new(&g->c->keep, t->dt, t->dim, t->rank);
    for (u64 k = 0; k < t->n; k++) tensor_set(own, k, tensor_get(t, k));
    n->attr[i].u.t = own;
    return own;
  }
  return NULL;
}

static void prepare(Bench *b, const char *text, size_t n) {
  Ctx *c = b->c;
  Graph *g = graph_parse(c, text, n, str_of(c, b->task->path), NULL, 0);
  graph_check_input(g);
  Val *x = NEWS(&c->keep, Val, g->val.n), *out = NEWS(&c->keep, Val, g->val.n);
  b->x = NEWS(&c->keep, Tensor *, g->val.n);
  b->in = NEWS(&c->keep, Tensor *, g->region.at[1].param.n);
  for (u32 i = 0; i < g->region.at[1].param.n; i++) {
    Val p = g->region.at[1].param.at[i];
    b->in[i] = made_up(b, g, p);
    if (!dtype_is_float(b->in[i]->dt) || !b->in[i]->n) continue;
    x[b->nx] = p;
    b->x[b->nx++] = b->in[i];
  }
  for (u32 i = 0; b->task->weights && i < g->region.at[1].node.n; i++) {
    NodeId id = g->region.at[1].node.at[i];
    const Node *k = graph_node(g, id);
    Val v = k->nout ? k->out[0] : 0;
    if (k->op != OP_const || !dtype_is_float(graph_type(g, v)->dt)) continue;
    if (graph_const(g, v)->n < 2) continue;
    x[b->nx] = v;
    b->x[b->nx++] = opened(g, id);
  }
  Val y = weighted(b, g);
  b->g = graph_copy(g);
  only_results(b->g, &y, 1);
  grad_with(g, &(GradOptions){.recompute = b->task->recompute}, y, x, b->nx, NULL, 0, out);
  only_results(g, out, b->nx);
  graph_check(g);
  b->back = g;
}

/* ---- differences ---- */

static double value(Bench *b) {
  Tensor *out;
  RefOptions o = {.wide = true};
  Mark m = arena_mark(&b->c->scratch);
  ref_run(b->g, &o, b->in, &out, &b->c->scratch);
  double y = tensor_get(out, 0).f;
  arena_rewind(&b->c->scratch, m);
  return y;
}

/* Slope of the sum along a direction: element `at` alone where that is not negative. */
static double slope(Bench *b, Tensor *x, i64 at, const double *way, double h) {
  double end[2];
  double *old = NEWS(&b->c->keep, double, x->n);
  for (u64 i = 0; i < x->n; i++) old[i] = tensor_get(x, i).f;
  for (u32 k = 0; k < 2; k++) {
    for (u64 i = 0; i < x->n; i++) {
      double by = at < 0 ? way[i] : (i64)i == at;
      tensor_set(x, i, (Scalar){.f = old[i] + (k ? -h : h) * by});
    }
    end[k] = value(b);
  }
  for (u64 i = 0; i < x->n; i++) tensor_set(x, i, (Scalar){.f = old[i]});
  return (end[0] - end[1]) / (2 * h);
}

/* Smaller steps where a corner may lie between the ends. */
static double error_of(Bench *b, Tensor *x, i64 at, const double *way, double got, double scale) {
  double best = INFINITY;
  for (double h = 1e-4; h > 1e-7 && !(best <= 1e-6); h /= 10) {
    double e = fabs(slope(b, x, at, way, h) - got) / scale;
    if (!(e >= best)) best = e;
  }
  return best;
}

/* NaN is larger than all. */
static double larger(double a, double b) {
  return isnan(a) || a > b ? a : b;
}

static double compare(Bench *b, Task *t, Tensor *x, const Tensor *d) {
  double worst = 0, most = 0, sum = 0;
  u64 few = x->n <= 40 ? x->n : 6;
  double *way = NEWS(&b->c->keep, double, x->n);
  for (u64 i = 0; i < d->n; i++) {
    double k = tensor_get(d, i).f;
    if (isnan(k)) return INFINITY;
    most = fmax(most, fabs(k));
    sum += k * k;
  }
  if (most > 0) t->some++;
  double scale = fmax(most, 1e-3);
  for (u64 i = 0; i < few; i++) {
    u64 at = few == x->n ? i : (u64)(unit(b) * (double)x->n);
    worst = larger(worst, error_of(b, x, (i64)at, way, tensor_get(d, at).f, scale));
  }
  for (u32 k = 0; few < x->n && k < 2; k++) {
    double got = 0;
    for (u64 i = 0; i < x->n; i++) {
      way[i] = (unit(b) * 2 - 1) / sqrt((double)x->n);
      got += way[i] * tensor_get(d, i).f;
    }
    worst =
        larger(worst, error_of(b, x, -1, way, got, fmax(fabs(got), fmax(1e-3, 0.1 * sqrt(sum)))));
  }
  return worst;
}

static void look(Ctx *c, void *arg) {
  Task *t = arg;
  Bench b = {.c = c, .task = t, .random = 12345};
  FILE *f = fopen(t->path, "rb");
  if (!f) fail(c, ERR_system, LOC_NONE, "%s: cannot be read", t->path);
  fseek(f, 0, SEEK_END);
  size_t n = (size_t)ftell(f);
  rewind(f);
  char *text = NEWS(&c->keep, char, n + 1);
  n = fread(text, 1, n, f);
  fclose(f);
  prepare(&b, text, n);
  Tensor **out = NEWS(&c->keep, Tensor *, b.nx + 1);
  RefOptions o = {.wide = true};
  ref_run(b.back, &o, b.in, out, &c->keep);
  t->count = b.nx;
  for (u32 i = 0; i < b.nx; i++) t->worst = fmax(t->worst, compare(&b, t, b.x[i], out[i]));
}

static int look_at(Task *t) {
  Ctx *c = ctx_new(NULL, NULL);
  Err e = ctx_protect(c, look, t);
  bool ok = !e && t->worst <= 1e-5 && t->some;
  printf("%s %.2g %u %u%s%s\n", t->path, t->worst, t->count, t->some, ok ? "" : " WRONG ",
         e ? (c->diags ? c->diags->text : "failed") : "");
  ctx_free(c);
  return !ok;
}

int main(int argc, char **argv) {
  Task t = {0};
  int wrong = 0;
  for (int i = 1; i < argc; i++) {
    t.weights = t.weights || !strcmp(argv[i], "-w");
    t.recompute = t.recompute || !strcmp(argv[i], "-r");
    if (argv[i][0] == '-') continue;
    t.path = argv[i];
    t.worst = 0;
    t.some = 0;
    wrong += look_at(&t);
  }
  for (u32 op = 0; op < OP_COUNT; op++) {
    const char *why = grad_reason((Op)op);
    CHECK(!why || *why);
    CHECK(!why || !strstr(why, "no row"));
  }
  return wrong ? 1 : check_end();
}
