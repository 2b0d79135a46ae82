/* api_internal.h: private to src/api: what an Ingot holds. */
#ifndef INGOT_API_INTERNAL_H
#define INGOT_API_INTERNAL_H

#include "back/back.h"
#include "ingot.h"
#include "ir/prog_mem.h"
#include "front/onnx/pb.h"
#include "io/data.h"
#include "front/reader.h"
#include "pass/pass.h"
#include "pass/graph/train.h"
#include "pass/kernel/tune_table.h"

typedef enum BindingKind { IB_data, IB_rand, IB_fill, IB_text } BindingKind;

/* What an input shall hold: by name, or by position among the inputs. */
typedef struct InputBinding {
  Str name;
  i32 pos; /* -1: by name */
  BindingKind kind;
  Tensor *data; /* IB_fill: one element, for every place; NULL: in `file`, see api_binding_tensor */
  const char *text; /* IB_text: a value in words, of an input whose type is not known yet */
  bool frozen;      /* a constant from now on, no parameter */
  Str archive;      /* file in which it lay among others; 0: it was named by itself */
  const File *file; /* its contents */
  Str member;       /* its name there */
  bool left;        /* no input has its name, and it is not used */
} InputBinding;

typedef VEC(const Target *) Targets;
typedef struct Engine Engine;

/* What programs are made for, as it was asked for. */
typedef struct CodegenOptions {
  const char *march;  /* where it is several machines */
  bool lacks_dot4;    /* the machine has not the feature Target.dot4: see pipeline.c */
  bool for_c;         /* the passes are run for C, or to be looked at */
  Aim aim;            /* what programs are chosen by */
  bool aim_said;      /* in so many words: a preset does not change it */
  u64 ram;            /* bytes that they must fit into; 0: any number */
  bool precise;       /* mathematics: see ingot_set_precise */
  u32 threads, grain; /* that share a run; 0 or 1: one; see Prog */
  bool openmp;        /* they are OpenMP's */
} CodegenOptions;

typedef struct Tuning {
  TuneTable *tune;         /* measured choices; NULL: none */
  const char *tuned;       /* file they are read from before the passes; NULL: none */
  const Target *tuned_for; /* machine whose choices were read from there */
  bool ticks;              /* C text tells which kernel has ended, see EmitOptions */
} Tuning;

typedef struct NativeOptions {
  const char *cflags;          /* that the C compiler needs; NULL: those of target */
  const char *library, *entry; /* engine c: compiled before, and its function; NULL: compile now */
  const char *keep;            /* engines c and jit: folder of code; NULL: none */
  bool keep_quietly;           /* keep is for engine c only, and need not be usable */
  bool linked;                 /* C text is made to be compiled at once: see EmitOptions */
  bool stays;                  /* engine c: what was compiled is kept for the next run */
  const EmitExtra *(*more)(Ingot *m, const char *name); /* of its C, behind the passes; or NULL */
} NativeOptions;

/* About the model, by its user. */
typedef struct ModelOptions {
  VEC(BindDim) dim;
  VEC(InputBinding) given;
  bool complete; /* every input was seen to have what is given; false: not looked yet, or not so */
  VEC(const char *) hint;  /* see ingot_hint */
  VEC(const char *) state; /* IN=OUT, auto */
  LmOptions language;
  const char *prompt; /* a system message that the model begins behind; NULL: none */
  i64 day;            /* that its template is told, in seconds since 1970; 0: CHAT_DEFAULT_DATE */
  const char *grad;   /* see ingot_set_grad; NULL: none */
  const char *train;  /* see ingot_set_train; NULL: none */
  TrainPart part;     /* of the step */
  double rate;        /* of training, where the input is not given */
} ModelOptions;

/* Ids whose keys and values are in the states from the beginning. */
typedef struct PromptCache {
  const u32 *id; /* NULL: none */
  u32 n;
} PromptCache;

