/* autotune.c: benchmarks tile sizes and keeps the best ones.
 *
 * In: a model, a C compiler, the file of earlier measurements. Out: the table that the lowering
 * reads, and the file with new lines.
 *
 * Method: compile whole models in which every unmeasured kernel tries another tile, and time every
 * kernel separately. The number of builds is the number of choices, independent of the number of
 * kernels, and each kernel sees realistic caches. Builds alternate with the baseline, which uses
 * the default tiles. Before every run the caches are filled with other data: weights are cold,
 * activations are warm because they were just computed. The minimum time of a kernel counts. A
 * choice is kept if it wins by more than GAIN, and wins again in a build with all other winners.
 * Two choices of one kernel are never tried together. If passes merge kernels in only one of two
 * builds, the union of the merged kernels is compared.
 *
 * Measures one thread, on generated inputs if none are given.
 */
#include "driver/build/build_product.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIN_SPEEDUP 1.03
#define SECONDS     0.5 /* per pair of builds */
enum { TURNS = 9, MAX_TURNS = 60, ROUNDS = 12, AGAIN = 3 };
enum { MAX_COMMAND = 1000 }; /* bytes of a compiler command in the file */
enum { MIN_SWEEP = 8 << 20, MAX_SWEEP = 64 << 20 };

/* A build of the model, loaded. */
typedef struct TuneBuild {
  Ingot *m;
  void *handle;
  CallFn *call;
  void (*reset)(void *arena); /* NULL: the model has no state */
  u8 *arena;
  CallArgs frame;
  double last, *now, *min_ns; /* ns by statement: this run; minimum of all runs */
  double whole;
  StmtId *kernel; /* in lowering order, including merged ones */
  u32 nkernel;
} TuneBuild;

/* A kernel without a measurement. */
typedef struct TuneKey {
  Str key;
  const char *const *choice;
  u32 n, best;
  double gain, from, to; /* gain: default over choice; from, to: ns */
} TuneKey;

typedef struct Trial {
  u32 open, choice, round;
} Trial;

typedef struct Tuner {
  Ingot *m;
  const IngotTune *o;
  TempDir folder;
  TuneBuild base, other;
  TuneEnv machine;
  const char *path; /* tuning file */
  StrBuf others;    /* lines of the file for other machines */
  VEC(TuneKey) open;
  VEC(Trial) trial;
  TuneRecords found;
  u32 rounds, builds;
  u8 *sweep;
  size_t nsweep;
} Tuner;

static double now_ns(void) {
  return time_ms() * 1e6;
}

