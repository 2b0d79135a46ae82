/* serve_routes.c: paths and methods -> handlers; authorization. */
#include "driver/serve/serve.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

extern const unsigned char serve_page[];
extern const size_t serve_page_size;

static const char INVALID[] = "invalid_request_error";

typedef struct Call {
  Serve *s;
  HttpRequest *r;
  void (*fn)(Ctx *c, void *arg);
  bool chat, metrics;
  ServeJob *job;
  StrBuf out;
} Call;

static void call_route(Ctx *c, void *arg) {
  Call *x = arg;
  x->out = sb_new(&c->keep);
  x->fn(c, x);
  sb_puts(&x->out, x->metrics ? "" : "\n");
}

/* Runs fn; answers with an error if it fails. */
static bool guarded(Call *x, void (*fn)(Ctx *c, void *arg)) {
  Ctx *c = x->r->c;
  DiagMark before = diag_mark(c);
  x->fn = fn;
  Err e = ctx_protect(c, call_route, x);
  if (!e) return true;
  if (e == ERR_system)
    http_fail(x->r);
  else
    serve_error(x->r, 400, INVALID, serve_param(x->r), diag_cause(*before.end));
  return false;
}

/* ---- models, health, metrics ---- */

static void put_models(Ctx *c, void *arg) {
  Call *x = arg;
  (void)c;
  sb_puts(&x->out, "{\"object\":\"list\",\"data\":[{\"id\":");
  sb_json(&x->out, x->s->name, strlen(x->s->name));
  sb_fmt(&x->out,
         ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"ingot\",\"max_model_len\":%u}]}",
         (long long)x->s->started, x->s->context);
}

static void put_health(Ctx *c, void *arg) {
  Call *x = arg;
  (void)c;
  sb_fmt(&x->out, "{\"status\":\"ok\",\"slots\":%u,\"active\":%u,\"queued\":%u}", x->s->nslot,
         x->s->active, x->s->queued);
}

static void put_metric(StrBuf *t, const char *name, const char *type, const char *help, double v) {
  sb_fmt(t, "# HELP ingot_%s %s\n# TYPE ingot_%s %s\ningot_%s %.17g\n", name, help, name, type,
         name, v);
}

static void put_histogram(StrBuf *t, const char *name, const char *help, const Histogram *h) {
  u64 n = 0;
  double most = 0.001;
  sb_fmt(t, "# HELP ingot_%s %s\n# TYPE ingot_%s histogram\n", name, help, name);
  for (u32 i = 0; i < SERVE_BUCKETS; i++) {
    n += h->n[i];
    sb_fmt(t, "ingot_%s_bucket{le=\"%.3g\"} %llu\n", name, most, (unsigned long long)n);
    most *= i % 3 == 1 ? 2.5 : 2;
  }
  n += h->n[SERVE_BUCKETS];
  sb_fmt(t, "ingot_%s_bucket{le=\"+Inf\"} %llu\ningot_%s_sum %.9g\ningot_%s_count %llu\n", name,
         (unsigned long long)n, name, h->sum, name, (unsigned long long)n);
}

static void put_metrics(Ctx *c, void *arg) {
  Call *x = arg;
  const Serve *s = x->s;
  const ServeStats *k = &s->stats;
  StrBuf *t = &x->out;
  u64 used = 0;
  (void)c;
  for (u32 i = 0; i < s->nslot; i++) used += s->slot[i].n;
  const struct {
    const char *name, *type, *help;
    double v;
  } rows[] = {
      {"requests_total", "counter", "requests for text", (double)k->requests},
      {"requests_refused_total", "counter", "requests refused because the queue is full",
       (double)k->refused},
      {"requests_cancelled_total", "counter", "requests whose client left", (double)k->cancelled},
      {"requests_finished_total", "counter", "answers", (double)k->finished},
      {"prompt_tokens_total", "counter", "tokens of prompts", (double)k->prompt_tokens},
      {"cached_tokens_total", "counter", "tokens of prompts found in the KV cache",
       (double)k->cached_tokens},
      {"answer_tokens_total", "counter", "tokens of answers", (double)k->answer_tokens},
      {"runs_total", "counter", "runs of the model", (double)k->runs},
      {"draft_tokens_total", "counter", "drafted tokens", (double)k->drafted},
      {"draft_tokens_accepted_total", "counter", "drafted tokens accepted", (double)k->accepted},
      {"queue", "gauge", "sequences that wait for a slot", (double)s->queued},
      {"slots", "gauge", "sequences that can decode at once", (double)s->nslot},
      {"slots_active", "gauge", "sequences that decode", (double)s->active},
      {"connections", "gauge", "open connections", (double)http_connections(s->http)},
      {"kv_tokens", "gauge", "tokens in the KV caches", (double)used},
      {"kv_capacity_tokens", "gauge", "capacity of the KV caches",
       (double)s->nslot * (double)s->context},
  };
  for (u32 i = 0; i < sizeof rows / sizeof *rows; i++)
    put_metric(t, rows[i].name, rows[i].type, rows[i].help, rows[i].v);
  put_histogram(t, "first_token_seconds", "time from request to first token", &k->first);
  put_histogram(t, "next_token_seconds", "time between tokens of an answer", &k->next);
}

