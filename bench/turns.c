/* turns.c: a compiled model that is measured in turns, as bench/peers.py asks for.
 *
 *   prog INPUTS OUTPUTS
 *
 * In: INPUTS, the arrays one after another; requests on stdin, one a line: `run MS K` runs for MS
 * milliseconds, K runs per sample; `out` writes the outputs to OUTPUTS; anything else ends. Out:
 * one line per request on stdout: microseconds of a run, one number per sample. The first line is
 * microseconds from the start of main to the first result, and the peak of resident memory in KiB
 * follows. With TURNS_CPU in the environment times are those of the processor. Compiled with
 * -include of a file that defines ARENA, NIN, NOUT, IN_BYTES, OUT_BYTES and CALL, and START where
 * the model has something to start with.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MOST = 1 << 16, PAGE = 2 << 20 };

static const size_t in_bytes[] = {IN_BYTES}, out_bytes[] = {OUT_BYTES};
static void *in[NIN + 1], *out[NOUT + 1], *arena;
static float sample[MOST];
static clockid_t clock_used = CLOCK_MONOTONIC;

static double now(void) {
  struct timespec t;
  clock_gettime(clock_used, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Large ones on separate pages, as large as the system supports. */
static void *get(size_t n) {
  void *p = NULL;
  if (posix_memalign(&p, n >= PAGE ? PAGE : 64, n ? n : 1)) exit(5);
  if (n >= PAGE) madvise(p, n, MADV_HUGEPAGE);
  memset(p, 0, n);
  return p;
}

static void run(void) {
  int status = CALL;
  if (!status) return;
  fprintf(stderr, "the model returned status %d\n", status);
  exit(4);
}

static void save(const char *path) {
  FILE *f = fopen(path, "wb");
  if (!f) exit(5);
  for (int i = 0; i < NOUT; i++)
    if (fwrite(out[i], 1, out_bytes[i], f) != out_bytes[i]) exit(5);
  if (fclose(f)) exit(5);
}

static long peak(void) {
  char line[256];
  long kb = -1;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && kb < 0 && fgets(line, sizeof line, f))
    if (!strncmp(line, "VmHWM:", 6)) kb = strtol(line + 6, NULL, 10);
  if (f) fclose(f);
  return kb;
}

int main(int argc, char **argv) {
  if (getenv("TURNS_CPU")) clock_used = CLOCK_PROCESS_CPUTIME_ID;
  double start = now(), ms;
  char line[256];
  int each;
  FILE *f = argc == 3 ? fopen(argv[1], "rb") : NULL;
  if (!f) return 2;
  arena = get(ARENA);
  for (int i = 0; i < NIN; i++) {
    in[i] = get(in_bytes[i]);
    if (fread(in[i], 1, in_bytes[i], f) != in_bytes[i]) return 4;
  }
  fclose(f);
  for (int i = 0; i < NOUT; i++) out[i] = get(out_bytes[i]);
#ifdef START
  START;
#endif
  run();
  printf("%.1f %ld\n", now() - start, peak());
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    if (!strcmp(line, "out\n")) {
      save(argv[2]);
    } else if (sscanf(line, "run %lf %d", &ms, &each) == 2) {
      int n = 0;
      double from = now(), end = from + ms * 1e3;
      while (n < MOST && (from < end || n < 1)) {
        for (int k = 0; k < each; k++) run();
        double to = now();
        sample[n++] = (float)((to - from) / each);
        from = to;
      }
      for (int i = 0; i < n; i++) printf("%.9g ", (double)sample[i]);
    } else {
      return 2;
    }
    printf("\n");
    fflush(stdout);
  }
  return 0;
}
