/* join [--apart] [-NAME...] IN OUT FOLDER...: a C file with its includes expanded.
 *
 * A build tool, run by the Makefile. Quoted names are searched in the folders, in order. A header
 * is expanded once, a table (.def) at every include. System headers stay; -NAME leaves out an
 * include of that name, quoted or not. With --apart, static names of C files in folders are made
 * unique: f of dir/x.c is x__f in OUT. All functions except main become static, so that a C
 * compiler leaves out those that are not used. Names im_* of ir/mathlib*.h become sim_*, since
 * generated C that follows defines im_*. On failure it exits with 1 and leaves no OUT. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 128, NAME = 200, LONGEST = 4096, STATICS = 200 };

typedef struct Join {
  FILE *out;
  char **folder, **without;
  int nfolder, nwithout, depth, apart;
  char seen[MOST][NAME];
  int nseen;
} Join;

/* Static names of one C file. */
typedef struct StaticNames {
  char file[NAME]; /* "": none are renamed */
  char name[STATICS][NAME];
  int n;
} StaticNames;

static int join(Join *j, const char *name);

static FILE *find(const Join *j, const char *name) {
  char path[LONGEST];
  FILE *f = fopen(name, "r");
  for (int i = 0; !f && i < j->nfolder; i++) {
    snprintf(path, sizeof path, "%s/%s", j->folder[i], name);
    f = fopen(path, "r");
  }
  return f;
}

static int ends_with(const char *s, const char *end) {
  size_t n = strlen(s), k = strlen(end);
  return n >= k && !strcmp(s + n - k, end);
}

/* ---- names ---- */

static int is_word(int c) {
  return isalnum(c) || c == '_';
}

/* Records the static name that a line at column 0 defines: its last word before ( [ = ; */
static void note(StaticNames *a, const char *line) {
  const char *s = strncmp(line, "__attribute__", 13) ? line : strstr(line, " static ");
  if (s && *s == ' ') s++;
  if (!s || (strncmp(s, "static ", 7) != 0 && strncmp(s, "} ", 2) != 0)) return;
  size_t n = strcspn(s, "([=;{"), k;
  if (!s[n] || s[n] == '{') return;
  while (n && !is_word(s[n - 1])) n--;
  for (k = n; k && is_word(s[k - 1]);) k--;
  if (n == k || n - k >= NAME || a->n == STATICS) return;
  memcpy(a->name[a->n], s + k, n - k);
  a->name[a->n++][n - k] = 0;
}

static int is_static(const StaticNames *a, const char *s, size_t n) {
  for (int i = 0; i < a->n; i++)
    if (strlen(a->name[i]) == n && !memcmp(a->name[i], s, n)) return 1;
  return 0;
}

/* True if the line declares or defines a function with external linkage: at column 0 a type, then
 * the name before the first parenthesis. A macro call has the parenthesis after its first word. */
static int is_exported(const char *line) {
  static const char *const other[] = {"static ", "typedef ", "extern ", "return ", "else ", "#"};
  size_t n = strcspn(line, "(=;{,\\"), word = 0;
  for (size_t i = 0; i < sizeof other / sizeof *other; i++)
    if (!strncmp(line, other[i], strlen(other[i]))) return 0;
  while (is_word((unsigned char)line[word])) word++;
  if (!word || word == n || line[n] != '(' || !is_word((unsigned char)line[n - 1])) return 0;
  return n < 5 || strncmp(line + n - 5, " main", 5) != 0;
}

/* Writes the line with names replaced, except in quotes and fields. */
static void put_apart(FILE *out, const StaticNames *a, const char *line) {
  if (is_exported(line)) fputs("static ", out);
  for (const char *s = line; *s;) {
    size_t n = 0;
    if (*s == '"') {
      for (n = 1; s[n] && s[n] != '"'; n++)
        if (s[n] == '\\' && s[n + 1]) n++;
      n += s[n] == '"';
    } else if (*s == '\'' && s[1] && (s[1] == '\\' ? s[2] && s[3] == '\'' : s[2] == '\'')) {
      n = s[1] == '\\' ? 4 : 3;
    } else {
      while (is_word((unsigned char)s[n])) n++;
    }
    int field = s > line && (s[-1] == '.' || (s[-1] == '>' && s > line + 1 && s[-2] == '-'));
    if (is_word((unsigned char)*s) && !field && is_static(a, s, n)) fprintf(out, "%s__", a->file);
    if (!strncmp(s, "im_", 3) || !strncmp(s, "imk_", 4)) putc('s', out);
    n += !n;
    fwrite(s, 1, n, out);
    s += n;
  }
}

static void apart(StaticNames *a, FILE *in, const char *name) {
  static char line[LONGEST];
  const char *slash = strrchr(name, '/');
  a->n = 0;
  a->file[0] = 0;
  if (!slash || !ends_with(name, ".c")) return;
  snprintf(a->file, sizeof a->file, "%.*s", (int)(strlen(slash + 1) - 2), slash + 1);
  while (fgets(line, sizeof line, in)) note(a, line);
  rewind(in);
}

/* ---- files ---- */

/* 1: the line is an include that was left out or expanded. */
static int included(Join *j, const char *line, int *bad) {
  char name[LONGEST];
  int own = sscanf(line, "#include \"%4000[^\"]\"", name) == 1;
  if (!own && sscanf(line, "#include <%4000[^>]>", name) != 1) return 0;
  for (int i = 0; i < j->nwithout; i++)
    if (!strcmp(name, j->without[i] + 1)) return 1;
  if (!own) return 0;
  size_t n = strlen(name);
  if (!ends_with(name, ".def")) {
    for (int i = 0; i < j->nseen; i++)
      if (!strcmp(j->seen[i], name)) return 1;
    if (j->nseen == MOST || n >= NAME) return *bad = 1;
    memcpy(j->seen[j->nseen++], name, n + 1);
  }
  *bad = join(j, name);
  return 1;
}

static int join(Join *j, const char *name) {
  static char line[LONGEST];
  StaticNames a = {.n = 0};
  FILE *in = find(j, name);
  int bad = 0;
  if (!in || ++j->depth > 20) {
    fprintf(stderr, "join: %s: %s\n", name, in ? "includes itself" : strerror(errno));
    if (in) fclose(in);
    return 1;
  }
  if (j->apart) apart(&a, in, name);
  while (!bad && fgets(line, sizeof line, in)) {
    if (included(j, line, &bad)) continue;
    if (j->apart)
      put_apart(j->out, &a, line);
    else
      fputs(line, j->out);
  }
  j->depth--;
  fclose(in);
  return bad;
}

int main(int argc, char **argv) {
  Join j = {.without = argv + 1};
  if (argc > 1 && !strcmp(argv[1], "--apart")) j.apart = 1, j.without++, argc--, argv++;
  while (j.nwithout + 1 < argc && *j.without[j.nwithout] == '-') j.nwithout++;
  argc -= j.nwithout;
  argv += j.nwithout;
  if (argc < 4) return fprintf(stderr, "usage: join [--apart] [-NAME...] IN OUT FOLDER...\n"), 1;
  j.out = fopen(argv[2], "w");
  j.folder = argv + 3;
  j.nfolder = argc - 3;
  if (!j.out) return fprintf(stderr, "join: %s: %s\n", argv[2], strerror(errno)), 1;
  int bad = join(&j, argv[1]);
  bad |= fclose(j.out) != 0;
  if (bad) remove(argv[2]);
  return bad;
}
