/* api_internal.h: private to src/api: the parts of an Ingot.
 */
#ifndef INGOT_API_INTERNAL_H
#define INGOT_API_INTERNAL_H

#include "back/back.h"
#include "host/host.h"
#include "ingot.h"
#include "ir/prog/prog_mem.h"
#include "io/data.h"
#include "front/reader.h"
#include "pass/pass.h"
#include "pass/graph/train.h"
#include "pass/kernel/tune_table.h"

typedef enum BindingKind { IB_data, IB_rand, IB_fill, IB_text } BindingKind;

/* Contents of an input, bound by name or by position. */
typedef struct InputBinding {
  Str name;
  i32 pos; /* -1: by name */
  BindingKind kind;
  Tensor *data; /* IB_fill: one element for all places; NULL: in `file`, see api_binding_tensor */
  const char *text; /* IB_text: text of a value; the type of the input is not known yet */
  bool frozen;      /* a constant, not a parameter */
  Str archive;      /* archive that contained it; 0: named by itself */
  const File *file; /* its contents */
  Str member;       /* its name there */
  bool left;        /* not used: no input has its name */
} InputBinding;

typedef VEC(const Target *) Targets;
typedef struct Engine Engine;

/* Options of the target and of generated code. */
typedef struct CodegenOptions {
  const char *march;   /* if it is a list of targets */
  bool lacks_dot_i8x4; /* the CPU lacks the feature Target.dot_i8x4: see pipeline.c */
  bool for_c;          /* the passes run for C, or for printing */
  Aim aim;             /* goal: time, RAM or size */
  bool aim_given;      /* given explicitly: a preset does not change it */
  u64 ram;             /* limit in bytes; 0: none */
  bool precise;        /* see ingot_set_precise */
  Precision precision; /* see ingot_set_precision */
  u32 threads, grain;  /* threads: 0 means 1; see Prog */
  bool openmp;         /* OpenMP threads */
} CodegenOptions;

typedef struct Tuning {
  TuneTable *tune;         /* measured tile sizes; NULL: none */
  const char *tuned;       /* file with tile sizes; NULL: none */
  const Target *tuned_for; /* target whose tile sizes were read */
  bool ticks;              /* C calls back after every kernel, see EmitOptions */
} Tuning;

typedef struct NativeOptions {
  const char *cflags;          /* flags for the C compiler; NULL: from target */
  const char *library, *entry; /* engine c: shared library and its function; NULL: compile */
  const char *keep;            /* engines c and jit: code cache folder; NULL: none */
  bool keep_quietly;           /* keep is for engine c only, and optional */
  bool linked;                 /* C is compiled at once: see EmitOptions */
  bool check_cpu;              /* see EmitOptions */
  bool stays;                  /* engine c: keep the compiled code for the next run */
  const EmitExtra *(*more)(Ingot *m,
                           const char *name); /* additions to the C after the passes, or NULL */
} NativeOptions;

/* Options of the model. */
typedef struct ModelOptions {
  VEC(BindDim) dim;
  VEC(InputBinding) given;
  bool complete;           /* all inputs were checked against the bindings */
  VEC(const char *) hint;  /* see ingot_hint */
  VEC(const char *) state; /* IN=OUT, auto */
  LmOptions language;
  const char *prompt; /* baked system prompt; NULL: none */
  i64 day;            /* date for the chat template, seconds since 1970; 0: CHAT_DEFAULT_DATE */
  const char *grad;   /* see ingot_set_grad; NULL: none */
  const char *train;  /* see ingot_set_train; NULL: none */
  TrainPart part;     /* part of the training step */
  double rate;        /* default learning rate */
} ModelOptions;

/* Ids whose keys and values are in the initial state. */
typedef struct PromptCache {
  const u32 *id; /* NULL: none */
  u32 n;
} PromptCache;