static void report_line(Tuner *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void report_line(Tuner *t, const char *fmt, ...) {
  char line[1024];
  va_list ap;
  if (!t->o->on_progress) return;
  va_start(ap, fmt);
  vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  t->o->on_progress(t->o->user, line);
}

/* ---- builds ---- */

static Str other_str(Ctx *to, const Ctx *from, Str s) {
  return str_intern(to, str_text(from, s), str_len(from, s));
}

/* Opens the same model in its own context, with the options of m. */
static void clone_options(Ctx *c, void *arg) {
  Ingot *const *pair = arg, *n = pair[0], *m = pair[1];
  n->opened.source.path = m->opened.source.path;
  for (u32 i = 0; i < m->options.dim.n; i++) {
    BindDim b = m->options.dim.at[i];
    b.symbol = other_str(c, m->c, b.symbol);
    b.input = other_str(c, m->c, b.input);
    *vec_push(&c->keep, &n->options.dim) = b;
  }
  for (u32 i = 0; i < m->options.given.n; i++) {
    api_binding_tensor(m, &m->options.given.at[i]);
    InputBinding v = m->options.given.at[i];
    v.name = other_str(c, m->c, v.name);
    *vec_push(&c->keep, &n->options.given) = v;
  }
  for (u32 i = 0; i < m->options.state.n; i++)
    *vec_push(&c->keep, &n->options.state) = m->options.state.at[i];
  n->options.grad = m->options.grad;
  n->options.train = m->options.train;
  n->machine.target = m->machine.target;
  n->compiled.cflags = m->compiled.cflags;
  n->codegen.precise = m->codegen.precise;
  n->codegen.lacks_dot_i8x4 = m->codegen.lacks_dot_i8x4;
  n->tuning.ticks = true;
  n->tuning.tune = tune_new(c);
  api_import(n, false);
  n->run.in = api_inputs(n, 0);
}

static _Noreturn void fail_as(Tuner *t, const Ingot *n) {
  u32 count = ingot_message_count(n);
  fail(t->m->c, (Err)n->status, LOC_NONE, "--tune: %s",
       count ? ingot_message(n, count - 1, NULL) : "out of memory");
}

static Ingot *clone_model(Tuner *t, TuneBuild *to) {
  Ingot *m = t->m, *n = to->m = ingot_new(&(IngotAlloc){m->c->alloc.resize, m->c->alloc.user});
  if (!n) fail(m->c, ERR_system, LOC_NONE, "out of memory");
  n->c->guard = m->c->guard;
  if (ingot_open_bytes(n, m->opened.source.at, m->opened.source.n,
                       str_text(m->c, m->opened.source.file)) ||
      api_call(n, clone_options, (Ingot *[]){n, m}))
    fail_as(t, n);
  return n;
}

static void tick(void *user, unsigned kernel) {
  TuneBuild *k = user;
  double now = now_ns();
  k->now[kernel] += now - k->last;
  k->last = now_ns();
}

typedef struct TuneBuildArg {
  Tuner *t;
  TuneBuild *to;
  const char *path;
} TuneBuildArg;

/* Compiles and loads a build, inside the protected call of its context. */
static void build_load(Ctx *c, void *arg) {
  TuneBuildArg *a = arg;
  TuneBuild *k = a->to;
  const IngotTune *o = a->t->o;
  IngotBuild b = {.output = a->path, .cc = o->cc, .optimize = o->optimize};
  b.c = (IngotCodegen){.name = "model", .selftest = -1, .caller = 1};
  CodeSize size = api_build(k->m, &b);
  k->handle = dlopen(a->path, RTLD_NOW | RTLD_LOCAL);
  if (!k->handle) fail(c, ERR_system, LOC_NONE, "the kernels cannot be loaded: %s", dlerror());
  union {
    void *p;
    CallFn *fn;
    void (*reset)(void *arena);
  } call = {dlsym(k->handle, "model_call")}, reset = {dlsym(k->handle, "model_reset")};
  void (**tick_at)(void *, unsigned) = dlsym(k->handle, "model_tick");
  void **user = dlsym(k->handle, "model_user");
  if (!call.p || !tick_at || !user)
    fail(c, ERR_system, LOC_NONE, "the kernels cannot be loaded: %s", dlerror());
  *tick_at = tick;
  *user = k;
  k->call = call.fn;
  k->reset = reset.reset;
  k->arena = api_alloc_aligned(c, size.arena);
  k->frame = api_call_args(k->m, k->arena);
  const Prog *p = k->m->p;
  k->now = NEWS(&c->keep, double, p->stmt.n);
  k->min_ns = NEWS(&c->keep, double, p->stmt.n);
  k->kernel = NEWS(&c->keep, StmtId, p->stmt.n);
  for (StmtId s = 1; s < p->stmt.n; s++)
    if (p->stmt.at[s].kind == ST_kernel) k->kernel[k->nkernel++] = s;
}

static void build_make(Tuner *t, TuneBuild *to) {
  char name[32];
  snprintf(name, sizeof name, "take%u.so", t->builds++);
  TuneBuildArg a = {t, to, tempdir_file(t->m->c, &t->folder, name)};
  if (api_call(to->m, build_load, &a)) fail_as(t, to->m);
  unlink(a.path);
}

static void build_free(TuneBuild *k) {
  if (k->handle) dlclose(k->handle);
  ingot_free(k->m);
  *k = (TuneBuild){0};
}

/* ---- timing ---- */

/* Resets state before each run: growing state would make later runs longer. */
static void run_once(Tuner *t, TuneBuild *k) {
  const Prog *p = k->m->p;
  if (k->reset) k->reset(k->arena);
  for (size_t i = 0; i < t->nsweep; i += 64) t->sweep[i]++;
  memset(k->now, 0, p->stmt.n * sizeof *k->now);
  double start = k->last = now_ns();
  int status = k->call(k->arena, k->frame.size, 0, k->frame.in, k->frame.out, k->frame.shape);
  double whole = now_ns() - start;
  if (status)
    fail(t->m->c, ERR_input, LOC_NONE,
         "--tune: the model refused its inputs (status %d): give some with --inputs", status);
  if (!k->whole || whole < k->whole) k->whole = whole;
  for (StmtId s = 1; s < p->stmt.n; s++)
    if (k->now[s] > 0 && (k->min_ns[s] == 0 || k->now[s] < k->min_ns[s])) k->min_ns[s] = k->now[s];
}

/* Resets both minima: the minimum of many runs is lower than that of a few. */
static void alternate_runs(Tuner *t, TuneBuild *a, TuneBuild *b) {
  memset(a->min_ns, 0, a->m->p->stmt.n * sizeof *a->min_ns);
  a->whole = 0;
  double end = now_ns() + SECONDS * 1e9;
  for (u32 i = 0; i < MAX_TURNS && (i < TURNS || now_ns() < end); i++) {
    run_once(t, a);
    run_once(t, b);
  }
}

/* The kernel that contains s after merging. */
static StmtId merged_into(const Prog *p, StmtId s) {
  while (p->stmt.at[s].into) s = p->stmt.at[s].into;
  return s;
}

/* Index of the kernel that contains kernel i. */
static u32 host_of(const TuneBuild *k, u32 i) {
  StmtId s = merged_into(k->m->p, k->kernel[i]);
  while (k->kernel[i] != s) i--; /* a host comes before the kernels merged into it */
  return i;
}

static u32 find(u32 *of, u32 i) {
  while (of[i] != i) i = of[i] = of[of[i]];
  return i;
}

/* Minimum times in a and b of all kernels that involve the key; false: not comparable. */
static bool compare(Ctx *c, const TuneBuild *a, const TuneBuild *b, const char *key, double *from,
                    double *to) {
  u32 n = a->nkernel;
  Mark mark = arena_mark(&c->scratch);
  u32 *of = NEWS(&c->scratch, u32, n + 1);
  bool *part = NEWS(&c->scratch, bool, n + 1);
  *from = *to = 0;
  for (u32 i = 0; i < n; i++) of[i] = i;
  for (u32 i = 0; i < n && n == b->nkernel; i++) {
    of[find(of, i)] = find(of, host_of(a, i));
    of[find(of, i)] = find(of, host_of(b, i));
  }
  const TuneTable *t = a->m->tuning.tune;
  for (u32 i = 0; i < t->asked.n; i++) {
    const TuneQuery *q = &t->asked.at[i];
    if (!q->kernel || strcmp(str_text(a->m->c, q->key), key)) continue;
    u32 k = 0;
    while (a->kernel[k] != q->kernel) k++;
    part[find(of, k)] = true;
  }
  for (u32 i = 0; i < n && n == b->nkernel; i++) {
    if (!part[find(of, i)]) continue;
    *from += a->min_ns[a->kernel[i]];
    *to += b->min_ns[b->kernel[i]];
  }
  arena_rewind(&c->scratch, mark);
  return *from > 0 && *to > 0;
}

/* ---- choices ---- */

/* Passes known choices to a build. */
static void copy_table(Tuner *t, Ingot *n) {
  for (u32 i = 0; i < t->found.line.n; i++)
    tune_set(n->tuning.tune, other_str(n->c, t->m->c, t->found.line.at[i].key),
             other_str(n->c, t->m->c, t->found.line.at[i].choice));
}

static void list_keys(Tuner *t) {
  Ctx *c = t->m->c;
  const Ctx *from = t->base.m->c;
  const TuneTable *tune = t->base.m->tuning.tune;
  Map seen = map_new(&c->scratch);
  t->open.n = t->trial.n = t->rounds = 0;
  for (u32 i = 0; i < tune->asked.n; i++) {
    const TuneQuery *q = &tune->asked.at[i];
    Str key = other_str(c, from, q->key);
    if (q->known || !q->kernel || (*map_put(&seen, key))++) continue;
    const char **choice = NEWS(&c->keep, const char *, q->n);
    for (u32 k = 0; k < q->n; k++) choice[k] = str_text(c, other_str(c, from, q->choice[k]));
    *vec_push(&c->keep, &t->open) = (TuneKey){.key = key, .choice = choice, .n = q->n, .gain = 1};
  }
}

/* Do two keys choose for the same kernel of the baseline? */
static bool same_kernel(Tuner *t, const char *a, const char *b) {
  const TuneTable *tune = t->base.m->tuning.tune;
  const Ctx *c = t->base.m->c;
  for (u32 i = 0; i < tune->asked.n; i++) {
    if (strcmp(str_text(c, tune->asked.at[i].key), a)) continue;
    for (u32 k = 0; k < tune->asked.n; k++) {
      StmtId x = tune->asked.at[i].kernel, y = tune->asked.at[k].kernel;
      if (!x || !y || strcmp(str_text(c, tune->asked.at[k].key), b)) continue;
      if (merged_into(t->base.m->p, x) == merged_into(t->base.m->p, y)) return true;
    }
  }
  return false;
}

static void plan_rounds(Tuner *t) {
  Ctx *c = t->m->c;
  for (u32 i = 0; i < t->open.n; i++)
    for (u32 k = 1; k < t->open.at[i].n; k++) {
      u32 round = 0;
      for (bool free = false; !free && round < ROUNDS; round += !free) {
        free = true;
        for (u32 r = 0; r < t->trial.n && free; r++)
          free = t->trial.at[r].round != round ||
                 (t->trial.at[r].open != i &&
                  !same_kernel(t, str_text(c, t->open.at[i].key),
                               str_text(c, t->open.at[t->trial.at[r].open].key)));
      }
      if (round == ROUNDS) continue; /* limit of trials reached */
      *vec_push(&c->keep, &t->trial) = (Trial){i, k, round};
      if (round >= t->rounds) t->rounds = round + 1;
    }
}

static void set_choice(Tuner *t, Ingot *n, const TuneKey *x, u32 choice) {
  tune_set(n->tuning.tune, other_str(n->c, t->m->c, x->key), str_of(n->c, x->choice[choice]));
}

static void try_round(Tuner *t, u32 round) {
  Ingot *n = clone_model(t, &t->other);
  copy_table(t, n);
  for (u32 i = 0; i < t->trial.n; i++)
    if (t->trial.at[i].round == round)
      set_choice(t, n, &t->open.at[t->trial.at[i].open], t->trial.at[i].choice);
  build_make(t, &t->other);
  alternate_runs(t, &t->base, &t->other);
  for (u32 i = 0; i < t->trial.n; i++) {
    TuneKey *x = &t->open.at[t->trial.at[i].open];
    double from, to;
    if (t->trial.at[i].round != round ||
        !compare(t->m->c, &t->base, &t->other, str_text(t->m->c, x->key), &from, &to))
      continue;
    if (from / to > x->gain && from / to > MIN_SPEEDUP) {
      x->gain = from / to;
      x->best = t->trial.at[i].choice;
    }
  }
  build_free(&t->other);
}

/* Builds all winners together and drops those that do not win again. */
static void try_all(Tuner *t) {
  Ctx *c = t->m->c;
  Ingot *n = clone_model(t, &t->other);
  copy_table(t, n);
  for (u32 i = 0; i < t->open.n; i++) set_choice(t, n, &t->open.at[i], t->open.at[i].best);
  build_make(t, &t->other);
  alternate_runs(t, &t->base, &t->other);
  for (u32 i = 0; i < t->open.n; i++) {
    TuneKey *x = &t->open.at[i];
    bool same = compare(c, &t->base, &t->other, str_text(c, x->key), &x->from, &x->to);
    if (!same || x->from < x->to * (1 + (MIN_SPEEDUP - 1) / 2)) x->best = 0;
    if (!x->best) x->to = x->from;
    if (x->best)
      report_line(t, "  %.2fx faster, %.1f -> %.1f us: %s: %s instead of %s", x->from / x->to,
                  x->from * 1e-3, x->to * 1e-3, str_text(c, x->key), x->choice[x->best],
                  x->choice[0]);
  }
  report_line(t, "the model: %.3f -> %.3f ms", t->base.whole * 1e-6, t->other.whole * 1e-6);
  build_free(&t->other);
}

static void write_records(Tuner *t) {
  tune_file_write(t->m->c, (FileOut){.path = t->path, .cached = !t->o->file}, &t->machine,
                  &t->found, &t->others);
}

/* One pass over all unmeasured kernels; false: none. First checks that the file is writable. */
static bool tune_once(Tuner *t) {
  Ctx *c = t->m->c;
  Ingot *n = clone_model(t, &t->base);
  copy_table(t, n);
  if (ingot_passes(n, NULL)) fail_as(t, n);
  list_keys(t);
  if (!t->open.n) {
    build_free(&t->base);
    return false;
  }
  write_records(t);
  plan_rounds(t);
  report_line(t, "tuning %u kernels: %u choices in %u builds", t->open.n, t->trial.n,
              t->rounds + 2);
  if (t->rounds) build_make(t, &t->base);
  for (u32 i = 0; i < t->rounds; i++) try_round(t, i);
  if (t->rounds) try_all(t);
  for (u32 i = 0; i < t->open.n; i++) {
    const TuneKey *x = &t->open.at[i];
    tune_file_add(c, &t->found,
                  (TuneRecord){x->key, str_of(c, x->choice[x->best]),
                               str_fmt(c, "%.2f", x->from * 1e-3),
                               str_fmt(c, "%.2f", x->to * 1e-3)});
  }
  build_free(&t->base);
  write_records(t);
  return true;
}

/* ---- the file ---- */

/* The compiler command with all flags; a hash if it does not fit on a line of the file. */
static const char *command_name(Ctx *c, const ArgVec *w) {
  StrBuf t = sb_new(&c->keep);
  bool plain = true;
  for (u32 i = 0; i < w->n; i++) sb_fmt(&t, "%s%s", i ? " " : "", w->at[i]);
  for (size_t i = 0; i < t.n; i++) plain = plain && t.at[i] >= 0x20 && t.at[i] < 0x7f;
  if (plain && t.n <= MAX_COMMAND) return sb_cstr(&t);
  return str_text(c, str_fmt(c, "%016llx", (unsigned long long)hash_bytes(t.at, t.n)));
}

/* Command, first line of the version, and relevant flags. */
static const char *compiler_name(Tuner *t) {
  Ctx *c = t->m->c;
  ArgVec w = {0};
  argv_compiler(c, &w, t->o->cc);
  const char *command = command_name(c, &w);
  const char *version = compiler_version(c, &t->folder, &w);
  return str_text(c, str_fmt(c, "%s: %s -O%s %s", command, version,
                             t->o->optimize ? t->o->optimize : "2",
                             t->m->compiled.cflags ? t->m->compiled.cflags : ""));
}

/* Allocates memory larger than any cache. */
static void make_sweep(Tuner *t) {
  long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
  t->nsweep = MIN_SWEEP;
  if (size > MIN_SWEEP / 2) t->nsweep = size > MAX_SWEEP / 2 ? MAX_SWEEP : (size_t)size * 2;
  t->sweep = NEWS(&t->m->c->keep, u8, t->nsweep);
}

static void tune_all(Ctx *c, void *arg) {
  Tuner *t = arg;
  Ingot *m = t->m;
  tempdir_make(c, &t->folder);
  t->machine = (TuneEnv){m->machine.target->name, cpu_name(c), compiler_name(t), INGOT_VERSION};
  t->path = t->o->file ? t->o->file : cache_file(c, "tune", "--tune");
  t->others = sb_new(&c->keep);
  struct stat st;
  bool cached = !t->o->file;
  if (cached ? cache_check_file(c, t->path) : !stat(t->path, &st) || errno != ENOENT)
    t->found = tune_file_read(c, t->path, &t->machine, &t->others);
  make_sweep(t);
  u32 passes = 0;
  while (passes < AGAIN && tune_once(t)) passes++;
  if (!passes) report_line(t, "%s: all tile sizes are known, nothing to measure", t->path);
  m->tuning.tune = tune_file_table(c, &t->found);
  m->tuning.tuned = NULL; /* --tune includes it */
}

static void tune_model(Ingot *m, const IngotTune *o) {
  Ctx *c = m->c;
  api_need(c, o, "the options");
  compiler_need(c, o->cc);
  if (m->codegen.aim != AIM_time)
    fail(c, ERR_usage, LOC_NONE,
         "--tune and --optimize-for %s exclude each other: --tune measures time",
         m->codegen.aim == AIM_ram ? "ram" : "size");
  if (m->codegen.ram)
    fail(c, ERR_usage, LOC_NONE, "--tune and --ram exclude each other: --tune measures time");
  if (o->march)
    api_march(m, o->march, o->cc);
  else
    api_target_native(m, o->cc);
  api_need_single_entry(m);
  api_need_runnable_build(m, o->cc, "--tune measures");
  if (!m->opened.reader || m->passed)
    fail(c, ERR_usage, LOC_NONE, "--tune: expected a graph, found a lowered program");
  Tuner t = {.m = m, .o = o};
  Err e = ctx_protect(c, tune_all, &t);
  build_free(&t.base);
  build_free(&t.other);
  tempdir_remove(&t.folder);
  if (e) longjmp(*c->door, (int)e);
}

IngotStatus ingot_tune(Ingot *m, const IngotTune *o) {
  API_CALL(m, tune_model(m, o));
}
