/* encoder.c: text encoders of the BERT family as a Graph.
 *
 * In: an LmFile of safetensors. Out: a Graph from token ids i32[tokens], [CLS] and [SEP] included.
 * Its result is the sentence vector if modules.json (sentence-transformers) defines one, else the
 * vectors of all tokens. A run has the length of its sentence, so it needs neither padding nor a
 * mask. Tensor names are those of transformers.
 */
#include "front/compose/compose.h"
#include "front/llm/llm.h"

#include <string.h>

enum { MAX_LAYERS = 1024, MAX_EXTENT = 1 << 22 };

typedef struct Encoder {
  LmFile *f;
  Graph *g;
  const char *prefix; /* prefix of all names: "bert." in models with a head */
  i64 layers, heads, hidden, inner, vocab, longest, types;
  double eps;
  Str act;
} Encoder;

/* ---- sizes ---- */

static i64 need_int(LmFile *f, const char *key, i64 hi) {
  i64 v;
  if (!lm_int(f, key, 1, hi, &v))
    fail(f->c, ERR_input, f->loc, "config.json: '%s' is missing", key);
  return v;
}

static void read_sizes(Encoder *e) {
  LmFile *f = e->f;
  FileSpan s = {(const u8 *)"gelu", 4}, kind;
  e->layers = need_int(f, "num_hidden_layers", MAX_LAYERS);
  e->heads = need_int(f, "num_attention_heads", MAX_EXTENT);
  e->hidden = need_int(f, "hidden_size", MAX_EXTENT);
  e->inner = need_int(f, "intermediate_size", MAX_EXTENT);
  e->vocab = need_int(f, "vocab_size", MAX_EXTENT);
  e->longest = need_int(f, "max_position_embeddings", MAX_EXTENT);
  e->types = need_int(f, "type_vocab_size", MAX_EXTENT);
  e->eps = 1e-12;
  lm_float(f, "layer_norm_eps", &e->eps);
  lm_string(f, "hidden_act", &s);
  e->act = str_intern(f->c, s.at, s.n);
  if (e->hidden % e->heads)
    fail(f->c, ERR_input, f->loc, "config.json: hidden_size %lld is not divisible by %lld heads",
         (long long)e->hidden, (long long)e->heads);
  if (lm_string(f, "position_embedding_type", &kind) &&
      (kind.n != 8 || memcmp(kind.at, "absolute", 8)))
    fail(f->c, ERR_unsupported, f->loc,
         "config.json: position_embedding_type '%s' is not supported",
         show(f->c, str_intern(f->c, kind.at, kind.n)));
  e->prefix = lm_tensor(f, "embeddings.word_embeddings.weight") ? "" : "bert.";
}

/* ---- layers ---- */

/* f32 of this shape (cols 0: a vector); other shapes are refused. */
static Val weight(Encoder *e, const char *name, i64 rows, i64 cols) {
  Ctx *c = e->f->c;
  const char *full = str_text(c, str_fmt(c, "%s%s", e->prefix, name));
  Val v = lm_weight(e->g, e->f, full);
  const Type *t = graph_type(e->g, v);
  if (t->rank != (cols ? 2 : 1) || t->dim[0] != rows || (cols && t->dim[1] != cols))
    fail(c, ERR_input, e->f->loc, "tensor '%s' is %s, expected [%lld%s%s]",
         show(c, str_of(c, full)), type_text(e->g->dims, t), (long long)rows, cols ? "," : "",
         cols ? str_text(c, str_fmt(c, "%lld", (long long)cols)) : "");
  return mk_cast(e->g, v, DT_f32);
}

/* NAME.weight and NAME.bias of layer i. */
static const char *part(Encoder *e, i64 i, const char *name, const char *end) {
  return str_text(e->f->c, str_fmt(e->f->c, "encoder.layer.%lld.%s%s", (long long)i, name, end));
}

static Val linear(Encoder *e, Val x, i64 i, const char *name, i64 in, i64 out) {
  Val w = weight(e, part(e, i, name, ".weight"), out, in);
  Val b = weight(e, part(e, i, name, ".bias"), out, 0);
  return mk_add(e->g, mk_contract(e->g, x, w, "bmk,nk->bmn"), b);
}

static Val norm(Encoder *e, Val x, const char *scale, const char *bias) {
  i64 axis = 2;
  x = compose_normalize(e->g, x, &axis, 1, e->eps, NULL, NULL);
  Val shift = weight(e, bias, e->hidden, 0);
  return compose_affine(e->g, x, weight(e, scale, e->hidden, 0), shift);
}

static Val layer_norm(Encoder *e, Val x, i64 i, const char *name) {
  return norm(e, x, part(e, i, name, ".weight"), part(e, i, name, ".bias"));
}

static Val activate(Encoder *e, Val x) {
  Ctx *c = e->f->c;
  if (str_is(c, e->act, "gelu")) return compose_gelu(e->g, x, false);
  if (str_is(c, e->act, "gelu_new") || str_is(c, e->act, "gelu_pytorch_tanh"))
    return compose_gelu(e->g, x, true);
  if (str_is(c, e->act, "relu")) return compose_relu(e->g, x);
  if (str_is(c, e->act, "silu")) return compose_silu(e->g, x, 1);
  fail(c, ERR_unsupported, e->f->loc, "config.json: hidden_act '%s' is not supported",
       show(c, e->act));
}

static Val attention(Encoder *e, Val x, i64 i) {
  Graph *g = e->g;
  i64 n = e->hidden, last = 3;
  Val q = attn_split_heads(g, linear(e, x, i, "attention.self.query", n, n), e->heads);
  Val k = attn_split_heads(g, linear(e, x, i, "attention.self.key", n, n), e->heads);
  Val v = attn_split_heads(g, linear(e, x, i, "attention.self.value", n, n), e->heads);
  Val p = compose_softmax(g, attn_scores(g, q, k, 0), &last, 1);
  Val y = attn_merge_heads(g, attn_weighted_sum(g, p, v));
  return linear(e, y, i, "attention.output.dense", n, n);
}

