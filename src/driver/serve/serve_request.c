/* serve_request.c: the body of /v1/chat/completions or /v1/completions -> a job.
 *
 * In: JSON in the form of the OpenAI API. Out: a job with the token ids of its prompts, or a
 * failure that names the field. Unknown fields fail: nothing that a client asks for is ignored,
 * except notes that do not change the answer (user, metadata).
 */
#include "driver/serve/serve.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

typedef struct Body {
  Serve *s;
  ServeJob *j;
  Ctx *c;
  JsonDoc doc;
  const Json *root;
} Body;

/* Fields that are read, between blanks. */
static const char common_fields[] =
    " model max_tokens temperature top_p top_k min_p repeat_penalty frequency_penalty "
    "presence_penalty seed stop n stream stream_options logprobs logit_bias response_format "
    "grammar "
    "user ";
static const char chat_fields[] =
    " messages max_completion_tokens top_logprobs tools tool_choice parallel_tool_calls "
    "chat_template_kwargs metadata safety_identifier prompt_cache_key ";
static const char text_fields[] = " prompt ";

/* Fields of which only one value, or null, is accepted. */
static const struct {
  const char *name, *neutral, *also; /* also: a second value, or NULL */
} fixed_fields[] = {{"store", "false", NULL},
                    {"echo", "false", NULL},
                    {"best_of", "1", NULL},
                    {"suffix", "\"\"", NULL},
                    {"service_tier", "\"auto\"", "\"default\""}};

/* Fields of other servers, and the field with the same meaning here. */
static const struct {
  const char *name, *own;
} other_names[] = {{"repetition_penalty", "repeat_penalty"},
                   {"n_predict", "max_tokens"},
                   {"max_new_tokens", "max_tokens"},
                   {"stop_sequences", "stop"}};

/* ---- values ---- */

static const Json *field(Body *b, const char *name) {
  const Json *v = json_get(b->root, name);
  b->j->param = name;
  return v && v->kind == JS_null ? NULL : v;
}

static _Noreturn void refuse(Body *b, const char *what) {
  fail(b->c, ERR_usage, LOC_NONE, "'%s': %s", b->j->param, what);
}

static double number(Body *b, const char *name, double lo, double hi, double otherwise) {
  const Json *v = field(b, name);
  if (!v) return otherwise;
  double f = v->kind == JS_int ? (double)v->i : v->kind == JS_float ? v->f : lo - 1;
  if (!(f >= lo && f <= hi))
    fail(b->c, ERR_usage, LOC_NONE, "'%s': expected a number from %g to %g", name, lo, hi);
  return f;
}

static i64 whole(Body *b, const char *name, i64 lo, i64 hi, i64 otherwise) {
  const Json *v = field(b, name);
  if (!v) return otherwise;
  if (v->kind != JS_int || v->i < lo || v->i > hi)
    fail(b->c, ERR_usage, LOC_NONE, "'%s': expected a whole number from %lld to %lld", name,
         (long long)lo, (long long)hi);
  return v->i;
}

static bool flag(Body *b, const char *name, bool otherwise) {
  const Json *v = field(b, name);
  if (v && v->kind != JS_bool) refuse(b, "expected true or false");
  return v ? v->b : otherwise;
}

static void check_fields(Body *b) {
  for (u32 i = 0; i < b->root->n; i++) {
    const Json *key = json_key(b->root, i), *v = json_value(b->root, i);
    const char *name = b->j->param = str_text(b->c, json_str(b->c, key));
    u32 k = 0, n = sizeof fixed_fields / sizeof *fixed_fields;
    if (json_is_listed(common_fields, key) ||
        json_is_listed(b->j->chat ? chat_fields : text_fields, key))
      continue;
    while (k < n && !json_is(key, fixed_fields[k].name)) k++;
    for (u32 i = 0; k == n && i < sizeof other_names / sizeof *other_names; i++)
      if (json_is(key, other_names[i].name))
        fail(b->c, ERR_usage, LOC_NONE, "'%s' is an unknown field of this request; use '%s'", name,
             other_names[i].own);
    if (k == n)
      fail(b->c, ERR_usage, LOC_NONE, "'%s' is an unknown field of this request",
           show_text(b->c, json_str(b->c, key)));
    StrBuf t = sb_new(&b->c->keep);
    json_put(&t, v);
    const char *also = fixed_fields[k].also;
    if (v->kind != JS_null && strcmp(sb_cstr(&t), fixed_fields[k].neutral) &&
        !(also && !strcmp(sb_cstr(&t), also)))
      fail(b->c, ERR_usage, LOC_NONE, "'%s' is not supported: leave it out", name);
  }
  b->j->param = NULL;
}

