/* vocab.h: makes the tables of tokenizer.h. Readers of tokenizer files fill a VocabSpec, and
 * vocab_make turns it into the bytes of a Vocab.
 */
#ifndef INGOT_VOCAB_H
#define INGOT_VOCAB_H

#include "tokenizer/pattern.h"
#include "tokenizer/tokenizer.h"

typedef struct VocabSpec VocabSpec;   /* a tokenizer as described by its file */
typedef struct VocabToken VocabToken; /* a token and its score */
typedef struct AddedToken AddedToken; /* found in text before tokenization */

enum { VOCAB_MAX_TOKENS = 1 << 22, VOCAB_TOKEN_BYTES = 4096 };

struct VocabToken {
  const u8 *at; /* its bytes; with U+2581 for spaces if VD_spaces */
  u32 n;
  u32 flags; /* TF_* */
  double score;
};

struct AddedToken {
  const u8 *at;
  u32 n, id;
  bool normalized; /* found in normalized text; never for special tokens */
};

struct VocabSpec {
  Ctx *c;
  Arena *a;
  Loc loc;
  const Unicode *unicode;
  VocabHeader head; /* model, decode, flags, special ids, word_max */
  VEC(VocabToken) token;
  VEC(AddedToken) added;
  VEC(TokenMerge) merge;
  VEC(TokenizerStep) norm, prep, split;
  VEC(CharSet) set;
  U32Vec unit, scanner, scanner_at;
  U32Vec map_at, map_key, map_start, map_unit; /* character maps, see NK_map */
  u32 canon, compat, lower;                    /* their index + 1; 0: not used */
  bool orders, composes;                       /* needs combining classes; composition pairs */
  const u8 *charsmap;
  u32 ncharsmap;
  U32Vec prefix, suffix, stop;
  const char *chat; /* template; NULL: none */
  u32 nchat;
};

/* vocab_spec.c */
VocabSpec *spec_new(Ctx *c, Arena *a, Loc loc);
const Unicode *spec_unicode(VocabSpec *s);
/* A normalization step. prep: after added tokens. */
void spec_step(VocabSpec *s, bool prep, TokenizerStep t);
u32 spec_chars(VocabSpec *s, const char *text, size_t n, u32 *count); /* its code points */
u32 spec_set(VocabSpec *s, const char *names); /* "Mn Cc": union; "-Cn": difference */
void spec_form(VocabSpec *s, bool compat, bool compose);
void spec_lower(VocabSpec *s);
void spec_replace(VocabSpec *s, bool prep, const char *from, const char *to);
void spec_prepend(VocabSpec *s, bool prep, const char *text, u32 flags);
void spec_split(VocabSpec *s, const char *regex, size_t n, SplitKind kind);
void spec_bytes_alphabet(VocabSpec *s); /* decodes tokens from the byte alphabet of GPT-2 */
/* Adds a merge for every pair that makes a token, highest score first (SentencePiece). */
void spec_merges_of_scores(VocabSpec *s);
void spec_stop_names(VocabSpec *s); /* finds end-of-answer tokens by name */

/* vocab_make.c */
const u8 *vocab_make(VocabSpec *s, size_t *n);

#endif
