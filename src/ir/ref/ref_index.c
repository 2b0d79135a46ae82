/* ref_index.c: data-dependent selection: gathers, scatters, nonzero, topk, nms.
 *
 * Negative indices count from the end. Indices still out of range are clamped by a gather and
 * skipped by a scatter. */
#include "ir/ref/ref.h"

#include <math.h>
#include <string.h>

/* Normalizes a negative index; false if out of range. */
static bool index_fit(i64 *i, i64 extent) {
  if (*i < 0) *i += extent;
  return *i >= 0 && *i < extent;
}

static i64 index_clamp(Ref *r, i64 i, i64 extent) {
  if (!extent) REF_BAD(r, "%s: indices into an empty axis", op_info[r->n->op].name);
  if (index_fit(&i, extent)) return i;
  return i < 0 ? 0 : extent - 1;
}

void ref_check_index(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  u32 count;
  const Dim *size = node_list(n, AT_size, &count);
  const i64 *at = acc_read(r, in[0], false);
  *out = ref_share(r, in[0], in[0]->dim, in[0]->rank);
  for (u64 i = 0; i < in[0]->n; i++) {
    i64 k = at[i], extent = ref_dim(r, size[i % count]);
    if (index_fit(&k, extent)) continue;
    if (node_attr(n, AT_text)) REF_BAD(r, "%s", index_error(r->g, n));
    REF_BAD(r, "%s: found %lld, but the extent is %lld", index_error(r->g, n), (long long)at[i],
            (long long)extent);
  }
}

void ref_gather(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const Tensor *x = in[0], *idx = in[1];
  u32 axis = (u32)node_int(n, AT_axis, 0), rank = 0;
  i64 dim[2 * MAX_RANK];
  for (u32 i = 0; i < axis; i++) dim[rank++] = x->dim[i];
  for (u32 i = 0; i < idx->rank; i++) dim[rank++] = idx->dim[i];
  for (u32 i = axis + 1; i < x->rank; i++) dim[rank++] = x->dim[i];
  Tensor *t = *out = ref_new(r, x->dt, dim, rank);
  if (!t->n) return;
  const i64 *at = acc_read(r, idx, false);
  i64 extent = x->dim[axis], outer = shape_product(x->dim, axis);
  u64 row = (u64)shape_product(x->dim + axis + 1, x->rank - axis - 1) * dtype_bytes(x->dt);
  u8 *to = ref_data(t);
  for (i64 o = 0; o < outer; o++)
    for (u64 i = 0; i < idx->n; i++, to += row) {
      i64 k = index_clamp(r, at[i], extent);
      memcpy(to, (const u8 *)x->data + (u64)(o * extent + k) * row, row);
    }
}

/* Iterates over the elements of idx; off[0] is the offset in x of the same position without
 * `axis`. */
static NdIter elems_walk(Ref *r, const Tensor *x, const Tensor *idx, u32 axis, i64 *step) {
  NdIter w = {.rank = idx->rank, .arrays = 1};
  shape_strides(x->dim, x->rank, w.step[0]);
  for (u32 i = 0; i < idx->rank; i++) {
    w.dim[i] = idx->dim[i];
    if (i != axis && idx->dim[i] > x->dim[i])
      REF_BAD(r, "%s: indices have extent %lld on axis %u, but the data only %lld",
              op_info[r->n->op].name, (long long)idx->dim[i], i, (long long)x->dim[i]);
  }
  *step = w.step[0][axis];
  w.step[0][axis] = 0;
  return w;
}

void ref_gather_elems(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const Tensor *x = in[0], *idx = in[1];
  u32 axis = (u32)node_int(n, AT_axis, 0), size = dtype_bytes(x->dt);
  Tensor *t = *out = ref_new(r, x->dt, idx->dim, idx->rank);
  i64 step;
  NdIter w = elems_walk(r, x, idx, axis, &step);
  const i64 *at = acc_read(r, idx, false);
  u8 *to = ref_data(t);
  if (!t->n || !nditer_start(&w)) return;
  do {
    i64 from = w.off[0] + index_clamp(r, *at++, x->dim[axis]) * step;
    memcpy(to, (const u8 *)x->data + from * size, size);
    to += size;
  } while (nditer_next(&w));
}