/* State between runs, per engine. */
typedef struct EngineStates {
  Tensor **ref_state; /* NULL: before the first run */
  InterpState *interp_state, *vm_state;
  u64 fed;       /* positions of the KV cache filled by ingot_feed */
  VmProgram *vm; /* bytecode of `vm_of`; NULL: not made */
  const Prog *vm_of;
  u8 *arena; /* c */
  u8 *spare; /* c: arena for reuse; NULL: none */
  u64 arena_bytes;
  void (*stop)(void *arena); /* c: ends the threads that use arena; NULL: none */
  void *handle;              /* c: the loaded library */
  const Prog *handle_of;     /* program that it was made from */
  const u8 *weights;         /* c: weights outside the library; NULL: none */
  Jit *jit;                  /* NULL: not made yet */
  const Prog *jit_of;        /* program that it was made from */
  u8 *jit_arena;
  Cuda *cuda;          /* with the state on the device; NULL: not made yet */
  const Prog *cuda_of; /* program that it was made from */
  bool feeds_cuda;     /* ingot_feed runs it */
} EngineStates;

typedef struct LastRun {
  Arena once; /* lasts until the next run: results and call arguments */
  Tensor **in, **out;
  u32 nin, nout;
  Tensor **raw;                     /* inputs before strings became bytes */
  const char ***text;               /* strings of outputs */
  const IngotOutBuffer *out_buffer; /* memory of the caller for outputs, or NULL */
} LastRun;

/* Results of the last C generation. */
typedef struct EmitResult {
  Blob blob;                  /* weights */
  const KernelFacts *profile; /* kernels, with profile */
  u32 nprofile;
  StrBuf report[2]; /* report of the last PGO build, as text and as JSON */
} EmitResult;

/* Targets and the programs made for them. */
typedef struct TargetSet {
  const Target *target; /* NULL: scalar */
  const Target *made; /* target of the program: target or its scalar fallback; NULL: not made yet */
  Targets variants;   /* targets of all variants, in table order; target is the one for this CPU;
                       empty:   only target */
  Prog **variant_progs; /* program per variant, including Ingot's p; NULL: only p */
} TargetSet;

/* The model file. */
typedef struct ModelSource {
  Source source;             /* at NULL: none is open */
  const Reader *reader;      /* NULL: text of a program */
  const Model *model;        /* declarations; NULL: known after import */
  BindInputs frozen;         /* inputs of the model that are constants of the graph */
  OutputStructure *ports;    /* declared outputs; NULL: those of the graph */
  Str undecided;             /* the import failed for want of this input's value; 0: none */
  Graph *origin;             /* as imported, if several programs are made from it; else NULL */
  const struct Vocab *vocab; /* see ingot_open_vocab; NULL: none */
} ModelSource;

/* Facts about the graph. */
typedef struct GraphFacts {
  bool rounds;          /* quantizes activations: see INGOT_AUTO */
  double macs;          /* multiply-adds of the imported graph, at the upper bounds */
  const char *tiled;    /* row-tiled chains as a list; NULL: none */
  const char *grown;    /* warning about the weights; NULL: none */
  IngotTensor *desc[2]; /* descriptions of inputs and outputs */
  u32 ndesc[2];
} GraphFacts;

/* Models of one file: entries.c. */
typedef struct Entries {
  VEC(Ingot *) also; /* further models, with the same Ctx */
  const char *entry; /* prefix of its functions; NULL: single model */
  bool joined;       /* all programs share one arena */
  bool share_state;  /* and state of the same name */
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
  bool runs;     /* will be run: generated inputs need all extents */
  Err status;    /* first failure; later calls return it */
  EngineStates states;
  LastRun run;
  const Engine *called; /* engine prepared for ingot_call; NULL: none */
  EmitResult written;
  Entries entries;
  PromptCache prompt_cache;
};

/* session.c */
/* Runs `call` under protection unless the object has failed before, and returns the status from the
 * enclosing function. It is a macro because setjmp must be in that function. `call` must not change
 * local variables of that function. */
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
bool api_enter(Ingot *m, ProtectedCall *d); /* false: m is NULL or has failed before */
IngotStatus api_leave(Ingot *m, const ProtectedCall *d);
IngotStatus api_call(Ingot *m, void (*fn)(Ctx *c, void *arg),
                     void *arg);                                       /* API_CALL as a function */
static inline void api_need(Ctx *c, const void *p, const char *what) { /* refuses NULL */
  if (!p) fail(c, ERR_usage, LOC_NONE, "expected %s, found NULL", what);
}
/* Refuses an option of the import after it is done. */
static inline void api_need_unread(const Ingot *m, const char *what) {
  if (m->g || m->p)
    fail(m->c, ERR_usage, LOC_NONE, "%s: expected before the model is imported", what);
}
void api_return_text(StrBuf *t, const char **text,
                     size_t *n); /* returns text; NULL: an empty one */
