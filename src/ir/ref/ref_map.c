/* ref_map.c: scalar ops over whole tensors, and nodes without operands.
 *
 * Operands are broadcast from the right. Works on a row of the result at a time, along which
 * operands have stride 0 or 1. scalar_eval defines the ops; the most frequent ones have typed loops
 * with the same result. */
#include "ir/ref/ref.h"

#include <string.h>

/* Shape of the operands broadcast together. */
static u32 broadcast(Ref *r, Tensor *const *in, u32 n, i64 *dim) {
  u32 rank = 0;
  for (u32 i = 0; i < n; i++) rank = in[i]->rank > rank ? in[i]->rank : rank;
  for (u32 k = 0; k < rank; k++) {
    dim[k] = 1;
    for (u32 i = 0; i < n; i++) {
      u32 skip = rank - in[i]->rank;
      i64 d = k < skip ? 1 : in[i]->dim[k - skip];
      if (d == 1 || d == dim[k]) continue;
      if (dim[k] != 1)
        REF_BAD(r, "%s: extents %lld and %lld do not broadcast on axis %u", op_info[r->n->op].name,
                (long long)dim[k], (long long)d, k);
      dim[k] = d;
    }
  }
  return rank;
}

/* Iterator over all axes but the last, and the stride of each operand along the last. */
static i64 rows(Tensor *const *in, u32 nin, const i64 *dim, u32 rank, NdIter *w, i64 *last) {
  *w = (NdIter){.rank = rank ? rank - 1 : 0, .arrays = nin};
  for (u32 k = 0; k < w->rank; k++) w->dim[k] = dim[k];
  for (u32 i = 0; i < nin; i++) {
    u32 skip = rank - in[i]->rank;
    i64 stride[MAX_RANK];
    shape_strides(in[i]->dim, in[i]->rank, stride);
    last[i] = 0;
    for (u32 k = skip; k < rank; k++) {
      i64 step = in[i]->dim[k - skip] == 1 ? 0 : stride[k - skip];
      if (k + 1 < rank)
        w->step[i][k] = step;
      else
        last[i] = step;
    }
  }
  return rank ? dim[rank - 1] : 1;
}

static bool has_loop(Op op) {
  return op == OP_add || op == OP_sub || op == OP_mul || op == OP_max || op == OP_min;
}

static void map_fast(Ref *r, const Node *n, Tensor *const *in, Tensor *out) {
  const Loops *loops = acc_loops(out->dt);
  const u8 *a = acc_read(r, in[0], false), *b = acc_read(r, in[1], false);
  u8 *to = ref_data(out);
  NdIter w;
  i64 last[2], row = rows(in, 2, out->dim, out->rank, &w, last), size = (i64)loops->size;
  if (!out->n || !nditer_start(&w)) return;
  do {
    loops->map(n->op, to, a + w.off[0] * size, last[0], b + w.off[1] * size, last[1], row);
    to += row * size;
  } while (nditer_next(&w));
}

/* Reinterprets the bits as another type. In wide mode floats are stored as f64 and converted to
 * their bits only here. */
static Scalar bitcast(DType from, DType to, Scalar x) {
  u8 bits[16] = {0};
  if (dtype_is_float(from)) x.f = scalar_round(from, x.f);
  scalar_store(from, bits, x);
  return scalar_load(to, bits);
}

static Scalar apply(Ref *r, const Node *n, DType dt, const Scalar *x) {
  if (n->op != OP_cast && n->op != OP_bitcast) return scalar_eval(n->op, dt, x);
  DType to = (DType)node_int(n, AT_to, DT_none);
  if (n->op == OP_bitcast) return bitcast(graph_type(r->g, n->in[0])->dt, to, *x);
  return scalar_cast(dt, ref_dtype(r, to), *x, node_cast_sat(n));
}

static DType result_type(Ref *r, const Node *n, Tensor *const *in) {
  switch (op_info[n->op].res) {
  case OR_pred: return DT_bool;
  case OR_sel: return in[1]->dt;
  case OR_to: return ref_dtype(r, (DType)node_int(n, AT_to, DT_none));
  default: return in[0]->dt;
  }
}

void ref_map(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  i64 dim[MAX_RANK];
  u32 rank = broadcast(r, in, n->nin, dim);
  Tensor *t = *out = ref_new(r, result_type(r, n, in), dim, rank);
  bool plain = t->dt == DT_f32 || t->dt == DT_f64 || t->dt == DT_i64;
  if (plain && has_loop(n->op)) {
    map_fast(r, n, in, t);
    return;
  }
  DType dt = in[n->nin - 1]->dt; /* the condition of select comes first */
  if (dtype_info[dt].cls == 'C' || dtype_info[t->dt].cls == 'C')
    fail(r->c, ERR_unsupported, n->loc, "%s is not supported on complex numbers",
         op_info[n->op].name);
  NdIter w;
  i64 last[3], row = rows(in, n->nin, dim, rank, &w, last);
  u64 at = 0;
  if (!t->n || !nditer_start(&w)) return;
  do {
    for (i64 i = 0; i < row; i++) {
      Scalar x[3] = {{0}};
      for (u32 k = 0; k < n->nin; k++) x[k] = tensor_get(in[k], (u64)(w.off[k] + i * last[k]));
      tensor_set(t, at++, apply(r, n, dt, x));
    }
  } while (nditer_next(&w));
}

/* ---- leaves ---- */

void ref_const(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  (void)in;
  Tensor *t = node_attr(n, AT_value)->u.t;
  *out = t;
  if (ref_dtype(r, t->dt) == t->dt) return;
  *out = ref_new(r, t->dt, t->dim, t->rank);
  for (u64 i = 0; i < t->n; i++) tensor_set(*out, i, tensor_get(t, i));
}

void ref_dims_node(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  (void)in;
  u32 count;
  const Dim *d = node_list(n, AT_shape, &count);
  DType to = (DType)node_int(n, AT_to, DT_i64);
  i64 dim = count;
  *out = ref_new(r, to, &dim, (u32)node_int(n, AT_rank, 1));
  for (u32 i = 0; i < count; i++)
    tensor_set(*out, i, (Scalar){.i = scalar_wrap(to, ref_size(r, d[i]))});
}

/* Allocates the result of iota or random: shape and type are attributes. */
static Tensor *leaf(Ref *r, const Node *n) {
  u32 rank;
  i64 dim[MAX_RANK];
  node_list(n, AT_shape, &rank);
  ref_dims(r, n, AT_shape, dim, rank);
  return ref_new(r, (DType)node_int(n, AT_to, DT_none), dim, rank);
}

void ref_iota(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  (void)in;
  Tensor *t = *out = leaf(r, n);
  u32 axis = (u32)node_int(n, AT_axis, 0);
  i64 inner = shape_product(t->dim + axis + 1, t->rank - axis - 1), extent = t->dim[axis];
  for (u64 i = 0; i < t->n; i++) {
    Scalar x = {.i = (i64)i / inner % extent};
    tensor_set(t, i, scalar_cast(DT_i64, t->dt, x, false));
  }
}

void ref_random(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  (void)in;
  Tensor *t = *out = leaf(r, n);
  DType dt = (DType)node_int(n, AT_to, DT_none);
  u64 seed = (u64)node_int(n, AT_seed, 0);
  for (u64 i = 0; i < t->n; i++) tensor_set(t, i, (Scalar){.f = random_unit(dt, seed, r->seed, i)});
}
