/* serve_batch.c: continuous batching.
 *
 * In: sequences in a queue. Out: their tokens. Method: one run of the decoder has a row for every
 * sequence that decodes, and up to `chunk` further tokens of prompts, taken in turn. A sequence
 * takes the free slot whose KV cache has the longest common prefix with its prompt. Every row has
 * the bits of its sequence alone, so answers depend on request and seed only.
 *
 * Drafts (prompt lookup): the tokens after an earlier occurrence of the last three tokens are run
 * along. Each is accepted if it equals the token that is sampled there, so the answer is the same
 * without drafts. Sequences whose drafts fail stop drafting for a while.
 */
#include "driver/serve/serve.h"

#include <string.h>

enum { DRAFT_KEY = 3, DRAFT_REACH = 4096, DRAFT_PAUSE = 32 };

bool serve_has_work(const Serve *s) {
  return s->queued || s->active;
}

/* The next round of a client, which it keeps after its answers. Clients whose hashes collide share
 * an entry: they may wait longer, but not forever. */
static u64 *next_round(Serve *s, const ServeSeq *q) {
  return &s->client_round[q->job->r->client % SERVE_CLIENTS];
}

/* Fair queuing: the queue is sorted by rounds, and each round has one sequence of every client. */
static void enqueue(Serve *s, ServeSeq *q) {
  ServeSeq **at = &s->queue;
  u64 next = *next_round(s, q);
  q->round = next > s->round ? next : s->round;
  for (const ServeSeq *x = s->queue; x; x = x->next)
    if (x->job->r->client == q->job->r->client && x->round >= q->round) q->round = x->round + 1;
  while (*at && (*at)->round <= q->round) at = &(*at)->next;
  q->next = *at;
  *at = q;
  s->queued++;
}

void serve_enqueue(Serve *s, ServeJob *job) {
  job->next = s->jobs;
  s->jobs = job;
  job->left = job->nseq;
  for (u32 i = 0; i < job->nseq; i++) enqueue(s, &job->seq[i]);
}

static void rewind_slot(Serve *s, u32 i, u32 n) {
  s->slot[i].n = n;
  IngotStatus bad = ingot_rewind(s->m, i, n);
  if (bad) longjmp(*s->c->door, (int)bad);
}

/* ---- slots ---- */

/* Tokens of the prompt that the slot has; at least one must run, for its logits. */
static u32 shared(const Serve *s, const ServeSlot *t, const ServeSeq *q) {
  u32 n = 0;
  while (n < t->n && n + 1 < q->nprompt && t->ids[n] == q->ids[n]) n++;
  return n < t->n && t->n > s->ring ? 0 : n;
}

/* The free slot for a sequence: most shared tokens, unless that would waste most of a long cache;
 * then least recently used. */
static i32 choose_slot(const Serve *s, const ServeSeq *q) {
  i32 best = -1;
  u32 most = 0;
  for (u32 i = 0; i < s->nslot; i++) {
    const ServeSlot *t = &s->slot[i];
    if (t->seq) continue;
    u32 n = shared(s, t, q);
    if (n < t->n / 2 && n < q->nprompt / 2) n = 0;
    if (best >= 0 && (n < most || (n == most && t->used >= s->slot[best].used))) continue;
    best = (i32)i;
    most = n;
  }
  return best;
}

static void assign_slots(Serve *s) {
  while (s->queue) {
    ServeSeq *q = s->queue;
    i32 i = choose_slot(s, q);
    if (i < 0) return;
    s->queue = q->next;
    s->round = q->round;
    *next_round(s, q) = q->round + 1;
    s->queued--;
    s->active++;
    ServeSlot *t = &s->slot[i];
    t->seq = q;
    q->slot = i;
    q->ncached = shared(s, t, q);
    rewind_slot(s, (u32)i, q->ncached);
    s->stats.prompt_tokens += q->nprompt;
    s->stats.cached_tokens += q->ncached;
  }
}

static void release(Serve *s, ServeSeq *q) {
  if (q->slot < 0) return;
  s->slot[q->slot].seq = NULL;
  q->slot = -1;
  s->active--;
}

static bool has_left(const ServeJob *j) {
  return j->r->gone || j->r->failed;
}

void serve_drop_gone(Serve *s) {
  bool any = false;
  for (ServeJob *j = s->jobs; j; j = j->next) any = any || has_left(j);
  if (!any) return;
  ServeSeq **at = &s->queue;
  while (*at) {
    if (has_left((*at)->job)) {
      *at = (*at)->next;
      s->queued--;
    } else {
      at = &(*at)->next;
    }
  }
  for (ServeJob **p = &s->jobs; *p;) {
    ServeJob *j = *p;
    if (!has_left(j)) {
      p = &j->next;
      continue;
    }
    *p = j->next;
    for (u32 i = 0; i < j->nseq; i++) release(s, &j->seq[i]);
    s->stats.cancelled += j->r->gone;
    j->r->gone ? http_end(j->r) : http_fail(j->r);
  }
}

/* ---- tokens ---- */

