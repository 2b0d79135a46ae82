/* cthread.c: runs on several threads.
 *
 * In: the kernels that are one parallel loop, each after its function was written. Out: the
 * scheduler. The caller of NAME_run executes the program. At a parallel kernel it publishes a job:
 * the kernel, its arguments, and one range of chunks per thread. Every thread, including the
 * caller, takes chunks from its own range, then steals from others. The caller continues when all
 * chunks are done, so a late thread delays nothing: others take its chunks. Results do not depend
 * on the distribution. At most as many threads as chunks look for work, since each look moves cache
 * lines. For the same reason turn, done and each range have their own cache line.
 *
 * Threads are POSIX threads, started by NAME_threads_start and kept in the arena, or OpenMP's. A
 * waiting thread spins, then yields, then sleeps. Without threads NAME_run does all the work. */
#include "back/c/c.h"

#include "ir/prog/prog_mem.h"

#include <inttypes.h>

/* ---- the loop ---- */

bool is_shared(Emit *e, const Stmt *kernel) {
  return prog_parallel_nest(e->p, kernel->body).n;
}

/* Trip count of the loops from number i on. */
static ExprId trips_from(Prog *p, const ParallelNest *c, u32 i) {
  ExprId n = ex_int(p, 1);
  for (; i < c->n; i++) n = ex_op2(p, OP_mul, n, loop_trip_expr(p, prog_stmt(p, c->at[i])));
  return n;
}

static void put_of(Emit *e, const char *op, ExprId x) {
  sb_fmt(e->t, "%s(", op);
  put_index(e, x);
  sb_puts(e->t, ")");
}

ExprId shared_count(Emit *e, const Stmt *kernel) {
  ParallelNest c = prog_parallel_nest(e->p, kernel->body);
  return trips_from(e->p, &c, 0);
}

/* Iterations from .. to - 1 of the collapsed loops. */
void put_shared(Emit *e, StmtId first) {
  ParallelNest c = prog_parallel_nest(e->p, first);
  if (e->cuda) {
    begin_line(e);
    sb_fmt(e->t, "const %s count = ", e->index);
    put_index(e, trips_from(e->p, &c, 0));
    sb_fmt(e->t, ";\n  for (%s at = ig_%s(); at < count; at += ig_%ss()) {\n", e->index,
           e->b.mode == BM_warp ? "warp" : "thread", e->b.mode == BM_warp ? "warp" : "thread");
  } else {
    put_line(e, "for (ptrdiff_t at = from; at < to; at++) {");
  }
  e->indent++;
  for (u32 i = 0; i < c.n; i++) {
    const Stmt *s = prog_stmt(e->p, c.at[i]);
    ExprId inner = trips_from(e->p, &c, i + 1);
    i64 k;
    e->var.at[s->var] = str_text(e->c, str_fmt(e->c, "at%u", i));
    begin_line(e);
    sb_fmt(e->t, "const %s at%u = ", e->index, i);
    if (!ex_is_int(e->p, s->a, &k) || k) {
      put_index(e, s->a);
      sb_puts(e->t, " + ");
    }
    sb_puts(e->t, "at");
    if (!ex_is_int(e->p, inner, &k) || k != 1) put_of(e, " / ", inner);
    if (i) put_of(e, " % ", loop_trip_expr(e->p, s));
    if (s->step > 1) sb_fmt(e->t, " * %" PRId64, s->step);
    sb_puts(e->t, ";\n");
  }
  put_block(e, prog_stmt(e->p, c.at[c.n - 1])->body);
  e->indent--;
  put_line(e, "}");
}

/* ---- the pool ---- */

/* Size of the pool at the end of the arena. The sizes of POSIX objects are unknown here; the
 * generated file checks that they fit. */
u64 pool_bytes(const Emit *e) {
  u64 n = 1024 + 192 * (u64)e->p->threads + 8 * (u64)e->variant->shared_kernels.args;
  return e->variant->shared_kernels.n ? (n + 63) / 64 * 64 : 0;
}