void ref_gather_nd(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const Tensor *x = in[0], *idx = in[1];
  u32 batch = (u32)node_int(n, AT_batch, 0), depth = (u32)idx->dim[idx->rank - 1], rank = 0;
  i64 dim[2 * MAX_RANK], stride[MAX_RANK];
  for (u32 i = 0; i < batch; i++)
    if (x->dim[i] != idx->dim[i])
      REF_BAD(r, "gather_nd: batch extents %lld and %lld differ on axis %u", (long long)x->dim[i],
              (long long)idx->dim[i], i);
  for (u32 i = 0; i + 1 < idx->rank; i++) dim[rank++] = idx->dim[i];
  for (u32 i = batch + depth; i < x->rank; i++) dim[rank++] = x->dim[i];
  Tensor *t = *out = ref_new(r, x->dt, dim, rank);
  if (!t->n) return;
  shape_strides(x->dim, x->rank, stride);
  const i64 *at = acc_read(r, idx, false);
  i64 rows = shape_product(idx->dim, idx->rank - 1), batches = shape_product(x->dim, batch);
  i64 plane = shape_product(x->dim + batch, x->rank - batch);
  u32 size = dtype_bytes(x->dt);
  u64 row = (u64)shape_product(x->dim + batch + depth, x->rank - batch - depth) * size;
  u8 *to = ref_data(t);
  for (i64 i = 0; i < rows; i++, to += row) {
    i64 from = i / (rows / batches) * plane;
    for (u32 k = 0; k < depth; k++)
      from += index_clamp(r, *at++, x->dim[batch + k]) * stride[batch + k];
    memcpy(to, (const u8 *)x->data + from * size, row);
  }
}

/* ---- scatters ---- */

/* Operator that combines an update with the old element; OP_COUNT: replaces it. Bool uses or and
 * and. */
static Op update_op(Ref *r, const Node *n, DType dt) {
  Str s = node_attr(n, AT_reduce)->u.s;
  Op op = op_from_name(str_text(r->c, s), str_len(r->c, s));
  if (str_is(r->c, s, "none")) return OP_COUNT;
  if (dt == DT_bool) return op == OP_add || op == OP_max ? OP_or : OP_and;
  if (!op_accepts(op, dt))
    fail(r->c, ERR_unsupported, n->loc, "%s: reduce %s is not supported for %s",
         op_info[n->op].name, op_info[op].name, dtype_info[dt].name);
  return op;
}

static void update(Tensor *t, i64 to, const Tensor *u, i64 from, i64 n, Op op) {
  u32 size = dtype_bytes(t->dt);
  if (op == OP_COUNT) {
    memcpy((u8 *)ref_data(t) + to * size, (const u8 *)u->data + from * size, (u64)n * size);
    return;
  }
  for (i64 i = 0; i < n; i++) {
    Scalar x[2] = {tensor_get(t, (u64)(to + i)), tensor_get(u, (u64)(from + i))};
    tensor_set(t, (u64)(to + i), scalar_eval(op, t->dt, x));
  }
}

static Tensor *copy_result(Ref *r, const Tensor *x) {
  Tensor *t = ref_new(r, x->dt, x->dim, x->rank);
  if (t->n) memcpy(ref_data(t), x->data, tensor_bytes(x));
  return t;
}

void ref_scatter_elems(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const Tensor *x = in[0], *idx = in[1], *u = in[2];
  u32 axis = (u32)node_int(n, AT_axis, 0);
  Op op = update_op(r, n, x->dt);
  Tensor *t = *out = copy_result(r, x);
  i64 step, from = 0;
  if (idx->n != u->n) REF_BAD(r, "scatter_elems: shapes of updates and indices differ");
  NdIter w = elems_walk(r, x, idx, axis, &step);
  const i64 *at = acc_read(r, idx, false);
  if (!idx->n || !nditer_start(&w)) return;
  do {
    i64 k = at[from];
    if (index_fit(&k, x->dim[axis])) update(t, w.off[0] + k * step, u, from, 1, op);
    from++;
  } while (nditer_next(&w));
}

