/* match.c: recognises softmax, norms, attention and activations in canonical form. See match.h. */
#include "pass/graph/match.h"

#include <math.h>
#include <string.h>

const char *const act_name[ACT_COUNT] = {
    [ACT_relu] = "relu",
    [ACT_clip] = "clip",
    [ACT_sigmoid] = "sigmoid",
    [ACT_silu] = "silu",
    [ACT_gelu] = "gelu",
    [ACT_gelu_tanh] = "gelu",
    [ACT_hard_swish] = "hard swish",
    [ACT_softplus] = "softplus",
    [ACT_mish] = "mish",
};

/* Operand of a one-operand node op; 0 if v is not one. */
static Val under(Graph *g, Val v, Op op) {
  const Node *n = graph_def(g, v, op);
  return n ? n->in[0] : 0;
}

static bool number(Graph *g, Val v, double *x) {
  const Tensor *t = graph_const(g, v);
  if (!t || t->n != 1 || !dtype_is_float(t->dt)) return false;
  *x = tensor_get(t, 0).f;
  return true;
}

/* v = op(x, k) for a number k. Constants stand second. */
static Val by_number(Graph *g, Val v, Op op, double *k) {
  const Node *n = graph_def(g, v, op);
  return n && number(g, n->in[1], k) ? n->in[0] : 0;
}

static bool near(double x, double y) {
  return fabs(x - y) <= 1e-5 * fabs(y);
}

static Val plus(Graph *g, Val v, double k) {
  double x;
  Val a = by_number(g, v, OP_add, &x);
  return a && x == k ? a : 0;
}

static Val times(Graph *g, Val v, double k) {
  double x;
  Val a = by_number(g, v, OP_mul, &x);
  return a && near(x, k) ? a : 0;
}

/* The operand of op(x, y) that is not x; 0 if v is not such a node. */
static Val other(Graph *g, Val v, Op op, Val x) {
  const Node *n = graph_def(g, v, op);
  if (!n) return 0;
  return n->in[0] == x ? n->in[1] : n->in[1] == x ? n->in[0] : 0;
}

static bool same_axes(const Dim *a, u32 na, const Dim *b, u32 nb) {
  return na == nb && !memcmp(a, b, na * sizeof *a);
}

/* ---- means ---- */

/* Is v the number of elements d, known or not before running? */
static bool is_count(Graph *g, Val v, Dim d) {
  double x;
  if (number(g, v, &x)) return dim_is_const(d) && x == (double)d;
  const Node *n = graph_def(g, v, OP_cast);
  n = graph_def(g, n ? n->in[0] : v, OP_dims);
  u32 count;
  const Dim *shape = n ? node_list(n, AT_shape, &count) : NULL;
  return shape && count == 1 && shape[0] == d;
}

bool match_mean(Graph *g, Val v, Mean *m) {
  double k;
  Val product = by_number(g, v, OP_mul, &k);
  const Node *q = graph_def(g, v, OP_div);
  const Node *sum = graph_def(g, product ? product : q ? q->in[0] : 0, OP_reduce_sum);
  if (!sum) return false;
  const Type *t = graph_type(g, sum->in[0]);
  Dim dim[MAX_RANK], all;
  *m = (Mean){.x = sum->in[0], .axes = node_list(sum, AT_axes, &m->naxes)};
  m->axes = node_list(sum, AT_axes, &m->naxes);
  for (u32 i = 0; i < m->naxes; i++) dim[i] = t->dim[m->axes[i]];
  all = dim_product(g->dims, dim, m->naxes);
  return product ? dim_is_const(all) && k * (double)all == 1 : is_count(g, q->in[1], all);
}

/* ---- softmax ---- */

static bool is_low(Graph *g, Val v) {
  double x;
  return number(g, v, &x) && x == -INFINITY;
}

/* select(top == -Inf, k, x) -> x; else v itself. */
static Val unhidden(Graph *g, Val v, double k, Val *none) {
  const Node *s = graph_def(g, v, OP_select);
  double x;
  const Node *eq = s ? graph_def(g, s->in[0], OP_eq) : NULL;
  if (!eq || !is_low(g, eq->in[1]) || !number(g, s->in[1], &x) || x != k) return v;
  *none = eq->in[0];
  return s->in[2];
}

