/* Resources that must not outlive the process: temporary files, folders and child processes.
 *
 * In: registrations from the threads that work under one guard. Out, when another thread calls
 * guard_end: child processes are terminated, files and folders removed. Creating a resource and
 * registering it happen under one lock. guard_end takes that lock and keeps it, so no resource is
 * created after it; threads that try block until the process ends. Without a guard nothing is
 * registered, and children stay in the process group of the caller. */
#include "base/base.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 32, PATIENCE_MS = 2000, NAP_MS = 10 };

typedef struct GuardEntry {
  const char *path; /* file or folder; owned by the caller of guard_put */
  long pid;         /* child process, leader of its group */
} GuardEntry;

struct Guard {
  atomic_flag lock;
  GuardEntry entry[MOST]; /* further resources are not guarded */
  void (*doing)(void *user, const char *what);
  void *user;
};

Guard *guard_new(void (*doing)(void *user, const char *what), void *user) {
  Guard *g = calloc(1, sizeof *g);
  if (!g) return NULL;
  atomic_flag_clear(&g->lock);
  g->doing = doing;
  g->user = user;
  return g;
}

void guard_free(Guard *g) {
  free(g);
}

static void lock(Guard *g) {
  while (atomic_flag_test_and_set(&g->lock)) sched_yield();
}

void guard_enter(const Ctx *c) {
  if (c->guard) lock(c->guard);
}

void guard_leave(const Ctx *c) {
  if (c->guard) atomic_flag_clear(&c->guard->lock);
}

static void replace(const Ctx *c, GuardEntry from, GuardEntry to) {
  for (u32 i = 0; c->guard && i < MOST; i++) {
    GuardEntry *e = &c->guard->entry[i];
    if (e->path != from.path || e->pid != from.pid) continue;
    *e = to;
    return;
  }
}

void guard_put(const Ctx *c, const char *path, long pid) {
  replace(c, (GuardEntry){NULL, 0}, (GuardEntry){path, pid});
}

void guard_drop(const Ctx *c, const char *path, long pid) {
  replace(c, (GuardEntry){path, pid}, (GuardEntry){NULL, 0});
}

void guard_log(const Ctx *c, const char *what) {
  if (c->guard && c->guard->doing) c->guard->doing(c->guard->user, what);
}

/* Compilers remove their temporary files on SIGTERM; give them time to do so. */
static void end_program(pid_t pid) {
  const struct timespec nap = {0, NAP_MS * 1000000L};
  siginfo_t info;
  kill(-pid, SIGTERM);
  kill(-pid, SIGCONT);
  for (u32 ms = 0; ms < PATIENCE_MS; ms += NAP_MS) {
    info.si_pid = 0;
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid) break;
    nanosleep(&nap, NULL);
  }
  kill(-pid, SIGKILL);
}

void guard_end(Guard *g) {
  lock(g);
  for (u32 i = 0; i < MOST; i++)
    if (g->entry[i].pid) end_program((pid_t)g->entry[i].pid);
  for (u32 i = 0; i < MOST; i++)
    if (g->entry[i].path && unlink(g->entry[i].path) != 0) dir_remove(g->entry[i].path);
}
