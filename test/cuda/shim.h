/* shim.h: the words of src/back/cuda/words.def for a CPU, so that the text of kernels runs without
 * a GPU.
 *
 * The 32 threads of a warp are fibers. A fiber runs until it asks other lanes (ig_lane) or meets
 * them (ig_join); then the others run up to the same call. So a lane that reads what another one
 * stores without a meeting reads what was there before, or not, depending on the order: tests run
 * several. Warps run one after the other, in the order given. */
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

#define IG_FN     static
#define IG_INT    static
#define IG_KERNEL extern "C" void
#define IG_RESTRICT
#define IG_UNROLL

enum { IG_LANES = 32, IG_STACK = 1 << 17 };

/* The thread that runs, and the launch. */
static struct {
  unsigned grid, block, first,
      n;                     /* first: number of the first thread of this warp; n: its threads */
  int lane, calls[IG_LANES]; /* calls: meetings of each lane so far */
  bool done[IG_LANES];
  uint64_t value[2][IG_LANES]; /* what lanes give to ig_lane, alternately */
  int order;
  void (*fn)(void **);
  void **arg;
  ucontext_t main, start[IG_LANES];
  jmp_buf at[IG_LANES], back;
  bool begun[IG_LANES];
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
  int lane = ig.lane;
  ig.calls[lane]++;
  if (!_setjmp(ig.at[lane])) _longjmp(ig.back, 1);
}

static inline void ig_join() {
  ig_meet();
}

template <class T> static T ig_lane(T x, int from) {
  int lane = ig.lane, turn = ig.calls[lane] & 1;
  uint64_t raw = 0;
  memcpy(&raw, &x, sizeof x);
  ig.value[turn][lane] = raw;
  ig_meet();
  T y;
  memcpy(&y, &ig.value[turn][from & 31], sizeof y);
  return y;
}

template <class T> static T ig_choose(uint32_t first, T x, T y) {
  return first ? x : y;
}

static inline int ig_pick(uint64_t a, uint64_t b, uint64_t c, uint64_t d, int lane) {
  uint64_t word[4] = {a, b, c, d};
  return (int)(word[lane >> 3] >> 8 * (lane & 7) & 31);
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
  int lane = ig.lane;
  ig.fn(ig.arg);
  ig.done[lane] = true;
  _longjmp(ig.back, 1);
}

static void ig_resume(int lane) {
  ig.lane = lane;
  if (_setjmp(ig.back)) return;
  if (ig.begun[lane]) _longjmp(ig.at[lane], 1);
  ig.begun[lane] = true;
  getcontext(&ig.start[lane]);
  ig.start[lane].uc_stack.ss_sp = ig.stack + (size_t)lane * IG_STACK;
  ig.start[lane].uc_stack.ss_size = IG_STACK;
  ig.start[lane].uc_link = NULL;
  makecontext(&ig.start[lane], ig_fiber, 0);
  setcontext(&ig.start[lane]);
}

/* Lanes in the order 0..31, 31..0, or from the middle. */
static int ig_lane_at(int i) {
  return ig.order == 1 ? (int)ig.n - 1 - i : ig.order == 2 ? (i + 13) % (int)ig.n : i;
}

static void ig_run_warp() {
  memset(ig.calls, 0, sizeof ig.calls);
  memset(ig.done, 0, sizeof ig.done);
  memset(ig.begun, 0, sizeof ig.begun);
  for (bool more = true; more;) {
    more = false;
    for (int i = 0; i < (int)ig.n; i++) {
      int lane = ig_lane_at(i);
      if (!ig.done[lane]) ig_resume(lane);
    }
    for (unsigned i = 0; i < ig.n; i++) {
      more = more || !ig.done[i];
      if (ig.done[i] == ig.done[0] && (ig.done[0] || ig.calls[i] == ig.calls[0])) continue;
      if (ig.calls[i] == 0 && ig.calls[0] == 0) continue; /* threads of their own */
      fprintf(stderr, "shim: lanes 0 and %u of a warp do not meet\n", i);
      abort();
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
                               int order) {
  if (!ig.stack) ig.stack = (char *)malloc((size_t)IG_LANES * IG_STACK);
  ig.fn = fn;
  ig.arg = arg;
  ig.grid = grid;
  ig.block = block;
  ig.order = order;
  unsigned warps = (block + IG_LANES - 1) / IG_LANES, all = grid * warps;
  for (unsigned k = 0; k < all; k++) {
    unsigned w = order == 1   ? all - 1 - k
                 : order == 2 ? (unsigned)(((uint64_t)k * 7919 + 5) % all)
                              : k;
    if (order == 2 && all % 7919 == 0) w = k;
    ig.first = w / warps * block + w % warps * IG_LANES;
    ig.n = block - w % warps * IG_LANES;
    if (ig.n > IG_LANES) ig.n = IG_LANES;
    ig_run_warp();
  }
}

#endif
