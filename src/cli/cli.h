/* cli.h: the command line. Sees only ingot.h. */
#ifndef INGOT_CLI_H
#define INGOT_CLI_H

#include "ingot.h"

#include <stdio.h>

typedef struct Args Args;
typedef struct Verb Verb;

/* What is said about the inputs of one model: how many words of each list stand in front of it. */
typedef struct ModelArgs {
  const char *path;
  int dim, shape, max_shape, state, freeze, input;
} ModelArgs;
enum { MODELS_MAX = 16 };

/* Options of all verbs; a verb refuses those its row does not list. */
struct Args {
  const char *verb; /* and the words behind it, for a command to try instead */
  const char *const *word;
  int nword;
  const char *model; /* the first */
  ModelArgs models[MODELS_MAX];
  int nmodels;
  const void *bytes; /* of the model, where it is standard input and needed more than once */
  size_t nbytes;
  const char *engine, *data, *inputs, *output;
  const char *name, *weights, *function;
  const char *optimize_for, *ram;
  const char *cc, *march, *optimize, *sanitize, *threads_api, *python, *library;
  const char *tune, *tuned; /* tune: "" for the default file */
  const char *start, *stop, *skip, *dump, *constants;
  const char *text, *ids;
  const char *prompt, *system, *bake_prompt, *date, *grad, *train;
  const char *temperature, *top_k, *top_p, *min_p, *repeat_penalty, *frequency_penalty,
      *presence_penalty; /* numbers, for the program that talks */
  unsigned long long max_tokens;
  int raw, clean, list, conversation, single_turn;
  double rtol, atol, seconds;
  unsigned long long seed, steps, max_steps, threads, threads_grain, split;
  unsigned long long context, chunk;
  int every_token;
  const char *cache;
  const char *keep_code; /* "": the default folder */
  const char *via, *triple, *target, *project;
  const char *preset, *pgo; /* pgo: "" for a workload that is made up */
  int presets, lto, relaxed, bolt, verbose;
  int explain, precise, choices, emit;
  int json, check, time, quiet, help, help_all, side, selftest, no_selftest, per_node, bisect,
      caller, debug;
  int profile, per_kernel, bench, cpp;
  const char *html;
  int special, bare;
  int files, no_files;
  const char *emit_c;
  int recompute, in_place;
  const char *validate, *loss, *optimizer, *schedule, *checkpoint;
  double lr, clip, checkpoint_every; /* the last below 0: not said */
  unsigned long long batch, epochs, shares;
  const char *to, *method, *holdout, *calibrate, *activations, *per, *budget, *label;
  unsigned long long block;
  int symmetric, bias_correction, equalize;
  const char *keep[256];
  int nkeep;
  const char *state[64];
  int nstate;
  const char *input[256], *freeze[64], *dim[256], *shape[64], *max_shape[64];
  int ninput, nfreeze, ndim, nshape, nmax_shape;
  unsigned old_names;    /* rows of the table of aliases that were used */
  const char *writes[4]; /* files that compile, opt and verify will write */
  int nwrites;
};

struct Verb {
  const char *name;
  int (*run)(const Args *a); /* returns the exit code */
  const char *options;       /* names of the long options it takes, separated by spaces */
  const char *usage, *text;  /* one line each */
  int wants_model;           /* 0: none; 1; MODELS_MAX: that many at most */
  const char *group;         /* heading in ingot --help; NULL: the last one */
};

/* cli_args.c: fills a from argv; 0, or 2 after a message on stderr. */
int args_read(Args *a, const Verb *v, int argc, char **argv);
void args_help(const Verb *v, int all, FILE *to); /* all: not only the common options */
/* An option as a verb takes it. */
typedef struct OptionInfo {
  const char *name, *brief; /* brief: NULL: none */
  const char *value;        /* what stands for its value; NULL: it takes none; [=X]: it may */
  const char *text;
  const char *words; /* that its value may be, separated by blanks; NULL: others */
  int is_list;       /* may be repeated */
  int is_taken;      /* 0: not by this verb */
} OptionInfo;
int args_option(const Verb *v, int i, OptionInfo *out); /* 0: there are no more */
void args_engines(const Verb *v, FILE *to);             /* those it takes, a blank before each */

/* cli_suggest.c */
int is_one_of(const char *words, const char *word); /* words: separated by blanks */
/* Appends "; did you mean ..." for a concept that ingot names otherwise; 0: unknown.
 * `said` is without dashes, `value` the next word or NULL. */
int suggest_option(const Verb *v, const char *said, const char *value, char *to, size_t n);
int suggest_verb(const char *said); /* prints "ingot: no verb ..." with proposals; exit code */

/* The first engine with one of the flags. */
const char *engine_with(unsigned flags);
/* Warns if --threads has no effect on the engine. */
void warn_unused_threads(const Args *a, const char *engine);

/* cli_verbs.c */
extern const Verb verb_table[];
extern const int verb_count;
/* Prints the messages of m on stderr. */
void print_messages(const Ingot *m, int quiet);
/* After a failure: the same command with options that would have made it succeed, if they are
 * known. */
void print_hint(const Ingot *m, const Args *a);

/* Says which files will be written, opens the model and passes on everything the user said about
 * its inputs. */
