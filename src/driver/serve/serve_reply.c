/* serve_reply.c: answers in the form of the OpenAI API.
 *
 * In: the text of a sequence as it grows. Out: server-sent events, or one JSON object at the end.
 * Text that may begin a tool call is held back; a complete call becomes a delta with its name and
 * one with its arguments. Text that looks like a call, but is not one, is delivered as text.
 */
#include "driver/serve/serve.h"

#include <math.h>
#include <string.h>

static const char *kind_of(const ServeJob *j, bool chunk) {
  return !j->chat ? "text_completion" : chunk ? "chat.completion.chunk" : "chat.completion";
}

static void put_head(StrBuf *t, const ServeJob *j, bool chunk) {
  sb_fmt(t, "{\"id\":\"%s-%llx%llx\",\"object\":\"%s\",\"created\":%lld,\"model\":",
         j->chat ? "chatcmpl" : "cmpl", (unsigned long long)j->s->started,
         (unsigned long long)j->id, kind_of(j, chunk), (long long)j->created);
  sb_json(t, j->s->name, strlen(j->s->name));
}

static void put_usage(StrBuf *t, const ServeJob *j) {
  u64 in = 0, out = 0, cached = 0;
  for (u32 i = 0; i < j->nseq; i++) {
    bool first = i % j->copies == 0; /* the copies of a prompt count once */
    in += first ? j->seq[i].nprompt : 0;
    out += j->seq[i].nanswer;
    cached += first ? j->seq[i].ncached : 0;
  }
  sb_fmt(t,
         "\"usage\":{\"prompt_tokens\":%llu,\"completion_tokens\":%llu,\"total_tokens\":%llu,"
         "\"prompt_tokens_details\":{\"cached_tokens\":%llu}}",
         (unsigned long long)in, (unsigned long long)out, (unsigned long long)(in + out),
         (unsigned long long)cached);
}

/* ---- log probabilities ---- */

static double log_sum(const float *z, u32 n) {
  double top = (double)z[0], sum = 0;
  for (u32 i = 1; i < n; i++) top = (double)z[i] > top ? (double)z[i] : top;
  for (u32 i = 0; i < n; i++) sum += exp((double)z[i] - top);
  return top + log(sum);
}

/* The text of a token; special tokens have their name. */
static u32 token_text(const Serve *s, u32 id, u8 *to) {
  u32 n = grammar_piece(&s->vocab, id, to), k;
  if (n) return n;
  const u8 *at = vocab_token(&s->vocab, id, &k);
  memcpy(to, at, k);
  return k;
}

static void put_token(StrBuf *t, const Serve *s, u32 id, double logprob) {
  u8 *room = s->piece;
  u32 n = token_text(s, id, room);
  sb_puts(t, "{\"token\":");
  sb_json(t, (const char *)room, n);
  sb_fmt(t, ",\"logprob\":%.6f,\"bytes\":[", logprob);
  for (u32 i = 0; i < n; i++) sb_fmt(t, "%s%u", i ? "," : "", room[i]);
  sb_puts(t, "]");
}

/* Log probabilities of the model itself, before penalties, bias and temperature. */
void serve_logprob(ServeSeq *q, const float *z, u32 id) {
  const ServeJob *j = q->job;
  Serve *s = j->s;
  double all = log_sum(z, s->ntoken);
  u32 best[SERVE_TOP], n = 0;
  for (u32 i = 0; j->top > 0 && i < s->ntoken; i++) {
    if (n == (u32)j->top && !(z[i] > z[best[n - 1]])) continue;
    u32 k = n < (u32)j->top ? n++ : n - 1;
    for (; k && z[i] > z[best[k - 1]]; k--) best[k] = best[k - 1];
    best[k] = i;
  }
  const char *comma = q->token.n ? "," : "";
  if (j->chat) {
    sb_puts(&q->token, comma);
    put_token(&q->token, s, id, (double)z[id] - all);
    sb_puts(&q->token, ",\"top_logprobs\":[");
    for (u32 i = 0; i < n; i++) {
      sb_puts(&q->token, i ? "," : "");
      put_token(&q->token, s, best[i], (double)z[best[i]] - all);
      sb_puts(&q->token, "}");
    }
    sb_puts(&q->token, "]}");
    return;
  }
  sb_puts(&q->token, comma);
  u32 n_text = token_text(s, id, s->piece);
  sb_json(&q->token, (const char *)s->piece, n_text);
  sb_fmt(&q->number, "%s%.6f", comma, (double)z[id] - all);
  sb_fmt(&q->offset, "%s%zu", comma, q->text.n);
  sb_fmt(&q->top, "%s{", comma);
  for (u32 i = 0; i < n; i++) {
    sb_puts(&q->top, i ? "," : "");
    n_text = token_text(s, best[i], s->piece);
    sb_json(&q->top, (const char *)s->piece, n_text);
    sb_fmt(&q->top, ":%.6f", (double)z[best[i]] - all);
  }
  sb_puts(&q->top, "}");
}

