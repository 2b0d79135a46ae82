/* cli_suggest.c: suggestions for verbs and options of other tools.
 *
 * In: an unknown verb or option. Out: the equivalent in ingot, on stderr or appended to a message.
 * Method: two tables from words to advice, then edit distance and prefixes.
 */
#include "cli/cli.h"

#include <string.h>

typedef struct Advice {
  const char *words, *needs; /* needs: option that the verb must take; NULL: none */
  const char *text;          /* %s: the value given */
} Advice;

#define GPU_WORDS "device gpu cuda ngl n-gpu-layers gpu-layers provider providers ep use-gpu"
static const Advice options[] = {
    {"batch batch-size batchsize bs", "input-dim", "did you mean -d batch=%s?"},
    {GPU_WORDS, "target", "for an NVIDIA GPU use --target cuda"},
    {GPU_WORDS, "engine", "for an NVIDIA GPU use --engine cuda, which runs the whole model there"},
    {GPU_WORDS, NULL,
     "for NVIDIA GPUs use 'ingot run --engine cuda' or 'ingot build --target cuda'"},
    {"fa flash-attn flash-attention", NULL, "attention is always fused: leave the option out"},
    {"quantize quantise", NULL, "a model is quantized first: ingot quantize MODEL -o OUT"},
    {"dynamic int8-dynamic", NULL, "did you mean ingot quantize MODEL --method dynamic -o OUT?"},
    {"O0 O1 O2 O3 Os Ofast", "output",
     "ingot always optimizes; 'ingot build' passes -O N to the C compiler"},
    {"fp16 half float16 f16 bf16 bfloat16 dtype precision int8 int4 fp8", NULL,
     "a model is converted first: ingot quantize MODEL --method f16 -o OUT (or bf16, static: int8, "
     "weights8, weights4)"},
    {"opset opset-version target-opset", NULL,
     "ingot reads the opset that the file declares; 'ingot ops' lists the supported operators"},
    {"j jobs workers cores nthreads nproc parallel", "threads", "did you mean --threads %s?"},
    {"cpu mcpu arch isa target-cpu", "march", "did you mean --march %s?"},
    {"tol tolerance eps", "rtol", "did you mean --rtol %s or --atol %s?"},
    {"iterations iters repeat repeats runs warmup warm-up r", "seconds",
     "the number of runs follows from --seconds X"},
    {"r reverse-prompt", "prompt", "did you mean --stop %s?"},
    {"i interactive chat", "prompt", "leave out --prompt to chat"},
    {"verbosity log-level loglevel debug-level V", NULL, "did you mean --verbose?"},
    {"outfile out save dest", "output", "did you mean --output %s?"},
    {"version", NULL, "did you mean 'ingot --version'?"},
};

static const Advice verbs[] = {
    {"convert codegen transpile emit", NULL,
     "did you mean 'compile'? 'ingot compile MODEL -o OUT.c' writes C, 'ingot build' machine code, "
     "'ingot quantize' a smaller model"},
    {"infer inference predict execute exec eval", NULL, "did you mean 'run'?"},
    {"chat generate complete completion talk ask prompt llm cli", NULL,
     "did you mean 'play'? 'ingot play MODEL' chats, with -p TEXT it answers once"},
    {"server", NULL, "did you mean 'serve'? 'ingot serve MODEL' answers over HTTP"},
    {"optimize optimise simplify sim", NULL,
     "did you mean 'opt'? It prints the optimized IR; 'ingot compile' optimizes by itself"},
    {"benchmark perf profile time speed", NULL,
     "did you mean 'bench'? --per-kernel measures every kernel"},
    {"compare test validate diff", NULL, "did you mean 'verify'?"},
    {"info report show summary describe view visualize netron stats", NULL,
     "did you mean 'inspect'? --html FILE writes a page with the graph"},
    {"finetune fine-tune fit learn", NULL, "did you mean 'train'?"},
    {"ppl", NULL, "did you mean 'perplexity'?"},
    {"tokens encode decode", NULL, "did you mean 'tokenize'?"},
    {"format", NULL, "did you mean 'fmt'?"},
    {"clean clear purge", NULL, "did you mean 'cache --clean'?"},
    {"shell interactive", NULL, "did you mean 'repl'?"},
    {"lint", NULL, "did you mean 'check'?"},
    {"operators", NULL, "did you mean 'ops'?"},
    {"version", NULL, "did you mean 'ingot --version'?"},
    {"pull download fetch get", NULL, "ingot reads local files: download the model first"},
};

int is_one_of(const char *words, const char *word) {
  size_t n = strlen(word), k;
  for (; *words; words += k + (words[k] == ' '))
    if ((k = strcspn(words, " ")) == n && !memcmp(words, word, n)) return 1;
  return 0;
}

/* Does the verb take an option? Option engine: with an engine on a GPU. */
static int has_option(const Verb *v, const char *option) {
  const IngotEngine *e;
  if (strcmp(option, "engine") != 0) return is_one_of(v->options, option);
  for (uint32_t i = 0; (e = ingot_engine(i)); i++)
    if (e->flags & INGOT_DEVICE && takes_engine(v, e)) return 1;
  return 0;
}

int suggest_option(const Verb *v, const char *word, const char *value, char *to, size_t n) {
  const char *given = value && *value != '-' ? value : "N";
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    const Advice *a = &options[i];
    if (!is_one_of(a->words, word) || (a->needs && !has_option(v, a->needs))) continue;
    size_t used = (size_t)snprintf(to, n, "; ");
    for (const char *s = a->text; *s && used < n; s += *s == '%' ? 2 : 1)
      used += (size_t)(*s == '%' ? snprintf(to + used, n - used, "%.64s", given)
                                 : snprintf(to + used, n - used, "%c", *s));
    return 1;
  }
  return 0;
}

int suggest_verb(const char *word) {
  const char *names[64], *near;
  for (int i = 0; i < verb_count; i++) names[i] = verb_table[i].name;
  fprintf(stderr, "ingot: no command '%s'; ", word);
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
    if (is_one_of(verbs[i].words, word)) {
      fprintf(stderr, "%s\n", verbs[i].text);
      return INGOT_USAGE;
    }
  near = ingot_nearest(word, names, (size_t)verb_count);
  int count = 0;
  for (int i = 0; !near && i < verb_count && strlen(word) > 1; i++)
    if (!strncmp(names[i], word, strlen(word)))
      fprintf(stderr, "%s'%s'", count++ ? ", " : "did you mean ", names[i]);
  if (near) fprintf(stderr, "did you mean '%s'", near);
  fprintf(stderr, "%ssee 'ingot --help'\n", near || count ? "? " : "");
  return INGOT_USAGE;
}