void ref_scatter_nd(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const Tensor *x = in[0], *idx = in[1], *u = in[2];
  u32 depth = (u32)idx->dim[idx->rank - 1];
  Op op = update_op(r, n, x->dt);
  Tensor *t = *out = copy_result(r, x);
  if (!t->n || !u->n) return;
  i64 stride[MAX_RANK], rows = shape_product(idx->dim, idx->rank - 1);
  i64 row = shape_product(x->dim + depth, x->rank - depth);
  shape_strides(x->dim, x->rank, stride);
  if (u->n != (u64)(rows * row))
    REF_BAD(r, "scatter_nd: the shape of the updates does not match the indices");
  const i64 *at = acc_read(r, idx, false);
  for (i64 i = 0; i < rows; i++, at += depth) {
    i64 to = 0;
    bool fits = true;
    for (u32 k = 0; k < depth && fits; k++) {
      i64 j = at[k];
      fits = index_fit(&j, x->dim[k]);
      to += j * stride[k];
    }
    if (fits) update(t, to, u, i * row, row, op);
  }
}

/* ---- data-dependent sizes and order ---- */

static bool is_zero(const Tensor *x, u64 i) {
  Scalar v = tensor_get(x, i);
  return dtype_is_float(x->dt) ? v.f == 0 : v.i == 0;
}

void ref_nonzero(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const Tensor *x = in[0];
  i64 count = 0, stride[MAX_RANK];
  for (u64 i = 0; i < x->n; i++) count += !is_zero(x, i);
  i64 dim[2] = {x->rank, count}, k = 0;
  Tensor *t = *out = ref_new(r, DT_i64, dim, 2);
  i64 *to = ref_data(t);
  if (n->nsym) ref_set(r, n->sym[0], count);
  shape_strides(x->dim, x->rank, stride);
  for (u64 i = 0; i < x->n; i++) {
    if (is_zero(x, i)) continue;
    for (u32 j = 0; j < x->rank; j++) to[j * count + k] = (i64)i / stride[j] % x->dim[j];
    k++;
  }
}

/* Order of topk: better keys first, ties by lower index. Keys are inverted if the smallest wins. */
typedef struct Pick {
  i64 key, at;
} Pick;

static bool before(Pick a, Pick b) {
  return a.key != b.key ? a.key > b.key : a.at < b.at;
}

static void sift(Pick *p, i64 i, i64 n) {
  for (;;) {
    i64 last = i, kid = 2 * i + 1;
    for (i64 k = kid; k < kid + 2 && k < n; k++)
      if (before(p[last], p[k])) last = k;
    if (last == i) return;
    Pick x = p[i];
    p[i] = p[last];
    p[last] = x;
    i = last;
  }
}

/* Heap sort: the top of the heap is the element that comes last. */
static void sort(Pick *p, i64 n) {
  for (i64 i = n / 2; i-- > 0;) sift(p, i, n);
  for (i64 i = n; i-- > 1;) {
    Pick x = p[0];
    p[0] = p[i];
    p[i] = x;
    sift(p, 0, i);
  }
}

void ref_topk(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const Tensor *x = in[0];
  u32 axis = (u32)node_int(n, AT_axis, 0), size = dtype_bytes(x->dt);
  bool largest = node_int(n, AT_largest, 1) != 0;
  i64 dim[MAX_RANK], k, extent = x->dim[axis];
  ref_dims(r, n, AT_k, &k, 1);
  if (k > extent)
    REF_BAD(r, "topk: k is %lld, but the axis has extent %lld", (long long)k, (long long)extent);
  memcpy(dim, x->dim, x->rank * sizeof *dim);
  dim[axis] = k;
  out[0] = ref_new(r, x->dt, dim, x->rank);
  out[1] = ref_new(r, DT_i64, dim, x->rank);
  if (!out[0]->n) return;
  const i64 *key = acc_keys(r, x);
  i64 inner = shape_product(x->dim + axis + 1, x->rank - axis - 1), lanes = (i64)out[0]->n / k;
  Pick *p = NEWS(r->tmp, Pick, (size_t)extent);
  u8 *values = ref_data(out[0]);
  i64 *indices = ref_data(out[1]);
  for (i64 lane = 0; lane < lanes; lane++) {
    i64 from = lane / inner * extent * inner + lane % inner;
    i64 to = lane / inner * k * inner + lane % inner;
    for (i64 i = 0; i < extent; i++) {
      i64 v = key[from + i * inner];
      p[i] = (Pick){largest ? v : ~v, i}; /* ~v inverts the order without overflow */
    }
    sort(p, extent);
    for (i64 i = 0; i < k; i++, to += inner) {
      memcpy(values + to * size, (const u8 *)x->data + (from + p[i].at * inner) * size, size);
      indices[to] = p[i].at;
    }
  }
}

