/* pgo_steps.c: a PGO build: a sequence of steps, each measured against the baseline.
 *
 * In: the C of a model and the requested steps: -O of a preset, LTO, fast math, a profile, BOLT.
 * Out: a product per step, which includes all earlier steps, and a table of speed-ups. Method:
 * programs run in turn, PGO_ROUNDS times, so that other load on the machine affects all equally;
 * speedup.c makes the table.
 */
#include "driver/build/build_product.h"
#include "driver/verify/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool wants_lto(const IngotBuild *o) {
  const Preset *p = preset_named(o->preset);
  return o->lto || (p && p->lto);
}

bool pgo_wanted(const IngotBuild *o) {
  return wants_lto(o) || o->fast_math || o->pgo || o->bolt;
}

/* OUT.baseline or OUT.baseline.so: the suffix stays at the end. */
const char *pgo_baseline_path(Ctx *c, const char *output) {
  const char *dot =
      product_kind(output) == PD_program ? output + strlen(output) : strrchr(output, '.');
  return fmt_text(c, "%.*s.baseline%s", (int)(dot - output), output, dot);
}

/* ---- early checks ---- */

static void find_lto(Ctx *c, const TempDir *f, ToolChain *t) {
  if (t->kind > CK_clang)
    fail(c, ERR_unsupported, LOC_NONE, "--lto needs gcc or clang; '%s' is neither", t->cc.at[0]);
  t->lto = compiler_lto(c, f, &t->cc, t->kind);
  if (t->lto) return;
  if (t->kind == CK_clang) tool_missing(c, "ld.lld", "--lto with clang");
  fail(c, ERR_system, LOC_NONE, "'%s' cannot link a program with -flto", t->cc.at[0]);
}

static void find_profiler(Ctx *c, const TempDir *f, ToolChain *t) {
  if (t->kind > CK_clang)
    fail(c, ERR_unsupported, LOC_NONE, "--pgo needs gcc or clang; '%s' is neither", t->cc.at[0]);
  if (t->kind == CK_clang) t->profdata = compiler_profdata(c, f, &t->cc);
  if (t->kind == CK_clang && !t->profdata) tool_missing(c, "llvm-profdata", "--pgo with clang");
  if (!compiler_accepts(c, f, &t->cc, "-fprofile-generate"))
    fail(c, ERR_system, LOC_NONE,
         "--pgo: '%s' cannot link a program with -fprofile-generate; clang needs the Debian "
         "package libclang-rt-dev",
         t->cc.at[0]);
}

static void find_bolt(Ctx *c, const TempDir *f, ToolChain *t) {
  const char *perf = tool_find(c, "perf");
  t->bolt = tool_find(c, "llvm-bolt");
  if (!t->bolt) tool_missing(c, "llvm-bolt", "--bolt");
  t->bolt = spawn_resolve(c, t->bolt); /* it searches its library from there */
  t->perf2bolt = tool_find(c, "perf2bolt");
  if (perf && t->perf2bolt && bolt_has_branches(c, f, perf)) t->perf = perf;
}

typedef struct ChainCheck {
  const IngotBuild *o;
  ToolChain *chain;
  TempDir folder;
} ChainCheck;

static void find_tools(Ctx *c, void *arg) {
  ChainCheck *k = arg;
  ToolChain *t = k->chain;
  if (!*k->folder.path) tempdir_make(c, &k->folder);
  argv_compiler(c, &t->cc, k->o->cc);
  t->version = compiler_version(c, &k->folder, &t->cc);
  t->kind = compiler_kind(c, &k->folder, &t->cc);
  if (wants_lto(k->o)) find_lto(c, &k->folder, t);
  if (k->o->pgo) find_profiler(c, &k->folder, t);
  if (k->o->bolt) find_bolt(c, &k->folder, t);
}

void pgo_check(Ingot *m, const IngotBuild *o) {
  Ctx *c = m->c;
  ToolChain chain = {0};
  ChainCheck k = {.o = o, .chain = &chain};
  const char *name = o->pgo ? "--pgo" : "--fast-math";
  if (!strcmp(o->output, "-"))
    fail(c, ERR_usage, LOC_NONE,
         "--output -: expected the name of a file; a PGO build writes two files");
  if (o->bolt && product_kind(o->output) != PD_program)
    fail(c, ERR_unsupported, LOC_NONE, "--bolt: expected a program, found %s", o->output);
  if ((o->pgo || o->fast_math) && o->c.weights && !strcmp(o->c.weights, "pointer"))
    fail(c, ERR_unsupported, LOC_NONE, "%s runs the code: leave out --weights pointer", name);
  if (o->sanitize && (o->pgo || o->bolt))
    fail(c, ERR_unsupported, LOC_NONE, "--sanitize and %s exclude each other",
         o->pgo ? "--pgo" : "--bolt");
  if (o->pgo) workload_check(c, o->pgo);
  if (o->pgo) cache_file(c, "", "--pgo"); /* the cache of profiles must be usable */
  tempdir_protect(c, &k.folder, find_tools, &k);
}

