/* prompt_cache.c: bakes a system prompt into a language model.
 *
 * In: a language model with its program, and a system prompt. Out: the program with the KV cache of
 * the prompt as initial state. Method: run the program on the tokens, with engine c or, without a C
 * compiler, with vm, which gives the same bits. Tokens at the end that depend on what follows are
 * omitted: the cached ids start every conversation with this prompt.
 */
#include "api/api_internal.h"
#include "chat/chat.h"

#include <string.h>
#include <time.h>

static void bake_prompt(Ingot *m, const char *path) {
  Ctx *c = m->c;
  api_need(c, path, "the path of the prompt");
  if (m->g || m->p)
    fail(c, ERR_usage, LOC_NONE, "expected the prompt before the model is imported");
  File f = file_read(c, path);
  size_t mark = utf8_bom(f.at, f.n), n = f.n - mark;
  f.at += mark;
  while (n && (f.at[n - 1] == '\n' || f.at[n - 1] == '\r')) n--;
  if (!n) fail(c, ERR_input, LOC_NONE, "%s: the prompt is empty", path);
  if (memchr(f.at, 0, n))
    fail(c, ERR_input, LOC_NONE, "%s: expected a prompt without NUL bytes", path);
  m->options.prompt = str_text(c, str_intern(c, (const char *)f.at, n));
}

IngotStatus ingot_bake_prompt(Ingot *m, const char *path) {
  API_CALL(m, bake_prompt(m, path));
}

