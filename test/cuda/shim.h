/* shim.h: the words of src/back/cuda/words.def for a CPU, so that the text of kernels runs without
 * a GPU.
 *
 * The 32 threads of a warp are fibers. A fiber runs until it asks other lanes (ig_lane) or meets
 * them (ig_join); then the others run up to the same call. So a lane that reads what another one
 * stores without a meeting reads what was there before, or not, depending on the order: tests run
 * several. Warps run one after the other, in the order given.
 *
 * A block whose warps work together (IG_BLOCK) has a fiber per thread. Each warp runs until all its
 * lanes are at ig_barrier. Shared memory is filled with a pattern, and asynchronous copies happen
 * at ig_await. */
#ifndef IG_SHIM_H
#define IG_SHIM_H

#include <math.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <type_traits>
#include <ucontext.h>
#include <utility>
#include <vector>

#define IG_FN       static
#define IG_INT      static
#define IG_KERNEL   extern "C" void
#define IG_BLOCK(n) extern "C" void
#define IG_RESTRICT
#define IG_UNROLL
#define IG_NO_UNROLL

enum {
  IG_LANES = 32,
  IG_STACK = 1 << 17,
  IG_THREADS = 1024,
  IG_SHARED = 227 << 10,
  IG_GROUPS = 16
};

static unsigned char ig_shared[IG_SHARED] __attribute__((aligned(128)));

/* A copy that waits for ig_await. */
struct ig_waiting {
  void *to;
  const void *from;
  int n;
  unsigned group;
};

/* The thread that runs, and the launch. */
static struct {
  unsigned grid, block, first,
      n;                       /* first: number of the first thread of this warp; n: its threads */
  unsigned base;               /* first fiber of this warp */
  int lane, calls[IG_THREADS]; /* calls: meetings of each lane so far */
  bool done[IG_THREADS], waits[IG_THREADS]; /* waits: at a barrier of the block */
  uint64_t value[2][IG_THREADS];            /* what lanes give to ig_lane, alternately */
  std::vector<ig_waiting> copies[IG_THREADS];
  unsigned groups[IG_THREADS];
  int order;
  void (*fn)(void **);
  void **arg;
  ucontext_t main, start[IG_THREADS];
  jmp_buf at[IG_THREADS], back;
  bool begun[IG_THREADS];
  char *stack;
} ig;

static inline int ig_thread() {
  return (int)(ig.first + (unsigned)ig.lane);
}
static inline int ig_threads() {
  return (int)(ig.grid * ig.block);
}
static inline int ig_warp() {
  return ig_thread() / IG_LANES;
}
static inline int ig_warps() {
  return ig_threads() / IG_LANES;
}
static inline int ig_lane_id() {
  return ig.lane;
}
static inline void ig_after() {}

/* Leaves the fiber until every lane of the warp has made as many calls. */
static void ig_meet() {
  unsigned me = ig.base + (unsigned)ig.lane;
  ig.calls[me]++;
  if (!_setjmp(ig.at[me])) _longjmp(ig.back, 1);
}

/* ---- blocks ---- */

static inline int ig_block() {
  return (int)(ig.first / ig.block);
}
static inline int ig_blocks() {
  return (int)ig.grid;
}
static inline int ig_thread_of_block() {
  return (int)(ig.base + (unsigned)ig.lane);
}
static inline int ig_warp_of_block() {
  return (int)(ig.base / IG_LANES);
}
static void ig_barrier() {
  ig.waits[ig.base + (unsigned)ig.lane] = true;
  ig_meet();
}

