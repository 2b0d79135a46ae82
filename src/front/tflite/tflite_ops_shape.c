/* tflite_ops_shape.c: views, joins, padding, block moves, and tensors made from shapes.
 *
 * Stored elements are moved unchanged, whatever the scales, like TensorFlow Lite, whose converter
 * gives operand and result the same scale. Only CONCATENATION of u8 rescales its parts.
 */
#include "front/tflite/tflite_import.h"

/* ---- shapes ---- */

/* Reshapes to a list of numbers, one of which may be -1. */
static Val reshaped(LiteNode *b, Val x, i64 *given, u32 n) {
  Dim rest = 1, total = type_count(b->ds, graph_type(b->g, x));
  u32 at = n;
  for (u32 i = 0; i < n; i++) {
    if (given[i] == -1 && at == n)
      at = i;
    else if (given[i] < 0)
      lite_bad(b, "element %u of the shape is %lld, expected 0 or more, or a single -1", i,
               (long long)given[i]);
    else
      rest = dim_mul(b->ds, rest, given[i]);
  }
  if (at < n) {
    if (dim_is_const(rest) && dim_is_const(total) && (!rest || total % rest))
      lite_bad(b, "%lld elements are not divisible by %lld", (long long)total, (long long)rest);
    given[at] = dim_div(b->ds, total, rest);
  }
  return mk_reshape(b->g, x, given, n);
}

/* Uses the computed shape; the shape in the file only says which extents are open. */
void lite_reshape(LiteNode *b) {
  Val x = lite_in(b, 0);
  i64 dim[MAX_RANK];
  u32 n = 0;
  bool known = lite_has(b, 1) && graph_ints(b->g, lite_in(b, 1), dim, MAX_RANK, &n);
  FlatVec list = flat_vec(&b->op->opt, 0, 4);
  bool open = !known && lite_has(b, 1) &&
              (!list.n || graph_dim_list(b->g, lite_in(b, 1), dim, MAX_RANK, &n));
  if (open) { /* extents of inputs, all known */
    n = lite_dim_list(b, 1, dim, MAX_RANK);
    lite_set_stored(b, 0, mk_reshape(b->g, x, dim, n));
    return;
  }
  if (!known && list.n > MAX_RANK)
    lite_unsupported(b, "rank %u is not supported; expected at most %d", list.n, MAX_RANK);
  if (!known)
    for (n = 0; n < list.n; n++) dim[n] = flat_vec_int(&list, n);
  if (!known && n == 1 && !dim[0]) n = 0; /* a scalar, as old converters write it */
  lite_set_stored(b, 0, reshaped(b, x, dim, n));
}

void lite_squeeze(LiteNode *b) {
  Val x = lite_in(b, 0);
  Type t = *graph_type(b->g, x); /* copied: building nodes moves types */
  FlatVec list = flat_vec(&b->op->opt, 0, 4);
  Dim dim[MAX_RANK];
  u32 mask = 0, n = 0;
  for (u32 i = 0; i < list.n; i++) mask |= 1u << lite_axis(b, flat_vec_int(&list, i), t.rank);
  for (u32 i = 0; i < t.rank; i++) {
    if (mask >> i & 1 && dim_is_const(t.dim[i]) && t.dim[i] != 1)
      lite_bad(b, "axis %u has extent %lld, expected 1", i, (long long)t.dim[i]);
    if (list.n ? !(mask >> i & 1) : t.dim[i] != 1) dim[n++] = t.dim[i];
  }
  lite_set_stored(b, 0, mk_reshape(b->g, x, dim, n));
}

void lite_expand_dims(LiteNode *b) {
  Val x = lite_in(b, 0);
  u32 rank = lite_rank(b, x);
  if (rank == MAX_RANK)
    lite_unsupported(b, "rank %u is not supported; expected at most %d", rank + 1, MAX_RANK);
  lite_set_stored(b, 0, mk_unsqueeze(b->g, x, lite_axis(b, lite_int(b, 1), rank + 1)));
}

