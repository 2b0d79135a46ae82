/* to_gguf.c: a folder of safetensors as keys and tensors of a GGUF file.
 *
 * In: an LmFile of safetensors. Out: GGUF keys for config.json and the tokenizer, and tensors under
 * their GGUF names. Numbers come from LmHparams. A model with a property that GGUF has no key for
 * is refused, because readers would compute another model.
 */
#include "front/llm/lm_requant.h"
#include "front/llm/vocab_write.h"

#include <math.h>
#include <string.h>

typedef struct ToGguf {
  LmFile *f;
  const LmHparams *s;
  GgufOut *o;
  const char *arch; /* prefix of keys */
  LmTensorOuts all;
  Map used; /* names of tensors that were written */
} ToGguf;

static _Noreturn void no_key(const ToGguf *g, const char *what) {
  fail(g->f->c, ERR_unsupported, g->f->loc, "GGUF has no key for %s", what);
}

static const char *key(const ToGguf *g, const char *end) {
  return fmt_text(g->f->c, "%s%s", g->arch, end);
}

static void put_size(const ToGguf *g, const char *end, i64 n) {
  gguf_put_int(g->o, key(g, end), GT_u32, n);
}

/* ---- keys ---- */

/* The last component of the folder path. */
static void put_name(const ToGguf *g) {
  const char *path = g->f->path, *end = path ? strrchr(path, '/') : NULL;
  if (!end) return;
  const char *from = end;
  while (from > path && from[-1] != '/') from--;
  if (end > from) gguf_put_string(g->o, "general.name", from, (size_t)(end - from));
}

static void put_sizes(const ToGguf *g) {
  const LmHparams *s = g->s;
  if (s->longest) put_size(g, ".context_length", s->longest);
  put_size(g, ".vocab_size", s->vocab);
  put_size(g, ".embedding_length", s->embed);
  put_size(g, ".block_count", s->layers);
  put_size(g, ".feed_forward_length", s->ffn);
  put_size(g, ".attention.head_count", s->heads);
  put_size(g, ".attention.head_count_kv", s->kv_heads);
  put_size(g, ".attention.key_length", s->head);
  put_size(g, ".attention.value_length", s->head);
  gguf_put_float(g->o, key(g, ".attention.layer_norm_rms_epsilon"), s->eps);
}

/* Refuses what differs from the defaults of the architecture in GGUF readers. */
static void put_scales(const ToGguf *g) {
  const LmHparams *s = g->s;
  i64 size = s->arch->wide == s->layers ? s->embed / s->heads : s->head;
  if (s->act != s->arch->act) no_key(g, "an activation other than that of the architecture");
  if (s->attn_cap != 0) gguf_put_float(g->o, key(g, ".attn_logit_softcapping"), s->attn_cap);
  if (s->logit_cap != 0) gguf_put_float(g->o, key(g, ".final_logit_softcapping"), s->logit_cap);
  if (fabs(s->scale * sqrt((double)size) - 1) > 1e-6)
    gguf_put_float(g->o, key(g, ".attention.scale"), s->scale);
}

static void put_layers(const ToGguf *g) {
  const LmHparams *s = g->s;
  i64 window = 0, period = s->arch->period, bare = s->arch->bare;
  bool usual = true;
  for (u32 i = 0; i < s->layers; i++) {
    if (s->layer[i].rotated != (bare == 0 || (i + 1) % bare != 0))
      no_key(g, "the choice of layers with RoPE");
    if (s->layer[i].window) window = s->layer[i].window;
  }
  for (u32 i = 0; i < s->layers; i++)
    usual &= s->layer[i].window == (period == 0 || (i + 1) % period != 0 ? window : 0);
  if (window) put_size(g, ".attention.sliding_window", window);
  if (usual) return;
  gguf_put_list(g->o, key(g, ".attention.sliding_window_pattern"), GT_bool, s->layers);
  for (u32 i = 0; i < s->layers; i++) gguf_add_int(g->o, GT_bool, s->layer[i].window != 0);
}

/* ---- RoPE ---- */

static void put_floats(ToGguf *g, const char *name, const float *x, i64 n) {
  Ctx *c = g->f->c;
  StoredTensor *t = NEW(&c->work, StoredTensor);
  *t = (StoredTensor){.name = str_of(c, name),
                      .kind = BK_F32,
                      .rank = 1,
                      .dim = {n},
                      .at = (const u8 *)x,
                      .bytes = (u64)n * sizeof *x};
  *vec_push(&c->work, &g->all) = (LmTensorOut){.from = t, .name = t->name};
}

