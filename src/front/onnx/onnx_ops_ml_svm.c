/* onnx_ops_ml_svm.c: SVMRegressor, SVMClassifier.
 *
 * The kernel values of all rows and support vectors form one matrix. Its product with a constant
 * matrix gives the decisions between all pairs of classes. Probabilities of several classes use
 * libsvm's iteration (pairwise coupling) in a loop that freezes rows once they have converged.
 */
#include "front/onnx/onnx_ml.h"

#include <string.h>

typedef struct Pairs {
  Build *b;
  u32 classes, pairs;
} Pairs;

/* K(x, v) for rows x [n, f] and vectors v [m, f]: [n, m]. */
static Val kernel(Build *b, Val x, Val v) {
  Graph *g = b->g;
  MlNumbers p = ml_nums(b, "kernel_params");
  double gamma = p.n > 0 ? p.at[0] : 0, coef = p.n > 1 ? p.at[1] : 0,
         degree = p.n > 2 ? p.at[2] : 0;
  u32 type = on_choice(b, "kernel_type", "LINEAR RBF SIGMOID POLY");
  if (type == 1) {
    Val vectors = mk_unsqueeze(g, v, 0);
    Val d = mk_sub(g, mk_unsqueeze(g, x, 1), vectors);
    Val s = mk_reduce(g, OP_reduce_sum, mk_mul(g, d, d), &(i64){2}, 1, false);
    return mk_exp(g, mk_mulk(g, s, -gamma));
  }
  Val s = mk_contract(g, x, v, "nf,mf->nm");
  if (type == 0) return s;
  s = mk_addk(g, mk_mulk(g, s, gamma), coef);
  return type == 2 ? mk_tanh(g, s) : mk_pow(g, s, mk_like(g, s, degree));
}

static Val vectors(Build *b, Val x, u32 count) {
  MlNumbers v = ml_nums(b, "support_vectors");
  i64 features = on_static_dim(b, x, 1), dim[2] = {count, features};
  if (!count || !features || v.n / count != (u64)features || v.n % count)
    on_bad(b, "support_vectors has %u numbers, expected %u vectors of %lld features", v.n, count,
           (long long)features);
  return ml_const(b, on_dtype(b, x), v.at, dim, 2);
}

void build_svmregressor(Build *b) {
  Graph *g = b->g;
  Val x = ml_rows(b, on_in(b, 0)), s;
  MlNumbers w = ml_nums(b, "coefficients"), rho = ml_nums(b, "rho");
  i64 supports = on_int(b, "n_supports", 0), n = w.n, features = on_static_dim(b, x, 1);
  if (supports < 0 || supports > INT32_MAX || !rho.n)
    on_bad(b, "n_supports is %lld and rho has %u elements, expected 0 or more and at least one",
           (long long)supports, rho.n);
  if (n != (supports ? supports : features))
    on_bad(b, "found %lld coefficients, expected one for each support vector", (long long)n);
  Val k = supports ? kernel(b, x, vectors(b, x, (u32)supports)) : x;
  s = mk_contract(g, k, ml_const(b, on_dtype(b, x), w.at, &n, 1), "nm,m->n");
  s = mk_unsqueeze(g, mk_addk(g, s, rho.at[0]), 1);
  if (on_int(b, "one_class", 0)) {
    Val less = mk_like(g, s, -1);
    Val more = mk_like(g, s, 1);
    s = mk_select(g, mk_gt(g, s, mk_like(g, s, 0)), more, less);
  }
  b->out[0] = mk_cast(g, ml_post(b, s), DT_f32);
}

/* ---- pairs of classes ---- */

