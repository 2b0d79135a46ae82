/* text.h: what the text forms of Graph and Prog share: words, literals, dimensions, constants,
 * symbols. */
#ifndef INGOT_IR_TEXT_H
#define INGOT_IR_TEXT_H

#include "ir/ir.h"

/* A text being read. Failures carry file and line. */
typedef struct Scan {
  Ctx *c;
  Dims *dims;
  const char *at, *end;
  Loc loc; /* file and current line */
  const u8 *side;
  size_t nside;
} Scan;

#define BAD(s, ...) fail((s)->c, ERR_input, (s)->loc, __VA_ARGS__)

/* scan.c: reads. "accept" takes what it names if it is next; "expect" fails if it is not. */
Scan scan_new(Ctx *c, const char *text, size_t n, Str file, const u8 *side, size_t nside);
void scan_skip(Scan *s);         /* blanks and comments */
char scan_peek(Scan *s);         /* next character, 0 at the end */
const char *scan_found(Scan *s); /* what comes next, for messages */
bool scan_accept(Scan *s, char ch);
void scan_expect(Scan *s, char ch);
size_t scan_word(Scan *s); /* length of the word at the cursor: letters, digits, '_' */
bool scan_is_word(Scan *s, const char *w);
bool scan_accept_word(Scan *s, const char *w);
void scan_expect_word(Scan *s, const char *w);
Str scan_quoted(Scan *s);
Str scan_name(Scan *s);      /* identifier or quoted */
size_t scan_number(Scan *s); /* length of the number at the cursor */
i64 scan_integer(Scan *s);
DType scan_dtype(Scan *s);
Dim scan_dim(Scan *s);
u32 scan_dims(Scan *s, Dim *dim); /* "[" dim, ... "]" into MAX_RANK entries; returns the rank */
void scan_element(Scan *s, DType dt, u8 *to); /* one literal as it lies in memory */
/* "{" elements "}" or "@side(offset, bytes)"; the dimensions must be constant. */
Tensor *scan_tensor(Scan *s, DType dt, const Dim *dim, u32 rank);
void scan_symbols(Scan *s); /* any number of declarations */

/* literal.c: writes what scan.c reads. */
void text_name(Text *t, const Ctx *c, Str s);
void text_float(Text *t, DType dt, const u8 *raw);
void text_element(Text *t, const Ctx *c, DType dt, const u8 *raw);
/* Tensors of more than `most` elements go to side, if there is one. */
void text_tensor(Text *t, Text *side, const Ctx *c, const Tensor *x, u64 most);
void dims_use(Dims *ds, Dim d, bool *used); /* marks the symbols of d, by Sym */
void text_symbols(Text *t, const Ctx *c, Dims *ds, const bool *used);

#endif
