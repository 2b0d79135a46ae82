/* choose_target.c: selects the target of the code.
 *
 * In: the name of a target, of a CPU, or nothing. Out: a row of target.def and flags for the C
 * compiler. Generated text (compile, opt) defaults to the scalar target; code that is compiled at
 * once (run, bench, build) to this machine, or to the target in INGOT_NATIVE. Features of a CPU
 * that only the compiler knows, and targets of cross compilers, come from the compiler: it
 * preprocesses a few lines made from the guards in target.def.
 */
#include "api/api_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- this machine ---- */

/* The names of all targets, each after a comma. */
static const char *target_names(Ctx *c) {
  StrBuf names = sb_new(&c->scratch);
  for (u32 i = 0; i < target_count; i++) sb_fmt(&names, ", %s", target_table[i].name);
  return sb_cstr(&names);
}

/* NULL: INGOT_NATIVE is not set. */
static const Target *named_here(Ctx *c) {
  const char *name = getenv("INGOT_NATIVE");
  if (!name || !*name) return NULL;
  const Target *t = target_find(name);
  if (!t || t->loops)
    fail(c, ERR_usage, LOC_NONE, "INGOT_NATIVE=%s: unknown target; expected one of%s", name,
         target_names(c) + 1);
  return t;
}

const Target *api_target_here(Ctx *c) {
  const Target *t = named_here(c);
  return t ? t : target_native();
}

const char *api_target_flags(Ctx *c) {
  const Target *t = named_here(c);
  return t ? t->cflags : target_native_flags();
}

/* True with INGOT_NATIVE: flags of a target do not include the feature. */
static bool lacks_dot_i8x4_here(Ctx *c) {
  return named_here(c) || !target_has_dot_i8x4(target_native());
}

/* The table is ordered by size. Targets after the one that INGOT_NATIVE names cannot run here. */
static bool is_here(Ctx *c, const Target *t) {
  const Target *most = named_here(c);
  return t->loops || (target_is_here(t) && (!most || t <= most));
}

static const Target *find_target(Ctx *c, const char *name) {
  return strcmp(name, "native") ? target_find(name) : api_target_here(c);
}

/* Is it a cross compiler, such as "arm-none-eabi-gcc"? */
static bool is_cross(const char *cc) {
  static const char *const tails[] = {"-gcc", "-clang", "-cc"};
  if (!cc || !*cc) cc = getenv("CC");
  for (u32 i = 0; cc && i < sizeof tails / sizeof *tails; i++)
    if (strstr(cc, tails[i])) return true;
  return false;
}

/* ---- asking the compiler ---- */

typedef struct CompilerQuery {
  Ingot *m;
  const char *cc, *name; /* name: of a CPU; NULL: the compiler's default */
  const char *more;      /* flags for single features, or "" */
  TempDir folder;
} CompilerQuery;

/* Prints the word "dot_i8x4" if the compiler has the feature. */
static void put_dot_i8x4_probe(StrBuf *t, const char *feature) {
  sb_puts(t, "#ifdef __");
  for (const char *s = feature; *s; s++) sb_fmt(t, "%c", toupper((unsigned char)*s));
  sb_puts(t, "__\ndot_i8x4\n#endif\n");
}

/* Prints "ingot NAME" for the largest target whose guard holds. */
static void write_probe(Ctx *c, const char *path) {
  StrBuf t = sb_new(&c->keep);
  for (u32 i = target_count - 1; i; i--) {
    const Target *row = &target_table[i];
    sb_fmt(&t, "#%s %s\ningot %s\n", i + 1 == target_count ? "if" : "elif", row->guard, row->name);
    if (row->maddubs == MADDUBS_without_dot_i8x4) put_dot_i8x4_probe(&t, row->dot_i8x4);
  }
  sb_fmt(&t, "#else\ningot %s\n#endif\n", target_scalar()->name);
  file_write(c, path, t.at, t.n);
}

