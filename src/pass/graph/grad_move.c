/* grad_move.c: gradients of data movement: views, joins, gathers, scatters, topk.
 *
 * In: a node and the gradient of its result. Out: gradients of its operands: the same elements,
 * moved back. A gather becomes a scatter that adds, a scatter becomes a gather. Of several updates
 * of one element, only those that contribute to its final value get a gradient.
 */
#include "pass/graph/grad_internal.h"

#include <string.h>

/* ---- views ---- */

void back_reshape(Grad *d, const Node *n, Val v) {
  Type t = *graph_type(d->g, n->in[0]);
  grad_accumulate(d, n->in[0], mk_reshape(d->g, v, t.dim, t.rank));
}

void back_broadcast(Grad *d, const Node *n, Val v) {
  grad_accumulate(d, n->in[0], v);
}

void back_transpose(Grad *d, const Node *n, Val v) {
  u32 c;
  const i64 *perm = node_list(n, AT_perm, &c);
  i64 back[MAX_RANK];
  for (u32 i = 0; i < c; i++) back[perm[i]] = i;
  grad_accumulate(d, n->in[0], mk_transpose(d->g, v, back));
}

/* Dilates, reverses if the step is negative, and pads with zeros. */
void back_slice(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  Dims *ds = g->dims;
  Type t = *graph_type(g, n->in[0]);
  u32 c;
  const Dim *start = node_list(n, AT_start, &c), *size = node_list(n, AT_size, &c);
  const i64 *step = node_list(n, AT_step, &c);
  Dim lo[MAX_RANK], hi[MAX_RANK], from[MAX_RANK] = {0};
  i64 inner[MAX_RANK], turn[MAX_RANK];
  for (u32 i = 0; i < t.rank; i++) {
    i64 far = step[i] < 0 ? -step[i] : step[i];
    if (size[i] == 0) { /* nothing was read */
      grad_accumulate(d, n->in[0], grad_zeros(g, n->in[0]));
      return;
    }
    Dim reach =
        dim_mul(ds, dim_addk(ds, size[i], -1), far); /* distance from the first to the last */
    turn[i] = step[i] < 0 ? -1 : 1;
    from[i] = step[i] < 0 ? dim_addk(ds, size[i], -1) : 0;
    lo[i] = step[i] < 0 ? dim_sub(ds, start[i], reach) : start[i];
    hi[i] = dim_sub(ds, dim_addk(ds, t.dim[i], -1), dim_add(ds, lo[i], reach));
    inner[i] = far - 1;
  }
  v = mk_slice(g, v, from, size, turn);
  grad_accumulate(d, n->in[0], mk_pad(g, v, mk_like(g, v, 0), lo, hi, inner));
}

/* ---- joins ---- */

void back_concat(Grad *d, const Node *n, Val v) {
  u32 axis = (u32)node_int(n, AT_axis, 0);
  Dim at = 0;
  for (u32 i = 0; i < n->nin; i++) {
    Dim size = graph_type(d->g, n->in[i])->dim[axis];
    if (grad_needed(d, n->in[i]))
      grad_accumulate(d, n->in[i], mk_slice_axis(d->g, v, axis, at, size));
    at = dim_add(d->g->dims, at, size);
  }
}

static Val total(Graph *g, Val v) {
  i64 axes[MAX_RANK];
  u32 rank = graph_type(g, v)->rank;
  for (u32 i = 0; i < rank; i++) axes[i] = i;
  return mk_reduce(g, OP_reduce_sum, v, axes, rank, false);
}

/* The padding value gets what x does not. */
void back_pad(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  Type t = *graph_type(g, n->in[0]);
  u32 c;
  const Dim *lo = node_list(n, AT_lo, &c);
  const i64 *inner = node_list(n, AT_interior, &c);
  i64 step[MAX_RANK];
  for (u32 i = 0; i < t.rank; i++) step[i] = inner[i] + 1;
  Val mine = mk_slice(g, v, lo, t.dim, step);
  grad_accumulate(d, n->in[0], mine);
  if (grad_needed(d, n->in[1])) {
    Val rest = total(g, mine);
    grad_accumulate(d, n->in[1], mk_sub(g, total(g, v), rest));
  }
}

/* ---- gathers ---- */

/* Indices as a gather reads them: clamped. A scatter would skip those out of range. */
static Val clamped(Graph *g, Val idx, const Dim *size, u32 n) {
  idx = mk_cast(g, idx, DT_i64);
  if (index_fits(g, idx, size, n)) return idx;
  Val end = mk_dims_as(g, DT_i64, n == 1 ? 0 : 1, size, n);
  Val low = mk_max(g, idx, mk_neg(g, end));
  return mk_min(g, low, mk_sub(g, end, mk_scalar(g, DT_i64, 1)));
}

