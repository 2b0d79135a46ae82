/* vocab_write.h: writes the tokenizer of a folder as GGUF keys. */
#ifndef INGOT_VOCAB_WRITE_H
#define INGOT_VOCAB_WRITE_H

#include "front/llm/llm.h"

/* rows: of the embedding. Rows without a token get generated names. */
void vocab_to_gguf(LmFile *f, u64 rows, GgufOut *o);

#endif
