/* cli_complete.c: shell completion scripts.
 *
 * In: the tables of verbs and options. Out: a script for bash, zsh or fish on standard output. It
 * completes verbs, then options of the verb, then possible values of an option, or files.
 */
#include "cli/cli.h"

#include <string.h>

static int is_file(const OptionInfo *o) {
  static const char *const names[] = {"FILE",   "PATH",  "DIR",       "OUT",
                                      "[=FILE", "[=DIR", "[=WORKLOAD"};
  for (size_t i = 0; o->value && i < sizeof names / sizeof *names; i++)
    if (!strncmp(o->value, names[i], strlen(names[i]))) return 1;
  return 0;
}

static int is_optional(const OptionInfo *o) {
  return o->value && *o->value == '[';
}

static int takes_pass(const Verb *v, const OptionInfo *o) {
  static const char *const names[] = {"start", "stop", "skip", "dump"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(o->name, names[i])) return !strcmp(v->name, "opt");
  return 0;
}

/* Prints the names of all passes. */
static void put_passes(void) {
  const char *text, *line;
  size_t n;
  Ingot *m = ingot_new(NULL);
  if (m && !ingot_pass_list(m, &text, &n))
    for (line = text; *line; line += strcspn(line, "\n") + 1)
      printf(" %.*s", (int)strcspn(line, " "), line);
  ingot_free(m);
}

static int has_words(const Verb *v, const OptionInfo *o) {
  return o->words || takes_pass(v, o) || !strcmp(o->name, "engine");
}

static void put_words(const Verb *v, const OptionInfo *o) {
  if (o->words) printf(" %s", o->words);
  if (takes_pass(v, o)) put_passes();
  if (!strcmp(o->name, "engine")) args_engines(v, stdout);
}

/* Words that are possible instead of a file. */
static const char *verb_words(const Verb *v) {
  return !strcmp(v->name, "completions") ? "bash zsh fish" : NULL;
}

/* Prints text between single quotes, with a backslash before special characters. */
static void put_text(const char *text, const char *special, int doubled) {
  for (; *text; text++) {
    if (*text == '\'')
      fputs(doubled ? "\\'" : "'\\''", stdout);
    else if (strchr(special, *text))
      printf("\\%c", *text);
    else
      putchar(*text);
  }
}

/* ---- bash ---- */

static void bash_values(const Verb *v) {
  OptionInfo o;
  for (int i = 0; args_option(v, i, &o); i++) {
    if (!o.is_taken || !o.value || is_optional(&o) || is_file(&o)) continue;
    printf("    %s:--%s", v->name, o.name);
    if (o.brief) printf("|%s:-%s", v->name, o.brief);
    printf(") words='");
    if (has_words(v, &o)) put_words(v, &o);
    puts("'; value=1 ;;");
  }
}

static void bash_script(void) {
  OptionInfo o;
  puts("# bash completion for ingot, written by `ingot completions bash`\n"
       "_ingot() {\n"
       "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} "
       "verb=${COMP_WORDS[1]}\n"
       "  local words='' value=\n"
       "  COMPREPLY=()\n"
       "  # `--march=avx2` arrives as three words\n"
       "  if [[ $cur == '=' ]]; then cur=; elif [[ $prev == '=' ]]; then "
       "prev=${COMP_WORDS[COMP_CWORD-2]}; fi");
  fputs("  if ((COMP_CWORD == 1)); then\n    words='", stdout);
  for (int i = 0; i < verb_count; i++) printf("%s ", verb_table[i].name);
  puts("--help --version'\n"
       "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n    return\n  fi\n"
       "  case $verb:$prev in");
  for (int i = 0; i < verb_count; i++) bash_values(&verb_table[i]);
  puts("  esac\n"
       "  if [[ $value ]]; then COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")); return; fi\n"
       "  case $verb in");
  for (int k = 0; k < verb_count; k++) {
    const Verb *v = &verb_table[k];
    if (verb_words(v))
      printf("    %s) [[ $cur == -* ]] || words='%s' ;;&\n", v->name, verb_words(v));
    printf("    %s) [[ $cur != -* ]] || words='", v->name);
    for (int i = 0; args_option(v, i, &o); i++)
      if (o.is_taken) printf("--%s ", o.name);
    puts("' ;;");
  }
  puts("  esac\n"
       "  [[ -z $words ]] || COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
       "}\n"
       "complete -o bashdefault -o default -F _ingot ingot");
}

