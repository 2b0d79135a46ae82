/* args.c: options.
 *
 * In: argv after the verb. Out: Args. One table lists every option with its help; a verb's row says
 * which of them it takes, and a second table has the help of options that mean something else
 * there. Values follow as the next word or after '='.
 */
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum OptKind { OPT_flag, OPT_may, OPT_text, OPT_real, OPT_whole, OPT_list } OptKind;

typedef struct Opt {
  const char *name, *brief; /* brief: short spelling, or NULL */
  OptKind kind;
  size_t at, count; /* offsets in Args; count only for lists */
  int max;
  const char *value, *text;
  unsigned long long least, most; /* of a whole number */
  const char *verb;               /* the only one that has it like this; NULL: all */
} Opt;

#define FLAG(name, field, text)                                                                    \
  { name, NULL, OPT_flag, offsetof(Args, field), 0, 0, NULL, text, 0, 0, NULL }
#define TEXT(name, brief, field, value, text)                                                      \
  { name, brief, OPT_text, offsetof(Args, field), 0, 0, value, text, 0, 0, NULL }
#define REAL(name, field, text)                                                                    \
  { name, NULL, OPT_real, offsetof(Args, field), 0, 0, "X", text, 0, 0, NULL }
#define WHOLE(name, field, value, least, most, text)                                               \
  { name, NULL, OPT_whole, offsetof(Args, field), 0, 0, value, text, least, most, NULL }
