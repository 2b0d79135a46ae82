/* compose_attention.c: attention and RoPE. See compose.h.
 *
 * Query heads that share a key head are a separate axis of the contractions, so keys and values are
 * never copied. A fully masked row has probabilities of 0.
 */
#include "front/compose/compose.h"

#include <math.h>

Val attn_split_heads(Graph *g, Val x, i64 heads) {
  Type t = *graph_type(g, x);
  if (t.rank == 4) return x;
  if (t.rank != 3) fail(g->c, ERR_input, g->loc, "an operand has rank %u, expected 3 or 4", t.rank);
  if (heads < 1) fail(g->c, ERR_input, g->loc, "operands of rank 3 need the number of heads");
  if (dim_is_const(t.dim[2]) && t.dim[2] % heads)
    fail(g->c, ERR_input, g->loc, "extent %lld is not divisible by %lld heads", (long long)t.dim[2],
         (long long)heads);
  Dim dim[4] = {t.dim[0], t.dim[1], heads, dim_div(g->dims, t.dim[2], heads)};
  return mk_transpose(g, mk_reshape(g, x, dim, 4), (const i64[]){0, 2, 1, 3});
}

Val attn_merge_heads(Graph *g, Val x) {
  x = mk_transpose(g, x, (const i64[]){0, 2, 1, 3});
  Type t = *graph_type(g, x);
  Dim dim[3] = {t.dim[0], t.dim[1], dim_mul(g->dims, t.dim[2], t.dim[3])};
  return mk_reshape(g, x, dim, 3);
}

/* Splits query heads into groups that share a key head: [batch, key heads, group, ...]. Unchanged
 * if every head has its own. */
static Val grouped(Graph *g, Val x, Dim heads, bool *split) {
  Type t = *graph_type(g, x);
  *split = t.dim[1] != heads;
  if (!*split) return x;
  if (dim_is_const(t.dim[1]) && dim_is_const(heads) && (heads < 1 || t.dim[1] % heads))
    fail(g->c, ERR_input, g->loc, "%lld query heads are not a multiple of %lld key heads",
         (long long)t.dim[1], (long long)heads);
  Dim dim[5] = {t.dim[0], heads, dim_div(g->dims, t.dim[1], heads), t.dim[2], t.dim[3]};
  return mk_reshape(g, x, dim, 5);
}

static Val ungrouped(Graph *g, Val x, Dim heads) {
  Type t = *graph_type(g, x);
  Dim dim[4] = {t.dim[0], heads, t.dim[3], t.dim[4]};
  return mk_reshape(g, x, dim, 4);
}

Val attn_scale(Graph *g, Val q, double scale) {
  if (scale) return mk_mulk(g, q, scale);
  return mk_mul(g, q, mk_recip(g, mk_sqrt(g, mk_count(g, q, &(i64){3}, 1))));
}

Val attn_scores(Graph *g, Val q, Val k, double scale) {
  Dim heads = val_dim(g, q, 1);
  bool split;
  q = grouped(g, attn_scale(g, q, scale), val_dim(g, k, 1), &split);
  Val s = mk_contract(g, q, k, split ? "bhgld,bhsd->bhgls" : "bhld,bhsd->bhls");
  return split ? ungrouped(g, s, heads) : s;
}

Val attn_weighted_sum(Graph *g, Val p, Val v) {
  Dim heads = val_dim(g, p, 1);
  bool split;
  p = grouped(g, p, val_dim(g, v, 1), &split);
  Val y = mk_contract(g, p, v, split ? "bhgls,bhsd->bhgld" : "bhls,bhsd->bhld");
  return split ? ungrouped(g, y, heads) : y;
}

Val attn_cap(Graph *g, Val s, double cap) {
  return cap > 0 ? mk_mulk(g, mk_tanh(g, mk_mulk(g, s, 1 / cap)), cap) : s;
}

Val attn_mask(Graph *g, Val s, Val keep) {
  return mk_select(g, keep, s, mk_like(g, s, -INFINITY));
}

