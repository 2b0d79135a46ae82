/* ingot.h: the public interface of libingot.
 *
 * An Ingot holds one model and everything made from it. Two objects share nothing, so each thread
 * may have its own. Most calls return an IngotStatus; ingot_message() returns errors and warnings.
 * After a failure only messages, hints and ingot_free are allowed. The library never prints, exits
 * or aborts. A missing argument, a number out of range or a call in the wrong order gives
 * INGOT_USAGE, or an empty result.
 *
 *   Ingot *m = ingot_new(NULL);
 *   int bad = ingot_open(m, "model.onnx") || ingot_input(m, &x) || ingot_run(m, "vm", 0);
 *   if (!bad) use(ingot_output(m, 0));
 *   ingot_free(m);
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
  INGOT_USAGE = 2,       /* invalid call: unknown name, bad option, wrong order */
  INGOT_UNSUPPORTED = 3, /* the model is valid, but ingot does not support it */
  INGOT_BAD_INPUT = 4,   /* the file or array is malformed */
  INGOT_SYSTEM = 5,      /* out of memory or disk space, or a file cannot be accessed */
} IngotStatus;

/* Row-major array. Types narrower than a byte take one byte per element. */
typedef struct IngotTensor {
  const char *name;
  const char *dtype; /* "f32", "i64", "bool", ...; "str": data is an array of const char * */
  uint32_t rank;
  const int64_t *dim; /* rank entries; -1: unknown */
  const void *data;   /* NULL in descriptions */
  uint64_t bytes;
} IngotTensor;

/* realloc with the old size as an argument. Size 0 frees p and returns NULL. */
typedef struct IngotAlloc {
  void *(*resize)(void *user, void *p, size_t old, size_t size);
  void *user;
} IngotAlloc;

Ingot *ingot_new(const IngotAlloc *alloc); /* NULL: malloc; returns NULL if out of memory */
void ingot_free(Ingot *m);

/* A guard owns temporary files and folders, and child processes (each in its own process group). It
 * may serve several objects and must outlive them. To end the process early, for example on a
 * signal, call ingot_guard_end from another thread, not from a signal handler. It removes the files
 * and ends the children; calls in progress never return. The callback `doing` receives the name of
 * a slow step, such as "C compiler", and NULL when the step ends. It may be NULL. */
typedef struct IngotGuard IngotGuard;
IngotGuard *ingot_guard_new(void (*doing)(void *user, const char *what), void *user);
void ingot_guard_free(IngotGuard *g);
void ingot_guard_end(IngotGuard *g);
IngotStatus ingot_set_guard(Ingot *m, IngotGuard *g); /* call it first; NULL: none */

/* Errors and warnings so far, in order. */
uint32_t ingot_message_count(const Ingot *m);
const char *ingot_message(const Ingot *m, uint32_t i, int *is_warning);

/* Command-line words that would have avoided the failure, such as "-d" and "batch=1", in order.
 * Returns NULL after the last. */
const char *ingot_hint(const Ingot *m, uint32_t i);

/* The one of n names that is closest to a misspelt word, or NULL. */
const char *ingot_nearest(const char *word, const char *const *name, size_t n);

/* Reads a model of any supported format: ONNX, TensorFlow Lite, GGUF, safetensors, bytecode, or the
 * text form of a graph or program. Builds nothing yet. */
IngotStatus ingot_open(Ingot *m, const char *path);
IngotStatus ingot_open_bytes(Ingot *m, const void *data, size_t n, const char *name);

/* Adds another model to the same C file; its functions become entries next to those of m. All
 * entries share the arena, store equal weights once and keep separate state. Set dimensions,
 * shapes, constants and state of this model on *more, before anything is made from m. Everything
 * else is set on m. The entry is named after its path. ingot_free(m) frees *more. */
IngotStatus ingot_open_also(Ingot *m, const char *path, Ingot **more);

/* Tokenizer. The vocabulary comes from a GGUF file, a tokenizer.json, a SentencePiece
 * tokenizer.model, or a folder with one of these. It is independent of the open model. Ids and
 * texts are valid until the next call on the same object. INGOT_SPECIAL: convert special tokens
 * such as <s> from and to their text; by default such text is plain text, and special tokens
 * produce no text. INGOT_BARE: omit the tokens that the model expects around a text (BOS, EOS).
 * Invalid UTF-8 is kept by byte-level vocabularies and becomes U+FFFD in others. */
enum { INGOT_SPECIAL = 1, INGOT_BARE = 2 };
IngotStatus ingot_open_vocab(Ingot *m, const char *path);
IngotStatus ingot_tokenize(Ingot *m, const void *text, size_t n, unsigned flags,
                           const uint32_t **ids, size_t *count);
IngotStatus ingot_detokenize(Ingot *m, const uint32_t *ids, size_t n, unsigned flags,
                             const char **text, size_t *bytes);

/* Dimensions: "batch=1", "batch:1", "images:0=1". Shapes: "x:1x3x224x224"; with is_max these are
 * upper bounds and the dimensions stay symbolic. */
IngotStatus ingot_set_dim(Ingot *m, const char *spec);
IngotStatus ingot_set_shape(Ingot *m, const char *spec, int is_max);

/* Target of the code: a name of ingot_target, such as "scalar" (any machine) or "avx2", or
 * "native". A comma-separated list, or "multi" for the list of ingot_multi, gives C with one
 * variant per target; on x86-64 every run selects the best one for its CPU. Other engines then use
 * the variant for this CPU. "avx2-loops" and similar names are the fallback for a compiler or CPU
 * without these vectors. The default is native for engine c, build and bench, and scalar for
 * generated C. Call before the passes. */
IngotStatus ingot_set_target(Ingot *m, const char *name);
const char *ingot_target(uint32_t i); /* name of the i-th target; NULL after the last one */
const char *ingot_multi(void);        /* the targets of "multi", separated by commas */
const char *ingot_native(void);       /* the target that "native" selects */
/* Makes exp, log, sin, cos, tanh and erf of f32 return the nearest float, as in engine ref. The
 * default is computation in float, within the errors of docs/numerics.md. Call before the passes.
 */
IngotStatus ingot_set_precise(Ingot *m);
/* Precision of products of f32 on a GPU: "f32" (default, exact), "tf32", "f16" or "bf16". With the
 * last two, weights and values between products are stored in 16 bits. Sums are f32. */