void lite_shape(LiteNode *b) {
  const Type *t = graph_type(b->g, lite_in(b, 0));
  DType dt = lite_result(b, 0)->dt;
  if (dt != DT_i32 && dt != DT_i64)
    lite_bad(b, "the result has type %s, expected i32 or i64", dtype_info[dt].name);
  lite_set_stored(b, 0, mk_dims_as(b->g, dt, 1, t->dim, t->rank));
}

void lite_rank_of(LiteNode *b) {
  lite_set_stored(b, 0, mk_scalar(b->g, DT_i32, lite_rank(b, lite_in(b, 0))));
}

/* Broadcasts two shapes given as data; pads the shorter with leading ones. */
void lite_broadcast_args(LiteNode *b) {
  Graph *g = b->g;
  Val v[2] = {lite_in(b, 0), lite_in(b, 1)};
  Dim n[2];
  for (u32 i = 0; i < 2; i++) {
    if (lite_rank(b, v[i]) != 1) lite_bad(b, "a shape has rank %u, expected 1", lite_rank(b, v[i]));
    n[i] = val_dim(g, v[i], 0);
  }
  Dim most = dim_max(b->ds, n[0], n[1]);
  for (u32 i = 0; i < 2; i++) {
    Dim lo = dim_sub(b->ds, most, n[i]), hi = 0;
    v[i] = mk_pad(g, v[i], mk_like(g, v[i], 1), &lo, &hi, NULL);
  }
  lite_set_stored(b, 0, mk_select(g, mk_eq(g, v[0], mk_like(g, v[0], 1)), v[1], v[0]));
}

/* ---- views ---- */

void lite_transpose(LiteNode *b) {
  Val x = lite_in(b, 0);
  u32 rank = lite_rank(b, x), seen = 0;
  i64 perm[MAX_RANK];
  if (lite_ints(b, 1, perm, MAX_RANK) != rank) lite_bad(b, "perm: expected %u elements", rank);
  for (u32 i = 0; i < rank; i++) {
    perm[i] = lite_axis(b, perm[i], rank);
    if (seen >> perm[i] & 1) lite_bad(b, "axis %lld occurs twice", (long long)perm[i]);
    seen |= 1u << perm[i];
  }
  lite_set_stored(b, 0, mk_transpose(b->g, x, perm));
}

void lite_reverse(LiteNode *b) {
  Val x = lite_in(b, 0);
  Type t = *graph_type(b->g, x);
  i64 axes[MAX_RANK], step[MAX_RANK];
  Dim start[MAX_RANK] = {0};
  u32 n = lite_ints(b, 1, axes, MAX_RANK);
  for (u32 i = 0; i < t.rank; i++) step[i] = 1;
  for (u32 i = 0; i < n; i++) {
    u32 a = lite_axis(b, axes[i], t.rank);
    step[a] = -1;
    start[a] = t.dim[a] ? dim_addk(b->ds, t.dim[a], -1) : 0;
  }
  lite_set_stored(b, 0, mk_slice(b->g, x, start, t.dim, step));
}

/* Element i of a list of integers as an i64 scalar, constant also in a concatenated list. */
static Val list_entry(Graph *g, Val v, i64 i) {
  for (const Node *n; (n = graph_def(g, v, OP_concat)) != NULL;) {
    u32 k = 0;
    for (; k + 1 < n->nin && i >= graph_type(g, n->in[k])->dim[0]; k++)
      i -= graph_type(g, n->in[k])->dim[0];
    v = n->in[k];
  }
  const Tensor *known = graph_const(g, v);
  if (known) return mk_scalar(g, DT_i64, (double)tensor_get(known, (u64)i).i);
  return mk_cast(g, mk_reshape(g, mk_slice_axis(g, v, 0, i, 1), NULL, 0), DT_i64);
}

/* x[at:at + k] along an axis of extent d for a run-time k. */
static Val slice_open(Graph *g, Val x, u32 axis, Val at, Val k) {
  Dim d = val_dim(g, x, axis);
  Val zero = mk_scalar(g, DT_i64, 0), extent = mk_extent(g, d, DT_i64);
  Val early = mk_lt(g, mk_min(g, at, k), zero);
  Val wrong = mk_or(g, early, mk_gt(g, mk_add(g, at, k), extent));
  k = mk_add(g, k, mk_assert(g, mk_cast(g, wrong, DT_i64), "a slice leaves its operand"));
  Val below = mk_lt(g, mk_iota(g, DT_i64, &d, 1, 0), k);
  return mk_gather(g, x, mk_add(g, mk_squeeze(g, mk_nonzero(g, below), 0), at), axis);
}

