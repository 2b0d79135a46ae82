/* onnx_ops_shape.c: operators that create, query or change shapes without computing on elements. */
#include "front/onnx/onnx_builder.h"

#include <string.h>

/* ---- shapes as data ---- */

void build_shape(Build *b) {
  const Type *t = on_type(b, on_in(b, 0));
  i64 rank = t->rank, start = on_int(b, "start", 0), end = on_int(b, "end", rank);
  start = start < 0 ? start + rank : start;
  end = end < 0 ? end + rank : end;
  start = start < 0 ? 0 : start > rank ? rank : start;
  end = end < start ? start : end > rank ? rank : end;
  b->out[0] = mk_dims(b->g, t->dim + start, (u32)(end - start));
}

void build_size(Build *b) {
  b->out[0] = mk_extent(b->g, type_count(b->ds, on_type(b, on_in(b, 0))), DT_i64);
}

/* ---- reshapes ---- */

/* Fills the one ON_AUTO entry with the remaining elements of x. */
static void fill_auto(Build *b, Val x, Dim *dim, u32 n) {
  const Type *t = on_type(b, x);
  u32 at = n;
  Dim rest = 1;
  for (u32 i = 0; i < n; i++) {
    if (dim[i] != ON_AUTO) {
      rest = dim_mul(b->ds, rest, dim[i]);
      continue;
    }
    if (at != n) on_bad(b, "several elements of shape are -1, expected at most one");
    at = i;
  }
  if (at == n) return;
  Dim total = type_count(b->ds, t);
  if (rest == 0) {
    if (total != 0)
      on_bad(b, "shape has another number of elements, expected %lld as in the operand",
             (long long)total);
    dim[at] = 0;
    return;
  }
  if (dim_is_const(total) && dim_is_const(rest) && total % rest)
    on_bad(b, "%lld elements are not divisible by %lld", (long long)total, (long long)rest);
  dim[at] = dim_div(b->ds, total, rest);
}

void build_reshape(Build *b) {
  Val x = on_in(b, 0);
  Dim dim[MAX_RANK];
  u32 n;
  if (b->opset < 5) {
    i32 k = on_ints(b, "shape", dim, MAX_RANK);
    if (k < 0) on_bad(b, "attribute shape is missing");
    n = (u32)k;
    for (u32 i = 0; i < n; i++) {
      if (dim[i] < -1)
        on_bad(b, "shape: element %u is %lld, expected at least -1", i, (long long)dim[i]);
      if (dim[i] == -1) dim[i] = ON_AUTO;
    }
  } else {
    n = on_known_shape(b, 1, dim, MAX_RANK);
  }
  bool zero = on_int(b, "allowzero", 0) != 0;
  for (u32 i = 0; i < n && !zero; i++)
    if (dim[i] == 0) dim[i] = on_dim(b, x, i);
  fill_auto(b, x, dim, n);
  b->out[0] = mk_reshape(b->g, x, dim, n);
}

void build_flatten(Build *b) {
  Val x = on_in(b, 0);
  const Type *t = on_type(b, x);
  i64 axis = on_int(b, "axis", 1);
  if (axis < 0) axis += t->rank;
  if (axis < 0 || axis > (i64)t->rank)
    on_bad(b, "axis %lld is out of range, expected 0 to %u", (long long)axis, t->rank);
  Dim dim[2] = {dim_product(b->ds, t->dim, (u32)axis),
                dim_product(b->ds, t->dim + axis, t->rank - (u32)axis)};
  b->out[0] = mk_reshape(b->g, x, dim, 2);
}

void build_squeeze(Build *b) {
  Val x = on_in(b, 0);
  Type t = *on_type(b, x); /* copied: building nodes moves types */
  i64 axes[MAX_RANK];
  i32 n = on_ints_or_input(b, "axes", 1, axes, MAX_RANK);
  Dim dim[MAX_RANK];
  u32 rank = 0, mask = 0;
  if (n >= 0) on_axes(b, axes, (u32)n, t.rank);
  for (i32 i = 0; i < n; i++) {
    if (dim_is_const(t.dim[axes[i]]) && t.dim[axes[i]] != 1)
      on_bad(b, "axis %lld has extent %lld, expected 1", (long long)axes[i],
             (long long)t.dim[axes[i]]);
    mask |= 1u << axes[i];
  }
  for (u32 i = 0; i < t.rank; i++)
    if (n >= 0 ? !(mask >> i & 1) : t.dim[i] != 1) dim[rank++] = t.dim[i];
  b->out[0] = mk_reshape(b->g, x, dim, rank);
}

