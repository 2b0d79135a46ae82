/* legalize.c: all kernels as the machine can do them, to be looked at.
 *
 * In: a program behind unroll. Out: the same one, each kernel as prog_legalize makes it for a back
 * end; one that unroll left as it was, or for a machine without vectors, stays. Only run when it
 * is named: back ends do it for one kernel at a time and forget it.
 *
 * A quotient that becomes bytes may be fma of two products (prog_quotient.c), whose proof is of one
 * rounding: for machines with fma alone.
 *
 * needs: unroll  keeps: results bit for bit  breaks: no statement uses
 * registers any more, vectors are the machine's
 */
#include "pass/pass.h"

static bool is_unrolled(Prog *p, StmtId kernel) {
  const Stmt *s;
  for (StmtVisit w = prog_visit_one(p, kernel); (s = prog_next(&w));)
    if (s->kind == ST_for && s->flags & LF_unroll) return false;
  return true;
}

static void legalize_kernels(PassCtx *u, StmtId first) {
  Prog *p = u->p;
  Caps has = caps_scalars(u->target);
  for (StmtId id = first; id; id = prog_stmt(p, id)->next) {
    Stmt s = *prog_stmt(p, id);
    if (s.kind != ST_kernel) {
      legalize_kernels(u, s.body);
      legalize_kernels(u, s.other);
    } else if (s.body && is_unrolled(p, id)) {
      u32 lanes = prog_lanes(p, s.body, u->target);
      StmtId body = prog_legalize(p, s.body, lanes, &has, &p->c->work);
      prog_stmt(p, id)->body = body;
    }
  }
}

void legalize(PassCtx *u) {
  if (u->target->lanes > 1) legalize_kernels(u, u->p->body);
}
