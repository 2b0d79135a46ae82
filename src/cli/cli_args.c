/* cli_args.c: options.
 *
 * In: argv after the verb. Out: Args. One table lists every option with its help, under headings;
 * the row of a verb names the options it takes. A second table has help texts that differ for a
 * verb, a third one has aliases. A value is the next word or follows '='. --help lists the options
 * in the usage line of the verb, --help-all lists all.
 */
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum OptKind {
  OPT_head,
  OPT_flag,
  OPT_may,
  OPT_text,
  OPT_real,
  OPT_whole,
  OPT_list
} OptKind;

typedef struct Opt {
  const char *name, *brief; /* brief: short spelling, or NULL */
  OptKind kind;
  size_t at, count; /* offset in Args; count: offset of the count of a list, size of a number */

  int max_count;               /* maximum elements of a list */
  const char *value, *text;    /* text NULL: not in the help */
  unsigned long long min, max; /* range of a whole number */
  const char *verb;            /* the only verb with this row; NULL: all */
} Opt;

#define GENERAL "general" /* last heading; --help shows its options */
/* Heading of the options that follow. */
#define HEAD(text)                                                                                 \
  { text, NULL, OPT_head, 0, 0, 0, NULL, NULL, 0, 0, NULL }
#define FLAG(name, field, text)                                                                    \
  { name, NULL, OPT_flag, offsetof(Args, field), 0, 0, NULL, text, 0, 0, NULL }
#define TEXT(name, brief, field, value, text)                                                      \
  { name, brief, OPT_text, offsetof(Args, field), 0, 0, value, text, 0, 0, NULL }
#define REAL(name, field, text)                                                                    \
  { name, NULL, OPT_real, offsetof(Args, field), 0, 0, "X", text, 0, 0, NULL }
#define WHOLE(name, field, value, min, max, text)                                                  \
  {                                                                                                \
    name, NULL, OPT_whole, offsetof(Args, field), sizeof((Args *)0)->field, 0, value, text, min,   \
        max, NULL                                                                                  \
  }
