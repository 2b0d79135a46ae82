/* Compilation contexts: create and free a Ctx, protected calls, the system's allocator and I/O
 * table. A Ctx owns everything created under it: three arenas and the files read. */
#include "base/base_own.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void *sys_resize(void *user, void *p, size_t old, size_t size) {
  (void)user, (void)old;
  if (size == 0) {
    free(p);
    return NULL;
  }
  return realloc(p, size);
}

static int sys_open(void *user, int dirfd, const char *path, int flags, int mode) {
  (void)user;
  return openat(dirfd, path, flags, mode);
}

static int sys_close(void *user, int fd) {
  (void)user;
  return close(fd);
}

static i64 sys_read(void *user, int fd, void *to, size_t n) {
  (void)user;
  return read(fd, to, n);
}

static i64 sys_write(void *user, int fd, const void *from, size_t n) {
  (void)user;
  return write(fd, from, n);
}

static int sys_fsync(void *user, int fd) {
  (void)user;
  return fsync(fd);
}

static int sys_rename(void *user, int fromdir, const char *from, int todir, const char *to) {
  (void)user;
  return renameat(fromdir, from, todir, to);
}

static int sys_unlink(void *user, int dirfd, const char *path) {
  (void)user;
  return unlinkat(dirfd, path, 0);
}

static void *sys_map(void *user, int fd, size_t n) {
  (void)user;
  void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
  return p == MAP_FAILED ? NULL : p;
}

static void sys_unmap(void *user, void *p, size_t n) {
  (void)user;
  munmap(p, n);
}

static const Alloc system_alloc = {sys_resize, NULL};
static const Io system_io = {sys_open,   sys_close,  sys_read, sys_write, sys_fsync,
                             sys_rename, sys_unlink, sys_map,  sys_unmap, NULL};

const Alloc *alloc_system(void) {
  return &system_alloc;
}

const Io *io_system(void) {
  return &system_io;
}

static void start(Ctx *c, void *arg) {
  (void)arg;
  strs_init(c);
}

Ctx *ctx_new(const Alloc *alloc, const Io *io) {
  if (!alloc) alloc = &system_alloc;
  CtxStorage *r = alloc->resize(alloc->user, NULL, 0, sizeof *r);
  if (!r) return NULL;
  *r = (CtxStorage){.c = {.alloc = *alloc, .io = io ? *io : system_io}};
  Ctx *c = &r->c;
  c->keep.c = c->work.c = c->scratch.c = c;
  c->diags_end = &c->diags;
  c->here = LOC_NONE;
  if (ctx_protect(c, start, NULL) != ERR_ok) {
    ctx_free(c);
    return NULL;
  }
  return c;
}

void ctx_free(Ctx *c) {
  if (!c) return;
  files_free(c);
  arena_clear(&c->scratch);
  arena_clear(&c->work);
  arena_clear(&c->keep);
  Alloc m = c->alloc;
  m.resize(m.user, c, sizeof(CtxStorage), 0);
}

void ctx_protect_begin(Ctx *c, ProtectedCall *d) {
  d->c = c;
  d->outer = c->door;
  d->passed = false;
  c->door = &d->here;
}

Err ctx_protect_end(const ProtectedCall *d) {
  d->c->door = d->outer;
  return d->passed ? ERR_ok : ((CtxStorage *)d->c)->left;
}

Err ctx_protect(Ctx *c, void (*fn)(Ctx *c, void *arg), void *arg) {
  ProtectedCall d;
  ctx_protect_begin(c, &d);
  if (!setjmp(d.here)) {
    fn(c, arg);
    d.passed = true;
  }
  return ctx_protect_end(&d);
}

Err ctx_try(Ctx *c, void (*fn)(Ctx *c, void *arg), void *arg, const char **why) {
  DiagMark before = diag_mark(c);
  Err err = ctx_protect(c, fn, arg);
  if (err == ERR_ok) return err;
  if (err == ERR_system && c->door) longjmp(*c->door, (int)err);
  *why = diag_cause(*before.end);
  diag_rewind(c, before);
  return err;
}

double time_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}