template <int N> static void ig_copy(void *to, const void *from) {
  if ((uintptr_t)to % N || (uintptr_t)from % N) {
    fprintf(stderr, "shim: a copy of %d bytes is not aligned\n", N);
    abort();
  }
  memcpy(to, from, N);
}
template <int N> static void ig_copy_async(void *to, const void *from) {
  unsigned me = ig.base + (unsigned)ig.lane;
  if ((uintptr_t)to % N || (uintptr_t)from % N) {
    fprintf(stderr, "shim: a copy of %d bytes is not aligned\n", N);
    abort();
  }
  if (N < 4)
    memcpy(to, from, N);
  else
    ig.copies[me].push_back({to, from, N, ig.groups[me]});
}
template <int N> static void ig_copy(void *to, const void *from, bool copies) {
  if (copies)
    ig_copy<N>(to, from);
  else
    memset(to, 0, N);
}
static const unsigned char ig_zeros[16] __attribute__((aligned(16))) = {0};
template <int N> static void ig_copy_async(void *to, const void *from, bool copies) {
  ig_copy_async<N>(to, copies ? from : (const void *)ig_zeros);
}
static inline void ig_commit() {
  ig.groups[ig.base + (unsigned)ig.lane]++;
}
template <int N> static void ig_await() {
  unsigned me = ig.base + (unsigned)ig.lane;
  std::vector<ig_waiting> rest;
  for (const ig_waiting &x : ig.copies[me])
    if (x.group + N < ig.groups[me])
      memcpy(x.to, x.from, (size_t)x.n);
    else
      rest.push_back(x);
  ig.copies[me] = rest;
}

static inline void ig_join() {
  ig_meet();
}

template <class T> static T ig_lane(T x, int from) {
  unsigned base = ig.base, me = base + (unsigned)ig.lane;
  int turn = ig.calls[me] & 1;
  uint64_t raw = 0;
  memcpy(&raw, &x, sizeof x);
  ig.value[turn][me] = raw;
  ig_meet();
  T y;
  memcpy(&y, &ig.value[turn][base + (unsigned)(from & 31)], sizeof y);
  return y;
}

template <class T> static T ig_choose(uint32_t first, T x, T y) {
  return first ? x : y;
}

static inline int ig_pick(uint64_t a, uint64_t b, uint64_t c, uint64_t d, int lane) {
  uint64_t word[4] = {a, b, c, d};
  return (int)(word[lane >> 3] >> 8 * (lane & 7) & 31);
}

/* ---- fragments ---- */

struct ig_operand {
  uint32_t x[4];
};
struct ig_sums {
  float x[8];
};
static ig_operand ig_operands[2][IG_THREADS]; /* of a product, by thread */

