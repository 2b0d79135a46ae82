/* regex.h: a regular expression as a DFA. */
#ifndef INGOT_REGEX_H
#define INGOT_REGEX_H

#include "base/base.h"

typedef struct Regex Regex;

/* State 0 is the start. Bytes that the pattern does not distinguish have the same kind. */
struct Regex {
  u32 states, kinds;
  u8 *kind;     /* [256] */
  u16 *next;    /* [states, kinds] */
  bool *accept; /* [states]: does a string that ends here match? */
};

/* Compiles RE2 syntax on UTF-8. Fails with ERR_input if the pattern is invalid, with
 * ERR_unsupported if it uses an unsupported feature or its table is too large. */
Regex regex_compile(Ctx *c, Str pattern, Loc loc);

/* Compiles a pattern that is one character set, optionally with + (*runs); the DFA matches one
 * character. Refuses other patterns. */
Regex regex_compile_set(Ctx *c, Str pattern, Loc loc, bool *runs);

#endif
