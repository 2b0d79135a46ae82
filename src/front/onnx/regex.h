/* regex.h: a regular expression as a table of states. */
#ifndef INGOT_REGEX_H
#define INGOT_REGEX_H

#include "base/base.h"

typedef struct Regex Regex;

/* State 0 is the first. Bytes that no part of the pattern tells apart are of one kind. */
struct Regex {
  u32 states, kinds;
  u8 *kind;     /* [256] */
  u16 *next;    /* [states, kinds] */
  bool *accept; /* [states]: does a text that ends here match as a whole? */
};

/* The syntax of RE2, on UTF-8. Fails with ERR_input where the pattern is wrong, with
 * ERR_unsupported where ingot has no such thing or the table gets too large. */
Regex regex_compile(Ctx *c, Str pattern, Loc loc);

/* For a pattern that is one set of characters, or that and + (*runs): matches one character. Others
 * are refused. */
Regex regex_compile_set(Ctx *c, Str pattern, Loc loc, bool *runs);

#endif
