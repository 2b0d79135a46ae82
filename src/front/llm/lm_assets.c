/* lm_assets.c: tokenizer and chat format of a decoder.
 *
 * In: a model file. Out: LmAssets. Programs contain no template interpreter. Instead this file
 * renders the template for a few conversations with marked messages and keeps the strings between
 * the marks. It accepts them if they reproduce longer conversations exactly. A template may refuse
 * a system message. If later turns are rendered differently, every question starts a new
 * conversation.
 */
#include "front/llm/lm_hparams.h"
#include "front/vocab_file.h"
#include "chat/chat.h"

#include <string.h>
#include <sys/stat.h>

enum { MOST_TURNS = 6 };

typedef struct Probe {
  const Vocab *v;
  Loc loc;
  const ChatMessage *turn;
  u32 nturn;
  i64 now;
  JinjaStr got;
} Probe;

static void render(Ctx *c, void *arg) {
  Probe *p = arg;
  p->got = chat_text(c, p->v, p->turn, p->nturn, true, p->now, p->loc, &c->work);
}

/* The strings around the messages of a conversation, one more than messages. False if the template
 * refuses it, or if a message does not occur exactly once and in order (trimmed if trims). */
static bool split_at_messages(Ctx *c, Probe *p, const ChatMessage *turn, u32 n, bool trims,
                              const char **out, const char **why) {
  p->turn = turn;
  p->nturn = n;
  if (ctx_try(c, render, p, why)) return false;
  u32 at = 0;
  for (u32 i = 0; i <= n; i++) {
    u32 from = at;
    while (at < p->got.n && !(p->got.mark && p->got.mark[at])) at++;
    out[i] = str_text(c, str_intern(c, p->got.at + from, at - from));
    if (i == n) break;
    const char *text = turn[i].content;
    size_t length = turn[i].n;
    if (trims) text++, length -= 2;
    from = at;
    while (at < p->got.n && p->got.mark && p->got.mark[at]) at++;
    if (at - from != length || memcmp(p->got.at + from, text, length) != 0) {
      *why = "its chat template changes the text of messages";
      return false;
    }
  }
  return at == p->got.n;
}

static bool is_same(const char *a, const char *b) {
  return !strcmp(a, b);
}

static ChatFormat chat_format_of(Ctx *c, Probe *p, const char **why) {
#define SAYS(role, text)                                                                           \
  { role, text, sizeof text - 1 }
  static const ChatMessage talk[] = {SAYS("user", " one "), SAYS("assistant", " two "),
                                     SAYS("user", " three "), SAYS("assistant", " four "),
                                     SAYS("user", " five ")};
  static const ChatMessage with_system[] = {SAYS("system", " zero "), SAYS("user", " one "),
                                            SAYS("assistant", " two "), SAYS("user", " three ")};
#undef SAYS
  const char *x[MOST_TURNS], *ignored;
  ChatFormat t = {0};
  *why = "its chat template joins messages in an unsupported way";
  t.trims = !split_at_messages(c, p, talk, 1, false, x, why);
  if (t.trims && !split_at_messages(c, p, talk, 1, true, x, why)) return (ChatFormat){0};
  t.open = x[0];
  t.ask = x[1];
  if (split_at_messages(c, p, talk, 5, t.trims, x, &ignored) && is_same(x[0], t.open) &&
      is_same(x[1], t.ask) && is_same(x[3], t.ask) && is_same(x[5], t.ask) && is_same(x[2], x[4]))
    t.next = x[2];
  if (split_at_messages(c, p, with_system, 4, t.trims, x, &ignored) && is_same(x[2], t.ask) &&
      is_same(x[4], t.ask)) {
    t.open_system = x[0];
    t.system = x[1];
  }
  *why = NULL;
  return t;
}

/* Are the date formats intact between their marks? */
static bool dates_are_intact(const ChatFormat *t) {
  const char *text[] = {t->open, t->open_system, t->system, t->ask, t->next};
  for (u32 i = 0; i < sizeof text / sizeof *text; i++) {
    bool inside = false;
    for (const char *s = text[i] ? text[i] : ""; *s; s++) {
      if (*s == (inside ? DATE_BEGIN : DATE_END)) return false;
      if (*s == DATE_BEGIN || *s == DATE_END) inside = !inside;
    }
    if (inside) return false;
  }
  return true;
}

