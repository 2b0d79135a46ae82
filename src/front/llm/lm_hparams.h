/* lm_hparams.h: what a decoder is made of, whatever file it comes from.
 *
 * LmHparams holds the numbers of one model: those that its file gives under the keys of GGUF or of
 * config.json, checked against each other, and what its architecture (a row of archs.def) adds.
 * Nothing behind it asks which architecture it is.
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
  LA_rope_interleaved =
      1 << 0,       /* in GGUF neighbours are turned as a pair; else, and in safetensors, halves */
  LA_bias = 1 << 1, /* queries, keys and values have a bias */
  LA_qk_norm = 1 << 2,   /* queries and keys are normalised, head by head, before they are turned */
  LA_post_norm = 1 << 3, /* what attention and feed-forward layers add is normalised */
  /* embeddings times the root of their size, GELU by tanh, norms of safetensors lack 1 */
  LA_gemma = 1 << 4,
  LA_fused_qkv = 1 << 5,     /* one matrix for q, k and v, one for gate and up */
  LA_tied = 1 << 6,          /* config.json ties output and embedding unless it says otherwise */
  LA_softcap = 1 << 7,       /* attention 50, result 30 unless the file says otherwise */
  LA_opt_in_window = 1 << 8, /* config.json has windows only with use_sliding_window */
};

struct LmArch {
  const char *name, *model_type;
  i64 period, local_base, bare, wide; /* see archs.def */
  u32 flags;
};

/* Tensors of a decoder. */
typedef enum LmTensorRole {
#define ARCH(name, type, period, base, bare, wide, flags)
#define PART(name, gguf, safetensors) LP_##name,
#include "front/llm/archs.def"
#undef ARCH
#undef PART
  LP_COUNT
} LmTensorRole;

typedef enum LmGate { LG_silu, LG_gelu, LG_gelu_tanh } LmGate;

/* A rotation: the first 2 * n elements of a head are turned, pair i by position * freq[i]. */
struct LmRope {
  u32 n;
  const double *freq;
  double gain;             /* of cosines and sines */
  double base;             /* whose powers the frequencies are, where nothing is scaled */
  const char *scaling;     /* how they were, as config.json calls it; NULL: not by a key */
  const char *at;          /* config.json: the object that says it */
  double factor, original; /* of the scaling; original: context that it stretches */
  double fast, slow;       /* yarn: turns over that context between which pairs are mixed */
  double reach;            /* linear, yarn: the context after it was stretched; 0: other ones */
};

struct LmLayer {
  i64 window; /* positions that are seen, the own one included; 0: all */
  u32 rope;   /* of LmHparams.rope */
  bool rotated;
};

struct LmHparams {
  const LmArch *arch;
  i64 embed, heads, kv_heads, head, ffn, vocab;
  u32 layers;
  i64 longest; /* context that it was trained for; 0: its file does not say */
  i64 context; /* positions that there will be room for */
  double eps;
  LmGate gate;
  double embed_scale;         /* 0: none */
  double scale;               /* of scores */
  double attn_cap, logit_cap; /* 0: none */
  bool tied, pairs, plus_one;
  LmRope rope[2]; /* of all layers; of those with a window, where it differs */
  const LmLayer *layer;
};

enum { LM_LAYERS = 1024, LM_VOCAB = 1 << 22 };
#define LM_SIZE (1 << 20) /* of embeddings, heads and feed-forward layers */

/* lm_hparams.c */
const LmArch *lm_arch(const LmFile *f); /* NULL: not one of archs.def */
/* context: positions that will be used, which decides between rotations of some models; 0: as many
 * as the model was trained for, up to LM_CONTEXT. */
LmHparams *lm_hparams(LmFile *f, i64 context);
/* "blk.3.attn_q.weight"; in c->scratch. */
const char *lm_tensor_name(const LmFile *f, LmTensorRole p, u32 layer, const char *end);
const char *lm_gguf_name(Ctx *c, LmTensorRole p, u32 layer,
                         const char *end); /* as a GGUF file has it */
/* One of two keys, for GGUF and for config.json; NULL: it has none. */
bool lm_either_int(LmFile *f, const char *gguf, const char *config, i64 lo, i64 hi, i64 *out);
bool lm_either_float(LmFile *f, const char *gguf, const char *config, double *out);

/* rope.c */
LmRope lm_rope(LmFile *f, const LmHparams *s, bool local);

/* decoder.c */
Graph *lm_decoder(LmFile *f, const ImportOptions *o);

#endif
