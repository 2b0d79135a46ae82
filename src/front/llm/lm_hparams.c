/* lm_hparams.c: hyperparameters of a decoder.
 *
 * In: a model file. Out: its LmHparams, or an error that names the key. Method: every number is
 * read by its GGUF or config.json key. Absent ones follow from others or from the row of the
 * architecture. Keys that ask for unsupported features (experts, other attention) are refused, not
 * ignored.
 */
#include "front/llm/lm_hparams.h"

#include <math.h>
#include <string.h>

static const LmArch archs[] = {
#define ARCH(name, type, period, base, bare, wide, flags)                                          \
  {name, type, period, base, bare, wide, flags},
#define PART(name, gguf, safetensors)
#include "front/llm/archs.def"
#undef ARCH
#undef PART
};

static const char *const part_names[LP_COUNT][2] = {
#define ARCH(name, type, period, base, bare, wide, flags)
#define PART(name, gguf, safetensors) {gguf, safetensors},
#include "front/llm/archs.def"
#undef ARCH
#undef PART
};

const LmArch *lm_arch(const LmFile *f) {
  for (u32 i = 0; i < sizeof archs / sizeof *archs; i++)
    if (str_is(f->c, f->arch, f->gguf ? archs[i].name : archs[i].model_type)) return &archs[i];
  return NULL;
}

static const char *fill_name(Ctx *c, const char *name, u32 layer, const char *end) {
  const char *hole = strstr(name, "%u");
  StrBuf t = sb_new(&c->scratch);
  sb_put(&t, name, hole ? (size_t)(hole - name) : strlen(name));
  if (hole) sb_fmt(&t, "%u%s", layer, hole + 2);
  sb_puts(&t, end);
  return sb_cstr(&t);
}

const char *lm_tensor_name(const LmFile *f, LmTensorRole p, u32 layer, const char *end) {
  return fill_name(f->c, part_names[p][!f->gguf], layer, end);
}

const char *lm_gguf_name(Ctx *c, LmTensorRole p, u32 layer, const char *end) {
  return fill_name(c, part_names[p][0], layer, end);
}

bool lm_either_int(LmFile *f, const char *gguf, const char *config, i64 lo, i64 hi, i64 *out) {
  const char *key = f->gguf ? gguf : config;
  return key && lm_int(f, key, lo, hi, out);
}

bool lm_either_float(LmFile *f, const char *gguf, const char *config, double *out) {
  const char *key = f->gguf ? gguf : config;
  return key && lm_float(f, key, out);
}