/* Slices at run-time positions or sizes by gathering, axis by axis. */
static Val slice_late(LiteNode *b, Val x, Val begin, Val size, u32 rank) {
  Graph *g = b->g;
  for (u32 i = 0; i < rank; i++) {
    Dim d = val_dim(g, x, i);
    Val at = list_entry(g, begin, i), n = list_entry(g, size, i);
    i64 k, from = -1;
    u32 one;
    graph_ints(g, at, &from, 1, &one);
    if (!graph_ints(g, n, &k, 1, &one)) {
      x = slice_open(g, x, i, at, n);
    } else if (k < 0) {
      if (from != 0) x = slice_open(g, x, i, at, mk_sub(g, mk_extent(g, d, DT_i64), at));
    } else if (k != d) {
      Val places = mk_check_index(g, mk_add(g, mk_iota(g, DT_i64, &k, 1, 0), at), &d, 1);
      x = mk_gather(g, x, places, i);
    }
  }
  return x;
}

void lite_slice(LiteNode *b) {
  Val x = lite_in(b, 0), from = lite_in(b, 1), to = lite_in(b, 2);
  Type t = *graph_type(b->g, x);
  i64 size[MAX_RANK];
  Dim begin[MAX_RANK];
  u32 n, m;
  for (u32 i = 1; i < 3; i++)
    if (lite_rank(b, lite_in(b, i)) != 1 || val_dim(b->g, lite_in(b, i), 0) != (i64)t.rank)
      lite_bad(b, "begin and size have another length, expected %u elements", t.rank);
  if (!graph_dim_list(b->g, from, begin, MAX_RANK, &n) ||
      !graph_ints(b->g, to, size, MAX_RANK, &m)) {
    lite_set_stored(b, 0, slice_late(b, x, from, to, t.rank));
    return;
  }
  for (u32 i = 0; i < t.rank; i++) {
    if (size[i] < -1) lite_bad(b, "a size is %lld, expected at least -1", (long long)size[i]);
    if (size[i] == -1) size[i] = dim_sub(b->ds, t.dim[i], begin[i]);
  }
  lite_set_stored(b, 0, mk_slice(b->g, x, begin, size, NULL));
}

void lite_tile(LiteNode *b) {
  Val x = lite_in(b, 0);
  Dim k[MAX_RANK];
  u32 rank = lite_rank(b, x);
  if (lite_dim_list(b, 1, k, MAX_RANK) != rank)
    lite_bad(b, "multiples: expected %u elements", rank);
  for (u32 i = 0; i < rank; i++) x = mk_repeat(b->g, x, i, k[i]);
  lite_set_stored(b, 0, x);
}

void lite_broadcast_to(LiteNode *b) {
  Dim dim[MAX_RANK];
  u32 n = lite_dim_list(b, 1, dim, MAX_RANK);
  lite_set_stored(b, 0, mk_broadcast(b->g, lite_in(b, 0), dim, n));
}

/* ---- tensors from shapes ---- */

void lite_fill(LiteNode *b) {
  Dim dim[MAX_RANK];
  u32 n = lite_dim_list(b, 0, dim, MAX_RANK);
  lite_set_stored(b, 0, mk_full(b->g, lite_in(b, 1), dim, n));
}

void lite_zeros_like(LiteNode *b) {
  Val x = lite_in(b, 0);
  Type t = *graph_type(b->g, x);
  lite_set_stored(b, 0, mk_full(b->g, mk_like(b->g, x, 0), t.dim, t.rank));
}

static const Tensor *known(LiteNode *b, u32 i) {
  const Tensor *t = graph_const(b->g, lite_in(b, i));
  if (!t || t->n != 1) lite_unsupported(b, "input %u: expected one constant number", i);
  return t;
}

