/* Every allocation and every I/O call of a typical use fails in turn, once and from then on. Each
 * time: the right code, a message, nothing leaked, nothing half-written, and the context still
 * works. */
#include "hooks.h"
#include <dirent.h>
#include <unistd.h>

static char dir[256];

typedef struct Env {
  TestAlloc alloc;
  TestIo io;
  const char *out; /* what to write; NULL: no files at all */
  size_t n;
} Env;

static void use_files(Ctx *c, const Env *env) {
  file_write(c, "out", env->out, env->n);
  File f = file_read_own(c, "out");
  CHECK(f.n == env->n && memcmp(f.at, env->out, f.n) == 0);
  f = file_read_beneath(c, "model.onnx", str_of(c, "sub/w"), LOC_NONE);
  CHECK(f.n == 7 && memcmp(f.at, "weights", 7) == 0);
}

/* A little of everything. */
static void use(Ctx *c, void *arg) {
  const Env *env = arg;
  Map m = map_new(&c->work), names = map_new(&c->scratch);
  VEC(Loc) locs = {0};
  StrBuf t = sb_new(&c->work);
  for (int i = 0; i < 60; i++) {
    Mark mark = arena_mark(&c->scratch);
    Str s = str_fmt(c, "node_%d", i);
    *map_put(&m, (u64)i << 32 | s) = (u32)i;
    *vec_push(&c->work, &locs) = (Loc){0, s, s, i, 0};
    sb_fmt(&t, "%s = op %d\n", show(c, s), i);
    if (i % 10 == 0) warn(c, locs.at[i], "odd");
    arena_rewind(&c->scratch, mark);
  }
  for (int i = 0; i < 40; i++) *map_put_bytes(&names, &i, sizeof i) = (u32)i;
  for (u32 i = 0; i < 60; i++) CHECK(*map_get(&m, (u64)i << 32 | locs.at[i].node) == i);
  sb_quote(&t, str_text(c, 5), str_len(c, 5));
  CHECK(strstr(sb_cstr(&t), "node_59 = op 59\n"));
  arena_alloc(&c->work, 70000);
  arena_alloc(&c->scratch, 300000);
  arena_clear(&c->scratch);
  arena_clear(&c->work);
  if (env->out) use_files(c, env);
}

static bool says(const Ctx *c, const char *what) {
  for (const Diag *d = c->diags; d; d = d->next)
    if (d->level == LV_error && strstr(d->text, what)) return true;
  return false;
}

static int temporaries(void) {
  DIR *d = opendir(".");
  int n = 0;
  for (struct dirent *e; d && (e = readdir(d));) n += !strncmp(e->d_name, ".ingot-tmp-", 11);
  if (d) closedir(d);
  return n;
}

/* The output is absent or whole. */
static bool is_whole(const Env *env) {
  FILE *f = fopen("out", "r");
  if (!f) return true;
  char *got = malloc(env->n + 1);
  bool ok = fread(got, 1, env->n + 1, f) == env->n && memcmp(got, env->out, env->n) == 0;
  free(got);
  fclose(f);
  return ok;
}

static void check_clean(const Env *env) {
  CHECK(env->alloc.blocks == 0 && env->alloc.bytes == 0);
  CHECK(env->io.fds == 0 && env->io.maps == 0);
  CHECK(temporaries() == 0 && is_whole(env));
}

/* One run with a fault set; returns whether the fault was reached. */
static bool run(Env *env, const char *says_what) {
  unlink("out");
  Alloc a = test_alloc(&env->alloc);
  Io io = test_io(&env->io);
  Fault *fa = &env->alloc.fault, *fi = &env->io.fault;
  Ctx *c = ctx_new(&a, &io);
  if (!c) {
    CHECK(fa->hits > 0);
    check_clean(env);
    return true;
  }
  Err e = ctx_protect(c, use, env);
  bool reached = fa->hits + fi->hits > 0;
  CHECK(e == ERR_ok || (e == ERR_system && reached));
  CHECK((c->nerrors != 0) == (e != ERR_ok) && c->code == e);
  if (e != ERR_ok && !CHECK(says(c, says_what)))
    fprintf(stderr, "  call %ld: %s\n", fa->at + fi->at, c->diags ? c->diags->text : "-");
  fa->at = fi->at = 0;
  CHECK(ctx_protect(c, use, env) == ERR_ok);
  ctx_free(c);
  check_clean(env);
  return reached;
}

static void memory(const char *out, size_t n, bool no_map) {
  for (int on = 0; on < 2; on++) {
    long k = 1;
    for (;; k++) {
      Env env = {.alloc.fault = {.at = k, .on = on}, .io.no_map = no_map, .out = out, .n = n};
      if (!run(&env, "out of memory") && !check_failed) break;
      if (check_failed) return;
    }
    CHECK(k > 20);
  }
}

/* Closing a file that was read, syncing a directory and mapping may fail without harm. */
static void calls(const char *out, size_t n, bool no_map, size_t step) {
  for (int on = 0; on < 2; on++) {
    for (long k = 1;; k++) {
      Env env = {
          .io = {.fault = {.at = k, .on = on}, .err = ENOSPC, .no_map = no_map, .step = step},
          .out = out,
          .n = n};
      if (!run(&env, "No space left on device") && CHECK(k > 10)) break;
      if (check_failed) return;
    }
  }
}

int main(void) {
  const char *tmp = getenv("TMPDIR");
  snprintf(dir, sizeof dir, "%s/ingot-unit-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!CHECK(mkdtemp(dir)) || !CHECK(chdir(dir) == 0)) return check_end();
  CHECK(system("mkdir sub && printf weights > sub/w && : > model.onnx") == 0);
  static char bytes[100000];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i * 7 >> 3);
  memory(bytes, sizeof bytes, true);
  memory(bytes, 1000, false);
  calls(bytes, 1000, false, 0);
  calls(bytes, 1000, true, 300);
  char cmd[300];
  snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
  CHECK(chdir("/") == 0 && system(cmd) == 0);
  return check_end();
}
