/* vocab.h: how the tables of tokenizer.h are made. Readers of tokeniser files fill a VocabSpec, and
 * vocab_make turns it into the block of bytes that a Vocab looks at.
 */
#ifndef INGOT_VOCAB_H
#define INGOT_VOCAB_H

#include "text/pattern.h"
#include "text/tokenizer.h"

typedef struct VocabSpec VocabSpec;   /* a tokeniser as its file describes it */
typedef struct VocabToken VocabToken; /* a token with its number */
typedef struct AddedToken AddedToken; /* one that is found in text before anything else */

enum { VOCAB_MAX_TOKENS = 1 << 22, VOCAB_TOKEN_BYTES = 4096 };

struct VocabToken {
  const u8 *at; /* bytes that it stands for; of the kinds with spaces: with U+2581 */
  u32 n;
  u32 flags; /* TF_* */
  double score;
};

struct AddedToken {
  const u8 *at;
  u32 n, id;
  bool normalised; /* looked for in normalised text; special ones never are */
};

struct VocabSpec {
  Ctx *c;
  Arena *a;
  Loc loc;
  const Unicode *unicode;
  VocabHeader head; /* model, decode, flags, ids of special tokens, word_max */
  VEC(VocabToken) token;
  VEC(AddedToken) added;
  VEC(TokenMerge) merge;
  VEC(TokenizerStep) norm, prep, split;
  VEC(CharSet) set;
  U32Vec unit, scanner, scanner_at;
  U32Vec map_at, map_key, map_start, map_unit; /* maps of characters, see NK_map */
  u32 canon, compat, lower;                    /* their numbers + 1; 0: not there */
  bool orders, composes;                       /* needs combining classes, pairs */
  const u8 *charsmap;
  u32 ncharsmap;
  U32Vec prefix, suffix, stop;
  const char *chat; /* template; NULL: none */
  u32 nchat;
};

/* vocab_spec.c */
VocabSpec *spec_new(Ctx *c, Arena *a, Loc loc);
const Unicode *spec_unicode(VocabSpec *s);
void spec_step(VocabSpec *s, bool prep,
               TokenizerStep t); /* of normalising; prep: after added tokens */
u32 spec_chars(VocabSpec *s, const char *text, size_t n, u32 *count); /* its characters */
u32 spec_set(VocabSpec *s, const char *names); /* "Mn Cc": union; "-Cn": without */
void spec_form(VocabSpec *s, bool compat, bool compose);
void spec_lower(VocabSpec *s);
void spec_replace(VocabSpec *s, bool prep, const char *from, const char *to);
void spec_prepend(VocabSpec *s, bool prep, const char *text, u32 flags);
void spec_split(VocabSpec *s, const char *regex, size_t n, SplitKind kind);
void spec_bytes_alphabet(VocabSpec *s); /* tokens, spelt in the alphabet of GPT-2, become bytes */
/* Merges of all pairs that make a token, the highest score first (SentencePiece). */
void spec_merges_of_scores(VocabSpec *s);
void spec_stop_names(VocabSpec *s); /* tokens that end an answer, by their names */

/* vocab_make.c */
const u8 *vocab_make(VocabSpec *s, size_t *n);

#endif