/* ---- sampling ---- */

static void read_stops(Body *b) {
  ServeJob *j = b->j;
  const Json *v = field(b, "stop");
  u32 n = !v ? 0 : v->kind == JS_array ? v->n : 1;
  if (n > SERVE_STOPS) refuse(b, "expected at most 16 texts");
  for (u32 i = 0; i < n; i++) {
    const Json *x = v->kind == JS_array ? &v->at[i] : v;
    if (x->kind != JS_string || !x->n || x->n > SERVE_STOP_BYTES)
      refuse(b, "expected texts of 1 to 256 bytes");
    j->stop[i] = x->text;
    j->stop_length[i] = x->n;
  }
  j->nstop = n;
}

static void read_bias(Body *b) {
  ServeJob *j = b->j;
  const Json *v = field(b, "logit_bias");
  if (!v) return;
  if (v->kind != JS_object || v->n > SERVE_BIAS)
    refuse(b, "expected an object of at most 1024 token ids");
  for (u32 i = 0; i < v->n; i++) {
    const Json *key = json_key(v, i), *x = json_value(v, i);
    double by = x->kind == JS_int ? (double)x->i : x->kind == JS_float ? x->f : 1000;
    u64 id = 0;
    for (u32 k = 0; k < key->n; k++)
      id = key->text[k] >= '0' && key->text[k] <= '9' && id < 1u << 30
               ? id * 10 + (u64)(key->text[k] - '0')
               : UINT32_MAX;
    if (!key->n || id >= b->s->ntoken || !(by >= -100 && by <= 100))
      refuse(b, "expected token ids, and numbers from -100 to 100");
    /* -100 bans a token, and 100 forces it, whatever the logits */
    j->bias[j->nbias].id = (u32)id;
    j->bias[j->nbias++].by = by == -100 ? -1e30f : by == 100 ? 1e30f : (float)by;
  }
}

static void read_logprobs(Body *b) {
  ServeJob *j = b->j;
  j->top = -1;
  if (!j->chat) {
    j->top = (i32)whole(b, "logprobs", 0, SERVE_TOP, -1);
    return;
  }
  bool on = flag(b, "logprobs", false);
  i64 top = whole(b, "top_logprobs", 0, SERVE_TOP, -1);
  if (top >= 0 && !on) refuse(b, "expected only with 'logprobs': true");
  if (on) j->top = top < 0 ? 0 : (i32)top;
}

/* The default of the model file, else that of the API. */
static double own_or(double own, double otherwise) {
  return own >= 0 ? own : otherwise;
}

static void read_sampling(Body *b) {
  ServeJob *j = b->j;
  const struct LmSampling *own = &b->s->sampling;
  i64 seed = whole(b, "seed", INT64_MIN, INT64_MAX, 0);
  j->sampler = (TokenSampler){
      .temperature = (float)number(b, "temperature", 0, 100, own_or(own->temperature, 1)),
      .top_k = (u32)whole(b, "top_k", 0, 1 << 30, (i64)own_or(own->top_k, 0)),
      .top_p = (float)number(b, "top_p", 0, 1, own_or(own->top_p, 1)),
      .min_p = (float)number(b, "min_p", 0, 1, own_or(own->min_p, 0)),
      .repeat = (float)number(b, "repeat_penalty", 0.01, 100, own_or(own->repeat, 1)),
      .frequency = (float)number(b, "frequency_penalty", -2, 2, 0),
      .presence = (float)number(b, "presence_penalty", -2, 2, 0),
      .window = 512};
  j->seed = (u64)seed;
  if (!field(b, "seed") && getrandom(&j->seed, sizeof j->seed, 0) != sizeof j->seed)
    j->seed = (u64)(time_ms() * 1e6);
  read_stops(b);
  read_bias(b);
  read_logprobs(b);
  j->stream = flag(b, "stream", false);
  const Json *more = field(b, "stream_options");
  if (more && more->kind != JS_object) refuse(b, "expected an object");
  for (u32 i = 0; more && i < more->n; i++)
    if (!json_is(json_key(more, i), "include_usage") &&
        !json_is(json_key(more, i), "include_obfuscation"))
      refuse(b, "expected include_usage only");
  if (more && !j->stream) refuse(b, "expected only with 'stream': true");
  const Json *usage = json_get(more, "include_usage");
  j->usage = usage && usage->kind == JS_bool && usage->b;
}