#define LIST(name, brief, field, value, text)                                                      \
  {                                                                                                \
    name, brief, OPT_list, offsetof(Args, field), offsetof(Args, n##field),                        \
        (int)(sizeof((Args *)0)->field / sizeof(char *)), value, text, 0, 0, NULL                  \
  }

static const Opt opts[] = {
    HEAD("model and shapes"),
    TEXT("model-path", "m", model, "PATH", "model file; the option name may be omitted"),
    TEXT("function", NULL, function, "NAME",
         "function of a .ch program to compile; needed if several qualify"),
    FLAG("files", files, "let .ch programs read and write files (default for run, repl and build)"),
    FLAG("no-files", no_files,
         "refuse .ch programs that read or write files (default for other commands)"),
    LIST(
        "input-dim", "d", dim, "SPEC",
        "set the size of a dimension: batch=1 (or batch:1) in all inputs, x:0=1 for dimension 0 of "
        "the input named x; repeatable or comma-separated"),
    LIST("shapes", NULL, shape, "SPEC", "set input shapes: x:1x3x224x224; repeatable"),
    LIST("max-shapes", NULL, max_shape, "SPEC",
         "bound dimensions that stay symbolic: x:8x3x224x224, batch=8 or x:0=8"),
    LIST("freeze", NULL, freeze, "SPEC",
         "turn an input into a constant: sr=16000, x=@x.npy; repeatable"),
    LIST("state", NULL, state, "IN=OUT",
         "feed output OUT back as input IN, kept in the arena; auto: match names; repeatable"),
    TEXT("grad", NULL, grad, "Y[:X,W]",
         "add outputs X.grad, W.grad: gradients of sum(Y) with respect to X, W (default: all "
         "inputs)"),
    TEXT("train", NULL, train, "SPEC",
         "compile a training step: loss=cross_entropy,optimizer=adam (see docs/training.md)"),
    HEAD("inputs and outputs"),
    LIST("input", "i", input, "SPEC",
         "set an input: x=@x.npy, x=0.5 (fill), x=[1,2,3], x=ones, zeros or rand; repeatable"),
    TEXT("inputs", NULL, inputs, "FILE.npz", "read inputs by name from an archive"),
    TEXT("data", NULL, data, "DIR", "read inputs from a directory: input_0.pb, input_1.pb, ..."),
    TEXT("output", "o", output, "PATH",
         "write FILE.npz, FILE.npy (one output), or output_0.pb, ... into a folder"),
    TEXT("text", NULL, text, "TEXT", "text to tokenize; -: standard input"),
    TEXT("ids", NULL, ids, "IDS", "token ids, separated by blanks or commas"),
    FLAG("special", special, "convert special tokens from and to their text"),
    FLAG("bare", bare, "omit the tokens that the model expects around a text (BOS, EOS)"),
    HEAD("running"),
    TEXT("engine", "e", engine, "NAME", "engine (default vm):"),
    WHOLE("seed", seed, "N", 0, ULLONG_MAX, "seed of generated inputs and random operators"),
    WHOLE("steps", steps, "N", 1, 1000000000,
          "run N times in sequence, with --state; generated inputs differ (default 1)"),
    WHOLE("max-steps", max_steps, "N", 1, ULLONG_MAX,
          "engine vm: stop after N backward jumps and panel iterations (default of .igb: 2^40)"),
    TEXT("library", NULL, library, "FILE.so",
         "engine c: call NAME_call of this library instead of compiling"),
    TEXT("python", NULL, python, "PATH",
         "Python with onnxruntime (default python3); if given, its absence is an error"),
    {"keep-code", NULL, OPT_may, offsetof(Args, keep_code), 0, 0, "[=DIR]",
     "engines c, jit and cuda: cache compiled code in DIR (default ~/.cache/ingot)", 0, 0, NULL},
    REAL("seconds", build.seconds, "measure each engine for X seconds (default 1)"),
    FLAG("per-kernel", per_kernel,
         "engine c: time, multiply-adds and bytes of every kernel, compared with the machine's "
         "peak"),
    REAL("rtol", rtol, "relative tolerance (default by type; f32: 1e-4)"),
    REAL("atol", atol, "absolute tolerance (default: rtol times the largest magnitude)"),
    FLAG("per-node", per_node, "compare every graph value that the optimized program stores"),
    FLAG("bisect", bisect, "find the first node that differs; write a small .ing reproducer"),
    HEAD("generation"),
    TEXT("prompt", "p", prompt, "TEXT", "answer this prompt and exit (default: chat)"),
    TEXT("system", NULL, system, "TEXT", "system prompt"),
    FLAG("raw", raw, "continue the prompt as plain text, without the chat template"),
    WHOLE("max-tokens", max_tokens, "N", 1, 1000000000,
          "stop an answer after N tokens; -1: no limit (default: after 2048, or when it repeats "
          "itself)"),
    {"stop", NULL, OPT_text, offsetof(Args, stop), 0, 0, "TEXT",
     "stop an answer before this text; repeatable", 0, 0, "play"},
    TEXT("think", NULL, think, "show|hide|off",
         "reasoning of the model: show (default; dim on a terminal), hide, or off: ask the chat "
         "template for none"),
    TEXT("file", "f", file, "FILE", "read the prompt from FILE"),
    TEXT("temperature", NULL, temperature, "X",
         "sampling temperature; 0: greedy decoding (default: that of the model file, else 0.7)"),
    TEXT("top-k", NULL, top_k, "N",
         "sample from the N most probable tokens; 0: all (default: that of the model file, else "
         "40)"),
    TEXT("top-p", NULL, top_p, "X",
         "nucleus sampling: smallest set of tokens with total probability X (default: that of the "
         "model file, else 0.9)"),
    TEXT("min-p", NULL, min_p, "X",
         "drop tokens below X times the highest probability (default: that of the model file, else "
         "0)"),
    TEXT(
        "repeat-penalty", NULL, repeat_penalty, "X",
        "divide the logits of tokens already in the context by X (default: that of the model file, "
        "else 1)"),
    TEXT("frequency-penalty", NULL, frequency_penalty, "X",
         "subtract X from a logit for every occurrence of its token (default 0)"),
    TEXT("presence-penalty", NULL, presence_penalty, "X",
         "subtract X from the logits of tokens already in the context (default 0)"),
    TEXT("date", NULL, date, "YYYY-MM-DD",
         "date passed to the chat template (default: today; 2026-01-01 in generated C and with "
         "--bake-prompt)"),
    FLAG("conversation", conversation, NULL),
    FLAG("single-turn", single_turn, NULL),
    HEAD("server"),
    TEXT("host", NULL, host, "ADDRESS",
         "address to listen on (default 127.0.0.1); any other needs an API key"),
    WHOLE("port", port, "N", 0, 65535, "port to listen on; 0: any free one (default 8080)"),
    TEXT("api-key", NULL, api_key, "KEY", "key that requests must have"),
    TEXT("api-key-file", NULL, api_key_file, "FILE",
         "read the API key from the first line of FILE"),
    WHOLE("slots", slots, "N", 1, 16, "sequences that decode at once (default 4)"),
    WHOLE("queue", queue, "N", 1, 1000000,
          "sequences that may wait; further requests get status 429 (default 64)"),
    WHOLE("timeout", timeout, "S", 1, 86400, "seconds to receive a request (default 30)"),
    HEAD("language models"),
    WHOLE("context", context, "N", 1, 1ull << 40,
          "context length in tokens (default: as trained, at most 4096)"),
    WHOLE("chunk", chunk, "N", 1, 1ull << 20,
          "tokens per prefill run (default 128; play and bench 256)"),
    TEXT("cache", NULL, cache, "TYPE",
         "KV cache type: f16 (default; f32 with --precise), f32 or int8"),
    TEXT("activation-type", NULL, activations, "TYPE",
         "multiply quantized weights by activations of this type: int8, int16 or f32 (default: "
         "int16 up to 500M parameters, else int8)"),
    FLAG("every-token", every_token, "return the logits of every token, not only of the last"),
    TEXT("bake-prompt", NULL, bake_prompt, "FILE",
         "system prompt whose KV cache becomes part of the code"),
    HEAD("target"),
    TEXT("march", NULL, march, "CPU",
         "instruction set: ${targets}, native, a comma-separated list, or multi: ${multi} selected "
         "at run time"),
    WHOLE("threads", threads, "N", 1, 64,
          "threads per inference of generated C (default 1); results do not depend on N"),
    TEXT("threads-api", NULL, threads_api, "API", "pthread (default) or openmp"),
    WHOLE("threads-grain", threads_grain, "NS", 1, 1000000000,
          "minimum estimated work per thread in ns (default 4000)"),
    TEXT("optimize-for", NULL, optimize_for, "WHAT",
         "time (default), ram (arena, stack and caller's arrays) or size (code and weights)"),
    TEXT("ram", NULL, ram, "BYTES",
         "limit arena + stack + inputs + outputs, e.g. 256K; emit the fastest code that fits"),
    FLAG("precise", precise,
         "compute exp, tanh, ... in double; no Winograd F(4x4), no int8 activations in language "
         "models"),
    TEXT("precision", NULL, precision, "P",
         "products on a GPU: f32 (default, exact), tf32, f16 or bf16; sums are f32"),
    TEXT("backend", NULL, build.backend, "llvm",
         "emit OUT.o, OUT.a or OUT.so with LLVM instead of C"),
    TEXT("triple", NULL, build.triple, "T[,CPU[,FEATURES]]",
         "LLVM target: wasm32, thumbv7em-none-eabihf,cortex-m4 (with --backend llvm)"),
    TEXT("project", NULL, project, "KIND",
         "cmake, make, zephyr, arduino, platformio, esp-idf or rust"),
    TEXT("target", NULL, build.target, "NAME",
         "wasm: build WebAssembly, implied by -o OUT.wasm; cuda[:90a,89]: write OUT.cu, OUT.h and "
         "OUT.bin for an NVIDIA GPU"),
    HEAD("C compiler"),
    TEXT("cc", NULL, build.cc, "CC", "C compiler (default $CC, else cc)"),
    TEXT("optimize", "O", build.optimize, "N", "optimization level: 0, 1, 2 (default), 3 or s"),
    TEXT("sanitize", NULL, build.sanitize, "LIST", "pass -fsanitize=LIST to the C compiler"),
    TEXT("preset", NULL, build.preset, "NAME",
         "set several options at once: balanced (default), max, dev or size; --presets lists the "
         "settings"),
    FLAG("presets", presets, "list the presets; needs no model"),
    FLAG("lto", build.lto,
         "link-time optimization; for OUT.o and OUT.a: compile as one translation unit"),
    {"pgo", NULL, OPT_may, offsetof(Args, build.pgo), 0, 0, "[=WORKLOAD]",
     "profile-guided optimization; WORKLOAD: inputs to profile with (FILE.npz or a folder of "
     ".npz), "
     "or prompts (.json, or one per line); default: generated inputs",
     0, 0, NULL},
    FLAG("bolt", build.bolt, "optimize the program's layout with llvm-bolt and a run-time profile"),
    FLAG("fast-math", build.fast_math,
         "allow reassociation of floating-point sums; report the resulting error"),
    {"tune", NULL, OPT_may, offsetof(Args, tune), 0, 0, "[=FILE]",
     "benchmark tile sizes; reuse results in FILE (default ~/.cache/ingot/tune)", 0, 0, NULL},
    TEXT("tuned", NULL, tuned, "FILE", "use tile sizes that --tune stored in FILE"),
    HEAD("generated C"),
    TEXT("name", "f", name, "NAME", "prefix of all C names (default: from the output file)"),
    TEXT("weights", NULL, build.c.weights, "HOW",
         "literal: C arrays; text: string literals; inline: literal, or text when large; file: "
         "NAME.bin (default above 8 MiB); pointer: an argument of the run function"),
    FLAG("cpp", cpp, "also write NAME.hpp, a C++ class that owns its arena"),
    WHOLE("split", build.c.split, "N", 1, 64,
          "split kernels into N compilation units: -DNAME_PART=0 ... N-1"),
    FLAG("caller", build.c.caller,
         "also emit NAME_call and NAME_facts, needed by `ingot run --library` and `ingot verify "
         "--library`"),
    FLAG("profile", build.c.profile, "call a user callback after every kernel (see the header)"),
    FLAG("debug", build.c.debug,
         "give every tensor its own array, so that sanitizers catch out-of-bounds accesses; not "
         "re-entrant"),
    FLAG("selftest", build.c.selftest, "always emit NAME_selftest, however long it runs"),
    FLAG("no-selftest", no_selftest, "omit NAME_selftest"),
    {"emit", NULL, OPT_flag, offsetof(Args, emit), 0, 0, NULL, "write the interpreter (required)",
     0, 0, "vm"},
    HEAD("passes"),
    TEXT("start", NULL, start, "PASS", "first pass to run"),
    {"stop", NULL, OPT_text, offsetof(Args, stop), 0, 0, "PASS",
     "last pass to run; none: run no pass", 0, 0, "opt"},
    TEXT("skip", NULL, skip, "P,Q", "passes to skip"),
    TEXT("dump", NULL, dump, "P,Q",
         "print the IR after these passes, or all; bytecode: code of engine vm; llvm: LLVM IR"),
    TEXT("constants", NULL, constants, "HOW",
         "all, or brief: shorten constants of more than 16 elements (default, except with -o)"),
    FLAG("explain", explain, "explain fusion decisions and the choice of every kernel"),
    FLAG("choices", choices, "list the tile sizes that --tune would try"),
    FLAG("check", check, "verify the IR after every pass"),
    FLAG("time", time, "print the time of every pass to stderr"),
    FLAG("weights-file", weights_file, "store large constants in OUTPUT.bin next to the text"),
    HEAD("quantization"),
    TEXT("type", NULL, quantize.type, "TYPE",
         "weight type of a language model, named as in llama.cpp: Q4_K_M, Q8_0, F16 ..."),
    TEXT("method", NULL, quantize.method, "HOW",
         "static (default; int8, calibrated with --data) or dynamic; of weights alone: weights8, "
         "weights4, f16 or bf16"),
    TEXT("calibrate", NULL, quantize.calibrate, "HOW",
         "minmax, average, percentile, entropy or mse (default: best of minmax, mse, percentile)"),
    TEXT("holdout", NULL, quantize.holdout, "FILE.npz",
         "examples to measure the error on (default: last fifth of --data, not calibrated with)"),
    TEXT("activations", NULL, quantize.activations, "TYPE", "activation type: u8 (default) or s8"),
    FLAG("symmetric", quantize.symmetric,
         "symmetric activations: zero point in the middle of the range"),
    TEXT("granularity", NULL, quantize.granularity, "WHAT",
         "weight scales per channel (default), tensor, or group (of --block, weight-only)"),
    WHOLE("block", quantize.block, "N", 16, 4096, "weights per scale, a power of 2 (default 32)"),
    FLAG("bias-correction", quantize.bias_correction,
         "correct biases by the mean error of the weights"),
    FLAG("equalize", quantize.equalize, "equalize channel ranges across layers first"),
    LIST("exclude", NULL, exclude, "NODE",
         "do not quantize NODE; * matches any text, ? one byte; repeatable"),
    TEXT("budget", NULL, quantize.budget, "X",
         "exclude the most costly layers until outputs reach X dB SQNR or, with --label, lose at "
         "most X points of accuracy"),
    TEXT("label", NULL, label, "NAME", "array of --data with the class indices"),
    HEAD("training"),
    FLAG("in-place", training.in_place,
         "write the trained model back to MODEL, instead of --output"),
    TEXT("validate", NULL, training.validate, "FILE.npz", "examples to evaluate after every epoch"),
    TEXT("loss", NULL, training.loss, "NAME",
         "cross_entropy (default), mse, mae, bce (of probabilities) or bce_logits"),
    TEXT("optimizer", NULL, training.optimizer, "NAME",
         "sgd, momentum, adam (default), adamw, rmsprop, adagrad, lion or lamb"),
    REAL("lr", training.rate, "learning rate (default 0.001)"),
    TEXT("schedule", NULL, training.schedule, "HOW",
         "step[:N[,K]]: multiply by K (0.1) every N epochs; exp[:K]: every epoch; cosine[:LOW] "
         "(default: constant)"),
    REAL("clip", training.clip, "clip the global gradient norm to X"),
    WHOLE("batch", training.batch, "N", 1, 1ull << 24, "batch size (default 32)"),
    WHOLE("epochs", training.epochs, "N", 1, 1000000000,
          "passes over the training data (default 1)"),
    WHOLE("patience", training.patience, "N", 1, 1000000000,
          "stop after N epochs without a lower validation loss; write the best epoch's weights"),
    WHOLE("accumulate", training.accumulate, "N", 1, 1ull << 20,
          "gradient accumulation steps (default: number of MPI processes)"),
    TEXT("checkpoint", NULL, training.checkpoint, "FILE",
         "checkpoint to resume from (default: OUTPUT.checkpoint)"),
    REAL("checkpoint-every", training.checkpoint_every,
         "seconds between checkpoints (default 5; 0: after every step)"),
    {"emit", NULL, OPT_text, offsetof(Args, emit_c), 0, 0, "FILE.c",
     "write the training loop as C: NAME_train, NAME_run, NAME_save, NAME_load", 0, 0, "train"},
    FLAG("recompute", training.recompute,
         "with --emit: recompute activations in the backward pass; report the RAM of both"),
    HEAD(GENERAL),
    TEXT("html", NULL, html, "FILE",
         "write an HTML report: kernel graph, memory over time, sizes, warnings"),
    FLAG("bench", bench, "with --html: compile the model and measure every kernel"),
    FLAG("clean", clean, "delete all cached programs and report their size"),
    FLAG("list", list, "list files: kind, size, time since the last use (default)"),
    FLAG("json", json, "print JSON"),
    FLAG("quiet", quiet, "suppress warnings"),
    FLAG("verbose", verbose, "report every step and its time"),
    FLAG("help", help, "show the common options"),
    FLAG("help-all", help_all, "show all options"),
};
enum { NOPTS = sizeof opts / sizeof *opts };

/* Help of an option for one verb, if it differs from the row above. */
static const struct {
  const char *verb, *option, *value, *text;
} special[] = {
    {"compile", "output", "FILE.c",
     "C file, with its header next to it, or FILE.igb: bytecode (default: C to stdout)"},
    {"build", "output", "PATH",
     "file to write: object OUT.o or library OUT.a or OUT.so, each with a header, OUT.wasm with a "
     "JavaScript module; any other name: a program; for a .ch file, the whole program or, as "
     "OUT.c, "
     "its C, unless --function (see --help-all) names a function"},
    {"run", "python", "PATH", "Python with onnxruntime, for that engine (default python3)"},
    {"run", "name", "NAME", "prefix of the names in --library (default: model)"},
    {"verify", "name", "NAME", "prefix of the names in --library (default: model)"},
    {"verify", "output", "FILE.ing",
     "reproducer of --bisect (default bisect.ing); its inputs go to FILE.npz"},
    {"verify", "data", "DIR",
     "read input_0.pb, ... and expected output_0.pb, ... from DIR or DIR/test_data_set_0"},
    {"verify", "engine", "NAME", "compare only:"},
    {"bench", "engine", "NAME", "measure only:"},
    {"build", "march", "CPU",
     "instruction set: ${targets}, native (default), multi (several, selected at run time), or a "
     "value of the C compiler's -march= with optional features: x86-64-v3,+avx512f"},
    {"build", "seconds", "X",
     "measure the effect of each of --lto, --fast-math, --pgo and --bolt for X seconds (default "
     "1)"},
    {"build", "clean", NULL, "delete cached profiles and programs; needs no model"},
    {"build", "verbose", NULL, "print every command and the settings of the preset"},
    {"build", "json", NULL,
     "print JSON: output file and memory sizes; after a build with --lto, --fast-math, --pgo or "
     "--bolt (see --help-all), their measured speed-ups instead"},
    {"build", "optimize", "N", "-O level of the C compiler: 0, 1, 2 (default), 3 or s"},
    {"build", "date", "YYYY-MM-DD", "date passed to the chat template (default 2026-01-01)"},
    {"build", "input", "SPEC",
     "set an input for measurements and profiles: x=@x.npy, x=0.5 (fill), x=[1,2,3], x=ones, zeros "
     "or rand; repeatable"},
    {"build", "inputs", "FILE.npz", "read inputs for measurements and profiles from an archive"},
    {"build", "weights", "HOW",
     "literal: C arrays; text: string literals, which compile faster; inline: literal, or text "
     "when large; file: included by the assembler (default above 4 MiB); pointer: an argument of "
     "the run function"},
    {"bench", "march", "CPU", "${targets}, native (default), multi, or as for -march="},
    {"run", "text", "TEXT", "text to tokenize as the input ids; -: standard input"},
    {"perplexity", "text", "FILE", "text to score; -: standard input"},
    {"perplexity", "engine", "NAME", "default c:"},
    {"perplexity", "march", "CPU", "instruction set (default native)"},
    {"perplexity", "threads", "N", "number of threads (default: number of cores, at most 16)"},
    {"play", "seed", "N", "seed of the sampler (default 0)"},
    {"play", "threads", "N", "number of threads (default: number of cores, at most 16)"},
    {"play", "march", "CPU", "instruction set (default native)"},
    {"play", "context", "N",
     "context length in tokens (default: as trained, at most 4096); each length is compiled once"},
    {"play", "engine", "NAME", "default c, without a C compiler vm:"},
    {"serve", "engine", "NAME", "default c, without a C compiler vm:"},
    {"serve", "chunk", "N", "tokens of prompts per run of the model (default 64)"},
    {"serve", "name", "NAME", "name of the model in answers (default: from the file)"},
    {"serve", "threads", "N", "number of threads (default: number of cores, at most 16)"},
    {"serve", "march", "CPU", "instruction set (default native)"},
    {"quantize", "data", "FILE.npz|DIR",
     "calibration examples: arrays named like the inputs, or a folder with a file for each"},
    {"quantize", "output", "FILE", "quantized model to write"},
    {"train", "data", "FILE.npz",
     "examples along the first axis of arrays named like the inputs, and their labels"},
    {"train", "label", "NAME", "array with the labels (default: label)"},
    {"train", "output", "FILE.onnx", "trained model to write"},
    {"train", "freeze", "WEIGHT",
     "do not train WEIGHT; * matches any text, ? one byte; repeatable"},
    {"train", "seed", "N", "seed of shuffling and dropout"},
    {"train", "engine", "NAME", "default c, else jit or vm:"},
    {"train", "train", "SPEC", "more settings: decay=0.01,beta1=0.8,axis=2,output=NAME"},
    {"train", "march", "CPU", "instruction set of the training step (default native)"},
    {"verify", "html", "FILE", "write an HTML report: error of every stored value"},
    {"quantize", "html", "FILE", "write an HTML report: error of every layer"},
    {"inspect", "seconds", "X", "measure for X seconds with --bench (default 1)"},
    {"vm", "output", "FILE.c", "C file to write, with its header next to it"},
    {"export", "output", "DIR",
     "folder to write; replaces only files that an earlier export wrote"},
    {"export", "weights", "HOW",
     "inline or, with --project cmake or make, file (default above 8 MiB)"},
    {"export", "name", "NAME", "prefix of all C names (default: from the model file)"},
    {"fmt", "output", "FILE", "file to write (default: stdout)"},
    {"opt", "output", "FILE",
     "file to write (default: stdout); OUT.onnx: the graph as an ONNX model, after canon unless "
     "--stop is given"},
};

/* Aliases, not listed in the help. A row applies to verbs that take the option; verb: only this
 * one. */
static const struct {
  const char *option, *verb, *words;
  int is_old; /* old name of the option: print a note with the new one */
} aliases[] = {
    {"backend", NULL, "--via", 1},
    {"project", NULL, "--for", 1},
    {"granularity", NULL, "--per", 1},
    {"type", NULL, "--to", 1},
    {"weights-file", NULL, "--side", 1},
    {"fast-math", NULL, "--relaxed", 1},
    {"exclude", NULL, "--keep", 1},
    {"accumulate", NULL, "--shares", 1},
    {"name", NULL, "--func-name", 0},
    {"help", NULL, "-h", 0},
    {"quiet", NULL, "-q", 0},
    {"verbose", NULL, "-v", 0},
    /* llama.cpp */
    {"model-path", NULL, "--model", 0},
    {"max-tokens", NULL, "-n --predict --n-predict --max-new-tokens", 0},
    {"context", NULL, "-c --ctx-size", 0},
    {"chunk", "perplexity", "-b --batch-size", 0},
    {"temperature", NULL, "--temp", 0},
    {"seed", NULL, "-s", 0},
    {"text", "perplexity", "-f --file", 0},
    {"text", "tokenize", "-p --prompt", 0},
    {"system", NULL, "-sys --system-prompt", 0},
    {"single-turn", NULL, "-st", 0},
    {"conversation", NULL, "-cnv", 0},
    {"raw", NULL, "-no-cnv --no-conversation", 0},
    {"cache", NULL, "-ctk --cache-type-k", 0},
    /* llama.cpp, ONNX Runtime, TensorFlow Lite, polygraphy, onnxsim, trtexec, PyTorch */
    {"threads", NULL, "-t -x --num-threads --intra-op-num-threads", 0},
    {"seconds", "bench", "--duration", 0},
    {"shapes", NULL, "--input-shape --input-shapes --overwrite-input-shape --override-input-shapes",
     0},
    {"inputs", NULL, "--load-inputs", 0},
    {"output", "run", "--save-outputs", 0},
    {"per-kernel", NULL, "--per-layer", 0},
    {"lr", NULL, "--learning-rate", 0},
    {"accumulate", NULL, "--gradient-accumulation-steps", 0},
    {"batch", "train", "--batch-size", 0},
};
enum { NALIASES = sizeof aliases / sizeof *aliases };

/* Possible values of options, for completion. */
static const struct {
  const char *option, *words;
} words[] = {
    {"constants", "all brief"},
    {"march", "${targets} native multi"},
    {"weights", "inline literal text file pointer"},
    {"preset", "balanced max dev size"},
    {"optimize", "0 1 2 3 s"},
    {"optimize-for", "time ram size"},
    {"threads-api", "pthread openmp"},
    {"backend", "llvm"},
    {"cache", "f16 f32 int8"},
    {"activation-type", "int8 int16 f32"},
    {"method", "static dynamic weights8 weights4 f16 bf16"},
    {"calibrate", "minmax average percentile entropy mse"},
    {"activations", "u8 s8"},
    {"granularity", "channel tensor group"},
    {"state", "auto"},
    {"project", "cmake make zephyr arduino platformio esp-idf rust"},
};

const char *engine_with(unsigned flags) {
  const IngotEngine *e;
  for (uint32_t i = 0; (e = ingot_engine(i)) && !(e->flags & flags);) i++;
  return e ? e->name : "";
}

void warn_unused_threads(const Args *a, const char *engine) {
  const IngotEngine *e = engine ? ingot_find_engine(engine) : NULL;
  char text[128];
  if (a->threads < 2 || a->quiet || !e || e->flags & INGOT_NATIVE) return;
  snprintf(text, sizeof text, "--threads %llu: engine %s ignores it; --engine c uses it",
           a->threads, e->name);
  watch_line("warning: ", text);
}

int takes_engine(const Verb *v, const IngotEngine *e) {
  unsigned chats = e->flags & (INGOT_NATIVE | INGOT_DEVICE | INGOT_PEER | INGOT_HOST);
  if (!is_one_of(v->options, "engine")) return 0;
  if (!strcmp(v->name, "bench")) return (e->flags & INGOT_TIMED) != 0;
  if (!strcmp(v->name, "demo")) return !(e->flags & INGOT_FILE);
  if (!strcmp(v->name, "serve")) return !strcmp(e->name, "vm") || e->flags & INGOT_NATIVE;
  if (!strcmp(v->name, "play")) return chats && chats != INGOT_HOST && chats != INGOT_PEER;
  if (!strcmp(v->name, "train"))
    return e->flags & INGOT_TIMED && !(e->flags & (INGOT_FILE | INGOT_GRAPH | INGOT_DEVICE));
  return 1;
}

void args_engines(const Verb *v, FILE *to) {
  const IngotEngine *e;
  for (uint32_t i = 0; (e = ingot_engine(i)); i++)
    if (takes_engine(v, e)) fprintf(to, " %s", e->name);
}

static int lists(const char *names, const char *name) {
  return is_one_of(names, name) || is_one_of("help help-all quiet verbose", name);
}

static int takes(const Verb *v, const Opt *o) {
  return o->kind != OPT_head && lists(v->options, o->name) &&
         (!o->verb || !strcmp(o->verb, v->name));
}

static const Opt *find_name(const Verb *v, const char *name) {
  for (int i = 0; i < NOPTS; i++)
    if (!strcmp(opts[i].name, name) && takes(v, &opts[i])) return &opts[i];
  return NULL;
}

/* Option named by a word with its dashes; *alias: its row in aliases, or -1. */
static const Opt *find(const Verb *v, const char *word, int *alias) {
  const Opt *o = !strncmp(word, "--", 2) ? find_name(v, word + 2) : NULL;
  *alias = -1;
  for (int i = 0; !o && word[1] != '-' && !word[2] && i < NOPTS; i++)
    if (opts[i].brief && *opts[i].brief == word[1] && takes(v, &opts[i])) o = &opts[i];
  for (int i = 0; !o && i < NALIASES; i++)
    if ((!aliases[i].verb || !strcmp(aliases[i].verb, v->name)) &&
        is_one_of(aliases[i].words, word))
      o = find_name(v, aliases[ *alias = i].option);
  return o;
}

/* Splits --name=value, -n=value or -nvalue. The name keeps its dashes; '_' becomes '-'. */
static const Opt *split_word(const Verb *v, const char *w, char name[64], const char **value,
                             int *alias) {
  size_t n = strcspn(w, "=");
  snprintf(name, 64, "%.*s", (int)n, w);
  for (char *s = name; *s && w[1] == '-'; s++)
    if (*s == '_') *s = '-';
  *value = w[n] ? w + n + 1 : NULL;
  const Opt *o = find(v, name, alias);
  if (o || w[1] == '-' || n == 2 || is_one_of("ngl fa", name + 1)) return o; /* not -n gl, -f a */
  char brief[3] = {'-', w[1], 0};
  o = find(v, brief, alias);
  if (o) *value = w + 2;
  return o;
}

static int bad(const Verb *v, const char *word, const char *why) {
  fprintf(stderr, "ingot %s: %s: %s\ntry 'ingot %s --help'\n", v->name, word, why, v->name);
  return INGOT_USAGE;
}

static int bad_value(const Verb *v, const Opt *o, const char *value, const char *expected) {
  fprintf(stderr, "ingot %s: --%s %s: expected %s\ntry 'ingot %s --help'\n", v->name, o->name,
          value, expected, v->name);
  return INGOT_USAGE;
}

/* Appends up to 3 option names that start with the word, or that are a prefix of it. */
static void near_prefix(const Verb *v, const char *word, char *why, size_t room) {
  size_t n = strlen(word), used = strlen(why);
  int count = 0;
  for (int i = 0; i < NOPTS && count < 3 && n > 1; i++) {
    size_t k = strlen(opts[i].name);
    if (!takes(v, &opts[i]) || !opts[i].text || k < 3) continue;
    if (strncmp(opts[i].name, word, n < k ? n : k) != 0 || (n > k && word[k] != '-')) continue;
    used += (size_t)snprintf(why + used, room - used, "%s--%s", count++ ? ", " : "; did you mean ",
                             opts[i].name);
  }
  if (count) snprintf(why + used, room - used, "?");
}

/* Reports an unknown option with a suggestion. */
static int no_option(const Verb *v, const char *word, const char *name, const char *value) {
  const char *names[NOPTS], *near = NULL, *bare = name + strspn(name, "-");
  char why[512] = "no such option";
  size_t count = 0, used = strlen(why);
  int alias, first = 1;
  if (suggest_option(v, bare, value, why + used, sizeof why - used)) return bad(v, word, why);
  for (int i = 0; i < NOPTS; i++)
    if (takes(v, &opts[i]) && opts[i].text) names[count++] = opts[i].name;
  if (name[1] == '-') near = ingot_nearest(bare, names, count);
  if (near) snprintf(why + used, sizeof why - used, "; did you mean --%s?", near);
  for (int i = 0; !near && i < verb_count && used < sizeof why - 16; i++) {
    if (!find(&verb_table[i], name, &alias)) continue;
    used += (size_t)snprintf(why + used, sizeof why - used, "%s%s",
                             first ? "; it is an option of: " : ", ", verb_table[i].name);
    first = 0;
  }
  if (!near && first) near_prefix(v, bare, why, sizeof why);
  return bad(v, word, why);
}

/* Reports an unexpected word, and the option that takes such a word. */
static int no_place(const Verb *v, const Args *a, const char *word) {
  const char *dot = a->model ? strrchr(word, '.') : NULL, *help = NULL;
  char why[512];
  if (a->model && strchr(word, '=') && lists(v->options, "input"))
    help = "use -d for dimensions, --input for values of inputs";
  else if (dot && !strcmp(dot, ".npz") && lists(v->options, "inputs"))
    help = "use --inputs for named arrays";
  else if (dot && !strcmp(dot, ".npy") && lists(v->options, "input"))
    help = "use --input NAME=@FILE.npy for an array";
  else if (a->model && lists(v->options, "prompt"))
    help = "use -p for a prompt";
  else if (a->model && lists(v->options, "text") && lists(v->options, "ids"))
    help = "use --text for text";
  else if (a->model && lists(v->options, "output"))
    help = "use -o for the file to write";
  if (a->model)
    snprintf(why, sizeof why, "unexpected argument after %s%s%s", a->model, help ? "; " : "",
             help ? help : "");
  else
    snprintf(why, sizeof why, "unexpected argument: '%s' takes none", v->name);
  return bad(v, word, why);
}

/* Accepts decimal or 0x; rejects signs, blanks and trailing characters. */
static int read_whole(const Verb *v, const Opt *o, const char *value, char *to) {
  char *end, expected[96];
  errno = 0;
  if (o->at == offsetof(Args, max_tokens) && !strcmp(value, "-1")) value = "1000000000";
  unsigned long long x = strtoull(value, &end, !strncmp(value, "0x", 2) ? 16 : 10);
  uint32_t narrow = (uint32_t)x;
  if (isdigit((unsigned char)*value) && !*end && !errno && x >= o->min && x <= o->max) {
    memcpy(to, o->count == sizeof narrow ? (void *)&narrow : (void *)&x, o->count);
    return 0;
  }
  snprintf(expected, sizeof expected, "a whole number from %llu to %llu", o->min, o->max);
  return bad_value(v, o, value, expected);
}

/* Reads a tolerance or time. It starts with a digit or a point: no NaN, no infinity. */
static int read_real(const Verb *v, const Opt *o, const char *value, double *to) {
  char *end;
  int is_time = o->at == offsetof(Args, build.seconds);
  errno = 0;
  *to = strtod(value, &end);
  int fine = (isdigit((unsigned char)*value) || *value == '.') && end != value && !*end && !errno;
  if (is_time && (!fine || *to < 0.001 || *to > 86400))
    return bad_value(v, o, value, "a number of seconds from 0.001 to 86400");
  if (fine && !*to && o->at == offsetof(Args, training.rate)) /* 0 would mean the default */
    return bad_value(v, o, value, "a number above 0");
  return fine ? 0 : bad_value(v, o, value, "a finite number that is at least 0");
}

static int set_value(Args *a, const Verb *v, const Opt *o, const char *value) {
  char *base = (char *)a;
  switch (o->kind) {
  case OPT_head: return 0;
  case OPT_flag: *(int *)(base + o->at) = 1; return 0;
  case OPT_may:
  case OPT_text: *(const char **)(base + o->at) = value; return 0;
  case OPT_real: return read_real(v, o, value, (double *)(base + o->at));
  case OPT_whole: return read_whole(v, o, value, base + o->at);
  case OPT_list: break;
  }
  int *n = (int *)(base + o->count);
  if (*n == o->max_count) {
    char why[64];
    snprintf(why, sizeof why, "may be given at most %d times", o->max_count);
    return bad(v, o->name, why);
  }
  ((const char **)(base + o->at))[(*n)++] = value;
  return 0;
}

/* An argument that looks like the value of an option is a model only if the file exists. */
static int is_model(const char *word) {
  const char *dot = strrchr(word, '.');
  int other = strchr(word, '=') || (dot && (!strcmp(dot, ".npz") || !strcmp(dot, ".npy")));
  return !other || !access(word, F_OK);
}

static void add_model(Args *a, const char *path) {
  a->models[a->nmodels++] =
      (ModelArgs){path, a->ndim, a->nshape, a->nmax_shape, a->nstate, a->nfreeze, a->ninput};
  a->model = a->models[0].path;
}

/* Reports that the first argument of the usage line is missing. */
static int first_missing(const Verb *v) {
  char word[32], why[512];
  size_t n = strcspn(v->usage, " ");
  while (n && v->usage[n - 1] == '.') n--;
  snprintf(word, sizeof word, "%.*s", (int)n, v->usage);
  snprintf(why, sizeof why, "missing; usage: ingot %s %s", v->name, v->usage);
  return bad(v, word, why);
}

static int no_value(const Verb *v, const Opt *o, const char *word, const char *what) {
  char why[128];
  snprintf(why, sizeof why, "%s: --%s%s%s", what, o->name, o->value ? " " : "",
           o->value ? o->value : "");
  return bad(v, word, why);
}

/* Reads the option argv[*i] and its value, from the same or the next word. */
static int read_option(Args *a, const Verb *v, int argc, char **argv, int *i) {
  const char *w = argv[*i], *value;
  char name[64];
  int alias;
  const Opt *o = split_word(v, w, name, &value, &alias);
  if (!o) return no_option(v, w, name, value ? value : *i + 1 < argc ? argv[*i + 1] : NULL);
  if (alias >= 0 && aliases[alias].is_old) a->old_names |= 1ull << alias;
  if (o->kind == OPT_flag) {
    if (value) return no_value(v, o, w, "takes no value");
  } else if (!value && o->kind == OPT_may) {
    value = "";
  } else if (!value) {
    if (*i + 1 == argc) return no_value(v, o, w, "needs a value");
    value = argv[++*i];
  }
  if (o->at != offsetof(Args, model)) return set_value(a, v, o, value);
  if (a->nmodels == v->wants_model) return no_place(v, a, value);
  add_model(a, value);
  return 0;
}

int args_read(Args *a, const Verb *v, int argc, char **argv) {
  memset(a, 0, sizeof *a);
  a->verb = v->name;
  a->word = (const char *const *)argv;
  a->nword = argc;
  a->rtol = a->atol = INGOT_AUTO;
  a->build.seconds = 1;
  a->training.checkpoint_every = -1;
  a->port = 8080;
  for (int i = 0; i < argc; i++) {
    const char *w = argv[i];
    if (w[0] == '-' && w[1]) {
      int e = read_option(a, v, argc, argv, &i);
      if (e) return e;
    } else if (a->nmodels == v->wants_model || (a->model && !is_model(w))) {
      return no_place(v, a, w);
    } else {
      add_model(a, w);
    }
  }
  for (int i = 0; i < NALIASES && !a->quiet; i++)
    if (aliases[i].is_old && a->old_names >> i & 1)
      fprintf(stderr, "ingot %s: %s is now called --%s\n", v->name, aliases[i].words,
              aliases[i].option);
  if (a->no_selftest) a->build.c.selftest = -1;
  a->help = a->help || a->help_all;
  if (v->wants_model && !a->model && !a->help && !a->clean && !a->presets) return first_missing(v);
  return 0;
}

const char *args_first_given(const Args *a, const char *names) {
  static const char zero[sizeof(unsigned long long)];
  for (int i = 0; i < NOPTS; i++) {
    const Opt *o = &opts[i];
    const char *at = (const char *)a + (o->kind == OPT_list ? o->count : o->at);
    int is_flag = o->kind == OPT_flag || o->kind == OPT_list;
    int given = is_flag                ? *(const int *)at > 0
                : o->kind == OPT_whole ? memcmp(at, zero, o->count) != 0
                                       : *(const char *const *)at != NULL;
    if (o->kind != OPT_head && is_one_of(names, o->name) && given) return o->name;
  }
  return NULL;
}

/* Replaces ${targets} and ${multi} by names of targets; without marks, returns text itself. */
static const char *put_targets(char *to, size_t room, const char *text, const char *gap) {
  size_t n = 0;
  if (!text || !strchr(text, '$')) return text;
  while (*text && n < room - 1) {
    int all = !strncmp(text, "${targets}", 10), multi = !strncmp(text, "${multi}", 8);
    const char *name = multi ? ingot_multi() : NULL;
    for (uint32_t i = 0; n < room && (all ? (name = ingot_target(i)) != NULL : multi && !i); i++)
      n += (size_t)snprintf(to + n, room - n, "%s%s", i ? gap : "", name);
    if (!all && !multi) to[n++] = *text;
    text += all ? 10 : multi ? 8 : 1;
  }
  to[n < room ? n : room - 1] = 0;
  return to;
}

int args_option(const Verb *v, int i, OptionInfo *out) {
  if (i >= NOPTS) return 0;
  const Opt *o = &opts[i];
  *out = (OptionInfo){.name = o->name, .brief = o->brief, .value = o->value, .text = o->text};
  out->is_taken = o->text && takes(v, o);
  out->is_list = o->kind == OPT_list;
  for (size_t k = 0; k < sizeof special / sizeof *special; k++)
    if (!strcmp(special[k].verb, v->name) && !strcmp(special[k].option, o->name)) {
      out->value = special[k].value;
      out->text = special[k].text;
    }
  for (size_t k = 0; k < sizeof words / sizeof *words; k++)
    if (!strcmp(words[k].option, o->name))
      out->words = put_targets(out->word_room, sizeof out->word_room, words[k].words, " ");
  out->text = put_targets(out->text_room, sizeof out->text_room, out->text, ", ");
  return 1;
}

/* ---- help ---- */

/* Does the usage line name the option? */
static int is_common(const Verb *v, const OptionInfo *o) {
  static const char letters[] = "-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  char name[64];
  snprintf(name, sizeof name, "--%s", o->name);
  for (const char *s = v->usage; *s;) {
    size_t n = strspn(s, letters);
    if (n == strlen(name) && !memcmp(s, name, n)) return 1;
    if (n == 2 && *s == '-' && o->brief && s[1] == *o->brief) return 1;
    s += n ? n : 1;
  }
  return 0;
}

/* Prints text in lines of at most 100 columns; continuation lines start with `indent` blanks. */
static void put_lines(FILE *to, int column, int indent, const char *text) {
  enum { COLUMNS = 100 };
  for (int first = 1; *text; first = 0) {
    size_t n = strcspn(text, *text == '[' ? "]" : " ");
    n += strcspn(text + n, " "); /* keep brackets together */
    if (!first && column + 1 + (int)n > COLUMNS)
      column = fprintf(to, "\n%*s", indent, "") - 1;
    else if (!first)
      column += fprintf(to, " ");
    column += fprintf(to, "%.*s", (int)n, text);
    text += n + strspn(text + n, " ");
  }
}

static void put_option(const Verb *v, const OptionInfo *o, FILE *to) {
  char left[64];
  snprintf(left, sizeof left, "%s%s%s--%s%s%s", o->brief ? "-" : "", o->brief ? o->brief : "",
           o->brief ? ", " : "", o->name, o->value && *o->value != '[' ? " " : "",
           o->value ? o->value : "");
  put_lines(to, fprintf(to, "  %-26s ", left), 29, o->text);
  if (!strcmp(o->name, "engine")) args_engines(v, to);
  fputc('\n', to);
}

void args_help(const Verb *v, int all, FILE *to) {
  OptionInfo o;
  const char *group = NULL, *shown = NULL;
  int common = 0, more = 0;
  put_lines(to, fprintf(to, "usage: ingot %s%s", v->name, *v->usage ? " " : ""), 13, v->usage);
  fprintf(to, "\n\n%s\n", v->text);
  for (int i = 0; args_option(v, i, &o); i++) {
    if (!o.is_taken || !is_common(v, &o)) continue;
    if (!common++) fprintf(to, "\ncommon options:\n");
    put_option(v, &o, to);
  }
  for (int i = 0; args_option(v, i, &o); i++) {
    if (opts[i].kind == OPT_head) group = o.name;
    if (!o.is_taken || is_common(v, &o)) continue;
    if (!all && strcmp(group, GENERAL) != 0) {
      more++;
      continue;
    }
    if (shown != group) fprintf(to, "\n%s:\n", shown = group);
    put_option(v, &o, to);
  }
  if (more)
    fprintf(to, "\n%d more option%s: ingot %s --help-all\n", more, more > 1 ? "s" : "", v->name);
}