/* Between runs, by engine. */
typedef struct EngineStates {
  Tensor **ref_state; /* NULL: before the first */
  InterpState *interp_state, *vm_state;
  u64 fed;       /* ids that ingot_feed has run: positions of the cache */
  VmProgram *vm; /* what vm runs, of that program; NULL: not made */
  const Prog *vm_of;
  u8 *arena; /* c */
  u8 *spare; /* c: one that was dropped, for the next; NULL: none */
  u64 arena_bytes;
  void (*stop)(void *arena); /* c: ends the threads that work in arena; NULL: there are none */
  void *handle;              /* c: the library, while it is kept */
  const Prog *handle_of;     /* that it was made of */
  const u8 *weights;         /* c: that are no part of the library; NULL: there are none */
  Jit *jit;                  /* NULL: not made yet */
  const Prog *jit_of;        /* that it was made of */
  u8 *jit_arena;
} EngineStates;

typedef struct LastRun {
  Arena once; /* what lasts until the next run: results, and what engines are called with */
  Tensor **in, **out;
  u32 nin, nout;
  Tensor **raw;          /* inputs before strings became bytes */
  const char ***text;    /* of outputs that are strings: their texts */
  const IngotRoom *room; /* of the caller, for outputs; NULL: he has none */
} LastRun;

/* With the last C text. */
typedef struct EmitResult {
  Blob blob;                  /* weights */
  const KernelFacts *profile; /* kernels, if it was asked to tell of them */
  u32 nprofile;
  StrBuf report[2]; /* on the last tuned build, as text and as JSON */
} EmitResult;

/* Machines that code is made for, and what was made. */
typedef struct TargetSet {
  const Target *target; /* NULL: scalar */
  const Target *made;   /* machine of the program: target, or plain loops that were chosen in its
                           stead; NULL: not made yet */
  Targets bodies;       /* of one file, in the order of the table; target is the one of this
                           machine; none: only target */
  Prog **body;          /* by number of bodies, Ingot's p among them; NULL: there is only p */
} TargetSet;

/* The model as it was given. */
typedef struct ModelSource {
  Source source;             /* at NULL: none is open */
  const Reader *reader;      /* its format; NULL: the text of a program */
  const Model *model;        /* what it declares; NULL: it shows when it is imported */
  BindInputs frozen;         /* inputs of the model that are constants of the graph */
  OutputTree *ports;         /* of the outputs that the model declares; NULL: those of the graph */
  Graph *origin;             /* as imported, where several programs are made of it; else NULL */
  const struct Vocab *vocab; /* of ingot_open_vocab; NULL: none */
} ModelSource;

/* Of the model as it stands. */
typedef struct GraphFacts {
  bool rounds;          /* quantises what it computes: see INGOT_AUTO */
  double macs;          /* of the graph as imported, with bounds for open dimensions */
  const char *bands;    /* what runs in bands of rows, as a list of stretches; NULL: nothing */
  IngotTensor *desc[2]; /* of inputs and outputs */
  u32 ndesc[2];
} GraphFacts;

/* Models that become one file: entries.c. */
typedef struct Entries {
  VEC(Ingot *) also; /* further ones, with the same Ctx */
  const char *entry; /* what its functions are called in such a file; NULL: it has one */
  bool joined;       /* programs of all of these share an arena */
  bool shares;       /* and what they keep under the same names */
} Entries;

struct Ingot {
  Ctx *c;
  const char *python; /* NULL: python3 */
  TargetSet machine;
  CodegenOptions codegen;
  Tuning tuning;
  NativeOptions compiled;
  ModelOptions options;
  ModelSource opened;
  Graph *g;
  Prog *p;
  GraphFacts facts;
  bool passed;   /* the pipeline has run */
  u64 max_steps; /* see ingot_set_max_steps; 0: the default of the engine */
  bool runs;     /* will be run: then inputs that are made up need all their extents */
  Err status;    /* of the first failure; later calls return it */
  EngineStates states;
  LastRun run;
  const Engine *called; /* what ingot_call has been made ready for; NULL: nothing */
  EmitResult written;
  Entries entries;
  PromptCache prompt_cache;
};

