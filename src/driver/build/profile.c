/* profile.c: records a profile for the compiler.
 *
 * In: the C of a model, a workload. Out: flags that make gcc or clang use the profile; functions of
 * the model that did not run. Method: an instrumented build runs the workload. gcc writes a file
 * per object (.gcda); clang writes files that llvm-profdata merges. Profiles are cached in
 * ~/.cache/ingot under a hash of C text, flags, compiler and workload. The first file of a profile
 * names its build and the functions that did not run; the others are for the compiler. LTO and
 * instrumentation conflict, so the profile is recorded without LTO.
 */
#include "driver/build/build_product.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define HEAD "ingot profile 1 "
enum { MAX_PROFILES = PARTS_LIMIT + 1 };

/* Static functions are named after their file, without its path. */
static const char plain_names[] = "-mllvm -static-func-full-module-prefix=0";

typedef struct RunProfile {
  ProductBuild *b;
  ArgVec file;        /* files for the compiler, in cache order */
  const char *merged; /* clang: the only file */
  u32 model;          /* gcc: number of files of the model; the last file is of the chat program */
  const char *key;
} RunProfile;

/* parts_compile names objects, and thereby their profiles. */
static void name_files(Ctx *c, RunProfile *p, const BuildConfig *v) {
  ProductBuild *b = p->b;
  u32 parts = v->lto && b->kind < PD_shared ? 1 : b->parts;
  if (b->chain.kind == CK_clang) {
    p->merged = tempdir_file(c, &b->folder, "merged.profdata");
    argv_put(c, &p->file, p->merged);
    return;
  }
  for (u32 i = 0; i < parts; i++)
    argv_fmt(c, &p->file, "%s/%s.c.%u.gcda", b->folder.path, b->name, i);
  p->model = p->file.n;
  if (b->chats) argv_put(c, &p->file, tempdir_file(c, &b->folder, "player-main.c.0.gcda"));
}

static void name_key(Ctx *c, RunProfile *p, const BuildConfig *v) {
  ProductBuild *b = p->b;
  StrBuf t = sb_new(&c->keep);
  cache_key_add_self(c, &t);
  if (b->m->opened.source.path && strcmp(b->m->opened.source.path, "-"))
    cache_key_add_file(c, &t, b->m->opened.source.path);
  sb_fmt(&t, "%s\n", digest_bytes(b->source.at, b->source.n).digit);
  sb_fmt(&t, "%s\n-O%s %s %d %d %d %u\n", b->chain.version, v->optimize,
         b->m->compiled.cflags ? b->m->compiled.cflags : "", (int)b->kind, v->fast_math, v->lto,
         b->m->codegen.threads);
  for (u32 i = 0; i < b->chain.cc.n; i++) sb_fmt(&t, "%s ", b->chain.cc.at[i]);
  sb_fmt(&t, "\n%s\n%s", target_native_flags(), b->work.key);
  p->key = str_text(c, str_of(c, digest_bytes(t.at, t.n).digit));
}

static _Noreturn void fail_damaged(Ctx *c, const char *path) {
  fail(c, ERR_system, LOC_NONE,
       "%s is damaged, or the profile of another build; `ingot build --clean` removes cached "
       "profiles",
       path);
}

static const char *cache_path(Ctx *c, const RunProfile *p, u32 i) {
  return cache_file(c, str_text(c, str_fmt(c, "pgo-%s.%u", p->key, i)), "--pgo");
}

/* ---- functions that did not run ---- */

/* gcov: "Function 'NAME'", then "Lines executed:0.00% of 3" or "No executable lines". */
static void read_gcov(Ctx *c, ProductBuild *b, const char *text) {
  static const char mark[] = "Function '", lines[] = "Lines executed:";
  for (const char *at = text; (at = strstr(at, mark));) {
    at += sizeof mark - 1;
    size_t n = strcspn(at, "'\n");
    const char *next = at + strcspn(at, "\n");
    if (!*next) break;
    next++;
    if (strncmp(next, lines, sizeof lines - 1)) continue;
    b->nfunction++;
    if (strtod(next + sizeof lines - 1, NULL) <= 0)
      *vec_push(&c->keep, &b->idle) = str_text(c, str_intern(c, at, n));
  }
}

static void ask_gcov(Ctx *c, RunProfile *p) {
  ProductBuild *b = p->b;
  int status;
  ArgVec w = {0};
  argv_put_list(c, &w, b->chain.cc.at);
  argv_put(c, &w, "-print-prog-name=gcov");
  const char *text = spawn_text(c, &b->folder, "C compiler", w.at, &status);
  const char *gcov = str_text(c, str_intern(c, text, strcspn(text, "\n")));
  if (status || !spawn_exists(c, gcov)) return; /* optional */
  for (u32 i = 0; i < p->model; i++) {
    text = spawn_text(c, &b->folder, "gcov",
                      (const char *const[]){gcov, "-n", "-f", p->file.at[i], NULL}, &status);
    if (!status) read_gcov(c, b, text);
  }
}