/* Numbers from start (0) to limit (1, exclusive) by delta (2). */
void lite_range(LiteNode *b) {
  Graph *g = b->g;
  DType dt = lite_dt(b, lite_in(b, 0));
  Dim n;
  u32 one;
  bool open = graph_dim_list(g, lite_in(b, 1), &n, 1, &one) && !dim_is_const(n);
  Scalar s = tensor_get(known(b, 0), 0), d = tensor_get(known(b, 2), 0);
  if (open && (dtype_is_float(dt) || s.i || d.i != 1))
    lite_unsupported(b, "a range to an open extent must begin at 0 and have step 1");
  if (!open) {
    Scalar l = tensor_get(known(b, 1), 0);
    double from = dtype_is_float(dt) ? s.f : (double)s.i,
           by = dtype_is_float(dt) ? d.f : (double)d.i;
    double count = ((dtype_is_float(dt) ? l.f : (double)l.i) - from) / by;
    if (!(by != 0) || !(count < (double)INT32_MAX))
      lite_bad(b, "delta is 0, or the range has 2^31 elements or more");
    n = count > 0 ? (i64)count + (count > (double)(i64)count) : 0;
  }
  Val i = mk_iota(g, dt, &n, 1, 0), start = mk_reshape(g, lite_in(b, 0), NULL, 0);
  lite_set_stored(b, 0, mk_add(g, mk_mul(g, i, mk_reshape(g, lite_in(b, 2), NULL, 0)), start));
}

/* ---- joins ---- */

/* x * (scale / scale of the result) - zero * that, rounded, like the u8 kernel. */
static Val rescaled(LiteNode *b, u32 i) {
  const LiteTensor *x = lite_operand(b, i), *y = lite_result(b, 0);
  Val v = lite_in(b, i);
  if (x->dt != DT_u8 || x->q.n != 1 || y->q.n != 1 || lite_same_quant(x, y)) return v;
  float by = x->q.scale[0] * (1.0f / y->q.scale[0]);
  Val r = mk_mulk(b->g, mk_cast(b->g, v, DT_f32), (double)by);
  r = mk_addk(b->g, r, (double)(-(float)x->q.zero[0] * by));
  return mk_cast_sat(b->g, mk_addk(b->g, lite_rounded(b, r), (double)y->q.zero[0]), DT_u8);
}

void lite_concatenation(LiteNode *b) {
  u32 n = b->op->nin;
  Val *v = NEWS(&b->c->work, Val, n);
  for (u32 i = 0; i < n; i++) v[i] = rescaled(b, i);
  u32 axis = lite_axis(b, flat_i32(&b->op->opt, 0, 0), lite_rank(b, v[0]));
  Val y = mk_concat(b->g, v, n, axis);
  if (flat_i8(&b->op->opt, 1, LA_none) != LA_none) {
    y = lite_is_quant(lite_result(b, 0)) ? lite_real_of(b, y, lite_result(b, 0)) : y;
    lite_set_activated(b, 0, y, flat_i8(&b->op->opt, 1, LA_none));
    return;
  }
  lite_set_stored(b, 0, y);
}

void lite_pack(LiteNode *b) {
  u32 n = b->op->nin, rank = lite_rank(b, lite_in(b, 0));
  if (rank == MAX_RANK)
    lite_unsupported(b, "rank %u is not supported; expected at most %d", rank + 1, MAX_RANK);
  u32 axis = lite_axis(b, flat_i32(&b->op->opt, 1, 0), rank + 1);
  Val *v = NEWS(&b->c->work, Val, n);
  for (u32 i = 0; i < n; i++) {
    if (lite_rank(b, lite_in(b, i)) != rank)
      lite_bad(b, "the operands have different ranks, expected equal ones");
    v[i] = mk_unsqueeze(b->g, lite_in(b, i), axis);
  }
  lite_set_stored(b, 0, mk_concat(b->g, v, n, axis));
}