static void put_logprobs(StrBuf *t, ServeSeq *q) {
  if (q->job->top < 0) {
    sb_puts(t, ",\"logprobs\":null");
    return;
  }
  if (q->job->chat)
    sb_fmt(t, ",\"logprobs\":{\"content\":[%s],\"refusal\":null}", sb_cstr(&q->token));
  else
    sb_fmt(t,
           ",\"logprobs\":{\"tokens\":[%s],\"token_logprobs\":[%s],\"top_logprobs\":[%s],"
           "\"text_offset\":[%s]}",
           sb_cstr(&q->token), sb_cstr(&q->number), sb_cstr(&q->top), sb_cstr(&q->offset));
  q->token.n = q->number.n = q->top.n = q->offset.n = 0;
}

/* ---- deltas ---- */

static void send(ServeJob *j, StrBuf *t) {
  j->spoke = time_ms();
  sb_puts(t, "\n\n");
  http_put(j->r, t->at, t->n);
}

/* One event: delta is the JSON of a delta, or for completions of a text. */
static void send_delta(ServeSeq *q, const char *delta, const char *finish) {
  ServeJob *j = q->job;
  Mark mark = arena_mark(&j->r->c->scratch);
  StrBuf t = sb_new(&j->r->c->scratch);
  sb_puts(&t, "data: ");
  put_head(&t, j, true);
  sb_fmt(&t, ",\"choices\":[{\"index\":%u,\"%s\":%s", q->index, j->chat ? "delta" : "text", delta);
  put_logprobs(&t, q);
  sb_fmt(&t, finish ? ",\"finish_reason\":\"%s\"}]%s}" : ",\"finish_reason\":null}]%s%s}",
         finish ? finish : "", j->usage ? ",\"usage\":null" : "");
  send(j, &t);
  arena_rewind(&j->r->c->scratch, mark);
}

static void say_text(ServeSeq *q, const char *at, size_t n) {
  ServeJob *j = q->job;
  if (!j->stream) {
    sb_put(&q->content, at, n);
    return;
  }
  if (!n) return;
  Mark mark = arena_mark(&j->r->c->scratch);
  StrBuf t = sb_new(&j->r->c->scratch);
  if (j->chat) sb_puts(&t, "{\"content\":");
  sb_json(&t, at, n);
  if (j->chat) sb_puts(&t, "}");
  send_delta(q, sb_cstr(&t), NULL);
  arena_rewind(&j->r->c->scratch, mark);
}

static void say_call(ServeSeq *q, const Json *name, const StrBuf *args) {
  ServeJob *j = q->job;
  Ctx *c = j->r->c;
  StrBuf t = sb_new(&c->keep);
  if (j->one_call && q->ncall) return;
  u32 k = q->ncall++;
  if (j->stream)
    sb_fmt(&t, "{\"tool_calls\":[{\"index\":%u,", k);
  else
    sb_fmt(&t, "%s{", k ? "," : "");
  sb_fmt(&t, "\"id\":\"call_%llx_%u_%u\",\"type\":\"function\",\"function\":{\"name\":",
         (unsigned long long)j->id, q->index, k);
  sb_json(&t, name->text, name->n);
  sb_puts(&t, ",\"arguments\":");
  sb_json(&t, args->at, j->stream ? 0 : args->n);
  sb_puts(&t, "}}");
  if (!j->stream) {
    sb_put(&q->calls, t.at, t.n);
    return;
  }
  sb_puts(&t, "]}");
  send_delta(q, sb_cstr(&t), NULL);
  t.n = 0;
  sb_fmt(&t, "{\"tool_calls\":[{\"index\":%u,\"function\":{\"arguments\":", k);
  sb_json(&t, args->at, args->n);
  sb_puts(&t, "}}]}");
  send_delta(q, sb_cstr(&t), NULL);
}