/* Moves the gathered axis to the front, where rows are added. v: [.., idx.., ..] */
static Val ungather(Graph *g, const Type *t, Val idx, u32 axis, Val v) {
  u32 rank = graph_type(g, v)->rank, more = graph_type(g, idx)->rank;
  i64 perm[MAX_RANK], back[MAX_RANK];
  Dim dim[MAX_RANK];
  for (u32 i = 0; i < rank; i++) perm[i] = i < more ? axis + i : i < more + axis ? i - more : i;
  for (u32 i = 0; i < t->rank; i++) {
    u32 from = i == 0 ? axis : i <= axis ? i - 1 : i;
    dim[i] = t->dim[from];
    back[from] = i;
  }
  Val zero = mk_broadcast(g, mk_like(g, v, 0), dim, t->rank);
  Val at = mk_unsqueeze(g, clamped(g, idx, &t->dim[axis], 1), more);
  return mk_transpose(g, mk_scatter_nd(g, zero, at, mk_transpose(g, v, perm), "add"), back);
}

void back_gather(Grad *d, const Node *n, Val v) {
  Type t = *graph_type(d->g, n->in[0]);
  i64 axis = node_int(n, AT_axis, 0);
  if (!grad_needed(d, n->in[0])) return;
  if (d->by_rows && d->by_rows[n->in[0]])
    *vec_push(&d->g->c->work, &d->rows) = (RowGrad){n->in[0], n->in[1], v, axis};
  else
    grad_accumulate(d, n->in[0], ungather(d->g, &t, n->in[1], (u32)axis, v));
}

void back_gather_elems(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  i64 axis = node_int(n, AT_axis, 0);
  Val idx = clamped(g, n->in[1], &graph_type(g, n->in[0])->dim[axis], 1);
  grad_accumulate(d, n->in[0], mk_scatter_elems(g, grad_zeros(g, n->in[0]), idx, v, axis, "add"));
}

/* Coordinates preceded by those of the batch. */
static Val whole_coordinates(Graph *g, Val idx, u32 batch) {
  Type t = *graph_type(g, idx);
  Val part[MAX_RANK + 1];
  Dim dim[MAX_RANK];
  if (!batch) return idx;
  memcpy(dim, t.dim, t.rank * sizeof *dim);
  dim[t.rank - 1] = 1;
  for (u32 i = 0; i < batch; i++) part[i] = mk_iota(g, DT_i64, dim, t.rank, i);
  part[batch] = idx;
  return mk_concat(g, part, batch + 1, t.rank - 1);
}

void back_gather_nd(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  Type t = *graph_type(g, n->in[0]), ti = *graph_type(g, n->in[1]);
  u32 batch = (u32)node_int(n, AT_batch, 0), depth = (u32)ti.dim[ti.rank - 1];
  Val idx = mk_cast(g, n->in[1], DT_i64);
  if (depth) idx = clamped(g, idx, t.dim + batch, depth);
  idx = whole_coordinates(g, idx, batch);
  grad_accumulate(d, n->in[0], mk_scatter_nd(g, grad_zeros(g, n->in[0]), idx, v, "add"));
}

void back_topk(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  if (v)
    grad_accumulate(d, n->in[0],
                    mk_scatter_elems(g, grad_zeros(g, n->in[0]), n->out[1], v,
                                     node_int(n, AT_axis, 0), "none"));
}

/* ---- scatters ---- */

typedef struct ScatterSpec {
  Graph *g;
  Val idx;
  bool elems;
  i64 axis;
} ScatterSpec;

static Val scatter_at(const ScatterSpec *p, Val x, Val u, const char *reduce) {
  return p->elems ? mk_scatter_elems(p->g, x, p->idx, u, p->axis, reduce)
                  : mk_scatter_nd(p->g, x, p->idx, u, reduce);
}

static Val gather_at(const ScatterSpec *p, Val x) {
  return p->elems ? mk_gather_elems(p->g, x, p->idx, p->axis) : mk_gather_nd(p->g, x, p->idx, 0);
}

static Val filled(Graph *g, Val like, DType dt, double x) {
  Type t = *graph_type(g, like);
  return mk_broadcast(g, mk_scalar(g, dt, x), t.dim, t.rank);
}

