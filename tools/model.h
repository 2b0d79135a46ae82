/* model.h: a compiled model as the programs around it see it: tools/runner.c, tools/player.c.
 *
 * The table is written by ingot, at the end of the program's text (src/back/c/crunner.c).
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANK = 9, OK = 0, USAGE = 2, UNSUPPORTED = 3, BAD = 4, SYSTEM = 5 };

typedef struct Value {
  const char *name;
  char kind;  /* 'f', 'i', 'u', 'b' as in .npy; 'x': a type .npy does not know, whose bits are kept
                 as they are */
  int size;   /* of an element */
  int digits; /* 'x': how many low bits a made-up element has */
  int limit;  /* integers: made-up elements are below it */
  int rank;
  int64_t most[RANK];             /* largest extents */
  int64_t base[RANK], coef[RANK]; /* extent = base + coef * size of the symbol; inputs only */
  int sym[RANK];                  /* -1: the extent is base */
  int64_t coef2[RANK];            /* and of a second symbol */
  int sym2[RANK];
} Value;

/* A size that is kept with the state: an int64_t in the arena. */
typedef struct Kept {
  int sym;
  size_t at;
} Kept;

typedef struct Model {
  const char *name;
  int nin, nout, nsym, nkept;
  const Value *in, *out;
  const Kept *kept;
  const int64_t *size; /* of every symbol, unless an input says otherwise */
  size_t arena, test;  /* bytes; test 0: there is no self-test */
  int (*call)(void *arena, const int64_t *size, uint64_t seed, const void *const *in,
              void *const *out, int64_t *const *shape);
  const char *(*why)(int status);
  int (*selftest)(void *memory);
  void (*reset)(void *arena);             /* NULL: the model has no state */
  int (*start)(void *arena, int threads); /* NULL: one thread, or OpenMP's */
  void (*stop)(void *arena);
  int threads;
  int kernels; /* it tells when they have ended; 0: it does not */
} Model;

extern const Model ingot_model;

static const char *program; /* its name in messages; NULL: the model's */

static int complain(int code, const char *what, const char *why) {
  fprintf(stderr, "%s: %s: %s\n", program ? program : ingot_model.name, what, why);
  return code;
}

/* Zeroed, aligned for any use; failure ends the program, which holds nothing that would be lost. */
static void *make(size_t n) {
  void *p = NULL;
  if (posix_memalign(&p, 64, n ? n : 1)) exit(complain(SYSTEM, "memory", "there is not enough"));
  memset(p, 0, n);
  return p;
}
