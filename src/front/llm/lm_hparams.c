/* lm_hparams.c: hyperparameters of a decoder.
 *
 * In: a model file. Out: its LmHparams, or an error that names the key. Method: every number is
 * read by its GGUF or config.json key. Absent ones follow from others or from the row of the
 * architecture. Keys that ask for unsupported features (groups of experts, latent attention) are
 * refused, not ignored.
 */
#include "front/llm/lm_hparams.h"

#include <math.h>
#include <string.h>

static const LmArch archs[] = {
#define ARCH(gguf, type, ...) {.name = gguf, .model_type = type, __VA_ARGS__},
#define PART(name, gguf, safetensors)
#include "front/llm/archs.def"
#undef ARCH
#undef PART
};

static const char *const part_names[LP_COUNT][2] = {
#define ARCH(name, ...)
#define PART(name, gguf, safetensors) {gguf, safetensors},
#include "front/llm/archs.def"
#undef ARCH
#undef PART
};

/* NULL: not in archs.def. */
static const LmArch *lm_arch(const LmFile *f) {
  for (u32 i = 0; i < sizeof archs / sizeof *archs; i++)
    if (str_is(f->c, f->arch, f->gguf ? archs[i].name : archs[i].model_type)) return &archs[i];
  return NULL;
}

static const char *fill_name(Ctx *c, const char *prefix, const char *name, size_t n, u32 layer,
                             const char *end) {
  StrBuf t = sb_new(&c->scratch);
  sb_puts(&t, prefix);
  for (size_t i = 0; i < n; i++) {
    bool hole = name[i] == '%' && i + 1 < n;
    if (hole)
      sb_fmt(&t, "%u", layer), i++;
    else
      sb_put(&t, name + i, 1);
  }
  sb_puts(&t, end);
  return sb_cstr(&t);
}

/* The output matrix is outside of the model in safetensors, but may be inside of a wrapper. */
static const char *prefix_of(const LmFile *f, LmTensorRole p, const char *name) {
  if (f->gguf) return "";
  if (*name == '%') return f->stack;
  if (p != LP_output) return f->root;
  return !strncmp(f->root, "language_model.", 15) ? "language_model." : "";
}

const char *lm_tensor_name(const LmFile *f, LmTensorRole p, u32 layer, const char *end) {
  const char *names = part_names[p][!f->gguf], *first = NULL;
  const char *prefix = prefix_of(f, p, names);
  for (size_t n;; names += n + 1) {
    n = strcspn(names, "|");
    const char *full = fill_name(f->c, prefix, names, n, layer, end);
    if (!first || f->gguf) first = full; /* of GGUF, the last name is the usual one */
    if (lm_is_stored(f, full)) return full;
    if (!names[n]) return first;
  }
}

const char *lm_gguf_name(Ctx *c, LmTensorRole p, u32 layer, const char *end) {
  const char *names = part_names[p][0], *last = strrchr(names, '|');
  names = last ? last + 1 : names;
  return fill_name(c, "", names, strlen(names), layer, end);
}

bool lm_either_int(LmFile *f, const char *gguf, const char *config, i64 lo, i64 hi, i64 *out) {
  const char *key = f->gguf ? gguf : config;
  return key && lm_int(f, key, lo, hi, out);
}

static void either_bool(LmFile *f, const char *gguf, const char *config, bool *out) {
  lm_bool(f, f->gguf ? gguf : config, out);
}

bool lm_either_float(LmFile *f, const char *gguf, const char *config, double *out) {
  const char *key = f->gguf ? gguf : config;
  return key && lm_float(f, key, out);
}

static i64 need_size(LmFile *f, const char *gguf, const char *config, i64 hi) {
  i64 n;
  const char *key = f->gguf ? gguf : config;
  if (!lm_either_int(f, gguf, config, 1, hi, &n))
    fail(f->c, ERR_input, f->loc, "key '%.*s' is missing", (int)strcspn(key, "|"), key);
  return n;
}

