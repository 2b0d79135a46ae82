/* build.c: short constructors over graph_add.
 *
 * In: operands and parameters. Out: the first result of the appended node, or the operand itself if
 * the node would change nothing, so that callers need not test for it. */
#include "ir/graph/graph.h"

#include <string.h>

static Attr at_int(AttrKey key, i64 i) {
  return (Attr){.key = key, .kind = AK_int, .u.i = i};
}
static Attr at_dtype(DType dt) {
  return (Attr){.key = AT_to, .kind = AK_dtype, .u.i = dt};
}
static Attr at_list(AttrKey key, const Dim *d, u32 n) {
  return (Attr){.key = key, .kind = AK_list, .n = n, .u.list = d};
}
static Attr at_str(Graph *g, AttrKey key, const char *s) {
  return (Attr){.key = key, .kind = AK_str, .u.s = str_of(g->c, s)};
}

static Val first(Graph *g, NodeId n) {
  return graph_node(g, n)->out[0];
}

Val mk_node(Graph *g, Op op, const Val *in, u32 nin, const Attr *attr, u32 nattr) {
  return first(g, graph_add(g, op, in, nin, attr, nattr));
}

static const i64 zeros[MAX_RANK];

/* ---- maps ---- */

Val mk_map1(Graph *g, Op op, Val a) {
  return mk_node(g, op, &a, 1, NULL, 0);
}

Val mk_map2(Graph *g, Op op, Val a, Val b) {
  Val in[2] = {a, b};
  return mk_node(g, op, in, 2, NULL, 0);
}

Val mk_select(Graph *g, Val cond, Val a, Val b) {
  Val in[3] = {cond, a, b};
  return mk_node(g, OP_select, in, 3, NULL, 0);
}

Val mk_requant(Graph *g, Val a, Val b, Val c) {
  Val in[3] = {a, b, c};
  return mk_node(g, OP_requant, in, 3, NULL, 0);
}

Val mk_cast(Graph *g, Val a, DType to) {
  if (graph_type(g, a)->dt == to) return a;
  Attr at = at_dtype(to);
  return mk_node(g, OP_cast, &a, 1, &at, 1);
}

void cast_mark(Graph *g, Val v) {
  NodeId id = graph_val(g, v)->def;
  Node *n = graph_node(g, id);
  if (!id || n->op != OP_cast || node_attr(n, AT_layer)) return;
  Attr *at = NEWS(&g->c->work, Attr, n->nattr + 1);
  memcpy(at, n->attr, n->nattr * sizeof *at);
  at[n->nattr++] = at_int(AT_layer, 1); /* AT_layer is the last key, so attributes stay sorted */
  n->attr = at;
}

static bool is_here(const Graph *g, const Loc *a) {
  const Loc *b = &g->loc;
  return a->index == b->index && a->node == b->node && a->op == b->op;
}

void layer_end(Graph *g, NodeId first) {
  for (NodeId i = first; i < g->node.n; i++) {
    const Node *n = graph_node(g, i);
    if (n->op != OP_cast || !n->out) continue; /* nodes of a rejected attempt have no result */
    NodeId of = graph_val(g, n->in[0])->def;
    if (of >= first && is_here(g, &n->loc) && is_here(g, &graph_node(g, of)->loc) &&
        dtype_is_half(graph_type(g, n->out[0])->dt))
      cast_mark(g, n->out[0]);
  }
}

Val mk_cast_sat(Graph *g, Val a, DType to) {
  if (graph_type(g, a)->dt == to) return a;
  Attr at[2] = {at_dtype(to), at_int(AT_sat, 1)};
  return mk_node(g, OP_cast, &a, 1, at, 2);
}

Val mk_cast_small(Graph *g, Val a, DType to) {
  Attr at[2] = {at_dtype(to), at_int(AT_sat, CAST_SMALL)};
  return mk_node(g, OP_cast, &a, 1, at, 2);
}

/* ---- leaves ---- */

Val mk_const(Graph *g, Tensor *t) {
  Attr at = {.key = AT_value, .kind = AK_const, .u.t = t};
  return mk_node(g, OP_const, NULL, 0, &at, 1);
}

