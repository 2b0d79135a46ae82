/* serve.h: the parts of `ingot serve`.
 *
 * A job is one request for text; each of its choices is a sequence of tokens. Sequences wait in a
 * queue for a slot: a row of the decoder with its own KV cache. All state is in Serve; memory
 * of a job belongs to the context of its request.
 */
#ifndef INGOT_SERVE_H
#define INGOT_SERVE_H

#include "api/api_internal.h"
#include "chat/chat.h"
#include "chat/grammar.h"
#include "chat/sample.h"
#include "driver/serve/http.h"
#include "io/json.h"

typedef struct Serve Serve;
typedef struct ServeJob ServeJob;
typedef struct ServeSeq ServeSeq;
typedef struct ServeSlot ServeSlot;
typedef struct ServeStats ServeStats;
typedef struct Histogram Histogram;

enum {
  SERVE_STOPS = 16, /* stop strings */
  SERVE_STOP_BYTES = 256,
  SERVE_CHOICES = 64,             /* sequences of one request */
  SERVE_TOP = 20,                 /* top_logprobs */
  SERVE_BIAS = 1024,              /* entries of logit_bias */
  SERVE_BUCKETS = 12,             /* buckets of a histogram */
  SERVE_DRAFT = LM_SLOT_ROWS - 1, /* drafted tokens of one run */
  SERVE_CLIENTS = 1024            /* hashes of client addresses */
};

/* How the model writes a tool call. */
typedef enum ToolStyle { TOOL_none, TOOL_tags, TOOL_mistral, TOOL_json } ToolStyle;

struct ServeSeq {
  ServeJob *job;
  ServeSeq *next; /* in the queue */
  u64 round;      /* its place in the queue */
  u32 index;
  i32 slot; /* -1: none yet */
  u32 *ids; /* prompt, then answer */
  u32 n, nprompt, ncached, nanswer;
  u32 ndraft, drafted, accepted; /* drafts: of this run, in all, of them accepted */
  u32 skip_drafts;               /* runs without drafts until the next attempt */
  TokenSampler sampler;
  Detok detok;
  StopStrings stops;
  u32 grammar;           /* state */
  StrBuf text;           /* the answer */
  size_t said;           /* bytes of it that were delivered */
  StrBuf content, calls; /* without stream: what was delivered */
  u32 ncall;
  bool in_call;
  StrBuf token, number, top, offset; /* JSON of logprobs not delivered yet; chat: only token */
  const char *finish;                /* finish_reason; NULL: not finished */
  double last;                       /* milliseconds: of the last token */
};

struct ServeJob {
  Serve *s;
  HttpRequest *r;
  ServeJob *next; /* next of all jobs */
  bool chat, stream, usage;
  u32 nseq, left; /* left: sequences that go on */
  u32 copies;     /* sequences of each prompt */
  ServeSeq *seq;
  u32 most; /* tokens of an answer */
  i32 top;  /* top_logprobs; -1: no logprobs */
  u32 nbias;
  struct {
    u32 id;
    float by;
  } bias[SERVE_BIAS];
  u32 nstop;
  const char *stop[SERVE_STOPS];
  size_t stop_length[SERVE_STOPS];
  TokenSampler sampler;
  u64 seed;
  Grammar *grammar; /* NULL: none */
  ToolStyle tools;
  bool one_call;     /* at most one tool call */
  u32 mark[2];       /* special tokens that open and close a call; UINT32_MAX: none */
  const char *param; /* field that is being read, for errors */
  i64 created;
  u64 id;
  double spoke; /* milliseconds: of the last bytes sent */
};

struct ServeSlot {
  ServeSeq *seq; /* NULL: free */
  u32 *ids;      /* in its KV cache */
  u32 n, take;   /* number; tokens of this run */
  u64 used;      /* time of last use, in runs */
};

struct Histogram {
  u64 n[SERVE_BUCKETS + 1];
  double sum;
};

struct ServeStats {
  u64 requests, refused, cancelled, finished;
  u64 prompt_tokens, cached_tokens, answer_tokens, runs, drafted, accepted;
  Histogram first, next; /* seconds: to the first token, between tokens */
};

struct Serve {
  Ingot *m;
  Ctx *c;
  const IngotServe *o;
  Http *http;
  Vocab vocab;
  const char *engine, *name, *key;
  u32 nslot, context, chunk, ring;
  u32 ntoken; /* tokens with text and logits */
  u32 nlogit;
  ServeSlot *slot;
  i32 **in; /* ids of each slot in this run */
  i32 *rows;
  float *logits, *z;
  Candidate *candidate;
  u8 *piece, *shown, *mask;
  GrammarTokens *tokens; /* tokens of the vocabulary; made with the first grammar */
  ServeSeq *queue;
  u64 round;                       /* of the sequence that got a slot last */
  u64 client_round[SERVE_CLIENTS]; /* by hash: the earliest round of the next sequence */
  u32 queued, active;
  ServeJob *jobs;
  ServeStats stats;
  u64 turn, ids; /* runs; number of the last job */
  i64 started;
  bool drains, encoder;
  bool ranks;                 /* the encoder has one score */
  struct LmSampling sampling; /* settings of the model file */
};

/* serve_batch.c */
bool serve_has_work(const Serve *s);
void serve_step(Serve *s);                   /* one run of the model, if there is work */
void serve_enqueue(Serve *s, ServeJob *job); /* enqueues a complete job */
void serve_drop_gone(Serve *s);              /* cancels the jobs of clients that have left */

/* serve_request.c: reads a body into a job, or fails; j->param names the field. */
ServeJob *serve_read_job(Serve *s, HttpRequest *r, bool chat);
const char *serve_param(const HttpRequest *r);

/* serve_reply.c */
void serve_begin(ServeJob *j);                      /* begins a stream */
void serve_say(ServeSeq *q, bool end);              /* delivers new text */
void serve_finish(ServeSeq *q, const char *reason); /* and answers after the last sequence */
void serve_ping(ServeJob *j, double now);           /* keeps a silent stream open */
void serve_error(HttpRequest *r, int status, const char *type, const char *param,
                 const char *message);
void serve_logprob(ServeSeq *q, const float *z, u32 id);
void serve_close(ServeJob *j); /* answers a finished job and frees it */

/* serve_schema.c: writes GBNF rules for the JSON texts of a schema; returns the name of the first.
 * Keywords that it cannot enforce fail. */
const char *serve_schema(StrBuf *t, const JsonDoc *d, const Json *schema, const char *name);
/* Rules of JSON texts; they begin with "json-". */
extern const char serve_json_rules[];

extern const char *const serve_call_open[], *const serve_call_close[]; /* by ToolStyle */

/* serve_json.c */
bool json_is_listed(const char *words, const Json *key); /* words: between blanks */
void json_put(StrBuf *t, const Json *j);
JinjaVal json_to_jinja(Arena *a, const Json *j, bool marked);

/* serve_routes.c */
void serve_handle(void *user, HttpRequest *r);

#endif