/* Returns the exit status. */
static int preprocess(Ctx *c, CompilerQuery *a, const char *flag, const char *question,
                      const char *answer) {
  ArgVec w = {0};
  argv_compiler(c, &w, a->cc);
  argv_add(c, &w, flag);
  argv_put(c, &w, "-E", "-P", "-o", answer, question);
  return spawn_status(c, &a->folder, "C compiler", w.at);
}

/* lacks_dot_i8x4: not known to have the feature; NULL: not needed. */
static const Target *read_answer(Ctx *c, const char *path, bool *lacks_dot_i8x4) {
  File f = file_read_own(c, path);
  StrBuf t = sb_new(&c->keep);
  sb_put(&t, f.at, f.n);
  const char *at = strstr(sb_cstr(&t), "ingot ");
  if (lacks_dot_i8x4) *lacks_dot_i8x4 = !at || !strstr(at, "dot_i8x4");
  for (u32 i = 0; at && i < target_count; i++) {
    size_t n = strlen(target_table[i].name);
    if (!strncmp(at + 6, target_table[i].name, n) && strchr("\n\r ", at[6 + n]))
      return &target_table[i];
  }
  return target_scalar();
}

static const struct NewCpu {
  const char *name, *flags;
} new_cpus[] = {
#define NEW_CPU(name, flags) {#name, flags},
#include "ir/target.def"
};

static const char *known_cpu_flags(Ctx *c, const CompilerQuery *a, const char *name) {
  for (u32 i = 0; i < sizeof new_cpus / sizeof *new_cpus; i++)
    if (!strcmp(new_cpus[i].name, name))
      return str_text(c, str_fmt(c, "%s%s", new_cpus[i].flags, a->more));
  return NULL;
}

/* Suggestion for an unknown name. cpus: include CPUs that compilers know. */
static const char *nearest_target(Ctx *c, const char *name, bool cpus) {
  Suggestion near = suggest_new(name);
  suggest_try(&near, "native");
  suggest_try(&near, "multi");
  for (u32 i = 0; i < target_count; i++) suggest_try(&near, target_table[i].name);
  for (u32 i = 0; cpus && i < sizeof new_cpus / sizeof *new_cpus; i++)
    suggest_try(&near, new_cpus[i].name);
  static const char *const boards[] = {"cortex-m", "thumb", "armv6-m", "armv7-m", "armv7e-m",
                                       "armv8-m",  "esp32", "rp20",    "stm32",   "riscv32"};
  for (u32 i = 0; i < sizeof boards / sizeof *boards; i++)
    if (!strncmp(name, boards[i], strlen(boards[i])))
      return "; a Cortex-M takes --march cortex-m or cortex-m4; for another microcontroller leave "
             "out "
             "--march: C without vectors runs on every CPU, and its compiler takes the name "
             "(-mcpu)";
  return suggest_text(c, &near);
}

/* Some compilers take -march, some -mcpu. */
static void query_compiler(Ctx *c, void *arg) {
  CompilerQuery *a = arg;
  tempdir_make(c, &a->folder);
  const char *question = tempdir_file(c, &a->folder, "ask.c"),
             *answer = tempdir_file(c, &a->folder, "answer"), *flag = "";
  const char *name = a->name ? a->name : "";
  const char *march = str_text(c, str_fmt(c, "%s%s%s", *name ? "-march=" : "", name, a->more)),
             *mcpu = str_text(c, str_fmt(c, "%s%s%s", *name ? "-mcpu=" : "", name, a->more)),
             *older = known_cpu_flags(c, a, name);
  write_probe(c, question);
  if (!preprocess(c, a, march, question, answer)) {
    flag = march;
  } else if (!preprocess(c, a, mcpu, question, answer)) {
    flag = mcpu;
  } else if (older && !preprocess(c, a, older, question, answer)) {
    flag = older;
  } else {
    int status = preprocess(c, a, "", question, answer);
    ArgVec w = {0};
    argv_compiler(c, &w, a->cc);
    if (status || (!a->name && !*a->more)) spawn_fail(c, &a->folder, "C compiler", w.at[0], status);
    fail(c, ERR_usage, LOC_NONE,
         "--march %s%s: neither ingot nor the C compiler knows this machine%s%s", name, a->more,
         *a->more ? ", or one of the features" : "", nearest_target(c, name, true));
  }
  a->m->machine.target = read_answer(c, answer, &a->m->codegen.lacks_dot_i8x4);
  a->m->compiled.cflags = flag;
}