/* Writes a list of config.json as a tensor. */
static void put_factors(ToGguf *g, const char *list, const char *name) {
  const LmRope *r = &g->s->rope[0];
  float *x = NEWS(&g->f->c->work, float, r->n);
  const char *from = fmt_text(g->f->c, "%s.%s", r->at, list);
  LmList l;
  double v;
  if (!lm_list(g->f, from, &l)) fail(g->f->c, ERR_input, g->f->loc, "key '%s' is missing", from);
  if (l.n != r->n)
    fail(g->f->c, ERR_input, g->f->loc, "'%s' has %llu factors, expected one for each of %u pairs",
         from, (unsigned long long)l.n, r->n);
  for (u32 i = 0; lm_next_float(&l, &v); i++) x[i] = (float)v;
  put_floats(g, name, x, r->n);
}

static void put_factor(const ToGguf *g, const char *type, double attention) {
  const LmRope *r = &g->s->rope[0];
  gguf_put_text(g->o, key(g, ".rope.scaling.type"), type);
  if (r->factor != 1) gguf_put_float(g->o, key(g, ".rope.scaling.factor"), r->factor);
  put_size(g, ".rope.scaling.original_context_length", (i64)r->original);
  if (fabs(attention - 1) > 1e-9)
    gguf_put_float(g->o, key(g, ".rope.scaling.attn_factor"), attention);
}

static void scale_none(ToGguf *g) {
  (void)g;
}

static void scale_linear(ToGguf *g) {
  gguf_put_text(g->o, key(g, ".rope.scaling.type"), "linear");
  gguf_put_float(g->o, key(g, ".rope.scaling.factor"), g->s->rope[0].factor);
}

/* Writes the resulting factors as a tensor, as GGUF does for this architecture only. */
static void scale_llama3(ToGguf *g) {
  const LmRope *r = &g->s->rope[0];
  float *by = NEWS(&g->f->c->work, float, r->n);
  if (strcmp(g->arch, "llama")) no_key(g, "the RoPE scaling");
  for (u32 i = 0; i < r->n; i++) by[i] = (float)(pow(r->base, -(double)i / r->n) / r->freq[i]);
  put_floats(g, "rope_freqs.weight", by, r->n);
}

static void scale_yarn(ToGguf *g) {
  const LmRope *r = &g->s->rope[0];
  put_factor(g, "yarn", r->gain / (r->factor > 1 ? 0.1 * log(r->factor) + 1 : 1));
  if (r->fast != 32) gguf_put_float(g->o, key(g, ".rope.scaling.yarn_beta_fast"), r->fast);
  if (r->slow != 1) gguf_put_float(g->o, key(g, ".rope.scaling.yarn_beta_slow"), r->slow);
}

static void scale_longrope(ToGguf *g) {
  put_factor(g, "longrope", g->s->rope[0].gain);
  put_factors(g, "long_factor", "rope_factors_long.weight");
  put_factors(g, "short_factor", "rope_factors_short.weight");
}

static const struct {
  const char *name;
  void (*put)(ToGguf *g);
} scalings[] = {{"none", scale_none},     {"default", scale_none}, {"linear", scale_linear},
                {"llama3", scale_llama3}, {"yarn", scale_yarn},    {"longrope", scale_longrope},
                {"su", scale_longrope}};

static void put_rotation(ToGguf *g) {
  const LmHparams *s = g->s;
  const LmRope *r = &s->rope[0];
  put_size(g, ".rope.dimension_count", 2 * r->n);
  gguf_put_float(g->o, key(g, ".rope.freq_base"), r->base);
  if (s->arch->local_base && s->rope[1].base != (double)s->arch->local_base)
    gguf_put_float(g->o, key(g, ".rope.freq_base_swa"), s->rope[1].base);
  if (!r->scaling) return;
  for (u32 i = 0; i < sizeof scalings / sizeof *scalings; i++)
    if (!strcmp(r->scaling, scalings[i].name)) {
      scalings[i].put(g);
      return;
    }
  no_key(g, "the RoPE scaling");
}

/* ---- tensors ---- */

