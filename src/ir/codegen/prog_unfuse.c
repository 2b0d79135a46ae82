/* prog_unfuse.c: a program as computed by a machine without FMA.
 *
 * In: a program. Out: the program, changed in place to what lowering makes for a target without
 * FMA, and the data to restore it. Products of f32 and f64 are rounded before they are added, and
 * `math fused` becomes `math fast`. Narrower floats keep their fma: lowering never creates it for
 * them. */
#include "ir/prog/prog.h"

UnfusedExprs prog_unfuse(Prog *p, Arena *a) {
  UnfusedExprs u = {.math = p->math, .any = p->math == MM_u};
  u32 n = p->nexpr;
  if (u.any) p->math = MM_q;
  for (ExprId id = 1; id < n; id++) {
    Expr x = *prog_expr(p, id);
    if (x.kind != EX_op || x.op != OP_fma || (x.dt != DT_f32 && x.dt != DT_f64)) continue;
    *vec_push(a, &u.was) = (UnfusedExpr){id, x};
    x.op = OP_mul;
    x.narg = 2;
    ExprId arg[2] = {ex_new(p, &x), x.arg[2]};
    x.op = OP_add;
    x.arg = arena_copy(&p->c->work, arg, sizeof arg);
    *prog_expr(p, id) = x;
    u.any = true;
  }
  return u;
}

void prog_fuse(Prog *p, const UnfusedExprs *u) {
  p->math = u->math;
  for (u32 i = 0; i < u->was.n; i++) *prog_expr(p, u->was.at[i].id) = u->was.at[i].expr;
}
