/* spawn.c: child processes and their temporary folder.
 *
 * Programs are started with an argument vector, never through a shell, so names and paths need no
 * quoting. Their output goes to a file in the folder and is quoted if they fail.
 */
#include "host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void tempdir_make(Ctx *c, TempDir *f) {
  const char *tmp = temp_folder();
  char mark[TEMP_MARK];
  temp_mark(mark);
  if (strlen(tmp) > sizeof f->path - 64) tmp = "/tmp";
  temps_collect(tmp, true);
  snprintf(f->path, sizeof f->path, "%s/ingot-%s-XXXXXX", tmp, mark);
  guard_enter(c);
  int err = mkdtemp(f->path) ? 0 : errno;
  if (!err) guard_put(c, f->path, 0);
  guard_leave(c);
  f->c = c;
  if (!err) return;
  *f->path = 0;
  fail(c, ERR_system, LOC_NONE,
       "cannot create a temporary folder in %s: %s; TMPDIR selects another place", tmp,
       strerror(err));
}

/* Files only: ingot creates no subfolders. */
void tempdir_remove(TempDir *f) {
  if (!*f->path) return;
  guard_enter(f->c);
  dir_remove(f->path);
  guard_drop(f->c, f->path, 0);
  guard_leave(f->c);
  *f->path = 0;
}

void tempdir_protect(Ctx *c, TempDir *f, void (*fn)(Ctx *c, void *arg), void *arg) {
  Err e = ctx_protect(c, fn, arg);
  tempdir_remove(f);
  if (e) longjmp(*c->door, (int)e);
}

const char *tempdir_file(Ctx *c, const TempDir *f, const char *name) {
  StrBuf t = sb_new(&c->keep);
  sb_fmt(&t, "%s/%s", f->path, name);
  return sb_cstr(&t);
}

/* Searches like posix_spawnp. Returns 0, or why the program cannot be started. */
static int find_program(Ctx *c, const char *program, const char **found) {
  const char *path = getenv("PATH");
  if (!path) path = "/usr/local/bin:/bin:/usr/bin";
  if (strchr(program, '/')) path = "";
  int why = ENOENT;
  for (const char *at = path;; at++) {
    size_t n = strcspn(at, ":");
    const char *file = program;
    if (n) file = fmt_text(c, "%.*s/%s", (int)n, at, program);
    if (access(file, X_OK) == 0) {
      if (found) *found = file;
      return 0;
    }
    if (errno != ENOENT && errno != ENOTDIR) why = errno;
    at += n;
    if (!*at) break;
  }
  return why;
}

bool spawn_exists(Ctx *c, const char *program) {
  return !find_program(c, program, NULL);
}

const char *spawn_resolve(Ctx *c, const char *program) {
  const char *found = program;
  char *real = find_program(c, program, &found) ? NULL : realpath(found, NULL);
  if (!real) return program;
  const char *path = str_text(c, str_of(c, real));
  free(real);
  return path;
}

/* Reports a program that cannot be started; for a C compiler, the message names alternatives. */
static _Noreturn void fail_start(Ctx *c, const char *what, const char *program, const char *why) {
  fail(c, ERR_system, LOC_NONE, "%s '%s' cannot be started: %s%s", what, program, why,
       strcmp(what, "C compiler") ? ""
                                  : "; install gcc or clang (Debian's package gcc), name one with "
                                    "--cc or $CC, or do without: --engine jit or vm, build "
                                    "--backend llvm");
}

void spawn_check(Ctx *c, const char *what, const char *program) {
  int why = find_program(c, program, NULL);
  if (why) fail_start(c, what, program, strerror(why));
}

/* Copies the environment without variables that redirect the profiles of instrumented programs. */
static char **clean_environment(Ctx *c) {
  static const char *const without[] = {"GCOV_PREFIX=", "GCOV_PREFIX_STRIP=", "GCOV_EXIT_AT_ERROR=",
                                        "GCOV_ERROR_FILE=", "LLVM_PROFILE_FILE="};
  VEC(char *) kept = {0};
  for (char **at = environ; at && *at; at++) {
    bool drop = false;
    for (u32 i = 0; i < sizeof without / sizeof *without; i++)
      drop = drop || !strncmp(*at, without[i], strlen(without[i]));
    if (!drop) *vec_push(&c->keep, &kept) = *at;
  }
  *vec_push(&c->keep, &kept) = NULL;
  return kept.at;
}

/* Starts a program; returns 0 or an error. Under a guard it leads its own process group, so that
 * its children end with it, and signals blocked by the guard's owner are unblocked. */
static int start(Ctx *c, const char *log, const char *const *argv, pid_t *pid) {
  posix_spawn_file_actions_t act;
  posix_spawnattr_t attr;
  sigset_t mask;
  char **with = clean_environment(c);
  int e = posix_spawn_file_actions_init(&act);
  if (e) return e;
  e = posix_spawnattr_init(&attr);
  if (!e) {
    posix_spawn_file_actions_addopen(&act, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&act, 1, 2);
    sigemptyset(&mask);
    posix_spawnattr_setsigmask(&attr, &mask);
    if (c->guard) posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    guard_enter(c);
    e = posix_spawnp(pid, argv[0], &act, &attr, (char *const *)(uintptr_t)argv, with);
    if (!e) guard_put(c, NULL, *pid);
    guard_leave(c);
    posix_spawnattr_destroy(&attr);
  }
  posix_spawn_file_actions_destroy(&act);
  return e;
}

/* The pid stays reserved until it is off the list. */
static int wait_for(Ctx *c, pid_t pid) {
  siginfo_t info;
  int status = 0;
  while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) continue;
  guard_enter(c);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  guard_drop(c, NULL, pid);
  guard_leave(c);
  return status;
}

