/* onnx_ops_ms_attention.c: attention of com.microsoft: Attention, MultiHeadAttention,
 * GroupQueryAttention, RotaryEmbedding.
 *
 * They differ in the layout of queries, keys and values and in the form of masks. Each is converted
 * to the form of front/compose. Refused: buffers shared by past and present, beam search, quantized
 * caches.
 */
#include "front/onnx/onnx_builder.h"

#include <float.h>
#include <math.h>

typedef struct Heads {
  Val q, k, v; /* [batch, heads, length, size] in the compute type */
} Heads;

static i64 heads_attr(Build *b, const char *name) {
  i64 n = on_int(b, name, 0);
  if (n < 1 || n > INT32_MAX) on_bad(b, "%s is %lld, expected at least 1", name, (long long)n);
  return n;
}

/* ---- masks ---- */

/* Converts an integer mask to bool for scores [batch, heads, length, total]: [batch] lengths, [2 *
 * batch] ends and starts, [batch, total], [batch, length, total], [batch, 1, most, most]. */
static Val mask_keeps(Build *b, Val mask, Val scores) {
  Graph *g = b->g;
  Type t = *on_type(b, mask), ts = *on_type(b, scores);
  Dim batch = ts.dim[0], total = ts.dim[3];
  if (t.rank == 1 && t.dim[0] == batch) return attn_range_mask(g, 0, mask, total);
  if (t.rank == 1 && t.dim[0] == dim_mul(b->ds, batch, 2)) {
    Val before = mk_slice_axis(g, mask, 0, 0, batch);
    return attn_range_mask(g, mk_slice_axis(g, mask, 0, batch, batch), before, total);
  }
  if (t.rank == 1)
    on_unsupported(b, "the mask index: expected the batch size or twice the batch size");
  Val keep = mk_gt(g, mask, mk_like(g, mask, 0));
  if (t.rank == 2) return mk_unsqueeze(g, mk_unsqueeze(g, keep, 1), 1);
  if (t.rank == 3) return mk_unsqueeze(g, keep, 1);
  if (t.rank != 4) on_bad(b, "the mask has rank %u, expected 1 to 4", t.rank);
  Dim past = dim_sub(b->ds, total, ts.dim[2]);
  return mk_slice_axis(g, mk_slice_axis(g, keep, 2, past, ts.dim[2]), 3, 0, total);
}

/* Adds mask_filter_value to masked scores, so a fully masked row behaves as unmasked. */
static Val lower(Build *b, Val s, Val mask) {
  Val zero = mk_like(b->g, s, 0), low = mk_like(b->g, s, on_float(b, "mask_filter_value", -10000));
  return mask ? mk_add(b->g, s, mk_select(b->g, mask_keeps(b, mask, s), zero, low)) : s;
}

/* softmax(q . k * scale + bias, masked) . v, [batch, length, heads * size]. scores: receives the
 * operand of the softmax with the lowest finite number where hidden; may be NULL. */
static Val attend(Build *b, const Heads *h, Val bias, Val mask, Dim past, Val *scores) {
  Graph *g = b->g;
  Val s = attn_scores(g, h->q, h->k, on_float(b, "scale", 0));
  if (bias) s = mk_add(g, s, mk_cast(g, bias, on_dtype(b, s)));
  s = lower(b, s, mask);
  if (on_int(b, "unidirectional", 0))
    s = attn_mask(g, s, attn_window_mask(g, s, mk_extent(g, past, DT_i64), -1, 0));
  if (scores) *scores = mk_max(g, s, mk_like(g, s, -FLT_MAX));
  return attn_merge_heads(g, attn_weighted_sum(g, attn_softmax(g, s), h->v));
}

static void refuse(Build *b, u32 i, const char *what) {
  if (on_has(b, i)) on_unsupported(b, "input %u, %s, is given", i, what);
}

/* ---- Attention ---- */

