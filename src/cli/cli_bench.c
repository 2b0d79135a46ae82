/* cli_bench.c: latency, memory and code size, per engine and per kernel. JSON is one array, one
 * engine per line.
 */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>

/* ---- kernels ---- */

/* Figures derived from the measurement. */
typedef struct Rate {
  double share;        /* fraction of the time of all kernels */
  double gflops, gbps; /* gbps: all bytes that its calls touch */
  double peak_share;   /* fraction of the f32 peak; 0: unknown; NaN: integers, or above the peak */
} Rate;

static double total_ms(const IngotBench *b) {
  double sum = 0;
  for (uint32_t i = 0; i < b->nkernel; i++) sum += b->kernel[i].ms;
  return sum;
}

static Rate rate_of(const IngotBench *b, const IngotKernel *k, double total) {
  Rate r = {0};
  if (total > 0) r.share = k->ms / total;
  if (k->ms > 0) r.gflops = 2e-6 * k->macs / k->ms;
  if (k->ms > 0) r.gbps = 1e-6 * k->bytes * k->calls / k->ms;
  int integers = 2 * k->whole > k->macs;
  if (b->peak_gflops > 0) r.peak_share = r.gflops / b->peak_gflops;
  if (integers || r.peak_share > 1) r.peak_share = (double)NAN;
  return r;
}

static int slowest_first(const void *a, const void *b) {
  const IngotKernel *x = *(const IngotKernel *const *)a, *y = *(const IngotKernel *const *)b;
  return (x->ms < y->ms) - (x->ms > y->ms);
}

/* Prints the kernels by descending time; '#' is the position in a run. */
static void print_kernels(const IngotBench *b) {
  double total = total_ms(b);
  int busy = 0;
  const IngotKernel **order = malloc((b->nkernel + 1) * sizeof *order);
  for (uint32_t i = 0; order && i < b->nkernel; i++) order[i] = &b->kernel[i];
  if (order) qsort(order, b->nkernel, sizeof *order, slowest_first);
  printf("\n%4s %10s %6s %6s %14s %9s %7s %11s %7s  %s\n", "#", "ms", "share", "calls",
         "multiply-adds", "GFLOP/s", "of peak", "bytes", "GB/s", "values");
  for (uint32_t i = 0; i < b->nkernel; i++) {
    const IngotKernel *k = order ? order[i] : &b->kernel[i];
    Rate r = rate_of(b, k, total);
    int integers = 2 * k->whole > k->macs;
    printf("%4d %10.5f %5.1f%% %6.0f %14.0f %9.2f ", (int)(k - b->kernel) + 1, k->ms, 100 * r.share,
           k->calls, k->macs, r.gflops);
    if (isnan(r.peak_share))
      printf("%7s", integers ? "int" : "busy");
    else
      printf("%6.1f%%", 100 * r.peak_share);
    printf(" %11.0f %7.2f  %s\n", k->bytes, r.gbps, k->nodes);
    busy |= isnan(r.peak_share) && !integers;
  }
  free(order);
  printf(
      "     %10.5f in %u kernels; peak of this machine: %.1f GFLOP/s in f32, %.1f GB/s read from "
      "memory\n",
      total, b->nkernel, b->peak_gflops, b->peak_gbps);
  if (busy) puts("busy: faster than the measured peak; other programs used the CPU meanwhile");
}

static void print_kernels_json(const IngotBench *b) {
  double total = total_ms(b);
  printf(",\"peak_gflops\":%.2f,\"peak_gbps\":%.2f,\"kernels\":[", b->peak_gflops, b->peak_gbps);
  for (uint32_t i = 0; i < b->nkernel; i++) {
    const IngotKernel *k = &b->kernel[i];
    Rate r = rate_of(b, k, total);
    json_text(i ? ",\n {\"values\":" : "\n {\"values\":", k->nodes);
    printf(",\"ms\":%.6f,\"share\":%.5f,\"calls\":%.0f,\"multiply_adds\":%.0f,\"gflops\":%.3f",
           k->ms, r.share, k->calls, k->macs, r.gflops);
    json_real(",\"peak_share\":", r.peak_share);
    printf(",\"bytes\":%.0f,\"gbps\":%.3f}", k->bytes, r.gbps);
  }
  printf("]");
}

/* ---- engines ---- */

static double runs_per_s(const IngotBench *b) {
  return b->p50_ms > 0 ? 1000 / b->p50_ms : 0;
}

