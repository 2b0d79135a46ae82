/* prog_join.c: programs that become entries of one file share its arena.
 *
 * In: planned programs. Out: the same with other places in an arena that is the same for all. What
 * each keeps from run to run lies at a place of its own, below everything else, in the order of the
 * programs: a run of one leaves what the others keep as it was. All else is needed only while its
 * program runs, and lies at the same place in all: the arena is as large as the largest of them.
 */
#include "ir/prog_mem.h"

/* Bytes at the beginning of the arena that are kept: plan puts them there. */
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

void progs_join(Prog *const *p, u32 n) {
  u64 kept = 0, rest = 0;
  for (u32 i = 0; i < n; i++) {
    mem_need_plan(p[i]);
    u64 own = kept_bytes(p[i]);
    kept += own;
    if (p[i]->arena_bytes - own > rest) rest = p[i]->arena_bytes - own;
  }
  u64 base = 0;
  for (u32 i = 0; i < n; i++) {
    u64 own = kept_bytes(p[i]);
    for (BufId b = 1; b < p[i]->buf.n; b++) {
      Buf *x = prog_buf(p[i], b);
      if (prog_is_planned(x)) x->offset += x->space == BS_state ? base : kept - own;
    }
    base += own;
    p[i]->arena_bytes = kept + rest;
  }
}