void build_unsqueeze(Build *b) {
  Val x = on_in(b, 0);
  Type t = *on_type(b, x); /* copied: building nodes moves types */
  i64 axes[MAX_RANK];
  i32 n = on_ints_or_input(b, "axes", 1, axes, MAX_RANK);
  if (n < 0) on_bad(b, "axes are missing, expected an attribute or input axes");
  u32 rank = t.rank + (u32)n, mask = 0, k = 0;
  if (rank > MAX_RANK) on_unsupported(b, "rank %u exceeds %d", rank, MAX_RANK);
  on_axes(b, axes, (u32)n, rank);
  for (i32 i = 0; i < n; i++) mask |= 1u << axes[i];
  Dim dim[MAX_RANK];
  for (u32 i = 0; i < rank; i++) dim[i] = mask >> i & 1 ? 1 : t.dim[k++];
  b->out[0] = mk_reshape(b->g, x, dim, rank);
}

void build_transpose(Build *b) {
  Val x = on_in(b, 0);
  u32 rank = on_rank(b, x);
  i64 perm[MAX_RANK];
  i32 n = on_ints(b, "perm", perm, MAX_RANK);
  if (n < 0)
    for (u32 i = 0; i < rank; i++) perm[i] = rank - 1 - i;
  else if ((u32)n != rank)
    on_bad(b, "perm has %d elements, expected %u, the rank", n, rank);
  else
    on_axes(b, perm, rank, rank);
  b->out[0] = mk_transpose(b->g, x, perm);
}

static i64 blocksize(Build *b, Val x) {
  i64 r = on_int(b, "blocksize", 0);
  if (on_rank(b, x) != 4 || r < 1)
    on_bad(b, "the operand has rank %u, expected 4; blocksize is %lld, expected 1 or more",
           on_rank(b, x), (long long)r);
  return r;
}

/* Moves blocks of size r between channels and space of [N, C, spatial]. */
void build_depth_to_space(Build *b) {
  Val x = on_in(b, 0);
  i64 r = blocksize(b, x);
  Dim n = on_dim(b, x, 0), c = on_dim(b, x, 1), h = on_dim(b, x, 2), w = on_dim(b, x, 3);
  if (dim_is_const(c) && c % (r * r))
    on_bad(b, "%lld channels are not divisible by %lld", (long long)c, (long long)(r * r));
  Dim k = dim_div(b->ds, c, r * r);
  bool crd = on_str_is(b, "mode", "DCR", "CRD");
  Dim dcr_shape[6] = {n, r, r, k, h, w}, crd_shape[6] = {n, k, r, r, h, w};
  static const i64 dcr_perm[6] = {0, 3, 4, 1, 5, 2}, crd_perm[6] = {0, 1, 4, 2, 5, 3};
  Dim out[4] = {n, k, dim_mul(b->ds, h, r), dim_mul(b->ds, w, r)};
  Val y = mk_reshape(b->g, x, crd ? crd_shape : dcr_shape, 6);
  b->out[0] = mk_reshape(b->g, mk_transpose(b->g, y, crd ? crd_perm : dcr_perm), out, 4);
}

void build_space_to_depth(Build *b) {
  Val x = on_in(b, 0);
  i64 r = blocksize(b, x);
  Dim n = on_dim(b, x, 0), c = on_dim(b, x, 1), h = on_dim(b, x, 2), w = on_dim(b, x, 3);
  if ((dim_is_const(h) && h % r) || (dim_is_const(w) && w % r))
    on_bad(b, "the extents are not divisible by blocksize");
  Dim hb = dim_div(b->ds, h, r), wb = dim_div(b->ds, w, r);
  Dim split[6] = {n, c, hb, r, wb, r}, out[4] = {n, dim_mul(b->ds, c, r * r), hb, wb};
  static const i64 dcr[6] = {0, 3, 5, 1, 2, 4}, crd[6] = {0, 1, 3, 5, 2, 4};
  bool columns = on_choice(b, "mode", "DCR CRD") == 1;
  Val y = mk_transpose(b->g, mk_reshape(b->g, x, split, 6), columns ? crd : dcr);
  b->out[0] = mk_reshape(b->g, y, out, 4);
}

/* ---- broadcasts and repetition ---- */

void build_expand(Build *b) {
  Val x = on_in(b, 0);
  Dim dim[MAX_RANK], out[MAX_RANK];
  u32 n = on_known_dims(b, 1, dim, MAX_RANK);
  Type want = {.kind = TY_tensor, .rank = n, .dim = dim};
  const Type *both[2] = {on_type(b, x), &want};
  u32 rank = infer_broadcast(b->g, both, 2, out);
  b->out[0] = mk_broadcast(b->g, x, out, rank);
}