#define LIST(name, brief, field, value, text)                                                      \
  {                                                                                                \
    name, brief, OPT_list, offsetof(Args, field), offsetof(Args, n##field),                        \
        (int)(sizeof((Args *)0)->field / sizeof(char *)), value, text, 0, 0, NULL                  \
  }

static const Opt opts[] = {
    LIST("input", "i", input, "SPEC",
         "x=@x.npy, x=0.5 (all of it), x=[1,2,3], x=ones, zeros or rand; may be repeated"),
    LIST("freeze", NULL, freeze, "SPEC",
         "the same, and the input is a constant from then on: sr=16000, x=@x.npy; may be repeated"),
    TEXT("inputs", NULL, inputs, "FILE.npz", "inputs by name from an archive"),
    TEXT("data", NULL, data, "DIR", "inputs from a directory: input_0.pb, input_1.pb, ..."),
    TEXT("output", "o", output, "PATH",
         "FILE.npz, FILE.npy of one output, or a folder for output_0.pb, ..."),
    TEXT("engine", "e", engine, "NAME", "one of these, by default the first:"),
    WHOLE("seed", seed, "N", 0, ULLONG_MAX, "seed of made-up inputs and random operators"),
    WHOLE("steps", steps, "N", 1, 1000000000,
          "runs one after the other, with --state; made-up inputs differ (default 1)"),
    TEXT("model-path", "m", model, "PATH", "the model; it may also stand alone"),
    TEXT("prompt", "p", prompt, "TEXT", "answer this and end; without it, a conversation"),
    TEXT("system", NULL, system, "TEXT", "what the model is told before the conversation"),
    FLAG("raw", raw, "continue the text of the prompt: no template of conversations"),
    WHOLE(
        "max-tokens", max_tokens, "N", 1, 1000000000,
        "end an answer after so many tokens; without it the model does, or the end of the context"),
    TEXT("temperature", NULL, temperature, "X", "0: always the likeliest token (default 0.7)"),
    TEXT("top-k", NULL, top_k, "N", "only the N likeliest tokens; 0: all (default 40)"),
    TEXT("top-p", NULL, top_p, "X", "only the likeliest that make up X together (default 0.9)"),
    TEXT("bake-prompt", NULL, bake_prompt, "FILE",
         "language models: what the system says; its keys and values are part of the code"),
    TEXT("date", NULL, date, "YYYY-MM-DD",
         "the day that templates are told (default: today; in what is baked in, and in C text, "
         "2026-01-01)"),
    FLAG("clean", clean, "remove all programs that were kept, and say how large they were"),
    TEXT("min-p", NULL, min_p, "X", "only those X times as likely as the likeliest (default 0)"),
    TEXT("repeat-penalty", NULL, repeat_penalty, "X", "divide logits of tokens that were there"),
    TEXT("frequency-penalty", NULL, frequency_penalty, "X",
         "subtract X for each time it was there"),
    TEXT("presence-penalty", NULL, presence_penalty, "X", "subtract X if it was there"),
    LIST("input-dim", "d", dim, "SPEC",
         "batch=1, batch:1 or images:0=1; may be repeated or comma-separated"),
    LIST("shapes", NULL, shape, "SPEC", "x:1x3x224x224; may be repeated or comma-separated"),
    LIST("max-shapes", NULL, max_shape, "SPEC",
         "largest extents of dimensions that stay symbolic: x:8x3x224x224, batch=8 or x:0=8"),
    REAL("rtol", rtol, "relative tolerance (default by type; f32: 1e-4)"),
    REAL("atol", atol, "absolute tolerance (default: rtol times the largest ordinary magnitude)"),
    TEXT("start", NULL, start, "PASS", "first pass to run"),
    TEXT("stop", NULL, stop, "PASS", "last pass to run; none for no pass at all"),
    TEXT("skip", NULL, skip, "P,Q", "passes to leave out"),
    TEXT("dump", NULL, dump, "P,Q",
         "passes whose result is printed, or all; bytecode: what engine vm runs; llvm: what LLVM "
         "gets"),
    TEXT("name", "f", name, "NAME",
         "prefix of all C names (default: from the output file, else model)"),
    TEXT("function", NULL, function, "NAME",
         "programs of the language: the function that is the model (default: the only one that "
         "can)"),
    TEXT("weights", NULL, weights, "HOW",
         "inline (numbers or, when large, strings), literal, text, file: NAME.bin (the default "
         "above 8 MB), pointer: an argument"),
    TEXT("func-name", NULL, name, "NAME", "the same as --name"),
    TEXT("cc", NULL, cc, "CC", "C compiler (default $CC, else cc)"),
    TEXT("preset", NULL, preset, "NAME",
         "balanced (default), max, dev or size: --presets lists what they set"),
    FLAG("presets", presets, "list the presets; no model is needed"),
    FLAG("lto", lto, "optimise across files when linking; OUT.o, OUT.a: compile in one piece"),
    {"pgo", NULL, OPT_may, offsetof(Args, pgo), 0, 0, "[=WORKLOAD]",
     "compile with a profile of runs: FILE.npz, a folder of them, prompts (.json, lines), or made "
     "up",
     0, 0, NULL},
    FLAG("bolt", bolt, "programs: have llvm-bolt lay out the code as it runs"),
    FLAG("relaxed", relaxed,
         "the compiler may take sums in any order; the error that makes is told"),
    TEXT("optimize", "O", optimize, "N", "0, 1, 2 (default), 3 or s"),
    TEXT("march", NULL, march, "CPU",
         "machine the code is for: scalar, simd128, sse2, neon, avx2, avx512, native, several with "
         "commas, "
         "or multi: sse2,avx2,avx512 in one file that chooses"),
    TEXT("optimize-for", NULL, optimize_for, "WHAT",
         "time (default), ram: arena, stack and arrays of the caller, size: code and weights"),
    TEXT("ram", NULL, ram, "BYTES",
         "arena, stack, inputs and outputs together, as 256K: the fastest code that fits, or none"),
    FLAG("precise", precise,
         "exp, tanh and their like to the last bit; by double arithmetic on plain loops"),
    TEXT("sanitize", NULL, sanitize, "LIST", "passed to the C compiler as -fsanitize=LIST"),
    WHOLE("threads", threads, "N", 1, 64,
          "threads that share one run of compiled C (default 1); the bits are the same"),
    TEXT("threads-api", NULL, threads_api, "API", "pthread (default) or openmp"),
    WHOLE("threads-grain", threads_grain, "NS", 1, 1000000000,
          "least work handed to a thread, in ns by estimate (default 4000)"),
    {"tune", NULL, OPT_may, offsetof(Args, tune), 0, 0, "[=FILE]",
     "measure how kernels are best cut, unless FILE (~/.cache/ingot/tune) knows", 0, 0, NULL},
    {"keep-code", NULL, OPT_may, offsetof(Args, keep_code), 0, 0, "[=DIR]",
     "engine jit: keep compiled code in DIR (~/.cache/ingot), and take what is there", 0, 0, NULL},
    TEXT("via", NULL, via, "llvm", "OUT.o, OUT.a or OUT.so by LLVM, not by C and its compiler"),
    TEXT(
        "triple", NULL, triple, "T[,CPU[,F]]",
        "with --via llvm: the machine as LLVM calls it, wasm32 or thumbv7em-none-eabihf,cortex-m4"),
    TEXT("for", NULL, project, "KIND", "cmake, zephyr, arduino, platformio, esp-idf or rust"),
    TEXT("target", NULL, target, "wasm", "OUT.wasm, which the end of --output says too"),
    TEXT("tuned", NULL, tuned, "FILE", "cut kernels as measured before, where FILE knows"),
    FLAG("choices", choices, "list how kernels could be cut: what --tune would try"),
    FLAG("debug", debug,
         "every tensor an array of its own, so that sanitizers see what leaves it; not re-entrant"),
    WHOLE("split", split, "N", 1, 64,
          "kernels in N parts that can be compiled side by side: -DNAME_PART=0 ... N-1"),
    FLAG("cpp", cpp, "a header for C++ too: NAME.hpp, a class that owns its arena"),
    FLAG("caller", caller, "write NAME_call and NAME_facts too, which --library needs"),
    FLAG("profile", profile,
         "NAME_run tells a function of yours which kernel has ended: the header says how"),
    FLAG("per-kernel", per_kernel,
         "engine c: time of every kernel, its multiply-adds and bytes, beside what the machine can "
         "do"),
    TEXT("library", NULL, library, "FILE.so",
         "engine c runs NAME_call of this file instead of compiling"),
    FLAG("per-node", per_node,
         "compare the values of the graph that the optimised program stores; name the others"),
    FLAG("bisect", bisect,
         "find the first node where the engine departs, and write a part of the model that shows "
         "it, in the text form of ingot (.ing)"),
    TEXT("python", NULL, python, "PATH",
         "Python that has onnxruntime (default python3); given: its absence is an error"),
    REAL("seconds", seconds, "how long to measure each engine (default 1)"),
    FLAG("selftest", selftest, "write NAME_selftest however long the model runs"),
    FLAG("no-selftest", no_selftest, "write no NAME_selftest"),
    LIST("state", NULL, state, "IN=OUT",
         "result OUT comes back as input IN: kept in the arena; may be repeated; auto: by names"),
    TEXT("grad", NULL, grad, "Y[:X,W]",
         "outputs X.grad more: derivatives of the sum of Y, by default for all inputs"),
    TEXT("train", NULL, train, "SPEC",
         "the step that trains it: loss=cross_entropy,optimizer=adam; docs/training.md has all"),
    WHOLE("context", context, "N", 1, 1ull << 40,
          "language models: tokens there is room for (default: as trained, up to 4096)"),
    WHOLE("chunk", chunk, "N", 1, 1ull << 20,
          "language models: most tokens of one run (default 128; play and bench 256)"),
    FLAG("every-token", every_token,
         "language models: logits of every token, not only of the last"),
    TEXT("cache", NULL, cache, "TYPE",
         "language models: keys and values are kept as f16 (default), f32 or int8"),
    FLAG("explain", explain, "say what was fused and why not, and how kernels are written and why"),
    FLAG("check", check, "verify the intermediate form after every pass"),
    FLAG("time", time, "print the time of every pass on stderr"),
    {"emit", NULL, OPT_flag, offsetof(Args, emit), 0, 0, NULL,
     "write it: the only thing there is to do", 0, 0, "vm"},
    {"emit", NULL, OPT_text, offsetof(Args, emit_c), 0, 0, "FILE.c",
     "write the training as C instead: NAME_train, NAME_run, NAME_save, NAME_load", 0, 0, "train"},
    FLAG("recompute", recompute,
         "with --emit: loops compute again what derivatives need; the RAM of both is told"),
    FLAG("side", side, "put large constants into OUTPUT.bin beside the text"),
    TEXT("text", NULL, text, "TEXT", "text to turn into ids; -: standard input"),
    TEXT("ids", NULL, ids, "IDS", "tokens as numbers, separated by blanks or commas"),
    FLAG("special", special, "texts of special tokens are these tokens, and the other way round"),
    FLAG("bare", bare, "without the tokens that the model wants around a text"),
    TEXT("to", NULL, to, "TYPE",
         "language models: types of weights, as llama.cpp names them: Q4_K_M, Q8_0, F16 ..."),
    TEXT("method", NULL, method, "HOW",
         "static (default): bytes, ranges from --data; dynamic; only weights: weights8, weights4, "
         "f16, bf16"),
    TEXT("holdout", NULL, holdout, "FILE.npz",
         "data to measure the error on (default: the last fifth of --data, not calibrated with)"),
    TEXT("calibrate", NULL, calibrate, "HOW",
         "minmax, average, percentile, entropy or mse (default: the best of minmax, mse and "
         "percentile)"),
    TEXT("activations", NULL, activations, "TYPE", "u8 (default) or s8"),
    FLAG("symmetric", symmetric, "zero points of activations are the middle of the range"),
    TEXT("per", NULL, per, "WHAT",
         "scales of weights: channel (default), tensor, or group (of --block, weights only)"),
    WHOLE("block", block, "N", 16, 4096, "weights that share a scale: a power of 2 (default 32)"),
    FLAG("bias-correction", bias_correction, "biases take up the mean error of weights"),
    FLAG("equalize", equalize, "equalise the ranges of channels across layers first"),
    LIST("keep", NULL, keep, "NODE", "leave it as it is; * and ? stand for any; may be repeated"),
    TEXT("budget", NULL, budget, "X",
         "leave those layers that cost most, until outputs have X dB; with --label, until at most "
         "X points of accuracy are lost"),
    TEXT("label", NULL, label, "NAME", "array of --data with the numbers of the right classes"),
    TEXT("validate", NULL, validate, "FILE.npz", "examples to measure with after every epoch"),
    TEXT("loss", NULL, loss, "NAME",
         "cross_entropy (default), mse, mae, bce (of probabilities) or bce_logits"),
    TEXT("optimizer", NULL, optimizer, "NAME",
         "sgd, momentum, adam (default), adamw, rmsprop or adagrad"),
    REAL("lr", lr, "rate of learning (default 0.001)"),
    TEXT("schedule", NULL, schedule, "HOW",
         "step[:N[,K]]: times K (0.1) behind N epochs; exp[:K]: behind each; cosine[:LOW]; else it "
         "stays"),
    REAL("clip", clip, "derivatives are scaled so that all together are no longer than X"),
    WHOLE("batch", batch, "N", 1, 1ull << 24, "examples of a step (default 32)"),
    WHOLE("epochs", epochs, "N", 1, 1000000000, "how often all examples are seen (default 1)"),
    WHOLE("shares", shares, "N", 1, 1ull << 20,
          "parts of a batch whose derivatives are added up (default: the processes of mpirun)"),
    FLAG("in-place", in_place, "write the trained model back to MODEL, instead of --output"),
    TEXT("checkpoint", NULL, checkpoint, "FILE",
         "what a training that was ended goes on from (default: OUTPUT.checkpoint)"),
    REAL("checkpoint-every", checkpoint_every,
         "seconds after which it is written again (default 5; 0: after every step)"),
    TEXT("html", NULL, html, "FILE",
         "a page for a browser: the graph as kernels, memory over time, sizes, warnings"),
    FLAG("bench", bench, "with --html: compile it, and measure every kernel"),
    FLAG("json", json, "machine-readable output"),
    FLAG("quiet", quiet, "no warnings"),
    FLAG("verbose", verbose, "say what is done, and how long it took"),
    FLAG("help", help, "this help"),
};
enum { NOPTS = sizeof opts / sizeof *opts };

/* What --help says about an option at one verb, where that differs from the row above. */
static const struct {
  const char *verb, *option, *value, *text;
} special[] = {
    {"compile", "output", "FILE.c",
     "the C file; its header goes beside it (default: C on standard output)"},
    {"build", "output", "PATH",
     "OUT.o, OUT.a, OUT.so (a header goes beside them), OUT.wasm (a module of JavaScript), or the "
     "name of a program; of PROGRAM.ch: all of it, or OUT.c"},
    {"build", "name", "NAME", "prefix of all C names (default: from the output file)"},
    {"run", "python", "PATH", "Python that has onnxruntime, for that engine (default python3)"},
    {"run", "name", "NAME", "prefix of the names in --library (default: model)"},
    {"verify", "name", "NAME", "prefix of the names in --library (default: model)"},
    {"verify", "output", "FILE.ing",
     "--bisect: the part of the model (default bisect.ing); inputs go to FILE.npz"},
    {"verify", "data", "DIR",
     "directory with input_0.pb, ... and the expected output_0.pb, ..., or with a test_data_set_0"},
    {"verify", "engine", "NAME", "only this one, not all that can be compared:"},
    {"bench", "engine", "NAME", "only one of these:"},
    {"build", "march", "CPU",
     "scalar, sse2, neon, avx2, avx512, native (default), multi, or as for -march=, also with "
     "features: x86-64-v3,+avx512f"},
    {"build", "seconds", "X", "how long to measure each step of a tuned build (default 1)"},
    {"build", "clean", NULL, "remove profiles and programs that were kept; no model is needed"},
    {"build", "verbose", NULL, "every command that is started, and what the preset sets"},
    {"build", "json", NULL, "what was built, or the table of a tuned build, machine-readable"},
    {"bench", "march", "CPU",
     "scalar, sse2, neon, avx2, avx512, native (default), multi, or as for -march="},
    {"perplexity", "text", "FILE", "file with the text to be foretold; -: standard input"},
    {"play", "stop", "TEXT", "end an answer before this text; may be repeated"},
    {"play", "seed", "N", "seed of the choice of tokens (default 0)"},
    {"play", "threads", "N", "threads that share the work (default: the cores, at most 16)"},
    {"play", "march", "CPU", "machine the program is for (default native)"},
    {"quantize", "data", "FILE.npz|DIR",
     "examples: arrays under the names of inputs, or a folder with a file for each"},
    {"quantize", "output", "FILE", "where the quantised model goes"},
    {"train", "data", "FILE.npz",
     "examples along the first axis of arrays under the names of inputs, and their labels"},
    {"train", "label", "NAME", "array with the right answers (default: label)"},
    {"train", "output", "FILE.onnx", "where the trained model goes"},
    {"train", "freeze", "WEIGHT", "leave it as it is; * and ? stand for any; may be repeated"},
    {"train", "seed", "N", "of the order of examples, and of what drops out"},
    {"train", "engine", "NAME",
     "by default c where there is a C compiler, else jit or vm; one of:"},
    {"train", "train", "SPEC", "more about the step: decay=0.01,beta1=0.8,axis=2,output=NAME"},
    {"train", "march", "CPU", "machine the step is for (default native)"},
    {"verify", "html", "FILE", "a page for a browser: the error of every value the program stores"},
    {"quantize", "html", "FILE", "a page for a browser: what became of each layer"},
    {"inspect", "seconds", "X", "how long to measure with --bench (default 1)"},
    {"vm", "output", "FILE.c", "where it goes; the header beside it"},
    {"export", "output", "DIR",
     "the folder, which is made; of files that are there only those of an earlier export are "
     "replaced"},
    {"export", "weights", "HOW", "inline, or with --for cmake file (the default above 8 MB)"},
    {"export", "name", "NAME", "prefix of all C names (default: from the folder)"},
    {"fmt", "output", "FILE", "where the text goes (default: standard output)"},
    {"opt", "output", "FILE", "where the text goes (default: standard output)"},
};

/* Values that are words out of a few, for completion. */
static const struct {
  const char *option, *words;
} words[] = {
    {"march", "scalar sse2 neon avx2 avx512 native multi"},
    {"weights", "inline literal text file pointer"},
    {"preset", "balanced max dev size"},
    {"optimize", "0 1 2 3 s"},
    {"optimize-for", "time ram size"},
    {"threads-api", "pthread openmp"},
    {"via", "llvm"},
    {"cache", "f16 f32 int8"},
    {"method", "static dynamic weights8 weights4 f16 bf16"},
    {"calibrate", "minmax average percentile entropy mse"},
    {"activations", "u8 s8"},
    {"per", "channel tensor group"},
    {"state", "auto"},
    {"for", "cmake zephyr arduino platformio esp-idf rust"},
};

const char *engine_with(unsigned flags) {
  const IngotEngine *e;
  for (uint32_t i = 0; (e = ingot_engine(i)) && !(e->flags & flags);) i++;
  return e ? e->name : "";
}

int has_idle_threads(const Args *a) {
  const IngotEngine *e = a->engine ? ingot_find_engine(a->engine) : NULL;
  return a->threads > 1 && e && !(e->flags & INGOT_NATIVE);
}

/* The engines a verb takes. */
void args_engines(const Verb *v, FILE *to) {
  const IngotEngine *e;
  for (uint32_t i = 0; (e = ingot_engine(i)); i++) {
    if (!strcmp(v->name, "bench") && !(e->flags & INGOT_TIMED)) continue;
    if (!strcmp(v->name, "demo") && e->flags & INGOT_FILE) continue;
    if (!strcmp(v->name, "train") &&
        (e->flags & (INGOT_FILE | INGOT_GRAPH) || !(e->flags & INGOT_TIMED)))
      continue;
    fprintf(to, " %s", e->name);
  }
}

static int lists(const char *names, const char *name) {
  size_t n = strlen(name);
  for (const char *s = names; *s;) {
    size_t k = strcspn(s, " ");
    if (k == n && !memcmp(s, name, n)) return 1;
    s += k + (s[k] == ' ');
  }
  return !strcmp(name, "help") || !strcmp(name, "quiet") || !strcmp(name, "verbose");
}

static int takes(const Verb *v, const Opt *o) {
  return lists(v->options, o->name) && (!o->verb || !strcmp(o->verb, v->name));
}

static const Opt *find(const Verb *v, const char *word, size_t n, int is_long) {
  for (int i = 0; i < NOPTS; i++) {
    const char *name = is_long ? opts[i].name : opts[i].brief;
    if (name && strlen(name) == n && !memcmp(name, word, n) && takes(v, &opts[i])) return &opts[i];
  }
  if (!is_long && n == 1 && *word == 'h') return &opts[NOPTS - 1];
  return NULL;
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

/* What the word may have meant: a name that is near, or an option of other verbs. */
static int no_option(const Verb *v, const char *word, const char *name, size_t n, int is_long) {
  const char *names[NOPTS], *near = NULL;
  char said[64], why[256];
  size_t count = 0, used = 0;
  snprintf(said, sizeof said, "%.*s", (int)n, name);
  for (int i = 0; i < NOPTS; i++)
    if (takes(v, &opts[i])) names[count++] = opts[i].name;
  if (is_long) near = ingot_nearest(said, names, count);
  used = (size_t)snprintf(why, sizeof why, "no such option");
  if (near) used += (size_t)snprintf(why + used, sizeof why - used, "; did you mean --%s?", near);
  for (int i = 0, first = 1; !near && i < verb_count && used < sizeof why - 16; i++) {
    if (!find(&verb_table[i], name, n, is_long)) continue;
    used += (size_t)snprintf(why + used, sizeof why - used, "%s%s",
                             first ? " here; it is one of: " : ", ", verb_table[i].name);
    first = 0;
  }
  return bad(v, word, why);
}

/* A word that no option takes: which one would. */
static int no_place(const Verb *v, const Args *a, const char *word) {
  const char *dot = strrchr(word, '.'), *why = "unexpected argument";
  if (a->model && strchr(word, '=') && lists(v->options, "input"))
    why = "unexpected argument; dimensions are given with -d, values of inputs with --input";
  else if (a->model && dot && !strcmp(dot, ".npz") && lists(v->options, "inputs"))
    why = "unexpected argument; arrays by name are given with --inputs";
  else if (a->model && dot && !strcmp(dot, ".npy") && lists(v->options, "input"))
    why = "unexpected argument; an array is given with --input NAME=@FILE.npy";
  return bad(v, word, why);
}

/* Decimal or with 0x; no sign, no blanks, nothing behind it. */
static int read_whole(const Verb *v, const Opt *o, const char *value, unsigned long long *to) {
  char *end, expected[96];
  errno = 0;
  *to = strtoull(value, &end, !strncmp(value, "0x", 2) ? 16 : 10);
  if (isdigit((unsigned char)*value) && !*end && !errno && *to >= o->least && *to <= o->most)
    return 0;
  snprintf(expected, sizeof expected, "a whole number from %llu to %llu", o->least, o->most);
  return bad_value(v, o, value, expected);
}

/* Tolerances and times: digits or a point come first, so neither NaN nor infinity. */
static int read_real(const Verb *v, const Opt *o, const char *value, double *to) {
  char *end;
  int is_time = o->at == offsetof(Args, seconds);
  errno = 0;
  *to = strtod(value, &end);
  int fine = (isdigit((unsigned char)*value) || *value == '.') && end != value && !*end && !errno;
  if (is_time && (!fine || *to < 0.001 || *to > 86400))
    return bad_value(v, o, value, "a number of seconds from 0.001 to 86400");
  return fine ? 0 : bad_value(v, o, value, "a finite number, not below 0");
}

static int set_value(Args *a, const Verb *v, const Opt *o, const char *value) {
  char *base = (char *)a;
  switch (o->kind) {
  case OPT_flag: *(int *)(base + o->at) = 1; return 0;
  case OPT_may:
  case OPT_text: *(const char **)(base + o->at) = value; return 0;
  case OPT_real: return read_real(v, o, value, (double *)(base + o->at));
  case OPT_whole: return read_whole(v, o, value, (unsigned long long *)(base + o->at));
  case OPT_list: break;
  }
  int *n = (int *)(base + o->count);
  if (*n == o->max) return bad(v, o->name, "given too often");
  ((const char **)(base + o->at))[(*n)++] = value;
  return 0;
}

/* A word that looks like one an option takes is a model only if there is such a file. */
static int is_model(const char *word) {
  const char *dot = strrchr(word, '.');
  int other = strchr(word, '=') || (dot && (!strcmp(dot, ".npz") || !strcmp(dot, ".npy")));
  return !other || !access(word, F_OK);
}

static void add_model(Args *a, const char *path) {
  a->models[a->nmodels++] =
      (ModelWords){path, a->ndim, a->nshape, a->nmax_shape, a->nstate, a->nfreeze, a->ninput};
  a->model = a->models[0].path;
}

/* What its usage names first. */
static int first_missing(const Verb *v) {
  char word[32];
  size_t n = strcspn(v->usage, " ");
  while (n && v->usage[n - 1] == '.') n--;
  snprintf(word, sizeof word, "%.*s", (int)n, v->usage);
  return bad(v, word, "missing");
}

int args_read(Args *a, const Verb *v, int argc, char **argv) {
  memset(a, 0, sizeof *a);
  a->verb = v->name;
  a->word = (const char *const *)argv;
  a->nword = argc;
  a->rtol = a->atol = INGOT_AUTO;
  a->seconds = 1;
  a->checkpoint_every = -1;
  for (int i = 0; i < argc; i++) {
    const char *w = argv[i], *eq = NULL;
    if (w[0] != '-' || !w[1]) {
      if (a->nmodels == v->wants_model || (a->model && !is_model(w))) return no_place(v, a, w);
      add_model(a, w);
      continue;
    }
    int is_long = w[1] == '-';
    const char *name = w + 1 + is_long;
    size_t n = is_long ? strcspn(name, "=") : 1;
    if (name[n]) eq = name + n + is_long; /* --name=value or -nvalue */
    const Opt *o = find(v, name, n, is_long);
    if (!o) return no_option(v, w, name, n, is_long);
    if (o->kind == OPT_flag) {
      if (eq) return bad(v, w, "takes no value");
    } else if (!eq && o->kind == OPT_may) {
      eq = "";
    } else if (!eq) {
      if (i + 1 == argc) return bad(v, w, "needs a value");
      eq = argv[++i];
    }
    int e = set_value(a, v, o, eq);
    if (e) return e;
  }
  if (v->wants_model && !a->model && !a->help && !a->clean && !a->presets) return first_missing(v);
  return 0;
}

int args_option(const Verb *v, int i, OptionInfo *out) {
  if (i >= NOPTS) return 0;
  const Opt *o = &opts[i];
  *out = (OptionInfo){.name = o->name, .brief = o->brief, .value = o->value, .text = o->text};
  out->is_taken = takes(v, o);
  out->is_list = o->kind == OPT_list;
  for (size_t k = 0; k < sizeof special / sizeof *special; k++)
    if (!strcmp(special[k].verb, v->name) && !strcmp(special[k].option, o->name)) {
      out->value = special[k].value;
      out->text = special[k].text;
    }
  for (size_t k = 0; k < sizeof words / sizeof *words; k++)
    if (!strcmp(words[k].option, o->name)) out->words = words[k].words;
  return 1;
}

void args_help(const Verb *v, FILE *to) {
  OptionInfo o;
  fprintf(to, "usage: ingot %s%s%s\n\n%s\n\n", v->name, *v->usage ? " " : "", v->usage, v->text);
  for (int i = 0; args_option(v, i, &o); i++) {
    if (!o.is_taken) continue;
    char left[64];
    snprintf(left, sizeof left, "%s%s%s--%s%s%s", o.brief ? "-" : "", o.brief ? o.brief : "",
             o.brief ? ", " : "", o.name, o.value && *o.value != '[' ? " " : "",
             o.value ? o.value : "");
    fprintf(to, "  %-26s %s", left, o.text);
    if (!strcmp(o.name, "engine")) args_engines(v, to);
    fputc('\n', to);
  }
}
