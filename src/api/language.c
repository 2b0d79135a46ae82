/* language.c: options and perplexity of language models.
 *
 * In: a model that maps ids to logits and keeps its context as state; token ids of a text. Out: the
 * mean negative log-likelihood of the text. Method: split the text into parts of the context
 * length, reset the state for each, and run it in chunks; sums are in double.
 */
#include "api/api_internal.h"

#include <math.h>
#include <string.h>

static void set_language(Ingot *m, const IngotLanguage *o) {
  Ctx *c = m->c;
  api_need(c, o, "the language model options");
  if (m->g || m->p)
    fail(c, ERR_usage, LOC_NONE, "expected options of a language model before it is imported");
  if (m->opened.source.at && !(m->opened.reader && m->opened.reader->chat_assets))
    fail(c, ERR_usage, LOC_NONE,
         "is not a language model: leave out --context, --chunk, --every-token, --cache and "
         "--activation-type");
  if (o->context > DIM_MAX || o->chunk > DIM_MAX)
    fail(c, ERR_usage, LOC_NONE, "--context %lld, --chunk %lld: expected at most %lld tokens",
         (long long)o->context, (long long)o->chunk, (long long)DIM_MAX);
  DType kept = o->cache ? dtype_from_name(o->cache, strlen(o->cache)) : DT_none;
  if (o->cache && !strcmp(o->cache, "int8")) kept = DT_i8;
  if (o->cache && kept != DT_f16 && kept != DT_f32 && kept != DT_i8)
    fail(c, ERR_usage, LOC_NONE, "--cache '%s': expected f16, f32 or int8", o->cache);
  u32 x_bits = 0;
  for (u32 i = 0; o->activations && i < 3; i++)
    if (!strcmp(o->activations, (const char *[]){"int8", "int16", "f32"}[i])) x_bits = 8u << i;
  if (o->activations && !x_bits)
    fail(c, ERR_usage, LOC_NONE, "--activation-type '%s': expected int8, int16 or f32",
         o->activations);
  if (o->slots > LM_SLOTS)
    fail(c, ERR_usage, LOC_NONE, "%u sequences: expected at most %d", o->slots, LM_SLOTS);
  if (o->slots && o->every)
    fail(c, ERR_usage, LOC_NONE,
         "several sequences select logits by rows: leave out --every-token");
  m->options.language = (LmOptions){.context = (i64)o->context,
                                    .chunk = (i64)o->chunk,
                                    .every = o->every != 0,
                                    .slots = o->slots,
                                    .kept = kept,
                                    .x_bits = x_bits};
}

IngotStatus ingot_set_language(Ingot *m, const IngotLanguage *o) {
  API_CALL(m, set_language(m, o));
}

/* ---- perplexity ---- */

typedef struct Perplexity {
  Ingot *m;
  const char *engine;
  i64 chunk, context;
  double sum; /* sum of negative log-likelihoods in nats */
  u64 n;      /* scored tokens */
} Perplexity;

static double neg_log_likelihood(const float *logit, i64 n, i64 id) {
  double top = (double)logit[id];
  for (i64 i = 0; i < n; i++) top = (double)logit[i] > top ? (double)logit[i] : top;
  double sum = exp((double)logit[id] - top);
  for (i64 i = 0; i < n; i++)
    if (i != id) sum += exp((double)logit[i] - top);
  return top + log(sum) - (double)logit[id];
}

/* Runs n ids after the current state and scores the id after each, `left` in all. */
static void feed(Perplexity *o, const i32 *ids, i64 n, i64 left) {
  Ingot *m = o->m;
  Ctx *c = m->c;
  IngotTensor x = {"ids", "i32", 1, &n, ids, (u64)n * 4};
  IngotStatus s = ingot_input(m, &x);
  if (!s) s = ingot_run(m, o->engine, 0);
  if (s) longjmp(*c->door, (int)s);
  IngotTensor y = ingot_output(m, 0);
  for (i64 i = 0; i < n && i < left; i++) {
    if (ids[i + 1] < 0 || ids[i + 1] >= y.dim[1])
      fail(c, ERR_input, LOC_NONE, "token id %d is out of range: the vocabulary has %lld tokens",
           (int)ids[i + 1], (long long)y.dim[1]);
    o->sum += neg_log_likelihood((const float *)y.data + i * y.dim[1], y.dim[1], ids[i + 1]);
    o->n++;
  }
}

static void import_decoder(Perplexity *o, u64 n) {
  Ingot *m = o->m;
  Ctx *c = m->c;
  i64 lo;
  if (!m->g) {
    m->options.language.every = true;
    if (!m->options.language.context && n < LM_CONTEXT) m->options.language.context = (i64)n;
    api_import(m, false);
  }
  const GraphRegion *b = m->g ? &m->g->region.at[1] : NULL;
  if (!b || !m->g->state.n || !m->g->state.at[0].most || m->g->out_name.n < 1 ||
      !str_is(c, m->g->out_name.at[0], "logits"))
    fail(c, ERR_usage, LOC_NONE, "is not a language model: it has no logits and no context");
  dim_bounds(m->g->dims, graph_type(m->g, b->param.at[0])->dim[0], &lo, &o->chunk);
  o->context = m->g->state.at[0].most;
}

static void perplexity(Ingot *m, const IngotScoreText *score, IngotPerplexity *out) {
  Ctx *c = m->c;
  api_need(c, score, "the ids to score");
  const i32 *ids = score->ids;
  u64 n = score->n;
  Perplexity o = {.m = m, .engine = score->engine};
  api_need(c, n ? ids : (const void *)"", "the ids");
  api_need(c, out, "a pointer to the result");
  if (n < 2)
    fail(c, ERR_input, LOC_NONE, "a text of %llu tokens is too short: expected at least 2",
         (unsigned long long)n);
  import_decoder(&o, n);
  for (u64 at = 0; at + 1 < n; at += (u64)o.context) {
    i64 left = (i64)(n - at) < o.context ? (i64)(n - at) : o.context;
    IngotStatus s = ingot_reset(m);
    if (s) longjmp(*c->door, (int)s);
    for (i64 i = 0; i < left; i += o.chunk) {
      i64 count = left - i < o.chunk ? left - i : o.chunk;
      feed(&o, ids + at + i, count, left - i - 1);
      if (score->on_progress) score->on_progress(score->user, at + (u64)(i + count), n);
    }
  }
  *out = (IngotPerplexity){o.sum / (double)o.n, exp(o.sum / (double)o.n), o.n};
}

IngotStatus ingot_perplexity(Ingot *m, const IngotScoreText *o, IngotPerplexity *out) {
  API_CALL(m, perplexity(m, o, out));
}
