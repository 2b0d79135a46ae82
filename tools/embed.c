/* embed MANIFEST SECTION OUT: makes a C file from files of the tree, as a section of the manifest
 * describes (tools/embed.txt has the grammar), and OUT.d, the files it was made from, for make.
 *
 * A build tool, run by the Makefile on the build machine. Section [x] becomes
 *
 *   const unsigned char x[]; const size_t x_size;
 *
 * as numbers, since C guarantees only 4095 characters per string. The array is aligned like a
 * mapped file, for readers that use weights in place. With the directive `source` OUT is the text
 * itself. The output depends only on the contents of the files. On failure it exits with 1 and
 * leaves no OUT. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 4096, NAME = 200, STATICS = 200, DEPTH = 20, INPUTS = 512 };

static const char *const folders[] = {"", "src/", "tools/"};

typedef struct Text {
  char *at;
  size_t n, room;
} Text;

typedef struct Embed {
  const char *manifest;
  char input[INPUTS][NAME]; /* files read */
  int ninput, depth, source;
  /* state of the join directive being run */
  char *without[8];
  int nwithout, apart, first; /* first: input[first ..] are expanded already */
} Embed;

static _Noreturn void die(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  fputs("embed: ", stderr);
  vfprintf(stderr, fmt, args);
  fputs("\n", stderr);
  va_end(args);
  exit(1);
}

static void put(Text *t, const void *at, size_t n) {
  if (t->n + n > t->room) t->at = realloc(t->at, t->room = 2 * (t->n + n));
  if (!t->at) die("no memory");
  if (n) memcpy(t->at + t->n, at, n);
  t->n += n;
}

static void puts_to(Text *t, const char *s) {
  put(t, s, strlen(s));
}

/* Records a file. 1: an earlier one from `first` on has this name. */
static int is_known(Embed *e, const char *path, int first) {
  for (int i = first; i < e->ninput; i++)
    if (!strcmp(e->input[i], path)) return 1;
  if (e->ninput == INPUTS || strlen(path) >= NAME) die("%s: too many files, or a long name", path);
  strcpy(e->input[e->ninput++], path);
  return 0;
}

/* Reads a file, searched in the folders. found: its path. */
static Text read_file(const char *name, char found[NAME]) {
  Text t = {0};
  FILE *in = NULL;
  for (size_t i = 0; !in && i < sizeof folders / sizeof *folders; i++) {
    snprintf(found, NAME, "%s%s", folders[i], name);
    in = fopen(found, "rb");
  }
  if (!in) die("%s: %s", name, strerror(errno));
  char piece[LONGEST];
  for (size_t n; (n = fread(piece, 1, sizeof piece, in)) > 0;) put(&t, piece, n);
  if (ferror(in)) die("%s: %s", name, strerror(errno));
  fclose(in);
  put(&t, "", 1);
  t.n--;
  return t;
}

static int starts(const char *s, const char *with) {
  return !strncmp(s, with, strlen(with));
}

static int ends_with(const char *s, const char *end) {
  size_t n = strlen(s), k = strlen(end);
  return n >= k && !strcmp(s + n - k, end);
}

static size_t line_length(const char *s) {
  size_t n = strcspn(s, "\n");
  return n + (s[n] == '\n');
}

/* ---- join: includes expanded, static names made unique ---- */

typedef struct StaticNames {
  char file[NAME]; /* "": none are renamed */
  char name[STATICS][NAME];
  int n;
} StaticNames;

static int is_word(int c) {
  return isalnum((unsigned char)c) || c == '_';
}

/* Records the static name that a line at column 0 defines: its last word before ( [ = ; */
static void note(StaticNames *a, const char *line) {
  const char *end = line + strcspn(line, "\n"), *s = line;
  if (starts(line, "__attribute__")) {
    s = strstr(line, " static ");
    if (!s || s > end) return;
    s++;
  }
  if (!starts(s, "static ") && !starts(s, "} ")) return;
  size_t n = strcspn(s, "([=;{\n"), k;
  if (!s[n] || s[n] == '{' || s[n] == '\n') return;
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
  size_t n = strcspn(line, "(=;{,\"\n"), word = 0;
  for (size_t i = 0; i < sizeof other / sizeof *other; i++)
    if (starts(line, other[i])) return 0;
  while (is_word(line[word])) word++;
  if (!word || word == n || line[n] != '(' || !is_word(line[n - 1])) return 0;
  return n < 5 || memcmp(line + n - 5, " main", 5) != 0;
}