/* ---- tokens ---- */

static const Json *body_of(Ctx *c, Call *x, const char *const *known, JsonDoc *doc) {
  *doc = json_read(c, (const u8 *)x->r->body, x->r->nbody, LOC_NONE, &c->keep);
  if (doc->root->kind != JS_object) fail(c, ERR_usage, LOC_NONE, "expected a JSON object");
  for (u32 i = 0; i < doc->root->n; i++) {
    u32 k = 0;
    while (known[k] && !json_is(json_key(doc->root, i), known[k])) k++;
    if (!known[k])
      fail(c, ERR_usage, LOC_NONE, "'%s' is an unknown field of this request",
           show_text(c, json_str(c, json_key(doc->root, i))));
  }
  return doc->root;
}

static void put_ids(StrBuf *t, const u32 *ids, size_t n) {
  for (size_t i = 0; i < n; i++) sb_fmt(t, "%s%u", i ? "," : "", ids[i]);
}

static void tokenize(Ctx *c, void *arg) {
  static const char *const known[] = {"content",       "prompt", "add_special",
                                      "parse_special", "model",  NULL};
  Call *x = arg;
  JsonDoc d;
  size_t n;
  const Json *root = body_of(c, x, known, &d), *text = json_get(root, "content");
  if (!text) text = json_require(&d, root, "prompt", JS_string);
  if (text->kind != JS_string) fail(c, ERR_usage, LOC_NONE, "'content': expected a string");
  u32 flags = (json_bool(&d, root, "add_special", false) ? VE_add_special : 0) |
              (json_bool(&d, root, "parse_special", true) ? VE_parse_special : 0);
  const u32 *ids = text_ids(c, &x->s->vocab, text->text, text->n, NULL, flags, &c->keep, &n);
  sb_puts(&x->out, "{\"tokens\":[");
  put_ids(&x->out, ids, n);
  sb_fmt(&x->out, "],\"count\":%zu,\"max_model_len\":%u}", n, x->s->context);
}

static void detokenize(Ctx *c, void *arg) {
  static const char *const known[] = {"tokens", "model", NULL};
  Call *x = arg;
  Serve *s = x->s;
  JsonDoc d;
  const Json *list = json_require(&d, body_of(c, x, known, &d), "tokens", JS_array);
  StrBuf t = sb_new(&c->keep);
  Detok detok = {.special = 1};
  for (u32 i = 0; i < list->n; i++) {
    const Json *id = &list->at[i];
    if (id->kind != JS_int || id->i < 0 || id->i >= s->vocab.head->ntoken)
      fail(c, ERR_usage, LOC_NONE, "'tokens': expected token ids of the vocabulary");
    sb_put(&t, s->piece, detok_put(&detok, &s->vocab, (u32)id->i, s->piece));
  }
  sb_put(&t, s->piece, detok_end(&detok, &s->vocab, s->piece));
  sb_puts(&x->out, "{\"content\":");
  sb_json(&x->out, t.at, t.n);
  sb_puts(&x->out, "}");
}

/* ---- embeddings ---- */

static void put_base64(StrBuf *t, const u8 *at, u64 n) {
  static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (u64 i = 0; i < n; i += 3) {
    u32 left = n - i < 3 ? (u32)(n - i) : 3, bits = 0;
    for (u32 k = 0; k < 3; k++) bits = bits << 8 | (k < left ? at[i + k] : 0u);
    for (u32 k = 0; k < 4; k++) sb_put(t, k <= left ? &digit[bits >> (18 - 6 * k) & 63] : "=", 1);
  }
}

/* Limits of one request: the server does nothing else while it runs. */
enum { EMBED_INPUTS = 2048, EMBED_TOKENS = 1 << 16 };