typedef struct BoxLine {
  const Tensor *score, *box;
  BoxKind kind;
  u64 scores, boxes; /* start of the scores of one class, and of its boxes */
  i64 n;
} BoxLine;

/* Low y, low x, high y, high x. */
static double edge_of(const BoxLine *x, u32 side, i64 i) {
  u64 at = x->boxes + (u64)i * 4;
  DType dt = x->box->dt;
  bool high = side > 1;
  side %= 2;
  if (x->kind == BX_centre) {
    double half = scalar_round(dt, tensor_get(x->box, at + 3 - side).f * 0.5);
    double mid = tensor_get(x->box, at + 1 - side).f;
    return scalar_round(dt, high ? mid + half : mid - half);
  }
  double a = tensor_get(x->box, at + side).f, b = tensor_get(x->box, at + 2 + side).f;
  if (x->kind == BX_edges) return high ? b : a;
  if (isnan(a) || isnan(b)) return NAN;
  return high ? fmax(a, b) : fmin(a, b);
}

static double area_of(const BoxLine *x, i64 i) {
  DType dt = x->box->dt;
  double high = scalar_round(dt, edge_of(x, 2, i) - edge_of(x, 0, i));
  double wide = scalar_round(dt, edge_of(x, 3, i) - edge_of(x, 1, i));
  return scalar_round(dt, high * wide);
}

/* IoU of two boxes: every step rounded, NaN propagates. */
static double overlap(const BoxLine *x, i64 i, i64 k) {
  DType dt = x->box->dt;
  double side[2], both = scalar_round(dt, area_of(x, i) + area_of(x, k));
  for (u32 s = 0; s < 2; s++) {
    double lo = fmax(edge_of(x, s, i), edge_of(x, s, k));
    double hi = fmin(edge_of(x, 2 + s, i), edge_of(x, 2 + s, k));
    side[s] = fmax(scalar_round(dt, hi - lo), 0);
  }
  double common = scalar_round(dt, side[0] * side[1]);
  return scalar_round(dt, common / scalar_round(dt, both - common));
}

/* The best remaining box; -1: none. */
static i64 best_box(const BoxLine *x, const bool *removed) {
  i64 best = -1;
  double top = 0;
  for (i64 i = 0; i < x->n; i++) {
    double s = tensor_get(x->score, x->scores + (u64)i).f;
    if (removed[i] || (best >= 0 && s <= top)) continue;
    best = i;
    top = s;
  }
  return best;
}

void ref_nms(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const i64 *dim = in[0]->dim;
  BoxLine x = {.score = in[0], .box = in[1], .n = dim[2], .kind = node_box_kind(r->c, n)};
  double max_iou = tensor_get(in[2], 0).f, min_score = tensor_get(in[3], 0).f;
  i64 to[3] = {dim[0], dim[1], 0}, max_count = tensor_get(in[4], 0).i;
  ref_dims(r, n, AT_k, to + 2, 1);
  if (in[1]->dim[0] != dim[0] || in[1]->dim[1] != dim[2])
    REF_BAD(r, "nms: the boxes do not match the scores");
  out[0] = ref_new(r, DT_i64, to, 3);
  if (max_iou < 0) max_iou = 0;
  i64 *taken = ref_data(out[0]);
  bool *removed = NEWS(r->tmp, bool, (size_t)x.n);
  for (i64 line = 0; line < dim[0] * dim[1]; line++, taken += to[2]) {
    x.scores = (u64)(line * x.n);
    x.boxes = (u64)(line / dim[1] * 4 * x.n);
    for (i64 i = 0; i < x.n; i++)
      removed[i] = !(tensor_get(x.score, x.scores + (u64)i).f > min_score);
    for (i64 k = 0; k < to[2]; k++) taken[k] = -1;
    for (i64 k = 0; k < to[2] && k < max_count; k++) {
      i64 best = taken[k] = best_box(&x, removed);
      if (best < 0) break;
      for (i64 i = 0; i < x.n; i++)
        if (!removed[i] && overlap(&x, best, i) > max_iou) removed[i] = true;
      removed[best] = true;
    }
  }
}