IngotStatus ingot_set_precision(Ingot *m, const char *name);

/* Optimization goal. "time" is the default. "ram" selects a program that needs less memory (arena,
 * stack, inputs and outputs together) and little more time, for example with row tiling; a warning
 * reports the trade. "size" selects the program with the fewest bytes of code and weights, on
 * targets with vectors; ingot_build then compiles with -Os. Call before the passes. */
IngotStatus ingot_optimize_for(Ingot *m, const char *what);
/* Memory limit of one run: "262144", "256K" or "2M" for arena, stack, inputs and outputs together.
 * The fastest program that fits is selected, if necessary without vectors. If none fits, the passes
 * fail with INGOT_UNSUPPORTED and say what would help. ingot_passes makes only one program, with
 * row tiling that aims at this limit. Call before the passes. */
IngotStatus ingot_set_ram(Ingot *m, const char *bytes);

/* Threads of one run of compiled C, 1 to 64. Results are bit-identical for every number. api:
 * "pthread" or NULL: workers, started by NAME_threads_start; "openmp": one parallel region per run.
 * grain: minimum estimated work per thread in ns; 0: 4000. Call before the passes. */
IngotStatus ingot_set_threads(Ingot *m, int n, const char *api, int grain);

/* Tile sizes of kernels come from a cost model or from measurements. ingot_set_tuned uses the tile
 * sizes that a file has for the target, whichever CPU measured them. ingot_tune benchmarks those
 * that the file lacks for this CPU and compiler, adds them to the file and uses them. The target
 * must run on this machine. ingot_choices prints one line per kernel: key, selected tile,
 * alternatives. Tile sizes affect rounding only; no choice is less accurate than the default. Call
 * before the passes; ingot_tune excludes ingot_optimize_for "ram" and "size". */
typedef struct IngotTune {
  const char *file;                  /* NULL: $XDG_CACHE_HOME/ingot/tune, or ~/.cache/ingot/tune */
  const char *cc, *march, *optimize; /* as in IngotBuild */
  void (*on_progress)(void *user, const char *line); /* trials and speed-ups; may be NULL */
  void *user;
} IngotTune;
IngotStatus ingot_set_tuned(Ingot *m, const char *file);
IngotStatus ingot_tune(Ingot *m, const IngotTune *o);
IngotStatus ingot_choices(Ingot *m, const char **text, size_t *n);

/* "h_in=h_out": output h_out becomes input h_in of the next run, and both stop being parameters.
 * State is zero before the first run. "auto" pairs inputs and outputs by name;
 * ingot_inspect lists the pairs. */
IngotStatus ingot_set_state(Ingot *m, const char *spec);

/* "loss" or "loss:x,w1": after import, the model has an output x.grad for each listed value: the
 * gradient of sum(loss). `loss` and the values are inputs, outputs, constants or other values, by
 * name. Default: the gradients of all float inputs. */
IngotStatus ingot_set_grad(Ingot *m, const char *spec);

/* Turns the model into one training step: "loss=cross_entropy,optimizer=adam". After import it has
 * the additional inputs "label" and "rate". Its outputs are "loss" and, for cross_entropy, "right":
 * correct predictions in the batch. Weights and optimizer moments are state. Keys: loss
 * (cross_entropy, mse, mae, bce, bce_logits), optimizer (sgd, momentum, adam, adamw, rmsprop,
 * adagrad, lion, lamb), momentum, beta1, beta2, epsilon, decay, clip (of the global gradient norm),
 * clip_value (of every element), smoothing (of labels), axis (of the classes), rate (default
 * learning rate, 0.001), output (name), freeze (pattern with * of weights not to train;
 * repeatable), recompute (1: loops recompute activations instead of storing them). */
IngotStatus ingot_set_train(Ingot *m, const char *spec);

/* Language models (GGUF, safetensors). The graph maps token ids to logits; the KV cache is state.
 * Call before import. */
typedef struct IngotLanguage {
  uint64_t context; /* context length in tokens; 0: as trained, at most 4096 */
  uint64_t chunk;   /* maximum tokens of one run; 0: 128, for ingot_player 256 */
  int every;        /* logits of every token, not only of the last */
  const char
      *cache; /* KV cache type: "f16", "f32" or "int8"; NULL: f16, or f32 after ingot_set_precise */
  uint32_t slots; /* sequences of one run, at most 16: inputs ids.0, ids.1, ... with 0 to chunk ids
                     each, and "rows", the rows of all these ids whose logits are the output; 0: one
                     sequence, input "ids" */
  const char *activations; /* products with quantized weights multiply activations as "int8",
                              "int16" or "f32"; NULL: int16 up to 500M parameters, else int8 */
} IngotLanguage;
IngotStatus ingot_set_language(Ingot *m, const IngotLanguage *o);
/* Keeps the first `position` tokens of sequence `slot` in the KV cache, which must have run; the
 * next run continues after them. With sliding windows only 0 is valid once more tokens have run
 * than every layer keeps. */
IngotStatus ingot_rewind(Ingot *m, uint32_t slot, uint64_t position);
/* Reads a system prompt from a file, without trailing newlines. Programs and C contain the KV cache
 * of this prompt, and start as if it had been run. Call before import. */
IngotStatus ingot_bake_prompt(Ingot *m, const char *path);
/* Date, YYYY-MM-DD, that the chat template receives in baked prompts and in C. Default: 2026-01-01.
 * Call before import. */
IngotStatus ingot_set_day(Ingot *m, const char *day);

/* Sets the array of an input, and thereby its dimensions. The data are copied. */
IngotStatus ingot_input(Ingot *m, const IngotTensor *t);
/* NAME=VALUE. VALUE is @FILE.npy or @FILE.pb; rand, zeros or ones; a scalar; or a list such as [1,
 * 2, 3] or [[1, 2], [3, 4]], whose nesting is the shape. A scalar is a number in C syntax (also
 * nan, inf), true, false, or a string with or without "..."; it fills the whole input. Values must
 * fit in the type of the input. */
IngotStatus ingot_input_spec(Ingot *m, const char *spec);
/* Takes NAME=VALUE, except rand, and turns the input into a constant. Everything that depends only
 * on constants is folded; untaken branches disappear with their weights. An array given later for
 * the input must be equal. Call before import. */
