/* build_product.h: shared by build_product.c, pgo_steps.c, profile.c and bolt.c.
 *
 * The C of a model is emitted once and compiled once per BuildConfig: the baseline, and one for
 * each step of a PGO build.
 */
#ifndef INGOT_DRIVER_BUILD_PRODUCT_H
#define INGOT_DRIVER_BUILD_PRODUCT_H

#include "api/api_internal.h"

typedef enum ProductKind { PD_object, PD_archive, PD_shared, PD_program, PD_wasm } ProductKind;

/* Settings of --preset, which options override. */
typedef struct Preset {
  const char *name, *optimize; /* optimize: level after -O */
  bool lto, strip, debug;      /* debug: debug information */
  Aim aim;
  const char *what;
} Preset;

/* One way to compile the C, and its product. */
typedef struct BuildConfig {
  const char *step;     /* name in tables and of its files */
  const char *optimize; /* level after -O */
  bool lto, fast_math, relocs;
  ArgVec profile;      /* flags that record or use a profile */
  const char *product; /* file in the folder */
  const char *program; /* program with the same code, to measure; NULL: none */
  const char *arrays;  /* program on arrays; NULL: none */
} BuildConfig;

/* The compiler and its abilities, checked before work begins. */
typedef struct ToolChain {
  ArgVec cc;
  CompilerKind kind;
  const char *version;
  const char *lto;         /* flags */
  const char *profdata;    /* llvm-profdata, for clang */
  const char *bolt, *perf; /* perf NULL: instrument the program */
  const char *perf2bolt;
} ToolChain;

/* Arguments of the runs that record a profile. */
typedef struct Workload {
  VEC(ArgVec) run; /* without the program */
  const char *key; /* hash of its contents */
} Workload;

enum { PGO_MEASURES = 2, PGO_ROUNDS = 9 };

/* A measured step of a PGO build. */
typedef struct PgoStep {
  BuildConfig v;
  double ms[PGO_MEASURES][PGO_ROUNDS]; /* per run; or per token, decoding and prefill */
  u64 bytes;
} PgoStep;

typedef struct CodeSize {
  u64 text, data; /* code and constants of the object file */
  u64 arena;      /* bytes */
} CodeSize;

typedef struct ProductBuild {
  Ingot *m;
  const IngotBuild *o;
  const Preset *preset;
  ProductKind kind;
  TempDir folder;
  const char *name; /* prefix of C names */
  CodeSize size;
  IngotCodegen ic;
  StrBuf source, header;
  EmitFacts facts;
  u32 parts;
  bool chats;    /* the product is a chat program */
  ArgVec runner; /* objects of tools/runner.c, if the product is another program */
  ArgVec guard;  /* objects of a CPU check that runs before main */
  /* PGO builds: */
  bool aims_elsewhere; /* baseline optimizes for time, later steps as the preset says */
  ToolChain chain;
  Workload work;
  VEC(PgoStep) step;
  u32 measures;           /* 0: not measured */
  double load;            /* load average of the machine during the measurement */
  const char *unmeasured; /* why it was not measured */
  IngotDiff fast_math;    /* name NULL: without fast_math */
  bool profiled, from_cache;
  u32 nfunction;          /* functions of the model */
  VEC(const char *) idle; /* functions that did not run */
} ProductBuild;

/* preset.c */
const Preset *preset_named(const char *name); /* name NULL: the default; returns NULL: unknown */
const Preset *preset_find(Ctx *c, const char *name); /* fails if unknown */
void preset_text(const Preset *p, StrBuf *t);        /* as equivalent options */

/* Larger weights are assembled in from a file: compilers are slow on long strings. */
#define WEIGHTS_FILE_BYTES ((u64)4 << 20)

/* build_product.c */
CodeSize api_build(Ingot *m, const IngotBuild *o);
ProductKind product_kind(const char *path);
void build_check_name(Ctx *c, const char *output); /* fails if its suffix is not supported */
/* C name from the file name: libnet.a gives net; other characters become '_'. */
const char *build_stem(Ctx *c, const char *path, ProductKind kind);
const char *build_sibling_path(Ctx *c, const char *output, const char *end); /* OUT.h for OUT.so */
void build_file(Ctx *c, const char *path, FileOut f);   /* writes a file that a tool reads */
void build_text(Ctx *c, ProductBuild *b);               /* emits b->source and related texts */
const char *build_default_level(const ProductBuild *b); /* default level after -O */
/* Makes v->product and the programs that are not NULL. */
void build_compile(Ctx *c, ProductBuild *b, BuildConfig *v);

/* build_cuda.c */
bool api_wants_cuda(const IngotBuild *o); /* --target cuda */
void api_check_cuda(Ingot *m, const IngotBuild *o);
void api_build_cuda(Ingot *m, const IngotBuild *o); /* OUT.cu, OUT.h, OUT.bin */

/* build_object.c: object files made by LLVM */
void api_check_backend(Ctx *c, const IngotBuild *o); /* refuses options of generated C */
void api_need_plain(Ingot *m); /* refuses models whose objects would lack functions */
/* Object file of a model after the passes; name: prefix of its functions. */
void api_object(Ingot *m, const IngotBuild *o, const char *name, StrBuf *to);

/* wasm.c */
void wasm_check(Ingot *m, const IngotBuild *o); /* early check */
CodeSize wasm_build(Ingot *m, const IngotBuild *o);

/* fast_math.c */
extern const char fast_math_flags[];
StrBuf fast_math_source(Ctx *c, StrBuf *text);

/* pgo_steps.c */
bool pgo_wanted(const IngotBuild *o);
void pgo_check(Ingot *m, const IngotBuild *o); /* early check: refuses if something is missing */
/* Can steps be measured? Otherwise sets b->unmeasured; refuses steps that need it. */
bool pgo_can_measure(Ctx *c, ProductBuild *b);
void pgo_run(Ctx *c, ProductBuild *b);
const char *pgo_baseline_path(Ctx *c, const char *output); /* OUT.baseline, OUT.baseline.so */

/* speedup.c */
void speedup_report(ProductBuild *b, bool json, StrBuf *t);

/* workload.c: fills b->work */
void workload_read(Ctx *c, ProductBuild *b);
void workload_check(Ctx *c, const char *path);

/* profile.c */
ArgVec profile_make(Ctx *c, ProductBuild *b,
                    const BuildConfig *like); /* records one, returns flags that use it */

/* bolt.c: optimizes the layout of v->product, a program */
void bolt_apply(Ctx *c, ProductBuild *b, BuildConfig *v);
bool bolt_has_branches(Ctx *c, const TempDir *f, const char *perf);

#endif
