/* onnx_ops_attention.c: Attention, FlexAttention, LinearAttention and RotaryEmbedding.
 *
 * Computes on [batch, heads, length, size] in widened types and rounds once at the end. Query heads
 * that share a key head are a separate axis of the contractions, so keys and values are never
 * copied. Masked scores are -Inf; a fully masked row has probabilities of 0.
 */
#include "front/onnx/onnx_builder.h"

#include <math.h>

/* ---- Attention ---- */

static DType precision_attr(Build *b, DType otherwise) {
  if (!on_has_attr(b, "softmax_precision")) return otherwise;
  DType dt = dtype_from_onnx(on_int(b, "softmax_precision", 0));
  if (!dtype_is_float(dt))
    on_bad(b, "softmax_precision is %lld, expected a float type",
           (long long)on_int(b, "softmax_precision", 0));
  return dt;
}

/* At least f32, f64 if the operand or the softmax needs it. */
static DType compute_type(Build *b, Val q) {
  DType dt = on_dtype(b, q);
  if (!dtype_is_float(dt))
    on_bad(b, "the operand has type %s, expected floats", dtype_info[dt].name);
  return precision_attr(b, dt) == DT_f64 ? DT_f64 : dtype_acc(dt);
}

/* Extends the mask to the length of the keys; keys beyond the mask are hidden. */
static Val whole_mask(Build *b, Val mask, Dim total) {
  u32 rank = on_rank(b, mask);
  if (!rank || rank > 4) on_bad(b, "the mask has rank %u, expected 1 to 4", rank);
  Dim have = on_dim(b, mask, rank - 1), lo[4] = {0}, hi[4] = {0};
  if (have == total || b->opset < 24) return mask;
  if (dim_is_const(have) && dim_is_const(total) && have > total)
    on_bad(b, "the mask has length %lld, expected at most %lld, the number of keys",
           (long long)have, (long long)total);
  hi[rank - 1] = dim_sub(b->ds, total, have);
  return mk_pad(b->g, mask, mk_like(b->g, mask, on_dtype(b, mask) == DT_bool ? 0 : -INFINITY), lo,
                hi, NULL);
}

/* Number of keys before the first query: in the cache, or per batch entry in an external cache. */
static Val keys_before(Build *b, Val s) {
  Graph *g = b->g;
  if (on_has(b, 4)) return mk_extent(g, on_dim(b, b->in[4], 2), DT_i64);
  if (!on_has(b, 6)) return mk_scalar(g, DT_i64, 0);
  Val length = mk_expand_tail(g, mk_cast(g, b->in[6], DT_i64), 3);
  return mk_sub(g, length, mk_extent(g, on_dim(b, s, 2), DT_i64));
}

static i64 window_attr(Build *b, const char *name) {
  i64 n = on_int(b, name, -1);
  if (n < -1 || n > INT32_MAX) on_bad(b, "%s is %lld, expected -1 or more", name, (long long)n);
  return n;
}

static Val masked(Build *b, Val s) {
  Graph *g = b->g;
  Dim total = on_dim(b, s, 3);
  i64 left = window_attr(b, "left_window_size"), right = window_attr(b, "right_window_size");
  if (on_has(b, 3)) {
    Val mask = whole_mask(b, b->in[3], total);
    s = on_dtype(b, mask) == DT_bool ? attn_mask(g, s, mask) : attn_add_mask(g, s, mask);
  }
  if (on_int(b, "is_causal", 0)) right = 0;
  Val keep = left >= 0 || right >= 0 ? attn_window_mask(g, s, keys_before(b, s), left, right) : 0;
  if (keep) s = attn_mask(g, s, keep);
  if (on_has(b, 6)) {
    Val length = mk_expand_tail(g, mk_cast(g, b->in[6], DT_i64), 3);
    s = attn_mask(g, s, mk_lt(g, mk_iota(g, DT_i64, &total, 1, 0), length));
  }
  return s;
}

