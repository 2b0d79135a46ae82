/* decoder.c: a decoder language model as a Graph.
 *
 * In: an LmFile with its LmHparams. Out: a Graph from ids [tokens] to logits, with the KV cache as
 * state. Method: one function per part of a layer. Architectures differ only in numbers and flags
 * of LmHparams. Attention uses compose.h over all positions so far. Query heads that share a key
 * head are a group. Positions follow from the length of the cache. Causality and sliding windows
 * are masks computed from positions.
 *
 * Every token is computed by the same sums in every batch of tokens, so results do not depend on
 * how a text is split into runs.
 */
#include "front/compose/compose.h"
#include "front/llm/lm_hparams.h"

#include <math.h>
#include <string.h>

typedef struct Decoder {
  Graph *g;
  LmFile *f;
  const LmHparams *s;
  const LmOptions *opts;
  Dim tokens, past, all; /* tokens of this run, of earlier runs, of both */
  Val before;            /* past as a scalar */
  Val cos[2], sin[2];    /* by LmRope: [1, tokens, pairs] */
  Map used;              /* names of the tensors read */
} Decoder;

static const char *const weight = ".weight", *const bias = ".bias";

/* ---- weights ---- */

static void set_place(Decoder *d, const char *name) {
  d->g->loc = d->f->loc;
  d->g->loc.node = str_of(d->g->c, name);
}

/* A tensor of this shape (cols 0: a vector), as f32. */
static Val tensor(Decoder *d, const char *name, i64 rows, i64 cols) {
  Graph *g = d->g;
  set_place(d, name);
  Val v = mk_cast(g, lm_weight(g, d->f, name), DT_f32);
  const Type *t = graph_type(g, v);
  if (t->rank != (cols ? 2 : 1) || t->dim[0] != rows || (cols && t->dim[1] != cols)) {
    StrBuf have = sb_new(&g->c->scratch);
    for (u32 i = 0; i < t->rank; i++) sb_fmt(&have, "%s%lld", i ? "x" : "", (long long)t->dim[i]);
    fail(g->c, ERR_input, g->loc, "the tensor has shape %s, expected %lld%s%.0lld", sb_cstr(&have),
         (long long)rows, cols ? "x" : "", (long long)cols);
  }
  *map_put(&d->used, str_of(g->c, name)) = 1;
  return v;
}

/* x [tokens, in] times the matrix [out, in], plus the bias if there is one. */
static Val linear(Decoder *d, LmTensorRole p, u32 layer, Val x, i64 out) {
  Graph *g = d->g;
  Val w = tensor(d, lm_tensor_name(d->f, p, layer, weight), out, val_dim(g, x, 1));
  x = mk_contract(g, x, w, "tk,nk->tn");
  if (!lm_tensor(d->f, lm_tensor_name(d->f, p, layer, bias))) return x;
  return mk_add(g, x, tensor(d, lm_tensor_name(d->f, p, layer, bias), out, 0));
}

/* Normalizes over the last axis. */
static Val norm(Decoder *d, LmTensorRole p, u32 layer, Val x) {
  Graph *g = d->g;
  i64 last = graph_type(g, x)->rank - 1;
  Val w = tensor(d, lm_tensor_name(d->f, p, layer, weight), val_dim(g, x, (u32)last), 0);
  if (d->s->plus_one) w = mk_addk(g, w, 1);
  return compose_affine(g, compose_rms_norm(g, x, &last, 1, d->s->eps, NULL), w, 0);
}

/* ---- RoPE ---- */

enum { FINE = 64 }; /* positions of the fine table */

/* cos (or sin) of step * i * freq for i below rows, as a constant [rows, n]. */
static Val rope_table(Graph *g, const LmRope *r, i64 rows, i64 step, double gain,
                      double (*of)(double)) {
  Tensor *t = tensor_new(&g->c->work, DT_f32, (const i64[]){rows, r->n}, 2);
  for (i64 i = 0; i < rows; i++)
    for (u32 k = 0; k < r->n; k++)
      tensor_set(t, (u64)(i * r->n + k), (Scalar){.f = gain * of((double)(i * step) * r->freq[k])});
  return mk_const(g, t);
}

