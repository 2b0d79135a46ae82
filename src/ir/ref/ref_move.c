/* ref_move.c: views and joins, which only move elements.
 *
 * All but reshape are one strided copy. Elements are opaque bytes, so strings and complex numbers
 * work. */
#include "ir/ref/ref.h"

#include <string.h>

/* Copies a box of elements; strides and offsets count elements. */
static void copy_box(const i64 *dim, u32 rank, u32 size, void *to, const i64 *sto, i64 to_off,
                     const void *from, const i64 *sfrom, i64 from_off) {
  i64 bto[MAX_RANK], bfrom[MAX_RANK];
  for (u32 i = 0; i < rank; i++) {
    bto[i] = sto[i] * size;
    bfrom[i] = sfrom[i] * size;
  }
  strided_copy(rank, dim, size, (u8 *)to + to_off * size, bto, (const u8 *)from + from_off * size,
               bfrom);
}

/* A result with elements x[offset + sum index * step]. */
static Tensor *copy_view(Ref *r, const Tensor *x, const i64 *dim, u32 rank, const i64 *step,
                         i64 off) {
  Tensor *t = ref_new(r, x->dt, dim, rank);
  i64 stride[MAX_RANK];
  shape_strides(dim, rank, stride);
  if (t->n) copy_box(dim, rank, dtype_bytes(x->dt), ref_data(t), stride, 0, x->data, step, off);
  return t;
}

void ref_reshape(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  i64 dim[MAX_RANK];
  u32 rank;
  u64 count;
  node_list(n, AT_shape, &rank);
  ref_dims(r, n, AT_shape, dim, rank);
  if (!shape_count(dim, rank, &count) || count != in[0]->n)
    REF_BAD(r, "reshape: the operand has %llu elements, but the new shape has another number",
            (unsigned long long)in[0]->n);
  *out = ref_share(r, in[0], dim, rank);
}

void ref_transpose(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const Tensor *x = in[0];
  u32 count;
  const Dim *perm = node_list(n, AT_perm, &count);
  i64 dim[MAX_RANK], stride[MAX_RANK], step[MAX_RANK];
  shape_strides(x->dim, x->rank, stride);
  for (u32 i = 0; i < x->rank; i++) {
    dim[i] = x->dim[perm[i]];
    step[i] = stride[perm[i]];
  }
  *out = copy_view(r, x, dim, x->rank, step, 0);
}

void ref_slice(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const Tensor *x = in[0];
  u32 count;
  const Dim *by = node_list(n, AT_step, &count);
  i64 start[MAX_RANK], size[MAX_RANK], stride[MAX_RANK], step[MAX_RANK] = {0}, off = 0;
  ref_dims(r, n, AT_start, start, x->rank);
  ref_dims(r, n, AT_size, size, x->rank);
  shape_strides(x->dim, x->rank, stride);
  bool empty = shape_product(size, x->rank) == 0;
  for (u32 i = 0; i < x->rank && !empty; i++) {
    /* Number of steps that fit before leaving the axis in the direction of the step. */
    i64 back = by[i] < -DIM_MAX ? DIM_MAX : -by[i];
    i64 room = by[i] > 0 ? (x->dim[i] - 1 - start[i]) / by[i] : start[i] / back;
    if (start[i] >= x->dim[i] || size[i] - 1 > room)
      REF_BAD(r, "slice: start %lld, size %lld, step %lld leave extent %lld of axis %u",
              (long long)start[i], (long long)size[i], (long long)by[i], (long long)x->dim[i], i);
    step[i] = size[i] == 1 ? 0 : stride[i] * by[i];
    off += stride[i] * start[i];
  }
  *out = copy_view(r, x, size, x->rank, step, off);
}

