/* requant.h: language models as GGUF files of other types. */
#ifndef INGOT_LM_REQUANT_H
#define INGOT_LM_REQUANT_H

#include "front/llm/shape.h"

typedef struct LmMixture LmMixture;
typedef struct LmSizes LmSizes;
typedef struct LmMoved LmMoved; /* a tensor on its way to a GGUF file */

/* What a name such as Q4_K_M stands for: see mixtures.def. */
struct LmMixture {
  const char *name;
  u32 number;
  BlockKind kind;
};

/* What decides between types. */
struct LmSizes {
  i64 layers, shared; /* shared: query heads of a key head */
  bool tied;          /* logits are made with the embedding */
};

struct LmMoved {
  const Stored *from;
  Str name;       /* in the new file */
  i64 heads;      /* its rows, halves of so many heads, become neighbours; 0: they stay in order */
  float add;      /* to every element */
  BlockKind kind; /* it shall have */
};
typedef VEC(LmMoved) LmMovedVec;

/* mixture.c */
const LmMixture *lm_mixture(Ctx *c, const char *name); /* fails if there is none */
/* The type of a tensor, its own if it is left alone. name: that of GGUF. */
BlockKind lm_mixed(const LmMixture *m, const char *name, const Stored *t, const LmSizes *z);

/* requant.c: the row of the table of readers. */
RequantPlan *lm_requantise(Ctx *c, const Model *m, const RequantWish *o);

/* to_gguf.c: keys of safetensors' side files as those of GGUF; its tensors under their names there.
 */
LmMovedVec lm_to_gguf(LmFile *f, GgufOut *o, LmSizes *z);

#endif
