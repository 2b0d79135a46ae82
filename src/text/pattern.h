/* pattern.h: regular expressions of tokenisers, made into tables for pretokenize.c. */
#ifndef INGOT_PATTERN_H
#define INGOT_PATTERN_H

#include "text/unicode.h"

typedef struct CharSet CharSet; /* characters, as ranges */
typedef struct CharRange CharRange;

struct CharRange {
  u32 lo, hi; /* hi is not in it */
};
struct CharSet {
  VEC(CharRange) range; /* ascending, apart from each other */
};

typedef VEC(u32) U32Vec;

/* char_set.c */
void charset_add(Arena *a, CharSet *s, u32 lo, u32 hi);
void charset_union(Arena *a, CharSet *s, const CharSet *t);
CharSet charset_complement(Arena *a, const CharSet *s);
bool charset_has(const CharSet *s, u32 ch);
/* By its name: "L", "Lu", "White_Space", "w" (word characters); false: unknown. */
bool charset_named(Arena *a, const Unicode *u, CharSet *s, const char *name, size_t n);

/* pattern.c: appends the words of a scanner. ERR_unsupported for what cannot be a table. */
void pattern_compile(Ctx *c, const Unicode *u, const char *text, size_t n, Loc loc, U32Vec *to,
                     Arena *a);

#endif