void lite_unpack(LiteNode *b) {
  Val x = lite_in(b, 0);
  u32 axis = lite_axis(b, flat_i32(&b->op->opt, 1, 0), lite_rank(b, x));
  Dim d = val_dim(b->g, x, axis);
  if (d != b->op->nout)
    lite_bad(b, "found %u results, expected %lld, the extent of the axis", b->op->nout,
             (long long)d);
  for (u32 i = 0; i < b->op->nout; i++)
    lite_set_stored(b, i, mk_squeeze(b->g, mk_slice_axis(b->g, x, axis, i, 1), axis));
}

static void split(LiteNode *b, Val x, u32 axis, const Dim *size) {
  Dim at = 0;
  for (u32 i = 0; i < b->op->nout; i++) {
    lite_set_stored(b, i, mk_slice_axis(b->g, x, axis, at, size[i]));
    at = dim_add(b->ds, at, size[i]);
  }
  if (at != val_dim(b->g, x, axis))
    lite_bad(b, "the sizes of the parts do not add up to the extent of the axis");
}

void lite_split(LiteNode *b) {
  Val x = lite_in(b, 1);
  u32 axis = lite_axis(b, lite_int(b, 0), lite_rank(b, x)), n = b->op->nout;
  Dim d = val_dim(b->g, x, axis), *size = NEWS(&b->c->work, Dim, n + 1);
  if (!n || (dim_is_const(d) && d % n))
    lite_bad(b, "an axis cannot be split into %u parts: its extent is %lld", n, (long long)d);
  for (u32 i = 0; i < n; i++) size[i] = dim_div(b->ds, d, n);
  split(b, x, axis, size);
}

void lite_split_v(LiteNode *b) {
  Val x = lite_in(b, 0);
  u32 axis = lite_axis(b, lite_int(b, 2), lite_rank(b, x)), n = b->op->nout, open = n;
  Dim rest = val_dim(b->g, x, axis), *size = NEWS(&b->c->work, Dim, n + 1);
  if (lite_ints(b, 1, size, n) != n) lite_bad(b, "found another number of sizes, expected %u", n);
  for (u32 i = 0; i < n; i++) {
    if (size[i] < -1 || (size[i] == -1 && open < n))
      lite_bad(b, "a size is below -1, or several are -1; expected at most one -1");
    if (size[i] == -1)
      open = i;
    else
      rest = dim_sub(b->ds, rest, size[i]);
  }
  if (open < n) size[open] = rest;
  split(b, x, axis, size);
}

/* ---- padding ---- */

static u32 read_pads(LiteNode *b, Val x, Dim *lo, Dim *hi) {
  u32 rank = lite_rank(b, x);
  i64 pads[2 * MAX_RANK];
  if (lite_ints(b, 1, pads, 2 * MAX_RANK) != 2 * rank)
    lite_bad(b, "paddings: expected %u pairs", rank);
  for (u32 i = 0; i < rank; i++) {
    lo[i] = pads[2 * i];
    hi[i] = pads[2 * i + 1];
    if (lo[i] < 0 || hi[i] < 0 || lo[i] > INT32_MAX || hi[i] > INT32_MAX)
      lite_bad(b, "found padding of %lld and %lld, expected 0 to 2^31-1", (long long)lo[i],
               (long long)hi[i]);
  }
  return rank;
}

/* Pads with the stored form of 0, or with an operand. */
void lite_pad(LiteNode *b) {
  Val x = lite_in(b, 0);
  Dim lo[MAX_RANK], hi[MAX_RANK];
  read_pads(b, x, lo, hi);
  const LiteTensor *t = lite_result(b, 0);
  Val by = lite_has(b, 2) ? mk_reshape(b->g, lite_in(b, 2), NULL, 0)
                          : mk_like(b->g, x, lite_is_quant(t) ? (double)t->q.zero[0] : 0);
  lite_set_stored(b, 0, mk_pad(b->g, x, by, lo, hi, NULL));
}

/* limit of the table that selects rows, because a small file can request much memory */
enum { MIRROR_MOST = 1 << 20 };