static const char pool_types[] =
    "typedef union ig_arg${sfx} {\n"
    "  const void *in;\n  void *out;\n  int64_t i;\n  uint64_t u;\n  double d;\n} ig_arg${sfx};\n\n"
    "/* A kernel to run: iterations 0 .. count - 1, chunk by chunk. */\n"
    "typedef struct ig_job${sfx} {\n  struct ig_pool${sfx} *pool; /* NULL: no other threads */\n"
    "  unsigned kernel;\n  ptrdiff_t chunk, count;\n  ig_arg${sfx} a[IG_ARGS${sfx}];\n} "
    "ig_job${sfx};\n\n"
    "/* Chunks of a thread that are not taken yet: the first in the low, the end in the high "
    "32 bits. */\n"
    "typedef struct ig_range${sfx} {\n  uint64_t left;\n  unsigned char pad[56];\n} "
    "ig_range${sfx};\n\n"
    "typedef struct ig_worker_arg${sfx} {\n  struct ig_pool${sfx} *pool;\n  unsigned w;\n} "
    "ig_worker_arg${sfx};\n\n"
    "typedef struct ig_pool${sfx} {\n  ig_range${sfx} range[IG_THREADS${sfx}];\n"
    "  unsigned turn, stop; /* number of jobs; low 8 bits: threads for this job */\n"
    "  unsigned char pad0[64 - 2 * sizeof(unsigned)];\n"
    "  unsigned done; /* finished chunks of this job */\n"
    "  unsigned char pad1[64 - sizeof(unsigned)];\n  ig_job${sfx} job;\n";

static const char pool_take[] =
    "\n#if defined(__x86_64__) || defined(__i386__)\n#define IG_PAUSE() __builtin_ia32_pause()\n"
    "#elif defined(__aarch64__)\n#define IG_PAUSE() __asm__ volatile(\"yield\")\n"
    "#else\n#define IG_PAUSE() ((void)0)\n#endif\n\n"
    "/* Takes a chunk from the start of its own range or the end of another's; -1: none left. "
    "*/\n"
    "static int64_t ig_take_chunk${sfx}(ig_pool${sfx} *p, unsigned w, unsigned threads) {\n"
    "  for (unsigned k = 0; k < threads; k++) {\n"
    "    uint64_t *const left = &p->range[w + k < threads ? w + k : w + k - threads].left;\n"
    "    uint64_t x = __atomic_load_n(left, __ATOMIC_RELAXED);\n"
    "    while ((uint32_t)x < x >> 32) {\n"
    "      const uint64_t y = k ? x - ((uint64_t)1 << 32) : x + 1;\n"
    "      if (__atomic_compare_exchange_n(left, &x, y, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))\n"
    "        return (int64_t)(k ? y >> 32 : (uint32_t)x);\n"
    "    }\n  }\n  return -1;\n}\n\n"
    "/* Runs chunks while there are any. The job does not change before all are counted as done. "
    "*/\n"
    "static void ig_run_chunks${sfx}(ig_pool${sfx} *p, unsigned w, unsigned threads) {\n"
    "  unsigned n = 0;\n"
    "  if (w >= threads) return;\n"
    "  for (int64_t c; (c = ig_take_chunk${sfx}(p, w, threads)) >= 0; n++) {\n"
    "    const ig_job${sfx} *const j = &p->job;\n"
    "    const ptrdiff_t from = (ptrdiff_t)c * j->chunk;\n"
    "    const ptrdiff_t to = j->count - from < j->chunk ? j->count : from + j->chunk;\n"
    "    ig_run_range${sfx}(j, w, from, to);\n  }\n"
    "  if (n) __atomic_fetch_add(&p->done, n, __ATOMIC_RELEASE);\n}\n\n"
    "static void ig_parallel_for${sfx}(ig_job${sfx} *j, ptrdiff_t chunk, ptrdiff_t count) {\n"
    "  ig_pool${sfx} *const p = j->pool;\n"
    "  uint64_t n;\n  unsigned threads;\n"
    "  if (count <= 0) return;\n"
    "  if (!p || count <= chunk) {\n    ig_run_range${sfx}(j, 0, 0, count);\n    return;\n  }\n"
    "  if (count / chunk > INT32_MAX) chunk = count / INT32_MAX + 1;\n"
    "  j->chunk = chunk;\n  j->count = count;\n"
    "  n = (uint64_t)((count - 1) / chunk) + 1;\n"
    "  threads = n < p->workers ? (unsigned)n : p->workers;\n"
    "  __atomic_store_n(&p->done, 0, __ATOMIC_RELAXED);\n"
    "  for (unsigned w = 0; w < threads; w++) {\n"
    "    const uint64_t first = n * w / threads, end = n * (w + 1) / threads;\n"
    "    __atomic_store_n(&p->range[w].left, end << 32 | first, __ATOMIC_RELEASE);\n  }\n"
    "  ig_wake${sfx}(p, threads);\n  ig_run_chunks${sfx}(p, 0, threads);\n"
    "  for (unsigned k = 0; __atomic_load_n(&p->done, __ATOMIC_ACQUIRE) != (unsigned)n; k++) {\n"
    "    if (k < IG_SPIN${sfx})\n      IG_PAUSE();\n    else\n      IG_YIELD();\n  }\n}\n";

