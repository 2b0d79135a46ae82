/* pattern.h: compiles regular expressions of tokenizers to tables for pretokenize.c. */
#ifndef INGOT_PATTERN_H
#define INGOT_PATTERN_H

#include "tokenizer/unicode.h"

typedef struct CharSet CharSet; /* characters, as ranges */
typedef struct CharRange CharRange;

struct CharRange {
  u32 lo, hi; /* hi is exclusive */
};
struct CharSet {
  VEC(CharRange) range; /* sorted and disjoint */
};

/* char_set.c */
void charset_add(Arena *a, CharSet *s, u32 lo, u32 hi);
void charset_union(Arena *a, CharSet *s, const CharSet *t);
CharSet charset_complement(Arena *a, const CharSet *s);
/* Adds a named set: "L", "Lu", "White_Space", "w" (word characters). False if unknown. */
bool charset_named(Arena *a, const Unicode *u, CharSet *s, const char *name, size_t n);

/* pattern.c: appends the DFA. Fails with ERR_unsupported if it cannot be a table. */
void pattern_compile(Ctx *c, const Unicode *u, const char *text, size_t n, Loc loc, U32Vec *to,
                     Arena *a);

#endif