/* d = x - top, with top the largest along the same axes; without a top, x is d. */
static bool read_rows(Graph *g, Val d, Softmax *m) {
  const Node *sub = graph_def(g, d, OP_sub);
  Val none = 0;
  m->x = d;
  m->top = 0;
  if (!sub) return true;
  Val top = unhidden(g, sub->in[1], 0, &none);
  const Node *max = graph_def(g, top, OP_reduce_max);
  u32 n;
  const Dim *axes = max ? node_list(max, AT_axes, &n) : NULL;
  if (!max || max->in[0] != sub->in[0] || !same_axes(axes, n, m->axes, m->naxes))
    return true; /* another difference */
  if (none && none != top) return false;
  m->x = sub->in[0];
  m->top = top;
  m->hides = none != 0;
  return true;
}

static bool read_sum(Graph *g, Val v, Softmax *m) {
  const Node *sum = graph_def(g, v, OP_reduce_sum);
  if (!sum || !node_int(sum, AT_keep, 0)) return false;
  m->sum = v;
  m->axes = node_list(sum, AT_axes, &m->naxes);
  return true;
}

bool match_softmax(Graph *g, Val v, Softmax *m) {
  *m = (Softmax){0};
  const Node *n = graph_def(g, v, OP_sub);
  if (n) { /* d - log(sum(exp(d))) */
    Val d = n->in[0], l = under(g, n->in[1], OP_log);
    m->log = true;
    return l && read_sum(g, l, m) && under(g, under(g, l, OP_reduce_sum), OP_exp) == d &&
           read_rows(g, d, m);
  }
  n = graph_def(g, v, OP_mul);
  const Node *q = n ? NULL : graph_def(g, v, OP_div);
  if (!n && !q) return false;
  Val e = n ? n->in[0] : q->in[0], sum = n ? under(g, n->in[1], OP_recip) : q->in[1], none = 0;
  if (!sum) return false;
  sum = unhidden(g, sum, 1, &none);
  if (!read_sum(g, sum, m) || under(g, sum, OP_reduce_sum) != e) return false;
  Val d = under(g, e, OP_exp);
  return d && read_rows(g, d, m) && m->hides == (none != 0) && (!none || none == m->top);
}

/* ---- norms ---- */

/* v = d / sqrt(mean of squares of d + eps) */
static bool read_norm(Graph *g, Val v, Norm *m) {
  const Node *n = graph_def(g, v, OP_mul);
  Mean square, mean;
  if (!n) return false;
  Val d = n->in[0], root = under(g, under(g, n->in[1], OP_recip), OP_sqrt);
  Val var = by_number(g, root, OP_add, &m->eps);
  if (!var) {
    var = root;
    m->eps = 0;
  }
  if (!var || !match_mean(g, var, &square)) return false;
  const Node *mul = graph_def(g, square.x, OP_mul), *sub = graph_def(g, d, OP_sub);
  if (!mul || mul->in[0] != d || mul->in[1] != d) return false;
  m->axes = square.axes;
  m->naxes = square.naxes;
  m->centred = sub && match_mean(g, sub->in[1], &mean) && mean.x == sub->in[0] &&
               same_axes(mean.axes, mean.naxes, m->axes, m->naxes);
  m->x = m->centred ? sub->in[0] : d;
  return true;
}

bool match_norm(Graph *g, Val v, Norm *m) {
  *m = (Norm){0};
  const Node *n = graph_def(g, v, OP_add);
  for (u32 i = 0; n && i < 2; i++) { /* + bias */
    Norm in;
    if (!match_norm(g, n->in[i], &in) || in.bias) continue;
    *m = in;
    m->bias = n->in[1 - i];
    return true;
  }
  if (n) return false;
  if (read_norm(g, v, m)) return true;
  n = graph_def(g, v, OP_mul);
  for (u32 i = 0; n && i < 2; i++) { /* * scale */
    if (!read_norm(g, n->in[i], m)) continue;
    m->scale = n->in[1 - i];
    return true;
  }
  return false;
}

/* ---- attention ---- */

static Val through_reshape(Graph *g, Val v) {
  Val x = under(g, v, OP_reshape);
  return x ? x : v;
}

/* Letters of part p (0, 1: operands, 2: result) of a spec. */
static void spec_part(Graph *g, const Node *n, u32 p, char *to) {
  const char *s = str_text(g->c, node_attr(n, AT_spec)->u.s), *end;
  for (u32 i = 0; i < p && s; i++) {
    s = strpbrk(s, ",>");
    if (s) s++;
  }
  to[0] = 0;
  if (!s) return;
  end = strpbrk(s, ",-");
  size_t len = end ? (size_t)(end - s) : strlen(s);
  if (len > MAX_RANK) return;
  memcpy(to, s, len);
  to[len] = 0;
}