IngotStatus ingot_freeze(Ingot *m, const char *spec);
/* An .npz keyed by input name, or a directory with input_0.pb, input_1.pb, ... */
IngotStatus ingot_input_file(Ingot *m, const char *path);

/* Builds the graph. All dimensions must be known or bounded (ingot_set_dim, ingot_set_shape),
 * unless symbolic is set, for inspection. */
IngotStatus ingot_import(Ingot *m, int symbolic);

/* Passes to run and callbacks. All fields may be NULL or 0. Dumps arrive in order. */
typedef struct IngotPassOptions {
  const char *start, *stop, *skip, *dump;
  int check; /* verify the IR after every pass */
  void (*on_dump)(void *user, const char *pass, const char *text, size_t n);
  void (*on_time)(void *user, const char *pass, double ms, uint32_t before, uint32_t after);
  void *user;
  int brief; /* dumps shorten constants of more than 16 elements */
} IngotPassOptions;
IngotStatus ingot_passes(Ingot *m, const IngotPassOptions *pipe);
/* Programs quantize the activations that they multiply with quantized weights: int8, 32 elements
 * per scale, unless ingot_set_precise was called or the model asks for floats. The reference
 * engines do the same after this call, so that a comparison does not include this rounding. Imports
 * the model; afterwards no program can be made from it. */
IngotStatus ingot_round_activations(Ingot *m);
/* Explains, one line each, why values keep their own buffer instead of being fused into their
 * users, and the family, reason and estimated time of every kernel. */
IngotStatus ingot_explain(Ingot *m, const char **text, size_t *n);
/* Text form of the graph or program in its current state. If weights is not NULL, *weights receives
 * large constants. */
IngotStatus ingot_print(Ingot *m, const char **text, size_t *n, const char **weights,
                        size_t *nweights);
/* Text form for reading: constants of more than 16 elements are shortened. ingot_open refuses it.
 */
IngotStatus ingot_print_brief(Ingot *m, const char **text, size_t *n);
/* Writes the current graph as an ONNX model: after import, or after passes up to canon. */
IngotStatus ingot_write_onnx(Ingot *m, const char *path);

/* The model as C. Texts stay valid until ingot_free. */
typedef struct IngotCodegen {
  const char *name;
  uint64_t literal_bytes; /* store weights up to this size as numbers; 0: 256 KiB */
  const char *weights; /* "literal", "text", "file": NAME.bin, "pointer": argument; NULL: by size */
  const char *weights_file; /* with "file": its name in the C, unless the macro NAME_WEIGHTS_FILE
                               (upper case) is defined; NULL: NAME.bin */
  int selftest;             /* 0: unless the model is large; 1: always; -1: never */
  int debug;   /* give every tensor its own array, so that sanitizers catch out-of-bounds accesses;
                  not re-entrant */
  int caller;  /* add NAME_call, which ingot_set_library needs */
  int profile; /* call a user callback after every kernel (see the header) */
  int split; /* split kernels into up to 64 compilation units, -DNAME_PART=0 and so on; 0: one unit.
                ingot_build with 0 selects a number by code size and compiles in parallel */
  const char *cpp; /* ingot_write_c: path of a C++ header to write; NULL: none */
} IngotCodegen;
IngotStatus ingot_emit_c(Ingot *m, const IngotCodegen *o, const char **source, size_t *nsource,
                         const char **header, size_t *nheader);

/* Writes C files; all appear, or none. weights: file for weights that are not part of the C;
 * without o->weights these are weights above 8 MiB. */
IngotStatus ingot_write_c(Ingot *m, const IngotCodegen *o, const char *source, const char *header,
                          const char *weights);

/* Writes a folder for a build system: C, an example program, build files, and a README with sizes.
 * Files of an earlier export (listed in .ingot-export) are replaced, others never.
 * ingot_check_export refuses, before the model is read, what does not depend on it. */
typedef struct IngotExport {
  IngotCodegen c;     /* name is required; only weights and selftest of the rest are used */
  const char *kind;   /* "cmake", "make", "zephyr", "arduino", "platformio", "esp-idf" or "rust" */
  const char *folder; /* created if it does not exist */
} IngotExport;
IngotStatus ingot_export(Ingot *m, const IngotExport *o);
IngotStatus ingot_check_export(Ingot *m, const IngotExport *o);

/* Writes the model with its weights as bytecode, a file that ingot_open reads and engine "vm" runs.
 */
IngotStatus ingot_write_vm(Ingot *m, const char *path);
int ingot_is_vm(const Ingot *m); /* 1 if the open model is bytecode */
/* The bytecode interpreter as one C file and its header, which describes its use. */
IngotStatus ingot_emit_vm(Ingot *m, const char **source, size_t *nsource, const char **header,
                          size_t *nheader);

/* Contents of NAME.bin after ingot_emit_c with weights "file" or "pointer"; otherwise empty. */
IngotStatus ingot_emit_weights(Ingot *m, const void **data, size_t *n);

/* Builds machine code with a C compiler, started without a shell. The suffix of output selects the
 * product: .o, .a, .so (each with a header), .wasm, or else a program. WebAssembly
 * needs clang and wasm-ld and comes with .mjs and .d.mts files; its default march is simd128. */