Val mk_scalar(Graph *g, DType dt, double x) {
  Tensor *t = tensor_new(&g->c->work, dt, NULL, 0);
  tensor_set(t, 0, scalar_cast(DT_f64, dt, (Scalar){.f = x}, true));
  return mk_const(g, t);
}

Val mk_like(Graph *g, Val like, double x) {
  return mk_scalar(g, graph_type(g, like)->dt, x);
}

Val mk_ints(Graph *g, const i64 *x, u32 n) {
  i64 dim = n;
  Tensor *t = tensor_new(&g->c->work, DT_i64, &dim, 1);
  for (u32 i = 0; i < n; i++) tensor_set(t, i, (Scalar){.i = x[i]});
  return mk_const(g, t);
}

Val mk_dims_as(Graph *g, DType dt, u32 rank, const Dim *d, u32 n) {
  bool known = true;
  for (u32 i = 0; i < n; i++) known = known && dim_is_const(d[i]);
  if (known) {
    i64 dim = n;
    Tensor *t = tensor_new(&g->c->work, dt, &dim, rank);
    for (u32 i = 0; i < n; i++) tensor_set(t, i, (Scalar){.i = scalar_wrap(dt, d[i])});
    return mk_const(g, t);
  }
  Attr at[3] = {at_list(AT_shape, d, n), at_dtype(dt), at_int(AT_rank, rank)};
  return mk_node(g, OP_dims, NULL, 0, at, 3);
}

Val mk_dims(Graph *g, const Dim *d, u32 n) {
  return mk_dims_as(g, DT_i64, 1, d, n);
}

Val mk_iota(Graph *g, DType dt, const Dim *shape, u32 rank, u32 axis) {
  Attr at[3] = {at_list(AT_shape, shape, rank), at_int(AT_axis, axis), at_dtype(dt)};
  return mk_node(g, OP_iota, NULL, 0, at, 3);
}

Val mk_random(Graph *g, DType dt, const Dim *shape, u32 rank, i64 seed) {
  Attr at[3] = {at_list(AT_shape, shape, rank), at_int(AT_seed, seed), at_dtype(dt)};
  return mk_node(g, OP_random, NULL, 0, at, 3);
}

/* ---- reductions ---- */

Val mk_reduce(Graph *g, Op op, Val x, const i64 *axes, u32 naxes, bool keep) {
  if (!naxes) return x;
  Attr at[2] = {at_list(AT_axes, axes, naxes), at_int(AT_keep, keep)};
  return mk_node(g, op, &x, 1, at, 2);
}

Val mk_arg(Graph *g, Op op, Val x, i64 axis, bool keep, bool last) {
  Attr at[3] = {at_int(AT_axis, axis), at_int(AT_keep, keep), at_int(AT_last, last)};
  return mk_node(g, op, &x, 1, at, 3);
}

Val mk_cum(Graph *g, Op op, Val x, i64 axis, bool exclusive, bool reverse) {
  Attr at[3] = {at_int(AT_axis, axis), at_int(AT_exclusive, exclusive),
                at_int(AT_reverse, reverse)};
  return mk_node(g, op, &x, 1, at, 3);
}

/* ---- contractions ---- */

Val mk_contract(Graph *g, Val a, Val b, const char *spec) {
  Val in[2] = {a, b};
  Attr at = at_str(g, AT_spec, spec);
  return mk_node(g, OP_contract, in, 2, &at, 1);
}

/* Letters of the batch axes of x; squeezes axes of extent 1 that the other operand broadcasts. */
static Val batch_letters(Graph *g, Val x, const Type *other, u32 nbatch, char *to) {
  Type t = *graph_type(g, x);
  Dim keep[MAX_RANK];
  u32 own = t.rank - 2, obatch = other->rank - 2, n = 0, kept = 0;
  for (u32 i = 0; i < own; i++) {
    u32 at = nbatch - own + i; /* position among all batch axes */
    bool shared = at >= nbatch - obatch;
    Dim d = shared ? other->dim[at - (nbatch - obatch)] : 1;
    if (t.dim[i] == 1 && d != 1) continue;
    to[n++] = (char)('A' + at);
    keep[kept++] = t.dim[i];
  }
  to[n] = 0;
  keep[kept++] = t.dim[own];
  keep[kept++] = t.dim[own + 1];
  return kept == t.rank ? x : mk_reshape(g, x, keep, kept);
}