static void ig_need_shared(const void *p, size_t n) {
  if ((const unsigned char *)p >= ig_shared &&
      (const unsigned char *)p + n <= ig_shared + IG_SHARED && (uintptr_t)p % 16 == 0)
    return;
  fprintf(stderr, "shim: a row of a fragment is not aligned or not in shared memory\n");
  abort();
}
template <class T> static ig_operand ig_operand_at(const T *p, int n) {
  ig_operand a;
  ig_meet();
  for (int j = 0; j < 4; j++) {
    const T *row = p + ((j & 1) * 8 + ig.lane / 4) * n;
    ig_need_shared(row, 32);
    memcpy(&a.x[j], (const char *)row + (j >> 1) * 16 + ig.lane % 4 * 4, 4);
  }
  return a;
}
template <class T> static ig_operand ig_operand_turned(const T *p, int n) {
  ig_operand a;
  ig_meet();
  for (int j = 0; j < 4; j++) {
    T pair[2];
    for (int q = 0; q < 2; q++) {
      const T *row = p + ((j >> 1) * 8 + ig.lane % 4 * 2 + q) * n;
      ig_need_shared(row, 32);
      pair[q] = row[(j & 1) * 8 + ig.lane / 4];
    }
    memcpy(&a.x[j], pair, 4);
  }
  return a;
}
static ig_sums ig_sums_of(float x) {
  return {{x, x, x, x, x, x, x, x}};
}
static void ig_sums_store(float *p, int n, const ig_sums &s) {
  for (int i = 0; i < 8; i++)
    p[(ig.lane / 4 + (i >> 1 & 1) * 8) * n + (i >> 2) * 8 + ig.lane % 4 * 2 + (i & 1)] = s.x[i];
}
static float ig_f16_number(uint32_t bits) {
  uint32_t e = bits >> 10 & 31, m = bits & 1023;
  float x = e == 31 ? m ? NAN : INFINITY
            : e     ? ldexpf((float)(1024 + m), (int)e - 25)
                    : ldexpf((float)m, -24);
  return bits & 0x8000 ? -x : x;
}
static inline float ig_get_f16(uint16_t u) {
  return ig_f16_number(u);
}
static float ig_f32_number(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
/* N numbers in 32 bits. */
template <int N, class F>
static ig_sums ig_product(ig_operand a, ig_operand b, ig_sums c, F number) {
  unsigned base = ig.base, me = base + (unsigned)ig.lane;
  ig_operands[0][me] = a;
  ig_operands[1][me] = b;
  ig_meet();
  for (int i = 0; i < 8; i++)
    for (int k = 0; k < 8; k++) {
      unsigned row = base + (unsigned)(ig.lane / 4 * 4 + k % 4),
               column = base + (unsigned)((ig.lane % 4 * 2 + (i & 1)) * 4 + k % 4);
      uint32_t x = ig_operands[0][row].x[(i >> 1 & 1) + k / 4 * 2],
               y = ig_operands[1][column].x[(i >> 2) + k / 4 * 2];
      for (int q = 0; q < N; q++) c.x[i] += number(x, q) * number(y, q);
    }
  ig_meet();
  return c;
}
static ig_sums ig_mma_f16(ig_operand a, ig_operand b, ig_sums c) {
  return ig_product<2>(a, b, c,
                       [](uint32_t x, int q) { return ig_f16_number(x >> 16 * q & 0xffff); });
}
static ig_sums ig_mma_bf16(ig_operand a, ig_operand b, ig_sums c) {
  return ig_product<2>(a, b, c, [](uint32_t x, int q) { return ig_f32_number(x >> 16 * q << 16); });
}
static ig_sums ig_mma_f32(ig_operand a, ig_operand b, ig_sums c) {
  return ig_product<1>(a, b, c, [](uint32_t x, int) {
    return ig_f32_number((x >> 23 & 255) == 255 ? x : (x + 0x1000) & ~0x1fffu);
  });
}

static inline int32_t ig_pair(const int16_t *p) {
  int32_t x;
  memcpy(&x, p, 4);
  return x;
}
static inline int32_t ig_quad(const void *p) {
  int32_t x;
  memcpy(&x, p, 4);
  return x;
}
static inline float im_fmaf(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
static inline double im_fma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
static inline float im_sqrtf(float x) {
  return sqrtf(x);
}
static inline double im_sqrt(double x) {
  return sqrt(x);
}

/* ---- launches ---- */

static void ig_fiber() {
  unsigned me = ig.base + (unsigned)ig.lane;
  ig.fn(ig.arg);
  ig.done[me] = true;
  _longjmp(ig.back, 1);
}

static void ig_resume(int lane) {
  unsigned me = ig.base + (unsigned)lane;
  ig.lane = lane;
  if (_setjmp(ig.back)) return;
  if (ig.begun[me]) _longjmp(ig.at[me], 1);
  ig.begun[me] = true;
  getcontext(&ig.start[me]);
  ig.start[me].uc_stack.ss_sp = ig.stack + (size_t)me * IG_STACK;
  ig.start[me].uc_stack.ss_size = IG_STACK;
  ig.start[me].uc_link = NULL;
  makecontext(&ig.start[me], ig_fiber, 0);
  setcontext(&ig.start[me]);
}

/* Lanes in the order 0..31, 31..0, or from the middle. */
static int ig_lane_at(int i) {
  return ig.order == 1 ? (int)ig.n - 1 - i : ig.order == 2 ? (i + 13) % (int)ig.n : i;
}

static void ig_begin() {
  memset(ig.calls, 0, sizeof ig.calls);
  memset(ig.done, 0, sizeof ig.done);
  memset(ig.begun, 0, sizeof ig.begun);
  memset(ig.waits, 0, sizeof ig.waits);
  memset(ig.groups, 0, sizeof ig.groups);
  for (auto &x : ig.copies) x.clear();
}

static bool ig_stops(unsigned me) {
  return ig.done[me] || ig.waits[me];
}

/* Runs the lanes of a warp until they are done or wait at a barrier of the block. */
static void ig_run_warp() {
  unsigned first = ig.base;
  for (bool more = true; more;) {
    more = false;
    for (int i = 0; i < (int)ig.n; i++) {
      int lane = ig_lane_at(i);
      if (!ig_stops(first + (unsigned)lane)) ig_resume(lane);
    }
    for (unsigned i = first; i < first + ig.n; i++) {
      more = more || !ig_stops(i);
      bool same = ig.done[i] == ig.done[first] && ig.waits[i] == ig.waits[first];
      if (same && (ig.done[first] || ig.calls[i] == ig.calls[first])) continue;
      if (ig.calls[i] == 0 && ig.calls[first] == 0) continue; /* threads of their own */
      fprintf(stderr, "shim: lanes 0 and %u of a warp do not meet\n", i - first);
      abort();
    }
  }
}

/* All warps of a block, in the order given, from barrier to barrier. */
static void ig_run_block(unsigned block) {
  unsigned warps = ig.block / IG_LANES;
  memset(ig_shared, 0xAA, sizeof ig_shared);
  ig_begin();
  for (bool more = true; more;) {
    more = false;
    for (unsigned k = 0; k < warps; k++) {
      unsigned w = ig.order == 1 ? warps - 1 - k : ig.order == 2 ? (k + warps / 2) % warps : k;
      ig.base = w * IG_LANES;
      ig.first = block * ig.block + ig.base;
      ig.n = IG_LANES;
      ig_run_warp();
    }
    more = ig.waits[0];
    for (unsigned i = 0; i < ig.block; i++) {
      if (ig.waits[i] != more) {
        fprintf(stderr, "shim: threads 0 and %u of a block do not meet\n", i);
        abort();
      }
      ig.waits[i] = false;
    }
  }
}

template <class... A, size_t... I>
static void ig_call(void (*fn)(A...), void **arg, std::index_sequence<I...>) {
  fn(*(std::remove_reference_t<A> *)arg[I]...);
}
template <class... A> static void ig_call(void (*fn)(A...), void **arg) {
  ig_call(fn, arg, std::index_sequence_for<A...>());
}

extern "C" void ig_shim_launch(void (*fn)(void **), void **arg, unsigned grid, unsigned block,
                               int order, int together) {
  if (!ig.stack) ig.stack = (char *)malloc((size_t)IG_THREADS * IG_STACK);
  ig.fn = fn;
  ig.arg = arg;
  ig.grid = grid;
  ig.block = block;
  ig.order = order;
  unsigned warps = (block + IG_LANES - 1) / IG_LANES, all = grid * (together ? 1 : warps);
  for (unsigned k = 0; k < all; k++) {
    unsigned w = order == 1   ? all - 1 - k
                 : order == 2 ? (unsigned)(((uint64_t)k * 7919 + 5) % all)
                              : k;
    if (order == 2 && all % 7919 == 0) w = k;
    if (together) {
      ig_run_block(w);
      continue;
    }
    ig_begin();
    ig.base = 0;
    ig.first = w / warps * block + w % warps * IG_LANES;
    ig.n = block - w % warps * IG_LANES;
    if (ig.n > IG_LANES) ig.n = IG_LANES;
    ig_run_warp();
  }
}

#endif
