/* cli_play.c: chat with a language model.
 *
 * Compiles the model to a cached program (ingot_player) and replaces this process with it
 * (tools/player.c), passing the sampling options as arguments. Engines vm and cuda run in this
 * process. Invalid numbers are refused here,
 * before the model is compiled.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_ARGS = 64, MAX_STOPS = 16, MAX_PLAY_THREADS = 16, DEFAULT_CONTEXT = 4096 };

#define MOST_SEED 9000000000000000ull

typedef struct PlayArgs {
  const char *word[MAX_ARGS];
  char text[8][32]; /* texts of numbers */
  int n, ntext;
} PlayArgs;

static void add(PlayArgs *p, const char *name, const char *value) {
  if (!value) return;
  p->word[p->n++] = name;
  p->word[p->n++] = value;
}

static void add_whole(PlayArgs *p, const char *name, unsigned long long value) {
  snprintf(p->text[p->ntext], sizeof p->text[0], "%llu", value);
  add(p, name, p->text[p->ntext++]);
}

typedef struct PlayNumber {
  const char *name, *value;
  double min, max;
  int whole;
} PlayNumber;

static int check_number(const PlayNumber *x) {
  char *end;
  double f = x->value ? strtod(x->value, &end) : 0;
  if (!x->value) return 0;
  if (*x->value && !*end && f >= x->min && f <= x->max && (!x->whole || f == (double)(long)f))
    return 0;
  fprintf(stderr, "ingot play: %s %s: expected a%s number from %g to %g\n", x->name, x->value,
          x->whole ? " whole" : "", x->min, x->max);
  return INGOT_USAGE;
}

/* Collects all --stop options; Args has only the last. */
static int add_stops(PlayArgs *p, const Args *a) {
  int n = 0;
  for (int i = 0; i < a->nword; i++) {
    const char *w = a->word[i], *value = NULL;
    if (!strcmp(w, "--stop") && i + 1 < a->nword) value = a->word[++i];
    if (!strncmp(w, "--stop=", 7)) value = w + 7;
    if (value && n++ == MAX_STOPS) return cli_refuse(a, "--stop: expected at most 16 texts");
    if (value && !*value) return cli_refuse(a, "--stop: expected a text that is not empty");
    add(p, "--stop", value);
  }
  return 0;
}

/* Reads the prompt: --prompt, the text of --file, and with either of them standard input if it is a
 * pipe. NULL: none. It lives as long as the process. */
static int read_prompt(const Args *a, const char **prompt) {
  struct stat st;
  char *part[2] = {NULL, NULL};
  size_t n[3] = {a->prompt ? strlen(a->prompt) : 0, 0, 0};
  const char *path[2] = {a->file, NULL};
  *prompt = a->prompt;
  if (!a->prompt && !a->file) return 0;
  if (!fstat(STDIN_FILENO, &st) && (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode))) path[1] = "-";
  if (path[0] && path[1] && !strcmp(path[0], "-")) path[1] = NULL;
  for (int i = 0; i < 2; i++) {
    if (!path[i]) continue;
    part[i] = read_all(path[i], &n[i + 1]);
    if (!part[i] || memchr(part[i], 0, n[i + 1])) {
      fprintf(stderr, "ingot play: %s: %s\n", strcmp(path[i], "-") ? path[i] : "standard input",
              part[i] ? "expected text without NUL bytes" : "cannot be read");
      return part[i] ? INGOT_BAD_INPUT : INGOT_SYSTEM;
    }
    while (n[i + 1] && strchr("\r\n", part[i][n[i + 1] - 1])) n[i + 1]--;
  }
  char *all = malloc(n[0] + n[1] + n[2] + 5);
  if (!all) return INGOT_SYSTEM;
  const char *text[3] = {a->prompt, part[0], part[1]};
  size_t at = 0;
  for (int i = 0; i < 3; i++) {
    if (!n[i]) continue;
    if (at) all[at++] = '\n', all[at++] = '\n';
    memcpy(all + at, text[i], n[i]);
    at += n[i];
  }
  all[at] = 0;
  *prompt = all;
  return 0;
}

