/* ref_reduce.c: reductions over axes, arg min and max, cumulative sums.
 *
 * A reduction visits the operand once in row-major order and combines every element with its
 * accumulator. So each result is accumulated in row-major order of the reduced axes. */
#include "ir/ref/ref.h"

#include <string.h>

/* Removes the axes in mask, or keeps them with extent 1. */
static u32 reduced_shape(const Tensor *x, u32 mask, bool keep, i64 *dim) {
  u32 rank = 0;
  for (u32 i = 0; i < x->rank; i++) {
    if (!(mask >> i & 1))
      dim[rank++] = x->dim[i];
    else if (keep)
      dim[rank++] = 1;
  }
  return rank;
}

void ref_reduce(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const Tensor *x = in[0];
  u32 naxes, mask = 0;
  const Dim *axes = node_list(n, AT_axes, &naxes);
  for (u32 i = 0; i < naxes; i++) mask |= 1u << axes[i];
  i64 dim[MAX_RANK], stride[MAX_RANK], ostride[MAX_RANK], full[MAX_RANK];
  u32 rank = reduced_shape(x, mask, node_int(n, AT_keep, 0) != 0, dim);
  Tensor *t = *out = ref_new(r, x->dt, dim, rank);
  const Loops *loops = acc_loops(t->dt);
  Op op = op_reducer(n->op);
  u8 *acc = acc_begin(r, t);
  if (n->op == OP_resume_sum)
    memcpy(acc, acc_read(r, in[1], false), t->n * loops->size);
  else
    acc_empty(t, acc, op);
  reduced_shape(x, mask, true, full);
  shape_strides(x->dim, x->rank, stride);
  shape_strides(full, x->rank, ostride);
  bool order = op == OP_max || op == OP_min;
  const u8 *from = acc_read(r, x, order);
  NdIter w = {.rank = x->rank ? x->rank - 1 : 0, .arrays = 2};
  for (u32 i = 0; i < w.rank; i++) {
    w.dim[i] = x->dim[i];
    w.step[0][i] = stride[i];
    w.step[1][i] = mask >> i & 1 ? 0 : ostride[i];
  }
  i64 row = x->rank ? x->dim[x->rank - 1] : 1, size = (i64)loops->size;
  i64 last = x->rank && !(mask >> (x->rank - 1) & 1) ? 1 : 0;
  if (x->n && nditer_start(&w)) {
    do {
      loops->reduce(op, acc + w.off[1] * size, last, from + w.off[0] * size, 1, row);
    } while (nditer_next(&w));
  }
  acc_finish(r, t, acc, order);
}

void ref_arg(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const Tensor *x = in[0];
  u32 axis = (u32)node_int(n, AT_axis, 0);
  bool last = node_int(n, AT_last, 0) != 0, max = n->op == OP_argmax;
  i64 dim[MAX_RANK];
  u32 rank = reduced_shape(x, 1u << axis, node_int(n, AT_keep, 0) != 0, dim);
  Tensor *t = *out = ref_new(r, DT_i64, dim, rank);
  if (!t->n) return;
  i64 extent = x->dim[axis], inner = shape_product(x->dim + axis + 1, x->rank - axis - 1);
  if (!extent) REF_BAD(r, "%s over an empty axis has no result", op_info[n->op].name);
  const i64 *key = acc_keys(r, x);
  i64 *to = ref_data(t);
  for (u64 i = 0; i < t->n; i++) {
    const i64 *lane = key + (i64)i / inner * extent * inner + (i64)i % inner;
    i64 best = 0;
    for (i64 k = 0; k < extent; k++) {
      i64 v = lane[k * inner], b = lane[best * inner];
      bool nan = dtype_is_float(x->dt) && v == INT64_MAX;
      if (nan) {
        best = k;
        break;
      }
      if (max ? v > b : v < b)
        best = k;
      else if (last && v == b)
        best = k;
    }
    to[i] = best;
  }
}

void ref_cum(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const Tensor *x = in[0];
  u32 axis = (u32)node_int(n, AT_axis, 0);
  bool exclusive = node_int(n, AT_exclusive, 0) != 0, reverse = node_int(n, AT_reverse, 0) != 0;
  Tensor *t = *out = ref_new(r, x->dt, x->dim, x->rank);
  if (!t->n) return;
  const Loops *loops = acc_loops(t->dt);
  Op op = op_reducer(n->op);
  u8 *acc = acc_begin(r, t);
  const u8 *from = acc_read(r, x, false);
  acc_empty(t, acc, op);
  i64 extent = x->dim[axis], inner = shape_product(x->dim + axis + 1, x->rank - axis - 1);
  i64 size = (i64)loops->size, plane = extent * inner;
  for (i64 base = 0; base < (i64)t->n; base += plane) {
    for (i64 k = 0; k < extent; k++) {
      i64 at = base + (reverse ? extent - 1 - k : k) * inner;
      i64 before = reverse ? at + inner : at - inner;
      i64 take = exclusive ? before : at;
      u8 *to = acc + at * size;
      if (k) loops->reduce(op, to, 1, acc + before * size, 1, inner);
      if (k || !exclusive) loops->reduce(op, to, 1, from + take * size, 1, inner);
    }
  }
  acc_finish(r, t, acc, false);
}