/* Coefficients as [vectors, pairs]: row j - 1 for the vectors of class i, row i for class j. */
static Val pair_matrix(Pairs *s, DType dt, const OnnxAttr *per, u32 total) {
  Build *b = s->b;
  MlNumbers w = ml_nums(b, "coefficients");
  i64 dim[2] = {total, s->pairs};
  u64 cells;
  if (w.n != (u64)(s->classes - 1) * total)
    on_bad(b, "found %u coefficients for %u vectors of %u classes, expected classes - 1 each", w.n,
           total, s->classes);
  if (!size_mul(total, s->pairs, &cells) || cells > (1u << 28))
    on_unsupported(b, "%u vectors of %u pairs of classes need more than 2^28 coefficients", total,
                   s->pairs);
  double *m = NEWS(&b->c->scratch, double, cells);
  u32 pair = 0, from_i = 0;
  for (u32 i = 0; i < s->classes; from_i += (u32)per->ints.at[i++]) {
    u32 from_j = from_i + (u32)per->ints.at[i];
    for (u32 j = i + 1; j < s->classes; from_j += (u32)per->ints.at[j++], pair++) {
      for (u32 k = 0; k < (u32)per->ints.at[i]; k++)
        m[(u64)(from_i + k) * s->pairs + pair] = w.at[(u64)(j - 1) * total + from_i + k];
      for (u32 k = 0; k < (u32)per->ints.at[j]; k++)
        m[(u64)(from_j + k) * s->pairs + pair] = w.at[(u64)i * total + from_j + k];
    }
  }
  return ml_const(b, dt, m, dim, 2);
}

/* [pairs, classes]: `first` at the first class of a pair, `other` at the second. */
static Val pair_table(Pairs *s, DType dt, double first, double second) {
  i64 dim[2] = {s->pairs, s->classes};
  double *m = NEWS(&s->b->c->scratch, double, (size_t)(dim[0] * dim[1]));
  u32 pair = 0;
  for (u32 i = 0; i < s->classes; i++)
    for (u32 j = i + 1; j < s->classes; j++, pair++) {
      m[pair * s->classes + i] = first;
      m[pair * s->classes + j] = second;
    }
  return ml_const(s->b, dt, m, dim, 2);
}

/* Number of pairs that each class wins, [rows, classes]. */
static Val votes(Pairs *s, Val score) {
  Graph *g = s->b->g;
  DType dt = on_dtype(s->b, score);
  Val won = mk_cast(g, mk_gt(g, score, mk_like(g, score, 0)), dt);
  Val lost = mk_sub(s->b->g, mk_like(g, won, 1), won);
  Val lose = mk_contract(g, lost, pair_table(s, dt, 0, 1), "np,pk->nk");
  return mk_add(s->b->g, mk_contract(g, won, pair_table(s, dt, 1, 0), "np,pk->nk"), lose);
}

/* ---- probabilities ---- */

typedef struct Couple {
  Pairs *s;
  Val q;    /* [rows, k, k] */
  Val live; /* bool [rows, 1]: not yet converged in this iteration */
} Couple;

/* [rows, k], [rows, k], [rows, 1], bool [rows, 1] */
enum { CP_p, CP_qp, CP_pqp, CP_done, CP_carried };

/* Updates one coordinate; carried: p, qp, pqp. */
static void couple_one(Graph *g, void *user, Val t, Val *cond, Val *carried, Val *scan) {
  Couple *c = user;
  (void)cond, (void)scan;
  Val row = mk_gather(g, c->q, t, 1); /* [rows, k] */
  Val diag = mk_unsqueeze(g, mk_gather(g, row, t, 1), 1),
      mine = mk_unsqueeze(g, mk_gather(g, carried[CP_qp], t, 1), 1);
  Val diff = mk_div(g, mk_sub(g, carried[CP_pqp], mine), diag), scale = mk_addk(g, diff, 1);
  Dim k = c->s->classes;
  Val here = mk_eq(g, mk_iota(g, DT_i64, &k, 1, 0), t), p = carried[CP_p];
  p = mk_div(g, mk_select(g, here, mk_add(g, p, diff), p), scale);
  Val twice = mk_mulk(g, mine, 2);
  Val term = mk_add(g, mk_mul(g, diff, diag), twice);
  Val square = mk_mul(g, scale, scale);
  Val pqp = mk_div(g, mk_add(g, carried[CP_pqp], mk_mul(g, diff, term)), square);
  Val qp = mk_div(g, mk_add(g, carried[CP_qp], mk_mul(g, diff, row)), scale);
  carried[CP_p] = p;
  carried[CP_qp] = qp;
  carried[CP_pqp] = pqp;
}