Val mk_matmul(Graph *g, Val a, Val b) {
  bool row = graph_type(g, a)->rank == 1, col = graph_type(g, b)->rank == 1;
  if (!graph_type(g, a)->rank || !graph_type(g, b)->rank)
    fail(g->c, ERR_input, g->loc, "MatMul: an operand is a scalar, expected rank 1 or more");
  if (row) a = mk_unsqueeze(g, a, 0);
  if (col) b = mk_unsqueeze(g, b, 1);
  Type ta = *graph_type(g, a), tb = *graph_type(g, b);
  u32 nbatch = (ta.rank > tb.rank ? ta.rank : tb.rank) - 2;
  char la[MAX_RANK + 1], lb[MAX_RANK + 1], lo[MAX_RANK + 1], spec[4 * MAX_RANK];
  Val x = batch_letters(g, a, &tb, nbatch, la), y = batch_letters(g, b, &ta, nbatch, lb);
  u32 n = 0;
  for (u32 i = 0; i < nbatch; i++) {
    char ch = (char)('A' + i);
    if (strchr(la, ch) || strchr(lb, ch)) lo[n++] = ch;
  }
  lo[n] = 0;
  StrBuf t = sb_new(&g->c->scratch);
  sb_fmt(&t, "%smk,%skn->%smn", la, lb, lo);
  strncpy(spec, sb_cstr(&t), sizeof spec - 1);
  spec[sizeof spec - 1] = 0;
  Val r = mk_contract(g, x, y, spec);
  if (col) r = mk_squeeze(g, r, graph_type(g, r)->rank - 1);
  if (row) r = mk_squeeze(g, r, graph_type(g, r)->rank - (col ? 1 : 2));
  return r;
}

Val mk_conv(Graph *g, Val x, Val w, i64 group, const i64 *stride, const i64 *dilation,
            const i64 *pad_lo, const i64 *pad_hi) {
  u32 rank = graph_type(g, x)->rank, ns = rank < 2 ? 0 : rank - 2;
  Val in[2] = {x, w};
  Attr at[5] = {at_int(AT_group, group), at_list(AT_stride, stride, ns),
                at_list(AT_dilation, dilation, ns), at_list(AT_pad_lo, pad_lo, ns),
                at_list(AT_pad_hi, pad_hi, ns)};
  return mk_node(g, OP_conv, in, 2, at, 5);
}

Val mk_pool(Graph *g, Op op, Val x, u32 nspatial, const i64 *window, const i64 *stride,
            const i64 *dilation, const i64 *pad_lo, const i64 *pad_hi) {
  Attr at[5] = {at_list(AT_window, window, nspatial), at_list(AT_stride, stride, nspatial),
                at_list(AT_dilation, dilation, nspatial), at_list(AT_pad_lo, pad_lo, nspatial),
                at_list(AT_pad_hi, pad_hi, nspatial)};
  return mk_node(g, op, &x, 1, at, 5);
}

Val mk_mirror(Graph *g, Val weights, i64 group) {
  Type t = *graph_type(g, weights);
  u32 n = t.rank - 2;
  i64 c = t.dim[0], m = t.dim[1], perm[MAX_RANK];
  if (!dim_is_const(c) || !dim_is_const(m))
    fail(g->c, ERR_unsupported, g->loc,
         "weights with symbolic channels are not supported; expected constant extents");
  Dim dim[MAX_RANK], start[MAX_RANK] = {0};
  i64 step[MAX_RANK] = {1, 1};
  if (group < 1 || c % group)
    fail(g->c, ERR_input, g->loc,
         "the %lld channels of the weights are not a multiple of %lld groups", (long long)c,
         (long long)group);
  if (t.rank == MAX_RANK)
    fail(g->c, ERR_unsupported, g->loc, "weights of rank %u are not supported", t.rank);
  dim[0] = group;
  dim[1] = c / group;
  dim[2] = m;
  for (u32 i = 0; i < n; i++) dim[3 + i] = t.dim[2 + i];
  for (u32 i = 0; i < n + 3; i++) perm[i] = i;
  perm[1] = 2;
  perm[2] = 1;
  Val w = mk_transpose(g, mk_reshape(g, weights, dim, n + 3), perm);
  dim[0] = dim_mul(g->dims, m, group);
  for (u32 i = 0; i < n; i++) {
    dim[2 + i] = t.dim[2 + i];
    start[2 + i] = t.dim[2 + i] - 1;
    step[2 + i] = -1;
  }
  return mk_slice(g, mk_reshape(g, w, dim, n + 2), start, dim, step);
}