void build_tile(Build *b) {
  Val x = on_in(b, 0);
  u32 rank = on_rank(b, x);
  Dim k[MAX_RANK];
  if (b->opset < 6) { /* tiles and axis are numbers */
    i64 tiles, axis;
    on_known_ints(b, 1, &tiles, 1);
    on_known_ints(b, 2, &axis, 1);
    if (tiles < 0) on_bad(b, "tiles is %lld, expected at least 0", (long long)tiles);
    b->out[0] = mk_repeat(b->g, x, on_axis(b, axis, rank), tiles);
    return;
  }
  if (on_known_dims(b, 1, k, MAX_RANK) != rank) on_bad(b, "repeats: expected %u elements", rank);
  for (u32 i = 0; i < rank; i++) x = mk_repeat(b->g, x, i, k[i]);
  b->out[0] = x;
}

/* ---- constants ---- */

void build_constant(Build *b) {
  static const struct {
    const char *name;
    OnnxAttrType type; /* OA_none: a tensor */
  } forms[] = {{"value", OA_none},          {"sparse_value", OA_none},
               {"value_int", OA_int},       {"value_ints", OA_ints},
               {"value_float", OA_float},   {"value_floats", OA_floats},
               {"value_string", OA_string}, {"value_strings", OA_strings}};
  u32 given = 0, at = 0;
  for (u32 i = 0; i < sizeof forms / sizeof *forms; i++)
    if (on_has_attr(b, forms[i].name)) given++, at = i;
  if (given != 1) on_bad(b, "found %u value attributes, expected exactly one", given);
  const char *name = forms[at].name;
  OnnxAttrType type = forms[at].type;
  b->out[0] = mk_const(b->g, type ? on_table(b, on_typed(b, name, type)) : on_tensor(b, name));
}

void build_constant_of_shape(Build *b) {
  Dim dim[MAX_RANK];
  u32 n = on_known_dims(b, 0, dim, MAX_RANK);
  Tensor *t = on_tensor(b, "value");
  if (t && t->n != 1) on_bad(b, "value has %llu elements, expected one", (unsigned long long)t->n);
  Val v = t ? mk_const(b->g, t) : mk_scalar(b->g, DT_f32, 0);
  b->out[0] = mk_full(b->g, v, dim, n);
}

/* Length of an ascending range with run-time start or end, if it is bounded. */
static bool late_count(Build *b, Dim *n) {
  Graph *g = b->g;
  i64 start = 0, step;
  u32 k;
  bool from = on_try_ints(b, 0, &start, 1, &k);
  if (!dtype_is_int(on_dtype(b, on_in(b, 1))) || !on_try_ints(b, 2, &step, 1, &k) ||
      start < -INT32_MAX || start > INT32_MAX || step < 1 || step > INT32_MAX ||
      (from && on_try_ints(b, 1, n, 1, &k)))
    return false;
  Val first =
      from ? mk_scalar(g, DT_i64, (double)start) : mk_cast(g, on_scalar(b, on_in(b, 0)), DT_i64);
  Val end = mk_cast(g, on_scalar(b, b->in[1]), DT_i64);
  Val count = mk_sub(g, mk_max(g, end, first), first);
  if (step > 1) {
    Val by = mk_scalar(g, DT_i64, (double)step);
    count = mk_div(g, mk_addk(g, count, (double)(step - 1)), by);
  }
  k = 0;
  return dynamic_dims(b, count, n, 1, &k);
}

/* start + i * delta for i below ceil((limit - start) / delta) */
void build_range(Build *b) {
  Val start = mk_reshape(b->g, on_in(b, 0), NULL, 0),
      delta = mk_reshape(b->g, on_in(b, 2), NULL, 0);
  DType dt = on_dtype(b, start);
  Dim n, lim, first, k;
  i64 step = 0;
  u32 one;
  bool open = graph_dim_list(b->g, on_in(b, 1), &lim, 1, &one) && !dim_is_const(lim) &&
              graph_dim_list(b->g, b->in[0], &first, 1, &one) &&
              graph_ints(b->g, b->in[2], &step, 1, &one) && step == 1;
  if (open) { /* between two extents, such as past to past + new */
    n = dim_max(b->g->dims, 0, dim_sub(b->g->dims, lim, first));
  } else if (!late_count(b, &n)) {
    Scalar s = tensor_get(on_known(b, 0), 0), l = tensor_get(on_known(b, 1), 0),
           d = tensor_get(on_known(b, 2), 0);
    if (dtype_is_float(dt)) {
      double count = d.f ? __builtin_ceil((l.f - s.f) / d.f) : -1;
      if (!(d.f != 0) || !(count < (double)DIM_MAX))
        on_bad(b, "delta is 0 or the range has no end, expected a finite range");
      n = count > 0 ? (i64)count : 0;
    } else {
      i64 span;
      if (d.i == 0 || __builtin_sub_overflow(l.i, s.i, &span))
        on_bad(b, "delta is 0 or the range is too long, expected at most 2^36 elements");
      k = span / d.i + (span % d.i != 0 && (span < 0) == (d.i < 0));
      n = k > 0 ? k : 0;
    }
    if (n > DIM_MAX / 16)
      on_bad(b, "the range has %lld elements, expected at most 2^36", (long long)n);
  }
  Val i = mk_iota(b->g, dtype_is_float(dt) ? dtype_acc(dt) : dt, &n, 1, 0);
  Val from = mk_widen(b->g, start);
  Val scaled = mk_add(b->g, mk_mul(b->g, i, mk_widen(b->g, delta)), from);
  b->out[0] = mk_cast(b->g, scaled, dt);
}

