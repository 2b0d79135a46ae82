/* lm_hparams.h: hyperparameters of a decoder, independent of its file format.
 *
 * LmHparams combines the numbers of the file (GGUF keys or config.json), checked for consistency,
 * with the row of the architecture (archs.def). Code that uses it never asks for the architecture.
 */
#ifndef INGOT_LM_HPARAMS_H
#define INGOT_LM_HPARAMS_H

#include "front/llm/llm.h"

typedef struct LmArch LmArch;
typedef struct LmHparams LmHparams;
typedef struct LmRope LmRope;
typedef struct LmLayer LmLayer;

/* Flags of an architecture. */
enum {
  /* RoPE rotates neighbors in GGUF files; else, and in safetensors, it rotates halves */
  LA_rope_interleaved = 1 << 0,
  LA_pairs = 1 << 1,          /* RoPE rotates neighbors in both formats */
  LA_turn_back = 1 << 2,      /* RoPE rotates by negative angles */
  LA_bias = 1 << 3,           /* queries, keys and values have a bias */
  LA_qk_norm = 1 << 4,        /* queries and keys are normalized, before RoPE */
  LA_norm_turned = 1 << 5,    /* ... after RoPE */
  LA_own_keys = 1 << 6,       /* every query head has its own key head, whatever config.json says */
  LA_gemma = 1 << 7,          /* embeddings times sqrt(size); keys of config.json */
  LA_plus_one = 1 << 8,       /* norms of safetensors are stored minus 1 */
  LA_tied = 1 << 9,           /* config.json ties output and embedding by default */
  LA_softcap = 1 << 10,       /* default logit caps: 50 for attention, 30 for the output */
  LA_opt_in_window = 1 << 11, /* config.json has windows only with use_sliding_window */
  LA_bare_full = 1 << 12,     /* if some layers have a window, the others have no RoPE */
  LA_local_plain = 1 << 13,   /* RoPE of layers with a window is not scaled */
  LA_parallel = 1 << 14,      /* attention and feed-forward layer read the same residual */
  LA_transposed = 1 << 15,    /* matrices of safetensors are [in, out] */
  LA_logit_scale = 1 << 16,   /* logits are multiplied by logit_scale, default 1/16 */
  LA_bare_norm = 1 << 17,     /* norms have no weights */
  LA_embed_norm = 1 << 18,    /* embeddings are normalized */
  LA_sub_norm = 1 << 19,      /* the operands of the last matrix of each block are normalized */
  LA_encoder = 1 << 21,       /* a text encoder: no KV cache, no causal mask */
  LA_full_first = 1 << 22,    /* of `period` layers, the first has full attention, not the last */
  LA_relative = 1 << 23,      /* scores have a learned bias by distance (T5) */
  LA_experts = 1 << 24,       /* layers may have experts */
  LA_sigmoid = 1 << 25,       /* probabilities of experts are sigmoids, not a softmax */
  LA_norm_experts = 1 << 26,  /* weights of chosen experts are normalized by default */
  LA_to_gguf = 1 << 20,       /* `quantize` can write a folder as GGUF */
};

typedef enum LmNormKind { NK_rms, NK_layer } LmNormKind;
/* norms of a block: of its operand, its result, or (post) of its sum with the residual */
typedef enum LmPlace { NP_before, NP_after, NP_both, NP_post } LmPlace;
typedef enum LmMlp { ML_gated, ML_gate_up, ML_plain } LmMlp; /* gate_up: one matrix for both */
/* fused: one matrix for q, k, v; grouped: in safetensors its rows are, for each key head, those of
 * its queries, its key and its value */
typedef enum LmQkv { QK_separate, QK_fused, QK_grouped } LmQkv;
typedef enum LmPositions { PO_rope, PO_learned, PO_alibi } LmPositions;
typedef enum LmAct { LG_silu, LG_gelu, LG_gelu_tanh, LG_relu, LG_relu2, LG_xielu } LmAct;

