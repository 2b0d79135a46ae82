/* chat.h: chat messages -> token ids, with the chat template of the vocabulary.
 *
 * The content of a message never becomes a special token, whatever the template does with it.
 */
#ifndef INGOT_CHAT_H
#define INGOT_CHAT_H

#include "chat/jinja.h"
#include "tokenizer/tokenizer.h"

typedef struct ChatMessage ChatMessage;

struct ChatMessage {
  const char *role; /* "system", "user", "assistant" */
  const char *content;
  size_t n;
};

bool chat_has_template(const Vocab *v);
/* Variables of a template: the messages, and whether to append the start of an answer. */
JinjaVal chat_vars(Arena *a, const ChatMessage *m, u32 n, bool answer);
/* Renders the template; adds the variables bos_token and eos_token. now: seconds since 1970. */
JinjaStr chat_render(Ctx *c, const Vocab *v, JinjaVal vars, i64 now, Loc loc, Arena *a);
/* The first message whose text the template left out, without reasoning up to </think>; n: none. */
u32 chat_lost(const ChatMessage *m, u32 n, JinjaStr text);
JinjaStr chat_text(Ctx *c, const Vocab *v, const ChatMessage *m, u32 n, bool answer, i64 now,
                   Loc loc, Arena *a);
const u32 *chat_ids(Ctx *c, const Vocab *v, const ChatMessage *m, u32 n, bool answer, i64 now,
                    Loc loc, Arena *a, size_t *count);
/* Token ids of a text, in `a`; see vocab_encode. Takes memory from c->work. */
const u32 *text_ids(Ctx *c, const Vocab *v, const void *text, size_t n, const u8 *marked, u32 flags,
                    Arena *a, size_t *count);

#endif