/* session.c */
/* Runs `call` under protection unless the object has failed before, and returns the status from the
 * function it stands in, where setjmp must stand: so it is no function. `call` may not change the
 * variables of that function. */
#define API_CALL(m, call)                                                                          \
  do {                                                                                             \
    ProtectedCall door;                                                                            \
    if (api_enter(m, &door))                                                                       \
      if (!setjmp(door.here)) {                                                                    \
        call;                                                                                      \
        door.passed = true;                                                                        \
      }                                                                                            \
    return api_leave(m, &door);                                                                    \
  } while (0)
bool api_enter(Ingot *m, ProtectedCall *d); /* false: it has failed before, or is NULL */
IngotStatus api_leave(Ingot *m, const ProtectedCall *d);
IngotStatus api_call(Ingot *m, void (*fn)(Ctx *c, void *arg), void *arg); /* the same */
static inline void api_need(Ctx *c, const void *p, const char *what) {    /* refuses NULL */
  if (!p) fail(c, ERR_usage, LOC_NONE, "%s is missing: the pointer is NULL", what);
}
/* Refuses what only the import looks at, once it is done. */
static inline void api_need_unread(const Ingot *m, const char *what) {
  if (m->g || m->p)
    fail(m->c, ERR_usage, LOC_NONE, "%s: expected before the model is imported", what);
}
void api_return_text(StrBuf *t, const char **text,
                     size_t *n); /* hands it out; NULL: an empty one */
typedef void TextFn(Ingot *m, bool json, StrBuf *out);
IngotStatus api_call_text(Ingot *m, TextFn *fn, bool json, const char **text, size_t *n);
u64 api_weight_bytes(const Ingot *m); /* emit_model.c: of all bodies */
IngotTensor api_tensor(const Ingot *m, Str name, const Tensor *t);
void api_import(Ingot *m, bool symbolic);
void api_graph_stats(
    Ingot *m);               /* what the graph multiplies, and whether it rounds, as it was read */
void api_describe(Ingot *m); /* parameters and results of the graph or program as it is now */
typedef struct CompileRequest { /* how a program is made */
  const Target *target;
  Aim aim;
  u64 bands; /* bytes of arena that bands of rows aim at; 0: no bands */
} CompileRequest;
void api_compile(Ingot *m, const IngotPipe *pipe, const CompileRequest *how);
const Target *api_program_target(const Ingot *m); /* the machine whose code it is */
/* Before another program is made of the same graph: passes change it. */
void api_restore_graph(Ingot *m);
void api_run_passes(Ingot *m, const IngotPipe *pipe); /* all passes, unless they have run */
void api_need_single_entry(const Ingot *m); /* refuses a model of which several programs are made */
void api_need_single_variant(const Ingot *m); /* refuses a model with several bodies */
void api_compile_variants(Ingot *m); /* the same for every body, of a model that has several */
u32 api_param_count(const Ingot *m);
Str api_param_name(const Ingot *m, u32 i);
Str api_result_name(const Ingot *m, u32 i);

/* guess_dims.c: fill m->hint: with numbers for what is missing, if some let the import succeed; for
 * what bounds leave open in inputs that are made up */
void api_guess_dims(Ingot *m, const ImportOptions *asked, const MissingDims *miss);
void api_hint_open_dims(Ingot *m);

/* prompt_cache.c */
void api_bake_prompt(
    Ingot *m); /* the prompt that was named, if one was, into the states of the program */

/* entries.c */
void api_open(Ingot *m, const char *path); /* session.c: a file */
void api_compile_entries(
    Ingot *m); /* programs of all models, for every body; after those of the first */
u32 api_entry_count(const Ingot *m);         /* 1: there is only one model */
Ingot *api_entry(Ingot *m, u32 i);           /* the model itself, then the others */
Prog *api_program(const Ingot *m, u32 body); /* of a model that the passes have run on */

/* grad_outputs.c */
void api_add_grad(Ingot *m); /* derivatives that were asked for, after import */