typedef struct IngotBuild {
  IngotCodegen c; /* name: prefix of C names; NULL: stem of output */
  const char *output;
  const char *cc;       /* NULL: $CC, else cc; may contain arguments, separated by blanks */
  const char *march;    /* target (see ingot_set_target) or a CPU as for -march=; NULL: native */
  const char *optimize; /* "0", "1", "2", "3", "s"; NULL: "2" */
  const char *sanitize; /* as for -fsanitize=; NULL: none */
  int arrays;        /* a program of a language model reads and writes arrays, like any other model,
                        instead of text */
  int chats, system; /* ingot_player: refuse early a model whose chat template is missing, or lacks
                        a system message */
  const char *backend; /* "llvm": object code from LLVM, without a C compiler; NULL: C */
  const char *triple;  /* with LLVM: TRIPLE[,CPU[,FEATURES]]; NULL: from march */
  const char *target;  /* "wasm": output is OUT.wasm; "cuda" or "cuda:90a,89": OUT.cu, OUT.h and
                          OUT.bin, for these chips; NULL: by suffix */
  const char *preset;  /* "balanced", "max", "dev" or "size": defaults of optimize and lto (see
                          ingot_presets); NULL: balanced */
  int lto;             /* link-time optimization; .o and .a: compile as one unit */
  int fast_math;   /* allow reassociation of floating-point sums; refused if results differ from the
                    strict build by more than ingot_diff allows */
  const char *pgo; /* profile-guided optimization: "": generated inputs or prompts; FILE.npz; a
                      folder of them; a list of prompts (JSON or lines); NULL: off */
  int bolt;        /* programs: optimize the binary layout with llvm-bolt and a run-time profile */
  double seconds;  /* measuring time per step, for programs on arrays; 0: 1 */
  int no_files;    /* ingot_script_build: as in IngotScript, during the trace */
  void (*on_command)(void *user, const char *line); /* every command that is started; may be NULL */
  void *user;
} IngotBuild;
IngotStatus ingot_build(Ingot *m, const IngotBuild *o);
/* Report of a PGO build: a build with lto, fast_math, pgo or bolt, given directly or by a preset.
 * Such a build also writes the product without these options (OUT.baseline, OUT.baseline.so),
 * measures all steps in turn and reports the speed-up of each. The text is empty after other
 * builds. Profiles are cached in ~/.cache/ingot; ingot_clean removes them. */
IngotStatus ingot_build_report(Ingot *m, int json, const char **text, size_t *n);
IngotStatus ingot_presets(Ingot *m, int json, const char **text, size_t *n);
/* Refuses, before the model is read, what ingot_build would refuse for any model: options, outputs
 * (see ingot_will_write), a missing C compiler. Without output, for ingot_bench, checks the
 * compiler only. */
IngotStatus ingot_check_build(Ingot *m, const IngotBuild *o);

/* Builds a language model as a chat program in ~/.cache/ingot, or finds it there.
 * o->output is ignored. *program is NULL, with a warning, if it is not cached and no C compiler is
 * found. */
IngotStatus ingot_player(Ingot *m, const IngotBuild *o, const char **program);
int ingot_is_language_model(const Ingot *m); /* 1 if the open model is a language model */
/* Removes all cached programs, profiles and code of ingot_keep_code in the default folder; returns
 * their number and bytes. ingot_cache_list lists them, least recently used first, as lines or JSON.
 * Code of engine c is limited to 2 GiB. No model need be open. */
IngotStatus ingot_clean(Ingot *m, uint64_t *count, uint64_t *bytes);
IngotStatus ingot_cache_list(Ingot *m, int json, const char **text, size_t *n);

/* Runs a language model in this process, as bytecode. ingot_chat_engine, called before, can choose
 * "cuda" instead of "vm". ingot_chat_model returns the tables that a
 * chat program contains. ingot_feed runs n ids, 1 to chunk, after the first `position` ids of the
 * context, and writes the logits of the last one. */
/* Sampling settings of a model file (generation_config.json, general.sampling.* of GGUF); -1: not
 * in the file. */
typedef struct IngotSampling {
  double temperature, top_k, top_p, min_p, repeat;
} IngotSampling;
typedef struct IngotChatModel {
  const void *vocab; /* tokenizer in its compiled form */
  size_t nvocab;
  uint64_t context, chunk, logits;
  double token_bytes, kv_bytes; /* read per token: of weights, of KV cache per position */
  const char *open, *open_system, *system, *ask, *next; /* texts of the chat template; NULL: none */
  const char *none;                                     /* why the template is missing, or NULL */
  int trims;
  const char *prompt; /* see ingot_bake_prompt */
  uint64_t ring;      /* positions up to which every layer keeps all keys and values */
  int64_t day;        /* date in the prompt, in seconds since 1970; 0: no prompt */
  IngotSampling sampling;
} IngotChatModel;
IngotStatus ingot_chat_engine(Ingot *m, const char *engine);
IngotStatus ingot_chat_model(Ingot *m, IngotChatModel *out);
/* Builds a library like the program of ingot_player: functions lm_*, declared in a header next to
 * it. Sets only the texts and trims of *out. */
IngotStatus ingot_player_library(Ingot *m, const IngotBuild *o, const char **library,
                                 IngotChatModel *out);
IngotStatus ingot_feed(Ingot *m, const int32_t *ids, size_t n, uint64_t position, float *logits);

/* Serves the open language model over HTTP with the OpenAI API (docs/serve.md), until SIGTERM or
 * SIGINT. Answers depend on request and seed only, whatever else is served. libevent is loaded at
 * run time: INGOT_UNSUPPORTED if it is missing. Encoders serve embeddings. Fields may be NULL or 0,
 * except slots. */
typedef struct IngotServe {
  const char *host;           /* address; NULL: 127.0.0.1. Others need a key. */
  uint32_t port;              /* 0: any free one */
  const char *key, *key_file; /* API key, or a file with it in the first line */
  uint32_t slots;             /* sequences that decode at once, 1 to 16 */
  uint32_t queue;             /* sequences that may wait; further requests get status 429 */
  uint32_t timeout;           /* seconds to receive a request; 0: 30 */
  uint64_t body_bytes;        /* largest request; 0: 4 MiB */
  const char *name;           /* name of the model; NULL: its file name */
  const char *engine;         /* c, jit or vm; NULL: c, without a C compiler vm */
  const char *cc, *march;     /* as in IngotBuild */
  void (*on_ready)(void *user, uint32_t port); /* the server answers */
  void (*on_log)(void *user, const char *line);
  void *user;
} IngotServe;
IngotStatus ingot_serve(Ingot *m, const IngotServe *o);

/* Quantizes the open model and writes it in its own format: ONNX with QuantizeLinear and related
 * operators, which ONNX Runtime can run. Fields may be NULL or 0. */