const char *lm_folder(Ctx *c, const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash) return ".";
  return str_text(c, str_intern(c, path, slash == path ? 1 : (size_t)(slash - path)));
}

static bool has_tokenizer(Ctx *c, LmFile *f, const char *path) {
  static const char *const names[] = {"tokenizer.json", "tokenizer.model", "spiece.model"};
  struct stat st;
  if (f->gguf) return gguf_key(c, f->gguf, "tokenizer.ggml.tokens") != NULL;
  for (u32 i = 0; i < sizeof names / sizeof *names; i++)
    if (!stat(str_text(c, str_fmt(c, "%s/%s", lm_folder(c, path), names[i])), &st)) return true;
  return false;
}

/* A token without a row would be an index out of range. Rows after the last token are padding. */
static void check_rows(Ctx *c, LmFile *f, const Vocab *v) {
  const StoredTensor *embed = lm_require_tensor(f, lm_tensor_name(f, LP_embed, 0, ".weight"));
  if (embed->rank != 2 || v->head->ntoken > embed->dim[0])
    fail(c, ERR_input, f->loc, "the tokenizer has %u tokens, but the embedding has %lld rows",
         v->head->ntoken, (long long)embed->dim[0]);
}

typedef struct SamplingKey {
  const char *gguf, *config;
  double lo, hi;
  bool whole;
} SamplingKey;

/* -1: absent, or out of range. Settings are advice, so a bad one is a warning. */
static double sampling_setting(LmFile *f, SamplingKey k) {
  double x;
  i64 whole;
  const char *key = f->gguf ? k.gguf : k.config;
  if (k.whole ? !lm_int(f, key, INT64_MIN, INT64_MAX, &whole) : !lm_float(f, key, &x)) return -1;
  if (k.whole) x = whole < 0 ? 0 : (double)whole; /* top_k <= 0: the whole vocabulary */
  if (x >= k.lo && x <= k.hi) return x;
  warn(f->c, f->loc, "ignoring '%s', which is %g: expected %g to %g", key, x, k.lo, k.hi);
  return -1;
}

static void read_sampling(LmFile *f, struct LmSampling *s) {
  s->temperature =
      sampling_setting(f, (SamplingKey){"general.sampling.temp",
                                        "generation_config.json:temperature", 0, 100, false});
  s->top_k = sampling_setting(
      f, (SamplingKey){"general.sampling.top_k", "generation_config.json:top_k", 0, 1e9, true});
  s->top_p = sampling_setting(
      f, (SamplingKey){"general.sampling.top_p", "generation_config.json:top_p", 0, 1, false});
  s->min_p = sampling_setting(
      f, (SamplingKey){"general.sampling.min_p", "generation_config.json:min_p", 0, 1, false});
  s->repeat = sampling_setting(f, (SamplingKey){"general.sampling.penalty_repeat",
                                                "generation_config.json:repetition_penalty", 0.01,
                                                100, false});
}

const LmAssets *lm_assets(Ctx *c, const Source *s, const Model *m) {
  LmFile *f = (LmFile *)m->own;
  Vocab v;
  ModelInfo facts = {0};
  lm_require_arch(f);
  if (!s->path || !has_tokenizer(c, f, s->path)) return NULL;
  VocabBlob tables = vocab_file(c, f->gguf ? s->path : lm_folder(c, s->path), &c->keep);
  LmAssets *out = NEW(&c->keep, LmAssets);
  if (!vocab_open(&v, tables.at, tables.n))
    internal_error(c, f->loc, "the vocabulary cannot be opened");
  check_rows(c, f, &v);
  lm_info(c, m, &facts);
  *out =
      (LmAssets){.vocab = tables.at, .nvocab = tables.n, .token_bytes = (double)facts.token_bytes};
  read_sampling(f, &out->sampling);
  Probe p = {.v = &v, .loc = f->loc, .now = JINJA_DATES};
  out->no_chat = "the model has no chat template";
  if (chat_has_template(&v)) out->chat = chat_format_of(c, &p, &out->no_chat);
  p.now = CHAT_DEFAULT_DATE; /* templates that compute with the date get a fixed one */
  if (chat_has_template(&v) && (!out->chat.open || !dates_are_intact(&out->chat)))
    out->chat = chat_format_of(c, &p, &out->no_chat);
  return out;
}