static Val encode(Encoder *e, Val ids) {
  Graph *g = e->g;
  Dim length = val_dim(g, ids, 0);
  Val words = weight(e, "embeddings.word_embeddings.weight", e->vocab, e->hidden);
  Val places = weight(e, "embeddings.position_embeddings.weight", e->longest, e->hidden);
  Val types = weight(e, "embeddings.token_type_embeddings.weight", e->types, e->hidden);
  ids = mk_check_index(g, ids, (Dim[]){e->vocab}, 1);
  Val x = mk_gather(g, words, ids, 0);
  x = mk_add(g, x, mk_slice_axis(g, types, 0, 0, 1));
  x = mk_add(g, x, mk_slice_axis(g, places, 0, 0, length));
  x = norm(e, mk_unsqueeze(g, x, 0), "embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias");
  for (i64 i = 0; i < e->layers; i++) {
    g->loc.node = str_fmt(e->f->c, "encoder.layer.%lld", (long long)i);
    x = layer_norm(e, mk_add(g, x, attention(e, x, i)), i, "attention.output.LayerNorm");
    Val y = activate(e, linear(e, x, i, "intermediate.dense", e->hidden, e->inner));
    y = linear(e, y, i, "output.dense", e->inner, e->hidden);
    x = layer_norm(e, mk_add(g, x, y), i, "output.LayerNorm");
  }
  g->loc.node = 0;
  return x;
}

/* ---- pooling ---- */

typedef enum Pooling { PO_none, PO_mean, PO_cls, PO_max } Pooling;
static const struct {
  const char *key;
  Pooling how;
} poolings[] = {
    {"pooling_mode_mean_tokens", PO_mean},         {"pooling_mode_cls_token", PO_cls},
    {"pooling_mode_max_tokens", PO_max},           {"pooling_mode_mean_sqrt_len_tokens", PO_none},
    {"pooling_mode_weightedmean_tokens", PO_none}, {"pooling_mode_lasttoken", PO_none}};

static Pooling read_pooling(LmFile *f, const Json *path) {
  Ctx *c = f->c;
  const JsonDoc *d = lm_named_json(f, str_fmt(c, "%s/config.json", str_text(c, json_str(c, path))));
  Pooling how = PO_none;
  for (u32 i = 0; i < sizeof poolings / sizeof *poolings; i++) {
    if (!json_bool(d, d->root, poolings[i].key, false)) continue;
    if (how != PO_none || poolings[i].how == PO_none)
      fail(c, ERR_unsupported, d->loc,
           "%s, or its combination with another pooling mode, is not supported", poolings[i].key);
    how = poolings[i].how;
  }
  if (how == PO_none) fail(c, ERR_input, d->loc, "no pooling mode is enabled");
  return how;
}

static Val pool(Graph *g, Val x, Pooling how) {
  i64 axis = 1;
  Val y = how == PO_mean  ? mk_mean(g, x, &axis, 1, false)
          : how == PO_max ? mk_reduce(g, OP_reduce_max, x, &axis, 1, false)
                          : mk_squeeze(g, mk_slice_axis(g, x, 1, 0, 1), 1);
  return mk_squeeze(g, y, 0);
}

static Val l2_normalize(Graph *g, Val x) {
  i64 axis = 0;
  Val norm = mk_sqrt(g, mk_reduce(g, OP_reduce_sum, mk_mul(g, x, x), &axis, 1, true));
  return mk_div(g, x, mk_max(g, norm, mk_like(g, norm, 1e-12)));
}

/* Appends the modules that follow the transformer in modules.json. False: there are none. */
static bool apply_modules(Encoder *e, Val *x) {
  LmFile *f = e->f;
  Ctx *c = f->c;
  const JsonDoc *d = lm_sibling_json(f, "modules.json");
  bool pooled = false;
  if (!d) return false;
  if (d->root->kind != JS_array) json_fail(d, d->root, ERR_input, "expected a list of modules");
  for (u32 i = 0; i < d->root->n; i++) {
    const Json *m = &d->root->at[i], *type = json_require(d, m, "type", JS_string);
    const char *name = str_text(c, json_str(c, type)), *dot = strrchr(name, '.');
    name = dot ? dot + 1 : name;
    if (i == 0 && !strcmp(name, "Transformer")) continue;
    if (!strcmp(name, "Pooling") && !pooled)
      *x = pool(e->g, *x, read_pooling(f, json_require(d, m, "path", JS_string)));
    else if (!strcmp(name, "Normalize") && pooled)
      *x = l2_normalize(e->g, *x);
    else
      json_fail(d, type, ERR_unsupported, "module '%s' is not supported here",
                show(c, json_str(c, type)));
    pooled = true;
  }
  return pooled;
}

/* ---- entry point ---- */

bool lm_is_encoder(const LmFile *f) {
  return !f->gguf && str_is(f->c, f->arch, "bert");
}

const char *lm_encoder_list(const LmFile *f) {
  return f->gguf ? "none" : "bert";
}

Graph *lm_encoder(LmFile *f, const ImportOptions *o) {
  Ctx *c = f->c;
  Graph *g = graph_new(c);
  Encoder e = {.f = f, .g = g};
  g->eager = true;
  g->loc = f->loc;
  read_sizes(&e);
  Val x = encode(&e, lm_input_ids(g, o, e.longest, e.longest));
  if (!apply_modules(&e, &x)) x = mk_squeeze(g, x, 0);
  graph_result(g, x, str_of(c, "vector"));
  return g;
}
