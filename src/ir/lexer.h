/* lexer.h: lexer of the text forms: words, literals, dimensions, constants, symbols. */
#ifndef INGOT_LEXER_H
#define INGOT_LEXER_H

#include "ir/ir.h"

/* Input text. Failures report file and line. */
typedef struct Lexer {
  Ctx *c;
  Dims *dims;
  const char *at, *end;
  Loc loc; /* file and current line */
  const u8 *weights;
  size_t nweights;
  i64 version; /* version of the text form; 1 for a text without a version line */
} Lexer;

/* Version of the text forms. A renamed keyword increments it and is listed in lexer.c. */
enum { TEXT_VERSION = 2 };

#define BAD(s, ...) fail((s)->c, ERR_input, (s)->loc, __VA_ARGS__)

/* lexer.c: "accept" consumes the token if it is next; "expect" fails if it is not. */
Lexer lex_new(Ctx *c, const char *text, size_t n, Str file, const u8 *weights, size_t nweights);
void lex_skip(Lexer *s);         /* blanks and comments */
char lex_peek(Lexer *s);         /* next character, 0 at the end */
const char *lex_found(Lexer *s); /* the next token, for messages */
bool lex_accept(Lexer *s, char ch);
void lex_expect(Lexer *s, char ch);
size_t lex_word(Lexer *s); /* length of the word at the cursor: letters, digits, '_' */
bool lex_is_word(Lexer *s, const char *w);
bool lex_accept_word(Lexer *s, const char *w);
void lex_expect_word(Lexer *s, const char *w);
/* Read the version line, if there is one, and the first word of the form: "graph" or "prog". */
void lex_header(Lexer *s, const char *form);
Op lex_op(Lexer *s); /* an operator name, current or old; OP_COUNT: not an operator */
Str lex_quoted(Lexer *s);
Str lex_name(Lexer *s);      /* identifier or quoted */
size_t lex_number(Lexer *s); /* length of the number at the cursor */
i64 lex_integer(Lexer *s);
DType lex_dtype(Lexer *s);
Dim lex_dim(Lexer *s);
u32 lex_dims(Lexer *s, Dim *dim); /* "[" dim, ... "]" into MAX_RANK entries; returns the rank */
void lex_element(Lexer *s, DType dt, u8 *to); /* one literal in its memory representation */
/* "{" elements "}" or "@weights(offset, bytes)"; the dimensions must be constant. */
Tensor *lex_tensor(Lexer *s, DType dt, const Dim *dim, u32 rank);
void lex_symbols(Lexer *s); /* any number of declarations */

/* literal.c: writes what lexer.c reads. */
void lit_header(StrBuf *t, const char *form); /* see lex_header */
void lit_name(StrBuf *t, const Ctx *c, Str s);
void lit_float(StrBuf *t, DType dt, const u8 *raw);
void lit_element(StrBuf *t, const Ctx *c, DType dt, const u8 *raw);
/* Tensors of more than `limit` elements go to weights, unless it is NULL. */
void lit_tensor(StrBuf *t, StrBuf *weights, const Ctx *c, const Tensor *x, u64 limit);
void dims_mark_used(Dims *ds, Dim d, bool *used); /* marks the symbols of d, by Sym */
void lit_symbols(StrBuf *t, const Ctx *c, Dims *ds, const bool *used);

#endif