/* Adds the angles of two small tables: position within a stretch of FINE, and stretch. One table of
 * all positions would be large, and angles computed in f32 are not exact. */
static void make_rope_tables(Decoder *d, u32 i) {
  Graph *g = d->g;
  const LmRope *r = &d->s->rope[i];
  i64 stretches = (d->s->context + FINE - 1) / FINE;
  Val at = mk_add(g, mk_iota(g, DT_i64, &d->tokens, 1, 0), d->before);
  Val stretch = mk_div(g, at, mk_scalar(g, DT_i64, FINE));
  Val place = mk_sub(g, at, mk_mulk(g, stretch, FINE));
  stretch = mk_min(g, stretch, mk_scalar(g, DT_i64, (double)(stretches - 1)));
  Val c1 = mk_gather(g, rope_table(g, r, stretches, FINE, 1, cos), stretch, 0);
  Val s1 = mk_gather(g, rope_table(g, r, stretches, FINE, 1, sin), stretch, 0);
  Val c2 = mk_gather(g, rope_table(g, r, FINE, 1, r->gain, cos), place, 0);
  Val s2 = mk_gather(g, rope_table(g, r, FINE, 1, r->gain, sin), place, 0);
  Val less = mk_mul(g, s1, s2);
  Val c = mk_sub(g, mk_mul(g, c1, c2), less);
  Val more = mk_mul(g, c1, s2);
  Val s = mk_add(g, mk_mul(g, s1, c2), more);
  d->cos[i] = mk_unsqueeze(g, c, 0);
  d->sin[i] = mk_unsqueeze(g, s, 0);
}

/* ---- attention ---- */

/* [tokens, heads * size] as [1, heads, tokens, size]. */
static Val heads_of(Decoder *d, Val x, i64 heads) {
  return attn_split_heads(d->g, mk_unsqueeze(d->g, x, 0), heads);
}

/* Appends x [1, heads, tokens, n] to the KV cache. */
static Val append(Decoder *d, const char *what, u32 layer, Val x) {
  Graph *g = d->g;
  Type of = *graph_type(g, x);
  Dim dim[4] = {1, of.dim[1], d->past, of.dim[3]};
  Str in = str_fmt(g->c, "past_%s.%u", what, layer), out = str_fmt(g->c, "%s.%u", what, layer);
  Val old = graph_param(g, 1, type_tensor(&g->c->work, of.dt, dim, 4), in);
  Val now = mk_concat(g, (const Val[]){old, x}, 2, 2);
  StatePair *s = vec_push(&g->c->work, &g->state);
  *s = (StatePair){.in = g->region.at[1].param.n - 1,
                   .out = g->region.at[1].ret.n,
                   .most = d->s->context,
                   .window = d->s->layer[layer].window};
  graph_result(g, now, out);
  return now;
}

/* Quantizes to -127..127, with one scale per head and token. */
static Val cache_kv_i8(Decoder *d, const char *what, u32 layer, Val x) {
  Graph *g = d->g;
  Val most = mk_reduce(g, OP_reduce_max, mk_abs(g, x), &(i64){3}, 1, true);
  Val some = mk_map2(g, OP_gt, most, mk_like(g, most, 0));
  Val zero = mk_like(g, most, 0);
  Val inverse = mk_select(g, some, mk_div(g, mk_like(g, most, 127), most), zero);
  Val q = mk_cast_sat(g, mk_map1(g, OP_round, mk_mul(g, x, inverse)), DT_i8);
  Val by = mk_div(g, most, mk_like(g, most, 127));
  q = append(d, what, layer, q);
  by = append(d, str_text(g->c, str_fmt(g->c, "%s_scale", what)), layer, by);
  return mk_mul(g, mk_cast(g, q, DT_f32), by);
}

static Val cache_kv(Decoder *d, const char *what, u32 layer, Val x) {
  Graph *g = d->g;
  if (d->opts->kept == DT_i8) return cache_kv_i8(d, what, layer, x);
  return mk_cast(g, append(d, what, layer, mk_cast(g, x, d->opts->kept)), DT_f32);
}