/* GGUF may give one number per layer. Layers that differ are not supported. */
static bool same_for_all(LmFile *f, const char *gguf, const char *config, i64 *out) {
  LmList l;
  const char *key = f->gguf ? gguf : config;
  i64 next;
  if (!lm_list(f, key, &l)) return false;
  if (!lm_next_int(&l, 1, LM_SIZE, out)) return false;
  while (lm_next_int(&l, 1, LM_SIZE, &next))
    if (next != *out)
      fail(f->c, ERR_unsupported, f->loc,
           "'%s' differs from layer to layer, which is not supported", key);
  return true;
}

/* ---- sizes ---- */

/* Keys whose value, if it is not 0, false or null, asks for something else. */
static void refuse_others(LmFile *f, const LmArch *arch) {
  static const char *const keys[] = {".attention.kv_lora_rank", "kv_lora_rank", ".expert_count",
                                     "num_local_experts",       "num_experts",  "n_group",
                                     ".expert_group_count"};
  static const char *const flags[] = {"apply_residual_connection_post_layernorm",
                                      "scale_attn_by_inverse_layer_idx", "_remove_final_layer_norm",
                                      "add_cross_attention"};
  static const char *const needed[] = {"do_layer_norm_before", "scale_attn_weights"};
  i64 n;
  bool on;
  for (u32 i = 0; i < sizeof keys / sizeof *keys; i++) {
    bool group = strstr(keys[i], "group"); /* one group of experts: all of them */
    if (i > 1 && !group && arch->flags & LA_experts) continue;
    if ((*keys[i] == '.') == (f->gguf != NULL) && lm_int(f, keys[i], 0, LM_SIZE, &n) && n > group)
      fail(f->c, ERR_unsupported, f->loc, "'%s' is %lld: such layers are not supported", keys[i],
           (long long)n);
  }
  for (u32 i = 0; !f->gguf && i < sizeof flags / sizeof *flags; i++)
    if (lm_bool(f, flags[i], &on) && on)
      fail(f->c, ERR_unsupported, f->loc, "'%s': true is not supported", flags[i]);
  for (u32 i = 0; !f->gguf && i < sizeof needed / sizeof *needed; i++)
    if (lm_bool(f, needed[i], &on) && !on)
      fail(f->c, ERR_unsupported, f->loc, "'%s': false is not supported", needed[i]);
}

/* Falcon has three generations, which differ in key heads and in where the norms are. */
static void read_falcon(LmFile *f, LmHparams *s) {
  bool newer = false, alibi = false, one = true;
  if (f->gguf || !str_is(f->c, f->arch, "falcon")) return;
  lm_bool(f, "new_decoder_architecture", &newer);
  lm_bool(f, "alibi", &alibi);
  lm_bool(f, "multi_query", &one);
  lm_bool(f, "parallel_attn", &s->parallel);
  if (newer)
    s->parallel = true;
  else
    s->kv_heads = one ? 1 : s->heads;
  if (alibi) {
    s->positions = PO_alibi;
    s->alibi = 1 / sqrt((double)s->head);
  }
}