/* The tokens of a text or an array of token ids. */
static const u32 *input_ids(Ctx *c, const Serve *s, const Json *v, size_t *n) {
  if (v->kind == JS_string)
    return text_ids(c, &s->vocab, v->text, v->n, NULL, VE_add_special, &c->keep, n);
  if (v->kind != JS_array) fail(c, ERR_usage, LOC_NONE, "'input': expected texts or token ids");
  u32 *ids = NEWS(&c->keep, u32, v->n);
  for (u32 i = 0; i < v->n; i++) {
    if (v->at[i].kind != JS_int || v->at[i].i < 0 || v->at[i].i >= s->vocab.head->ntoken)
      fail(c, ERR_usage, LOC_NONE, "'input': expected token ids of the vocabulary");
    ids[i] = (u32)v->at[i].i;
  }
  *n = v->n;
  return ids;
}

/* Runs the encoder on a text. */
static IngotTensor encode(Ctx *c, Serve *s, const char *field, const u32 *ids, size_t n,
                          u64 *total) {
  if (!n || n > s->context)
    fail(c, ERR_usage, LOC_NONE, "'%s': %zu tokens, expected 1 to %u", field, n, s->context);
  if (*total + n > EMBED_TOKENS)
    fail(c, ERR_usage, LOC_NONE, "'%s': expected at most %d tokens", field, EMBED_TOKENS);
  i64 dim = (i64)n;
  IngotTensor in = {"ids", "i32", 1, &dim, ids, n * 4};
  if (ingot_call(s->m, &(IngotCall){.engine = s->engine, .in = &in, .nin = 1}))
    fail(c, ERR_system, LOC_NONE, "the model failed on this text");
  *total += n;
  return ingot_output(s->m, 0);
}

static void embed_one(Ctx *c, Call *x, const Json *v, u32 index, bool packed, u64 *total) {
  size_t n;
  const u32 *ids = input_ids(c, x->s, v, &n);
  IngotTensor y = encode(c, x->s, "input", ids, n, total);
  const float *z = y.data;
  sb_fmt(&x->out, "%s{\"object\":\"embedding\",\"index\":%u,\"embedding\":%s", index ? "," : "",
         index, packed ? "\"" : "[");
  if (packed) put_base64(&x->out, y.data, y.bytes);
  for (u64 i = 0; !packed && i < y.bytes / 4; i++)
    sb_fmt(&x->out, "%s%.9g", i ? "," : "", (double)z[i]);
  sb_puts(&x->out, packed ? "\"}" : "]}");
}

static void embed(Ctx *c, void *arg) {
  static const char *const known[] = {"input", "model", "encoding_format", "user", NULL};
  Call *x = arg;
  JsonDoc d;
  u64 total = 0;
  const Json *root = body_of(c, x, known, &d), *in = json_get(root, "input"),
             *format = json_member(&d, root, "encoding_format", JS_string);
  if (!in) fail(c, ERR_usage, LOC_NONE, "'input': expected a text or an array of texts");
  bool packed = json_is(format, "base64"); /* f32, lowest byte first */
  if (format && !packed && !json_is(format, "float"))
    fail(c, ERR_usage, LOC_NONE, "'encoding_format': expected float or base64");
  bool many = in->kind == JS_array && in->n && in->at[0].kind != JS_int;
  if (many && in->n > EMBED_INPUTS)
    fail(c, ERR_usage, LOC_NONE, "'input': expected at most %d texts", EMBED_INPUTS);
  sb_puts(&x->out, "{\"object\":\"list\",\"data\":[");
  for (u32 i = 0; i < (many ? in->n : 1); i++)
    embed_one(c, x, many ? &in->at[i] : in, i, packed, &total);
  sb_puts(&x->out, "],\"model\":");
  sb_json(&x->out, x->s->name, strlen(x->s->name));
  sb_fmt(&x->out, ",\"usage\":{\"prompt_tokens\":%llu,\"total_tokens\":%llu}}",
         (unsigned long long)total, (unsigned long long)total);
}

/* ---- reranking ---- */

typedef struct Ranked {
  u32 index;
  float score;
} Ranked;

static int by_score(const void *a, const void *b) {
  const Ranked *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? 1 : -1;
  return x->index < y->index ? -1 : 1;
}

/* The tokens of two texts: those of the first, with special tokens around, then those of the second
 * with the last special token. Models of the RoBERTa family, whose separator is </s>, have a second
 * separator between them. */
