/* plan.c: gives every buffer of the arena its place.
 *
 * In: a program. Out: the same program with offsets and the size of its arena. Buffers that are needed at the same
 * time do not overlap; see live.c for when, and fit.c for where. A program that has a buffer without an upper
 * bound stays as it is: engines that grow memory can run it, the others refuse it (mem_need_plan).
 */
#include "pass/live.h"
#include "pass/pass.h"

enum { PLAN_BUDGET = 2000000 }; /* nodes of the exact search */

static bool bounded(Prog *p) {
  u64 bytes;
  Sym sym;
  for (BufId b = 1; b < p->buf.n; b++)
    if (!prog_buf(p, b)->alias && mem_in_arena(p, b) && !mem_bytes(p, b, &bytes, &sym)) return false;
  return true;
}

void plan(Prog *p) {
  p->planned = false;
  mem_sweep(p);
  if (!bounded(p)) return;
  Lives l = live_find(p, &p->c->scratch);
  FitResult r = fit(l.item, l.n, PLAN_BUDGET, &p->c->scratch);
  for (u32 i = 0; i < l.n; i++) prog_buf(p, l.root[i])->offset = l.item[i].offset;
  p->arena_bytes = r.height;
  p->planned = true;
}
