/* grad_reduce.c: gradients of reductions, contractions and cumulative sums.
 *
 * In: a node and the gradient of its result. Out: gradients of its operands. Products are
 * differentiated without division, so that factors may be 0: by the products of the factors before
 * and after each one.
 */
#include "pass/graph/grad_internal.h"

#include <string.h>

/* ---- reductions ---- */

/* Restores the reduced axes of a value with extent 1. */
static Val unreduced(Graph *g, const Node *n, Val v, const Type *t) {
  u32 c;
  const i64 *axes = node_list(n, AT_axes, &c);
  Dim dim[MAX_RANK];
  if (t->rank) memcpy(dim, t->dim, t->rank * sizeof *dim);
  for (u32 i = 0; i < c; i++) dim[axes[i]] = 1;
  return mk_reshape(g, v, dim, t->rank);
}

void back_sum(Grad *d, const Node *n, Val v) {
  Type t = *graph_type(d->g, n->in[0]);
  grad_accumulate(d, n->in[0], mk_broadcast(d->g, unreduced(d->g, n, v, &t), t.dim, t.rank));
}

void back_resume(Grad *d, const Node *n, Val v) {
  if (grad_needed(d, n->in[0])) back_sum(d, n, v);
  grad_accumulate(d, n->in[1], v);
}

/* Shared among all elements equal to the extreme. */
void back_extreme(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  Type t = *graph_type(g, n->in[0]);
  u32 c;
  const i64 *axes = node_list(n, AT_axes, &c);
  Val best = mk_eq(g, n->in[0], unreduced(g, n, n->out[0], &t));
  Val count = mk_reduce(g, OP_reduce_sum, mk_cast(g, best, t.dt), axes, c, true);
  Val part = mk_div(g, unreduced(g, n, v, &t), count);
  grad_accumulate(d, n->in[0], mk_select(g, best, part, mk_like(g, v, 0)));
}

/* Moves the reduced axes to the end and merges them. */
static Val to_rows(Graph *g, Val x, const i64 *perm, u32 kept) {
  Val v = mk_transpose(g, x, perm);
  Type t = *graph_type(g, v);
  Dim dim[MAX_RANK + 1];
  for (u32 i = 0; i < kept; i++) dim[i] = t.dim[i];
  dim[kept] = dim_product(g->dims, t.dim + kept, t.rank - kept);
  return mk_reshape(g, v, dim, kept + 1);
}

void back_prod(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  Type t = *graph_type(g, n->in[0]);
  u32 c, kept = 0;
  const i64 *axes = node_list(n, AT_axes, &c);
  i64 perm[MAX_RANK], back[MAX_RANK];
  Dim dim[MAX_RANK];
  bool gone[MAX_RANK] = {false};
  if (!c || !t.rank) {
    grad_accumulate(d, n->in[0], v);
    return;
  }
  for (u32 i = 0; i < c; i++) gone[axes[i]] = true;
  for (u32 i = 0; i < t.rank; i++)
    if (!gone[i]) perm[kept++] = i;
  for (u32 i = 0, at = kept; i < t.rank; i++)
    if (gone[i]) perm[at++] = i;
  for (u32 i = 0; i < t.rank; i++) {
    back[perm[i]] = i;
    dim[i] = t.dim[perm[i]];
  }
  Val x = to_rows(g, n->in[0], perm, kept);
  Val suffix = mk_cum(g, OP_cumprod, x, kept, true, true);
  Val others = mk_mul(g, mk_cum(g, OP_cumprod, x, kept, true, false), suffix);
  others = mk_transpose(g, mk_reshape(g, others, dim, t.rank), back);
  grad_accumulate(d, n->in[0], mk_mul(g, others, unreduced(g, n, v, &t)));
}

/* ---- contractions ---- */

enum { SPEC = 2 * MAX_RANK + 1 };

/* Splits a spec into its three parts. */
static void read_spec(Graph *g, const Node *n, char part[3][SPEC]) {
  const char *spec = str_text(g->c, node_attr(n, AT_spec)->u.s);
  const char *comma = strchr(spec, ','), *arrow = strstr(spec, "->");
  size_t len[3] = {(size_t)(comma - spec), (size_t)(arrow - comma - 1), strlen(arrow + 2)};
  const char *at[3] = {spec, comma + 1, arrow + 2};
  for (u32 i = 0; i < 3; i++) {
    if (len[i] >= SPEC) grad_refuse(g, n, "its spec has too many axes");
    memcpy(part[i], at[i], len[i]);
    part[i][len[i]] = 0;
  }
}

/* Contracts the gradient with the other operand. An axis of one operand alone was summed, so its
 * elements all get the same. */
