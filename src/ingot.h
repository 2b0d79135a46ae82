/* ingot.h: the public interface of libingot.
 *
 * One Ingot holds one model and everything made from it; two of them share nothing, so each thread
 * may have its own. Calls return an IngotStatus; what went wrong, and warnings, are in
 * ingot_message(). After a failure the object can only be asked for messages and freed. The library
 * never prints, exits or aborts: a NULL where something is needed, a number out of range, or a call
 * that comes too early or too late is INGOT_USAGE, or an empty answer where there is no status.
 *
 *   Ingot *m = ingot_new(NULL);
 *   if (!ingot_open(m, "model.onnx") && !ingot_input(m, &x) && !ingot_import(m, 0) && !ingot_run(m,
 * "vm", 0)) use(ingot_output(m, 0)); ingot_free(m);
 */
#ifndef INGOT_H
#define INGOT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define INGOT_VERSION "0.1.0"

typedef struct Ingot Ingot;

typedef enum IngotStatus {
  INGOT_OK = 0,
  INGOT_MISMATCH = 1,    /* results differ */
  INGOT_USAGE = 2,       /* the call makes no sense: unknown name, bad option */
  INGOT_UNSUPPORTED = 3, /* the model is valid, but ingot cannot do it */
  INGOT_BAD_INPUT = 4,   /* the file or array is wrong */
  INGOT_SYSTEM = 5,      /* no memory, no file, no space */
} IngotStatus;

/* Row-major array. Types narrower than a byte take one byte per element. */
typedef struct IngotTensor {
  const char *name;
  const char *dtype; /* "f32", "i64", "bool", ...; "str": data are pointers, const char *const * */
  uint32_t rank;
  const int64_t *dim; /* rank entries; -1 where not known yet */
  const void *data;   /* NULL for descriptions */
  uint64_t bytes;
} IngotTensor;

/* Like realloc but told the old size; size 0 frees and returns NULL. */
typedef struct IngotAlloc {
  void *(*resize)(void *user, void *p, size_t old, size_t size);
  void *user;
} IngotAlloc;

Ingot *ingot_new(const IngotAlloc *alloc); /* NULL: the C library's; result NULL: no memory */
void ingot_free(Ingot *m);

/* What must not outlive the process: temporary folders and files, programs that were started (in a
 * process group of their own). One guard may serve several objects and outlives them. A caller who
 * is told to end, by a signal for example, ends the guard from a thread that works on none of them
 * (not from a signal handler), then the process: calls under way never return. doing, which may be
 * NULL, is called with what is waited for, such as "C compiler", and with NULL when it has ended.
 */
typedef struct IngotGuard IngotGuard;
IngotGuard *ingot_guard_new(void (*doing)(void *user, const char *what), void *user);
void ingot_guard_free(IngotGuard *g);
void ingot_guard_end(IngotGuard *g);
IngotStatus ingot_set_guard(Ingot *m, IngotGuard *g); /* before anything else; NULL: none */

/* Messages recorded so far, errors and warnings in order. */
uint32_t ingot_message_count(const Ingot *m);
const char *ingot_message(const Ingot *m, uint32_t i, int *is_warning);

/* After a failure: words that would have helped on the command line, such as "-d" and "batch=1", in
 * order; NULL behind the last, which may be the first. */
const char *ingot_hint(const Ingot *m, uint32_t i);

/* Of the n names the one that a misspelt word may mean; NULL: none is near. */
const char *ingot_nearest(const char *said, const char *const *name, size_t n);

/* Reads a model: an ONNX file, or the text form of a graph or program. Nothing is built yet. */
IngotStatus ingot_open(Ingot *m, const char *path);
IngotStatus ingot_open_bytes(Ingot *m, const void *data, size_t n, const char *name);

/* A further model of the same C file, whose functions are entries beside those of m: the arena
 * serves all, equal weights are stored once, and each keeps a state of its own. What is said about
 * its inputs (dimensions, shapes, constants, state) is said to *more, before anything is made of m;
 * the rest is said to m. Its name in the file is that of its path. It is freed with m, and good for
 * nothing else. */
IngotStatus ingot_also(Ingot *m, const char *path, Ingot **more);

/* Text and ids of tokens. A vocabulary is that of a GGUF file, of a tokenizer.json, of a
 * tokenizer.model of SentencePiece, or of a folder with one of these; it needs no open model, and a
 * model may have another one. Ids and texts are good until the next call with the same object.
 * INGOT_SPECIAL: texts of special tokens such as <s> become these tokens, and these tokens become
 * texts; without, no text can become one, and they are left out of texts. INGOT_BARE: without the
 * tokens that the model wants in front of a text and behind it. What is no UTF-8 in a text is kept
 * where tokens are bytes, else U+FFFD. */
enum { INGOT_SPECIAL = 1, INGOT_BARE = 2 };
IngotStatus ingot_open_vocab(Ingot *m, const char *path);
IngotStatus ingot_tokenize(Ingot *m, const void *text, size_t n, unsigned flags,
                           const uint32_t **ids, size_t *count);
IngotStatus ingot_detokenize(Ingot *m, const uint32_t *ids, size_t n, unsigned flags,
                             const char **text, size_t *bytes);

/* Shapes: "batch=1", "batch:1", "images:0=1"; "x:1x3x224x224"; with is_max, bounds that stay
 * symbolic. */
IngotStatus ingot_set_dim(Ingot *m, const char *spec);
IngotStatus ingot_set_shape(Ingot *m, const char *spec, int is_max);

/* The machine that code is made for: "scalar" (any), "simd128" (WebAssembly), "sse2", "neon",
 * "avx2", "avx512", "native"; several, separated by commas, or "multi" for "sse2,avx2,avx512": C
 * text with a body for each, of which every run takes the best its CPU can run; other engines then
 * do as that body does here. "avx2-loops" and its like: what stands in for the vectors where a
 * compiler or machine has none. Not called: engine c, build and bench take native, C text is for
 * any machine. Before the passes.
 */