static void read_sizes(LmFile *f, LmHparams *s) {
  static const char *const ffn = "intermediate_size|ffn_hidden_size|n_inner|ffn_dim|hidden_dim";
  s->embed = need_size(f, ".embedding_length", "hidden_size|n_embd|n_embed|dim", LM_SIZE);
  s->layers = (u32)need_size(f, ".block_count", "num_hidden_layers|n_layer|n_layers", LM_LAYERS);
  static const char *const heads = "num_attention_heads|n_head|n_heads";
  if (!same_for_all(f, ".attention.head_count", heads, &s->heads))
    s->heads = need_size(f, ".attention.head_count", heads, LM_SIZE);
  if (s->arch->flags & LA_own_keys ||
      !same_for_all(f, ".attention.head_count_kv", "num_kv_heads|num_key_value_heads",
                    &s->kv_heads))
    s->kv_heads = s->heads;
  /* older architectures imply the size, and ignore the key */
  const StoredTensor *up =
      s->arch->mlp == ML_plain ? lm_tensor(f, lm_tensor_name(f, LP_up, 0, ".weight")) : NULL;
  if (!f->gguf && up && up->rank == 2 && s->arch->norm == NK_layer)
    s->ffn = up->dim[(s->arch->flags & LA_transposed) != 0];
  else if (!same_for_all(f, ".feed_forward_length", ffn, &s->ffn))
    s->ffn = need_size(f, ".feed_forward_length", ffn, LM_SIZE);
  i64 value;
  if (!lm_either_int(f, ".attention.key_length", "head_dim", 1, LM_SIZE, &s->head)) {
    if (s->embed % s->heads)
      fail(f->c, ERR_input, f->loc, "an embedding of size %lld is not divisible by %lld heads",
           (long long)s->embed, (long long)s->heads);
    s->head = s->embed / s->heads;
  }
  read_falcon(f, s);
  if (s->heads % s->kv_heads)
    fail(f->c, ERR_input, f->loc, "%lld query heads are not a multiple of %lld key heads",
         (long long)s->heads, (long long)s->kv_heads);
  if (lm_either_int(f, ".attention.value_length", NULL, 1, LM_SIZE, &value) && value != s->head)
    fail(f->c, ERR_unsupported, f->loc,
         "keys of size %lld with values of size %lld are not supported", (long long)s->head,
         (long long)value);
  if (!lm_either_int(f, ".context_length", "max_position_embeddings|n_positions|seq_length", 1,
                     DIM_MAX, &s->longest))
    s->longest = 0;
  s->vocab = lm_require_tensor(f, lm_tensor_name(f, LP_embed, 0, ".weight"))->dim[0];
  if (lm_either_int(f, ".vocab_size", "vocab_size", 1, LM_VOCAB, &value) && value != s->vocab)
    fail(f->c, ERR_input, f->loc, "the vocabulary has %lld tokens, but its embedding has %lld rows",
         (long long)value, (long long)s->vocab);
}

static void read_experts(LmFile *f, LmHparams *s) {
  u32 flags = s->arch->flags;
  i64 gating = 0;
  if (!(flags & LA_experts)) return;
  if (!lm_either_int(f, ".expert_count", "num_local_experts|num_experts|n_routed_experts", 0,
                     LM_SIZE, &s->experts) ||
      !s->experts)
    return;
  s->chosen = need_size(f, ".expert_used_count", "num_experts_per_tok|moe_topk", s->experts);
  s->expert_ffn = s->ffn;
  lm_either_int(f, ".expert_feed_forward_length", "moe_intermediate_size", 1, LM_SIZE,
                &s->expert_ffn);
  s->norm_experts = flags & LA_norm_experts;
  either_bool(f, ".expert_weights_norm", "norm_topk_prob", &s->norm_experts);
  s->sigmoid = flags & LA_sigmoid;
  if (lm_either_int(f, ".expert_gating_func", NULL, 0, 8, &gating) && gating) {
    if (gating > 2)
      fail(f->c, ERR_unsupported, f->loc, "'.expert_gating_func' is %lld, expected 1 or 2",
           (long long)gating);
    s->sigmoid = gating == 2;
  }
  s->expert_scale = 1;
  lm_either_float(f, ".expert_weights_scale", "routed_scaling_factor", &s->expert_scale);
}

/* ---- scales, caps, norms ---- */

static const struct {
  const char *name;
  LmAct act;
} acts[] = {{"silu", LG_silu},           {"swish", LG_silu},
            {"gelu", LG_gelu},           {"gelu_new", LG_gelu_tanh},
            {"gelu_fast", LG_gelu_tanh}, {"gelu_pytorch_tanh", LG_gelu_tanh},
            {"relu", LG_relu},           {"relu2", LG_relu2},
            {"xielu", LG_xielu},         {"swiglu", LG_silu}};

static LmAct act_of(LmFile *f, const LmArch *arch) {
  FileSpan t;
  /* gemma ignores hidden_act; hidden_activation counts */
  const char *keys = arch->flags & LA_gemma
                         ? "hidden_activation"
                         : "hidden_act|activation_function|activation|hidden_activation";
  if (f->gguf || !lm_string(f, keys, &t)) return arch->act;
  Str name = str_intern(f->c, t.at, t.n);
  for (u32 i = 0; i < sizeof acts / sizeof *acts; i++)
    if (str_is(f->c, name, acts[i].name)) return acts[i].act;
  fail(f->c, ERR_unsupported, f->loc, "activation '%s' is not supported", show(f->c, name));
}