typedef struct IngotQuantize {
  const char *output;
  /* ONNX: "static" (default; int8 weights and activations, calibrated), "dynamic" (activation
   * ranges are computed at run time), or weights only: "weights8", "weights4", "f16", "bf16" */
  const char *method;
  /* Language models (GGUF, safetensors): weight type such as "Q8_0", or a mixture as in llama.cpp,
   * such as "Q4_K_M". Writes GGUF. Of the other fields only exclude is used, with names of tensors.
   */
  const char *type;
  /* An .npz of arrays named like the inputs, or a folder of such files (docs/quantize.md). data is
   * for calibration, holdout measures the error. Default of holdout: the last fifth of data. */
  const char *data, *holdout;
  const char *calibrate; /* "minmax", "average", "percentile", "entropy" or "mse"; NULL: the best of
                            several */
  const char *activations; /* "u8" (default) or "s8" */
  int symmetric;           /* zero point of activations is the middle of the range */
  const char *granularity; /* scale of weights per "channel" (default), "tensor" or "group" */
  uint32_t block;          /* weights per group; 0: 32 */
  int bias_correction, equalize;
  const char *const *exclude; /* nodes not to quantize: names, with * and ? */
  uint32_t nexclude;
  /* Minimum SQNR of the outputs in dB; with label, the maximum loss of accuracy in points. Layers
   * are measured one by one, and the most costly ones stay as they are until the budget is met.
   * NULL: quantize all layers. */
  const char *budget;
  const char *label; /* array of data with the class indices */
} IngotQuantize;

typedef struct IngotLayer {
  const char *name, *op;
  int kept;                    /* not quantized */
  const char *why;             /* reason why it was not quantized */
  uint64_t before, after;      /* bytes of its weights */
  double sqnr, mse, max_error; /* error of its result in the whole model; sqnr in dB */
  double alone; /* SQNR of the outputs in dB if only this layer is quantized; NaN: not measured */
} IngotLayer;

/* Error of one output over all examples. */
typedef struct IngotOutputError {
  const char *name;
  double sqnr, mse, max_error; /* float outputs; else NaN */
  uint64_t elements, changed;  /* other outputs: number of elements, and of different ones */
} IngotOutputError;

/* Error of the quantized model. The means weight all float outputs equally. */
typedef struct IngotQuantError {
  uint32_t examples; /* 0: nothing was measured */
  double sqnr, mse, max_error;
  double accuracy, was; /* accuracy of the quantized and of the original model in percent, with
                           label; else NaN */
  const IngotOutputError *output;
  uint32_t noutput; /* in the order of the model */
} IngotQuantError;

typedef struct IngotQuantized {
  const char *method, *calibrate; /* methods used */
  const IngotLayer *layer;
  uint32_t nlayer;
  uint64_t before, after; /* bytes of the model files */
  IngotQuantError data, holdout;
} IngotQuantized;
/* Writes o->output. *out is valid until ingot_free. */
IngotStatus ingot_quantize(Ingot *m, const IngotQuantize *o, IngotQuantized *out);

/* Trains the open ONNX model and writes it with its new weights. The rest of the file is unchanged.
 * Fields may be NULL or 0. */
typedef struct IngotProgress {
  uint64_t epoch, epochs, example,
      examples;          /* epoch: from 1; example: examples seen in this epoch */
  double loss, accuracy; /* means over this epoch so far; accuracy NaN: not a classifier */
  double rate;           /* examples per second */
  double seconds_left;
} IngotProgress;

/* Scores in percent, except loss. NaN: not a classifier. */
typedef struct IngotScore {
  uint64_t examples; /* 0: nothing was measured */
  double loss, accuracy, precision, recall, f1;
} IngotScore;

typedef struct IngotEpoch {
  uint64_t epoch;             /* from 1 */
  double rate;                /* learning rate of the last step */
  IngotScore train, validate; /* train: mean over the steps, while weights change */
} IngotEpoch;

typedef struct IngotTrain {
  const char *output;
  const char *data, *validate;  /* .npz of arrays named like the inputs; examples along axis 0 */
  const char *label;            /* array with the labels; NULL: "label" */
  const char *loss, *optimizer; /* as in ingot_set_train; NULL: cross_entropy, adam */
  const char *more;             /* other keys of ingot_set_train: "decay=0.01,axis=2" */
  double rate;                  /* learning rate; 0: 0.001 */
  /* Learning-rate schedule; NULL: constant. "step[:N[,K]]": multiply by K (0.1) every N epochs (a
   * third of all). "exp[:K]": multiply by K (0.95) every epoch. "cosine[:LOW]": half a cosine down
   * to LOW (0) over all steps. */
  const char *schedule;
  double clip;               /* clip the global gradient norm to this; 0: off */
  uint64_t batch, epochs;    /* 0: 32, 1 */
  uint64_t patience;         /* stop after this many epochs in which the validation loss did not
                                fall below its minimum, and write the weights of the best epoch; 0: off */
  uint64_t seed;             /* seed of shuffling and dropout */
  const char *const *freeze; /* weights not to train: names, with * and ? */
  uint32_t nfreeze;
  /* Gradient accumulation steps: parts of a batch whose gradients are added in order. Processes
   * started by mpirun share the parts; results are bit-identical for any number of processes. 0:
   * number of processes. */
  uint64_t accumulate;
  int recompute;      /* loops recompute activations in the backward pass instead of storing them */
  const char *engine; /* c, jit, vm or interp; NULL: c, else (without a C compiler) jit or vm */
  const char *checkpoint;  /* file to resume from, if it exists; NULL: OUTPUT.checkpoint */
  double checkpoint_every; /* seconds between checkpoints; negative: 5 */
  int in_place;            /* output may be the model file, which is replaced */
  void (*on_progress)(void *user, const IngotProgress *p); /* called after steps; may be NULL */
  /* Called after every epoch, first for the epochs in a checkpoint. May be NULL. */
  void (*on_epoch)(void *user, const IngotEpoch *e);
  void *user;
} IngotTrain;

typedef struct IngotTrained {
  const IngotEpoch *epoch;
  uint32_t nepoch;
  const char *engine;
  uint64_t weights, steps; /* number of trained weights; steps of this call */
  uint64_t resumed;        /* steps completed before the checkpoint that was loaded */
  uint64_t best;           /* epoch whose weights were written; without patience the last */
  double seconds;          /* time of the steps of this call */
  int rank;                /* MPI rank; rank 0 writes the file */
} IngotTrained;
/* Writes the training loop as C. Of o, only loss, optimizer, more, rate, clip, freeze, batch (0: 1)
 * and recompute are used. The file has NAME_train(arena, inputs, label, &loss), NAME_run(arena,
 * inputs, outputs) with the current weights, NAME_reset, NAME_save and NAME_load. ram[0]: bytes of
 * arena, stack, inputs and outputs. ram[1]: the same without recompute, else 0. */
IngotStatus ingot_train_c(Ingot *m, const IngotTrain *o, const IngotCodegen *c, const char *source,
                          const char *header, const char *weights, uint64_t ram[2]);
