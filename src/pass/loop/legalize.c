/* legalize.c: shows all kernels as legalized for a machine.
 *
 * In: a program after unroll. Out: the same program, each kernel as prog_legalize makes it for a
 * back end. A kernel that unroll left unchanged, or for a machine without vectors, stays. Runs only
 * if named: back ends legalize one kernel at a time and drop the result.
 *
 * On machines with FMA, a quotient that becomes int8 may be computed by FMAs (prog_quotient.c),
 * because the proof needs a single rounding.
 *
 * needs: unroll  keeps: results bit for bit  breaks: no statement uses register buffers, vectors
 * have the machine's width
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
      record_fit(p, id);
    }
  }
}

void legalize(PassCtx *u) {
  if (u->target->lanes > 1) legalize_kernels(u, u->p->body);
}