/* train_spec.c */
void api_add_train_step(Ingot *m); /* the step, if it was asked for, likewise */
/* What input i is where it is not given; NULL: nothing is known. */
Tensor *api_train_default(Ingot *m, u32 i);
/* Does the model declare it, or has the step an input of that name? */
bool api_takes_input(const Ingot *m, Str name);

/* choose_program.c */
void api_choose_program(Ingot *m, const Target *target); /* makes several programs, keeps one */

/* state.c */
void api_bind_state(Ingot *m);                          /* of an imported graph */
u32 api_find_state(Ingot *m, StatePair *pair, u32 max); /* what "auto" takes */
/* Of a model that declares inputs: is it named as a state? */
bool api_is_state_input(Ingot *m, Str input);
u32 api_graph_index(const Ingot *m, u32 i,
                    bool out); /* position in the graph of input or output i */
bool api_has_state(const Ingot *m);
void api_run_ref(Ingot *m, const RefOptions *o);

/* emit_model.c */
/* The targets of all bodies, or of the only one. */
const char *api_march_text(Ingot *m, const Target *one);
/* plays: with the functions of lm_c.c, if it is a language model. */
EmitFacts api_emit(Ingot *m, const IngotC *o, bool plays, StrBuf *source, StrBuf *header);
EmitFacts api_write_c(Ingot *m, const IngotC *options, const char *source_path,
                      const char *header_path, const char *weights_path);
/* Are there so many weights that they are better no part of C text? */
bool api_wants_weights_file(const Ingot *m);
EmitOptions api_query_options(const Ingot *m,
                              const Target *target); /* for facts about the C only */

/* bandwidth.c: bytes per second; 0: too few to tell. */
double api_read_bandwidth(const void *at, size_t n);
/* player_build.c */
void api_key_self(Ctx *c, StrBuf *t); /* this ingot, for keys of what it makes */
void api_key_file(Ctx *c, StrBuf *t, const char *path);
const LmAssets *api_speech(Ingot *m);   /* NULL: it is no language model */
i64 api_context_length(const Ingot *m); /* positions of its cache */
double api_kv_bytes(const Ingot *m);    /* that each of them takes there */
/* Its texts with dates filled in: those of one day, the same for all. */
ChatFormat api_chat_texts(Ingot *m, const LmAssets *s);

/* lm_c.c: positions that every layer's cache holds, at least. */
i64 api_kv_min_length(const Ingot *m);
/* What the C of a language model has beside NAME_run; NULL: it is none. given: weights are
 * an argument. */
const EmitExtra *api_lm_c(Ingot *m, const char *name, bool given);

/* files.c: $XDG_CACHE_HOME/ingot/NAME or ~/.cache/ingot/NAME; the folder is made with mode 0700.
 * Falls back to $TMPDIR/ingot-UID/NAME, with a warning, if other users can write to that folder.
 * who: the option that needs it, for messages. */
const char *cache_file(Ctx *c, const char *name, const char *who);
const char *temp_folder(void); /* $TMPDIR or /tmp */
/* Takes a file from the cache: false where there is none. Removes one, with a warning, that is not
 * a regular file, or that others than the effective user own or can write, it or its folder. */
bool cache_check_file(Ctx *c, const char *path);
bool cache_folder_trusted(Ctx *c, const char *folder); /* warns if not */

/* spawn.c */
typedef struct TempDir {
  char path[200];                             /* "": none */
  const Ctx *c;                               /* under whose guard it is */
  void (*said)(void *user, const char *line); /* told of every command; may be NULL */
  void *user;
} TempDir;
typedef VEC(const char *) ArgVec; /* an argument vector being made; ends with NULL when used */
void tempdir_make(Ctx *c, TempDir *f);
void tempdir_remove(TempDir *f); /* and the files in it */
/* Runs fn, removes the folder, and leaves if fn failed. */
void tempdir_protect(Ctx *c, TempDir *f, void (*fn)(Ctx *c, void *arg), void *arg);
const char *tempdir_file(Ctx *c, const TempDir *f, const char *name);
/* Waits; returns the exit code. What the program prints is in the file "log" of the folder. */
enum { SPAWN_KILLED = 128 }; /* plus the signal: as shells say it */
int spawn_status(Ctx *c, const TempDir *f, const char *what, const char *const *argv);
/* The same, and what it prints. */
const char *spawn_text(Ctx *c, const TempDir *f, const char *what, const char *const *argv,
                       int *status);