/* ---- tool calls ---- */

typedef struct CallText {
  ServeSeq *q;
  const char *at;
  size_t n;
  JsonDoc doc;
} CallText;

static void parse_call(Ctx *c, void *arg) {
  CallText *x = arg;
  x->doc = json_read(c, (const u8 *)x->at, x->n, LOC_NONE, &c->keep);
}

static const Json *call_args(const Json *call) {
  const Json *args = json_get(call, "arguments");
  return args ? args : json_get(call, "parameters");
}

static bool is_call(const Json *j) {
  const Json *name = json_get(j, "name"), *args = call_args(j);
  return name && name->kind == JS_string && args &&
         (args->kind == JS_object || args->kind == JS_string);
}

/* Delivers the calls of a text: an object, or an array of objects. False: it is something else. */
static bool say_calls(ServeSeq *q, const char *at, size_t n) {
  Ctx *c = q->job->r->c;
  const char *why;
  CallText x = {.q = q, .at = arena_copy(&c->keep, at, n), .n = n};
  if (!n || ctx_try(c, parse_call, &x, &why)) return false;
  const Json *root = x.doc.root, *list = root->kind == JS_array ? root->at : root;
  u32 count = root->kind == JS_array ? root->n : 1;
  for (u32 i = 0; i < count; i++)
    if (!is_call(&list[i])) return false;
  for (u32 i = 0; i < count; i++) {
    const Json *args = call_args(&list[i]);
    StrBuf t = sb_new(&c->keep);
    if (args->kind == JS_string)
      sb_put(&t, args->text, args->n);
    else
      json_put(&t, args);
    say_call(q, json_get(&list[i], "name"), &t);
  }
  return count > 0;
}

static const char *find(const char *in, size_t n, const char *what) {
  size_t k = strlen(what);
  for (; n >= k; in++, n--)
    if (!memcmp(in, what, k)) return in;
  return NULL;
}

/* Length of the longest end of the text that `what` may begin with. */
static size_t held_back(const char *at, size_t n, const char *what) {
  size_t k = strlen(what) - 1;
  if (k > n) k = n;
  while (k && memcmp(at + n - k, what, k)) k--;
  return k;
}

void serve_say(ServeSeq *q, bool end) {
  static const char *const open[] = {
      [TOOL_tags] = "<tool_call>", [TOOL_mistral] = "[TOOL_CALLS]", [TOOL_json] = "{"};
  ToolStyle style = q->job->tools;
  for (;;) {
    const char *at = q->text.at + q->said;
    size_t n = q->text.n - q->said;
    if (style == TOOL_none) {
      say_text(q, at, n);
      q->said += n;
      return;
    }
    if (!q->in_call) {
      size_t blank = 0;
      while (blank < n && (at[blank] == ' ' || at[blank] == '\n')) blank++;
      const char *mark = style == TOOL_json
                             ? (q->said == 0 && blank < n && at[blank] == '{' ? at + blank : NULL)
                             : find(at, n, open[style]);
      size_t text = mark ? (size_t)(mark - at) : n;
      if (!mark && !end && style != TOOL_json) text -= held_back(at, n, open[style]);
      if (!mark && style == TOOL_json && q->said == 0 && blank == n && !end) return;
      /* white space before a call is not content */
      if (!mark || blank < text) say_text(q, at, text);
      q->said += text;
      if (!mark) return;
      q->in_call = true;
      continue;
    }
    const char *from = at + (style == TOOL_json ? 0 : strlen(open[style]));
    size_t left = (size_t)(at + n - from);
    const char *stop = style == TOOL_tags ? find(from, left, "</tool_call>") : NULL;
    if (!stop && !end) return;
    size_t inner = stop ? (size_t)(stop - from) : left;
    size_t all = stop ? (size_t)(stop - at) + strlen("</tool_call>") : n;
    if (!say_calls(q, from, inner)) say_text(q, at, all);
    q->said += all;
    q->in_call = false;
    if (q->said == q->text.n) return;
  }
}

/* ---- begin and end ---- */

static void put_begin(Ctx *c, void *arg) {
  ServeJob *j = arg;
  (void)c;
  if (!j->stream) return;
  http_begin(j->r, "text/event-stream; charset=utf-8");
  j->spoke = time_ms();
  for (u32 i = 0; j->chat && i < j->nseq; i++)
    send_delta(&j->seq[i], "{\"role\":\"assistant\",\"content\":\"\"}", NULL);
}

