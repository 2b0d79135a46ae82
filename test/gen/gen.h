/* gen.h: random valid graphs, the engines that must agree on them, and the reducer.
 *
 * A Case is the text of a graph and arrays to run it with; everything else follows from its seed.
 */
#ifndef GEN_H
#define GEN_H

#include "ir/graph/graph.h"

typedef struct Rng Rng;
typedef struct Grain Grain;
typedef struct Fill Fill;
typedef struct Case Case;
typedef struct Gen Gen;
typedef struct Wish Wish;
typedef struct Verdict Verdict;

struct Rng {
  u64 s;
};

/* How far results may be from those of the reference. */
typedef enum Mode {
  MODE_exact, /* small multiples of powers of two: no operation rounds, whatever its order */
  MODE_real,  /* ordinary numbers */
  MODE_raw,   /* NaN, infinities, -0, denormals, ends of integer types */
} Mode;

/* In exact mode: |x| <= mag, and x is a multiple of 2^-q. Integers have q 0. */
struct Grain {
  double mag;
  int q;
};

/* What a parameter holds. */
struct Fill {
  Mode mode;
  Grain grain;
  i64 index;  /* > 0: indices into this extent, some beyond its ends */
  bool fixed; /* nothing may be put in its place */
};

struct Case {
  Ctx *c; /* owns the rest */
  u64 seed;
  Mode mode;
  bool smooth; /* small changes of values have small effects: passes that round otherwise can be
                  judged */
  const char *text;
  size_t n;
  u32 nin, nbind;     /* parameters; sets of arrays, which differ where dimensions are symbolic */
  Str *name;          /* of parameters */
  const char *target; /* machine the passes work for; NULL: scalar */
  Tensor **in[2];
};

/* What kind of graphs is wanted. */
struct Wish {
  const char *only; /* comma-separated names of operators or kinds; NULL: all */
  u32 nodes;        /* at most; 0: the generator's choice */
  int mode;         /* -1: any */
  bool large;       /* extents at which lowering begins to block and vectorize */
};

struct Verdict {
  char what[64];    /* "": all agree; else what kind of failure, the same for the same cause */
  char detail[600]; /* for people */
  bool refused;     /* every engine refuses the run with the same code */
  char why[200];    /* an engine does not support it; message */
};

/* rng.c */
u64 rng_next(Rng *r);
u32 rng_below(Rng *r, u32 n); /* 0 for n = 0 */
bool rng_chance(Rng *r, u32 percent);
i64 rng_between(Rng *r, i64 lo, i64 hi);
void fill_tensor(Rng *r, Tensor *t, const Fill *f);
Fill fill_any(Rng *r, DType dt, Mode mode); /* a grain that suits the type */
double mag_limit(DType dt);                 /* largest finite value, as far as exact mode goes */
bool grain_fits(DType dt, Grain x);         /* exact in that type */
Grain grain_of_type(DType dt);

/* grow.c */
Case *case_new(u64 seed, const Wish *w);
Case *case_read(const char *path); /* what case_print wrote; NULL: it cannot be read */
void case_free(Case *k);

/* judge.c */
enum { JUDGE_NAME = 32 };
Verdict judge_program(const Case *k); /* ref against interp with all passes, and without each; vm */
/* The C of the case, for name_call; false when it is not supported. */
bool judge_emit(const Case *k, const char *name, const char *path, Verdict *v);
Verdict judge_library(const Case *k, const char *library, const char *name); /* interp against C */
bool judge_compile(const char *cc, const char *library, const char *const *source, u32 n);
Verdict judge_all(const Case *k, const char *cc, const char *folder); /* all of that for one */

/* shrink.c: a smaller case that fails alike; k itself when there is none. */
Case *shrink(Case *k, const char *cc, const char *folder, const char *what);
void case_print(const Case *k, const Verdict *v); /* as a file of test/exec */

#endif