_Noreturn void spawn_fail(Ctx *c, const TempDir *f, const char *what, const char *program,
                          int status); /* fails with the log */
void spawn_run(Ctx *c, const TempDir *f, const char *what,
               const char *const *argv); /* waits; fails unless it exits 0 */
enum { SPAWN_MAX = 16 };
/* Up to SPAWN_MAX programs, as many at a time as there are processors; fails unless all exit 0. */
void spawn_parallel(Ctx *c, const TempDir *f, const char *what, const ArgVec *job, u32 n);
bool spawn_exists(Ctx *c, const char *program);
const char *spawn_resolve(Ctx *c, const char *program);          /* where links to it lead */
void spawn_check(Ctx *c, const char *what, const char *program); /* refuses one not there */
void argv_add(Ctx *c, ArgVec *w, const char *text);
void argv_compiler(Ctx *c, ArgVec *w, const char *cc); /* cc, or $CC, or "cc" */
bool api_has_compiler(Ctx *c, const char *cc);
void api_need_compiler(Ctx *c, const char *cc); /* before work: refuses one not there */

/* parts.c: a C file that was made for PARTS_LIMIT parts, as objects */
enum { PARTS_LIMIT = 16 };
u32 parts_wanted(u64 code_bytes); /* 1: the file is compiled at once */
/* begin: the compiler and what it is told. The objects lie beside the source. */
ArgVec parts_compile(Ctx *c, const TempDir *f, const ArgVec *begin, const char *source,
                     const char *name, u32 n);

/* choose_target.c */
const Target *api_target_here(Ctx *c);            /* what native stands for */
const char *api_target_flags(Ctx *c);             /* that a compiler takes for it */
void api_target_native(Ingot *m, const char *cc); /* unless one was chosen: the machine we are on */
void api_native_flags(Ingot *m);                  /* the same for the C compiler only */
void api_target_host(Ingot *m);                   /* the same where no compiler is asked */
/* A target, or a CPU that the C compiler knows. */
void api_march(Ingot *m, const char *name, const char *cc);
/* Refuses a compiler that has not the vectors of the target that is named. */
void api_need_vectors(Ingot *m, const char *march, const char *cc);
void argv_target(Ctx *c, ArgVec *w, const Ingot *m); /* flags of the C compiler */
void argv_variant(Ctx *c, ArgVec *w, const Ingot *m,
                  const char *upper); /* the one to be run here, of C with that name */
void argv_threads(Ctx *c, ArgVec *w, const Ingot *m);
void api_need_runnable(Ingot *m); /* refuses to run code for a target that this machine is not */
bool api_is_runnable(Ingot *m,
                     const char *cc); /* by its target; a CPU that is named may have more */
void api_need_runnable_build(Ingot *m, const char *cc,
                             const char *what); /* refuses code that may not run here */

/* bandwidth.c: what this machine can do at most, by bench/peak.c. */
typedef struct Peak {
  double gflops, gflops64; /* multiply-adds count as two; 0: not known */
  double gbps;             /* read from memory */
} Peak;
Peak api_peak(Ctx *c, const TempDir *f, const char *cc, u32 threads);