static i64 need_size(LmFile *f, const char *gguf, const char *config, i64 hi) {
  i64 n;
  if (!lm_either_int(f, gguf, config, 1, hi, &n))
    fail(f->c, ERR_input, f->loc, "key '%s' is missing", f->gguf ? gguf : config);
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

static void refuse_others(LmFile *f) {
  static const char *const keys[] = {".expert_count", "num_local_experts", "num_experts",
                                     ".attention.kv_lora_rank", "kv_lora_rank"};
  i64 n;
  for (u32 i = 0; i < sizeof keys / sizeof *keys; i++)
    if ((*keys[i] == '.') == (f->gguf != NULL) && lm_int(f, keys[i], 0, LM_SIZE, &n) && n)
      fail(f->c, ERR_unsupported, f->loc, "'%s' is %lld: such layers are not supported", keys[i],
           (long long)n);
}

static void read_sizes(LmFile *f, LmHparams *s) {
  s->embed = need_size(f, ".embedding_length", "hidden_size", LM_SIZE);
  s->layers = (u32)need_size(f, ".block_count", "num_hidden_layers", LM_LAYERS);
  if (!same_for_all(f, ".feed_forward_length", "intermediate_size", &s->ffn))
    s->ffn = need_size(f, ".feed_forward_length", "intermediate_size", LM_SIZE);
  if (!same_for_all(f, ".attention.head_count", "num_attention_heads", &s->heads))
    s->heads = need_size(f, ".attention.head_count", "num_attention_heads", LM_SIZE);
  if (!same_for_all(f, ".attention.head_count_kv", "num_key_value_heads", &s->kv_heads))
    s->kv_heads = s->heads;
  if (s->heads % s->kv_heads)
    fail(f->c, ERR_input, f->loc, "%lld query heads are not a multiple of %lld key heads",
         (long long)s->heads, (long long)s->kv_heads);
  i64 value;
  if (!lm_either_int(f, ".attention.key_length", "head_dim", 1, LM_SIZE, &s->head)) {
    if (s->embed % s->heads)
      fail(f->c, ERR_input, f->loc, "an embedding of size %lld is not divisible by %lld heads",
           (long long)s->embed, (long long)s->heads);
    s->head = s->embed / s->heads;
  }
  if (lm_either_int(f, ".attention.value_length", NULL, 1, LM_SIZE, &value) && value != s->head)
    fail(f->c, ERR_unsupported, f->loc,
         "keys of size %lld with values of size %lld are not supported", (long long)s->head,
         (long long)value);
  if (!lm_either_int(f, ".context_length", "max_position_embeddings", 1, DIM_MAX, &s->longest))
    s->longest = 0;
  s->vocab = lm_require_tensor(f, lm_tensor_name(f, LP_embed, 0, ".weight"))->dim[0];
  if (lm_either_int(f, ".vocab_size", "vocab_size", 1, LM_VOCAB, &value) && value != s->vocab)
    fail(f->c, ERR_input, f->loc, "the vocabulary has %lld tokens, but its embedding has %lld rows",
         (long long)value, (long long)s->vocab);
}

/* ---- scales, caps, norms ---- */

static LmGate gate_of(LmFile *f, const LmArch *arch) {
  FileSpan t;
  bool gemma = arch->flags & LA_gemma;
  /* gemma ignores hidden_act; hidden_activation counts and defaults to the tanh approximation */
  if (f->gguf || !lm_string(f, gemma ? "hidden_activation" : "hidden_act", &t))
    return gemma ? LG_gelu_tanh : LG_silu;
  Str name = str_intern(f->c, t.at, t.n);
  if (str_is(f->c, name, "silu") || str_is(f->c, name, "swish")) return LG_silu;
  if (str_is(f->c, name, "gelu_pytorch_tanh") || str_is(f->c, name, "gelu_new"))
    return LG_gelu_tanh;
  if (str_is(f->c, name, "gelu")) return LG_gelu;
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
  s->eps = positive(f, ".attention.layer_norm_rms_epsilon", "rms_norm_eps", 1e-6);
  s->gate = gate_of(f, s->arch);
  s->embed_scale = flags & LA_gemma ? (double)sqrtf((float)s->embed) : 0;
  s->attn_cap = positive(f, ".attn_logit_softcapping", "attn_logit_softcapping", capped ? 50 : 0);
  s->logit_cap =
      positive(f, ".final_logit_softcapping", "final_logit_softcapping", capped ? 30 : 0);
  i64 size = s->head;
  if (f->gguf && s->arch->wide == s->layers) size = s->embed / s->heads;
  double scalar =
      positive(f, NULL, flags & LA_gemma ? "query_pre_attn_scalar" : NULL, (double)size);
  s->scale = positive(f, ".attention.scale", NULL, 0);
  if (s->scale == 0) s->scale = 1 / sqrt(scalar);
  if (!isfinite(s->scale)) fail(f->c, ERR_input, f->loc, "the scale of scores is %g", s->scale);
}

static bool is_tied(LmFile *f, const LmArch *arch) {
  bool tied = arch->flags & LA_tied;
  if (f->gguf) return !lm_tensor(f, lm_tensor_name(f, LP_output, 0, ".weight"));
  lm_bool(f, "tie_word_embeddings", &tied);
  return tied;
}

/* ---- layers ---- */

enum { USUAL_WINDOW = 4096 }; /* default window of architectures that have one */

/* Sliding window in positions; 0: full attention everywhere. */
static i64 window_of(LmFile *f, const LmArch *arch) {
  i64 window = arch->period ? USUAL_WINDOW : 0;
  bool wanted = !(arch->flags & LA_opt_in_window);
  lm_either_int(f, ".attention.sliding_window", "sliding_window", 0, DIM_MAX, &window);
  if (!f->gguf) lm_bool(f, "use_sliding_window", &wanted);
  return f->gguf || wanted ? window : 0;
}

/* Assigns windows by the period of the architecture or of the file. */
static void usual_windows(LmFile *f, const LmHparams *s, LmLayer *layer, i64 window) {
  i64 period = s->arch->period, first = 0;
  lm_either_int(f, ".attention.sliding_window_pattern", "sliding_window_pattern", 0, LM_LAYERS,
                &period);
  if (s->arch->flags & LA_opt_in_window)
    lm_either_int(f, NULL, "max_window_layers", 0, LM_SIZE, &first);
  for (u32 i = 0; i < s->layers; i++)
    if (i >= first && (period == 0 || (i + 1) % period != 0)) layer[i].window = window;
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
    fail(f->c, ERR_input, f->loc, "'%s' has %u elements for %u layers", key, n, s->layers);
  return true;
}

/* no_rope_layers of config.json holds 1 for layers with RoPE. */
static void read_rotated(LmFile *f, const LmHparams *s, LmLayer *layer) {
  i64 bare = s->arch->bare, turned;
  LmList l;
  if (bare) lm_either_int(f, NULL, "no_rope_layer_interval", 1, LM_SIZE, &bare);
  for (u32 i = 0; i < s->layers; i++) layer[i].rotated = bare == 0 || (i + 1) % bare != 0;
  if (f->gguf || !s->arch->bare || !lm_list(f, "no_rope_layers", &l)) return;
  for (u32 i = 0; i < s->layers && lm_next_int(&l, 0, 1, &turned); i++)
    layer[i].rotated = turned != 0;
}

static void read_layers(LmFile *f, LmHparams *s) {
  LmLayer *layer = NEWS(&f->c->work, LmLayer, s->layers);
  i64 window = window_of(f, s->arch);
  if (!listed_windows(f, s, layer, window)) usual_windows(f, s, layer, window);
  read_rotated(f, s, layer);
  s->rope[0] = lm_rope(f, s, false);
  if (s->arch->local_base) s->rope[1] = lm_rope(f, s, true);
  for (u32 i = 0; i < s->layers; i++) layer[i].rope = s->arch->local_base && layer[i].window;
  s->layer = layer;
}

LmHparams *lm_hparams(LmFile *f, i64 context) {
  LmHparams *s = NEW(&f->c->work, LmHparams);
  s->arch = lm_arch(f);
  if (!s->arch)
    fail(f->c, ERR_unsupported, f->loc, "architecture '%s' is not supported", show(f->c, f->arch));
  refuse_others(f);
  read_sizes(f, s);
  read_scales(f, s);
  s->tied = is_tied(f, s->arch);
  s->pairs = f->gguf && s->arch->flags & LA_rope_interleaved;
  s->plus_one = !f->gguf && s->arch->flags & LA_gemma;
  s->context = context ? context : s->longest && s->longest < LM_CONTEXT ? s->longest : LM_CONTEXT;
  read_layers(f, s);
  return s;
}