static void set_from_compiler(Ingot *m, const char *cc, const char *name, const char *more) {
  CompilerQuery a = {.m = m, .cc = cc, .name = name, .more = more};
  tempdir_protect(m->c, &a.folder, query_compiler, &a);
}

/* Does the compiler have the vectors, or was INGOT_PORTABLE requested? */
static void query_guard(Ctx *c, void *arg) {
  CompilerQuery *a = arg;
  const Target *t = a->m->machine.target;
  tempdir_make(c, &a->folder);
  const char *question = tempdir_file(c, &a->folder, "ask.c"),
             *answer = tempdir_file(c, &a->folder, "answer");
  StrBuf text = sb_new(&c->keep);
  sb_fmt(&text, "#if (%s) || defined(INGOT_PORTABLE)\ningot %s\n#endif\n", t->guard, t->name);
  file_write(c, question, text.at, text.n);
  if (preprocess(c, a, t->cflags, question, answer) || read_answer(c, answer, NULL) != t)
    a->name = NULL;
}

void api_need_vectors(Ingot *m, const char *march, const char *cc) {
  Ctx *c = m->c;
  const Target *before = m->machine.target, *t = target_find(march);
  if (!t || t->loops || !*t->cross) return; /* CPUs are checked elsewhere; a list needs no flags */
  CompilerQuery a = {.m = m, .cc = cc, .name = march};
  m->machine.target = t;
  Err e = ctx_protect(c, query_guard, &a);
  tempdir_remove(&a.folder);
  m->machine.target = before;
  if (e) longjmp(*c->door, (int)e);
  if (a.name) return;
  ArgVec w = {0};
  argv_compiler(c, &w, cc);
  fail(c, ERR_usage, LOC_NONE,
       "the C compiler '%s' cannot compile for %s; use --cc with one that can, such as %s, or --cc "
       "'%s -DINGOT_PORTABLE' for scalar code",
       w.at[0], t->name, t->cross, w.at[0]);
}

/* ---- choosing ---- */

void api_target_native(Ingot *m, const char *cc) {
  if (m->machine.target) return;
  if (is_cross(cc)) {
    set_from_compiler(m, cc, NULL, "");
    return;
  }
  m->machine.target = api_target_here(m->c);
  m->codegen.lacks_dot_i8x4 = lacks_dot_i8x4_here(m->c);
  m->compiled.cflags = api_target_flags(m->c);
}

void api_target_host(Ingot *m) {
  if (m->machine.target) return;
  m->machine.target = api_target_here(m->c);
  m->codegen.lacks_dot_i8x4 = lacks_dot_i8x4_here(m->c);
}

/* Engines are compared bit by bit, so the program is the same for all of them unless a target is
 * named. Only the compiler uses all features of this machine. */
void api_native_flags(Ingot *m) {
  if (!m->compiled.cflags && !is_cross(NULL)) m->compiled.cflags = api_target_flags(m->c);
}

/* Refuses after the passes, which depend on the target. */
static void need_unpassed(const Ingot *m) {
  if (m->passed) fail(m->c, ERR_usage, LOC_NONE, "expected this option before the passes run");
}

/* "multi" or a comma-separated list: one file with a variant for each target, compiled without
 * flags. A target that every CPU can run is always added. Other products use the variant for this
 * CPU. */