IngotStatus prepare(Ingot *m, const Args *a);
/* The same for the models behind the first, which become entries of one file. */
IngotStatus prepare_more_models(Ingot *m, const Args *a);
/* For verbs that open the model several times: keeps standard input, if it is that. 0, or the exit
 * code after a message. */
int buffer_stdin_model(Args *a);
/* As many runs as --steps says, each from the state of the one before. */
IngotStatus run_steps(Ingot *m, const Args *a, const char *engine);
IngotStatus tune(Ingot *m, const Args *a, const char *march); /* if --tune was given */
/* Prefix of C names: given, or made of the name of the output. */
void c_prefix(const Args *a, char *to, size_t n);
/* Files of C: OUT.c, OUT.h and, unless there is nothing in it, OUT.bin. */
typedef struct OutputFiles {
  char source[4096], header[4096], weights[4096], cpp[4096];
} OutputFiles;
int is_c_name(const char *output); /* OUT.c, and not too long */
void c_files(OutputFiles *t, const char *output);
Ingot *new_model_or_report(void);
int refuse(const Args *a, const char *why); /* says it, returns INGOT_USAGE */
int refuse_option(const Args *a, const char *name, const char *why);
int finish(Ingot *m, const Args *a,
           IngotStatus s); /* says the messages, frees m, returns the exit code */

/* cli_watch.c */
Ingot *new_model(void); /* NULL: no memory; what it leaves lying about is removed on a signal */
void watch_task(const char *what); /* shown on a terminal when it takes long; NULL: done */
/* SIGINT sets *flag instead of ending the process; NULL: as before. */
void watch_interrupt(volatile int *flag);
/* On stderr, "ingot: " in front; heads that mean trouble are coloured on a terminal. */
void watch_line(const char *head, const char *text);
void watch_error(const char *text);
void watch_progress(
    const char *text);          /* the line of progress says this; NULL: the task and its step */
void watch_line_buffered(void); /* standard output appears line by line, in a file too */
void watch_restore_signals(
    void); /* signals do what they do by themselves: another program goes on */
void watch_set_verbosity(int quiet,
                         int verbose); /* no progress; or times of what was waited for, too */

/* cli_script.c */
int is_script(const char *path); /* a program of the language, by its name */
int run_script(const Args *a);
int forbids_files(const Args *a);                 /* a program may not open files */
int has_model_options(const Args *a);             /* that programs do not take, --output apart */
IngotStatus open_script(Ingot *m, const Args *a); /* a function of it as the model */
int verb_check(const Args *a);
int verb_repl(const Args *a);
int verb_fmt(const Args *a);

/* cli_build.c */
int verb_build(const Args *a);

/* cli_export.c */
int verb_export(const Args *a);

/* tools/speak.h: the program that talks, around the interpreter. Its exit code; below 0: the
 * messages of m say what failed. */
int speak(Ingot *m, int argc, char **argv);
char *speak_line(const char *prompt); /* that a person types; NULL: there are no more */

/* cli_play.c */
int verb_play(const Args *a);
int clean_cache(const Args *a);  /* --clean */
int bench_player(const Args *a); /* the exit code; -1: the model is none that talks */

/* cli_verify.c */
int verb_verify(const Args *a);
double grad_atol(Ingot *m, const IngotTensor *want, const IngotTensor *truth);

/* cli_bisect.c */
int verify_nodes(const Args *a);  /* --per-node */
int verify_bisect(const Args *a); /* --bisect */

/* cli_bench.c */
int verb_bench(const Args *a);

/* cli_print.c */
int name_width(const char *s);               /* columns that print_name takes */
void print_name(const char *s, int columns); /* of a model, padded with blanks */
/* `before` as it is, then s in quotes where a shell would see more in it */
void shell_word(const char *before, const char *s, FILE *to);
void json_text(const char *before, const char *s); /* the same in those of JSON */
void json_diff(const IngotDiff *d);
IngotStatus json_memory(Ingot *m); /* what the model needs, as further members of an object */
void json_real(const char *before, double x); /* null where JSON has no number */
int wants_colour(FILE *to);                   /* a terminal, and NO_COLOR says nothing else */
const char *verdict(int ok);                  /* of a comparison, for standard output */

/* Text for standard output. More than a person reads, 1 MB, is refused on a terminal. */
int fits_terminal(const Args *a, const char *what, size_t n); /* 0: after a message */
IngotStatus print_result(const Args *a, const char *what, const char *text, size_t n);

/* cli_opt.c */
int verb_opt(const Args *a);

/* cli_tokens.c */
int verb_tokenize(const Args *a);
char *read_all(const char *path, size_t *n); /* "-": standard input; NULL: it cannot be read */
IngotStatus set_text_input(Ingot *m, const Args *a); /* --text as the input ids of the open model */

/* cli_perplexity.c */
int verb_perplexity(const Args *a);

/* cli_quantize.c */
int verb_quantize(const Args *a);

/* cli_train.c */
int verb_train(const Args *a);

/* cli_complete.c */
int verb_completions(const Args *a);

/* cli_report.c */
int inspect_html(const Args *a); /* inspect --html */
/* Has the open model, of which nothing was made yet, shown by the file of --html. */
IngotStatus write_html_report(Ingot *m, const Args *a, const IngotReport *o);

/* cli_demo.c */
int verb_demo(const Args *a);

#endif