static double positive(LmFile *f, const char *gguf, const char *config, double otherwise) {
  double x;
  if (!lm_either_float(f, gguf, config, &x)) return otherwise;
  if (!(x >= 0) || !isfinite(x))
    fail(f->c, ERR_input, f->loc, "'%s' is %g, expected a finite number of at least 0",
         f->gguf ? gguf : config, x);
  return x;
}

static void read_scales(LmFile *f, LmHparams *s) {
  u32 flags = s->arch->flags;
  bool capped = flags & LA_softcap;
  s->eps = positive(f, ".attention.layer_norm_rms_epsilon|.attention.layer_norm_epsilon",
                    "rms_norm_eps|layer_norm_eps|layer_norm_epsilon|norm_epsilon|norm_eps",
                    s->embeds && s->arch->norm == NK_layer ? 1e-12
                    : s->arch->norm == NK_rms              ? 1e-6
                                                           : 1e-5);
  s->act = act_of(f, s->arch);
  s->embed_scale = flags & LA_gemma ? (double)sqrtf((float)s->embed) : 0;
  s->embed_scale = positive(f, ".embedding_scale", "embedding_multiplier", s->embed_scale);
  s->residual_scale = positive(f, ".residual_scale", "residual_multiplier", 0);
  if (flags & LA_logit_scale) {
    s->logit_scale = positive(f, ".logit_scale", "logit_scale", 0.0625);
  } else {
    double by = positive(f, ".logit_scale", "logits_scaling", 0);
    s->logit_scale = by != 0 ? 1 / by : 0;
  }
  s->qkv_cap = positive(f, ".attention.clamp_kqv", "clip_qkv", 0);
  s->far_scale =
      positive(f, ".attention.temperature_scale", "rope_parameters.llama_4_scaling_beta", 0);
  s->attn_cap = positive(f, ".attn_logit_softcapping", "attn_logit_softcapping", capped ? 50 : 0);
  s->logit_cap =
      positive(f, ".final_logit_softcapping", "final_logit_softcapping", capped ? 30 : 0);
  i64 size = s->head;
  if (f->gguf && s->arch->wide == s->layers) size = s->embed / s->heads;
  double scalar =
      positive(f, NULL, flags & LA_gemma ? "query_pre_attn_scalar" : NULL, (double)size);
  s->scale = positive(f, ".attention.scale", "attention_multiplier", 0);
  if (s->scale == 0) s->scale = 1 / sqrt(scalar);
  if (!isfinite(s->scale))
    fail(f->c, ERR_input, f->loc, "the scale of attention scores is %g, expected a finite number",
         s->scale);
}

static bool is_tied(LmFile *f, const LmArch *arch) {
  bool tied = arch->flags & LA_tied;
  bool has = lm_tensor(f, lm_tensor_name(f, LP_output, 0, ".weight"));
  if (f->gguf || !lm_bool(f, "tie_word_embeddings", &tied)) return has ? tied && !f->gguf : true;
  return tied;
}

/* ---- layers ---- */

enum { USUAL_WINDOW = 4096 }; /* default window of architectures that have one */

/* Sliding window in positions; 0: full attention everywhere. */
static i64 window_of(LmFile *f, const LmArch *arch) {
  i64 window = arch->period ? USUAL_WINDOW : 0;
  bool wanted = !(arch->flags & LA_opt_in_window);
  lm_either_int(f, ".attention.sliding_window", "sliding_window|local_attention", 0, DIM_MAX,
                &window);
  if (!f->gguf) lm_bool(f, "use_sliding_window", &wanted);
  return f->gguf || wanted ? window : 0;
}

