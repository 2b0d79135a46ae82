/* prog_join.c: makes programs that become entries of one file share its arena.
 *
 * In: planned programs. Out: the same with new offsets in a common arena. The states of each
 * program have their own place at the start, in the order of the programs, so that a run of one
 * keeps the states of the others. Everything else is live only during a run and overlaps: the arena
 * is as large as the largest program needs. Programs that share states belong to one training: the
 * training step, and the model with the current weights. */
#include "ir/prog/prog_mem.h"

/* The state of p with the name, type and size of b; 0: none. */
static BufId same_state(Prog *p, Prog *of, BufId b) {
  const Buf *x = prog_buf(of, b);
  u64 mine, others;
  Sym sym;
  for (BufId i = 1; i < p->buf.n; i++) {
    const Buf *y = prog_buf(p, i);
    if (y->space != BS_state || y->alias || y->name != x->name || y->dt != x->dt) continue;
    if (mem_bytes(p, i, &mine, &sym) && mem_bytes(of, b, &others, &sym) && mine == others) return i;
  }
  return 0;
}

/* Bytes of state, which the plan puts at the start of the arena. */
static u64 kept_bytes(Prog *p) {
  u64 end = 0, bytes;
  Sym sym;
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    if (x->space != BS_state || x->alias) continue;
    if (!mem_bytes(p, b, &bytes, &sym)) mem_refuse(p, b, sym);
    if (x->offset + bytes > end) end = x->offset + bytes;
  }
  return end;
}

/* Marks the states of q that p has too; returns the bytes of the others. */
static u64 mark_shared(Prog *p, Prog *q) {
  u64 own = 0, bytes;
  Sym sym;
  for (BufId b = 1; b < q->buf.n; b++) {
    Buf *x = prog_buf(q, b);
    if (x->space != BS_state || x->alias) continue;
    x->shared = same_state(p, q, b) != 0;
    if (!x->shared && mem_bytes(q, b, &bytes, &sym)) own += bytes;
  }
  return own;
}

/* Moves shared states of q to their place in p, the others to base and up. */
static void move_states(Prog *p, Prog *q, u64 base) {
  u64 bytes;
  Sym sym;
  for (BufId b = 1; b < q->buf.n; b++) {
    Buf *x = prog_buf(q, b);
    if (x->space != BS_state || x->alias) continue;
    x->offset = x->shared ? prog_buf(p, same_state(p, q, b))->offset : base;
    if (!x->shared && mem_bytes(q, b, &bytes, &sym)) base += bytes;
  }
}

void progs_join(Prog *const *p, u32 n, bool share) {
  u64 kept = 0, rest = 0, base = 0;
  for (u32 i = 0; i < n; i++) {
    mem_need_plan(p[i]);
    u64 own = kept_bytes(p[i]);
    if (p[i]->arena_bytes - own > rest) rest = p[i]->arena_bytes - own;
    kept += share && i ? mark_shared(p[0], p[i]) : own;
  }
  for (u32 i = 0; i < n; i++) {
    u64 own = kept_bytes(p[i]);
    for (BufId b = 1; b < p[i]->buf.n; b++) {
      Buf *x = prog_buf(p[i], b);
      if (!prog_is_planned(x)) continue;
      if (x->space != BS_state)
        x->offset += kept - own;
      else if (!share)
        x->offset += base;
    }
    if (share && i) move_states(p[0], p[i], base);
    base += share && i ? mark_shared(p[0], p[i]) : own;
    p[i]->arena_bytes = kept + rest;
  }
}
