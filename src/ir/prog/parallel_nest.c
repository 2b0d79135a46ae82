/* parallel_nest.c: the loops of a kernel that threads share.
 *
 * In: the body of a kernel after the pass parallel. Out: the marked loop that is the whole body,
 * and marked loops directly inside it with bounds independent of the outer ones. They form one
 * iteration space; the innermost loop varies fastest. */
#include "ir/prog/prog.h"

static bool depends(Prog *p, const ParallelNest *c, const Stmt *s) {
  for (u32 i = 0; i < c->n; i++) {
    VarId v = prog_stmt(p, c->at[i])->var;
    if (ex_mentions(p, s->a, v) || ex_mentions(p, s->b, v)) return true;
  }
  return false;
}

ParallelNest prog_parallel_nest(Prog *p, StmtId first) {
  ParallelNest c = {0};
  for (StmtId id = first; p->threads > 1 && id && c.n < PARALLEL_NEST_MAX;) {
    const Stmt *s = prog_stmt(p, id);
    if (s->next || s->kind != ST_for || !(s->flags & LF_parallel) || depends(p, &c, s)) break;
    c.at[c.n++] = id;
    id = s->body;
  }
  return c;
}

u32 prog_block_warps(Prog *p, StmtId first) {
  const Stmt *s;
  i64 n, most = 0;
  for (StmtVisit w = prog_visit(p, first); (s = prog_next(&w));) {
    if (s->kind != ST_for || !(s->flags & LF_team) || !ex_is_int(p, s->b, &n)) continue;
    if (s->flags & LF_thread) n = (n + WARP_LANES - 1) / WARP_LANES;
    if (n > most) most = n;
  }
  return (u32)most;
}

ExprId loop_trip_expr(Prog *p, const Stmt *s) {
  ExprId n = ex_op2(p, OP_sub, ex_copy(p, s->b), ex_copy(p, s->a));
  if (s->step > 1) {
    n = ex_op2(p, OP_add, n, ex_int(p, s->step - 1));
    n = ex_op2(p, OP_div, n, ex_int(p, s->step));
  }
  i64 k;
  return ex_is_int(p, n, &k) && k >= 0 ? n : ex_op2(p, OP_max, n, ex_int(p, 0));
}
