/* CHECK(condition) for self-checking programs: prints what failed and goes on. main ends in
 * `return check_end();`, which is 0 when everything held. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

static int check_failed, check_done;

#define CHECK(x) check((x) ? 1 : 0, #x, __FILE__, __LINE__)

static inline int check(int ok, const char *what, const char *file, int line) {
  check_done++;
  if (!ok && check_failed++ < 20) fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
  return ok;
}

static inline int check_end(void) {
  if (check_failed) fprintf(stderr, "%d of %d checks failed\n", check_failed, check_done);
  return check_failed != 0;
}

#endif