/* Past and present are [2, batch, heads, length, size]. */
static Dim append_past(Build *b, Heads *h, Val past, DType dt, u32 out) {
  Graph *g = b->g;
  Val *kv[2] = {&h->k, &h->v}, now[2];
  Dim length = 0;
  if (past && on_rank(b, past) != 5)
    on_bad(b, "the past has rank %u, expected 5", on_rank(b, past));
  for (u32 i = 0; i < 2; i++) {
    if (past) {
      Val old = mk_squeeze(g, mk_slice_axis(g, past, 0, i, 1), 0);
      length = on_dim(b, old, 2);
      *kv[i] = mk_concat(g, (Val[]){mk_cast(g, old, on_dtype(b, *kv[i])), *kv[i]}, 2, 2);
    }
    now[i] = mk_unsqueeze(g, *kv[i], 0);
  }
  if (on_wants(b, out)) b->out[out] = mk_cast(g, mk_concat(g, now, 2, 0), dt);
  return length;
}

/* Splits x [batch, length, q + k + v] into heads. */
static Heads split_projection(Build *b, Val x, const Dim *size, i64 heads) {
  Heads h;
  Val *to[3] = {&h.q, &h.k, &h.v};
  Dim at = 0;
  for (u32 i = 0; i < 3; i++) {
    *to[i] = attn_split_heads(b->g, mk_slice_axis(b->g, x, 2, at, size[i]), heads);
    at = dim_add(b->ds, at, size[i]);
  }
  return h;
}

static void three_sizes(Build *b, Val x, Dim *size) {
  i64 given[3];
  Dim all = on_dim(b, x, 2);
  bool listed = on_ints(b, "qkv_hidden_sizes", given, 3) == 3;
  for (u32 i = 0; i < 3; i++) {
    if (listed && given[i] < 1)
      on_bad(b, "qkv_hidden_sizes contains %lld, expected at least 1", (long long)given[i]);
    size[i] = listed ? given[i] : dim_div(b->ds, all, 3);
  }
}

/* Starts at the projection [batch, length, q + k + v]; shared with QAttention. */
void on_projected_attention(Build *b, Val x, u32 mask, u32 past, u32 bias, DType dt) {
  Dim size[3];
  if (on_int(b, "do_rotary", 0)) on_unsupported(b, "do_rotary is not 0");
  if (on_int(b, "past_present_share_buffer", 0))
    on_unsupported(b, "past_present_share_buffer is not 0");
  three_sizes(b, x, size);
  Heads h = split_projection(b, x, size, heads_attr(b, "num_heads"));
  Dim before = append_past(b, &h, on_opt(b, past), dt, 1);
  b->out[0] = mk_cast(b->g, attend(b, &h, on_opt(b, bias), on_opt(b, mask), before, NULL), dt);
}

void build_ms_attention(Build *b) {
  Val x = on_wide(b, 0), w = on_wide(b, 1);
  if (on_rank(b, x) != 3 || on_rank(b, w) != 2)
    on_bad(b, "expected an input of rank 3 and weights of rank 2");
  refuse(b, 6, "past_sequence_length");
  Val y = mk_matmul(b->g, x, w);
  if (on_has(b, 2)) y = mk_add(b->g, y, mk_widen(b->g, b->in[2]));
  on_projected_attention(b, y, 3, 4, 5, on_dtype(b, b->in[0]));
}

/* ---- MultiHeadAttention ---- */

/* Part i of [batch, length, heads, parts, size] as [batch, heads, length, size]. */
static Val packed_part(Build *b, Val x, i64 i) {
  Val p = mk_squeeze(b->g, mk_slice_axis(b->g, x, 3, i, 1), 3);
  return mk_transpose(b->g, p, (const i64[]){0, 2, 1, 3});
}