static bool set_list(Ingot *m, const char *name) {
  Ctx *c = m->c;
  bool wanted[64] = {0}, base = false;
  const char *list = strcmp(name, "multi") ? name : target_multi;
  if (!strchr(list, ',')) return false;
  if (m->machine.variants.n && m->codegen.march && !strcmp(m->codegen.march, name))
    return true; /* unchanged */
  need_unpassed(m);
  for (const char *s = list; s;) {
    size_t n = strcspn(s, ",");
    const Target *t = find_target(c, str_text(c, str_intern(c, s, n)));
    if (n == 5 && !strncmp(s, "multi", n))
      fail(c, ERR_usage, LOC_NONE, "'%s': multi means %s and cannot be part of a list", name,
           target_multi);
    if (!t || t->loops)
      fail(c, ERR_usage, LOC_NONE,
           "'%s': expected targets separated by commas; unknown target '%s'", name,
           show(c, str_intern(c, s, n)));
    wanted[t - target_table] = true;
    base = base || !*t->features;
    s = s[n] ? s + n + 1 : NULL;
  }
  if (!base) wanted[target_find("sse2") - target_table] = true;
  m->machine.variants.n = 0;
  m->codegen.lacks_dot_i8x4 = false; /* a variant is compiled with and without it */
  for (u32 i = 0; i < target_count; i++) {
    if (!wanted[i]) continue;
    *vec_push(&c->keep, &m->machine.variants) = &target_table[i];
    if (m->machine.variants.n == 1 || is_here(c, &target_table[i]))
      m->machine.target = &target_table[i];
  }
  if (m->machine.variants.n == 1) m->machine.variants.n = 0;
  m->codegen.march = str_text(c, str_of(c, name)); /* the caller may free name */
  m->compiled.cflags = "";
  return true;
}

static void set(Ingot *m, const char *name, const Target *t) {
  if (m->machine.target != t || m->machine.variants.n) need_unpassed(m);
  m->machine.variants.n = 0;
  m->machine.target = t;
  bool here = !strcmp(name, "native");
  m->codegen.lacks_dot_i8x4 =
      here && lacks_dot_i8x4_here(m->c); /* generated text may be compiled with it */
  m->compiled.cflags = here ? api_target_flags(m->c) : t->cflags;
}

/* Kernels need several features together: warns if only some of them are named. */
static void warn_missing(Ingot *m, const char *name) {
  for (const Target *t = m->machine.target + 1; t < target_table + target_count; t++) {
    size_t n = strcspn(t->features, ",");
    const char *first = str_text(m->c, str_fmt(m->c, "+%.*s", (int)n, t->features));
    const char *at = n ? strstr(name, first) : NULL;
    if (at && (!at[n + 1] || at[n + 1] == ','))
      warn(m->c, LOC_NONE, "--march %s: kernels for %s need %s together; using those for %s", name,
           t->name, t->features, m->machine.target->name);
  }
}

/* "x86-64-v3,+avx512f" or "+avx2,-avx512f": a CPU, or the compiler's default, with or without
 * single features. false: no features in name. */
static bool set_features(Ingot *m, const char *name, const char *cc) {
  Ctx *c = m->c;
  const char *base = NULL;
  StrBuf more = sb_new(&c->keep);
  if (*name != '+' && *name != '-' && !strstr(name, ",+") && !strstr(name, ",-")) return false;
  for (const char *s = name; s;) {
    size_t n = strcspn(s, ",");
    bool sign = *s == '+' || *s == '-';
    if (n <= sign || strspn(s + sign, "abcdefghijklmnopqrstuvwxyz0123456789.-_") < n - sign ||
        (!sign && s != name))
      fail(c, ERR_usage, LOC_NONE,
           "--march %s: expected a CPU and features, such as x86-64-v3,+avx512f or "
           "+avx2,+fma,-avx512f",
           name);
    if (sign)
      sb_fmt(&more, " -m%s%.*s", *s == '-' ? "no-" : "", (int)n - 1, s + 1);
    else
      base = str_text(c, str_intern(c, s, n));
    s = s[n] ? s + n + 1 : NULL;
  }
  if (strstr(sb_cstr(&more), " -mavx2") && strstr(sb_cstr(&more), " -mfma") &&
      !strstr(sb_cstr(&more), "f16c"))
    sb_puts(&more, " -mf16c"); /* all CPUs with both have it */
  const Target *t = base ? find_target(c, base) : NULL;
  const char *flags = sb_cstr(&more);
  if (t) { /* its flags are enough */
    flags = str_text(
        c, str_fmt(c, "%s%s", strcmp(base, "native") ? t->cflags : api_target_flags(c), flags));
    base = NULL;
  }
  need_unpassed(m);
  m->machine.variants.n = 0;
  set_from_compiler(m, cc, base, flags);
  warn_missing(m, name);
  return true;
}