/* Seconds since 1970 of midnight in the Gregorian calendar. */
static i64 seconds_of(i64 year, i64 month, i64 day) {
  i64 y = month > 2 ? year : year - 1, era = y / 400, of_era = y - era * 400;
  i64 of_year =
      (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1; /* year starts in March */
  return (era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468) * 86400;
}

/* Reads n digits; -1: not digits. */
static i64 read_digits(const char *at, u32 n) {
  i64 x = 0;
  for (u32 i = 0; i < n; i++) {
    if (at[i] < '0' || at[i] > '9') return -1;
    x = 10 * x + (at[i] - '0');
  }
  return x;
}

static void set_day(Ingot *m, const char *day) {
  Ctx *c = m->c;
  struct tm tm = {0};
  api_need(c, day, "the day");
  if (m->g || m->p) fail(c, ERR_usage, LOC_NONE, "expected the date before the model is imported");
  if (m->opened.source.at && !(m->opened.reader && m->opened.reader->chat_assets))
    fail(c, ERR_usage, LOC_NONE, "is not a language model: --date is for chat templates");
  bool fits = strlen(day) == 10 && day[4] == '-' && day[7] == '-';
  i64 year = fits ? read_digits(day, 4) : 0, month = fits ? read_digits(day + 5, 2) : 0,
      of_month = fits ? read_digits(day + 8, 2) : 0;
  fits = year > 1970 && month > 0 && month < 13 && of_month > 0;
  time_t at = fits ? (time_t)seconds_of(year, month, of_month) : 0;
  if (!fits || !gmtime_r(&at, &tm) || tm.tm_mday != of_month)
    fail(c, ERR_usage, LOC_NONE, "--date: expected YYYY-MM-DD, from 1971 on; found '%s'",
         show(c, str_of(c, day)));
  m->options.day = at;
}

IngotStatus ingot_set_day(Ingot *m, const char *day) {
  API_CALL(m, set_day(m, day));
}

/* ---- ids ---- */

typedef struct PromptText {
  StrBuf text, marks; /* marks: per byte, nonzero for text of the user */
} PromptText;

static void add(PromptText *p, const char *text, size_t n, char by_user) {
  sb_put(&p->text, text, n);
  for (size_t i = 0; i < n; i++) sb_put(&p->marks, &by_user, 1);
}

static const u32 *encode(Ctx *c, const Vocab *v, const PromptText *p, size_t *n) {
  return text_ids(c, v, p->text.at, p->text.n, (const u8 *)p->marks.at, VE_parse_special, &c->keep,
                  n);
}

/* Finds the ids that start every conversation, independent of its first message. */
static void find_ids(Ingot *m, const LmAssets *s) {
  static const char *const first[] = {"a",  " a",   "A", "1",  " ",
                                      "\n", "\n\n", ".", "\"", "\xc3\xa9"};
  Ctx *c = m->c;
  const ChatFormat texts = api_chat_texts(m, s), *chat = &texts;
  const char *prompt = m->options.prompt;
  size_t length = strlen(prompt);
  Vocab v;
  if (!vocab_open(&v, s->vocab, s->nvocab))
    internal_error(c, LOC_NONE, "a vocabulary that cannot be opened");
  if (chat->trims) {
    while (length && strchr(" \t\r\n", prompt[0])) prompt++, length--;
    while (length && strchr(" \t\r\n", prompt[length - 1])) length--;
  }
  for (u32 i = 0; i < sizeof first / sizeof *first; i++) {
    PromptText p = {sb_new(&c->keep), sb_new(&c->keep)};
    size_t n, same = 0;
    add(&p, chat->open_system, strlen(chat->open_system), 0);
    add(&p, prompt, length, 1);
    add(&p, chat->system, strlen(chat->system), 0);
    add(&p, first[i], strlen(first[i]), 1);
    add(&p, chat->ask, strlen(chat->ask), 0);
    const u32 *ids = encode(c, &v, &p, &n);
    if (!i) m->prompt_cache = (PromptCache){ids, (u32)n};
    while (same < n && same < m->prompt_cache.n && ids[same] == m->prompt_cache.id[same]) same++;
    m->prompt_cache.n = (u32)same;
  }
}

/* ---- the state after them ---- */

static void run_ids(Ingot *m, const Engine *e) {
  Ctx *c = m->c;
  const Buf *in = prog_buf(m->p, m->p->in.at[0]);
  i64 lo, hi;
  dim_bounds(m->p->dims, in->dim[0], &lo, &hi);
  for (u32 at = 0; at < m->prompt_cache.n;) {
    i64 n = m->prompt_cache.n - at < (u64)hi ? m->prompt_cache.n - at : hi;
    arena_clear(&m->run.once);
    Tensor *ids = tensor_new(&m->run.once, in->dt, &n, 1);
    for (i64 i = 0; i < n; i++) tensor_set(ids, (u64)i, (Scalar){.i = m->prompt_cache.id[at + i]});
    m->run.in = NEWS(&m->run.once, Tensor *, 1);
    m->run.in[0] = ids;
    m->run.out = NEWS(&c->keep, Tensor *, m->p->out.n + 1);
    e->run(m, 0);
    at += (u32)n;
  }
}

static void keep_states(Ingot *m) {
  Prog *p = m->p;
  for (BufId b = 1; b < p->buf.n; b++) {
    Buf *x = prog_buf(p, b);
    if (x->space != BS_state || x->alias) continue;
    const u8 *from = m->states.arena ? m->states.arena + x->offset : m->states.vm_state->at[b];
    for (u32 i = 0; i < x->rank; i++)
      if (!dim_is_const(x->dim[i])) internal_error(m->c, LOC_NONE, "a state of open extent");
    x->data = tensor_new(&m->c->keep, x->dt, x->dim, x->rank);
    memcpy((void *)x->data->data, from, tensor_bytes(x->data));
  }
}

void api_bake_prompt(Ingot *m) {
  Ctx *c = m->c;
  if (!m->options.prompt || m->prompt_cache.id) return;
  Loc loc = {.file = m->opened.source.file, .index = -1};
  const LmAssets *s = api_chat_assets(m);
  if (!s) fail(c, ERR_unsupported, loc, "--bake-prompt: is not a language model with a tokenizer");
  if (!s->chat.open_system)
    fail(c, ERR_unsupported, loc, "--bake-prompt: %s",
         s->no_chat ? s->no_chat : "the chat template of this model has no system message");
  api_need_single_variant(m);
  find_ids(m, s);
  if ((i64)m->prompt_cache.n >= api_context_length(m))
    fail(c, ERR_input, loc, "--bake-prompt: %u tokens fill the context length of %lld",
         m->prompt_cache.n, (long long)api_context_length(m));
  bool compiled = target_is_here(api_program_target(m)) && compiler_exists(c, NULL);
  run_ids(m, api_engine(c, compiled ? "c" : "vm", 0));
  keep_states(m);
  api_close_c(m);
  m->states.vm_state = NULL;
  m->states.fed = 0;
  api_clear_run(m);
}
