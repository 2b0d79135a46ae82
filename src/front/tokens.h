/* tokens.h: the vocabulary of a language model, whatever file it comes from. */
#ifndef INGOT_FRONT_TOKENS_H
#define INGOT_FRONT_TOKENS_H

#include "base/base.h"

typedef struct VocabFile VocabFile; /* the tables of a tokeniser, as one block (src/text/text.h) */

struct VocabFile {
  const u8 *at;
  size_t n;
};

/* Of a GGUF file, a tokenizer.json, a tokenizer.model, or a folder with one of these. The block
 * lies in the arena. */
VocabFile vocab_file(Ctx *c, const char *path, Arena *a);

#endif
