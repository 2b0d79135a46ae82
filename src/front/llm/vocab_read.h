/* vocab_read.h: readers of vocabulary files, which build a VocabSpec for vocab_make. They refuse,
 * by name, features that cannot be reproduced exactly.
 */
#ifndef INGOT_VOCAB_READ_H
#define INGOT_VOCAB_READ_H

#include "front/vocab_file.h"
#include "io/gguf.h"
#include "io/json.h"
#include "tokenizer/vocab.h"

/* U+2581, the space of SentencePiece. */
#define SPM_SPACE "\xe2\x96\x81"

extern const char pattern_gpt2[];
extern const char pattern_digit[];       /* single digits */
extern const char pattern_punctuation[]; /* ASCII and Unicode punctuation */

/* vocab_json.c: tokenizer.json; config: tokenizer_config.json, or NULL */
VocabSpec *vocab_from_json(const JsonDoc *d, const JsonDoc *config, Arena *a);
/* vocab_steps.c: a part of tokenizer.json that consists of typed steps */
typedef enum TokenizerPart {
  TP_normalizer,
  TP_pre_tokenizer,
  TP_post_processor,
  TP_decoder
} TokenizerPart;
void vocab_json_part(VocabSpec *s, const JsonDoc *d, TokenizerPart part);

/* vocab_spm.c: tokenizer.model of SentencePiece */
VocabSpec *vocab_from_spm(Ctx *c, const u8 *at, size_t n, Loc loc, Arena *a);
/* Checks and stores the normalization table of SentencePiece. */
void vocab_charsmap(VocabSpec *s, const u8 *at, size_t n);

/* vocab_gguf.c: keys tokenizer.* */
VocabSpec *vocab_from_gguf(Ctx *c, const Gguf *g, Loc loc, Arena *a);
/* The GGUF name of the pre-tokenizer of a byte-level vocabulary; NULL: it has none. */
const char *vocab_pre_name(const VocabSpec *s, Arena *a);

/* vocab_file.c: like vocab_file (front/vocab_file.h), before the tables are built */
VocabSpec *vocab_spec(Ctx *c, const char *path, Arena *a);

#endif
