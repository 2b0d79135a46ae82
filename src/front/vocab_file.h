/* vocab_file.h: reads the vocabulary of a language model from any supported file. */
#ifndef INGOT_VOCAB_FILE_H
#define INGOT_VOCAB_FILE_H

#include "base/base.h"

typedef struct VocabBlob VocabBlob; /* tokenizer tables as one block (src/tokenizer/tokenizer.h) */

struct VocabBlob {
  const u8 *at;
  size_t n;
};

/* Reads a GGUF file, a tokenizer.json, a tokenizer.model, or a folder with one of these. The block
 * lives in the arena. */
VocabBlob vocab_file(Ctx *c, const char *path, Arena *a);

#endif
