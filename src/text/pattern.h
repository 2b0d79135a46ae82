/* pattern.h: regular expressions of tokenisers, made into tables for scan.c. */
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

typedef VEC(u32) WordVec;

/* set.c */
void set_add(Arena *a, CharSet *s, u32 lo, u32 hi);
void set_join(Arena *a, CharSet *s, const CharSet *t);
CharSet set_not(Arena *a, const CharSet *s);
bool set_has(const CharSet *s, u32 ch);
/* By its name: "L", "Lu", "White_Space", "w" (word characters); false: unknown. */
bool set_named(Arena *a, const Unicode *u, CharSet *s, const char *name, size_t n);

/* pattern.c: appends the words of a scanner. ERR_unsupported for what cannot be a table. */
void pattern_compile(Ctx *c, const Unicode *u, const char *text, size_t n, Loc loc, WordVec *to,
                     Arena *a);

#endif
