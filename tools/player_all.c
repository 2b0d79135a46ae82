/* player_all.c: the program around a language model, as one text (tools/embed.c).
 *
 * Tokenizer, chat templates and sampler are the sources that ingot itself uses. Functions are
 * static, so a C compiler drops those that the program does not use. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.c"
#include "base/ctx.c"
#include "base/diag.c"
#include "base/file.c"
#include "base/map.c"
#include "base/size.c"
#include "base/str.c"
#include "base/temp.c"

#include "tokenizer/vocab_view.c"
#include "tokenizer/pretokenize.c"
#include "tokenizer/tokenizer_norm.c"
#include "tokenizer/tokenizer_model.c"
#include "tokenizer/encode.c"
#include "tokenizer/decode.c"

#include "chat/chat.c"
#include "chat/jinja.c"
#include "chat/jinja_lib.c"
#include "chat/jinja_parse.c"
#include "chat/jinja_value.c"
#include "chat/sample.c"

/* Nothing of this program must be removed when it is killed. */
void guard_enter(const Ctx *c) {
  (void)c;
}
void guard_leave(const Ctx *c) {
  (void)c;
}
void guard_put(const Ctx *c, const char *path, long pid) {
  (void)c, (void)path, (void)pid;
}
void guard_drop(const Ctx *c, const char *path, long pid) {
  (void)c, (void)path, (void)pid;
}

#include "model.h"
#include "edit.h"
#include "output.h"
#include "player.c"