/* Writes o->output. *out is valid until ingot_free. */
IngotStatus ingot_train(Ingot *m, const IngotTrain *o, IngotTrained *out);

/* Measurement of one kernel, which computes one or more nodes. */
typedef struct IngotKernel {
  const char *nodes; /* values that the kernel computes */
  double ms;         /* median of the total in one run */
  double calls;      /* calls in one run; more than 1 in loops */
  double macs;       /* multiply-adds of one run, as executed (Winograd needs fewer) */
  double bytes;      /* bytes of all buffers that a call touches */
  double whole;      /* integer multiply-adds, included in macs */
} IngotKernel;

/* Latency of single runs, by an engine with INGOT_TIMED. Engine c is compiled to a program with the
 * options of build, except output. */
typedef struct IngotBench {
  int n; /* number of runs */
  double min_ms, p50_ms, p90_ms, p99_ms;
  double first_ms; /* time to the first result, from the model in memory (vm) or from process start
                      (c) */
  double build_ms; /* engine c: ingot and the C compiler */
  uint64_t rss_kb; /* peak memory of the process */
  uint64_t text_bytes, data_bytes; /* engine c: code and constants of the object file */
  double device_ms; /* engine cuda: median of the recorded run without copies; 0: not recorded */
  const IngotKernel *kernel; /* engine c with build->c.profile; valid until ingot_free */
  uint32_t nkernel;
  double peak_gflops, peak_gbps; /* peak of this machine with as many threads (a multiply-add is 2
                                    operations, bytes are reads); 0: unknown */
  const char *cpu, *target;      /* CPU name; target of the kernels */
  const char *compiler;          /* engine c: version and optimization level; else NULL */
  uint32_t threads;
} IngotBench;
IngotStatus ingot_bench(Ingot *m, const char *engine, const IngotBuild *build, double seconds,
                        uint64_t seed, IngotBench *out);

/* Parameters of the model after import; data is NULL. All are tensors:
 * - An ONNX sequence x is x.0, x.1, ... The number of elements of an input is fixed before import,
 * by the arrays given or by ingot_set_dim "x=3".
 * - An optional x is x. An input is present if an array is given, or with "x.has=1".
 * - An output whose length is known only at run time is y, the elements stacked up to a capacity,
 * and y.count. An output whose presence is known only at run time is y (zeros if absent) and y.has.
 * - A map x is x.keys and x.values. A sequence of maps (ZipMap) is y, the values [maps, keys], and
 * y.keys.
 * - Strings are described as u8[.., k]: k bytes each, padded with zeros ("x.bytes=100" sets k).
 * They are given and returned as "str" or as such bytes. */
uint32_t ingot_input_count(const Ingot *m);
IngotTensor ingot_input_info(const Ingot *m, uint32_t i);
uint32_t ingot_output_count(const Ingot *m);
IngotTensor ingot_output_info(const Ingot *m, uint32_t i);

/* 1 if shapes depended on the contents of input i at import. Later runs then require the same
 * contents. */
int ingot_input_decides(const Ingot *m, uint32_t i);

/* An input or output as the open model declares it, before import. name is NULL after the last, and
 * for formats that declare nothing. *out is valid until ingot_free. */
typedef struct IngotPortInfo {
  const char *name;
  const char *type;  /* as text: f32[batch,3,8,8], sequence of i64[] */
  const char *dtype; /* element type of a tensor; NULL: not a tensor */
  int has_shape;     /* 0: the rank is unknown */
  uint32_t rank;
  const int64_t *dim;        /* -1: symbolic or unknown */
  const char *const *symbol; /* name of a symbolic dimension, or NULL */
} IngotPortInfo;
IngotStatus ingot_declared(Ingot *m, int is_output, uint32_t i, IngotPortInfo *out);

/* Engines:
 * - "vm" runs the passes, if necessary, and the program as bytecode
 * - "c" compiles the program with a C compiler, "jit" with LLVM in this process
 * - "cuda" compiles it with NVRTC and runs it on an NVIDIA GPU
 * - "interp" interprets the program slowly; "watch" also checks every memory access
 * - "ref" evaluates the graph as imported, "ref64" in double
 * - "onnxruntime" runs the ONNX file in Python */
enum {
  INGOT_GRAPH = 1,      /* evaluates the graph; without GRAPH and FILE: runs the program */
  INGOT_FILE = 2,       /* another program reads the ONNX file; it may be missing */
  INGOT_EXACT = 4,      /* bit-identical to the first engine */
  INGOT_NATIVE = 8,     /* compiles to machine code */
  INGOT_TIMED = 16,     /* ingot_bench can measure it */
  INGOT_JUDGE = 32,     /* reference that others are compared with */
  INGOT_PEER = 64,      /* compared and, if TIMED, measured by default */
  INGOT_OPTIONAL = 128, /* needs a library that may be missing: runs only if named */
  INGOT_HOST = 256,     /* ingot_bench lowers for this machine without a compiler */
  INGOT_DEVICE = 512    /* lowers for a GPU: results equal those of "interp" with target cuda */
};
typedef struct IngotEngine {
  const char *name;
  unsigned flags;
} IngotEngine;
const IngotEngine *ingot_engine(uint32_t i);            /* NULL after the last */
const IngotEngine *ingot_find_engine(const char *name); /* NULL: unknown */

/* LLVM IR of the program, for the target that is set (default: this machine). */
IngotStatus ingot_print_llvm(Ingot *m, const char **text, size_t *n);
/* The CUDA kernels of the program, lowered for target cuda. */
IngotStatus ingot_print_cuda(Ingot *m, const char **text, size_t *n);
/* Caches compiled code of engines c, jit and cuda in a folder; "": ~/.cache/ingot. With NULL,
 * engine c uses ~/.cache/ingot unless INGOT_CACHE=0, and ignores a folder that it cannot use. Code
 * is loaded only from files that other users cannot write. ingot_load_code is ingot_ready for
 * engine c if its code is cached; otherwise it sets *found to 0 and compiles nothing. */