IngotStatus ingot_set_target(Ingot *m, const char *name);
const char *ingot_native(void); /* the target that "native" stands for */
/* Programs compute exp, log, sin, cos, tanh and erf of f32 in float, within the errors of
 * docs/ir.md. After this call they are the nearest float, as ref computes them. Before the passes.
 */
IngotStatus ingot_set_precise(Ingot *m);

/* What code is chosen by: "time" (the default); "ram": of several programs one that
 * needs less of arena, stack, inputs and outputs together and not much more time, among them such
 * that run band of rows by band of rows; a warning says what was traded; "size", of code for a
 * machine with vectors: the one with the fewest bytes of code and weights, which build compiles
 * with -Os. Before the passes. */
IngotStatus ingot_optimize_for(Ingot *m, const char *what);
/* Memory that a run may take, "262144", "256K" or "2M": arena, stack, inputs and outputs together.
 * The fastest program is taken that fits, if need be without vectors; if none does the passes fail
 * with INGOT_UNSUPPORTED and say what would help. Before the passes. ingot_passes makes one
 * program: bands of rows are written so that the arena would take that much, and what comes of it
 * is shown. */
IngotStatus ingot_set_ram(Ingot *m, const char *bytes);

/* Threads that share one run of the compiled model, 1 to 64, with the same bits for every number.
 * api: "pthread" (or NULL): workers of the generated file, started by NAME_threads_start; "openmp":
 * one region for each run. grain: least work that is handed to a thread, in nanoseconds by a rough
 * estimate; 0: 4000. Before the passes. */
IngotStatus ingot_set_threads(Ingot *m, int n, const char *api, int grain);

/* How kernels are cut is decided by a closed form, or by what was measured. ingot_set_tuned takes
 * the choices of a file for the target, on whatever machine of it they were measured. ingot_tune
 * measures those that the file does not know for this CPU and compiler, adds them to it, and takes
 * them; the target must run here. ingot_choices lists what there is to choose, a line for each
 * kernel: its key, the choice taken, the others. Choices differ in how results are rounded, not in
 * what is computed, and none is less accurate than what is taken without tuning. Before the passes;
 * ingot_tune not after ingot_optimize_for ram or size. */
typedef struct IngotTune {
  const char *file;                  /* NULL: $XDG_CACHE_HOME/ingot/tune, or ~/.cache/ingot/tune */
  const char *cc, *march, *optimize; /* as in IngotBuild */
  void (*said)(void *user, const char *line); /* what is tried and gained; may be NULL */
  void *user;
} IngotTune;
IngotStatus ingot_set_tuned(Ingot *m, const char *file);
IngotStatus ingot_tune(Ingot *m, const IngotTune *o);
IngotStatus ingot_choices(Ingot *m, const char **text, size_t *n);

/* State: "h_in=h_out": the output is the input of the next run, and neither is a parameter any
 * more; zero before the first run. "auto": all that are named like one (api/state.c); ingot_inspect
 * lists them. */
IngotStatus ingot_set_state(Ingot *m, const char *spec);

/* Derivatives: "loss", or "loss:x,w1": after import the model has an output x.grad for each of
 * these values (inputs, constants or others by name; none: all inputs of floats), the derivative of
 * the sum of loss, an output or another value. */
IngotStatus ingot_set_grad(Ingot *m, const char *spec);

/* The model as one step of its training: "loss=cross_entropy,optimizer=adam". After import its
 * inputs are those it had, "label" and "rate", its outputs "loss" and, of cross_entropy, "right",
 * the number of the batch that was classified rightly; weights and moments are state. Keys: loss
 * (cross_entropy, mse, mae, bce, bce_logits), optimizer (sgd, momentum, adam, adamw, rmsprop,
 * adagrad), momentum, beta1, beta2, epsilon, decay, clip (numbers), axis (of the classes), rate
 * (the input where it is not given; 0.001), output (a name), freeze (a pattern of weights that
 * stay, with *; may be repeated), recompute (1: loops compute again what they would keep). */
IngotStatus ingot_set_train(Ingot *m, const char *spec);

/* Language models (GGUF, safetensors): the graph maps ids to logits, and keeps keys and values of
 * earlier tokens as state. Before import. */
typedef struct IngotLanguage {
  uint64_t
      context;    /* tokens that there is room for; 0: what the model was trained for, up to 4096 */
  uint64_t chunk; /* most tokens of one run; 0: 128, of ingot_player 256 */
  int every;      /* logits of every token of a run, not only of the last */
  const char *cache; /* type of keys and values: "f16", "f32" or "int8"; NULL: f16, f32 where
                        ingot_set_precise was called */
} IngotLanguage;
IngotStatus ingot_set_language(Ingot *m, const IngotLanguage *o);
/* The text of a file, without newlines at its end, is what the system says at the beginning of
 * every conversation: programs and C text hold the keys and values of its tokens, and begin as if
 * they had been run. Before import. */
IngotStatus ingot_bake_prompt(Ingot *m, const char *path);
/* The day, YYYY-MM-DD, that the template of a conversation is told where a program cannot fill in
 * its own: in a prompt that is baked in, and in C text. Else 2026-01-01. Before import. */
IngotStatus ingot_set_day(Ingot *m, const char *day);

/* Arrays to run with; they also fix the dimensions of the inputs they name. The data are copied. */
IngotStatus ingot_input(Ingot *m, const IngotTensor *t);
/* NAME=VALUE. VALUE is @FILE.npy or @FILE.pb; rand, zeros or ones; a value: a number as C writes it
 * (also nan, inf), true or false, a string with or without "..."; or a list of values, [1, 2, 3] or
 * [[1, 2], [3, 4]], whose nesting is the shape. A single value fills the whole input, whatever its
 * shape. Values must be whole for integers, and in the range of the type. */
