/* bench.h: shared by the measurements of run times, of tile sizes and of this machine.
 */
#ifndef INGOT_DRIVER_BENCH_H
#define INGOT_DRIVER_BENCH_H

#include "api/api_internal.h"

/* bench.c: one measurement */
typedef struct Bench {
  Ingot *m;         /* with inputs, after the passes */
  const char *name; /* engine; NULL: the first */
  const Engine *engine;
  const IngotBuild *build;
  double seconds, start; /* start: when the call began, in ms */
  u64 seed;
  VmProgram *vm;   /* NULL: interp */
  Tensor **result; /* results of runs; unused */
  IngotBench *out;
  TempDir folder;
} Bench;
void api_bench(Bench *a); /* imports, runs the passes and measures */

/* bandwidth.c: peak throughput of this machine, measured by bench/peak.c. */
typedef struct MachinePeak {
  double gflops, gflops64; /* a multiply-add is 2 operations; 0: unknown */
  double gbps;             /* read from memory */
} MachinePeak;
MachinePeak api_peak(Ctx *c, const TempDir *f, const char *cc, u32 threads);
/* Bytes per second; 0: too little data. */
double api_read_bandwidth(const void *at, size_t n);

#endif
