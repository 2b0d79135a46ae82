/* cli_watch.c: signals and the progress line.
 *
 * One thread waits for SIGINT, SIGTERM and SIGHUP, which are blocked in all others. On a signal it
 * ends child processes and removes temporary files (ingot_guard_end), then lets the signal end the
 * process. It also shows the current step. On a terminal this is one line on stderr, redrawn, and
 * erased before other output. Elsewhere it prints a line every 10 s. The state is global because
 * signals are.
 */
#include "cli/cli.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 250, QUIET_MS = 1000, LINE_MS = 10000 };

static struct {
  pthread_mutex_t lock; /* protects all fields below and the line */
  IngotGuard *guard;
  sigset_t set;
  const char *task, *step;       /* task of the verb; step of the library */
  double task_since, step_since; /* milliseconds */
  double next;                   /* time of the next line, without a terminal */
  char text[200];                /* replaces both; "": none */
  int started, shown, draws, quiet, verbose;
  const char *checkpoint;    /* checkpoint of the training; NULL: none */
  volatile int yields;       /* another thread handles the signals */
  volatile int *interrupted; /* set by SIGINT, which then does not end the process; NULL: off */
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void erase(void) {
  if (watch.shown) fputs("\r\033[K", stderr);
  watch.shown = 0;
}

static void draw(void) {
  const char *what = watch.step ? watch.step : watch.task;
  double now = now_ms(), ms = now - (watch.task ? watch.task_since : watch.step_since);
  if (!what || watch.quiet || ms < QUIET_MS || (!watch.draws && now < watch.next)) return;
  erase();
  fputs("ingot: ", stderr);
  if (*watch.text)
    fputs(watch.text, stderr);
  else
    fprintf(stderr, "%s%s%s ... %.0f s", watch.task ? watch.task : "",
            watch.task && watch.step ? ", " : "", watch.step ? watch.step : "", ms / 1e3);
  if (!watch.draws) fputc('\n', stderr);
  fflush(stderr);
  watch.next = now + LINE_MS;
  watch.shown = watch.draws;
}

/* began: start time of the slot's current text. */
static void set_text(const char **slot, double *began, const char *what) {
  pthread_mutex_lock(&watch.lock);
  double now = now_ms();
  erase();
  if (watch.verbose && *slot) fprintf(stderr, "ingot: %s: %.2f s\n", *slot, (now - *began) / 1e3);
  *slot = what;
  *began = now;
  pthread_mutex_unlock(&watch.lock);
}

static void step(void *user, const char *what) {
  (void)user;
  set_text(&watch.step, &watch.step_since, what);
}

void watch_task(const char *what) {
  watch_progress(NULL);
  if (watch.step) step(NULL, NULL); /* left over from failed work */
  set_text(&watch.task, &watch.task_since, what);
}

void watch_set_verbosity(int quiet, int verbose) {
  watch.quiet = quiet;
  watch.verbose = verbose;
}

/* color: ANSI code for `head`, or NULL. */
static void say(const char *before, const char *head, const char *color, const char *text) {
  pthread_mutex_lock(&watch.lock);
  erase();
  if (color && wants_color(stderr))
    fprintf(stderr, "%s\033[%sm%s\033[0m%s\n", before, color, head, text);
  else
    fprintf(stderr, "%s%s%s\n", before, head, text);
  pthread_mutex_unlock(&watch.lock);
}

void watch_interrupt(volatile int *flag) {
  pthread_mutex_lock(&watch.lock);
  watch.interrupted = flag;
  pthread_mutex_unlock(&watch.lock);
}

void watch_checkpoint(const char *path) {
  pthread_mutex_lock(&watch.lock);
  watch.checkpoint = path;
  pthread_mutex_unlock(&watch.lock);
}

void watch_line(const char *head, const char *text) {
  say("ingot: ", head, !strcmp(head, "warning: ") ? "33" : NULL, text);
}

void watch_error(const char *text) {
  say("", "ingot: ", "31", text);
}

void watch_progress(const char *text) {
  pthread_mutex_lock(&watch.lock);
  snprintf(watch.text, sizeof watch.text, "%s", text ? text : "");
  if (text && watch.draws)
    draw();
  else
    erase();
  pthread_mutex_unlock(&watch.lock);
}

void watch_line_buffered(void) {
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
}

/* Ends the process by the signal, so that its parent sees it. Never returns. */
static void leave(int sig) {
  sigset_t one;
  pthread_mutex_lock(&watch.lock); /* stops all output */
  erase();
  ingot_guard_end(watch.guard);
  if (watch.checkpoint && access(watch.checkpoint, F_OK) == 0)
    fprintf(stderr, "ingot: stopped; %s keeps the training: the same command resumes it\n",
            watch.checkpoint);
  else if (watch.checkpoint)
    fprintf(stderr, "ingot: stopped before the first checkpoint: nothing is kept\n");
  sigemptyset(&one);
  sigaddset(&one, sig);
  signal(sig, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &one, NULL);
  raise(sig);
  _exit(128 + sig);
}

static void *stand_by(void *arg) {
  const struct timespec tick = {0, TICK_MS * 1000000L};
  (void)arg;
  for (;;) {
    int sig = watch.yields ? (nanosleep(&tick, NULL), 0) : sigtimedwait(&watch.set, NULL, &tick);
    pthread_mutex_lock(&watch.lock);
    if (sig > 0 && watch.yields) {
      kill(getpid(), sig); /* it came before this thread saw `yields` */
      sig = 0;
    }
    volatile int *flag = sig == SIGINT ? watch.interrupted : NULL;
    if (flag) *flag = 1;
    pthread_mutex_unlock(&watch.lock);
    if (sig > 0 && !flag) leave(sig);
    pthread_mutex_lock(&watch.lock);
    draw();
    pthread_mutex_unlock(&watch.lock);
  }
  return NULL;
}

/* A signal that the parent ignores, as nohup does, stays ignored. If the thread cannot be created,
 * signals keep their default action. */
static void start(void) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  const char *term = getenv("TERM");
  pthread_attr_t attr;
  pthread_t thread;
  watch.started = 1;
  watch.next = now_ms() + LINE_MS;
  watch.draws = !watch.quiet && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
  watch.guard = ingot_guard_new(step, NULL);
  sigemptyset(&watch.set);
  for (int i = 0; i < 3; i++) {
    struct sigaction old;
    if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN)
      sigaddset(&watch.set, signals[i]);
  }
  if (!watch.guard || pthread_attr_init(&attr)) return;
  pthread_attr_setstacksize(&attr, 256 << 10);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_BLOCK, &watch.set, NULL);
  if (pthread_create(&thread, &attr, stand_by, NULL)) {
    pthread_sigmask(SIG_UNBLOCK, &watch.set, NULL);
    ingot_guard_free(watch.guard);
    watch.guard = NULL;
  }
  pthread_attr_destroy(&attr);
}

void watch_yield_signals(void) {
  pthread_mutex_lock(&watch.lock);
  watch.yields = 1;
  pthread_mutex_unlock(&watch.lock);
}

/* An executed program inherits blocked and ignored signals, but not the thread. */
void watch_restore_signals(void) {
  fflush(stdout);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  if (watch.started) pthread_sigmask(SIG_UNBLOCK, &watch.set, NULL);
}

Ingot *new_model(void) {
  if (!watch.started) start();
  Ingot *m = ingot_new(NULL);
  if (m) ingot_set_guard(m, watch.guard);
  return m;
}
