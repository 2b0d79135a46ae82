/* unroll.c: all kernels with their unrolled loops written out, to be looked at.
 *
 * In: a program. Out: the same one, each kernel as prog_unroll makes it for a back end; one that
 * would become too long, or has an unrolled loop whose bounds are not known, stays as it is. Only
 * run when it is named: back ends unroll one kernel at a time and forget it.
 *
 * needs: nothing  keeps: results bit for bit  breaks: loops that are unrolled are gone
 */
#include "pass/pass.h"

void unroll(Prog *p) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(p, p->body); (s = prog_next(&w));) {
    if (s->kind != ST_kernel) continue;
    ProgMark m = prog_mark(p);
    StmtId body = prog_unroll(p, s->body, &p->c->work);
    if (body)
      prog_stmt(p, w.id)->body = body;
    else
      prog_rewind(p, m);
    w.skip = true;
  }
}
