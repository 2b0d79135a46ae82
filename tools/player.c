/* player.c: the program that `ingot build` and `ingot play` put around a language model.
 *
 *   prog [-p PROMPT] [--system TEXT] [--raw] [--max-tokens N] [--temperature X] [--top-k N]
 *        [--top-p X] [--min-p X] [--repeat-penalty X] [--frequency-penalty X]
 *        [--presence-penalty X] [--seed N] [--stop TEXT] [--date YYYY-MM-DD] [--threads N]
 *        [--think show|hide|off] [--quiet]
 *   prog --bench [--json] [--threads N]
 *
 * In: a prompt, or without one the lines of a conversation. Out: answers on stdout, streamed;
 * tokens, times and bytes read on stderr. ingot contains the text of this file (tools/player_all.c)
 * and compiles it with the tokenizer, the interpreter of chat templates, the sampler, a line editor
 * (tools/edit.h) and two tables: the model (tools/model.h) and struct Player below. The template is
 * rendered over the whole conversation; tokens after the longest common prefix run through the
 * model. Exit codes are those of ingot. A full context ends an answer with code 0 and a note. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

typedef struct Player {
  const unsigned char *vocab;
  size_t nvocab;
  double token_bytes; /* bytes of weights read per token */
  double kv_bytes;    /* bytes of the KV cache read per token and position */
  long context;       /* context length */
  long ring;          /* positions up to which every layer keeps all keys and values */
  long long day;      /* baked: seconds since 1970 of the day in the prompt cache; 0: today */
  const char *system; /* default system prompt; NULL: none */
  const u32 *baked;   /* prompt cache: ids that are in the KV cache after a reset */
  size_t nbaked;
  struct {
    double temperature, top_k, top_p, min_p, repeat;
  } sampling; /* settings of the model file; -1: none */
} Player;

extern const Player ingot_player;

enum { STOPS = 16, STOP_BYTES = 256, PENALTY_WINDOW = 64, SAVE_MAGIC = 0x4c4e4732 };

/* Without --max-tokens an answer ends after MAX_ANSWER tokens, or when the last tokens repeat one
 * sequence of at most LOOP_PERIOD tokens LOOP_COPIES times, in LOOP_TOKENS tokens or more. */
enum { MAX_ANSWER = 2048, LOOP_PERIOD = 64, LOOP_COPIES = 4, LOOP_TOKENS = 64 };

typedef enum Think { THINK_show, THINK_hide, THINK_off } Think;

typedef struct Options {
  const char *prompt, *system, *date, *think_name, *stop[STOPS];
  Think think;
  int nstop, raw, quiet, threads, bench, json;
  long max_tokens; /* -1: no limit; -2: MAX_ANSWER, and loops end an answer */
  TokenSampler sampler;
} Options;

/* Statistics since the last question. */
typedef struct TurnStats {
  size_t asked, answered;   /* tokens */
  double begin, first, end; /* seconds; first: when the first token of the answer was sampled */
  double read;              /* bytes read by decoding */
} TurnStats;