/* ---- constraints ---- */

static void make_tokens(Ctx *c, void *arg) {
  Serve *s = arg;
  s->tokens = grammar_tokens(c, &s->vocab, s->ntoken);
}

static Grammar *compile(Body *b, const char *text, size_t n) {
  Serve *s = b->s;
  Mark mark = arena_mark(&s->c->keep);
  if (!s->tokens && ctx_protect(s->c, make_tokens, s)) {
    arena_rewind(&s->c->keep, mark);
    fail(b->c, ERR_system, LOC_NONE, "out of memory");
  }
  return grammar_read(b->c, s->tokens, text, n);
}

static void read_format(Body *b) {
  const Json *g = field(b, "grammar"), *f = field(b, "response_format");
  const Json *type = json_get(f, "type"), *schema = json_get(f, "json_schema");
  StrBuf t = sb_new(&b->c->keep);
  if (g && g->kind != JS_string) refuse(b, "expected a grammar in GBNF, as a string");
  if (f && f->kind != JS_object) refuse(b, "expected an object");
  if (g && f && !json_is(type, "text")) refuse(b, "expected either this or 'grammar'");
  if (g) {
    b->j->param = "grammar";
    b->j->grammar = compile(b, g->text, g->n);
  }
  if (!f || json_is(type, "text")) return;
  const char *root = "json-object";
  for (u32 i = 0; i < f->n; i++)
    if (!json_is(json_key(f, i), "type") && !json_is(json_key(f, i), "schema") &&
        !json_is(json_key(f, i), "json_schema"))
      refuse(b, "expected type, and json_schema or schema");
  if (json_is(type, "json_schema") || json_get(f, "schema")) {
    if (schema && json_get(schema, "schema")) schema = json_get(schema, "schema");
    if (!schema) schema = json_get(f, "schema");
    if (!schema || schema->kind != JS_object) refuse(b, "expected json_schema.schema, an object");
    root = serve_schema(&t, &b->doc, schema, "schema");
  } else if (!json_is(type, "json_object")) {
    refuse(b, "type: expected text, json_object or json_schema");
  }
  sb_fmt(&t, "root ::= %s\n%s", root, serve_json_rules);
  b->j->grammar = compile(b, t.at, t.n);
}

/* ---- tools ---- */

static const Json *tool_function(Body *b, const Json *tool) {
  const Json *f = json_get(tool, "function"), *name = json_get(f, "name");
  if (!json_is(json_get(tool, "type"), "function") || !name || name->kind != JS_string)
    refuse(b, "expected {\"type\": \"function\", \"function\": {\"name\": ...}}");
  for (u32 i = 0; i < name->n; i++)
    if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", name->text[i]))
      refuse(b, "expected names of letters, digits, '_', '-' and '.'");
  return f;
}

/* The special token with this text. */
static u32 special_token(const Serve *s, const char *text) {
  u32 n = 0;
  for (u32 i = 0; *text && i < s->ntoken; i++) {
    const u8 *at = vocab_token(&s->vocab, i, &n);
    if (vocab_flags(&s->vocab, i) & TF_special && n == strlen(text) && !memcmp(at, text, n))
      return i;
  }
  return UINT32_MAX;
}

/* A grammar for calls of some tools: the one of this name, or NULL: any. */
static void force_tools(Body *b, const Json *tools, const Json *only) {
  static const char *const open[] = {[TOOL_tags] = "\"<tool_call>\\n\"",
                                     [TOOL_mistral] = "\"[TOOL_CALLS][\"",
                                     [TOOL_json] = "\"\""};
  static const char *const close[] = {
      [TOOL_tags] = "\"\\n</tool_call>\"", [TOOL_mistral] = "\"]\"", [TOOL_json] = "\"\""};
  StrBuf t = sb_new(&b->c->keep), root = sb_new(&b->c->keep);
  ToolStyle style = b->j->tools;
  u32 n = 0;
  for (u32 i = 0; i < tools->n; i++) {
    const Json *f = tool_function(b, &tools->at[i]), *name = json_get(f, "name");
    const Json *schema = json_get(f, "parameters");
    if (only && (only->n != name->n || memcmp(only->text, name->text, name->n))) continue;
    const char *stem = str_text(b->c, str_fmt(b->c, "tool-%u", i));
    const char *value = schema ? serve_schema(&t, &b->doc, schema, stem) : "json-object";
    sb_fmt(&root, "%s\"{\\\"name\\\": \\\"%.*s\\\", \\\"%s\\\": \" %s \"}\"", n++ ? " | " : "",
           (int)name->n, name->text, style == TOOL_json ? "parameters" : "arguments", value);
  }
  if (!n) refuse(b, "expected the name of one of the tools");
  sb_fmt(&t, "root ::= %s (%.*s) %s\n%s", open[style], (int)root.n, root.at, close[style],
         serve_json_rules);
  b->j->grammar = compile(b, t.at, t.n);
}