/* Mode 1 (symmetric) repeats the edge element, 0 (reflect) does not. */
void lite_mirror_pad(LiteNode *b) {
  Val x = lite_in(b, 0);
  Dim lo[MAX_RANK], hi[MAX_RANK];
  u32 rank = read_pads(b, x, lo, hi);
  i64 edge = flat_i8(&b->op->opt, 0, 0) == 1;
  for (u32 a = 0; a < rank; a++) {
    Dim d = val_dim(b->g, x, a);
    if (!lo[a] && !hi[a]) continue;
    if (!dim_is_const(d)) lite_unsupported(b, "mirror padding of an open extent is not supported");
    if (lo[a] > d - 1 + edge || hi[a] > d - 1 + edge)
      lite_bad(b, "there is more padding than elements");
    i64 n = d + lo[a] + hi[a];
    if (n > MIRROR_MOST)
      lite_unsupported(b, "padding to more than %d rows is not supported", MIRROR_MOST);
    Tensor *t = tensor_new(&b->c->work, DT_i64, &n, 1);
    for (i64 i = 0; i < n; i++) {
      i64 at = i - lo[a];
      at = at < 0 ? -at - edge : at >= d ? 2 * (d - 1) - at + edge : at;
      tensor_set(t, (u64)i, (Scalar){.i = at});
    }
    x = mk_gather(b->g, x, mk_const(b->g, t), a);
  }
  lite_set_stored(b, 0, x);
}

/* ---- block moves on [N, H, W, C] ---- */

static i64 block_size(LiteNode *b, Val x) {
  i64 r = flat_i32(&b->op->opt, 0, 0);
  if (lite_rank(b, x) != 4 || r < 1 || r > INT16_MAX)
    lite_bad(b, "the operand has rank %u, expected 4; the block size is %lld, expected 1 to 32767",
             lite_rank(b, x), (long long)r);
  return r;
}

static Dim divided(LiteNode *b, Dim d, i64 k) {
  if (dim_is_const(d) && d % k)
    lite_bad(b, "extent %lld is not divisible by %lld", (long long)d, (long long)k);
  return dim_div(b->ds, d, k);
}

void lite_space_to_depth(LiteNode *b) {
  Val x = lite_in(b, 0);
  i64 r = block_size(b, x);
  Type t = *graph_type(b->g, x);
  Dim h = divided(b, t.dim[1], r), w = divided(b, t.dim[2], r);
  Dim wide[6] = {t.dim[0], h, r, w, r, t.dim[3]};
  Dim out[4] = {t.dim[0], h, w, dim_mul(b->ds, t.dim[3], r * r)};
  Val y = mk_transpose(b->g, mk_reshape(b->g, x, wide, 6), (const i64[]){0, 1, 3, 2, 4, 5});
  lite_set_stored(b, 0, mk_reshape(b->g, y, out, 4));
}

void lite_depth_to_space(LiteNode *b) {
  Val x = lite_in(b, 0);
  i64 r = block_size(b, x);
  Type t = *graph_type(b->g, x);
  Dim c = divided(b, t.dim[3], r * r), wide[6] = {t.dim[0], t.dim[1], t.dim[2], r, r, c};
  Dim out[4] = {t.dim[0], dim_mul(b->ds, t.dim[1], r), dim_mul(b->ds, t.dim[2], r), c};
  Val y = mk_transpose(b->g, mk_reshape(b->g, x, wide, 6), (const i64[]){0, 1, 3, 2, 4, 5});
  lite_set_stored(b, 0, mk_reshape(b->g, y, out, 4));
}

/* Operands: [batch, m spatial axes, rest], blocks [m], amounts [m, 2]. */
typedef struct LiteBlocks {
  u32 m, rank;
  i64 block[MAX_RANK], amount[2 * MAX_RANK], all;
} LiteBlocks;

