/* model.h: interface of a compiled model for tools/runner.c and tools/player.c.
 *
 * ingot writes the table at the end of the program's text (src/back/c/crun.c). */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANK = 9, OK = 0, USAGE = 2, UNSUPPORTED = 3, BAD = 4, SYSTEM = 5 };

typedef struct Value {
  const char *name;
  char kind;  /* 'f', 'i', 'u', 'b' as in .npy; 'x': a type that .npy lacks, kept as bits */
  int size;   /* bytes of an element */
  int digits; /* 'x': number of low bits of a generated element */
  int limit;  /* integers: upper bound of generated elements, exclusive */
  int rank;
  int64_t max[RANK];              /* largest extents */
  int64_t base[RANK], coef[RANK]; /* extent = base + coef * symbol; inputs only */
  int sym[RANK];                  /* -1: the extent is base */
  int64_t coef2[RANK];            /* coefficient of a second symbol */
  int sym2[RANK];
} Value;

/* A size kept with the state: an int64_t in the arena. */
typedef struct StateSlot {
  int sym;
  size_t at;
} StateSlot;

typedef struct Model {
  const char *name;
  int nin, nout, nsym, nkept;
  const Value *in, *out;
  const StateSlot *kept;
  const int64_t *size; /* default size of every symbol */
  size_t arena, test;  /* bytes; test 0: no self-test */
  int (*call)(void *arena, const int64_t *size, uint64_t seed, const void *const *in,
              void *const *out, int64_t *const *shape);
  const char *(*why)(int status);
  int (*selftest)(void *memory);
  void (*reset)(void *arena);             /* NULL: the model has no state */
  int (*start)(void *arena, int threads); /* NULL: one thread, or OpenMP */
  void (*stop)(void *arena);
  int threads;
  int kernels; /* number of profiled kernels; 0: no profiling */
} Model;

extern const Model ingot_model;

static const char *program; /* name in messages; NULL: the model's name */

static int complain(int code, const char *what, const char *why) {
  fprintf(stderr, "%s: %s: %s\n", program ? program : ingot_model.name, what, why);
  return code;
}

/* Zeroed and aligned to 64 bytes. Exits on failure: the program holds no unsaved data. */
static void *make(size_t n) {
  void *p = NULL;
  if (posix_memalign(&p, 64, n ? n : 1)) exit(complain(SYSTEM, "memory", "there is not enough"));
  memset(p, 0, n);
  return p;
}
