/* player.c: the program that `ingot build` and `ingot play` put around a language model.
 *
 *   prog [-p PROMPT] [--system TEXT] [--raw] [--max-tokens N] [--temperature X] [--top-k N]
 *        [--top-p X] [--min-p X] [--repeat-penalty X] [--frequency-penalty X]
 *        [--presence-penalty X] [--seed N] [--stop TEXT] [--date YYYY-MM-DD] [--threads N]
 *        [--quiet]
 *   prog --bench [--json] [--threads N]
 *
 * In: a prompt, or without one the lines of a conversation. Out: answers on stdout, streamed;
 * tokens, times and bytes read on stderr. ingot contains the text of this file and compiles it with
 * the tokenizer and the sampler (src/text), a line editor (tools/edit.h) and two tables: the model
 * (tools/model.h) and the chat template (struct Player below). Memory is allocated before an answer
 * starts. Exit codes are those of ingot. A full context ends an answer with code 0 and a note. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

/* Pieces of the chat template; NULL: the template has no such piece. A date format stands between
 * the bytes 1 and 2. */
typedef struct Chat {
  const char *open;                 /* before the first message */
  const char *open_system, *system; /* before and after the system prompt, instead */
  const char *ask;                  /* after a message, up to the answer */
  const char *next;                 /* after an answer, up to the next message */
  const char *none;                 /* why the model has no template */
  int trims;                        /* strip white space around messages */
} Chat;

typedef struct Player {
  const unsigned char *vocab;
  size_t nvocab;
  double token_bytes; /* bytes of weights read per token */
  double kv_bytes;    /* bytes of the KV cache read per token and position */
  long context;       /* context length */
  const char *system; /* default system prompt; NULL: none */
  const u32 *baked;   /* prompt cache: ids that are in the KV cache after a reset */
  size_t nbaked;
  Chat chat;
} Player;

extern const Player ingot_player;

enum { STOPS = 16, STOP_BYTES = 256, PENALTY_WINDOW = 64, SAVE_MAGIC = 0x4c4e4731 };