typedef struct ChatSession {
  Options o;
  Ctx *c;            /* renders the chat template */
  ChatMessage *turn; /* the conversation */
  u32 nturn, turn_room;
  JinjaStr prompt; /* the rendered conversation */
  i64 now;         /* date and time of the template, as seconds since 1970 */
  char *known;     /* the text of ids */
  size_t nknown, known_room;
  char *said; /* the text of the answer */
  size_t nsaid, said_room;
  int thinking, skip_blank; /* inside <think>; white space after it is not shown */
  int told_lost;            /* a lost turn was reported */
  Vocab vocab;
  TokenSampler sampler;
  Candidate *candidate;
  u32 ntoken; /* tokens with text and logits */
  void *arena;
  int64_t *size;  /* by symbol of the model */
  u32 *ids;       /* in the KV cache, then pending */
  size_t n, done; /* number of ids; number in the KV cache */
  int fresh;      /* the KV cache is as after a reset */
  size_t context; /* context length */
  float *logits;
  char *in; /* a chunk of ids, as the model takes them */
  size_t chunk;
  u32 *next;         /* ids of the rendered conversation */
  u8 *piece, *shown; /* text of a token, and its complete UTF-8 part */
  StopStrings stops;
  size_t stop_length[STOPS];
  TurnStats stats;
  int full;          /* an answer ended because the context is full */
  const char *ended; /* why the program ended the answer; NULL: the model did */
} ChatSession;

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig) {
  (void)sig;
  interrupted = 1;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the model ---- */

static void set_length(ChatSession *t, size_t n) {
  int64_t length = (int64_t)n;
  for (int i = 0; i < ingot_model.nkept; i++)
    memcpy((char *)t->arena + ingot_model.kept[i].at, &length, 8);
}

/* Pending ids that start with the prompt cache need not run through the model again. All or none of
 * it: layers with sliding windows may have overwritten the first positions. */
static void recall(ChatSession *t) {
  size_t all = ingot_player.nbaked;
  if (!t->fresh || !t->n) return;
  if (t->n <= all || (all && memcmp(t->ids, ingot_player.baked, all * sizeof *t->ids))) all = 0;
  set_length(t, all);
  t->done = all;
  t->fresh = 0;
}

/* Runs pending ids through the model; leaves the logits of the last one. */
static int feed(ChatSession *t) {
  const Value *in = &ingot_model.in[0];
  recall(t);
  while (t->done < t->n) {
    size_t n = t->n - t->done < t->chunk ? t->n - t->done : t->chunk;
    const void *ins[1] = {t->in};
    void *outs[1] = {t->logits};
    int64_t shape[RANK], *shapes[1] = {shape};
    for (size_t i = 0; i < n; i++) {
      int64_t wide = t->ids[t->done + i];
      int32_t narrow = (int32_t)wide;
      memcpy(t->in + i * (size_t)in->size, in->size == 8 ? (void *)&wide : &narrow,
             (size_t)in->size);
    }
    t->size[in->sym[0]] = ((int64_t)n - in->base[0]) / in->coef[0];
    int status = ingot_model.call(t->arena, t->size, 0, ins, outs, shapes);
    if (status) return complain(SYSTEM, "the model", ingot_model.why(status));
    t->done += n;
    if (interrupted) return OK;
  }
  return OK;
}

/* Restores the KV cache with the first n tokens. */
static void rewind_to(ChatSession *t, size_t n) {
  set_length(t, n);
  t->n = t->done = n;
  t->fresh = 0;
}

static void drop_turns(ChatSession *t, u32 left) {
  while (t->nturn > left) free((char *)(uintptr_t)t->turn[--t->nturn].content);
}

static void forget(ChatSession *t) {
  if (ingot_model.reset) ingot_model.reset(t->arena);
  drop_turns(t, 0);
  t->n = t->done = t->nknown = 0;
  t->full = 0;
  t->fresh = 1;
}

/* ---- text ---- */

/* Appends bytes; zeroed memory follows them. */
static void append(char **to, size_t *n, size_t *room, const void *from, size_t more) {
  if (*n + more + 1 > *room) {
    char *larger = make(*room = 2 * (*n + more) + 64);
    if (*n) memcpy(larger, *to, *n);
    free(*to);
    *to = larger;
  }
  if (more) memcpy(*to + *n, from, more);
  *n += more;
  (*to)[*n] = 0;
}

static void add_turn(ChatSession *t, const char *role, const char *text, size_t n) {
  if (t->nturn == t->turn_room) {
    ChatMessage *larger = make((t->turn_room = 2 * t->turn_room + 8) * sizeof *larger);
    if (t->nturn) memcpy(larger, t->turn, t->nturn * sizeof *larger);
    free(t->turn);
    t->turn = larger;
  }
  char *copy = make(n + 1);
  if (n) memcpy(copy, text, n);
  t->turn[t->nturn++] = (ChatMessage){role, copy, n};
}

static int no_room(const ChatSession *t, size_t more) {
  fprintf(stderr,
          "%s: the prompt has %s%zu tokens, but %zu of %zu positions are left (--context)\n",
          program, more == (size_t)-1 ? "more than " : "",
          more == (size_t)-1 ? t->context - t->n : more, t->context - t->n, t->context);
  return BAD;
}

typedef struct Encoding {
  ChatSession *t;
  const char *text;
  const u8 *marks;
  size_t n;
  u32 flags;
  const u32 *id;
  size_t count;
} Encoding;

static void encode_text(Ctx *c, void *arg) {
  Encoding *e = arg;
  e->id = text_ids(c, &e->t->vocab, e->text, e->n, e->marks, e->flags, &c->work, &e->count);
}

static void render_turns(Ctx *c, void *arg) {
  ChatSession *t = arg;
  JinjaVal vars = chat_vars(&c->work, t->turn, t->nturn, true);
  if (t->o.think == THINK_off)
    jinja_set(&c->work, vars, "enable_thinking", (JinjaVal){.kind = JK_bool, .i = 0});
  t->prompt = chat_render(c, &t->vocab, vars, t->now, LOC_NONE, &c->work);
}

/* Reports why fn failed. */
static int try_text(ChatSession *t, void (*fn)(Ctx *, void *), void *arg) {
  DiagMark before = diag_mark(t->c);
  Err e = ctx_protect(t->c, fn, arg);
  if (e) fprintf(stderr, "%s: %s\n", program, diag_cause(*before.end));
  diag_rewind(t->c, before);
  return (int)e;
}

/* Does the rendered text end with this word and white space? */
static int prompt_ends(JinjaStr s, const char *word) {
  size_t n = s.n, k = strlen(word);
  while (n && strchr(" \n", s.at[n - 1])) n--;
  return n >= k && !memcmp(s.at + n - k, word, k);
}

/* Renders the conversation. A message that the template leaves out is refused or reported. */
static int render(ChatSession *t) {
  int bad = try_text(t, render_turns, t);
  if (bad) return bad;
  t->thinking = prompt_ends(t->prompt, "<think>");
  if (t->thinking && t->o.think == THINK_off) { /* the template cannot switch it off */
    StrBuf s = sb_new(&t->c->work);
    static const char done[] = "\n</think>\n\n";
    sb_put(&s, t->prompt.at, t->prompt.n);
    sb_puts(&s, done);
    u8 *mark = arena_alloc(&t->c->work, s.n);
    if (t->prompt.mark) memcpy(mark, t->prompt.mark, t->prompt.n);
    t->prompt = (JinjaStr){s.at, mark, (u32)s.n, false};
    t->thinking = 0;
  }
  u32 lost = chat_lost(t->turn, t->nturn, t->prompt);
  if (lost == t->nturn) return OK;
  if (!strcmp(t->turn[lost].role, "system"))
    return complain(UNSUPPORTED, "--system",
                    "the chat template of this model drops system messages");
  if (lost + 1 == t->nturn)
    return complain(UNSUPPORTED, "chat template", "it drops the message; --raw continues a text");
  if (!t->told_lost++)
    fprintf(stderr, "%s: the chat template leaves out earlier messages\n", program);
  return OK;
}

/* Replaces the ids by those of the rendered conversation and keeps the common prefix of the KV
 * cache. If the text begins with the known text, the generated ids of the known text stay. */
static int adopt_prompt(ChatSession *t) {
  size_t known =
      t->prompt.n >= t->nknown && t->n && t->nknown && !memcmp(t->prompt.at, t->known, t->nknown)
          ? t->nknown
          : 0;
  Encoding e = {.t = t,
                .text = t->prompt.at + known,
                .n = t->prompt.n - known,
                .marks = t->prompt.mark ? t->prompt.mark + known : NULL,
                .flags = VE_parse_special};
  int bad = try_text(t, encode_text, &e);
  if (bad) return bad;
  if (!known) {
    size_t same = 0;
    while (same < t->done && same + 1 < e.count && t->ids[same] == e.id[same]) same++;
    if (same < t->done && t->done > (size_t)ingot_player.ring) same = 0;
    if (e.count > t->context) return t->n = 0, no_room(t, e.count);
    if (t->n && same < t->done) rewind_to(t, same);
    t->n = 0;
  }
  if (e.count > t->context - t->n) return no_room(t, e.count);
  memcpy(t->ids + t->n, e.id, e.count * sizeof *t->ids);
  t->n += e.count;
  t->nknown = 0;
  append(&t->known, &t->nknown, &t->known_room, t->prompt.at, t->prompt.n);
  return OK;
}

/* Appends the ids of a question. */
static int ask(ChatSession *t, const char *message) {
  const char *system = t->o.system ? t->o.system : ingot_player.system;
  int bad;
  arena_clear(&t->c->work);
  arena_clear(&t->c->scratch);
  if (t->o.raw) {
    u8 *marks = arena_alloc(&t->c->work, strlen(message) + 1);
    memset(marks, 1, strlen(message));
    Encoding e = {.t = t,
                  .text = message,
                  .n = strlen(message),
                  .marks = marks,
                  .flags = t->n ? 0 : VE_add_special};
    bad = try_text(t, encode_text, &e);
    if (!bad && e.count > t->context - t->n) bad = no_room(t, e.count);
    if (bad) return bad;
    memcpy(t->ids + t->n, e.id, e.count * sizeof *t->ids);
    t->n += e.count;
    return OK;
  }
  u32 before = t->nturn;
  if (!before && system) add_turn(t, "system", system, strlen(system));
  add_turn(t, "user", message, strlen(message));
  bad = render(t);
  if (!bad) bad = adopt_prompt(t);
  if (bad) drop_turns(t, before);
  return bad;
}

/* ---- an answer ---- */

/* Shows a piece of the answer. With --think hide, text up to </think> is not shown; on a terminal
 * it is dim. The tag is found if a piece ends with it: it is one token, or the end of one. */
static void put_out(ChatSession *t, const u8 *at, size_t n) {
  static const char begin[] = "<think>", end[] = "</think>";
  size_t before = t->nsaid;
  append(&t->said, &t->nsaid, &t->said_room, at, n);
  if (!n) return;
  int was = t->thinking, dim = t->o.think == THINK_show && isatty(1);
  size_t blank = strspn(t->said, " \n");
  if (!strncmp(t->said + blank, begin, sizeof begin - 1) && before < blank + sizeof begin - 1)
    was = t->thinking = 1;
  size_t shown = n;
  if (t->thinking) {
    size_t from = before > sizeof end ? before - sizeof end : 0;
    const char *tag = strstr(t->said + from, end);
    if (tag) {
      t->thinking = 0;
      shown = (size_t)(tag + sizeof end - 1 - (t->said + before));
    }
  }
  if (was && t->o.think == THINK_hide) {
    at += t->thinking ? n : shown;
    n -= t->thinking ? n : shown;
    shown = 0;
    t->skip_blank = 1;
  }
  if (t->skip_blank && !t->thinking) {
    while (n && strchr(" \n", *at)) at++, n--;
    if (n) t->skip_blank = 0;
  }
  if (was && dim) {
    printf("\033[2m%.*s\033[0m", (int)shown, (const char *)at);
    at += shown, n -= shown;
  }
  fwrite(at, 1, n, stdout);
  fflush(stdout);
}

/* Do the last tokens of the answer repeat one sequence? */
static int is_loop(const u32 *id, size_t n) {
  for (size_t period = 1; period <= LOOP_PERIOD && period * LOOP_COPIES <= n; period++) {
    size_t same = 0, most = period * (LOOP_COPIES - 1);
    if (most + period < LOOP_TOKENS) most = LOOP_TOKENS - period;
    if (most + period > n) continue;
    while (same < most && id[n - 1 - same] == id[n - 1 - same - period]) same++;
    if (same == most) return 1;
  }
  return 0;
}

static int answer(ChatSession *t) {
  Detok detok;
  long most = t->o.max_tokens == -2 ? MAX_ANSWER : t->o.max_tokens;
  memset(&detok, 0, sizeof detok);
  t->stops.nheld = 0;
  t->stops.stopped = false;
  t->nsaid = 0;
  t->skip_blank = 0;
  t->ended = NULL;
  recall(t);
  t->stats.asked = t->n - t->done;
  t->stats.begin = now();
  int bad = feed(t);
  t->stats.first = t->stats.end = now();
  t->stats.answered = 0;
  t->stats.read = 0;
  size_t start = t->n;
  for (long i = 0; !bad && !interrupted && !ferror(stdout); i++) {
    if (most >= 0 && i == most) {
      if (t->o.max_tokens == -2)
        t->ended = "the answer has 2048 tokens; --max-tokens N allows more";
      break;
    }
    u32 id = sample_next(&t->sampler, t->logits, t->ntoken, t->ids, t->n, t->candidate);
    t->stats.answered++;
    if (vocab_stops(&t->vocab, id)) break;
    size_t n = detok_put(&detok, &t->vocab, id, t->piece);
    put_out(t, t->shown, stop_strings_put(&t->stops, t->piece, n, t->shown));
    t->stats.end = now();
    t->full = t->n == t->context;
    if (t->stops.stopped || t->full) break;
    append(&t->known, &t->nknown, &t->known_room, t->piece, n);
    t->ids[t->n++] = id;
    t->stats.read += ingot_player.token_bytes + ingot_player.kv_bytes * (double)t->n;
    if (t->o.max_tokens == -2 && is_loop(t->ids + start, t->n - start)) {
      t->ended = "the answer repeats itself; --max-tokens N goes on";
      break;
    }
    bad = feed(t);
    t->stats.end = now();
  }
  if (!t->stops.stopped) {
    size_t n = detok_end(&detok, &t->vocab, t->piece);
    put_out(t, t->shown, stop_strings_put(&t->stops, t->piece, n, t->shown));
  }
  if (!t->stops.stopped) put_out(t, t->shown, stops_end(&t->stops, t->shown));
  if (!t->o.raw) add_turn(t, "assistant", t->said ? t->said : "", t->nsaid);
  return bad;
}

/* ---- statistics ---- */

/* Read bandwidth in bytes per second of this machine's threads, with four streams each: the upper
 * bound of decoding. The best of a few rounds over more memory than the caches hold. */
enum { SWEEP_ALL = 1 << 25, SWEEP_MIN = 1 << 20, SWEEP_ROUNDS = 5, SWEEP_THREADS = 64 };

typedef struct Sweep {
  uint64_t *at;
  size_t n;
} Sweep;

static void *sweep(void *arg) {
  const Sweep *w = arg;
  const uint64_t *p = w->at;
  uint64_t sum = 0;
  const size_t part = w->n / 4;
  for (size_t i = 0; i < part; i += 8)
    for (size_t k = 0; k < 8; k++)
      sum += p[i + k] + p[part + i + k] + p[2 * part + i + k] + p[3 * part + i + k];
  w->at[0] = sum; /* keeps the reads from being optimized away */
  return NULL;
}

static double read_speed(int threads) {
  pthread_t id[SWEEP_THREADS];
  Sweep part[SWEEP_THREADS];
  size_t each = SWEEP_ALL / (size_t)threads / 64 * 64;
  if (each < SWEEP_MIN) each = SWEEP_MIN;
  uint64_t *p = make((size_t)threads * each * sizeof *p);
  double best = 0;
  for (int r = 0; r < SWEEP_ROUNDS; r++) {
    int n = 0;
    double begin = now();
    for (; n < threads; n++) {
      part[n].at = p + (size_t)n * each;
      part[n].n = each;
      if (n && pthread_create(&id[n], NULL, sweep, &part[n])) break;
    }
    sweep(&part[0]);
    for (int i = 1; i < n; i++) pthread_join(id[i], NULL);
    double speed = (double)n * (double)(each * sizeof *p) / (now() - begin);
    if (speed > best) best = speed;
  }
  free(p);
  return best;
}

/* Writes `bytes` per second as a percentage of the read bandwidth, or null in JSON. A rate above
 * the bandwidth means that weights are cached, or that other programs slowed the measurement, which
 * is then repeated. */
static const char *bandwidth_share(char text[80], int json, double bytes, double *bandwidth,
                                   int threads) {
  for (int i = 0; i < 2 && bytes > *bandwidth; i++) {
    double again = read_speed(threads);
    if (again > *bandwidth) *bandwidth = again;
  }
  if (bytes > *bandwidth)
    snprintf(text, 80,
             json ? "null" : "(above the bandwidth: weights are cached or the machine is busy)");
  else
    snprintf(text, 80, json ? "%.1f" : "%.0f %% of the read bandwidth", 100 * bytes / *bandwidth);
  return text;
}

static void print_stats(const ChatSession *t) {
  const TurnStats *w = &t->stats;
  double first = w->first - w->begin, rest = w->end - w->first;
  size_t decoded = w->answered > 1 ? w->answered - 1 : 0;
  if (t->o.quiet) return;
  fprintf(stderr, "%zu tokens in, %zu out; first after %.0f ms (%.1f tokens/s)", w->asked,
          w->answered, first * 1e3, first > 0 ? (double)w->asked / first : 0);
  if (decoded && rest > 0)
    fprintf(stderr, ", then %.1f tokens/s, %.1f GB/s", (double)decoded / rest,
            w->read / rest * 1e-9);
  if (t->full || t->ended)
    fprintf(stderr, "; stopped: %s\n", t->full ? "the context is full" : t->ended);
  else
    fputs("\n", stderr);
}

static void say_stats(const ChatSession *t) {
  const TurnStats *w = &t->stats;
  double rest = w->end - w->first, bandwidth = read_speed(t->o.threads);
  fprintf(stderr, "%zu of %zu positions; arena %.1f MB; a token reads %.1f MB of weights\n", t->n,
          t->context, (double)ingot_model.arena * 1e-6, ingot_player.token_bytes * 1e-6);
  char share[80];
  if (rest > 0 && w->read > 0) {
    bandwidth_share(share, 0, w->read / rest, &bandwidth, t->o.threads);
    fprintf(stderr, "decoding read %.1f GB/s: %s (%.1f GB/s, %d thread%s)\n", w->read / rest * 1e-9,
            share, bandwidth * 1e-9, t->o.threads, t->o.threads > 1 ? "s" : "");
  }
}

/* ---- a conversation ---- */

/* Stores the ids and messages in native byte order. Recomputing the ids restores the same state bit
 * by bit. */
static void save(const ChatSession *t, const char *path) {
  const u32 head[5] = {SAVE_MAGIC, (u32)ingot_player.nvocab, (u32)t->n, t->nturn, (u32)t->nknown};
  char *all = NULL;
  size_t n = 0, room = 0;
  append(&all, &n, &room, head, sizeof head);
  append(&all, &n, &room, t->ids, t->n * 4);
  append(&all, &n, &room, t->known, t->nknown);
  for (u32 i = 0; i < t->nturn; i++) {
    const u32 turn[2] = {(u32)t->turn[i].role[0], (u32)t->turn[i].n};
    append(&all, &n, &room, turn, sizeof turn);
    append(&all, &n, &room, t->turn[i].content, t->turn[i].n);
  }
  int err = output_file(path, all, n);
  free(all);
  if (err) complain(SYSTEM, path, strerror(err));
}

static const char *role_of(u32 letter) {
  return letter == 's' ? "system" : letter == 'u' ? "user" : letter == 'a' ? "assistant" : NULL;
}

static int load(ChatSession *t, const char *path) {
  u32 head[5] = {0}, turn[2];
  enum { MOST_TEXT = 1 << 26 };
  FILE *f = fopen(path, "rb");
  if (!f) return complain(SYSTEM, path, strerror(errno)), OK;
  int bad = fread(head, sizeof head, 1, f) != 1 || head[0] != SAVE_MAGIC ||
            head[1] != (u32)ingot_player.nvocab || head[2] > t->context || head[4] > MOST_TEXT;
  forget(t);
  if (!bad) bad = fread(t->ids, 4, head[2], f) != head[2];
  char *text = make(bad ? 1 : (size_t)head[4] + 1);
  if (!bad) bad = fread(text, 1, head[4], f) != head[4];
  if (!bad) append(&t->known, &t->nknown, &t->known_room, text, head[4]);
  for (u32 i = 0; !bad && i < head[3]; i++) {
    bad = fread(turn, sizeof turn, 1, f) != 1 || turn[1] > MOST_TEXT || !role_of(turn[0]);
    free(text);
    text = make(bad ? 1 : (size_t)turn[1] + 1);
    if (!bad) bad = fread(text, 1, turn[1], f) != turn[1];
    if (!bad) add_turn(t, role_of(turn[0]), text, turn[1]);
  }
  free(text);
  fclose(f);
  for (u32 i = 0; !bad && i < head[2]; i++) bad = t->ids[i] >= t->ntoken;
  if (!bad) {
    t->n = head[2];
    return feed(t);
  }
  forget(t);
  return complain(BAD, path,
                  head[0] == SAVE_MAGIC && head[2] > t->context
                      ? "does not fit into the context"
                      : "is not a conversation with this model"),
         OK;
}

static int is_among(const char *name, const char *const *names) {
  while (*names && strcmp(name, *names) != 0) names++;
  return *names != NULL;
}

/* The command of a line; 0: the line is a message. Commands start with ':', or with '/' and a word
 * without a second '/'; exit, quit and help are commands if alone on a line. */
static int command_name(const char *line, char name[16]) {
  static const char *const plain[] = {"exit", "quit", "help", NULL};
  int sign = *line == ':' || *line == '/';
  size_t n = strcspn(line + sign, " ");
  snprintf(name, 16, "%.*s", (int)n, line + sign);
  if (!sign) return !line[n] && is_among(name, plain);
  return *line == ':' || (line[1] >= 'a' && line[1] <= 'z' && !memchr(line + 1, '/', n));
}

/* Returns 1 to end, or a status. */
static int command(ChatSession *t, const char *name, const char *line) {
  static const char *const end[] = {"exit", "quit", "bye", NULL};
  static const char *const begin[] = {"reset", "clear", NULL};
  const char *arg = line + strcspn(line, " ");
  arg += strspn(arg, " ");
  if (is_among(name, end)) return 1;
  if (is_among(name, begin)) return forget(t), OK;
  if (!strcmp(name, "stats")) return say_stats(t), OK;
  if (!strcmp(name, "save") && *arg) return save(t, arg), OK;
  if (!strcmp(name, "load") && *arg) return load(t, arg);
  if (strcmp(name, "help") != 0) fprintf(stderr, "%s: no such command\n", line);
  fputs(":help, help         list the commands; '/' works as well as ':'\n"
        ":quit, quit, exit   end; Ctrl-D does too\n"
        ":stats              show memory use and the speed of the last answer\n"
        ":reset              start a new conversation\n"
        ":save FILE          save this conversation\n"
        ":load FILE          continue a saved conversation\n"
        "Ctrl-C ends an answer, not the program.\n",
        stderr);
  return OK;
}

static int answer_to(ChatSession *t, const char *message) {
  size_t before = t->n;
  int bad = ask(t, message);
  if (!bad && t->n == before)
    bad = complain(USAGE, "the prompt", "is empty, and this model has no token that begins a text");
  if (bad) return t->n = before, bad;
  interrupted = 0;
  bad = answer(t);
  fputs("\n", stdout);
  fflush(stdout);
  if (!bad) print_stats(t);
  return bad;
}

static int converse(ChatSession *t) {
  Edit edit;
  char *line, name[16];
  int refused = OK, asked = !isatty(0); /* a script gets the status of a refused question */
  memset(&edit, 0, sizeof edit);
  if (isatty(0)) fputs("help lists the commands, exit ends\n", stderr);
  while ((line = edit_line(&edit, "> "))) {
    int status = command_name(line, name) ? command(t, name, line)
                 : *line                  ? answer_to(t, line)
                                          : OK;
    if (status == 1) break;
    if (status == SYSTEM) return status;
    if (status && asked) refused = status;
    if (t->full) {
      fputs("the context is full: a new conversation begins\n", stderr);
      forget(t);
    }
  }
  return refused;
}

/* ---- benchmark ---- */

enum { BENCH_PROMPT = 512, BENCH_TOKENS = 32, BENCH_ROUNDS = 3 };

static int compare_times(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void make_up(ChatSession *t, size_t from, size_t to) {
  for (size_t i = from; i < to; i++) t->ids[i] = (u32)(i * 2654435761u % t->ntoken);
}

/* Fills the KV cache up to `past` positions, of which `known` are valid. Memory that was never
 * written is one shared page of zeros, so reading it measures nothing. */
static int fill(ChatSession *t, size_t known, size_t past) {
  if (past <= known) return OK;
  rewind_to(t, known);
  make_up(t, known, past);
  t->n = past;
  return feed(t);
}

/* Seconds for n generated tokens after `past` others, one by one or as a batch. Median of several
 * rounds. */
static double time_tokens(ChatSession *t, size_t past, size_t n, int each) {
  double times[BENCH_ROUNDS];
  for (int r = 0; r < BENCH_ROUNDS; r++) {
    rewind_to(t, past);
    make_up(t, past, past + n);
    double begin = now();
    for (t->n = past + (each ? 1 : n); t->n <= past + n; t->n++)
      if (feed(t)) return 0;
    times[r] = now() - begin;
  }
  qsort(times, BENCH_ROUNDS, sizeof *times, compare_times);
  return times[BENCH_ROUNDS / 2];
}

static int bench(ChatSession *t) {
  static const size_t pasts[] = {16, 512, 1024, 2048, 4096, 8192};
  size_t prompt = t->context < BENCH_PROMPT ? t->context : BENCH_PROMPT, n = BENCH_TOKENS;
  double bandwidth = read_speed(t->o.threads), first = 0;
  int json = t->o.json, count = 0;
  char share[80];
  time_tokens(t, 0, prompt < t->chunk ? prompt : t->chunk, 0);
  double prefill = (double)prompt / time_tokens(t, 0, prompt, 0);
  printf(json ? "{\"threads\": %d, \"prefill_tokens\": %zu, \"prefill_tokens_per_s\": %.2f,\n "
                "\"decode\": ["
              : "threads %d\nprefill of %zu tokens  %8.1f tokens/s\n",
         t->o.threads, prompt, prefill);
  for (size_t i = 0; i < sizeof pasts / sizeof *pasts && pasts[i] + n <= t->context; i++) {
    if (fill(t, i ? pasts[i - 1] : 0, pasts[i])) return SYSTEM;
    double s = time_tokens(t, pasts[i], n, 1) / (double)n;
    double bytes =
        (ingot_player.token_bytes + ingot_player.kv_bytes * (double)(pasts[i] + n / 2)) / s;
    if (!count++) first = s;
    bandwidth_share(share, json, bytes, &bandwidth, t->o.threads);
    printf(json ? "%s{\"past\": %zu, \"tokens_per_s\": %.2f, \"gb_per_s\": %.3f, "
                  "\"percent_of_bandwidth\": %s}"
                : "%sdecode after %-6zu   %8.1f tokens/s %8.1f GB/s  %s\n",
           json && count > 1 ? ",\n  " : "", pasts[i], 1 / s, bytes * 1e-9, share);
  }
  double bytes = count ? ingot_player.token_bytes / first : 0;
  if (json && count)
    printf("],\n \"decode_tokens_per_s\": %.2f, \"gb_per_s\": %.3f, "
           "\"percent_of_bandwidth\": %s, \"bandwidth_gb_per_s\": %.2f}\n",
           1 / first, bytes * 1e-9, bandwidth_share(share, 1, bytes, &bandwidth, t->o.threads),
           bandwidth * 1e-9);
  else
    printf(json ? "]}\n" : "read bandwidth         %8.1f GB/s\n", bandwidth * 1e-9);
  return OK;
}

/* ---- options ---- */

typedef enum Kind { K_text, K_int, K_float, K_flag } Kind;

typedef struct Option {
  const char *name;
  Kind kind;
  void *to;
  double min, max;
  const char *form, *says; /* help; NULL: described by another row */
} Option;

static void print_help(const Option *x, int n) {
  printf("usage: %s [-p PROMPT] [OPTION]...\n\n"
         "chat with the language model in this program (context length %ld tokens).\n"
         "Without a prompt it starts a conversation: help lists the commands, exit ends it.\n"
         "Answers go to standard output, times to standard error.\n\n",
         program, ingot_player.context);
  for (int i = 0; i < n; i++)
    if (x[i].form) printf("  %-24s %s\n", x[i].form, x[i].says);
  printf("  %-24s %s\n", "-h, --help", "this help");
}

static int set_option(const Option *x, const char *text) {
  char *end = NULL;
  double f = x->kind == K_text ? 0 : strtod(text, &end);
  if (x->kind == K_text) return *(const char **)x->to = text, OK;
  if (!*text || *end || !(f >= x->min && f <= x->max) ||
      (x->kind == K_int && f != (double)(long)f)) {
    fprintf(stderr, "%s: %s %s: expected a%s number from %g to %g\n", program, x->name, text,
            x->kind == K_int ? " whole" : "", x->min, x->max);
    return USAGE;
  }
  if (x->kind == K_int)
    *(long *)x->to = (long)f;
  else
    *(float *)x->to = (float)f;
  return OK;
}

static int read_options(Options *o, int argc, char **argv) {
  long top_k = o->sampler.top_k, threads = ingot_model.threads, seed = 0;
  const char *stop = NULL;
  TokenSampler *s = &o->sampler;
  const Option table[] = {
      {"-p", K_text, &o->prompt, 0, 0, NULL, NULL},
      {"--prompt", K_text, &o->prompt, 0, 0, "-p, --prompt TEXT", "answer this prompt and exit"},
      {"--system", K_text, &o->system, 0, 0, "--system TEXT", "system prompt"},
      {"--raw", K_flag, &o->raw, 0, 0, "--raw",
       "continue the prompt as plain text, without the chat template"},
      {"-n", K_int, &o->max_tokens, -1, 1e9, NULL, NULL},
      {"--max-tokens", K_int, &o->max_tokens, -1, 1e9, "--max-tokens N",
       "stop an answer after N tokens; -1: no limit (default: after 2048, or when it repeats)"},
      {"--temperature", K_float, &s->temperature, 0, 100, "--temperature X",
       "sampling temperature; 0: greedy decoding (default: that of the model file, else 0.7)"},
      {"--top-k", K_int, &top_k, 0, 1e9, "--top-k N",
       "sample from the N most probable tokens; 0: all (default: that of the model file, else 40)"},
      {"--top-p", K_float, &s->top_p, 0, 1, "--top-p X",
       "nucleus sampling with total probability X (default: that of the model file, else 0.9)"},
      {"--min-p", K_float, &s->min_p, 0, 1, "--min-p X",
       "drop tokens below X times the highest probability (default: that of the model file, else "
       "0)"},
      {"--repeat-penalty", K_float, &s->repeat, 0.01, 100, "--repeat-penalty X",
       "divide the logits of recent tokens by X (default: that of the model file, else 1)"},
      {"--frequency-penalty", K_float, &s->frequency, -100, 100, "--frequency-penalty X",
       "subtract X from a logit per occurrence of its token (default 0)"},
      {"--presence-penalty", K_float, &s->presence, -100, 100, "--presence-penalty X",
       "subtract X once from the logits of recent tokens (default 0)"},
      {"--seed", K_int, &seed, 0, 9e15, "--seed N", "seed of the sampler (default 0)"},
      {"--stop", K_text, &stop, 0, 0, "--stop TEXT", "stop an answer before this text; repeatable"},
      {"--think", K_text, &o->think_name, 0, 0, "--think show|hide|off",
       "reasoning: show (dim on a terminal), hide, or ask the template for none"},
      {"--date", K_text, &o->date, 0, 0, "--date YYYY-MM-DD",
       "date passed to the chat template (default: today)"},
      {"--threads", K_int, &threads, 1, ingot_model.threads, "--threads N",
       "number of threads (default and maximum: as built)"},
      {"--quiet", K_flag, &o->quiet, 0, 0, "--quiet", "print answers only, no times"},
      {"--bench", K_flag, &o->bench, 0, 0, "--bench",
       "measure prefill and decoding against the read bandwidth"},
      {"--json", K_flag, &o->json, 0, 0, "--json", "print --bench as JSON"},
  };
  enum { N = sizeof table / sizeof *table };
  for (int i = 1; i < argc; i++) {
    const Option *x = table;
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
      print_help(table, N);
      exit(OK);
    }
    while (x < table + N && strcmp(x->name, argv[i]) != 0) x++;
    if (x == table + N) return complain(USAGE, argv[i], "unknown option; --help lists all");
    if (x->kind == K_flag) {
      *(int *)x->to = 1;
      continue;
    }
    if (i + 1 == argc) return complain(USAGE, argv[i], "expected a value after it");
    if (set_option(x, argv[++i])) return USAGE;
    if (x->to == &stop && o->nstop == STOPS) return complain(USAGE, stop, "too many stop texts");
    if (x->to == &stop && (!*stop || strlen(stop) >= STOP_BYTES))
      return complain(USAGE, "--stop", "expected a text of 1 to 255 bytes");
    if (x->to == &stop) o->stop[o->nstop++] = stop;
  }
  static const char *const thinks[] = {"show", "hide", "off"};
  for (int i = 0; o->think_name && i <= 3; i++) {
    if (i == 3) return complain(USAGE, "--think", "expected show, hide or off");
    if (strcmp(o->think_name, thinks[i])) continue;
    o->think = (Think)i;
    break;
  }
  s->top_k = (u32)top_k;
  s->state = (uint64_t)seed;
  o->threads = (int)threads;
  return OK;
}

/* ---- dates ---- */

/* The day of --date, or today. */
static int read_date(const char *text, struct tm *day) {
  time_t now = time(NULL);
  char end;
  memset(day, 0, sizeof *day);
  if (!text)
    return localtime_r(&now, day)
               ? OK
               : complain(SYSTEM, "the date", "cannot be determined; use --date");
  if (strlen(text) != 10 ||
      sscanf(text, "%4d-%2d-%2d%c", &day->tm_year, &day->tm_mon, &day->tm_mday, &end) != 3 ||
      day->tm_year < 1900 || day->tm_mon < 1 || day->tm_mon > 12 || day->tm_mday < 1 ||
      day->tm_mday > 31)
    return complain(USAGE, "--date", "expected YYYY-MM-DD");
  day->tm_year -= 1900;
  day->tm_mon--;
  day->tm_hour = 12; /* noon exists on every day in every time zone */
  day->tm_isdst = -1;
  return mktime(day) == (time_t)-1
             ? complain(USAGE, "--date", "is not a valid day; expected YYYY-MM-DD")
             : OK;
}

/* Local time as if it were UTC, which is how the template prints it. */
static i64 seconds_of(const struct tm *t) {
  i64 y = t->tm_year + 1900 - (t->tm_mon < 2), era = y / 400, year = y - era * 400;
  i64 month = t->tm_mon < 2 ? t->tm_mon + 10 : t->tm_mon - 2; /* the year starts in March */
  i64 days = era * 146097 + year * 365 + year / 4 - year / 100 + (153 * month + 2) / 5 +
             t->tm_mday - 1 - 719468;
  return days * 86400 + t->tm_hour * 3600 + t->tm_min * 60 + t->tm_sec;
}

/* ---- main ---- */

static int begin(ChatSession *t) {
  const Value *in = &ingot_model.in[0];
  struct tm day;
  if (read_date(t->o.date, &day)) return USAGE;
  t->now = ingot_player.day && !t->o.date ? ingot_player.day : seconds_of(&day);
  t->c = ctx_new(NULL, NULL);
  if (!t->c) return complain(SYSTEM, "memory", "there is not enough");
  if (!vocab_open(&t->vocab, ingot_player.vocab, ingot_player.nvocab))
    return complain(SYSTEM, "tokenizer", "its tables are damaged");
  int chats = !t->o.raw && !t->o.bench;
  if (t->o.raw && t->o.system)
    return complain(USAGE, "--system", "cannot be used with --raw, which has no conversation");
  if (chats && !chat_has_template(&t->vocab))
    return complain(UNSUPPORTED, "the model has no chat template", "--raw continues a text");
  const Value *out = &ingot_model.out[0];
  size_t rows = 1; /* number of logits: embeddings may be padded after the last token */
  for (int i = 0; i < out->rank; i++) rows *= (size_t)out->max[i];
  t->context = (size_t)ingot_player.context;
  t->chunk = (size_t)in->max[0];
  t->arena = make(ingot_model.arena);
  t->size = make((size_t)(ingot_model.nsym + 1) * sizeof *t->size);
  memcpy(t->size, ingot_model.size, (size_t)ingot_model.nsym * sizeof *t->size);
  t->in = make(t->chunk * (size_t)in->size);
  t->ids = make(t->context * sizeof *t->ids);
  t->logits = make(rows * sizeof(float));
  t->ntoken = (u32)(rows < t->vocab.head->ntoken ? rows : t->vocab.head->ntoken);
  t->candidate = make(t->ntoken * sizeof *t->candidate);
  t->sampler = t->o.sampler;
  for (int i = 0; i < t->o.nstop; i++) t->stop_length[i] = strlen(t->o.stop[i]);
  t->stops.text = t->o.stop;
  t->stops.length = t->stop_length;
  t->stops.n = (u32)t->o.nstop;
  size_t piece = detok_max_bytes(&t->vocab) + 12, room = stops_buffer_bytes(&t->stops, piece);
  t->piece = make(piece);
  t->stops.held = make(room);
  t->shown = make(room);
  forget(t);
  if (ingot_model.start && t->o.threads > 1) ingot_model.start(t->arena, t->o.threads);
  return OK;
}

static float setting(double own, float otherwise) {
  return own >= 0 ? (float)own : otherwise;
}

int main(int argc, char **argv) {
  static ChatSession talk;
  struct sigaction act;
  talk.o.max_tokens = -2;
  talk.o.sampler = (TokenSampler){.temperature = setting(ingot_player.sampling.temperature, 0.7f),
                                  .top_k = (u32)setting(ingot_player.sampling.top_k, 40),
                                  .top_p = setting(ingot_player.sampling.top_p, 0.9f),
                                  .min_p = setting(ingot_player.sampling.min_p, 0),
                                  .repeat = setting(ingot_player.sampling.repeat, 1),
                                  .window = PENALTY_WINDOW};
  program = argv[0] && strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
  int bad = read_options(&talk.o, argc, argv);
  if (!bad) bad = begin(&talk);
  if (bad) return bad;
  memset(&act, 0, sizeof act);
  act.sa_handler = on_interrupt;
  sigaction(SIGINT, &act, NULL);
  bad = talk.o.bench    ? bench(&talk)
        : talk.o.prompt ? answer_to(&talk, talk.o.prompt)
                        : converse(&talk);
  if (ingot_model.stop && talk.o.threads > 1) ingot_model.stop(talk.arena);
  if ((fflush(stdout) || ferror(stdout)) && !bad)
    bad = complain(SYSTEM, "standard output", "write failed");
  return bad ? bad : interrupted && talk.o.prompt ? 130 : OK;
}
