/* decoder.c: a decoder language model as a Graph.
 *
 * In: an LmFile with its LmHparams. Out: a Graph from ids [tokens] to logits, with the KV cache as
 * state. Method: one function per part of a layer. Architectures differ only in numbers and flags
 * of LmHparams. Attention uses compose.h over all positions so far. Query heads that share a key
 * head are a group. Positions follow from the length of the cache. Causality and sliding windows
 * are masks computed from positions. Several sequences are rows of one run: each has its own KV
 * cache, positions and attention; everything else is computed for all rows together.
 * Text encoders and embedding models have no cache: a run is a whole text, and its result is pooled
 * (pooling.c).
 *
 * Every token is computed by the same sums in every batch of tokens, so results depend neither on
 * how a text is split into runs, nor on other sequences.
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
  const LmInput *in;
  Val at;             /* positions of the tokens of this run, i64[tokens] */
  Val cos[2], sin[2]; /* by LmRope: [1, tokens, pairs] */
  Val bias;           /* of scores, by distance [heads, tokens, tokens]; 0: none */
  Val slope;          /* ALiBi; 0: none */
  Val far;            /* factor of queries by position [tokens, 1]; 0: none */
  Map used;           /* names of the tensors read -> 1 + LmTensorRole */
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
  return v;
}

/* The name of the tensor of a role. Names overlap between architectures, so that the tensor of
 * another role may be found where one is missing: such a tensor is missing. */
static const char *name_of(Decoder *d, LmTensorRole p, u32 layer, const char *end) {
  const char *name = lm_tensor_name(d->f, p, layer, end);
  u32 *slot = map_put(&d->used, str_of(d->g->c, name));
  if (*slot && *slot != 1 + p)
    fail(d->f->c, ERR_input, d->f->loc, "the model has no tensor for '%s' other than '%s'",
         lm_gguf_name(d->g->c, p, layer, end), name);
  *slot = 1 + p;
  return name;
}

static bool has(Decoder *d, LmTensorRole p, u32 layer, const char *end) {
  const char *name = lm_tensor_name(d->f, p, layer, end);
  const u32 *slot = map_get(&d->used, str_of(d->g->c, name));
  return lm_is_stored(d->f, name) && (!slot || *slot == 1 + p);
}

/* A vector of n elements. */
static Val vector(Decoder *d, LmTensorRole p, u32 layer, const char *end, i64 n) {
  return tensor(d, name_of(d, p, layer, end), n, 0);
}

/* x [tokens, in] times the matrix [out, in], plus the bias if there is one. */
static Val linear(Decoder *d, LmTensorRole p, u32 layer, Val x, i64 out) {
  Graph *g = d->g;
  i64 in = val_dim(g, x, 1);
  const char *name = name_of(d, p, layer, weight);
  if (d->s->arch->flags & LA_transposed && !d->f->gguf && p != LP_output)
    x = mk_contract(g, x, tensor(d, name, in, out), "tk,kn->tn");
  else
    x = mk_contract(g, x, tensor(d, name, out, in), "tk,nk->tn");
  return has(d, p, layer, bias) ? mk_add(g, x, vector(d, p, layer, bias, out)) : x;
}

/* Normalizes over the last axis, without weights. */
static Val normalize(Decoder *d, Val x) {
  i64 last = graph_type(d->g, x)->rank - 1;
  if (d->s->arch->norm == NK_layer)
    return compose_normalize(d->g, x, &last, 1, d->s->eps, NULL, NULL);
  return compose_rms_norm(d->g, x, &last, 1, d->s->eps, NULL);
}

