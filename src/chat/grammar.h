/* grammar.h: restricts answers to a grammar.
 *
 * In: a grammar in GBNF, the notation of llama.cpp: `name ::= alternatives`, literals "...",
 * classes [a-z] and [^...], `.`, groups, * + ? {m,n}, comments #. The answer is a `root`. Out: for
 * every state, the tokens that may come next. The grammar is over the bytes of UTF-8, so tokens may
 * hold parts of characters. Left recursion is refused.
 */
#ifndef INGOT_GRAMMAR_H
#define INGOT_GRAMMAR_H

#include "tokenizer/tokenizer.h"

typedef struct Grammar Grammar;
typedef struct GrammarTokens GrammarTokens; /* the bytes of all tokens, sorted */

/* Bytes that a token adds to a text; at most v->head->longest. Special tokens have none. */
u32 grammar_piece(const Vocab *v, u32 id, u8 *to);
GrammarTokens *grammar_tokens(Ctx *c, const Vocab *v, u32 ntoken);
/* Fails with ERR_input and the line. Memory is in c->keep. */
Grammar *grammar_read(Ctx *c, const GrammarTokens *t, const char *text, size_t n);
u32 grammar_begin(const Grammar *g); /* the first state */
/* One bit per token, valid until the next call. */
const u8 *grammar_mask(Grammar *g, u32 state);
/* May any token follow? */
bool grammar_allows(Grammar *g, u32 state);
u32 grammar_step(Grammar *g, u32 state, u32 id);
/* Is the text complete, and may nothing follow? */
bool grammar_is_final(const Grammar *g, u32 state);

#endif
