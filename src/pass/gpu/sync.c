/* sync.c: places barriers between the loops of a block.
 *
 * In: kernels with loops marked `warp` or `thread` (LF_team). Out: the same program, with
 * LF_barrier at each of these loops before which all threads of the block must meet, and LF_after
 * at the first loop that needs what earlier kernels wrote: a block may start before they end, and
 * load constants meanwhile.
 *
 * The contract of such kernels, for lowering, back ends and engines:
 *
 * - One iteration of the parallel loops of the kernel is the work of a block. The iterations of a
 *   `warp` loop are its warps, those of a `thread` loop its threads. Both run from 0 to a constant.
 *   They are in kernels only, never inside each other. The longest one sizes the block, at most
 *   BLOCK_WARPS warps.
 * - Iterations are independent. The end of the loop joins them: what follows may read all that they
 *   stored. Lowering never says how; this pass does.
 * - Inside a `warp` loop vectors lie across the lanes of the warp, as in other kernels. Inside a
 *   `thread` loop code is scalar; a vector may only be copied, and is the thread's own.
 * - Other statements of the kernel run in all threads alike. They store nothing, and read no buffer
 *   that the kernel stores to, which this pass refuses. Loops, conditions and variables outside of
 *   warp and thread loops are the same in all threads.
 * - `local` buffers are shared memory of the block. `reg` buffers whose first index is the variable
 *   of the loop belong to each warp or thread, and keep their contents from one loop to the next
 *   loop of the same kind.
 * - An `async` store copies to a local buffer. It has happened when a later `await n` finds at most
 *   n groups after it, and the block has met; `commit` ends a group. No loop may read the place
 *   before that. The source must not change until then.
 *
 * Method: walk the statements in order with the set of accesses since the last barrier. A loop that
 * reads or writes what another loop wrote, or writes what another one read, gets a barrier. An
 * async store conflicts with earlier accesses, but what it writes counts from the next await on.
 * After a condition the accesses of both branches count. After a loop that may run zero times,
 * those before it count too. Bodies of sequential loops are walked twice, so that iterations are
 * compared with the next one.
 *
 * needs: parallel  keeps: everything but LF_barrier and LF_after
 */
#include "ir/prog/prog_mem.h"
#include "pass/pass.h"

#include <string.h>

/* Accesses of loops since the last barrier to a buffer. */
enum { SEEN_read = 1, SEEN_write = 2, SEEN_async = 4 };

typedef struct Sync {
  Prog *p;
  u8 *seen;     /* by root */
  bool *stored; /* by root: the kernel stores to it */
} Sync;

/* Gives a loop a barrier if it conflicts with loops before it, then adds its accesses. */
static void join(Sync *o, StmtId loop) {
  Prog *p = o->p;
  Mark m = arena_mark(&p->c->scratch);
  u8 *mine = NEWS(&p->c->scratch, u8, p->buf.n);
  const Stmt *s;
  for (StmtVisit w = prog_visit_one(p, loop); (s = prog_next(&w));) {
    for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);)
      if (x.e->kind == EX_load) mine[prog_root(p, x.e->ref)] |= SEEN_read;
    if (s->kind == ST_store)
      mine[prog_root(p, s->buf)] |= s->flags & SF_async ? SEEN_async : SEEN_write;
  }
  bool clash = false;
  for (BufId a = 1; a < p->buf.n && !clash; a++) {
    if (!mine[a] || prog_buf(p, a)->space == BS_reg) continue;
    bool writes = mine[a] & (SEEN_write | SEEN_async);
    for (BufId b = 1; b < p->buf.n && !clash; b++)
      clash = o->seen[b] && prog_buf(p, b)->space != BS_reg &&
              (o->seen[b] & SEEN_write || (writes && o->seen[b] & SEEN_read)) &&
              (a == b || mem_overlap(p, a, b));
  }
  if (clash) {
    prog_stmt(p, loop)->flags |= LF_barrier;
    for (BufId b = 1; b < p->buf.n; b++) o->seen[b] &= SEEN_async;
  }
  for (BufId b = 1; b < p->buf.n; b++) o->seen[b] |= mine[b];
  arena_rewind(&p->c->scratch, m);
}

static void walk(Sync *o, StmtId first);

