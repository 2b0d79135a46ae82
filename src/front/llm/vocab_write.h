/* vocab_write.h: the tokeniser of a folder as keys of GGUF. */
#ifndef INGOT_VOCAB_WRITE_H
#define INGOT_VOCAB_WRITE_H

#include "front/llm/llm.h"

/* rows: of the embedding; tokens that no file names are filled in. */
void vocab_to_gguf(LmFile *f, u64 rows, GgufOut *o);

#endif