IngotStatus ingot_input_spec(Ingot *m, const char *spec);
/* The same, but the input becomes a constant of the model, and is no parameter any more: what
 * follows from it is computed now, and branches that are not taken vanish with their weights.
 * Before import; not rand. Later contents for it must be the same. */
IngotStatus ingot_freeze(Ingot *m, const char *spec);
/* An .npz keyed by input names, or a directory with input_0.pb, input_1.pb ... */
IngotStatus ingot_input_file(Ingot *m, const char *path);

/* Builds the graph. Unknown dimensions: see ingot_set_dim; with symbolic they stay open
 * (inspection). */
IngotStatus ingot_import(Ingot *m, int symbolic);

/* Passes. All fields may be NULL or 0. Dumps arrive in order, each with the name of its pass. */
typedef struct IngotPipe {
  const char *start, *stop, *skip, *dump;
  int check; /* verify after every pass */
  void (*dumped)(void *user, const char *pass, const char *text, size_t n);
  void (*timed)(void *user, const char *pass, double ms, uint32_t before, uint32_t after);
  void *user;
  int brief; /* dumped texts show the first elements of constants of more than 16 */
} IngotPipe;
IngotStatus ingot_passes(Ingot *m, const IngotPipe *pipe);
/* Programs round what they multiply with weights in blocks to 8 bits, 32 numbers with one factor,
 * unless ingot_set_precise was called or the model asks for floats; engines that evaluate the graph
 * do not. After this call they do, in the same way, so that the rest can be compared: it imports
 * the model, and no program can be made of it any more. Without such weights it changes nothing. */
IngotStatus ingot_round_blocks(Ingot *m);
/* Why values keep a buffer of their own instead of being fused into their users, and the family of
 * each kernel with the reason and an estimate of its time, one line each. */
IngotStatus ingot_explain(Ingot *m, const char **text, size_t *n);
/* Text of the graph or program as it stands; large constants go to *side when it is not NULL. */
IngotStatus ingot_print(Ingot *m, const char **text, size_t *n, const char **side, size_t *nside);
/* The same for a reader: of constants of more than 16 elements only the first ones. Such a text is
 * refused when it is read. */
IngotStatus ingot_print_brief(Ingot *m, const char **text, size_t *n);

/* The model as C. name: prefix of all external names. Texts stay valid until ingot_free. */
typedef struct IngotC {
  const char *name;
  uint64_t
      literal_bytes; /* weights up to this size are written as numbers; 0: the default, 256 KiB */
  const char
      *weights; /* NULL: by size; "literal", "text", "file" (NAME.bin), "pointer" (an argument) */
  const char *weights_file; /* "file": its name in the text, which the macro NAME_WEIGHTS_FILE, in
                               capitals, goes before; NULL: NAME.bin */
  int selftest;             /* 0: unless the model is large; 1: always; -1: never */
  int debug;   /* every tensor an array of its own, so that sanitizers see what leaves it; not
                  re-entrant */
  int caller;  /* add NAME_call, which ingot_set_library needs */
  int profile; /* NAME_run tells a function of the caller which kernel has ended: the header says
                  how */
  int split;   /* up to 64: the file can be compiled in so many parts side by side, -DNAME_PART=0
                  and on, whose objects are linked together; 0: only at once. ingot_build with 0
                  chooses, by the size of the code, and compiles side by side */
  const char *cpp; /* ingot_write_c: a header for C++ is written there too; NULL: none */
} IngotC;
IngotStatus ingot_emit_c(Ingot *m, const IngotC *o, const char **source, size_t *nsource,
                         const char **header, size_t *nheader);

/* The same into files, of which none appears before all are written. weights: a file that is
 * written when they are no part of the C, which is so also where o says nothing about them and they
 * take more than 8 MB. */
IngotStatus ingot_write_c(Ingot *m, const IngotC *o, const char *source, const char *header,
                          const char *weights);

/* A folder that a project takes as it is: the C, a program that runs it, files of the build system,
 * a README with sizes. Files that an earlier export wrote (the folder has a list of them,
 * .ingot-export) are replaced, others never. The second refuses before any work what does not
 * depend on the model. */
typedef struct IngotExport {
  IngotC c;           /* name must be given; of the rest weights and selftest count */
  const char *kind;   /* "cmake", "zephyr", "arduino", "platformio", "esp-idf", "rust" */
  const char *folder; /* is made */
} IngotExport;
IngotStatus ingot_export(Ingot *m, const IngotExport *o);
IngotStatus ingot_check_export(Ingot *m, const IngotExport *o);

/* The model as a file of bytecode, weights inside, which ingot_open takes as any other model, to be
 * run by the engine "vm". */
IngotStatus ingot_write_vm(Ingot *m, const char *path);
int ingot_is_vm(const Ingot *m); /* is the open model such a file? */
/* The machine that runs such files, as a C file of its own and its header, which says how. */
IngotStatus ingot_emit_vm(Ingot *m, const char **source, size_t *nsource, const char **header,
                          size_t *nheader);

/* The bytes of NAME.bin after ingot_emit_c with weights "file" or "pointer"; else none. */
IngotStatus ingot_emit_weights(Ingot *m, const void **data, size_t *n);

/* The model as machine code, by a C compiler started without a shell. The end of output decides
 * what is made: .o, .a, .so (with a header beside them), .wasm (WebAssembly, by clang and wasm-ld,
 * with a module of JavaScript and its types beside it, .mjs and .d.mts; march NULL: simd128), or a
 * program with any other name, see tools/runner.c. */
