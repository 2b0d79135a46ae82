/* train_loss.c: loss functions, as nodes.
 *
 * In: the result of a model. Out: the mean loss over its elements (cross_entropy: over its rows,
 * each of which has a class), and the parameter "label". Runs with invalid labels fail. If the
 * result is a softmax or its logarithm, or for bce a sigmoid, the loss is computed from the logits,
 * which neither overflows nor underflows.
 */
#include "pass/graph/train_internal.h"

#include <string.h>

typedef Val LossFn(Graph *g, const TrainOptions *o, Val y, Predictions *seen);

static Val total(Graph *g, Val x) {
  i64 axes[MAX_RANK];
  for (u32 i = 0; i < MAX_RANK; i++) axes[i] = i;
  return mk_reduce(g, OP_reduce_sum, x, axes, graph_type(g, x)->rank, false);
}

/* x divided by the number of elements of `of`. */
static Val per_element(Graph *g, Val x, Val of) {
  Dim n = type_count(g->dims, graph_type(g, of));
  Val count = mk_dims_as(g, DT_i64, 0, &n, 1);
  return mk_div(g, x, mk_cast(g, count, graph_type(g, x)->dt));
}

static Val mean(Graph *g, Val x) {
  return per_element(g, total(g, x), x);
}

static Val add_label(Graph *g, DType dt, const Dim *dim, u32 rank) {
  return graph_param(g, 1, type_tensor(&g->c->work, dt, dim, rank), str_of(g->c, "label"));
}

static Val label_like(Graph *g, Val y) {
  const Type *t = graph_type(g, y);
  return add_label(g, t->dt, t->dim, t->rank);
}

/* ---- cross entropy ---- */

/* Does v sum exponentials over the classes? */
static bool sums_exp(Graph *g, Val v, i64 axis) {
  const Node *n = graph_def(g, v, OP_reduce_sum);
  const Attr *axes = n ? node_attr(n, AT_axes) : NULL;
  return axes && axes->n == 1 && axes->u.list[0] == axis && graph_def(g, n->in[0], OP_exp);
}

/* The labels; a run with one out of range fails. check_index accepts negative indices, so they are
 * tested separately. */
static Val checked(Graph *g, Val label, Dim classes) {
  Val x = mk_check_index(g, label, &classes, 1);
  Val below = mk_cast(g, mk_lt(g, x, mk_like(g, x, 0)), DT_i64);
  return mk_add(g, x, mk_assert(g, below, "a label is below 0, expected a class number"));
}

/* Logarithms of the probabilities in y, from the logits if possible. */
static Val log_probability(Graph *g, Val y, i64 axis) {
  const Node *n = graph_def(g, y, OP_div);
  if (n && sums_exp(g, n->in[1], axis) && graph_def(g, n->in[0], OP_exp))
    return mk_sub(g, graph_def(g, n->in[0], OP_exp)->in[0], mk_log(g, n->in[1]));
  n = graph_def(g, y, OP_sub);
  const Node *log = n ? graph_def(g, n->in[1], OP_log) : NULL;
  if (log && sums_exp(g, log->in[0], axis)) return y;
  Val d = mk_sub(g, y, mk_reduce(g, OP_reduce_max, y, &axis, 1, true));
  Val sum = mk_reduce(g, OP_reduce_sum, mk_exp(g, d), &axis, 1, true);
  return mk_sub(g, d, mk_log(g, sum));
}

