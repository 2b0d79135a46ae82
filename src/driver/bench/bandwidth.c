/* bandwidth.c: memory bandwidth and peak throughput of this machine.
 *
 * In: bytes, possibly a mapped file. Out: bytes per second of the fastest of several passes by one
 * thread. The first pass is not counted: it may wait for a disk. Several independent sums keep
 * loads from waiting for each other. api_peak compiles and runs bench/peak.c.
 */
#include "driver/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const unsigned char peak_text[];
extern const size_t peak_text_size;

enum { PASSES = 3, MIN_BYTES = 1 << 16 };
#define MAX_BYTES ((size_t)256 << 20) /* bytes of a pass */
#define PIECE     ((size_t)8 << 20)   /* bytes timed at once */

static u64 sum_of(const u8 *at, size_t n) {
  u64 sum[8] = {0}, word[8];
  for (size_t i = 0; i + sizeof word <= n; i += sizeof word) {
    memcpy(word, at + i, sizeof word);
    for (u32 k = 0; k < 8; k++) sum[k] += word[k];
  }
  for (u32 k = 1; k < 8; k++) sum[0] += sum[k];
  return sum[0];
}

double api_read_bandwidth(const void *at, size_t n) {
  double best = 0;
  volatile u64 kept; /* keeps the sums alive */
  if (n > MAX_BYTES) n = MAX_BYTES;
  if (n < MIN_BYTES) return 0;
  for (u32 pass = 0; pass < PASSES; pass++)
    for (size_t i = 0; i < n; i += PIECE) {
      size_t bytes = n - i < PIECE ? n - i : PIECE;
      double start = time_ms();
      kept = sum_of((const u8 *)at + i, bytes);
      (void)kept;
      double ms = time_ms() - start;
      if (pass && bytes >= MIN_BYTES && ms > 0 && (double)bytes / ms > best)
        best = (double)bytes / ms;
    }
  return best * 1000;
}

MachinePeak api_peak(Ctx *c, const TempDir *f, const char *cc, u32 threads) {
  enum { MS = 60 };
  const char *source = tempdir_file(c, f, "peak.c"), *program = tempdir_file(c, f, "peak");
  MachinePeak p = {0};
  ArgVec w = {0};
  char many[16], ms[16], *end;
  file_write(c, source, peak_text, peak_text_size);
  argv_compiler(c, &w, cc);
  argv_add(c, &w, target_native_flags());
  argv_add(c, &w, "-O3 -ffp-contract=fast -pthread -o");
  argv_put(c, &w, program, source);
  if (spawn_status(c, f, "C compiler", w.at)) return p; /* no such vectors: unknown */
  snprintf(many, sizeof many, "%u", threads);
  snprintf(ms, sizeof ms, "%d", MS);
  int status;
  const char *what = "the measurement of the peak";
  const char *text =
      spawn_text(c, f, what, (const char *const[]){program, many, ms, NULL}, &status);
  if (status) spawn_fail(c, f, what, program, status);
  p.gflops = strtod(text, &end);
  p.gbps = strtod(end, &end);
  p.gflops64 = strtod(end, NULL);
  return p;
}
