/* unroll.c: shows all kernels with their marked loops unrolled.
 *
 * In: a program. Out: the same program, each kernel as prog_unroll makes it for a back end. A
 * kernel that would become too long, or has a marked loop of unknown bounds, stays. Runs only if
 * named: back ends unroll one kernel at a time and drop the result.
 *
 * needs: nothing  keeps: results bit for bit  breaks: unrolled loops are gone
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