static Val norm(Decoder *d, LmTensorRole p, u32 layer, Val x) {
  Graph *g = d->g;
  if (d->s->arch->flags & LA_bare_norm) return normalize(d, x);
  i64 n = val_dim(g, x, graph_type(g, x)->rank - 1);
  Val w = vector(d, p, layer, weight, n), b = 0;
  if (d->s->plus_one) w = mk_addk(g, w, 1);
  if (has(d, p, layer, bias)) b = vector(d, p, layer, bias, n);
  return compose_affine(g, normalize(d, x), w, b);
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
  Val stretch = mk_div(g, d->at, mk_scalar(g, DT_i64, FINE));
  Val place = mk_sub(g, d->at, mk_mulk(g, stretch, FINE));
  stretch = mk_min(g, stretch, mk_scalar(g, DT_i64, (double)(stretches - 1)));
  Val c1 = mk_gather(g, rope_table(g, r, stretches, FINE, 1, cos), stretch, 0);
  Val s1 = mk_gather(g, rope_table(g, r, stretches, FINE, 1, sin), stretch, 0);
  Val c2 = mk_gather(g, rope_table(g, r, FINE, 1, r->gain, cos), place, 0);
  Val s2 = mk_gather(g, rope_table(g, r, FINE, 1, r->gain, sin), place, 0);
  Val less = mk_mul(g, s1, s2);
  Val c = mk_sub(g, mk_mul(g, c1, c2), less);
  Val more = mk_mul(g, c1, s2);
  Val s = mk_add(g, mk_mul(g, s1, c2), more);
  if (d->s->arch->flags & LA_turn_back) s = mk_neg(g, s);
  d->cos[i] = mk_unsqueeze(g, c, 0);
  d->sin[i] = mk_unsqueeze(g, s, 0);
}

/* ---- attention ---- */

/* [tokens, heads * size] as [1, heads, tokens, size]. */
static Val heads_of(Decoder *d, Val x, i64 heads) {
  return attn_split_heads(d->g, mk_unsqueeze(d->g, x, 0), heads);
}