/* Writes the line with names replaced, except in quotes and fields. */
static void put_apart(Text *t, const StaticNames *a, const char *line, const char *end) {
  if (is_exported(line)) puts_to(t, "static ");
  for (const char *s = line; s < end;) {
    size_t n = 0;
    if (*s == '"') {
      for (n = 1; s + n < end && s[n] != '"'; n++)
        if (s[n] == '\\' && s + n + 1 < end) n++;
      n += s + n < end;
    } else if (*s == '\'' && s[1] && (s[1] == '\\' ? s[2] && s[3] == '\'' : s[2] == '\'')) {
      n = s[1] == '\\' ? 4 : 3;
    } else {
      while (is_word(s[n])) n++;
    }
    int field = s > line && (s[-1] == '.' || (s[-1] == '>' && s > line + 1 && s[-2] == '-'));
    if (is_word(*s) && !field && is_static(a, s, n)) puts_to(t, a->file), puts_to(t, "__");
    if (starts(s, "im_") || starts(s, "imk_")) puts_to(t, "s");
    n += !n;
    put(t, s, n);
    s += n;
  }
}

static void join(Embed *e, Text *t, const char *name);

/* 1: the line is an include that was left out or expanded. */
static int is_included(Embed *e, Text *t, const char *line) {
  char name[NAME];
  int own = sscanf(line, "#include \"%199[^\"]\"", name) == 1;
  if (!own && sscanf(line, "#include <%199[^>]>", name) != 1) return 0;
  for (int i = 0; i < e->nwithout; i++)
    if (!strcmp(name, e->without[i] + 1)) return 1;
  if (own) join(e, t, name);
  return own;
}

static void join(Embed *e, Text *t, const char *name) {
  static StaticNames names[DEPTH];
  char path[NAME];
  Text in = read_file(name, path);
  if (e->depth == DEPTH) die("%s: includes itself", name);
  StaticNames *a = &names[e->depth];
  a->n = 0;
  a->file[0] = 0;
  const char *slash = strrchr(name, '/');
  if (is_known(e, path, e->first) && !ends_with(name, ".def")) return;
  e->depth++;
  if (e->apart && slash && ends_with(name, ".c")) {
    snprintf(a->file, sizeof a->file, "%.*s", (int)(strlen(slash + 1) - 2), slash + 1);
    for (const char *s = in.at; *s; s += line_length(s)) note(a, s);
  }
  for (const char *s = in.at; *s; s += line_length(s)) {
    if (is_included(e, t, s)) continue;
    if (e->apart)
      put_apart(t, a, s, s + line_length(s));
    else
      put(t, s, line_length(s));
  }
  e->depth--;
  free(in.at);
}

/* ---- other directives ---- */

/* A C file without its includes: those in quotes, or all. guards: INGOT_X_H becomes IG_X_H. */
static void put_c(Text *t, const char *in, int all) {
  for (const char *s = in; *s; s += line_length(s)) {
    size_t n = line_length(s), body = strcspn(s, "\n");
    if (starts(s, all ? "#include" : "#include \"")) continue;
    size_t k = body;
    while (k && (isupper((unsigned char)s[k - 1]) || s[k - 1] == '_')) k--;
    int guard = all && starts(s + k, "INGOT_") && body > k + 8 && !memcmp(s + body - 2, "_H", 2);
    put(t, s, guard ? k : n);
    if (!guard) continue;
    puts_to(t, "IG_");
    put(t, s + k + 6, n - k - 6);
  }
}

/* A page in which ${PATH} stands for a file, with the end of its line. */
static void put_page(Embed *e, Text *t, const char *s) {
  char path[NAME], found[NAME];
  while (*s) {
    size_t n = line_length(s);
    if (sscanf(s, "${%199[^}\n]}", path) == 1 && strchr(path, '/')) {
      Text part = read_file(path, found);
      is_known(e, found, 0);
      put(t, part.at, part.n);
      free(part.at);
    } else {
      put(t, s, n);
    }
    s += n;
  }
}

static void put_section(Embed *e, Text *t, const char *name);