static bool has_part(const LmHparams *s, LmTensorRole p) {
  bool post = s->arch->place == NP_both;
  if (p == LP_output) return !s->tied;
  if (p == LP_ffn_norm) return !post;
  if (p == LP_post_attn || p == LP_pre_ffn || p == LP_post_ffn) return post;
  return true;
}

/* Checks that GGUF can store rank and shape. */
static void check_shape(const ToGguf *g, const StoredTensor *t) {
  bool fits = t->rank >= 1 && t->rank <= GGUF_RANK;
  for (u32 i = 0; fits && i < t->rank; i++) fits = t->dim[i] > 0;
  if (!fits)
    fail(g->f->c, ERR_input, g->f->loc, "tensor '%s' is empty or does not have 1 to %d axes",
         show(g->f->c, t->name), GGUF_RANK);
}

static void put_part(ToGguf *g, LmTensorRole p, u32 layer) {
  static const char *const ends[] = {".weight", ".bias"};
  Ctx *c = g->f->c;
  const LmHparams *s = g->s;
  if (!has_part(s, p)) return;
  for (u32 i = 0; i < 2; i++) {
    const char *from = lm_tensor_name(g->f, p, layer, ends[i]);
    const StoredTensor *t = lm_tensor(g->f, from);
    if (!t) continue;
    check_shape(g, t);
    LmTensorOut m = {.from = t, .name = str_of(c, lm_gguf_name(c, p, layer, ends[i]))};
    bool turned = s->arch->flags & LA_rope_interleaved && (p == LP_q || p == LP_k);
    i64 heads = p == LP_q ? s->heads : s->kv_heads;
    if (turned && (t->rank < 1 || t->dim[0] != heads * s->head))
      fail(c, ERR_input, g->f->loc, "tensor '%s' does not have the rows of %lld heads of size %lld",
           show(c, t->name), (long long)heads, (long long)s->head);
    if (turned) m.heads = heads;
    if (s->plus_one && strstr(lm_gguf_name(c, p, layer, ""), "norm")) m.add = 1;
    *vec_push(&c->work, &g->all) = m;
    *map_put(&g->used, t->name) = 1;
  }
}

static void put_tensors(ToGguf *g) {
  const LmFile *f = g->f;
  Ctx *c = f->c;
  for (LmTensorRole p = LP_embed; p < LP_attn_norm; p++) put_part(g, p, 0);
  for (u32 i = 0; i < g->s->layers; i++)
    for (LmTensorRole p = LP_attn_norm; p < LP_COUNT; p++) put_part(g, p, i);
  for (u32 i = 0; i < f->tensor.n; i++) {
    Str name = f->tensor.at[i].name;
    if (map_get(&g->used, name) || strstr(str_text(c, name), "rotary_emb.inv_freq")) continue;
    if (g->s->tied && !strcmp(str_text(c, name), lm_tensor_name(f, LP_output, 0, ".weight")))
      continue;
    fail(c, ERR_unsupported, f->loc, "tensor '%s' has no name in GGUF", show(c, name));
  }
}

LmTensorOuts lm_to_gguf(LmFile *f, GgufOut *o, LmSizes *z) {
  ToGguf g = {.f = f, .o = o};
  LmList l;
  if (lm_list(f, "quantization_config", &l))
    fail(f->c, ERR_unsupported, f->loc,
         "config.json: weights that are already quantized (quantization_config) cannot be written "
         "as GGUF");
  g.s = lm_hparams(f, 0);
  if (!(g.s->arch->flags & LA_to_gguf))
    fail(f->c, ERR_unsupported, f->loc, "a folder of architecture '%s' cannot be written as GGUF",
         show(f->c, f->arch));
  g.used = map_new(&f->c->work);
  /* GGUF calls both architectures llama */
  g.arch = strcmp(g.s->arch->name, "mistral") ? g.s->arch->name : "llama";
  if (g.s->arch->flags & LA_rope_interleaved && 2 * g.s->rope[0].n != g.s->head)
    no_key(&g, "RoPE on a part of each head");
  gguf_put_text(g.o, "general.architecture", g.arch);
  gguf_put_text(g.o, "general.type", "model");
  put_name(&g);
  put_sizes(&g);
  put_scales(&g);
  put_layers(&g);
  put_rotation(&g);
  vocab_to_gguf(f, (u64)g.s->vocab, o);
  put_tensors(&g);
  *z = (LmSizes){g.s->layers, g.s->heads / g.s->kv_heads, g.s->tied};
  return g.all;
}