/* Adds the bias elements of x to its heads. */
static Val head_bias(Build *b, Val x, Val bias, Dim *at) {
  Type t = *on_type(b, x);
  Dim size = dim_mul(b->ds, t.dim[1], t.dim[3]), shape[3] = {t.dim[1], 1, t.dim[3]};
  Val part = mk_slice_axis(b->g, bias, 0, *at, size);
  *at = dim_add(b->ds, *at, size);
  return mk_add(b->g, x, mk_cast(b->g, mk_reshape(b->g, part, shape, 3), t.dt));
}

static Heads multihead_read(Build *b) {
  i64 n = heads_attr(b, "num_heads");
  Val q = on_wide(b, 0), k = on_opt(b, 1), v = on_opt(b, 2);
  Heads h;
  if (!k) {
    if (on_rank(b, q) != 5)
      on_bad(b, "the query has rank %u, expected 5 because keys are absent", on_rank(b, q));
    h = (Heads){packed_part(b, q, 0), packed_part(b, q, 1), packed_part(b, q, 2)};
  } else {
    k = mk_widen(b->g, k);
    h.q = attn_split_heads(b->g, q, n);
    if (!v) {
      if (on_rank(b, k) != 5)
        on_bad(b, "the keys have rank %u, expected 5 because values are absent", on_rank(b, k));
      h.k = packed_part(b, k, 0);
      h.v = packed_part(b, k, 1);
    } else {
      h.k = attn_split_heads(b->g, k, n);
      h.v = attn_split_heads(b->g, mk_widen(b->g, v), n);
      if (on_rank(b, k) == 4 && on_has(b, 3))
        on_unsupported(b, "the keys have rank 4 and there is a bias, expected one of both");
    }
  }
  if (on_has(b, 3)) {
    Dim at = 0;
    h.q = head_bias(b, h.q, b->in[3], &at);
    h.k = head_bias(b, h.k, b->in[3], &at);
    h.v = head_bias(b, h.v, b->in[3], &at);
  }
  return h;
}

void build_multihead(Build *b) {
  Graph *g = b->g;
  DType dt = on_dtype(b, on_in(b, 0));
  refuse(b, 8, "past_sequence_length");
  refuse(b, 9, "cache_indirection");
  Heads h = multihead_read(b);
  Val qk, *kv[2] = {&h.k, &h.v};
  Dim past = 0;
  for (u32 i = 0; i < 2; i++) {
    if (on_has(b, 6 + i)) {
      if (on_rank(b, b->in[6 + i]) != 4)
        on_bad(b, "input %u, past keys or values, has rank %u, expected 4", 6 + i,
               on_rank(b, b->in[6 + i]));
      past = on_dim(b, b->in[6 + i], 2);
      *kv[i] = mk_concat(g, (Val[]){mk_widen(g, b->in[6 + i]), *kv[i]}, 2, 2);
    }
    if (on_wants(b, 1 + i)) b->out[1 + i] = mk_cast(g, *kv[i], dt);
  }
  b->out[0] = mk_cast(g, attend(b, &h, on_opt(b, 5), on_opt(b, 4), past, &qk), dt);
  if (on_wants(b, 3)) b->out[3] = mk_cast(g, qk, dt);
}

/* ---- RotaryEmbedding ---- */

/* Gathers rows of a table [positions, half] at [batch, length]. */
static Val rows_at(Build *b, Val table, Val at) {
  Val rows = on_index(b, at, on_dim(b, table, 0));
  return mk_gather(b->g, mk_widen(b->g, table), rows, 0);
}