void back_contract(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  char part[3][SPEC], shared[SPEC];
  read_spec(g, n, part);
  for (u32 i = 0; i < 2; i++) {
    if (!grad_needed(d, n->in[i])) continue;
    Type t = *graph_type(g, n->in[i]);
    Dim dim[MAX_RANK];
    u32 k = 0;
    for (u32 j = 0; part[i][j]; j++) {
      bool alone = !strchr(part[2], part[i][j]) && !strchr(part[1 - i], part[i][j]);
      dim[j] = alone ? 1 : t.dim[j];
      if (!alone) shared[k++] = part[i][j];
    }
    shared[k] = 0;
    Str spec = str_fmt(g->c, "%s,%s->%s", part[2], part[1 - i], shared);
    Val x = mk_contract(g, v, n->in[1 - i], str_text(g->c, spec));
    grad_accumulate(d, n->in[i], mk_broadcast(g, mk_reshape(g, x, dim, t.rank), t.dim, t.rank));
  }
}

/* Dequantizes the weights and multiplies x's gradient with them. */
void back_dot_blocks(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  if (n->nin != 2) grad_refuse(g, n, "its operand x is quantized, expected floats");
  const char *kind = str_text(g->c, node_attr(n, AT_kind)->u.s);
  Val w = mk_dequantize(g, n->in[1], kind, 8);
  grad_accumulate(d, n->in[0], mk_contract(g, v, w, "tr,rk->tk"));
}

/* ---- cumulative sums and products ---- */

void back_cumsum(Grad *d, const Node *n, Val v) {
  grad_accumulate(d, n->in[0],
                  mk_cum(d->g, OP_cumsum, v, node_int(n, AT_axis, 0),
                         node_int(n, AT_exclusive, 0) != 0, node_int(n, AT_reverse, 0) == 0));
}

typedef struct CumprodGrad {
  Val x, v; /* [n, ..] */
  Val last;
  bool exclusive;
} CumprodGrad;

/* Iteration i: s sums the gradients of elements after k = n - 1 - i, each times the factors between
 * it and k. */
static void cumprod_step(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  const CumprodGrad *l = user;
  (void)cond;
  Val k = mk_sub(g, l->last, i), x = mk_gather(g, l->x, k, 0), v = mk_gather(g, l->v, k, 0);
  Val with = mk_add(g, v, carried[0]);
  scan[0] = l->exclusive ? carried[0] : with;
  carried[0] = l->exclusive ? mk_add(g, v, mk_mul(g, x, carried[0])) : mk_mul(g, x, with);
}

static Val flipped(Graph *g, Val x, u32 axis) {
  Type t = *graph_type(g, x);
  Dim start[MAX_RANK] = {0};
  i64 step[MAX_RANK];
  for (u32 i = 0; i < t.rank; i++) step[i] = i == axis ? -1 : 1;
  start[axis] = t.dim[axis] ? dim_addk(g->dims, t.dim[axis], -1) : 0;
  return mk_slice(g, x, start, t.dim, step);
}

/* Gradient of element k: the product before k, times the gradients of k and later elements, each
 * times the factors between. Computed by a recurrence from the end. */
void back_cumprod(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  u32 axis = (u32)node_int(n, AT_axis, 0);
  bool reverse = node_int(n, AT_reverse, 0) != 0;
  Type t = *graph_type(g, n->in[0]);
  i64 perm[MAX_RANK], back[MAX_RANK];
  for (u32 i = 0; i < t.rank; i++) perm[i] = i == 0 ? axis : i <= axis ? i - 1 : i;
  for (u32 i = 0; i < t.rank; i++) back[perm[i]] = i;
  Val x = mk_transpose(g, reverse ? flipped(g, n->in[0], axis) : n->in[0], perm);
  v = mk_transpose(g, reverse ? flipped(g, v, axis) : v, perm);
  Val count = mk_dims_as(g, DT_i64, 0, &t.dim[axis], 1), scan = 0;
  CumprodGrad l = {.x = x, .v = v, .exclusive = node_int(n, AT_exclusive, 0) != 0};
  l.last = mk_sub(g, count, mk_scalar(g, DT_i64, 1));
  Type row = *graph_type(g, x);
  Val sum = mk_broadcast(g, mk_like(g, x, 0), row.dim + 1, row.rank - 1);
  mk_loop(g, count, 0, &sum, 1, &scan, 1, cumprod_step, &l);
  Val before = mk_cum(g, OP_cumprod, x, 0, true, false);
  Val r = mk_transpose(g, mk_mul(g, before, flipped(g, scan, 0)), back);
  grad_accumulate(d, n->in[0], reverse ? flipped(g, r, axis) : r);
}