/* The tools that the template gets, or NULL. */
static const Json *read_tools(Body *b) {
  u32 n;
  const Json *choice = field(b, "tool_choice"), *tools = field(b, "tools");
  const char *text = vocab_section(&b->s->vocab, VP_chat, &n, 1);
  if (tools && tools->kind != JS_array) refuse(b, "expected an array");
  b->j->one_call = !flag(b, "parallel_tool_calls", true);
  b->j->param = "tool_choice";
  bool none = json_is(choice, "none"), needed = json_is(choice, "required");
  const Json *only = json_get(json_get(choice, "function"), "name");
  if (choice && !none && !needed && !json_is(choice, "auto") && !(only && only->kind == JS_string))
    refuse(b, "expected none, auto, required or a function");
  if ((needed || only) && (!tools || !tools->n)) refuse(b, "expected 'tools' too");
  b->j->param = "tools";
  for (u32 i = 0; tools && i < tools->n; i++) tool_function(b, &tools->at[i]);
  if (!tools || !tools->n || none) return NULL;
  Str all = str_intern(b->c, text, n);
  const char *template = str_text(b->c, all);
  if (!strstr(template, "tools"))
    fail(b->c, ERR_usage, LOC_NONE, "the chat template of this model does not support 'tools'");
  b->j->tools = strstr(template, "<tool_call>")    ? TOOL_tags
                : strstr(template, "[TOOL_CALLS]") ? TOOL_mistral
                                                   : TOOL_json;
  b->j->mark[0] = special_token(b->s, serve_call_open[b->j->tools]);
  b->j->mark[1] = special_token(b->s, serve_call_close[b->j->tools]);
  if (needed || only) {
    if (b->j->grammar) refuse(b, "a forced tool excludes 'response_format' and 'grammar'");
    force_tools(b, tools, only);
  }
  return tools;
}

/* ---- messages ---- */

/* The text of a content: a string, or text parts. */
static Json text_of(Body *b, const Json *content) {
  Json out = {.kind = JS_string, .text = ""};
  if (!content || content->kind == JS_null) return out;
  if (content->kind == JS_string) return *content;
  if (content->kind != JS_array) refuse(b, "content: expected a string or an array of parts");
  StrBuf t = sb_new(&b->c->keep);
  for (u32 i = 0; i < content->n; i++) {
    const Json *type = json_get(&content->at[i], "type"), *x = json_get(&content->at[i], "text");
    if (!json_is(type, "text") || !x || x->kind != JS_string)
      fail(b->c, ERR_usage, LOC_NONE,
           "'messages': content parts of type '%s' are not supported, only 'text'",
           type && type->kind == JS_string ? show_text(b->c, json_str(b->c, type)) : "unknown");
    sb_put(&t, x->text, x->n);
  }
  out.text = sb_cstr(&t);
  out.n = (u32)t.n;
  return out;
}

/* Tool calls of an earlier answer; arguments as an object, as templates expect them. */
static JinjaVal past_calls(Body *b, const Json *calls) {
  Arena *a = &b->c->work;
  JinjaVal list = jinja_list(a);
  if (calls->kind != JS_array) refuse(b, "tool_calls: expected an array");
  for (u32 i = 0; i < calls->n; i++) {
    const Json *f = json_get(&calls->at[i], "function"), *name = json_get(f, "name"),
               *args = json_get(f, "arguments");
    if (!name || name->kind != JS_string || !args || args->kind != JS_string)
      refuse(b, "tool_calls: expected function.name and function.arguments, strings");
    JinjaVal call = jinja_dict(a), fn = jinja_dict(a);
    const char *text = args->n ? args->text : "{}";
    JsonDoc parsed =
        json_read(b->c, (const u8 *)text, args->n ? args->n : 2, LOC_NONE, &b->c->keep);
    jinja_set(a, fn, "name", jinja_string(a, name->text, name->n, true));
    jinja_set(a, fn, "arguments", json_to_jinja(a, parsed.root, true));
    const Json *id = json_get(&calls->at[i], "id");
    if (id && id->kind == JS_string)
      jinja_set(a, call, "id", jinja_string(a, id->text, id->n, true));
    jinja_set(a, call, "type", jinja_string(a, "function", 8, false));
    jinja_set(a, call, "function", fn);
    jinja_add(a, list, call);
  }
  return list;
}