static LiteBlocks read_blocks(LiteNode *b, Val x) {
  LiteBlocks k = {.rank = lite_rank(b, x), .all = 1};
  k.m = lite_ints(b, 1, k.block, MAX_RANK);
  u32 n = lite_ints(b, 2, k.amount, 2 * MAX_RANK);
  if (k.rank < 1 + k.m || n != 2 * k.m || k.rank + k.m > MAX_RANK)
    lite_bad(b, "found %u block sizes for rank %u, expected fewer", k.m, k.rank);
  for (u32 i = 0; i < k.m; i++) {
    if (k.block[i] < 1 || k.block[i] > INT16_MAX)
      lite_bad(b, "the block size is %lld, expected 1 to 32767", (long long)k.block[i]);
    if (k.amount[2 * i] < 0 || k.amount[2 * i + 1] < 0 || k.amount[2 * i] > INT32_MAX ||
        k.amount[2 * i + 1] > INT32_MAX)
      lite_bad(b, "an amount of padding or cropping is negative or above 2^31-1");
    if (__builtin_mul_overflow(k.all, k.block[i], &k.all) || k.all > INT32_MAX)
      lite_bad(b, "the product of the block sizes is above 2^31-1");
  }
  return k;
}

void lite_space_to_batch(LiteNode *b) {
  Graph *g = b->g;
  Val x = lite_in(b, 0);
  LiteBlocks k = read_blocks(b, x);
  const LiteTensor *r = lite_result(b, 0);
  Dim lo[MAX_RANK] = {0}, hi[MAX_RANK] = {0}, wide[MAX_RANK], out[MAX_RANK];
  for (u32 i = 0; i < k.m; i++) lo[1 + i] = k.amount[2 * i], hi[1 + i] = k.amount[2 * i + 1];
  x = mk_pad(g, x, mk_like(g, x, lite_is_quant(r) ? (double)r->q.zero[0] : 0), lo, hi, NULL);
  Type t = *graph_type(g, x);
  i64 perm[MAX_RANK];
  u32 n = 0, p = 0;
  wide[n++] = t.dim[0];
  out[0] = dim_mul(b->ds, t.dim[0], k.all);
  for (u32 i = 0; i < k.m; i++) {
    out[1 + i] = wide[n++] = divided(b, t.dim[1 + i], k.block[i]);
    wide[n++] = k.block[i];
  }
  for (u32 i = 1 + k.m; i < k.rank; i++) out[i] = wide[n++] = t.dim[i];
  for (u32 i = 0; i < k.m; i++) perm[p++] = 2 + 2 * i;
  perm[p++] = 0;
  for (u32 i = 0; i < k.m; i++) perm[p++] = 1 + 2 * i;
  for (u32 i = 1 + 2 * k.m; i < n; i++) perm[p++] = i;
  lite_set_stored(b, 0,
                  mk_reshape(g, mk_transpose(g, mk_reshape(g, x, wide, n), perm), out, k.rank));
}

void lite_batch_to_space(LiteNode *b) {
  Graph *g = b->g;
  Val x = lite_in(b, 0);
  LiteBlocks k = read_blocks(b, x);
  Type t = *graph_type(g, x);
  Dim wide[MAX_RANK], out[MAX_RANK], start[MAX_RANK] = {0}, size[MAX_RANK];
  i64 perm[MAX_RANK];
  u32 n = 0, p = 0;
  for (u32 i = 0; i < k.m; i++) wide[n++] = k.block[i];
  out[0] = wide[n++] = divided(b, t.dim[0], k.all);
  for (u32 i = 1; i < k.rank; i++) {
    wide[n++] = t.dim[i];
    out[i] = i <= k.m ? dim_mul(b->ds, t.dim[i], k.block[i - 1]) : t.dim[i];
  }
  perm[p++] = k.m;
  for (u32 i = 0; i < k.m; i++) {
    perm[p++] = k.m + 1 + i;
    perm[p++] = i;
  }
  for (u32 i = 2 * k.m + 1; i < n; i++) perm[p++] = i;
  x = mk_reshape(g, mk_transpose(g, mk_reshape(g, x, wide, n), perm), out, k.rank);
  for (u32 i = 0; i < k.rank; i++) {
    bool cut = i && i <= k.m;
    start[i] = cut ? k.amount[2 * (i - 1)] : 0;
    size[i] = cut ? dim_addk(b->ds, out[i], -start[i] - k.amount[2 * (i - 1) + 1]) : out[i];
  }
  lite_set_stored(b, 0, mk_slice(g, x, start, size, NULL));
}