/* Queries, keys and values [tokens, heads * size]. */
static void project(Decoder *d, u32 layer, Val x, Val *q, Val *k, Val *v) {
  const LmHparams *s = d->s;
  i64 nq = s->heads * s->head, nk = s->kv_heads * s->head;
  if (s->arch->flags & LA_fused_qkv) {
    Val all = linear(d, LP_qkv, layer, x, nq + 2 * nk);
    *q = mk_slice_axis(d->g, all, 1, 0, nq);
    *k = mk_slice_axis(d->g, all, 1, nq, nk);
    *v = mk_slice_axis(d->g, all, 1, nq + nk, nk);
    return;
  }
  if (s->arch->flags & LA_bias)
    for (LmTensorRole p = LP_q; p <= LP_v; p++)
      lm_require_tensor(d->f, lm_tensor_name(d->f, p, layer, bias));
  *q = linear(d, LP_q, layer, x, nq);
  *k = linear(d, LP_k, layer, x, nk);
  *v = linear(d, LP_v, layer, x, nk);
}

static Val attention(Decoder *d, u32 layer, Val x) {
  Graph *g = d->g;
  const LmHparams *s = d->s;
  const LmLayer *l = &s->layer[layer];
  Val q, k, v;
  project(d, layer, x, &q, &k, &v);
  q = heads_of(d, q, s->heads);
  k = heads_of(d, k, s->kv_heads);
  v = heads_of(d, v, s->kv_heads);
  if (s->arch->flags & LA_qk_norm) {
    q = norm(d, LP_q_norm, layer, q);
    k = norm(d, LP_k_norm, layer, k);
  }
  set_place(d, lm_tensor_name(d->f, LP_attn_out, layer, ""));
  if (l->rotated) {
    q = attn_rope(g, q, d->cos[l->rope], d->sin[l->rope], s->pairs);
    k = attn_rope(g, k, d->cos[l->rope], d->sin[l->rope], s->pairs);
  }
  k = cache_kv(d, "key", layer, k);
  v = cache_kv(d, "value", layer, v);
  CausalAttn c = {.scale = s->scale, .cap = s->attn_cap, .past = d->before, .window = l->window};
  Val y = attn_merge_heads(g, attn_causal(g, &c, q, k, v));
  return linear(d, LP_attn_out, layer, mk_squeeze(g, y, 0), s->embed);
}

/* ---- the rest of a layer ---- */

static Val gate(Decoder *d, Val x) {
  if (d->s->gate == LG_silu) return compose_silu(d->g, x, 1);
  return compose_gelu(d->g, x, d->s->gate == LG_gelu_tanh);
}

static Val feed_forward(Decoder *d, u32 layer, Val x) {
  Graph *g = d->g;
  const LmHparams *s = d->s;
  Val open, up;
  if (s->arch->flags & LA_fused_qkv) {
    Val both = linear(d, LP_gate_up, layer, x, 2 * s->ffn);
    open = mk_slice_axis(g, both, 1, 0, s->ffn);
    up = mk_slice_axis(g, both, 1, s->ffn, s->ffn);
  } else {
    open = linear(d, LP_gate, layer, x, s->ffn);
    up = linear(d, LP_up, layer, x, s->ffn);
  }
  return linear(d, LP_down, layer, mk_mul(g, gate(d, open), up), s->embed);
}

static Val decoder_layer(Decoder *d, u32 layer, Val x) {
  Graph *g = d->g;
  bool post = d->s->arch->flags & LA_post_norm;
  Val y = attention(d, layer, norm(d, LP_attn_norm, layer, x));
  if (post) y = norm(d, LP_post_attn, layer, y);
  x = mk_add(g, x, y);
  y = feed_forward(d, layer, norm(d, post ? LP_pre_ffn : LP_ffn_norm, layer, x));
  if (post) y = norm(d, LP_post_ffn, layer, y);
  return mk_add(g, x, y);
}

/* ---- entry point ---- */

static Val logits(Decoder *d, Val x, Val embedding) {
  Graph *g = d->g;
  const LmHparams *s = d->s;
  if (!d->opts->every)
    x = mk_slice_axis(g, x, 0, dim_sub(g->dims, d->tokens, 1), 1); /* last token only */
  x = norm(d, LP_out_norm, 0, x);
  x = s->tied ? mk_contract(g, x, embedding, "tk,nk->tn") : linear(d, LP_output, 0, x, s->vocab);
  return attn_cap(g, x, s->logit_cap);
}