/* Does n sum over the last axis of its operand p, and over nothing else? */
static bool sums_last(Graph *g, const Node *n, u32 p) {
  char a[MAX_RANK + 1], b[MAX_RANK + 1], o[MAX_RANK + 1];
  spec_part(g, n, p, a);
  spec_part(g, n, 1 - p, b);
  spec_part(g, n, 2, o);
  size_t len = strlen(a);
  for (size_t i = 0; i < len; i++)
    if ((strchr(o, a[i]) == NULL) != (i + 1 == len)) return false;
  return len && strchr(b, a[len - 1]) != NULL;
}

/* Peels one mask off the scores; 0: there is none. */
static Val unmasked(Graph *g, Val v, Mask *m) {
  const Node *s = graph_def(g, v, OP_select);
  double low;
  if (s) {
    Val cond = s->in[0], added = 0;
    bool hide = number(g, s->in[1], &low);
    if (!hide && !number(g, s->in[2], &low)) return 0;
    Val x = hide ? s->in[2] : s->in[1];
    const Node *eq = graph_def(g, cond, OP_eq);
    if (hide && eq && is_low(g, eq->in[1])) added = other(g, x, OP_add, eq->in[0]);
    if (added) { /* select(mask == -Inf, -Inf, x + mask) */
      *m = (Mask){MASK_add, eq->in[0], -INFINITY};
      return added;
    }
    *m = (Mask){hide ? MASK_hide : MASK_keep, cond, low};
    return x;
  }
  const Node *n = graph_def(g, v, OP_add);
  if (!n) return 0;
  *m = (Mask){.kind = MASK_add};
  for (u32 i = 0; i < 2; i++) { /* the scores are what comes from a contraction */
    double k;
    Val x = n->in[i], in = by_number(g, x, OP_mul, &k);
    bool scores = graph_def(g, through_reshape(g, in ? in : x), OP_contract) ||
                  graph_def(g, x, OP_select) || graph_def(g, x, OP_add);
    if (!scores || (i == 0 && graph_def(g, n->in[1], OP_contract))) continue;
    m->v = n->in[1 - i];
    return x;
  }
  return 0;
}

/* From the operand of the softmax to the contraction of q and k. */
static bool read_scores(Graph *g, Val v, Attention *m) {
  Mask found[MASKS];
  u32 n = 0;
  for (Val x; n < MASKS && (x = unmasked(g, v, &found[n])) != 0; v = x) n++;
  m->nmask = n;
  for (u32 i = 0; i < n; i++) m->mask[i] = found[n - 1 - i];
  double k, inner;
  Val capped = by_number(g, v, OP_mul, &k);
  Val t = capped ? under(g, capped, OP_tanh) : 0;
  Val x = t ? by_number(g, t, OP_mul, &inner) : 0;
  m->scale = 1;
  if (x) { /* cap * tanh(s * scale / cap) */
    m->cap = k;
    m->scale = inner * k;
    v = x;
  } else if (capped) {
    m->scale = k;
    v = capped;
  }
  v = through_reshape(g, v);
  const Node *c = graph_def(g, v, OP_contract);
  if (!c) return false;
  m->scores = graph_val(g, v)->def;
  return true;
}

bool match_attention(Graph *g, Val v, Attention *m) {
  *m = (Attention){0};
  const Node *mix = graph_def(g, v, OP_contract);
  if (!mix) return false;
  for (u32 p = 0; p < 2; p++) {
    Val rows = through_reshape(g, mix->in[p]);
    if (!match_softmax(g, rows, &m->rows) || m->rows.log || m->rows.naxes != 1) continue;
    if (m->rows.axes[0] + 1 != graph_type(g, rows)->rank || !sums_last(g, mix, p)) continue;
    if (!read_scores(g, m->rows.x, m)) continue;
    const Node *s = graph_node(g, m->scores);
    char a[MAX_RANK + 1], o[MAX_RANK + 1];
    spec_part(g, s, 0, a);
    spec_part(g, s, 2, o);
    size_t len = strlen(o);
    if (!len) continue;
    m->mix = graph_val(g, v)->def;
    m->qpos = strchr(a, o[len - 1]) ? 1 : 0; /* the last axis of the scores is of k */
    m->vpos = 1 - p;
    m->q = s->in[m->qpos];
    m->k = s->in[1 - m->qpos];
    m->v = mix->in[m->vpos];
    return true;
  }
  return false;
}

