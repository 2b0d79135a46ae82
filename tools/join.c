/* join IN OUT FOLDER...: a C file with the texts of what it includes in place of that.
 *
 * A build tool, run by the Makefile. Names in quotes are looked for in the folders, in order; a
 * header is taken once, a table (.def) wherever it is asked for. Headers of the system stay, but
 * math.h and string.h, and what a file that stands alone does without is left out: those of ingot's
 * own that are in `instead`. Exits 1 and leaves no OUT on failure.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 64, NAME = 200, LONGEST = 4096 };

static const char *const instead[] = {"ir/ir.h", "back/back.h"};

typedef struct Join {
  FILE *out;
  char **folder;
  int nfolder, depth;
  char seen[MOST][NAME];
  int nseen;
} Join;

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

/* 1: the line includes something that was put in its place. */
static int included(Join *j, const char *line, int *bad) {
  char name[LONGEST];
  if (!strncmp(line, "#include <math.h>", 17) || !strncmp(line, "#include <string.h>", 19))
    return 1;
  if (sscanf(line, "#include \"%4000[^\"]\"", name) != 1) return 0;
  for (size_t i = 0; i < sizeof instead / sizeof *instead; i++)
    if (!strcmp(name, instead[i])) return 1;
  size_t n = strlen(name);
  if (n < 4 || strcmp(name + n - 4, ".def") != 0) {
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
  FILE *in = find(j, name);
  int bad = 0;
  if (!in || ++j->depth > 20) {
    fprintf(stderr, "join: %s: %s\n", name, in ? "includes itself" : strerror(errno));
    if (in) fclose(in);
    return 1;
  }
  while (!bad && fgets(line, sizeof line, in))
    if (!included(j, line, &bad)) fputs(line, j->out);
  j->depth--;
  fclose(in);
  return bad;
}

int main(int argc, char **argv) {
  if (argc < 4) return fprintf(stderr, "usage: join IN OUT FOLDER...\n"), 1;
  Join j = {.out = fopen(argv[2], "w"), .folder = argv + 3, .nfolder = argc - 3};
  if (!j.out) return fprintf(stderr, "join: %s: %s\n", argv[2], strerror(errno)), 1;
  int bad = join(&j, argv[1]);
  bad |= fclose(j.out) != 0;
  if (bad) remove(argv[2]);
  return bad;
}