typedef void TextFn(Ingot *m, bool json, StrBuf *out);
IngotStatus api_call_text(Ingot *m, TextFn *fn, bool json, const char **text, size_t *n);
u64 api_weight_bytes(const Ingot *m); /* emit_model.c: total over all variants */
IngotTensor api_tensor(const Ingot *m, Str name, const Tensor *t);
void api_import(Ingot *m, bool symbolic);
void api_graph_stats(Ingot *m); /* computes GraphFacts */
void api_describe(Ingot *m);    /* describes inputs and outputs of the current graph or program */
typedef struct CompileRequest { /* how to make a program */
  const Target *target;
  Aim aim;
  u64 arena_goal; /* arena size in bytes that row tiling aims at; 0: off */
} CompileRequest;
void api_compile(Ingot *m, const IngotPassOptions *pipe, const CompileRequest *how);
const Target *api_program_target(const Ingot *m); /* target of its code */
/* Restores the imported graph before another program is made: passes change it. */
void api_restore_graph(Ingot *m);
void api_run_passes(Ingot *m, const IngotPassOptions *pipe); /* all passes, once */
void api_need_single_entry(const Ingot *m);                  /* refuses several models */
void api_need_single_variant(const Ingot *m);                /* refuses several variants */
void api_compile_variants(Ingot *m);                         /* runs the passes for every variant */
u32 api_param_count(const Ingot *m);
Str api_param_name(const Ingot *m, u32 i);
Str api_result_name(const Ingot *m, u32 i);

/* guess_dims.c: fills m->hint: with numbers for missing dimensions that let the import succeed, or
 * with sizes for generated inputs between their bounds. */
void api_guess_dims(Ingot *m, const ImportOptions *asked, const MissingDims *miss);
void api_hint_open_dims(Ingot *m);

/* prompt_cache.c */
void api_bake_prompt(Ingot *m); /* computes the KV cache of the system prompt */

/* entries.c */
void api_open(Ingot *m, const char *path); /* session.c: a file */
void api_compile_entries(Ingot *m);        /* programs of the other models, for every variant */
u32 api_entry_count(const Ingot *m);       /* 1: single model */
Ingot *api_entry(Ingot *m, u32 i);         /* 0: m itself */
Prog *api_program(const Ingot *m, u32 variant); /* after the passes */

/* grad_outputs.c */
void api_add_grad(Ingot *m); /* adds the outputs of --grad after import */

/* train_spec.c */
void api_add_train_step(Ingot *m); /* adds the training step after import, if requested */
/* Default value of input i; NULL: unknown. */
Tensor *api_train_default(Ingot *m, u32 i);
/* Does the model declare the input, or does the training step add it? */
bool api_takes_input(const Ingot *m, Str name);

/* choose_program.c */
void api_choose_program(Ingot *m, const Target *target); /* tries several programs, keeps one */

/* state.c */
void api_bind_state(Ingot *m);                          /* after import */
u32 api_find_state(Ingot *m, StatePair *pair, u32 max); /* pairs of "auto" */
/* Does the name look like a state? For models that declare inputs. */
bool api_is_state_input(Ingot *m, Str input);
u32 api_graph_index(const Ingot *m, u32 i,
                    bool out); /* position of input or output i in the graph */
bool api_has_state(const Ingot *m);
void api_run_ref(Ingot *m, const RefOptions *o);

/* emit_model.c */
const char *api_source_text(Ingot *m); /* name of the model, for comments */
u64 api_source_hash(Ingot *m);
/* Names of the targets of all variants. */
const char *api_march_text(Ingot *m, const Target *one);
/* plays: add the functions of lm_c.c if m is a language model. */
EmitFacts api_emit(Ingot *m, const IngotCodegen *o, bool plays, StrBuf *source, StrBuf *header);
EmitFacts api_write_c(Ingot *m, const IngotCodegen *options, const char *source_path,
                      const char *header_path, const char *weights_path);
/* Are the weights large enough to go to a file by default? */
bool api_wants_weights_file(const Ingot *m);
EmitOptions
api_query_options(const Ingot *m,
                  const Target *target); /* options that suffice for facts about the C */