/* ---- activations ---- */

/* 1 / v = sigmoid(x): v = exp(-x) + 1, or exp(k x) + 1 */
static Val sigmoid_below(Graph *g, Val v) {
  Val ex = under(g, plus(g, v, 1), OP_exp);
  return ex ? under(g, ex, OP_neg) : 0;
}

static Val softplus_of(Graph *g, Val v) {
  const Node *n = graph_def(g, v, OP_add);
  for (u32 i = 0; n && i < 2; i++) {
    double zero;
    Val x = by_number(g, n->in[i], OP_max, &zero);
    Val tail = x ? plus(g, under(g, n->in[1 - i], OP_log), 1) : 0;
    if (x && zero == 0 && under(g, under(g, under(g, tail, OP_exp), OP_neg), OP_abs) == x) return x;
  }
  return 0;
}

/* v = x * (1 + t), with t = erf or tanh of what Gelu has there: twice Gelu */
static Act gelu_of(Graph *g, const Node *n, Val *x) {
  for (u32 i = 0; i < 2; i++) {
    Val a = n->in[i], t = plus(g, n->in[1 - i], 1);
    *x = a;
    if (times(g, under(g, t, OP_erf), sqrt(0.5)) == a) return ACT_gelu;
    Val cube = times(g, under(g, t, OP_tanh), sqrt(2 / 3.14159265358979323846));
    Val square = times(g, plus(g, other(g, cube, OP_mul, a), 1), 0.044715);
    const Node *sq = graph_def(g, square, OP_mul);
    if (sq && sq->in[0] == a && sq->in[1] == a) return ACT_gelu_tanh;
  }
  return ACT_none;
}

/* v = x * clip(x + 3, 0, 6): six times HardSwish */
static bool hard_swish_of(Graph *g, const Node *n, Val *x) {
  for (u32 i = 0; i < 2; i++) {
    double lo, hi;
    Val t = by_number(g, by_number(g, n->in[1 - i], OP_min, &hi), OP_max, &lo);
    *x = n->in[i];
    if (t && lo == 0 && hi == 6 && plus(g, t, 3) == *x) return true;
  }
  return false;
}

/* Without a factor behind it. */
static Act plain_act(Graph *g, Val v, Val *x, double *by) {
  double lo, hi;
  *by = 1;
  if ((*x = by_number(g, v, OP_max, &lo)) != 0 && lo == 0) return ACT_relu;
  if ((*x = by_number(g, by_number(g, v, OP_min, &hi), OP_max, &lo)) != 0) return ACT_clip;
  if ((*x = sigmoid_below(g, under(g, v, OP_recip))) != 0) return ACT_sigmoid;
  const Node *n = graph_def(g, v, OP_div);
  if (n && (*x = n->in[0]) == sigmoid_below(g, n->in[1])) return ACT_silu;
  if ((*x = softplus_of(g, v)) != 0) return ACT_softplus;
  n = graph_def(g, v, OP_mul);
  if (!n) return ACT_none;
  for (u32 i = 0; i < 2; i++) {
    *x = n->in[i];
    if (softplus_of(g, under(g, n->in[1 - i], OP_tanh)) == *x) return ACT_mish;
  }
  *by = 6;
  if (hard_swish_of(g, n, x)) return ACT_hard_swish;
  *by = 2;
  return gelu_of(g, n, x);
}

Act match_act(Graph *g, Val v, Val *x, double *by) {
  double k;
  Val inner = by_number(g, v, OP_mul, &k);
  Act act = inner ? plain_act(g, inner, x, by) : ACT_none;
  if (act == ACT_none) return plain_act(g, v, x, by);
  *by *= k;
  if (near(*by, 1)) *by = 1;
  return act;
}

const char *match_name(Graph *g, Val v) {
  Attention a;
  Softmax s;
  Norm n;
  Mean m;
  Val x;
  double by;
  if (match_attention(g, v, &a)) return "attention";
  if (match_softmax(g, v, &s)) return s.log ? "log softmax" : "softmax";
  if (match_norm(g, v, &n)) return n.centred ? "layer norm" : "rms norm";
  if (match_mean(g, v, &m)) return "mean";
  return act_name[match_act(g, v, &x, &by)];
}