struct LmArch {
  const char *name, *model_type;
  LmNormKind norm;
  LmPlace place;
  LmMlp mlp;
  LmAct act; /* default activation */
  LmQkv qkv;
  LmPositions positions;
  double part;    /* default share of a head that RoPE rotates; 0: all */
  i64 offset;     /* learned positions: row of the first */
  i64 period;     /* every period-th layer has full attention, others a window; 0: all are alike */
  i64 base;       /* default RoPE base; 0: 10000 */
  i64 local_base; /* RoPE base of layers with a window; 0: that of the other layers */
  i64 bare;       /* every bare-th layer has no RoPE; 0: all layers have it */
  i64 wide; /* models with this many layers scale scores by embedding / heads instead of the head
               size, which GGUF does not say; 0: never */
  u32 flags;
};

/* Tensors of a decoder. */
typedef enum LmTensorRole {
#define ARCH(name, ...)
#define PART(name, gguf, safetensors) LP_##name,
#include "front/llm/archs.def"
#undef ARCH
#undef PART
  LP_COUNT
} LmTensorRole;

/* RoPE: rotates the first 2 * n elements of a head, pair i by position * freq[i]. */
struct LmRope {
  u32 n;
  const double *freq;
  double gain;             /* factor of cosines and sines */
  double base;             /* RoPE base before scaling */
  const char *scaling;     /* kind of scaling as config.json calls it; NULL: not by a key */
  const char *at;          /* config.json: path of the object with the scaling */
  double factor, original; /* factor of the scaling; context length before it */
  double fast, slow;       /* yarn: interpolates pairs between these numbers of turns */
  double reach;            /* linear, yarn: context length after scaling; 0: other kinds */
};

struct LmLayer {
  i64 window; /* visible positions, the own one included; 0: all */
  u32 rope;   /* index into LmHparams.rope */
  bool rotated;
};

struct LmHparams {
  const LmArch *arch;
  i64 embed, heads, kv_heads, head, ffn, vocab;
  u32 layers;
  i64 longest; /* trained context length; 0: unknown */
  i64 context; /* context length in tokens */
  double eps;
  LmAct act;
  LmPositions positions;
  double embed_scale, residual_scale, logit_scale; /* 0: none */
  double scale;                                    /* scale of attention scores */
  double alibi;                                    /* factor of ALiBi slopes */
  double attn_cap, logit_cap, qkv_cap;             /* 0: none */
  double far_scale, far_from;      /* queries at position p are scaled by 1 + far_scale *
                                      log(1 + floor(p / far_from)); 0: not */
  i64 experts, chosen, expert_ffn; /* experts: 0: none */
  double expert_scale;             /* factor of their weights */
  bool norm_experts, sigmoid;
  bool tied, pairs, plus_one, parallel;
  bool embeds;    /* one run computes a vector of a text: no KV cache */
  bool ahead;     /* keys after the query are visible */
  LmRope rope[2]; /* [1]: of layers with a window, where it differs */
  const LmLayer *layer;
};

enum { LM_LAYERS = 1024, LM_VOCAB = 1 << 22 };
#define LM_SIZE (1 << 20) /* bound for embedding, head and feed-forward sizes */

/* lm_hparams.c */
/* Fails with a list of the supported architectures. */
const LmArch *lm_require_arch(const LmFile *f);
/* context: context length in tokens, which selects the RoPE scaling of some models; 0: the trained
 * length, at most LM_CONTEXT. */
LmHparams *lm_hparams(LmFile *f, i64 context);
/* "blk.3.attn_q.weight"; in c->scratch. */
/* If the table gives several names, that of a tensor in the file, else the first. */
const char *lm_tensor_name(const LmFile *f, LmTensorRole p, u32 layer, const char *end);
const char *lm_gguf_name(Ctx *c, LmTensorRole p, u32 layer, const char *end); /* GGUF name */
/* Read one of two keys, for GGUF or for config.json. NULL: the format has no such key. "|"
 * separates names of one key. */
bool lm_either_int(LmFile *f, const char *gguf, const char *config, i64 lo, i64 hi, i64 *out);
bool lm_either_float(LmFile *f, const char *gguf, const char *config, double *out);

/* Does the file compute vectors of texts instead of logits? */
bool lm_is_embedder(LmFile *f);

/* rope.c */
LmRope lm_rope(LmFile *f, const LmHparams *s, bool local);

/* pooling.c: x [tokens, size], to the vector of a text or the scores of its classes. */
Val lm_pool(LmFile *f, Graph *g, Val x);
bool lm_has_head(LmFile *f); /* is the result scores of a classification head? */

/* decoder.c */
Graph *lm_decoder(LmFile *f, const ImportOptions *o);

#endif
