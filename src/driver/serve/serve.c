/* serve.c: ingot_serve: an OpenAI-compatible HTTP server for a language model.
 *
 * In: an open model and options. Out: answers, until SIGTERM or SIGINT. Method: one thread
 * alternates between network events (http.c) and runs of the model (serve_batch.c), which has one
 * row of slots for all requests. Engine c without a compiler: bytecode.
 */
#include "driver/serve/serve.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
  HEADER_BYTES = 16 << 10,
  BODY_BYTES = 4 << 20,
  CONNECTIONS = 1024,
  REQUEST_SECONDS = 30,
  WRITE_SECONDS = 60,
  DRAIN_MS = 5000, /* limit for sending pending answers at shutdown */
  MIN_CHUNK = 2 * LM_SLOT_ROWS,
};

/* The key: given, or the first line of a file that only its owner may read. */
static const char *read_key(Ctx *c, const IngotServe *o) {
  if (o->key && o->key_file)
    fail(c, ERR_usage, LOC_NONE, "expected either --api-key or --api-key-file");
  const char *key = o->key;
  if (o->key_file) {
    struct stat st;
    if (!stat(o->key_file, &st) && st.st_mode & 077)
      warn(c, LOC_NONE, "%s: other users can read the API key: chmod 600", o->key_file);
    File f = file_read(c, o->key_file);
    const char *text = (const char *)f.at;
    size_t n = 0;
    while (n < f.n && text[n] != '\n' && text[n] != '\r') n++;
    key = str_text(c, str_intern(c, text, n));
  }
  if (key && !*key) fail(c, ERR_usage, LOC_NONE, "the API key is empty");
  return key;
}

static const char *base_name(Ctx *c, const char *path) {
  const char *end = path + strlen(path), *dot;
  while (end > path && end[-1] == '/') end--;
  const char *at = end;
  while (at > path && at[-1] != '/') at--;
  const char *name = str_text(c, str_intern(c, at, (size_t)(end - at)));
  dot = strrchr(name, '.');
  return dot && !strcmp(dot, ".gguf") ? str_text(c, str_intern(c, name, (size_t)(dot - name)))
                                      : name;
}

/* ---- the model ---- */

static void need_ok(Ctx *c, IngotStatus s) {
  if (s) longjmp(*c->door, (int)s);
}

static void choose_engine(Serve *s) {
  Ctx *c = s->c;
  const Engine *e = s->o->engine ? api_engine(c, s->o->engine, 0) : NULL;
  bool native = e ? e->info.flags & INGOT_NATIVE : compiler_exists(c, s->o->cc);
  if (e && !native && strcmp(e->info.name, "vm"))
    fail(c, ERR_usage, LOC_NONE, "--engine %s: expected c, jit or vm", e->info.name);
  if (!native && !e)
    warn(c, LOC_NONE, "no C compiler: running slower bytecode; install gcc or clang");
  s->engine = e ? e->info.name : native ? "c" : "vm";
  if (native && !strcmp(s->engine, "c"))
    api_march(s->m, s->o->march ? s->o->march : "native", s->o->cc);
  else if (s->o->march)
    api_march(s->m, s->o->march, s->o->cc);
}

static void prepare_decoder(Serve *s) {
  Ingot *m = s->m;
  Ctx *c = s->c;
  LmOptions *w = &m->options.language;
  const LmAssets *assets = api_chat_assets(m);
  if (!assets || !vocab_open(&s->vocab, assets->vocab, assets->nvocab))
    fail(c, ERR_unsupported, (Loc){.file = m->opened.source.file, .index = -1},
         "expected a model with a tokenizer, found none in the file or next to it");
  s->sampling = assets->sampling;
  if (!w->chunk) w->chunk = 64;
  if (w->chunk < MIN_CHUNK) w->chunk = MIN_CHUNK;
  w->slots = s->o->slots;
  need_ok(c, ingot_ready(m, s->engine));
  const Buf *out = prog_buf(m->p, m->p->out.at[0]);
  i64 lo, chunk;
  dim_bounds(m->p->dims, prog_buf(m->p, m->p->in.at[0])->dim[0], &lo, &chunk);
  s->nslot = w->slots;
  s->context = (u32)api_context_length(m);
  s->chunk = (u32)chunk;
  s->ring = (u32)api_kv_min_length(m);
  s->nlogit = (u32)out->dim[1];
  s->ntoken = s->nlogit < s->vocab.head->ntoken ? s->nlogit : s->vocab.head->ntoken;
  s->slot = NEWS(&c->keep, ServeSlot, s->nslot);
  s->in = NEWS(&c->keep, i32 *, s->nslot);
  for (u32 i = 0; i < s->nslot; i++) {
    s->slot[i].ids = NEWS(&c->keep, u32, s->context);
    s->in[i] = NEWS(&c->keep, i32, s->chunk);
  }
  u64 rows = (u64)s->nslot * LM_SLOT_ROWS;
  s->rows = NEWS(&c->keep, i32, rows);
  s->logits = NEWS(&c->keep, float, rows * s->nlogit);
  s->z = NEWS(&c->keep, float, s->ntoken);
  s->candidate = NEWS(&c->keep, Candidate, s->ntoken);
}