/* Does the record belong to the model? *name: its function. */
static bool is_of_model(Ctx *c, const ProductBuild *b, const char *record, const char **name) {
  size_t n = strcspn(record, "\n"), own = strlen(b->name);
  const char *file = str_text(c, str_fmt(c, "%s.c:", b->name)), *colon = memchr(record, ':', n);
  bool is_static = !strncmp(record, file, strlen(file));
  size_t skip = is_static ? strlen(file) : 0;
  *name = str_text(c, str_intern(c, record + skip, n - skip));
  return is_static || (!colon && !strncmp(record, b->name, own) && record[own] == '_');
}

static bool has_run(const char *record, const char *end) {
  static const char mark[] = "# Counter Values:\n";
  const char *at = strstr(record, mark);
  if (!at || at > end) return true;
  at += sizeof mark - 1;
  size_t zeros = strspn(at, "0\n");
  return at + zeros < end && at[zeros] != '#';
}

/* Text of llvm-profdata: records separated by empty lines, each starting with a name. clang treats
 * a function with all-zero counts as cold, and one without a record as unknown. Variants for other
 * CPUs must be unknown. */
static StrBuf drop_idle(Ctx *c, ProductBuild *b, const char *text) {
  StrBuf out = sb_new(&c->keep);
  while (*text) {
    const char *end = strstr(text, "\n\n"), *record = text, *name;
    end = end ? end + 2 : text + strlen(text);
    while (*record == '#' || *record == ':') { /* the first record follows the file header */
      record += strcspn(record, "\n");
      record += *record == '\n';
    }
    bool own = is_of_model(c, b, record, &name), ran = has_run(record, end);
    b->nfunction += own;
    sb_put(&out, text, (size_t)(record - text));
    if (!own || ran)
      sb_put(&out, record, (size_t)(end - record));
    else
      *vec_push(&c->keep, &b->idle) = name;
    text = end;
  }
  return out;
}

/* ---- recording ---- */

/* Merges the profiles of clang: converts to text, drops functions that did not run, converts back.
 */
static void merge(Ctx *c, RunProfile *p) {
  ProductBuild *b = p->b;
  const char *plain = tempdir_file(c, &b->folder, "merged.txt");
  ArgVec w = {0};
  DIR *d = opendir(b->folder.path);
  argv_put(c, &w, b->chain.profdata, "merge", "--text", "-o", plain);
  u32 before = w.n;
  for (struct dirent *e; d && (e = readdir(d));)
    if (ends_with(e->d_name, ".profraw")) argv_put(c, &w, tempdir_file(c, &b->folder, e->d_name));
  if (d) closedir(d);
  if (w.n == before)
    fail(c, ERR_system, LOC_NONE, "--pgo: the instrumented program wrote no profile");
  spawn_run(c, &b->folder, "llvm-profdata", w.at);
  File f = file_read_own(c, plain);
  StrBuf text = sb_new(&c->keep);
  sb_put(&text, f.at, f.n);
  StrBuf kept_text = drop_idle(c, b, sb_cstr(&text));
  const char *some = tempdir_file(c, &b->folder, "some.txt");
  file_write(c, some, kept_text.at, kept_text.n);
  const char *const argv[] = {b->chain.profdata, "merge", "-o", p->merged, some, NULL};
  spawn_run(c, &b->folder, "llvm-profdata", argv);
}

static void run_workload(Ctx *c, ProductBuild *b, const char *program) {
  for (u32 i = 0; i < b->work.run.n; i++) {
    const ArgVec *with = &b->work.run.at[i];
    ArgVec w = {0};
    argv_put(c, &w, program);
    argv_put_list(c, &w, with->at);
    int status;
    const char *text = spawn_text(c, &b->folder, "the instrumented program", w.at, &status);
    if ((status == 2 || status == 4) &&
        *b->o->pgo) /* the program refuses the arguments or arrays of the user */
      fail(c, ERR_input, LOC_NONE, "--pgo=%s: %.*s", b->o->pgo, (int)strcspn(text, "\n"), text);
    if (status) spawn_fail(c, &b->folder, "the instrumented program", program, status);
  }
}

