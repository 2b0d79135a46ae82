/* Is a program made of bytes short to run, and its memory small? */
#ifndef FUZZ_SMALL_H
#define FUZZ_SMALL_H

#include "ir/prog/prog.h"

typedef struct Small {
  i64 steps;    /* statements that run */
  u64 elements; /* of a buffer */
  bool whiles;  /* each counts as run once; otherwise a program with one has no bound */
} Small;

/* Upper bound of the statements that run; more than most->steps: perhaps there is none. */
static u64 steps(Prog *p, StmtId first, const Range *var, const Small *most) {
  u64 sum = 0, none = (u64)most->steps + 1;
  for (StmtId id = first; id && sum < none; id = prog_stmt(p, id)->next) {
    const Stmt *s = prog_stmt(p, id);
    u64 times = 1;
    if (s->kind == ST_while && !most->whiles) return none;
    if (s->kind == ST_for) {
      Range lo = ex_range(p, s->a, var), hi = ex_range(p, s->b, var);
      if (lo.lo < -most->steps || hi.hi > most->steps) return none;
      times = hi.hi > lo.lo ? (u64)(hi.hi - lo.lo) : 0;
    }
    sum += 1 + times * (1 + steps(p, s->body, var, most)) + steps(p, s->other, var, most);
  }
  return sum;
}

static bool is_small(Prog *p, const Small *most) {
  for (BufId b = 1; b < p->buf.n; b++) {
    u64 n = prog_buf(p, b)->lanes;
    for (u32 i = 0; i < prog_buf(p, b)->rank; i++) {
      i64 lo, hi;
      dim_bounds(p->dims, prog_buf(p, b)->dim[i], &lo, &hi);
      if (!size_mul(n, (u64)hi, &n) || n > most->elements) return false;
    }
  }
  return steps(p, p->body, prog_ranges(p, NULL, &p->c->keep), most) <= (u64)most->steps;
}

#endif