void serve_begin(ServeJob *j) {
  if (ctx_protect(j->r->c, put_begin, j)) j->r->failed = true;
}

void serve_ping(ServeJob *j, double now) {
  enum { PING_MS = 5000 };
  if (!j->stream || !j->left || now - j->spoke < PING_MS) return;
  http_put(j->r, ": ping\n\n", 8);
  j->spoke = now;
}

void serve_finish(ServeSeq *q, const char *reason) {
  ServeJob *j = q->job;
  Serve *s = j->s;
  size_t n = detok_end(&q->detok, &s->vocab, s->piece);
  if (n) sb_put(&q->text, s->shown, stop_strings_put(&q->stops, s->piece, n, s->shown));
  sb_put(&q->text, s->shown, stops_end(&q->stops, s->shown));
  serve_say(q, true);
  q->finish = q->ncall && !strcmp(reason, "stop") ? "tool_calls" : reason;
  j->left--;
  if (j->stream) send_delta(q, j->chat ? "{}" : "\"\"", q->finish);
}

static void put_choice(StrBuf *t, ServeSeq *q) {
  ServeJob *j = q->job;
  sb_fmt(t, "%s{\"index\":%u,", q->index ? "," : "", q->index);
  if (j->chat) {
    sb_puts(t, "\"message\":{\"role\":\"assistant\",\"content\":");
    if (q->ncall && !q->content.n)
      sb_puts(t, "null");
    else
      sb_json(t, q->content.at, q->content.n);
    if (q->ncall) sb_fmt(t, ",\"tool_calls\":[%s]", sb_cstr(&q->calls));
    sb_puts(t, "}");
  } else {
    sb_puts(t, "\"text\":");
    sb_json(t, q->content.at, q->content.n);
  }
  put_logprobs(t, q);
  sb_fmt(t, ",\"finish_reason\":\"%s\"}", q->finish);
}

/* The last text of an answer: all of it without stream. */
typedef struct LastText {
  ServeJob *j;
  StrBuf out;
} LastText;

static void put_last(Ctx *c, void *arg) {
  LastText *x = arg;
  ServeJob *j = x->j;
  StrBuf *t = &x->out;
  *t = sb_new(&c->keep);
  if (j->stream) {
    if (j->usage) {
      sb_puts(t, "data: ");
      put_head(t, j, true);
      sb_puts(t, ",\"choices\":[],");
      put_usage(t, j);
      sb_puts(t, "}\n\n");
    }
    sb_puts(t, "data: [DONE]\n\n");
    return;
  }
  put_head(t, j, false);
  sb_puts(t, ",\"choices\":[");
  for (u32 i = 0; i < j->nseq; i++) put_choice(t, &j->seq[i]);
  sb_puts(t, "],");
  put_usage(t, j);
  sb_puts(t, "}\n");
}

void serve_close(ServeJob *j) {
  LastText x = {.j = j};
  if (ctx_protect(j->r->c, put_last, &x)) {
    http_fail(j->r);
  } else if (j->stream) {
    http_put(j->r, x.out.at, x.out.n);
    http_end(j->r);
  } else {
    http_reply(j->r, 200, "application/json", x.out.at, x.out.n, 0);
  }
}

typedef struct ErrorText {
  int status;
  const char *type, *param, *message;
  StrBuf out;
} ErrorText;

static void put_error(Ctx *c, void *arg) {
  ErrorText *x = arg;
  StrBuf *t = &x->out;
  *t = sb_new(&c->keep);
  sb_puts(t, "{\"error\":{\"message\":");
  sb_json(t, x->message, strlen(x->message));
  sb_fmt(t, ",\"type\":\"%s\",\"param\":", x->type);
  if (x->param)
    sb_json(t, x->param, strlen(x->param));
  else
    sb_puts(t, "null");
  sb_fmt(t, ",\"code\":%d}}\n", x->status);
}

void serve_error(HttpRequest *r, int status, const char *type, const char *param,
                 const char *message) {
  ErrorText x = {status, type, param, message, {0}};
  u32 retry = status == 429 || status == 503;
  if (ctx_protect(r->c, put_error, &x))
    http_fail(r);
  else
    http_reply(r, status, "application/json", x.out.at, x.out.n, retry);
}
