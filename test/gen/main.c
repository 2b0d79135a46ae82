/* main.c: makes cases and judges them, in batches that share one call of the C compiler.
 *
 * gen [--seed N] [--count N] [--only NAMES] [--mode exact|real|raw] [--nodes N] [--cc WORDS]
 *     [--target NAME] [--large] [--batch N] [--print] [--folder PATH] [--ops]
 * gen --replay FILE ...
 *
 * Each batch runs in a process of its own, so that a crash costs one batch; it is then run case by
 * case. Failures are reduced and printed as files of test/exec. Exit 1 if there were any.
 */
#include "gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_BATCH = 200, MAX_WHY = 40 };

/* Shared by the process of a batch and its parent. */
typedef struct Board {
  u32 at;                 /* case being worked on */
  char stage[16];         /* and what is being done */
  u32 judged, refused, c; /* cases; runs every engine refuses; cases that ran as C */
  u32 nbad;
  u64 bad[MAX_BATCH];
  char what[MAX_BATCH][64];
  u32 mode[3], symbolic, nodes;
  u32 nwhy;
  u32 count[MAX_WHY];
  char why[MAX_WHY][120];
  u32 op[OP_COUNT];
} Board;

typedef struct Options {
  u64 seed, count;
  Wish wish;
  const char *cc, *folder, *target;
  u32 batch;
  bool print, ops;
} Options;

static Case *make(const Options *o, u64 seed) {
  Case *k = case_new(seed, &o->wish);
  k->target = o->target;
  return k;
}

static void stage(Board *b, u32 at, const char *what) {
  b->at = at;
  snprintf(b->stage, sizeof b->stage, "%s", what);
}

static void bad(Board *b, u64 seed, const Verdict *v) {
  if (b->nbad == MAX_BATCH) return;
  b->bad[b->nbad] = seed;
  snprintf(b->what[b->nbad++], 64, "%s", v->what);
}

/* Messages about what is not supported, without their numbers. */
static void tally(Board *b, const Verdict *v) {
  char key[120];
  u32 n = 0;
  for (const char *s = v->why; *s && n + 1 < sizeof key; s++)
    if ((*s < '0' || *s > '9') || (n && key[n - 1] != '#'))
      key[n++] = *s >= '0' && *s <= '9' ? '#' : *s;
  key[n] = 0;
  for (u32 i = 0; i < b->nwhy; i++)
    if (!strcmp(b->why[i], key)) {
      b->count[i]++;
      return;
    }
  if (b->nwhy == MAX_WHY) return;
  b->count[b->nwhy] = 1;
  memcpy(b->why[b->nwhy++], key, sizeof key);
}

/* Operators of a text: the word behind "= " of a line. */
static void count_ops(Board *b, const Case *k) {
  for (const char *s = k->text; (s = strstr(s, " = ")); s += 3) {
    size_t n = strcspn(s + 3, " (\n{");
    Op op = op_from_name(s + 3, n);
    if (op < OP_COUNT) b->op[op]++;
    b->nodes++;
  }
}

static void run_batch(const Options *o, Board *b, u64 first, u32 n) {
  static char path[MAX_BATCH][300];
  static const char *source[MAX_BATCH];
  Case *k[MAX_BATCH];
  u32 which[MAX_BATCH], nc = 0;
  for (u32 i = 0; i < n; i++) {
    stage(b, i, "generate");
    k[i] = make(o, first + i);
    Verdict v = {.what = "the generator fails"};
    if (k[i]->text) {
      count_ops(b, k[i]);
      b->mode[k[i]->mode]++;
      b->symbolic += k[i]->nbind > 1;
      stage(b, i, "passes");
      v = judge_program(k[i]);
    }
    b->judged++;
    b->refused += v.refused;
    char name[JUDGE_NAME];
    snprintf(name, sizeof name, "m%u", i);
    snprintf(path[nc], sizeof path[nc], "%s/%d-%u.c", o->folder, (int)getpid(), i);
    stage(b, i, "emit");
    bool ok = !v.what[0] && judge_emit(k[i], name, path[nc], &v);
    if (v.why[0]) tally(b, &v);
    if (v.what[0]) bad(b, first + i, &v);
    if (!ok) continue;
    source[nc] = path[nc];
    which[nc++] = i;
  }
  char library[300];
  snprintf(library, sizeof library, "%s/%d.so", o->folder, (int)getpid());
  stage(b, 0, "compile");
  bool built = nc && judge_compile(o->cc, library, source, nc);
  for (u32 i = 0; i < nc; i++) {
    Verdict v = {.what = "the C compiler fails"};
    char name[JUDGE_NAME];
    snprintf(name, sizeof name, "m%u", which[i]);
    stage(b, which[i], "C");
    if (!built && n > 1) /* which one it is, is found out one by one */
      v = judge_compile(o->cc, library, &source[i], 1) ? judge_library(k[which[i]], library, name)
                                                       : v;
    else if (built)
      v = judge_library(k[which[i]], library, name);
    b->c += built;
    if (v.what[0]) bad(b, first + which[i], &v);
    unlink(source[i]);
  }
  unlink(library);
  for (u32 i = 0; i < n; i++) case_free(k[i]);
}

