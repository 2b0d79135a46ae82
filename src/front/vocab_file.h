/* vocab_file.h: the vocabulary of a language model, whatever file it comes from. */
#ifndef INGOT_VOCAB_FILE_H
#define INGOT_VOCAB_FILE_H

#include "base/base.h"

typedef struct VocabBlob
    VocabBlob; /* the tables of a tokeniser, as one block (src/text/tokenizer.h) */

struct VocabBlob {
  const u8 *at;
  size_t n;
};

/* Of a GGUF file, a tokenizer.json, a tokenizer.model, or a folder with one of these. The block
 * lies in the arena. */
VocabBlob vocab_file(Ctx *c, const char *path, Arena *a);

#endif
