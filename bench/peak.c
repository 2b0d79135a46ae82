/* peak.c: what this machine can do at most, measured for the percentages of bench/micro.py.
 *
 *   peak THREADS MS
 *
 * Out: one line, "GFLOPS GBPS GFLOPS64": multiply-adds counted as two, in float32, from registers
 * only; bytes read per second from an array far larger than any cache, four streams a thread;
 * multiply-adds in float64. Each is the
 * best of many stretches of about a millisecond, in MS milliseconds, over all threads together:
 * short enough to fall between the turns of other processes. Compiled with -O3 -march=native
 * -ffp-contract=fast.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined __AVX512F__
enum { BYTES = 64 };
#elif defined __AVX__
enum { BYTES = 32 };
#else
enum { BYTES = 16 };
#endif
enum { LANES = BYTES / 4, CHAINS = 12, MOST = 64, STREAMS = 4 };
enum { MULTIPLY, STREAM, MULTIPLY64, KINDS }; /* what is measured */
typedef float Vec __attribute__((vector_size(BYTES)));
typedef double Vec64 __attribute__((vector_size(BYTES)));
typedef int64_t Ints __attribute__((vector_size(BYTES)));

static const size_t room = (size_t)256 << 20, piece = (size_t)16 << 20;
static pthread_barrier_t gate;
static double total, work[MOST];
static int threads;
static volatile float sink;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Operations of a millisecond or less; a multiply-add is two. */
static double multiply(void) {
  Vec a[CHAINS], m = {0}, b = {0};
  double done = 0;
  m = m + 0.9999f;
  b = b + 0.0001f;
  for (int i = 0; i < CHAINS; i++) a[i] = b + (float)i;
  for (int k = 0; k < 32; k++) {
    Vec a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3], a4 = a[4], a5 = a[5], a6 = a[6], a7 = a[7],
        a8 = a[8], a9 = a[9], a10 = a[10], a11 = a[11];
    for (int i = 0; i < 4096; i++) {
      a0 = a0 * m + b, a1 = a1 * m + b, a2 = a2 * m + b, a3 = a3 * m + b, a4 = a4 * m + b;
      a5 = a5 * m + b, a6 = a6 * m + b, a7 = a7 * m + b, a8 = a8 * m + b, a9 = a9 * m + b;
      a10 = a10 * m + b, a11 = a11 * m + b;
    }
    a[0] = a0, a[1] = a1, a[2] = a2, a[3] = a3, a[4] = a4, a[5] = a5, a[6] = a6, a[7] = a7;
    a[8] = a8, a[9] = a9, a[10] = a10, a[11] = a11;
    done += 2.0 * 4096 * CHAINS * LANES;
  }
  for (int i = 1; i < CHAINS; i++) a[0] += a[i];
  sink = a[0][0];
  return done;
}

/* The same in double; loops of constant length are written out by the compiler. */
static double multiply64(void) {
  Vec64 a[CHAINS], m = {0}, b = {0};
  m = m + 0.9999;
  b = b + 0.0001;
  for (int i = 0; i < CHAINS; i++) a[i] = b + (double)i;
  for (int k = 0; k < 32 * 4096; k++)
    for (int i = 0; i < CHAINS; i++) a[i] = a[i] * m + b;
  for (int i = 1; i < CHAINS; i++) a[0] += a[i];
  sink = (float)a[0][0];
  return 32 * 4096 * 2.0 * CHAINS * (LANES / 2);
}

/* Bytes of the next piece of the array. */
static double stream(const char *at, int k) {
  size_t part = room / STREAMS, step = piece / STREAMS, from = (size_t)k * step % part;
  Ints s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
  for (size_t i = from; i < from + step; i += BYTES) {
    s0 += *(const Ints *)(at + i);
    s1 += *(const Ints *)(at + part + i);
    s2 += *(const Ints *)(at + 2 * part + i);
    s3 += *(const Ints *)(at + 3 * part + i);
  }
  s0 += s1 + s2 + s3;
  sink = (float)s0[0];
  return (double)piece;
}

static void *body(void *arg) {
  int me = (int)(intptr_t)arg;
  char *at = NULL;
  double best[KINDS] = {0};
  if (posix_memalign((void **)&at, 4096, room)) exit(5);
  memset(at, me + 1, room);
  for (int kind = 0; kind < KINDS; kind++) {
    int turns = (int)(total * (kind == STREAM ? 1 : 2)) + 1;
    for (int k = 0; k < turns; k++) {
      pthread_barrier_wait(&gate);
      double from = now(), done = kind == MULTIPLY ? multiply()
                                  : kind == STREAM ? stream(at, k)
                                                   : multiply64();
      work[me] = done / (now() - from);
      pthread_barrier_wait(&gate);
      double all = 0;
      for (int i = 0; i < threads; i++) all += work[i];
      if (all > best[kind]) best[kind] = all;
    }
  }
  if (!me) printf("%.2f %.2f %.2f\n", best[0] / 1e9, best[1] / 1e9, best[2] / 1e9);
  free(at);
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t t[MOST];
  if (argc != 3) return 2;
  threads = atoi(argv[1]);
  total = atof(argv[2]);
  if (threads < 1 || threads > MOST) return 2;
  pthread_barrier_init(&gate, NULL, (unsigned)threads);
  for (int i = 1; i < threads; i++)
    if (pthread_create(&t[i], NULL, body, (void *)(intptr_t)i)) return 5;
  body(NULL);
  for (int i = 1; i < threads; i++) pthread_join(t[i], NULL);
  return 0;
}
