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
#include <string.h>

extern const unsigned char thread_parts[];
extern const size_t thread_parts_size;

/* ---- the loop ---- */

bool is_shared(Emit *e, const Stmt *kernel) {
  return prog_parallel_nest(e->p, kernel->body).n;
}

/* Trip count of the loops from number i on. */
static ExprId trip_count_from(Prog *p, const ParallelNest *c, u32 i) {
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
  return trip_count_from(e->p, &c, 0);
}

/* Iterations from .. to - 1 of the collapsed loops. */
void put_shared(Emit *e, StmtId first) {
  ParallelNest c = prog_parallel_nest(e->p, first);
  if (e->cuda) {
    const char *worker = e->warps ? "block" : e->b.mode == BM_warp ? "warp" : "thread";
    begin_line(e);
    sb_fmt(e->t, "const %s count = ", e->index);
    put_index(e, trip_count_from(e->p, &c, 0));
    sb_fmt(e->t, ";\n  for (%s at = ig_%s(); at < count; at += ig_%ss()) {\n", e->index, worker,
           worker);
  } else {
    put_line(e, "for (ptrdiff_t at = from; at < to; at++) {");
  }
  e->indent++;
  for (u32 i = 0; i < c.n; i++) {
    const Stmt *s = prog_stmt(e->p, c.at[i]);
    ExprId inner = trip_count_from(e->p, &c, i + 1);
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

/* Writes a part of tools/threads.c.in, which begins after the line "==== NAME".
 *
 * A POSIX thread increments `asleep` before its last look at `turn`. The caller advances `turn`
 * before it reads `asleep`. So one of them sees the other. */
static void put_part(Emit *e, StrBuf *t, const char *name) {
  static const char mark[] = "==== ";
  const char *at = (const char *)thread_parts, *end = at + thread_parts_size, *from = NULL;
  while (at < end) {
    const char *next = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
    if (!strncmp(at, mark, sizeof mark - 1)) {
      if (from) break;
      size_t n = (size_t)(next - at) - sizeof mark;
      if (strlen(name) == n && !memcmp(at + sizeof mark - 1, name, n)) from = next;
    }
    at = next;
  }
  if (!from) internal_error(e->c, LOC_NONE, "tools/threads.c.in: no part %s", name);
  sb_subst(e->c, t, from, (size_t)(at - from), e->vars);
}

void put_thread_headers(Emit *e, StrBuf *t) {
  if (!e->variant->shared_kernels.n) return;
  sb_puts(t, "#if !defined(__GNUC__)\n#error \"threads need the __atomic functions of gcc and "
             "clang\"\n#endif\n#include <sched.h>\n#include <string.h>\n");
  sb_puts(t, e->o->openmp ? "#ifdef _OPENMP\n#include <omp.h>\n#endif\n\n"
                          : "#include <pthread.h>\n\n");
}

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
  put_part(e, t, "pool_types");
  put_part(e, t, e->o->openmp ? "openmp_pool" : "posix_pool");
  put_template(
      e, t,
      "\ntypedef char ig_pool_fits${sfx}[sizeof(ig_pool${sfx}) <= IG_POOL_BYTES${sfx} ? 1 : -1];\n"
      "\n/* Runs iterations from .. to - 1 of the job on thread w. */\n"
      "static void ig_run_range${sfx}(const ig_job${sfx} *j, unsigned w, ptrdiff_t from, ptrdiff_t "
      "to) {\n"
      "  (void)w;\n  switch (j->kernel) {\n");
  sb_put(t, k->cases.at, k->cases.n);
  sb_puts(t, "  default: break;\n  }\n}\n");
  put_part(e, t, "pool_take");
  put_part(e, t, e->o->openmp ? "openmp_worker" : "posix_worker");
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
    put_part(e, t, "posix_start");
    sb_fmt(t, "\n%s", mine);
    put_part(e, t, "posix_stop");
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