Val attn_window_mask(Graph *g, Val s, Val past, i64 left, i64 right) {
  Dim rows = val_dim(g, s, 2), cols = val_dim(g, s, 3), col[2] = {rows, 1};
  Val i = mk_add(g, mk_iota(g, DT_i64, col, 2, 0), past), j = mk_iota(g, DT_i64, &cols, 1, 0),
      keep = 0;
  if (right >= 0) keep = mk_le(g, j, mk_addk(g, i, (double)right));
  if (left < 0) return keep;
  Val low = mk_ge(g, j, mk_addk(g, i, -(double)left));
  return keep ? mk_and(g, keep, low) : low;
}

static Val sink_softmax(Graph *g, Val s, Val more, i64 axis) {
  Val top = mk_max(g, mk_reduce(g, OP_reduce_max, s, &axis, 1, true), more);
  Val e = mk_exp(g, mk_sub(g, s, top)), sum = mk_reduce(g, OP_reduce_sum, e, &axis, 1, true);
  return mk_div(g, e, mk_add(g, sum, mk_exp(g, mk_sub(g, more, top))));
}

/* One number per query head, to broadcast against its scores. */
static Val per_head(Graph *g, Val x, Val s) {
  Type t = *graph_type(g, s);
  if (t.rank == 5) x = mk_reshape(g, x, (Dim[]){t.dim[1], t.dim[2]}, 2);
  return mk_expand_tail(g, x, 2);
}

Val attn_causal(Graph *g, const CausalAttn *a, Val q, Val k, Val v) {
  Dim heads = val_dim(g, q, 1);
  bool split;
  q = grouped(g, attn_scale(g, q, a->scale), val_dim(g, k, 1), &split);
  Val s = mk_contract(g, q, k, split ? "bhgld,bhsd->bhgls" : "bhld,bhsd->bhls");
  i64 last = split ? 4 : 3;
  Dim rows = val_dim(g, s, (u32)last - 1), cols = val_dim(g, s, (u32)last), col[2] = {rows, 1};
  Val i = mk_add(g, mk_iota(g, DT_i64, col, 2, 0), a->past), j = mk_iota(g, DT_i64, &cols, 1, 0);
  Val keep = a->ahead ? 0 : mk_le(g, j, i);
  if (a->window > 0) {
    Val low = mk_gt(g, j, mk_addk(g, i, -(double)a->window));
    if (a->ahead) keep = mk_map2(g, OP_lt, j, mk_addk(g, i, (double)a->window));
    keep = mk_and(g, keep, low);
  }
  s = attn_cap(g, s, a->cap);
  if (a->slope) {
    Val back = mk_cast(g, mk_sub(g, j, i), graph_type(g, s)->dt);
    s = mk_add(g, s, mk_mul(g, per_head(g, a->slope, s), back));
  }
  if (a->bias) s = mk_add(g, s, a->bias);
  if (keep) s = attn_mask(g, s, keep);
  Val p =
      a->sink ? sink_softmax(g, s, per_head(g, a->sink, s), last) : compose_softmax(g, s, &last, 1);
  Val y = mk_contract(g, p, v, split ? "bhgls,bhsd->bhgld" : "bhls,bhsd->bhld");
  return split ? ungrouped(g, y, heads) : y;
}

Val attn_softmax(Graph *g, Val s) {
  Val top = mk_reduce(g, OP_reduce_max, s, &(i64){3}, 1, true);
  Val none = mk_eq(g, top, mk_like(g, s, -INFINITY));
  Val e = mk_exp(g, mk_sub(g, s, mk_select(g, none, mk_like(g, s, 0), top)));
  Val sum = mk_reduce(g, OP_reduce_sum, e, &(i64){3}, 1, true);
  return mk_div(g, e, mk_select(g, none, mk_like(g, s, 1), sum));
}

/* Every second of 2 * half elements, starting at `first`. */
static Val every_second(Graph *g, Val x, Dim first, Dim half) {
  Type t = *graph_type(g, x);
  Dim start[4] = {0, 0, 0, first}, size[4] = {t.dim[0], t.dim[1], t.dim[2], half};
  return mk_slice(g, x, start, size, (const i64[]){1, 1, 1, 2});
}