/* POSIX threads. A thread increments `asleep` before its last look at `turn`. The caller advances
 * `turn` before it reads `asleep`. So one of them sees the other. */
static const char posix_pool[] =
    "  unsigned workers, started, active, asleep;\n"
    "  uint64_t sign; /* magic number while threads run */\n"
    "  pthread_mutex_t lock;\n  pthread_cond_t wake;\n"
    "  pthread_t thread[IG_THREADS${sfx}];\n  ig_worker_arg${sfx} seat[IG_THREADS${sfx}];\n} "
    "ig_pool${sfx};\n\n"
    "#define IG_YIELD() sched_yield()\n\n"
    "static void ig_wake${sfx}(ig_pool${sfx} *p, unsigned threads) {\n"
    "  __atomic_store_n(&p->turn, (p->turn / 256 + 1) * 256 + threads, __ATOMIC_SEQ_CST);\n"
    "  if (!__atomic_load_n(&p->asleep, __ATOMIC_SEQ_CST)) return;\n"
    "  pthread_mutex_lock(&p->lock);\n  pthread_cond_broadcast(&p->wake);\n"
    "  pthread_mutex_unlock(&p->lock);\n}\n";

static const char posix_worker[] =
    "\nstatic void ig_sleep${sfx}(ig_pool${sfx} *p, unsigned turn) {\n"
    "  pthread_mutex_lock(&p->lock);\n"
    "  __atomic_fetch_add(&p->asleep, 1, __ATOMIC_SEQ_CST);\n"
    "  while (__atomic_load_n(&p->turn, __ATOMIC_SEQ_CST) == turn &&\n"
    "         !__atomic_load_n(&p->stop, __ATOMIC_SEQ_CST))\n"
    "    pthread_cond_wait(&p->wake, &p->lock);\n"
    "  __atomic_fetch_sub(&p->asleep, 1, __ATOMIC_SEQ_CST);\n"
    "  pthread_mutex_unlock(&p->lock);\n}\n\n"
    "/* Yields before it sleeps during a run, sleeps at once between runs. */\n"
    "static void *ig_worker${sfx}(void *seat) {\n"
    "  ig_pool${sfx} *const p = ((ig_worker_arg${sfx} *)seat)->pool;\n"
    "  const unsigned w = ((ig_worker_arg${sfx} *)seat)->w;\n"
    "  while (!__atomic_load_n(&p->stop, __ATOMIC_ACQUIRE)) {\n"
    "    const unsigned turn = __atomic_load_n(&p->turn, __ATOMIC_ACQUIRE);\n"
    "    ig_run_chunks${sfx}(p, w, turn % 256);\n"
    "    for (unsigned k = 0; __atomic_load_n(&p->turn, __ATOMIC_ACQUIRE) == turn &&\n"
    "                         !__atomic_load_n(&p->stop, __ATOMIC_ACQUIRE);\n         k++) {\n"
    "      if (k < IG_SPIN${sfx})\n        IG_PAUSE();\n"
    "      else if (k < IG_SPIN${sfx} + IG_YIELDS${sfx} && __atomic_load_n(&p->active, "
    "__ATOMIC_RELAXED))\n"
    "        sched_yield();\n"
    "      else\n        ig_sleep${sfx}(p, turn);\n    }\n  }\n  return NULL;\n}\n\n"
    "/* The pool of an arena; NULL if its threads are not started. */\n"
    "static ig_pool${sfx} *ig_pool_of${sfx}(void *arena) {\n"
    "  if (!arena || (uintptr_t)arena % 64) return NULL;\n"
    "  ig_pool${sfx} *const p = (ig_pool${sfx} *)(void *)((unsigned char *)arena + "
    "IG_POOL${sfx});\n"
    "  return p->sign == (IG_POOL_MAGIC${sfx} ^ (uint64_t)(uintptr_t)p) ? p : NULL;\n}\n";

