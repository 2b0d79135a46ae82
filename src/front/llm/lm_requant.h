/* lm_requant.h: language models as GGUF files of other types. */
#ifndef INGOT_LM_REQUANT_H
#define INGOT_LM_REQUANT_H

#include "front/llm/lm_hparams.h"

typedef struct LmQuantMix LmQuantMix;
typedef struct LmSizes LmSizes;
typedef struct LmTensorOut LmTensorOut; /* a tensor on its way to a GGUF file */

/* What a name such as Q4_K_M stands for: see quant_mixes.def. */
struct LmQuantMix {
  const char *name;
  u32 number;
  QBlockKind kind;
};

/* What decides between types. */
struct LmSizes {
  i64 layers, shared; /* shared: query heads of a key head */
  bool tied;          /* logits are made with the embedding */
};

struct LmTensorOut {
  const StoredTensor *from;
  Str name;        /* in the new file */
  i64 heads;       /* its rows, halves of so many heads, become neighbours; 0: they stay in order */
  float add;       /* to every element */
  QBlockKind kind; /* it shall have */
};
typedef VEC(LmTensorOut) LmTensorOuts;

/* quant_mix.c */
const LmQuantMix *lm_quant_mix(Ctx *c, const char *name); /* fails if there is none */
/* The type of a tensor, its own if it is left alone. name: that of GGUF. */
QBlockKind lm_quant_mix_type(const LmQuantMix *m, const char *name, const StoredTensor *t,
                             const LmSizes *z);

/* lm_requant.c: the row of the table of readers. */
RequantPlan *lm_requantise(Ctx *c, const Model *m, const RequantOptions *o);

/* to_gguf.c: keys of safetensors' side files as those of GGUF; its tensors under their names there.
 */
LmTensorOuts lm_to_gguf(LmFile *f, GgufOut *o, LmSizes *z);

#endif