typedef struct IngotBuild {
  IngotC c; /* name: NULL for the stem of output */
  const char *output;
  const char *cc;       /* NULL: $CC, or cc; may hold arguments, separated by blanks */
  const char *march;    /* a target, see ingot_set_target, or a CPU as for -march=; NULL: native */
  const char *optimize; /* "0", "1", "2", "3", "s"; NULL: "2" */
  const char *sanitize; /* as for -fsanitize=; NULL: nothing */
  int arrays; /* a program around a language model runs it on arrays, as around any other, and does
                 not talk */
  int chats, system;  /* ingot_player, before anything is compiled: refuses a model whose template
                         has no conversations, or no message of the system */
  const char *via;    /* "llvm": object code without a C compiler; NULL: C */
  const char *triple; /* via llvm: TRIPLE[,CPU[,FEATURES]] as LLVM has them; NULL: by march */
  const char *target; /* "wasm": the output is OUT.wasm; NULL: by its end */
  const char *preset; /* "balanced", "max", "dev", "size": what is not said by optimize and lto; see
                         ingot_presets; NULL: balanced */
  int lto;            /* optimise across object files when they are linked; .o and .a: compile the
                         model in one piece */
  int relaxed;        /* the compiler may take sums in any order: other bits, and refused where they
                         differ from those of the strict build by more than ingot_diff allows */
  const char *pgo;    /* compile with a profile of runs: "": on made-up inputs, or a few prompts;
                         FILE.npz, a folder of them; a list of prompts, as JSON or lines; NULL: no */
  int bolt;           /* programs: have llvm-bolt lay out the code as it runs */
  double seconds;     /* how long each step is measured, of programs on arrays; 0: 1 */
  int no_files;       /* ingot_script_build: as in IngotScript, while the program is walked */
  void (*said)(void *user, const char *line); /* every command that is started; may be NULL */
  void *user;
} IngotBuild;
IngotStatus ingot_build(Ingot *m, const IngotBuild *o);
/* With lto, relaxed, pgo or bolt, alone or of a preset, the build is a tuned one: what the same
 * options make without these is written beside the product (OUT.baseline, OUT.baseline.so), every
 * step is measured, in turn with the others, and ingot_build_report tells what each gained. No
 * text: it was no tuned build. Profiles are kept in ~/.cache/ingot; ingot_clean removes them. */
IngotStatus ingot_build_report(Ingot *m, int json, const char **text, size_t *n);
IngotStatus ingot_presets(Ingot *m, int json, const char **text, size_t *n);
/* Refuses before any work, with or without a model, what ingot_build would refuse whatever the
 * model is: options, outputs (as ingot_will_write), a C compiler that is not there. Without an
 * output, for ingot_bench: the compiler only. */
IngotStatus ingot_check_build(Ingot *m, const IngotBuild *o);

/* A language model as a program that talks, see tools/player.c: what ingot_build makes of it under
 * a name in ~/.cache/ingot, where it is found the next time. output is not used. *program NULL: it
 * is not there yet, and there is no C compiler; a warning says so. */
IngotStatus ingot_player(Ingot *m, const IngotBuild *o, const char **program);
int ingot_talks(const Ingot *m); /* is the open model one? */
/* Removes all such programs, and code of ingot_keep_code in the same folder; no model need be open.
 * How many there were, and their bytes. ingot_cache_list lists what would be removed, least
 * recently used first, as lines or JSON. Code of engine c never takes more than 2 GiB. */
IngotStatus ingot_clean(Ingot *m, uint64_t *count, uint64_t *bytes);
IngotStatus ingot_cache_list(Ingot *m, int json, const char **text, size_t *n);

/* The same model in this process, as bytecode: what a program that talks has as tables.
 * ingot_feed runs n ids, 1 to chunk, behind the first `position` of those that were run before;
 * logits: of the last one. */
typedef struct IngotSpeech {
  const void *vocab; /* the tokeniser, as programs hold it */
  size_t nvocab;
  uint64_t context, chunk, logits;
  double token_bytes, kv_bytes; /* that a token reads: of weights, of each position before it */
  const char *open, *open_system, *system, *ask, *next; /* of its template; NULL: none */
  const char *none;                                     /* why there are none, or NULL */
  int trims;
  const char *prompt; /* of ingot_bake_prompt */
} IngotSpeech;
IngotStatus ingot_speech(Ingot *m, IngotSpeech *out);
/* A library around the model as ingot_player makes a program: functions lm_* of its header, which
 * lies beside it under the same name. Of *out only texts and trims are set. */
IngotStatus ingot_player_library(Ingot *m, const IngotBuild *o, const char **library,
                                 IngotSpeech *out);
IngotStatus ingot_feed(Ingot *m, const int32_t *ids, size_t n, uint64_t position, float *logits);

/* The open model with smaller numbers, as a file of its own format that others read too: ONNX with
 * QuantizeLinear and its relatives, which ONNX Runtime runs. Fields may be NULL or 0. */
typedef struct IngotQuantize {
  const char *output;
  /* ONNX: "static" (default; bytes for weights and activations, whose ranges are measured),
   * "dynamic" (ranges of activations are found when it runs), "weights8", "weights4", "f16", "bf16"
   * (weights only) */
  const char *method;
  /* Language models, GGUF and safetensors: the type of weights, "Q8_0", or a mixture of types,
   * "Q4_K_M", as llama.cpp mixes them. The file is GGUF. Of the rest only keep is for them: names
   * of tensors. */
  const char *to;
  /* An .npz of arrays under the names of inputs, or a folder of them: see docs/quantize.md. data is
   * for calibration, holdout for the error that is told; without holdout the last fifth of data. */
  const char *data, *holdout;
  const char *calibrate;   /* "minmax", "average", "percentile", "entropy", "mse"; NULL: the best */
  const char *activations; /* "u8" (default) or "s8" */
  int symmetric;           /* their zero point is the middle of the range */
  const char *per;         /* scales of weights: "channel" (default), "tensor", "group" */
  uint32_t block;          /* elements of a group; 0: 32 */
  int bias_correction, equalize;
  const char *const *keep; /* nodes that stay as they are: names, with * and ? */
  uint32_t nkeep;
  /* Layers are measured one by one, and those that cost most stay as they are until the outputs
   * have at least so many dB; with label, until at most so many points of accuracy are lost. NULL:
   * all are quantised. */
  const char *budget;
  const char *label; /* array of data with the numbers of the classes that outputs should tell */
} IngotQuantize;