/* chat_assets.c */
const LmAssets *api_chat_assets(Ingot *m); /* NULL: not a language model */
i64 api_context_length(const Ingot *m);    /* positions of the KV cache */
double api_kv_bytes(const Ingot *m);       /* bytes per position of the KV cache */
/* Texts of the chat template with the date filled in. */
i64 api_chat_day(const Ingot *m); /* date of --date, or the default, in seconds since 1970 */
ChatFormat api_chat_texts(Ingot *m, const LmAssets *s);

/* lm_c.c: minimum over the layers of the positions in the KV cache. */
i64 api_kv_min_length(const Ingot *m);
/* Additions to the C of a language model; NULL: not one. given: weights are an argument. */
const EmitExtra *api_lm_c(Ingot *m, const char *name, bool given);

/* choose_target.c */
const Target *api_target_here(Ctx *c);            /* the target of "native" */
const char *api_target_flags(Ctx *c);             /* compiler flags for it */
void api_target_native(Ingot *m, const char *cc); /* default: this machine */
void api_native_flags(Ingot *m);                  /* native flags for the C compiler only */
void api_target_host(Ingot *m); /* default: this machine, without asking a compiler */
/* A target, or a CPU that the C compiler knows. */
void api_march(Ingot *m, const char *name, const char *cc);
/* Refuses a compiler without the vectors of the target. */
void api_need_vectors(Ingot *m, const char *march, const char *cc);
void argv_target(Ctx *c, ArgVec *w, const Ingot *m); /* flags of the C compiler */
void argv_variant(
    Ctx *c, ArgVec *w, const Ingot *m,
    const char *upper); /* selects the variant for this CPU; upper: prefix of its macros */
void argv_threads(Ctx *c, ArgVec *w, const Ingot *m);
void api_need_runnable(Ingot *m);               /* refuses a target that this CPU cannot run */
bool api_is_runnable(Ingot *m, const char *cc); /* checks the target, not a named CPU */
void api_need_runnable_build(Ingot *m, const char *cc,
                             const char *what); /* refuses code that may fail here */

/* cache.c */
/* Path of compiled code of engine c in a folder. key: everything the code depends on; changed. */
const char *cache_code(const Ingot *m, const char *folder, const StrBuf *key);
const char *
cache_label(const Ingot *m); /* end of a name in the cache: a dot and the model's file */
bool cache_find(Ctx *c, const char *path); /* is it present, trusted and complete? */
void cache_store(Ctx *c, const char *path, const char *from); /* copies; failure is ignored */

/* tune_file.c: the file of measured tile sizes */
typedef struct TuneEnv {
  const char *target, *cpu, *compiler, *version; /* environment of the measurements */
} TuneEnv;
typedef struct TuneRecord {
  Str key, choice;
  Str closed, us; /* microseconds with the default and with this choice */
} TuneRecord;
typedef struct TuneRecords {
  VEC(TuneRecord) line;
  Map number; /* Str key -> 1 + index in line */
} TuneRecords;
TuneTable *api_load_tuning(Ingot *m); /* tile sizes for the lowering; NULL: none */
TuneTable *tune_file_table(Ctx *c, const TuneRecords *f); /* the table that lowering reads */
/* Lines for this machine; NULL fields match any. others: receives other lines; may be NULL. */
TuneRecords tune_file_read(Ctx *c, const char *path, const TuneEnv *machine, StrBuf *others);
void tune_file_add(Ctx *c, TuneRecords *f, TuneRecord x); /* replaces an earlier one */
void tune_file_write(Ctx *c, FileOut to, const TuneEnv *machine, const TuneRecords *f,
                     const StrBuf *others);

/* engine_c.c: arguments of NAME_call */
/* in: the inputs, then the weights if they are not part of the code. */
typedef struct CallArgs {
  i64 *size;
  const void **in;
  void **out;
  i64 **shape;
} CallArgs;
u8 *api_alloc_aligned(Ctx *c, u64 bytes);    /* zeroed, aligned as an arena */
u8 *api_alloc_arena(Ingot *m, u64 bytes);    /* with initial state */
CallArgs api_call_args(Ingot *m, u8 *arena); /* arguments from m->in */
void api_drop_arena(Ingot *m);               /* the state and the threads of engine c */
void api_close_c(Ingot *m);
void api_run_c(Ingot *m, u64 seed); /* compiles, loads and runs the C of the model; fills m->out */
void api_make_c(Ingot *m);          /* compiles and loads it */
CallFn *api_code_c(Ingot *m);       /* compiled code; its arena is m->kept.arena */
void api_check_c(Ingot *m, int status); /* fails unless status is 0 */