/* toolchain.c */
typedef enum CompilerKind { CK_gcc, CK_clang, CK_tcc, CK_other } CompilerKind;
typedef struct Tool {
  const char *name, *package; /* package: of Debian */
  const char *use;
  const char *flag; /* that makes it tell its version */
  bool suffixed;    /* its name may have a number of a version behind it */
} Tool;
extern const Tool tool_table[];
extern const u32 tool_count;
const char *tool_find(Ctx *c, const char *name); /* the name it is started by, or NULL */
_Noreturn void tool_missing(Ctx *c, const char *name, const char *why); /* fails */
/* The line that tells it; NULL: it does not start. */
const char *tool_version(Ctx *c, const TempDir *f, const Tool *t, const char *program);
/* w: the compiler, as argv_compiler makes it. version: a line. */
const char *compiler_version(Ctx *c, const TempDir *f, const ArgVec *w);
CompilerKind compiler_kind(Ctx *c, const TempDir *f, const ArgVec *w);
/* Does it make a program of a few lines with these flags? */
bool compiler_accepts(Ctx *c, const TempDir *f, const ArgVec *w, const char *flags);
const char *compiler_cpu(Ctx *c, const TempDir *f, const ArgVec *w, CompilerKind kind,
                         const char *march); /* what -march= means; NULL: it does not say */
/* Flags that link programs with LTO, of a gcc or clang; NULL: none do. */
const char *compiler_lto(Ctx *c, const TempDir *f, const ArgVec *w, CompilerKind kind);
/* llvm-profdata of that clang, or any; NULL: there is none */
const char *compiler_profdata(Ctx *c, const TempDir *f, const ArgVec *w);

/* doctor.c */
const char *api_cpu_name(Ctx *c);

/* library.c */
void api_check_library(Ctx *c, const char *path); /* refuses a file that is cut off */
bool api_is_library(Ctx *c, const char *path);    /* of a file that ingot has made */

/* cache.c */
/* The path of compiled code of engine c in a folder; changes key, all that the code depends on. */
const char *cache_code(Ctx *c, const char *folder, StrBuf *key);
bool cache_find(Ctx *c, const char *path); /* is it there, trusted and whole? */
void cache_store(Ctx *c, const char *path,
                 const char *from); /* copies from there, or does nothing */

/* tune_file.c: the file of measured choices */
typedef struct TuneEnv {
  const char *target, *cpu, *compiler, *version; /* what its lines were measured with */
} TuneEnv;
typedef struct TuneRecord {
  Str key, choice;
  Str closed, us; /* microseconds with the choice of the closed form, and with this one */
} TuneRecord;
typedef struct TuneRecords {
  VEC(TuneRecord) line;
  Map number; /* Str key -> place among lines, from 1 */
} TuneRecords;
TuneTable *api_load_tuning(Ingot *m); /* the choices for a model about to be lowered; NULL: none */
TuneTable *tune_file_table(Ctx *c, const TuneRecords *f); /* what lowering asks */
/* Lines for this machine; fields that are NULL fit any. others: the rest, and comments, or NULL. */
TuneRecords tune_file_read(Ctx *c, const char *path, const TuneEnv *machine, StrBuf *others);
void tune_file_add(Ctx *c, TuneRecords *f, TuneRecord x); /* in place of an earlier one */
void tune_file_write(Ctx *c, FileOut to, const TuneEnv *machine, const TuneRecords *f,
                     const StrBuf *others);

/* engine_c.c: what a call of NAME_call takes */
/* in: behind the inputs stands the blob of weights, where they are no part of the code. */
typedef struct CallArgs {
  i64 *size;
  const void **in;
  void **out;
  i64 **shape;
} CallArgs;
u8 *api_alloc_aligned(Ctx *c, u64 bytes);    /* zero, aligned as an arena */
u8 *api_alloc_arena(Ingot *m, u64 bytes);    /* with the state as NAME_reset leaves it */
CallArgs api_call_args(Ingot *m, u8 *arena); /* for m->in */
void api_drop_arena(Ingot *m);               /* the state and the threads of engine c */
void api_close_c(Ingot *m);
void api_run_c(Ingot *m, u64 seed); /* compiles, loads and runs the C of the model; fills m->out */
void api_make_c(Ingot *m);          /* compiles and loads it */
CallFn *api_code_c(Ingot *m);       /* the same without a run; the arena is m->kept.arena */
void api_check_c(Ingot *m, int status); /* fails unless it is 0 */