static void make(Ctx *c, RunProfile *p, const BuildConfig *like) {
  ProductBuild *b = p->b;
  BuildConfig v = *like;
  struct stat st;
  bool clang = b->chain.kind == CK_clang;
  v.step = "instrumented";
  v.lto = like->lto && b->kind < PD_shared; /* compiled as one unit, without LTO of the compiler */
  v.program = "";
  v.arrays = NULL;
  v.profile = (ArgVec){0};
  if (clang) {
    argv_fmt(c, &v.profile, "-fprofile-generate=%s", b->folder.path);
    argv_add(c, &v.profile, plain_names);
  } else {
    argv_add(c, &v.profile, "-fprofile-generate -ftest-coverage");
  }
  if (b->m->codegen.threads > 1) argv_add(c, &v.profile, "-fprofile-update=atomic");
  build_compile(c, b, &v);
  run_workload(c, b, v.program);
  if (clang) merge(c, p);
  for (u32 i = 0; i < p->file.n; i++)
    if (stat(p->file.at[i], &st))
      fail(c, ERR_system, LOC_NONE, "--pgo: the instrumented program wrote no profile: %s",
           strerror(errno));
  if (!clang) ask_gcov(c, p);
}

/* ---- cache ---- */

static void read_files(Ctx *c, const RunProfile *p, bool is_kept, File *f) {
  for (u32 i = 0; i < p->file.n; i++) {
    const char *path = is_kept ? cache_path(c, p, i + 1) : p->file.at[i];
    f[i] = file_read_own(c, path);
  }
}

/* First line: identity of the build, and a hash of the files, because compilers accept almost
 * anything as a profile. */
static const char *first_line(Ctx *c, const RunProfile *p, const File *f) {
  StrBuf t = sb_new(&c->keep);
  for (u32 i = 0; i < p->file.n; i++)
    sb_fmt(&t, "%016llx", (unsigned long long)hash_bytes(f[i].at, f[i].n));
  return str_text(c, str_fmt(c, HEAD "%s %u %016llx ", p->key, p->file.n,
                             (unsigned long long)hash_bytes(t.at, t.n)));
}

static void store_cached(Ctx *c, const RunProfile *p) {
  const ProductBuild *b = p->b;
  StrBuf head = sb_new(&c->keep);
  FileOut out[MAX_PROFILES + 1];
  File f[MAX_PROFILES];
  read_files(c, p, false, f);
  sb_fmt(&head, "%s%u\n", first_line(c, p, f), b->nfunction);
  for (u32 i = 0; i < b->idle.n; i++) sb_fmt(&head, "%s\n", b->idle.at[i]);
  for (u32 i = 0; i < p->file.n; i++)
    out[i] = (FileOut){.path = cache_path(c, p, i + 1), .at = f[i].at, .n = f[i].n, .cached = true};
  out[p->file.n] =
      (FileOut){.path = cache_path(c, p, 0), .at = head.at, .n = head.n, .cached = true};
  files_write(c, out, p->file.n + 1);
}

/* false: not cached. */
static bool load_cached(Ctx *c, RunProfile *p) {
  ProductBuild *b = p->b;
  const char *path = cache_path(c, p, 0);
  File f[MAX_PROFILES];
  for (u32 i = 0; i <= p->file.n; i++)
    if (!cache_check_file(c, cache_path(c, p, i))) return false;
  File head = file_read_own(c, path);
  StrBuf t = sb_new(&c->keep);
  sb_put(&t, head.at, head.n);
  read_files(c, p, true, f);
  const char *at = sb_cstr(&t), *want = first_line(c, p, f);
  char *end;
  if (strncmp(at, want, strlen(want))) fail_damaged(c, path);
  b->nfunction = (u32)strtoul(at + strlen(want), &end, 10);
  for (at = end; *at == '\n' && at[1];) {
    size_t n = strcspn(++at, "\n");
    *vec_push(&c->keep, &b->idle) = str_text(c, str_intern(c, at, n));
    at += n;
  }
  for (u32 i = 0; i < p->file.n; i++)
    files_write(c, &(FileOut){.path = p->file.at[i], .at = f[i].at, .n = f[i].n, .transient = true},
                1);
  b->from_cache = true;
  return true;
}

ArgVec profile_make(Ctx *c, ProductBuild *b, const BuildConfig *like) {
  RunProfile p = {.b = b};
  ArgVec use = {0};
  name_files(c, &p, like);
  name_key(c, &p, like);
  b->profiled = true;
  if (!load_cached(c, &p)) {
    make(c, &p, like);
    store_cached(c, &p);
  }
  if (b->chain.kind == CK_clang) {
    argv_fmt(c, &use, "-fprofile-use=%s", p.merged);
    argv_add(c, &use, plain_names);
    argv_add(c, &use, "-Werror=profile-instr-out-of-date -Wno-profile-instr-unprofiled");
    return use;
  }
  /* partial training: functions that did not run are compiled as without a profile; they may be
   * variants for other CPUs */
  argv_add(c, &use, "-fprofile-use -fprofile-partial-training -fprofile-correction");
  argv_add(c, &use, "-Wno-missing-profile");
  return use;
}
