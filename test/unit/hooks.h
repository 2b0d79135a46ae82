/* Allocator and I/O hooks that count, check their callers, and fail the k-th call. */
#ifndef HOOKS_H
#define HOOKS_H

#include "base/base.h"
#include "check.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* When call number `at` comes (1 is the first), it fails; with `on`, so do all that follow. */
typedef struct Fault {
  long calls, at, hits;
  bool on;
} Fault;

static inline bool fault(Fault *f) {
  f->calls++;
  bool hit = f->at && (f->on ? f->calls >= f->at : f->calls == f->at);
  f->hits += hit;
  return hit;
}

typedef struct TestAlloc {
  Fault fault;
  long blocks;
  size_t bytes;
} TestAlloc;

/* Every block remembers its size, so that a wrong `old` is seen. */
static inline void *test_resize(void *user, void *p, size_t old, size_t size) {
  enum { HEAD = 16 };
  TestAlloc *t = user;
  u8 *base = p ? (u8 *)p - HEAD : NULL;
  size_t had = 0;
  if (base) memcpy(&had, base, sizeof had);
  CHECK(had == old);
  if (size == 0) {
    if (base) t->blocks--, t->bytes -= had;
    free(base);
    return NULL;
  }
  if (fault(&t->fault)) return NULL;
  u8 *to = malloc(HEAD + size);
  if (!to) return NULL;
  memset(to, 0xcd, HEAD + size); /* nobody may count on fresh memory being zero */
  memcpy(to, &size, sizeof size);
  if (base) memcpy(to + HEAD, p, had < size ? had : size);
  t->blocks += base == NULL;
  t->bytes += size - had;
  free(base);
  return to + HEAD;
}

static inline Alloc test_alloc(TestAlloc *t) {
  return (Alloc){test_resize, t};
}

typedef struct TestIo {
  Fault fault;
  int err;       /* errno of the failing call */
  int fds, maps; /* open now */
  bool no_map;   /* every map fails */
  size_t step;   /* at most so many bytes per read and write; 0: no limit */
  bool signals;  /* every second call is interrupted first */
  bool interrupted;
} TestIo;

static inline bool io_fault(TestIo *t) {
  if (t->signals && (t->interrupted = !t->interrupted)) {
    errno = EINTR;
    return true;
  }
  if (!fault(&t->fault)) return false;
  errno = t->err;
  return true;
}

static inline int test_open(void *user, int dirfd, const char *path, int flags, int mode) {
  TestIo *t = user;
  if (io_fault(t)) return -1;
  int fd = io_system()->open(NULL, dirfd, path, flags, mode);
  t->fds += fd >= 0;
  return fd;
}

/* A failing close closes all the same, as it does on Linux. */
static inline int test_close(void *user, int fd) {
  TestIo *t = user;
  t->fds--;
  bool bad = fault(&t->fault);
  int rc = io_system()->close(NULL, fd);
  if (!bad) return rc;
  errno = t->err;
  return -1;
}

static inline i64 test_read(void *user, int fd, void *to, size_t n) {
  TestIo *t = user;
  if (io_fault(t)) return -1;
  return io_system()->read(NULL, fd, to, t->step && n > t->step ? t->step : n);
}

static inline i64 test_write(void *user, int fd, const void *from, size_t n) {
  TestIo *t = user;
  if (io_fault(t)) return -1;
  return io_system()->write(NULL, fd, from, t->step && n > t->step ? t->step : n);
}

static inline int test_fsync(void *user, int fd) {
  return io_fault(user) ? -1 : io_system()->fsync(NULL, fd);
}

static inline int test_rename(void *user, int fromdir, const char *from, int todir,
                              const char *to) {
  TestIo *t = user;
  if (!fault(&t->fault)) return io_system()->rename(NULL, fromdir, from, todir, to);
  errno = t->err;
  return -1;
}

/* Never fails on purpose: the tests count what is left behind. */
static inline int test_unlink(void *user, int dirfd, const char *path) {
  (void)user;
  return io_system()->unlink(NULL, dirfd, path);
}

static inline void *test_map(void *user, int fd, size_t n) {
  TestIo *t = user;
  if (t->no_map || fault(&t->fault)) return NULL;
  void *p = io_system()->map(NULL, fd, n);
  t->maps += p != NULL;
  return p;
}

static inline void test_unmap(void *user, void *p, size_t n) {
  TestIo *t = user;
  t->maps--;
  io_system()->unmap(NULL, p, n);
}

static inline Io test_io(TestIo *t) {
  return (Io){test_open,   test_close,  test_read, test_write, test_fsync,
              test_rename, test_unlink, test_map,  test_unmap, t};
}

#endif