/* onnxruntime.c */
void api_run_python(Ingot *m, u64 seed);           /* by ONNX Runtime; fills m->out */
void api_write_inputs(Ingot *m, const char *path); /* m->in as .npz */

/* bench.c: what is measured, and how */
typedef struct Bench {
  Ingot *m; /* with its inputs, passed */
  const char *engine;
  const IngotBuild *build;
  double seconds, start; /* start: when the call began, in ms */
  u64 seed;
  VmProgram *vm;   /* NULL: interp */
  Tensor **result; /* of runs, which nobody looks at */
  IngotBench *out;
  TempDir folder;
} Bench;
void api_bench(Bench *a); /* imports, runs the passes and measures */
void api_bench_interp(Bench *a);
void api_bench_vm(Bench *a);
void api_bench_c(Bench *a);
void bench_runs(Bench *a, double (*once)(Bench *a)); /* in this process; once: ms of a run */

/* jit.c: code of LLVM in this process */
void api_run_jit(Ingot *m, u64 seed);
void api_make_jit(Ingot *m);       /* the code that it runs */
const Jit *api_code_jit(Ingot *m); /* the arena is m->kept.jit_arena */
void api_check_jit(Ingot *m, int status);
void api_bench_jit(Bench *a);
void api_close_jit(Ingot *m);
void api_check_via(Ctx *c, const IngotBuild *o); /* refuses what only C has */
void api_need_plain(Ingot *m); /* refuses models of which objects would lack functions */
/* The object file of a model that has passed; name: of its functions. */
void api_object(Ingot *m, const IngotBuild *o, const char *name, StrBuf *to);

/* engine.c */
struct Engine {
  IngotEngine info;
  void (*run)(Ingot *m, u64 seed); /* m->in -> m->out */
  void (*bench)(Bench *a);         /* INGOT_TIMED */
  void (*make)(Ingot *m); /* what runs need, of a model with a program; NULL: nothing but that */
};
void api_ready(Ingot *m, const Engine *e); /* imports and makes the program, unless it is there */
void api_check_pins(Ingot *m); /* refuses inputs of other contents than shapes were made of */
/* The engine of that name (NULL: the first) with all of the flags; fails if there is none. */
void api_clear_run(Ingot *m); /* what it gave, when the model changes or is run again */
VmProgram *api_vm(Ingot *m);  /* of its program */
const Engine *api_engine(Ctx *c, const char *name, unsigned flags);
const Engine *api_engine_for(const Ingot *m, const char *name, unsigned flags); /* that runs m */

/* requant_gguf.c */
void api_requantise(Ingot *m, const IngotQuantize *o, IngotQuantized *out);

/* bytecode.c */
bool api_is_bytecode(const Ingot *m);                  /* is the open model a file of it? */
void api_read_bytecode(Ingot *m);                      /* import */
void api_need_model(const Ingot *m, const char *what); /* refuses such a file */

/* build_product.c */
typedef struct CodeSize {
  u64 text, data; /* of the object file of the model: code, and constants */
  u64 arena;      /* memory that a run needs */
} CodeSize;
CodeSize api_build(Ingot *m, const IngotBuild *o);

/* examples.c: inputs of many runs */
typedef struct Labels { /* of one example: numbers of classes, one for each row of its result */
  i64 *at;
  u32 n;
} Labels;
typedef struct Examples {
  u32 n, ninput;
  const Str *name; /* of inputs */
  Tensor ***at;    /* at[i][k]: input k in example i */
  Labels *label;   /* by example; NULL: none were asked for */
} Examples;
bool api_list_archives(Ctx *c, const char *path,
                       ArgVec *to); /* .npz of a folder; false: it is none */
