/* cli.h: the command line. Includes only ingot.h.
 */
#ifndef INGOT_CLI_H
#define INGOT_CLI_H

#include "ingot.h"

#include <stdio.h>

typedef struct Args Args;
typedef struct Verb Verb;

/* A model on the command line, and how many words of each list come before it. */
typedef struct ModelArgs {
  const char *path;
  int dim, shape, max_shape, state, freeze, input;
} ModelArgs;
enum { MODELS_MAX = 16 };

/* Options of all verbs; a verb refuses those its row does not list. */
struct Args {
  const char *verb; /* with the words after it, for hints */
  const char *const *word;
  int nword;
  const char *model; /* the first one */
  ModelArgs models[MODELS_MAX];
  int nmodels;
  const void *bytes; /* a model read from stdin, if it is needed more than once */
  size_t nbytes;
  const char *engine, *data, *inputs, *output;
  const char *name, *function;
  const char *optimize_for, *ram;
  const char *march, *precision, *threads_api, *python, *library;
  const char *tune, *tuned; /* tune: "" for the default file */
  const char *start, *stop, *skip, *dump, *constants;
  const char *text, *ids;
  const char *think, *file;
  const char *prompt, *system, *bake_prompt, *date, *grad, *train;
  const char *temperature, *top_k, *top_p, *min_p, *repeat_penalty, *frequency_penalty,
      *presence_penalty; /* passed on to the chat program */
  unsigned long long max_tokens;
  int raw, clean, list, conversation, single_turn;
  double rtol, atol;
  unsigned long long seed, steps, max_steps, threads, threads_grain;
  unsigned long long context, chunk;
  unsigned long long port, slots, queue, timeout;
  const char *host, *api_key, *api_key_file;
  int every_token;
  const char *cache, *activations;
  const char *keep_code; /* "": the default folder */
  const char *project;
  int presets, verbose;
  int explain, precise, choices, emit;
  int json, check, time, quiet, help, help_all, weights_file, no_selftest, per_node, bisect;
  int per_kernel, bench, cpp;
  const char *html;
  int special, bare;
  int files, no_files;
  const char *emit_c;
  const char *label;
  const char *exclude[256];
  int nexclude;
  const char *state[64];
  int nstate;
  const char *input[256], *freeze[64], *dim[256], *shape[64], *max_shape[64];
  int ninput, nfreeze, ndim, nshape, nmax_shape;
  unsigned long long old_names; /* bit set of used aliases that are old names */
  const char *writes[4];        /* files that compile, opt and verify will write */
  int nwrites;
  /* Options of these verbs, as ingot.h declares them. The verb fills the rest. */
  IngotBuild build;
  IngotQuantize quantize;
  IngotTrain training;
};

struct Verb {
  const char *name;
  int (*run)(const Args *a); /* returns the exit code */
  const char *options;       /* names of the long options it takes, separated by spaces */
  const char *usage, *text;  /* one line each */
  int wants_model;           /* maximum number of models: 0, 1 or MODELS_MAX */
  const char *group;         /* heading in ingot --help; NULL: the last one */
};

/* cli_args.c: fills a from argv; 0, or 2 after a message on stderr. */
int args_read(Args *a, const Verb *v, int argc, char **argv);
void args_help(const Verb *v, int all, FILE *to); /* all: not only the common options */
/* The first of these options, separated by blanks, that was given; NULL: none. Not for real
 * numbers, which have defaults. */
const char *args_first_given(const Args *a, const char *names);
/* An option as a verb takes it. */
typedef struct OptionInfo {
  const char *name, *brief; /* brief: letter or NULL */
  const char *value;        /* placeholder of its value; NULL: takes none; [=X]: optional */
  const char *text;
  const char *words;                   /* possible values, separated by blanks; NULL: free text */
  int is_list;                         /* repeatable */
  int is_taken;                        /* 0: this verb does not take it */
  char text_room[512], word_room[256]; /* memory of texts that list the targets */
} OptionInfo;
int args_option(const Verb *v, int i, OptionInfo *out); /* 0: after the last */
void args_engines(const Verb *v, FILE *to);             /* engines of a verb, a blank before each */
int takes_engine(const Verb *v, const IngotEngine *e);  /* does the verb take this engine? */

/* cli_suggest.c */
int is_one_of(const char *words, const char *word); /* words: separated by blanks */
/* Appends "; did you mean ..." for a concept that ingot names differently; 0: unknown. `word` is
 * without dashes, `value` the next word or NULL. */
int suggest_option(const Verb *v, const char *word, const char *value, char *to, size_t n);
int suggest_verb(const char *word); /* prints "ingot: no command ..." with proposals; exit code */

/* The first engine with one of the flags. */
const char *engine_with(unsigned flags);
/* Warns if --threads has no effect on the engine. */
void warn_unused_threads(const Args *a, const char *engine);

/* cli_verbs.c */
extern const Verb verb_table[];
extern const int verb_count;
/* Prints the messages of m on stderr. */
void print_messages(const Ingot *m, int quiet);
/* After a failure: the same command with options that would help, if known. */
void print_hint(const Ingot *m, const Args *a);

/* Announces output files, opens the model and applies all options on its inputs. */
IngotStatus cli_prepare(Ingot *m, const Args *a);
/* Adds the models after the first, which become entries of one file. */
IngotStatus prepare_more_models(Ingot *m, const Args *a);
/* Verbs that open the model several times: buffers a model on stdin. Returns 0, or the exit code
 * after a message. */