/* Returns what stopped the process, or 0. */
static int in_child(const Options *o, Board *b, u64 first, u32 n) {
  fflush(NULL);
  pid_t pid = fork();
  if (!pid) {
    alarm(60 + 10 * n);
    run_batch(o, b, first, n);
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void report(const Options *o, u64 seed, const char *what) {
  printf("# seed %llu: %s\n", (unsigned long long)seed, what);
  fflush(stdout);
  pid_t pid = fork();
  if (!pid) {
    alarm(300);
    Case *k = make(o, seed);
    if (!k->text) {
      for (const Diag *d = k->c->diags; d; d = d->next) printf("# %s\n", d->text);
      _exit(0);
    }
    Case *s = shrink(k, o->cc, o->folder, what);
    Verdict v = {.what = ""};
    if (strncmp(what, "crash", 5)) v = judge_all(s, o->cc, o->folder);
    case_print(s, &v);
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (status) printf("# not reduced\n");
}

static void one_by_one(const Options *o, Board *b, u64 first, u32 n) {
  for (u32 i = 0; i < n; i++) {
    int sig = in_child(o, b, first + i, 1);
    if (!sig) continue;
    Verdict v;
    snprintf(v.what, sizeof v.what, "crash %d in %s", sig, b->stage);
    bad(b, first + i, &v);
  }
}

static int campaign(const Options *o) {
  Board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (b == MAP_FAILED) return 5;
  u32 failures = 0;
  for (u64 at = 0; at < o->count; at += o->batch) {
    u32 n = (u32)(o->count - at < o->batch ? o->count - at : o->batch);
    Board before = *b;
    b->nbad = 0;
    if (in_child(o, b, o->seed + at, n)) {
      *b = before;
      b->nbad = 0;
      one_by_one(o, b, o->seed + at, n);
    }
    failures += b->nbad;
    for (u32 i = 0; i < b->nbad; i++) report(o, b->bad[i], b->what[i]);
  }
  printf("# %u graphs (%u exact, %u real, %u raw; %u with symbols), %u nodes; %u refused by all "
         "engines; "
         "%u also as C; %u failures\n",
         b->judged, b->mode[0], b->mode[1], b->mode[2], b->symbolic, b->nodes, b->refused, b->c,
         failures);
  for (u32 i = 0; i < b->nwhy; i++)
    printf("# not supported, %u times: %s\n", b->count[i], b->why[i]);
  for (int op = 0; o->ops && op < OP_COUNT; op++) printf("# %6u %s\n", b->op[op], op_info[op].name);
  return failures != 0;
}

/* Cases from files, such as were found before. */
static int replay(const Options *o, int n, char **path) {
  int failures = 0;
  for (int i = 0; i < n; i++) {
    Case *k = case_read(path[i]);
    Verdict v = {.what = "cannot be read"};
    if (k && o->target) k->target = o->target;
    if (k) v = judge_all(k, o->cc, o->folder);
    if (v.what[0]) printf("%s: %s: %s\n", path[i], v.what, v.detail);
    failures += v.what[0] != 0;
    case_free(k);
  }
  return failures != 0;
}

static const char *value(int argc, char **argv, int *i) {
  if (*i + 1 < argc) return argv[++*i];
  fprintf(stderr, "gen: %s lacks its value\n", argv[*i]);
  exit(2);
}

int main(int argc, char **argv) {
  Options o = {.count = 100, .wish = {.mode = -1}, .cc = "tcc", .folder = "/tmp", .batch = 40};
  for (int i = 1; i < argc; i++) {
    const char *s = argv[i];
    if (!strcmp(s, "--seed"))
      o.seed = strtoull(value(argc, argv, &i), NULL, 10);
    else if (!strcmp(s, "--count"))
      o.count = strtoull(value(argc, argv, &i), NULL, 10);
    else if (!strcmp(s, "--only"))
      o.wish.only = value(argc, argv, &i);
    else if (!strcmp(s, "--nodes"))
      o.wish.nodes = (u32)strtoul(value(argc, argv, &i), NULL, 10);
    else if (!strcmp(s, "--batch"))
      o.batch = (u32)strtoul(value(argc, argv, &i), NULL, 10);
    else if (!strcmp(s, "--cc"))
      o.cc = value(argc, argv, &i);
    else if (!strcmp(s, "--folder"))
      o.folder = value(argc, argv, &i);
    else if (!strcmp(s, "--target"))
      o.target = value(argc, argv, &i);
    else if (!strcmp(s, "--large"))
      o.wish.large = true;
    else if (!strcmp(s, "--print"))
      o.print = true;
    else if (!strcmp(s, "--ops"))
      o.ops = true;
    else if (!strcmp(s, "--replay"))
      return replay(&o, argc - i - 1, argv + i + 1);
    else if (!strcmp(s, "--mode")) {
      const char *m = value(argc, argv, &i);
      o.wish.mode = !strcmp(m, "exact") ? MODE_exact : !strcmp(m, "real") ? MODE_real : MODE_raw;
    } else {
      fprintf(stderr, "gen: what is %s?\n", s);
      return 2;
    }
  }
  if (o.batch < 1 || o.batch > MAX_BATCH) o.batch = 40;
  if (!o.print) return campaign(&o);
  for (u64 i = 0; i < o.count; i++) {
    Case *k = case_new(o.seed + i, &o.wish);
    if (k->text)
      case_print(k, &(Verdict){.what = ""});
    else
      for (const Diag *d = k->c->diags; d; d = d->next)
        printf("# seed %llu: %s\n", (unsigned long long)k->seed, d->text);
    case_free(k);
  }
  return 0;
}