/* ---- views ---- */

Val mk_reshape(Graph *g, Val x, const Dim *shape, u32 rank) {
  if (type_has_shape(graph_type(g, x), shape, rank)) return x;
  Attr at = at_list(AT_shape, shape, rank);
  return mk_node(g, OP_reshape, &x, 1, &at, 1);
}

Val mk_unsqueeze(Graph *g, Val x, u32 axis) {
  const Type *t = graph_type(g, x);
  Dim dim[MAX_RANK + 1];
  for (u32 i = 0, k = 0; i <= t->rank; i++) dim[i] = i == axis ? 1 : t->dim[k++];
  return mk_reshape(g, x, dim, t->rank + 1);
}

Val mk_squeeze(Graph *g, Val x, u32 axis) {
  const Type *t = graph_type(g, x);
  Dim dim[MAX_RANK];
  u32 k = 0;
  for (u32 i = 0; i < t->rank; i++)
    if (i != axis) dim[k++] = t->dim[i];
  return mk_reshape(g, x, dim, k);
}

Val mk_transpose(Graph *g, Val x, const i64 *perm) {
  u32 rank = graph_type(g, x)->rank;
  bool same = true;
  for (u32 i = 0; i < rank; i++) same = same && perm[i] == (i64)i;
  if (same) return x;
  Attr at = at_list(AT_perm, perm, rank);
  return mk_node(g, OP_transpose, &x, 1, &at, 1);
}

Val mk_slice(Graph *g, Val x, const Dim *start, const Dim *size, const i64 *step) {
  const Type *t = graph_type(g, x);
  i64 ones[MAX_RANK];
  bool whole = type_has_shape(t, size, t->rank);
  for (u32 i = 0; i < t->rank; i++) {
    ones[i] = 1;
    whole = whole && start[i] == 0 && (!step || step[i] == 1);
  }
  if (whole) return x;
  Attr at[3] = {at_list(AT_start, start, t->rank), at_list(AT_step, step ? step : ones, t->rank),
                at_list(AT_size, size, t->rank)};
  return mk_node(g, OP_slice, &x, 1, at, 3);
}

Val mk_slice_axis(Graph *g, Val x, u32 axis, Dim start, Dim size) {
  const Type *t = graph_type(g, x);
  Dim s[MAX_RANK] = {0}, z[MAX_RANK];
  for (u32 i = 0; i < t->rank; i++) z[i] = t->dim[i];
  s[axis] = start;
  z[axis] = size;
  return mk_slice(g, x, s, z, NULL);
}

Val mk_broadcast(Graph *g, Val x, const Dim *shape, u32 rank) {
  if (type_has_shape(graph_type(g, x), shape, rank)) return x;
  Attr at = at_list(AT_shape, shape, rank);
  return mk_node(g, OP_broadcast, &x, 1, &at, 1);
}

/* ---- joins, gathers, scatters ---- */

Val mk_concat(Graph *g, const Val *x, u32 n, i64 axis) {
  if (n == 1) return x[0];
  Attr at = at_int(AT_axis, axis);
  return mk_node(g, OP_concat, x, n, &at, 1);
}

