/* vocab_read.h: vocabularies from the files of language models, as a VocabSpec for vocab_make.
 * Whatever a file asks for that cannot be done exactly is refused by name.
 */
#ifndef INGOT_VOCAB_READ_H
#define INGOT_VOCAB_READ_H

#include "front/vocab_file.h"
#include "io/gguf.h"
#include "io/json.h"
#include "text/vocab.h"

/* U+2581, which stands for a space in SentencePiece. */
#define SPM_SPACE "\xe2\x96\x81"

extern const char pattern_gpt2[];
extern const char pattern_digit[];       /* every digit by itself */
extern const char pattern_punctuation[]; /* of ASCII and of Unicode */

/* vocab_json.c: tokenizer.json; config: tokenizer_config.json beside it, or NULL */
VocabSpec *vocab_from_json(const JsonDoc *d, const JsonDoc *config, Arena *a);
/* vocab_steps.c: its normalizer, pre_tokenizer, post_processor and decoder */
void vocab_json_normalizer(VocabSpec *s, const JsonDoc *d, const Json *j);
void vocab_json_pre_tokenizer(VocabSpec *s, const JsonDoc *d, const Json *j);
void vocab_json_post_processor(VocabSpec *s, const JsonDoc *d, const Json *j);
void vocab_json_decoder(VocabSpec *s, const JsonDoc *d, const Json *j);

/* vocab_spm.c: tokenizer.model of SentencePiece */
VocabSpec *vocab_from_spm(Ctx *c, const u8 *at, size_t n, Loc loc, Arena *a);
/* Rules of SentencePiece: checked, and kept. */
void vocab_charsmap(VocabSpec *s, const u8 *at, size_t n);

/* vocab_gguf.c: keys tokenizer.* */
VocabSpec *vocab_from_gguf(Ctx *c, const Gguf *g, Loc loc, Arena *a);
/* What GGUF calls the way in which text is cut, of a vocabulary of bytes; NULL: it has no name. */
const char *vocab_pre_name(const VocabSpec *s, Arena *a);

/* vocab_file.c: as vocab_file (front/vocab_file.h), before the tables are made */
VocabSpec *vocab_spec(Ctx *c, const char *path, Arena *a);

#endif