static void couple_round(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  Couple *c = user;
  (void)i, (void)scan;
  double k = c->s->classes;
  Val p = carried[CP_p], in[3], unused;
  in[CP_p] = p;
  in[CP_qp] = mk_contract(g, c->q, p, "nij,nj->ni");
  in[CP_pqp] = mk_reduce(g, OP_reduce_sum, mk_mul(g, p, in[CP_qp]), &(i64){1}, 1, true);
  Val err = mk_abs(g, mk_sub(g, in[CP_qp], in[CP_pqp]));
  err = mk_reduce(g, OP_reduce_max, err, &(i64){1}, 1, true);
  Val done = mk_or(g, carried[CP_done], mk_lt(g, err, mk_like(g, err, 0.005 / k)));
  mk_loop(g, mk_scalar(g, DT_i64, k), 0, in, 3, &unused, 0, couple_one, c);
  carried[CP_p] = mk_select(g, done, p, in[CP_p]);
  carried[CP_qp] = in[CP_qp];
  carried[CP_pqp] = in[CP_pqp];
  carried[CP_done] = done;
  *cond = mk_not(g, mk_reduce(g, OP_reduce_min, done, (const i64[]){0, 1}, 2, false));
}

/* Probability of the first class of each pair, [rows, pairs]. */
static Val pair_probability(Pairs *s, Val score) {
  Build *b = s->b;
  MlNumbers a = ml_nums(b, "prob_a"), c = ml_nums(b, "prob_b");
  i64 n = s->pairs;
  if (a.n != s->pairs || c.n != s->pairs)
    on_bad(b, "prob_a has %u elements and prob_b %u, expected %u", a.n, c.n, s->pairs);
  Val v = mk_mul(b->g, score, ml_const(b, on_dtype(b, score), a.at, &n, 1));
  v = mk_add(b->g, v, ml_const(b, on_dtype(b, score), c.at, &n, 1));
  Val p = compose_sigmoid(b->g, v);
  v = mk_sub(b->g, mk_like(b->g, v, 1), p);
  return mk_clamp(b->g, v, 1e-7, 1 - 1e-7);
}

static Val probabilities(Pairs *s, Val score) {
  Build *b = s->b;
  Graph *g = b->g;
  u32 k = s->classes;
  Val first = pair_probability(s, score), other = mk_sub(g, mk_like(g, first, 1), first);
  DType dt = on_dtype(b, score);
  /* r[i, j]: probability of i vs j; element 0, before the pairs, is the diagonal */
  i64 dim[2] = {k, k};
  Tensor *at = tensor_new(&b->c->work, DT_i64, dim, 2);
  u32 pair = 0;
  for (u32 i = 0; i < k; i++)
    for (u32 j = i + 1; j < k; j++, pair++) {
      tensor_set(at, (u64)i * k + j, (Scalar){.i = 1 + pair});
      tensor_set(at, (u64)j * k + i, (Scalar){.i = 1 + s->pairs + pair});
    }
  Dim rows = on_dim(b, score, 0), column[2] = {rows, 1}, square[2] = {rows, k};
  Val list[3] = {mk_full(g, mk_like(g, first, 0), column, 2), first, other};
  Val order = mk_const(g, at);
  Val r = mk_gather(g, mk_concat(g, list, 3, 1), order, 1),
      rt = mk_transpose(g, r, (const i64[]){0, 2, 1});
  Val sum = mk_reduce(g, OP_reduce_sum, mk_mul(g, rt, rt), &(i64){2}, 1,
                      true); /* sum over j of r[j, i]^2 */
  Dim kk[2] = {k, k};
  Val col = mk_iota(g, DT_i64, kk, 2, 1);
  Val diag = mk_eq(g, mk_iota(g, DT_i64, kk, 2, 0), col);
  Couple c = {.s = s, .q = mk_select(g, diag, sum, mk_neg(g, mk_mul(g, rt, r)))};
  Val zero = mk_scalar(g, dt, 0), unused;
  Val carried[CP_carried] = {mk_full(g, mk_scalar(g, dt, 1.0 / k), square, 2),
                             mk_full(g, zero, square, 2), mk_full(g, zero, column, 2),
                             mk_full(g, mk_scalar(g, DT_bool, 0), column, 2)};
  Val rounds = mk_scalar(g, DT_i64, k > 100 ? k : 100);
  mk_loop(g, rounds, mk_scalar(g, DT_bool, 1), carried, CP_carried, &unused, 0, couple_round, &c);
  return carried[CP_p];
}