static void count_time(Histogram *h, double seconds) {
  u32 i = 0;
  for (double most = 0.001; i < SERVE_BUCKETS && seconds > most; i++) most *= i % 3 == 1 ? 2.5 : 2;
  h->n[i]++;
  h->sum += seconds;
}

static u32 sample(Serve *s, ServeSeq *q, const float *z) {
  ServeJob *j = q->job;
  const float *from = z;
  if (j->nbias || j->grammar) {
    memcpy(s->z, z, s->ntoken * sizeof *z);
    from = s->z;
  }
  for (u32 i = 0; i < j->nbias; i++)
    if (j->bias[i].id < s->ntoken) s->z[j->bias[i].id] += j->bias[i].by;
  if (j->grammar) {
    const u8 *mask = grammar_mask(j->grammar, q->grammar);
    for (u32 i = 0; i < s->ntoken; i++)
      if (!(mask[i / 8] >> i % 8 & 1)) s->z[i] = -3.4028235e38f;
  }
  return sample_next(&q->sampler, from, s->ntoken, q->ids + q->nprompt, q->n - q->nprompt,
                     s->candidate);
}

/* Takes the next token of an answer. No token may follow if the vocabulary lacks the bytes that the
 * grammar needs. */
static void take_token(Serve *s, ServeSeq *q, const float *z) {
  ServeJob *j = q->job;
  if (j->grammar && !grammar_allows(j->grammar, q->grammar)) {
    serve_finish(q, "length");
    return;
  }
  u32 id = sample(s, q, z);
  double now = time_ms();
  if (q->nanswer)
    count_time(&s->stats.next, (now - q->last) * 1e-3);
  else
    count_time(&s->stats.first, (now - j->r->start) * 1e-3);
  q->last = now;
  s->stats.answer_tokens++;
  q->nanswer++;
  if (vocab_stops(&s->vocab, id)) {
    serve_finish(q, "stop");
    return;
  }
  if (j->top >= 0) serve_logprob(q, z, id);
  if (id == j->mark[0] || id == j->mark[1]) /* special tokens have no text otherwise */
    sb_puts(&q->text, (id == j->mark[0] ? serve_call_open : serve_call_close)[j->tools]);
  size_t n = detok_put(&q->detok, &s->vocab, id, s->piece);
  sb_put(&q->text, s->shown, stop_strings_put(&q->stops, s->piece, n, s->shown));
  q->ids[q->n++] = id;
  if (j->grammar) q->grammar = grammar_step(j->grammar, q->grammar, id);
  if (q->stops.stopped)
    serve_finish(q, j->grammar ? "length" : "stop"); /* the grammar wants more text */
  else if (j->grammar && grammar_is_final(j->grammar, q->grammar))
    serve_finish(q, "stop");
  else if (q->nanswer >= j->most || q->n >= s->context)
    serve_finish(q, "length");
  else
    serve_say(q, false);
  if (!q->finish && j->one_call && q->ncall) serve_finish(q, "stop");
}

/* ---- drafts ---- */

/* Appends the tokens that followed the last occurrence of the last tokens. */
static void draft(Serve *s, ServeSeq *q) {
  u32 room = s->context - q->n, left = q->job->most - q->nanswer, most = SERVE_DRAFT;
  q->ndraft = 0;
  if (s->active > 2 || q->n < DRAFT_KEY + 1) return;
  if (q->skip_drafts) {
    q->skip_drafts--;
    return;
  }
  if (most > room) most = room;
  if (most + 1 > left) most = left - 1;
  u32 first = q->n > DRAFT_REACH ? q->n - DRAFT_REACH : 0;
  for (u32 i = q->n - DRAFT_KEY; i-- > first;) {
    if (memcmp(q->ids + i, q->ids + q->n - DRAFT_KEY, DRAFT_KEY * sizeof *q->ids)) continue;
    u32 from = i + DRAFT_KEY;
    while (q->ndraft < most && from + q->ndraft < q->n) {
      q->ids[q->n + q->ndraft] = q->ids[from + q->ndraft];
      q->ndraft++;
    }
    return;
  }
}

typedef struct Rows {
  ServeSeq *q;
  const float *z;
  u32 ndraft, accepted, drafts[SERVE_DRAFT];
} Rows;

/* Samples after each row, as long as the drafted token is the sampled one. */
static void sample_rows(Ctx *c, void *arg) {
  Rows *r = arg;
  ServeSeq *q = r->q;
  Serve *s = q->job->s;
  u32 known = q->n;
  (void)c;
  for (u32 i = 0;; i++) {
    take_token(s, q, r->z + (size_t)i * s->nlogit);
    if (i == r->ndraft || q->finish || q->ids[known + i] != r->drafts[i]) return;
    r->accepted++;
  }
}

static void cut(Ctx *c, void *arg) {
  (void)c;
  serve_finish(arg, "length");
}

/* Takes the tokens of a slot after a run. The KV cache keeps what was accepted. A failure, such as
 * a grammar with too many states, ends the answer; without memory the request fails. */