/* Assigns windows by the period of the architecture or of the file. */
static void usual_windows(LmFile *f, const LmHparams *s, LmLayer *layer, i64 window) {
  i64 period = s->arch->period, first = 0, full = s->arch->flags & LA_full_first ? 0 : 1;
  lm_either_int(f, ".attention.sliding_window_pattern",
                "sliding_window_pattern|global_attn_every_n_layers", 0, LM_LAYERS, &period);
  if (s->arch->flags & LA_opt_in_window)
    lm_either_int(f, NULL, "max_window_layers", 0, LM_SIZE, &first);
  for (u32 i = 0; i < s->layers; i++)
    if (i >= first && (period == 0 || (i + full) % period != 0)) layer[i].window = window;
}

static bool is_gguf_list(const LmFile *f, const char *end) {
  Str name = str_fmt(f->c, "%s%s", str_text(f->c, f->arch), end);
  const GgufKey *k = gguf_key(f->c, f->gguf, str_text(f->c, name));
  return k && k->array;
}

static bool is_local(LmFile *f, LmList *l, bool *local) {
  FileSpan kind;
  if (f->gguf) return lm_next_bool(l, local);
  if (!lm_next_string(l, &kind)) return false;
  Str name = str_intern(f->c, kind.at, kind.n);
  *local = str_is(f->c, name, "sliding_attention");
  if (!*local && !str_is(f->c, name, "full_attention"))
    fail(f->c, ERR_unsupported, f->loc, "layers of type '%s' are not supported", show(f->c, name));
  return true;
}

/* Assigns windows by the per-layer list of the file. False: no such list. */
static bool listed_windows(LmFile *f, const LmHparams *s, LmLayer *layer, i64 window) {
  const char *key = f->gguf ? ".attention.sliding_window_pattern" : "layer_types";
  LmList l;
  bool local;
  u32 n = 0;
  if (f->gguf && !is_gguf_list(f, key)) return false;
  if (!lm_list(f, key, &l)) return false;
  for (; n < s->layers && is_local(f, &l, &local); n++) layer[n].window = local ? window : 0;
  if (n < s->layers)
    fail(f->c, ERR_input, f->loc, "'%s' has %u elements, expected one for each of %u layers", key,
         n, s->layers);
  return true;
}

/* no_rope_layers of config.json holds 1 for layers with RoPE. */
static void read_rotated(LmFile *f, const LmHparams *s, LmLayer *layer) {
  i64 bare = s->arch->bare, turned;
  LmList l;
  if (bare) lm_either_int(f, NULL, "no_rope_layer_interval", 1, LM_SIZE, &bare);
  bool any = false;
  for (u32 i = 0; i < s->layers; i++) any |= layer[i].window != 0;
  for (u32 i = 0; i < s->layers; i++) {
    layer[i].rotated = s->positions == PO_rope && (bare == 0 || (i + 1) % bare != 0);
    if (s->arch->flags & LA_bare_full && any) layer[i].rotated &= layer[i].window != 0;
  }
  if (f->gguf || !s->arch->bare || !lm_list(f, "no_rope_layers", &l)) return;
  for (u32 i = 0; i < s->layers && lm_next_int(&l, 0, 1, &turned); i++)
    layer[i].rotated = turned != 0;
}

static void read_layers(LmFile *f, LmHparams *s) {
  LmLayer *layer = NEWS(&f->c->work, LmLayer, s->layers);
  i64 window = window_of(f, s->arch);
  if (s->ahead && window) window = window / 2 + 1; /* files give both sides */
  bool local = s->arch->local_base || s->arch->flags & LA_local_plain;
  if (!listed_windows(f, s, layer, window)) usual_windows(f, s, layer, window);
  read_rotated(f, s, layer);
  s->layer = layer;
  if (s->positions != PO_rope) return;
  s->rope[0] = lm_rope(f, s, false);
  if (local) s->rope[1] = lm_rope(f, s, true);
  for (u32 i = 0; i < s->layers; i++) layer[i].rope = local && layer[i].window;
  s->far_from = s->rope[0].original;
}