static void check_message(Body *b, const Json *m) {
  static const char known[] =
      " role content name tool_calls tool_call_id refusal reasoning_content audio annotations "
      "function_call ";
  if (m->kind != JS_object) refuse(b, "expected an array of objects");
  for (u32 i = 0; i < m->n; i++) {
    const Json *k = json_key(m, i), *v = json_value(m, i);
    if (!json_is_listed(known, k))
      fail(b->c, ERR_usage, LOC_NONE, "'messages': '%s' is an unknown field",
           show_text(b->c, json_str(b->c, k)));
    if (json_is_listed(" refusal audio function_call ", k) && v->kind != JS_null)
      fail(b->c, ERR_usage, LOC_NONE, "'messages': field '%s' is not supported",
           show_text(b->c, json_str(b->c, k)));
  }
}

static const u32 *chat_prompt(Body *b, const Json *tools, size_t *n) {
  Arena *a = &b->c->work;
  const Json *list = field(b, "messages"), *more;
  JinjaVal vars = jinja_dict(a), messages = jinja_list(a);
  u32 nturn = 0;
  if (!list || list->kind != JS_array || !list->n) refuse(b, "expected an array of messages");
  ChatMessage *turn = NEWS(&b->c->keep, ChatMessage, list->n);
  for (u32 i = 0; i < list->n; i++) {
    const Json *m = &list->at[i], *role = json_get(m, "role"), *x;
    check_message(b, m);
    if (!json_is(role, "system") && !json_is(role, "user") && !json_is(role, "assistant") &&
        !json_is(role, "tool") && !json_is(role, "developer"))
      refuse(b, "role: expected system, developer, user, assistant or tool");
    bool system = json_is(role, "developer") || json_is(role, "system");
    JinjaVal v = jinja_dict(a);
    Json text = text_of(b, json_get(m, "content"));
    if (system || json_is(role, "user"))
      turn[nturn++] = (ChatMessage){system ? "system" : "user", text.text, text.n};
    jinja_set(a, v, "role",
              system ? jinja_string(a, "system", 6, false)
                     : jinja_string(a, role->text, role->n, false));
    jinja_set(a, v, "content", jinja_string(a, text.text, text.n, true));
    for (u32 k = 0; k < 3; k++) {
      static const char *const names[] = {"name", "tool_call_id", "reasoning_content"};
      x = json_get(m, names[k]);
      if (x && x->kind == JS_string)
        jinja_set(a, v, names[k], jinja_string(a, x->text, x->n, true));
    }
    x = json_get(m, "tool_calls");
    if (x && x->kind != JS_null) jinja_set(a, v, "tool_calls", past_calls(b, x));
    jinja_add(a, messages, v);
  }
  more = field(b, "chat_template_kwargs");
  if (more && more->kind != JS_object) refuse(b, "expected an object");
  if (more) vars = json_to_jinja(a, more, false);
  b->j->param = "messages";
  jinja_set(a, vars, "messages", messages);
  jinja_set(a, vars, "add_generation_prompt", (JinjaVal){.kind = JK_bool, .i = 1});
  if (tools) jinja_set(a, vars, "tools", json_to_jinja(a, tools, true));
  JinjaStr s = chat_render(b->c, &b->s->vocab, vars, (i64)time(NULL), LOC_NONE, a);
  u32 lost = chat_lost(turn, nturn, s);
  if (lost < nturn)
    fail(b->c, ERR_usage, LOC_NONE,
         "'messages': the chat template of this model drops a message of role '%s'",
         turn[lost].role);
  return text_ids(b->c, &b->s->vocab, s.at, s.n, s.mark, VE_parse_special, &b->c->keep, n);
}

/* ---- prompts ---- */

static const u32 *listed_ids(Body *b, const Json *v, size_t *n) {
  u32 *ids = NEWS(&b->c->keep, u32, v->n + 1);
  for (u32 i = 0; i < v->n; i++) {
    if (v->at[i].kind != JS_int || v->at[i].i < 0 || v->at[i].i >= b->s->ntoken)
      refuse(b, "expected token ids of the vocabulary");
    ids[i] = (u32)v->at[i].i;
  }
  *n = v->n;
  return ids;
}