/* ---- SVMClassifier ---- */

/* Without support vectors: one linear score per class. */
static void linear_classes(Build *b, Val x) {
  Graph *g = b->g;
  MlNumbers w = ml_nums(b, "coefficients"), rho = ml_nums(b, "rho");
  u32 classes = ml_label_count(b, "classlabels_ints");
  i64 dim[2] = {classes ? classes : 1, on_static_dim(b, x, 1)};
  if (classes < 2 || !rho.n || w.n != (u64)(dim[0] * dim[1]))
    on_unsupported(b, "a linear machine of this form");
  Val s = mk_contract(g, x, ml_const(b, on_dtype(b, x), w.at, dim, 2), "nf,of->no");
  s = mk_addk(g, s, rho.at[0]);
  b->out[0] = ml_labels(b, mk_arg(g, OP_argmax, s, 1, false, false), "classlabels_ints");
  if (on_wants(b, 1)) b->out[1] = mk_cast(g, ml_post(b, s), DT_f32);
}

void build_svmclassifier(Build *b) {
  Graph *g = b->g;
  Val x = ml_rows(b, on_in(b, 0));
  const OnnxAttr *per = on_attr(b, "vectors_per_class");
  MlNumbers rho = ml_nums(b, "rho");
  if (!per || per->type != OA_ints || !per->ints.n) {
    linear_classes(b, x);
    return;
  }
  Pairs s = {.b = b, .classes = per->ints.n, .pairs = per->ints.n * (per->ints.n - 1) / 2};
  u64 total = 0;
  for (u32 i = 0; i < per->ints.n; i++) {
    if (per->ints.at[i] < 0 || per->ints.at[i] > INT32_MAX)
      on_bad(b, "vectors_per_class has the element %lld, expected 0 or more",
             (long long)per->ints.at[i]);
    total += (u64)per->ints.at[i];
  }
  if (s.classes < 2 || s.classes > 4096 || total > INT32_MAX)
    on_bad(b,
           "vectors_per_class lists %u classes with %llu vectors, expected 2 to 4096 classes and "
           "less than 2^31 vectors",
           s.classes, (unsigned long long)total);
  if (rho.n != s.pairs)
    on_bad(b, "rho has %u elements, expected %u, one for each pair of classes", rho.n, s.pairs);
  u32 labels = ml_label_count(b, "classlabels_ints");
  if (labels && labels != s.classes)
    on_bad(b, "found %u labels, expected %u, one for each class", labels, s.classes);
  i64 n = s.pairs;
  Val k = kernel(b, x, vectors(b, x, (u32)total));
  Val score = mk_contract(g, k, pair_matrix(&s, on_dtype(b, x), per, (u32)total), "nm,mp->np");
  score = mk_add(g, score, ml_const(b, on_dtype(b, x), rho.at, &n, 1));
  b->out[0] =
      ml_labels(b, mk_arg(g, OP_argmax, votes(&s, score), 1, false, false), "classlabels_ints");
  if (!on_wants(b, 1)) return;
  Val out;
  if (ml_nums(b, "prob_a").n)
    out = ml_post(b, probabilities(&s, score));
  else
    out = s.pairs == 1 ? ml_two_scores(b, score, true) : ml_post(b, score);
  b->out[1] = mk_cast(g, out, DT_f32);
}
