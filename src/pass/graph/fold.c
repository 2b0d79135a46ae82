/* fold.c: constant folding.
 *
 * In: a graph. Out: the same graph, where the reference evaluator has replaced nodes with constant
 * operands by their results. An `if` with a known condition is replaced by the branch, and a loop
 * that never runs by its initial values.
 *
 * Large results are not folded: above NODE_BYTES for one, ALL_BYTES for the graph, or BLOW_UP times
 * the operands for nodes that only repeat them (unless below SMALL elements). Nor are nodes that
 * need more than WORK steps of the slow evaluator. Contractions of f32 and f64 are fast there and
 * may take PRODUCTS steps, if the result is not larger than the operands.
 *
 * needs: nothing  keeps: types, up to symbols that become known  breaks: nothing (unused operands
 * are left to dce)
 */
#include <string.h>
#include "pass/pass.h"

enum { SMALL = 4096, BLOW_UP = 64, WORK = 1 << 24, PRODUCTS = 1 << 29 };
enum { SUM = 4 }; /* factor for the total of a graph */
#define NODE_BYTES ((u64)64 << 20)
#define ALL_BYTES  ((u64)512 << 20)

typedef struct Fold {
  SymbolRebind rebind;
  double work, products; /* steps spent by the evaluator, and by contractions */
} Fold;

/* Does the node only repeat its operands, many times? */
static bool blows_up(Graph *g, const Node *n, u64 nout) {
  if (n->op != OP_broadcast && n->op != OP_pad && n->op != OP_iota) return false;
  u64 nin = 0;
  if (n->nin) nin = graph_const(g, n->in[0])->n;
  return nout >= SMALL && nout / BLOW_UP >= nin;
}

/* Total bytes of the operands, all constants. */
static double bytes_of_operands(Graph *g, const Node *n) {
  double bytes = 0;
  for (u32 i = 0; i < n->nin; i++) {
    const Tensor *t = graph_const(g, n->in[i]);
    bytes += (double)t->n * (double)dtype_bytes(t->dt);
  }
  return bytes;
}

/* Spends so many steps, if they are left. */
static bool spend(double *spent, double work, double most) {
  if (work > most || *spent + work > SUM * most) return false;
  *spent += work;
  return true;
}

static bool affordable(Graph *g, Fold *f, const Node *n) {
  u64 bytes = 0;
  double work = node_steps(g, n, true);
  for (u32 i = 0; i < n->nout; i++) {
    const Type *t = graph_type(g, n->out[i]);
    u64 count, size;
    if (t->kind != TY_tensor) return false;
    if (n->op == OP_nonzero) {
      count = graph_const(g, n->in[0])->n * (t->dim[0] ? (u64)t->dim[0] : 1);
    } else if (!type_is_static(t) || !shape_count(t->dim, t->rank, &count)) {
      return false;
    }
    if (blows_up(g, n, count) || !size_mul(count, dtype_bytes(t->dt), &size)) return false;
    if (!size_add(bytes, size, &bytes)) return false;
  }
  if (bytes > NODE_BYTES || g->fold_bytes + bytes > ALL_BYTES) return false;
  bool product = n->op == OP_contract && dtype_is_float(graph_type(g, n->out[0])->dt) &&
                 dtype_bytes(graph_type(g, n->out[0])->dt) >= 4 &&
                 (double)bytes <= bytes_of_operands(g, n);
  if (!(product ? spend(&f->products, work, PRODUCTS) : spend(&f->work, work, WORK))) return false;
  g->fold_bytes += bytes;
  return true;
}

static void replace(GraphEdit *e, NodeId id, u32 i, Val by) {
  Fold *f = e->user;
  const Node *n = graph_node(e->g, id);
  rebind_result(&f->rebind, n, i, graph_type(e->g, by));
  edit_replace(e, n->out[i], by);
}

static bool evaluate(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  if (!node_folds(n)) return false;
  for (u32 i = 0; i < n->nin; i++) {
    if (!graph_const(g, n->in[i])) return false;
  }
  if (!affordable(g, e->user, n)) return false;
  u32 nin = n->nin, nout = n->nout;
  Tensor **in = NEWS(&g->c->scratch, Tensor *, nin + 1);
  Tensor **out = NEWS(&g->c->scratch, Tensor *, nout + 1);
  for (u32 i = 0; i < nin; i++)
    in[i] = node_attr(graph_node(g, graph_val(g, n->in[i])->def), AT_value)->u.t;
  ref_node(g, id, in, out, &g->c->work);
  for (u32 i = 0; i < nout; i++) replace(e, id, i, mk_const(g, out[i]));
  return true;
}

/* Removes a check of indices that are now constant and valid. */
static bool drop_check_index(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  u32 count;
  if (n->op != OP_check_index || !graph_const(g, n->in[0])) return false;
  const Dim *size = node_list(n, AT_size, &count);
  if (!index_fits(g, n->in[0], size, count)) return false;
  replace(e, id, 0, n->in[0]);
  return true;
}

static bool known_bool(Graph *g, Val v, bool *is) {
  const Tensor *t = graph_const(g, v);
  if (!t || t->n != 1) return false;
  *is = tensor_get(t, 0).i != 0;
  return true;
}

static bool take_branch(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  bool yes;
  if (n->op != OP_if || !known_bool(g, n->in[0], &yes)) return false;
  u32 nout = n->nout;
  Val *ret = NEWS(&g->c->scratch, Val, nout + 1);
  edit_inline(e, n->region[yes ? 0 : 1], ret);
  for (u32 i = 0; i < nout; i++) replace(e, id, i, ret[i]);
  return true;
}

/* A loop that never runs: carried values are unchanged, scans are empty. */
static bool skip_loop(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node *n = graph_node(g, id);
  bool go = true;
  if (n->op != OP_loop) return false;
  const Tensor *trip = graph_const(g, n->in[0]);
  bool never = trip && trip->n == 1 && tensor_get(trip, 0).i <= 0;
  if (!never && (!known_bool(g, n->in[1], &go) || go)) return false;
  u32 nout = n->nout, ncarried = n->nin - 2;
  for (u32 i = ncarried; i < nout; i++) {
    const Type *t = graph_type(g, n->out[i]);
    for (u32 k = 1; k < t->rank; k++) {
      if (!dim_is_const(t->dim[k])) return false;
    }
  }
  for (u32 i = 0; i < nout; i++) {
    n = graph_node(g, id);
    if (i < ncarried) {
      replace(e, id, i, n->in[2 + i]);
      continue;
    }
    const Type *t = graph_type(g, n->out[i]);
    i64 dim[MAX_RANK] = {0};
    for (u32 k = 1; k < t->rank; k++) dim[k] = t->dim[k];
    replace(e, id, i, mk_const(g, tensor_new(&g->c->work, t->dt, dim, t->rank)));
  }
  return true;
}

static bool visit(GraphEdit *e, NodeId id) {
  return !(take_branch(e, id) || skip_loop(e, id) || drop_check_index(e, id) || evaluate(e, id));
}

/* Repeats, because a symbol that becomes known may make more operands constant, and a known
 * condition may fix a trip count. */
void fold(Graph *g) {
  Fold f = {.work = 0};
  do {
    f.rebind = rebind_new(g);
    bool news = edit_run(g, visit, &f);
    if (f.rebind.to.n || (news && g->region.n > 2)) graph_refine(g, &f.rebind);
  } while (f.rebind.to.n);
}
