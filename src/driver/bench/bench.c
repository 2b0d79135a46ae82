/* bench.c: measures run times.
 *
 * In: a model with inputs, an engine, a time limit. Out: percentiles of the run time, the time to
 * the first result, peak memory and, for C, code size. Interpreters are measured in this process. C
 * is measured as a separate program (tools/runner.c), so that its memory is that of the model and
 * not of the compiler.
 */
#include "driver/bench/bench.h"
#include "driver/build/build_product.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MAX_RUNS = 1 << 16, MIN_RUNS = 5, WARM_UP = 2 };

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* ---- in this process ---- */

static double interpret(Bench *a) {
  Ctx *c = a->m->c;
  Mark mark = arena_mark(&c->keep);
  double start = time_ms();
  if (a->vm)
    vm_run(a->vm, &(VmOptions){.seed = a->seed}, a->m->run.in, a->result, &c->keep);
  else
    interp_run(a->m->p, &(InterpOptions){.seed = a->seed}, a->m->run.in, a->result, &c->keep);
  double ms = time_ms() - start;
  arena_rewind(&c->keep, mark); /* results are not used */
  return ms;
}

/* Runs code that LLVM or CUDA made before. */
static double run_engine(Bench *a) {
  Ingot *m = a->m;
  Mark mark = arena_mark(&m->run.once);
  double start = time_ms();
  a->engine->run(m, a->seed);
  double ms = time_ms() - start;
  arena_rewind(&m->run.once, mark); /* results are not used */
  return ms;
}

static void bench_runs(Bench *a, double (*once)(Bench *a)) {
  IngotBench *r = a->out;
  double *ms = NEWS(&a->m->c->keep, double, MAX_RUNS), start = a->start, end;
  once(a);
  r->first_ms = time_ms() - start;
  for (u32 i = 1; i < WARM_UP && time_ms() - start < a->seconds * 1e3; i++) once(a);
  end = time_ms() + a->seconds * 1e3;
  for (; r->n < MAX_RUNS && (r->n < MIN_RUNS || time_ms() < end); r->n++) ms[r->n] = once(a);
  qsort(ms, (size_t)r->n, sizeof *ms, ascending);
  r->min_ms = ms[0];
  r->p50_ms = ms[(r->n - 1) / 2];
  r->p90_ms = ms[(int)((r->n - 1) * 0.90)];
  r->p99_ms = ms[(int)((r->n - 1) * 0.99)];
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  r->rss_kb = (uint64_t)use.ru_maxrss;
}

/* Time of each kernel in a run, the mean of some runs. */
static void time_kernels(Bench *a) {
  enum { RUNS = 10 };
  Ingot *m = a->m;
  Ctx *c = m->c;
  KernelTime *time;
  u32 n = cuda_time_kernels(api_cuda(m), &time);
  for (u32 i = 0; i < RUNS; i++) run_engine(a);
  IngotKernel *k = NEWS(&c->keep, IngotKernel, n + 1);
  const Range *range = prog_ranges(m->p, NULL, &c->keep);
  for (u32 i = 0; i < n; i++) {
    KernelWork w = prog_work(m->p, range, time[i].id, &c->keep);
    double calls = (double)time[i].calls / RUNS;
    const char *label = str_text(c, prog_stmt(m->p, time[i].id)->label);
    k[i] = (IngotKernel){label, time[i].ms / RUNS, calls, w.macs * calls, w.bytes, w.whole * calls};
  }
  a->out->kernel = k;
  a->out->nkernel = n;
}

