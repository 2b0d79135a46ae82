/* bench: times, memory and size of code, per engine. JSON is one array, one engine a line. */
#include "cli/cli.h"

static void print(const Args *a, const char *engine, const IngotBench *b, int first) {
  if (a->json) {
    printf("%s\n{\"engine\":\"%s\",\"n\":%d,\"min_ms\":%.6f,\"p50_ms\":%.6f,\"p90_ms\":%.6f,\"p99_"
           "ms\":"
           "%.6f,\"first_ms\":%.3f,"
           "\"build_ms\":%.3f,\"rss_kb\":%llu,\"text_bytes\":%llu,\"data_bytes\":%llu}",
           first ? "[" : ",", engine, b->n, b->min_ms, b->p50_ms, b->p90_ms, b->p99_ms, b->first_ms,
           b->build_ms, (unsigned long long)b->rss_kb, (unsigned long long)b->text_bytes,
           (unsigned long long)b->data_bytes);
    return;
  }
  printf("%-8s %7d %10.4f %10.4f %10.4f %10.4f %10.1f %10.1f %9llu %9llu %10llu\n", engine, b->n,
         b->min_ms, b->p50_ms, b->p90_ms, b->p99_ms, b->first_ms, b->build_ms,
         (unsigned long long)b->rss_kb, (unsigned long long)b->text_bytes,
         (unsigned long long)b->data_bytes);
}

int verb_bench(const Args *a) {
  IngotBuild build = {.cc = a->cc, .march = a->march, .optimize = a->optimize};
  Args rest = *a;
  rest.march = NULL; /* goes to the compiler, which knows more of them */
  int result = 0, said = 0;
  const IngotEngine *e;
  for (uint32_t i = 0; (e = ingot_engine(i)) && !(a->engine && i); i++) {
    const char *engine = a->engine ? a->engine : e->name;
    if (!a->engine && !(e->flags & INGOT_TIMED)) continue;
    Ingot *m = open_or_complain();
    if (!m) {
      result = INGOT_SYSTEM;
      break;
    }
    IngotBench b;
    const IngotEngine *named = ingot_find_engine(engine);
    int compiles = !a->engine || (named && named->flags & INGOT_NATIVE);
    IngotStatus s = i == 0 && compiles ? ingot_check_build(m, &build) : INGOT_OK;
    int hopeless = s != INGOT_OK; /* before the first engine has been measured */
    if (!s) s = prepare(m, &rest);
    if (!s && named && named->flags & INGOT_NATIVE) s = tune(m, a, a->march);
    watch_task(engine);
    if (!s) s = ingot_bench(m, engine, &build, a->seconds, a->seed, &b);
    watch_task(NULL);
    if (!s && !said && !a->json)
      printf("%-8s %7s %10s %10s %10s %10s %10s %10s %9s %9s %10s\n", "engine", "runs", "min ms",
             "P50 ms", "P90 ms", "P99 ms", "first ms", "build ms", "peak KB", "code B", "const B");
    if (!s) print(a, engine, &b, !said);
    if (i == 0 || s) say_messages(m, a->quiet || i); /* warnings are the same for all */
    if (s) say_hint(m, a);
    ingot_free(m);
    said = said || !s;
    if (s && !result) result = (int)s;
    if (s == INGOT_USAGE || hopeless) break; /* the next would say the same */
  }
  if (a->json && said) puts("\n]");
  return result;
}