/* The label is the class number, i64, in the shape of y without the axis of classes. */
static Val cross_entropy(Graph *g, const TrainOptions *o, Val y, Predictions *seen) {
  Type t = *graph_type(g, y);
  if ((o->axis < 0 ? 1 : o->axis) >= t.rank)
    fail(g->c, ERR_unsupported, LOC_NONE,
         "cross_entropy: classes on axis %lld, but the result is %s",
         (long long)(o->axis < 0 ? 1 : o->axis), type_text(g->dims, &t));
  u32 axis = o->axis < 0 ? 1 : (u32)o->axis, rank = 0;
  Dim dim[MAX_RANK], kept[MAX_RANK];
  memcpy(kept, t.dim, t.rank * sizeof *kept);
  kept[axis] = 1;
  for (u32 i = 0; i < t.rank; i++)
    if (i != axis) dim[rank++] = t.dim[i];
  Val label = checked(g, add_label(g, DT_i64, dim, rank), t.dim[axis]);
  Val labels = mk_reshape(g, label, kept, t.rank);
  Val is = mk_eq(g, mk_iota(g, DT_i64, t.dim, t.rank, axis), labels);
  Val zero = mk_like(g, y, 0);
  Val log = log_probability(g, y, axis), taken = mk_select(g, is, log, zero);
  if (o->smoothing > 0) { /* the target is 1 - s of the label and s / classes of every class */
    Val classes = mk_cast(g, mk_dims_as(g, DT_i64, 0, &t.dim[axis], 1), t.dt);
    Val even = mk_mul(g, log, mk_div(g, mk_like(g, y, o->smoothing), classes));
    taken = mk_add(g, mk_mul(g, taken, mk_like(g, y, 1 - o->smoothing)), even);
  }
  seen->is = mk_arg(g, OP_argmax, y, axis, false, false);
  seen->right = total(g, mk_cast(g, mk_eq(g, seen->is, label), DT_i64));
  return mk_neg(g, per_element(g, total(g, taken), label));
}

/* ---- other losses; labels are floats in the shape of y ---- */

static Val mse(Graph *g, const TrainOptions *o, Val y, Predictions *seen) {
  (void)o, (void)seen;
  Val d = mk_sub(g, y, label_like(g, y));
  return mean(g, mk_mul(g, d, d));
}

static Val mae(Graph *g, const TrainOptions *o, Val y, Predictions *seen) {
  (void)o, (void)seen;
  return mean(g, mk_abs(g, mk_sub(g, y, label_like(g, y))));
}

static Val above(Graph *g, Val y, double level) {
  return mk_cast(g, mk_lt(g, mk_like(g, y, level), y), DT_i64);
}

/* max(z, 0) - z t + log(1 + exp(-|z|)) */
static Val bce_logits(Graph *g, const TrainOptions *o, Val z, Predictions *seen) {
  (void)o;
  seen->is = above(g, z, 0);
  Val t = label_like(g, z), e = mk_exp(g, mk_neg(g, mk_abs(g, z)));
  Val soft = mk_log(g, mk_add(g, e, mk_like(g, z, 1)));
  Val product = mk_mul(g, z, t);
  return mean(g, mk_add(g, mk_sub(g, mk_max(g, z, mk_like(g, z, 0)), product), soft));
}

/* The logit z of a sigmoid y = 1 / (exp(-z) + 1); 0: y is something else. */
static Val logit_of(Graph *g, Val y) {
  const Node *n = graph_def(g, y, OP_recip);
  n = n ? graph_def(g, n->in[0], OP_add) : NULL;
  const Tensor *one = n ? graph_const(g, n->in[1]) : NULL;
  n = one && one->n == 1 && tensor_get(one, 0).f == 1 ? graph_def(g, n->in[0], OP_exp) : NULL;
  n = n ? graph_def(g, n->in[0], OP_neg) : NULL;
  return n ? n->in[0] : 0;
}

/* Logarithms are clamped to -100. */
static Val bce(Graph *g, const TrainOptions *o, Val y, Predictions *seen) {
  Val z = logit_of(g, y);
  if (z) return bce_logits(g, o, z, seen);
  seen->is = above(g, y, 0.5);
  Val t = label_like(g, y), one = mk_like(g, y, 1), low = mk_like(g, y, -100);
  Val yes = mk_max(g, mk_log(g, y), low);
  Val no = mk_max(g, mk_log(g, mk_sub(g, one, y)), low);
  Val rest = mk_mul(g, mk_sub(g, one, t), no);
  return mk_neg(g, mean(g, mk_add(g, mk_mul(g, t, yes), rest)));
}

static const struct {
  const char *name;
  LossFn *make;
} losses[] = {{"cross_entropy", cross_entropy},
              {"mse", mse},
              {"mae", mae},
              {"bce", bce},
              {"bce_logits", bce_logits}};
enum { NLOSSES = sizeof losses / sizeof *losses };

Val train_loss(Graph *g, const TrainOptions *o, Val y, Predictions *seen) {
  u32 i = row_named(g->c, "loss", o->loss, losses, NLOSSES, sizeof *losses);
  if (o->smoothing > 0 && losses[i].make != cross_entropy)
    fail(g->c, ERR_usage, LOC_NONE, "smoothing is for loss cross_entropy, found loss %s", o->loss);
  return losses[i].make(g, o, y, seen);
}