static void print(const Args *a, const char *engine, const IngotBench *b, int first) {
  if (a->json) {
    printf("%s\n{\"engine\":\"%s\",\"n\":%d,\"min_ms\":%.6f,\"p50_ms\":%.6f,\"p90_ms\":%.6f,\"p99_"
           "ms\":"
           "%.6f,\"runs_per_s\":%.3f,\"first_ms\":%.3f,"
           "\"build_ms\":%.3f,\"rss_kb\":%llu,\"text_bytes\":%llu,\"data_bytes\":%llu",
           first ? "[" : ",", engine, b->n, b->min_ms, b->p50_ms, b->p90_ms, b->p99_ms,
           runs_per_s(b), b->first_ms, b->build_ms, (unsigned long long)b->rss_kb,
           (unsigned long long)b->text_bytes, (unsigned long long)b->data_bytes);
    json_text(",\"cpu\":", b->cpu);
    json_text(",\"target\":", b->target);
    json_text(",\"compiler\":", b->compiler ? b->compiler : "");
    printf(",\"threads\":%u", b->threads);
    if (b->device_ms > 0) printf(",\"device_ms\":%.6f", b->device_ms);
    if (a->per_kernel) print_kernels_json(b);
    printf("}");
    return;
  }
  if (first)
    printf("%s\n%-8s %7s %10s %10s %10s %10s %9s %10s %10s %9s %9s %10s  %s\n", b->cpu, "engine",
           "runs", "min ms", "P50 ms", "P90 ms", "P99 ms", "runs/s", "first ms", "build ms",
           "peak KB", "code B", "const B", "target, threads, compiler");
  printf(
      "%-8s %7d %10.4f %10.4f %10.4f %10.4f %9.*f %10.1f %10.1f %9llu %9llu %10llu  %s, %u%s%s\n",
      engine, b->n, b->min_ms, b->p50_ms, b->p90_ms, b->p99_ms, runs_per_s(b) < 100 ? 2 : 0,
      runs_per_s(b), b->first_ms, b->build_ms, (unsigned long long)b->rss_kb,
      (unsigned long long)b->text_bytes, (unsigned long long)b->data_bytes, b->target, b->threads,
      b->compiler ? ", " : "", b->compiler ? b->compiler : "");
  if (b->device_ms > 0) printf("on the device, without copies: P50 %.4f ms\n", b->device_ms);
  if (a->per_kernel) print_kernels(b);
}

static int is_bytecode(const Args *a) {
  Ingot *m = new_model();
  IngotStatus s = !m         ? INGOT_SYSTEM
                  : a->bytes ? ingot_open_bytes(m, a->bytes, a->nbytes, a->model)
                             : ingot_open(m, a->model);
  int is = !s && ingot_is_vm(m);
  ingot_free(m);
  return is;
}

int cli_lacks_compiler(const Args *a, const char *instead) {
  Ingot *m = new_model();
  int lacks = m && ingot_check_build(m, &(IngotBuild){0}) == INGOT_SYSTEM;
  if (lacks && !a->quiet) {
    watch_line("warning: ", ingot_message(m, 0, NULL));
    watch_line("", instead);
  }
  ingot_free(m);
  return lacks;
}

/* Is engine c omitted? Without a C compiler, and unless the user names engine c, bench measures
 * engines that do not need one. */
static int omits_compiler(const Args *a) {
  return !a->engine && !a->build.cc && !a->per_kernel &&
         cli_lacks_compiler(a, ingot_llvm() ? "measuring engines vm and jit instead of c"
                                            : "measuring engine vm instead of c");
}

static int is_measured(const IngotEngine *e, int no_compiler) {
  if (no_compiler && e->flags & INGOT_NATIVE) return 0;
  int other = e->flags & INGOT_OPTIONAL && !(e->flags & INGOT_DEVICE);
  if (no_compiler && other && ingot_llvm()) return 1;
  return !(~e->flags & (INGOT_TIMED | INGOT_PEER));
}

/* false: every engine fails in the same way. */
static int can_import(const Args *a) {
  Ingot *m = new_model();
  int can = m && !cli_prepare(m, a) && !ingot_import(m, 0);
  ingot_free(m);
  return can;
}

int verb_bench(const Args *given) {
  Args own = *given;
  const Args *a = &own;
  int result = buffer_stdin_model(&own), printed = 0;
  watch_line_buffered();
  Args rest = own;
  if (result) return result;
  if (!own.engine && is_bytecode(&own)) own.engine = "vm";
  const IngotEngine *chosen = ingot_find_engine(own.engine);
  int plays = !own.engine || (chosen && chosen->flags & INGOT_DEVICE);
  if (plays && !own.per_kernel && !own.bytes && (result = bench_player(&own)) >= 0) return result;
  result = 0;
  int no_compiler = omits_compiler(&own);
  if (own.per_kernel && !own.engine) own.engine = engine_with(INGOT_NATIVE);
  warn_unused_threads(a, a->engine);
  IngotBuild build = {.cc = a->build.cc,
                      .march = a->march,
                      .optimize = a->build.optimize,
                      .c = {.profile = a->per_kernel}};
  rest.march = NULL; /* passed to the compiler, which knows more CPUs */
  const IngotEngine *e;
  for (uint32_t i = 0; (e = ingot_engine(i)) && !(a->engine && i); i++) {
    const char *engine = a->engine ? a->engine : e->name;
    if (!a->engine && !is_measured(e, no_compiler)) continue;
    Ingot *m = new_model_or_report();
    if (!m) {
      result = INGOT_SYSTEM;
      break;
    }
    IngotBench b;
    const IngotEngine *named = ingot_find_engine(engine);
    int compiles = (!a->engine && !no_compiler) || (named && named->flags & INGOT_NATIVE);
    IngotStatus s = i == 0 && compiles ? ingot_check_build(m, &build) : INGOT_OK;
    if (!s) s = cli_prepare(m, &rest);
    int hopeless = s != INGOT_OK; /* failed before an engine was measured */
    if (!s && named && named->flags & INGOT_NATIVE) s = cli_tune(m, a, a->march);
    watch_task(engine);
    if (!s) s = ingot_bench(m, engine, &build, a->build.seconds, a->seed, &b);
    watch_task(NULL);
    if (!s) print(a, engine, &b, !printed);
    if (i == 0 || s) print_messages(m, a->quiet || i); /* warnings are the same for all engines */
    if (s) print_hint(m, a);
    ingot_free(m);
    printed = printed || !s;
    if (s && !result) result = (int)s;
    if (s == INGOT_USAGE || hopeless || (s && !can_import(&rest))) break;
  }
  if (a->json && printed) puts("\n]");
  return result;
}