/* Row-major number of each element, i64. */
static Val numbered(Graph *g, Val like) {
  Type t = *graph_type(g, like);
  Dim n = type_count(g->dims, &t);
  return mk_reshape(g, mk_iota(g, DT_i64, &n, 1, 0), t.dim, t.rank);
}

/* The last update of an element wins; all others, and x, get nothing. */
static void back_scatter_last(Grad *d, const Node *n, const ScatterSpec *p, Val v) {
  Graph *g = d->g;
  Val u = n->in[2];
  grad_accumulate(d, n->in[0], scatter_at(p, v, grad_zeros(g, u), "none"));
  if (!grad_needed(d, u)) return;
  Val number = numbered(g, u),
      last = gather_at(p, scatter_at(p, filled(g, n->in[0], DT_i64, -1), number, "none"));
  Val zero = mk_like(g, v, 0);
  Val wanted = gather_at(p, v);
  grad_accumulate(d, u, mk_select(g, mk_eq(g, last, number), wanted, zero));
}

/* Product of all other factors of an element, for factor f. */
static Val other_factors(Graph *g, Val f, Val product, Val zeros) {
  Val none = mk_like(g, f, 0), one = mk_like(g, f, 1);
  Val is_zero = mk_eq(g, f, none);
  Val alone = mk_select(g, mk_eq(g, zeros, one), product, none);
  Val quotient = mk_div(g, product, f);
  Val rest = mk_select(g, mk_eq(g, zeros, none), quotient, none);
  return mk_select(g, is_zero, alone, rest);
}

/* Uses products without zero factors, and the number of zeros. */
static void back_scatter_mul(Grad *d, const Node *n, const ScatterSpec *p, Val v) {
  Graph *g = d->g;
  Val x = n->in[0], u = n->in[2], none = mk_like(g, x, 0), one = mk_like(g, x, 1);
  DType dt = graph_type(g, x)->dt;
  Val x0 = mk_eq(g, x, none), u0 = mk_eq(g, u, none);
  Val theirs = mk_cast(g, u0, dt);
  Val zeros = scatter_at(p, mk_cast(g, x0, dt), theirs, "add");
  Val factors = mk_select(g, u0, one, u);
  Val product = scatter_at(p, mk_select(g, x0, one, x), factors, "mul");
  grad_accumulate(d, x, mk_mul(g, v, other_factors(g, x, product, zeros)));
  if (grad_needed(d, u)) {
    Val count = gather_at(p, zeros);
    Val others = other_factors(g, u, gather_at(p, product), count);
    grad_accumulate(d, u, mk_mul(g, gather_at(p, v), others));
  }
}

/* Shared among the updates that equal the final value. */
static void back_scatter_extreme(Grad *d, const Node *n, const ScatterSpec *p, Val v) {
  Graph *g = d->g;
  Val x = n->in[0], u = n->in[2], none = mk_like(g, v, 0);
  DType dt = graph_type(g, x)->dt;
  Val mine = mk_eq(g, x, n->out[0]), its = mk_eq(g, u, gather_at(p, n->out[0]));
  Val others = mk_cast(g, its, dt);
  Val part = mk_div(g, v, scatter_at(p, mk_cast(g, mine, dt), others, "add"));
  grad_accumulate(d, x, mk_select(g, mine, part, none));
  if (grad_needed(d, u)) grad_accumulate(d, u, mk_select(g, its, gather_at(p, part), none));
}

/* Out-of-range indices fail at run time: a scatter skips them, but the gathers here would not. */
void back_scatter(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  Type t = *graph_type(g, n->in[0]), ti = *graph_type(g, n->in[1]);
  ScatterSpec p = {g, n->in[1], n->op == OP_scatter_elems, node_int(n, AT_axis, 0)};
  const char *reduce = str_text(g->c, node_attr(n, AT_reduce)->u.s);
  u32 depth = p.elems ? 1 : (u32)ti.dim[ti.rank - 1];
  if (depth) p.idx = mk_check_index(g, p.idx, p.elems ? &t.dim[p.axis] : t.dim, depth);
  if (!strcmp(reduce, "none")) {
    back_scatter_last(d, n, &p, v);
  } else if (!strcmp(reduce, "add")) {
    grad_accumulate(d, n->in[0], v);
    if (grad_needed(d, n->in[2])) grad_accumulate(d, n->in[2], gather_at(&p, v));
  } else if (!strcmp(reduce, "mul")) {
    back_scatter_mul(d, n, &p, v);
  } else {
    back_scatter_extreme(d, n, &p, v);
  }
}