void api_march(Ingot *m, const char *name, const char *cc) {
  if (set_features(m, name, cc)) return;
  const Target *t = find_target(m->c, name);
  if (!t && set_list(m, name)) return;
  if (t) {
    set(m, name, t);
    if (strcmp(name, "native"))
      m->codegen.lacks_dot_i8x4 = true; /* flags of targets do not include it */
    return;
  }
  if (strpbrk(name, " \t\n") || !*name)
    fail(m->c, ERR_usage, LOC_NONE, "'%s': expected the name of a CPU", name);
  set_from_compiler(m, cc, name, "");
  if (m->machine.target == target_scalar())
    warn(m->c, LOC_NONE,
         "for %s the compiler reports no vectors that ingot supports: using scalar code", name);
}

void api_need_runnable(Ingot *m) {
  if (m->machine.target && !is_here(m->c, m->machine.target))
    fail(m->c, ERR_usage, LOC_NONE, "code for %s does not run on this machine",
         m->machine.target->name);
}

bool api_is_runnable(Ingot *m, const char *cc) {
  return !is_cross(cc) && (!m->machine.target || is_here(m->c, m->machine.target));
}

void api_need_runnable_build(Ingot *m, const char *cc, const char *what) {
  bool named = m->compiled.cflags && strcmp(m->compiled.cflags, api_target_flags(m->c)) &&
               strcmp(m->compiled.cflags, m->machine.target->cflags);
  if (!named && api_is_runnable(m, cc)) return;
  fail(m->c, ERR_usage, LOC_NONE, "%s on this machine: code for %s%s%s may not run here", what,
       m->machine.target->name, named ? " with " : "", named ? m->compiled.cflags : "");
}

/* Scalar fallback code runs everywhere if it is compiled as such. */
void argv_target(Ctx *c, ArgVec *w, const Ingot *m) {
  bool given_up =
      m->machine.target && m->machine.target->lanes > 1 && api_program_target(m)->lanes == 1;
  if (m->compiled.cflags && !given_up) argv_add(c, w, m->compiled.cflags);
}

/* A file with several variants checks the CPU, which ignores INGOT_NATIVE. */
void argv_variant(Ctx *c, ArgVec *w, const Ingot *m, const char *upper) {
  if (m->machine.variants.n && named_here(c))
    argv_fmt(c, w, "-D%s_BODY=%s", upper, m->machine.target->name);
}

static void set_target(Ingot *m, const char *name) {
  Ctx *c = m->c;
  api_need(c, name, "the name of the target");
  const Target *t = find_target(c, name);
  if (!t && set_list(m, name)) return;
  if (!t)
    fail(c, ERR_usage, LOC_NONE, "--march: unknown target '%s'; expected native, multi%s%s", name,
         target_names(c), nearest_target(c, name, false));
  set(m, name, t);
}

static void set_aim(Ingot *m, const char *name) {
  api_need(m->c, name, "the optimization goal");
  static const char *const names[] = {[AIM_time] = "time", [AIM_ram] = "ram", [AIM_size] = "size"};
  for (u32 i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(names[i], name) != 0) continue;
    need_unpassed(m);
    m->codegen.aim = (Aim)i;
    m->codegen.aim_given = true;
    return;
  }
  fail(m->c, ERR_usage, LOC_NONE, "--optimize-for '%s': expected time, ram or size", name);
}