void ref_broadcast(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const Tensor *x = in[0];
  u32 rank;
  i64 dim[MAX_RANK], stride[MAX_RANK], step[MAX_RANK] = {0};
  node_list(n, AT_shape, &rank);
  ref_dims(r, n, AT_shape, dim, rank);
  shape_strides(x->dim, x->rank, stride);
  u32 skip = rank - x->rank;
  for (u32 i = skip; i < rank; i++) {
    i64 d = x->dim[i - skip];
    if (d != 1 && d != dim[i])
      REF_BAD(r, "broadcast: extent %lld cannot become %lld on axis %u", (long long)d,
              (long long)dim[i], i);
    step[i] = d == 1 ? 0 : stride[i - skip];
  }
  *out = copy_view(r, x, dim, rank, step, 0);
}

void ref_concat(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  u32 axis = (u32)node_int(n, AT_axis, 0), rank = in[0]->rank;
  i64 dim[MAX_RANK], sto[MAX_RANK], sfrom[MAX_RANK], at = 0;
  memcpy(dim, in[0]->dim, rank * sizeof *dim);
  for (u32 k = 1; k < n->nin; k++) {
    for (u32 i = 0; i < rank; i++)
      if (i != axis && in[k]->dim[i] != dim[i])
        REF_BAD(r, "concat: operand %u has extent %lld on axis %u, expected %lld", k,
                (long long)in[k]->dim[i], i, (long long)dim[i]);
    dim[axis] += in[k]->dim[axis];
  }
  Tensor *t = *out = ref_new(r, in[0]->dt, dim, rank);
  shape_strides(dim, rank, sto);
  for (u32 k = 0; k < n->nin; k++) {
    const Tensor *x = in[k];
    shape_strides(x->dim, rank, sfrom);
    if (x->n)
      copy_box(x->dim, rank, dtype_bytes(x->dt), ref_data(t), sto, at * sto[axis], x->data, sfrom,
               0);
    at += x->dim[axis];
  }
}

void ref_pad(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const Tensor *x = in[0];
  u32 count, rank = x->rank, size = dtype_bytes(x->dt);
  const Dim *mid = node_list(n, AT_interior, &count);
  i64 lo[MAX_RANK], hi[MAX_RANK], dim[MAX_RANK], stride[MAX_RANK], sto[MAX_RANK], sfrom[MAX_RANK];
  i64 none[MAX_RANK] = {0}, off = 0;
  ref_dims(r, n, AT_lo, lo, rank);
  ref_dims(r, n, AT_hi, hi, rank);
  for (u32 i = 0; i < rank; i++) {
    u64 d = (u64)x->dim[i];
    bool ok = !d || size_mul(d - 1, (u64)mid[i] + 1, &d);
    if (ok && x->dim[i]) ok = size_add(d, 1, &d);
    if (!ok || !size_add(d, (u64)lo[i] + (u64)hi[i], &d) || d > (u64)DIM_MAX)
      REF_BAD(r, "pad: the extent of axis %u exceeds 2^40", i);
    dim[i] = (i64)d;
  }
  Tensor *t = *out = ref_new(r, x->dt, dim, rank);
  if (!t->n) return;
  shape_strides(dim, rank, stride);
  shape_strides(x->dim, rank, sfrom);
  copy_box(dim, rank, size, ref_data(t), stride, 0, in[1]->data, none, 0);
  if (!x->n) return;
  for (u32 i = 0; i < rank; i++) {
    sto[i] = x->dim[i] == 1 ? 0 : stride[i] * (mid[i] + 1);
    off += stride[i] * lo[i];
  }
  copy_box(x->dim, rank, size, ref_data(t), sto, off, x->data, sfrom, 0);
}

void ref_str_encode(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  i64 k, dim[MAX_RANK];
  ref_dims(r, n, AT_k, &k, 1);
  if (in[0]->rank) memcpy(dim, in[0]->dim, in[0]->rank * sizeof *dim);
  dim[in[0]->rank] = k;
  out[0] = ref_new(r, DT_u8, dim, in[0]->rank + 1);
  if (!strings_to_bytes(r->c, in[0], (u8 *)ref_data(out[0]), k))
    REF_BAD(r, "a string has more than %lld bytes", (long long)k);
}

void ref_str_decode(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  (void)n;
  out[0] = ref_new(r, DT_str, in[0]->dim, in[0]->rank - 1);
  bytes_to_strings(r->c, in[0], out[0]);
}