static int collect_args(PlayArgs *p, const Args *a) {
  const PlayNumber number[] = {
      {"--temperature", a->temperature, 0, 100, 0},
      {"--top-k", a->top_k, 0, 1e9, 1},
      {"--top-p", a->top_p, 0, 1, 0},
      {"--min-p", a->min_p, 0, 1, 0},
      {"--repeat-penalty", a->repeat_penalty, 0.01, 100, 0},
      {"--frequency-penalty", a->frequency_penalty, -100, 100, 0},
      {"--presence-penalty", a->presence_penalty, -100, 100, 0},
  };
  const char *prompt;
  int bad = read_prompt(a, &prompt);
  if (bad) return bad;
  add(p, "--prompt", prompt);
  add(p, "--think", a->think);
  add(p, "--system", a->system);
  add(p, "--date", a->date);
  if (a->raw && a->system)
    return cli_refuse(a, "--raw continues plain text: leave out --system, which is part of a chat");
  if (a->raw && a->bake_prompt)
    return cli_refuse(
        a, "--raw continues plain text: leave out --bake-prompt, which is part of a chat");
  if (a->think && strcmp(a->think, "show") && strcmp(a->think, "hide") && strcmp(a->think, "off"))
    return cli_refuse(a, "--think: expected show, hide or off");
  if (a->conversation && prompt)
    return cli_refuse(a, "-cnv: with --prompt, play answers once; leave out --prompt to chat");
  if (a->single_turn && !prompt)
    return cli_refuse(a, "-st: a single turn needs its message, --prompt TEXT");
  for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
    if (check_number(&number[i])) return INGOT_USAGE;
    add(p, number[i].name, number[i].value);
  }
  if (a->seed > MOST_SEED)
    return cli_refuse(a, "--seed: expected a whole number up to 9000000000000000");
  if (a->max_tokens) add_whole(p, "--max-tokens", a->max_tokens);
  add_whole(p, "--seed", a->seed);
  if (a->raw) p->word[p->n++] = "--raw";
  if (a->quiet) p->word[p->n++] = "--quiet";
  return add_stops(p, a);
}

unsigned long long default_threads(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : n > MAX_PLAY_THREADS ? MAX_PLAY_THREADS : (unsigned long long)n;
}

/* Chats without a C compiler: with the bytecode interpreter, or on a GPU. */
static int interpret(Ingot *m, const Args *a, const PlayArgs *p) {
  int status = play_model_here(m, p->n, (char **)p->word);
  if (status < 0) return cli_finish(m, a, (IngotStatus)-status);
  ingot_free(m);
  return status;
}

/* Executes the program of an opened model, or chats in this process. */
static int exec_player(Ingot *m, const Args *a, const PlayArgs *p) {
  const char *program;
  const IngotEngine *e = ingot_find_engine(a->engine);
  if (a->engine && !(e && e->flags & INGOT_NATIVE)) {
    IngotStatus bad = ingot_chat_engine(m, a->engine);
    if (!bad) bad = ingot_keep_code(m, "");
    return bad ? cli_finish(m, a, bad) : interpret(m, a, p);
  }
  watch_task("compile");
  IngotStatus s = ingot_player(m,
                               &(IngotBuild){.cc = a->build.cc,
                                             .march = a->march,
                                             .optimize = "3",
                                             .chats = !a->raw && !strcmp(a->verb, "play"),
                                             .system = a->system != NULL},
                               &program);
  watch_task(NULL);
  if (s) return cli_finish(m, a, s);
  print_messages(m, a->quiet);
  watch_restore_signals();
  if (!program) return interpret(m, a, p);
  execv(program, (char *const *)p->word);
  fprintf(stderr, "ingot %s: %s: %s\n", a->verb, program, strerror(errno));
  return cli_finish(m, a, INGOT_SYSTEM);
}

int clean_cache(const Args *a) {
  uint64_t count = 0, bytes = 0;
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  IngotStatus s = ingot_clean(m, &count, &bytes);
  if (!s && !a->quiet)
    fprintf(stderr, "%llu file%s removed, %.1f MB\n", (unsigned long long)count,
            count == 1 ? "" : "s", (double)bytes * 1e-6);
  return cli_finish(m, a, s);
}

int verb_play(const Args *a) {
  PlayArgs p = {.word = {"ingot play"}, .n = 1};
  Args rest = *a;
  if (a->clean) return clean_cache(a);
  if (!a->model) return cli_refuse(a, "the model is missing: --model-path PATH");
  int bad = collect_args(&p, a);
  if (bad) return bad;
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  rest.march = NULL;
  if (!rest.threads) rest.threads = default_threads();
  IngotStatus s = cli_prepare(m, &rest);
  return s ? cli_finish(m, a, s) : exec_player(m, a, &p);
}

int bench_player(const Args *a) {
  PlayArgs p = {.word = {"ingot bench", "--bench"}, .n = 2};
  Args rest = *a;
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  rest.march = NULL;
  if (!rest.threads) rest.threads = 1;
  if (a->json) p.word[p.n++] = "--json";
  if (cli_prepare(m, &rest) || !ingot_is_language_model(m)) { /* the next step reports the error */
    ingot_free(m);
    return -1;
  }
  return exec_player(m, a, &p);
}