Val attn_rope(Graph *g, Val x, Val cos, Val sin, bool interleaved) {
  Type t = *graph_type(g, x);
  Dim half = val_dim(g, cos, 2), both = dim_mul(g->dims, half, 2), size = t.dim[3];
  if (val_dim(g, sin, 2) != half || (dim_is_const(both) && dim_is_const(size) && both > size))
    fail(g->c, ERR_input, g->loc,
         "expected as many cosines as sines, at most half of the head size %lld", (long long)size);
  cos = mk_unsqueeze(g, cos, 1);
  sin = mk_unsqueeze(g, sin, 1);
  Val x1 = interleaved ? every_second(g, x, 0, half) : mk_slice_axis(g, x, 3, 0, half);
  Val x2 = interleaved ? every_second(g, x, 1, half) : mk_slice_axis(g, x, 3, half, half);
  Val less = mk_mul(g, sin, x2), first = mk_sub(g, mk_mul(g, cos, x1), less);
  Val more = mk_mul(g, cos, x2), second = mk_add(g, mk_mul(g, sin, x1), more);
  Val part[3] = {first, second, 0};
  u32 n = 2;
  if (interleaved) {
    Dim dim[4] = {t.dim[0], t.dim[1], t.dim[2], both};
    for (u32 i = 0; i < 2; i++) part[i] = mk_unsqueeze(g, part[i], 4);
    part[0] = mk_reshape(g, mk_concat(g, part, 2, 4), dim, 4);
    n = 1;
  }
  if (both != size) part[n++] = mk_slice_axis(g, x, 3, both, dim_sub(g->dims, size, both));
  return mk_concat(g, part, n, 3);
}

Val attn_add_mask(Graph *g, Val s, Val mask) {
  mask = mk_cast(g, mask, graph_type(g, s)->dt);
  Val low = mk_like(g, s, -INFINITY);
  Val masked = mk_add(g, s, mask);
  return mk_select(g, mk_eq(g, mask, low), low, masked);
}

Val attn_range_mask(Graph *g, Val start, Val end, Dim length) {
  Val j = mk_iota(g, DT_i64, &length, 1, 0);
  Val keep = mk_lt(g, j, mk_expand_tail(g, mk_cast(g, end, DT_i64), 3));
  if (!start) return keep;
  return mk_and(g, keep, mk_ge(g, j, mk_expand_tail(g, mk_cast(g, start, DT_i64), 3)));
}

Val attn_append_kv(Graph *g, Val old, Val past, Val x, Dim length) {
  Type t = *graph_type(g, x);
  Dim shape[4] = {t.dim[0], t.dim[1], length, t.dim[3]}, line[3] = {length, 1, 0};
  Val j = mk_iota(g, DT_i64, line, 2, 0), at = mk_sub(g, j, past); /* [batch, 1, length, 1] */
  Val zero = mk_like(g, x, 0), new = mk_ge(g, at, mk_scalar(g, DT_i64, 0));
  new = mk_and(g, new, mk_lt(g, at, mk_extent(g, t.dim[2], DT_i64)));
  Val idx = mk_max(g, at, mk_scalar(g, DT_i64, 0));
  Val fresh = mk_gather_elems(g, x, mk_broadcast(g, idx, shape, 4), 2);
  if (old) {
    Dim have = val_dim(g, old, 2), lo[4] = {0}, hi[4] = {0};
    old = mk_cast(g, old, t.dt);
    if (have != length) hi[2] = dim_sub(g->dims, length, have);
    old = mk_pad(g, old, zero, lo, hi, NULL);
  }
  return mk_select(g, new, fresh, old ? old : zero);
}

Val attn_sink_softmax(Graph *g, Val s, Val sink) {
  Val more = sink ? mk_expand_tail(g, mk_cast(g, sink, graph_type(g, s)->dt), 2) : mk_like(g, s, 0);
  return sink_softmax(g, s, more, 3);
}