static const u32 *text_prompt(Body *b, const Json *v, size_t *n) {
  if (v->kind == JS_array) return listed_ids(b, v, n);
  if (v->kind != JS_string) refuse(b, "expected a string, token ids, or an array of these");
  return text_ids(b->c, &b->s->vocab, v->text, v->n, NULL, VE_add_special | VE_parse_special,
                  &b->c->keep, n);
}

static void begin_seq(Body *b, ServeSeq *q, u32 index, const u32 *ids, size_t n) {
  Serve *s = b->s;
  ServeJob *j = b->j;
  Arena *a = &b->c->keep;
  if (!n) refuse(b, "the prompt is empty, and this model has no token that begins a text");
  if (n >= s->context)
    fail(b->c, ERR_usage, LOC_NONE,
         "'%s': the prompt has %zu tokens, and the context of this server has %u (--context)",
         j->param, n, s->context);
  u32 room = s->context - (u32)n;
  *q = (ServeSeq){.job = j, .index = index, .slot = -1, .nprompt = (u32)n, .n = (u32)n};
  q->ids = NEWS(a, u32, n + (j->most < room ? j->most : room) + SERVE_DRAFT + 1);
  memcpy(q->ids, ids, n * sizeof *ids);
  q->sampler = j->sampler;
  q->sampler.state = j->seed + index;
  q->stops.text = j->stop;
  q->stops.length = j->stop_length;
  q->stops.n = j->nstop;
  q->stops.held = arena_alloc(a, SERVE_STOP_BYTES + detok_max_bytes(&s->vocab) + 12);
  q->grammar = j->grammar ? grammar_begin(j->grammar) : 0;
  q->text = q->content = q->calls = q->token = q->number = q->top = q->offset = sb_new(a);
}

ServeJob *serve_read_job(Serve *s, HttpRequest *r, bool chat) {
  Ctx *c = r->c;
  ServeJob *j = NEW(&c->keep, ServeJob);
  Body b = {.s = s, .j = j, .c = c};
  size_t n;
  *j = (ServeJob){.s = s,
                  .r = r,
                  .chat = chat,
                  .top = -1,
                  .mark = {UINT32_MAX, UINT32_MAX},
                  .created = (i64)time(NULL)};
  r->job = j;
  b.doc = json_read(c, (const u8 *)r->body, r->nbody, LOC_NONE, &c->keep);
  b.root = b.doc.root;
  if (b.root->kind != JS_object) fail(c, ERR_usage, LOC_NONE, "expected a JSON object");
  check_fields(&b);
  const Json *model = field(&b, "model");
  if (model && model->kind != JS_string) refuse(&b, "expected a string");
  read_sampling(&b);
  i64 most = whole(&b, "max_tokens", 1, INT32_MAX, s->context);
  if (chat) most = whole(&b, "max_completion_tokens", 1, INT32_MAX, most);
  j->most = (u32)most;
  u32 copies = (u32)whole(&b, "n", 1, SERVE_CHOICES, 1), nprompt = 1;
  read_format(&b);
  const Json *tools = chat ? read_tools(&b) : NULL, *prompt = NULL;
  bool many = false;
  if (!chat) {
    prompt = field(&b, "prompt");
    if (!prompt) refuse(&b, "expected a text to continue");
    many = prompt->kind == JS_array && prompt->n && prompt->at[0].kind != JS_int;
    if (many) nprompt = prompt->n;
  }
  if ((u64)copies * nprompt > SERVE_CHOICES) refuse(&b, "expected at most 64 answers");
  if (copies * nprompt > s->o->queue + (u64)s->nslot)
    refuse(&b, "expected no more answers than slots and places in the queue");
  j->copies = copies;
  j->seq = NEWS(&c->keep, ServeSeq, copies * nprompt);
  for (u32 i = 0; i < nprompt; i++) {
    const u32 *ids =
        chat ? chat_prompt(&b, tools, &n) : text_prompt(&b, many ? &prompt->at[i] : prompt, &n);
    for (u32 k = 0; k < copies; k++) begin_seq(&b, &j->seq[j->nseq++], i * copies + k, ids, n);
  }
  j->param = NULL;
  return j;
}

const char *serve_param(const HttpRequest *r) {
  const ServeJob *j = r->job;
  return j ? j->param : NULL;
}