void build_ms_rotary(Build *b) {
  Graph *g = b->g;
  Val x = on_in(b, 0), pos = mk_cast(g, on_in(b, 1), DT_i64), cos = on_in(b, 2), sin = on_in(b, 3);
  DType dt = on_dtype(b, x);
  bool packed = on_rank(b, x) == 3;
  i64 heads = on_int(b, "num_heads", 0), dim = on_int(b, "rotary_embedding_dim", 0);
  if (on_int(b, "is_packed_batching", 0)) on_unsupported(b, "is_packed_batching is not 0");
  if (on_float(b, "scale", 1) != 1)
    on_unsupported(b, "scale is %g, expected 1", on_float(b, "scale", 1));
  if (on_rank(b, cos) != 2 || on_rank(b, sin) != 2)
    on_bad(b, "cosines have rank %u and sines %u, expected 2", on_rank(b, cos), on_rank(b, sin));
  if (packed && heads < 1) {
    if (dim) on_bad(b, "rotary_embedding_dim needs num_heads");
    i64 size = 2 * on_static_dim(b, cos, 1), width = on_static_dim(b, x, 2);
    heads = size ? width / size : 0;
  }
  x = attn_split_heads(g, mk_widen(g, x), heads);
  Dim length = on_dim(b, x, 2), row[2] = {1, length};
  if (on_rank(b, pos) != 2) {
    Val from = mk_reshape(g, pos, NULL, 0);
    pos = mk_add(g, mk_iota(g, DT_i64, row, 2, 1), from);
  }
  Val sines = rows_at(b, sin, pos);
  x = attn_rope(g, x, rows_at(b, cos, pos), sines, on_int(b, "interleaved", 0) != 0);
  b->out[0] = mk_cast(g, packed ? attn_merge_heads(g, x) : x, dt);
}

/* ---- GroupQueryAttention ---- */

typedef struct Cache {
  Val past;   /* [batch, 1, 1, 1] i64: number of earlier tokens */
  Dim length; /* length of the result */
} Cache;

static Val head_norm(Build *b, Val x, Val weight) {
  Val square = mk_mean(b->g, mk_mul(b->g, x, x), &(i64){3}, 1, true);
  Val root = mk_sqrt(b->g, mk_addk(b->g, square, on_float(b, "qk_norm_epsilon", 1e-6f)));
  Val gain = mk_cast(b->g, weight, on_dtype(b, x));
  return mk_mul(b->g, mk_div(b->g, x, root), gain);
}

static Heads grouped_read(Build *b) {
  i64 n = heads_attr(b, "num_heads"), kv = heads_attr(b, "kv_num_heads");
  Val q = on_wide(b, 0);
  Heads h;
  if (on_rank(b, q) != 3) on_bad(b, "the query has rank %u, expected 3", on_rank(b, q));
  if (on_has(b, 1)) {
    h = (Heads){attn_split_heads(b->g, q, n), attn_split_heads(b->g, mk_widen(b->g, b->in[1]), kv),
                attn_split_heads(b->g, on_wide(b, 2), kv)};
  } else {
    Dim one = dim_div(b->ds, on_dim(b, q, 2), n + 2 * kv),
        size[3] = {dim_mul(b->ds, one, n), dim_mul(b->ds, one, kv), 0};
    h.q = attn_split_heads(b->g, mk_slice_axis(b->g, q, 2, 0, size[0]), n);
    h.k = attn_split_heads(b->g, mk_slice_axis(b->g, q, 2, size[0], size[1]), kv);
    h.v = attn_split_heads(
        b->g, mk_slice_axis(b->g, q, 2, dim_add(b->ds, size[0], size[1]), size[1]), kv);
  }
  if (on_has(b, 14)) {
    h.q = head_norm(b, h.q, b->in[14]);
    h.k = head_norm(b, h.k, on_in(b, 15));
  }
  return h;
}

static void grouped_rotate(Build *b, Heads *h, const Cache *c) {
  Graph *g = b->g;
  Dim row[2] = {1, on_dim(b, h->q, 2)}, batch = on_dim(b, h->q, 0), col[2] = {batch, 1};
  Val pos = on_has(b, 9) ? b->in[9] : 0;
  if (!pos) {
    Val from = mk_reshape(g, c->past, col, 2);
    pos = mk_add(g, mk_iota(g, DT_i64, row, 2, 1), from);
  }
  Val cos = rows_at(b, on_in(b, 7), pos), sin = rows_at(b, on_in(b, 8), pos);
  bool turn = on_int(b, "rotary_interleaved", 0) != 0;
  h->q = attn_rope(g, h->q, cos, sin, turn);
  h->k = attn_rope(g, h->k, cos, sin, turn);
}