const LmArch *lm_require_arch(const LmFile *f) {
  const LmArch *a = lm_arch(f);
  StrBuf t = sb_new(&f->c->work);
  if (a) return a;
  for (u32 i = 0; i < sizeof archs / sizeof *archs; i++) {
    bool again = false;
    for (u32 k = 0; k < i; k++) again |= f->gguf && !strcmp(archs[k].name, archs[i].name);
    if (!again) sb_fmt(&t, t.n ? ", %s" : "%s", f->gguf ? archs[i].name : archs[i].model_type);
  }
  fail(f->c, ERR_unsupported, f->loc, "architecture '%s' is not supported; supported are %s%s",
       show(f->c, f->arch), sb_cstr(&t),
       f->gguf ? ""
               : "; to use ONNX instead, export it: optimum-cli export onnx --model FOLDER OUT");
}

/* The default context of longrope is the original one, which has separate factors. */
static i64 default_context(LmFile *f, const LmHparams *s) {
  i64 n = s->longest && s->longest < LM_CONTEXT ? s->longest : LM_CONTEXT, original;
  FileSpan kind;
  if (!lm_string(f,
                 f->gguf ? ".rope.scaling.type"
                         : "rope_parameters.rope_type|rope_scaling.rope_type|rope_scaling.type",
                 &kind) ||
      kind.n != 8 || memcmp(kind.at, "longrope", 8) ||
      !lm_either_int(f, ".rope.scaling.original_context_length",
                     "original_max_position_embeddings|"
                     "rope_parameters.original_max_position_embeddings|"
                     "rope_scaling.original_max_position_embeddings",
                     1, DIM_MAX, &original))
    return n;
  return original < n ? original : n;
}

bool lm_is_embedder(LmFile *f) {
  const LmArch *a = lm_arch(f);
  i64 pooling = 0;
  if (!a) return false;
  if (f->gguf) lm_int(f, ".pooling_type", 0, UINT32_MAX, &pooling);
  return a->flags & LA_encoder || pooling || lm_has_head(f) ||
         (!f->gguf && lm_sibling_json(f, "modules.json"));
}

enum { EMBED_CONTEXT = 512 }; /* default context of text encoders */

/* Positions that a text encoder has, at most `context` (0: the default). */
static i64 encoder_context(LmFile *f, const LmHparams *s, i64 context) {
  i64 most = s->longest ? s->longest : EMBED_CONTEXT;
  if (!f->gguf && s->positions == PO_learned) most -= s->arch->offset;
  if (most < 1)
    fail(f->c, ERR_input, f->loc, "the model has %lld positions", (long long)s->longest);
  if (context > most)
    fail(f->c, ERR_usage, f->loc,
         "a context of %lld tokens was requested, but the model has %lld positions",
         (long long)context, (long long)most);
  return context ? context : most < EMBED_CONTEXT ? most : EMBED_CONTEXT;
}

/* GGUF has the opposite of the key of config.json. */
static void read_direction(LmFile *f, LmHparams *s) {
  const char *key = f->gguf ? ".attention.causal" : "use_bidirectional_attention";
  bool on;
  if (lm_bool(f, key, &on)) s->ahead = on != (f->gguf != NULL);
  if (s->ahead && !s->embeds)
    fail(f->c, ERR_unsupported, f->loc,
         "'%s': bidirectional attention needs an embedding model, but this file has neither a "
         "pooling nor a classification head",
         key);
}

LmHparams *lm_hparams(LmFile *f, i64 context) {
  LmHparams *s = NEW(&f->c->work, LmHparams);
  s->arch = lm_require_arch(f);
  refuse_others(f, s->arch);
  u32 flags = s->arch->flags;
  s->positions = s->arch->positions;
  s->alibi = 1;
  s->parallel = flags & LA_parallel;
  s->embeds = lm_is_embedder(f);
  s->ahead = flags & LA_encoder;
  read_direction(f, s);
  read_sizes(f, s);
  read_experts(f, s);
  either_bool(f, ".use_parallel_residual", "use_parallel_residual", &s->parallel);
  read_scales(f, s);
  s->tied = is_tied(f, s->arch);
  s->pairs = flags & LA_pairs || (f->gguf && flags & LA_rope_interleaved);
  s->plus_one = !f->gguf && flags & LA_plus_one;
  s->context = s->ahead  ? encoder_context(f, s, context)
               : context ? context
                         : default_context(f, s);
  read_layers(f, s);
  return s;
}