typedef struct IngotLayer {
  const char *name, *op;
  int kept;                    /* it was left as it is */
  const char *why;             /* kept: by whose wish */
  uint64_t before, after;      /* bytes of its weights */
  double sqnr, mse, max_error; /* of its result in the whole model; sqnr in dB */
  double alone;                /* dB of the outputs if it is the only one; NaN: not measured */
} IngotLayer;

/* One output of the quantised model against that of the model, over all examples. */
typedef struct IngotOutputLoss {
  const char *name;
  double sqnr, mse, max_error; /* of floats; else NaN */
  uint64_t elements, changed;  /* of all others: how many there are, and are not the same */
} IngotOutputLoss;

/* Outputs of the quantised model against those of the model; those of floats count alike. */
typedef struct IngotLoss {
  uint32_t examples; /* 0: nothing was measured */
  double sqnr, mse, max_error;
  double accuracy, was; /* with a label, in percent; else NaN */
  const IngotOutputLoss *output;
  uint32_t noutput; /* of the model, in its order */
} IngotLoss;

typedef struct IngotQuantized {
  const char *method, *calibrate; /* that were taken */
  const IngotLayer *layer;
  uint32_t nlayer;
  uint64_t before, after; /* bytes of the files */
  IngotLoss data, holdout;
} IngotQuantized;
/* Writes o->output; what is in *out is good until ingot_free. */
IngotStatus ingot_quantize(Ingot *m, const IngotQuantize *o, IngotQuantized *out);

/* Trains the open model, an ONNX file, and writes it with the weights it has then. Everything else
 * of the file stays. Fields may be NULL or 0. */
typedef struct IngotProgress {
  uint64_t epoch, epochs, example, examples; /* epoch: from 1; example: of this epoch, seen */
  double loss, accuracy;                     /* of this epoch so far; accuracy NaN: no classes */
  double rate;                               /* examples in a second */
  double seconds_left;
} IngotProgress;

/* Percentages; NaN where there are no classes. */
typedef struct IngotScore {
  uint64_t examples; /* 0: nothing was measured */
  double loss, accuracy, precision, recall, f1;
} IngotScore;

typedef struct IngotEpoch {
  uint64_t epoch;             /* from 1 */
  double rate;                /* of its last step */
  IngotScore train, validate; /* train: of its steps, while weights were changing */
} IngotEpoch;

typedef struct IngotTrain {
  const char *output;
  const char *data, *validate;  /* .npz: arrays under the names of inputs; examples along axis 0 */
  const char *label;            /* the array with the right answers; NULL: "label" */
  const char *loss, *optimizer; /* as ingot_set_train has them; NULL: cross_entropy, adam */
  const char *more;             /* other keys of ingot_set_train: "decay=0.01,axis=2" */
  double rate;                  /* 0: 0.001 */
  /* NULL: the rate stays. "step[:N[,K]]": times K (0.1) behind every N epochs (a third of all);
   * "exp[:K]": times K (0.95) behind each epoch; "cosine[:LOW]": falls to LOW (0) along half a
   * cosine over all steps. */
  const char *schedule;
  double clip;               /* most length of all derivatives together; 0: any */
  uint64_t batch, epochs;    /* 0: 32, 1 */
  uint64_t seed;             /* of the order of examples and of what drops out */
  const char *const *freeze; /* weights that stay: names, with * and ? */
  uint32_t nfreeze;
  /* A batch in so many shares, whose derivatives are added up in their order; each of several
   * processes that mpirun has started takes some of them, with the same bits for any number of
   * processes. 0: as many as there are processes; of one process: steps are whole. */
  uint64_t shares;
  int recompute;          /* loops compute again what derivatives need, instead of keeping it */
  const char *engine;     /* c, jit, vm or interp; NULL: c, where there is no compiler jit or vm */
  const char *checkpoint; /* file to go on from, if it is there; NULL: OUTPUT.checkpoint */
  double every;           /* seconds between checkpoints; negative: 5 */
  int in_place;           /* output may be the file of the model, which is replaced */
  void (*said)(void *user, const IngotProgress *p); /* after steps; may be NULL */
  /* After every epoch, first for those that a checkpoint has; may be NULL. */
  void (*ended)(void *user, const IngotEpoch *e);
  void *user;
} IngotTrain;

typedef struct IngotTrained {
  const IngotEpoch *epoch;
  uint32_t nepoch;
  const char *engine;
  uint64_t weights, steps; /* numbers that were trained; steps of this call */
  uint64_t resumed;        /* steps that a checkpoint had behind it */
  double seconds;          /* of the steps of this call */
  int rank;                /* of several processes; that of 0 has written the file */
} IngotTrained;
/* The training as C, for devices that learn: of o loss, optimizer, more, rate, clip, freeze, batch
 * (0: 1) and recompute count. The file has NAME_train(arena, inputs, label, &loss), NAME_run(arena,
 * inputs, outputs) with the weights it has by then, NAME_reset, NAME_save and NAME_load. ram:
 * bytes of arena, stack, inputs and outputs; and, with recompute, what they were without; else 0.
 */
IngotStatus ingot_train_c(Ingot *m, const IngotTrain *o, const IngotC *c, const char *source,
                          const char *header, const char *weights, uint64_t ram[2]);
/* Writes o->output; what is in *out is good until ingot_free. */
IngotStatus ingot_train(Ingot *m, const IngotTrain *o, IngotTrained *out);

/* A kernel of a run: one or more nodes of the model. */
typedef struct IngotKernel {
  const char *nodes; /* values that it computes */
  double ms;         /* median, in one run */
  double calls;      /* in one run: more than 1 in loops */
  double macs;       /* multiply-adds of one run, as the kernel does them: Winograd does fewer */
  double bytes;      /* of all buffers that a call touches */
  double whole;      /* of the multiply-adds, those of integers */
} IngotKernel;

