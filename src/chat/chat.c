/* chat.c: see chat.h. */
#include "chat/chat.h"
#include <string.h>

/* ORDINARY_ROOM: bytes of memory per byte of text, if the normalizer does not lengthen it.
 * MOST_ROOM: limit in bytes, unless vocab_encode_bytes needs more. */
enum { ORDINARY_ROOM = 28, MOST_ROOM = 1 << 29 };

bool chat_has_template(const Vocab *v) {
  u32 n;
  vocab_section(v, VP_chat, &n, 1);
  return n > 0;
}

static JinjaVal token_text(Arena *a, const Vocab *v, u32 id) {
  u32 n = 0;
  const u8 *at = id < v->head->ntoken ? vocab_token(v, id, &n) : NULL;
  return jinja_string(a, (const char *)at, n, false);
}

JinjaVal chat_vars(Arena *a, const ChatMessage *m, u32 n, bool answer) {
  JinjaVal vars = jinja_dict(a), list = jinja_list(a);
  for (u32 i = 0; i < n; i++) {
    JinjaVal message = jinja_dict(a);
    jinja_set(a, message, "role", jinja_string(a, m[i].role, strlen(m[i].role), false));
    jinja_set(a, message, "content", jinja_string(a, m[i].content, m[i].n, true));
    jinja_add(a, list, message);
  }
  jinja_set(a, vars, "messages", list);
  jinja_set(a, vars, "add_generation_prompt", (JinjaVal){.kind = JK_bool, .i = answer});
  return vars;
}

JinjaStr chat_render(Ctx *c, const Vocab *v, JinjaVal vars, i64 now, Loc loc, Arena *a) {
  u32 length;
  const char *text = vocab_section(v, VP_chat, &length, 1);
  if (!length) fail(c, ERR_unsupported, loc, "the model has no chat template");
  jinja_set(a, vars, "bos_token", token_text(a, v, v->head->bos));
  jinja_set(a, vars, "eos_token", token_text(a, v, v->head->eos));
  return jinja_render(c, text, length, vars, now, loc, a);
}

static bool is_blank(char ch) {
  return ch == ' ' || (ch >= 9 && ch <= 13);
}

static const char *text_find(const char *in, size_t n, const char *what, size_t length) {
  for (; n >= length; in++, n--)
    if (!memcmp(in, what, length)) return in;
  return NULL;
}

u32 chat_lost(const ChatMessage *m, u32 n, JinjaStr text) {
  static const char end[] = "</think>";
  const char *at = text.at, *stop = text.at + text.n;
  for (u32 i = 0; i < n; i++) {
    const char *from = m[i].content, *to = from + m[i].n, *think;
    while ((think = text_find(from, (size_t)(to - from), end, sizeof end - 1)))
      from = think + sizeof end - 1;
    while (from < to && is_blank(*from)) from++;
    while (from < to && is_blank(to[-1])) to--;
    const char *found = text_find(at, (size_t)(stop - at), from, (size_t)(to - from));
    if (!found) return i;
    at = found + (to - from);
  }
  return n;
}

JinjaStr chat_text(Ctx *c, const Vocab *v, const ChatMessage *m, u32 n, bool answer, i64 now,
                   Loc loc, Arena *a) {
  return chat_render(c, v, chat_vars(a, m, n, answer), now, loc, a);
}

const u32 *chat_ids(Ctx *c, const Vocab *v, const ChatMessage *m, u32 n, bool answer, i64 now,
                    Loc loc, Arena *a, size_t *count) {
  JinjaStr s = chat_text(c, v, m, n, answer, now, loc, a);
  return text_ids(c, v, s.at, s.n, s.mark, VE_parse_special, a, count);
}

const u32 *text_ids(Ctx *c, const Vocab *v, const void *text, size_t n, const u8 *marked, u32 flags,
                    Arena *a, size_t *count) {
  size_t most = vocab_encode_bytes(v, n), room = ORDINARY_ROOM * n + VOCAB_SLACK, max = n + 64;
  if (room > most) room = most;
  if (most < MOST_ROOM) most = MOST_ROOM;
  Mark before = arena_mark(a);
  u32 *ids = NEWS(a, u32, max);
  for (;;) {
    Mark mark = arena_mark(&c->work);
    i64 got = vocab_encode(v, text, n, marked, flags, ids, max, arena_alloc(&c->work, room), room);
    arena_rewind(&c->work, mark);
    *count = (size_t)got;
    if (got >= 0) return ids;
    if (got == VOCAB_SLOW)
      fail(
          c, ERR_unsupported, LOC_NONE,
          "a regular expression of the tokenizer goes over a text of %zu bytes more than %d times: "
          "split the text, or simplify the expression",
          n, PRETOK_STEPS);
    if (got == VOCAB_FULL) {
      arena_rewind(a, before);
      ids = NEWS(a, u32, max *= 2);
    } else if (room < most)
      room = room < most / 2 ? 2 * room : most;
    else
      fail(c, ERR_unsupported, LOC_NONE,
           "tokenizing %zu bytes takes more than %zu MB: the normalizer makes the text too long; "
           "split it",
           n, room >> 20);
  }
}