/* Appends x [1, heads, tokens, n] to the KV cache of a sequence. */
static Val append(Decoder *d, const char *what, u32 layer, u32 slot, Val x) {
  Graph *g = d->g;
  Type of = *graph_type(g, x);
  Dim dim[4] = {1, of.dim[1], d->in->slot[slot].past, of.dim[3]};
  Str out = d->opts->slots ? str_fmt(g->c, "%s.%u.%u", what, layer, slot)
                           : str_fmt(g->c, "%s.%u", what, layer);
  Str in = str_fmt(g->c, "past_%s", str_text(g->c, out));
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
static Val cache_kv_i8(Decoder *d, const char *what, u32 layer, u32 slot, Val x) {
  Graph *g = d->g;
  Val most = mk_reduce(g, OP_reduce_max, mk_abs(g, x), &(i64){3}, 1, true);
  Val some = mk_gt(g, most, mk_like(g, most, 0));
  Val zero = mk_like(g, most, 0);
  Val inverse = mk_select(g, some, mk_div(g, mk_like(g, most, 127), most), zero);
  Val q = mk_cast_sat(g, mk_round(g, mk_mul(g, x, inverse)), DT_i8);
  Val by = mk_div(g, most, mk_like(g, most, 127));
  q = append(d, what, layer, slot, q);
  by = append(d, str_text(g->c, str_fmt(g->c, "%s_scale", what)), layer, slot, by);
  return mk_mul(g, mk_cast(g, q, DT_f32), by);
}

static Val cache_kv(Decoder *d, const char *what, u32 layer, u32 slot, Val x) {
  Graph *g = d->g;
  if (d->opts->kept == DT_i8) return cache_kv_i8(d, what, layer, slot, x);
  return mk_cast(g, append(d, what, layer, slot, mk_cast(g, x, d->opts->kept)), DT_f32);
}

/* Splits the columns of x into parts of these sizes. */
static void split(Decoder *d, Val x, const i64 *size, u32 n, Val *part) {
  i64 at = 0;
  for (u32 i = 0; i < n; at += size[i++]) part[i] = mk_slice_axis(d->g, x, 1, at, size[i]);
}

/* [tokens, key heads, n * head] from column `first` of each key head. */
static Val of_group(Decoder *d, Val x, i64 first, i64 n) {
  const LmHparams *s = d->s;
  x = mk_slice_axis(d->g, x, 2, first * s->head, n * s->head);
  return mk_reshape(d->g, x, (Dim[]){d->in->tokens, s->kv_heads * n * s->head}, 2);
}

/* Queries, keys and values [tokens, heads * size]. */
static void project(Decoder *d, u32 layer, Val x, Val *y) {
  Graph *g = d->g;
  const LmHparams *s = d->s;
  i64 nq = s->heads * s->head, nk = s->kv_heads * s->head, group = s->heads / s->kv_heads;
  const i64 size[3] = {nq, nk, nk};
  if (s->arch->qkv != QK_separate && has(d, LP_qkv, layer, weight)) {
    Val all = linear(d, LP_qkv, layer, x, nq + 2 * nk);
    if (d->f->gguf || s->arch->qkv == QK_fused) {
      split(d, all, size, 3, y);
    } else {
      all = mk_reshape(g, all, (Dim[]){d->in->tokens, s->kv_heads, (group + 2) * s->head}, 3);
      y[0] = of_group(d, all, 0, group);
      y[1] = of_group(d, all, group, 1);
      y[2] = of_group(d, all, group + 1, 1);
    }
  } else {
    if (s->arch->flags & LA_bias)
      for (LmTensorRole p = LP_q; p <= LP_v; p++)
        lm_require_tensor(d->f, lm_tensor_name(d->f, p, layer, bias));
    for (u32 i = 0; i < 3; i++) y[i] = linear(d, LP_q + i, layer, x, size[i]);
  }
  for (u32 i = 0; i < 3 && s->qkv_cap != 0; i++) y[i] = mk_clamp(g, y[i], -s->qkv_cap, s->qkv_cap);
}

/* A norm with one tensor per head. */
static const char *listed_norm(Decoder *d, LmTensorRole p, u32 layer, i64 head) {
  Ctx *c = d->g->c;
  return str_text(c, str_fmt(c, "%s%u.self_attn.%c_layernorm.norms.%lld.weight", d->f->stack, layer,
                             p == LP_q_norm ? 'q' : 'k', (long long)head));
}

static bool has_norm_list(Decoder *d, u32 layer) {
  return !d->f->gguf && lm_tensor(d->f, listed_norm(d, LP_q_norm, layer, 0));
}

/* Weights of the norm of queries or keys: per head in one matrix, or in a tensor for each head. */
static Val head_norm(Decoder *d, LmTensorRole p, u32 layer, Val x) {
  Graph *g = d->g;
  Ctx *c = g->c;
  i64 heads = val_dim(g, x, 1), size = val_dim(g, x, 3);
  const char *name = lm_tensor_name(d->f, p, layer, weight);
  const StoredTensor *t = lm_tensor(d->f, name);
  if (!t && has_norm_list(d, layer)) {
    Val *w = NEWS(&c->scratch, Val, (size_t)heads);
    for (i64 i = 0; i < heads; i++) {
      name = listed_norm(d, p, layer, i);
      w[i] = mk_unsqueeze(g, tensor(d, name, size, 0), 0);
      *map_put(&d->used, str_of(c, name)) = 1 + p;
    }
    Val all = mk_unsqueeze(g, mk_concat(g, w, (u32)heads, 0), 1);
    return mk_mul(g, normalize(d, x), all);
  }
  if (!t || t->rank != 2) return norm(d, p, layer, x);
  Val w = mk_unsqueeze(g, tensor(d, name_of(d, p, layer, weight), heads, size), 1);
  return mk_mul(g, normalize(d, x), w);
}

/* Does the norm of queries and keys span all heads? */
static bool spans_heads(Decoder *d, u32 layer) {
  const StoredTensor *t = lm_tensor(d->f, lm_tensor_name(d->f, LP_q_norm, layer, weight));
  return t && t->rank == 1 && t->dim[0] != d->s->head;
}

static bool has_head_norm(Decoder *d, u32 layer) {
  return d->s->arch->flags & LA_qk_norm || has(d, LP_q_norm, layer, weight) ||
         has_norm_list(d, layer);
}

/* Attention of the tokens of one sequence over its own keys: [tokens of the sequence, heads *
 * size]. y: queries, keys and values [1, heads, tokens, size]. */
static Val attend(Decoder *d, u32 layer, u32 slot, const Val *y) {
  Graph *g = d->g;
  const LmSlot *own = &d->in->slot[slot];
  Val z[3];
  for (u32 i = 0; i < 3; i++)
    z[i] = d->in->nslot > 1 ? mk_slice_axis(g, y[i], 2, own->first, own->tokens) : y[i];
  Val k = d->s->embeds ? z[1] : cache_kv(d, "key", layer, slot, z[1]);
  Val v = d->s->embeds ? z[2] : cache_kv(d, "value", layer, slot, z[2]);
  CausalAttn c = {.scale = d->s->scale,
                  .cap = d->s->attn_cap,
                  .past = own->before,
                  .window = d->s->layer[layer].window,
                  .ahead = d->s->ahead,
                  .bias = d->bias,
                  .slope = d->slope};
  return mk_squeeze(g, attn_merge_heads(g, attn_causal(g, &c, z[0], k, v)), 0);
}

static Val attention(Decoder *d, u32 layer, Val x) {
  Graph *g = d->g;
  const LmHparams *s = d->s;
  const LmLayer *l = &s->layer[layer];
  bool normed = has_head_norm(d, layer), whole = normed && spans_heads(d, layer);
  bool late = s->arch->flags & LA_norm_turned;
  Val y[3];
  project(d, layer, x, y);
  for (u32 i = 0; i < 2 && whole; i++) y[i] = norm(d, LP_q_norm + i, layer, y[i]);
  for (u32 i = 0; i < 3; i++) y[i] = heads_of(d, y[i], i ? s->kv_heads : s->heads);
  for (u32 i = 0; i < 2; i++) {
    if (normed && !whole && !late) y[i] = head_norm(d, LP_q_norm + i, layer, y[i]);
    set_place(d, lm_tensor_name(d->f, LP_attn_out, layer, ""));
    if (l->rotated) y[i] = attn_rope(g, y[i], d->cos[l->rope], d->sin[l->rope], s->pairs);
    if (normed && !whole && late) y[i] = head_norm(d, LP_q_norm + i, layer, y[i]);
  }
  if (d->far) y[0] = mk_mul(g, y[0], d->far);
  Val part[LM_SLOTS];
  for (u32 i = 0; i < d->in->nslot; i++) part[i] = attend(d, layer, i, y);
  Val out = d->in->nslot > 1 ? mk_concat(g, part, d->in->nslot, 0) : part[0];
  if (s->arch->flags & LA_sub_norm) out = norm(d, LP_attn_sub_norm, layer, out);
  return linear(d, LP_attn_out, layer, out, s->embed);
}

/* ---- the rest of a layer ---- */

/* A learned number of an activation; config.json does not have it. */
static Val act_number(Decoder *d, u32 layer, const char *name) {
  Ctx *c = d->g->c;
  const char *full = str_text(c, str_fmt(c, "%s%u.mlp.act_fn.%s", d->f->stack, layer, name));
  const StoredTensor *t = lm_require_tensor(d->f, full);
  *map_put(&d->used, t->name) = LP_COUNT + 1;
  set_place(d, full);
  Val v = mk_cast(d->g, lm_weight(d->g, d->f, full), DT_f32);
  return mk_reshape(d->g, v, NULL, 0);
}

/* xIELU: a quadratic above 0, an exponential below, each plus beta * x. */
static Val xielu(Decoder *d, u32 layer, Val x) {
  Graph *g = d->g;
  if (d->f->gguf)
    fail(g->c, ERR_unsupported, g->loc, "activation 'xielu' is supported for safetensors only");
  Val beta = act_number(d, layer, "beta"), least = act_number(d, layer, "eps");
  Val up = compose_softplus(g, act_number(d, layer, "alpha_p"));
  Val down = compose_softplus(g, act_number(d, layer, "alpha_n"));
  down = mk_add(g, down, beta);
  Val linear_part = mk_mul(g, x, beta), low = mk_min(g, x, least);
  Val above = mk_mul(g, mk_mul(g, x, x), up);
  Val below = mk_mul(g, mk_sub(g, mk_addk(g, mk_exp(g, low), -1), x), down);
  Val positive = mk_gt(g, x, mk_like(g, x, 0));
  return mk_add(g, mk_select(g, positive, above, below), linear_part);
}

static Val activate(Decoder *d, u32 layer, Val x) {
  Graph *g = d->g;
  switch (d->s->act) {
  case LG_silu: return compose_silu(g, x, 1);
  case LG_gelu: return compose_gelu(g, x, false);
  case LG_gelu_tanh: return compose_gelu(g, x, true);
  case LG_relu: return compose_relu(g, x);
  case LG_relu2: x = compose_relu(g, x); return mk_mul(g, x, x);
  case LG_xielu: break;
  }
  return xielu(d, layer, x);
}

/* ---- experts ---- */

/* All experts as one matrix: [experts rows, columns], or with `side` [rows, experts columns]. */
static Val experts(Decoder *d, LmTensorRole p, u32 layer, i64 rows, i64 cols, bool side) {
  Graph *g = d->g;
  Ctx *c = g->c;
  i64 n = d->s->experts;
  const char *name = name_of(d, p, layer, weight), *first = strstr(name, ".experts.0.");
  set_place(d, name);
  if (first) {
    Val *part = NEWS(&c->scratch, Val, (size_t)n);
    for (i64 i = 0; i < n; i++) {
      const char *one = str_text(c, str_fmt(c, "%.*s.experts.%lld.%s", (int)(first - name), name,
                                            (long long)i, first + strlen(".experts.0.")));
      part[i] = tensor(d, one, rows, cols);
      *map_put(&d->used, str_of(c, one)) = 1 + p;
    }
    return mk_concat(g, part, (u32)n, side);
  }
  Val v = mk_cast(g, lm_experts_weight(g, d->f, name, side), DT_f32);
  if (val_dim(g, v, 0) != (side ? rows : n * rows) || val_dim(g, v, 1) != (side ? n * cols : cols))
    fail(c, ERR_input, g->loc, "expected %lld experts of %lldx%lld elements", (long long)n,
         (long long)rows, (long long)cols);
  return v;
}

/* Weights of the experts for each token [tokens, experts]; 0: not chosen. */
static Val route(Decoder *d, u32 layer, Val x) {
  Graph *g = d->g;
  const LmHparams *s = d->s;
  i64 last = 1;
  Val p = linear(d, LP_router, layer, x, s->experts), at, best;
  p = s->sigmoid ? compose_sigmoid(g, p) : compose_softmax(g, p, &last, 1);
  Val score = p;
  if (has(d, LP_router_bias, layer, ""))
    score = mk_add(g, p, vector(d, LP_router_bias, layer, "", s->experts));
  mk_topk(g, score, 1, s->chosen, true, &best, &at);
  Val expert = mk_iota(g, DT_i64, &s->experts, 1, 0);
  Val is = mk_eq(g, mk_unsqueeze(g, at, 2), expert);
  Val one = mk_scalar(g, DT_f32, 1), none = mk_scalar(g, DT_f32, 0);
  p = mk_mul(g, p, mk_reduce(g, OP_reduce_sum, mk_select(g, is, one, none), &last, 1, false));
  if (s->norm_experts) p = mk_div(g, p, mk_reduce(g, OP_reduce_sum, p, &last, 1, true));
  return s->expert_scale == 1 ? p : mk_mulk(g, p, s->expert_scale);
}

static Val shared_expert(Decoder *d, u32 layer, Val x) {
  Graph *g = d->g;
  i64 n = lm_require_tensor(d->f, name_of(d, LP_up_shared, layer, weight))->dim[0];
  Val gate = activate(d, layer, linear(d, LP_gate_shared, layer, x, n));
  Val y = mk_mul(g, gate, linear(d, LP_up_shared, layer, x, n));
  y = linear(d, LP_down_shared, layer, y, d->s->embed);
  if (!has(d, LP_router_shared, layer, weight)) return y;
  Val w = lm_weight(g, d->f, name_of(d, LP_router_shared, layer, weight)); /* GGUF: a vector */
  w = mk_reshape(g, mk_cast(g, w, DT_f32), (Dim[]){1, d->s->embed}, 2);
  return mk_mul(g, y, compose_sigmoid(g, mk_contract(g, x, w, "tk,nk->tn")));
}

/* Computes all experts in three products; weights of 0 leave out those that were not chosen. */
static Val feed_experts(Decoder *d, u32 layer, Val x) {
  Graph *g = d->g;
  const LmHparams *s = d->s;
  i64 n = s->expert_ffn;
  Dim dim[3] = {d->in->tokens, s->experts, n}, flat[2] = {d->in->tokens, s->experts * n};
  Val gate, up, w, by = route(d, layer, x);
  if (has(d, LP_gate_up_exps, layer, weight)) {
    w = experts(d, LP_gate_up_exps, layer, 2 * n, s->embed, false);
    Val both = mk_contract(g, x, w, "tk,nk->tn");
    both = mk_reshape(g, both, (Dim[]){dim[0], s->experts, 2 * n}, 3);
    gate = mk_slice_axis(g, both, 2, 0, n);
    up = mk_slice_axis(g, both, 2, n, n);
  } else {
    w = experts(d, LP_gate_exps, layer, n, s->embed, false);
    gate = mk_reshape(g, mk_contract(g, x, w, "tk,nk->tn"), dim, 3);
    w = experts(d, LP_up_exps, layer, n, s->embed, false);
    up = mk_reshape(g, mk_contract(g, x, w, "tk,nk->tn"), dim, 3);
  }
  Val y = mk_mul(g, activate(d, layer, gate), up);
  y = mk_mul(g, y, mk_unsqueeze(g, by, 2));
  w = experts(d, LP_down_exps, layer, s->embed, n, true);
  y = mk_contract(g, mk_reshape(g, y, flat, 2), w, "tk,nk->tn");
  return has(d, LP_up_shared, layer, weight) ? mk_add(g, y, shared_expert(d, layer, x)) : y;
}

static Val feed_forward(Decoder *d, u32 layer, Val x) {
  Graph *g = d->g;
  const LmHparams *s = d->s;
  const i64 size[2] = {s->ffn, s->ffn};
  Val y[2];
  if (s->experts && has(d, LP_router, layer, weight)) return feed_experts(d, layer, x);
  if (s->arch->mlp == ML_plain)
    return linear(d, LP_down, layer, activate(d, layer, linear(d, LP_up, layer, x, s->ffn)),
                  s->embed);
  if (s->arch->mlp == ML_gate_up) {
    split(d, linear(d, LP_gate_up, layer, x, 2 * s->ffn), size, 2, y);
  } else {
    y[0] = linear(d, LP_gate, layer, x, s->ffn);
    y[1] = linear(d, LP_up, layer, x, s->ffn);
  }
  Val z = mk_mul(g, activate(d, layer, y[0]), y[1]);
  if (s->arch->flags & LA_sub_norm) z = norm(d, LP_ffn_sub_norm, layer, z);
  return linear(d, LP_down, layer, z, s->embed);
}

/* x + y, y scaled. */
static Val add_residual(Decoder *d, Val x, Val y) {
  if (d->s->residual_scale != 0) y = mk_mulk(d->g, y, d->s->residual_scale);
  return mk_add(d->g, x, y);
}

static Val decoder_layer(Decoder *d, u32 layer, Val x) {
  LmPlace place = d->s->arch->place;
  bool before = place == NP_before || place == NP_both;
  /* the norm of the embeddings may serve the first layer */
  bool first = before && !(d->s->embeds && !layer && !has(d, LP_attn_norm, 0, weight));
  Val in = first ? norm(d, LP_attn_norm, layer, x) : x;
  Val y = attention(d, layer, in);
  if (place == NP_post) {
    x = norm(d, LP_post_attn, layer, mk_add(d->g, x, y));
    return norm(d, LP_post_ffn, layer, mk_add(d->g, x, feed_forward(d, layer, x)));
  }
  if (d->s->parallel) {
    LmTensorRole p = has(d, LP_ffn_norm, layer, weight) ? LP_ffn_norm : LP_mlp_norm;
    if (has(d, p, layer, weight)) in = norm(d, p, layer, x);
    x = add_residual(d, x, y);
    return add_residual(d, x, feed_forward(d, layer, in));
  }
  if (place != NP_before) y = norm(d, LP_post_attn, layer, y);
  x = in = add_residual(d, x, y);
  if (before) in = norm(d, place == NP_both ? LP_pre_ffn : LP_ffn_norm, layer, x);
  y = feed_forward(d, layer, in);
  if (place != NP_before) y = norm(d, LP_post_ffn, layer, y);
  return add_residual(d, x, y);
}

/* ---- entry point ---- */

static Val logits(Decoder *d, Val x, Val embedding) {
  Graph *g = d->g;
  const LmHparams *s = d->s;
  if (s->embeds)
    return lm_pool(d->f, g, has(d, LP_out_norm, 0, weight) ? norm(d, LP_out_norm, 0, x) : x);
  if (d->in->rows)
    x = mk_gather(g, x, mk_check_index(g, d->in->rows, &d->in->tokens, 1), 0);
  else if (!d->opts->every)
    x = mk_slice_axis(g, x, 0, dim_sub(g->dims, d->in->tokens, 1), 1); /* last token only */
  x = norm(d, LP_out_norm, 0, x);
  x = s->tied ? mk_contract(g, x, embedding, "tk,nk->tn") : linear(d, LP_output, 0, x, s->vocab);
  if (s->logit_scale != 0) x = mk_mulk(g, x, s->logit_scale);
  return attn_cap(g, x, s->logit_cap);
}

/* The tensor that an auxiliary tensor belongs to: scales etc. are called NAME.weight_WHAT. */
static Str owner_of(Ctx *c, Str name) {
  const char *text = str_text(c, name), *end = strstr(text, ".weight_");
  return end ? str_intern(c, text, (size_t)(end - text) + strlen(weight)) : name;
}

/* Is it derived data, or does it belong to layers that predict further tokens? */
static bool is_extra(Decoder *d, const char *text) {
  static const char *const derived[] = {"rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias",
                                        ".attention.bias", ".attention.masked_bias"};
  i64 more = 0;
  u32 layer = 0;
  for (u32 i = 0; i < sizeof derived / sizeof *derived; i++)
    if (strstr(text, derived[i])) return true;
  lm_either_int(d->f, ".nextn_predict_layers", "num_nextn_predict_layers", 0, LM_LAYERS, &more);
  for (const char *s = text + strlen(d->f->gguf ? "blk." : d->f->stack); *s >= '0' && *s <= '9';
       s++)
    if (layer < LM_LAYERS) layer = layer * 10 + (u32)(*s - '0');
  return layer >= d->s->layers && layer < d->s->layers + more;
}

/* An unread tensor means that the layer differs from what this file builds. */
static void refuse_unused(Decoder *d) {
  const LmFile *f = d->f;
  const char *layer = f->gguf ? "blk." : f->stack;
  for (u32 i = 0; i < f->tensor.n; i++) {
    Str name = f->tensor.at[i].name;
    const char *text = str_text(f->c, name);
    if (strncmp(text, layer, strlen(layer)) != 0 || map_get(&d->used, owner_of(f->c, name)))
      continue;
    if (!is_extra(d, text))
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

/* Slopes of ALiBi: powers of 2^(-8/n) for the largest power of two n of heads; heads beyond it take
 * every second one of 2n. */
static Val alibi_slopes(Decoder *d) {
  const LmHparams *s = d->s;
  i64 n = 1;
  while (2 * n <= s->heads) n *= 2;
  Tensor *t = tensor_new(&d->g->c->work, DT_f32, &s->heads, 1);
  for (i64 i = 0; i < s->heads; i++) {
    double power = i < n ? (double)(i + 1) / (double)n : ((double)(i - n) + 0.5) / (double)n;
    tensor_set(t, (u64)i, (Scalar){.f = s->alibi * pow(2, -8 * power)});
  }
  return mk_const(d->g, t);
}

/* Positions of the tokens of this run. */
static Val positions(Decoder *d) {
  Graph *g = d->g;
  const LmInput *in = d->in;
  Val part[LM_SLOTS];
  for (u32 i = 0; i < in->nslot; i++)
    part[i] = mk_add(g, mk_iota(g, DT_i64, &in->slot[i].tokens, 1, 0), in->slot[i].before);
  return in->nslot > 1 ? mk_concat(g, part, in->nslot, 0) : part[0];
}

/* The bias of scores of T5: distances have 32 buckets, half of them for keys after the query. The 8
 * smallest distances of each half have a bucket each, larger ones share buckets by logarithm. */
static Val relative_bias(Decoder *d) {
  enum { BUCKETS = 32, HALF = BUCKETS / 2, EXACT = HALF / 2, FAR = 128 };
  Graph *g = d->g;
  Tensor *bucket = tensor_new(&g->c->work, DT_i64, (i64[]){2 * FAR + 1}, 1);
  for (i64 i = -FAR; i <= FAR; i++) {
    i64 n = i < 0 ? -i : i, at = n;
    if (n >= EXACT) {
      float large = logf((float)n / EXACT) / (float)log((double)FAR / EXACT) * (HALF - EXACT);
      at = EXACT + (i64)large < HALF - 1 ? EXACT + (i64)large : HALF - 1;
    }
    tensor_set(bucket, (u64)(i + FAR), (Scalar){.i = at + (i > 0 ? HALF : 0)});
  }
  Val w = tensor(d, name_of(d, LP_relative, 0, weight), BUCKETS, d->s->heads);
  Val by = mk_transpose(g, mk_gather(g, w, mk_const(g, bucket), 0), (const i64[]){1, 0});
  Val query = mk_unsqueeze(g, d->at, 1);
  Val far = mk_sub(g, mk_unsqueeze(g, d->at, 0), query);
  Val low = mk_scalar(g, DT_i64, -FAR), high = mk_scalar(g, DT_i64, FAR);
  far = mk_add(g, mk_min(g, mk_max(g, far, low), high), high);
  return mk_gather(g, by, far, 1);
}

static void make_position_values(Decoder *d) {
  Graph *g = d->g;
  const LmHparams *s = d->s;
  for (u32 i = 0; i < 2; i++)
    if (s->rope[i].n) make_rope_tables(d, i);
  if (s->arch->flags & LA_relative) d->bias = relative_bias(d);
  if (s->positions == PO_alibi) d->slope = alibi_slopes(d);
  if (s->far_scale == 0 || !(s->far_from > 0)) return;
  Val from = mk_scalar(g, DT_i64, s->far_from), step = mk_div(g, d->at, from);
  Val by = mk_log(g, mk_addk(g, mk_cast(g, step, DT_f32), 1));
  d->far = mk_unsqueeze(g, mk_addk(g, mk_mulk(g, by, s->far_scale), 1), 1);
}

/* 1 for the tokens of the second of two texts, else 0. A separator ends each text, so that it is
 * the last token. */
static Val second_text(Decoder *d) {
  Graph *g = d->g;
  Dim last = dim_sub(g->dims, d->in->tokens, 1);
  Val ends = mk_eq(g, d->in->ids, mk_slice_axis(g, d->in->ids, 0, last, 1));
  Val n = mk_cum(g, OP_cumsum, mk_cast(g, ends, DT_i32), 0, true, false);
  return mk_min(g, n, mk_like(g, n, 1));
}

static Val embed(Decoder *d, Val embedding) {
  Graph *g = d->g;
  const LmHparams *s = d->s;
  Val x = mk_gather(g, embedding, mk_check_index(g, d->in->ids, &(Dim){s->vocab}, 1), 0);
  if (s->embed_scale != 0) x = mk_mulk(g, x, s->embed_scale);
  if (has(d, LP_types, 0, weight)) {
    const char *name = name_of(d, LP_types, 0, weight);
    i64 rows = lm_require_tensor(d->f, name)->dim[0];
    Val types = tensor(d, name, rows, s->embed);
    x = mk_add(g, x,
               rows > 1 && lm_has_head(d->f) ? mk_gather(g, types, second_text(d), 0)
                                             : mk_slice_axis(g, types, 0, 0, 1));
  }
  if (s->positions == PO_learned) {
    const char *name = name_of(d, LP_positions, 0, weight);
    i64 rows = lm_require_tensor(d->f, name)->dim[0], first = d->f->gguf ? 0 : s->arch->offset;
    if (rows - first < s->context)
      fail(g->c, ERR_usage, d->f->loc, "the model has %lld positions, fewer than a context of %lld",
           (long long)(rows - first), (long long)s->context);
    Val at = d->at;
    if (first) at = mk_addk(g, at, (double)first);
    x = mk_add(g, x, mk_gather(g, tensor(d, name, rows, s->embed), at, 0));
  }
  if (s->arch->flags & LA_embed_norm || has(d, LP_embed_norm, 0, weight))
    x = norm(d, LP_embed_norm, 0, x);
  return x;
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
  d.in = lm_input(g, o, s->context, s->embeds);
  d.at = positions(&d);
  make_position_values(&d);
  Val embedding = tensor(&d, name_of(&d, LP_embed, 0, weight), s->vocab, s->embed);
  Val x = embed(&d, embedding);
  graph_result(g, x,
               str_of(c, !s->embeds ? "logits"
                         : lm_has_head(f)
                             ? "scores"
                             : "vector")); /* reserves output 0; the value is set below */
  for (u32 i = 0; i < s->layers; i++) x = decoder_layer(&d, i, x);
  g->region.at[1].ret.at[0] = logits(&d, x, embedding);
  refuse_unused(&d);
  graph_check_state(g, ERR_input);
  return g;
}