/* Interpreters run the program without the state of the session. */
static void run_here(Bench *a) {
  Ingot *m = a->m;
  unsigned flags = a->engine->info.flags;
  if (flags & INGOT_OPTIONAL) {
    double start = time_ms();
    m->run.out = a->result;
    a->engine->make(m);
    a->out->build_ms = time_ms() - start;
    bench_runs(a, run_engine);
    if (flags & INGOT_DEVICE) a->out->device_ms = cuda_replay_ms(api_cuda(m));
  } else {
    if (flags & INGOT_HOST)
      vm_prepare(a->vm = api_vm(m)); /* memory of a run is released after it */
    bench_runs(a, interpret);
  }
  if (flags & INGOT_DEVICE && a->build && a->build->c.profile) time_kernels(a);
}

/* ---- c ---- */

/* Can the inputs be stored in .npz? Otherwise the program generates its own. */
static bool can_store(Ingot *m) {
  for (u32 i = 0; i < api_param_count(m); i++) {
    DType dt = m->run.in[i]->dt;
    u32 bits = dtype_info[dt].bits;
    if (!*str_text(m->c, api_param_name(m, i))) return false;
    if (dt == DT_bf16 || (dt != DT_bool && bits != 8 * dtype_bytes(dt)) ||
        (dtype_is_float(dt) && bits < 16))
      return false;
  }
  return true;
}

static double number(Ctx *c, const char *text, const char *key) {
  const char *at = strstr(text, key);
  if (!at) fail(c, ERR_system, LOC_NONE, "the program printed no %s:\n%.200s", key, text);
  return strtod(at + strlen(key), NULL);
}

/* After the JSON line: "kernels N", then ms and calls of each. */
static void read_kernels(Ctx *c, Bench *a, const char *text) {
  const Ingot *m = a->m;
  const char *at = strstr(text, "kernels ");
  char *end = NULL;
  if (!at || strtoul(at + 8, &end, 10) != m->written.nprofile)
    fail(c, ERR_system, LOC_NONE, "the program did not time its kernels:\n%.200s", text);
  IngotKernel *k = NEWS(&c->keep, IngotKernel, m->written.nprofile + 1);
  for (u32 i = 0; i < m->written.nprofile; i++) {
    const KernelFacts *f = &m->written.profile[i];
    double ms = strtod(end, &end), calls = strtod(end, &end);
    k[i] = (IngotKernel){f->nodes, ms, calls, f->macs * calls, f->bytes, f->whole * calls};
  }
  a->out->kernel = k;
  a->out->nkernel = m->written.nprofile;
}

/* If a kernel is faster than the peak, other programs used the CPU while the peak was measured.
 * Then measures the peak again and keeps the best, to avoid percentages above 100. */
static void measure_peak(Ctx *c, Bench *a) {
  enum { ATTEMPTS = 3 };
  IngotBench *r = a->out;
  double fastest = 0;
  for (u32 i = 0; i < r->nkernel; i++) {
    const IngotKernel *k = &r->kernel[i];
    if (k->ms > 0) fastest = fmax(fastest, 2e-6 * (k->macs - k->whole) / k->ms);
  }
  for (u32 i = 0; i < ATTEMPTS && (!i || fastest > r->peak_gflops); i++) {
    MachinePeak p = api_peak(c, &a->folder, a->build ? a->build->cc : NULL, r->threads);
    r->peak_gflops = fmax(r->peak_gflops, p.gflops);
    r->peak_gbps = fmax(r->peak_gbps, p.gbps);
  }
}