/* Times of single runs, by an engine with INGOT_TIMED. "c" is compiled to a program as build says
 * (output is not used). */
typedef struct IngotBench {
  int n; /* runs measured */
  double min_ms, p50_ms, p90_ms, p99_ms;
  double first_ms; /* to the first result: from the model in memory (vm), from the start of the
                      program (c) */
  double build_ms; /* c: ingot and the C compiler */
  uint64_t rss_kb; /* peak memory of the process */
  uint64_t text_bytes, data_bytes; /* c: code and constants of the object file */
  const IngotKernel *kernel;       /* c, where build->c.profile is set; valid until ingot_free */
  uint32_t nkernel;
  double peak_gflops, peak_gbps; /* then: of this machine with as many threads, a multiply-add
                                    counted as two; bytes read; 0: not known */
  const char *cpu, *target;      /* name of the CPU; target the kernels were lowered for */
  const char *compiler;          /* c: version and optimization level; NULL for other engines */
  uint32_t threads;
} IngotBench;
IngotStatus ingot_bench(Ingot *m, const char *engine, const IngotBuild *build, double seconds,
                        uint64_t seed, IngotBench *out);

/* Parameters of the model after import; data is NULL.
 * All are tensors. A sequence x of ONNX is given and returned as its elements, x.0, x.1 ...; how
 * many an input has is fixed before import, by the arrays given or by ingot_set_dim "x=3". What an
 * optional holds is x; that it is there or not follows likewise, or from "x.has=1". Where a length
 * is only known at run time, an output is y, the elements stacked up to a capacity, and y.count;
 * where a presence is, y (zeros if it is not there) and y.has. A map x is x.keys and x.values; a
 * sequence of maps (ZipMap) is y, the values [maps, keys], and y.keys. Strings are described as
 * what they are inside, u8[.., k]: k bytes each, zeros behind the text ("x.bytes=100" makes room
 * for 100); they may be given, and are returned, as "str". */
uint32_t ingot_input_count(const Ingot *m);
IngotTensor ingot_input_info(const Ingot *m, uint32_t i);
uint32_t ingot_output_count(const Ingot *m);
IngotTensor ingot_output_info(const Ingot *m, uint32_t i);

/* Did the contents of input i decide shapes when the model was imported? Then runs take no other
 * contents. */
int ingot_input_decides(const Ingot *m, uint32_t i);

/* What the open model declares, before import; name NULL: behind the last, or a format that does
 * not say before it is imported. What is in *out is good until ingot_free. */
typedef struct IngotDeclared {
  const char *name;
  const char *type;  /* in words, as ingot_inspect has it: f32[batch,3,8,8], sequence of i64[] */
  const char *dtype; /* of a tensor, as in IngotTensor; NULL: it is something else */
  int has_shape;     /* 0: not even its rank is known */
  uint32_t rank;
  const int64_t *dim;        /* -1: open */
  const char *const *symbol; /* what an open dimension is called; NULL: it has no name */
} IngotDeclared;
IngotStatus ingot_declared(Ingot *m, int is_output, uint32_t i, IngotDeclared *out);

/* Engines: "vm" runs the passes (if not done) and the program as bytecode; "c" compiles it, "jit"
 * by LLVM in this process; "interp" walks it, slowly, "watch" with a check of every use of memory;
 * "ref" evaluates the graph as imported, "ref64" in double; "onnxruntime" has Python run the file.
 */
enum {
  INGOT_GRAPH = 1,      /* evaluates the graph; others, unless they read the file, the program */
  INGOT_FILE = 2,       /* another program reads the ONNX file; it may not be there */
  INGOT_EXACT = 4,      /* equal to the first engine to the bit */
  INGOT_NATIVE = 8,     /* compiles */
  INGOT_TIMED = 16,     /* ingot_bench measures it */
  INGOT_JUDGE = 32,     /* the one that others are compared with */
  INGOT_PEER = 64,      /* compared with it, and measured if TIMED, unless one is named */
  INGOT_OPTIONAL = 128, /* needs a library that may not be there: runs if it is named */
  INGOT_HOST = 256      /* ingot_bench lowers for this machine; it needs no compiler */
};
typedef struct IngotEngine {
  const char *name;
  unsigned flags;
} IngotEngine;
const IngotEngine *ingot_engine(uint32_t i);            /* NULL behind the last */
const IngotEngine *ingot_find_engine(const char *name); /* NULL: there is none */

/* The program as LLVM is given it, for the target that is set (else this machine). */
IngotStatus ingot_print_llvm(Ingot *m, const char **text, size_t *n);
/* Engines c and jit cache compiled code in this folder; "": in ~/.cache/ingot. NULL: engine c uses
 * ~/.cache/ingot unless INGOT_CACHE=0, and a folder that cannot be used is not an error. Code is
 * loaded only from files that other users cannot write. ingot_load_code: ingot_ready of engine c if
 * its code is cached; otherwise sets *found to 0 and compiles nothing. */
IngotStatus ingot_keep_code(Ingot *m, const char *folder);
IngotStatus ingot_load_code(Ingot *m, int *found);
uint32_t ingot_llvm(void); /* the LLVM that engine jit uses, 14 to 19; 0: there is none */
IngotStatus ingot_set_library(Ingot *m, const char *path,
                              const char *name);          /* engine c: runs NAME_call of that .so */
IngotStatus ingot_set_python(Ingot *m, const char *path); /* NULL or not called: python3 */
IngotStatus ingot_check_python(Ingot *m); /* starts it: refuses one that has no onnxruntime */
/* Engine vm: end a run after n steps (backward jumps and panel iterations) with INGOT_BAD_INPUT if
 * the model is bytecode, else with INGOT_UNSUPPORTED. 0: 2^40 steps of bytecode, else no limit.
 * Other engines refuse a limit. */