static const char posix_start[] =
    "int ${name}_threads_start${sfx}(void *arena, int threads) {\n"
    "  unsigned w = 1;\n"
    "  if (!arena || (uintptr_t)arena % 64) return 0;\n"
    "  ig_pool${sfx} *const p = (ig_pool${sfx} *)(void *)((unsigned char *)arena + "
    "IG_POOL${sfx});\n"
    "  memset(p, 0, sizeof *p);\n"
    "  p->workers = threads < 1 ? 1 : threads > IG_THREADS${sfx} ? IG_THREADS${sfx} : "
    "(unsigned)threads;\n"
    "  p->job.pool = p;\n"
    "  if (pthread_mutex_init(&p->lock, NULL)) return 1;\n"
    "  if (pthread_cond_init(&p->wake, NULL)) {\n    pthread_mutex_destroy(&p->lock);\n"
    "    return 1;\n  }\n"
    "  for (; w < p->workers; w++) {\n"
    "    p->seat[w].pool = p;\n    p->seat[w].w = w;\n"
    "    if (pthread_create(&p->thread[w], NULL, ig_worker${sfx}, &p->seat[w])) break;\n  }\n"
    "  p->started = p->workers = w;\n  p->sign = IG_POOL_MAGIC${sfx} ^ (uint64_t)(uintptr_t)p;\n"
    "  return (int)w;\n}\n";

static const char posix_stop[] =
    "void ${name}_threads_stop${sfx}(void *arena) {\n"
    "  ig_pool${sfx} *const p = ig_pool_of${sfx}(arena);\n"
    "  if (!p) return;\n"
    "  pthread_mutex_lock(&p->lock);\n"
    "  __atomic_store_n(&p->stop, 1, __ATOMIC_SEQ_CST);\n"
    "  pthread_cond_broadcast(&p->wake);\n  pthread_mutex_unlock(&p->lock);\n"
    "  for (unsigned w = 1; w < p->started; w++) pthread_join(p->thread[w], NULL);\n"
    "  pthread_cond_destroy(&p->wake);\n  pthread_mutex_destroy(&p->lock);\n"
    "  p->sign = 0;\n}\n";

static const char openmp_pool[] =
    "  unsigned workers;\n} ig_pool${sfx};\n\n"
    "#define IG_YIELD() sched_yield()\n\n"
    "static void ig_wake${sfx}(ig_pool${sfx} *p, unsigned threads) {\n"
    "  __atomic_store_n(&p->turn, (p->turn / 256 + 1) * 256 + "
    "threads, __ATOMIC_SEQ_CST);\n}\n";

static const char openmp_worker[] =
    "\nstatic void ig_worker${sfx}(ig_pool${sfx} *p, unsigned w) {\n"
    "  while (!__atomic_load_n(&p->stop, __ATOMIC_ACQUIRE)) {\n"
    "    const unsigned turn = __atomic_load_n(&p->turn, __ATOMIC_ACQUIRE);\n"
    "    ig_run_chunks${sfx}(p, w, turn % 256);\n"
    "    for (unsigned k = 0; __atomic_load_n(&p->turn, __ATOMIC_ACQUIRE) == turn &&\n"
    "                         !__atomic_load_n(&p->stop, __ATOMIC_ACQUIRE);\n         k++) {\n"
    "      if (k < IG_SPIN${sfx})\n        IG_PAUSE();\n      else\n        IG_YIELD();\n"
    "    }\n  }\n}\n";

void put_thread_headers(Emit *e, StrBuf *t) {
  if (!e->variant->shared_kernels.n) return;
  sb_puts(t, "#if !defined(__GNUC__)\n#error \"threads need the __atomic functions of gcc and "
             "clang\"\n#endif\n#include <sched.h>\n#include <string.h>\n");
  sb_puts(t, e->o->openmp ? "#ifdef _OPENMP\n#include <omp.h>\n#endif\n\n"
                          : "#include <pthread.h>\n\n");
}

/* Placed between kernels and entry. */
void put_threads(Emit *e, StrBuf *t) {
  const SharedKernels *k = &e->variant->shared_kernels;
  if (!k->n) return;
  put_template(e, t,
               "\n/* ---- threads ---- */\n\nenum { IG_THREADS${sfx} = %u, IG_ARGS${sfx} = %u, "
               "IG_POOL_BYTES${sfx} = "
               "%" PRIu64 ", IG_SPIN${sfx} = 2000, IG_YIELDS${sfx} = 2000 };\n"
               "#define IG_POOL${sfx} %" PRIu64
               "\n#define IG_POOL_MAGIC${sfx} UINT64_C(0x%016" PRIx64 ")\n\n",
               e->p->threads, k->args ? k->args : 1, pool_bytes(e), e->p->arena_bytes,
               e->o->hash | 1);
  put_template_text(e, t, pool_types);
  put_template_text(e, t, e->o->openmp ? openmp_pool : posix_pool);
  put_template(
      e, t,
      "\ntypedef char ig_pool_fits${sfx}[sizeof(ig_pool${sfx}) <= IG_POOL_BYTES${sfx} ? 1 : -1];\n"
      "\n/* Runs iterations from .. to - 1 of the job on thread w. */\n"
      "static void ig_run_range${sfx}(const ig_job${sfx} *j, unsigned w, ptrdiff_t from, ptrdiff_t "
      "to) {\n"
      "  (void)w;\n  switch (j->kernel) {\n");
  sb_put(t, k->cases.at, k->cases.n);
  sb_puts(t, "  default: break;\n  }\n}\n");
  put_template_text(e, t, pool_take);
  put_template_text(e, t, e->o->openmp ? openmp_worker : posix_worker);
  sb_put(t, k->shares.at, k->shares.n);
}