int buffer_stdin_model(Args *a);
/* Runs --steps times, each with the state of the previous run. */
IngotStatus run_steps(Ingot *m, const Args *a, const char *engine);
IngotStatus cli_tune(Ingot *m, const Args *a, const char *march); /* if --tune was given */
/* Prefix of C names: given, or from the name of the output. */
void c_prefix(const Args *a, char *to, size_t n);
/* C files: OUT.c, OUT.h and, unless empty, OUT.bin. */
typedef struct OutputFiles {
  char source[4096], header[4096], weights[4096], cpp[4096];
} OutputFiles;
int is_c_name(const char *output); /* OUT.c, of limited length */
void c_files(OutputFiles *t, const char *output);
Ingot *new_model_or_report(void);
int cli_refuse(const Args *a, const char *why); /* prints a message, returns INGOT_USAGE */
int refuse_option(const Args *a, const char *name, const char *why);
int cli_finish(Ingot *m, const Args *a,
               IngotStatus s); /* prints messages, frees m, returns the exit code */

/* cli_watch.c */
Ingot *new_model(void);            /* NULL: out of memory; a signal removes its temporary files */
void watch_task(const char *what); /* task shown on a terminal when it takes long; NULL: done */
/* SIGINT sets *flag instead of ending the process; NULL: restore. */
void watch_interrupt(volatile int *flag);
/* Prints "ingot: ", head and text to stderr; "warning: " is colored on a terminal. */
void watch_line(const char *head, const char *text);
/* A signal says whether this file keeps the training; NULL: none. */
void watch_checkpoint(const char *path);
void watch_error(const char *text);
void watch_progress(const char *text); /* text of the progress line; NULL: the task and its step */
void watch_line_buffered(void);        /* flush standard output after every line */
void watch_yield_signals(void);        /* before the main thread handles signals */
void watch_restore_signals(void);      /* before another program is executed */
void watch_set_verbosity(int quiet, int verbose); /* no progress; or also times of steps */

/* cli_script.c */
int is_script(const char *path); /* by its suffix */
int run_script(const Args *a);
int forbids_files(const Args *a);     /* may the program not access files? */
int has_model_options(const Args *a); /* options other than --output that programs do not take */
IngotStatus open_script(Ingot *m, const Args *a); /* opens a function of it as the model */
int verb_check(const Args *a);
int verb_repl(const Args *a);
int verb_fmt(const Args *a);

/* cli_build.c */
int verb_build(const Args *a);

/* cli_export.c */
int verb_export(const Args *a);

/* tools/play_inside.h: the chat program, with the bytecode interpreter. Returns its exit code;
 * below 0: failed with messages in m. */
int play_model_here(Ingot *m, int argc, char **argv);
char *play_read_line(const char *prompt); /* reads a line from the user; NULL: end of input */

/* cli_play.c */
int verb_play(const Args *a);
int verb_serve(const Args *a);
unsigned long long default_threads(void); /* cli_play.c: number of cores, at most 16 */
int clean_cache(const Args *a);           /* --clean */
int bench_player(const Args *a);          /* exit code; -1: not a language model */

/* cli_verify.c */
int verb_verify(const Args *a);
double grad_atol(Ingot *m, const IngotTensor *want, const IngotTensor *truth);

/* cli_bisect.c */
int verify_nodes(const Args *a);  /* --per-node */
int verify_bisect(const Args *a); /* --bisect */

/* cli_bench.c */
int verb_bench(const Args *a);
/* Is the default C compiler missing? If so, prints a warning and the text `instead`. */
int cli_lacks_compiler(const Args *a, const char *instead);

/* cli_print.c */
int name_width(const char *s);               /* columns of print_name */
void print_name(const char *s, int columns); /* padded with blanks */
/* Prints `before`, then s, quoted for the shell if necessary. */
void shell_word(const char *before, const char *s, FILE *to);
void json_text(const char *before, const char *s); /* quoted for JSON */
void json_diff(const IngotDiff *d);
IngotStatus json_memory(Ingot *m);            /* memory of the model as members of an object */
void json_real(const char *before, double x); /* null for NaN and infinity */
/* Prints by a form such as "%*.2f"; NaN as "-". */
void print_number(const char *form, int columns, double x);
int wants_color(FILE *to);       /* a terminal, and NO_COLOR is not set */
const char *cli_verdict(int ok); /* "ok" or "DIFFERS", colored on a terminal */

/* Prints text to standard output. More than 1 MB is refused on a terminal. */
int fits_terminal(const Args *a, const char *what, size_t n); /* 0: after a message */
IngotStatus print_result(const Args *a, const char *what, const char *text, size_t n);

/* cli_opt.c */
int verb_opt(const Args *a);

/* cli_tokens.c */
int verb_tokenize(const Args *a);
int verb_embed(const Args *a);
const char *native_engine(const Args *a); /* --engine, else c, else what works without a compiler */
char *read_all(const char *path, size_t *n);         /* "-": standard input; NULL: cannot be read */
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
/* Writes the HTML report of the open model, before anything else is made from it. */
IngotStatus write_html_report(Ingot *m, const Args *a, const IngotReport *o);

/* cli_demo.c */
int verb_demo(const Args *a);

#endif