Val mk_pad(Graph *g, Val x, Val value, const Dim *lo, const Dim *hi, const i64 *interior) {
  u32 rank = graph_type(g, x)->rank;
  bool none = true;
  if (!interior) interior = zeros;
  for (u32 i = 0; i < rank; i++) none = none && !lo[i] && !hi[i] && !interior[i];
  if (none) return x;
  Val in[2] = {x, value};
  Attr at[3] = {at_list(AT_lo, lo, rank), at_list(AT_hi, hi, rank),
                at_list(AT_interior, interior, rank)};
  return mk_node(g, OP_pad, in, 2, at, 3);
}

Val mk_gather(Graph *g, Val x, Val idx, i64 axis) {
  Val in[2] = {x, idx};
  Attr at = at_int(AT_axis, axis);
  return mk_node(g, OP_gather, in, 2, &at, 1);
}

Val mk_gather_elems(Graph *g, Val x, Val idx, i64 axis) {
  Val in[2] = {x, idx};
  Attr at = at_int(AT_axis, axis);
  return mk_node(g, OP_gather_elems, in, 2, &at, 1);
}

Val mk_gather_nd(Graph *g, Val x, Val idx, i64 batch) {
  Val in[2] = {x, idx};
  Attr at = at_int(AT_batch, batch);
  return mk_node(g, OP_gather_nd, in, 2, &at, 1);
}

Val mk_scatter_elems(Graph *g, Val x, Val idx, Val upd, i64 axis, const char *reduce) {
  Val in[3] = {x, idx, upd};
  Attr at[2] = {at_int(AT_axis, axis), at_str(g, AT_reduce, reduce)};
  return mk_node(g, OP_scatter_elems, in, 3, at, 2);
}

Val mk_scatter_nd(Graph *g, Val x, Val idx, Val upd, const char *reduce) {
  Val in[3] = {x, idx, upd};
  Attr at = at_str(g, AT_reduce, reduce);
  return mk_node(g, OP_scatter_nd, in, 3, &at, 1);
}

Val mk_check_index(Graph *g, Val idx, const Dim *size, u32 n) {
  if (index_fits(g, idx, size, n)) return idx;
  Attr at = at_list(AT_size, size, n);
  return mk_node(g, OP_check_index, &idx, 1, &at, 1);
}

Val mk_assert(Graph *g, Val wrong, const char *text) {
  Dim one = 1;
  Attr at[2] = {at_list(AT_size, &one, 1), at_str(g, AT_text, text)};
  return mk_node(g, OP_check_index, &wrong, 1, at, 2);
}

/* ---- other nodes ---- */

Val mk_nonzero(Graph *g, Val x) {
  return mk_map1(g, OP_nonzero, x);
}

Val mk_dequantize(Graph *g, Val blocks, const char *kind, u32 x_bits) {
  Attr at[2] = {at_str(g, AT_kind, kind), at_int(AT_x_bits, x_bits)};
  return mk_node(g, OP_dequantize, &blocks, 1, at, x_bits == 8 ? 1 : 2);
}

Val mk_matmul_quant(Graph *g, const Val *in, u32 nin, const char *kind) {
  Attr at = at_str(g, AT_kind, kind);
  return mk_node(g, OP_matmul_quant, in, nin, &at, 1);
}

Val mk_bytes(Graph *g, Val strings, i64 k) {
  Dim size = k;
  Attr at = at_list(AT_k, &size, 1);
  return mk_node(g, OP_str_encode, &strings, 1, &at, 1);
}

Val mk_text(Graph *g, Val rows) {
  return mk_node(g, OP_str_decode, &rows, 1, NULL, 0);
}

Val mk_nms(Graph *g, const Val *in, BoxKind kind, Dim k) {
  Attr at[2] = {at_str(g, AT_kind, box_kind_name[kind]), at_list(AT_k, &k, 1)};
  return mk_node(g, OP_nms, in, 5, at, 2);
}

void mk_topk(Graph *g, Val x, i64 axis, Dim k, bool largest, Val *values, Val *indices) {
  Attr at[3] = {at_int(AT_axis, axis), at_list(AT_k, &k, 1), at_int(AT_largest, largest)};
  NodeId n = graph_add(g, OP_topk, &x, 1, at, 3);
  *values = graph_node(g, n)->out[0];
  *indices = graph_node(g, n)->out[1];
}