/* Exit code, or SPAWN_KILLED + signal; e: error of the start. */
static int exit_code(Ctx *c, const char *what, const char *program, int e, int status) {
  if (e) fail_start(c, what, program, strerror(e));
  /* 127: exec failed after a successful spawn */
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    fail_start(c, what, program, "exit status 127");
  return WIFEXITED(status) ? WEXITSTATUS(status) : SPAWN_KILLED + WTERMSIG(status);
}

static void report_command(Ctx *c, const TempDir *f, const char *const *argv) {
  if (!f->on_command) return;
  StrBuf t = sb_new(&c->keep);
  for (u32 i = 0; argv[i]; i++) sb_fmt(&t, "%s%s", i ? " " : "", argv[i]);
  f->on_command(f->user, sb_cstr(&t));
}

int spawn_status(Ctx *c, const TempDir *f, const char *what, const char *const *argv) {
  const char *log = tempdir_file(c, f, "log");
  pid_t pid = 0;
  report_command(c, f, argv);
  guard_log(c, what);
  int e = start(c, log, argv, &pid), status = e ? 0 : wait_for(c, pid);
  guard_log(c, NULL);
  return exit_code(c, what, argv[0], e, status);
}

const char *spawn_text(Ctx *c, const TempDir *f, const char *what, const char *const *argv,
                       int *status) {
  StrBuf t = sb_new(&c->keep);
  *status = spawn_status(c, f, what, argv);
  File log = file_read_own(c, tempdir_file(c, f, "log"));
  sb_put(&t, log.at, log.n);
  return sb_cstr(&t);
}

static _Noreturn void fail_with_log(Ctx *c, const char *log, const char *what, const char *program,
                                    int status) {
  File text = file_read_own(c, log);
  if (status > SPAWN_KILLED)
    fail(c, ERR_system, LOC_NONE, "%s '%s' was ended by signal %d (%s)%s%.*s", what, program,
         status - SPAWN_KILLED, strsignal(status - SPAWN_KILLED), text.n ? ":\n" : "",
         (int)(text.n < 2000 ? text.n : 2000), (const char *)text.at);
  fail(c, ERR_system, LOC_NONE, "%s '%s' failed (exit status %d):\n%.*s", what, program, status,
       (int)(text.n < 2000 ? text.n : 2000), (const char *)text.at);
}

void spawn_fail(Ctx *c, const TempDir *f, const char *what, const char *program, int status) {
  fail_with_log(c, tempdir_file(c, f, "log"), what, program, status);
}

static u32 processors(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : n > SPAWN_MAX ? SPAWN_MAX : (u32)n;
}

/* Programs take similar time, so waits for the first started. After a failure starts no more, and
 * waits for the rest. */
void spawn_parallel(Ctx *c, const TempDir *f, const char *what, const ArgVec *job, u32 n) {
  const char *log[SPAWN_MAX];
  int status[SPAWN_MAX] = {0}, e = 0;
  pid_t pid[SPAWN_MAX];
  u32 started = 0, ended = 0, side = processors();
  bool failed = false;
  guard_log(c, n > 1 ? fmt_text(c, "%s: part 1 of %u", what, n) : what);
  while (ended < started || (started < n && !failed)) {
    if (started < n && !failed && started - ended < side) {
      report_command(c, f, job[started].at);
      log[started] = tempdir_file(c, f, fmt_text(c, "log%u", started));
      e = start(c, log[started], job[started].at, &pid[started]);
      failed = e != 0;
      started += !e;
    } else {
      status[ended] = wait_for(c, pid[ended]);
      failed = failed || status[ended];
      if (++ended < n) guard_log(c, fmt_text(c, "%s: part %u of %u", what, ended + 1, n));
    }
  }
  guard_log(c, NULL);
  if (e) exit_code(c, what, job[0].at[0], e, 0);
  for (u32 i = 0; i < ended; i++) {
    int code = exit_code(c, what, job[i].at[0], 0, status[i]);
    if (code) fail_with_log(c, log[i], what, job[i].at[0], code);
  }
}

void spawn_run(Ctx *c, const TempDir *f, const char *what, const char *const *argv) {
  int status = spawn_status(c, f, what, argv);
  if (status) spawn_fail(c, f, what, argv[0], status);
}

/* Splits a command such as "ccache gcc" at blanks. */
void argv_put_list(Ctx *c, ArgVec *w, const char *const *word) {
  for (; word && *word; word++) *vec_push(&c->keep, w) = *word;
  *vec_push(&c->keep, w) = NULL;
  w->n--;
}

void argv_fmt(Ctx *c, ArgVec *w, const char *fmt, ...) {
  StrBuf t = sb_new(&c->keep);
  va_list args;
  va_start(args, fmt);
  sb_vfmt(&t, fmt, args);
  va_end(args);
  argv_put(c, w, sb_cstr(&t));
}

void argv_add(Ctx *c, ArgVec *w, const char *text) {
  while (*text) {
    size_t n = strcspn(text, " ");
    if (n) argv_put(c, w, str_text(c, str_intern(c, text, n)));
    text += n + (text[n] == ' ');
  }
}

void argv_compiler(Ctx *c, ArgVec *w, const char *cc) {
  if (!cc || !*cc) cc = getenv("CC");
  argv_add(c, w, cc && *cc ? cc : "cc");
  if (!w->n) fail(c, ERR_usage, LOC_NONE, "the name of the C compiler is empty");
}

bool compiler_exists(Ctx *c, const char *cc) {
  ArgVec w = {0};
  argv_compiler(c, &w, cc);
  return spawn_exists(c, w.at[0]);
}

void compiler_need(Ctx *c, const char *cc) {
  ArgVec w = {0};
  argv_compiler(c, &w, cc);
  spawn_check(c, "C compiler", w.at[0]);
}