void build_attention(Build *b) {
  Graph *g = b->g;
  DType dt = on_dtype(b, on_in(b, 0)), type = compute_type(b, b->in[0]);
  bool packed = on_rank(b, b->in[0]) == 3;
  i64 kv_heads = on_int(b, "kv_num_heads", 0), mode = on_int(b, "qk_matmul_output_mode", 0);
  Val q = attn_split_heads(g, b->in[0], on_int(b, "q_num_heads", 0));
  Val kv[2] = {attn_split_heads(g, on_in(b, 1), kv_heads),
               attn_split_heads(g, on_in(b, 2), kv_heads)};
  for (u32 i = 0; i < 2; i++) {
    if (!on_has(b, 4 + i)) continue;
    if (on_rank(b, b->in[4 + i]) != 4)
      on_bad(b, "input %u, past keys or values, has rank %u, expected 4", 4 + i,
             on_rank(b, b->in[4 + i]));
    kv[i] = mk_concat(g, (Val[]){b->in[4 + i], kv[i]}, 2, 2);
  }
  if (mode < 0 || mode > 3)
    on_bad(b, "qk_matmul_output_mode is %lld, expected 0 to 3", (long long)mode);
  Val stage[4];
  Val key = mk_cast(g, kv[0], type);
  stage[0] = attn_scores(g, mk_cast(g, q, type), key, on_float(b, "scale", 0));
  stage[1] = attn_cap(g, stage[0], on_float(b, "softcap", 0));
  stage[2] = masked(b, stage[1]);
  stage[3] = attn_softmax(g, stage[2]);
  Val y = attn_weighted_sum(g, stage[3], mk_cast(g, kv[1], type));
  b->out[0] = mk_cast(g, packed ? attn_merge_heads(g, y) : y, dt);
  for (u32 i = 0; i < 2; i++)
    if (on_wants(b, 1 + i)) b->out[1 + i] = kv[i];
  if (on_wants(b, 3)) b->out[3] = mk_cast(g, stage[mode], dt);
}

/* ---- FlexAttention ---- */

static Val modified(Build *b, const char *name, Val x) {
  if (!on_has_attr(b, name)) return x;
  Type t = *on_type(b, x);
  Val y;
  if (on_subgraph(b, on_graph(b, name), &x, 1, &y, 1) != 1)
    on_bad(b, "%s: expected one output", name);
  if (on_dtype(b, y) != t.dt || on_rank(b, y) != 4)
    on_bad(b,
           "%s: expected a result of the type and rank of its operand, %s and 4; found %s and %u",
           name, dtype_info[t.dt].name, dtype_info[on_dtype(b, y)].name, on_rank(b, y));
  return mk_broadcast(b->g, y, t.dim, 4);
}

void build_flexattention(Build *b) {
  Graph *g = b->g;
  DType dt = on_dtype(b, on_in(b, 0)), type = compute_type(b, b->in[0]);
  DType sub = precision_attr(b, dtype_acc(dt)); /* type in the sub-graphs */
  for (u32 i = 0; i < 3; i++)
    if (on_rank(b, on_in(b, i)) != 4)
      on_bad(b, "input %u has rank %u, expected 4", i, on_rank(b, on_in(b, i)));
  Val key = mk_cast(g, b->in[1], type);
  Val s = attn_scores(g, mk_cast(g, b->in[0], type), key, on_float(b, "scale", 0));
  s = modified(b, "score_mod", mk_cast(g, s, sub));
  Val p = modified(b, "prob_mod", mk_cast(g, attn_softmax(g, mk_widen(g, s)), sub));
  Val value = mk_cast(g, b->in[2], type);
  b->out[0] = mk_cast(g, attn_weighted_sum(g, mk_cast(g, p, type), value), dt);
}

/* ---- LinearAttention ---- */

typedef struct Linear {
  Build *b;
  Val q, k, v;     /* [batch, heads, length, size] */
  Val decay, beta; /* exponentials, 0: none; last axis 1 if equal */
} Linear;

/* state [batch, heads, dk, dv] <- decay * state + k (x) v'; v' is v, or beta * (v - state . k) */
static void linear_step(Graph *g, void *user, Val t, Val *cond, Val *carried, Val *scan) {
  Linear *l = user;
  Val s = carried[0], k = mk_gather(g, l->k, t, 2), v = mk_gather(g, l->v, t, 2),
      q = mk_gather(g, l->q, t, 2);
  (void)cond;
  if (l->decay) s = mk_mul(g, s, mk_unsqueeze(g, mk_gather(g, l->decay, t, 2), 3));
  if (l->beta) {
    Val seen = mk_contract(g, k, s, "bhd,bhdm->bhm");
    Val change = mk_sub(g, v, seen);
    v = mk_mul(g, mk_gather(g, l->beta, t, 2), change);
  }
  Val values = mk_unsqueeze(g, v, 2);
  s = mk_add(g, s, mk_mul(g, mk_unsqueeze(g, k, 3), values));
  carried[0] = s;
  scan[0] = attn_weighted_sum(g, mk_unsqueeze(g, q, 2), s); /* [batch, heads, 1, dv] */
}

