/* build_product.h: what ingot build makes, shared by build_product.c, pgo_steps.c, profile.c and
 * bolt.c.
 *
 * The text of a model is made once and compiled as often as there are variants: the baseline, and
 * one for each step of a tuned build.
 */
#ifndef INGOT_API_BUILD_PRODUCT_H
#define INGOT_API_BUILD_PRODUCT_H

#include "api/api_internal.h"

typedef enum ProductKind { PD_object, PD_archive, PD_shared, PD_program, PD_wasm } ProductKind;

/* What --preset sets, unless an option says otherwise. */
typedef struct Preset {
  const char *name, *optimize; /* behind -O */
  bool lto, strip, debug;      /* debug: information for debuggers */
  Aim aim;
  const char *what;
} Preset;

/* One way to compile the text, and what was made so. */
typedef struct BuildConfig {
  const char *step;     /* its name in tables, and of its files */
  const char *optimize; /* behind -O */
  bool lto, relaxed, relocs;
  ArgVec profile;      /* flags that make a profile, or use one */
  const char *product; /* a file of the folder */
  const char *program; /* the same code as a program that can be measured; NULL: not wanted */
  const char *arrays;  /* as one that runs on arrays; NULL: not wanted */
} BuildConfig;

/* What the compiler is and can do; found before work begins. */
typedef struct ToolChain {
  ArgVec cc;
  CompilerKind kind;
  const char *version;
  const char *lto;         /* flags */
  const char *profdata;    /* of clang */
  const char *bolt, *perf; /* perf NULL: programs are instrumented */
  const char *perf2bolt;
} ToolChain;

/* Arguments of the runs that a profile is made of. */
typedef struct Workload {
  VEC(ArgVec) run; /* without the program */
  const char *key; /* what it is made of */
} Workload;

enum { MEASURES = 2, ROUNDS = 9 };

/* A step of a tuned build, measured. */
typedef struct PgoStep {
  BuildConfig v;
  double ms[MEASURES][ROUNDS]; /* of a run; or decoding and prefill, of a token */
  u64 bytes;
} PgoStep;

typedef struct ProductBuild {
  Ingot *m;
  const IngotBuild *o;
  const Preset *preset;
  ProductKind kind;
  TempDir folder;
  const char *name; /* prefix of C names */
  CodeSize size;
  IngotC ic;
  StrBuf source, header;
  EmitFacts facts;
  u32 parts;
  bool speaks;   /* the program around it talks */
  ArgVec runner; /* objects of the program around it that does not */
  ArgVec guard;  /* objects of a program that look at the CPU before main */
  /* of a tuned build */
  bool aims_elsewhere; /* the baseline is made for time, what follows for what the preset says */
  ToolChain chain;
  Workload work;
  VEC(PgoStep) step;
  u32 measures;           /* 0: it was not measured */
  double load;            /* of the machine, meanwhile */
  const char *unmeasured; /* why not */
  IngotDiff relaxed;      /* name NULL: not relaxed */
  bool profiled, from_cache;
  u32 nfunction;          /* of the model */
  VEC(const char *) idle; /* those that did not run */
} ProductBuild;

/* preset.c */
const Preset *preset_named(const char *name);        /* NULL: the usual one; result NULL: none */
const Preset *preset_find(Ctx *c, const char *name); /* the same; fails if there is none */
void preset_text(const Preset *p, StrBuf *t);        /* as the options that it stands for */

/* Weights of more bytes are assembled in from a file: compilers are slow on long strings. */
#define WEIGHTS_FILE_BYTES ((u64)4 << 20)

/* build_product.c */
ProductKind product_kind(const char *path);
void build_check_name(Ctx *c, const char *output); /* fails if it promises what is not made */
/* A C name from the file name: libnet.a gives net; other characters than letters and digits become
 * '_'. */
const char *build_stem(Ctx *c, const char *path, ProductKind kind);
const char *build_sibling_path(Ctx *c, const char *output, const char *end); /* OUT.h for OUT.so */
void build_file(Ctx *c, const char *path, FileOut f); /* for the tools that are started */
void build_text(Ctx *c, ProductBuild *b);             /* b->source and what belongs to it */
const char *
build_default_level(const ProductBuild *b); /* what stands behind -O unless said otherwise */
/* Makes v->product and, where they are wanted (not NULL), programs. */
void build_compile(Ctx *c, ProductBuild *b, BuildConfig *v);

/* wasm.c */
void wasm_check(Ingot *m, const IngotBuild *o); /* before work */
CodeSize wasm_build(Ingot *m, const IngotBuild *o);

/* fast_math.c */
extern const char fast_math_flags[];
StrBuf fast_math_source(Ctx *c, StrBuf *text);

/* pgo_steps.c */
bool pgo_wanted(const IngotBuild *o);
void pgo_check(Ingot *m, const IngotBuild *o); /* before work: refuses what is missing */
/* Can they be measured? Else b->unmeasured says why not; refuses steps that need it. */
bool pgo_can_measure(Ctx *c, ProductBuild *b);
void pgo_run(Ctx *c, ProductBuild *b);
const char *pgo_baseline_path(Ctx *c, const char *output); /* OUT.baseline, OUT.baseline.so */

/* speedup.c */
void speedup_report(ProductBuild *b, bool json, StrBuf *t);

/* workload.c: fills b->work */
void workload_read(Ctx *c, ProductBuild *b);
void workload_check(Ctx *c, const char *path);

/* profile.c */
ArgVec profile_make(Ctx *c, ProductBuild *b, const BuildConfig *like); /* flags that use it */

/* bolt.c: v->product, a program, laid out anew */
void bolt_apply(Ctx *c, ProductBuild *b, BuildConfig *v);
bool bolt_has_branches(Ctx *c, const TempDir *f, const char *perf);

#endif