static void run_program(Ctx *c, void *arg) {
  Bench *a = arg;
  IngotBench *r = a->out;
  IngotBuild b = a->build ? *a->build : (IngotBuild){0};
  tempdir_make(c, &a->folder);
  const char *program = tempdir_file(c, &a->folder, "program"),
             *inputs = tempdir_file(c, &a->folder, "in.npz");
  char seconds[32], seed[32];
  ArgVec w = {0};
  argv_compiler(c, &w, b.cc);
  r->compiler = str_text(
      c, str_fmt(c, "%s -O%s", compiler_version(c, &a->folder, &w), b.optimize ? b.optimize : "2"));
  b.output = program;
  b.c.name = "model";
  b.c.selftest = -1;
  double start = time_ms();
  b.arrays = 1;
  CodeSize size = api_build(a->m, &b);
  r->build_ms = time_ms() - start;
  r->text_bytes = size.text;
  r->data_bytes = size.data;
  bool store = can_store(a->m);
  if (store) api_write_inputs(a->m, inputs);
  snprintf(seconds, sizeof seconds, "%.3f", a->seconds);
  snprintf(seed, sizeof seed, "%llu", (unsigned long long)a->seed);
  const char *with = store ? "--inputs" : "--seed", *value = store ? inputs : seed;
  start = time_ms();
  spawn_run(c, &a->folder, "the compiled model", (const char *const[]){program, with, value, NULL});
  r->first_ms = time_ms() - start;
  spawn_run(c, &a->folder, "the compiled model",
            (const char *const[]){program, with, value, "--bench", seconds, NULL});
  File log = file_read_own(c, tempdir_file(c, &a->folder, "log"));
  StrBuf t = sb_new(&c->keep);
  sb_put(&t, log.at, log.n);
  const char *text = sb_cstr(&t);
  r->n = (int)number(c, text, "\"n\":");
  r->min_ms = number(c, text, "\"min_ms\":");
  r->p50_ms = number(c, text, "\"p50_ms\":");
  r->p90_ms = number(c, text, "\"p90_ms\":");
  r->p99_ms = number(c, text, "\"p99_ms\":");
  r->rss_kb = (uint64_t)number(c, text, "\"rss_kb\":");
  if (!b.c.profile) return;
  read_kernels(c, a, text);
  measure_peak(c, a);
}

void api_bench(Bench *a) {
  Ingot *m = a->m;
  Ctx *c = m->c;
  api_need(c, a->out, "a pointer to the times");
  a->start = time_ms();
  const Engine *e = a->engine = api_engine_for(m, a->name, INGOT_TIMED);
  if (e->info.flags & INGOT_NATIVE) compiler_need(c, a->build ? a->build->cc : NULL);
  if (e->info.flags & INGOT_DEVICE) cuda_need(c);
  m->runs = true;
  api_import(m, false);
  m->run.in = api_inputs(m, a->seed);
  m->run.nin = api_param_count(m);
  a->result = NEWS(&c->keep, Tensor *, ingot_output_count(m) + 1);
  if (a->build && a->build->march) api_march(m, a->build->march, a->build->cc);
  if (e->info.flags & INGOT_HOST) api_target_host(m);
  if (e->info.flags & INGOT_DEVICE) api_target_device(m);
  if (e->info.flags & INGOT_NATIVE) {
    m->codegen.for_c = true;
    api_target_native(m, a->build ? a->build->cc : NULL);
    api_need_runnable(m);
  }
  if (e->info.flags & INGOT_OPTIONAL && !(e->info.flags & INGOT_DEVICE)) api_need_runnable(m);
  api_run_passes(m, NULL);
  if (a->build && a->build->c.profile && !(e->info.flags & (INGOT_NATIVE | INGOT_DEVICE)))
    fail(c, ERR_usage, LOC_NONE, "engine %s cannot time kernels; expected engine c", e->info.name);
  a->out->cpu = cpu_name(c);
  a->out->target = m->machine.target ? m->machine.target->name : "scalar";
  a->out->threads = e->info.flags & INGOT_NATIVE && m->codegen.threads > 1 ? m->codegen.threads : 1;
  if (e->info.flags & INGOT_NATIVE)
    tempdir_protect(c, &a->folder, run_program, a);
  else
    run_here(a);
}

IngotStatus ingot_bench(Ingot *m, const char *engine, const IngotBuild *build, double seconds,
                        uint64_t seed, IngotBench *out) {
  if (out) *out = (IngotBench){0};
  Bench a = {.m = m, .name = engine, .build = build, .seconds = seconds, .seed = seed, .out = out};
  API_CALL(m, api_bench(&a));
}