/* Embeddings: one text per run. */
static void prepare_encoder(Serve *s) {
  Ingot *m = s->m;
  Ctx *c = s->c;
  s->encoder = true;
  const char *path = m->opened.source.path, *slash = strrchr(path, '/');
  if (!ends_with(path, ".gguf"))
    path = slash ? str_text(c, str_intern(c, path, (size_t)(slash - path))) : ".";
  need_ok(c, ingot_open_vocab(m, path));
  s->vocab = *m->opened.vocab;
  need_ok(c, ingot_ready(m, s->engine));
  i64 lo, hi;
  if (m->p->in.n != 1 || m->p->out.n != 1)
    fail(c, ERR_unsupported, LOC_NONE, "expected a model from token ids to one vector");
  dim_bounds(m->p->dims, prog_buf(m->p, m->p->in.at[0])->dim[0], &lo, &hi);
  s->context = (u32)hi;
  const Buf *out = prog_buf(m->p, m->p->out.at[0]);
  s->ranks = out->rank == 1 && out->dim[0] == 1;
}

static void prepare(Serve *s) {
  Ingot *m = s->m;
  Ctx *c = s->c;
  if (!m->opened.source.path || !m->opened.reader || !m->opened.reader->chat_assets)
    fail(c, ERR_unsupported, (Loc){.file = m->opened.source.file, .index = -1},
         "expected a language model, as a GGUF file or a folder of safetensors");
  choose_engine(s);
  need_ok(c, ingot_keep_code(m, ""));
  if (ingot_is_language_model(m))
    prepare_decoder(s);
  else
    prepare_encoder(s);
  size_t piece = detok_max_bytes(&s->vocab) + s->vocab.head->longest + 16;
  s->piece = arena_alloc(&c->keep, piece);
  s->shown = arena_alloc(&c->keep, piece + SERVE_STOP_BYTES);
}

/* ---- the loop ---- */

static void check_options(Ctx *c, const IngotServe *o) {
  if (o->slots < 1 || o->slots > LM_SLOTS)
    fail(c, ERR_usage, LOC_NONE, "--slots %u: expected 1 to %d", o->slots, LM_SLOTS);
  if (o->port > 65535) fail(c, ERR_usage, LOC_NONE, "--port %u: expected 0 to 65535", o->port);
}

static void log_line(const Serve *s, const char *line) {
  if (s->o->on_log) s->o->on_log(s->o->user, line);
}

/* SIGTERM: no new requests; queued and running ones are answered. A second signal ends at once. */
static void loop(Serve *s) {
  double end = 0;
  while (http_signals(s->http) < 2) {
    if (http_signals(s->http) && !s->drains) {
      s->drains = true;
      http_stop_accepting(s->http);
      log_line(s, "shutting down: finishing answers");
    }
    bool work = serve_has_work(s);
    if (s->drains && !work) {
      if (!end) end = time_ms() + DRAIN_MS;
      if (http_is_sent(s->http) || time_ms() > end) return;
    }
    http_poll(s->http, !work && !s->drains);
    serve_drop_gone(s);
    if (serve_has_work(s)) serve_step(s);
  }
}

static void run_server(Ctx *c, void *arg) {
  Serve *s = arg;
  prepare(s);
  Str line = str_fmt(c, "http://%s:%u  model %s, engine %s, %u slots, context %u", s->o->host,
                     http_port(s->http), s->name, s->engine, s->nslot, s->context);
  http_watch_signals(s->http);
  if (s->o->on_ready) s->o->on_ready(s->o->user, http_port(s->http));
  log_line(s, str_text(c, line));
  loop(s);
}

static void serve(Ingot *m, const IngotServe *options) {
  Ctx *c = m->c;
  api_need(c, options, "the options of the server");
  IngotServe o = *options;
  Serve *s = NEW(&c->keep, Serve);
  if (!o.host) o.host = "127.0.0.1";
  *s = (Serve){.m = m, .c = c, .o = &o, .started = (i64)time(NULL)};
  check_options(c, &o);
  s->key = read_key(c, &o);
  if (!s->key && !http_is_loopback(o.host))
    fail(c, ERR_usage, LOC_NONE,
         "--host %s: other machines can connect, so an API key is required: --api-key-file FILE",
         o.host);
  s->name = o.name ? o.name : base_name(c, m->opened.source.path ? m->opened.source.path : "model");
  s->http = http_open(c, &(HttpOptions){.host = o.host,
                                        .port = o.port,
                                        .connections = CONNECTIONS,
                                        .header_bytes = HEADER_BYTES,
                                        .body_bytes = o.body_bytes ? o.body_bytes : BODY_BYTES,
                                        .request_seconds = o.timeout ? o.timeout : REQUEST_SECONDS,
                                        .write_seconds = WRITE_SECONDS,
                                        .handle = serve_handle,
                                        .user = s});
  Err e = ctx_protect(c, run_server, s);
  http_close(s->http);
  if (e) longjmp(*c->door, (int)e);
}

IngotStatus ingot_serve(Ingot *m, const IngotServe *o) {
  API_CALL(m, serve(m, o));
}