typedef struct Options {
  const char *prompt, *system, *date, *stop[STOPS];
  int nstop, raw, quiet, threads, bench, json;
  long max_tokens;
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
  Chat chat; /* with dates filled in */
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
  u8 *text, *marks, *room; /* buffers of a message during tokenization */
  size_t ntext, nroom;
  u8 *piece, *shown; /* of a token, and its complete UTF-8 part */
  StopStrings stops;
  size_t stop_length[STOPS];
  TurnStats stats;
  int full; /* an answer ended because the context is full */
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

static void forget(ChatSession *t) {
  if (ingot_model.reset) ingot_model.reset(t->arena);
  t->n = t->done = 0;
  t->full = 0;
  t->fresh = 1;
}

/* ---- text ---- */

static int add_text(ChatSession *t, const char *text, size_t n, int marked) {
  if (n > t->ntext) n = t->ntext; /* reported below: it does not fit in the context either */
  memcpy(t->text, text, n);
  memset(t->marks, marked, n);
  t->text += n;
  t->marks += n;
  t->ntext -= n;
  return 0;
}

static void add_message(ChatSession *t, const char *text) {
  size_t n = strlen(text);
  if (t->chat.trims) {
    while (n && strchr(" \t\r\n", text[0])) text++, n--;
    while (n && strchr(" \t\r\n", text[n - 1])) n--;
  }
  add_text(t, text, n, 1);
}

static int no_room(const ChatSession *t, size_t more) {
  fprintf(stderr,
          "%s: the prompt has %s%zu tokens, but %zu of %zu positions are left (--context)\n",
          program, more == (size_t)-1 ? "more than " : "",
          more == (size_t)-1 ? t->context - t->n : more, t->context - t->n, t->context);
  return BAD;
}

/* Template text may contain special tokens; messages are plain text. */
static int add_ids(ChatSession *t, const u8 *text, const u8 *marks, size_t n, u32 flags) {
  i64 got = vocab_encode(&t->vocab, text, n, marks, flags, t->ids + t->n, t->context - t->n,
                         t->room, t->nroom);
  if (got == VOCAB_FULL) return no_room(t, (size_t)-1);
  if (got == VOCAB_SLOW) return complain(BAD, "prompt", "takes too many steps to split into words");
  if (got < 0)
    return complain(SYSTEM, "memory", "there is not enough to tokenize the prompt; split it");
  t->n += (size_t)got;
  return OK;
}

/* Allocates room for a message of n bytes; clears t->text and t->marks. */
static void begin_text(ChatSession *t, size_t n) {
  static u8 *text, *marks, *room;
  static size_t had;
  if (n > had) {
    free(text), free(marks), free(room);
    text = make(n), marks = make(n);
    t->nroom = vocab_encode_bytes(&t->vocab, n);
    room = make(t->nroom);
    had = n;
  }
  t->text = text, t->marks = marks, t->room = room, t->ntext = had;
}

static size_t length_of(const char *s) {
  return s ? strlen(s) : 0;
}

/* Appends the ids of a question. */
static int ask(ChatSession *t, const char *message) {
  const Chat *c = &t->chat;
  const char *system = t->o.system ? t->o.system : ingot_player.system;
  size_t all = length_of(c->open) + length_of(c->open_system) + length_of(c->system) +
               length_of(c->ask) + length_of(c->next) + length_of(system) + strlen(message) + 1;
  begin_text(t, all);
  u8 *text = t->text, *marks = t->marks;
  if (t->o.raw) {
    add_text(t, message, strlen(message), 1);
    return add_ids(t, text, marks, (size_t)(t->text - text), t->n ? 0 : VE_add_special);
  }
  if (t->n && !c->next) forget(t); /* the template supports only one question */
  if (t->n) {
    add_text(t, c->next, strlen(c->next), 0);
  } else if (system) {
    add_text(t, c->open_system, strlen(c->open_system), 0);
    add_message(t, system);
    add_text(t, c->system, strlen(c->system), 0);
  } else {
    add_text(t, c->open, strlen(c->open), 0);
  }
  add_message(t, message);
  add_text(t, c->ask, strlen(c->ask), 0);
  return add_ids(t, text, marks, (size_t)(t->text - text), VE_parse_special);
}

/* ---- an answer ---- */

static void put_out(const u8 *at, size_t n) {
  fwrite(at, 1, n, stdout);
  fflush(stdout);
}

static int answer(ChatSession *t) {
  Detok detok;
  memset(&detok, 0, sizeof detok);
  t->stops.nheld = 0;
  t->stops.stopped = false;
  recall(t);
  t->stats.asked = t->n - t->done;
  t->stats.begin = now();
  int bad = feed(t);
  t->stats.first = t->stats.end = now();
  t->stats.answered = 0;
  t->stats.read = 0;
  for (long i = 0;
       !bad && !interrupted && !ferror(stdout) && (t->o.max_tokens < 0 || i < t->o.max_tokens);
       i++) {
    u32 id = sample_next(&t->sampler, t->logits, t->ntoken, t->ids, t->n, t->candidate);
    t->stats.answered++;
    if (vocab_stops(&t->vocab, id)) break;
    size_t n = detok_put(&detok, &t->vocab, id, t->piece);
    put_out(t->shown, stop_strings_put(&t->stops, t->piece, n, t->shown));
    t->stats.end = now();
    t->full = t->n == t->context;
    if (t->stops.stopped || t->full) break;
    t->ids[t->n++] = id;
    t->stats.read += ingot_player.token_bytes + ingot_player.kv_bytes * (double)t->n;
    bad = feed(t);
    t->stats.end = now();
  }
  if (!t->stops.stopped) {
    size_t n = detok_end(&detok, &t->vocab, t->piece);
    put_out(t->shown, stop_strings_put(&t->stops, t->piece, n, t->shown));
  }
  if (!t->stops.stopped) put_out(t->shown, stops_end(&t->stops, t->shown));
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
  fputs(t->full ? "; the context is full\n" : "\n", stderr);
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

/* Stores the ids in native byte order. Recomputing them restores the same state bit by bit. */
static void save(const ChatSession *t, const char *path) {
  const u32 head[3] = {SAVE_MAGIC, (u32)ingot_player.nvocab, (u32)t->n};
  u32 *all = malloc(sizeof head + t->n * 4);
  if (all) {
    memcpy(all, head, sizeof head);
    memcpy(all + 3, t->ids, t->n * 4);
  }
  int err = all ? output_file(path, all, sizeof head + t->n * 4) : ENOMEM;
  free(all);
  if (err) complain(SYSTEM, path, strerror(err));
}

static int load(ChatSession *t, const char *path) {
  u32 head[3] = {0};
  FILE *f = fopen(path, "rb");
  if (!f) return complain(SYSTEM, path, strerror(errno)), OK;
  int bad = fread(head, sizeof head, 1, f) != 1 || head[0] != SAVE_MAGIC ||
            head[1] != (u32)ingot_player.nvocab || head[2] > t->context;
  forget(t);
  if (!bad) bad = fread(t->ids, 4, head[2], f) != head[2];
  fclose(f);
  for (u32 i = 0; !bad && i < head[2]; i++) bad = t->ids[i] >= t->ntoken;
  if (bad && head[0] == SAVE_MAGIC && head[2] > t->context)
    return complain(BAD, path, "does not fit into the context"), OK;
  if (bad) return complain(BAD, path, "is not a conversation with this model"), OK;
  t->n = head[2];
  return feed(t);
}

static int is_among(const char *name, const char *const *names) {
  while (*names && strcmp(name, *names) != 0) names++;
  return *names != NULL;
}

/* The command of a line; 0: the line is a message. Commands start with ':', known ones also with
 * '/'; exit, quit and help are commands if alone on a line. */
static int command_name(const char *line, char name[16]) {
  static const char *const plain[] = {"exit", "quit", "help", NULL};
  static const char *const known[] = {"exit",  "quit",  "bye",  "help", "reset",
                                      "clear", "stats", "save", "load", NULL};
  int sign = *line == ':' || *line == '/';
  size_t n = strcspn(line + sign, " ");
  snprintf(name, 16, "%.*s", (int)n, line + sign);
  if (!sign) return !line[n] && is_among(name, plain);
  return *line == ':' || is_among(name, known);
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
  const char *form, *says; /* for --help; NULL: described by another row */
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
      {"--max-tokens", K_int, &o->max_tokens, -1, 1e9, "--max-tokens N",
       "stop an answer after N tokens (default -1: at end of text)"},
      {"--temperature", K_float, &s->temperature, 0, 100, "--temperature X",
       "sampling temperature; 0: greedy decoding (default 0.7)"},
      {"--top-k", K_int, &top_k, 0, 1e9, "--top-k N",
       "sample from the N most probable tokens; 0: all (default 40)"},
      {"--top-p", K_float, &s->top_p, 0, 1, "--top-p X",
       "nucleus sampling with total probability X (default 0.9)"},
      {"--min-p", K_float, &s->min_p, 0, 1, "--min-p X",
       "drop tokens below X times the highest probability (default 0)"},
      {"--repeat-penalty", K_float, &s->repeat, 0.01, 100, "--repeat-penalty X",
       "divide the logits of recent tokens by X (default 1)"},
      {"--frequency-penalty", K_float, &s->frequency, -100, 100, "--frequency-penalty X",
       "subtract X from a logit per occurrence of its token (default 0)"},
      {"--presence-penalty", K_float, &s->presence, -100, 100, "--presence-penalty X",
       "subtract X once from the logits of recent tokens (default 0)"},
      {"--seed", K_int, &seed, 0, 9e15, "--seed N", "seed of the sampler (default 0)"},
      {"--stop", K_text, &stop, 0, 0, "--stop TEXT", "stop an answer before this text; repeatable"},
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

/* The text with dates in place of date formats. */
static const char *with_dates(const char *text, const struct tm *day) {
  enum { FORM = 256 };
  size_t room = 1, n = 0;
  if (!text || !strchr(text, 1)) return text;
  for (const char *s = text; *s; s++) room += *s == 1 ? FORM : 1;
  char *out = make(room), form[FORM];
  for (; *text; text++) {
    size_t length = *text == 1 ? strcspn(text + 1, "\2") : FORM;
    if (*text != 1 || length >= FORM || !text[length + 1]) {
      out[n++] = *text;
      continue;
    }
    memcpy(form, text + 1, length);
    form[length] = 0;
    n += strftime(out + n, FORM, form, day);
    text += length + 1;
  }
  return out;
}

static int fill_dates(ChatSession *t) {
  struct tm day;
  const char **text[] = {&t->chat.open, &t->chat.open_system, &t->chat.system, &t->chat.ask,
                         &t->chat.next};
  int bad = read_date(t->o.date, &day);
  for (size_t i = 0; !bad && i < sizeof text / sizeof *text; i++)
    *text[i] = with_dates(*text[i], &day);
  return bad;
}

/* ---- main ---- */

static int begin(ChatSession *t) {
  const Value *in = &ingot_model.in[0];
  const Chat *c = &t->chat;
  t->chat = ingot_player.chat;
  if (fill_dates(t)) return USAGE;
  if (!vocab_open(&t->vocab, ingot_player.vocab, ingot_player.nvocab))
    return complain(SYSTEM, "tokenizer", "its tables are damaged");
  int chats = !t->o.raw && !t->o.bench;
  if (t->o.raw && t->o.system)
    return complain(USAGE, "--system", "cannot be used with --raw, which has no conversation");
  if (chats && !c->open)
    return complain(UNSUPPORTED, c->none ? c->none : "the model has no chat template",
                    "--raw continues a text");
  if (chats && t->o.system && !c->open_system)
    return complain(UNSUPPORTED, "--system", "the template of this model has no such message");
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

int main(int argc, char **argv) {
  static ChatSession talk;
  struct sigaction act;
  talk.o.max_tokens = -1;
  talk.o.sampler = (TokenSampler){
      .temperature = 0.7f, .top_k = 40, .top_p = 0.9f, .repeat = 1, .window = PENALTY_WINDOW};
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