static const u32 *pair_ids(Ctx *c, const Serve *s, const Json *a, const Json *b, size_t *n) {
  size_t na, nb, nend, len = 0;
  const u32 *ends = text_ids(c, &s->vocab, "", 0, NULL, VE_add_special, &c->keep, &nend);
  const u32 *x = text_ids(c, &s->vocab, a->text, a->n, NULL, VE_add_special, &c->keep, &na);
  const u32 *y = text_ids(c, &s->vocab, b->text, b->n, NULL, VE_add_special, &c->keep, &nb);
  if (nend != 2 || na < 2 || nb < 2 || x[na - 1] != ends[1] || y[0] != ends[0] ||
      y[nb - 1] != ends[1])
    fail(c, ERR_unsupported, LOC_NONE,
         "reranking needs a tokenizer that adds a token before and a token after each text; this "
         "one adds %zu",
         nend);
  u32 bytes, *ids = NEWS(&c->keep, u32, na + nb + 1);
  const u8 *end = vocab_token(&s->vocab, x[na - 1], &bytes);
  memcpy(ids, x, na * sizeof *ids);
  len = na;
  if (bytes == 4 && !memcmp(end, "</s>", 4)) ids[len++] = x[na - 1];
  memcpy(ids + len, y + 1, (nb - 1) * sizeof *ids);
  *n = len + nb - 1;
  return ids;
}

static void rerank(Ctx *c, void *arg) {
  static const char *const known[] = {"query", "documents", "model", "top_n", "return_documents",
                                      "user",  NULL};
  Call *x = arg;
  Serve *s = x->s;
  JsonDoc d;
  u64 total = 0;
  const Json *root = body_of(c, x, known, &d), *query = json_require(&d, root, "query", JS_string),
             *list = json_require(&d, root, "documents", JS_array),
             *top = json_member(&d, root, "top_n", JS_int);
  bool texts = json_bool(&d, root, "return_documents", false);
  if (!s->ranks)
    fail(c, ERR_unsupported, LOC_NONE, "this model has no classification head with one score");
  if (!list->n || list->n > EMBED_INPUTS)
    fail(c, ERR_usage, LOC_NONE, "'documents': expected 1 to %d texts", EMBED_INPUTS);
  if (top && top->i < 1) fail(c, ERR_usage, LOC_NONE, "'top_n': expected a positive integer");
  Ranked *r = NEWS(&c->keep, Ranked, list->n);
  const Json **text = NEWS(&c->keep, const Json *, list->n);
  for (u32 i = 0; i < list->n; i++) {
    size_t n;
    text[i] = &list->at[i];
    if (text[i]->kind == JS_object) text[i] = json_get(text[i], "text");
    if (!text[i] || text[i]->kind != JS_string)
      fail(c, ERR_usage, LOC_NONE, "'documents': expected texts, or objects with a 'text'");
    const u32 *ids = pair_ids(c, s, query, text[i], &n);
    r[i] = (Ranked){i, *(const float *)encode(c, s, "documents", ids, n, &total).data};
  }
  qsort(r, list->n, sizeof *r, by_score);
  sb_puts(&x->out, "{\"object\":\"list\",\"results\":[");
  for (u32 i = 0; i < list->n && (!top || i < top->i); i++) {
    sb_fmt(&x->out, "%s{\"index\":%u,\"relevance_score\":%.9g", i ? "," : "", r[i].index,
           (double)r[i].score);
    if (texts) {
      sb_puts(&x->out, ",\"document\":{\"text\":");
      sb_json(&x->out, text[r[i].index]->text, text[r[i].index]->n);
      sb_puts(&x->out, "}");
    }
    sb_puts(&x->out, "}");
  }
  sb_puts(&x->out, "],\"model\":");
  sb_json(&x->out, s->name, strlen(s->name));
  sb_fmt(&x->out, ",\"usage\":{\"prompt_tokens\":%llu,\"total_tokens\":%llu}}",
         (unsigned long long)total, (unsigned long long)total);
}

/* ---- text ---- */

static void read_job(Ctx *c, void *arg) {
  Call *x = arg;
  (void)c;
  x->job = serve_read_job(x->s, x->r, x->chat);
}

static void generate(Call *x) {
  Serve *s = x->s;
  s->stats.requests++;
  if (!guarded(x, read_job)) return;
  ServeJob *j = x->job;
  u32 free = s->nslot - s->active;
  if ((u64)s->queued + j->nseq > (u64)s->o->queue + free) {
    s->stats.refused++;
    serve_error(x->r, 429, "rate_limit_error", NULL, "the queue of this server is full: try again");
    return;
  }
  j->id = ++s->ids;
  serve_begin(j);
  serve_enqueue(s, j);
}