/* The tensor that an auxiliary tensor belongs to: scales etc. are called NAME.weight_WHAT. */
static Str owner_of(Ctx *c, Str name) {
  const char *text = str_text(c, name), *end = strstr(text, ".weight_");
  return end ? str_intern(c, text, (size_t)(end - text) + strlen(weight)) : name;
}

/* An unread tensor means that the layer differs from what this file builds. */
static void refuse_unused(Decoder *d) {
  const LmFile *f = d->f;
  const char *layer = f->gguf ? "blk." : "model.layers.";
  for (u32 i = 0; i < f->tensor.n; i++) {
    Str name = f->tensor.at[i].name;
    const char *text = str_text(f->c, name);
    if (strncmp(text, layer, strlen(layer)) != 0 || map_get(&d->used, owner_of(f->c, name)))
      continue;
    if (strstr(text, "rotary_emb.inv_freq")) continue; /* derived data, written by old tools */
    fail(f->c, ERR_unsupported, f->loc, "tensor '%s' has no place in architecture '%s'",
         show(f->c, name), d->s->arch->name);
  }
}

/* Refuses a context that exceeds the trained length or the memory, before building anything. */
static void check_context(LmFile *f, const LmHparams *s, const LmOptions *opts) {
  double each = 2.0 * (double)(s->kv_heads * s->head) * (double)dtype_bytes(opts->kept), bytes = 0;
  long long context = (long long)s->context;
  double most = fmax((double)s->longest, s->rope[0].reach); /* files give either length */
  if (s->longest && (double)s->context > most) {
    if (opts->room > 0)
      fail(f->c, ERR_usage, f->loc,
           "a context of %lld tokens was requested, but the model was trained for %.0f at most",
           context, floor(most));
    warn(f->c, f->loc, "a context of %lld tokens exceeds the %.0f that the model was trained for",
         context, floor(most));
  }
  for (u32 i = 0; i < s->layers; i++) {
    i64 window = s->layer[i].window;
    bytes += each * (double)(window && window < s->context ? window : s->context);
  }
  if (opts->room > 0 && bytes > opts->room)
    fail(f->c, ERR_usage, f->loc,
         "the KV cache of a context of %lld tokens takes %.1f GB, and this machine has %.1f GB",
         context, bytes / 1e9, opts->room / 1e9);
}

Graph *lm_decoder(LmFile *f, const ImportOptions *o) {
  Ctx *c = f->c;
  Graph *g = graph_new(c);
  const LmHparams *s = lm_hparams(f, o->language.context);
  Decoder d = {.g = g, .f = f, .s = s, .opts = &o->language};
  check_context(f, s, &o->language);
  g->eager = true;
  g->loc = f->loc;
  d.used = map_new(&c->scratch);
  Val ids = lm_input_ids(g, o, o->language.chunk ? o->language.chunk : LM_CHUNK, s->context);
  d.tokens = val_dim(g, ids, 0);
  d.past = dim_of_sym(g->dims, dim_sym(g->dims, SY_input, str_of(c, "past"), 0, s->context - 1));
  d.before = mk_extent(g, d.past, DT_i64);
  for (u32 i = 0; i < 2; i++)
    if (s->rope[i].n) make_rope_tables(&d, i);
  Val embedding = tensor(&d, lm_tensor_name(f, LP_embed, 0, weight), s->vocab, s->embed);
  Val x = mk_gather(g, embedding, mk_check_index(g, ids, &(Dim){s->vocab}, 1), 0);
  if (s->embed_scale != 0) x = mk_mulk(g, x, s->embed_scale);
  graph_result(g, x, str_of(c, "logits")); /* reserves output 0; the value is set below */
  for (u32 i = 0; i < s->layers; i++) x = decoder_layer(&d, i, x);
  g->region.at[1].ret.at[0] = logits(&d, x, embedding);
  refuse_unused(&d);
  graph_check_state(g, ERR_input);
  return g;
}
