/* chat_assets.c: facts of a language model for programs that chat.
 *
 * In: an open language model. Out: its tokenizer and chat template, and the size of its KV cache.
 */
#include "api/api_internal.h"
#include "chat/chat.h"

#include <string.h>
#include <time.h>

int ingot_is_language_model(const Ingot *m) {
  return m && m->opened.reader && m->opened.reader->chat_assets && m->opened.model &&
         m->opened.model->is_decoder_lm;
}

const LmAssets *api_chat_assets(Ingot *m) {
  return ingot_is_language_model(m)
             ? m->opened.reader->chat_assets(m->c, &m->opened.source, m->opened.model)
             : NULL;
}

i64 api_chat_day(const Ingot *m) {
  return m->options.day ? m->options.day : CHAT_DEFAULT_DATE;
}

static const char *with_day(const Ingot *m, const char *text) {
  Ctx *c = m->c;
  time_t day = (time_t)api_chat_day(m);
  struct tm tm;
  char date[256];
  if (!text || !strchr(text, 1) || !gmtime_r(&day, &tm)) return text;
  StrBuf t = sb_new(&c->keep);
  for (const char *end; (end = strchr(text, 2)); text = end + 1) {
    const char *begin = strchr(text, 1);
    sb_put(&t, text, (size_t)(begin - text));
    const char *form = str_text(c, str_intern(c, begin + 1, (size_t)(end - begin - 1)));
    sb_put(&t, date, strftime(date, sizeof date, form, &tm));
  }
  sb_puts(&t, text);
  return sb_cstr(&t);
}

ChatFormat api_chat_texts(Ingot *m, const LmAssets *s) {
  ChatFormat t = s->chat;
  t.open = with_day(m, t.open);
  t.open_system = with_day(m, t.open_system);
  t.system = with_day(m, t.system);
  t.ask = with_day(m, t.ask);
  t.next = with_day(m, t.next);
  return t;
}

/* Upper bound of the growing dimension. */
i64 api_context_length(const Ingot *m) {
  Prog *p = m->p;
  Sym sym;
  u64 at;
  for (StmtId id = p->body; id; id = prog_stmt(p, id)->next)
    if (prog_is_state_size(p, id, &sym, &at)) return dim_syminfo(p->dims, sym)->hi + 1;
  return 0;
}

double api_kv_bytes(const Ingot *m) {
  Prog *p = m->p;
  double sum = 0;
  i64 positions = api_context_length(m);
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    u64 bytes;
    Sym sym;
    if (x->space == BS_state && prog_root(p, b) == b && x->rank == 4 &&
        mem_bytes(p, b, &bytes, &sym))
      sum += (double)bytes;
  }
  return positions ? sum / (double)positions : 0;
}