/* onnxruntime.c */
void api_run_python(Ingot *m, u64 seed);           /* runs ONNX Runtime; fills m->out */
void api_write_inputs(Ingot *m, const char *path); /* m->in as .npz */

/* jit.c: LLVM in this process */
void api_run_jit(Ingot *m, u64 seed);
void api_make_jit(Ingot *m);       /* compiles */
const Jit *api_code_jit(Ingot *m); /* the arena is m->kept.jit_arena */
void api_check_jit(Ingot *m, int status);
void api_close_jit(Ingot *m);
/* cuda.c: an NVIDIA GPU */
void api_target_device(Ingot *m); /* the program is lowered for a GPU; refuses another target */
void api_run_cuda(Ingot *m, u64 seed);
Cuda *api_cuda(Ingot *m);             /* with the code and the state of the program */
void api_make_cuda(Ingot *m);         /* compiles */
void api_check_cuda_source(Ingot *m); /* refuses programs in text form */
void api_close_cuda(Ingot *m);
/* engine.c */
struct Engine {
  IngotEngine info;
  void (*run)(Ingot *m, u64 seed); /* m->in -> m->out */
  void (*make)(Ingot *m);          /* prepares runs of the program; NULL: nothing to do */
};
void api_ready(Ingot *m, const Engine *e); /* imports and makes the program if necessary */
void api_check_pins(Ingot *m); /* refuses contents other than those that decided shapes */
void api_clear_run(Ingot *m);  /* drops the results of the last run */
VmProgram *api_vm(Ingot *m);   /* bytecode of its program */
/* The engine of that name (NULL: the first) with all flags; fails if there is none. */
const Engine *api_engine(Ctx *c, const char *name, unsigned flags);
const Engine *api_engine_for(const Ingot *m, const char *name,
                             unsigned flags); /* and that can run m */

/* bytecode.c */
bool api_is_bytecode(const Ingot *m);                  /* is the open model bytecode? */
void api_read_bytecode(Ingot *m);                      /* import */
void api_need_model(const Ingot *m, const char *what); /* refuses bytecode */

/* values.c */
/* Refuses a file that is not an archive; also: other accepted files. */
_Noreturn void api_fail_no_archive(Ctx *c, const char *path, const char *also);
/* Exclusive limit of generated integers, per input: RANDOM_INT_LIMIT, or less for indices. */
enum { RANDOM_INT_LIMIT = 10 };
void api_need_array(Ctx *c, const IngotTensor *x); /* refuses NULL pointers */
u32 *api_index_limits(Ingot *m);
Tensor *api_tensor_row(Ctx *c, const Tensor *stack, u32 i); /* along its first axis */
Tensor *api_binding_tensor(Ingot *m, InputBinding *v);      /* unpacks it if necessary */
Tensor **api_inputs(Ingot *m, u64 seed); /* one per parameter: given or generated */
const char *api_scale_text(Ctx *c, const QuantParams *s); /* "(x - 3) * 0.5" */
Tensor *api_check_input(Ingot *m, u32 i,
                        Tensor *t); /* converted for input i; fails if impossible */

/* freeze.c */
const InputBinding *api_frozen(const Ingot *m, Str name); /* NULL: not frozen */
bool api_is_redundant(Ingot *m, InputBinding *v);         /* equal to the frozen value? */
void api_freeze_text(Ingot *m);                  /* freezes inputs of a graph in text form */
_Noreturn void api_no_input(Ingot *m, Str name); /* values.c: refuses a name */
void api_warn_unused(Ctx *c, Loc loc, Str name); /* warns about an unused array of an archive */
/* Ignores, with a warning, or refuses a binding without an input. */
void api_skip_binding(Ingot *m, InputBinding *v);

/* parse_value.c: values as text */
Tensor *api_parse_value(Ctx *c, const char *name, DType dt, const char *text);

/* string_tensors.c */
Tensor *api_encode_strings(Ingot *m, u32 i,
                           const Tensor *t); /* strings as bytes for input i, or NULL */
void api_decode_strings(Ingot *m);           /* outputs of the last run */
Tensor *api_import_strings(Ctx *c, const IngotTensor *x); /* from pointers of the caller */

#endif
