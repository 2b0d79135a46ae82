/* product.h: what ingot build makes, shared by build.c, steps.c, profile.c and bolt.c.
 *
 * The text of a model is made once and compiled as often as there are variants: the baseline, and
 * one for each step of a tuned build.
 */
#ifndef INGOT_API_PRODUCT_H
#define INGOT_API_PRODUCT_H

#include "api/own.h"

typedef enum Product { PD_object, PD_archive, PD_shared, PD_program, PD_wasm } Product;

/* What --preset sets, unless an option says otherwise. */
typedef struct Preset {
  const char *name, *optimize; /* behind -O */
  bool lto, strip, debug;      /* debug: information for debuggers */
  Aim aim;
  const char *what;
} Preset;

/* One way to compile the text, and what was made so. */
typedef struct Variant {
  const char *step;     /* its name in tables, and of its files */
  const char *optimize; /* behind -O */
  bool lto, relaxed, relocs;
  Words profile;       /* flags that make a profile, or use one */
  const char *product; /* a file of the folder */
  const char *program; /* the same code as a program that can be measured; NULL: not wanted */
  const char *arrays;  /* as one that runs on arrays; NULL: not wanted */
} Variant;

/* What the compiler is and can do; found before work begins. */
typedef struct ToolChain {
  Words cc;
  CompilerKind kind;
  const char *version;
  const char *lto;         /* flags */
  const char *profdata;    /* of clang */
  const char *bolt, *perf; /* perf NULL: programs are instrumented */
  const char *perf2bolt;
} ToolChain;

/* Arguments of the runs that a profile is made of. */
typedef struct Workload {
  VEC(Words) run;  /* without the program */
  const char *key; /* what it is made of */
} Workload;

enum { MEASURES = 2, ROUNDS = 9 };

/* A step of a tuned build, measured. */
typedef struct TunedStep {
  Variant v;
  double ms[MEASURES][ROUNDS]; /* of a run; or decoding and prefill, of a token */
  u64 bytes;
} TunedStep;

typedef struct ProductBuild {
  Ingot *m;
  const IngotBuild *o;
  const Preset *preset;
  Product kind;
  Folder folder;
  const char *name; /* prefix of C names */
  CodeSize size;
  IngotC ic;
  Text source, header;
  EmitFacts facts;
  u32 parts;
  bool speaks;  /* the program around it talks */
  Words runner; /* objects of the program around it that does not */
  Words guard;  /* objects of a program that look at the CPU before main */
  /* of a tuned build */
  bool aims_elsewhere; /* the baseline is made for time, what follows for what the preset says */
  ToolChain chain;
  Workload work;
  VEC(TunedStep) step;
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
void preset_text(const Preset *p, Text *t);          /* as the options that it stands for */

/* Weights of more bytes are assembled in from a file: compilers are slow on long strings. */
#define WEIGHTS_FILE_BYTES ((u64)4 << 20)

/* build.c */
Product product_of(const char *path);
void build_check_name(Ctx *c, const char *output); /* fails if it promises what is not made */
/* A C name from the file name: libnet.a gives net; other characters than letters and digits become
 * '_'. */
const char *build_stem(Ctx *c, const char *path, Product kind);
const char *build_beside(Ctx *c, const char *output, const char *end); /* OUT.h for OUT.so */
void build_file(Ctx *c, const char *path, FileOut f); /* for the tools that are started */
void build_text(Ctx *c, ProductBuild *b);             /* b->source and what belongs to it */
const char *build_usual(const ProductBuild *b); /* what stands behind -O unless said otherwise */
/* Makes v->product and, where they are wanted (not NULL), programs. */
void build_variant(Ctx *c, ProductBuild *b, Variant *v);

/* wasm.c */
void wasm_check(Ingot *m, const IngotBuild *o); /* before work */
CodeSize wasm_build(Ingot *m, const IngotBuild *o);

/* relaxed.c */
extern const char relaxed_flags[];
Text relaxed_text(Ctx *c, Text *text);

/* steps.c */
bool steps_wanted(const IngotBuild *o);
void steps_check(Ingot *m, const IngotBuild *o); /* before work: refuses what is missing */
/* Can they be measured? Else b->unmeasured says why not; refuses steps that need it. */
bool steps_measured(Ctx *c, ProductBuild *b);
void steps_run(Ctx *c, ProductBuild *b);
const char *steps_baseline(Ctx *c, const char *output); /* OUT.baseline, OUT.baseline.so */

/* gains.c */
void gains_report(ProductBuild *b, bool json, Text *t);

/* workload.c: fills b->work */
void workload_read(Ctx *c, ProductBuild *b);
void workload_check(Ctx *c, const char *path);

/* profile.c */
Words profile_make(Ctx *c, ProductBuild *b, const Variant *like); /* flags that use it */

/* bolt.c: v->product, a program, laid out anew */
void bolt_apply(Ctx *c, ProductBuild *b, Variant *v);
bool bolt_has_branches(Ctx *c, const Folder *f, const char *perf);

#endif
