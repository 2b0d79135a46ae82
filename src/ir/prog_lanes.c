/* prog_lanes.c: how vectors of a program lie in the registers of a machine.
 *
 * A program has vectors of any number of lanes. All of a kernel are split at the same lanes, so
 * that operations go piece by piece: as many lanes to a piece as its widest elements leave room
 * for. What is left over takes halves of a register, and below four lanes scalars.
 */
#include "ir/prog.h"

u32 lane_bytes(DType dt) {
  if (dt == DT_f64) return 8;
  return dtype_is_float(dt) ? 4 : dtype_bytes(dt);
}

static u32 widest_expr(Prog *p, ExprId id, u32 most) {
  if (!id) return most;
  const Expr *x = prog_expr(p, id);
  if (x->lanes > 1 && lane_bytes(x->dt) > most) most = lane_bytes(x->dt);
  for (u32 i = 0; i < x->narg; i++) most = widest_expr(p, x->arg[i], most);
  return most;
}

static u32 widest(Prog *p, StmtId first, u32 most) {
  for (StmtId id = first; id; id = prog_stmt(p, id)->next) {
    const Stmt *s = prog_stmt(p, id);
    if (s->kind == ST_kernel) continue;
    most = widest_expr(p, s->a, widest_expr(p, s->b, most));
    for (u32 i = 0; i < s->nidx; i++) most = widest_expr(p, s->idx[i], most);
    most = widest(p, s->other, widest(p, s->body, most));
  }
  return most;
}

u32 prog_lanes(Prog *p, StmtId first, const Target *t) {
  return t->lanes * 4 / widest(p, first, 1);
}

Pieces lane_pieces(u32 lanes, u32 most) {
  Pieces p = {.n = 0};
  u32 w = most;
  for (u32 off = 0; off < lanes; off += w) {
    while (w > lanes - off) w /= 2;
    if (w < 4 && w != most) w = 1;
    p.at[p.n] = (Piece){off, w, p.n};
    p.n++;
  }
  return p;
}