/* Visible keys of each query: bool [batch, 1, length, total]. */
static Val grouped_keeps(Build *b, Val s, const Cache *c) {
  Graph *g = b->g;
  i64 window = on_int(b, "local_window_size", -1);
  if (window == 0 || window < -1)
    on_bad(b, "local_window_size is %lld, expected -1 or at least 1", (long long)window);
  Dim rows = on_dim(b, s, 2), cols = on_dim(b, s, 3);
  if (on_int(b, "causal", 1))
    return attn_window_mask(g, s, c->past, window < 0 ? -1 : window - 1, 0);
  Val end = mk_add(g, c->past, mk_extent(g, rows, DT_i64));
  return mk_lt(g, mk_iota(g, DT_i64, &cols, 1, 0), end);
}

static void grouped_refuse(Build *b) {
  if (on_int(b, "sliding_window_cache", 0)) on_unsupported(b, "sliding_window_cache is not 0");
  refuse(b, 12, "the scale of a quantized cache");
  if (!on_str_is(b, "k_quant_type", "NONE", "NONE") ||
      !on_str_is(b, "v_quant_type", "NONE", "NONE"))
    on_unsupported(b, "k_quant_type or v_quant_type is not NONE: the cache is quantized");
}

void build_groupquery(Build *b) {
  Graph *g = b->g;
  DType dt = on_dtype(b, on_in(b, 0));
  grouped_refuse(b);
  Heads h = grouped_read(b);
  Dim length = on_dim(b, h.q, 2), total;
  if (on_known_dims(b, 6, &total, 1) != 1) on_bad(b, "total_sequence_length: expected one element");
  Cache c = {.length = on_has(b, 3) ? dim_max(b->ds, on_dim(b, b->in[3], 2), total) : total};
  /* negative for a padded prompt: no earlier tokens */
  Val size = mk_extent(g, length, DT_i64);
  Val before = mk_sub(g, mk_addk(g, mk_cast(g, on_in(b, 5), DT_i64), 1), size);
  Dim batch[4] = {on_dim(b, h.q, 0), 1, 1, 1};
  c.past = mk_reshape(g, mk_max(g, before, mk_scalar(g, DT_i64, 0)), batch, 4);
  if (on_int(b, "do_rotary", 0)) grouped_rotate(b, &h, &c);
  h.k = attn_append_kv(g, on_opt(b, 3), c.past, h.k, c.length);
  h.v = attn_append_kv(g, on_opt(b, 4), c.past, h.v, c.length);
  Val s = attn_cap(g, attn_scores(g, h.q, h.k, on_float(b, "scale", 0)), on_float(b, "softcap", 0)),
      p;
  if (on_has(b, 10)) s = mk_add(g, s, mk_cast(g, b->in[10], on_dtype(b, s)));
  s = attn_mask(g, s, grouped_keeps(b, s, &c));
  if (on_has(b, 11) || on_int(b, "smooth_softmax", -1) == 1)
    p = attn_sink_softmax(g, s, on_opt(b, 11));
  else
    p = attn_softmax(g, s);
  b->out[0] = mk_cast(g, attn_merge_heads(g, attn_weighted_sum(g, p, h.v)), dt);
  if (on_wants(b, 1)) b->out[1] = mk_cast(g, h.k, dt);
  if (on_wants(b, 2)) b->out[2] = mk_cast(g, h.v, dt);
  if (on_wants(b, 3)) on_unsupported(b, "output 3, qk, is used");
}