void build_eyelike(Build *b) {
  Val x = on_in(b, 0);
  Type t = *on_type(b, x); /* copied: building nodes moves types */
  if (t.rank != 2) on_bad(b, "the operand must have rank 2, found %u", t.rank);
  DType dt = on_has_attr(b, "dtype") ? dtype_from_onnx(on_int(b, "dtype", 0)) : t.dt;
  if (!dt) on_bad(b, "dtype is not an element type of ONNX, expected one");
  Val row = mk_iota(b->g, DT_i64, t.dim, 2, 0), col = mk_iota(b->g, DT_i64, t.dim, 2, 1);
  Val on = mk_eq(b->g, mk_addk(b->g, row, (double)on_int(b, "k", 0)), col);
  b->out[0] = mk_cast(b->g, on, dt);
}

void build_trilu(Build *b) {
  Val x = on_in(b, 0);
  Type t = *on_type(b, x); /* copied: building nodes moves types */
  if (t.rank < 2) on_bad(b, "the operand must have rank 2 or more, found %u", t.rank);
  Val k = on_has(b, 1) ? mk_reshape(b->g, on_in(b, 1), NULL, 0) : mk_scalar(b->g, DT_i64, 0);
  Val row = mk_iota(b->g, DT_i64, t.dim + t.rank - 2, 2, 0);
  Val col = mk_iota(b->g, DT_i64, t.dim + t.rank - 2, 2, 1), diag = mk_add(b->g, row, k);
  bool upper = on_int(b, "upper", 1) != 0;
  Val keep = mk_map2(b->g, upper ? OP_ge : OP_le, col, diag);
  b->out[0] = mk_select(b->g, keep, x, mk_like(b->g, x, 0));
}

/* ---- joins ---- */

void build_concat(Build *b) {
  u32 rank = on_rank(b, on_in(b, 0));
  i64 axis = on_int(b, "axis", 1);
  if (b->opset >= 4 && !on_has_attr(b, "axis")) on_bad(b, "attribute axis is missing");
  for (u32 i = 0; i < b->nin; i++) on_in(b, i);
  b->out[0] = mk_concat(b->g, b->in, b->nin, on_axis(b, axis, rank));
}

void build_split(Build *b) {
  Val x = on_in(b, 0);
  u32 axis = on_axis_of(b, x, 0), n = b->nout;
  Dim d = on_dim(b, x, axis), *size = NEWS(&b->c->work, Dim, n), at = 0;
  i32 given = on_ints_or_input(b, "split", 1, size, n);
  if (given >= 0 && (u32)given != n)
    on_bad(b, "found %d sizes, expected %u, one for each output", given, n);
  if (given < 0) {
    i64 parts = on_int(b, "num_outputs", n);
    if (parts != n)
      on_bad(b, "num_outputs is %lld, expected %u, the number of outputs", (long long)parts, n);
    if (!dim_is_const(d)) on_unsupported(b, "split of a symbolic dimension");
    i64 chunk = (d + n - 1) / n;
    if (d % n && !on_has_attr(b, "num_outputs"))
      on_bad(b, "extent %lld is not divisible by %u", (long long)d, n);
    for (u32 i = 0; i < n; i++) {
      i64 left = d - chunk * (i64)i;
      size[i] = left < 0 ? 0 : left < chunk ? left : chunk;
    }
  }
  for (u32 i = 0; i < n; i++) {
    if (size[i] < 0) on_bad(b, "a part has size %lld, expected at least 0", (long long)size[i]);
    b->out[i] = mk_slice_axis(b->g, x, axis, at, size[i]);
    at += size[i];
  }
  if (dim_is_const(d) && at != d)
    on_bad(b, "the sizes add up to %lld, expected %lld, the extent of the axis", (long long)at,
           (long long)d);
}