static void run(Embed *e, Text *t, char *line) {
  char *kind = strtok(line, " "), *arg = strtok(NULL, ""), found[NAME];
  if (!arg) arg = "";
  if (!strcmp(kind, "line")) {
    puts_to(t, arg), puts_to(t, "\n");
    return;
  }
  if (!strcmp(kind, "source")) {
    e->source = 1;
    return;
  }
  if (!strcmp(kind, "section")) {
    put_section(e, t, arg);
    return;
  }
  const char *folder = NULL;
  int joins = !strcmp(kind, "join");
  e->nwithout = e->apart = 0;
  e->first = e->ninput;
  for (char *path = strtok(arg, " "); path; path = strtok(NULL, " ")) {
    if (joins && !strcmp(path, "apart")) {
      e->apart = 1;
    } else if (joins && *path == '-') {
      if (e->nwithout == sizeof e->without / sizeof *e->without) die("%s: too many", path);
      e->without[e->nwithout++] = path;
    } else if (joins) {
      join(e, t, path);
    } else if (!strcmp(kind, "tree") && !folder) {
      folder = path;
    } else {
      char whole[NAME];
      snprintf(whole, sizeof whole, "%s%s%s", folder ? folder : "", folder ? "/" : "", path);
      Text in = read_file(whole, found);
      is_known(e, found, 0);
      if (!strcmp(kind, "file") || folder) {
        if (folder) puts_to(t, "==== "), puts_to(t, path), puts_to(t, "\n");
        put(t, in.at, in.n);
      } else if (!strcmp(kind, "c") || !strcmp(kind, "bare")) {
        put_c(t, in.at, *kind == 'b');
      } else if (!strcmp(kind, "page")) {
        put_page(e, t, in.at);
      } else {
        die("%s: unknown directive '%s'", e->manifest, kind);
      }
      free(in.at);
    }
  }
}

static void put_section(Embed *e, Text *t, const char *name) {
  char line[LONGEST], head[NAME];
  int here = 0, any = 0;
  FILE *in = fopen(e->manifest, "r");
  if (!in) die("%s: %s", e->manifest, strerror(errno));
  snprintf(head, sizeof head, "[%s]", name);
  while (fgets(line, sizeof line, in)) {
    line[strcspn(line, "\n")] = 0;
    if (*line == '[')
      any |= here = !strcmp(line, head);
    else if (here && *line && *line != '#')
      run(e, t, line);
  }
  fclose(in);
  if (!any) die("%s: no section %s", e->manifest, head);
}

/* ---- output ---- */

static void write_array(FILE *out, const char *name, const Text *t) {
  fprintf(out, "#include <stddef.h>\n\n");
  fprintf(out, "extern const unsigned char %s[];\nextern const size_t %s_size;\n\n", name, name);
  fprintf(out, "_Alignas(64) const unsigned char %s[] = {", name);
  for (size_t i = 0; i < t->n; i++)
    fprintf(out, "%s%d,", i % 24 ? "" : "\n  ", (unsigned char)t->at[i]);
  fprintf(out, "\n};\n\nconst size_t %s_size = sizeof %s;\n", name, name);
}

/* Files that vanish do not stop make: each one is a target without a rule. */
static void write_inputs(FILE *out, const Embed *e, const char *made) {
  fprintf(out, "%s:", made);
  for (int i = 0; i < e->ninput; i++) fprintf(out, " %s", e->input[i]);
  for (int i = 0; i < e->ninput; i++) fprintf(out, "\n%s:", e->input[i]);
  fprintf(out, "\n");
}

int main(int argc, char **argv) {
  static Embed e;
  Text t = {0};
  char list[LONGEST];
  if (argc != 4) die("usage: embed MANIFEST SECTION OUT");
  e.manifest = argv[1];
  put_section(&e, &t, argv[2]);
  if (!t.n) die("section [%s] is empty", argv[2]);
  snprintf(list, sizeof list, "%s.d", argv[3]);
  FILE *out = fopen(argv[3], "wb"), *inputs = fopen(list, "w");
  int bad = !out || !inputs;
  if (!bad && e.source)
    fwrite(t.at, 1, t.n, out);
  else if (!bad)
    write_array(out, argv[2], &t);
  if (!bad) write_inputs(inputs, &e, argv[3]);
  if (inputs) bad |= fclose(inputs) != 0;
  if (out) bad |= ferror(out), bad |= fclose(out) != 0;
  if (bad) remove(argv[3]), die("cannot write %s: %s", argv[3], strerror(errno));
  free(t.at);
  return 0;
}