static Val linear_operand(Build *b, u32 i, i64 heads) {
  Val x = on_wide(b, i);
  if (on_rank(b, x) != 3) on_bad(b, "input %u has rank %u, expected 3", i, on_rank(b, x));
  return attn_split_heads(b->g, x, heads);
}

static void linear_gates(Linear *l, i64 heads) {
  Build *b = l->b;
  u32 rule = on_choice(b, "update_rule", "gated_delta gated delta linear");
  bool gated = rule < 2, delta = rule == 0 || rule == 2;
  if (on_has(b, 4) != gated)
    on_bad(b, "decay is required by the gated rules and invalid for the others");
  if (on_has(b, 5) != delta)
    on_bad(b, "beta is required by the delta rules and invalid for the others");
  DType type = on_dtype(b, l->q);
  if (gated) l->decay = mk_exp(b->g, mk_cast(b->g, linear_operand(b, 4, heads), type));
  if (!delta) return;
  bool shared = on_rank(b, b->in[5]) == 3 && on_dim(b, b->in[5], 2) == 1;
  l->beta = mk_cast(b->g, linear_operand(b, 5, shared ? 1 : heads), type);
}

void build_linearattention(Build *b) {
  Graph *g = b->g;
  DType dt = on_dtype(b, on_in(b, 0));
  i64 heads = on_int(b, "q_num_heads", 0), kv_heads = on_int(b, "kv_num_heads", 0);
  if (heads < 1 || kv_heads < 1 || heads % kv_heads)
    on_bad(b, "%lld query heads are not a multiple of %lld key heads", (long long)heads,
           (long long)kv_heads);
  Linear l = {.b = b, .q = linear_operand(b, 0, heads), .k = linear_operand(b, 1, kv_heads)};
  l.v = linear_operand(b, 2, kv_heads);
  linear_gates(&l, kv_heads);
  double scale = on_float(b, "scale", 0);
  l.q = attn_scale(g, l.q, scale);
  Dim shape[4] = {on_dim(b, l.k, 0), kv_heads, on_dim(b, l.k, 3), on_dim(b, l.v, 3)},
      steps = on_dim(b, l.k, 2);
  Val state = on_has(b, 3) ? mk_cast(g, b->in[3], on_dtype(b, l.q))
                           : mk_full(g, mk_like(g, l.q, 0), shape, 4);
  Val scan;
  mk_loop(g, mk_extent(g, steps, DT_i64), 0, &state, 1, &scan, 1, linear_step, &l);
  /* [length, batch, heads, 1, dv] */
  Val y = mk_transpose(g, mk_squeeze(g, scan, 3), (const i64[]){1, 0, 2, 3});
  Dim flat[3] = {shape[0], steps, dim_mul(b->ds, heads, shape[3])};
  b->out[0] = mk_cast(g, mk_reshape(g, y, flat, 3), dt);
  if (on_wants(b, 1)) b->out[1] = mk_cast(g, state, on_has(b, 3) ? on_dtype(b, b->in[3]) : dt);
}

/* ---- RotaryEmbedding ---- */

void build_rotary(Build *b) {
  Graph *g = b->g;
  Val x = on_in(b, 0), cos = on_wide(b, 1), sin = on_wide(b, 2);
  bool packed = on_rank(b, x) == 3;
  i64 dim = on_int(b, "rotary_embedding_dim", 0);
  if (on_has(b, 3)) {
    if (on_rank(b, b->in[3]) != 2)
      on_bad(b, "position_ids has rank %u, expected 2", on_rank(b, b->in[3]));
    cos = mk_gather(g, cos, on_index(b, b->in[3], on_dim(b, cos, 0)), 0);
    sin = mk_gather(g, sin, on_index(b, b->in[3], on_dim(b, sin, 0)), 0);
  }
  if (on_rank(b, cos) != 3 || on_rank(b, sin) != 3)
    on_bad(b, "cosines and sines have rank %u, expected %u", on_rank(b, on_in(b, 1)),
           on_has(b, 3) ? 2 : 3);
  x = attn_split_heads(g, mk_widen(g, x), on_int(b, "num_heads", 0));
  Dim want = dim ? dim : on_dim(b, x, 3), have = dim_mul(b->ds, on_dim(b, cos, 2), 2);
  if (dim_is_const(want) && dim_is_const(have) && want != have)
    on_bad(b, "there are cosines for %lld elements, expected %lld as rotated", (long long)have / 2,
           (long long)want);
  Val y = attn_rope(g, x, cos, sin, on_int(b, "interleaved", 0) != 0);
  on_set_output(b, packed ? attn_merge_heads(g, y) : y);
}