IngotStatus ingot_set_max_steps(Ingot *m, uint64_t n);
/* Engine NULL: the first. Inputs that were not given are filled from seed. */
IngotStatus ingot_run(Ingot *m, const char *engine, uint64_t seed);
/* The same on memory of the caller, again and again: arrays in the order of ingot_input_info, of
 * those types and shapes (strings as rows of bytes, as they are described there), read where they
 * lie; dtype NULL: not given, which only an input with a usual value may be. room: for each output,
 * or none; data NULL: in memory of m, until the next call; apart from the inputs and from other
 * room. ingot_output tells shapes and where results are. Engines c and jit write straight into room
 * that has the bytes of the largest shape and begins at a multiple of the size of an element;
 * otherwise results are copied there. State goes on from call to call. INGOT_BAD_INPUT and
 * INGOT_USAGE of a call that got as far as its arrays leave m as it was, but for state that the run
 * had changed already. */
typedef struct IngotRoom {
  void *data;
  uint64_t bytes;
} IngotRoom;
typedef struct IngotCall {
  const char *engine; /* NULL: the first */
  uint64_t seed;      /* of operators that draw random numbers */
  const IngotTensor *in;
  uint32_t nin;
  const IngotRoom *room;
  uint32_t nroom; /* 0, or the number of outputs */
} IngotCall;
IngotStatus ingot_call(Ingot *m, const IngotCall *o);
/* Makes all that calls with this engine need, so that the first takes no longer than the others:
 * engine c is compiled. Those who do not ask for it get it with the first call. */
IngotStatus ingot_ready(Ingot *m, const char *engine);
/* State as before the first run. ingot_run goes on from the last run with the same engine. */
IngotStatus ingot_reset(Ingot *m);

/* How well a language model foretells a text, given as ids: over all that follow another one in the
 * same context the mean of -log of their probabilities. Longer texts are cut into contexts. */
typedef struct IngotPerplexity {
  double nll;        /* in nats */
  double perplexity; /* exp of it */
  uint64_t tokens;   /* that were foretold */
} IngotPerplexity;
IngotStatus ingot_perplexity(Ingot *m, const int32_t *ids, uint64_t n, const char *engine,
                             IngotPerplexity *out);
IngotTensor ingot_output(const Ingot *m, uint32_t i); /* of the last run; until the next */
/* .npz, .npy (of one output), or a directory that receives output_0.pb ... */
IngotStatus ingot_write_outputs(Ingot *m, const char *path);

/* Tolerances that are chosen. rtol by type: f64 1e-9, f32 1e-4, f16 1e-2, bf16 5e-2, floats of 8
 * bits and less 0.25, all others 0 (exact); atol: rtol times the largest finite magnitude that is
 * expected, outliers apart: magnitudes above 4096 that reach a quarter of the type's largest number
 * or exceed 1 / rtol^2 (of the type) times the lower quartile, as a power of 2, of those that are
 * not 0. AUTO: in a model that quantises what it computes, rtol of floats and of integers up to 8
 * bits is at least 1/32, and those integers may always differ by 1; TIGHT: there as elsewhere. */
#define INGOT_AUTO  (-1.0)
#define INGOT_TIGHT (-2.0)

/* Differences between the outputs of the last run and those stored in a directory. */
typedef struct IngotDiff {
  const char *name;
  int ok;
  double max_abs, max_rel;
  uint64_t max_ulp;
  double cosine;     /* of the two as vectors; 1 when both are zero, NaN when nothing is finite */
  double rtol, atol; /* that it was judged by: an element may differ by atol + rtol * |expected| */
  const char *why;   /* "" or what else there is to say: other shapes, types, counts; NaN in both */
} IngotDiff;
IngotStatus ingot_compare(Ingot *m, const char *dir, double rtol, double atol, IngotDiff *diff,
                          uint32_t max, uint32_t *n);

/* One array against another of the same model. */
IngotStatus ingot_diff(Ingot *m, const IngotTensor *have, const IngotTensor *want, double rtol,
                       double atol, IngotDiff *diff);

/* Parts of a model, between import and passes. expose: every value computed at the top level
 * becomes an output, in order; origin: the node an output comes from, as text. cut: only the value
 * with that number is left, with the nodes at most depth steps before it (0: all); what they read
 * becomes inputs, named like the outputs of the exposed model. stored: runs the passes that decide
 * it, and lists the numbers of those values that are still stored, as they are, in the program;
 * the others were fused or rewritten. expose_some: only those with these numbers. */
IngotStatus ingot_expose(Ingot *m);
IngotStatus ingot_stored(Ingot *m, const uint32_t **value, uint32_t *n);
IngotStatus ingot_expose_some(Ingot *m, const uint32_t *value, uint32_t n);
const char *ingot_output_origin(const Ingot *m, uint32_t i);
IngotStatus ingot_cut(Ingot *m, uint32_t value, uint32_t depth);
/* Inputs of the last run. */
IngotTensor ingot_used_input(const Ingot *m, uint32_t i);
IngotStatus ingot_write_inputs(Ingot *m, const char *path); /* .npz */

/* Memory of one inference. Sizes are for the upper bounds of open dimensions. */
typedef struct IngotMemory {
  int planned;     /* 0: some size has no bound; then only weights, buffers and groups are known */
  const char *why; /* "" or why there is no plan */
  uint64_t arena;  /* bytes */
  uint64_t lower_bound;     /* most bytes that are needed at one time: no arena can be smaller */
  uint64_t naive;           /* if every buffer had memory of its own */
  uint64_t weights;         /* of constants */
  uint64_t stack;           /* of the generated C, at most; 0 where there is none */
  uint64_t inputs, outputs; /* arrays of the caller; 0 where there is no C */
  uint64_t ram;             /* arena, stack, inputs and outputs; 0 likewise */
  uint64_t code;            /* of the generated C, roughly, without weights; 0 likewise */
  uint32_t buffers;
  uint32_t groups;  /* pieces of the model that are computed at a time */
  uint32_t kernels; /* functions of the generated C: groups that differ; 0 where there is none */
  uint32_t npeak;
  const IngotTensor
      *peak; /* what is alive when most bytes are, largest first; those that share memory once */
} IngotMemory;
IngotStatus ingot_memory(Ingot *m, IngotMemory *out);