/* ---- measuring ---- */

static double number_after(const char *text, const char *key) {
  const char *at = strstr(text, key);
  return at ? strtod(at + strlen(key), NULL) : 0;
}

static const char *run_program(Ctx *c, ProductBuild *b, const char *program, const ArgVec *with) {
  ArgVec w = {0};
  int status;
  argv_put(c, &w, program);
  argv_put_list(c, &w, with->at);
  const char *text = spawn_text(c, &b->folder, "the compiled model", w.at, &status);
  if (status > SPAWN_KILLED)
    fail(c, ERR_system, LOC_NONE,
         "the compiled model was killed by a signal: code for %s%s%s may "
         "not run on this machine",
         b->m->machine.target->name, b->m->compiled.cflags ? ", " : "",
         b->m->compiled.cflags ? b->m->compiled.cflags : "");
  if (status) spawn_fail(c, &b->folder, "the compiled model", program, status);
  return text;
}

static const char question[] =
    "I keep a small garden near the house with tomatoes, beans and a row of herbs. This year the "
    "summer was dry, and the tomatoes cracked. Explain step by step what probably went wrong, and "
    "what I should do differently next year.";

/* Arguments of a measured run. */
static ArgVec measured_run(Ctx *c, ProductBuild *b) {
  ArgVec w = {0};
  if (!b->chats) {
    if (b->work.run.n) argv_put_list(c, &w, b->work.run.at[0].at);
    argv_put(c, &w, "--bench");
    argv_fmt(c, &w, "%.4f", (b->o->seconds > 0 ? b->o->seconds : 1) / PGO_ROUNDS);
    return w;
  }
  /* a token may be a byte */
  bool fits = (u64)api_context_length(b->m) >= 2 * sizeof question;
  argv_put(c, &w, "--prompt", fits ? question : "hi");
  argv_add(c, &w, "--max-tokens 32 --temperature 0");
  if (!api_chat_assets(b->m)->chat.open) argv_add(c, &w, "--raw");
  return w;
}

/* Measures one program once, in ms. */
static void take_times(Ctx *c, ProductBuild *b, PgoStep *s, const ArgVec *with, u32 round) {
  const char *text = run_program(c, b, s->v.program, with);
  if (!b->chats) {
    s->ms[0][round] = number_after(text, "\"p50_ms\":");
    return;
  }
  const char *line = strstr(text, " tokens in, ");
  if (!line) fail(c, ERR_system, LOC_NONE, "the program printed no times:\n%.200s", text);
  double first = number_after(line, " out; first after ");
  double rate = number_after(line, "tokens/s), then ");
  while (line > text && line[-1] != '\n') line--;
  double asked = strtod(line, NULL);
  s->ms[0][round] = rate > 0 ? 1e3 / rate : 0;
  s->ms[1][round] = asked > 0 ? first / asked : 0;
}

static void measure_steps(Ctx *c, ProductBuild *b) {
  ArgVec with = measured_run(c, b);
  b->measures = b->chats ? 2 : 1;
  for (u32 r = 0; r < PGO_ROUNDS; r++)
    for (u32 i = 0; i < b->step.n; i++) /* rotates the order */
      take_times(c, b, &b->step.at[(i + r) % b->step.n], &with, r);
  if (getloadavg(&b->load, 1) != 1) b->load = 0;
}

/* ---- error of fast math ---- */

static NamedTensors outputs_of(Ctx *c, ProductBuild *b, const char *program, const char *file) {
  const char *path = tempdir_file(c, &b->folder, file);
  ArgVec w = {0};
  if (b->work.run.n && !b->chats) argv_put_list(c, &w, b->work.run.at[0].at);
  argv_put(c, &w, "--output", path);
  run_program(c, b, program, &w);
  File f = file_read_own(c, path);
  return data_read_npz(c, f.at, f.n, LOC_NONE, &c->keep);
}