/* 262144, 256K, 2M; also 256k, 256KB and 256KiB: powers of 2. */
static void set_ram(Ingot *m, const char *name) {
  char *end;
  errno = 0;
  if (!name) fail(m->c, ERR_usage, LOC_NONE, "--ram: expected a number of bytes");
  u64 n = isdigit((unsigned char)*name) ? strtoull(name, &end, 10) : 0, unit = 1;
  if (n && (*end == 'K' || *end == 'k')) unit = 1024;
  if (n && (*end == 'M' || *end == 'm')) unit = 1024 * 1024;
  if (n && unit > 1) end++;
  if (n && unit > 1 && (!strcmp(end, "B") || !strcmp(end, "iB"))) end += strlen(end);
  if (!n || errno || *end || !size_mul(n, unit, &n) || n > DIM_MAX)
    fail(m->c, ERR_usage, LOC_NONE,
         "--ram '%s': expected a number of bytes such as 262144, 256K or 2M", name);
  m->codegen.ram = n;
}

IngotStatus ingot_set_ram(Ingot *m, const char *bytes) {
  API_CALL(m, set_ram(m, bytes));
}

IngotStatus ingot_optimize_for(Ingot *m, const char *what) {
  API_CALL(m, set_aim(m, what));
}

static void set_precise(Ingot *m) {
  need_unpassed(m);
  m->codegen.precise = true;
}

IngotStatus ingot_set_precise(Ingot *m) {
  API_CALL(m, set_precise(m));
}

static void set_precision(Ingot *m, const char *name) {
  api_need(m->c, name, "the precision");
  need_unpassed(m);
  for (u32 i = 0; i < PREC_COUNT; i++)
    if (!strcmp(name, precision_name[i])) {
      m->codegen.precision = (Precision)i;
      return;
    }
  fail(m->c, ERR_usage, LOC_NONE, "precision %s, expected f32, tf32, f16 or bf16", name);
}

IngotStatus ingot_set_precision(Ingot *m, const char *name) {
  API_CALL(m, set_precision(m, name));
}

const char *ingot_target(uint32_t i) {
  return i < target_count ? target_table[i].name : NULL;
}

const char *ingot_multi(void) {
  return target_multi;
}

const char *ingot_native(void) {
  const char *name = getenv("INGOT_NATIVE");
  const Target *t = name && *name ? target_find(name) : NULL;
  return (t ? t : target_native())->name;
}

IngotStatus ingot_set_target(Ingot *m, const char *name) {
  API_CALL(m, set_target(m, name));
}

/* ---- threads ---- */

void argv_threads(Ctx *c, ArgVec *w, const Ingot *m) {
  if (m->codegen.threads > 1) argv_add(c, w, m->codegen.openmp ? "-fopenmp" : "-pthread");
}

static void set_threads(Ingot *m, int n, const char *api, int grain) {
  Ctx *c = m->c;
  bool openmp = api && !strcmp(api, "openmp");
  if (n < 1 || n > MAX_THREADS)
    fail(c, ERR_usage, LOC_NONE, "--threads %d: expected 1 to %d", n, MAX_THREADS);
  if (api && !openmp && strcmp(api, "pthread"))
    fail(c, ERR_usage, LOC_NONE, "--threads-api '%s': expected pthread or openmp", api);
  if (grain < 0)
    fail(c, ERR_usage, LOC_NONE, "--threads-grain %d: expected a number of ns that is at least 0",
         grain);
  need_unpassed(m);
  m->codegen.threads = (u32)n;
  m->codegen.grain = (u32)grain;
  m->codegen.openmp = openmp;
}

IngotStatus ingot_set_threads(Ingot *m, int n, const char *api, int grain) {
  API_CALL(m, set_threads(m, n, api, grain));
}