/* A report on the model: inputs, outputs, opset, operators, parameters, multiply-adds, memory,
 * unsupported nodes. */
IngotStatus ingot_inspect(Ingot *m, int json, const char **text, size_t *n);
/* The same and more as one page of HTML, for a browser and nothing else: the graph as kernels with
 * the nodes of the model in them, memory over time, sizes, warnings. Nothing may have been made of
 * the model before. Fields may be NULL or 0; the text is good until ingot_free. */
typedef struct IngotValueDiff {
  const char *value, *node; /* names as ingot_expose gives them to outputs */
  const IngotDiff *diff;    /* NULL: the program does not store it */
} IngotValueDiff;
typedef struct IngotReport {
  const IngotBuild *bench; /* measures every kernel of the compiled model, as ingot_bench does */
  double seconds;          /* with bench; 0: 1 */
  uint64_t seed;
  const char *engine;          /* of value: whose values were compared with the reference */
  const IngotValueDiff *value; /* shows errors */
  uint32_t nvalue;
  const IngotQuantized *quantized; /* shows what became of each layer */
} IngotReport;
IngotStatus ingot_report(Ingot *m, const IngotReport *o, const char **html, size_t *n);
/* Supported operators as text or JSON; valid until ingot_free. */
IngotStatus ingot_ops(Ingot *m, int json, const char **text, size_t *n);
/* Files that will be written when the work is done: refused now, instead of then, where their
 * folders do not take them, and now or as soon as it is opened where one of them is a file that is
 * read. The second is for ingot_write_outputs, whose path may be a folder. No function of this
 * interface replaces a file that m has read, be it asked before or not. */
IngotStatus ingot_will_write(Ingot *m, const char *const *path, uint32_t n);
IngotStatus ingot_will_write_outputs(Ingot *m, const char *path);
/* 1 where the file is there and is a model, by its first bytes or, for ONNX, which has no mark, by
 * the end of its name: not one to write something else to. The text of a graph is no such file. */
int ingot_is_model_file(const char *path);
/* Writes a file so that it appears whole or not at all. */
IngotStatus ingot_write_file(Ingot *m, const char *path, const void *data, size_t n);
/* Files that belong together: none is put in place before all have been written. */
typedef struct IngotFile {
  const char *path;
  const void *data;
  size_t n;
} IngotFile;
IngotStatus ingot_write_files(Ingot *m, const IngotFile *file, uint32_t count);
/* This machine: CPU, features, caches, what it reaches when it is measured (about a second),
 * compilers and what they can do, other tools and libraries or the Debian package that has them,
 * the target that native stands for. No model need be open. */
IngotStatus ingot_doctor(Ingot *m, int json, const char **text, size_t *n);
/* Programs of the language (docs/language.md), which need no open model. run: `write` gets what is
 * printed; engine runs what is computed with tensors, NULL: vm; seed: of random numbers without
 * one. check: all errors, as messages. format: the text laid out anew; valid until ingot_free. */
typedef struct IngotScript {
  const char *engine;
  const char
      *march; /* as ingot_set_target takes it; NULL: any machine, with the same bits on all */
  uint64_t seed;
  void (*write)(void *user, const char *text, size_t n);
  void *user;
  const volatile int *stop; /* not 0, from a thread or a signal: the program ends; NULL: never */
  /* At the end, of every loop that ran often: how it ran, or why it was walked; NULL: nobody asks
   */
  void (*said)(void *user, const char *line);
  int eager;    /* loops are compiled before their first turn, whether that pays or not */
  int no_files; /* refuse to read and write files; modules, which are source code, are read */
} IngotScript;
IngotStatus ingot_script_run(Ingot *m, const char *path, const IngotScript *o);
/* The program runs, then the function of that name becomes the open model, its tensors constants;
 * NULL: the only one that takes only tensors with shapes. What ingot_set_dim and ingot_set_shape
 * have said before is what names in these shapes stand for. */
IngotStatus ingot_script_open(Ingot *m, const char *path, const char *function,
                              const IngotScript *o);
/* The whole program as a native one, which prints what run prints; of an output OUT.c the C alone.
 * Shapes that data decide are refused (INGOT_UNSUPPORTED) with their place. The program is walked
 * once, without computing tensors or writing files. Of o only output, cc, optimize, sanitize,
 * no_files and said are looked at. */
IngotStatus ingot_script_build(Ingot *m, const char *path, const IngotBuild *o);
/* A program line by line; what is printed, values and errors go to `write`. line: 1 if it is not
 * complete, and is to come again with more behind it. NULL: no memory. Freed before m. */
typedef struct IngotRepl IngotRepl;
IngotRepl *ingot_repl_new(Ingot *m, const IngotScript *o);
int ingot_repl_line(IngotRepl *r, const char *text);
void ingot_repl_free(IngotRepl *r);
IngotStatus ingot_script_check(Ingot *m, const char *path);
IngotStatus ingot_script_format(Ingot *m, const char *path, const char **text, size_t *n);

/* The first character of a text, as it stands in a string of JSON: characters of UTF-8 as they are,
 * bytes that are none shown as \xHH. Returns how many bytes of the text it takes; 0: it has ended.
 */
enum { INGOT_JSON_CHAR = 8 };
size_t ingot_json_char(const char *text, char to[INGOT_JSON_CHAR]);

/* Names of passes, one a line, with what they do. */
IngotStatus ingot_pass_list(Ingot *m, const char **text, size_t *n);

#ifdef __cplusplus
}
#endif
#endif
