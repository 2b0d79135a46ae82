/* unroll.c: all kernels with their unrolled loops written out, to be looked at.
 *
 * In: a program. Out: the same one, each kernel as prog_unroll makes it for a back end; one that
 * would become too long, or has an unrolled loop whose bounds are not known, stays as it is. Only
 * run when it is named: back ends unroll one kernel at a time and forget it.
 *
 * needs: nothing  keeps: results bit for bit  breaks: loops that are unrolled are gone
 */
#include "pass/pass.h"

static void unroll_kernels(Prog *p, StmtId first) {
  for (StmtId id = first; id; id = prog_stmt(p, id)->next) {
    Stmt s = *prog_stmt(p, id);
    if (s.kind != ST_kernel) {
      unroll_kernels(p, s.body);
      unroll_kernels(p, s.other);
      continue;
    }
    ProgMark m = prog_mark(p);
    StmtId body = prog_unroll(p, s.body, &p->c->work);
    if (body)
      prog_stmt(p, id)->body = body;
    else
      prog_rewind(p, m);
  }
}

void unroll(Prog *p) {
  unroll_kernels(p, p->body);
}
