/* Expressions stay where they are while others are built: passes and the C back end walk one and
 * build more on the way. */
#include "check.h"
#include "ir/prog/prog.h"

enum { MANY = 1 << 17 };

static void build(Ctx *c, void *arg) {
  (void)arg;
  Prog *p = prog_new(c, dims_new(c));
  ExprId first = ex_int(p, 7);
  const Expr *at = prog_expr(p, first);
  for (i64 i = 0; i < MANY; i++) {
    ExprId e = ex_int(p, i);
    if (prog_expr(p, e)->imm.i != i) CHECK(0);
  }
  CHECK(prog_expr(p, first) == at && at->imm.i == 7);
}

int main(void) {
  Ctx *c = ctx_new(NULL, NULL);
  CHECK(ctx_protect(c, build, NULL) == ERR_ok);
  ctx_free(c);
  return check_end();
}
