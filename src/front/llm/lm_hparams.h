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
  LA_rope_interleaved =
      1
      << 0, /* RoPE rotates neighbors in GGUF files; else, and in safetensors, it rotates halves */
  LA_bias = 1 << 1,      /* queries, keys and values have a bias */
  LA_qk_norm = 1 << 2,   /* queries and keys are normalized per head before RoPE */
  LA_post_norm = 1 << 3, /* outputs of attention and feed-forward layers are normalized */
  /* embeddings times sqrt(size), tanh GELU, norms of safetensors are stored minus 1 */
  LA_gemma = 1 << 4,
  LA_fused_qkv = 1 << 5,     /* one matrix for q, k and v, one for gate and up */
  LA_tied = 1 << 6,          /* config.json ties output and embedding by default */
  LA_softcap = 1 << 7,       /* default logit caps: 50 for attention, 30 for the output */
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

/* RoPE: rotates the first 2 * n elements of a head, pair i by position * freq[i]. */
struct LmRope {
  u32 n;
  const double *freq;
  double gain;             /* factor of cosines and sines */
  double base;             /* RoPE base before scaling */
  const char *scaling;     /* kind of scaling as config.json calls it; NULL: not by a key */
  const char *at;          /* config.json: path of the object with the scaling */
  double factor, original; /* of the scaling; original: context length before it */
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
  LmGate gate;
  double embed_scale;         /* 0: none */
  double scale;               /* of attention scores */
  double attn_cap, logit_cap; /* 0: none */
  bool tied, pairs, plus_one;
  LmRope rope[2]; /* [1]: of layers with a window, where it differs */
  const LmLayer *layer;
};

enum { LM_LAYERS = 1024, LM_VOCAB = 1 << 22 };
#define LM_SIZE (1 << 20) /* bound for embedding, head and feed-forward sizes */

/* lm_hparams.c */
const LmArch *lm_arch(const LmFile *f); /* NULL: not in archs.def */
/* context: context length in tokens, which selects the RoPE scaling of some models; 0: the trained
 * length, at most LM_CONTEXT. */
LmHparams *lm_hparams(LmFile *f, i64 context);
/* "blk.3.attn_q.weight"; in c->scratch. */
const char *lm_tensor_name(const LmFile *f, LmTensorRole p, u32 layer, const char *end);
const char *lm_gguf_name(Ctx *c, LmTensorRole p, u32 layer, const char *end); /* GGUF name */
/* Read one of two keys, for GGUF or for config.json. NULL: the format has no such key. */
bool lm_either_int(LmFile *f, const char *gguf, const char *config, i64 lo, i64 hi, i64 *out);
bool lm_either_float(LmFile *f, const char *gguf, const char *config, double *out);

/* rope.c */
LmRope lm_rope(LmFile *f, const LmHparams *s, bool local);

/* decoder.c */
Graph *lm_decoder(LmFile *f, const ImportOptions *o);

#endif