/* NAME_run, which calls the entry's body. */
void put_thread_entry(Emit *e, StrBuf *t) {
  const char *params = sb_cstr(&e->entry.params), *args = sb_cstr(&e->entry.args);
  const char *mine = inner_linkage(e);
  bool shared = e->variant->shared_kernels.n;
  if (!shared) return;
  put_template(e, t, "\n%sint ${entry}_run${sfx}(void *arena%s) {\n", mine, params);
  if (e->o->openmp) {
    put_template(
        e, t,
        "  int status = 1;\n"
        "  if (!arena || (uintptr_t)arena %% 64) return status;\n"
        "  ig_pool${sfx} *const p = (ig_pool${sfx} *)(void *)((unsigned char *)arena + "
        "IG_POOL${sfx});\n"
        "  memset(p, 0, sizeof *p);\n  p->workers = IG_THREADS${sfx};\n  p->job.pool = p;\n"
        "#ifdef _OPENMP\n#pragma omp parallel num_threads(IG_THREADS${sfx})\n"
        "  if (omp_get_thread_num()) {\n"
        "    ig_worker${sfx}(p, (unsigned)omp_get_thread_num());\n  } else\n#else\n"
        "  p->job.pool = NULL;\n  (void)ig_worker${sfx};\n#endif\n  {\n"
        "    status = ${entry}_body${sfx}(&p->job, arena%s);\n"
        "    __atomic_store_n(&p->stop, 1, __ATOMIC_RELEASE);\n  }\n  return status;\n}\n",
        args);
  } else {
    put_template(e, t,
                 "  ig_pool${sfx} *const p = ig_pool_of${sfx}(arena);\n  ig_job${sfx} alone;\n  "
                 "int status;\n"
                 "  alone.pool = NULL;\n"
                 "  if (!p) return ${entry}_body${sfx}(&alone, arena%s);\n"
                 "  __atomic_store_n(&p->active, 1, __ATOMIC_RELAXED);\n"
                 "  ig_wake${sfx}(p, 0);\n"
                 "  status = ${entry}_body${sfx}(&p->job, arena%s);\n"
                 "  __atomic_store_n(&p->active, 0, __ATOMIC_RELAXED);\n  return status;\n}\n",
                 args, args);
  }
}

void put_thread_start(Emit *e, StrBuf *t) {
  const char *mine = inner_linkage(e);
  if (e->o->openmp || e->p->threads < 2) return;
  if (e->variant->shared_kernels.n) {
    sb_fmt(t, "\n%s", mine);
    put_template_text(e, t, posix_start);
    sb_fmt(t, "\n%s", mine);
    put_template_text(e, t, posix_stop);
  } else {
    put_template(e, t,
                 "\n/* No kernel of this model is worth running on several threads. */\n"
                 "%sint ${name}_threads_start${sfx}(void *arena, int threads) {\n  (void)threads;\n"
                 "  return arena && (uintptr_t)arena %% 64 == 0;\n}\n"
                 "\n%svoid ${name}_threads_stop${sfx}(void *arena) {\n  (void)arena;\n}\n",
                 mine, mine);
  }
}

void put_thread_declarations(Emit *e, StrBuf *t) {
  const char *name = e->o->name;
  if (e->p->threads < 2 || e->o->openmp) return;
  sb_fmt(
      t,
      "/* Starts threads for runs in this arena, so that `threads` work including the caller, "
      "at most\n"
      " * %u. Returns their number; 0: the arena is NULL or not aligned. Call it once before the "
      "first run. An arena\n"
      " * without started threads must be zeroed; the caller then runs alone, with the same "
      "bits. */\n"
      "int %s_threads_start(void *arena, int threads);\n"
      "/* Stops them. Call it before the arena is freed. */\n"
      "void %s_threads_stop(void *arena);\n",
      e->p->threads, name, name);
}
