/* lm_requant.h: writes language models as GGUF files with other weight types. */
#ifndef INGOT_LM_REQUANT_H
#define INGOT_LM_REQUANT_H

#include "front/llm/lm_hparams.h"

typedef struct LmQuantMix LmQuantMix;
typedef struct LmSizes LmSizes;
typedef struct LmTensorOut LmTensorOut; /* a tensor to be written to a GGUF file */

/* A mixture of types such as Q4_K_M; see quant_mixes.def. */
struct LmQuantMix {
  const char *name;
  u32 number;
  QBlockKind kind;
};

/* Properties of a model that decide on tensor types. */
struct LmSizes {
  i64 layers, shared; /* shared: query heads per key head */
  bool tied;          /* the embedding is also the output matrix */
};

struct LmTensorOut {
  const StoredTensor *from;
  Str name;  /* in the new file */
  i64 heads; /* heads whose row halves are interleaved (see source_row); 0: rows stay in order */
  float add; /* added to every element */
  QBlockKind kind; /* target type */
};
typedef VEC(LmTensorOut) LmTensorOuts;

/* quant_mix.c */
const LmQuantMix *lm_quant_mix(Ctx *c, const char *name); /* fails if unknown */
/* The target type of a tensor, its own if it is not converted. name: its GGUF name. */
QBlockKind lm_quant_mix_type(const LmQuantMix *m, const char *name, const StoredTensor *t,
                             const LmSizes *z);

/* lm_requant.c: callback of the reader table. */
RequantPlan *lm_requantize(Ctx *c, const Model *m, const RequantOptions *o);

/* to_gguf.c: writes config.json etc. as GGUF keys; returns tensors under their GGUF names. */
LmTensorOuts lm_to_gguf(LmFile *f, GgufOut *o, LmSizes *z);

#endif