IngotStatus ingot_keep_code(Ingot *m, const char *folder);
IngotStatus ingot_load_code(Ingot *m, int *found);
uint32_t ingot_llvm(void); /* LLVM version of engine jit, 14 to 19; 0: not found */
/* Engine c: call NAME_call of this .so instead of compiling. */
IngotStatus ingot_set_library(Ingot *m, const char *path, const char *name);
IngotStatus ingot_set_python(Ingot *m, const char *path); /* NULL: python3 */
IngotStatus ingot_check_python(Ingot *m); /* starts Python; fails if onnxruntime is missing */
/* Engine vm: stop a run after n steps (backward jumps and panel iterations), with INGOT_BAD_INPUT
 * if the model is bytecode, else INGOT_UNSUPPORTED. 0: 2^40 steps for bytecode, else unlimited.
 * Other engines refuse a limit. */
IngotStatus ingot_set_max_steps(Ingot *m, uint64_t n);
/* Runs the model. engine NULL: the first one. Inputs that were not given are generated from seed.
 */
IngotStatus ingot_run(Ingot *m, const char *engine, uint64_t seed);
/* Runs the model on arrays of the caller, repeatedly.
 * - in: arrays in the order, types and shapes of ingot_input_info (strings as rows of bytes). They
 * are not copied. dtype NULL: not given, only for inputs with a default value.
 * - out: memory for every output, or none. It must not overlap inputs or other outputs. With data
 * NULL, the result stays in memory of m until the next call.
 * - ingot_output returns shapes and addresses of the results. Engines c and jit write directly into
 * memory that is aligned to its elements and fits the largest shape; other results are copied.
 * State carries over between calls. After INGOT_BAD_INPUT or INGOT_USAGE caused by the arrays, m
 * stays usable; only state may have changed. */
typedef struct IngotOutBuffer {
  void *data;
  uint64_t bytes;
} IngotOutBuffer;
typedef struct IngotCall {
  const char *engine; /* NULL: the first one */
  uint64_t seed;      /* seed of random operators */
  const IngotTensor *in;
  uint32_t nin;
  const IngotOutBuffer *out;
  uint32_t nout; /* 0, or the number of outputs */
} IngotCall;
IngotStatus ingot_call(Ingot *m, const IngotCall *o);
/* Prepares an engine, so that the first ingot_call is as fast as the others. Engine c compiles.
 * Optional: the first call does it otherwise. */
IngotStatus ingot_ready(Ingot *m, const char *engine);
/* Resets state to its initial values. Otherwise ingot_run continues with the state of the last run
 * of the same engine. */
IngotStatus ingot_reset(Ingot *m);

/* Perplexity of a text, given as token ids, under a language model. Texts longer than the context
 * length are split; the first token of each part is not scored. */
typedef struct IngotScoreText {
  const int32_t *ids;
  uint64_t n;
  const char *engine;
  void (*on_progress)(void *user, uint64_t done, uint64_t total); /* after a chunk; may be NULL */
  void *user;
} IngotScoreText;
typedef struct IngotPerplexity {
  double nll;        /* mean negative log-likelihood in nats */
  double perplexity; /* exp(nll) */
  uint64_t tokens;   /* number of scored tokens */
} IngotPerplexity;
IngotStatus ingot_perplexity(Ingot *m, const IngotScoreText *o, IngotPerplexity *out);
IngotTensor ingot_output(const Ingot *m,
                         uint32_t i); /* output i of the last run; valid until the next run */
/* Writes .npz, .npy (one output), or output_0.pb, ... into a directory. */
IngotStatus ingot_write_outputs(Ingot *m, const char *path);

/* Default tolerances. rtol by type: f64 1e-9, f32 1e-4, f16 1e-2, bf16 5e-2, floats of 8 bits and
 * less 0.25, others 0 (exact). atol is rtol times the largest finite expected magnitude without
 * outliers. An outlier is above 4096, and either reaches a quarter of the type's largest number or
 * exceeds 1 / rtol^2 times the lower quartile (as a power of 2) of the nonzero magnitudes.
 * INGOT_AUTO: in a model that quantizes activations, rtol of floats and of integers up to 8 bits is
 * at least 1/32, and these integers may differ by 1. INGOT_TIGHT: without this exception. */
#define INGOT_AUTO  (-1.0)
#define INGOT_TIGHT (-2.0)

/* Difference between outputs of the last run and expected outputs in a directory. */
typedef struct IngotDiff {
  const char *name;
  int ok;
  double max_abs, max_rel;
  uint64_t max_ulp;
  double cosine;     /* cosine similarity; 1 if both are zero, NaN if nothing is finite */
  double rtol, atol; /* tolerances used: an element may differ by atol + rtol * |expected| */
  const char *why;   /* "" or further findings: different shape, type or count; NaN in both */
} IngotDiff;
IngotStatus ingot_compare(Ingot *m, const char *dir, double rtol, double atol, IngotDiff *diff,
                          uint32_t max, uint32_t *n);

/* Compares two arrays of the same model. */
IngotStatus ingot_diff(Ingot *m, const IngotTensor *have, const IngotTensor *want, double rtol,
                       double atol, IngotDiff *diff);

/* Parts of a model, between import and passes. Values are numbered as the outputs of ingot_expose.
 * - ingot_expose turns every value computed at the top level into an output, in order.
 * - ingot_stored runs the passes that decide it, and lists the values that the program stores
 * unchanged. The others were fused or rewritten.
 * - ingot_expose_some exposes only the listed values.
 * - ingot_output_origin returns the node of an output as text.
 * - ingot_extract_subgraph keeps one value and the nodes at most depth steps before it (0: all).
 * Values that these nodes read become inputs, named like the outputs of ingot_expose. */
IngotStatus ingot_expose(Ingot *m);
IngotStatus ingot_stored(Ingot *m, const uint32_t **value, uint32_t *n);
IngotStatus ingot_expose_some(Ingot *m, const uint32_t *value, uint32_t n);
const char *ingot_output_origin(const Ingot *m, uint32_t i);
IngotStatus ingot_extract_subgraph(Ingot *m, uint32_t value, uint32_t depth);
/* Inputs of the last run. */
IngotTensor ingot_used_input(const Ingot *m, uint32_t i);
IngotStatus ingot_write_inputs(Ingot *m, const char *path); /* .npz */

