/* cvec.c: vectors for any compiler: arrays, and loops over the lane z.
 *
 * In: statements with lanes, legalized for no target: operands of shuffles and reductions are
 * variables. Out: C without vectors, which compilers may vectorize again. cvop.c writes vectors of
 * the target. */
#include "back/c/c.h"

static void put_lane(Emit *e, ExprId id, u32 k) {
  const Expr *x = prog_expr(e->p, id);
  if (x->kind == EX_load)
    put_reg(e, x->ref, x->arg, x->narg, true);
  else
    sb_puts(e->t, e->var.at[x->ref]);
  if (x->lanes > 1) sb_fmt(e->t, "[%u]", k);
}

void put_shuffle_lane(Emit *e, const Expr *x, u32 i) {
  u32 n = prog_expr(e->p, x->arg[0])->lanes;
  put_lane(e, x->arg[x->pick[i] / n], x->pick[i] % n);
}

static void put_lane_loop(Emit *e, u32 from, u32 lanes) {
  begin_line(e);
  sb_fmt(e->t, "for (int z = %u; z < %u; z++) ", from, lanes);
}

/* T v = from[0]; and a loop over the others. */
void put_reduction(Emit *e, const Stmt *let) {
  Expr x = *prog_expr(e->p, let->a);
  const char *name = e->var.at[let->var], *pair[3] = {name, NULL, NULL};
  u32 lanes = prog_expr(e->p, x.arg[0])->lanes;
  begin_line(e);
  sb_fmt(e->t, "%s %s = ", c_type(x.dt), name);
  put_lane(e, x.arg[0], 0);
  sb_puts(e->t, ";\n");
  if (lanes == 1) return;
  StrBuf z = sb_new(e->b.a), *outer = e->t;
  e->t = &z;
  put_data(e, x.arg[0], PR_any);
  e->t = outer;
  put_lane_loop(e, 1, lanes);
  sb_fmt(e->t, "%s = ", name);
  pair[1] = sb_cstr(&z);
  x.kind = EX_op;
  x.narg = 2;
  put_scalar_op(e, &x, x.dt, pair);
  sb_puts(e->t, ";\n");
}

/* const T v[] = {from[3], from[2]}; */
static void put_shuffled(Emit *e, const Stmt *let, const Expr *x) {
  begin_line(e);
  sb_fmt(e->t, "const %s %s[%u] = {", c_type(x->dt), e->var.at[let->var], x->lanes);
  for (u32 i = 0; i < x->lanes; i++) {
    if (i) sb_puts(e->t, ", ");
    put_shuffle_lane(e, x, i);
  }
  sb_puts(e->t, "};\n");
}

void put_lanes_assign(Emit *e, const Stmt *s) {
  Expr x = *prog_expr(e->p, s->a);
  if (x.kind == EX_shuffle) {
    put_shuffled(e, s, &x);
    return;
  }
  if (s->kind == ST_let) put_line(e, "%s %s[%u];", c_type(x.dt), e->var.at[s->var], x.lanes);
  put_lane_loop(e, 0, x.lanes);
  sb_fmt(e->t, "%s[z] = ", e->var.at[s->var]);
  put_expr(e, s->a);
  sb_puts(e->t, ";\n");
}

void put_lanes_store(Emit *e, const Stmt *s) {
  const Buf *b = prog_buf(e->p, s->buf);
  u32 lanes = prog_expr(e->p, s->a)->lanes;
  put_lane_loop(e, 0, lanes);
  put_element(e, s->buf, s->idx, s->nidx, lanes);
  sb_puts(e->t, " = ");
  put_stored(e, b->space == BS_reg ? DT_f32 : b->dt, s->a);
  sb_puts(e->t, ";\n");
}