/* Finds the output with the largest error compared with the tolerance of verify. */
static void compare_fast_math(Ctx *c, ProductBuild *b, const BuildConfig *strict,
                              const BuildConfig *now) {
  NamedTensors want = outputs_of(c, b, strict->arrays, "strict.npz"),
               have = outputs_of(c, b, now->arrays, "fast_math.npz");
  for (u32 i = 0; i < want.n && i < have.n; i++) {
    IngotDiff d;
    IngotTensor x = api_tensor(b->m, have.at[i].name, have.at[i].t),
                y = api_tensor(b->m, want.at[i].name, want.at[i].t);
    api_diff(b->m, &x, &y, INGOT_AUTO, INGOT_AUTO, &d);
    if (!d.ok)
      fail(c, ERR_mismatch, LOC_NONE,
           "--fast-math: output %s differs from the strict build by %.3g, more than verify allows "
           "(atol %.3g, rtol %.3g): nothing is written",
           d.name, d.max_abs, d.atol, d.rtol);
    if (!b->fast_math.name || d.max_rel > b->fast_math.max_rel) b->fast_math = d;
  }
}

/* ---- steps ---- */

static PgoStep *add_step(Ctx *c, ProductBuild *b, BuildConfig *v, const char *name) {
  PgoStep *s = vec_push(&c->keep, &b->step);
  v->step = name;
  s->v = *v;
  s->v.program = "";
  if (b->o->fast_math) s->v.arrays = "";
  return s;
}

static void list_steps(Ctx *c, ProductBuild *b) {
  const IngotBuild *o = b->o;
  const char *preset = o->optimize || !o->preset ? NULL : b->preset->optimize;
  BuildConfig v = {.optimize = o->optimize ? o->optimize : "2"};
  if (!o->preset && !o->optimize) v.optimize = build_default_level(b);
  add_step(c, b, &v, "baseline");
  if (preset && strcmp(preset, v.optimize)) {
    v.optimize = preset;
    add_step(c, b, &v, fmt_text(c, "-O%s", preset));
  }
  v.lto = wants_lto(o);
  if (v.lto) add_step(c, b, &v, "lto");
  v.fast_math = o->fast_math;
  if (v.fast_math) add_step(c, b, &v, "fast_math");
  if (o->pgo) add_step(c, b, &v, "pgo");
  v.relocs = o->bolt;
  if (o->bolt) add_step(c, b, &v, "bolt");
}

/* Code for other machines supports only LTO. */
bool pgo_can_measure(Ctx *c, ProductBuild *b) {
  const IngotBuild *o = b->o;
  const char *what = o->pgo ? "--pgo" : o->bolt ? "--bolt" : o->fast_math ? "--fast-math" : NULL;
  if (o->c.weights && !strcmp(o->c.weights, "pointer"))
    b->unmeasured = "the code does not contain its weights";
  else if (api_entry_count(b->m) > 1)
    b->unmeasured = "a program runs one model";
  else if (!api_is_runnable(b->m, o->cc))
    b->unmeasured = fmt_text(c, "code for %s does not run here", b->m->machine.target->name);
  if (b->unmeasured && what)
    fail(c, ERR_unsupported, LOC_NONE, "%s runs the code: %s", what, b->unmeasured);
  return !b->unmeasured;
}

/* After the baseline, which ignores the preset: switches to the goal of the preset. */
static void aim_as_asked(Ctx *c, ProductBuild *b) {
  b->m->codegen.aim = b->preset->aim;
  b->m->machine.variant_progs = NULL;
  api_restore_graph(b->m);
  build_text(c, b);
}

void pgo_run(Ctx *c, ProductBuild *b) {
  ChainCheck k = {.o = b->o, .chain = &b->chain, .folder = b->folder};
  find_tools(c, &k);
  bool runs = !b->unmeasured;
  list_steps(c, b);
  if (runs) workload_read(c, b);
  ArgVec profile = {0};
  for (u32 i = 0; i < b->step.n; i++) {
    PgoStep *s = &b->step.at[i];
    if (!runs) s->v.program = s->v.arrays = NULL;
    if (!strcmp(s->v.step, "pgo")) profile = profile_make(c, b, &s->v);
    s->v.profile = profile;
    build_compile(c, b, &s->v);
    if (!i && b->aims_elsewhere) aim_as_asked(c, b);
    if (!strcmp(s->v.step, "fast_math")) compare_fast_math(c, b, &b->step.at[i - 1].v, &s->v);
    if (!strcmp(s->v.step, "bolt")) bolt_apply(c, b, &s->v);
    s->bytes = file_read_own(c, s->v.product).n;
  }
  if (runs) measure_steps(c, b);
}