static void take_rows(Serve *s, u32 slot, const float *z) {
  ServeSlot *t = &s->slot[slot];
  ServeSeq *q = t->seq;
  Rows r = {.q = q, .z = z, .ndraft = q->ndraft};
  memcpy(r.drafts, q->ids + q->n, r.ndraft * sizeof *r.drafts);
  q->ndraft = 0;
  Ctx *c = q->job->r->c;
  Err e = ctx_protect(c, sample_rows, &r);
  if (e && e != ERR_system && !q->finish) e = ctx_protect(c, cut, q);
  if (e == ERR_system) q->job->r->failed = true;
  u32 ndraft = r.ndraft, accepted = r.accepted;
  if (!ndraft) return;
  q->drafted += ndraft;
  q->accepted += accepted;
  s->stats.drafted += ndraft;
  s->stats.accepted += accepted;
  if (accepted * 3 < ndraft) q->skip_drafts = DRAFT_PAUSE;
  if (accepted < ndraft) rewind_slot(s, slot, t->n - (ndraft - accepted));
}

/* ---- a run ---- */

/* Decides how many tokens of each slot run. */
static u32 plan_run(Serve *s) {
  u32 budget = s->chunk, all = 0;
  for (u32 k = 0; k < s->nslot; k++) {
    ServeSlot *t = &s->slot[(k + s->turn) % s->nslot];
    ServeSeq *q = t->seq;
    t->take = 0;
    if (!q) continue;
    u32 left = q->n - t->n;
    if (left == 1) {
      draft(s, q);
      t->take = 1 + q->ndraft;
    } else {
      t->take = left < budget ? left : budget;
      budget -= t->take;
    }
    t->used = s->turn + 1;
    all += t->take;
  }
  return all;
}

/* false: the call failed, such as without memory, and has changed nothing. */
static bool call_model(Serve *s, u32 nrow) {
  IngotTensor in[LM_SLOTS + 1];
  i64 dim[LM_SLOTS + 1];
  for (u32 i = 0; i < s->nslot; i++) {
    ServeSlot *t = &s->slot[i];
    dim[i] = t->take;
    for (u32 k = 0; k < t->take; k++) {
      t->ids[t->n + k] = t->seq->ids[t->n + k];
      s->in[i][k] = (i32)t->ids[t->n + k];
    }
    in[i] = (IngotTensor){"", "i32", 1, &dim[i], s->in[i], (u64)t->take * 4};
  }
  dim[s->nslot] = nrow;
  in[s->nslot] = (IngotTensor){"", "i32", 1, &dim[s->nslot], s->rows, (u64)nrow * 4};
  IngotOutBuffer out = {s->logits, (u64)s->nslot * LM_SLOT_ROWS * s->nlogit * sizeof(float)};
  IngotStatus bad = ingot_call(
      s->m,
      &(IngotCall){.engine = s->engine, .in = in, .nin = s->nslot + 1, .out = &out, .nout = 1});
  return !bad;
}

/* Fails the request that came last, so that the others may have its memory. */
static void fail_last(Serve *s) {
  HttpRequest *last = NULL;
  for (u32 i = 0; i < s->nslot; i++) {
    const ServeSeq *q = s->slot[i].seq;
    rewind_slot(s, i, s->slot[i].n);
    if (q && (!last || q->job->r->start > last->start)) last = q->job->r;
  }
  if (last) last->failed = true;
}

void serve_step(Serve *s) {
  u32 nrow = 0, first = 0, row[LM_SLOTS];
  bool samples[LM_SLOTS] = {false};
  serve_drop_gone(s);
  assign_slots(s);
  if (!plan_run(s)) return;
  for (u32 i = 0; i < s->nslot; i++) {
    ServeSlot *t = &s->slot[i];
    u32 ndraft = t->seq && t->take ? t->seq->ndraft : 0;
    row[i] = nrow;
    samples[i] = t->take && t->n + t->take == t->seq->n + ndraft;
    for (u32 k = 0; samples[i] && k <= ndraft; k++)
      s->rows[nrow++] = (i32)(first + t->take - 1 - ndraft + k);
    first += t->take;
  }
  if (!nrow) s->rows[nrow++] = 0; /* the model has at least one row of logits */
  s->turn++;
  if (!call_model(s, nrow)) {
    fail_last(s);
    return;
  }
  s->stats.runs++;
  for (u32 i = 0; i < s->nslot; i++) s->slot[i].n += s->slot[i].take;
  for (u32 i = 0; i < s->nslot; i++)
    if (samples[i]) take_rows(s, i, s->logits + (size_t)row[i] * s->nlogit);
  for (ServeJob *j = s->jobs, *next; j; j = next) {
    next = j->next;
    for (u32 i = 0; i < j->nseq; i++)
      if (j->seq[i].finish) release(s, &j->seq[i]);
    serve_ping(j, time_ms());
  }
  for (ServeJob **p = &s->jobs; *p;) {
    ServeJob *j = *p;
    if (j->left || has_left(j)) {
      p = &j->next;
      continue;
    }
    *p = j->next;
    s->stats.finished++;
    serve_close(j);
  }
}