/* Memory of one inference. Sizes are for the upper bounds of open dimensions. */
typedef struct IngotMemory {
  int planned;              /* 0: a size has no bound; only weights, buffers and groups are set */
  const char *why;          /* "" or why sizes are unknown */
  uint64_t arena;           /* bytes */
  uint64_t lower_bound;     /* peak of the live bytes: minimum of any arena */
  uint64_t naive;           /* total if no buffers shared memory */
  uint64_t weights;         /* bytes of constants */
  uint64_t stack;           /* upper bound for generated C; 0: without C */
  uint64_t inputs, outputs; /* arrays of the caller; 0: without C */
  uint64_t ram;             /* arena, stack, inputs and outputs; 0: without C */
  uint64_t code;            /* estimated code size of generated C; 0: without C */
  uint32_t buffers;
  uint32_t groups;  /* groups of nodes that are computed at once */
  uint32_t kernels; /* functions of generated C: distinct groups; 0: without C */
  uint32_t npeak;
  const IngotTensor *peak; /* buffers alive at the peak, largest first; aliases once */
} IngotMemory;
IngotStatus ingot_memory(Ingot *m, IngotMemory *out);

/* A report on the model: inputs, outputs, opset, operators, parameters, multiply-adds, memory,
 * unsupported nodes. */
IngotStatus ingot_inspect(Ingot *m, int json, const char **text, size_t *n);
/* HTML report of the model as one page: the graph of kernels with their nodes, memory over time,
 * sizes, warnings. Call it before anything else is made from the model. Fields may be NULL or 0.
 * The text is valid until ingot_free. */
typedef struct IngotValueDiff {
  const char *value, *node; /* as named by ingot_expose */
  const IngotDiff *diff;    /* NULL: the program does not store the value */
} IngotValueDiff;
typedef struct IngotReport {
  const IngotBuild *bench; /* measure every kernel of the compiled model, as ingot_bench does */
  double seconds;          /* measuring time with bench; 0: 1 */
  uint64_t seed;
  const char *engine;          /* engine whose values were compared with the reference */
  const IngotValueDiff *value; /* show errors of values */
  uint32_t nvalue;
  const IngotQuantized *quantized; /* show errors of layers */
} IngotReport;
IngotStatus ingot_report(Ingot *m, const IngotReport *o, const char **html, size_t *n);
/* Supported operators as text or JSON; valid until ingot_free. */
IngotStatus ingot_ops(Ingot *m, int json, const char **text, size_t *n);
/* Announces files to be written later. Fails now if a folder is not writable, and fails now or at
 * ingot_open if a file is also read. ingot_will_write_outputs is for ingot_write_outputs, whose
 * path may be a folder. No function replaces a file that m has read, announced or not. */
IngotStatus ingot_will_write(Ingot *m, const char *const *path, uint32_t n);
IngotStatus ingot_will_write_outputs(Ingot *m, const char *path);
/* 1 if the file exists and is a model, by its first bytes or, for ONNX, by its suffix. Such a file
 * should not be overwritten with something else. The text form of a graph does not count. */
int ingot_is_model_file(const char *path);
/* Writes a file atomically. */
IngotStatus ingot_write_file(Ingot *m, const char *path, const void *data, size_t n);
/* Writes several files; renames them into place only after all are complete. */
typedef struct IngotFile {
  const char *path;
  const void *data;
  size_t n;
} IngotFile;
IngotStatus ingot_write_files(Ingot *m, const IngotFile *file, uint32_t count);
/* Report on this machine: CPU, features, caches, measured peak throughput (about 1 s), compilers,
 * tools and libraries with the Debian packages of missing ones, and the native target. No model
 * need be open. */
IngotStatus ingot_doctor(Ingot *m, int json, const char **text, size_t *n);
/* Runs a program of the language (docs/language.md). No open model is needed. `write` receives the
 * printed text. engine runs tensor computations; NULL: vm. On ref and interp the program itself
 * runs without relying on the types that the checker infers. seed is for random numbers without an
 * own seed. */
typedef struct IngotScript {
  const char *engine;
  const char *march; /* as for ingot_set_target; NULL: scalar, bit-identical on all machines */
  uint64_t seed;
  void (*write)(void *user, const char *text, size_t n);
  void *user;
  const volatile int
      *stop;    /* nonzero, set by a thread or signal handler, ends the program; may be NULL */
  int no_files; /* refuse file access; modules, which are source code, are still read */
} IngotScript;
IngotStatus ingot_script_run(Ingot *m, const char *path, const IngotScript *o);
/* Runs the program, then opens one of its functions as the model, with the program's tensors as
 * constants. function NULL: the only one whose parameters are all tensors with shapes. Names in
 * these shapes take the values set before with ingot_set_dim and ingot_set_shape. */
IngotStatus ingot_script_open(Ingot *m, const char *path, const char *function,
                              const IngotScript *o);
/* Compiles the whole program to a native one that prints the same, or to C if the output is OUT.c.
 * Shapes that depend on data are refused (INGOT_UNSUPPORTED) with their location. The program is
 * traced once, without computing tensors or writing files. Only output, cc, optimize, sanitize,
 * no_files and on_command of o are used. */
IngotStatus ingot_script_build(Ingot *m, const char *path, const IngotBuild *o);
/* Runs a program line by line. `write` receives printed text, values and errors. ingot_repl_line
 * returns 1 if the text is incomplete; pass it again with the next line appended. ingot_repl_new
 * returns NULL if out of memory. Call ingot_repl_free before ingot_free. */
typedef struct IngotRepl IngotRepl;
IngotRepl *ingot_repl_new(Ingot *m, const IngotScript *o);
int ingot_repl_line(IngotRepl *r, const char *text);
void ingot_repl_free(IngotRepl *r);
IngotStatus ingot_script_check(Ingot *m, const char *path);
IngotStatus ingot_script_format(Ingot *m, const char *path, const char **text, size_t *n);
/* The register code of all functions and files of a program. Runs nothing. */
IngotStatus ingot_script_dump(Ingot *m, const char *path, const char **text, size_t *n);

/* Converts the first character of a text to its form in a JSON string. UTF-8 is kept; invalid bytes
 * become \xHH. Returns the number of bytes consumed; 0 at the end. */
enum { INGOT_JSON_CHAR = 8 };
size_t ingot_json_char(const char *text, char to[INGOT_JSON_CHAR]);

/* Names and descriptions of all passes, one per line. */
IngotStatus ingot_pass_list(Ingot *m, const char **text, size_t *n);

#ifdef __cplusplus
}
#endif
#endif