/* ---- zsh ---- */

static void zsh_option(const Verb *v, const OptionInfo *o) {
  const char *many = o->is_list ? "*" : "", *sign = !o->value ? "" : is_optional(o) ? "=-" : "=";
  for (int brief = 0; brief < (o->brief ? 2 : 1); brief++) {
    printf(" \\\n        '%s", many);
    if (o->brief && !o->is_list) printf("(-%s --%s)", o->brief, o->name);
    if (brief)
      printf("-%s%s[", o->brief, o->value ? "+" : "");
    else
      printf("--%s%s[", o->name, sign);
    put_text(o->text, "[]:\\", 0);
    putchar(']');
    if (o->value) {
      printf("%s:", is_optional(o) ? ":" : "");
      put_text(o->value, "[]:\\()", 0);
      putchar(':');
    }
    if (o->value && has_words(v, o)) {
      putchar('(');
      put_words(v, o);
      putchar(')');
    } else if (o->value) {
      fputs(is_file(o) ? "_files" : " ", stdout);
    }
    putchar('\'');
  }
}

static void zsh_script(void) {
  OptionInfo o;
  puts("#compdef ingot\n# zsh completion for ingot, written by `ingot completions zsh`\n"
       "_ingot() {\n  local -a verbs\n  verbs=(");
  for (int i = 0; i < verb_count; i++) {
    printf("    '%s:", verb_table[i].name);
    put_text(verb_table[i].text, ":\\", 0);
    puts("'");
  }
  puts("  )\n"
       "  if (( CURRENT == 2 )); then _describe verb verbs; _files; return; fi\n"
       "  local verb=$words[2]\n  shift words\n  (( CURRENT-- ))\n"
       "  case $verb in");
  for (int k = 0; k < verb_count; k++) {
    const Verb *v = &verb_table[k];
    printf("    %s)\n      _arguments -S", v->name);
    for (int i = 0; args_option(v, i, &o); i++)
      if (o.is_taken) zsh_option(v, &o);
    if (verb_words(v))
      printf(" \\\n        '*:word:(%s)' ;;\n", verb_words(v));
    else
      puts(" \\\n        '*:file:_files' ;;");
  }
  puts("    *) _files ;;\n  esac\n}\n_ingot \"$@\"");
}

/* ---- fish ---- */

static void fish_option(const Verb *v, const OptionInfo *o) {
  printf("complete -c ingot -n '__fish_seen_subcommand_from %s' -l %s", v->name, o->name);
  if (o->brief) printf(" -s %s", o->brief);
  if (o->value && !is_optional(o)) fputs(is_file(o) ? " -r" : " -x", stdout);
  if (o->value && has_words(v, o)) {
    fputs(" -a '", stdout);
    put_words(v, o);
    putchar('\'');
  }
  fputs(" -d '", stdout);
  put_text(o->text, "\\", 1);
  puts("'");
}

static void fish_script(void) {
  OptionInfo o;
  puts("# fish completion for ingot, written by `ingot completions fish`");
  for (int k = 0; k < verb_count; k++) {
    const Verb *v = &verb_table[k];
    printf("complete -c ingot -n __fish_use_subcommand -a %s -d '", v->name);
    put_text(v->text, "\\", 1);
    puts("'");
    if (verb_words(v))
      printf("complete -c ingot -f -n '__fish_seen_subcommand_from %s' -a '%s'\n", v->name,
             verb_words(v));
    for (int i = 0; args_option(v, i, &o); i++)
      if (o.is_taken) fish_option(v, &o);
  }
}

int verb_completions(const Args *a) {
  static const struct {
    const char *name;
    void (*script)(void);
  } shells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
  for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
    if (!strcmp(a->model, shells[i].name)) {
      shells[i].script();
      return 0;
    }
  fprintf(stderr, "ingot completions: %s: expected bash, zsh or fish\n", a->model);
  return INGOT_USAGE;
}