/* Of an archive; only inputs of the model and the label are unpacked, others have t NULL. */
NamedTensors api_read_arrays(Ingot *m, const File *f, Loc loc, Str label);
/* Tells of arrays that are neither inputs of the model nor the labels. */
void api_warn_arrays(Ingot *m, Loc loc, const NamedTensors *v, Str label);
/* Refuses a file that is no archive where one is expected; also: what else would do. */
_Noreturn void api_fail_no_archive(Ctx *c, const char *path, const char *also);
/* From an .npz or a folder of them; label: the array that has the numbers of classes, or NULL. */
Examples api_examples(Ingot *m, const char *path, const char *label);
Examples api_examples_slice(const Examples *e, Arena *a, u32 from, u32 n,
                            u32 step); /* every step-th */

/* quantize_run.c: models in memory over examples */
typedef struct ModelRunner ModelRunner; /* a model that is run again and again */
typedef struct ErrorSums {              /* over elements: squares of what is wanted, of the error */
  double signal, noise, most;
  u64 n;
  u64 whole, changed; /* elements of other types than floats; those that are not the same */
} ErrorSums;
struct ModelRunner {
  Ctx *c;
  StrBuf model;     /* its bytes */
  const char *file; /* for messages */
  Ingot *s;         /* NULL: to be opened */
  Tensor **last;    /* inputs of the last run */
};
void runner_run(ModelRunner *t, const Examples *e, u32 i);
const Tensor *runner_value(const ModelRunner *t,
                           const char *name); /* of the last run; NULL: no such */
void runner_close(ModelRunner *t);
void error_sums_add(ErrorSums *s, const Tensor *have, const Tensor *want);
double error_sums_sqnr(const ErrorSums *s); /* dB */
double error_sums_mse(const ErrorSums *s);

/* quantize.c: formats by the name of their reader */
void api_quantize_onnx(Ingot *m, const IngotQuantize *o, IngotQuantized *out);
/* compare.c */
void api_diff(Ingot *m, const IngotTensor *have, const IngotTensor *want, double rtol, double atol,
              IngotDiff *d);

/* values.c */
/* By input: made-up integers are below it; at most RANDOM_INT_LIMIT, and less where they are
 * indices. */
enum { RANDOM_INT_LIMIT = 10 };
void api_need_array(Ctx *c, const IngotTensor *x); /* refuses one that lacks a pointer */
u32 *api_index_limits(Ingot *m);
Tensor *api_tensor_row(Ctx *c, const Tensor *stack, u32 i); /* along its first axis */
Tensor *api_binding_tensor(Ingot *m, InputBinding *v); /* unpacks it from its archive if need be */
Tensor **api_inputs(Ingot *m, u64 seed);               /* one per parameter: given, or made up */
const char *api_scale_text(Ctx *c, const Scale *s);    /* "(x - 3) * 0.5" */
Tensor *api_check_input(Ingot *m, u32 i, Tensor *t);   /* as input i takes it, or refuses it */

/* freeze.c */
const InputBinding *api_frozen(const Ingot *m,
                               Str name);         /* what that input is frozen at, or NULL */
bool api_is_redundant(Ingot *m, InputBinding *v); /* says again what is frozen */
void api_freeze_text(Ingot *m);                   /* of a graph in text form */
_Noreturn void api_no_input(Ingot *m, Str name);  /* values.c: refuses a name */
void api_warn_unused(Ctx *c, Loc loc, Str name);  /* of an array of an archive */
/* What no input of the model takes: with a warning, if it may be. */
void api_skip_binding(Ingot *m, InputBinding *v);

/* parse_value.c: values in words */
Tensor *api_parse_value(Ctx *c, const char *name, DType dt, const char *text);

/* string_tensors.c */
Tensor *api_encode_strings(Ingot *m, u32 i,
                           const Tensor *t); /* strings as the bytes input i takes, or NULL */
void api_decode_strings(Ingot *m);           /* outputs of the last run */
Tensor *api_import_strings(Ctx *c, const IngotTensor *x); /* from the pointers of a caller */

/* memory.c */
void api_memory(Ingot *m, IngotMemory *out); /* of an imported model; runs the passes if need be */

#endif