/* After a condition the accesses of both branches count: a barrier in one is none for the other. */
static void walk_if(Sync *o, const Stmt *s) {
  Arena *a = &o->p->c->scratch;
  Mark m = arena_mark(a);
  u32 n = o->p->buf.n;
  u8 *before = arena_copy(a, o->seen, n), *then = NEWS(a, u8, n);
  walk(o, s->body);
  memcpy(then, o->seen, n);
  memcpy(o->seen, before, n);
  walk(o, s->other);
  for (u32 b = 0; b < n; b++) o->seen[b] |= then[b];
  arena_rewind(a, m);
}

/* Accesses of a loop. Its barriers are none for the path around it, unless it runs at least once.
 */
static void walk_loop(Sync *o, const Stmt *s) {
  Arena *a = &o->p->c->scratch;
  Mark m = arena_mark(a);
  u32 n = o->p->buf.n;
  i64 lo, hi;
  u8 *before = arena_copy(a, o->seen, n);
  for (u32 turn = 0; turn < 2; turn++) walk(o, s->body);
  bool runs =
      s->kind == ST_for && ex_is_int(o->p, s->a, &lo) && ex_is_int(o->p, s->b, &hi) && lo < hi;
  for (u32 b = 0; b < n && !runs; b++) o->seen[b] |= before[b];
  arena_rewind(a, m);
}

/* A statement that all threads run has no barrier before it. */
static void check_uniform(Sync *o, const Stmt *s) {
  Prog *p = o->p;
  for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);)
    for (BufId b = 1; x.e->kind == EX_load && b < p->buf.n; b++)
      if (o->stored[b] && mem_overlap(p, b, x.e->ref))
        fail(p->c, ERR_unsupported, s->loc,
             "a kernel stores to %s and reads it outside of its warp and thread loops",
             show(p->c, prog_buf(p, x.e->ref)->name));
}

static void walk(Sync *o, StmtId first) {
  Prog *p = o->p;
  for (StmtId id = first; id; id = prog_stmt(p, id)->next) {
    Stmt s = *prog_stmt(p, id);
    if (s.kind == ST_for && s.flags & LF_team) {
      join(o, id);
      continue;
    }
    check_uniform(o, &s);
    for (BufId b = 1; s.kind == ST_await && b < p->buf.n; b++)
      if (o->seen[b] & SEEN_async) o->seen[b] |= SEEN_write;
    if (s.kind == ST_if) walk_if(o, &s);
    if (s.kind == ST_for || s.kind == ST_while) walk_loop(o, &s);
  }
}

/* May another kernel write this memory, or read what this one stores to it? */
static bool is_shared(const Prog *p, BufId b) {
  BufSpace space = prog_buf(p, b)->space == BS_reg ? BS_reg : prog_buf(p, prog_root(p, b))->space;
  return space != BS_const && space != BS_local && space != BS_reg;
}

/* Marks the first loop of a block that accesses such memory. Other statements before it may not. */
static void mark_after(Prog *p, StmtId body) {
  ParallelNest nest = prog_parallel_nest(p, body);
  if (nest.n) body = prog_stmt(p, nest.at[nest.n - 1])->body;
  for (StmtId id = body; id; id = prog_stmt(p, id)->next) {
    const Stmt *s;
    bool uses = false;
    for (StmtVisit w = prog_visit_one(p, id); (s = prog_next(&w));) {
      uses = uses || (s->kind == ST_store && is_shared(p, s->buf));
      for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);)
        uses = uses || (x.e->kind == EX_load && is_shared(p, x.e->ref));
    }
    if (!uses) continue;
    if (id != body && prog_stmt(p, id)->kind == ST_for) prog_stmt(p, id)->flags |= LF_after;
    return;
  }
}

void block_sync(PassCtx *u) {
  Prog *p = u->p;
  Stmt *s;
  for (StmtVisit w = prog_visit(p, p->body); (s = prog_next(&w));) {
    if (s->kind != ST_kernel) continue;
    w.skip = true;
    if (!prog_block_warps(p, s->body)) continue;
    Sync o = {.p = p,
              .seen = NEWS(&p->c->scratch, u8, p->buf.n),
              .stored = NEWS(&p->c->scratch, bool, p->buf.n)};
    for (StmtVisit k = prog_visit(p, s->body); (s = prog_next(&k));)
      if (s->kind == ST_store) o.stored[prog_root(p, s->buf)] = true;
    s = prog_stmt(p, w.id);
    walk(&o, s->body);
    mark_after(p, s->body);
  }
}