/* ---- routes ---- */

enum { ROUTE_open = 1, ROUTE_decoder = 2, ROUTE_encoder = 4 };

typedef enum RouteKind { RK_json, RK_metrics, RK_page, RK_chat, RK_text } RouteKind;

static const struct {
  const char *method, *path;
  RouteKind kind;
  void (*fn)(Ctx *c, void *arg);
  int flags; /* open: without a key; decoder, encoder: only with such a model */
} routes[] = {
    {"GET", "/health", RK_json, put_health, ROUTE_open},
    {"GET", "/", RK_page, NULL, ROUTE_open | ROUTE_decoder},
    {"GET", "/v1/models", RK_json, put_models, 0},
    {"GET", "/metrics", RK_metrics, put_metrics, 0},
    {"POST", "/v1/chat/completions", RK_chat, NULL, ROUTE_decoder},
    {"POST", "/v1/completions", RK_text, NULL, ROUTE_decoder},
    {"POST", "/v1/embeddings", RK_json, embed, ROUTE_encoder},
    {"POST", "/v1/rerank", RK_json, rerank, ROUTE_encoder},
    {"POST", "/tokenize", RK_json, tokenize, 0},
    {"POST", "/detokenize", RK_json, detokenize, 0},
};

/* Compares in a time that does not depend on where the texts differ. */
static bool same_key(const char *have, const char *want) {
  size_t n = strlen(have), k = strlen(want), bad = n ^ k;
  for (size_t i = 0; i < n; i++) bad |= (size_t)(u8)(have[i] ^ want[k ? i % k : 0]);
  return bad == 0;
}

/* NAME, NAME:PORT or [NAME]:PORT */
static bool is_local_name(const char *host) {
  char name[64];
  bool six = *host == '[';
  size_t n = strcspn(host + six, six ? "]" : ":");
  if (n >= sizeof name) return false;
  memcpy(name, host + six, n);
  name[n] = 0;
  return http_is_loopback(name);
}

/* Pages of other sites must not use a local server, neither directly (Origin) nor through a name
 * that they point at it (Host). */
static bool is_foreign(const HttpRequest *r, bool has_key) {
  const char *origin = r->origin ? strstr(r->origin, "://") : NULL;
  if (has_key) return false;
  if (r->host && !is_local_name(r->host)) return true;
  return r->origin && (!origin || !r->host || strcasecmp(origin + 3, r->host) != 0);
}

void serve_handle(void *user, HttpRequest *r) {
  Call x = {.s = user, .r = r};
  Serve *s = user;
  u32 i = 0, n = sizeof routes / sizeof *routes;
  bool path = false;
  for (; i < n; i++) {
    path = path || !strcmp(routes[i].path, r->path);
    if (!strcmp(routes[i].path, r->path) && !strcmp(routes[i].method, r->method)) break;
  }
  if (is_foreign(r, s->key != NULL)) {
    serve_error(r, 403, INVALID, NULL, "requests of other sites need an API key (--api-key)");
  } else if (i == n) {
    serve_error(r, path ? 405 : 404, INVALID, NULL,
                path ? "the path exists, but not with this method" : "no such path");
  } else if (s->key && !(routes[i].flags & ROUTE_open) && !(r->key && same_key(r->key, s->key))) {
    serve_error(r, 401, "authentication_error", NULL, "expected Authorization: Bearer API_KEY");
  } else if (s->drains && strcmp(r->path, "/metrics")) {
    serve_error(r, 503, "server_error", NULL, "the server is shutting down");
  } else if (routes[i].flags & (s->encoder ? ROUTE_decoder : ROUTE_encoder)) {
    serve_error(r, 400, INVALID, NULL,
                s->encoder ? "this model has embeddings only" : "this model has no embeddings");
  } else if (routes[i].kind == RK_page) {
    http_reply(r, 200, "text/html; charset=utf-8", serve_page, serve_page_size, 0);
  } else if (routes[i].kind == RK_chat || routes[i].kind == RK_text) {
    x.chat = routes[i].kind == RK_chat;
    generate(&x);
  } else {
    x.metrics = routes[i].kind == RK_metrics;
    if (guarded(&x, routes[i].fn))
      http_reply(r, 200,
                 x.metrics ? "text/plain; version=0.0.4; charset=utf-8" : "application/json",
                 x.out.at, x.out.n, 0);
  }
}
